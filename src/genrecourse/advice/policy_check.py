"""What a policy means for a table, and what looks wrong about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from genrecourse.advice.summary import RulesSummary, summarise_rules

if TYPE_CHECKING:
    from genrecourse.advice.service import Service
    from genrecourse.rules.policy import Policy


@dataclass(frozen=True)
class PolicyCheck:
    """warnings: what looks wrong but works. refused: what `fit` or a request would refuse.

    >>> check = PolicyCheck(RulesSummary((), ()), warnings=("no feature is mutable",), refused=())
    >>> len(check.warnings), len(check.refused)
    (1, 0)
    """

    summary: RulesSummary
    warnings: tuple[str, ...]
    refused: tuple[str, ...]


def check_policy(
    policy: Policy, table: pd.DataFrame, service: Service | None = None
) -> PolicyCheck:
    """Return how features may change under a policy, its warnings, and what would be refused.

    service: of a model with the same features; then plans are made under this policy, not under the
    service's own, for some rejected rows of the table, to find the rules that leave people without
    a plan.

    >>> from genrecourse.rules.policy import Policy
    >>> policy = Policy.of(features={"age": {"role": "immutable"}})
    >>> table = pd.DataFrame({"income": range(80), "age": [30, 50] * 40})
    >>> check_policy(policy, table).summary.features[1].may_change
    'no'
    """
    method = None if service is None else service.under(policy).method
    summary = summarise_rules(policy.schema(table), policy)
    refused = policy.refused(table, method)
    remarks = policy.lint(table, method)
    warnings = tuple(each for each in remarks if each not in refused)
    return PolicyCheck(summary, warnings, tuple(refused))
