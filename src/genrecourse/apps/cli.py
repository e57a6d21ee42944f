"""The command line. Each command reads files, calls one verb of the library and writes files.

A user's mistake is one sentence on standard error and exit status 2.
"""

from __future__ import annotations

import importlib
import json
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from genrecourse.data.datasets import DATASETS, is_local, load_dataset, read_whole
from genrecourse.errors import UserError, counted, did_you_mean
from genrecourse.evaluation.comparison import Entry, rendering, standings
from genrecourse.evaluation.comparison import compare as run_comparison
from genrecourse.evaluation.comparison.results import Line
from genrecourse.methods import METHODS, load
from genrecourse.model.classifier import Classifier
from genrecourse.planning.plans import Change, Plan, Plans
from genrecourse.reports.console import metrics_table, own_warnings, panel, standings_tables
from genrecourse.rules.policy import Policy
from genrecourse.rules.requests import Constraints, PerPerson, read_constraints
from genrecourse.table.schema import Feature, Schema, plain
from genrecourse.table.table_files import check_output, read_table, write_table, write_text

out = Console()
err = Console(stderr=True)


class _Plain(TyperGroup):
    """Turns a UserError of any command into its sentence and exit status 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except UserError as error:
            err.print(Text(f"error: {error}", style="red"), soft_wrap=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=_Plain,
    name="genrecourse",
    help="What to change to be accepted by a model. Begin with: genrecourse demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

TableFile = Annotated[Path, typer.Argument(help="Table with a header, .csv or .parquet.")]
ModelFolder = Annotated[Path, typer.Argument(help="Folder written by 'genrecourse fit'.")]
TheirModel = Annotated[
    str | None,
    typer.Option(
        "--classifier",
        metavar="MODULE:NAME",
        help="Your own model: NAME in the Python file or module MODULE, fitted. It has "
        "predict_proba, or is a function of a DataFrame, or a genrecourse.Classifier.",
    ),
]
HowMany = Annotated[
    int, typer.Option("-n", min=1, help="Plans a person that differ in what they change.")
]
Fewest = Annotated[
    bool,
    typer.Option("--fewest-changes", help="Undo changes that are not needed."),
]
Language = Annotated[
    str, typer.Option(help="Of the words: 'en', or a file, a translated copy of en.toml.")
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", help="What may be asked of people, and who is accepted: a .toml."),
]
RulesFile = Annotated[
    Path | None,
    typer.Option(
        "--rules",
        help="Rules of this request, a .json or .toml: as in docs/requests.md, for everybody or by "
        "row of the table.",
    ),
]
Promised = Annotated[
    float | None,
    typer.Option(
        "--promise",
        metavar="SHARE",
        help="Show only plans that are backed by past outcomes for this share of people.",
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta", metavar="ERROR", help="How likely the promise may be wrong. Default: 0.1."
    ),
]
Names = Annotated[str, typer.Option(metavar="A,B", help="Columns, with commas between them.")]
Seed = Annotated[int, typer.Option(help="Decides everything random.")]
People = Annotated[
    str, typer.Option(metavar="N|all", help="Rejected test rows a seed; all: every one there is.")
]
Further = Annotated[
    bool,
    typer.Option(
        "--witnesses/--no-witnesses",
        help="Ask further models, too (h retrained, other judges): slower, and done by default.",
    ),
]
Nested = Annotated[
    bool, typer.Option("--nested", help="Everything from training rows alone, for development.")
]


@app.callback(invoke_without_command=True)
def _main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        out.print(f"genrecourse {installed_version('genrecourse')}")
        raise typer.Exit


@app.command(epilog="Example: genrecourse demo --folder demo")
def demo(
    folder: Annotated[Path, typer.Option(help="Where report.html goes.")] = Path("demo"),
    people: Annotated[int, typer.Option(min=1, help="How many people to show.")] = 3,
    seed: Seed = 0,
) -> None:
    """Train on the German credit data inside the package, show plans, write a report."""
    from genrecourse.apps.demo import run_demo  # brings matplotlib: slow to import

    run_demo(folder, console=out, seed=seed, people=people)


@app.command(epilog="Example: genrecourse datasets german -o german.csv")
def datasets(
    name: Annotated[str | None, typer.Argument(help="One of them, to write to a file.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for it, .csv or .parquet.")
    ] = None,
) -> None:
    """List the data sets that can be loaded, or write one to a file."""
    if name is None:
        table = Table("name", "rows", "features", "favourable", "licence", "here", box=None)
        for each in DATASETS:
            table.add_row(each, *_about(each))
        out.print(table)
        return
    if output is None:
        raise UserError(f"say where '{name}' goes: genrecourse datasets {name} -o {name}.csv")
    whole = read_whole(name)
    write_table(whole, output)
    rows, columns = counted(len(whole), "row"), counted(whole.shape[1], "column")
    out.print(f"{rows} and {columns} in {output}")


def _about(name: str) -> list[str]:
    entry = DATASETS[name]
    facts = [f"{entry.target} = {entry.label} ({entry.favourable})", entry.licence]
    if not is_local(name):
        return ["?", "?", *facts, "downloaded on first use"]
    data = load_dataset(name)
    return [f"{len(data.X_train) + len(data.X_test):,}", str(len(data.schema)), *facts, "yes"]


@app.command(epilog="Example: genrecourse methods")
def methods() -> None:
    """List the methods that 'fit --method' takes."""
    table = Table("name", "what it does", box=None)
    for name, maker in METHODS.items():
        kind = getattr(maker, "func", maker)
        settings = ", ".join(f"{k}={v}" for k, v in getattr(maker, "keywords", {}).items())
        about = (kind.__doc__ or "").strip().splitlines()[0]
        table.add_row(name, f"{about} {settings}".strip())
    out.print(table)


@app.command(
    epilog="Example: genrecourse schema german.csv --target credit --immutable age,foreign_worker "
    "-o schema.json"
)
def schema(
    table: TableFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The schema, as JSON.")],
    target: Annotated[str | None, typer.Option(help="Column with the outcome: left out.")] = None,
    immutable: Names = "",
    drop: Names = "",
) -> None:
    """Read off a table what each column is, and say what looks odd. Edit the file, then fit."""
    X = _features(read_table(table), target, drop)
    found = Schema.infer(X, immutable=_split(immutable))
    write_text(found.to_json() + "\n", output)
    out.print(f"{counted(len(found), 'feature')} of {counted(len(X), 'row')} in {output}")
    _remark(found.lint(X))


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
        str | None, typer.Option(help="Favourable outcome; several with commas. Default: 1.")
    ] = None,
    schema_file: Annotated[
        Path | None, typer.Option("--schema", help="From 'genrecourse schema'.")
    ] = None,
    immutable: Names = "",
    drop: Names = "",
    classifier: TheirModel = None,
    cutoff: Annotated[float | None, typer.Option(help="Accepted above it. Default: 0.5.")] = None,
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

    Without --classifier a model is learned from the outcomes. Ctrl-C while it learns keeps the best
    so far. A policy says what the table's features are, what is favourable and the cutoff.
    """
    if method not in METHODS:
        close = did_you_mean(method, METHODS)
        raise UserError(f"no method '{method}'{close}; there are {', '.join(METHODS)}")
    said = _policy(policy, favourable=favourable, schema=schema_file, immutable=immutable)
    given = Schema.load(schema_file) if schema_file else None
    whole = read_table(table, given)
    target = _target_name(target, said)
    y = _target(whole, target)
    X = _features(whole, target, drop)
    found = said.schema(X) if said else given or Schema.infer(X)
    for name in _split(immutable):
        found = found.with_feature(name, role="immutable")
    if given is None:
        _remark(said.lint(X) if said else found.lint(X))
    h = _classifier(classifier, favourable, cutoff, score_range, y, said)
    fitted = METHODS[method](h, found, random_state=seed)
    if "progress" in fitted.get_params():
        fitted.set_params(progress=err.is_terminal)
    _check_output(output)
    with own_warnings() as notes:
        fitted.fit(X, y)
    for note in notes:
        err.print(Text(f"note: {note}", style="yellow"), soft_wrap=True)
    fitted.save(output, said)
    accepted = fitted.classifier_.accepts(X[found.names])
    out.print(
        f"{type(fitted).__name__} fitted on {len(X):,} rows, of which its model accepts "
        f"{int(accepted.sum()):,}; saved in {output}"
    )
    report = getattr(fitted, "fit_report_", {})
    if report.get("training", {}).get("ended") == "interrupted":
        out.print(f"interrupted: the best weights so far (step {report['training']['best_step']})")


