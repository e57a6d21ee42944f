"""Cells from anywhere as the fitted table has them: text of a CSV, floats of an engine with gaps.

An engine hands the same people over in different dtypes: a column of whole numbers is text in a
CSV, int64 in a Parquet file, and float64 after Spark has moved a batch with a gap. Each row is
therefore turned into the fitted dtypes by itself, whatever rows stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.errors import shown
from genrecourse.table.schema import plain

if TYPE_CHECKING:
    from genrecourse.table.schema import Schema

WHOLE = 2.0**53  # from here on, a float does not hold every whole number
TRUE, FALSE = ("true", "1", "1.0"), ("false", "0", "0.0")


def read_cells(
    X: pd.DataFrame, schema: Schema, like: pd.DataFrame
) -> tuple[pd.DataFrame, dict[int, str]]:
    """Return the schema's columns of X with cells that the schema knows, and what is wrong.

    like: a row of the fitted table, for its dtypes. The dict has a sentence for each place of X
    whose cells cannot be read; these cells are missing in the table.

    >>> from genrecourse.table.schema import Schema
    >>> fitted = pd.DataFrame({"age": [30, 41], "job": ["cook", "nurse"]})
    >>> people = pd.DataFrame({"age": ["35", "old"], "job": ["cook", "cook"]})
    >>> table, wrong = read_cells(people, Schema.infer(fitted), fitted)
    >>> table["age"].tolist(), wrong
    ([35.0, nan], {1: "column 'age' has 'old', which is not a number"})
    """
    wrong: dict[int, str] = {}
    levels = {
        column: feature.categories
        for feature in schema
        if feature.is_category and not feature.one_hot
        for column in feature.stored_in
    }
    columns: dict[str, pd.Series] = {}
    for name in schema.columns:
        column, dtype = X[name], like[name].dtype
        if name in levels and not pd.api.types.is_numeric_dtype(column.dtype):
            columns[name] = _levels(column, levels[name])
        elif pd.api.types.is_numeric_dtype(dtype) and not _is_bool(dtype):
            columns[name] = _numbers(column, wrong)
        else:
            columns[name] = _levels(column, (True, False)) if _is_bool(dtype) else column
    return pd.DataFrame(columns, index=X.index), wrong


def as_fitted(
    X: pd.DataFrame, like: pd.DataFrame, places: np.ndarray
) -> Iterator[tuple[np.ndarray, pd.DataFrame]]:
    """Yield these places of X in the dtypes of the fitted table.

    Rows with a number that a whole column cannot hold, such as 2.5, come in a table of their own,
    in which all numbers are floats: a row's dtypes do not depend on the rows beside it.

    >>> fitted = pd.DataFrame({"age": [30, 41]})
    >>> found = as_fitted(pd.DataFrame({"age": [35.0, 2.5, 36.0]}), fitted, np.arange(3))
    >>> [(places.tolist(), table["age"].tolist()) for places, table in found]
    [([0, 2], [35, 36]), ([1], [2.5])]
    """
    rows = X.iloc[places]
    whole = [name for name in like.columns if _is_whole(like[name].dtype)]
    fits = np.ones(len(rows), dtype=bool)
    for name in whole:
        fits &= _fits(rows[name])
    for which, dtypes in (
        (fits, like.dtypes.to_dict()),
        (~fits, like.dtypes.to_dict() | dict.fromkeys(whole, np.dtype("float64"))),
    ):
        if which.any():
            yield places[which], _cast(rows[which], dtypes)


def _cast(rows: pd.DataFrame, dtypes: dict[Any, Any]) -> pd.DataFrame:
    return pd.DataFrame(
        {name: _in_dtype(rows[name], dtype) for name, dtype in dtypes.items()}, index=rows.index
    )


def _in_dtype(column: pd.Series, dtype: Any) -> pd.Series:
    if isinstance(dtype, pd.CategoricalDtype):
        # a level that the fitted column did not have, but the schema knows, must not become a gap
        more = [v for v in column.dropna().unique() if v not in dtype.categories]
        dtype = pd.CategoricalDtype([*dtype.categories, *more], dtype.ordered)
    if isinstance(dtype, np.dtype) and dtype.kind == "b" and column.isna().any():
        dtype = np.dtype(object)
    return column.astype(dtype)


def _is_bool(dtype: Any) -> bool:
    return bool(pd.api.types.is_bool_dtype(dtype))


def _is_whole(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "iu"


def _fits(column: pd.Series) -> np.ndarray:
    """Return (n,) booleans: an int64 holds the number."""
    if _is_whole(column.dtype):
        return np.ones(len(column), dtype=bool)
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray((values == np.floor(values)) & (np.abs(values) < WHOLE))


def _numbers(column: pd.Series, wrong: dict[int, str]) -> pd.Series:
    """Return a column of numbers; what is none becomes missing, and is named in `wrong`."""
    if pd.api.types.is_numeric_dtype(column.dtype) and not _is_bool(column.dtype):
        return column
    is_flag = np.array([isinstance(cell, bool | np.bool_) for cell in column])
    found = pd.to_numeric(column.astype(object).where(~is_flag), errors="coerce").astype("float64")
    for place in np.flatnonzero(found.isna().to_numpy() & column.notna().to_numpy()):
        cell = shown(plain(column.iloc[place]))
        wrong.setdefault(int(place), f"column '{column.name}' has {cell}, which is not a number")
    return found


def _levels(column: pd.Series, levels: tuple[Any, ...]) -> pd.Series:
    """Return a column with each text that is how a level is written as that level."""
    written: dict[str, Any] = {str(level): level for level in levels}
    if set(levels) == {True, False}:
        written |= dict.fromkeys(TRUE, True) | dict.fromkeys(FALSE, False)
    if all(isinstance(level, str) for level in levels):
        return column
    cells = [
        written.get(cell, written.get(cell.lower(), cell)) if isinstance(cell, str) else cell
        for cell in column
    ]
    return pd.Series(cells, index=column.index, name=column.name, dtype=object)
