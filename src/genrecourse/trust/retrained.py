"""RetrainedModels: how h might decide if it were trained again.

Small networks are trained on bootstraps of the same rows and outcomes. They are trained together
with stacked layers, so that eight take little more time than one. Each network has the cutoff at
which it accepts as many training rows as h does, so that only *whom* it accepts can differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from genrecourse.model.threads import n_weights, torch_threads
from genrecourse.model.training import TrainingPlan, train

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array

N_RETRAINED = 8
HIDDEN = (10, 10, 10)
BATCH, RATE = 128, 4e-3
CHUNK = 1024  # rows scored at once: few enough to stay in the processor's cache
EPOCHS, LEAST, MOST = 80, 200, 3000  # passes over the rows; least and largest number of batches


class RetrainedModels(nn.Module):
    """Stacked networks: (n, D) -> (models, n) confidences; 0.5 is each network's cutoff.

    Examples:
        >>> models = RetrainedModels(n_inputs=3)
        >>> models(np.zeros((5, 3))).shape
        (8, 5)
    """

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
        """Return log odds: (n, D) or (models, n, D) -> (models, n), in the precision of Z."""
        last = len(self.weight) - 1
        for i, (weight, bias) in enumerate(zip(self.weight, self.bias, strict=True)):
            Z = Z @ weight.to(Z.dtype) + bias.to(Z.dtype)
            Z = Z if i == last else Z.relu()
        return Z[..., 0]

    def forward(self, Z: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.logits(Z) - self.cutoff)

    def __call__(self, Z: Array) -> Array:
        """Return (models, n) confidences of rows (n, D)."""
        # The rounding of a matrix product depends on its shape, and on some processors on a row's
        # position. It is computed in double precision and returned in single, which hides this.
        with torch.no_grad(), torch_threads(len(Z) * n_weights(self)):
            parts = torch.as_tensor(Z, dtype=torch.float64).split(CHUNK)
            return np.asarray(torch.cat([self.forward(part).float() for part in parts], dim=1))


def fit_retrained(
    Z: Array, favourable: np.ndarray, accepted: np.ndarray, seed: int
) -> RetrainedModels:
    """Train the networks on rows Z (n, D) and outcomes (n,), True if favourable.

    `accepted` is (n,) booleans: True if h accepts the row. It sets the networks' cutoffs.

    Examples:
        >>> Z = np.random.default_rng(0).uniform(size=(80, 2))
        >>> good = Z[:, 0] > 0.5
        >>> models = fit_retrained(Z, favourable=good, accepted=good, seed=0)
        >>> (models(np.array([[0.05, 0.5], [0.95, 0.5]])) > 0.5).sum(axis=0)  # votes of 8
        array([0, 8])
    """
    generator = torch.Generator().manual_seed(int(seed))
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
        # the networks share no weights; their number undoes the mean, so each learns as if alone
        return N_RETRAINED * nn.functional.binary_cross_entropy_with_logits(logits, outcome[rows])

    steps = min(max(EPOCHS * len(Z) // BATCH, LEAST), MOST)
    with torch_threads(BATCH * n_weights(copies)):
        plan = TrainingPlan(steps=steps, lr=RATE, eval_every=0)
        train(copies, loss, batches(), plan, label="training stand-ins for the model")
    with torch.no_grad():
        share = 1 - float(np.mean(accepted))
        copies.cutoff.copy_(copies.logits(inputs).quantile(share, dim=1, keepdim=True))
    return copies.double()  # the same weights, which are then not converted at each call