@app.command(epilog="Example: genrecourse recourse model german.csv -n 3 -o plans.json")
def recourse(
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
    language: Language = "en",
    classifier: TheirModel = None,
) -> None:
    """What would change the decision, for everyone in a table.

    A .csv or .parquet has one line a plan, and one for each person without: row (counted from 0),
    status, reason, the rule that alone stands in the way, number of the plan, scores, cost, the
    plan in words, what then follows, what it bears (its promise, the shares of retrained models and
    of imprecise tries that accept it), what it is not, and the features as they would be. A .json
    has the plans with each change, and the rules that stand in the way. A .html is a report to
    read, about those who were turned down.
    """
    check_output(output, (".json", ".html"))
    fitted = load(model, _given(classifier))
    X = _people(applicants, fitted.schema_)
    asked = _request(policy, fitted, promise, delta)
    asked |= _ruled(rules, asked, X.index)
    asked |= {"n": n, "fewest_changes": fewest_changes, "language": language}
    plans = fitted.plans(X, **asked)
    if output.suffix.lower() == ".html":
        from genrecourse.reports.plan_report import report_html  # brings matplotlib: slow to import

        write_text(report_html(fitted, X, plans=plans, **asked), output)
    elif output.suffix.lower() == ".json":
        write_text(plans.to_json() + "\n", output)
    else:
        write_table(_lines(plans, X, fitted.schema_), output)
    counts = pd.Series([plan.status for plan in plans]).value_counts()
    said = ", ".join(f"{n:,} {status}" for status, n in counts.items())
    out.print(f"{len(plans):,} people: {said}; in {output}")


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
    language: Language = "en",
    classifier: TheirModel = None,
) -> None:
    """One person: who they are to the model, and what would change its decision."""
    fitted = load(model, _given(classifier))
    X = _people(applicants, fitted.schema_)
    if row >= len(X):
        raise UserError(f"{applicants} has the rows 0 to {len(X) - 1}; there is no row {row}")
    person = X.iloc[[row]]
    asked = _request(policy, fitted, promise, delta)
    asked |= _ruled(rules, asked, X.index, only=row)
    told = fitted.plans(person, n, fewest_changes=fewest_changes, language=language, **asked)
    out.print(panel(fitted.schema_, X.iloc[row], told[0]))


