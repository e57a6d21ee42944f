"""The closed forms of chance, against an enumeration of every way to deal a column."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
import pytest

from genrecourse.table.chance import (
    log_chance_disjoint,
    log_chance_equal,
    log_chance_inside,
    log_chance_ordered,
    most_exceptions,
    share_not_one,
    share_ordered,
    share_unequal,
)

A, B = np.array([1.0, 3.0, 2.0, 5.0, 2.0]), np.array([4.0, 2.0, 2.0, 6.0, 5.0])


def dealt(values: np.ndarray) -> np.ndarray:
    """Every order of the values, (orders, n)."""
    return np.array(list(permutations(values)))


@pytest.mark.parametrize("shift", [0.0, 1.0, -1.0, 9.0, -9.0])
def test_the_chance_of_an_order_is_the_share_of_deals(shift: float) -> None:
    broken = (dealt(B + shift) < A).sum(axis=1)
    assert np.exp(log_chance_ordered(A, B + shift, 0)) == pytest.approx((broken == 0).mean())
    assert share_ordered(A, B + shift) == pytest.approx(broken.mean() / len(A))


@pytest.mark.parametrize("exceptions", [1, 2])
def test_with_exceptions_it_is_an_upper_bound(exceptions: int) -> None:
    for a, b in ((A, B), (B, A), (A, A)):
        share = ((a > dealt(b)).sum(axis=1) <= exceptions).mean()
        assert np.exp(log_chance_ordered(a, b, exceptions)) >= share - 1e-12
        share = ((a != dealt(a)).sum(axis=1) <= exceptions).mean()
        assert np.exp(log_chance_equal(a, exceptions)) >= share - 1e-12


@pytest.mark.parametrize("values", [A, B, np.zeros(4), np.array([0, 1, 1, 1, 0])])
def test_the_chance_of_an_equality_is_the_share_of_deals(values: np.ndarray) -> None:
    off = (values != dealt(values)).sum(axis=1)
    assert np.exp(log_chance_equal(values, 0)) == pytest.approx((off == 0).mean())
    assert share_unequal(values) == pytest.approx(off.mean() / len(values))


def test_the_chance_to_lie_inside_is_counted_by_subsets() -> None:
    inside = np.array([True, True, True, False, False, True])
    for drawn, exceptions in product((1, 2, 4), (0, 1)):
        draws = [(~inside[list(rows)]).sum() for rows in combinations(range(6), drawn)]
        share = np.mean(np.array(draws) <= exceptions)
        assert np.exp(log_chance_inside(6, 4, drawn, exceptions)) == pytest.approx(share)


def test_the_chance_of_a_group_is_counted_by_its_columns() -> None:
    n, counts = 5, (2, 1, 1)
    places = [list(combinations(range(n), count)) for count in counts]
    apart = [len(set().union(*chosen)) == sum(counts) for chosen in product(*places)]
    assert np.exp(log_chance_disjoint(np.array(counts), n)) == pytest.approx(np.mean(apart))
    shares = np.array([0.3, 0.5, 0.1])
    total = {True: 0.0, False: 0.0}
    for ones in product((0, 1), repeat=3):
        probability = np.prod(np.where(ones, shares, 1 - shares))
        for or_none in total:
            total[or_none] += probability * (sum(ones) not in ((0, 1) if or_none else (1,)))
    for or_none, expected in total.items():
        assert share_not_one(shares, or_none=or_none) == pytest.approx(expected)


def test_rows_without_exceptions_rule_out_few() -> None:
    assert most_exceptions(0, 149) < 0.02 < most_exceptions(0, 148)
    assert most_exceptions(3, 3) == 1.0
