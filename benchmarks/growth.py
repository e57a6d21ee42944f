"""How fit and answers grow: with training rows, features, levels of a category, and people.

    python -m benchmarks.growth                          # the usual sizes; resumes
    python -m benchmarks.growth --rows 1000,10000 --people 100,1000 --features 5,10
    python -m benchmarks.growth --show                   # exponents and picture, from the results

The tables are made from adult: rows drawn with replacement, their numbers moved a little, further
features as noisy copies of its own, and one category split into the levels asked for. Every point
runs in a process of its own with one thread, which fits GenRe as it is by default (with the
library's own h, or `--h boosted`), and prints processor seconds of each stage and the peak memory.
Lines go to benchmarks/results/growth.jsonl; a point that is there is not run again. An exponent is
the slope of log seconds against log size over the larger half of the sizes: 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

RESULTS = Path(__file__).parent / "results" / "growth.jsonl"
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "growth.png"
USUAL = {
    "rows": (1_000, 3_000, 10_000, 30_000, 100_000),
    "features": (5, 10, 20, 50, 100, 200),
    "levels": (2, 10, 50, 200, 1_000, 2_000),
    "people": (1, 10, 100, 1_000, 10_000),
}
BASE = {"rows": 10_000, "features": 10, "levels": 0, "people": 100}  # what the others are held at
AXES = {
    "rows": "training rows",
    "features": "features",
    "levels": "levels of one category",
    "people": "people asked for",
}
LIMIT = 1_800  # seconds after which a point is given up and written as such


# ---- tables -------------------------------------------------------------------------------------


def adult_like(
    n: int, features: int = 10, levels: int = 0, seed: int = 0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return n rows like adult's with so many features, and their outcomes.

    levels: the number of levels of `occupation`; 0: as it is.
    """
    from genrecourse.data.datasets import load_dataset

    data = load_dataset("adult-carla")
    X = pd.concat([data.X_train, data.X_test], ignore_index=True)
    y = np.concatenate([data.y_train, data.y_test]).astype(int)
    rng = np.random.default_rng([seed, n, features, levels])
    drawn = rng.integers(len(X), size=n)
    found = {name: _moved(X[name].to_numpy()[drawn], rng) for name in _order(X)[:features]}
    names = [*found]
    for i in range(features - len(found)):  # noisy copies of its own
        name = names[i % len(names)]
        found[f"{name}_{i // len(names) + 2}"] = _copied(found[name], rng)
    table = pd.DataFrame(found)
    if levels:
        job = X["occupation"].astype("category").cat.codes.to_numpy()[drawn]
        table["occupation"] = _split(job, levels, rng)
    return table, y[drawn]


def _order(X: pd.DataFrame) -> list[str]:
    """Return the columns, numbers and categories in turn; occupation comes early."""
    numbers = [name for name in X if pd.api.types.is_numeric_dtype(X[name])]
    others = sorted((name for name in X if name not in numbers), key=lambda n: n != "occupation")
    both = [name for pair in zip(numbers, others, strict=False) for name in pair]
    return [*both, *(name for name in X if name not in both)]


