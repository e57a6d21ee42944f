"""Each method that searches by gradients: many rows in one call against the same rows one by one.

    python -m benchmarks.bench_batch                   # adult-carla, 200 rows

One by one is measured on `--singles` calls of one row and scaled to all rows, since all would take
hours. It is measured twice. `one_by_one` is the method as it is: it pads its chunks to one fixed
shape, so that a row's answer does not depend on the rows beside it, and a single row pays for a
whole chunk. `one_by_one_unpadded` has chunks of one row, as a method would that was written row by
row: the fair one, and the one that `ratio` is of. Fitting is in neither. The seconds are the
machine's; only the ratios, of one run, mean anything. They go to benchmarks/results/batch.json.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from genrecourse.data.datasets import is_local
from genrecourse.evaluation.evaluate import Case, make_case
from genrecourse.methods import METHODS, _gradient_search

RESULTS = Path(__file__).parent / "results" / "batch.json"
NAMES = ("wachter", "dice", "roar", "probe", "tap", "revise", "cruds")


@contextmanager
def chunks_of(rows: int) -> Iterator[None]:
    """Searches that move so many candidates together."""
    usual, _gradient_search.CHUNK = _gradient_search.CHUNK, rows
    try:
        yield
    finally:
        _gradient_search.CHUNK = usual


def seconds(act: Callable[[], Any]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def one_by_one(method: Any, people: pd.DataFrame) -> float:
    """Seconds a row."""
    calls = [seconds(lambda i=i: method.recourse(people.iloc[[i]])) for i in range(len(people))]
    return float(np.mean(calls))


def measure(name: str, case: Case, singles: int, params: dict[str, Any]) -> dict[str, Any]:
    method = METHODS[name](case.h, case.schema, **params)
    fit = seconds(lambda: method.fit(case.X, case.y))
    n, few = len(case.people), case.people.iloc[:singles]
    method.recourse(few.iloc[:1])  # whatever is made at the first call is made before the clock
    batch = seconds(lambda: method.recourse(case.people))
    padded = one_by_one(method, few) * n
    with chunks_of(1):
        unpadded = one_by_one(method, few) * n
    return {
        "method": name,
        "ratio": round(unpadded / batch, 1),
        "ratio_padded": round(padded / batch, 1),
        "batch_seconds": round(batch, 3),
        "one_by_one_unpadded_seconds": round(unpadded, 2),
        "one_by_one_seconds": round(padded, 2),
        "rows": n,
        "singles_measured": len(few),
        "fit_seconds": round(fit, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", default="adult-carla" if is_local("adult-carla") else "adult")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--singles", type=int, default=5)
    parser.add_argument("--methods", default=",".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="the tests' settings; writes nothing")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    case = make_case(options.dataset, seed=0, rows=options.rows)
    results = []
    for name in options.methods.split(","):
        cheap = getattr(METHODS[name], "_test_params", dict)() if options.quick else {}
        results.append(measure(name, case, options.singles, cheap))
        print(json.dumps(results[-1]), flush=True)
    if options.quick:
        return
    machine = {"cores": os.cpu_count(), "threads": torch.get_num_threads()}
    found = {"dataset": options.dataset, "machine": machine, "results": results}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
