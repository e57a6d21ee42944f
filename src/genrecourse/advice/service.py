"""Service: a fitted method and its policy, with every verb that a front end needs.

    service = Service.open("model")
    people = service.read_people("applicants.csv")
    plans = service.plans(people, PlanRequest(n=3))
    service.plan_table(plans, people)

The policy that a model was saved with is in force for every call.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from genrecourse.advice.plan_table import plan_table
from genrecourse.advice.reasons import Reasons, reasons
from genrecourse.advice.recheck import check_same_columns, read_plans, recheck
from genrecourse.advice.request import PlanRequest
from genrecourse.advice.rule_files import check_people
from genrecourse.advice.summary import ModelSummary, summarise_rules, summarise_training
from genrecourse.auditing import Audit, audit
from genrecourse.errors import UserError
from genrecourse.methods import load
from genrecourse.planning.plans import Plan, Plans
from genrecourse.rules.policy import Policy, read_policy
from genrecourse.table.schema import Schema, check_table
from genrecourse.table.table_files import read_table
from genrecourse.table.text_files import path_of

if TYPE_CHECKING:
    from genrecourse.methods.base import Method
    from genrecourse.planning.letter_form import Letter

AS_FITTED = PlanRequest()


@dataclass(frozen=True)
class Service:
    """A fitted method under its policy. Every verb takes tables and requests, and prints nothing.

    method: fitted. Its `policy_` is in force; `under` gives a service under another policy.

    >>> from genrecourse import NearestNeighbour
    >>> X = pd.DataFrame({"income": range(80)})
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, Schema.infer(X)).fit(X)
    >>> service = Service(method)
    >>> service.schema.names, service.plans(X.head(1))[0].status
    (['income'], 'ok')
    """

    method: Method

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        classifier: Any = None,
        policy: Policy | str | os.PathLike[str] | None = None,
    ) -> Service:
        """Return the service of a model folder, under the policy that the folder keeps.

        classifier: the model that the method was fitted around, if it is not the library's own.
        policy: another policy, or its file, to use instead; it must agree with what was fitted.
        """
        return cls(load(folder, classifier, policy))

    def under(self, policy: Policy | str | os.PathLike[str]) -> Service:
        """Return this service under another policy; this one stays under its own.

        Rules of requests and the promise may differ from those of the policy that the model was
        fitted under. A policy with other features is refused, because it needs another fit.
        """
        return Service(read_policy(policy).applied_to(self.method))

    @property
    def policy(self) -> Policy | None:
        """The policy in force; None: there is none."""
        return self.method.policy_

    @property
    def schema(self) -> Schema:
        return self.method.schema_

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the method and its policy to a folder, for `Service.open`."""
        self.method.save(folder, self.policy)

    def summary(self) -> ModelSummary:
        """Return what the model is, how it was learned, and how each feature may change."""
        method = self.method
        facts = {"method": type(method).__name__, "model": repr(method.classifier_)}
        facts |= {name: f"{getattr(method, f'{name}_'):g}" for name in method.chosen}
        training = method.fit_report_.get("training")
        if training:
            facts["learned"] = summarise_training(training)
        if self.policy is not None:
            facts["policy"] = self.policy.name
        return ModelSummary(facts, summarise_rules(self.schema, self.policy))

    # ---- people -------------------------------------------------------------------------------

    def read_people(
        self, source: pd.DataFrame | str | os.PathLike[str], *, all_columns: bool = False
    ) -> pd.DataFrame:
        """Return people from a table or its file; rows of a file are numbered from 0.

        Columns that the model does not know, such as an id, are left out unless `all_columns`.
        There may be no rows.
        """
        if isinstance(source, pd.DataFrame):
            X, where = source, "the table"
        else:
            path, where = path_of(source, "the table"), str(source)
            X = read_table(path, self.schema, may_be_empty=True).reset_index(drop=True)
        check_table(X, may_be_empty=True)
        self.schema.check_columns(X, where)
        return X if all_columns else X[self.schema.columns]

    def plans(self, X: pd.DataFrame, request: PlanRequest = AS_FITTED) -> Plans:
        """Return the plans of each row of X under the policy and the rules of the request."""
        if request.rules is not None:
            check_people(request.rules, X.index)
        return self.method.plans(X, **request.keywords(self.policy))

    def explain(self, X: pd.DataFrame, row: int, request: PlanRequest = AS_FITTED) -> Plan:
        """Return the plan of one row of X, counted from 0; further ones are its alternatives."""
        if len(X) == 0:
            raise UserError("the table has no rows, so there is nobody to explain")
        _check_row(X, row)
        if request.rules is not None:
            check_people(request.rules, X.index)
        person = X.iloc[[row]]
        return self.plans(person, request.only(person.index))[0]

    def reasons(self, X: pd.DataFrame, row: int, request: PlanRequest = AS_FITTED) -> Reasons:
        """Return what mattered most for the score of one row of X, counted from 0.

        Reasons are no advice, and no part of a plan. Of the request, the rules count, which say
        what is locked, and the language. `advice.reasons.reasons` is for several people.
        """
        _check_row(X, row)
        if request.rules is not None:
            check_people(request.rules, X.index)
        person = X.iloc[[row]]
        rules = request.only(person.index).rules
        return reasons(self.method, person, rules=rules, language=request.language)[0]

    def letter(
        self,
        X: pd.DataFrame,
        row: int,
        request: PlanRequest = AS_FITTED,
        *,
        template: str | os.PathLike[str] = "",
        **details: Any,
    ) -> Letter:
        """Return a letter to the person in one row of X, counted from 0.

        template, details: as in `Plan.to_letter`; what the policy states about letters is used
        where no detail is given.
        """
        stated = {} if self.policy is None else self.policy.letter
        given = {name: value for name, value in details.items() if value is not None}
        return self.explain(X, row, request).to_letter(template, **stated | given)

    def plan_table(self, plans: Plans, X: pd.DataFrame) -> pd.DataFrame:
        """Return one line for each plan, and one for each person without a plan."""
        return plan_table(plans, X, self.schema)

    def report(
        self, X: pd.DataFrame, request: PlanRequest = AS_FITTED, plans: Plans | None = None
    ) -> str:
        """Return a page (HTML) about the rejected people of X and their plans.

        plans: those that `plans(X, request)` gave, if they have been made already.
        """
        from genrecourse.reports.plan_report import report_html  # brings matplotlib: slow to import

        made = self.plans(X, request) if plans is None else plans
        return report_html(self.method, X, plans=made, **request.keywords(self.policy))

    # ---- about many people --------------------------------------------------------------------

    def audit(
        self,
        X: pd.DataFrame,
        groups: Sequence[str],
        request: PlanRequest = AS_FITTED,
        **settings: Any,
    ) -> Audit:
        """Return recourse by group, from plans under the policy and the request.

        X: people of all outcomes. groups: columns of X, also such that the model does not know.
        settings: of `audit.audit`: level, least, n_boot, seed.
        """
        asked = request.keywords(self.policy)
        asked.pop("language")  # an audit shows numbers, and no plan in words
        return audit(self.method, X, groups, **settings, **asked)

    def recheck(self, plans: Plans | str | os.PathLike[str]) -> pd.DataFrame:
        """Return which plans, or plans of a .json file, this service's model accepts.

        See `recheck.recheck` for the columns.
        """
        if not isinstance(plans, Plans):
            plans = read_plans(plans, like=self.method.problem_.like)
        check_same_columns(plans, self.schema)
        return recheck(plans, self.method.classifier_)


def _check_row(X: pd.DataFrame, row: int) -> None:
    if not 0 <= row < len(X):
        raise UserError(f"the table has the rows 0 to {len(X) - 1}; there is no row {row}")
