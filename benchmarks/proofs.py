"""Do proven statements agree with a loop over everything?

    python -m benchmarks.proofs --datasets german,compas --rows 500

For people whom h turns down, the library says of each whether a change of one or of two features
gets h to accept (over the values that it tries), and what the cheapest one costs. Here the same is
found by `itertools` over cells in original units, with the schema's rules written out again: only h
itself is shared. A method that offers nothing stands in, so that every answer is the enumeration's.
Where the training rows have more values of a feature than are tried, both are given a table
whose numbers are rounded to quantiles, so that the lists of values are the same.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.data.datasets import load_dataset
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.model.classifier import fit_mlp
from genrecourse.planning.enumeration import Enumeration
from genrecourse.table.encoding import Array
from genrecourse.table.noise import KeyedNoise
from genrecourse.table.schema import Feature, Schema

VALUES = 20  # of a number that the table is rounded to


class Nothing(Method):
    """Offers people as they are."""

    def _fit(self, rows: TrainingRows) -> None:
        pass

    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        return Z


def rounded(X: pd.DataFrame, schema: Schema, values: dict[str, np.ndarray]) -> pd.DataFrame:
    """Every number at the nearest of its values."""
    X = X.copy()
    for feature in schema:
        if feature.is_category:
            continue
        known = values[feature.name]
        place = np.abs(X[feature.name].to_numpy(dtype=float)[:, None] - known).argmin(axis=1)
        X[feature.name] = known[place].astype(X[feature.name].dtype)
    return X


def values_of(X: pd.DataFrame, schema: Schema) -> dict[str, np.ndarray]:
    found = {}
    for feature in schema:
        if not feature.is_category:
            seen = np.sort(X[feature.name].dropna().unique()).astype(float)
            some = np.linspace(0, len(seen) - 1, min(VALUES, len(seen))).round().astype(int)
            found[feature.name] = seen[some]
    return found


def options(feature: Feature, own: Any, seen: pd.Series) -> list[tuple[Any, float]]:
    """(value, price) of all that one feature may change to, by the schema's words."""
    if feature.role != "mutable":
        return []
    if feature.is_category:
        levels = list(feature.categories)
        at = levels.index(own)
        return [
            (level, feature.cost_weight)
            for k, level in enumerate(levels)
            if k != at and not _wrong_way(feature, k - at)
        ]
    span = float(seen.max() - seen.min()) or 1.0
    found = []
    for value in np.unique(seen):
        step = float(value) - float(own)
        low, high = feature.range or (-np.inf, np.inf)
        if step == 0 or _wrong_way(feature, step) or not low <= value <= high:
            continue
        if feature.max_step is not None and abs(step) > feature.max_step:
            continue
        found.append((value, feature.cost_weight * abs(step) / span))
    return found


def _wrong_way(feature: Feature, step: float) -> bool:
    return (feature.direction == "increase" and step < 0) or (
        feature.direction == "decrease" and step > 0
    )


def cheapest(h: Any, schema: Schema, X: pd.DataFrame, person: pd.DataFrame) -> tuple[float, int]:
    """The least cost at which h accepts, infinite if it never does; and the number of changes."""
    open_ = {f.name: options(f, person[f.name].iloc[0], X[f.name]) for f in schema}
    ways: list[tuple[dict[str, Any], float]] = [
        ({name: value}, price) for name in open_ for value, price in open_[name]
    ]
    for one, two in combinations(open_, 2):
        ways += [({one: v, two: w}, a + b) for (v, a), (w, b) in product(open_[one], open_[two])]
    columns = {}
    for name in schema.names:
        own = person[name].iloc[0]
        columns[name] = pd.Series([way.get(name, own) for way, _ in ways], dtype=X[name].dtype)
    accepted = h.score(pd.DataFrame(columns)) > h.cutoff
    prices = np.array([price for _, price in ways])
    return float(prices[accepted].min(initial=np.inf)), len(ways)


def compare(name: str, rows: int, seed: int, cutoff: float) -> dict[str, Any]:
    data = load_dataset(name, seed=seed)
    schema = data.schema
    for feature in schema:  # some rules to be kept
        if not feature.is_category and feature.role == "mutable" and "amount" in feature.name:
            schema = schema.with_feature(feature.name, direction="decrease")
    values = values_of(data.X_train, schema)
    X = rounded(data.X_train, schema, values)
    people = rounded(pd.concat([data.X_test, data.X_train]), schema, values)
    y, config = data.y_train, replace(data.h_config, epochs=30)
    h = fit_mlp(X, y, schema, config=config, cutoff=cutoff, seed=seed)
    people = people[~h.accepts(people)].head(rows)
    method = Nothing(h, schema, random_state=seed).fit(X, y)
    started = time.perf_counter()
    plans = method.plans(people)
    seconds = time.perf_counter() - started
    agree = {"plan": 0, "no plan": 0}
    wrong: list[Any] = []
    problem = method.problem_
    trial = Enumeration(problem.read(people), method.planning_.observed)
    found = trial.search(problem.rules, np.arange(len(people)))
    for i, plan in enumerate(plans):
        cost, tried = cheapest(h, schema, X, people.iloc[[i]])
        ours = float(found[i].cost.min(initial=np.inf))
        right = (plan.status == "ok") == np.isfinite(cost) and found[i].asked == tried
        right &= bool(np.isclose(ours, cost, rtol=1e-6)) or ours == cost
        if plan.status == "ok":
            claimed = plan.cheapest is not None
            right &= claimed == bool(np.isclose(plan.cost or 0.0, cost, rtol=1e-9, atol=1e-9))
        agree["plan" if np.isfinite(cost) else "no plan"] += right
        if not right:
            wrong.append((plan.person, plan.status, ours, cost, found[i].asked, tried))
    return {
        "dataset": name,
        "cutoff": cutoff,
        "people": len(plans),
        **agree,
        "wrong": wrong[:5],
        "tried a person": round(float(np.mean([each.asked for each in found]))),
        "seconds a person": round(seconds / max(1, len(plans)), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", default="german,compas")
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    about = "of h; so high that some people are beyond the reach of two changes"
    parser.add_argument("--cutoff", type=float, default=0.95, help=about)
    asked = parser.parse_args()
    how = (asked.rows, asked.seed, asked.cutoff)
    results = [compare(name, *how) for name in asked.datasets.split(",")]
    for result in results:
        print(result)
    if any(result["wrong"] for result in results):
        raise SystemExit("a proven statement does not agree with the loop")


if __name__ == "__main__":
    main()
