"""GenReMethod, driven through the interface of RecourseBench by a stand-in of it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genrecourse import GenRe, UserError, load_dataset
from genrecourse.compat import recourse_bench as ours

# a fact about the table, which the contract of GenRe tests
pytestmark = pytest.mark.filterwarnings("ignore:.*rejected rows have no accepted row")

STAND_IN = Path(__file__).parent / "stand_in"
QUICK = GenRe._test_params()
ACTIONABILITY = {
    "german": {
        "age": "same-or-increase",
        "credit_amount": "same-or-decrease",
        "foreign_worker": "same",
        "job": "none",
    },
    "adult": {"age": "same-or-increase", "race": "same", "hours_per_week": "any"},
}
IMMUTABLE = ("personal_status_sex", "sex")


def test_without_the_package_the_class_is_plain() -> None:
    assert "recourse_bench" not in sys.modules
    assert ours.GenReMethod.__mro__ == (ours.GenReMethod, object)  # it stands before `bench`


@pytest.fixture(scope="module")
def bench() -> Iterator[ModuleType]:
    """The stand-in, importable as `recourse_bench`, with our method registered in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(STAND_IN)
        package = importlib.import_module("recourse_bench")
        importlib.reload(ours)
        yield package
    del sys.modules["recourse_bench"]
    importlib.reload(ours)


def raw(bench: ModuleType, name: str, rows: int) -> Any:
    """A data set of RecourseBench, made of one of ours."""
    data = load_dataset(name)
    table = data.X_train.assign(label=data.y_train.astype(int)).head(rows).reset_index(drop=True)
    table = table.dropna().set_index(np.arange(len(table.dropna())) * 3 + 7)
    stated = ACTIONABILITY[name]
    kinds = {f.name: "categorical" if f.is_category else "numerical" for f in data.schema}
    return bench.Dataset(
        table,
        "label",
        raw_feature_type=kinds | {"label": "binary"},
        raw_feature_mutability={c: c not in (*IMMUTABLE, "label") for c in table},
        raw_feature_actionability={c: stated.get(c, "any") for c in table} | {"label": "none"},
    )


def trained(bench: ModuleType, data: Any) -> Any:
    model = bench.Model()
    model.fit(data)
    return model


def rejected(model: Any, data: Any, n: int) -> Any:
    X = data.get()
    number = model.get_prediction(X).detach().numpy().argmax(axis=1)
    return data.with_rows(data._rows[number == 0].head(n))


@pytest.mark.parametrize(
    "name", ["german", pytest.param("adult", marks=pytest.mark.needs_downloads("adult"))]
)
def test_it_runs_end_to_end(bench: ModuleType, name: str) -> None:
    data = bench.encoded(raw(bench, name, 500))
    model = trained(bench, data)
    people = rejected(model, data, 45)  # three batches, the last one not full
    method = bench.REGISTRY["genre"](target_model=model, seed=3, desired_class=1, **QUICK)
    assert type(method) is ours.GenReMethod
    assert issubclass(ours.GenReMethod, bench.MethodObject)
    assert (method._seed, method._device, method._desired_class) == (3, "cpu", 1)
    assert (method._need_grad, method._is_trained) == (False, False)
    with pytest.raises(RuntimeError, match="not trained"):
        method.predict(people)
    method.fit(data)
    after = method.predict(people).drop(columns="label")
    before = people.get()
    assert after.index.equals(before.index)
    assert list(after.columns) == list(before.columns)
    found = after.notna().all(axis=1)
    assert after[~found].isna().all(axis=None)
    assert found.mean() > 0.8
    assert (model.get_prediction(after[found]).detach().numpy().argmax(axis=1) == 1).all()
    assert bench.violations(data, before[found], after[found]) == []
    # a person's row does not depend on who else is asked about
    alone = method.get_counterfactuals(before.iloc[[4]])
    pd.testing.assert_frame_equal(alone, after.iloc[[4]])


# ---- a small table, on which every rule is easy to see ------------------------------------------

RULES = {"debt": "any", "age": "any", "grade": "any", "income": "any", "job": "any"}


def loans(bench: ModuleType, **action: str) -> Any:
    rng = np.random.default_rng(0)
    n = 240
    table = pd.DataFrame(
        {
            "debt": rng.integers(0, 50, n),
            "age": rng.integers(20, 70, n),
            "grade": rng.choice(["a", "b", "c"], n),
            "income": rng.integers(0, 100, n),
            "job": rng.choice(["cook", "nurse"], n),
        }
    )
    good = table["income"] - table["debt"] + 30 * table["grade"].map({"a": 0, "b": 1, "c": 2}) > 60
    kinds = dict.fromkeys(table, "numerical") | {"grade": "categorical", "job": "categorical"}
    return bench.Dataset(
        table.assign(label=good.astype(int)),
        "label",
        raw_feature_type=kinds | {"label": "binary"},
        raw_feature_mutability=dict.fromkeys(table, True) | {"label": False},
        raw_feature_actionability=RULES | action | {"label": "none"},
    )


