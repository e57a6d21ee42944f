"""cchvae, revise and cruds: their VAEs by hand, and recourse where the right answer is known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from genrecourse import METHODS, Classifier, Schema, UserError, load
from genrecourse.evaluation.checks import make_example
from genrecourse.methods import cchvae, cruds
from genrecourse.methods._subspace_vae import APART, SubspaceVAE, entropy
from genrecourse.methods._vae import VAE, Layout, VAEConfig, divergence, in_chunks
from genrecourse.methods.cchvae import CCHVAE
from genrecourse.methods.cruds import CRUDS
from genrecourse.methods.revise import Revise
from genrecourse.rules.book import RuleBook
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.noise import KeyedNoise

NAMES = ("cchvae", "revise", "cruds")

# ---- a curve for each group, of which h sees only one coordinate ------------------------------

SMALL = VAEConfig(hidden=(32, 32), n_latent=1, max_steps=1000, lr=5e-3)
SETTINGS: dict[str, dict[str, Any]] = {
    "cchvae": {"vae": SMALL},
    "revise": {"vae": SMALL, "steps": 100},
    "cruds": {"vae": SMALL, "steps": 100, "lr": 0.05, "lam": 0.5},
}


class Slope(nn.Module):
    """h of a row of Z: a steep step in its first column."""

    def __init__(self, steepness: float = 12.0, at: float = 0.6):
        super().__init__()
        self.steepness, self.at = nn.Parameter(torch.tensor(steepness)), at

    def forward(self, Z: Tensor) -> Tensor:
        return torch.sigmoid(self.steepness * (Z[:, 0] - self.at))


def on_curve(a: Any, group: Any) -> Any:
    return 0.7 * a**2 + np.where(np.asarray(group) == "up", 0.25, 0.0)


def curves(n: int = 1500, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    a, group = rng.random(n), rng.choice(["down", "up"], n)
    a[:2] = 0, 1
    b = on_curve(a, group) + rng.normal(0, 0.01, n)
    b[:2] = 0, 1  # both columns span [0, 1]: Z has the numbers of the table
    return pd.DataFrame({"a": a, "b": b.clip(0, 1), "group": group}), (a > 0.6).astype(int)


@cache
def fitted(name: str) -> Any:
    X, y = curves()
    schema = Schema.infer(X, immutable=("group",))
    h = Classifier(Slope(), encoder=TableEncoder(schema).fit(X))
    return METHODS[name](h, schema, **SETTINGS[name]).fit(X, y)


def people(n: int = 40) -> pd.DataFrame:
    X, _ = curves(200, seed=1)
    return X[(X["a"] > 0.05) & (X["a"] < 0.45)].iloc[:n]


@pytest.mark.parametrize("name", NAMES)
def test_recourse_lies_on_the_persons_own_curve(name: str) -> None:
    x = people()
    x_plus = fitted(name).recourse(x)
    assert (x_plus["group"] == x["group"]).all()
    assert (fitted(name).classifier_.score(x_plus) > 0.5).all()
    off = np.abs(x_plus["b"] - on_curve(x_plus["a"], x["group"]))
    # to move in a alone, as h would have it, ends further away than a group is from the other
    assert np.abs(x["b"] - on_curve(x_plus["a"], x["group"])).mean() > 0.15
    assert off.mean() < 0.05
    assert off.max() < 0.12


@pytest.mark.parametrize("name", NAMES)
def test_a_model_file_gives_the_same_recourse(name: str, tmp_path: Path) -> None:
    method = fitted(name)
    method.save(tmp_path / "saved")
    again = load(tmp_path / "saved", classifier=method.classifier)
    pd.testing.assert_frame_equal(again.recourse(people()), method.recourse(people()))
    assert again.fit_report_ == method.fit_report_


CHANGED: dict[str, dict[str, Any]] = {
    "cchvae": {"n_draws": 10, "step": 0.5, "max_iterations": 1},
    "revise": {"lam": 4.0, "lr": 0.01, "steps": 3},
    "cruds": {"lam": 4.0, "lr": 0.2, "steps": 3},
}


@pytest.mark.parametrize(
    ("name", "setting"), [(name, setting) for name in CHANGED for setting in CHANGED[name]]
)
def test_each_setting_of_the_search_changes_the_answer(name: str, setting: str) -> None:
    method = fitted(name)
    # cruds starts where h accepts: only a price that it hears makes it move
    asked = {"lam": 2.0} if (name, setting) == ("cruds", "steps") else {}
    before = method.recourse(people(), **asked)
    kept = getattr(method, setting)
    try:
        setattr(method, setting, CHANGED[name][setting])
        assert not method.recourse(people(), **asked).equals(before)
    finally:
        setattr(method, setting, kept)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "other",
    [
        {"hidden": (8,)},
        {"n_latent": 3},
        {"epochs": 2},
        {"max_steps": 3},
        {"batch_size": 32},
        {"lr": 1e-2},
        {"weight_decay": 0.5},
        {"kl_weight": 0.9},
    ],
    ids=lambda other: next(iter(other)),
)
def test_each_setting_of_the_vae_changes_it(name: str, other: dict[str, Any]) -> None:
    X, y = curves(100)
    vae = VAEConfig(hidden=(6,), n_latent=2, epochs=5, batch_size=50)
    schema = Schema.infer(X)
    h = Classifier(Slope(), encoder=TableEncoder(schema).fit(X))
    a, b = (METHODS[name](h, schema, vae=v).fit(X, y) for v in (vae, replace(vae, **other)))
    weights = [list(method.vae_.parameters()) for method in (a, b)]
    assert len(weights[0]) != len(weights[1]) or any(
        u.shape != v.shape or not torch.equal(u, v) for u, v in zip(*weights, strict=True)
    )


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_fitted_is_said(name: str) -> None:
    X, y = curves(60)
    schema = Schema.infer(X, immutable=("a", "b", "group"))
    h = Classifier(Slope(), encoder=TableEncoder(schema).fit(X))
    with pytest.raises(UserError, match="every feature is immutable"):
        METHODS[name](h, schema).fit(X, y)
    bad = {"step": 0.0} if name == "cchvae" else {"lam": -1.0}
    with pytest.raises(UserError, match=f"{next(iter(bad))} is {next(iter(bad.values()))}"):
        METHODS[name](h, schema, **bad).fit(X, y)


# ---- the VAE ----------------------------------------------------------------------------------


def test_every_column_is_given_or_has_one_meaning() -> None:
    example = make_example()
    encoder = TableEncoder(example.schema).fit(example.X)
    layout = Layout(encoder, RuleBook.of_schema(encoder).immutable)
    blocks = dict(zip(example.schema.names, encoder.blocks, strict=True))
    given = [c for name in ("age", "sex") for c in range(blocks[name].start, blocks[name].stop)]
    assert layout.given.tolist() == given
    assert sorted([*given, *layout.free.tolist()]) == list(range(encoder.width))
    meant = [*layout.numbers.tolist(), *layout.pairs.tolist()]
    meant += [c for block in layout.onehots for c in range(block.start, block.stop)]
    assert sorted(meant) == list(range(len(layout.free)))
    numbers = layout.free[layout.numbers].tolist()
    assert numbers == [blocks[name].start for name in ("income", "debt", "years")]
    # of those, the first can be missing, and the next column says so
    assert {n: int(layout.free[f]) for n, f in layout.flags.items()} == {0: numbers[0] + 1}
    assert [block.stop - block.start for block in layout.onehots] == [5, 3]


def example_vae() -> tuple[VAE, Any, Any]:
    example = make_example()
    encoder = TableEncoder(example.schema).fit(example.X)
    layout = Layout(encoder, RuleBook.of_schema(encoder).immutable)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        vae = VAE(VAEConfig(hidden=(9, 7), n_latent=3), layout, encoder.width)
    return vae, encoder, encoder.encode(example.X)


def test_decoded_rows_are_relaxed_rows_with_xs_immutables() -> None:
    vae, encoder, Z = example_vae()
    with torch.no_grad():
        for weights in vae.decoder.parameters():
            weights *= 5  # so that the outputs are far apart
    decoded = in_chunks(vae.decode, np.random.default_rng(0).normal(size=(len(Z), 3)), Z)
    given = vae.decoder.layout.given.numpy()
    assert np.array_equal(decoded[:, given], Z[:, given].astype(np.float32))
    assert ((decoded >= 0) & (decoded <= 1)).all()
    for block, immutable in zip(encoder.blocks, RuleBook.of_schema(encoder).immutable, strict=True):
        if block.is_onehot and not immutable:
            assert np.allclose(decoded[:, block.columns].sum(axis=1), 1, atol=1e-6)
    assert decoded.std(axis=0)[vae.decoder.layout.free.numpy()].min() > 1e-3


def test_the_likelihood_of_a_row_by_hand() -> None:
    vae, encoder, Z = example_vae()
    decoder, layout = vae.decoder, vae.decoder.layout
    with torch.no_grad():
        decoder.log_spread.copy_(torch.tensor([-1.0, -2.0, -3.0]))
    u = torch.zeros(len(Z), 3)
    out = decoder.outputs(u, torch.as_tensor(Z, dtype=torch.float32)).detach().double().numpy()
    told = decoder.neg_log_prob(u, torch.as_tensor(Z, dtype=torch.float32)).detach().numpy()
    places = {int(c): i for i, c in enumerate(layout.free)}
    total = np.zeros(len(Z))
    spread = iter(0.01 + np.exp([-1.0, -2.0, -3.0]))
    for feature, block in zip(encoder.schema, encoder.blocks, strict=True):
        if feature.role == "immutable":
            continue
        o = out[:, [places[c] for c in range(block.start, block.stop)]]
        z = Z[:, block.columns]
        if block.is_onehot:
            p = np.exp(o) / np.exp(o).sum(axis=1, keepdims=True)
            total -= np.log(p[z > 0.5])
            continue
        p = 1 / (1 + np.exp(-o))
        coin = -np.log(np.where(z > 0.5, p, 1 - p))
        if block.n_levels:
            total += coin[:, 0]
            continue
        s = next(spread)
        normal = (z[:, 0] - p[:, 0]) ** 2 / (2 * s**2) + np.log(s)
        if block.has_flag:
            missing = z[:, 1] > 0.5
            assert missing.any()
            total += np.where(missing, 0.0, normal) + coin[:, 1]
        else:
            total += normal
    assert np.allclose(told, total, rtol=1e-4, atol=1e-4)


def test_divergence_by_hand() -> None:
    mean, log_var = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, np.log(4.0)]])
    assert float(divergence(mean, log_var)) == pytest.approx(0.5 + (4 - 1 - np.log(4)) / 2)
    assert float(divergence(mean, log_var, 1.0)) == pytest.approx(0.5 + (4 - 1 - np.log(4)) / 2)
    assert float(divergence(mean, log_var, 2.0)) == pytest.approx(0.5 + 2 + (3 - np.log(4)) / 2)


def test_the_loss_is_reconstruction_and_weighted_divergence() -> None:
    vae, _, Z = example_vae()
    rows = torch.as_tensor(Z, dtype=torch.float32)
    mean, log_var = vae.encoder(rows).chunk(2, dim=1)
    eps = torch.randn(mean.shape, generator=torch.Generator().manual_seed(3))
    fit = vae.decoder.neg_log_prob(mean + (log_var / 2).exp() * eps, rows).mean()
    for weight in (0.0, 0.7):
        told = vae.loss(weight, torch.Generator().manual_seed(3), rows)
        expected = fit + weight * divergence(mean, log_var).mean()
        assert told.item() == pytest.approx(expected.item(), rel=1e-5)


def test_so_many_batches() -> None:
    assert VAEConfig(epochs=3, batch_size=10).n_steps(25) == 9
    assert VAEConfig(epochs=100, batch_size=10, max_steps=50).n_steps(25) == 50


def test_a_row_is_encoded_the_same_beside_any_others() -> None:
    vae, _, Z = example_vae()
    big = VAE(VAEConfig(), vae.decoder.layout, Z.shape[1])
    Z = np.random.default_rng(0).random((700, Z.shape[1]))
    whole = in_chunks(big.encode, Z)
    order = np.random.default_rng(1).permutation(len(Z))
    assert np.array_equal(in_chunks(big.encode, Z[order]), whole[order])
    assert np.array_equal(in_chunks(big.encode, Z[437:440]), whole[437:440])


# ---- latent spaces that are Z itself ----------------------------------------------------------


class Itself(nn.Module):
    """A VAE that neither loses nor learns anything."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = ItsDecoder()

    def encode(self, Z: Tensor) -> Tensor:
        return Z

    def decode(self, u: Tensor, Z: Tensor) -> Tensor:
        return u


