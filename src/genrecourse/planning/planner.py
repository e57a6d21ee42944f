"""The verbs `plans` and `promise`: from what a method proposes to plans that hold.

`PlanRequest` gathers what a method proposes for one request, `guarantee.make_plans` checks it and
chooses, and the rest of this file adds the promise, the wording and the robustness.
"""

from __future__ import annotations

import os
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd

from genrecourse.errors import UserError
from genrecourse.model.settings import (
    COUNT,
    FLAG,
    NOTHING,
    PLANS_EACH,
    ROW_ERRORS,
    Allowed,
    Number,
    Or,
    check_size,
    check_values,
)
from genrecourse.planning.choice import MOST_CHANGES, Standard
from genrecourse.planning.effort import check_sort, check_stated
from genrecourse.planning.guarantee import Candidates, PlanChecker, make_plans
from genrecourse.planning.plans import Change, Plan, Plans
from genrecourse.planning.promise import DELTA, PROMISED, ThresholdTest, check_promise, choose
from genrecourse.planning.proposer import Proposals, Proposer
from genrecourse.planning.robustness import imprecise
from genrecourse.planning.rounding import with_round_numbers
from genrecourse.planning.sturdy import MIN_ROBUST, Sturdiness
from genrecourse.planning.wording import Wording, english
from genrecourse.rules.book import split_by_rules
from genrecourse.rules.kinds import Rules
from genrecourse.rules.policy import efforts_in_force, promise_in_force, rules_in_force
from genrecourse.rules.problem import asking_once
from genrecourse.rules.relaxations import relaxed_rules
from genrecourse.rules.stated import PersonalRules, read_rules
from genrecourse.table.encoding import Array, unchanged
from genrecourse.table.frames import to_pandas
from genrecourse.table.limits import PLANS_AT_ONCE
from genrecourse.table.noise import KeyedNoise
from genrecourse.table.schema import plain
from genrecourse.trust.refine import fewest
from genrecourse.trust.retrained import N_RETRAINED
from genrecourse.trust.score import Scored, expected_score

if TYPE_CHECKING:
    from collections.abc import Callable

    from genrecourse.planning.options import Options
    from genrecourse.planning.promised import Promise
    from genrecourse.rules.effort import Efforts
    from genrecourse.rules.problem import People, Problem, ReadRows

AMOUNT = Number(0, says="a number of months, or an amount of money, from 0")
FEWEST = 3  # plans whose changes are undone at least, if the fewest changes are asked for
ASKED: dict[str, Allowed] = {  # what a request may ask for, besides the options of the method
    "n": PLANS_EACH,
    "fewest_changes": FLAG,
    "min_robust": Number(
        0, 1, says="the share of retrained models that must accept a plan, from 0 to 1"
    ),
    "most_changes": Or(COUNT, NOTHING),
    "most_months": Or(AMOUNT, NOTHING),
    "most_money": Or(AMOUNT, NOTHING),
    "promise": Or(PROMISED, NOTHING),
    "delta": PROMISED,
    "errors": ROW_ERRORS,
}
UNKNOWN = 1e12  # months or money: more than any plan of which they are known
CHANGE = 0.1  # Score that one change less is worth, if the fewest changes are asked for


# ---- the verbs --------------------------------------------------------------------------------


