"""Whatever the schema, the table and the classifier: no rule is ever broken.

Schemas, tables and classifiers are drawn by hypothesis, always the same ones. The rules must hold
for an untrained net as well, so R_theta is trained for one to three steps only and sampled hot.
`make soak` sets GENRECOURSE_SOAK_ROWS for a longer run.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genrecourse.checks import KINDS, broken_rules, changed
from genrecourse.constraints import Rules
from genrecourse.cost import Cost
from genrecourse.encoding import TableEncoder, unchanged
from genrecourse.errors import UserError
from genrecourse.genre.model import NetConfig
from genrecourse.methods.genre import GenRe, Training
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.schema import Feature, Schema

ROWS = int(os.environ.get("GENRECOURSE_SOAK_ROWS", "10000"))
PEOPLE = 100  # rejected people of one example, at most
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
                value = np.array([sum(map(ord, str(v))) * 0.37 % 1.0 for v in column])
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
        X = pd.DataFrame({c.feature.name: c.values(rng, n, beyond) for c in self.columns})
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
def cases(draw: Callable[..., Any]) -> Case:
    n = draw(st.integers(1, 8))
    columns = [draw(st.one_of(numbers(name=f"f{j}"), categories(name=f"f{j}"))) for j in range(n)]
    if all(c.feature.role == "immutable" for c in columns):
        first = columns[0].feature.model_copy(update={"role": "mutable"})
        columns[0] = Column(**{**vars(columns[0]), "feature": first})
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


# ---- the rules hold ----------------------------------------------------------------------------


class Tally:
    """What was looked at, so that "no violation" says something."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.settings: Counter[str] = Counter()
        self.exposed: Counter[str] = Counter()  # cells that moved although a rule of this kind ...
        self.broken: Counter[str] = Counter()

    def look(self, who: str, schema: Schema, X: pd.DataFrame, X_plus: pd.DataFrame) -> None:
        self.rows[who] += len(X)
        for f in schema:
            moved = int(changed(X[f.name], X_plus[f.name]).sum())
            held = {
                "immutable": len(X) if f.role == "immutable" else 0,
                "direction": moved if f.direction != "any" else 0,
                "range": moved if f.range is not None else 0,
                "step": moved if f.max_step is not None else 0,
                "decimals": moved if f.decimals is not None else 0,
                "category": moved if f.is_category else 0,
                "missing": int(X[f.name].isna().sum()),
            }
            self.exposed.update(held)
        broken = broken_rules(schema, X, X_plus)
        found = {kind: int(cells.to_numpy().sum()) for kind, cells in broken.items()}
        self.broken.update(found)
        for kind, cells in broken.items():
            for i, j in np.argwhere(cells.to_numpy())[:1]:
                f = schema.features[j]
                pytest.fail(
                    f"{who} breaks the {kind} rule of {f!r}: {X[f.name].iloc[i]!r} became "
                    f"{X_plus[f.name].iloc[i]!r}"
                )

    def __str__(self) -> str:
        lines = [
            f"rows checked: {self.rows['GenRe']:,} by GenRe, {self.rows['NearestNeighbour']:,} by "
            f"NearestNeighbour, {self.rows['GenRe.sample']:,} single draws",
            f"random schemas, tables and classifiers: {self.rows['schemas']:,} (and "
            f"{self.rows['nothing to learn']:,} from which nothing could be learned)",
            "settings: " + ", ".join(f"{k} {v}" for k, v in sorted(self.settings.items())),
            f"{'rule':<12}{'cells under it':>16}{'violations':>12}",
        ]
        lines += [f"{k:<12}{self.exposed[k]:>16,}{self.broken[k]:>12,}" for k in KINDS]
        return "\n".join(lines)


