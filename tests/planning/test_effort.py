"""Plans with time and money: limits act in choosing, the least is named, and words are for people.

The table is small enough that every change of one and of two features can be tried by hand.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse import NearestNeighbour, Policy, Schema, UserError, load
from genrecourse.advice.request import PlanRequest
from genrecourse.advice.service import Service
from genrecourse.planning.effort import Effort, time_in_words
from genrecourse.planning.plans import Plan, Plans
from genrecourse.planning.wording import english

RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "savings": RNG.integers(0, 9, 240) * 500,
        "debt": RNG.integers(0, 7, 240) * 100,
        "job": RNG.choice(["unskilled", "skilled", "own firm"], 240),
        "car": RNG.choice(["yes", "no"], 240),
    }
)
EFFORT: dict[str, Any] = {
    "currency": "€",
    "changes": {
        "savings": {"each": 500, "months": 3, "price": 0},
        "debt": {"each": 100, "months": 1, "price": 100, "once": {"price": 20}},
        "job": [
            {"from": "unskilled", "to": "skilled", "months": 24, "price": 3000},
            {"months": 12, "price": 500},
        ],
    },
}


def h(X: pd.DataFrame) -> np.ndarray:
    worth = X["savings"] / 1500 - X["debt"] / 300 + (X["job"] == "skilled") + (X["car"] == "yes")
    return np.asarray(1 / (1 + np.exp(-(worth - 2.2))), dtype=float)


def months(x: Any, y: Any) -> float:
    """Return what the text of EFFORT says about a change from x to y; infinite: nothing."""
    total = 3 * abs(y["savings"] - x["savings"]) / 500 + abs(y["debt"] - x["debt"]) / 100
    if x["job"] != y["job"]:
        total += 24 if (x["job"], y["job"]) == ("unskilled", "skilled") else 12
    return float("inf") if x["car"] != y["car"] else float(total)


@cache
def method() -> NearestNeighbour:
    policy = Policy.of(effort=EFFORT)
    free = NearestNeighbour(h, policy.schema(X)).fit(X, h(X) > 0.5)
    return policy.applied_to(free)


PEOPLE = X[h(X) <= 0.5].head(25)


def least_months(x: Any) -> float:
    """Return the shortest time of all accepted changes of one and of two features."""
    values = {name: list(X[name].unique()) for name in X.columns}
    best = float("inf")
    for pair in itertools.combinations(X.columns, 2):
        rows = pd.DataFrame(
            [
                dict(x) | dict(zip(pair, both, strict=True))
                for both in itertools.product(*(values[name] for name in pair))
            ]
        )
        for row in rows[h(rows) > 0.5].to_dict("records"):
            best = min(best, months(x, row))
    return best


@pytest.mark.parametrize("limit", [2, 4, 8])
def test_a_limit_acts_in_choosing_and_the_least_is_named(limit: float) -> None:
    found = method().plans(PEOPLE, n=3, most_months=limit)
    told = 0
    for plan, (_, x) in zip(found, PEOPLE.iterrows(), strict=True):
        least = least_months(x)
        if plan.status == "ok":
            for each in plan.every:
                row = each.row.to_dict()  # type: ignore[union-attr]
                assert months(x, row) <= limit + 1e-6
                assert each.effort is not None
                assert each.effort.months == pytest.approx(months(x, row))
            continue
        told += 1
        assert plan.reason_code == "over-months"
        assert least > limit  # nothing within the limit was overlooked
        assert plan.nearest is not None
        assert plan.nearest.months is not None
        assert plan.nearest.months <= least + 1e-6
        assert plan.nearest.time_text(english()) in plan.reason
        assert Plans.from_json(Plans((plan,)).to_json())[0].reason == plan.reason
    assert told >= 3 or limit > 4
    assert told < len(PEOPLE) or limit < 4


def test_money_is_limited_too_and_both_limits_together() -> None:
    within = method().plans(PEOPLE, most_money=0)  # savings cost time and no money
    ok = [plan for plan in within if plan.every]
    assert ok
    assert all(plan.effort is not None and plan.effort.money == 0 for plan in ok)
    none = method().plans(PEOPLE.head(3), most_months=0, most_money=0)
    assert {plan.reason_code for plan in none} == {"over-months"}
    tight = method().plans(PEOPLE, most_months=24, most_money=0)
    for plan in tight:
        least = plan.nearest
        if plan.reason_code == "over-money":  # lifting the time alone does not help
            assert least is not None
            assert least.money is not None
            assert least.money > 0


def test_without_a_limit_times_change_no_plan() -> None:
    policy = Policy.of()
    plain = policy.applied_to(method()).plans(PEOPLE, n=2)
    timed = method().plans(PEOPLE, n=2)

    def without(plan: Plan) -> dict[str, Any]:
        data = json.loads(plan.to_json())
        for each in (data, *data["alternatives"]):
            each.pop("effort")
            if each["minimal"]:
                each["minimal"].pop("effort")
        return dict(data)

    assert [without(a) for a in plain] == [without(b) for b in timed]
    assert all(plan.effort is None for plan in plain.shown)


@pytest.mark.parametrize("by", ["time", "money", "changes", "cost"])
def test_plans_are_sorted_and_none_is_lost(by: str) -> None:
    found = method().plans(PEOPLE, n=3)
    assert any(len(plan.every) > 1 for plan in found)
    for plan, again in zip(found, method().plans(PEOPLE, n=3, sort=by), strict=True):
        keys = [
            {
                "time": each.effort.months if each.effort else None,
                "money": each.effort.money if each.effort else None,
                "changes": len(each.changes),
                "cost": each.cost,
            }[by]
            for each in again.every
        ]
        known = [key for key in keys if key is not None]
        assert keys[: len(known)] == known  # the unknown come last
        exact = [
            key
            for key, each in zip(keys, again.every, strict=True)
            if key is not None
            and not (by == "time" and each.effort and each.effort.months_at_least)
        ]
        assert exact == sorted(exact)
        assert {repr(each.changes) for each in again.every} == {
            repr(each.changes) for each in plan.every
        }


def test_the_first_plan_of_a_promise_stays_first() -> None:
    every = [(plan, by) for plan in method().plans(PEOPLE, n=3) for by in ("time", "money")]
    moved = [(plan, by) for plan, by in every if plan.sorted_by(by).changes != plan.changes]
    assert moved
    for plan, by in moved:
        promised = replace(plan, promise=object())  # type: ignore[arg-type]
        assert promised.sorted_by(by).changes == plan.changes


def test_a_policy_that_prefers_time_gets_the_quicker_plans_first() -> None:
    policy = Policy.of(effort=EFFORT | {"prefer": "time"})
    quick = policy.applied_to(method()).plans(PEOPLE, n=3)
    usual = method().plans(PEOPLE, n=3)
    pairs = [
        (a.effort.months, b.effort.months)
        for a, b in zip(quick, usual, strict=True)
        if a.effort
        and b.effort
        and a.effort.months is not None
        and b.effort.months is not None
        and not a.is_fragile
        and not b.is_fragile
        and not b.effort.months_at_least
    ]
    for plan in quick:
        times = [each.effort.months if each.effort else None for each in plan.every]
        known = [each for each in times if each is not None]
        if len(known) == len(times) and not any(each.is_beyond for each in plan.every):
            assert known == sorted(known)
    assert len(pairs) > 5
    assert all(a <= b + 1e-9 for a, b in pairs)
    assert any(a < b - 1e-9 for a, b in pairs)


def test_an_unknown_part_is_a_lower_bound_and_within_no_limit() -> None:
    x = PEOPLE[PEOPLE["car"] == "no"].head(8)
    rules = {"allowed": {"car": ["yes"]}, "increase": ["savings"]}
    plans = method().plans(x, n=3, rules=rules).shown
    with_car = [each for each in plans if "car" in {c.feature.name for c in each.changes}]
    assert with_car
    alone = [each for each in with_car if len(each.changes) == 1]
    both = [each for each in with_car if len(each.changes) > 1]
    assert all(each.effort is None for each in alone)
    for each in both:
        assert each.effort is not None
        assert each.effort.months_at_least
        assert "at least" in each.takes
        assert "does not say" in each.takes
    only_car = rules | {"lock": ["savings", "debt", "job"]}
    limited = method().plans(x, n=3, rules=only_car, most_months=60)
    assert not [plan for plan in limited if plan.every]
    texts = [plan.reason for plan in limited if plan.reason_code == "over-months"]
    assert texts
    assert all("the policy does not say how long" in text for text in texts)


def test_errors_say_what_to_do() -> None:
    free = NearestNeighbour(h, Schema.infer(X)).fit(X)
    for asked, message in (
        ({"most_months": 3}, "no policy in force says how many months changes take"),
        ({"most_money": 3}, "no policy in force says what changes cost"),
        ({"sort": "time"}, "sort is 'time', but no policy in force says what changes take"),
        ({"sort": "tme"}, "sort is 'tme' (did you mean 'time'?)"),
        ({"most_months": -1}, "most_months is -1"),
    ):
        with pytest.raises(UserError) as caught:
            free.plans(PEOPLE.head(1), **asked)  # type: ignore[arg-type]
        assert message in str(caught.value)
    with pytest.raises(UserError, match="sort is 'price'"):
        PlanRequest(sort="price")
    assert free.plans(PEOPLE.head(1), sort="changes")[0].status == "ok"


def test_a_saved_model_and_every_form_keep_time_and_money(tmp_path: Path) -> None:
    request = PlanRequest(n=2, most_months=30, sort="time")
    method().save(tmp_path / "model")
    service = Service(load(tmp_path / "model", h))
    plans = service.plans(PEOPLE.head(8), request)
    direct = method().plans(PEOPLE.head(8), n=2, most_months=30, sort="time")
    assert plans.to_json() == direct.to_json()
    again = Plans.from_json(plans.to_json())
    assert again.to_json() == plans.to_json()
    assert [each.effort for each in again.shown] == [each.effort for each in plans.shown]
    plan = next(plan for plan in plans if plan.effort and plan.effort.months)
    for text in (plan.to_text(), plan.to_html(), service.report(PEOPLE.head(8), request, plans)):
        assert plan.takes in text
    table = service.plan_table(plans, PEOPLE.head(8))
    shown = [each.effort.months for each in plans.shown if each.effort]
    assert table["months"].dropna().tolist() == shown
    assert table.loc[table["status"] == "ok", "effort"].tolist() == [e.takes for e in plans.shown]
    old = json.loads(plans.to_json())
    for person in old:
        person.pop("nearest")
        for each in (person, *person["alternatives"]):
            each.pop("effort")
    read = Plans.from_json(json.dumps(old))
    assert [each.effort for each in read.shown] == [None] * len(read.shown)


def test_a_letter_says_it_in_its_own_language(tmp_path: Path) -> None:
    plan = next(plan for plan in method().plans(PEOPLE) if plan.effort and plan.effort.months == 3)
    assert "We count on this to take about 3 months and no money." in _flat(plan, "en")
    assert "etwa 3 Monate und keine Kosten" in _flat(plan, "de")
    lost = method().plans(PEOPLE.head(1), most_months=0)[0]
    assert "The shortest time that we found is about" in _flat(lost, "en")
    import genrecourse.planning.letter as letters

    text = (letters.FOLDER / "en.toml").read_text(encoding="utf-8")
    start, end = text.index("[effort]"), text.index("[change]")
    older = tmp_path / "ours.toml"  # a template from before there were times
    older.write_text(text[:start] + text[end:], encoding="utf-8")
    assert "about 3 months" not in _flat(plan, str(older))


def _flat(plan: Plan, template: str) -> str:
    return " ".join(plan.to_letter(template).to_text().split())


@pytest.mark.parametrize(
    ("months", "words"),
    [
        (0.05, "a few days"),
        (0.25, "1 week"),
        (0.5, "2 weeks"),
        (0.9, "1 month"),
        (1.4, "1 month"),
        (7.6, "8 months"),
        (12, "12 months"),
        (23.4, "23 months"),
        (24, "2 years"),
        (31, "2.5 years"),
        (125, "10 years"),
    ],
)
def test_times_are_rounded_for_people(months: float, words: str) -> None:
    assert time_in_words(months, english()) == words


def test_money_is_rounded_for_people() -> None:
    def said(money: float, currency: str = "€") -> str:
        return Effort(None, money, 1, currency).to_text(english())

    assert said(0) == "no money"
    assert said(3120) == "about €3,100"
    assert said(86, "DM") == "about 86 DM"
    assert Effort(3.0, 250.0, 1, "€", True, True).to_text(english()) == (
        "at least 3 months and at least €250"
    )
