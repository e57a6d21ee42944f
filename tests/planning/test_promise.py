"""A promise is kept where the truth is known, and not made where nothing supports it."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

import genrecourse
from genrecourse.advice.recheck import recheck
from genrecourse.data.datasets import load_dataset
from genrecourse.errors import UserError
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.model.classifier import Classifier
from genrecourse.planning import promise as promise_module
from genrecourse.planning.binomial import Share, at_least, at_most
from genrecourse.planning.juries import jury_p_value, make_juries
from genrecourse.planning.promise import (
    BASES,
    JURIES,
    PromiseData,
    ThresholdTest,
    choose,
    effective_size,
    make_levels,
    plan_weights,
)
from genrecourse.planning.robustness import TRIES, imprecise
from genrecourse.rules.kinds import Rules
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import Array, TableEncoder
from genrecourse.table.schema import Schema
from genrecourse.trust.out_of_fold import OutOfFoldScore

# ---- exact binomial bounds -------------------------------------------------------------------


@pytest.mark.parametrize(("k", "n"), [(0, 5), (3, 5), (5, 5), (31, 40)])
def test_bounds_are_where_the_tail_is_delta(k: int, n: int) -> None:
    low, high = at_least(k, n, 0.07), at_most(k, n, 0.07)
    assert low == 0 if k == 0 else binom.sf(k - 1, n, low) == pytest.approx(0.07)
    assert high == 1 if k == n else binom.cdf(k, n, high) == pytest.approx(0.07)
    share = Share(k, n)
    assert share.low <= share.estimate == k / n <= share.high


def test_a_bound_is_wrong_no_more_often_than_delta() -> None:
    n, k = 30, np.arange(31)
    bound = np.array([at_least(int(each), n, 0.1) for each in k])
    for p in np.linspace(0.01, 0.99, 99):
        assert binom.pmf(k, n, p)[bound > p].sum() <= 0.1


# ---- juries ----------------------------------------------------------------------------------


def by_enumeration(favourable: np.ndarray, share: Array, g: int, alpha: float) -> float:
    """The largest p-value of any set of juries that weighs alpha."""
    found = [0.0]
    for m in range(1, len(share) + 1):
        for some in map(list, combinations(range(len(share)), m)):
            if share[some].sum() >= alpha:
                heads = favourable[some].sum()
                found.append(binom.sf(heads - 1, m * g, 0.5) if heads > m * g / 2 else 1.0)
    return max(found)


@pytest.mark.parametrize("seed", range(8))
def test_the_p_value_covers_every_set_of_juries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    share, favourable = rng.dirichlet(np.full(8, 2.0)), rng.binomial(7, 0.8, 8)
    for alpha in (0.1, 0.3, 0.6):
        exact = by_enumeration(favourable, share, 7, alpha)
        assert exact - 1e-12 <= jury_p_value(favourable, share, 7, alpha) <= 1
        equal = np.full(8, 1 / 8)  # where all weigh the same, nothing is lost
        exact = by_enumeration(favourable, equal, 7, alpha)
        assert jury_p_value(favourable, equal, 7, alpha) == pytest.approx(exact)


def test_one_jury_is_a_sign_test_and_none_says_nothing() -> None:
    assert jury_p_value(np.array([14]), np.ones(1), 15, 0.2) == pytest.approx(16 / 2**15)
    assert jury_p_value(np.zeros(0), np.zeros(0), 15, 0.2) == 1


def test_bad_juries_are_overlooked_no_more_often_than_delta() -> None:
    rng, passed, safe = np.random.default_rng(0), 0, 0
    share = np.sort(rng.dirichlet(np.full(40, 5.0)))
    bad = np.zeros(40, dtype=bool)
    bad[: int(np.searchsorted(np.cumsum(share), 0.2)) + 1] = True  # at least a fifth of the weight
    for _ in range(300):
        favourable = rng.binomial(15, np.where(bad, 0.5, 0.95))
        passed += jury_p_value(favourable, share, 15, 0.2) <= 0.1
        safe += jury_p_value(rng.binomial(15, 0.9, 40), share, 15, 0.2) <= 0.1
    assert passed <= 0.1 * 300 + 3 * np.sqrt(0.09 * 300)
    assert safe >= 270  # it is not that it never passes


def test_rows_of_unlike_probability_count_as_their_mean() -> None:
    """Hoeffding: a jury of sure and hopeless people passes no more often than one of coins."""
    rng, probability = np.random.default_rng(1), np.tile([0.95, 0.05], 23)[:45]
    passed = 0
    for _ in range(300):
        favourable = (rng.random((10, 45)) < probability).sum(axis=1)
        passed += jury_p_value(favourable, np.full(10, 0.1), 45, 0.3) <= 0.1
    assert passed <= 0.1 * 300 + 3 * np.sqrt(0.09 * 300)


def test_juries_share_no_row_and_are_of_one_kind() -> None:
    rng = np.random.default_rng(2)
    Z, weight = rng.random((203, 2)), rng.random(203)
    juries = make_juries(Z, weight, 10, rng)
    assert juries.shape == (20, 10)
    assert len(np.unique(juries)) == 200
    anyone = rng.permutation(200).reshape(20, 10)
    for values in (Z[:, 0], Z[:, 1], weight):
        assert values[juries].std(axis=1).mean() < 0.75 * values[anyone].std(axis=1).mean()
    assert make_juries(Z[:9], weight[:9], 10, rng).shape == (0, 10)
    same = make_juries(np.ones((40, 2)), np.ones(40), 10, rng)  # nothing to halve by
    assert len(np.unique(same)) == 40


# ---- weights ---------------------------------------------------------------------------------


def test_weighed_rows_look_like_plans() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(0, 1, (4000, 2))
    plans = rng.normal([0.7, 0], 1, (1500, 2))  # the ratio of densities is exp(0.7 x - 0.245)
    weight, clipped = plan_weights(rows, plans)
    assert np.average(rows, axis=0, weights=weight) == pytest.approx([0.7, 0.0], abs=0.12)
    slope = np.polyfit(rows[:, 0], np.log(weight), 1)[0]
    assert slope == pytest.approx(0.7, abs=0.12)
    assert 0 < clipped < 0.05


def test_the_effective_size_is_kishs() -> None:
    assert effective_size(np.ones(9)) == pytest.approx(9)
    assert effective_size(np.array([3.0, 1.0])) == pytest.approx(16 / 10)


# ---- thresholds in order ---------------------------------------------------------------------


def level(
    threshold: float, favourable: int, drawn: int = 1000, served: float = 0.5
) -> ThresholdTest:
    """What single outcomes say alone: there are no juries."""
    none = {g: (np.zeros(0, dtype=int), np.zeros(0)) for g in JURIES}
    return ThresholdTest(threshold, served, 400, 5000, 900.0, 0.0, drawn, favourable, none)


def test_thresholds_are_tested_in_order_until_one_fails() -> None:
    fine, poor, tiny = level(0.8, 990), level(0.7, 900), level(0.9, 10, drawn=10)
    # 990 of 1000: a share of outcomes of at least 0.977, hence of decisions of at least 0.955
    assert choose([fine, level(0.6, 990)], 0.9, 0.1).threshold == 0.6
    assert choose([fine, poor, level(0.6, 990)], 0.9, 0.1).threshold == 0.8
    assert choose([poor, fine], 0.9, 0.1).threshold is None
    assert choose([tiny, fine], 0.9, 0.1).threshold == 0.8  # no outcome could make it pass: skipped
    made = choose([fine], 0.9, 0.1)
    assert made.holds
    assert (made.basis, made.jury, made.served, made.ess) == ("outcomes", 1, 0.5, 900.0)
    none = choose([], 0.9, 0.1)
    assert not none.holds
    assert none.basis == ""


def test_a_second_sequence_begins_where_enough_are_served() -> None:
    poor, fine = level(0.8, 900, served=0.3), level(0.7, 990, served=0.85)
    assert choose([poor, fine], 0.9, 0.1).threshold == 0.7
    assert choose([poor, fine, level(0.6, 900, served=1.0)], 0.9, 0.1).threshold == 0.7
    assert choose([fine, poor, fine], 0.9, 0.1).threshold == 0.7  # one sequence, the same for both


@pytest.mark.parametrize(("served", "sequences"), [((0.3, 0.9), 2), ((0.9, 1.0), 1)])
def test_the_two_sequences_share_the_error(served: tuple[float, float], sequences: int) -> None:
    levels = [level(0.8, 950, served=served[0]), level(0.7, 950, served=served[1])]
    most = 2 * at_least(950, 1000, 0.1 * BASES[1] / sequences) - 1
    assert choose(levels, most - 1e-6, 0.1).threshold == 0.7
    assert not choose(levels, most + 1e-6, 0.1).holds


def test_the_bases_share_delta() -> None:
    assert sum(BASES.values()) == pytest.approx(1)


def test_an_outcome_share_p_promises_2p_minus_1() -> None:
    """With no more than outcomes, half of those who fail may have been coins."""
    found = level(0.5, 950)
    least = at_least(950, 1000, 0.1 * BASES[1])  # each basis has its part of delta
    assert choose([found], 2 * least - 1 - 1e-6, 0.1).holds
    assert not choose([found], 2 * least - 1 + 1e-6, 0.1).holds


def test_no_more_is_promised_than_so_many_plans_can_tell() -> None:
    unanimous = {g: (np.full(900, g), np.full(900, 1 / 900)) for g in JURIES}
    perfect = ThresholdTest(0.5, 1.0, 100, 90_000, 9e4, 0.0, 90_000, 90_000, unanimous)
    most = 1 - at_most(0, 100, 0.1 * BASES[45])  # an event never seen in 100 tries
    assert choose([perfect], most - 1e-6, 0.1).holds
    assert not choose([perfect], most + 1e-6, 0.1).holds


def test_the_finest_basis_that_serves_enough_is_taken() -> None:
    unanimous = {g: (np.full(90, g), np.full(90, 1 / 90)) for g in JURIES}
    few = ThresholdTest(0.8, 0.3, 400, 5000, 900.0, 0.0, 1000, 1000, unanimous)
    many = ThresholdTest(0.6, 0.9, 400, 5000, 900.0, 0.0, 1000, 700, unanimous)
    assert choose([few, many], 0.9, 0.1).jury == JURIES[0]  # outcomes alone serve 0.3 only
    assert choose([few], 0.9, 0.1).jury == 1  # nobody serves more


# ---- where the truth is known ----------------------------------------------------------------


def population(
    n: int, rng: np.random.Generator, steep: float, center: float
) -> tuple[Array, Array]:
    """Rows in the unit square, and the probability of the favourable outcome of each."""
    Z = rng.beta(1 + center, 2 - center, (n, 2))
    return Z, expit(steep * (Z.sum(axis=1) - 1))


def test_promises_are_kept_in_repetition() -> None:
    broken = made_any = 0
    for repetition in range(40):
        rng = np.random.default_rng([4, repetition])
        Z, probability = population(1200, rng, 4.0, 0.5)
        plans, truth = population(200, rng, 4.0, 0.8)  # elsewhere, and some beyond the edge
        wobble = 0.1 * np.sin(9 * Z[:, 0]), 0.1 * np.sin(9 * plans[:, 0])
        score, score_plans = probability + wobble[0], truth + wobble[1]
        levels = make_levels(
            Z, rng.random(1200) < probability, score, plans, score_plans, 200, repetition
        )
        made = choose(levels, 0.9, 0.1)
        if made.threshold is not None:
            made_any += 1
            shown = score_plans >= made.threshold
            assert shown.mean() == pytest.approx(made.served)
            broken += (truth[shown] > 0.5).mean() < 0.9
    assert made_any >= 20
    assert broken <= 4 + 3 * np.sqrt(40 * 0.09)


def test_nothing_is_promised_of_coins() -> None:
    for repetition in range(10):
        rng = np.random.default_rng([5, repetition])
        Z, plans = rng.random((900, 3)), rng.random((150, 3))
        score, score_plans = rng.random(900), rng.random(150)
        levels = make_levels(Z, rng.random(900) < 0.5, score, plans, score_plans, 150, 0)
        assert len(levels) > 3
        assert not choose(levels, 0.6, 0.1).holds


def test_too_few_plans_promise_nothing() -> None:
    rng = np.random.default_rng(6)
    Z = rng.random((300, 2))
    few = promise_module.LEAST - 1
    assert make_levels(Z, Z[:, 0] > 0.2, Z[:, 0], Z[:few], Z[:few, 0], few, 0) == []


def test_outcomes_are_drawn_from_rows_like_the_plans() -> None:
    """Every row reaches the threshold exactly; three in ten outcomes are good, all near plans."""
    rng = np.random.default_rng(7)
    Z, plans = rng.random((3000, 1)), rng.uniform(0.8, 1.0, (100, 1))
    favourable = Z[:, 0] > 0.7
    (test,) = make_levels(Z, favourable, np.ones(3000), plans, np.ones(100), 125, seed=0)
    assert (test.threshold, test.rows, test.plans, test.served) == (1.0, 3000, 100, 0.8)
    assert favourable.mean() < 0.35
    assert test.favourable / test.drawn > 0.6
    assert test.drawn < test.rows


# ---- a score that has not seen the outcome ---------------------------------------------------


def numbers_table(n: int, seed: int) -> tuple[pd.DataFrame, Array]:
    """Two numbers, and the probability of the favourable outcome."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.random(n).round(2), "b": rng.random(n).round(2)})
    return X, expit(9 * (X["a"] + X["b"] - 1).to_numpy())


