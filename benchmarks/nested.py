"""Development under the protocol, made from training rows alone: what decision 0009 was judged by.

    python -m benchmarks.nested --dataset compas --seeds 0,1,2,3

Everything (gold judge, labels, h, people) comes from the training rows: looking at it spends
no test row. Lines are appended to benchmarks/results/nested.jsonl; what is there already is not run
again. `--show` prints the file alone.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from genrecourse.evaluation.comparison import Entry, compare
from genrecourse.evaluation.comparison.results import ResultsFile

RESULTS = Path(__file__).parent / "results" / "nested.jsonl"
COLUMNS = (
    "score",
    "cost",
    "val",
    "lof",
    "changes",
    "retrained_seed",
    "retrained_bootstrap",
    "noise",
)
SAFETIES = ("0.0", "0.25", "0.75", "1.0")
ENTRIES = [
    Entry(
        "genre", "genre", asks={"": {}} | {f"safety {s}": {"safety": float(s)} for s in SAFETIES}
    ),
    Entry("genre-paper", "genre-paper"),
    Entry("nnr-dplus", "nnr-dplus"),
    Entry("nnr-auto", "nnr-auto"),
    Entry("nnr-refined", "nnr-refined"),
]


def show() -> None:
    """The mean over seeds of every entry, by data set."""
    with ResultsFile(RESULTS) as file:
        lines = [line for line in file.lines if "failed" not in line]
    found = defaultdict(list)
    for line in lines:
        found[line["dataset"], line["label"]].append(line)
    for name in sorted({dataset for dataset, _ in found}):
        table = Table(title=f"{name}, nested: means over seeds")
        for column in ("", *COLUMNS, "seeds", "people"):
            table.add_column(column, justify="right" if column else "left")
        for (dataset, label), group in found.items():
            if dataset == name and label != "accepted":
                means = [np.mean([g["metrics"][c]["mean"] for g in group]) for c in COLUMNS]
                seeds = ",".join(str(g["seed"]) for g in group)
                people = str(sum(g["n"] for g in group))
                table.add_row(label, *(f"{m:.3f}" for m in means), seeds, people)
        Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not options.show:
        seeds = [int(seed) for seed in options.seeds.split(",")]
        compare(
            ENTRIES,
            [options.dataset],
            seeds,
            rows=options.rows,
            output=RESULTS,
            nested=True,
        )
    show()


if __name__ == "__main__":
    main()