@app.command(
    name="policy",
    epilog="Example: genrecourse policy policies/german.toml german.csv",
)
def check_policy(
    file: Annotated[Path, typer.Argument(help="The policy, a .toml.")],
    table: TableFile,
    model: Annotated[
        Path | None,
        typer.Option(help="Fitted under it: then say whom the rules leave without a plan."),
    ] = None,
    drop: Names = "",
    classifier: TheirModel = None,
    strict: Annotated[bool, typer.Option("--strict", help="End with 1 on any remark.")] = False,
) -> None:
    """What a policy makes of a table: who may change what; and what looks odd about it.

    What 'fit' or a request would refuse for such a table is an error.
    """
    said = Policy.read(file)
    whole = _features(read_table(table), None, drop)
    schema, fitted = said.schema(whole), None if model is None else load(model, _given(classifier))
    remarks, refused = said.lint(whole, fitted), said.refused(whole, fitted)
    out.print(_features_table(schema, said))
    _remark([remark for remark in remarks if remark not in refused])
    if refused:
        raise UserError(f"{file}: {'; '.join(refused)}")
    if not remarks:
        out.print("nothing looks odd")
    elif strict:
        raise typer.Exit(1)


@app.command(
    epilog="Example: genrecourse audit model german.csv --group personal_status_sex -o audit.html"
)
def audit(
    model: ModelFolder,
    people: TableFile,
    group: Annotated[
        str,
        typer.Option(metavar="A,B", help="Columns of the table to group people by, with commas."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Page or numbers: .html, .json, .csv, .parquet.")
    ],
    least: Annotated[
        int, typer.Option(min=2, help="With fewer people to be counted, no number is given.")
    ] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Of the intervals.")] = 0,
    fewest_changes: Fewest = False,
    policy: PolicyFile = None,
    classifier: TheirModel = None,
) -> None:
    """Recourse by group: who is turned down, who gets a plan, what it asks, with intervals.

    The table holds people of all outcomes. Groups are the values of each column, and their
    combinations where enough people were turned down; the model need not know the column. A
    difference between groups is called only where its interval supports it. With a policy, plans
    are those that it lets people be told.
    """
    from genrecourse.audit import audit as run_audit

    check_output(output, (".html", ".json"))
    kind = output.suffix.lower()
    fitted = load(model, _given(classifier))
    table = read_table(people, fitted.schema_).reset_index(drop=True)
    asked = _request(policy, fitted) | {"fewest_changes": fewest_changes}
    found = run_audit(fitted, table, _split(group), least=least, seed=seed, **asked)
    if kind == ".html":
        write_text(found.to_html(), output)
    elif kind == ".json":
        write_text(found.to_json() + "\n", output)
    else:
        write_table(found.to_frame(), output)
    out.print(Text("\n".join([*found.remarks, *found.findings, found.how_called])), soft_wrap=True)
    out.print(f"{len(table):,} people in {len(found.groups)} groups; in {output}")


@app.command(epilog="Example: genrecourse recheck plans.json --model model -o rechecked.csv")
def recheck(
    plans: Annotated[Path, typer.Argument(help="A .json that 'genrecourse recourse' wrote.")],
    model: Annotated[
        Path | None, typer.Option(help="Folder of the new model, written by 'genrecourse fit'.")
    ] = None,
    classifier: TheirModel = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="One line a plan: .csv or .parquet.")
    ] = None,
) -> None:
    """Which plans that were given still hold under another model? Rules are not looked at again.

    Ends with status 1 if a plan does not hold.
    """
    from genrecourse.advice.recheck import recheck as ask_again

    if output is not None:
        check_output(output)
    if model is None and classifier is None:
        raise UserError("say which model is asked: --classifier MODULE:NAME, or --model FOLDER")
    if plans.suffix.lower() != ".json":
        wanted = "give the .json that 'genrecourse recourse -o plans.json' wrote"
        raise UserError(f"{plans} holds no plans to be read again; {wanted}")
    fitted = None if model is None else load(model, _given(classifier))
    like = None if fitted is None else fitted.problem_.like
    given = Plans.from_json(_read(plans), like=like, where=str(plans))
    if fitted is not None:
        _check_same_table(given, fitted.schema_)
    found = ask_again(given, _given(classifier) if fitted is None else fitted.classifier_)
    lost = found[~found["holds"].astype(bool)]
    if output is not None:
        write_table(found, output)
    for line in lost.itertuples():
        said = (
            f"person {line.person}, plan {line.plan}: no longer, score {line.score:.3g} at a "
            f"cutoff of {line.cutoff:g}"
        )
        out.print(Text(said), soft_wrap=True)
    out.print(f"{len(found) - len(lost):,} of {len(found):,} plans hold under this model")
    if len(lost):
        raise typer.Exit(1)


