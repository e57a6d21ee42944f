"""Tables of other packages: polars, pyarrow and whatever narwhals knows, and arrays with a schema.

The library works on pandas. A public verb reads any table with `to_pandas`, and what it returns is
put back in the kind that it was given with `like` or `in_place`. A model is shown the kind that
`fit` was given, which `kind_of` names and `in_kind` makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError, counted

if TYPE_CHECKING:
    from genrecourse.table.schema import Schema

PANDAS = "pandas"
ARRAY = "array"  # its kind has the dtype, too: "array/float64"
COLUMNS = ("polars", "pyarrow")  # frames that are made column by column
FRAMES = ("cudf", "modin", "polars", "pyarrow")  # frames in memory that narwhals knows
DTYPES = ("bool", "object", "str", *(f"float{bits}" for bits in (16, 32, 64)))
DTYPES += tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
GIVE = "give a pandas or polars DataFrame, or a pyarrow Table"


# ---- which kind ---------------------------------------------------------------------------------


def kind_of(X: Any) -> str:
    """Return the name of the kind of a table: "pandas", "polars", "pyarrow" or "array/float64".

    >>> kind_of(pd.DataFrame({"age": [30]})), kind_of(np.zeros((1, 2)))
    ('pandas', 'array/float64')
    """
    if isinstance(X, pd.DataFrame):
        return PANDAS
    if isinstance(X, np.ndarray):
        _check_shape(X)
        return f"{ARRAY}/{'str' if X.dtype.kind == 'U' else X.dtype.name}"
    return str(_read(X).implementation.value)


def check_kind(kind: Any, where: str) -> str:
    """Return the name of a kind. Raises UserError if there is no such kind.

    >>> check_kind("polars", "the model file")
    'polars'
    """
    if kind in (PANDAS, *FRAMES, *(f"{ARRAY}/{dtype}" for dtype in DTYPES)):
        return str(kind)
    raise UserError(f"{where} names no kind of table that this version knows; fit the model again")


# ---- into pandas --------------------------------------------------------------------------------


def to_pandas(X: Any, schema: Schema | Sequence[str] | None = None) -> pd.DataFrame:
    """Return a table as a pandas DataFrame; one that is a pandas DataFrame already as it is.

    schema: names the columns of an array, which has as many columns; or their names alone. Rows of
    a table without an index are numbered from 0. Raises UserError if X is no table.

    >>> to_pandas(pd.DataFrame({"age": [30]}, index=["Ann"])).index.tolist()
    ['Ann']
    >>> import polars as pl
    >>> to_pandas(pl.DataFrame({"age": [30, None]}))["age"].dtype
    Int64Dtype()
    """
    if isinstance(X, pd.DataFrame):
        return X
    if isinstance(X, np.ndarray):
        return _from_array(X, schema)
    frame = _read(X)
    if frame.implementation.is_pandas_like():
        found: pd.DataFrame = frame.to_pandas()
        return found
    # the index is given for a table without columns
    columns = {name: _from_series(frame[name]) for name in frame.columns}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(frame)))


def rows_of(X: Any, start: int, stop: int) -> Any:
    """Return some rows of a table of any kind.

    >>> rows_of(np.arange(4).reshape(4, 1), 1, 3).tolist()
    [[1], [2]]
    """
    if hasattr(X, "iloc"):
        return X.iloc[start:stop]
    return X.slice(start, stop - start) if hasattr(X, "slice") else X[start:stop].copy()


def split_off(X: Any, name: str | None) -> tuple[Any, Any]:
    """Return a frame of another package without a column, and the column; None if it has none.

    >>> import polars as pl
    >>> rest, found = split_off(pl.DataFrame({"age": [30], "risk": ["good"]}), "risk")
    >>> rest.columns, found.to_list()
    (['age'], ['good'])
    """
    frame = _read(X)
    if name is None or name not in frame.columns:
        return X, None
    return frame.drop(name).to_native(), frame[name].to_native()


def outcomes(y: Any) -> Any:
    """Return outcomes as an array if a package other than pandas and numpy holds them.

    >>> import polars as pl
    >>> outcomes(pl.Series(["good", "bad"])).tolist()
    ['good', 'bad']
    """
    known = y is None or isinstance(y, pd.Series | pd.DataFrame | np.ndarray | list | tuple)
    return y if known or not hasattr(y, "__array__") else np.asarray(y)


def _read(X: Any) -> Any:
    """Return a table of another package as narwhals reads it. Raises UserError for anything else.

    narwhals is imported only when it is needed.
    """
    import narwhals.stable.v2 as nw

    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
    except Exception as error:  # a table with two columns of one name, for example
        names = list(getattr(X, "column_names", ()))
        twice = sorted({name for name in names if names.count(name) > 1})
        text = f"more than one column is named {twice}; rename or drop one"
        text = text if twice else " ".join(str(error).split())
        raise UserError(f"the {type(X).__name__} cannot be read: {text}") from None
    if isinstance(frame, nw.LazyFrame):
        raise UserError(
            f"a {type(X).__module__.partition('.')[0]} {type(X).__name__} holds no rows yet; "
            "collect them first, for example with X.collect() of polars"
        )
    if isinstance(frame, nw.Series):
        raise UserError(
            f"expected a table, got a {type(X).__name__}, which is one column or one row; {GIVE}: "
            "X.head(1) is a table of one person"
        )
    if not isinstance(frame, nw.DataFrame):
        raise UserError(f"expected a table, got {type(X).__name__}; {GIVE}{_hint(X)}")
    return frame


def _hint(X: Any) -> str:
    if isinstance(X, list | tuple | dict):
        return ", for example pandas.DataFrame(X)"
    if hasattr(X, "toarray"):  # scipy's sparse matrices
        return ", or X.toarray() with a schema"
    return ""


def _from_series(column: Any) -> pd.Series:
    """Return a column that narwhals reads; without missing cells it has a dtype of numpy's."""
    import narwhals.stable.v2 as nw

    dtype, gone = column.dtype, column.is_null().to_numpy()
    if dtype in (nw.Categorical, nw.Enum):
        return _from_category(column)
    if dtype == nw.String:
        return pd.Series(column.to_list(), dtype=None if len(gone) > gone.sum() else object)
    if (dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128)) or dtype == nw.Boolean:
        if not gone.any():
            return pd.Series(column.to_numpy().copy())
        cells = column.fill_null(value=False if dtype == nw.Boolean else 0).to_numpy()
        array = pd.arrays.BooleanArray if dtype == nw.Boolean else pd.arrays.IntegerArray
        return pd.Series(array(cells.copy(), gone.copy()))
    if dtype.is_float():
        found = pd.Series(column.to_numpy().copy())  # NaN where nothing is
        single = found.dtype != np.float64
        return found.astype("Float32" if single else "Float64") if gone.any() else found
    if dtype in (nw.Date, nw.Datetime, nw.Duration):
        return pd.Series(column.to_numpy())
    return pd.Series(column.to_list(), dtype=object)


