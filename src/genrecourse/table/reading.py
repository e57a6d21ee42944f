"""Which rows of a table can be read, and why the others cannot.

A table of people is read in one pass over its columns (`TableEncoder.features`). Only if that fails
is each cell of the columns that failed looked at. A row with a bad cell is left out, with a `Fault`
that says why, and the other rows are read as if it were not in the table.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError, counted, shown, stacklevel_of_caller
from genrecourse.table.encoding import kind_of_level, mixes_kinds, read_column
from genrecourse.table.faults import Fault
from genrecourse.table.schema import Feature, Schema, check_table, plain

NAMED = 5  # columns or categories that a message names
WHOLE = range(-(2**63), 2**63)  # whole numbers that a column of numbers can hold


# ---- columns ---------------------------------------------------------------------------------


def known_columns(schema: Schema, X: pd.DataFrame, where: str = "the table") -> pd.DataFrame:
    """Return a table of people without the columns that the schema does not know, with a warning.

    The table may have no rows. Raises UserError if it is no table or lacks a column.

    >>> schema = Schema.infer(pd.DataFrame({"age": [30, 41]}))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     list(known_columns(schema, pd.DataFrame({"id": ["a"], "age": [30]})).columns)
    ['age']
    >>> str(caught[0].message)
    "the table has 1 column that the model does not read, which is ignored: 'id'"
    """
    check_table(X, may_be_empty=True)
    schema.check_columns(X, where)
    known = set(schema.columns)
    extra = [name for name in X.columns if name not in known]
    if not extra:
        return X
    ignored = "is" if len(extra) == 1 else "are"
    warnings.warn(
        f"{where} has {counted(len(extra), 'column')} that the model does not read, which "
        f"{ignored} ignored: {_some([shown(name) for name in extra])}",
        stacklevel=stacklevel_of_caller(),
    )
    return X[[name for name in X.columns if name in known]]


def _some(names: list[str]) -> str:
    rest = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + rest


# ---- cells -----------------------------------------------------------------------------------


def faults_in(schema: Schema, X: pd.DataFrame) -> dict[int, Fault]:
    """Return why rows of X cannot be read, by their place in X; the first fault of each row.

    >>> X = pd.DataFrame({"age": [30, 41], "job": ["cook", "nurse"]})
    >>> odd = pd.DataFrame({"age": [30, "old", 41.5], "job": ["cook", "cook", "pilot"]})
    >>> {row: (fault.code, fault.value) for row, fault in faults_in(Schema.infer(X), odd).items()}
    {1: ('wrong-type', "'old'"), 2: ('unseen-category', "'pilot'")}
    """
    found: dict[int, Fault] = {}
    for feature in schema:
        if not _is_right(feature, X):
            for row, fault in _faults(feature, X):
                found.setdefault(row, fault)
    return dict(sorted(found.items()))


def settled(schema: Schema, X: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """Return rows without a fault, with the dtypes that their columns have without the others.

    One text makes a column of numbers a column of objects. like: a table that lends its dtypes.

    >>> X = pd.DataFrame({"age": [30, 41]})
    >>> settled(Schema.infer(X), pd.DataFrame({"age": [30, "old"]}).head(1), X)["age"].dtype
    dtype('int64')
    """
    changed = {
        name: _inferred(X[name], feature, like[name].dtype)
        for feature in schema
        for name in feature.stored_in
        if X[name].dtype == object
    }
    return X.assign(**changed) if changed else X


def _inferred(column: pd.Series, feature: Feature, dtype: Any) -> pd.Series:
    """Return a column of objects as numbers or truth values, if it holds nothing else."""
    found = column.where(column.notna(), np.nan).infer_objects()
    if feature.is_category:
        return found if found.dtype.kind in "biuf" and found.dtype != object else column
    if found.dtype == object and len(found) and found.notna().any():
        found = found.astype(np.float64)  # of numpy's long numbers
    single = found.dtype == np.float64 and dtype == np.float32
    return found.astype(np.float32) if single else found


def _is_right(feature: Feature, X: pd.DataFrame) -> bool:
    try:
        read_column(feature, feature.values(X))
    except UserError:
        return False
    return True


def _faults(feature: Feature, X: pd.DataFrame) -> Iterator[tuple[int, Fault]]:
    """Yield the faults of one feature, with their rows."""
    if feature.one_hot:
        for place in np.flatnonzero(feature.not_one_hot(X)).tolist():
            cells = {name: plain(X[name].iloc[place]) for name in feature.one_hot}
            yield place, Fault("not-one-hot", feature.name, shown(cells))
        return
    column = X[feature.name]
    gone = column.isna().to_numpy()
    look = _category_code(feature) if feature.is_category else _number_code(column)
    known = _some([shown(level) for level in feature.categories])
    for row, value in enumerate(column.tolist()):
        if gone[row]:
            code = "" if feature.missing else "missing"
        else:
            code = look(value)
        if code:
            yield row, Fault(code, feature.name, shown(plain(value)), known)


def _category_code(feature: Feature) -> Callable[[Any], str]:
    """Return a function that says what is wrong with a cell of a category; "" if nothing is."""
    # among levels of several kinds, 1 and True are one level
    kind = (lambda value: "") if mixes_kinds(feature) else kind_of_level
    known = {(kind(level), level) for level in feature.categories}

    def code(value: Any) -> str:
        value = plain(value)
        try:
            return "" if (kind(value), value) in known else "unseen-category"
        except Exception:  # a list, or an object that cannot be compared
            return "unseen-category"

    return code


def _number_code(column: pd.Series) -> Callable[[Any], str]:
    """Return a function that says what is wrong with a cell of a number; "" if nothing is."""
    types, dtype = pd.api.types, column.dtype
    is_object = types.is_object_dtype(dtype)
    is_odd = types.is_bool_dtype(dtype) or types.is_complex_dtype(dtype)
    if not is_object and (is_odd or not types.is_numeric_dtype(dtype)):
        return lambda value: "wrong-type"

    def code(value: Any) -> str:
        if isinstance(value, bool | np.bool_):
            return "wrong-type"
        if isinstance(value, int | np.integer):
            return "" if int(value) in WHOLE or not is_object else "too-large"
        if isinstance(value, float | np.floating):
            return "not-finite" if math.isinf(float(value)) else ""
        return "wrong-type"

    return code
