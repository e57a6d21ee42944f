"""h is asked once about each row, and about none whose answer changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from genrecourse.evaluation.example_tables import example_rows
from genrecourse.genre.fit import fit_verifier
from genrecourse.model.classifier import Classifier
from genrecourse.planning.enumeration import ObservedValues
from genrecourse.planning.guarantee import PlanChecker
from genrecourse.rules.problem import Problem, asking_once
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.schema import Schema
from genrecourse.trust.verifier import Thresholds

ONE = np.array([0])


class Asked:
    """An h that keeps every row that it is asked about."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.calls = 0

    def __call__(self, X: pd.DataFrame) -> np.ndarray:
        self.calls += 1
        self.rows += list(X.itertuples(index=False, name=None))
        return np.asarray(X["a"] + X["b"]) / 40

    def forget(self) -> None:
        self.rows, self.calls = [], 0


def checker_of(h: Asked) -> PlanChecker:
    """For one person with the values 0 and 0."""
    X = pd.DataFrame({"a": np.tile(range(21), 21), "b": np.repeat(range(21), 21)})
    encoder = TableEncoder(Schema.infer(X)).fit(X)
    problem = Problem.of(encoder, Classifier(h), X)
    observed = ObservedValues.of(encoder.features(X), encoder)
    people = problem.read(X.head(1))
    checker = PlanChecker(people, observed, problem.rules, list)
    h.forget()
    return checker


def test_what_an_enumeration_asked_is_not_asked_again() -> None:
    h = Asked()
    checker = checker_of(h)
    some = checker.try_some(ONE)
    assert len(some.F) > 0
    asked = h.calls
    checker.check(ONE.repeat(len(some.F)), some.F)
    assert h.calls == asked
    checker.cheapest(ONE, np.array([np.inf]))
    assert len(h.rows) == len(set(h.rows))


def test_scores_that_are_remembered_are_the_right_ones() -> None:
    h = Asked()
    checker = checker_of(h)
    rows = np.random.default_rng(0).integers(0, 21, (200, 2)) / 20
    for _ in range(2):
        checked = checker.check(np.zeros(200, dtype=int), rows)
        np.testing.assert_allclose(checked.score, rows.sum(axis=1) * 20 / 40)
        np.testing.assert_array_equal(checker.trial.score(ONE.repeat(200), rows), checked.score)
    assert len(h.rows) == len(set(h.rows))


def test_nothing_is_tried_if_a_cheaper_change_is_known() -> None:
    """Accepted is a + b > 20: the cheapest change costs a little more than 1."""
    h = Asked()
    checker = checker_of(h)
    checker.check(ONE, np.array([[0.55, 0.55]]))  # it holds and costs 1.1
    asked = h.calls
    assert checker.cheapest(ONE, np.array([1.3])) == [None]
    assert h.calls == asked
    (proven,) = checker.cheapest(ONE, np.array([1.05]))  # nothing that is known costs less
    assert proven is not None
    assert h.calls > asked


def test_a_row_that_does_not_hold_is_not_known_as_a_cheaper_change() -> None:
    h = Asked()
    checker = checker_of(h)
    checker.check(ONE, np.array([[0.2, 0.2]]))  # h rejects it
    (proven,) = checker.cheapest(ONE, np.array([1.05]))
    assert proven is not None


def test_one_request_asks_once_and_the_next_one_asks_again() -> None:
    h, (problem, rows) = Asked(), example_rows()
    X = pd.DataFrame({"a": range(80), "b": [0, 1, 2, 3] * 20})
    problem = Problem.of(TableEncoder(Schema.infer(X)).fit(X), Classifier(h), X)
    h.forget()
    with asking_once():
        first = problem.confidence(rows.Z[[3, 3, 5]])
        again = problem.confidence(rows.Z[[5, 3]])
    assert h.calls == 1
    assert len(h.rows) == 2
    np.testing.assert_array_equal(again, first[[2, 0]])
    problem.confidence(rows.Z[[5]])
    assert h.calls == 2


def test_a_verifier_asks_h_only_about_rows_that_retrained_models_let_pass() -> None:
    problem, rows = example_rows()
    verifier = fit_verifier(problem, rows, 0)
    floors = np.tile(Thresholds.at(0.5).array(), (len(rows.Z), 1))
    asked: list[np.ndarray] = []

    def confidence(Z: np.ndarray) -> np.ndarray:
        asked.append(Z)
        return problem.confidence(Z)

    found = verifier.reach(rows.Z, confidence, floors)
    every = verifier.reach(rows.Z, problem.confidence(rows.Z), floors)
    whole = ~np.isnan(every).any(axis=1)
    assert whole.any()
    np.testing.assert_array_equal(~np.isnan(found).any(axis=1), whole)
    np.testing.assert_array_equal(found[whole], every[whole])
    passed = verifier.robust(rows.Z) >= floors[:, 1]
    assert 0 < passed.sum() < len(rows.Z)
    np.testing.assert_array_equal(asked[0], rows.Z[passed])
    floors[:, 1] = 9.0
    verifier.reach(rows.Z, confidence, floors)
    assert len(asked) == 1  # nobody passed
