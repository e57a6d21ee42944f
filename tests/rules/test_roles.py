"""Roles beyond immutable: what is derived follows, time passes, and what is protected decides
nothing. Toys with answers that can be worked out by hand."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse import Classifier, GenRe, NearestNeighbour, Schema, UserError, load
from genrecourse.auditing.measures import Measured, Measuring
from genrecourse.evaluation.checks import broken_rules
from genrecourse.methods.base import Method
from genrecourse.methods.growing_spheres import GrowingSpheres
from genrecourse.model.classifier import MLPConfig, fit_mlp
from genrecourse.rules.book import RuleBook
from genrecourse.rules.kinds import Rules
from genrecourse.rules.requests import request_book
from genrecourse.rules.roles import ProtectedMask, ProtectedUse, protected_used_by
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import TableEncoder

RATIO = "debt / income"


def people(n: int = 240, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "income": rng.integers(10, 100, n) * 1.0,
            "debt": rng.integers(1, 60, n) * 1.0,
            "age": rng.integers(20, 40, n),
            "sex": rng.choice(["f", "m"], n),
            "hours": rng.integers(10, 60, n),
        }
    )
    return table.assign(ratio=table["debt"] / table["income"])


def roles(X: pd.DataFrame) -> Schema:
    schema = Schema.infer(X).with_feature("sex", role="protected")
    schema = schema.with_feature("age", role="advances", horizon=1)
    return schema.with_feature("ratio", role="derived", formula=RATIO, range=(0.0, 4.0))


def score(X: pd.DataFrame) -> np.ndarray:
    """Read the ratio, never debt and income themselves; age helps a little."""
    logit = 2.0 * (0.45 - X["ratio"]) + 0.05 * (X["hours"] - 38) + 0.02 * (X["age"] - 30)
    return np.asarray(1 / (1 + np.exp(-logit.to_numpy(dtype=float))))


X = people()
SCHEMA = roles(X)
ENCODER = TableEncoder(SCHEMA).fit(X)
RULES = RuleBook.of_schema(ENCODER)


def settled(changes: dict[str, Any], rows: slice = slice(0, 3)) -> pd.DataFrame:
    """People after these changes and what follows from them."""
    before = X.iloc[rows]
    F, F_plus = ENCODER.features(before), ENCODER.features(before.assign(**changes))
    return ENCODER.decode(ENCODER.from_features(RULES.with_derived(F, F_plus)), like=before)


# ---- one row --------------------------------------------------------------------------------


def test_what_follows_is_computed_and_time_passes() -> None:
    after = settled({"debt": 5.0})
    np.testing.assert_allclose(after["ratio"], 5.0 / X["income"][:3])
    assert (after["age"] == X["age"][:3] + 1).all()
    assert after["age"].dtype == X["age"].dtype
    assert (after["sex"] == X["sex"][:3]).all()


def test_a_change_that_single_precision_cannot_tell_is_none() -> None:
    before = pd.DataFrame(
        {"debt": np.array([0.0, 6e5, 1e6], dtype=np.float32), "age": [20, 30, 40]}
    )
    schema = Schema.infer(before).with_feature("age", role="advances", horizon=1)
    encoder = TableEncoder(schema).fit(before)
    F = encoder.features(before)
    for step, older in ((0.01, 0), (0.1, 1)):  # numbers around 600,000 are 0.06 apart
        F_plus = F + np.array([step / 1e6, 0.0])
        Z_plus = encoder.from_features(RuleBook.of_schema(encoder).with_derived(F, F_plus))
        after = encoder.decode(Z_plus, like=before)
        assert after["age"][1] == 30 + older
        assert (after["debt"][1] != before["debt"][1]) == older


def test_nobody_chooses_what_follows() -> None:
    """A method that proposes a ratio or an age is not listened to."""
    pd.testing.assert_frame_equal(settled({"ratio": 0.01, "age": 33}), X[:3])
    after = settled({"hours": 50, "ratio": 0.01})
    pd.testing.assert_series_equal(after["ratio"], X["ratio"][:3])  # none of its parts has moved


def test_settling_twice_is_settling_once() -> None:
    F = ENCODER.features(X)
    once = RULES.with_derived(F, ENCODER.features(X.assign(debt=7.0)))
    np.testing.assert_array_equal(RULES.with_derived(F, once), once)


def test_a_table_keeps_its_own_ratio_where_its_parts_stay() -> None:
    """Rounded in the table: a plan about something else does not correct it."""
    own = X.assign(ratio=X["ratio"].round(1))
    schema = SCHEMA.with_feature("ratio", decimals=1)
    encoder = TableEncoder(schema).fit(own)
    F, F_plus = encoder.features(own), encoder.features(own.assign(hours=60))
    after = encoder.decode(
        encoder.from_features(RuleBook.of_schema(encoder).with_derived(F, F_plus)), like=own
    )
    pd.testing.assert_series_equal(after["ratio"], own["ratio"])


def test_a_formula_may_use_what_another_one_gives() -> None:
    wide = X.assign(twice=2 * X["ratio"], spare=0.0 * X["ratio"])
    schema = Schema.infer(wide).with_feature("twice", role="derived", formula="2 * ratio")
    schema = schema.with_feature("ratio", role="derived", formula=RATIO)
    encoder = TableEncoder(schema).fit(wide)
    assert list(schema.formulas()) == ["ratio", "twice"]
    F, F_plus = encoder.features(wide), encoder.features(wide.assign(debt=5.0))
    after = encoder.decode(
        encoder.from_features(RuleBook.of_schema(encoder).with_derived(F, F_plus)), like=wide
    )
    np.testing.assert_allclose(after["twice"], 10.0 / wide["income"])


# ---- the rules ------------------------------------------------------------------------------


def test_a_person_may_not_move_what_moves_by_itself() -> None:
    F = ENCODER.features(X)
    for name in ("sex", "age", "ratio"):
        j = SCHEMA.names.index(name)
        other = np.roll(F[:, j], 1)
        assert (RULES.allowed(j, F[:, j], other) == (np.abs(other - F[:, j]) < 1e-9)).all()
    assert [SCHEMA.names[j] for j in np.flatnonzero(RULES.matched)] == ["age"]


def test_rules_on_what_follows_are_checked() -> None:
    F = ENCODER.features(X)
    after = settled({"income": 10.0, "debt": 59.0}, slice(0, len(X)))
    assert not RULES.feasible(F, ENCODER.features(after)).any()  # 5.9 is beyond 4
    assert broken_rules(SCHEMA, X, after)["range"]["ratio"].all()
    fine = settled({"income": 50.0}, slice(0, len(X)))
    assert RULES.feasible(F, ENCODER.features(fine)).all()


@pytest.mark.parametrize(
    ("cells", "kind", "column"),
    [
        ({"age": 33}, "follows", "age"),  # nobody acted
        ({"debt": 5.0}, "follows", "ratio"),
        ({"ratio": 0.2}, "follows", "ratio"),
        ({"hours": 11}, "follows", "age"),  # acted, and is no older
        ({"sex": "x"}, "immutable", "sex"),
    ],
)
def test_both_ways_of_checking_see_what_is_out_of_place(
    cells: dict[str, Any], kind: str, column: str
) -> None:
    before = X[(X["hours"] != 11) & (X["age"] != 33) & (X["debt"] != 5) & (X["ratio"] != 0.2)]
    if column == "sex":
        cells = {"sex": np.where(before["sex"] == "f", "m", "f")}
    after = before.assign(**cells)
    assert broken_rules(SCHEMA, before, after)[kind][column].all()
    assert not RULES.feasible(ENCODER.features(before), ENCODER.features(after)).any()


def test_a_formula_with_a_missing_part_has_no_value_in_either_way_of_checking() -> None:
    before = pd.DataFrame({"a": [1.0, 2.0, 5.0], "b": [np.nan, 3.0, 4.0]})
    before["most"] = np.maximum(before["a"], before["b"])
    schema = Schema.infer(before).with_feature("most", role="derived", formula="max(a, b)")
    encoder = TableEncoder(schema).fit(before)
    F, F_plus = encoder.features(before), encoder.features(before.assign(a=4.0))
    after = encoder.decode(
        encoder.from_features(RuleBook.of_schema(encoder).with_derived(F, F_plus)), like=before
    )
    assert after["most"].isna().tolist() == [True, False, False]
    assert not broken_rules(schema, before, after)["follows"].to_numpy().any()


def test_both_ways_of_checking_agree_on_random_rows() -> None:
    """The library's own rules and those of `checks`, which share no code."""
    rng = np.random.default_rng(1)
    before, after = X.copy(), X.copy()
    for name in ("income", "debt", "hours", "age", "ratio"):
        some = rng.random(len(X)) < 0.3
        after[name] = np.where(some, rng.permutation(X[name]), X[name]).astype(X[name].dtype)
    F, F_plus = ENCODER.features(before), ENCODER.features(after)
    half = rng.random(len(X)) < 0.5
    F_plus[half] = RULES.with_derived(F, F_plus)[half]
    after = ENCODER.decode(ENCODER.from_features(F_plus), like=before)
    broken = np.any(
        [cells.to_numpy().any(axis=1) for cells in broken_rules(SCHEMA, X, after).values()], axis=0
    )
    ok = RULES.feasible(F, F_plus)
    np.testing.assert_array_equal(ok, ~broken)
    assert ok.sum() > 50
    assert broken.sum() > 50
    told = np.any(list(RULES.violations(F, F_plus).values()), axis=(0, 2))
    np.testing.assert_array_equal(told, broken)


