"""Nearest-neighbour recourse: copy the cheapest accepted row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from genrecourse.errors import UserError
from genrecourse.genre.choose_gamma import LOOKED_AT, choose_gamma
from genrecourse.genre.fit import fit_judge, fit_verifier
from genrecourse.genre.search import scored, search
from genrecourse.genre.targets import clean, make_targets
from genrecourse.methods._verified_method import VerifiedMethod
from genrecourse.model.settings import AUTO, COUNT, FLAG, SAFETY, SHARE, WEIGHT, Allowed, Or
from genrecourse.trust.score import expected_score

if TYPE_CHECKING:
    from genrecourse.methods.base import TrainingRows
    from genrecourse.planning.proposer import Proposals
    from genrecourse.rules.book import RuleBook
    from genrecourse.table.encoding import Array
    from genrecourse.table.noise import KeyedNoise
    from genrecourse.table.schema import Schema

OFFERED = 4  # nearest targets for each plan asked for, where several are
CANDIDATES = 64  # nearest targets that a verifier chooses from ...
SEARCHED = 96  # ... and in a search: as many candidates as GenRe's search has


class NearestNeighbour(VerifiedMethod):
    """Copies the accepted training row that is cheapest to reach, but nothing that may not change.

        x+ = argmin C(x, x+)  over training rows with h > gamma, immutables carried over

    This is the limit of GenRe's Q as lam grows, and the baseline that shows what a model adds. It
    fails if accepted rows are outliers or mislabelled, since it copies them.

    gamma: the score of h that a row must exceed, on the scale where 0.5 is the cutoff; "auto"
        chooses it as GenRe does, leaves out rows that a judge not fitted on them calls invalid or
        outlying, and lets the same verifier choose among the nearest rows.
    labelled: use only rows with a favourable outcome (the paper's D+).
    refine: restore x's values as far as the verifier allows, as GenRe does.
    search: with gamma="auto" and refine, make as much effort as GenRe's search: as many
        candidates and refined finalists; if no accepted row shares a person's immutables, try all
        of them with the person's immutables carried over, and ask h again.
    safety: from as cheap as possible (0) to as safe as possible (1), if a verifier is used.

    >>> import pandas as pd
    >>> X = pd.DataFrame({"income": range(80), "debt": range(80, 0, -1)})
    >>> method = NearestNeighbour(lambda X: X["income"] / 80).fit(X)
    >>> method.recourse(X.head(1)).to_dict("records")  # the row with an income of 41
    [{'income': 41, 'debt': 39}]
    """

    options: ClassVar[tuple[str, ...]] = ("safety", "rules")

    allowed: ClassVar[dict[str, Allowed]] = {
        "gamma": Or(SHARE, AUTO),
        "labelled": FLAG,
        "refine": FLAG,
        "search": FLAG,
        "safety": SAFETY,
        "lam": WEIGHT,
        "n_bins": COUNT,
    }

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        gamma: float | Literal["auto"] = 0.5,
        labelled: bool = False,
        refine: bool = False,
        search: bool = False,
        safety: float = 0.5,
        lam: float = 5.0,
        n_bins: int = 50,
        random_state: int = 0,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.gamma = gamma
        self.labelled = labelled
        self.refine = refine
        self.search = search
        self.safety = safety
        self.lam = lam
        self.n_bins = n_bins

    def _fit(self, rows: TrainingRows) -> None:
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
        self._set_targets(rows.F[keep])
        self.verifier_ = None
        if self.gamma == "auto" or self.refine:
            self.verifier_ = fit_verifier(self.problem_, rows, self.random_state)

    def _set_targets(self, F: Array) -> None:
        self.targets_ = make_targets(
            self.problem_.encoder.from_features(F), F, self.problem_.rules, self.n_bins
        )

    def _clean(self, rows: TrainingRows, keep: np.ndarray) -> np.ndarray:
        """Choose gamma and leave out what a judge does not vouch for, as GenRe does."""
        judge = fit_judge(self.problem_, rows, self.random_state)
        accepted = np.flatnonzero(keep)
        rejected = np.flatnonzero(~rows.favourable & (rows.confidence <= 0.5))
        some = np.random.default_rng(self.random_state).permutation(rejected)[:LOOKED_AT]
        self.gamma_, _ = choose_gamma(
            rows,
            some,
            accepted,
            judge,
            self.problem_.rules,
            self.problem_.cost,
            lam=self.lam,
            n_bins=self.n_bins,
            seed=self.random_state,
        )
        found = clean(rows, accepted, judge, self.problem_.rules)
        return np.isin(np.arange(len(keep)), found)

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._restore(state, arrays)
        self._set_targets(arrays["targets"])

    def _recourse(
        self,
        Z: Array,
        noise: KeyedNoise,
        *,
        safety: float | None = None,
        rules: RuleBook | None = None,
    ) -> Array:
        safety = self.safety if safety is None else safety
        F, k = self.problem_.encoder.to_features(Z), self._n_candidates
        F_plus, cost = self._nearest(Z, F, k, rules, unmatched=self.search)
        chosen = F_plus[:, 0]
        if self.verifier_ is not None and k > 1:
            found = scored(self.problem_, Z, F_plus, cost)
            # x itself stands where there are fewer than k targets, at an infinite cost
            found = replace(found, confidence=np.where(np.isfinite(cost), found.confidence, 0.0))
            if self.search and self.refine:
                known = (self.problem_, self.verifier_, Z, found)
                most = self._most_candidates(rules)
                best = search(*known, safety=safety, most=most, request=rules).best
                return self.problem_.encoder.from_features(best)
            score = expected_score(found, self.verifier_, safety=safety)
            chosen = F_plus[np.arange(len(F)), score.argmax(axis=1)]
        if self.verifier_ is not None and self.refine:
            chosen = self._closer(F, chosen, safety, rules)
        return self.problem_.encoder.from_features(chosen)

    @property
    def _n_candidates(self) -> int:
        if self.gamma != "auto":
            return 1
        return SEARCHED if self.search else CANDIDATES

    def propose(self, Z: Array, noise: KeyedNoise, n: int, **options: Any) -> Proposals:
        """Return what recourse gives, then the nearest targets."""
        first = replace(super().propose(Z, noise, n, **options), tried=self._n_candidates)
        if n == 1:
            return first
        rules, F = options.get("rules"), self.problem_.encoder.to_features(Z)
        found, _ = self._nearest(Z, F, OFFERED * n, rules, unmatched=self.search)
        if self.verifier_ is not None and self.refine:
            safety = options.get("safety")
            safety = self.safety if safety is None else float(safety)
            found = self._closer_each(F, found, safety, rules)
        legal = self._legal_each(F, found, rules)
        return replace(first, F_plus=np.concatenate([first.F_plus, legal], axis=1))