@app.command(epilog="Example: genrecourse info model")
def info(model: ModelFolder, classifier: TheirModel = None) -> None:
    """What a model folder holds: method, model, features and rules, and how it was learned."""
    fitted = load(model, _given(classifier))
    h = fitted.classifier_
    facts = Table.grid(padding=(0, 2))
    facts.add_row("method", type(fitted).__name__)
    facts.add_row("model", f"{h!r}")
    for name in ("gamma_", "temperature_", "margin_"):
        if hasattr(fitted, name):
            facts.add_row(name.rstrip("_"), f"{getattr(fitted, name):g}")
    training = getattr(fitted, "fit_report_", {}).get("training")
    if training:
        facts.add_row(
            "learned", f"{training['steps']} steps, held-out loss {training['best_loss']:.3f}"
        )
    if fitted.policy_ is not None:
        facts.add_row("policy", fitted.policy_.name)
    out.print(facts)
    out.print()
    out.print(_features_table(fitted.schema_, fitted.policy_))


@app.command(
    epilog="Example: genrecourse evaluate --no-witnesses --method nnr --dataset german --rows 50"
)
def evaluate(
    method: Annotated[str, typer.Option(help="See 'genrecourse methods'.")],
    dataset: Annotated[str, typer.Option(help="See 'genrecourse datasets'.")],
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A parameter of the method; may be repeated."),
    ] = None,
    rows: People = "200",
    seed: Seed = 0,
    witnesses: Further = True,
    nested: Nested = False,
) -> None:
    """Judge one method under the paper's protocol: every metric, its interval and its people.

    The method runs in a process that is given training rows, their labels, h and the schema, and
    never sees who judges it. Beside it stand the ceiling, what copying a training row can reach,
    and people who were accepted, as they are.
    """
    entry = Entry(method, method, dict(_param(text) for text in param or []))
    how = {"rows": _rows(rows), "witnesses": witnesses, "nested": nested}
    lines = _compared([entry], [dataset], [seed], **how)
    _end_if_failed(lines)
    for note in lines[0]["notes"]:
        err.print(Text(f"note: {note}", style="yellow"), soft_wrap=True)
    out.print(metrics_table(standings(lines)))


