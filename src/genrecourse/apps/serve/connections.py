"""What a connection may do before its request is complete: uvicorn itself waits for ever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from genrecourse.apps.serve.settings import Settings


def protocol_within(settings: Settings) -> type[H11Protocol]:
    """Return uvicorn's protocol for connections within the limits of the settings.

    A connection is closed if the head of a request takes too long, or if too many are open.
    """

    class Impatient(H11Protocol):
        head: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > settings.connections:
                transport.close()
                return
            self._watch_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch_head(is_new=bool(data))

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_watching()
            super().connection_lost(exc)

        def _watch_head(self, is_new: bool = True) -> None:
            """Give the head of the next request its time, from its first byte on."""
            if self.conn.their_state is not h11.IDLE:
                self._stop_watching()
            elif self.head is None and is_new:
                self.head = self.loop.call_later(settings.head_seconds, self._close)

        def _stop_watching(self) -> None:
            if self.head is not None:
                self.head.cancel()
                self.head = None

        def _close(self) -> None:
            self.head = None
            is_busy = self.cycle is not None and not self.cycle.response_complete
            if not self.transport.is_closing() and not is_busy:
                self.transport.close()

    return Impatient
