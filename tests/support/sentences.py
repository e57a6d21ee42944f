"""Rules between features, drawn as trees: written as text for the library, judged here by hand.

A tree is ("if", a, b), ("and", a, b), ("or", a, b), ("not", a), or a comparison: ("<=", "age", 30),
("<", "age", Name("years")), ("=", "job", ("cook", "nurse")). A row is a mapping of names to plain
values, None where one is missing.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.table.schema import Feature, Schema

Tree = tuple[Any, ...]
Row = Mapping[str, Any]
SIGNS = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "=": operator.eq,
    "!=": operator.ne,
}


class Name(str):
    """Another feature, on the right of a comparison."""


# ---- drawn -------------------------------------------------------------------------------------


def drawn(rng: np.random.Generator, schema: Schema, X: pd.DataFrame) -> Tree:
    """A rule over the features that one may speak of; its constants are values of X."""
    features = [f for f in schema if f.role != "protected"]
    if rng.random() < 0.4:
        return ("if", _part(rng, features, X), _part(rng, features, X))
    return _part(rng, features, X)


def _part(rng: np.random.Generator, features: list[Feature], X: pd.DataFrame) -> Tree:
    shape = rng.choice(["one", "one", "and", "or", "not"])
    if shape in ("and", "or"):
        return (str(shape), _comparison(rng, features, X), _comparison(rng, features, X))
    one = _comparison(rng, features, X)
    return ("not", one) if shape == "not" else one


def _comparison(rng: np.random.Generator, features: list[Feature], X: pd.DataFrame) -> Tree:
    feature = features[rng.integers(len(features))]
    alike = [f for f in features if f.kind == feature.kind and f.categories == feature.categories]
    has_order = feature.ordered or not feature.is_category
    other = alike[rng.integers(len(alike))]
    if other.name != feature.name and rng.random() < 0.3:
        both = has_order and (other.ordered or not other.is_category)
        return (_sign(rng, both), feature.name, Name(other.name))
    if not feature.is_category:
        return (_sign(rng, True), feature.name, _value(rng, X[feature.name]))
    sign = _sign(rng, has_order)
    most = 2 if sign in ("=", "!=") else 1
    order = rng.permutation(len(feature.categories))[: rng.integers(1, most + 1)]
    return (sign, feature.name, tuple(feature.categories[k] for k in order))


def _sign(rng: np.random.Generator, has_order: bool) -> str:
    return str(rng.choice(list(SIGNS) if has_order else ["=", "!="]))


def _value(rng: np.random.Generator, column: pd.Series) -> float:
    return float(column.dropna().iloc[rng.integers(column.notna().sum())])


# ---- written -----------------------------------------------------------------------------------


def written(tree: Tree) -> str:
    match tree:
        case ("if", a, b):
            return f"if {written(a)} then {written(b)}"
        case ("not", a):
            return f"not ({written(a)})"
        case ("and" | "or" as word, a, b):
            return f"({written(a)}) {word} ({written(b)})"
        case (sign, name, Name() as other):
            return f"{_quoted(name)} {sign} {_quoted(other)}"
        case (sign, name, tuple() as levels):
            return f"{_quoted(name)} {sign} " + " or ".join(map(_quoted, levels))
        case (sign, name, number):
            return f"{_quoted(name)} {sign} {number!r}"
    raise ValueError(tree)


def _quoted(name: object) -> str:
    """As people write it: without quotes where it is one word."""
    text = str(name)
    if text.replace("-", "").isalnum():
        return text
    return f"`{text}`" if "'" in text else f"'{text}'"


# ---- judged ------------------------------------------------------------------------------------


def names(tree: Tree) -> set[str]:
    """The features that a tree speaks of."""
    if tree[0] in SIGNS:
        return {tree[1]} | ({str(tree[2])} if isinstance(tree[2], Name) else set())
    return set().union(*map(names, tree[1:]))


def truth(tree: Tree, row: Row, schema: Schema, slack: Mapping[str, float]) -> bool | None:
    """True, False, or None where a missing value, or rounding (`slack`), leaves it open."""
    match tree:
        case ("not", a):
            return _not(truth(a, row, schema, slack))
        case ("if", a, b):
            return _either(_not(truth(a, row, schema, slack)), truth(b, row, schema, slack))
        case ("or", a, b):
            return _either(truth(a, row, schema, slack), truth(b, row, schema, slack))
        case ("and", a, b):
            return _not(_either(*(_not(truth(part, row, schema, slack)) for part in (a, b))))
        case (sign, name, right):
            return _compared(sign, schema[name], right, row, slack)
    raise ValueError(tree)


def _not(a: bool | None) -> bool | None:
    return None if a is None else not a


def _either(a: bool | None, b: bool | None) -> bool | None:
    if a or b:
        return True
    return None if None in (a, b) else False


def _compared(
    sign: str, feature: Feature, right: Any, row: Row, slack: Mapping[str, float]
) -> bool | None:
    own, near = row[feature.name], slack[feature.name]
    if isinstance(right, Name):
        near = max(near, slack[right])
        right = (row[right],) if feature.is_category else row[right]
    if own is None or right is None or right == (None,):
        return None
    if not feature.is_category:
        return None if 0 < abs(own - right) <= near else bool(SIGNS[sign](own, right))
    if sign in ("=", "!="):
        return (own in right) == (sign == "=")
    place = list(feature.categories).index
    return bool(SIGNS[sign](place(own), place(right[0])))
