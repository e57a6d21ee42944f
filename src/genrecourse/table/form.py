"""TableForm: the form of the table that a model was fitted on, in which it is asked about others.

A model may read columns by position, or the numbers of a category's levels, or refuse a column of
another dtype. People's tables come from other files, and rows that a search makes up have no table,
so every table is put in the form of the one that `fit` was given before a model sees it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError
from genrecourse.table.frames import PANDAS


class TableForm:
    """The columns of a table, in their order, with their dtypes and what stands for "missing".

    A cell never gets another value: a column that cannot be put in its dtype so keeps its own.

    like: some rows of the table. kind: of the table itself, which a model is shown (`frames`).

    >>> form = TableForm(pd.DataFrame({"age": [30, 41], "job": ["cook", None]}))
    >>> form.put(pd.DataFrame({"job": ["cook"], "age": [50.0]}, index=["Ann"]))
       age   job
    0   50  cook
    >>> form.put(pd.DataFrame({"job": ["cook"], "age": [50.5]}))["age"].tolist()
    [50.5]
    """

    def __init__(self, like: pd.DataFrame, kind: str = PANDAS):
        self.kind = kind
        self.dtypes = {name: like[name].dtype for name in like.columns}
        self.gaps = {name: _gap(like[name]) for name in like.columns}

    def put(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return a table in this form, as a copy with the rows numbered from 0."""
        absent = [name for name in self.dtypes if name not in X.columns]
        if absent:
            raise UserError(
                f"the table lacks the column(s) {absent}, which the classifier was fitted on; it "
                f"has {list(X.columns)}"
            )
        own = numbered(X[list(self.dtypes)])
        for name, dtype in self.dtypes.items():
            column = own[name]
            if not _is_same(column.dtype, dtype):
                own[name] = column = _cast(column, dtype)
            if column.dtype == object and column.isna().any():
                own[name] = column.where(column.notna(), self.gaps[name])
        return own


def numbered(X: pd.DataFrame) -> pd.DataFrame:
    """Return a copy of a table with its rows numbered from 0.

    >>> numbered(pd.DataFrame({"age": [30, 41]}, index=["Ann", "Ann"])).index.tolist()
    [0, 1]
    """
    own = X.copy()
    own.index = pd.RangeIndex(len(own))
    return own


def _gap(column: pd.Series) -> Any:
    """Return what stands for a missing cell in a column of objects."""
    gone = column[column.isna()] if column.dtype == object else column.iloc[:0]
    return gone.iloc[0] if len(gone) else np.nan


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two dtypes are equal; of categories, also in the order of their levels."""
    if not isinstance(one, pd.CategoricalDtype) or not isinstance(other, pd.CategoricalDtype):
        return bool(one == other)
    return one.ordered == other.ordered and list(one.categories) == list(other.categories)


def _cast(column: pd.Series, dtype: Any) -> pd.Series:
    """Return a column in a dtype, or as it is if a cell would get another value."""
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = _with_levels(dtype, column)
    try:
        made = column.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return column
    cells, before = made.astype(object), column.astype(object)
    kept = (cells == before) | (cells.isna() & before.isna())
    return made if kept.all() else column


def _with_levels(dtype: pd.CategoricalDtype, column: pd.Series) -> pd.CategoricalDtype:
    """Return the dtype with the levels of the column that it lacks; they come last."""
    known = list(dtype.categories)
    new = [level for level in column.dropna().unique() if level not in known]
    return pd.CategoricalDtype([*known, *new], ordered=dtype.ordered) if new else dtype
