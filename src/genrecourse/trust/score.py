"""The expected Score of an x_plus. Selection, refining and plans all use this formula:

P(valid) + P(plausible) - C / d + safety * P(valid under noise)
         - SHORTFALL * max(0, 0.5 - lowest confidence among the retrained models)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from genrecourse.trust.verifier import Thresholds

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array
    from genrecourse.trust.verifier import Verifier

SHORTFALL = 3.0  # Score lost for each unit of confidence below the cutoff
SHORTLIST = 48  # candidates of a row whose slow measures (plausible, steady) are computed
REJECTED = 10.0  # subtracted from h's confidence, so that candidates that h rejects come last


@dataclass(frozen=True)
class Scored:
    """n candidates for each of N rows, with h's confidence in each and its cost.

    Examples:
        >>> F = np.array([[[0.2, 0.0], [0.9, 0.0]]])
        >>> found = Scored(F, F, confidence=F[..., 0], cost=np.array([[0.1, 0.8]]))
        >>> found.take(np.array([[1]])).cost
        array([[0.8]])
    """

    F: Array  # (N, n, d)
    Z: Array  # (N, n, D)
    confidence: Array  # (N, n) h's confidence; 0.5 is the cutoff
    cost: Array  # (N, n)

    def rows(self, which: np.ndarray) -> Scored:
        """Return the candidates of some rows."""
        return Scored(self.F[which], self.Z[which], self.confidence[which], self.cost[which])

    def joined(self, other: Scored) -> Scored:
        """Return these candidates of each row, and then others."""
        parts = ("F", "Z", "confidence", "cost")
        both = ((getattr(self, part), getattr(other, part)) for part in parts)
        return Scored(*(np.concatenate(pair, axis=1) for pair in both))

    def take(self, which: np.ndarray) -> Scored:
        """Return the candidates `which` (N, k) of each row."""
        rows = np.arange(len(self.F))[:, None]
        return Scored(
            self.F[rows, which],
            self.Z[rows, which],
            self.confidence[rows, which],
            self.cost[rows, which],
        )


def expected_score(
    found: Scored, verifier: Verifier | None, *, safety: float, margin: float = 0.5
) -> Array:
    """Return (N, n) the expected Score of each candidate.

    Only the `SHORTLIST` best candidates of a row get a score; the others get -inf. If no candidate
    of a row is above the margin, those above the cutoff are scored. If there are none either, the
    score is h's confidence minus REJECTED. Without a verifier, the score is h's confidence minus
    the cost per feature.

    Examples:
        >>> F = np.array([[[0.2, 0.0], [0.6, 0.0], [0.9, 0.0]]])
        >>> found = Scored(F, F, confidence=F[..., 0], cost=np.array([[0.1, 0.4, 1.2]]))
        >>> expected_score(found, verifier=None, safety=0.5).round(2)
        array([[-9.8,  0.4,  0.3]])
    """
    confidence, price = found.confidence, found.cost / found.F.shape[-1]
    if verifier is None:
        return np.where(confidence > 0.5, confidence - price, confidence - REJECTED)
    N, n, D = found.Z.shape
    rows = np.arange(N)[:, None]
    open_ = confidence > margin
    open_ = np.where(open_.any(axis=1, keepdims=True), open_, confidence > 0.5)
    distinct, first, place = _distinct(found.Z.reshape(N * n, D), together=n > 1)
    place = place.reshape(N, n)
    valid = verifier.valid(distinct, confidence.reshape(-1)[first])
    valid = valid - SHORTFALL * np.maximum(0.0, 0.5 - verifier.robust(distinct))
    merit = np.where(open_, valid[place] - price, -np.inf)
    short = _best_distinct(merit, place, min(SHORTLIST, n))
    asked, back = np.unique(place[rows, short], return_inverse=True)
    slow = verifier.plausible(distinct[asked]) + safety * verifier.steady(distinct[asked])
    score = np.full((N, n), -np.inf)
    score[rows, short] = merit[rows, short] + slow[back.reshape(short.shape)]
    return np.where(open_.any(axis=1, keepdims=True), score, confidence - REJECTED)


@dataclass(frozen=True)
class Judged:
    """What a verifier says of n candidates of each of N rows.

    Examples:
        >>> measures = np.zeros((1, 2, 5))
        >>> found = Judged(np.array([[1.9, 1.8]]), np.array([[False, True]]), measures)
        >>> found.best  # a candidate that reaches every bar comes first
        array([1])
        >>> found.lost  # the rows of which no candidate does
        array([], dtype=int64)
    """

    score: Array  # (N, n) the expected Score; below 0 if a bar is missed
    reaches: np.ndarray  # (N, n) booleans: every measure reaches its bar
    measures: Array  # (N, n, 5) NaN from the first measure that misses its bar

    @property
    def best(self) -> np.ndarray:
        """Return (N,) the best candidate of each row."""
        return np.asarray(np.where(self.reaches, self.score, self.score - REJECTED).argmax(axis=1))

    @property
    def lost(self) -> np.ndarray:
        """Return the rows of which no candidate reaches every bar."""
        return np.flatnonzero(~self.reaches.any(axis=1))


def judge_candidates(
    found: Scored, verifier: Verifier, *, safety: float, bars: Array | None = None
) -> Judged:
    """Return the expected Score of every candidate whose measures reach the bars (5,).

    bars: None means the thresholds at this safety. The quick measures come first, and a candidate
    that misses a bar is not measured further: it gets a score below 0, by how far it came.

    Examples:
        >>> from genrecourse.evaluation.example_tables import example_rows
        >>> from genrecourse.genre.fit import fit_verifier
        >>> from genrecourse.genre.search import scored
        >>> problem, rows = example_rows()
        >>> found = scored(problem, rows.Z[:1], rows.F[None, [20, 60]])
        >>> judged = judge_candidates(found, fit_verifier(problem, rows, 0), safety=0.5)
        >>> judged.reaches, judged.best
        (array([[False,  True]]), array([1]))
    """
    N, n, D = found.Z.shape
    distinct, first, place = _distinct(found.Z.reshape(N * n, D), together=n > 1)
    bars = Thresholds.at(safety).array() if bars is None else bars
    confidence = found.confidence.reshape(-1)[first]
    measures = verifier.reach(distinct, confidence, np.broadcast_to(bars, (len(distinct), 5)))
    came = (~np.isnan(measures)).sum(axis=1)
    worth = verifier.worth(measures, safety) - SHORTFALL * np.maximum(0.0, 0.5 - measures[:, 1])
    worth = np.where(came == 5, worth, came + confidence - REJECTED)
    measures, worth, came = measures[place], worth[place], came[place]
    score = worth - found.cost.reshape(-1) / found.F.shape[-1]
    reaches = (came == 5) & (found.confidence.reshape(-1) > 0.5)
    return Judged(score.reshape(N, n), reaches.reshape(N, n), measures.reshape(N, n, 5))


def _distinct(Z: Array, *, together: bool) -> tuple[Array, np.ndarray, np.ndarray]:
    """Return the distinct rows, where each first stands, and the place of each row among them.

    If a row has one candidate only there is nothing to save: every row stays by itself, and keeps
    the confidence that h gave it there.
    """
    if not together:
        every = np.arange(len(Z))
        return Z, every, every
    return np.unique(Z, axis=0, return_index=True, return_inverse=True)


def _best_distinct(merit: Array, place: np.ndarray, k: int) -> np.ndarray:
    """Return (N, k) the k best candidates of each row; equal candidates count as one."""
    order = np.argsort(-merit, axis=1, kind="stable")
    same = np.take_along_axis(place, order, axis=1)
    first = np.ones_like(same, dtype=bool)
    for i in range(1, same.shape[1]):
        first[:, i] = (same[:, :i] != same[:, i : i + 1]).all(axis=1)
    seats = np.argsort(~first, axis=1, kind="stable")[:, :k]
    return np.asarray(np.take_along_axis(order, seats, axis=1))
