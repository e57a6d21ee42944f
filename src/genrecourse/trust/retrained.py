"""RetrainedModels: what h might say had it been trained again.

Small networks trained on bootstraps of the same rows and outcomes, all at once: layers are stacked,
so eight copies cost little more than one. Whatever h is, a copy decides with the cutoff at which it
accepts as many training rows as h does, so that only *whom* it accepts can differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from genrecourse.model.training import TrainingPlan, train
from genrecourse.table.encoding import Array

N_RETRAINED = 8
HIDDEN = (10, 10, 10)
BATCH, RATE = 128, 4e-3
CHUNK = 1024  # rows asked together: so few stay in the processor's cache
EPOCHS, LEAST, MOST = 80, 200, 3000  # passes over the rows, but so many batches


class RetrainedModels(nn.Module):
    """(n, D) -> (copies, n) how sure each copy is, on the scale where 0.5 is its cutoff."""

    cutoff: torch.Tensor

    def __init__(self, n_inputs: int, generator: torch.Generator | None = None):
        super().__init__()
        sizes = (n_inputs, *HIDDEN, 1)
        self.weight, self.bias = nn.ParameterList(), nn.ParameterList()
        for n_in, n_out in pairwise(sizes):
            for parameters, shape in ((self.weight, (n_in, n_out)), (self.bias, (1, n_out))):
                start = torch.rand(N_RETRAINED, *shape, generator=generator) * 2 - 1
                parameters.append(nn.Parameter(start / n_in**0.5))
        self.register_buffer("cutoff", torch.zeros(N_RETRAINED, 1))

    def logits(self, Z: torch.Tensor) -> torch.Tensor:
        """(n, D) or (copies, n, D) -> (copies, n), in the precision of Z."""
        last = len(self.weight) - 1
        for i, (weight, bias) in enumerate(zip(self.weight, self.bias, strict=True)):
            Z = Z @ weight.to(Z.dtype) + bias.to(Z.dtype)
            Z = Z if i == last else Z.relu()
        return Z[..., 0]

    def forward(self, Z: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.logits(Z) - self.cutoff)

    def __call__(self, Z: Array) -> Array:
        # How a product of matrices rounds depends on their shape, and on some processors on a row's
        # place among the others: computed in double precision and told in single, it does not show.
        with torch.no_grad():
            parts = torch.as_tensor(Z, dtype=torch.float64).split(CHUNK)
            return np.asarray(torch.cat([self.forward(part).float() for part in parts], dim=1))


def fit_retrained(
    Z: Array, favourable: np.ndarray, accepted: np.ndarray, seed: int
) -> RetrainedModels:
    """accepted: (n,) booleans, whom h accepts."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.as_tensor(Z, dtype=torch.float32)
    outcome = torch.as_tensor(favourable, dtype=torch.float32)
    copies = RetrainedModels(Z.shape[1], generator)
    bootstrap = torch.randint(len(Z), (N_RETRAINED, len(Z)), generator=generator)

    def batches() -> Iterator[torch.Tensor]:
        while True:
            some = torch.randint(len(Z), (N_RETRAINED, BATCH), generator=generator)
            yield bootstrap.gather(1, some)

    def loss(rows: torch.Tensor) -> torch.Tensor:
        logits = copies.logits(inputs[rows])
        # the copies share no weight: each learns as if alone, whatever their number
        return N_RETRAINED * nn.functional.binary_cross_entropy_with_logits(logits, outcome[rows])

    steps = min(max(EPOCHS * len(Z) // BATCH, LEAST), MOST)
    train(copies, loss, batches(), TrainingPlan(steps=steps, lr=RATE, eval_every=0))
    with torch.no_grad():
        share = 1 - float(np.mean(accepted))
        copies.cutoff.copy_(copies.logits(inputs).quantile(share, dim=1, keepdim=True))
    return copies
