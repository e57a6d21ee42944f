"""Quality under the protocol: every method on one data set and seed, judged by the gold judge.

    python benchmarks/quality.py --dataset compas --rows 1000 --seed 11

Each method is fitted in a child process that is handed training rows, drawn labels, h and the
schema, and only afterwards the people it has to answer: never the judge or a test label. Results
are printed and appended to benchmarks/results/quality.jsonl. `--nested` makes the whole case from
training rows, for development.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import platform
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from genrecourse import judge, verifier
from genrecourse.datasets import DATASETS
from genrecourse.evaluation import Case, ceiling, make_case, measure
from genrecourse.genre import bins, select
from genrecourse.methods import METHODS, auto, genre, nearest

METHOD_NAMES = ("nnr", "nnr-0.7", "nnr-dplus", "nnr-auto", "genre-paper", "genre")
COLUMNS = ("cost", "val", "lof", "score", "h_valid", "changes", "violations")
RESULTS = Path(__file__).parent / "results" / "quality.jsonl"


def config_hash(name: str) -> str:
    """Of a method's parameters and of the fixed grids that "auto" searches: what was frozen."""
    fixed = [
        METHODS[name]().get_params(deep=False),
        (auto.GAMMA_GRID, auto.CLEAN_BAR, auto.DRAWS),
        (genre.TEMPERATURE_GRID, genre.MARGIN_GRID, genre.LOOKED_AT, genre.CLEARLY),
        (judge.TRUST_AT, judge.TRUST_SCALE, verifier.INLIER_AT, verifier.INLIER_SCALE),
        verifier.NEIGHBOURS,
        (select.SHORTLIST, nearest.CANDIDATES),
        (bins.ATOM_SHARE, bins.KEEP_REACH),
    ]
    return hashlib.sha256(repr(fixed).encode()).hexdigest()[:12]


def child(pipe: Connection) -> None:
    """Fit on what the parent sends first, then answer the people it sends second."""
    name, h, schema, X, y, seed = pipe.recv()
    started = time.perf_counter()
    method = METHODS[name](h, schema, seed=seed).fit(X, y)
    pipe.send((time.perf_counter() - started, getattr(method, "fit_report_", {})))
    people = pipe.recv()
    started = time.perf_counter()
    X_plus = method.recourse(people)
    pipe.send((X_plus, time.perf_counter() - started))


def run(name: str, case: Case) -> tuple[Any, dict[str, Any]]:
    """x_plus for the case's people, and what the run took."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=child, args=(there,))
    process.start()
    here.send((name, case.h, case.schema, case.X, case.y, case.seed))
    fit_seconds, report = here.recv()
    here.send(case.people)
    X_plus, seconds = here.recv()
    process.join()
    chosen = {
        "gamma": report.get("gamma", {}).get("chosen"),
        "sampling": report.get("sampling", {}).get("chosen"),
        "stages": report.get("seconds"),
    }
    return X_plus, {"fit_seconds": fit_seconds, "recourse_seconds": seconds, **chosen}


def line(case: Case, name: str, values: dict[str, np.ndarray], run: dict[str, Any]) -> dict:
    return {
        "dataset": case.name,
        "seed": case.seed,
        "method": name,
        "n": len(case.people),
        **{metric: float(v.mean()) for metric, v in values.items()},
        **{f"{metric}_sd": float(v.std()) for metric, v in values.items()},
        **run,
    }


def show(lines: list[dict[str, Any]], title: str) -> None:
    table = Table(title=title)
    for column in ("method", *COLUMNS, "n", "fit s", "ms/row"):
        table.add_column(column, justify="left" if column == "method" else "right")
    for item in lines:
        seconds = item.get("recourse_seconds")
        table.add_row(
            item["method"],
            *(f"{item[c]:.3f}" for c in COLUMNS),
            str(item["n"]),
            "" if seconds is None else f"{item['fit_seconds']:.1f}",
            "" if seconds is None else f"{1000 * seconds / item['n']:.2f}",
        )
    Console(width=120).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", required=True, choices=sorted(DATASETS))
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--nested", action="store_true", help="a case made from training rows")
    parser.add_argument("--methods", default=",".join(METHOD_NAMES))
    options = parser.parse_args()

    case = make_case(options.dataset, options.seed, rows=options.rows, nested=options.nested)
    lines = []
    for name in options.methods.split(","):
        X_plus, took = run(name, case)
        lines.append(line(case, name, measure(case, X_plus), took))
        lines[-1]["config"] = config_hash(name)
    lines.append(line(case, "ceiling", measure(case, ceiling(case)), {}))
    for item in lines:
        item |= {
            "nested": options.nested,
            "versions": {"python": platform.python_version(), "torch": torch.__version__},
        }
    show(
        lines,
        f"{case.name}, seed {case.seed}{', nested' if options.nested else ''}: {len(case.people)} "
        f"rejected test rows, {len(case.X)} training rows, h accuracy {case.h_accuracy:.3f}",
    )
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(item, default=str) + "\n" for item in lines)


if __name__ == "__main__":
    main()
