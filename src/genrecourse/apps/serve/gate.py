"""Gate: what stands before every route, in the order in which a request meets it.

Its request id, the name it was sent to, where it comes from, its key, its rate, how many others
are in work, and its body: size, form and the time that it takes. Then come the headers of the
answer, and one line in the log that holds no value of a person.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
import re
import time
import uuid
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, MutableHeaders

from genrecourse.apps.serve.errors import ClientGone, Refusal
from genrecourse.apps.serve.rate import Rates
from genrecourse.apps.serve.strict_json import check_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from genrecourse.apps.serve.keys import Keys
    from genrecourse.apps.serve.metrics import Meters
    from genrecourse.apps.serve.settings import Settings

log = logging.getLogger("genrecourse.serve")

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
OPEN = ("/healthz", "/v2/health/live", "/v2/health/ready")  # for those who look whether it lives
API = ("/api/", "/v1/", "/v2/")
FORM = "application/x-www-form-urlencoded"
LINGER_BYTES, LINGER_SECONDS = 32_000_000, 2.0  # read and dropped after an early refusal
EXTRA_SECONDS = 10.0  # for the client to read the answer
GONE = 499  # in logs and metrics: the client left before the answer

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # "no-referrer" would make browsers send the page's own form with "Origin: null"
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Gate:
    """ASGI middleware around the routes.

    keys: who may ask; None: everybody, at any rate on loopback. check_room: raises Refusal while
    no further question can wait.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        keys: Keys | None,
        meters: Meters,
        check_room: Callable[[], None],
    ):
        self.app, self.settings, self.keys, self.meters = app, settings, keys, meters
        self.check_room = check_room
        self.rates = Rates(settings.rate, settings.burst)
        self.in_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await Visit(self, scope, receive, send).run()
        # a websocket is not answered: the server then closes it


