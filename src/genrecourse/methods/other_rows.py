"""The rows of a long table that `fit` does not hold: asked about once more, and some of them kept.

Learning what to change needs many rejected rows and many accepted ones, and in a table of a million
people either may be rare. So h scores every row, a batch at a time, and the rejected and accepted
rows with the smallest keys join the held ones, up to the caps of the fit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError, did_you_mean, shown
from genrecourse.rules.problem import MOST_CANDIDATES, MOST_SOURCES, Larger, TrainingRows
from genrecourse.table.frames import PANDAS, kind_of, outcomes, to_pandas
from genrecourse.table.large_tables import HeldRows, hold, is_in_batches

if TYPE_CHECKING:
    from genrecourse.rules.problem import Problem
    from genrecourse.table.schema import Schema


def held_rows(source: Any, y: Any, schema: Schema | None, seed: int, where: str) -> HeldRows:
    """Return the rows that a fit holds of a table in batches. y: the column of outcomes, or None.

    If there is a schema, only its columns are read.

    >>> held_rows([pd.DataFrame({"age": [30, 41]})], None, None, seed=0, where="fit").seen
    2
    """
    if not (y is None or isinstance(y, str)):
        raise UserError(
            f"{where}: X comes in batches, so y must be the name of the column with the outcomes; "
            f"it is {shown(y)}"
        )
    if isinstance(source, HeldRows):
        return source
    known = None if schema is None else [*schema.columns, *([y] if y else [])]
    return hold(source, seed, columns=known)


def training_table(
    X: Any, y: Any, schema: Schema | None, seed: int, where: str
) -> tuple[str, pd.DataFrame, Any, HeldRows | None]:
    """Return the kind of a table, its rows that a fit holds, their outcomes, and the held rows.

    The last is None if the table is given in one piece. y: outcomes, the name of their column, or
    None.

    >>> kind, X, y, held = training_table(pd.DataFrame({"age": [30]}), [1], None, 0, "fit")
    >>> kind, len(X), y, held
    ('pandas', 1, [1], None)
    """
    outcome = y if isinstance(y, str) else None
    if is_in_batches(X):
        held = held_rows(X, y, schema, seed, where)
        return PANDAS, *split_outcome(held, outcome, where), held
    kind, table = kind_of(X), to_pandas(X, schema)
    if outcome is None:
        return kind, table, outcomes(y), None
    return kind, *split_outcome(table, outcome, where), None


def split_outcome(X: Any, outcome: str | None, where: str) -> tuple[pd.DataFrame, Any]:
    """Return a table, or the held rows of one, without the column of outcomes, and that column.

    >>> X, y = split_outcome(pd.DataFrame({"age": [30], "repaid": [1]}), "repaid", "fit")
    >>> list(X.columns), y.tolist()
    (['age'], [1])
    """
    table = X.table if isinstance(X, HeldRows) else X
    if outcome is None:
        return table, None
    if not isinstance(table, pd.DataFrame) or outcome not in table.columns:
        columns = list(getattr(table, "columns", []))
        raise UserError(
            f"{where}: y names no column '{outcome}'{did_you_mean(outcome, columns)} of X; it has "
            f"{columns}"
        )
    return table.drop(columns=outcome), table[outcome]


def with_others(
    rows: TrainingRows, held: HeldRows, outcome: str | None, problem: Problem
) -> TrainingRows:
    """Return the held rows, and after them more rejected and more accepted rows of the table.

    outcome: the column with the outcomes; None: h's own decisions stand in.

    >>> from genrecourse.evaluation.example_tables import example_rows
    >>> problem, rows = example_rows()
    >>> long = [pd.DataFrame({"income": range(80), "pets": 1})] * 5
    >>> held = hold(long, seed=0, most=80)
    >>> more = with_others(rows, held, None, problem)
    >>> more.larger.rows, more.larger.even, len(more.Z) > len(rows.Z)
    (400, 80, True)
    """
    labels = None if outcome is None else _favourable_labels(held.table[outcome], problem)
    rejected = _Kind(_rejected(rows), MOST_SOURCES)
    accepted = _Kind(_accepted(rows), MOST_CANDIDATES)
    for part, keys, is_new in held.others():
        new, keys = part[is_new], keys[is_new]
        if len(new) == 0:
            continue
        read = _read(new, outcome, labels, problem)
        rejected.add(read, keys, _rejected(read))
        accepted.add(read, keys, _accepted(read))
    larger = Larger(held.seen, rejected.found, accepted.found, len(rows.Z))
    return rows.joined([*rejected.kept, *accepted.kept], larger)


@dataclass
class _Kind:
    """Rows of one kind, of which those with the smallest keys are kept, beside the held ones."""

    held: np.ndarray  # which of the held rows are of this kind
    most: int  # with the held ones
    found: int = 0
    kept: list[TrainingRows] = field(default_factory=list)
    keys: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))

    def __post_init__(self) -> None:
        self.found = int(self.held.sum())
        self.room = max(0, self.most - self.found)

    def add(self, rows: TrainingRows, keys: np.ndarray, which: np.ndarray) -> None:
        """Look at further rows."""
        self.found += int(which.sum())
        keys, new = np.concatenate([self.keys, keys[which]]), rows.take(which)
        whole = self.kept[0].joined([new]) if self.kept else new
        order = np.sort(np.argsort(keys, kind="stable")[: self.room])
        self.keys, self.kept = keys[order], [whole.take(order)]


def _read(
    table: pd.DataFrame, outcome: str | None, labels: list[Any] | None, problem: Problem
) -> TrainingRows:
    people = problem.read(table[problem.schema.columns])
    accepted = ~people.rejected
    favourable = accepted if outcome is None else table[outcome].isin(labels or []).to_numpy()
    confidence = problem.classifier.confidence(people.score)
    return TrainingRows(people.Z, people.F, favourable, confidence)


def _rejected(rows: TrainingRows) -> np.ndarray:
    return np.asarray(rows.confidence <= 0.5)


def _accepted(rows: TrainingRows) -> np.ndarray:
    return np.asarray(rows.favourable & (rows.confidence > 0.5))


def _favourable_labels(column: pd.Series, problem: Problem) -> list[Any]:
    """Return the outcomes that are favourable; the held rows have every outcome."""
    seen = column.unique()
    return list(np.asarray(seen, dtype=object)[problem.classifier.is_favourable(seen)])
