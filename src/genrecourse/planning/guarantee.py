"""The last checker before a plan leaves the library.

Whatever a method candidates is decoded to original units and dtypes, scored there by the user's own h
against the cutoff, and checked against every rule; what fails is not shown. Where nothing is left,
all changes of one and of two features are tried (`enumeration`) before "no-plan" is said, and if
one of them holds it is the plan. The answer says what it rests on, and which rule alone stands in
the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from genrecourse.planning.diversity import pick_diverse
from genrecourse.planning.enumeration import Enumeration, EnumerationResult, ObservedValues
from genrecourse.planning.plans import BlockingRule, Change, Evidence, Plan, Plans, Row, cell_value
from genrecourse.planning.wording import Wording
from genrecourse.rules.book import RuleBook
from genrecourse.rules.problem import Problem
from genrecourse.rules.relaxations import RelaxedRule
from genrecourse.table.encoding import TOLERANCE, Array, unchanged
from genrecourse.table.schema import plain

WEIGHED = 16  # kinds of change that were found by trying and are weighed, the cheapest ones


@dataclass(frozen=True)
class Checked:
    """Candidates as they were decoded, scored and checked; row i is for person[i]."""

    person: np.ndarray  # (m,) positions in the table
    table: pd.DataFrame  # in original units
    F: Array  # (m, d) the table, read again
    moved: np.ndarray  # (m, d) booleans: what a person would change
    followed: np.ndarray  # (m, d) booleans: what moves by itself then (`roles`)
    score: Array  # (m,) by the user's own h
    cost: Array  # (m,)
    holds: np.ndarray  # (m,) booleans: h accepts it and no rule is broken
    keeps_rules: np.ndarray  # (m,) booleans

    def of(self, i: int) -> np.ndarray:
        """The rows of one person; people come in ascending order."""
        return np.arange(*np.searchsorted(self.person, [i, i + 1]))


def evidence(found: EnumerationResult, draws: int = 0) -> Evidence:
    return Evidence(found.is_all, found.asked, found.most, draws)


class PlanChecker:
    """The people X, the h that decides on them and the rules that bind them."""

    def __init__(
        self,
        X: pd.DataFrame,
        problem: Problem,
        observed: ObservedValues,
        rules: RuleBook,
        relaxed: Callable[[], Sequence[RelaxedRule]],
    ):
        self.X, self.rules, self.relaxed = X, rules, relaxed
        self.h, self.encoder, self.cost = problem.classifier, problem.encoder, problem.cost
        self.follows = problem.rules.derived.mask
        self.trial = Enumeration(X, observed, self.h, self.encoder, self.cost)
        self.F = self.trial.F
        self.score = self.h.score(X)
        self.rejected = np.flatnonzero(self.score <= self.h.cutoff)

    def check(self, person: np.ndarray, F_plus: Array, rules: RuleBook | None = None) -> Checked:
        """rules: of all of X; None: those in force."""
        rules = rules or self.rules
        if len(person) == 0:
            nothing = np.zeros((0, self.F.shape[1]))
            none, no = np.zeros(0), np.zeros(0, dtype=bool)
            nowhere = nothing > 0
            return Checked(person, self.X.iloc[:0], nothing, nowhere, nowhere, none, none, no, no)
        mine, before = rules.take(person), self.F[person]
        settled = mine.with_derived(before, F_plus)
        # what cannot be computed has no place in a table: such a row is nobody's plan
        lost = (np.isnan(settled) & ~np.isnan(before)).any(axis=1, keepdims=True)
        table = self.trial.decoded(person, np.where(lost, before, settled))
        F = self.encoder.features(table)
        differs = ~unchanged(before, F)
        moved, followed = differs & ~self.follows, differs & self.follows
        score = self.h.score(table)
        price = self.cost(self.encoder.from_features(before), self.encoder.from_features(F))
        kept = mine.feasible(before, F)
        holds = (score > self.h.cutoff) & kept & moved.any(axis=1)
        return Checked(person, table, F, moved, followed, score, np.asarray(price), holds, kept)

    # ---- by trying everything -----------------------------------------------------------------

    def try_all(self, people: np.ndarray) -> tuple[Checked, list[EnumerationResult]]:
        """The cheapest accepted changes of one and of two features of each person, at most
        `WEIGHED` kinds, checked; and what was tried for each."""
        found = self.trial.search(self.rules, people)
        return self._checked(people, found, self.rules, WEIGHED), found

    def _checked(
        self, people: np.ndarray, found: Sequence[EnumerationResult], rules: RuleBook, most: int
    ) -> Checked:
        person = np.repeat(people, [min(most, len(each.cost)) for each in found])
        nothing = np.zeros((0, self.F.shape[1]))
        rows = np.concatenate([nothing, *(each.F_plus[:most] for each in found)])
        return self.check(person, rows, rules)

    def cheapest(self, people: np.ndarray, cost: Array) -> list[Evidence | None]:
        """For plans of this cost: what says that none of one or two changes costs less, if it is
        so. None, too, where there are too many pairs to try."""
        found = self.trial.search(self.rules, people, below=cost - TOLERANCE)
        return [None if len(each.cost) or not each.most else evidence(each) for each in found]

    def blocking_rules(
        self, people: np.ndarray, words: Wording
    ) -> dict[int, tuple[BlockingRule, ...]]:
        """For each person the rules that alone stand in the way, the cheapest way first."""
        opened: dict[int, list[BlockingRule]] = {int(i): [] for i in people}
        for relaxed in self.relaxed() if len(people) else ():
            # of a rule on the plan as a whole, or on what follows from any change
            some, touching = people, None
            if relaxed.binds is not None:
                some = people[relaxed.binds[people]]
            if relaxed.feature is not None and not relaxed.feature.follows:
                touching = self.encoder.schema.names.index(relaxed.feature.name)
                more = self.trial.opens(self.rules, relaxed.rules, some, touching)
                some = some[more]  # of the others the rule keeps nothing
            if len(some) == 0:
                continue
            found = self.trial.search(relaxed.rules, some, touching=touching)
            checked = self._checked(some, found, relaxed.rules, 1)
            for row in np.flatnonzero(checked.holds):
                opening = self._opening(relaxed, checked, int(row), words)
                opened[int(checked.person[row])].append(opening)
        return {i: tuple(sorted(each, key=lambda o: o.cost)) for i, each in opened.items()}

    def _opening(
        self, relaxed: RelaxedRule, checked: Checked, row: int, words: Wording
    ) -> BlockingRule:
        return BlockingRule(
            relaxed.kind,
            relaxed.feature,
            self.changes(checked, row, words),
            float(checked.score[row]),
            float(checked.cost[row]),
            relaxed.value,
            words,
        )

    # ---- in words -----------------------------------------------------------------------------

    def changes(self, checked: Checked, row: int, words: Wording) -> tuple[Change, ...]:
        """What row `row` changes, from the very cells that h has scored."""
        return self._told(checked, row, checked.moved[row], words)

    def consequences(self, checked: Checked, row: int, words: Wording) -> tuple[Change, ...]:
        """What moves by itself in row `row`."""
        return self._told(checked, row, checked.followed[row], words)

    def _told(
        self, checked: Checked, row: int, which: np.ndarray, words: Wording
    ) -> tuple[Change, ...]:
        i = int(checked.person[row])
        return tuple(
            Change(
                feature,
                cell_value(self.X[feature.name].iloc[i]),
                cell_value(checked.table[feature.name].iloc[row]),
                words,
            )
            for j, feature in enumerate(self.encoder.schema)
            if which[j]
        )


@dataclass(frozen=True)
class Candidates:
    """What a method candidates to the people whom h rejects, in their order."""

    F_plus: Array  # (N, k, d), the method's own first choice first
    worth: Callable[[np.ndarray, Array], Array]  # of x_plus for these people, in units of Score
    reason: Callable[[], np.ndarray]  # (N,) why the method itself could not help
    log_prob: Callable[[pd.DataFrame, pd.DataFrame], Array] | None  # of x_plus given x, by row
    tried: int  # how many x_plus it has looked at for each
    keep_first: bool = True  # the first choice is the plan if it holds; else the best one


@dataclass(frozen=True)
class _Shown:
    """One row of checked candidates that is told."""

    checked: Checked
    row: int


def make_plans(checker: PlanChecker, candidates: Candidates, n: int, words: Wording) -> Plans:
    """n plans for each person, all of which hold; or why there is none."""
    _, k, d = candidates.F_plus.shape
    own = checker.check(np.repeat(checker.rejected, k), candidates.F_plus.reshape(-1, d))
    helped = np.isin(checker.rejected, own.person[own.holds])
    # the plans of one person differ in what they change, and few draws do: so all is tried
    tried = checker.rejected if n > 1 else checker.rejected[~helped]
    more, found = checker.try_all(tried)
    rests_on = {
        int(i): evidence(each, candidates.tried) for i, each in zip(tried, found, strict=True)
    }
    settled = checker.rejected[helped] if n == 1 and candidates.keep_first else checker.rejected[:0]
    shown = _shown(own, more, candidates, n, checker.rejected, settled)
    lost = np.array([i for i, plans in shown.items() if not plans], dtype=int)
    told = _Told(checker, candidates, shown, words)
    nothing = _no_plan(checker, candidates, lost, own, rests_on, words)
    plans = []
    for i in range(len(checker.X)):
        if i in nothing:
            plans.append(nothing[i])
        elif i in shown:
            plans.append(told.plan(i))
        else:
            plans.append(Plan(*_about(checker, i, "already-accepted"), language=words))
    return Plans(tuple(plans))


def _shown(
    own: Checked,
    more: Checked,
    candidates: Candidates,
    n: int,
    people: np.ndarray,
    settled: np.ndarray,
) -> dict[int, list[_Shown]]:
    """Each person's plans, in the order to show them. settled: whose first offer is the plan."""
    weighed = [part.holds & ~np.isin(part.person, settled) for part in (own, more)]
    worth = [np.zeros(len(part.person)) for part in (own, more)]
    for part, rows, value in zip((own, more), weighed, worth, strict=True):
        if rows.any():
            value[rows] = candidates.worth(part.person[rows], part.F[rows])
    shown = {}
    for i in map(int, people):
        found = [
            (part, int(row), value[row])
            for part, value in zip((own, more), worth, strict=True)
            for row in part.of(i)
            if part.holds[row]
        ]
        moved = np.array([part.moved[row] for part, row, _ in found])
        first = 0 if candidates.keep_first and found and found[0][0] is own else None
        order = pick_diverse(moved, np.array([value for *_, value in found]), n, first)
        shown[i] = [_Shown(*found[place][:2]) for place in order]
    return shown