@app.command(
    epilog="Example: genrecourse compare --no-witnesses --methods nnr,nnr-dplus --datasets german "
    "--seeds 2 --rows 50 -o results.jsonl"
)
def compare(
    methods: Annotated[str, typer.Option(metavar="A,B", help="See 'genrecourse methods'.")],
    datasets: Annotated[str, typer.Option(metavar="A,B", help="See 'genrecourse datasets'.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Results, .jsonl; the tables go beside it.")
    ],
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 5,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    rows: People = "200",
    reference: Annotated[
        str | None,
        typer.Option(help="Compare each method with this one. Default: with the best other one."),
    ] = None,
    witnesses: Further = True,
    nested: Nested = False,
) -> None:
    """Judge methods on data sets and seeds under the paper's protocol, and say who is better.

    Each finished run is a line of the results. Started again after Ctrl-C or a kill, the command
    does what is missing there. Tables: .csv (each metric and seed), .md and .tex (booktabs).
    """
    names, sets = _split(methods), _split(datasets)
    if reference is not None and reference not in names:
        close = did_you_mean(reference, names)
        raise UserError(f"the reference '{reference}'{close} is none of the methods {names}")
    wanted = range(first_seed, first_seed + seeds)
    how = {"rows": _rows(rows), "witnesses": witnesses, "nested": nested, "output": output}
    lines = _compared(names, sets, wanted, **how)
    found = standings(lines, reference)
    for ending, text in rendering.files(lines, found).items():
        write_text(text, output.with_suffix(ending))
    for part in rendering.by_dataset(found):
        out.print(standings_tables(part))
    runs, beside = counted(len(lines), "run"), output.with_suffix("")
    out.print(f"{runs} in {output}; tables in {beside}.csv, .md, .tex")
    _end_if_failed(lines)


def main() -> None:
    """Entry point of the `genrecourse` command."""
    app()


# ---- from words to objects --------------------------------------------------------------------


def _policy(file: Path | None, **others: Any) -> Policy | None:
    """The policy in a file; what it says is not said a second time on the command line."""
    if file is None:
        return None
    twice = [f"--{name}" for name, value in others.items() if value]
    if twice:
        raise UserError(f"with --policy, leave {', '.join(twice)}: the policy says it")
    return Policy.read(file)


def _request(
    file: Path | None, fitted: Any, promise: float | None = None, delta: float | None = None
) -> dict[str, Any]:
    """What `plans` is told: by a policy, and on the command line what it leaves open."""
    policy = _in_force(file, fitted)
    asked = {} if policy is None else policy.request
    if promise is not None:
        if policy is not None and "promise" in asked:
            said = f"the policy {policy.name} says {asked['promise']:g} itself"
            raise UserError(f"leave --promise {promise:g}: {said}")
        asked |= {"promise": promise}
    if delta is not None:
        if "promise" not in asked:
            raise UserError(f"--delta {delta:g} is about a promise: say which, --promise SHARE")
        asked |= {"delta": delta}
    return asked


