"""Refining: undo changes of x_plus as long as a verifier allows it. This is not in the paper.

Q contains only training rows. With many features, even the nearest accepted row differs from x in
most of them, so the size of the sample, not R, decides the cost. `refine` goes through the changes
of a pair, the most expensive first, and tries to undo each one by putting back the value of x:

    Keep the undo if no threshold gets worse and the lost score is at most the saved cost plus GIVE.

"No threshold gets worse" means: each measure still reaches its threshold, or is at least as high
as before if it was below. This climbs exp(-lam * C) P(x+ | y+) V(x+) one feature at a time, from Q
towards R, and makes recourse sparse. With h alone it would end at the edge of the decision; the
verifier prevents that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from genrecourse.trust.verifier import Thresholds, Verifier

if TYPE_CHECKING:
    from genrecourse.rules.book import RuleBook
    from genrecourse.table.cost import Cost
    from genrecourse.table.encoding import Array, TableEncoder

GIVE = 0.01  # how much Score may be lost to have one change less


def refine(
    F: Array,
    F_plus: Array,
    verifier: Verifier,
    confidence: Callable[[Array], Array],
    encoder: TableEncoder,
    cost: Cost,
    safety: float,
    rules: RuleBook | None = None,
    found: Array | None = None,
) -> Array:
    """Return (n, d) the refined x_plus of each pair.

    The value of x never breaks a rule on a single feature, so undoing a change breaks none of
    these. Rules on several features (relations of a request, derived features) may forbid it.

    Args:
        F: (n, d) each x.
        F_plus: (n, d) each x_plus.
        verifier: a fitted verifier.
        confidence: h's confidence in rows of Z.
        encoder: converts F to Z.
        cost: the cost of changes.
        safety: where the thresholds lie, from 0 (cheap) to 1 (safe).
        rules: the rules of these n people; None: there are only rules on single features.
        found: (n, 5) the measures of F_plus, where they are known; NaN elsewhere.

    Examples:
        >>> from genrecourse.evaluation.example_tables import example_rows
        >>> from genrecourse.genre.fit import fit_verifier
        >>> problem, rows = example_rows()
        >>> known = (
        ...     fit_verifier(problem, rows, 0),
        ...     problem.confidence,
        ...     problem.encoder,
        ...     problem.cost,
        ... )
        >>> x, x_plus = np.array([[0.1, 0.0]]), np.array([[0.9, 1 / 3]])
        >>> refine(x, x_plus, *known, safety=0.5)  # pets need not change
        array([[0.9, 0. ]])
    """
    if len(F) == 0:
        return F_plus
    F_plus, d, bars = F_plus.copy(), F.shape[1], Thresholds.at(safety).array()
    Z, Z_plus = encoder.from_features(F), encoder.from_features(F_plus)
    owner = encoder.column_owner
    price = cost.by_feature(Z, Z_plus)
    order = np.argsort(-price, axis=1, kind="stable")
    found = np.full((len(F), 5), np.nan) if found is None else found.copy()
    unknown = np.flatnonzero(np.isnan(found).any(axis=1))
    found[unknown] = verifier.measures(Z_plus[unknown], confidence(Z_plus[unknown]))
    floors, worth = np.minimum(bars, found), verifier.worth(found, safety)
    for place in range(d):
        saved = price[np.arange(len(F)), order[:, place]]
        rows = np.flatnonzero(saved > 0)
        if len(rows) == 0:
            break
        back = order[rows, place]
        trial = F_plus[rows]
        trial[np.arange(len(rows)), back] = F[rows, back]
        if rules is not None:
            trial = rules.with_derived(F[rows], trial)
            Z_trial = encoder.from_features(trial)
        else:
            Z_trial = np.where(owner == back[:, None], Z[rows], Z_plus[rows])
        found = verifier.reach(Z_trial, confidence, floors[rows])
        value = verifier.worth(found, safety)  # NaN if a measure is below its floor
        ok = value >= worth[rows] - saved[rows] / d - GIVE
        if rules is not None:
            ok &= rules.take(rows).feasible(F[rows], trial)
        F_plus[rows[ok]], Z_plus[rows[ok]] = trial[ok], Z_trial[ok]
        floors[rows[ok]], worth[rows[ok]] = np.minimum(bars, found[ok]), value[ok]
    return F_plus


def fewest(
    F: Array,
    F_plus: Array,
    verifier: Verifier,
    confidence: Callable[[Array], Array],
    encoder: TableEncoder,
    cost: Cost,
    safety: float,
    feasible: Callable[[np.ndarray, Array], np.ndarray],
    with_derived: Callable[[Array, Array], Array] = lambda F, F_plus: F_plus,
) -> Array:
    """Return (n, d) x_plus with as few changes as possible.

    A change is undone if h still accepts the row and no threshold gets worse. Unlike in `refine`,
    the score does not count. The cheapest changes are tried first; after a change was undone, the
    others are tried again.

    Args:
        F: (n, d) each x.
        F_plus: (n, d) each x_plus.
        verifier: a fitted verifier.
        confidence: h's confidence in rows of Z.
        encoder: converts F to Z.
        cost: the cost of changes.
        safety: where the thresholds lie, from 0 (cheap) to 1 (safe).
        feasible: takes row numbers and their trial rows of F; returns booleans, True if all rules
            allow the trial. A rule between two features may need both to change.
        with_derived: computes the derived features of trial rows (`RuleBook.with_derived`).

    Examples:
        >>> from genrecourse.evaluation.example_tables import example_rows
        >>> from genrecourse.genre.fit import fit_verifier
        >>> problem, rows = example_rows()
        >>> known = (
        ...     fit_verifier(problem, rows, 0),
        ...     problem.confidence,
        ...     problem.encoder,
        ...     problem.cost,
        ... )
        >>> x, x_plus = np.array([[0.1, 0.0]]), np.array([[0.9, 1 / 3]])
        >>> fewest(x, x_plus, *known, 0.5, feasible=lambda rows, trial: np.full(len(rows), True))
        array([[0.9, 0. ]])
    """
    F_plus, bars, every = F_plus.copy(), Thresholds.at(safety).array(), np.arange(len(F))
    if len(F) == 0:
        return F_plus
    Z = encoder.from_features(F)
    Z_plus = encoder.from_features(F_plus)
    floors = np.minimum(bars, verifier.measures(Z_plus, confidence(Z_plus)))
    left = every
    while len(left):
        price = cost.by_feature(Z[left], encoder.from_features(F_plus[left]))
        order = np.argsort(np.where(price > 0, price, np.inf), axis=1, kind="stable")
        undone = np.zeros(len(left), dtype=bool)
        for place in range(int((price > 0).sum(axis=1).max())):
            some = np.flatnonzero(price[np.arange(len(left)), order[:, place]] > 0)
            rows, back = left[some], order[some, place]
            trial = F_plus[rows]
            trial[np.arange(len(rows)), back] = F[rows, back]
            trial = with_derived(F[rows], trial)
            Z_trial = encoder.from_features(trial)
            sure = confidence(Z_trial)
            reached = verifier.reach(Z_trial, sure, floors[rows])
            ok = (sure > 0.5) & ~np.isnan(reached).any(axis=1) & feasible(rows, trial)
            F_plus[rows[ok]] = trial[ok]
            undone[some[ok]] = True
        left = left[undone]
    return F_plus
