"""Every change of one and of two features, tried: what can be *proven* about a person.

A search that finds nothing has only not found it. Over a finite list of values (`ObservedValues`: those a
feature takes in the training rows) the changes of one and of two features can all be tried, so that
"there is none" and "nothing is cheaper" become statements that hold, for up to two changes and over
these values. How many rows h was asked about is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from torch import nn

from genrecourse.model.classifier import Classifier
from genrecourse.rules.book import RuleBook
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import TOLERANCE, Array, TableEncoder

KEPT = 1000  # values of a number that a model file keeps
MOST = (50, 30, 20, 12, 8)  # values of a feature that pairs are made of; the first within budget
BUDGET = 100_000  # changes of two features that are tried for one person
BATCH = 65_536  # rows that h is asked about at once
DOUBT = 1e-6  # share of the score range within which h is asked again in original units
BETWEEN = 50  # values of a number that are tried where the rules leave a person none that occurs
PEOPLE = 500  # whose masks are made at once: bounds memory


# ---- the values -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ObservedValues:
    """The values of each feature, in the scaled feature view, ascending; never "missing"."""

    values: tuple[Array, ...]

    @classmethod
    def of(cls, F: Array, encoder: TableEncoder) -> ObservedValues:
        """A category's levels, and what the training rows F have of a number."""
        values = []
        for j, (feature, block) in enumerate(zip(encoder.schema, encoder.blocks, strict=True)):
            if feature.is_category:
                values.append(np.arange(len(feature.categories), dtype=float))
                continue
            seen = F[~np.isnan(F[:, j]), j]
            if feature.decimals is not None:  # a plan says no more decimals than the schema has
                whole = np.round(block.low + seen * block.span, feature.decimals)
                seen = (whole - block.low) / block.span
            values.append(thin(np.unique(seen), KEPT))
        return cls(tuple(values))

    @property
    def cut(self) -> np.ndarray:
        """(d,) booleans: may training rows have values of the feature that are not here?"""
        return np.array([len(values) >= KEPT for values in self.values])


def thin(values: np.ndarray, most: int) -> np.ndarray:
    """At most so many of them, evenly spread over their order, both ends kept."""
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).round().astype(int)]


# ---- the changes ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Moves:
    """Changes of one person: move i sets feature[i, 0] to value[i, 0], and feature[i, 1] to
    value[i, 1]; of a single change both are the same."""

    feature: np.ndarray  # (m, 2)
    value: Array  # (m, 2)
    cost: Array  # (m,)

    def __len__(self) -> int:
        return len(self.cost)

    def take(self, which: np.ndarray) -> Moves:
        return Moves(self.feature[which], self.value[which], self.cost[which])

    def rows(self, x: Array) -> Array:
        """(m, d) x with each move made."""
        F_plus, every = np.repeat(x[None], len(self), axis=0), np.arange(len(self))
        for side in (0, 1):
            F_plus[every, self.feature[:, side]] = self.value[:, side]
        return F_plus


@dataclass(frozen=True)
class EnumerationResult:
    """What was found for one person: the cheapest accepted way to change each set of features."""

    F_plus: Array  # (k, d), cheapest first
    cost: Array  # (k,)
    asked: int  # rows that h was asked about
    most: int  # values of a feature that pairs were made of, at most; 0: too many pairs to try any
    is_all: bool  # no value that occurs was left out, of single changes or of pairs


@dataclass(frozen=True)
class _Asked:
    """What h is asked about one person."""

    person: int
    moves: Moves
    most: int  # as in `EnumerationResult`
    is_all: bool


