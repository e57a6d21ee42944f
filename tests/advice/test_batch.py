"""A batch of people: one answer for each row, whatever the batch, its dtypes and its bad rows."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from genrecourse import NearestNeighbour, Schema, UserError
from genrecourse.advice import batch
from genrecourse.advice.batch import STATUSES, BatchPlanner, each_or_error
from genrecourse.advice.cells import as_fitted, read_cells
from genrecourse.advice.request import PlanRequest
from genrecourse.evaluation.checks import Example, make_example

N = 3
FACTS = ("cost", "n_changes", "accepted_by_retrained", "accepted_with_noise")


@pytest.fixture(scope="module")
def example() -> Example:
    return make_example(rows=300, people=60)


@pytest.fixture(scope="module")
def model(example: Example, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("batch") / "model"
    NearestNeighbour(None, example.schema, gamma="auto", labelled=True).fit(
        example.X, example.y
    ).save(folder)
    return folder


@pytest.fixture(scope="module")
def planner(model: Path) -> BatchPlanner:
    return BatchPlanner.of(model, PlanRequest(n=N), key="id")


@pytest.fixture(scope="module")
def people(example: Example) -> pd.DataFrame:
    return example.people.assign(id=[f"{i:03d}" for i in range(len(example.people))])


@pytest.fixture(scope="module")
def answers(planner: BatchPlanner, people: pd.DataFrame) -> pd.DataFrame:
    return planner(people)


def test_the_answers_are_those_of_plans(
    planner: BatchPlanner, people: pd.DataFrame, answers: pd.DataFrame
) -> None:
    columns = planner.service.schema.columns
    plans = planner.service.method.plans(people[columns], n=N)
    assert answers["status"].tolist() == [plan.status for plan in plans]
    assert {"ok", "already-accepted"} <= set(answers["status"])
    assert (answers["n_plans"] > 1).any()
    assert answers["key"].tolist() == people["id"].tolist()
    for place, plan in enumerate(plans):
        line = answers.iloc[place]
        assert line["reason"] == plan.reason
        assert line["score_before"] == pytest.approx(plan.score_before, abs=1e-6)
        assert line["n_plans"] == len(plan.every)
        for i, each in enumerate(plan.every, start=1):
            assert line[f"cost_{i}"] == each.cost
            assert line[f"score_{i}"] == pytest.approx(each.score_after, abs=1e-6)
            assert line[f"robust_{i}"] == (not each.is_fragile)
            assert line[f"n_changes_{i}"] == len(each.changes)
            x_plus = each.row.to_dict()  # type: ignore[union-attr]
            for name in columns:
                cell = line[f"plan_{i}_{name}"]
                assert (None if pd.isna(cell) else cell) == x_plus[name], name
        after = [name for name in answers if name.endswith(f"_{len(plan.every) + 1}")]
        assert line[after].isna().all()


def test_a_batch_may_be_cut_anywhere_and_in_any_order(
    planner: BatchPlanner, people: pd.DataFrame, answers: pd.DataFrame
) -> None:
    rng = np.random.default_rng(0)
    order = rng.permutation(len(people))
    cuts = np.sort(rng.choice(len(people), 6, replace=False))
    parts = [planner(people.iloc[part]) for part in np.split(order, cuts) if len(part)]
    parts.append(planner(people.iloc[:1]))  # one row alone
    found = pd.concat(parts[:-1]).loc[people.index]
    pd.testing.assert_frame_equal(found, answers, check_exact=True)
    pd.testing.assert_frame_equal(parts[-1], answers.head(1), check_exact=True)


def test_a_large_batch_is_answered_a_few_people_at_a_time(
    planner: BatchPlanner,
    people: pd.DataFrame,
    answers: pd.DataFrame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch, "AT_ONCE", 7)
    asked, method = [], type(planner.service.method)

    def plans(self: Any, X: pd.DataFrame, **more: Any) -> Any:
        asked.append(len(X))
        return usual(self, X, **more)

    usual = method.plans
    monkeypatch.setattr(method, "plans", plans)
    unread = {0: "a bad line", 20: "another one"}
    found = planner.answers(people, unread).to_pandas()
    assert max(asked) <= 7
    assert found["reason"].iloc[[0, 20]].tolist() == list(unread.values())
    whole = planner.answers(people).to_pandas()
    rest = np.setdiff1d(np.arange(len(people)), list(unread))
    pd.testing.assert_frame_equal(found.iloc[rest], whole.iloc[rest], check_exact=True)
    pd.testing.assert_frame_equal(planner(people), answers, check_exact=True)
    assert planner.answers(people.iloc[:0]).schema == planner.schema


def as_text(people: pd.DataFrame) -> pd.DataFrame:
    """What a CSV holds."""
    return people.astype(object).map(lambda v: None if pd.isna(v) else str(v)).astype(object)


def as_floats(people: pd.DataFrame) -> pd.DataFrame:
    """What an engine makes of a batch with a gap in each column of whole numbers."""
    whole = people.select_dtypes("integer").columns
    return people.astype(dict.fromkeys(whole, "float64"))


def as_arrow(people: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(people)


def as_nullable(people: pd.DataFrame) -> pd.DataFrame:
    return people.convert_dtypes()


@pytest.mark.parametrize("form", [as_text, as_floats, as_arrow, as_nullable])
def test_the_dtypes_of_a_batch_do_not_matter(
    planner: BatchPlanner, people: pd.DataFrame, answers: pd.DataFrame, form: object
) -> None:
    found = planner(form(people))  # type: ignore[operator]
    if isinstance(found, pa.Table):
        assert found.schema == planner.schema
        found = planner.answers(people).equals(found)
        assert found
        return
    pd.testing.assert_frame_equal(found, answers, check_exact=True)


def test_every_batch_has_the_same_schema(planner: BatchPlanner, people: pd.DataFrame) -> None:
    status = planner.answers(people)["status"].to_pylist()
    for wanted in set(status):
        some = people[[each == wanted for each in status]]
        assert planner.answers(some).schema == planner.schema
    assert planner.answers(people.iloc[:0]).schema == planner.schema
    assert planner.answers(people.iloc[:0]).num_rows == 0


def test_a_row_that_cannot_be_read_is_named_and_the_rest_goes_on(
    planner: BatchPlanner, people: pd.DataFrame, answers: pd.DataFrame
) -> None:
    schema = planner.service.schema
    number = next(f.name for f in schema if not f.is_category and not f.missing)
    level = next(f.name for f in schema if f.is_category and not f.one_hot and not f.missing)
    bad = people.astype(object)
    for place, (name, cell) in {
        3: (number, "much"),
        10: (number, float("inf")),
        11: (number, None),
        40: (level, "no such level"),
        41: (level, None),
    }.items():
        bad.iloc[place, bad.columns.get_loc(name)] = cell
    found = planner(bad)
    wrong = [3, 10, 11, 40, 41]
    assert found["status"].iloc[wrong].tolist() == ["unreadable"] * 5
    assert found["key"].tolist() == answers["key"].tolist()
    for place, word in zip(
        wrong, ["much", "infinite", number, "no such level", level], strict=True
    ):
        assert word in found["reason"].iloc[place]
    rest = np.setdiff1d(np.arange(len(people)), wrong)
    pd.testing.assert_frame_equal(found.iloc[rest], answers.iloc[rest], check_exact=True)


OWN = """
def score(X):
    if (X["age"] == 33).any():
        raise RuntimeError("nobody is\\n33")
    return (X["income"].to_numpy() - 20) / 100
