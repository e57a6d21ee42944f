"""Tables for docs/ from the results on plans in benchmarks/results/."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from genrecourse.evaluation.comparison.intervals import over_seeds
from paper.tables import interval, markdown

RESULTS = Path(__file__).parent / "results"


def plans() -> str:
    """Return who gets plans and their quality, then why the others get none."""
    lines = _lines("plans.jsonl")
    head = ["", "rules", "people", "with a plan", "plans", "accepted by h", "rules broken"]
    head += ["plans a person, of 5", "changes a plan", "ms a person"]
    rows, none = [], []
    for line in lines:
        who = [line["dataset"], line["rules"]]
        people, ok = line["people"], line["with_a_plan"]
        of = "" if people == line["rejected"] else f" of {line['rejected']:,}"
        accepted = line["accepted_by_h"] / max(1, line["plans"])
        numbers = [f"{people:,}{of}", _percent(ok / people), f"{line['plans']:,}"]
        numbers += [_percent(accepted), f"{line['rules_broken']:,}"]
        numbers += [f"{line['median_distinct']:g}", f"{line['changes_a_plan']:.2f}"]
        rows.append([*who, *numbers, f"{1000 * line['seconds_a_person']:.0f}"])
        why = ", ".join(f"`{code}` {n:,}" for code, n in line["no_plan"].items())
        counts = [f"{people - ok:,}", f"{line['proven']:,}", f"{line['searched']:,}"]
        none.append([*who, why or "-", *counts])
    reasons = ["", "rules", "reason", "without a plan", "proven for the values tried", "searched"]
    return f"{markdown(head, rows, left=2)}\n\n{markdown(reasons, none, left=3)}"


def advice() -> str:
    """Return what first plans ask for, before and now, and what asking the model costs."""
    head = ["", "", "people", "with a plan", "removable change", "change for safety", "dominated"]
    head += ["superset", "6 of 8 copies", "others who could", "called fragile"]
    head += ["fragile, not called so", "fresh copies accept", "changes", "most"]
    costs = ["", "", "plans accepted", "fixed features changed"]
    costs += [f"{what}, {how}" for how in ("alone", "together") for what in ("calls", "rows", "ms")]
    quality, asked = [], []
    for line in json.loads((RESULTS / "advice.json").read_text(encoding="utf-8")):
        for version in ("before", "now"):
            found = line[version]
            names = ("people", "with_plan", "removable", "for_safety", "dominated", "supersets")
            names += ("sturdy", "could_be_sturdy", "said_to_be_fragile", "fragile_in_secret")
            names += ("fresh", "changes_median", "changes_most")
            who = [line["pair"] if version == "before" else "", version]
            cells = [found.get(name) for name in names]
            quality.append([*who, *("" if each is None else f"{each:.3g}" for each in cells)])
            numbers = [f"{found['accepted']:,} of {found['shown']:,}"]
            numbers.append(f"{found['fixed_features_changed']}")
            for how in ("alone", "together"):
                each = [found.get(f"{name}_{how}") for name in ("calls", "rows", "ms")]
                numbers += ["" if n is None else f"{n:,.3g}" for n in each]
            asked.append([*who, *numbers])
    return f"{markdown(head, quality, left=2)}\n\n{markdown(costs, asked, left=2)}"


def promises() -> str:
    """Return how many people each promise serves, and in how many seeds it is broken.

    A promise is kept or broken by the plans of one fitted model, so seeds are counted.
    """
    lines = [line for line in _lines("promise.jsonl") if not (line["nested"] or line["tiny"])]
    head = ["", "promise", "broken, of seeds with a promise", "delta", "people"]
    head += ["get a plan (least of the seeds)", "of these the gold classifier accepts", "rests on"]
    rows = [
        [
            "all tables",
            f"{share:g}",
            *broken([x for x in lines if x["promise"] == share]),
            *[""] * 4,
        ]
        for share in dict.fromkeys(x["promise"] for x in lines if x["promise"] is not None)
    ]
    for key in dict.fromkeys((line["dataset"], line["promise"]) for line in lines):
        own = [line for line in lines if (line["dataset"], line["promise"]) == key]
        served = [line["served"] for line in own]
        accepted = [line["accepted"] for line in own if line["accepted"] is not None]
        people = sum(line["n"] for line in own)
        bases = Counter(line["basis"] or "none" for line in own if key[1] is not None)
        said = over_seeds(accepted, people, people)
        rows.append(
            [
                key[0],
                "none" if key[1] is None else f"{key[1]:g}",
                *broken(own),
                f"{people:,} in {len(own)} seeds",
                f"{np.mean(served):.3f} ({min(served):.3f})",
                f"{said.mean:.3f}{interval(said)}",
                ", ".join(f"{name} {n}" for name, n in sorted(bases.items())) or "-",
            ]
        )
    return markdown(head, rows, left=2)


def broken(lines: list[dict[str, Any]]) -> list[str]:
    """Return in how many seeds a promise is broken, of those that make it, and its delta.

    >>> seeds = [{"promise": 0.9, "delta": 0.1, "accepted": x} for x in (0.89, 0.9, None)]
    >>> broken(seeds), broken([{"promise": None, "accepted": 0.4}])
    (['1 of 2', '0.1'], ['-', '-'])
    """
    made = [x for x in lines if x["promise"] is not None and x["accepted"] is not None]
    if not made:
        return ["-", "-"]
    n = sum(line["accepted"] < line["promise"] for line in made)
    return [f"{n} of {len(made)}", ", ".join(f"{x:g}" for x in sorted({y["delta"] for y in made}))]


def policies() -> str:
    """Return the Scores under each policy and under the lenient setting."""
    head = ["", "setting", "people", "Score", "val", "LOF", "cost", "changes"]
    head += ["recourse keeps the policy", "`plans` shows one"]
    rows = []
    for line in json.loads((RESULTS / "policies.json").read_text(encoding="utf-8")):
        names = ("score", "val", "lof", "cost", "changes")
        who = [line["dataset"], line["setting"], f"{line['people']:,}"]
        shares = [_percent(line[name]) for name in ("plan", "proven")]
        rows.append([*who, *(f"{line[name]:.3f}" for name in names), *shares])
    return markdown(head, rows, left=2)


def rules() -> str:
    """Return who gets a plan under locks, and the time that a rule costs."""
    locks = json.loads((RESULTS / "locks.json").read_text(encoding="utf-8"))
    cost = json.loads((RESULTS / "rules.json").read_text(encoding="utf-8"))
    locked = locks["lines"][1:]
    have = sum(line["have_a_plan"] for line in locked)
    names = list(cost["plans"]["ratios"])
    ratios = "; ".join(
        f"of `{verb}` " + ", ".join(f"`{name}` {cost[verb]['ratios'][name]:.2f}" for name in names)
        for verb in ("recourse", "plans")
    )
    own, plans, masks = (
        f"{_percent(locks[way]['share'])} (at the hardest lock {_percent(locks[way]['least'])})"
        for way in ("get_one", "get_one_from_plans", "by_masks_alone")
    )
    return (
        f"- For {locks['lines'][0]['people']} people of nested {locks['dataset']} (seed "
        f"{locks['seed']}), every single and double lock of actionable features was requested, "
        f"{len(locked)} locks in all. A search over all changes of one and of two "
        f"unlocked features finds a plan for {have:,} pairs of a person and a lock. `plans` shows "
        f"a plan for {plans} of these pairs. `recourse`, which only uses the density and retrieved "
        f"rows, finds one for {own}, and masks alone for {masks} (`python -m benchmarks.locks`).\n"
        f"- The time with one rule divided by the time without ({cost['dataset']}, "
        f"{cost['people']} people, one run of `python -m benchmarks.bench_rules`): {ratios}."
    )


def _percent(share: float) -> str:
    """Return a percentage; "100%" only if the share is exactly 1."""
    return "100%" if share == 1 else f"{min(100 * share, 99.99):.2f}%"


def _lines(name: str) -> list[dict[str, Any]]:
    text = (RESULTS / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