def _in_force(file: Path | None, fitted: Any) -> Policy | None:
    """The policy in a file, or else the one that the model was fitted under."""
    if file is not None:
        policy = Policy.read(file)
        policy.check_fitted(fitted)
        return policy
    if fitted.policy_ is not None:
        err.print(Text(f"note: under {fitted.policy_.name}, as it was fitted"), soft_wrap=True)
    return fitted.policy_


def _ruled(
    file: Path | None, asked: dict[str, Any], rows: pd.Index, only: int | None = None
) -> dict[str, Any]:
    """The rules in a file, for everybody or by row. only: the one row that is asked about."""
    if file is None:
        return {}
    try:
        found = read_constraints(_mapping(file))
    except UserError as error:
        raise UserError(f"{file}: {error}") from None
    known = {str(row) for row in rows}
    unknown = [label for label in found.people if str(label) not in known]
    if unknown:
        raise UserError(
            f"{file} has rules for the row {unknown[0]!r}, but the table has the rows 0 to "
            f"{len(rows) - 1}"
        )
    if only is not None:
        own = {label: each for label, each in found.people.items() if str(label) == str(only)}
        found = PerPerson(people=own, default=found.default)
    policys = asked.get("constraints")
    return {"constraints": found if policys is None else read_constraints(policys).also(found)}


def _mapping(file: Path) -> Any:
    """What a .json or .toml says."""
    readers: dict[str, Any] = {".json": json.loads, ".toml": tomllib.loads}
    kind = file.suffix.lower()
    if kind not in readers:
        raise UserError("it should end in .json or .toml, which says what it is")
    try:
        return readers[kind](_read(file))
    except ValueError as error:  # of both
        raise UserError(f"not {kind[1:].upper()}: {error}") from None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"cannot read {file}: not UTF-8; save it as UTF-8") from None


def _target_name(target: str | None, policy: Policy | None) -> str:
    named = target or (policy.target if policy else None)
    if named is None:
        raise UserError("say which column holds the outcome: --target, or target in the policy")
    return named


def _features_table(schema: Schema, policy: Policy | None) -> Group:
    """Each feature, how it may change, and the rules on plans as a whole."""
    rules = Constraints() if policy is None else policy.stated.rules
    table = Table("feature", "kind", "may change", box=None)
    for feature in schema:
        kind = f"{len(feature.categories)} categories" if feature.is_category else "number"
        table.add_row(feature.name, kind, Text(_how_it_moves(feature, rules)))
    whole = [f"at most {rules.max_changes} changes"] if rules.max_changes is not None else []
    whole += [f"a cost of at most {rules.max_cost:g}"] if rules.max_cost is not None else []
    return Group(table, *(Text(f"rule: {said}") for said in (*whole, *rules.relations)))


def _how_it_moves(feature: Feature, rules: Constraints) -> str:
    if feature.role == "derived":
        return f"follows: {feature.formula}"
    if feature.role == "advances":
        return f"with time: by {feature.horizon:g}"
    if feature.role != "mutable":
        return "no" if feature.role == "immutable" else f"no ({feature.role})"
    if feature.name in rules.lock:
        return "no (locked)"
    told = [str(feature.direction)] if feature.direction != "any" else []
    told += [way for way in ("increase", "decrease") if feature.name in getattr(rules, way)]
    for ends in (feature.range, rules.ranges.get(feature.name)):
        if ends is not None:
            low, high = ("..." if end is None else f"{end:,.9g}" for end in ends)
            told.append(f"from {low} to {high}")
    for step in (feature.max_step, rules.max_step.get(feature.name)):
        told += [] if step is None else [f"by at most {step:,.9g}"]
    if feature.name in rules.allowed:
        told.append("to " + " or ".join(str(level) for level in rules.allowed[feature.name]))
    return ", ".join(dict.fromkeys(told)) or "freely"


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _features(table: pd.DataFrame, target: str | None, drop: str) -> pd.DataFrame:
    leave = _split(drop) + ([target] if target else [])
    unknown = [name for name in leave if name not in table.columns]
    if unknown:
        close = did_you_mean(unknown[0], table.columns)
        raise UserError(f"no column {unknown}{close} in the table; it has {list(table.columns)}")
    rest = table.drop(columns=leave)
    if rest.shape[1] == 0:
        raise UserError(f"no column is left besides {leave}")
    return rest


