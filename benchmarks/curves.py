"""Can the verifier be gamed? Score and validity against the number of draws and of finalists.

    python -m benchmarks.curves --datasets german,compas --seeds 30,31
    python -m benchmarks.curves --datasets compas --seeds 30,31 --without-bonus
    python -m benchmarks.curves --show

One GenRe per data set and seed, on the nested case (training rows alone), searches with 1 to 256
draws and 4 refined finalists, and with 64 draws and 1 to 16 finalists. A search that looks at more
candidates finds more that the verifier overrates; if the verifier could not be gamed, the gold
judge's Val and the out-of-fold judge's would not fall. `--without-bonus` fits and searches with a
verifier that has no bonus for rows that exist (`SEEN`). Lines go to
benchmarks/results/curves.jsonl; what is there is not run again.
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
from genrecourse.trust import verifier

RESULTS = Path(__file__).parent / "results" / "curves.jsonl"
SHOWN = ("score", "val", "val_oof", "lof_20", "cost", "changes", "noise", "retrained_bootstrap")
DRAWS = (1, 4, 16, 64, 256)
KEPT = (1, 2, 4, 8, 16)
EFFORTS = [(n, FINALISTS) for n in DRAWS] + [(SEARCH_DRAWS, k) for k in KEPT if k != FINALISTS]


def curve(case: Case, *, bonus: bool) -> Iterator[dict[str, Any]]:
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
            most=method.verifier_.most_candidates,
        )
        Z_plus = method.problem_.encoder.from_features(found.best)
        X_plus = method.problem_.encoder.decode(Z_plus, like=case.people)
        measured = measure(case, X_plus, known)
        means = {name: float(np.nanmean(measured[name])) for name in SHOWN if name in measured}
        head = {"dataset": case.name, "seed": case.seed, "bonus": bonus, "n": len(people.Z)}
        yield {**head, "draws": n_draws, "finalists": finalists, "metrics": means}


def show(path: Path) -> None:
    """Print the means over seeds."""
    found: dict[tuple[str, bool], dict[tuple[int, int], list[dict[str, Any]]]] = {}
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        own = found.setdefault((line["dataset"], line["bonus"]), defaultdict(list))
        own[line["draws"], line["finalists"]].append(line)
    for (name, bonus), efforts in sorted(found.items()):
        people = sum(line["n"] for line in efforts[DRAWS[0], FINALISTS])
        how = "" if bonus else ", without the bonus for rows that exist"
        table = Table(title=f"{name}, {people} people{how}")
        for column in ("draws", "finalists", *SHOWN):
            table.add_column(column, justify="right")
        for (draws, finalists), lines in efforts.items():
            means = [np.mean([e["metrics"].get(m, np.nan) for e in lines]) for m in SHOWN]
            table.add_row(str(draws), str(finalists), *(f"{mean:.4f}" for mean in means))
        Console(width=130).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", default="german,compas")
    parser.add_argument("--seeds", default="30,31,32")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--without-bonus", action="store_true")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    bonus = not options.without_bonus
    if not options.show:
        warnings.simplefilter("ignore")
        verifier.SEEN = verifier.SEEN if bonus else 0.0
        known = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
        done = {(e["dataset"], e["seed"], e["bonus"]) for e in map(json.loads, known)}
        for name in options.datasets.split(","):
            for seed in map(int, options.seeds.split(",")):
                if (name, seed, bonus) in done:
                    continue
                case = make_case(name, seed, rows=options.rows, nested=True)
                lines = list(curve(case, bonus=bonus))
                with RESULTS.open("a") as file:
                    file.writelines(json.dumps(line) + "\n" for line in lines)
                print(name, seed, flush=True)
    show(RESULTS)


if __name__ == "__main__":
    main()
