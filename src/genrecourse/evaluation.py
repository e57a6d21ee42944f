"""The protocol: one case (data, labels, h, judge, people) for a seed, and how a method is scored.

A seed decides the forest, the drawn labels, h, the test rows and the method. `nested=True` makes
the same case from training rows alone, for development: nothing of it touches a test row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.classifier import Classifier, MLPConfig, fit_mlp
from genrecourse.constraints import Rules
from genrecourse.datasets import Dataset, load_dataset
from genrecourse.encoding import TOLERANCE, TableEncoder
from genrecourse.genre.pairs import blocks, make_targets
from genrecourse.judge import Judge
from genrecourse.metrics import METRICS, Outcome
from genrecourse.schema import Schema


@dataclass(frozen=True)
class Case:
    """What the protocol hands out. A method may see X, y, h and schema; the judge is for us."""

    name: str
    seed: int
    schema: Schema
    X: pd.DataFrame  # training rows
    y: np.ndarray  # labels drawn from the gold forest
    h: Classifier
    people: pd.DataFrame  # rejected test rows
    judge: Judge
    encoder: TableEncoder
    h_accuracy: float  # on drawn test labels


def make_case(
    name: str,
    seed: int,
    *,
    rows: int | None = 200,
    nested: bool = False,
    h_config: MLPConfig | None = None,
) -> Case:
    """Sections 1-4 of the protocol. rows: how many rejected test rows; None: all of them."""
    data = load_dataset(name, seed=seed)
    X_train, y_train, X_test, y_test = _parts(data, seed, nested)
    encoder = TableEncoder(data.schema).fit(X_train)
    Z_train, Z_test = encoder.encode(X_train), encoder.encode(X_test)
    judge = Judge(seed).fit(np.concatenate([Z_train, Z_test]), np.concatenate([y_train, y_test]))
    rng = np.random.default_rng([seed, 1])
    drawn = (rng.random(len(X_train)) < judge.probability(Z_train)).astype(int)
    drawn_test = (rng.random(len(X_test)) < judge.probability(Z_test)).astype(int)
    h = fit_mlp(X_train, drawn, data.schema, config=h_config or data.h_config, seed=seed)
    accepted = h.accepts(X_test)
    rejected = rng.permutation(np.flatnonzero(~accepted))[:rows]
    return Case(
        name,
        seed,
        data.schema,
        X_train,
        drawn,
        h,
        X_test.iloc[rejected],
        judge,
        encoder,
        float((accepted == drawn_test).mean()),
    )


def _parts(
    data: Dataset, seed: int, nested: bool
) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    if not nested:
        return data.X_train, data.y_train.to_numpy(), data.X_test, data.y_test.to_numpy()
    order = np.random.default_rng([seed, 2]).permutation(len(data.X_train))
    cut = len(order) * 3 // 4
    fit, test = order[:cut], order[cut:]
    X, y = data.X_train, data.y_train.to_numpy()
    return X.iloc[fit], y[fit], X.iloc[test], y[test]


def measure(case: Case, X_plus: pd.DataFrame) -> dict[str, np.ndarray]:
    """Every metric, one number a person."""
    outcome = Outcome(
        case.encoder.features(case.people),
        case.encoder.features(X_plus),
        case.h.accepts(X_plus),
        case.encoder,
        case.judge,
    )
    return {name: metric(outcome) for name, (metric, _) in METRICS.items()}


def ceiling(case: Case) -> pd.DataFrame:
    """For each person the nearest training row that gold, LOF and h all accept. Reads the gold:
    a bound on what copying rows can reach, never a method."""
    Z = case.encoder.encode(case.X)
    good = case.judge.valid(Z) & case.judge.inlier(Z) & case.h.accepts(case.X)
    rules = Rules(case.encoder)
    targets = make_targets(Z[good], case.encoder.to_features(Z[good]), rules, n_bins=10**9)
    F = case.encoder.features(case.people)
    F_plus = F.copy()
    for rows, members, costs in blocks(
        case.encoder.from_features(F), F, targets, case.encoder, rules
    ):
        best, place = costs.min(dim=1)
        found = np.isfinite(best.numpy())
        F_plus[rows[found]] = targets.F[members[place.numpy()[found]]]
    return case.encoder.decode(case.encoder.from_features(F_plus), like=case.people)


def summarise(values: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: float(v.mean()) for name, v in values.items()} | {
        "n": len(next(iter(values.values())))
    }


__all__ = ["TOLERANCE", "Case", "ceiling", "make_case", "measure", "summarise"]
