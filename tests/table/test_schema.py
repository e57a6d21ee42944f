"""Schema: what is read off a table, JSON both ways, and what a person is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse.errors import UserError
from genrecourse.table.schema import Feature, Schema


def infer_one(values: Any, **options: Any) -> Feature:
    """The feature that a table with this one column gives."""
    return Schema.infer(pd.DataFrame({"f": pd.Series(values, **options)}))["f"]


def number(**fields: Any) -> Feature:
    return Feature(name="n", kind="number", **fields)


def category(*levels: Any, **fields: Any) -> Feature:
    return Feature(name="c", kind="category", categories=levels, **fields)


# ---- infer ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "Int64", "Int8", "int64[pyarrow]"])
def test_whole_numbers(dtype: str) -> None:
    assert infer_one([30, 17, 90], dtype=dtype) == Feature(
        name="f", kind="number", range=(17, 90), decimals=0
    )


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([1.0, 2.0, -3.0], 0),
        ([0.5, 2.0], 1),
        ([0.25, 2.5], 2),
        ([1e-6, 2.0], 6),
        ([1e-7, 2.0], None),
        ([1 / 3, 2.0], None),
        ([0.1 + 0.2, 1.1], 1),  # 0.30000000000000004 is 0.3
        ([123_456.78, 0.05], 2),
    ],
)
def test_decimals(values: list[float], decimals: int | None) -> None:
    assert infer_one(values).decimals == decimals


@pytest.mark.parametrize("dtype", ["float32", "Float32"])
def test_decimals_of_single_precision(dtype: str) -> None:
    assert infer_one([0.1, 7.7, 3.0], dtype=dtype).decimals == 1
    # the same digits in double precision are not a tenth
    assert infer_one(np.float32([0.1, 7.7]).astype(np.float64)).decimals is None


@pytest.mark.parametrize(
    ("column", "missing"),
    [
        (pd.Series([1.0, np.nan, 2.0]), True),
        (pd.Series([1, None, 2], dtype="Int64"), True),
        (pd.Series([1, 2, 2], dtype="Int64"), False),
        (pd.Series([1.0, None, 2.0], dtype="Float64"), True),
    ],
)
def test_missing_numbers(column: pd.Series, missing: bool) -> None:
    feature = infer_one(column)
    assert (feature.kind, feature.range, feature.missing) == ("number", (1.0, 2.0), missing)
    assert feature.decimals == 0


@pytest.mark.parametrize(
    ("column", "levels", "missing"),
    [
        (pd.Series([True, False, True]), (False, True), False),
        (pd.Series([True, None], dtype="boolean"), (True,), True),
        (pd.Series(["b", "a", "b"]), ("a", "b"), False),
        (pd.Series(["b", None, "a"]), ("a", "b"), True),
        (pd.Series(["b", pd.NA], dtype="string"), ("b",), True),
        (pd.Series(["b", np.nan, "a"], dtype=object), ("a", "b"), True),
        (pd.Series([True, None, False], dtype=object), (False, True), True),
        (pd.Series([2, 1, 3], dtype=object), (1, 2, 3), False),
        (pd.Series([3, 1, 3], dtype="category"), (1, 3), False),
        (pd.Series(["z", "x", None], dtype="category"), ("x", "z"), True),
    ],
)
def test_categories(column: pd.Series, levels: tuple[Any, ...], missing: bool) -> None:
    feature = infer_one(column)
    assert (feature.kind, feature.ordered, feature.missing) == ("category", False, missing)
    assert feature.categories == levels
    # plain Python values, so that JSON can hold them; True and 1 are equal but not the same
    assert [type(v) for v in feature.categories] == [type(v) for v in levels]


def test_levels_of_mixed_types_have_a_stable_order() -> None:
    once = infer_one(pd.Series(["a", 2, True, 1.5, "B"], dtype=object))
    again = infer_one(pd.Series([1.5, "B", True, "a", 2], dtype=object))
    assert once.categories == again.categories == (True, 1.5, 2, "B", "a")


def test_ordered_categorical_keeps_its_order_and_drops_levels_that_do_not_occur() -> None:
    scale = pd.CategoricalDtype(["low", "mid", "high", "top"], ordered=True)
    feature = infer_one(["top", "low", "mid"], dtype=scale)
    assert feature.categories == ("low", "mid", "top")
    assert feature.ordered


def test_unordered_categorical_keeps_its_order_too_but_it_means_nothing() -> None:
    feature = infer_one(["a", "c"], dtype=pd.CategoricalDtype(["c", "b", "a"]))
    assert feature.categories == ("c", "a")
    assert not feature.ordered


def test_columns_keep_their_order_and_immutables_are_named() -> None:
    X = pd.DataFrame({"z": [1, 2], "a": ["x", "y"], "mm": [0.5, 1.5]})
    schema = Schema.infer(X, immutable=["a", "z"])
    assert schema.names == ["z", "a", "mm"] == [f.name for f in schema]
    assert len(schema) == 3
    assert [f.role for f in schema] == ["immutable", "immutable", "mutable"]
    assert Schema.infer(X, immutable="mm")["mm"].role == "immutable"  # one name is one name


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ([[1, 2]], ["DataFrame", "list"]),
        (pd.DataFrame({"a": []}), ["empty", "0 rows", "1 columns"]),
        (pd.DataFrame(index=[1, 2]), ["empty", "2 rows", "0 columns"]),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ["more than one", "['a']", "rename"]),
        (pd.DataFrame([[1, 2]], columns=["a", 7]), ["text", "7", "Rename"]),
        (pd.DataFrame({"a": [np.nan, np.nan]}), ["'a'", "every value is missing", "drop"]),
        (pd.DataFrame({"a": [None, None]}), ["'a'", "every value is missing", "drop"]),
        (
            pd.DataFrame({"a": [1.0, np.inf, -np.inf]}, index=["p", "q", "r"]),
            ["'a'", "2 infinite", "'q'", "NaN"],
        ),
        (pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}), ["'a'", "datetime64", "days"]),
        (pd.DataFrame({"a": [1 + 2j]}), ["'a'", "complex", "drop"]),
        (pd.DataFrame({"a": [[1], [2]]}), ["'a'", "list", "[1]"]),
        (pd.DataFrame({"a": [(1, 2), "x"]}), ["'a'", "tuple", "(1, 2)"]),
        (pd.DataFrame({"a": pd.Series([1, "1"], dtype=object)}), ["'a'", "twice", "[1, '1']"]),
    ],
)
def test_tables_that_are_refused(table: Any, says: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        Schema.infer(table)
    message = str(caught.value)
    assert "\n" not in message
    assert [word for word in says if word not in message] == []


def test_a_name_that_is_close_is_said() -> None:
    X = pd.DataFrame({"income": [1, 2], "Debt Ratio": [3, 4]})
    for name, meant in (("incme", "income"), ("INCOME", "income"), ("debt_ratio", "Debt Ratio")):
        with pytest.raises(UserError, match=rf"'{name}' \(did you mean '{meant}'\?\) in the"):
            Schema.infer(X, immutable=name)
    with pytest.raises(UserError, match=r"\['income'\] \(did you mean 'Incom'\?\); it has"):
        Schema.infer(X).lint(X.rename(columns={"income": "Incom"}))


def test_unknown_immutable() -> None:
    with pytest.raises(UserError, match=r"no feature 'b' in the schema; it has \['a'\]"):
        Schema.infer(pd.DataFrame({"a": [1]}), immutable=["b"])


# ---- fields that do not fit -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"kind": "category"}, "is a category without categories"),
        ({"kind": "category", "categories": ["a", "b", "a"]}, "lists a category twice"),
        ({"kind": "category", "categories": ["a"], "range": [0, 1]}, "which only numbers have"),
        ({"kind": "category", "categories": ["a"], "max_step": 1}, "which only numbers have"),
        ({"kind": "category", "categories": ["a"], "decimals": 0}, "which only numbers have"),
        (
            {"kind": "category", "categories": ["a", "b"], "direction": "increase"},
            "without an order, so it cannot increase; list its categories from low to high",
        ),
        ({"kind": "number", "categories": ["a"]}, "which only categories have"),
        ({"kind": "number", "ordered": True}, "which only categories have"),
        ({"kind": "number", "range": [2, 1]}, "write the smaller number first"),
        ({"kind": "number", "range": [0, float("nan")]}, "write the smaller number first"),
        ({"kind": "number", "max_step": 0}, "greater than 0"),
        ({"kind": "number", "cost_weight": 0}, "greater than 0"),
        ({"kind": "number", "cost_weight": float("inf")}, "finite number"),
        ({"kind": "number", "decimals": -1}, "greater than or equal to 0"),
        ({"kind": "number", "direction": "up"}, "'any', 'increase' or 'decrease'"),
        (
            {"kind": "number", "role": "fixed"},
            "'mutable', 'immutable', 'protected', 'derived' or 'advances'",
        ),
        ({"kind": "date"}, "'number' or 'category'"),
        ({"kind": "number", "colour": "red"}, "'features.0' has no key 'colour'"),
        ({}, "'features.0.kind' is missing"),
    ],
)
def test_a_field_that_does_not_fit_is_one_sentence(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as caught:
        Schema.from_json(json.dumps({"features": [{"name": "f", **fields}]}))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{features: 1}", "the schema is not JSON"),
        ("", "the schema is not JSON"),
        ("[]", "schema: input should be"),
        ("{}", "schema: 'features' is missing"),
        ('{"features": []}', "the schema has no features"),
        (
            '{"features": [{"name": "a", "kind": "number"}, {"name": "a", "kind": "number"}]}',
            r"the schema names ['a'] more than once",
        ),
        ('{"features": [], "version": 3}', "schema: no key 'version'; the keys are features"),
    ],
)
def test_json_that_is_no_schema_is_one_sentence(text: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        Schema.from_json(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- JSON -------------------------------------------------------------------------------------


def test_json_round_trip_of_every_field() -> None:
    schema = Schema(
        features=(
            Feature(
                name="income",
                kind="number",
                range=(0, 9.5),
                decimals=2,
                missing=True,
                unit="€ a year",
                wording="yearly income",
                direction="increase",
                max_step=0.75,
                cost_weight=2.5,
            ),
            Feature(
                name="grade",
                kind="category",
                categories=("low", "high"),
                ordered=True,
                role="immutable",
                direction="decrease",
            ),
        )
    )
    assert Schema.from_json(schema.to_json()) == schema


def test_json_round_trip_keeps_the_type_of_each_level() -> None:
    levels = (True, False, 1, 0, 2.5, 3.0, "1.5", "true", "é")
    # str(3.0) and str(1) differ, so that these are nine levels
    back = Schema.from_json(Schema(features=(category(*levels),)).to_json())["c"].categories
    assert back == levels
    assert [type(v) for v in back] == [type(v) for v in levels]


@pytest.mark.parametrize("end", [(0.0, np.inf), (-np.inf, 1.0), (-np.inf, np.inf)])
def test_json_round_trip_of_a_range_with_an_open_end(end: tuple[float, float]) -> None:
    schema = Schema(features=(number(range=end),))

    def no_constants(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    json.loads(schema.to_json(), parse_constant=no_constants)
    assert Schema.from_json(schema.to_json()) == schema


def test_json_leaves_defaults_out() -> None:
    text = Schema(features=(number(range=(0, 1)),)).to_json()
    assert json.loads(text) == {"features": [{"name": "n", "kind": "number", "range": [0.0, 1.0]}]}


def test_save_and_load(tmp_path: Path) -> None:
    schema = Schema(features=(category("ja", "nein", wording="für Gäste"),))
    schema.save(tmp_path / "schema.json")
    assert Schema.load(tmp_path / "schema.json") == schema
    assert Schema.load(str(tmp_path / "schema.json")) == schema


def test_load_says_which_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read the schema .*none\.json: No such file"):
        Schema.load(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b'{"features": "\xe9"}')
    with pytest.raises(UserError, match=r"cannot read the schema .*latin\.json: not UTF-8"):
        Schema.load(tmp_path / "latin.json")


# ---- editing ----------------------------------------------------------------------------------


def test_with_feature_changes_one_copy() -> None:
    schema = Schema(features=(number(), category("a", "b")))
    changed = schema.with_feature("n", direction="increase", max_step=3)
    assert (changed["n"].direction, changed["n"].max_step) == ("increase", 3.0)
    assert changed["c"] == schema["c"]
    assert changed.names == schema.names
    assert schema["n"].direction == "any"


def test_with_feature_checks_what_it_changes() -> None:
    schema = Schema(features=(category("a", "b"),))
    with pytest.raises(UserError, match="without an order, so it cannot decrease"):
        schema.with_feature("c", direction="decrease")
    with pytest.raises(UserError, match="no key 'colour'; the keys are name, kind"):
        schema.with_feature("c", colour="red")
    with pytest.raises(UserError, match=r"no feature 'd' in the schema; it has \['c'\]"):
        schema.with_feature("d", role="immutable")
    assert schema.with_feature("c", ordered=True, direction="decrease")["c"].ordered


def test_wording_stands_in_for_the_name() -> None:
    assert number().label == "n"
    assert number(wording="number of cards").label == "number of cards"


# ---- lint -------------------------------------------------------------------------------------

TWELVE = range(12)
ASKED = "otherwise plans may ask people to change it"
ID = f"'f' differs in every row; if it is an id, drop it; {ASKED}"


def test_lint_of_a_sound_schema_says_nothing() -> None:
    X = pd.DataFrame({"amount": [k % 5 for k in TWELVE], "purpose": ["car", "house"] * 6})
    assert Schema.infer(X).lint(X) == []


@pytest.mark.parametrize("name", ["education-num", "experience", "years of Experience"])
def test_lint_what_cannot_go_down(name: str) -> None:
    schema = Schema(features=(Feature(name=name, kind="number"),))
    (remark,) = schema.lint()
    assert remark == f"'{name}' can go down: set direction to 'increase'"
    assert schema.with_feature(name, direction="increase").lint() == []
    assert schema.with_feature(name, role="immutable").lint() == []
    assert schema.with_feature(name, direction="decrease").lint() == [remark]


@pytest.mark.parametrize("name", ["age", "Age", "age_years", "years_old", "tenure"])
def test_lint_nobody_is_told_to_grow_older(name: str) -> None:
    schema = Schema(features=(Feature(name=name, kind="number"),))
    (remark,) = schema.lint()
    assert "only time changes it: give it the role 'immutable', or 'advances' in a policy" in remark
    for direction in ("increase", "decrease"):
        assert schema.with_feature(name, direction=direction).lint() == [remark]
    assert schema.with_feature(name, role="immutable").lint() == []
    assert schema.with_feature(name, role="advances", horizon=1).lint() == []


def test_lint_time_in_classes_has_one_role_to_take() -> None:
    age = Feature(name="age", kind="category", categories=("young", "old"))
    (remark,) = Schema(features=(age,)).lint()
    assert remark.endswith("give it the role 'immutable'")


@pytest.mark.parametrize(
    ("levels", "alike"),
    [
        (("East", "West", "West "), "'West' and 'West '"),
        (("Yes", "no", "yes"), "'Yes' and 'yes'"),
        (("N", "Y", "Yes"), "'Y' and 'Yes'"),
        (("f", "Female", "male"), "'f' and 'Female'"),
        (("real estate", "real  estate"), "'real estate' and 'real  estate'"),
        (("A", "AA", "AB", "B"), None),
        (("y", "n"), None),
        ((True, 1.5, "1"), None),
    ],
)
def test_lint_levels_that_a_person_takes_for_one(levels: Any, alike: str | None) -> None:
    remarks = Schema(features=(category(*levels),)).lint()
    assert len(remarks) == (alike is not None)
    assert not alike or f"levels that seem to be the same: {alike}. Write them alike" in remarks[0]


@pytest.mark.parametrize("name", ["wage", "mortgage", "agent", "usage", "sextant", "braces"])
def test_lint_reads_whole_words(name: str) -> None:
    assert Schema(features=(Feature(name=name, kind="number"),)).lint() == []


@pytest.mark.parametrize("name", ["race", "Sex", "personal_status_sex", "native-country"])
def test_lint_what_nobody_should_be_told_to_change(name: str) -> None:
    schema = Schema(features=(Feature(name=name, kind="category", categories=("a", "b")),))
    (remark,) = schema.lint()
    assert remark.startswith(f"'{name}' is mutable, so plans may ask people to change it: give it")
    assert schema.with_feature(name, role="immutable").lint() == []


@pytest.mark.parametrize("fields", [{"direction": "increase"}, {"max_step": 1}])
def test_lint_rules_that_do_nothing(fields: dict[str, Any]) -> None:
    remarks = Schema(features=(number(role="immutable", **fields),)).lint()
    assert remarks == ["'n' is immutable, so its direction and max_step have no effect"]


@pytest.mark.parametrize(
    ("values", "remark"),
    [
        (list(TWELVE), ID),
        ([f"u{k}" for k in TWELVE], ID),
        ([k + 0.5 for k in TWELVE], None),  # a measurement may differ in every row
        ([1, 2, 3], None),  # too few rows to tell
        ([7] * 12, "'f' has only one value (7)"),
        (["a"] * 12, "'f' has only one value ('a')"),
        (["2020-01-31", "2021-12-01"] * 6, "'f' seems to hold dates as text"),
        (["31.1.2020", "1.12.2021"] * 6, "'f' seems to hold dates as text"),
        (["31/1/20", "other"] * 6, None),
        ([f"2020-01-{k + 10}" for k in TWELVE], "'f' seems to hold dates as text ('2020-01-10')"),
        ([f"{k + 34},140.30" for k in TWELVE], "'f' holds numbers as text ('34,140.30'): remove"),
        ([f"{k + 1} 200,50" for k in TWELVE], "'f' holds numbers as text ('1 200,50'): remove"),
        ([f"€ {k}00" for k in TWELVE], "'f' holds numbers as text ('€ 000'): remove"),
        (["1.250.000", "-3", "17 %", "1’000 CHF"] * 3, "'f' holds numbers as text ('1.250.000')"),
        (["07", "12"] * 6, None),  # codes: whoever made them text knew why
        (["0-100 DM", "100-200 DM"] * 6, None),
        (["0171 234567", "0172 98765"] * 6, None),
        ([f"k{k % 51}" for k in range(102)], "'f' has 51 categories: group the rare ones"),
        ([f"k{k % 50}" for k in range(100)], None),
    ],
)
def test_lint_of_a_column(values: list[Any], remark: str | None) -> None:
    X = pd.DataFrame({"f": values})
    remarks = Schema.infer(X).lint(X)
    assert len(remarks) == (remark is not None)
    assert not remark or remarks[0].startswith(remark)
    assert Schema.infer(X).lint() == []  # only the table tells


def test_lint_says_that_an_id_or_a_date_may_be_asked_of_people() -> None:
    for values in ([f"u{k}" for k in TWELVE], ["2020-01-31", "2021-12-01"] * 6):
        X = pd.DataFrame({"f": values})
        assert ASKED in Schema.infer(X).lint(X)[0]
        assert ASKED not in Schema.infer(X, immutable="f").lint(X)[0]
    assert "to a number of days and make it immutable" in Schema.infer(X).lint(X)[0]


def test_lint_ignores_missing_cells() -> None:
    X = pd.DataFrame({"f": [None, *TWELVE, None]})
    assert Schema.infer(X).lint(X) == [ID]


@pytest.mark.parametrize(
    ("name", "values", "is_id"),
    [
        ("customer", [f"c{k % 90}" for k in range(120)], True),  # some customers come twice
        ("customer_id", [k % 40 for k in range(120)], True),
        ("client no", [f"c{k % 12}" for k in range(120)], True),
        ("customer_id", [k % 9 for k in range(120)], False),  # too few to tell people apart
        ("town", [f"t{k % 60}" for k in range(120)], False),
        ("income", [1000 + 7 * (k % 90) for k in range(120)], False),
        ("paid", [k % 90 for k in range(120)], False),
    ],
)
def test_lint_of_ids_that_come_more_than_once(name: str, values: list[Any], is_id: bool) -> None:
    remarks = Schema.infer(X := pd.DataFrame({name: values})).lint(X)
    assert any("seems to be an id" in remark for remark in remarks) == is_id
    assert not is_id or not any("categories: group" in remark for remark in remarks)


def test_lint_of_a_column_of_0_and_1_says_nothing_about_less() -> None:
    X = pd.DataFrame({"education_Masters": [0, 1] * 6, "education_years": [k % 5 for k in TWELVE]})
    (remark,) = Schema.infer(X).lint(X)
    assert remark == "'education_years' can go down: set direction to 'increase'"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("marital-status", "private life"),
        ("family_status", "private life"),
        ("relationship", "private life"),
        ("credit_history", "about the past"),
        ("priors_count", "about the past"),
        ("num_delinquencies", "about the past"),
    ],
)
def test_lint_of_what_a_lender_may_not_ask_for(name: str, why: str) -> None:
    schema = Schema(features=(Feature(name=name, kind="category", categories=("a", "b")),))
    (remark,) = schema.lint()
    assert remark.startswith(f"'{name}' is mutable, but")
    assert why in remark
    assert schema.with_feature(name, role="immutable").lint() == []
    assert schema.lint(locked=[name]) == []
    assert schema.lint(locked=["another"]) == [remark]


def test_two_columns_of_dates_are_one_error() -> None:
    day = pd.to_datetime(["2020-01-31", "2021-12-01"])
    X = pd.DataFrame({"born": day, "n": [1, 2], "asked": day})
    with pytest.raises(UserError, match=r"columns 'born' \(datetime64.*'asked' .*convert them"):
        Schema.infer(X)


def test_an_immutable_feature_is_a_role() -> None:
    schema = Schema(features=(number(),))
    with pytest.raises(UserError, match=r"no key 'immutable'.*set role='immutable'"):
        schema.with_feature("n", immutable=True)


def test_lint_with_another_table() -> None:
    with pytest.raises(UserError, match=r"lacks the column\(s\) \['n'\]; it has \['m'\]"):
        Schema(features=(number(),)).lint(pd.DataFrame({"m": [1]}))
