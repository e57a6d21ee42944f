"""The process of the service: it listens until it is told to stop, then answers what it accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uvicorn

from genrecourse.apps.serve.application import create_app

if TYPE_CHECKING:
    from genrecourse.advice.service import Service
    from genrecourse.apps.serve.settings import Settings


def run(service: Service, settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT."""
    app = create_app(service, settings)
    uvicorn.run(app, host=settings.host, port=settings.port, access_log=False)
