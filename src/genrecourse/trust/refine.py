"""Step 2 of GenRe, and not in the paper: move x_plus towards x while a verifier lets it.

Q can only offer rows that exist. With many features even the nearest accepted row differs from x in
most of them, so the finite sample, not R, sets the price. A drawn pair is refined by walking
through its changes, the dearest first, and putting x's own value back. It stays if the row still
reaches every bar, or is no worse than before where it did not, and if the row is not worth less
for it than the cost it saves, give or take `GIVE`. That is a coordinate-wise climb on
exp(-lam * C) P(x+ | y+) V(x+), towards R from Q's side, and it makes recourse sparse. By h alone it
would walk up to the edge of the decision: the verifier is what keeps it away.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from genrecourse.rules.constraints import RuleBook
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import Array, TableEncoder
from genrecourse.trust.verifier import Thresholds, Verifier

GIVE = 0.01  # of Score that one change less may cost


def refine(
    F: Array,
    F_plus: Array,
    verifier: Verifier,
    confidence: Callable[[Array], Array],
    encoder: TableEncoder,
    cost: Cost,
    safety: float,
    rules: RuleBook | None = None,
) -> Array:
    """(n, d) the refined x_plus of each pair. confidence: h on rows of Z, on the common scale.

    What x has is always within the schema's rules on single features, so putting it back breaks
    none. Rules on several features together, of a request or on what follows from others, may
    forbid it: rules, where there are such, n people's.
    """
    if len(F) == 0:
        return F_plus
    F_plus, d, bars = F_plus.copy(), F.shape[1], Thresholds.at(safety).array()
    Z, Z_plus = encoder.from_features(F), encoder.from_features(F_plus)
    owner = encoder.column_owner
    price = cost.by_feature(Z, Z_plus)
    order = np.argsort(-price, axis=1, kind="stable")
    found = verifier.measures(Z_plus, confidence(Z_plus))
    floors, worth = np.minimum(bars, found), verifier.worth(found, safety)
    for place in range(d):
        saved = price[np.arange(len(F)), order[:, place]]
        rows = np.flatnonzero(saved > 0)
        if len(rows) == 0:
            break
        kept = order[rows, place]
        trial = F_plus[rows]
        trial[np.arange(len(rows)), kept] = F[rows, kept]
        if rules is not None:
            trial = rules.settle(F[rows], trial)
            Z_trial = encoder.from_features(trial)
        else:
            Z_trial = np.where(owner == kept[:, None], Z[rows], Z_plus[rows])
        found = verifier.reach(Z_trial, confidence(Z_trial), floors[rows])
        value = verifier.worth(found, safety)  # NaN for a row that missed a threshold
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
    settle: Callable[[Array, Array], Array] = lambda F, F_plus: F_plus,
) -> Array:
    """(n, d) x_plus with every change undone that is not needed: h still accepts it, and it still
    reaches every bar of the verifier, or is no worse than it was where it did not.

    What it is worth does not count here, only how many changes there are: the least come first,
    and what could not be undone is tried again once others were. feasible(rows, trial): the rules
    for these rows, since a rule between two features may need both to change. settle: what follows
    by itself from what is left (`RuleBook.settle`).
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
            trial = settle(F[rows], trial)
            Z_trial = encoder.from_features(trial)
            sure = confidence(Z_trial)
            reached = verifier.reach(Z_trial, sure, floors[rows])
            ok = (sure > 0.5) & ~np.isnan(reached).any(axis=1) & feasible(rows, trial)
            F_plus[rows[ok]] = trial[ok]
            undone[some[ok]] = True
        left = left[undone]
    return F_plus
