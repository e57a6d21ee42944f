"""Write an audit as one HTML file, or its pictures as one image."""

from __future__ import annotations

import platform
from collections.abc import Callable
from datetime import datetime
from functools import partial
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genrecourse.auditing.groups import EVERYONE
from genrecourse.auditing.measures import CHANGE, NO_CAUSE
from genrecourse.reports import plots
from genrecourse.reports.html import bullets, document, header, notes, picture, section, table
from genrecourse.table.text_files import path_of

if TYPE_CHECKING:  # an audit makes its own page
    from genrecourse.auditing.result import Audit, Number

LEAD = (
    "A model turned some of these people down. Recourse shows them what would change its decision. "
    "This page compares groups of people: how often they are turned down, how often there is a "
    "plan for them, and what it asks for."
)
LIMITS = (
    "The audit is about one model, one method to find plans and one table of people. An interval "
    "shows how the number would vary with other people of the same kind, not with another model.",
    "The cost is a distance on the scale of the data. It is neither money nor effort. The same "
    "change may be harder for one group than for another, and no number here measures that.",
    "If a group is not listed, is too small or is hidden, this does not show that it is treated "
    "like the others.",
    "Equal numbers do not make a decision fair, and a difference alone does not make it unlawful. "
    "People have to judge the consequences.",
)
SHOWN = 8  # features in the tables of changes
WIDTH, LINE, ROOM = 3.8, 0.42, 0.55  # inches; narrow, so that it is readable on a phone
IMAGE = ("rejected", "with_plan", "cost", "changes")  # the metrics in `write_image`


def audit_html(audit: Audit, title: str) -> str:
    """Return the page as HTML.

    >>> import numpy as np, pandas as pd
    >>> from genrecourse import NearestNeighbour, Schema, audit
    >>> X = pd.DataFrame({"income": np.arange(80.0), "side": ["a", "b"] * 40})
    >>> schema = Schema.infer(X[["income"]])
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, schema).fit(X[["income"]])
    >>> found = audit(method, X, groups="side", n_boot=100)
    >>> audit_html(found, "Loans").startswith("<!doctype html>")
    True
    """
    parts = [
        _head(audit, title),
        section(
            "Differences between groups",
            *(f"<p><strong>{escape(remark)}</strong></p>" for remark in audit.remarks),
            *(bullets(audit.findings), _muted(audit.how_called), _muted(NO_CAUSE)),
        ),
        _by_group(audit),
        _changes(audit),
        _everything(audit),
        _meanings(audit),
        section("How it was made", notes(_facts(audit))),
        section("What it does not mean", bullets(LIMITS)),
    ]
    return document(title, parts)


def audit_picture(audit: Audit) -> plots.Picture:
    """Return shares, cost and changes by group as a figure, which a notebook shows.

    >>> import numpy as np, pandas as pd
    >>> from genrecourse import NearestNeighbour, Schema, audit
    >>> X = pd.DataFrame({"income": np.arange(80.0), "side": ["a", "b"] * 40})
    >>> schema = Schema.infer(X[["income"]])
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, schema).fit(X[["income"]])
    >>> len(audit_picture(audit(method, X, groups="side", n_boot=100)).axes)
    4
    """
    draws = {
        f"{audit.metric(name).title}\n(of {audit.metric(name).counted})": _drawing(audit, name)
        for name in IMAGE
        if name in audit.metrics
    }
    return plots.panels(draws, WIDTH, _height(audit) + 0.35)


def write_image(audit: Audit, path: str | Path) -> None:
    """Write `audit_picture` as a PNG file.

    >>> import numpy as np, pandas as pd, tempfile
    >>> from genrecourse import NearestNeighbour, Schema, audit
    >>> X = pd.DataFrame({"income": np.arange(80.0), "side": ["a", "b"] * 40})
    >>> schema = Schema.infer(X[["income"]])
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, schema).fit(X[["income"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_image(audit(method, X, groups="side", n_boot=100), Path(folder, "audit.png"))
    ...     Path(folder, "audit.png").exists()
    True
    """
    plots.save(audit_picture(audit), path_of(path, "the image"))


# ---- the sections ---------------------------------------------------------------------------


def _head(audit: Audit, title: str) -> str:
    people, rejected = (audit.number(EVERYONE, name) for name in ("rejected", "with_plan"))
    down, helped = audit.count(rejected), audit.count(audit.number(EVERYONE, "cost"))
    tiles = [
        (audit.count(people), "people"),
        (down, "turned down by the model"),
        (f"{helped} of {down}", "of these have a plan that holds"),
        (f"{len(audit.called)} of {len(audit.differences)}", "comparisons show a difference"),
    ]
    return header("genrecourse audit", title, LEAD, tiles)


