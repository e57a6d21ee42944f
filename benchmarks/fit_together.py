"""One process, and two that train together: seconds, and the Score of their models.

    python -m benchmarks.fit_together                      # compas, seed 0
    python -m benchmarks.fit_together --seeds 0,1,2

Each seed is a case of the paper's protocol. GenRe is fitted by one process, and by two processes
that torchrun starts on this machine, each with one thread and h trained by them, too. Both models
answer the same test rows, which both reject, and the same gold judge scores them. The figures go to
benchmarks/results/fit_together.json; a seed that is there is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from genrecourse import GenRe, Schema, load
from genrecourse.model.processes import joined_by_torchrun

RESULTS = Path(__file__).parent / "results" / "fit_together.json"
OUTCOME = "accepted"
PEOPLE = 500
PROCESSES = (1, 2)


def fitted(table: Path, schema: Path, model: Path, seed: int) -> dict[str, Any]:
    """Fit GenRe, in each of the processes, and save it in the first one."""
    with joined_by_torchrun() as is_first:
        started = time.perf_counter()
        X = pd.read_parquet(table)
        method = GenRe(schema=Schema.load(schema), random_state=seed).fit(X, y=OUTCOME)
        found = {
            "seconds": round(time.perf_counter() - started, 1),
            "cpu_seconds": round(time.process_time(), 1),  # of the first process
            "training": {key: method.fit_report_["training"][key] for key in ("steps", "ended")},
        }
        if is_first:
            method.save(model)
            print(json.dumps(found), flush=True)
    return found


def in_children(processes: int, *arguments: object) -> dict[str, Any]:
    """Return what `fitted` prints in a run of so many processes."""
    start = [sys.executable]
    if processes > 1:
        start += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command = [*start, "-m", "benchmarks.fit_together", "--child", *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TTY_COMPATIBLE": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def compared(dataset: str, seed: int) -> dict[str, Any]:
    """Return the fits of a seed, and their scores for the same people."""
    from genrecourse.evaluation.evaluate import make_case, measure

    case = make_case(dataset, seed, rows=None)
    found: dict[str, Any] = {"dataset": dataset, "seed": seed, "runs": {}}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        case.X.assign(**{OUTCOME: case.y}).to_parquet(folder / "table.parquet", index=False)
        case.schema.save(folder / "schema.json")
        methods = {}
        for n in PROCESSES:
            paths = folder / "table.parquet", folder / "schema.json", folder / f"model-{n}"
            found["runs"][str(n)] = in_children(n, *paths, seed)
            methods[str(n)] = load(folder / f"model-{n}")
    rejected = [~method.classifier_.accepts(case.people) for method in methods.values()]
    people = case.people[np.logical_and.reduce(rejected)].head(PEOPLE)
    case, found["people"] = replace(case, people=people), len(people)
    scores = []
    for n, method in methods.items():
        measured = measure(case, method.recourse(people))
        scores.append(measured["score"])
        found["runs"][n]["score"] = float(np.nanmean(measured["score"]))
        half = 1.96 * np.nanstd(measured["score"], ddof=1) / np.sqrt(len(people))
        found["runs"][n]["half_width"] = float(half)
    gap = scores[1] - scores[0]
    found["difference"] = float(gap.mean())
    found["half_width"] = float(1.96 * gap.std(ddof=1) / np.sqrt(len(gap)))
    return found


def read() -> list[dict[str, Any]]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else []


def table() -> str:
    """Return the table of docs/scale.md."""
    lines = read()
    if not lines:
        return "No results yet."
    head = ["data", "seed", "people", "Score, 1 process", "Score, 2 processes", "difference"]
    head += ["CPU s, 1 process", "CPU s, each of 2"]
    rows = [
        [
            line["dataset"],
            f"{line['seed']}",
            f"{line['people']}",
            *(f"{run['score']:.3f} ± {run['half_width']:.3f}" for run in line["runs"].values()),
            f"{line['difference']:+.3f} ± {line['half_width']:.3f}",
            *(f"{run['cpu_seconds']:.0f}" for run in line["runs"].values()),
        ]
        for line in lines
    ]
    text = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join([*text, *("| " + " | ".join(row) + " |" for row in rows)])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--dataset", default="compas")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.child:
        source, schema, model = map(Path, options.child[:3])
        fitted(source, schema, model, int(options.child[3]))
        return
    for seed in map(int, options.seeds.split(",")):
        if not any((line["dataset"], line["seed"]) == (options.dataset, seed) for line in read()):
            lines = [*read(), compared(options.dataset, seed)]
            RESULTS.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    print(table())


if __name__ == "__main__":
    main()
