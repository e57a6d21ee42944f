"""Algorithm 2: the net's causality and cache, noise, and the same draws for the same person."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from genrecourse.genre import sample as sample_module
from genrecourse.genre.density import RecourseDensity
from genrecourse.genre.sample import Draws, sample
from genrecourse.table.noise import KeyedNoise
from tests.support.equations import PEOPLE, Case, make_density, random_case, toy

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
    F, n = case.F, 12  # 210 rows, 21 a chunk
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

    whole = draw(slice(None))
    order = np.random.default_rng(1).permutation(len(F))
    _same(draw(order), _rows(whole, order))
    subset = order[:31]
    _same(draw(subset), _rows(whole, subset))
    _same(draw([5]), _rows(whole, [5]))
    monkeypatch.setattr(sample_module, "CHUNK_SEQUENCES", 7 * n)
    _same(draw(slice(None)), whole)


def test_a_draw_is_known_by_its_number(mixed: tuple[Case, RecourseDensity]) -> None:
    """Drawn alone, with others, or with others at another temperature: the same draw."""
    case, density = mixed
    how: dict[str, Any] = {"noise": KeyedNoise(4), "sigma": 0.05}
    F, warmth = case.F[:30], np.array([0.3, 1.0, 0.5, 0.5])
    every = sample(density, F, 4, temperature=warmth, **how)
    parts = [sample(density, F, 1, temperature=t, first=i, **how) for i, t in enumerate(warmth)]
    np.testing.assert_array_equal(every.F, np.concatenate([part.F for part in parts], axis=1))
    log_prob = np.concatenate([part.log_prob for part in parts], axis=1)
    np.testing.assert_array_equal(every.log_prob, log_prob)
    assert (every.F[:, 2] != every.F[:, 3]).any()  # so that the numbers count


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
