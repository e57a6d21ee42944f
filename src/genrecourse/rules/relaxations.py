"""Each rule by itself, and all the others: which single rule stands in the way?

Where rules keep a person from every plan, they can be told which one does, and whoever wrote the
rules can see what each of them costs. A relaxed rule is never in force: what it would open is said
about the rule and is no plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from genrecourse.rules.constraints import RuleBook, Rules
from genrecourse.rules.requests import CompiledRules, Constraints, RequestRules
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.schema import Feature


@dataclass(frozen=True)
class RelaxedRule:
    """One rule, and the rules without it."""

    kind: str  # "immutable", "direction", "range", "step"; of a request also "lock", "allowed", ...
    feature: Feature | None  # that the rule is about, with the rule as one of its fields
    rules: RuleBook  # without it
    value: Any = None  # of a rule that no field of a feature can hold
    binds: np.ndarray | None = None  # (n,) booleans: whom; None: everybody


def relaxed_schema(rules: Rules, encoder: TableEncoder) -> list[RelaxedRule]:
    """Each rule of the schema."""
    found = []
    for feature in encoder.schema:
        free: dict[str, dict[str, Any]] = {}
        if feature.role == "immutable":
            free["immutable"] = {"role": "mutable"}
        elif feature.role in ("mutable", "derived"):  # time and what is protected keep no rule
            if feature.direction != "any":
                free["direction"] = {"direction": "any"}
            if feature.max_step is not None:
                free["step"] = {"max_step": None}
            if feature.range is not None:
                free["range"] = {"range": None}
        for kind, fields in free.items():
            schema = encoder.schema.with_feature(feature.name, **fields)
            without = Rules(TableEncoder.from_blocks(schema, encoder.blocks))
            found.append(RelaxedRule(kind, feature, without))
    return found


def relaxed_request(request: RequestRules) -> list[RelaxedRule]:
    """Each rule of the request, for those who have it, and then each rule of the schema."""
    encoder, found = request.encoder, []
    stated = [_rules(one.own) for one in request.stated]
    for rule in dict.fromkeys(rule for rules in stated for rule in rules):
        those = [i for i, rules in enumerate(stated) if rule in rules]
        without = list(request.stated)
        for i in those:
            without[i] = CompiledRules.of(_without(without[i].own, rule), encoder)
        relaxed = _told(rule, encoder, replace(request, stated=tuple(without)))
        found.append(replace(relaxed, binds=np.isin(request.kind, those)))
    for relaxed in relaxed_schema(request.rules, encoder):
        assert isinstance(relaxed.rules, Rules)
        found.append(replace(relaxed, rules=replace(request, rules=relaxed.rules)))
    return found


# ---- one rule of a request ------------------------------------------------------------------

Rule = tuple[str, str, Any]  # the field of `Constraints`, the feature (or the relation), its value
LISTS = ("lock", "increase", "decrease", "relations")
TABLES = ("ranges", "allowed", "max_step")
PLAIN = ("max_changes", "max_cost")


def _rules(own: Constraints) -> list[Rule]:
    rules: list[Rule] = [(field, name, None) for field in LISTS for name in getattr(own, field)]
    rules += [(field, *item) for field in TABLES for item in getattr(own, field).items()]
    values = [(field, "", getattr(own, field)) for field in PLAIN]
    return rules + [rule for rule in values if rule[2] is not None]


def _without(own: Constraints, rule: Rule) -> Constraints:
    """These constraints without one of their rules."""
    field, name, _ = rule
    stated = getattr(own, field)
    left: Any = None
    if field in LISTS:
        left = tuple(other for other in stated if other != name)
    elif field in TABLES:
        left = {other: value for other, value in stated.items() if other != name}
    return own.model_copy(update={field: left})


def _told(rule: Rule, encoder: TableEncoder, rules: RuleBook) -> RelaxedRule:
    """The rule in the words of the schema's own rules, where it has the same."""
    field, name, value = rule
    if field == "relations":
        return RelaxedRule("relation", None, rules, name)
    if field in PLAIN:
        return RelaxedRule(field, None, rules, value)
    feature = encoder.schema[name]
    if field in ("increase", "decrease"):
        return RelaxedRule("direction", feature.model_copy(update={"direction": field}), rules)
    if field == "ranges":
        low, high = (
            end if end is not None else open_ for end, open_ in zip(value, OPEN, strict=True)
        )
        return RelaxedRule("range", feature.model_copy(update={"range": (low, high)}), rules)
    if field == "max_step":
        return RelaxedRule("step", feature.model_copy(update={"max_step": value}), rules)
    return RelaxedRule(field, feature, rules, value)


OPEN = (-math.inf, math.inf)  # the ends of a range that has none
