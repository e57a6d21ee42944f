"""asked_to_change: how many people, and how many plans, change each feature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from genrecourse.planning.plans import Plan

COLUMNS = (
    *("wording", "people", "of_people", "share_of_people"),
    *("plans", "of_plans", "share_of_plans"),
)


def asked_to_change(plans: Sequence[Plan]) -> pd.DataFrame:
    """Return one row for each feature that a plan changes, the most frequent first.

    `people` counts the people whose first plan changes the feature, of the `of_people` who have a
    plan; `plans` counts all plans that change it, alternatives included. What changes by itself,
    such as the age, is not counted: nobody is asked to do it.

    >>> from genrecourse.planning.plans import Change, Plan
    >>> from genrecourse.table.schema import Feature
    >>> income = Feature(name="income", kind="number")
    >>> ada = Plan("Ada", "ok", 0.3, 0.5, (Change(income, 20, 30),), score_after=0.7)
    >>> ben = Plan("Ben", "already-accepted", 0.7, 0.5)
    >>> asked_to_change([ada, ben])[["people", "of_people", "share_of_people"]].to_dict("records")
    [{'people': 1, 'of_people': 1, 'share_of_people': 1.0}]
    """
    people = [plan for plan in plans if plan.every]
    every = [each for plan in people for each in plan.every]
    first = Counter(change.feature.name for plan in people for change in plan.changes)
    times = Counter(change.feature.name for plan in every for change in plan.changes)
    wording = {c.feature.name: c.feature.label for plan in every for c in plan.changes}
    order = sorted(times, key=lambda name: (-first[name], -times[name], name))
    rows = [
        (
            *(wording[name], first[name], len(people), first[name] / len(people)),
            *(times[name], len(every), times[name] / len(every)),
        )
        for name in order
    ]
    return pd.DataFrame(rows, index=pd.Index(order, name="feature"), columns=list(COLUMNS))
