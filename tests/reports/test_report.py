"""The report opens anywhere, tells every plan, counts everybody, and says what it does not mean."""

from __future__ import annotations

import base64
import io
import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console

from genrecourse.apps import demo
from genrecourse.errors import UserError
from genrecourse.evaluation.checks import Example, example_score, make_example
from genrecourse.evaluation.evaluate import Case, make_case
from genrecourse.methods import METHODS
from genrecourse.methods.base import Method
from genrecourse.methods.genre import GenRe
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.planning.plans import Change, Plan, Plans
from genrecourse.planning.wording import english
from genrecourse.reports import plots
from genrecourse.reports.console import _plan
from genrecourse.reports.html import CSS
from genrecourse.reports.plan_report import _draws_note, report_html, score_table, write_report
from genrecourse.reports.plots import before_after, cost_against_likelihood, svg
from genrecourse.rules.kinds import Rules
from genrecourse.rules.policy import Policy
from genrecourse.rules.stated import PersonalRules
from genrecourse.table.schema import Feature

SCRIPT = "<script>alert('x')</script>"
SCORES = pd.DataFrame(
    {"cost": 0.5, "val": 0.75, "lof": 1.0, "score": 1.7, "h_valid": 0.5, "changes": 2.25, "n": 8},
    index=["GenRe", SCRIPT],
)


@pytest.fixture(scope="module")
def example() -> Example:
    made = make_example()
    schema = made.schema.with_feature("debt", wording=SCRIPT, unit="$")
    return Example(made.X, made.y, made.people, schema)


@pytest.fixture(scope="module")
def people(example: Example) -> pd.DataFrame:
    return example.people[example_score(example.people) <= 0.5]


@pytest.fixture(scope="module")
def page(method: GenRe, people: pd.DataFrame) -> str:
    return report_html(
        method, people, title=f"Loans {SCRIPT}", shown=6, scores=SCORES, facts={"licence": SCRIPT}
    )


def pictures(page: str) -> list[str]:
    found = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    return [base64.b64decode(data).decode() for data in found]


def words(page: str) -> str:
    """The page without its pictures, tags and entities."""
    text = re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*?</style>", "", page, flags=re.S))
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&#x27;", "'")


