"""What a model folder holds, and how each feature may change, as short texts to show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genrecourse.errors import counted
from genrecourse.rules.kinds import Rules, how_it_may_change

if TYPE_CHECKING:
    from genrecourse.rules.policy import Policy
    from genrecourse.table.schema import Schema


@dataclass(frozen=True)
class FeatureSummary:
    """One feature: what it is, and how it may change.

    >>> FeatureSummary("age", "number", "no").may_change
    'no'
    """

    name: str
    kind: str
    may_change: str


@dataclass(frozen=True)
class RulesSummary:
    """Every feature, and the rules on a plan as a whole.

    >>> RulesSummary((FeatureSummary("age", "number", "no"),), ("at most 2 changes",)).rules
    ('at most 2 changes',)
    """

    features: tuple[FeatureSummary, ...]
    rules: tuple[str, ...]


@dataclass(frozen=True)
class ModelSummary:
    """A fitted method. facts: what to show, by its name, in order.

    >>> ModelSummary({"method": "GenRe"}, RulesSummary((), ())).facts["method"]
    'GenRe'
    """

    facts: dict[str, str]
    rules: RulesSummary


def summarise_rules(schema: Schema, policy: Policy | None = None) -> RulesSummary:
    """Return how each feature may change under the schema and the policy's rules.

    >>> import pandas as pd
    >>> from genrecourse import Policy, Schema
    >>> schema = Schema.infer(pd.DataFrame({"age": [20, 40]}), immutable=("age",))
    >>> summary = summarise_rules(schema, Policy.of(rules={"max_changes": 2}))
    >>> summary.features[0].may_change, summary.rules
    ('no', ('at most 2 changes',))
    """
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
    if rules.max_months is not None:
        whole.append(f"at most {rules.max_months:g} months")
    if rules.max_money is not None:
        whole.append(f"a price of at most {rules.max_money:,.10g}")
    return RulesSummary(tuple(features), (*whole, *rules.relations, *schema.relations))


def summarise_training(training: Mapping[str, Any]) -> str:
    """Return how long a net was trained, and its held-out loss.

    >>> summarise_training({"steps": 400, "best_loss": 1.25})
    '400 steps, held-out loss 1.250'
    """
    return f"{training['steps']} steps, held-out loss {training['best_loss']:.3f}"
