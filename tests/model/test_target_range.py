"""A regressor as h: plans end in the range of predictions, and its ends belong to it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from genrecourse import NearestNeighbour, Schema, TargetRange, UserError

RNG = np.random.default_rng(0)
X = pd.DataFrame({"income": RNG.integers(0, 80, 200), "debt": RNG.integers(0, 40, 200)})
MODEL = LinearRegression().fit(X, X["income"] / 20 - X["debt"] / 40)


@pytest.mark.parametrize("ends", [{"at_least": 2}, {"at_most": 0.5}, {"at_least": 1, "at_most": 2}])
def test_every_plan_ends_in_the_range(ends: dict[str, float]) -> None:
    method = NearestNeighbour(TargetRange(MODEL, X, **ends), Schema.infer(X)).fit(X)
    plans = method.plans(X.head(40))
    found = MODEL.predict(plans.x_plus()[["income", "debt"]])
    assert len(found) > 10
    assert (found >= ends.get("at_least", -np.inf) - 1e-9).all()
    assert (found <= ends.get("at_most", np.inf) + 1e-9).all()
    accepted = [plan.status == "already-accepted" for plan in plans]
    before = MODEL.predict(X.head(40))
    low, high = ends.get("at_least", -np.inf), ends.get("at_most", np.inf)
    assert accepted == ((before >= low) & (before <= high)).tolist()


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20),
    st.floats(-1e3, 1e3),
    st.floats(0.1, 1e3),
)
def test_the_score_says_inside_or_outside(values: list[float], low: float, width: float) -> None:
    table = pd.DataFrame({"v": [*values, low, low + width]})
    h = TargetRange(lambda X: X["v"], table, at_least=low, at_most=low + width)
    score, v = h(table), table["v"].to_numpy()
    assert ((score >= 0) & (score <= 1)).all()
    assert ((score > 0.5) == ((v >= low) & (v <= low + width))).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give at_least, at_most, or both"),
        ({"at_least": 4, "at_most": 2}, "at_least is 4 and at_most is 2"),
        ({"at_least": float("nan")}, "at_least is nan; give a finite number"),
    ],
)
def test_a_range_that_is_none(options: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        TargetRange(MODEL, X, **options)


def test_a_model_that_gives_no_number_for_each_row() -> None:
    with pytest.raises(UserError, match=r"shape \(200, 2\) for 200 rows"):
        TargetRange(lambda X: X.to_numpy(), X, at_least=1)
    with pytest.raises(UserError, match="a str cannot predict"):
        TargetRange("a model", X, at_least=1)
