"""The wording of plans, what they never tell, and the draws that they were chosen from."""

from __future__ import annotations

import io
import json
import warnings
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from genrecourse.advice.plan_table import plan_table
from genrecourse.advice.recheck import recheck
from genrecourse.errors import UserError
from genrecourse.evaluation.checks import Example, example_score, make_example
from genrecourse.methods.genre import GenRe
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.model.classifier import Classifier
from genrecourse.planning.binomial import Share
from genrecourse.planning.plans import (
    BlockingRule,
    Change,
    Evidence,
    Plan,
    Plans,
    Row,
    in_words,
    score_words,
)
from genrecourse.planning.promised import Promise
from genrecourse.planning.wording import Wording, english
from genrecourse.reports.console import _plan, panel
from genrecourse.table.schema import Feature, Schema

SCRIPT = "<script>alert('x')</script>"
AMOUNT = Feature(name="amount", kind="number", decimals=0, unit="DM", wording="credit amount")
REAL = Feature(name="ratio", kind="number")


def number(**fields: Any) -> Feature:
    return Feature(name="n", kind="number", **fields)


# ---- values in words --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feature", "value", "words"),
    [
        (AMOUNT, 4870, "4,870 DM"),
        (AMOUNT, np.int64(1234567), "1,234,567 DM"),
        (AMOUNT, -0.0, "0 DM"),
        (number(decimals=2), 1200.5, "1,200.50"),
        (number(decimals=1), np.float32(0.1), "0.1"),
        (number(decimals=0), 2.37, "2.37"),  # more decimals than the training rows had
        (REAL, 48321.77, "48,322"),
        (REAL, 12.3456, "12.3"),
        (REAL, 0.0123456, "0.0123"),
        (REAL, 0.5, "0.5"),
        (REAL, 0.0, "0"),
        (REAL, 1.23456e-9, "1.23e-09"),
        (number(unit="$", decimals=0), 4870, "$4,870"),
        (number(unit="€", decimals=0), -4870, "-€4,870"),
        (number(unit="US$", decimals=0), 5, "US$5"),
        (number(unit="%", decimals=0), 12, "12%"),
        (number(unit="months", decimals=0), 1, "1 month"),
        (number(unit="months", decimals=0), 12, "12 months"),
        (number(missing=True), np.nan, "not given"),
        (number(missing=True), pd.NA, "not given"),
        (number(missing=True), None, "not given"),
    ],
)
def test_a_number_is_written_as_people_write_it(feature: Feature, value: Any, words: str) -> None:
    assert in_words(feature, value) == words


def test_a_level_is_written_as_it_is_and_a_truth_as_yes_or_no() -> None:
    flag = Feature(name="member", kind="category", categories=(False, True))
    rooms = Feature(name="rooms", kind="category", categories=(1, 2), unit="rooms")
    text = Feature(name="job", kind="category", categories=("none",), unit="ignored")
    assert [in_words(flag, v) for v in (True, np.bool_(False))] == ["yes", "no"]
    assert in_words(rooms, 2) == "2 rooms"
    rate = Feature(name="rate", kind="category", categories=(0.12345, 0.12349, 2019))
    assert [in_words(rate, v) for v in rate.categories] == ["0.12345", "0.12349", "2019"]
    assert Change(rate, 2019, 0.12349).said == 0.12349
    assert in_words(text, "none") == "none"


def test_a_change_shows_as_many_digits_as_it_takes_to_see_it() -> None:
    assert Change(REAL, 0.123411, 0.123499).words == ("0.1234", "0.1235")
    assert Change(number(decimals=0), 2.0000001, 2.0).words == ("2.0000001", "2")
    assert Change(AMOUNT, 4870, 2900).to_text() == "credit amount: 4,870 DM → 2,900 DM"


def test_scores_show_on_which_side_of_the_cutoff_they_are() -> None:
    assert score_words(0.31, 0.72, 0.5) == ["0.31", "0.72", "0.50"]
    assert score_words(0.4996, 0.5004, 0.5) == ["0.4996", "0.5004", "0.5000"]
    assert score_words(600.0, 655.0, 640.0) == ["600", "655", "640"]
    assert score_words(0.5, 0.5) == ["0.50", "0.50"]  # at the cutoff is not above it


# ---- a plan -----------------------------------------------------------------------------------


