"""Nearest neighbours with known answers, the choice of gamma, and GenRe around any classifier."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from xgboost import XGBClassifier

from genrecourse.data.datasets import Dataset, load_dataset
from genrecourse.errors import UserError
from genrecourse.evaluation.checks import broken_rules
from genrecourse.genre.choose_gamma import GAMMA_GRID, choose_gamma
from genrecourse.genre.model import NetConfig
from genrecourse.genre.targets import MIN_TARGETS
from genrecourse.methods import METHODS
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.methods.genre import GenRe, Training
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.model.classifier import Classifier, MLPConfig, fit_mlp
from genrecourse.rules.book import RuleBook
from genrecourse.rules.problem import same_layout
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.schema import Schema
from genrecourse.trust.judge import trust

SMALL = NetConfig(width=16, heads=2, feedforward=16, encoder_layers=1, decoder_layers=1)
QUICK: dict[str, Any] = {
    "net": SMALL,
    "training": Training(steps=40, batch_size=64),
    "gamma": 0.5,
    "temperature": 1.0,
    "margin": 0.5,
    "clean": False,
}

# ---- nearest neighbour ------------------------------------------------------------------------

# Both columns span [0, 10], so that C = (|a - a'| + |b - b'|) / 10.
TABLE = pd.DataFrame(
    [(0, 0), (10, 10), (6, 0), (6, 5), (8, 5), (9, 1)], columns=["a", "b"], dtype=float
)
LABELS = [0, 1, 1, 0, 0, 1]
SCHEMA = Schema.infer(TABLE)


def tenth(X: pd.DataFrame) -> np.ndarray:
    """h = a / 10: accepted above 5."""
    return np.clip(X["a"].to_numpy(dtype=float) / 10, 0, 1)


def nearest(name: str, *people: tuple[float, float], schema: Schema = SCHEMA) -> list[Any]:
    method = METHODS[name](tenth, schema).fit(TABLE, LABELS)
    table = pd.DataFrame(people, columns=["a", "b"], dtype=float)
    return list(method.recourse(table).itertuples(index=False, name=None))


def test_nnr_takes_the_nearest_row_that_h_accepts() -> None:
    # costs from (4, 4): 0.6 to (6, 0), 0.3 to (6, 5), 0.5 to (8, 5), 0.8 to (9, 1)
    assert nearest("nnr", (4, 4), (4, 0)) == [(6, 5), (6, 0)]


def test_nnr_with_a_margin_takes_the_nearest_row_of_which_h_is_sure() -> None:
    assert nearest("nnr-0.7", (4, 4)) == [(8, 5)]


def test_nnr_dplus_wants_the_outcome_favourable_too() -> None:
    assert nearest("nnr-dplus", (4, 4)) == [(9, 1)]


def test_nnr_leaves_accepted_people_alone() -> None:
    assert nearest("nnr", (6, 7), (4, 4)) == [(6, 7), (6, 5)]


def test_nnr_with_an_immutable_stays_among_its_equals() -> None:
    schema = SCHEMA.with_feature("b", role="immutable")
    assert nearest("nnr", (4, 0), (4, 1), schema=schema) == [(6, 0), (9, 1)]


def test_nnr_gives_x_back_where_there_is_no_target() -> None:
    schema = SCHEMA.with_feature("b", role="immutable")
    assert nearest("nnr", (4, 3), schema=schema) == [(4, 3)]
    method = NearestNeighbour(tenth, schema).fit(TABLE, LABELS)
    person = pd.DataFrame({"a": [4.0], "b": [3.0]}, index=["p"])
    assert method.assess(person, method.recourse(person)).loc["p", "status"] == "not-accepted"


def test_nnr_matches_an_immutable_of_many_values_by_bin_and_carries_x_s_own_over() -> None:
    schema = SCHEMA.with_feature("b", role="immutable")
    method = NearestNeighbour(tenth, schema, n_bins=2).fit(TABLE, LABELS)
    # four distinct values in the targets, two bins: 0 and 1 against 5 and 10 (the median is 5,
    # which falls into the upper half)
    person = pd.DataFrame({"a": [4.0, 4.0], "b": [0.7, 7.5]})
    assert method.recourse(person).to_numpy().tolist() == [[6.0, 0.7], [10.0, 7.5]]


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({"direction": "decrease"}, (6, 0)),
        ({"max_step": 3.0}, (6, 5)),
        ({"max_step": 0.5}, (4, 4)),  # nobody in reach
        ({"range": (0.0, 4.0)}, (6, 0)),
        ({"cost_weight": 0.1}, (6, 5)),
    ],
)
def test_nnr_keeps_the_rules(changes: dict[str, Any], answer: tuple[float, float]) -> None:
    assert nearest("nnr", (4, 4), schema=SCHEMA.with_feature("b", **changes)) == [answer]


def test_nnr_weighs_by_the_schema_s_cost_weights() -> None:
    # from (4, 2): 0.4 to (6, 0), 0.5 to (6, 5); b is cheap: 0.22, 0.23; a weighs 9: the same order
    assert nearest("nnr", (4, 2)) == [(6, 0)]
    # from (4, 3): 0.5 to (6, 0), 0.4 to (6, 5), 0.6 to (8, 5)
    assert nearest("nnr", (4, 3)) == [(6, 5)]
    # a for nothing: 0.1 from b alone to (9, 1), 0.2 to (6, 0)
    cheap = SCHEMA.with_feature("a", cost_weight=1e-6)
    assert nearest("nnr", (4, 1.9), schema=cheap) == [(9, 1)]


def test_nnr_says_that_nobody_is_accepted() -> None:
    with pytest.raises(UserError, match=r"none of 6 rows is accepted with gamma 0\.5"):
        NearestNeighbour(lambda X: np.zeros(len(X)), SCHEMA).fit(TABLE, LABELS)


def test_nnr_auto_leaves_out_rows_that_others_outcomes_speak_against() -> None:
    """h accepts from 0.5, but people between 0.5 and 0.7 did badly: nobody is sent there."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(600), "b": rng.random(600)})
    y = (X["a"] > 0.7).astype(int)
    y[rng.random(600) < 0.02] = 1  # a few lucky ones, which a plain neighbour would copy
    people = X[X["a"] < 0.5][:60]
    plain = METHODS["nnr"](lambda X: X["a"].to_numpy(), None).fit(X, y).recourse(people)
    auto_ = METHODS["nnr-auto"](lambda X: X["a"].to_numpy(), None).fit(X, y).recourse(people)
    assert (plain["a"] > 0.7).mean() < 0.1
    assert (auto_["a"] > 0.69).all()


