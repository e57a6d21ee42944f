"""Exact binomial statements: what k of n tries say about the share behind them.

Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case of the
binomial" (1934). Exact for independent tries: never too narrow, at any n.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy.stats import beta

LEVEL = 0.95


def at_least(k: int, n: int, delta: float) -> float:
    """The share is at least this, wrong with a probability of at most delta."""
    return 0.0 if k == 0 else float(beta.ppf(delta, k, n - k + 1))


def at_most(k: int, n: int, delta: float) -> float:
    """The share is at most this, wrong with a probability of at most delta."""
    return 1.0 if k == n else float(beta.ppf(1 - delta, k + 1, n - k))


@dataclass(frozen=True)
class Share:
    """k of n tries, and the 95% interval of the share behind them."""

    k: int
    n: int

    @property
    def estimate(self) -> float:
        return self.k / self.n

    @property
    def low(self) -> float:
        return at_least(self.k, self.n, (1 - LEVEL) / 2)

    @property
    def high(self) -> float:
        return at_most(self.k, self.n, (1 - LEVEL) / 2)

    def to_dict(self) -> dict[str, float]:
        return {
            "k": self.k,
            "n": self.n,
            "estimate": self.estimate,
            "low": self.low,
            "high": self.high,
        }
