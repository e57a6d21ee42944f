"""Intervals: closed forms where everybody has an x_plus of their own, coverage where they share."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from genrecourse.evaluation.comparison.intervals import clustered, over_seeds, paired, variance

TIMES = 400


def test_one_row_a_cluster_is_students_interval() -> None:
    values = np.random.default_rng(0).gamma(2.0, size=40)
    found = clustered(values, np.arange(40))
    low, high = stats.t.interval(0.95, 39, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert (found.n, found.clusters) == (40, 40)


def test_one_row_a_cluster_is_the_paired_t_interval() -> None:
    rng = np.random.default_rng(1)
    ours, theirs = rng.normal(1.0, 1.0, 30), rng.normal(0.8, 1.0, 30)
    found = paired(ours, theirs, np.arange(30), rng.permutation(30))
    expected = stats.ttest_rel(ours, theirs).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(expected))


def test_copies_of_a_row_add_nothing() -> None:
    """Ten people with the same x_plus and value are one observation, of ten times the weight."""
    values = np.random.default_rng(2).normal(size=25)
    once, ten = clustered(values, np.arange(25)), clustered(np.repeat(values, 10), _of(25, 10))
    assert (ten.low, ten.high) == pytest.approx((once.low, once.high))
    assert (ten.n, ten.clusters) == (250, 25)
    naive = clustered(np.repeat(values, 10), np.arange(250))
    assert naive.half < 0.4 * ten.half


def test_the_variance_is_the_jackknifes() -> None:
    """Leave out one x_plus at a time, take the mean anew each time."""
    rng = np.random.default_rng(6)
    values, told = rng.normal(size=50), rng.integers(0, 8, 50) ** 2
    groups = np.unique(told)
    without = np.array([values[told != group].mean() for group in groups])
    expected = (len(groups) - 1) / len(groups) * np.sum((without - values.mean()) ** 2)
    assert variance(values, told) == pytest.approx(expected)


def test_two_groupings_add_up() -> None:
    """V = V_A + V_B - V_AB, where groupings across each other are told apart from pairs."""
    rng = np.random.default_rng(3)
    a, b = np.repeat(np.arange(6), 8), np.tile(np.repeat(np.arange(4), 2), 6)
    difference = rng.normal(size=6)[a] + rng.normal(size=4)[b] + rng.normal(0, 0.1, 48)
    by_a, by_b, by_both = (variance(difference, told) for told in (a, b, 10 * a + b))
    assert by_a + by_b - by_both > max(by_a, by_b)  # so that it is the sum that is looked at
    found = paired(difference, np.zeros(48), a, b)
    quantile = stats.t.ppf(0.975, 4 - 1)  # the clusters are of equal size, four the fewer
    assert found.half == pytest.approx(quantile * np.sqrt(by_a + by_b - by_both))
    assert found.clusters == 4


def test_never_narrower_than_either_grouping() -> None:
    """Values that cancel within the pairs make the sum too small, even negative."""
    a, b = np.repeat([0, 1], 2), np.tile([0, 1], 2)
    values = np.array([1.0, -1.0, -1.0, 1.0])  # every cluster sums to nothing
    found = paired(values, np.zeros(4), a, b)
    assert found.half == 0.0
    values = np.array([1.0, -0.5, -1.0, 1.0])
    each = [clustered(values, groups).half for groups in (a, b)]
    assert paired(values, np.zeros(4), a, b).half == pytest.approx(max(each))


@pytest.mark.parametrize("sizes", ["alike", "skewed"])
def test_shared_x_plus_widen_the_interval_until_it_covers(sizes: str) -> None:
    """200 people, 40 x_plus: what the judge says of an x_plus counts for all who were told it."""
    rng = np.random.default_rng(4)
    share = np.ones(40) if sizes == "alike" else 1 / np.arange(1, 41)
    covered, naive = 0, 0
    for _ in range(TIMES):
        told = rng.choice(40, 200, p=share / share.sum())
        values = rng.normal(size=40)[told] + rng.normal(0, 0.3, 200)
        found = clustered(values, told)
        covered += abs(found.mean) < found.half
        naive += abs(found.mean) < clustered(values, np.arange(200)).half
    assert 0.925 <= covered / TIMES <= 0.98
    assert naive / TIMES < 0.75


def test_two_methods_with_shared_x_plus_each() -> None:
    rng = np.random.default_rng(5)
    covered, one_sided, naive = 0, 0, 0
    for _ in range(TIMES):
        a, b = rng.integers(0, 40, 300), rng.integers(0, 50, 300)
        ours, theirs = rng.normal(size=40)[a], rng.normal(size=50)[b]
        found = paired(ours, theirs, a, b)
        covered += abs(found.mean) < found.half
        one_sided += abs(found.mean) < clustered(ours - theirs, a).half
        naive += abs(found.mean) < paired(ours, theirs, np.arange(300), np.arange(300)).half
    assert 0.92 <= covered / TIMES <= 0.98
    assert one_sided / TIMES < 0.9
    assert naive / TIMES < 0.75


def test_seeds_are_students() -> None:
    means = [1.93, 1.95, 1.94, 1.96, 1.92]
    found = over_seeds(means, n=5000, clusters=900)
    low, high = stats.t.interval(0.95, 4, np.mean(means), stats.sem(means))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert (found.n, found.clusters, found.seeds) == (5000, 900, 5)


def test_nothing_is_claimed_from_one() -> None:
    assert np.isnan(over_seeds([1.9], 100, 20).half)
    assert np.isnan(clustered(np.arange(5.0), np.zeros(5)).half)
    assert np.isnan(paired(np.arange(5.0), np.zeros(5), np.zeros(5), np.arange(5)).half)


def _of(groups: int, size: int) -> np.ndarray:
    return np.repeat(np.arange(groups), size)


def test_uneven_clusters_have_fewer_degrees_of_freedom() -> None:
    values, told = np.array([1.0, 2.0, 4.0, 7.0, 5.0]), np.array([0, 0, 0, 1, 2])
    effective = 5**2 / (3**2 + 1 + 1)
    quantile = stats.t.ppf(0.975, effective - 1)
    assert clustered(values, told).half == pytest.approx(quantile * variance(values, told) ** 0.5)
