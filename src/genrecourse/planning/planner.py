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

from genrecourse.errors import UserError
from genrecourse.planning.guarantee import Candidates, PlanChecker, make_plans
from genrecourse.planning.plans import Change, Plan, Plans
from genrecourse.planning.promise import Promise, ThresholdTest
from genrecourse.planning.robustness import imprecise, retrained
from genrecourse.planning.wording import english
from genrecourse.rules.book import split_by_rules
from genrecourse.rules.kinds import Rules
from genrecourse.rules.relaxations import relaxed_rules
from genrecourse.rules.stated import read_rules
from genrecourse.table.encoding import Array, unchanged
from genrecourse.table.noise import KeyedNoise
from genrecourse.trust.refine import fewest

if TYPE_CHECKING:  # it is built on this module
    from genrecourse.methods.base import Method

FEWEST = 3  # plans whose changes are undone where the fewest are asked for, at least
CHANGE = 0.1  # of Score that a change less is worth where the fewest are asked for
AS_FITTED = repr((False, []))  # the key of a promise about plans without any option


# ---- who is asked, and what the method has for them ------------------------------------------


def make_checker(method: Method, X: pd.DataFrame, rules: Any) -> PlanChecker:
    book = method._compiled(rules, X) or method.rules_
    return PlanChecker(
        X,
        menu=method.observed_,
        h=method.classifier_,
        encoder=method.encoder_,
        cost=method.cost_,
        rules=book,
        relaxed=lambda: relaxed_rules(book),
    )


