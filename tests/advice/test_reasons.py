"""Reasons of single people: against closed forms, for any model, in words that give no advice."""

from __future__ import annotations

import json
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from typer.testing import CliRunner

from genrecourse import (
    Classifier,
    GenRe,
    NearestNeighbour,
    Policy,
    Schema,
    UserError,
    load,
    reasons,
)
from genrecourse.advice.output import write_reasons
from genrecourse.advice.reasons import OTHERS, Reasons
from genrecourse.advice.request import PlanRequest
from genrecourse.advice.service import Service
from genrecourse.apps.cli import app
from genrecourse.model.linear import linear_score

NUMBERS = ["income", "debt"]
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "income": RNG.integers(10, 60, 300) * 100.0,
        "debt": RNG.integers(0, 40, 300) * 50.0,
        "job": RNG.choice(["cook", "nurse", "clerk"], 300),
        "sex": RNG.choice(["f", "m"], 300),
    }
)
Y = (X["income"] - 2 * X["debt"] + 800 * (X["job"] == "nurse") > 2200).astype(int)


def pipeline(model: Any, *more: Any) -> Any:
    columns = make_column_transformer(
        (StandardScaler(), NUMBERS), (OneHotEncoder(), ["job", "sex"])
    )
    return make_pipeline(columns, *more, model)


@cache
def logistic() -> Any:
    return pipeline(LogisticRegression()).fit(X, Y)


def fitted(model: Any, schema: Schema | None = None, **about: Any) -> NearestNeighbour:
    return NearestNeighbour(Classifier(model, **about), schema or Schema.infer(X)).fit(X, Y)


def contributions(found: Reasons) -> dict[str, float]:
    return {each.feature.name: each.contribution for each in found.every}


PERSON = X[Y == 0].head(1)


# ---- exact ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("favourable", [1, 0])
def test_a_logistic_regression_is_explained_exactly_on_its_log_odds(favourable: int) -> None:
    model = logistic()
    found = reasons(fitted(model, favourable=favourable), PERSON)[0]
    assert (found.exact, found.scale, found.others) == (True, "log-odds", 300)
    sign = 1 if favourable == 1 else -1
    weights = sign * model[-1].coef_[0]
    Z = pd.DataFrame(np.asarray(model[0].transform(X)), columns=model[0].get_feature_names_out())
    x = np.asarray(model[0].transform(PERSON))[0]
    moved = weights * (x - Z.mean().to_numpy())
    for name in X.columns:
        own = [k for k, column in enumerate(Z.columns) if f"__{name}" in column]
        assert contributions(found)[name] == pytest.approx(moved[own].sum(), abs=1e-9)
    log_odds = np.log(found.score / (1 - found.score))
    assert sum(contributions(found).values()) == pytest.approx(log_odds - found.mean)
    assert all(each.low == each.contribution == each.high for each in found.every)
    assert "log-odds" in found.reasons[0].to_text()


def test_a_linear_regression_is_explained_exactly_on_its_score() -> None:
    table = X[NUMBERS]
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(table, Y)
    h = Classifier(model.predict, score_range=(-5, 5))
    method = NearestNeighbour(h, Schema.infer(table)).fit(table, Y)
    found = reasons(method, table.head(1))[0]
    slope = model[-1].coef_ / model[0].scale_
    for name, weight in zip(NUMBERS, slope, strict=True):
        moved = weight * (table[name].iloc[0] - table[name].mean())
        assert contributions(found)[name] == pytest.approx(moved)
    assert (found.scale, found.exact) == ("score", True)
    assert sum(contributions(found).values()) == pytest.approx(found.score - found.mean_score)


def test_what_is_not_linear_is_not_called_so() -> None:
    twice = pipeline(LogisticRegression(max_iter=500), PolynomialFeatures(2)).fit(X, Y)
    trees = pipeline(GradientBoostingClassifier(n_estimators=5)).fit(X, Y)
    three = LogisticRegression(max_iter=2000).fit(
        X[NUMBERS] / 1000, pd.cut(X["income"], 3, labels=False)
    )
    for model in (twice, trees, three, lambda X: X["income"] / 6000, three.predict_proba):
        assert linear_score(Classifier(model, favourable=1)) is None
    assert linear_score(Classifier(logistic())) is not None
    left = make_column_transformer(("passthrough", ["income"]), (FunctionTransformer(), ["debt"]))
    left = make_pipeline(left, StandardScaler())
    assert linear_score(Classifier(make_pipeline(left, LogisticRegression()).fit(X, Y))) is not None
    odd = FunctionTransformer(lambda X: X.assign(both=X["income"] * X["debt"]))
    mixed = make_pipeline(odd, StandardScaler(), LogisticRegression()).fit(X[NUMBERS], Y)
    assert linear_score(Classifier(mixed)) is None


# ---- estimated -----------------------------------------------------------------------------------


