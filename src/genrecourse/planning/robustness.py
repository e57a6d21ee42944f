"""Robustness of a plan: does h still accept it after retraining, or if it is done imprecisely?

Two experiments answer this:

- models that were trained again on bootstraps of the same rows vote (`trust.retrained`).
- `imprecise` asks h about copies of the plan with noise on every number that may change. The noise
  depends only on the row and the seed, so the same plan always gets the same noise.

The current h accepts every plan that is shown, so it is not counted. The intervals are exact if the
tries are independent. They describe one more retrained model or one more try with noise; they do
not predict how the world changes in later years.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from genrecourse.planning.binomial import Share
from genrecourse.table.noise import NOISE_SCALE, KeyedNoise

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array

TRIES = 32
STREAM = 40_009  # a separate stream: the search for the plan must not have seen this noise


def imprecise(
    confidence: Callable[[Array], Array],
    Z_plus: Array,
    numbers: np.ndarray,
    seed: int,
    blank: Callable[[Array], Array] = lambda Z: Z,
) -> list[Share]:
    """Return, for each row of Z_plus, how many of `TRIES` noisy copies h accepts.

    confidence: returns h's confidence in rows of Z; above 0.5, h accepts.
    numbers: the columns of Z that get noise.
    blank: hides protected columns (`roles.ProtectedMask`), so that they do not select the noise.

    >>> rows = np.array([[0.9], [0.52]])
    >>> [share.k for share in imprecise(lambda Z: Z[:, 0], rows, np.array([0]), seed=0)]
    [32, 28]
    """
    n, width = Z_plus.shape
    noise = KeyedNoise(seed + STREAM)
    keys = noise.keys(blank(Z_plus))
    moved = np.repeat(Z_plus[:, None, :], TRIES, axis=1)
    if len(numbers):
        moved[:, :, numbers] += NOISE_SCALE * noise.normal(keys, (TRIES, len(numbers)))
    accepted = confidence(moved.reshape(n * TRIES, width)).reshape(n, TRIES) > 0.5
    return [Share(int(k), TRIES) for k in accepted.sum(axis=1)]
