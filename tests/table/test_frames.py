"""frames: tables of other packages are read exactly, come back in their types, or are refused."""

from __future__ import annotations

import datetime
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from genrecourse import Schema, UserError, discover_relations
from genrecourse.table import frames
from genrecourse.table.frames import check_kind, in_kind, in_place, kind_of, like, to_pandas

ENUM = pl.Enum(["low", "mid", "high"])
# polars column, the dtype that pandas gets
COLUMNS: dict[str, tuple[pl.Series, str]] = {
    "whole": (pl.Series([3, 1, 2]), "int64"),
    "small": (pl.Series([3, 1, 2], dtype=pl.Int8), "int8"),
    "whole with nulls": (pl.Series([3, None, 2], dtype=pl.UInt16), "UInt16"),
    "huge": (pl.Series([2**62 + 1, None, 2]), "Int64"),
    "real": (pl.Series([0.5, 1.5, 2.0]), "float64"),
    "single": (pl.Series([0.1, 1.5, 2.0], dtype=pl.Float32), "float32"),
    "real with nulls": (pl.Series([0.5, None, 2.0]), "Float64"),
    "real with NaN": (pl.Series([0.5, float("nan"), 2.0]), "float64"),
    "flag": (pl.Series([True, False, True]), "bool"),
    "flag with nulls": (pl.Series([True, None, False]), "boolean"),
    "text": (pl.Series(["b", "a", "b"]), str(pd.Series(["b"]).dtype)),
    "text with nulls": (pl.Series(["b", None, "a"]), str(pd.Series(["b"]).dtype)),
    "levels": (pl.Series(["b", None, "a"], dtype=pl.Categorical), "category"),
    "Enum": (pl.Series(["high", None, "low"], dtype=ENUM), "category"),
}


def table(name: str, package: str) -> Any:
    found = pl.DataFrame({name: COLUMNS[name][0]})
    return found if package == "polars" else found.to_arrow()


def same(one: Any, other: Any) -> bool:
    """Whether two frames have equal types and cells; NaN equals NaN, and is not null."""
    if isinstance(one, pa.Table):
        return one.schema == other.schema and repr(one.to_pydict()) == repr(other.to_pydict())
    return one.schema == other.schema and one.equals(other)


@pytest.mark.parametrize("package", ["polars", "pyarrow"])
@pytest.mark.parametrize("name", list(COLUMNS))
def test_every_type_of_column_goes_there_and_back(name: str, package: str) -> None:
    given = table(name, package)
    read = to_pandas(given)
    assert str(read[name].dtype) == COLUMNS[name][1]
    cells = [None if pd.isna(cell) else cell for cell in read[name].tolist()]
    assert cells == [None if cell != cell else cell for cell in COLUMNS[name][0].to_list()]
    assert same(like(read, given, read), given)
    shown = in_kind(read, package)  # to a model
    pd.testing.assert_frame_equal(to_pandas(shown), read)
    assert package != "polars" or same(shown, given)


def to_polars(found: Any) -> pl.DataFrame:
    made = found if isinstance(found, pl.DataFrame) else pl.from_arrow(found)
    assert isinstance(made, pl.DataFrame)
    return made


def test_an_enum_has_an_order_and_other_levels_that_of_the_text() -> None:
    order = to_pandas(table("Enum", "polars"))["Enum"].cat
    assert (list(order.categories), order.ordered) == (["low", "mid", "high"], True)
    none = to_pandas(table("levels", "polars"))["levels"].cat
    assert (list(none.categories), none.ordered) == (["a", "b"], False)


def test_a_column_that_cannot_hold_a_cell_gets_a_wider_type() -> None:
    given = pl.DataFrame({"n": pl.Series([3, 1], dtype=pl.Int8), "e": pl.Series(["low", "high"])})
    given = given.with_columns(e=given["e"].cast(pl.Enum(["low", "high"])))
    read = to_pandas(given)
    levels = pd.CategoricalDtype(["low", "top", "high"], ordered=True)
    wider = read.assign(n=[3.5, 1.0], e=pd.Categorical(["top", "high"], dtype=levels))
    found = like(wider, given, read)
    assert found.to_dict(as_series=False) == {"n": [3.5, 1.0], "e": ["top", "high"]}
    assert found.schema == {"n": pl.Float64, "e": pl.Enum(["low", "top", "high"])}


