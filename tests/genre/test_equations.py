"""A test for each equation and algorithm line; docs/equations.md says which is which.

What the library computes by blocks, masks and caches is compared with the same thing computed
another way: plain loops over raw values, an enumeration, a closed form, a quadrature.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from genrecourse import methods
from genrecourse.genre import any_lam as any_lam_module
from genrecourse.genre import bins as bins_module
from genrecourse.genre import pairs as pairs_module
from genrecourse.genre import sample as sample_module
from genrecourse.genre.any_lam import (
    LAM_RANGE,
    AnyLamPairs,
    draw_from_q,
    make_any_lam_pairs,
)
from genrecourse.genre.bins import Bins, make_bins
from genrecourse.genre.density import RecourseDensity
from genrecourse.genre.model import NetConfig, RecourseNet, make_knots
from genrecourse.genre.pairs import (
    Pairs,
    Targets,
    blocks,
    lost_by_cap,
    make_pairs,
    make_targets,
    q_weights,
)
from genrecourse.genre.sample import Draws, sample
from genrecourse.genre.select import SHORTLIST, expected_score, select
from genrecourse.methods import _diffusion as diffusion
from genrecourse.methods.genre import GenRe, Training
from genrecourse.model.training import TrainingPlan, train
from genrecourse.rules.constraints import Rules
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.noise import KeyedNoise
from genrecourse.table.schema import Feature, Schema
from genrecourse.trust.verifier import Verifier

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
        self.rules = Rules(self.encoder)
        self.F = self.encoder.features(self.X)
        self.Z = self.encoder.from_features(self.F)
        self.targets = make_targets(
            self.Z[self.n_sources :], self.F[self.n_sources :], self.rules, N_BINS
        )

    def pairs(self, lam: float, top_k: int) -> Pairs:
        n = self.n_sources
        return make_pairs(
            self.Z[:n], self.F[:n], self.targets, self.encoder, self.rules, lam=lam, top_k=top_k
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
    if pd.isna(b) or _forbidden(feature, a, b):
        return math.inf
    if feature.is_category or pd.isna(a):
        return feature.cost_weight
    return float(feature.cost_weight * abs(a - b) / spans[feature.name])


def _forbidden(feature: Feature, a: Any, b: Any) -> bool:
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


# ---- Eq. (6): Q ---------------------------------------------------------------------------------


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


@pytest.mark.parametrize("entries", [1, 37, 500])
def test_the_size_of_a_block_changes_nothing(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(2)
    whole = case.pairs(2.0, 10)
    monkeypatch.setattr(pairs_module, "BLOCK_ENTRIES", entries)
    n = case.n_sources
    for rows, members, costs in blocks(
        case.Z[:n], case.F[:n], case.targets, case.encoder, case.rules
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


def _immutable_number(values: list[float], sources: int) -> Case:
    n = len(values)
    X = pd.DataFrame({"fixed": values, "free": np.linspace(0.0, 1.0, n)})
    schema = Schema(
        features=(
            Feature(name="fixed", kind="number", role="immutable", missing=True),
            Feature(name="free", kind="number"),
        )
    )
    return Case(X, schema, sources)


def test_an_immutable_with_few_values_is_matched_exactly() -> None:
    case = _immutable_number([1.0, 2.0, 1.0, 1.1, 2.0, 3.0], sources=2)
    q = dense(case.pairs(0.0, 10), 2, 4)
    np.testing.assert_allclose(q, [[1, 0, 0, 0], [0, 0, 1, 0]])


def test_an_immutable_with_many_values_is_matched_by_bin() -> None:
    # D+ holds 0 .. 79: eight bins of ten. No source's own value occurs in it.
    sources = [4.5, 44.5, -7.0, 99.0]
    case = _immutable_number([*sources, *map(float, range(80))], sources=len(sources))
    q = dense(case.pairs(0.0, 100), len(sources), 80)
    for row, first in zip(q, [0, 40, 0, 70], strict=True):
        np.testing.assert_allclose(row[first : first + 10], 0.1, atol=1e-6)
        assert row.sum() == pytest.approx(1.0)


def test_a_missing_immutable_is_matched_with_missing_only() -> None:
    # ... also where the immutable is matched by bin: missing is not in the lowest bin
    sources = [math.nan, 2.5]
    values = [*sources, *map(float, range(80)), math.nan, math.nan]
    case = _immutable_number(values, sources=len(sources))
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
    lost = lost_by_cap(case.Z[:n], case.F[:n], case.targets, kept, case.encoder, case.rules, lam)
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


# ---- Eq. (6) at any lam -------------------------------------------------------------------------

LAMS = (0.5, 1.0, 2.5, 5.0, 10.0)


@pytest.mark.parametrize("lam", LAMS)
def test_draws_at_a_lam_of_their_own_match_q(lam: float) -> None:
    """An even grid of u instead of chance: each target comes as often as Q says, to within one."""
    case, n = random_case(4), 2000
    u = torch.arange(1, n + 1, dtype=torch.float64) / n
    q = reference_q(case.costs, lam)
    reach = np.isfinite(case.costs).sum(axis=1)
    for i in np.argsort(reach)[[-1, -2, -10]]:
        assert reach[i] > 4
        costs = torch.as_tensor(case.costs[[i]]).expand(n, -1).contiguous()
        drawn = draw_from_q(costs, torch.full((n,), lam, dtype=torch.float64), u)
        counts = np.bincount(drawn, minlength=q.shape[1])
        assert np.abs(counts - n * q[i]).max() <= 1 + 1e-6
        assert (counts[q[i] == 0] == 0).all()


def _any_lam_pairs(case: Case, n_draws: int, seed: int = 0) -> AnyLamPairs:
    n, rng = case.n_sources, np.random.default_rng(seed)
    known = (case.Z[:n], case.F[:n], case.targets, case.encoder, case.rules)
    return make_any_lam_pairs(*known, n_draws=n_draws, rng=rng)


def _surprise(case: Case, pairs: AnyLamPairs, which: np.ndarray, factor: float) -> float:
    """By how many standard deviations the draws cost more than Q at factor * lam expects."""
    gap, variance = 0.0, 0.0
    for i, index, lam, mine in zip(pairs.source, pairs.index, pairs.lam, which, strict=True):
        costs, index, lam = case.costs[i], index[mine], lam[mine]
        q = reference_q(np.repeat(costs[None], len(lam), axis=0), factor * lam[:, None])
        finite = np.where(np.isfinite(costs), costs, 0.0)
        gap += float((costs[index] - q @ finite).sum())  # infinite if a draw is not feasible
        variance += float((q @ finite**2 - (q @ finite) ** 2).sum())
    return gap / variance**0.5


def test_pairs_of_any_lam_follow_q_at_their_own_lam() -> None:
    case = random_case(4, n_sources=120)
    pairs = _any_lam_pairs(case, 64)
    np.testing.assert_array_equal(pairs.source, case.pairs(1.0, 10).source)
    assert len(pairs) < case.n_sources  # who has no target is left out
    assert pairs.index.shape == pairs.lam.shape == (len(pairs), 64)
    low, high = np.log(LAM_RANGE)
    share = (np.log(pairs.lam) - low) / (high - low)
    assert stats.kstest(share.reshape(-1), "uniform").pvalue > 0.001
    for part in (share < 0.5, share >= 0.5):
        assert abs(_surprise(case, pairs, part, 1.0)) < 3.5
        assert _surprise(case, pairs, part, 2.0) > 7  # and another lam would be seen
        assert _surprise(case, pairs, part, 0.5) < -7


def test_pairs_of_any_lam_do_not_depend_on_the_size_of_a_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = random_case(4)
    whole = _any_lam_pairs(case, 8)
    monkeypatch.setattr(pairs_module, "BLOCK_ENTRIES", 300)
    parts = _any_lam_pairs(case, 8)
    np.testing.assert_array_equal(whole.index, parts.index)
    np.testing.assert_array_equal(whole.lam, parts.lam)


def test_pairs_of_any_lam_are_drawn_ahead_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    case, rng = random_case(4), np.random.default_rng(0)
    assert _any_lam_pairs(case, 50).index.shape[1] == 50
    monkeypatch.setattr(any_lam_module, "MOST_PAIRS", 130)  # 40 sources
    assert _any_lam_pairs(case, 50).index.shape[1] == 3
    pairs = _any_lam_pairs(case, 3)
    rows = rng.integers(0, len(pairs), 500)
    index, lam = pairs.draw(rows, rng)
    drawn = set(zip(rows.tolist(), index.tolist(), lam.tolist(), strict=True))
    assert drawn == {
        (i, int(pairs.index[i, r]), float(pairs.lam[i, r]))
        for i in range(len(pairs))
        for r in range(3)
        if (i, int(pairs.index[i, r]), float(pairs.lam[i, r])) in drawn
    }
    assert len(drawn) > 1.5 * len(pairs)  # not always the same one


MEMORY_SCRIPT = """
import numpy as np, pandas as pd
from genrecourse.rules.constraints import Rules
from genrecourse.table.encoding import TableEncoder
from genrecourse.genre.pairs import make_pairs, make_targets
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
rules, F = Rules(encoder), encoder.features(X)
Z = encoder.from_features(F)
targets = make_targets(Z[n:], F[n:], rules, 50)
make_pairs(Z[:50], F[:50], targets, encoder, rules, lam=5.0, top_k=1000)  # loads what it needs
before = megabytes("VmRSS")
pairs = make_pairs(Z[:n], F[:n], targets, encoder, rules, lam=5.0, top_k=1000)
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


