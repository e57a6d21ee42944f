"""The VAE of TabSyn: a row of mixed features <-> one vector, with one piece per feature.

    row  --tokens--> transformer --> mean, log variance (d, latent)  --> transformer --> row

Every feature has a code and a value. A category has one code per level and no value. A number has a
value and the code "present", or "missing" if the schema allows it. So one embedding and one
detokeniser work for both kinds: each feature has a point for each code, and a direction for its
value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from scipy.special import ndtr, ndtri
from torch import Tensor, nn
from torch.nn import functional

from genrecourse.genre.model import EncoderLayer, NetConfig
from genrecourse.model.settings import (
    COUNT,
    LAYERS,
    POSITIVE,
    RATE,
    STEPS,
    WIDTH,
    Allowed,
    Number,
    Several,
    heads_conflict,
)
from genrecourse.model.threads import seeded
from genrecourse.model.training import TrainingPlan, train

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array, TableEncoder


@dataclass(frozen=True)
class TabSynVAEConfig:
    """Sizes and training.

    The original has tokens of width 4, two layers, a second transformer for the variance, and 4,000
    epochs with batches of 4,096. Here mean and variance share one transformer, and `steps` is the
    number of batches.
    """

    latent: int = 4  # numbers per feature
    width: int = 32
    heads: int = 2
    feedforward: int = 64
    layers: int = 1  # of the encoder, and of the decoder
    steps: int = 2500
    batch_size: int = 256
    lr: float = 3e-3
    beta: tuple[float, float] = (1e-2, 1e-5)  # first and last weight of the prior
    annealed: float = 0.6  # share of the steps until beta has its last value

    allowed: ClassVar[dict[str, Allowed]] = {
        "latent": WIDTH,
        "width": WIDTH,
        "heads": WIDTH,
        "feedforward": WIDTH,
        "layers": LAYERS,
        "steps": STEPS,
        "batch_size": COUNT,
        "lr": RATE,
        "beta": Several(POSITIVE, 2),
        "annealed": Number(0, 1, above=True),
    }

    def conflict(self) -> str:
        """Return which sizes do not fit each other; "" if all do."""
        return heads_conflict(self.width, self.heads)


# ---- F <-> codes and values -------------------------------------------------------------------


class Tokeniser:
    """F <-> codes (n, d) and values (n, d).

    A number becomes its normal score, by its rank among the fitted rows. The inverse is their
    empirical quantile function, without interpolation. So a frequent value (capital-gain = 0) is a
    wide step that small errors do not leave, and a decoded number is a value of the fitted rows.
    """

    def __init__(self, encoder: TableEncoder, values: dict[int, Array]):
        self.values = values  # of each number feature, sorted
        self.n_codes = [block.n_levels or 1 + block.has_flag for block in encoder.blocks]
        self.is_number = np.array([block.n_levels == 0 for block in encoder.blocks])
        self.may_be_missing = [feature.missing for feature in encoder.schema]

    @classmethod
    def fit(cls, F: Array, encoder: TableEncoder) -> Tokeniser:
        values = {}
        for j, block in enumerate(encoder.blocks):
            if block.n_levels == 0:
                present = np.sort(F[~np.isnan(F[:, j]), j])
                # if all values are missing, the decoded code is "missing" in any case
                values[j] = present if len(present) else np.zeros(1)
        return cls(encoder, values)

    def tokens(self, F: Array) -> tuple[Tensor, Tensor]:
        """Return codes (n, d) and values (n, d) of F; a feature without a value has 0."""
        missing = np.array(self.n_codes) - 1  # the last code
        codes = np.where(np.isnan(F), missing, np.where(self.is_number, 0, F)).astype(np.int64)
        values = np.zeros(F.shape)
        for j, known in self.values.items():
            there = codes[:, j] == 0
            below = np.searchsorted(known, F[there, j], side="left")
            not_above = np.searchsorted(known, F[there, j], side="right")
            rank = (below + not_above) / (2 * len(known))  # equal values have their middle rank
            values[there, j] = ndtri(rank.clip(0.5 / len(known), 1 - 0.5 / len(known)))
        return torch.as_tensor(codes), torch.as_tensor(values, dtype=torch.float32)

    def features(self, codes: np.ndarray, values: np.ndarray) -> Array:
        """Return F for codes and values, the inverse of `tokens`."""
        F = codes.astype(np.float64)
        for j, known in self.values.items():
            place = (ndtr(values[:, j]) * len(known)).astype(int)
            F[:, j] = known[np.minimum(place, len(known) - 1)]
        for j in map(int, np.flatnonzero(self.may_be_missing)):
            F[codes[:, j] == self.n_codes[j] - 1, j] = np.nan
        return F


# ---- the network ------------------------------------------------------------------------------


class TokenVAE(nn.Module):
    """Codes and values (n, d) <-> latents (n, d * latent)."""

    open_codes: Tensor
    has_value: Tensor

    def __init__(self, n_codes: list[int], is_number: np.ndarray, config: TabSynVAEConfig):
        super().__init__()
        d, width, most = len(n_codes), config.width, max(n_codes)
        layer = NetConfig(width=width, heads=config.heads, feedforward=config.feedforward)
        self.latent = config.latent
        self.register_buffer("open_codes", torch.arange(most) < torch.tensor(n_codes)[:, None])
        self.register_buffer("has_value", torch.as_tensor(is_number))
        # for each feature: a point for each code, and the direction of its value
        self.points = nn.Parameter(0.5 * torch.randn(d, most, width))
        self.direction = nn.Parameter(0.5 * torch.randn(d, width))
        self.encoder = nn.ModuleList(EncoderLayer(layer) for _ in range(config.layers))
        self.norm_encoded = nn.LayerNorm(width)
        self.to_latent = nn.Linear(width, 2 * config.latent)
        self.from_latent = nn.Linear(config.latent, width)
        self.position = nn.Parameter(0.5 * torch.randn(d, width))
        self.decoder = nn.ModuleList(EncoderLayer(layer) for _ in range(config.layers))
        self.norm_decoded = nn.LayerNorm(width)
        # for each feature: a logit for each code, and its value
        self.head = nn.Parameter(torch.randn(d, width, most + 1) / width**0.5)
        self.bias = nn.Parameter(torch.zeros(d, most + 1))

    def encode(self, codes: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and log variances, (n, d, latent) each."""
        features = torch.arange(codes.shape[1])
        tokens = self.points[features, codes] + values[..., None] * self.direction
        for layer in self.encoder:
            tokens = layer(tokens)
        mean, log_variance = self.to_latent(self.norm_encoded(tokens)).chunk(2, dim=-1)
        return mean, log_variance

    def decode(self, latents: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of the codes (n, d, K) and values (n, d) for latents (n, d * latent)."""
        pieces = latents.view(len(latents), -1, self.latent)
        tokens = self.from_latent(pieces) + self.position
        for layer in self.decoder:
            tokens = layer(tokens)
        out = torch.einsum("ndw,dwk->ndk", self.norm_decoded(tokens), self.head) + self.bias
        return out[..., :-1].masked_fill(~self.open_codes, -torch.inf), out[..., -1]

    def loss(
        self, codes: Tensor, values: Tensor, beta: float, generator: torch.Generator
    ) -> Tensor:
        """Return the mean over features and rows of: cross-entropy of the codes, squared error of
        the values that are not missing, and beta * KL."""
        mean, log_variance = self.encode(codes, values)
        noise = torch.randn(mean.shape, generator=generator)
        logits, decoded = self.decode((mean + noise * (log_variance / 2).exp()).flatten(1))
        wrong_code = functional.cross_entropy(logits.flatten(0, 1), codes.flatten())
        there = self.has_value & (codes == 0)
        wrong_value = ((decoded - values).square() * there).mean()
        prior = (mean.square() + log_variance.exp() - 1 - log_variance).sum(-1).mean() / 2
        return wrong_code + wrong_value + beta * prior


def annealed(config: TabSynVAEConfig) -> Iterator[float]:
    """Yield beta of each step: it falls geometrically to its last value, then is constant."""
    first, last = config.beta
    falling = max(1, round(config.annealed * config.steps))
    for step in range(config.steps):
        yield first * (last / first) ** min(1.0, step / falling)


def fit_vae(
    tokens: tuple[Tensor, Tensor],
    tokeniser: Tokeniser,
    config: TabSynVAEConfig,
    seed: int,
    progress: bool | None,
) -> TokenVAE:
    codes, values = tokens
    with seeded(seed):
        vae = TokenVAE(tokeniser.n_codes, tokeniser.is_number, config)
    generator = torch.Generator().manual_seed(int(seed))

    def batches() -> Iterator[tuple[Tensor, float]]:
        for beta in annealed(config):
            yield torch.randint(len(codes), (config.batch_size,), generator=generator), beta

    def loss(batch: tuple[Tensor, float]) -> Tensor:
        rows, beta = batch
        return vae.loss(codes[rows], values[rows], beta, generator)

    plan = TrainingPlan(steps=config.steps, lr=config.lr, clip=1.0, eval_every=0)
    train(vae, loss, batches(), plan, label="training TabSyn's VAE", progress=progress)
    return vae
