"""What a terminal shows: a person with their plans, and the tables of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
from rich import box
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from genrecourse.evaluation.comparison import rendering
from genrecourse.evaluation.metrics import METRICS
from genrecourse.planning.plans import Plan, cell_in_words

if TYPE_CHECKING:
    from genrecourse.evaluation.comparison.ranking import Standing
    from genrecourse.table.schema import Schema


def panel(schema: Schema, row: pd.Series, plan: Plan) -> Panel:
    """Return one person: their features, those that would change in bold, and the plans.

    >>> from genrecourse import NearestNeighbour, Schema
    >>> X = pd.DataFrame({"income": range(80)})
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, Schema.infer(X)).fit(X)
    >>> panel(method.schema_, X.iloc[0], method.plans(X.head(1))[0]).title.plain
    'Person 0'
    """
    changed = {change.feature.name for change in plan.changes}
    profile = Table.grid(padding=(0, 2), expand=True)
    profile.add_column(ratio=1)
    profile.add_column(ratio=1)
    cells = [
        Text.assemble(
            (f"{feature.label}: ", "dim"),
            (cell_in_words(feature, row, plan), "bold" if feature.name in changed else ""),
        )
        for feature in schema
    ]
    half = (len(cells) + 1) // 2
    for i in range(half):
        profile.add_row(cells[i], cells[i + half] if i + half < len(cells) else "")
    title = Text(plan.language("panel.person", person=plan.person), style="bold")
    return Panel(Group(profile, Text(), *_plan(plan)), title=title, padding=(1, 2), width=100)


def _plan(plan: Plan) -> list[Table | Text]:
    words = plan.language
    if plan.status != "ok":
        about = [Text(plan.about_rules, style="dim")] if plan.about_rules else []
        return [Text(plan.reason, style="yellow"), *about]
    parts: list[Table | Text] = []
    for each in plan.every:
        table = Table(box=box.SIMPLE_HEAD, expand=True, show_edge=False, pad_edge=False)
        table.add_column(plan.purpose if each is plan else words("plan.another"), ratio=3)
        table.add_column(words("panel.from"), ratio=2)
        table.add_column(words("panel.to"), ratio=2, style="green")
        for change in each.changes:
            why = (f"\n{change.safety_text}", "dim") if change.safety else ""
            name = Text.assemble(change.feature.label, why)
            table.add_row(name, *(Text(word) for word in change.words))
        parts += [table, *(Text(remark, style="dim") for remark in each.remarks)]
    return [*parts, Text(words("plan.note"), style="dim italic")]


# ---- comparisons --------------------------------------------------------------------------------


IN_A_ROW = 7  # metrics side by side


def standings_tables(rows: list[Standing]) -> Group:
    """Return the methods on one data set: metrics, then differences between methods, and times.

    >>> from genrecourse.evaluation.comparison.intervals import Interval
    >>> from genrecourse.evaluation.comparison.ranking import Standing
    >>> score = Interval(1.4, 0.1, n=50, clusters=30)
    >>> tables = standings_tables([Standing("german", "nnr", 50, 50, 30, 1, 0, {"score": score})])
    >>> len(tables.renderables)  # the caption, the metrics, and the differences
    3
    """
    heads, cells = rendering.head(rows), [rendering.cells(row, rows) for row in rows]
    blocks = [slice(i, i + IN_A_ROW) for i in range(1, len(heads), IN_A_ROW)]
    metrics = [_narrow([heads[0], *heads[b]], [[c[0], *c[b]] for c in cells]) for b in blocks]
    rest = [[row.label, *rendering.against(row)] for row in rows]
    title = Text(rendering.caption(rows), style="italic")
    return Group(title, *metrics, _narrow([heads[0], *rendering.AGAINST], rest))


def _narrow(heads: list[str], lines: list[list[str]]) -> Table:
    """Return a table for 80 columns: a mean above its interval, a name above its arrow."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place, name in enumerate(heads):
        label = name.replace("retrained_", "retrained\n").replace(" ↑", "\n↑").replace(" ↓", "\n↓")
        table.add_column(Text(label), justify="right" if place and name else "left")
    for line in lines:
        table.add_row(*(Text(cell.replace(" ± ", "\n±")) for cell in line))
    return table


def metrics_table(rows: list[Standing]) -> Table:
    """Return every metric of the first method, beside the same metric of the other rows.

    >>> from genrecourse.evaluation.comparison.intervals import Interval
    >>> from genrecourse.evaluation.comparison.ranking import Standing
    >>> score = Interval(1.4, 0.1, n=50, clusters=30)
    >>> table = metrics_table([Standing("german", "nnr", 50, 50, 30, 1, 0, {"score": score})])
    >>> [str(column.header) for column in table.columns]
    ['metric', 'better', 'nnr', 'people']
    """
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
