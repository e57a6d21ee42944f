"""Rows that cannot be read get a status and a reason; the others get what they get without them."""

from __future__ import annotations

import json
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genrecourse import GenRe, NearestNeighbour
from genrecourse.advice.plan_table import plan_table
from genrecourse.advice.recheck import recheck
from genrecourse.errors import RowsUnreadable, StillRejected, UserError
from genrecourse.methods.dice import DiCE
from genrecourse.planning.plans import Plan, Plans
from genrecourse.planning.wording import FOLDER, Wording
from genrecourse.reports.console import panel
from genrecourse.reports.plan_report import report_html
from tests.support.bad_cells import (
    EVERY_CELL,
    LOANS,
    code_of,
    feature_of,
    loan_schema,
    nearest,
    score,
    spoilt,
)

PEOPLE = LOANS.head(10).set_axis([f"p{i}" for i in range(10)])
ROW = 3
NAMES = [f"{name}: {kind} {type(value).__name__}" for name, value, kind in EVERY_CELL]


@pytest.fixture(scope="module")
def method() -> NearestNeighbour:
    return nearest()


@pytest.fixture(scope="module")
def clean(method: NearestNeighbour) -> Plans:
    found = method.plans(PEOPLE)
    assert {plan.status for plan in found} >= {"ok", "already-accepted"}
    return found


def quietly(act: Any, *given: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StillRejected)
        warnings.simplefilter("ignore", RowsUnreadable)
        return act(*given, **options)


# ---- one bad cell -----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "value", "kind"), EVERY_CELL, ids=NAMES)
def test_a_bad_cell_is_told_and_changes_no_other_plan(
    method: NearestNeighbour, clean: Plans, name: str, value: Any, kind: str
) -> None:
    bad = spoilt(PEOPLE, ROW, name, value)
    plans = method.plans(bad)
    lost = plans[ROW]
    assert (lost.status, lost.reason_code) == ("unreadable", code_of(name, kind))
    assert lost.fault is not None
    assert lost.fault.column == feature_of(name)
    assert feature_of(name) in lost.reason
    assert len(lost.reason) < 400
    assert "\n" not in lost.reason
    lost.reason.encode()  # so that it can be printed
    for i, plan in enumerate(plans):
        assert i == ROW or plan.to_json() == clean[i].to_json()
    assert Plans.from_json(plans.to_json())[ROW] == lost
    with pytest.raises(UserError):
        method.plans(bad, errors="raise")


@pytest.mark.parametrize(("name", "value", "kind"), EVERY_CELL[::7], ids=NAMES[::7])
def test_recourse_returns_the_row_as_it_is(
    method: NearestNeighbour, name: str, value: Any, kind: str
) -> None:
    bad = spoilt(PEOPLE, ROW, name, value)
    with pytest.warns(RowsUnreadable, match=r"1 of 10 rows cannot be read.*index 'p3'") as caught:
        answer = quietly_but_unreadable(method, bad)
    assert sum(each.category is RowsUnreadable for each in caught) == 1
    rest = [i for i in range(10) if i != ROW]
    expected = quietly(method.recourse, PEOPLE).iloc[rest]
    assert answer.columns.equals(PEOPLE.columns)
    assert answer.index.equals(PEOPLE.index)
    assert answer[name].iloc[ROW] is bad[name].iloc[ROW]
    for column in PEOPLE.columns:
        assert answer[column].iloc[rest].tolist() == pytest.approx(
            expected[column].tolist(), abs=0, nan_ok=True
        )
        assert answer[column].dtype == bad[column].dtype
    status = method.recourse(bad, status=True)["status"]
    assert status.iloc[ROW] == "unreadable"
    assert (
        status.iloc[rest].tolist()
        == method.recourse(PEOPLE, status=True)["status"].iloc[rest].tolist()
    )
    found = method.assess(bad, answer)
    assert found["status"].tolist() == status.tolist()
    assert found.drop(columns="status").iloc[ROW].isna().all()
    with pytest.raises(UserError):
        method.recourse(bad, errors="raise")
    with pytest.raises(UserError):
        method.assess(bad, answer, errors="raise")


def quietly_but_unreadable(method: NearestNeighbour, X: pd.DataFrame) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StillRejected)
        return method.recourse(X)


def test_a_row_whose_x_plus_cannot_be_read_is_not_assessed(method: NearestNeighbour) -> None:
    X_plus = spoilt(quietly(method.recourse, PEOPLE), 5, "job", "astronaut")
    status = method.assess(spoilt(PEOPLE, 2, "income", "much"), X_plus)["status"]
    assert [i for i, said in enumerate(status) if said == "unreadable"] == [2, 5]
    rest = [i for i in range(10) if i not in (2, 5)]
    expected = method.assess(PEOPLE, quietly(method.recourse, PEOPLE))["status"]
    assert status.iloc[rest].tolist() == expected.iloc[rest].tolist()


