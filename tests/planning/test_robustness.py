"""Carried out imprecisely: what h is asked, and which noise moves the rows."""

from __future__ import annotations

import numpy as np

from genrecourse.planning.robustness import STREAM, TRIES, imprecise
from genrecourse.table.noise import NOISE_SCALE, KeyedNoise

Z = np.array([[0.4, 0.3, 1.0], [0.8, 0.6, 0.0]])
NUMBERS = np.array([0, 1])


def test_a_row_at_the_cutoff_is_not_accepted() -> None:
    for confidence, accepted in ((0.5, 0), (0.5 + 1e-9, TRIES)):
        shares = imprecise(lambda rows, c=confidence: np.full(len(rows), c), Z, NUMBERS, seed=0)
        assert [share.k for share in shares] == [accepted, accepted]


def test_the_noise_is_a_stream_of_its_own() -> None:
    """With the noise of the search itself, a plan would be tested on what it was chosen by."""
    asked: list[np.ndarray] = []

    def confidence(rows: np.ndarray) -> np.ndarray:
        asked.append(rows.reshape(2, TRIES, 3))
        return np.ones(len(rows))

    imprecise(confidence, Z, NUMBERS, seed=7)
    (moved,) = asked
    assert (moved[:, :, 2] == Z[:, None, 2]).all()  # no number
    shift = (moved - Z[:, None])[:, :, NUMBERS] / NOISE_SCALE

    def noise(seed: int) -> np.ndarray:
        keyed = KeyedNoise(seed)
        return keyed.normal(keyed.keys(Z), (TRIES, 2))

    np.testing.assert_allclose(shift, noise(7 + STREAM), atol=1e-9)
    assert (np.abs(shift - noise(7)) > 1e-3).mean() > 0.9
