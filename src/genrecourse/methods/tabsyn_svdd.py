"""TabSyn + SVDD: a diffusion model of accepted people that is guided towards x."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from genrecourse.methods._diffusion import DenoiserConfig
from genrecourse.methods._tabsyn import TabSynMethod
from genrecourse.methods._tabsyn_vae import TabSynVAEConfig
from genrecourse.model.progress import PROGRESS
from genrecourse.model.settings import DRAWS, SHARE, STEPS, WEIGHT, Allowed, Record
from genrecourse.table.encoding import Array, unchanged
from genrecourse.table.frames import to_pandas
from genrecourse.table.noise import KeyedNoise

if TYPE_CHECKING:
    from genrecourse.methods.base import TrainingRows
    from genrecourse.table.schema import Schema

PENALTY = 100.0  # if an immutable feature differs
LOOKED_AT = 100  # rejected training rows on which `fit` counts broken immutable features


class TabSynSVDD(TabSynMethod):
    """Draws an accepted row by diffusion (TabSyn) that is guided towards the person.

        x+ ~ P(x+ | accepted) exp(lam * r(x+))
        r(x+) = -‖x+ - x‖_2 - 100 [immutables differ]

    TabSyn (Zhang et al., ICLR 2024) learns D+. At each noise level SVDD (Li et al., "Derivative-
    Free Guidance in Continuous and Discrete Diffusion Models with Soft Value-Based Decoding", 2024)
    draws `n_proposals` next steps, decodes the clean row that the denoiser predicts from each, and
    keeps one with a probability proportional to exp(lam * r). The result is one row; h is not used.

    Weakness: immutable features. At high noise levels all predictions are the average person, so
    they all differ from x in the same way and the penalty has no effect; at low noise levels it is
    too late to change them. The immutable features are set to those of x afterwards, which moves x+
    away from what TabSyn learned. `fit_report_["immutables_broken"]` has the share of rejected
    training rows for which they differed, and `immutables_broken(X)` returns it for any table. The
    cost is high as well: r is a distance to one point in many dimensions, and ten proposals per
    level explore few directions.

    Differences from the original: the sizes of `TabSynQ`; 50 noise levels; a churn of 1, which is
    all the fresh noise that the reverse process allows (ancestral sampling), since the proposals
    are nearly equal with the original's S_churn of 1 in 50. ‖.‖_2 is over features: a number on the
    [0, 1] scale, and 1 for a changed category. An immutable number must be exactly equal.

    Parameters
    ----------
    lam: the weight of the reward; each request may set another value.
    gamma: TabSyn learns from rows with a confidence of h above this; 0.5 is the cutoff.
    n_proposals: proposals per step, of which one is kept.
    steps, churn: the noise levels in sampling, and the share of fresh noise at each level.
    vae, denoiser: sizes and training of the two parts of TabSyn.

    >>> import pandas as pd
    >>> small = TabSynVAEConfig(width=8, heads=1, feedforward=8, steps=60, batch_size=64)
    >>> quick = DenoiserConfig(width=16, steps=60, batch_size=64)
    >>> X = pd.DataFrame({"income": range(80), "debt": range(80, 0, -1)})
    >>> h = lambda X: X["income"].to_numpy() / 80
    >>> method = TabSynSVDD(h, vae=small, denoiser=quick, steps=4).fit(X, X["income"] >= 40)
    >>> method.assess(X.head(2), method.recourse(X.head(2)))["status"].tolist()
    ['ok', 'ok']
    """

    allowed: ClassVar[dict[str, Allowed]] = {
        "lam": WEIGHT,
        "gamma": SHARE,
        "steps": STEPS,
        "churn": SHARE,
        "vae": Record(TabSynVAEConfig),
        "denoiser": Record(DenoiserConfig),
        "progress": PROGRESS,
        "n_proposals": DRAWS,
    }

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
        progress: bool | None = None,
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
        """Return a row of F for each person; its immutable features may differ from x."""
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

    def immutables_broken(self, X: Any, *, lam: float | None = None) -> pd.Series:
        """Return whether the row that was drawn for each person had other immutable features."""
        self.check_ready("immutables_broken", {})
        self.check_ready("immutables_broken", {"lam": lam})
        X = to_pandas(X, self.schema_)
        return pd.Series(self._broken(self.problem_.read(X).F, lam), index=X.index)

    def _broken(self, F: Array, lam: float | None = None) -> np.ndarray:
        F_plus, fixed = (
            self._guided(F, KeyedNoise(self.random_state), lam),
            self.problem_.rules.matched,
        )
        return np.asarray(~unchanged(F[:, fixed], F_plus[:, fixed]).all(axis=1))


def reward(F: Array, F_plus: Array, is_number: np.ndarray, immutable: np.ndarray) -> Array:
    """Return r(x+) = -‖x+ - x‖_2 - 100 [immutables differ], for shapes (..., d) that broadcast.

    >>> number, fixed = np.array([True, False]), np.array([False, True])
    >>> reward(np.array([0.2, 1.0]), np.array([[0.5, 1.0], [0.2, 2.0]]), number, fixed).tolist()
    [-0.3, -101.0]
    """
    same = unchanged(F, F_plus)
    distance = np.abs(F - F_plus)
    # a changed category, or a value that is missing on one side, counts 1
    gap = np.where(same, 0.0, np.where(is_number & ~np.isnan(distance), distance, 1.0))
    differs = ~same[..., immutable].all(axis=-1)
    return np.asarray(-np.sqrt((gap**2).sum(axis=-1)) - PENALTY * differs)