class Enumeration:
    """Tries changes for the people X under h."""

    def __init__(
        self,
        X: pd.DataFrame,
        observed: ObservedValues,
        h: Classifier,
        encoder: TableEncoder,
        cost: Cost,
    ):
        self.X, self.observed, self.h, self.encoder, self.cost = X, observed, h, encoder, cost
        self.F = encoder.features(X)
        self.reads_Z = h.encoder is encoder and isinstance(h.model, nn.Module)

    def search(
        self,
        rules: RuleBook,
        people: np.ndarray,
        *,
        below: Array | None = None,
        touching: int | None = None,
    ) -> list[EnumerationResult]:
        """For each of these people (positions in X) what h and the rules accept.

        rules: of all of X. below: (len(people),) only what costs less. touching: only what changes
        this feature.
        """
        most = np.full(len(people), np.inf) if below is None else below
        found: list[EnumerationResult] = []
        batch: list[_Asked] = []
        for i in range(0, len(people), PEOPLE):
            part = people[i : i + PEOPLE]
            singles = self._singles(rules.take(part), part)
            for person, (single, whole), limit in zip(
                part, singles, most[i : i + PEOPLE], strict=True
            ):
                moves, most_values, is_all = _moves(single, limit, touching)
                is_all &= whole and not self.observed.cut[single.feature].any()
                batch.append(_Asked(int(person), moves, most_values, is_all))
                if sum(len(each.moves) for each in batch) >= BATCH:
                    found += self._accepted(rules, batch)
                    batch = []
        return found + self._accepted(rules, batch)

    def may_change(self, rules: RuleBook, people: np.ndarray) -> np.ndarray:
        """(len(people),) booleans: do the rules leave each person any other value at all?"""
        mine, answer = rules.take(people), np.zeros(len(people), dtype=bool)
        for j in range(len(self.observed.values)):
            open_ = self._open(mine, people, j)[0]
            answer |= np.array([len(each) > 0 for each in open_], dtype=bool)
        return answer

    def opens(self, now: RuleBook, then: RuleBook, people: np.ndarray, j: int) -> np.ndarray:
        """(len(people),) booleans: may feature j of each person go where it could not?"""
        pair = (self._open(rules.take(people), people, j)[0] for rules in (now, then))
        return np.array([len(np.setdiff1d(b, a)) > 0 for a, b in zip(*pair, strict=True)], bool)

    def _open(self, rules: RuleBook, people: np.ndarray, j: int) -> tuple[list[Array], np.ndarray]:
        """What feature j of each person may change to: values that occur, or are given by name.
        Where rules leave a number none of these: the ends of what they leave, and some between;
        of whom that is so, others may lie beside them."""
        seen, (named, given) = self.observed.values[j], rules.named(j)
        values = np.unique(np.concatenate([seen, named]))
        own, others = self.F[people, j][:, None], values[None, :]
        same = np.abs(own - others) <= TOLERANCE  # from missing, every value is another
        theirs = given[:, None] | np.isin(values, seen)  # not what somebody else is given by name
        mask = np.asarray(rules.allowed(j, own, others) & ~same & theirs)
        open_, is_between = [values[row] for row in mask], np.zeros(len(people), dtype=bool)
        if self.encoder.blocks[j].n_levels == 0 and len(seen) > 1:  # a constant has no scale
            low, high = rules.reach(j, own[:, 0])
            for i in np.flatnonzero(~mask.any(axis=1) & (low <= high)):
                between = self._between(j, low[i], high[i])
                away = ~(np.abs(between - own[i]) <= TOLERANCE)
                mine = rules.take(np.array([i])).allowed(j, own[i : i + 1], between[None])[0]
                open_[i] = between[mine & away]
                is_between[i] = len(open_[i]) > 0
        return open_, is_between

    def _between(self, j: int, low: float, high: float) -> Array:
        """Both ends and some values between, with the decimals that a plan may say."""
        values, block = np.linspace(low, high, BETWEEN), self.encoder.blocks[j]
        decimals = self.encoder.schema.features[j].decimals
        if decimals is not None:
            whole = np.round(block.low + values * block.span, decimals)
            values = (whole - block.low) / block.span
        return np.unique(values)

    def _singles(self, rules: RuleBook, people: np.ndarray) -> Iterator[tuple[Moves, bool]]:
        """Each person's changes of one feature; and whether these are to all values there are."""
        open_ = [self._open(rules, people, j) for j in range(len(self.observed.values))]
        some_between = np.any([between for _, between in open_], axis=0)
        for place, person in enumerate(people):
            values = [theirs[place] for theirs, _ in open_]
            feature = np.repeat(np.arange(len(values)), [len(v) for v in values])
            value = np.concatenate(values)
            moves = Moves(np.c_[feature, feature], np.c_[value, value], np.zeros(len(value)))
            x, rows = self.F[person], moves.rows(self.F[person])
            price = self.cost(*(self.encoder.from_features(f) for f in (x[None], rows)))
            yield Moves(moves.feature, moves.value, np.asarray(price)), not some_between[place]

    def _accepted(self, rules: RuleBook, batch: list[_Asked]) -> list[EnumerationResult]:
        """Asks h once for the whole batch, and the rules about what h accepts."""
        if not batch:
            return []
        sizes = [len(each.moves) for each in batch]
        person = np.repeat([each.person for each in batch], sizes)
        F_plus = np.concatenate([each.moves.rows(self.F[each.person]) for each in batch])
        F_plus = rules.take(person).with_derived(self.F[person], F_plus)
        ok = np.flatnonzero(self._h_accepts(person, F_plus))
        ok = ok[rules.take(person[ok]).feasible(self.F[person[ok]], F_plus[ok])]
        starts = np.cumsum([0, *sizes])
        found = []
        for each, start, stop in zip(batch, starts[:-1], starts[1:], strict=True):
            mine = each.moves.take(ok[(ok >= start) & (ok < stop)] - start)
            best = _cheapest_of_each_kind(mine)
            rows = best.rows(self.F[each.person])
            found.append(
                EnumerationResult(rows, best.cost, len(each.moves), each.most, each.is_all)
            )
        return found

    def _h_accepts(self, person: np.ndarray, F_plus: Array) -> np.ndarray:
        """By h in original units; a net that reads Z is asked there, save where it is close."""
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
        """h on each row as it would be decoded for its person."""
        parts = [
            self.h.score(self.decoded(person[i : i + BATCH], F_plus[i : i + BATCH]))
            for i in range(0, len(person), BATCH)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def decoded(self, person: np.ndarray, F_plus: Array) -> pd.DataFrame:
        """Rows in original units and dtypes; what did not move is the person's own cell."""
        return self.encoder.decode(self.encoder.from_features(F_plus), like=self.X.iloc[person])


def _moves(single: Moves, below: float, touching: int | None) -> tuple[Moves, int, bool]:
    """The changes of one and of two features that one person's single ones make up; of how many
    values of a feature pairs are made, at most; and whether these are all of them."""
    if below < np.inf:
        single = single.take(single.cost < below)
    feature, value, cost = single.feature[:, 0], single.value[:, 0], single.cost
    sizes = np.bincount(feature, minlength=1)  # open to this person: what is locked makes no pairs
    most = next((most for most in MOST if _n_pairs(np.minimum(sizes, most)) <= BUDGET), 0)
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
        np.concatenate([first.feature, np.c_[feature[a], feature[b]]]),
        np.concatenate([first.value, np.c_[value[a], value[b]]]),
        np.concatenate([first.cost, cost[a] + cost[b]]),
    )
    return moves, min(most, int(sizes.max())) if len(single) else most, bool(sizes.max() <= most)


def _n_pairs(sizes: np.ndarray) -> int:
    """Of values of two features, where each has so many."""
    return int((sizes.sum() ** 2 - (sizes**2).sum()) // 2)


def _cheapest_of_each_kind(moves: Moves) -> Moves:
    """One of each set of changed features, cheapest first."""
    order = np.argsort(moves.cost, kind="stable")
    kinds = moves.feature[order]
    _, first = np.unique(kinds, axis=0, return_index=True)
    return moves.take(order[np.sort(first)])