def test_what_moves_by_itself_costs_nothing() -> None:
    F = ENCODER.features(X)
    F_plus = RULES.with_derived(F, ENCODER.features(X.assign(debt=30.0)))
    expected = np.abs(X["debt"] - 30.0) / (X["debt"].max() - X["debt"].min())
    Z, Z_plus = ENCODER.from_features(F), ENCODER.from_features(F_plus)
    np.testing.assert_allclose(Cost(ENCODER)(Z, Z_plus), expected)
    request = request_book({"max_changes": 1}, RULES, X)
    np.testing.assert_allclose(request.cost(F, F_plus), expected)
    assert request.feasible(F, F_plus).all()  # one change: neither the ratio nor time is one


def test_rules_of_a_request_bind_what_follows() -> None:
    F = ENCODER.features(X)
    F_plus = RULES.with_derived(F, ENCODER.features(X.assign(debt=20.0)))
    ratio = 20.0 / X["income"]
    stays = (X["debt"] == 20.0).to_numpy()
    for rules, kept in (
        ({"ranges": {"ratio": [None, 0.5]}}, ratio <= 0.5),
        ({"decrease": ["ratio"]}, ratio <= X["ratio"]),
        ({"relations": ["ratio <= 0.5"]}, ratio <= 0.5),
        ({"lock": ["ratio"]}, np.zeros(len(X), dtype=bool)),
    ):
        request = request_book(rules, RULES, X)
        np.testing.assert_array_equal(request.feasible(F, F_plus), kept | stays)


