"""For people: plans for a table, one person in full, a letter, plans checked again, an audit."""

from __future__ import annotations

import datetime
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from genrecourse.apps.cli.application import app, err, out, print_notes
from genrecourse.apps.cli.options import (
    Delta,
    Fewest,
    HowMany,
    Language,
    MinRobust,
    ModelFolder,
    MostChanges,
    MostMoney,
    MostMonths,
    OwnModel,
    PolicyFile,
    Promised,
    RulesFile,
    SafeCells,
    Sort,
    Strict,
    TableFile,
    own_model,
    plan_request,
    split,
)
from genrecourse.errors import UserError, counted, own_warnings

if TYPE_CHECKING:
    import pandas as pd

    from genrecourse.advice.service import Service


@app.command(epilog="Example: genrecourse plans model german.csv -n 3 -o plans.json")
def plans(
    model: ModelFolder,
    applicants: TableFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Plans: .csv, .parquet, .json or .html.")
    ],
    n: HowMany = 1,
    fewest_changes: Fewest = False,
    policy: PolicyFile = None,
    rules: RulesFile = None,
    promise: Promised = None,
    delta: Delta = None,
    min_robust: MinRobust = None,
    most_changes: MostChanges = None,
    most_months: MostMonths = None,
    most_money: MostMoney = None,
    sort: Sort = None,
    language: Language = "en",
    safe_cells: SafeCells = False,
    strict: Strict = False,
    classifier: OwnModel = None,
) -> None:
    """Make plans for everyone in a table: what would change the decision.

    A .csv or .parquet has one line for each plan, and one for each person without a plan: row
    (counted from 0), status, reason, the rule that alone prevents a plan, number of the plan,
    scores, cost, the months and the money that it takes if the policy states them, the plan in
    words, what changes with it, how robust it is (its promise, the shares of retrained models and
    of imprecise versions that accept it), what the plan does not mean, and the features after it. A
    .json has the plans with each change, and the rules that prevent plans. A .html is a report to
    read, about the people whom the model rejects.

    A row that cannot be read, for example because of an unseen category, gets the status unreadable
    and the reason, and does not stop the others.
    """
    from genrecourse.advice.outputs import check_plans

    check_plans(output, reads=[applicants, model, policy, rules])
    from genrecourse.advice import output as files

    service = _open(model, classifier, policy)
    X = _people(service, applicants)
    request = plan_request(
        rules,
        n=n,
        fewest_changes=fewest_changes,
        promise=promise,
        delta=delta,
        language=language,
        min_robust=min_robust,
        most_changes=most_changes,
        strict=strict,
        most_months=most_months,
        most_money=most_money,
        sort=sort,
    )
    made = service.plans(X, request)
    files.write_plans(output, service, X, made, request, safe_cells=safe_cells)
    counts = Counter(plan.status for plan in made).most_common()
    shown = ", ".join(f"{n:,} {status}" for status, n in counts)
    out.print(f"{len(made):,} people{': ' if shown else ''}{shown}; in {output}")
    lost = made.unreadable
    if lost:
        first = f"person {lost[0].person}: {lost[0].reason}"
        print_notes(
            [f"{len(lost):,} of {counted(len(made), 'row')} cannot be read; first, {first}"]
        )


@app.command(epilog="Example: genrecourse explain model german.csv --row 1")
def explain(
    model: ModelFolder,
    applicants: TableFile,
    row: Annotated[int, typer.Option(min=0, help="Which row of the table, counted from 0.")],
    n: HowMany = 1,
    fewest_changes: Fewest = False,
    policy: PolicyFile = None,
    rules: RulesFile = None,
    promise: Promised = None,
    delta: Delta = None,
    min_robust: MinRobust = None,
    most_changes: MostChanges = None,
    most_months: MostMonths = None,
    most_money: MostMoney = None,
    sort: Sort = None,
    language: Language = "en",
    strict: Strict = False,
    classifier: OwnModel = None,
) -> None:
    """Show one person, and what would change the model's decision."""
    from genrecourse.reports.console import panel

    service = _open(model, classifier, policy)
    X = _people(service, applicants)
    request = plan_request(
        rules,
        n=n,
        fewest_changes=fewest_changes,
        promise=promise,
        delta=delta,
        language=language,
        min_robust=min_robust,
        most_changes=most_changes,
        strict=strict,
        most_months=most_months,
        most_money=most_money,
        sort=sort,
    )
    plan = service.explain(X, row, request)
    out.print(panel(service.schema, X.iloc[row], plan))


