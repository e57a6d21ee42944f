"""Step 6: which of a row's draws to give back.

- `paper`: the draw that h likes best.
- `likelihood`: among the draws that h accepts with margin, the most likely and cheapest one. log R
  already holds -lam * C, so `cost_weight` is extra.
- `verified`: among the same draws, the best expected Score, with a verifier's word for validity and
  plausibility (`trust/score.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array

SelectRule = Literal["verified", "likelihood", "paper"]


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