def additive(X: pd.DataFrame) -> np.ndarray:
    return np.asarray(np.sqrt(X["income"] / 6000) / 2 + (X["job"] == "nurse") * 0.3, dtype=float)


def test_estimates_of_a_sum_and_of_what_h_ignores() -> None:
    found = reasons(fitted(additive), PERSON)[0]
    assert (found.exact, found.scale) == (False, "score")
    by_name = {each.feature.name: each for each in found.every}
    root = np.sqrt(X["income"] / 6000) / 2
    exact = {
        "income": root[PERSON.index[0]] - root.mean(),
        "job": 0.3 * ((PERSON["job"].iloc[0] == "nurse") - (X["job"] == "nurse").mean()),
    }
    for name, value in exact.items():
        assert by_name[name].contribution == pytest.approx(value, abs=0.02)
    for name in ("debt", "sex"):
        each = by_name[name]
        assert (each.low, each.contribution, each.high) == (0.0, 0.0, 0.0)
        assert each in found.unused
        assert not each.counts
    assert sum(contributions(found).values()) == pytest.approx(
        found.score - found.mean_score, abs=1e-6
    )


def test_a_feature_whose_interval_includes_zero_is_no_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def noisy(X: pd.DataFrame) -> np.ndarray:
        wave = np.sin(X["debt"] * X["income"] / 7)
        return np.asarray(0.4 + 0.3 * wave + 0.3 * (X["job"] == "nurse"), dtype=float)

    monkeypatch.setattr("genrecourse.advice.reasons.ASKED", 1)
    found = reasons(fitted(noisy), X.head(12))
    assert all(person.lowered or person.raised for person in found)
    unclear = [each for person in found for each in person.unclear]
    assert unclear
    assert all(each.low <= 0 <= each.high and not each.to_dict()["text"] for each in unclear)
    for person in found:
        assert not set(map(id, person.unclear)) & set(map(id, [*person.lowered, *person.raised]))
        for each in person.unclear:
            assert each.to_text() not in person.to_text(most=99)


def test_the_same_person_gets_the_same_numbers_everywhere(tmp_path: Path) -> None:
    method, people = fitted(additive), X.head(4)
    alone = reasons(method, people.iloc[[2]])[0]
    among = reasons(method, people.iloc[::-1])[1]
    method.save(tmp_path / "model")
    loaded = Service.open(tmp_path / "model", additive).reasons(people, 2)
    assert alone.to_json() == among.to_json() == loaded.to_json()


def test_without_outcomes_the_rows_that_every_model_file_keeps_are_used(tmp_path: Path) -> None:
    method = NearestNeighbour(additive, Schema.infer(X)).fit(X)
    method.save(tmp_path / "model")
    own, loaded = (reasons(m, PERSON)[0] for m in (method, load(tmp_path / "model", additive)))
    assert own.others == 64 < OTHERS
    assert own.to_json() == loaded.to_json()


def test_a_person_is_scored_as_it_was_decided_and_two_who_differ_in_sex_alike() -> None:
    schema = Schema.infer(X).with_feature("sex", role="protected")
    with pytest.warns(UserWarning, match="the model uses 'sex'"):
        method = fitted(lambda X: additive(X) * (0.5 + 0.5 * (X["sex"] == "f")), schema)
    both = pd.concat([PERSON.assign(sex="f"), PERSON.assign(sex="m")], ignore_index=True)
    f, m = reasons(method, both)
    assert f.score > m.score
    sex = {each.feature.name: each for each in m.every}["sex"]
    assert sex.contribution < 0
    assert (sex.changeable, sex.note) == (False, "protected")
    assert "protected attribute" in sex.to_text()
    blind = fitted(additive, schema)
    same = [reasons(blind, both)[i].to_dict()["reasons"] for i in (0, 1)]
    numbers = [[(e["feature"], e["contribution"], e["low"]) for e in each] for each in same]
    assert numbers[0] == numbers[1]  # also the random numbers are the same


def test_a_derived_feature_is_part_of_what_it_is_computed_from() -> None:
    table = X[NUMBERS].assign(left=lambda X: X["income"] - X["debt"], room=X["debt"] % 7)
    schema = Schema.infer(table).with_feature("left", role="derived", formula="income - debt")
    method = NearestNeighbour(lambda X: (X["left"] + 2000) / 9000, schema).fit(table, Y)
    seen: list[pd.DataFrame] = []
    h = method.classifier_.model

    def watched(X: pd.DataFrame) -> Any:
        seen.append(X)
        return h(X)

    method.classifier_.model = watched
    found = reasons(method, table.head(1))[0]
    names = contributions(found)
    assert set(names) == {"income", "debt", "room"}
    for name, sign in (("income", 1), ("debt", -1)):
        gap = table[name].iloc[0] - table[name].mean()
        assert names[name] == pytest.approx(sign * gap / 9000, abs=0.01)
    assert names["room"] == 0
    every = pd.concat(seen)
    assert np.allclose(every["left"], every["income"] - every["debt"])  # h saw no impossible row