def answered(bench: ModuleType, data: Any, **given: Any) -> tuple[pd.DataFrame, pd.DataFrame, Any]:
    model = trained(bench, data)
    people = given.pop("people", None) or rejected(model, data, 30)
    method = ours.GenReMethod(model, **{"desired_class": 1} | given | QUICK)
    method.fit(data)
    return people.get(), method.get_counterfactuals(people.get()), model


@pytest.mark.parametrize("how", ["onehot", "thermometer", "mapping"])
def test_every_encoding_is_kept(bench: ModuleType, how: str) -> None:
    only = dict.fromkeys(("debt", "age", "income", "job"), "same")
    grade = "any" if how == "onehot" else "same-or-increase"
    data = bench.encoded(loans(bench, grade=grade, **only), how)
    before, after, _ = answered(bench, data)
    found = after.notna().all(axis=1)
    assert 3 <= found.sum() < len(found)  # the grade alone does not help everybody
    assert bench.violations(data, before[found], after[found]) == []
    columns = data.encoding["grade"]
    assert (before.loc[found, columns] != after.loc[found, columns]).any(axis=1).all()


@pytest.mark.parametrize("grade", ["any", "increase"])
def test_what_must_move_moves(bench: ModuleType, grade: str) -> None:
    """RecourseBench counts a value that stays as a violation of "increase" and of "decrease"."""
    data = bench.encoded(loans(bench, age="increase", debt="decrease", grade=grade), "thermometer")
    before, after, _ = answered(bench, data)
    found = after.notna().all(axis=1)
    assert found.mean() > 0.3
    assert bench.violations(data, before[found], after[found]) == []
    # nobody is at the end of a scale who was given a row
    assert (before.loc[found, "age"] < 1).all()
    assert (before.loc[found, "debt"] > 0).all()
    if grade == "any":  # and nobody goes without who could move
        able = (before["age"] < 1) & (before["debt"] > 0)
        assert found[able].mean() > 0.9


@pytest.mark.parametrize(
    "rules",
    [
        {"debt": "same-or-increase", "income": "same-or-increase"},  # what would help is forbidden
        {"income": "decrease", "job": "same"},  # what must move makes it worse
    ],
)
def test_rules_against_the_model(bench: ModuleType, rules: dict[str, str]) -> None:
    data = bench.encoded(loans(bench, **rules), "onehot")
    before, after, model = answered(bench, data)
    found = after.notna().all(axis=1)
    assert found.any()
    assert bench.violations(data, before[found], after[found]) == []
    assert (model.get_prediction(after[found]).detach().numpy().argmax(axis=1) == 1).all()


def test_a_move_that_the_model_refuses_is_not_made(bench: ModuleType) -> None:
    class Steps:
        def get_prediction(self, X: pd.DataFrame, proba: bool) -> np.ndarray:
            good = 0.1 + 0.3 * (X["debt"] < 25) + 0.2 * (X["income"] > 20)
            return np.stack([1 - good, good], axis=1)

    data = loans(bench, income="decrease")
    data = data.with_rows(data._rows.assign(income=data._rows["income"] % 3 * 10 + 10))
    method = ours.GenReMethod(Steps(), desired_class=1, **QUICK)
    method.fit(data)
    people = data.get().query("debt > 30 and income > 10").head(30)
    after = method.get_counterfactuals(people)
    found = after.notna().all(axis=1)
    assert not found.any()  # below 30 comes 20, and the model wants more than 20
    more = people.assign(income=40)
    after = method.get_counterfactuals(more)
    assert (after["income"].dropna() == 30).all()
    assert after.notna().all(axis=1).mean() > 0.8


def test_without_a_desired_class_everybody_gets_the_other_one(bench: ModuleType) -> None:
    data = bench.encoded(loans(bench))
    some = data.with_rows(data._rows.head(40))
    before, after, model = answered(bench, data, desired_class=None, people=some)
    found = after.notna().all(axis=1)
    was, becomes = (
        model.get_prediction(rows[found]).detach().numpy().argmax(axis=1)
        for rows in (before, after)
    )
    assert set(was) == {0, 1}
    assert (becomes == 1 - was).all()
    assert found.mean() > 0.8


def test_who_is_in_the_class_stays(bench: ModuleType) -> None:
    data = bench.encoded(loans(bench))
    some = data.with_rows(data._rows.head(40))
    before, after, model = answered(bench, data, people=some)
    there = model.get_prediction(before).detach().numpy().argmax(axis=1) == 1
    assert 0 < there.sum() < 40
    pd.testing.assert_frame_equal(after[there], before[there])


