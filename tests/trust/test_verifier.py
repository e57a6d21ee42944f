"""Trees as arrays predict as scikit-learn does; the verifier separates valid from invalid rows
and inliers from outliers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from genrecourse import UserError
from genrecourse.trust.judge import TRUST_AT, TRUST_SCALE
from genrecourse.trust.trees import Trees
from genrecourse.trust.verifier import FEW, SEEN, Thresholds, Verifier

RNG = np.random.default_rng(0)
Z = RNG.random((900, 4))
Y = Z[:, 0] + Z[:, 1] > 1.0
ASKED = RNG.random((500, 4))
HALF = np.full(500, 0.5)  # h does not know
ALL = np.arange(4)  # every column is a number


@pytest.fixture(scope="module")
def forest() -> Any:
    return RandomForestClassifier(20, min_samples_leaf=3, random_state=0).fit(Z, Y)


@pytest.fixture(scope="module")
def verifier() -> Verifier:
    return Verifier(random_state=0).fit(Z, Y, np.where(Y, 0.9, 0.1), ALL)


# ---- trees ---------------------------------------------------------------------------------------


def test_trees_answer_as_the_forest_does(forest: Any) -> None:
    trees = Trees.of(forest.estimators_, column=1)
    rows = np.concatenate([ASKED, Z])  # the training rows sit next to the thresholds
    np.testing.assert_allclose(trees(rows), forest.predict_proba(rows)[:, 1], atol=1e-12)
    assert trees(rows[:0]).shape == (0,)


def test_trees_answer_as_boosting_does() -> None:
    boosted = GradientBoostingClassifier(n_estimators=15, random_state=0).fit(Z, Y)
    trees = Trees.of(list(boosted.estimators_[:, 0]), column=0)
    raw = logit(Y.mean()) + 0.1 * 15 * trees(ASKED)
    np.testing.assert_allclose(expit(raw), boosted.predict_proba(ASKED)[:, 1], atol=1e-12)


def test_a_tree_that_is_one_leaf() -> None:
    stump = RandomForestClassifier(3, min_samples_leaf=len(Z), random_state=0).fit(Z, Y)
    trees = Trees.of(stump.estimators_, column=1)
    assert trees.depth == 0
    np.testing.assert_allclose(trees(ASKED), stump.predict_proba(ASKED)[:, 1], atol=1e-12)


def test_trees_come_back_from_arrays(forest: Any) -> None:
    """Walked by numpy they answer to the last bit as scikit-learn's own walk did."""
    trees = Trees.of(forest.estimators_, column=1)
    again = Trees.from_arrays(trees.arrays(), n_columns=4)
    rows = np.concatenate([ASKED, Z])
    assert (again(rows) == trees(rows)).all()
    assert again(rows[:0]).shape == (0,)
    boosted = GradientBoostingClassifier(n_estimators=15, random_state=0).fit(Z, Y)
    steps = Trees.of(list(boosted.estimators_[:, 0]), column=0)
    assert (Trees.from_arrays(steps.arrays(), n_columns=4)(rows) == steps(rows)).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [("left", -1), ("right", 10**6), ("root", -5), ("feature", 4), ("feature", -1), ("depth", -1)],
)
def test_trees_that_would_lead_astray_are_refused(forest: Any, name: str, value: int) -> None:
    arrays = Trees.of(forest.estimators_, column=1).arrays()
    arrays[name] = arrays[name].copy()
    arrays[name][0] = value
    with pytest.raises(UserError, match="decision trees in the model file are inconsistent"):
        Trees.from_arrays(arrays, n_columns=4)


def test_trees_of_unequal_parts_are_refused(forest: Any) -> None:
    arrays = Trees.of(forest.estimators_, column=1).arrays()
    with pytest.raises(UserError, match="decision trees in the model file are inconsistent"):
        Trees.from_arrays(arrays | {"threshold": arrays["threshold"][:-1]}, n_columns=4)


# ---- the verifier --------------------------------------------------------------------------------


def test_it_tells_valid_from_invalid(verifier: Verifier) -> None:
    clear = np.abs(ASKED[:, 0] + ASKED[:, 1] - 1.0) > 0.15
    truth = (ASKED[:, 0] + ASKED[:, 1] > 1.0)[clear]
    said = verifier.valid(ASKED, HALF)[clear]
    assert said.min() >= 0
    assert said.max() <= 1
    assert said[truth].mean() > 0.9
    assert said[~truth].mean() < 0.1


