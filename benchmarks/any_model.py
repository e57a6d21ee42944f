"""Recourse around models of many kinds: does it work, how long does it take, how often is h asked?

    python -m benchmarks.any_model          # runs, and writes docs/any_model.md's table
    python -m benchmarks.any_model --show   # only writes the table again

German credit, 750 training rows; the first rejected test rows in the order of the table. Results
go to benchmarks/results/any_model.json.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks.models import KINDS, REMOTE, Brought, endpoint, pipeline
from genrecourse import METHODS, Classifier, Schema, load_dataset

RESULTS = Path(__file__).parent / "results" / "any_model.json"
PAGE = Path(__file__).parents[1] / "docs" / "any_model.md"
PEOPLE = 50


class Counting(Classifier):
    """A Classifier that counts how often its model is asked, and about how many rows."""

    def __init__(self, model: Any, **options: Any):
        super().__init__(model, **options)
        self.counts = {"calls": 0, "rows": 0}  # shared with the copy that a fit makes
        if isinstance(model, torch.nn.Module):  # it reads Z, also without this object
            model.register_forward_hook(lambda module, args, scores: self._count(len(scores)))

    def score(self, X: pd.DataFrame) -> np.ndarray:
        if not isinstance(self.model, torch.nn.Module):
            self._count(len(X))
        return super().score(X)

    def _count(self, n: int) -> None:
        self.counts["calls"] += n > 0
        self.counts["rows"] += n

    def taken(self) -> dict[str, int]:
        """Return the counts, and begin again."""
        found = {name: int(n) for name, n in self.counts.items()}
        self.counts |= {"calls": 0, "rows": 0}
        return found


def measured(brought: Brought, schema: Schema, X_test: pd.DataFrame, method: str) -> dict[str, Any]:
    """Fit a method around a model, make plans for the people it rejects, and count."""
    y = brought.y
    h = Counting(brought.model, **brought.options)
    test = X_test.astype(brought.X.dtypes.to_dict())
    people = test[~h.accepts(test)].head(PEOPLE)
    h.taken()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        fitted = METHODS[method](h, schema).fit(brought.X, y)
        seconds = {"fit": time.process_time() - started}
        asked = {"fit": h.taken()}
        started = time.process_time()
        plans = fitted.plans(people)
        seconds["plans"] = time.process_time() - started
        asked["plans"] = h.taken()
    ok = [plan for plan in plans if plan.status == "ok"]
    accepted = int(h.accepts(plans.x_plus()).sum()) if ok else 0
    return {
        "people": len(people),
        "with_plan": len(ok),
        "fragile": sum(plan.is_fragile for plan in ok),
        "accepted": accepted,
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
        "asked": asked,
    }


def run(kinds: Collection[str], method: str = "genre") -> dict[str, Any]:
    """Return the results of some kinds of models, by their names."""
    data, found = load_dataset("german"), dict[str, Any]()
    y = data.y_train.to_numpy()
    for name in (name for name in KINDS if name in kinds):
        make = KINDS[name]
        brought = make(data.X_train, y, data.schema)
        brought = Brought(
            brought.model, brought.options, brought.X, y if brought.y is None else brought.y
        )
        found[name] = measured(brought, data.schema, data.X_test, method)
        print(name, found[name], flush=True)
    if REMOTE not in kinds:
        return found
    with endpoint(pipeline(data.X_train, y, data.schema).model) as (ask, seen):
        found[REMOTE] = measured(
            Brought(ask, {}, data.X_train, y), data.schema, data.X_test, method
        )
        found[REMOTE]["requests"] = {"number": len(seen), "most_rows": max(seen)}
        print(REMOTE, found[REMOTE], flush=True)
    return found


def table(results: dict[str, Any]) -> str:
    """Return the table in Markdown."""
    heads = ["model", "fit, CPU s", "plans, CPU s", "people with a plan", "of these fragile"]
    heads += ["plans that h accepts", "h asked in fit", "h asked for plans"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for name, each in results["models"].items():
        asked = [f"{a['rows']:,} rows in {a['calls']:,} calls" for a in each["asked"].values()]
        cells = [
            name,
            *(f"{value:.1f}" for value in each["seconds"].values()),
            f"{each['with_plan']} of {each['people']}",
            str(each["fragile"]),
            f"{each['accepted']} of {each['with_plan']}",
            *asked,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    sent = results["models"][REMOTE]["requests"]
    note = (
        f"The endpoint got {sent['number']:,} requests in all, with at most {sent['most_rows']} "
        "rows each; these include the choice of the people and the last check."
    )
    return "\n".join([*lines, "", note])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--show", action="store_true", help="only write the table again")
    parser.add_argument("--only", help="run this kind alone, and keep the other results")
    given = parser.parse_args()
    if not given.show:
        known = json.loads(RESULTS.read_text(encoding="utf-8"))["models"] if given.only else {}
        found = known | run([given.only] if given.only else [*KINDS, REMOTE])
        RESULTS.write_text(json.dumps({"models": found}, indent=1) + "\n", encoding="utf-8")
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    start, end = (
        "<!-- any_model: written by `python -m benchmarks.any_model` -->",
        "<!-- /any_model -->",
    )
    before, rest = page.split(start)
    after = rest.split(end)[1]
    PAGE.write_text(f"{before}{start}\n\n{table(results)}\n\n{end}{after}", encoding="utf-8")
    print(table(results))


if __name__ == "__main__":
    main()
