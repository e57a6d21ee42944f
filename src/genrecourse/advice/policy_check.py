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
    """warnings: what looks wrong but works. refused: what `fit` or a request would refuse."""

    summary: RulesSummary
    warnings: tuple[str, ...]
    refused: tuple[str, ...]


def check_policy(
    policy: Policy, table: pd.DataFrame, service: Service | None = None
) -> PolicyCheck:
    """Returns how features may change under a policy, its warnings, and what would be refused.

    service: of a model with the same features; then plans are made under this policy, not under the
    service's own, for some rejected rows of the table, to find the rules that leave people without
    a plan.
    """
    method = None if service is None else service.under(policy).method
    summary = summarise_rules(policy.schema(table), policy)
    refused = policy.refused(table, method)
    remarks = policy.lint(table, method)
    warnings = tuple(each for each in remarks if each not in refused)
    return PolicyCheck(summary, warnings, tuple(refused))
