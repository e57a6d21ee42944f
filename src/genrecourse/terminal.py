"""What a person sees in a terminal: a profile with its plan, the tables of a comparison, and the
library's own warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Group, JustifyMethod
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from genrecourse.comparison import rendering
from genrecourse.comparison.ranking import Standing
from genrecourse.metrics import METRICS
from genrecourse.plans import Plan, in_words
from genrecourse.schema import Schema


@contextmanager
def own_warnings() -> Iterator[list[str]]:
    """Gathers what the library warned of, each once; other packages' warnings are theirs."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield notes
    ours = [w for w in caught if Path(w.filename).is_relative_to(Path(__file__).parent)]
    notes += dict.fromkeys(str(w.message) for w in ours)


def panel(schema: Schema, row: pd.Series, plan: Plan) -> Panel:
    """One person: who they are, and the plan, with today's values that would change marked."""
    changed = {change.feature.name for change in plan.changes}
    profile = Table.grid(padding=(0, 2), expand=True)
    profile.add_column(ratio=1)
    profile.add_column(ratio=1)
    cells = [
        Text.assemble(
            (f"{_short(feature.label)}: ", "dim"),
            (in_words(feature, row[feature.name]), "bold" if feature.name in changed else ""),
        )
        for feature in schema
    ]
    half = (len(cells) + 1) // 2
    for i in range(half):
        profile.add_row(cells[i], cells[i + half] if i + half < len(cells) else "")
    title = Text(f"Person {plan.person}", style="bold")
    return Panel(Group(profile, Text(), *_plan(plan)), title=title, padding=(1, 2), width=100)


def _plan(plan: Plan) -> list[Table | Text]:
    if plan.status != "ok":
        return [Text(plan.reason, style="yellow")]
    table = Table(box=box.SIMPLE_HEAD, expand=True, show_edge=False, pad_edge=False)
    table.add_column("what would change the model's decision", ratio=3)
    table.add_column("from", ratio=2, style="red")
    table.add_column("to", ratio=2, style="green")
    for change in plan.changes:
        table.add_row(Text(change.feature.label), *(Text(word) for word in change.words))
    return [table, Text(plan.facts, style="dim")]


def _short(label: str) -> str:
    """A label without what it says in brackets."""
    return label.split(" (")[0]


# ---- comparisons --------------------------------------------------------------------------------


def standings_tables(rows: list[Standing]) -> Group:
    """The methods on one data set; and each against another, with the times it took."""
    title = Text(rendering.caption(rows), style="italic")
    metrics = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place, name in enumerate(rendering.head(rows)):
        width = max(len(row.label) for row in rows) if place == 0 else None
        side: JustifyMethod = "right" if place else "left"
        metrics.add_column(Text(_two_lines(name)), justify=side, min_width=width, overflow="fold")
    for row in rows:
        metrics.add_row(*(Text(_two_lines(cell)) for cell in rendering.cells(row, rows)))
    differences = Table("method", *rendering.AGAINST, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for row in rows:
        if any(told := rendering.against(row)):
            differences.add_row(*map(Text, (row.label, *told)))
    return Group(title, metrics, differences)


def _two_lines(cell: str) -> str:
    """A mean above its interval, a name above its arrow: narrow columns."""
    return cell.replace(" ± ", "\n±").replace(" ↑", "\n↑").replace(" ↓", "\n↓")


def metrics_table(rows: list[Standing]) -> Table:
    """Every metric of one method (the first), and of what stands beside it."""
    table = Table(title=Text(rendering.caption(rows)), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("metric")
    table.add_column("better")
    for row in rows:
        table.add_column(Text(row.label), justify="right")
    table.add_column("people", justify="right")
    for name, interval in rows[0].metrics.items():
        found = [row.metrics.get(name) for row in rows]
        shown = ["" if each is None else rendering.in_words(each) for each in found]
        better = METRICS[name][1] if name in METRICS else ""
        table.add_row(name, better, *shown, f"{interval.n:,}")
    table.add_row("distinct x_plus", "", *(f"{row.distinct:,}" for row in rows), "")
    return table
