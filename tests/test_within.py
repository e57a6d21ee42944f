"""Draws under a request's rules against the exact posterior, by enumeration."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from genrecourse.constraints import Rules
from genrecourse.encoding import Array, TableEncoder
from genrecourse.genre.bins import make_bins
from genrecourse.genre.density import RecourseDensity
from genrecourse.genre.model import NetConfig, RecourseNet, make_knots
from genrecourse.genre.within import sample_within
from genrecourse.noise import KeyedNoise, Words
from genrecourse.requests import RequestRules, compile_constraints
from genrecourse.schema import Feature, Schema

SCHEMA = Schema(
    features=(
        Feature(name="a", kind="number", range=(0, 4), decimals=0),
        Feature(name="sex", kind="category", categories=("f", "m"), role="immutable"),
        Feature(name="b", kind="number", range=(0, 4), decimals=0, cost_weight=0.5),
        Feature(name="c", kind="category", categories=("x", "y", "z"), missing=True),
        Feature(name="d", kind="number", missing=True),
    )
)
NAMES = SCHEMA.names
GRID = [[0, 1, 3, 4], ["f", "m"], [0, 3, 4], ["x", "y", "z"], [0.0, 0.25, 1.0]]
TABLE = pd.DataFrame(list(product(*GRID)), columns=NAMES)
ENCODER = TableEncoder(SCHEMA).fit(TABLE)
RULES = Rules(ENCODER)
X = (2, "f", 1, "y", 0.6)  # a, b and d hold values that nobody else has
STREAMS = 400  # independent sets of particles


def untrained(strength: float, seed: int = 0, keep: bool = True) -> RecourseDensity:
    """A random net; the stronger, the more each feature hangs on those before it."""
    F = ENCODER.features(TABLE)
    decoded = np.flatnonzero(~RULES.immutable)
    is_number = np.array([not f.is_category for f in SCHEMA])
    bins = make_bins(F[:, decoded], is_number[decoded], n_bins=10)
    n_levels = [len(f.categories) for f in SCHEMA]
    knots = make_knots(torch.as_tensor(F), torch.as_tensor(is_number), n_levels)
    config = NetConfig(width=16, heads=2, feedforward=16, encoder_layers=1, decoder_layers=1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = RecourseNet(config, knots, torch.as_tensor(decoded), bins.n_choices, 0.5)
        with torch.no_grad():
            net.head.mul_(strength)
    weights = torch.tensor([f.cost_weight for f in SCHEMA])[decoded]
    return RecourseDensity(net.eval(), bins, RULES, weights, keep=keep)


class Streams(KeyedNoise):
    """Every row has noise of its own, however alike the rows are."""

    def keys(self, rows: np.ndarray) -> Words:
        return super().keys(np.arange(self.seed * len(rows), (self.seed + 1) * len(rows))[:, None])


def request_of(constraints: Any, x: tuple[Any, ...] = X, n: int = 1) -> tuple[Array, RequestRules]:
    rows = pd.DataFrame([x] * n, columns=NAMES)
    return ENCODER.features(rows), compile_constraints(constraints, ENCODER, RULES, rows)


def everything(density: RecourseDensity, x: Array) -> Array:
    """Every x_plus that R knows."""
    choices = density.choices(torch.as_tensor(x))[0].numpy()
    open_ = density.allowed(torch.as_tensor(x))[0].numpy()
    F_plus = []
    for values in product(*(v[o] for v, o in zip(choices, open_, strict=True))):
        row = x[0].copy()
        row[density.decoded.numpy()] = values
        F_plus.append(row)
    return np.array(F_plus)


def posterior(
    density: RecourseDensity, constraints: Any, x: tuple[Any, ...] = X
) -> dict[Any, float]:
    F, request = request_of(constraints, x)
    F_plus = everything(density, F)
    given = torch.as_tensor(F.repeat(len(F_plus), axis=0))
    p = density.log_prob(torch.as_tensor(F_plus), given).exp().numpy()
    assert p.sum() == pytest.approx(1.0, abs=1e-5)
    p = np.where(request.take(np.zeros(len(F_plus), dtype=int)).feasible(F, F_plus), p, 0.0)
    return {key(row): one for row, one in zip(F_plus, p / p.sum(), strict=True)}


def key(row: Array) -> tuple[float, ...]:
    return tuple(np.round(np.nan_to_num(row, nan=-1.0), 6))


def variation(found: Array, expected: dict[Any, float]) -> float:
    """Total variation between draws (n, d) and a distribution."""
    rows, counts = np.unique(
        np.round(np.nan_to_num(found, nan=-1.0), 6), axis=0, return_counts=True
    )
    seen = {tuple(row): count / len(found) for row, count in zip(rows, counts, strict=True)}
    return 0.5 * sum(abs(seen.get(k, 0.0) - expected.get(k, 0.0)) for k in {*seen, *expected})


def drawn(density: RecourseDensity, constraints: Any, n: int = 64, x: tuple[Any, ...] = X) -> Array:
    F, request = request_of(constraints, x, STREAMS)
    draws = sample_within(density, F, n, request, temperature=1.0, noise=Streams(0))
    return draws.F


CASES: dict[str, Any] = {
    "nothing": {},
    "lock the first": {"lock": ["a"]},
    "lock the last": {"lock": ["d"]},
    "lock two late ones": {"lock": ["c", "d"]},
    "range": {"ranges": {"d": [0.9, 1.0]}},
    "values": {"allowed": {"c": ["z"], "b": [0, 4]}},
    "directions": {"increase": ["a"], "decrease": ["d"]},
    "step": {"max_step": {"a": 1, "b": 1}},
    "one change": {"max_changes": 1},
    "two changes": {"max_changes": 2},
    "cost": {"max_cost": 0.5},
    "order": {"relations": ["b <= a"]},
    "equal": {"relations": ["a = b"]},
    "if then": {"relations": ["if a > 2 then c = z", "if c = z then d >= 0.5"]},
    "all at once": {
        "relations": ["b <= a", "if c = x then d = 1"],
        "max_changes": 3,
        "max_cost": 1.8,
        "lock": [],
        "increase": ["b"],
    },
}