def encoded(X: pd.DataFrame) -> tuple[Array, Cost]:
    encoder = TableEncoder(Schema.infer(X)).fit(X)
    return encoder.encode(X), Cost(encoder)


def test_a_score_does_not_depend_on_the_rows_own_outcome() -> None:
    X, probability = numbers_table(160, 0)
    X = pd.concat([X, X.iloc[[7]]], ignore_index=True)  # a copy of row 7
    favourable = np.random.default_rng(0).random(161) < np.append(probability, probability[7])
    Z, cost = encoded(X)
    score = OutOfFoldScore(cost).fit(Z, favourable)
    favourable[[7, 160]] = ~favourable[[7, 160]]
    again = OutOfFoldScore(cost).fit(Z, favourable)
    assert again.of_training()[7] == score.of_training()[7] == score(Z[[7]])[0]
    assert (again.of_training() != score.of_training()).any()  # the others' scores did see it
    assert (score(Z) == score.of_training()).all()  # a copy is asked about as the row itself
    near = Z[[7]] + 1e-4  # nor does that of a near copy
    assert again(near) == pytest.approx(score(near))
    loaded = OutOfFoldScore.from_arrays(score.arrays(), Z, cost, 0)
    assert loaded(Z) == pytest.approx(score(Z))


# ---- plans -----------------------------------------------------------------------------------