# ---- Theorems 4.1 and 4.2: E_Q is a consistent estimate of E_R -----------------------------------
# A case with a known R. Accepted people, P(x | y+): x1 uniform and x2 of density 2 x2, both on
# [0, 1]. Valid: x1 + x2 > 1. Cost: L1. So R(x+ | x) is proportional to
# exp(-lam |x1+ - x1| - lam |x2+ - x2|) * 2 x2+ * [x1+ + x2+ > 1].

KNOWN_LAM, KNOWN_X = 2.0, np.array([0.3, 0.4])


def _known_encoder() -> TableEncoder:
    schema = Schema(features=(Feature(name="x1", kind="number"), Feature(name="x2", kind="number")))
    return TableEncoder(schema).fit(pd.DataFrame({"x1": [0.0, 1.0], "x2": [0.0, 1.0]}))


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


def _expected_under_q(rows: np.ndarray, encoder: TableEncoder) -> np.ndarray:
    """E_Q of (x1, x2, C), by the library."""
    rules = Rules(encoder)
    targets = make_targets(rows, rows, rules, N_BINS)
    x = KNOWN_X[None, :]
    ((_, members, costs),) = blocks(x, x, targets, encoder, rules)
    q = q_weights(costs, KNOWN_LAM)[0].numpy()
    return np.array([*(q @ rows[members]), q @ costs[0].numpy()])


@pytest.fixture
def one_large_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs_module, "BLOCK_ENTRIES", 10**9)


@pytest.mark.usefixtures("one_large_block")
def test_theorem_1_q_estimates_r_where_h_is_right() -> None:
    encoder, rng, truth = _known_encoder(), np.random.default_rng(0), _expected_under_r()
    right = np.array([_expected_under_q(_accepted(20_000, rng), encoder) for _ in range(20)])
    error = right.std(axis=0, ddof=1) / math.sqrt(len(right))
    assert (np.abs(right.mean(axis=0) - truth) < 4 * error).all()
    assert (np.abs(right.mean(axis=0) - truth) < 0.002).all()
    # and where h disagrees with P(y+ | x) > 0.5 no number of rows helps: the theorem's condition
    wrong = _expected_under_q(_accepted(100_000, rng, cut=0.8), encoder)
    assert (np.abs(wrong - truth) > 0.02).all()


@pytest.mark.usefixtures("one_large_block")
def test_theorem_2_the_squared_error_falls_as_one_over_the_targets() -> None:
    """... and so the norm itself falls as N+^(-1/2), not as 1/N+ as the paper words it."""
    encoder, rng, truth = _known_encoder(), np.random.default_rng(0), _expected_under_r()[:2]
    sizes, replicates = np.array([50, 100, 200, 400, 800, 1600, 3200]), 300
    squared = np.array(
        [
            [
                ((_expected_under_q(_accepted(n, rng), encoder)[:2] - truth) ** 2).sum()
                for _ in range(replicates)
            ]
            for n in sizes
        ]
    )
    slope = np.polyfit(np.log(sizes), np.log(squared.mean(axis=1)), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.15)
    slope_of_norm = np.polyfit(np.log(sizes), np.log(np.sqrt(squared).mean(axis=1)), 1)[0]
    assert slope_of_norm == pytest.approx(-0.5, abs=0.075)


# ---- Eq. (8): bins and soft labels ---------------------------------------------------------------


def _bins(*columns: list[float], n_bins: int = 5, category: tuple[int, ...] = ()) -> Bins:
    F = np.stack([np.asarray(column, dtype=float) for column in columns], axis=1)
    is_number = np.array([j not in category for j in range(F.shape[1])])
    return make_bins(F, is_number, n_bins)


def _labels(bins: Bins, x: float, x_plus: float, allowed: list[bool] | None = None) -> list[float]:
    """The labels of a single feature."""
    a, b = (torch.tensor([[v]], dtype=torch.float64) for v in (x, x_plus))
    if allowed is None:
        open_ = bins.real()[None].clone()
        open_[..., :-1] &= ~bins.repeats_keep(a)
    else:
        open_ = torch.tensor([[allowed]])
    return bins.labels(a, b, open_)[0, 0].tolist()


# 19 rows, five bins: 0 holds more than a fifth of the rows (an atom), the others do not
ATOM_AND_TAIL = [0.0] * 16 + [0.2, 0.6, 1.0]


def test_widths_are_half_the_gap_to_the_neighbours() -> None:
    bins = _bins(ATOM_AND_TAIL)
    assert bins.value[0].tolist() == [0.0, 0.2, 0.6, 1.0]
    assert bins.hard[0].tolist() == [True, False, False, False]
    # half the mean of (0.2, 0.4), of (0.4, 0.4), of (0.4,): an atom has no width
    assert bins.width[0].tolist() == pytest.approx([0.0, 0.15, 0.2, 0.2])


def test_an_atom_holds_a_tenth_of_the_rows() -> None:
    tail = np.linspace(0.1, 1.0, 90).tolist()
    assert _bins([0.0] * 10 + tail, n_bins=20).hard[0].tolist() == [True] + [False] * 19
    assert not _bins([0.0] * 9 + tail, n_bins=20).hard.any()  # though it has a bin of its own


def test_soft_labels_by_hand() -> None:
    def kernel(gap: float, width: float) -> float:
        return math.exp(-(gap**2) / (2 * width**2)) / width

    bins = _bins(ATOM_AND_TAIL)
    # x = 0.5 lies in the bin of 0.6: keep has that bin's height and reaches three times as far
    assert bins_module.KEEP_REACH == 3
    keep = kernel(0.2 / 3, 0.2)
    by_hand = [0.0, kernel(0.1, 0.15), kernel(0.3, 0.2), kernel(0.7, 0.2), keep]
    by_hand = [k / sum(by_hand) for k in by_hand]
    assert _labels(bins, x=0.5, x_plus=0.3) == pytest.approx(by_hand, abs=1e-12)
    assert by_hand[0] == 0  # the atom receives nothing from its neighbours
    # a choice that is closed has no share, the others keep theirs in proportion
    rest = [0.0, by_hand[1], 0.0, by_hand[3], by_hand[4]]
    rest = [k / sum(rest) for k in rest]
    closed = _labels(bins, 0.5, 0.3, allowed=[True, True, False, True, True])
    assert closed == pytest.approx(rest, abs=1e-12)


