"""Random schemas, tables, people and classifiers, drawn by hypothesis: always the same ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from genrecourse.genre.model import NetConfig
from genrecourse.methods.genre import Training
from genrecourse.table.schema import Feature, Schema

ROWS = int(os.environ.get("GENRECOURSE_SOAK_ROWS", "10000"))  # `make soak` asks for more
TINY = NetConfig(width=8, heads=2, feedforward=8, encoder_layers=1, decoder_layers=1)


def reproducible(max_examples: int) -> Any:
    return settings(
        max_examples=max_examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


# ---- random columns ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A feature and how its values come about."""

    feature: Feature
    dtype: Any
    low: float = 0.0  # training values lie in [low, low + span]; people's also beyond
    span: float = 1.0
    distinct: int = 0  # 0: continuous
    atom: float = 0.0  # share of the rows that have the lowest value
    missing: float = 0.0
    parts: tuple[str, ...] = ()  # of a derived feature: what it is computed from ...
    combine: Callable[..., Any] | None = None  # ... and how

    def derived(self, X: pd.DataFrame) -> pd.Series:
        assert self.combine is not None
        known = [X[name].to_numpy(dtype=float, na_value=np.nan) for name in self.parts]
        value = self.combine(*known)
        if self.feature.decimals is not None:
            value = np.round(value, self.feature.decimals)
        return pd.Series(value)

    def values(self, rng: np.random.Generator, n: int, beyond: float) -> pd.Series:
        if self.feature.is_category:
            levels = np.array([*self.feature.categories, None], dtype=object)
            place = rng.integers(0, len(levels) - 1, n)
            place[rng.random(n) < self.missing] = len(levels) - 1
            return pd.Series(levels[place], dtype=self.dtype)
        share = rng.random(n)
        if self.distinct:
            share = np.floor(share * self.distinct) / max(self.distinct - 1, 1)
        share[rng.random(n) < self.atom] = 0.0
        outside = rng.random(n) < beyond
        share[outside] = rng.uniform(-1.0, 2.0, outside.sum())
        value = self.low + share * self.span
        if self.feature.decimals is not None:
            value = np.round(value, self.feature.decimals)
        value[rng.random(n) < self.missing] = np.nan
        return pd.Series(value).astype(self.dtype)


@st.composite
def numbers(draw: Callable[..., Any], name: str) -> Column:
    dtype = draw(st.sampled_from(["float64", "int64", "float32", "int16", "Int64"]))
    whole = "int" in dtype.lower()
    missing = draw(st.booleans()) and dtype not in ("int64", "int16")
    small = dtype == "int16"
    span = draw(st.sampled_from([3.0, 40.0, 1000.0] if whole else [0.01, 1.0, 77.7, 1e6]))
    low = draw(st.sampled_from([0.0, -5.0, 100.0] if small else [0.0, -5.0, 1e5]))
    a, b = sorted((draw(st.floats(-0.2, 1.2)), draw(st.floats(-0.2, 1.2))))
    within = (low + a * span, low + b * span)
    feature = Feature(
        name=name,
        kind="number",
        range=draw(st.sampled_from([None, (low, low + span), within])),
        decimals=0 if whole else draw(st.sampled_from([None, 2])),
        missing=missing,
        role=draw(st.sampled_from(["mutable", "mutable", "mutable", "immutable"])),
        direction=draw(st.sampled_from(["any", "any", "any", "increase", "decrease"])),
        max_step=draw(st.sampled_from([None, 0.15 * span, 0.4 * span, 0.9 * span])),
        cost_weight=draw(st.sampled_from([1.0, 0.1, 7.0])),
    )
    distinct = draw(st.sampled_from([0, 1, 2, 5]))
    atom = draw(st.sampled_from([0.0, 0.0, 0.6]))
    return Column(feature, dtype, low, span, distinct, atom, 0.15 if missing else 0.0)


@st.composite
def categories(draw: Callable[..., Any], name: str) -> Column:
    n = draw(st.integers(2, 10))
    kind = draw(st.sampled_from(["text", "bool", "integer", "category"]))
    levels: tuple[Any, ...] = tuple(f"level {k}" for k in range(n))
    missing, dtype = draw(st.booleans()), None
    if kind == "bool":
        levels, dtype = (False, True), object if missing else bool
    elif kind == "integer":
        levels, dtype = tuple(range(n)), object if missing else "int64"
    elif kind == "category":
        dtype = pd.CategoricalDtype(levels)
    ordered = draw(st.booleans())
    feature = Feature(
        name=name,
        kind="category",
        categories=levels,
        ordered=ordered,
        missing=missing,
        role=draw(st.sampled_from(["mutable", "mutable", "mutable", "immutable"])),
        direction=draw(st.sampled_from(["any", "increase", "decrease"])) if ordered else "any",
        cost_weight=draw(st.sampled_from([1.0, 0.1, 7.0])),
    )
    return Column(feature, dtype, missing=0.15 if missing else 0.0)


FORMULAS: dict[str, Callable[..., Any]] = {
    "{} + 2 * {}": lambda a, b: a + 2 * b,
    "{} - {}": lambda a, b: a - b,
    "max({}, {})": np.maximum,
}


