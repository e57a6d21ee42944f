"""The record of a service: checked, its roots and proofs, an answer computed again, an erasure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from genrecourse.apps.cli.application import Commands, app, out
from genrecourse.apps.cli.options import OwnModel, PolicyFile, own_model
from genrecourse.errors import UserError

if TYPE_CHECKING:
    from genrecourse.advice.record.check import State

record = typer.Typer(
    cls=Commands,
    help="Check the record of a service, compute an answer again, erase a person's values.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(record, name="record")

RecordFolder = Annotated[
    Path, typer.Argument(help="Folder that 'genrecourse serve --record' wrote.")
]
KnownRoots = Annotated[
    list[str] | None,
    typer.Option(
        "--root",
        metavar="SIZE:ROOT",
        help="A root that was published, and how many lines it covers. May be given several times.",
    ),
]
Number = Annotated[int, typer.Option("--row", min=0, help="Number of the record, from 0.")]


@record.command(epilog="Example: genrecourse record verify record")
def verify(folder: RecordFolder, root: KnownRoots = None) -> None:
    """Check every byte of a record, and name the first that was damaged.

    A record alone cannot show that lines at its end are missing, or that all of it was written
    anew: give roots that were published. Works while the service runs.
    """
    from genrecourse.advice.record.check import check

    state = check(folder, known=dict(_known(text) for text in root or []))
    _say("\n".join(_findings(state, len(root or []))))


@record.command(epilog="Example: genrecourse record root record")
def root(
    folder: RecordFolder,
    day: Annotated[
        str | None,
        typer.Option(metavar="YYYY-MM-DD", help="At the end of this day (UTC). Default: now."),
    ] = None,
) -> None:
    """Print the Merkle root of a record, to be published: SIZE:ROOT, as 'verify --root' reads it.

    The root covers all lines from the first; the tree is that of RFC 6962. The record is checked.
    """
    from genrecourse.advice.record.check import check
    from genrecourse.advice.record.proofs import root_of_day

    state = check(folder)
    size, top = (state.size, state.root()) if day is None else root_of_day(state, day)
    _say(f"{size}:{top}")


@record.command(epilog="Example: genrecourse record prove record --row 0")
def prove(folder: RecordFolder, row: Number) -> None:
    """Print a proof (JSON) that one line is in the tree of the root that 'record root' prints."""
    import json

    from genrecourse.advice.record.proofs import inclusion_proof

    _say(json.dumps(inclusion_proof(folder, row), indent=2))


@record.command(epilog="Example: genrecourse record replay record --row 0 --model model")
def replay(
    folder: RecordFolder,
    row: Number,
    model: Annotated[Path, typer.Option(help="Folder of the model that the service used.")],
    policy: PolicyFile = None,
    classifier: OwnModel = None,
) -> None:
    """Compute a recorded answer again, and say whether it is the same, byte for byte.

    What it was made by and differs now (the model, the version) is printed as well. Ends with
    status 1 if an answer is another one.
    """
    from genrecourse.advice.record.replay import replay as compute_again
    from genrecourse.advice.service import Service

    service = Service.open(model, own_model(classifier), policy)
    found = compute_again(folder, row, service, model)
    _say(str(found))
    if found.different:
        raise typer.Exit(1)


@record.command(epilog="Example: genrecourse record erase record --request 4f1c2a")
def erase(
    folder: RecordFolder,
    request: Annotated[str, typer.Option(help="Id of the request, as the response stated it.")],
    person: Annotated[
        int | None,
        typer.Option(min=0, help="Only this person of the request, from 0. Default: all."),
    ] = None,
) -> None:
    """Erase the personal values of a request. The record says so, and stays whole.

    A service that runs owns the record, so stop it first. Copies of the folder are not touched.
    """
    from genrecourse.advice.record import Record, RecordError
    from genrecourse.advice.record.check import check

    check(folder)  # a folder without a record stays one
    try:
        with Record(folder, {}) as opened:
            n = opened.erase(request, person)
    except RecordError as error:
        raise UserError(str(error)) from None
    whose = "1 person" if n == 1 else f"{n:,} people"
    _say(f"erased the values of {whose}" if n else "these values were erased before")


def _known(text: str) -> tuple[int, str]:
    size, colon, top = text.partition(":")
    is_root = len(top) == 64 and set(top) <= set("0123456789abcdef")
    if not (colon and size.isdecimal() and size.isascii() and len(size) < 19 and is_root):
        raise UserError(f"--root {text!r} should be SIZE:ROOT, as 'genrecourse record root' prints")
    return int(size), top


def _findings(state: State, known: int) -> list[str]:
    people = "1 person" if state.people == 1 else f"{state.people:,} people"
    said = [
        f"whole: {state.size:,} lines, {state.answers:,} answers about {people}",
        f"erased: the values of {len(state.erased):,} of them",
        f"root: {state.size}:{state.root()}",
    ]
    if known:
        said.append(f"it has the {known:,} known roots" if known > 1 else "it has the known root")
    if state.pending:
        said.append(
            f"the erasure of {len(state.pending):,} is recorded, but their values are still there; "
            "it is completed when the record is opened, or by the process that is at work"
        )
    if state.unfinished:
        said.append(
            f"{state.unfinished:,} bytes at the end are of an answer that is being written, or was "
            "cut short and never sent"
        )
    return said


def _say(text: str) -> None:
    out.print(Text(text), soft_wrap=True)
