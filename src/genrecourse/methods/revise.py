"""REVISE: gradient search in the latent space of a VAE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from genrecourse.methods._latent_descent import LatentDescent
from genrecourse.methods._vae import VAE, Make, VAEConfig, as_inputs
from genrecourse.model.settings import RATE, STEPS, WEIGHT, Allowed, Record

if TYPE_CHECKING:
    from genrecourse.methods.base import TrainingRows
    from genrecourse.table.schema import Schema


class Revise(LatentDescent):
    """Gradient search in the latent space of a VAE.

        min over u of  ell(h(D(u))) + lam * C(x, D(u)),  u starts at E(x)

    Joshi, Koyejo, Vijitbenjaronk, Kim & Ghosh, "Towards Realistic Individual Recourse and
    Actionable Explanations in Black-Box Decision Making Systems", 2019.

    Weakness: every feature is decoded, so all features move by the reconstruction error of the VAE.
    Far from the prior the decoder has seen no data, so a large step can lead anywhere.

    Differences from public versions: the decoder gets the immutable features as an input, instead
    of overwriting them afterwards; the result is the point with the lowest objective among those
    that h accepts after the projection onto the rules, so that lam has an effect; see `VAEConfig`
    for the training of the VAE.

    lam: the weight of the cost; `recourse(X, lam=...)` uses another value.
    lr, steps: Adam's learning rate and steps in the latent space.
    vae: sizes and training of the VAE.

    >>> from genrecourse.table.schema import Schema
    >>> import pandas as pd
    >>> from genrecourse.model.classifier import MLPConfig, fit_mlp
    >>> X = pd.DataFrame({"income": range(80), "debt": range(80, 0, -1)})
    >>> y, schema = X["income"] >= 40, Schema.infer(X)
    >>> h = fit_mlp(X, y, schema, config=MLPConfig(lr=0.05, epochs=10))
    >>> method = Revise(
    ...     h, schema, steps=40, vae=VAEConfig(hidden=(16,), n_latent=3, epochs=50)
    ... ).fit(X, y)
    >>> method.assess(X.head(2), method.recourse(X.head(2)))["status"].tolist()
    ['ok', 'ok']
    """

    allowed: ClassVar[dict[str, Allowed]] = {
        "lam": WEIGHT,
        "lr": RATE,
        "steps": STEPS,
        "vae": Record(VAEConfig),
    }

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
        """Return quick settings for the checks of the contract."""
        return {"steps": 40, "vae": VAEConfig(hidden=(16,), n_latent=3, max_steps=100)}

    def _make(self) -> Make[VAE]:
        return VAE

    def _tensors(self, rows: TrainingRows) -> tuple[Tensor, ...]:
        return (as_inputs(rows.Z),)

    def _codes(self, Z: Tensor) -> Tensor:
        return self.vae_.encode(Z)

    def _n_moving(self) -> int:
        return self.vae.n_latent
