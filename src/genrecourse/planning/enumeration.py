"""Try every change of one and of two features, to *prove* statements about a person.

A search that finds nothing proves nothing. But if the values are limited to a finite list
(`ObservedValues`: the values of each feature in the training rows), all changes of one and of two
features can be tried. Then "there is no plan" and "no plan is cheaper" are proven, for up to two
changes and for these values. They are proven for every value that the rules allow if no number may
take further values: whole numbers that all occur, or values that a rule lists. The number of rows
that h scored, and the number of values that stand for all others, are part of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from genrecourse.planning.remembered import RowKey, row_keys
from genrecourse.table.encoding import TOLERANCE, Array, TableEncoder, whole_ends

if TYPE_CHECKING:
    from genrecourse.rules.book import RuleBook
    from genrecourse.rules.problem import People

Measure = Callable[[Array, Array], Array]  # (m, d) rows F and F_plus -> (m,): less is better

KEPT = 1000  # values per number that a model file contains, at most
MOST = (50, 30, 20, 12, 8)  # values per feature in pairs; the first that fits into BUDGET
QUICK = 8  # values per feature if nothing has to be proven; pairs are of the best value of each
BUDGET = 100_000  # pairs of changes per person, at most
FEW = 500  # the same, if the answer is worth little time: a network that reads Z is quick
BATCH = 8_192  # rows that h scores at once: few enough to stay in the processor's cache
DOUBT = 1e-6  # share of the score range around the cutoff where h scores again in original units
BETWEEN = 50  # values to try between two limits if the rules allow no value of the training rows
PEOPLE = 500  # people at once: bounds memory
REMEMBERED = 100_000  # scores that are remembered, about


# ---- the values -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ObservedValues:
    """The values of each feature on the scale of F, ascending, without "missing".

    >>> from genrecourse.table.schema import Schema
    >>> X = pd.DataFrame({"income": [10, 40, 20], "job": ["cook", "nurse", "cook"]})
    >>> encoder = TableEncoder(Schema.infer(X)).fit(X)
    >>> observed = ObservedValues.of(encoder.features(X), encoder)
    >>> [values.round(2).tolist() for values in observed.values]
    [[0.0, 0.33, 1.0], [0.0, 1.0]]
    """

    values: tuple[Array, ...]

    @classmethod
    def of(cls, F: Array, encoder: TableEncoder) -> ObservedValues:
        """Return the levels of each category, and the values of each number in the rows F."""
        values = []
        for j, (feature, block) in enumerate(zip(encoder.schema, encoder.blocks, strict=True)):
            if feature.is_category:
                values.append(np.arange(len(feature.categories), dtype=float))
                continue
            seen = F[~np.isnan(F[:, j]), j]
            if feature.decimals is not None:  # a plan has no more decimals than the schema
                whole = np.round(block.low + seen * block.span, feature.decimals)
                seen = (whole - block.low) / block.span
            values.append(thin(np.unique(seen), KEPT))
        return cls(tuple(values))

    @property
    def cut(self) -> np.ndarray:
        """(d,) booleans: the training rows may have further values of the feature."""
        return np.array([len(values) >= KEPT for values in self.values])


def thin(values: np.ndarray, most: int) -> np.ndarray:
    """Return at most `most` of the values, evenly spaced by position, with the first and the last.

    >>> thin(np.arange(100), 4)
    array([ 0, 33, 66, 99])
    """
    if len(values) <= most:
        return values
    return values[_spread(len(values), most)]


@lru_cache(maxsize=4_096)
def _spread(n: int, most: int) -> np.ndarray:
    """Return (most,) places among n, evenly spaced."""
    places = np.linspace(0, n - 1, most).round().astype(int)
    places.flags.writeable = False  # it is shared
    return places


# ---- the changes ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Moves:
    """Changes for one person: move i sets two features to two values.

    A single change has the same feature and value twice.

    >>> moves = Moves(np.array([[0, 0], [0, 1]]), np.array([[0.9, 0.9], [0.9, 1.0]]), np.zeros(2))
    >>> moves.rows(np.array([0.2, 0.0]))
    array([[0.9, 0. ],
           [0.9, 1. ]])
    """

    feature: np.ndarray  # (m, 2)
    value: Array  # (m, 2)
    cost: Array  # (m,)

    def __len__(self) -> int:
        return len(self.cost)

    def take(self, which: np.ndarray) -> Moves:
        """Return the selected moves."""
        return Moves(self.feature[which], self.value[which], self.cost[which])

    def rows(self, x: Array) -> Array:
        """Return (m, d): x (d,) after each move."""
        F_plus, every = np.repeat(x[None], len(self), axis=0), np.arange(len(self))
        for side in (0, 1):
            F_plus[every, self.feature[:, side]] = self.value[:, side]
        return F_plus


@dataclass(frozen=True)
class EnumerationResult:
    """The cheapest accepted change of each set of features, for one person.

    >>> found = EnumerationResult(np.array([[0.9, 0.0]]), np.array([0.7]), 12, 3, is_all=True)
    >>> len(found.cost), found.asked
    (1, 12)
    """

    F_plus: Array  # (k, d), cheapest first
    cost: Array  # (k,)
    asked: int  # number of rows that h scored
    most: int  # values per feature in pairs, at most; 0: there were too many pairs to try
    is_all: bool  # no value of the training rows was left out, neither alone nor in pairs
    # values that were tried of numbers that may take others, too; 0: every allowed value was tried
    observed: int = 0


@dataclass(frozen=True)
class _PersonMoves:
    """The changes of one person that h has to score."""

    person: int
    moves: Moves
    most: int  # as in `EnumerationResult`
    is_all: bool
    observed: int = 0


@dataclass(frozen=True)
class _Open:
    """The values of one feature that are tried for some people."""

    values: list[Array]  # of each person
    is_between: np.ndarray  # (n,) none of them occurs in the training rows
    leaves: np.ndarray  # (n,) the rules allow further values, which are not tried

    def occurs(self, place: int) -> bool:
        """Whether values of the training rows are tried for this person."""
        return len(self.values[place]) > 0 and not self.is_between[place]


class Enumeration:
    """Tries changes for people and asks h about them.

    >>> from genrecourse.evaluation.example_tables import example_checker
    >>> checker = example_checker()
    >>> (found,) = checker.trial.search(checker.rules, np.array([0]))
    >>> found.cost.round(2), found.asked, found.is_all
    (array([0.67]), 3, True)
    """

    def __init__(self, people: People, observed: ObservedValues, unread: np.ndarray | None = None):
        problem = people.problem
        self.X, self.F, self.observed = people.X, people.F, observed
        self.h, self.encoder, self.cost = problem.classifier, problem.encoder, problem.cost
        self.reads_Z = self.h.reads(self.encoder)
        self.known: dict[RowKey, float] = {}  # scores: h is not asked twice about a row
        # features that h does not read: changing them helps nobody
        self.unread = np.zeros(len(observed.values), dtype=bool) if unread is None else unread

    def search(
        self,
        rules: RuleBook,
        people: np.ndarray,
        *,
        below: Array | None = None,
        touching: int | None = None,
        is_brief: bool = False,
        measure: Measure | None = None,
    ) -> list[EnumerationResult]:
        """Return, for each of these people (positions in X), the changes that h and rules accept.

        rules: for all people of X.
        below: (len(people),) return only changes that cost less.
        touching: return only changes of this feature.
        is_brief: try few pairs, unless h is quick.
        measure: what makes a change cheap; None: its cost.
        """
        budget = FEW if is_brief and not self.reads_Z else BUDGET
        most = np.full(len(people), np.inf) if below is None else below
        found: list[EnumerationResult] = []
        batch: list[_PersonMoves] = []
        for i in range(0, len(people), PEOPLE):
            part = people[i : i + PEOPLE]
            mine = rules.take(part)
            tried = [self._open(mine, part, j) for j in range(len(self.observed.values))]
            singles = self._singles(part, [each.values for each in tried])
            for place, (single, limit) in enumerate(
                zip(singles, most[i : i + PEOPLE], strict=True)
            ):
                moves, most_values, is_all = _moves(single, limit, touching, budget)
                is_all &= not self.observed.cut[single.feature].any()
                parts = [each for each in tried if each.leaves[place]]
                is_all &= all(each.occurs(place) for each in parts)
                stand = sum(len(each.values[place]) for each in parts)
                batch.append(_PersonMoves(int(part[place]), moves, most_values, is_all, stand))
                if sum(len(each.moves) for each in batch) >= BATCH:
                    found += self._accepted(rules, batch, measure)
                    batch = []
        return found + self._accepted(rules, batch, measure)

    def quick(self, rules: RuleBook, people: np.ndarray) -> list[EnumerationResult]:
        """Return accepted changes of one feature, and of two features with the best value of each.

        The best value of a feature is the one with the highest score. It proves nothing.
        """
        if len(people) == 0:
            return []
        mine = rules.take(people)
        open_ = [self._few(mine, people, j) for j in range(len(self.observed.values))]
        singles = list(self._singles(people, open_))
        sizes = [len(single) for single in singles]
        person = np.repeat(people, sizes)
        nothing = np.zeros((0, self.F.shape[1]))
        rows = [single.rows(self.F[i]) for i, single in zip(people, singles, strict=True)]
        F_plus = np.concatenate([nothing, *rows])
        F_plus = rules.take(person).with_derived(self.F[person], F_plus)
        scores = np.split(self.score(person, F_plus), np.cumsum(sizes)[:-1])
        batch = [
            _PersonMoves(int(i), _with_pairs_of_best(single, score), 1, is_all=False)
            for i, single, score in zip(people, singles, scores, strict=True)
        ]
        return self._accepted(rules, batch)

    def _few(self, rules: RuleBook, people: np.ndarray, j: int) -> list[Array]:
        """Return a few values of feature j for each person; none if h does not read it."""
        if self.unread[j]:
            return [np.zeros(0)] * len(people)
        return [thin(values, QUICK) for values in self._open(rules, people, j).values]

    def may_change(self, rules: RuleBook, people: np.ndarray) -> np.ndarray:
        """Return (len(people),) booleans: the rules allow the person to change something."""
        mine, answer = rules.take(people), np.zeros(len(people), dtype=bool)
        for j in range(len(self.observed.values)):
            open_ = self._open(mine, people, j).values
            answer |= np.array([len(each) > 0 for each in open_], dtype=bool)
        return answer

    def opens(self, now: RuleBook, then: RuleBook, people: np.ndarray, j: int) -> np.ndarray:
        """Return (len(people),) booleans: `then` allows values of feature j that `now` does not."""
        pair = (self._open(rules.take(people), people, j).values for rules in (now, then))
        return np.array([len(np.setdiff1d(b, a)) > 0 for a, b in zip(*pair, strict=True)], bool)

    def _open(self, rules: RuleBook, people: np.ndarray, j: int) -> _Open:
        """Return the values of feature j that are tried for each person.

        The values come from the training rows and from rules that name values. If the rules allow
        none of these for a number, the ends of the allowed range and some values in between are
        used.
        """
        seen, (named, given) = self.observed.values[j], rules.named(j)
        values = np.unique(np.concatenate([seen, named]))
        own, others = self.F[people, j][:, None], values[None, :]
        same = (
            np.abs(own - others) <= TOLERANCE
        )  # False for a missing value: every value is a change
        theirs = given[:, None] | np.isin(values, seen)  # without values named for other people
        mask = np.asarray(rules.allowed(j, own, others) & ~same & theirs)
        open_, is_between = [values[row] for row in mask], np.zeros(len(people), dtype=bool)
        if self.encoder.schema.features[j].is_category:
            return _Open(open_, is_between, is_between)
        low, high = rules.reach(j, own[:, 0])
        # a constant column has no scale
        for i in np.flatnonzero(~mask.any(axis=1) & (low <= high) & (len(seen) > 1)):
            between = self._between(j, low[i], high[i])
            away = ~(np.abs(between - own[i]) <= TOLERANCE)
            mine = rules.take(np.array([i])).allowed(j, own[i : i + 1], between[None])[0]
            open_[i] = between[mine & away]
            is_between[i] = len(open_[i]) > 0
        slack = self.encoder.blocks[j].slack
        within = [
            int(((v >= low[i] - slack) & (v <= high[i] + slack)).sum()) for i, v in enumerate(open_)
        ]
        leaves = self._n_allowed(j, own[:, 0], low, high) > within
        return _Open(open_, is_between, leaves & ~given)

    def _n_allowed(self, j: int, own: Array, low: Array, high: Array) -> Array:
        """Return (n,) how many values other than its own number j may take from low to high.

        Infinity: the number has no smallest step.
        """
        decimals, block = self.encoder.schema.features[j].decimals, self.encoder.blocks[j]
        counts = np.zeros(len(own))
        for i in np.flatnonzero(low <= high):
            x, ends = own[i], (low[i], high[i])
            if decimals is None:
                is_one = ends[1] - ends[0] <= TOLERANCE
                counts[i] = float(not abs(x - ends[0]) <= TOLERANCE) if is_one else np.inf
                continue
            value, *limits = (block.low + place * block.span for place in (x, *ends))
            first, last = whole_ends(block, limits[0], limits[1], decimals)
            is_mine = first <= value <= last and abs(value - round(value, decimals)) <= block.slack
            counts[i] = round((last - first) * 10**decimals) + 1 - is_mine
        return counts

    def _between(self, j: int, low: float, high: float) -> Array:
        """Return both ends and some values in between, with the decimals of the schema."""
        values, block = np.linspace(low, high, BETWEEN), self.encoder.blocks[j]
        decimals = self.encoder.schema.features[j].decimals
        if decimals is not None:
            whole = np.round(block.low + values * block.span, decimals)
            values = (whole - block.low) / block.span
        return np.unique(values)

    def _singles(self, people: np.ndarray, tried: list[list[Array]]) -> Iterator[Moves]:
        """Yield the single changes of each person; `tried`: values by feature, then by person."""
        for place, person in enumerate(people):
            values = [theirs[place] for theirs in tried]
            feature = np.repeat(np.arange(len(values)), [len(v) for v in values])
            value = np.concatenate(values)
            moves = Moves(
                np.stack((feature, feature), axis=1),
                np.stack((value, value), axis=1),
                np.zeros(len(value)),
            )
            x, rows = self.F[person], moves.rows(self.F[person])
            price = self.cost(*(self.encoder.from_features(f) for f in (x[None], rows)))
            yield Moves(moves.feature, moves.value, np.asarray(price))

    def _accepted(
        self, rules: RuleBook, batch: list[_PersonMoves], measure: Measure | None = None
    ) -> list[EnumerationResult]:
        """Return the accepted changes of each person; h scores the whole batch at once."""
        if not batch:
            return []
        sizes = [len(each.moves) for each in batch]
        person = np.repeat([each.person for each in batch], sizes)
        F_plus = np.concatenate([each.moves.rows(self.F[each.person]) for each in batch])
        F_plus = rules.take(person).with_derived(self.F[person], F_plus)
        ok = np.flatnonzero(self._h_accepts(person, F_plus))
        ok = ok[rules.take(person[ok]).feasible(self.F[person[ok]], F_plus[ok])]
        starts = np.cumsum([0, *sizes])
        cost = np.concatenate([each.moves.cost for each in batch])
        if measure is not None:
            cost[ok] = measure(self.F[person[ok]], F_plus[ok])
        found = []
        ends = np.searchsorted(ok, starts)
        for k, each in enumerate(batch):
            moves = replace(each.moves, cost=cost[starts[k] : starts[k + 1]])
            mine = moves.take(ok[ends[k] : ends[k + 1]] - starts[k])
            best = _cheapest_of_each_kind(mine)
            rows = best.rows(self.F[each.person])
            found.append(
                EnumerationResult(
                    rows, best.cost, len(each.moves), each.most, each.is_all, each.observed
                )
            )
        return found

    def _h_accepts(self, person: np.ndarray, F_plus: Array) -> np.ndarray:
        """Return (m,) booleans: h accepts the row in original units.

        A network that reads Z scores Z directly; close decisions are scored in original units.
        """
        if not self.reads_Z:
            return self.score(person, F_plus) > self.h.cutoff
        low, high = self.h.score_range
        Z_plus = self.encoder.from_features(F_plus)
        over = self.h.score_encoded(Z_plus, self.encoder, self.X.iloc[:1]) - self.h.cutoff
        close = np.flatnonzero(np.abs(over) <= DOUBT * (high - low))
        accepted = over > 0
        accepted[close] = self.score(person[close], F_plus[close]) > self.h.cutoff
        return np.asarray(accepted)

    def score(self, person: np.ndarray, F_plus: Array) -> Array:
        """Return h's score of each row after decoding it for its person."""
        parts = [
            self._some_scores(person[i : i + BATCH], F_plus[i : i + BATCH])
            for i in range(0, len(person), BATCH)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _some_scores(self, person: np.ndarray, F_plus: Array) -> Array:
        keys = row_keys(person, F_plus)
        new = list({key: k for k, key in enumerate(keys) if key not in self.known}.values())
        found = self._asked(person[new], F_plus[new])
        fresh = {keys[k]: score for k, score in zip(new, found.tolist(), strict=True)}
        scores = [fresh[key] if key in fresh else self.known[key] for key in keys]
        if len(self.known) < REMEMBERED:
            self.known |= fresh
        return np.array(scores, dtype=float)

    def _asked(self, person: np.ndarray, F_plus: Array) -> Array:
        if not self.reads_Z:
            return self.h.score(self.decoded(person, F_plus))
        Z_plus = self.encoder.from_features(self.written(person, F_plus))
        return self.h.score_encoded(Z_plus, self.encoder, self.X.iloc[:1])

    def written(self, person: np.ndarray, F_plus: Array) -> Array:
        """Return the features (m, d) of the rows that `decoded` returns, which is quicker."""
        return self.encoder.written(F_plus, self.F[person], self.X)

    def decoded(self, person: np.ndarray, F_plus: Array) -> pd.DataFrame:
        """Return rows in original units and dtypes; unchanged cells are copied from the person."""
        Z_plus = self.encoder.from_features(F_plus)
        return self.encoder.decode(Z_plus, self.X.iloc[person], F_like=self.F[person])


def _moves(
    single: Moves, below: float, touching: int | None, budget: int
) -> tuple[Moves, int, bool]:
    """Return the single changes and their pairs, the values per feature in pairs, and whether all
    pairs are included."""
    if below < np.inf:
        single = single.take(single.cost < below)
    feature, value, cost = single.feature[:, 0], single.value[:, 0], single.cost
    sizes = np.bincount(feature, minlength=1)  # a locked feature has no values, so no pairs
    most = next((most for most in MOST if _n_pairs(np.minimum(sizes, most)) <= budget), 0)
    of_pairs = np.zeros(0, dtype=int)
    if most:
        places = [thin(np.flatnonzero(feature == j), most) for j in np.flatnonzero(sizes)]
        of_pairs = np.concatenate([of_pairs, *places])
    a, b = (of_pairs[side] for side in np.triu_indices(len(of_pairs), 1))
    use = (feature[a] != feature[b]) & (cost[a] + cost[b] < below)
    alone = np.ones(len(single), dtype=bool)
    if touching is not None:
        use &= (feature[a] == touching) | (feature[b] == touching)
        alone = feature == touching
    a, b = a[use], b[use]
    first = single.take(alone)
    moves = Moves(
        np.concatenate([first.feature, np.stack((feature[a], feature[b]), axis=1)]),
        np.concatenate([first.value, np.stack((value[a], value[b]), axis=1)]),
        np.concatenate([first.cost, cost[a] + cost[b]]),
    )
    return moves, min(most, int(sizes.max())) if len(single) else most, bool(sizes.max() <= most)


def _with_pairs_of_best(single: Moves, score: Array) -> Moves:
    """Return single changes, and the pairs of the best value of each feature."""
    feature, value = single.feature[:, 0], single.value[:, 0]
    order = np.lexsort((-score, feature))
    best = order[np.unique(feature[order], return_index=True)[1]] if len(order) else order
    a, b = (best[side] for side in np.triu_indices(len(best), 1))
    return Moves(
        np.concatenate([single.feature, np.stack((feature[a], feature[b]), axis=1)]),
        np.concatenate([single.value, np.stack((value[a], value[b]), axis=1)]),
        np.concatenate([single.cost, single.cost[a] + single.cost[b]]),
    )


def _n_pairs(sizes: np.ndarray) -> int:
    """Return the number of pairs of values of two different features."""
    return int((sizes.sum() ** 2 - (sizes**2).sum()) // 2)


def _cheapest_of_each_kind(moves: Moves) -> Moves:
    """Return the cheapest move for each set of features, cheapest first."""
    order = np.argsort(moves.cost, kind="stable")
    low, high = moves.feature[order].T
    _, first = np.unique(low * (high.max(initial=0) + 1) + high, return_index=True)
    return moves.take(order[np.sort(first)])
