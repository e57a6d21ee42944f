"""REVISE: gradient search in the latent space of a VAE."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from genrecourse.methods._latent_descent import LatentDescent
from genrecourse.methods._vae import VAE, Make, VAEConfig, as_inputs
from genrecourse.methods.base import TrainingRows
from genrecourse.table.schema import Schema


class Revise(LatentDescent):
    """min over u of  ell(h(D(u))) + lam * C(x, D(u)),  u from E(x) on.

    Joshi, Koyejo, Vijitbenjaronk, Kim & Ghosh, "Towards Realistic Individual Recourse and
    Actionable Explanations in Black-Box Decision Making Systems", 2019.

    It fails where the VAE does: every feature is decoded, so all of them move by its error; and
    far from the prior the decoder has seen nothing, so a large step can end anywhere.

    Departs from public versions: immutables are told to the decoder instead of overwritten
    afterwards; a row keeps the place with the lowest objective among those that h accepts once
    they are legal, so that lam is heard; for how long the VAE is trained, see `VAEConfig`.

    lam: the price of a unit of cost; `recourse(X, lam=...)` asks for another.
    lr, steps: of Adam, in the latent space.
    vae: sizes and speed of the VAE.
    """

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        lam: float = 0.5,
        lr: float = 0.1,
        steps: int = 1500,
        vae: VAEConfig = VAEConfig(),  # noqa: B008 - frozen
        random_state: int = 0,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.lam = lam
        self.lr = lr
        self.steps = steps
        self.vae = vae

    @staticmethod
    def _test_params() -> dict[str, Any]:
        """Settings for the contract's checks: all parts run, none for long."""
        return {"steps": 40, "vae": VAEConfig(hidden=(16,), n_latent=3, max_steps=100)}

    def _make(self) -> Make[VAE]:
        return VAE

    def _tensors(self, rows: TrainingRows) -> tuple[Tensor, ...]:
        return (as_inputs(rows.Z),)

    def _codes(self, Z: Tensor) -> Tensor:
        return self.vae_.encode(Z)

    def _n_moving(self) -> int:
        return self.vae.n_latent
