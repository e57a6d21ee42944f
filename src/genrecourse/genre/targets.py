"""D+: the accepted rows that people are paired with. Algorithm 1, line 1.

`clean` leaves out targets that judges, which were not fitted on them, call unlikely or outlying.
Labels are noisy, and one odd row in a dense region would be copied to many people.
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
    """D+, prepared for comparison with sources.

    >>> F = np.array([[0.2], [0.9]])
    >>> Targets(F, F, codes=np.zeros((2, 0)), edges=()).F.shape  # no immutable features
    (2, 1)
    """

    Z: Array  # (N+, D)
    F: Array  # (N+, d)
    codes: np.ndarray  # (N+, immutables): what must be equal
    edges: tuple[np.ndarray | None, ...]  # an immutable number with many values: its bin edges


def make_targets(Z: Array, F: Array, rules: RuleBook, n_bins: int) -> Targets:
    """Return D+ with codes for the immutables; a number with over `n_bins` values is coded by bin.

    >>> from genrecourse.evaluation.example_tables import rules_and_rows
    >>> columns = {"age": [20, 30, 40, 60], "income": [1, 2, 3, 4]}
    >>> rules, F = rules_and_rows(columns, "age")  # without a category, Z is F
    >>> make_targets(F, F, rules, n_bins=2).codes.T
    array([[0., 0., 1., 1.]])
    """
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
    """Return (n, immutables) codes; two rows have equal codes if they agree on every immutable.

    >>> from genrecourse.evaluation.example_tables import rules_and_rows
    >>> rules, F = rules_and_rows({"sex": ["f", "m", "f"], "income": [1, 2, 3]}, "sex")
    >>> match_codes(F, rules, edges=(None,)).T
    array([[0., 1., 0.]])
    """
    columns = []
    for j, edge in zip(np.flatnonzero(rules.matched), edges, strict=True):
        code = np.round(F[:, j], 9) if edge is None else np.searchsorted(edge, F[:, j])
        columns.append(np.where(np.isnan(F[:, j]), -1e9, code))  # missing matches missing only
    return np.stack(columns, axis=1) if columns else np.zeros((len(F), 0))


def is_matched(
    F: Array, codes: np.ndarray, edges: tuple[np.ndarray | None, ...], rules: RuleBook
) -> np.ndarray:
    """Return (n,) booleans: True if a target, given by codes and edges, agrees on every immutable.

    >>> from genrecourse.evaluation.example_tables import rules_and_rows
    >>> rules, F = rules_and_rows({"sex": ["f", "m"], "income": [1, 2]}, "sex")
    >>> is_matched(F, match_codes(F[:1], rules, (None,)), (None,), rules)  # one target: sex "f"
    array([ True, False])
    """
    known = {tuple(row) for row in codes}
    return np.array([tuple(row) in known for row in match_codes(F, rules, edges)], dtype=bool)


def clean(
    rows: TrainingRows, found: np.ndarray, judge: CrossFittedJudge, rules: RuleBook
) -> np.ndarray:
    """Return those of the targets `found` (row numbers) that the judge calls valid and inliers.

    If fewer than MIN_TARGETS of a group with equal immutables would remain, the whole group stays.

    >>> from genrecourse.evaluation.example_tables import example_rows
    >>> from genrecourse.trust.judge import CrossFittedJudge
    >>> problem, rows = example_rows()
    >>> rows.favourable[5] = True  # a wrong label
    >>> judge = CrossFittedJudge(n_folds=2).fit(rows.Z, rows.favourable)
    >>> 5 in clean(rows, np.flatnonzero(rows.favourable), judge, problem.rules)
    False
    """
    if len(found) == 0:
        return found
    probability, inlier = judge.of_table(rows.Z[found])
    good = (probability > CLEAN_BAR) & inlier
    _, group = np.unique(rows.F[found][:, rules.matched], axis=0, return_inverse=True)
    left = np.bincount(group.reshape(-1), weights=good)
    return found[good | (left[group.reshape(-1)] < MIN_TARGETS)]
