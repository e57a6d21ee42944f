"""How a fitted method comes to plans: what it offers, what can be promised, how long it will hold.

`Method.plans` and `Method.promise` are the verbs; `guarantee` checks what is offered here, and
chooses.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.constraints import RuleBook, revert
from genrecourse.encoding import Array, unchanged
from genrecourse.endurance import imprecise, retrained
from genrecourse.errors import UserError
from genrecourse.genre.refine import fewest
from genrecourse.guarantee import Gate, Offers
from genrecourse.methods.request import parted
from genrecourse.noise import KeyedNoise
from genrecourse.plans import Plan, Plans
from genrecourse.promise import Level, Promise
from genrecourse.relaxations import Relaxed, relaxed_request, relaxed_schema
from genrecourse.requests import RequestRules

if TYPE_CHECKING:  # it is built on this module
    from genrecourse.methods.base import Method

FEWEST = 3  # plans whose changes are undone where the fewest are asked for, at least
CHANGE = 0.1  # of Score that a change less is worth where the fewest are asked for
AS_FITTED = repr((False, []))  # the key of a promise about plans without any option


# ---- who is asked, and what the method has for them ------------------------------------------


def make_gate(method: Method, X: pd.DataFrame, constraints: Any) -> Gate:
    rules, relaxed = _rules_of(method, constraints, X)
    return Gate(
        X,
        menu=method.menu_,
        h=method.classifier_,
        encoder=method.encoder_,
        cost=method.cost_,
        rules=rules,
        relaxed=relaxed,
    )


def _rules_of(
    method: Method, constraints: Any, X: pd.DataFrame
) -> tuple[RuleBook, Callable[[], list[Relaxed]]]:
    """The rules in force, and what they are without each single one."""
    rules = method._compiled(constraints, X)
    if rules is None:
        return method.rules_, lambda: relaxed_schema(method.rules_, method.encoder_)
    return rules, lambda: relaxed_request(rules)


class Planner:
    """One request for plans: what a method has for the people whom h rejects, and how it weighs it.

    request: options of the request, as in `Method.recourse`; its rules are the gate's.
    """

    def __init__(
        self, method: Method, gate: Gate, request: dict[str, Any], *, fewest_changes: bool
    ):
        self.method, self.gate, self.request = method, gate, request
        self.fewest_changes = fewest_changes
        self.Z = method.encoder_.from_features(gate.F)
        self.safety = method._safety_asked(request)

    def offers(self, n: int) -> Offers:
        """What is offered where n plans a person are asked for."""
        found = self._found(max(n, FEWEST) if self.fewest_changes else n)
        if self.fewest_changes:
            again = np.repeat(self.gate.rejected, found.shape[1])
            rows = self._with_fewest(again, found.reshape(-1, found.shape[2]))
            found = rows.reshape(found.shape)
        return Offers(
            found,
            self._worth,
            reason=lambda person: self.method._reason(self.Z[person]),
            log_prob=self._likelihood(),
            draws=self.method._n_tried(self.request),
            keep_first=not self.fewest_changes,
        )

    def _found(self, n: int) -> Array:
        """(N, k, d) what the method itself has for each rejected person.

        A method that knows nothing of a request's rules has what they forbid put back as it was.
        """
        method, gate = self.method, self.gate
        rules = gate.rules if isinstance(gate.rules, RequestRules) else None
        is_told = "constraints" in inspect.signature(method._recourse).parameters
        parts, order = [], []
        for rows, mine in parted(rules, gate.rejected):
            people = gate.rejected[rows]
            told = {"constraints": mine} if mine is not None and is_told else {}
            noise = KeyedNoise(method.seed)
            found = method._several(self.Z[people], noise, n, **self.request, **told)
            parts.append(self._within_rules(people, found))
            order.append(rows)
        if not parts:
            return np.zeros((0, 1, gate.F.shape[1]))
        return np.concatenate(parts)[np.argsort(np.concatenate(order))]

    def _within_rules(self, people: np.ndarray, found: Array) -> Array:
        """found (N, k, d) with what the rules do not let change put back, and what follows."""
        N, k, d = found.shape
        again, rules = np.repeat(people, k), self.gate.rules
        F = self.gate.F[again]
        kept = revert(rules.take(again), F, found.reshape(-1, d))
        return rules.settle(F, kept).reshape(N, k, d)

    def _with_fewest(self, person: np.ndarray, F_plus: Array) -> Array:
        """x_plus with every change undone that h and the verifier do not need."""
        method, rules, F = self.method, self.gate.rules, self.gate.F[person]
        verifier = getattr(method, "verifier_", None)
        if verifier is None:
            raise UserError(
                f"{method._where('plans')}: fewest_changes needs a verifier, which this "
                f"{type(method).__name__} has not: by the model alone, plans that undo what they "
                "can end at the edge of the decision. Use GenRe, or nearest neighbours with "
                "gamma='auto'"
            )
        return fewest(
            F,
            F_plus,
            verifier,
            method._confidence,
            method.encoder_,
            self.safety,
            feasible=lambda rows, trial: rules.take(person[rows]).feasible(F[rows], trial),
            settle=rules.settle,
        )

    def _worth(self, person: np.ndarray, F_plus: Array) -> Array:
        value = self.method._worth(self.Z[person], F_plus, self.safety)
        if not self.fewest_changes:
            return value
        moved = ~unchanged(self.gate.F[person], F_plus) & ~self.gate.follows
        return value - CHANGE * moved.sum(axis=1)

    def _likelihood(self) -> Callable[[np.ndarray, pd.DataFrame], Array] | None:
        log_prob = getattr(self.method, "log_prob", None)
        if log_prob is None:
            return None
        known = inspect.signature(log_prob).parameters
        asked = {name: value for name, value in self.request.items() if name in known}
        return lambda person, X_plus: np.asarray(
            log_prob(X_plus, given=self.gate.X.iloc[person], **asked), dtype=float
        )


# ---- what is promised -------------------------------------------------------------------------


def promise_levels(method: Method, request: dict[str, Any], *, fewest_changes: bool) -> list[Level]:
    """Thresholds and what training rows say of each, for plans made as this request asks."""
    asked = {name: value for name, value in request.items() if value is not None}
    key = repr((fewest_changes, sorted(asked.items())))
    if key not in method._levels:
        method._levels[key] = _make_levels(method, asked, fewest_changes=fewest_changes)
    return method._levels[key]


def _make_levels(method: Method, request: dict[str, Any], *, fewest_changes: bool) -> list[Level]:
    ground, encoder = method._ground, method.encoder_
    if ground is None:
        raise UserError(
            f"{method._where('promise')}: a promise is about real decisions, and rests on "
            "outcomes y; there are none here, since fit was given no y or since this "
            f"{type(method).__name__} does not keep them in a model file"
        )
    people = ground.people()
    if not ground.is_enough or len(people) == 0:
        return []
    gate = make_gate(method, encoder.table(people, method._like), None)
    offers = Planner(method, gate, request, fewest_changes=fewest_changes).offers(1)
    own = gate.check(gate.rejected, offers.F_plus[:, 0])
    return ground.levels(encoder.from_features(own.F[own.holds]))


def promised(method: Method, plans: Plans, made: Promise) -> Plans:
    """Plans that reach the promise's threshold; whose first one does not is told so: what was
    tested is the method's first choice."""
    assert method._ground is not None
    reached = np.zeros(len(plans.shown), dtype=bool)
    if len(reached) and made.threshold is not None:
        scores = method._ground.score(method.encoder_.encode(plans.x_plus()))
        reached = scores >= made.threshold
    code, left = "no-promise" if made.holds else "cannot-promise", iter(reached)

    def told(plan: Plan) -> Plan:
        first, *others = ((each, next(left)) for each in plan.every)
        if not first[1]:
            about = (plan.person, "no-plan", plan.score_before, plan.cutoff)
            return Plan(*about, reason_code=code, promise=made, language=plan.language)
        rest = tuple(replace(each, promise=made) for each, fine in others if fine)
        return replace(plan, promise=made, alternatives=rest)

    return Plans(tuple(told(plan) if plan.every else plan for plan in plans))


# ---- how long it holds ------------------------------------------------------------------------


def enduring(method: Method, plans: Plans) -> Plans:
    """Plans that tell how they fare once h is trained again, or if done imprecisely."""
    if not plans.shown:
        return plans
    Z = method.encoder_.encode(plans.x_plus())
    moves = method.encoder_.number_columns(~method.rules_.immutable)
    shaken = imprecise(method._confidence, Z, moves, method.seed)
    verifier = getattr(method, "verifier_", None)
    again = [None] * len(Z) if verifier is None else retrained(verifier.copies_, Z)
    return plans.with_shown(
        [{"imprecise": i, "retrained": r} for i, r in zip(shaken, again, strict=True)]
    )
