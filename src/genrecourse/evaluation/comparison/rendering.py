"""Standings as text: cells of a table, Markdown, LaTeX, and tidy rows for a CSV file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from genrecourse.evaluation.comparison.ranking import RANKED_BY, Standing
from genrecourse.evaluation.comparison.results import TABLES, Line
from genrecourse.evaluation.metrics import METRICS

if TYPE_CHECKING:
    from genrecourse.evaluation.comparison.intervals import Interval

# Columns of the tables, if the metrics exist; the CSV file has every metric.
SHOWN = (
    *(RANKED_BY, "val", "lof", "cost", "h_valid", "changes", "violations"),
    *("retrained_seed", "retrained_bootstrap", "noise"),
)
ARROWS = {"higher": " ↑", "lower": " ↓"}


def tidy(lines: Sequence[Line]) -> pd.DataFrame:
    """Return one row per data set, method, seed and metric.

    >>> line = {"dataset": "german", "label": "nnr", "params": {}, "ask": {}, "seed": 0}
    >>> tidy([line | {"metrics": {"cost": {"mean": 0.4, "n": 50}}}])["value"].tolist()
    [0.4]
    """
    return pd.DataFrame(
        [
            {
                "dataset": line["dataset"],
                "method": line["label"],
                "params": json.dumps(line["params"] | line["ask"], sort_keys=True),
                "seed": line["seed"],
                "metric": metric,
                "value": summary["mean"],
                "n": summary["n"],
            }
            for line in lines
            for metric, summary in line.get("metrics", {}).items()
        ],
        columns=["dataset", "method", "params", "seed", "metric", "value", "n"],
    )


def head(rows: Sequence[Standing]) -> list[str]:
    """Return the column headings; an arrow shows which direction is better.

    >>> from genrecourse.evaluation.comparison.intervals import Interval
    >>> score = Interval(1.4, 0.1, n=50, clusters=30)
    >>> head([Standing("german", "nnr", 50, 50, 30, 1, 0, {"score": score})])
    ['method', 'score ↑']
    """
    metrics = [name + ARROWS.get(METRICS[name][1], "") for name in _shown(rows)]
    return ["method", *metrics]


def cells(row: Standing, rows: Sequence[Standing]) -> list[str]:
    """Return the cells of one line. rows: all rows of the table, which decide on the columns.

    >>> from genrecourse.evaluation.comparison.intervals import Interval
    >>> score = Interval(1.4, 0.1, n=50, clusters=30)
    >>> row = Standing("german", "nnr", 50, 50, 30, 1, 0, {"score": score})
    >>> cells(row, [row])
    ['nnr', '1.400 ± 0.100']
    """
    shown = [_cell(row, name) for name in _shown(rows)]
    if row.failed:
        shown[0] = f"failed on {row.failed} of {row.seeds} seeds {shown[0]}".strip()
    return [row.label, *shown]


AGAINST = ["people", "x_plus", "Score minus that of", "", "fit s", "ms/row"]


def against(row: Standing) -> list[str]:
    """Return the other cells of the line: people, x_plus, the paired difference and the times.

    >>> against(Standing("german", "nnr", 50, 50, 30, 1, 0, {}, fit_seconds=2.0, row_ms=0.5))
    ['50', '30', '', '', '2.0', '0.50']
    """
    return [
        f"{row.n:,}",
        f"{row.distinct:,}" if row.distinct else "",
        "" if row.difference is None else in_words(row.difference, sign=True),
        "" if row.difference is None else str(row.other),
        "" if row.fit_seconds is None else f"{row.fit_seconds:.1f}",
        "" if row.row_ms is None else f"{row.row_ms:.2f}",
    ]


def _cell(row: Standing, metric: str) -> str:
    """Return mean and interval, with the number of people if it is not everybody."""
    interval = row.metrics.get(metric)
    if interval is None:
        return ""
    return in_words(interval) + ("" if interval.n == row.answered else f" of {interval.n:,}")


def in_words(interval: Interval, *, sign: bool = False) -> str:
    """Return an interval as text. sign: write a plus sign.

    >>> from genrecourse.evaluation.comparison.intervals import Interval
    >>> in_words(Interval(0.25, 0.1, n=50, clusters=30), sign=True)
    '+0.250 ± 0.100'
    """
    mean = f"{interval.mean:+.3f}" if sign else f"{interval.mean:.3f}"
    return mean if np.isnan(interval.half) else f"{mean} ± {interval.half:.3f}"


def caption(rows: Sequence[Standing]) -> str:
    """Return a sentence that explains the numbers of one data set.

    >>> caption([Standing("german", "nnr", 50, 50, 30, 1, 0, {})])[:39]
    'german: one seed ± half of the 95% inte'
    """
    seeds = max(row.seeds for row in rows)
    if seeds > 1:
        spread = f"mean of {seeds} seeds ± half of its 95% interval (Student's t)"
    else:
        spread = "one seed ± half of the 95% interval (people with the same x_plus are one cluster)"
    about = "people: rejected rows of all seeds; x_plus: number of distinct x_plus"
    return f"{rows[0].dataset}: {spread}; {about}"


def by_dataset(rows: Sequence[Standing]) -> list[list[Standing]]:
    """Return the rows of each data set, in the order of the rows.

    >>> rows = [Standing(name, "nnr", 50, 50, 30, 1, 0, {}) for name in ("german", "compas")]
    >>> [len(part) for part in by_dataset(rows)]
    [1, 1]
    """
    names = dict.fromkeys(row.dataset for row in rows)
    return [[row for row in rows if row.dataset == name] for name in names]


def to_markdown(rows: Sequence[Standing]) -> str:
    """Return one Markdown table per data set.

    >>> print(to_markdown([Standing("german", "nnr", 50, 50, 30, 1, 0, {})]).splitlines()[-1])
    | nnr |  | 50 | 30 |  |  |  |  |
    """

    def table(part: list[Standing]) -> str:
        heads = head(part) + AGAINST
        ruler = ["---"] + ["---:"] * (len(heads) - 1)
        lines = [heads, ruler, *(cells(row, part) + against(row) for row in part)]
        text = "\n".join(f"| {' | '.join(_plain(cell) for cell in line)} |" for line in lines)
        return f"{caption(part)}\n\n{text}\n"

    return "\n".join(table(part) for part in by_dataset(rows))


def to_latex(rows: Sequence[Standing]) -> str:
    """Return one LaTeX table per data set; they need the booktabs package.

    >>> to_latex([Standing("german", "nnr", 50, 50, 30, 1, 0, {})]).splitlines()[0]
    '\\\\begin{table}'
    """

    def table(part: list[Standing]) -> str:
        heads = head(part) + AGAINST
        lines = [cells(row, part) + against(row) for row in part]
        body = [r" & ".join(map(_latex, line)) + r" \\" for line in lines]
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{_latex(caption(part))}}}",
                rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
                r"\toprule",
                r" & ".join(map(_latex, heads)) + r" \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    return "\n".join(table(part) for part in by_dataset(rows))


def _shown(rows: Sequence[Standing]) -> list[str]:
    known = {RANKED_BY, *(name for row in rows for name in row.metrics)}
    return [name for name in SHOWN if name in METRICS and name in known]


def _plain(cell: str) -> str:
    return cell.replace("|", r"\|")


_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
}


def _latex(cell: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in cell)


WRITERS: dict[str, Callable[[Sequence[Line], Sequence[Standing]], str]] = {
    ".csv": lambda lines, rows: tidy(lines).to_csv(index=False),
    ".md": lambda lines, rows: to_markdown(rows),
    ".tex": lambda lines, rows: to_latex(rows),
}


def files(lines: Sequence[Line], rows: Sequence[Standing]) -> dict[str, str]:
    """Return the files next to a results file: ending -> content.

    >>> list(files([], []))
    ['.csv', '.md', '.tex']
    """
    return {ending: WRITERS[ending](lines, rows) for ending in TABLES}
