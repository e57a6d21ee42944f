"""Who gets a plan when features are locked at request time, of those who have one?

    python -m benchmarks.locks --dataset compas --people 100

One GenRe is fitted on the nested case (training rows alone: no test row is spent), then asked with
every single and every double lock of its actionable features. Who has a plan is settled by
enumeration: all changes of one and of two unlocked features over the values of the training rows
(at most 50 a feature, by quantile). `get_one` is what `recourse` gives, the method's own
choice; `get_one_from_plans` what `plans` shows, which also tries all changes of one and of two
features where the method has nothing. Beside it: what masks alone give, drawn from the same
model with the same noise, without weights, resampling, retrieved rows or refining.

Lines go to benchmarks/results/locks.json. `--folder DIR` keeps the fitted model, or uses it again.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.model_cache import fitted
from genrecourse.errors import rejections_expected
from genrecourse.evaluation.evaluate import make_case
from genrecourse.genre.sample import sample
from genrecourse.rules.book import RuleBook
from genrecourse.rules.kinds import Rules
from genrecourse.rules.requests import request_book
from genrecourse.table.encoding import Array
from genrecourse.table.noise import KeyedNoise

RESULTS = Path(__file__).parent / "results" / "locks.json"
N_VALUES = 50  # of a feature, in the enumeration


def grid(F: Array, j: int, is_category: bool) -> Array:
    values = np.unique(F[~np.isnan(F[:, j]), j])
    if is_category or len(values) <= N_VALUES:
        return values
    return np.unique(np.quantile(values, np.linspace(0, 1, N_VALUES), method="nearest"))


def ways_to_plan(method: Any, F_train: Array, x: Array) -> set[frozenset[int]]:
    """The sets of one or two features by whose change h accepts this person, within the rules."""
    schema, problem, rules = method.schema_, method.problem_, method.problem_.rules
    mutable = np.flatnonzero(~rules.immutable).tolist()
    values = {}
    for j in mutable:
        seen = grid(F_train, j, schema.features[j].is_category)
        values[j] = seen[rules.allowed(j, x[j], seen) & (np.abs(seen - x[j]) > 1e-9)]
    found: set[frozenset[int]] = set()
    for changed in [(j,) for j in mutable] + list(combinations(mutable, 2)):
        mesh = np.meshgrid(*(values[j] for j in changed), indexing="ij")
        rows = np.repeat(x[None], mesh[0].size, axis=0)
        for j, column in zip(changed, mesh, strict=True):
            rows[:, j] = column.ravel()
        Z = problem.encoder.from_features(rows)
        if len(rows) and (problem.confidence(Z) > 0.5).any():
            found.add(frozenset(changed))
    return found


def by_masks_alone(method: Any, F: Array, request: RuleBook) -> np.ndarray:
    """(N,) whether h accepts one of 64 draws of which the locked choices were masked."""
    density = method.density_
    values = density.bins.value.numpy()
    mask = np.ones((len(F), len(density.decoded), density.bins.n_choices), dtype=bool)
    for i, j in enumerate(density.decoded.tolist()):
        mask[:, i, :-1] = request.allowed(j, F[:, j][:, None], values[i][None, :])
    draws = sample(
        density,
        F,
        64,
        temperature=method.temperature_,
        noise=KeyedNoise(0),
        also_allowed=mask,
    )
    Z_plus = method.problem_.encoder.from_features(draws.F.reshape(-1, F.shape[1]))
    return np.asarray((method.problem_.confidence(Z_plus).reshape(len(F), 64) > 0.5).any(axis=1))


def measure(method: Any, X_train: Any, people: Any) -> dict[str, Any]:
    F_train, F = method.problem_.encoder.features(X_train), method.problem_.encoder.features(people)
    open_by = [ways_to_plan(method, F_train, x) for x in F]
    names = [f.name for f in method.schema_ if f.role == "mutable"]
    place = {name: j for j, name in enumerate(method.schema_.names)}
    lines = []
    for locks in [(), *((n,) for n in names), *combinations(names, 2)]:
        closed = {place[name] for name in locks}
        has = np.array([any(not (way & closed) for way in ways) for ways in open_by])
        stated = Rules(lock=locks)
        started = time.process_time()
        with rejections_expected():
            X_plus = method.recourse(people, rules=stated)
        seconds = time.process_time() - started
        gets = (method.assess(people, X_plus, stated)["status"] == "ok").to_numpy()
        plans = method.plans(people, rules=stated)
        shown = np.array([plan.status == "ok" for plan in plans])
        request = request_book(stated, method.problem_.rules, people)
        masked = by_masks_alone(method, F, request)
        lines.append(
            {
                "locks": list(locks),
                "people": len(people),
                "have_a_plan": int(has.sum()),
                "get_one": int((gets & has).sum()),
                "get_one_from_plans": int((shown & has).sum()),
                "get_one_beyond_two_changes": int((gets & ~has).sum()),
                "by_masks_alone": int((masked & has).sum()),
                "milliseconds_a_person": round(1000 * seconds / len(people), 1),
            }
        )
        print(json.dumps(lines[-1]), flush=True)
    locked = lines[1:]
    total = sum(line["have_a_plan"] for line in locked)
    found: dict[str, Any] = {}
    for way in ("get_one", "get_one_from_plans", "by_masks_alone"):
        shares = [line[way] / line["have_a_plan"] for line in locked if line["have_a_plan"]]
        every = sum(line[way] for line in locked) / total
        found[way] = {"share": round(every, 4), "least": round(min(shares), 4)}
    return found | {"lines": lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", default="compas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--folder", type=Path, help="for the fitted model")
    options = parser.parse_args()
    case = make_case(options.dataset, options.seed, rows=options.people, nested=True)
    found = measure(fitted(case, options.folder), case.X, case.people)
    found = {"dataset": options.dataset, "seed": options.seed, **found}
    print({k: v for k, v in found.items() if k != "lines"})
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