@pytest.mark.parametrize("name", ["nnr", "genre"])
def test_the_rules_are_the_method_s_own_not_those_of_h(name: str) -> None:
    """h may have been trained under a schema where everything may change."""
    X, y = two_groups()
    loose = Schema.infer(X).with_feature("sex", cost_weight=0.01)
    strict = Schema.infer(X, immutable=["sex"]).with_feature("income", max_step=20.0)
    h = fit_mlp(X, y, loose, config=MLPConfig(epochs=20, lr=0.03))
    params = QUICK if name == "genre" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some have nobody within a step of 20
        method = METHODS[name](h, strict, **params).fit(X, y)
    people = X[~h.accepts(X)]
    X_plus = method.recourse(people)
    assert (X_plus["sex"] == people["sex"]).all()
    assert ((X_plus["income"] - people["income"]).abs() <= 20 + 1e-9).all()
    assert method.classifier_.encoder is method.problem_.encoder  # and h still reads Z directly
    assert h.encoder is not method.problem_.encoder


def test_a_model_is_given_its_columns_in_the_table_s_order_whatever_the_schema_s() -> None:
    def by_place(X: pd.DataFrame) -> np.ndarray:
        return np.clip(X.to_numpy(dtype=float)[:, 0] / 10, 0, 1)  # a, as it was trained

    other = Schema(features=tuple(reversed(SCHEMA.features)))
    method = METHODS["nnr"](by_place, other).fit(TABLE, LABELS)
    for person in (TABLE.iloc[:1], TABLE.iloc[:1][["b", "a"]]):
        nearest_accepted = pd.DataFrame({"a": [6.0], "b": [0.0]})[list(person.columns)]
        pd.testing.assert_frame_equal(method.recourse(person), nearest_accepted)
        assert method.plans(person)[0].score_after == 0.6