@app.command(epilog="Example: genrecourse reasons model german.csv --row 1")
def reasons(
    model: ModelFolder,
    applicants: TableFile,
    row: Annotated[int, typer.Option(min=0, help="Which row of the table, counted from 0.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Reasons: .json, .html or .txt.")
    ] = None,
    policy: PolicyFile = None,
    rules: RulesFile = None,
    language: Language = "en",
    classifier: OwnModel = None,
) -> None:
    """Show what mattered most for the score of one person, and how certain that is.

    Reasons are no advice: a feature that lowered a score need not be one that can raise it. Use
    'genrecourse explain' for plans. Without -o, the reasons are printed.
    """
    from genrecourse.advice.outputs import check_reasons

    if output is not None:
        check_reasons(output, reads=[applicants, model, policy, rules])
    from genrecourse.advice import output as files
    from genrecourse.advice.request import PlanRequest
    from genrecourse.advice.rule_files import read_rules_file

    service = _open(model, classifier, policy)
    X = _people(service, applicants)
    stated = None if rules is None else read_rules_file(rules)
    found = service.reasons(X, row, PlanRequest(rules=stated, language=language))
    if output is None:
        out.print(Text(found.to_text()), soft_wrap=True)
    else:
        files.write_reasons(output, found)
        out.print(f"reasons for row {row} in {output}")


@app.command(epilog="Example: genrecourse letter model german.csv --row 1 -o letter.html")
def letter(
    model: ModelFolder,
    applicants: TableFile,
    row: Annotated[int, typer.Option(min=0, help="Which row of the table, counted from 0.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The letter: .html or .txt.")
    ] = None,
    template: Annotated[
        str, typer.Option(help="'en', 'de', or your own file: an edited copy of one of them.")
    ] = "en",
    date: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="Date of the letter. Default: today.")
    ] = None,
    valid_days: Annotated[
        int | None,
        typer.Option(min=1, help="Default: 90, or as many as the plan counts on time to pass."),
    ] = None,
    recipient: Annotated[str | None, typer.Option(help="Name of the person.")] = None,
    reference: Annotated[str | None, typer.Option(help="Reference of the application.")] = None,
    sender: Annotated[str | None, typer.Option(help="Who writes. Default: as in policy.")] = None,
    contact: Annotated[str | None, typer.Option(help="Whom to ask. Default: as in policy.")] = None,
    n: Annotated[
        int, typer.Option("-n", min=1, max=3, help="Plans in the letter: the first, and others.")
    ] = 2,
    fewest_changes: Fewest = False,
    policy: PolicyFile = None,
    rules: RulesFile = None,
    promise: Promised = None,
    delta: Delta = None,
    most_months: MostMonths = None,
    most_money: MostMoney = None,
    sort: Sort = None,
    classifier: OwnModel = None,
) -> None:
    """Write a letter to one person: what they could change, in plain words and round numbers.

    The letter has no scores and no column names. A person without a plan gets a letter that says
    so; for a person whom the model accepts, the command ends with an error. Without -o, the letter
    is printed.
    """
    from genrecourse.advice.outputs import check_letter

    if output is not None:
        check_letter(output, reads=[applicants, model, policy, rules])
    from genrecourse.advice import output as files

    service = _open(model, classifier, policy)
    X = _people(service, applicants)
    request = plan_request(
        rules,
        n=n,
        fewest_changes=fewest_changes,
        promise=promise,
        delta=delta,
        language="en",
        most_months=most_months,
        most_money=most_money,
        sort=sort,
    )
    written = service.letter(
        X,
        row,
        request,
        template=template,
        date=date or datetime.date.today(),
        valid_days=valid_days,
        recipient=recipient,
        reference=reference,
        sender=sender,
        contact=contact,
    )
    if output is None:
        out.print(Text(written.to_text()), soft_wrap=True)
    else:
        files.write_letter(output, written)
        out.print(f"letter about row {row} in {output}")


