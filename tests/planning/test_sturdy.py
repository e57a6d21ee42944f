"""How many votes and tries a sturdy row needs, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from genrecourse.planning.robustness import TRIES
from genrecourse.planning.sturdy import MIN_ROBUST, Sturdiness

NOBODY = np.zeros(1, dtype=int)
ROW = np.zeros((1, 1))


def sturdy(votes: int, tries: int, n_models: int = 8, least: float = MIN_ROBUST) -> bool:
    counts = Sturdiness(
        lambda person, F: np.full(len(F), tries),
        lambda person, F: np.full(len(F), votes),
        n_models,
        least,
    )
    return bool(counts.holds(NOBODY, ROW)[0])


@pytest.mark.parametrize(
    ("votes", "tries", "holds"),
    [(6, 24, True), (5, 32, False), (8, 23, False), (8, 32, True)],
)
def test_six_of_eight_models_and_24_of_32_tries_are_enough(
    votes: int, tries: int, holds: bool
) -> None:
    assert (MIN_ROBUST, TRIES) == (0.75, 32)
    assert sturdy(votes, tries) == holds


@pytest.mark.parametrize(("least", "n_models", "needed"), [(0.5, 5, 3), (0.28, 25, 7)])
def test_a_share_of_the_models_is_rounded_up_but_not_by_its_rounding_error(
    least: float, n_models: int, needed: int
) -> None:
    """Half of five is three; 0.28 * 25 is 7.000000000000001 in floating point, and seven."""
    assert sturdy(needed, TRIES, n_models, least)
    assert not sturdy(needed - 1, TRIES, n_models, least)


def test_without_models_the_tries_decide() -> None:
    for tries, holds in ((24, True), (23, False)):
        counts = Sturdiness(lambda person, F, tries=tries: np.full(len(F), tries))
        assert counts.bars == (0, 24)
        assert counts.holds(NOBODY, ROW).tolist() == [holds]


@pytest.mark.parametrize(
    ("least", "models", "votes"), [(0.75, 8, 7), (0.75, 32, 28), (1.0, 8, 8), (0.0, 8, 0)]
)
def test_a_reduced_plan_keeps_votes_to_spare(least: float, models: int, votes: int) -> None:
    nobody = lambda person, F: np.zeros(len(F), dtype=int)  # noqa: E731
    assert Sturdiness(nobody, nobody, models, least).safe_votes == votes
