"""Who belongs to which group: each value of each named column, and each combination of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product

import numpy as np
import pandas as pd

from genrecourse.errors import UserError
from genrecourse.table.schema import plain

EVERYONE = "everyone"
NOT_GIVEN = "not given"
MOST_VALUES = 20  # of a group column

Where = tuple[tuple[str, str], ...]  # columns and values in words; (): everyone


@dataclass(frozen=True)
class Group:
    """The people who have these values."""

    where: Where
    members: np.ndarray  # (n,) booleans

    @property
    def label(self) -> str:
        return " and ".join(f"{column} = {value}" for column, value in self.where) or EVERYONE


def check_groups(X: pd.DataFrame, groups: Sequence[str]) -> None:
    """Refuse columns that make no groups, before anything long is done."""
    if not groups:
        raise UserError(f"audit: name a column to group people by; the table has {list(X.columns)}")
    for name in groups:
        if name not in X.columns:
            raise UserError(
                f"audit: no column '{name}' to group people by; the table has {list(X.columns)}"
            )
        levels = _levels(X[name])
        if len(levels) == 1:
            raise UserError(
                f"audit: '{name}' is {next(iter(levels))!r} for all {len(X):,} people: one group "
                "has nobody to be compared with"
            )
        if len(levels) > MOST_VALUES:
            raise UserError(
                f"audit: '{name}' has {len(levels):,} values, and groups of so few people say "
                f"little (at most {MOST_VALUES}); make a column of ranges, such as '18 to 39', and "
                "name that"
            )


def find_groups(
    X: pd.DataFrame, groups: Sequence[str], rejected: np.ndarray, least: int
) -> tuple[list[Group], int]:
    """Everyone, each value of each column, and each combination of which at least `least` people
    were rejected; and how many combinations have somebody, but fewer."""
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
                    continue  # nobody, or the very people of another group
                seen.add(members.tobytes())
                if (members & rejected).sum() < least:
                    small += 1
                else:
                    found.append(Group(where, members))
    return found, small


def _levels(column: pd.Series) -> dict[str, np.ndarray]:
    """Each value in words, in order, with who has it. Who has none is a group of its own."""
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


def _in_words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
