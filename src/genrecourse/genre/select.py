"""Step 6: which of a row's draws to give back.

The paper keeps the draw that h likes best. Ours keeps, among the draws that h accepts with margin
and that look like accepted people, the one that is most likely and cheapest: log R already holds
-lam * C, so `cost_weight` is extra.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from genrecourse.encoding import Array

SelectRule = Literal["likelihood", "paper"]
Plausible = Callable[[np.ndarray, np.ndarray], np.ndarray]
MOST_LOOKS = 8  # how many draws of a row are looked at before its best one is taken as it is


def select(
    confidence: Array,
    log_prob: Array,
    cost: Array,
    *,
    rule: SelectRule,
    margin: float,
    cost_weight: float,
    plausible: Plausible | None = None,
) -> np.ndarray:
    """(N,) the draw chosen for each row, from (N, n) arrays.

    confidence: h on the common scale where 0.5 is the cutoff. A row none of whose draws clears the
    margin falls back on the draw with the highest h, so that what can be valid is.
    plausible: (rows, draws) -> booleans; asked for the best draw of a row, then for the next best,
    so that few draws are ever looked at. A row with no plausible draw keeps its best one.
    """
    by_h = confidence.argmax(axis=1)
    if rule == "paper":
        return np.asarray(by_h)
    merit = np.where(confidence > margin, log_prob - cost_weight * cost, -np.inf)
    best = merit.argmax(axis=1)
    cleared = (confidence > margin).any(axis=1)
    if plausible is not None:
        best = _first_plausible(merit, best, np.flatnonzero(cleared), plausible)
    return np.where(cleared, best, by_h)


def _first_plausible(
    merit: Array, best: np.ndarray, rows: np.ndarray, plausible: Plausible
) -> np.ndarray:
    merit, chosen = merit.copy(), best.copy()
    for _ in range(MOST_LOOKS):
        if len(rows) == 0:
            break
        draw = merit[rows].argmax(axis=1)
        fine = plausible(rows, draw)
        chosen[rows[fine]] = draw[fine]
        rows, draw = rows[~fine], draw[~fine]
        # the same draw often comes more than once: equal merit is taken for the same draw
        refused = merit[rows, draw]
        merit[rows] = np.where(merit[rows] == refused[:, None], -np.inf, merit[rows])
        rows = rows[np.isfinite(merit[rows]).any(axis=1)]
    return np.asarray(chosen)