def told(*changes: Change, person: Any = 7, **fields: Any) -> Plan:
    return Plan(person, "ok", 0.31, 0.5, changes, 0.72, 0.413, **fields)


def test_a_plan_in_text() -> None:
    plan = told(Change(AMOUNT, 4870, 2900), log_likelihood=-6.21)
    assert plan.to_text() == (
        "7: what would change the model's decision\n"
        "  credit amount: 4,870 DM → 2,900 DM\n"
        "  model's score 0.31 → 0.72 (favourable above 0.50), cost 0.41, log-likelihood -6.2"
    )


def refused(code: str = "not-accepted", **fields: Any) -> Plan:
    return Plan(fields.pop("person", 7), "no-plan", 0.31, 0.5, reason_code=code, **fields)


@pytest.mark.parametrize("code", [*english().under("reasons"), "out-of-time"])
def test_every_reason_is_a_sentence_and_none_promises_an_approval(code: str) -> None:
    plan = refused(code) if code != "already-accepted" else Plan(7, code, 0.31, 0.5)
    assert plan.reason.endswith(".")
    assert plan.reason in plan.to_text()
    assert "approv" not in (plan.to_text() + plan.purpose).lower()
    assert "→" not in plan.to_text() + plan.to_html()


def test_a_code_that_is_not_known_still_has_a_reason() -> None:
    assert "out-of-time" in refused("out-of-time").reason


@pytest.mark.parametrize(
    ("proven", "most", "said"),
    [
        (True, 50, "Proven for up to two changes"),
        (False, 50, "Searched on a grid, not proven"),
        (False, 0, "Searched, not proven"),
    ],
)
def test_a_reason_says_what_it_rests_on(proven: bool, most: int, said: str) -> None:
    plan = refused(evidence=Evidence(proven, 12345, most, 96))
    assert said in plan.reason
    assert ("Proven" in plan.reason) == proven
    assert all(number in plan.reason for number in ("12,345", "96"))
    assert ("at most 50 values" in plan.reason) == (said == "Searched on a grid, not proven")
    assert plan.to_dict()["evidence"]["said"] == ("proven" if proven else "searched")


def test_where_nothing_may_change_nothing_was_tried() -> None:
    reason = refused("nothing-may-change", evidence=Evidence(True, 0, 0, 96)).reason
    assert reason == english()("reasons.nothing-may-change")


@pytest.mark.parametrize(("proven", "most"), [(True, 50), (False, 50), (False, 0)])
def test_one_try_is_counted_as_one(proven: bool, most: int) -> None:
    reason = refused(evidence=Evidence(proven, 1, most, 1)).reason
    assert "1 tries" not in reason
    assert "1 changes" not in reason
    assert "number of changes: 1)" in reason
    assert "number of tries: 1)" in reason


def test_a_rule_that_blocks_is_told_as_what_it_is() -> None:
    opening = BlockingRule("lock", AMOUNT, (Change(AMOUNT, 4870, 2900),), 0.7, 0.4)
    plan = refused("rules-block", blocking_rules=(opening,))
    assert opening.to_text() == (
        "This is about a rule and is not a plan: without the rule “credit amount must not change”, "
        "this would change the model's decision: credit amount: 4,870 DM → 2,900 DM."
    )
    assert opening.to_text() in plan.to_text()
    assert plan.changes == ()
    assert plan.to_dict()["blocking_rules"][0]["changes"][0]["after"] == 2900
    lines = plan_table(Plans((plan,)), pd.DataFrame({"amount": [4870]}), Schema(features=(AMOUNT,)))
    assert lines["about_rules"].tolist() == [opening.to_text()]
    told = {
        ("direction", "direction"): ({"direction": "increase"}, "credit amount may only rise"),
        ("step", "max_step"): ({"max_step": 500.0}, "credit amount changes by at most 500 DM"),
        ("range", "range"): ({"range": (0, np.inf)}, "credit amount stays between 0 DM and ∞ DM"),
    }
    for (kind, _), (fields, words) in told.items():
        assert BlockingRule(kind, AMOUNT.model_copy(update=fields), (), 0.7, 0.4).rule == words
    level = Feature(name="job", kind="category", categories=("a", "b"))
    for kind, feature, value, words in [
        ("lock", AMOUNT, None, "credit amount must not change"),
        ("allowed", AMOUNT, (2000, 1), "credit amount may only become one of: 2,000 DM, 1 DM"),
        ("allowed", level, ("a",), "job may only become one of: a"),
        ("max_changes", None, 2, "at most 2 changes"),
        ("max_changes", None, 1, "at most one change"),
        ("max_cost", None, 0.5, "a cost of at most 0.5"),
        ("relation", None, "a <= b", "a <= b"),
    ]:
        assert BlockingRule(kind, feature, (), 0.7, 0.4, value).rule == words


