"""The form without a browser: what it reads, and what it says about mistakes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from genrecourse import NearestNeighbour, Policy
from genrecourse.advice.service import Service
from tests.support.random_tables import Case, cases, reproducible

pytest.importorskip("fastapi", reason="the page needs genrecourse[serve]")

from genrecourse.apps.serve.example import example_person
from genrecourse.apps.serve.form import Filled, PersonForm, read_number
from genrecourse.apps.serve.people import PeopleReader
from genrecourse.apps.serve.wishes import Offered, Wishes, without
from genrecourse.errors import UserError


def fitted(case: Case) -> tuple[Service, pd.DataFrame]:
    X = case.table(case.n_rows, stream=0)
    method = NearestNeighbour(case.classifier(X), case.schema, gamma=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Service(method.fit(X)), case.table(20, stream=1, beyond=0.3)


@reproducible(60)
@given(case=cases(roles=True))
def test_a_person_in_the_form_is_the_person_in_the_table(case: Case) -> None:
    """What the form shows of a row, read again, is the row: any dtype, missing, computed."""
    try:
        service, people = fitted(case)
    except UserError:  # nobody is accepted: no model, no form
        return
    form, reader = PersonForm(service), PeopleReader(service)
    encoder = service.method.problem_.encoder
    computed = encoder.schema.formulas()
    for i in range(len(people)):
        row = people.iloc[[i]]
        filled = form.read(form.filled_with(row).sent)
        lost = [name for name in computed if pd.isna(row[name].iloc[0]) and not
                service.schema[name].missing]  # fmt: skip
        if lost:
            continue
        assert not filled.mistakes
        again = encoder.features(reader.table([form.person(filled)]))
        there = encoder.features(row)
        slack = [max(block.slack, 1e-9) for block in encoder.blocks]
        same = (np.abs(again - there) <= slack) | (np.isnan(again) & np.isnan(there))
        assert same.all(), (row.to_dict("records"), form.person(filled))


@reproducible(30)
@given(case=cases(roles=True))
def test_the_example_is_turned_down_and_is_nobody(case: Case) -> None:
    try:
        service, _ = fitted(case)
    except UserError:
        return
    problem = service.method.problem_
    kept = problem.read(problem.probe)
    if not kept.rejected.any():
        return
    for number in range(3):
        example = problem.read(example_person(problem, number))
        assert example.rejected.all()
        # each value of it is the value of somebody; the whole is the same whenever it is asked for
        for j in range(kept.F.shape[1]):
            if not problem.rules.derived.mask[j]:
                near = np.abs(kept.F[:, j] - example.F[0, j]) <= 1e-6
                assert near.any() or (np.isnan(kept.F[:, j]).any() and np.isnan(example.F[0, j]))
        again = problem.read(example_person(problem, number))
        np.testing.assert_array_equal(again.F, example.F)


def score_of_loan(X: pd.DataFrame) -> np.ndarray:
    more = 0.1 * X["rate"] + 0.1 * (X["home"] == "own") + 0.001 * X["left"].fillna(0)
    return np.asarray(np.clip(X["income"] / 80 + more, 0, 1))


def loan_form(policy: Policy | None = None) -> tuple[PersonForm, Offered]:
    from genrecourse import Schema

    X = pd.DataFrame(
        {
            "income": np.arange(80),
            "rate": np.linspace(-1, 1, 80).round(2),
            "home": ["own", "rent"] * 40,
            "left": [np.nan, *range(79)],
        }
    )
    schema = Schema.infer(X).with_feature("income", wording="income a month", unit="€")
    method = NearestNeighbour(score_of_loan, schema).fit(X)
    service = Service(method if policy is None else policy.applied_to(method))
    return PersonForm(service), Offered.of(service)


GOOD = {"f0": ["12"], "f1": ["0.25"], "f2": ["0"], "f3-missing": ["missing"]}


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"f0": [""]}, "Income a month: give a number."),
        ({"f0": ["12 €"]}, "Income a month: “12 €” is no number; write it like 1200 or 0.5."),
        ({"f0": ["1.5"]}, "Income a month: “1.5” has too many decimals; this number has none."),
        ({"f0": ["9" * 41]}, f"Income a month: “{'9' * 40}…” is no number; write it like 1200 or "
                             "0.5."),
        ({"f0": ["NaN"]}, "Income a month: “NaN” is no number; write it like 1200 or 0.5."),
        ({"f1": ["1,5"]}, "Rate: “1,5” is no number; write it like 1200 or 0.5."),
        ({"f2": []}, "Home: choose an answer."),
        ({"f2": ["7"]}, "Home: choose an answer."),
        ({"f2": ["missing"]}, "Home: choose an answer."),
        ({"f2": ["-1"]}, "Home: choose an answer."),
        ({"f3": ["5"]}, "Left: give a number or tick “not given”, not both."),
        ({"f3-missing": []}, "Left: give a number, or tick “not given”."),
    ],
)  # fmt: skip
def test_a_mistake_names_its_field_the_value_and_what_to_do(sent: Any, said: str) -> None:
    form, _ = loan_form()
    assert form.read(GOOD).mistakes == []
    (mistake,) = form.read(GOOD | sent).mistakes
    assert (mistake.in_full, mistake.key) == (said, next(iter(sent)).split("-")[0])


def test_every_mistake_is_told_at_once() -> None:
    form, _ = loan_form()
    assert [mistake.key for mistake in form.read({}).mistakes] == ["f0", "f1", "f2", "f3"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("1200", 1200), ("1,234,567.5", 1234567.5), ("-.5", -0.5), ("+3.", 3), ("1e3", 1000)],
)
def test_numbers_as_people_type_them(text: str, value: float) -> None:
    assert read_number(text) == value


@pytest.mark.parametrize("text", ["", "-", ".", "1,23", "12,34,567", "0x10", "١٢", "1 2", "inf"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(UserError, match="is no number"):
        read_number(text)


def test_wishes_are_the_rules_and_options_of_a_request() -> None:
    form, offered = loan_form()
    sent = {"lock": ["2"], "low0": ["10"], "high0": [""], "high1": ["0.5"], "most": ["2"],
            "order": ["cost"], "compare": ["3", "1"]}  # fmt: skip
    filled = Filled(sent)
    wishes = Wishes.read(form, offered, filled)
    assert not filled.mistakes
    rules = wishes.request.rules.default
    assert (rules.lock, rules.max_changes) == (("home",), 2)
    assert rules.ranges == {"income": (10.0, None), "rate": (None, 0.5)}
    assert (wishes.request.sort, wishes.compare) == ("cost", (1, 3))
    assert list(wishes.own) == ["range0", "range1", "lock2", "most"]
    for key in wishes.own:
        fewer = Wishes.read(form, offered, Filled(without(sent, key)))
        assert list(fewer.own) == [other for other in wishes.own if other != key]


def test_what_the_page_does_not_offer_is_not_asked_for() -> None:
    form, offered = loan_form()
    sent = {"months": ["3"], "money": ["3"], "order": ["time"], "most": ["-1"], "safety": ["4"],
            "lock": ["99", "x"], "compare": ["0", "x"]}  # fmt: skip
    filled = Filled(sent)
    wishes = Wishes.read(form, offered, filled)
    assert not filled.mistakes
    assert (wishes.request.most_months, wishes.request.most_money) == (None, None)
    assert (wishes.request.sort, wishes.request.rules, wishes.own) == (None, None, {})
    assert wishes.compare == ()


@pytest.mark.parametrize(
    ("sent", "key", "said"),
    [
        ({"low0": ["9"], "high0": ["3"]}, "low0", "“From” is 9 and “to” is 3"),
        ({"low0": ["much"]}, "low0", "“much” is no number"),
        ({"months": ["-1"]}, "months", "“-1” is below 0"),
        ({"months": ["soon"]}, "months", "“soon” is no number"),
    ],
)
def test_a_wish_that_cannot_be_read_is_a_mistake(sent: Any, key: str, said: str) -> None:
    changes = {"income": {"each": 1, "months": 1}}
    form, offered = loan_form(Policy.of(effort={"changes": changes}))
    assert offered.has_time
    assert not offered.has_money
    filled = Filled(sent)
    Wishes.read(form, offered, filled)
    assert [mistake.key for mistake in filled.mistakes] == [key]
    assert filled.mistakes[0].text.startswith(said)
