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
    """The expected Score of n candidates of each of N rows, and which reach every threshold.

    Examples:
        >>> found = Judged(np.array([[1.9, 1.8]]), reaches=np.array([[False, True]]))
        >>> found.merit.argmax(axis=1)  # a candidate that reaches every threshold comes first
        array([1])
    """

    score: Array  # (N, n)
    reaches: np.ndarray  # (N, n) booleans

    @property
    def merit(self) -> Array:
        """Return (N, n) the scores, so that candidates that miss a threshold come last."""
        return np.where(self.reaches, self.score, self.score - REJECTED)


def judge_candidates(
    found: Scored, verifier: Verifier, *, safety: float, bars: Array | None = None
) -> Judged:
    """Return the expected Score of every candidate, and whether its measures reach the bars (5,).

    bars: None means the thresholds at this safety.

    Unlike `expected_score` it computes every measure of every candidate, so it is meant for few.

    Examples:
        >>> from genrecourse.evaluation.example_tables import example_rows
        >>> from genrecourse.genre.fit import fit_verifier
        >>> from genrecourse.genre.search import scored
        >>> problem, rows = example_rows()
        >>> found = scored(problem, rows.Z[:1], rows.F[None, [20, 60]])
        >>> judged = judge_candidates(found, fit_verifier(problem, rows, 0), safety=0.5)
        >>> judged.reaches, judged.merit.argmax(axis=1)
        (array([[False,  True]]), array([1]))
    """
    N, n, D = found.Z.shape
    distinct, first, place = _distinct(found.Z.reshape(N * n, D), together=True)
    place = place.reshape(N, n)
    measures = verifier.measures(distinct, found.confidence.reshape(-1)[first])
    robust = measures[:, 1]
    worth = verifier.worth(measures, safety) - SHORTFALL * np.maximum(0.0, 0.5 - robust)
    score = worth[place] - found.cost / found.F.shape[-1]
    bars = Thresholds.at(safety).array() if bars is None else bars
    reaches = np.all(measures >= bars, axis=1)[place]
    accepted = found.confidence > 0.5
    return Judged(np.where(accepted, score, found.confidence - REJECTED), reaches & accepted)


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