@pytest.mark.parametrize("package", ["polars", "pyarrow"])
def test_a_number_that_becomes_missing_is_null(package: str) -> None:
    given = pl.DataFrame({"n": pl.Series([3, 1], dtype=pl.Int16), "f": [0.5, 1.5]})
    given = given if package == "polars" else given.to_arrow()
    read = to_pandas(given)
    found = in_place(read.assign(n=[np.nan, 1.0], f=[np.nan, 1.5]), given, read, ["n", "f"])
    assert found.schema == given.schema
    assert to_polars(found).to_dict(as_series=False) == {"n": [None, 1], "f": [None, 1.5]}


@pytest.mark.parametrize("package", ["polars", "pyarrow"])
def test_in_place_leaves_other_columns_as_they_are(package: str) -> None:
    given = pl.DataFrame(
        {
            "born": [datetime.date(1990, 1, 2), datetime.date(1991, 1, 2)],
            "pets": [["cat"], []],
            "age": pl.Series([30, 41], dtype=pl.Int16),
            "price": pl.Series([Decimal("1.50"), None], dtype=pl.Decimal(9, 2)),
        }
    )
    given = given if package == "polars" else given.to_arrow()
    read = to_pandas(given)
    changed = read.assign(age=pd.Series([31, 41], dtype="int16"), status=["ok", "ok"])
    found = in_place(changed, given, read, ["age"])
    names = ["born", "pets", "age", "price"]
    assert to_polars(found).drop("status").columns == names
    for name in ("born", "pets", "price"):
        assert to_polars(found)[name].equals(to_polars(given)[name])
    assert to_polars(found)["age"].to_list() == [31, 41]
    assert to_polars(found)["age"].dtype == pl.Int16
    assert to_polars(found)["status"].to_list() == ["ok", "ok"]


# ---- arrays --------------------------------------------------------------------------------------

SCHEMA = Schema.infer(
    pd.DataFrame({"age": [30, 41], "debt": [0.5, None], "owner": [True, False], "job": ["a", "b"]})
)


def test_an_array_of_objects_is_read_by_the_schema() -> None:
    X = np.array([[30, None, True, "a"], [41, 0.5, False, None]], dtype=object)
    read = to_pandas(X, SCHEMA)
    assert list(read.columns) == SCHEMA.columns
    assert read.dtypes.astype(str).tolist() == ["int64", "float64", "bool", "object"]
    assert read["job"].tolist() == ["a", None]
    back = like(read, X, read)
    assert back.dtype == object
    assert back[:, [0, 2, 3]].tolist() == X[:, [0, 2, 3]].tolist()


def test_an_array_of_numbers_keeps_its_dtype_and_reads_flags() -> None:
    numbers = SCHEMA.with_features(feature for feature in SCHEMA if feature.name != "job")
    X = np.array([[30, np.nan, 1], [41, 0.5, 0]], dtype=np.float32)
    read = to_pandas(X, numbers)
    assert read["owner"].tolist() == [True, False]
    back = like(read, X, read)
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, X)
    whole = to_pandas(X[:, [0]].astype(int), ["age"])
    assert like(whole, X[:, [0]].astype(int), whole).dtype == int
    assert like(whole + 0.5, X[:, [0]].astype(int), whole).tolist() == [[30.5], [41.5]]


def test_whole_numbers_keep_every_digit() -> None:
    X = np.array([[2**62 + 1], [5]])
    read = to_pandas(X, ["n"])
    assert like(read, X, read).tolist() == X.tolist()


def test_text_in_an_array() -> None:
    X = np.array([["a"], ["bb"]])
    read = to_pandas(X, ["job"])
    back = like(read.assign(job=["ccc", "bb"]), X, read)
    assert (back.dtype.kind, back.tolist()) == ("U", [["ccc"], ["bb"]])


