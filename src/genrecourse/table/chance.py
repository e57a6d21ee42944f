"""How often a relation between columns would hold by chance: closed forms, no simulation.

The question is always the same. Deal the values of one column to the rows at random, and leave the
other columns as they are. With which probability does the relation then hold as well as it does in
the table? If that is likely, the relation says nothing: "a <= b" is trivially true where the ranges
of a and b do not overlap, and "a = b + c" where c is nearly always 0.

All functions return the natural logarithm of a probability, or of an upper bound if the relation
has exceptions: the bound adds up the probabilities over all choices of the exceptional rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln
from scipy.stats import beta, hypergeom

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array


def log_chance_ordered(a: Array, b: Array, exceptions: int) -> float:
    """Return the log probability that a <= b in all but `exceptions` rows if b is dealt at random.

    The largest a can get each b that is not smaller, the next largest one fewer, and so on.

    Examples:
        >>> a, b = np.array([1.0, 2.0, 3.0]), np.array([1.5, 2.5, 3.5])
        >>> round(float(np.exp(log_chance_ordered(a, b, 0))), 3)  # one of the 6 orders
        0.167
    """
    n = len(a)
    hardest_last = np.sort(a)[: n - exceptions]
    fitting = n - np.searchsorted(np.sort(b), hardest_last[::-1], side="left")
    taken = np.arange(len(hardest_last))
    if np.any(fitting <= taken):
        return -np.inf
    log_p = np.log(fitting - taken).sum() - np.log(n - taken).sum()
    return min(0.0, float(log_p + _log_choose(n, exceptions)))


def share_ordered(a: Array, b: Array) -> float:
    """Return the expected share of rows with a > b if b is dealt at random.

    Examples:
        >>> share_ordered(np.array([1.0, 2.0]), np.array([1.5, 2.5]))
        0.25
    """
    return float(np.searchsorted(np.sort(b), a, side="left").mean() / len(b))


def log_chance_equal(values: np.ndarray, exceptions: int) -> float:
    """Return the log probability that a column equals another one in all but `exceptions` rows.

    values: the column, equal values as equal numbers. It is dealt at random.

    Examples:
        >>> round(float(np.exp(log_chance_equal(np.array([0, 0, 1]), 0))), 3)  # 1 of 3 places
        0.333
    """
    counts = np.unique(values, return_counts=True)[1]
    log_p = gammaln(counts + 1).sum() - gammaln(len(values) + 1) + gammaln(exceptions + 1)
    return min(0.0, float(log_p + _log_choose(len(values), exceptions)))


def share_unequal(values: np.ndarray) -> float:
    """Return the expected share of rows in which a column that is dealt at random differs from
    its own value.

    Examples:
        >>> share_unequal(np.array([0, 1]))
        0.5
    """
    counts = np.unique(values, return_counts=True)[1]
    return float(1.0 - ((counts / len(values)) ** 2).sum())


def log_chance_inside(n: int, n_inside: int, drawn: int, exceptions: int) -> float:
    """Return the log probability that at most `exceptions` of `drawn` rows lie outside a set that
    holds n_inside of n rows, if the rows are drawn at random.

    Examples:
        >>> round(float(np.exp(log_chance_inside(4, 2, 2, 0))), 3)  # 1 of 6 pairs
        0.167
    """
    return float(hypergeom.logcdf(exceptions, n, n - n_inside, drawn))


def log_chance_disjoint(counts: np.ndarray, n: int) -> float:
    """Return the log probability that columns with so many ones never have two in a row of n rows,
    if each column is dealt at random.

    Examples:
        >>> round(float(np.exp(log_chance_disjoint(np.array([1, 1]), 3))), 3)
        0.667
    """
    free = n - counts.sum()
    ways = gammaln(n + 1) - gammaln(counts + 1).sum() - gammaln(free + 1)
    return min(0.0, float(ways - sum(_log_choose(n, int(count)) for count in counts)))


def share_not_one(shares: np.ndarray, *, or_none: bool) -> float:
    """Return the share of rows without exactly one 1 if columns of 0 and 1 were independent.

    shares: of ones in each column. or_none: a row of zeros counts as right, too.

    Examples:
        >>> share_not_one(np.array([0.5, 0.5]), or_none=False)
        0.5
        >>> share_not_one(np.array([0.5, 0.5]), or_none=True)
        0.25
    """
    none, one = 1.0, 0.0
    for share in shares:
        none, one = none * (1 - share), one * (1 - share) + none * share
    return float(1.0 - one - (none if or_none else 0.0))


def most_exceptions(exceptions: int, n: int, confidence: float = 0.95) -> float:
    """Return an upper bound of the share of exceptions that so many in n rows leave possible.

    Examples:
        >>> round(most_exceptions(0, 299), 3)  # Clopper and Pearson
        0.01
    """
    if exceptions >= n:
        return 1.0
    return float(beta.ppf(confidence, exceptions + 1, n - exceptions))


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