def _target(table: pd.DataFrame, target: str) -> pd.Series:
    if target not in table.columns:
        close = did_you_mean(target, table.columns)
        raise UserError(f"no target column '{target}'{close}; the table has {list(table.columns)}")
    y = table[target]
    if y.isna().any():
        raise UserError(
            f"the target '{target}' is missing in {int(y.isna().sum())} of {len(y):,} rows (first: "
            f"row {int(y.isna().to_numpy().argmax())}); drop those rows"
        )
    if y.nunique() < 2:
        raise UserError(
            f"the target '{target}' is {plain(y.iloc[0])!r} in all {len(y):,} rows; it takes "
            "people of both outcomes to learn from"
        )
    return y


def _favourable(favourable: str | None, y: pd.Series) -> Any:
    """The outcomes named on the command line, as the table has them."""
    if favourable is None:
        return None
    seen = {str(plain(value)): plain(value) for value in y.unique()}
    names = _split(favourable)
    unknown = [name for name in names if name not in seen]
    if unknown or not names:
        raise UserError(
            f"the favourable outcome {favourable!r}{did_you_mean(favourable, seen)} is none of "
            f"those in '{y.name}': "
            f"{sorted(seen)[:10]}"
        )
    return seen[names[0]] if len(names) == 1 else {seen[name] for name in names}


def _classifier(
    where: str | None,
    favourable: str | None,
    cutoff: float | None,
    score_range: str | None,
    y: pd.Series,
    policy: Policy | None,
) -> Classifier:
    given, is_scaled = _given(where), cutoff is not None or score_range is not None
    if policy is not None:
        if is_scaled:
            raise UserError("with --policy, leave --cutoff and --score-range: the policy says it")
        h = policy.classifier(given)
        h.is_favourable(y)
        return h
    wanted = _favourable(favourable, y)
    if isinstance(given, Classifier):
        if favourable is not None or is_scaled:
            raise UserError(
                f"{where} says itself what is favourable, its cutoff and its scale; leave them"
            )
        return given
    cutoff = 0.5 if cutoff is None else cutoff
    h = Classifier(given, favourable=wanted, cutoff=cutoff, score_range=_ends(score_range))
    h.is_favourable(y)  # says which outcome to name, before anything is learned
    return h


def _ends(text: str | None) -> tuple[float, float]:
    """The ends of a scale of scores; probabilities where none is named."""
    if text is None:
        return 0.0, 1.0
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise UserError(
            f"--score-range {text!r} should be the two ends of the scale, such as 300,850"
        ) from None
    return low, high


def _given(where: str | None) -> Any:
    """The object that MODULE:NAME names; a file of the working folder may be the module."""
    if where is None:
        return None
    module_name, _, name = where.partition(":")
    if not module_name or not name:
        raise UserError(f"--classifier {where!r} should be MODULE:NAME, such as mymodel:score")
    if "" not in sys.path and "." not in sys.path:
        sys.path.insert(0, "")
    module_name = module_name.removesuffix(".py")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # their code may raise anything
        name_of = error.name if isinstance(error, ModuleNotFoundError) else None
        absent = f"{module_name}.".startswith(f"{name_of}.")  # it, and not one that it needs
        said = " ".join(f"{type(error).__name__}: {error}".split())
        said = f"{error}; is it in this folder?" if absent else f"{module_name} fails with {said}"
        raise UserError(f"--classifier {where}: {said}") from None
    if not hasattr(module, name):
        close = did_you_mean(name, vars(module))
        raise UserError(f"--classifier {where}: {module_name} has no '{name}'{close}")
    return getattr(module, name)


