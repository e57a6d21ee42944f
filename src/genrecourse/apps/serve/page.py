"""The page: a form, the decision, plans, and reasons apart from them, as HTML made on the server.

The page keeps nothing: each request carries the whole form. Without JavaScript, the form is posted
and the whole page comes back; `static/page.js` posts the same form and puts only the answer in.
Both come from the same templates, which escape every text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from genrecourse.apps.serve.cards import Blocked, Card, ScoreBar, compared, effort_names, labels_in
from genrecourse.apps.serve.errors import Refusal
from genrecourse.apps.serve.example import example_person
from genrecourse.apps.serve.form import Filled, Mistake, PersonForm, Sent
from genrecourse.apps.serve.why import WhyCard
from genrecourse.apps.serve.wishes import BARS, MOST_CHANGES, USUAL, Offered, Wishes, without
from genrecourse.planning.plans import Plan

if TYPE_CHECKING:
    from genrecourse.apps.serve.answers import Answers

HERE = Path(__file__).parent
FORM = "application/x-www-form-urlencoded"
FIELDS_EACH = 8  # fields of a form that one feature can have, at most


def page_routes(answers: Answers) -> APIRouter:
    """Return the routes of the page."""
    page, router = Page(answers), APIRouter(include_in_schema=False)
    router.add_api_route("/", page.first, methods=["GET"])
    router.add_api_route("/", page.whole, methods=["POST"])
    router.add_api_route("/answer", page.answer, methods=["POST"])
    router.add_api_route("/reasons", page.reasons, methods=["POST"])
    router.add_api_route("/plan", page.one_plan, methods=["POST"])
    return router


@dataclass
class Shown:
    """What the page says to a person who filled in the form."""

    plan: Plan  # the first one, or why there is none
    wishes: Wishes
    score: ScoreBar
    cards: list[Card]
    blocked: list[Blocked]

    @property
    def is_accepted(self) -> bool:
        return self.plan.status == "already-accepted"

    @property
    def compared(self) -> list[Card]:
        return compared(self.cards, self.wishes.compare)

    @property
    def other_limits(self) -> dict[str, str]:
        """The person's own limits that are not shown as blocking rules, by their keys."""
        shown = {rule.key for rule in self.blocked}
        return {key: words for key, words in self.wishes.own.items() if key not in shown}

    @property
    def said(self) -> str:
        """What a screen reader announces when the answer has changed."""
        if self.is_accepted:
            return "The model accepts: nothing needs to change."
        n = len(self.cards)
        said = {0: "No plan.", 1: "1 plan."}.get(n, f"{n} plans.")
        beside = " and ".join(str(card.number) for card in self.compared)
        return f"{said} Plans {beside} stand side by side." if beside else said


