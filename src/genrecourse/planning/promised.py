"""Promise: what is promised about plans, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Promise:
    """A promise about the plans that are shown, on average over the people who get one.

    >>> Promise(share=0.9, delta=0.1).holds
    False
    >>> Promise(share=0.9, delta=0.1, threshold=0.7, served=0.8, jury=15).basis
    'neighbours'
    """

    share: float  # the real decision accepts at least this share of the plans
    delta: float  # the probability that the threshold is too low
    threshold: float | None = None  # on the out-of-fold score; None: the promise does not hold
    served: float = 0.0  # share of rejected training people with a plan above the threshold
    jury: int = 0  # size of the groups of outcomes; 1: single outcomes
    rows: int = 0  # training rows above the threshold
    ess: float = 0.0  # effective number of these rows, weighted to look like plans
    clipped: float = 0.0  # share of the weight that the cap removed

    @property
    def holds(self) -> bool:
        """Whether the training data support the promise."""
        return self.threshold is not None

    @property
    def basis(self) -> str:
        """`outcomes` or `neighbours`; empty if the promise does not hold."""
        return {0: "", 1: "outcomes"}.get(self.jury, "neighbours")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**vars(self), "basis": self.basis}
