"""RelaxedRule: each rule by itself, and all rules but this one.

If rules keep a person from every plan, the relaxed rules show which single rule does, and whoever
wrote the rules sees what each of them costs. A relaxed rule stays in force: what would be possible
without it is information about the rule, and no plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from genrecourse.rules.book import RuleBook
from genrecourse.rules.interface import FeatureKind
from genrecourse.rules.kinds import FEATURE_KINDS, KINDS
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.schema import Feature

# The order of the schema's rules on one feature; it decides between two of the same cost.
_SCHEMA_ORDER = ("role", "direction", "max_step", "range")


@dataclass(frozen=True)
class RelaxedRule:
    """One rule, and the rules without it.

    >>> import pandas as pd
    >>> from genrecourse.table.schema import Schema
    >>> X = pd.DataFrame({"age": [20.0, 40.0], "debt": [5.0, 15.0]})
    >>> book = RuleBook.of_schema(TableEncoder(Schema.infer(X)).fit(X))
    >>> RelaxedRule("max_changes", None, book, value=2).value
    2
    """

    kind: str  # the kind's name; "immutable" for a lock of the schema
    feature: Feature | None  # that the rule is about, with the rule as one of its fields
    rules: RuleBook  # without it
    value: Any = None  # of a rule that no field of a feature can hold
    binds: np.ndarray | None = None  # (n,) booleans: whom; None: everybody


def relaxed_rules(book: RuleBook) -> list[RelaxedRule]:
    """Return each rule of the request, for those who have it, and then each rule of the schema.

    >>> import pandas as pd
    >>> from genrecourse.table.schema import Schema
    >>> X = pd.DataFrame({"age": [20.0, 40.0], "debt": [5.0, 15.0]})
    >>> book = RuleBook.of_schema(TableEncoder(Schema.infer(X, immutable=("age",))).fit(X))
    >>> [(rule.kind, rule.feature.name) for rule in relaxed_rules(book)]
    [('immutable', 'age'), ('range', 'debt')]
    """
    return [*_of_request(book), *_of_schema(book)]


def _of_schema(book: RuleBook) -> list[RelaxedRule]:
    found = []
    for feature in book.encoder.schema:
        for kind in _stated_kinds(feature):
            default = Feature.model_fields[kind.schema_field].default
            schema = book.encoder.schema.with_feature(feature.name, **{kind.schema_field: default})
            without = RuleBook.of_schema(TableEncoder.from_blocks(schema, book.encoder.blocks))
            if book.request is not None and book.group is not None:
                without = without.with_statements(book.request, book.group)
            without = replace(without, efforts=book.efforts)
            name = "immutable" if kind.schema_field == "role" else kind.name
            found.append(RelaxedRule(name, feature, without))
    return found


def _stated_kinds(feature: Feature) -> list[FeatureKind]:
    """Return the kinds of rules that the schema has on a feature and that can be relaxed.

    No rule on a feature that time moves, or that is protected, decides a plan.
    """
    if feature.role in ("advances", "protected"):
        return []
    kinds = [kind for kind in FEATURE_KINDS if kind.in_schema(feature) is not None]
    if feature.role == "immutable":
        return [kind for kind in kinds if kind.schema_field == "role"]
    known = len(_SCHEMA_ORDER)
    order = {field: place for place, field in enumerate(_SCHEMA_ORDER)}
    return sorted(kinds, key=lambda kind: order.get(kind.schema_field, known))


def _of_request(book: RuleBook) -> list[RelaxedRule]:
    if book.request is None:
        return []
    schema, found = book.encoder.schema, []
    sets = [
        [(kind, key, value) for kind in KINDS for key, value in kind.stated(rules)]
        for rules in book.request.rules
    ]
    for rule in dict.fromkeys(rule for rules in sets for rule in rules):
        kind, key, value = rule
        those = np.array([rule in rules for rules in sets])
        place = schema.names.index(key) if isinstance(kind, FeatureKind) else key
        without = replace(book, request=book.request.without(kind, place, those))
        feature, shown = kind.relaxed(key, value, schema)
        binds = None if book.group is None else those[book.group]
        found.append(RelaxedRule(kind.name, feature, without, shown, binds))
    return found
