"""Judge methods under the paper's protocol: one method, or several against each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from genrecourse.apps.cli.application import app, err, out, print_error, print_notes
from genrecourse.apps.cli.options import (
    Drop,
    Immutable,
    Seed,
    how_many_rows,
    parameter,
    split,
)
from genrecourse.errors import UserError, counted, did_you_mean, own_warnings

if TYPE_CHECKING:
    from genrecourse.evaluation.comparison.results import Line

People = Annotated[
    str, typer.Option(metavar="N|all", help="Rejected test rows per seed; all: every one.")
]
Witnesses = Annotated[
    bool,
    typer.Option(
        "--witnesses/--no-witnesses",
        help="Also measure with further models (h retrained, other judges): slower, the default.",
    ),
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Pool all rows and split them again by the seed.")
]
OwnTarget = Annotated[
    str | None, typer.Option("--target", help="Of your own table: the column with the outcome.")
]
OwnFavourable = Annotated[
    str,
    typer.Option(
        "--favourable", help="Of your own table: the favourable outcome, or several with commas."
    ),
]
OwnSchema = Annotated[
    Path | None, typer.Option("--schema", help="Of your own table: from 'genrecourse schema'.")
]
OWN = "See 'genrecourse datasets'; or your own table, .csv or .parquet, with --target."
Nested = Annotated[bool, typer.Option("--nested", help="Use training rows alone, for development.")]


@app.command(
    epilog="Example: genrecourse evaluate --no-witnesses --method nnr --dataset german --rows 50"
)
def evaluate(
    method: Annotated[str, typer.Option(help="See 'genrecourse methods'.")],
    dataset: Annotated[str, typer.Option(help=OWN)],
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A parameter of the method; may be repeated."),
    ] = None,
    rows: People = "200",
    seed: Seed = 0,
    witnesses: Witnesses = True,
    nested: Nested = False,
    fresh: Fresh = False,
    target: OwnTarget = None,
    favourable: OwnFavourable = "",
    immutable: Immutable = "",
    drop: Drop = "",
    schema: OwnSchema = None,
) -> None:
    """Judge one method under the paper's protocol: every metric, with its interval and people.

    The method runs in a process of its own, which gets training rows, their labels, h and the
    schema, and never sees the judge. The table also shows the ceiling, which is what copying a
    training row can reach, and accepted people without any change.

    Your own table is split by the seed: three quarters to learn from, one quarter to ask about.
    """
    params = dict(parameter(text) for text in param or [])
    from genrecourse.evaluation.comparison.entries import Entry
    from genrecourse.evaluation.comparison.ranking import standings
    from genrecourse.methods import METHODS
    from genrecourse.model.settings import check_settings
    from genrecourse.reports.console import metrics_table

    entry = Entry(method, method, params)
    if method in METHODS:  # the others are references, such as the ceiling
        check_settings(method, METHODS[method](**params))
    how = {"rows": how_many_rows(rows), "witnesses": witnesses, "nested": nested, "fresh": fresh}
    about = (target, favourable, immutable, drop, schema)
    lines = _compared([entry], _data_sets([dataset], *about), [seed], **how)
    _end_if_failed(lines)
    print_notes(lines[0]["notes"])
    out.print(metrics_table(standings(lines)))


@app.command(
    epilog="Example: genrecourse compare --no-witnesses --methods nnr,nnr-dplus --datasets german "
    "--seeds 2 --rows 50 -o results.jsonl"
)
def compare(
    methods: Annotated[str, typer.Option(metavar="A,B", help="See 'genrecourse methods'.")],
    datasets: Annotated[str, typer.Option(metavar="A,B", help=OWN)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Results, .jsonl; the tables go beside it.")
    ],
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 5,
    first_seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    rows: People = "200",
    reference: Annotated[
        str | None,
        typer.Option(help="Compare each method with this one. Default: with the best other one."),
    ] = None,
    witnesses: Witnesses = True,
    nested: Nested = False,
    fresh: Fresh = False,
    target: OwnTarget = None,
    favourable: OwnFavourable = "",
    immutable: Immutable = "",
    drop: Drop = "",
    schema: OwnSchema = None,
) -> None:
    """Judge methods on data sets and seeds under the paper's protocol, and show which is better.

    Each finished run is a line of the results. If the command is started again after Ctrl-C or a
    kill, it does only the runs that are missing. Tables: .csv (each metric and seed), .md and .tex
    (booktabs).
    """
    from genrecourse.advice.outputs import check_results

    check_results(output)
    from genrecourse.evaluation.comparison import rendering
    from genrecourse.evaluation.comparison.ranking import standings
    from genrecourse.reports.console import standings_tables
    from genrecourse.table.text_files import write_text

    names = split(methods)
    sets = _data_sets(split(datasets), target, favourable, immutable, drop, schema)
    if reference is not None and reference not in names:
        close = did_you_mean(reference, names)
        raise UserError(f"the reference '{reference}'{close} is none of the methods {names}")
    wanted = range(first_seed, first_seed + seeds)
    how = {
        "rows": how_many_rows(rows),
        "witnesses": witnesses,
        "nested": nested,
        "fresh": fresh,
        "output": output,
    }
    lines = _compared(names, sets, wanted, **how)
    found = standings(lines, reference)
    for ending, text in rendering.files(lines, found).items():
        write_text(text, output.with_suffix(ending))
    for part in rendering.by_dataset(found):
        out.print(standings_tables(part))
    runs, beside = counted(len(lines), "run"), output.with_suffix("")
    out.print(f"{runs} in {output}; tables in {beside}.csv, .md, .tex")
    _end_if_failed(lines)


def _data_sets(
    names: list[str],
    target: str | None,
    favourable: str,
    immutable: str,
    drop: str,
    schema: Path | None,
) -> list[str]:
    """Return the names of the data sets; a name of a file is the user's own table, read here."""
    from genrecourse.advice.own_data import is_file_name, own_data

    own = [name for name in names if is_file_name(name)]
    if not own and any((target, favourable, immutable, drop, schema)):
        raise UserError(
            "--target, --favourable, --immutable, --drop and --schema are about your own table; "
            f"{', '.join(names)} need none of them"
        )
    return [
        own_data(
            Path(name),
            target,
            favourable=split(favourable),
            immutable=split(immutable),
            drop=split(drop),
            schema=schema,
        )
        if name in own
        else name
        for name in names
    ]


def _compared(entries: Any, datasets: list[str], seeds: Any, **options: Any) -> list[Line]:
    """Return the lines of a comparison. Ctrl-C loses only the run in progress."""
    from genrecourse.evaluation.comparison.run import compare as run_comparison

    output = options.get("output")
    try:
        with own_warnings() as notes:
            lines = run_comparison(entries, datasets, list(seeds), **options)
    except KeyboardInterrupt:
        kept = f": finished runs are in {output}; the same command continues there"
        err.print(Text(f"interrupted{kept if output else ''}"), soft_wrap=True)
        raise typer.Exit(130) from None
    print_notes(notes)
    return lines


def _end_if_failed(lines: list[Line]) -> None:
    """Print the runs that failed; if there are any, end with status 1."""
    failed = [line for line in lines if "failed" in line]
    for line in failed:
        where = f"{line['label']} on {line['dataset']}, seed {line['seed']}"
        print_error(f"failed: {where}: {line['failed']}")
    if failed:
        raise typer.Exit(1)
