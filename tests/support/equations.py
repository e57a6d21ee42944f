"""Small tables and nets for the tests of the equations, with references computed another way.

The library computes by blocks, masks and caches. The references here use plain loops over raw
values or an enumeration.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import stats

from genrecourse.genre.any_lam import AnyLamPairs, make_any_lam_pairs
from genrecourse.genre.bins import Bins, make_bins
from genrecourse.genre.density import RecourseDensity
from genrecourse.genre.model import NetConfig, RecourseNet, make_knots
from genrecourse.genre.pairs import Pairs, make_pairs
from genrecourse.genre.targets import make_targets
from genrecourse.methods.genre import GenRe, Training
from genrecourse.model.training import TrainingPlan, train
from genrecourse.rules.book import RuleBook
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import TOLERANCE, TableEncoder
from genrecourse.table.schema import Feature, Schema

N_BINS = 8
SMALL_NET = NetConfig(width=16, heads=2, feedforward=16, encoder_layers=1, decoder_layers=2)


# ---- tables -------------------------------------------------------------------------------------


@dataclass
class Case:
    """A table in original units beside everything the library makes of it."""

    X: pd.DataFrame
    schema: Schema
    n_sources: int  # the first rows are D-, the others D+

    def __post_init__(self) -> None:
        self.encoder = TableEncoder(self.schema).fit(self.X)
        self.rules, self.cost = RuleBook.of_schema(self.encoder), Cost(self.encoder)
        self.F = self.encoder.features(self.X)
        self.Z = self.encoder.from_features(self.F)
        self.targets = make_targets(
            self.Z[self.n_sources :], self.F[self.n_sources :], self.rules, N_BINS
        )

    def pairs(self, lam: float, top_k: int) -> Pairs:
        n = self.n_sources
        return make_pairs(
            self.Z[:n], self.F[:n], self.targets, self.rules, self.cost, lam=lam, top_k=top_k
        )

    @cached_property
    def costs(self) -> np.ndarray:
        """(N-, N+), infinite where infeasible, by plain loops."""
        n = self.n_sources
        edges = {
            f.name: _edges(self.X[f.name].iloc[n:]) for f in self.schema if f.role == "immutable"
        }
        rows = self.X.to_dict("records")
        spans = {f.name: _span(f, self.X[f.name]) for f in self.schema}
        return np.array(
            [
                [
                    sum(_price(f, a[f.name], b[f.name], spans, edges) for f in self.schema)
                    for b in rows[n:]
                ]
                for a in rows[:n]
            ]
        )


def _span(feature: Feature, column: pd.Series) -> float:
    return 1.0 if feature.is_category else float(column.max() - column.min())


def _edges(column: pd.Series) -> np.ndarray | None:
    """Bin edges of an immutable number with more than N_BINS values among the targets."""
    if not pd.api.types.is_numeric_dtype(column) or column.nunique() <= N_BINS:
        return None
    return np.nanquantile(column, np.arange(1, N_BINS) / N_BINS)


def _price(
    feature: Feature, a: Any, b: Any, spans: dict[str, float], edges: dict[str, Any]
) -> float:
    """Price of a -> b in original units; infinite where the schema forbids it."""
    if feature.role == "immutable":
        edge = edges[feature.name]
        if edge is not None and not (pd.isna(a) or pd.isna(b)):
            return 0.0 if (edge < a).sum() == (edge < b).sum() else math.inf
        return 0.0 if a == b or (pd.isna(a) and pd.isna(b)) else math.inf
    if a == b or (pd.isna(a) and pd.isna(b)):
        return 0.0
    if pd.isna(b) or forbidden(feature, a, b):
        return math.inf
    if feature.is_category or pd.isna(a):
        return feature.cost_weight
    return float(feature.cost_weight * abs(a - b) / spans[feature.name])


def forbidden(feature: Feature, a: Any, b: Any) -> bool:
    """A change a -> b of a mutable feature, b present: against the schema?"""
    if feature.range is not None and not feature.range[0] <= b <= feature.range[1]:
        return True
    if pd.isna(a):
        return feature.direction != "any" or feature.max_step is not None
    if feature.is_category:
        a, b = feature.categories.index(a), feature.categories.index(b)
    wrong_way = {"any": False, "increase": b < a, "decrease": b > a}[feature.direction]
    too_far = feature.max_step is not None and abs(b - a) > feature.max_step + 1e-9
    return wrong_way or too_far


@cache
def random_case(seed: int, n_sources: int = 40, n_targets: int = 400) -> Case:
    """Numbers and categories with a rule of each kind, with missing values, with immutables."""
    rng = np.random.default_rng(seed)
    n = n_sources + n_targets
    grades = ("low", "middle", "high")
    X = pd.DataFrame(
        {
            "age": rng.integers(18, np.where(np.arange(n) < n_sources, 45, 80)),
            "sex": rng.choice(["f", "m"], n),
            "income": rng.normal(3000, 800, n).round(2),
            "debt": np.where(rng.random(n) < 0.15, np.nan, rng.exponential(500, n).round()),
            "job": rng.choice(["a", "b", "c", "d"], n),
            "grade": rng.choice(grades, n, p=[0.5, 0.3, 0.2]),
            "born": np.where(rng.random(n) < 0.1, np.nan, rng.integers(1, 13, n)),
            "house": np.where(rng.random(n) < 0.15, None, rng.choice(["own", "rent"], n)),
            "visits": rng.poisson(2, n),
        }
    )
    schema = Schema(
        features=(
            Feature(name="age", kind="number", decimals=0, direction="increase"),
            Feature(name="sex", kind="category", categories=("f", "m"), role="immutable"),
            Feature(name="income", kind="number", max_step=2000.0, cost_weight=2.0),
            Feature(name="debt", kind="number", missing=True, cost_weight=0.5),
            Feature(name="job", kind="category", categories=("a", "b", "c", "d")),
            Feature(
                name="grade",
                kind="category",
                categories=grades,
                ordered=True,
                direction="decrease",
                cost_weight=0.3,
            ),
            Feature(name="born", kind="number", missing=True, role="immutable"),
            Feature(name="house", kind="category", categories=("own", "rent"), missing=True),
            Feature(name="visits", kind="number", range=(0.0, 4.0)),
        )
    )
    return Case(X, schema, n_sources)


def reference_q(costs: np.ndarray, lam: float) -> np.ndarray:
    """Eq. (6) as printed, row by row; rows without a target are zero."""
    weight = np.where(np.isinf(costs), 0.0, np.exp(-lam * np.where(np.isinf(costs), 0.0, costs)))
    total = weight.sum(axis=1, keepdims=True)
    return np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)


def dense(pairs: Pairs, n_sources: int, n_targets: int) -> np.ndarray:
    """The truncated Q of `Pairs` as a matrix."""
    q = np.zeros((n_sources, n_targets))
    share = np.diff(pairs.cumulative.astype(float), axis=1, prepend=0.0)
    np.add.at(q, (pairs.source[:, None], pairs.index), share)
    return q


def total_variation(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return 0.5 * np.abs(p - q).sum(axis=-1)


def assert_frequencies(counts: np.ndarray, probability: np.ndarray) -> None:
    """Chi-square at 0.001; cells that expect fewer than five are pooled; no count off support."""
    assert counts[probability == 0].sum() == 0, "something impossible was drawn"
    expected = probability * counts.sum()
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    assert keep.sum() > 1, "nothing to compare"
    expected = expected[keep] * counts.sum() / expected[keep].sum()
    assert stats.chisquare(counts[keep], expected).pvalue > 0.001


def immutable_number(values: list[float], sources: int) -> Case:
    n = len(values)
    X = pd.DataFrame({"fixed": values, "free": np.linspace(0.0, 1.0, n)})
    schema = Schema(
        features=(
            Feature(name="fixed", kind="number", role="immutable", missing=True),
            Feature(name="free", kind="number"),
        )
    )
    return Case(X, schema, sources)


LAMS = (0.5, 1.0, 2.5, 5.0, 10.0)


def any_lam_pairs(case: Case, n_draws: int, seed: int = 0) -> AnyLamPairs:
    n, rng = case.n_sources, np.random.default_rng(seed)
    known = (case.Z[:n], case.F[:n], case.targets, case.rules, case.cost)
    return make_any_lam_pairs(*known, n_draws=n_draws, rng=rng)


# ---- bins and their labels ----------------------------------------------------------------------


def bins_of(*columns: list[float], n_bins: int = 5, category: tuple[int, ...] = ()) -> Bins:
    F = np.stack([np.asarray(column, dtype=float) for column in columns], axis=1)
    is_number = np.array([j not in category for j in range(F.shape[1])])
    return make_bins(F, is_number, n_bins)


def repeats_keep(bins: Bins, x: torch.Tensor) -> torch.Tensor:
    """(n, d, K) for x (n, d): True for choices equal to x's value, which keep offers."""
    return (bins.value - x[..., None]).abs() <= TOLERANCE


