"""Which features h does not read: no plan changes them.

A feature counts as unread if h's score stays the same, to the bit, when values of other people and
every tried value are put into it, for many training rows. Stand-ins for h may read it: they learn
from outcomes, and h may be a scorecard of four columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from genrecourse.planning.enumeration import ObservedValues, thin

if TYPE_CHECKING:
    from genrecourse.rules.problem import Problem
    from genrecourse.table.encoding import Array

ROWS = 64  # training rows that get other values
VALUES = 16  # values that are tried in each of them


def unread_features(
    problem: Problem, F: Array, observed: ObservedValues, random_state: int
) -> np.ndarray:
    """Return (d,) booleans: h's score does not depend on the feature, in all that was tried.

    F: (n, d) training rows. Derived features follow, so their inputs count as read with them.

    >>> from genrecourse.evaluation.example_tables import example_rows
    >>> problem, rows = example_rows()  # h reads the first feature only
    >>> observed = ObservedValues.of(rows.F, problem.encoder)
    >>> unread_features(problem, rows.F, observed, random_state=0)
    array([False,  True])
    """
    rng = np.random.default_rng(random_state)
    F = F[rng.permutation(len(F))[:ROWS]]
    trials, owners = [F], [np.full(len(F), -1)]
    for j, values in enumerate(observed.values):
        if problem.rules.immutable[j] or len(values) == 0:
            continue
        tried = [rng.permutation(F[:, j]), *(np.full(len(F), v) for v in thin(values, VALUES))]
        for column in tried:
            other = F.copy()
            other[:, j] = np.where(np.isnan(F[:, j]), np.nan, column)
            trials.append(other)
            owners.append(np.full(len(F), j))
    rows = np.concatenate(trials)
    if problem.rules.derived:
        rows = problem.rules.with_derived(np.tile(F, (len(trials), 1)), rows)
    scores = problem.confidence(problem.encoder.from_features(rows)).reshape(len(trials), -1)
    reads = np.zeros(F.shape[1], dtype=bool)
    for score, owner in zip(scores[1:], owners[1:], strict=True):
        reads[owner[0]] |= bool((score != scores[0]).any())
    return ~reads & ~problem.rules.immutable
