"""The OpenAPI description: what FastAPI knows, with the model's own columns and examples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

if TYPE_CHECKING:
    from genrecourse.apps.serve.answers import Answers

ABOUT = (
    "What would change the model's decision on a person. A plan is what the model would accept "
    "under the rules; it is no promise that a person will be approved. Every error has one shape: "
    "field, wrong, seen, do."
)


def describe(app: FastAPI, answers: Answers, with_keys: bool) -> dict[str, Any]:
    """Return the OpenAPI description of the application."""
    found = get_openapi(title=app.title, version=app.version, description=ABOUT, routes=app.routes)
    schemas = found["components"]["schemas"]
    schemas["Person"] = answers.people.description
    limits = answers.settings
    for name, most in (
        ("PeopleBody", limits.people),
        ("PlansBody", limits.people),
        ("ReasonsBody", limits.reasons_people),
    ):
        if name in schemas:
            schemas[name]["properties"]["people"]["maxItems"] = most
    for path, verbs in found["paths"].items():
        for about in verbs.values():
            body = about.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None:
                body["examples"] = {
                    says: {"value": value} for says, value in _examples(path, answers).items()
                }
            for each in about.get("parameters", []):
                if each["name"] == "name":
                    each["example"] = limits.name
    if with_keys:
        found["components"]["securitySchemes"] = {
            "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            "bearer": {"type": "http", "scheme": "bearer"},
        }
        found["security"] = [{"key": []}, {"bearer": []}]
    return found


def _examples(path: str, answers: Answers) -> dict[str, Any]:
    person = answers.people.example
    first = next(iter(person))
    columns = [
        {"name": name, "shape": [1], "datatype": _kind(value), "data": [value]}
        for name, value in person.items()
    ]
    alone: dict[str, dict[str, Any]] = {
        "/api/v1/decision": {"one person": {"people": [person]}},
        "/api/v1/plans": {
            "one person": {"people": [person], "n": 2},
            "with rules": {
                "people": [person],
                "rules": {"lock": [first], "max_changes": 3},
                "safety": 0.5,
            },
            "rules of one person": {
                "people": [person, person],
                "rules": {"default": {}, "people": {"1": {"max_changes": 1}}},
            },
        },
        "/api/v1/reasons": {"one person": {"people": [person]}},
        "/api/v1/recheck": {"the plans of an answer": {"plans": [_plan(person)]}},
        "/v1/models/{name}:predict": {"one person": {"instances": [person]}},
        "/v1/models/{name}:explain": {"one person": {"instances": [person], "n": 1}},
        "/v2/models/{name}/infer": {"one person": {"inputs": columns}},
    }
    return alone.get(path, {})


def _kind(value: Any) -> str:
    return {bool: "BOOL", int: "INT64", float: "FP64"}.get(type(value), "BYTES")


def _plan(person: dict[str, Any]) -> dict[str, Any]:
    """Return the smallest plan that can be checked again: the person as they are."""
    own: dict[str, Any] = {
        **dict.fromkeys(("score_after", "cost", "log_likelihood", "cheapest", "minimal")),
        **dict.fromkeys(("retrained", "imprecise", "round_numbers")),
        "score_before": 0.4,
        "own_copies": False,
        "is_fragile": False,
        "is_beyond": False,
        "changes": [],
        "consequences": [],
        "x_plus": person,
    }
    about: dict[str, Any] = {"person": 0, "status": "ok", "reason_code": "", "reason": ""}
    empty: dict[str, Any] = {"evidence": None, "blocking_rules": [], "cutoff": 0.5, "promise": None}
    return {**about, **empty, **own, "alternatives": []}
