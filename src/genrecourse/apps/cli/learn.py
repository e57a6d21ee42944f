"""From a table to a model folder: schema, policy, fit, and what a folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from genrecourse.apps.cli.application import app, err, out, print_notes, print_warnings
from genrecourse.apps.cli.options import (
    CostOption,
    Drop,
    Immutable,
    ModelFolder,
    OwnModel,
    PolicyFile,
    Seed,
    TableFile,
    own_model,
    score_ends,
    split,
)
from genrecourse.errors import UserError, counted

if TYPE_CHECKING:
    from genrecourse.advice.learning import Learned
    from genrecourse.advice.summary import RulesSummary


@app.command(
    epilog="Example: genrecourse schema german.csv --target credit --immutable age,foreign_worker "
    "-o schema.json"
)
def schema(
    table: TableFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The schema, as JSON.")],
    target: Annotated[str | None, typer.Option(help="Column with the outcome: left out.")] = None,
    immutable: Immutable = "",
    cost: CostOption = None,
    drop: Drop = "",
    keep: Annotated[
        bool,
        typer.Option(
            "--keep-relations", help="Write the relations that were found: every plan keeps them."
        ),
    ] = False,
) -> None:
    """Write what each column of a table is, and warn about what looks wrong.

    It also looks for relations that the rows keep, such as 'a is at most b'. Edit the file, then
    fit.
    """
    from genrecourse.advice.outputs import check_file

    check_file(output, reads=[table])
    from genrecourse.advice.columns import without_columns
    from genrecourse.table.discovery import discover_relations, keep_relations
    from genrecourse.table.schema import Schema
    from genrecourse.table.table_files import read_table
    from genrecourse.table.text_files import write_text

    X = without_columns(read_table(table), [*split(drop), *([target] if target else [])])
    found = Schema.infer(X, immutable=split(immutable), cost=cost or "range")
    warnings, suggestions = found.lint(X), discover_relations(X, found)
    if keep:
        found = keep_relations(found, suggestions)
    write_text(found.to_json() + "\n", output)
    out.print(f"{counted(len(found), 'feature')} of {counted(len(X), 'row')} in {output}")
    if suggestions:
        what = "every plan keeps them" if keep else "--keep-relations makes every plan keep them"
        out.print(f"{counted(len(suggestions), 'relation')} found; {what}:")
    for each in suggestions:
        out.print(Text(f"  {each}"), soft_wrap=True)
    print_warnings(warnings)


@app.command(
    name="split",
    epilog="Example: genrecourse split german.csv --rest rest.csv --held held.csv --target credit",
)
def split_command(
    table: TableFile,
    rest: Annotated[Path, typer.Option(help="Rows to learn from: .csv or .parquet.")],
    held: Annotated[Path, typer.Option(help="Rows to hold out: .csv or .parquet.")],
    share: Annotated[float, typer.Option(help="Share of the rows that are held out.")] = 0.25,
    target: Annotated[
        str | None, typer.Option(help="Column with the outcome: its shares stay alike.")
    ] = None,
    together: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Rows with the same value here stay together."),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Split a table: rows for 'fit', and rows of other people for 'audit'.

    An audit of the people whom the model learned from would look better than it is. Rows that are
    alike in every column stay together; use --together if a person has several rows.
    """
    from genrecourse.advice.outputs import check_table

    for output in (rest, held):
        check_table(output, reads=[table])
    if rest.absolute() == held.absolute():
        raise UserError(f"--rest and --held both name {rest}; name two files")
    from genrecourse.table.splits import split_table
    from genrecourse.table.table_files import read_table, write_table

    parts = split_table(read_table(table), share=share, target=target, together=together, seed=seed)
    for part, output in zip(parts, (rest, held), strict=True):
        write_table(part, output)
        out.print(f"{counted(len(part), 'row')} in {output}")


