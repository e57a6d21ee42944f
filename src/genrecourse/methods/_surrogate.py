"""h as a differentiable function of Z: h itself if possible, else a network fitted on its scores.

    h_logits = differentiable(problem, rows, random_state, where)  # in _fit; may warn
    h_logits(Z)               # (..., D) tensor -> (...), above 0 if h accepts
    h_logits.arrays()         # for _state: empty if it is h itself
    restore(problem, arrays)  # for _restore

A surrogate only guides the search: `gradient_search` scores every candidate with the real h.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from genrecourse.errors import stacklevel_of_caller
from genrecourse.model.artifact import fill, weights
from genrecourse.model.classifier import MLP, Classifier
from genrecourse.model.threads import seeded
from genrecourse.model.training import TrainingPlan, train

if TYPE_CHECKING:
    from genrecourse.rules.problem import Problem, TrainingRows
    from genrecourse.table.encoding import Array, TableEncoder

HIDDEN = (64, 64)
BATCH, RATE = 256, 5e-3
EPOCHS, LEAST, MOST = 40, 300, 2000  # passes over the rows; fewest and most batches
HELD_OUT, ASKED = 0.2, 20_000  # share of rows to test the agreement; most rows to learn from
EDGE = 1e-12  # a probability this close to 0 or 1 has no usable logit


class HLogits:
    """(..., D) -> (...): logits of the favourable outcome in double precision; 0 at the cutoff."""

    def __init__(self, module: nn.Module, cutoff: float, score_range: tuple[float, float]):
        self._module = copy.deepcopy(module).double().eval().requires_grad_(False)
        low, high = score_range
        self._low, self._span = low, high - low
        share = (cutoff - low) / self._span
        self._shift = math.log(share / (1 - share))

    def __call__(self, Z: Tensor) -> Tensor:
        flat = Z.reshape(-1, Z.shape[-1])
        if type(self._module) is MLP:  # its logits are exact even if its probabilities round to 1
            logits = self._module.logits(flat)
        else:
            share = (self._module(flat).reshape(-1) - self._low) / self._span
            logits = torch.logit(share, eps=EDGE)
        return (logits - self._shift).reshape(Z.shape[:-1])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return nothing: h itself is in the model file, or the user gives it again."""
        return {}


class StandIn(HLogits):
    """A surrogate: a network fitted on the scores of h, on the scale with the cutoff 0.5."""

    def __init__(self, network: MLP, agreement: float):
        super().__init__(network, 0.5, (0.0, 1.0))
        self._network, self.agreement = network, agreement

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the weights of the network and the agreement."""
        return {**weights(self._network), "agreement": np.array([self.agreement])}


def differentiable(problem: Problem, rows: TrainingRows, random_state: int, where: str) -> HLogits:
    """Return h as logits with gradients; warn if it is a surrogate network."""
    same = itself(problem.classifier, problem.encoder)
    if same is not None:
        return same
    found = _fit_stand_in(problem, rows, random_state)
    warnings.warn(
        f"{where}: the classifier ({_kind(problem.classifier)}) has no gradients in this encoding, "
        "so a network fitted on its scores guides the search; on held-out rows the two agree on "
        f"{found.agreement:.1%} of decisions. The classifier itself still scores every candidate",
        UserWarning,
        stacklevel=stacklevel_of_caller(),
    )
    return found


def restore(problem: Problem, arrays: dict[str, np.ndarray]) -> HLogits:
    """Return the result of `differentiable` from its arrays."""
    if not arrays:
        same = itself(problem.classifier, problem.encoder)
        if same is None:
            raise ValueError("the classifier has no gradients, and there is no surrogate for it")
        return same
    learned = dict(arrays)
    agreement = float(learned.pop("agreement")[0])
    with torch.device("meta"):
        network = MLP(problem.encoder.width, HIDDEN)
    fill(network, learned)
    return StandIn(network, agreement)


def itself(h: Classifier, encoder: TableEncoder) -> HLogits | None:
    """Return h if it is a torch module on the Z of this encoder and has gradients, else None."""
    if not isinstance(h.model, nn.Module) or h.encoder is not encoder:
        return None
    try:
        found = HLogits(h.model, h.cutoff, h.score_range)
        asked = found(torch.full((2, encoder.width), 0.5, dtype=torch.float64, requires_grad=True))
    except Exception:  # any module: it may not allow a copy or double precision
        return None
    return found if asked.requires_grad else None


def _kind(h: Classifier) -> str:
    return getattr(h.model, "__name__", type(h.model).__name__)


def _fit_stand_in(problem: Problem, rows: TrainingRows, random_state: int) -> StandIn:
    """Fit a network to h's confidence by cross-entropy, on training rows and their mixtures."""
    rng = np.random.default_rng(random_state)
    order = rng.permutation(len(rows.Z))
    n_held = max(1, round(HELD_OUT * len(order)))
    held, used = order[:n_held], order[n_held:][:ASKED]
    if len(used) == 0:
        used = order
    Z, confidence = _with_mixtures(problem, rows.F[used], rows.confidence[used], rng)
    with seeded(random_state):
        network = MLP(Z.shape[1], HIDDEN)
    inputs = torch.as_tensor(Z, dtype=torch.float32)
    target = torch.as_tensor(confidence, dtype=torch.float32)

    def loss(some: Tensor) -> Tensor:
        return binary_cross_entropy_with_logits(network.logits(inputs[some]), target[some])

    steps = min(max(EPOCHS * len(Z) // BATCH, LEAST), MOST)
    train(
        network,
        loss,
        _batches(len(Z), random_state),
        TrainingPlan(steps, RATE, eval_every=0),
    )
    with torch.no_grad():
        found = network.logits(torch.as_tensor(rows.Z[held], dtype=torch.float32)).numpy() > 0
    return StandIn(network, float(np.mean(found == (rows.confidence[held] > 0.5))))


def _with_mixtures(
    problem: Problem, F: Array, confidence: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the rows, and as many mixtures in which some features come from another row.

    A search leaves the data, so the network must have seen such rows.
    """
    other = F[rng.permutation(len(F))]
    mixed = np.where(rng.random(F.shape) < rng.random((len(F), 1)), other, F)
    Z_mixed = problem.encoder.from_features(mixed)
    Z = np.concatenate([problem.encoder.from_features(F), Z_mixed])
    return Z, np.concatenate([confidence, problem.confidence_derived(Z_mixed)])


def _batches(n: int, seed: int) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(int(seed))
    while True:
        yield from torch.randperm(n, generator=generator).split(BATCH)