def _from_category(column: Any) -> pd.Series:
    """Return a column of levels. An Enum has an order; other levels are put in that of the text."""
    levels = getattr(column.dtype, "categories", None)  # of an Enum
    if getattr(getattr(column.to_native(), "type", None), "ordered", False):  # of pyarrow
        levels = column.cat.get_categories().to_list()
    return pd.Series(pd.Categorical(column.to_list(), levels, ordered=levels is not None))


def _from_array(X: np.ndarray, schema: Schema | Sequence[str] | None) -> pd.DataFrame:
    _check_shape(X)
    if schema is None:
        raise UserError(
            f"an array has no names of columns; give a schema with {counted(X.shape[1], 'column')} "
            f"as well, or {GIVE.removeprefix('give ')}"
        )
    names = list(getattr(schema, "columns", schema))
    if X.shape[1] != len(names):
        raise UserError(
            f"the array has {counted(X.shape[1], 'column')}, but the schema has {len(names)}; the "
            f"columns of an array are those of the schema, in its order: {names}"
        )
    if X.dtype.kind in "OU":
        columns = [_inferred(pd.Series(cells, dtype=object)) for cells in X.T]
    else:
        columns = [pd.Series(cells) for cells in X.T]
    table = dict(zip(names, columns, strict=True))
    for feature in getattr(schema, "features", ()):
        if not feature.one_hot and set(map(type, feature.categories)) == {bool}:
            table[feature.name] = _as_flags(table[feature.name])
    return pd.DataFrame(table, index=pd.RangeIndex(len(X)))


