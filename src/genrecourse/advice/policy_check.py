"""What a policy means for a table, and what looks wrong about it."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from genrecourse.advice.summary import RulesSummary, summarise_rules
from genrecourse.rules.policy import FittedMethod, Policy


@dataclass(frozen=True)
class PolicyCheck:
    """warnings: what looks wrong but works. refused: what `fit` or a request would refuse."""

    summary: RulesSummary
    warnings: tuple[str, ...]
    refused: tuple[str, ...]


def check_policy(
    policy: Policy, table: pd.DataFrame, method: FittedMethod | None = None
) -> PolicyCheck:
    """Returns how features may change under a policy, its warnings, and what would be refused.

    method: fitted under this policy; then plans are made for some rejected rows of the table, to
    find the rules that leave people without a plan.
    """
    summary = summarise_rules(policy.schema(table), policy)
    refused = policy.refused(table, method)
    remarks = policy.lint(table, method)
    warnings = tuple(each for each in remarks if each not in refused)
    return PolicyCheck(summary, warnings, tuple(refused))
