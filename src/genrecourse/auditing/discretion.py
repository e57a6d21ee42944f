"""What must not be told, so that nothing follows about fewer than `least` people.

A mean that is told with its n is a sum over people, and sums can be subtracted: a country less all
its regions but one is that region. People who belong to the same groups are a cell; a group is the
sum of its cells, and all that follows from the sums told is what elimination makes of them. So
groups are asked one by one whether they may be told beside those told before, the largest first.

That no crossing of the columns with few people follows is certain. Other sums of few, such as two
cells that have nothing in common, are looked for: elimination in one order of the cells shows some
of them, so it is done in several.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from genrecourse.auditing.groups import Group
from genrecourse.table.encoding import Array

FEW, BESIDE = "few", "beside"  # why a number is kept back: `Number.hidden`
TINY = 1e-9
ORDERS = 6  # of the cells, in which sums of few are looked for

Hidden = dict[tuple[str, int], str]  # group and place of the metric: why it is kept back


def find_hidden(groups: list[Group], values: Array, least: int) -> Hidden:
    """values: (n, m) numbers by metric, in which each metric counts people of the one before it.

    The n of a metric is a sum of the one before: that of the cost says how many have a plan. So
    what is kept back in a metric is kept back in those after it.
    """
    members = np.stack([group.members for group in groups])
    cells, cell_of = np.unique(members, axis=1, return_inverse=True)
    told, sizes = np.ones(len(groups), dtype=bool), np.full(cells.shape[1], -1)
    hidden: Hidden = {}
    for j, column in enumerate(values.T):
        before, sizes = sizes, np.bincount(cell_of.ravel()[~np.isnan(column)], minlength=len(sizes))
        n = cells @ sizes
        if (sizes != before).any():
            told = _told(groups, cells[:, sizes > 0], sizes[sizes > 0], told & (n >= least), least)
        for i in np.flatnonzero(~told):
            hidden[groups[i].label, j] = FEW if n[i] < least else BESIDE
    return hidden


def _told(
    groups: list[Group], cells: np.ndarray, sizes: np.ndarray, allowed: np.ndarray, least: int
) -> np.ndarray:
    """(g,) which of the groups allowed can be told. cells: (g, c) which are whose."""
    if not allowed.any():
        return allowed
    n = cells @ sizes
    ways = _ways(_crossings(groups, cells), sizes, least)
    told = np.zeros(len(groups), dtype=bool)
    # few columns first: who reads "sex" would rather miss a combination of it
    for i in sorted(np.flatnonzero(allowed), key=lambda i: (len(groups[i].where), -n[i])):
        after = [way.add(cells[i].astype(float)) for way in ways]
        told[i] = all(way.is_safe for way in after)
        ways = after if told[i] else ways
    return told


def _ways(protected: Array, sizes: np.ndarray, least: int) -> list[Sums]:
    """Nothing is told yet. Elimination begins at large cells, so that small ones are left over: by
    size, then about so. What is protected follows in any order or in none: one is enough."""
    rng = np.random.default_rng(0)
    noise = np.exp(rng.normal(size=(ORDERS, len(sizes)))) ** (np.arange(ORDERS) > 0)[:, None]
    few, empty = protected[protected @ sizes < least], np.empty((0, len(sizes)))
    orders = [np.argsort(-sizes * each, kind="stable") for each in noise]
    return [
        Sums(empty, (), empty if k else few, order, sizes.astype(float), least)
        for k, order in enumerate(orders)
    ]


def _crossings(groups: list[Group], cells: np.ndarray) -> Array:
    """(k, c) the cells of everybody with the same values in some of the columns, listed or not."""
    columns: dict[str, list[np.ndarray]] = {}
    for group, has in zip(groups, cells, strict=True):
        if len(group.where) == 1:
            columns.setdefault(group.where[0][0], []).append(has)
    codes = [np.argmax(levels, axis=0) for levels in columns.values()]
    found = []
    for size in range(1, len(codes) + 1):
        for some in combinations(codes, size):
            _, at = np.unique(np.stack(some), axis=1, return_inverse=True)
            found.append(np.arange(at.max() + 1)[:, None] == at.ravel())
    return np.concatenate(found).astype(float)


@dataclass(frozen=True)
class Sums:
    """What is told, as sums over cells in reduced row echelon form."""

    rows: Array  # (r, c)
    pivots: tuple[int, ...]  # of each row: the first cell of it in the order, and in no other row
    left: Array  # (k, c) what must not follow, less what is told: zero if it follows
    order: np.ndarray  # (c,) of elimination
    sizes: Array  # (c,) people
    least: int

    @property
    def is_safe(self) -> bool:
        """Whether nothing of few people follows."""
        enough = (self.rows != 0).astype(float) @ self.sizes >= self.least
        return bool(enough.all() and self.left.any(axis=1).all())

    def add(self, row: Array) -> Sums:
        """With one more told."""
        row = _clean(row - row[list(self.pivots)] @ self.rows)
        if not row.any():
            return self  # it follows from what is told
        pivot = int(self.order[np.argmax(row[self.order] != 0)])
        row = row / row[pivot]
        rows, left = (_without(pivot, row, each) for each in (self.rows, self.left))
        pivots = (*self.pivots, pivot)
        return replace(self, rows=np.vstack([rows, row]), pivots=pivots, left=left)


def _without(pivot: int, row: Array, rows: Array) -> Array:
    """Rows less so much of one that nothing is left of them at the pivot."""
    found, has = rows.copy(), rows[:, pivot] != 0
    found[has] = _clean(rows[has] - np.outer(rows[has, pivot], row))
    return found


def _clean(rows: Array) -> Array:
    return np.where(np.abs(rows) < TINY, 0.0, rows)
