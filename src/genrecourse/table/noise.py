"""Keyed noise: the random numbers of a row depend only on the seed and on the row itself.

A row's draws must not depend on the other rows of the batch, so there is no generator state. The
number (draw, slot) of a row is a hash of (seed, the row's content, draw, slot). The hash is the
finaliser of SplitMix64 (Steele, Lea & Flood 2014), applied to 64-bit words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

Words = np.ndarray[Any, np.dtype[np.uint64]]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# How imprecisely people carry out a plan: the standard deviation of a number, on the [0, 1] scale.
# The verifier, a plan's robustness and the metrics `h_noise` and `noise` all use it.
NOISE_SCALE = 0.02


class KeyedNoise:
    """Draws uniform and normal numbers for the rows of a float matrix.

    Examples:
        >>> noise, rows = KeyedNoise(seed=0), np.array([[1.0, 2.0], [3.0, 4.0]])
        >>> drawn = noise.normal(noise.keys(rows), shape=(3,))
        >>> drawn.shape
        (2, 3)
        >>> alone = noise.normal(noise.keys(rows[1:]), shape=(3,))
        >>> bool((alone == drawn[1:]).all())  # the other row makes no difference
        True
    """

    def __init__(self, seed: int):
        self.seed = int(seed)  # a numpy integer has no 2**64

    def keys(self, rows: np.ndarray) -> Words:
        """Return one 64-bit key for each row, computed from its floats: (n, D) -> (n,)."""
        content = (
            np.ascontiguousarray(rows, dtype=np.float64) + 0.0
        )  # -0.0 and 0.0 count as one value
        content[np.isnan(content)] = np.nan  # and so do all NaNs, whatever their bits
        words = content.view(np.uint64)
        key = _mix(np.full(len(rows), self.seed % 2**64, dtype=np.uint64))
        for column in words.T:
            key = _mix(key ^ column)
        return key

    def uniform(self, keys: Words, shape: tuple[int, ...], offset: int = 0) -> np.ndarray:
        """Return (n, *shape) numbers in the open interval (0, 1).

        The numbers of a row form one long sequence; `offset` says where in it to start.
        """
        count = int(np.prod(shape))
        counters = np.arange(offset, offset + count, dtype=np.uint64)
        words = _mix(keys[:, None] ^ _mix(counters)[None, :])
        # 52 bits plus one half is exact in a float64, so the result is never 0 or 1
        return ((words >> np.uint64(12)).astype(np.float64) + 0.5).reshape(-1, *shape) * 2.0**-52

    def normal(self, keys: Words, shape: tuple[int, ...], offset: int = 0) -> np.ndarray:
        """Return (n, *shape) standard normal numbers; `offset` as in `uniform`."""
        return np.asarray(ndtri(self.uniform(keys, shape, offset)))


def _mix(words: Words) -> Words:
    with np.errstate(over="ignore"):
        words = words + _GOLDEN
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