def test_levels_in_another_order_are_not_the_same_layout() -> None:
    X, y = two_groups()
    one = Schema.infer(X)
    other = one.with_feature("sex", categories=("m", "f"))
    h = fit_mlp(X, y, one, config=MLPConfig(epochs=20, lr=0.03))
    method = METHODS["nnr"](h, other).fit(X, y)
    np.testing.assert_allclose(
        method.problem_.confidence(method.problem_.encoder.encode(X)),
        h.confidence(h.score(X)),
        atol=1e-6,
    )


def test_a_range_that_no_row_reaches_is_the_same_layout() -> None:
    """A larger range only allows more slack in rules; a row of Z means the same."""
    X = pd.DataFrame({"a": [0.0, 10.0]})
    plain = Schema.infer(X)
    encoders = [
        TableEncoder(plain.with_feature("a", range=(0.0, most))).fit(X) for most in (10.0, 1e6)
    ]
    assert encoders[0].blocks != encoders[1].blocks  # so that the test can fail
    assert same_layout(*encoders)


def test_a_fit_that_failed_leaves_nothing_to_ask() -> None:
    X, y = two_groups()
    method = NearestNeighbour(lambda X: np.zeros(len(X)))
    with pytest.raises(UserError, match="is accepted"):
        method.fit(X, y)
    with pytest.raises(UserError, match="call fit"):
        method.recourse(X)


# ---- choose_gamma -------------------------------------------------------------------------------


