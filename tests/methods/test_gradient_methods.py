"""wachter, growing_spheres, dice, roar, probe and tap where the right answer is known.

Mostly on the plane of `test_gradient_search`, where h is linear: logit 4a + 2b - 3.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

from genrecourse import load
from genrecourse.errors import UserError
from genrecourse.methods import METHODS
from genrecourse.methods._gradient_search import REJECTED
from genrecourse.methods.base import Method
from genrecourse.methods.dice import JITTER, DiCE
from genrecourse.methods.growing_spheres import GrowingSpheres
from genrecourse.methods.probe import Probe
from genrecourse.methods.roar import ROAR
from genrecourse.methods.tap import TAP
from genrecourse.methods.wachter import Wachter
from genrecourse.table.noise import KeyedNoise
from tests.methods.test_gradient_search import ENCODER, PLANE, SCHEMA, by_table, linear_h

W, B = np.array([4.0, 2.0]), -3.0
SEEN = pd.Series((PLANE["a"] > 0.5).astype(int))
PEOPLE = PLANE[(PLANE @ W + B < -0.3).to_numpy()].iloc[1:26]  # not the corner (0, 0)
QUICK: dict[str, dict[str, Any]] = {
    "wachter": {"steps": 80, "lr": 0.02},
    "growing_spheres": {"n_draws": 100},
    "dice": {"steps": 60, "k": 2},
    "roar": {"steps": 60, "lr": 0.02, "n_neighbours": 50},
    "probe": {"steps": 80, "lr": 0.02},
    "tap": {"steps": 80, "lr": 0.02, "max_batches": 100, "verifier_lr": 3e-3},
}


def made(name: str, h: Any = None, schema: Any = SCHEMA, y: Any = SEEN, **params: Any) -> Any:
    """A fitted method around the linear h."""
    h = linear_h() if h is None else h
    return METHODS[name](h, schema, **{**QUICK[name], **params}).fit(PLANE, y)


def logit(X: pd.DataFrame) -> np.ndarray:
    return X.to_numpy() @ W + B


def cost(X: pd.DataFrame, X_plus: pd.DataFrame) -> np.ndarray:
    return np.abs(X.to_numpy() - X_plus.to_numpy()).sum(axis=1)


def tensor(*rows: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


# ---- all of them -------------------------------------------------------------------------------


def made_slowly(name: str, **params: Any) -> Any:
    return made(name, **params, **({"steps": 200} if "steps" in QUICK[name] else {}))


@pytest.mark.parametrize("name", QUICK)
def test_everybody_who_can_be_is_helped(name: str) -> None:
    assert (logit(made_slowly(name).recourse(PEOPLE)) > 0).all()


@pytest.mark.parametrize("name", QUICK)
def test_who_cannot_be_helped_gets_the_best_attempt(name: str) -> None:
    """Only b can change: the best for h is b = 1, and for a < 0.25 it is not enough."""
    people = PLANE[PLANE["a"] < 0.2].iloc[:5]
    method = made_slowly(name, schema=SCHEMA.with_feature("a", role="immutable"))
    answer = method.recourse(people)
    assert (answer["a"] == people["a"]).all()
    assert (answer["b"] > 0.93).all()
    assert (method.assess(people, answer)["status"] == "not-accepted").all()


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.filterwarnings("ignore:.*guides the search")
def test_a_model_file_gives_the_same_recourse(name: str, tmp_path: Path) -> None:
    method = made(name)
    method.save(tmp_path / "own")
    pd.testing.assert_frame_equal(load(tmp_path / "own").recourse(PEOPLE), method.recourse(PEOPLE))
    other = made(name, by_table)
    other.save(tmp_path / "given")
    again = load(tmp_path / "given", classifier=by_table)
    pd.testing.assert_frame_equal(again.recourse(PEOPLE), other.recourse(PEOPLE))
    assert (by_table(again.recourse(PEOPLE)) > 0.5).mean() > 0.9


CHANGES = [
    ("wachter", "lam", 1.8),
    ("wachter", "lr", 0.05),
    ("wachter", "steps", 3),
    ("growing_spheres", "n_draws", 10),
    ("growing_spheres", "step", 0.5),
    ("growing_spheres", "sparse", False),
    ("growing_spheres", "random_state", 1),
    ("dice", "k", 3),
    ("dice", "lam1", 1.0),
    ("dice", "lam2", 5.0),
    ("dice", "lr", 0.1),
    ("dice", "steps", 5),
    ("dice", "sparse", False),
    ("dice", "random_state", 1),
    ("roar", "delta", 0.5),
    ("roar", "lam", 0.5),
    ("roar", "lr", 0.05),
    ("roar", "steps", 5),
    ("probe", "target", 0.2),
    ("probe", "s2", 0.03),
    ("probe", "lam", 1.8),
    ("probe", "lr", 0.05),
    ("probe", "steps", 3),
    ("tap", "lam", 1.8),
    ("tap", "lr", 0.05),
    ("tap", "steps", 3),
    ("tap", "sure", 0.9),
    ("tap", "epochs", 10),
    ("tap", "verifier_lr", 1e-5),
    ("tap", "batch_size", 16),
    ("tap", "max_batches", 20),
    ("tap", "random_state", 1),
]
BEFORE: dict[str, pd.DataFrame] = {}


@pytest.mark.parametrize(("name", "parameter", "value"), CHANGES)
def test_each_parameter_changes_something(name: str, parameter: str, value: Any) -> None:
    if name not in BEFORE:
        BEFORE[name] = made(name).recourse(PEOPLE)
    assert not made(name, **{parameter: value}).recourse(PEOPLE).equals(BEFORE[name])


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        ("wachter", "lr", 0.0),
        ("wachter", "steps", 0),
        ("wachter", "rounds", 1.5),
        ("wachter", "lam", -0.1),
        ("growing_spheres", "step", 0.0),
        ("growing_spheres", "n_draws", 0),
        ("dice", "k", 0),
        ("dice", "lam2", float("nan")),
        ("roar", "delta", -1),
        ("roar", "n_neighbours", 0),
        ("probe", "target", 0.0),
        ("probe", "s2", -0.1),
        ("tap", "max_batches", 0),
        ("tap", "verifier_lr", "fast"),
    ],
)
def test_fit_refuses_settings_that_mean_nothing(name: str, parameter: str, value: Any) -> None:
    with pytest.raises(UserError, match=rf"\.fit: {parameter} is .*it must be"):
        made(name, **{parameter: value})


# ---- wachter -----------------------------------------------------------------------------------


def test_wachter_s_objective_by_hand() -> None:
    method: Wachter = made("wachter")
    # logit 4 * 0.6 + 2 * 0.5 - 3 = 0.4, cost 0.4 + 0.1
    got = method._loss(tensor((0.6, 0.5)), tensor((0.2, 0.6)), 0.7)
    assert got.item() == pytest.approx(np.log1p(np.exp(-0.4)) + 0.7 * 0.5)


def test_wachter_stops_at_the_boundary() -> None:
    answer = made("wachter", steps=200, lr=0.01).recourse(PEOPLE)
    assert (logit(answer) > 0).all()
    assert (logit(answer) < 0.01 * W.sum() + 1e-6).all()  # no more than a step of each beyond it


def test_wachter_with_a_high_price_takes_the_cheapest_way_to_the_boundary() -> None:
    """At the boundary a is worth 4 / 2 and b 2 / 2 a unit: at a price between, only a moves."""
    people = PEOPLE[(PEOPLE["a"] > 0.2) | (PEOPLE["b"] > 0.5)]  # a alone can get there
    answer = made("wachter", lam=1.5, steps=400, lr=0.005).recourse(people)
    cheapest = -logit(people) / 4
    np.testing.assert_allclose(cost(people, answer), cheapest, atol=0.02)


def test_wachter_lowers_lam_until_h_accepts() -> None:
    """Uphill pays (1 - h) * 4 at most: at a price of 3 the way ends at h = 1/4."""
    once = made("wachter", lam=3.0, rounds=1, steps=300).recourse(PEOPLE)
    assert (logit(once) < 0).all()
    assert (logit(made("wachter", lam=3.0, rounds=3, steps=300).recourse(PEOPLE)) > 0).all()


# ---- growing spheres ---------------------------------------------------------------------------


def test_draws_fill_the_shell_evenly() -> None:
    method: GrowingSpheres = made("growing_spheres", n_draws=20_000)
    Z, noise = np.array([[0.5, 0.5]]), KeyedNoise(0)
    wide = np.full((1, 2), 10.0)
    drawn = method._draw(Z, -wide, wide, 2, noise.keys(Z), noise)[0] - 0.5
    radius = np.linalg.norm(drawn, axis=1)
    assert radius.min() >= 0.4
    assert radius.max() <= 0.6
    assert (radius < 0.5).mean() == pytest.approx((0.25 - 0.16) / (0.36 - 0.16), abs=0.01)
    np.testing.assert_allclose(drawn.mean(axis=0), 0, atol=0.01)
    only_b = np.array([[0.0, 10.0]])
    pinned = method._draw(Z, Z - only_b, Z + only_b, 0, noise.keys(Z), noise)[0]
    assert (pinned[:, 0] == 0.5).all()
    assert np.abs(pinned[:, 1] - 0.5).max() <= 0.2


def test_growing_spheres_finds_the_nearest_point() -> None:
    """The nearest accepted point of a half-plane is |logit| / ||w|| away, if it is in [0, 1]^2."""
    people = PEOPLE[(PEOPLE + np.outer(-logit(PEOPLE), W) / (W @ W) < 0.97).all(axis=1)]
    answer = made("growing_spheres", n_draws=2000, sparse=False).recourse(people)
    distance = np.linalg.norm(answer.to_numpy() - people.to_numpy(), axis=1)
    exact = -logit(people) / np.linalg.norm(W)
    assert (distance >= exact).all()
    assert (distance <= exact + 0.03).all()


def test_growing_spheres_undoes_what_h_does_not_need() -> None:
    h = linear_h((4.0, 0.0), -3.0)
    dense = made("growing_spheres", h, sparse=False).recourse(PEOPLE)
    sparse = made("growing_spheres", h).recourse(PEOPLE)
    assert (dense["b"] != PEOPLE["b"]).all()
    pd.testing.assert_frame_equal(sparse, dense.assign(b=PEOPLE["b"]))


# ---- dice --------------------------------------------------------------------------------------


def test_dice_s_objective_by_hand() -> None:
    method: DiCE = made("dice", lam1=0.5, lam2=2.0)
    points = tensor((0.6, 0.5), (0.8, 0.4))[None]  # logits 0.4 and 1.0, costs 0.5 and 0.8
    ells = np.log1p(np.exp([-0.4, -1.0]))
    between = 1 / (1 + 0.3)
    det = (1 + JITTER) ** 2 - between**2
    wanted = ells.mean() + 0.5 * (0.5 + 0.8) / 2 - 2.0 * det
    person = tensor((0.2, 0.6))[None]
    assert method._loss(points, person).item() == pytest.approx(wanted)
    # the rank is the same by h's own scores, where h accepts both
    confidence = 1 / (1 + np.exp([[-0.4, -1.0]]))
    rank = method._rank(points.numpy(), person.numpy(), confidence)
    assert rank == pytest.approx(wanted, abs=1e-4)
    confidence[0, 0] = 0.4
    assert method._rank(points.numpy(), person.numpy(), confidence) > REJECTED


def apart(points: pd.DataFrame, k: int) -> float:
    """The mean cost between two points of one person."""
    Z = points.to_numpy().reshape(-1, k, 2)
    gaps = np.abs(Z[:, :, None] - Z[:, None]).sum(-1)
    return float(gaps.sum() / (len(Z) * k * (k - 1)))


def test_dice_s_points_are_valid_and_lam2_spreads_them() -> None:
    close = made("dice", k=3, lam2=0.0, steps=300, sparse=False).several(PEOPLE)
    wide = made("dice", k=3, lam2=1.0, steps=300, sparse=False).several(PEOPLE)
    assert (logit(close) > 0).all()
    assert (logit(wide) > 0).all()
    assert apart(wide, 3) > 2 * apart(close, 3)


def test_several_gives_k_rows_the_cheapest_first() -> None:
    method: DiCE = made("dice", k=2, steps=200)
    people = PLANE.iloc[:12]  # accepted ones, too
    points = method.several(people, k=3)
    wanted = pd.MultiIndex.from_product([people.index, range(3)], names=["row", "choice"])
    assert points.index.equals(wanted)
    price = cost(people.loc[wanted.get_level_values(0)], points).reshape(-1, 3)
    assert (np.diff(price, axis=1) >= 0).all()
    accepted = logit(people) > 0
    assert (price[accepted] == 0).all()
    pd.testing.assert_frame_equal(
        method.several(people).xs(0, level="choice").rename_axis(None), method.recourse(people)
    )
    with pytest.raises(UserError, match=r"DiCE.several: k is 0; it must be"):
        method.several(people, k=0)


def test_dice_with_one_point_has_no_use_for_lam2() -> None:
    one = made("dice", k=1).recourse(PEOPLE)
    pd.testing.assert_frame_equal(one, made("dice", k=1, lam2=7.0).recourse(PEOPLE))


# ---- roar --------------------------------------------------------------------------------------


@pytest.mark.parametrize("h", [None, by_table], ids=["torch", "function"])
def test_roar_s_local_model_of_a_linear_h_is_h(h: Any) -> None:
    method: ROAR = made("roar", h)
    w, b = method._local_linear(PEOPLE.to_numpy(), KeyedNoise(0))
    np.testing.assert_allclose(w, np.broadcast_to(W, w.shape), atol=0.01)
    np.testing.assert_allclose(b, B, atol=0.01)


def test_roar_s_inner_maximum_is_the_worst_of_many_shifts() -> None:
    method: ROAR = made("roar", delta=0.3, lam=0.0)
    z = np.array([0.6, 0.5])
    w, b = tensor(tuple(W)), torch.tensor([B], dtype=torch.float64)
    worst = method._loss(torch.tensor(z)[None], tensor((0.2, 0.6)), w, b).item()
    shift = np.random.default_rng(0).normal(size=(20_000, 3))
    shift *= 0.3 / np.linalg.norm(shift, axis=1, keepdims=True)
    losses = np.log1p(np.exp(-(z @ W + B + shift @ [*z, 1.0])))
    assert losses.max() <= worst + 1e-9
    assert losses.max() == pytest.approx(worst, abs=1e-3)


def test_roar_finds_the_best_of_a_grid() -> None:
    method: ROAR = made("roar", delta=0.2, lam=0.3, steps=400, lr=0.01)
    people = PEOPLE.iloc[:6]
    answer = method.recourse(people)
    axis = np.linspace(0, 1, 101)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    grid = grid[grid @ W + B > 0]
    w, b = torch.tensor(W), torch.tensor(B)
    for i in range(len(people)):
        x = torch.tensor(people.to_numpy()[i])
        lowest = method._loss(torch.tensor(grid), x, w, b).min().item()
        got = method._loss(torch.tensor(answer.to_numpy()[i]), x, w, b).item()
        assert got == pytest.approx(lowest, abs=0.01)


def test_roar_keeps_a_margin_that_grows_with_delta() -> None:
    settings = {"lam": 1.0, "steps": 300, "lr": 0.01}
    near, far = (made("roar", delta=d, **settings).recourse(PEOPLE) for d in (0.0, 0.5))
    assert logit(far).mean() > logit(near).mean() + 0.2


# ---- probe -------------------------------------------------------------------------------------


def test_probe_s_objective_by_hand() -> None:
    method: Probe = made("probe", target=0.05, s2=0.04)
    z = tensor((0.6, 0.5)).requires_grad_()
    rate = norm.sf(0.4 / (0.2 * np.sqrt(20)))  # the slope is (4, 2) everywhere
    assert method._rate(z)[1].item() == pytest.approx(rate, abs=1e-6)
    got = method._loss(z, tensor((0.2, 0.6)), torch.tensor([0.7]))
    wanted = np.log1p(np.exp(-0.4)) + (rate - 0.05) + 0.7 * 0.5
    assert got.item() == pytest.approx(wanted, abs=1e-6)
    sure = tensor((1.0, 1.0)).requires_grad_()  # logit 3: noise hardly ever takes it away
    calm = method._loss(sure, tensor((1.0, 1.0)), torch.tensor([0.7])).item()
    assert calm == pytest.approx(np.log1p(np.exp(-3)), abs=1e-9)


@pytest.mark.parametrize(("target", "s2"), [(0.05, 0.01), (0.2, 0.01), (0.05, 0.03)])
def test_probe_keeps_just_the_margin_that_noise_asks_for(target: float, s2: float) -> None:
    answer = made("probe", target=target, s2=s2, steps=300, lr=0.01).recourse(PEOPLE)
    margin = norm.isf(target) * np.sqrt(s2 * (W @ W))
    assert (logit(answer) >= margin - 0.01).all()
    assert (logit(answer) <= margin + 0.01 * W.sum() + 0.01).all()
    noise = np.random.default_rng(0).normal(scale=np.sqrt(s2), size=(4000, 1, 2))
    lost = ((answer.to_numpy() + noise) @ W + B <= 0).mean()
    assert lost <= target + 0.01


def test_probe_lowers_lam_until_the_rate_is_reached() -> None:
    once = made("probe", lam=3.5, rounds=1, steps=200).recourse(PEOPLE)
    often = made("probe", lam=3.5, rounds=4, steps=200).recourse(PEOPLE)
    margin = norm.isf(0.05) * np.sqrt(0.01 * (W @ W))
    assert (logit(once) < margin - 0.01).any()
    assert (logit(often) > margin - 0.01).all()


# ---- tap ---------------------------------------------------------------------------------------


def test_tap_s_verifier_learns_whether_classes_differ() -> None:
    method: TAP = made("tap", max_batches=600)
    assert method.fit_report_["verifier"]["batches"] == 600
    assert method.fit_report_["verifier"]["right_on_held_out_pairs"] > 0.85
    low, high = np.array([[0.1, 0.5], [0.9, 0.5]]), np.array([[0.2, 0.1], [0.8, 0.9]])
    assert (method._verify(low, low[::-1]) > 0.5).all()
    assert (method._verify(low, high) < 0.5).all()


def test_tap_goes_on_until_the_verifier_is_convinced() -> None:
    """h wants 4a + 2b > 3; outcomes are favourable from a = 0.8 on."""
    y = (PLANE["a"] > 0.8).astype(int)
    people = PEOPLE[PEOPLE["a"] < 0.6]
    method: TAP = made("tap", y=y, max_batches=800, steps=200, lr=0.01)
    answer = method.recourse(people)
    plain = made("wachter", y=y, steps=200, lr=0.01).recourse(people)
    verified = method._verify(people.to_numpy(), answer.to_numpy()) > 0.5
    assert verified.mean() > 0.9
    assert (answer["a"] > 0.7).mean() > 0.9
    assert (plain["a"] < 0.8).mean() > 0.8
    assert cost(people, answer).mean() > cost(people, plain).mean()


def test_tap_s_rank_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier only believes in a > 0.7; of what it doubts, the surest; then h."""
    method: TAP = made("tap")
    monkeypatch.setattr(method, "_verify", lambda Z, Z_plus: np.where(Z_plus[:, 0] > 0.7, 0.9, 0.3))
    Z = np.zeros((4, 2))
    Z_plus = np.array([[0.8, 0.1], [0.75, 0.0], [0.6, 0.6], [0.8, 0.0]])
    rank = method._rank(Z_plus, Z, np.array([0.8, 0.6, 0.9, 0.45]))
    assert rank[:2].tolist() == pytest.approx([0.9, 0.75])
    assert rank[1] < REJECTED < rank[2] < rank[3]


def test_tap_needs_both_outcomes() -> None:
    with pytest.raises(UserError, match=r"TAP.fit: 0 of 202 outcomes are favourable"):
        made("tap", y=np.zeros(len(PLANE), dtype=int))


def test_the_plane_is_what_these_tests_take_it_for() -> None:
    assert isinstance(made("wachter"), Method)
    np.testing.assert_array_equal(ENCODER.encode(PLANE), PLANE.to_numpy())
    np.testing.assert_allclose(linear_h().score(PLANE), by_table(PLANE), atol=1e-6)
    assert len(PEOPLE) == 25
