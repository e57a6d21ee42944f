"""Theorems 4.1 and 4.2: E_Q is a consistent estimate of E_R."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from genrecourse.genre import pairs as pairs_module
from genrecourse.genre.pairs import cost_blocks, q_weights
from genrecourse.genre.targets import make_targets
from genrecourse.rules.book import RuleBook
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.schema import Feature, Schema
from tests.support.equations import N_BINS

# A case with a known R. Accepted people, P(x | y+): x1 uniform and x2 of density 2 x2, both on
# [0, 1]. Valid: x1 + x2 > 1. Cost: L1. So R(x+ | x) is proportional to
# exp(-lam |x1+ - x1| - lam |x2+ - x2|) * 2 x2+ * [x1+ + x2+ > 1].

KNOWN_LAM, KNOWN_X = 2.0, np.array([0.3, 0.4])


SCHEMA = Schema(features=(Feature(name="x1", kind="number"), Feature(name="x2", kind="number")))
ENCODER = TableEncoder(SCHEMA).fit(pd.DataFrame({"x1": [0.0, 1.0], "x2": [0.0, 1.0]}))
RULES, COST = RuleBook.of_schema(ENCODER), Cost(ENCODER)


def _accepted(n: int, rng: np.random.Generator, cut: float = 1.0) -> np.ndarray:
    """n rows from P(x | y+) that h accepts; cut = 1: h and P(y+ | x) > 0.5 agree."""
    rows = np.zeros((0, 2))
    while len(rows) < n:
        new = np.stack([rng.random(4 * n), np.sqrt(rng.random(4 * n))], axis=1)
        rows = np.concatenate([rows, new[new.sum(axis=1) > cut]])
    return rows[:n]


def _expected_under_r() -> np.ndarray:
    """E_R of (x1, x2, C): Gauss-Legendre on the pieces on which the integrand is smooth."""
    nodes, weights = np.polynomial.legendre.leggauss(40)

    def piece(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
        return low + (high - low) * (nodes + 1) / 2, weights * (high - low) / 2

    total, mass = np.zeros(3), 0.0
    for low, high in [(0.0, KNOWN_X[0]), (KNOWN_X[0], 1 - KNOWN_X[1]), (1 - KNOWN_X[1], 1.0)]:
        for x1, w1 in zip(*piece(low, high), strict=True):
            corner = max(1 - x1, KNOWN_X[1])
            for x2, w2 in (piece(1 - x1, corner), piece(corner, 1.0)):
                cost = abs(x1 - KNOWN_X[0]) + np.abs(x2 - KNOWN_X[1])
                r = w1 * w2 * np.exp(-KNOWN_LAM * cost) * 2 * x2
                mass += r.sum()
                total += [r.sum() * x1, (r * x2).sum(), (r * cost).sum()]
    return total / mass


def _expected_under_q(rows: np.ndarray) -> np.ndarray:
    """E_Q of (x1, x2, C), by the library."""
    targets = make_targets(rows, rows, RULES, N_BINS)
    x = KNOWN_X[None, :]
    ((_, members, costs),) = cost_blocks(x, x, targets, RULES, COST)
    q = q_weights(costs, KNOWN_LAM)[0].numpy()
    return np.array([*(q @ rows[members]), q @ costs[0].numpy()])


@pytest.fixture
def one_large_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs_module, "BLOCK_ENTRIES", 10**9)


@pytest.mark.usefixtures("one_large_block")
def test_theorem_1_q_estimates_r_where_h_is_right() -> None:
    rng, truth = np.random.default_rng(0), _expected_under_r()
    right = np.array([_expected_under_q(_accepted(20_000, rng)) for _ in range(20)])
    error = right.std(axis=0, ddof=1) / math.sqrt(len(right))
    assert (np.abs(right.mean(axis=0) - truth) < 4 * error).all()
    assert (np.abs(right.mean(axis=0) - truth) < 0.002).all()
    # and where h disagrees with P(y+ | x) > 0.5 no number of rows helps: the theorem's condition
    wrong = _expected_under_q(_accepted(100_000, rng, cut=0.8))
    assert (np.abs(wrong - truth) > 0.02).all()


@pytest.mark.usefixtures("one_large_block")
def test_theorem_2_the_squared_error_falls_as_one_over_the_targets() -> None:
    """... and so the norm itself falls as N+^(-1/2), not as 1/N+ as the paper words it."""
    rng, truth = np.random.default_rng(0), _expected_under_r()[:2]
    sizes, replicates = np.array([50, 100, 200, 400, 800, 1600, 3200]), 300
    squared = np.array(
        [
            [
                ((_expected_under_q(_accepted(n, rng))[:2] - truth) ** 2).sum()
                for _ in range(replicates)
            ]
            for n in sizes
        ]
    )
    slope = np.polyfit(np.log(sizes), np.log(squared.mean(axis=1)), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.15)
    slope_of_norm = np.polyfit(np.log(sizes), np.log(np.sqrt(squared).mean(axis=1)), 1)[0]
    assert slope_of_norm == pytest.approx(-0.5, abs=0.075)
