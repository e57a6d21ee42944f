"""Classifier: every kind of model as h, its cutoff, its labels, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import torch
import xgboost
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn

from genrecourse.errors import UserError
from genrecourse.model import classifier as classifier_module
from genrecourse.model.classifier import MLP, Classifier, MLPConfig, fit_mlp
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.schema import Schema


def made(n: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    """Two numbers and a word; the outcome is 1 where their sum is large."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "income": rng.normal(50, 20, n).round(),
            "debt": rng.normal(0, 1, n),
            "job": rng.choice(["cook", "nurse", "pilot"], n),
        },
        index=[f"p{i}" for i in range(n)],
    )
    raw = (X["income"] - 50) / 20 - X["debt"] + (X["job"] == "pilot") + rng.normal(0, 0.5, n)
    return X, (raw > 0.3).to_numpy().astype(int)


X, Y = made()
NUMBERS = X[["income", "debt"]]
WORDS = np.array(["denied", "approved"])[Y]


def pipeline() -> Any:
    columns = ColumnTransformer(
        [("words", OneHotEncoder(), ["job"]), ("numbers", StandardScaler(), ["income", "debt"])]
    )
    return make_pipeline(columns, LogisticRegression())


# ---- every kind of model ------------------------------------------------------------------------


def test_sklearn_estimator() -> None:
    model = LogisticRegression().fit(NUMBERS, Y)
    h = Classifier(model)
    np.testing.assert_array_equal(h.score(NUMBERS), model.predict_proba(NUMBERS)[:, 1])
    np.testing.assert_array_equal(h.accepts(NUMBERS), model.predict(NUMBERS) == 1)
    assert 0 < h.accepts(NUMBERS).mean() < 1


def test_sklearn_pipeline_that_reads_words() -> None:
    model = pipeline().fit(X, WORDS)
    assert model.classes_.tolist() == ["approved", "denied"]
    score = Classifier(model, favourable="approved").score(X)
    np.testing.assert_array_equal(score, model.predict_proba(X)[:, 0])
    other = Classifier(model, favourable="denied").score(X)
    np.testing.assert_array_equal(other, model.predict_proba(X)[:, 1])
    assert score[Y == 1].mean() > score[Y == 0].mean()


def test_xgboost_classifier() -> None:
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=2, n_jobs=1).fit(NUMBERS, Y)
    score = Classifier(model).score(NUMBERS)
    np.testing.assert_array_equal(score, model.predict_proba(NUMBERS)[:, 1].astype(np.float64))
    assert score.dtype == np.float64


def test_xgboost_booster() -> None:
    matrix = xgboost.DMatrix(NUMBERS, label=Y)
    settings = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}
    model = xgboost.train(settings, matrix, num_boost_round=5)
    np.testing.assert_allclose(Classifier(model).score(NUMBERS), model.predict(matrix), rtol=1e-6)


def test_xgboost_reads_missing_values_and_categoricals() -> None:
    table = X.assign(job=X["job"].astype("category"), debt=X["debt"].where(X["debt"] < 1))
    model = xgboost.XGBClassifier(n_estimators=5, n_jobs=1, enable_categorical=True).fit(table, Y)
    np.testing.assert_array_equal(
        Classifier(model).score(table), model.predict_proba(table)[:, 1].astype(np.float64)
    )


@pytest.mark.parametrize("native", [False, True])
def test_lightgbm(native: bool) -> None:
    table = X.assign(job=X["job"].astype("category"))
    model = lightgbm.LGBMClassifier(n_estimators=5, num_leaves=4, n_jobs=1, verbose=-1)
    model.fit(table, Y)
    expected = model.predict_proba(table)[:, 1]
    h = Classifier(model.booster_ if native else model)
    np.testing.assert_allclose(h.score(table), expected, rtol=1e-12)
    assert len(np.unique(expected)) > 3


def test_torch_module_without_encoder_reads_the_columns() -> None:
    model = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[0.05, -1.0]]))
        model[0].bias.fill_(-2.5)
    raw = 0.05 * NUMBERS["income"] - NUMBERS["debt"] - 2.5
    expected = 1 / (1 + np.exp(-raw))
    # (n, 1) is read as (n,)
    np.testing.assert_allclose(Classifier(model).score(NUMBERS), expected, rtol=1e-5)
    nullable = NUMBERS.astype({"income": "Int64"})
    np.testing.assert_allclose(Classifier(model).score(nullable), expected, rtol=1e-5)
    np.testing.assert_allclose(Classifier(model.double()).score(NUMBERS), expected, rtol=1e-6)