def test_nobody_is_told_to_be_of_another_sex() -> None:
    """A rule that lets something stay as nobody can change it is for whoever wrote the rules."""
    sex = Feature(name="sex", kind="category", categories=("f", "m"), role="immutable")
    opening = BlockingRule("immutable", sex, (Change(sex, "f", "m"),), 0.7, 1.0)
    plan = refused("rules-block", blocking_rules=(opening,))
    row = pd.Series({"sex": "f"})
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(panel(Schema(features=(sex,)), row, plan))
    for said in (plan.to_text(), plan.to_html(), plan.to_json(), console.export_text()):
        assert "→ m" not in said
        assert '"m"' not in said
    assert "something that a person cannot change" in plan.to_text()
    assert plan.blocking_rules == (opening,)  # the lint counts it
    lock = BlockingRule("lock", AMOUNT, (Change(AMOUNT, 4870, 2900),), 0.7, 2.0)
    both = refused("rules-block", blocking_rules=(opening, lock))
    assert lock.to_text() in both.to_text()


def test_what_a_plan_bears_is_told_wherever_it_is_shown() -> None:
    """Promise, retrained, imprecise, what follows and what it is not: terminal and table alike."""
    follows = Change(REAL, 0.25, 0.125)
    second = told(Change(AMOUNT, 4870, 100), imprecise=Share(1, 32))
    plan = told(
        Change(AMOUNT, 4870, 2900),
        consequences=(follows,),
        promise=Promise(0.9, 0.1, 0.5),
        retrained=Share(7, 8),
        imprecise=Share(30, 32),
        alternatives=(second,),
    )
    console = Console(width=400, record=True, file=io.StringIO())
    schema = Schema(features=(AMOUNT, REAL))
    X = pd.DataFrame({"amount": [4870], "ratio": [0.25]})
    console.print(*_plan(plan))
    shown = " ".join(console.export_text().split())
    for sentence in (*plan.prospects, *second.prospects, english()("plan.note")):
        assert sentence in shown
    assert follows.to_text() in shown
    lines = plan_table(Plans((plan,)), X, schema)
    assert lines["then_changes_by_itself"].tolist() == [follows.to_text(), ""]
    assert lines["promise"].tolist()[0] == 0.9
    assert lines["promise"].isna().tolist() == [False, True]
    assert lines["accepted_by_retrained"].tolist()[0] == 7 / 8
    assert lines["accepted_with_noise"].tolist() == [30 / 32, 1 / 32]
    assert all(sentence in lines["how_sturdy"][0] for sentence in plan.prospects)
    assert set(lines["note"]) == {english()("plan.note")}
    assert lines["new ratio"].tolist() == [0.125, 0.25]


AGE = Feature(name="age", kind="number", decimals=0, unit="years", role="advances", horizon=1)


def test_what_moves_by_itself_is_no_part_of_the_score() -> None:
    """On a line of its own, below the changes, and with the time that it takes."""
    plan = told(Change(AMOUNT, 4870, 2900), consequences=(Change(AGE, 26, 27),))
    lines = plan.to_text().splitlines()
    assert "26 years" not in plan.facts
    assert lines[1] == "  credit amount: 4,870 DM → 2,900 DM"
    assert "changes by itself" in lines[2]
    assert lines[2].endswith("age: 26 years → 27 years (as time passes, within 1 year)")
    assert lines[3].startswith("  model's score")
    assert lines[2].strip() in plan.to_html()
    without = (AGE.model_copy(update={"unit": ""}), AGE.model_copy(update={"unit": "km"}), REAL)
    for feature in without:  # 1 of what is no time
        other = told(Change(AMOUNT, 4870, 2900), consequences=(Change(feature, 26, 27),))
        assert "as time passes" not in other.to_text()
    assert told(Change(AMOUNT, 4870, 2900)).follows == ""


