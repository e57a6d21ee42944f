"""What may change into what: one truth for pairs, samplers, baselines and checks.

`Rules.allowed(j, a, b)` decides for one feature, on any shapes that broadcast: pairs of rows
(`feasible`), a row against every choice of a sampler (a mask), a block of sources against a block
of targets. A value that stays as it is is always allowed.

`allowed` speaks of what a person may do, so that what moves by itself (`roles`) is never allowed
to. Whole rows are settled first (`settle`), and `feasible` then asks that what follows is where it
has to be and keeps the rules on it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from genrecourse.rules.roles import DerivedFeatures
from genrecourse.table.encoding import TOLERANCE, Array, TableEncoder, unchanged, whole_ends
from genrecourse.table.schema import Feature


class RuleBook(Protocol):
    """What a check or an enumeration asks of rules, the schema's or those of a request."""

    def allowed(self, j: int, a: Any, b: Any) -> np.ndarray:
        """May feature j go from a to b? The first axis of a and b is people."""

    def feasible(self, F: Array, F_plus: Array) -> np.ndarray:
        """(n,) booleans: may person i go from F[i] to F_plus[i], all rules together?"""

    def settle(self, F: Array, F_plus: Array) -> Array:
        """F_plus with what follows by itself from what was changed in F."""

    def take(self, rows: np.ndarray) -> RuleBook:
        """The rules of some of the people, in this order, one as often as it is named."""

    def reach(self, j: int, a: Any) -> tuple[Array, Array]:
        """The lowest and the highest that number j may move to from a; none: lowest > highest."""

    def named(self, j: int) -> tuple[Array, np.ndarray]:
        """Values of feature j that somebody is allowed by name, whether or not a training row has
        them; and (n,) booleans: who is given any."""