def labels_of(
    bins: Bins, x: float, x_plus: float, allowed: list[bool] | None = None
) -> list[float]:
    """The labels of a single feature."""
    a, b = (torch.tensor([[v]], dtype=torch.float64) for v in (x, x_plus))
    if allowed is None:
        open_ = bins.real()[None].clone()
        open_[..., :-1] &= ~repeats_keep(bins, a)
    else:
        open_ = torch.tensor([[allowed]])
    return bins.labels(a, b, open_)[0, 0].tolist()


# 19 rows, five bins: 0 holds more than a fifth of the rows (an atom), the others do not
ATOM_AND_TAIL = [0.0] * 16 + [0.2, 0.6, 1.0]


# ---- R_theta: a toy that can be enumerated -------------------------------------------------------
# Columns: a number `a` of 0 .. 10, an immutable `g`, a category `c` of four levels, the last of
# which no accepted row has. Decoded: a, then c.

LEVELS = ("p", "q", "r", "unseen")
RULES: dict[str, dict[str, dict[str, Any]]] = {
    "free": {},
    "directed": {"a": {"direction": "increase"}, "c": {"ordered": True, "direction": "increase"}},
    "stepped": {"a": {"max_step": 3.0, "range": (2.0, 9.0)}},
}


@dataclass
class Toy:
    schema: Schema
    encoder: TableEncoder
    density: RecourseDensity
    case: Case

    def x(self, a: float, g: str, c: str) -> torch.Tensor:
        return torch.as_tensor(self.encoder.features(pd.DataFrame({"a": [a], "g": [g], "c": [c]})))

    def values(self, x: torch.Tensor) -> list[tuple[float, float]]:
        """Every (a, c) that could be meant: values of a in D+ or x's own, all levels."""
        number = {round(v, 9) for v in self.density.bins.value[0].tolist() if not math.isnan(v)}
        if self.density.keep:
            number |= {round(float(x[0, 0]), 9)}
        return list(product(sorted(number), range(len(LEVELS))))

    def probability(self, x: torch.Tensor) -> np.ndarray:
        """exp(log_prob) of each of `values`."""
        pairs = self.values(x)
        x_plus = x.repeat(len(pairs), 1)
        x_plus[:, [0, 2]] = torch.tensor(pairs, dtype=torch.float64)
        return self.density.log_prob(x_plus, x.expand(len(pairs), -1)).exp().numpy()

    def counts(self, x: torch.Tensor, F_plus: np.ndarray, weight: Any = None) -> np.ndarray:
        """How often each of `values` occurs among draws (n, 3)."""
        place = {pair: i for i, pair in enumerate(self.values(x))}
        found = [place[(round(a, 9), int(c))] for a, _, c in F_plus.tolist()]
        return np.bincount(found, weights=weight, minlength=len(place))