def test_torch_module_with_encoder_reads_z() -> None:
    encoder = TableEncoder(Schema.infer(X)).fit(X)
    model = MLP(encoder.width, (4,))
    h = Classifier(model, encoder=encoder)
    Z = encoder.encode(X)
    with torch.no_grad():
        expected = model(torch.tensor(Z, dtype=torch.float32)).numpy()
    np.testing.assert_allclose(h.score(X), expected, rtol=1e-6)
    np.testing.assert_array_equal(h.score(X), h.score_encoded(Z, encoder, X.iloc[:1]))
    # with no detour over the table, which has no halves of a category
    with torch.no_grad():
        relaxed = model(torch.tensor(Z / 2, dtype=torch.float32)).numpy()
    np.testing.assert_allclose(h.score_encoded(Z / 2, encoder, X.iloc[:1]), relaxed, rtol=1e-6)


def test_torch_module_is_asked_in_eval_mode_and_left_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(2, 1), nn.Dropout(0.9), nn.Sigmoid())
    h = Classifier(model)
    assert model.training
    np.testing.assert_array_equal(h.score(NUMBERS / 100), h.score(NUMBERS / 100))
    assert model.training
    model.eval()
    h.score(NUMBERS / 100)
    assert not model.training


@pytest.mark.parametrize("shape", ["array", "series", "list", "column"])
def test_plain_function_of_a_table(shape: str) -> None:
    def h(table: pd.DataFrame) -> Any:
        score = (table["income"] / 200).clip(0, 1)
        forms: dict[str, Callable[[], Any]] = {
            "array": score.to_numpy,
            "series": lambda: score,
            "list": score.tolist,
            "column": lambda: score.to_numpy()[:, None],
        }
        return forms[shape]()

    score = Classifier(h).score(X)
    assert score.shape == (len(X),)
    np.testing.assert_array_equal(score, (X["income"] / 200).clip(0, 1))


def test_many_rows_are_scored_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def h(table: pd.DataFrame) -> np.ndarray:
        seen.append(len(table))
        return (table["income"].to_numpy() / 200).clip(0, 1)

    whole = Classifier(h).score(X)
    monkeypatch.setattr(classifier_module, "SCORE_CHUNK", 50)
    np.testing.assert_array_equal(Classifier(h).score(X), whole)
    assert seen == [120, 50, 50, 20]


def test_score_encoded_shows_a_model_original_units() -> None:
    table = X.astype({"income": int}).assign(job=X["job"].astype("category"))
    encoder = TableEncoder(Schema.infer(table)).fit(table)
    seen: list[pd.DataFrame] = []

    def h(rows: pd.DataFrame) -> np.ndarray:
        seen.append(rows)
        return np.full(len(rows), 0.5)

    Classifier(h).score_encoded(encoder.encode(table)[5:9], encoder, table.iloc[:1])
    expected = table.iloc[5:9].reset_index(drop=True)
    pd.testing.assert_frame_equal(seen[0], expected)


# ---- the favourable outcome ---------------------------------------------------------------------


def three_classes() -> tuple[Any, np.ndarray]:
    model = RandomForestClassifier(5, max_depth=3, random_state=0)
    model.fit(NUMBERS, np.array(["no", "maybe", "yes"])[Y + (NUMBERS["debt"] > 0)])
    assert model.classes_.tolist() == ["maybe", "no", "yes"]
    return model, model.predict_proba(NUMBERS)


@pytest.mark.parametrize("wanted", [{"yes", "maybe"}, ["yes", "maybe"], ("maybe", "yes")])
def test_a_favourable_set_is_summed(wanted: Any) -> None:
    model, proba = three_classes()
    score = Classifier(model, favourable=wanted).score(NUMBERS)
    np.testing.assert_allclose(score, proba[:, 0] + proba[:, 2])