class Plannable:
    """The verbs `plans` and `promise`, for every class that is a `Proposer`.

    >>> from genrecourse import NearestNeighbour, Schema
    >>> X = pd.DataFrame({"income": range(80)})
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, Schema.infer(X)).fit(X)
    >>> isinstance(method, Plannable), method.plans(X.head(1))[0].changes[0].to_text()
    (True, 'income: 0 → 41')
    """

    def plans(
        self: Proposer,
        X: Any,
        n: int = 1,
        rules: Any = None,
        fewest_changes: bool = False,
        *,
        min_robust: float = MIN_ROBUST,
        most_changes: int | None = MOST_CHANGES,
        most_months: float | None = None,
        most_money: float | None = None,
        sort: str | None = None,
        promise: float | None = None,
        delta: float = DELTA,
        language: str | os.PathLike[str] | Wording = "en",
        errors: str = "status",
        **options: Unpack[Options],
    ) -> Plans:
        """Return what would change h's decision on each person, in units and words.

        Every plan holds: decoded to original units, h accepts it and it breaks no rule. A person
        without a plan gets the reason, the evidence for it, and each rule that alone blocks one.
        X: a table of any kind that `fit` reads. A person of a table without an index is called by
        the number of the row, from 0.

        n: how many plans a person, which differ in the features they change; fewer if no more are
        worth showing. rules: rules for this request, on top of the schema's and of the policy
        that the model file keeps. fewest_changes: undo changes while h and the verifier still
        accept.

        min_robust: the share of the retrained models, and of the tries with noise, that must
        accept a plan. If no plan reaches it, the best one is shown as fragile. most_changes: plans
        with more changes are shown only if there is no sturdy smaller one; None: no limit.
        most_months, most_money: the most time and money that a plan may take, by what the policy in
        force says about changes; a person without such a plan gets the least that was found.
        sort: "time", "money", "changes" or "cost": the order in which the plans are shown that were
        chosen; None: the method's choice first.

        promise: show only plans of which the real decision accepts at least this share, on
        average over the people who get one, with confidence 1 - delta (docs/promise.md); if the
        policy promises more, its share counts.
        language: a language that is shipped, or a file. options: as in `recourse`.

        errors: "status": a row that cannot be read, such as one with an unseen category, gets the
        status `unreadable` and the reason, and the others get the plans that they would get without
        it; "raise": such a row is a UserError.
        """
        self.check_ready("plans", options)
        where = f"{type(self).__name__}.plans"
        limits = (most_months, most_money)
        given = (n, fewest_changes, min_robust, most_changes, *limits, promise, delta, errors)
        check_values(where, dict(zip(ASKED, given, strict=True)), ASKED)
        wanted = _Wanted(int(n), bool(fewest_changes), float(min_robust), most_changes)
        X = to_pandas(X, self.problem_.schema)
        check_size(where, len(X), n, "plans", PLANS_AT_ONCE)
        read, words = self.problem_.read_each(X, errors), Wording.of(language)
        asked = _Asked(
            self, with_limits(read.rules(rules, X.index), *limits), dict(options), wanted
        )
        if sort is not None:
            check_sort(where, sort)
            check_stated(where, sort, asked.efforts)
        made = asked.promise(promise, delta)
        found = asked.plans(read.people, words, made)
        found = found if sort is None else found.sorted_by(sort)
        return _with_unreadable(found, read, X.index, self.problem_.classifier.cutoff, words)

    def promise(
        self: Proposer,
        share: float,
        delta: float = DELTA,
        *,
        fewest_changes: bool = False,
        rules: Any = None,
        n: int = 1,
        **options: Unpack[Options],
    ) -> Promise:
        """Return what `plans(X, promise=share)` rests on; if `holds` is False, nothing is promised.

        share: if the policy in the model file promises more, its share is used.
        rules: the same for everybody; rules of single people raise an error, since nothing can be
        tested under them. The first call makes plans for rejected training rows with these options;
        later calls reuse them, and `save` stores those made without options.
        """
        self.check_ready("promise", options)
        where = f"{type(self).__name__}.promise"
        check_values(where, {"n": n, "fewest_changes": fewest_changes}, ASKED)
        check_promise(where, share, delta)
        asked = _Asked(self, rules, dict(options), _Wanted(n, fewest_changes))
        made = asked.promise(share, delta)
        assert made is not None
        return made


# ---- one request --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Wanted:
    """Which plans are wanted."""

    n: int = 1
    fewest_changes: bool = False
    min_robust: float = MIN_ROBUST
    most_changes: int | None = MOST_CHANGES


