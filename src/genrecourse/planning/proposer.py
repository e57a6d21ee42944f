"""Proposer: the little that planning knows of a fitted method.

A method proposes rows; planning checks, chooses, words and promises. `PlanningData` is what `fit`
keeps for it: the values that occur in the training rows, and their outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from genrecourse.model.locks import Lock
from genrecourse.planning.enumeration import ObservedValues
from genrecourse.planning.promise import (
    PromiseData,
    ThresholdTest,
    kept_rows,
    test_arrays,
    tests_from_arrays,
)
from genrecourse.planning.unread import unread_features
from genrecourse.trust.own_copies import OwnCopies, class_numbers, untrainable

if TYPE_CHECKING:
    from genrecourse.rules.policy import Policy
    from genrecourse.rules.problem import Problem, TrainingRows
    from genrecourse.table.encoding import Array
    from genrecourse.table.noise import KeyedNoise
    from genrecourse.trust.verifier import Verifier

AS_FITTED = repr((False, []))  # the key of the tests for plans without any option
MOST_TESTS = 64  # that are kept: each request may have rules of its own
_REMEMBERING = Lock()


@dataclass(frozen=True)
class Proposals:
    """What a method offers to N rejected people.

    >>> offer = Proposals(np.zeros((3, 2, 5)), tried=64, reason=lambda: np.full(3, "not-accepted"))
    >>> offer.tried, offer.log_prob is None
    (64, True)
    """

    F_plus: Array  # (N, k, d), the method's own first choice first
    tried: int  # how many x_plus it has looked at for each person
    reason: Callable[[], np.ndarray]  # (N,) why the method could not help, if it could not
    # the log-likelihood of rows F_plus given rows F, if the method has a density
    log_prob: Callable[[Array, Array], Array] | None = None


class Proposer(Protocol):
    """A fitted method, as planning sees it.

    >>> import pandas as pd
    >>> from genrecourse import NearestNeighbour, Schema
    >>> X = pd.DataFrame({"income": range(80)})
    >>> h = lambda X: X["income"].to_numpy() / 80
    >>> method: Proposer = NearestNeighbour(h, Schema.infer(X)).fit(X)
    >>> method.planning_.outcomes is None  # fit was given no outcomes
    True
    """

    options: ClassVar[tuple[str, ...]]
    random_state: int
    safety: float
    problem_: Problem
    planning_: PlanningData
    policy_: Policy | None
    verifier_: Verifier | None

    def propose(self, Z: Array, noise: KeyedNoise, n: int, **options: Any) -> Proposals:
        """Return what the method offers to the rejected rows Z where n plans are asked for."""

    def check_ready(self, verb: str, options: Mapping[str, Any]) -> None:
        """Raise an error if the method is not fitted or does not take an option."""


@dataclass
class PlanningData:
    """What planning needs of the training rows.

    `tests` fills up as promises are asked for; it is a cache, keyed by the request's options.

    >>> data = PlanningData(ObservedValues((np.array([0.0, 0.5, 1.0]),)), outcomes=None)
    >>> len(data.observed.values), data.tests
    (1, {})
    """

    observed: ObservedValues
    outcomes: PromiseData | None  # None: fit was given no outcomes
    unread: np.ndarray | None = None  # (d,) features that h does not read; None: not known
    tests: dict[str, list[ThresholdTest]] = field(default_factory=dict)
    copies: OwnCopies | None = None  # of h, if it was trained again; else stand-ins vote
    keeps_rows: bool = False  # a model file holds the rows of `outcomes`
    why_stand_ins: str = ""  # why there are no copies; "": nobody asked for them

    @classmethod
    def learn(
        cls,
        F: Array,
        rows: TrainingRows,
        problem: Problem,
        random_state: int,
        *,
        has_outcomes: bool,
    ) -> PlanningData:
        """Keep what planning needs of the training rows F (n, d).

        rows: the same rows as the method may see them. has_outcomes: False if h's own decisions
        stand in, which say nothing about real ones.
        """
        outcomes = None
        if has_outcomes:
            outcomes = PromiseData.some(
                rows.Z,
                rows.favourable,
                rows.confidence <= 0.5,
                problem.cost,
                random_state,
                problem.protected.hide_encoded,
            )
        observed = ObservedValues.of(F, problem.encoder)
        return cls(observed, outcomes, unread_features(problem, F, observed, random_state))

    def remember(self, key: str, tests: list[ThresholdTest]) -> list[ThresholdTest]:
        """Keep the tests for an option of requests, and forget older ones if there are many."""
        with _REMEMBERING:
            self.tests[key] = tests
            others = [each for each in self.tests if each != AS_FITTED]
            for old in others[: max(0, len(others) - MOST_TESTS)]:
                del self.tests[old]
        return tests

    def retrain(self, y: Any, problem: Problem, random_state: int) -> None:
        """Train copies of h on the rows that are kept, if h is an estimator that can be."""
        h, data = problem.classifier, self.outcomes
        self.why_stand_ins = untrainable(h.model)
        if data is None:
            self.why_stand_ins = "fit was given no outcomes"
        if self.why_stand_ins or data is None:
            return
        keep = kept_rows(len(y), random_state)
        numbers = class_numbers(h, np.asarray(y)[keep], data.favourable)
        if numbers is None:
            self.why_stand_ins = "the outcomes are not the classes that it was fitted on"
            return
        copies = OwnCopies(problem, data.Z, numbers, random_state)
        self.why_stand_ins = copies.decide()
        self.copies = None if self.why_stand_ins else copies

    @property
    def voters(self) -> dict[str, str]:
        """Which retrained models vote on plans, for reports and model files."""
        if self.copies is not None:
            return {"are": "copies of the model"}
        return {"are": "stand-ins", "why": self.why_stand_ins}

    def arrays(self, *, with_outcomes: bool) -> dict[str, dict[str, np.ndarray]]:
        """Return groups of arrays for a model file, by the group's name."""
        values = {str(j): values for j, values in enumerate(self.observed.values)}
        if self.unread is not None:
            values["unread"] = self.unread
        groups = {"menu": values}
        if with_outcomes and self.outcomes is not None:
            groups["ground"] = self.outcomes.arrays()
            groups["levels"] = test_arrays(self.tests.get(AS_FITTED, []))
            if self.copies is not None:
                groups["copies"] = {"numbers": self.copies.numbers}
        return groups

    @classmethod
    def from_arrays(
        cls, groups: Mapping[str, dict[str, np.ndarray]], problem: Problem, random_state: int
    ) -> PlanningData:
        """Invert `arrays`."""
        values, outcomes = groups["menu"], groups["ground"]
        about = (problem.cost, random_state, problem.protected.hide_encoded)
        learned, copies = groups["levels"], groups["copies"]
        data = PromiseData.from_arrays(outcomes, *about) if outcomes else None
        return cls(
            ObservedValues(tuple(values[str(j)] for j in range(len(problem.schema)))),
            data,
            values.get("unread"),  # older files have none
            # older files tested plans with changes that are not needed
            {AS_FITTED: tests_from_arrays(learned)} if learned and "unread" in values else {},
            OwnCopies(problem, data.Z, copies["numbers"], random_state)
            if data and copies
            else None,
            keeps_rows=data is not None,
        )
