"""LatentDescent: gradient search in the latent space of a VAE, for `revise` and `cruds`.

    min over u of  ell(h(D(u))) + lam * C(x, D(u))

The result is the point of the search path with the lowest objective among those that h accepts. So
lam decides between a low cost and a high confidence. (Public versions use the cheapest point for
any lam, and so does `cruds`.)
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from genrecourse.methods._gradient_method import GradientMethod, ell
from genrecourse.methods._gradient_search import SURELY, Optimizer, Rank, SearchResult, attempt
from genrecourse.methods._vae import Make, VAEConfig, fit_vae, in_chunks, restore_vae
from genrecourse.model.artifact import under, weights, within
from genrecourse.model.settings import WEIGHT, Allowed

if TYPE_CHECKING:
    from genrecourse.methods.base import TrainingRows
    from genrecourse.table.encoding import Array
    from genrecourse.table.noise import KeyedNoise


class LatentDescent(GradientMethod):
    """A subclass defines the VAE, its training data, and which of its codes move."""

    _records: ClassVar[dict[str, type[Any]]] = {"vae": VAEConfig}
    options: ClassVar[tuple[str, ...]] = ("lam",)
    allowed_options: ClassVar[dict[str, Allowed]] = {"lam": WEIGHT}
    _optimizer: ClassVar[Optimizer] = "adam"

    lam: float
    lr: float
    steps: int
    vae: VAEConfig
    vae_: Any

    @abstractmethod
    def _make(self) -> Make[Any]:
        """Return the function that makes the VAE."""

    @abstractmethod
    def _tensors(self, rows: TrainingRows) -> tuple[Tensor, ...]:
        """Return the tensors for the loss of the VAE."""

    @abstractmethod
    def _codes(self, Z: Tensor) -> Tensor:
        """Return (n, moving + fixed) the codes of people; the codes that move come first."""

    @abstractmethod
    def _n_moving(self) -> int:
        """Return how many of the codes move."""

    # ---- fit ----------------------------------------------------------------------------------

    def _fit(self, rows: TrainingRows) -> None:
        super()._fit(rows)
        self.problem_.check_changeable(self._where("fit"))
        self.vae_, self.fit_report_ = fit_vae(
            self.problem_, self._make(), self.vae, self.random_state, *self._tensors(rows)
        )

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        state, arrays = super()._state()
        return {**state, "report": self.fit_report_}, arrays | under("vae", weights(self.vae_))

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._restore(state, arrays)
        self.fit_report_ = state["report"]
        self.vae_ = restore_vae(self.problem_, self._make(), self.vae, within("vae", arrays))

    # ---- recourse -----------------------------------------------------------------------------

    def _recourse(self, Z: Array, noise: KeyedNoise, *, lam: float | None = None) -> Array:
        lam = self.lam if lam is None else float(lam)
        codes, k = in_chunks(self._codes, Z), self._n_moving()
        decode = self._decoder()

        def search(start: Array, left: np.ndarray) -> SearchResult:
            return self._search(
                Z[left],
                self._loss(lam),
                self._rank(lam),
                start=start[left],
                decode=decode,
                per_row=[codes[left, k:], Z[left]],
                steps=self.steps,
                lr=self.lr,
                optimizer=self._optimizer,
            )

        starts = self._starts(codes[:, :k])
        return self._until_accepted(Z, [partial(search, start) for start in starts])

    def _starts(self, moving: Array) -> list[Array]:
        """Return the starts (n, moving); later ones are for rows that h still rejects."""
        return [moving]

    def _decoder(self) -> Callable[..., Tensor]:
        """Return decode(moving codes, fixed codes, Z), in double precision."""
        decoder: nn.Module = copy.deepcopy(self.vae_.decoder).double().requires_grad_(False)
        return lambda moving, fixed, Z: decoder(torch.cat([moving, fixed], dim=1), Z)

    def _loss(self, lam: float) -> Callable[..., Tensor]:
        def loss(Z_plus: Tensor, Z: Tensor, *_: Tensor) -> Tensor:
            return ell(self.h_logits_(Z_plus)) + lam * self.problem_.cost(Z, Z_plus)

        return loss

    def _rank(self, lam: float) -> Rank:
        objective = self._loss(lam)

        def rank(Z_plus: Array, Z: Array, confidence: Array, *_: Array) -> Array:
            value = objective(torch.as_tensor(Z_plus), torch.as_tensor(Z)).numpy()
            return np.where(confidence > SURELY, value.round(9), attempt(confidence))

        return rank