class ItsDecoder(nn.Module):
    def forward(self, u: Tensor, Z: Tensor) -> Tensor:
        return u


def in_the_plane(name: str, h: nn.Module, **params: Any) -> Any:
    """Two numbers in [0, 1], h as it is, and the identity in place of the VAE."""
    X = pd.DataFrame(np.random.default_rng(0).random((200, 2)), columns=["a", "b"])
    X.iloc[0], X.iloc[1] = 0.0, 1.0
    schema = Schema.infer(X)
    quick = VAEConfig(hidden=(4,), n_latent=2, max_steps=1)
    h_of_Z = Classifier(h, encoder=TableEncoder(schema).fit(X))
    method = METHODS[name](h_of_Z, schema, vae=quick, **params)
    method.fit(X, (X["a"] > 0.5).astype(int))
    method.vae_ = Itself()
    return method


def test_cchvae_draws_stay_in_their_shell() -> None:
    method = CCHVAE(n_draws=400, step=0.2)
    noise = KeyedNoise(0)
    centre, shell = np.array([[1.0, -2.0, 0.5], [0.0, 0.0, 3.0]]), np.array([0, 7])
    u = method._draws(centre, shell, noise.keys(np.column_stack([centre, shell])), noise)
    away = u - centre[:, None, :]
    radius = np.linalg.norm(away, axis=2)
    for r, t in zip(radius, shell, strict=True):
        assert r.min() >= 0.2 * t
        assert r.max() <= 0.2 * (t + 1)
        assert r.max() - r.min() > 0.19
    assert np.abs((away / radius[..., None]).mean(axis=1)).max() < 0.1  # no direction is favoured