def _check_shape(X: np.ndarray) -> None:
    if X.ndim != 2:
        raise UserError(
            f"an array of shape {X.shape} is no table; give one row for each person and one column "
            "for each column of the schema"
        )


def _inferred(column: pd.Series) -> pd.Series:
    """Return a column of objects as numbers or truth values, if it holds nothing else."""
    found = column.where(column.notna(), np.nan).infer_objects()
    return found if isinstance(found.dtype, np.dtype) and found.dtype.kind in "biuf" else column


def _as_flags(column: pd.Series) -> pd.Series:
    """Return a column of 0 and 1 as truth values: an array of numbers has no others."""
    if column.dtype.kind not in "iuf" or not column.dropna().isin([0, 1]).all():
        return column
    return column.astype("boolean" if column.isna().any() else bool)


# ---- back ---------------------------------------------------------------------------------------


def in_kind(table: pd.DataFrame, kind: str) -> Any:
    """Return a pandas table as one of another kind.

    >>> in_kind(pd.DataFrame({"age": [30, 41]}), "array/float64")
    array([[30.],
           [41.]])
    """
    if kind == PANDAS:
        return table
    family, _, dtype = kind.partition("/")
    if family == ARRAY:
        return _array(table, np.dtype(dtype))
    made = {name: table[name] for name in table.columns}
    if family in COLUMNS:
        made = {name: _column(column, family) for name, column in made.items()}
    if family == "pyarrow":
        return _package("pyarrow").table(made)
    return _package("modin.pandas" if family == "modin" else family).DataFrame(made)


def like(table: pd.DataFrame, given: Any, read: pd.DataFrame) -> Any:
    """Return a table in the kind of the one that was given, with its types of columns.

    read: what `to_pandas` made of the given table. A column keeps another type where the given one
    cannot hold its cells.

    >>> import polars as pl
    >>> given = pl.DataFrame({"age": pl.Series([30, 41], dtype=pl.Int16)})
    >>> table = pd.DataFrame({"age": [30, 50]}, dtype="int16")
    >>> dict(like(table, given, to_pandas(given)).schema)
    {'age': Int16}
    """
    kind = kind_of(given)
    if kind not in COLUMNS:
        return _whole(table, given)
    made = {name: _column_like(table[name], given, read) for name in table.columns}
    return _package("pyarrow").table(made) if kind == "pyarrow" else type(given)(made)


def in_place(table: pd.DataFrame, given: Any, read: pd.DataFrame, known: Iterable[str]) -> Any:
    """Return the given table with the columns of `table` that differ from those of `read`.

    known: the columns that may differ. All others, and all that `table` has besides, are as they
    are. read: what `to_pandas` made of the given table.

    >>> import polars as pl
    >>> given = pl.DataFrame({"id": ["a"], "age": [30]})
    >>> found = in_place(pd.DataFrame({"id": ["a"], "age": [41]}), given, to_pandas(given), ["age"])
    >>> found.to_dicts()
    [{'id': 'a', 'age': 41}]
    """
    kind = kind_of(given)
    if kind not in COLUMNS:
        return _whole(table, given)
    new = [name for name in table.columns if name not in read.columns]
    changed = [name for name in known if not table[name].equals(read[name])]
    columns = {name: _column_like(table[name], given, read) for name in (*changed, *new)}
    if kind == "polars":
        return given.with_columns(**columns)
    for name in changed:
        given = given.set_column(given.column_names.index(name), name, columns[name])
    for name in new:
        given = given.append_column(name, columns[name])
    return given


