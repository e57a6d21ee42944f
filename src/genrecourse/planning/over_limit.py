"""Why there is no plan within the time or the money that was asked for, and the least there is.

If a person has no plan, the limits are lifted: first the one on time, then the one on money, then
both. If h then accepts a change, the limit is the reason, and the quickest or cheapest change that
was found says how far away a plan is. Among changes of one and of two features it is the least of
all that were tried.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from genrecourse.planning.effort import Effort

if TYPE_CHECKING:
    from genrecourse.planning.guarantee import Checked, PlanChecker
    from genrecourse.rules.book import RuleBook
    from genrecourse.rules.effort import Efforts
    from genrecourse.table.encoding import Array

# which limits are lifted, and the reason if this helps
LIFTED = (
    (("max_months",), "over-months"),
    (("max_money",), "over-money"),
    (("max_months", "max_money"), "over-months"),
)


@dataclass(frozen=True)
class OverLimit:
    """The limit that leaves a person without a plan. nearest: the least without the limit.

    >>> OverLimit("over-months", Effort(26.0, None, 2)).nearest.months
    26.0
    """

    code: str
    nearest: Effort


def over_limit(checker: PlanChecker, lost: np.ndarray, own: Checked) -> dict[int, OverLimit]:
    """Return the limit on time or money that leaves these people without a plan, if one does.

    own: what the method itself offered; its larger changes are compared, too.

    >>> from genrecourse.evaluation.example_tables import example_checker
    >>> checker = example_checker()  # there is no limit
    >>> own = checker.check(np.array([0]), np.array([[0.5]]))
    >>> over_limit(checker, np.array([0]), own)
    {}
    """
    found: dict[int, OverLimit] = {}
    efforts = checker.rules.efforts
    if efforts is None:
        return found
    for fields, code in LIFTED:
        limited = np.all([np.isfinite(checker.rules.limit(name)) for name in fields], axis=0)
        bound = np.broadcast_to(limited, len(checker.X))
        left = np.array([i for i in lost if bound[i] and int(i) not in found], dtype=int)
        if len(left):
            found |= _without(checker, efforts, _lifted(checker.rules, fields), left, own, code)
    return found


def _lifted(rules: RuleBook, fields: tuple[str, ...]) -> RuleBook:
    assert rules.request is not None
    limits = dict(rules.request.limits)
    limits |= {name: np.full_like(limits[name], np.inf) for name in fields}
    return replace(rules, request=replace(rules.request, limits=limits))


def _without(
    checker: PlanChecker,
    efforts: Efforts,
    rules: RuleBook,
    people: np.ndarray,
    own: Checked,
    code: str,
) -> dict[int, OverLimit]:
    """Return the least that each of these people has under these rules, if they have anything."""
    what = efforts.months if code == "over-months" else efforts.money
    tried = checker.trial.search(rules, people, measure=what)
    theirs = np.isin(own.person, people)
    person = np.concatenate([own.person[theirs], np.repeat(people, [len(e.cost) for e in tried])])
    rows: Array = np.concatenate([own.F[theirs], *(each.F_plus for each in tried)])
    order = np.argsort(person, kind="stable")
    checked = checker.check(person[order], rows[order], rules)
    amount = what(checker.F[checked.person], checked.F)
    found = {}
    for i in map(int, people):
        mine = checked.of(i)
        mine = mine[checked.holds[mine]]
        if len(mine):
            best = int(mine[np.argmin(amount[mine])])
            n = int(checked.moved[best].sum())
            least = Effort.of(efforts, checker.F[i], checked.F[best], n) or Effort(None, None, n)
            known = np.isfinite(amount[best])
            found[i] = OverLimit(code, least if known else Effort(None, None, n))
    return found