def test_one_of_three_classes() -> None:
    model, proba = three_classes()
    np.testing.assert_array_equal(Classifier(model, favourable="no").score(NUMBERS), proba[:, 1])


@pytest.mark.parametrize(
    "classes", [[False, True], np.array([0, 1], dtype=np.int8), [0.0, 1.0], [1, 0]]
)
def test_one_is_favourable_where_nothing_is_said(classes: Any) -> None:
    class Model:
        classes_ = np.asarray(classes)

        def predict_proba(self, table: pd.DataFrame) -> np.ndarray:
            return np.tile(np.where(self.classes_ == 1, 0.8, 0.2), (len(table), 1))

    np.testing.assert_array_equal(Classifier(Model()).score(NUMBERS), np.full(len(X), 0.8))


@pytest.mark.parametrize(
    ("y", "favourable", "expected"),
    [
        ([1, 0, 1], None, [True, False, True]),
        ([True, False], None, [True, False]),
        ([1.0, 0.0], None, [True, False]),
        (pd.Series([0, 1], index=["b", "a"], dtype="Int64"), None, [False, True]),
        (["good", "bad"], "good", [True, False]),
        ([2, 1, 2], 1, [False, True, False]),
        (pd.Series(["a", "b", "c"], dtype="category"), {"a", "c"}, [True, False, True]),
        (["a", "b"], ["b", "c"], [False, True]),  # not every favourable outcome need occur
    ],
)
def test_outcomes(y: Any, favourable: Any, expected: list[bool]) -> None:
    answer = Classifier(favourable=favourable).is_favourable(y)
    assert answer.dtype == bool
    assert answer.tolist() == expected


@pytest.mark.parametrize(
    ("y", "favourable", "says"),
    [
        (["good", "bad"], None, "y has the outcomes ['bad', 'good']: name the favourable one"),
        ([1, 2], None, "y has the outcomes [1, 2]: name the favourable one"),
        (["good", "bad"], "great", "'great' does not occur in y; name one of ['bad', 'good']"),
        ([0, 1], "1", "'1' does not occur in y; name one of [0, 1]"),
        ([0, 1, None, np.nan], None, "y has 2 missing outcomes; drop those rows"),
        (pd.DataFrame({"y": [0, 1]}), None, "y has shape (2, 1); give one outcome for each row"),
    ],
)
def test_outcomes_that_are_refused(y: Any, favourable: Any, says: str) -> None:
    with pytest.raises(UserError) as caught:
        Classifier(favourable=favourable).is_favourable(y)
    assert says in str(caught.value)


# ---- cutoff and scale ---------------------------------------------------------------------------


def test_cutoff_is_not_accepted_itself() -> None:
    table = pd.DataFrame({"s": [0.1, 0.83, np.nextafter(0.83, 1), 0.9]})
    h = Classifier(lambda rows: rows["s"], cutoff=0.83)
    assert h.accepts(table).tolist() == [False, False, True, True]
    assert Classifier(lambda rows: rows["s"]).accepts(table).tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    ("cutoff", "ends", "scores", "confidence"),
    [
        (0.5, (0.0, 1.0), [0.0, 0.2, 0.5, 0.9, 1.0], [0.0, 0.2, 0.5, 0.9, 1.0]),
        (0.83, (0.0, 1.0), [0.0, 0.415, 0.83, 0.915, 1.0], [0.0, 0.25, 0.5, 0.75, 1.0]),
        (640, (300, 850), [300, 470, 640, 745, 850], [0.0, 0.25, 0.5, 0.75, 1.0]),
    ],
)
def test_confidence_is_half_at_the_cutoff(
    cutoff: float, ends: tuple[float, float], scores: list[float], confidence: list[float]
) -> None:
    h = Classifier(lambda rows: rows["s"], cutoff=cutoff, score_range=ends)
    found = h.score(pd.DataFrame({"s": scores}))
    np.testing.assert_array_equal(found, scores)
    np.testing.assert_allclose(h.confidence(found), confidence, rtol=0, atol=1e-12)
    assert (h.confidence(found) > 0.5).tolist() == (found > cutoff).tolist()


