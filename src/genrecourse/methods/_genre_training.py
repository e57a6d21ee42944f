"""R_theta, untrained, and how it learns from pairs: Algorithm 1, lines 2 and 4-9."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch

from genrecourse.errors import UserError
from genrecourse.genre.bins import BinKind, make_bins
from genrecourse.genre.density import RecourseDensity
from genrecourse.genre.model import NetConfig, RecourseNet, make_knots
from genrecourse.methods._density_method import DensityMethod
from genrecourse.methods._genre_pairs import TensorPairs, matched_names
from genrecourse.methods._verified_method import VerifiedMethod
from genrecourse.methods.base import TrainingRows
from genrecourse.methods.request import Lam
from genrecourse.model.training import TrainingPlan, train

BARREN = 20  # batches in a row without a single pair to learn from before giving up
WATCHED = 1024  # held-out pairs whose loss is watched

Pair = tuple[torch.Tensor, ...]  # x, x_plus and, where each pair has one of its own, lam


@dataclass(frozen=True)
class Training:
    """How long and how fast R_theta learns."""

    epochs: int = 70  # passes over the sources ...
    bounds: tuple[int, int] | None = (500, 1600)  # ... but at least and at most so many batches
    steps: int | None = None  # exactly so many batches, whatever the sources
    batch_size: int = 256
    lr: float = 2e-3
    weight_decay: float = 0.01
    schedule: Literal["constant", "one-cycle"] = "one-cycle"
    held_out: float = 0.1  # share of the sources kept for the held-out loss and "auto"
    patience: int | None = 6

    def n_steps(self, n_sources: int) -> int:
        """How many batches that is."""
        per_epoch = max(1, n_sources // self.batch_size)
        low, high = self.bounds or (1, 10**9)
        return self.steps or min(max(self.epochs * per_epoch, low), high)

    def plan(self, n_sources: int) -> TrainingPlan:
        steps = self.n_steps(n_sources)
        return TrainingPlan(
            steps=steps,
            lr=self.lr,
            weight_decay=self.weight_decay,
            schedule=self.schedule,
            clip=1.0,
            eval_every=max(1, min(100, steps // 10)),
            patience=self.patience,
        )


def make_density(
    method: VerifiedMethod,
    rows: TrainingRows,
    net: NetConfig,
    *,
    lam: Lam,
    bins: BinKind,
    keep: bool,
) -> RecourseDensity:
    """Algorithm 1, line 2: R_theta, untrained. Immutables are not decoded, the rest in column
    order."""
    schema, decoded = method.schema_, np.flatnonzero(~method.rules_.immutable)
    is_number = np.array([not f.is_category for f in schema])
    made = make_bins(method.targets_.F[:, decoded], is_number[decoded], method.n_bins, bins)
    n_levels = [len(f.categories) for f in schema]
    seen = torch.as_tensor(method.blank_.hide(rows.F))
    knots = make_knots(seen, torch.as_tensor(is_number), n_levels)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(method.random_state)
        built = RecourseNet(net, knots, torch.as_tensor(decoded), made.n_choices, lam=lam)
    weights = torch.tensor([f.cost_weight for f in schema])[decoded]
    return RecourseDensity(built, made, method.rules_, weights, keep=keep)


def train_density(
    method: DensityMethod,
    drawn: TensorPairs,
    watched: TensorPairs,
    training: Training,
    *,
    progress: bool,
) -> dict[str, Any]:
    """Algorithm 1, lines 4-9, on the method's density; and what is to be said of it."""
    density, seed = method.density_, method.random_state
    generator = torch.Generator().manual_seed(seed)
    fixed = np.random.default_rng([seed, 2])
    held_pair = _shown(method, watched(np.arange(len(watched))[:WATCHED], fixed))

    def loss(pair: Pair, generator: torch.Generator) -> torch.Tensor:
        return density.loss(pair[0], pair[1], generator, *pair[2:])

    def held_out() -> float:  # only asked where somebody is held out
        return float(loss(held_pair, torch.Generator().manual_seed(seed)))

    report = train(
        density.net,
        lambda pair: loss(pair, generator),
        _batches(method, drawn, training.batch_size),
        training.plan(drawn.n_sources),
        held_out=held_out if len(held_pair[0]) else None,
        label="R(x+|x)",
        progress=progress,
    )
    rate = report.steps * training.batch_size / max(report.seconds, 1e-9)
    return {**asdict(report), "pairs_per_second": rate}


def _batches(method: DensityMethod, drawn: TensorPairs, size: int) -> Iterator[Pair]:
    """Minibatches without end, every source once an epoch; an error where none has a pair left."""
    rng = np.random.default_rng([method.random_state, 1])
    barren = 0
    while barren < BARREN:
        order = rng.permutation(len(drawn))
        if len(order) < size:  # a small table: several draws a source
            order = np.tile(order, -(-size // max(1, len(order))))
        for i in range(0, len(order) - size + 1, size):
            pair = _shown(method, drawn(order[i : i + size], rng))
            barren = 0 if len(pair[0]) else barren + 1
            if len(pair[0]):
                yield pair
        if len(order) == 0:
            break
    raise UserError(
        f"{method._where('fit')}: with their own {matched_names(method)} carried over, the "
        f"classifier accepts none of the targets of {BARREN} batches of people above gamma "
        f"{method.gamma_:g}, which leaves nothing to learn from. Lower gamma, or make n_bins "
        "larger, so that people are paired with more like themselves"
    )


def _shown(method: DensityMethod, pair: Pair) -> Pair:
    """A pair as the net may see it: of x_plus it reads what is decoded, of x everything."""
    x, *rest = pair
    return (torch.as_tensor(method.blank_.hide(x.numpy())), *rest)
