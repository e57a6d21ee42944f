"""The demo: from nothing to worded plans and a report, on the German credit data in the package."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from genrecourse.data.datasets import DATASETS, EMBEDDED
from genrecourse.errors import own_warnings
from genrecourse.evaluation.evaluate import Case, make_case, measure, summarise, with_schema
from genrecourse.methods import METHODS
from genrecourse.methods.genre import GenRe
from genrecourse.reports.console import panel
from genrecourse.reports.plan_report import score_table, write_report
from genrecourse.rules.policy import Policy

NAME = "german"
POLICY = EMBEDDED / f"{NAME}.toml"
PLANS = 2  # a person
SCORES_NOTE = (
    "Both keep the policy. The nearest neighbour copies the cheapest accepted training row, but "
    "for what may not change; where the model turns every such row down, people are scored as "
    "they are today."
)
LIMITS = (
    "The data are from the 1970s and several columns are known to be mislabelled: they are good "
    "for trying software on, not for learning about people.",
    "What may be asked of people is the policy's decision, not the method's: policy.toml, beside "
    "this page, says what a bank could hold to, and why. Without one, everything may change.",
)


def run_demo(
    folder: Path = Path("demo"), *, console: Console, seed: int = 0, people: int = 3
) -> None:
    """Fit GenRe on German credit, tell a few plans and the scores, and write a report."""
    started = time.perf_counter()
    entry, policy = DATASETS[NAME], Policy.read(POLICY)
    console.rule("genrecourse demo: German credit")
    with _step(console, "a model that decides, and a judge that nobody sees"):
        case = make_case(NAME, seed, rows=None)
        case = with_schema(case, policy.schema(case.X, base=case.schema))
    console.print(
        f"  {len(case.X):,} training rows; the model turns down {len(case.people):,} of the test "
        "rows. What would change its decision, of what a bank may ask for?"
    )
    with _step(console, "GenRe learns from the people who were accepted", live=False):
        method = GenRe(case.h, case.schema, random_state=seed, progress=console.is_terminal)
        method.fit(case.X, case.y)
    with _step(console, f"plans, of which these are the first {people}"):
        plans = method.plans(case.people.iloc[:people], PLANS, **policy.request)
    console.print()
    for i, plan in enumerate(plans):
        console.print(panel(case.schema, case.people.iloc[i], plan))
    with _step(console, "the scores, beside those of nearest neighbours"):
        scores = _scores(case, method, policy)
    console.print(Padding(_score_table(scores), (1, 0)))
    console.print(Text(f"n: people. {SCORES_NOTE}\n", style="dim"))
    with _step(console, "the report"):
        path = write_report(
            folder / "report.html",
            method,
            case.people,
            title="German credit: what would change the decision?",
            shown=people,
            n=PLANS,
            **policy.request,
            scores=scores,
            scores_note=SCORES_NOTE,
            facts={
                "data": f"{entry.source}; {len(case.X):,} rows to learn from",
                "licence of the data": entry.licence,
                "model": f"a small neural net, right on {case.h_accuracy:.0%} of the test rows. As "
                "in the paper, outcomes are not the table's: each is drawn by lot, with the chance "
                "that a forest gives a row like it, so that nobody could be right on all of them",
                "time": f"{time.perf_counter() - started:.0f} seconds, learning and scores",
            },
            limits=LIMITS,
        )
        shutil.copyfile(POLICY, folder / "policy.toml")
    console.print(_next(path))


@contextmanager
def _step(console: Console, what: str, live: bool = True) -> Iterator[None]:
    """Say what is done, how long it took, and what it warned of. live: with a spinner."""
    started = time.perf_counter()
    with own_warnings() as notes:
        if live:
            with console.status(what):
                yield
        else:
            yield
    console.print(f"[green]✓[/] {what} [dim]{time.perf_counter() - started:.0f} s[/]")
    for note in notes:
        console.print(Padding(Text(f"note: {note}", style="dim"), (0, 0, 0, 2)))


def _scores(case: Case, method: GenRe, policy: Policy) -> pd.DataFrame:
    nearest = METHODS["nnr-auto"](case.h, case.schema, random_state=case.seed).fit(case.X, case.y)
    asked = {"rules": policy.rules}
    found = {
        "GenRe": method.recourse(case.people, **asked),
        "nearest neighbour": nearest.recourse(case.people, **asked),
    }
    return pd.DataFrame(
        {name: summarise(measure(case, X_plus)) for name, X_plus in found.items()}
    ).T


def _score_table(scores: pd.DataFrame) -> Table:
    heads, rows = score_table(scores)
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False, show_edge=False)
    for head in heads:
        table.add_column(head, justify="left" if head == "method" else "right")
    for row in rows:
        table.add_row(*row, style="bold" if row[0] == "GenRe" else "")
    return table


def _next(path: Path) -> Panel:
    said = Text.assemble(
        "The report, to open in a browser: ",
        (str(path), "bold"),
        "\nThe policy that the plans keep, to begin your own from: ",
        (str(path.with_name("policy.toml")), "bold"),
        "\n\nNow your own table. Read off what its columns are, and say what may change:\n",
        ("  genrecourse schema YOUR.csv --target OUTCOME -o schema.json", "cyan"),
        "\nLearn from it:\n",
        ("  genrecourse fit YOUR.csv --target OUTCOME --schema schema.json -o model", "cyan"),
    )
    return Panel(said, title="Next", padding=(1, 2), width=100)
