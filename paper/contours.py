"""The conditional density R_theta(x+ | x) beside the unconditional P(x | favourable), in 2-D.

In the paper's ablation both are the same transformer, but P has no encoder and twice the decoder
layers. Here P is a `RecourseNet` whose encoder has no layers and whose x is always the same point,
so it cannot depend on the person. Cost and *keep* are switched off, because there is no x to keep.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from genrecourse.evaluation.evaluate import Case
from genrecourse.genre.bins import make_bins
from genrecourse.genre.density import RecourseDensity
from genrecourse.genre.model import NetConfig, RecourseNet, make_knots
from genrecourse.methods.genre import GenRe
from genrecourse.model.training import train
from genrecourse.table.cost import Cost

N_BINS = 50


@dataclass(frozen=True)
class Unconditional:
    """P(x | favourable) as a product over features, each conditioned on the features before it."""

    density: RecourseDensity
    nobody: Tensor  # (1, d) the same x for every row

    def log_prob(self, F: np.ndarray) -> np.ndarray:
        """Return the log probability of each row: (n, d) -> (n,)."""
        given = self.nobody.expand(len(F), -1)
        return np.asarray(self.density.log_prob(torch.as_tensor(F), given).numpy())


def fit_unconditional(method: GenRe, F: np.ndarray, seed: int) -> Unconditional:
    """Train P on accepted rows F (n, d), with the sizes and the training of a fitted GenRe."""
    config = replace(method.net_, encoder_layers=0, decoder_layers=2 * method.net_.decoder_layers)
    density = _untrained(method, F, config, seed)
    model = Unconditional(density, torch.full((1, F.shape[1]), 0.5, dtype=torch.float64))
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    order = rng.permutation(len(F))
    n_held = max(5, round(method.training_.held_out * len(F)))
    rows, held = torch.as_tensor(F[order[n_held:]]), torch.as_tensor(F[order[:n_held]])

    def loss(x_plus: Tensor, source: torch.Generator) -> Tensor:
        return density.loss(model.nobody.expand(len(x_plus), -1), x_plus, source)

    def batches() -> Any:
        while True:
            yield rows[rng.integers(len(rows), size=method.training_.batch_size)]

    train(
        density.net,
        lambda x_plus: loss(x_plus, generator),
        batches(),
        method.training_.plan(len(rows)),
        held_out=lambda: float(loss(held, torch.Generator().manual_seed(seed))),
    )
    return model


def _untrained(method: GenRe, F: np.ndarray, config: NetConfig, seed: int) -> RecourseDensity:
    d = F.shape[1]
    is_number = np.array([not f.is_category for f in method.schema_])
    bins = make_bins(F, is_number, method.n_bins, method.bins)
    n_levels = [len(f.categories) for f in method.schema_]
    knots = make_knots(torch.as_tensor(F), torch.as_tensor(is_number), n_levels)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = RecourseNet(config, knots, torch.arange(d), bins.n_choices, lam=0.0)
    return RecourseDensity(net, bins, method.problem_.rules, torch.ones(d), keep=False)


# ---- both on one grid ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Mass:
    """A two-dimensional density: the probability of every cell of a grid of bins."""

    values: tuple[np.ndarray, np.ndarray]  # the bins of both features, scaled
    p: np.ndarray  # (K1, K2), sums to 1

    @property
    def cells(self) -> np.ndarray:
        """Return the cells (K1 * K2, 2), in the order of p's rows."""
        a, b = np.meshgrid(*self.values, indexing="ij")
        return np.stack([a.reshape(-1), b.reshape(-1)], axis=1)


def conditional_mass(method: GenRe, f: np.ndarray) -> Mass:
    """Return R_theta(. | x) for one person f (2,)."""
    values = _bin_values(method.density_)
    cells = Mass(values, np.zeros(0)).cells
    given = torch.as_tensor(np.repeat(f[None], len(cells), axis=0))
    log_p = method.density_.log_prob(torch.as_tensor(cells), given).numpy()
    return Mass(values, np.exp(log_p).reshape(len(values[0]), -1))


def unconditional_mass(model: Unconditional) -> Mass:
    """Return P(. | favourable)."""
    values = _bin_values(model.density)
    log_p = model.log_prob(Mass(values, np.zeros(0)).cells)
    return Mass(values, np.exp(log_p).reshape(len(values[0]), -1))


def _bin_values(density: RecourseDensity) -> tuple[np.ndarray, np.ndarray]:
    first, second = (row[~row.isnan()].numpy() for row in density.bins.value)
    return first, second


def describe(mass: Mass, case: Case, f: np.ndarray) -> dict[str, float]:
    """Return what one draw gives on average: each metric weighted by the density."""
    Z = case.encoder.from_features(mass.cells)
    p = mass.p.reshape(-1)
    Z_x = np.repeat(case.encoder.from_features(f[None]), len(Z), axis=0)
    return {
        "mass": float(p.sum()),
        "val": float(p @ case.judge.valid(Z)),
        "lof": float(p @ case.judge.inlier(Z)),
        "cost": float(p @ np.asarray(Cost(case.encoder)(Z_x, Z))),
    }
