"""To begin with: the demo, and what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from genrecourse.apps.cli.application import app, out
from genrecourse.apps.cli.options import SafeCells, Seed
from genrecourse.errors import UserError, counted

DEMO_FILES = re.compile(r"report\.html|policy\.toml")
POLICY = Path(__file__).parents[2] / "data" / "embedded" / "german.toml"  # as in `apps.demo`


@app.command(epilog="Example: genrecourse demo --folder demo")
def demo(
    folder: Annotated[Path, typer.Option(help="Folder for report.html.")] = Path("demo"),
    people: Annotated[int, typer.Option(min=1, help="How many people to show.")] = 3,
    seed: Seed = 0,
) -> None:
    """Train on the German credit data inside the package, show plans, write a report."""
    from genrecourse.advice.outputs import check_folder

    what = "a folder of the demo with its policy unchanged"
    check_folder(folder, holds=DEMO_FILES, what=what, is_ours=_is_unchanged)
    from genrecourse.apps.demo import run_demo

    run_demo(folder, console=out, seed=seed, people=people)


def _is_unchanged(folder: Path) -> bool:
    """Return whether nobody has edited the policy that an earlier demo put into the folder."""
    policy = folder / "policy.toml"
    return not policy.exists() or policy.read_bytes() == POLICY.read_bytes()


@app.command(epilog="Example: genrecourse datasets german -o german.csv")
def datasets(
    name: Annotated[str | None, typer.Argument(help="The data set to write to a file.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for it, .csv or .parquet.")
    ] = None,
    safe_cells: SafeCells = False,
) -> None:
    """List the data sets that can be loaded, or write one to a file."""
    if name is None:
        _list_datasets()
        return
    if output is None:
        raise UserError(f"name a file for '{name}': genrecourse datasets {name} -o {name}.csv")
    from genrecourse.advice.outputs import check_table

    check_table(output)
    from genrecourse.data.datasets import read_whole
    from genrecourse.table.table_files import write_table

    whole = read_whole(name)
    write_table(whole, output, safe_cells=safe_cells)
    rows, columns = counted(len(whole), "row"), counted(whole.shape[1], "column")
    out.print(f"{rows} and {columns} in {output}")


def _list_datasets() -> None:
    from genrecourse.advice.catalogue import describe_datasets

    table = Table("name", "rows", "features", "favourable", "licence", "here", box=None)
    for each in describe_datasets():
        rows = "?" if each.n_rows is None else f"{each.n_rows:,}"
        features = "?" if each.n_features is None else str(each.n_features)
        here = "downloaded on first use" if each.n_rows is None else "yes"
        table.add_row(each.name, rows, features, each.favourable, each.licence, here)
    out.print(table)


@app.command(epilog="Example: genrecourse policies german -o policy.toml")
def policies(
    name: Annotated[str | None, typer.Argument(help="The policy to write to a file.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for it, .toml.")
    ] = None,
) -> None:
    """List the example policies inside the package, or write one to a file, to start from."""
    from genrecourse.advice.example_policies import describe_policies, example_policy

    if name is None:
        table = Table("name", "what it lets a plan change", box=None)
        for each, about in describe_policies().items():
            table.add_row(each, about)
        out.print(table)
        return
    text = example_policy(name)
    if output is None:
        raise UserError(f"name a file for '{name}': genrecourse policies {name} -o policy.toml")
    from genrecourse.advice.outputs import check_file
    from genrecourse.table.text_files import write_text

    check_file(output, (".toml",))
    write_text(text, output)
    text = f"the policy for '{name}' in {output}; see: genrecourse policy {output} YOUR.csv"
    out.print(Text(text), soft_wrap=True)


@app.command(epilog="Example: genrecourse methods")
def methods() -> None:
    """List the methods that 'fit --method' takes."""
    from genrecourse.advice.catalogue import describe_methods

    table = Table("name", "what it does", box=None)
    for name, about in describe_methods().items():
        table.add_row(name, about)
    out.print(table)