class _Asked:
    """One request for plans: the rules and options in force, and what the method proposes."""

    def __init__(self, method: Proposer, rules: Any, options: dict[str, Any], wanted: _Wanted):
        self.method, self.problem, self.options = method, method.problem_, options
        self.rules = rules_in_force(method.policy_, rules)
        self.efforts = efforts_in_force(method.policy_, method.problem_.encoder)
        self.wanted = wanted
        asked = options.get("safety")
        self.safety = float(method.safety if asked is None else asked)
        self.where = type(method).__name__

    def plans(self, people: People, words: Wording, made: Promise | None) -> Plans:
        """Return the plans of people who can be read."""
        checker = self.checker(people)
        if len(people.X) == 0:
            return Plans(())
        standard = self.standard(checker)
        with asking_once():
            candidates = self.candidates(checker)
            found = make_plans(checker, candidates, self.wanted.n, words, standard)
        found = as_worded(checker, found)
        if made is not None:
            found = _promised(self.method, found, made)
        return with_round_numbers(checker, found)

    def checker(self, people: People) -> PlanChecker:
        book = self.problem.compile(self.rules, people, self.efforts) or self.problem.rules
        book = replace(book, efforts=self.efforts)
        known = self.method.planning_
        return PlanChecker(people, known.observed, book, lambda: relaxed_rules(book), known.unread)

    def standard(self, checker: PlanChecker) -> Standard:
        sturdiness = _sturdiness(self.method, checker, self.wanted.min_robust)
        return Standard(sturdiness, self.wanted.most_changes, self._less)

    @property
    def _less(self) -> Callable[[Array, Array], Array] | None:
        """What the policy wants less of: time or money; None: it has no wish."""
        efforts = self.efforts
        return None if efforts is None or efforts.stated.prefer is None else efforts.preferred

    # ---- what the method offers ------------------------------------------------------------------

    def candidates(self, checker: PlanChecker) -> Candidates:
        """Return what the method offers to the people whom h rejects."""
        found = self._proposals(checker)
        if self.wanted.fewest_changes:
            found = replace(found, F_plus=self._with_fewest(checker, found.F_plus))
        Z = self.problem.encoder.from_features(checker.F)
        return Candidates(
            found.F_plus,
            lambda person, F_plus: self._worth(checker, Z, person, F_plus),
            reason=found.reason,
            log_prob=found.log_prob,
            tried=found.tried,
            keep_first=not self.wanted.fewest_changes and self._less is None,
        )

    def _proposals(self, checker: PlanChecker) -> Proposals:
        """Return the method's proposals (N, k, d) within the rules.

        If a method does not take rules, put back every feature that they forbid to change.
        """
        method, rejected = self.method, checker.rejected
        n = max(self.wanted.n, FEWEST) if self.wanted.fewest_changes else self.wanted.n
        rules = None if checker.rules.request is None else checker.rules
        parts: list[Proposals] = []
        order = []
        for rows, mine in split_by_rules(rules, rejected):
            people, options = rejected[rows], dict(self.options)
            if mine is not None and "rules" in method.options:
                options["rules"] = mine
            Z = self.problem.encoder.from_features(checker.F[people])
            found = method.propose(Z, KeyedNoise(method.random_state), n, **options)
            F_plus = _within_rules(checker, people, found.F_plus)
            parts.append(replace(found, F_plus=self._only_read(checker, people, F_plus)))
            order.append(rows)
        if not parts:
            nothing = np.zeros((0, 1, checker.F.shape[1]))
            return Proposals(nothing, 0, lambda: np.zeros(0, dtype=object))
        back = np.argsort(np.concatenate(order))
        return Proposals(
            np.concatenate([part.F_plus for part in parts])[back],
            parts[0].tried,
            lambda: np.concatenate([part.reason() for part in parts])[back],
            parts[0].log_prob,
        )

    def _only_read(self, checker: PlanChecker, people: np.ndarray, F_plus: Array) -> Array:
        """Return F_plus (N, k, d) without changes of features that h does not read.

        A row that does not hold without them stays: h may read them where nobody has looked.
        """
        unread = self.method.planning_.unread
        if unread is None or not unread.any():
            return F_plus
        N, k, d = F_plus.shape
        fewer = np.where(unread, checker.F[people][:, None], F_plus)
        fewer = _within_rules(checker, people, fewer)
        holds = checker.check(np.repeat(people, k), fewer.reshape(-1, d)).holds
        return np.where(holds.reshape(N, k, 1), fewer, F_plus)

    def _with_fewest(self, checker: PlanChecker, F_plus: Array) -> Array:
        """Undo every change in F_plus (N, k, d) that neither h nor the verifier needs."""
        verifier = self.method.verifier_
        if verifier is None:
            raise UserError(
                f"{self.where}.plans: fewest_changes needs a verifier, and this {self.where} has "
                "none: with the model alone, plans end at the edge of the decision. Use GenRe, or "
                "nearest neighbours with gamma='auto'"
            )
        N, k, d = F_plus.shape
        person, rules = np.repeat(checker.rejected, k), checker.rules
        F = checker.F[person]
        found = fewest(
            F,
            F_plus.reshape(-1, d),
            verifier,
            self.problem.confidence,
            self.problem.encoder,
            self.problem.cost,
            self.safety,
            feasible=lambda rows, trial: rules.take(person[rows]).feasible(F[rows], trial),
            with_derived=rules.with_derived,
        )
        return found.reshape(N, k, d)

    def _worth(self, checker: PlanChecker, Z: Array, person: np.ndarray, F_plus: Array) -> Array:
        """(m,) the expected Score of each x_plus, less CHANGE for each change if few are wanted."""
        problem, Z_plus = self.problem, self.problem.encoder.from_features(F_plus)
        cost, confidence = problem.cost(Z[person], Z_plus), checker.confidence(person, F_plus)
        found = Scored(*(part[:, None] for part in (F_plus, Z_plus, confidence, cost)))
        if self._less is not None:
            wanted = self._less(checker.F[person], F_plus)
            return -np.where(np.isfinite(wanted), wanted, UNKNOWN)
        value = expected_score(found, self.method.verifier_, safety=self.safety)[:, 0]
        if not self.wanted.fewest_changes:
            return value
        moved = ~unchanged(checker.F[person], F_plus) & ~checker.follows
        return value - CHANGE * moved.sum(axis=1)

    # ---- what is promised ------------------------------------------------------------------------

    def promise(self, share: float | None, delta: float) -> Promise | None:
        """Return what the training rows support: this share, or the policy's if that is larger.

        None: neither the request nor the policy promises anything.
        """
        if share is not None:
            check_promise(f"{self.where}.promise", share, delta)
        share = promise_in_force(self.method.policy_, share)
        if share is None:
            return None
        check_promise(f"{self.where}.promise", share, delta)
        return choose(self._threshold_tests(), float(share), float(delta))

    def _threshold_tests(self) -> list[ThresholdTest]:
        """Return the tests for plans made as this request asks; made once for equal requests."""
        rules = self._everybodys_rules()
        asked = {name: value for name, value in self.options.items() if value is not None}
        more = () if rules is None else (rules.key(),)
        if self.wanted != _Wanted(fewest_changes=self.wanted.fewest_changes):
            more = (astuple(self.wanted), *more)
        if self.efforts is not None and (self._less is not None or _is_limited(rules)):
            more = (self.efforts.stated.model_dump_json(), *more)
        key = repr((self.wanted.fewest_changes, sorted(asked.items()), *more))
        data = self.method.planning_
        known = data.tests.get(key)
        return data.remember(key, self._make_tests(rules)) if known is None else known

    def _everybodys_rules(self) -> Rules | None:
        """Return the rules that bind everybody; rules of single people raise an error."""
        if self.rules is None:
            return None
        stated = read_rules(self.rules)
        if stated.people:
            some = ", ".join(repr(label) for label in list(stated.people)[:3])
            raise UserError(
                f"{self.where}.promise: a promise is tested on plans under the same rules for "
                f"everybody, but {len(stated.people)} people have rules of their own (first: "
                f"{some}). Ask for their plans without a promise, or give everybody the same rules"
            )
        return None if stated.default == Rules() else stated.default

    def _make_tests(self, rules: Rules | None) -> list[ThresholdTest]:
        outcomes = self.method.planning_.outcomes
        if outcomes is None:
            raise UserError(
                f"{self.where}.promise: a promise is about real decisions and needs outcomes y. "
                f"There are none here: fit was given no y, or a model file of {self.where} does "
                "not keep them"
            )
        people = outcomes.people()
        if not outcomes.is_enough or len(people) == 0:
            return []
        table = self.problem.encoder.table(people, self.problem.like)
        table = _people_who_can_ask(self.problem, table, rules, self.efforts)
        if len(table) == 0:
            return []
        options = {name: value for name, value in self.options.items() if value is not None}
        again = _Asked(self.method, rules, options, self.wanted)
        checker = again.checker(self.problem.read(table))
        # test the plans that people would be shown, and no others
        standard = again.standard(checker)
        shown = make_plans(checker, again.candidates(checker), self.wanted.n, english(), standard)
        first = [replace(plan, alternatives=()) for plan in shown if plan.status == "ok"]
        if not first:
            return []
        return outcomes.levels(self.problem.encoder.encode(Plans(tuple(first)).x_plus()))


