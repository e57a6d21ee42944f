"""Endurance: will a plan still be accepted once h is trained again, or if it is done imprecisely?

Both are answered by trying: copies of h retrained on bootstraps of the same rows (`copies`), and
h itself with noise on every number that may change, drawn by the row's content alone. h as it is
accepts every plan that is shown and is not counted. The intervals are exact for tries that are
independent: they are about another such copy or another such try, not about a later year.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from genrecourse.planning.binomial import Share
from genrecourse.table.encoding import Array
from genrecourse.table.noise import NOISE_SCALE, KeyedNoise

TRIES = 32
STREAM = 40_009  # keeps these draws apart from those that the plan was found with


def retrained(votes: np.ndarray) -> list[Share]:
    """How many of the copies accept each row. votes: (copies, n), as in `Verifier.votes`."""
    return [Share(int(k), len(votes)) for k in votes.sum(axis=0)]


def imprecise(
    confidence: Callable[[Array], Array],
    Z_plus: Array,
    numbers: np.ndarray,
    seed: int,
    blank: Callable[[Array], Array] = lambda Z: Z,
) -> list[Share]:
    """How many noisy copies of each row h accepts. numbers: the columns that noise may move.
    blank: rows without what must not decide which noise they meet (`roles.ProtectedMask`)."""
    n, width = Z_plus.shape
    noise = KeyedNoise(seed + STREAM)
    keys = noise.keys(blank(Z_plus))
    moved = np.repeat(Z_plus[:, None, :], TRIES, axis=1)
    if len(numbers):
        moved[:, :, numbers] += NOISE_SCALE * noise.normal(keys, (TRIES, len(numbers)))
    accepted = confidence(moved.reshape(n * TRIES, width)).reshape(n, TRIES) > 0.5
    return [Share(int(k), TRIES) for k in accepted.sum(axis=1)]
