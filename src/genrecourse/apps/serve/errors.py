"""The one JSON shape of every error: field, what is wrong, the value seen, what to do.

{"error": {"status": 422, "field": "people[0].age", "wrong": "...", "seen": "old",
           "do": "...", "message": "...", "request_id": "..."}}
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from genrecourse.errors import UserError, did_you_mean, shown

WHAT_TO_DO = {
    400: "correct the request; /docs describes it",
    401: "send a key of this service in the header X-API-Key, or as a bearer token",
    403: "send the request from the service's own page, or from a program",
    404: "look up the address in /docs",
    405: "use a verb of the header Allow",
    408: "send the whole request at once",
    413: "send less, or divide the request",
    415: "send JSON in UTF-8, with the header Content-Type: application/json",
    422: "correct the request; /docs describes it",
    429: "wait as many seconds as the header Retry-After says, then ask again",
    500: "ask again; if it happens again, give the request id to whoever runs the service",
    503: "wait as many seconds as the header Retry-After says, then ask again",
    504: "ask about fewer people or for fewer plans, or ask again later",
}
WHAT_IS_WRONG = {
    404: "there is nothing at this address",
    405: "this address does not take this verb",
    500: "the service made a mistake",
}


class Problem(BaseModel):
    """What is wrong with a request."""

    status: int = Field(description="the HTTP status")
    field: str | None = Field(description="the part of the request, such as people[0].age")
    wrong: str = Field(description="what is wrong")
    seen: Any = Field(description="the value seen; null where no single value is wrong")
    do: str = Field(description="what to do")
    message: str = Field(description="all of it in one sentence")
    request_id: str | None = Field(description="as in the header X-Request-Id")


class ErrorBody(BaseModel):
    """The body of every answer that is no success."""

    error: Problem


SAYS = {
    400: "The request was sent to another name than this service has.",
    401: "The key is missing or wrong.",
    403: "The request comes from the page of another site.",
    404: "There is nothing at this address.",
    405: "The address does not take this verb.",
    408: "The request did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not said to be JSON in UTF-8.",
    422: "The request is wrong; field, wrong, seen and do say how.",
    429: "The key asks too often; see the header Retry-After.",
    500: "The service made a mistake.",
    503: "The service is busy or stopping; see the header Retry-After.",
    504: "There was no answer in time. It says nothing about whether there is a plan.",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": says} for status, says in SAYS.items()
}


class ClientGone(Exception):  # noqa: N818 - nobody's error
    """The client left: there is nobody to answer."""


class Refusal(Exception):  # noqa: N818 - what happens, as NotFound
    """A request that is not answered, with the status and the body of the response.

    >>> Refusal(413, "the body has 9 bytes", seen=9).body("id-1")["error"]["do"]
    'send less, or divide the request'
    """

    def __init__(
        self,
        status: int,
        wrong: str = "",
        *,
        field: str | None = None,
        seen: Any = None,
        do: str = "",
        message: str = "",
        headers: dict[str, str] | None = None,
    ):
        self.status, self.field, self.seen = status, field, seen
        self.wrong = wrong or WHAT_IS_WRONG.get(status, "the request cannot be answered")
        self.do = do or WHAT_TO_DO.get(status, WHAT_TO_DO[400])
        self.message = message or f"{self.wrong}; {self.do}"
        self.headers = headers or {}
        super().__init__(self.message)

    def body(self, request_id: str | None) -> dict[str, Any]:
        """Return the body of the response."""
        problem = Problem(
            status=self.status,
            field=self.field,
            wrong=self.wrong,
            seen=self.seen,
            do=self.do,
            message=self.message,
            request_id=request_id,
        )
        return ErrorBody(error=problem).model_dump()

    def response(self, request_id: str | None) -> JSONResponse:
        return JSONResponse(self.body(request_id), self.status, headers=self.headers)


def refusal_of(error: UserError, names: Iterable[str] = ()) -> Refusal:
    """Return the refusal for a user's mistake, with status 422.

    The library's errors are sentences that end with what to do after a semicolon. The field is what
    stands before a colon, or else the first of `names` that is quoted or said to be something.

    >>> refused = refusal_of(UserError("'age' is 'old'; give a number"), ["age"])
    >>> refused.field, refused.wrong, refused.do
    ('age', "'age' is 'old'", 'give a number')
    """
    message = str(error)
    said, _, do = message.rpartition("; ")
    wrong, known = said or message, set(names)
    named = re.findall(r"^(\w+)(?=:)|(?:^|: )(\w+)(?= is )|'([^']*)'", wrong)
    quoted = ["".join(each) for each in named]
    return Refusal(
        422,
        wrong,
        field=next((name for name in quoted if name in known), None),
        do=do if said else "",
        message=message,
    )


def refusal_of_fields(errors: Sequence[Any], known: Iterable[str] = ()) -> Refusal:
    """Return the refusal for the first mistake that pydantic found in a request.

    >>> found = {
    ...     "type": "int_type",
    ...     "loc": ("body", "people", 0, "age"),
    ...     "msg": "Input should be",
    ...     "input": "old",
    ... }
    >>> refusal_of_fields([found]).field
    'people[0].age'
    """
    first = errors[0]
    place, kind = first["loc"], first["type"]
    field = _path([part for part in place[1:] if not _is_of_a_union(part)])
    message = str(first["msg"]).removeprefix("Value error, ")
    wrong = message[:1].lower() + message[1:]
    if kind == "extra_forbidden":
        name = str(place[-1])
        return Refusal(422, f"there is no field {shown(name)}{did_you_mean(name, known)}",
                       field=field, seen=name)  # fmt: skip
    if kind == "missing":
        return Refusal(422, f"{field or 'the body'} is missing", field=field)
    if place[:1] != ("body",):
        field = str(place[-1])
    said = f"{field or 'the body'} is {shown(first.get('input'))}: {wrong}"
    return Refusal(422, said, field=field or None, seen=as_seen(first.get("input")))


def as_seen(value: Any) -> Any:
    """Return a value that was seen as JSON can hold it; a long one as the start of its text.

    >>> as_seen("old"), as_seen(float("inf")), as_seen([1, 2])
    ('old', 'inf', '[1, 2]')
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 2**53:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, str) and len(value) <= 80 and value.isprintable():
        return value
    return shown(value)


def add_handlers(app: FastAPI, names: Sequence[str]) -> None:
    """Answer every error of the application's routes in the one shape. names: of known fields."""

    @app.exception_handler(Refusal)
    async def refused(request: Request, error: Refusal) -> JSONResponse:
        return error.response(id_of(request))

    @app.exception_handler(UserError)
    async def mistaken(request: Request, error: UserError) -> JSONResponse:
        return refusal_of(error).response(id_of(request))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return refusal_of_fields(error.errors(), names).response(id_of(request))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers or {})
        return Refusal(error.status_code, headers=headers).response(id_of(request))


def id_of(request: Request) -> str | None:
    return getattr(request.state, "request_id", None)


def _is_of_a_union(part: Any) -> bool:
    """Whether a part of pydantic's place names a member of a union, and nothing of the request."""
    return isinstance(part, str) and bool(
        re.fullmatch(r"(int|float|str|bool|none|function-.*)", part)
    )


def _path(place: Sequence[Any]) -> str:
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
