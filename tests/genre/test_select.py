"""Which of its draws GenRe returns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse.genre.model import PAPER, NetConfig
from genrecourse.genre.select import select
from genrecourse.methods.genre import PAPER_PRESET
from genrecourse.trust.score import REJECTED, SHORTLIST, Scored, expected_score
from genrecourse.trust.verifier import Verifier
from tests.support.equations import credit, credit_genre, credit_score

CONFIDENCE = np.array([[0.9, 0.7, 0.65, 0.2], [0.4, 0.55, 0.1, 0.5], [0.3, 0.2, 0.6001, 0.6]])
LOG_PROB = np.array([[-9.0, -2.0, -3.0, -0.1], [-1.0, -5.0, -2.0, -0.5], [-1.0, -1.0, -7.0, -1.0]])
PRICE = np.array([[0.1, 0.9, 0.2, 0.0], [0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 0.5, 0.0]])


def _select(rule: Any, margin: float = 0.6, cost_weight: float = 0.0) -> list[int]:
    chosen = select(CONFIDENCE, LOG_PROB, PRICE, rule=rule, margin=margin, cost_weight=cost_weight)
    return chosen.tolist()


def test_the_papers_selection_takes_the_highest_h() -> None:
    assert _select("paper") == [0, 1, 2]
    assert _select("paper", margin=0.99, cost_weight=100.0) == [0, 1, 2]


def test_selection_by_likelihood_and_cost_among_those_that_clear_the_margin() -> None:
    # row 0: draws 0, 1, 2 clear 0.6; -2 beats -3 and -9
    # row 1: none clears it: the highest h; row 2: only draw 2 is above 0.6, not at it
    assert _select("likelihood") == [1, 1, 2]
    # -2 - 5 * 0.9 < -3 - 5 * 0.2
    assert _select("likelihood", cost_weight=5.0) == [2, 1, 2]
    # -9 - 20 * 0.1 < -3 - 20 * 0.2 < -2 - 20 * 0.9, and no margin: the likeliest of all
    assert _select("likelihood", margin=0.0) == [3, 3, 0]
    assert _select("likelihood", margin=0.8, cost_weight=5.0) == [0, 1, 2]


class _KnownVerifier(Verifier):
    """Believes what is written in the rows: column 0 P(valid), column 1 P(plausible), and columns
    2 and 3, where there are any, the least sure copy of h and P(valid under noise)."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def robust(self, Z: np.ndarray) -> np.ndarray:
        return Z[:, 2] if Z.shape[1] > 2 else np.ones(len(Z))

    def steady(self, Z: np.ndarray) -> np.ndarray:
        return Z[:, 3] if Z.shape[1] > 2 else np.ones(len(Z))

    def valid(self, Z: np.ndarray, confidence: np.ndarray) -> np.ndarray:
        return Z[:, 0]

    def plausible(self, Z: np.ndarray) -> np.ndarray:
        self.asked.append(len(Z))
        return Z[:, 1]


VALID = np.array([[0.2, 0.9, 0.9, 1.0], [0.9, 0.3, 0.9, 0.9], [1.0, 1.0, 0.1, 0.2]])
PLAUSIBLE = np.array([[1.0, 0.5, 0.4, 1.0], [1.0, 0.3, 1.0, 1.0], [1.0, 1.0, 0.1, 1.0]])


def _scored(Z: np.ndarray, confidence: np.ndarray, cost: np.ndarray, n_features: int = 2) -> Scored:
    return Scored(np.zeros((*cost.shape, n_features)), Z, confidence, cost)


def _verified(margin: float, n_features: int = 2) -> list[int]:
    found = _scored(np.stack([VALID, PLAUSIBLE], axis=-1), CONFIDENCE, PRICE, n_features)
    score = expected_score(found, _KnownVerifier(), safety=0.5, margin=margin)
    return score.argmax(axis=1).tolist()


def test_selection_by_expected_score() -> None:
    # row 0: 0.2 + 1 - 0.05 = 1.15, 0.9 + 0.5 - 0.45 = 0.95, 0.9 + 0.4 - 0.1 = 1.2, draw 3: rejected
    # row 1: nothing clears 0.6, draw 1 alone is above 0.5; row 2: draw 2 alone clears 0.6
    assert _verified(margin=0.6) == [2, 1, 2]
    # with cost hardly counted 0.9 + 0.5 beats 0.9 + 0.4; and draw 3 of row 2 clears 0.55 as well
    assert _verified(margin=0.55, n_features=1000) == [1, 1, 3]
    # with no margin to speak of the cutoff is the margin of rows that have nothing above theirs
    assert _verified(margin=0.95) == [2, 1, 3]


