"""Which runs of the paper exist: every table and figure, with its source, people, dates and gaps.

A run is one label on one data set and seed. It exists if the results have its line, and the line
was made with the settings that configs/ state now: people, witnesses, parameters and request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from genrecourse.evaluation.comparison import Entry
from genrecourse.methods.params import pack_params
from genrecourse.model.artifact import pack
from paper import frozen, pinned, plane, runs, theory
from paper.records import DATASETS, Line, latest_of, read_lines
from paper.runs import Scale

NOTHING, FAILED, OTHER = "no result", "failed", "made with other settings"
FEW = 3  # labels that a list of gaps names, per data set
WIDTH = 170  # characters of a line that goes to no terminal


@dataclass(frozen=True)
class Run:
    """One run that an item needs, and its line if there is one."""

    part: str  # the config, or the file
    dataset: str
    label: str
    seed: int | str
    line: Line | None = None
    gap: str = ""  # why it does not count; empty: it exists

    @property
    def key(self) -> tuple[str, str, str, int | str]:
        return self.part, self.dataset, self.label, self.seed


@dataclass(frozen=True)
class Item:
    """A table or figure, with the runs that it needs."""

    name: str
    page: str
    runs: tuple[Run, ...]

    @property
    def done(self) -> list[Run]:
        return [run for run in self.runs if not run.gap]

    @property
    def missing(self) -> list[Run]:
        return [run for run in self.runs if run.gap]

    @property
    def lines(self) -> list[Line]:
        return [run.line for run in self.done if run.line is not None]

    @property
    def sources(self) -> list[str]:
        return sorted({str(line.get("source")) for line in self.lines})

    @property
    def dates(self) -> list[str]:
        """Return the first and the last day."""
        days = sorted({line["date"] for line in self.lines if "date" in line})
        return days if len(days) < 2 else [days[0], days[-1]]

    @property
    def seeds(self) -> tuple[int, int]:
        """Return how many seeds have every run, and how many are wanted."""
        wanted = {run.seed for run in self.runs}
        return len(wanted - {run.seed for run in self.missing}), len(wanted)

    @property
    def people(self) -> dict[str, int]:
        """Return the people of each data set, of the label that has most."""
        found: dict[str, dict[tuple[str, str], int]] = {}
        for run in self.done:
            if run.line is not None and "n" in run.line and run.label != "accepted":
                of, who = found.setdefault(run.dataset, {}), (run.part, run.label)
                of[who] = of.get(who, 0) + run.line["n"]
        return {name: max(of.values()) for name, of in found.items()}


# ---- comparisons --------------------------------------------------------------------------------


def compared(*tags: str) -> Callable[[Scale], list[Run]]:
    """Return the runs of the entries for these tables or figures, and of their references."""
    return lambda size: [
        run
        for tag in tags
        for config in (*runs.COMPARED, "preset")
        for run in _of_config(config, tag, size)
    ]


def _of_config(config: str, tag: str, size: Scale) -> list[Run]:
    found, latest = [], _latest(config, size)
    for name, listed in runs.entries(config, size, tag).items():
        seen = [_Seen(config, name, size, entry) for entry in listed]
        needed = [
            (each, ask, seed)
            for each in seen
            for ask in each.entry.asks
            for seed in runs.seeds_of(config, each.entry.label, size)
        ]
        for each, ask, seed in needed:
            label = each.entry.named(ask)
            line = latest.get((label, name, seed))
            found.append(Run(config, name, label, seed, line, each.gap(line, ask)))
        for label, seed in product(REFERENCES.get(tag, ()), runs.seeds(config, size)):
            if config in ("main", "others"):
                line = latest.get((label, name, seed))
                found.append(Run(config, name, label, seed, line, _gap(line)))
    return found


# the rows of a table that no method makes
REFERENCES = {
    "table1": ("ceiling",),
    "nnr": ("ceiling",),
    "robustness": ("ceiling", "accepted"),
    "others": ("ceiling", "accepted"),
}


def _latest(config: str, size: Scale) -> dict[tuple[str, str, int], Line]:
    lines = [line for path in size.all_compared(config) for line in read_lines(path)]
    return latest_of(lines)


def _gap(line: Line | None) -> str:
    if line is None:
        return NOTHING
    return f"{FAILED}: {line['failed']}" if "failed" in line else ""


@dataclass(frozen=True)
class _Seen:
    """An entry on a data set, and what its lines have to say."""

    config: str
    dataset: str
    size: Scale
    entry: Entry

    def gap(self, line: Line | None, ask: str) -> str:
        """Return why a line does not count; empty: it does."""
        if line is None or "failed" in line:
            return _gap(line)
        settings = runs.read(self.config)
        wanted = {
            "method": self.entry.method,
            "rows": runs.rows_of(settings, settings["entries"][self.entry.label], self.size),
            "witnesses": runs.has_witnesses(self.config, self.dataset, self.size),
            "fresh": True,
            "data_fraction": self.entry.data_fraction,
            "params": pack_params(self.entry.params),
            "ask": pack(dict(self.entry.asks[ask])),
        }
        differ = [k for k, value in wanted.items() if not _same(value, line.get(k))]
        return f"{OTHER}: {', '.join(differ)}" if differ else ""


def _same(wanted: Any, found: Any) -> bool:
    """Return whether two settings are the same; newer code may have more fields in a record."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(_same(wanted[k], found[k]) for k in wanted.keys() & found.keys()) and (
            bool(wanted.keys() & found.keys()) or wanted == found
        )
    return bool(wanted == found)


