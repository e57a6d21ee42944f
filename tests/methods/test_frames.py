"""Every verb reads polars, pyarrow and arrays as it reads pandas, and answers in their kind."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from genrecourse import (
    METHODS,
    Classifier,
    GenRe,
    NearestNeighbour,
    Policy,
    Rules,
    Schema,
    UserError,
    audit,
    discover_relations,
    load,
    reasons,
)
from genrecourse.compat.dice import Dice
from genrecourse.genre.model import NetConfig
from genrecourse.methods.genre import Training
from genrecourse.table.frames import kind_of, to_pandas

N = 90
SMALL = NetConfig(width=8, heads=2, feedforward=8, encoder_layers=1, decoder_layers=1)
rng = np.random.default_rng(0)


def some(levels: list[Any]) -> list[Any]:
    return [levels[k] for k in rng.integers(len(levels), size=N)]


# in each column, h accepts the cells for which `good` is True; some rows are missing in some
ENUM = pl.Enum(["low", "mid", "high"])
COLUMNS: dict[str, pl.Series] = {
    "whole": pl.Series(some([0, 1, 2, 3]), dtype=pl.Int16),
    "whole with nulls": pl.Series(some([0, 1, 2, None]), dtype=pl.Int32),
    "real": pl.Series(some([0.25, 0.5, 1.25, 3.75])),
    "real with nulls": pl.Series(some([0.25, 1.5, 3.75, None])),
    "single": pl.Series(some([0.1, 1.7, 3.3]), dtype=pl.Float32),
    "flag": pl.Series(some([True, False])),
    "flag with nulls": pl.Series(some([True, False, None])),
    "text": pl.Series(some(["bad", "good", "soso"])),
    "text with nulls": pl.Series(some(["bad", "good", None])),
    "levels": pl.Series(some(["bad", "good"]), dtype=pl.Categorical),
    "levels with nulls": pl.Series(some(["bad", "good", None]), dtype=pl.Categorical),
    "Enum": pl.Series(some(["low", "mid", "high"]), dtype=ENUM),
}


def good(cell: Any) -> bool:
    if cell is None or cell is pd.NA or cell != cell:
        return False
    return cell in ("good", "high") if isinstance(cell, str) else cell >= 1


class Seen:
    """An h that looks at one column of a table of any kind, and notes the kind and the type."""

    def __init__(self, name: str):
        self.name, self.kinds, self.types = name, set[str](), set[str]()

    def __call__(self, X: Any) -> np.ndarray:
        self.kinds.add(kind_of(X))
        if isinstance(X, np.ndarray):
            cells = X[:, 0].tolist()
        else:
            column = X[self.name]
            self.types.add(str(column.type if isinstance(X, pa.Table) else column.dtype))
            cells = column.to_pylist() if isinstance(X, pa.Table) else column.to_list()
        return np.array([0.9 if good(cell) else 0.1 for cell in cells])


def table(name: str) -> pl.DataFrame:
    return pl.DataFrame({name: COLUMNS[name], "other": np.arange(N) / 4})


def in_package(X: pl.DataFrame, package: str) -> Any:
    if package == "array":
        return X.to_numpy() if X.dtypes[0].is_numeric() else to_pandas(X).to_numpy(dtype=object)
    return {"polars": X, "pyarrow": X.to_arrow(), "pandas": to_pandas(X)}[package]


def as_pandas(own: Any, schema: Schema) -> pd.DataFrame:
    """The table as people write it who have pandas alone."""
    X = pd.DataFrame(own, columns=schema.columns) if isinstance(own, np.ndarray) else to_pandas(own)
    for name in X.columns:
        if X[name].dtype == "Float64":
            X[name] = X[name].astype(float)
        elif X[name].dtype in ("boolean", "object"):
            X[name] = X[name].astype(object).where(X[name].notna(), None)
    return X.infer_objects()


PACKAGES = ["polars", "pyarrow", "array"]


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("name", list(COLUMNS))
def test_plans_and_recourse_are_those_of_the_same_pandas_table(name: str, package: str) -> None:
    X, own = table(name), in_package(table(name), package)
    schema, seen, seen_pandas = Schema.infer(X), Seen(name), Seen(name)
    pandas = as_pandas(own, schema)
    assert schema == Schema.infer(to_pandas(X))
    method = NearestNeighbour(seen, schema).fit(own)
    other = NearestNeighbour(seen_pandas, schema).fit(pandas)
    few = in_package(X.head(30), package)

    plans, expected = method.plans(few, n=2), other.plans(pandas.head(30), n=2)
    assert plans.to_json() == expected.to_json()
    assert {plan.status for plan in plans} == {"ok", "already-accepted"}
    assert plans.of(3).person == 3

    found, wanted = method.recourse(own), other.recourse(pandas)
    assert type(found) is type(own)
    pd.testing.assert_frame_equal(
        to_pandas(found, schema), wanted, check_dtype=False, check_categorical=False
    )
    assert not to_pandas(found, schema).equals(to_pandas(own, schema))
    if package == "array":
        assert (found.shape, found.dtype) == (own.shape, own.dtype)
    else:
        assert found.schema == own.schema
    assert seen.kinds == {kind_of(own)}
    assert seen_pandas.kinds == {"pandas"}
    if package == "polars":
        # noise on a plan makes a column of whole numbers one of others
        assert seen.types - {"Float64"} == {str(COLUMNS[name].dtype)} - {"Float64"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_model_is_shown_what_fit_was_given_also_from_a_file(package: str) -> None:
    X = table("real with nulls")
    own, schema, seen = in_package(X, package), Schema.infer(X), Seen("real with nulls")
    method = NearestNeighbour(seen, schema).fit(own)
    with tempfile.TemporaryDirectory() as folder:
        method.save(folder)
        again = load(folder, classifier=seen)
    wanted = method.plans(own).to_json()
    seen.kinds.clear()
    for other in ("pandas", *PACKAGES):
        people = in_package(X, other)
        assert again.plans(people).to_json() == wanted
        assert type(again.recourse(people)) is type(people)
        again.classifier_.accepts(people)
    assert seen.kinds == {kind_of(own)}


def test_a_file_of_a_pandas_model_says_nothing_of_kinds(tmp_path: Any) -> None:
    NearestNeighbour(Seen("flag")).fit(to_pandas(table("flag"))).save(tmp_path / "model")
    text = next((tmp_path / "model").glob("*.json")).read_text()
    assert '"probe"' in text
    assert '"kind": "pandas"' not in text


@pytest.mark.parametrize("package", ["pandas", *PACKAGES])
def test_outcomes_may_be_of_any_package(package: str) -> None:
    X = table("real").with_columns(other=pl.lit(1.0))
    y = ["yes" if good(cell) else "no" for cell in X["real"]]
    outcomes = {"polars": pl.Series(y), "pyarrow": pa.chunked_array([y]), "array": np.array(y)}
    seen, schema = Classifier(Seen("real"), favourable="yes"), Schema.infer(X)
    method = NearestNeighbour(seen, schema)
    found = method.fit(in_package(X, package), outcomes.get(package, y))
    wanted = method.fit(to_pandas(X), y)
    assert found.planning_.outcomes is not None
    assert wanted.planning_.outcomes is not None
    assert (found.planning_.outcomes.favourable == wanted.planning_.outcomes.favourable).all()
    with pytest.raises(UserError, match="y has 1 missing outcome"):
        method.fit(X, pl.Series([None, *y[1:]]))


def test_copies_of_an_estimator_learn_from_the_kind_that_it_learned_from() -> None:
    X = pl.DataFrame({"a": np.arange(N) / 9, "b": np.arange(N)[::-1] / 7}).to_numpy()
    y = (X[:, 0] > 5).astype(int)
    model = LogisticRegression().fit(X, y)  # warns if it is shown names of columns
    schema = Schema.infer(pl.DataFrame(X, schema=["a", "b"]))
    method = GenRe(model, schema, net=SMALL, training=Training(steps=2, batch_size=16)).fit(X, y)
    assert method.fit_report_["voters"]["are"] == "copies of the model"
    assert method.plans(X[:3])[0].status == "ok"


@pytest.fixture(scope="module")
def genre() -> tuple[GenRe, GenRe, pl.DataFrame]:
    X = table("Enum").with_columns(COLUMNS["whole with nulls"].alias("more"))
    how: dict[str, Any] = {
        "net": SMALL,
        "training": Training(steps=3, batch_size=16),
        "distill": False,
        "gamma": 0.5,
    }
    polars = GenRe(Seen("Enum"), **how).fit(X)
    return polars, GenRe(Seen("Enum"), **how).fit(to_pandas(X)), X


@pytest.mark.parametrize("package", PACKAGES)
def test_draws_and_densities(genre: tuple[GenRe, GenRe, pl.DataFrame], package: str) -> None:
    method, other, X = genre
    own, pandas = in_package(X.head(4), package), to_pandas(X.head(4))
    found, wanted = method.sample(own, n=3), other.sample(pandas, n=3)
    assert type(found) is type(own)
    if package == "array":
        assert found.shape == (12, 3)
        rows = to_pandas(found, method.schema_)
    else:
        labels = to_pandas(found)[["row", "draw"]].to_numpy().tolist()
        assert [tuple(each) for each in labels] == wanted.index.tolist()
        rows = to_pandas(found).drop(columns=["row", "draw"])
    if package == "polars":
        assert dict(list(found.schema.items())[2:]) == dict(X.schema)
    wanted = wanted.reset_index(drop=True)
    pd.testing.assert_frame_equal(rows, wanted, check_dtype=False, check_categorical=False)
    pd.testing.assert_frame_equal(method.draws(own, n=4), other.draws(pandas, n=4))
    pd.testing.assert_series_equal(method.log_prob(own, own), other.log_prob(pandas, pandas))
    assert method.sample(own[:0] if package != "pyarrow" else own.slice(0, 0)).shape[0] == 0


def test_a_column_called_row_has_no_room_in_draws(
    genre: tuple[GenRe, GenRe, pl.DataFrame],
) -> None:
    X = table("whole").rename({"other": "row"})
    how: dict[str, Any] = {"net": SMALL, "training": Training(steps=1, batch_size=16)}
    method = GenRe(Seen("whole"), distill=False, gamma=0.5, **how).fit(X)
    with pytest.raises(UserError, match="the table has a column 'row' of its own"):
        method.sample(X.head(2))
    assert list(method.sample(to_pandas(X.head(2))).columns) == ["whole", "row"]


@pytest.mark.filterwarnings("ignore:.*has no gradients in this encoding")
@pytest.mark.parametrize("package", PACKAGES)
def test_the_other_verbs(package: str) -> None:
    X = table("whole")
    own, schema = in_package(X, package), Schema.infer(X)
    pandas = as_pandas(own, schema)
    method = NearestNeighbour(Seen("whole"), schema).fit(pandas)
    x_plus = method.recourse(own)
    expected = method.assess(pandas, method.recourse(pandas))
    pd.testing.assert_frame_equal(method.assess(own, x_plus), expected)
    rejected = X.filter(pl.col("whole") == 0).head(3)
    few = in_package(rejected, package)
    pandas_few = as_pandas(few, schema)
    assert [each.to_dict() for each in reasons(method, few)] == [
        each.to_dict() for each in reasons(method, pandas_few)
    ]
    assert schema.lint(own) == schema.lint(pandas)
    assert [*map(str, discover_relations(own, schema))] == [
        *map(str, discover_relations(pandas, schema))
    ]
    found, wanted = (audit(method, each, "whole", n_boot=100) for each in (own, pandas))
    pd.testing.assert_frame_equal(found.to_frame(), wanted.to_frame())
    rules = {2: Rules(lock=["whole"])}
    assert method.plans(few, rules=rules).to_json() == (
        method.plans(pandas_few, rules=rules).to_json()
    )
    plans = method.plans(few)
    assert plans.to_dice_json(few) == plans.to_dice_json(pandas_few)
    answer = Dice(method).generate_counterfactuals(few, 1, 1)
    assert len(answer.cf_examples_list) == 3
    several = METHODS["dice"](Seen("whole"), schema, steps=2).fit(pandas).several(own, k=2)
    assert type(several) is type(own)
    assert several.shape[0] == 2 * N


def test_a_policy_reads_and_splits_other_tables() -> None:
    X = table("whole").with_columns(risk=pl.Series(["good", "bad"] * (N // 2)))
    policy = Policy.of(
        decision={"target": "risk", "favourable": "good"}, features={"other": {"role": "immutable"}}
    )
    assert policy.schema(X)["other"].role == "immutable"
    assert policy.schema(X) == policy.schema(to_pandas(X))
    assert policy.lint(X) == policy.lint(to_pandas(X))
    features, y = policy.split(X)
    assert isinstance(y, pl.Series)
    assert features.columns == ["whole", "other"]
    assert policy.split(features)[1] is None


def test_columns_that_the_schema_does_not_know_come_back_as_they_are() -> None:
    X = table("text")
    method = NearestNeighbour(Seen("text")).fit(X)
    days = pl.Series([[k] for k in range(N)])
    people = X.with_columns(days=days, when=pl.date(2026, 11, 19)).select(
        "when", "text", "other", "days"
    )
    with pytest.warns(UserWarning, match="2 columns that the model does not read"):
        found = method.recourse(people)
    assert found.schema == people.schema
    assert found.select("when", "days").equals(people.select("when", "days"))


def test_the_status_is_a_column_and_an_array_has_no_room_for_it() -> None:
    X = table("whole")
    schema = Schema.infer(X)
    method = NearestNeighbour(Seen("whole"), schema).fit(X)
    strange = X.with_columns(whole=pl.Series([None, *X["whole"].to_list()[1:]], dtype=pl.Int16))
    found = method.recourse(strange, status=True)
    assert found["status"][0] == "unreadable"
    assert found["whole"][0] is None
    assert found.schema == {**X.schema, "status": pl.String}
    with pytest.raises(UserError, match="an array has no room for a column 'status'"):
        method.recourse(X.to_numpy(), status=True)


def test_a_row_that_cannot_be_read_keeps_its_cells() -> None:
    X = table("text")
    method = NearestNeighbour(Seen("text")).fit(X)
    odd = X.with_columns(text=pl.Series(["pilot", *X["text"].to_list()[1:]]))
    with pytest.warns(UserWarning, match="1 of 90 rows cannot be read"):
        found = method.recourse(odd)
    assert found.row(0) == odd.row(0)
    assert method.plans(odd)[0].status == "unreadable"


# ---- dtypes of pandas ----------------------------------------------------------------------------

NULLABLE = {
    "whole with nulls": ["Int64", "Int16", "int64[pyarrow]"],
    "real with nulls": ["Float64", "Float32", "double[pyarrow]"],
    "flag with nulls": ["boolean", "bool[pyarrow]"],
    "text with nulls": ["string", "string[pyarrow]", "str", "object", "category"],
}


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name, each in NULLABLE.items() for dtype in each]
)
def test_nullable_dtypes_come_back(name: str, dtype: str) -> None:
    cells = pd.Series(COLUMNS[name].to_list(), dtype=object)
    X = pd.DataFrame({name: cells.astype(dtype), "other": np.arange(N) / 4})
    method = NearestNeighbour(Seen(name)).fit(X)
    found = method.recourse(X)
    assert found.dtypes.tolist() == X.dtypes.tolist()
    assert all(good(cell) for cell in found[name])
    assert not all(good(cell) for cell in X[name])


def test_an_ordered_category_keeps_its_order() -> None:
    dtype = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    X = pd.DataFrame({"grade": pd.Series(some(["low", "mid", "high"]), dtype=dtype)})
    X["other"] = np.arange(N) / 4
    found = NearestNeighbour(Seen("grade")).fit(X).recourse(X)
    assert found["grade"].dtype == dtype
    assert set(found["grade"]) == {"high"}


# ---- a Classifier alone --------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["pandas", *PACKAGES])
def test_a_classifier_alone_shows_its_model_the_table_itself(package: str) -> None:
    X, seen = in_package(table("whole"), package), Seen("whole")
    wanted = [good(cell) for cell in COLUMNS["whole"]]
    assert Classifier(seen).accepts(X).tolist() == wanted
    assert seen.kinds == {kind_of(X)}


def test_a_classifier_alone_refuses_what_is_no_table() -> None:
    with pytest.raises(UserError, match="expected a table, got list"):
        Classifier(Seen("whole")).score([[1, 2]])