def test_selection_with_nothing_accepted_takes_the_highest_h() -> None:
    rows, h = np.stack([VALID, PLAUSIBLE], axis=-1), CONFIDENCE / 2
    score = expected_score(_scored(rows, h, PRICE), _KnownVerifier(), safety=0.5)
    # so far down that every candidate that h accepts comes first, another row's included
    assert REJECTED == 10
    np.testing.assert_allclose(score, h - 10)


def test_the_expected_score_without_a_verifier_is_h_less_the_cost() -> None:
    found = _scored(np.zeros((3, 4, 2)), CONFIDENCE, PRICE)
    expected = [
        [0.9 - 0.05, 0.7 - 0.45, 0.65 - 0.1, 0.2 - 10],
        [0.4 - 10, 0.55 - 0.1, 0.1 - 10, 0.5 - 10],  # at the cutoff is not above it
        [0.3 - 10, 0.2 - 10, 0.6001 - 0.25, 0.6],
    ]
    np.testing.assert_allclose(expected_score(found, None, safety=0.5), expected)


def test_selection_counts_robustness() -> None:
    """Three draws for one person, equally valid and plausible; the cheapest is the riskiest."""
    robust, steady = np.array([[0.4, 0.6, 0.6]]), np.array([[0.9, 0.5, 0.9]])
    ones, price = np.ones((1, 3)), np.array([[0.0, 0.2, 0.4]])
    rows = np.stack([ones, ones, robust, steady], axis=-1)

    def pick(safety: float) -> int:
        found = _scored(rows, ones, price, n_features=1)
        return int(expected_score(found, _KnownVerifier(), safety=safety).argmax())

    # 2 - 3 * 0.1 + s * 0.9, 2 - 0.2 + s * 0.5, 2 - 0.4 + s * 0.9: the first lacks 0.1 of a copy
    assert pick(safety=0.0) == 1
    rows[0, 0, 2] = 0.5  # which now accepts
    assert pick(safety=0.0) == 0
    rows[0, 0, 3] = 0.0
    assert pick(safety=1.0) == 2


def test_selection_looks_at_a_short_list_of_distinct_draws() -> None:
    """Plausibility is dear: asked for the best distinct draws, copies taking one seat."""
    n = 4 * SHORTLIST
    valid = np.repeat(np.linspace(0.99, 0.6, n // 2), 2)[None]  # each draw came twice
    plausible = np.zeros((1, n))
    last = 2 * (SHORTLIST - 1)
    plausible[0, last], plausible[0, last + 2] = 1.0, 1.0  # the last on the list and the next
    verifier = _KnownVerifier()
    rows = np.stack([valid, plausible], axis=-1)
    ones, free = np.full((1, n), 0.9), np.zeros((1, n))
    score = expected_score(_scored(rows, ones, free), verifier, safety=0.5)
    assert score.argmax() == last
    assert np.isfinite(score).sum() == SHORTLIST
    assert verifier.asked == [SHORTLIST]


def test_genre_selects_what_its_own_draws_offer() -> None:
    X, y = credit()
    people = X[credit_score(X) <= 0.5].head(60)
    for rule, margin in (("paper", 0.5), ("likelihood", 0.5), ("likelihood", 0.9)):
        method = credit_genre(select=rule, refine=False, cost_weight=0.0, margin=margin).fit(X, y)
        drawn = method.sample(people, method.n_draws_)
        own = people.loc[drawn.index.get_level_values(0)]
        h = pd.Series(credit_score(drawn), drawn.index)
        merit = h
        if rule == "likelihood":
            cleared = h > margin
            likely = method.log_prob(drawn.reset_index(drop=True), own.reset_index(drop=True))
            merit = pd.Series(likely.to_numpy(), drawn.index).where(cleared)
            nobody = ~cleared.groupby(level=0, sort=False).transform("any")
            merit = merit.where(~nobody, h)
        best = merit.groupby(level=0, sort=False).idxmax()
        expected = drawn.loc[best].droplevel("draw")
        pd.testing.assert_frame_equal(method.recourse(people), expected, check_names=False)


def test_the_papers_settings_are_the_papers() -> None:
    """temperature divides where the paper's tau multiplies: tau = 10 is temperature 0.1."""
    paper = replace(PAPER, dropout=0.1)
    assert paper == NetConfig(32, 8, 32, 16, 16, 0.1, cost_in_logits=False)
    preset = PAPER_PRESET
    assert preset["temperature"] == pytest.approx(1 / 10)
    assert (preset["gamma"], preset["n_draws"], preset["select"]) == (0.7, 10, "paper")
    assert (preset["bins"], preset["keep"]) == ("uniform", False)
    assert not any(preset[ours] for ours in ("clean", "refine", "retrieve"))