def test_nothing_is_loaded_from_elsewhere(page: str) -> None:
    outside = re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?(?!data:)[^"\')\s]+', page)
    assert outside == []
    assert "http" not in page
    assert "@import" not in page
    for picture in pictures(page):
        assert not re.search(r'href="(?!#)', picture)  # only to names within


def test_everything_from_outside_is_escaped(page: str) -> None:
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 4
    assert not any("<script" in picture for picture in pictures(page))


def test_every_plan_is_told_and_none_that_failed(
    page: str, method: GenRe, people: pd.DataFrame
) -> None:
    text = words(page)
    plans = method.plans(people)
    for plan in plans:
        assert str(plan.person) in text
        assert all(change.to_text() in text for change in plan.changes)
    for plan in plans[:6]:
        assert all(sentence in text for sentence in plan.prospects)
    assert "it is no promise of another decision" in text
    ok = sum(plan.status == "ok" for plan in plans)
    assert f"{ok} of {len(plans)}" in text
    assert sum(plan.status == "ok" for plan in plans[:6]) == text.count("Ring: today.") > 0


def test_who_has_no_plan_is_told_why_and_what_it_rests_on(example: Example) -> None:
    def by_age(X: pd.DataFrame) -> np.ndarray:  # which nobody can change
        return np.where(X["age"] > 40, 0.9, 0.1)

    method = NearestNeighbour(by_age, example.schema).fit(example.X, example.y)
    people = example.people[example.people["age"] <= 40].head(3)
    plans = method.plans(people)
    assert {plan.reason_code for plan in plans} == {"rules-block"}
    text = words(report_html(method, people, n=2))
    assert "0 of 3" in text
    assert "Ring: today." not in text
    for plan in plans:
        assert plan.reason in text
        assert "age cannot change" in plan.blocking_rules[0].to_text()
        assert plan.blocking_rules[0].to_text() not in text
        assert "something that a person cannot change" in text


def test_who_has_no_plan_is_told_of_the_rule_in_the_table_too(example: Example) -> None:
    def by_debt(X: pd.DataFrame) -> np.ndarray:
        return np.where(X["debt"] <= 5, 0.9, 0.1)

    method = NearestNeighbour(by_debt, example.schema).fit(example.X, example.y)
    people = example.people[example.people["debt"].between(6, 8)]
    locked = Rules(lock=("debt",))
    plans = method.plans(people, rules=locked)
    assert len(plans) > 1
    assert {plan.reason_code for plan in plans} == {"rules-block"}
    text = words(report_html(method, people, shown=1, rules=locked))
    assert all("about a rule" in plan.about_rules for plan in plans)
    assert all(f"{plan.reason} ({plan.about_rules})" in text for plan in plans)
    assert text.count("This is about a rule") == 1 + len(
        plans
    )  # the first person is told in full, too


def test_what_recourse_is_not_is_said_before_the_first_plan(
    method: GenRe, people: pd.DataFrame
) -> None:
    text = words(report_html(method, people, n=3, shown=2))
    note = english()("plan.note")
    assert text.count(note) == 1
    assert text.index(note) < text.index("what would change the model's decision")


def test_why_the_first_plan_is_the_first_is_said_where_there_are_others(
    method: GenRe, people: pd.DataFrame, example: Example
) -> None:
    weighed, chosen = (english()(f"report.first_{how}") for how in ("weighed", "chosen"))
    several, one = (words(report_html(method, people, n=n, shown=2)) for n in (3, 1))
    assert weighed in several
    assert weighed not in one
    nearest = NearestNeighbour(example_score, example.schema).fit(example.X, example.y)
    assert getattr(nearest, "verifier_", None) is None  # nothing that could weigh
    text = words(report_html(nearest, people, n=3, shown=4))
    assert "Another way" in text
    assert chosen in text
    assert weighed not in text


def rings(page: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> list[list[list[float]]]:
    """Where the ring is in each picture of draws that a page draws."""
    axes = []

    def draw(on: Callable[[Axes], None], *size: float) -> str:
        axes.append(Figure().add_subplot())
        on(axes[-1])
        return ""

    monkeypatch.setattr(plots, "svg", draw)
    page()
    drawn = [ax for ax in axes if "likelihood" in ax.get_ylabel()]
    return [
        [
            list(map(float, point))
            for each in ax.collections
            if str(each.get_label()).endswith("plan")
            for point in each.get_offsets()
        ]
        for ax in drawn
    ]


def test_the_ring_is_around_the_first_plan(
    method: GenRe, people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it was drawn, refined, or found by trying all changes."""
    first = [plan for plan in method.plans(people, 2)[:12] if plan.status == "ok"]
    found = rings(lambda: report_html(method, people, n=2, shown=12), monkeypatch)
    assert len(found) == len(first) > 5
    for plan, ring in zip(first, found, strict=True):
        assert ring == [pytest.approx([plan.cost, plan.log_likelihood])]


def test_a_plan_that_was_not_drawn_is_told_as_such(method: GenRe, people: pd.DataFrame) -> None:
    draws = method.draws(people.head(1))
    one = draws.iloc[3]
    plan = method.plans(people)[0]
    drawn = replace(plan, cost=one["cost"], log_likelihood=one["log_likelihood"])
    apart = replace(drawn, cost=one["cost"] + 0.1)
    nowhere = replace(drawn, log_likelihood=None)
    said = [_draws_note(each, draws) for each in (drawn, apart, nowhere)]
    assert said == ["draws_note", "draws_note_apart", "draws_note_nowhere"]
    svg(lambda ax: cost_against_likelihood(ax, draws, nowhere))


@pytest.fixture(scope="module")
def timely(example: Example) -> NearestNeighbour:
    """Time moves the age."""
    schema = example.schema.with_feature("age", role="advances", horizon=1, unit="years")
    return NearestNeighbour(example_score, schema).fit(example.X, example.y)


def marked(page: str) -> dict[str, str]:
    """What the first person's profile says of each feature."""
    profile = page.split('<dl class="profile">')[1].split("</dl>")[0]
    return dict(re.findall(r"<dt>([^<]*?)(?: <i>([^<]*)</i>)?</dt>", profile))


def test_what_moves_with_time_is_not_called_fixed(
    timely: NearestNeighbour, people: pd.DataFrame
) -> None:
    page = report_html(timely, people)
    assert marked(page)["age"] == "changes with time"
    assert marked(page)["sex"] == "fixed"
    assert marked(page)["income"] == ""
    text = " ".join(words(page).split())
    assert re.search("cannot change sex changes with time age seed", text)


def test_what_a_request_locks_is_marked_as_fixed(
    timely: NearestNeighbour, people: pd.DataFrame
) -> None:
    own = {people.index[0]: Rules(lock="region"), people.index[1]: Rules(lock="years")}
    locks = PersonalRules(default=Rules(lock="member"), people=own)
    page = report_html(timely, people, rules=locks)
    fixed = {name for name, how in marked(page).items() if how == "fixed"}
    assert fixed == {"sex", "member", "region"}  # for everybody, and what binds this person
    assert "cannot change member, sex changes" in " ".join(words(page).split())


def test_features_that_nobody_is_asked_to_change_are_left_out(
    timely: NearestNeighbour, people: pd.DataFrame
) -> None:
    locks = Rules(lock=("member", "region", "years", "education"))
    page = report_html(timely, people, rules=locks)
    assert "region" not in pictures(page)[-1]
    assert ">0%<" not in pictures(page)[-1]
    asked = {
        change.feature.label
        for plan in timely.plans(people, rules=locks)
        for change in plan.changes
    }
    assert f"the {len(asked)} features that are asked for most" in page


def test_nobody_is_blamed_by_colour() -> None:
    plan = Plan(1, "ok", 0.3, 0.5, (Change(Feature(name="a", kind="number"), 1, 2),), 0.7, 1.0)
    assert plots.REJECTED not in svg(lambda ax: before_after(ax, plan, (0, 1)))
    assert "var(--no)" not in CSS.split(".profile .changed dd {")[1].split("}")[0]
    console = Console(width=80, record=True, file=io.StringIO(), force_terminal=True)
    console.print(*_plan(plan))
    assert "\x1b[31m" not in console.export_text(styles=True)


def test_further_plans_stand_below_the_first(method: GenRe, people: pd.DataFrame) -> None:
    plans = method.plans(people, 3)
    text = words(report_html(method, people, n=3, shown=2))
    assert text.count("Another way") == sum(len(plan.alternatives) for plan in plans[:2]) > 0
    assert f"All {sum(max(1, len(plan.every)) for plan in plans)} plans" in text


def test_rules_bind_the_plans_of_a_report_and_its_draws(
    method: GenRe, people: pd.DataFrame
) -> None:
    first, last = people.index[0], people.index[-1]
    asked = {plan.person: {c.feature.name for c in plan.changes} for plan in method.plans(people)}
    locks = {label: Rules(lock=asked[label]) for label in (first, last)}
    plans = method.plans(people, rules=locks)
    assert plans.of(first) != method.plans(people).of(first)
    text = words(report_html(method, people, shown=2, rules=locks))
    for plan in plans:
        assert all(change.to_text() in text for change in plan.changes)


def test_a_report_is_about_those_who_were_turned_down(method: GenRe, example: Example) -> None:
    everybody = example.people
    accepted = example_score(everybody) > 0.5
    assert 0 < accepted.sum() < len(everybody)
    text = words(report_html(method, everybody, shown=1))
    assert f"of {(~accepted).sum()} in the table" in text
    assert "nothing needs to change" not in text
    with pytest.raises(UserError, match=f"accepts all {accepted.sum()} people"):
        report_html(method, everybody[accepted])


def test_the_pictures_are_there(page: str, method: GenRe, people: pd.DataFrame) -> None:
    shown = [plan for plan in method.plans(people)[:6] if plan.status == "ok"]
    drawn = pictures(page)
    assert len(drawn) == 2 * len(shown) + 2  # before/after and draws; asked most, loss curve
    assert "model's score" in drawn[0]
    assert f"of {method.n_draws_} draws" in drawn[1]
    assert "%" in drawn[-2]
    assert f"step {method.fit_report_['training']['best_step']}" in drawn[-1]


def test_scores_come_with_their_denominators(page: str) -> None:
    heads, rows = score_table(SCORES)
    assert rows[0] == [
        "GenRe",
        "8",
        "1.700",
        "0.75 (6/8)",
        "1.00 (8/8)",
        "0.500",
        "0.50 (4/8)",
        "2.2",
    ]
    assert len(heads) == len(rows[0])
    assert all(cell in page for cell in rows[0])


def test_it_says_how_it_was_made_and_what_it_does_not_mean(page: str, method: GenRe) -> None:
    text = words(page)
    assert all(limit in text for limit in english().under("report.limit").values())
    assert f"gamma {method.gamma_:g}" in text
    assert "torch" in text
    assert "approv" not in text.lower()


def test_a_method_with_neither_draws_nor_loss_has_a_report_too(
    example: Example, people: pd.DataFrame, tmp_path: Path
) -> None:
    nearest: Method = NearestNeighbour(example_score, example.schema).fit(example.X, example.y)
    path = write_report(tmp_path / "new" / "report.html", nearest, people)
    text = path.read_text(encoding="utf-8")
    assert "How it learned" not in text
    assert "What people are asked to change most" in text


def test_a_picture_takes_any_words_and_missing_values() -> None:
    """Two "$" are no formula, letters need not be in our font, and NaN has no place on a track."""
    money = Feature(name="m", kind="number", unit="$", missing=True, range=(0, np.inf))
    job = Feature(name="职业", kind="category", categories=("工人", "$x_1$"), missing=True)
    changes = (Change(money, 4870.0, 2900.0), Change(money, None, 1.0), Change(job, None, "$x_1$"))
    plan = Plan(1, "ok", 600.0, 640.0, changes, 655.0, 1.0)
    picture = svg(lambda ax: before_after(ax, plan, (300.0, 850.0)))
    assert "$4,870 → $2,900" in picture
    assert "not given → $x_1$" in picture
    assert picture == svg(lambda ax: before_after(ax, plan, (300.0, 850.0)))
    ax = Figure().add_subplot()  # a user's own axes
    before_after(ax, plan, (300.0, 850.0))
    assert not any(text.get_parse_math() for text in ax.texts)


def test_a_page_with_fewer_plans_than_asked_for_says_why() -> None:
    X = pd.DataFrame({"income": range(80)})
    method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80).fit(X)
    page = words(report_html(method, X.head(1), n=3))  # one feature: there is no second way
    assert "3 plans were asked for, and 1 can be shown" in page
    assert "plans were asked for" not in words(report_html(method, X.head(1)))
    plans = Plans(tuple(replace(plan, is_fragile=True) for plan in method.plans(X.head(1))))
    page = words(report_html(method, X.head(1), n=3, plans=plans))
    assert "3 plans were asked for, and only this one is shown" in page


# ---- the demo ---------------------------------------------------------------------------------


def test_the_demo_tells_plans_scores_and_what_is_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def quick_case(name: str, seed: int, rows: int | None) -> Case:
        return make_case(name, seed, rows=12)

    def quick(classifier: object, schema: object, **options: object) -> GenRe:
        return GenRe(classifier, schema, **options, **GenRe._test_params())

    monkeypatch.setattr(demo, "make_case", quick_case)
    monkeypatch.setitem(METHODS, "genre", quick)
    monkeypatch.chdir(tmp_path)
    console = Console(width=100, record=True, file=io.StringIO())
    demo.run_demo(Path("demo"), console=console, people=2)
    said = console.export_text()
    shown = [int(found) for found in re.findall(r"^Person (\d+),", said, re.MULTILINE)]
    assert shown == sorted(shown)
    assert 1 <= len(shown) <= 2
    assert "Of 12 people" in said
    assert "demo/report.html" in said
    assert "--policy demo/policy.toml" in said
    assert "genrecourse schema YOUR.csv" in said
    lines = [line for line in said.splitlines() if demo.typed_command() not in line]
    assert max(map(len, lines)) <= 80  # a command is one line, however long its path is
    assert len(said.splitlines()) <= 50
    notes = [line for line in said.splitlines() if line.startswith("warning: ")]
    assert len(notes) <= 1
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert "CC BY 4.0" in page
    policy = Policy.read(tmp_path / "demo" / "policy.toml")
    labels = [policy.stated.features[name].wording for name in policy.stated.rules.lock]
    assert "credit history" in labels
    plans = re.sub(r"This is about a rule and is not a plan: [^.]*\.", "", words(page))
    assert not [label for label in labels if re.search(f"{label}: [^;]*→", plans)]
    assert "drawn at random" in plans


def test_the_demo_shows_sturdy_plans_in_table_order_and_a_fragile_one_as_a_warning() -> None:
    sturdy = Plan("a", "ok", 0.3, 0.5, score_after=0.7, cost=1.0)
    fragile = replace(sturdy, is_fragile=True)
    none = Plan("b", "no-plan", 0.3, 0.5, reason_code="not-accepted")
    found = demo.shown_people(Plans((none, fragile, sturdy, fragile, sturdy, sturdy)), 2)
    assert found == ([2, 4], [1])
    assert demo.shown_people(Plans((none, fragile)), 2) == ([], [1])
    assert demo.shown_people(Plans((none, sturdy)), 2) == ([1], [])


def test_the_demo_names_a_command_that_runs_as_it_is_typed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "env" / "bin" / "genrecourse"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert demo.typed_command() == str(Path("env", "bin", "genrecourse"))
    monkeypatch.chdir(script.parent)
    assert demo.typed_command() == os.path.join(".", "genrecourse")
    monkeypatch.setenv("PATH", str(script.parent))
    assert demo.typed_command() == "genrecourse"
    script.unlink()
    assert demo.typed_command().endswith("-m genrecourse")


def test_the_package_holds_the_example_policies() -> None:
    examples = Path(__file__).parents[2] / "policies"
    inside = {path.name: path.read_bytes() for path in demo.POLICY.parent.glob("*.toml")}
    assert inside == {path.name: path.read_bytes() for path in examples.glob("*.toml")}
    assert demo.POLICY.name in inside