# ---- many of them -----------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    cells=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, len(EVERY_CELL) - 1)), min_size=1, max_size=12
    ),
    order=st.permutations(range(10)),
)
def test_any_bad_cells_in_any_order(cells: list[tuple[int, int]], order: list[int]) -> None:
    method, clean = _kept()
    bad = PEOPLE
    for row, which in cells:
        name, value, _ = EVERY_CELL[which]
        bad = spoilt(bad, row, name, value)
    lost = {row for row, _ in cells}
    for place, plan in zip(order, method.plans(bad.iloc[order]), strict=True):
        assert plan.person == f"p{place}"
        assert (plan.status == "unreadable") == (place in lost)
        assert place in lost or plan.to_json() == clean[place].to_json()


_memory: list[tuple[NearestNeighbour, Plans]] = []


def _kept() -> tuple[NearestNeighbour, Plans]:
    if not _memory:
        made = nearest()
        _memory.append((made, made.plans(PEOPLE)))
    return _memory[0]


def test_nobody_can_be_read(method: NearestNeighbour) -> None:
    bad = PEOPLE.assign(income="much")  # h would fail: it is not asked
    assert {plan.status for plan in method.plans(bad)} == {"unreadable"}
    answer = quietly(method.recourse, bad)
    pd.testing.assert_frame_equal(answer, bad)
    assert set(method.assess(bad, answer)["status"]) == {"unreadable"}


def test_numbers_that_stand_as_objects_are_numbers(method: NearestNeighbour, clean: Plans) -> None:
    assert method.plans(PEOPLE.astype(object)) == clean
    with pytest.raises(UserError, match="should hold numbers but has dtype object"):
        method.plans(PEOPLE.astype({"income": object}), errors="raise")


def test_a_table_that_is_wrong_as_a_whole_is_refused(method: NearestNeighbour) -> None:
    twice = pd.concat([PEOPLE, PEOPLE[["job"]]], axis=1)
    for wrong, says in ((PEOPLE.drop(columns="job"), "lacks"), (twice, "more than one column")):
        for act in (method.plans, method.recourse):
            with pytest.raises(UserError, match=says):
                act(wrong)
    for act in (method.plans, method.recourse, partial(method.assess, PEOPLE)):
        with pytest.raises(UserError, match="errors is 'ignore'; it must be 'status' or 'raise'"):
            act(PEOPLE, errors="ignore")


def test_rules_of_a_person_who_cannot_be_read(method: NearestNeighbour, clean: Plans) -> None:
    bad = spoilt(PEOPLE, ROW, "income", "much")
    rules = {"people": {"p3": {"lock": ["income"]}}, "default": {}}
    assert method.plans(bad, rules=rules)[0].to_json() == clean[0].to_json()
    assert quietly(method.recourse, bad, rules=rules).shape == bad.shape
    with pytest.raises(UserError, match="'p99', but no row of the table"):
        method.plans(bad, rules={"people": {"p99": {"lock": ["income"]}}, "default": {}})


# ---- where plans are shown --------------------------------------------------------------------


@pytest.mark.parametrize(("name", "value", "kind"), EVERY_CELL[::5], ids=NAMES[::5])
def test_every_page_and_table_can_show_the_row(
    method: NearestNeighbour, tmp_path: Path, name: str, value: Any, kind: str
) -> None:
    bad = spoilt(PEOPLE, ROW, name, value)
    plans = method.plans(bad)
    lost = plans[ROW]
    panel(method.schema_, bad.iloc[ROW], lost)
    assert lost.to_text() == f"p3: {lost.reason}"
    assert "<script>" not in plans.to_html()
    frame = plans.to_frame()
    assert frame[frame["status"] == "unreadable"]["reason"].tolist() == [lost.reason]
    lines = plan_table(plans, bad, method.schema_)
    new = [column for column in lines if column.startswith("new ")]
    line = lines[lines["status"] == "unreadable"]
    assert line[new].isna().all(axis=None)
    assert line["row"].tolist() == ["p3"]
    lines.to_parquet(tmp_path / "plans.parquet")
    assert "p3" not in recheck(plans, score)["person"].tolist()
    with pytest.raises(UserError, match="no letter to person 'p3'"):
        lost.to_letter()


