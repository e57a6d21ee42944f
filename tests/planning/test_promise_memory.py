"""A promise about plans that depend on the outcomes which test it.

The truth is known: an outcome is favourable with a probability above 1/2 in half of 36 cells, and
with 0.45 in the others. 30% of the plans lie in bad cells. So a promise of 0.9 about all plans is
broken, and only a threshold may keep it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from genrecourse.planning.promise import PromiseData, choose
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import Array, TableEncoder
from genrecourse.table.schema import Schema

ROWS, PLANS, SHARE, DELTA = 1200, 400, 0.9, 0.1
TABLES = 12
IN_BAD_CELLS = 0.3
LUCKY_CELLS = 4


def cell_of(Z: Array) -> np.ndarray:
    """(n,) the cell of rows of the unit square, of 6 x 6."""
    column, line = (np.clip(Z[:, j] * 6, 0, 5).astype(int) for j in (0, 1))
    return column * 6 + line


def is_bad(Z: Array) -> np.ndarray:
    """(n,) booleans: the real decision rejects; the bad cells are scattered."""
    return (cell_of(Z) * 7 + 3) % 36 < 18


def plans_of(Z: Array, y: np.ndarray, rng: np.random.Generator) -> Array:
    """(m, 2) plans of a method that has memorised the outcomes: copies of favourable rows.

    In bad cells it copies from those in which the rows happen to be the most favourable.
    """
    cell, bad = cell_of(Z), np.flatnonzero(is_bad(Z) & y)
    best = sorted(np.unique(cell[bad]), key=lambda c: -y[cell == c].mean())[:LUCKY_CELLS]
    lucky, good = bad[np.isin(cell[bad], best)], np.flatnonzero(~is_bad(Z) & y)
    k = rng.binomial(PLANS, IN_BAD_CELLS)
    return Z[np.concatenate([rng.choice(lucky, k), rng.choice(good, PLANS - k)])]


@cache
def broken(fresh: bool = False, good: float = 0.95) -> tuple[int, int]:
    """How many of the promises that are made on `TABLES` tables are broken, and how many are made.

    fresh: outcomes that the method has not seen test the promise. good: the probability of the
    favourable outcome in the cells that are not bad.
    """
    n_broken = n_made = 0
    for seed in range(TABLES):
        rng = np.random.default_rng([11, seed])
        X = pd.DataFrame({"a": rng.random(ROWS).round(3), "b": rng.random(ROWS).round(3)})
        encoder = TableEncoder(Schema.infer(X)).fit(X)
        Z = encoder.encode(X)
        eta = np.where(is_bad(Z), 0.45, good)
        seen, others = rng.random(ROWS) < eta, rng.random(ROWS) < eta
        everybody = np.ones(ROWS, dtype=bool)
        data = PromiseData.some(Z, others if fresh else seen, everybody, Cost(encoder), seed)
        assert len(data.people()) == PLANS
        plans = plans_of(Z, seen, rng)
        made = choose(data.levels(plans), SHARE, DELTA)
        if made.threshold is not None:
            shown = data.score(plans) >= made.threshold
            n_made += 1
            n_broken += bool((~is_bad(plans[shown])).mean() < SHARE)
    return n_broken, n_made


def test_a_method_that_has_memorised_the_outcomes_breaks_its_promise() -> None:
    """docs/promise.md, A5: nothing in the library prevents it, so the page has to say it."""
    n_broken, n_made = broken()
    assert n_made >= TABLES / 2
    assert n_broken > 3 * DELTA * n_made


def test_outcomes_that_the_method_has_not_seen_notice_more() -> None:
    """They do not notice all: bad cells that are scattered among good ones break A2 and A4."""
    assert broken(fresh=True)[0] < broken()[0]


def test_where_nothing_is_favourable_luck_alone_makes_no_promise() -> None:
    assert broken(good=0.45) == (0, 0)
