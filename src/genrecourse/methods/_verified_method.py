"""VerifiedMethod: what GenRe and nearest neighbours share, so that comparing them is fair.

Both know accepted training rows, which may be given to people unchanged, and let a verifier choose
among candidates and refine them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from genrecourse.genre.retrieve import nearest, nearest_constrained
from genrecourse.methods.base import Method
from genrecourse.model.artifact import under, within
from genrecourse.trust.refine import refine
from genrecourse.trust.verifier import Verifier

if TYPE_CHECKING:
    from genrecourse.genre.targets import Targets
    from genrecourse.rules.book import RuleBook
    from genrecourse.table.encoding import Array


class VerifiedMethod(Method):
    """A subclass's `_fit` sets `gamma_`, `targets_` (D+) and `verifier_`, None if it needs none.

    A subclass that learns more extends `_state` and `_restore`, each calling this one's first; the
    subclass restores the targets.
    """

    chosen: ClassVar[tuple[str, ...]] = ("gamma",)
    _keeps_outcomes = True
    _knows_roles = True
    _takes_more = True

    retrieve: bool = True  # whether targets are given to people, so that a model file holds them
    n_bins: int
    safety: float
    gamma_: float
    targets_: Targets

    # ---- recourse -----------------------------------------------------------------------------

    def _nearest(
        self, Z: Array, F: Array, k: int, request: RuleBook | None, *, unmatched: bool = False
    ) -> tuple[Array, Array]:
        """Return the k nearest targets (N, k, d) of each row, and their costs (N, k).

        unmatched: if no target shares a person's immutables, use all targets.
        """
        problem = self.problem_
        if request is not None:
            return nearest_constrained(
                F, self.targets_, request, k, problem.confidence, unmatched=unmatched
            )
        known = (self.targets_, problem.rules, problem.cost)
        found, cost = nearest(Z, F, *known, k, unmatched=unmatched)
        return problem.with_derived(F[:, None], found), cost

    def _most_candidates(self, request: RuleBook | None) -> int | None:
        """Return from how many candidates of a person a search may choose; None: from all.

        Rules leave few candidates that are any good, so all of them count.
        """
        if request is not None or self.verifier_ is None:
            return None
        return self.verifier_.most_candidates

    def _closer(
        self,
        F: Array,
        F_plus: Array,
        safety: float,
        request: RuleBook | None = None,
        measures: Array | None = None,
    ) -> Array:
        """Return F_plus (n, d), refined; `measures` (n, 5) are the verifier's, if known."""
        assert self.verifier_ is not None
        problem = self.problem_
        rules = problem.whole_row_rules(request)
        return refine(
            F,
            F_plus,
            self.verifier_,
            problem.confidence,
            problem.encoder,
            problem.cost,
            safety,
            rules,
            measures,
        )

    def _closer_each(
        self, F: Array, offers: Array, safety: float, request: RuleBook | None
    ) -> Array:
        """Return offers (N, k, d) for rows F (N, d), refined."""
        N, k, d = offers.shape
        again, mine = _again(N, k, request)
        return self._closer(F[again], offers.reshape(-1, d), safety, mine).reshape(N, k, d)

    def _legal_each(self, F: Array, offers: Array, request: RuleBook | None) -> Array:
        """Return offers (N, k, d) for rows F (N, d) on legal values and within the rules."""
        N, k, d = offers.shape
        again, mine = _again(N, k, request)
        return self.problem_.legal_features(F[again], offers.reshape(-1, d), mine).reshape(N, k, d)

    # ---- model files --------------------------------------------------------------------------

    def kept_rows(self) -> Array | None:
        more = super().kept_rows()
        if not self.retrieve:
            return more
        own = self.problem_.protected.hide_encoded(self.targets_.Z)
        return own if more is None else np.concatenate([own, more])

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {"targets": self.targets_.F} if self.retrieve else {}
        if self.verifier_ is not None:
            arrays |= under("verifier", self.verifier_.arrays())
        return {"gamma": self.gamma_}, arrays

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.gamma_, self.verifier_ = state["gamma"], None
        learned, problem = within("verifier", arrays), self.problem_
        if learned:
            hide = problem.protected.hide_encoded
            self.verifier_ = Verifier.from_arrays(learned, problem.encoder.width, hide)


def _again(n: int, k: int, request: RuleBook | None) -> tuple[np.ndarray, RuleBook | None]:
    """Return each of n people k times over, and their rules."""
    again = np.repeat(np.arange(n), k)
    return again, None if request is None else request.take(again)
