"""D+ and gamma from training rows: shared by GenRe and `nnr-auto`, so that the comparison is fair.

`clean` leaves out of D+ what judges that never saw it call unlikely or outlying: labels are noisy,
and one odd row in a dense place is copied to many people.

`choose_gamma` trains no model. For each gamma of one fixed grid, rejected rows get the target of
D+(gamma) that a sharpened R would choose, dense and cheap:

    argmax over x+ in D+(gamma) of  log sum_{x' in D+(gamma)} exp(-lam C(x+, x'))  -  2 lam C(x, x+)

and these are scored by judges that never saw them; of two equal gammas the smaller is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from genrecourse.constraints import Rules
from genrecourse.cost import Cost
from genrecourse.encoding import TableEncoder
from genrecourse.genre.pairs import Targets, blocks, make_targets
from genrecourse.judge import CrossFittedJudge, trust
from genrecourse.methods.base import TrainingRows

GAMMA_GRID = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
CLEAN_BAR = 0.6  # how likely the favourable outcome of a target must be to a judge
MIN_TARGETS = 20  # a D+ smaller than this is no distribution to learn from
DENSITY_ROWS = 2000  # rows that the density of a target is measured against


def choose_gamma(
    rows: TrainingRows,
    sources: np.ndarray,
    candidates: np.ndarray,
    judge: CrossFittedJudge,
    encoder: TableEncoder,
    rules: Rules,
    *,
    lam: float,
    n_bins: int,
    seed: int = 0,
) -> tuple[float, list[dict[str, Any]]]:
    """The best gamma, and a line for each that was tried.

    sources, candidates: row numbers; the candidates are D+ at the lowest gamma.
    """
    rng = np.random.default_rng(seed)
    if len(candidates) == 0:
        return GAMMA_GRID[0], []  # the method will say that it has nobody to learn from
    probability, inlier = judge(rows.Z[candidates])
    valid = trust(probability)
    report: list[dict[str, Any]] = []
    for gamma in GAMMA_GRID:
        kept = np.flatnonzero(rows.confidence[candidates] > gamma)
        if len(kept) < MIN_TARGETS and report:
            break
        place = candidates[kept]
        targets = make_targets(rows.Z[place], rows.F[place], rules, n_bins)
        hit, cost = _sharpest(rows, sources, targets, encoder, rules, lam, rng)
        found = hit >= 0
        line = {
            "val": float((valid[kept][hit] * found).mean()),
            "lof": float((inlier[kept][hit] & found).mean()),
            "cost": float(cost.mean()),
        }
        score = line["val"] + line["lof"] - line["cost"] / len(rules.features)
        report.append({"gamma": gamma, "targets": len(kept), **line, "score": score})
    best = max(report, key=lambda line: line["score"])
    return float(best["gamma"]), report


def clean(
    rows: TrainingRows, found: np.ndarray, judge: CrossFittedJudge, rules: Rules
) -> np.ndarray:
    """Of the targets `found` (row numbers), those that the judge vouches for.

    People who share their immutables with few accepted rows keep those as they are.
    """
    if len(found) == 0:
        return found
    probability, inlier = judge(rows.Z[found])
    good = (probability > CLEAN_BAR) & inlier
    _, group = np.unique(rows.F[found][:, rules.immutable], axis=0, return_inverse=True)
    left = np.bincount(group.reshape(-1), weights=good)
    return found[good | (left[group.reshape(-1)] < MIN_TARGETS)]


def _sharpest(
    rows: TrainingRows,
    sources: np.ndarray,
    targets: Targets,
    encoder: TableEncoder,
    rules: Rules,
    lam: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """For each source the target that is dense and cheap (-1: none is feasible), and its cost."""
    some = torch.as_tensor(targets.Z[rng.permutation(len(targets.Z))[:DENSITY_ROWS]])
    price = Cost(encoder)
    density = torch.cat(
        [
            torch.logsumexp(-lam * price.pairwise(part, some), dim=1)
            for part in torch.as_tensor(targets.Z).split(1000)
        ]
    )
    hit, cost = np.full(len(sources), -1), np.zeros(len(sources))
    for i, members, costs in blocks(rows.Z[sources], rows.F[sources], targets, encoder, rules):
        merit = density[members] - 2 * lam * costs  # an infinite cost is never the best
        best, place = merit.max(dim=1)
        found = torch.isfinite(best).numpy()
        hit[i[found]] = members[place.numpy()[found]]
        cost[i[found]] = costs.gather(1, place[:, None])[:, 0].numpy()[found]
    return hit, cost
