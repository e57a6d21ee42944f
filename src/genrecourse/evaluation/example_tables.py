"""Tiny tables for the examples in docstrings: they have no category, so Z is F.

example_rows     80 people with incomes of 0 to 79 and 0 to 3 pets; h is income / 80, and the
                 outcome is favourable above half of the largest income
four_incomes     two sources (0 and 5) and two targets (8 and 10)
example_checker  four people with incomes of 10 to 40; h is income / 50
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.genre.fit import FitSettings, Training, fit_density
from genrecourse.genre.model import NetConfig
from genrecourse.genre.targets import Targets, make_targets
from genrecourse.model.classifier import Classifier
from genrecourse.planning.enumeration import ObservedValues
from genrecourse.planning.guarantee import PlanChecker
from genrecourse.rules.book import RuleBook
from genrecourse.rules.problem import Problem, TrainingRows
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import Array, TableEncoder
from genrecourse.table.schema import Schema

if TYPE_CHECKING:
    from genrecourse.genre.density import RecourseDensity

SETTINGS = FitSettings(
    lam=5.0,
    gamma=0.5,
    clean=False,
    refine=False,
    distill=False,
    has_verifier=False,
    has_judge=False,
    safety=0.5,
    sources="labelled",
    n_bins=5,
    bins="quantile",
    keep=True,
    top_k=10,
    max_targets=100,
    net=NetConfig(width=8),
    training=Training(steps=2, batch_size=16),
    random_state=0,
    progress=False,
)


def example_settings(**changes: Any) -> FitSettings:
    """Return settings for a training of two steps, with these changes.

    >>> example_settings(gamma=0.7).gamma
    0.7
    """
    return replace(SETTINGS, **changes)


def example_rows() -> tuple[Problem, TrainingRows]:
    """Return the problem of the 80 people, and their rows.

    >>> problem, rows = example_rows()
    >>> problem.schema.names, rows.F.shape
    (['income', 'pets'], (80, 2))
    """
    X = pd.DataFrame({"income": range(80), "pets": [0, 1, 2, 3] * 20})
    encoder = TableEncoder(Schema.infer(X)).fit(X)
    problem = Problem.of(encoder, Classifier(lambda X: X["income"].to_numpy() / 80), X)
    F = encoder.features(X)
    return problem, TrainingRows(F, F, F[:, 0] > 0.5, problem.confidence(F))


def example_targets() -> Targets:
    """Return D+: the people of `example_rows` with a favourable outcome.

    >>> len(example_targets().F)
    40
    """
    problem, rows = example_rows()
    F = rows.F[rows.favourable]
    return make_targets(F, F, problem.rules, n_bins=50)


def example_density() -> RecourseDensity:
    """Return R_theta of the 80 people after two steps of training.

    >>> example_density().decoded
    tensor([0, 1])
    """
    return fit_density(*example_rows(), SETTINGS).density


def four_incomes() -> tuple[Array, Array, Targets, RuleBook, Cost]:
    """Return (Z, F, targets, rules, cost): incomes of 0 and 5, and the targets 8 and 10.

    >>> Z, F, targets, rules, cost = four_incomes()
    >>> F.T, targets.F.T
    (array([[0. , 0.5]]), array([[0.8, 1. ]]))
    """
    rules, F = rules_and_rows({"income": [0, 5, 8, 10]})
    targets = Targets(F[2:], F[2:], codes=np.zeros((2, 0)), edges=())
    return F[:2], F[:2], targets, rules, Cost(rules.encoder)


def rules_and_rows(columns: dict[str, list[Any]], *immutable: str) -> tuple[RuleBook, Array]:
    """Return the rules of a table's inferred schema, and its rows F.

    >>> rules, F = rules_and_rows({"sex": ["f", "m"], "income": [1, 2]}, "sex")
    >>> rules.immutable
    array([ True, False])
    """
    X = pd.DataFrame(columns)
    encoder = TableEncoder(Schema.infer(X, immutable=immutable)).fit(X)
    return RuleBook.of_schema(encoder), encoder.features(X)


def example_checker() -> PlanChecker:
    """Return a checker of plans for people with an income of 10, 20, 30 and 40.

    >>> example_checker().rejected
    array([0, 1])
    """
    X = pd.DataFrame({"income": [10.0, 20.0, 30.0, 40.0]})
    encoder = TableEncoder(Schema.infer(X)).fit(X)
    problem = Problem.of(encoder, Classifier(lambda X: X["income"].to_numpy() / 50), X)
    observed = ObservedValues.of(encoder.features(X), encoder)
    return PlanChecker(problem.read(X), observed, problem.rules, relaxed=list)
