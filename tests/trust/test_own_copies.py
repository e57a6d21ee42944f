"""OwnCopies: which estimators are trained again, on what, and what their votes say."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from genrecourse import Classifier, Schema
from genrecourse.rules.problem import Problem
from genrecourse.table.encoding import TableEncoder
from genrecourse.trust import own_copies
from genrecourse.trust.own_copies import MANY_COPIES as N_COPIES
from genrecourse.trust.own_copies import OwnCopies, class_numbers, fixed, untrainable
from genrecourse.trust.retrained import N_RETRAINED

RNG = np.random.default_rng(0)
X = pd.DataFrame({"income": RNG.uniform(0, 100, 400), "debt": RNG.uniform(0, 50, 400)})
EDGE = (X["income"] - X["debt"]).to_numpy()
GOOD = EDGE + RNG.normal(0, 8, 400) > 25  # noisy near the edge
FAR = np.abs(EDGE - 25) > 25


def copies_of(model: Any, y: Any = GOOD, rows: pd.DataFrame = X, **how: Any) -> OwnCopies:
    """Copies of a model that was fitted on these rows and outcomes."""
    h = Classifier(model, **how)
    encoder = TableEncoder(Schema.infer(rows)).fit(rows)
    numbers = class_numbers(h, y, h.is_favourable(y))
    assert numbers is not None
    return OwnCopies(Problem.of(encoder, h, rows), encoder.encode(rows), numbers, seed=0)


def logistic() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, GOOD)


# ---- votes --------------------------------------------------------------------------------------


def test_copies_agree_far_from_the_edge_and_differ_near_it() -> None:
    copies = copies_of(logistic())
    assert copies.decide() == ""
    votes = copies.votes(X)
    assert set(votes[FAR & (EDGE > 25)]) == {N_COPIES}
    assert set(votes[FAR & (EDGE < 25)]) == {0}
    assert len(set(votes[np.abs(EDGE - 25) < 5])) > 2


def test_the_cutoff_is_the_models_own() -> None:
    strict = copies_of(logistic(), cutoff=0.9)
    assert (strict.votes(X) <= copies_of(logistic()).votes(X)).all()
    assert strict.votes(X).sum() < copies_of(logistic()).votes(X).sum()


def test_a_copy_is_the_estimator_itself_on_a_bootstrap() -> None:
    """Each copy of a tree that learns by heart is right about the rows of its own bootstrap."""
    model = DecisionTreeClassifier().fit(X, GOOD)
    copies = copies_of(model)
    right = np.stack([copy.accepts(X) == GOOD for copy in copies.trained])
    assert all(isinstance(copy.model, DecisionTreeClassifier) for copy in copies.trained)
    assert (right.mean(axis=1) > 0.632).all()  # the share of the rows in a bootstrap
    assert (right.mean(axis=1) < 1).all()
    assert len({row.tobytes() for row in right}) == N_COPIES


@pytest.mark.parametrize("favourable", ["good", {"good", "fair"}])
def test_labels_are_those_that_the_model_was_fitted_on(favourable: Any) -> None:
    """Three classes: copies learn all of them, and not only favourable or not."""
    y = np.where(EDGE > 25, "good", np.where(EDGE > 0, "fair", "bad"))
    model = DecisionTreeClassifier(max_depth=6).fit(X, y)
    copies = copies_of(model, y, favourable=favourable)
    assert copies.decide() == ""
    assert all(list(copy.model.classes_) == ["bad", "fair", "good"] for copy in copies.trained)
    far = np.minimum(np.abs(EDGE), np.abs(EDGE - 25)) > 8
    wanted = np.isin(y, list({favourable} if favourable == "good" else favourable))
    assert np.mean((copies.votes(X) >= 6)[far] == wanted[far]) > 0.97


def test_outcomes_of_two_classes_may_have_other_names() -> None:
    model = logistic()
    h = Classifier(model)
    assert class_numbers(h, ["yes", "no"], np.array([True, False])).tolist() == [1, 0]  # type: ignore[union-attr]
    three = LogisticRegression().fit(X, np.arange(400) % 3)
    assert class_numbers(Classifier(three, favourable=2), ["yes"], np.array([True])) is None


def test_rows_that_a_copy_cannot_read_are_rejected() -> None:
    rows = pd.DataFrame({"job": ["clerk", "cook"] * 100})
    y = rows["job"] == "cook"
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(rows, y)
    copies = copies_of(model, y, rows)
    asked = pd.DataFrame({"job": ["cook", "pilot", "clerk", "cook"]})
    assert copies.votes(asked).tolist() == [N_COPIES, 0, 0, N_COPIES]


# ---- the same copies again ----------------------------------------------------------------------


def test_the_same_rows_and_seed_give_the_same_copies() -> None:
    model = make_pipeline(StandardScaler(), RandomForestClassifier(5)).fit(X, GOOD)  # no seed
    copies, again = copies_of(model), copies_of(model)
    assert copies.decide() == ""
    for one, other in zip(copies.trained, again.trained, strict=True):
        np.testing.assert_array_equal(one.score(X), other.score(X))
    other_seed = OwnCopies(copies.problem, copies.Z, copies.numbers, seed=1)
    assert (other_seed.votes(X) != copies.votes(X)).any()


def test_every_seed_in_an_estimator_is_set_and_it_gets_one_thread() -> None:
    model = fixed(make_pipeline(StandardScaler(), RandomForestClassifier(n_jobs=-1)), state=3)
    assert model[-1].random_state == 3
    assert model[-1].n_jobs == 1


class Slow(ClassifierMixin, BaseEstimator):
    """Counts how often it is fitted, in all threads."""

    fits: list[int] = []  # noqa: RUF012

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Slow:
        self.classes_ = np.unique(y)
        self.share_ = float(np.mean(y))
        self.fits.append(len(X))
        time.sleep(0.01)  # so that threads overlap
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        yes = np.clip(X["income"].to_numpy() / 100 - self.share_ + 0.5, 0, 1)
        return np.column_stack([1 - yes, yes])


def test_threads_train_the_copies_once_and_see_all_of_them() -> None:
    copies = copies_of(Slow().fit(X, GOOD))
    Slow.fits.clear()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: copies.trained, range(8)))
    assert len(Slow.fits) == N_COPIES
    assert all(each is found[0] for each in found)
    assert len(found[0]) == N_COPIES


# ---- models that are not trained again ----------------------------------------------------------


class Unrepeatable(Slow):
    """Draws from the state of the process, so that no parameter repeats it."""

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Unrepeatable:
        super().fit(X, y)
        self.share_ += 1e-3 * len(self.fits)
        return self


class NeedsMore(Slow):
    """Cannot be fitted with rows and outcomes alone."""

    def fit(self, X: pd.DataFrame, y: np.ndarray, groups: Any = None) -> NeedsMore:
        if groups is None:
            raise ValueError("groups are missing")
        super().fit(X, y)
        return self


def frozen() -> Any:
    module = pytest.importorskip("sklearn.frozen")
    return module.FrozenEstimator(logistic())


def weighted() -> Any:
    return LogisticRegression().fit(X, GOOD, sample_weight=np.where(GOOD, 9.0, 1.0))


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (lambda: lambda rows: rows["income"] / 100, "no estimator that scikit-learn can clone"),
        (frozen, "a part of it is frozen"),
        (lambda: Unrepeatable().fit(X, GOOD), "gives two models"),
        (lambda: NeedsMore().fit(X, GOOD, 1), "fails with ValueError"),
        (weighted, "it was trained in another way"),
        (lambda: LogisticRegression().fit(X, ~GOOD), "it was trained in another way"),
    ],
)
def test_a_model_that_cannot_be_trained_again_says_why(model: Any, why: str) -> None:
    made = model()
    if not hasattr(made, "classes_"):
        assert why in untrainable(made)
    else:
        assert why in copies_of(made).decide()


def test_a_slow_model_is_not_trained_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_copies, "SECONDS", -1.0)
    copies = copies_of(Slow().fit(X, GOOD))
    Slow.fits.clear()
    assert "takes more than -1 seconds" in copies.decide()
    assert len(Slow.fits) == 1


def test_few_rows_get_more_copies() -> None:
    """So few that the copies differ much."""
    model = logistic()
    more = pd.concat([X, X])
    assert copies_of(model).n == N_COPIES
    assert copies_of(model, np.tile(GOOD, 2), more).n == N_RETRAINED