def test_a_terminal_shows_the_whole_wording() -> None:
    wording = "dependants (class 1: three or more, 2: up to two)"
    feature = Feature(name="dependants", kind="number", decimals=0, wording=wording)
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(panel(Schema(features=(feature,)), pd.Series({"dependants": 1}), refused()))
    shown = console.export_text().replace("│", " ")
    assert f"{wording}: 1" in " ".join(shown.split())


def test_a_value_stays_on_one_line_of_a_page() -> None:
    level = Feature(name="account", kind="category", categories=("none", ">= 200 DM", "a" * 20))
    html = told(Change(level, "none", ">= 200 DM"), Change(AMOUNT, 4870, 2900)).changes_html()
    assert "→\u00a0&gt;=\u00a0200\u00a0DM<" in html
    assert "4,870\u00a0DM<" in html
    long = "existing credits paid so far"
    level = level.model_copy(update={"categories": ("none", long)})
    html = told(Change(level, "none", long)).changes_html()
    assert f"→\u00a0{long}<" in html  # which may break


def test_plans_outlive_a_file_with_their_whole_rows() -> None:
    table = pd.DataFrame({"amount": [2900, 100], "ratio": [0.5, 0.25], "job": ["a", None]})
    second = told(Change(AMOUNT, 4870, 100), imprecise=Share(1, 32), row=Row(table, 1))
    plan = told(
        Change(AMOUNT, 4870, 2900),
        Change(Feature(name="job", kind="category", categories=("a", "b")), "b", "a"),
        consequences=(Change(REAL, 0.25, 0.5), Change(AGE, 26, 27)),
        promise=Promise(0.9, 0.1, 0.5, 0.8, 15, 100, 50.0, 0.1),
        retrained=Share(7, 8),
        cheapest=Evidence(True, 12, 50, 3),
        row=Row(table, 0),
        alternatives=(second,),
    )
    lost = refused("no-promise", person="x", evidence=Evidence(False, 9, 8, 7))
    plans = Plans((lost, plan, Plan(9, "already-accepted", 0.7, 0.5)))
    again = Plans.from_json(plans.to_json())
    assert again.to_json() == plans.to_json()
    assert again.to_text() == plans.to_text()
    pd.testing.assert_frame_equal(again.x_plus(), plans.x_plus())
    found = recheck(again, Classifier(lambda X: X["ratio"], cutoff=0.3))
    assert found["holds"].tolist() == [True, False]
    odd = (("[", "not JSON"), ("{}", "a list of plans"), ('[{"a": 1}]', "not written by"))
    for text, said in odd:
        with pytest.raises(UserError, match=said):
            Plans.from_json(text)


def test_rows_from_json_have_the_dtypes_of_a_table() -> None:
    kinds = pd.CategoricalDtype(["a", "b"], ordered=True)
    jobs, n = pd.Series(["a", "b"], dtype=kinds), pd.Series([1, None], dtype="Int64")
    X = pd.DataFrame({"job": jobs, "n": n})
    plan = told(Change(AMOUNT, 4870, 2900), row=Row(X, 0), alternatives=(told(row=Row(X, 1)),))
    text = Plans((plan,)).to_json()
    assert Plans.from_json(text).x_plus()["job"].dtype != kinds
    again = Plans.from_json(text, like=X.iloc[:1]).x_plus()
    pd.testing.assert_frame_equal(again, X.set_axis([7, 7]))
    by_code = Classifier(lambda X: 0.2 + 0.6 * X["job"].cat.codes)
    assert recheck(Plans.from_json(text, like=X), by_code)["holds"].tolist() == [False, True]
    with pytest.raises(UserError, match="the plans have values of 'job'"):
        Plans.from_json(text, like=pd.DataFrame({"job": [1.5]}))


def test_words_around_plans_from_json_are_of_the_language_asked_for(tmp_path: Path) -> None:
    shipped = files("genrecourse.planning.wording") / "en.toml"
    comma = shipped.read_text(encoding="utf-8").replace('decimal = "."', 'decimal = ","')
    file = tmp_path / "de.toml"
    file.write_text(comma.replace('thousands = ","', 'thousands = "."'), encoding="utf-8")
    words = Wording.of(file)
    plan = told(Change(AMOUNT, 4870, 2900, words), language=words)
    again = Plans.from_json(Plans((plan,)).to_json(), language=file)
    assert "0,31 → 0,72" in again.to_text()
    assert again.to_text() == Plans((plan,)).to_text()


