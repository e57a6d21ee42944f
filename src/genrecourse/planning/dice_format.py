"""Plans in the format of DiCE (dice-ml), version 2.0, which the Responsible AI dashboard reads.

DiCE numbers the outcomes: 1 is the favourable one, 0 the other. A row holds the columns of the
table, in their order, followed by the outcome.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError, shown
from genrecourse.table.frames import to_pandas

if TYPE_CHECKING:
    from genrecourse.planning.plans import Plan, Plans

VERSION = "2.0"  # of the format
FAVOURABLE = 1


@dataclass(frozen=True, eq=False)
class DiceAnswer:
    """One person's row, and the rows of the person's plans, each with its outcome.

    >>> row = pd.DataFrame({"income": [20], "outcome": [0]})
    >>> DiceAnswer(row, None, "outcome").importance
    {'income': 0.0}
    """

    query: pd.DataFrame  # one row
    found: pd.DataFrame | None  # one row for each plan; None: there is no plan
    outcome_name: str

    @property
    def columns(self) -> list[str]:
        """The columns without the outcome."""
        return [name for name in self.query.columns if name != self.outcome_name]

    @property
    def changed(self) -> dict[str, int]:
        """The number of plans in which a column differs from the person's own value."""
        if self.found is None:
            return dict.fromkeys(self.columns, 0)
        return {name: self._times_changed(self.found[name], name) for name in self.columns}

    def _times_changed(self, after: pd.Series, name: str) -> int:
        own = self.query[name].iloc[0]
        if pd.isna(own):
            return int(after.notna().sum())
        return sum(bool(pd.isna(value) or value != own) for value in after)

    @property
    def importance(self) -> dict[str, float]:
        """The share of the person's plans in which each column differs: DiCE's local importance."""
        return _shares(self.changed, 0 if self.found is None else len(self.found))


def summary_importance(answers: Sequence[DiceAnswer]) -> dict[str, float]:
    """Return the share of all plans in which each column differs: DiCE's global importance.

    >>> before = pd.DataFrame({"income": [20], "debt": [5], "outcome": [0]})
    >>> after = pd.DataFrame({"income": [30, 40], "debt": [5, 4], "outcome": [1, 1]})
    >>> summary_importance([DiceAnswer(before, after, "outcome")])
    {'income': 1.0, 'debt': 0.5}
    """
    total = dict.fromkeys(answers[0].columns, 0) if answers else {}
    for answer in answers:
        for name, times in answer.changed.items():
            total[name] += times
    return _shares(total, sum(len(each.found) for each in answers if each.found is not None))


def _shares(times: Mapping[str, int], n: int) -> dict[str, float]:
    return {name: count / n if n else 0.0 for name, count in times.items()}


def dice_answers(plans: Plans, X: Any, outcome_name: str) -> list[DiceAnswer]:
    """Return the rows of each person, before and after, as DiCE has them.

    X: the table that the plans were made for. If it is None, a row before is put together from a
    plan, which a person without one does not have.

    >>> from genrecourse import NearestNeighbour, Schema
    >>> X = pd.DataFrame({"income": range(80)})
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, Schema.infer(X)).fit(X)
    >>> (answer,) = dice_answers(method.plans(X.head(1)), None, "outcome")
    >>> answer.query.values.tolist(), answer.found.values.tolist()
    ([[0, 0]], [[41, 1]])
    """
    after = plans.x_plus()
    before = _rows_before(plans, after) if X is None else _rows_of(plans, after, X)
    if outcome_name in before.columns:
        raise UserError(
            f"the table has a column {shown(outcome_name)} of its own; give another outcome_name"
        )
    answers, start = [], 0
    for i, plan in enumerate(plans):
        if plan.score_before is None:
            raise UserError(
                f"person {shown(plan.person)} cannot be read, and DiCE's format has no place for "
                "that; make the plans without this row"
            )
        own = before.iloc[[i]].assign(**{outcome_name: int(plan.score_before > plan.cutoff)})
        end = start + len(plan.every)
        found = after.iloc[start:end].reset_index(drop=True).assign(**{outcome_name: FAVOURABLE})
        answers.append(DiceAnswer(own, found if plan.every else None, outcome_name))
        start = end
    return answers


