"""Sturdiness: would a plan still be accepted after retraining, or if it is carried out imprecisely?

The two experiments of `robustness` are asked about many candidates here, so answers are remembered
and the quick one comes first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from genrecourse.planning.binomial import Share
from genrecourse.planning.robustness import TRIES
from genrecourse.table.encoding import Array

MIN_ROBUST = 0.75  # of the retrained models, and of the tries with noise: 6 of 8, and 24 of 32

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
    _known: dict[tuple[str, int, bytes], int] = field(default_factory=dict, repr=False)

    @property
    def bars(self) -> tuple[int, int]:
        """How many votes and how many tries a sturdy row needs."""
        n_votes = 0 if self.votes is None else self.n_models
        return math.ceil(self.least * n_votes - 1e-9), math.ceil(self.least * TRIES - 1e-9)

    def votes_of(self, person: np.ndarray, F: Array) -> np.ndarray:
        """Return (m,) how many retrained models accept the rows; 0 without models."""
        return self._asked("votes", person, F)

    def counts(self, person: np.ndarray, F: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return the votes and the tries of rows (m, d); the votes are 0 without models."""
        return self._asked("votes", person, F), self._asked("tries", person, F)

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
        return self._asked("votes", person, F) >= (self.bars[0] if bar is None else bar)

    def holds(self, person: np.ndarray, F: Array) -> np.ndarray:
        """Return (m,) booleans: the row is sturdy."""
        ok = self.voted(person, F)
        ok[ok] = self._asked("tries", person[ok], F[ok]) >= self.bars[1]
        return ok

    def _asked(self, what: str, person: np.ndarray, F: Array) -> np.ndarray:
        ask = self.votes if what == "votes" else self.tries
        if ask is None or len(F) == 0:
            return np.zeros(len(F), dtype=int)
        keys = [(what, int(i), row.tobytes()) for i, row in zip(person, F, strict=True)]
        new = [k for k, key in enumerate(keys) if key not in self._known]
        if new:
            found = ask(person[new], F[new])
            self._known |= {keys[k]: int(n) for k, n in zip(new, found, strict=True)}
        return np.array([self._known[key] for key in keys])
