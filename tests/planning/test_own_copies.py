"""Plans are judged by copies of the user's own model where it can be trained again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from genrecourse import Classifier, NearestNeighbour, Plans, Schema, load
from genrecourse.planning.binomial import Share
from genrecourse.planning.plans import Safety
from genrecourse.planning.wording import english
from genrecourse.trust import own_copies

OWN = "copies of the model itself, retrained"
STAND_INS = "stand-ins for the model"
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {"income": RNG.integers(0, 100, 300), "debt": RNG.integers(0, 50, 300), "pets": 0}
).assign(pets=RNG.integers(0, 4, 300))
y = np.where(X["income"] - X["debt"] + RNG.normal(0, 8, 300) > 25, "good", "bad")


def tree() -> Any:
    """Its seed is not set: without one, two trainings may give two trees."""
    return DecisionTreeClassifier(max_depth=5, max_features=2).fit(X, y)


def fitted(model: Any) -> NearestNeighbour:
    h = Classifier(model, favourable="good")
    return NearestNeighbour(h, Schema.infer(X), gamma="auto").fit(X, y)


@pytest.fixture(scope="module")
def method() -> NearestNeighbour:
    return fitted(tree())


@pytest.fixture(scope="module")
def people(method: NearestNeighbour) -> pd.DataFrame:
    return X[~method.classifier_.accepts(X)].head(12)


def test_votes_are_those_of_the_copies(method: NearestNeighbour, people: pd.DataFrame) -> None:
    copies = method.planning_.copies
    assert copies is not None
    plans = method.plans(people, n=3)
    shown = plans.shown
    votes = copies.votes(plans.x_plus())
    assert [each.retrained.k for each in shown if each.retrained] == votes.tolist()
    assert all(each.own_copies for each in shown)
    assert len(set(votes)) > 1
    assert method.fit_report_["voters"] == {"are": "copies of the model"}


def test_words_say_who_voted(method: NearestNeighbour, people: pd.DataFrame) -> None:
    text = method.plans(people, n=3).to_text()
    assert OWN in text
    assert STAND_INS not in text
    safety = Safety(Share(3, 8), Share(32, 32), own_copies=True).to_text(english())
    assert f"without it 5 of 8 {OWN}" in safety


def test_plans_are_the_same_after_load(
    method: NearestNeighbour, people: pd.DataFrame, tmp_path: Path
) -> None:
    before = method.plans(people, n=3)
    method.save(tmp_path / "model")
    loaded = load(tmp_path / "model", Classifier(method.classifier_.model, favourable="good"))
    assert loaded.plans(people, n=3).to_json() == before.to_json()
    assert loaded.fit_report_["voters"] == method.fit_report_["voters"]


def test_plans_are_the_same_if_the_file_does_not_keep_all_rows(
    people: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genrecourse.planning.promise.ROWS", 250)
    many = np.where(y == "good", "good", np.where(X["debt"] > 25, "bad", "fair"))
    model = DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, many)
    h = Classifier(model, favourable="good")
    method = NearestNeighbour(h, Schema.infer(X), gamma="auto").fit(X, many)
    copies = method.planning_.copies
    assert copies is not None
    assert len(copies.Z) == 250
    kept = method.problem_.encoder.table(copies.Z, X)
    names = np.array(["bad", "fair", "good"])[copies.numbers]
    known = set(map(tuple, X.assign(y=many).to_numpy()))
    assert set(map(tuple, kept.assign(y=names).to_numpy())) <= known
    method.save(tmp_path / "model")
    again = load(tmp_path / "model", h).plans(people)
    assert again.to_json() == method.plans(people).to_json()


def test_a_function_at_load_gives_stand_ins_and_a_warning(
    method: NearestNeighbour, people: pd.DataFrame, tmp_path: Path
) -> None:
    method.save(tmp_path / "model")
    loaded = load(tmp_path / "model", lambda rows: method.classifier_.score(rows))
    with pytest.warns(UserWarning, match="it is no estimator that scikit-learn can clone"):
        plans = loaded.plans(people)
    assert STAND_INS in plans.to_text()
    assert OWN not in plans.to_text()
    assert loaded.plans(people).to_json() == plans.to_json()  # said once


def test_a_slow_model_has_stand_ins_before_and_after_load(
    people: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_copies, "SECONDS", -1.0)
    method = fitted(tree())
    method.save(tmp_path / "model")
    monkeypatch.undo()  # a faster machine
    loaded = load(tmp_path / "model", Classifier(method.classifier_.model, favourable="good"))
    for each in (method, loaded):
        assert each.fit_report_["voters"]["are"] == "stand-ins"
        assert "takes more than" in each.fit_report_["voters"]["why"]
        assert each.planning_.voters == each.fit_report_["voters"]  # as a second save stores it
        assert STAND_INS in each.plans(people).to_text()


def test_fitting_again_leaves_no_old_copies(people: pd.DataFrame) -> None:
    method = fitted(tree())
    method.classifier = Classifier(lambda rows: rows["income"] / 100, favourable="good")
    method.fit(X, y)
    assert method.planning_.copies is None
    assert STAND_INS in method.plans(people).to_text()
    method.classifier = Classifier(
        make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), favourable="good"
    )
    method.fit(X, y)
    copies = method.planning_.copies
    assert copies is not None
    assert type(copies.trained[0].model).__name__ == "Pipeline"
    method.fit(X)  # no outcomes
    assert method.planning_.copies is None


def test_the_kind_of_voters_is_in_json_and_comes_back(
    method: NearestNeighbour, people: pd.DataFrame
) -> None:
    plans = method.plans(people, n=3)
    again = Plans.from_json(plans.to_json())
    assert again.to_text() == plans.to_text()
    assert all(each.own_copies for each in again.shown)
