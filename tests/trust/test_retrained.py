"""RetrainedModels accept as many rows as h; they disagree with h only near its cutoff."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from genrecourse.model.artifact import fill, weights
from genrecourse.trust.retrained import N_RETRAINED, RetrainedModels, fit_retrained

RNG = np.random.default_rng(0)
Z = RNG.random((1500, 3))
EDGE = Z[:, 0] + 0.5 * Z[:, 1]
OUTCOME = RNG.random(1500) < 1 / (1 + np.exp(-12 * (EDGE - 0.75)))  # noisy near the edge


@pytest.fixture(scope="module")
def copies() -> RetrainedModels:
    return fit_retrained(Z, OUTCOME, EDGE > 0.75, seed=0)


def test_each_accepts_as_many_as_h(copies: RetrainedModels) -> None:
    shares = (copies(Z) > 0.5).mean(axis=1)
    assert shares.shape == (N_RETRAINED,)
    np.testing.assert_allclose(shares, (EDGE > 0.75).mean(), atol=2 / len(Z))


@pytest.mark.parametrize("level", [0.6, 1.0])
def test_a_stricter_h_has_stricter_copies(level: float) -> None:
    found = fit_retrained(Z, OUTCOME, level < EDGE, seed=0)(Z)
    np.testing.assert_allclose((found > 0.5).mean(), (level < EDGE).mean(), atol=0.01)


def test_they_agree_far_from_the_edge_and_differ_near_it(copies: RetrainedModels) -> None:
    accepts = copies(Z) > 0.5
    split = accepts.any(axis=0) & ~accepts.all(axis=0)
    assert accepts[:, EDGE > 1.0].mean() > 0.99
    assert accepts[:, EDGE < 0.5].mean() < 0.01
    assert split[np.abs(EDGE - 0.75) < 0.05].mean() > 0.1
    assert split[np.abs(EDGE - 0.75) > 0.25].mean() < 0.01


def test_a_stack_of_networks_is_each_network_alone(copies: RetrainedModels) -> None:
    """The stacked layers against each copy written out."""
    inputs = torch.as_tensor(Z[:50])
    with torch.no_grad():
        for i in range(N_RETRAINED):
            out = inputs
            for layer, (weight, bias) in enumerate(zip(copies.weight, copies.bias, strict=True)):
                out = out @ weight[i] + bias[i]
                out = out.relu() if layer < len(copies.weight) - 1 else out
            np.testing.assert_allclose(out[:, 0], copies.logits(inputs)[i], rtol=1e-9)


def test_seed_and_outcomes_count(copies: RetrainedModels) -> None:
    assert (fit_retrained(Z, OUTCOME, EDGE > 0.75, seed=0)(Z) == copies(Z)).all()
    assert (fit_retrained(Z, OUTCOME, EDGE > 0.75, seed=1)(Z) != copies(Z)).any()
    flipped = fit_retrained(Z, ~OUTCOME, EDGE > 0.75, seed=0)(Z)
    assert np.corrcoef(flipped.mean(axis=0), copies(Z).mean(axis=0))[0, 1] < -0.9


def test_they_come_back_from_arrays(copies: RetrainedModels) -> None:
    with torch.device("meta"):
        again = RetrainedModels(3)
    fill(again, weights(copies))
    assert (again(Z) == copies(Z)).all()


def test_what_they_say_of_a_row_hangs_on_no_other(copies: RetrainedModels) -> None:
    order, found = np.random.default_rng(1).permutation(len(Z)), copies(Z)
    assert (copies(Z[order]) == found[:, order]).all()
    assert (copies(Z[:37]) == found[:, :37]).all()
    assert copies(Z[:0]).shape == (N_RETRAINED, 0)
