"""Bench: one case (data set and seed), and the methods that take their turn on it.

The case, with its judge, stays in this process; a method answers from a process of its own, and
what it gives is measured here.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError
from genrecourse.evaluation.comparison.entries import BOUNDS, Entry
from genrecourse.evaluation.comparison.intervals import clustered
from genrecourse.evaluation.comparison.isolation import MethodError, Run, Task, run_isolated
from genrecourse.evaluation.comparison.results import TABLES, Line, pack_numbers, row_ids
from genrecourse.evaluation.evaluate import Case, base_rates, ceiling, make_case, measure
from genrecourse.evaluation.evaluate import witnesses as witnesses_of
from genrecourse.evaluation.gold import Witnesses
from genrecourse.methods import METHODS
from genrecourse.model.artifact import pack

KEPT = ("score", "val", "lof", "cost")  # metrics of which a line keeps every person's value


class _Last:
    """The case and the witnesses that were made last: comparisons on one case often come one after
    the other. One, not several: of a large table they take gigabytes."""

    def __init__(self) -> None:
        self._key: tuple[str, int, bool] | None = None
        self._case: Case | None = None
        self._witnesses: Witnesses | None = None

    def case(self, name: str, seed: int, nested: bool) -> Case:
        """With everybody; fewer rows are the first of the same people."""
        if self._case is None or self._key != (name, seed, nested):
            self._key = self._case = self._witnesses = None  # freed before more is made
            self._case = make_case(name, seed, rows=None, nested=nested)
            self._key = (name, seed, nested)
        return self._case

    def witnesses(self, name: str, seed: int, nested: bool) -> Witnesses:
        case = self.case(name, seed, nested)
        if self._witnesses is None:
            self._witnesses = witnesses_of(case)
        return self._witnesses


last = _Last()


class Bench:
    """The case of one data set and seed, kept while the methods take their turn."""

    def __init__(
        self, name: str, seed: int, *, rows: int | None, nested: bool, witnesses: bool
    ) -> None:
        started = time.perf_counter()
        whole = last.case(name, seed, nested)
        self.case = replace(whole, people=whole.people.iloc[:rows])
        if len(self.case.people) == 0:
            raise UserError(f"{name}, seed {seed}: h rejects none of the test rows")
        self.witnesses = last.witnesses(name, seed, nested) if witnesses else None
        self.seconds = time.perf_counter() - started

    def run(self, entry: Entry, heads: list[Line], output: Path | None) -> list[Line]:
        """A line for each head. A method that fails has failed for everybody."""
        try:
            if entry.method in BOUNDS:
                return [self._bound(heads[0])]
            run = run_isolated(
                self._task(entry), self.case.people, entry.asks, closed=_files(output)
            )
            return [
                self._answered(head, run, ask) for head, ask in zip(heads, entry.asks, strict=True)
            ]
        except MethodError as error:
            failed = str(error)
        except UserError as error:
            failed = f"what it gave cannot be measured: {error}"
        rest = {"n": len(self.case.people), "seconds": {"case": self.seconds}, "failed": failed}
        return [head | rest for head in heads]

    def _task(self, entry: Entry) -> Task:
        case, n = self.case, len(self.case.X)
        order = np.random.default_rng([case.seed, 3]).permutation(n)
        kept = np.sort(order[: max(1, round(entry.data_fraction * n))])
        maker = METHODS[entry.method]
        X, y = case.X.iloc[kept], case.y[kept]
        return Task(maker, entry.params, case.h, case.schema, X, y, case.seed)

    def _answered(self, head: Line, run: Run, ask: str) -> Line:
        answer = run.answers[ask]
        chosen = {
            name: part["chosen"]
            for name, part in run.report.items()
            if isinstance(part, dict) and "chosen" in part
        }
        seconds = {"fit": run.fit_seconds, "recourse": answer.seconds}
        if "seconds" in run.report:
            seconds["stages"] = run.report["seconds"]
        values = measure(self.case, answer.X_plus, self.witnesses, answer.log_prob)
        line = self._line(head, answer.X_plus, values, seconds)
        return line | {"chosen": pack(chosen), "notes": run.notes}

    def _bound(self, head: Line) -> Line:
        if head["method"] == "ceiling":
            X_plus = ceiling(self.case)
            return self._line(head, X_plus, measure(self.case, X_plus, self.witnesses, None), {})
        rates = base_rates(self.case, self.witnesses)
        metrics = {
            row["metric"]: {"mean": row["value"], "half": None, "sd": row["sd"], "n": row["n"]}
            for row in rates.to_dict("records")
        }
        n = max(summary["n"] for summary in metrics.values())
        return head | {"n": n, "seconds": {"case": self.seconds}, "metrics": metrics}

    def _line(
        self,
        head: Line,
        X_plus: pd.DataFrame,
        values: dict[str, np.ndarray],
        seconds: dict[str, Any],
    ) -> Line:
        told = row_ids(X_plus)
        people = {"x_plus": told} | {name: values[name] for name in KEPT if name in values}
        return head | {
            "n": len(X_plus),
            "distinct": len(np.unique(told)),
            "h_accuracy": self.case.h_accuracy,
            "seconds": {"case": self.seconds} | seconds,
            "metrics": {name: _summary(v, told) for name, v in values.items()},
            "people": {name: pack_numbers(v) for name, v in people.items()},
        }


def _summary(values: np.ndarray, told: np.ndarray) -> dict[str, Any]:
    """Mean, half of its 95% interval within this seed, standard deviation of the people, and how
    many people it is about: a metric may not apply to everybody."""
    known = ~np.isnan(values)
    if not known.any():
        return {"mean": None, "half": None, "sd": None, "n": 0}
    found = clustered(values[known], told[known])
    numbers = {"mean": found.mean, "half": found.half, "sd": float(values[known].std())}
    return {k: v if np.isfinite(v) else None for k, v in numbers.items()} | {"n": found.n}


def _files(output: Path | None) -> tuple[Path, ...]:
    """The results themselves are not for methods: they hold what the judge said."""
    if output is None:
        return ()
    return (output, *(output.with_suffix(ending) for ending in TABLES))
