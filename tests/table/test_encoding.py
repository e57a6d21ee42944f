"""TableEncoder: X -> F -> Z and back exactly, and every table that is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genrecourse.errors import UserError
from genrecourse.rules.book import RuleBook
from genrecourse.table.encoding import TableEncoder, unchanged
from genrecourse.table.schema import Feature, Schema
from tests.support.random_tables import Case as RandomCase
from tests.support.random_tables import cases as random_cases
from tests.support.random_tables import reproducible

NAN = np.nan


def fitted(X: pd.DataFrame) -> TableEncoder:
    return TableEncoder(Schema.infer(X)).fit(X)


def with_schema(X: pd.DataFrame, *features: Feature) -> TableEncoder:
    return TableEncoder(Schema(features=features)).fit(X)


# One column each, four rows.
COLUMNS = {
    "int64": pd.Series([3, 1, 4, 2]),
    "int8": pd.Series([3, -1, 4, 100], dtype="int8"),
    "int32": pd.Series([3, 1, 4, 100_000], dtype="int32"),
    "uint8": pd.Series([3, 1, 4, 200], dtype="uint8"),
    "uint64": pd.Series([3, 1, 4, 200], dtype="uint64"),
    "float64": pd.Series([0.1, 0.25, 3.0, 1e5]),
    "float64 continuous": pd.Series([0.1, 1 / 3, np.pi, 2.0]),
    "float32": pd.Series([0.1, 0.25, 3.0, 7.7], dtype="float32"),
    "float32 continuous": pd.Series([0.1, 1 / 3, np.pi, 2.0], dtype="float32"),
    "float16": pd.Series([0.1, 0.25, 3.0, 7.7], dtype="float16"),
    "float64 missing": pd.Series([0.1, NAN, 3.0, 7.0]),
    "float32 missing": pd.Series([0.1, NAN, 3.0, 7.0], dtype="float32"),
    "Int64": pd.Series([1, 2, 3, 7], dtype="Int64"),
    "Int64 missing": pd.Series([1, None, 3, 7], dtype="Int64"),
    "Int8 missing": pd.Series([1, None, 3, 7], dtype="Int8"),
    "Float64 missing": pd.Series([1.5, None, 3, 7], dtype="Float64"),
    "Float32 missing": pd.Series([1.1, None, 3, 7], dtype="Float32"),
    "int64[pyarrow] missing": pd.Series([1, None, 3, 7], dtype="int64[pyarrow]"),
    "double[pyarrow] missing": pd.Series([1.5, None, 3, 7], dtype="double[pyarrow]"),
    "constant": pd.Series([5, 5, 5, 5]),
    "bool": pd.Series([True, False, True, True]),
    "boolean missing": pd.Series([True, None, False, True], dtype="boolean"),
    "bool[pyarrow] missing": pd.Series([True, None, False, True], dtype="bool[pyarrow]"),
    "str": pd.Series(["a", "b", "c", "a"]),
    "str missing": pd.Series(["a", "b", None, "a"]),
    "string missing": pd.Series(["a", None, "b", "a"], dtype="string"),
    "object": pd.Series(["a", "b", "c", "d"], dtype=object),
    "object missing": pd.Series(["a", None, "c", "d"], dtype=object),
    "object bool missing": pd.Series([True, None, False, True], dtype=object),
    "object mixed": pd.Series(["a", 1, True, 2.5], dtype=object),
    "one level": pd.Series(["a", "a", "a", "a"]),
    "one level missing": pd.Series(["a", None, "a", "a"]),
    "category": pd.Series(["a", "b", "c", "a"], dtype="category"),
    "category missing": pd.Series(["a", "b", None, "a"], dtype="category"),
    "category of ints missing": pd.Series([1, 2, None, 1], dtype="category"),
    "category of bools": pd.Series([True, False, True, False], dtype="category"),
    "ordered": pd.Series(
        pd.Categorical(["lo", "hi", "mid", "lo"], ["lo", "unused", "mid", "hi"], ordered=True)
    ),
}
INDEX = pd.MultiIndex.from_tuples([("p", 1), ("p", 1), ("q", 0), ("r", 9)], names=["who", "when"])


def table_of(column: pd.Series) -> pd.DataFrame:
    return pd.DataFrame({"other": [9, 8, 7, 6], "f": column}).set_axis(INDEX)


# ---- there and back ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", COLUMNS)
def test_there_and_back_is_exact(kind: str) -> None:
    X = table_of(COLUMNS[kind])
    encoder = fitted(X)
    pd.testing.assert_frame_equal(encoder.decode(encoder.encode(X), like=X), X)


@pytest.mark.parametrize("kind", COLUMNS)
def test_values_that_moved_have_the_dtype_of_the_column(kind: str) -> None:
    X = table_of(COLUMNS[kind])
    encoder = fitted(X)
    Z = encoder.encode(X)
    moved = X.iloc[[2, 3, 0, 1]].set_axis(X.index)
    pd.testing.assert_frame_equal(encoder.decode(Z[[2, 3, 0, 1]], like=X), moved)


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("row", [0, 1, 2])
def test_table_lends_dtypes_from_any_row(kind: str, row: int) -> None:
    X = table_of(COLUMNS[kind])
    encoder = fitted(X)
    Z = encoder.encode(X)[[3, 1, 0, 2, 2]]
    expected = X.iloc[[3, 1, 0, 2, 2]].reset_index(drop=True)
    pd.testing.assert_frame_equal(encoder.table(Z, like=X.iloc[[row]]), expected)


def test_features_and_z_are_two_views_of_the_same_rows() -> None:
    X = pd.DataFrame(COLUMNS)
    encoder = fitted(X)
    F = encoder.features(X)
    np.testing.assert_array_equal(encoder.to_features(encoder.from_features(F)), F)
    np.testing.assert_array_equal(encoder.from_features(F), encoder.encode(X))


def test_columns_in_another_order_come_back_in_that_order() -> None:
    X = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [0.5, 1.5]})
    encoder = fitted(X)
    shuffled = X[["c", "a", "b"]]
    np.testing.assert_array_equal(encoder.encode(shuffled), encoder.encode(X))
    pd.testing.assert_frame_equal(encoder.decode(encoder.encode(X), like=shuffled), shuffled)
    pd.testing.assert_frame_equal(encoder.table(encoder.encode(X), like=shuffled), shuffled)


def test_the_input_is_left_alone() -> None:
    X = table_of(COLUMNS["float64 missing"])
    before, encoder = X.copy(deep=True), fitted(X)
    Z = encoder.encode(X)
    Z_before = Z.copy()
    encoder.project(Z)
    encoder.decode(Z[::-1], like=X)
    pd.testing.assert_frame_equal(X, before)
    np.testing.assert_array_equal(Z, Z_before)


def test_kept_cells_are_copied_not_computed() -> None:
    # above 2**53 a float no longer tells neighbours apart; a cell that is kept must
    big = [2**53 + 1, 2**60 + 3, 5]
    X = pd.DataFrame({"big": big, "tiny": [0.1 + 0.2, 1 / 3, 5e-324], "word": ["a", "b", "c"]})
    encoder = fitted(X)
    Z = encoder.encode(X)
    Z[:, -3:] = Z[::-1, -3:]  # only the word moves
    out = encoder.decode(Z, like=X)
    assert out["big"].tolist() == big
    assert out["tiny"].tolist() == X["tiny"].tolist()
    assert out["word"].tolist() == ["c", "b", "a"]


def test_values_beyond_the_training_range_are_kept_exactly() -> None:
    encoder = fitted(pd.DataFrame({"n": [10, 20], "r": [0.1, 0.7]}))
    X = pd.DataFrame({"n": [-999, 15, 10**15], "r": [-7.123456789, 0.3, 1e300]})
    np.testing.assert_allclose(encoder.features(X)[:, 0], [-100.9, 0.5, (10**15 - 10) / 10])
    pd.testing.assert_frame_equal(encoder.decode(encoder.encode(X), like=X), X)


def test_a_value_with_more_decimals_than_the_training_rows_is_kept_in_a_move() -> None:
    encoder = fitted(pd.DataFrame({"n": [0, 10]}))
    like = pd.DataFrame({"n": [1, 2]})
    out = encoder.decode(np.array([[0.25], [0.2]]), like=like)
    assert out["n"].tolist() == [2.5, 2.0]
    assert out["n"].dtype == np.float64  # whole numbers cannot hold it; nothing is rounded away


def test_a_small_integer_dtype_grows_where_a_plan_needs_it() -> None:
    encoder = fitted(pd.DataFrame({"n": [0, 1000]}))
    for small, large in (("int8", "int64"), ("Int8", "Int64")):
        like = pd.DataFrame({"n": pd.Series([1, 2], dtype=small)})
        out = encoder.decode(np.array([[0.3], [0.002]]), like=like)
        assert out["n"].tolist() == [300, 2]
        assert out["n"].dtype == large


def test_a_level_that_the_applicants_column_cannot_hold() -> None:
    X = pd.DataFrame({"f": pd.Series(["a", 1, None], dtype=object)})
    encoder = fitted(X)
    Z = encoder.encode(X)
    whole = pd.DataFrame({"f": [1, 1, 1]})
    assert encoder.decode(Z, like=whole)["f"].tolist() == ["a", 1, None]
    words = pd.DataFrame({"f": pd.Series(["a", "a", "a"], dtype="str")})
    out = encoder.decode(Z[:2], like=words.iloc[:2])["f"].tolist()
    assert out == ["a", 1]  # not "1"


def test_a_level_that_the_applicants_categorical_lacks_is_added() -> None:
    X = pd.DataFrame({"f": pd.Series(["a", "b", "c"], dtype="category")})
    encoder = fitted(X)
    like = pd.DataFrame({"f": pd.Series(["b", "b"], dtype="category")})
    out = encoder.decode(encoder.encode(X)[[1, 2]], like=like)["f"]
    assert out.tolist() == ["b", "c"]
    assert out.dtype.categories.tolist() == ["b", "c"]


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (["low", "high"], ["low", "mid", "high"]),
        (["mid"], ["low", "mid", "high"]),
        (["high", "low"], ["high", "low", "mid"]),  # an order of their own stays as it is
        (["low", "extra", "high"], ["low", "extra", "high", "mid"]),
    ],
)
def test_a_level_that_is_added_stands_where_the_schema_has_it(
    known: list[str], expected: list[str]
) -> None:
    X = pd.DataFrame({"f": ["low", "mid", "high"]})
    feature = Feature(name="f", kind="category", categories=("low", "mid", "high"), ordered=True)
    encoder = TableEncoder(Schema(features=(feature,))).fit(X)
    theirs = pd.DataFrame({"f": pd.Categorical([known[0]] * 3, known, ordered=True)})
    column = encoder.decode(encoder.encode(X), like=theirs)["f"]
    assert column.tolist() == ["low", "mid", "high"]
    assert column.cat.ordered
    assert column.cat.categories.tolist() == expected


def test_numbers_as_categories() -> None:
    feature = Feature(name="f", kind="category", categories=(1, 2, 3), missing=True)
    X = pd.DataFrame({"f": [1.0, NAN, 3.0, 2.0]})
    encoder = with_schema(X, feature)
    np.testing.assert_array_equal(encoder.features(X)[:, 0], [0, NAN, 2, 1])
    out = encoder.decode(encoder.encode(X)[::-1], like=X)
    pd.testing.assert_frame_equal(out, X.iloc[::-1].reset_index(drop=True))
    small = pd.DataFrame({"f": pd.Series([1, 1, 1], dtype="int8")})
    out = encoder.decode(encoder.encode(X)[[0, 2, 3]], like=small)
    assert out["f"].tolist() == [1, 3, 2]
    assert out["f"].dtype == np.int8


@settings(max_examples=50, deadline=None, database=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.floats(-1e12, 1e12)),
            st.integers(-(2**63), 2**63 - 1),
            st.one_of(st.none(), st.sampled_from("abcdefghij")),
        ),
        min_size=2,
        max_size=12,
    )
)
def test_any_table_comes_back(rows: list[tuple[float | None, int, str | None]]) -> None:
    X = pd.DataFrame(rows, columns=["r", "n", "c"]).astype({"r": "float64", "n": "int64"})
    if X["r"].isna().all() or X["c"].isna().all():
        return
    encoder = fitted(X)
    pd.testing.assert_frame_equal(encoder.decode(encoder.encode(X), like=X), X)


# ---- what Z looks like ------------------------------------------------------------------------


def test_layout_of_z_by_hand() -> None:
    X = pd.DataFrame(
        {
            "number": [10, 30, 20],
            "gap": [1.0, NAN, 5.0],
            "two": ["n", "y", "n"],
            "three": ["c", "a", "b"],
            "two or missing": ["n", None, "y"],
            "one or missing": ["n", None, "n"],
        }
    )
    expected = [
        # number, gap and its flag, two, three one-hot, n/y/missing one-hot, missing
        [0.0, 0.0, 0.0, 0.0, 0, 0, 1, 1, 0, 0, 0.0],
        [1.0, 0.0, 1.0, 1.0, 1, 0, 0, 0, 0, 1, 1.0],
        [0.5, 1.0, 0.0, 0.0, 0, 1, 0, 0, 1, 0, 0.0],
    ]
    encoder = fitted(X)
    assert encoder.width == 11
    np.testing.assert_array_equal(encoder.encode(X), expected)
    np.testing.assert_array_equal(
        encoder.features(X), [[0, 0, 0, 2, 0, 0], [1, NAN, 1, 0, NAN, NAN], [0.5, 1, 0, 1, 1, 0]]
    )


@pytest.mark.parametrize(("levels", "width"), [(1, 1), (2, 1), (3, 3), (10, 10)])
def test_levels_and_columns(levels: int, width: int) -> None:
    X = pd.DataFrame({"c": [f"level {k}" for k in range(levels)]})
    encoder = fitted(X)
    Z = encoder.encode(X)
    assert Z.shape == (levels, width)
    if width > 1:
        np.testing.assert_array_equal(Z, np.eye(levels))
    with_gap = pd.concat([X, pd.DataFrame({"c": [None]})], ignore_index=True)
    encoder = fitted(with_gap)
    assert encoder.width == (levels + 1 if levels > 1 else 1)
    out = encoder.decode(encoder.encode(with_gap), like=with_gap)
    pd.testing.assert_frame_equal(out, with_gap)


def test_scale_is_of_the_training_rows_not_of_the_schema() -> None:
    X = pd.DataFrame({"n": [10, 20]})
    encoder = with_schema(X, Feature(name="n", kind="number", range=(0, 100)))
    assert encoder.features(pd.DataFrame({"n": [15]}))[0, 0] == 0.5


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_scale_does_not_depend_on_the_unit(unit: float) -> None:
    X = pd.DataFrame({"n": np.array([0.2, 0.3, 0.7]) * unit})
    np.testing.assert_allclose(fitted(X).features(X)[:, 0], [0.0, 0.2, 1.0], atol=1e-9)


def test_a_relaxed_category_is_its_largest_column() -> None:
    X = pd.DataFrame({"c": ["a", "b", "c"], "d": ["n", "y", "n"]})
    encoder = fitted(X)
    F = encoder.to_features(np.array([[0.2, 0.5, 0.3, 0.4], [9.0, -1.0, 2.0, 0.6]]))
    np.testing.assert_array_equal(F, [[1, 0], [0, 1]])


def test_a_category_of_one_level_has_no_other() -> None:
    X = pd.DataFrame({"c": ["a", "a"], "n": [1, 2]})
    encoder = fitted(X)
    out = encoder.decode(np.array([[0.9, 0.0], [0.0, 1.0]]), like=X)
    pd.testing.assert_frame_equal(out, X)


def test_unchanged() -> None:
    F = np.array([[0.0, NAN, NAN, 1.0, 1.0, 2.0]])
    F_plus = np.array([[1e-10, NAN, 0.0, NAN, 1.0 + 1e-8, 2.0]])
    assert unchanged(F, F_plus).tolist() == [[True, True, False, False, False, True]]


# ---- project ----------------------------------------------------------------------------------


def test_project_by_hand() -> None:
    X = pd.DataFrame(
        {"whole": [0, 10], "money": [0.0, 1.25], "real": [0.0, np.pi], "c": ["a", "b"]}
    )
    X = pd.concat([X, pd.DataFrame({"whole": [5], "money": [1.0], "real": [0.1], "c": ["z"]})])
    encoder = fitted(X)
    Z = np.array([[0.333, 0.5, 0.123456, 0.2, 0.9, 0.3], [-3.0, 7.0, 1.5, 0.0, 0.0, 0.1]])
    projected = encoder.project(Z)
    expected = [
        [0.3, 0.62 / 1.25, 0.123456, 0, 1, 0],  # 3.33 -> 3; 0.625 -> 0.62, the even one
        [0.0, 1.0, 1.0, 0, 0, 1],
    ]
    np.testing.assert_allclose(projected, expected, atol=1e-12)
    np.testing.assert_array_equal(encoder.project(projected), projected)
    np.testing.assert_allclose(encoder.project(encoder.encode(X)), encoder.encode(X), atol=1e-15)


def test_project_keeps_missing() -> None:
    X = pd.DataFrame({"n": [0, None, 10], "c": ["a", None, "b"]})
    encoder = fitted(X)
    np.testing.assert_array_equal(encoder.project(encoder.encode(X)), encoder.encode(X))
    # the flag decides: a relaxed number under a set flag is missing, with no value left behind
    Z = np.array([[0.7, 0.6, 0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(encoder.project(Z), [[0.0, 1.0, 0, 0, 1]])


@pytest.mark.parametrize(
    ("ends", "decimals", "legal"),
    [
        ((0.5, 3.5), 0, [1.0, 2.0, 3.0]),
        ((-3.5, -0.5), 0, [-3.0, -2.0, -1.0]),
        ((0.29, 0.31), 2, [0.29, 0.30, 0.31]),  # 0.29 * 100 is 28.999999999999996
        ((1.1, 1.3), 1, [1.1, 1.2, 1.3]),  # 1.1 * 10 is 11.000000000000002
        ((0.0, np.inf), 0, [0.0, 3.0, 999.0]),
        ((17, 17), 0, [17.0, 17.0, 17.0]),
        # an end just above a whole number is above it, however large both are
        ((-900.0 + 1e-5, 900.0 - 1e-5), 0, [-899.0, 3.0, 899.0]),
    ],
)
def test_project_lands_on_values_that_range_and_decimals_both_allow(
    ends: tuple[float, float], decimals: int, legal: list[float]
) -> None:
    X = pd.DataFrame({"n": [0.0, 1.0]})
    feature = Feature(name="n", kind="number", range=ends, decimals=decimals)
    wanted = np.array([[-999.0], [legal[1] + 0.3 * 10.0**-decimals], [999.0]])
    np.testing.assert_allclose(
        with_schema(X, feature).project(wanted)[:, 0], legal, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("step", [0.1, 0.25, 0.01])
def test_project_of_single_precision_stays_in_range(step: float) -> None:
    values = (np.arange(5) * step + step).astype(np.float32)
    X = pd.DataFrame({"n": values})
    encoder = fitted(X)
    low, high = encoder.schema["n"].range or (0, 0)
    out = encoder.decode(encoder.project(np.array([[-9.0], [0.5], [9.0]])), like=X.iloc[:3])
    assert out["n"].dtype == np.float32
    assert out["n"].iloc[0] == np.float32(low) == values[0]
    assert out["n"].iloc[2] == np.float32(high) == values[4]


def test_project_where_no_legal_value_exists_leaves_the_refusal_to_the_rules() -> None:
    X = pd.DataFrame({"n": [0.0, 1.0]})
    encoder = with_schema(X, Feature(name="n", kind="number", range=(0.2, 0.4), decimals=0))
    projected = encoder.project(np.array([[0.3], [0.9]]))
    np.testing.assert_array_equal(projected, [[0.0], [1.0]])  # whole, if not in range
    assert not RuleBook.of_schema(encoder).allowed(0, 0.9, projected[0, 0])


def test_project_without_a_range_is_the_training_range() -> None:
    X = pd.DataFrame({"n": [2.0, 4.0]})
    encoder = with_schema(X, Feature(name="n", kind="number"))
    np.testing.assert_array_equal(encoder.project(np.array([[-1.0], [3.0]])), [[0.0], [1.0]])


# ---- refusals ---------------------------------------------------------------------------------

GOOD = pd.DataFrame(
    {"n": [1, 2, 3], "c": ["x", "y", "x"], "b": [True, False, True]}, index=["i", "j", "k"]
)


def changed(**columns: Any) -> pd.DataFrame:
    return GOOD.assign(**columns)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (GOOD.to_numpy(), ["DataFrame", "no names"]),
        (GOOD.iloc[:0], ["empty", "0 rows"]),
        (GOOD[["n", "b"]], ["lacks", "['c']", "['n', 'b']"]),
        (changed(extra=1), ["['extra']", "not in the schema"]),
        (GOOD[["n", "c", "b", "n"]], ["more than one column", "['n']", "rename or drop"]),
        (GOOD.rename(columns={"n": 0}), ["must be text", "0", "Rename"]),
        (changed(c=["x", "z", "w"]), ["'c'", "'z'", "'j'", "['x', 'y']"]),
        (changed(c=["x", ["y"], "x"]), ["'c'", "['x', 'y']", "list"]),
        (changed(c=[1, 2, 1]), ["'c'", "1", "'i'", "['x', 'y']"]),
        (changed(b=[1, 0, 1]), ["'b'", "1", "'i'", "[False, True]"]),
        (changed(b=["True", "False", "True"]), ["'b'", "'True'", "[False, True]"]),
        (changed(n=["1", "2", "3"]), ["'n'", "numbers", "'1'", "convert"]),
        (changed(n=[True, False, True]), ["'n'", "numbers", "bool", "convert"]),
        (changed(n=pd.to_datetime(["2020"] * 3)), ["'n'", "numbers", "datetime64", "convert"]),
        (changed(n=[1j, 2, 3]), ["'n'", "numbers", "complex", "convert"]),
        (changed(n=[1.0, 2.0, -np.inf]), ["'n'", "1 infinite", "'k'", "NaN"]),
        (changed(n=[1.0, NAN, 3.0]), ["'n'", "missing", "'j'", "fill", "missing=true"]),
        (changed(c=["x", "y", None]), ["'c'", "missing", "'k'", "fill", "missing=true"]),
        (
            changed(n=pd.array([None, 2, 3], dtype="Int64")),
            ["'n'", "missing", "'i'", "fill", "missing=true"],
        ),
    ],
)
def test_tables_that_are_refused(table: Any, says: list[str]) -> None:
    encoder = fitted(GOOD)
    messages = set()
    for door in (encoder.check, encoder.encode, encoder.features, encoder.fit):
        with pytest.raises(UserError) as caught:
            door(table)
        messages.add(str(caught.value))
    (message,) = messages
    assert "\n" not in message
    assert [word for word in says if word not in message] == []


def test_a_float_column_for_whole_numbers_is_fine() -> None:
    X = GOOD.assign(n=GOOD["n"].astype(float))
    pd.testing.assert_frame_equal(fitted(GOOD).decode(fitted(GOOD).encode(X), like=X), X)


@pytest.mark.parametrize("dtype", [object, "str", "float64", "Int64", "category"])
def test_a_column_of_nothing_but_missing_cells_has_no_wrong_dtype(dtype: Any) -> None:
    encoder = fitted(pd.DataFrame({"n": [0, None, 10]}))
    X = pd.DataFrame({"n": pd.Series([None, None], dtype=dtype)})
    np.testing.assert_array_equal(encoder.encode(X), [[0, 1], [0, 1]])
    pd.testing.assert_frame_equal(encoder.decode(encoder.encode(X), like=X), X)
    out = encoder.decode(np.array([[0.5, 0.0], [0.0, 1.0]]), like=X)["n"]
    assert out.iloc[0] == 5
    assert pd.isna(out.iloc[1])


def test_a_scale_cannot_be_learned_from_missing_cells() -> None:
    X = pd.DataFrame({"n": [NAN, NAN]})
    with pytest.raises(UserError, match="'n' is empty: every value is missing; drop it"):
        with_schema(X, Feature(name="n", kind="number", missing=True))


def test_true_and_one_are_different_levels() -> None:
    X = pd.DataFrame({"f": pd.Series(["a", "b", True, False], dtype=object)})
    encoder = fitted(X)
    with pytest.raises(UserError, match="'f' holds 1 "):
        encoder.encode(pd.DataFrame({"f": pd.Series(["a", 1], dtype=object)}))


def test_single_precision_has_the_decimals_that_it_means() -> None:
    """Else what a plan leaves alone would count as moved, by the seventh digit."""
    X = pd.DataFrame({"a": np.array([-5.0, -4.99, -4.98, -4.97], dtype=np.float32)})
    encoder = TableEncoder(Schema.infer(X).with_feature("a", decimals=2)).fit(X)
    F = encoder.features(X)
    block = encoder.blocks[0]
    assert (block.low + F[:, 0] * block.span).tolist() == pytest.approx(
        [-5.0, -4.99, -4.98, -4.97], abs=1e-12
    )
    pd.testing.assert_frame_equal(encoder.decode(encoder.encode(X), like=X), X)


def test_text_among_numbers_is_named_with_its_row() -> None:
    encoder = fitted(pd.DataFrame({"n": [1.5, 2.5, 3.5]}))
    index = pd.Index(["a", "b", "c"])
    X = pd.DataFrame({"n": ["50", "34,140.30", "much"]}, index=index)
    with pytest.raises(UserError, match=r"\(first: index 'b' has '34,140.30'\); convert such"):
        encoder.encode(X)
    for cells, said in ((["50", "60", "70"], "'50'"), ([True, False, True], "True")):
        with pytest.raises(UserError, match=rf"\(first value: {said}\); convert it to numbers"):
            encoder.encode(pd.DataFrame({"n": cells}))


# ---- what decode writes, without writing it ------------------------------------------------------


@pytest.mark.parametrize("name", COLUMNS)
def test_written_features_are_those_of_the_decoded_rows(name: str) -> None:
    X = pd.DataFrame({"f": COLUMNS[name], "other": [1.0, 2.0, 3.0, 4.0]})
    encoder = fitted(X)
    F = encoder.features(X)
    assert_written_as_decoded(encoder, X, F[[1, 0, 3, 2]])
    assert_written_as_decoded(encoder, X, F)
    if not encoder.schema["f"].is_category:  # values that the column may not be able to hold
        between = np.c_[np.array([0.1, 1 / 3, -2.0, 40.0]), F[:, 1]]
        assert_written_as_decoded(encoder, X, between)


@reproducible(max_examples=60)
@given(case=random_cases())
def test_written_features_of_random_tables_are_those_of_the_decoded_rows(case: RandomCase) -> None:
    encoder = TableEncoder(case.schema).fit(case.table(case.n_rows, stream=0))
    X, donors = (case.table(40, stream, beyond=0.2) for stream in (1, 2))
    F, other = encoder.features(X), encoder.features(donors)
    rng = np.random.default_rng(case.seed)
    numbers = np.array([not f.is_category for f in case.schema])
    drawn = np.where(numbers, rng.uniform(-0.5, 1.5, F.shape), other)
    pick = rng.integers(3, size=F.shape)
    mixed = np.select([pick == 0, pick == 1], [F, other], drawn)
    assert_written_as_decoded(encoder, X, np.where(np.isnan(F) != np.isnan(mixed), F, mixed))


def assert_written_as_decoded(encoder: TableEncoder, X: pd.DataFrame, F_plus: np.ndarray) -> None:
    decoded = encoder.decode(encoder.from_features(F_plus), like=X)
    written = encoder.written(F_plus, encoder.features(X), X)
    np.testing.assert_array_equal(written, encoder.features(decoded))
