"""Only needed changes are left: against loops over all sets of changes that share no code."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genrecourse.planning.needed import ALL_SETS, needed_only
from genrecourse.table.encoding import Array


def solved(rows: Array, bits: np.ndarray, x: Array) -> np.ndarray:
    """Whether a table of random answers accepts the set of features that differ from x."""
    place = ((rows != x) @ (1 << np.arange(rows.shape[1]))).astype(int)
    return bits[place]


def cost(rows: Array, price: Array, x: Array) -> Array:
    return ((rows != x) * price).sum(axis=1)


def cheapest(bits: np.ndarray, price: Array, d: int) -> float:
    sets = [s for size in range(1, d + 1) for s in combinations(range(d), size)]
    return min(price[list(s)].sum() for s in sets if bits[sum(1 << j for j in s)])


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, ALL_SETS))
def test_of_few_changes_the_cheapest_set_that_holds_is_left(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    bits, price = rng.random(2**d) < 0.4, rng.random(d) + 0.1
    bits[-1] = True  # the candidate itself holds
    x, x_plus = np.zeros((1, d)), np.ones((1, d))
    found = needed_only(
        x,
        x_plus,
        lambda which, F: solved(F, bits, x[0]),
        lambda which, F: cost(F, price, x[0]),
    )
    assert solved(found, bits, x[0])[0]
    assert cost(found, price, x[0])[0] == pytest.approx(cheapest(bits, price, d))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(ALL_SETS + 1, 9))
def test_of_many_changes_no_one_or_two_can_be_undone(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    bits, price = rng.random(2**d) < 0.5, rng.random(d) + 0.1
    bits[-1] = True
    x = np.zeros((1, d))
    found = needed_only(
        x, np.ones((1, d)), lambda w, F: solved(F, bits, x[0]), lambda w, F: cost(F, price, x[0])
    )
    assert solved(found, bits, x[0])[0]
    changed = np.flatnonzero(found[0])
    for size in (1, 2):
        for some in combinations(changed, size) if len(changed) > size else ():
            less = found.copy()
            less[0, list(some)] = 0.0
            assert not solved(less, bits, x[0])[0]


def test_frozen_features_are_not_undone_and_others_follow() -> None:
    """The third feature is the sum of the others: it is computed again, never put back."""
    x, x_plus = np.zeros((2, 3)), np.array([[1.0, 2.0, 3.0], [4.0, 0.5, 4.5]])

    def follow(which: np.ndarray, rows: Array) -> Array:
        return np.column_stack([rows[:, :2], rows[:, :2].sum(axis=1)])

    asked: list[Array] = []

    def holds(which: np.ndarray, rows: Array) -> np.ndarray:
        asked.append(rows)
        return rows[:, 2] >= 2.0

    price = lambda which, rows: rows[:, :2].sum(axis=1)  # noqa: E731
    frozen = np.array([False, False, True])
    found = needed_only(x, x_plus, holds, price, follow, frozen)
    assert found.tolist() == [[0.0, 2.0, 2.0], [4.0, 0.0, 4.0]]
    assert len(asked) == 1  # one question for all candidates


def test_the_last_change_stays_and_what_follows_is_none() -> None:
    """One change and its consequence: to undo it would leave nothing, whatever holds."""
    x, x_plus = np.zeros((1, 2)), np.array([[1.0, 0.5]])
    found = needed_only(
        x,
        x_plus,
        lambda which, F: np.ones(len(F), dtype=bool),
        lambda which, F: F.sum(axis=1),
        lambda which, F: np.c_[F[:, 0], F[:, 0] / 2],
        frozen=np.array([False, True]),
    )
    assert found.tolist() == x_plus.tolist()


def test_a_candidate_that_holds_in_no_part_stays() -> None:
    x, x_plus = np.zeros((1, 2)), np.ones((1, 2))
    all_of_it = lambda which, rows: rows.all(axis=1)  # noqa: E731
    found = needed_only(x, x_plus, all_of_it, lambda which, rows: rows.sum(axis=1))
    assert found.tolist() == [[1.0, 1.0]]
