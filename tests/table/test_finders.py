"""Solving for factors that are not negative, against every choice of columns."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from genrecourse.table.finders import find_ratios, not_negative
from genrecourse.table.patterns import Rows


def test_a_rare_flag_is_no_ratio_of_everything() -> None:
    numbers = np.arange(1.0, 100.0)
    rows = Rows({"rare": (numbers == 7.0) * 1.0, "number": numbers, "half": numbers / 2})
    found = list(find_ratios(rows, dict.fromkeys(rows.numbers, 0.0)))
    assert [each.words for each in found] == ["'half' is 0.5 * 'number'"]


@given(st.integers(0, 10_000), st.booleans())
def test_the_factors_are_the_best_of_every_choice_of_columns(seed: int, repeated: bool) -> None:
    rng = np.random.default_rng(seed)
    columns, y = rng.normal(size=(4, 9)), rng.normal(size=9)
    if repeated:
        columns[3] = columns[0]
    best = np.inf
    for chosen in product((False, True), repeat=4):
        some = columns[list(chosen)]
        factors = np.linalg.lstsq(some.T, y, rcond=None)[0] if len(some) else np.zeros(0)
        if (factors >= 0).all():
            best = min(best, float(((y - factors @ some) ** 2).sum()))
    found = not_negative(columns, y)
    assert (found >= 0).all()
    assert ((y - found @ columns) ** 2).sum() <= best * (1 + 1e-6) + 1e-9