def _rows_of(plans: Plans, after: pd.DataFrame, X: Any) -> pd.DataFrame:
    """Return the people's rows of the table, with the columns that plans have."""
    X = to_pandas(X, list(after.columns) or None)
    people = [plan.person for plan in plans]
    if people != X.index.tolist():
        raise UserError(
            f"X is not the table that the plans were made for: the plans are for {shown(people)}, "
            f"and the rows of X are {shown(X.index.tolist())}"
        )
    absent = [name for name in after.columns if name not in X.columns]
    if absent:
        raise UserError(f"X lacks the columns {shown(absent)}, which the plans have")
    return X[list(after.columns)] if len(after) else X


def _rows_before(plans: Plans, after: pd.DataFrame) -> pd.DataFrame:
    """Return the people's own rows, put together from their first plans."""
    without = [plan for plan in plans if not plan.every]
    if without:
        raise UserError(
            f"Plans.to_dice_json: {shown(without[0].person)} has no plan ({without[0].status}), so "
            "the person's own row is not known; give the table that the plans were made for: "
            "plans.to_dice_json(X)"
        )
    places = np.cumsum([0, *(len(plan.every) for plan in plans)])[:-1]
    rows = [_row_before(plan, after.iloc[[k]]) for plan, k in zip(plans, places, strict=True)]
    return pd.concat(rows) if rows else after


def _row_before(plan: Plan, row: pd.DataFrame) -> pd.DataFrame:
    row = row.copy()
    for change in (*plan.changes, *plan.consequences):
        feature = change.feature
        if any(name not in row.columns for name in feature.stored_in):
            raise UserError(
                f"Plans.to_dice_json: the plans do not say which columns hold '{feature.name}'; "
                "give the table that the plans were made for: plans.to_dice_json(X)"
            )
        value = pd.Series([change.before], index=row.index, dtype=object)
        for name, column in feature.split(value, row).items():
            row[name] = column.astype(row[name].dtype)
    return row


# ---- JSON -------------------------------------------------------------------------------------


def dice_json(
    answers: Sequence[DiceAnswer],
    outcome_name: str,
    local: Sequence[Mapping[str, float]] | None,
    summary: Mapping[str, float] | None,
) -> str:
    """Return answers as the JSON text that DiCE writes and reads.

    local, summary: the importance of each column, for each person and over all plans; None: they
    were not asked for.

    >>> before = pd.DataFrame({"income": [20], "outcome": [0]})
    >>> text = dice_json([DiceAnswer(before, None, "outcome")], "outcome", None, None)
    >>> json.loads(text)["test_data"], json.loads(text)["cfs_list"]
    ([[[20, 0]]], [None])
    """
    names = answers[0].columns if answers else []
    data = {
        "test_data": [_values(each.query) for each in answers],
        "cfs_list": [None if each.found is None else _values(each.found) for each in answers],
        "local_importance": None if local is None else [[one[n] for n in names] for one in local],
        "summary_importance": None if summary is None else [summary.get(n, 0.0) for n in names],
        "feature_names": names,
        "feature_names_including_target": [*names, outcome_name],
        "model_type": "classifier",
        "desired_class": FAVOURABLE,
        "desired_range": None,
        "data_interface": {"outcome_name": outcome_name, "data_df": "dummy_data"},
        "metadata": {"version": VERSION},
    }
    return json.dumps(data, ensure_ascii=False, allow_nan=False)


def _values(table: pd.DataFrame) -> list[list[Any]]:
    columns: Iterable[list[Any]] = (table[name].tolist() for name in table.columns)
    return [[_plain(value) for value in row] for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    """Return a cell as JSON can hold it; missing becomes None."""
    if isinstance(value, bool | int | str):
        return value
    if pd.isna(value) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value if isinstance(value, float) else str(value)