class Rules:
    """The schema's rules in the scaled feature view F of an encoder."""

    def __init__(self, encoder: TableEncoder):
        self.encoder = encoder
        self.features = list(encoder.schema)
        self.immutable = np.array([f.role != "mutable" for f in self.features])  # to a person
        # what people are compared by: nobody's protected features, and not what merely follows
        self.matched = np.array([f.role in ("immutable", "advances") for f in self.features])
        self.follows = DerivedFeatures(encoder)
        # per feature: where a changed value may lie, and how far it may move
        self._low = np.full(len(self.features), -np.inf)
        self._high = np.full(len(self.features), np.inf)
        self._step = np.full(len(self.features), np.inf)
        self._slack = np.array([block.slack for block in encoder.blocks])
        for j, (feature, block) in enumerate(zip(self.features, encoder.blocks, strict=True)):
            if feature.range is not None:
                low, high = feature.range
                if feature.decimals is not None:
                    first, last = whole_ends(block, low, high, feature.decimals)
                    if first <= last:  # by more than a check's slack, where an end is no such value
                        low, high = max(low, first), min(high, last)
                self._low[j] = (low - block.low) / block.span
                self._high[j] = (high - block.low) / block.span
            if feature.max_step is not None:
                self._step[j] = feature.max_step / block.span

    def allowed(self, j: int, a: Any, b: Any) -> np.ndarray:
        """May a person take feature j from a to b? Broadcasts; NaN is "missing"."""
        if self.immutable[j]:
            a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
            with np.errstate(invalid="ignore"):
                return np.asarray((np.abs(a - b) <= TOLERANCE) | (np.isnan(a) & np.isnan(b)))
        return self.keeps(j, a, b)

    def keeps(self, j: int, a: Any, b: Any) -> np.ndarray:
        """Does going from a to b keep feature j's range, direction and step, whoever moves it?"""
        feature = self.features[j]
        a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        with np.errstate(invalid="ignore"):
            same = (np.abs(a - b) <= TOLERANCE) | (np.isnan(a) & np.isnan(b))
            # comparing with NaN is false: nothing moves to missing
            slack = self._slack[j]
            free = (b >= self._low[j] - slack) & (b <= self._high[j] + slack)
            if feature.direction == "increase":
                free = free & (b >= a)  # from missing: not known to be a rise, so refused
            elif feature.direction == "decrease":
                free = free & (b <= a)
            if np.isfinite(self._step[j]):
                free = free & (np.abs(b - a) <= self._step[j] + slack)
        return np.asarray(same | free)

    def reach(self, j: int, a: Any) -> tuple[Array, Array]:
        """The lowest and the highest that number j may move to from a; lowest > highest: nowhere.

        Without a range of its own a number stays within the training rows', as `project` has it.
        """
        feature, a = self.features[j], np.asarray(a, dtype=float)
        gone = np.isnan(a)
        low = np.full(a.shape, self._low[j] if np.isfinite(self._low[j]) else 0.0)
        high = np.full(a.shape, self._high[j] if np.isfinite(self._high[j]) else 1.0)
        if feature.direction == "increase":
            low = np.fmax(low, a)
        elif feature.direction == "decrease":
            high = np.fmin(high, a)
        if np.isfinite(self._step[j]):
            low, high = np.fmax(low, a - self._step[j]), np.fmin(high, a + self._step[j])
        # from missing: not known to be a rise, or a small step
        stuck = gone & (feature.direction != "any" or bool(np.isfinite(self._step[j])))
        stuck |= bool(self.immutable[j])
        return low, np.where(stuck, -np.inf, high)

    def is_free(self, j: int) -> bool:
        """No rule can refuse a training row's value of feature j, so a check can be spared."""
        feature = self.features[j]
        if feature.is_category:
            return feature.role == "mutable" and feature.direction == "any" and not feature.missing
        return (
            feature.role == "mutable"
            and feature.direction == "any"
            and feature.max_step is None
            and not feature.missing
            and self._low[j] <= 0.0  # training rows lie in [0, 1], so their values are in range
            and self._high[j] >= 1.0
        )

    def feasible(self, F: Array, F_plus: Array) -> np.ndarray:
        """(n,) booleans: every feature of row i may go from F[i] to F_plus[i]."""
        answer = self.follows.agree(F, F_plus)
        for j in range(len(self.features)):
            if not self.follows.mask[j]:
                answer &= self.allowed(j, F[..., j], F_plus[..., j])
        for j in self.follows.derived:
            answer &= self.keeps(j, F[..., j], F_plus[..., j])
        return answer

    def settle(self, F: Array, F_plus: Array) -> Array:
        return self.follows.settle(F, F_plus)

    def take(self, rows: np.ndarray) -> Rules:
        """The schema's rules are the same for everybody."""
        return self

    def named(self, j: int) -> tuple[Array, np.ndarray]:
        """A schema names no values but a category's levels."""
        return np.zeros(0), np.zeros(1, dtype=bool)

    def violations(self, F: Array, F_plus: Array) -> dict[str, np.ndarray]:
        """(n, d) booleans for each feature that moved where it may not, by the kind of rule."""
        broken = {
            kind: np.zeros(F.shape, dtype=bool)
            for kind in ("immutable", "direction", "range", "step", "missing", "category")
        }
        moved, settled = ~unchanged(F, F_plus), self.settle(F, F_plus)
        for j, feature in enumerate(self.features):
            a, b, m = F[:, j], F_plus[:, j], moved[:, j]
            with np.errstate(invalid="ignore"):
                if self.follows.mask[j]:
                    broken["immutable"][:, j] = ~self.follows.is_at(j, settled[:, j], b)
                    if feature.role == "advances":  # time keeps no range
                        continue
                else:
                    broken["immutable"][:, j] = m & self.immutable[j]
                broken["missing"][:, j] = m & np.isnan(b)
                broken["direction"][:, j] = m & _wrong_way(feature, a, b)
                if feature.is_category:
                    legal = np.isin(b, np.arange(len(feature.categories)))
                    broken["category"][:, j] = m & ~legal & ~np.isnan(b)
                slack = self._slack[j]
                outside = (b < self._low[j] - slack) | (b > self._high[j] + slack)
                broken["range"][:, j] = m & outside
                broken["step"][:, j] = m & ~(np.abs(b - a) <= self._step[j] + slack)
                if np.isinf(self._step[j]):
                    broken["step"][:, j] = False
        return broken

    def clip(self, F: Array, F_plus: Array) -> Array:
        """F_plus with numbers that moved too far brought back to their largest step."""
        step = np.where(np.isnan(F), np.inf, self._step)
        start = np.where(np.isnan(F), 0.0, F)
        return np.clip(F_plus, start - step, start + step)

    def revert(self, F: Array, F_plus: Array) -> Array:
        return revert(self, F, F_plus)


def revert(rules: RuleBook, F: Array, F_plus: Array) -> Array:
    """F_plus with every feature that breaks a rule on it alone put back as x had it."""
    kept = F_plus.copy()
    for j in range(F.shape[1]):
        broken = ~rules.allowed(j, F[:, j], F_plus[:, j])
        kept[broken, j] = F[broken, j]
    return kept


def _wrong_way(feature: Feature, a: Array, b: Array) -> np.ndarray:
    if feature.direction == "increase":
        return ~(b >= a)
    if feature.direction == "decrease":
        return ~(b <= a)
    return np.zeros(a.shape, dtype=bool)