@pytest.mark.parametrize(
    ("cutoff", "ends"),
    [(640, (0, 1)), (0.0, (0, 1)), (1.0, (0, 1)), (0.5, (1, 0)), (np.nan, (0, 1))],
)
def test_a_cutoff_outside_the_scale(cutoff: float, ends: tuple[float, float]) -> None:
    with pytest.raises(
        UserError, match=r"the cutoff .* is not inside the score range .* give the lowest"
    ):
        Classifier(cutoff=cutoff, score_range=ends)


# ---- what is refused ----------------------------------------------------------------------------


def wrong_proba(value: Any) -> Any:
    class Model:
        classes_ = np.array([0, 1])

        def predict_proba(self, table: pd.DataFrame) -> Any:
            return value(len(table))

    return Model()


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (
            lambda rows: np.zeros(len(rows) - 1),
            ["shape (119,) for 120 rows", "should return (120,)"],
        ),
        (lambda rows: np.zeros((len(rows), 2)), ["shape (120, 2)", "should return (120,)"]),
        (lambda rows: 0.7, ["shape ()", "should return (120,)"]),
        (lambda rows: None, ["no numbers", "None"]),
        (lambda rows: ["yes"] * len(rows), ["no numbers", "'yes'"]),
        (lambda rows: rows["debt"].where(rows["debt"] > 0), ["NaN for", "of 120 rows"]),
        (lambda rows: rows["income"] - 49, ["outside (0.0, 1.0)", "sigmoid", "score_range"]),
        (lambda rows: np.full(len(rows), np.inf), ["inf, which is outside (0.0, 1.0)"]),
        (nn.Linear(2, 1), ["outside (0.0, 1.0)", "sigmoid"]),
        (nn.Sequential(nn.Linear(2, 2), nn.Sigmoid()), ["shape (120, 2)"]),
        (wrong_proba(lambda n: np.zeros((n, 3))), ["shape (120, 3)", "2 classes"]),
        (wrong_proba(lambda n: np.zeros(n)), ["shape (120,)", "2 classes"]),
        (wrong_proba(lambda n: np.zeros((n - 1, 2))), ["shape (119, 2)", "120 rows"]),
        (wrong_proba(lambda n: np.full((n, 2), 3.0)), ["3.0, which is outside (0.0, 1.0)"]),
        (LogisticRegression(), ["is not fitted", "LogisticRegression"]),
        (xgboost.XGBClassifier(), ["is not fitted"]),
        (lightgbm.LGBMClassifier(), ["is not fitted"]),
        (Perceptron(), ["a Perceptron cannot score people", "predict_proba"]),
        ("model.pkl", ["a str cannot score people", "predict_proba"]),
        (None, ["no model yet", "fit a method"]),
    ],
)
def test_models_that_are_refused(model: Any, says: list[str]) -> None:
    if isinstance(model, nn.Linear):
        with torch.no_grad():
            model.weight.fill_(1.0)
    with pytest.raises(UserError) as caught:
        Classifier(model).score(NUMBERS)
    message = str(caught.value)
    assert [word for word in says if word not in message] == []


def test_unfitted_pipeline() -> None:
    with pytest.raises(UserError, match="is not fitted"):
        Classifier(pipeline()).score(X)


def test_a_models_own_error_is_told_and_stays_the_cause() -> None:
    model = LogisticRegression().fit(NUMBERS, Y)
    with pytest.raises(UserError, match=r"a LogisticRegression, raised ValueError .*names") as told:
        Classifier(model).score(NUMBERS.rename(columns={"debt": "loan"}))
    assert type(told.value.__cause__) is ValueError


def test_scores_a_rounding_error_beyond_the_scale_are_fine() -> None:
    table = pd.DataFrame({"s": [-1e-9, 1 + 1e-9]})
    np.testing.assert_array_equal(Classifier(lambda rows: rows["s"]).score(table), table["s"])


@pytest.mark.parametrize(
    ("favourable", "says"),
    [
        (None, "the classifier has the outcomes ['approved', 'denied']: name the favourable one"),
        ("yes", "'yes' does not occur in the classifier; name one of ['approved', 'denied']"),
    ],
)
def test_favourable_of_a_model_must_be_known(favourable: Any, says: str) -> None:
    with pytest.raises(UserError) as caught:
        Classifier(LogisticRegression().fit(NUMBERS, WORDS), favourable=favourable).score(NUMBERS)
    assert says in str(caught.value)


