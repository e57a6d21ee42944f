"""Diffusion: a denoiser, and a sampler that any reward can guide, without gradients.

    D(x; sigma) = c_skip x + c_out F(c_in x, log(sigma) / 4)              the denoiser: E[clean | x]

The preconditioning, its loss and the noise levels are those of EDM (Karras, Aittala, Aila & Laine
2022). A step from sigma to sigma' goes *below* sigma' along the probability-flow ODE (Heun, second
order) and returns with fresh noise; `churn` decides how far. With churn 1, all noise that the
reverse process allows is fresh, as in ancestral sampling; with churn 0 the sampler is
deterministic.

Guidance is SVDD (Li et al. 2024): a step draws several proposals, weighs each by exp(lam * r) of
the clean row that the denoiser predicts from it, and draws one by these weights. The target is

    P'(x)  ∝  P(x) exp(lam * r(x))                                                      (Eq. 10)

which the sampler approaches with more proposals and levels, if r of the predicted row is close to r
of the final row. It needs fresh noise: if the proposals hardly differ, there is no choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from genrecourse.model.settings import COUNT, RATE, STEPS, WIDTH, Allowed
from genrecourse.model.threads import seeded
from genrecourse.model.training import TrainingPlan, train

if TYPE_CHECKING:
    from genrecourse.table.noise import KeyedNoise, Words

SIGMA_DATA = 0.5  # standard deviation of the data, as in EDM
LOG_SIGMA = (-1.2, 1.2)  # mean and deviation of log sigma in training
# Sampling starts with only noise and ends far below the detail of the data. EDM's values, 80 and
# 0.002, are for images; 50 levels between these reproduce the deviation of a Gaussian within 1%.
SIGMA_MAX, SIGMA_MIN, RHO = 10.0, 0.01, 7.0
CHUNK = 256  # latents at once: one fixed shape, so that a row does not depend on other rows

Denoise = Callable[[Tensor, float], Tensor]  # (n, L) at noise level sigma -> E[clean | noisy]
# numbers of the rows (B,) and their clean predictions (B, n, L) -> lam * r (B, n)
LogWeight = Callable[[np.ndarray, Tensor], Tensor]


@dataclass(frozen=True)
class DenoiserConfig:
    """Sizes and training; the original denoiser has width 1,024 and learns for 10,000 epochs."""

    width: int = 128
    steps: int = 5000
    batch_size: int = 256
    lr: float = 2e-3

    allowed: ClassVar[dict[str, Allowed]] = {
        "width": WIDTH,
        "steps": STEPS,
        "batch_size": COUNT,
        "lr": RATE,
    }


# ---- the denoiser -----------------------------------------------------------------------------


class Denoiser(nn.Module):
    """D(x; sigma): an MLP with the preconditioning of EDM."""

    frequencies: Tensor

    def __init__(self, n_latents: int, width: int):
        super().__init__()
        self.register_buffer("frequencies", torch.logspace(0, 1.5, 16))
        self.level = nn.Sequential(nn.Linear(32, width), nn.SiLU(), nn.Linear(width, width))
        self.inward = nn.Linear(n_latents, width)
        self.hidden = nn.Sequential(
            nn.Linear(width, 2 * width),
            nn.SiLU(),
            nn.Linear(2 * width, 2 * width),
            nn.SiLU(),
            nn.Linear(2 * width, width),
            nn.SiLU(),
            nn.Linear(width, n_latents),
        )

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        """Return D(x; sigma) for x (n, L) and sigma (n, 1) or (1, 1)."""
        total = (sigma.square() + SIGMA_DATA**2).sqrt()
        angle = sigma.log() / 4 * self.frequencies
        level = self.level(torch.cat([angle.sin(), angle.cos()], dim=-1))
        inner = self.hidden(self.inward(x / total) + level)
        return x * (SIGMA_DATA / total).square() + inner * (sigma * SIGMA_DATA / total)

    def loss(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Return the squared error of the clean x (n, L) at random levels of equal weight."""
        mean, deviation = LOG_SIGMA
        sigma = (mean + deviation * torch.randn(len(x), 1, generator=generator)).exp()
        noisy = x + sigma * torch.randn(x.shape, generator=generator)
        weight = (sigma.square() + SIGMA_DATA**2) / (sigma * SIGMA_DATA).square()
        return (weight * (self(noisy, sigma) - x).square()).mean()