def test_the_report_lists_the_row_and_counts_it_nowhere_else(method: NearestNeighbour) -> None:
    bad = spoilt(PEOPLE, ROW, "job", "<astronaut>")
    page, without = report_html(method, bad), report_html(method, PEOPLE.drop("p3"))
    assert "Rows that cannot be read: 1" in page
    assert "&#x27;&lt;astronaut&gt;&#x27;" in page
    assert "cannot be read" not in without
    people = sum(plan.status != "already-accepted" for plan in method.plans(PEOPLE.drop("p3")))
    assert f"of {people} in the table" in page
    with pytest.raises(UserError, match=r"10 of 10 rows cannot be read \(first: This row"):
        report_html(method, PEOPLE.assign(job="astronaut"))


def test_every_wording_has_every_reason() -> None:
    for path in FOLDER.glob("*.toml"):
        words = Wording.of(path.stem)
        for name, _, kind in EVERY_CELL:
            assert f"unreadable.{code_of(name, kind)}" in words


def test_only_an_unreadable_row_has_a_fault() -> None:
    fault = nearest().plans(spoilt(PEOPLE, 0, "job", "pilots"))[0].fault
    wrong: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((1, "unreadable", None, 0.5), {"reason_code": "unseen-category"}),
        ((1, "unreadable", 0.2, 0.5), {"reason_code": "unseen-category", "fault": fault}),
        ((1, "no-plan", 0.2, 0.5), {"reason_code": "not-accepted", "fault": fault}),
        ((1, "unreadable", None, 0.5), {"fault": fault}),
    ]
    for about, fields in wrong:
        with pytest.raises(ValueError, match="the status is"):
            Plan(*about, **fields)


# ---- nobody, and more columns -----------------------------------------------------------------


def test_an_empty_table_has_an_empty_answer(method: NearestNeighbour) -> None:
    nobody = LOANS.head(0)
    plans = method.plans(nobody, rules={"lock": ["job"]}, promise=None)
    assert (len(plans), plans.to_text(), json.loads(plans.to_json())) == (0, "", [])
    pd.testing.assert_frame_equal(method.recourse(nobody), nobody)
    assert list(method.recourse(nobody, status=True)) == [*nobody, "status"]
    assert method.assess(nobody, nobody).shape == (0, 5)
    assert len(plan_table(plans, nobody, method.schema_)) == 0
    assert len(plans.to_frame()) == 0
    with pytest.raises(UserError, match="the table has no people; a report needs people"):
        report_html(method, nobody)


def test_an_empty_table_has_no_draws() -> None:
    X = LOANS[["income", "debt", "owner", "job", "rooms"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = GenRe(score, **GenRe._test_params()).fit(X, score(X) > 0.5)
    nobody = X.head(0)
    draws = made.sample(nobody, 3)
    assert list(draws.columns) == list(X.columns)
    assert draws.index.names == ["row", "draw"]
    assert len(made.draws(nobody)) == len(made.log_prob(nobody, nobody)) == len(draws) == 0
    assert len(made.plans(nobody, n=2, fewest_changes=True)) == 0
    pd.testing.assert_frame_equal(made.recourse(nobody), nobody)
    with pytest.warns(UserWarning, match="1 column that the model does not read"):
        assert made.sample(X.head(1).assign(id=1), 2).equals(made.sample(X.head(1), 2))


def test_an_empty_table_has_no_choices() -> None:
    X = LOANS[["income", "debt", "owner", "job", "rooms"]]
    made = DiCE(None, steps=5).fit(X, score(X) > 0.5)
    assert len(made.several(X.head(0))) == 0


def test_columns_that_the_model_does_not_read_are_ignored(
    method: NearestNeighbour, clean: Plans
) -> None:
    names = [f"note {i}" for i in range(7)]
    more = PEOPLE.assign(**dict.fromkeys(names, "?"))[[*names[:3], *PEOPLE.columns, *names[3:]]]
    says = "has 7 columns that the model does not read, which are ignored: 'note 0', .* and 2 more"
    with pytest.warns(UserWarning, match=says) as caught:
        assert method.plans(more) == clean
    assert len(caught) == 1
    with pytest.warns(UserWarning, match=says):
        answer = quietly(method.recourse, more)
    assert answer.columns.equals(more.columns)
    pd.testing.assert_frame_equal(answer[PEOPLE.columns], quietly(method.recourse, PEOPLE))
    with pytest.raises(UserError, match="which are not in the schema"):
        NearestNeighbour(score, loan_schema()).fit(LOANS.assign(id=1))


def test_other_people_keep_their_dtypes(method: NearestNeighbour) -> None:
    small = PEOPLE.astype({"income": np.int8, "debt": np.float32, "job": "category"})
    bad = small.assign(savings=[np.inf, *small["savings"].iloc[1:]])
    answer = quietly(method.recourse, bad)
    expected = quietly(method.recourse, small)
    pd.testing.assert_frame_equal(answer.iloc[1:], expected.iloc[1:])
