"""95% intervals for means of people who are not independent of each other.

Many people are told the same x_plus: what the judge says of it counts for all of them at once. So
the people of one x_plus are one cluster, and an interval that took them for independent would be
too narrow. The difference between two methods has two such groupings, by either method's x_plus
(Cameron, Gelbach & Miller, "Robust inference with multiway clustering", 2011).

Over several seeds each seed is one observation, and Student's t does the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """mean ± half. half is nan where nothing can be said: one seed alone, or one cluster."""

    mean: float
    half: float
    n: int  # people
    clusters: int  # distinct x_plus they were told: the fewer of both sides for a difference
    seeds: int = 1

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half


def clustered(values: np.ndarray, told: np.ndarray) -> Interval:
    """The mean of one seed's people. told: (n,) which x_plus each got."""
    clusters = len(np.unique(told))
    half = half_width(standard_error(values, told), clusters - 1)
    return Interval(float(np.mean(values)), half, len(values), clusters)


def paired(
    ours: np.ndarray, theirs: np.ndarray, told_ours: np.ndarray, told_theirs: np.ndarray
) -> Interval:
    """The mean difference of one seed's people, who got an x_plus from either method."""
    difference = ours - theirs
    both = np.unique(np.stack([told_ours, told_theirs]), axis=1, return_inverse=True)[1]
    by_ours, by_theirs, by_both = (
        standard_error(difference, told) ** 2 for told in (told_ours, told_theirs, both.reshape(-1))
    )
    # the sum can come out too small, even below zero: never less than either grouping alone
    variance = max(by_ours + by_theirs - by_both, by_ours, by_theirs)
    clusters = min(len(np.unique(told_ours)), len(np.unique(told_theirs)))
    half = half_width(float(np.sqrt(variance)), clusters - 1)
    return Interval(float(np.mean(difference)), half, len(difference), clusters)


def over_seeds(means: Sequence[float], n: int, clusters: int) -> Interval:
    """Student's interval of the seeds' means. n, clusters: of all seeds together."""
    error = float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else np.nan
    half = half_width(error, len(means) - 1)
    return Interval(float(np.mean(means)), half, n, clusters, len(means))


def standard_error(values: np.ndarray, told: np.ndarray) -> float:
    """Of a mean whose people share x_plus; s / sqrt(n) where everybody has one of their own."""
    _, place = np.unique(told, return_inverse=True)
    sums = np.bincount(place.reshape(-1), weights=values - np.mean(values))
    if len(sums) < 2:
        return float("nan")
    return float(np.sqrt(len(sums) / (len(sums) - 1) * np.sum(sums**2)) / len(values))


def half_width(error: float, freedom: int) -> float:
    """Half of the interval of a mean with this standard error and degrees of freedom."""
    return float(student.ppf(0.5 + LEVEL / 2, freedom) * error) if freedom > 0 else float("nan")
