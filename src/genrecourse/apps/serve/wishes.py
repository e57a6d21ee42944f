"""Wishes: what a person on the page asks of plans, read from the form.

Locks, ranges and the largest number of changes are rules of the request: no plan breaks them. The
order and the plans to compare only concern how plans are shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from genrecourse.advice.request import PlanRequest
from genrecourse.apps.serve.form import Filled, FormField, Mistake, PersonForm, Sent
from genrecourse.planning.sturdy import MIN_ROBUST
from genrecourse.rules.kinds import Rules

if TYPE_CHECKING:
    from genrecourse.advice.service import Service
    from genrecourse.planning.plans import BlockingRule

PLANS = 4
MOST_CHANGES = 6  # the largest limit that the page offers
LIMITS = ("lock", "range")  # that a person can set on one feature
# The slider between "cheaper" and "safer": the share of retrained models that must accept a plan.
BARS = (0.25, 0.5, MIN_ROBUST, 0.875)
USUAL = BARS.index(MIN_ROBUST)


@dataclass(frozen=True)
class Offered:
    """Which wishes a model and its policy let the page offer.

    >>> Offered(has_safety=True).has_safety
    True
    """

    has_safety: bool = False  # retrained models vote on plans
    has_time: bool = False  # the policy says how long changes take
    has_money: bool = False  # the policy says what changes cost
    currency: str = ""

    @classmethod
    def of(cls, service: Service) -> Offered:
        """Return what this service can be asked for."""
        method = service.method
        has_votes = method.verifier_ is not None or method.planning_.copies is not None
        if service.policy is None:
            return cls(has_votes)
        takes = service.policy.stated.effort
        return cls(has_votes, takes.states("months"), takes.states("price"), takes.currency)

    @property
    def orders(self) -> list[tuple[str, str]]:
        """The orders that plans can be shown in, and their words."""
        found = [("", "suggested first")]
        found += [("time", "shortest time first")] if self.has_time else []
        found += [("money", "least money first")] if self.has_money else []
        return [*found, ("changes", "fewest changes first"), ("cost", "lowest cost first")]


@dataclass
class Wishes:
    """The wishes in a form, as a request for plans.

    own: the limits that the person set, in words, by the key that takes each back.
    """

    request: PlanRequest
    compare: tuple[int, ...] = ()  # numbers of plans, from 1
    own: dict[str, str] = field(default_factory=dict)
    names: dict[tuple[str, str], str] = field(default_factory=dict)  # (kind, feature): the key

    @classmethod
    def read(cls, form: PersonForm, offered: Offered, filled: Filled) -> Wishes:
        """Return the wishes of a form; what is wrong is noted in `filled`."""
        own: dict[str, str] = {}
        rules: dict[str, Any] = {"lock": [], "ranges": {}}
        for each in form.changeable:
            _read_limits(each, filled, rules, own)
        most = filled.text("most")
        if re.fullmatch("[0-9]{1,2}", most):
            rules["max_changes"] = int(most)
            own["most"] = f"at most {most} {'change' if most == '1' else 'changes'}"
        asked = _read_options(offered, filled, own)
        stated = {name: value for name, value in rules.items() if value not in ([], {})}
        chosen = {int(k) for k in filled.sent.get("compare", ()) if re.fullmatch("[1-9]", k)}
        names = {
            (kind, each.feature.name): f"{kind}{each.key[1:]}"
            for each in form.changeable
            for kind in LIMITS
        }
        return cls(PlanRequest(**asked, rules=stated or None), tuple(sorted(chosen)), own, names)

    def key_of(self, rule: BlockingRule) -> str:
        """Return the key of the own limit that a blocking rule is; empty: it is somebody else's."""
        rules = Rules() if self.request.rules is None else self.request.rules.default
        name = "" if rule.feature is None else rule.feature.name
        if rule.kind in LIMITS:
            is_own = name in (rules.lock if rule.kind == "lock" else rules.ranges)
            return self.names[rule.kind, name] if is_own else ""
        theirs = {
            "max_changes": ("most", rules.max_changes),
            "max_months": ("months", self.request.most_months),
            "max_money": ("money", self.request.most_money),
        }
        key, value = theirs.get(rule.kind, ("", None))
        return key if value is not None and rule.value == value else ""


def _read_options(offered: Offered, filled: Filled, own: dict[str, str]) -> dict[str, Any]:
    """Return what is asked for besides rules; limits of time and money are added to `own`."""
    asked: dict[str, Any] = {"n": PLANS}
    safety, order = filled.text("safety"), filled.text("order")
    if offered.has_safety and re.fullmatch("[0-9]{1,3}", safety):
        asked["min_robust"] = BARS[min(int(safety), len(BARS) - 1)]
    if order in [name for name, _ in offered.orders if name]:
        asked["sort"] = order
    for key, has, unit in (
        ("months", offered.has_time, "months"),
        ("money", offered.has_money, offered.currency),
    ):
        value = _limit(filled, key) if has else None
        if value is not None:
            asked[f"most_{key}"] = value
            unit = "month" if (unit, value) == ("months", 1) else unit
            own[key] = f"at most {value:,.10g} {unit}".strip()
    return asked


def _read_limits(
    each: FormField, filled: Filled, rules: dict[str, Any], own: dict[str, str]
) -> None:
    """Add the lock and the range of one feature to the rules."""
    j, name = each.key[1:], each.feature.name
    if filled.has("lock", j):
        rules["lock"].append(name)
        own[f"lock{j}"] = f"{each.label} stays as it is"
    if each.is_choice:
        return
    low = filled.number(f"low{j}", f"{each.label}, from")
    high = filled.number(f"high{j}", f"{each.label}, to")
    if low is not None and high is not None and low > high:
        text = f"“From” is {low:g} and “to” is {high:g}; write the smaller one first."
        filled.mistakes.append(Mistake(f"low{j}", text, each.label))
    elif low is not None or high is not None:
        rules["ranges"][name] = (low, high)
        own[f"range{j}"] = f"{each.label} within your limits"


def without(sent: Sent, key: str) -> Sent:
    """Return a form without one of the person's own limits.

    >>> without({"low2": ["1"], "high2": ["3"], "lock": ["2", "5"]}, "range2")
    {'lock': ['2', '5']}
    >>> without({"lock": ["2", "5"]}, "lock2")
    {'lock': ['5']}
    """
    if key.startswith("lock"):
        return {**sent, "lock": [place for place in sent.get("lock", ()) if place != key[4:]]}
    gone = {f"low{key[5:]}", f"high{key[5:]}"} if key.startswith("range") else {key}
    return {name: values for name, values in sent.items() if name not in gone}


def _limit(filled: Filled, key: str) -> float | None:
    label = {"months": "time", "money": "money"}[key]
    value = filled.number(key, label)
    if value is not None and value < 0:
        text = f"“{filled.text(key)}” is below 0; give 0 or more."
        filled.mistakes.append(Mistake(key, text, label))
        return None
    return value