def test_cchvae_takes_the_cheapest_accepted_draw_of_the_first_shell_that_has_one() -> None:
    method = in_the_plane("cchvae", Slope(50.0, 0.5), n_draws=300, step=0.05)
    # 0.3, 0.17 and 0.02 from the boundary, shells of 0.05
    Z = np.array([[0.2, 0.5], [0.33, 0.1], [0.48, 0.7]])
    found = method._recourse(Z, KeyedNoise(0))
    for x, x_plus, t in zip(Z, found, (6, 3, 0), strict=True):
        noise = KeyedNoise(0)
        keys = noise.keys(np.array([[*x, t]]))
        draws = method._draws(np.float32([x]), np.array([t]), keys, noise)[0].clip(0, 1)
        cost = np.where(draws[:, 0] > 0.5, np.abs(draws - x).sum(axis=1), np.inf)
        assert np.allclose(x_plus, draws[cost.argmin()], atol=1e-6)
        for s in range(t):
            before = noise.keys(np.array([[*x, s]]))
            assert method._draws(x[None], np.array([s]), before, noise)[..., 0].max() <= 0.5


def test_cchvae_searches_the_same_however_many_shells_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    method = in_the_plane("cchvae", Slope(50.0, 0.5), n_draws=20, step=0.02)
    Z = np.random.default_rng(2).random((9, 2)) * [0.4, 1.0]
    whole = method._recourse(Z, KeyedNoise(0))
    monkeypatch.setattr(cchvae, "CHUNK_DRAWS", 60)
    assert np.allclose(method._recourse(Z, KeyedNoise(0)), whole, atol=1e-12)