def h(X: pd.DataFrame) -> Array:
    """Knows of one number only, so that it accepts people whom the real decision would not."""
    return np.asarray(expit(6 * (X["a"].to_numpy(dtype=float) - 0.4)))


@pytest.fixture(scope="module")
def fitted() -> NearestNeighbour:
    X, probability = numbers_table(1200, 1)
    y = np.random.default_rng(1).random(1200) < probability
    return NearestNeighbour(h, Schema.infer(X)).fit(X, y)


def both_numbers(X: pd.DataFrame) -> Array:
    """Reads both numbers, so that plans have alternatives."""
    return ((X["a"] + X["b"]) / 2).to_numpy(dtype=float)


@pytest.fixture(scope="module")
def of_both() -> NearestNeighbour:
    X, probability = numbers_table(1200, 1)
    y = np.random.default_rng(1).random(1200) < probability
    return NearestNeighbour(both_numbers, Schema.infer(X)).fit(X, y)


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return numbers_table(150, 2)[0].set_axis([f"p{i}" for i in range(150)])


def test_plans_below_the_threshold_are_not_shown(
    fitted: NearestNeighbour, people: pd.DataFrame
) -> None:
    plain, made = fitted.plans(people), fitted.promise(0.8)
    promised = fitted.plans(people, promise=0.8)
    assert made.threshold is not None
    assert made.basis
    rejected = [plan for plan in plain if plan.status != "already-accepted"]
    kept = [plan for plan in promised if plan.status == "ok"]
    lost = [plan for plan in promised if plan.reason_code == "no-promise"]
    assert kept
    assert lost
    assert len(kept) + len(lost) == len(rejected)
    assert all(plan.promise == made and plan.row is None for plan in lost)
    # by hand: the score of each x_plus against the threshold
    assert fitted.planning_.outcomes is not None
    scores = fitted.planning_.outcomes.score(fitted.problem_.encoder.encode(plain.x_plus()))
    by_hand = {p.person for p, s in zip(plain.shown, scores, strict=True) if s >= made.threshold}
    assert by_hand == {plan.person for plan in kept}
    # and the truth, which nobody was told
    x_plus = promised.x_plus()
    truly = (x_plus["a"] + x_plus["b"] > 1).mean()
    everybody = plain.x_plus()
    assert truly >= 0.8
    assert truly > (everybody["a"] + everybody["b"] > 1).mean()
    assert "at least 80%" in kept[0].to_text()
    assert kept[0].to_dict()["promise"]["delta"] == 0.1
    assert "a promise was requested" in lost[0].reason


