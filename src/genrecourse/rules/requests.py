"""Rules at request time: what one person may, must or will not change, without training again.

`Constraints` is what a user states, in the table's own names and units; `compile_constraints` reads
it against a fitted encoder; `RequestRules` speaks like `constraints.Rules`, person by person, and
holds the schema's rules too.

Like the schema's, these rules speak of *changes*: a value that stays as x has it never breaks one,
and neither does a relation all of whose features stay, even if x itself does not meet it. A plan
must not be blamed for what it leaves alone. A rule that a person who is to get a plan does not meet
and cannot meet, whatever changes, is a mistake in the rule or in the row, and an error that names
both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from genrecourse.errors import UserError, amount, counted, did_you_mean
from genrecourse.rules.constraints import Rules
from genrecourse.rules.relations import Possible, Relation, level_of, parse_relation
from genrecourse.table.encoding import TOLERANCE, Array, TableEncoder, unchanged
from genrecourse.table.schema import Feature, Level, Schema, plain


def several(value: Any) -> Any:
    """One name, rule or value where several may stand."""
    return (value,) if isinstance(value, str | bool | int | float) else value


Names = Annotated[tuple[str, ...], BeforeValidator(several)]
Values = Annotated[tuple[Level, ...], BeforeValidator(several), Field(min_length=1)]
End = float | None  # None: open


class Constraints(BaseModel):
    """The rules of one person, or of everybody, on top of the schema's.

    lock: features that stay as they are.
    ranges: where a changed number may lie, ends included; None: open.
    allowed: the values that a feature may change to.
    increase, decrease: features that may only go up, or down (a category by its order).
    max_step: the largest change of a number.
    max_changes, max_cost: of a whole plan; cost as the library prices it (`Cost`).
    relations: rules between features, as text (`relations.py`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    lock: Names = ()
    ranges: dict[str, tuple[End, End]] = {}
    allowed: dict[str, Values] = {}
    increase: Names = ()
    decrease: Names = ()
    max_step: dict[str, Annotated[float, Field(gt=0)]] = {}
    max_changes: int | None = Field(None, ge=0)
    max_cost: float | None = Field(None, ge=0)
    relations: Names = ()

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        both = sorted(set(self.increase) & set(self.decrease))
        if both:
            raise ValueError(f"{both} may only increase and only decrease; lock what must stay")
        for name, (low, high) in self.ranges.items():
            if math.isnan(_low(low)) or math.isnan(_high(high)) or _low(low) > _high(high):
                raise ValueError(
                    f"the range of '{name}' is [{low}, {high}]: the first number must be the "
                    "smaller"
                )
        return self

    def also(self, other: Constraints) -> Constraints:
        """Both: whoever keeps the result keeps each of the two."""
        up, down = ({*getattr(self, f), *getattr(other, f)} for f in ("increase", "decrease"))
        neither = up & down  # what may go neither way stays
        return Constraints(
            lock=_joined(self.lock, other.lock, sorted(neither)),
            ranges=_each(self.ranges, other.ranges, _overlap),
            allowed=_each(self.allowed, other.allowed, _shared),
            increase=tuple(sorted(up - neither)),
            decrease=tuple(sorted(down - neither)),
            max_step=_each(self.max_step, other.max_step, lambda name, a, b: min(a, b)),
            max_changes=_smaller(self.max_changes, other.max_changes),
            max_cost=_smaller(self.max_cost, other.max_cost),
            relations=_joined(self.relations, other.relations),
        )

    def key(self) -> str:
        """Equal for equal constraints."""
        return self.model_dump_json()


def _joined(*several: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in several for name in names))


def _smaller(*limits: Any) -> Any:
    return min((limit for limit in limits if limit is not None), default=None)


def _each(a: dict[str, Any], b: dict[str, Any], both: Callable[[str, Any, Any], Any]) -> Any:
    """Rules by feature; `both` says what holds where the two speak of the same one."""
    return {
        name: both(name, a[name], b[name]) if name in a and name in b else {**a, **b}[name]
        for name in (*a, *(name for name in b if name not in a))
    }


def _overlap(name: str, a: tuple[End, End], b: tuple[End, End]) -> tuple[End, End]:
    low, high = max(_low(a[0]), _low(b[0])), min(_high(a[1]), _high(b[1]))
    if low > high:
        raise UserError(_at_odds("ranges", name, a, b))
    return low, high


