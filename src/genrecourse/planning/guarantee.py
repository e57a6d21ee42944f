"""Check every candidate, and return only plans that h accepts and that break no rule.

Each candidate of a method is decoded to original units and dtypes, scored by the user's own h, and
checked against every rule. Candidates that fail are dropped. If a person has no candidate left, all
changes of one and of two features are tried (`enumeration`); if one of them passes, it is the plan.
Otherwise the person gets "no-plan", with the evidence and the rules that alone prevent a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from genrecourse.planning.cells import Cells
from genrecourse.planning.choice import Chooser, Shown, Standard
from genrecourse.planning.effort import Effort
from genrecourse.planning.enumeration import Enumeration, EnumerationResult, ObservedValues
from genrecourse.planning.over_limit import over_limit
from genrecourse.planning.plans import (
    BlockingRule,
    Change,
    Evidence,
    Plan,
    Plans,
    Row,
    Safety,
)
from genrecourse.planning.remembered import row_keys
from genrecourse.table.encoding import TOLERANCE, Array, unchanged
from genrecourse.table.schema import plain

if TYPE_CHECKING:
    from genrecourse.planning.wording import Wording
    from genrecourse.rules.book import RuleBook
    from genrecourse.rules.problem import People
    from genrecourse.rules.relaxations import RelaxedRule

WEIGHED = 16  # sets of features per person that `try_all` returns, the cheapest ones


@dataclass(frozen=True)
class Checked:
    """Candidates after decoding, scoring and checking; row i is a candidate of person[i].

    >>> yes = np.array([True, True, False])
    >>> rows = pd.DataFrame({"income": [30, 40, 20]})
    >>> F, none = np.zeros((3, 1)), np.zeros((3, 1), dtype=bool)
    >>> known = (F, ~none, none, F[:, 0], F[:, 0], yes, yes)
    >>> checked = Checked(np.array([0, 0, 2]), lambda which: rows.iloc[which], *known)
    >>> checked.of(0), checked.table["income"].tolist()
    (array([0, 1]), [30, 40, 20])
    """

    person: np.ndarray  # (m,) positions in the table, ascending
    decode: Callable[[np.ndarray], pd.DataFrame]  # returns these candidates in original units
    F: Array  # (m, d) the features of the decoded candidates
    moved: np.ndarray  # (m, d) booleans: what the person changes
    followed: np.ndarray  # (m, d) booleans: what then changes by itself (`roles`)
    score: Array  # (m,) by the user's own h
    cost: Array  # (m,)
    holds: (
        np.ndarray
    )  # (m,) booleans: h accepts the row, it breaks no rule, and it changes something
    keeps_rules: np.ndarray  # (m,) booleans

    @cached_property
    def table(self) -> pd.DataFrame:
        """All candidates in original units. Few are shown, so they are decoded when asked for."""
        return self.decode(np.arange(len(self.person)))

    @cached_property
    def cells(self) -> Cells:
        """The cells of `table`."""
        return Cells(self.table)

    def of(self, i: int) -> np.ndarray:
        """Return the row numbers of the candidates of one person."""
        return np.arange(*np.searchsorted(self.person, [i, i + 1]))

    def part(self, start: int, stop: int) -> Checked:
        """Return the candidates from start to stop."""
        names = [each.name for each in fields(self) if each.name != "decode"]
        parts = {name: getattr(self, name)[start:stop] for name in names}
        return Checked(**parts | {"decode": lambda rows: self.decode(rows + start)})


def evidence(found: EnumerationResult, draws: int = 0) -> Evidence:
    """Return what an enumeration tried, as the evidence of a plan.

    >>> evidence(EnumerationResult(np.zeros((0, 2)), np.zeros(0), 40, 20, True), draws=64)
    Evidence(proven=True, asked=40, most=20, draws=64, observed=0)
    """
    observed = found.observed if found.is_all else 0
    return Evidence(found.is_all, found.asked, found.most, draws, observed)


class PlanChecker:
    """Checks candidates for people against h and the rules.

    observed: the values that an enumeration tries.
    rules: the rules of the schema or of a request, for all these people.
    relaxed: returns the rule books with one rule less each, to find blocking rules.
    unread: (d,) the features that h does not read; None: not known.

    >>> from genrecourse.evaluation.example_tables import example_checker
    >>> checked = example_checker().check(np.array([0, 0]), np.array([[0.5], [1.0]]))
    >>> checked.table["income"].tolist(), checked.holds
    ([25.0, 40.0], array([False,  True]))
    """

    def __init__(
        self,
        people: People,
        observed: ObservedValues,
        rules: RuleBook,
        relaxed: Callable[[], Sequence[RelaxedRule]],
        unread: np.ndarray | None = None,
    ):
        problem = people.problem
        self.X, self.F, self.score = people.X, people.F, people.score
        self.rules, self.relaxed = rules, relaxed
        self.h, self.encoder, self.cost = problem.classifier, problem.encoder, problem.cost
        self.follows = problem.rules.derived.mask
        self.trial = Enumeration(people, observed, unread)
        self._before = Cells(people.X)
        self.rejected = np.flatnonzero(people.rejected)
        # the least cost of an accepted change of one or two features, as far as it is known
        self._least = np.full(len(self.X), np.inf)

    def check(self, person: np.ndarray, F_plus: Array, rules: RuleBook | None = None) -> Checked:
        """Decode, score and check candidates F_plus (m, d) for the people at these positions.

        rules: for all people of X; None: the rules of this checker.
        """
        rules = rules or self.rules
        if len(person) == 0:
            nothing = np.zeros((0, self.F.shape[1]))
            none, no = np.zeros(0), np.zeros(0, dtype=bool)
            nowhere = nothing > 0
            known = (nothing, nowhere, nowhere, none, none, no, no)
            return Checked(person, lambda rows: self.X.iloc[:0], *known)
        mine, before = rules.take(person), self.F[person]
        derived = mine.with_derived(before, F_plus)
        # a formula without a value cannot be decoded: use x itself, which never counts as a plan
        lost = (np.isnan(derived) & ~np.isnan(before)).any(axis=1, keepdims=True)
        asked = np.where(lost, before, derived)
        F = self.trial.written(person, asked)

        def decode(rows: np.ndarray) -> pd.DataFrame:
            return self.trial.decoded(person[rows], F[rows])

        differs = ~unchanged(before, F)
        moved, followed = differs & ~self.follows, differs & self.follows
        Z = self.encoder.from_features(F)
        score = self._scored(person, decode, F, Z, asked)
        price = self.cost(self.encoder.from_features(before), Z)
        kept = mine.feasible(before, F)
        holds = (score > self.h.cutoff) & kept & moved.any(axis=1)
        if rules is self.rules:
            small = holds & (moved.sum(axis=1) <= 2)
            np.minimum.at(self._least, person[small], np.asarray(price)[small])
        return Checked(person, decode, F, moved, followed, score, np.asarray(price), holds, kept)

    def _scored(
        self,
        person: np.ndarray,
        decode: Callable[[np.ndarray], pd.DataFrame],
        F: Array,
        Z: Array,
        asked: Array,
    ) -> Array:
        """Return (m,) h's scores of rows that are known as F and as Z, and can be decoded.

        asked: (m, d) the rows before they were decoded, as an enumeration knows them.
        """
        keys, known = row_keys(person, F), self.trial.known
        before = row_keys(person, asked)
        known |= {
            key: known[old]
            for key, old in zip(keys, before, strict=True)
            if key not in known and old in known
        }
        new = {key: k for k, key in enumerate(keys) if key not in known}
        if new:
            rows = np.array(list(new.values()))
            if self.h.reads(self.encoder):
                found = self.h.score_encoded(Z[rows], self.encoder, self.X.iloc[:1])
            else:
                found = self.h.score(decode(rows))
            known |= dict(zip(new, found.tolist(), strict=True))
        return np.array([known[key] for key in keys])

    def confidence(self, person: np.ndarray, F: Array) -> Array:
        """Return (m,) h's confidence in rows that `check` has returned, without asking again."""
        return self.h.confidence(np.array([self.trial.known[key] for key in row_keys(person, F)]))

    def price(self, F: Array, F_plus: Array) -> Array:
        """Return (m,) the cost of rows F_plus (m, d) of people F (m, d)."""
        return np.asarray(self.cost(*(self.encoder.from_features(rows) for rows in (F, F_plus))))

    # ---- enumeration --------------------------------------------------------------------------

    def try_some(self, people: np.ndarray) -> Checked:
        """Return the cheapest accepted changes of one and of two features, of a few that are tried.

        It is quick and proves nothing.
        """
        return self.check(*self._found(people, self.trial.quick(self.rules, people), WEIGHED))

    def try_all(self, people: np.ndarray) -> tuple[Checked, list[EnumerationResult]]:
        """Return the cheapest accepted changes of one and of two features, and what was tried.

        Each person gets at most `WEIGHED` candidates, one per set of changed features.
        """
        found = self.trial.search(self.rules, people)
        return self.check(*self._found(people, found, WEIGHED)), found

    def _found(
        self, people: np.ndarray, found: Sequence[EnumerationResult], most: int
    ) -> tuple[np.ndarray, Array]:
        """Return the first rows that were found for each of these people, and whose they are.

        Rows that also change what h does not read are left out: what is left of them is there, too.
        """
        rows = [
            self._read_only(self.F[i], each.F_plus) for i, each in zip(people, found, strict=True)
        ]
        person = np.repeat(people, [min(most, len(each)) for each in rows])
        nothing = np.zeros((0, self.F.shape[1]))
        return person, np.concatenate([nothing, *(each[:most] for each in rows)])

    def _read_only(self, x: Array, F_plus: Array) -> Array:
        """Return the rows that change only features that h reads; if there are none, all rows."""
        read = ~(~unchanged(x[None], F_plus) & self.trial.unread).any(axis=1)
        return F_plus[read] if read.any() else F_plus

    def cheapest(self, people: np.ndarray, cost: Array) -> list[Evidence | None]:
        """Return the evidence that no change of one or two features costs less than `cost`.

        None if a cheaper change exists, or if there are too many pairs to try. Where `check` has
        seen a cheaper one, nothing is tried.
        """
        below = cost - TOLERANCE
        unknown = np.flatnonzero(~(self._least[people] < below))
        found = self.trial.search(self.rules, people[unknown], below=below[unknown], is_brief=True)
        proven: list[Evidence | None] = [None] * len(people)
        for k, each in zip(unknown, found, strict=True):
            proven[k] = None if len(each.cost) or not each.most else evidence(each)
        return proven

    def blocking_rules(
        self, people: np.ndarray, words: Wording
    ) -> dict[int, tuple[BlockingRule, ...]]:
        """Return the rules that alone prevent a plan of each person, the cheapest change first."""
        found_rules: dict[int, list[BlockingRule]] = {int(i): [] for i in people}
        for relaxed in self.relaxed() if len(people) else ():
            # touching is None for a rule on the whole plan or on a derived value
            some, touching = people, None
            if relaxed.binds is not None:
                some = people[relaxed.binds[people]]
            if relaxed.feature is not None and not relaxed.feature.follows:
                touching = self.encoder.schema.names.index(relaxed.feature.name)
                more = self.trial.opens(self.rules, relaxed.rules, some, touching)
                some = some[more]  # for the other people, the rule excludes no value
            if len(some) == 0:
                continue
            found = self.trial.search(relaxed.rules, some, touching=touching)
            checked = self.check(*self._found(some, found, 1), relaxed.rules)
            for row in np.flatnonzero(checked.holds):
                rule = self._blocking_rule(relaxed, checked, int(row), words)
                found_rules[int(checked.person[row])].append(rule)
        return {i: tuple(sorted(each, key=lambda r: r.cost)) for i, each in found_rules.items()}

    def _blocking_rule(
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
        """Return what the person changes in row `row`, from the cells that h scored."""
        return self._changes_of(checked, row, checked.moved[row], words)

    def consequences(self, checked: Checked, row: int, words: Wording) -> tuple[Change, ...]:
        """Return what changes by itself in row `row`."""
        return self._changes_of(checked, row, checked.followed[row], words)

    def _changes_of(
        self, checked: Checked, row: int, which: np.ndarray, words: Wording
    ) -> tuple[Change, ...]:
        i = int(checked.person[row])
        return tuple(
            Change(
                feature,
                self._before(feature, i),
                checked.cells(feature, row),
                words,
            )
            for j, feature in enumerate(self.encoder.schema)
            if which[j]
        )


@dataclass(frozen=True)
class Candidates:
    """The candidates of a method for the people whom h rejects, in their order.

    >>> found = Candidates(
    ...     F_plus=np.zeros((3, 2, 5)),
    ...     worth=lambda person, F_plus: np.zeros(len(person)),
    ...     reason=lambda: np.full(3, "not-accepted"),
    ...     log_prob=None,
    ...     tried=64,
    ... )
    >>> found.keep_first
    True
    """

    F_plus: Array  # (N, k, d): k candidates per person, the method's first choice first
    worth: Callable[[np.ndarray, Array], Array]  # of each x_plus for these people, in Score
    reason: Callable[[], np.ndarray]  # (N,) the reason codes if no candidate passes
    log_prob: Callable[[Array, Array], Array] | None  # of rows F_plus given rows F
    tried: int  # how many x_plus the method looked at per person
    keep_first: bool = True  # show the first choice first if it holds; else the best candidate


def make_plans(
    checker: PlanChecker,
    candidates: Candidates,
    n: int,
    words: Wording,
    standard: Standard,
) -> Plans:
    """Return up to n plans per person that all hold, or the reason why there is none.

    candidates: for the rejected people of the checker. words: the language of the plans.
    standard: what a plan should reach to be shown first.

    >>> from genrecourse.evaluation.example_tables import example_checker
    >>> from genrecourse.planning.sturdy import Sturdiness
    >>> from genrecourse.planning.wording import english
    >>> F_plus = np.full((2, 1, 1), 2 / 3)  # for each of two rejected people: an income of 30
    >>> found = Candidates(F_plus, lambda person, F: np.ones(len(F)), None, None, tried=1)
    >>> standard = Standard(Sturdiness(lambda person, F: np.full(len(F), 32)))
    >>> plans = make_plans(example_checker(), found, 1, english(), standard)
    >>> plans[0].changes[0].to_text(), plans[3].status
    ('income: 10 → 30', 'already-accepted')
    """
    _, k, d = candidates.F_plus.shape
    offered = np.repeat(checker.rejected, k), candidates.F_plus.reshape(-1, d)
    parts = [checker.check(*offered)]
    helped = np.isin(checker.rejected, np.concatenate([p.person[p.holds] for p in parts]))
    tried = checker.rejected[~helped]
    every, found = checker.try_all(tried)
    parts.append(every)
    tried_for = {
        int(i): evidence(each, candidates.tried) for i, each in zip(tried, found, strict=True)
    }
    chooser = Chooser(checker, candidates, standard)
    shown = chooser.choose(parts, n, checker.rejected)
    lacking = np.setdiff1d(chooser.lacking(shown, n), tried)
    shown |= chooser.choose([*parts, checker.try_some(lacking)], n, lacking)
    lost = np.array([i for i, plans in shown.items() if not plans], dtype=int)
    maker = _PlanMaker(checker, shown, words, standard.sturdiness.are_own)
    nothing = _no_plan(checker, candidates, lost, parts[0], tried_for, words)
    plans = []
    for i in range(len(checker.X)):
        if i in nothing:
            plans.append(nothing[i])
        elif i in shown:
            plans.append(maker.plan(i))
        else:
            plans.append(Plan(*_about(checker, i, "already-accepted"), language=words))
    return Plans(tuple(plans))


def _about(checker: PlanChecker, i: int, status: str) -> tuple[object, str, float, float]:
    return plain(checker.X.index[i]), status, float(checker.score[i]), float(checker.h.cutoff)


class _PlanMaker:
    """Turns the rows that are shown into plans."""

    def __init__(
        self, checker: PlanChecker, shown: dict[int, list[Shown]], words: Wording, are_own: bool
    ):
        self.checker, self.shown, self.words, self.are_own = checker, shown, words, are_own
        self.cheapest = self._cheapest()

    def _cheapest(self) -> dict[int, Evidence]:
        """Return the evidence for people whose first plan is the cheapest of 1 or 2 changes."""
        firsts = {i: plans[0] for i, plans in self.shown.items() if plans}
        small = {i: s for i, s in firsts.items() if s.checked.moved[s.row].sum() <= 2}
        cost = np.array([s.checked.cost[s.row] for s in small.values()])
        proven = self.checker.cheapest(np.array(list(small), dtype=int), cost)
        return {i: each for i, each in zip(small, proven, strict=True) if each is not None}

    def plan(self, i: int) -> Plan:
        first, *rest = (self._one(i, each) for each in self.shown[i])
        return replace(first, cheapest=self.cheapest.get(i), alternatives=tuple(rest))

    def _one(self, i: int, shown: Shown) -> Plan:
        part, row, checker = shown.checked, shown.row, self.checker
        features = checker.encoder.schema.features
        safety = {
            features[j].name: Safety(*shares, self.are_own) for j, shares in shown.safety.items()
        }
        return Plan(
            *_about(checker, i, "ok"),
            changes=tuple(
                replace(change, safety=safety.get(change.feature.name))
                for change in checker.changes(part, row, self.words)
            ),
            consequences=checker.consequences(part, row, self.words),
            score_after=float(part.score[row]),
            cost=float(part.cost[row]),
            log_likelihood=shown.likelihood if np.isfinite(shown.likelihood) else None,
            effort=Effort.of(
                checker.rules.efforts, checker.F[i], part.F[row], int(part.moved[row].sum())
            ),
            retrained=shown.shares[0],
            imprecise=shown.shares[1],
            own_copies=self.are_own,
            is_fragile=shown.is_fragile,
            is_beyond=shown.is_beyond,
            minimal=None if shown.minimal is None else self._one(i, shown.minimal),
            row=Row(part.table, row),
            language=self.words,
        )


def _no_plan(
    checker: PlanChecker,
    candidates: Candidates,
    lost: np.ndarray,
    own: Checked,
    tried_for: dict[int, Evidence],
    words: Wording,
) -> dict[int, Plan]:
    """Return "no-plan" with its reason for people without a candidate that holds."""
    if len(lost) == 0:
        return {}
    blocking = checker.blocking_rules(lost, words)
    codes = candidates.reason()[np.searchsorted(checker.rejected, lost)]
    may = checker.trial.may_change(checker.rules, lost)
    over = over_limit(checker, lost, own)
    plans = {}
    for i, can, code in zip(map(int, lost), may, codes, strict=True):
        if not can:
            code = "nothing-may-change"
        elif i in over:
            code = over[i].code
        elif blocking[i]:
            code = "rules-block"
        elif not own.keeps_rules[own.of(i)].any():
            code = "rule-broken"
        plans[i] = Plan(
            *_about(checker, i, "no-plan"),
            reason_code=str(code),
            nearest=over[i].nearest if can and i in over else None,
            evidence=tried_for[i],
            blocking_rules=blocking[i],
            language=words,
        )
    return plans
