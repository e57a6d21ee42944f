"""/api/v1: the schema, decisions, plans, reasons, and plans checked again."""

import json
from typing import Any

from fastapi import APIRouter, Request, Response

from genrecourse.apps.serve.answers import Answers, dumped, plans_as
from genrecourse.apps.serve.errors import ERRORS, Refusal
from genrecourse.apps.serve.messages import (
    DecisionsOut,
    PeopleBody,
    PlansOut,
    ReasonsBody,
    ReasonsOut,
    RecheckBody,
    RecheckOut,
    SchemaOut,
)
from genrecourse.apps.serve.people import check_people
from genrecourse.apps.serve.settings import limits_of
from genrecourse.errors import UserError
from genrecourse.planning.plans import Plans


def api_routes(answers: Answers) -> APIRouter:
    """Return the routes of /api/v1."""
    routes = APIRouter(prefix="/api/v1", tags=["API"], responses=ERRORS)
    settings, service = answers.settings, answers.service
    PlansBody: Any = answers.asking.plans_body

    @routes.get("/schema", response_model=SchemaOut)
    async def schema(request: Request) -> Response:
        """What the model asks about a person, what may change, and the limits of a request."""
        return Response(described, media_type="application/json")

    @routes.post("/decision", response_model=DecisionsOut)
    async def decision(request: Request, body: PeopleBody) -> Response:
        """The model's decision on each person, with its score against the cutoff."""
        X = answers.read(request, body.people)
        scores = await answers.scores(request, X)
        cutoff = float(service.method.classifier_.cutoff)
        found = [
            {"person": i, "favourable": bool(score > cutoff), "score": float(score)}
            for i, score in enumerate(scores)
        ]
        return _json({"cutoff": cutoff, "decisions": found})

    @routes.post("/plans", response_model=PlansOut)
    async def plans(request: Request, body: PlansBody) -> Response:
        """What each person could change to be accepted, or why there is no plan."""
        asked = answers.asking.request(body, len(body.people))
        X = answers.read(request, body.people)
        return await plans_as("plans", await answers.plans(request, X, asked))

    @routes.post("/recheck", response_model=RecheckOut)
    async def recheck(request: Request, body: RecheckBody) -> Response:
        """Which plans that were given earlier this model still accepts."""
        check_people(len(body.plans), settings.people, "plans")
        given = _read_plans(answers, body.plans)
        work = answers.desk.other(lambda: service.recheck(given), len(body.plans))
        made = (await answers.asked_by(request, work)).to_dict("records")
        found = [_plain_values(each) for each in made]
        if found:  # where there is no plan, nobody is answered about
            await answers.record(request, "recheck", given.x_plus(), found)
        return _json({"holding": sum(each["holds"] for each in found), "plans": found})

    if hasattr(service, "reasons"):

        @routes.post("/reasons", response_model=ReasonsOut)
        async def reasons(request: Request, body: ReasonsBody) -> Response:
            """What mattered most for the decision on each person. Reasons are no advice."""
            X = answers.read(request, body.people, most=settings.reasons_people)
            work = answers.desk.other(
                lambda: [service.reasons(X, row).to_dict() for row in range(len(X))], len(X)
            )
            found = await answers.asked_by(request, work)
            await answers.record(request, "reasons", X, found)
            return _json({"reasons": found})

    described = _description(answers)
    return routes


def _description(answers: Answers) -> bytes:
    service, settings = answers.service, answers.settings
    summary = service.summary()
    ways = {each.name: each.may_change for each in summary.rules.features}
    features = [
        json.loads(each.model_dump_json()) | {"may_change": ways.get(each.name, "")}
        for each in service.schema
    ]
    return dumped(
        {
            "model": settings.name,
            "facts": summary.facts,
            "cutoff": float(service.method.classifier_.cutoff),
            "features": features,
            "rules": list(summary.rules.rules),
            "options": [name for name in service.method.options if name not in ("rules", "safety")],
            "languages": list(answers.asking.languages),
            "person": answers.people.description,
            "example": answers.people.example,
            "limits": {name: value for name, value, _ in limits_of(settings)},
        }
    )


def _read_plans(answers: Answers, data: list[dict[str, Any]]) -> Plans:
    """Return plans that a client sent back. Whoever sent something else is told so."""
    problem = Refusal(
        422,
        "these are not plans as /api/v1/plans gives them",
        field="plans",
        do="send back the list 'plans' of an answer, unchanged",
    )
    rows: list[Any] = [
        one.get("x_plus")
        for each in data
        for one in (each, *_dicts(each.get("alternatives")))
        if one.get("x_plus") is not None
    ]
    if not all(isinstance(row, dict) for row in rows):
        raise problem
    if rows:
        check_people(len(rows), answers.settings.plans_at_once, "plans")
        answers.people.table(rows, "x_plus of plans")
    try:
        like = answers.service.method.problem_.like
        return Plans.from_json(json.dumps(data), like=like, where="the plans")
    except UserError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise problem from None


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _json(data: Any) -> Response:
    return Response(dumped(data), media_type="application/json")


def _plain_values(line: dict[str, Any]) -> dict[str, Any]:
    return {
        "person": line["person"],
        "plan": int(line["plan"]),
        "holds": bool(line["holds"]),
        "score": float(line["score"]),
        "cutoff": float(line["cutoff"]),
    }
