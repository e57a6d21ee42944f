"""Step 4: R_theta as a density: masks, loss and log_prob around the net.

`RecourseDensity` joins the net with the bins, the rules and the cost. It works on the scaled
feature view F (float64 tensors; NaN is missing). In training, in log_prob and in sampling, a choice
that a rule forbids has probability zero, and x's own value is always allowed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from genrecourse.genre.decoder import Decoder
from genrecourse.table.encoding import TOLERANCE

if TYPE_CHECKING:
    from genrecourse.genre.bins import Bins
    from genrecourse.genre.model import RecourseNet
    from genrecourse.rules.book import RuleBook
    from genrecourse.table.encoding import Array


@dataclass(frozen=True)
class Options:
    """The choices that exist at one position, for B rows; the last one is x's own value.

    >>> from genrecourse.evaluation.example_tables import example_density
    >>> found = example_density().options(np.array([[0.2, 1.0]]), 0)
    >>> found.values.shape, found.allowed[:, -1], found.cost[:, -1]
    ((1, 6), array([ True]), array([0.], dtype=float32))
    """

    number: np.ndarray  # (k,) their numbers among all K + 1 choices
    values: Array  # (B, k)
    cost: np.ndarray  # (B, k) C_j, float32
    allowed: np.ndarray  # (B, k) True for choices that break no rule


@dataclass(frozen=True)
class _Position:
    """What is the same for all rows at one position."""

    feature: int
    number: np.ndarray
    values: Array  # (k - 1,) all but x's own
    standing: Array  # (k - 1,) the values on the scale on which a change is paid
    is_number: bool
    weight: float


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
    trained: Decoder | None = None  # of the net as it is once it is trained

    def ready(self) -> RecourseDensity:
        """Return the density with a decoder, after the net was trained."""
        return replace(self, trained=Decoder(self.net))

    @property
    def decoder(self) -> Decoder:
        """Return the net's decoder: the one made by `ready`, or a new one."""
        return self.trained or Decoder(self.net)

    @property
    def decoded(self) -> Tensor:
        return self.net.decoded

    def logits(self, x: Tensor, x_plus: Tensor, lam: float | None = None) -> Tensor:
        """Return (B, m, K + 1) for x (B, d) and x_plus (B, m), each position given those before it.

        A row's logits do not depend on the other rows. lam: needed if the net takes one.
        """
        decoder, cost = self.decoder, self.choice_cost(x).numpy()
        state, before = decoder.start(x.numpy(), 1, lam), x_plus.numpy()
        parts = [
            decoder.step(state, t, before[:, t - 1] if t else None, cost[:, t])
            for t in range(len(self.decoded))
        ]
        return torch.as_tensor(np.stack(parts, axis=1)).float().double()

    # ---- what each choice would be and cost ---------------------------------------------------

    def choices(self, x: Tensor) -> Tensor:
        """Return the value of every choice (B, m, K + 1) for x (B, d); the last is x's own."""
        own = x[:, self.decoded][..., None]
        return torch.cat([self.bins.value.expand(len(x), -1, -1), own], dim=-1)

    def choice_cost(self, x: Tensor) -> Tensor:
        """Return the cost C_j of every choice (B, m, K + 1), float32, for x (B, d)."""
        return self.cost_and_allowed(x)[0]

    def allowed(self, x: Tensor) -> Tensor:
        """Return (B, m, K + 1) for x (B, d): True for choices that exist and break no rule."""
        return self.cost_and_allowed(x)[1]

    def cost_and_allowed(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return `choice_cost` and `allowed` of all positions; both are 0 where padded."""
        shape = (len(x), len(self.decoded), self.bins.n_choices)
        cost, allowed = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=bool)
        for t in range(len(self.decoded)):
            here = self.options(x.numpy(), t)
            cost[:, t, here.number], allowed[:, t, here.number] = here.cost, here.allowed
        return torch.as_tensor(cost), torch.as_tensor(allowed)

    def options(self, F: Array, t: int) -> Options:
        """Return the choices at position t for rows F (B, d)."""
        known = self._positions[t]
        own = F[:, known.feature][:, None]
        gap = np.abs(known.values - own)
        allowed = np.ones((len(F), len(known.number)), dtype=bool)
        same = gap <= TOLERANCE  # NaN compares false
        if not self.rules.is_free(known.feature):
            with np.errstate(invalid="ignore"):
                allowed[:, :-1] = self.rules.allowed(known.feature, own, known.values[None])
        if self.keep:
            allowed[:, :-1] &= ~same  # keep offers x's own value
        else:  # plain bins: keep is the way out of a dead end only
            allowed[:, -1] = ~allowed[:, :-1].any(axis=1)
        cost = np.zeros(allowed.shape, dtype=np.float32)
        cost[:, :-1] = known.weight * (self._paid(known, own) if known.is_number else ~same)
        gone = np.isnan(own[:, 0])
        if gone.any():
            cost[gone, :-1] = known.weight  # supplying what was missing counts as a change
        values = np.concatenate([np.broadcast_to(known.values, gap.shape), own], axis=1)
        return Options(known.number, values, cost, allowed)

    def _paid(self, known: _Position, own: Array) -> Array:
        """(B, k - 1) how far each choice of a number is from x's own, as its cost measures it."""
        return np.abs(known.standing - self.standing(known.feature, own))

    def standing(self, feature: int, scaled: Any) -> Any:
        """Return scaled values of a number on the scale on which its changes are paid."""
        return self.rules.encoder.blocks[feature].standing(scaled)

    @cached_property
    def _positions(self) -> list[_Position]:
        found = []
        for t, j in enumerate(self.decoded.tolist()):
            values = self.bins.value[t].numpy()
            real = np.flatnonzero(~np.isnan(values))
            number = np.append(real, self.bins.n_choices - 1)
            kind = bool(self.bins.is_number[t])
            standing = self.standing(j, values[real])
            found.append(_Position(j, number, values[real], standing, kind, float(self.weights[t])))
        return found

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
        cost, allowed = self.cost_and_allowed(x)
        label = self.bins.labels(x[:, self.decoded], x_plus[:, self.decoded], allowed).float()
        u = torch.rand(*label.shape[:2], 1, generator=generator)
        drawn = (label.cumsum(-1) < u).sum(-1).clamp_max(label.shape[-1] - 1)
        fed = self.choices(x).gather(-1, drawn[..., None])[..., 0]
        logits = self.net(x, fed, cost, lam)
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
        logits = self.logits(x, fed, lam)
        log_p = logits.masked_fill(~allowed, -torch.inf).log_softmax(-1)
        total = log_p.gather(-1, place[..., None])[..., 0].sum(-1)
        possible = torch.as_tensor(self.rules.feasible(x.numpy(), x_plus.numpy()))
        meant = x_plus[:, self.decoded]
        exact = ((fed - meant).abs() <= TOLERANCE) | (fed.isnan() & meant.isnan())
        possible &= (exact | (self.bins.is_number & ~meant.isnan())).all(-1)
        return torch.where(possible, total, -torch.inf)
