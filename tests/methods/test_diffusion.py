"""Eq. (10): guided diffusion."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from genrecourse.methods import _diffusion as diffusion
from genrecourse.table.noise import KeyedNoise


@pytest.mark.parametrize(("n_proposals", "lam"), [(1, 2.0), (4, 0.0), (4, 2.0)])
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