def test_several_plans_of_one_person_are_told_one_after_the_other() -> None:
    second = told(Change(REAL, 0.1, 0.9))
    plan = told(Change(AMOUNT, 4870, 2900), alternatives=(second,))
    assert plan.every == (plan, second)
    assert plan.to_text().count("model's score") == 2
    assert plan.to_text().index("2,900 DM") < plan.to_text().index("or, in another way")
    assert plan.to_html().count("<table") == 2
    assert len(plan.to_dict()["alternatives"]) == 1
    frame = Plans((plan, refused(person=8))).to_frame()
    assert frame["number"].tolist() == [1, 2, None]
    assert frame["after"].tolist() == [2900, 0.9, None]
    assert frame["status"].tolist() == ["ok", "ok", "no-plan"]
    assert "no promise" in Plans((plan,)).to_text()


@pytest.mark.parametrize(
    "kept",
    [
        {"changes": (Change(AMOUNT, 1, 2),)},
        {"score_after": 0.4},
        {"cost": 1.0},
        {"alternatives": (Plan(7, "already-accepted", 0.6, 0.5),)},
    ],
)
def test_a_plan_that_failed_cannot_even_be_made(kept: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="only a plan with the status 'ok'"):
        refused(**kept)


@pytest.mark.parametrize(("status", "code"), [("rejected", ""), ("no-plan", ""), ("ok", "x")])
def test_a_status_comes_with_its_reason_or_with_none(status: str, code: str) -> None:
    with pytest.raises(ValueError, match="status"):
        Plan(7, status, 0.31, 0.5, reason_code=code)


def test_html_escapes_names_values_and_labels() -> None:
    evil = Feature(name="a", kind="category", categories=(SCRIPT, "b"), wording=SCRIPT)
    html = Plans((told(Change(evil, SCRIPT, "b"), person=SCRIPT),))._repr_html_()
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 3


# ---- several plans ----------------------------------------------------------------------------


def test_plans_are_a_sequence_and_found_by_label() -> None:
    one, two = told(Change(AMOUNT, 4, 3), person="a"), refused(person="b")
    plans = Plans((one, two))
    assert (len(plans), list(plans), plans[1]) == (2, [one, two], two)
    assert plans[:1] == Plans((one,))
    assert plans.of("b") is two
    with pytest.raises(UserError, match="no plan for 'c'; the labels of the 2 people are 'a', 'b'"):
        plans.of("c")
    with pytest.raises(UserError, match="2 people have the label 'a'"):
        Plans((one, one)).of("a")


@pytest.fixture(scope="module")
def example() -> Example:
    return make_example()


@pytest.fixture(scope="module")
def plans(method: GenRe, example: Example) -> Plans:
    return method.plans(example.people)


def test_plans_tell_what_recourse_changes_and_only_where_it_holds(
    method: GenRe, example: Example, plans: Plans
) -> None:
    X_plus = method.recourse(example.people)
    found = method.assess(example.people, X_plus)
    assert [p.person for p in plans] == list(example.people.index)
    assert {"ok", "not-accepted", "already-accepted"} <= set(found["status"])
    same = 0
    for i, plan in enumerate(plans):
        if found["status"].iloc[i] != "ok":  # then by trying all, or not at all
            assert plan.status != "already-accepted" or found["score"].iloc[i] > 0.5
            assert plan.status == "ok" or (plan.changes, plan.cost) == ((), None)
            continue
        assert plan.status == "ok"
        assert plan.changes
        assert all(change.words[0] != change.words[1] for change in plan.changes)
        given, x = X_plus.iloc[i], example.people.iloc[i]
        # recourse's, without what is not needed; or a sturdier one
        theirs = {c.feature.name: c.after for c in plan.changes}
        same += all(given[name] == after != x[name] for name, after in theirs.items())
    assert same > 0.8 * (found["status"] == "ok").sum()


def test_a_plan_holds_as_it_is_worded() -> None:
    """The model accepts from just below a training value on, which three digits would round down:
    whoever does what the words say must be accepted as well."""
    values = np.random.default_rng(0).random(80) * 10
    edge = next(v for v in np.sort(values)[40:] if float(f"{v:.3g}") < v - 1e-4) - 1e-5
    X = pd.DataFrame({"a": values})

    def by_a(X: pd.DataFrame) -> np.ndarray:
        return np.where(X["a"] >= edge, 0.9, 0.1)

    method = NearestNeighbour(by_a, Schema.infer(X)).fit(X, X["a"] >= edge)
    shown = method.plans(X[X["a"] < edge]).shown
    assert len(shown) > 30
    for plan in shown:  # nobody accepted is nearer than who stands on the edge
        (change,) = plan.changes
        assert edge <= float(change.words[1]) == change.said
        assert float(f"{change.after:.3g}") < edge


