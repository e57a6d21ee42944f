"""Eq. (8): bins and soft labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from genrecourse.genre import bins as bins_module
from genrecourse.genre.bins import make_bins
from tests.support.equations import ATOM_AND_TAIL, bins_of, labels_of, repeats_keep


def test_widths_are_half_the_gap_to_the_neighbours() -> None:
    bins = bins_of(ATOM_AND_TAIL)
    assert bins.value[0].tolist() == [0.0, 0.2, 0.6, 1.0]
    assert bins.hard[0].tolist() == [True, False, False, False]
    # half the mean of (0.2, 0.4), of (0.4, 0.4), of (0.4,): an atom has no width
    assert bins.width[0].tolist() == pytest.approx([0.0, 0.15, 0.2, 0.2])


def test_an_atom_holds_a_tenth_of_the_rows() -> None:
    tail = np.linspace(0.1, 1.0, 90).tolist()
    assert bins_of([0.0] * 10 + tail, n_bins=20).hard[0].tolist() == [True] + [False] * 19
    assert not bins_of([0.0] * 9 + tail, n_bins=20).hard.any()  # though it has a bin of its own


def test_soft_labels_by_hand() -> None:
    def kernel(gap: float, width: float) -> float:
        return math.exp(-(gap**2) / (2 * width**2)) / width

    bins = bins_of(ATOM_AND_TAIL)
    # x = 0.5 lies in the bin of 0.6: keep has that bin's height and reaches three times as far
    assert bins_module.KEEP_REACH == 3
    keep = kernel(0.2 / 3, 0.2)
    by_hand = [0.0, kernel(0.1, 0.15), kernel(0.3, 0.2), kernel(0.7, 0.2), keep]
    by_hand = [k / sum(by_hand) for k in by_hand]
    assert labels_of(bins, x=0.5, x_plus=0.3) == pytest.approx(by_hand, abs=1e-12)
    assert by_hand[0] == 0  # the atom receives nothing from its neighbours
    # a choice that is closed has no share, the others keep theirs in proportion
    rest = [0.0, by_hand[1], 0.0, by_hand[3], by_hand[4]]
    rest = [k / sum(rest) for k in rest]
    closed = labels_of(bins, 0.5, 0.3, allowed=[True, True, False, True, True])
    assert closed == pytest.approx(rest, abs=1e-12)


def test_labels_of_atoms_categories_and_what_stays_are_exact() -> None:
    bins = bins_of(ATOM_AND_TAIL)
    assert labels_of(bins, x=0.5, x_plus=0.0) == [1, 0, 0, 0, 0]
    assert labels_of(bins, x=0.0, x_plus=0.0) == [0, 0, 0, 0, 1]  # keep, exactly
    assert labels_of(bins, x=0.2, x_plus=0.2) == [0, 0, 0, 0, 1]
    assert labels_of(bins, x=0.37, x_plus=0.37) == [0, 0, 0, 0, 1]
    # x on an atom: a value close by is not "as x has it"
    assert labels_of(bins, x=0.0, x_plus=0.01)[-1] == 0
    levels = bins_of([0.0, 1.0, 1.0, 3.0], category=(0,))
    assert levels.value[0].tolist() == [0.0, 1.0, 3.0]
    assert labels_of(levels, x=0.0, x_plus=3.0) == [0, 0, 1, 0]
    assert labels_of(levels, x=1.0, x_plus=1.0) == [0, 0, 0, 1]


def test_labels_of_missing_values() -> None:
    assert bins_of([0.3, math.nan, 0.7]).value[0].tolist() == [0.3, 0.7]  # not to be moved to
    bins = bins_of([*ATOM_AND_TAIL, math.nan, math.nan])
    assert bins.value[0].tolist() == [0.0, 0.2, 0.6, 1.0]
    assert labels_of(bins, x=math.nan, x_plus=math.nan) == [0, 0, 0, 0, 1]
    assert labels_of(bins, x=math.nan, x_plus=0.0) == [1, 0, 0, 0, 0]
    soft = labels_of(bins, x=math.nan, x_plus=0.3)
    assert sum(soft) == pytest.approx(1.0)
    assert soft[0] == soft[-1] == 0
    nothing = bins_of([math.nan, math.nan])
    assert labels_of(nothing, x=0.4, x_plus=0.4) == [0, 1]


@pytest.mark.parametrize("seed", range(3))
def test_labels_sum_to_one_on_what_is_allowed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    N = 400
    F = np.stack(
        [
            rng.random(N),
            np.where(rng.random(N) < 0.6, 0.0, rng.random(N)),
            rng.integers(0, 4, N),
            rng.integers(0, 6, N) / 5,
        ],
        axis=1,
    )
    bins = make_bins(F, np.array([True, True, False, True]), 10)
    x, x_plus = torch.as_tensor(F[:200]), torch.as_tensor(F[200:])
    allowed = bins.real().expand(200, -1, -1).clone()
    allowed[..., :-1] &= ~repeats_keep(bins, x)
    label = bins.labels(x, x_plus, allowed)
    torch.testing.assert_close(label.sum(-1), torch.ones(200, 4).double())
    assert (label >= 0).all()
    assert (label[~allowed] == 0).all()
    # category, atom, unchanged: one-hot, on the choice that is this very value
    same = x == x_plus
    on_atom = ((bins.value == x_plus[..., None]) & bins.hard).any(-1)
    assert on_atom[:, 1].any()
    assert (~on_atom[:, 1]).any()
    sharp = label[same | on_atom]
    assert ((sharp == 0) | (sharp == 1)).all()
    assert (label[..., -1][same] == 1).all()
    # no mass from others onto an atom
    soft = ~(same | on_atom)
    assert (label[..., :-1][soft[..., None] & bins.hard] == 0).all()
    # and random further masks: what is forbidden gets nothing, the rest sums to one or is empty
    closed = allowed & torch.as_tensor(rng.random(allowed.shape) < 0.5)
    label = bins.labels(x, x_plus, closed)
    assert (label[~closed] == 0).all()
    total = label.sum(-1)
    assert (((total - 1).abs() < 1e-12) | (total == 0)).all()


def test_quantile_bins_hold_values_that_accepted_rows_have() -> None:
    rng = np.random.default_rng(0)
    column = np.where(rng.random(2000) < 0.4, 0.0, rng.gamma(2.0, 0.1, 2000))
    bins = make_bins(column[:, None], np.array([True]), 20)
    value = bins.value[0].numpy()
    assert len(value) == 20
    assert np.isin(value, column).all()
    assert (np.diff(value) > 0).all()
    assert value[bins.hard[0].numpy()].tolist() == [0.0]
    # the other 19 share the other rows evenly
    rest = column[column > 0]
    middle = (value[1:-1] + value[2:]) / 2
    shares = np.bincount(np.searchsorted(middle, rest)) / len(rest)
    np.testing.assert_allclose(shares, 1 / 19, rtol=0.3)


def test_few_values_get_one_bin_each() -> None:
    column = [0.0, 0.25, 0.25, 0.5, 0.9]
    assert bins_of(column, n_bins=4).value[0].tolist() == [0.0, 0.25, 0.5, 0.9]
    assert len(bins_of(column, n_bins=3).value[0]) <= 3
    rare = [0.0] * 14 + [0.2] * 4 + [0.5, 0.9]  # two quantiles of the rest would both be 0.2
    assert bins_of(rare, n_bins=4).value[0].tolist() == [0.0, 0.2, 0.5, 0.9]


def test_the_papers_uniform_grid() -> None:
    F = np.array([[0.0, 0.0], [0.1, 1.0], [0.3, 1.0], [1.0, 2.0]])
    bins = make_bins(F, np.array([True, False]), 4, kind="uniform")
    assert bins.value[0].tolist() == pytest.approx([0.125, 0.375, 0.625, 0.875])  # bin centres
    assert bins.width[0].tolist() == pytest.approx([0.25] * 4)  # bin widths
    assert not bins.hard[0].any()
    assert bins.value[1, :3].tolist() == [0.0, 1.0, 2.0]
    assert bins.hard[1].tolist() == [True, True, True, False]