def toy(rules: str = "free", *, keep: bool = True, seed: int = 0, sharp: float = 4.0) -> Toy:
    rng = np.random.default_rng(seed)
    n, n_sources = 160, 60
    X = pd.DataFrame(
        {
            "a": np.minimum(rng.poisson(3.5, n), 9).astype(float),
            "g": rng.choice(["u", "v"], n),
            "c": rng.choice(LEVELS[:3], n, p=[0.5, 0.3, 0.2]),
        }
    )
    X.loc[0, "c"], X.loc[1, "a"] = "unseen", 10.0
    X.loc[2, "a"] = 0.0
    changes = RULES[rules]
    features = (
        {"name": "a", "kind": "number", "decimals": 0},
        {"name": "g", "kind": "category", "categories": ("u", "v"), "role": "immutable"},
        {"name": "c", "kind": "category", "categories": LEVELS},
    )
    schema = Schema(
        features=tuple(Feature(**{**f, **changes.get(str(f["name"]), {})}) for f in features)
    )
    case = Case(X, schema, n_sources)
    density = make_density(case, n_bins=6, keep=keep, seed=seed)
    with torch.no_grad():
        density.net.head *= sharp  # an untrained net that is far from uniform
    return Toy(schema, case.encoder, density, case)


def make_density(
    case: Case,
    *,
    n_bins: int,
    keep: bool = True,
    lam: Any = 1.0,
    seed: int = 0,
    config: NetConfig | None = None,
) -> RecourseDensity:
    decoded = np.flatnonzero(~case.rules.immutable)
    is_number = np.array([not f.is_category for f in case.schema])
    bins = make_bins(case.targets.F[:, decoded], is_number[decoded], n_bins)
    n_levels = [len(f.categories) for f in case.schema]
    knots = make_knots(torch.as_tensor(case.F), torch.as_tensor(is_number), n_levels)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = RecourseNet(config or SMALL_NET, knots, torch.as_tensor(decoded), bins.n_choices, lam)
        for start_at_zero in (net.kept, net.bias):  # so that an untrained net uses all it has
            torch.nn.init.normal_(start_at_zero, std=0.5)
    weights = torch.tensor([f.cost_weight for f in case.schema])[decoded]
    return RecourseDensity(net.eval(), bins, case.rules, weights, keep=keep)


