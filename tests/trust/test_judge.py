"""Judge and CrossFittedJudge: they tell people apart, and never from memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from genrecourse.data.datasets import load_dataset
from genrecourse.errors import UserError
from genrecourse.evaluation.gold import TrueJudge
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.schema import Schema
from genrecourse.trust.judge import CrossFittedJudge, Judge, fit_lof, trust


def clouds(n: int = 150, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rejected people around (0.2, 0.2), accepted ones around (0.8, 0.8)."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.5
    return np.where(y, 0.8, 0.2)[:, None] + rng.normal(0, 0.05, (n, 2)), y


def coin(n: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes that have nothing to do with the person: all there is to learn is by heart."""
    rng = np.random.default_rng(seed)
    return rng.random((n, 4)), rng.permutation(np.arange(n) % 2)


# ---- Judge ------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"min_leaf": 5, "calibrated": False}])
def test_judge_tells_people_apart(settings: dict[str, Any]) -> None:
    Z, y = clouds()
    judge = Judge(**settings).fit(Z, y)
    Z_new, y_new = clouds(seed=1)
    assert (judge.valid(Z_new) == y_new).all()
    np.testing.assert_array_equal(judge.valid(Z_new), judge.probability(Z_new) > 0.5)
    assert ((judge.probability(Z_new) >= 0) & (judge.probability(Z_new) <= 1)).all()
    # like accepted people: the middle of their cloud; unlike: a rejected one, and nobody's place
    strange = np.array([[0.8, 0.8], [0.2, 0.2], [0.8, 1.6], [5.0, 5.0]])
    assert judge.inlier(strange).tolist() == [True, False, False, False]
    assert judge.inlier(Z_new[y_new]).mean() > 0.8


def test_outcomes_as_numbers_or_booleans() -> None:
    Z, y = clouds()
    as_bool, as_int = (Judge(calibrated=False).fit(Z, labels) for labels in (y, y.astype(int)))
    np.testing.assert_array_equal(as_bool.probability(Z), as_int.probability(Z))


def test_judge_weighs_the_outcomes_equally() -> None:
    # one in ten is favourable among people who are all the same: undecided, not "never"
    Z = np.random.default_rng(0).integers(0, 2, (400, 1)).astype(float)
    y = (np.arange(400) % 10 == 0) & (Z[:, 0] == 1)
    judge = Judge(min_leaf=5, calibrated=False).fit(Z, y)
    unweighted = RandomForestClassifier(min_samples_leaf=5, random_state=0).fit(Z, y)
    at_one = np.array([[1.0]])
    assert unweighted.predict_proba(at_one)[0, 1] < 0.2
    assert judge.probability(at_one)[0] > 0.5


def test_the_outlier_factor_is_about_those_the_forest_accepts() -> None:
    Z, y = clouds()
    far = np.array([[0.2, 0.8]])
    # people at (0.2, 0.8) with a favourable outcome make that a place of accepted people
    more = far + np.random.default_rng(2).normal(0, 0.05, (60, 2))
    people = np.vstack([Z, more])
    settled, empty = (
        Judge(calibrated=False).fit(people, np.concatenate([y, np.full(60, favourable)]))
        for favourable in (True, False)
    )
    assert (settled.inlier(far)[0], empty.inlier(far)[0]) == (True, False)
    assert empty.lof_.n_samples_fit_ == empty.valid(people).sum()


def test_few_accepted_people_make_few_neighbours() -> None:
    Z, y = clouds()
    few = np.concatenate([np.flatnonzero(y)[:3], np.flatnonzero(~y)])
    judge = Judge(calibrated=False).fit(Z[few], y[few])
    assert judge.lof_.n_neighbors_ == 2
    assert Judge(calibrated=False).fit(Z, y).lof_.n_neighbors_ == 5


def test_duplicate_rows_are_no_warning() -> None:
    Z, y = clouds(60)
    Judge(calibrated=False).fit(np.repeat(Z.round(1), 4, axis=0), np.repeat(y, 4))


@pytest.mark.parametrize(
    ("favourable", "calibrated", "says"),
    [
        (0, True, "0 of the 40 rows for a judge are favourable; it needs at least 5 of each"),
        (4, True, "4 of the 40 rows for a judge are favourable; it needs at least 5 of each"),
        (36, True, "36 of the 40 rows for a judge are favourable; it needs at least 5 of each"),
        (0, False, "0 of the 40 rows for a judge are favourable; it needs at least 1 of each"),
        (40, False, "40 of the 40 rows for a judge are favourable; it needs at least 1 of each"),
        (1, False, "accepts 1 of them; give more rows with a favourable outcome"),
    ],
)
def test_too_few_outcomes(favourable: int, calibrated: bool, says: str) -> None:
    Z = np.random.default_rng(0).random((40, 2))
    Z[:favourable] += 1
    with pytest.raises(UserError) as caught:
        Judge(calibrated=calibrated).fit(Z, np.arange(40) < favourable)
    assert says in str(caught.value)