def test_it_tells_usual_from_odd(verifier: Verifier) -> None:
    usual = np.array([[0.8, 0.8, 0.5, 0.5]])
    odd = np.array([[3.0, 3.0, 3.0, 3.0]])  # valid by any tree, and like nobody
    rejected = np.array([[0.1, 0.1, 0.5, 0.5]])  # like people who were not accepted
    assert verifier.plausible(usual) > 0.6
    assert verifier.plausible(odd) < 0.1
    assert verifier.plausible(rejected) < verifier.plausible(usual)
    assert verifier.valid(odd, np.array([0.9])) > 0.9
    assert verifier.valid(odd, np.array([0.1])) < verifier.valid(odd, np.array([0.9]))


def test_each_argument_of_fit_counts() -> None:
    confidence = np.where(Y, 0.9, 0.1)
    first = Verifier(0).fit(Z, Y, confidence, ALL)
    flipped = Verifier(0).fit(Z, ~Y, confidence, ALL)
    assert np.abs(first.valid(ASKED, HALF) - flipped.valid(ASKED, HALF)).mean() > 0.5
    stricter = Verifier(0).fit(Z, Y, np.where(Z[:, 0] > 0.7, 0.9, 0.1), ALL)
    assert len(stricter.like_[0]) < len(first.like_[0])
    assert (
        Verifier(1).fit(Z, Y, confidence, ALL).probability(ASKED, HALF)
        != first.probability(ASKED, HALF)
    ).any()
    assert (
        Verifier(0).fit(Z, Y, confidence, ALL).probability(ASKED, HALF)
        == first.probability(ASKED, HALF)
    ).all()


def test_a_rare_outcome_is_weighed_up() -> None:
    rare = (Z[:, 0] + Z[:, 1] > 1.0) & (RNG.random(len(Z)) < 0.15)  # of one in seven, where valid
    verifier = Verifier(0).fit(Z, rare, np.where(Y, 0.9, 0.1), ALL)
    inside = (ASKED[:, 0] + ASKED[:, 1]) > 1.3
    assert verifier.probability(ASKED[inside], HALF[inside]).mean() > 0.4


def test_it_comes_back_from_arrays(verifier: Verifier) -> None:
    again = Verifier.from_arrays(verifier.arrays(), n_columns=4)
    assert (again.valid(ASKED, HALF) == verifier.valid(ASKED, HALF)).all()
    assert (again.plausible(ASKED) == verifier.plausible(ASKED)).all()


def test_nobody_to_be_like() -> None:
    """One accepted row is no neighbourhood: then nothing is called odd."""
    y = np.zeros(50, dtype=bool)
    y[0] = True
    verifier = Verifier(0).fit(Z[:50], y, np.where(y, 0.9, 0.1), ALL)
    assert len(verifier.like_[0]) == 1
    assert verifier.valid(ASKED, HALF).shape == verifier.plausible(ASKED).shape == (500,)


def test_what_was_seen_counts(verifier: Verifier) -> None:
    """A row that was accepted with a favourable outcome is likelier than its neighbours say."""
    rows = Z[Y][:50]
    aside = rows + 1e-7
    gain = verifier.probability(rows, HALF[:50]) - verifier.probability(aside, HALF[:50])
    assert np.median(gain) == pytest.approx(SEEN)
    unseen = Z[~Y][:50]
    np.testing.assert_allclose(
        verifier.probability(unseen, HALF[:50]),
        verifier.probability(unseen + 1e-7, HALF[:50]),
        atol=0.02,
    )


def test_the_measures_stop_at_the_first_bar_that_is_missed(verifier: Verifier) -> None:
    whole = verifier.measures(ASKED, HALF)
    assert whole.shape == (500, 5)
    for i in range(5):
        floors = np.full((500, 5), -np.inf)
        floors[:, i] = np.median(whole[:, i])
        found = verifier.reach(ASKED, HALF, floors)
        below = whole[:, i] < floors[:, i]
        assert np.isnan(found[below, i:]).all()
        assert (found[below, :i] == whole[below, :i]).all()
        assert (found[~below] == whole[~below]).all()