@st.composite
def derived(draw: Callable[..., Any], name: str, numbers: list[Column]) -> Column:
    """A formula over two numbers, which may be the same."""
    a, b = draw(st.sampled_from(numbers)), draw(st.sampled_from(numbers))
    formula = draw(st.sampled_from(list(FORMULAS)))
    parts = (a.feature.name, b.feature.name)
    low, span = a.low + b.low, a.span + b.span
    feature = Feature(
        name=name,
        kind="number",
        role="derived",
        formula=formula.format(*parts),
        missing=a.feature.missing or b.feature.missing,
        decimals=draw(st.sampled_from([None, 2])),
        direction=draw(st.sampled_from(["any", "any", "increase"])),
        max_step=draw(st.sampled_from([None, None, 0.5 * span])),
    )
    return Column(feature, "float64", low, span, parts=parts, combine=FORMULAS[formula])


@st.composite
def moved_by_nobody(draw: Callable[..., Any], columns: list[Column]) -> list[Column]:
    """Further columns, of the roles beyond mutable and immutable."""
    more = []
    numbers = [c for c in columns if not c.feature.is_category]
    if numbers and draw(st.booleans()):
        more.append(draw(derived(name="ratio", numbers=numbers)))
    if draw(st.booleans()):
        horizon = draw(st.sampled_from([1.0, 3.0]))
        age = Feature(name="age", kind="number", role="advances", horizon=horizon, decimals=0)
        more.append(Column(age, "int64", 20.0, 50.0))
    if draw(st.booleans()):
        sex = Feature(name="sex", kind="category", role="protected", categories=("f", "m"))
        more.append(Column(sex, None))
    return more


# ---- random tables, people and classifiers -----------------------------------------------------


@dataclass(frozen=True)
class Linear:
    """h: a linear score of some columns, half of the training rows accepted."""

    weights: dict[str, float]
    scale: dict[str, float]
    middle: float = 0.0

    def raw(self, X: pd.DataFrame) -> np.ndarray:
        total = np.zeros(len(X))
        for name, weight in self.weights.items():
            column = X[name]
            if pd.api.types.is_numeric_dtype(column.dtype) and column.dtype != bool:
                value = column.to_numpy(dtype=float, na_value=np.nan) / self.scale[name]
            else:  # a hash of the level, the same in every run
                codes, levels = pd.factorize(column)  # -1, the last place, where it is missing
                value = np.array([sum(map(ord, str(v))) * 0.37 % 1.0 for v in [*levels, ""]])[codes]
            total += weight * np.nan_to_num(value)
        return total

    def __call__(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(1 / (1 + np.exp(-np.clip(6 * (self.raw(X) - self.middle), -40, 40))))


@dataclass(frozen=True)
class Case:
    columns: list[Column]
    seed: int
    n_rows: int
    method: dict[str, Any]  # GenRe's settings

    @property
    def schema(self) -> Schema:
        return Schema(features=tuple(c.feature for c in self.columns))

    def table(self, n: int, stream: int, beyond: float = 0.0) -> pd.DataFrame:
        rng = np.random.default_rng([self.seed, stream])
        drawn = [c for c in self.columns if c.combine is None]
        X = pd.DataFrame({c.feature.name: c.values(rng, n, beyond) for c in drawn})
        for column in self.columns:
            if column.combine is not None:
                X[column.feature.name] = column.derived(X)
        X = X[self.schema.names]
        return X.set_axis(pd.Index(rng.permutation(n) * 3 + 7, name="person"), axis="index")

    def classifier(self, X: pd.DataFrame) -> Linear:
        rng = np.random.default_rng([self.seed, 99])
        names = [n for n in X.columns if rng.random() < 0.7] or [X.columns[0]]
        linear = Linear(
            weights={n: float(rng.normal()) for n in names},
            scale={c.feature.name: max(abs(c.low) * 1e-3, c.span) for c in self.columns},
        )
        return Linear(linear.weights, linear.scale, float(np.median(linear.raw(X))))


@st.composite
def cases(draw: Callable[..., Any], roles: bool = False) -> Case:
    """roles: with columns that are protected, derived or advance, besides the others."""
    n = draw(st.integers(1, 8))
    columns = [draw(st.one_of(numbers(name=f"f{j}"), categories(name=f"f{j}"))) for j in range(n)]
    if all(c.feature.role == "immutable" for c in columns):
        first = columns[0].feature.model_copy(update={"role": "mutable"})
        columns[0] = replace(columns[0], feature=first)
    if roles:
        columns += draw(moved_by_nobody(columns=columns))
    method = {
        "bins": draw(st.sampled_from(["uniform", "quantile"])),
        "keep": draw(st.booleans()),
        "sigma": draw(st.sampled_from([0.05, 0.0])),
        "n_bins": draw(st.sampled_from([3, 8, 20])),
        "n_draws": draw(st.integers(1, 4)),
        "temperature": draw(st.sampled_from([0.5, 3.0])),
        "select": draw(st.sampled_from(["verified", "likelihood", "paper"])),
        "clean": False,  # would only leave out targets, and needs a judge for each table
        "training": Training(steps=draw(st.integers(1, 3)), batch_size=32),
    }
    return Case(columns, draw(st.integers(0, 10**6)), draw(st.integers(60, 120)), method)