def test_a_plan_does_not_break_a_relation_that_only_time_breaks() -> None:
    """Everyone who acts is a year older; only a plan that changes hours has to keep the rule."""
    oldest = X[X["age"] == X["age"].max()]
    limit = f"if hours > 0 then age <= {oldest['age'].max()}"
    F = ENCODER.features(oldest)
    request = request_book({"relations": [limit]}, RULES, oldest)
    other = np.where(oldest["debt"] > 30, oldest["debt"] - 1, oldest["debt"] + 1)
    for changes, kept in (({"debt": other}, True), ({"debt": other, "hours": 59}, False)):
        F_plus = RULES.with_derived(F, ENCODER.features(oldest.assign(**changes)))
        assert (F_plus[:, 2] > F[:, 2]).all()
        by_schema = RULES.feasible(F, F_plus)  # the range of the ratio forbids some of them
        assert by_schema.any()
        np.testing.assert_array_equal(request.feasible(F, F_plus), by_schema & kept)


# ---- schemas that make no sense --------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("age", {"role": "advances"}, "has no horizon"),
        ("age", {"horizon": 1.0}, "has a horizon but the role 'mutable'"),
        ("age", {"role": "advances", "horizon": 0.5}, "cannot advance by 0.5"),
        ("sex", {"role": "advances", "horizon": 1.0}, "is a category"),
        ("ratio", {"role": "derived"}, "has no formula"),
        (
            "ratio",
            {"role": "derived", "formula": "debt / rent"},
            "names 'rent', which is no feature",
        ),
        ("ratio", {"role": "derived", "formula": "debt / sex"}, "names 'sex', which is a category"),
        ("ratio", {"role": "derived", "formula": "ratio + 1"}, "need each other's values"),
        ("ratio", {"role": "derived", "formula": "debt //"}, "found '/'"),
    ],
)
def test_a_role_without_what_it_needs_is_refused(
    name: str, fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError) as told:
        Schema.infer(X).with_feature(name, **fields)
    assert said in str(told.value)


def test_nothing_is_computed_from_what_is_protected() -> None:
    schema = Schema.infer(X).with_feature("income", role="protected")
    with pytest.raises(UserError, match="is protected"):
        schema.with_feature("ratio", role="derived", formula=RATIO)


