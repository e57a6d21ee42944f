"""A variational auto-encoder of rows of Z, conditional on the immutable features.

    x_free ~ p(. | u, x_given),  u ~ N(0, I),  u ~ q(. | x)

The decoder gets the immutable features (x_given) as an input and does not decode them, so every
decoded row has those of x. A number is normal around a sigmoid, with a learned spread per feature.
Public versions use a cross-entropy for numbers, which is like a spread of about one half; then the
latent code loses the numbers. Categories are relaxed: a sigmoid for two levels, a softmax for more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from genrecourse.methods._gradient_search import chunks
from genrecourse.model.artifact import fill
from genrecourse.model.settings import COUNT, DECAY, RATE, STEPS, WEIGHT, WIDTH, Allowed, Several
from genrecourse.model.threads import seeded
from genrecourse.model.training import TrainingPlan, TrainingReport, train

if TYPE_CHECKING:
    from genrecourse.rules.problem import Problem
    from genrecourse.table.encoding import Array, TableEncoder

NARROWEST = 0.01  # smallest spread of a number: people do not carry out a plan more precisely
CHUNK = 256  # rows at once: one fixed shape, so that a code does not depend on other rows


@dataclass(frozen=True)
class VAEConfig:
    """Sizes and training of a VAE.

    The sizes are those of the originals. Their 100 epochs with batches of 32 rows take minutes on
    one core. So here the batches are larger, the learning rate falls to zero, and the number of
    batches is limited.
    """

    hidden: tuple[int, ...] = (512, 256)  # layers of the encoder; the decoder has them reversed
    n_latent: int = 8
    epochs: int = 100  # passes over the rows
    max_steps: int = 8000  # batches, at most
    batch_size: int = 128
    lr: float = 1e-3
    weight_decay: float = 1e-6
    # final weight of the divergence from the prior; it rises from 0, so that all latents are used
    kl_weight: float = 0.3

    allowed: ClassVar[dict[str, Allowed]] = {
        "hidden": Several(WIDTH),
        "n_latent": WIDTH,
        "epochs": STEPS,
        "max_steps": STEPS,
        "batch_size": COUNT,
        "lr": RATE,
        "weight_decay": DECAY,
        "kl_weight": WEIGHT,
    }

    def n_steps(self, n_rows: int) -> int:
        """Return the number of batches."""
        return min(self.epochs * -(-n_rows // self.batch_size), self.max_steps)


class RowDecoder(nn.Module):
    """p(x_free | inputs, x_given): a network whose outputs are the free columns of a row."""

    def __init__(self, n_inputs: int, hidden: tuple[int, ...], layout: Layout):
        super().__init__()
        self.layout = layout
        n_out = len(layout.free)
        self.net = make_net(n_inputs + len(layout.given), hidden[::-1], n_out)
        self.log_spread = nn.Parameter(torch.full((len(layout.numbers),), -2.0))

    def outputs(self, inputs: Tensor, Z: Tensor) -> Tensor:
        """Return (n, free columns) before `squash`; uses only the immutable features of Z."""
        return self.net(torch.cat([inputs, Z[:, self.layout.given]], dim=1))

    def forward(self, inputs: Tensor, Z: Tensor) -> Tensor:
        """Return relaxed rows (n, D) with the immutable features of Z."""
        return Z.index_copy(1, self.layout.free, self.layout.squash(self.outputs(inputs, Z)))

    def neg_log_prob(self, inputs: Tensor, Z: Tensor) -> Tensor:
        """Return (n,) the negative log-likelihood of the free columns of Z, up to a constant."""
        layout = self.layout
        out, x = self.outputs(inputs, Z), Z[:, layout.free]
        spread = NARROWEST + self.log_spread.exp()
        gap = (torch.sigmoid(out[:, layout.numbers]) - x[:, layout.numbers]) / spread
        of_numbers = gap.square() / 2 + spread.log()
        if layout.flags:  # a missing value does not count
            there = torch.ones_like(of_numbers)
            for number, flag in layout.flags.items():
                there[:, number] = 1 - x[:, flag]
            of_numbers = of_numbers * there
        total = of_numbers.sum(1)
        pairs = layout.pairs
        total = total + functional.binary_cross_entropy_with_logits(
            out[:, pairs], x[:, pairs], reduction="none"
        ).sum(1)
        for block in layout.onehots:
            total = total - (x[:, block] * out[:, block].log_softmax(1)).sum(1)
        return total


class Layout:
    """Which columns of Z are decoded and which are inputs, and the kinds of the decoded columns."""

    def __init__(self, encoder: TableEncoder, immutable: np.ndarray):
        free: list[int] = []
        given: list[int] = []
        numbers: list[int] = []  # from here on: positions among the free columns
        pairs: list[int] = []  # single columns that are 0 or 1
        self.onehots: list[slice] = []
        self.flags: dict[
            int, int
        ] = {}  # position in `numbers` -> the column that marks it as missing
        for block, is_given in zip(encoder.blocks, immutable, strict=True):
            columns = range(block.start, block.stop)
            if is_given:
                given += columns
                continue
            first = len(free)
            free += columns
            if block.is_onehot:
                self.onehots.append(slice(first, len(free)))
            elif block.n_levels > 0:
                pairs.append(first)
            else:
                if block.has_flag:
                    pairs.append(first + 1)
                    self.flags[len(numbers)] = first + 1
                numbers.append(first)
        self.free, self.given = torch.tensor(free), torch.tensor(given, dtype=torch.long)
        self.numbers = torch.tensor(numbers, dtype=torch.long)
        self.pairs = torch.tensor(pairs, dtype=torch.long)

    def squash(self, out: Tensor) -> Tensor:
        """Return outputs of a network as relaxed values of the free columns."""
        values = torch.sigmoid(out)
        if self.onehots:
            values = values.clone()
            for block in self.onehots:
                values[:, block] = out[:, block].softmax(1)
        return values


class VAE(nn.Module):
    """q(u | x) and p(x_free | u, x_given)."""

    def __init__(self, config: VAEConfig, layout: Layout, width: int):
        super().__init__()
        self.encoder = make_net(width, config.hidden, 2 * config.n_latent)
        self.decoder = RowDecoder(config.n_latent, config.hidden, layout)

    def encode(self, Z: Tensor) -> Tensor:
        """Return (n, k) the mean of q(u | x)."""
        return self.encoder(Z).chunk(2, dim=1)[0]

    def decode(self, u: Tensor, Z: Tensor) -> Tensor:
        """Return relaxed rows (n, D) with the immutable features of Z."""
        return self.decoder(u, Z)

    def loss(self, kl_weight: float, generator: torch.Generator, Z: Tensor) -> Tensor:
        """Return the mean over rows of the negative evidence bound (if kl_weight is 1)."""
        mean, log_var = self.encoder(Z).chunk(2, dim=1)
        u = draw(mean, log_var, generator)
        return (self.decoder.neg_log_prob(u, Z) + kl_weight * divergence(mean, log_var)).mean()


def draw(mean: Tensor, log_var: Tensor, generator: torch.Generator) -> Tensor:
    """Return one draw per row from N(mean, exp(log_var)), differentiable in both."""
    return mean + (log_var / 2).exp() * torch.randn(mean.shape, generator=generator)


def divergence(mean: Tensor, log_var: Tensor, centre: Tensor | float = 0.0) -> Tensor:
    """Return (n,) KL(N(mean, exp(log_var)) || N(centre, I))."""
    return ((mean - centre).square() + log_var.exp() - 1 - log_var).sum(1) / 2


def make_net(n_inputs: int, hidden: tuple[int, ...], n_outputs: int) -> nn.Sequential:
    sizes = (n_inputs, *hidden, n_outputs)
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


# ---- for a method ----------------------------------------------------------------------------


V = TypeVar("V", bound=nn.Module)  # any VAE with loss(kl_weight, generator, *tensors)
Make = Callable[[VAEConfig, Layout, int], V]


def fit_vae(
    problem: Problem, make: Make[V], config: VAEConfig, random_state: int, *tensors: Tensor
) -> tuple[V, dict[str, Any]]:
    """Return a trained VAE and a report of its training.

    tensors: the arguments of its loss, one row per training row.
    """
    with seeded(random_state):
        vae = _make(problem, make, config)
    report = _train(vae, tensors, config, random_state)
    return vae, {"seconds": {"vae": round(report.seconds, 3)}, "steps": report.steps}


def restore_vae(
    problem: Problem, make: Make[V], config: VAEConfig, arrays: dict[str, np.ndarray]
) -> V:
    """Return the VAE of `fit_vae` from its weights."""
    with torch.device("meta"):
        vae = _make(problem, make, config)
    fill(vae, arrays)
    return vae


def _make(problem: Problem, make: Make[V], config: VAEConfig) -> V:
    with torch.device("cpu"):  # the layout needs real tensors, unlike the weights
        layout = Layout(problem.encoder, problem.rules.immutable)
    return make(config, layout, problem.encoder.width)


def _train(
    vae: nn.Module, tensors: tuple[Tensor, ...], config: VAEConfig, seed: int
) -> TrainingReport:
    n = len(tensors[0])
    order = torch.Generator().manual_seed(int(seed))
    noise = torch.Generator().manual_seed(int(seed + 1))

    def batches() -> Iterator[Tensor]:
        while True:
            yield from torch.randperm(n, generator=order).split(int(config.batch_size))

    plan = TrainingPlan(
        steps=config.n_steps(n), lr=config.lr, weight_decay=config.weight_decay, eval_every=0
    )
    loss: Any = vae.loss
    rise = iter(np.linspace(0.0, config.kl_weight, plan.steps))
    return train(
        vae,
        lambda rows: loss(float(next(rise)), noise, *(t[rows] for t in tensors)),
        batches(),
        plan,
    )


def as_inputs(Z: Array) -> Tensor:
    return torch.as_tensor(Z, dtype=torch.float32)


@torch.no_grad()
def in_chunks(function: Callable[..., Tensor], *arrays: Array, size: int = CHUNK) -> Array:
    """Apply a function of float32 tensors to chunks of `size` rows; the last chunk is padded.

    The rounding of a matrix product depends on its shape. With one shape, the result of a row does
    not depend on the other rows.
    """
    parts = []
    for rows, n_real in chunks(len(arrays[0]), size):
        part = function(*(as_inputs(a[rows]) for a in arrays))
        parts.append(part[:n_real].double().numpy())
    return np.concatenate(parts)