def test_three_classes(bench: ModuleType) -> None:
    data = loans(bench)
    rows = data._rows.assign(label=pd.cut(data._rows["income"], [-1, 30, 60, 100], labels=False))
    data = bench.encoded(data.with_rows(rows))
    _, after, model = answered(bench, data, desired_class=2)
    found = after.notna().all(axis=1)
    assert found.mean() > 0.8
    assert (model.get_prediction(after[found]).detach().numpy().argmax(axis=1) == 2).all()
    with pytest.raises(UserError, match="only with two classes"):
        answered(bench, data, desired_class=None)


def test_the_score_is_above_a_half_for_the_most_probable_class() -> None:
    class Thirds:
        def get_prediction(self, X: pd.DataFrame, proba: bool) -> np.ndarray:
            return np.array([[0.40, 0.35, 0.25], [0.35, 0.25, 0.40], [0.0, 1.0, 0.0]])

    X = pd.DataFrame({"income": [1.0, 2.0, 3.0]})
    about = ours.Columns({"income": "numerical"}, {"income": True}, {"income": "any"}, {})
    target = ours.Target(Thirds(), ours.Table(X, about), pd.Series([0, 1, 2]))
    for place in range(3):
        assert ((target.score(X, place) > 0.5) == (target.predicted(X) == place)).all()


def test_raw_columns_and_a_plain_model(bench: ModuleType) -> None:
    """Nothing encoded, a model without class numbers that returns arrays, and a row of text."""

    class Plain:
        def get_prediction(self, X: pd.DataFrame, proba: bool) -> np.ndarray:
            good = 1 / (1 + np.exp(-(X["income"] - X["debt"] - 40) / 5 - (X["job"] == "nurse")))
            return np.stack([1 - good, good], axis=1)

    data = loans(bench)
    method = ours.GenReMethod(Plain(), desired_class=1, **QUICK)
    method.fit(data)
    people = data.get().head(30)
    after = method.get_counterfactuals(people)
    found = after.notna().all(axis=1)
    assert found.mean() > 0.8
    assert (Plain().get_prediction(after[found], proba=True)[:, 1] > 0.5).all()
    assert set(after.loc[found, "job"]) <= {"cook", "nurse"}


@given(levels=st.lists(st.integers(0, 3), min_size=1, max_size=20))
@settings(max_examples=30, deadline=None)
def test_a_thermometer_is_read_and_written(levels: list[int]) -> None:
    columns = [f"grade_therm_{k}" for k in range(4)]
    steps = (np.array(levels)[:, None] >= np.arange(4)).astype(float)
    X = pd.DataFrame(steps, columns=columns).assign(income=1.5)[["income", *columns]]
    kinds = dict.fromkeys(X, "numerical")
    about = ours.Columns(kinds, dict.fromkeys(X, True), dict.fromkeys(X, "any"), {"grade": columns})
    table = ours.Table(X, about)
    T = table.read(X)
    assert T["grade"].tolist() == levels
    pd.testing.assert_frame_equal(table.write(T), X)


def change(data: Any, **attributes: Any) -> Any:
    vars(data).update(attributes)
    return data


def test_what_cannot_be_honoured_is_refused(bench: ModuleType) -> None:
    data = bench.encoded(loans(bench))
    model = trained(bench, data)

    def fit(data: Any, **given: Any) -> None:
        ours.GenReMethod(model, **{"desired_class": 1} | given).fit(data)

    with pytest.raises(UserError, match=r"desired_class is 7; the classes .* \[0, 1\]"):
        fit(data, desired_class=7)
    with pytest.raises(UserError, match="train_set is None"):
        fit(None)
    with pytest.raises(UserError, match="computes on cpu and the method on cuda"):
        fit(data, device="cuda")
    with pytest.raises(UserError, match="n_drws"):
        fit(data, n_drws=3)
    known = data.attr("encoded_feature_actionability")
    wrong = change(bench.encoded(loans(bench)), encoded_feature_actionability=known | {"age": "up"})
    with pytest.raises(UserError, match="actionability of 'age' is 'up'"):
        fit(wrong)
    split = known | {"job_cat_cook": "same"}
    with pytest.raises(UserError, match="columns of 'job' differ"):
        fit(change(bench.encoded(loans(bench)), encoded_feature_actionability=split))
    with pytest.raises(UserError, match="category without an order"):
        fit(bench.encoded(loans(bench, grade="increase")))
    lost = {"encoded_feature_mutability": {}, "raw_feature_mutability": {}}
    with pytest.raises(UserError, match="says nothing of the mutability"):
        fit(change(bench.encoded(loans(bench)), **lost))
    other = {"grade": ["debt", "age"], "job": data.encoding["job"]}
    with pytest.raises(UserError, match="neither one-hot"):
        fit(change(bench.encoded(loans(bench)), encoding=other))
    half = {"job": [*data.encoding["job"], "job_cat_pilot"]}
    with pytest.raises(UserError, match="lacks columns of 'job'"):
        fit(change(bench.encoded(loans(bench)), encoding=half))