def test_cchvae_gives_what_h_likes_best_where_it_accepts_nothing() -> None:
    method = in_the_plane("cchvae", Slope(5.0, 0.5), n_draws=50, step=0.01, max_iterations=5)
    x = np.array([[0.2, 0.5]])
    assert 0.235 < method._recourse(x, KeyedNoise(0))[0, 0] < 0.25
    method.max_iterations = 10
    assert 0.28 < method._recourse(x, KeyedNoise(0))[0, 0] < 0.3


@pytest.mark.parametrize("name", ["revise", "cruds"])
def test_the_objective_by_hand(name: str) -> None:
    method = in_the_plane(name, Slope(10.0, 0.5))
    Z, Z_plus = torch.tensor([[0.2, 0.5]]).double(), torch.tensor([[0.6, 0.4]]).double()
    expected = np.log(1 + np.exp(-1.0)) + 3 * 0.5  # the logit is 10 * 0.1, the cost 0.4 + 0.1
    assert float(method._loss(3.0)(Z_plus, Z)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("lam", [0.5, 2.0])
def test_descent_ends_where_a_step_costs_what_it_gains(lam: float) -> None:
    k = 10.0
    method = in_the_plane("revise", Slope(k, 0.5), lr=0.01, steps=300)
    x = pd.DataFrame({"a": [0.2, 0.3], "b": [0.5, 0.9]})
    x_plus = method.recourse(x, lam=lam)
    # k * sigmoid(-k * (a - 0.5)) = lam
    assert np.allclose(x_plus["a"], 0.5 + np.log(k / lam - 1) / k, atol=0.01)
    assert np.allclose(x_plus["b"], x["b"], atol=0.01)


def test_cruds_starts_at_the_favourable_centre_and_keeps_the_cheapest_on_its_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    method = in_the_plane("cruds", Slope(10.0, 0.5), lr=0.01, steps=1)
    method.vae_.encode = lambda Z, y: Z
    monkeypatch.setattr(cruds, "APART", 0.8)
    x = pd.DataFrame({"a": [0.2, 0.3], "b": [0.5, 0.9]})
    assert np.allclose(method.recourse(x), 0.8, atol=0.02)
    method.steps = 300
    # at a price that the descent hears, it comes near x and over the edge again and again
    x_plus = method.recourse(x, lam=10.0)
    assert x_plus["a"].between(0.5, 0.53).all()
    assert np.allclose(x_plus["b"], x["b"], atol=0.03)


def test_cruds_starts_again_for_those_who_were_not_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    method = in_the_plane("cruds", Slope(10.0, 0.5), lr=0.001, steps=1)
    method.vae_.encode = lambda Z, y: Z + 0.35
    monkeypatch.setattr(cruds, "APART", 0.1)  # the favourable centre is where h rejects
    x = pd.DataFrame({"a": [0.2, 0.1], "b": [0.4, 0.3]})
    # where x is, the first is accepted; of the second, the nearest to it is kept
    np.testing.assert_allclose(method.recourse(x)["a"], [0.55, 0.46], atol=0.01)
    monkeypatch.setattr(cruds, "APART", -0.8)
    np.testing.assert_allclose(method.recourse(x)["a"], [0.55, 0.8], atol=0.01)


# ---- lam at each request ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["revise", "cruds"])
def test_lam_can_be_asked_at_each_request(name: str) -> None:
    method, x = fitted(name), people()
    usual = method.recourse(x)
    pd.testing.assert_frame_equal(method.recourse(x, lam=None), usual)
    pd.testing.assert_frame_equal(method.recourse(x, lam=method.lam), usual)
    prices = [method.assess(x, method.recourse(x, lam=lam))["cost"].mean() for lam in (0.01, 1, 3)]
    assert prices == sorted(prices, reverse=True)
    assert prices[0] > prices[2] + 0.02
    with pytest.raises(UserError, match=r"lam is -1; it must be a number from 0 to"):
        method.recourse(x, lam=-1)


# ---- cruds: w knows the outcome, z does not ---------------------------------------------------


def two_causes() -> tuple[pd.DataFrame, np.ndarray]:
    """a depends on the outcome, b and c do not."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 1500)
    a = (0.3 + 0.4 * y + rng.normal(0, 0.06, len(y))).clip(0, 1)
    b, c = rng.random((2, len(y)))
    return pd.DataFrame({"a": a, "b": b, "c": c}), y


@cache
def disentangled(independence: float) -> Any:
    X, y = two_causes()
    schema = Schema.infer(X)
    h = Classifier(Slope(20.0, 0.5), encoder=TableEncoder(schema).fit(X))
    vae = replace(SMALL, n_latent=3)
    return CRUDS(h, schema, independence=independence, vae=vae, steps=200, lr=0.05).fit(X, y)


def tells(method: Any, y: np.ndarray) -> tuple[float, float]:
    """How often the outcome is right when read off w, and off z."""
    X, _ = two_causes()
    Z = method.problem_.encoder.encode(X)
    w, z = np.split(in_chunks(method.vae_.encode, Z, y.astype(float).reshape(-1)), [2], axis=1)
    squares = np.concatenate([z, z**2, z[:, :1] * z[:, 1:]], axis=1)  # not only straight lines
    read = LogisticRegression(max_iter=2000).fit(squares, y).score(squares, y)
    return float(((w.mean(axis=1) > 0) == y).mean()), float(read)


def test_w_knows_the_outcome_and_z_does_not() -> None:
    _, y = two_causes()
    by_w, by_z = tells(disentangled(10.0), y)
    assert by_w > 0.97
    assert by_z < 0.65
    assert tells(disentangled(0.0), y)[1] > by_z + 0.1  # the adversary's work


def test_cruds_moves_what_the_outcome_hangs_on_and_leaves_the_rest() -> None:
    X, y = two_causes()
    x = X[y == 0].iloc[:50]
    x = x[x["a"] < 0.45]
    x_plus = disentangled(10.0).recourse(x)
    assert (x_plus["a"] > 0.5).all()
    assert np.abs(x_plus[["b", "c"]] - x[["b", "c"]]).to_numpy().mean() < 0.1


def test_entropy_by_hand() -> None:
    p = torch.tensor([0.5, 0.9, 0.01]).double()
    expected = -(p * p.log() + (1 - p) * (1 - p).log())
    assert torch.allclose(entropy(torch.logit(p)), expected)


def subspace_vae(independence: float) -> tuple[SubspaceVAE, tuple[Tensor, ...]]:
    X, y = two_causes()
    encoder = TableEncoder(Schema.infer(X)).fit(X)
    config = VAEConfig(hidden=(5,), n_latent=2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layout = Layout(encoder, RuleBook.of_schema(encoder).immutable)
        vae = SubspaceVAE(config, layout, encoder.width, independence=independence)
    label = torch.as_tensor(y[:20], dtype=torch.float32)
    Z = torch.as_tensor(encoder.encode(X.iloc[:20]), dtype=torch.float32)
    return vae, (Z, label, torch.ones(20))


def gradients(vae: SubspaceVAE, batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
    vae.zero_grad()
    vae.loss(0.5, torch.Generator().manual_seed(1), *batch).backward()
    return {name: p.grad.clone() for name, p in vae.named_parameters() if p.grad is not None}


def test_the_adversary_and_the_vae_each_learn_their_own_part() -> None:
    without, batch = subspace_vae(0.0)
    with_it, _ = subspace_vae(10.0)
    a, b = gradients(without, batch), gradients(with_it, batch)
    for name in a:
        if name.startswith("adversary"):  # it learns to tell, however much it counts
            assert torch.allclose(a[name], b[name])
            assert a[name].abs().sum() > 0
        if name.startswith(("encoder_w", "decoder")):
            assert torch.allclose(a[name], b[name])
    assert not torch.allclose(a["encoder_z.0.weight"], b["encoder_z.0.weight"])
    with torch.no_grad():  # what does not count, another adversary does not change
        without.adversary[0].weight.neg_()
    for name, gradient in gradients(without, batch).items():
        if not name.startswith("adversary"):
            assert torch.equal(gradient, a[name])


def test_the_prior_of_w_has_a_place_for_each_outcome() -> None:
    vae, (Z, _, weight) = subspace_vae(0.0)
    with torch.no_grad():  # w is drawn from N((3, 3), I), whatever x and y
        for parameter in vae.encoder_w.parameters():
            parameter.zero_()
        vae.encoder_w[-1].bias[:2] = 3.0
    told = [
        (
            vae.loss(1.0, torch.Generator().manual_seed(1), Z, outcome, weight)
            - vae.loss(0.0, torch.Generator().manual_seed(1), Z, outcome, weight)
        ).item()
        for outcome in (torch.zeros(20), torch.ones(20))
    ]
    # the divergence of z cancels: 2 * (3 + APART)^2 / 2 - 2 * (3 - APART)^2 / 2
    assert told[0] - told[1] == pytest.approx((3 + APART) ** 2 - (3 - APART) ** 2, rel=1e-3)


def test_cruds_needs_both_outcomes() -> None:
    X, y = two_causes()
    method = CRUDS(Classifier(Slope(), encoder=TableEncoder(Schema.infer(X)).fit(X)))
    with pytest.raises(UserError, match="1500 of 1500 rows have a favourable outcome"):
        method.fit(X, np.ones(len(y), dtype=int))


def test_a_classifier_without_gradients_gets_a_stand_in() -> None:
    X, y = curves(200)
    quick = VAEConfig(hidden=(4,), n_latent=2, max_steps=5)
    method = Revise(lambda X: (X["a"] > 0.6).to_numpy(float), steps=2, vae=quick)
    with pytest.warns(UserWarning, match="the two agree on"):
        method.fit(X, y)
