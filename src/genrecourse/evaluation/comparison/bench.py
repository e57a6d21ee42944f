"""Bench: one case (data set and seed) on which methods run one after the other.

The case with its judge stays in this process. Each method runs in its own process, and its answers
are measured here.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from genrecourse.errors import UserError
from genrecourse.evaluation.comparison.entries import BOUNDS, Entry
from genrecourse.evaluation.comparison.intervals import clustered
from genrecourse.evaluation.comparison.isolation import MethodError, Run, Task, run_isolated
from genrecourse.evaluation.comparison.results import TABLES, Line, pack_numbers, row_ids
from genrecourse.evaluation.evaluate import Case, base_rates, ceiling, make_case, measure
from genrecourse.evaluation.evaluate import witnesses as witnesses_of
from genrecourse.methods import METHODS
from genrecourse.model.artifact import pack

if TYPE_CHECKING:
    from genrecourse.evaluation.gold import Witnesses

Split = Literal["files", "nested", "fresh"]  # which rows are the people: see `make_case`
KEPT = ("score", "val", "lof", "cost")  # a line stores these metrics for every person


class _Last:
    """The last case and its witnesses, since the next comparison often uses the same case.

    Only one case is kept: a large table needs gigabytes.
    """

    def __init__(self) -> None:
        self._key: tuple[str, int, Split] | None = None
        self._case: Case | None = None
        self._witnesses: Witnesses | None = None

    def case(self, name: str, seed: int, split: Split) -> Case:
        """Return the case with all people; a case with fewer rows has the first of them."""
        if self._case is None or self._key != (name, seed, split):
            self._key = self._case = self._witnesses = None  # free the memory first
            self._case = make_case(
                name, seed, rows=None, nested=split == "nested", fresh=split == "fresh"
            )
            self._key = (name, seed, split)
        return self._case

    def witnesses(self, name: str, seed: int, split: Split) -> Witnesses:
        """Return the witnesses of the case."""
        case = self.case(name, seed, split)
        if self._witnesses is None:
            self._witnesses = witnesses_of(case)
        return self._witnesses


last = _Last()


class Bench:
    """The case of one data set and seed, on which methods run.

    >>> bench = Bench("german", 0, rows=50, split="files", witnesses=False)  # doctest: +SKIP
    >>> bench.run(Entry("nnr", "nnr"), heads(Entry("nnr", "nnr")), None)  # doctest: +SKIP
    """

    def __init__(
        self, name: str, seed: int, *, rows: int | None, split: Split, witnesses: bool
    ) -> None:
        started = time.perf_counter()
        whole = last.case(name, seed, split)
        self.case = replace(whole, people=whole.people.iloc[:rows])
        if len(self.case.people) == 0:
            raise UserError(
                f"{name}, seed {seed}: h rejects none of the test rows; choose another seed"
            )
        self.witnesses = last.witnesses(name, seed, split) if witnesses else None
        self.seconds = time.perf_counter() - started

    def run(self, entry: Entry, heads: list[Line], output: Path | None) -> list[Line]:
        """Return one line per head; if the method fails, it fails for all people."""
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
            failed = f"its answer cannot be measured: {error}"
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
        if answer.processor is not None:
            seconds["recourse_processor"] = answer.processor
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
        ids = row_ids(X_plus)
        people = {"x_plus": ids} | {name: values[name] for name in KEPT if name in values}
        return head | {
            "n": len(X_plus),
            "distinct": len(np.unique(ids)),
            "h_accuracy": self.case.h_accuracy,
            "seconds": {"case": self.seconds} | seconds,
            "metrics": {name: _summary(v, ids) for name, v in values.items()},
            "people": {name: pack_numbers(v) for name, v in people.items()},
        }


def _summary(values: np.ndarray, x_plus: np.ndarray) -> dict[str, Any]:
    """Return the mean, half of its 95% interval, the standard deviation, and n.

    NaNs are excluded; n counts the rest. x_plus: (n,) the id of each person's x_plus.
    """
    known = ~np.isnan(values)
    if not known.any():
        return {"mean": None, "half": None, "sd": None, "n": 0}
    found = clustered(values[known], x_plus[known])
    numbers = {"mean": found.mean, "half": found.half, "sd": float(values[known].std())}
    return {k: v if np.isfinite(v) else None for k, v in numbers.items()} | {"n": found.n}


def _files(output: Path | None) -> tuple[Path, ...]:
    """Return the files that methods may not read: the results contain the judge's verdicts."""
    if output is None:
        return ()
    return (output, *(output.with_suffix(ending) for ending in TABLES))