def _shared(name: str, a: tuple[Level, ...], b: tuple[Level, ...]) -> tuple[Level, ...]:
    values = tuple(value for value in a if value in b)
    if not values:
        raise UserError(_at_odds("allowed", name, a, b))
    return values


def _at_odds(field: str, name: str, a: Any, b: Any) -> str:
    return (
        f"the rules {_in_words(field, name, a)} and {_in_words(field, name, b)} leave no value "
        "that keeps both; loosen one of them, or lock the feature"
    )


class PerPerson(BaseModel):
    """Rules of everybody (`default`), and what more binds some people, by their index label."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    people: dict[Any, Constraints] = {}
    default: Constraints = Constraints()

    def also(self, other: PerPerson) -> PerPerson:
        """Both, for everybody and for each person."""
        nothing, labels = Constraints(), dict.fromkeys((*self.people, *other.people))
        people = {
            label: self.people.get(label, nothing).also(other.people.get(label, nothing))
            for label in labels
        }
        return PerPerson(people=people, default=self.default.also(other.default))

    def only(self, index: pd.Index) -> PerPerson:
        """What binds the people of a part of the table."""
        there = {str(plain(label)) for label in index}
        people = {label: own for label, own in self.people.items() if str(plain(label)) in there}
        return PerPerson(people=people, default=self.default)


def read_constraints(given: Any) -> PerPerson:
    """From what a user may give: constraints for all, by index label, or either as plain data.

    A mapping is read as the fields of `Constraints`, as {"default": ..., "people": {label: ...}},
    or, if its values are `Constraints` or its keys no text, as index label to constraints.
    """
    if isinstance(given, PerPerson):
        return given
    if isinstance(given, Constraints):
        return PerPerson(default=given)
    if not isinstance(given, Mapping):
        raise UserError(
            f"constraints are {type(given).__name__}; give Constraints(...), a mapping with the "
            "same names, or one from index labels to Constraints"
        )
    if given and all(isinstance(value, Constraints) for value in given.values()):
        return PerPerson(people=dict(given))
    if not all(isinstance(key, str) for key in given):
        return _build(PerPerson, {"people": dict(given)})
    if given and set(given) <= {"people", "default"}:
        return _build(PerPerson, dict(given))
    return PerPerson(default=_build(Constraints, dict(given)))


# ---- from words to numbers ------------------------------------------------------------------


def compile_constraints(
    constraints: Any,
    encoder: TableEncoder,
    rules: Rules,
    X: pd.DataFrame,
    asking: np.ndarray | None = None,
) -> RequestRules:
    """The rules of each row of X: the schema's and the request's.

    An unknown feature or value, and a rule that somebody does not meet and cannot, are UserErrors.
    asking: (n,) booleans, who is to get a plan: what others cannot meet is no mistake. None: all.
    """
    stated = read_constraints(constraints)
    for each in (stated.default, *stated.people.values()):
        _check_roles(each, encoder.schema)
    kinds: dict[str, int] = {}
    distinct: list[Constraints] = []
    of_label = _by_label(stated.people, X.index)
    kind = np.empty(len(X), dtype=int)
    for i, label in enumerate(map(plain, X.index)):
        own = _with_own(stated.default, of_label.get(label), label)
        key = own.key()
        if key not in kinds:
            kinds[key] = len(distinct)
            distinct.append(own)
        kind[i] = kinds[key]
    texts = dict.fromkeys(text for own in distinct for text in own.relations)
    compiled = RequestRules(
        rules,
        encoder,
        kind,
        tuple(CompiledRules.of(own, encoder) for own in distinct),
        tuple(_unprotected(parse_relation(text, encoder), encoder.schema) for text in texts),
    )
    who = np.arange(len(X)) if asking is None else np.flatnonzero(asking)
    _check_possible(compiled.take(who), encoder.features(X)[who], X.index[who])
    return compiled


def _with_own(default: Constraints, own: Constraints | None, label: Any) -> Constraints:
    """A person's own rules come on top: nobody rids themselves of a rule by stating another."""
    try:
        return default if own is None else default.also(own)
    except UserError as error:
        raise UserError(f"row {label!r}: {error}") from None