# ---- other parts --------------------------------------------------------------------------------

Key = tuple[str, str, int | str]  # data set, label, seed


def listed(part: str, wanted: Iterable[Key], lines: list[Line], label: str = "") -> list[Run]:
    """Return the runs of a part that is not a comparison; `label` names the key of its labels."""
    found = {(x.get("dataset", ""), str(x.get(label, "")), x["seed"]): x for x in lines}
    return [Run(part, *key, found.get(key), "" if key in found else NOTHING) for key in wanted]


def of_cases(size: Scale) -> list[Run]:
    lines = [line for path in size.all_compared("cases") for line in read_lines(path)]
    return listed("cases", product(DATASETS.values(), [""], size.seeds), lines)


def of_pinned(size: Scale) -> list[Run]:
    lines = [line for path in size.all_compared("pinned") for line in read_lines(path)]
    seeds = size.seeds[: pinned.SEEDS]
    wanted = product(pinned.SETS, map(str, pinned.LAMBDAS), seeds)
    return listed("pinned", wanted, lines, "lam")


def of_theory(size: Scale) -> list[Run]:
    wanted = (("", setting.label, 0) for setting in theory.SETTINGS)
    return listed("theory", wanted, read_lines(size.file("theory")), "setting")


def of_arrows(size: Scale) -> list[Run]:
    lines = read_lines(size.file("arrows"))
    wanted = product(plane.SETS, plane.methods(), _plane_seeds(lines, size))
    return listed("arrows", wanted, lines, "method")


def of_contours(size: Scale) -> list[Run]:
    lines = read_lines(size.file("contours"))
    wanted = product(plane.CONTOUR_SETS, plane.DENSITIES, _plane_seeds(lines, size))
    return listed("contours", wanted, lines, "density")


def _plane_seeds(lines: list[Line], size: Scale) -> list[int | str]:
    """Return the seeds in the file; which others are wanted is only known when they are run."""
    known: list[int | str] = sorted({line["seed"] for line in lines})[: size.seeds_2d]
    return [*known, *(f"number {i + 1}" for i in range(len(known), size.seeds_2d))]


# ---- the items ----------------------------------------------------------------------------------

PAPER: dict[str, tuple[str, Callable[[Scale], list[Run]]]] = {
    "data": ("Table of the data", of_cases),
    "table1": ("Table 1, and the same with sd", compared("table1")),
    "nnr": ("Nearest neighbours", compared("nnr")),
    "nnr_lambda": ("Nearest neighbours and lambda, with sd", compared("nnr")),
    "tabsyn": ("Diffusion, and the same with sd", compared("tabsyn")),
    "pinned": ("Diffusion: immutable features changed", of_pinned),
    "arrows": ("Figure: two dimensions, arrows", of_arrows),
    "lambda": ("Figure: lambda", compared("lambda")),
    "contours": ("Figure: contours of the densities", of_contours),
    "theory": ("Theorems 4.1 and 4.2", of_theory),
    "gold": ("Appendix: gold classifier", of_cases),
    "h": ("Appendix: classifier h", of_cases),
    "temperature": ("Appendix: temperature and sigma", compared("temperature")),
    "fraction": ("Appendix: share of the data", compared("fraction")),
    "baselines": ("Appendix: hyper-parameters of the baselines", compared("table1")),
    "preset": ("Appendix: architecture, the preset", compared("preset")),
    "robustness": ("Ours: robustness, targets, other judges", compared("robustness")),
    "ablation": ("Ours: ablation", compared("ablation")),
    "safety": ("Ours: cheaper against safer", compared("safety")),
    "others": ("Ours: German credit and made loans", compared("others")),
}


