"""Measure the plans of people: one number per person and metric.

NaN means that the person does not count in the metric: an accepted person needs no plan, and a
person without a plan has no cost. So the n of every mean is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.planning.plans import Plan, Plans
from genrecourse.table.noise import NOISE_SCALE
from genrecourse.trust.imprecise import DECIMALS, N_NOISE, with_noise

if TYPE_CHECKING:
    from genrecourse.rules.problem import Problem
    from genrecourse.table.encoding import Array
    from genrecourse.table.schema import Schema
    from genrecourse.trust.verifier import Verifier

PEOPLE = 500  # people per call of `plans`: bounds memory
KNOWN = 0.9  # share of known training rows above which a table counts as the training table
CHANGE = "change: "  # prefix of the metrics "share of plans that change this feature"

NO_CAUSE = (
    "A difference means that the groups differ in this table by more than chance explains. It does "
    "not show why: the groups differ in other ways as well."
)


@dataclass(frozen=True)
class Metric:
    """The words for a mean over people. `more` and `less` complete "People with ...".

    >>> METRICS["cost"].more
    'have plans that cost more'
    """

    title: str
    counted: str  # the people over whom the mean is taken
    about: str
    more: str
    less: str
    is_share: bool = True
    compared: bool = True  # whether groups are compared by it


METRICS = {
    "rejected": Metric(
        "Turned down by the model",
        "people",
        "the share of people whom the model turns down.",
        "are turned down by the model more often",
        "are turned down by the model less often",
    ),
    "with_plan": Metric(
        "Have a plan, if turned down",
        "people turned down",
        "the share of the people turned down who get a plan that holds.",
        "have a plan more often, if turned down",
        "have a plan less often, if turned down",
    ),
    "cost": Metric(
        "Cost of the plan",
        "people with a plan",
        "the mean size of the change: a changed category counts 1, and a number counts the share "
        "of its range that it moves, each times the weight in the schema. People without a plan "
        "are not included.",
        "have plans that cost more",
        "have plans that cost less",
        is_share=False,
    ),
    "changes": Metric(
        "Changes in the plan",
        "people with a plan",
        "the mean number of features that a plan changes.",
        "have plans with more changes",
        "have plans with fewer changes",
        is_share=False,
    ),
    "valid": Metric(
        "The plan holds in a second check",
        "people with a plan",
        "the share of plans that the model accepts and that break no rule of the schema, checked "
        "again with the values in original units. It should be 100%. Groups are not compared by "
        "it.",
        "have plans that hold more often",
        "have plans that hold less often",
        compared=False,
    ),
    "likely": Metric(
        "The outcome is likely favourable",
        "people with a plan",
        "the mean, over plans, of the verifier's estimate that the favourable outcome is likelier "
        "than not. The verifier learned from the training rows.",
        "have plans that the verifier trusts more",
        "have plans that the verifier trusts less",
    ),
    "robust": Metric(
        "Retrained models that accept it",
        "people with a plan",
        "the mean, over plans, of the share of retrained models that accept the plan. They were "
        "trained on other samples of the training rows.",
        "have plans that more retrained models accept",
        "have plans that fewer retrained models accept",
    ),
    "noise": Metric(
        "Accepted if carried out imprecisely",
        "people with a plan",
        f"the mean, over plans, of the share of {N_NOISE} imprecise versions that the model "
        "accepts. In an imprecise version every number has noise with a standard deviation of "
        f"{NOISE_SCALE:g} of its range.",
        "have plans that the model accepts more often if they are carried out imprecisely",
        "have plans that the model accepts less often if they are carried out imprecisely",
    ),
    "training_row": Metric(
        "The plan is a copy of a training row",
        "people with a plan",
        "the share of plans with exactly the values of an accepted person whose training row the "
        "model file contains. Such a plan reveals that this person exists.",
        "have plans that copy a training row more often",
        "have plans that copy a training row less often",
    ),
}


def metric_of(name: str, schema: Schema) -> Metric:
    """Return the metric with this name, also for `change: FEATURE`.

    >>> from genrecourse.table.schema import Schema
    >>> schema = Schema.infer(pd.DataFrame({"income": [1.0, 2.0]}))
    >>> metric_of("change: income", schema).title
    'Asked to change: income'
    """
    if not name.startswith(CHANGE):
        return METRICS[name]
    label = schema[name.removeprefix(CHANGE)].label
    return Metric(
        f"Asked to change: {label}",
        "people with a plan",
        f"the share of plans that change {label}.",
        f"have plans that change {label} more often",
        f"have plans that change {label} less often",
        compared=False,
    )


@dataclass
class Measured:
    """The (n,) values of each metric, and why some metrics are absent.

    >>> Measured({"rejected": np.array([1.0, 0.0])}, absent={"robust": "no verifier"}).reasons
    {}
    """

    values: dict[str, Array] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)  # metric -> why it was not measured
    reasons: dict[str, int] = field(default_factory=dict)  # reason for "no-plan" -> people


@dataclass(frozen=True)
class Measuring:
    """What an audit needs of a fitted method to measure its plans.

    >>> from genrecourse.table.schema import Schema
    >>> from genrecourse.methods.nearest import NearestNeighbour
    >>> X = pd.DataFrame({"income": np.arange(80.0)})
    >>> nnr = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, Schema.infer(X)).fit(X)
    >>> measuring = Measuring("nnr", nnr.problem_, nnr.plans, nnr.assess)
    >>> found = measuring.measure(X, {})
    >>> float(found.values["rejected"].mean()), float(np.nanmean(found.values["with_plan"]))
    (0.5125, 1.0)
    >>> measuring.learned_from(X), measuring.learned_from(X.head(9))
    (True, False)
    """

    method: str  # its name
    problem: Problem
    plans: Callable[..., Plans]  # as `Method.plans`
    assess: Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]  # as `Method.assess`
    verifier: Verifier | None = None
    kept: Array | None = None  # (n, D) training rows that the model file contains

    def measure(self, X: pd.DataFrame, request: Mapping[str, Any]) -> Measured:
        """Make plans for the people X and measure them.

        X: only the features of the schema. request: options of `Method.plans`.
        """
        plans, X_plus = self._make_plans(X, request)
        status = np.array([plan.status for plan in plans])
        rejected, helped = status != "already-accepted", status == "ok"
        found = Measured()
        found.values["rejected"] = rejected.astype(float)
        found.values["with_plan"] = np.where(rejected, helped, np.nan)
        for plan in plans:
            if plan.status == "no-plan":
                found.reasons[plan.reason_code] = found.reasons.get(plan.reason_code, 0) + 1
        shown = [plan for plan in plans if plan.status == "ok"]
        for name, values in self._of_plans(X[helped], X_plus, shown, found.absent).items():
            found.values[name] = np.full(len(X), np.nan)
            found.values[name][helped] = values
        return found

    def learned_from(self, X: pd.DataFrame) -> bool:
        """Return whether X contains nearly all rows of the problem's sample of training rows."""
        encoder = self.problem.encoder
        known, some = set(_keys(encoder.encode(X))), _keys(encoder.encode(self.problem.probe))
        return sum(key in known for key in some) >= KNOWN * len(some)

    def _make_plans(
        self, X: pd.DataFrame, request: Mapping[str, Any]
    ) -> tuple[list[Plan], pd.DataFrame]:
        """Return the plan of each person, and the complete x_plus of the people with a plan.

        The plan of a person does not depend on other people, so the table is processed in parts.
        With rules it is not, since rules for single people need all labels. Only the rows that are
        shown are kept, to save memory.
        """
        size = len(X) if request.get("rules") is not None else PEOPLE
        plans: list[Plan] = []
        rows = [X.iloc[:0]]
        for i in range(0, len(X), size):
            made = self.plans(X.iloc[i : i + size], **request)
            part = [replace(plan, alternatives=()) for plan in made]
            if any(plan.status == "ok" for plan in part):
                rows.append(Plans(tuple(part)).x_plus())
            plans += [replace(plan, row=None) for plan in part]
        return plans, pd.concat(rows[1:] or rows)

    def _of_plans(
        self, X: pd.DataFrame, X_plus: pd.DataFrame, plans: list[Plan], absent: dict[str, str]
    ) -> dict[str, Array]:
        """Return the metrics of plans; metrics that cannot be measured go to `absent`."""
        found = {
            "cost": np.array([plan.cost for plan in plans], dtype=float),
            "changes": np.array([len(plan.changes) for plan in plans], dtype=float),
        }
        if plans:
            found |= self._checked_again(X, X_plus.set_axis(X.index), absent)
        if plans and self.verifier is not None:
            votes = [plan.retrained.estimate if plan.retrained else np.nan for plan in plans]
            found["robust"] = np.array(votes)
        changed = [{change.feature.name for change in plan.changes} for plan in plans]
        for feature in self.problem.schema:
            if feature.role == "mutable":
                found[CHANGE + feature.name] = np.array([float(feature.name in c) for c in changed])
        return found

    def _checked_again(
        self, X: pd.DataFrame, X_plus: pd.DataFrame, absent: dict[str, str]
    ) -> dict[str, Array]:
        """Return validity, noise, and what the verifier and the stored rows show of the plans."""
        h, encoder = self.problem.classifier, self.problem.encoder
        Z, Z_plus = encoder.encode(X), encoder.encode(X_plus)
        # protected features select neither the noise nor the training row that a plan copies
        blank = self.problem.protected.hide_encoded
        noisy = h.score_encoded(with_noise(encoder, blank(Z), Z_plus), encoder, X.iloc[:1])
        found = {
            "valid": (self.assess(X, X_plus)["status"] == "ok").to_numpy(dtype=float),
            "noise": (noisy > h.cutoff).reshape(-1, N_NOISE).mean(axis=1),
        }
        if self.verifier is not None:
            found["likely"] = self.verifier.valid(Z_plus, h.confidence(h.score(X_plus)))
        else:
            lacks = f"this {self.method} has no verifier"
            absent |= {"likely": lacks, "robust": lacks}
        if self.kept is None:
            absent["training_row"] = f"this {self.method} stores no training rows"
        else:
            known = set(_keys(self.kept))
            found["training_row"] = np.array([float(key in known) for key in _keys(blank(Z_plus))])
        return found


def _keys(Z: Array) -> list[bytes]:
    rounded = Z.round(DECIMALS) + 0.0  # turns -0.0 into 0.0
    return [row.tobytes() for row in rounded]
