"""GenRe's two efforts, the GenRe of before, and opponents, on fresh people.

    python -m benchmarks.distilled --datasets german,compas --seeds 66,67,68,69,70
    python -m benchmarks.distilled --nested --datasets german --seeds 0      # development
    python -m benchmarks.distilled --show

`genre` learns from a search and then draws once; it is also asked to search. `before` is GenRe as
it was at commit 4c6828d, which searched for everybody; its lines were written by that version
(`--entries before` with that version's sources on PYTHONPATH). The `-search` methods have the same
verifier and refining, but no distilled density. Every method sees the same people; for each seed
all rows of a data set are pooled and split again (`--nested`: training rows alone). Lines are
appended to benchmarks/results/distilled.jsonl with the hash of each configuration; what is there is
not run again. Compare seconds within a seed only.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from genrecourse.evaluation.comparison import Entry, compare
from genrecourse.evaluation.comparison.results import ResultsFile, unpack_numbers

RESULTS = Path(__file__).parent / "results"
ENTRIES = {
    "genre": Entry("genre", "genre", asks={"": {}, "search": {"effort": "search"}}),
    "before": Entry("before", "genre"),
    **{
        name: Entry(name, name)
        for name in ("nnr-search", "tabsyn_q-search", "cchvae-search", "revise-search")
    },
}
BEFORE = "before"
COLUMNS = (
    *("score", "val", "val_oof", "lof", "lof_20", "cost", "changes"),
    *("h_valid", "violations", "noise", "retrained_seed", "retrained_bootstrap"),
)


def show(path: Path) -> None:
    """Print the mean over seeds, and the paired difference of the Score from GenRe before."""
    with ResultsFile(path) as file:
        lines = [line for line in file.lines if "failed" not in line and "people" in line]
    found = defaultdict(dict)
    for line in lines:
        found[line["dataset"], line["label"]][line["seed"]] = line
    for name in sorted({dataset for dataset, _ in found}):
        table = Table(title=name)
        for column in ("", "score - before", *COLUMNS, "ms a row", "fit s", "seeds"):
            table.add_column(column, justify="right" if column else "left")
        for (dataset, label), by_seed in found.items():
            if dataset == name:
                table.add_row(label, *_cells(by_seed, found.get((name, BEFORE), {})))
        Console(width=190).print(table)


def _cells(by_seed: dict[int, dict], before: dict[int, dict]) -> list[str]:
    group = list(by_seed.values())
    means = [_mean(group, column) for column in COLUMNS]
    recourse = [
        g["seconds"]["recourse"] / g["n"] * 1e3 for g in group if "recourse" in g["seconds"]
    ]
    fit = [g["seconds"]["fit"] for g in group if "fit" in g["seconds"]]
    return [
        _difference(by_seed, before),
        *(f"{mean:.3f}" for mean in means),
        f"{np.mean(recourse):.2f}" if recourse else "",
        f"{np.mean(fit):.1f}" if fit else "",
        ",".join(map(str, by_seed)),
    ]


def _mean(group: list[dict], column: str) -> float:
    known = [g["metrics"][column]["mean"] for g in group if column in g["metrics"]]
    return float(np.mean(known)) if known else float("nan")


def _difference(by_seed: dict[int, dict], before: dict[int, dict]) -> str:
    """Return the mean paired difference over seeds, and half of its 95% interval (Student's t)."""
    each = [
        np.mean(
            unpack_numbers(by_seed[seed]["people"]["score"])
            - unpack_numbers(before[seed]["people"]["score"])
        )
        for seed in by_seed
        if seed in before
    ]
    return with_half_width(each)


def with_half_width(each: list[float]) -> str:
    """Return the mean of the seeds and half of its 95% interval, by Student's t."""
    if len(each) < 2:
        return f"{each[0]:+.4f}" if each else ""
    half = stats.t.ppf(0.975, len(each) - 1) * np.std(each, ddof=1) / len(each) ** 0.5
    return f"{np.mean(each):+.4f} ± {half:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", default="german")
    parser.add_argument("--seeds", default="66")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--entries", default="genre,nnr-search")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--nested", action="store_true")
    parser.add_argument("--no-witnesses", action="store_true")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    usual = RESULTS / ("distilled_nested.jsonl" if options.nested else "distilled.jsonl")
    path = options.output or usual
    if not options.show:
        compare(
            [ENTRIES[name] for name in options.entries.split(",")],
            options.datasets.split(","),
            [int(seed) for seed in options.seeds.split(",")],
            rows=options.rows,
            output=path,
            nested=options.nested,
            fresh=not options.nested,
            witnesses=not options.no_witnesses,
        )
    show(path)


if __name__ == "__main__":
    main()