@pytest.mark.parametrize("settings", [{}, {"min_leaf": 5, "calibrated": False}])
def test_judge_is_deterministic(settings: dict[str, Any]) -> None:
    Z, y = coin()
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again = (Judge(7, **settings).fit(Z, y) for _ in range(2))
    for _ in range(3):  # the trees' votes are added up by threads, in any order
        np.testing.assert_array_equal(first.probability(Z), again.probability(Z))
    np.testing.assert_array_equal(first.inlier(Z), again.inlier(Z))
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_the_seed_matters() -> None:
    Z, y = coin()
    one, other = (Judge(seed, calibrated=False).fit(Z, y) for seed in (7, 8))
    assert np.abs(one.probability(Z) - other.probability(Z)).max() > 1e-3


def test_unbalanced_says_likelier_than_not() -> None:
    # everybody is the same, and one in five is favourable
    Z, y = np.zeros((200, 1)), np.arange(200) % 5 == 0
    with pytest.raises(UserError, match="accepts 0 of them"):
        Judge(balanced=False, calibrated=False).fit(Z, y)


def test_an_even_chance_is_not_valid() -> None:
    judge = Judge(calibrated=False).fit(*clouds())
    for probability, valid in ((0.5, False), (0.5 + 1e-9, True)):
        judge.forest_ = SimpleNamespace(
            predict_proba=lambda Z, p=probability: np.tile([1 - p, p], (len(Z), 1))
        )
        assert judge.valid(np.zeros((1, 2))).tolist() == [valid]


# ---- TrueJudge --------------------------------------------------------------------------------


def test_the_true_judge_says_what_the_truth_says_of_the_decoded_row() -> None:
    data = load_dataset("loan")
    assert data.truth is not None
    X = data.X_train.iloc[:600]
    encoder = TableEncoder(data.schema).fit(data.X_train)
    Z, p = encoder.encode(X), data.truth(X)
    judge = TrueJudge(data.truth, encoder, data.X_train).fit(Z)
    np.testing.assert_allclose(judge.probability(Z), p, rtol=1e-12)
    np.testing.assert_array_equal(judge.valid(Z), p > 0.5)
    # plausible: by the same local outlier factor, among those who are truly likelier than not
    lof = fit_lof(Z[p > 0.5])
    np.testing.assert_array_equal(judge.inlier(Z), lof.predict(Z) == 1)
    assert 0.5 < judge.inlier(Z).mean() < 1.0
    # a relaxed row is read as the nearest legal one: the largest of its levels
    soft = Z.copy()
    housing = encoder.blocks[data.schema.names.index("housing")].columns
    soft[:, housing] = 0.6 * soft[:, housing] + 0.1
    np.testing.assert_allclose(judge.probability(soft), p, rtol=1e-12)


def test_the_true_judge_does_not_look_at_outcomes() -> None:
    data = load_dataset("loan")
    assert data.truth is not None
    X, y = data.X_train.iloc[:300], data.y_train.iloc[:300].to_numpy()
    encoder = TableEncoder(data.schema).fit(X)
    Z = encoder.encode(X)
    one, other = (TrueJudge(data.truth, encoder, X).fit(Z, labels) for labels in (y, 1 - y))
    np.testing.assert_array_equal(one.probability(Z), other.probability(Z))
    np.testing.assert_array_equal(one.inlier(Z), other.inlier(Z))


def test_the_true_judge_needs_somebody_who_is_valid() -> None:
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0]})
    encoder = TableEncoder(Schema.infer(X)).fit(X)
    with pytest.raises(UserError, match="0 of the 3 rows for a judge have a true probability"):
        TrueJudge(lambda X: np.zeros(len(X)), encoder, X).fit(encoder.encode(X))


# ---- CrossFittedJudge ---------------------------------------------------------------------------


def test_cross_fitted_judge_tells_people_apart() -> None:
    judge = CrossFittedJudge().fit(*clouds())
    Z_new, y_new = clouds(seed=1)
    probability, inlier = judge(Z_new)
    assert ((probability > 0.5) == y_new).all()
    assert inlier[y_new].mean() > 0.8
    assert not inlier[~y_new].any()
    one, one_inlier = judge(np.array([[0.8, 0.8]]))
    assert one[0] > 0.9
    assert one_inlier.tolist() == [True]
    assert [answer.shape for answer in judge(Z_new[:0])] == [(0,), (0,)]