# ---- what is refused -----------------------------------------------------------------------------

TWICE = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
REFUSED: dict[str, tuple[Any, str]] = {
    "list": ([{"age": 3}], r"got list; give .*, for example pandas\.DataFrame\(X\)$"),
    "dict": ({"age": [3]}, r"got dict; give .*, for example pandas\.DataFrame\(X\)$"),
    "nothing": (None, "got NoneType; give a pandas or polars DataFrame, or a pyarrow Table$"),
    "Series": (pd.Series([1]), r"got a Series, .* X\.head\(1\) is a table of one person"),
    "polars Series": (pl.Series([1]), r"got a Series, which is one column or one row"),
    "lazy": (pl.LazyFrame({"age": [3]}), r"a polars LazyFrame holds no rows yet; collect them"),
    "row": (np.zeros(3), r"an array of shape \(3,\) is no table"),
    "cube": (np.zeros((2, 2, 2)), r"an array of shape \(2, 2, 2\) is no table"),
    "array": (np.zeros((2, 2)), r"no names of columns; give a schema with 2 columns"),
    "sparse": (scipy.sparse.eye(3).tocsr(), r"got csr_matrix; .* X\.toarray\(\) with a schema"),
    "one name twice": (TWICE, r"the Table cannot be read: more than one column is named \['a'\]"),
    "sparse column": (
        pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}),
        r"the columns \['a'\] are sparse.* X\['a'\]\.sparse\.to_dense\(\)",
    ),
    "dates": (
        pl.DataFrame({"d": [datetime.date(2020, 1, 1)]}),
        r"'d' has dtype datetime64.*to a number of days\) or drop it",
    ),
    "dates as objects": (
        pd.DataFrame({"d": [datetime.date(2020, 1, 1)]}),
        r"'d' holds date values .* convert them to numbers of days, or drop the column",
    ),
    "decimals": (pl.DataFrame({"m": [Decimal("1.5")]}), r"'m' holds Decimal values"),
    "nulls alone": (pl.DataFrame({"m": [None, None]}), r"'m' is empty: every value is missing"),
}


@pytest.mark.parametrize("name", list(REFUSED))
@pytest.mark.parametrize("verb", [Schema.infer, discover_relations])
def test_anything_else_is_refused_in_one_sentence(name: str, verb: Any) -> None:
    given, words = REFUSED[name]
    with pytest.raises(UserError, match=words) as caught:
        verb(given)
    assert "\n" not in str(caught.value)


def test_an_array_of_another_width_is_refused() -> None:
    words = r"the array has 1 column, but the schema has 4; .*\['age', 'debt', 'owner', 'job'\]"
    with pytest.raises(UserError, match=words):
        to_pandas(np.zeros((2, 1)), SCHEMA)


def test_kinds_have_names_that_a_model_file_may_hold() -> None:
    tables: list[Any] = [pd.DataFrame(), pl.DataFrame(), pa.table({}), np.zeros((1, 2), "float32")]
    tables += [np.array([["a"]]), np.array([[None]])]
    kinds = [kind_of(each) for each in tables]
    assert kinds == ["pandas", "polars", "pyarrow", "array/float32", "array/str", "array/object"]
    assert [check_kind(kind, "the file") for kind in kinds] == kinds
    for forged in ("os", "array/complex128", ["polars"], None):
        with pytest.raises(UserError, match="the file names no kind of table"):
            check_kind(forged, "the file")


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(frames, "import_module", gone)
    with pytest.raises(UserError, match=r"fitted on a table of polars, .*; install polars"):
        in_kind(pd.DataFrame({"age": [3]}), "polars")


def test_pandas_and_its_rows_are_not_copied() -> None:
    X = pd.DataFrame({"age": [30]}, index=["Ann"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert to_pandas(X) is X
        assert like(X, X, X) is X
        assert in_place(X, X, X, ["age"]) is X
        assert in_kind(X, "pandas") is X
