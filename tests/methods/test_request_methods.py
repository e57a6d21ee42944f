"""Rules at request time through the public verbs of methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse import GenRe, NearestNeighbour, Schema, UserError
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.rules.book import RuleBook
from genrecourse.rules.kinds import Rules
from genrecourse.rules.requests import request_book
from genrecourse.table.cost import Cost
from genrecourse.table.noise import KeyedNoise
from genrecourse.trust.refine import refine
from tests.support.toys import read_loans
from tests.support.verifiers import ENCODER, StatedVerifier

PEOPLE_RULES: list[Any] = [
    {"lock": "debt"},
    {"lock": ["income", "job"]},
    {"increase": ["income"], "decrease": ["debt"]},
    {"max_step": {"income": 8}, "max_changes": 2},
    {"max_cost": 0.3},
    {"allowed": {"job": ["nurse"]}, "ranges": {"income": [40, 60]}},
    {"relations": ["if income > 55 then job = nurse or clerk"]},
]


def loans() -> tuple[pd.DataFrame, pd.Series, pd.DataFrame]:
    train, test = read_loans(0)
    X, y = train.drop(columns="repaid"), (train["repaid"] == "yes").astype(int)
    return X, y, test.drop(columns="repaid")


def h(X: pd.DataFrame) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-8 * (X["income"] / 50 - X["debt"] - 0.5))))


@pytest.fixture(scope="module", params=["genre", "genre-plain", "nnr", "nnr-auto"])
def method(request: pytest.FixtureRequest) -> Any:
    X, y, _ = loans()
    schema = Schema.infer(X)
    if request.param.startswith("genre"):
        params = GenRe._test_params()
        if request.param == "genre-plain":
            params |= {"select": "likelihood", "refine": False, "retrieve": False}
            params |= {"gamma": 0.6, "temperature": 1.0, "margin": 0.5, "bins": "uniform"}
        return GenRe(h, schema, **params).fit(X, y)
    gamma: Any = "auto" if request.param == "nnr-auto" else 0.5
    return NearestNeighbour(h, schema, gamma=gamma, refine=gamma == "auto").fit(X, y)


def rejected(method: Any) -> pd.DataFrame:
    people = loans()[2]
    return people[~method.classifier_.accepts(people)].head(14)


@pytest.mark.parametrize("rule", PEOPLE_RULES, ids=str)
def test_no_recourse_breaks_a_rule(method: Any, rule: Any) -> None:
    people = rejected(method)
    X_plus = method.recourse(people, rules=rule)
    found = method.assess(people, X_plus, rule)
    assert "rule-broken" not in set(found["status"])
    assert (found["status"] == "ok").any()
    if rule == {"lock": "debt"}:
        assert X_plus["debt"].equals(people["debt"])
        assert not X_plus["income"].equals(people["income"])


def test_who_is_accepted_already_blocks_nobody(method: Any) -> None:
    """The rule binds those who get a plan; among the others may be people who cannot meet it."""
    people = loans()[2]
    accepted = method.classifier_.accepts(people)
    low = people["debt"][~accepted].min()
    rule = {"relations": [f"debt >= {low}"], "decrease": ["debt"]}
    assert (people["debt"][accepted] < low).any()
    plans = method.plans(people, rules=rule)
    assert (np.array([plan.status == "already-accepted" for plan in plans]) == accepted).all()
    X_plus = method.recourse(people, rules=rule)
    pd.testing.assert_frame_equal(X_plus[accepted], people[accepted])
    assert "rule-broken" not in set(method.assess(people, X_plus, rule)["status"])
    stuck = people[~accepted].assign(debt=low - 0.001)
    stuck = stuck[~method.classifier_.accepts(stuck)]
    with pytest.raises(UserError, match=f"row {stuck.index[0]} does not meet the rule 'debt >= "):
        method.plans(stuck, rules=rule)


def test_each_person_has_their_own(method: Any) -> None:
    """And whom no rule binds is answered as if nobody had any, bit for bit."""
    people = rejected(method)
    label = people.index[3]
    plain = method.recourse(people)
    mixed = method.recourse(people, rules={label: Rules(lock=("income",))})
    others = people.index != label
    pd.testing.assert_frame_equal(mixed[others], plain[others])
    assert mixed.loc[label, "income"] == people.loc[label, "income"]
    alone = method.recourse(people.loc[[label]], rules=Rules(lock=("income",)))
    pd.testing.assert_frame_equal(alone, mixed.loc[[label]])


def test_a_broken_rule_is_seen(method: Any) -> None:
    people = rejected(method)
    X_plus = people.assign(income=loans()[0]["income"].max())
    assert set(method.assess(people, X_plus)["status"]) == {"ok"}
    told = method.assess(people, X_plus, {"lock": "income"})
    assert set(told["status"]) == {"rule-broken"}


def test_plans_keep_the_rules(method: Any) -> None:
    people = rejected(method)
    plans = method.plans(people, rules={"lock": "debt"})
    changed = {change.feature.name for plan in plans for change in plan.changes}
    assert "income" in changed
    assert "debt" not in changed


def test_mistakes_are_the_users(method: Any) -> None:
    people = rejected(method)
    with pytest.raises(UserError, match="no feature"):
        method.recourse(people, rules={"lock": "salary"})
    with pytest.raises(UserError, match="'income' between 500 and 600"):
        method.recourse(people, rules={"ranges": {"income": [500, 600]}})


@pytest.mark.parametrize("method", ["genre", "genre-plain"], indirect=True)  # a density draws
def test_draws_keep_the_rules(method: Any) -> None:
    people = rejected(method)
    first = people.index[0]
    given = {first: Rules(lock=("income",), max_changes=1)}
    table = method.sample(people, 6, rules=given)
    assert (table.loc[first, "income"] == people.loc[first, "income"]).all()
    others = people.index[1:]
    pd.testing.assert_frame_equal(
        table.loc[others], method.sample(people, 6).loc[others], check_dtype=False
    )
    draws = method.draws(people, rules=given)
    ess = draws["effective_sample_size"].groupby(level=0).first()
    assert ess.between(1.0, 64.0).all()
    assert (ess.loc[others] == 64.0).all()
    assert "effective_sample_size" not in method.draws(people)


class _Other(Method):
    def _fit(self, rows: TrainingRows) -> None:
        pass

    def _recourse(self, Z: np.ndarray, noise: KeyedNoise) -> np.ndarray:
        return Z


def test_a_method_that_knows_no_rules_refuses_them() -> None:
    X, y, people = loans()
    other = _Other(h, Schema.infer(X)).fit(X, y)
    with pytest.raises(UserError, match="no option \\['rules'\\]"):
        other.recourse(people, rules={"lock": "debt"})


def test_refining_puts_nothing_back_that_a_relation_forbids() -> None:
    table = pd.DataFrame({"x0": [0.0], "x1": [0.0], "x2": [0.0], "c": ["a"]})
    x, x_plus = np.zeros((1, 4)), np.array([[0.9, 0.5, 0.4, 0.0]])
    # the dearest change is tried first, and once only: the relation holds x0, or nothing does
    cases = {"x0 >= x1": [0.9, 0, 0, 0], "x1 <= 0.6": [0, 0, 0, 0]}
    for rule, expected in cases.items():
        request = request_book({"relations": rule}, RuleBook.of_schema(ENCODER), table)
        always = lambda Z: np.ones(len(Z))  # noqa: E731
        found = refine(x, x_plus, StatedVerifier(), always, ENCODER, Cost(ENCODER), 0.5, request)
        assert found[0].tolist() == expected, rule
