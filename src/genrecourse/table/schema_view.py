"""A schema in one line, and as a table for a notebook."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from genrecourse.errors import amount, counted
from genrecourse.table.notebook import box, element, grid, joined, label, lines

if TYPE_CHECKING:
    from genrecourse.table.schema import Feature, Schema

MOST_FEATURES = 60  # rows of the table
MOST_LEVELS = 6  # categories in a cell
HEADS = ("feature", "values", "role", "how it may change", "cost weight")


def in_a_line(schema: Schema) -> str:
    """Return how many features there are, of which kinds and roles.

    >>> from genrecourse.table.schema import Feature, Schema
    >>> age = Feature(name="age", kind="number", role="immutable")
    >>> in_a_line(Schema(features=(age, Feature(name="debt", kind="number"))))
    '2 features: 2 numbers, 0 categories; 1 immutable, 1 mutable'
    """
    categories = sum(feature.is_category for feature in schema)
    named = f"{categories:,} {'category' if categories == 1 else 'categories'}"
    roles = [f"{n:,} {role}" for role, n in Counter(f.role for f in schema).most_common()]
    parts = [f"{counted(len(schema) - categories, 'number')}, {named}", ", ".join(roles)]
    parts += [counted(len(schema.relations), "relation")] if schema.relations else []
    return f"{counted(len(schema), 'feature')}: {'; '.join(parts)}"


def as_table(schema: Schema) -> str:
    """Return the features as an HTML table: what each holds, and how it may change.

    >>> from genrecourse.table.schema import Feature, Schema
    >>> age = Feature(name="age", kind="number", range=(0, 90), unit="years")
    >>> "0 to 90 years" in as_table(Schema(features=(age,)))
    True
    """
    rows = [_row(feature) for feature in schema.features[:MOST_FEATURES]]
    left = len(schema) - len(rows)
    more = [f"and {counted(left, 'more feature')}, in schema.names"] if left else []
    keeps = [f"every plan keeps: {relation}" for relation in schema.relations]
    title = f"Schema with {in_a_line(schema)}"
    return box(title, grid(HEADS, rows), lines([*more, *keeps]))


def _row(feature: Feature) -> list[str]:
    name: str = feature.name
    if feature.wording:
        name = joined([feature.wording, element("div", "gr-small", feature.name)])
    role = feature.role if feature.role == "mutable" else label(feature.role)
    weight = f"{feature.price:g}" if feature.role == "mutable" else ""
    return [name, _values(feature), role, _how(feature), weight]


def _values(feature: Feature) -> str:
    missing = " or missing" if feature.missing else ""
    if feature.is_category:
        levels = ", ".join(str(level) for level in feature.categories[:MOST_LEVELS])
        left = len(feature.categories) - MOST_LEVELS
        more = f" and {left:,} more" if left > 0 else ""
        return f"{'in order: ' if feature.ordered else ''}{levels}{more}{missing}"
    low, high = (_end(end) for end in feature.range or (float("-inf"), float("inf")))
    unit = f" {feature.unit}" if feature.unit else ""
    return f"{low} to {high}{unit}{missing}"


def _end(value: float) -> str:
    return amount(value).replace("inf", "∞")


def _how(feature: Feature) -> str:
    """Return the limits of a feature's changes in words; empty if there is none."""
    if feature.formula is not None:
        return f"= {feature.formula}"
    if feature.horizon is not None:
        return f"+{amount(feature.horizon)} {feature.unit}".rstrip()
    if feature.role != "mutable":
        return ""
    direction = {"any": "", "increase": "only up", "decrease": "only down"}[feature.direction]
    most = "" if feature.max_step is None else f"by at most {amount(feature.max_step)}"
    least = "" if feature.min_step is None else f"by at least {amount(feature.min_step)}"
    paid = "" if feature.cost == "range" else f"cost by {feature.cost}"
    return ", ".join(part for part in (direction, most, least, paid) if part)
