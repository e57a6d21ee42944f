"""create_app: the application around one service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.staticfiles import StaticFiles

from genrecourse.apps.serve.answers import Answers
from genrecourse.apps.serve.api import api_routes
from genrecourse.apps.serve.asked import Asking
from genrecourse.apps.serve.description import describe
from genrecourse.apps.serve.desk import Desk
from genrecourse.apps.serve.docs_page import docs_routes
from genrecourse.apps.serve.errors import add_handlers
from genrecourse.apps.serve.gate import Gate
from genrecourse.apps.serve.metrics import Meters
from genrecourse.apps.serve.platforms import platform_routes

if TYPE_CHECKING:
    from genrecourse.advice.service import Service
    from genrecourse.apps.serve.keys import Keys
    from genrecourse.apps.serve.recording import Recording
    from genrecourse.apps.serve.settings import Settings

HERE = Path(__file__).parent
PAGE = "genrecourse.apps.serve.page"


def create_app(
    service: Service,
    settings: Settings,
    *,
    keys: Keys | None = None,
    recording: Recording | None = None,
) -> FastAPI:
    """Return the application: the API, the page, and the gate that stands before them.

    keys: who may ask; None: everybody. recording: of each answer, before it is sent.
    """
    meters, desk = Meters(), Desk(service, settings)
    desk.batches = meters.computed
    meters.watch_queue(lambda: desk.n_waiting)
    asking = Asking(settings)
    answers = Answers(desk, asking, meters, recording)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        desk.open()
        try:
            yield
        finally:
            desk.close()
            if recording is not None:
                recording.close()

    app = FastAPI(
        title="genrecourse",
        version=version("genrecourse"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.desk = desk
    app.add_middleware(
        Gate, settings=settings, keys=keys, meters=meters, check_room=desk.check_room
    )
    add_handlers(app, asking.names)
    app.include_router(api_routes(answers))
    app.include_router(platform_routes(answers))
    app.include_router(docs_routes(app))
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")

    @app.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        return Response(meters.text(), media_type=CONTENT_TYPE_LATEST)

    if find_spec(PAGE) is not None:
        app.include_router(import_module(PAGE).page_routes(answers))
    described: dict[str, Any] = describe(app, answers, with_keys=keys is not None)
    app.openapi = lambda: described  # type: ignore[method-assign]
    return app
