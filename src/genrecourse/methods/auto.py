"""gamma chosen on training rows: shared by GenRe and `nnr-auto`, so that the comparison is fair.

For each gamma of one fixed grid, Q itself is judged: on held-out rejected rows, the expected Score
of a target drawn from Q on D+(gamma), with validity and plausibility of every target given by a
judge that never saw it. No model is trained.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from genrecourse.constraints import Rules
from genrecourse.encoding import Array, TableEncoder
from genrecourse.genre.pairs import blocks, make_targets, q_weights
from genrecourse.judge import CrossFittedJudge
from genrecourse.methods.base import TrainingRows

GAMMA_GRID = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
MIN_TARGETS = 20  # a D+ smaller than this is no distribution to learn from


def choose_gamma(
    rows: TrainingRows,
    sources: np.ndarray,
    judge: CrossFittedJudge,
    encoder: TableEncoder,
    rules: Rules,
    *,
    lam: float,
    n_bins: int,
) -> tuple[float, list[dict[str, Any]]]:
    """The best gamma, and a line for each that was tried. `sources`: row numbers held out."""
    candidates = np.flatnonzero(rows.favourable & (rows.confidence > GAMMA_GRID[0]))
    valid, inlier = np.zeros(len(rows.Z)), np.zeros(len(rows.Z))
    valid[candidates], inlier[candidates] = judge(rows.Z[candidates])
    Z, F = rows.Z[sources], rows.F[sources]
    report: list[dict[str, Any]] = []
    for gamma in GAMMA_GRID:
        kept = candidates[rows.confidence[candidates] > gamma]
        if len(kept) < MIN_TARGETS and report:
            break
        line = _expected(Z, F, rows, kept, valid, inlier, encoder, rules, lam, n_bins)
        report.append({"gamma": gamma, "targets": len(kept), **line})
    best = max(report, key=lambda line: line["score"])
    return float(best["gamma"]), report


def _expected(
    Z: Array,
    F: Array,
    rows: TrainingRows,
    kept: np.ndarray,
    valid: np.ndarray,
    inlier: np.ndarray,
    encoder: TableEncoder,
    rules: Rules,
    lam: float,
    n_bins: int,
) -> dict[str, float]:
    """E_x E_Q of validity, plausibility and cost; a source with no target scores nothing."""
    targets = make_targets(rows.Z[kept], rows.F[kept], rules, n_bins)
    worth = np.stack([valid[kept], inlier[kept]], axis=1)
    total = np.zeros(3)
    for _, members, costs in blocks(Z, F, targets, encoder, rules):
        q = q_weights(costs, lam).nan_to_num(0.0)
        total[:2] += (q @ torch.as_tensor(worth[members])).sum(0).numpy()
        total[2] += float((q * costs.nan_to_num(posinf=0.0)).sum())
    val, lof, cost = (total / max(len(Z), 1)).tolist()
    return {"val": val, "lof": lof, "cost": cost, "score": val + lof - cost / len(rules.features)}
