"""TabSyn's halves where they are known by hand, its sampler on a Gaussian, and the two methods.

That guidance reaches Eq. (10) is in test_equations.py.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from genrecourse.errors import UserError
from genrecourse.evaluation.checks import example_score, make_example
from genrecourse.methods import METHODS, _tabsyn, load
from genrecourse.methods._diffusion import (
    SIGMA_DATA,
    SIGMA_MAX,
    SIGMA_MIN,
    Denoiser,
    DenoiserConfig,
    noise_levels,
    sample,
)
from genrecourse.methods._tabsyn import TabSyn, fit_tabsyn
from genrecourse.methods._tabsyn_vae import TabSynVAEConfig, Tokeniser, TokenVAE, annealed
from genrecourse.methods.tabsyn_q import TabSynQ
from genrecourse.methods.tabsyn_svdd import TabSynSVDD, reward
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.noise import KeyedNoise
from genrecourse.table.schema import Schema

EXAMPLE = make_example()
# without the example's directions and steps, so that everybody has somewhere to go
LOOSE = Schema.infer(EXAMPLE.X, immutable=("age", "sex"))
TINY_VAE = TabSynVAEConfig(width=8, heads=1, feedforward=8, steps=40, batch_size=64)
TINY_DENOISER = DenoiserConfig(width=8, steps=40, batch_size=64)
TINY: dict[str, Any] = {"vae": TINY_VAE, "denoiser": TINY_DENOISER, "steps": 4}


def encoded() -> tuple[np.ndarray, TableEncoder]:
    encoder = TableEncoder(EXAMPLE.schema).fit(EXAMPLE.X)
    return encoder.features(EXAMPLE.X), encoder


# ---- rows <-> tokens --------------------------------------------------------------------------


def test_tokens_give_every_row_back() -> None:
    F, encoder = encoded()
    assert np.isnan(F).any()
    tokeniser = Tokeniser.fit(F, encoder)
    codes, values = tokeniser.tokens(F)
    again = tokeniser.features(codes.numpy(), values.numpy().astype(np.float64))
    np.testing.assert_array_equal(again, F)


def test_a_number_is_its_normal_score_and_an_atom_its_middle_rank() -> None:
    X = pd.DataFrame({"a": [0.0] * 6 + [1.0, 2.0, 3.0, 4.0]})
    encoder = TableEncoder(Schema.infer(X)).fit(X)
    tokeniser = Tokeniser.fit(encoder.features(X), encoder)
    values = tokeniser.tokens(encoder.features(X))[1].numpy()[:, 0]
    # ranks 0.3 for the six zeros, then 0.65, 0.75, 0.85, 0.95
    expected = [-0.5244] * 6 + [0.3853, 0.6745, 1.0364, 1.6449]
    np.testing.assert_allclose(values, expected, atol=1e-4)
    # a small error does not leave an atom, and a decoded number is one that occurs
    near = np.array([[-0.5], [0.2], [0.3], [9.0], [-9.0]])
    back = tokeniser.features(np.zeros((5, 1), dtype=int), near)[:, 0]
    np.testing.assert_allclose(back, [0, 0, 0.25, 1, 0])


# ---- the VAE ----------------------------------------------------------------------------------


def test_the_vaes_loss_by_hand() -> None:
    """With nothing decoded: log of the number of codes, the squared values, and the prior."""
    vae = TokenVAE([1, 2, 4], np.array([True, True, False]), TabSynVAEConfig(latent=3))
    with torch.no_grad():
        vae.head.zero_()
        vae.to_latent.weight.zero_()
        vae.to_latent.bias.copy_(torch.tensor([2.0] * 3 + [0.0] * 3))  # mean 2, variance 1
    codes = torch.tensor([[0, 0, 3], [0, 1, 2]])
    values = torch.tensor([[1.0, 3.0, 0.0], [2.0, 7.0, 0.0]])  # the 7 is of a missing number

    def loss(beta: float) -> float:
        return float(vae.loss(codes, values, beta, torch.Generator().manual_seed(0)).detach())

    plain = (np.log(2) + np.log(4)) / 3 + (1 + 9 + 4) / 6
    assert loss(0.0) == pytest.approx(plain, rel=1e-5)
    assert loss(0.5) == pytest.approx(plain + 0.5 * 3 * 2.0, rel=1e-5)  # KL of N(2, 1): 2 each


def test_beta_falls_to_its_end_and_stays_there() -> None:
    betas = list(annealed(TabSynVAEConfig(steps=10, beta=(1e-2, 1e-4), annealed=0.5)))
    assert betas[0] == pytest.approx(1e-2)
    assert betas[2] == pytest.approx(1e-2 * 0.01 ** (2 / 5))
    np.testing.assert_allclose(betas[5:], 1e-4)


def test_a_code_that_a_feature_does_not_have_is_never_decoded() -> None:
    F, encoder = encoded()
    tabsyn = tiny_tabsyn()
    codes = tabsyn.vae.decode(100 * torch.randn(500, tabsyn.n_latents))[0].argmax(-1)
    assert (codes.numpy() < Tokeniser.fit(F, encoder).n_codes).all()


# ---- the denoiser and the sampler -------------------------------------------------------------


def gaussian(mean: float, deviation: float) -> Any:
    """The exact denoiser of N(mean, deviation^2)."""

    def denoise(x: torch.Tensor, sigma: float) -> torch.Tensor:
        return (x * deviation**2 + mean * sigma**2) / (deviation**2 + sigma**2)

    return denoise


def draw(denoise: Any, n: int, n_latents: int = 1, seed: int = 0, **options: Any) -> np.ndarray:
    noise = KeyedNoise(seed)
    keys = noise.keys(np.arange(n, dtype=float)[:, None])
    return sample(denoise, keys, noise, n_latents, **{"steps": 50, "churn": 1.0, **options}).numpy()


def test_preconditioning_is_right_for_a_gaussian_before_anything_is_learned() -> None:
    """With an inner net of 0 the denoiser is the exact one of N(0, SIGMA_DATA^2): loss 1."""
    torch_state = torch.get_rng_state()
    denoiser = Denoiser(3, 8)
    torch.set_rng_state(torch_state)
    with torch.no_grad():
        for parameter in denoiser.hidden[-1].parameters():
            parameter.zero_()
        x, exact = torch.randn(5, 3, generator=torch.Generator().manual_seed(1)), gaussian(0.0, 0.5)
        for sigma in (0.1, 1.0, 5.0):
            found = denoiser(x, torch.full((1, 1), sigma))
            torch.testing.assert_close(found, exact(x, sigma))
        data = SIGMA_DATA * torch.randn(40_000, 3, generator=torch.Generator().manual_seed(2))
        loss = float(denoiser.loss(data, torch.Generator().manual_seed(3)))
    assert loss == pytest.approx(1.0, abs=0.02)


def test_noise_levels_fall_from_end_to_end() -> None:
    levels = noise_levels(50)
    assert len(levels) == 50
    assert levels[0] == pytest.approx(SIGMA_MAX)
    assert levels[-1] == pytest.approx(SIGMA_MIN)
    assert (np.diff(levels) < 0).all()


@pytest.mark.parametrize("churn", [0.0, 0.5, 1.0])
def test_sampling_gives_the_gaussian_back(churn: float) -> None:
    x = draw(gaussian(0.3, 0.5), 4000, churn=churn)
    assert x.mean() == pytest.approx(0.3, abs=0.03)
    assert x.std() == pytest.approx(0.5, abs=0.02)


def test_without_churn_the_noise_at_the_start_decides_all() -> None:
    """x0 = mean + deviation * (the normal it started from), along the ODE."""
    noise = KeyedNoise(0)
    keys = noise.keys(np.arange(200, dtype=float)[:, None])
    start = noise.normal(keys, (1,))
    x = sample(gaussian(0.3, 0.5), keys, noise, 1, steps=50, churn=0.0).numpy()
    np.testing.assert_allclose(x, 0.3 + 0.5 * start, atol=0.03)


def test_one_of_the_proposals_is_kept_by_their_weights() -> None:
    """Weights 1 and 3, whatever is proposed: the second is kept three times of four."""
    offered: list[np.ndarray] = []

    def log_weight(rows: np.ndarray, predicted: torch.Tensor) -> torch.Tensor:
        offered.append(predicted[..., 0].numpy())
        return torch.tensor([0.0, np.log(3.0)]).expand(len(rows), 2)

    # two levels: one choice; chunks of 128 rows, none of them padded
    x = draw(gaussian(0.0, 0.5), 2560, steps=2, n_proposals=2, log_weight=log_weight)
    is_kept = np.isclose(x, np.concatenate(offered))
    assert is_kept.any(axis=1).all()
    assert is_kept[:, 1].mean() == pytest.approx(0.75, abs=0.03)


def test_each_row_is_weighed_by_its_own_reward() -> None:
    """Odd rows want to be large, even ones small, across chunks."""

    def log_weight(rows: np.ndarray, predicted: torch.Tensor) -> torch.Tensor:
        sign = torch.as_tensor(np.where(rows % 2, 6.0, -6.0))
        return sign[:, None] * predicted[..., 0]

    x = draw(gaussian(0.0, 0.5), 130, steps=20, n_proposals=10, log_weight=log_weight)[:, 0]
    assert x[1::2].mean() > 0.7
    assert x[::2].mean() < -0.7


def test_a_rows_latent_does_not_depend_on_the_rows_beside_it() -> None:
    tabsyn, noise = tiny_tabsyn(), KeyedNoise(0)
    keys = noise.keys(np.arange(600, dtype=float)[:, None])
    whole = sample(tabsyn.denoise, keys, noise, tabsyn.n_latents, steps=5, churn=1.0)
    part = sample(tabsyn.denoise, keys[[7, 400]], noise, tabsyn.n_latents, steps=5, churn=1.0)
    torch.testing.assert_close(part, whole[[7, 400]], rtol=0, atol=1e-5)


# ---- TabSyn -----------------------------------------------------------------------------------


@cache
def tiny_tabsyn(
    vae: TabSynVAEConfig = TINY_VAE, denoiser: DenoiserConfig = TINY_DENOISER
) -> TabSyn:
    F, encoder = encoded()
    return fit_tabsyn(F, encoder, vae, denoiser, seed=0, progress=False)


def rows_of(tabsyn: TabSyn, n: int = 40) -> np.ndarray:
    noise = KeyedNoise(0)
    keys = noise.keys(np.arange(n, dtype=float)[:, None])
    return tabsyn.sample(keys, noise, steps=5, churn=1.0)


def test_latents_are_standardised() -> None:
    F, encoder = encoded()
    tabsyn = tiny_tabsyn()
    with torch.no_grad():
        means = tabsyn.vae.encode(*Tokeniser.fit(F, encoder).tokens(F))[0].flatten(1)
    latents = (means - tabsyn.centre) / tabsyn.scale
    torch.testing.assert_close(latents.mean(0), torch.zeros(tabsyn.n_latents), atol=1e-4, rtol=0)
    torch.testing.assert_close(
        latents.std(0, correction=0), torch.full((tabsyn.n_latents,), SIGMA_DATA)
    )


@pytest.mark.parametrize(
    "change",
    [
        {"latent": 2},
        {"width": 4},
        {"heads": 2},
        {"feedforward": 4},
        {"layers": 2},
        {"steps": 20},
        {"batch_size": 32},
        {"lr": 1e-2},
        {"beta": (1.0, 1.0)},
        {"annealed": 0.1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_setting_of_the_vae_changes_the_rows(change: dict[str, Any]) -> None:
    other = tiny_tabsyn(vae=replace(TINY_VAE, **change))
    assert not np.array_equal(rows_of(other), rows_of(tiny_tabsyn()), equal_nan=True)


@pytest.mark.parametrize(
    "change",
    [{"width": 4}, {"steps": 20}, {"batch_size": 32}, {"lr": 1e-2}],
    ids=lambda change: next(iter(change)),
)
def test_every_setting_of_the_denoiser_changes_the_rows(change: dict[str, Any]) -> None:
    other = tiny_tabsyn(denoiser=replace(TINY_DENOISER, **change))
    assert not np.array_equal(rows_of(other), rows_of(tiny_tabsyn()), equal_nan=True)


# ---- the ring: accepted people lie on a circle around the origin -------------------------------


@cache
def ring() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 900)
    radius = np.where(np.arange(900) < 600, 1.0, 0.3) + 0.02 * rng.normal(size=900)
    return pd.DataFrame({"a": radius * np.cos(angle), "b": radius * np.sin(angle)})


def outside(X: pd.DataFrame) -> np.ndarray:
    radius = np.hypot(X["a"].to_numpy(dtype=float), X["b"].to_numpy(dtype=float))
    return np.asarray(1 / (1 + np.exp(-20 * (radius - 0.7))))


@cache
def ring_tabsyn() -> TabSyn:
    vae = TabSynVAEConfig(width=16, heads=1, feedforward=16, steps=500, batch_size=128)
    denoiser = DenoiserConfig(width=32, steps=1500, batch_size=128, lr=4e-3)
    encoder = TableEncoder(Schema.infer(ring())).fit(ring())
    accepted = encoder.features(ring()[outside(ring()) > 0.7])
    return fit_tabsyn(accepted, encoder, vae, denoiser, seed=0, progress=False)


@pytest.mark.parametrize("name", ["tabsyn_q", "tabsyn_svdd"])
def test_recourse_lies_on_the_ring_and_on_x_s_side_of_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_tabsyn, "fit_tabsyn", lambda *_, **__: ring_tabsyn())
    method = METHODS[name](outside, Schema.infer(ring()), steps=20).fit(ring())
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    people = pd.DataFrame({"a": 0.4 * np.cos(angle), "b": 0.4 * np.sin(angle)})
    near, free = method.recourse(people), method.recourse(people, lam=0.0)
    for found in (near, free):
        assert np.median(np.abs(np.hypot(found["a"], found["b"]) - 1.0)) < 0.06

    def gap(found: pd.DataFrame) -> float:
        return float(np.median(np.hypot(found["a"] - people["a"], found["b"] - people["b"])))

    # the nearest point of the ring is 0.6 away; half of the ring is more than 1.08 away
    assert gap(near) < 0.75
    assert gap(free) > 0.85


# ---- TabSyn + Q -------------------------------------------------------------------------------


@cache
def tiny(name: str, **params: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        params = {"schema": LOOSE, **TINY, **params}
        method = METHODS[name](example_score, **params)
        return method.fit(EXAMPLE.X, EXAMPLE.y)


def test_q_draws_synthetic_rows_by_their_cost() -> None:
    X = pd.DataFrame({"a": [0.0, 1.0, 0.2, 0.9], "sex": ["f", "m", "f", "m"]})
    schema = Schema.infer(X, immutable=("sex",))
    method = TabSynQ(lambda X: X["a"].to_numpy(), schema, lam=2.0, gamma=0.5, **TINY)
    method.fit(X, [0, 1, 0, 1])
    method._set_targets(np.array([[0.6, 0.0], [0.9, 0.0], [0.2, 1.0]]))  # (a, level of sex)
    Z = method.problem_.encoder.encode(X.iloc[[0]])  # a = 0, sex f: the third row is not for her
    found = [method._recourse(Z, KeyedNoise(seed))[0, 0] for seed in range(800)]
    assert set(found) == {0.6, 0.9}
    # Q: exp(-1.2) to exp(-1.8)
    assert np.mean(np.isclose(found, 0.6)) == pytest.approx(1 / (1 + np.exp(-0.6)), abs=0.05)
    dear = [method._recourse(Z, KeyedNoise(seed), lam=100.0)[0, 0] for seed in range(50)]
    assert set(dear) == {0.6}


def test_q_says_who_has_no_synthetic_row_to_go_to() -> None:
    X = pd.DataFrame({"a": [0.0, 1.0, 0.2, 0.9], "sex": ["f", "m", "f", "m"]})
    schema = Schema.infer(X, immutable=("sex",))
    method = TabSynQ(lambda X: X["a"].to_numpy(), schema, gamma=0.5, **TINY).fit(X, [0, 1, 0, 1])
    person = X.iloc[[0]]  # D+ has no f, so that TabSyn makes none
    found = method.recourse(person)
    assert found.equals(person)
    assert method.assess(person, found)["status"].tolist() == ["no-feasible-target"]


def test_as_many_synthetic_rows_as_the_table_has() -> None:
    method = tiny("tabsyn_q", checked=False)
    assert len(method.targets_.F) == len(EXAMPLE.X) == method.fit_report_["synthetic"]["rows"]
    checked = tiny("tabsyn_q")
    assert (checked.problem_.confidence_derived(checked.targets_.Z) > checked.gamma).all()
    share = len(checked.targets_.F) / len(EXAMPLE.X)
    assert share == pytest.approx(checked.fit_report_["synthetic"]["above_gamma"])
    assert 0 < share < 1


# ---- TabSyn + SVDD ----------------------------------------------------------------------------


def test_the_reward_by_hand() -> None:
    number, immutable = np.array([True, True, False, False]), np.array([False, False, False, True])
    x = np.array([0.1, 0.2, 1.0, 0.0])
    x_plus = np.array(
        [
            [0.1, 0.2, 1.0, 0.0],
            [0.4, 0.6, 1.0, 0.0],  # 0.3, 0.4
            [0.4, 0.6, 3.0, 0.0],  # and another level, whichever it is
            [0.1, 0.2, 1.0, 2.0],  # an immutable: 1 for the change, and the penalty
            [np.nan, 0.2, 1.0, 0.0],  # gone missing
        ]
    )
    expected = [0.0, -0.5, -(1.25**0.5), -101.0, -1.0]
    np.testing.assert_allclose(reward(x, x_plus, number, immutable), expected)
    gone = np.array([[np.nan, 0.2, 1.0, 0.0]])
    np.testing.assert_allclose(reward(gone, gone, number, immutable), 0.0)


def test_broken_immutables_are_counted_before_they_are_pinned() -> None:
    method, people = tiny("tabsyn_svdd"), EXAMPLE.people
    told = method.immutables_broken(people)
    F = method.problem_.encoder.features(people)
    drawn = method._guided(F, KeyedNoise(method.random_state))
    fixed = [method.schema_.names.index(name) for name in ("age", "sex")]
    assert told.tolist() == (np.abs(drawn - F)[:, fixed] > 1e-9).any(axis=1).tolist()
    assert told.any()  # an age of sixty values is hardly ever met
    assert told.index.equals(people.index)
    share = method.fit_report_["immutables_broken"]
    assert share["rows"] == 100
    assert 0 < share["share"] <= 1
    free = tiny("tabsyn_svdd", schema=LOOSE.with_feature("age", role="mutable"))
    assert free.immutables_broken(people).mean() < told.mean()


def test_guidance_brings_recourse_nearer() -> None:
    method, people = tiny("tabsyn_svdd", steps=10), EXAMPLE.people
    F, number = method.problem_.encoder.features(people), method.tabsyn_.tokeniser.is_number
    nobody = np.zeros(F.shape[1], dtype=bool)

    def distance(lam: float) -> float:
        return float(-reward(F, method._guided(F, KeyedNoise(0), lam), number, nobody).mean())

    assert distance(20.0) < distance(2.0) < distance(0.0)


# ---- both -------------------------------------------------------------------------------------

SHARED = [{"lam": 0.5}, {"gamma": 0.9}, {"steps": 6}, {"churn": 0.3}, {"random_state": 1}]


@pytest.mark.parametrize(
    ("name", "change"),
    [("tabsyn_q", c) for c in [*SHARED, {"n_rows": 50}, {"n_bins": 3}]]
    + [("tabsyn_svdd", c) for c in [*SHARED, {"n_proposals": 3}]],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_every_parameter_changes_the_answer(name: str, change: dict[str, Any]) -> None:
    plain = tiny(name).recourse(EXAMPLE.people)
    assert not tiny(name, **change).recourse(EXAMPLE.people).equals(plain)


@pytest.mark.parametrize("name", ["tabsyn_q", "tabsyn_svdd"])
def test_lam_at_a_request_is_as_if_it_were_fitted(name: str) -> None:
    asked = tiny(name).recourse(EXAMPLE.people, lam=0.5)
    assert asked.equals(tiny(name, lam=0.5).recourse(EXAMPLE.people))


@pytest.mark.parametrize("name", ["tabsyn_q", "tabsyn_svdd"])
def test_a_loaded_method_answers_as_the_saved_one(name: str, tmp_path: Path) -> None:
    method = tiny(name)
    method.save(tmp_path / "model")
    loaded: Any = load(tmp_path / "model", example_score)
    assert loaded.recourse(EXAMPLE.people).equals(method.recourse(EXAMPLE.people))
    assert loaded.fit_report_ == method.fit_report_


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("tabsyn_q", {"lam": -1.0}, "lam is -1.0"),
        ("tabsyn_q", {"lam": "any"}, "lam is 'any'"),
        ("tabsyn_q", {"steps": 0}, "steps is 0"),
        ("tabsyn_q", {"n_rows": 0}, "n_rows is 0"),
        ("tabsyn_q", {"gamma": 0.9999}, "nobody to imitate"),
        ("tabsyn_svdd", {"churn": 1.5}, "churn is 1.5"),
        ("tabsyn_svdd", {"n_proposals": 2.5}, "n_proposals is 2.5"),
    ],
)
def test_settings_that_mean_nothing_are_refused(name: str, wrong: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        METHODS[name](example_score, EXAMPLE.schema, **wrong).fit(EXAMPLE.X, EXAMPLE.y)


def test_a_lam_that_means_nothing_is_refused_at_a_request() -> None:
    method = tiny("tabsyn_svdd")
    with pytest.raises(UserError, match=r"TabSynSVDD\.recourse: lam is -2"):
        method.recourse(EXAMPLE.people, lam=-2)


def test_the_two_are_in_methods_as_the_paper_has_them() -> None:
    assert TabSynSVDD().lam == TabSynQ().lam == 5.0
    assert TabSynSVDD().n_proposals == 10
    assert TabSynSVDD().steps <= 50
    assert TabSynQ().steps <= 50
    assert METHODS["tabsyn_q"] is TabSynQ
    assert METHODS["tabsyn_svdd"] is TabSynSVDD