def test_a_plan_exactly_at_the_threshold_is_shown(fitted: NearestNeighbour) -> None:
    """The threshold is the score of one of the plans that it was tested on."""
    ground, encoder = fitted.planning_.outcomes, fitted.problem_.encoder
    assert ground is not None
    who, made = encoder.table(ground.people(), fitted.problem_.like), fitted.promise(0.8)
    scores = ground.score(encoder.encode(fitted.plans(who).x_plus()))
    assert (scores == made.threshold).any()
    assert (scores < made.threshold).any()
    assert len(fitted.plans(who, promise=0.8).shown) == (scores >= made.threshold).sum()


def test_alternatives_reach_the_threshold_too(
    of_both: NearestNeighbour, people: pd.DataFrame
) -> None:
    # fragile plans have no alternatives
    one, several = (of_both.plans(people[:60], n, promise=0.8, min_robust=0.0) for n in (1, 3))
    assert [p.person for p in one if p.every] == [p.person for p in several if p.every]
    made = next(plan.promise for plan in several if plan.every)  # of three plans each
    assert made is not None
    assert of_both.planning_.outcomes is not None
    assert made.threshold is not None
    scores = of_both.planning_.outcomes.score(of_both.problem_.encoder.encode(several.x_plus()))
    assert len(scores) > len(one.shown)
    assert (scores >= made.threshold).all()
    # the first plan is what was tested: of the others nothing is promised
    assert all(plan.promise == made for plan in several if plan.every)
    others = [each for plan in several for each in plan.alternatives]
    assert others
    assert all(each.promise is None for each in others)
    assert all("likelier than not" not in " ".join(each.prospects) for each in others)
    every = of_both.plans(people[:60], 3).shown
    assert len(every) > len(several.shown)


