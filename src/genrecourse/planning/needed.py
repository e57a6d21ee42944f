"""Keep only the changes of a plan that are needed.

A change is needed if h turns the plan down without it, or if the plan is then less sturdy than it
has to be. All plans that undo some of the changes are tried, and the cheapest that holds is taken:
whatever could still be undone would be cheaper. Of plans with many changes, those that undo one or
two are tried, again and again until none of them holds.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from genrecourse.table.encoding import unchanged

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array

ALL_SETS = 6  # changes up to which every set of them is tried: at most 63 trials
UNDONE = 2  # changes that are undone together in larger plans

# the numbers of the candidates (m,) and trial rows (m, d), the cheapest of each candidate first
# -> (m,) booleans, of which the first True of a candidate counts
Holds = Callable[[np.ndarray, "Array"], np.ndarray]


def needed_only(
    F: Array,
    F_plus: Array,
    holds: Holds,
    price: Callable[[np.ndarray, Array], Array],
    follow: Callable[[np.ndarray, Array], Array] = lambda which, F_plus: F_plus,
    frozen: np.ndarray | None = None,
) -> Array:
    """Return (n, d) the candidates without the changes that are not needed.

    F (n, d): each x. F_plus (n, d): each candidate; one that does not hold stays as it is.
    holds: asked about all trials of a round together. price: (m,) the cost of trial rows.
    follow: what becomes of trial rows when features are put back (derived features).
    frozen: (d,) features that follow others and are not undone themselves.

    >>> x, x_plus = np.zeros((1, 3)), np.array([[1.0, 0.5, 0.2]])
    >>> holds = lambda which, F: F[:, 0] + F[:, 1] > 0.9
    >>> needed_only(x, x_plus, holds, lambda which, F: F.sum(axis=1))  # two are not needed
    array([[1., 0., 0.]])
    """
    F_plus, todo = F_plus.copy(), np.arange(len(F_plus))
    frozen = np.zeros(F.shape[1], dtype=bool) if frozen is None else frozen
    while len(todo):
        changes = ~unchanged(F[todo], F_plus[todo]) & ~frozen
        which, undo = _undos(todo, changes)
        if len(which) == 0:
            break
        trial = follow(which, np.where(undo, F[which], F_plus[which]))
        order = np.lexsort((price(which, trial), which))
        which, trial = which[order], trial[order]
        ok = holds(which, trial)
        found, first = np.unique(which[ok], return_index=True)
        F_plus[found] = trial[ok][first]
        many = changes.sum(axis=1) > ALL_SETS
        todo = np.intersect1d(found, todo[many])  # of the others, every set was tried
    return F_plus


def _undos(todo: np.ndarray, changes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (m,) candidates and (m, d) booleans: sets of their changes to undo, but not all."""
    which, undo = [], []
    for i, mine in zip(todo, changes, strict=True):
        changed = np.flatnonzero(mine)
        most = len(changed) - 1 if len(changed) <= ALL_SETS else UNDONE
        for size in range(1, most + 1):
            for some in combinations(changed.tolist(), size):
                row = np.zeros(len(mine), dtype=bool)
                row[list(some)] = True
                which.append(i)
                undo.append(row)
    return np.array(which, dtype=int), np.array(undo, dtype=bool).reshape(-1, changes.shape[1])