def test_cross_fitted_judge_does_not_know_training_rows_by_heart() -> None:
    Z, y = coin()
    assert np.mean(Judge().fit(Z, y).valid(Z) == y) > 0.9
    judge = CrossFittedJudge().fit(Z, y)
    for people in (Z, Z + 1e-6):  # near copies too, which is what generated rows are
        probability, _ = judge(people)
        assert np.mean((probability > 0.5) == y) == pytest.approx(0.5, abs=4 * 0.5 / len(y) ** 0.5)


class Recorder:
    """A judge that only remembers which rows it was fitted on and which it was asked about."""

    def __init__(self, *_: object, **__: object) -> None:
        self.asked: set[float] = set()

    def fit(self, Z: np.ndarray, y: np.ndarray) -> Recorder:
        self.rows, self.favourable = set(Z[:, 0]), int(y.sum())
        return self

    def probability(self, Z: np.ndarray) -> np.ndarray:
        self.asked |= set(Z[:, 0])
        return np.ones(len(Z))

    inlier = probability


@pytest.mark.parametrize("n_folds", [2, 5])
def test_each_row_is_judged_by_the_one_that_did_not_see_it(
    monkeypatch: pytest.MonkeyPatch, n_folds: int
) -> None:
    monkeypatch.setattr("genrecourse.trust.judge.Judge", Recorder)
    Z = np.random.default_rng(0).random((100, 1))
    everyone = set(Z[:, 0])
    judge = CrossFittedJudge(n_folds=n_folds).fit(Z, np.arange(100) < 20)
    judges = cast(list[Recorder], judge._judges)
    assert len(judges) == n_folds
    judge(Z)
    for one in judges:
        assert one.asked == everyone - one.rows
        assert len(one.asked) == 100 / n_folds
        assert one.favourable == 20 - 20 / n_folds  # every fold has its share of both outcomes
    assert set.union(*(one.asked for one in judges)) == everyone
    # not a matter of where a row stands in the table
    assert judges[0].asked != set(Z[: 100 // n_folds, 0])
    # a row that is no training row goes to the judge that did not see its nearest neighbour
    near = Z[4, 0] + 1e-9
    judge(np.array([[near]]))
    (asked,) = [one for one in judges if near in one.asked]
    assert Z[4, 0] not in asked.rows


def test_cross_fitted_judge_is_deterministic() -> None:
    Z, y = coin()

    def judged(seed: int) -> tuple[np.ndarray, np.ndarray]:
        return CrossFittedJudge(seed, n_folds=2).fit(Z, y)(Z)

    np.testing.assert_array_equal(judged(3), judged(3))
    assert not np.array_equal(judged(3)[0], judged(4)[0])


def test_cross_fitted_judge_judges_each_row_alone() -> None:
    judge = CrossFittedJudge(n_folds=2).fit(*coin())
    people = np.random.default_rng(9).random((600, 4))
    probability, inlier = judge(people)
    order = np.random.default_rng(1).permutation(600)
    np.testing.assert_array_equal(judge(people[order])[0], probability[order])
    np.testing.assert_array_equal(judge(people[590:])[1], inlier[590:])
    assert (probability[512:] > 0.5).any()


def test_every_judge_needs_both_outcomes() -> None:
    Z, _ = coin(40)
    with pytest.raises(UserError, match="0 of the 31 rows for a judge are favourable"):
        CrossFittedJudge().fit(Z, np.arange(40) == 0)


@pytest.mark.parametrize(("favourable", "balanced"), [(9, True), (10, False), (91, True)])
def test_only_a_rare_outcome_is_weighed_up(
    monkeypatch: pytest.MonkeyPatch, favourable: int, balanced: bool
) -> None:
    seen = []

    class Settings(Recorder):
        def __init__(self, *_: object, **settings: object) -> None:
            super().__init__()
            seen.append(settings)

    monkeypatch.setattr("genrecourse.trust.judge.Judge", Settings)
    CrossFittedJudge().fit(np.random.default_rng(0).random((100, 1)), np.arange(100) < favourable)
    assert seen == [{"balanced": balanced, "min_leaf": 5, "calibrated": False, "n_trees": 100}] * 5


def test_trust_grows_with_the_probability_and_is_even_just_below_one_half() -> None:
    probability = np.array([0.0, 0.37, 0.45, 0.53, 1.0])
    by_hand = [1 / (1 + np.exp(0.45 / 0.08)), 1 / (1 + np.e), 0.5, np.e / (1 + np.e)]
    np.testing.assert_allclose(trust(probability)[:4], by_hand)
    assert trust(probability)[4] > 0.99