def gamma_for(
    is_valid: Any, n: int = 400, lam: float = 20.0, **rules: Any
) -> tuple[float, list[dict[str, Any]]]:
    """One number v in [0, 1], h = v, sources below 0.5; `is_valid(v)` is the judge's verdict."""
    v = np.linspace(0, 1, n)
    X = pd.DataFrame({"v": v})
    encoder = TableEncoder(Schema.infer(X).with_feature("v", **rules)).fit(X)
    F = encoder.features(X)
    rows = TrainingRows(encoder.from_features(F), F, v > 0.3, v)

    def judge(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return is_valid(Z[:, 0]).astype(float), np.ones(len(Z), dtype=bool)

    sources = np.flatnonzero(v < 0.5)[::5]
    judged: Any = SimpleNamespace(of_table=judge)
    found = np.flatnonzero(v > 0.5)
    return choose_gamma(
        rows, sources, found, judged, RuleBook.of_schema(encoder), Cost(encoder), lam=lam, n_bins=50
    )


def test_gamma_is_where_targets_become_valid() -> None:
    """Near draws below 0.8 are worth nothing; from 0.8 on all are valid, and ever dearer."""
    chosen, report = gamma_for(lambda v: v > 0.8, lam=100.0)
    assert chosen == 0.8
    score = {line["gamma"]: line["score"] for line in report}
    assert score[0.55] < 1.1 < score[0.8]
    assert score[0.8] > score[0.85] > score[0.9]


def test_a_low_gamma_loses_little_where_some_draws_are_valid() -> None:
    """Selection keeps the best of the draws, so that not all of them need to be good."""
    _, report = gamma_for(lambda v: v > 0.8, lam=5.0)
    score = {line["gamma"]: line["score"] for line in report}
    assert score[0.55] > score[0.8] - 0.03


def test_gamma_is_the_lowest_where_every_target_is_valid() -> None:
    chosen, report = gamma_for(lambda v: v > 0.5)
    assert chosen == GAMMA_GRID[0]
    scores = [line["score"] for line in report]
    assert scores == sorted(scores, reverse=True)


def test_gamma_s_report_counts_the_targets_and_prices_the_best() -> None:
    _, report = gamma_for(lambda v: v > 0.5, lam=1000.0)  # Q is the nearest target
    v = np.linspace(0, 1, 400)
    for line in report:
        assert line["targets"] == (v > line["gamma"]).sum()
        nearest_one = v[v > line["gamma"]].min() - v[v < 0.5][::5]
        assert line["score"] == pytest.approx(trust(1.0) + 1 - nearest_one.mean(), abs=1e-3)


def test_a_source_without_a_target_counts_for_nothing() -> None:
    _, free = gamma_for(lambda v: v > 0.5)
    _, held = gamma_for(lambda v: v > 0.5, max_step=0.1)
    reach = {line["gamma"]: line["score"] for line in held}
    assert reach[0.55] < 0.2 * free[0]["score"] / 0.5  # a fifth of the sources is within 0.1
    assert reach[0.65] == 0.0


def test_gamma_stops_where_too_few_targets_are_left() -> None:
    _, report = gamma_for(lambda v: v > 0.8, n=100)  # 20 rows above 0.8, 15 above 0.85
    assert [line["gamma"] for line in report] == [0.55, 0.6, 0.65, 0.7, 0.75, 0.8]
    assert report[-1]["targets"] == MIN_TARGETS


# ---- what GenRe.fit refuses, and what it says ---------------------------------------------------


def two_groups(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Income decides; sex is there to be immutable."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"income": rng.uniform(0, 100, n).round(1), "sex": rng.choice(["f", "m"], n)})
    return X, (X["income"] > 50).astype(int)


def by_income(X: pd.DataFrame) -> np.ndarray:
    return np.clip(X["income"].to_numpy(dtype=float) / 100, 0, 1)


def refused(X: pd.DataFrame, y: Any, match: str, h: Any = by_income, **params: Any) -> None:
    schema = params.pop("schema", Schema.infer(X, immutable=["sex"]))
    with pytest.raises(UserError, match=match):
        GenRe(h, schema, **{**QUICK, **params}).fit(X, y)


@pytest.mark.parametrize("gamma", ["auto", 0.6])
def test_fit_says_that_nobody_is_rejected(gamma: Any) -> None:
    X, y = two_groups()
    accepts_all = Classifier(lambda X: np.full(len(X), 0.9))
    refused(X, y, r"GenRe.fit: only 0 of 200 rows are rejected", accepts_all, gamma=gamma)
    refused(X[X["income"] > 50], None, r"only 0 of \d+ rows are rejected", gamma=gamma)


def test_fit_says_that_all_outcomes_are_one() -> None:
    X, _ = two_groups()
    refused(X, np.ones(200, dtype=int), "only 0 of 200 rows are rejected by the classifier and")
    refused(X, np.zeros(200, dtype=int), "no row has a favourable outcome and a score above gamma")
    refused(
        X, np.zeros(200, dtype=int), "0 of the .* rows for a judge are favourable", gamma="auto"
    )
    refused(X, np.zeros(200, dtype=int), "needs rows of both outcomes", None)


def test_fit_says_that_gamma_is_too_high() -> None:
    X, y = two_groups()
    X = X[X["income"] < 80]
    refused(X, y[X.index], r"no row has .* above gamma 0.9 \(0.5 is the cutoff\)", gamma=0.9)


def test_fit_says_that_everything_is_immutable() -> None:
    X, y = two_groups()
    schema = Schema.infer(X, immutable=["income", "sex"])
    refused(X, y, "every feature is immutable: nothing can change", schema=schema)


def test_fit_says_that_no_rejected_row_has_a_target() -> None:
    X, y = two_groups()
    X["sex"] = np.where(y == 1, "m", "f")
    n = int((y == 0).sum())
    refused(X, y, rf"{n} of {n} rejected rows have no accepted row .* \(immutable: \['sex'\]\)")


def test_fit_says_that_carried_over_immutables_leave_nothing() -> None:
    """An immutable number is matched by bin; h may turn down the target with x's own value."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(20, 60, 400), "income": rng.uniform(0, 100, 400).round(1)})

    def only_whom_it_knows(table: pd.DataFrame) -> np.ndarray:
        known = table["age"].isin(X["age"][X["income"] > 50])  # by the very age of an accepted row
        return np.where(known & (table["income"] > 50), 0.9, 0.1)

    y = (X["income"] > 50).astype(int)
    method = GenRe(only_whom_it_knows, Schema.infer(X, immutable=["age"]), **QUICK)
    with pytest.raises(UserError, match="carried over, the classifier accepts none"):
        method.fit(X, y)


def test_fit_warns_once_of_rows_without_a_target_and_counts_them_all() -> None:
    X, y = two_groups()
    X.loc[y == 1, "sex"] = "m"
    rejected = int((y == 0).sum())
    alone = int(((y == 0) & (X["sex"] == "f")).sum())
    assert 0 < alone < rejected
    method = GenRe(by_income, Schema.infer(X, immutable=["sex"]), **QUICK)
    with pytest.warns(UserWarning, match="left out of training") as caught:
        method.fit(X, y)
    assert len(caught) == 1
    assert f"GenRe.fit: {alone} of {rejected} rejected rows have no accepted row" in str(
        caught[0].message
    )
    assert "['sex']" in str(caught[0].message)
    assert caught[0].filename == __file__  # points at the user's line, not into the library
    pairs = method.fit_report_["pairs"]
    held_out = round(0.1 * rejected)
    assert pairs["sources"] + pairs["unpaired"] == rejected - held_out


def test_fit_works_where_no_held_out_row_has_a_target() -> None:
    """A handful of rows are held out; that none of them can be helped does not stop the others."""
    X, y = two_groups(60)
    X["sex"] = np.where(y == 1, "m", "f")
    rejected = np.flatnonzero(y == 0)
    held = np.random.default_rng(0).permutation(rejected)[:5]  # GenRe's own order for seed 0
    X.loc[np.setdiff1d(rejected, held), "sex"] = "m"
    method = GenRe(by_income, Schema.infer(X, immutable=["sex"]), **QUICK)
    with pytest.warns(UserWarning, match=rf"5 of {len(rejected)} rejected rows"):
        method.fit(X, y)
    assert method.fit_report_["pairs"]["unpaired"] == 0
    assert method.fit_report_["training"]["steps"] > 0


# ---- assess -------------------------------------------------------------------------------------


def test_assess_tells_each_status_apart() -> None:
    X, y = two_groups()
    X["race"] = np.where(np.arange(len(X)) % 10 == 0, "x", "o")
    X.loc[(y == 1), "race"] = "o"  # no accepted person of race x
    schema = Schema.infer(X, immutable=["sex", "race"])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*left out of training")
        method = GenRe(by_income, schema, **QUICK).fit(X, y)
    people = pd.DataFrame(
        {"income": [20.0, 20.0, 80.0, 20.0, 20.0], "sex": "f", "race": ["o", "o", "o", "o", "x"]},
        index=["ok", "not-accepted", "already-accepted", "rule-broken", "no-feasible-target"],
    )
    answer = people.assign(income=[60.0, 40.0, 80.0, 60.0, 20.0])
    answer.loc["rule-broken", "sex"] = "m"
    told = method.assess(people, answer)
    assert told["status"].tolist() == list(people.index)
    span = X["income"].max() - X["income"].min()
    assert told.loc["ok", "cost"] == pytest.approx(40 / span)
    assert told.loc["rule-broken", "cost"] == pytest.approx(40 / span + 1)
    assert told["changes"].tolist() == [1, 1, 0, 2, 0]
    assert told["score"].tolist() == pytest.approx([0.2, 0.2, 0.8, 0.2, 0.2])
    assert told["score_plus"].tolist() == pytest.approx([0.6, 0.4, 0.8, 0.6, 0.2])
    # whoever has no target gets the best attempt, and the reason when it fails
    alone = people.loc[["no-feasible-target"]]
    status = method.assess(alone, method.recourse(alone))["status"].item()
    assert status in ("ok", "no-feasible-target")


# ---- any classifier, on german ----------------------------------------------------------------


@pytest.fixture(scope="module")
def german() -> Dataset:
    return load_dataset("german")


def helped(method: Method, X: pd.DataFrame, y: Any, people: pd.DataFrame) -> float:
    """Fit, and gives the share of rejected people whom h accepts afterwards, by h itself."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*left out of training")
        method.fit(X, y)
    rejected = people[~method.classifier_.accepts(people)]
    assert len(rejected) > 20
    answer = method.recourse(rejected)
    pd.testing.assert_index_equal(answer.index, rejected.index)
    assert answer.dtypes.equals(rejected.dtypes)
    for kind, cells in broken_rules(method.schema_, rejected, answer).items():
        assert not cells.to_numpy().any(), kind
    return float(method.classifier_.accepts(answer).mean())


def test_a_pipeline_with_one_hot_encoding_is_h(german: Dataset) -> None:
    text = list(german.X_train.select_dtypes(exclude="number"))
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), text), remainder=StandardScaler()
    )
    model = make_pipeline(encode, LogisticRegression(class_weight="balanced", max_iter=500))
    model.fit(german.X_train, german.y_train)
    method = GenRe(model, german.schema, **QUICK)
    assert helped(method, german.X_train, german.y_train, german.X_test) >= 0.85
    assert method.classifier is model
    scores = method.assess(german.X_test, german.X_test)["score"]
    assert np.allclose(scores, model.predict_proba(german.X_test)[:, 1])


