"""Find the numbers to hide, so that nobody can compute a number about fewer than `least` people.

A mean with its n is a sum over people, and sums can be subtracted: a country minus all regions but
one is that region. People who belong to the same groups are a cell. A group is a sum of cells, and
Gaussian elimination finds everything that follows from the published sums. So the groups are added
one by one, the largest first, and a group is hidden if its number would reveal a small one.

It is certain that no combination of columns with few people can be computed. Other sums of few
people, such as two unrelated cells, are only searched for: elimination in one order of the cells
finds some of them, so it is done in several orders.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from genrecourse.auditing.groups import Group
    from genrecourse.table.encoding import Array

FEW, BESIDE = "few", "beside"  # why a number is hidden: `Number.hidden`
TINY = 1e-9
ORDERS = 6  # orders of the cells in which sums of few people are searched

Hidden = dict[tuple[str, int], str]  # (group, number of the metric) -> why it is hidden


def find_hidden(groups: list[Group], values: Array, least: int) -> Hidden:
    """Return the numbers to hide, with the reason: FEW people, or BESIDE a group of few people.

    values: (n, m) one column per metric. The people of each metric are some of the people of the
        metric before it.

    The n of a metric is a number about the metric before it: the n of the cost is the number of
    people with a plan. So a number that is hidden in one metric is hidden in all later ones.

    >>> from genrecourse.auditing.groups import Group
    >>> everyone = Group((), np.ones(30, dtype=bool))
    >>> small = Group((("place", "islet"),), np.arange(30) < 5)
    >>> find_hidden([everyone, small], np.ones((30, 1)), least=20)
    {('place = islet', 0): 'few'}
    """
    members = np.stack([group.members for group in groups])
    cells, cell_of = np.unique(members, axis=1, return_inverse=True)
    shown, sizes = np.ones(len(groups), dtype=bool), np.full(cells.shape[1], -1)
    hidden: Hidden = {}
    for j, column in enumerate(values.T):
        before, sizes = sizes, np.bincount(cell_of.ravel()[~np.isnan(column)], minlength=len(sizes))
        n = cells @ sizes
        if (sizes != before).any():
            allowed = shown & (n >= least)
            shown = _shown(groups, cells[:, sizes > 0], sizes[sizes > 0], allowed, least)
        for i in np.flatnonzero(~shown):
            hidden[groups[i].label, j] = FEW if n[i] < least else BESIDE
    return hidden


def _shown(
    groups: list[Group], cells: np.ndarray, sizes: np.ndarray, allowed: np.ndarray, least: int
) -> np.ndarray:
    """Return (g,) booleans: the allowed groups that can be shown.

    cells: (g, c) booleans, the cells of each group.
    """
    if not allowed.any():
        return allowed
    n = cells @ sizes
    ways = _ways(_crossings(groups, cells), sizes, least)
    shown = np.zeros(len(groups), dtype=bool)
    # groups of few columns first: "sex" is more important than a combination with it
    for i in sorted(np.flatnonzero(allowed), key=lambda i: (len(groups[i].where), -n[i])):
        after = [way.add(cells[i].astype(float)) for way in ways]
        shown[i] = all(way.is_safe for way in after)
        ways = after if shown[i] else ways
    return shown


def _ways(protected: Array, sizes: np.ndarray, least: int) -> list[Sums]:
    """Return the sums before any group is shown, one for each order of elimination.

    Elimination begins with large cells, so that small ones remain: the first order is by size, the
    others are by size with noise. The protected combinations follow in any order or in none, so
    only the first one checks them.
    """
    rng = np.random.default_rng(0)
    noise = np.exp(rng.normal(size=(ORDERS, len(sizes)))) ** (np.arange(ORDERS) > 0)[:, None]
    few, empty = protected[protected @ sizes < least], np.empty((0, len(sizes)))
    orders = [np.argsort(-sizes * each, kind="stable") for each in noise]
    return [
        Sums(empty, (), empty if k else few, order, sizes.astype(float), least)
        for k, order in enumerate(orders)
    ]


def _crossings(groups: list[Group], cells: np.ndarray) -> Array:
    """Return (k, c) the cells of each combination of values of some columns, listed or not."""
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
    """The sums that are shown, over cells, in reduced row echelon form.

    >>> none, order = np.empty((0, 2)), np.arange(2)
    >>> sums = Sums(none, (), none, order, sizes=np.array([25.0, 5.0]), least=20)
    >>> both = sums.add(np.array([1.0, 1.0]))
    >>> both.is_safe, both.add(np.array([1.0, 0.0])).is_safe  # the second shows the 5 people
    (True, False)
    """

    rows: Array  # (r, c)
    pivots: tuple[int, ...]  # the first cell of each row in the order; no other row has it
    left: Array  # (k, c) what must not follow, minus what is shown; a row of zeros follows
    order: np.ndarray  # (c,) the order of elimination
    sizes: Array  # (c,) people in each cell
    least: int

    @property
    def is_safe(self) -> bool:
        """Whether no number about few people follows."""
        enough = (self.rows != 0).astype(float) @ self.sizes >= self.least
        return bool(enough.all() and self.left.any(axis=1).all())

    def add(self, row: Array) -> Sums:
        """Return the sums with one more sum over cells."""
        row = _clean(row - row[list(self.pivots)] @ self.rows)
        if not row.any():
            return self  # it follows from the other sums
        pivot = int(self.order[np.argmax(row[self.order] != 0)])
        row = row / row[pivot]
        rows, left = (_without(pivot, row, each) for each in (self.rows, self.left))
        pivots = (*self.pivots, pivot)
        return replace(self, rows=np.vstack([rows, row]), pivots=pivots, left=left)


def _without(pivot: int, row: Array, rows: Array) -> Array:
    """Return the rows minus multiples of `row`, so that they are zero at the pivot."""
    found, has = rows.copy(), rows[:, pivot] != 0
    found[has] = _clean(rows[has] - np.outer(rows[has, pivot], row))
    return found


def _clean(rows: Array) -> Array:
    return np.where(np.abs(rows) < TINY, 0.0, rows)
