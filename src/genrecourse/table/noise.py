"""Keyed noise: the random numbers of a row depend on the seed and on the row, on nothing else.

A row's draws must not depend on which other rows stand beside it, so there is no running generator
state: number (draw, slot) of a row is a hash of (seed, the row's content, draw, slot). The hash is
the finaliser of SplitMix64 (Steele, Lea & Flood 2014), applied to 64-bit words.
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
    """Counter-based uniforms and normals for rows of a float matrix."""

    def __init__(self, seed: int):
        self.seed = seed

    def keys(self, rows: np.ndarray) -> Words:
        """One 64-bit key a row, from the content of its floats."""
        content = np.ascontiguousarray(rows, dtype=np.float64) + 0.0  # -0.0 and 0.0 are one value
        content[np.isnan(content)] = np.nan  # every NaN is one value
        words = content.view(np.uint64)
        key = _mix(np.full(len(rows), self.seed % 2**64, dtype=np.uint64))
        for column in words.T:
            key = _mix(key ^ column)
        return key

    def uniform(self, keys: Words, shape: tuple[int, ...], offset: int = 0) -> np.ndarray:
        """(n, *shape) numbers in the open interval (0, 1)."""
        count = int(np.prod(shape))
        counters = np.arange(offset, offset + count, dtype=np.uint64)
        words = _mix(keys[:, None] ^ _mix(counters)[None, :])
        # 52 bits and a half: exact in a float64, so that the ends 0 and 1 are never reached
        return ((words >> np.uint64(12)).astype(np.float64) + 0.5).reshape(-1, *shape) * 2.0**-52

    def normal(self, keys: Words, shape: tuple[int, ...], offset: int = 0) -> np.ndarray:
        """(n, *shape) standard normals."""
        return np.asarray(ndtri(self.uniform(keys, shape, offset)))


def _mix(words: Words) -> Words:
    with np.errstate(over="ignore"):
        words = words + _GOLDEN
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
