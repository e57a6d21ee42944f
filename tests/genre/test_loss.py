"""The loss, Eq. (7) and (8), and Algorithm 1, lines 4-9."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from genrecourse.genre.density import RecourseDensity
from genrecourse.table.schema import Feature, Schema
from tests.support.equations import (
    ATOM_AND_TAIL,
    LAMS,
    Case,
    any_lam_pairs,
    bins_of,
    fit,
    immutable_number,
    labels_of,
    make_density,
    reference_q,
    total_variation,
    toy,
)


def test_the_loss_is_the_cross_entropy_of_the_labels() -> None:
    """One decoded feature, so that nothing fed to the decoder matters: Eq. (8) by hand."""
    case = immutable_number([*np.tile([1.0, 2.0], 100)], sources=60)
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
    bins = bins_of(ATOM_AND_TAIL)
    mu, width = bins.value[0, 1:].numpy(), bins.width[0, 1:].numpy()  # without the atom
    for x_plus in rng.uniform(0.05, 1.0, 200):
        kernel = stats.norm.pdf((x_plus - mu) / width) / width
        label = np.array(labels_of(bins, x=math.nan, x_plus=float(x_plus))[1:4])
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
    fit(density, case, any_lam_pairs(case, 1000), steps=200)
    for lam in LAMS:
        q = reference_q(case.costs, lam)
        distance = distances_to_q(density, case, q, lam)
        assert distance.mean() < 0.1
        assert distance.max() < 0.3
    far = distances_to_q(density, case, reference_q(case.costs, 10.0), 0.5)
    assert far.mean() > 0.3
