"""PROBE: recourse that stays valid if it is carried out with noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.special import ndtr

from genrecourse.methods._gradient_method import GradientMethod, ell
from genrecourse.methods._gradient_search import REJECTED, SURELY, attempt
from genrecourse.model.settings import COUNT, RATE, STEPS, WEIGHT, Allowed, Number

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array
    from genrecourse.table.noise import KeyedNoise
    from genrecourse.table.schema import Schema

FLAT = 1e-12  # avoids a division by zero if h has no slope


class Probe(GradientMethod):
    """Gradient search for the cheapest row that the model still accepts after noise.

        min over z of  ell(h(z)) + max(0, rate(z) - target) + lam * C(x, z)
        rate(z) = 1 - Phi( f(z) / sqrt(s2 * ||grad f(z)||^2) ),  f the logit of h.

    The rate is, to first order, the probability that h rejects z after noise from N(0, s2 I).
    Pawelczyk, Datta, van den Heuvel, Kasneci & Lakkaraju, "Probabilistically Robust Recourse", ICLR
    2023. The result is the cheapest point of the search path that h accepts and whose rate is at
    most the target; lam is halved until there is one.

    Weakness: the rate is wrong if h is not linear within the noise. Nothing keeps the result
    plausible.

    Differences from the original: candidates keep the rules (the published costs of 10 and more on
    13 features in [0, 1] come from a search without limits); lam never becomes negative.

    target: the highest rate, in (0, 0.5).
    s2: the variance of the noise on the [0, 1] scale.
    lam: the first weight of the cost.
    lr, steps: Adam's learning rate, and its steps for each lam.
    rounds: how many values of lam are tried, each half of the one before.

    >>> from genrecourse.table.schema import Schema
    >>> import pandas as pd
    >>> from genrecourse.model.classifier import MLPConfig, fit_mlp
    >>> X = pd.DataFrame({"income": range(80), "debt": range(80, 0, -1)})
    >>> y, schema = X["income"] >= 40, Schema.infer(X)
    >>> h = fit_mlp(X, y, schema, config=MLPConfig(lr=0.05, epochs=10))
    >>> method = Probe(h, schema, steps=40, lr=0.05, rounds=2).fit(X, y)
    >>> method.assess(X.head(2), method.recourse(X.head(2)))["status"].tolist()
    ['ok', 'ok']
    """

    allowed: ClassVar[dict[str, Allowed]] = {
        "target": Number(0, 0.5, above=True),
        "s2": WEIGHT,
        "lam": WEIGHT,
        "lr": RATE,
        "steps": STEPS,
        "rounds": COUNT,
    }

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        target: float = 0.05,
        s2: float = 0.01,
        lam: float = 0.01,
        lr: float = 0.01,
        steps: int = 200,
        rounds: int = 5,
        random_state: int = 0,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.target = target
        self.s2 = s2
        self.lam = lam
        self.lr = lr
        self.steps = steps
        self.rounds = rounds

    @staticmethod
    def _test_params() -> dict[str, Any]:
        return {"steps": 40, "lr": 0.05, "rounds": 2}

    def _rate(self, Z_plus: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logit and the rate, with gradients if Z_plus has gradients."""
        logits = self.h_logits_(Z_plus)
        (slope,) = torch.autograd.grad(logits.sum(), Z_plus, create_graph=True)
        spread = (self.s2 * slope.square().sum(-1) + FLAT).sqrt()
        return logits, 1 - ndtr(logits / spread)

    def _loss(self, Z_plus: Tensor, Z: Tensor, lam: Tensor) -> Tensor:
        logits, rate = self._rate(Z_plus)
        too_often = (rate - self.target).clamp(min=0)
        return ell(logits) + too_often + lam * self.problem_.cost(Z, Z_plus)

    def _rank(self, Z_plus: Array, Z: Array, confidence: Array, lam: Array) -> Array:
        """Return the rank: by cost if h accepts at a low rate; then by the rate; then by h."""
        _, rate = self._rate(torch.tensor(Z_plus, requires_grad=True))
        often = rate.detach().numpy().round(4)
        accepted = np.where(
            often <= self.target, self.problem_.cost(Z, Z_plus).round(9), REJECTED * (1 + often)
        )
        return np.where(confidence > SURELY, accepted, REJECTED + attempt(confidence))

    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        return self._search_lowering(
            Z,
            self._loss,
            self._rank,
            lam=self.lam,
            rounds=self.rounds,
            steps=self.steps,
            lr=self.lr,
        )
