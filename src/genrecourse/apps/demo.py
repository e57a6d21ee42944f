"""The demo: from nothing to worded plans and a report, on the German credit data in the package."""

from __future__ import annotations

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
from genrecourse.errors import own_warnings, rejections_expected
from genrecourse.evaluation.evaluate import Case, make_case, measure, summarise, with_schema
from genrecourse.methods import METHODS
from genrecourse.reports.console import panel
from genrecourse.reports.plan_report import score_table, write_report
from genrecourse.rules.policy import Policy
from genrecourse.table.text_files import read_text, write_text

NAME = "german"
POLICY = EMBEDDED / f"{NAME}.toml"
PLANS = 2  # per person
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
    entry, policy = DATASETS[NAME], Policy.read(POLICY)
    console.rule("genrecourse demo: German credit")
    with _step(console, "a model that decides, and a judge that no method sees"):
        case = make_case(NAME, seed, rows=None)
        case = with_schema(case, policy.schema(case.X, base=case.schema))
    console.print(
        f"  {len(case.X):,} training rows; the model rejects {len(case.people):,} of the test "
        "rows. Which changes that a bank may ask for would change its decision?"
    )
    with _step(console, "GenRe learns from the people who were accepted", live=False):
        method = METHODS["genre"](
            case.h, case.schema, random_state=seed, progress=console.is_terminal
        )
        method.fit(case.X, case.y)
    with _step(console, f"plans for the first {people} of them"):
        plans = method.plans(case.people.iloc[:people], PLANS, **policy.request)
    console.print()
    for i, plan in enumerate(plans):
        console.print(panel(case.schema, case.people.iloc[i], plan))
    with _step(console, "the scores of GenRe and of nearest neighbours"), rejections_expected():
        scores = _scores(case, policy, method.recourse(case.people, rules=policy.rules))
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
                "in the paper, outcomes are not the table's: each is drawn at random, with the "
                "probability that a forest gives such a row, so that no model is always right",
                "time": f"{time.perf_counter() - started:.0f} seconds, learning and scores",
            },
            limits=LIMITS,
        )
        write_text(read_text(POLICY), folder / "policy.toml")
    console.print(_next(path))


@contextmanager
def _step(console: Console, what: str, live: bool = True) -> Iterator[None]:
    """Print what is done, how long it took, and its warnings. live: show a spinner meanwhile."""
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


def _score_table(scores: pd.DataFrame) -> Table:
    heads, rows = score_table(scores)
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False, show_edge=False)
    for head in heads:
        table.add_column(head, justify="left" if head == "method" else "right")
    for row in rows:
        table.add_row(*row, style="bold" if row[0] == "GenRe" else "")
    return table


def _next(path: Path) -> Panel:
    text = Text.assemble(
        "Open the report in a browser: ",
        (str(path), "bold"),
        "\nStart your own policy from the one that the plans keep: ",
        (str(path.with_name("policy.toml")), "bold"),
        "\n\nThen use your own table. Write down what its columns are, and edit what may change:\n",
        ("  genrecourse schema YOUR.csv --target OUTCOME -o schema.json", "cyan"),
        "\nLearn from it:\n",
        ("  genrecourse fit YOUR.csv --target OUTCOME --schema schema.json -o model", "cyan"),
    )
    return Panel(text, title="Next", padding=(1, 2), width=100)
