"""VerifiedMethod: what GenRe and nearest neighbours share, so that comparing them is fair.

Both know accepted training rows, which may be given to people as they are, and let a verifier
choose among what they have and refine it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genrecourse.genre.pairs import Targets, nearest, nearest_within
from genrecourse.genre.select import expected_score
from genrecourse.methods.auto import choose_gamma
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.model.artifact import under, within
from genrecourse.rules.book import RuleBook
from genrecourse.table.encoding import Array
from genrecourse.trust.judge import CrossFittedJudge
from genrecourse.trust.refine import refine
from genrecourse.trust.verifier import Verifier


class VerifiedMethod(Method):
    """A subclass's `_fit` sets `gamma_`, `targets_` (D+) and `verifier_`, None where it needs none.

    One that learns more extends `_state` and `_restore`, each calling this one's first; the targets
    are the subclass's to restore.
    """

    _keeps_ground = True
    _knows_roles = True

    retrieve: bool = True  # whether targets are given to people, so that a model file holds them
    n_bins: int
    safety: float
    gamma_: float
    targets_: Targets
    verifier_: Verifier | None

    # ---- fit ----------------------------------------------------------------------------------

    def _judge(self, rows: TrainingRows) -> CrossFittedJudge:
        judge = CrossFittedJudge(self.random_state, blank=self.blank_.hide_encoded)
        judge.fit(rows.Z, rows.favourable)
        return judge

    def _best_gamma(
        self,
        rows: TrainingRows,
        sources: np.ndarray,
        candidates: np.ndarray,
        judge: CrossFittedJudge,
        lam: float,
    ) -> tuple[float, list[dict[str, Any]]]:
        """`choose_gamma`, as this method would use it."""
        return choose_gamma(
            rows,
            sources,
            candidates,
            judge,
            self.encoder_,
            self.rules_,
            lam=lam,
            n_bins=self.n_bins,
            seed=self.random_state,
        )

    def _fit_verifier(self, rows: TrainingRows) -> Verifier:
        numbers = self.encoder_.number_columns(~self.blank_.mask)
        verifier = Verifier(self.random_state, self.blank_.hide_encoded)
        return verifier.fit(rows.Z, rows.favourable, rows.confidence, numbers)

    # ---- recourse -----------------------------------------------------------------------------

    def _nearest(self, Z: Array, k: int, request: RuleBook | None) -> tuple[Array, Array]:
        """The k nearest targets (N, k, d) of each row, and their costs (N, k)."""
        F = self.encoder_.to_features(Z)
        if request is not None:
            return nearest_within(F, self.targets_, request, k, self._confidence)
        found, cost = nearest(Z, F, self.targets_, self.encoder_, self.rules_, k)
        return self._settled(F[:, None], found), cost

    def _expected(
        self, offers: Array, known: tuple[Array, Array], margin: float, safety: float
    ) -> Array:
        """(N, n) the expected Score of offers (N, n, d). known: h's confidence and the cost."""
        assert self.verifier_ is not None
        N, n, d = offers.shape
        return expected_score(
            self.encoder_.from_features(offers.reshape(-1, d)).reshape(N, n, -1),
            *known,
            self.verifier_,
            n_features=d,
            margin=margin,
            safety=safety,
        )

    def _closer(
        self, F: Array, F_plus: Array, safety: float, request: RuleBook | None = None
    ) -> Array:
        """F_plus (n, d), refined."""
        assert self.verifier_ is not None
        rules = self._whole(request)
        return refine(F, F_plus, self.verifier_, self._confidence, self.encoder_, safety, rules)

    def _closer_each(
        self, Z: Array, offers: Array, safety: float, request: RuleBook | None
    ) -> Array:
        """Candidates (N, k, d), refined."""
        N, k, d = offers.shape
        again, mine = _again(N, k, request)
        F = self.encoder_.to_features(Z)[again]
        return self._closer(F, offers.reshape(-1, d), safety, mine).reshape(N, k, d)

    def _legal_each(self, Z: Array, offers: Array, request: RuleBook | None) -> Array:
        """Candidates (N, k, d) on legal values and within the rules."""
        N, k, d = offers.shape
        again, mine = _again(N, k, request)
        legal = self._legal(Z[again], self.encoder_.from_features(offers.reshape(-1, d)), mine)
        return self.encoder_.to_features(legal).reshape(N, k, d)

    # ---- model files --------------------------------------------------------------------------

    def kept_rows(self) -> Array | None:
        more = super().kept_rows()
        if not self.retrieve:
            return more
        own = self.blank_.hide_encoded(self.targets_.Z)
        return own if more is None else np.concatenate([own, more])

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {"targets": self.targets_.F} if self.retrieve else {}
        if self.verifier_ is not None:
            arrays |= under("verifier", self.verifier_.arrays())
        return {"gamma": self.gamma_}, arrays

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.gamma_, self.verifier_ = state["gamma"], None
        learned = within("verifier", arrays)
        if learned:
            self.verifier_ = Verifier.from_arrays(
                learned, self.encoder_.width, self.blank_.hide_encoded
            )


def _again(n: int, k: int, request: RuleBook | None) -> tuple[np.ndarray, RuleBook | None]:
    """Each of n people k times over, and their rules."""
    again = np.repeat(np.arange(n), k)
    return again, None if request is None else request.take(again)
