""" "Proven" is said of a number only where every value that the rules allow was tried."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse.planning.plans import Evidence, Plan, Plans
from genrecourse.rules.kinds import Rules
from genrecourse.table.schema import Schema
from tests.planning.test_guarantee import Offering

ABSOLUTE, OBSERVED = "to every value that the rules allow", "that occur in the data"


def table(hours: Any) -> pd.DataFrame:
    """One number, and a category that helps nobody."""
    return pd.DataFrame({"hours": hours, "job": np.resize(["a", "b", "c"], len(hours))})


def plan_of(X: pd.DataFrame, person: Any, at: Any = None, schema: Any = None, **how: Any) -> Plan:
    """The plan of a person with these hours; h accepts only the hours `at`."""

    def h(X: pd.DataFrame) -> np.ndarray:
        hit = np.zeros(len(X)) if at is None else np.isclose(X["hours"].to_numpy(float), at)
        return np.where(hit, 0.9, 0.1)

    one = pd.DataFrame({"hours": [person], "job": ["a"]}).astype(X.dtypes)
    (plan,) = Offering(h, schema or Schema.infer(X)).fit(X).plans(one, **how)
    return plan


WHOLE = table(np.arange(1, 13))
GAP = table(np.array([1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 12]))  # 6 does not occur
REAL = table(np.array([0.1, 0.25, 1 / 3, 0.5, 0.7, np.pi / 4, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0]))


def test_whole_numbers_that_all_occur_are_proven_without_more() -> None:
    plan = plan_of(WHOLE, 3)
    assert plan.evidence == Evidence(True, 11 + 2 + 11 * 2, 11, 1, observed=0)
    assert ABSOLUTE in plan.reason
    assert OBSERVED not in plan.reason
    plan = plan_of(WHOLE, 3, at=8)
    assert plan.cheapest is not None
    assert "(proven: every value that the rules allow was tried)" in plan.facts


def test_a_whole_number_that_does_not_occur_is_not_ruled_out() -> None:
    """h accepts 6 hours, which the rules allow and no training row has."""
    plan = plan_of(GAP, 3, at=6)
    assert (plan.status, plan.evidence and plan.evidence.observed) == ("no-plan", 10)
    assert "Proven over the 10 values that occur in the data" in plan.reason
    assert ABSOLUTE not in plan.reason
    plan = plan_of(GAP, 3, at=8)
    assert plan.facts.endswith("(proven over the 10 values that occur in the data)")


@pytest.mark.parametrize(
    ("rules", "observed"),
    [
        (Rules(ranges={"hours": (7, 12)}), 0),  # all of these occur
        (Rules(ranges={"hours": (5, 12)}), 7),  # 6 does not
        (Rules(max_step={"hours": 2}), 0),  # 1 to 5
        (Rules(max_step={"hours": 3}), 4),  # 6, too
        (Rules(allowed={"hours": (6, 8, 30)}), 0),  # a list is tried as a whole
        (Rules(lock=("hours",)), 0),
    ],
)
def test_what_the_rules_leave_decides(rules: Rules, observed: int) -> None:
    plan = plan_of(GAP, 3, rules=rules)
    assert plan.evidence is not None
    assert (plan.evidence.proven, plan.evidence.observed) == (True, observed)
    assert (ABSOLUTE in plan.reason) == (observed == 0)


def test_a_continuous_number_is_proven_over_the_values_that_occur() -> None:
    schema = Schema.infer(REAL).with_feature("hours", decimals=None)
    plan = plan_of(REAL, 0.25, schema=schema)
    assert plan.evidence is not None
    assert (plan.evidence.proven, plan.evidence.observed) == (True, 8)  # 9 values, one is x's own
    assert "Proven over the 8 values that occur in the data" in plan.reason
    assert plan.evidence.to_text() in plan.to_text()
    plan = plan_of(REAL, 0.25, at=0.7, schema=schema)
    assert "(proven over the 8 values that occur in the data)" in plan.to_text()
    locked = plan_of(REAL, 0.25, schema=schema, rules=Rules(lock=("hours",)))
    assert locked.evidence is not None
    assert locked.evidence.observed == 0  # only the job may change
    assert ABSOLUTE in locked.reason


def test_a_number_with_decimals_is_whole_in_its_own_unit() -> None:
    tenths = table(np.arange(1, 13) / 10)
    schema = Schema.infer(tenths).with_feature("hours", decimals=1)
    assert ABSOLUTE in plan_of(tenths, 0.3, schema=schema).reason
    finer = schema.with_feature("hours", decimals=2)
    assert "over the 11 values that occur" in plan_of(tenths, 0.3, schema=finer).reason


def test_a_person_between_two_values_has_one_more_to_go_to() -> None:
    """Hours of 3.5: every whole number is a change."""
    X = table(np.arange(1.0, 13.0))
    plan = plan_of(X, 3.5, schema=Schema.infer(X).with_feature("hours", decimals=0))
    assert plan.evidence == Evidence(True, 12 + 2 + 12 * 2, 12, 1, observed=0)


def test_a_range_beyond_the_data_whose_whole_numbers_are_all_tried_is_proven() -> None:
    X = table(np.arange(1, 13))
    schema = Schema.infer(X).with_feature("hours", range=(1, 100))
    few = plan_of(X, 3, schema=schema, rules=Rules(ranges={"hours": (20, 40)}))
    assert few.evidence == Evidence(True, 21 + 2 + 21 * 2, 21, 1, observed=0)
    finer = schema.with_feature("hours", decimals=1)
    many = plan_of(X, 3, schema=finer, rules=Rules(ranges={"hours": (20, 40)}))
    assert many.evidence is not None
    assert not many.evidence.proven  # 201 values, of which 50 were tried


def test_nothing_is_proven_of_a_number_of_which_no_value_was_tried() -> None:
    """All rows have 5 hours, and the rules allow 1 to 10."""
    X = table(np.full(12, 5))
    schema = Schema.infer(X).with_feature("hours", range=(1, 10))
    plan = plan_of(X, 5, schema=schema)
    assert plan.evidence is not None
    assert not plan.evidence.proven
    assert plan_of(X, 5).evidence == Evidence(True, 2, 2, 1)  # its range is 5 to 5


def test_what_follows_by_itself_is_no_gap() -> None:
    X = WHOLE.assign(double=2.5 * WHOLE["hours"])
    schema = Schema.infer(X).with_feature("double", role="derived", formula="2.5 * hours")
    person = pd.DataFrame({"hours": [3], "job": ["a"], "double": [7.5]})
    (plan,) = Offering(lambda X: np.full(len(X), 0.1), schema).fit(X).plans(person)
    assert plan.evidence is not None
    assert (plan.evidence.proven, plan.evidence.observed) == (True, 0)


def test_one_value_is_counted_as_one() -> None:
    assert "over the only value that occurs in the data," in Evidence(True, 1, 1, 1, 1).to_text()
    assert Evidence(True, 9, 1, 1, 1_234).to_text().startswith("Proven over the 1,234 values that")


def test_a_proof_outlives_a_file_and_an_earlier_file_claims_none() -> None:
    found = Evidence(True, 12, 5, 3, 41)
    plan = Plan(7, "no-plan", 0.3, 0.5, reason_code="not-accepted", evidence=found)
    text = Plans((plan,)).to_json()
    assert Plans.from_json(text)[0].evidence == plan.evidence
    data = json.loads(text)
    del data[0]["evidence"]["observed"]
    (earlier,) = Plans.from_json(json.dumps(data))
    assert earlier.evidence is not None
    assert not earlier.evidence.proven