# ---- what may be changed -------------------------------------------------------------------------


def test_a_reason_that_nobody_can_change_is_flagged() -> None:
    schema = Schema.infer(X).with_feature("debt", role="immutable")
    method = Policy.of(rules={"lock": ["job"]}, features={"debt": {"role": "immutable"}})
    ruled = method.applied_to(fitted(logistic(), schema))
    found = {each.feature.name: each for each in reasons(ruled, PERSON)[0].every}
    assert {name: each.note for name, each in found.items()} == {
        "income": "",
        "debt": "immutable",
        "job": "locked",
        "sex": "",
    }
    assert [name for name, each in found.items() if each.changeable] == [
        name for name in found if name in ("income", "sex")
    ]
    assert found["debt"].to_text().endswith("This cannot be changed.")
    service = Service(ruled)
    asked = PlanRequest(rules={PERSON.index[0]: {"lock": ["income"]}})
    own = {e.feature.name: e.note for e in service.reasons(PERSON, 0, asked).every}
    assert own["income"] == "locked"


# ---- in words ------------------------------------------------------------------------------------


def test_reasons_follow_the_decision_and_give_no_advice() -> None:
    method = fitted(logistic())
    for person in reasons(method, X.head(20)):
        signs = {each.contribution > 0 for each in person.reasons}
        assert signs <= {person.is_accepted}
        text = person.to_text()
        assert "no advice" in text
        for word in ("you could", "should be", "→", "raise it", "lower it", "plan"):
            assert word not in text
        headings = [heading for heading, _ in person.groups()]
        first = "What raised it most:" if person.is_accepted else "What lowered it most:"
        if person.reasons:
            assert headings[0] == first


def test_json_html_and_files_hold_the_same(tmp_path: Path) -> None:
    odd = X.rename(columns={"debt": "<b>debt</b>"}).assign(job=X["job"].replace("cook", "<i>cook"))
    method = NearestNeighbour(
        lambda X: (
            X["income"] / 12000 - X["<b>debt</b>"] / 9000 + (X["job"] == "<i>cook") * 0.1 + 0.3
        ),
        Schema.infer(odd),
    ).fit(odd, Y)
    found = reasons(method, odd[odd["job"] == "<i>cook"].head(1))[0]
    data = json.loads(found.to_json())
    assert [each["feature"] for each in data["reasons"]] == [e.feature.name for e in found.every]
    sizes = [abs(each["contribution"]) for each in data["reasons"]]
    assert sizes == sorted(sizes, reverse=True)

    class Read(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.tags: list[str] = []
            self.words = ""

        def handle_starttag(self, tag: str, attrs: Any) -> None:
            self.tags.append(tag)

        def handle_data(self, data: str) -> None:
            self.words += data

    page = Read()
    page.feed(found.to_html(most=9))
    assert not {"b", "i", "script", "style"} & set(page.tags)
    for each in (*found.lowered, *found.raised):
        assert each.to_text() in page.words
    for ending in (".json", ".html", ".txt"):
        write_reasons(tmp_path / f"reasons{ending}", found)
    assert json.loads((tmp_path / "reasons.json").read_text()) == data
    assert found.to_text() == (tmp_path / "reasons.txt").read_text().rstrip("\n")
    assert "What mattered for this score" in (tmp_path / "reasons.html").read_text()


def test_mistakes_are_one_sentence() -> None:
    with pytest.raises(UserError, match="call fit"):
        reasons(GenRe(), X)
    method = fitted(additive)
    with pytest.raises(UserError, match="there is no row 300"):
        Service(method).reasons(X, 300)
    with pytest.raises(UserError, match="no wording 'xx'"):
        reasons(method, PERSON, language="xx")


def test_the_command_prints_and_writes_what_python_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    people, folder, file = tmp_path / "people.csv", tmp_path / "model", tmp_path / "reasons.json"
    X.to_csv(people, index=False)
    (tmp_path / "own_score.py").write_text(
        "def h(X):\n    return (X['income'] / 12000 + (X['job'] == 'nurse') * 0.3).to_numpy()\n"
    )
    method = NearestNeighbour(
        lambda X: (X["income"] / 12000 + (X["job"] == "nurse") * 0.3).to_numpy(), Schema.infer(X)
    ).fit(X, Y)
    method.save(folder)
    about = ["reasons", str(folder), str(people), "--row", "3", "--classifier", "own_score:h"]
    told = CliRunner().invoke(app, about)
    assert told.exit_code == 0, told.output
    expected = Service(method).reasons(X, 3)
    assert " ".join(told.stdout.split()) == " ".join(expected.to_text().split())
    written = CliRunner().invoke(app, [*about, "-o", str(file)])
    assert written.exit_code == 0, written.output
    assert json.loads(file.read_text()) == expected.to_dict()
