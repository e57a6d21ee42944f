"""Speed: rows a second in training and in sampling, and cached against uncached decoding.

    python -m benchmarks.bench_speed

Ratios are measured in one run on one machine; only ratios are compared. The figures go to
benchmarks/results/speed.json.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import torch

from genrecourse.data.datasets import is_local
from genrecourse.evaluation.evaluate import make_case
from genrecourse.genre.sample import sample
from genrecourse.methods.genre import GenRe, Training
from genrecourse.table.noise import KeyedNoise

RESULTS = Path(__file__).parent / "results" / "speed.json"


def measure(name: str, steps: int, rows: int) -> dict[str, Any]:
    case = make_case(name, seed=0, rows=rows)
    method = GenRe(
        case.h, case.schema, gamma=0.7, temperature=0.5, margin=0.6, training=Training(steps=steps)
    ).fit(case.X, case.y)
    F = method.problem_.encoder.features(case.people)
    seconds = {}
    for cached in (True, False):
        started = time.perf_counter()
        sample(
            method.density_,
            F,
            method.n_draws_,
            temperature=0.5,
            noise=KeyedNoise(0),
            cached=cached,
        )
        seconds[cached] = time.perf_counter() - started
    started = time.perf_counter()
    method.recourse(case.people)
    recourse = time.perf_counter() - started
    return {
        "dataset": name,
        "training_pairs_per_second": round(method.fit_report_["training"]["pairs_per_second"]),
        "recourse_rows_per_second": round(len(F) / recourse),
        "draws_a_row": method.n_draws_,
        "cached_rows_per_second": round(len(F) / seconds[True], 1),
        "uncached_rows_per_second": round(len(F) / seconds[False], 1),
        "cached_over_uncached": round(seconds[False] / seconds[True], 2),
        "rows": len(F),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rows", type=int, default=512)
    options = parser.parse_args()
    names = [n for n in ("adult-carla", "compas", "heloc") if is_local(n)] or ["adult", "german"]
    results = [measure(name, options.steps, options.rows) for name in names]
    for line in results:
        print(json.dumps(line))
    machine = {"cores": os.cpu_count(), "threads": torch.get_num_threads()}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
