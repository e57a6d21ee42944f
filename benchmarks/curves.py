"""Can the verifier be gamed? Score and validity against the number of draws and of finalists.

    python -m benchmarks.curves --datasets german,compas --seeds 30,31
    python -m benchmarks.curves --show

One GenRe per data set and seed, on the nested case (training rows alone), searches with 1 to 256
draws and 4 refined finalists, and with 64 draws and 1 to 16 finalists. A search that looks at more
candidates finds more that the verifier overrates; if the verifier could not be gamed, the gold
judge's Val and the out-of-fold judge's would not fall. Lines go to benchmarks/results/curves.jsonl;
what is there is not run again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from genrecourse import GenRe
from genrecourse.evaluation.evaluate import Case, make_case, measure, witnesses
from genrecourse.genre.search import FINALISTS, search
from genrecourse.methods._density_method import RETRIEVED, SEARCH_DRAWS
from genrecourse.table.noise import KeyedNoise

RESULTS = Path(__file__).parent / "results" / "curves.jsonl"
SHOWN = ("score", "val", "val_oof", "lof_20", "cost", "changes", "noise", "retrained_bootstrap")
DRAWS = (1, 4, 16, 64, 256)
KEPT = (1, 2, 4, 8, 16)
EFFORTS = [(n, FINALISTS) for n in DRAWS] + [(SEARCH_DRAWS, k) for k in KEPT if k != FINALISTS]


def curve(case: Case) -> Iterator[dict[str, Any]]:
    """Yield the metrics of a search for each number of draws and finalists."""
    method = GenRe(case.h, case.schema, random_state=case.seed).fit(case.X, case.y)
    known, people = witnesses(case), method.problem_.read(case.people)
    for n_draws, finalists in EFFORTS:
        asked = {"effort": "search", "n_draws": n_draws}
        offers = method._offers(people.Z, KeyedNoise(case.seed), asked)
        found = search(
            method.problem_,
            method.verifier_,
            people.Z,
            offers.scored,
            safety=method.safety,
            finalists=finalists,
            retrieved=RETRIEVED if finalists > 1 else 0,
        )
        Z_plus = method.problem_.encoder.from_features(found.best)
        X_plus = method.problem_.encoder.decode(Z_plus, like=case.people)
        measured = measure(case, X_plus, known)
        means = {name: float(np.nanmean(measured[name])) for name in SHOWN if name in measured}
        head = {"dataset": case.name, "seed": case.seed, "n": len(people.Z)}
        yield {**head, "draws": n_draws, "finalists": finalists, "metrics": means}


def show(path: Path) -> None:
    """Print the means over seeds."""
    found: dict[tuple[str, int, int], list[dict[str, Any]]] = defaultdict(list)
    for line in map(json.loads, path.read_text().splitlines()):
        found[line["dataset"], line["draws"], line["finalists"]].append(line)
    for name in sorted({dataset for dataset, *_ in found}):
        people = sum(line["n"] for line in found[name, DRAWS[0], FINALISTS])
        table = Table(title=f"{name}, {people} people")
        for column in ("draws", "finalists", *SHOWN):
            table.add_column(column, justify="right")
        for (dataset, draws, finalists), lines in found.items():
            if dataset == name:
                means = [np.mean([e["metrics"].get(m, np.nan) for e in lines]) for m in SHOWN]
                table.add_row(str(draws), str(finalists), *(f"{mean:.4f}" for mean in means))
        Console(width=130).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", default="german,compas")
    parser.add_argument("--seeds", default="30,31,32")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not options.show:
        warnings.simplefilter("ignore")
        known = RESULTS.read_text().splitlines() if RESULTS.exists() else []
        done = {(line["dataset"], line["seed"]) for line in map(json.loads, known)}
        for name in options.datasets.split(","):
            for seed in map(int, options.seeds.split(",")):
                if (name, seed) in done:
                    continue
                lines = list(curve(make_case(name, seed, rows=options.rows, nested=True)))
                with RESULTS.open("a") as file:
                    file.writelines(json.dumps(line) + "\n" for line in lines)
                print(name, seed, flush=True)
    show(RESULTS)


if __name__ == "__main__":
    main()
