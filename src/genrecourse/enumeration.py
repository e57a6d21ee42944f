"""Every change of one and of two features, tried: what can be *proven* about a person.

A search that finds nothing has only not found it. Over a finite list of values (`Menu`: those a
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

from genrecourse.classifier import Classifier
from genrecourse.constraints import RuleBook
from genrecourse.cost import Cost
from genrecourse.encoding import TOLERANCE, Array, TableEncoder

KEPT = 1000  # values of a number that a model file keeps
MOST = (50, 30, 20, 12, 8)  # values of a feature that are tried; the first that the budget allows
BUDGET = 100_000  # changes of two features that are tried for one person
BATCH = 65_536  # rows that h is asked about at once
DOUBT = 1e-6  # share of the score range within which h is asked again in original units
PEOPLE = 500  # whose masks are made at once: bounds memory


# ---- the values -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Menu:
    """The values of each feature, in the scaled feature view, ascending; never "missing"."""

    values: tuple[Array, ...]

    @classmethod
    def of(cls, F: Array, encoder: TableEncoder) -> Menu:
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
    def most(self) -> int:
        """How many values of a feature are tried for one person."""
        return next((most for most in MOST if self._n_pairs(most) <= BUDGET), MOST[0])

    @property
    def tries_pairs(self) -> bool:
        """A table with very many features has too many pairs of changes to try them all."""
        return self._n_pairs(MOST[-1]) <= BUDGET

    def _n_pairs(self, most: int) -> int:
        sizes = np.array([min(len(v), most) for v in self.values])
        return int((sizes.sum() ** 2 - (sizes**2).sum()) // 2)


def thin(values: Array, most: int) -> Array:
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
class Found:
    """What was found for one person: the cheapest accepted way to change each set of features."""

    F_plus: Array  # (k, d), cheapest first
    cost: Array  # (k,)
    asked: int  # rows that h was asked about


class Enumeration:
    """Tries changes for the people X under h."""

    def __init__(
        self, X: pd.DataFrame, menu: Menu, h: Classifier, encoder: TableEncoder, cost: Cost
    ):
        self.X, self.menu, self.h, self.encoder, self.cost = X, menu, h, encoder, cost
        self.F = encoder.features(X)
        self.reads_Z = h.encoder is encoder and isinstance(h.model, nn.Module)

    def search(
        self,
        rules: RuleBook,
        people: np.ndarray,
        *,
        below: Array | None = None,
        touching: int | None = None,
    ) -> list[Found]:
        """For each of these people (positions in X) what h and the rules accept.

        rules: of all of X. below: (len(people),) only what costs less. touching: only what changes
        this feature.
        """
        most = np.full(len(people), np.inf) if below is None else below
        found: list[Found] = []
        batch: list[tuple[int, Moves]] = []
        for i in range(0, len(people), PEOPLE):
            part = people[i : i + PEOPLE]
            singles = self._singles(rules.take(part), part)
            for person, single, limit in zip(part, singles, most[i : i + PEOPLE], strict=True):
                batch.append((int(person), _moves(single, limit, touching, self.menu.tries_pairs)))
                if sum(len(moves) for _, moves in batch) >= BATCH:
                    found += self._accepted(rules, batch)
                    batch = []
        return found + self._accepted(rules, batch)

    def n_open(self, rules: RuleBook, people: np.ndarray, j: int) -> np.ndarray:
        """(len(people),) how many other values the rules let feature j of each person take."""
        return np.asarray(self._open(rules.take(people), people, j)[1].sum(axis=1))

    def _open(self, rules: RuleBook, people: np.ndarray, j: int) -> tuple[Array, np.ndarray]:
        """The values of feature j, and (n, V) booleans: those that each person may go to."""
        known, (named, whose) = self.menu.values[j], rules.named(j)
        values = np.unique(np.concatenate([known, named])) if len(named) else known
        own, others = self.F[people, j][:, None], values[None, :]
        same = np.abs(own - others) <= TOLERANCE  # from missing, every value is another
        # what one person names is no value of another's
        theirs = np.isin(values, known) | whose[:, None]
        return values, np.asarray(rules.allowed(j, own, others) & ~same & theirs)

    def _singles(self, rules: RuleBook, people: np.ndarray) -> Iterator[Moves]:
        """Each person's changes of one feature."""
        open_ = [self._open(rules, people, j) for j in range(len(self.menu.values))]
        for place, person in enumerate(people):
            values = [thin(known[mask[place]], self.menu.most) for known, mask in open_]
            feature = np.repeat(np.arange(len(values)), [len(v) for v in values])
            value = np.concatenate(values)
            moves = Moves(np.c_[feature, feature], np.c_[value, value], np.zeros(len(value)))
            x, rows = self.F[person], moves.rows(self.F[person])
            price = self.cost(*(self.encoder.from_features(f) for f in (x[None], rows)))
            yield Moves(moves.feature, moves.value, np.asarray(price))

    def _accepted(self, rules: RuleBook, batch: list[tuple[int, Moves]]) -> list[Found]:
        """Asks h once for the whole batch, and the rules about what h accepts."""
        if not batch:
            return []
        person = np.repeat([i for i, _ in batch], [len(moves) for _, moves in batch])
        F_plus = np.concatenate([moves.rows(self.F[i]) for i, moves in batch])
        F_plus = rules.take(person).settle(self.F[person], F_plus)
        ok = np.flatnonzero(self._h_accepts(person, F_plus))
        ok = ok[rules.take(person[ok]).feasible(self.F[person[ok]], F_plus[ok])]
        starts = np.cumsum([0, *(len(moves) for _, moves in batch)])
        found = []
        for (i, moves), start, stop in zip(batch, starts[:-1], starts[1:], strict=True):
            best = _cheapest_of_each_kind(moves.take(ok[(ok >= start) & (ok < stop)] - start))
            found.append(Found(best.rows(self.F[i]), best.cost, len(moves)))
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


def _moves(single: Moves, below: float, touching: int | None, pairs: bool) -> Moves:
    """The changes of one and of two features that one person's single ones make up."""
    if below < np.inf:
        single = single.take(single.cost < below)
    feature, value, cost = single.feature[:, 0], single.value[:, 0], single.cost
    a, b = np.triu_indices(len(single) if pairs else 0, 1)
    use = (feature[a] != feature[b]) & (cost[a] + cost[b] < below)
    alone = np.ones(len(single), dtype=bool)
    if touching is not None:
        use &= (feature[a] == touching) | (feature[b] == touching)
        alone = feature == touching
    a, b = a[use], b[use]
    first = single.take(alone)
    return Moves(
        np.concatenate([first.feature, np.c_[feature[a], feature[b]]]),
        np.concatenate([first.value, np.c_[value[a], value[b]]]),
        np.concatenate([first.cost, cost[a] + cost[b]]),
    )


def _cheapest_of_each_kind(moves: Moves) -> Moves:
    """One of each set of changed features, cheapest first."""
    order = np.argsort(moves.cost, kind="stable")
    kinds = moves.feature[order]
    _, first = np.unique(kinds, axis=0, return_index=True)
    return moves.take(order[np.sort(first)])
