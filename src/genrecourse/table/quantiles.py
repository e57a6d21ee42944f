"""Quantiles: which share of the training rows lies below a value, for `cost="quantile"`.

The share of an observed value is its mid-rank: rows below it, plus half of the rows that have it.
So an atom (a value that many rows share) lies in the middle of its own rows, and moving off it
overtakes half of them. Between two observed values the share grows linearly, so that every change
within the training range costs something, and the cost has a gradient.

Beyond the training range the share goes on to 0 or 1 within one more width of that range, and
stays there: nobody is left to overtake.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

GRID = 500  # a share of an observed value is off by at most 1 / GRID, and exact in small tables


@dataclass(frozen=True)
class Quantiles:
    """Shares at some scaled values; both increase strictly.

    >>> scale = Quantiles.of(np.array([0.0, 0.0, 0.0, 1.0]))
    >>> scale(np.array([-5.0, 0.0, 0.5, 1.0, 5.0]))
    array([0.   , 0.375, 0.625, 0.875, 1.   ])
    """

    values: tuple[float, ...]
    shares: tuple[float, ...]

    @classmethod
    def of(cls, scaled: np.ndarray) -> Quantiles:
        """Return the quantiles of scaled training values (n,), which lie in [0, 1]; no NaN."""
        values, counts = np.unique(scaled, return_counts=True)
        shares = (counts.cumsum() - counts / 2) / len(scaled)
        kept = _enough(shares)
        ends = (values[0] - 1.0, values[-1] + 1.0)  # one more width of the range
        return cls(
            (float(ends[0]), *values[kept].tolist(), float(ends[1])),
            (0.0, *shares[kept].tolist(), 1.0),
        )

    def __call__(self, scaled: Any) -> Any:
        """Return the share below each scaled value, in its shape; a numpy array or a tensor."""
        if not isinstance(scaled, torch.Tensor):
            return np.interp(scaled, *self._arrays)
        values, shares = map(torch.as_tensor, self._arrays)
        at = scaled.double()
        right = torch.searchsorted(values, at.detach().contiguous(), right=True)
        right = right.clamp(1, len(values) - 1)
        left = right - 1
        slope = (shares[right] - shares[left]) / (values[right] - values[left])
        return (shares[left] + slope * (at - values[left])).clamp(0.0, 1.0).to(scaled.dtype)

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.values), np.array(self.shares)


def _enough(shares: np.ndarray) -> np.ndarray:
    """Return which shares to keep, so that the gaps between kept ones are small or real."""
    if len(shares) <= 2 * GRID:
        return np.arange(len(shares))
    last = len(shares) - 1
    above = np.searchsorted(shares, np.arange(GRID + 1) / GRID).clip(1, last)
    return np.unique(np.concatenate([[0], above - 1, above, [last]]))
