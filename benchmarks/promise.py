"""Are promises kept? Of the plans promised, what share does the gold classifier accept?

    python -m benchmarks.promise --dataset compas --seed 0
    python -m benchmarks.promise --dataset compas --seed 0 --protocol
    python -m benchmarks.promise --draw

Nested unless told otherwise: gold classifier, labels, h and people are made from training rows
alone. `--protocol` is the real one, on test rows: only for settings that are frozen. Lines are
appended to benchmarks/results/promise.jsonl; `--draw` makes docs/images/promise.png of the file,
means over seeds.

The interval of the share accepted takes people who were told the same x_plus as one.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from benchmarks.model_cache import fitted
from genrecourse import METHODS, GenRe
from genrecourse.data.datasets import DATASETS
from genrecourse.evaluation.comparison.intervals import clustered, over_seeds
from genrecourse.evaluation.evaluate import Case, make_case
from genrecourse.methods.base import Method
from genrecourse.reports.plots import Point, curves, save

SHARES = (0.8, 0.9, 0.95)
RESULTS = Path(__file__).parent / "results" / "promise.jsonl"
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "promise.png"
COLUMNS = ("promise", "served", "accepted", "interval", "basis", "threshold", "rows", "ess")


def figures(case: Case, method: Method, share: float) -> dict[str, Any]:
    """Of one promise: whom it serves, and what the gold classifier says of them."""
    started = time.perf_counter()
    made, plans = method.promise(share), method.plans(case.people, promise=share)
    line: dict[str, Any] = {
        "promise": share,
        "served": len(plans.shown) / len(case.people),
        "accepted": None,
        "half": None,
        "distinct": 0,
        "seconds": time.perf_counter() - started,
        **{k: v for k, v in made.to_dict().items() if k not in ("share", "served")},
        "served_training": made.served,
    }
    if plans.shown:
        Z = case.encoder.encode(plans.x_plus())
        told = np.unique(Z, axis=0, return_inverse=True)[1].reshape(-1)
        found = clustered(case.judge.valid(Z).astype(float), told)
        half = None if np.isnan(found.half) else found.half
        line |= {"accepted": found.mean, "half": half, "distinct": found.clusters}
    return line


def without(case: Case, method: Method) -> dict[str, Any]:
    """The same of plans without a promise, to hold them against."""
    plans = method.plans(case.people)
    Z = case.encoder.encode(plans.x_plus())
    return {
        "promise": None,
        "served": len(plans.shown) / len(case.people),
        "accepted": float(case.judge.valid(Z).mean()),
    }


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    case = make_case(options.dataset, options.seed, rows=options.rows, nested=not options.protocol)
    settings = GenRe._test_params() if options.tiny else {}
    method = fitted(case, options.folder, options.method, **settings)
    known = {
        "dataset": case.name,
        "seed": case.seed,
        "method": options.method,
        "nested": not options.protocol,
        "tiny": options.tiny,
        "n": len(case.people),
    }
    lines = [without(case, method), *(figures(case, method, share) for share in SHARES)]
    return [{**known, **line} for line in lines]


def show(lines: list[dict[str, Any]]) -> None:
    about = lines[0]
    kind = "nested" if about["nested"] else "protocol"
    title = f"{about['dataset']}, seed {about['seed']}, {about['method']}, {kind}, n = {about['n']}"
    table = Table(title=title)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for line in lines:
        half = line.get("half")
        line = line | {"interval": None if half is None else f"±{half:.3f}"}
        table.add_row(*(_cell(line.get(column)) for column in COLUMNS))
    Console(width=110).print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def draw(path: Path = PICTURE) -> None:
    """Share accepted, and share served, against the promise; a line a data set."""
    lines = [json.loads(text) for text in RESULTS.read_text(encoding="utf-8").splitlines()]
    lines = [line for line in lines if line["promise"] is not None and not line["tiny"]]
    if any(not line["nested"] for line in lines):  # the real protocol, once it was run
        lines = [line for line in lines if not line["nested"]]
    found: dict[str, dict[str, list[Point]]] = {"accepted": {}, "served": {}}
    for name, points in found.items():
        values = defaultdict(list)
        for line in lines:
            if line[name] is not None:
                values[line["dataset"], line["promise"]].append(line[name])
        for (dataset, share), each in sorted(values.items()):
            said = over_seeds(each, len(each), len(each))
            points.setdefault(dataset, []).append(Point(share, said.mean, said.half))
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    for ax, points in zip(figure.subplots(1, 2), found.values(), strict=True):
        curves(ax, points)
        ax.set_xlabel("promise")
        ax.set_ylim(top=1.02)
    accepted, served = figure.axes
    accepted.plot([0.78, 0.97], [0.78, 0.97], color="#6b7785", lw=1, ls=":", label="kept")
    accepted.set_ylim(bottom=0.76)
    accepted.set_ylabel("share accepted by the gold classifier")
    served.axhline(0.8, color="#6b7785", lw=1, ls=":")
    served.set_ylabel("share of people who get a plan")
    served.set_ylim(bottom=0)
    accepted.legend(frameon=False)
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", choices=sorted(DATASETS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=200, help="people")
    parser.add_argument("--method", default="genre", choices=sorted(METHODS))
    parser.add_argument("--protocol", action="store_true", help="the real one, on test rows")
    parser.add_argument("--tiny", action="store_true", help="a tiny net, to try the script")
    parser.add_argument("--folder", type=Path, help="models that benchmarks/plans.py has kept")
    parser.add_argument("--draw", action="store_true", help="the picture of what was run")
    options = parser.parse_args()
    if options.tiny and options.method != "genre":
        parser.error(f"--tiny is about GenRe's net, and --method is {options.method}")
    if options.dataset is not None:
        lines = run(options)
        show(lines)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    if options.draw:
        draw()


if __name__ == "__main__":
    main()