class Visit:
    """One request on its way through the gate."""

    def __init__(self, gate: Gate, scope: Scope, receive: Receive, send: Send):
        self.gate, self.settings = gate, gate.settings
        self.scope, self.receive, self._send = scope, receive, send
        self.headers = Headers(scope=scope)
        given = self.headers.get("x-request-id", "")
        self.id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = self.id
        self.status, self.caller, self.is_begun = 0, "", False

    async def run(self) -> None:
        started = time.perf_counter()
        limit = self.settings
        seconds = limit.body_seconds + limit.answer_seconds + EXTRA_SECONDS
        self.gate.in_work += 1
        try:
            async with asyncio.timeout(seconds):
                await self._answer()
        except TimeoutError:
            if not self.is_begun:
                said = f"no answer in time: {seconds:g} seconds have passed"
                await self._refuse(Refusal(504, said))
            # else the client does not read what it gets: the connection is closed
        finally:
            self.gate.in_work -= 1
            self._note(time.perf_counter() - started)

    async def _answer(self) -> None:
        try:
            self._check_host()
            self._check_origin()
            self._check_caller()
            if self.gate.in_work > self.settings.at_once and not self._is_open:
                raise Refusal(
                    503, f"{self.gate.in_work} requests are in work already",
                    headers={"Retry-After": "1"},
                )  # fmt: skip
            receive = await self._checked_body()
            if self.scope["method"] == "POST":  # before its people are read, which takes longer
                self.gate.check_room()
            await self.gate.app(self.scope, receive, self.send)
        except ClientGone:
            self.status = GONE
        except Refusal as refusal:
            await self._refuse(refusal)
        except Exception as error:  # its text may hold values of a person: only its place is kept
            log.error(json.dumps({"request_id": self.id, "mistake": place_of(error)}))
            if not self.is_begun:
                await self._refuse(Refusal(500))

    # ---- checks ---------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        return str(self.scope["path"])

    @property
    def _is_open(self) -> bool:
        return self.path in OPEN

    def _check_host(self) -> None:
        known = self.settings.known_hosts
        name = host_name(self.headers.get("host", ""))
        if known and name not in known:
            raise Refusal(
                400, "this service has another name", field="Host", seen=name[:80],
                do=f"use one of {', '.join(known)}",
            )  # fmt: skip

    def _check_origin(self) -> None:
        """Refuse what the page of another site sends with a person's browser."""
        if self.scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return
        site = self.headers.get("sec-fetch-site", "none")
        origin = self.headers.get("origin")
        host = self.headers.get("host", "")
        is_other = origin is not None and origin.partition("://")[2] != host
        if site not in ("none", "same-origin") or is_other:
            raise Refusal(403, "the request comes from the page of another site", field="Origin",
                          seen=(origin or site)[:80])  # fmt: skip

    def _check_caller(self) -> None:
        if self._is_open:
            return
        if self.gate.keys is not None:
            holder = self.gate.keys.holder_of(key_in(self.headers))
            if holder is None:
                ways = "Bearer" if self.path.startswith(API) else 'Basic realm="genrecourse"'
                raise Refusal(401, "the request has no valid key", field="X-API-Key",
                              headers={"WWW-Authenticate": ways})  # fmt: skip
            self.caller = asker = holder
        elif not self.settings.is_loopback:  # an address may lead to a person: it is in no log
            asker = (self.scope.get("client") or ("unknown", 0))[0]
        else:
            return
        seconds = self.gate.rates.wait(asker)
        if seconds:
            raise Refusal(
                429, f"more than {self.settings.rate:g} requests a second",
                headers={"Retry-After": str(math.ceil(seconds))},
            )  # fmt: skip

    async def _checked_body(self) -> Receive:
        """Return a `receive` that gives the body, once it is whole, small enough and JSON."""
        if self.scope["method"] != "POST":  # no route reads a body then
            return self.receive
        is_json = _has_type(self.headers, "application/json")
        is_form = _has_type(self.headers, FORM) and not self.path.startswith(API)
        if not (is_json or is_form):
            seen = self.headers.get("content-type")
            raise Refusal(415, "the body is not said to be JSON in UTF-8", field="Content-Type",
                          seen=seen and seen[:80])  # fmt: skip
        most, stated = self.settings.body_bytes, self.headers.get("content-length", "")
        if stated.isdigit() and int(stated[:20]) > most:
            raise _too_large(most, int(stated[:20]))
        body = await self._whole_body(most)
        if is_json:
            check_json(body, self.settings.nested)
        return _replayed(body, self.receive)

    async def _whole_body(self, most: int) -> bytes:
        parts: list[bytes] = []
        size, is_more = 0, True
        try:
            async with asyncio.timeout(self.settings.body_seconds):
                while is_more:
                    message = await self.receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGone
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    is_more = message.get("more_body", False)
                    if size > most:
                        raise _too_large(most, size if not is_more else None)
        except TimeoutError:
            seconds = self.settings.body_seconds
            raise Refusal(
                408, f"the request was not complete after {seconds:g} seconds",
                headers={"Connection": "close"},
            ) from None  # fmt: skip
        return b"".join(parts)

    # ---- the answer -----------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.is_begun = message["status"], True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers["X-Request-Id"] = self.id
            headers.setdefault("Cache-Control", "no-store")
        await self._send(message)

    async def _refuse(self, refusal: Refusal) -> None:
        response = refusal.response(self.id)
        if refusal.status != 413:
            await response(self.scope, self.receive, self.send)
            return
        # A client that is still sending would see a broken connection instead of the answer: the
        # answer goes out at once, and what still comes is read and dropped for a moment.
        start = {"type": "http.response.start", "status": 413, "headers": response.raw_headers}
        body = {"type": "http.response.body", "body": bytes(response.body), "more_body": True}
        await self.send(start)
        await self.send(body)
        await self._linger()
        await self.send({"type": "http.response.body", "body": b""})

    async def _linger(self) -> None:
        size, is_more = 0, True
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                while is_more and size < LINGER_BYTES:
                    message = await self.receive()
                    size += len(message.get("body", b""))
                    is_more = message.get("more_body", False)
        except TimeoutError:
            return

    def _note(self, seconds: float) -> None:
        route = getattr(self.scope.get("route"), "path", "") or "other"
        method = self.scope["method"] if route != "other" else "any"
        self.gate.meters.answered(route, method, self.status, seconds)
        log.info(
            json.dumps(
                {
                    "request_id": self.id,
                    "caller": self.caller,
                    "method": method,
                    "route": route,
                    "status": self.status,
                    "ms": round(1000 * seconds, 1),
                    **self.scope["state"].get("counts", {}),
                }
            )
        )


def key_in(headers: Headers) -> str:
    """Return the key of a request: X-API-Key, a bearer token, or the password of a browser.

    >>> key_in(Headers({"authorization": "Bearer abc"}))
    'abc'
    """
    if "x-api-key" in headers:
        return headers["x-api-key"]
    kind, _, given = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return given.strip()
    if kind.lower() == "basic":
        try:
            return base64.b64decode(given, validate=True).decode().partition(":")[2]
        except ValueError:
            return ""
    return ""


def host_name(host: str) -> str:
    """Return the name in a Host header, without the port and brackets.

    >>> host_name("localhost:8000"), host_name("[::1]:8000")
    ('localhost', '::1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def place_of(error: BaseException) -> str:
    """Return the kind of an error and where it was raised, without its text.

    >>> try:
    ...     {}["a name"]
    ... except KeyError as error:
    ...     place_of(error)
    'KeyError at <doctest ...'
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"{type(error).__name__}{where}"


def _has_type(headers: Headers, wanted: str) -> bool:
    kind, _, more = headers.get("content-type", "").lower().partition(";")
    charset = more.replace(" ", "").replace('"', "")
    return kind.strip() == wanted and charset in ("", "charset=utf-8", "charset=utf8")


def _too_large(most: int, size: int | None) -> Refusal:
    has = f"has {size:,} bytes" if size is not None else f"has more than {most:,} bytes"
    return Refusal(
        413,
        f"the body {has}; at most {most:,} are read",
        seen=size,
        headers={"Connection": "close"},
    )


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body once, and then what the connection gives."""
    left: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return left.pop() if left else await receive()

    return replay