def test_an_xgboost_model_is_h(german: Dataset) -> None:
    text = list(german.X_train.select_dtypes(exclude="number"))
    both = pd.concat([german.X_train, german.X_test])
    kinds = {name: pd.CategoricalDtype(sorted(both[name].unique())) for name in text}
    X, people = german.X_train.astype(kinds), german.X_test.astype(kinds)
    model = XGBClassifier(n_estimators=30, max_depth=3, enable_categorical=True, n_jobs=1)
    model.fit(X, german.y_train)
    method = GenRe(model, german.schema, **QUICK)
    assert helped(method, X, german.y_train, people) >= 0.85


def test_a_plain_function_is_h(german: Dataset) -> None:
    def points(X: pd.DataFrame) -> np.ndarray:
        """A score card from 0 to 100; 60 are needed."""
        score = 55 - 0.6 * X["duration"] - X["credit_amount"] / 500
        score += 20 * (X["checking_account"] == "no account")
        score += 12 * X["savings"].isin(["500-1000 DM", ">= 1000 DM"])
        score += 10 * (X["housing"] == "own")
        return np.clip(score.to_numpy(), 0, 100)

    h = Classifier(points, cutoff=60, score_range=(0, 100))
    method = GenRe(h, german.schema, **QUICK)
    assert helped(method, german.X_train, None, german.X_test) >= 0.85
    rejected = german.X_test[points(german.X_test) <= 60]
    assert (points(method.recourse(rejected)) > 60).mean() >= 0.85