"""


def test_a_row_for_which_the_model_raises_is_named_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own_model_of_a_batch.py").write_text(OWN)
    X = pd.DataFrame({"income": np.arange(20.0, 120.0), "age": np.arange(100) % 30 + 40})
    where = "own_model_of_a_batch:score"
    monkeypatch.syspath_prepend(str(tmp_path))
    from own_model_of_a_batch import score  # type: ignore[import-not-found]

    NearestNeighbour(score).fit(X).save("model")
    planner = BatchPlanner.of("model", classifier=where)
    people = X.head(20).assign(age=[33 if i in (4, 5, 17) else 50 for i in range(20)])
    found = planner(people)
    failed = found[found["status"] == "failed"]
    assert failed.index.tolist() == [4, 5, 17]
    assert failed["reason"].str.contains("raised RuntimeError .* nobody is 33").all()
    assert (found["status"].drop([4, 5, 17]) == "ok").all()
    fine = people.drop([4, 5, 17])
    pd.testing.assert_frame_equal(planner(fine), found.drop([4, 5, 17]), check_exact=True)
    assert set(found["status"]) <= set(STATUSES)


def test_a_rule_that_some_cannot_meet_is_refused_to_them_alone(tmp_path: Path) -> None:
    X = pd.DataFrame({"income": np.arange(80.0), "age": np.arange(80) % 40 + 20})
    schema = Schema.infer(X, immutable=("age",))
    NearestNeighbour(None, schema).fit(X, X["income"] >= 40).save(tmp_path / "model")
    planner = BatchPlanner.of(
        tmp_path / "model", PlanRequest(rules={"relations": ["age >= 30"]})
    )  # the first row that the model keeps is 20 years old
    people = pd.DataFrame({"income": [5.0, 5.0, 5.0], "age": [50, 20, 40]})
    found = planner(people)
    assert found["status"].tolist() == ["ok", "failed", "ok"]
    assert "age" in found["reason"].iloc[1]
    with pytest.raises(UserError, match="age"):
        BatchPlanner.of(tmp_path / "model", PlanRequest(rules={"relations": ["age >= 99"]}))


def test_it_is_sent_by_reference(planner: BatchPlanner, people: pd.DataFrame) -> None:
    data = pickle.dumps(planner)
    assert len(data) < 2_000
    again = pickle.loads(data)
    assert again == planner
    assert again.answers(people.head(3)).equals(planner.answers(people.head(3)))


def test_rules_of_single_people_name_them_by_key(
    model: Path, people: pd.DataFrame, answers: pd.DataFrame
) -> None:
    place = int(((answers["status"] == "ok") & (answers["n_changes_1"] > 1)).to_numpy().argmax())
    key = people["id"].iloc[place]
    rules = {"people": {key: {"max_changes": 1}}}
    found = BatchPlanner.of(model, PlanRequest(n=N, rules=rules), key="id")(people)
    assert found["n_changes_1"].fillna(0).iloc[place] <= 1
    assert found["status"].iloc[place] in ("ok", "no-plan")
    rest = np.delete(np.arange(len(people)), place)
    pd.testing.assert_frame_equal(found.iloc[rest], answers.iloc[rest], check_exact=True)


def test_mistakes_are_found_before_the_first_batch(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is missing"):
        BatchPlanner.of(tmp_path / "nowhere")
    with pytest.raises(UserError, match="no option"):
        BatchPlanner.of(model, PlanRequest(options={"sped": 3}))
    with pytest.raises(UserError, match="'nothing'"):
        BatchPlanner.of(model, PlanRequest(rules={"lock": ["nothing"]}))
    with pytest.raises(UserError, match="n is 0"):
        BatchPlanner.of(model, PlanRequest(n=0))


def test_a_process_that_finds_another_model_refuses(
    model: Path, example: Example, tmp_path: Path
) -> None:
    content = json.loads((model / "model.json").read_text())
    planner = BatchPlanner(str(model), model_hash="0" * 64)
    with pytest.raises(UserError, match="another model"):
        planner(example.people)
    assert content["format"] == "genrecourse-model"


def test_a_batch_without_a_column_or_the_key_is_refused(
    planner: BatchPlanner, people: pd.DataFrame
) -> None:
    with pytest.raises(UserError, match="key column 'id'"):
        planner(people.drop(columns="id"))
    name = planner.service.schema.columns[0]
    with pytest.raises(UserError, match=name):
        planner(people.drop(columns=name))


@pytest.mark.parametrize("bad", [set(), {0}, {7}, {2, 3}, {0, 1, 2, 3, 4, 5, 6, 7}])
def test_halving_finds_exactly_the_bad_places(bad: set[int]) -> None:
    def act(some: np.ndarray) -> list[int]:
        if bad & set(some.tolist()):
            raise ValueError(str(some))
        return [2 * int(i) for i in some]

    found: dict[int, object] = {}
    for places, each in each_or_error(np.arange(8), act):
        if isinstance(each, Exception):
            assert len(places) == 1
            found[int(places[0])] = None
        else:
            found |= dict(zip(map(int, places), each, strict=True))
    assert found == {i: None if i in bad else 2 * i for i in range(8)}


def test_whole_numbers_flags_and_levels_are_read_from_text() -> None:
    fitted = pd.DataFrame(
        {
            "age": [20, 30, 40] * 4,
            "member": [True, False, True] * 4,
            "grade": pd.Categorical([1, 2, 3] * 4),
            "code": ["07", "8", "9"] * 4,
        }
    )
    schema = Schema.infer(fitted)
    text = pd.DataFrame(
        {
            "age": ["31", "31.5", "1e3"],
            "member": ["TRUE", "false", "True"],
            "grade": ["3", "1", "2"],
            "code": ["07", "8", "9"],
        }
    )
    table, wrong = read_cells(text, schema, fitted)
    assert wrong == {}
    parts = {tuple(p.tolist()): t for p, t in as_fitted(table, fitted.head(1), np.arange(3))}
    assert parts[0, 2]["age"].tolist() == [31, 1000]
    assert parts[0, 2].dtypes.to_dict() == fitted.dtypes.to_dict()
    assert parts[1,]["age"].tolist() == [31.5]
    assert table["member"].tolist() == [True, False, True]
    assert table["grade"].tolist() == [3, 1, 2]
    assert table["code"].tolist() == ["07", "8", "9"]


def test_a_key_is_the_same_text_in_every_dtype(model: Path, example: Example) -> None:
    planner = BatchPlanner.of(model, key="number")
    people = example.people.head(3).assign(number=[7, 8, 9])
    for kind in ("int64", "float64", "Int64", "str"):
        found = planner(people.astype({"number": kind}))
        assert found["key"].tolist() == ["7", "8", "9"]
    long = pa.array([2**62 + 1, None, 9], pa.int64())  # a float does not hold the first
    table = pa.Table.from_pandas(people.drop(columns="number")).append_column("number", long)
    assert planner(table)["key"].to_pylist() == [str(2**62 + 1), None, "9"]
    gap = planner(people.assign(number=[7.0, None, 9.0]))
    assert [None if pd.isna(key) else key for key in gap["key"]] == ["7", None, "9"]
