"""Shapley values: how much each feature of a row moved a score away from that of other rows.

A feature's value is the mean, over other rows b and over all orders of the features, of how much
the score changes when the feature becomes x's, while the features before it in the order are x's
already and those after it are b's. So the values add up to f(x) minus the mean of f over the rows
that were used.

`sampled` works for any f. It draws rows and orders, walks from b to x and, for each order, also in
the reverse order (antithetic). `of_sum` is exact for an f that is a sum of functions of one feature
each, such as the log-odds of a logistic regression.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as student

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array
    from genrecourse.table.noise import KeyedNoise

ROUND = 32  # orders in a round, each walked in both directions
LEAST = 4  # rounds before the intervals are trusted
NOTHING = 1e-6  # share of the scale: a smaller effect in every walk is an effect of rounding
SAME = 1e-6  # share of the scale by which parts may miss the whole before f is called no sum

Score = Callable[["Array"], "Array"]  # rows (m, d) -> (m,)
Mix = Callable[["Array", "Array"], "Array"]  # rows and the b's (m, d) -> rows that can exist


@dataclass(frozen=True)
class ShapleyValues:
    """One value for each player, with a 95% interval. start: the mean score of the other rows.

    >>> ends = np.array([0.4]), np.array([0.6])
    >>> found = ShapleyValues(np.array([0.5]), *ends, start=0.2, asked=640, walks=64)
    >>> found.is_exact
    False
    """

    value: Array  # (p,)
    low: Array  # (p,)
    high: Array  # (p,)
    start: float
    asked: int  # rows that f has scored
    walks: int = 0  # from another row to x

    @property
    def is_exact(self) -> bool:
        return self.walks == 0


def sampled(
    score: Score,
    mix: Mix,
    x: Array,
    others: Array,
    players: list[int],
    noise: KeyedNoise,
    key: Array,
    *,
    most: int,
    precise: float,
    scale: float,
) -> ShapleyValues:
    """Return the values of the features `players` of x (d,), compared with the rows others (n, d).

    key: (1, D) decides the random numbers, with the noise's seed. most: rows that f scores, about.
    precise: half the length of an interval that is short enough to stop. scale: of f's values.

    >>> from genrecourse.table.noise import KeyedNoise
    >>> x, others, limits = np.ones(2), np.zeros((4, 2)), {"most": 999, "precise": 0, "scale": 1}
    >>> found = sampled(
    ...     lambda F: F @ [1.0, 2.0],
    ...     lambda F, b: F,
    ...     x,
    ...     others,
    ...     [0, 1],
    ...     KeyedNoise(0),
    ...     x[None],
    ...     **limits,
    ... )
    >>> found.value
    array([1., 2.])
    """
    known = _Asked(score)
    parts: list[Array] = []
    starts: list[Array] = []
    n_rounds = max(LEAST, most // (2 * ROUND * max(1, len(players))))
    for turn in range(n_rounds):
        steps, first = _round(known, mix, x, others, players, noise, key, turn)
        parts.append(steps)
        starts.append(first)
        if turn + 1 >= LEAST and (_half(np.concatenate(parts)) <= precise).all():
            break
    every = np.concatenate(parts)
    half = _half(every)
    value = every.mean(axis=0)
    idle = (np.abs(every) <= NOTHING * scale).all(axis=0)
    value, half = np.where(idle, 0.0, value), np.where(idle, 0.0, half)
    start = float(np.concatenate(starts).mean())
    return ShapleyValues(value, value - half, value + half, start, known.asked, 2 * len(every))


def _round(
    known: _Asked,
    mix: Mix,
    x: Array,
    others: Array,
    players: list[int],
    noise: KeyedNoise,
    key: Array,
    turn: int,
) -> tuple[Array, Array]:
    """Return (ROUND, p) what each player did, the mean of both directions, and (ROUND,) the scores
    of the other rows. f scores all rows of a round together."""
    p = len(players)
    drawn = noise.uniform(noise.keys(key), (ROUND, 1 + p), offset=turn * ROUND * (1 + p))[0]
    b = others[np.minimum((drawn[:, 0] * len(others)).astype(int), len(others) - 1)]
    order = np.argsort(drawn[:, 1:], axis=1)  # (ROUND, p): the players, first to last
    both = np.stack([order, order[:, ::-1]], axis=1)  # (ROUND, 2, p)
    place = np.argsort(both, axis=-1)  # when it is a player's turn
    is_x = place[:, :, None, :] < np.arange(p + 1)[:, None]  # (ROUND, 2, p + 1, p)
    base = np.broadcast_to(b[:, None, None, :], (ROUND, 2, p + 1, len(x)))
    rows = base.copy()
    rows[..., players] = np.where(is_x, x[players], base[..., players])
    flat = rows.reshape(-1, len(x))
    scores = known(mix(flat, base.reshape(-1, len(x)))).reshape(ROUND, 2, p + 1)
    steps = np.take_along_axis(np.diff(scores, axis=-1), place, axis=-1)
    return steps.mean(axis=1), scores[:, 0, 0]


def _half(every: Array) -> Array:
    """Return (p,) half the length of the 95% interval of the mean of rows (m, p)."""
    error = every.std(axis=0, ddof=1) / np.sqrt(len(every))
    return np.asarray(student.ppf(0.975, len(every) - 1) * error)


class _Asked:
    """Scores rows, each different one once."""

    def __init__(self, score: Score):
        self.score = score
        self.known: dict[bytes, float] = {}

    @property
    def asked(self) -> int:
        return len(self.known)

    def __call__(self, rows: Array) -> Array:
        keys = [row.tobytes() for row in rows]
        new = {key: k for k, key in enumerate(keys) if key not in self.known}
        if new:
            scores = self.score(rows[list(new.values())])
            self.known |= dict(zip(new, scores.tolist(), strict=True))
        return np.array([self.known[key] for key in keys])


def of_sum(
    score: Score, x: Array, others: Array, players: list[int], scale: float
) -> ShapleyValues | None:
    """Return the exact values if f is a sum of functions of one feature each; None: it is no sum.

    Then the value of a feature is f(x) minus the mean of f with the feature's values of the others.

    >>> x, others = np.array([1.0, 1.0]), np.array([[0.0, 0.0], [0.0, 2.0]])
    >>> of_sum(lambda F: F @ [1.0, 2.0], x, others, [0, 1], 1.0).value
    array([1., 0.])
    >>> of_sum(lambda F: F.prod(axis=1), x, np.array([[0.0, 0.0], [2.0, 2.0]]), [0, 1], 1.0) is None
    True
    """
    rows, weights = [x[None]], [np.ones(1)]
    for j in players:
        values, counts = np.unique(others[:, j], return_counts=True)
        swapped = np.repeat(x[None], len(values), axis=0)
        swapped[:, j] = values
        rows.append(swapped)
        weights.append(counts / len(others))
    rows.append(others)
    ends = np.cumsum([len(each) for each in rows])[:-1]
    mine, *swaps, theirs = np.split(score(np.concatenate(rows)), ends)
    value = np.array(
        [mine[0] - s @ w for s, w in zip(swaps, weights[1:], strict=True)], dtype=float
    )
    start = float(theirs.mean())
    if abs(value.sum() - (mine[0] - start)) > SAME * max(scale, float(np.abs(value).sum())):
        return None
    value = np.where(np.abs(value) <= 1e-12 * scale, 0.0, value)
    return ShapleyValues(value, value, value, start, int(ends[-1]) + len(others))