@app.command(epilog="Example: genrecourse recheck plans.json --model model -o rechecked.csv")
def recheck(
    plans: Annotated[Path, typer.Argument(help="A .json that 'genrecourse plans' wrote.")],
    model: Annotated[
        Path | None, typer.Option(help="Folder of the new model, written by 'genrecourse fit'.")
    ] = None,
    classifier: OwnModel = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="One line per plan: .csv or .parquet.")
    ] = None,
    safe_cells: SafeCells = False,
) -> None:
    """Check which plans still hold under another model. Rules are not checked again.

    Ends with status 1 if a plan does not hold.
    """
    from genrecourse.advice.outputs import check_table

    if output is not None:
        check_table(output, reads=[plans, model])
    from genrecourse.advice.recheck import check_plans_name
    from genrecourse.table.table_files import write_table

    check_plans_name(plans)
    found = _rechecked(plans, model, classifier)
    if output is not None:
        write_table(found, output, safe_cells=safe_cells)
    lost = found[~found["holds"].astype(bool)]
    for line in lost.itertuples():
        text = (
            f"person {line.person}, plan {line.plan}: no longer holds, score {line.score:.3g} at a "
            f"cutoff of {line.cutoff:g}"
        )
        out.print(Text(text), soft_wrap=True)
    out.print(f"{len(found) - len(lost):,} of {len(found):,} plans hold under this model")
    if len(lost):
        raise typer.Exit(1)


@app.command(
    epilog="Example: genrecourse audit model german.csv --group personal_status_sex -o audit.html"
)
def audit(
    model: ModelFolder,
    people: TableFile,
    group: Annotated[
        str,
        typer.Option(metavar="A,B", help="Columns to group people by, separated by commas."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Page or numbers: .html, .json, .csv, .parquet.")
    ],
    least: Annotated[
        int, typer.Option(min=2, help="Numbers about fewer people than this are not shown.")
    ] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the intervals.")] = 0,
    fewest_changes: Fewest = False,
    policy: PolicyFile = None,
    safe_cells: SafeCells = False,
    strict: Strict = False,
    classifier: OwnModel = None,
) -> None:
    """Show recourse by group: who is rejected, who gets a plan, what it asks, with intervals.

    The table holds people of all outcomes. Groups are the values of each column, and their
    combinations if enough people are rejected; the model need not know the column. A difference
    between groups is reported only if its interval supports it. With a policy, the plans keep the
    policy's rules. Rows that cannot be read are left out, and counted for each group.
    """
    from genrecourse.advice.outputs import check_audit

    check_audit(output, reads=[people, model, policy])
    from genrecourse.advice import output as files
    from genrecourse.advice.request import PlanRequest

    service = _open(model, classifier, policy)
    table = service.read_people(people, all_columns=True)
    request = PlanRequest(fewest_changes=fewest_changes, errors="raise" if strict else "status")
    found = service.audit(table, split(group), request, least=least, seed=seed)
    files.write_audit(output, found, safe_cells=safe_cells)
    out.print(Text("\n".join([*found.remarks, *found.findings, found.how_called])), soft_wrap=True)
    lost = sum(found.faults.values())
    out.print(f"{len(table) - lost:,} people in {len(found.groups)} groups; in {output}")
    if lost:
        print_notes([f"{lost:,} of {counted(len(table), 'row')} cannot be read and are left out"])


def _open(model: Path, classifier: str | None, policy: Path | None) -> Service:
    """Return the service of a folder; print a note if the folder's own policy is in force."""
    from genrecourse.advice.service import Service

    service = Service.open(model, own_model(classifier), policy)
    if policy is None and service.policy is not None:
        note = f"note: under {service.policy.name}, the policy that the model was fitted under"
        err.print(Text(note), soft_wrap=True)
    return service


def _people(service: Service, file: Path) -> pd.DataFrame:
    """Return the people in a file; print a note if it has columns that the model does not read."""
    from genrecourse.table.reading import known_columns

    with own_warnings() as notes:
        X = known_columns(service.schema, service.read_people(file, all_columns=True), str(file))
    print_notes(notes)
    return X[service.schema.columns]


def _rechecked(plans: Path, model: Path | None, classifier: str | None) -> pd.DataFrame:
    from genrecourse.advice.recheck import read_plans
    from genrecourse.advice.recheck import recheck as recheck_plans
    from genrecourse.advice.service import Service

    if model is not None:
        return Service.open(model, own_model(classifier)).recheck(plans)
    if classifier is None:
        raise UserError("no model is named: give --classifier MODULE:NAME or --model FOLDER")
    return recheck_plans(read_plans(plans), own_model(classifier))
