"""Plans in one line, and as cards for a notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from genrecourse.errors import counted
from genrecourse.planning.wording import unbroken
from genrecourse.table.notebook import Html, box, element, folded, grid, joined, label, lines

if TYPE_CHECKING:
    from genrecourse.planning.plans import Plan, Plans

MOST_CHANGES = 4  # in a line
MOST_PEOPLE = 10  # cards; `plans[10:]` shows the others
KINDS = {"ok": "good", "no-plan": "bad", "unreadable": "bad"}  # colours of statuses


# ---- in a line ------------------------------------------------------------------------------


def plan_line(plan: Plan) -> str:
    """Return the person, the status, the first changes and the scores.

    >>> from genrecourse.planning.plans import Change, Plan
    >>> from genrecourse.table.schema import Feature
    >>> income = Feature(name="income", kind="number", unit="€", decimals=0)
    >>> plan_line(Plan("Ada", "ok", 0.31, 0.5, (Change(income, 20, 30),), score_after=0.72))
    "'Ada', ok: income €20 → €30; score 0.31 → 0.72"
    """
    if plan.status != "ok":
        return f"{plan.person!r}, {_status(plan)}"
    changes = [f"{c.feature.name} {' → '.join(c.words)}" for c in plan.changes]
    left = len(changes) - MOST_CHANGES
    parts = [", ".join(changes[:MOST_CHANGES]) + (f" and {left} more" if left > 0 else "")]
    parts += [f"score {plan.score_before:.2f} → {plan.score_after:.2f}"]
    parts += [counted(len(plan.alternatives), "alternative")] if plan.alternatives else []
    return f"{plan.person!r}, {'fragile' if plan.is_fragile else 'ok'}: {'; '.join(parts)}"


def plans_line(plans: Plans) -> str:
    """Return how many people there are of each status.

    >>> from genrecourse.planning.plans import Plan, Plans
    >>> plans_line(Plans((Plan("Ada", "already-accepted", 0.7, 0.5),)))
    '1 person: 1 already-accepted'
    """
    people = f"{len(plans):,} {'person' if len(plans) == 1 else 'people'}"
    fragile = sum(plan.is_fragile for plan in plans)
    notes = {"ok": f" ({fragile:,} fragile)"} if fragile else {}
    counts = Counter(plan.status for plan in plans).most_common()
    statuses = ", ".join(f"{n:,} {status}{notes.get(status, '')}" for status, n in counts)
    return f"{people}: {statuses}" if statuses else people


def _status(plan: Plan) -> str:
    return f"{plan.status}: {plan.reason_code}" if plan.reason_code else plan.status


# ---- as cards -------------------------------------------------------------------------------


def plan_html(plan: Plan) -> str:
    """Return one person's plans as HTML for a notebook.

    >>> from genrecourse.planning.plans import Plan
    >>> "already-accepted" in plan_html(Plan("Ada", "already-accepted", 0.7, 0.5))
    True
    """
    return box("", _card(plan))


def plans_html(plans: Plans, note: Sequence[str] = ()) -> str:
    """Return the plans of the first people as HTML for a notebook. note: sentences at the end.

    >>> from genrecourse.planning.plans import Plan, Plans
    >>> "1 person" in plans_html(Plans((Plan("Ada", "already-accepted", 0.7, 0.5),)))
    True
    """
    left = len(plans) - MOST_PEOPLE
    more = [f"and {left:,} more: plans[{MOST_PEOPLE}:] shows them, plans.to_frame() is a table"]
    cards = map(_card, plans[:MOST_PEOPLE])
    return box(
        f"Plans for {plans_line(plans)}", *cards, lines([*(more if left > 0 else []), *note])
    )


def _card(plan: Plan) -> Html:
    kind = "bad" if plan.is_fragile else KINDS.get(plan.status, "plain")
    status = "fragile" if plan.is_fragile else plan.status
    head = element(
        "div", "gr-head", Html("<b>"), str(plan.person), Html("</b> "), label(status, kind)
    )
    said = lines([plan.reason or plan.purpose])
    if plan.status != "ok":
        about = [each for each in (plan.about_rules, plan.facts) if each]
        return element("div", "gr-card", head, said, _scores(plan), lines(about))
    first, *others = map(_changes, plan.every)
    words = counted(len(others), "alternative")
    more = [folded(words, *others)] if others else []
    return element("div", "gr-card", head, said, _scores(plan), first, *more)


def _changes(plan: Plan) -> Html:
    """Return a table of the changes, and what the plan has to say besides."""
    rows = []
    for change in plan.changes:
        before, after = map(unbroken, change.words)
        new = element("span", "gr-new", f"→ {after}")
        why = [lines([change.safety_text])] if change.safety else []
        rows.append([change.feature.label, before, joined([new, *why])])
    return joined([grid([], rows), lines(plan.remarks)])


def _scores(plan: Plan) -> Html:
    """Return a line with a ring at the score, a dot at the new score, and a mark at the cutoff."""
    known = [v for v in (plan.score_before, plan.score_after, plan.cutoff) if v is not None]
    if plan.score_before is None:
        return Html("")
    low, high = min(0.0, *known), max(1.0, *known)
    marks = {"gr-from": plan.score_before, "gr-to": plan.score_after, "gr-cut": plan.cutoff}
    drawn = "".join(
        f'<span class="{name}" style="left:{100 * (value - low) / (high - low):.1f}%"></span>'
        for name, value in marks.items()
        if value is not None
    )
    return element("div", "gr-track", Html(f'<span class="gr-line"></span>{drawn}'))
