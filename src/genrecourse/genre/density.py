"""Step 4: R_theta as a density: masks, loss and log_prob around the net.

`RecourseDensity` joins the net with the bins, the rules and the cost. It works on the scaled
feature view F (float64 tensors; NaN is missing). In training, in log_prob and in sampling, a choice
that a rule forbids has probability zero, and x's own value is always allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from genrecourse.table.encoding import TOLERANCE

if TYPE_CHECKING:
    from genrecourse.genre.bins import Bins
    from genrecourse.genre.model import RecourseNet
    from genrecourse.rules.book import RuleBook


@dataclass(frozen=True)
class RecourseDensity:
    """R_theta(x+ | x) on the choices of the mutable features; the other features keep x's values.

    >>> from genrecourse.evaluation.example_tables import example_density
    >>> density, x = example_density(), torch.tensor([[0.2, 1.0]], dtype=torch.float64)
    >>> density.choices(x).shape  # five bins and keep
    torch.Size([1, 2, 6])
    >>> bool(density.log_prob(x, given=x) < 0)
    True
    """

    net: RecourseNet
    bins: Bins  # of the decoded features, in decoding order
    rules: RuleBook
    weights: Tensor  # (m,) cost weights of the decoded features
    keep: bool = True  # False: the paper's plain bins, without the choice "as x has it"

    @property
    def decoded(self) -> Tensor:
        return self.net.decoded

    def lam_of(self, x: Tensor, lam: float | None) -> Tensor | None:
        """Return lam for every row (B,), or None if the net was trained for one lam."""
        return None if lam is None else torch.full((len(x),), lam, dtype=torch.float64)

    # ---- what each choice would be and cost ---------------------------------------------------

    def choices(self, x: Tensor) -> Tensor:
        """Return the value of every choice (B, m, K + 1) for x (B, d); the last is x's own."""
        own = x[:, self.decoded][..., None]
        return torch.cat([self.bins.value.expand(len(x), -1, -1), own], dim=-1)

    def choice_cost(self, x: Tensor) -> Tensor:
        """Return the cost C_j of every choice (B, m, K + 1), float32, for x (B, d)."""
        values, own = self.choices(x), x[:, self.decoded][..., None]
        gap = (values - own).abs()
        moved = (gap > TOLERANCE).to(gap.dtype)
        gap = torch.where(self.bins.is_number[:, None], gap, moved)
        gap = torch.where(own.isnan(), 1.0, gap)  # supplying what was missing counts as a change
        gap[..., -1] = 0.0
        return (self.weights[:, None] * gap.nan_to_num(0.0)).float()

    def allowed(self, x: Tensor) -> Tensor:
        """Return (B, m, K + 1) for x (B, d): True for choices that exist and break no rule."""
        values, rows = self.bins.value.numpy(), x.numpy()
        open_ = self.bins.real().expand(len(x), -1, -1).clone()
        open_[..., :-1] &= ~self.bins.repeats_keep(x[:, self.decoded])
        for i, j in enumerate(self.decoded.tolist()):
            if not self.rules.is_free(j):
                with np.errstate(invalid="ignore"):
                    ok = self.rules.allowed(j, rows[:, j][:, None], values[i][None, :])
                open_[:, i, :-1] &= torch.as_tensor(ok)
        if not self.keep:
            # plain bins: a bin that is x's own value is a bin again, and keep is the way out of a
            # dead end only
            same = self.bins.repeats_keep(x[:, self.decoded])
            open_[..., :-1] |= same
            open_[..., -1] = ~open_[..., :-1].any(-1)
        return open_

    # ---- training -----------------------------------------------------------------------------

    def loss(
        self,
        x: Tensor,
        x_plus: Tensor,
        generator: torch.Generator,
        lam: Tensor | None = None,
    ) -> Tensor:
        """Return the mean over pairs of the labels' cross-entropy, summed over features (Eq. 8).

        lam (B,): the lam of each pair, if the net takes one.
        The decoder gets a choice drawn from each label and not the row's raw value, so that it sees
        the same kind of input in training and in sampling.
        """
        allowed = self.allowed(x)
        label = self.bins.labels(x[:, self.decoded], x_plus[:, self.decoded], allowed).float()
        u = torch.rand(*label.shape[:2], 1, generator=generator)
        drawn = (label.cumsum(-1) < u).sum(-1).clamp_max(label.shape[-1] - 1)
        fed = self.choices(x).gather(-1, drawn[..., None])[..., 0]
        logits = self.net(x, fed, self.choice_cost(x), lam)
        # >>> Eq. (8), the cross-entropy
        log_p = logits.masked_fill(~allowed, -torch.inf).log_softmax(-1)
        return -(label * log_p.masked_fill(~allowed, 0.0)).sum((-1, -2)).mean()
        # <<<

    # ---- log_prob -----------------------------------------------------------------------------

    @torch.inference_mode()
    def log_prob(self, x_plus: Tensor, given: Tensor, lam: float | None = None) -> Tensor:
        """Return log R_theta(x_plus | given) (B,): the mass of the choices that represent x_plus.

        A number between two choices has the mass of the closest one. The result is -inf if x_plus
        breaks a rule, has a level that no accepted row has, or a missing value that is not allowed.
        lam: needed if the net takes one.
        """
        x = given
        allowed = self.allowed(x)
        place = self.bins.nearest(x[:, self.decoded], x_plus[:, self.decoded], allowed)
        fed = self.choices(x).gather(-1, place[..., None])[..., 0]
        logits = self.net(x, fed, self.choice_cost(x), self.lam_of(x, lam))
        log_p = logits.masked_fill(~allowed, -torch.inf).log_softmax(-1)
        total = log_p.gather(-1, place[..., None])[..., 0].double().sum(-1)
        possible = torch.as_tensor(self.rules.feasible(x.numpy(), x_plus.numpy()))
        meant = x_plus[:, self.decoded]
        exact = ((fed - meant).abs() <= TOLERANCE) | (fed.isnan() & meant.isnan())
        possible &= (exact | (self.bins.is_number & ~meant.isnan())).all(-1)
        return torch.where(possible, total, -torch.inf)