def test_a_promise_is_tested_on_the_plans_that_are_shown(
    fitted: NearestNeighbour, people: pd.DataFrame
) -> None:
    """Under the request's rules, and with what trying all changes has found."""
    assert fitted.planning_.outcomes is not None
    lock = {"lock": ["b"]}
    ground = fitted.planning_.outcomes
    who = fitted.problem_.encoder.table(ground.people(), fitted.problem_.like)
    locked, free = fitted.plans(who, rules=lock), fitted.plans(who)
    made = fitted.promise(0.8, rules=lock)
    for rules, shown in ((lock, locked), (None, free)):
        fitted.planning_.tests.clear()
        fitted.promise(0.8, rules=rules)
        (levels,) = fitted.planning_.tests.values()
        scores = ground.score(fitted.problem_.encoder.encode(shown.x_plus()))
        assert levels[-1].threshold == pytest.approx(scores.min())
        assert levels[-1].plans == len(scores)
    told = fitted.plans(people[:40], rules=lock, promise=0.8)
    assert {plan.promise for plan in told if plan.status != "already-accepted"} == {made}
    # nothing but `a` moves the model: under this lock there is no plan to test
    assert not fitted.promise(0.8, rules={"lock": ["a"]}).holds


def test_nothing_is_promised_under_rules_of_single_people(
    fitted: NearestNeighbour, people: pd.DataFrame
) -> None:
    own = {people.index[3]: Rules(lock=("b",))}
    with pytest.raises(UserError, match=r"1 people have rules of their own \(first: 'p3'\)"):
        fitted.plans(people, rules=own, promise=0.8)