def test_nothing_but_a_table_and_outcomes_is_needed(german: Dataset) -> None:
    method = GenRe(net=SMALL, training=Training(steps=100, batch_size=64))
    assert helped(method, german.X_train, german.y_train, german.X_test) >= 0.85
    assert method.schema is None
    assert method.classifier is None
    report = method.fit_report_
    assert report["gamma"]["chosen"] == method.gamma_
    assert (method.temperature_, method.margin_) == (0.5, 0.5)  # as in every small table


def test_the_temperature_is_chosen_if_no_search_teaches(german: Dataset) -> None:
    method = GenRe(distill=False, net=SMALL, training=Training(steps=60, batch_size=64))
    report = method.fit(german.X_train, german.y_train).fit_report_
    assert (method.temperature_, method.margin_) == (
        report["sampling"]["chosen"]["temperature"],
        report["sampling"]["chosen"]["margin"],
    )


@pytest.mark.slow
def test_the_defaults_as_they_are_work_with_nothing_given() -> None:
    data = load_dataset("moons")
    method = GenRe()
    assert helped(method, data.X_train, data.y_train, data.X_test) >= 0.99


# ---- what an author must write -----------------------------------------------------------------


@pytest.mark.parametrize("missing", ["_fit", "_recourse"])
def test_a_method_without_fit_or_recourse_cannot_be_constructed(missing: str) -> None:
    written = {name: lambda *_: None for name in ("_fit", "_recourse") if name != missing}
    kind = type("Half", (Method,), written)
    with pytest.raises(TypeError, match=missing):
        kind()
    whole = type("Whole", (Method,), {"_fit": lambda *_: None, "_recourse": lambda *_: None})
    assert isinstance(whole(), Method)
