"""A policy is in force in every verb of a method, and only an explicit call replaces it."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse import METHODS, NearestNeighbour, Policy, Schema, UserError, audit, load
from genrecourse.evaluation.checks import fit_quietly
from genrecourse.evaluation.evaluate import Case, evaluate
from genrecourse.evaluation.gold import TrueJudge
from genrecourse.methods.base import Method
from genrecourse.methods.genre import GenRe
from genrecourse.model.classifier import Classifier, MLPConfig
from genrecourse.reports.plan_report import report_html
from genrecourse.table.encoding import TableEncoder

STATED: dict[str, Any] = {
    "features": {"income": {"direction": "increase"}},
    "rules": {"lock": ["debt"], "max_changes": 1},
}
POLICY = Policy.of(**STATED)


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.integers(0, 80, n) * 1.0 for name in ("income", "debt", "pets")})


def h(X: pd.DataFrame) -> np.ndarray:
    return np.asarray(0.5 + (X["income"] - X["debt"] - 2 * X["pets"]).to_numpy() / 500)


X, PEOPLE = people(150, 0), people(25, 1)
REJECTED = PEOPLE[h(PEOPLE) <= 0.5]
QUICK = ("nnr", "nnr-refined", "growing_spheres", "wachter")  # two take rules, two do not


def fitted(name: str) -> Method:
    maker = METHODS[name]
    kind = getattr(maker, "func", maker)
    small = dict(getattr(kind, "_test_params", dict)())
    method: Method = fit_quietly(maker(h, POLICY.schema(X), **small), X)
    return method


@pytest.fixture(scope="module")
def nearest() -> Method:
    return fitted("nnr")


def moved(X_plus: pd.DataFrame, before: pd.DataFrame = REJECTED) -> pd.DataFrame:
    return X_plus.ne(before)


def keeps(method: Method) -> bool:
    """Whether recourse and plans both keep the rules."""
    verdicts = []
    for X_plus in (method.recourse(REJECTED), _of_plans(method)):
        which = moved(X_plus)
        verdicts.append(not which["debt"].any() and which.sum(axis=1).max() <= 1)
    assert verdicts[0] == verdicts[1]
    return verdicts[0]


def _of_plans(method: Method) -> pd.DataFrame:
    X_plus = REJECTED.copy()
    for plan in method.plans(REJECTED):
        for change in plan.changes:
            X_plus.loc[plan.person, change.feature.name] = change.after
    return X_plus


@pytest.mark.parametrize("name", QUICK)
def test_a_loaded_method_keeps_its_policy(name: str, tmp_path: Path) -> None:
    method = fitted(name)
    assert method.policy_ is None
    assert not keeps(method)  # so that the rules do something
    method.save(tmp_path / "model", POLICY)
    assert keeps(load(tmp_path / "model", h))
    assert keeps(POLICY.applied_to(method))
    assert method.policy_ is None  # `applied_to` leaves the method alone


def test_every_public_verb_is_known_to_these_tests() -> None:
    """A new verb that gives changes must be tested here, or named as one that gives none."""
    tested = {"recourse", "plans", "sample", "draws", "promise", "assess"}
    gives_none = {"fit", "save", "restored", "check_ready", "kept_rows", "log_prob"}
    internal = {"propose", "conflict"}  # what plans are chosen from, which settings do not fit
    of_sklearn = {"get_params", "set_params", "get_metadata_routing"}
    verbs = {
        name
        for name, _ in inspect.getmembers(GenRe, inspect.isfunction)
        if not name.startswith("_")
    }
    assert verbs - of_sklearn - internal - gives_none - {"set_fit_request"} <= tested


def test_draws_and_promises_keep_it(tmp_path: Path) -> None:
    small = GenRe._test_params()
    method = fit_quietly(GenRe(h, POLICY.schema(X), **small), X, h(X) > 0.5)
    promising = Policy.of(**STATED, decision={"promise": 0.6})
    method.save(tmp_path / "model", promising)
    again = load(tmp_path / "model", h)
    some = REJECTED.head(3)
    drawn = again.sample(some, 8)
    which = moved(drawn, some.loc[drawn.index.get_level_values("row")].set_axis(drawn.index))
    assert not which["debt"].any()
    assert which.sum(axis=1).max() == 1
    assert "effective_sample_size" in again.draws(some)  # of draws under rules
    assert keeps(POLICY.applied_to(method))
    assert again.promise(0.5).share == 0.6
    assert {plan.promise.share for plan in again.plans(some) if plan.promise is not None} == {0.6}


def test_audit_report_and_evaluation_keep_it(nearest: Method) -> None:
    ruled = POLICY.applied_to(nearest)
    table = PEOPLE.assign(side=["a", "b"] * 12 + ["a"])
    changes = [
        max(
            n.value
            for n in audit(method, table, ["side"], least=5).numbers
            if n.metric == "changes"
        )
        for method in (nearest, ruled)
    ]
    assert changes[1] <= 1 < changes[0]
    assert "debt" in _what_changes(report_html(nearest, REJECTED))
    assert "debt" not in _what_changes(report_html(ruled, REJECTED))
    found = evaluate(ruled, a_case()).set_index("metric")["value"]
    free = evaluate(nearest, a_case()).set_index("metric")["value"]
    assert found["changes"] <= 1 < free["changes"]


def _what_changes(page: str) -> set[str]:
    return {name for name in ("income", "debt", "pets") if f"{name}: " in page}


def a_case() -> Case:
    encoder = TableEncoder(POLICY.schema(X)).fit(X)
    judge = TrueJudge(h, encoder, X)
    Z = encoder.encode(X)
    y = (h(X) > 0.5).astype(int)
    judge.fit(Z, y)
    known = (REJECTED, judge, encoder, 1.0, MLPConfig(), Z, y)
    return Case("made", 0, encoder.schema, X, y, Classifier(h), *known)


# ---- replacing it -------------------------------------------------------------------------------


def test_it_is_replaced_by_an_explicit_call(nearest: Method, tmp_path: Path) -> None:
    POLICY.applied_to(nearest).save(tmp_path / "model")
    stored = load(tmp_path / "model", h)
    assert stored.policy_ is not None
    assert keeps(stored)
    looser = Policy.of(**{**STATED, "rules": {"max_changes": 3}})
    for free in (
        load(tmp_path / "model", h, policy=looser),
        looser.applied_to(stored),
        stored.policy_.without_rules().applied_to(stored),
    ):
        assert not keeps(free)
    assert free.recourse(REJECTED).equals(nearest.recourse(REJECTED))  # the last has no rules
    assert keeps(stored)


def test_nothing_else_replaces_it(nearest: Method, tmp_path: Path) -> None:
    POLICY.applied_to(nearest).save(tmp_path / "model")
    stored = load(tmp_path / "model", h)
    for asked in ({}, {"max_changes": 3}, {"people": {REJECTED.index[0]: {"max_changes": 3}}}):
        which = moved(stored.recourse(REJECTED, rules=asked))
        assert not which["debt"].any()
        assert which.sum(axis=1).max() <= 1
    which = moved(stored.recourse(REJECTED, rules={"allowed": {"debt": [0.0]}}))
    assert not which["debt"].any()  # it is locked
    stored.save(tmp_path / "copy")
    assert keeps(load(tmp_path / "copy", h))
    stored.fit(X)
    assert keeps(stored)  # fitted again, it stays in force


def test_a_policy_that_states_other_features_is_refused(nearest: Method, tmp_path: Path) -> None:
    other = Policy.of(features={"income": {"direction": "decrease"}})
    ruled = POLICY.applied_to(nearest)
    for act in (
        lambda: other.applied_to(nearest),
        lambda: nearest.save(tmp_path / "model", other),
        lambda: Policy.of().applied_to(ruled),  # it no longer states the direction
    ):
        with pytest.raises(UserError, match="fitted under other rules"):
            act()
    assert not (tmp_path / "model").exists()
    again = POLICY.applied_to(fitted("nnr"))
    again.schema = Schema.infer(X)
    with pytest.raises(UserError, match="fitted under other rules"):
        again.fit(X)


def test_without_rules_says_the_same_about_features() -> None:
    policy = replace(Policy.of(**STATED, decision={"promise": 0.9, "cutoff": 0.4}), name="bank")
    bare = policy.without_rules()
    assert bare.request == {}
    assert bare.stated.features == policy.stated.features
    assert bare.stated.decision.cutoff == 0.4
    assert bare.name == "bank without its rules"
    assert Policy.unpack(bare.pack()) == bare


def test_a_lint_of_another_policy_asks_under_that_one() -> None:
    """The method's own policy leaves nobody a plan, and the one that is checked everybody."""
    strict = Policy.of(rules={"max_changes": 0})
    method = strict.applied_to(NearestNeighbour(h, Schema.infer(X)).fit(X))
    assert any("have no plan" in each for each in strict.lint(X, method))
    assert not any("have no plan" in each for each in Policy.of().lint(X, method))