class Page:
    """The handlers of the routes."""

    def __init__(self, answers: Answers):
        self.answers, self.service = answers, answers.service
        self.form, self.offered = PersonForm(self.service), Offered.of(self.service)
        self.templates = _templates()

    # ---- routes ---------------------------------------------------------------------------------

    async def first(self, request: Request) -> HTMLResponse:
        """The page before anything was asked; with ?example=1, filled in with an example."""
        asked, filled = request.query_params.get("example", ""), Filled({})
        if re.fullmatch("[0-9]{1,3}", asked):
            work = self.answers.desk.other(lambda: self._example(int(asked)))
            filled = self.form.filled_with(await self.answers.asked_by(request, work))
            filled.example = int(asked)
        return self._html("page.html", filled=filled, answer=None)

    async def whole(self, request: Request) -> HTMLResponse:
        """The page with the answer."""
        sent = await self._sent(request)
        for key in sent.get("release", ()):
            sent = without(sent, key)
        try:
            filled, answer = await self._answer(request, sent)
            reasons = None if answer is None else await self._why(request, filled)
        except Refusal as refusal:  # a person reads a page, and no JSON
            filled = Filled(sent, [Mistake("", _sentence(refusal.message))])
            return self._html("page.html", refusal.status, filled=filled, answer=None)
        status = 422 if filled.mistakes else 200
        return self._html("page.html", status, filled=filled, answer=answer, reasons=reasons)

    async def answer(self, request: Request) -> HTMLResponse:
        """Only the answer, or what is wrong with the form."""
        filled, answer = await self._answer(request, await self._sent(request))
        if answer is None:
            return self._html("_mistakes.html", 422, filled=filled)
        return self._html("_answer.html", filled=filled, answer=answer)

    async def reasons(self, request: Request) -> HTMLResponse:
        """Only the reasons."""
        filled = self.form.read(await self._sent(request))
        if filled.mistakes:
            return self._html("_mistakes.html", 422, filled=filled)
        return self._html("_reasons.html", reasons=await self._why(request, filled))

    async def one_plan(self, request: Request) -> HTMLResponse:
        """One plan as a page of its own, to print or to save."""
        sent = await self._sent(request)
        number = next(iter((*sent.get("print", ()), *sent.get("save", ()))), "")
        filled, answer = await self._answer(request, sent)
        if answer is None:
            return self._html("page.html", 422, filled=filled, answer=None)
        card = next((card for card in answer.cards if str(card.number) == number), None)
        if card is None:
            raise Refusal(404, f"there is no plan {number[:9]!r} for these answers",
                          do="go back to the page and choose one of its plans")  # fmt: skip
        is_file = "save" in sent
        found = self._html("print.html", filled=filled, answer=answer, card=card, is_file=is_file,
                           today=date.today().isoformat())  # fmt: skip
        if is_file:
            found.headers["Content-Disposition"] = f'attachment; filename="plan-{card.number}.html"'
        return found

    # ---- from the form to the answer ------------------------------------------------------------

    async def _sent(self, request: Request) -> Sent:
        """Return the fields of the form that was posted."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            raise Refusal(415, "this is not the page's form", do="fill in the form of this page")
        most = FIELDS_EACH * len(self.form.fields) + 100
        try:
            text = (await request.body()).decode("utf-8")
            return parse_qs(text, keep_blank_values=True, max_num_fields=most, errors="strict")
        except ValueError as error:
            raise Refusal(400, f"the form cannot be read: {error}",
                          do="fill in the form of this page") from None  # fmt: skip

    async def _answer(self, request: Request, sent: Sent) -> tuple[Filled, Shown | None]:
        """Return the form as it was filled in, and the answer; None: something is wrong with it."""
        filled = self.form.read(sent)
        wishes = Wishes.read(self.form, self.offered, filled)
        if filled.mistakes:
            return filled, None
        try:
            X = self.answers.read(request, [self.form.person(filled)])
            (plan,) = await self.answers.plans(request, X, wishes.request)
        except Refusal as refusal:
            if refusal.status != 422:
                raise
            filled.mistakes.append(Mistake("", _sentence(refusal.message)))
            return filled, None
        if plan.fault is not None:
            filled.mistakes.append(Mistake("", plan.reason))
            return filled, None
        return filled, self._shown(plan, wishes)

    async def _why(self, request: Request, filled: Filled) -> WhyCard:
        """Return the reasons for the decision on the person in the form, recorded."""
        X = self.answers.read(request, [self.form.person(filled)])
        work = self.answers.desk.other(lambda: self.service.reasons(X, 0))
        made = await self.answers.asked_by(request, work)
        await self.answers.record(request, "reasons", X, [made.to_dict()])
        return WhyCard.of(made)

    def _shown(self, plan: Plan, wishes: Wishes) -> Shown:
        problem = self.service.method.problem_
        encoder, ends = problem.encoder, problem.classifier.score_range
        cards = [Card.of(i, each, encoder, ends) for i, each in enumerate(plan.every, start=1)]
        blocked = [
            Blocked.of(rule, plan, encoder, wishes.key_of(rule))
            for rule in plan.blocking_rules_shown
        ]
        return Shown(plan, wishes, ScoreBar.of(_bare(plan), ends), cards, blocked)

    def _example(self, number: int) -> Any:
        return example_person(self.service.method.problem_, number)

    def _html(self, template: str, status: int = 200, **parts: Any) -> HTMLResponse:
        text = self.templates.get_template(template).render(
            form=self.form,
            offered=self.offered,
            bars=BARS,
            usual=USUAL,
            most_changes=MOST_CHANGES,
            is_recorded=self.answers.recording is not None,
            **{"reasons": None, **parts},
        )
        return HTMLResponse(text, status)


def _bare(plan: Plan) -> Plan:
    """Return only the decision of today."""
    return Plan(
        plan.person, "already-accepted", plan.score_before, plan.cutoff, language=plan.language
    )


def _sentence(message: str) -> str:
    """Return an error of the library or the service as a sentence to the person on the page."""
    text = message.replace("row 0 does not meet", "your answers do not meet")
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith(".") else ".")


@cache
def _templates() -> Environment:
    """Return the templates. Everything that is put into them is escaped."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"labels_in": labels_in, "effort_names": effort_names}
    made.globals["css"] = cache(lambda: (HERE / "static" / "page.css").read_text("utf-8"))
    return made
