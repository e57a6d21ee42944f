"""Refining undoes changes while the thresholds allow it, the most expensive change first."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from genrecourse.table.cost import Cost
from genrecourse.trust.refine import GIVE, fewest, refine
from genrecourse.trust.verifier import Thresholds
from tests.support.verifiers import ENCODER, N, StatedVerifier

COST = Cost(ENCODER)
X = np.zeros((1, N + 1))


def _refined(x_plus: list[float], confidence: Any = None, safety: float = 0.5, **known: Any) -> Any:
    h = confidence or (lambda Z: np.ones(len(Z)))
    found = refine(X, np.array([x_plus]), StatedVerifier(**known), h, ENCODER, COST, safety)
    return found[0].tolist()


def test_with_nothing_to_lose_all_is_put_back() -> None:
    assert _refined([0.5, 0.2, 0.9, 1.0]) == [0, 0, 0, 0]


@pytest.mark.parametrize("name", ["robust", "probability", "steady", "inlier"])
def test_each_bar_holds(name: str) -> None:
    """The measure falls below its bar without x1: so x1 stays and the others go."""
    bar = getattr(Thresholds.at(0.5), name)
    assert _refined([0.5, 0.2, 0.9, 1.0], **{name: lambda Z: bar - 1 + (Z[:, 1] > 0.1)}) == [
        *(0, 0.2, 0, 0),
    ]


def test_h_itself_is_a_bar() -> None:
    assert _refined([0.5, 0.2, 0.0, 0.0], lambda Z: 0.4 + 0.2 * (Z[:, 0] > 0.1)) == [0.5, 0, 0, 0]


def test_the_dearest_change_goes_first() -> None:
    """One of the two may go: the category, which costs 1, before the number, which costs 0.9."""
    either = {"robust": lambda Z: np.where((Z[:, 2] > 0.1) | (Z[:, 3] > 0.5), 0.9, 0.1)}
    assert _refined([0.0, 0.0, 0.9, 1.0], **either) == [0, 0, 0.9, 0]


def test_what_is_below_a_bar_may_not_fall_further() -> None:
    """x_plus was never robust enough: x0 made it worse still, x1 better."""
    weak = {"robust": lambda Z: 0.3 - 0.1 * Z[:, 0] + 0.1 * Z[:, 1]}
    assert _refined([0.5, 0.5, 0.0, 0.0], **weak) == [0, 0.5, 0, 0]


@pytest.mark.parametrize(("loss", "kept"), [(0.5 * GIVE, 0.0), (2 * GIVE, 0.2)])
def test_a_change_that_is_worth_more_than_it_costs_stays(loss: float, kept: float) -> None:
    """Above every bar, but without x1 (0.2 / 4 of Score saved) it is worth that and `loss` less."""
    lost = 2 * (0.2 / (N + 1) + loss)  # of steadiness, which counts half at a safety of 0.5
    steady = {"steady": lambda Z: 1.0 - lost * (Z[:, 1] < 0.1)}
    assert Thresholds.at(0.5).steady < 1.0 - lost
    assert _refined([0.0, 0.2, 0.0, 0.0], safety=0.5, **steady) == [0, kept, 0, 0]


def test_every_undo_may_lose_its_own_part() -> None:
    """The second is compared with what is left after the first, and not with the start."""
    x_plus = [0.08, 0.04, 0.0, 0.0]
    lost = [2 * (saved / (N + 1) + 0.5 * GIVE) for saved in x_plus[:2]]
    assert Thresholds.at(0.5).steady < 1.0 - sum(lost)
    steady = {"steady": lambda Z: 1.0 - lost[0] * (Z[:, 0] == 0) - lost[1] * (Z[:, 1] == 0)}
    assert _refined(x_plus, safety=0.5, **steady) == [0, 0, 0, 0]


def test_what_an_undo_has_gained_is_not_lost_again() -> None:
    """Without x0 the row reaches its bar; then x1 may go, were it not for what it holds up."""
    rises = {"robust": lambda Z: 0.3 + 0.6 * (Z[:, 0] == 0) - 0.4 * (Z[:, 1] == 0)}
    assert _refined([0.5, 0.2, 0.0, 0.0], **rises) == [0, 0.2, 0, 0]


class _Together:
    """A rule between two features: x0 and x1 change together, or neither does."""

    def take(self, rows: np.ndarray) -> _Together:
        return self

    def with_derived(self, F: np.ndarray, F_plus: np.ndarray) -> np.ndarray:
        return F_plus

    def feasible(self, F: np.ndarray, F_plus: np.ndarray) -> np.ndarray:
        return np.asarray((F_plus[:, 0] > 0) == (F_plus[:, 1] > 0))


def test_a_rule_between_features_forbids_to_undo_one_of_them() -> None:
    rules, sure = cast(Any, _Together()), lambda Z: np.ones(len(Z))
    x_plus = np.array([[0.5, 0.2, 0.9, 1.0]])
    found = refine(X, x_plus, StatedVerifier(), sure, ENCODER, COST, 0.5, rules)
    assert found.tolist() == [[0.5, 0.2, 0, 0]]


def test_safety_raises_the_bars() -> None:
    between = (Thresholds.at(0.2).robust + Thresholds.at(0.8).robust) / 2
    edge = {"robust": lambda Z: np.where(Z[:, 0] > 0.1, 1.0, between)}
    assert _refined([0.5, 0.0, 0.0, 0.0], safety=0.2, **edge) == [0, 0, 0, 0]
    assert _refined([0.5, 0.0, 0.0, 0.0], safety=0.8, **edge) == [0.5, 0, 0, 0]


def test_nobody_to_refine() -> None:
    assert refine(X[:0], X[:0], StatedVerifier(), np.ones, ENCODER, COST, 0.5).shape == (0, N + 1)


# ---- the fewest changes -------------------------------------------------------------------------


def _fewest(x_plus: list[float], h: Any = None, feasible: Any = None, **known: Any) -> Any:
    found = fewest(
        X,
        np.array([x_plus]),
        StatedVerifier(**known),
        h or (lambda Z: np.ones(len(Z))),
        ENCODER,
        COST,
        0.5,
        feasible=feasible or (lambda rows, trial: np.ones(len(rows), dtype=bool)),
    )
    return found[0].tolist()


def test_what_h_does_not_need_is_undone() -> None:
    assert _fewest([0.5, 0.2, 0.9, 1.0]) == [0, 0, 0, 0]
    needs = lambda Z: np.where(Z[:, 0] > 0.4, 0.9, 0.1)  # noqa: E731
    assert _fewest([0.5, 0.2, 0.9, 1.0], needs) == [0.5, 0, 0, 0]
    at_the_cutoff = lambda Z: np.where(Z[:, 0] > 0.4, 0.9, 0.5)  # noqa: E731
    assert _fewest([0.5, 0.2, 0.9, 1.0], at_the_cutoff) == [0.5, 0, 0, 0]


@pytest.mark.parametrize("name", ["robust", "probability", "steady", "inlier"])
def test_h_alone_is_not_enough_to_undo_a_change(name: str) -> None:
    lacks = {name: lambda Z: np.where(Z[:, 1] > 0, 1.0, -1.0)}
    assert _fewest([0.5, 0.2, 0.9, 1.0], **lacks) == [0, 0.2, 0, 0]


def test_what_could_not_be_undone_is_tried_again_once_others_were() -> None:
    """x0, the least, is needed only while x1 is changed."""
    held = {"robust": lambda Z: np.where((Z[:, 0] == 0) & (Z[:, 1] > 0), -1.0, 1.0)}
    assert _fewest([0.2, 0.5, 0.0, 0.0], **held) == [0, 0, 0, 0]


def test_a_rule_between_features_is_kept_while_changes_are_undone() -> None:
    both = lambda rows, trial: (trial[:, 0] > 0) == (trial[:, 1] > 0)  # noqa: E731
    assert _fewest([0.2, 0.5, 0.9, 0.0], feasible=both) == [0.2, 0.5, 0, 0]
