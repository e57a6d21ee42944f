"""TabSyn: a VAE that encodes rows as numbers, and a diffusion model of these numbers.

Zhang et al., "Mixed-Type Tabular Data Synthesis with Score-based Diffusion in Latent Space", ICLR
2024. Here it is fitted on D+ only, so it generates people like accepted people. The two methods
that use it differ in how they use x.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from genrecourse.errors import UserError
from genrecourse.methods._diffusion import (
    SIGMA_DATA,
    Denoiser,
    DenoiserConfig,
    LogWeight,
    fit_denoiser,
    sample,
)
from genrecourse.methods._tabsyn_vae import TabSynVAEConfig, Tokeniser, TokenVAE, fit_vae
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.model.artifact import fill, under, weights, within
from genrecourse.model.settings import WEIGHT, Allowed
from genrecourse.table.encoding import Array, TableEncoder, unchanged

if TYPE_CHECKING:
    from genrecourse.table.noise import KeyedNoise, Words


@dataclass(frozen=True)
class TabSyn:
    """A fitted TabSyn: it turns noise into latents, and latents into rows."""

    tokeniser: Tokeniser
    vae: TokenVAE
    denoiser: Denoiser
    centre: Tensor  # (L,) mean of the VAE's means; latents are standardised to SIGMA_DATA
    scale: Tensor  # (L,)

    @property
    def n_latents(self) -> int:
        return len(self.centre)

    def denoise(self, latents: Tensor, sigma: float) -> Tensor:
        return self.denoiser(latents.float(), torch.full((1, 1), sigma)).double()

    def rows(self, latents: Tensor) -> Array:
        """Return F (n, d) for latents (n, L), with the likeliest code of each feature."""
        logits, values = self.vae.decode(latents.float() * self.scale + self.centre)
        return self.tokeniser.features(logits.argmax(-1).numpy(), values.numpy())

    @torch.inference_mode()
    def sample(
        self,
        keys: Words,
        noise: KeyedNoise,
        *,
        steps: int,
        churn: float,
        n_proposals: int = 1,
        log_weight: LogWeight | None = None,
    ) -> Array:
        """Return a row of F for each key, decoded in chunks of one fixed shape."""
        latents = sample(
            self.denoise,
            keys,
            noise,
            self.n_latents,
            steps=steps,
            churn=churn,
            n_proposals=n_proposals,
            log_weight=log_weight,
        )
        return in_chunks(self.rows, latents)

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            **under("values", {str(j): known for j, known in self.tokeniser.values.items()}),
            **under("vae", weights(self.vae)),
            **under("denoiser", weights(self.denoiser)),
            "centre": self.centre.numpy(),
            "scale": self.scale.numpy(),
        }

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, np.ndarray],
        encoder: TableEncoder,
        vae_config: TabSynVAEConfig,
        denoiser_config: DenoiserConfig,
    ) -> TabSyn:
        """Return the TabSyn that `arrays` wrote."""
        values = {int(j): known for j, known in within("values", arrays).items()}
        tokeniser = Tokeniser(encoder, values)
        centre, scale = torch.tensor(arrays["centre"]), torch.tensor(arrays["scale"])
        with torch.device("meta"):
            vae = TokenVAE(tokeniser.n_codes, tokeniser.is_number, vae_config)
            denoiser = Denoiser(len(centre), denoiser_config.width)
        fill(vae, within("vae", arrays))
        fill(denoiser, within("denoiser", arrays))
        return cls(tokeniser, vae, denoiser, centre, scale)


def in_chunks(act: Callable[[Tensor], Array], rows: Tensor, size: int = 256) -> Array:
    """Apply `act` to chunks of one shape, so that the result of a row depends on no other row."""
    parts = []
    for i in range(0, len(rows), size):
        pad = np.minimum(np.arange(i, i + size), len(rows) - 1)
        parts.append(act(rows[pad])[: len(rows) - i])
    return np.concatenate(parts)


def fit_tabsyn(
    F: Array,
    encoder: TableEncoder,
    vae_config: TabSynVAEConfig,
    denoiser_config: DenoiserConfig,
    *,
    seed: int,
    progress: bool | None,
) -> TabSyn:
    """Return a TabSyn that is fitted on the rows F."""
    tokeniser = Tokeniser.fit(F, encoder)
    tokens = tokeniser.tokens(F)
    vae = fit_vae(tokens, tokeniser, vae_config, seed=seed, progress=progress)
    with torch.inference_mode():
        means = vae.encode(*tokens)[0].flatten(1)
    centre = means.mean(0)
    scale = means.std(0, correction=0).clamp_min(1e-6) / SIGMA_DATA
    latents = ((means - centre) / scale).clone()
    denoiser = fit_denoiser(latents, denoiser_config, seed, progress)
    return TabSyn(tokeniser, vae, denoiser, centre.clone(), scale.clone())


# ---- the base class of both methods -----------------------------------------------------------


class TabSynMethod(Method):
    """A method that uses a TabSyn fitted on D+ = {favourable, h > gamma}."""

    _records: ClassVar[dict[str, type[Any]]] = {"vae": TabSynVAEConfig, "denoiser": DenoiserConfig}

    options: ClassVar[tuple[str, ...]] = ("lam",)
    allowed_options: ClassVar[dict[str, Allowed]] = {"lam": WEIGHT}

    lam: float
    gamma: float
    steps: int
    churn: float
    vae: TabSynVAEConfig
    denoiser: DenoiserConfig
    progress: bool | None

    @staticmethod
    def _test_params() -> dict[str, Any]:
        """Return quick settings for the checks of the contract."""
        return {
            "vae": TabSynVAEConfig(width=8, heads=1, feedforward=8, steps=60, batch_size=64),
            "denoiser": DenoiserConfig(width=16, steps=60, batch_size=64),
            "steps": 4,
        }

    def _fit_tabsyn(self, rows: TrainingRows) -> None:
        keep = rows.favourable & (rows.confidence > self.gamma)
        if not keep.any():
            raise UserError(
                f"{self._where('fit')}: no row has a favourable outcome and a score above gamma "
                f"{self.gamma:g} (0.5 is the cutoff), so there is nobody to imitate. Lower gamma, "
                "or check the cutoff of the classifier"
            )
        started = time.perf_counter()
        self.tabsyn_ = fit_tabsyn(
            rows.F[keep],
            self.problem_.encoder,
            self.vae,
            self.denoiser,
            seed=self.random_state,
            progress=self.progress,
        )
        self.fit_report_: dict[str, Any] = {
            "targets": {"found": int(keep.sum())},
            "reconstruction": reconstruction(self.tabsyn_, rows.F[keep]),
            "seconds": {"tabsyn": round(time.perf_counter() - started, 3)},
        }

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"report": self.fit_report_}, under("tabsyn", self.tabsyn_.arrays())

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.fit_report_ = state["report"]
        self.tabsyn_ = TabSyn.from_arrays(
            within("tabsyn", arrays), self.problem_.encoder, self.vae, self.denoiser
        )


def reconstruction(tabsyn: TabSyn, F: Array) -> dict[str, float]:
    """Return the reconstruction errors of the VAE on the rows that it was fitted on."""
    with torch.inference_mode():
        means = tabsyn.vae.encode(*tabsyn.tokeniser.tokens(F))[0].flatten(1)
        again = tabsyn.rows((means - tabsyn.centre) / tabsyn.scale)
    number = tabsyn.tokeniser.is_number
    gap, same = np.abs(again - F)[:, number], unchanged(F, again)[:, ~number]
    return {
        "numbers_off_by": float(np.nanmean(gap)) if np.isfinite(gap).any() else 0.0,
        "categories_wrong": float(1 - same.mean()) if same.size else 0.0,
    }
