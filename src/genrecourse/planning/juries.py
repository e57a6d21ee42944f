"""Juries: people who are alike decide together what a single outcome cannot tell.

An outcome is luck: somebody who is accepted with 0.8 fails one time in five. g people who are alike
say more of the decision about people like them: it is favourable if their mean probability is above
one half. A jury is g training rows that are near each other (and near each other in how much they
weigh); juries share no row.

`jury_p_value` is exact given the weights, if these do not hang on the outcomes (docs/promise.md):
with the share of the weight in juries whose mean probability is one half or less called the *bad*
share, it tests

    H:  bad share >= alpha.

If H is true there is a set S of bad juries that weighs alpha or more, and its favourable outcomes,
K_S of m * g, are a sum of independent coins whose mean is at most m g / 2. By Hoeffding's
inequality for such sums ("On the distribution of the number of successes in independent trials",
1956) P(K_S >= k) <= P(Bin(m g, 1/2) >= k) for k >= m g / 2 + 1; for a smaller k the right side is
one half or more, which rejects nothing. S is not known: so H is rejected only if that test rejects
for *every* S of that weight (an intersection-union test, which needs no correction for their
number).
"""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from genrecourse.table.encoding import Array

# Lagrange multipliers for the weight of S: any give a valid p-value, the right one the smallest
MULTIPLIERS = np.concatenate([[0.0], np.geomspace(0.1, 1e7, 100)])
ROUNDING = 1e-6


def make_juries(Z: Array, weight: Array, g: int, rng: np.random.Generator) -> np.ndarray:
    """(M, g) rows of Z: all but fewer than g rows, halved until juries are left.

    Rows are halved by their weight and by their place in turn, so that a jury is of one kind and
    its rows stand for about as many plans each. Outcomes are not looked at.
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
    """(n,) where each row lies between two rows that are far apart."""
    one = Z[np.abs(Z - Z[0]).sum(axis=1).argmax()]
    other = Z[np.abs(Z - one).sum(axis=1).argmax()]
    return np.asarray(Z @ (other - one))


def jury_p_value(favourable: np.ndarray, share: Array, g: int, alpha: float) -> float:
    """Of H: juries with a mean probability of one half or less weigh alpha or more.

    favourable: (M,) favourable outcomes in each jury; share: (M,) its share of the weight, adding
    up to 1.
    """
    if len(favourable) == 0:
        return 1.0
    # the least K_S for each size m of S, from below:
    #   min over S of sum(K) >= max over c of [the m smallest of K - c share] + c alpha
    least = np.full(len(favourable), -np.inf)
    for c in MULTIPLIERS:
        least = np.maximum(least, np.cumsum(np.sort(favourable - c * share)) + c * alpha)
    heads = np.ceil(least - ROUNDING)
    tosses = g * np.arange(1, len(favourable) + 1)
    tail = np.where(heads > tosses / 2, binom.sf(heads - 1, tosses, 0.5), 1.0)
    return float(tail.max())
