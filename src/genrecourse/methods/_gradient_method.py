"""GradientMethod: the base class of methods that use the gradients of h."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor
from torch.nn.functional import softplus

from genrecourse.errors import UserError
from genrecourse.methods._gradient_search import (
    REJECTED,
    Limits,
    Loss,
    Rank,
    SearchResult,
    gradient_search,
)
from genrecourse.methods._surrogate import HLogits, differentiable, restore
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.model.artifact import under, within

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array


class GradientMethod(Method):
    """Learns `h_logits_`, h with gradients. A subclass calls `_search` in its `_recourse`.

    A subclass that learns more extends `_fit`, `_state` and `_restore`; each first calls `super()`.
    """

    h_logits_: HLogits

    def _fit(self, rows: TrainingRows) -> None:
        check_somebody_is_accepted(self._where("fit"), rows)
        self.h_logits_ = differentiable(self.problem_, rows, self.random_state, self._where("fit"))

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {}, under("h", self.h_logits_.arrays())

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.h_logits_ = restore(self.problem_, within("h", arrays))

    def _search(self, Z: Array, loss: Loss, rank: Rank, **settings: Any) -> SearchResult:
        """Call `gradient_search` with the rules and h of this method."""
        return gradient_search(
            Z,
            loss,
            rank,
            limits=Limits(self.problem_.encoder, self.problem_.rules),
            legal=self.problem_.legal,
            confidence=self.problem_.confidence_derived,
            **settings,
        )

    def _search_lowering(
        self, Z: Array, loss: Loss, rank: Rank, *, lam: float, rounds: int, **settings: Any
    ) -> Array:
        """Search up to `rounds` times, each time with half the lam, for rows that h still rejects.

        loss and rank get the lam of each row. Since lam is halved, it never becomes negative.
        """

        def search(turn: int, left: np.ndarray) -> SearchResult:
            each = np.full(len(left), lam * 0.5**turn)
            return self._search(Z[left], loss, rank, per_row=[each], **settings)

        return self._until_accepted(Z, [partial(search, turn) for turn in range(rounds)])

    def _until_accepted(
        self, Z: Array, searches: Iterable[Callable[[np.ndarray], SearchResult]]
    ) -> Array:
        """Return the best of several searches; each one gets the rows that are still rejected."""
        Z_plus, best, left = Z.copy(), np.full(len(Z), np.inf), np.arange(len(Z))
        for search in searches:
            found = search(left)
            better = found.rank < best[left]
            Z_plus[left[better]], best[left[better]] = found.Z_plus[better], found.rank[better]
            left = left[found.rank >= REJECTED]
            if len(left) == 0:
                break
        return Z_plus


def check_somebody_is_accepted(where: str, rows: TrainingRows) -> None:
    """Raise a UserError if h accepts none of the training rows."""
    if not (rows.confidence > 0.5).any():
        raise UserError(
            f"{where}: the classifier accepts none of {len(rows.Z)} rows, so there is nothing to "
            "search for; check the favourable outcome and the cutoff"
        )


def ell(logits: Tensor) -> Tensor:
    """Return the binary cross-entropy towards the favourable outcome."""
    return softplus(-logits)
