"""An audit in one line, and as a table for a notebook."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from genrecourse.auditing.measures import NO_CAUSE
from genrecourse.errors import counted
from genrecourse.table.notebook import Html, box, element, folded, grid, html, joined, lines

if TYPE_CHECKING:
    from genrecourse.auditing.result import Audit, Number

MOST_GROUPS = 8  # columns of the table


def in_a_line(audit: Audit) -> str:
    """Return the method, and how many groups, metrics and differences there are.

    >>> from genrecourse.auditing.measures import METRICS
    >>> from genrecourse.auditing.result import Audit
    >>> from genrecourse.table.schema import Feature, Schema
    >>> schema, absent = Schema(features=(Feature(name="a", kind="number"),)), dict(METRICS)
    >>> in_a_line(Audit((), (), (), {"everyone": ()}, schema, "GenRe", absent))
    'GenRe: 1 group, 0 metrics; 0 of 0 comparisons show a difference'
    """
    size = f"{counted(len(audit.groups), 'group')}, {counted(len(audit.metrics), 'metric')}"
    compared = counted(len(audit.differences), "comparison")
    return f"{audit.method}: {size}; {len(audit.called):,} of {compared} show a difference"


def as_table(audit: Audit) -> str:
    """Return the differences in words, and each metric by group with its interval, as HTML.

    >>> from genrecourse.auditing.measures import METRICS
    >>> from genrecourse.auditing.result import Audit
    >>> from genrecourse.table.schema import Feature, Schema
    >>> schema, absent = Schema(features=(Feature(name="a", kind="number"),)), dict(METRICS)
    >>> "1 group" in as_table(Audit((), (), (), {"everyone": ()}, schema, "GenRe", absent))
    True
    """
    groups = audit.groups[:MOST_GROUPS]
    left = len(audit.groups) - len(groups)
    more = [f"and {counted(left, 'more group')}, in audit.to_frame()"] if left else []
    found = [Html(f"<li>{html(each)}</li>") for each in audit.findings]
    rows = [
        [_title(audit, name), *(_cell(audit, audit.number(group, name)) for group in groups)]
        for name in audit.metrics
    ]
    return box(
        f"Audit of {in_a_line(audit)}",
        element("ul", "gr-found", *found),
        lines(audit.remarks),
        grid(["", *groups], rows),
        lines(more),
        folded("How this was found", lines([audit.how_called, audit.how_counted, NO_CAUSE])),
    )


def _title(audit: Audit, name: str) -> Html:
    metric = audit.metric(name)
    return joined([metric.title, lines([f"of {metric.counted}"])])


def _cell(audit: Audit, number: Number) -> Html:
    """Return a mean with a bar if it is a share, and its interval."""
    value, _, interval = audit.in_words(number).partition(" (")
    if number.hidden or math.isnan(number.value):
        return lines([audit.in_words(number)])
    bar = f'<span class="gr-share" style="width:{100 * number.value:.0f}%"></span>'
    parts = [Html(bar)] if audit.metric(number.metric).is_share else []
    return joined([value, *parts, lines([f"{interval.rstrip(')')}, n {audit.count(number)}"])])
