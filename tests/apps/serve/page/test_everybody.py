"""The page for everybody: keyboard, screen reader, phone, dark, no JavaScript, hostile text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from genrecourse.advice.request import PlanRequest
from genrecourse.advice.service import Service
from genrecourse.apps.serve.wishes import BARS
from tests.apps.serve.page.conftest import EVIL, QUOTE, Tab
from tests.apps.serve.page.test_page import in_words, person, plan_of

SIZES = {"phone": (390, 800), "small phone": (320, 600), "tablet": (820, 1100), "desk": (1440, 900)}


def states(tab: Tab, url: str) -> Iterator[str]:
    """Bring the page into each of its states, one after the other, and name it."""
    tab.goto(url)
    yield "empty"
    tab.click("#go")
    tab.wait_for_selector("#mistakes-box")
    yield "mistakes"
    tab.ask_about_example(url)
    tab.wait_for_selector(".reasons")
    tab.click("#about-reasons > summary")
    yield "plans and reasons"
    tab.click("#limits > summary")
    for number in (1, 2):
        tab.answered(lambda number=number: tab.check(f"#compare-{number}"))
    yield "limits and two plans side by side"
    tab.answered(lambda: tab.fill("#months", "soon"))
    yield "a mistake in a wish"
    tab.answered(lambda: tab.fill("#months", "0"))
    tab.answered(lambda: tab.select_option("#most", "1"))
    for each in tab.locator(".hypothetical > summary").all():
        each.click()
    yield "no plan"
    tab.answered(lambda: tab.fill("#months", ""))
    tab.answered(lambda: tab.select_option("#most", ""))
    tab.evaluate("document.querySelector('#print-1').formTarget = '_self'")
    tab.click("#print-1")
    tab.wait_for_selector(".sheet")
    yield "one plan"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_any_state(
    open_tab: Callable[..., Tab], german_url: str, scheme: str
) -> None:
    tab = open_tab(color_scheme=scheme, reduced_motion="reduce")  # nothing half faded in
    found = {state: tab.violations() for state in states(tab, german_url)}
    assert len(found) == 7
    assert {state: said for state, said in found.items() if said} == {}


def test_axe_would_find_something(open_tab: Callable[..., Tab], german_url: str) -> None:
    """The check above can fail: a field without its label, and grey on grey, are found."""
    tab = open_tab()
    tab.goto(german_url)
    tab.evaluate("document.querySelector('label').remove()")
    tab.evaluate("document.querySelector('.lead').style.color = '#ccc'")
    kinds = {each.split(":")[0] for each in tab.violations()}
    assert {"select-name", "color-contrast"} <= kinds


@pytest.mark.parametrize("size", list(SIZES))
def test_no_state_has_to_be_scrolled_sideways(
    open_tab: Callable[..., Tab], german_url: str, size: str
) -> None:
    width, height = SIZES[size]
    tab = open_tab(viewport={"width": width, "height": height})
    wide = [state for state in states(tab, german_url) if tab.is_too_wide()]
    assert wide == []


def test_fingers_find_their_target_on_a_phone(
    open_tab: Callable[..., Tab], german_url: str
) -> None:
    tab = open_tab(viewport={"width": 390, "height": 800}, has_touch=True)
    tab.ask_about_example(german_url)
    small = tab.eval_on_selector_all(
        "button, select, input[type=text], summary, label.tick",
        """all => all.filter(each => each.offsetParent)
                   .filter(each => each.getBoundingClientRect().height < 24)
                   .map(each => each.outerHTML)""",
    )
    assert small == []


def test_two_plans_are_seen_side_by_side_on_a_phone(
    open_tab: Callable[..., Tab], german_url: str
) -> None:
    tab = open_tab(viewport={"width": 390, "height": 800})
    tab.ask_about_example(german_url)
    for number in (1, 2):
        tab.answered(lambda number=number: tab.check(f"#compare-{number}"))
    hidden = "each => each.scrollWidth - each.clientWidth"
    assert tab.eval_on_selector(".compared .scroll", hidden) == 0


def test_dark_is_dark_and_light_is_light(open_tab: Callable[..., Tab], german_url: str) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        tab = open_tab(color_scheme=scheme)
        tab.goto(german_url)
        rgb = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        seen[scheme] = sum(map(int, rgb.removeprefix("rgb(").rstrip(")").split(",")))
    assert seen["dark"] < 100
    assert seen["light"] > 700


def test_nothing_moves_for_those_who_ask_for_it(
    open_tab: Callable[..., Tab], german_url: str
) -> None:
    moves = """[...document.querySelectorAll('*')].filter(each =>
        getComputedStyle(each).transitionDuration !== '0s' ||
        getComputedStyle(each, '::after').transitionDuration !== '0s').length
        + (getComputedStyle(document.documentElement).scrollBehavior === 'smooth')"""
    still, moving = open_tab(reduced_motion="reduce"), open_tab(reduced_motion="no-preference")
    still.goto(german_url)
    moving.goto(german_url)
    assert still.evaluate(moves) == 0
    assert moving.evaluate(moves) > 0


# ---- with the keyboard alone -------------------------------------------------------------------


def focused(tab: Tab) -> dict[str, Any]:
    found: dict[str, Any] = tab.evaluate(
        """(() => {
            const each = document.activeElement, style = getComputedStyle(each);
            return {id: each.id, tag: each.tagName, text: each.textContent.trim(),
                    outline: style.outlineStyle !== 'none' && style.outlineWidth !== '0px'};
        })()"""
    )
    return found


def tab_to(tab: Tab, wanted: Callable[[dict[str, Any]], bool], most: int = 80) -> None:
    """Press the tabulator until something has the focus; all on the way shows that it has it."""
    for _ in range(most):
        tab.keyboard.press("Tab")
        now = focused(tab)
        assert now["outline"], f"nothing shows that {now} has the focus"
        if wanted(now):
            return
    raise AssertionError("the keyboard does not reach it")


def test_the_keyboard_is_enough(tab: Tab, german: Service, german_url: str) -> None:
    tab.goto(german_url)
    tab.keyboard.press("Tab")
    assert focused(tab)["text"] == "Skip to the form"
    tab_to(tab, lambda now: now["text"] == "Load an example")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/?example=0")
    tab_to(tab, lambda now: now["id"] == "f1")  # a number
    tab.keyboard.press("Enter")  # in a field: as the button
    tab.wait_for_selector(".card")
    assert focused(tab)["id"] == "decision-title"  # a screen reader goes on from here
    tab_to(tab, lambda now: now["id"] == "safety")
    tab.answered(lambda: tab.keyboard.press("End"))
    assert focused(tab)["id"] == "safety"
    tab_to(tab, lambda now: now["tag"] == "SUMMARY")
    tab.keyboard.press("Space")
    j = german.schema.names.index("savings")
    tab_to(tab, lambda now: now["id"] == f"lock{j}")
    tab.answered(lambda: tab.keyboard.press("Space"))
    assert tab.cards() == in_words(
        plan_of(german, min_robust=BARS[-1], rules={"lock": ["savings"]})
    )
    tab_to(tab, lambda now: now["id"] == "print-1")
    with tab.page.context.expect_page() as opened:
        tab.keyboard.press("Enter")
    opened.value.wait_for_selector(".sheet")


def test_the_focus_goes_in_the_order_of_the_page(tab: Tab, german_url: str) -> None:
    tab.ask_about_example(german_url)
    tab.evaluate("document.activeElement.blur()")
    tops: list[int] = tab.evaluate(
        """[...document.querySelectorAll('a, button, input, select, summary')]
            .filter(each => each.offsetParent && each.tabIndex >= 0).map(each => each.tabIndex)"""
    )
    assert set(tops) == {0}  # nobody changes the order of the document
    order = tab.evaluate(
        """['you', 'decision-title', 'safety', 'plans-title', 'compare-1'].map(id =>
            document.getElementById(id)).every((each, i, all) => i === 0 ||
            all[i - 1].compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING)"""
    )
    assert order


def test_a_screen_reader_is_told_what_changed(tab: Tab, german_url: str) -> None:
    tab.ask_about_example(german_url)
    live = tab.locator("#said")
    assert live.get_attribute("aria-live") == "polite"
    tab.told(f"{len(tab.cards())} plans.")
    tab.answered(lambda: tab.fill("#months", "0"))
    tab.answered(lambda: tab.select_option("#most", "1"))
    tab.told("No plan.")


# ---- without JavaScript -----------------------------------------------------------------------


def test_the_form_works_without_javascript(
    open_tab: Callable[..., Tab], german: Service, german_url: str
) -> None:
    tab = open_tab(java_script_enabled=False)

    def load(act: Callable[[], Any]) -> None:
        with tab.page.expect_navigation():
            act()

    tab.goto(german_url)
    load(lambda: tab.click("#go"))
    assert tab.locator(".mistakes li").count() == 20
    assert tab.locator("#f1").get_attribute("aria-invalid") == "true"
    load(lambda: tab.get_by_role("link", name="Load an example").click())
    load(lambda: tab.click("#go"))
    cards = tab.locator(".plans .card")
    assert cards.count() == len(plan_of(german).every)
    assert tab.locator(".reasons li").count() > 2
    tab.check("#compare-1")
    tab.check("#compare-2")
    load(lambda: tab.get_by_role("button", name="Compare the chosen").click())
    assert tab.locator(".compared thead th").count() == 4
    tab.click("#limits > summary")
    tab.get_by_role("group", name="savings").get_by_text("keep it").click()
    tab.select_option("#most", "1")
    tab.fill("#months", "0")
    load(lambda: tab.get_by_role("button", name="Show plans like this").click())
    rules = {"lock": ["savings"], "max_changes": 1}
    assert plan_of(german, rules=rules, most_months=0).status == "no-plan"
    assert tab.inner_text("#plans-title") == "No plan"
    while tab.locator("[data-release]").count():
        load(lambda: tab.locator("[data-release]").first.click())
    assert cards.count() > 0
    with tab.page.context.expect_page() as opened:
        tab.click("#print-1")
    opened.value.wait_for_selector(".sheet")


# ---- hostile text -----------------------------------------------------------------------------


def test_scripts_in_names_and_levels_are_text(tab: Tab, hostile: Service, hostile_url: str) -> None:
    plan = hostile.plans(person(hostile), PlanRequest(n=4))[0]
    assert plan.status == "ok"
    tab.ask_about_example(hostile_url)
    tab.wait_for_selector(".reasons")
    tab.click("#limits > summary")
    for number in range(1, min(len(plan.every), 2) + 1):
        tab.answered(lambda number=number: tab.check(f"#compare-{number}"))
    assert tab.cards() == in_words(plan)
    page = tab.inner_text("body")
    assert EVIL in page
    assert any(QUOTE in text for text in tab.locator("option").all_text_contents())
    assert "{{ 7 * 7 }}" in tab.text_content("body")
    tab.evaluate("document.querySelector('#print-1').formTarget = '_self'")
    tab.click("#print-1")
    tab.wait_for_selector(".sheet")
    assert EVIL in tab.inner_text("body")
    assert tab.evaluate("window.stolen") is None
    assert tab.locator("script:not([src]), img").count() == 0


def test_scripts_in_every_text_field_are_text(tab: Tab, hostile_url: str) -> None:
    for text in (EVIL, QUOTE):
        for way in ("script", "whole page"):
            tab.ask_about_example(hostile_url)
            tab.click("#you > summary")
            tab.click("#limits > summary")
            fields = tab.locator("input[type=text]:visible")
            n = fields.count()
            assert n >= 2
            tab.evaluate("document.querySelectorAll('[maxlength]').forEach(e => e.maxLength = 999)")
            for i in range(n):
                fields.nth(i).fill(text)
            if way == "script":
                tab.click("#go")
            else:
                tab.evaluate("document.getElementById('ask').submit()")
            tab.wait_for_selector("#mistakes-box")
            assert text[:20] in tab.inner_text("#mistakes-box")
            assert tab.evaluate("window.stolen") is None
            assert tab.locator("script:not([src]), img").count() == 0


def test_missing_values_are_an_answer(tab: Tab, hostile: Service, hostile_url: str) -> None:
    tab.ask_about_example(hostile_url)
    tab.click("#you > summary")
    j = hostile.schema.names.index("share")
    k = hostile.schema.names.index("left")
    row = person(hostile)
    row["share"], row["twice"], row["left"] = float("nan"), float("nan"), None
    tab.fill(f"#f{j}", "")
    tab.check(f"[name=f{j}-missing]")
    tab.select_option(f"#f{k}", label="not given")
    tab.click("#go")
    tab.wait_for_selector("#you:not([open])")
    score = float(hostile.method.problem_.read(row).score[0])
    assert f"{score:.2f}" in tab.inner_text(".score-words")
    assert tab.cards() == in_words(hostile.plans(row, PlanRequest(n=4))[0])
