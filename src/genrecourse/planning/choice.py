"""Choose the plans of each person: needed, sturdy, small and different, the best first.

1. Candidates that are sturdy come before fragile ones; among equals, the expected Score counts.
2. Every change that is not needed is undone (`needed`). What sturdiness needs and h does not is
   labelled, and `minimal` is the plan without it.
3. Plans with more changes than the cap, and plans with a change too small to matter, come last.
4. No plan contains another one, and no plan is shown before one that is better in every number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from genrecourse.planning.binomial import Share
from genrecourse.planning.diversity import pick_diverse
from genrecourse.planning.needed import needed_only
from genrecourse.planning.remembered import Remembered
from genrecourse.table.encoding import TOLERANCE

if TYPE_CHECKING:
    from genrecourse.planning.guarantee import Candidates, Checked, PlanChecker
    from genrecourse.planning.sturdy import Sturdiness
    from genrecourse.table.encoding import Array

MOST_CHANGES = 5  # of a plan, unless every sturdy plan has more
SPARE = 2  # further candidates whose changes are undone: some turn out to be the same plan
AT_ONCE = 2  # trials of a candidate whose noise is tried together
TINY = 0.005  # share of the usual range of a number; smaller changes are not worth asking for

Shares = tuple[Share | None, Share]  # of the retrained models, if there are any; of the noisy tries


@dataclass(frozen=True)
class Standard:
    """What a plan should reach to be shown first.

    most_changes: None: no cap.

    >>> from genrecourse.planning.sturdy import Sturdiness
    >>> Standard(Sturdiness(lambda person, F: np.full(len(F), 32))).most_changes
    5
    """

    sturdiness: Sturdiness
    most_changes: int | None = MOST_CHANGES
    # (m, d) rows F and F_plus -> (m,): what a policy wants less of, time or money; None: it has no
    # wish, and plans are in the order of the method
    less: Callable[[Array, Array], Array] | None = None


@dataclass(frozen=True)
class Shown:
    """One row of checked candidates that is shown as a plan.

    >>> from genrecourse.evaluation.example_tables import example_checker
    >>> checked = example_checker().check(np.array([0]), np.array([[1.0]]))
    >>> Shown(checked, 0, shares=(None, Share(32, 32))).changes
    array([0])
    """

    checked: Checked
    row: int
    shares: Shares  # how sturdy it is
    likelihood: float = np.nan
    is_fragile: bool = False
    is_beyond: bool = False  # it has more changes than the cap
    is_tiny: bool = False  # it has a change that is too small to matter
    safety: dict[int, Shares] = field(default_factory=dict)  # features only sturdiness needs
    minimal: Shown | None = None  # without those, if there are any
    wanted: float = 0.0  # what the policy wants less of: months or money; 0: it has no wish

    @property
    def moved(self) -> np.ndarray:
        """(d,) booleans: what the person changes."""
        return np.asarray(self.checked.moved[self.row])

    @property
    def changes(self) -> np.ndarray:
        """The numbers of the features that the person changes."""
        return np.flatnonzero(self.moved)

    def is_better_than(self, other: Shown) -> bool:
        """Return whether it is as good in every number that is shown, and better in one."""
        mine, theirs = self._numbers, other._numbers
        return bool((mine >= theirs).all() and (mine > theirs).any())

    @cached_property
    def _numbers(self) -> Array:
        counts = [share.k for share in self.shares if share is not None]
        # as plans show them: a difference that nobody sees does not count
        likely = np.round(self.likelihood, 1) if np.isfinite(self.likelihood) else -np.inf
        cost = np.round(self.checked.cost[self.row], 2)
        return np.array([-len(self.changes), -cost, likely, *counts], dtype=float)


class Chooser:
    """Chooses among checked candidates.

    >>> from genrecourse.evaluation.example_tables import example_checker
    >>> from genrecourse.planning.guarantee import Candidates
    >>> from genrecourse.planning.sturdy import Sturdiness
    >>> checker = example_checker()
    >>> offer = Candidates(np.ones((2, 1, 1)), lambda person, F: F[:, 0], None, None, tried=1)
    >>> standard = Standard(Sturdiness(lambda person, F: np.full(len(F), 32)))
    >>> parts = [checker.check(np.array([0]), np.array([[1.0]]))]
    >>> chosen = Chooser(checker, offer, standard).choose(parts, 1, np.array([0]))
    >>> len(chosen[0])
    1
    """

    def __init__(self, checker: PlanChecker, candidates: Candidates, standard: Standard):
        self.checker, self.candidates, self.standard = checker, candidates, standard
        self.sturdy = standard.sturdiness
        self.smallest = smallest_steps(checker)
        self._worth = Remembered(candidates.worth)
        self._likelihood = Remembered(self._asked_likelihood)

    def choose(
        self, parts: Sequence[Checked], n: int, people: np.ndarray
    ) -> dict[int, list[Shown]]:
        """Return up to n plans of each of these people, in the order to show them.

        parts: the method's candidates, and then those of enumerations.
        """
        picked = self._picked(parts, n, people)
        person = np.repeat(list(picked), [len(rows) for rows in picked.values()]).astype(int)
        rows = [row for rows in picked.values() for row in rows]
        if not rows:
            return {int(i): [] for i in people}
        found = self._needed(person, np.stack(rows), with_sturdiness=True)
        checked = self.checker.check(person, found)
        every = self._described(checked)
        shown = {int(i): self._ordered([every[k] for k in checked.of(i)], n) for i in people}
        return self._labelled(shown)

    def lacking(self, shown: dict[int, list[Shown]], n: int) -> np.ndarray:
        """Return the people with fewer than n plans, or with a first plan that is only second best:
        fragile, too large, or with a tiny change."""
        found = [
            i
            for i, plans in shown.items()
            if len(plans) < n or plans[0].is_fragile or plans[0].is_beyond or plans[0].is_tiny
        ]
        return np.array(found, dtype=int)

    # ---- which candidates ----------------------------------------------------------------------

    def _picked(
        self, parts: Sequence[Checked], n: int, people: np.ndarray
    ) -> dict[int, list[Array]]:
        """Return the candidates of each person whose changes are examined, the best first."""
        person = np.concatenate([part.person for part in parts])
        holds = np.concatenate([part.holds for part in parts]) & np.isin(person, people)
        # the method's own first choice is the first row of a person in the first part
        first = np.zeros(len(person), dtype=bool)
        first[np.unique(parts[0].person, return_index=True)[1]] = self.candidates.keep_first
        F = np.concatenate([part.F for part in parts])[holds]
        moved = np.concatenate([part.moved for part in parts])[holds]
        person, first = person[holds], first[holds]
        worth = self._worth(person, F)
        sturdy = self.sturdy.voted(person, F)  # noise is for later: it asks h many times
        order = np.argsort(person, kind="stable")
        starts, stops = (np.searchsorted(person[order], people, side) for side in ("left", "right"))
        picked = {}
        for i, start, stop in zip(people, starts, stops, strict=True):
            mine = order[start:stop]
            best = mine[sturdy[mine]] if sturdy[mine].any() else mine
            own = np.flatnonzero(first[best])
            own_first = int(own[0]) if len(own) else None
            chosen = pick_diverse(moved[best], worth[best], n + SPARE, own_first)
            picked[int(i)] = [F[k] for k in best[chosen]]
        return picked

    # ---- what is needed ------------------------------------------------------------------------

    def _needed(self, person: np.ndarray, F_plus: Array, *, with_sturdiness: bool) -> Array:
        """Return (m, d) rows without the changes that neither h nor sturdiness needs.

        A row must not lose the share of either experiment that a sturdy row needs. Where it does
        not reach that share, only h is asked.
        """
        checker = self.checker
        F, rules = checker.F[person], checker.rules.take(person)

        def holds(which: np.ndarray, trial: Array) -> np.ndarray:
            checked = checker.check(person[which], trial)
            if not with_sturdiness:
                return checked.holds
            return self._sturdy_enough(person, F_plus, which, checked)

        return needed_only(
            F,
            F_plus,
            holds,
            lambda which, trial: checker.price(F[which], trial),
            lambda which, trial: rules.take(which).with_derived(F[which], trial),
            checker.follows,
        )

    def _sturdy_enough(
        self, person: np.ndarray, F_plus: Array, which: np.ndarray, trials: Checked
    ) -> np.ndarray:
        """Return (m,) booleans of trials of the candidates `which`, the cheapest first.

        A trial must reach the bars that its candidate reaches. Of votes it needs some more, if the
        candidate has them: among many trials, some reach the bar by chance. Only the first trial
        that holds counts, so noise is tried on a few of each candidate at a time.
        """
        votes, bars = self.sturdy.votes_of(person, F_plus), self.sturdy.bars
        bar = np.where(votes >= bars[0], np.minimum(votes, self.sturdy.safe_votes), 0)[which]
        ok = trials.holds & self.sturdy.voted(person[which], trials.F, bar)
        found, left = np.zeros(len(which), dtype=bool), np.flatnonzero(ok)
        while len(left):
            mine = which[left]
            place = np.arange(len(left)) - np.searchsorted(mine, mine)  # among its candidate's
            some, rest = left[place < AT_ONCE], left[place >= AT_ONCE]
            own = np.unique(which[some])
            both = np.concatenate([F_plus[own], trials.F[some]])
            tries = self.sturdy.counts(np.concatenate([person[own], person[which[some]]]), both)[1]
            bar = np.where(tries[: len(own)] >= bars[1], bars[1], 0)
            found[some] = tries[len(own) :] >= bar[np.searchsorted(own, which[some])]
            left = rest[~np.isin(which[rest], which[found])]
        return found

    def _labelled(self, shown: dict[int, list[Shown]]) -> dict[int, list[Shown]]:
        """Return the plans with the changes that only sturdiness needs, and without these."""
        plans = [(i, place) for i, mine in shown.items() for place in range(len(mine))]
        trials = [(i, place, j) for i, place in plans for j in shown[i][place].changes]
        if not trials:
            return shown
        person = np.array([i for i, *_ in trials])
        F_plus = np.stack([_row(shown[i][place]) for i, place, _ in trials])
        every, feature = np.arange(len(trials)), np.array([j for *_, j in trials])
        F_plus[every, feature] = self.checker.F[person, feature]
        checked = self.checker.check(person, F_plus)
        extra = np.flatnonzero(checked.holds)
        shares = self.sturdy.shares(person[extra], checked.F[extra])
        safety: dict[tuple[int, int], dict[int, Shares]] = {}
        for k, share in zip(extra, shares, strict=True):
            i, place, j = trials[k]
            safety.setdefault((i, place), {})[int(j)] = share
        less = self._minimal([(i, shown[i][place]) for i, place in safety])
        for (i, place), without, minimal in zip(safety, safety.values(), less, strict=True):
            shown[i][place] = replace(shown[i][place], safety=without, minimal=minimal)
        return shown

    def _minimal(self, plans: Sequence[tuple[int, Shown]]) -> list[Shown]:
        """Return these plans with nothing that h does not need."""
        if not plans:
            return []
        person = np.array([i for i, _ in plans])
        rows = np.stack([_row(plan) for _, plan in plans])
        order = np.argsort(person, kind="stable")
        found = self._needed(person[order], rows[order], with_sturdiness=False)
        made = self._described(self.checker.check(person[order], found))
        return [made[k] for k in np.argsort(order)]

    # ---- in which order ------------------------------------------------------------------------

    def _described(self, checked: Checked) -> list[Shown]:
        """Return every row as a plan that may be shown."""
        person, F = checked.person, checked.F
        likelihood = self._likelihood(person, F)
        sturdy, most = self.sturdy.holds(person, F), self.standard.most_changes
        size = np.abs(F - self.checker.F[person])
        tiny = (checked.moved & (size < self.smallest - TOLERANCE)).any(axis=1)
        shares, less = self.sturdy.shares(person, F), np.zeros(len(F))
        if self.standard.less is not None:
            less = self.standard.less(self.checker.F[person], F)
        return [
            Shown(
                checked,
                k,
                shares[k],
                float(likelihood[k]),
                is_fragile=not sturdy[k],
                is_beyond=most is not None and int(checked.moved[k].sum()) > most,
                is_tiny=bool(tiny[k]),
                wanted=float(less[k]),
            )
            for k in range(len(F))
        ]

    def _asked_likelihood(self, person: np.ndarray, F: Array) -> Array:
        if self.candidates.log_prob is None:
            return np.full(len(F), np.nan)
        return self.candidates.log_prob(F, self.checker.F[person])

    def _ordered(self, plans: list[Shown], n: int) -> list[Shown]:
        """Return at most n plans, none of which contains another one, the best first."""
        plans = sorted(
            plans, key=lambda plan: (plan.is_fragile, plan.is_beyond, plan.is_tiny, plan.wanted)
        )
        kept: list[Shown] = []
        for plan in plans:
            if kept and plan.is_fragile:
                break  # only the best of the fragile plans is shown, and only if all are fragile
            if len(kept) < n and not any(_contains(plan, one) for one in kept):
                kept.append(plan)
        if self.standard.less is not None:
            return kept  # the policy's wish comes before what is better in every other number
        best = next(
            (k for k, plan in enumerate(kept) if not any(one.is_better_than(plan) for one in kept)),
            0,
        )
        return kept[best : best + 1] + kept[:best] + kept[best + 1 :]


def smallest_steps(checker: PlanChecker) -> Array:
    """Return (d,) the smallest change of each number that is worth asking for; 0 for a category.

    It is the schema's `min_step`, or a small share of the usual range of the training rows.

    >>> from genrecourse.evaluation.example_tables import example_checker
    >>> smallest_steps(example_checker()).shape
    (1,)
    """
    steps = np.zeros(len(checker.encoder.blocks))
    for j, (feature, block) in enumerate(
        zip(checker.encoder.schema, checker.encoder.blocks, strict=True)
    ):
        values = checker.trial.observed.values[j]
        if feature.min_step is not None:
            steps[j] = feature.min_step / block.span
        elif not feature.is_category and len(values) > 1:
            low, high = np.quantile(values, [0.05, 0.95])
            steps[j] = TINY * (high - low)
    return steps


def _row(plan: Shown) -> Array:
    return np.asarray(plan.checked.F[plan.row])


def _contains(a: Shown, b: Shown) -> bool:
    """Return whether one of the plans changes everything that the other one changes."""
    both = a.moved & b.moved
    return bool((both == a.moved).all() or (both == b.moved).all())