def test_a_module_without_encoder_cannot_read_words() -> None:
    with pytest.raises(
        UserError, match=r"reads numbers, but the columns \['job'\] hold none; pass encoder"
    ):
        Classifier(nn.Linear(3, 1)).score(X)


# ---- small print --------------------------------------------------------------------------------


def test_wrap_and_clone() -> None:
    h = Classifier(LogisticRegression().fit(NUMBERS, Y), cutoff=0.7)
    assert Classifier.wrap(h) is h
    assert Classifier.wrap(h.model).model is h.model
    assert Classifier.wrap(h.model).cutoff == 0.5
    assert clone(h) is h  # scikit-learn would forget what the model has learned
    assert h.is_fitted
    assert not Classifier.wrap(None).is_fitted
    assert repr(h) == "Classifier(LogisticRegression, favourable=None, cutoff=0.7)"
    assert "to be trained" in repr(Classifier())


# ---- the paper's MLP ----------------------------------------------------------------------------

QUICK = MLPConfig(epochs=25, batch_size=32, lr=2e-2)


def separable(n: int = 200) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"a": rng.random(n), "b": rng.random(n), "c": rng.choice(["x", "y"], n)})
    side = table["a"] + table["b"] + 0.5 * (table["c"] == "x") - 1.25
    return table[side.abs() > 0.1], (side > 0)[side.abs() > 0.1].to_numpy()


def weights(h: Classifier) -> list[torch.Tensor]:
    return list(h.model.state_dict().values())


def test_mlp_learns_a_separable_set() -> None:
    table, y = separable()
    h = fit_mlp(table, y, Schema.infer(table), config=QUICK)
    assert np.mean(h.accepts(table) == y) > 0.98
    assert h.model.layers[0].out_features == 10
    assert not h.model.training


def test_mlp_learns_the_outcome_that_is_named() -> None:
    table, y = separable()
    words = np.where(y, "good", "bad")
    h = fit_mlp(table, words, Schema.infer(table), config=QUICK, favourable="bad", cutoff=0.6)
    assert np.mean(h.accepts(table) == ~y) > 0.95
    assert (h.cutoff, h.favourable) == (0.6, "bad")


def test_mlp_same_seed_same_weights_and_the_global_state_is_left_alone() -> None:
    table, y = separable()
    schema, config = Schema.infer(table), MLPConfig(epochs=2)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first = fit_mlp(table, y, schema, config=config, seed=5)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    torch.rand(3)  # whatever others draw in between
    again = fit_mlp(table, y, schema, config=config, seed=5)
    other = fit_mlp(table, y, schema, config=config, seed=6)
    assert all(torch.equal(a, b) for a, b in zip(weights(first), weights(again), strict=True))
    assert not torch.equal(weights(first)[0], weights(other)[0])


@pytest.mark.parametrize(("balanced", "expected"), [(True, 0.5), (False, 0.2)])
def test_mlp_balances_the_outcomes(balanced: bool, expected: float) -> None:
    # nothing to learn but the share of favourable outcomes, which is one in five
    table = pd.DataFrame({"a": np.zeros(100)})
    y = np.arange(100) % 5 == 0
    config = MLPConfig(hidden=(), epochs=60, batch_size=100, lr=0.1, balanced=balanced)
    score = fit_mlp(table, y, Schema.infer(table), config=config).score(table)
    np.testing.assert_allclose(score, expected, atol=0.02)


@pytest.mark.parametrize("y", [np.zeros(3), np.ones(3)])
def test_mlp_needs_both_outcomes(y: np.ndarray) -> None:
    table = pd.DataFrame({"a": [1, 2, 3]})
    with pytest.raises(UserError, match=rf"y has {int(y.sum())} favourable outcomes in 3 rows"):
        fit_mlp(table, y, Schema.infer(table))


@pytest.mark.parametrize("y", [[0, 1], [0, 1, 0, 1]])
def test_mlp_needs_an_outcome_for_each_row(y: list[int]) -> None:
    table = pd.DataFrame({"a": [1, 2, 3]})
    with pytest.raises(UserError, match=f"X has 3 rows but y has {len(y)}"):
        fit_mlp(table, y, Schema.infer(table))
