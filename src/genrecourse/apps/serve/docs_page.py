"""/docs: the description of the API as a page that loads nothing from another server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader

TEMPLATES = Path(__file__).parent / "templates"


def environment() -> Environment:
    """Return jinja2 with every value escaped."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )


def docs_routes(app: FastAPI) -> APIRouter:
    """Return the route of the page about the API."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/docs", response_class=HTMLResponse)
    async def docs(request: Request) -> HTMLResponse:
        described = app.openapi()
        template = environment().get_template("docs.html")
        return HTMLResponse(template.render(info=described["info"], groups=_groups(described)))

    return routes


def _groups(described: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return what the page shows about each address, by tag."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, verbs in described["paths"].items():
        for verb, about in verbs.items():
            tag = (about.get("tags") or ["Other"])[0]
            groups.setdefault(tag, []).append(_entry(path, verb, about, described))
    return groups


def _entry(
    path: str, verb: str, about: dict[str, Any], described: dict[str, Any]
) -> dict[str, Any]:
    body = about.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = str(body.get("schema", {}).get("$ref", "")).rpartition("/")[2]
    fields = described["components"]["schemas"].get(name, {}).get("properties", {})
    examples = body.get("examples") or (
        {"": {"value": body["example"]}} if "example" in body else {}
    )
    return {
        "id": f"{verb}-{path}".replace("/", "-").strip("-"),
        "path": path,
        "verb": verb.upper(),
        "about": about.get("description", ""),
        "fields": {key: value.get("description", "") for key, value in fields.items()},
        "examples": {
            key: json.dumps(value["value"], indent=2, ensure_ascii=False)
            for key, value in examples.items()
        },
        "answers": {
            status: answer["description"] for status, answer in about.get("responses", {}).items()
        },
    }
