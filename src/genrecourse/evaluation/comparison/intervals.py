"""95% intervals for means over people who are not independent.

Many people get the same x_plus, and the judge's verdict on it counts for all of them. Therefore the
people with the same x_plus are one cluster; an interval that ignores this is too narrow. The
standard error is a jackknife that leaves out one x_plus at a time. The degrees of freedom are
reduced if a few x_plus serve most people, because the usual formula is too narrow for clusters of
different sizes. The difference between two methods has two groupings, one for each method's x_plus
(Cameron, Gelbach & Miller, "Robust inference with multiway clustering", 2011). If everybody has a
different x_plus, the result is Student's interval.

Over several seeds, each seed is one observation, and the interval is Student's.
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
    """mean ± half; half is NaN if it cannot be estimated (a single seed or a single cluster).

    >>> interval = Interval(mean=0.7, half=0.2, n=50, clusters=30)
    >>> round(interval.low, 2), round(interval.high, 2)
    (0.5, 0.9)
    """

    mean: float
    half: float
    n: int  # people
    clusters: int  # distinct x_plus; for a difference, the smaller number of the two methods
    seeds: int = 1

    @property
    def low(self) -> float:
        """The lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """The upper end."""
        return self.mean + self.half


def clustered(values: np.ndarray, x_plus: np.ndarray) -> Interval:
    """Return the mean over the people of one seed. x_plus: (n,) the id of each person's x_plus.

    >>> found = clustered(np.array([1.0, 1.0, 0.0, 1.0]), np.array([7, 7, 8, 9]))
    >>> found.mean, found.clusters
    (0.75, 3)
    """
    half = _half_width(np.sqrt(variance(values, x_plus)), _effective(x_plus) - 1)
    return Interval(float(np.mean(values)), half, len(values), len(np.unique(x_plus)))


def paired(
    ours: np.ndarray, theirs: np.ndarray, x_plus_ours: np.ndarray, x_plus_theirs: np.ndarray
) -> Interval:
    """Return the mean difference between two methods over the people of one seed.

    ours, theirs: (n,) the values. x_plus_ours, x_plus_theirs: (n,) the ids of the x_plus.

    >>> ours, theirs = np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0])
    >>> round(paired(ours, theirs, np.arange(3), np.arange(3)).mean, 2)
    0.33
    """
    difference = ours - theirs
    both = np.unique(np.stack([x_plus_ours, x_plus_theirs]), axis=1, return_inverse=True)[1]
    by_ours, by_theirs, by_both = (
        variance(difference, ids) for ids in (x_plus_ours, x_plus_theirs, both.reshape(-1))
    )
    # the sum can be too small, even negative: use at least the variance of each grouping alone
    widest = np.sqrt(max(by_ours + by_theirs - by_both, by_ours, by_theirs))
    half = _half_width(widest, min(_effective(x_plus_ours), _effective(x_plus_theirs)) - 1)
    clusters = min(len(np.unique(x_plus_ours)), len(np.unique(x_plus_theirs)))
    return Interval(float(np.mean(difference)), half, len(difference), clusters)


def over_seeds(means: Sequence[float], n: int, clusters: int) -> Interval:
    """Return Student's interval of the means of several seeds.

    n, clusters: the sums over all seeds.

    >>> found = over_seeds([0.7, 0.8, 0.9], n=150, clusters=90)
    >>> round(found.mean, 2), round(found.half, 2)
    (0.8, 0.25)
    """
    error = np.std(means, ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
    half = _half_width(error, len(means) - 1)
    return Interval(float(np.mean(means)), half, n, clusters, len(means))


def variance(values: np.ndarray, x_plus: np.ndarray) -> float:
    """Return the jackknife variance of the mean over G clusters.

    It is (G - 1) / G times the sum over x_plus of (mean without it - mean)^2.

    >>> round(variance(np.array([1.0, 0.0, 1.0, 0.0]), np.array([1, 2, 3, 4])), 3)
    0.083
    """
    _, place = np.unique(x_plus, return_inverse=True)
    sizes = np.bincount(place.reshape(-1))
    if len(sizes) < 2:
        return float("nan")
    sums = np.bincount(place.reshape(-1), weights=values - np.mean(values))
    moved = sums / (len(values) - sizes)  # the decrease of the mean without each cluster
    return float((len(sizes) - 1) / len(sizes) * np.sum(moved**2))


def _effective(x_plus: np.ndarray) -> float:
    """Return the effective number of clusters: n^2 / (sum of the squared sizes)."""
    sizes = np.unique(x_plus, return_counts=True)[1]
    return float(len(x_plus) ** 2 / np.sum(sizes.astype(float) ** 2))


def _half_width(error: Any, freedom: float) -> float:
    return float(student.ppf(0.5 + LEVEL / 2, freedom) * error) if freedom > 0 else float("nan")
