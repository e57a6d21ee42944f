"""What people do on the page, in a real browser, compared with what the service says itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pandas as pd

from genrecourse.advice.request import PlanRequest
from genrecourse.advice.service import Service
from genrecourse.apps.serve.example import example_person
from genrecourse.apps.serve.wishes import BARS
from genrecourse.planning.plans import Plan
from genrecourse.planning.wording import name_of
from tests.apps.serve.page.conftest import Tab

PLANS = 4  # that the page asks for


def person(service: Service, number: int = 0) -> pd.DataFrame:
    return example_person(service.method.problem_, number).reset_index(drop=True)


def plan_of(service: Service, **asked: Any) -> Plan:
    """Return what the service itself says about the first example."""
    return service.plans(person(service), PlanRequest(n=PLANS, **asked))[0]


def in_words(plan: Plan) -> list[dict[str, str]]:
    return [
        {name_of(change.feature): change.words[1] for change in each.changes} for each in plan.every
    ]


def lock(tab: Tab, label: str) -> None:
    """Open the limits, if they are closed, and keep one feature as it is."""
    if not tab.locator("#limits[open]").count():
        tab.click("#limits > summary")
    tab.answered(lambda: tab.get_by_role("group", name=label).get_by_text("keep it").click())


# ---- asking -----------------------------------------------------------------------------------


def test_an_example_gets_the_plans_that_the_service_gives(
    tab: Tab, german: Service, german_url: str
) -> None:
    tab.goto(german_url)
    tab.get_by_role("link", name="Load an example").click()
    assert "no real person" in tab.inner_text(".example")
    tab.get_by_role("button", name="Show the decision").click()
    tab.wait_for_selector(".card")
    assert tab.cards() == in_words(plan_of(german))
    assert len(tab.cards()) > 1
    score = german.method.classifier_.score(person(german))[0]
    assert f"Your score is {score:.2f}" in tab.inner_text(".decision")
    assert tab.inner_text(".decision h2") == "The model says no"


def test_a_form_that_is_filled_in_by_hand(tab: Tab, german: Service, german_url: str) -> None:
    """Field by field, by the labels that people read."""
    tab.goto(german_url)
    row, problem = person(german), german.method.problem_
    for feature in german.schema:
        value = row[feature.name].iloc[0]
        field = tab.answer_to(name_of(feature))
        if feature.is_category:
            field.select_option(label=str(value))
        else:
            field.fill(f"{value:g}")
    tab.get_by_role("button", name="Show the decision").click()
    tab.wait_for_selector(".card")
    assert tab.cards() == in_words(plan_of(german))
    assert problem.read(row).rejected.all()


def test_mistakes_are_listed_linked_and_told(tab: Tab, german_url: str) -> None:
    tab.goto(f"{german_url}?example=0")
    amount = tab.answer_to("credit amount")
    amount.fill("a lot")
    tab.answer_to("savings").select_option("")
    tab.click("#go")
    box = tab.get_by_role("alert")
    box.wait_for()
    assert tab.evaluate("document.activeElement.id") == "mistakes-box"
    assert "2 answers need your attention" in box.inner_text()
    assert "“a lot” is no number" in box.inner_text()
    box.get_by_role("link", name="Credit amount").click()
    assert amount.evaluate("each => each === document.activeElement")
    assert amount.get_attribute("aria-invalid") == "true"
    described = amount.get_attribute("aria-describedby").split()
    texts = [tab.inner_text(f"#{each}") for each in described]
    assert any("“a lot” is no number" in text for text in texts)
    amount.fill("2384")
    tab.answer_to("savings").select_option(label="< 100 DM")
    tab.click("#go")
    tab.wait_for_selector(".card")
    assert not tab.get_by_role("alert").count()
    assert not tab.locator("[aria-invalid]").count()


def test_an_answer_to_something_else_says_so(tab: Tab, german_url: str) -> None:
    """Whoever types what cannot be read sees the answer before, and must not take it for theirs."""
    tab.ask_about_example(german_url)
    assert not tab.is_visible("#stale")
    tab.answered(lambda: tab.fill("#months", "0"))
    for wrong in ("many", "-1"):
        tab.answered(lambda wrong=wrong: tab.fill("#months", wrong))
        assert tab.is_visible("#stale")
        assert "what you gave before" in tab.inner_text("#stale")
    tab.answered(lambda: tab.fill("#months", "12"))
    assert not tab.is_visible("#stale")
    tab.route("**/answer", lambda route: route.fulfill(status=503, body="{}"))
    tab.answered(lambda: tab.fill("#months", "6"))
    assert tab.is_visible("#stale")


# ---- wishes -----------------------------------------------------------------------------------


def test_a_lock_is_kept_and_told(tab: Tab, german: Service, german_url: str) -> None:
    tab.ask_about_example(german_url)
    assert any("savings" in card for card in tab.cards())
    lock(tab, "savings")
    assert not any("savings" in card for card in tab.cards())
    assert tab.cards() == in_words(plan_of(german, rules={"lock": ["savings"]}))
    n = len(tab.cards())
    tab.told(f"{n} plans." if n > 1 else "1 plan.")


def test_a_feature_can_be_locked_whose_value_no_plan_could_give(tab: Tab, german_url: str) -> None:
    """The policy allows other debtors to become a guarantor; without one, there is none to keep."""
    tab.ask_about_example(german_url)
    lock(tab, "other debtors")
    assert tab.cards()
    assert not any("other debtors or guarantors" in card for card in tab.cards())


def test_a_range_and_the_number_of_changes(tab: Tab, german: Service, german_url: str) -> None:
    tab.ask_about_example(german_url)
    tab.click("#limits > summary")
    group = tab.get_by_role("group", name="duration")
    tab.answered(lambda: group.get_by_label("from").fill("9"))
    tab.answered(lambda: group.get_by_label("to,").fill("15"))
    tab.answered(lambda: tab.select_option("#most", "2"))
    rules = {"ranges": {"duration": [9, 15]}, "max_changes": 2}
    assert tab.cards() == in_words(plan_of(german, rules=rules))
    assert all(len(card) <= 2 for card in tab.cards())


def test_the_slider_weighs_cost_against_safety(tab: Tab, german: Service, german_url: str) -> None:
    tab.ask_about_example(german_url)
    slider, found = tab.get_by_role("slider"), {}
    assert slider.get_attribute("aria-valuetext") == "as usual"
    for key, bar in (("End", BARS[-1]), ("Home", BARS[0])):
        slider.focus()
        tab.answered(lambda key=key: slider.press(key))
        found[key] = plan_of(german, min_robust=bar)
        assert tab.cards() == in_words(found[key])
        assert slider.evaluate("each => each === document.activeElement")
    cheap, safe = found["Home"], found["End"]
    assert cheap.cost < safe.cost
    assert cheap.retrained.estimate < safe.retrained.estimate
    assert slider.get_attribute("aria-valuetext") == "as cheap as possible"


def test_the_order_by_months(tab: Tab, german: Service, german_url: str) -> None:
    tab.ask_about_example(german_url)
    for order in ("time", "money", "changes", "cost"):
        tab.answered(lambda order=order: tab.select_option("#order", order))
        made = plan_of(german, sort=order)
        assert tab.cards() == in_words(made)
        if order == "time":
            months = [each.effort.months for each in made.every if each.effort]
            assert months == sorted(months)
            assert months[0] < months[-1]
            shown = tab.eval_on_selector_all(
                ".card .facts", "all => all.map(each => each.textContent)"
            )
            for each, text in zip(made.every, shown, strict=True):
                assert each.effort is not None
                assert each.effort.time_text(made.language) in text


def test_at_most_so_many_months(tab: Tab, german: Service, german_url: str) -> None:
    tab.ask_about_example(german_url)
    tab.answered(lambda: tab.fill("#months", "6"))
    made = plan_of(german, most_months=6)
    assert tab.cards() == in_words(made)
    assert all(each.effort.months <= 6 for each in made.every if each.effort)
    tab.answered(lambda: (tab.fill("#months", "0"), lock(tab, "duration")))
    text = tab.inner_text("#plans-slot")
    none = plan_of(german, most_months=0, rules={"lock": ["duration"]})
    assert (none.status == "no-plan") == text.startswith("No plan")


def test_the_last_answer_wins(tab: Tab, german: Service, german_url: str) -> None:
    """An answer that comes late does not take the place of one that was asked for later."""
    tab.ask_about_example(german_url)
    held: list[Any] = []

    def hold(route: Any) -> None:
        if "most=1" in route.request.post_data and not held:
            held.append(route)  # never answered while the page waits
        else:
            route.continue_()

    tab.route("**/answer", hold)
    tab.select_option("#most", "1")
    tab.wait_for_selector("#plans-slot[aria-busy]")
    tab.wait_for_timeout(300)
    assert held
    tab.answered(lambda: tab.select_option("#most", "3"))
    wanted = in_words(plan_of(german, rules={"max_changes": 3}))
    assert tab.cards() == wanted
    with suppress(Exception):  # the page may have given it up already
        held[0].continue_()
    tab.wait_for_timeout(500)
    assert tab.cards() == wanted


def test_a_service_that_cannot_answer_says_so(tab: Tab, german_url: str) -> None:
    tab.goto(f"{german_url}?example=0")
    body = '{"error": {"message": "64 requests are waiting <b>already</b>; ask again"}}'
    tab.route("**/answer", lambda route: route.fulfill(
        status=503, content_type="application/json", body=body))  # fmt: skip
    tab.click("#go")
    tab.get_by_role("alert").wait_for()
    assert tab.get_by_role("alert").inner_text() == (
        "64 requests are waiting <b>already</b>; ask again"
    )


# ---- plans ------------------------------------------------------------------------------------


def test_two_plans_side_by_side(tab: Tab, german_url: str) -> None:
    tab.ask_about_example(german_url)
    cards = tab.cards()
    for number in (1, 2):
        tab.answered(lambda number=number: tab.check(f"#compare-{number}"))
        assert tab.evaluate("document.activeElement.id") == f"compare-{number}"
    table = tab.get_by_role("region", name="Side by side")
    heads = table.locator("thead th").all_text_contents()
    assert heads == ["What changes", "Today", "Plan 1", "Plan 2"]
    rows = [row.locator("th, td").all_text_contents() for row in table.locator("tbody tr").all()]
    by_name = {row[0]: row[1:] for row in rows}
    for name in {*cards[0], *cards[1]}:
        assert by_name[name][1:] == [card.get(name, "stays") for card in cards[:2]]
    assert by_name["time"][1].startswith("about")


def test_a_fragile_plan_says_that_it_is(tab: Tab, german: Service, german_url: str) -> None:
    for number in range(40):
        plan = german.plans(person(german, number), PlanRequest(n=PLANS))[0]
        if any(each.is_fragile for each in plan.every):
            break
    tab.ask_about_example(german_url, number)
    fragile = [each.is_fragile for each in plan.every]
    said = tab.eval_on_selector_all(
        ".plans .card", "all => all.map(card => card.innerText.includes('Fragile'))"
    )
    assert any(fragile)
    assert said == fragile


def test_a_plan_to_print(tab: Tab, german_url: str) -> None:
    tab.ask_about_example(german_url)
    cards = tab.cards()
    with tab.page.context.expect_page() as opened:
        tab.click("#print-2")
    sheet = opened.value
    sheet.wait_for_load_state()
    lines = sheet.eval_on_selector_all(
        ".changes li",
        """lines => lines.map(line => [line.querySelector('.what').textContent,
                                       line.querySelector('.after').textContent])""",
    )
    assert dict(lines) == cards[1]
    button = sheet.get_by_role("button", name="Print")
    assert button.is_visible()
    sheet.emulate_media(media="print")
    assert not button.is_visible()
    assert sheet.pdf()[:5] == b"%PDF-"
    assert sheet.locator("dl.profile > div").count() == 20


def test_a_saved_plan_is_a_page_of_its_own(
    tab: Tab, german_url: str, tmp_path: Any, open_tab: Callable[..., Tab]
) -> None:
    tab.ask_about_example(german_url)
    with tab.page.expect_download() as download:
        tab.click("#save-1")
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    saved = open_tab()
    saved.goto(file.as_uri())
    assert saved.inner_text("h1").startswith("A plan")
    assert saved.requests == [file.as_uri()]  # it needs nothing else
    width = saved.evaluate("getComputedStyle(document.querySelector('.sheet')).width")
    assert width == "704px"  # the style sheet is in it


def test_somebody_whom_the_model_accepts(tab: Tab, german: Service, german_url: str) -> None:
    tab.ask_about_example(german_url)
    plan = plan_of(german)
    assert plan.row is not None
    change = max(plan.every, key=lambda each: each.score_after or 0)
    tab.click("#you > summary")
    for each in change.changes:
        field = tab.answer_to(name_of(each.feature))
        if each.feature.is_category:
            field.select_option(label=str(each.after))
        else:
            field.fill(f"{each.after:g}")
    tab.click("#go")
    tab.wait_for_selector(".decision[data-accepted=yes]")
    assert tab.inner_text(".decision h2") == "The model says yes"
    assert not tab.cards()
    assert not tab.locator("#wishes").is_visible()


# ---- no plan ----------------------------------------------------------------------------------


def blocked(service: Service) -> tuple[int, Plan]:
    """Return an example whom one rule of the policy keeps from every plan."""
    for number in range(100):
        plan = service.plans(person(service, number), PlanRequest(n=PLANS))[0]
        if plan.status == "no-plan" and plan.blocking_rules_shown:
            return number, plan
    raise AssertionError("every example has a plan")


def test_no_plan_names_the_rule_and_shows_at_one_click_what_it_costs(
    tab: Tab, strict: Service, strict_url: str
) -> None:
    number, plan = blocked(strict)
    tab.ask_about_example(strict_url, number)
    assert tab.inner_text("#plans-title") == "No plan"
    rule = plan.blocking_rules_shown[0]
    assert tab.inner_text(".rule >> nth=0") == f"“{rule.rule}”"
    assert not tab.locator(".hypothetical .after").first.is_visible()
    tab.get_by_text("What would open without this rule?").first.click()
    inside = tab.locator(".hypothetical-inside").first
    assert "Hypothetical: not an offer" in inside.inner_text()
    shown = inside.locator(".after").all_inner_texts()
    assert shown == [change.words[1] for change in rule.changes]
    assert not tab.cards()
    assert not tab.locator("[data-release]").count()  # the rule is not the person's to take back


def test_an_own_limit_can_be_taken_back(tab: Tab, german: Service, german_url: str) -> None:
    tab.ask_about_example(german_url)
    before = tab.cards()
    names = ["savings", "checking account", "duration", "credit amount", "other debtors",
             "instalments by income", "other instalment plans", "credits at this bank"]  # fmt: skip
    for name in names:
        lock(tab, name)
    assert tab.inner_text("#plans-title") == "No plan"
    while not tab.locator(".card").count():
        tab.answered(lambda: tab.locator("[data-release]").first.click())
    kept = tab.locator("[name=lock]:checked").count()
    assert kept < len(names)
    for _ in range(kept):
        tab.answered(lambda: tab.locator("[name=lock]:checked").first.uncheck())
    assert tab.cards() == before


# ---- reasons ----------------------------------------------------------------------------------


def test_reasons_stand_apart_and_flag_what_cannot_change(
    tab: Tab, german: Service, german_url: str
) -> None:
    tab.ask_about_example(german_url)
    card = tab.get_by_role("region", name="What mattered for this score")
    card.wait_for()
    made = german.reasons(person(german), 0)
    text = " ".join(card.inner_text().split())
    for reason in made.lowered[:5]:
        assert f"Your {name_of(reason.feature)} ({reason.value_text}) lowered" in text
    flagged = [r for r in (*made.lowered[:5], *made.raised[:5]) if r.note]
    assert flagged
    assert card.locator(".flag").count() == len(flagged)
    assert not card.locator(".card, [name=compare]").count()
    assert not tab.locator(".plans .reasons, .reasons .changes").count()


def test_reasons_are_asked_for_once_for_the_same_person(tab: Tab, german_url: str) -> None:
    tab.ask_about_example(german_url)
    tab.wait_for_selector(".reasons")
    tab.answered(lambda: tab.select_option("#most", "2"))
    asked = [address for address in tab.requests if address.endswith("/reasons")]
    assert len(asked) == 1
    tab.click("#you > summary")
    with tab.page.expect_response("**/reasons"):
        tab.answer_to("savings").select_option(label="100-500 DM")
