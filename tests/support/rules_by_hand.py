"""The rules of a request, in plain Python and original units: nothing of the library's own.

Written from docs/requests.md, so that it can find mistakes in how the library reads, compiles and
keeps rules. A row is a mapping of names to plain values, None where one is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.table.schema import Feature, Schema
from tests.support.random_rules import Asked
from tests.support.sentences import Row, Tree, names, truth, written

OF_ONE = ("lock", "range", "allowed", "direction", "step")  # rules on single features
KINDS = (*OF_ONE, "changes", "cost", "relation")


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    columns = {
        name: [None if pd.isna(cell) else _plain(cell) for cell in table[name]] for name in table
    }
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell


@dataclass(frozen=True)
class ByHand:
    """A schema with what the training rows say of its numbers."""

    schema: Schema
    span: dict[str, float]  # of a number in the training rows: what a cost of 1 is
    slack: dict[str, float]  # what the rounding of a column's dtype may hide

    @classmethod
    def of(cls, schema: Schema, X: pd.DataFrame) -> ByHand:
        span, slack = {}, {}
        for feature in schema:
            span[feature.name], slack[feature.name] = 1.0, 0.0
            if not feature.is_category:
                values = X[feature.name].dropna().to_numpy(dtype=float)
                span[feature.name] = float(values.max() - values.min()) or 1.0
                largest = max(*np.abs(values), *(abs(e) for e in feature.range or (0.0,)))
                single = X[feature.name].dtype in (np.float32, pd.Float32Dtype())
                precision = 2.0**-22 if single else 2.0**-40
                slack[feature.name] = precision * largest + 1e-9 * span[feature.name]
        return cls(schema, span, slack)

    def cost(self, x: Row, x_plus: Row) -> float:
        """A changed category counts its weight, a number its weight times the share of its span."""
        total = 0.0
        for f in self.schema:
            a, b = x[f.name], x_plus[f.name]
            if a == b or f.role not in ("mutable", "immutable"):
                continue
            share = 1.0
            if not (f.is_category or a is None or b is None):
                share = abs(self._meant(f, a) - self._meant(f, b)) / self.span[f.name]
            total += f.cost_weight * share
        return total

    def _meant(self, f: Feature, value: float) -> float:
        """The number that a cell stands for: 100,000.078125 is how single precision has
        100,000.08."""
        on_grid = value if f.decimals is None else round(value, f.decimals)
        return on_grid if abs(on_grid - value) <= self.slack[f.name] else value

    def changed(self, x: Row, x_plus: Row) -> set[str]:
        """What the person changes; what moves by itself is nobody's change."""
        return {f.name for f in self.schema if x[f.name] != x_plus[f.name] and not f.follows}

    def verdicts(self, asked: Asked, x: Row, x_plus: Row) -> Iterator[tuple[str, bool]]:
        """(kind, kept) of each rule that has something to say of going from x to x_plus."""
        rules = asked.fields
        for f in self.schema:
            if f.name in rules.get("lock", ()) and f.role != "advances":
                yield "lock", x[f.name] == x_plus[f.name]
            # time passes whatever a person does, and no rule on one feature stops it
            if x[f.name] != x_plus[f.name] and f.role != "advances":
                yield from self._of_one(asked, f, x[f.name], x_plus[f.name])
        if "max_changes" in rules:
            yield "changes", len(self.changed(x, x_plus)) <= rules["max_changes"]
        if "max_cost" in rules:
            yield "cost", self.cost(x, x_plus) <= rules["max_cost"] + 1e-7
        for tree in asked.relations:
            if self.touches(tree, x, x_plus):
                yield "relation", truth(tree, x_plus, self.schema, self.slack) is not False

    def _of_one(self, asked: Asked, f: Feature, a: Any, b: Any) -> Iterator[tuple[str, bool]]:
        """The rules on a feature that went from a to b."""
        rules, slack = asked.fields, self.slack[f.name]
        low, high = rules.get("ranges", {}).get(f.name, (None, None))
        if (low, high) != (None, None):
            yield "range", b is not None and _within(b, low, high, slack)
        if f.name in rules.get("allowed", {}):
            yield "allowed", any(self._same(f, b, value) for value in rules["allowed"][f.name])
        for way, sign in (("increase", 1), ("decrease", -1)):
            if f.name in rules.get(way, ()):  # from missing it is not known to go that way
                yield "direction", None not in (a, b) and sign * self._rise(f, a, b) >= 0
        if f.name in rules.get("max_step", {}):
            most = rules["max_step"][f.name] + 2 * slack
            yield "step", None not in (a, b) and abs(b - a) <= most

    def _same(self, f: Feature, a: Any, b: Any) -> bool:
        return a == b if f.is_category or a is None else abs(a - b) <= self.slack[f.name]

    def _rise(self, f: Feature, a: Any, b: Any) -> float:
        if f.is_category:
            return f.categories.index(b) - f.categories.index(a)
        return float(b - a)

    def named(self, asked: Asked, rule: str) -> tuple[set[str], Callable[[Row], bool]]:
        """Of a rule in the words of an error: what it speaks of, and whether a row meets it."""
        for name, (low, high) in asked.fields.get("ranges", {}).items():
            if rule.startswith(f"'{name}' between "):
                return {name}, partial(self._in_range, name, low, high)
        for name, values in asked.fields.get("allowed", {}).items():
            if rule.startswith(f"'{name}' one of "):
                return {name}, partial(self._is_listed, self.schema[name], values)
        for tree in asked.relations:
            if rule == f"'{written(tree)}'":
                return names(tree), partial(self._holds, tree)
        raise AssertionError(f"nobody stated {rule}")

    def _in_range(self, name: str, low: float | None, high: float | None, row: Row) -> bool:
        return row[name] is not None and _within(row[name], low, high, -self.slack[name])

    def _is_listed(self, f: Feature, values: list[Any], row: Row) -> bool:
        return any(row[f.name] == value for value in values)

    def _holds(self, tree: Tree, row: Row) -> bool:
        return truth(tree, row, self.schema, self.slack) is True

    def touches(self, tree: Tree, x: Row, x_plus: Row) -> bool:
        """Whether a plan changes what a relation speaks of, or moves what follows from a change."""
        moved = {name for name in names(tree) if x[name] != x_plus[name]}
        return any(self.schema[name].role != "advances" for name in moved)


def _within(value: float, low: float | None, high: float | None, slack: float) -> bool:
    return (low is None or value >= low - slack) and (high is None or value <= high + slack)