# ---- rules ---------------------------------------------------------------------------------------


def _within_rules(checker: PlanChecker, people: np.ndarray, found: Array) -> Array:
    """Return found (N, k, d) with forbidden changes put back and derived features recomputed."""
    N, k, d = found.shape
    again, rules = np.repeat(people, k), checker.rules
    F = checker.F[again]
    kept = rules.take(again).revert(F, found.reshape(-1, d))
    return rules.with_derived(F, kept).reshape(N, k, d)


def with_limits(rules: Any, most_months: float | None, most_money: float | None) -> Any:
    """Return the rules of a request with its limits on time and money; None is no limit.

    >>> with_limits({"lock": ["job"]}, 12, None).default.max_months
    12.0
    """
    if most_months is None and most_money is None:
        return rules
    limits = PersonalRules(default=Rules(max_months=most_months, max_money=most_money))
    return limits if rules is None else read_rules(rules).also(limits)


def _is_limited(rules: Rules | None) -> bool:
    return rules is not None and (rules.max_months is not None or rules.max_money is not None)


def _people_who_can_ask(
    problem: Problem, X: pd.DataFrame, rules: Rules | None, efforts: Efforts | None
) -> pd.DataFrame:
    """Return X without people for whom these rules raise an error."""
    if rules is None:
        return X
    try:
        problem.compile(rules, problem.read(X), efforts)
    except UserError:
        able = [i for i in range(len(X)) if _can_ask(problem, X.iloc[[i]], rules, efforts)]
        if not able:
            raise  # the rule itself is wrong
        return X.iloc[able]
    return X


