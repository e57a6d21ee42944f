"""Rules that somebody might state at request time, drawn at random from a seed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError
from genrecourse.table.schema import Feature, Schema
from tests.support.sentences import Tree, drawn, written

CHANCE = 0.2  # of each kind of rule, for one person
REFUSED = re.compile(r"row (\S+) does not meet the rule (.*), and no value that the other rules")


@dataclass(frozen=True)
class Asked:
    """What one person asks for: as `Rules` takes it, the relations as trees."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    relations: tuple[Tree, ...] = ()

    def stated(self) -> dict[str, Any]:
        rules = dict(self.fields)
        if self.relations:
            rules["relations"] = [written(tree) for tree in self.relations]
        return rules


def asked_at_random(rng: np.random.Generator, schema: Schema, X: pd.DataFrame) -> Asked:
    """Some rules, whose values come from the training rows X; some cannot be met."""
    # of what is protected and of what time moves no rule may be stated
    every = [f for f in schema if f.role not in ("protected", "advances")]
    numbers = [f for f in every if not f.is_category]
    ranked = [f for f in every if f.ordered or not f.is_category]
    makers: dict[str, tuple[list[Feature], Callable[[Feature], Any]]] = {
        "ranges": (numbers, lambda f: _range(rng, X[f.name])),
        "allowed": (every, lambda f: _allowed(rng, f, X[f.name])),
        "max_step": (numbers, lambda f: float(rng.uniform(0.05, 0.7) * _span(X[f.name]))),
    }
    fields: dict[str, Any] = {}
    for kind, (features, make) in makers.items():
        if features and rng.random() < CHANCE:
            fields[kind] = {f.name: make(f) for f in _some(rng, features)}
    if rng.random() < CHANCE:
        fields["lock"] = [f.name for f in _some(rng, every)]
    if ranked and rng.random() < 2 * CHANCE:
        way = str(rng.choice(["increase", "decrease"]))
        fields[way] = [f.name for f in _some(rng, ranked)]
    if rng.random() < CHANCE:
        fields["max_changes"] = int(rng.choice([0, 1, 1, 2, 2, 3]))
    if rng.random() < CHANCE:
        fields["max_cost"] = float(rng.uniform(0.05, 2.5))
    trees = tuple(drawn(rng, schema, X) for _ in range(rng.binomial(2, CHANCE)))
    return Asked(fields, trees)


def _some(rng: np.random.Generator, features: list[Feature]) -> list[Feature]:
    order = rng.permutation(len(features))[: rng.integers(1, 3)]
    return [features[k] for k in order]


def _span(column: pd.Series) -> float:
    return float(column.max() - column.min()) or 1.0


def _range(rng: np.random.Generator, column: pd.Series) -> tuple[float | None, float | None]:
    ends = sorted(float(column.dropna().quantile(rng.random())) for _ in range(2))
    low, high = ends[0], ends[1] + float(rng.choice([0.0, 0.3])) * _span(column)
    return [(low, high), (low, None), (None, high)][rng.integers(3)]


def _allowed(rng: np.random.Generator, feature: Feature, column: pd.Series) -> list[Any]:
    n = int(rng.integers(1, 5))
    if feature.is_category:
        order = rng.permutation(len(feature.categories))[:n]
        return [feature.categories[k] for k in order]
    values = column.dropna().to_numpy(dtype=float)
    found = [float(v) for v in rng.choice(values, n)]
    new = float(rng.uniform(values.min(), values.max() + 1e-3))  # that no training row has
    return [*found, new if feature.decimals is None else round(new, feature.decimals)]


# ---- asked of a method ---------------------------------------------------------------------------


def answered(
    ask: Callable[[Any], Any],
    rules: dict[Any, Asked],
    redraw: Callable[[Any], Asked],
    seen: Callable[[Any, Asked, str], None],
) -> Any:
    """What `ask` gives for the rules of people by label. Rules that somebody cannot meet are
    refused by name: `seen` is told of them, and that person is given others."""
    while True:
        people = {label: own.stated() for label, own in rules.items()}
        try:
            return ask({"people": people})
        except UserError as error:
            found = REFUSED.match(str(error))
            if found is None:
                raise
            label = next(label for label in rules if repr(label) == found[1])
            seen(label, rules[label], found[2])
            rules[label] = redraw(label)
