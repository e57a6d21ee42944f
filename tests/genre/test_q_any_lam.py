"""Eq. (6) for pairs that each have a lam of their own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from genrecourse.genre import any_lam as any_lam_module
from genrecourse.genre import pairs as pairs_module
from genrecourse.genre.any_lam import LAM_RANGE, AnyLamPairs, draw_from_q
from tests.support.equations import LAMS, Case, any_lam_pairs, random_case, reference_q


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
    pairs = any_lam_pairs(case, 64)
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
    whole = any_lam_pairs(case, 8)
    monkeypatch.setattr(pairs_module, "BLOCK_ENTRIES", 300)
    parts = any_lam_pairs(case, 8)
    np.testing.assert_array_equal(whole.index, parts.index)
    np.testing.assert_array_equal(whole.lam, parts.lam)


def test_pairs_of_any_lam_are_drawn_ahead_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    case, rng = random_case(4), np.random.default_rng(0)
    assert any_lam_pairs(case, 50).index.shape[1] == 50
    monkeypatch.setattr(any_lam_module, "MOST_PAIRS", 130)  # 40 sources
    assert any_lam_pairs(case, 50).index.shape[1] == 3
    pairs = any_lam_pairs(case, 3)
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
