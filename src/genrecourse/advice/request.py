"""PlanRequest: what one request for plans may ask, the same for every front end."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from genrecourse.errors import UserError, did_you_mean
from genrecourse.planning.choice import MOST_CHANGES
from genrecourse.planning.effort import check_sort
from genrecourse.planning.promise import DELTA, check_promise
from genrecourse.planning.sturdy import MIN_ROBUST
from genrecourse.rules.policy import promise_in_force, rules_in_force
from genrecourse.rules.stated import read_rules

if TYPE_CHECKING:
    from genrecourse.planning.wording import Wording
    from genrecourse.rules.policy import Policy


@dataclass(frozen=True)
class PlanRequest:
    """The options of one request for plans.

    n: how many plans each person gets; they differ in what they change.
    fewest_changes: undo changes that are not needed.
    rules: what this request adds to the rules of the schema and of the policy, for everybody or by
        index label; anything that `read_rules` reads.
    promise: show only plans that past outcomes back for this share of people; None: no promise,
        unless the policy states one. The larger of the request's and the policy's promise counts.
    delta: how likely the promise may be wrong; None: 0.1. Needs a promise.
    language: of the words: a language that is shipped, or a file.
    safety: from 0, as cheap as possible, to 1, as safe as possible; None: as fitted.
    min_robust: the share of the retrained models, and of the tries with noise, that must accept a
        plan; a plan below it is shown as fragile, if there is no better one.
    most_changes: plans with more changes are shown only if no sturdy plan has fewer; None: no
        limit.
    errors: "status": a row that cannot be read gets the status `unreadable` and the reason;
        "raise": it is a UserError.
    most_months, most_money: the most time and money that a plan may take, by what the policy says
        about changes (docs/policy.md); None: no limit.
    sort: the order of each person's plans: "time", "money", "changes" or "cost"; None: the method's
        choice first.
    options: further options of the method, by name, such as `lam` or `n_draws` of GenRe.

    >>> PlanRequest(n=2, rules={"lock": ["age"]}).keywords()["n"]
    2
    """

    n: int = 1
    fewest_changes: bool = False
    rules: Any = None
    promise: float | None = None
    delta: float | None = None
    language: str | os.PathLike[str] | Wording = "en"
    safety: float | None = None
    min_robust: float = MIN_ROBUST
    most_changes: int | None = MOST_CHANGES
    errors: str = "status"
    most_months: float | None = None
    most_money: float | None = None
    sort: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.rules is not None:
            object.__setattr__(self, "rules", read_rules(self.rules))
        twice = [name for name in self.options if name in _names()]
        if twice:
            raise UserError(f"the option {twice[0]!r} is a field of the request; set it there")
        if self.sort is not None:
            check_sort("plans", self.sort)
        if self.promise is not None:
            check_promise("plans", self.promise, DELTA if self.delta is None else self.delta)

    @classmethod
    def read(cls, data: Any) -> PlanRequest:
        """Return the request in plain data, such as the body of a web request."""
        if not isinstance(data, Mapping):
            raise UserError(f"a request is {type(data).__name__}; give a mapping of {_names()}")
        unknown = [name for name in data if name not in _names()]
        if unknown:
            close = did_you_mean(unknown[0], _names())
            raise UserError(f"a request has no option {unknown[0]!r}{close}; it has {_names()}")
        return cls(**data)

    def only(self, index: pd.Index) -> PlanRequest:
        """Return the same request without the rules of people who are not in the index."""
        return self if self.rules is None else replace(self, rules=self.rules.only(index))

    def keywords(self, policy: Policy | None = None) -> dict[str, Any]:
        """Return the keyword arguments of `Method.plans` for this request under a policy.

        The policy's rules come first and the request's on top: no request gets rid of a rule.
        """
        asked: dict[str, Any] = {
            "n": self.n,
            "fewest_changes": self.fewest_changes,
            "language": self.language,
            "min_robust": self.min_robust,
            "most_changes": self.most_changes,
            "errors": self.errors,
            **self.options,
        }
        stated: dict[str, Any] = {
            "safety": self.safety,
            "most_months": self.most_months,
            "most_money": self.most_money,
            "sort": self.sort,
            "rules": rules_in_force(policy, self.rules),
            "promise": promise_in_force(policy, self.promise),
            "delta": self.delta,
        }
        if self.delta is not None and stated["promise"] is None:
            raise UserError(f"delta is {self.delta:g}, but no promise is asked for; give one too")
        return asked | {name: value for name, value in stated.items() if value is not None}


def _names() -> list[str]:
    return [each.name for each in fields(PlanRequest)]
