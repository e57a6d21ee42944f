"""Which of a person's possible plans to show: good ones that differ in what they change.

Greedy: the best one, then again and again the best of the rest, less what it repeats of those that
are shown already. Two plans that change the same features are one plan with two prices, and one
that changes all that another does and more is no other way, so neither is shown.
"""

from __future__ import annotations

import numpy as np

from genrecourse.table.encoding import Array

REPEAT = 0.5  # of Score that a plan loses which changes just what another one does
WORSE = 1.0  # of Score that an alternative may be worth less than the first: a lost validity


def pick_diverse(
    moved: np.ndarray, worth: Array, n: int, first: int | None = None, worse: float = WORSE
) -> list[int]:
    """At most n of the k plans, in the order to show them.

    moved: (k, d) booleans, the features that each changes. worth: (k,) in units of Score; what is
    worth nothing (-inf) comes first or not at all. first: the one that comes first, whatever it is
    worth; None: the best. worse: how much less than the first another may be worth.
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
