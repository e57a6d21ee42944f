"""Step 6: which of a row's draws to give back.

The paper keeps the draw that h likes best. Ours keeps, among the draws that h accepts with margin,
the one that is most likely and cheapest: log R already holds -lam * C, so `cost_weight` is extra.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from genrecourse.encoding import Array

SelectRule = Literal["likelihood", "paper"]


def select(
    confidence: Array,
    log_prob: Array,
    cost: Array,
    *,
    rule: SelectRule,
    margin: float,
    cost_weight: float,
) -> np.ndarray:
    """(N,) the draw chosen for each row, from (N, n) arrays.

    confidence: h on the common scale where 0.5 is the cutoff. A row none of whose draws clears the
    margin falls back on the draw with the highest h, so that what can be valid is.
    """
    by_h = confidence.argmax(axis=1)
    if rule == "paper":
        return np.asarray(by_h)
    merit = np.where(confidence > margin, log_prob - cost_weight * cost, -np.inf)
    best = merit.argmax(axis=1)
    cleared = (confidence > margin).any(axis=1)
    return np.where(cleared, best, by_h)
