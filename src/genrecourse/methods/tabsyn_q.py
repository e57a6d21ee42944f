"""TabSyn + Q: recourse drawn from synthetic accepted people; near people are likelier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from genrecourse.errors import UserError
from genrecourse.genre.any_lam import draw_from_q
from genrecourse.genre.pairs import cost_blocks
from genrecourse.genre.retrieve import nearest, nearest_constrained
from genrecourse.genre.targets import is_matched, make_targets
from genrecourse.methods._diffusion import DenoiserConfig
from genrecourse.methods._tabsyn import TabSynMethod
from genrecourse.methods._tabsyn_vae import TabSynVAEConfig
from genrecourse.model.artifact import under
from genrecourse.model.progress import PROGRESS
from genrecourse.model.settings import (
    COUNT,
    FLAG,
    NOTHING,
    SHARE,
    STEPS,
    WEIGHT,
    Allowed,
    Or,
    Record,
)
from genrecourse.table.noise import KeyedNoise

if TYPE_CHECKING:
    from genrecourse.methods.base import TrainingRows
    from genrecourse.rules.book import RuleBook
    from genrecourse.table.encoding import Array
    from genrecourse.table.schema import Schema


class TabSynQ(TabSynMethod):
    """Draws one of many synthetic accepted rows (TabSyn), the cheaper the likelier.

        x+ ~ Q(x+ | x) ∝ exp(-lam * C(x, x+))                                              (Eq. 6)

    The immutable features of x+ are those of x. This is brute force, and therefore an upper bound
    for guided diffusion: `fit` trains TabSyn on D+ and draws as many rows as the training table
    has; a request applies Q to all of them (Garg et al., ICLR 2025, appendix; TabSyn is Zhang et
    al., ICLR 2024).

    Weakness: few synthetic rows may share the immutable features of x, and TabSyn may generate
    people whom nobody would accept; the nearest of these are likely to be drawn. If no synthetic
    row can be reached, x is returned unchanged (`no-feasible-target`).

    Differences from the original (its values in parentheses): TabSyn is scaled to one CPU core:
    tokens of width 32 around latents of 4, one layer in each direction and one encoder for mean and
    variance (2 layers, two encoders), 2,500 batches of 256 (4,000 epochs); a denoiser of width 128
    (1,024) with 5,000 batches of 256 (10,000 epochs). beta falls from 1e-2 to 1e-5 by a schedule
    (when the loss stalls). Each latent is divided by its own deviation (all by 2). 25 levels of
    Heun's method, with 49 calls of the denoiser, and no churn (50 levels, S_churn 1). A number is
    decoded to a value of D+. An immutable number with many values is matched by bin, as in the
    pairs of GenRe.

    Parameters
    ----------
    lam: the weight of the cost; each request may set another value.
    gamma: TabSyn learns from rows with a confidence of h above this; 0.5 is the cutoff.
    n_rows: how many rows TabSyn generates; None: as many as the training table has.
    checked: leave out synthetic rows with a confidence of h below gamma, as in the D+ of Eq. 6. The
        other condition of D+, the outcome, is unknown for them. False: use all of them.
    n_bins: an immutable number with more values than this is matched by bin.
    steps, churn: the noise levels in sampling, and the share of fresh noise at each level.
    vae, denoiser: sizes and training of the two parts of TabSyn.

    >>> import pandas as pd
    >>> small = TabSynVAEConfig(width=8, heads=1, feedforward=8, steps=60, batch_size=64)
    >>> quick = DenoiserConfig(width=16, steps=60, batch_size=64)
    >>> X = pd.DataFrame({"income": range(80), "debt": range(80, 0, -1)})
    >>> h = lambda X: X["income"].to_numpy() / 80
    >>> method = TabSynQ(h, vae=small, denoiser=quick, steps=4).fit(X, X["income"] >= 40)
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
        "n_rows": Or(COUNT, NOTHING),
        "checked": FLAG,
        "n_bins": COUNT,
    }

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        lam: float = 5.0,
        gamma: float = 0.7,
        n_rows: int | None = None,
        checked: bool = True,
        n_bins: int = 50,
        steps: int = 25,
        churn: float = 0.0,
        vae: TabSynVAEConfig = TabSynVAEConfig(),  # noqa: B008 - frozen
        denoiser: DenoiserConfig = DenoiserConfig(),  # noqa: B008 - frozen
        random_state: int = 0,
        progress: bool | None = None,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.lam = lam
        self.gamma = gamma
        self.n_rows = n_rows
        self.checked = checked
        self.n_bins = n_bins
        self.steps = steps
        self.churn = churn
        self.vae = vae
        self.denoiser = denoiser
        self.progress = progress

    def _fit(self, rows: TrainingRows) -> None:
        n = len(rows.F) if self.n_rows is None else self.n_rows
        self._fit_tabsyn(rows)
        noise = KeyedNoise(self.random_state)
        keys = noise.keys(np.arange(n, dtype=float)[:, None])
        F = self.tabsyn_.sample(keys, noise, steps=self.steps, churn=self.churn)
        sure = self.problem_.confidence_derived(self.problem_.encoder.from_features(F)) > self.gamma
        self.fit_report_["synthetic"] = {"rows": n, "above_gamma": float(sure.mean())}
        if self.checked and not sure.any():
            raise UserError(
                f"{self._where('fit')}: h gives none of {n} synthetic rows a score above gamma "
                f"{self.gamma:g}. Train TabSyn for longer (vae, denoiser: steps), or lower gamma"
            )
        self._set_targets(F[sure] if self.checked else F)

    def _set_targets(self, F: Array) -> None:
        self.targets_ = make_targets(
            self.problem_.encoder.from_features(F), F, self.problem_.rules, self.n_bins
        )

    def _recourse(self, Z: Array, noise: KeyedNoise, *, lam: float | None = None) -> Array:
        F = self.problem_.encoder.to_features(Z)
        drawn = self._draws(Z, F, noise, 1, self.lam if lam is None else lam)
        return self.problem_.encoder.from_features(drawn[:, 0])

    def candidates(
        self, Z: Array, noise: KeyedNoise, n: int, rules: RuleBook | None = None
    ) -> Array:
        """Return (N, n, D) draws from Q, `recourse`'s first, then the nearest synthetic rows.

        A third of them, the last ones, are the nearest, as many as in GenRe's search. If no
        synthetic row shares a person's immutables, these are the nearest of all. rules: of a
        request; the nearest rows obey them, the draws may not.
        """
        F, k = self.problem_.encoder.to_features(Z), n // 3
        found = self._draws(Z, F, noise, n - k, self.lam)
        if k:
            found = np.concatenate([found, self._nearest(Z, F, k, rules)], axis=1)
        Z_plus = self.problem_.encoder.from_features(found.reshape(-1, F.shape[1]))
        return Z_plus.reshape(len(F), n, -1)

    def _nearest(self, Z: Array, F: Array, k: int, rules: RuleBook | None) -> Array:
        """Return (N, k, d) the nearest synthetic rows; x if there are fewer."""
        problem, targets = self.problem_, self.targets_
        if rules is None:
            return nearest(Z, F, targets, problem.rules, problem.cost, k, unmatched=True)[0]
        return nearest_constrained(F, targets, rules, k, problem.confidence, unmatched=True)[0]

    def _draws(self, Z: Array, F: Array, noise: KeyedNoise, n: int, lam: float) -> Array:
        """Return (N, n, d) draws from Q; x where no synthetic row can be reached."""
        u = torch.as_tensor(noise.uniform(noise.keys(F), (n,)))
        price = torch.full((len(F),), lam, dtype=torch.float64)
        F_plus = np.repeat(F[:, None], n, axis=1)
        for rows, members, costs in cost_blocks(
            Z, F, self.targets_, self.problem_.rules, self.problem_.cost
        ):
            reached = costs.isfinite().any(1)
            rows, costs = rows[reached.numpy()], costs[reached]
            place = draw_from_q(costs, price[rows], u[rows])
            F_plus[rows] = self.targets_.F[members[place.numpy()]]
        return F_plus

    def _reason(self, Z: Array) -> np.ndarray:
        """Return `no-feasible-target` if no synthetic row has the same immutable features."""
        F, known = self.problem_.encoder.to_features(Z), (self.targets_.codes, self.targets_.edges)
        found = is_matched(F, *known, self.problem_.rules)
        return np.where(found, "not-accepted", "no-feasible-target").astype(object)

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        state, arrays = super()._state()
        return state, arrays | under("synthetic", {"F": self.targets_.F})

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._restore(state, arrays)
        self._set_targets(arrays["synthetic.F"])
