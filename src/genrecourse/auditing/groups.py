"""Find the groups: one per value of each column, and one per combination of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError, shown
from genrecourse.table.schema import plain

EVERYONE = "everyone"
NOT_GIVEN = "not given"
MOST_VALUES = 20  # values of a group column, at most

Where = tuple[tuple[str, str], ...]  # columns and their values as text; (): everyone


@dataclass(frozen=True)
class Group:
    """The people with these values.

    >>> Group((("sex", "f"), ("job", "cook")), np.array([True, False])).label
    'sex = f and job = cook'
    """

    where: Where
    members: np.ndarray  # (n,) booleans

    def has(self, row: pd.Series) -> bool:
        """Return whether a row of the table has the values of the group."""
        return all(_cell_in_words(row[column]) == value for column, value in self.where)

    @property
    def label(self) -> str:
        """The columns and values as text."""
        return " and ".join(f"{column} = {value}" for column, value in self.where) or EVERYONE


def check_groups(X: pd.DataFrame, groups: Sequence[str]) -> None:
    """Raise a UserError for columns that give no useful groups.

    >>> check_groups(pd.DataFrame({"a": [1, 2]}), ["b"])
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: audit: there is no column 'b' to group by; the table has ['a']
    """
    if not groups:
        raise UserError(f"audit: give a column to group people by; the table has {list(X.columns)}")
    for name in groups:
        if name not in X.columns:
            raise UserError(
                f"audit: there is no column '{name}' to group by; the table has {list(X.columns)}"
            )
        levels = _levels(X[name])
        if len(levels) == 1:
            raise UserError(
                f"audit: '{name}' is {next(iter(levels))!r} for all {len(X):,} people; there is no "
                "second group to compare with"
            )
        if len(levels) > MOST_VALUES:
            raise UserError(
                f"audit: '{name}' has {len(levels):,} values; at most {MOST_VALUES} are possible. "
                "Make a column of ranges, such as '18 to 39', and group by it"
            )


def find_groups(
    X: pd.DataFrame, groups: Sequence[str], rejected: np.ndarray, least: int
) -> tuple[list[Group], int]:
    """Return the groups, and the number of combinations that have people but are too small.

    The groups are everyone, one per value of each column, and one per combination of values with
    at least `least` rejected people.

    >>> X = pd.DataFrame({"sex": ["f", "f", "m"], "job": ["cook", "cook", "cook"]})
    >>> groups, small = find_groups(X, ["sex"], np.ones(3, dtype=bool), least=2)
    >>> [group.label for group in groups]
    ['everyone', 'sex = f', 'sex = m']
    """
    levels = {name: _levels(X[name]) for name in dict.fromkeys(groups)}
    found = [Group((), np.ones(len(X), dtype=bool))]
    found += [Group(((name, v),), who) for name, each in levels.items() for v, who in each.items()]
    seen, small = {group.members.tobytes() for group in found}, 0
    for size in range(2, len(levels) + 1):
        for names in combinations(levels, size):
            for values in product(*(levels[name] for name in names)):
                where = tuple(zip(names, values, strict=True))
                members = reduce(np.logical_and, (levels[name][v] for name, v in where))
                if not members.any() or members.tobytes() in seen:
                    continue  # nobody, or the same people as another group
                seen.add(members.tobytes())
                if (members & rejected).sum() < least:
                    small += 1
                else:
                    found.append(Group(where, members))
    return found, small


def _levels(column: pd.Series) -> dict[str, np.ndarray]:
    """Return (n,) booleans for each value as text, in order; missing values are a group as well."""
    gone = column.isna().to_numpy()
    values = [plain(value) for value in column[~gone].unique()]
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = [value for value in map(plain, column.cat.categories) if value in values]
    else:
        values.sort(key=lambda value: (isinstance(value, str), value))
    cells = column.astype(object).to_numpy()
    found: dict[str, np.ndarray] = {}
    for value in values:
        found[_in_words(value)] = ~gone & (cells == value)
    return found | ({NOT_GIVEN: gone} if gone.any() else {})


def _cell_in_words(cell: Any) -> str:
    """Return a cell, also one that cannot be read, as the value of a group."""
    if pd.api.types.is_scalar(cell) and pd.isna(cell):
        return NOT_GIVEN
    is_level = isinstance(cell, bool | int | float | str | np.generic)
    return _in_words(plain(cell)) if is_level else shown(cell)


def _in_words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
