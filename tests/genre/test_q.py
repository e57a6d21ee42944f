"""Eq. (6): Q, its truncation and its draws, compared with plain loops over raw values."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import torch

from genrecourse.evaluation.example_tables import four_incomes
from genrecourse.genre import pairs as pairs_module
from genrecourse.genre.pairs import cost_blocks, lost_by_cap, make_pairs, q_weights
from tests.support.equations import (
    assert_frequencies,
    dense,
    immutable_number,
    random_case,
    reference_q,
)


def test_q_by_hand() -> None:
    costs = torch.tensor([[0.0, math.log(2.0), math.inf, math.log(4.0)]], dtype=torch.float64)
    q = q_weights(costs, 1.0)[0].tolist()
    assert q == pytest.approx([4 / 7, 2 / 7, 0.0, 1 / 7])
    assert q_weights(torch.full((1, 3), math.inf), 1.0).isnan().all()  # no target at all


def test_q_does_not_overflow_or_vanish() -> None:
    costs = torch.tensor([[1e6, 1e6 + 1.0, 2e6]], dtype=torch.float64)
    q = q_weights(costs, 1.0)[0].tolist()
    assert q == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.e), 0.0])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("lam", [0.5, 5.0])
def test_q_equals_plain_loops(seed: int, lam: float) -> None:
    case = random_case(seed)
    costs = case.costs
    assert np.isfinite(costs).any()
    assert np.isinf(costs).any()
    expected = reference_q(costs, lam)
    q = dense(case.pairs(lam, top_k=1000), *costs.shape)
    np.testing.assert_allclose(q, expected, atol=3e-7)
    reachable = np.isfinite(costs).any(axis=1)
    np.testing.assert_allclose(q.sum(axis=1), reachable, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_q_is_uniform_over_feasible_targets_at_lam_0(seed: int) -> None:
    case = random_case(seed)
    feasible = np.isfinite(case.costs)
    uniform = feasible / np.maximum(feasible.sum(axis=1, keepdims=True), 1)
    np.testing.assert_allclose(dense(case.pairs(0.0, 1000), *feasible.shape), uniform, atol=3e-7)


@pytest.mark.parametrize("seed", range(5))
def test_q_becomes_the_nearest_neighbour_as_lam_grows(seed: int) -> None:
    case = random_case(seed)
    costs = case.costs
    reachable = np.isfinite(costs).any(axis=1)
    nearest = costs.argmin(axis=1)
    at_nearest = [
        dense(case.pairs(lam, 1000), *costs.shape)[np.arange(len(costs)), nearest][reachable]
        for lam in (1.0, 10.0, 100.0, 1e6)
    ]
    assert (np.diff(at_nearest, axis=0) >= -1e-6).all()
    np.testing.assert_allclose(at_nearest[-1], 1.0)


@pytest.mark.parametrize("top_k", [1, 3, 10])
def test_truncation_keeps_the_largest_in_proportion_and_reports_the_rest(top_k: int) -> None:
    case, lam = random_case(1), 0.5
    costs = case.costs
    q = reference_q(costs, lam)
    reachable = np.isfinite(costs).any(axis=1)
    floor = np.sort(q, axis=1)[:, -top_k][:, None]
    kept = np.where(q >= floor, q, 0.0)
    mass = kept.sum(axis=1)
    pairs = case.pairs(lam, top_k)
    assert pairs.index.shape == (reachable.sum(), top_k)
    expected = np.divide(kept, mass[:, None], out=np.zeros_like(q), where=mass[:, None] > 0)
    np.testing.assert_allclose(dense(pairs, *q.shape), expected, atol=3e-7)
    lost = float((1 - mass[reachable]).mean())
    assert lost > 0.05
    assert pairs.lost_by_top_k == pytest.approx(lost, abs=1e-9)
    # most likely first, and the cumulative weight of every row ends at one
    share = np.diff(pairs.cumulative, axis=1, prepend=0)
    assert (np.diff(share, axis=1) <= 1e-6).all()
    assert (pairs.cumulative[:, -1] == 1.0).all()


@pytest.mark.parametrize("top_k", [2, 3, 10])
def test_with_room_for_all_targets_nothing_is_lost(top_k: int) -> None:
    """Without immutables, every target is in the one group; two of them, and room for as many."""
    Z, F, targets, rules, cost = four_incomes()
    pairs = make_pairs(Z, F, targets, rules, cost, lam=1.0, top_k=top_k)
    assert pairs.index.tolist() == [[0, 1], [0, 1]]
    assert pairs.lost_by_top_k == pytest.approx(0.0, abs=1e-12)
    near = 1 / (1 + math.exp(-0.2))  # the other target costs 0.2 more
    np.testing.assert_allclose(pairs.cumulative, [[near, 1.0]] * 2, rtol=1e-6)


@pytest.mark.parametrize("entries", [1, 37, 500])
def test_the_size_of_a_block_changes_nothing(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(2)
    whole = case.pairs(2.0, 10)
    monkeypatch.setattr(pairs_module, "BLOCK_ENTRIES", entries)
    n = case.n_sources
    for rows, members, costs in cost_blocks(
        case.Z[:n], case.F[:n], case.targets, case.rules, case.cost
    ):
        assert costs.shape == (len(rows), len(members))
        assert costs.numel() <= entries or len(rows) == 1
    parts = case.pairs(2.0, 10)
    np.testing.assert_array_equal(parts.source, whole.source)
    np.testing.assert_allclose(
        dense(parts, n, len(case.targets.Z)), dense(whole, n, len(case.targets.Z)), atol=1e-7
    )
    assert parts.lost_by_top_k == pytest.approx(whole.lost_by_top_k, abs=1e-12)


def test_a_source_without_target_is_left_out() -> None:
    case = random_case(3, n_targets=60)
    reachable = np.isfinite(case.costs).any(axis=1)
    assert 0 < (~reachable).sum() < len(reachable)
    pairs = case.pairs(5.0, 10)
    np.testing.assert_array_equal(pairs.source, np.flatnonzero(reachable))
    assert len(pairs) == reachable.sum()
    assert not np.isnan(pairs.cumulative).any()


def test_an_immutable_with_few_values_is_matched_exactly() -> None:
    case = immutable_number([1.0, 2.0, 1.0, 1.1, 2.0, 3.0], sources=2)
    q = dense(case.pairs(0.0, 10), 2, 4)
    np.testing.assert_allclose(q, [[1, 0, 0, 0], [0, 0, 1, 0]])


def test_an_immutable_with_many_values_is_matched_by_bin() -> None:
    # D+ holds 0 .. 79: eight bins of ten. No source's own value occurs in it.
    sources = [4.5, 44.5, -7.0, 99.0]
    case = immutable_number([*sources, *map(float, range(80))], sources=len(sources))
    q = dense(case.pairs(0.0, 100), len(sources), 80)
    for row, first in zip(q, [0, 40, 0, 70], strict=True):
        np.testing.assert_allclose(row[first : first + 10], 0.1, atol=1e-6)
        assert row.sum() == pytest.approx(1.0)


def test_a_missing_immutable_is_matched_with_missing_only() -> None:
    # ... also where the immutable is matched by bin: missing is not in the lowest bin
    sources = [math.nan, 2.5]
    values = [*sources, *map(float, range(80)), math.nan, math.nan]
    case = immutable_number(values, sources=len(sources))
    q = dense(case.pairs(0.0, 100), len(sources), 82)
    np.testing.assert_allclose(q[0], [0.0] * 80 + [0.5, 0.5])
    assert (q[1, 80:] == 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_lost_by_cap_equals_plain_loops(seed: int) -> None:
    case, lam = random_case(seed, n_targets=60), 1.0
    costs = case.costs
    kept = np.random.default_rng(seed).random(costs.shape[1]) < 0.6
    # the targets of one sex all stay, so that some groups lose nothing
    kept |= (case.X["sex"].iloc[case.n_sources :] == "f").to_numpy()
    q = reference_q(costs, lam)
    reachable = np.isfinite(costs).any(axis=1)
    assert not reachable.all()  # who has no target counts neither way
    n = case.n_sources
    lost = lost_by_cap(case.Z[:n], case.F[:n], case.targets, kept, case.rules, case.cost, lam)
    assert lost == pytest.approx(q[reachable][:, ~kept].sum(axis=1).mean(), abs=1e-9)
    assert lost > 0.01


def test_draw_frequencies_match_q() -> None:
    case, lam, rng = random_case(4), 1.0, np.random.default_rng(0)
    q = reference_q(case.costs, lam)
    pairs = case.pairs(lam, 1000)
    for place in (0, len(pairs) // 2, len(pairs) - 1):
        drawn = pairs.draw(np.full(20_000, place), rng)
        expected = q[pairs.source[place]]
        assert_frequencies(np.bincount(drawn, minlength=len(expected)), expected)


def test_draws_of_different_sources_are_their_own() -> None:
    case, rng = random_case(4), np.random.default_rng(0)
    pairs = case.pairs(1e6, 5)  # one target a source
    order = rng.permutation(len(pairs))
    nearest = case.costs.argmin(axis=1)
    np.testing.assert_array_equal(pairs.draw(order, rng), nearest[pairs.source[order]])


MEMORY_SCRIPT = """
import numpy as np, pandas as pd
from genrecourse.rules.book import RuleBook
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.cost import Cost
from genrecourse.genre.pairs import make_pairs
from genrecourse.genre.targets import make_targets
from genrecourse.table.schema import Schema

