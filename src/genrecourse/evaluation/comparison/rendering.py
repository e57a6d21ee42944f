"""Standings as text: the cells of a table, Markdown, LaTeX, and tidy rows for a CSV file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from genrecourse.evaluation.comparison.intervals import Interval
from genrecourse.evaluation.comparison.ranking import RANKED_BY, Standing
from genrecourse.evaluation.comparison.results import TABLES, Line
from genrecourse.evaluation.metrics import METRICS

# Columns of the tables, as far as there are such metrics; the CSV file has every metric.
SHOWN = (
    *(RANKED_BY, "val", "lof", "cost", "h_valid", "changes", "violations"),
    *("retrained_seed", "retrained_bootstrap", "noise"),
)
ARROWS = {"higher": " ↑", "lower": " ↓"}


def tidy(lines: Sequence[Line]) -> pd.DataFrame:
    """One row for each data set, method, seed and metric."""
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
    """The heads of the columns; an arrow says which way is better."""
    metrics = [name + ARROWS.get(METRICS[name][1], "") for name in _shown(rows)]
    return ["method", *metrics]


def cells(row: Standing, rows: Sequence[Standing]) -> list[str]:
    """One line of a table, as text. rows: all of them, which decide on the columns."""
    shown = [_cell(row, name) for name in _shown(rows)]
    if row.failed:
        shown[0] = f"failed on {row.failed} of {row.seeds} seeds {shown[0]}".strip()
    return [row.label, *shown]


AGAINST = ["people", "x_plus", "Score less that of", "", "fit s", "ms/row"]


def against(row: Standing) -> list[str]:
    """The rest of the line: of how many, the paired difference, to whom, and the times."""
    return [
        f"{row.n:,}",
        f"{row.distinct:,}" if row.distinct else "",
        "" if row.difference is None else in_words(row.difference, sign=True),
        "" if row.difference is None else str(row.other),
        "" if row.fit_seconds is None else f"{row.fit_seconds:.1f}",
        "" if row.row_ms is None else f"{row.row_ms:.2f}",
    ]


def _cell(row: Standing, metric: str) -> str:
    """Mean and interval, and of how many people where it is not of all."""
    interval = row.metrics.get(metric)
    if interval is None:
        return ""
    return in_words(interval) + ("" if interval.n == row.answered else f" of {interval.n:,}")


def in_words(interval: Interval, *, sign: bool = False) -> str:
    mean = f"{interval.mean:+.3f}" if sign else f"{interval.mean:.3f}"
    return mean if np.isnan(interval.half) else f"{mean} ± {interval.half:.3f}"


def caption(rows: Sequence[Standing]) -> str:
    """What the numbers of one data set are."""
    seeds = max(row.seeds for row in rows)
    if seeds > 1:
        spread = f"mean of {seeds} seeds ± half of its 95% interval (Student's t)"
    else:
        spread = "one seed ± half of the 95% interval in which people told the same x_plus are one"
    return f"{rows[0].dataset}: {spread}; people: rejected rows of all seeds; x_plus: distinct ones"


def by_dataset(rows: Sequence[Standing]) -> list[list[Standing]]:
    names = dict.fromkeys(row.dataset for row in rows)
    return [[row for row in rows if row.dataset == name] for name in names]


def to_markdown(rows: Sequence[Standing]) -> str:
    def table(part: list[Standing]) -> str:
        heads = head(part) + AGAINST
        ruler = ["---"] + ["---:"] * (len(heads) - 1)
        lines = [heads, ruler, *(cells(row, part) + against(row) for row in part)]
        text = "\n".join(f"| {' | '.join(_plain(cell) for cell in line)} |" for line in lines)
        return f"{caption(part)}\n\n{text}\n"

    return "\n".join(table(part) for part in by_dataset(rows))


def to_latex(rows: Sequence[Standing]) -> str:
    """Tables for the booktabs package."""

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
    """What stands beside a results file: ending -> content."""
    return {ending: WRITERS[ending](lines, rows) for ending in TABLES}
