"""Nearest-neighbour recourse: copy the cheapest accepted row."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from genrecourse.artifact import under, within
from genrecourse.encoding import Array
from genrecourse.errors import UserError
from genrecourse.genre.pairs import make_targets, nearest, nearest_within
from genrecourse.genre.refine import refine
from genrecourse.genre.select import expected_score
from genrecourse.judge import CrossFittedJudge
from genrecourse.methods.auto import choose_gamma, clean
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.methods.request import check_safety
from genrecourse.noise import KeyedNoise
from genrecourse.requests import RequestRules
from genrecourse.schema import Schema
from genrecourse.verifier import Verifier

OFFERED = 4  # nearest targets for each plan asked for, where several are
CANDIDATES = 64  # nearest targets that a verifier chooses from


class NearestNeighbour(Method):
    """x+ = argmin C(x, x+) over training rows with h > gamma, immutables carried over.

    The limit of GenRe's Q as lam grows, and the floor in each table: what does a model add to it?
    It fails where accepted rows are outliers or mislabelled, since it copies them.

    gamma: how sure h must be of a row, on the scale where 0.5 is the cutoff; "auto" chooses it as
        GenRe does, leaves out rows that a judge which never saw them calls invalid or outlying, and
        lets the same verifier choose among the nearest.
    labelled: only rows whose outcome was favourable too (the paper's D+).
    refine: put back what x has wherever the verifier lets it, as GenRe does.
    safety: from as cheap as possible (0) to as safe as possible (1), where a verifier is at work.
    """

    _keeps_ground = True
    _knows_roles = True

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        gamma: float | Literal["auto"] = 0.5,
        labelled: bool = False,
        refine: bool = False,
        safety: float = 0.5,
        lam: float = 5.0,
        n_bins: int = 50,
        seed: int = 0,
    ):
        super().__init__(classifier, schema, seed=seed)
        self.gamma = gamma
        self.labelled = labelled
        self.refine = refine
        self.safety = safety
        self.lam = lam
        self.n_bins = n_bins

    def _fit(self, rows: TrainingRows) -> None:
        check_safety(self._where("fit"), self.safety)
        keep = rows.confidence > 0.5
        if self.labelled:
            keep &= rows.favourable
        if self.gamma == "auto":
            keep = self._clean(rows, keep)
        else:
            self.gamma_ = self.gamma
        keep &= rows.confidence > self.gamma_
        if not keep.any():
            raise UserError(
                f"NearestNeighbour.fit: none of {len(rows.Z)} rows is accepted with gamma "
                f"{self.gamma_}; lower gamma"
            )
        self.targets_ = make_targets(rows.Z[keep], rows.F[keep], self.rules_, self.n_bins)
        self.verifier_: Verifier | None = None
        if self.gamma == "auto" or self.refine:
            self.verifier_ = self._fit_verifier(rows)

    def _clean(self, rows: TrainingRows, keep: np.ndarray) -> np.ndarray:
        """Choose gamma and leave out what a judge does not vouch for, as GenRe does."""
        judge = CrossFittedJudge(self.seed, blank=self.blank_.rows)
        judge.fit(rows.Z, rows.favourable)
        rejected = np.flatnonzero(~rows.favourable & (rows.confidence <= 0.5))
        self.gamma_, _ = choose_gamma(
            rows,
            np.random.default_rng(self.seed).permutation(rejected)[:400],
            np.flatnonzero(keep),
            judge,
            self.encoder_,
            self.rules_,
            lam=self.lam,
            n_bins=self.n_bins,
            seed=self.seed,
        )
        found = clean(rows, np.flatnonzero(keep), judge, self.rules_)
        return np.isin(np.arange(len(keep)), found)

    def kept_rows(self) -> Array | None:
        more = super().kept_rows()
        return self.targets_.Z if more is None else np.concatenate([self.targets_.Z, more])

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {"targets": self.targets_.F}
        if self.verifier_ is not None:
            arrays |= under("verifier", self.verifier_.arrays())
        return {"gamma": self.gamma_}, arrays

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.gamma_, F = state["gamma"], arrays["targets"]
        self.targets_ = make_targets(self.encoder_.from_features(F), F, self.rules_, self.n_bins)
        learned = within("verifier", arrays)
        self.verifier_ = self._restored_verifier(learned)

    def _recourse(
        self,
        Z: Array,
        noise: KeyedNoise,
        *,
        safety: float | None = None,
        constraints: RequestRules | None = None,
    ) -> Array:
        safety = self.safety if safety is None else safety
        F, verifier = self.encoder_.to_features(Z), self.verifier_
        k = CANDIDATES if self.gamma == "auto" else 1
        if constraints is None:
            F_plus, cost = nearest(Z, F, self.targets_, self.encoder_, self.rules_, k)
            F_plus = self._settled(F[:, None], F_plus)
        else:
            F_plus, cost = nearest_within(F, self.targets_, constraints, k, self._confidence)
        chosen = F_plus[:, 0]
        if verifier is not None and k > 1:
            Z_plus = self.encoder_.from_features(F_plus.reshape(len(F) * k, -1))
            confidence = self._confidence(Z_plus).reshape(len(F), k)
            score = expected_score(
                Z_plus.reshape(len(F), k, -1),
                np.where(np.isfinite(cost), confidence, 0.0),
                cost,
                verifier,
                n_features=F.shape[1],
                margin=0.5,
                safety=safety,
            )
            chosen = F_plus[np.arange(len(F)), score.argmax(axis=1)]
        if verifier is not None and self.refine:
            rules = self._whole(constraints)
            chosen = refine(F, chosen, verifier, self._confidence, self.encoder_, safety, rules)
        return self.encoder_.from_features(chosen)

    def _several(self, Z: Array, noise: KeyedNoise, n: int, **request: Any) -> Array:
        """What recourse gives, then the nearest targets."""
        first = super()._several(Z, noise, n, **request)
        if n == 1:
            return first
        F, k, rules = self.encoder_.to_features(Z), OFFERED * n, request.get("constraints")
        if rules is None:
            found, _ = nearest(Z, F, self.targets_, self.encoder_, self.rules_, k)
            found = self._settled(F[:, None], found)
        else:
            found, _ = nearest_within(F, self.targets_, rules, k, self._confidence)
        rows, again = found.reshape(-1, F.shape[1]), np.repeat(np.arange(len(F)), k)
        mine = None if rules is None else rules.take(again)
        if self.verifier_ is not None and self.refine:
            how = (self.verifier_, self._confidence, self.encoder_, self._safety_asked(request))
            rows = refine(F[again], rows, *how, self._whole(mine))
        legal = self._legal(Z[again], self.encoder_.from_features(rows), mine)
        more = self.encoder_.to_features(legal).reshape(found.shape)
        return np.concatenate([first, more], axis=1)

    def _n_tried(self, request: dict[str, Any]) -> int:
        return CANDIDATES if self.gamma == "auto" else 1
