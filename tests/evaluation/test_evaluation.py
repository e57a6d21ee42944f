"""The protocol's case, its witnesses, and the tidy rows of a run."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse.data.datasets import load_dataset
from genrecourse.errors import UserError
from genrecourse.evaluation.evaluate import (
    BASE_METRICS,
    Case,
    base_rates,
    evaluate,
    make_case,
    measure,
    summarise,
    tidy,
    witnesses,
)
from genrecourse.evaluation.gold import Witnesses
from genrecourse.evaluation.metrics import METRICS
from genrecourse.methods import METHODS
from genrecourse.methods.genre import GenRe
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.model.classifier import MLPConfig, fit_mlp
from genrecourse.trust import judge as judges
from genrecourse.trust.judge import CrossFittedJudge, Judge, fit_lof
from tests.support.toys import small_forest

evaluation = sys.modules["genrecourse.evaluation.evaluate"]  # `evaluation.evaluate` is the function
QUICK = MLPConfig(hidden=(4, 4), lr=0.05, epochs=4, balanced=False)


@pytest.fixture(scope="module", autouse=True)
def _small_forests() -> Iterator[None]:
    """Of ten trees: what is tested here is who is asked what, not how well they know."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judges, "RandomForestClassifier", small_forest(n_trees=10))
        yield


@pytest.fixture(scope="module")
def case() -> Case:
    return make_case("moons", 3, rows=40, h_config=QUICK)


@pytest.fixture(scope="module")
def called(case: Case) -> Witnesses:
    return witnesses(case)


@pytest.fixture(scope="module")
def nearest(case: Case) -> NearestNeighbour:
    return NearestNeighbour(case.h, case.schema).fit(case.X, case.y)


@pytest.fixture(scope="module")
def X_plus(case: Case, nearest: NearestNeighbour) -> pd.DataFrame:  # noqa: N802 - as elsewhere
    return nearest.recourse(case.people)


# ---- the case ------------------------------------------------------------------------------------


def test_a_case_keeps_what_its_witnesses_need(case: Case) -> None:
    assert case.h_config == QUICK
    assert case.judge_rows.shape == (1500, 2)
    np.testing.assert_array_equal(case.judge_rows[:1000], case.encoder.encode(case.X))
    again = Judge(case.seed).fit(case.judge_rows, case.judge_labels)
    Z = case.encoder.encode(case.people)
    np.testing.assert_array_equal(again.probability(Z), case.judge.probability(Z))
    assert (case.judge_labels[:1000] != case.y).any()  # real outcomes, not the drawn ones


def test_h_learns_from_the_drawn_outcomes(case: Case) -> None:
    h = fit_mlp(case.X, case.y, case.schema, config=QUICK, seed=case.seed)
    np.testing.assert_array_equal(case.h.score(case.X), h.score(case.X))


# ---- witnesses -----------------------------------------------------------------------------------


def test_h_is_retrained_three_ways(
    case: Case, called: Witnesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[Any, ...]] = []

    def recorded(X: Any, y: Any, schema: Any, *, config: Any, seed: int) -> Any:
        made.append((X, y, config, seed))
        return fit_mlp(X, y, schema, config=config, seed=seed)

    monkeypatch.setattr(evaluation, "fit_mlp", recorded)
    again = dict(evaluation._retrained(case))
    assert list(again) == list(called.retrained) == ["seed", "bootstrap", "architecture"]
    seed, bootstrap, architecture = made
    assert len({item[3] for item in made} | {case.seed}) == 4
    for X, y, *_ in (seed, architecture):
        pd.testing.assert_frame_equal(X, case.X)
        np.testing.assert_array_equal(y, case.y)
    assert (seed[2], bootstrap[2]) == (QUICK, QUICK)
    assert architecture[2] == replace(QUICK, hidden=(32, 32))
    # as many rows, drawn with replacement, each with its own outcome
    assert len(bootstrap[0]) == len(case.X)
    rows = bootstrap[0].assign(y=bootstrap[1]).drop_duplicates()
    assert 0.6 * len(case.X) < len(rows) < 0.67 * len(case.X)
    assert len(rows.merge(case.X.assign(y=case.y))) == len(rows)
    # the same every time, and no two of them the same
    Z = case.encoder.encode(case.X)
    scores = [h.score(case.X) for h in (case.h, *again.values())]
    for name, score in zip(called.retrained, scores[1:], strict=True):
        np.testing.assert_array_equal(called.retrained[name](Z), score > 0.5)
    apart = [np.abs(a - b).max() for i, a in enumerate(scores) for b in scores[:i]]
    assert min(apart) > 0.01


