"""Plans in one line and as cards: who has which status, what changes, and nothing unescaped."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from typing import Any

from genrecourse.planning.binomial import Share
from genrecourse.planning.plans import Change, Plan, Plans, Safety
from genrecourse.table.schema import Feature

SCRIPT = "<script>alert('x')</script>"
INCOME = Feature(name="income", kind="number", unit="€", decimals=0, wording="monthly income")


def plan(person: Any, *changes: Change, **more: Any) -> Plan:
    changed = changes or (Change(INCOME, 1800, 2100),)
    return Plan(person, "ok", 0.25, 0.5, changed, score_after=0.75, cost=0.4, **more)


def refused(person: Any) -> Plan:
    return Plan(person, "no-plan", 0.25, 0.5, reason_code="rules-block")


def test_a_plan_is_one_line() -> None:
    ada = plan("Ada", alternatives=(plan("Ada"),) * 2)
    assert repr(ada) == "Plan('Ada', ok: income €1,800 → €2,100; score 0.25 → 0.75; 2 alternatives)"
    assert repr(refused(7)) == "Plan(7, no-plan: rules-block)"
    many = plan("Ada", *(Change(INCOME, 1, n) for n in range(2, 9)))
    assert "€1 → €5 and 3 more;" in repr(many)
    assert repr(replace(ada, is_fragile=True)).startswith("Plan('Ada', fragile: income")


def test_plans_are_one_line_with_counts_that_add_up() -> None:
    plans = Plans((plan(1), plan(2, is_fragile=True), refused(3)))
    assert repr(plans) == "Plans(3 people: 2 ok (1 fragile), 1 no-plan)"
    assert repr(Plans(())) == "Plans(0 people)"
    assert repr(Plans((refused(1),) * 1200)) == "Plans(1,200 people: 1,200 no-plan)"


def test_a_card_has_the_changes_the_remarks_and_the_alternatives() -> None:
    why = Safety(Share(3, 8), Share(30, 32))
    ada = plan(
        "Ada",
        Change(INCOME, 1800, 2100, safety=why),
        alternatives=(plan("Ada", Change(INCOME, 1800, 2400)),),
        retrained=Share(7, 8),
    )
    page = ada._repr_html_()
    for part in ("monthly income", "€1,800", "→ €2,100", "→ €2,400", "1 alternative", ">ok<"):
        assert part in page
    for remark in (*ada.remarks, ada.changes[0].safety_text):
        assert escape(remark) in page
    # the score, the new score and the cutoff on a track from 0 to 1
    assert re.findall(r'gr-(\w+)" style="left:([\d.]+)%', page)[:3] == [
        ("from", "25.0"),
        ("to", "75.0"),
        ("cut", "50.0"),
    ]


def test_a_score_beyond_0_and_1_lies_on_the_track() -> None:
    page = replace(plan("Ada"), score_before=300.0, score_after=660.0, cutoff=640.0)._repr_html_()
    places = [float(place) for place in re.findall(r"left:([\d.]+)%", page)]
    assert len(places) == 3
    assert all(0 <= place <= 100 for place in places)


def test_who_has_no_plan_is_told_why_without_any_change() -> None:
    page = refused("Ben")._repr_html_()
    assert escape(refused("Ben").reason) in page
    assert "no-plan" in page
    assert "→" not in page


def test_many_people_show_the_first_ten_and_how_to_see_the_others() -> None:
    page = Plans(tuple(plan(i) for i in range(25)))._repr_html_()
    assert page.count('class="gr-card"') == 10
    assert "and 15 more: plans[10:]" in page
    assert "25 people: 25 ok" in page
    assert "no promise" in page  # the note
    ten = Plans(tuple(refused(i) for i in range(10)))._repr_html_()
    assert "more:" not in ten


def test_labels_and_values_are_escaped() -> None:
    evil = Feature(name="a", kind="category", categories=(SCRIPT, "b"), wording=SCRIPT)
    one = plan(SCRIPT, Change(evil, "b", SCRIPT))
    for page in (one._repr_html_(), Plans((one,))._repr_html_()):
        assert "<script" not in page
        assert page.count("&lt;script&gt;") == 3