def items(size: Scale) -> list[Item]:
    """Return every table and figure, with the runs that it needs."""
    return [Item(name, page, tuple(make(size))) for page, (name, make) in PAPER.items()]


def problems(size: Scale, found: Sequence[Item]) -> list[str]:
    """Return what has to be done until the paper is complete and of one source."""
    said = []
    gaps = {run.key for item in found for run in item.missing}
    if gaps:
        said.append(f"{len(gaps):,} runs are missing")
    every = {str(s) for path in _files(size) for s in frozen.sources(path)}
    if len(every) > 1:
        said.append(f"the results have {len(every)} sources: {', '.join(sorted(every))}")
    if not size.is_quick and every - {frozen.frozen().source}:
        said.append(f"not all results are of the frozen source {frozen.frozen().source}")
    return said


def _files(size: Scale) -> list[Path]:
    return sorted(size.results.rglob("*.jsonl")) if size.is_quick else frozen.files(size.results)


# ---- in words -----------------------------------------------------------------------------------

HEAD = ("", "source", "runs", "seeds", "people", "dates", "missing")


def row(item: Item) -> list[str]:
    """Return the cells of an item."""
    return [
        item.name,
        ", ".join(item.sources),
        f"{len(item.done):,} of {len(item.runs):,}",
        "{} of {}".format(*item.seeds),
        ", ".join(f"{name} {n:,}".strip() for name, n in item.people.items()),
        " to ".join(item.dates),
        gaps_in_words(item),
    ]


def gaps_in_words(item: Item) -> str:
    """Return what is missing: a few labels and their seeds per data set."""
    if not item.done:
        return "everything"
    said = []
    for name in dict.fromkeys(run.dataset for run in item.missing):
        of = [run for run in item.missing if run.dataset == name]
        if len(of) == sum(run.dataset == name for run in item.runs):
            said.append(f"{name}: everything".strip(": "))
            continue
        seeds: dict[str, list[str]] = {}
        for run in of:
            seeds.setdefault(run.label, []).append(str(run.seed))
        some = [f"{label} {', '.join(own)}".strip() for label, own in list(seeds.items())[:FEW]]
        more = f" and {len(seeds) - FEW} more labels" if len(seeds) > FEW else ""
        said.append(f"{name}: {', '.join(some)}{more}")
    return "; ".join(said)


def summary(size: Scale) -> str:
    """Return one sentence: how many runs exist, and of which source."""
    every = {run.key: not run.gap for item in items(size) for run in item.runs}
    known = frozen.frozen()
    where = (
        "by whatever code there was"
        if size.is_quick
        else f"by the frozen source `{known.source}` (commit `{known.commit[:10]}`)"
    )
    return f"{sum(every.values()):,} of {len(every):,} runs exist, made {where}."


def table(size: Scale) -> list[list[str]]:
    """Return a row per item."""
    return [row(item) for item in items(size)]


def show(size: Scale, as_json: bool = False) -> int:
    """Print what exists and what is missing; return 1 if there is anything to do, else 0."""
    found = items(size)
    todo = problems(size, found)
    if as_json:
        print(json.dumps({"problems": todo, "items": [to_dict(item) for item in found]}, indent=1))
        return bool(todo)
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    shown = Table(*HEAD)
    for item in found:
        shown.add_row(*row(item))
    console.print(shown)
    print(summary(size).replace("`", ""))
    print("\n".join(todo) or "nothing is missing, and everything is of one source")
    return bool(todo)


def to_dict(item: Item) -> dict[str, Any]:
    """Return an item as JSON, with every run that is missing."""
    return {
        "item": item.name,
        "page": item.page,
        "sources": item.sources,
        "runs": len(item.runs),
        "done": len(item.done),
        "seeds": dict(zip(("done", "wanted"), item.seeds, strict=True)),
        "people": item.people,
        "dates": item.dates,
        "missing": [
            {
                "part": run.part,
                "dataset": run.dataset,
                "label": run.label,
                "seed": run.seed,
                "why": run.gap,
            }
            for run in item.missing
        ],
    }
