"""The choice of gamma, on training rows and without training a model; for GenRe and `nnr-auto`.

For each gamma of one fixed grid, rejected rows get draws from Q on D+(gamma). A judge that was not
fitted on a draw scores it, and each row keeps its best draw, as selection does with R_theta's:

    mean over x of  max over x+ ~ Q(. | x) of  P(valid) + [inlier] - C(x, x+) / d

If two gammas are equally good, the smaller one is chosen. The scores of some h all lie close to its
cutoff; then the grid does, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from genrecourse.genre.pairs import make_pairs
from genrecourse.genre.targets import MIN_TARGETS, make_targets
from genrecourse.trust.judge import CrossFittedJudge, trust

if TYPE_CHECKING:
    from genrecourse.rules.book import RuleBook
    from genrecourse.rules.problem import TrainingRows
    from genrecourse.table.cost import Cost
    from genrecourse.table.encoding import Array

# Not from 0.5: of rows right at its cutoff h knows nothing, and noisy outcomes all the less.
GAMMA_GRID = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
DRAWS = 48  # from Q, for each source
LOOKED_AT = 300  # rejected rows that automatic choices look at


def choose_gamma(
    rows: TrainingRows,
    sources: np.ndarray,
    candidates: np.ndarray,
    judge: CrossFittedJudge,
    rules: RuleBook,
    cost: Cost,
    *,
    lam: float,
    n_bins: int,
    top_k: int = 1000,
    seed: int = 0,
) -> tuple[float, list[dict[str, Any]]]:
    """Return the best gamma, and a report with one line for each gamma that was tried.

    sources, candidates: row numbers; the candidates are D+ at the lowest gamma.

    >>> from genrecourse.evaluation.example_tables import example_rows
    >>> problem, rows = example_rows()
    >>> judge = CrossFittedJudge(n_folds=2).fit(rows.Z, rows.favourable)
    >>> split = np.arange(40), np.arange(40, 80)  # sources, candidates
    >>> known = (rows, *split, judge, problem.rules, problem.cost)
    >>> choose_gamma(*known, lam=5.0, n_bins=50)[0]
    0.55
    """
    if len(candidates) == 0:
        return GAMMA_GRID[0], []  # the method raises an error: there are no targets
    probability, inlier = judge.of_table(rows.Z[candidates])
    worth = trust(probability) + inlier
    d = len(rules.features)
    Z, F = rows.Z[sources], rows.F[sources]
    report: list[dict[str, Any]] = []
    for gamma in gammas_for(rows.confidence[candidates]):
        kept = np.flatnonzero(rows.confidence[candidates] > gamma)
        if len(kept) < MIN_TARGETS and report:
            break
        place = candidates[kept]
        targets = make_targets(rows.Z[place], rows.F[place], rules, n_bins)
        pairs = make_pairs(Z, F, targets, rules, cost, lam=lam, top_k=top_k)
        rng = np.random.default_rng(seed)  # the same luck for every gamma
        which = np.repeat(np.arange(len(pairs)), DRAWS)
        drawn = pairs.draw(which, rng)
        merit = worth[kept][drawn] - cost(Z[pairs.source[which]], targets.Z[drawn]) / d
        best = merit.reshape(len(pairs), DRAWS).max(axis=1, initial=-np.inf)
        score = float(best.sum() / len(sources))  # a source without a target counts as 0
        report.append({"gamma": gamma, "targets": len(kept), "score": score})
    best_line = max(report, key=lambda line: line["score"])
    return float(best_line["gamma"]), report


def gammas_for(confidence: Array) -> tuple[float, ...]:
    """Return the grid for candidates with this confidence (n,).

    It is the fixed one, unless hardly any candidate is above its lowest gamma. Then it goes as far
    between the cutoff and a confidence that enough of them have.

    >>> gammas_for(np.linspace(0.5, 1.0, 100)) == GAMMA_GRID
    True
    >>> gammas_for(np.full(100, 0.51))[:2]
    (0.501, 0.502)
    """
    enough = min(MIN_TARGETS, max(1, len(confidence) // 2))
    if np.sum(confidence > GAMMA_GRID[0]) >= enough:
        return GAMMA_GRID
    room = float(np.sort(confidence)[-enough]) - 0.5
    return tuple(round(0.5 + (gamma - 0.5) * 2 * room, 12) for gamma in GAMMA_GRID)
