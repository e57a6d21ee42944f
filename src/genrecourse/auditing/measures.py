"""What each person was told, as numbers: one a person and metric.

NaN says that the person does not count in a metric: who was accepted has no plan to be measured,
and who has no plan has no cost. So every mean has a denominator that can be said.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.evaluation.metrics import DECIMALS, N_NOISE, with_noise
from genrecourse.methods.base import Method
from genrecourse.planning.plans import Plan, Plans
from genrecourse.table.encoding import Array
from genrecourse.table.noise import NOISE_SCALE
from genrecourse.table.schema import Schema

PEOPLE = 500  # who are helped at once: bounds memory
KNOWN = 0.9  # of the training rows that are asked about: in a table of few values some recur
CHANGE = "change: "  # before a feature's name: the share whose plan changes it

NO_CAUSE = (
    "A difference says that the groups differ in this table, more than the choice of people "
    "explains. It does not say why: the groups differ in other things as well."
)


@dataclass(frozen=True)
class Metric:
    """How a mean over people is spoken of. `more` and `less` go on after "People with ..."."""

    title: str
    counted: str  # over whom the mean is
    about: str
    more: str
    less: str
    is_share: bool = True
    compared: bool = True  # between groups


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
        "the mean size of the change: 1 for a changed category, and for a number the share of its "
        "range that it moves, each times the schema's weight. Who has no plan is not in it.",
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
        "The plan holds, asked again",
        "people with a plan",
        "the share of plans that the model accepts and that break no rule of the schema, when both "
        "are asked again with the values in original units. It should be everybody: this is a "
        "check, and groups are not compared by it.",
        "have plans that hold more often",
        "have plans that hold less often",
        compared=False,
    ),
    "likely": Metric(
        "The outcome is likely favourable",
        "people with a plan",
        "the verifier's estimate, from training rows, of how often a judge of its own would find "
        "the favourable outcome likelier than not; the mean over plans.",
        "have plans that the verifier trusts more",
        "have plans that the verifier trusts less",
    ),
    "robust": Metric(
        "RetrainedModels of the model that accept it",
        "people with a plan",
        "the share of copies of the model, trained on other samples of the training rows, that "
        "accept the plan; the mean over plans.",
        "have plans that more copies of the model accept",
        "have plans that fewer copies of the model accept",
    ),
    "noise": Metric(
        "Accepted if carried out imprecisely",
        "people with a plan",
        f"the share of {N_NOISE} imprecise versions of the plan (every number off by a standard "
        f"deviation of {NOISE_SCALE:g} of its range) that the model accepts; the mean over plans.",
        "have plans that bear being carried out imprecisely better",
        "have plans that bear being carried out imprecisely less well",
    ),
    "training_row": Metric(
        "The plan is a copy of a training row",
        "people with a plan",
        "the share of plans that end at the very values of an accepted person in the training "
        "data, of those whom the model file keeps: it tells that this person exists.",
        "have plans that copy a training row more often",
        "have plans that copy a training row less often",
    ),
}


def metric_of(name: str, schema: Schema) -> Metric:
    """The metric of a name, also of `change: FEATURE`."""
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
    """(n,) numbers by metric, and why a metric of `METRICS` is not among them."""

    values: dict[str, Array] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)  # why people have no plan: how many


def measure(method: Method, X: pd.DataFrame, request: dict[str, Any]) -> Measured:
    """X: the features alone. request: as in `Method.plans`."""
    plans, X_plus = _plans(method, X, request)
    status = np.array([plan.status for plan in plans])
    rejected, told = status != "already-accepted", status == "ok"
    found = Measured()
    found.values["rejected"] = rejected.astype(float)
    found.values["with_plan"] = np.where(rejected, told, np.nan)
    for plan in plans:
        if plan.status == "no-plan":
            found.reasons[plan.reason_code] = found.reasons.get(plan.reason_code, 0) + 1
    shown = [plan for plan in plans if plan.status == "ok"]
    for name, values in _of_plans(method, X[told], X_plus, shown, found.absent).items():
        found.values[name] = np.full(len(X), np.nan)
        found.values[name][told] = values
    return found


def learned_from(method: Method, X: pd.DataFrame) -> bool:
    """Whether X holds nearly all of the training rows that the model file keeps as a sample."""
    encoder, probe = method.problem_.encoder, method.problem_.probe
    known, some = set(_keys(encoder.encode(X))), _keys(encoder.encode(probe))
    return sum(key in known for key in some) >= KNOWN * len(some)


def _plans(
    method: Method, X: pd.DataFrame, request: dict[str, Any]
) -> tuple[list[Plan], pd.DataFrame]:
    """Each person's plan, and the whole x_plus of those who are told one, with what follows.

    A plan does not depend on who stands beside, so people can come in parts; rules by label
    cannot, as they must find every label. Of a part only the rows told are kept, not all that was
    checked for it.
    """
    size = len(X) if request.get("rules") is not None else PEOPLE
    plans: list[Plan] = []
    rows = [X.iloc[:0]]
    for i in range(0, len(X), size):
        part = [replace(p, alternatives=()) for p in method.plans(X.iloc[i : i + size], **request)]
        if any(plan.status == "ok" for plan in part):
            rows.append(Plans(tuple(part)).x_plus())
        plans += [replace(plan, row=None) for plan in part]
    return plans, pd.concat(rows[1:] or rows)


def _of_plans(
    method: Method,
    X: pd.DataFrame,
    X_plus: pd.DataFrame,
    plans: list[Plan],
    absent: dict[str, str],
) -> dict[str, Array]:
    """The metrics of plans that are told; what cannot be measured goes to `absent`."""
    found = {
        "cost": np.array([plan.cost for plan in plans], dtype=float),
        "changes": np.array([len(plan.changes) for plan in plans], dtype=float),
    }
    if plans:
        found |= _asked_again(method, X, X_plus.set_axis(X.index), absent)
    changed = [{change.feature.name for change in plan.changes} for plan in plans]
    for feature in method.schema_:
        if feature.role == "mutable":
            found[CHANGE + feature.name] = np.array([float(feature.name in c) for c in changed])
    return found


def _asked_again(
    method: Method, X: pd.DataFrame, X_plus: pd.DataFrame, absent: dict[str, str]
) -> dict[str, Array]:
    """h, the rules, noise, and what the method itself keeps, on plans carried out."""
    h, encoder = method.classifier_, method.problem_.encoder
    Z, Z_plus = encoder.encode(X), encoder.encode(X_plus)
    # what is protected decides neither the noise nor whose copy a plan is
    blank = method.problem_.protected.hide_encoded
    noisy = h.score_encoded(with_noise(encoder, blank(Z), Z_plus), encoder, X.iloc[:1])
    found = {
        "valid": (method.assess(X, X_plus)["status"] == "ok").to_numpy(dtype=float),
        "noise": (noisy > h.cutoff).reshape(-1, N_NOISE).mean(axis=1),
    }
    verifier = method.verifier_
    if verifier is not None:
        found["likely"] = verifier.valid(Z_plus, h.confidence(h.score(X_plus)))
        found["robust"] = verifier.votes(Z_plus).mean(axis=0)
    else:
        lacks = f"this {type(method).__name__} has no verifier"
        absent |= {"likely": lacks, "robust": lacks}
    kept = method.kept_rows()
    if kept is None:
        absent["training_row"] = f"this {type(method).__name__} keeps no training rows"
    else:
        known = set(_keys(kept))
        found["training_row"] = np.array([float(key in known) for key in _keys(blank(Z_plus))])
    return found


def _keys(Z: Array) -> list[bytes]:
    rounded = Z.round(DECIMALS) + 0.0  # -0.0 and 0.0 are one value
    return [row.tobytes() for row in rounded]