def _by_label(people: Mapping[Any, Constraints], index: pd.Index) -> dict[Any, Constraints]:
    """Constraints by the labels of a table; a label that came through JSON is text by now."""
    labels = {plain(label) for label in index}
    texts = {str(label): label for label in labels}
    found: dict[Any, Constraints] = {}
    for label, own in people.items():
        known = plain(label) if plain(label) in labels else texts.get(str(label))
        if known is None:
            some = ", ".join(repr(plain(one)) for one in index[:3])
            raise UserError(
                f"constraints are given for {label!r}, but no row of the table has this index "
                f"label; its labels begin with {some}"
            )
        found[known] = found[known].also(own) if known in found else own
    return found


def _check_roles(stated: Constraints, schema: Schema) -> None:
    """Refuse rules that would be passed over in silence, or decide by what must decide nothing."""
    why = {
        "advances": "which time moves, whatever a plan does: no plan can keep a rule on it",
        "protected": "which is protected: it must decide no plan",
    }
    for field in ("lock", "ranges", "allowed", "increase", "decrease", "max_step"):
        for name in getattr(stated, field):
            role = schema[name].role if name in schema.names else ""
            if role in why:
                raise UserError(
                    f"constraints: '{field}' names '{name}', {why[role]}. Leave it out, or make "
                    "the feature immutable"
                )


def _unprotected(relation: Relation, schema: Schema) -> Relation:
    named = [schema.names[j] for j in relation.features]
    named = [name for name in named if schema[name].role == "protected"]
    if named:
        raise UserError(
            f"the rule '{relation.text}' names {named}, which is protected: it must decide no "
            "plan. State the rule without it, or make the feature immutable"
        )
    return relation


@dataclass(frozen=True)
class CompiledRules:
    """One `Constraints` in the scaled feature view."""

    own: Constraints
    locked: np.ndarray  # (d,)
    low: Array  # (d,)
    high: Array
    up: np.ndarray  # (d,)
    down: np.ndarray
    step: Array
    listed: Mapping[int, Array]  # feature -> the values that it may change to
    max_changes: float
    max_cost: float

    @property
    def is_empty(self) -> bool:
        return not (
            self.locked.any()
            or self.up.any()
            or self.down.any()
            or np.isfinite(self.low).any()
            or np.isfinite(self.high).any()
            or np.isfinite(self.step).any()
            or self.listed
            or np.isfinite([self.max_changes, self.max_cost]).any()
            or self.own.relations
        )

    @classmethod
    def of(cls, stated: Constraints, encoder: TableEncoder) -> CompiledRules:
        d = len(encoder.schema)
        places = {name: j for j, name in enumerate(encoder.schema.names)}
        low, high, step = np.full(d, -np.inf), np.full(d, np.inf), np.full(d, np.inf)
        for name, ends in stated.ranges.items():
            j = _number_place(name, places, encoder, "range")
            block = encoder.blocks[j]
            low[j] = (_low(ends[0]) - block.low) / block.span
            high[j] = (_high(ends[1]) - block.low) / block.span
        for name, size in stated.max_step.items():
            j = _number_place(name, places, encoder, "largest step")
            step[j] = size / encoder.blocks[j].span
        listed = {}
        for name, values in stated.allowed.items():
            j = _place(name, places)
            listed[j] = np.array([_scaled(encoder, j, value) for value in values])
        return cls(
            own=stated,
            locked=_marked(stated.lock, places),
            low=low,
            high=high,
            up=_ordered(stated.increase, places, encoder, "increase"),
            down=_ordered(stated.decrease, places, encoder, "decrease"),
            step=step,
            listed=listed,
            max_changes=np.inf if stated.max_changes is None else float(stated.max_changes),
            max_cost=np.inf if stated.max_cost is None else stated.max_cost,
        )


def _place(name: str, places: Mapping[str, int]) -> int:
    if name not in places:
        close = did_you_mean(name, places)
        raise UserError(
            f"constraints name '{name}'{close}, which is no feature; there are {list(places)}"
        )
    return places[name]


def _number_place(name: str, places: Mapping[str, int], encoder: TableEncoder, what: str) -> int:
    j = _place(name, places)
    if encoder.blocks[j].n_levels:
        raise UserError(
            f"constraints give a {what} for '{name}', which is a category; list the levels that it "
            "may change to in 'allowed'"
        )
    return j


def _marked(names: Iterable[str], places: Mapping[str, int]) -> np.ndarray:
    marks = np.zeros(len(places), dtype=bool)
    for name in names:
        marks[_place(name, places)] = True
    return marks