def _param(text: str) -> tuple[str, Any]:
    """NAME=VALUE, the value as JSON where it is JSON, else as text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--param {text!r} should be NAME=VALUE, such as gamma=0.7")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _rows(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or int(text) == 0:
        raise UserError(f"--rows {text!r} should be a number of people, or 'all'")
    return int(text)


def _compared(entries: Any, datasets: list[str], seeds: Any, **options: Any) -> list[Line]:
    """The lines of a comparison. Ctrl-C loses the run in progress and no more."""
    output = options.get("output")
    try:
        with own_warnings() as notes:
            lines = run_comparison(entries, datasets, list(seeds), **options)
    except KeyboardInterrupt:
        kept = (
            f": what is done is in {output}, and the same command goes on there" if output else ""
        )
        err.print(Text(f"interrupted{kept}"), soft_wrap=True)
        raise typer.Exit(130) from None
    for note in notes:
        err.print(Text(f"note: {note}", style="yellow"), soft_wrap=True)
    return lines


def _end_if_failed(lines: list[Line]) -> None:
    failed = [line for line in lines if "failed" in line]
    for line in failed:
        where = f"{line['label']} on {line['dataset']}, seed {line['seed']}"
        err.print(Text(f"failed: {where}: {line['failed']}", style="red"), soft_wrap=True)
    if failed:
        raise typer.Exit(1)


def _people(applicants: Path, schema: Schema) -> pd.DataFrame:
    """The applicants' features; columns that the model does not know (an id, a name) are left."""
    X = read_table(applicants, schema)
    schema.check_columns(X, str(applicants))
    return X[schema.names].reset_index(drop=True)


def _check_same_table(plans: Plans, schema: Schema) -> None:
    """Refuse to ask a model about rows of another table."""
    has = list(plans.x_plus().columns) if plans.shown else schema.names
    lacks = [name for name in schema.names if name not in has]
    more = [name for name in has if name not in schema.names]
    if lacks or more:
        raise UserError(
            f"these plans are of another model's table: they have {more or 'nothing'} that this "
            f"model does not know, and lack {lacks or 'nothing'}; give a model that was fitted on "
            "their columns"
        )


def _check_output(folder: Path) -> None:
    """Refuse before learning what would be refused after it."""
    if not folder.absolute().parent.is_dir():
        raise UserError(f"cannot write {folder}: there is no folder {folder.absolute().parent}")
    if folder.is_file():
        raise UserError(f"cannot write {folder}: it is a file; name a folder")


def _remark(remarks: list[str]) -> None:
    for remark in remarks:
        err.print(Text(f"look: {remark}", style="yellow"), soft_wrap=True)


def _lines(plans: Plans, X: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """One line a plan. Who has none has one line, and keeps the features they have."""
    every = [(i, each) for i, plan in enumerate(plans) for each in plan.every or (plan,)]
    rows = [i for i, _ in every]
    told = pd.DataFrame(
        {
            "row": X.index[rows],
            "status": [plan.status for _, plan in every],
            "reason_code": [plan.reason_code for _, plan in every],
            "reason": [plan.reason for _, plan in every],
            "about_rules": [plan.about_rules for _, plan in every],
            "number": _numbers(plans),
            "score_before": [plan.score_before for _, plan in every],
            "score_after": [plan.score_after for _, plan in every],
            "cost": [plan.cost for _, plan in every],
            "plan": [_in_words(plan.changes) for _, plan in every],
            "follows": [_in_words(plan.consequences) for _, plan in every],
            "bears": ["; ".join(plan.prospects) for _, plan in every],
            "promise": [_promised(plan) for _, plan in every],
            "retrained": [plan.retrained and plan.retrained.estimate for _, plan in every],
            "imprecise": [plan.imprecise and plan.imprecise.estimate for _, plan in every],
            "note": [plan.language("plan.note") if plan.every else "" for _, plan in every],
        }
    )
    after = X[schema.names].astype(object).iloc[rows].reset_index(drop=True)
    for line, (_, plan) in enumerate(every):
        for change in (*plan.changes, *plan.consequences):
            after.iat[line, schema.names.index(change.feature.name)] = change.after
    return pd.concat([told, after.infer_objects().add_prefix("new ")], axis=1)


def _in_words(changes: Iterable[Change]) -> str:
    return "; ".join(change.to_text() for change in changes)


def _promised(plan: Plan) -> float | None:
    return plan.promise.share if plan.promise is not None and plan.status == "ok" else None


def _numbers(plans: Plans) -> pd.Series:
    """Which of a person's plans a line is, from 1; missing where there is none."""
    counts = [range(1, len(plan.every) + 1) if plan.every else (None,) for plan in plans]
    return pd.Series([number for each in counts for number in each], dtype="Int64")
