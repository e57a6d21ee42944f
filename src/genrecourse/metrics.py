"""One function a metric, and METRICS: name -> (function, direction).

Every metric maps an `Outcome` (what one method did for N rejected people, and who judges it) to
N numbers, one a person, so that a mean always has a denominator and a failed row counts as failed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from genrecourse.constraints import Rules
from genrecourse.cost import Cost
from genrecourse.encoding import Array, TableEncoder, unchanged
from genrecourse.judge import Judge


@dataclass(frozen=True)
class Outcome:
    """Rejected people, what they were told, and the judge."""

    F: Array  # (N, d)
    F_plus: Array  # (N, d)
    accepted: np.ndarray  # (N,) booleans: h accepts x_plus
    encoder: TableEncoder
    judge: Judge

    @cached_property
    def before(self) -> Array:
        """x as rows of Z."""
        return self.encoder.from_features(self.F)

    @cached_property
    def after(self) -> Array:
        """x_plus as rows of Z."""
        return self.encoder.from_features(self.F_plus)


def cost(outcome: Outcome) -> Array:
    """L1 on the [0, 1] scale; a changed category counts 1."""
    return np.asarray(Cost(outcome.encoder)(outcome.before, outcome.after))


def val(outcome: Outcome) -> Array:
    """The judge gives the favourable outcome more than one half."""
    return outcome.judge.valid(outcome.after).astype(float)


def lof(outcome: Outcome) -> Array:
    """The judge's local outlier factor calls x_plus an inlier among accepted rows."""
    return outcome.judge.inlier(outcome.after).astype(float)


def score(outcome: Outcome) -> Array:
    """Val + LOF - Cost / d; at most 2."""
    return val(outcome) + lof(outcome) - cost(outcome) / outcome.F.shape[1]


def h_valid(outcome: Outcome) -> Array:
    """h accepts x_plus."""
    return outcome.accepted.astype(float)


def changes(outcome: Outcome) -> Array:
    """How many features differ."""
    return (~unchanged(outcome.F, outcome.F_plus)).sum(axis=1).astype(float)


def violations(outcome: Outcome) -> Array:
    """How many features break a rule of the schema."""
    broken = Rules(outcome.encoder).violations(outcome.F, outcome.F_plus)
    return np.any(list(broken.values()), axis=0).sum(axis=1).astype(float)


METRICS: dict[str, tuple[Callable[[Outcome], Array], str]] = {
    "cost": (cost, "lower"),
    "val": (val, "higher"),
    "lof": (lof, "higher"),
    "score": (score, "higher"),
    "h_valid": (h_valid, "higher"),
    "changes": (changes, "lower"),
    "violations": (violations, "lower"),
}