def _ordered(
    names: Iterable[str], places: Mapping[str, int], encoder: TableEncoder, way: str
) -> np.ndarray:
    for name in names:
        feature = encoder.schema.features[_place(name, places)]
        if feature.is_category and not feature.ordered:
            raise UserError(
                f"constraints let '{name}' only {way}, but its levels have no order; list the "
                "levels that it may change to in 'allowed'"
            )
    return _marked(names, places)


def _scaled(encoder: TableEncoder, j: int, value: Level) -> float:
    feature, block = encoder.schema.features[j], encoder.blocks[j]
    if feature.is_category:
        level = level_of(feature, value)
        if level is None:
            raise UserError(
                f"constraints allow '{feature.name}' to be {value!r}, which is none of its levels "
                f"{list(feature.categories)}"
            )
        return float(level)
    if isinstance(value, str | bool) or not math.isfinite(value):
        raise UserError(
            f"constraints allow '{feature.name}' to be {value!r}; it is a number, so give numbers"
        )
    decimals = feature.decimals
    if decimals is not None and abs(round(value, decimals) - value) > block.slack * block.span:
        raise UserError(
            f"constraints allow '{feature.name}' to be {value!r}, but it has "
            f"{counted(decimals, 'decimal')}; round the value"
        )
    return float((value - block.low) / block.span)


# ---- the rules ------------------------------------------------------------------------------


