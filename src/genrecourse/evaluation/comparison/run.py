"""compare(): methods x data sets x seeds, each method in a process that cannot see the judge.

Each finished run is one line of a results file. If a comparison starts again with the same file, it
does only the missing runs. The seed decides everything, so a comparison that was interrupted ends
with the same table.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from genrecourse.data.datasets import DATASETS, load_dataset
from genrecourse.errors import UserError, did_you_mean
from genrecourse.evaluation.comparison.bench import Bench, Split
from genrecourse.evaluation.comparison.entries import BOUNDS, Entry, check_entries, heads
from genrecourse.evaluation.comparison.results import Line, ResultsFile

# What identifies a run: a comparison uses an old line if all of these are the same.
KEY = ("dataset", "seed", "label", "rows", "nested", "fresh", "witnesses", "config")


def compare(
    entries: Sequence[Entry | str],
    datasets: Sequence[str],
    seeds: Sequence[int],
    *,
    rows: int | None = 200,
    output: Path | None = None,
    nested: bool = False,
    fresh: bool = False,
    witnesses: bool = True,
    progress: bool = True,
) -> list[Line]:
    """Do the missing runs, and return one line per requested run, also for failed runs.

    Each method runs in a new process, so a script that calls this needs the guard
    `if __name__ == "__main__":`.

    entries: names in METHODS, or `Entry` objects.
    datasets, seeds: every combination is one case. `own_table.add_own_table` adds a table.
    rows: how many rejected test rows per seed; None: all of them.
    output: a .jsonl file to which each finished run is appended; None: nothing is stored.
    nested: use training rows only, for development.
    fresh: pool all rows and split them again by the seed, so that the people are new.
    witnesses: also measure what needs further models (retrained models, other forests).
    progress: show a progress bar, or one line per run if the output is not a terminal.

    >>> lines = compare(["nnr", "genre"], ["german"], [0, 1], rows=50)  # doctest: +SKIP
    >>> [row.label for row in standings(lines)]  # doctest: +SKIP
    ['nnr', 'genre', 'ceiling', 'accepted']
    """
    _check(datasets, seeds, rows)
    wanted = [(entry, heads(entry)) for entry in check_entries(entries) + bounds()]
    asked: Line = {"rows": rows, "nested": nested, "witnesses": witnesses}
    if nested and fresh:
        raise UserError("nested and fresh are both set; choose one of the two")
    if fresh:
        asked["fresh"] = True  # lines of other runs have no such entry
    split: Split = "fresh" if fresh else "nested" if nested else "files"
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
            load_dataset(name)  # raise now, not after hours, if a data set is not available
        with _RunsBar(len(todo), progress) as bar:
            for (name, seed), group in groupby(todo, key=lambda cell: (cell.dataset, cell.seed)):
                bar.say(f"{name}, seed {seed}: data, judge and h")
                bench = Bench(name, seed, rows=rows, split=split, witnesses=witnesses)
                for cell in group:
                    bar.say(f"{name}, seed {seed}: {cell.entry.label}")
                    lines = bench.run(cell.entry, cell.heads, output)
                    date = datetime.now(UTC).date().isoformat()
                    lines = [line | {"date": date} for line in lines if _key(line) not in done]
                    file.append(lines)
                    bar.tick(lines)
        found = {_key(line): line for line in file.lines}
    return [found[_key(head)] for cell in cells for head in cell.heads]


def bounds() -> list[Entry]:
    """Return the references in every table, which are not methods.

    >>> [entry.label for entry in bounds()]
    ['ceiling', 'accepted']
    """
    return [Entry(name, name) for name in BOUNDS]


@dataclass(frozen=True)
class Cell:
    """One method on one case: one child process.

    >>> Cell("german", 0, Entry("nnr", "nnr"), heads(Entry("nnr", "nnr"))).entry.label
    'nnr'
    """

    dataset: str
    seed: int
    entry: Entry
    heads: list[Line]  # one per request: the part of its line that is known before the run


# ---- the file and the request ------------------------------------------------------------------


def _key(line: Line) -> tuple[Any, ...]:
    return tuple(line.get(name) for name in KEY)


def _check(datasets: Sequence[str], seeds: Sequence[int], rows: int | None) -> None:
    unknown = [name for name in datasets if name not in DATASETS]
    if unknown:
        close = did_you_mean(unknown[0], DATASETS)
        raise UserError(
            f"there is no data set {unknown}{close}; the data sets are {', '.join(DATASETS)}"
        )
    if not datasets or not seeds:
        raise UserError("there is no data set or no seed to compare on; give at least one of each")
    if rows is not None and rows < 1:
        raise UserError(f"rows is {rows}; it must be at least 1, or None for all people")


def _remark(file: ResultsFile, cells: list[Cell]) -> None:
    """Warn about lines of other runs, and about lines that older code made."""
    source = {_key(head): head["source"] for cell in cells for head in cell.heads}
    others = sum(_key(line) not in source for line in file.lines)
    if others:
        warnings.warn(
            f"{others} of the {len(file.lines)} lines of {file.path} belong to other runs (another "
            "method, data set, seed, number of rows or setting); they stay in the file and are not "
            "used",
            stacklevel=3,
        )
    older = sum(
        source.get(_key(line), line.get("source")) != line.get("source") for line in file.lines
    )
    if older:
        warnings.warn(
            f"{older} lines of {file.path} were made with the same settings by another version of "
            "the code; they are used. Use another file to run them again",
            stacklevel=3,
        )


# ---- progress -----------------------------------------------------------------------------------


class _RunsBar:
    """A progress bar in a terminal; otherwise one line per run."""

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
        if not self._bar.disable:  # as in `model.training`
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._bar.disable:
            self._bar.stop()

    def say(self, what: str) -> None:
        self._bar.update(self._task, description=what)

    def tick(self, lines: list[Line]) -> None:
        self._bar.advance(self._task)
        for line in lines:
            if self._log or "failed" in line:
                score = line.get("metrics", {}).get("score")
                done = "done" if score is None else f"score {score['mean']:.3f}"
                result = line.get("failed", done)
                where = f"{line['dataset']}, seed {line['seed']}, {line['label']}"
                self._console.print(Text(f"{where}: {result}"), soft_wrap=True)
