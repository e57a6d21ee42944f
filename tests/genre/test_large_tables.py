"""Tests of the caps that keep a fit on a large table short, and of what it reports about them."""

import numpy as np
import pytest

from genrecourse.evaluation.example_tables import example_rows, example_settings
from genrecourse.genre import fit
from genrecourse.genre.fit import fit_density, fit_judge
from genrecourse.rules.problem import TrainingRows
from genrecourse.trust.judge import CrossFittedJudge


def test_some_rows_stay_together_and_in_order() -> None:
    Z = np.arange(50.0)[:, None]
    rows = TrainingRows(Z, 2 * Z, np.arange(50) % 2 == 0, np.arange(50) / 50)
    some = rows.some(20, seed=3)
    assert len(some.Z) == 20
    assert (np.diff(some.Z[:, 0]) > 0).all()
    np.testing.assert_array_equal(some.F, 2 * some.Z)
    np.testing.assert_array_equal(some.favourable, some.Z[:, 0] % 2 == 0)
    np.testing.assert_array_equal(some.Z, rows.some(20, seed=3).Z)
    assert not np.array_equal(some.Z, rows.some(20, seed=4).Z)
    assert rows.some(50, seed=3) is rows


def test_no_judge_of_the_table_scores_a_row_that_it_was_fitted_on() -> None:
    rng = np.random.default_rng(0)
    Z = rng.uniform(size=(120, 2))
    judge = CrossFittedJudge(n_folds=3, n_trees=5).fit(Z[:90], Z[:90, 0] > 0.5)
    known, _ = judge.of_table(Z[:90])
    np.testing.assert_array_equal(known, judge(Z[:90])[0])
    left_out, inlier = judge.of_table(Z[90:])
    each = np.stack([own.probability(Z[90:]) for own in judge._judges])
    np.testing.assert_array_equal(left_out, each[np.arange(30) % 3, np.arange(30)])
    assert inlier.shape == (30,)


def test_a_fit_looks_at_no_more_rows_than_the_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, rows = example_rows()
    monkeypatch.setattr(fit, "MOST_CANDIDATES", 25)
    monkeypatch.setattr(fit, "PAIRED", 100)
    monkeypatch.setattr(fit, "FEWEST_PAIRED", 7)
    report = fit_density(problem, rows, example_settings(gamma=0.5)).report
    lost = pytest.approx(1 - 25 / 39)
    assert report["accepted"] == {"found": 39, "used": 25, "mass_lost": lost}
    assert report["targets"]["found"] == 25
    assert report["pairs"]["sources"] == 7


def test_the_judge_is_fitted_on_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, rows = example_rows()
    monkeypatch.setattr(fit, "MOST_JUDGED", 60)
    judge = fit_judge(problem, rows, random_state=0)
    assert len(judge._Z) == 60