@dataclass(frozen=True)
class RequestRules:
    """The schema's rules and the request's, for n people; arrays have people as their first axis.

    Several people share what they were given: `kind[i]` says which of `stated` is person i's.
    """

    rules: Rules
    encoder: TableEncoder
    kind: np.ndarray  # (n,)
    stated: tuple[CompiledRules, ...]
    relations: tuple[Relation, ...]

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, rows: Any) -> RequestRules:
        """Of some people: indices, with repeats if wanted, or a mask.

        What none of them has stated is left behind: everybody may have rules of their own, and
        one person's must not cost time for all the others.
        """
        kind = self.kind[rows]
        seen = np.flatnonzero(np.bincount(kind, minlength=len(self.stated)))
        if len(seen) in (0, len(self.stated)):
            return replace(self, kind=kind)
        place = np.zeros(len(self.stated), dtype=int)
        place[seen] = np.arange(len(seen))
        stated = tuple(self.stated[i] for i in seen)
        texts = {text for one in stated for text in one.own.relations}
        relations = tuple(relation for relation in self.relations if relation.text in texts)
        return replace(self, kind=place[kind], stated=stated, relations=relations)

    def named(self, j: int) -> tuple[Array, np.ndarray]:
        """Values of feature j that somebody is allowed by name, and (n,) who is given any."""
        values = [one.listed[j] for one in self.stated if j in one.listed]
        given = np.array([j in one.listed for one in self.stated])
        return np.concatenate([np.zeros(0), *values]), given[self.kind]

    @property
    def is_free(self) -> np.ndarray:
        """(n,) the people of whom nothing is asked beyond the schema's rules."""
        return self._of_people("is_empty")

    @cached_property
    def locked(self) -> np.ndarray:
        """(n, d) what cannot change: locked, or immutable."""
        return self._of_people("locked") | self.rules.immutable

    @cached_property
    def max_changes(self) -> Array:
        return self._of_people("max_changes")

    @cached_property
    def max_cost(self) -> Array:
        return self._of_people("max_cost")

    @cached_property
    def applies(self) -> np.ndarray:
        """(n, relations) whom each relation binds."""
        which = [[r.text in one.own.relations for r in self.relations] for one in self.stated]
        shape = (len(self.stated), len(self.relations))
        return np.array(which, dtype=bool).reshape(shape)[self.kind]

    def of_feature(self, name: str, j: int) -> np.ndarray:
        """(n,) what each person has stated of feature j: a field of `CompiledRules`."""
        return self._stack(name)[self.kind, j]

    def _of_people(self, name: str) -> np.ndarray:
        """(n, ...) a field of what each person has stated."""
        return self._stack(name)[self.kind]

    def _stack(self, name: str) -> np.ndarray:
        """A field of all that was stated, put together once."""
        if name not in self._stacks:
            self._stacks[name] = np.array([getattr(one, name) for one in self.stated])
        return self._stacks[name]

    @cached_property
    def _stacks(self) -> dict[str, np.ndarray]:
        return {}

    # ---- one feature --------------------------------------------------------------------------

    def allowed(self, j: int, a: Any, b: Any) -> np.ndarray:
        """May a person take feature j from a to b? Broadcasts, the first axis being people."""
        return np.asarray(self.rules.allowed(j, a, b) & self._asked(j, a, b))

    def reach(self, j: int, a: Any) -> tuple[Array, Array]:
        """(n,), (n,) the lowest and the highest that number j of each person may move to from a.

        It stays where the schema or training rows have it, unless a range or values of the
        person's own lie beyond.
        """
        usual = self.rules.reach(j, a)
        stated = _changed_ends(self, j, self.rules.features[j], np.asarray(a, dtype=float))
        within = np.maximum(stated[0], usual[0]), np.minimum(stated[1], usual[1])
        # an open end is as near to the usual as can be
        beyond = (
            np.where(np.isneginf(stated[0]), np.minimum(usual[0], stated[1]), stated[0]),
            np.where(np.isposinf(stated[1]), np.maximum(usual[1], stated[0]), stated[1]),
        )
        ends = [np.isfinite(self.of_feature(name, j)) for name in ("low", "high", "step")]
        placed = ends[0] | ends[1] | self.named(j)[1]
        moved = ends[2] | self.of_feature("up", j) | self.of_feature("down", j)
        which = [self.locked[:, j], placed & (within[0] > within[1]), placed | moved]
        low = np.select(which, [np.inf, beyond[0], within[0]], usual[0])
        return low, np.select(which, [-np.inf, beyond[1], within[1]], usual[1])

    def _asked(self, j: int, a: Any, b: Any) -> np.ndarray:
        """Does going from a to b keep what the request says of feature j, whoever moves it?"""
        a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        n_dims = max(a.ndim, b.ndim, 1)
        with np.errstate(invalid="ignore"):
            same = (np.abs(a - b) <= TOLERANCE) | (np.isnan(a) & np.isnan(b))
            slack = self.encoder.blocks[j].slack

            def given(name: str) -> np.ndarray:
                return self._lift(self.of_feature(name, j), n_dims)

            free = (b >= given("low") - slack) & (b <= given("high") + slack)
            free &= ~given("locked") & ~(given("up") & ~(b >= a)) & ~(given("down") & ~(b <= a))
            step = given("step")
            free &= np.isinf(step) | (np.abs(b - a) <= step + slack)
        return np.asarray((same | free) & (same | self._is_listed(j, b, n_dims)))

    def _is_listed(self, j: int, b: np.ndarray, n_dims: int) -> np.ndarray:
        """Whether b is one of the values that each person may change feature j to."""
        if not any(j in one.listed for one in self.stated):
            return np.ones(1, dtype=bool)
        slack = self.encoder.blocks[j].slack
        shape = np.broadcast_shapes(b.shape, (len(self), *[1] * (n_dims - 1)))
        answer = np.ones(shape, dtype=bool)
        b = np.broadcast_to(b, shape)
        for i, one in enumerate(self.stated):
            if j in one.listed:
                rows = self.kind == i
                gap = np.abs(b[rows][..., None] - one.listed[j])
                answer[rows] = (gap <= slack).any(-1)
        return answer

    # ---- whole rows ---------------------------------------------------------------------------

    def feasible(self, F: Array, F_plus: Array) -> np.ndarray:
        """(n, ...) booleans: may row i go from F[i] (..., d) to F_plus[i] (..., d)?"""
        shape, follows = np.broadcast_shapes(F.shape, F_plus.shape)[:-1], self.rules.follows
        answer = follows.agree(F, F_plus)
        for j in range(len(self.rules.features)):
            if not follows.mask[j]:
                answer &= self.allowed(j, F[..., j], F_plus[..., j])
        for j in follows.derived:
            a, b = F[..., j], F_plus[..., j]
            answer &= self.rules.keeps(j, a, b) & self._asked(j, a, b)
        moved = ~unchanged(F, F_plus)
        changes = moved[..., ~follows.mask].sum(-1)
        answer &= changes <= self._lift(self.max_changes, len(shape))
        if np.isfinite(self.max_cost).any():
            answer &= self.cost(F, F_plus) <= self._lift(self.max_cost, len(shape)) + TOLERANCE
        if self.relations:
            view = {j: Possible.known(F_plus[..., j]) for j in range(F_plus.shape[-1])}
            for r, relation in enumerate(self.relations):
                # time passes whatever a plan does: a plan is not to blame for that
                mine = [j for j in relation.features if not self.rules.matched[j]]
                touched = moved[..., mine].any(-1)
                broken = touched & (relation(view) < 0)
                answer &= ~(broken & self._lift(self.applies[:, r], len(shape)))
        return answer

    def settle(self, F: Array, F_plus: Array) -> Array:
        return self.rules.settle(F, F_plus)

    def cost(self, F: Array, F_plus: Array) -> Array:
        """(n, ...) C(x, x_plus) from the scaled feature view; the numbers of `Cost`."""
        weights = np.array([feature.price for feature in self.rules.features])
        return np.asarray((weights * change_size(self.encoder, F, F_plus)).sum(-1))

    @staticmethod
    def _lift(values: np.ndarray, n_dims: int) -> np.ndarray:
        return values.reshape(-1, *[1] * (n_dims - 1))


