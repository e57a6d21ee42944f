"""create_app: the application around one service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from genrecourse.apps.serve.desk import Desk
from genrecourse.apps.serve.errors import add_handlers
from genrecourse.apps.serve.settings import Settings

if TYPE_CHECKING:
    from genrecourse.advice.service import Service

HERE = Path(__file__).parent
PAGE = "genrecourse.apps.serve.page"


def create_app(service: Service, settings: Settings) -> FastAPI:
    """Return the application: the API, the page and what stands before them."""
    desk = Desk(service, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        desk.open()
        try:
            yield
        finally:
            desk.close()

    app = FastAPI(title="genrecourse", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.desk = desk
    add_handlers(app)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    if find_spec(PAGE) is not None:
        app.include_router(import_module(PAGE).page_routes(desk, settings))
    return app