@app.command(
    name="policy",
    epilog="Example: genrecourse policy policies/german.toml german.csv",
)
def policy_command(
    file: Annotated[Path, typer.Argument(help="The policy, a .toml.")],
    table: TableFile,
    model: Annotated[
        Path | None,
        typer.Option(help="A model fitted under it, to find rules that leave people no plan."),
    ] = None,
    drop: Drop = "",
    classifier: OwnModel = None,
    strict: Annotated[bool, typer.Option("--strict", help="End with 1 on any warning.")] = False,
) -> None:
    """Show how each column of a table may change under a policy, and warn about what looks wrong.

    What 'fit' or a request would refuse for such a table is an error.
    """
    from genrecourse.advice.columns import without_columns
    from genrecourse.advice.policy_check import check_policy
    from genrecourse.advice.service import Service
    from genrecourse.rules.policy import Policy
    from genrecourse.table.table_files import read_table

    policy = Policy.read(file)
    whole = without_columns(read_table(table), split(drop))
    service = None if model is None else Service.open(model, own_model(classifier))
    found = check_policy(policy, whole, service)
    out.print(_rules_table(found.summary))
    print_warnings(found.warnings)
    if found.refused:
        raise UserError(f"{file}: {'; '.join(found.refused)}")
    if not found.warnings:
        out.print("nothing looks odd")
    elif strict:
        raise typer.Exit(1)


@app.command(
    epilog="Example: genrecourse fit german.csv --target credit --favourable good --immutable "
    "age,personal_status_sex,foreign_worker -o model"
)
def fit(
    table: TableFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the fitted model.")],
    target: Annotated[str | None, typer.Option(help="Column with the outcome of each row.")] = None,
    policy: PolicyFile = None,
    favourable: Annotated[
        str, typer.Option(help="Favourable outcome, or several with commas. Default: 1.")
    ] = "",
    schema_file: Annotated[
        Path | None, typer.Option("--schema", help="From 'genrecourse schema'.")
    ] = None,
    immutable: Immutable = "",
    cost: CostOption = None,
    drop: Drop = "",
    classifier: OwnModel = None,
    cutoff: Annotated[
        float | None, typer.Option(help="Scores above it are accepted. Default: 0.5.")
    ] = None,
    score_range: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,HIGH",
            help="The ends of your model's scale, such as 300,850. Default: 0,1.",
        ),
    ] = None,
    method: Annotated[str, typer.Option(help="See 'genrecourse methods'.")] = "genre",
    seed: Seed = 0,
) -> None:
    """Learn recourse from a table of people and their outcomes.

    Without --classifier, a model is learned from the outcomes. Ctrl-C during the training keeps
    the best weights so far. A policy states the roles of the features, the favourable outcome and
    the cutoff.

    The table may be a folder of Parquet files with any number of rows. Under 'torchrun
    --nproc-per-node=2 -m genrecourse fit ...' several processes train together.
    """
    from genrecourse.advice.outputs import check_model

    check_model(output, reads=[table, policy, schema_file])
    from genrecourse.advice.learning import prepare
    from genrecourse.model.processes import joined_by_torchrun

    with joined_by_torchrun() as is_first:
        task = prepare(
            table,
            target=target,
            favourable=split(favourable),
            schema=schema_file,
            policy=policy,
            immutable=split(immutable),
            cost=cost,
            drop=split(drop),
            classifier=own_model(classifier),
            cutoff=cutoff,
            score_range=score_ends(score_range),
            method=method,
            random_state=seed,
        )
        if is_first:
            print_warnings(task.warnings)
        learned = task.learn(progress=err.is_terminal and is_first)
        if is_first:
            learned.service.save(output)
            _print_learned(learned, output)


def _print_learned(learned: Learned, output: Path) -> None:
    print_notes(learned.notes)
    rows = f"{learned.n_rows:,} rows"
    if learned.n_found > learned.n_rows:
        rows = f"{learned.n_found:,} rows, {learned.n_rows:,} of them held"
    out.print(
        f"{type(learned.service.method).__name__} fitted on {rows}, of which its "
        f"model accepts {learned.n_accepted:,}; saved in {output}"
    )
    if learned.interrupted_at is not None:
        out.print(f"interrupted: the best weights so far (step {learned.interrupted_at})")


@app.command(epilog="Example: genrecourse info model")
def info(model: ModelFolder, classifier: OwnModel = None) -> None:
    """Show what a model folder holds: method, model, features and rules, and how it was learned."""
    from genrecourse.advice.service import Service

    found = Service.open(model, own_model(classifier)).summary()
    facts = Table.grid(padding=(0, 2))
    for name, text in found.facts.items():
        facts.add_row(name, text)
    out.print(facts)
    out.print()
    out.print(_rules_table(found.rules))


def _rules_table(summary: RulesSummary) -> Group:
    """Return each feature, how it may change, and the rules on plans as a whole."""
    table = Table("feature", "kind", "may change", box=None)
    for each in summary.features:
        table.add_row(each.name, each.kind, Text(each.may_change))
    return Group(table, *(Text(f"rule: {rule}") for rule in summary.rules))