def change_size(encoder: TableEncoder, F: Array, F_plus: Array) -> Array:
    """(..., d) how far each feature moved: on the [0, 1] scale, or 1 for what has no distance."""
    moved = ~unchanged(F, F_plus)
    is_number = np.array([block.n_levels == 0 for block in encoder.blocks])
    gap = np.abs(F - F_plus)
    return np.where(is_number & ~np.isnan(gap), gap, moved.astype(float))


def parted(
    rules: RequestRules | None, people: np.ndarray
) -> list[tuple[np.ndarray, RequestRules | None]]:
    """(places in `people`, their rules) of those whom a request binds, and of those whom it does
    not: the latter are answered as if nobody had any rules. Groups without anybody are left out.

    rules: of the whole table. people: rows of it.
    """
    bound = np.zeros(len(people), dtype=bool) if rules is None else ~rules.is_free[people]
    free, asked = np.flatnonzero(~bound), np.flatnonzero(bound)
    groups: list[tuple[np.ndarray, RequestRules | None]] = [(free, None)] if len(free) else []
    if rules is not None and len(asked):
        groups.append((asked, rules.take(people[asked])))
    return groups


# ---- rules that cannot be met ---------------------------------------------------------------


def reach(
    request: RequestRules, F: Array, features: Iterable[int] | None = None
) -> dict[int, Possible]:
    """What each feature of each person may be, x's own value included, one feature at a time.

    features: only these; None: all.
    """
    view = {}
    for j in range(F.shape[1]) if features is None else features:
        feature = request.rules.features[j]
        if feature.is_category:
            levels = np.arange(len(feature.categories), dtype=float)
            open_ = request.allowed(j, F[:, j][:, None], levels[None, :])
            mask = np.concatenate([open_, np.isnan(F[:, j])[:, None]], axis=1)
            index = np.where(open_, levels, np.nan)
            low, high = _ends(index)
            view[j] = Possible(low, high, mask)
        elif feature.follows:
            view[j] = request.rules.follows.possible(j, F[:, j])
        else:
            view[j] = Possible(*_number_reach(request, j, feature, F[:, j]))
    return view


def _number_reach(request: RequestRules, j: int, feature: Feature, x: Array) -> tuple[Array, Array]:
    """(n,), (n,) the ends of what a number may be; open where it is missing and may be given."""
    low, high = _changed_ends(request, j, feature, x)
    free = (low <= high) & ~request.locked[:, j]
    known = ~np.isnan(x)
    low, high = np.where(free, np.fmin(low, x), x), np.where(free, np.fmax(high, x), x)
    return np.where(known | ~free, low, -np.inf), np.where(known | ~free, high, np.inf)


def _changed_ends(request: RequestRules, j: int, feature: Feature, x: Array) -> tuple[Array, Array]:
    """The ends of what a number may *change* to: empty (low > high) where it may not."""
    block, base = request.encoder.blocks[j], request.rules

    def given(name: str) -> np.ndarray:
        return request.of_feature(name, j)

    step = np.minimum(given("step"), base._step[j])
    up = given("up") | (feature.direction == "increase")
    down = given("down") | (feature.direction == "decrease")
    low = np.maximum(given("low"), base._low[j])
    high = np.minimum(given("high"), base._high[j])
    low = np.fmax(low, np.fmax(x - step, np.where(up, x, -np.inf)))
    high = np.fmin(high, np.fmin(x + step, np.where(down, x, np.inf)))
    for i, one in enumerate(request.stated):
        if j in one.listed:
            rows = request.kind == i
            values = one.listed[j][None, :]
            inside = (values >= low[rows, None] - block.slack) & (
                values <= high[rows, None] + block.slack
            )
            low[rows], high[rows] = _ends(np.where(inside, values, np.nan))
    if feature.decimals is not None:
        unit = 10.0**-feature.decimals / block.span
        first = block.low / block.span
        low = np.ceil((low + first - block.slack) / unit) * unit - first
        high = np.floor((high + first + block.slack) / unit) * unit - first
    gone = np.isnan(x) & (up | down | np.isfinite(step))
    return np.where(gone, np.inf, low), np.where(gone, -np.inf, high)


