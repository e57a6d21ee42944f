"""Metrics: each on people whose numbers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse import metrics
from genrecourse.encoding import TableEncoder
from genrecourse.metrics import METRICS, Outcome
from genrecourse.schema import Schema

TRAINING = pd.DataFrame(
    {
        "age": [20, 60],
        "income": [0.0, 100.0],
        "job": ["cook", "nurse"],
        "gap": [0.0, np.nan],
    }
)
TRAINING = pd.concat(
    [TRAINING, pd.DataFrame({"age": [30], "income": [5.5], "job": ["pilot"], "gap": [10.0]})]
)


class FakeJudge:
    """Finds people valid who earn more than half, and normal where the job is a cook's."""

    def valid(self, Z: np.ndarray) -> np.ndarray:
        return Z[:, 1] > 0.5

    def inlier(self, Z: np.ndarray) -> np.ndarray:
        return Z[:, 2] == 1.0


def outcome(before: list[Any], after: list[Any], accepted: list[bool]) -> Outcome:
    schema = (
        Schema.infer(TRAINING)
        .with_feature("age", direction="increase", max_step=10, cost_weight=2.0)
        .with_feature("job", role="immutable")
    )
    encoder = TableEncoder(schema).fit(TRAINING)
    F, F_plus = (
        encoder.features(pd.DataFrame(rows, columns=list(TRAINING)).astype({"gap": float}))
        for rows in (before, after)
    )
    judge: Any = FakeJudge()
    return Outcome(F, F_plus, np.array(accepted), encoder, judge)


PEOPLE = outcome(
    before=[
        (20, 0.0, "cook", 0.0),
        (20, 0.0, "cook", 0.0),
        (40, 30.0, "nurse", None),
        (60, 0.0, "cook", None),
        (50, 40.0, "pilot", 5.0),
    ],
    after=[
        (20, 0.0, "cook", 0.0),  # nothing
        (30, 60.0, "cook", 0.0),  # a good plan
        (40, 30.0, "nurse", 10.0),  # a missing value found
        (20, 100.0, "nurse", None),  # younger by 40 years, and another job
        (55, 40.0, "cook", None),  # another job and a value forgotten
    ],
    accepted=[False, True, True, False, False],
)
EXPECTED = {
    # age counts twice and spans 40 years; income spans 100; job and a missing value count 1
    "cost": [0.0, 2 * 0.25 + 0.6, 1.0, 2 * 1.0 + 1.0 + 1.0, 2 * 0.125 + 1.0 + 1.0],
    "val": [0.0, 1.0, 0.0, 1.0, 0.0],
    "lof": [1.0, 1.0, 0.0, 0.0, 1.0],
    "score": [1.0, 2.0 - 1.1 / 4, -1.0 / 4, 1.0 - 4.0 / 4, 1.0 - 2.25 / 4],
    "h_valid": [0.0, 1.0, 1.0, 0.0, 0.0],
    "changes": [0.0, 2.0, 1.0, 3.0, 3.0],
    # the fourth breaks direction and step of one feature, which is one feature
    "violations": [0.0, 0.0, 0.0, 2.0, 2.0],
}
DIRECTIONS = {
    "cost": "lower",
    "val": "higher",
    "lof": "higher",
    "score": "higher",
    "h_valid": "higher",
    "changes": "lower",
    "violations": "lower",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_known_answers(name: str) -> None:
    found = METRICS[name][0](PEOPLE)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, EXPECTED[name], rtol=0, atol=1e-12)


def test_names_and_directions() -> None:
    found = {name: direction for name, (_, direction) in METRICS.items()}
    assert found | DIRECTIONS == found
    for name, (function, direction) in METRICS.items():
        assert direction in ("lower", "higher")
        assert function is getattr(metrics, name)
        assert function.__doc__


def test_doing_better_is_better() -> None:
    """The direction of each metric, seen on a good plan and a bad one."""
    good = outcome([(20, 0.0, "cook", 0.0)], [(20, 60.0, "cook", 0.0)], [True])
    bad = outcome([(30, 0.0, "cook", 0.0)], [(20, 40.0, "nurse", 5.0)], [False])
    for name in EXPECTED:
        function, direction = METRICS[name]
        sign = 1 if direction == "higher" else -1
        assert sign * function(good)[0] > sign * function(bad)[0]


def test_before_and_after_are_rows_of_z() -> None:
    np.testing.assert_array_equal(PEOPLE.before, PEOPLE.encoder.from_features(PEOPLE.F))
    np.testing.assert_array_equal(PEOPLE.after, PEOPLE.encoder.from_features(PEOPLE.F_plus))
