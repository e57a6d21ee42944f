"""D+ and gamma from training rows: shared by GenRe and `nnr-auto`, so that the comparison is fair.

`clean` leaves out of D+ what judges that never saw it call unlikely or outlying: labels are noisy,
and one odd row in a dense place is copied to many people.

`choose_gamma` trains no model. For each gamma of one fixed grid, rejected rows get draws from Q
itself on D+(gamma), and keep the best by a judge that never saw it, as selection will keep the best
of R_theta's draws:

    mean over x of  max over x+ ~ Q(. | x) of  P(valid) + [inlier] - C(x, x+) / d

Of two equal gammas the smaller is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genrecourse.genre.pairs import make_pairs, make_targets
from genrecourse.methods.base import TrainingRows
from genrecourse.rules.book import RuleBook
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import TableEncoder
from genrecourse.trust.judge import CrossFittedJudge, trust

# Not from 0.5: of rows right at its cutoff h knows nothing, and noisy outcomes all the less.
GAMMA_GRID = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
CLEAN_BAR = 0.6  # how likely the favourable outcome of a target must be to a judge
MIN_TARGETS = 20  # a D+ smaller than this is no distribution to learn from
DRAWS = 48  # from Q, for each source


def choose_gamma(
    rows: TrainingRows,
    sources: np.ndarray,
    candidates: np.ndarray,
    judge: CrossFittedJudge,
    encoder: TableEncoder,
    rules: RuleBook,
    *,
    lam: float,
    n_bins: int,
    top_k: int = 1000,
    seed: int = 0,
) -> tuple[float, list[dict[str, Any]]]:
    """The best gamma, and a line for each that was tried.

    sources, candidates: row numbers; the candidates are D+ at the lowest gamma.
    """
    if len(candidates) == 0:
        return GAMMA_GRID[0], []  # the method will say that it has nobody to learn from
    probability, inlier = judge(rows.Z[candidates])
    worth = trust(probability) + inlier
    cost, d = Cost(encoder), len(rules.features)
    Z, F = rows.Z[sources], rows.F[sources]
    report: list[dict[str, Any]] = []
    for gamma in GAMMA_GRID:
        kept = np.flatnonzero(rows.confidence[candidates] > gamma)
        if len(kept) < MIN_TARGETS and report:
            break
        place = candidates[kept]
        targets = make_targets(rows.Z[place], rows.F[place], rules, n_bins)
        pairs = make_pairs(Z, F, targets, encoder, rules, lam=lam, top_k=top_k)
        rng = np.random.default_rng(seed)  # the same luck for every gamma
        which = np.repeat(np.arange(len(pairs)), DRAWS)
        drawn = pairs.draw(which, rng)
        merit = worth[kept][drawn] - cost(Z[pairs.source[which]], targets.Z[drawn]) / d
        best = merit.reshape(len(pairs), DRAWS).max(axis=1, initial=-np.inf)
        score = float(best.sum() / len(sources))  # a source without a target counts as 0
        report.append({"gamma": gamma, "targets": len(kept), "score": score})
    best_line = max(report, key=lambda line: line["score"])
    return float(best_line["gamma"]), report


def clean(
    rows: TrainingRows, found: np.ndarray, judge: CrossFittedJudge, rules: RuleBook
) -> np.ndarray:
    """Of the targets `found` (row numbers), those that the judge vouches for.

    People who share their immutables with few accepted rows keep those as they are.
    """
    if len(found) == 0:
        return found
    probability, inlier = judge(rows.Z[found])
    good = (probability > CLEAN_BAR) & inlier
    _, group = np.unique(rows.F[found][:, rules.matched], axis=0, return_inverse=True)
    left = np.bincount(group.reshape(-1), weights=good)
    return found[good | (left[group.reshape(-1)] < MIN_TARGETS)]