def _moved(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return numbers moved by a fiftieth of their spread; a value that most rows have stays."""
    if values.dtype == object or not np.issubdtype(values.dtype, np.number):
        return values
    step = 0.02 * float(np.std(values))
    usual, counts = np.unique(values, return_counts=True)
    stays = np.isin(values, usual[counts > 0.2 * len(values)])
    moved = np.rint(values + rng.normal(0, max(step, 0.5), len(values)))
    return np.where(stays, values, np.clip(moved, values.min(), values.max())).astype(values.dtype)


def _copied(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the values, three tenths of them those of other rows."""
    return np.where(rng.random(len(values)) < 0.3, rng.permutation(values), values)


def _split(job: np.ndarray, levels: int, rng: np.random.Generator) -> np.ndarray:
    """Return so many levels, unevenly frequent; those of one job have close numbers."""
    kinds = int(job.max()) + 1
    if levels <= kinds:
        return np.array([f"job {level}" for level in job % levels], dtype=object)
    own = levels // kinds
    within = np.minimum((rng.pareto(1.0, len(job)) * own / 20).astype(int), own - 1)
    return np.array([f"job {level}" for level in job * own + within], dtype=object)


# ---- one point ----------------------------------------------------------------------------------


def measured(rows: int, features: int, levels: int, people: int, h: str) -> dict[str, Any]:
    """Return the seconds of fit, by stage, and of answers, and the memory at each moment."""
    from genrecourse import GenRe

    X, y = adult_like(rows, features, levels)
    asked, _ = adult_like(12 * people + 400, features, levels, seed=1)
    model = None
    if h == "boosted":
        model = boosted(X, y)
    method = GenRe(model, random_state=0)
    before = peak()
    fit, wall = time.process_time(), time.perf_counter()
    method.fit(X, y)
    found: dict[str, Any] = {
        "fit_seconds": time.process_time() - fit,
        "fit_wall": time.perf_counter() - wall,
        "stages": dict(method.fit_report_["seconds"]),
        "fit_gb": peak(),
        "before_gb": before,
    }
    if levels:  # a rare level may be in these people alone
        asked = asked[asked["occupation"].isin(X["occupation"])]
    some = asked[~method.classifier_.accepts(asked)]
    some = some[~some.isin(["?"]).any(axis=1)].head(people).reset_index(drop=True)
    method.recourse(some.head(1))
    for verb, ask in {
        "recourse": lambda: method.recourse(some),
        "plans": lambda: method.plans(some, n=3),
    }.items():
        started = time.process_time()
        ask()
        found[f"{verb}_seconds"] = time.process_time() - started
        found[f"{verb}_gb"] = peak()
    return found | {"asked": len(some)}


def boosted(X: pd.DataFrame, y: np.ndarray) -> Any:
    """Return a boosted model of scikit-learn that takes the table as it is."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    coded = make_column_transformer(
        (
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
            make_column_selector(dtype_include=["object", "string", "category"]),
        ),
        remainder="passthrough",
    )
    return make_pipeline(coded, HistGradientBoostingClassifier(random_state=0)).fit(X, y)


def peak() -> float:
    """Return the most memory that this process has held so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def in_child(point: dict[str, Any]) -> dict[str, Any]:
    """Return what a process of its own measures at a point."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TTY_COMPATIBLE": "0"}
    command = [sys.executable, "-m", "benchmarks.growth", "--point", json.dumps(point)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"no result after {LIMIT} seconds"}
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])


# ---- all points ---------------------------------------------------------------------------------


def points(sizes: dict[str, tuple[int, ...]], h: str) -> list[dict[str, Any]]:
    """Return every point: one axis is varied, the others are as in BASE."""
    return [{"axis": axis, **BASE, axis: size, "h": h} for axis in sizes for size in sizes[axis]]


def read() -> list[dict[str, Any]]:
    if not RESULTS.is_file():
        return []
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def run(sizes: dict[str, tuple[int, ...]], h: str) -> None:
    for point in points(sizes, h):
        if any(point.items() <= line.items() for line in read()):
            continue
        line = point | in_child(point)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Return the slope of log seconds against log size over the larger half of the sizes.

    >>> round(exponent([1, 10, 100, 1000], [5.0, 5.0, 50.0, 500.0]), 2)
    1.0
    """
    order = np.argsort(sizes)[len(sizes) // 2 - (len(sizes) > 2) :]
    x, t = np.log(np.array(sizes)[order]), np.log(np.maximum(np.array(seconds)[order], 1e-3))
    return float(np.polyfit(x, t, 1)[0])


# ---- what is shown ------------------------------------------------------------------------------

PARTS = ("fit_seconds", "recourse_seconds", "plans_seconds")


def lines_of(axis: str, h: str = "own") -> list[dict[str, Any]]:
    """Return the finished points of an axis, the smallest first."""
    found = [line for line in read() if line["axis"] == axis and line["h"] == h]
    return sorted((line for line in found if "failed" not in line), key=lambda line: line[axis])


def table(axis: str) -> str:
    """Return the table of an axis with a line of exponents."""
    found = lines_of(axis)
    if not found:
        return "No results yet."
    stages = [*found[-1]["stages"]]
    head = [AXES[axis], "fit, s", *stages, "fit, GB", "recourse, s", "plans, s", "GB"]
    rows = [
        [
            f"{line[axis]:,}",
            *(f"{line['fit_seconds']:.1f}",),
            *(f"{line['stages'].get(stage, 0):.1f}" for stage in stages),
            f"{line['fit_gb']:.2f}",
            f"{line['recourse_seconds']:.2f}",
            f"{line['plans_seconds']:.2f}",
            f"{line['plans_gb']:.2f}",
        ]
        for line in found
    ]
    if len(found) > 2:
        sizes = [line[axis] for line in found]

        def slope(values: list[float]) -> str:
            return f"{exponent(sizes, values):.2f}"

        by_stage = [slope([line["stages"].get(stage, 0) for line in found]) for stage in stages]
        fit, recourse, plans = (slope([line[part] for line in found]) for part in PARTS)
        rows.append(["exponent", fit, *by_stage, "", recourse, plans, ""])
    text = ["| " + " | ".join(head) + " |", "|" + " ---: |" * len(head)]
    return "\n".join([*text, *("| " + " | ".join(row) + " |" for row in rows)])


def draw() -> None:
    """Draw seconds against size for every axis."""
    from matplotlib.figure import Figure

    axes = [axis for axis in AXES if len(lines_of(axis)) > 1]
    if not axes:
        return
    figure = Figure(figsize=(3.4 * len(axes), 3.2), layout="constrained")
    for place, axis in zip(figure.subplots(1, len(axes), squeeze=False)[0], axes, strict=True):
        found = lines_of(axis)
        for part in PARTS:
            label = part.removesuffix("_seconds")
            place.loglog(
                [line[axis] for line in found], [line[part] for line in found], "o-", label=label
            )
        place.set(xlabel=AXES[axis], ylabel="processor seconds" if axis == axes[0] else "")
        place.grid(alpha=0.3)
    figure.axes[0].legend(frameon=False)
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    for axis, usual in USUAL.items():
        parser.add_argument(f"--{axis}", help=f"sizes, as in {','.join(map(str, usual))}")
    parser.add_argument("--h", choices=("own", "boosted"), default="own")
    parser.add_argument("--point", help=argparse.SUPPRESS)
    parser.add_argument("--show", action="store_true", help="only show the results that exist")
    options = parser.parse_args()
    if options.point:
        warnings.simplefilter("ignore")
        asked = json.loads(options.point)
        asked.pop("axis")
        print(json.dumps(measured(**asked)))
        return
    if not options.show:
        given = {axis: getattr(options, axis) for axis in USUAL if getattr(options, axis)}
        sizes = {axis: tuple(map(int, text.split(","))) for axis, text in given.items()}
        run(sizes or USUAL, options.h)
    for axis in AXES:
        print(f"\n{AXES[axis]}\n\n{table(axis)}")
    draw()


if __name__ == "__main__":
    main()
