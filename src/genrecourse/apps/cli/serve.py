"""The web service: a page for people and an API for systems, and the keys for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from genrecourse.apps.cli.application import app, err, out
from genrecourse.apps.cli.options import ModelFolder, OwnModel, PolicyFile, own_model
from genrecourse.errors import UserError

if TYPE_CHECKING:
    from genrecourse.advice.service import Service
    from genrecourse.apps.serve.recording import Recording

NEEDS = ("fastapi", "jinja2", "prometheus_client", "uvicorn")


@app.command(epilog="Example: genrecourse serve model")
def serve(
    model: ModelFolder,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8000,
    api_keys: Annotated[
        Path | None, typer.Option(help="File of keys, written by 'genrecourse serve-key'.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let other machines ask without a key.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A name under which the service may be addressed; may be repeated."),
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="Folder to which each answer is recorded.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the model for KServe. Default: the folder's.")
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser, if there is one.")
    ] = False,
    policy: PolicyFile = None,
    classifier: OwnModel = None,
) -> None:
    """Start the page and the API of a model, until Ctrl-C or SIGTERM.

    On loopback it may run open. On any other address it needs --api-keys, or --insecure.
    Needs the extra: pip install 'genrecourse[serve]'.
    """
    _check_installed()
    from genrecourse.advice.service import Service
    from genrecourse.apps.serve.application import create_app
    from genrecourse.apps.serve.keys import Keys
    from genrecourse.apps.serve.run import check_exposure, run
    from genrecourse.apps.serve.settings import Settings

    called = name or model.resolve().name or "model"
    settings = Settings(host=host, port=port, name=called, hosts=tuple(allow_host or ()))
    keys = None if api_keys is None else Keys.read(api_keys)
    check_exposure(settings, keys, insecure)
    service = Service.open(model, own_model(classifier), policy)

    def ready(url: str) -> None:
        about = f"{called} at {url} (the API: {url}/docs); Ctrl-C ends it"
        out.print(Text(about), soft_wrap=True)
        if open_page:
            _open_browser(url)

    made = create_app(service, settings, keys=keys, recording=_recording(record, service, model))
    run(made, settings, ready)


@app.command("serve-key", epilog="Example: genrecourse serve-key branch-office --file keys.txt")
def serve_key(
    name: Annotated[str, typer.Argument(help="Who will hold the key.")],
    file: Annotated[Path, typer.Option(help="File of keys for 'genrecourse serve --api-keys'.")],
) -> None:
    """Make a key for the API: print it once, and add its hash to a file."""
    from genrecourse.apps.serve.keys import new_key

    key = new_key(name, file)
    out.print(Text(key), soft_wrap=True)
    err.print(Text(f"the key of {name}; {file} holds only its hash"), soft_wrap=True)


def _check_installed() -> None:
    from importlib.util import find_spec

    absent = [each for each in NEEDS if find_spec(each) is None]
    if absent:
        raise UserError(
            f"the service needs {', '.join(absent)}; run pip install 'genrecourse[serve]'"
        )


def _recording(folder: Path | None, service: Service, model: Path) -> Recording | None:
    if folder is None:
        return None
    from genrecourse.advice.record.answers import answer_about, made_by
    from genrecourse.advice.record.writer import Record
    from genrecourse.apps.serve.recording import Recording

    return Recording(Record(folder, made_by(service, model, by_row=True)), answer_about)


def _open_browser(url: str) -> None:
    import threading
    import webbrowser

    # a machine without a browser only shows the address
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
