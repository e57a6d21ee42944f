"""DiCE's format and calls. The reader of dice-ml itself runs where its environment is installed."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import genrecourse
from benchmarks.peers import environments
from genrecourse import GenRe, NearestNeighbour, Plans, Schema, UserError, load_dataset
from genrecourse.compat.dice import Dice, rules_of
from genrecourse.planning.dice_format import (
    DiceAnswer,
    dice_answers,
    dice_json,
    summary_importance,
)

ROOT = Path(__file__).parents[2]
# dice-ml has an environment of its own, made by `python -m benchmarks.peers.environments`
needs_dice = pytest.mark.skipif(
    not environments.is_installed("dice-ml"), reason="dice-ml is not installed under .venv-peers"
)
pytestmark = pytest.mark.filterwarnings("ignore:.*rejected rows have no accepted row")


@pytest.fixture(scope="module")
def german() -> GenRe:
    data = load_dataset("german")
    rows = slice(0, 400)
    return GenRe(None, data.schema, **GenRe._test_params()).fit(
        data.X_train.iloc[rows], data.y_train[rows]
    )


@pytest.fixture(scope="module")
def people(german: GenRe) -> pd.DataFrame:
    X = load_dataset("german").X_test
    accepted = german.classifier_.accepts(X)
    some = pd.concat([X[~accepted].head(7), X[accepted].head(1)])
    some.iloc[0, some.columns.get_loc("purpose")] = some["purpose"].iloc[1]
    return some


@pytest.fixture(scope="module")
def plans(german: GenRe, people: pd.DataFrame) -> Plans:
    """Of seven rejected people, of whom the last may change nothing, and of an accepted one."""
    label = people.index[6]
    locked = {label: {"lock": [f.name for f in german.schema_ if f.role == "mutable"]}}
    found = german.plans(people, n=3, rules=locked)
    assert [plan.status for plan in found][-3:] == ["ok", "no-plan", "already-accepted"]
    return found


# ---- the format ---------------------------------------------------------------------------------

number, names = (int, float), list
# the fields of dice-ml's format 2.0 as it documents them, and what each may be
FIELDS: dict[str, Callable[[Any], bool]] = {
    "cfs_list": lambda v: all(each is None or isinstance(each, list) for each in v),
    "test_data": lambda v: all(isinstance(each, list) and len(each) == 1 for each in v),
    "local_importance": lambda v: v is None or all(isinstance(each, list) for each in v),
    "summary_importance": lambda v: v is None or all(isinstance(each, number) for each in v),
    "feature_names": lambda v: all(isinstance(each, str) for each in v),
    "feature_names_including_target": lambda v: all(isinstance(each, str) for each in v),
    "model_type": lambda v: v == "classifier",
    "desired_class": lambda v: v == 1,
    "desired_range": lambda v: v is None,
    "data_interface": lambda v: set(v) == {"outcome_name", "data_df"},
    "metadata": lambda v: v == {"version": "2.0"},
}


def check_format(data: dict[str, Any]) -> None:
    assert set(data) == set(FIELDS)
    assert [name for name, fits in FIELDS.items() if not fits(data[name])] == []
    named, n = data["feature_names"], len(data["test_data"])
    assert data["feature_names_including_target"][:-1] == named
    assert data["feature_names_including_target"][-1] == data["data_interface"]["outcome_name"]
    assert len(data["cfs_list"]) == n
    rows = [row for each in data["cfs_list"] + data["test_data"] for row in each or ()]
    assert {len(row) for row in rows} == {len(named) + 1}
    if data["local_importance"] is not None:
        assert [len(each) for each in data["local_importance"]] == [len(named)] * n
    if data["summary_importance"] is not None:
        assert len(data["summary_importance"]) == len(named)


def test_the_json_has_the_fields_of_the_format(plans: Plans, people: pd.DataFrame) -> None:
    data = json.loads(plans.to_dice_json(people))
    check_format(data)
    assert [row[-1] for (row,) in data["test_data"]] == [0] * 7 + [1]
    for plan, (own,), found in zip(plans, data["test_data"], data["cfs_list"], strict=True):
        assert own[:-1] == people.loc[plan.person, data["feature_names"]].tolist()
        if plan.status != "ok":
            assert found is None
            continue
        assert [row[-1] for row in found] == [1] * len(plan.every)
        for each, row in zip(plan.every, found, strict=True):
            x_plus = dict(zip(data["feature_names"], row, strict=False))
            assert each.row is not None
            assert x_plus == each.row.to_dict()
            differ = [name for name in x_plus if x_plus[name] != people.loc[plan.person, name]]
            assert sorted(differ) == sorted(change.feature.name for change in each.changes)


def test_the_importance_is_a_share_of_plans(plans: Plans, people: pd.DataFrame) -> None:
    data = json.loads(plans.to_dice_json(people))
    every = [each for plan in plans for each in plan.every]
    for j, name in enumerate(data["feature_names"]):
        times = [[name in {c.feature.name for c in p.changes} for p in q.every] for q in plans]
        local = [sum(own) / len(own) if own else 0.0 for own in times]
        assert [each[j] for each in data["local_importance"]] == pytest.approx(local)
        assert data["summary_importance"][j] == pytest.approx(sum(map(sum, times)) / len(every))


def test_the_table_is_needed_only_for_people_without_a_plan(
    plans: Plans, people: pd.DataFrame
) -> None:
    served = Plans(tuple(plan for plan in plans if plan.status == "ok"))
    mine = people.loc[[plan.person for plan in served]]
    assert served.to_dice_json() == served.to_dice_json(mine)
    assert served.to_dice_json(mine.assign(id=7)) == served.to_dice_json()  # plans have no id
    stored = Plans.from_json(served.to_json())
    assert stored.to_dice_json() == served.to_dice_json()
    with pytest.raises(UserError, match=r"has no plan \(no-plan\).*to_dice_json\(X\)"):
        plans.to_dice_json()
    with pytest.raises(UserError, match="not the table that the plans were made for"):
        plans.to_dice_json(people[::-1])
    with pytest.raises(UserError, match="lacks the columns"):
        plans.to_dice_json(people.drop(columns="purpose"))
    with pytest.raises(UserError, match="expected a table, got int"):
        plans.to_dice_json(3)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="a column 'purpose' of its own"):
        plans.to_dice_json(people, outcome_name="purpose")
    assert json.loads(Plans(()).to_dice_json())["test_data"] == []


def h_of_pets(X: pd.DataFrame) -> np.ndarray:
    return (X["income"].fillna(0) / 100 * (1 - 0.9 * X["pet_cat"])).to_numpy(dtype=float)


def test_missing_values_and_one_hot_columns() -> None:
    X = pd.DataFrame({"income": np.r_[np.nan, np.arange(1.0, 80)], "pet_cat": [1, 0, 0, 0] * 20})
    X["pet_dog"] = 1 - X["pet_cat"]
    first = Schema.infer(X[["income"]])
    pet = {"name": "pet", "kind": "category", "categories": ("cat", "dog")}
    schema = Schema.model_validate(
        {"features": [*first.features, {**pet, "one_hot": ("pet_cat", "pet_dog")}]}
    )
    method = NearestNeighbour(h_of_pets, schema).fit(X)
    some = X.iloc[[0, 60]]  # without an income, and with a cat
    plans = method.plans(some, n=2)
    data = json.loads(plans.to_dice_json(some))
    check_format(data)
    assert data["feature_names"] == ["income", "pet_cat", "pet_dog"]
    assert data["test_data"] == [[[None, 1, 0, 0]], [[60.0, 1, 0, 0]]]
    assert [row[1:] for row in data["cfs_list"][1]] == [[0, 1, 1]] * len(data["cfs_list"][1])
    assert data["local_importance"][1][1:] == [1.0, 1.0]
    # put together from the plans
    assert json.loads(plans.to_dice_json()) == data
    with pytest.raises(UserError, match="do not say which columns hold 'pet'"):
        Plans.from_json(plans.to_json()).to_dice_json()


def test_a_missing_value_is_null_and_may_be_given() -> None:
    own = pd.DataFrame({"income": pd.array([None], dtype="Int64"), "y": [0]})
    after = pd.DataFrame({"income": pd.array([None, 5], dtype="Int64"), "y": [1, 1]})
    answer = DiceAnswer(own, after, "y")
    assert answer.importance == {"income": 0.5}
    data = json.loads(dice_json([answer], "y", None, None))
    assert (data["test_data"], data["cfs_list"]) == ([[[None, 0]]], [[[None, 1], [5, 1]]])


# ---- what people are asked to change ------------------------------------------------------------


def test_a_row_that_cannot_be_read_has_no_place_in_the_format(
    german: GenRe, people: pd.DataFrame
) -> None:
    some = people.head(2).astype(object)
    some.iloc[1, 1] = "much"
    with pytest.raises(UserError, match="cannot be read"):
        german.plans(some).to_dice_json(some)


def test_asked_to_change_counts_people_and_plans(plans: Plans) -> None:
    table = plans.asked_to_change()
    served = [plan for plan in plans if plan.every]
    for name, row in table.iterrows():
        first = [plan for plan in served if name in {c.feature.name for c in plan.changes}]
        every = [p for plan in served for p in plan.every]
        these = [p for p in every if name in {c.feature.name for c in p.changes}]
        assert row[["people", "of_people"]].tolist() == [len(first), len(served)]
        assert row["share_of_people"] == pytest.approx(len(first) / len(served))
        assert row[["plans", "of_plans"]].tolist() == [len(these), len(every)]
        assert row["share_of_plans"] == pytest.approx(len(these) / len(every))
    assert set(table.index) == {c.feature.name for p in plans.shown for c in p.changes}
    assert table["people"].is_monotonic_decreasing
    assert Plans(()).asked_to_change().empty


def test_nobody_is_asked_to_grow_older() -> None:
    X = pd.DataFrame({"income": range(80), "age": list(range(20, 60)) * 2})
    schema = Schema.infer(X).with_feature("age", role="advances", horizon=1)
    method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, schema).fit(X)
    plans = method.plans(X.head(3))
    assert [c.feature.name for c in plans[0].consequences] == ["age"]
    assert plans.asked_to_change().index.tolist() == ["income"]
    # DiCE counts every value that differs
    assert summary_importance(dice_answers(plans, None, "y")) == {"income": 1.0, "age": 1.0}


# ---- the calls ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exp(german: GenRe) -> Dice:
    return Dice(german, outcome_name="credit")


def test_a_call_answers_like_dice(exp: Dice, german: GenRe, people: pd.DataFrame) -> None:
    asked = people.head(6)
    found = exp.generate_counterfactuals(asked, total_CFs=3, desired_class="opposite")
    assert [plan.to_dict() for plan in found.plans] == [
        plan.to_dict() for plan in german.plans(asked, n=3)
    ]
    for each, plan in zip(found.cf_examples_list, found.plans, strict=True):
        pd.testing.assert_frame_equal(
            each.test_instance_df, asked.loc[[plan.person]].assign(credit=0)
        )
        if not plan.every:
            assert each.final_cfs_df is None
            assert each.final_cfs_list is None
            continue
        assert each.final_cfs_df is not None
        X_plus = each.final_cfs_df.drop(columns="credit")
        assert german.classifier_.accepts(X_plus).all()
        assert each.final_cfs_df["credit"].tolist() == [1] * len(plan.every)
        assert each.final_cfs_list is not None
        assert each.final_cfs_list[0][-1] == each.new_outcome == 1
        assert each.final_cfs_df_sparse is each.final_cfs_df
        assert (each.test_pred, each.desired_class, each.model_type) == (0, 1, "classifier")
    assert (found.local_importance, found.summary_importance) == (None, None)
    data = json.loads(found.to_json())
    check_format(data)
    assert data["local_importance"] is None
    assert data["data_interface"]["outcome_name"] == "credit"


def test_limits_become_rules(exp: Dice, people: pd.DataFrame) -> None:
    vary = ["duration", "credit_amount", "purpose", "savings"]
    purposes = ["furniture or equipment", "new car", "used car"]
    known = [value for value in purposes if value in exp.method.schema_["purpose"].categories]
    limits = {"duration": [6, 24], "purpose": known}
    found = exp.generate_counterfactuals(
        people.head(6), total_CFs=2, features_to_vary=vary, permitted_range=limits
    )
    assert any(plan.every for plan in found.plans)
    for each in found.plans.shown:
        for change in each.changes:
            assert change.feature.name in vary
            if change.feature.name == "duration":
                assert 6 <= change.after <= 24
            if change.feature.name == "purpose":
                assert change.after in known
    # the rules of the request come on top
    both = exp.generate_counterfactuals(
        people.head(6), 2, features_to_vary=vary, rules={"lock": ["duration"], "max_changes": 2}
    )
    moved = [{c.feature.name for c in each.changes} for each in both.plans.shown]
    assert all(one <= {*vary} - {"duration"} and len(one) <= 2 for one in moved)


def test_limits_know_roles_and_numpy() -> None:
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [1, 5], "c": ["x", "y"], "d": [2, 4], "age": [3, 9]})
    schema = Schema.infer(X, immutable=["b"])
    schema = schema.with_feature("d", role="derived", formula="2 * a")
    schema = schema.with_feature("age", role="advances", horizon=1)
    rules = rules_of(schema, {"a": np.array([1, 2])}, ["c"])
    assert rules.lock == ("a", "d")  # not what cannot change, and not what time changes
    assert rules.ranges == {"a": (1.0, 2.0)}
    assert rules_of(schema).lock == ()
    for name in ("b", "age"):
        with pytest.raises(UserError, match=f"names '{name}', which nobody can change"):
            rules_of(schema, None, [name])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"desired_class": 0}, "desired_class is 0"),
        ({"desired_class": 2}, "must be 1 or 'opposite'"),
        ({"desired_class": "good"}, "must be 1 or 'opposite'"),
        ({"desired_class": True}, "must be 1 or 'opposite'"),
        ({"total_CFs": 0}, "total_CFs is 0"),
        ({"total_CFs": 1.5}, "total_CFs is 1.5"),
        ({"features_to_vary": []}, "features_to_vary is empty"),
        ({"features_to_vary": "duration"}, "give 'all' or a list"),
        ({"features_to_vary": None}, "give 'all' or a list"),
        ({"features_to_vary": ["durtion"]}, "did you mean 'duration'"),
        ({"permitted_range": {"durtion": [1, 2]}}, "did you mean 'duration'"),
        ({"permitted_range": {"duration": [1]}}, r"is \[1\]; give \[lowest, highest\]"),
        ({"permitted_range": {"duration": 12}}, r"is 12; give \[lowest, highest\]"),
        ({"permitted_range": {"purpose": "new car"}}, "give a list of its values"),
        ({"permitted_range": {"purpose": ["no such"]}}, "none of its levels"),
        ({"permitted_range": {"duration": [24, 6]}}, "the first number must be the smaller"),
        ({"permitted_range": [6, 24]}, "give a mapping"),
        ({"desired_range": [0, 1]}, "no 'desired_range'"),
        ({"stopping_threshold": 0.7}, r"Classifier\(model, cutoff=...\)"),
        ({"posthoc_sparsity_param": 0.3}, "fewest_changes=True"),
        ({"proximity_weight": 0.5}, "lam='any'"),
        ({"random_seed": 1}, "set random_state"),
        ({"total_cfs": 1}, "no option 'total_cfs'"),
        ({"fewest_change": True}, "did you mean 'fewest_changes'"),
    ],
)
def test_what_cannot_be_honoured_is_refused(
    exp: Dice, people: pd.DataFrame, asked: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said) as caught:
        exp.generate_counterfactuals(people.head(1), **{"total_CFs": 1, **asked})
    assert "\n" not in str(caught.value)


def test_what_dice_sets_by_default_is_accepted(exp: Dice, people: pd.DataFrame) -> None:
    defaults = {"stopping_threshold": 0.5, "posthoc_sparsity_param": 0.1, "verbose": False}
    asked = {"desired_range": None, "posthoc_sparsity_algorithm": "linear", "min_robust": 0.0}
    found = exp.generate_counterfactuals(people.head(1), 1, 1, **defaults, **asked)
    assert len(found.plans) == 1


def test_the_opposite_of_accepted_is_refused(exp: Dice, people: pd.DataFrame) -> None:
    with pytest.raises(UserError, match=r"accepts 1 row already \(first: \d+\)"):
        exp.generate_counterfactuals(people.tail(2), 1)
    found = exp.generate_counterfactuals(people.tail(1), 1, desired_class=1)
    assert found.cf_examples_list[0].final_cfs_df is None
    assert found.cf_examples_list[0].test_pred == 1


def test_a_wrong_table_or_method_is_refused(exp: Dice, german: GenRe, people: pd.DataFrame) -> None:
    with pytest.raises(UserError, match="expected a table, got dict"):
        exp.generate_counterfactuals({"duration": 1}, 1)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="has the outcome column 'credit'"):
        exp.generate_counterfactuals(people.assign(credit=0), 1)
    with pytest.raises(UserError, match=r"query_instances lacks the column\(s\) \['purpose'\]"):
        exp.generate_counterfactuals(people.drop(columns="purpose"), 1)
    with pytest.raises(UserError, match="takes a fitted method of genrecourse"):
        Dice(german.classifier_)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"call fit\(X, y\) first"):
        Dice(GenRe())
    more = people.head(1).assign(id=7)  # a column that the model does not know
    assert "id" not in exp.generate_counterfactuals(more, 1).cf_examples_list[0].test_instance_df


def test_importances(exp: Dice, people: pd.DataFrame) -> None:
    made = exp.generate_counterfactuals(people.head(5), total_CFs=3)
    local = exp.local_feature_importance(None, made.cf_examples_list)
    both = exp.global_feature_importance(None, made.cf_examples_list)
    alone = exp.global_feature_importance(people.head(5), total_CFs=3, local_importance=False)
    assert local.summary_importance is None
    assert both.local_importance == local.local_importance
    assert alone.local_importance is None
    assert both.summary_importance == alone.summary_importance
    assert both.summary_importance is not None
    shares = made.plans.asked_to_change()["share_of_plans"].to_dict()
    assert {k: v for k, v in both.summary_importance.items() if v} == pytest.approx(shares)
    order = list(both.summary_importance.values())
    assert order == sorted(order, reverse=True)
    check_format(json.loads(both.to_json()))
    with pytest.raises(UserError, match="give query_instances"):
        exp.local_feature_importance(None)


def test_it_can_be_looked_at(
    exp: Dice, people: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    found = exp.generate_counterfactuals(people.tail(3).head(2), 1, desired_class=1)
    found = exp.local_feature_importance(None, found.cf_examples_list)
    found.visualize_as_dataframe(show_only_changes=True)
    text = capsys.readouterr().out
    assert text.count("Query instance (original outcome : 0)") == 2
    plan = found.plans.shown[0]
    last = next(line for line in text.splitlines() if line.startswith("0 "))
    same = len(people.columns) - len(plan.changes)
    assert last.split().count("-") == same
    for change in plan.changes:
        assert str(change.after) in last
    found.visualize_as_list()
    assert str(people.iloc[-3].tolist()[0]) in capsys.readouterr().out


def test_no_plan_is_shown_with_its_reason(
    exp: Dice, people: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    found = exp.generate_counterfactuals(people.head(1), 1, features_to_vary=["telephone"])
    assert found.plans[0].status == "no-plan"
    found.visualize_as_dataframe()
    assert f"No counterfactuals found! {found.plans[0].reason}" in capsys.readouterr().out


# ---- dice-ml itself -----------------------------------------------------------------------------


def run_with_dice(script: Path, *words: str, folder: Path = ROOT) -> str:
    command = [environments.python_of("dice-ml"), "-W", "ignore", script, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_dice
def test_the_reader_of_dice_ml_reads_it(plans: Plans, people: pd.DataFrame, tmp_path: Path) -> None:
    file = tmp_path / "plans.json"
    file.write_text(plans.to_dice_json(people, outcome_name="credit"), encoding="utf-8")
    seen = json.loads(run_with_dice(Path(__file__).parent / "dice_reader.py", str(file)))
    answers = dice_answers(plans, people, "credit")
    columns = [*people.columns, "credit"]
    assert seen["people"] == [[columns, a.query.to_numpy().tolist()] for a in answers]
    found = [None if a.found is None else [columns, a.found.to_numpy().tolist()] for a in answers]
    assert seen["found"] == found
    assert seen["test_pred"] == [0] * 7 + [1]
    assert seen["new_outcome"] == [1] * 8
    assert seen["local"] == [pytest.approx(answer.importance) for answer in answers]
    assert seen["summary"] == pytest.approx(summary_importance(answers))
    assert (seen["version"], seen["same_again"]) == ("2.0", True)


@needs_dice
def test_the_blocks_for_dice_ml_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of docs/from_dice.md, after ours, whose JSON they read."""
    page = (ROOT / "docs" / "from_dice.md").read_text(encoding="utf-8")
    code = re.findall(r"^```(python|text)\n(.*?)^```$", page, re.M | re.S)
    ours = [text for language, text in code if language == "python"]
    theirs = [text for language, text in code if language == "text"]
    assert len(theirs) == 4
    data = load_dataset("german")
    table = data.X_train.assign(credit=np.where(data.y_train, "good", "bad"))
    table.head(400).to_csv(tmp_path / "applicants.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(genrecourse, "GenRe", partial(GenRe, **GenRe._test_params()))
    names: dict[str, Any] = {}
    for text in ours:
        exec(compile(text, "from_dice.md", "exec"), names)
    script = tmp_path / "theirs.py"
    script.write_text("\n".join([ours[0], *theirs]), encoding="utf-8")
    run_with_dice(script, folder=tmp_path)