@pytest.mark.parametrize("n", [1, FEW, FEW + 1])
def test_few_rows_have_the_measures_of_many(verifier: Verifier, n: int) -> None:
    """For few rows the trees are asked once for two measures."""
    rows = np.random.default_rng(5).uniform(size=(n, Z.shape[1]))
    confidence = rows[:, 0]
    found = verifier.measures(rows, confidence)
    np.testing.assert_array_equal(found[:, 2], verifier.probability(rows, confidence))
    np.testing.assert_array_equal(found[:, 3], verifier.steady(rows))


def test_worth_is_written_out() -> None:
    row = np.array([[0.9, 0.8, 0.7, 0.6, 0.3]])
    expected = expit((0.7 - TRUST_AT) / TRUST_SCALE) + expit((0.3 + 1.0) / 0.75) + 0.25 * 0.6
    assert Verifier().worth(row, safety=0.25)[0] == pytest.approx(expected)


def test_bars_rise_with_safety() -> None:
    bars = [Thresholds.at(safety).array() for safety in (0.0, 0.5, 1.0)]
    assert (bars[0] <= bars[1]).all()
    assert (bars[1] <= bars[2]).all()
    np.testing.assert_allclose(bars[1], [0.5, 0.6, 0.7, 0.85, 0.2])


# ---- outcomes against decisions ------------------------------------------------------------------

# Four places of 60 people each: h accepts in the first two, the outcome is favourable in the first
# and the third, and for one in ten in the second.
BOTH, ONLY_H, ONLY_OUTCOME, NEITHER = range(4)
CORNERS = np.array([[0.9, 0.9], [0.9, 0.1], [0.1, 0.9], [0.1, 0.1]])
PLACE = np.repeat(np.arange(4), 60)
PEOPLE = CORNERS[PLACE] + np.random.default_rng(1).normal(0, 0.03, (240, 2))
FAVOURABLE = np.isin(PLACE, [BOTH, ONLY_OUTCOME]) | ((PLACE == ONLY_H) & (np.arange(240) % 10 == 0))
DECIDED = np.where(np.isin(PLACE, [BOTH, ONLY_H]), 0.9, 0.1)


@pytest.fixture(scope="module")
def torn() -> Verifier:
    """Where outcomes and h's decisions disagree."""
    return Verifier(0).fit(PEOPLE, FAVOURABLE, DECIDED, np.array([0]))


def test_every_model_learns_the_outcomes_and_not_what_h_decided(torn: Verifier) -> None:
    good = [True, False, True, False]
    boosted = expit(torn.prior_ + torn.step_ * torn.boosted_(CORNERS))
    for likely in (torn.forest_(CORNERS), boosted, torn.retrained_(CORNERS).mean(axis=0)):
        assert (likely > 0.5).tolist() == good
        assert np.abs(likely - good).max() < 0.35


def test_who_was_accepted_and_who_would_be_are_two_crowds(torn: Verifier) -> None:
    """x_plus has to look like both. In one place h accepted some lucky people, and few will be;
    in the other the outcome was favourable, and h accepted nobody."""
    assert (torn.inlier(CORNERS) > 0).tolist() == [True, False, False, False]
    seen = FAVOURABLE & (DECIDED > 0.5)
    assert sorted(map(tuple, torn.like_[0])) == sorted(map(tuple, PEOPLE[seen]))


def test_only_a_favourable_outcome_is_a_thing_seen(torn: Verifier) -> None:
    rows = PEOPLE[PLACE == ONLY_H]  # h accepted all of them
    half = np.full(len(rows), 0.5)
    gain = torn.probability(rows, half) - torn.probability(rows + 1e-7, half)
    np.testing.assert_allclose(gain, SEEN * FAVOURABLE[PLACE == ONLY_H], atol=1e-6)


def test_noise_prefers_no_direction_and_moves_only_numbers(torn: Verifier) -> None:
    assert (torn.noise_[:, 0] != 0).all()
    assert torn.noise_.sum(axis=0).tolist() == [0, 0]
    assert (torn.noise_[:, 1] == 0).all()


def test_the_least_sure_copy_counts(torn: Verifier) -> None:
    copies = torn.retrained_(PEOPLE)
    np.testing.assert_array_equal(torn.robust(PEOPLE), np.sort(copies, axis=0)[0])
