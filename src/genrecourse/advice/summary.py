"""What a model folder holds, and how each feature may change, as short texts to show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genrecourse.errors import counted
from genrecourse.rules.kinds import Rules

if TYPE_CHECKING:
    from genrecourse.rules.policy import Policy
    from genrecourse.table.schema import Feature, Schema


@dataclass(frozen=True)
class FeatureSummary:
    """One feature: what it is, and how it may change."""

    name: str
    kind: str
    may_change: str


@dataclass(frozen=True)
class RulesSummary:
    """Every feature, and the rules on a plan as a whole."""

    features: tuple[FeatureSummary, ...]
    rules: tuple[str, ...]


@dataclass(frozen=True)
class ModelSummary:
    """A fitted method. facts: what to show, by its name, in order."""

    facts: dict[str, str]
    rules: RulesSummary


def summarise_rules(schema: Schema, policy: Policy | None = None) -> RulesSummary:
    """Returns how each feature may change under the schema and the policy's rules."""
    rules = Rules() if policy is None else policy.stated.rules
    features = [
        FeatureSummary(
            feature.name,
            f"{len(feature.categories)} categories" if feature.is_category else "number",
            how_it_may_change(feature, rules),
        )
        for feature in schema
    ]
    whole = []
    if rules.max_changes is not None:
        whole.append(f"at most {counted(rules.max_changes, 'change')}")
    if rules.max_cost is not None:
        whole.append(f"a cost of at most {rules.max_cost:g}")
    return RulesSummary(tuple(features), (*whole, *rules.relations))


def how_it_may_change(feature: Feature, rules: Rules) -> str:
    """Returns how one feature may change, such as "increase, by at most 500" or "no"."""
    if feature.role == "derived":
        return f"follows: {feature.formula}"
    if feature.role == "advances":
        return f"with time: by {feature.horizon:g}"
    if feature.role != "mutable":
        return "no" if feature.role == "immutable" else f"no ({feature.role})"
    if feature.name in rules.lock:
        return "no (locked)"
    ways = [str(feature.direction)] if feature.direction != "any" else []
    ways += [way for way in ("increase", "decrease") if feature.name in getattr(rules, way)]
    for ends in (feature.range, rules.ranges.get(feature.name)):
        if ends is not None:
            low, high = ("..." if end is None else f"{end:,.9g}" for end in ends)
            ways.append(f"from {low} to {high}")
    for step in (feature.max_step, rules.max_step.get(feature.name)):
        ways += [] if step is None else [f"by at most {step:,.9g}"]
    if feature.name in rules.allowed:
        ways.append("to " + " or ".join(str(level) for level in rules.allowed[feature.name]))
    return ", ".join(dict.fromkeys(ways)) or "freely"


def summarise_training(training: Mapping[str, Any]) -> str:
    """Returns how long a net was trained, and its held-out loss."""
    return f"{training['steps']} steps, held-out loss {training['best_loss']:.3f}"
