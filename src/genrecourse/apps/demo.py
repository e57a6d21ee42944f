"""The demo: from nothing to plans, a picture and a report, on the German credit data.

The terminal shows at most two screens of 80 columns; everything else is in the report. The people
who are shown are chosen by a rule (`shown_people`) and not by hand.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from genrecourse.data.datasets import DATASETS, EMBEDDED
from genrecourse.errors import counted, own_warnings, rejections_expected
from genrecourse.evaluation.evaluate import Case, make_case, measure, summarise, with_schema
from genrecourse.methods import METHODS
from genrecourse.reports.plan_report import write_report
from genrecourse.rules.policy import Policy
from genrecourse.table.text_files import read_text, write_text

if TYPE_CHECKING:
    from genrecourse.planning.plans import Plan, Plans

NAME = "german"
POLICY = EMBEDDED / f"{NAME}.toml"
PLANS = 2  # per person
WIDTH = 80
BARS, BAR = 5, 32  # features in the picture, and the columns of a full bar
RULE = (
    "The first {n} in the order of the table with a sturdy plan: three quarters of the stand-ins "
    "for the model, trained again, and of the tries with noise on every number accept it."
)
SCORES_NOTE = (
    "Both keep the policy. The nearest neighbour copies the cheapest accepted training row, except "
    "for features that may not change; if the model rejects every such row, people are scored "
    "without any change."
)
LIMITS = (
    "The data are from the 1970s and several columns are known to be mislabelled: use them to try "
    "software, not to learn about people.",
    "The policy decides what may be asked of people, not the method: policy.toml, in the folder of "
    "this page, is an example for a bank, with reasons. Without a policy, everything may change.",
)


def run_demo(
    folder: Path = Path("demo"), *, console: Console, seed: int = 0, people: int = 3
) -> None:
    """Fit GenRe on German credit, show a few plans and the scores, and write a report."""
    started = time.perf_counter()
    console = _narrow(console)
    entry, policy, notes = DATASETS[NAME], Policy.read(POLICY), dict[str, None]()
    console.rule("genrecourse demo: German credit")
    with _step(console, "a model that decides, and a judge that no method sees", notes):
        case = make_case(NAME, seed, rows=None)
        case = with_schema(case, policy.schema(case.X, base=case.schema))
    asked = case.people.sort_index()
    with _step(console, "GenRe learns from the people who were accepted", notes, live=False):
        method = METHODS["genre"](
            case.h, case.schema, random_state=seed, progress=console.is_terminal
        )
        method.fit(case.X, case.y)
    with _step(console, f"plans for all {len(asked):,} people whom the model rejects", notes):
        plans = method.plans(asked, PLANS, **policy.request)
    with _step(console, "the scores of GenRe and of nearest neighbours", notes):
        scores = _scores(case, policy, method.recourse(case.people, rules=policy.rules))
    sturdy, warned = shown_people(plans, people)
    rule = RULE.format(n=len(sturdy))
    with _step(console, "the report", notes):
        path = write_report(
            folder / "report.html",
            method,
            asked,
            title="German credit: what would change the decision?",
            plans=plans,
            which=[*sturdy, *warned],
            which_note=f"{rule} Then, as a warning, the first with only a fragile plan."
            if warned
            else rule,
            n=PLANS,
            **policy.request,
            scores=scores,
            scores_note=SCORES_NOTE,
            facts={
                "data": f"{entry.source}; {len(case.X):,} rows to learn from",
                "licence of the data": entry.licence,
                "model": f"a small neural net, right on {case.h_accuracy:.0%} of the test rows. As "
                "in the paper, outcomes are not the table's: each is drawn at random, with the "
                "probability that a forest gives such a row, so that no model is always right",
                "time": f"{time.perf_counter() - started:.0f} seconds, learning and scores",
                "notes": " ".join(f"{note}." for note in notes),
            },
            limits=LIMITS,
        )
        write_text(read_text(POLICY), folder / "policy.toml")
    console.print(_people(plans, sturdy, rule))
    if warned:
        console.print(_warning(plans[warned[0]]))
    console.print(_picture(plans))
    console.print(_outcome(plans, scores, len(notes)))
    for line in _next(path):
        console.print(line, soft_wrap=True)  # a command that is broken in two cannot be copied


# ---- who is shown -------------------------------------------------------------------------------


def shown_people(plans: Plans, n: int) -> tuple[list[int], list[int]]:
    """Return the positions of the first n people with a sturdy plan, and of one with a fragile one.

    The second list is empty if no plan is fragile.

    >>> from genrecourse.planning.plans import Plan, Plans
    >>> from dataclasses import replace
    >>> plan = Plan("Ada", "ok", 0.3, 0.5, score_after=0.6, cost=1.0)
    >>> shown_people(Plans((replace(plan, is_fragile=True), plan, plan, plan)), 2)
    ([1, 2], [0])
    """
    ok = [place for place, plan in enumerate(plans) if plan.status == "ok"]
    fragile = [place for place in ok if plans[place].is_fragile]
    return [place for place in ok if not plans[place].is_fragile][:n], fragile[:1]


# ---- what the terminal shows --------------------------------------------------------------------


def _narrow(console: Console) -> Console:
    """Return the console with at most 80 columns, which every terminal has."""
    console.width = min(console.width, WIDTH)
    return console


@contextmanager
def _step(console: Console, what: str, notes: dict[str, None], live: bool = True) -> Iterator[None]:
    """Print what is done and how long it took. live: show a spinner meanwhile.

    notes: gets the warnings, each text once, whichever method says it.
    """
    started = time.perf_counter()
    with own_warnings() as found, rejections_expected():
        if live:
            with console.status(what):
                yield
        else:
            yield
    console.print(f"[green]✓[/] {what} [dim]{time.perf_counter() - started:.0f} s[/]")
    notes.update(dict.fromkeys(re.sub(r"^\w+\.fit: ", "", note) for note in found))


def _people(plans: Plans, which: Sequence[int], rule: str) -> Group:
    """Return the plans of these people, each in a few lines."""
    parts: list[Text | Table] = [Text("\nWhat would change the decision", style="bold")]
    parts.append(Text(rule, style="dim"))
    for place in which:
        plan = plans[place]
        parts.append(Text.assemble((f"Person {plan.person}", "bold"), f", {_lasts(plan)}"))
        parts.append(_changes(plan))
    return Group(*parts)


def _changes(plan: Plan) -> Table:
    """Return the changes of a plan as lines without a frame."""
    table = Table.grid(padding=(0, 1))
    for name, width in (("feature", 36), ("from", 16), ("arrow", 1), ("to", 20)):
        table.add_column(name, width=width, no_wrap=True, overflow="ellipsis")
    for change in plan.changes:
        before, after = change.words
        table.add_row(
            Text(f"  {change.feature.label}"), Text(before), "→", Text(after, style="green")
        )
    return table


def _lasts(plan: Plan) -> str:
    """Return how sturdy a plan is: retrained stand-ins, and tries with noise."""
    said = "accepted by"
    if plan.retrained is not None:
        said += f" {plan.retrained.k} of {plan.retrained.n} stand-ins and"
    assert plan.imprecise is not None  # every plan is tried with noise
    return f"{said} in {plan.imprecise.k} of {plan.imprecise.n} tries with noise"


def _warning(plan: Plan) -> Text:
    """Return a plan that does not last, as what it is."""
    changes = "; ".join(change.to_text() for change in plan.changes)
    return Text.assemble(
        ("\nwarning: not every plan is sturdy.", "yellow"),
        f" Person {plan.person} has only this one: {changes}. It is {_lasts(plan)}: it is "
        "called fragile.",
    )


def _picture(plans: Plans) -> Group:
    """Return bars: what people are asked to change most."""
    ok = [plan for plan in plans if plan.status == "ok"]
    asked = Counter(change.feature.label for plan in ok for change in plan.changes)
    table = Table.grid(padding=(0, 1))
    table.add_column(width=36, no_wrap=True, overflow="ellipsis")
    table.add_column(width=BAR)
    table.add_column(justify="right")
    for label, n in asked.most_common(BARS):
        full = round(BAR * n / len(ok))
        bar = Text.assemble(("█" * full, "green"), ("░" * (BAR - full), "dim"))
        table.add_row(Text(label), bar, f"{n / len(ok):.0%}")
    title = f"\nWhat {counted(len(ok), 'plan')} ask to change most (share of plans)"
    return Group(Text(title, style="bold"), table)


def _outcome(plans: Plans, scores: pd.DataFrame, n_notes: int) -> Text:
    """Return how many people are helped, and what the judge says, also about the simple method."""
    statuses = Counter(plan.status for plan in plans)
    fragile = sum(plan.status == "ok" and plan.is_fragile for plan in plans)
    valid = {name: round(row["val"] * row["n"]) for name, row in scores.iterrows()}
    ours, nearest = valid.values()
    return Text(
        f"\nOf {len(plans):,} people, {statuses['ok'] - fragile} get a sturdy plan, {fragile} "
        f"only a fragile one, and {len(plans) - statuses['ok']} none. A judge that the method "
        f"never saw finds the best attempt good for {ours} of them (nearest neighbours: "
        f"{nearest}). The report shows every plan, second ways, and {counted(n_notes, 'note')}."
    )


# ---- what is next -------------------------------------------------------------------------------


def typed_command() -> str:
    """Return how the command of this environment is typed in a shell that is in this folder.

    >>> "genrecourse" in typed_command()
    True
    """
    own = next(iter(sorted(Path(sys.executable).parent.glob("genrecourse*"))), None)
    if own is None:
        return f"{sys.executable} -m genrecourse"
    found = shutil.which("genrecourse")
    if found is not None and Path(found).resolve() == own.resolve():
        return "genrecourse"
    here = Path.cwd()
    if not own.is_relative_to(here):
        return str(own)
    relative = own.relative_to(here)
    return str(relative) if len(relative.parts) > 1 else os.path.join(os.curdir, relative)


def _next(path: Path) -> list[Text]:
    command, policy = typed_command(), path.with_name("policy.toml")
    steps = [
        "datasets german -o german.csv",
        f"fit german.csv --policy {policy} -o model",
        "plans model german.csv -n 3 -o plans.html",
    ]
    own = "schema YOUR.csv --target OUTCOME -o schema.json"
    return [
        Text.assemble("\nOpen in a browser: ", (str(path), "bold")),
        Text("The same, step by step:"),
        *(Text(f"  {command} {step}", style="cyan") for step in steps),
        Text("Your own table; the policy above is one to start from:"),
        Text(f"  {command} {own}", style="cyan"),
    ]


def _scores(case: Case, policy: Policy, of_genre: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of GenRe's recourse and of nearest neighbours."""
    nearest = METHODS["nnr-auto"](case.h, case.schema, random_state=case.seed).fit(case.X, case.y)
    found = {
        "GenRe": of_genre,
        "nearest neighbour": nearest.recourse(case.people, rules=policy.rules),
    }
    return pd.DataFrame(
        {name: summarise(measure(case, X_plus)) for name, X_plus in found.items()}
    ).T
