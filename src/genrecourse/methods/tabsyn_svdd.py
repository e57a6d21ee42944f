"""TabSyn + SVDD: a diffusion model of accepted people, guided towards x while it denoises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from genrecourse.methods._diffusion import DenoiserConfig
from genrecourse.methods._tabsyn import TabSynMethod, check_count
from genrecourse.methods._tabsyn_vae import TabSynVAEConfig
from genrecourse.methods.base import TrainingRows
from genrecourse.table.encoding import Array, unchanged
from genrecourse.table.noise import KeyedNoise
from genrecourse.table.schema import Schema

PENALTY = 100.0  # of immutables that differ
LOOKED_AT = 100  # rejected training rows on which the broken immutables are counted at fit


class TabSynSVDD(TabSynMethod):
    """x+ ~ P(x+ | accepted) exp(lam * r(x+)),  r(x+) = -‖x+ - x‖_2 - 100 [immutables differ].

    TabSyn (Zhang et al., ICLR 2024) learns D+. At each noise level SVDD (Li et al., "Derivative-
    Free Guidance in Continuous and Discrete Diffusion Models with Soft Value-Based Decoding", 2024)
    draws `n_proposals` ways on, decodes the clean row that the denoiser predicts from each, and
    keeps one with probability proportional to exp(lam * r). One row comes out; h is not asked.

    It fails on immutables: while there is much noise all predictions are the average person, so
    they differ from x alike and the penalty says nothing; when they sharpen it is late to turn.
    They are pinned afterwards, which moves x+ off what TabSyn learned. How often they were broken
    before is in `fit_report_["immutables_broken"]`, on rejected training rows, and for any table in
    `immutables_broken(X)`. And it is dear: r is a distance to one point in many dimensions, and ten
    proposals a level explore little of them.

    Departures: the sizes of `TabSynQ`. 50 noise levels. The churn is 1: every step has as much
    fresh noise as the reverse process allows (ancestral sampling), because with the original's
    S_churn of 1 in 50 the proposals are nearly the same. ‖.‖_2 is over features: a number on the
    [0, 1] scale, and 1 for a category that changes. An immutable number counts as equal to the
    digit.

    Parameters
    ----------
    lam: the weight of the reward; may be given at each request.
    gamma: how sure h must be of the rows that TabSyn learns from, 0.5 being the cutoff.
    n_proposals: ways on from each step, of which one is kept.
    steps, churn: of sampling: noise levels, and the share of fresh noise at each.
    vae, denoiser: sizes and speed of TabSyn's two halves.
    """

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        lam: float = 5.0,
        gamma: float = 0.7,
        n_proposals: int = 10,
        steps: int = 50,
        churn: float = 1.0,
        vae: TabSynVAEConfig = TabSynVAEConfig(),  # noqa: B008 - frozen
        denoiser: DenoiserConfig = DenoiserConfig(),  # noqa: B008 - frozen
        random_state: int = 0,
        progress: bool = False,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.lam = lam
        self.gamma = gamma
        self.n_proposals = n_proposals
        self.steps = steps
        self.churn = churn
        self.vae = vae
        self.denoiser = denoiser
        self.progress = progress

    def _fit(self, rows: TrainingRows) -> None:
        check_count(self._where("fit"), "n_proposals", self.n_proposals)
        self._fit_tabsyn(rows)
        rejected = np.flatnonzero(rows.confidence <= 0.5)
        some = np.random.default_rng(self.random_state).permutation(rejected)[:LOOKED_AT]
        if len(some):
            broken = self._broken(rows.F[some])
            self.fit_report_["immutables_broken"] = {
                "rows": len(some),
                "share": float(broken.mean()),
            }

    def _recourse(self, Z: Array, noise: KeyedNoise, *, lam: float | None = None) -> Array:
        return self.problem_.encoder.from_features(
            self._guided(self.problem_.encoder.to_features(Z), noise, lam)
        )

    def _guided(self, F: Array, noise: KeyedNoise, lam: float | None = None) -> Array:
        """A row of F for each, immutables not yet pinned."""
        weight = self.lam if lam is None else lam
        number = self.tabsyn_.tokeniser.is_number

        def log_weight(rows: np.ndarray, predicted: Tensor) -> Tensor:
            found = self.tabsyn_.rows(predicted.flatten(0, 1)).reshape(*predicted.shape[:2], -1)
            r = reward(F[rows][:, None], found, number, self.problem_.rules.matched)
            return torch.as_tensor(weight * r)

        return self.tabsyn_.sample(
            noise.keys(F),
            noise,
            steps=self.steps,
            churn=self.churn,
            n_proposals=self.n_proposals,
            log_weight=log_weight,
        )

    def immutables_broken(self, X: pd.DataFrame, *, lam: float | None = None) -> pd.Series:
        """Whether the row drawn for each person had other immutables, before they were pinned."""
        self.check_ready("immutables_broken", {})
        self.check_ready("immutables_broken", {"lam": lam})
        return pd.Series(self._broken(self.problem_.encoder.features(X), lam), index=X.index)

    def _broken(self, F: Array, lam: float | None = None) -> np.ndarray:
        F_plus, fixed = (
            self._guided(F, KeyedNoise(self.random_state), lam),
            self.problem_.rules.matched,
        )
        return np.asarray(~unchanged(F[:, fixed], F_plus[:, fixed]).all(axis=1))


def reward(F: Array, F_plus: Array, is_number: np.ndarray, immutable: np.ndarray) -> Array:
    """r(x+) = -‖x+ - x‖_2 - 100 [immutables differ], on any shapes (..., d) that broadcast."""
    same = unchanged(F, F_plus)
    distance = np.abs(F - F_plus)
    # what has no distance (a category, a value that is missing on one side) counts 1 if it changes
    gap = np.where(same, 0.0, np.where(is_number & ~np.isnan(distance), distance, 1.0))
    differs = ~same[..., immutable].all(axis=-1)
    return np.asarray(-np.sqrt((gap**2).sum(axis=-1)) - PENALTY * differs)
