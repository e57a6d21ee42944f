"""split_table: rows to learn from, and rows of other people to audit."""

from __future__ import annotations

import numpy as np
import pandas as pd

from genrecourse.errors import UserError, counted, did_you_mean


def split_table(
    table: pd.DataFrame,
    *,
    share: float = 0.25,
    target: str | None = None,
    together: str | None = None,
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows to learn from and the rows to hold out, each in the order of the table.

    share: of the rows that are held out. target: each outcome keeps its share in both parts.
    together: rows with the same value in this column, such as a customer's number, go to the same
    part. Rows that are alike in every column stay together, too: a person who is in both parts
    would be judged by a model that knows them.

    >>> table = pd.DataFrame({"income": range(80), "paid": [0] * 60 + [1] * 20})
    >>> rest, held = split_table(table, target="paid")
    >>> len(rest), len(held), int(held["paid"].sum())
    (60, 20, 5)
    """
    if not 0 < share < 1:
        raise UserError(f"the share is {share:g}; it must be between 0 and 1, such as 0.25")
    for name in (target, together):
        if name is not None and name not in table.columns:
            close, has = did_you_mean(name, table.columns), list(table.columns)
            raise UserError(f"no column '{name}'{close} in the table; it has {has}")
    if together is None:
        group = table.groupby(list(table.columns), dropna=False, sort=False).ngroup()
    else:
        group = table.groupby(together, dropna=False, sort=False).ngroup()
    stratum = None if target is None else table[target]
    held = _held(group.to_numpy(), stratum, share, np.random.default_rng([seed, 6]))
    if held.all() or not held.any():
        raise UserError(
            f"a share of {share:g} of {counted(len(table), 'row')} in "
            f"{counted(group.nunique(), 'group')} leaves one part empty; choose another share, or "
            "give more rows"
        )
    return table[~held], table[held]


def _held(
    group: np.ndarray, stratum: pd.Series | None, share: float, rng: np.random.Generator
) -> np.ndarray:
    """Return (n,) booleans: the row is held out. Groups stay whole, by the outcome of the first."""
    labels, first, sizes = np.unique(group, return_index=True, return_counts=True)
    kinds = np.zeros(len(labels), dtype=int)
    if stratum is not None:
        kinds = pd.factorize(stratum.iloc[first])[0]
    chosen = []
    for kind in np.unique(kinds):
        mine = rng.permutation(np.flatnonzero(kinds == kind))
        wanted = share * sizes[mine].sum()
        before = np.cumsum(sizes[mine]) - sizes[mine]
        chosen.append(labels[mine[before + sizes[mine] / 2 <= wanted]])
    return np.isin(group, np.concatenate(chosen))
