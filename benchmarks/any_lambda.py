"""One model for every lambda beside one model for each: cost, soft validity and LOF.

    python benchmarks/any_lambda.py --dataset compas --seed 0

Always nested: the case is made from training rows alone. The settings are plain, so that lambda is
all that differs: gamma 0.7, no cleaning, temperature 1, and of 48 draws the likeliest that h
accepts. The models of a single lambda draw from all of D+, as the one for any lambda does.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

from rich.console import Console
from rich.table import Table

from genrecourse.datasets import DATASETS
from genrecourse.evaluation import Case, make_case, measure
from genrecourse.methods.genre import GenRe

LAMS = (0.5, 1.0, 2.5, 5.0, 10.0)
PLAIN: dict[str, Any] = {
    "gamma": 0.7,
    "clean": False,
    "temperature": 1.0,
    "margin": 0.5,
    "select": "likelihood",
    "cost_weight": 0.0,
    "top_k": 1_000_000,
}


def fit(case: Case, lam: Any) -> tuple[GenRe, float]:
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*left out of training")
        method = GenRe(case.h, case.schema, lam=lam, seed=case.seed, **PLAIN).fit(case.X, case.y)
    return method, time.perf_counter() - started


def figures(case: Case, method: GenRe, lam: float) -> list[float]:
    """Of what is selected: cost, soft validity, LOF; and the mean cost of every draw."""
    X_plus = method.recourse(case.people, lam=lam)
    values = measure(case, X_plus)
    soft = case.judge.probability(case.encoder.encode(X_plus)).mean()
    drawn = method.draws(case.people, lam=lam)["cost"].mean()
    return [float(values["cost"].mean()), float(soft), float(values["lof"].mean()), float(drawn)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", required=True, choices=sorted(DATASETS))
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    case = make_case(options.dataset, options.seed, rows=options.rows, nested=True)
    any_model, seconds = fit(case, "any")
    table = Table(title=f"{case.name}, seed {case.seed}, nested, n = {len(case.people)}")
    names = ("cost", "soft val", "LOF", "cost of a draw")
    for column in ("lam", *(f"any: {n}" for n in names), *(f"one: {n}" for n in names), "fit s"):
        table.add_column(column, justify="right")
    total = 0.0
    for lam in LAMS:
        single, took = fit(case, lam)
        total += took
        cells = figures(case, any_model, lam) + figures(case, single, lam)
        table.add_row(f"{lam:g}", *(f"{v:.3f}" for v in cells), f"{took:.1f}")
    Console(width=140).print(table)
    Console(width=140).print(f"fit: any {seconds:.1f} s, one model for each {total:.1f} s")


if __name__ == "__main__":
    main()
