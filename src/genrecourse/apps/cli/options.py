"""Options that several commands share, and how the text of an option is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genrecourse.errors import UserError, shown
from genrecourse.table.text_files import from_json

if TYPE_CHECKING:
    from genrecourse.advice.request import PlanRequest

TableFile = Annotated[Path, typer.Argument(help="Table with a header, .csv or .parquet.")]
ModelFolder = Annotated[Path, typer.Argument(help="Folder written by 'genrecourse fit'.")]
OwnModel = Annotated[
    str | None,
    typer.Option(
        "--classifier",
        metavar="MODULE:NAME",
        help="Your own fitted model: NAME in the Python file or module MODULE. It has "
        "predict_proba, or is a function of a DataFrame, or a genrecourse.Classifier.",
    ),
]
HowMany = Annotated[
    int, typer.Option("-n", min=1, help="Plans per person; they differ in what they change.")
]
Fewest = Annotated[
    bool,
    typer.Option("--fewest-changes", help="Undo changes that are not needed."),
]
Language = Annotated[
    str, typer.Option(help="Language of the plans: 'en', or a file, a translated copy of en.toml.")
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", help="What may be asked of people, and who is accepted: a .toml."),
]
RulesFile = Annotated[
    Path | None,
    typer.Option(
        "--rules",
        help='Rules of this request, a .json or .toml: such as {"max_changes": 2}, or '
        'also by row, {"default": ..., "people": {"17": {"lock": ["purpose"]}}}.',
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
        "--delta",
        metavar="ERROR",
        help="How likely the promise may be wrong. Default: 0.1.",
    ),
]
MinRobust = Annotated[
    float | None,
    typer.Option(
        "--min-robust",
        metavar="SHARE",
        help="Share of retrained models, and of tries with noise, that must accept a plan, "
        "or it is called fragile. Default: 0.75.",
    ),
]
MostChanges = Annotated[
    int | None,
    typer.Option(
        "--most-changes",
        metavar="K",
        min=1,
        help="Show plans with more changes only if no sturdy plan has fewer. Default: 5.",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="End with an error if a row cannot be read.")
]
SafeCells = Annotated[
    bool,
    typer.Option(
        "--safe-cells",
        help="In a .csv, put an apostrophe before each text that a spreadsheet could run as a "
        "formula, such as =cmd().",
    ),
]
MostMonths = Annotated[
    float | None,
    typer.Option(
        "--most-months",
        metavar="N",
        min=0,
        help="Show only plans that take at most N months, by what the policy says about changes.",
    ),
]
MostMoney = Annotated[
    float | None,
    typer.Option(
        "--most-money",
        metavar="SUM",
        min=0,
        help="Show only plans that cost at most SUM, by what the policy says about changes.",
    ),
]
Sort = Annotated[
    str | None,
    typer.Option(
        "--sort",
        metavar="ORDER",
        help="Order of each person's plans: 'time', 'money', 'changes' or 'cost'. Default: the "
        "method's choice first.",
    ),
]
Immutable = Annotated[
    str, typer.Option(metavar="A,B", help="Columns that nobody can change, separated by commas.")
]
Drop = Annotated[
    str, typer.Option(metavar="A,B", help="Columns to leave out, separated by commas.")
]
CostOption = Annotated[
    str | None,
    typer.Option(
        "--cost",
        metavar="SCALE",
        help="How changes of numbers are paid: 'range', by their share of the range, or "
        "'quantile', by the people they overtake. Default: range.",
    ),
]
Seed = Annotated[int, typer.Option(help="Decides everything random.")]


def split(names: str) -> list[str]:
    """Return the names in a text with commas between them."""
    return [name.strip() for name in names.split(",") if name.strip()]


def own_model(where: str | None) -> Any:
    """Return the model that --classifier names; None if it names none."""
    if where is None:
        return None
    from genrecourse.advice.own_model import import_model

    return import_model(where)


def plan_request(
    rules: Path | None,
    *,
    n: int,
    fewest_changes: bool,
    promise: float | None,
    delta: float | None,
    language: str,
    min_robust: float | None = None,
    most_changes: int | None = None,
    strict: bool = False,
    most_months: float | None = None,
    most_money: float | None = None,
    sort: str | None = None,
    options: dict[str, Any] | None = None,
) -> PlanRequest:
    from genrecourse.advice.request import PlanRequest
    from genrecourse.advice.rule_files import read_rules_file

    bars = {"min_robust": min_robust, "most_changes": most_changes}
    stated: dict[str, Any] = {name: value for name, value in bars.items() if value is not None}
    return PlanRequest(
        n=n,
        fewest_changes=fewest_changes,
        rules=None if rules is None else read_rules_file(rules),
        promise=promise,
        delta=delta,
        language=language,
        errors="raise" if strict else "status",
        most_months=most_months,
        most_money=most_money,
        sort=sort,
        options=options or {},
        **stated,
    )


def score_ends(text: str | None) -> tuple[float, float] | None:
    """Return the two ends in LOW,HIGH; None if there is no text."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise UserError(
            f"--score-range {text!r} should be the two ends of the scale, such as 300,850"
        ) from None
    return low, high


def parameter(text: str) -> tuple[str, Any]:
    """Return NAME and VALUE of NAME=VALUE. A VALUE is JSON, or a word without quotes."""
    name, equals, value = text.partition("=")
    if not (equals and name.strip()):
        raise UserError(f"--param {shown(text)} should be NAME=VALUE, such as gamma=0.7")
    name = name.strip()
    if value[:1] in tuple('[{"'):  # meant as JSON, and no word
        try:
            return name, from_json(value, f"--param {name}={shown(value)}")
        except UserError as error:
            raise UserError(f"{error}; write a number, a word, or a list such as [1, 2]") from None
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def how_many_rows(text: str) -> int | None:
    """Return the number of --rows; None for 'all'."""
    if text == "all":
        return None
    if not text.isdecimal() or int(text) == 0:
        raise UserError(f"--rows {text!r} should be a number of people, or 'all'")
    return int(text)