def test_likelihood_is_the_methods_own(method: GenRe, example: Example, plans: Plans) -> None:
    x_plus = plans.x_plus()
    log_prob = method.log_prob(x_plus, given=example.people.loc[x_plus.index])
    said = [-np.inf if p.log_likelihood is None else p.log_likelihood for p in plans.shown]
    assert np.allclose(np.array(said, dtype=float), log_prob, rtol=1e-4)
    assert np.isfinite(log_prob).sum() > 20


def test_a_method_without_a_density_has_no_likelihood(example: Example) -> None:
    nearest = NearestNeighbour(example_score, example.schema).fit(example.X, example.y)
    plans = nearest.plans(example.people)
    assert any(plan.status == "ok" for plan in plans)
    assert {plan.log_likelihood for plan in plans} == {None}


def test_json_is_strict_and_whole(plans: Plans) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    read = json.loads(plans.to_json(), parse_constant=refuse)
    assert read == [plan.to_dict() for plan in plans]
    odd = told(Change(REAL, np.nan, 1.0), person=(pd.Timestamp("2024-01-01"), 2))
    again = json.loads(odd.to_json(), parse_constant=refuse)
    assert again["changes"][0]["before"] is None
    assert "2024" in again["person"]


def test_a_plan_of_zero_likelihood_is_still_json(example: Example) -> None:
    class NoMass(NearestNeighbour):
        def log_prob(self, x_plus: pd.DataFrame, given: pd.DataFrame) -> pd.Series:
            return pd.Series(-np.inf, index=given.index)

    plans = NoMass(example_score, example.schema).fit(example.X, example.y).plans(example.people)
    assert "Infinity" not in plans.to_json()


def test_the_frame_has_a_row_for_each_change_and_for_each_person_without(plans: Plans) -> None:
    frame = plans.to_frame()
    assert len(frame) == sum(max(1, len(plan.changes)) for plan in plans)
    assert frame["number"].dropna().eq(1).all()
    assert list(dict.fromkeys(frame["person"])) == [plan.person for plan in plans]
    changes = frame[frame["feature"].notna()]
    assert list(changes["after"]) == [c.after for plan in plans for c in plan.changes]
    without = frame[frame["feature"].isna()]
    assert (without["reason"] != "").all()
    assert without["score_after"].isna().all()
    assert frame["score_before"].dtype == np.float64


# ---- draws ------------------------------------------------------------------------------------


def test_the_chosen_draw_is_what_recourse_gives_back(example: Example) -> None:
    """Where nothing is retrieved and nothing refined, there is nothing but the draws."""
    params = GenRe._test_params() | {"retrieve": False, "refine": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of people without a target
        method = GenRe(example_score, example.schema, **params).fit(example.X, example.y)
    draws = method.draws(example.people)
    rejected = ~method.classifier_.accepts(example.people)
    chosen = draws["chosen"].to_numpy().reshape(len(example.people), method.n_draws_)
    assert (chosen.sum(axis=1) == rejected).all()  # people already accepted are left as they are
    given = method.sample(example.people, method.n_draws_)[draws["chosen"]].droplevel("draw")
    expected = method.recourse(example.people)[rejected]
    pd.testing.assert_frame_equal(given, expected, check_names=False)


def test_draws_have_the_cost_score_and_likelihood_of_the_draw(
    method: GenRe, example: Example
) -> None:
    people = example.people.iloc[:5]
    draws, rows = method.draws(people, n=3), method.sample(people, n=3)
    assert draws.index.equals(rows.index)
    given = people.loc[rows.index.get_level_values("row")]
    rows = rows.set_axis(given.index, axis="index")
    found = method.assess(given, rows)
    assert np.allclose(draws["score"], found["score_plus"])
    assert np.allclose(draws["cost"], found["cost"])
    assert np.allclose(draws["log_likelihood"], method.log_prob(rows, given=given), rtol=1e-4)
