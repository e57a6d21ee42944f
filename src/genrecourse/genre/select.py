"""Step 6: the choice of one draw for each row.

- `paper`: the draw with the highest score of h.
- `likelihood`: the most likely and cheapest draw among those that h accepts with margin. log R
  already contains -lam * C, so `cost_weight` comes on top.
- `verified`: the draw with the best expected Score among the same draws; a verifier estimates
  validity and plausibility (`trust/score.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array

SelectRule = Literal["verified", "likelihood", "paper"]
Effort = Literal["sample", "search"]  # a few draws, or many, verified and refined


def select(
    confidence: Array,
    log_prob: Array,
    cost: Array,
    *,
    rule: SelectRule,
    margin: float,
    cost_weight: float,
) -> np.ndarray:
    """Return (N,) the draw chosen for each row, from (N, n) arrays, by `paper` or `likelihood`.

    confidence: h on the common scale where 0.5 is the cutoff. If no draw of a row is above the
    margin, the draw with the highest confidence is chosen.

    >>> h, log_prob = np.array([[0.9, 0.6, 0.4]]), np.array([[-3.0, -1.0, -0.1]])
    >>> how = {"cost": np.zeros((1, 3)), "margin": 0.5, "cost_weight": 0.0}
    >>> select(h, log_prob, rule="likelihood", **how), select(h, log_prob, rule="paper", **how)
    (array([1]), array([0]))
    """
    by_h = confidence.argmax(axis=1)
    if rule == "paper":
        return np.asarray(by_h)
    cleared = confidence > margin
    best = np.where(cleared, log_prob - cost_weight * cost, -np.inf).argmax(axis=1)
    return np.where(cleared.any(axis=1), best, by_h)
