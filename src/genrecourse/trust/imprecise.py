"""Rows with noise on their numbers: plans that are carried out imprecisely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from genrecourse.table.noise import NOISE_SCALE, KeyedNoise

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array, TableEncoder

N_NOISE = 5  # noise vectors per person
NOISE_SEED = 0  # fixed, so that every method gets the same noise
DECIMALS = 9  # rows that agree to this many decimals count as equal


def with_noise(encoder: TableEncoder, before: Array, after: Array) -> Array:
    """Return (n * N_NOISE, D): rows of Z with noise on each number that is not missing.

    The noise depends on `before` (x itself) only, so every method gets the same noise for x.

    >>> import pandas as pd
    >>> from genrecourse.table.encoding import TableEncoder
    >>> from genrecourse.table.schema import Schema
    >>> X = pd.DataFrame({"income": [10.0, 20.0, 30.0]})
    >>> encoder = TableEncoder(Schema.infer(X)).fit(X)
    >>> Z = encoder.encode(X)
    >>> with_noise(encoder, Z, Z).shape
    (15, 1)
    """
    is_number = np.zeros(encoder.width, dtype=bool)
    gone = np.zeros(after.shape, dtype=bool)
    for block in encoder.blocks:
        if block.n_levels == 0:
            is_number[block.start] = True
            gone[:, block.start] = block.has_flag & (after[:, block.stop - 1] > 0.5)
    keyed = KeyedNoise(NOISE_SEED)
    shift = keyed.normal(keyed.keys(before), (N_NOISE, encoder.width))
    moves = (is_number & ~gone)[:, None, :]
    noisy = after[:, None, :] + NOISE_SCALE * shift * moves
    return np.asarray(noisy.reshape(-1, encoder.width))