def test_labels_of_atoms_categories_and_what_stays_are_exact() -> None:
    bins = _bins(ATOM_AND_TAIL)
    assert _labels(bins, x=0.5, x_plus=0.0) == [1, 0, 0, 0, 0]
    assert _labels(bins, x=0.0, x_plus=0.0) == [0, 0, 0, 0, 1]  # keep, exactly
    assert _labels(bins, x=0.2, x_plus=0.2) == [0, 0, 0, 0, 1]
    assert _labels(bins, x=0.37, x_plus=0.37) == [0, 0, 0, 0, 1]
    # x on an atom: a value close by is not "as x has it"
    assert _labels(bins, x=0.0, x_plus=0.01)[-1] == 0
    levels = _bins([0.0, 1.0, 1.0, 3.0], category=(0,))
    assert levels.value[0].tolist() == [0.0, 1.0, 3.0]
    assert _labels(levels, x=0.0, x_plus=3.0) == [0, 0, 1, 0]
    assert _labels(levels, x=1.0, x_plus=1.0) == [0, 0, 0, 1]


def test_labels_of_missing_values() -> None:
    assert _bins([0.3, math.nan, 0.7]).value[0].tolist() == [0.3, 0.7]  # not to be moved to
    bins = _bins([*ATOM_AND_TAIL, math.nan, math.nan])
    assert bins.value[0].tolist() == [0.0, 0.2, 0.6, 1.0]
    assert _labels(bins, x=math.nan, x_plus=math.nan) == [0, 0, 0, 0, 1]
    assert _labels(bins, x=math.nan, x_plus=0.0) == [1, 0, 0, 0, 0]
    soft = _labels(bins, x=math.nan, x_plus=0.3)
    assert sum(soft) == pytest.approx(1.0)
    assert soft[0] == soft[-1] == 0
    nothing = _bins([math.nan, math.nan])
    assert _labels(nothing, x=0.4, x_plus=0.4) == [0, 1]


@pytest.mark.parametrize("seed", range(3))
def test_labels_sum_to_one_on_what_is_allowed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    N = 400
    F = np.stack(
        [
            rng.random(N),
            np.where(rng.random(N) < 0.6, 0.0, rng.random(N)),
            rng.integers(0, 4, N),
            rng.integers(0, 6, N) / 5,
        ],
        axis=1,
    )
    bins = make_bins(F, np.array([True, True, False, True]), 10)
    x, x_plus = torch.as_tensor(F[:200]), torch.as_tensor(F[200:])
    allowed = bins.real().expand(200, -1, -1).clone()
    allowed[..., :-1] &= ~bins.repeats_keep(x)
    label = bins.labels(x, x_plus, allowed)
    torch.testing.assert_close(label.sum(-1), torch.ones(200, 4).double())
    assert (label >= 0).all()
    assert (label[~allowed] == 0).all()
    # category, atom, unchanged: one-hot, on the choice that is this very value
    same = x == x_plus
    on_atom = ((bins.value == x_plus[..., None]) & bins.hard).any(-1)
    assert on_atom[:, 1].any()
    assert (~on_atom[:, 1]).any()
    sharp = label[same | on_atom]
    assert ((sharp == 0) | (sharp == 1)).all()
    assert (label[..., -1][same] == 1).all()
    # no mass from others onto an atom
    soft = ~(same | on_atom)
    assert (label[..., :-1][soft[..., None] & bins.hard] == 0).all()
    # and random further masks: what is forbidden gets nothing, the rest sums to one or is empty
    closed = allowed & torch.as_tensor(rng.random(allowed.shape) < 0.5)
    label = bins.labels(x, x_plus, closed)
    assert (label[~closed] == 0).all()
    total = label.sum(-1)
    assert (((total - 1).abs() < 1e-12) | (total == 0)).all()


def test_quantile_bins_hold_values_that_accepted_rows_have() -> None:
    rng = np.random.default_rng(0)
    column = np.where(rng.random(2000) < 0.4, 0.0, rng.gamma(2.0, 0.1, 2000))
    bins = make_bins(column[:, None], np.array([True]), 20)
    value = bins.value[0].numpy()
    assert len(value) == 20
    assert np.isin(value, column).all()
    assert (np.diff(value) > 0).all()
    assert value[bins.hard[0].numpy()].tolist() == [0.0]
    # the other 19 share the other rows evenly
    rest = column[column > 0]
    middle = (value[1:-1] + value[2:]) / 2
    shares = np.bincount(np.searchsorted(middle, rest)) / len(rest)
    np.testing.assert_allclose(shares, 1 / 19, rtol=0.3)


def test_few_values_get_one_bin_each() -> None:
    column = [0.0, 0.25, 0.25, 0.5, 0.9]
    assert _bins(column, n_bins=4).value[0].tolist() == [0.0, 0.25, 0.5, 0.9]
    assert len(_bins(column, n_bins=3).value[0]) <= 3
    rare = [0.0] * 14 + [0.2] * 4 + [0.5, 0.9]  # two quantiles of the rest would both be 0.2
    assert _bins(rare, n_bins=4).value[0].tolist() == [0.0, 0.2, 0.5, 0.9]


def test_the_papers_uniform_grid() -> None:
    F = np.array([[0.0, 0.0], [0.1, 1.0], [0.3, 1.0], [1.0, 2.0]])
    bins = make_bins(F, np.array([True, False]), 4, kind="uniform")
    assert bins.value[0].tolist() == pytest.approx([0.125, 0.375, 0.625, 0.875])  # bin centres
    assert bins.width[0].tolist() == pytest.approx([0.25] * 4)  # bin widths
    assert not bins.hard[0].any()
    assert bins.value[1, :3].tolist() == [0.0, 1.0, 2.0]
    assert bins.hard[1].tolist() == [True, True, True, False]


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
    case: Case, *, n_bins: int, keep: bool = True, lam: Any = 1.0, seed: int = 0
) -> RecourseDensity:
    decoded = np.flatnonzero(~case.rules.immutable)
    is_number = np.array([not f.is_category for f in case.schema])
    bins = make_bins(case.targets.F[:, decoded], is_number[decoded], n_bins)
    n_levels = [len(f.categories) for f in case.schema]
    knots = make_knots(torch.as_tensor(case.F), torch.as_tensor(is_number), n_levels)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = RecourseNet(SMALL_NET, knots, torch.as_tensor(decoded), bins.n_choices, lam)
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


@pytest.mark.parametrize("trained", [False, True], ids=["untrained", "trained"])
@pytest.mark.parametrize("keep", [True, False], ids=["keep", "plain-bins"])
@pytest.mark.parametrize("rules", RULES)
def test_r_theta_enumerates_to_one(rules: str, keep: bool, trained: bool) -> None:
    it = toy(rules, keep=keep)
    if trained:
        fit(it.density, it.case, it.case.pairs(1.0, 50), steps=15)
    features, dead_ends = list(it.schema), 0
    for person in PEOPLE:
        x = it.x(*person)
        probability = it.probability(x)
        if not keep and not it.density.allowed(x)[0, :, :-1].any(-1).all():
            dead_ends += 1  # of plain bins: keep stands in, see the next test
            continue
        assert probability.sum() == pytest.approx(1.0, abs=1e-5)
        for (a, c), p in zip(it.values(x), probability, strict=True):
            raw = it.encoder.blocks[0].low + a * it.encoder.blocks[0].span
            broken = raw != pytest.approx(person[0]) and _forbidden(
                features[0], person[0], round(raw, 6)
            )
            level = LEVELS[int(c)]
            broken |= level != person[2] and _forbidden(features[2], person[2], level)
            # the level that no accepted row has is open to those who have it, if they may keep it
            broken |= level == "unseen" and not (keep and person[2] == "unseen")
            assert (p == 0) == broken
    assert dead_ends <= 1


def test_plain_bins_leave_no_dead_end() -> None:
    it = toy("directed", keep=False)
    x = it.x(10.0, "u", "unseen")  # nothing above: only staying is open
    assert (it.case.targets.F[:, 0] < 1.0).all()
    allowed = it.density.allowed(x)[0]
    assert allowed[0].tolist() == [False] * (allowed.shape[1] - 1) + [True]
    assert float(it.density.log_prob(x, x)) == pytest.approx(0.0, abs=1e-6)


def test_keep_is_always_open_and_offered_once() -> None:
    for rules in RULES:
        it = toy(rules)
        for person in PEOPLE:
            x = it.x(*person)
            allowed, choices = it.density.allowed(x)[0], it.density.choices(x)[0]
            assert allowed[:, -1].all()
            for j, own in enumerate(x[0, it.density.decoded].tolist()):
                assert choices[j][allowed[j]].tolist().count(own) == 1