def test_no_rule_is_ever_broken(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()

    @reproducible(max_examples=ROWS // 60)
    @given(case=cases())
    def look(case: Case) -> None:
        _recourse_keeps_the_rules(case, tally)

    try:
        look()
    finally:
        with capsys.disabled():
            print(f"\n{tally}")  # noqa: T201
    assert tally.rows["GenRe"] >= ROWS
    assert tally.rows["NearestNeighbour"] >= ROWS
    assert min(tally.exposed[kind] for kind in KINDS) > ROWS // 50  # each rule had its chance
    assert sum(tally.broken.values()) == 0


def _recourse_keeps_the_rules(case: Case, tally: Tally) -> None:
    X, many = case.table(case.n_rows, 1), case.table(4 * PEOPLE, 2, beyond=0.15)
    h, schema = case.classifier(X), case.schema
    accepted = h(many) > 0.5
    people = pd.concat([many[~accepted][:PEOPLE], many[accepted][:10]])
    rejected = ~(h(people) > 0.5)
    genre = GenRe(h, schema, net=TINY, gamma=0.5, margin=0.5, seed=case.seed, **case.method)
    nearest = NearestNeighbour(h, schema, n_bins=case.method["n_bins"])
    for method in (genre, nearest):
        who = type(method).__name__
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*left out of training")
                method.fit(X)
        except UserError:
            tally.rows["nothing to learn"] += 1
            continue
        X_plus = method.recourse(people)
        assert X_plus.index.equals(people.index)
        assert list(X_plus.columns) == list(people.columns)
        assert X_plus.dtypes.equals(people.dtypes)
        assert X_plus[~rejected].equals(people[~rejected])
        tally.look(who, schema, people[rejected], X_plus[rejected])
        assert "rule-broken" not in set(method.assess(people, X_plus)["status"])
        if isinstance(method, GenRe):
            tally.rows["schemas"] += 1
            tally.settings.update(f"{k}={case.method[k]}" for k in ("bins", "keep", "sigma"))
            draws = method.sample(people[:20], 3)
            again = people.iloc[np.repeat(np.arange(len(people[:20])), 3)].set_axis(draws.index)
            tally.look("GenRe.sample", schema, again, draws)


# ---- encoder, rules and cost -------------------------------------------------------------------


@reproducible(max_examples=150)
@given(case=cases())
def test_encoding_comes_back(case: Case) -> None:
    """X -> F -> Z -> F -> X gives the very table back, people beyond the training range too."""
    X, people = case.table(case.n_rows, 1), case.table(50, 2, beyond=0.3)
    encoder = TableEncoder(case.schema).fit(X)
    F, Z = encoder.features(people), encoder.encode(people)
    assert Z.shape == (50, encoder.width)
    assert np.isfinite(Z).all()
    assert np.array_equal(encoder.to_features(Z), F, equal_nan=True)
    assert np.array_equal(encoder.from_features(F), Z)
    pd.testing.assert_frame_equal(encoder.decode(Z, like=people), people, check_exact=True)
    # and without a row to lean on: the same values from Z alone
    alone = encoder.table(Z, like=X).set_axis(people.index)
    assert unchanged(encoder.features(alone), F).all()
    # legal rows stay as they are
    training = encoder.encode(X)
    legal = encoder.project(training)
    assert np.allclose(encoder.project(legal), legal, rtol=0, atol=1e-12)


@reproducible(max_examples=150)
@given(case=cases())
def test_rules_in_scaled_and_in_original_units_agree(case: Case) -> None:
    """`Rules` on F says of every cell what `broken_rules` says in the user's own units."""
    X, people = case.table(case.n_rows, 1), case.table(50, 2, beyond=0.3)
    X_plus = _mixed(case, people)
    encoder = TableEncoder(case.schema).fit(X)
    rules = Rules(encoder)
    F, F_plus = encoder.features(people), encoder.features(X_plus)
    expected = broken_rules(case.schema, people, X_plus)
    found = rules.violations(F, F_plus)
    del expected["decimals"]  # a matter of `project`, not of what may change into what
    for kind, cells in expected.items():
        present = ~np.isnan(F_plus) | np.isin(kind, ["immutable", "missing"])
        assert np.array_equal(found[kind] & present, cells.to_numpy()), kind
    any_broken = np.any([c.to_numpy().any(axis=1) for c in expected.values()], axis=0)
    assert np.array_equal(rules.feasible(F, F_plus), ~any_broken)
    assert rules.feasible(F, F).all()
    assert rules.feasible(F, rules.revert(F, F_plus)).all()


@reproducible(max_examples=150)
@given(case=cases())
def test_cost_is_symmetric_and_zero_only_where_nothing_changed(case: Case) -> None:
    X, people = case.table(case.n_rows, 1), case.table(50, 2, beyond=0.3)
    encoder = TableEncoder(case.schema).fit(X)
    cost = Cost(encoder)
    Z, Z_plus = encoder.encode(people), encoder.encode(_mixed(case, people))
    there, back = cost(Z, Z_plus), cost(Z_plus, Z)
    assert np.allclose(there, back, rtol=1e-12, atol=0)
    same = unchanged(encoder.to_features(Z), encoder.to_features(Z_plus)).all(axis=1)
    assert np.array_equal(there > 1e-9 * len(case.columns) * 7, ~same)
    assert (cost(Z, Z) == 0).all()
    as_torch = cost(torch.as_tensor(Z), torch.as_tensor(Z_plus)).numpy()
    assert np.allclose(there, as_torch, rtol=1e-12, atol=1e-12)
    block = cost.pairwise(torch.as_tensor(Z), torch.as_tensor(Z_plus)).numpy()
    assert np.allclose(np.diag(block), there, rtol=1e-9, atol=1e-9)
    # by hand: a changed category counts its weight, a number its weight times the scaled distance
    F, F_plus = encoder.to_features(Z), encoder.to_features(Z_plus)
    by_hand = np.zeros(len(F))
    for j, feature in enumerate(case.schema):
        gap = np.abs(F[:, j] - F_plus[:, j])
        if feature.is_category:
            gap = np.where(np.isnan(gap), np.nan, gap > 0)
        gone = np.isnan(F[:, j]).astype(int) + np.isnan(F_plus[:, j])
        by_hand += feature.cost_weight * np.where(gone == 0, np.nan_to_num(gap), gone == 1)
    assert np.allclose(there, by_hand, rtol=1e-9, atol=1e-9)


def _mixed(case: Case, people: pd.DataFrame) -> pd.DataFrame:
    """The same people with about half of their cells another person's."""
    others = case.table(len(people), 3, beyond=0.3).set_axis(people.index)
    take = np.random.default_rng([case.seed, 4]).random(people.shape) < 0.5
    return pd.DataFrame(
        {name: people[name].where(~take[:, j], others[name]) for j, name in enumerate(people)}
    ).astype(people.dtypes)
