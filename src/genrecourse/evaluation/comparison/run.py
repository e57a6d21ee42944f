"""compare(): methods x data sets x seeds, each method in a process that cannot see the judge.

Each finished run is one line of a results file. Started again with the same file, a comparison does
only what is missing there. A seed decides everything, so that a comparison that was killed and one
that was not end with the same table.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from genrecourse.data.datasets import DATASETS, load_dataset
from genrecourse.errors import UserError, did_you_mean
from genrecourse.evaluation.comparison.bench import Bench
from genrecourse.evaluation.comparison.entries import BOUNDS, Entry, check_entries, heads
from genrecourse.evaluation.comparison.results import Line, ResultsFile

# What a run is: a line is used again by a comparison that asks for the same.
KEY = ("dataset", "seed", "label", "rows", "nested", "witnesses", "config")


def compare(
    entries: Sequence[Entry | str],
    datasets: Sequence[str],
    seeds: Sequence[int],
    *,
    rows: int | None = 200,
    output: Path | None = None,
    nested: bool = False,
    witnesses: bool = True,
    progress: bool = True,
) -> list[Line]:
    """Run what is missing, and give a line for each run that was asked for, failed ones included.

    entries: names of METHODS, or `Entry`s.
    rows: how many rejected test rows a seed; None: all of them.
    output: a .jsonl file to which each finished run is appended; None: nothing is kept.
    nested: make everything from training rows, for development.
    witnesses: also measure what needs more models (retrained copies of h, another forest).
    """
    _check(datasets, seeds, rows)
    wanted = [(entry, heads(entry)) for entry in check_entries(entries) + bounds()]
    asked = {"rows": rows, "nested": nested, "witnesses": witnesses}
    cells = [
        Cell(name, seed, entry, [{"dataset": name, "seed": seed} | asked | head for head in known])
        for name in dict.fromkeys(datasets)
        for seed in dict.fromkeys(seeds)
        for entry, known in wanted
    ]
    with ResultsFile(output) as file:
        done = {_key(line) for line in file.lines if "failed" not in line}
        todo = [cell for cell in cells if not done.issuperset(map(_key, cell.heads))]
        _remark(file, cells)
        for name in dict.fromkeys(cell.dataset for cell in todo):
            load_dataset(name)  # what is not there is said now, not after hours
        with _RunsBar(len(todo), progress) as bar:
            for (name, seed), group in groupby(todo, key=lambda cell: (cell.dataset, cell.seed)):
                bar.say(f"{name}, seed {seed}: data, judge and h")
                bench = Bench(name, seed, rows=rows, nested=nested, witnesses=witnesses)
                for cell in group:
                    bar.say(f"{name}, seed {seed}: {cell.entry.label}")
                    lines = bench.run(cell.entry, cell.heads, output)
                    lines = [line for line in lines if _key(line) not in done]
                    file.append(lines)
                    bar.tick(lines)
        found = {_key(line): line for line in file.lines}
    return [found[_key(head)] for cell in cells for head in cell.heads]


def bounds() -> list[Entry]:
    """What stands beside the methods in every table, and is none."""
    return [Entry(name, name) for name in BOUNDS]


@dataclass(frozen=True)
class Cell:
    """One method on one case: one child process. heads: its lines as far as they are known before
    it runs, one for each request."""

    dataset: str
    seed: int
    entry: Entry
    heads: list[Line]


# ---- the file and the request ------------------------------------------------------------------


def _key(line: Line) -> tuple[Any, ...]:
    return tuple(line.get(name) for name in KEY)


def _check(datasets: Sequence[str], seeds: Sequence[int], rows: int | None) -> None:
    unknown = [name for name in datasets if name not in DATASETS]
    if unknown:
        close = did_you_mean(unknown[0], DATASETS)
        raise UserError(f"no data set {unknown}{close}; there are {', '.join(DATASETS)}")
    if not datasets or not seeds:
        raise UserError("there is nothing to compare on: name a data set and a seed")
    if rows is not None and rows < 1:
        raise UserError(f"rows is {rows}; say how many people, or None for all")


def _remark(file: ResultsFile, cells: list[Cell]) -> None:
    """Say what of the file is not used, or is used though the code has changed since."""
    source = {_key(head): head["source"] for cell in cells for head in cell.heads}
    others = sum(_key(line) not in source for line in file.lines)
    if others:
        warnings.warn(
            f"{others} of the {len(file.lines)} lines of {file.path} belong to other runs (another "
            "method, data set, seed, number of rows or setting); they are kept and not used",
            stacklevel=3,
        )
    older = sum(
        source.get(_key(line), line.get("source")) != line.get("source") for line in file.lines
    )
    if older:
        warnings.warn(
            f"{older} lines of {file.path} were made with the same settings by other code than "
            "today's; they are used. Name another file to run them again",
            stacklevel=3,
        )


# ---- what is seen while it runs -----------------------------------------------------------------


class _RunsBar:
    """A bar with the time left where somebody watches, else a line for each run."""

    def __init__(self, total: int, shown: bool):
        self._console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            disable=not (shown and self._console.is_terminal and total),
        )
        self._log = shown and not self._console.is_terminal
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> _RunsBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def say(self, what: str) -> None:
        self._bar.update(self._task, description=what)

    def tick(self, lines: list[Line]) -> None:
        self._bar.advance(self._task)
        for line in lines:
            if self._log or "failed" in line:
                score = line.get("metrics", {}).get("score")
                done = "done" if score is None else f"score {score['mean']:.3f}"
                said = line.get("failed", done)
                where = f"{line['dataset']}, seed {line['seed']}, {line['label']}"
                self._console.print(Text(f"{where}: {said}"), soft_wrap=True)
