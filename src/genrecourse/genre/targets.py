"""D+: the accepted rows that people are paired with. Algorithm 1, line 1.

`clean` leaves out targets that judges which never saw them call unlikely or outlying: labels are
noisy, and one odd row in a dense place would be copied to many people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from genrecourse.rules.book import RuleBook
    from genrecourse.rules.problem import TrainingRows
    from genrecourse.table.encoding import Array
    from genrecourse.trust.judge import CrossFittedJudge

CLEAN_BAR = 0.6  # how likely the favourable outcome of a target must be to a judge
MIN_TARGETS = 20  # a D+ smaller than this is no distribution to learn from


@dataclass(frozen=True)
class Targets:
    """D+, ready to be compared with sources."""

    Z: Array  # (N+, D)
    F: Array  # (N+, d)
    codes: np.ndarray  # (N+, immutables): what must be equal
    edges: tuple[np.ndarray | None, ...]  # an immutable number with many values: its bin edges


def make_targets(Z: Array, F: Array, rules: RuleBook, n_bins: int) -> Targets:
    """Prepare D+: immutables become codes; a number with over `n_bins` values is coded by bin."""
    edges: list[np.ndarray | None] = []
    for j in np.flatnonzero(rules.matched):
        values = np.unique(F[~np.isnan(F[:, j]), j])
        if rules.features[j].is_category or len(values) <= n_bins:
            edges.append(None)
        else:
            inner = np.linspace(0, 1, n_bins + 1)[1:-1]
            edges.append(np.unique(np.nanquantile(F[:, j], inner)))
    return Targets(Z, F, match_codes(F, rules, tuple(edges)), tuple(edges))


def match_codes(F: Array, rules: RuleBook, edges: tuple[np.ndarray | None, ...]) -> np.ndarray:
    """(n, immutables) numbers that are equal where two rows agree on every immutable."""
    columns = []
    for j, edge in zip(np.flatnonzero(rules.matched), edges, strict=True):
        code = np.round(F[:, j], 9) if edge is None else np.searchsorted(edge, F[:, j])
        columns.append(np.where(np.isnan(F[:, j]), -1e9, code))  # missing matches missing only
    return np.stack(columns, axis=1) if columns else np.zeros((len(F), 0))


def is_matched(
    F: Array, codes: np.ndarray, edges: tuple[np.ndarray | None, ...], rules: RuleBook
) -> np.ndarray:
    """(n,) booleans: does a target, by its codes and edges, agree with row i on every immutable?"""
    known = {tuple(row) for row in codes}
    return np.array([tuple(row) in known for row in match_codes(F, rules, edges)], dtype=bool)


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
