"""The web service: a page for people and an API for systems."""

from __future__ import annotations

from typing import Annotated

import typer

from genrecourse.apps.cli.application import app
from genrecourse.apps.cli.options import ModelFolder, OwnModel, PolicyFile, own_model


@app.command(epilog="Example: genrecourse serve model")
def serve(
    model: ModelFolder,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8000,
    policy: PolicyFile = None,
    classifier: OwnModel = None,
) -> None:
    """Start the page and the API of a model, until it is stopped with Ctrl-C or SIGTERM.

    Needs the extra: pip install 'genrecourse[serve]'.
    """
    from genrecourse.advice.service import Service
    from genrecourse.apps.serve.run import run
    from genrecourse.apps.serve.settings import Settings

    service = Service.open(model, own_model(classifier), policy)
    run(service, Settings(host=host, port=port, name=model.resolve().name))
