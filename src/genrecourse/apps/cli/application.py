"""The typer application, and how errors, warnings and notes are printed."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version as installed_version
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from genrecourse.errors import UserError, did_you_mean

out = Console()
err = Console(stderr=True)

RENAMED = {"recourse": "plans"}  # commands of earlier versions


class Commands(TyperGroup):
    """Prints the UserError of any command as one sentence, and ends with exit status 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except UserError as error:
            print_error(f"error: {error}")
            raise typer.Exit(2) from None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            now = RENAMED.get(name)
            close = f" (did you mean '{now}'?)" if now else did_you_mean(name, known)
            raise UserError(f"no command '{name}'{close}; there are {', '.join(known)}")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=Commands,
    name="genrecourse",
    help="What to change to be accepted by a model. Begin with: genrecourse demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        out.print(f"genrecourse {installed_version('genrecourse')}")
        raise typer.Exit


def main() -> None:
    """Entry point of the `genrecourse` command."""
    app()


def print_error(text: str) -> None:
    err.print(Text(text, style="red"), soft_wrap=True)


def print_warnings(texts: Iterable[str]) -> None:
    """Print what looks wrong about a table or a policy."""
    for text in texts:
        err.print(Text(f"warning: {text}", style="yellow"), soft_wrap=True)


def print_notes(texts: Iterable[str]) -> None:
    """Print what the library has to say about its own work."""
    for text in texts:
        err.print(Text(f"note: {text}", style="yellow"), soft_wrap=True)
