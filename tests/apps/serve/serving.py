"""The service on a real socket: in a thread, or as the command in a process of its own."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import pandas as pd
import uvicorn

from genrecourse.advice.service import Service
from genrecourse.apps.serve.application import create_app
from genrecourse.apps.serve.run import server_config
from genrecourse.apps.serve.settings import Settings

T = TypeVar("T")
PATIENCE = 60  # seconds, for a busy machine; no test depends on how long something takes


def run_apart(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns. A browser test may keep this thread's event loop busy."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def as_person(X: pd.DataFrame, row: int) -> dict[str, Any]:
    """Return one row as JSON holds it."""
    return {
        str(name): None if pd.isna(cell) else getattr(cell, "item", lambda cell=cell: cell)()
        for name, cell in X.iloc[row].items()
    }


class Served:
    """An application that listens on a free port of loopback, until the block ends."""

    def __init__(self, service: Service, settings: Settings, **about: Any):
        self.app: Any = create_app(service, settings, **about)
        self.server = uvicorn.Server(server_config(self.app, settings))
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],), daemon=True)

    @property
    def desk(self) -> Any:
        return self.app.state.desk

    def __enter__(self) -> Self:
        self.thread.start()
        wait_for(lambda: self.server.started and self.desk.is_working)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.server.should_exit = True
        self.thread.join(PATIENCE)
        self.socket.close()


def wait_for(is_true: Any) -> None:
    until = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.01)


@contextmanager
def command(*words: str | Path, cwd: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `genrecourse serve` with these words; give the process and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "genrecourse", "serve", *map(str, words), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert " at http" in line, process.stderr.read() if process.stderr else line
        yield process, line.split(" at ")[1].split()[0]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def raw(port: int, data: bytes, *, seconds: float = PATIENCE) -> bytes:
    """Send bytes on a connection of their own, and return what comes until it is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(data)
        parts = []
        try:
            while part := connection.recv(65_536):
                parts.append(part)
        except ConnectionError:
            pass
        return b"".join(parts)
