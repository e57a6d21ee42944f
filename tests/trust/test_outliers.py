"""Local outlier factors of several numbers of neighbours from one search."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import LocalOutlierFactor

from genrecourse.trust.outliers import Outliers

RNG = np.random.default_rng(0)
ROWS = RNG.random((300, 5))  # no two rows are equally far from a third: no ties


@pytest.mark.parametrize("k", [1, 3, 5, 20])
def test_scores_are_scikit_learns(k: int) -> None:
    asked = np.concatenate([RNG.random((100, 5)), ROWS[:20], RNG.random((20, 5)) + 3])
    lof = LocalOutlierFactor(n_neighbors=k, novelty=True).fit(ROWS)
    scores = Outliers(ROWS, (3, k))(asked)
    np.testing.assert_allclose(scores[:, 1], lof.decision_function(asked), rtol=1e-9)


def test_duplicates_are_no_distance_away() -> None:
    """Five copies of one row: a sixth is as usual as can be, and a step aside is infinitely odd."""
    rows = np.concatenate([np.zeros((5, 2)), RNG.random((20, 2)) + 5])
    scores = Outliers(rows, (3,))(np.array([[0.0, 0.0], [0.01, 0.0]]))
    assert scores[0, 0] == pytest.approx(0.5)  # 1.5 - 1
    assert scores[1, 0] < -1e6


def test_an_answer_does_not_depend_on_the_rows_beside_it() -> None:
    outliers = Outliers(np.round(ROWS, 1), (3, 4, 5))  # a lattice, full of ties
    asked = np.round(RNG.random((64, 5)), 1)
    alone = np.concatenate([outliers(row[None]) for row in asked])
    assert (alone == outliers(asked)).all()
    assert outliers(asked[:0]).shape == (0, 3)


def test_fewer_rows_than_neighbours() -> None:
    assert Outliers(ROWS[:3], (3, 5)).neighbours == (2, 2)