def test_what_no_data_support_is_not_promised(
    fitted: NearestNeighbour, people: pd.DataFrame
) -> None:
    assert not fitted.promise(0.9999).holds
    codes = {p.reason_code for p in fitted.plans(people, promise=0.9999)}
    assert codes == {"cannot-promise", ""}


def test_a_promise_outlives_a_model_file(
    fitted: NearestNeighbour, people: pd.DataFrame, tmp_path: Path
) -> None:
    made = fitted.promise(0.8)
    fitted.save(tmp_path / "known")
    fitted.planning_.tests, known = {}, fitted.planning_.tests
    fitted.save(tmp_path / "unknown")
    fitted.planning_.tests = known
    for name in ("known", "unknown"):
        loaded = genrecourse.load(tmp_path / name, classifier=h)
        assert (len(loaded.planning_.tests) > 0) == (name == "known")
        assert loaded.promise(0.8) == made
    told = loaded.plans(people[:20], promise=0.8).to_json()
    assert told == fitted.plans(people[:20], promise=0.8).to_json()


@pytest.mark.parametrize("share", [0, 1, 1.5, "much", True])
def test_a_promise_is_a_share(fitted: NearestNeighbour, people: pd.DataFrame, share: Any) -> None:
    with pytest.raises(UserError, match=r"promise is .* between 0 and 1"):
        fitted.plans(people, promise=share)
    with pytest.raises(UserError, match="delta"):
        fitted.plans(people, promise=0.8, delta=share)


def test_without_outcomes_there_is_nothing_to_promise(people: pd.DataFrame) -> None:
    X, _ = numbers_table(200, 3)
    method = NearestNeighbour(h, Schema.infer(X)).fit(X)
    assert any(plan.status == "ok" for plan in method.plans(people))
    with pytest.raises(UserError, match="needs outcomes y"):
        method.plans(people, promise=0.8)


def test_few_distinct_rows_promise_nothing() -> None:
    """Two kinds of people, an outcome each: with one held out nothing is left to learn from."""
    X = pd.DataFrame({"a": np.repeat([0.0, 1.0], 100), "b": np.zeros(200)})
    X.loc[0, "b"] = 1.0
    method = NearestNeighbour(h, Schema.infer(X)).fit(X, X["a"] > 0.5)
    assert not method.promise(0.8).holds
    codes = {plan.reason_code for plan in method.plans(X[:5], promise=0.8)}
    assert codes == {"cannot-promise"}


def test_a_ground_needs_both_outcomes() -> None:
    X, _ = numbers_table(200, 3)
    Z, cost = encoded(X)
    nobody = np.zeros(200, dtype=bool)
    assert not PromiseData.some(Z, nobody, nobody, cost, 0).is_enough


