"""One model for every lambda beside one model for each: cost, soft validity and LOF.

    python -m benchmarks.any_lambda --dataset compas --seed 0

Always nested: the case is made from training rows alone. The settings are plain, so that lambda is
all that differs: gamma 0.7, nothing cleaned, refined or retrieved, temperature 1, and of 48 draws
the likeliest that h accepts. The models of a single lambda draw from all of D+, as the one for any
lambda does. Results are printed and appended to benchmarks/results/any_lambda.jsonl.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from genrecourse.data.datasets import DATASETS
from genrecourse.errors import rejections_expected
from genrecourse.evaluation.evaluate import Case, make_case, measure
from genrecourse.methods.genre import GenRe, Training

LAMS = (0.5, 1.0, 2.5, 5.0, 10.0)
COLUMNS = ("cost", "soft_val", "lof", "draw_cost")
RESULTS = Path(__file__).parent / "results" / "any_lambda.jsonl"
PLAIN: dict[str, Any] = {
    "gamma": 0.7,
    "clean": False,
    "temperature": 1.0,
    "margin": 0.5,
    "select": "likelihood",
    "refine": False,
    "retrieve": False,
    "n_draws": 48,
    "cost_weight": 0.0,
    "top_k": 1_000_000,
}


def fit(case: Case, lam: Any, steps: int | None) -> tuple[GenRe, float]:
    """A model, and the processor seconds that it took."""
    started = time.process_time()
    training = Training(steps=steps, patience=None)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*left out of training")
        method = GenRe(
            case.h, case.schema, lam=lam, random_state=case.seed, training=training, **PLAIN
        )
        method.fit(case.X, case.y)
    return method, time.process_time() - started


def figures(case: Case, method: GenRe, lam: float) -> dict[str, float]:
    """Of what is selected: cost, soft validity, LOF; and the mean cost of every draw."""
    with rejections_expected():
        X_plus = method.recourse(case.people, lam=lam)
    values = measure(case, X_plus)
    return {
        "cost": float(values["cost"].mean()),
        "soft_val": float(case.judge.probability(case.encoder.encode(X_plus)).mean()),
        "lof": float(values["lof"].mean()),
        "draw_cost": float(method.draws(case.people, lam=lam)["cost"].mean()),
    }


def run(case: Case, singles: list[float], steps: int | None) -> list[dict[str, Any]]:
    """A line for each model and lambda."""
    lines = []
    method, seconds = fit(case, "any", steps)
    for lam in LAMS:
        lines.append({"model": "any", "lam": lam, "fit_cpu_s": seconds})
        lines[-1] |= figures(case, method, lam)
    for lam in singles:
        method, seconds = fit(case, lam, steps)
        lines.append({"model": "one", "lam": lam, "fit_cpu_s": seconds})
        lines[-1] |= figures(case, method, lam)
    known = {"dataset": case.name, "seed": case.seed, "nested": True, "n": len(case.people)}
    return [{**known, "steps": steps, **line} for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", required=True, choices=sorted(DATASETS))
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="of training, for every model alike")
    parser.add_argument("--singles", default=",".join(map(str, LAMS)), help="models of one lambda")
    options = parser.parse_args()

    case = make_case(options.dataset, options.seed, rows=options.rows, nested=True)
    lines = run(case, [float(lam) for lam in options.singles.split(",")], options.steps)
    table = Table(title=f"{case.name}, seed {case.seed}, nested, n = {len(case.people)}")
    for column in ("model", "lam", *COLUMNS, "fit_cpu_s"):
        table.add_column(column, justify="right")
    for line in lines:
        cells = [f"{line[c]:.3f}" for c in COLUMNS]
        table.add_row(line["model"], f"{line['lam']:g}", *cells, f"{line['fit_cpu_s']:.1f}")
    Console(width=100).print(table)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    main()