def fit(density: RecourseDensity, case: Case, pairs: Any, steps: int, batch: int = 256) -> float:
    """Algorithm 1, lines 4-9, in brief; the loss at the end."""
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    immutable = case.rules.immutable

    def batches() -> Iterator[tuple[torch.Tensor, ...]]:
        while True:
            rows = rng.integers(0, len(pairs), batch)
            drawn = pairs.draw(rows, rng)
            target, *lam = drawn if isinstance(drawn, tuple) else (drawn,)
            x, x_plus = case.F[pairs.source[rows]], case.targets.F[target].copy()
            x_plus[:, immutable] = x[:, immutable]
            yield tuple(map(torch.as_tensor, (x, x_plus, *lam)))

    def loss(pair: tuple[torch.Tensor, ...]) -> torch.Tensor:
        return density.loss(pair[0], pair[1], generator, *pair[2:])

    plan = TrainingPlan(steps=steps, lr=1e-2, eval_every=0)
    stream = batches()
    train(density.net, loss, stream, plan)
    with torch.no_grad():
        return float(np.mean([loss(next(stream)) for _ in range(8)]))


PEOPLE = [(2.0, "u", "p"), (5.0, "v", "q"), (7.5, "u", "unseen"), (0.0, "v", "r")]


# ---- a credit table for GenRe -------------------------------------------------------------------


def credit(n: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "income": rng.integers(10, 90, n),
            "rate": rng.random(n).round(3),
            "home": rng.choice(["own", "rent", "other"], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    return X, (credit_score(X) + rng.normal(0, 0.15, n) > 0.5).astype(int)


def credit_score(X: pd.DataFrame) -> np.ndarray:
    return 1 / (1 + np.exp(-(X["income"].to_numpy() - 50) / 10 + X["rate"].to_numpy()))


def credit_genre(**params: Any) -> GenRe:
    """The paper's method, without a verifier: no refining, and a choice by likelihood."""
    X, _ = credit()
    settings: dict[str, Any] = {
        "gamma": 0.7,
        "temperature": 1.0,
        "margin": 0.5,
        "clean": False,
        "refine": False,
        "select": "likelihood",
        "n_bins": 10,
        "n_draws": 8,
        "net": SMALL_NET,
        "training": Training(steps=2, batch_size=32, patience=None),
    }
    return GenRe(
        credit_score, **({"schema": Schema.infer(X, immutable=["sex"])} | settings | params)
    )
