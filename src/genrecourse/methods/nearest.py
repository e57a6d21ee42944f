"""Nearest-neighbour recourse: copy the cheapest accepted row."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from genrecourse.encoding import Array
from genrecourse.errors import UserError
from genrecourse.genre.pairs import blocks, make_targets
from genrecourse.judge import CrossFittedJudge
from genrecourse.methods.auto import choose_gamma, clean
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.noise import KeyedNoise
from genrecourse.schema import Schema


class NearestNeighbour(Method):
    """x+ = argmin C(x, x+) over training rows with h > gamma, immutables carried over.

    The limit of GenRe's Q as lam grows, and the floor in each table: what does a model add to it?
    It fails where accepted rows are outliers or mislabelled, since it copies them.

    gamma: how sure h must be of a row, on the scale where 0.5 is the cutoff; "auto" chooses it as
        GenRe does and also leaves out rows that a judge which never saw them calls invalid or
        outlying.
    labelled: only rows whose outcome was favourable too (the paper's D+).
    """

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        gamma: float | Literal["auto"] = 0.5,
        labelled: bool = False,
        lam: float = 5.0,
        n_bins: int = 50,
        seed: int = 0,
    ):
        super().__init__(classifier, schema, seed=seed)
        self.gamma = gamma
        self.labelled = labelled
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
        self.targets_ = make_targets(rows.Z[keep], rows.F[keep], self.rules_, self.n_bins)

    def _clean(self, rows: TrainingRows, keep: np.ndarray) -> np.ndarray:
        """Choose gamma and leave out what a judge does not vouch for, as GenRe does."""
        judge = CrossFittedJudge(self.seed).fit(rows.Z, rows.favourable)
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

    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        F = self.encoder_.to_features(Z)
        F_plus = F.copy()
        for rows, members, costs in blocks(Z, F, self.targets_, self.encoder_, self.rules_):
            best, place = costs.min(dim=1)
            found = np.isfinite(best.numpy())
            F_plus[rows[found]] = self.targets_.F[members[place.numpy()[found]]]
        F_plus[:, self.rules_.immutable] = F[:, self.rules_.immutable]
        return self.encoder_.from_features(F_plus)