def test_what_a_rule_forbids_has_no_probability() -> None:
    it = toy("directed")
    x = it.x(5.0, "u", "q")
    for a, g, c in [(4.0, "u", "q"), (6.0, "v", "q"), (6.0, "u", "p"), (6.0, "u", "unseen")]:
        assert it.density.log_prob(it.x(a, g, c), x).item() == -math.inf
    assert math.isfinite(it.density.log_prob(it.x(6.0, "u", "r"), x).item())


def test_choice_costs_add_up_to_c() -> None:
    """The known part of the logits, exp(-lam C_j), is the cost of the library's C."""
    case = random_case(0)
    density = make_density(case, n_bins=8)
    x = torch.as_tensor(case.F[:30])
    choices, cost = density.choices(x), density.choice_cost(x)
    rng = np.random.default_rng(0)
    for _ in range(20):
        pick = torch.as_tensor(rng.integers(0, choices.shape[-1], choices.shape[:2]))[..., None]
        pick = torch.where(choices.gather(-1, pick).isnan(), choices.shape[-1] - 1, pick)
        x_plus = x.clone()
        x_plus[:, density.decoded] = choices.gather(-1, pick)[..., 0]
        Z, Z_plus = (case.encoder.from_features(f.numpy()) for f in (x, x_plus))
        total = cost.gather(-1, pick)[..., 0].sum(-1)
        np.testing.assert_allclose(total, Cost(case.encoder)(Z, Z_plus), atol=1e-5)


@pytest.mark.parametrize(("rules", "keep"), [("free", True), ("directed", True), ("free", False)])
def test_frequencies_of_draws_match_log_prob(rules: str, keep: bool) -> None:
    it = toy(rules, keep=keep)
    for person in PEOPLE[:2]:
        x = it.x(*person)
        draws = sample(it.density, x.numpy(), 20_000, temperature=1.0, noise=KeyedNoise(1))
        probability = it.probability(x)
        assert_frequencies(it.counts(x, draws.F[0]), probability)
        # each draw also knows its own probability, and nothing was masked beyond the schema
        found = it.density.log_prob(torch.as_tensor(draws.F[0, :500]), x.expand(500, -1))
        np.testing.assert_allclose(draws.log_prob[0, :500], found, atol=1e-5)
        assert (draws.log_weight == 0).all()


def stepwise(it: Toy, x: torch.Tensor, temperature: float) -> np.ndarray:
    """Algorithm 2, line 4 by enumeration: softmax(logits / temperature), number first."""
    density = it.density
    allowed, choices, cost = density.allowed(x), density.choices(x), density.choice_cost(x)
    place = {pair: i for i, pair in enumerate(it.values(x))}
    table = np.zeros(len(place))
    with torch.no_grad():
        for i in torch.nonzero(allowed[0, 0])[:, 0].tolist():
            fed = torch.stack([choices[0, 0, i], choices[0, 1, -1]])[None]
            logits = density.net(x, fed, cost).double().masked_fill(~allowed, -torch.inf)[0]
            p = (logits / temperature).softmax(-1).numpy()
            for k in torch.nonzero(allowed[0, 1])[:, 0].tolist():
                pair = round(float(choices[0, 0, i]), 9), int(choices[0, 1, k])
                table[place[pair]] += p[0, i] * p[1, k]
    return table


@pytest.mark.parametrize("temperature", [0.3, 2.0])
def test_temperature_divides_the_logits(temperature: float) -> None:
    it = toy()
    x = it.x(*PEOPLE[1])
    np.testing.assert_allclose(stepwise(it, x, 1.0), it.probability(x), atol=1e-6)
    draws = sample(it.density, x.numpy(), 20_000, temperature=temperature, noise=KeyedNoise(2))
    assert_frequencies(it.counts(x, draws.F[0]), stepwise(it, x, temperature))
    # log_prob stays that of temperature 1
    found = it.density.log_prob(torch.as_tensor(draws.F[0, :500]), x.expand(500, -1))
    np.testing.assert_allclose(draws.log_prob[0, :500], found, atol=1e-5)


def test_a_small_temperature_gives_the_mode() -> None:
    it = toy()
    for person in PEOPLE:
        x = it.x(*person)
        draws = sample(it.density, x.numpy(), 200, temperature=1e-4, noise=KeyedNoise(3))
        counts = it.counts(x, draws.F[0])
        assert counts.max() == 200
        assert counts.argmax() == stepwise(it, x, 0.02).argmax()


# ---- masks beyond the schema, and their weight ---------------------------------------------------


def _mask(it: Toy, x: torch.Tensor) -> np.ndarray:
    """Somebody's own wish: not the lowest values of a, and only some levels of c."""
    mask = np.ones((1, 2, it.density.bins.n_choices), dtype=bool)
    mask[0, 0, :2] = False
    mask[0, 1] = False
    mask[0, 1, [0, 1]] = True
    mask[0, 1, -1] = LEVELS[int(x[0, 2])] != "r"
    return mask


def test_log_weight_is_the_mass_that_a_mask_leaves() -> None:
    it, spread = toy(sharp=8.0), []
    density = it.density
    for person in PEOPLE:
        x = it.x(*person)
        mask = _mask(it, x)
        n = 300
        draws = sample(
            density, x.numpy(), n, temperature=1.0, noise=KeyedNoise(4), also_allowed=mask
        )
        # by hand: at each position, the probability of what the mask leaves, given the prefix
        xs, chosen = x.expand(n, -1), torch.as_tensor(draws.F[0][:, [0, 2]])
        with torch.no_grad():
            logits = density.net(xs, chosen, density.choice_cost(xs)).double()
        p = logits.masked_fill(~density.allowed(xs), -torch.inf).softmax(-1).numpy()
        left = np.log((p * mask).sum(-1)).sum(-1)
        spread.append(np.ptp(left))
        np.testing.assert_allclose(draws.log_weight[0], left, atol=1e-5)
        # log_prob is under all masks, so with the weight it is R_theta itself again
        whole = density.log_prob(torch.as_tensor(draws.F[0]), xs)
        np.testing.assert_allclose(draws.log_prob[0] + draws.log_weight[0], whole, atol=1e-5)
    assert max(spread) > 0.3  # draws of one person differ in weight


def test_weighted_draws_under_a_mask_follow_r_given_the_mask() -> None:
    """A mask on c does not condition a, which is drawn before it; the weights do."""
    it = toy(sharp=8.0)
    x = it.x(*PEOPLE[3])
    mask = _mask(it, x)
    choices = it.density.choices(x)[0].numpy()
    open_ = it.density.allowed(x)[0].numpy() & mask[0]
    wanted = [
        a in np.round(choices[0][open_[0]], 9) and c in choices[1][open_[1]]
        for a, c in it.values(x)
    ]
    conditional = it.probability(x) * wanted
    conditional /= conditional.sum()
    draws = sample(
        it.density, x.numpy(), 40_000, temperature=1.0, noise=KeyedNoise(5), also_allowed=mask
    )
    plain = it.counts(x, draws.F[0]) / 40_000
    weighted = it.counts(x, draws.F[0], np.exp(draws.log_weight[0]))
    assert total_variation(weighted / weighted.sum(), conditional) < 0.015
    assert total_variation(plain, conditional) > 0.06


# ---- the net: causality, the cache ---------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed() -> tuple[Case, RecourseDensity]:
    """Nine features of all kinds, seven of them decoded."""
    case = random_case(7, n_sources=60, n_targets=150)
    density = make_density(case, n_bins=8, seed=3)
    with torch.no_grad():
        density.net.head *= 3
    return case, density


def test_causality(mixed: tuple[Case, RecourseDensity]) -> None:
    """The product over j of R(x+_j | x, x+_1 .. x+_(j-1)): no position sees itself or later."""
    case, density = mixed
    x = torch.as_tensor(case.F[:20])
    fed = torch.as_tensor(case.targets.F[:20][:, density.decoded.numpy()])
    cost = density.choice_cost(x)
    m = fed.shape[1]
    with torch.no_grad():
        before = density.net(x, fed, cost)
        for j in range(m):
            other = fed.clone()
            other[:, j] = torch.where(fed[:, j].isnan(), 0.0, 1.0 - fed[:, j])
            moved = (density.net(x, other, cost) != before).any(-1)  # (20, m)
            assert not moved[:, : j + 1].any()
            assert moved[:, j + 1 :].all()
        for j in range(x.shape[1]):  # x, immutables included, is seen from everywhere
            changed = x.clone()
            changed[:, j] = torch.where(x[:, j].isnan(), 0.0, 1.0 - x[:, j])
            moved = (density.net(changed, fed, cost) != before).any(-1)
            assert moved[~(changed[:, j] == x[:, j])].all()