def _can_ask(problem: Problem, person: pd.DataFrame, rules: Rules, efforts: Efforts | None) -> bool:
    try:
        problem.compile(rules, problem.read(person), efforts)
    except UserError:
        return False
    return True


# ---- what is added to plans ---------------------------------------------------------------------


def _promised(method: Proposer, plans: Plans, made: Promise) -> Plans:
    """Drop plans below the threshold; if a person's first plan is dropped, return no-plan.

    Only the method's first choice was tested.
    """
    outcomes = method.planning_.outcomes
    assert outcomes is not None
    reached = np.zeros(len(plans.shown), dtype=bool)
    if len(reached) and made.threshold is not None:
        scores = outcomes.score(method.problem_.encoder.encode(plans.x_plus()))
        reached = scores >= made.threshold
    code, left = "no-promise" if made.holds else "cannot-promise", iter(reached)

    def kept(plan: Plan) -> Plan:
        first, *others = ((each, next(left)) for each in plan.every)
        if not first[1]:
            about = (plan.person, "no-plan", plan.score_before, plan.cutoff)
            return Plan(*about, reason_code=code, promise=made, language=plan.language)
        rest = tuple(each for each, fine in others if fine)  # not tested: nothing is promised
        return replace(plan, promise=made, alternatives=rest)

    return Plans(tuple(kept(plan) if plan.every else plan for plan in plans))


def _with_unreadable(
    found: Plans, read: ReadRows, index: pd.Index, cutoff: float, words: Wording
) -> Plans:
    """Return the plans of everybody in the table, from those of the people who could be read."""
    if not read.faults:
        return found
    left, every = iter(found), list[Plan]()
    for i, label in enumerate(index):
        fault = read.faults.get(i)
        if fault is None:
            every.append(next(left))
            continue
        about = (plain(label), "unreadable", None, float(cutoff))
        every.append(Plan(*about, reason_code=fault.code, fault=fault, language=words))
    return Plans(tuple(every))


