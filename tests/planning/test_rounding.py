"""What a letter asks for in round numbers is what h and the rules accept."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genrecourse import NearestNeighbour, Schema
from genrecourse.planning.plans import Plan, Plans
from genrecourse.planning.round_numbers import is_round, rounded
from tests.support.random_tables import reproducible


@reproducible(300)
@given(
    st.floats(-1e12, 1e12).filter(lambda v: v == 0 or abs(v) > 1e-9),
    st.integers(1, 6),
    st.sampled_from([-1, 0, 1]),
)
def test_a_rounded_number_has_few_digits_and_lies_on_its_side(
    value: float, digits: int, way: int
) -> None:
    found = rounded(value, digits, way)
    assert len(Decimal(repr(found)).normalize().as_tuple().digits) <= digits
    near = abs(value) * 10.0 ** (1 - digits)
    assert abs(found - value) <= near * (1 if way else 0.5) * (1 + 1e-9)
    assert way * (found - value) >= -1e-9 * abs(value)
    assert rounded(found, digits, way) == found
    assert is_round(rounded(value))


# ---- plans ----------------------------------------------------------------------------------


def plan_for(
    h: Callable[[pd.DataFrame], np.ndarray], goal: dict[str, float], **rules: dict[str, Any]
) -> Plan:
    """The plan of a rejected person; the only accepted row of the table is `goal`."""
    n = 60
    X = pd.DataFrame({name: np.linspace(0.2, 0.4, n) * value for name, value in goal.items()})
    X = X.round(2)
    X.loc[n] = goal
    schema = Schema.infer(X)
    for name in goal:  # beyond the table as well, unless the test says otherwise
        schema = schema.with_feature(name, **{"range": (0, 1e6), **rules.get(name, {})})
    return NearestNeighbour(h, schema).fit(X).plans(X.head(1))[0]


def within(name: str, low: float, high: float) -> Callable[[pd.DataFrame], np.ndarray]:
    return lambda X: X[name].between(low, high).to_numpy(dtype=float)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (20_000, 1e9, 24_100),  # h accepts everything near: the nearest with three digits
        (24_137.19, 1e9, 24_200),  # the nearest is too little: the next three digits
        (24_137.19, 24_190, 24_140),  # three digits away are too much
        (24_000, 24_137.19, 24_100),
        (24_129.5, 24_137.19, 24_130),
        (24_137.1, 24_137.2, "no"),  # no four digits lie there
    ],
)
def test_the_rounding_is_one_that_h_accepts(low: float, high: float, expected: object) -> None:
    plan = plan_for(within("income", low, high), {"income": 24_137.19})
    assert plan.changes[0].after == pytest.approx(24_137.19)
    assert plan.round_numbers is not None
    if expected == "no":
        assert plan.round_numbers.values is None
        said = plan.to_letter().to_text()
        assert "only at exact amounts" in said
        assert "24" not in said
    else:
        assert plan.round_numbers.values == {"income": expected}
        assert low <= float(expected) <= high  # type: ignore[arg-type]
        assert f"to {expected:,}" in plan.to_letter().to_text()


def test_one_number_may_have_to_go_up_and_another_down() -> None:
    """More of one and less of the other: rounding both the same way fails."""
    goal = {"income": 24_137.19, "savings": 51_236.4}

    def h(X: pd.DataFrame) -> np.ndarray:
        return (
            X["income"].between(24_137.19, 24_145) & X["savings"].between(51_225, 51_236.4)
        ).to_numpy(dtype=float)

    plan = plan_for(h, goal)
    assert plan.round_numbers is not None
    assert plan.round_numbers.values == {"income": 24_140, "savings": 51_230}


def test_a_rule_stops_a_rounding_that_h_accepts() -> None:
    h = within("income", 24_137.19, 1e9)
    free = plan_for(h, {"income": 24_137.19})
    bound = plan_for(h, {"income": 24_137.19}, income={"range": (0, 24_150)})
    assert free.round_numbers is not None
    assert bound.round_numbers is not None
    assert free.round_numbers.values == {"income": 24_200}
    assert bound.round_numbers.values == {"income": 24_140}


def test_round_numbers_are_not_rounded() -> None:
    plan = plan_for(within("income", 24_130, 1e9), {"income": 24_130.0})
    assert plan.round_numbers is not None
    assert plan.round_numbers.values == {}
    assert "to 24,130" in plan.to_letter().to_text()


def test_whole_numbers_stay_whole() -> None:
    plan = plan_for(within("rooms", 12_344, 1e9), {"rooms": 12_345.0}, rooms={"decimals": 0})
    assert plan.round_numbers is not None
    assert plan.round_numbers.values is not None
    assert all(float(v).is_integer() for v in plan.round_numbers.values.values())


def test_a_change_that_is_not_enough_alone_is_named() -> None:
    """Both are needed, or only one of them is."""
    goal = {"income": 50.0, "savings": 70.0}
    both = plan_for(lambda X: ((X["income"] > 40) & (X["savings"] > 60)).to_numpy(float), goal)
    assert both.round_numbers is not None
    assert both.round_numbers.not_enough == ("income", "savings")
    assert "None of these changes is enough on its own" in both.to_letter().to_text()

    first = plan_for(lambda X: (X["income"] > 40).to_numpy(float), goal)
    assert first.round_numbers is not None
    names = [change.feature.name for change in first.changes]
    assert first.round_numbers.not_enough == (("savings",) if len(names) > 1 else ())
    if len(names) > 1:
        assert "Not enough alone: savings." in str(first.to_letter())


def test_a_number_derived_from_rounded_ones_is_computed_again() -> None:
    X = pd.DataFrame({"debt": np.linspace(90_000, 30_000, 60).round(2)})
    X["share"] = X["debt"] / 1000
    schema = Schema.infer(X).with_feature("share", role="derived", formula="debt / 1000")
    method = NearestNeighbour(lambda X: (X["share"] < 40).to_numpy(float), schema).fit(X)
    plan = method.plans(X.head(1))[0]
    assert plan.round_numbers is not None
    values = plan.round_numbers.values
    assert values is not None
    assert math.isclose(values["share"], values["debt"] / 1000)
    assert values["share"] < 40
    assert values["debt"] != plan.changes[0].after


def test_round_numbers_of_another_plan_are_not_used() -> None:
    """A plan whose changes were edited must not be written with what was found for the old ones."""
    from dataclasses import replace

    both = {"income": 24_137.19, "savings": 500.0}
    h = lambda X: ((X["income"] >= 24_137.19) & (X["savings"] >= 400)).to_numpy(float)  # noqa: E731
    plan = plan_for(h, both)
    fewer = replace(plan, changes=tuple(c for c in plan.changes if c.feature.name == "income"))
    assert len(fewer.changes) < len(plan.changes)
    assert "only at exact amounts" in fewer.to_letter().to_text()


def test_they_are_stored() -> None:
    plan = plan_for(within("income", 24_137.19, 1e9), {"income": 24_137.19})
    again = Plans.from_json(Plans((plan,)).to_json())[0]
    assert again.round_numbers == plan.round_numbers
    assert again.to_letter(date="2026-11-18") == plan.to_letter(date="2026-11-18")