@pytest.mark.parametrize("sigma", [0.0, 0.05])
def test_cached_decoding_equals_uncached(mixed: tuple[Case, RecourseDensity], sigma: float) -> None:
    case, density = mixed
    settings: dict[str, Any] = {"temperature": 0.8, "noise": KeyedNoise(6), "sigma": sigma}
    fast = sample(density, case.F[:40], 16, **settings)
    slow = sample(density, case.F[:40], 16, **settings, cached=False)
    np.testing.assert_array_equal(fast.F, slow.F)
    np.testing.assert_allclose(fast.log_prob, slow.log_prob, atol=1e-5)


@pytest.fixture(scope="module")
def mixed_any() -> tuple[Case, RecourseDensity]:
    """The same features, under a net that reads lam."""
    case = random_case(7, n_sources=60, n_targets=150)
    density = make_density(case, n_bins=8, seed=3, lam="any")
    with torch.no_grad():
        density.net.head *= 3
    return case, density


@pytest.mark.parametrize("lam", [0.5, 2.5, 10.0])
def test_cached_decoding_at_a_lam_equals_uncached(
    mixed_any: tuple[Case, RecourseDensity], lam: float
) -> None:
    case, density = mixed_any
    settings: dict[str, Any] = {"temperature": 0.8, "noise": KeyedNoise(6), "lam": lam}
    fast = sample(density, case.F[:40], 16, **settings)
    slow = sample(density, case.F[:40], 16, **settings, cached=False)
    np.testing.assert_array_equal(fast.F, slow.F)
    np.testing.assert_allclose(fast.log_prob, slow.log_prob, atol=1e-5)
    x = torch.as_tensor(case.F[:40])
    for i in range(16):  # a draw's own bookkeeping is log_prob at that lam, and at no other
        x_plus = torch.as_tensor(fast.F[:, i])
        np.testing.assert_allclose(density.log_prob(x_plus, x, lam), fast.log_prob[:, i], atol=1e-4)
        other = density.log_prob(x_plus, x, 1.0).numpy()
        assert (np.abs(other - fast.log_prob[:, i]) > 1e-3).mean() > 0.9


def test_lam_is_both_a_token_and_the_factor_of_the_known_cost(
    mixed_any: tuple[Case, RecourseDensity],
) -> None:
    case, density = mixed_any
    x = torch.as_tensor(case.F[:20])
    fed = torch.as_tensor(case.targets.F[:20][:, density.decoded.numpy()])
    cost, net = density.choice_cost(x), density.net
    low, high = torch.full((20,), 1.0), torch.full((20,), 4.0)
    with torch.no_grad():
        at_low, at_high = net(x, fed, cost, low), net(x, fed, cost, high)
        free_low, free_high = net(x, fed, 0 * cost, low), net(x, fed, 0 * cost, high)
        each = net(x, fed, cost, torch.where(torch.arange(20) < 7, low, high))
    scale = net.cost_scale[:, None]
    torch.testing.assert_close(free_low - at_low, 1.0 * scale * cost)
    torch.testing.assert_close(free_high - at_high, 4.0 * scale * cost)
    assert ((free_low - free_high).abs() > 1e-4).any(-1).all()  # the token is seen from everywhere
    torch.testing.assert_close(each, torch.cat([at_low[:7], at_high[7:]]))  # a row has its own


def test_draws_keep_every_rule(mixed: tuple[Case, RecourseDensity]) -> None:
    case, density = mixed
    draws = sample(density, case.F[:60], 64, temperature=2.0, noise=KeyedNoise(7))
    before = case.F[:60, None, :].repeat(64, axis=1)
    assert case.rules.feasible(before, draws.F).all()
    immutable = case.rules.immutable
    np.testing.assert_array_equal(draws.F[..., immutable], before[..., immutable])
    # every value is a choice: one that an accepted row has, or x's own
    for j in np.flatnonzero(~immutable):
        known = np.isin(draws.F[..., j].round(9), case.targets.F[:, j].round(9))
        own = (draws.F[..., j] == before[..., j]) | np.isnan(before[..., j])
        assert (known | own).all()


# ---- the noise of Algorithm 2, lines 5 and 6 -----------------------------------------------------


def test_sigma_adds_normal_noise_to_numbers_that_move() -> None:
    it, sigma = toy(), 0.02
    x = it.x(*PEOPLE[1])
    settings: dict[str, Any] = {"temperature": 1.0, "noise": KeyedNoise(8)}
    plain = sample(it.density, x.numpy(), 20_000, **settings).F[0]
    noisy = sample(it.density, x.numpy(), 20_000, **settings, sigma=sigma).F[0]
    kept = plain[:, 0] == float(x[0, 0])
    np.testing.assert_array_equal(noisy[kept, 0], plain[kept, 0])  # keep is exact
    eps = (noisy[~kept, 0] - plain[~kept, 0]) / sigma
    assert stats.kstest(eps, "norm").pvalue > 0.001
    assert set(noisy[:, 2].tolist()) <= {0.0, 1.0, 2.0}  # a category is never between two levels


@pytest.mark.parametrize("rules", ["directed", "stepped"])
def test_sigma_respects_the_rules(rules: str) -> None:
    it = toy(rules)
    F = np.concatenate([it.x(*person).numpy() for person in PEOPLE])
    draws = sample(it.density, F, 2000, temperature=3.0, noise=KeyedNoise(9), sigma=0.5)
    before = F[:, None, :].repeat(2000, axis=1)
    assert it.case.rules.feasible(before, draws.F).all()
    assert len(np.unique(draws.F[..., 0])) > 500


# ---- same person, same draws ---------------------------------------------------------------------


def _same(a: Draws, b: Draws) -> None:
    np.testing.assert_array_equal(a.F, b.F)
    np.testing.assert_array_equal(a.log_prob, b.log_prob)
    np.testing.assert_array_equal(a.log_weight, b.log_weight)


def _rows(draws: Draws, which: Any) -> Draws:
    return Draws(draws.F[which], draws.log_prob[which], draws.log_weight[which])