def test_a_ratio_that_is_not_its_formula_is_pointed_out() -> None:
    odd = X.assign(ratio=X["ratio"] + 0.5 * (X.index == 7))
    (remark,) = SCHEMA.lint_formulas(odd)
    assert "index 7" in remark
    assert not SCHEMA.lint_formulas(X)


def test_a_rounded_value_is_still_its_formula() -> None:
    part = pd.DataFrame({"a": [0.0088, 0.0098, 0.004, 0.0051]})
    schema = Schema.infer(part.assign(b=0.0)).with_feature(
        "b", role="derived", formula="3 * a", decimals=2
    )
    assert not schema.lint_formulas(part.assign(b=(3 * part["a"]).round(2)))
    assert schema.lint_formulas(part.assign(b=(3 * part["a"]).round(2) + 0.01))


def test_roles_survive_json() -> None:
    assert Schema.from_json(SCHEMA.to_json()) == SCHEMA


# ---- protected ------------------------------------------------------------------------------


def reads_sex(X: pd.DataFrame) -> np.ndarray:
    return np.clip(score(X) - 0.05 * (X["sex"] == "f").to_numpy(), 0, 1)


def test_the_protected_features_that_h_uses_are_found() -> None:
    assert protected_used_by(Classifier(score), SCHEMA, X) == []
    (found,) = protected_used_by(Classifier(reads_sex), SCHEMA, X)
    # one of the two values that are tried is the other one
    assert found == ProtectedUse("sex", 1.0, min(64, len(X)))
    assert found.sentence == (
        "the model uses 'sex': changing it alone changed the score of 100% of "
        f"{min(64, len(X))} sampled rows"
    )


def test_a_model_learned_here_does_not_read_what_is_protected() -> None:
    y = (reads_sex(X) > 0.5).astype(int)
    h = fit_mlp(X, y, SCHEMA, config=MLPConfig(hidden=(4,), epochs=3))
    assert protected_used_by(h, SCHEMA, X) == []
    free = SCHEMA.with_feature("sex", role="immutable")
    h = fit_mlp(X, y, free, config=MLPConfig(hidden=(4,), epochs=3))
    assert [use.share for use in protected_used_by(h, SCHEMA, X)] == [1.0]


def test_blank_rows_are_the_same_for_everybody() -> None:
    blank, flipped = ProtectedMask(ENCODER), X.assign(sex=np.where(X["sex"] == "f", "m", "f"))
    for view in (blank.hide(ENCODER.features(X)), blank.hide_encoded(ENCODER.encode(X))):
        assert (view != view[0]).any()
    np.testing.assert_array_equal(
        blank.hide(ENCODER.features(X)), blank.hide(ENCODER.features(flipped))
    )
    np.testing.assert_array_equal(
        blank.hide_encoded(ENCODER.encode(X)), blank.hide_encoded(ENCODER.encode(flipped))
    )


# ---- methods --------------------------------------------------------------------------------


