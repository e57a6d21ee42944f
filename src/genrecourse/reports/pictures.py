"""Pictures of plans: figures that a notebook shows, and that `savefig` writes to a file.

    from genrecourse.reports import pictures

    pictures.before_after(plan)
    pictures.different_plans(plan)
    pictures.asked_to_change(plans)
    pictures.cheaper_or_safer({safety: method.plans(X, safety=safety) for safety in (0, 0.5, 1)})
    pictures.cheaper_or_safer({0: plans, 0.9: method.plans(X, min_robust=0.9)}, "min_robust")

Each is a matplotlib figure: `pictures.before_after(plan).savefig("plan.png")`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from genrecourse.errors import UserError, counted
from genrecourse.reports import plots
from genrecourse.reports.plots import Picture, Point

if TYPE_CHECKING:
    from genrecourse.planning.plans import Plan, Plans

WIDTH, TITLE = 6.6, 0.45  # inches


def before_after(plan: Plan, score_range: tuple[float, float] = (0.0, 1.0)) -> Picture:
    """Return a track for the score and for each change: a ring at x, a dot at x_plus.

    A track is the range of the feature, or its categories. score_range: the ends of the scale of
    the model's score.

    >>> from genrecourse.planning.plans import Change, Plan
    >>> from genrecourse.table.schema import Feature
    >>> income = Feature(name="income", kind="number", range=(0, 100))
    >>> plan = Plan("Ada", "ok", 0.3, 0.5, (Change(income, 20, 60),), score_after=0.7, cost=0.4)
    >>> before_after(plan).axes[0].get_title(loc="left")
    'Before and after, person Ada'
    """
    _check_plan("before_after", plan)
    title = plan.language("report.before_after", person=plan.person)
    height = 0.55 * (len(plan.changes) + 1) + 0.1
    return _picture(title, lambda ax: plots.before_after(ax, plan, score_range), height)


def different_plans(plan: Plan) -> Picture:
    """Return which features each plan of a person changes, and to what.

    A row is a feature with its value today; a column is a plan: the first, then the alternatives.

    >>> from genrecourse.planning.plans import Change, Plan
    >>> from genrecourse.table.schema import Feature
    >>> income = Feature(name="income", kind="number", range=(0, 100))
    >>> plan = Plan("Ada", "ok", 0.3, 0.5, (Change(income, 20, 60),), score_after=0.7, cost=0.4)
    >>> [label.get_text() for label in different_plans(plan).axes[0].get_yticklabels()]
    ['income\\nnow 20']
    """
    _check_plan("different_plans", plan)
    changed = {change.feature.name for each in plan.every for change in each.changes}
    title = f"What each plan changes, person {plan.person}"
    return _picture(title, lambda ax: plots.what_changes(ax, plan.every), 0.45 * len(changed) + 0.5)


def asked_to_change(plans: Plans) -> Picture:
    """Return the share of people with a plan who are asked to change each feature.

    It draws `share_of_people` of `Plans.asked_to_change` for the most frequent features.

    >>> from genrecourse.planning.plans import Change, Plan, Plans
    >>> from genrecourse.table.schema import Feature
    >>> income = Feature(name="income", kind="number", range=(0, 100))
    >>> plan = Plan("Ada", "ok", 0.3, 0.5, (Change(income, 20, 60),), score_after=0.7, cost=0.4)
    >>> asked_to_change(Plans((plan,))).axes[0].get_title(loc="left")
    'What people are asked to change most (1 person with a plan)'
    """
    asked = plans.asked_to_change()
    if asked.empty:
        raise UserError("asked_to_change: nobody has a plan, so there is nothing to draw")
    n = int(asked["of_people"].iloc[0])
    shares = asked.set_index("wording")["share_of_people"]
    shares = shares[shares > 0]  # the others are in alternatives only
    title = f"What people are asked to change most ({_people(n)} with a plan)"
    height = 0.36 * min(len(shares), plots.MOST_BARS) + 0.3
    return _picture(title, lambda ax: plots.asked_most(ax, shares), height)


def cheaper_or_safer(plans: Mapping[float, Plans], setting: str = "safety") -> Picture:
    """Return curves of the mean cost against the mean score and against the votes.

    plans: for each value of a setting, the plans of the same people. Only people who have a plan at
    every value are counted, so that all points are about the same people. The votes are the mean
    share of retrained models that accept a plan; if they are not known, only the score is drawn.
    setting: the name of what differs, such as `safety` or `min_robust`.

    >>> from genrecourse.planning.plans import Change, Plan, Plans
    >>> from genrecourse.table.schema import Feature
    >>> income = Feature(name="income", kind="number", range=(0, 100))
    >>> cheap, safe = (
    ...     Plans((Plan("Ada", "ok", 0.3, 0.5, (Change(income, 20, to),), to / 100, to / 100),))
    ...     for to in (60, 80)
    ... )
    >>> len(cheaper_or_safer({0.0: cheap, 1.0: safe}).axes)
    1
    """
    shown = _plans_at_every(plans, setting)
    n = len(next(iter(shown.values())))
    drawn = {"model's score": _curve(shown, lambda plan: plan.score_after)}
    if all(plan.retrained for each in shown.values() for plan in each):
        drawn["retrained models that accept"] = _curve(shown, _votes)

    def draw(points: Sequence[Point], what: str) -> Callable[[Any], None]:
        def on(ax: Any) -> None:
            plots.curves(ax, {what: points}, below=True)
            ax.margins(0.15)
            ax.set_xlabel(f"mean cost of {_people(n)} (less is easier)\nbeside a point: {setting}")
            ax.set_ylabel(f"mean {what}" if what == "model's score" else f"share of {what}")

        return on

    draws = {f"Cost and {what}": draw(points, what) for what, points in drawn.items()}
    return plots.panels(draws, 4.2, 3.5, columns=len(draws))


def _plans_at_every(plans: Mapping[float, Plans], setting: str) -> dict[float, list[Plan]]:
    """Return, for each value, the plans of the people who have one at every value."""
    by_person = {
        value: {plan.person: plan for plan in each if plan.status == "ok"}
        for value, each in sorted(plans.items())
    }
    shared = set.intersection(*map(set, by_person.values())) if by_person else set()
    if not shared:
        raise UserError(
            f"cheaper_or_safer: nobody has a plan at each of {counted(len(plans), 'value')} of "
            f"{setting}, so there is nothing to draw; give plans of the same people"
        )
    return {
        value: [plan for person, plan in found.items() if person in shared]
        for value, found in by_person.items()
    }


def _curve(plans: Mapping[float, list[Plan]], y: Callable[[Plan], float | None]) -> list[Point]:
    def mean(values: Sequence[float | None]) -> float:
        return float(np.mean([np.nan if value is None else value for value in values]))

    return [
        Point(
            mean([plan.cost for plan in each]),
            mean([y(plan) for plan in each]),
            note=f"{value:g}",
        )
        for value, each in plans.items()
    ]


def _people(n: int) -> str:
    return "1 person" if n == 1 else f"{n:,} people"


def _votes(plan: Plan) -> float | None:
    return None if plan.retrained is None else plan.retrained.estimate


def _check_plan(where: str, plan: Plan) -> None:
    if plan.status != "ok":
        raise UserError(
            f"{where}: {plan.person!r} has no plan to draw (status '{plan.status}'); choose a "
            "person whose status is 'ok'"
        )


def _picture(title: str, draw: Callable[[Any], None], height: float) -> Picture:
    return plots.panels({title: draw}, WIDTH, height + TITLE, columns=1)
