"""Time of the search and of the distilled density: fit, recourse, and plans for 1 to 1,000 people.

    python -m benchmarks.bench_effort                    # german and adult-carla, seed 0
    python -m benchmarks.bench_effort --datasets german --most 100

Both methods are fitted on the same case, in this order of calls, in one process, with all cores.
Each is saved and loaded again, and the loaded one is measured, as a service would run it: one
person at a time (the median of `--singles` different people after a warm-up), then many people in
one call. Only ratios of one run mean anything. They go to benchmarks/results/effort.json.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from genrecourse import METHODS, load
from genrecourse.data.datasets import is_local
from genrecourse.evaluation.evaluate import Case, make_case, measure
from genrecourse.methods.base import Method

RESULTS = Path(__file__).parent / "results" / "effort.json"
NAMES = ("genre-q", "genre")


def seconds(act: Callable[[], Any]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def measured(name: str, case: Case, singles: int, sizes: list[int]) -> dict[str, Any]:
    method = METHODS[name](case.h, case.schema, random_state=case.seed)
    fit = seconds(lambda: method.fit(case.X, case.y))
    with tempfile.TemporaryDirectory() as folder:
        method.save(f"{folder}/model")
        method = load(f"{folder}/model", classifier=case.h)
    people = case.people
    X_plus = method.recourse(people)  # the first call also warms up
    recourse = seconds(lambda: method.recourse(people)) / len(people)
    found: dict[str, Any] = {
        "method": name,
        "fit_seconds": fit,
        "stages": dict(method.fit_report_["seconds"]),
        "recourse_ms_a_row": recourse * 1e3,
        "recourse_people": len(people),
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


def ratios(search: dict[str, Any], sample: dict[str, Any]) -> dict[str, float]:
    """How many times faster the distilled density is."""
    names = ["fit_seconds", "recourse_ms_a_row", *(k for k in search if k.startswith("plans_"))]
    found = {name: round(search[name] / sample[name], 1) for name in names}
    one = search["one_person_ms"]["p50"] / sample["one_person_ms"]["p50"]
    return found | {"one_person_p50": round(one, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    big = "adult-carla" if is_local("adult-carla") else "adult"
    parser.add_argument("--datasets", default=f"german,{big}")
    parser.add_argument("--singles", type=int, default=30)
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    results = []
    for dataset in options.datasets.split(","):
        case = make_case(dataset, seed=options.seed, rows=options.most)
        sizes = sorted({min(100, len(case.people)), len(case.people)})
        both = [measured(name, case, options.singles, sizes) for name in NAMES]
        results.append({"dataset": dataset, "results": both, "times_faster": ratios(*both)})
        print(json.dumps(results[-1], indent=1), flush=True)
    machine = {"cores": os.cpu_count(), "threads": torch.get_num_threads()}
    found = {"seed": options.seed, "machine": machine, "datasets": results}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
