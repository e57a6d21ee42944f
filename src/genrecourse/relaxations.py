"""Each rule by itself, and all the others: which single rule stands in the way?

Where rules keep a person from every plan, they can be told which one does, and whoever wrote the
rules can see what each of them costs. A relaxed rule is never in force: what it would open is said
about the rule and is no plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from genrecourse.constraints import RuleBook, Rules
from genrecourse.encoding import TableEncoder
from genrecourse.requests import (
    Constraints,
    PerPerson,
    RequestRules,
    compile_constraints,
    read_constraints,
)
from genrecourse.schema import Feature


@dataclass(frozen=True)
class Relaxed:
    """One rule, and the rules without it."""

    kind: str  # "immutable", "direction", "range" or "step" of the schema, or "request"
    feature: Feature | None  # that a rule of the schema is about
    rules: RuleBook  # without it
    text: str = ""  # a rule of the request, in words


def relaxed_schema(rules: Rules, encoder: TableEncoder) -> list[Relaxed]:
    """Each rule of the schema."""
    found = []
    for feature in encoder.schema:
        free: dict[str, dict[str, Any]] = {}
        if feature.role == "immutable":
            free["immutable"] = {"role": "mutable"}
        elif feature.role == "mutable":  # a rule on what nobody may act on opens nothing by itself
            if feature.direction != "any":
                free["direction"] = {"direction": "any"}
            if feature.max_step is not None:
                free["step"] = {"max_step": None}
            if feature.range is not None:
                free["range"] = {"range": None}
        for kind, fields in free.items():
            schema = encoder.schema.with_feature(feature.name, **fields)
            without = Rules(TableEncoder.from_blocks(schema, encoder.blocks))
            found.append(Relaxed(kind, feature, without))
    return found


def relaxed_request(
    constraints: Any, request: RequestRules, encoder: TableEncoder, X: pd.DataFrame
) -> list[Relaxed]:
    """Each rule of the request, whoever has it, and then each rule of the schema."""
    stated = read_constraints(constraints)
    everybody = [stated.default, *stated.people.values()]
    texts = dict.fromkeys(text for own in everybody for text, _ in own.relaxations())
    found = []
    for text in texts:
        without = PerPerson(
            people={label: _without(own, text) for label, own in stated.people.items()},
            default=_without(stated.default, text),
        )
        rules = compile_constraints(without, encoder, request.rules, X)
        found.append(Relaxed("request", None, rules, text))
    for relaxed in relaxed_schema(request.rules, encoder):
        assert isinstance(relaxed.rules, Rules)
        found.append(replace(relaxed, rules=replace(request, rules=relaxed.rules)))
    return found


def _without(own: Constraints, text: str) -> Constraints:
    return dict(own.relaxations()).get(text, own)
