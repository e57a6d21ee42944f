"""The numbers that the paper published, and those of our results files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from genrecourse.evaluation.comparison import estimate
from genrecourse.evaluation.comparison.entries import BOUNDS, code_hash
from genrecourse.evaluation.comparison.intervals import over_seeds

HERE = Path(__file__).parent
Line = dict[str, Any]
DATASETS = {"adult": "adult-carla", "compas": "compas", "heloc": "heloc"}  # the paper's name, ours
METRICS = ("cost", "val", "lof", "score")
PUBLISHED_ROWS = 200  # people a data set: "averaged over 200 instances from test split"


# ---- published ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Published:
    """A published mean and standard deviation."""

    mean: float
    sd: float | None  # between rows


@cache
def published(table: str) -> dict[tuple[str, str, str], Published]:
    """Return the values of a table of published.csv by (data set, method, metric)."""
    return {
        (row["dataset"], row["method"], row["metric"]): Published(
            float(row["mean"]), float(row["std"]) if row["std"] else None
        )
        for row in published_rows()
        if row["table"] == table
    }


def published_rows() -> list[dict[str, str]]:
    with (HERE / "published.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# ---- ours ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """A mean over people and seeds, with its 95% interval."""

    mean: float
    half: float  # NaN if there is no interval
    sd: float  # between people
    n: int  # people, of all seeds
    seeds: int

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half

    def excludes(self, value: float, rounding: float = 0.005) -> bool:
        """Return whether a published value, rounded to two decimals, lies outside the interval."""
        return not math.isnan(self.half) and abs(value - self.mean) > self.half + rounding


class Results:
    """The lines of a results file: the last line of each label, data set and seed.

    Failed lines are kept apart, in `failed`.
    """

    def __init__(self, lines: Iterable[Line]):
        latest = latest_of(lines)
        self.failed = [line for line in latest.values() if "failed" in line]
        self._lines: dict[tuple[str, str], list[Line]] = {}
        for (label, dataset, _), line in sorted(latest.items(), key=lambda item: item[0][2]):
            if "failed" not in line:
                self._lines.setdefault((label, dataset), []).append(line)

    @classmethod
    def read(cls, *paths: Path) -> Results:
        return cls(line for path in paths for line in read_lines(path))

    def __bool__(self) -> bool:
        return bool(self._lines)

    def __iter__(self) -> Iterator[Line]:
        return (line for lines in self._lines.values() for line in lines)

    def of(self, label: str, dataset: str) -> list[Line]:
        """Return the lines of a label on a data set, one per seed."""
        return self._lines.get((label, dataset), [])

    def labels(self) -> list[str]:
        return list(dict.fromkeys(label for label, _ in self._lines))

    def measured(self, label: str, dataset: str, metric: str) -> Measured | None:
        """Return the mean of a metric, or None if it was not run or does not apply."""
        lines = self.of(label, dataset)
        found = estimate(lines, metric)
        if found is None:
            return None
        parts = [line["metrics"][metric] for line in lines if metric in line["metrics"]]
        sd = pooled_sd([part for part in parts if part["mean"] is not None])
        return Measured(found.mean, found.half, sd, found.n, found.seeds)

    def seconds(self, label: str, dataset: str, what: str = "fit") -> Measured | None:
        """Return the mean time over seeds, or None if there is no result."""
        lines = self.of(label, dataset)
        times = [line["seconds"][what] for line in lines if what in line.get("seconds", {})]
        if not times:
            return None
        found = over_seeds(times, len(times), len(times))
        return Measured(found.mean, found.half, math.nan, len(times), len(times))

    def facts(self) -> str:
        """Return the seeds and the number of people per data set, in words."""
        seeds = sorted({line["seed"] for line in self})
        people = {d: sum(line["n"] for line in self._of(d)) for d in self._datasets()}
        each = ", ".join(f"{n:,} on {name}" for name, n in people.items())
        return f"seeds {', '.join(map(str, seeds))}; people: {each}"

    def _datasets(self) -> list[str]:
        return list(dict.fromkeys(dataset for _, dataset in self._lines))

    def _of(self, dataset: str) -> list[Line]:
        """Return the lines of the label that has most seeds on a data set."""
        own = (v for (label, d), v in self._lines.items() if d == dataset and label != "accepted")
        return max(own, key=len)


def latest_of(lines: Iterable[Line]) -> dict[tuple[str, str, int], Line]:
    """Return the last line of each label, data set and seed.

    Every run of a comparison has its references. They stand beside methods that answered everybody,
    so the one of most people is kept.

    >>> lines = [{"label": "ceiling", "dataset": "d", "seed": 1, "n": n} for n in (900, 500)]
    >>> latest_of(lines)["ceiling", "d", 1]["n"]
    900
    """
    found: dict[tuple[str, str, int], Line] = {}
    for line in lines:
        key = line["label"], line["dataset"], line["seed"]
        is_smaller = key in found and line.get("n", 0) < found[key].get("n", 0)
        if not (line["label"] in BOUNDS and is_smaller):
            found[key] = line
    return found


def pooled_sd(parts: list[dict[str, Any]]) -> float:
    """Return the standard deviation between all people, from the mean and sd of each seed."""
    n = sum(part["n"] for part in parts)
    mean = sum(part["n"] * part["mean"] for part in parts) / n
    square = sum(part["n"] * (part["sd"] ** 2 + part["mean"] ** 2) for part in parts) / n
    return math.sqrt(max(0.0, square - mean**2))


def read_lines(path: Path) -> list[Line]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def stamped(line: Line) -> Line:
    """Return the line of a part that is not a comparison, with the code and day that made it.

    Lines of comparisons have both already.
    """
    return {"source": code_hash(), "date": datetime.now(UTC).date().isoformat(), **line}


def write_lines(path: Path, lines: list[Line]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_suffix(".part")  # so that a run that is killed leaves the old file or the new
    whole.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    whole.replace(path)
