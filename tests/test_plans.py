"""The wording of plans, what they never tell, and the draws that they were chosen from."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse.checks import Example, example_score, make_example
from genrecourse.errors import UserError
from genrecourse.methods.genre import GenRe
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.plans import PURPOSE, REASONS, Change, Plan, Plans, in_words, score_words
from genrecourse.schema import Feature

SCRIPT = "<script>alert('x')</script>"
AMOUNT = Feature(name="amount", kind="number", decimals=0, unit="DM", wording="credit amount")
REAL = Feature(name="ratio", kind="number")


def number(**fields: Any) -> Feature:
    return Feature(name="n", kind="number", **fields)


# ---- values in words --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feature", "value", "words"),
    [
        (AMOUNT, 4870, "4,870 DM"),
        (AMOUNT, np.int64(1234567), "1,234,567 DM"),
        (AMOUNT, -0.0, "0 DM"),
        (number(decimals=2), 1200.5, "1,200.50"),
        (number(decimals=1), np.float32(0.1), "0.1"),
        (number(decimals=0), 2.37, "2.37"),  # more decimals than the training rows had
        (REAL, 48321.77, "48,322"),
        (REAL, 12.3456, "12.3"),
        (REAL, 0.0123456, "0.0123"),
        (REAL, 0.5, "0.5"),
        (REAL, 0.0, "0"),
        (REAL, 1.23456e-9, "1.23e-09"),
        (number(unit="$", decimals=0), 4870, "$4,870"),
        (number(unit="€", decimals=0), -4870, "-€4,870"),
        (number(unit="US$", decimals=0), 5, "US$5"),
        (number(unit="%", decimals=0), 12, "12%"),
        (number(unit="months", decimals=0), 1, "1 month"),
        (number(unit="months", decimals=0), 12, "12 months"),
        (number(missing=True), np.nan, "not given"),
        (number(missing=True), pd.NA, "not given"),
        (number(missing=True), None, "not given"),
    ],
)
def test_a_number_is_written_as_people_write_it(feature: Feature, value: Any, words: str) -> None:
    assert in_words(feature, value) == words


def test_a_level_is_written_as_it_is_and_a_truth_as_yes_or_no() -> None:
    flag = Feature(name="member", kind="category", categories=(False, True))
    rooms = Feature(name="rooms", kind="category", categories=(1, 2), unit="rooms")
    text = Feature(name="job", kind="category", categories=("none",), unit="ignored")
    assert [in_words(flag, v) for v in (True, np.bool_(False))] == ["yes", "no"]
    assert in_words(rooms, 2) == "2 rooms"
    assert in_words(text, "none") == "none"


def test_a_change_shows_as_many_digits_as_it_takes_to_see_it() -> None:
    assert Change(REAL, 0.123411, 0.123499).words == ("0.1234", "0.1235")
    assert Change(number(decimals=0), 2.0000001, 2.0).words == ("2.0000001", "2")
    assert Change(AMOUNT, 4870, 2900).to_text() == "credit amount: 4,870 DM → 2,900 DM"


def test_scores_show_on_which_side_of_the_cutoff_they_are() -> None:
    assert score_words(0.31, 0.72, 0.5) == ["0.31", "0.72", "0.50"]
    assert score_words(0.4996, 0.5004, 0.5) == ["0.4996", "0.5004", "0.5000"]
    assert score_words(600.0, 655.0, 640.0) == ["600", "655", "640"]
    assert score_words(0.5, 0.5) == ["0.50", "0.50"]  # at the cutoff is not above it


# ---- a plan -----------------------------------------------------------------------------------


def told(*changes: Change, person: Any = 7, **fields: Any) -> Plan:
    return Plan(person, "ok", 0.31, 0.5, changes, 0.72, 0.413, **fields)


def test_a_plan_in_text() -> None:
    plan = told(Change(AMOUNT, 4870, 2900), log_likelihood=-6.21)
    assert plan.to_text() == (
        "7: what would change the model's decision\n"
        "  credit amount: 4,870 DM → 2,900 DM\n"
        "  model's score 0.31 → 0.72 (favourable above 0.50), cost 0.41, log-likelihood -6.2"
    )


@pytest.mark.parametrize("status", REASONS)
def test_every_reason_is_a_sentence_and_none_promises_an_approval(status: str) -> None:
    plan = Plan(7, status, 0.31, 0.5)
    assert plan.reason.endswith(".")
    assert plan.reason in plan.to_text()
    assert "approv" not in (plan.to_text() + PURPOSE).lower()
    assert "→" not in plan.to_text() + plan.to_html()


def test_a_status_that_is_not_known_still_has_a_reason() -> None:
    assert "out-of-time" in Plan(7, "out-of-time", 0.31, 0.5).reason


@pytest.mark.parametrize(
    "kept",
    [{"changes": (Change(AMOUNT, 1, 2),)}, {"score_after": 0.4}, {"cost": 1.0}],
)
def test_a_plan_that_failed_cannot_even_be_made(kept: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must not be told"):
        Plan(7, "not-accepted", 0.31, 0.5, **kept)


def test_html_escapes_names_values_and_labels() -> None:
    evil = Feature(name="a", kind="category", categories=(SCRIPT, "b"), wording=SCRIPT)
    html = Plans((told(Change(evil, SCRIPT, "b"), person=SCRIPT),))._repr_html_()
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 3


# ---- several plans ----------------------------------------------------------------------------


def test_plans_are_a_sequence_and_found_by_label() -> None:
    one, two = told(Change(AMOUNT, 4, 3), person="a"), Plan("b", "not-accepted", 0.1, 0.5)
    plans = Plans((one, two))
    assert (len(plans), list(plans), plans[1]) == (2, [one, two], two)
    assert plans[:1] == Plans((one,))
    assert plans.of("b") is two
    with pytest.raises(UserError, match="no plan for 'c'; the 2 people begin with 'a', 'b'"):
        plans.of("c")
    with pytest.raises(UserError, match="2 people have the label 'a'"):
        Plans((one, one)).of("a")


@pytest.fixture(scope="module")
def example() -> Example:
    return make_example()


@pytest.fixture(scope="module")
def plans(method: GenRe, example: Example) -> Plans:
    return method.plans(example.people)


def test_plans_tell_what_recourse_changes_and_only_where_it_holds(
    method: GenRe, example: Example, plans: Plans
) -> None:
    X_plus = method.recourse(example.people)
    found = method.assess(example.people, X_plus)
    assert [p.person for p in plans] == list(example.people.index)
    assert [p.status for p in plans] == list(found["status"])
    assert {"ok", "not-accepted", "already-accepted"} <= set(found["status"])
    for i, plan in enumerate(plans):
        if plan.status != "ok":
            assert (plan.changes, plan.cost, plan.score_after) == ((), None, None)
            continue
        assert len(plan.changes) == found["changes"].iloc[i] > 0
        x_plus = example.people.iloc[i].astype(object).copy()
        for change in plan.changes:
            assert change.words[0] != change.words[1]
            x_plus[change.feature.name] = change.after
        pd.testing.assert_series_equal(x_plus, X_plus.iloc[i].astype(object), rtol=1e-7)


def test_likelihood_is_the_methods_own(method: GenRe, example: Example, plans: Plans) -> None:
    log_prob = method.log_prob(method.recourse(example.people), given=example.people)
    ok = [i for i, plan in enumerate(plans) if plan.status == "ok"]
    said = [plans[i].log_likelihood for i in ok]
    assert np.allclose(np.array(said, dtype=float), log_prob.iloc[ok], rtol=1e-4)


def test_a_method_without_a_density_has_no_likelihood(example: Example) -> None:
    nearest = NearestNeighbour(example_score, example.schema).fit(example.X, example.y)
    plans = nearest.plans(example.people)
    assert any(plan.status == "ok" for plan in plans)
    assert {plan.log_likelihood for plan in plans} == {None}


def test_json_is_strict_and_whole(plans: Plans) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    read = json.loads(plans.to_json(), parse_constant=refuse)
    assert read == [plan.to_dict() for plan in plans]
    odd = told(Change(REAL, np.nan, 1.0), person=(pd.Timestamp("2024-01-01"), 2))
    again = json.loads(odd.to_json(), parse_constant=refuse)
    assert again["changes"][0]["before"] is None
    assert "2024" in again["person"]


def test_a_plan_of_zero_likelihood_is_still_json(example: Example) -> None:
    class NoMass(NearestNeighbour):
        def log_prob(self, x_plus: pd.DataFrame, given: pd.DataFrame) -> pd.Series:
            return pd.Series(-np.inf, index=given.index)

    plans = NoMass(example_score, example.schema).fit(example.X, example.y).plans(example.people)
    assert "Infinity" not in plans.to_json()


def test_the_frame_has_a_row_for_each_change_and_for_each_person_without(plans: Plans) -> None:
    frame = plans.to_frame()
    assert len(frame) == sum(max(1, len(plan.changes)) for plan in plans)
    assert list(dict.fromkeys(frame["person"])) == [plan.person for plan in plans]
    changes = frame[frame["feature"].notna()]
    assert list(changes["after"]) == [c.after for plan in plans for c in plan.changes]
    without = frame[frame["feature"].isna()]
    assert (without["reason"] != "").all()
    assert without["score_after"].isna().all()
    assert frame["score_before"].dtype == np.float64


# ---- draws ------------------------------------------------------------------------------------


def test_the_chosen_draw_is_what_recourse_gives_back(example: Example) -> None:
    """Where nothing is retrieved and nothing refined, there is nothing but the draws."""
    params = GenRe._test_params() | {"retrieve": False, "refine": False}
    method = GenRe(example_score, example.schema, **params).fit(example.X, example.y)
    draws = method.draws(example.people)
    rejected = ~method.classifier_.accepts(example.people)
    chosen = draws["chosen"].to_numpy().reshape(len(example.people), method.n_draws)
    assert (chosen.sum(axis=1) == rejected).all()  # people already accepted are left as they are
    given = method.sample(example.people, method.n_draws)[draws["chosen"]].droplevel("draw")
    expected = method.recourse(example.people)[rejected]
    pd.testing.assert_frame_equal(given, expected, check_names=False)


def test_draws_have_the_cost_score_and_likelihood_of_the_draw(
    method: GenRe, example: Example
) -> None:
    people = example.people.iloc[:5]
    draws, rows = method.draws(people, n=3), method.sample(people, n=3)
    assert draws.index.equals(rows.index)
    given = people.loc[rows.index.get_level_values("row")]
    rows = rows.set_axis(given.index, axis="index")
    found = method.assess(given, rows)
    assert np.allclose(draws["score"], found["score_plus"])
    assert np.allclose(draws["cost"], found["cost"])
    assert np.allclose(draws["log_likelihood"], method.log_prob(rows, given=given), rtol=1e-4)
