"""CRUDS: gradient search in the class-relevant part of a disentangled latent space."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from genrecourse.errors import UserError
from genrecourse.methods._gradient_search import Optimizer, Rank, cheapest_valid
from genrecourse.methods._latent_descent import LatentDescent
from genrecourse.methods._subspace_vae import APART, N_RELEVANT, SubspaceVAE
from genrecourse.methods._vae import Make, VAEConfig, as_inputs
from genrecourse.methods.base import TrainingRows
from genrecourse.model.settings import check_settings
from genrecourse.table.encoding import Array
from genrecourse.table.schema import Schema


class CRUDS(LatentDescent):
    """min over w of  ell(h(D(w, z))) + lam * C(x, D(w, z)),  z = E_z(x) fixed, w from E[w | y+] on.

    Downs, Chu, Yacoby, Doshi-Velez & Pan, "CRUDS: Counterfactual Recourse Using Disentangled
    Subspaces", ICML workshop on human interpretability 2020. The VAE keeps what tells favourable
    from unfavourable outcomes in w, two numbers, and all else in z (`SubspaceVAE`).

    It fails where two numbers are too few to say what an outcome hangs on: then whoever moves in w
    comes out alike, and dear. Where h and the outcomes disagree, moving towards favourable outcomes
    need not convince h. Nothing keeps w near its prior while it moves: at a small lam it goes on
    to where h is ever surer and nobody is, so a row keeps the cheapest accepted place on its way.

    Departs from public versions: w starts at the centre of its prior for favourable outcomes, not
    at random (from where x is, a quarter of the people of nested compas never got out of the region
    that h rejects), and who is not accepted from there starts again where x is, and then at the
    other centre: h may have learned otherwise than the VAE which way is favourable. Immutables are
    told to the decoder instead of overwritten afterwards; distance is the schema's cost, not
    squared; for how long the VAE is trained, see `VAEConfig`.

    lam: the price of a unit of cost; `recourse(X, lam=...)` asks for another.
    lr, steps: of RMSprop, in the latent space.
    independence: how much it counts that the outcome cannot be told from z.
    vae: sizes and speed of the VAE; n_latent is the size of z.
    """

    _optimizer: ClassVar[Optimizer] = "rmsprop"

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
        """Settings for the contract's checks: all parts run, none for long."""
        small = VAEConfig(hidden=(16,), n_latent=3, max_steps=100)
        return {"steps": 40, "lr": 0.1, "vae": small}

    def _make(self) -> Make[SubspaceVAE]:
        return partial(SubspaceVAE, independence=self.independence)

    def _fit(self, rows: TrainingRows) -> None:
        check_settings(self._where("fit"), from_zero={"independence": self.independence})
        n = int(rows.favourable.sum())
        if n in (0, len(rows.Z)):
            raise UserError(
                f"{self._where('fit')}: {n} of {len(rows.Z)} rows have a favourable outcome; CRUDS "
                "needs both outcomes to learn what tells them apart"
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
        """The centre for favourable outcomes, where x is, and the other centre."""
        return [np.full_like(moving, APART), moving, np.full_like(moving, -APART)]

    def _rank(self, lam: float) -> Rank:
        return cheapest_valid(self.problem_.cost)

    def _n_moving(self) -> int:
        return N_RELEVANT