def megabytes(field):
    with open("/proc/self/status") as lines:
        return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1024

n, n_plus, rng = 22_000, 7_000, np.random.default_rng(0)
numbers = {f"n{j}": rng.random(n + n_plus) for j in range(6)}
levels = {f"c{j}": rng.integers(0, 2, n + n_plus).astype(str) for j in range(7)}
X = pd.DataFrame(numbers | levels)
X.loc[:9, "c0"] = "alone"  # ten sources without a target: the last copy that is made
schema = Schema.infer(X, immutable=["c0", "c1"]).with_feature("n0", direction="increase")
encoder = TableEncoder(schema).fit(X)
rules, cost, F = RuleBook.of_schema(encoder), Cost(encoder), encoder.features(X)
Z = encoder.from_features(F)
targets = make_targets(Z[n:], F[n:], rules, 50)
make_pairs(Z[:50], F[:50], targets, rules, cost, lam=5.0, top_k=1000)  # loads what it needs
before = megabytes("VmRSS")
pairs = make_pairs(Z[:n], F[:n], targets, rules, cost, lam=5.0, top_k=1000)
assert n - 100 < len(pairs) <= n - 10 and pairs.index.shape[1] == 1000
print(megabytes("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_pairs_of_adults_size_need_under_500_mb() -> None:
    """22,000 sources, 7,000 targets: one dense matrix of costs alone would hold 1.2 GB."""
    ran = subprocess.run(
        [sys.executable, "-c", MEMORY_SCRIPT], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) < 500
