"""Does everybody get plans, do they hold, and what do they cost in time?

    OMP_NUM_THREADS=1 python -m benchmarks.plans --datasets german,compas --rows 50
    OMP_NUM_THREADS=1 python -m benchmarks.plans --folder /somewhere   # all; goes on if stopped

For each data set one case of the protocol and GenRe as it is by default; five plans are asked for
every rejected test row, without rules and with rules drawn at random for each person (of every kind
that a request may state: tests/support/random_rules.py). Whatever is shown is scored by the case's
own h in original units and held against all rules by code that shares nothing with the library's
(tests/support/plan_tally.py). Rules that a person cannot meet are refused by name: these people are
counted and get other rules.

A line for each data set and setting goes to benchmarks/results/plans.jsonl, in place of an earlier
one; `python -m scripts.write_results` writes docs/plans.md from it. Seconds are of one thread, by
the clock, without fitting. `--folder` keeps fitted models and finished parts: a run resumes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks.model_cache import fitted, place
from genrecourse.evaluation.evaluate import Case, make_case
from genrecourse.methods.base import Method
from tests.support.plan_tally import Tally
from tests.support.random_rules import Asked, answered, asked_at_random
from tests.support.rules_by_hand import ByHand

RESULTS = Path(__file__).parent / "results" / "plans.jsonl"
DATASETS = ("adult-carla", "compas", "heloc", "german")
SETTINGS = ("none", "random")  # rules at request time
N = 5  # plans asked for
PART = 100  # people whose plans are made at once


# ---- some people ---------------------------------------------------------------------------------


def part(case: Case, method: Method, people: pd.DataFrame, setting: str, first: int) -> Tally:
    """The plans of some people, looked at; first: how many came before them."""
    tally, hand = Tally(), ByHand.of(case.schema, case.X)
    rng = np.random.default_rng([case.seed, first])
    own: dict[Any, Asked] = {}
    if setting == "random":
        own = {label: asked_at_random(rng, case.schema, case.X) for label in people.index}
        tally.counts["ruled people"] = sum(bool(asked.stated()) for asked in own.values())

    def ask(rules: Any) -> Any:
        started = time.perf_counter()  # of what is not refused
        plans = method.plans(people, n=N, rules=rules if own else None)
        tally.counts["milliseconds"] = round(1000 * (time.perf_counter() - started))
        return plans

    def seen(label: Any, asked: Asked, rule: str) -> None:
        tally.refusal(hand, case.X, people.loc[[label]], asked, rule)

    plans = answered(ask, own, lambda _: asked_at_random(rng, case.schema, case.X), seen)
    tally.look(plans, people, case.h.score, hand, own, N)
    return tally


def looked_at(case: Case, method: Method, setting: str, folder: Path | None) -> Tally:
    """All people of a case, in parts; those that a folder holds are not made again."""
    total = Tally()
    for first in range(0, len(case.people), PART):
        people = case.people.iloc[first : first + PART]
        kept = folder and folder / f"{setting}-{first}-{len(people)}.json"
        if kept and kept.exists():
            found = Tally(**json.loads(kept.read_text(encoding="utf-8")))
        else:
            found = part(case, method, people, setting, first)
            if kept:
                kept.write_text(json.dumps(vars(found)), encoding="utf-8")
        total.add(found)
        told = (case.name, setting, f"{first + len(people)} of {len(case.people)} people")
        print(*told, f"{total.counts['plans']} plans", f"wrong: {dict(total.wrong)}", flush=True)
    return total


# ---- a data set ----------------------------------------------------------------------------------


def line(case: Case, rejected: int, setting: str, tally: Tally) -> dict[str, Any]:
    count = tally.counts
    numbers = [int(k) for k, n in tally.n_plans.items() for _ in range(n)]
    broken = {k: n for k, n in tally.wrong.items() if k.startswith(("schema", "request"))}
    others = {k: n for k, n in tally.wrong.items() if k not in broken and k != "h"}
    return {
        "dataset": case.name,
        "seed": case.seed,
        "rules": setting,
        "rejected": rejected,
        "people": count["people"],
        "with_a_plan": count["ok"],
        "plans": count["plans"],
        "accepted_by_h": count["plans"] - tally.wrong["h"],
        "rules_broken": sum(broken.values()),
        "wrong_otherwise": others,
        "median_distinct": float(np.median(numbers)),
        "people_with_n_plans": dict(sorted(tally.n_plans.items())),
        "changes_a_plan": round(count["changes"] / max(1, count["plans"]), 3),
        "seconds_a_person": round(count["milliseconds"] / 1000 / count["people"], 4),
        "threads": torch.get_num_threads(),
        "no_plan": dict(sorted(tally.reasons.items())),
        "proven": count["proven"],
        "searched": count["searched"],
        "ruled_people": count["ruled people"],
        "refused": count["refused"],
        "plans_under": {k: n for k, n in sorted(tally.bound.items()) if n},
        "examples": tally.examples,
    }


def keep(found: dict[str, Any]) -> None:
    """The line of this data set, seed and setting, in place of an earlier one."""
    lines = []
    if RESULTS.exists():
        lines = [json.loads(text) for text in RESULTS.read_text(encoding="utf-8").splitlines()]
    key = ("dataset", "seed", "rules")
    lines = [each for each in lines if any(each[k] != found[k] for k in key)] + [found]
    order = {name: k for k, name in enumerate((*DATASETS, *SETTINGS))}
    lines.sort(
        key=lambda each: (order.get(each["dataset"], -1), each["seed"], order[each["rules"]])
    )
    RESULTS.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--seed", type=int, default=36)
    parser.add_argument("--rows", type=int, help="people, instead of every rejected test row")
    parser.add_argument("--folder", type=Path, help="for fitted models and finished parts")
    options = parser.parse_args()
    torch.set_num_threads(1)
    wrong: Counter[str] = Counter()
    for name in options.datasets.split(","):
        whole = make_case(name, options.seed, rows=None)
        case = replace(whole, people=whole.people.iloc[: options.rows])
        folder = options.folder and place(options.folder, case)
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
        method = fitted(case, options.folder)
        for setting in SETTINGS:
            tally = looked_at(case, method, setting, folder)
            keep(line(case, len(whole.people), setting, tally))
            wrong.update(tally.wrong)
    if wrong:
        sys.exit(f"not everything that was shown holds: {dict(wrong)}")


if __name__ == "__main__":
    main()
