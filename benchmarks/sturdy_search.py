"""Is there a sturdy plan for a person whose first plan is not? A search for `benchmarks.advice`.

A plan counts as sturdy here if at least three quarters of the retrained models accept it. All of
these rows are tried: the plans of five alternatives, up to three changes at once to a few values of
each feature, and every accepted training row that the method keeps, with what the person may not
change put back.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

from genrecourse import GenRe
from genrecourse.planning.enumeration import thin
from genrecourse.planning.guarantee import PlanChecker
from genrecourse.rules.policy import rules_in_force
from genrecourse.trust.retrained import N_RETRAINED

NEEDED = 0.75  # of the votes
VALUES = {1: 64, 2: 12, 3: 4}  # of each feature, by the number of changes
BATCH = 20_000  # rows


def sturdy_plan_exists(method: GenRe, person: pd.DataFrame, rules: Any) -> bool:
    """Whether any tried row is accepted by h and by enough retrained models, and breaks no rule."""
    problem, people = method.problem_, method.problem_.read(person)
    book = problem.compile(rules_in_force(method.policy_, rules), people) or problem.rules
    checker = PlanChecker(people, method.planning_.observed, book, list)
    return any(has_sturdy(method, checker, F) for F in tried_rows(method, checker, person, rules))


def has_sturdy(method: GenRe, checker: PlanChecker, F_plus: np.ndarray) -> bool:
    nobody_else = np.zeros(len(F_plus), dtype=int)
    checked = checker.check(nobody_else, F_plus)
    held = np.flatnonzero(checked.holds)
    if len(held) == 0:
        return False
    copies = method.planning_.copies
    if copies is not None:
        votes, n = copies.votes(checked.table.iloc[held]), copies.n
    else:
        Z = method.problem_.encoder.from_features(checked.F[held])
        votes, n = method.verifier_.votes(Z).sum(axis=0), N_RETRAINED
    return bool((votes >= NEEDED * n).any())


def tried_rows(
    method: GenRe, checker: PlanChecker, person: pd.DataFrame, rules: Any
) -> Iterator[np.ndarray]:
    """Yield rows of F in batches, the likeliest to be sturdy first."""
    x = checker.F[0]
    asked = {} if rules is None else {"rules": rules}
    plans = method.plans(person, n=5, most_changes=None, **asked)
    yield checker.encoder.features(plans.x_plus())
    targets = method.targets_.F
    same = np.repeat(x[None], len(targets), axis=0)
    again = checker.rules.take(np.zeros(len(targets), dtype=int))
    yield again.revert(same, targets)
    batch: list[np.ndarray] = []
    for size, most in VALUES.items():
        values = [thin(each, most) for each in method.planning_.observed.values]
        free = [j for j in np.flatnonzero(~method.problem_.rules.immutable) if len(values[j])]
        for features in combinations(free, size):
            grid = np.array(list(product(*(values[j] for j in features))))
            rows = np.repeat(x[None], len(grid), axis=0)
            rows[:, list(features)] = grid
            batch.append(rows)
            if sum(map(len, batch)) >= BATCH:
                yield np.concatenate(batch)
                batch = []
    if batch:
        yield np.concatenate(batch)