def test_where_the_mechanism_is_known_validity_is_exact() -> None:
    case = make_case("loan", 0, rows=60, h_config=QUICK)
    truth = load_dataset("loan").truth
    assert truth is not None
    np.testing.assert_array_equal(measure(case, case.people)["val"], truth(case.people) > 0.5)
    # and the labels that h learned from are coins of that probability
    p = truth(case.X)
    assert abs((case.y - p).mean()) < 3 * np.sqrt((p * (1 - p)).mean() / len(p))


def test_another_architecture_is_another(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    same = replace(case, h_config=replace(QUICK, hidden=(32, 32), epochs=1))
    layers = dict(evaluation._retrained(same))["architecture"].model.layers
    assert layers[0].out_features == 64


def test_accepted_rows_are_there_once(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = []

    def recorded(Z: np.ndarray, k: int) -> Any:
        fitted.append((Z, k))
        return fit_lof(Z, k)

    monkeypatch.setattr(evaluation, "fit_lof", recorded)
    monkeypatch.setattr(evaluation, "_retrained", lambda case: [])
    monkeypatch.setattr(CrossFittedJudge, "fit", lambda self, Z, y: self)
    twice = replace(case, judge_rows=np.repeat(case.judge_rows, 2, axis=0))
    found = witnesses(twice)
    rows = case.judge_rows[case.judge.valid(case.judge_rows)]
    assert len(found.accepted.Z) == len(rows)  # moons has no copies of its own
    np.testing.assert_array_equal(found.accepted.Z, np.unique(rows, axis=0))
    ((Z, k),) = fitted
    np.testing.assert_array_equal(Z, found.accepted.Z)
    assert k == 20
    np.testing.assert_array_equal(found.training.Z, case.encoder.encode(case.X))
    np.testing.assert_array_equal(found.favourable, case.y == 1)


def test_the_out_of_fold_judge_is_the_gold_one_in_folds(called: Witnesses) -> None:
    judge = called.out_of_fold
    assert len(judge._judges) == 5
    assert all(one.balanced and one.calibrated and one.min_leaf == 1 for one in judge._judges)
    assert judge.copies_together


def test_out_of_fold_does_not_know_copies_by_heart() -> None:
    """Rows that come three times, with an outcome that nothing tells: half of them are guessed."""
    rng = np.random.default_rng(0)
    Z = np.repeat(rng.random((200, 4)), 3, axis=0)
    y = np.repeat(rng.permutation(np.arange(200) % 2), 3)
    right = {}
    for together in (False, True):
        judge = CrossFittedJudge(min_leaf=1, copies_together=together).fit(Z, y)
        right[together] = np.mean((judge(Z + 1e-7)[0] > 0.5) == y)
        assert sorted(np.bincount(judge._fold)) == [120] * 5 or not together
    assert right[False] > 0.9
    assert right[True] == pytest.approx(0.5, abs=4 * 0.5 / 200**0.5)


def test_a_copy_with_both_outcomes_has_one_fold() -> None:
    Z, y = np.repeat(np.arange(20.0), 5)[:, None], np.tile([1, 1, 1, 0, 0], 20)
    y[50:] = 1 - y[50:]
    judge = CrossFittedJudge(copies_together=True)
    fold = judge._folds(Z, y).reshape(20, 5)
    assert (fold == fold[:, :1]).all()
    for half in (fold[:10, 0], fold[10:, 0]):  # each fold has its share of both kinds
        assert np.bincount(half).tolist() == [2] * 5


def test_witnesses_can_be_sent_to_another_process(case: Case, called: Witnesses) -> None:
    Z = case.encoder.encode(case.people)
    sent = pickle.loads(pickle.dumps(called))
    for name in called.retrained:
        np.testing.assert_array_equal(sent.retrained[name](Z), called.retrained[name](Z))
    np.testing.assert_array_equal(sent.training.nearest(Z), called.training.nearest(Z))


# ---- measures ------------------------------------------------------------------------------------

ASKED = {
    "val_oof",
    "y_nn",
    "retrained_seed",
    "retrained_bootstrap",
    "retrained_architecture",
    "lof_20",
    "knn_distance",
    "copies",
    "nearest_row",
}


def test_measure_tells_what_it_can(case: Case, called: Witnesses, X_plus: pd.DataFrame) -> None:
    plain = measure(case, X_plus)
    assert set(METRICS) - set(plain) == ASKED | {"log_likelihood"}
    full = measure(case, X_plus, called)
    assert set(METRICS) - set(full) == {"log_likelihood"}
    assert list(full) == [name for name in METRICS if name in full]  # in their order
    for name, values in plain.items():
        assert values.shape == (len(case.people),)
        np.testing.assert_array_equal(values, full[name])
    with_density = measure(case, X_plus, called, pd.Series(-1.0, index=X_plus.index))
    assert set(with_density) == set(METRICS)
    assert (with_density["log_likelihood"] == -1).all()


def test_measure_says_what_the_parts_say(
    case: Case, called: Witnesses, X_plus: pd.DataFrame
) -> None:
    """Nearest neighbours among training rows that h accepts: much is known of them."""
    found, Z = measure(case, X_plus, called), case.encoder.encode(X_plus)
    np.testing.assert_array_equal(found["h_valid"], case.h.accepts(X_plus))
    np.testing.assert_array_equal(found["val"], case.judge.valid(Z))
    np.testing.assert_allclose(found["soft_val"], case.judge.probability(Z))
    assert (found["h_valid"] == 1).all()
    assert (found["success"] == 1).all()
    assert (found["copies"] == 1).all()
    assert (found["nearest_row"] == 0).all()
    assert found["distinct"].sum() == pytest.approx(len(X_plus.drop_duplicates()))
    assert (found["noise"].round(1) * 5 % 1 == 0).all()
    np.testing.assert_array_equal(found["val_oof"], called.out_of_fold(Z)[0] > 0.5)


def test_a_row_of_nan_counts_as_failed(case: Case, called: Witnesses, X_plus: pd.DataFrame) -> None:
    spoilt = X_plus.copy()
    spoilt.iloc[[0, 7]] = np.nan
    before, found = measure(case, X_plus, called), measure(case, spoilt, called)
    rows = tidy(found).set_index("metric")
    for name in ("val", "lof", "score", "h_valid", "success", "noise", "retrained_seed", "copies"):
        assert (found[name][[0, 7]] == 0).all()
        assert rows.loc[name, "n"] == 40
        kept = np.delete(before[name], [0, 7]).sum()
        assert rows.loc[name, "value"] == pytest.approx(kept / 40)
    for name in ("cost", "changes", "violations", "knn_distance", "redundancy"):
        assert np.isnan(found[name][[0, 7]]).all()
        assert rows.loc[name, "n"] == 38
        assert rows.loc[name, "value"] == pytest.approx(np.delete(before[name], [0, 7]).mean())


def test_nobody_answered(case: Case, X_plus: pd.DataFrame) -> None:
    found = measure(case, X_plus * np.nan)
    assert "cost" not in found
    assert found["val"].sum() == found["success"].sum() == 0


@pytest.fixture(scope="module")
def german() -> Case:
    return make_case("german", 0, rows=12, h_config=MLPConfig(epochs=20))


def test_what_cannot_be_read_counts_against_the_method(german: Case) -> None:
    """Levels that do not exist, text and infinity for numbers, nothing at all: no error."""
    X_plus = german.people.astype(object)
    X_plus.iloc[0, X_plus.columns.get_loc("purpose")] = "yacht"
    X_plus.iloc[1, X_plus.columns.get_loc("duration")] = None
    X_plus.iloc[2, X_plus.columns.get_loc("duration")] = "long"
    X_plus.iloc[3, X_plus.columns.get_loc("credit_amount")] = np.inf
    X_plus.iloc[4] = None
    found, before = measure(german, X_plus), measure(german, german.people)
    assert found["violations_category"][:4].tolist() == [1, 0, 0, 0]
    assert found["violations_missing"][:4].tolist() == [0, 1, 1, 1]
    assert np.isnan(found["violations"][4])
    assert (found["success"] == 0).all()
    for name in ("val", "lof", "soft_val", "h_noise"):
        assert (found[name][:5] == 0).all()
        np.testing.assert_array_equal(found[name][5:], before[name][5:])
    assert (before["soft_val"][:5] > 0).all()
    assert np.isnan(found["cost"][:5]).all()
    assert (found["cost"][5:] == 0).all()


def test_a_table_that_is_not_the_peoples_is_refused(case: Case, X_plus: pd.DataFrame) -> None:
    with pytest.raises(UserError, match="X_plus has 39 rows for 40 people; it needs one row"):
        measure(case, X_plus.iloc[1:])
    with pytest.raises(
        UserError, match=r"X_plus has the columns \['x1'\]; it must have \['x1', 'x2'\]"
    ):
        measure(case, X_plus[["x1"]])
    swapped = measure(case, X_plus[["x2", "x1"]])
    np.testing.assert_array_equal(swapped["cost"], measure(case, X_plus)["cost"])


def test_summarise_leaves_nan_out() -> None:
    found = summarise({"a": np.array([1.0, np.nan, 3.0]), "b": np.zeros(3)})
    assert found == {"a": 2.0, "b": 0.0, "n": 3}


# ---- tidy rows -----------------------------------------------------------------------------------

COLUMNS = ["dataset", "method", "params", "seed", "metric", "value", "n", "sd"]


def test_evaluate_fits_what_is_not_fitted(case: Case, X_plus: pd.DataFrame) -> None:
    method = METHODS["nnr-dplus"](case.h, case.schema)
    rows = evaluate(method, case, name="nnr-dplus")
    assert list(rows) == COLUMNS
    assert set(rows["dataset"]) == {"moons"}
    assert set(rows["method"]) == {"nnr-dplus"}
    assert set(rows["seed"]) == {3}
    assert json.loads(rows["params"][0])["gamma"] == 0.7
    by_hand = METHODS["nnr-dplus"](case.h, case.schema).fit(case.X, case.y).recourse(case.people)
    expected = measure(case, by_hand)
    found = rows.set_index("metric")
    assert set(found.index) == {*expected, "fit_seconds", "row_seconds"}
    for name, values in expected.items():
        assert found.loc[name, "value"] == values.mean()
        assert found.loc[name, "sd"] == values.std()
        assert found.loc[name, "n"] == 40
    assert found.loc["fit_seconds", "n"] == 1000
    assert (found.loc[["fit_seconds", "row_seconds"], "value"] > 0).all()
    method.recourse(case.people)  # it is fitted now


def test_evaluate_leaves_a_fitted_method_alone(
    case: Case, nearest: NearestNeighbour, called: Witnesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "fit", None)
    rows = evaluate(nearest, case, called).set_index("metric")
    assert "fit_seconds" not in rows.index
    assert set(METRICS) - set(rows.index) == {"log_likelihood"}
    assert set(rows["method"]) == {"NearestNeighbour"}


@pytest.mark.filterwarnings("ignore:.*rejected rows have no accepted row")
def test_evaluate_tells_the_likelihood_of_a_density(case: Case) -> None:
    known = {"gamma": 0.6, "temperature": 1.0, "margin": 0.5, "clean": False}  # nothing to choose
    params = GenRe._test_params() | known | {"select": "likelihood"}
    method = GenRe(case.h, case.schema, **params)
    rows = evaluate(method, case).set_index("metric")
    people = case.people
    expected = method.log_prob(method.recourse(people), given=people).mean()
    assert rows.loc["log_likelihood", "value"] == pytest.approx(expected)
    assert json.loads(rows["params"].iloc[0])["net"]["width"] == 16


def test_evaluate_refuses_recourse_around_another_h(case: Case) -> None:
    with pytest.raises(UserError, match="uses another classifier than the case"):
        evaluate(NearestNeighbour(lambda X: (X["x1"] > 0) * 1.0, case.schema), case)


def test_tidy_shows_its_denominators() -> None:
    values = {"a": np.array([1.0, np.nan, 4.0]), "b": np.full(3, np.nan)}
    rows = tidy(values, dataset="d", seed=1)
    assert list(rows) == ["dataset", "seed", "metric", "value", "n", "sd"]
    assert rows["n"].tolist() == [2, 0]
    assert rows["value"][0] == 2.5
    assert rows["sd"][0] == 1.5
    assert np.isnan(rows["value"][1])


# ---- base rates ----------------------------------------------------------------------------------


def test_base_rates_are_those_of_accepted_rows(case: Case, called: Witnesses) -> None:
    Z = case.encoder.encode(case.X)
    genuine = (case.y == 1) & case.judge.valid(Z) & case.h.accepts(case.X)
    assert 0 < genuine.sum() < len(Z)
    rows = base_rates(case, called)
    assert list(rows) == COLUMNS
    found = rows.set_index("metric")
    assert list(found.index) == list(BASE_METRICS)
    assert set(found["n"]) == {genuine.sum()}
    assert found.loc["val", "value"] == 1
    probability = case.judge.probability(Z[genuine])
    assert found.loc["soft_val", "value"] == pytest.approx(probability.mean())
    assert found.loc["lof", "value"] == case.judge.inlier(Z[genuine]).mean()
    by_hand = called.accepted.mean_distance(Z[genuine], 5).mean()
    assert found.loc["knn_distance", "value"] == pytest.approx(by_hand)
    assert 0.5 < found.loc["noise", "value"] < 1


def test_base_rates_of_a_sample(case: Case) -> None:
    few = base_rates(case, rows=50)
    assert set(few["n"]) == {50}
    assert set(few["metric"]) == {"val", "soft_val", "lof", "noise", "h_noise"}
    pd.testing.assert_frame_equal(few, base_rates(case, rows=50))
    other = base_rates(replace(case, seed=4), rows=50)
    assert not np.array_equal(few["value"], other["value"])


def test_base_rates_need_somebody(case: Case) -> None:
    with pytest.raises(UserError, match="none of 1000 training rows of 'moons' has a favourable"):
        base_rates(replace(case, y=np.zeros(1000, dtype=int)))
