"""CRUDS: gradient search in the part of a latent space that decides the outcome."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from genrecourse.errors import UserError
from genrecourse.methods._gradient_search import Optimizer, Rank, cheapest_valid
from genrecourse.methods._latent_descent import LatentDescent
from genrecourse.methods._subspace_vae import APART, N_RELEVANT, SubspaceVAE
from genrecourse.methods._vae import Make, VAEConfig, as_inputs
from genrecourse.model.settings import RATE, STEPS, WEIGHT, Allowed, Record

if TYPE_CHECKING:
    from genrecourse.methods.base import TrainingRows
    from genrecourse.table.encoding import Array
    from genrecourse.table.schema import Schema


class CRUDS(LatentDescent):
    """Gradient search among the latent variables of a VAE that separate the outcomes.

        min over w of  ell(h(D(w, z))) + lam * C(x, D(w, z)),  z = E_z(x) fixed, w from E[w | y+]

    Downs, Chu, Yacoby, Doshi-Velez & Pan, "CRUDS: Counterfactual Recourse Using Disentangled
    Subspaces", ICML workshop on human interpretability 2020. The VAE stores what separates
    favourable from unfavourable outcomes in w, two numbers, and everything else in z
    (`SubspaceVAE`).

    Weakness: two numbers may be too few to describe what the outcome depends on. Then all results
    are similar and expensive. If h and the outcomes disagree, a move towards favourable outcomes
    need not change the decision of h. Nothing keeps w near its prior: with a small lam, w moves to
    regions without data where h is more and more certain. Therefore the result is the cheapest
    accepted point of the search path.

    Differences from public versions: w starts at the centre of its prior for favourable outcomes,
    not at random (from the code of x, a quarter of the people of nested compas never left the
    region that h rejects). If h accepts no point, w starts again at the code of x, and then at the
    other centre, since h and the VAE may disagree about the favourable direction. The decoder gets
    the immutable features as an input, instead of overwriting them afterwards. The distance is the
    cost of the schema, not squared. See `VAEConfig` for the training of the VAE.

    lam: the weight of the cost; `recourse(X, lam=...)` uses another value.
    lr, steps: RMSprop's learning rate and steps in the latent space.
    independence: the weight of the term that removes the outcome from z.
    vae: sizes and training of the VAE; n_latent is the size of z.

    >>> from genrecourse.table.schema import Schema
    >>> import pandas as pd
    >>> from genrecourse.model.classifier import MLPConfig, fit_mlp
    >>> X = pd.DataFrame({"income": range(80), "debt": range(80, 0, -1)})
    >>> y, schema = X["income"] >= 40, Schema.infer(X)
    >>> h = fit_mlp(X, y, schema, config=MLPConfig(lr=0.05, epochs=10))
    >>> method = CRUDS(h, schema, steps=40, lr=0.1, vae=VAEConfig(hidden=(16,), max_steps=100)).fit(
    ...     X, y
    ... )
    >>> method.assess(X.head(2), method.recourse(X.head(2)))["status"].tolist()
    ['ok', 'ok']
    """

    _optimizer: ClassVar[Optimizer] = "rmsprop"

    allowed: ClassVar[dict[str, Allowed]] = {
        "lam": WEIGHT,
        "lr": RATE,
        "steps": STEPS,
        "independence": WEIGHT,
        "vae": Record(VAEConfig),
    }

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        lam: float = 0.001,
        lr: float = 0.008,
        steps: int = 2000,
        independence: float = 10.0,
        vae: VAEConfig = VAEConfig(),  # noqa: B008 - frozen
        random_state: int = 0,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.lam = lam
        self.lr = lr
        self.steps = steps
        self.independence = independence
        self.vae = vae

    @staticmethod
    def _test_params() -> dict[str, Any]:
        """Return quick settings for the checks of the contract."""
        small = VAEConfig(hidden=(16,), n_latent=3, max_steps=100)
        return {"steps": 40, "lr": 0.1, "vae": small}

    def _make(self) -> Make[SubspaceVAE]:
        return partial(SubspaceVAE, independence=self.independence)

    def _fit(self, rows: TrainingRows) -> None:
        n = int(rows.favourable.sum())
        if n in (0, len(rows.Z)):
            raise UserError(
                f"{self._where('fit')}: {n} of {len(rows.Z)} rows have a favourable outcome; CRUDS "
                "needs training rows with both outcomes"
            )
        super()._fit(rows)

    def _tensors(self, rows: TrainingRows) -> tuple[Tensor, ...]:
        y = torch.as_tensor(rows.favourable, dtype=torch.float32)
        share = float(y.mean())
        weight = torch.where(y > 0, 0.5 / share, 0.5 / (1 - share))
        return as_inputs(rows.Z), y, weight

    def _codes(self, Z: Tensor) -> Tensor:
        codes: Tensor = self.vae_.encode(Z, torch.zeros(len(Z)))
        return codes

    def _starts(self, moving: Array) -> list[Array]:
        """Return the centre of favourable outcomes, the code of x, and the other centre."""
        return [np.full_like(moving, APART), moving, np.full_like(moving, -APART)]

    def _rank(self, lam: float) -> Rank:
        return cheapest_valid(self.problem_.cost)

    def _n_moving(self) -> int:
        return N_RELEVANT