def test_on_the_loan_table_the_truth_agrees() -> None:
    """h has learned from outcomes; promised are decisions, which only the mechanism knows."""
    data = load_dataset("loan", seed=0)
    assert data.truth is not None
    X, y = data.X_train[:2500], data.y_train[:2500].to_numpy()
    numbers = ["income", "savings", "debt", "amount", "duration", "job_years"]

    def read(table: pd.DataFrame) -> Array:
        return np.log1p(table[numbers].to_numpy(dtype=float).clip(min=0))

    model = LogisticRegression(max_iter=1000).fit(read(X), y)
    method = NearestNeighbour(
        lambda table: model.predict_proba(read(table))[:, 1], data.schema, gamma=0.6
    ).fit(X, y)
    plans = method.plans(data.X_test[:300], promise=0.8)
    asked = [plan for plan in plans if plan.status != "already-accepted"]
    shown = plans.x_plus()
    assert len(shown) >= 0.5 * len(asked)
    assert (data.truth(shown) > 0.5).mean() >= 0.8


# ---- what a plan bears -----------------------------------------------------------------------


def test_noise_is_survived_as_often_as_the_distance_to_the_edge_says() -> None:
    Z = np.array([[0.9, 0.3], [0.5, 0.3], [0.52, 0.7]])
    shares = imprecise(lambda rows: rows[:, 0], Z, np.array([0]), seed=0)  # h: the first number
    assert [s.n for s in shares] == [TRIES] * 3
    assert shares[0].k == TRIES
    assert shares[1].low < 0.5 < shares[1].high
    assert shares[2].low < 0.841 < shares[2].high  # one standard deviation from the edge
    alone = imprecise(lambda rows: rows[:, 0], Z[[2]], np.array([0]), seed=0)
    assert alone == [shares[2]]  # by the row's content, whoever stands beside it
    still = imprecise(lambda rows: rows[:, 0], Z[[2]], np.array([1]), seed=0)
    assert still == [Share(TRIES, TRIES)]  # h does not look at what moves


def test_every_plan_tells_what_it_bears(of_both: NearestNeighbour, people: pd.DataFrame) -> None:
    plans = of_both.plans(people[:40], n=2, min_robust=0.0)
    assert len(plans.shown) > 40 - sum(p.status == "already-accepted" for p in plans)
    for each in plans.shown:
        assert each.imprecise is not None
        assert each.imprecise.n == TRIES
        assert each.retrained is None  # no verifier, no copies of h
    text = plans.shown[0].to_text()
    assert "tries with every number a little off" in text


# ---- another model ---------------------------------------------------------------------------


def test_recheck_tells_which_plans_another_model_accepts(
    of_both: NearestNeighbour, people: pd.DataFrame
) -> None:
    plans = of_both.plans(people[:40], n=2, min_robust=0.0)
    assert recheck(plans, of_both.classifier_)["holds"].all()

    def other(X: pd.DataFrame) -> Array:
        return X["b"].to_numpy(dtype=float)

    found = recheck(plans, Classifier(other, cutoff=0.6))
    x_plus = plans.x_plus()
    assert list(found.columns) == ["person", "plan", "holds", "score", "cutoff"]
    assert found["score"].tolist() == pytest.approx(x_plus["b"].tolist())
    assert found["holds"].tolist() == (x_plus["b"] > 0.6).tolist()
    assert 0 < found["holds"].sum() < len(found)
    assert found["person"].tolist() == x_plus.index.tolist()
    several = [plan for plan in plans if plan.alternatives]
    assert found["plan"][found["person"] == several[0].person].tolist() == [1, 2]
    # x_plus is x with the changes: built again from the words
    for plan, (_, row) in zip(plans.shown, x_plus.iterrows(), strict=True):
        whole = people.loc[plan.person].to_dict() | {c.feature.name: c.after for c in plan.changes}
        assert row.to_dict() == whole


def test_recheck_of_nobody_and_by_nobody(fitted: NearestNeighbour, people: pd.DataFrame) -> None:
    accepted = people[people["a"] > 0.6]
    assert len(recheck(fitted.plans(accepted), fitted.classifier_)) == 0
    with pytest.raises(UserError, match="not fitted"):
        recheck(fitted.plans(people[:5]), Classifier(None))
