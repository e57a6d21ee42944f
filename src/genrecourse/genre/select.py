"""Step 6: which of a row's draws to give back.

- `paper`: the draw that h likes best.
- `likelihood`: among the draws that h accepts with margin, the most likely and cheapest one. log R
  already holds -lam * C, so `cost_weight` is extra.
- `verified`: among the same draws, the best expected Score, with a verifier's word for validity and
  plausibility (`expected_score`).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from genrecourse.table.encoding import Array
from genrecourse.trust.verifier import Verifier

SelectRule = Literal["verified", "likelihood", "paper"]
SHORTFALL = 3.0  # Score that a unit of missing confidence costs
SHORTLIST = 48  # draws of a row whose plausibility and steadiness are looked up: the dear part


def select(
    confidence: Array,
    log_prob: Array,
    cost: Array,
    *,
    rule: SelectRule,
    margin: float,
    cost_weight: float,
) -> np.ndarray:
    """(N,) the draw chosen for each row, from (N, n) arrays, by `paper` or `likelihood`.

    confidence: h on the common scale where 0.5 is the cutoff. A row none of whose draws clears the
    margin falls back on the draw with the highest h, so that what can be valid is.
    """
    by_h = confidence.argmax(axis=1)
    if rule == "paper":
        return np.asarray(by_h)
    cleared = confidence > margin
    best = np.where(cleared, log_prob - cost_weight * cost, -np.inf).argmax(axis=1)
    return np.where(cleared.any(axis=1), best, by_h)


def expected_score(
    Z_plus: Array,
    confidence: Array,
    cost: Array,
    verifier: Verifier,
    *,
    n_features: int,
    margin: float,
    safety: float,
) -> Array:
    """(N, n) the expected Score of each draw, its robustness counted too:

        P(valid) + P(plausible) - C / d + safety * P(valid under noise)
                 - SHORTFALL * [what the least sure copy of h lacks to accept]

    Z_plus: (N, n, D); the rest (N, n). Only the draws of a short list have one, the others -inf. A
    row none of whose draws clears the margin looks at what is above the cutoff; one that has none
    of these has h's confidence in place of scores.
    """
    N, n, _ = Z_plus.shape
    rows = np.arange(N)[:, None]
    open_ = confidence > margin
    open_ = np.where(open_.any(axis=1, keepdims=True), open_, confidence > 0.5)
    distinct, first, place = np.unique(
        Z_plus.reshape(N * n, -1), axis=0, return_index=True, return_inverse=True
    )
    place = place.reshape(N, n)
    valid = verifier.valid(distinct, confidence.reshape(-1)[first])
    valid = valid - SHORTFALL * np.maximum(0.0, 0.5 - verifier.robust(distinct))
    merit = np.where(open_, valid[place] - cost / n_features, -np.inf)
    short = _best_distinct(merit, place, min(SHORTLIST, n))
    asked, back = np.unique(place[rows, short], return_inverse=True)
    dear = verifier.plausible(distinct[asked]) + safety * verifier.steady(distinct[asked])
    score = np.full((N, n), -np.inf)
    score[rows, short] = merit[rows, short] + dear[back.reshape(short.shape)]
    return np.where(open_.any(axis=1, keepdims=True), score, confidence)


def _best_distinct(merit: Array, place: np.ndarray, k: int) -> np.ndarray:
    """(N, k) the k best draws of each row; a draw that came twice takes one seat only."""
    order = np.argsort(-merit, axis=1, kind="stable")
    same = np.take_along_axis(place, order, axis=1)
    first = np.ones_like(same, dtype=bool)
    for i in range(1, same.shape[1]):
        first[:, i] = (same[:, :i] != same[:, i : i + 1]).all(axis=1)
    seats = np.argsort(~first, axis=1, kind="stable")[:, :k]
    return np.asarray(np.take_along_axis(order, seats, axis=1))