@pytest.mark.parametrize("sigma", [0.0, 0.05])
def test_draws_do_not_depend_on_neighbours_order_or_chunks(
    mixed: tuple[Case, RecourseDensity], sigma: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, density = mixed
    F, n = case.F, 12  # 210 rows, 85 a chunk: the last one is padded
    mask = np.random.default_rng(0).random((len(F), 7, density.bins.n_choices)) < 0.8
    mask[..., -1] = True

    def draw(which: Any) -> Draws:
        return sample(
            density,
            F[which],
            n,
            temperature=0.7,
            noise=KeyedNoise(10),
            sigma=sigma,
            also_allowed=mask[which],
        )

    shapes: set[int] = set()
    real = RecourseNet.encode

    def spy(self: RecourseNet, x: torch.Tensor, *lam: Any) -> Any:
        shapes.add(len(x))
        return real(self, x, *lam)

    monkeypatch.setattr(RecourseNet, "encode", spy)
    whole = draw(slice(None))
    order = np.random.default_rng(1).permutation(len(F))
    _same(draw(order), _rows(whole, order))
    subset = order[:31]
    _same(draw(subset), _rows(whole, subset))
    _same(draw([5]), _rows(whole, [5]))
    assert shapes == {1024 // n}  # one fixed shape, whatever the table: a sum is summed alike
    # a chunk of another shape may round otherwise in the last place, and draws the same values
    monkeypatch.setattr(sample_module, "CHUNK_SEQUENCES", 100)
    other = draw(slice(None))
    np.testing.assert_array_equal(other.F, whole.F)
    np.testing.assert_allclose(other.log_prob, whole.log_prob, atol=1e-5)


@pytest.mark.parametrize("sigma", [0.0, 0.05])
def test_first_draw_continues_the_stream(mixed: tuple[Case, RecourseDensity], sigma: float) -> None:
    case, density = mixed
    settings: dict[str, Any] = {"temperature": 1.0, "noise": KeyedNoise(11), "sigma": sigma}
    whole = sample(density, case.F[:10], 12, **settings)
    first = sample(density, case.F[:10], 6, **settings)
    second = sample(density, case.F[:10], 6, **settings, first_draw=6)
    np.testing.assert_array_equal(np.concatenate([first.F, second.F], axis=1), whole.F)
    assert (first.F != second.F).any()


def test_another_seed_or_person_gets_other_noise() -> None:
    it = toy()
    F = np.concatenate([it.x(2.0, "u", "p"), it.x(2.0, "v", "p")])
    one, two = (
        sample(it.density, F, 50, temperature=1.0, noise=KeyedNoise(seed)).F[:, :, [0, 2]]
        for seed in (0, 1)
    )
    assert (one != two).any()
    # two people who differ in their last feature alone share no noise
    F = np.concatenate([it.x(2.0, "u", "p"), it.x(2.0, "u", "q")])
    settings: dict[str, Any] = {"temperature": 1.0, "noise": KeyedNoise(0)}
    plain, noisy = (sample(it.density, F, 500, sigma=s, **settings).F[..., 0] for s in (0.0, 0.01))
    both_moved = (noisy != plain).all(axis=0)
    eps = (noisy - plain)[:, both_moved]
    assert both_moved.sum() > 20
    assert (np.abs(eps[0] - eps[1]) > 1e-6).all()
    u = KeyedNoise(0).uniform(KeyedNoise(0).keys(F), (5000,))
    assert abs(np.corrcoef(u)[0, 1]) < 0.05
    assert stats.kstest(u.ravel(), "uniform").pvalue > 0.001


# ---- the loss, and Algorithm 1, lines 4-9 -------------------------------------------------------


def test_the_loss_is_the_cross_entropy_of_the_labels() -> None:
    """One decoded feature, so that nothing fed to the decoder matters: Eq. (8) by hand."""
    case = _immutable_number([*np.tile([1.0, 2.0], 100)], sources=60)
    density = make_density(case, n_bins=8)
    x = torch.as_tensor(case.F[:60])
    x_plus = torch.as_tensor(np.stack([case.F[:60, 0], case.F[60:120, 1]], axis=1))
    allowed = density.allowed(x)
    label = density.bins.labels(x[:, 1:], x_plus[:, 1:], allowed).numpy()
    assert ((label > 0.05) & (label < 0.95)).any()
    with torch.no_grad():
        logits = density.net(x, x_plus[:, 1:], density.choice_cost(x))
        loss = float(density.loss(x, x_plus, torch.Generator().manual_seed(0)))
    p = logits.double().masked_fill(~allowed, -torch.inf).softmax(-1).numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        by_hand = -np.where(label > 0, label * np.log(p), 0.0).sum((1, 2)).mean()
    assert loss == pytest.approx(by_hand, rel=1e-5)


def test_on_exact_labels_the_loss_is_minus_log_prob() -> None:
    it = toy("directed")
    pairs = it.case.pairs(1.0, 50)
    x = torch.as_tensor(it.case.F[pairs.source])
    x_plus = torch.as_tensor(it.case.targets.F[pairs.index[:, 0]])
    label = it.density.bins.labels(
        x[:, it.density.decoded], x_plus[:, it.density.decoded], it.density.allowed(x)
    )
    exact = (label.max(-1).values == 1).all(-1)
    assert exact.sum() > 10
    with torch.no_grad():
        loss = it.density.loss(x[exact], x_plus[exact], torch.Generator().manual_seed(0))
    expected = -it.density.log_prob(x_plus[exact], x[exact]).mean()
    assert float(loss) == pytest.approx(float(expected), rel=1e-5)


def test_eq_8_bounds_eq_7() -> None:
    """Jensen: with these labels, cross-entropy and a constant are never below -log density."""
    rng = np.random.default_rng(0)
    bins = _bins(ATOM_AND_TAIL)
    mu, width = bins.value[0, 1:].numpy(), bins.width[0, 1:].numpy()  # without the atom
    for x_plus in rng.uniform(0.05, 1.0, 200):
        kernel = stats.norm.pdf((x_plus - mu) / width) / width
        label = np.array(_labels(bins, x=math.nan, x_plus=float(x_plus))[1:4])
        p = rng.dirichlet(np.ones(3))
        eq_7 = -math.log((p * kernel).sum())
        constant = (label * np.log(label / kernel)).sum()
        assert eq_7 <= -(label * np.log(p)).sum() + constant + 1e-12
        # and where p is uniform these labels are the best there are: the bound is met
        uniform = np.full(3, 1 / 3)
        tight = -(label * np.log(uniform)).sum() + constant
        assert tight == pytest.approx(-math.log((uniform * kernel).sum()), abs=1e-9)


def few_targets(n_sources: int = 60) -> Case:
    """So few that Q is known in full."""
    rng = np.random.default_rng(0)
    accepted = pd.DataFrame(
        {"a": [6.0, 7.0, 7.0, 8.0, 10.0, 10.0], "g": list("uuvuvv"), "c": list("pqpqrp")}
    )
    rejected = pd.DataFrame(
        {
            "a": rng.integers(0, 6, n_sources).astype(float),
            "g": rng.choice(["u", "v"], n_sources),
            "c": rng.choice(["p", "q", "r"], n_sources),
        }
    )
    schema = Schema(
        features=(
            Feature(name="a", kind="number", decimals=0),
            Feature(name="g", kind="category", categories=("u", "v"), role="immutable"),
            Feature(name="c", kind="category", categories=("p", "q", "r")),
        )
    )
    return Case(pd.concat([rejected, accepted], ignore_index=True), schema, n_sources)


def distances_to_q(
    density: RecourseDensity, case: Case, q: np.ndarray, lam: float | None = None
) -> np.ndarray:
    """Total variation between R_theta and Q, for each source."""
    x = torch.as_tensor(case.F[: len(q)]).repeat_interleave(q.shape[1], 0)
    x_plus = torch.as_tensor(np.tile(case.targets.F, (len(q), 1)))
    r = density.log_prob(x_plus, x, lam).exp().numpy().reshape(q.shape)
    # all mass elsewhere is off Q's support
    return total_variation(r, q) + 0.5 * (1 - r.sum(axis=1))


def test_training_brings_r_theta_to_q() -> None:
    """The trained net gives each person Q itself."""
    case, lam = few_targets(), 3.0
    pairs = case.pairs(lam, 50)
    q = reference_q(case.costs, lam)
    density = make_density(case, n_bins=8, lam=lam)
    before = distances_to_q(density, case, q)
    loss = fit(density, case, pairs, steps=250)
    after = distances_to_q(density, case, q)
    assert before.mean() > 0.4
    assert after.mean() < 0.05
    assert after.max() < 0.15
    entropy = -np.where(q > 0, q * np.log(np.where(q > 0, q, 1.0)), 0.0).sum(axis=1).mean()
    assert loss == pytest.approx(entropy, abs=0.08)  # the least that cross-entropy can be


def test_training_brings_one_r_theta_to_q_at_every_lam() -> None:
    """One net, told lam: Q itself at each of five, and not that of another."""
    case = few_targets()
    density = make_density(case, n_bins=8, lam="any")
    fit(density, case, _any_lam_pairs(case, 1000), steps=200)
    for lam in LAMS:
        q = reference_q(case.costs, lam)
        distance = distances_to_q(density, case, q, lam)
        assert distance.mean() < 0.1
        assert distance.max() < 0.3
    far = distances_to_q(density, case, reference_q(case.costs, 10.0), 0.5)
    assert far.mean() > 0.3


# ---- both algorithms as GenRe composes them -----------------------------------------------------


def _credit(n: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "income": rng.integers(10, 90, n),
            "rate": rng.random(n).round(3),
            "home": rng.choice(["own", "rent", "other"], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    return X, (_score(X) + rng.normal(0, 0.15, n) > 0.5).astype(int)


def _score(X: pd.DataFrame) -> np.ndarray:
    return 1 / (1 + np.exp(-(X["income"].to_numpy() - 50) / 10 + X["rate"].to_numpy()))


def _genre(**params: Any) -> GenRe:
    X, _ = _credit()
    settings: dict[str, Any] = {
        "gamma": 0.7,
        "temperature": 1.0,
        "margin": 0.5,
        "clean": False,
        "select": "likelihood",
        "n_bins": 10,
        "n_draws": 8,
        "net": SMALL_NET,
        "training": Training(steps=2, batch_size=32, patience=None),
    }
    return GenRe(_score, **({"schema": Schema.infer(X, immutable=["sex"])} | settings | params))


def test_sources_and_targets_are_those_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """D-: y = 0 and h <= 0.5. D+: y = 1 and h > gamma."""
    X, y = _credit()
    h = _score(X)
    seen: list[tuple[np.ndarray, Targets]] = []
    real = methods._genre_pairs.make_pairs

    def spy(Z: np.ndarray, F: np.ndarray, targets: Targets, *rest: Any, **named: Any) -> Pairs:
        seen.append((F, targets))
        return real(Z, F, targets, *rest, **named)

    def rows(*tables: np.ndarray) -> list[tuple[float, ...]]:
        return sorted(map(tuple, np.concatenate(tables).round(9).tolist()))

    monkeypatch.setattr(methods._genre_pairs, "make_pairs", spy)
    for sources in ("labelled", "rejected"):
        seen.clear()
        method = _genre(sources=sources).fit(X, y)
        F = method.encoder_.features(X)
        rejected = (h <= 0.5) & ((y == 0) | (sources == "rejected"))
        assert ((h <= 0.5) & (y == 1)).any()
        assert rows(*[source for source, _ in seen]) == rows(F[rejected])
        assert method.fit_report_["pairs"]["sources"] == len(seen[0][0]) > len(seen[1][0])
        for _, targets in seen:
            assert rows(targets.F) == rows(F[(y == 1) & (h > 0.7)])


def test_each_epoch_visits_every_source_once_with_a_new_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = _credit()
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    real = RecourseDensity.loss

    def spy(
        self: RecourseDensity, x: torch.Tensor, x_plus: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        if self.net.training:
            pairs.append((x.numpy().copy(), x_plus.numpy().copy()))
        return real(self, x, x_plus, generator)

    monkeypatch.setattr(RecourseDensity, "loss", spy)
    batch = 20
    n_sources = round(0.9 * ((_score(X) <= 0.5) & (y == 0)).sum())
    per_epoch = n_sources // batch
    training = Training(epochs=2, bounds=None, batch_size=batch, patience=None)
    method = _genre(refine=False, lam=0.5, training=training).fit(X, y)
    assert len(pairs) == 2 * per_epoch
    first, second = pairs[:per_epoch], pairs[per_epoch:]
    for epoch in (first, second):
        x = np.concatenate([x for x, _ in epoch])
        assert x.shape == (per_epoch * batch, 4)
        assert len(np.unique(x, axis=0)) == len(x)  # no source twice
    # pairs are feasible, and drawn anew
    targets = [
        {tuple(a): tuple(b) for x, p in e for a, b in zip(x, p, strict=True)}
        for e in (first, second)
    ]
    both = targets[0].keys() & targets[1].keys()
    assert len(both) > 0.6 * len(targets[0])
    assert sum(targets[0][x] != targets[1][x] for x in both) > 0.5 * len(both)
    for x, x_plus in pairs:
        assert method.rules_.feasible(x, x_plus).all()


def test_an_immutable_matched_by_bin_is_carried_over_and_h_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = _credit()
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    real = RecourseDensity.loss

    def spy(
        self: RecourseDensity, x: torch.Tensor, x_plus: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        pairs.append((x.numpy().copy(), x_plus.numpy().copy()))
        return real(self, x, x_plus, generator)

    monkeypatch.setattr(RecourseDensity, "loss", spy)
    schema = Schema.infer(X, immutable=["rate"])  # a number of hundreds of values
    training = Training(steps=20, batch_size=64, patience=None)
    method = _genre(schema=schema, n_bins=3, lam=0.5, refine=False, training=training).fit(X, y)
    x, x_plus = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    np.testing.assert_array_equal(x_plus[:, 1], x[:, 1])
    encoder = method.encoder_
    people = encoder.table(encoder.from_features(x_plus), X.iloc[:1])
    assert (_score(people) > 0.7).all()
    # with another's rate the same target was accepted: some pairs have been dropped
    assert len(x) < sum(64 for _ in pairs)


def test_training_starts_with_an_untrained_encoder_and_decoder_and_moves_both() -> None:
    X, y = _credit()
    still = Training(steps=1, lr=0.0, weight_decay=0.0)

    def weights(state: int, **params: Any) -> dict[str, torch.Tensor]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(state)  # what happened before must not matter
            return _genre(**params).fit(X, y).density_.net.state_dict()

    start, again = weights(1, training=still), weights(2, training=still)
    other, after = weights(1, training=still, random_state=1), weights(1)
    names = ["encoder.0.attend.query.weight", "decoder.1.cross.out.weight", "head", "position_x"]
    for name in names:
        assert torch.equal(start[name], again[name])  # same seed, same weights
        assert not torch.equal(start[name], other[name])
        assert not torch.equal(start[name], after[name])


def test_each_row_is_encoded_once_for_all_its_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    it = toy()
    encoded: list[int] = []
    real = RecourseNet.encode

    def spy(self: RecourseNet, x: torch.Tensor, *lam: Any) -> Any:
        encoded.append(len(x))
        return real(self, x, *lam)

    monkeypatch.setattr(RecourseNet, "encode", spy)
    F = np.concatenate([it.x(*person).numpy() for person in PEOPLE])
    sample(it.density, F, 256, temperature=1.0, noise=KeyedNoise(0))
    assert encoded == [4]


@pytest.mark.parametrize("params", [{"bins": "uniform"}, {"sigma": 0.1}], ids=["grid", "sigma"])
def test_samples_are_projected_onto_legal_values(params: dict[str, Any]) -> None:
    """Algorithm 2, line 8: whatever the density adds, what leaves is a row of the table."""
    X, y = _credit()
    method = _genre(**params).fit(X, y)
    people = X[_score(X) <= 0.5].head(40)
    drawn = method.sample(people, 20)
    assert drawn.dtypes.equals(X.dtypes)  # income is whole
    np.testing.assert_allclose(drawn["rate"], drawn["rate"].round(3), atol=1e-9)
    assert drawn["rate"].between(X["rate"].min(), X["rate"].max()).all()
    assert set(drawn["home"]) <= set(X["home"])
    own = people.loc[drawn.index.get_level_values(0)]
    assert (drawn["sex"].to_numpy() == own["sex"].to_numpy()).all()
    assert (drawn["income"].to_numpy() != own["income"].to_numpy()).mean() > 0.2


# ---- selection -----------------------------------------------------------------------------------

CONFIDENCE = np.array([[0.9, 0.7, 0.65, 0.2], [0.4, 0.55, 0.1, 0.5], [0.3, 0.2, 0.6001, 0.6]])
LOG_PROB = np.array([[-9.0, -2.0, -3.0, -0.1], [-1.0, -5.0, -2.0, -0.5], [-1.0, -1.0, -7.0, -1.0]])
PRICE = np.array([[0.1, 0.9, 0.2, 0.0], [0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 0.5, 0.0]])


def _select(rule: Any, margin: float = 0.6, cost_weight: float = 0.0) -> list[int]:
    chosen = select(CONFIDENCE, LOG_PROB, PRICE, rule=rule, margin=margin, cost_weight=cost_weight)
    return chosen.tolist()


def test_the_papers_selection_takes_the_highest_h() -> None:
    assert _select("paper") == [0, 1, 2]
    assert _select("paper", margin=0.99, cost_weight=100.0) == [0, 1, 2]


def test_selection_by_likelihood_and_cost_among_those_that_clear_the_margin() -> None:
    # row 0: draws 0, 1, 2 clear 0.6; -2 beats -3 and -9
    # row 1: none clears it: the highest h; row 2: only draw 2 is above 0.6, not at it
    assert _select("likelihood") == [1, 1, 2]
    # -2 - 5 * 0.9 < -3 - 5 * 0.2
    assert _select("likelihood", cost_weight=5.0) == [2, 1, 2]
    # -9 - 20 * 0.1 < -3 - 20 * 0.2 < -2 - 20 * 0.9, and no margin: the likeliest of all
    assert _select("likelihood", margin=0.0) == [3, 3, 0]
    assert _select("likelihood", margin=0.8, cost_weight=5.0) == [0, 1, 2]


class _KnownVerifier(Verifier):
    """Believes what is written in the rows: column 0 P(valid), column 1 P(plausible), and columns
    2 and 3, where there are any, the least sure copy of h and P(valid under noise)."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def robust(self, Z: np.ndarray) -> np.ndarray:
        return Z[:, 2] if Z.shape[1] > 2 else np.ones(len(Z))

    def steady(self, Z: np.ndarray) -> np.ndarray:
        return Z[:, 3] if Z.shape[1] > 2 else np.ones(len(Z))

    def valid(self, Z: np.ndarray, confidence: np.ndarray) -> np.ndarray:
        return Z[:, 0]

    def plausible(self, Z: np.ndarray) -> np.ndarray:
        self.asked.append(len(Z))
        return Z[:, 1]


VALID = np.array([[0.2, 0.9, 0.9, 1.0], [0.9, 0.3, 0.9, 0.9], [1.0, 1.0, 0.1, 0.2]])
PLAUSIBLE = np.array([[1.0, 0.5, 0.4, 1.0], [1.0, 0.3, 1.0, 1.0], [1.0, 1.0, 0.1, 1.0]])


def _verified(margin: float, n_features: int = 2, plausible: np.ndarray = PLAUSIBLE) -> list[int]:
    rows = np.stack([VALID, plausible], axis=-1)
    score = expected_score(
        rows, CONFIDENCE, PRICE, _KnownVerifier(), n_features=n_features, margin=margin, safety=0.5
    )
    return score.argmax(axis=1).tolist()


def test_selection_by_expected_score() -> None:
    # row 0: 0.2 + 1 - 0.05 = 1.15, 0.9 + 0.5 - 0.45 = 0.95, 0.9 + 0.4 - 0.1 = 1.2, draw 3: rejected
    # row 1: nothing clears 0.6, draw 1 alone is above 0.5; row 2: draw 2 alone clears 0.6
    assert _verified(margin=0.6) == [2, 1, 2]
    # with cost hardly counted 0.9 + 0.5 beats 0.9 + 0.4; and draw 3 of row 2 clears 0.55 as well
    assert _verified(margin=0.55, n_features=1000) == [1, 1, 3]
    # with no margin to speak of the cutoff is the margin of rows that have nothing above theirs
    assert _verified(margin=0.95) == [2, 1, 3]


def test_selection_with_nothing_accepted_takes_the_highest_h() -> None:
    rows = np.stack([VALID, PLAUSIBLE], axis=-1)
    h = CONFIDENCE / 2
    score = expected_score(rows, h, PRICE, _KnownVerifier(), n_features=2, margin=0.5, safety=0.5)
    assert score.argmax(axis=1).tolist() == h.argmax(axis=1).tolist()


def test_selection_counts_robustness() -> None:
    """Three draws for one person, equally valid and plausible; the cheapest is the riskiest."""
    robust, steady = np.array([[0.4, 0.6, 0.6]]), np.array([[0.9, 0.5, 0.9]])
    ones, price = np.ones((1, 3)), np.array([[0.0, 0.2, 0.4]])
    rows = np.stack([ones, ones, robust, steady], axis=-1)

    def pick(safety: float) -> int:
        verifier = _KnownVerifier()
        score = expected_score(rows, ones, price, verifier, n_features=1, margin=0.5, safety=safety)
        return int(score.argmax())

    # 2 - 3 * 0.1 + s * 0.9, 2 - 0.2 + s * 0.5, 2 - 0.4 + s * 0.9: the first lacks 0.1 of a copy
    assert pick(safety=0.0) == 1
    rows[0, 0, 2] = 0.5  # which now accepts
    assert pick(safety=0.0) == 0
    rows[0, 0, 3] = 0.0
    assert pick(safety=1.0) == 2


def test_selection_looks_at_a_short_list_of_distinct_draws() -> None:
    """Plausibility is dear: asked for the best distinct draws, copies taking one seat."""
    n = 4 * SHORTLIST
    valid = np.repeat(np.linspace(0.99, 0.6, n // 2), 2)[None]  # each draw came twice
    plausible = np.zeros((1, n))
    last = 2 * (SHORTLIST - 1)
    plausible[0, last], plausible[0, last + 2] = 1.0, 1.0  # the last on the list and the next
    verifier = _KnownVerifier()
    rows = np.stack([valid, plausible], axis=-1)
    ones, free = np.full((1, n), 0.9), np.zeros((1, n))
    score = expected_score(rows, ones, free, verifier, n_features=1, margin=0.5, safety=0.5)
    assert score.argmax() == last
    assert np.isfinite(score).sum() == SHORTLIST
    assert verifier.asked == [SHORTLIST]


def test_genre_selects_what_its_own_draws_offer() -> None:
    X, y = _credit()
    people = X[_score(X) <= 0.5].head(60)
    for rule, margin in (("paper", 0.5), ("likelihood", 0.5), ("likelihood", 0.9)):
        method = _genre(select=rule, refine=False, cost_weight=0.0, margin=margin).fit(X, y)
        drawn = method.sample(people, method.n_draws)
        own = people.loc[drawn.index.get_level_values(0)]
        h = pd.Series(_score(drawn), drawn.index)
        merit = h
        if rule == "likelihood":
            cleared = h > margin
            likely = method.log_prob(drawn.reset_index(drop=True), own.reset_index(drop=True))
            merit = pd.Series(likely.to_numpy(), drawn.index).where(cleared)
            nobody = ~cleared.groupby(level=0, sort=False).transform("any")
            merit = merit.where(~nobody, h)
        best = merit.groupby(level=0, sort=False).idxmax()
        expected = drawn.loc[best].droplevel("draw")
        pd.testing.assert_frame_equal(method.recourse(people), expected, check_names=False)


def test_the_papers_settings_are_the_papers() -> None:
    """temperature divides where the paper's tau multiplies: tau = 10 is temperature 0.1."""
    paper = replace(methods.genre.PAPER, dropout=0.1)
    assert paper == NetConfig(32, 8, 32, 16, 16, 0.1)
    preset = methods.genre.PAPER_PRESET
    assert preset["temperature"] == pytest.approx(1 / 10)
    assert (preset["gamma"], preset["n_draws"], preset["select"]) == (0.7, 10, "paper")
    assert (preset["bins"], preset["keep"]) == ("uniform", False)
    assert not any(preset[ours] for ours in ("clean", "refine", "retrieve"))


# ---- Eq. (10): guided diffusion -----------------------------------------------------------------


@pytest.mark.parametrize(("n_proposals", "lam"), [(1, 2.0), (16, 0.0), (16, 2.0)])
def test_svdd_tilts_a_gaussian_as_eq_10_says(n_proposals: int, lam: float) -> None:
    """P = N(m, s^2) and r(x) = x: P' is N(m + lam s^2, s^2).

    r of the predicted row is then the exact value of a proposal, up to a constant, and n proposals
    give a share 1 - 1/n of the tilt where the steps are small: one gives none.
    """
    m, s = 0.3, 0.5

    def denoise(x: torch.Tensor, sigma: float) -> torch.Tensor:
        return (x * s**2 + m * sigma**2) / (s**2 + sigma**2)

    noise = KeyedNoise(0)
    x = diffusion.sample(
        denoise,
        noise.keys(np.arange(1500.0)[:, None]),
        noise,
        1,
        steps=100,
        churn=1.0,
        n_proposals=n_proposals,
        log_weight=lambda rows, predicted: lam * predicted[..., 0],
    ).numpy()
    assert x.mean() == pytest.approx(m + (1 - 1 / n_proposals) * lam * s**2, abs=0.04)
    assert x.std() == pytest.approx(s, abs=0.03)
