"""Sturdiness: would a plan still be accepted after retraining, or if it is carried out imprecisely?

The two experiments of `robustness` are asked about many candidates here, so answers are remembered
and the quick one comes first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from genrecourse.planning.binomial import Share
from genrecourse.planning.remembered import Remembered
from genrecourse.planning.robustness import TRIES
from genrecourse.table.encoding import Array

MIN_ROBUST = 0.75  # of the retrained models, and of the tries with noise: 6 of 8, and 24 of 32
SPARE = 0.125  # share of the retrained models that reducing a plan leaves above that: 7 of 8

Counts = Callable[[np.ndarray, Array], np.ndarray]  # of rows (m, d) of these people: (m,) counts


@dataclass
class Sturdiness:
    """Counts for rows of F: retrained models that accept them, and noisy tries that h accepts.

    votes: None if there are no retrained models.
    least: the share of either that a sturdy row needs.
    are_own: the models are copies of h, and not stand-ins.

    >>> n = lambda person, F: (F[:, 0] * 8).astype(int)
    >>> sturdy = Sturdiness(lambda person, F: 4 * n(person, F), n, n_models=8)
    >>> sturdy.holds(np.zeros(2, dtype=int), np.array([[0.5], [0.9]]))
    array([False,  True])
    """

    tries: Counts
    votes: Counts | None = None
    n_models: int = 0
    least: float = MIN_ROBUST
    are_own: bool = False

    def __post_init__(self) -> None:
        self._tries = Remembered(self.tries)
        self._votes = Remembered(self.votes or _nobody)

    @property
    def bars(self) -> tuple[int, int]:
        """How many votes and how many tries a sturdy row needs."""
        n_votes = 0 if self.votes is None else self.n_models
        return math.ceil(self.least * n_votes - 1e-9), math.ceil(self.least * TRIES - 1e-9)

    @property
    def safe_votes(self) -> int:
        """How many votes reducing a plan should leave it: more than a sturdy row needs."""
        least = min(self.least + SPARE, 1.0) if self.least else 0.0
        return math.ceil(least * self.n_models - 1e-9)

    def votes_of(self, person: np.ndarray, F: Array) -> np.ndarray:
        """Return (m,) how many retrained models accept the rows; 0 without models."""
        return self._votes(person, F)

    def counts(self, person: np.ndarray, F: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return the votes and the tries of rows (m, d); the votes are 0 without models."""
        return self._votes(person, F), self._tries(person, F)

    def shares(self, person: np.ndarray, F: Array) -> list[tuple[Share | None, Share]]:
        """Return the same as shares: of the models, None without models, and of the tries."""
        votes, tries = self.counts(person, F)
        has_models = self.votes is not None
        return [
            (Share(int(v), self.n_models) if has_models else None, Share(int(t), TRIES))
            for v, t in zip(votes, tries, strict=True)
        ]

    def voted(self, person: np.ndarray, F: Array, bar: np.ndarray | None = None) -> np.ndarray:
        """Return (m,) booleans: enough retrained models accept the row; h is not asked.

        bar: how many are enough (m,); None: as many as a sturdy row needs.
        """
        return self._votes(person, F) >= (self.bars[0] if bar is None else bar)

    def holds(self, person: np.ndarray, F: Array) -> np.ndarray:
        """Return (m,) booleans: the row is sturdy."""
        ok = self.voted(person, F)
        ok[ok] = self._tries(person[ok], F[ok]) >= self.bars[1]
        return ok


def _nobody(person: np.ndarray, F: Array) -> np.ndarray:
    """Return the votes of no models."""
    return np.zeros(len(F), dtype=int)
