"""Writes docs/cli.md to standard output, from the help of the command line itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from genrecourse.apps.cli import app


def main() -> None:
    group: Any = typer.main.get_command(app)
    print("# The command line\n")
    print("Written by `python scripts/cli_page.py > docs/cli.md`; each example is run by a test.\n")
    print("A mistake prints one sentence and ends with exit status 2. Tables are `.csv` or")
    print("`.parquet` (the latter needs `pip install 'genrecourse[parquet]'`). A file is written")
    print("whole or not at all.")
    for name, command in _commands(group):
        print(f"\n## genrecourse {name}\n")
        print(" ".join((command.help or "").split()))
        example = " ".join((command.epilog or "").split()).removeprefix("Example: ")
        print(f"\n```sh\n{example}\n```\n")
        print("| | |\n|---|---|")
        for parameter in command.params:
            print(f"| {_spelling(parameter)} | {_about(parameter)} |")


def _commands(group: Any) -> Iterator[tuple[str, Any]]:
    """Yield every command with its name; `record verify` is one in a group."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from ((f"{name} {inner}", each) for inner, each in _commands(command))
        else:
            yield name, command


def _spelling(parameter: Any) -> str:
    if parameter.param_type_name == "option":
        names = [*reversed(parameter.opts), *parameter.secondary_opts]
        return ", ".join(f"`{name}`" for name in names)
    return f"`{(parameter.name or '').upper()}`"


def _about(parameter: Any) -> str:
    said = str(getattr(parameter, "help", "") or "")
    if parameter.required and parameter.param_type_name == "option":
        said += " Required."
    unsaid = parameter.default in (None, "", ()) or isinstance(parameter.default, bool)
    if not unsaid and not callable(parameter.default):
        said += f" Default: {parameter.default}."
    return said


main()