def _by_group(audit: Audit) -> str:
    figures = [
        picture(
            _drawing(audit, name),
            f"{audit.metric(name).title}, by group",
            f"Of {audit.metric(name).counted}.",
            (WIDTH, _height(audit)),
            audit.metric(name).title,
        )
        for name in audit.metrics
    ]
    return section(
        "By group",
        f'<div class="panels">{"".join(figures)}</div>',
        lead=f"Dot: the mean. Bar: its interval. Mark: the mean of everyone. The scales differ. "
        f"{audit.how_counted}",
    )


def _drawing(audit: Audit, name: str) -> Callable[[Any], None]:
    rows, above, everyone = [], "", audit.number(EVERYONE, name)
    for group, where in audit.grouped.items():
        number, heading = audit.number(group, name), " and ".join(column for column, _ in where)
        label = plots.short([value for _, value in where]) if where else group
        new, above = heading if heading != above else "", heading
        rows.append(_span(audit, number, label, everyone, new))
    return partial(plots.spans, rows=rows, is_share=audit.metric(name).is_share)


def _span(
    audit: Audit, number: Number, label: str, everyone: Number, heading: str = ""
) -> plots.Span:
    return plots.Span(
        label,
        number.value,
        number.low,
        number.high,
        audit.in_words(number),
        mark=everyone.value,
        heading=heading,
        strong=number is everyone,
    )


def _height(audit: Audit) -> float:
    headings = {tuple(column for column, _ in where) for where in audit.grouped.values() if where}
    return LINE * (len(audit.groups) + plots.HEADING * len(headings)) + ROOM


def _changes(audit: Audit) -> str:
    """Return what each group is asked to change most, each in its own order."""
    figures = []
    for group in audit.groups:
        most = audit.asked_most(group)[:SHOWN]
        if not most:
            continue
        rows = []
        for number in most:
            label = plots.short([audit.schema[_feature(number)].label])
            rows.append(_span(audit, number, label, audit.number(EVERYONE, number.metric)))
        figures.append(
            picture(
                partial(plots.spans, rows=rows, is_share=True),
                f"What is asked to change most, {group}",
                f"Of the {audit.count(most[0])} with a plan.",
                (WIDTH, LINE * len(rows) + ROOM),
                group,
            )
        )
    if not figures:
        return ""
    return section(
        "What people are asked to change most",
        f'<div class="panels">{"".join(figures)}</div>',
        lead=f"The share of plans that change a feature, for the {SHOWN} most frequent features of "
        "each group. Groups are not compared by these shares: with so many comparisons, all "
        "intervals would be too wide.",
    )


def _everything(audit: Audit) -> str:
    tables = []
    for name in audit.metrics:
        rows = [
            [group, audit.in_words(number), audit.count(number)]
            for group in audit.groups
            for number in [audit.number(group, name)]
        ]
        title = f"{audit.metric(name).title} (of {audit.metric(name).counted})"
        tables.append(f"<h4>{escape(title)}</h4>{table(['group', 'mean', 'n'], rows, 'scores')}")
    return f"<details><summary>All numbers, as tables</summary>{''.join(tables)}</details>"


def _meanings(audit: Audit) -> str:
    words = {audit.metric(name).title: audit.metric(name).about for name in audit.metrics}
    words |= {audit.metric(name).title: f"not measured: {w}." for name, w in audit.absent.items()}
    return section("What the numbers mean", notes(words))


def _facts(audit: Audit) -> dict[str, str]:
    packages = ("genrecourse", "torch", "scikit-learn", "numpy", "pandas")
    return {
        "method": audit.method,
        "grouped by": ", ".join(audit.columns),
        "no plan": ", ".join(f"{n:,} {code}" for code, n in audit.reasons.items()),
        "cannot be read": ", ".join(f"{n:,} {code}" for code, n in audit.faults.items()),
        "cannot change": ", ".join(f.label for f in audit.schema if f.role != "mutable"),
        "intervals": f"{audit.n_boot:,} resamples of people, seed {audit.seed}",
        "versions": ", ".join(
            [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in packages)]
        ),
        "written": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    }


def _feature(number: Number) -> str:
    return number.metric.removeprefix(CHANGE)


def _muted(text: str) -> str:
    return f'<p class="muted">{escape(text)}</p>'
