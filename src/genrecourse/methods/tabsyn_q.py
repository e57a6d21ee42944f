"""TabSyn + Q: recourse drawn from synthetic accepted people, the nearer the likelier."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from genrecourse.errors import UserError
from genrecourse.genre.any_lam import draw_from_q
from genrecourse.genre.pairs import cost_blocks
from genrecourse.genre.targets import is_matched, make_targets
from genrecourse.methods._diffusion import DenoiserConfig
from genrecourse.methods._tabsyn import TabSynMethod, check_count
from genrecourse.methods._tabsyn_vae import TabSynVAEConfig
from genrecourse.methods.base import TrainingRows
from genrecourse.model.artifact import under
from genrecourse.table.encoding import Array
from genrecourse.table.noise import KeyedNoise
from genrecourse.table.schema import Schema


class TabSynQ(TabSynMethod):
    """x+ ~ Q(x+ | x) ∝ exp(-lam * C(x, x+)) on rows that TabSyn made, immutables equal (Eq. 6).

    Brute force, and so a skyline for guided diffusion: TabSyn learns D+, makes as many rows as the
    data has, once, at fit, and at a request Q is applied to all of them (Garg et al., ICLR 2025,
    appendix; TabSyn is Zhang et al., ICLR 2024).

    It fails where few synthetic rows share x's immutables, and where TabSyn makes people who would
    not be accepted: the nearest of them are chosen first. Where no synthetic row is in reach x
    comes back as it was (`no-feasible-target`).

    Departures: TabSyn is scaled to a CPU core: tokens of width 32 around latents of 4, one layer
    each way and one encoder for mean and variance (2 layers, two encoders), 2,500 batches of 256
    (4,000 epochs); a denoiser of width 128 (1,024) for 5,000 batches of 256 (10,000 epochs). beta
    falls from 1e-2 to 1e-5 by a schedule, not when the loss stalls. Each latent is standardised by
    its own deviation, not all by 2. 25 levels of Heun's method, which denoise 49 times, and no
    churn (50 levels, S_churn 1). A number decodes to one that occurs in D+. An immutable number of
    many values is matched by bin, as in GenRe's pairs.

    Parameters
    ----------
    lam: the price of a unit of cost; may be given at each request.
    gamma: how sure h must be of the rows that TabSyn learns from, 0.5 being the cutoff.
    n_rows: how many rows TabSyn makes; None: as many as the training table has.
    checked: leave out synthetic rows that h is not sure of by gamma: so is D+, on which Eq. 6 has Q
        (its other condition, the outcome, nobody knows of them). False: all of them.
    n_bins: an immutable number with more values than this is matched by bin.
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
        n_rows: int | None = None,
        checked: bool = True,
        n_bins: int = 50,
        steps: int = 25,
        churn: float = 0.0,
        vae: TabSynVAEConfig = TabSynVAEConfig(),  # noqa: B008 - frozen
        denoiser: DenoiserConfig = DenoiserConfig(),  # noqa: B008 - frozen
        random_state: int = 0,
        progress: bool = False,
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
        check_count(self._where("fit"), "n_rows", n)
        self._fit_tabsyn(rows)
        noise = KeyedNoise(self.random_state)
        keys = noise.keys(np.arange(n, dtype=float)[:, None])
        F = self.tabsyn_.sample(keys, noise, steps=self.steps, churn=self.churn)
        sure = self.problem_.confidence_derived(self.problem_.encoder.from_features(F)) > self.gamma
        self.fit_report_["synthetic"] = {"rows": n, "above_gamma": float(sure.mean())}
        if self.checked and not sure.any():
            raise UserError(
                f"{self._where('fit')}: of {n} synthetic rows h is sure of none by gamma "
                f"{self.gamma:g}. Let TabSyn learn for longer (vae, denoiser: steps), or lower "
                "gamma"
            )
        self._set_targets(F[sure] if self.checked else F)

    def _set_targets(self, F: Array) -> None:
        self.targets_ = make_targets(
            self.problem_.encoder.from_features(F), F, self.problem_.rules, self.n_bins
        )

    def _recourse(self, Z: Array, noise: KeyedNoise, *, lam: float | None = None) -> Array:
        F = self.problem_.encoder.to_features(Z)
        u = torch.as_tensor(noise.uniform(noise.keys(F), (1,))[:, 0])
        price = torch.full((len(F),), self.lam if lam is None else lam, dtype=torch.float64)
        F_plus = F.copy()
        for rows, members, costs in cost_blocks(
            Z, F, self.targets_, self.problem_.rules, self.problem_.cost
        ):
            reached = costs.isfinite().any(1)
            rows, costs = rows[reached.numpy()], costs[reached]
            place = draw_from_q(costs, price[rows], u[rows])
            F_plus[rows] = self.targets_.F[members[place.numpy()]]
        return self.problem_.encoder.from_features(F_plus)

    def _reason(self, Z: Array) -> np.ndarray:
        """`no-feasible-target`: no synthetic row shares this person's immutables."""
        F, known = self.problem_.encoder.to_features(Z), (self.targets_.codes, self.targets_.edges)
        found = is_matched(F, *known, self.problem_.rules)
        return np.where(found, "not-accepted", "no-feasible-target").astype(object)

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        state, arrays = super()._state()
        return state, arrays | under("synthetic", {"F": self.targets_.F})

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._restore(state, arrays)
        self._set_targets(arrays["synthetic.F"])