def fitted(kind: Any, h: Any = score, **params: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(h, SCHEMA, **params).fit(X, (score(X) > 0.5).astype(int))


def measured(method: Method, people: pd.DataFrame) -> Measured:
    """What an audit measures."""
    how = (method.problem_, method.plans, method.assess, method.verifier_, method.kept_rows())
    return Measuring(type(method).__name__, *how).measure(people, {})


@pytest.fixture(scope="module")
def genre() -> GenRe:
    return fitted(GenRe, **GenRe._test_params())


PEOPLE = people(40, seed=1)
AT_EDGE = PEOPLE[:1].assign(income=20.0, debt=40.0, ratio=2.0)  # with a debt of 10, or less
FLIPPED = PEOPLE.assign(sex=np.where(PEOPLE["sex"] == "f", "m", "f"))


def low_ratio(X: pd.DataFrame) -> np.ndarray:
    return np.where(X["ratio"] <= 0.5 + 1e-6, 0.9, 0.1)


def carried_out(plan: Any, row: pd.DataFrame) -> pd.DataFrame:
    after = row.copy()
    for change in (*plan.changes, *plan.consequences):
        name = change.feature.name
        after[name] = pd.Series([change.after], row.index, dtype=row[name].dtype)
    return after


def test_plans_hold_with_what_follows_from_them(genre: GenRe) -> None:
    plans = genre.plans(PEOPLE, 2)
    told = [(i, each) for i, plan in enumerate(plans) for each in plan.every]
    assert len(told) > 20
    for i, plan in told:
        row = PEOPLE.iloc[[i]]
        after = carried_out(plan, row)
        assert (score(after) > 0.5).all()
        assert plan.score_after == pytest.approx(score(after)[0])
        assert not any(
            cells.to_numpy().any() for cells in broken_rules(SCHEMA, row, after).values()
        )
        changed = {change.feature.name for change in plan.changes}
        assert changed <= {"income", "debt", "hours"}
        follows = {change.feature.name for change in plan.consequences}
        assert follows == ({"age", "ratio"} if changed & {"income", "debt"} else {"age"})
        assert "changes by itself" in plan.to_text()
    assert any("debt" in {c.feature.name for c in plan.changes} for _, plan in told)


def test_what_is_protected_decides_no_plan(genre: GenRe) -> None:
    # but for the row itself, whose own cell it is
    first, second = (
        re.sub(r'"sex": "[fm]"', '"sex": ""', genre.plans(people, 2).to_json())
        for people in (PEOPLE, FLIPPED)
    )
    assert first == second
    assert '"sex": ""' in first
    pd.testing.assert_frame_equal(
        genre.sample(FLIPPED, 2).assign(sex=0), genre.sample(PEOPLE, 2).assign(sex=0)
    )
    rules = {"max_changes": 2, "relations": ["if hours > 40 then ratio <= 1"]}
    pd.testing.assert_frame_equal(
        genre.recourse(FLIPPED, rules=rules).assign(sex=0),
        genre.recourse(PEOPLE, rules=rules).assign(sex=0),
    )


def test_what_is_protected_decides_nothing_that_an_audit_measures() -> None:
    """Every number of everybody, also what copies of h say, and whose row a plan copies."""
    method = fitted(NearestNeighbour, gamma="auto")
    first, second = measured(method, PEOPLE), measured(method, FLIPPED)
    assert first.values.keys() == second.values.keys() >= {"robust", "noise", "training_row"}
    for name, values in first.values.items():
        np.testing.assert_array_equal(values, second.values[name], err_msg=name)


X_HOURS = float(X["hours"].median())


def test_a_copy_of_a_training_row_is_one_whatever_its_sex() -> None:
    """One number decides, so that a plan ends at a row that the model file holds."""
    columns = ["hours", "sex"]
    schema = Schema.infer(X[columns]).with_feature("sex", role="protected")

    def h(X: pd.DataFrame) -> np.ndarray:
        return np.where(X["hours"] > X_HOURS, 0.9, 0.1)

    method = NearestNeighbour(h, schema).fit(X[columns])
    told = measured(method, PEOPLE[columns]).values["training_row"]
    assert (told[~np.isnan(told)] == 1).all()
    assert (~np.isnan(told)).sum() > 5


@pytest.mark.parametrize("kind", [NearestNeighbour, GrowingSpheres])
def test_noise_moves_what_follows_from_it_once(kind: Any) -> None:
    """h reads the age alone, which time moves and noise does not: no try can fail, and nobody is
    aged twice. Then a ratio alone: it moves with the noise on its parts."""

    def just_31(X: pd.DataFrame) -> np.ndarray:
        return np.where((X["age"] - 31.0).abs() < 0.5, 0.9, 0.1)

    for plan in kind(just_31, SCHEMA).fit(X).plans(PEOPLE[:5].assign(age=30)):
        assert plan.status == "ok"
        assert (plan.imprecise.k, plan.imprecise.n) == (32, 32)

    rules = Rules(allowed={"debt": (10,)}, lock=("income", "hours"))
    (plan,) = kind(low_ratio, SCHEMA).fit(X).plans(AT_EDGE, rules=rules)
    assert plan.status == "ok"
    assert 0 < plan.imprecise.k < 32  # at the very edge: noise on debt or income crosses it


@pytest.mark.parametrize(
    ("own", "stated", "kind"),
    [
        ({}, {"ranges": {"ratio": [0.6, None]}}, "range"),
        ({}, {"lock": ["ratio"]}, "lock"),
        ({}, {"increase": ["ratio"]}, "direction"),
        ({"range": (0.6, 4.0)}, None, "range"),
        ({"direction": "increase"}, None, "direction"),
    ],
)
def test_a_rule_on_a_ratio_is_named_where_it_stands_in_the_way(
    own: dict[str, Any], stated: Any, kind: str
) -> None:
    schema = SCHEMA.with_feature("ratio", **own)
    method = NearestNeighbour(low_ratio, schema).fit(X)
    (plan,) = method.plans(AT_EDGE, rules=stated)
    assert (plan.status, plan.reason_code) == ("no-plan", "rules-block")
    assert [(o.kind, o.feature.name) for o in plan.blocking_rules if o.feature] == [(kind, "ratio")]
    assert NearestNeighbour(low_ratio, SCHEMA).fit(X).plans(AT_EDGE)[0].status == "ok"


def test_a_request_may_rule_on_a_ratio(genre: GenRe) -> None:
    rules = {"ranges": {"ratio": [None, 0.4]}}
    rejected = PEOPLE[score(PEOPLE) <= 0.5]
    after = genre.recourse(rejected, rules=rules)
    moved = (after["ratio"] - rejected["ratio"]).abs() > 1e-9
    assert moved.any()
    assert (after["ratio"][moved] <= 0.4 + 1e-9).all()
    assert (genre.assess(rejected, after, rules)["status"] != "rule-broken").all()


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"lock": ["age"]}, "'lock' names 'age', which time moves"),
        ({"ranges": {"age": [20, 30]}}, "'ranges' names 'age', which time moves"),
        ({"allowed": {"age": [30]}}, "'allowed' names 'age', which time moves"),
        ({"decrease": "age"}, "'decrease' names 'age', which time moves"),
        ({"max_step": {"age": 2}}, "'max_step' names 'age', which time moves"),
        ({"lock": ["sex"]}, "'lock' names 'sex', which is protected"),
        ({"allowed": {"sex": ["f"]}}, "'allowed' names 'sex', which is protected"),
        ({"relations": ["if sex = f then hours >= 20"]}, "which is protected"),
    ],
)
def test_no_rule_is_passed_over_in_silence(rule: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        request_book(rule, RULES, X)
    with pytest.raises(UserError, match=said):  # of one person too, here or not
        request_book({"people": {7: rule}}, RULES, X)
    request_book({"relations": ["if hours > 40 then age >= 18"]}, RULES, X)


def test_a_rule_that_names_what_is_protected_is_refused(genre: GenRe) -> None:
    with pytest.raises(UserError, match="protected"):
        genre.plans(PEOPLE, rules={"relations": ["if sex = f then hours >= 20"]})


def test_the_likelihood_knows_roles(genre: GenRe) -> None:
    rejected = PEOPLE[score(PEOPLE) <= 0.5]
    after = genre.recourse(rejected)
    assert np.isfinite(genre.log_prob(after, given=rejected)).all()
    older = after.assign(age=after["age"] + 1)
    assert (genre.log_prob(older, given=rejected) == -np.inf).all()
    other = after.assign(sex=np.where(after["sex"] == "f", "m", "f"))
    assert (genre.log_prob(other, given=rejected) == -np.inf).all()


def test_a_model_file_keeps_roles(genre: GenRe, tmp_path: Path) -> None:
    genre.save(tmp_path / "model")
    again = load(tmp_path / "model", score)
    assert again.plans(PEOPLE[:10]).to_json() == genre.plans(PEOPLE[:10]).to_json()


@pytest.mark.parametrize("kind", [NearestNeighbour, GrowingSpheres])
def test_other_methods_keep_roles(kind: Any) -> None:
    method = fitted(kind)
    after = method.recourse(PEOPLE)
    for cells in broken_rules(SCHEMA, PEOPLE, after).values():
        assert not cells.to_numpy().any()
    assert (method.assess(PEOPLE, after)["status"] == "ok").sum() > 5
    flipped = method.recourse(FLIPPED)
    pd.testing.assert_frame_equal(flipped.assign(sex=0), after.assign(sex=0))
    assert (flipped["sex"] == FLIPPED["sex"]).all()


def test_an_h_that_reads_it_is_shown_each_persons_own_value() -> None:
    """And it is said aloud that it does."""
    method = NearestNeighbour(reads_sex, SCHEMA)
    with pytest.warns(UserWarning, match="the model uses 'sex': changing it alone"):
        method.fit(X, (score(X) > 0.5).astype(int))
    for table in (PEOPLE, FLIPPED):
        for plan, (_, row) in zip(method.plans(table), table.iterrows(), strict=True):
            if plan.status == "ok":
                after = carried_out(plan, row.to_frame().T.astype(table.dtypes))
                assert (after["sex"] == row["sex"]).all()
                assert plan.score_after == pytest.approx(reads_sex(after)[0])


def test_existing_schemas_are_written_as_before() -> None:
    told = json.loads(Schema.infer(X).to_json())
    assert all("formula" not in f and "horizon" not in f for f in told["features"])
