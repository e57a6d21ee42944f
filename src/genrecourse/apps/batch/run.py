"""One run: begin or continue a folder, let an engine make the parts that are missing, finish.

An engine is a function that calls a `Work` on each part, wherever it likes, and yields the parts
that are done. Everything else is the same for all engines, so a run that one engine began can be
continued by another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genrecourse.apps.batch import output
from genrecourse.apps.batch.inputs import Input, Part, open_input
from genrecourse.errors import UserError, did_you_mean
from genrecourse.table.text_files import NEEDS_PARQUET

if TYPE_CHECKING:
    import pyarrow as pa

    from genrecourse.advice.batch import BatchPlanner

ROWS_PER_PART = 1_000
ENGINES = {"local": "local", "ray": "on_ray", "spark": "on_spark"}  # the module of each

Engine = Callable[["Work", Sequence[Part], int, str | None], Iterable[Part]]
Progress = Callable[[int, int], None]  # rows that this run has made so far, and rows it has to make


@dataclass(frozen=True)
class Work:
    """What is done with a part: read its rows, answer them, write the answers."""

    planner: BatchPlanner
    people: Input  # without its parts, because it is sent with each of them
    folder: Path

    def __call__(self, part: Part) -> None:
        """Write the answers to a part. Doing it twice gives the same file."""
        output.write_part(self.folder, part.number, self.answers(part))

    def answers(self, part: Part) -> pa.Table:
        """Return the answers to a part; the column `row` counts the rows of the input from 0."""
        import pyarrow as pa

        X, wrong = self.people.read(part, self.planner.columns, self.planner.levels)
        table = self.planner.answers(X, wrong)
        return table.add_column(0, "row", pa.array(X.index, pa.int64()))


def run_batch(
    planner: BatchPlanner,
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    rows_per_part: int = ROWS_PER_PART,
    engine: str = "local",
    processes: int | None = None,
    address: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write plans for everybody in `source` to a folder, and return its manifest.

    source: a .csv, a .parquet, or a folder of .parquet files. folder: new, empty, or of a run that
    was begun with the same input, model and request, which is then continued.
    engine: "local", "ray" or "spark". processes: how many work at once; None: one for each core,
    or as many as the cluster has. address: of a cluster of Ray or Spark; None: on this machine.
    """
    if engine not in ENGINES:
        raise UserError(
            f"no engine '{engine}'{did_you_mean(engine, ENGINES)}; there are local, ray, spark"
        )
    _check_pyarrow()
    if engine == "local" and address is not None:
        raise UserError("the engine 'local' has no address; leave it out, or name ray or spark")
    target = Path(os.path.abspath(folder))
    people = open_input(Path(source), rows_per_part)
    _check_columns(planner, people)
    facts = _facts(planner, people, rows_per_part)
    with output.alone_in(target):
        output.start(target, facts)
        left = [part for part in people.parts if not output.is_done(target, part)]
        work = Work(planner, replace(people, parts=()), target)
        act: Engine = import_module(f"genrecourse.apps.batch.{ENGINES[engine]}").engine
        made, rows = 0, sum(part.rows for part in left)
        for part in act(work, left, processes or 0, address) if left else ():
            made += part.rows
            if progress is not None:
                progress(made, rows)
        people.check_unchanged()
        return output.finish(target, facts, people.parts)


def _check_pyarrow() -> None:
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise UserError(f"genrecourse batch: {NEEDS_PARQUET}")


def _check_columns(planner: BatchPlanner, people: Input) -> None:
    """Refuse an input without the columns of the model, and rules for people who are not in it."""
    lacks = [name for name in planner.columns if name not in people.columns]
    if lacks:
        close = did_you_mean(lacks[0], people.columns)
        raise UserError(
            f"the input has no column '{lacks[0]}'{close}; it has {list(people.columns)}"
        )
    rules = planner.request.rules
    named = {str(label) for label in rules.people} if rules is not None else set()
    for part in people.parts if named else ():
        X, _ = people.read(part, [] if planner.key is None else [planner.key])
        named -= {str(label) for label in (X.index if planner.key is None else X[planner.key])}
    if named:
        what = "row" if planner.key is None else f"'{planner.key}'"
        raise UserError(f"the rules name the {what} {min(named)!r}, which is not in the input")


def _facts(planner: BatchPlanner, people: Input, rows_per_part: int) -> dict[str, Any]:
    """Return what the output depends on, as it is read from a manifest."""
    facts = planner.facts() | {
        "genrecourse": version("genrecourse"),
        "torch": version("torch"),
        "rows_per_part": rows_per_part,
        "input": people.facts(),
    }
    return dict(json.loads(json.dumps(facts)))
