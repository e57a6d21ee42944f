"""Makes the plan that README.md shows, and writes README.md.

python -m scripts.write_readme_plan   # fits GenRe on German credit: about two minutes

GenRe is fitted on the training rows of German credit under policies/german.toml, with random_state
0. The plan goes to benchmarks/results/readme_plan.json; README.md shows the plan of that file.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import genrecourse
from genrecourse import METHODS, Policy, load_dataset
from genrecourse.planning.plans import Plan
from scripts import write_results

POLICY = "policies/german.toml"


def make_plan() -> dict[str, Any]:
    """Return the chosen plan in words, and how many people it was chosen from.

    The method is saved and loaded, because a loaded method applies the policy by itself.
    """
    data, policy = load_dataset("german"), Policy.read(write_results.ROOT / POLICY)
    y = data.y_train.map({1: data.favourable, 0: "bad"})
    method = METHODS["genre"](policy.classifier(), policy.schema(data.X_train), random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        method.fit(data.X_train, y).save(Path(folder) / "model", policy)
        loaded = genrecourse.load(Path(folder) / "model")
    rejected = data.X_test[~loaded.classifier_.accepts(data.X_test)]
    plans = loaded.plans(rejected)
    chosen = most_robust(plans)
    return {
        "command": "python -m scripts.write_readme_plan",
        "policy": POLICY,
        "rejected": len(plans),
        "with_a_plan": sum(plan.status == "ok" for plan in plans),
        "fragile": sum(plan.is_fragile for plan in plans),
        "person": int(chosen.person),
        "text": chosen.to_text(),
    }


def most_robust(plans: Sequence[Plan]) -> Plan:
    """Return the plan that the most retrained stand-ins accept; the first of equals."""
    shown = [plan for plan in plans if plan.status == "ok"]
    return max(shown, key=lambda plan: plan.retrained.estimate if plan.retrained else 0.0)


def main() -> None:
    text = json.dumps(make_plan(), indent=1, ensure_ascii=False)
    write_results.PLAN.write_text(text + "\n", encoding="utf-8")
    write_results.write()


if __name__ == "__main__":
    main()