def _about(checker: PlanChecker, i: int, status: str) -> tuple[object, str, float, float]:
    return plain(checker.X.index[i]), status, float(checker.score[i]), float(checker.h.cutoff)


class _Told:
    """Plans from the rows that are shown."""

    def __init__(
        self,
        checker: PlanChecker,
        candidates: Candidates,
        shown: dict[int, list[_Shown]],
        words: Wording,
    ):
        self.checker, self.shown, self.words = checker, shown, words
        self.likelihood = self._likelihoods(candidates)
        self.cheapest = self._cheapest()

    def _likelihoods(self, candidates: Candidates) -> dict[tuple[int, int], float]:
        """By the identity of the checked part and the row in it."""
        found: dict[tuple[int, int], float] = {}
        every = [each for plans in self.shown.values() for each in plans]
        parts = {id(each.checked): each.checked for each in every}
        for key, part in parts.items() if candidates.log_prob else ():
            rows = np.array([each.row for each in every if each.checked is part])
            assert candidates.log_prob is not None
            values = candidates.log_prob(
                part.table.iloc[rows], self.checker.X.iloc[part.person[rows]]
            )
            found |= {(key, int(row)): float(v) for row, v in zip(rows, values, strict=True)}
        return found

    def _cheapest(self) -> dict[int, Evidence]:
        """Of those whose first plan has one or two changes: is it the cheapest of its kind?"""
        firsts = {i: plans[0] for i, plans in self.shown.items() if plans}
        small = {i: s for i, s in firsts.items() if s.checked.moved[s.row].sum() <= 2}
        cost = np.array([s.checked.cost[s.row] for s in small.values()])
        proven = self.checker.cheapest(np.array(list(small), dtype=int), cost)
        return {i: each for i, each in zip(small, proven, strict=True) if each is not None}

    def plan(self, i: int) -> Plan:
        first, *rest = (self._one(i, each) for each in self.shown[i])
        return replace(first, cheapest=self.cheapest.get(i), alternatives=tuple(rest))

    def _one(self, i: int, shown: _Shown) -> Plan:
        part, row = shown.checked, shown.row
        likelihood = self.likelihood.get((id(part), row), np.nan)
        return Plan(
            *_about(self.checker, i, "ok"),
            changes=self.checker.changes(part, row, self.words),
            consequences=self.checker.consequences(part, row, self.words),
            score_after=float(part.score[row]),
            cost=float(part.cost[row]),
            log_likelihood=likelihood if np.isfinite(likelihood) else None,
            row=Row(part.table, row),
            language=self.words,
        )


def _no_plan(
    checker: PlanChecker,
    candidates: Candidates,
    lost: np.ndarray,
    own: Checked,
    rests_on: dict[int, Evidence],
    words: Wording,
) -> dict[int, Plan]:
    """The answer for people for whom nothing holds, with its reason."""
    if len(lost) == 0:
        return {}
    opened = checker.blocking_rules(lost, words)
    codes = candidates.reason()[np.searchsorted(checker.rejected, lost)]
    may = checker.trial.may_change(checker.rules, lost)
    plans = {}
    for i, can, code in zip(map(int, lost), may, codes, strict=True):
        if not can:
            code = "nothing-may-change"
        elif opened[i]:
            code = "rules-block"
        elif not own.keeps_rules[own.of(i)].any():
            code = "rule-broken"
        plans[i] = Plan(
            *_about(checker, i, "no-plan"),
            reason_code=str(code),
            evidence=rests_on[i],
            blocking_rules=opened[i],
            language=words,
        )
    return plans
