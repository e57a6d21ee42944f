"""Plans as a table: one line for each plan, for spreadsheets and databases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pandas as pd

from genrecourse.table.csv_cells import AFTER

if TYPE_CHECKING:
    from genrecourse.planning.plans import Change, Plan, Plans
    from genrecourse.table.schema import Schema


def plan_table(plans: Plans, X: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return one line for each plan, and one for each person without a plan.

    The columns "new ..." hold the features after the plan; they are today's for a person without,
    and empty for a row that cannot be read.
    X: the people that the plans were made for, in the same order.

    >>> from genrecourse import NearestNeighbour, Schema
    >>> X = pd.DataFrame({"income": range(80)})
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, Schema.infer(X)).fit(X)
    >>> plan_table(method.plans(X.head(1)), X.head(1), method.schema_)[["status", "new income"]]
      status  new income
    0     ok          41
    """
    every = [(i, each) for i, plan in enumerate(plans) for each in plan.every or (plan,)]
    rows = [i for i, _ in every]
    about = pd.DataFrame(
        {
            "row": X.index[rows],
            "status": [plan.status for _, plan in every],
            "reason_code": [plan.reason_code for _, plan in every],
            "reason": [plan.reason for _, plan in every],
            "about_rules": [plan.about_rules for _, plan in every],
            "number": _numbers(plans),
            "score_before": [plan.score_before for _, plan in every],
            "score_after": [plan.score_after for _, plan in every],
            "cost": [plan.cost for _, plan in every],
            "months": [plan.effort and plan.effort.months for _, plan in every],
            "money": [plan.effort and plan.effort.money for _, plan in every],
            "effort": [plan.takes for _, plan in every],
            "plan": [_in_words(plan.changes) for _, plan in every],
            "then_changes_by_itself": [_in_words(plan.consequences) for _, plan in every],
            "how_sturdy": ["; ".join(plan.prospects) for _, plan in every],
            "promise": [_promised(plan) for _, plan in every],
            "accepted_by_retrained": [
                plan.retrained and plan.retrained.estimate for _, plan in every
            ],
            "accepted_with_noise": [
                plan.imprecise and plan.imprecise.estimate for _, plan in every
            ],
            "note": [plan.language("plan.note") if plan.every else "" for _, plan in every],
        }
    )
    after = _today(plans, X, schema).iloc[rows].reset_index(drop=True)
    for line, (_, plan) in enumerate(every):
        for change in (*plan.changes, *plan.consequences):
            after.iat[line, schema.names.index(change.feature.name)] = change.after
    return pd.concat([about, after.infer_objects().add_prefix(AFTER)], axis=1)


def _today(plans: Plans, X: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return the features of each person, as objects; none of a row that cannot be read."""
    read = [i for i, plan in enumerate(plans) if plan.fault is None]
    some = X.iloc[read]
    found = pd.DataFrame({feature.name: feature.values(some) for feature in schema}).astype(object)
    if len(read) == len(X):
        return found
    empty = pd.DataFrame(None, range(len(X)), found.columns, dtype=object)
    empty.iloc[read] = found.to_numpy()
    return empty


def _in_words(changes: Iterable[Change]) -> str:
    return "; ".join(change.to_text() for change in changes)


def _promised(plan: Plan) -> float | None:
    return plan.promise.share if plan.promise is not None and plan.status == "ok" else None


def _numbers(plans: Plans) -> pd.Series:
    """Return the number of each line's plan among the person's, from 1; missing without a plan."""
    counts = [range(1, len(plan.every) + 1) if plan.every else (None,) for plan in plans]
    return pd.Series([number for each in counts for number in each], dtype="Int64")
