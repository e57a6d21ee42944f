"""What a rule at request time costs: recourse and plans with it, over without, in one run.

    python -m benchmarks.bench_rules

A small GenRe on embedded data; every ratio is of CPU seconds in the same process, the least of
three turns each. They go to benchmarks/results/rules.json. The promise is a ratio below three.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from genrecourse import GenRe
from genrecourse.data.datasets import load_dataset
from genrecourse.methods.genre import Training

RESULTS = Path(__file__).parent / "results" / "rules.json"


def rules_for(schema: Any, X: Any) -> dict[str, dict[str, Any]]:
    """One of each kind, on the table's own first features."""
    mutable = [f for f in schema if f.role == "mutable"]
    numbers = [f.name for f in mutable if not f.is_category]
    levels = next(f for f in mutable if f.is_category)
    a, b = numbers[:2]
    return {
        "lock": {"lock": [a]},
        "range": {"ranges": {a: [float(X[a].quantile(0.1)), float(X[a].quantile(0.9))]}},
        "increase": {"increase": [a]},
        "max_changes": {"max_changes": 2},
        "max_cost": {"max_cost": 1.0},
        "relation": {
            "relations": [
                f"if '{a}' > {X[a].median()} then '{levels.name}' = "
                f"'{levels.categories[0]}' or '{b}' > {X[b].median()}"
            ]
        },
    }


def seconds(verb: Any, people: Any, **request: Any) -> float:
    """Of CPU, the least of three: others may be at work on this machine."""
    took = []
    for _ in range(3):
        started = time.process_time()
        verb(people, **request)
        took.append(time.process_time() - started)
    return min(took)


def measured(verb: Any, people: Any, rules: dict[str, Any]) -> dict[str, Any]:
    plain = seconds(verb, people)
    ratios = {
        name: round(seconds(verb, people, rules=rule) / plain, 2) for name, rule in rules.items()
    }
    return {"milliseconds_a_person_without": round(1000 * plain / len(people), 1), "ratios": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", default="german")
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    data = load_dataset(options.dataset)
    y = data.y_train.to_numpy()
    method = GenRe(
        schema=data.schema, gamma=0.6, temperature=1.0, training=Training(steps=options.steps)
    ).fit(data.X_train, y)
    people = data.X_test[~method.classifier_.accepts(data.X_test)].head(options.people)
    rules = rules_for(data.schema, data.X_train)
    found = {
        "dataset": options.dataset,
        "people": len(people),
        "recourse": measured(method.recourse, people, rules),
        "plans": measured(method.plans, people, rules),
    }
    print(json.dumps(found))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
