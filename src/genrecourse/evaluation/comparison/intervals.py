"""95% intervals for means of people who are not independent of each other.

Many people are told the same x_plus: what the judge says of it counts for all of them at once. So
the people of one x_plus are one cluster, and an interval that took them for independent would be
too narrow. The standard error is the jackknife's, which leaves out one x_plus at a time, and the
degrees of freedom are fewer where a few x_plus are told to most people: with clusters of unequal
size the usual formula is too narrow still. The difference between two methods has two groupings, by
either method's x_plus (Cameron, Gelbach & Miller, "Robust inference with multiway clustering",
2011). Where everybody has an x_plus of their own, all of it is Student's interval.

Over several seeds each seed is one observation, and Student's t does the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
    half = _half_width(np.sqrt(variance(values, told)), _effective(told) - 1)
    return Interval(float(np.mean(values)), half, len(values), len(np.unique(told)))


def paired(
    ours: np.ndarray, theirs: np.ndarray, told_ours: np.ndarray, told_theirs: np.ndarray
) -> Interval:
    """The mean difference of one seed's people, who got an x_plus from either method."""
    difference = ours - theirs
    both = np.unique(np.stack([told_ours, told_theirs]), axis=1, return_inverse=True)[1]
    by_ours, by_theirs, by_both = (
        variance(difference, told) for told in (told_ours, told_theirs, both.reshape(-1))
    )
    # the sum can come out too small, even below zero: never less than either grouping alone
    widest = np.sqrt(max(by_ours + by_theirs - by_both, by_ours, by_theirs))
    half = _half_width(widest, min(_effective(told_ours), _effective(told_theirs)) - 1)
    clusters = min(len(np.unique(told_ours)), len(np.unique(told_theirs)))
    return Interval(float(np.mean(difference)), half, len(difference), clusters)


def over_seeds(means: Sequence[float], n: int, clusters: int) -> Interval:
    """Student's interval of the seeds' means. n, clusters: of all seeds together."""
    error = np.std(means, ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
    half = _half_width(error, len(means) - 1)
    return Interval(float(np.mean(means)), half, n, clusters, len(means))


def variance(values: np.ndarray, told: np.ndarray) -> float:
    """Of the mean: (G - 1) / G times the sum over x_plus of (mean without it - mean)^2."""
    _, place = np.unique(told, return_inverse=True)
    sizes = np.bincount(place.reshape(-1))
    if len(sizes) < 2:
        return float("nan")
    sums = np.bincount(place.reshape(-1), weights=values - np.mean(values))
    moved = sums / (len(values) - sizes)  # by how much the mean falls without each
    return float((len(sizes) - 1) / len(sizes) * np.sum(moved**2))


def _effective(told: np.ndarray) -> float:
    """How many clusters of equal size would be as uneven: n^2 / sum of their sizes squared."""
    sizes = np.unique(told, return_counts=True)[1]
    return float(len(told) ** 2 / np.sum(sizes.astype(float) ** 2))


def _half_width(error: Any, freedom: float) -> float:
    return float(student.ppf(0.5 + LEVEL / 2, freedom) * error) if freedom > 0 else float("nan")