class Planner:
    """One request for plans: what a method has for the people whom h rejects, and how it weighs it.

    request: options of the request, as in `Method.recourse`; its rules are the gate's.
    """

    def __init__(
        self, method: Method, gate: PlanChecker, request: dict[str, Any], *, fewest_changes: bool
    ):
        self.method, self.gate, self.request = method, gate, request
        self.fewest_changes = fewest_changes
        self.Z = method.encoder_.from_features(gate.F)
        self.safety = method._safety_asked(request)

    def offers(self, n: int) -> Candidates:
        """What is offered where n plans a person are asked for."""
        found = self._found(max(n, FEWEST) if self.fewest_changes else n)
        if self.fewest_changes:
            again = np.repeat(self.gate.rejected, found.shape[1])
            rows = self._with_fewest(again, found.reshape(-1, found.shape[2]))
            found = rows.reshape(found.shape)
        return Candidates(
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
        is_told = "rules" in inspect.signature(method._recourse).parameters
        parts, order = [], []
        for rows, mine in split_by_rules(gate.rules, gate.rejected):
            people = gate.rejected[rows]
            told = {"rules": mine} if mine is not None and is_told else {}
            noise = KeyedNoise(method.random_state)
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
        kept = rules.take(again).revert(F, found.reshape(-1, d))
        return rules.with_derived(F, kept).reshape(N, k, d)

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
            settle=rules.with_derived,
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


def promise_levels(
    method: Method,
    request: dict[str, Any],
    *,
    fewest_changes: bool,
    rules: Any = None,
    n: int = 1,
) -> list[ThresholdTest]:
    """Thresholds and what training rows say of each, for plans made as this request asks: under
    its rules, and chosen from as many as it chooses from."""
    rules = _everybodys(method, rules)
    asked = {name: value for name, value in request.items() if value is not None}
    n = n if fewest_changes else 1  # else the first plan is the same, however many are asked for
    more = () if rules is None and n == 1 else (n, None if rules is None else rules.key())
    key = repr((fewest_changes, sorted(asked.items()), *more))
    if key not in method._levels:
        method._levels[key] = _make_levels(method, asked, rules, n, fewest_changes=fewest_changes)
    return method._levels[key]


def _everybodys(method: Method, rules: Any) -> Rules | None:
    """The rules that bind everybody; what was tested under them says nothing of other rules."""
    if rules is None:
        return None
    stated = read_rules(rules)
    if stated.people:
        some = ", ".join(repr(label) for label in list(stated.people)[:3])
        raise UserError(
            f"{method._where('promise')}: a promise is tested on plans under the same rules for "
            f"everybody, but {len(stated.people)} people have rules of their own (first: {some}). "
            "Ask for their plans without a promise, or give everybody the same rules"
        )
    return None if stated.default == Rules() else stated.default


def _make_levels(
    method: Method,
    request: dict[str, Any],
    rules: Rules | None,
    n: int,
    *,
    fewest_changes: bool,
) -> list[ThresholdTest]:
    ground = method._ground
    if ground is None:
        raise UserError(
            f"{method._where('promise')}: a promise is about real decisions, and rests on "
            "outcomes y; there are none here, since fit was given no y or since this "
            f"{type(method).__name__} does not keep them in a model file"
        )
    people = ground.people()
    if not ground.is_enough or len(people) == 0:
        return []
    table = _who_can_ask(method, method.encoder_.table(people, method._like), rules)
    if len(table) == 0:
        return []
    gate = make_checker(method, table, rules)
    offers = Planner(method, gate, request, fewest_changes=fewest_changes).offers(n)
    shown = make_plans(gate, offers, n, english())  # what people are shown, and nothing else
    first = Plans(tuple(replace(plan, alternatives=()) for plan in shown if plan.status == "ok"))
    if len(first) == 0:
        return []
    return ground.levels(method.encoder_.encode(first.x_plus()))


def _who_can_ask(method: Method, X: pd.DataFrame, rules: Rules | None) -> pd.DataFrame:
    """Without people whom a request with these rules would be refused for."""
    if rules is None:
        return X
    try:
        method._compiled(rules, X)
    except UserError:
        able = [i for i in range(len(X)) if _is_possible(method, X.iloc[[i]], rules)]
        if not able:
            raise  # the rule itself is at fault
        return X.iloc[able]
    return X


def _is_possible(method: Method, person: pd.DataFrame, rules: Rules) -> bool:
    try:
        method._compiled(rules, person)
    except UserError:
        return False
    return True


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
        rest = tuple(each for each, fine in others if fine)  # not tested: nothing is promised
        return replace(plan, promise=made, alternatives=rest)

    return Plans(tuple(told(plan) if plan.every else plan for plan in plans))


# ---- what is said -------------------------------------------------------------------------------


def as_worded(gate: PlanChecker, plans: Plans) -> Plans:
    """Plans that hold as they are worded: a number is written with so many digits that the value
    read there is accepted by h and breaks no rule, just as the one that was checked."""
    every = [(i, each) for i, plan in enumerate(plans) for each in plan.every]
    if not every:
        return plans
    person, F = np.array([i for i, _ in every]), gate.encoder.features(plans.x_plus())
    told = [list(each.changes) for _, each in every]
    wrong = np.arange(len(every))
    for digits in (None, *range(4, 18)):
        if digits is not None:
            for k in wrong:
                told[k] = [replace(change, digits=digits) for change in told[k]]
        rounded = [any(change.said != change.after for change in told[k]) for k in wrong]
        wrong = wrong[np.array(rounded, dtype=bool)]
        if len(wrong) == 0:
            break
        read = [_read(gate, F[k], told[k]) for k in wrong]
        wrong = wrong[~gate.check(person[wrong], np.stack(read)).holds]
    return plans.with_shown([{"changes": tuple(changes)} for changes in told])


def _read(gate: PlanChecker, f_plus: Array, changes: list[Change]) -> Array:
    """(d,) x_plus as the words have it."""
    f_plus = f_plus.copy()
    for change in changes:
        j = gate.encoder.schema.names.index(change.feature.name)
        if not change.feature.is_category and change.said is not None:
            block = gate.encoder.blocks[j]
            f_plus[j] = (change.said - block.low) / block.span
    return f_plus


# ---- how long it holds ------------------------------------------------------------------------


def enduring(method: Method, gate: PlanChecker, plans: Plans) -> Plans:
    """Plans that tell how they fare once h is trained again, or if done imprecisely.

    gate: of the people whom the plans are for, in their order.
    """
    if not plans.shown:
        return plans
    Z = method.encoder_.encode(plans.x_plus())
    moves = method.encoder_.number_columns(~method.rules_.immutable)
    before = np.repeat(gate.F, [len(plan.every) for plan in plans], axis=0)
    shaken = imprecise(
        lambda noisy: _confidence_settled(method, before, noisy),
        Z,
        moves,
        method.random_state,
        method.blank_.hide_encoded,
    )
    verifier = getattr(method, "verifier_", None)
    again = [None] * len(Z) if verifier is None else retrained(verifier.votes(Z))
    return plans.with_shown(
        [{"imprecise": i, "retrained": r} for i, r in zip(shaken, again, strict=True)]
    )


def _confidence_settled(method: Method, F: Array, noisy: Array) -> Array:
    """h on noisy rows of Z, as many in turn for each of the people F, with what follows from what
    noise has moved; who ends where a formula gives no number is x itself, whom h rejects."""
    rules, encoder = method.rules_, method.encoder_
    if rules.derived:
        before = np.repeat(F, len(noisy) // len(F), axis=0)
        settled = rules.with_derived(before, encoder.to_features(noisy))
        lost = (np.isnan(settled) & ~np.isnan(before)).any(axis=1, keepdims=True)
        noisy = encoder.from_features(np.where(lost, before, settled))
    return method._settled_confidence(noisy)
