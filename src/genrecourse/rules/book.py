"""RuleBook: what may change into what, by the schema and by a request, for all methods and checks.

`RuleBook.allowed(j, a, b)` decides for one feature, on any shapes that broadcast: pairs of rows
(`feasible`), a row against every choice of a sampler (a mask), a block of sources against a block
of targets. A value that does not change is always allowed.

`allowed` is about what a person may do, so it never lets a feature change that moves by itself
(`roles`). For whole rows, call `with_derived` first: `feasible` checks that derived and advancing
features have the values that the other changes imply, and that rules on derived features hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from genrecourse.rules.interface import FeatureKind, RowChange
from genrecourse.rules.kinds import FEATURE_KINDS, LIMIT_KINDS, RELATIONS, ends_of_rows
from genrecourse.rules.relations import Possible, Relation
from genrecourse.rules.roles import DerivedFeatures
from genrecourse.rules.statements import Column, Statements
from genrecourse.table.encoding import TOLERANCE, Array, TableEncoder, unchanged

if TYPE_CHECKING:
    from genrecourse.rules.effort import Efforts
    from genrecourse.table.schema import Feature


@dataclass(frozen=True, eq=False)
class RuleBook:
    """The rules in force, in the scaled feature view F of an encoder.

    Without a request the rules are the same for everybody. With one, the book is about n people:
    the first axis of arrays is people, and `group[i]` is the set of rules that person i has on top
    of the schema's.

    >>> import pandas as pd
    >>> from genrecourse.table.schema import Schema
    >>> X = pd.DataFrame({"age": [20.0, 40.0], "debt": [5.0, 15.0]})
    >>> book = RuleBook.of_schema(TableEncoder(Schema.infer(X, immutable=("age",))).fit(X))
    >>> bool(book.allowed(0, 0.0, 1.0)), bool(book.allowed(1, 0.0, 1.0))
    (False, True)
    """

    encoder: TableEncoder
    features: tuple[Feature, ...]
    immutable: np.ndarray  # (d,) booleans: what a person cannot change, whatever the reason
    matched: np.ndarray  # (d,) booleans: what people are compared by when pairs are made
    derived: DerivedFeatures
    schema: Statements
    request: Statements | None = None
    group: np.ndarray | None = None  # (n,)
    efforts: Efforts | None = None  # what changes take by the policy in force, if it says so

    @classmethod
    def of_schema(cls, encoder: TableEncoder) -> RuleBook:
        features = tuple(encoder.schema)
        return cls(
            encoder,
            features,
            np.array([feature.role != "mutable" for feature in features]),
            np.array([feature.role in ("immutable", "advances") for feature in features]),
            DerivedFeatures(encoder),
            Statements.of_schema(encoder),
        )

    def with_statements(self, request: Statements, group: np.ndarray) -> RuleBook:
        """Return the schema's rules and a request's. group (n,): the set of rules of each row."""
        return replace(self, request=request, group=group)

    def take(self, rows: Any) -> RuleBook:
        """Return the rules of some people: indices, with repeats if wanted, or a mask."""
        return self if self.group is None else replace(self, group=self.group[rows])

    # ---- what each person has stated ----------------------------------------------------------

    @property
    def is_unbound(self) -> np.ndarray:
        """(n,) booleans: the people whom only the schema's rules on single features bind."""
        if self.request is None:
            return np.full(1, not self.schema.relations)
        return self.request.is_empty[self.group] & (not self.schema.relations)

    @cached_property
    def locked(self) -> np.ndarray:
        """(n, d) booleans: what a person cannot change, by the schema or by a lock."""
        locked = np.repeat(self.immutable[None], 1 if self.group is None else len(self.group), 0)
        for j in range(len(self.features)):
            locked[:, j] |= self._states(j, lambda kind: kind.field == "lock")
        return locked

    @property
    def max_changes(self) -> Array:
        """(n,) the most features that a plan may change; infinite: no limit."""
        return self.limit("max_changes")

    @property
    def max_cost(self) -> Array:
        """(n,) the most that a plan may cost; infinite: no limit."""
        return self.limit("max_cost")

    def limit(self, field: str) -> Array:
        """Return (n,) the limit that a field of `Rules` sets to a plan; infinite: none."""
        return (
            np.full(1, np.inf) if self.request is None else self.request.limits[field][self.group]
        )

    @cached_property
    def relations(self) -> tuple[Relation, ...]:
        """The relations that bind any of these people: the schema's, and then the request's."""
        return (*self.schema.relations, *self.asked_relations)

    @property
    def asked_relations(self) -> tuple[Relation, ...]:
        """The relations of the request that bind any of these people."""
        return (
            () if self.request is None else tuple(compress(self.request.relations, self._binding))
        )

    @cached_property
    def applies(self) -> np.ndarray:
        """(n, relations) booleans: whom each of `relations` binds."""
        n = 1 if self.group is None else len(self.group)
        everybody = np.ones((n, len(self.schema.relations)), dtype=bool)
        if self.request is None or self.request.bound is None:
            return everybody
        return np.c_[everybody, self.request.bound[self.group][:, self._binding]]

    @cached_property
    def _binding(self) -> np.ndarray:
        """(relations of the request,) booleans: which of them bind any of these people."""
        assert self.request is not None
        assert self.request.bound is not None
        return np.asarray(self.request.bound[self.group].any(axis=0))

    @property
    def binds_whole_rows(self) -> bool:
        """Whether a rule of the schema involves several features."""
        return bool(self.derived) or bool(self.schema.relations)

    def named(self, j: int) -> tuple[Array, np.ndarray]:
        """Return values of feature j that a rule lists, whether or not a training row has them,
        and (n,) booleans: the people who have such a list."""
        found = [np.zeros(0)]
        for kind, column in self._asked_of(j):
            if kind.lists_values:
                used = np.zeros(len(column.stated), dtype=bool)
                used[self.group] = True
                values = column.values[used & column.stated]
                found.append(values[~np.isnan(values)])
        return np.concatenate(found), self._states(j, lambda kind: kind.lists_values)

    def _asked_of(self, j: int) -> list[tuple[FeatureKind, Column]]:
        """Return the request's rules on feature j, of any of the people."""
        return [] if self.request is None else self.request.by_feature.get(j, [])

    def _states(self, j: int, which: Callable[[FeatureKind], bool] | None = None) -> np.ndarray:
        """Return (n,) booleans: the people whose request has a rule on j, of some kinds or any."""
        answer = np.zeros(1 if self.group is None else len(self.group), dtype=bool)
        for kind, column in self._asked_of(j):
            if which is None or which(kind):
                answer |= column.stated[self.group]
        return answer

    # ---- one feature --------------------------------------------------------------------------

    def allowed(self, j: int, a: Any, b: Any) -> np.ndarray:
        """May a person change feature j from a to b? Broadcasts; NaN is "missing"."""
        if self.immutable[j]:
            return _is_same(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
        return self.keeps(j, a, b)

    def keeps(self, j: int, a: Any, b: Any) -> np.ndarray:
        """Does a change of feature j from a to b keep the rules on j, whoever or whatever moves it?

        Used for derived features, which a person does not move.
        """
        a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        free = ~np.isnan(b)  # nothing changes to missing
        for kind, column in self.schema.by_feature.get(j, ()):
            free = free & self._permits(kind, column, None, j, a, b)
        for kind, column in self._asked_of(j):
            free = free & self._permits(kind, column, self.group, j, a, b)
        return np.asarray(_is_same(a, b) | free)

    def _permits(
        self,
        kind: FeatureKind,
        column: Column,
        group: np.ndarray | None,
        j: int,
        a: Array,
        b: Array,
    ) -> np.ndarray:
        """Return booleans: does this one rule permit a change from a to b? group None: the rule
        is the schema's, the same for everybody."""
        slack = self.encoder.blocks[j].slack
        with np.errstate(invalid="ignore"):
            if group is None:
                return kind.permits(column.values[0], a, b, slack)
            bound = column.stated[group]
            if not bound.any():
                return np.ones(1, dtype=bool)
            n_dims = max(a.ndim, b.ndim, 1)
            a, b = _with_dims(a, n_dims), _with_dims(b, n_dims)
            answer = np.ones(
                np.broadcast_shapes(a.shape, b.shape, (len(group), *[1] * (n_dims - 1))), dtype=bool
            )
            values = column.values[group[bound]]
            values = values.reshape(len(values), *[1] * (n_dims - 1), -1)
            answer[bound] = kind.permits(values, _some(a, bound), _some(b, bound), slack)
            return answer

    def reach(self, j: int, a: Any) -> tuple[Array, Array]:
        """Return the lowest and the highest that number j may change to from a; if low > high, it
        cannot change.

        Without a range, a number stays where training rows lie, as in `TableEncoder.project`. It
        leaves the schema's range or the training rows only if a request's range or list lies there.
        """
        a = np.asarray(a, dtype=float)
        usual = self._usual_ends(j, a)
        if self.request is None:
            return usual
        asked = self._changed_ends(j, a)
        within = np.maximum(asked[0], usual[0]), np.minimum(asked[1], usual[1])
        # an open end stays as near to the usual values as the other end lets it
        beyond = (
            np.where(np.isneginf(asked[0]), np.minimum(usual[0], asked[1]), asked[0]),
            np.where(np.isposinf(asked[1]), np.maximum(usual[1], asked[0]), asked[1]),
        )
        placed = self._states(j, lambda kind: kind.limits_values)
        which = [self.locked[:, j], placed & (within[0] > within[1]), self._states(j)]
        low = np.select(which, [np.inf, beyond[0], within[0]], usual[0])
        return low, np.select(which, [-np.inf, beyond[1], within[1]], usual[1])

    def _usual_ends(self, j: int, a: Array) -> tuple[Array, Array]:
        """Return the ends that the schema's rules leave, or else the training rows, [0, 1]."""
        slack = self.encoder.blocks[j].slack
        low, high, columns = np.zeros(a.shape), np.ones(a.shape), self.schema.by_feature.get(j, ())
        for kind, column in columns:
            if kind.limits_values:
                open_ = np.full(a.shape, -np.inf), np.full(a.shape, np.inf)
                ends = kind.narrow(column.values[0], a, *open_, slack)
                low = np.where(np.isfinite(ends[0]), ends[0], low)
                high = np.where(np.isfinite(ends[1]), ends[1], high)
        stuck = np.full(a.shape, self.immutable[j])
        for kind, column in columns:
            if not kind.limits_values:
                low, high = kind.narrow(column.values[0], a, low, high, slack)
                stuck |= np.isnan(a) & kind.compares_with_x
        return low, np.where(stuck, -np.inf, high)

    def _changed_ends(self, j: int, x: Array) -> tuple[Array, Array]:
        """Return (n,), (n,) the ends of what number j may *change* to under all rules but locks;
        low > high if it may not."""
        assert self.group is not None
        feature, block = self.features[j], self.encoder.blocks[j]
        low, high, stuck = np.full(x.shape, -np.inf), np.full(x.shape, np.inf), np.isnan(x) & False
        everybody = np.zeros(len(x), dtype=int)
        rules = [(*rule, everybody) for rule in self.schema.by_feature.get(j, ())]
        rules += [(*rule, self.group) for rule in self._asked_of(j)]
        for kind, column, group in sorted(rules, key=lambda rule: rule[0].lists_values):
            if kind.field == "lock":
                continue
            rows = column.stated[group]
            values = column.values[group[rows]]
            low[rows], high[rows] = kind.narrow(values, x[rows], low[rows], high[rows], block.slack)
            stuck |= rows & np.isnan(x) & kind.compares_with_x
        if feature.decimals is not None:
            unit, first = 10.0**-feature.decimals / block.span, block.low / block.span
            low = np.ceil((low + first - block.slack) / unit) * unit - first
            high = np.floor((high + first + block.slack) / unit) * unit - first
        return np.where(stuck, np.inf, low), np.where(stuck, -np.inf, high)

    def is_free(self, j: int) -> bool:
        """Whether no rule can refuse a training row's value of feature j, so that a caller need
        not check."""
        feature, rules = self.features[j], self.schema.by_feature.get(j, ())
        return (
            feature.role == "mutable"
            and not feature.missing
            and all(kind.is_idle(column.values[0]) for kind, column in rules)
            and not self._states(j).any()
        )

    # ---- whole rows ---------------------------------------------------------------------------

    def feasible(self, F: Array, F_plus: Array) -> np.ndarray:
        """Return (n, ...) booleans: may row i change from F[i] (..., d) to F_plus[i] (..., d)?"""
        answer = self.derived.agree(F, F_plus)
        for j in range(len(self.features)):
            if not self.derived.mask[j]:
                answer &= self.allowed(j, F[..., j], F_plus[..., j])
        for j in self.derived.computed:
            answer &= self.keeps(j, F[..., j], F_plus[..., j])
        if self.request is not None or self.schema.relations:
            change = RowChange(self.encoder, F, F_plus, self.efforts)
            answer &= self._keeps_plan_rules(change, answer.ndim)
        return answer

    def _keeps_plan_rules(self, change: RowChange, n_dims: int) -> np.ndarray:
        """Return (n, ...) booleans, or what broadcasts: are the rules on whole plans kept?"""

        def lifted(values: np.ndarray) -> np.ndarray:
            return values.reshape(-1, *[1] * (n_dims - 1))

        answer = np.ones([1] * n_dims, dtype=bool)
        for kind in LIMIT_KINDS:
            limit = self.limit(kind.field)
            if np.isfinite(limit).any():
                answer = answer & (kind.measure(change) <= lifted(limit) + TOLERANCE)
        for r, relation in enumerate(self.relations):
            answer = answer & ~(RELATIONS.broken(relation, change) & lifted(self.applies[:, r]))
        return answer

    def with_derived(self, F: Array, F_plus: Array) -> Array:
        """Return F_plus with derived and advancing features where the other changes put them."""
        return self.derived.apply(F, F_plus)

    def cost(self, F: Array, F_plus: Array) -> Array:
        """Return (n, ...) C(x, x_plus), the same numbers as `Cost`."""
        return RowChange(self.encoder, F, F_plus).cost

    def clip(self, F: Array, F_plus: Array) -> Array:
        """Return F_plus (n, d) with numbers that moved too far put at their largest step."""
        clipped = F_plus.copy()
        for j in range(len(self.features)):
            for kind, column in self.schema.by_feature.get(j, ()):
                clipped[:, j] = kind.clip(column.values[0], F[:, j], clipped[:, j])
            for kind, column in self._asked_of(j):
                rows = np.flatnonzero(column.stated[self.group])
                values = column.values[self.group][rows]
                clipped[rows, j] = kind.clip(values, F[rows, j], clipped[rows, j])
        return clipped

    def revert(self, F: Array, F_plus: Array) -> Array:
        """Return F_plus (n, d) with x's own value for every feature that breaks a rule on it."""
        kept = F_plus.copy()
        for j in range(F.shape[1]):
            broken = ~self.allowed(j, F[:, j], F_plus[:, j])
            kept[broken, j] = F[broken, j]
        return kept

    def violations(self, F: Array, F_plus: Array) -> dict[str, np.ndarray]:
        """Return (n, d) booleans for each kind of rule of the schema: the features that break it.

        "missing" is a change to missing, "category" a level that does not exist.
        """
        kinds = [kind for kind in FEATURE_KINDS if kind.schema_field not in ("", "role")]
        names = dict.fromkeys(["immutable", *(kind.name for kind in kinds), "missing", "category"])
        broken = {name: np.zeros(F.shape, dtype=bool) for name in names}
        moved, expected = ~unchanged(F, F_plus), self.with_derived(F, F_plus)
        for j, feature in enumerate(self.features):
            a, b, m = F[:, j], F_plus[:, j], moved[:, j]
            if self.derived.mask[j]:
                broken["immutable"][:, j] = ~self.derived.is_at(j, expected[:, j], b)
            else:
                broken["immutable"][:, j] = m & self.immutable[j]
            if feature.role == "advances":  # no rule binds what time does
                continue
            broken["missing"][:, j] = m & np.isnan(b)
            if feature.is_category:
                is_level = np.isin(b, np.arange(len(feature.categories)))
                broken["category"][:, j] = m & ~is_level & ~np.isnan(b)
            for kind, column in self.schema.by_feature.get(j, ()):
                if kind.schema_field != "role":
                    wrong = m & ~self._permits(kind, column, None, j, a, b)
                    # "missing" counts a change to missing, unless the change itself is limited
                    broken[kind.name][:, j] |= wrong & (kind.compares_with_x | ~np.isnan(b))
        return broken

    # ---- what may be reached ------------------------------------------------------------------

    def possible(self, F: Array, features: Iterable[int] | None = None) -> dict[int, Possible]:
        """Return what each feature of each person may be, one feature at a time, x's own value
        included. features: only these; None: all."""
        view = {}
        for j in range(F.shape[1]) if features is None else features:
            x, feature = F[:, j], self.features[j]
            if feature.is_category:
                levels = np.arange(len(feature.categories), dtype=float)
                open_ = self.allowed(j, x[:, None], levels[None, :])
                mask = np.concatenate([open_, np.isnan(x)[:, None]], axis=1)
                view[j] = Possible(*ends_of_rows(np.where(open_, levels, np.nan)), mask)
            elif feature.follows:
                view[j] = self.derived.possible(j, x)
            else:
                low, high = self._changed_ends(j, x)
                free, known = (low <= high) & ~self.locked[:, j], ~np.isnan(x)
                low = np.where(free, np.fmin(low, x), x)
                high = np.where(free, np.fmax(high, x), x)
                # a missing number that may be given can be anything
                view[j] = Possible(
                    np.where(known | ~free, low, -np.inf), np.where(known | ~free, high, np.inf)
                )
        return view

    def cannot_meet(self, kind: FeatureKind, j: int, x: Array) -> np.ndarray:
        """Return (n,) booleans: whose value x of feature j breaks the request's rule of this kind,
        while no value that all rules leave keeps it."""
        assert self.request is not None
        feature, column = self.features[j], self.request.columns[kind.field].get(j)
        if feature.follows or column is None:  # what a derived feature becomes depends on others
            return np.zeros(len(x), dtype=bool)
        met = self._permits(kind, column, self.group, j, x, x)
        if feature.is_category:
            levels = np.arange(len(feature.categories), dtype=float)[None, :]
            away = np.abs(levels - x[:, None]) > TOLERANCE
            can = (self.allowed(j, x[:, None], levels) & away).any(1)
        else:
            low, high = self._changed_ends(j, x)
            can = (low <= high) & ~self.locked[:, j]
        return np.asarray(~(met | can | np.isnan(x)))


def split_by_rules(
    rules: RuleBook | None, people: np.ndarray
) -> list[tuple[np.ndarray, RuleBook | None]]:
    """Return (places in `people`, their rules) of the people whom a request binds, and (places,
    None) of the others, who get the same answer as without any request. Empty groups are left out.

    rules: of the whole table; None: the schema's only. people: rows of the table.

    >>> split_by_rules(None, np.array([4, 7]))
    [(array([0, 1]), None)]
    """
    if rules is None or rules.request is None:
        return [(np.arange(len(people)), None)] if len(people) else []
    bound = ~rules.is_unbound[people]
    free, asked = np.flatnonzero(~bound), np.flatnonzero(bound)
    groups: list[tuple[np.ndarray, RuleBook | None]] = [(free, None)] if len(free) else []
    if len(asked):
        groups.append((asked, rules.take(people[asked])))
    return groups


def _is_same(a: Array, b: Array) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(a - b) <= TOLERANCE) | (np.isnan(a) & np.isnan(b)))


def _with_dims(values: Array, n_dims: int) -> Array:
    """Return values with axes of length 1 in front, n_dims in all."""
    return values.reshape(*[1] * (n_dims - values.ndim), *values.shape)


def _some(values: Array, rows: np.ndarray) -> Array:
    """Return the values of some people, (n,) booleans; one value for everybody stays as it is."""
    return values if len(values) == 1 and len(rows) != 1 else values[rows]
