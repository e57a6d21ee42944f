"""The columns of a user's table: which to leave out, and which outcomes are favourable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from genrecourse.errors import UserError, did_you_mean
from genrecourse.table.schema import plain


def without_columns(table: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the table without some columns, which must be there; others must be left.

    >>> table = pd.DataFrame({"id": [1, 2], "income": [10.0, 20.0]})
    >>> list(without_columns(table, ["id"]).columns)
    ['income']
    """
    unknown = [name for name in names if name not in table.columns]
    if unknown:
        close = did_you_mean(unknown[0], table.columns)
        raise UserError(f"no column {unknown}{close} in the table; it has {list(table.columns)}")
    rest = table.drop(columns=list(names))
    if rest.shape[1] == 0:
        raise UserError(f"no column is left besides {list(names)}")
    return rest


def outcomes(table: pd.DataFrame, target: str) -> pd.Series:
    """Return the column of outcomes, which must be complete and have two values or more.

    >>> table = pd.DataFrame({"income": [10.0, 20.0], "repaid": ["no", "yes"]})
    >>> outcomes(table, "repaid").tolist()
    ['no', 'yes']
    """
    if target not in table.columns:
        close = did_you_mean(target, table.columns)
        raise UserError(f"no target column '{target}'{close}; the table has {list(table.columns)}")
    y = table[target]
    if y.isna().any():
        raise UserError(
            f"the target '{target}' is missing in {int(y.isna().sum())} of {len(y):,} rows (first: "
            f"row {int(y.isna().to_numpy().argmax())}); drop those rows"
        )
    if y.nunique() < 2:
        raise UserError(
            f"the target '{target}' is {plain(y.iloc[0])!r} in all {len(y):,} rows; give a table "
            "with people of both outcomes"
        )
    return y


def as_seen(given: list[Any], y: pd.Series) -> Any:
    """Return the outcomes that are given, maybe as text, as the table has them; None: none is.

    >>> as_seen(["1"], pd.Series([0, 1, 1]))
    1
    """
    if not given:
        return None
    seen = {str(plain(value)): plain(value) for value in y.unique()}
    names = [str(plain(value)) for value in given]
    unknown = [name for name in names if name not in seen]
    if unknown:
        close = did_you_mean(unknown[0], seen)
        raise UserError(
            f"the favourable outcome '{unknown[0]}'{close} does not occur in '{y.name}', which has "
            f"{sorted(seen)[:10]}"
        )
    return seen[names[0]] if len(names) == 1 else {seen[name] for name in names}