def as_worded(checker: PlanChecker, plans: Plans) -> Plans:
    """Return plans that hold as they are worded.

    A number is written with enough digits that the value a person reads is accepted by h and breaks
    no rule, as the exact value does.

    >>> from genrecourse import NearestNeighbour, Schema
    >>> X = pd.DataFrame({"income": range(80)})
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, Schema.infer(X)).fit(X)
    >>> problem, observed = method.problem_, method.planning_.observed
    >>> checker = PlanChecker(problem.read(X.head(1)), observed, problem.rules, list)
    >>> as_worded(checker, method.plans(X.head(1)))[0].changes[0].to_text()
    'income: 0 → 41'
    """
    every = [(i, each) for i, plan in enumerate(plans) for each in plan.every]
    if not every:
        return plans
    person, F = np.array([i for i, _ in every]), checker.encoder.features(plans.x_plus())
    worded = [list(each.changes) for _, each in every]
    wrong = np.arange(len(every))
    for digits in (None, *range(4, 18)):
        if digits is not None:
            for k in wrong:
                worded[k] = [replace(change, digits=digits) for change in worded[k]]
        rounded = [any(change.said != change.after for change in worded[k]) for k in wrong]
        wrong = wrong[np.array(rounded, dtype=bool)]
        if len(wrong) == 0:
            break
        read = [_as_read(checker, F[k], worded[k]) for k in wrong]
        wrong = wrong[~checker.check(person[wrong], np.stack(read)).holds]
    return plans.with_shown([{"changes": tuple(changes)} for changes in worded])


def _as_read(checker: PlanChecker, f_plus: Array, changes: list[Change]) -> Array:
    """(d,) x_plus with the numbers that a person reads in the words."""
    f_plus = f_plus.copy()
    for change in changes:
        j = checker.encoder.schema.names.index(change.feature.name)
        if not change.feature.is_category and change.said is not None:
            block = checker.encoder.blocks[j]
            f_plus[j] = (change.said - block.low) / block.span
    return f_plus


def _sturdiness(method: Proposer, checker: PlanChecker, least: float) -> Sturdiness:
    """Return the counts of retrained models, and of noisy tries of h, for rows of these people.

    The models are copies of h, if it can be trained again, and the verifier's networks otherwise.
    """
    problem, verifier, seed = method.problem_, method.verifier_, method.random_state
    copies = method.planning_.copies
    are_own = copies is not None and len(copies.trained) > 0
    moves = problem.encoder.number_columns(~problem.rules.immutable)
    blank = problem.protected.hide_encoded

    def votes(person: np.ndarray, F: Array) -> np.ndarray:
        if are_own and copies is not None:
            return copies.votes(checker.trial.decoded(person, F))
        assert verifier is not None
        return np.asarray(verifier.votes(problem.encoder.from_features(F)).sum(axis=0))

    def tries(person: np.ndarray, F: Array) -> np.ndarray:
        Z, before = problem.encoder.from_features(F), checker.F[person]
        shares = imprecise(
            lambda noisy: _confidence_from(problem, before, noisy), Z, moves, seed, blank
        )
        return np.array([share.k for share in shares])

    n = copies.n if are_own and copies is not None else N_RETRAINED
    return Sturdiness(tries, None if verifier is None else votes, n, least, are_own)


def _confidence_from(problem: Problem, F: Array, noisy: Array) -> Array:
    """Return h on noisy rows of Z, equally many in turn for each person of F.

    Derived features are recomputed; if a formula gives no number, use x, whom h rejects.
    """
    rules, encoder = problem.rules, problem.encoder
    if rules.derived:
        before = np.repeat(F, len(noisy) // len(F), axis=0)
        derived = rules.with_derived(before, encoder.to_features(noisy))
        lost = (np.isnan(derived) & ~np.isnan(before)).any(axis=1, keepdims=True)
        noisy = encoder.from_features(np.where(lost, before, derived))
    return problem.confidence(noisy)
