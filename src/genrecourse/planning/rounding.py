"""Round the numbers of plans for letters, and ask h and the rules about the rounded plans.

The roundings of a plan are tried in stages: three digits, four digits, and then four digits up and
down in all combinations. All plans of a stage are asked about together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from genrecourse.planning.round_numbers import (
    DIGITS,
    RoundNumbers,
    differs,
    is_in_round,
    rounded,
)
from genrecourse.planning.wording import name_of
from genrecourse.table.schema import plain

if TYPE_CHECKING:
    import pandas as pd

    from genrecourse.planning.guarantee import PlanChecker
    from genrecourse.planning.plans import Change, Plan, Plans
    from genrecourse.table.encoding import Array

FEWER = 3  # digits, tried first ...
SHARE = 0.05  # ... if rounding moves the number by at most this share of its change
COMBINED = 5  # numbers that are rounded up or down in all combinations, at most
NEAREST, AWAY, BACK = 0, 1, -1  # away from x, or back towards x


def _try(change: Change, digits: int, way: int) -> float:
    """Return one rounding of the value of a change."""
    before, after = change.before, float(change.after)
    up = 1 if before is None or after > before else -1
    value = rounded(after, digits, way * up)
    if digits < DIGITS and before is not None and abs(value - after) > SHARE * abs(after - before):
        return rounded(after, DIGITS, way * up)
    return value


WAYS = ((FEWER, NEAREST), (FEWER, AWAY), (DIGITS, NEAREST), (DIGITS, AWAY))
STAGES = len(WAYS) + 1  # and then up and down in all combinations


def _tries(changes: Sequence[Change], stage: int) -> list[dict[str, float]]:
    """Return roundings of the numbers of a plan that look as the plan does, the best first.

    stage: from 0 to `STAGES` - 1; a later one is for when no rounding of an earlier one holds.
    """
    exact = [change for change in changes if not is_in_round(change)]
    if stage < len(WAYS):
        how = [[WAYS[stage]] * len(exact)]
    else:
        some, rest = exact[:COMBINED], exact[COMBINED:]
        both = product(((DIGITS, AWAY), (DIGITS, BACK)), repeat=len(some))
        how = [[*each, *[(DIGITS, AWAY)] * len(rest)] for each in both]
    found = [[_try(change, *one) for change, one in zip(exact, each, strict=True)] for each in how]
    return [
        {change.feature.name: value for change, value in zip(exact, values, strict=True)}
        for values in found
        if all(differs(change, value) for change, value in zip(exact, values, strict=True))
    ]


# ---- plans ----------------------------------------------------------------------------------


def with_round_numbers(checker: PlanChecker, plans: Plans) -> Plans:
    """Return the plans with their round numbers, each checked by h and the rules.

    h is asked again only about plans with a number of more than four digits, and about each change
    alone of a person's first plan. All plans are asked about together.

    >>> import pandas as pd
    >>> from genrecourse import NearestNeighbour, Schema
    >>> X = pd.DataFrame({"income": range(10_101, 90_101, 1_000)})
    >>> h = lambda X: (X["income"] - 10_000).to_numpy() / 80_000
    >>> method = NearestNeighbour(h, Schema.infer(X)).fit(X)
    >>> plan = method.plans(X.head(1))[0]
    >>> plan.changes[0].to_text(), plan.round_numbers.values
    ('income: 10,101 → 50,101', {'income': 50100.0})
    """
    every = [(i, each) for i, plan in enumerate(plans) for each in plan.every]
    if not every:
        return plans
    person = np.array([i for i, _ in every])
    asked = _Asked(checker, person, checker.encoder.features(plans.x_plus()))
    found = asked.round_values([each for _, each in every])
    first: dict[int, int] = {}  # a letter is about the first plan that can be written
    for k in np.flatnonzero([values is not None for values in found]):
        first.setdefault(int(person[k]), int(k))
    alone = asked.not_enough({k: every[k][1] for k in first.values()}, found)
    made = [
        RoundNumbers(
            tuple(change.feature.name for change in each.changes),
            values,
            alone.get(k, ()),
            _untouched(checker, i),
        )
        for k, ((i, each), values) in enumerate(zip(every, found, strict=True))
    ]
    return plans.with_shown([{"round_numbers": each} for each in made])


def _untouched(checker: PlanChecker, i: int) -> tuple[str, ...]:
    locked = checker.rules.take([i]).locked[0]
    features = zip(checker.encoder.schema, locked, strict=True)
    names = [name_of(f) for f, is_locked in features if is_locked and not f.follows]
    return tuple(name.split(" (")[0] for name in names)  # without explanations in brackets


class _Asked:
    """What h and the rules say about variants of plans; plan k is x_plus F[k] of person[k]."""

    def __init__(self, checker: PlanChecker, person: np.ndarray, F: Array):
        self.checker, self.person, self.F = checker, person, F
        self.place = {name: j for j, name in enumerate(checker.encoder.schema.names)}

    def round_values(self, plans: Sequence[Plan]) -> list[dict[str, Any] | None]:
        """Return the round values of each plan; None if no rounding holds."""
        found: list[dict[str, Any] | None] = [
            {} if all(map(is_in_round, plan.changes)) else None for plan in plans
        ]
        for stage in range(STAGES):
            left = [k for k, values in enumerate(found) if values is None]
            tries = [(k, values) for k in left for values in _tries(plans[k].changes, stage)]
            if not tries:
                continue
            rows = np.stack([self._with(self.F[k], values) for k, values in tries])
            checked = self.checker.check(self.person[[k for k, _ in tries]], rows)
            for row, (k, values) in enumerate(tries):
                cells = checked.table.iloc[row]
                if checked.holds[row] and found[k] is None and _holds(cells, values):
                    follow = [each.feature.name for each in plans[k].consequences]
                    found[k] = values | {name: plain(cells[name]) for name in follow}
        return found

    def _with(self, row: Array, values: Mapping[str, float]) -> Array:
        """(d,) an encoded row with these numbers in original units."""
        row = row.copy()
        for name, value in values.items():
            block = self.checker.encoder.blocks[self.place[name]]
            row[self.place[name]] = (value - block.low) / block.span
        return row

    def not_enough(
        self, plans: Mapping[int, Plan], values: Sequence[Mapping[str, Any] | None]
    ) -> dict[int, tuple[str, ...]]:
        """Return the features of each plan whose change alone h does not accept.

        Plans of one change are left out: there, one change alone is the plan.
        """
        asked = [
            (k, change.feature.name)
            for k, plan in plans.items()
            for change in plan.changes
            if len(plan.changes) > 1
        ]
        if not asked:
            return {}
        rows = self.checker.F[self.person[[k for k, _ in asked]]].copy()
        for row, (k, name) in zip(rows, asked, strict=True):
            whole = self._with(self.F[k], self._own(values[k], plans[k]))
            row[self.place[name]] = whole[self.place[name]]
        checked = self.checker.check(self.person[[k for k, _ in asked]], rows)
        found: dict[int, tuple[str, ...]] = {}
        for (k, name), score in zip(asked, checked.score, strict=True):
            if not score > self.checker.h.cutoff:
                found[k] = (*found.get(k, ()), name)
        return found

    @staticmethod
    def _own(values: Mapping[str, Any] | None, plan: Plan) -> dict[str, Any]:
        """Return the round values of what the person changes."""
        own = [change.feature.name for change in plan.changes]
        return {name: value for name, value in (values or {}).items() if name in own}


def _holds(cells: pd.Series, values: Mapping[str, float]) -> bool:
    """Return whether the row that was scored has these values; decoding may have rounded them."""
    return all(math.isclose(cells[name], value, rel_tol=1e-6) for name, value in values.items())
