"""Juries: groups of similar people whose outcomes together show more than a single outcome.

A single outcome is partly luck: a person with a probability of 0.8 still fails one time in five.
The outcomes of g similar people give better evidence about the decision for people like them: this
decision is favourable if their mean probability is above one half. A jury is a group of g training
rows that are close to each other and have similar weights. No row belongs to two juries.

A jury is *bad* if its mean probability is one half or less. The bad share is the share of the
weight that lies in bad juries. `jury_p_value` tests

    H:  bad share >= alpha.

The test is exact given the weights, if the weights do not depend on the outcomes (docs/promise.md).
If H is true, there is a set S of m bad juries whose weight is alpha or more. K_S, the number of
favourable outcomes among its m * g people, is a sum of independent coins with a mean of at most
m g / 2. Hoeffding's inequality for such sums ("On the distribution of the number of successes in
independent trials", 1956) says that P(K_S >= k) <= P(Bin(m g, 1/2) >= k) for k >= m g / 2 + 1. For
a smaller k the right side is one half or more, so the test does not reject. S is unknown; therefore
the test rejects H only if it rejects for *every* S of that weight. This is an intersection-union
test, which needs no correction for the number of sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binom

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array

# Lagrange multipliers for the weight of S: each gives a valid p-value, the best one the smallest
MULTIPLIERS = np.concatenate([[0.0], np.geomspace(0.1, 1e7, 100)])
ROUNDING = 1e-6


def make_juries(Z: Array, weight: Array, g: int, rng: np.random.Generator) -> np.ndarray:
    """Return (M, g) row numbers of Z, one row per jury; fewer than g rows are left out.

    The rows are split into halves again and again, alternately by weight and by position, so that
    the people of a jury are similar and have similar weights. The split does not use the outcomes.

    >>> Z = np.array([[0.0], [0.1], [0.9], [1.0]])
    >>> juries = make_juries(Z, np.ones(4), 2, np.random.default_rng(0))
    >>> sorted(sorted(jury) for jury in juries.tolist())
    [[0, 1], [2, 3]]
    """
    left = [(rng.permutation(len(Z))[: len(Z) // g * g], 0)]
    found = []
    while left:
        rows, depth = left.pop()
        if len(rows) <= g:
            found.append(rows)
            continue
        by_weight = depth % 2 == 0 and np.ptp(weight[rows]) > 0
        along = weight[rows] if by_weight else _longest(Z[rows])
        rows, half = rows[np.argsort(along, kind="stable")], len(rows) // g // 2 * g
        left += [(rows[:half], depth + 1), (rows[half:], depth + 1)]
    return np.stack(found) if len(Z) >= g else np.zeros((0, g), dtype=int)


def _longest(Z: Array) -> Array:
    """Return (n,) the position of each row on the line between two rows that are far apart."""
    one = Z[np.abs(Z - Z[0]).sum(axis=1).argmax()]
    other = Z[np.abs(Z - one).sum(axis=1).argmax()]
    return np.asarray(Z @ (other - one))


def jury_p_value(favourable: np.ndarray, share: Array, g: int, alpha: float) -> float:
    """Return the p-value of H: the juries with a mean probability of at most 1/2 weigh >= alpha.

    favourable: (M,) the number of favourable outcomes in each jury.
    share: (M,) the share of the weight that each jury has; the shares add up to 1.

    >>> round(jury_p_value(np.full(20, 15), np.full(20, 0.05), g=15, alpha=0.1), 6)
    0.0
    >>> jury_p_value(np.full(20, 7), np.full(20, 0.05), g=15, alpha=0.1)
    1.0
    """
    if len(favourable) == 0:
        return 1.0
    # a lower bound of K_S for each size m of S:
    #   min over S of sum(K) >= max over c of [the m smallest of K - c share] + c alpha
    least = np.full(len(favourable), -np.inf)
    for c in MULTIPLIERS:
        least = np.maximum(least, np.cumsum(np.sort(favourable - c * share)) + c * alpha)
    heads = np.ceil(least - ROUNDING)
    tosses = g * np.arange(1, len(favourable) + 1)
    tail = np.where(heads > tosses / 2, binom.sf(heads - 1, tosses, 0.5), 1.0)
    return float(tail.max())
