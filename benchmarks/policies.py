"""What does a policy cost? Scores under each example policy beside the paper's lenient setting.

    python -m benchmarks.policies --datasets german,adult-carla,compas,heloc --rows 200 --seeds 36

For each data set and seed one case of the protocol (its judge, its h), and two GenRe around the
same h: one with the data set's schema, where everything but race and sex may change, and one with
the policy's, asked under the policy's rules. Both are measured by the same judge. Cost is by the
schema that each was given, so under a policy it holds the policy's weights.

`plan`: the share of people whose recourse h accepts and that breaks no rule of the policy, in both
rows: of the lenient setting it tells how much of its advice the policy would let pass. `proven`:
the share for whom `plans` shows one, which also tries all changes of one and two features.

Lines go to benchmarks/results/policies.json. `--nested`: training rows alone, for development.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.model_cache import fitted
from genrecourse import GenRe, Policy, UserError
from genrecourse.errors import rejections_expected
from genrecourse.evaluation.evaluate import Case, make_case, measure, summarise, with_schema
from genrecourse.rules.book import RuleBook
from genrecourse.rules.requests import request_book
from genrecourse.table.encoding import unchanged

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "policies.json"
POLICIES = {"german": "german", "adult": "adult", "adult-carla": "adult", "compas": "compas"}
POLICIES["heloc"] = "heloc"
SHOWN = ("score", "val", "lof", "cost", "h_valid", "changes")


def run(
    case: Case,
    policy: Policy,
    strict: Case,
    request: dict[str, Any],
    asked: argparse.Namespace,
) -> Any:
    """One line: GenRe on a case, judged; `strict` is the case whose rules decide who has a plan."""
    started = time.perf_counter()
    params = GenRe._test_params() if asked.quick else {}
    # kept is what has the data set's own schema
    method = fitted(case, None if case is strict else asked.folder, **params)
    with rejections_expected():
        X_plus = method.recourse(case.people, **request)
    line: dict[str, Any] = summarise(measure(case, X_plus))
    kept = allowed(strict, policy, X_plus)
    line["plan"] = float((kept & case.h.accepts(X_plus)).mean())
    plans = method.plans(case.people, **request)
    line["proven"] = float(np.mean([plan.status == "ok" for plan in plans]))
    return line | {"seconds": round(time.perf_counter() - started, 1)}


def allowed(strict: Case, policy: Policy, X_plus: Any) -> np.ndarray:
    """Whose x_plus keeps every rule of the policy. Time may stand still in it: the lenient setting
    knows none."""
    encoder = strict.encoder
    rules = request_book(
        policy.stated.rules, RuleBook.of_schema(encoder), strict.people[strict.schema.names]
    )
    F, F_plus = encoder.features(strict.people), encoder.features(X_plus)
    settled = rules.with_derived(F, F_plus)
    in_place = unchanged(F, F_plus) | unchanged(settled, F_plus) | ~rules.derived.mask
    return np.asarray(rules.feasible(F, settled) & in_place.all(axis=1))


def compared(name: str, seed: int, asked: argparse.Namespace) -> list[dict[str, Any]]:
    policy = Policy.read(HERE.parent / "policies" / f"{POLICIES[name]}.toml")
    case = make_case(name, seed, rows=asked.rows, nested=asked.nested)
    strict = with_schema(case, policy.schema(case.X, base=case.schema))
    lines = []
    for setting, each, request in (("lenient", case, {}), ("policy", strict, policy.request)):
        head = {"dataset": name, "seed": seed, "people": len(case.people), "setting": setting}
        try:
            lines.append(head | run(each, policy, strict, request, asked))
        except UserError as error:  # a policy may leave nobody to learn from: that is a result
            lines.append(head | {"failed": str(error)})
        print(told(lines[-1]), flush=True)
    return lines


def told(line: dict[str, Any]) -> str:
    head = f"{line['dataset']:12} seed {line['seed']} {line['setting']:8}"
    if "failed" in line:
        return f"{head} {line['failed']}"
    numbers = {name: line[name] for name in (*SHOWN, "plan", "proven")}
    return head + "  ".join(f"{name} {value:.3f}" for name, value in numbers.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", default="german,adult-carla,compas,heloc")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--seeds", default="36", help="with commas")
    parser.add_argument("--folder", type=Path, help="models that benchmarks/plans.py has kept")
    parser.add_argument("--nested", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a net that has learned nothing")
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    lines = [
        line
        for name in asked.datasets.split(",")
        for seed in map(int, asked.seeds.split(","))
        for line in compared(name, seed, asked)
    ]
    asked.output.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
