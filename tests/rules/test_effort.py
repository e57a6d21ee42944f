"""What changes take by a policy: the numbers against a walk through the text, and the mistakes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse import Policy, Schema, UserError
from genrecourse.rules.effort import Efforts
from genrecourse.rules.kinds import Rules
from genrecourse.table.encoding import TableEncoder

GRADES, JOBS = ("low", "mid", "high"), ("cook", "nurse", "clerk")
CHANGES: dict[str, Any] = {
    "savings": {"each": 500, "months": 1, "once": {"months": 2, "price": 30}},
    "debt": {"down": {"each": 100, "months": 0.5, "price": 100}, "up": {"months": 0, "price": 0}},
    "grade": {"up": {"each": 1, "months": 12, "price": 400}},
    "job": [
        {"from": "cook", "to": "nurse", "months": 36, "price": 2000},
        {"to": "nurse", "months": 24},
        {"from": "clerk", "months": 1, "price": 5},
    ],
    "phone": {"months": 0.1, "price": 20},
}


def table(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "savings": rng.integers(0, 40, n) * 100,
            "debt": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 30, n) * 50.0),
            "grade": rng.choice(GRADES, n),
            "job": rng.choice(JOBS, n),
            "phone": np.where(rng.random(n) < 0.2, None, rng.choice(["yes", "no"], n)),
            "unstated": rng.integers(0, 3, n),
        }
    )


def schema(X: pd.DataFrame) -> Schema:
    found = Schema.infer(X)
    return found.with_feature("grade", categories=GRADES, ordered=True)


X = table()
ENCODER = TableEncoder(schema(X)).fit(X)


def taken(name: str, before: Any, after: Any, what: str) -> float:
    """Return what one change takes, as a person reads it from CHANGES; NaN: it does not say."""
    if pd.isna(before) and pd.isna(after):
        return 0.0
    if before == after:
        return 0.0
    own = CHANGES.get(name)
    if own is None:
        return math.nan
    if isinstance(own, list):
        for entry in own:
            if entry.get("from", before) == before and entry.get("to", after) == after:
                return float(entry.get(what, math.nan))
        return math.nan
    places = (
        [GRADES.index(v) for v in (before, after)]
        if name == "grade"
        else [0 if isinstance(v, str) or v is None else v for v in (before, after)]
    )
    if "up" in own or "down" in own:
        if pd.isna(before):
            return math.nan
        own = own.get("up" if places[1] > places[0] else "down", {})
    each, once = own.get("each"), own.get("once", {})
    if what not in own and what not in once:
        return math.nan
    size = 1.0 if each is None else abs(places[1] - places[0]) / each
    return own.get(what, 0.0) * size + once.get(what, 0.0)


@pytest.mark.parametrize("together", ["one after the other", "side by side"])
def test_time_and_money_of_any_change_are_what_the_text_says(together: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (X.iloc[rng.integers(0, len(X), 400)].reset_index(drop=True) for _ in range(2))
    keep = rng.random(b.shape) < 0.6  # most features stay, so that many sums are known
    b = b.astype(object).where(~keep, a.astype(object)).astype(X.dtypes.to_dict())
    b = b.where(b.notna(), a)  # nothing changes to missing
    policy = Policy.of(effort={"together": together, "changes": CHANGES})
    efforts = policy.efforts(ENCODER)
    assert efforts is not None
    F, F_plus = ENCODER.features(a), ENCODER.features(b)
    for what, answer in (("months", efforts.months), ("price", efforts.money)):
        parts = np.array(
            [
                [taken(name, a[name].iloc[i], b[name].iloc[i], what) for name in X.columns]
                for i in range(len(a))
            ]
        )
        is_max = what == "months" and together == "side by side"
        expected = np.where(np.isnan(parts), np.inf, parts)
        expected = expected.max(axis=1) if is_max else expected.sum(axis=1)
        assert np.isfinite(expected).sum() > 40
        assert np.isinf(expected).sum() > 40
        np.testing.assert_allclose(answer(F, F_plus), expected, rtol=1e-9, atol=1e-6)


def test_what_changes_by_itself_takes_nothing() -> None:
    ages = pd.DataFrame({"age": [30, 40], "savings": [0, 100]})
    policy = Policy.of(
        features={"age": {"role": "advances", "horizon": 1}},
        effort={"changes": {"savings": {"each": 100, "months": 3}}},
    )
    encoder = TableEncoder(policy.schema(ages)).fit(ages)
    efforts = policy.efforts(encoder)
    assert isinstance(efforts, Efforts)
    F = encoder.features(pd.DataFrame({"age": [30, 31], "savings": [0, 100]}))
    assert efforts.months(F[:1], F[1:]).tolist() == [3.0]


@pytest.mark.parametrize(
    ("effort", "message"),
    [
        ({"changes": {"savings": {"each": 500}}}, "neither 'months' nor 'price'"),
        ({"changes": {"savings": {"each": 0, "months": 1}}}, "'effort.changes.savings.each' is 0"),
        ({"changes": {"savings": {"months": -1}}}, "'effort.changes.savings.months' is -1"),
        ({"changes": {"savings": {"months": 1, "once": {"price": 3}}}}, "'once' but no 'each'"),
        (
            {"changes": {"savings": {"months": 1, "up": {"months": 2}}}},
            "'months' for changes up and down, and 'up' by itself",
        ),
        ({"changes": {"savings": {"month": 1}}}, "(did you mean 'months'?)"),
        (
            {"changes": {"job": [{"months": 1}, {"to": "nurse", "months": 2}]}},
            "entry 2 of its list never counts",
        ),
        ({"together": "both"}, "'effort.together' is 'both'"),
        ({"prefer": "money", "changes": {"job": {"months": 1}}}, "no change has 'price'"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(effort: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        Policy.of(effort=effort)
    assert message in str(caught.value)
    assert str(caught.value).startswith("the policy: ")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"saving": {"months": 1}}, "(did you mean 'savings'?)"),
        ({"savings": [{"months": 1}]}, "the feature is a number"),
        ({"job": [{"to": "baker", "months": 1}]}, "names the level 'baker', which is none of"),
        ({"job": {"each": 1, "months": 1}}, "the levels have no order"),
        ({"job": {"up": {"months": 1}}}, "the levels have no order"),
    ],
)
def test_a_name_that_the_table_lacks_is_refused(changes: dict[str, Any], message: str) -> None:
    policy = Policy.of(effort={"changes": changes})
    with pytest.raises(UserError) as caught:
        policy.schema(X, schema(X))
    assert message in str(caught.value)


def test_a_limit_of_the_policy_needs_times() -> None:
    with pytest.raises(UserError, match=r"'rules.max_months' is 12, but no change has 'months'"):
        Policy.of(rules={"max_months": 12}, effort={"changes": {"job": {"price": 1}}})
    assert Rules(max_months=12).also(Rules(max_months=3, max_money=5)).max_months == 3


def test_the_model_file_keeps_it_and_older_ones_have_none() -> None:
    policy = Policy.of(effort={"currency": "DM", "prefer": "time", "changes": CHANGES})
    packed = policy.pack()
    assert Policy.unpack(packed).pack() == packed
    efforts = Policy.unpack(packed).efforts(ENCODER)
    assert efforts is not None
    assert efforts.stated == policy.stated.effort
    del packed["stated"]["effort"]
    assert Policy.unpack(packed).efforts(ENCODER) is None


def test_lint_names_what_a_plan_can_change_and_the_policy_does_not_time() -> None:
    policy = Policy.of(
        features={"grade": {"categories": GRADES, "ordered": True}, "debt": {"role": "immutable"}},
        rules={"lock": ["phone"]},
        effort={"changes": {key: CHANGES[key] for key in ("savings", "job", "debt")}},
    )
    found = "\n".join(policy.lint(X))
    assert "how many months changes of ['grade', 'job', 'unstated'] take" in found
    assert "what changes of ['grade', 'job', 'unstated'] cost" in found
    assert "'effort.changes.debt' does nothing, because 'debt' is immutable" in found


def test_lint_asks_only_for_the_ways_that_a_feature_may_go() -> None:
    up = {"each": 1, "months": 2}
    for direction, asked in (("increase", False), ("any", True)):
        policy = Policy.of(
            unlisted="immutable",
            features={"savings": {"role": "mutable", "direction": direction}},
            effort={"changes": {"savings": {"up": up}}},
        )
        assert any("how many months" in remark for remark in policy.lint(X)) == asked
