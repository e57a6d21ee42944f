"""Time of GenRe before it learned from a search, and now: fit, recourse, and plans for 1 to 1,000.

    git worktree add ../before 4c6828d
    python -m benchmarks.bench_effort --before ../before
    python -m benchmarks.bench_effort --before ../before --datasets german --most 100

`before` is GenRe at that commit, which searched for everybody; `now` is this version. Both run the
same code of this file on the same people, each data set and version in a process of its own, one
after the other, with all cores. A fitted method is saved and loaded again, and the loaded one is
measured, as a service would run it: one person at a time (the median of `--singles` different
people after a warm-up), then many people in one call. Only ratios of one run mean anything. They go
to benchmarks/results/effort.json. Run it on an idle machine.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from genrecourse import METHODS, load
from genrecourse.evaluation.evaluate import Case, make_case, measure
from genrecourse.methods.base import Method

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "effort.json"
VERSIONS = ("before", "now")


def seconds(act: Callable[[], Any]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def measured(case: Case, singles: int, sizes: list[int]) -> dict[str, Any]:
    method = METHODS["genre"](case.h, case.schema, random_state=case.seed)
    fit = seconds(lambda: method.fit(case.X, case.y))
    with tempfile.TemporaryDirectory() as folder:
        method.save(f"{folder}/model")
        method = load(f"{folder}/model", classifier=case.h)
    people = case.people
    X_plus = method.recourse(people)  # the first call also warms up
    found: dict[str, Any] = {
        "people": len(people),
        "fit_seconds": fit,
        "stages": dict(method.fit_report_["seconds"]),
        "recourse_ms_a_row": seconds(lambda: method.recourse(people)) / len(people) * 1e3,
        "score": float(np.nanmean(measure(case, X_plus)["score"])),
        "one_person_ms": _one_by_one(method, case, singles),
    }
    for size in sizes:
        some = people.iloc[:size]
        took = seconds(lambda some=some: method.plans(some, n=3))
        found[f"plans_{len(some)}_seconds"] = took
    return found


def _one_by_one(method: Method, case: Case, singles: int) -> dict[str, float]:
    """The median and the 95% quantile of plans(n=3) for one person, in ms."""
    method.plans(case.people.iloc[:1], n=3)
    every = [
        seconds(lambda i=i: method.plans(case.people.iloc[[i]], n=3)) * 1e3
        for i in range(1, min(singles + 1, len(case.people)))
    ]
    return {
        "p50": float(np.median(every)),
        "p95": float(np.quantile(every, 0.95)),
        "people": len(every),
    }


def ratios(before: dict[str, Any], now: dict[str, Any]) -> dict[str, float]:
    """How many times faster the version of now is."""
    names = ["fit_seconds", "recourse_ms_a_row", *(k for k in before if k.startswith("plans_"))]
    found = {name: round(before[name] / now[name], 1) for name in names}
    one = before["one_person_ms"]["p50"] / now["one_person_ms"]["p50"]
    return found | {"one_person_p50": round(one, 1)}


def run_version(sources: Path, dataset: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one version in a process of its own."""
    command = [sys.executable, __file__, "--child", "--datasets", dataset]
    for name in ("singles", "most", "seed"):
        command += [f"--{name}", str(getattr(options, name))]
    environment = {**os.environ, "PYTHONPATH": str(sources / "src")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def child(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    case = make_case(options.datasets, seed=options.seed, rows=options.most)
    sizes = sorted({min(100, len(case.people)), len(case.people)})
    print(json.dumps(measured(case, options.singles, sizes)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--before", type=Path, help="a checkout of commit 4c6828d")
    parser.add_argument("--datasets", default="german,compas,heloc,adult-carla")
    parser.add_argument("--singles", type=int, default=30)
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return
    if options.before is None or not (options.before / "src" / "genrecourse").is_dir():
        sys.exit(f"--before {options.before}: give a checkout of commit 4c6828d")
    results = []
    for dataset in options.datasets.split(","):
        places = (options.before.resolve(), ROOT)
        found = {
            version: run_version(place, dataset, options)
            for version, place in zip(VERSIONS, places, strict=True)
        }
        results.append({"dataset": dataset, **found, "times_faster": ratios(*found.values())})
        print(json.dumps(results[-1], indent=1), flush=True)
    machine = {"cores": os.cpu_count(), "threads": torch.get_num_threads()}
    found = {"seed": options.seed, "machine": machine, "datasets": results}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