def _whole(table: pd.DataFrame, given: Any) -> Any:
    """Return a table in the kind of the given one: an array, or a frame with an index."""
    if isinstance(given, pd.DataFrame):
        return table
    return _array(table, given.dtype) if isinstance(given, np.ndarray) else type(given)(table)


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        family = name.partition(".")[0]
        raise UserError(
            f"the model was fitted on a table of {family}, which its classifier is shown; install "
            f"{family}"
        ) from None


def _array(table: pd.DataFrame, dtype: np.dtype[Any]) -> np.ndarray:
    """Return a table as an array of this dtype, or of a wider one if this cannot hold a cell."""
    if dtype.kind in "OU":
        found = table.to_numpy(dtype=object)
        return found.astype(str) if dtype.kind == "U" and not table.isna().any(axis=None) else found
    if all(column == dtype for column in table.dtypes):
        return table.to_numpy()
    found = table.to_numpy(dtype=np.float64, na_value=np.nan)
    if dtype.kind in "biu" and not np.isfinite(found).all():
        return found
    narrow = found.astype(dtype)
    return narrow if np.array_equal(narrow.astype(np.float64), found, equal_nan=True) else found


def _column_like(column: pd.Series, given: Any, read: pd.DataFrame) -> Any:
    """Return a column for the given table, in the type that it has there if that holds the cells.

    read: what `to_pandas` made of the given table.
    """
    family = kind_of(given)
    if column.name not in read.columns:
        return _column(column, family)
    own, before = given[str(column.name)], read[str(column.name)]
    if column.dtype == np.float64 and pd.api.types.is_integer_dtype(before.dtype):
        # a number that a plan makes "missing" is null here, where pandas needs another dtype
        whole = (column.dropna() % 1 == 0).all()
        column = column.astype("Int64") if whole else column.astype("Float64")
    elif column.dtype == np.float64 and not before.isna().any():
        column = column.astype("Float64")
    made = _column(column, family)
    if not _may_hold(before.dtype, column.dtype):
        return made
    try:
        return made.cast(own.type if family == "pyarrow" else own.dtype)
    except Exception:  # a number that is too large for it, or another level than those of an Enum
        return made


def _column(column: pd.Series, family: str) -> Any:
    """Return a pandas column as one of polars or pyarrow, in the type that its dtype stands for.

    A missing cell is null, or NaN where pandas' dtype is one of numpy's floats.
    """
    library, gone = _package(family), column.isna().to_numpy()
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _category(column, family)
    cells: Any = column.to_numpy()
    if not pd.api.types.is_numeric_dtype(dtype):  # which bool is
        cells = [None if lost else cell for cell, lost in zip(column.tolist(), gone, strict=True)]
    elif not isinstance(dtype, np.dtype):
        cells = column.to_numpy(dtype=dtype.numpy_dtype, na_value=0)
        if family == "pyarrow":
            return library.array(cells, mask=gone)
        return library.Series(cells).set(library.Series(gone), None)
    return library.array(cells) if family == "pyarrow" else library.Series(cells)


def _category(column: pd.Series, family: str) -> Any:
    """Return a column of levels; levels with an order are an Enum in polars."""
    library, levels = _package(family), column.cat.categories.tolist()
    codes, ordered = column.cat.codes.to_numpy(), bool(column.cat.ordered)
    if family == "pyarrow":
        places = library.array(codes, mask=codes < 0)
        return library.DictionaryArray.from_arrays(places, library.array(levels), ordered=ordered)
    cells = [None if code < 0 else levels[code] for code in codes]
    return library.Series(cells, dtype=library.Enum(levels) if ordered else library.Categorical)


def _may_hold(own: Any, dtype: Any) -> bool:
    """Return whether a column of a dtype of its own may hold cells of another one unchanged."""
    is_whole = pd.api.types.is_integer_dtype
    if is_whole(own) and is_whole(dtype):
        return True
    return str(own.name).lower() == str(dtype.name).lower()