def _ends(values: Array) -> tuple[Array, Array]:
    """The least and the greatest of each row; (inf, -inf) where a row has none."""
    low = np.where(np.isnan(values), np.inf, values).min(axis=1, initial=np.inf)
    high = np.where(np.isnan(values), -np.inf, values).max(axis=1, initial=-np.inf)
    return low, high


def _check_possible(request: RequestRules, F: Array, index: pd.Index) -> None:
    """Refuse a rule that somebody does not meet and cannot, whatever changes."""
    places = {name: j for j, name in enumerate(request.encoder.schema.names)}
    for i, stated in enumerate(request.stated):
        rows = np.flatnonzero(request.kind == i)
        if len(rows) == 0:
            continue
        mine, x, own = request.take(rows), F[rows], stated.own
        for field, given in (("ranges", own.ranges), ("allowed", own.allowed)):
            for name, value in given.items():
                stuck = _stuck(mine, field, places[name], x[:, places[name]])
                _refuse(stuck, rows, index, _in_words(field, name, value))
        if not own.relations:
            continue
        view = reach(mine, x, {j for relation in mine.relations for j in relation.features})
        for relation in mine.relations:
            broken = np.broadcast_to(relation(view) < 0, len(rows))
            _refuse(broken, rows, index, f"'{relation.text}'")


def _stuck(request: RequestRules, field: str, j: int, x: Array) -> np.ndarray:
    """(n,) who is outside a range, or the values listed, of feature j, and cannot get inside."""
    feature, slack = request.rules.features[j], request.encoder.blocks[j].slack
    if feature.follows:  # where it may go is not told by its own rules
        return np.zeros(len(x), dtype=bool)
    one = request.stated[request.kind[0]]
    if field == "ranges":
        met = (x >= one.low[j] - slack) & (x <= one.high[j] + slack)
    else:
        met = (np.abs(x[:, None] - one.listed[j]) <= slack).any(1)
    if feature.is_category:
        levels = one.listed[j][None, :]
        away = np.abs(levels - x[:, None]) > TOLERANCE
        can = (request.allowed(j, x[:, None], levels) & away).any(1)
    else:
        low, high = _changed_ends(request, j, feature, x)
        can = (low <= high) & ~request.locked[:, j]
    return np.asarray(~(met | can | np.isnan(x)))


def _refuse(stuck: np.ndarray, rows: np.ndarray, index: pd.Index, rule: str) -> None:
    if stuck.any():
        row = plain(index[rows[int(stuck.argmax())]])
        raise UserError(
            f"row {row!r} does not meet the rule {rule}, and no value that the other rules leave "
            f"open meets it ({counted(int(stuck.sum()), 'such row')} in all); change the rule, or "
            "leave such rows out"
        )


# ---- words ----------------------------------------------------------------------------------


def _in_words(field: str, name: str, value: Any) -> str:
    """A range, or the values allowed, as it can be named to a person."""
    if field == "allowed":
        return f"'{name}' one of {list(value)}"
    low, high = value
    return f"'{name}' between {amount(_low(low))} and {amount(_high(high))}"


def _low(end: End) -> float:
    return -math.inf if end is None else end


def _high(end: End) -> float:
    return math.inf if end is None else end


def _build(model: Any, data: Any) -> Any:
    """A pydantic model from outside data, its first complaint as one sentence."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            known = Constraints.model_fields
            said = (
                f"no such rule{did_you_mean(first['loc'][-1], known)}; there are "
                f"{', '.join(known)}, and rules of "
                'single people are {"people": {index label: rules}}'
            )
        raise UserError(f"constraints{': ' + where if where else ''}: {said}") from None
