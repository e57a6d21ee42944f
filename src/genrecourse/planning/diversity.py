"""Choose which plans of a person to show: good plans that change different features.

The choice is greedy. It starts with the best plan. Then it repeatedly adds the plan with the
highest value, minus a penalty for features that a chosen plan already changes. A plan is never
added if it changes all the features that a chosen plan changes: it is then the same plan at another
price, or the same plan with further changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array

REPEAT = 0.5  # the penalty, in units of Score, if a plan changes the same features as another
WORSE = 1.0  # how much Score an alternative may lose to the first plan: as much as validity counts


def pick_diverse(
    moved: np.ndarray, worth: Array, n: int, first: int | None = None, worse: float = WORSE
) -> list[int]:
    """Return the numbers of at most n of the k plans, in the order to show them.

    moved: (k, d) booleans, the features that each plan changes.
    worth: (k,) the value of each plan, in units of Score. A plan with the value -inf is never an
        alternative.
    first: the plan to show first; None: the plan with the highest value.
    worse: how much lower than the first plan the value of an alternative may be.

    >>> moved = np.array([[True, False], [True, True], [False, True]])
    >>> pick_diverse(moved, np.array([1.8, 1.7, 1.2]), n=3)
    [0, 2]
    """
    chosen = [int(worth.argmax()) if first is None else first] if len(worth) else []
    repeats, is_new = np.zeros(len(worth)), np.ones(len(worth), dtype=bool)
    while chosen and len(chosen) < n:
        last = moved[chosen[-1]]
        shared = (moved & last).sum(axis=1) / np.maximum(1, (moved | last).sum(axis=1))
        repeats = np.maximum(repeats, shared)
        is_new &= (last & ~moved).any(axis=1)
        open_ = is_new & (worth > -np.inf) & (worth >= worth[chosen[0]] - worse)
        if not open_.any():
            break
        chosen.append(int(np.where(open_, worth - REPEAT * repeats, -np.inf).argmax()))
    return chosen
