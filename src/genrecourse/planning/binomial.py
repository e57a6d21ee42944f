"""Exact confidence limits of a share, from k successes in n independent tries.

Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case of the
binomial" (1934). The limits are never too narrow, for any n, if the tries are independent.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy.stats import beta

LEVEL = 0.95


def at_least(k: int, n: int, delta: float) -> float:
    """Return a lower limit of the share that is wrong with a probability of at most delta.

    >>> round(at_least(18, 20, delta=0.05), 3)
    0.717
    """
    return 0.0 if k == 0 else float(beta.ppf(delta, k, n - k + 1))


def at_most(k: int, n: int, delta: float) -> float:
    """Return an upper limit of the share that is wrong with a probability of at most delta.

    >>> round(at_most(0, 20, delta=0.05), 3)
    0.139
    """
    return 1.0 if k == n else float(beta.ppf(1 - delta, k + 1, n - k))


@dataclass(frozen=True)
class Share:
    """k successes in n tries, with the 95% interval of the true share.

    >>> share = Share(18, 20)
    >>> share.estimate, round(share.low, 2), round(share.high, 2)
    (0.9, 0.68, 0.99)
    """

    k: int
    n: int

    @property
    def estimate(self) -> float:
        """The observed share."""
        return self.k / self.n

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return at_least(self.k, self.n, (1 - LEVEL) / 2)

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return at_most(self.k, self.n, (1 - LEVEL) / 2)

    def to_dict(self) -> dict[str, float]:
        """Return plain values for JSON."""
        return {
            "k": self.k,
            "n": self.n,
            "estimate": self.estimate,
            "low": self.low,
            "high": self.high,
        }