def fit_denoiser(x: Tensor, config: DenoiserConfig, seed: int, progress: bool | None) -> Denoiser:
    """Return a denoiser fitted on x (n, L), with mean 0 and standard deviation SIGMA_DATA."""
    with seeded(seed):
        denoiser = Denoiser(x.shape[1], config.width)
    generator = torch.Generator().manual_seed(int(seed))

    def batches() -> Iterator[Tensor]:
        while True:
            yield x[torch.randint(len(x), (config.batch_size,), generator=generator)]

    plan = TrainingPlan(steps=config.steps, lr=config.lr, clip=1.0, eval_every=0)
    train(
        denoiser,
        lambda batch: denoiser.loss(batch, generator),
        batches(),
        plan,
        label="training TabSyn's denoiser",
        progress=progress,
    )
    return denoiser


# ---- sampling ---------------------------------------------------------------------------------


def noise_levels(steps: int) -> list[float]:
    """Return levels from SIGMA_MAX down to SIGMA_MIN, finer towards the end."""
    roots = np.linspace(SIGMA_MAX ** (1 / RHO), SIGMA_MIN ** (1 / RHO), steps)
    return [float(root**RHO) for root in roots]


def sample(
    denoise: Denoise,
    keys: Words,
    noise: KeyedNoise,
    n_latents: int,
    *,
    steps: int,
    churn: float,
    n_proposals: int = 1,
    log_weight: LogWeight | None = None,
) -> Tensor:
    """Return one latent (N, L) per key; if `log_weight` is given, it guides the sampler.

    The random numbers of a row depend on its key only, and rows are processed in padded chunks of
    one shape. So the latent of a row does not depend on other rows.
    """
    rows, parts = max(1, CHUNK // n_proposals), []
    for i in range(0, len(keys), rows):
        pad = np.minimum(np.arange(i, i + rows), len(keys) - 1)
        chain = _Chain(denoise, pad, keys[pad], noise, n_latents, n_proposals, log_weight)
        parts.append(chain.run(noise_levels(steps), churn)[: len(keys) - i])
    return torch.cat(parts) if parts else torch.zeros(0, n_latents, dtype=torch.float64)


class _Chain:
    """The sampling of one chunk of rows, from noise to data, in double precision."""

    def __init__(
        self,
        denoise: Denoise,
        rows: np.ndarray,
        keys: Words,
        noise: KeyedNoise,
        n_latents: int,
        n_proposals: int,
        log_weight: LogWeight | None,
    ):
        self.denoise, self.rows, self.keys, self.noise = denoise, rows, keys, noise
        self.shape = (n_proposals, n_latents)
        self.log_weight = log_weight
        self.used = 0  # random numbers used so far, from the stream of each row

    def run(self, levels: list[float], churn: float) -> Tensor:
        """Return the clean rows (B, L) that are predicted at the last level."""
        x = levels[0] * self._normal((self.shape[1],))
        clean = self.denoise(x, levels[0])
        for sigma, lower in pairwise(levels):
            fresh = churn * lower * (1 - (lower / sigma) ** 2) ** 0.5
            below = (lower**2 - fresh**2) ** 0.5
            start = self._down(x, clean, sigma, below)
            proposals = start[:, None] + fresh * self._normal(self.shape)
            predicted = self.denoise(proposals.flatten(0, 1), lower).view(proposals.shape)
            kept = self._keep(predicted)
            x, clean = proposals[kept], predicted[kept]
        return clean

    def _down(self, x: Tensor, clean: Tensor, sigma: float, below: float) -> Tensor:
        """Return Heun's step on the probability-flow ODE dx/dsigma = (x - D(x; sigma)) / sigma."""
        slope = (x - clean) / sigma
        ahead = x + (below - sigma) * slope
        slope_ahead = (ahead - self.denoise(ahead, below)) / below
        return x + (below - sigma) * (slope + slope_ahead) / 2

    def _keep(self, predicted: Tensor) -> tuple[Tensor, Tensor]:
        """Return the index of the kept proposal of each row, drawn by the weights."""
        every = torch.arange(len(predicted))
        if self.log_weight is None:
            return every, torch.zeros_like(every)
        # >>> Eq. (10)
        weight = torch.softmax(self.log_weight(self.rows, predicted).double(), dim=1)
        # <<<
        cdf = weight.cumsum(1)
        u = torch.as_tensor(self.noise.uniform(self.keys, (1,), offset=self._advance(1)))
        place = (cdf < u * cdf[:, -1:]).sum(1)
        return every, place.clamp_max(predicted.shape[1] - 1)

    def _normal(self, shape: tuple[int, ...]) -> Tensor:
        offset = self._advance(int(np.prod(shape)))
        return torch.as_tensor(self.noise.normal(self.keys, shape, offset=offset))

    def _advance(self, count: int) -> int:
        self.used += count
        return self.used - count
