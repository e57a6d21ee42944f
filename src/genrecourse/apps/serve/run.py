"""The process of the service: it listens until it is told to stop, and answers what it accepted."""

from __future__ import annotations

import logging
import signal
import socket
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn

from genrecourse.apps.serve.connections import protocol_within
from genrecourse.errors import UserError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from genrecourse.apps.serve.keys import Keys
    from genrecourse.apps.serve.settings import Settings


HEAD_BYTES = 32_768  # of a request's head


def check_exposure(settings: Settings, keys: Keys | None, insecure: bool) -> None:
    """Refuse to be reached by other machines without keys, unless that is asked for.

    >>> from genrecourse.apps.serve.settings import Settings
    >>> check_exposure(Settings(), keys=None, insecure=False)
    >>> check_exposure(Settings(host="0.0.0.0"), keys=None, insecure=False)
    Traceback (most recent call last):
    genrecourse.errors.UserError: other machines reach the service at 0.0.0.0, and it has no keys...
    """
    if not settings.is_loopback and keys is None and not insecure:
        raise UserError(
            f"other machines reach the service at {settings.host}, and it has no keys; give "
            "--api-keys FILE (write one with 'genrecourse serve-key NAME --file FILE'), or "
            "--insecure if something else keeps strangers away"
        )


def run(
    app: FastAPI, settings: Settings, on_ready: Callable[[str], None] = lambda url: None
) -> None:
    """Serve until SIGTERM or SIGINT, then answer what was accepted, and return.

    on_ready: called with the address once the service listens.
    """
    listening = _listen(settings)
    _set_up_logs()
    warnings.simplefilter("ignore")  # a warning may quote a value of a person
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{host}:{listening.getsockname()[1]}"
    _Server(server_config(app, settings), lambda: on_ready(url)).run(sockets=[listening])


def server_config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """Return how uvicorn serves the application."""
    return uvicorn.Config(
        app,
        http=protocol_within(settings),
        ws="none",
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_keep_alive=settings.idle_seconds,
    )


class _Server(uvicorn.Server):
    """uvicorn's server, which ends with status 0 after SIGTERM."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]):
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own raises the signal again in the end, and so ends with a failure
        signals = (signal.SIGINT, signal.SIGTERM)
        before: dict[signal.Signals, Any] = {
            each: signal.signal(each, self.handle_exit) for each in signals
        }
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise UserError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror}; give "
            "another --port or --host"
        ) from None
    listening.listen(2048)
    return listening


def _set_up_logs() -> None:
    """Write the log of the service to standard error, one JSON object on each line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line())
    log = logging.getLogger("genrecourse.serve")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z")
        return f'{{"time": "{time}", "level": "{record.levelname}", {record.getMessage()[1:]}'
