"""Effort: how much time and money a change takes, as a policy states it.

    [effort]
    together = "one after the other"    # times add up; or "side by side": the longest counts
    currency = "DM"                     # of prices
    prefer = "time"                     # optional: quick plans come first; or "money"

    [effort.changes]
    savings = { each = 500, months = 1 }                     # a month for each 500, up or down
    income = { up = { each = 100, months = 6, price = 300 }, down = { months = 0, price = 0 } }
    debt = { each = 1000, months = 2, once = { price = 50 } }         # and 50 once
    job = [                                                   # the first entry that fits counts
      { from = "unskilled", to = "skilled", months = 24, price = 3000 },
      { to = "self-employed", months = 6, price = 1000 },
      { months = 12, price = 0 },
    ]

Without `each`, months and price are those of the change, however large it is. Of an ordered
category, `each` counts levels. What is not stated is unknown, and not nothing. `Efforts` computes
the time and the money of whole plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from genrecourse.errors import UserError, did_you_mean, shown
from genrecourse.rules.relations import level_of
from genrecourse.table.encoding import unchanged
from genrecourse.table.schema import Level

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array, TableEncoder
    from genrecourse.table.schema import Feature, Schema

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Together = Literal["one after the other", "side by side"]
OF_NUMBERS = ("each", "months", "price", "once", "up", "down")  # keys of a table, not of a list


# ---- what a policy states -----------------------------------------------------------------------


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Taken(_Part):
    """Time and money; None: not stated.

    >>> Taken(months=3).price is None
    True
    """

    months: Amount | None = None
    price: Amount | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.months is None and self.price is None and self._needs_an_amount():
            raise ValueError("it states neither 'months' nor 'price'; give at least one of them")
        return self

    def _needs_an_amount(self) -> bool:
        return True


class Way(Taken):
    """What a change up, or down, takes: for `each` so many units, or else as a whole.

    >>> Way(each=500, months=1, once={"months": 2}).once.months
    2.0
    """

    each: float | None = Field(None, gt=0, allow_inf_nan=False)
    once: Taken | None = None  # besides what each unit takes

    @model_validator(mode="after")
    def _once_is_besides(self) -> Self:
        if self.once is not None and self.each is None:
            raise ValueError(
                "it has 'once' but no 'each'; without 'each', months and price are those of the "
                "whole change already"
            )
        return self

    def taken(self, what: Literal["months", "price"], units: Array) -> Array:
        """Return what changes of so many units take; NaN: not stated.

        >>> Way(each=500, months=1, once={"months": 2}).taken("months", np.array([1000.0]))
        array([4.])
        """
        rate = getattr(self, what)
        if rate is None and (self.once is None or getattr(self.once, what) is None):
            return np.full(np.shape(units), np.nan)
        found = np.full(np.shape(units), rate or 0.0)
        if self.each is not None and rate:
            found = found * units / self.each
        once = None if self.once is None else getattr(self.once, what)
        return np.asarray(found + (once or 0.0))


class LevelEffort(Taken):
    """What a change between levels of a category takes; no `from` or no `to`: any level.

    >>> entries = [{"to": "own", "months": 12}, {"from": "rent", "to": "own", "months": 9}]
    >>> to_own, from_rent = map(LevelEffort.model_validate, entries)
    >>> to_own.covers(from_rent), from_rent.covers(to_own)
    (True, False)
    """

    before: Level | None = Field(None, alias="from")
    to: Level | None = None

    def covers(self, other: LevelEffort) -> bool:
        """Return whether this entry fits every change that the other one fits."""
        return self.before in (None, other.before) and self.to in (None, other.to)


class FeatureEffort(Way):
    """What changes of one feature take: up and down alike, each in its own way, or by levels.

    >>> FeatureEffort(up={"each": 100, "months": 6}).ways()[1] is None
    True
    """

    up: Way | None = None
    down: Way | None = None
    levels: tuple[LevelEffort, ...] = ()

    def _needs_an_amount(self) -> bool:
        return self.up is None and self.down is None and not self.levels and self.once is None

    @model_validator(mode="after")
    def _is_one_of_three(self) -> Self:
        both = {"each", "months", "price", "once"} & self.model_fields_set
        ways = {"up", "down"} & self.model_fields_set
        if both and ways:
            raise ValueError(
                f"it states '{sorted(both)[0]}' for changes up and down, and '{sorted(ways)[0]}' "
                "by itself; write all of it under 'up' and 'down'"
            )
        if self.levels and (both or ways):
            raise ValueError("it has a list of levels; leave out the other keys")
        for place, entry in enumerate(self.levels):
            if any(earlier.covers(entry) for earlier in self.levels[:place]):
                raise ValueError(
                    f"entry {place + 1} of its list never counts, because an earlier entry fits "
                    "every such change; put the special entries first"
                )
        return self

    def ways(self) -> tuple[Way | None, Way | None]:
        """Return what a change up and a change down take; None: not stated."""
        if self.up is not None or self.down is not None:
            return self.up, self.down
        return (None, None) if self.levels else (self, self)

    def parts(self) -> list[Taken]:
        """Return everything that states an amount."""
        ways = [way for way in self.ways() if way is not None]
        return [*ways, *(way.once for way in ways if way.once is not None), *self.levels]


def _listed(value: Any) -> Any:
    """Return a list of levels as the table that `FeatureEffort` reads."""
    return {"levels": value} if isinstance(value, list | tuple) else value


class EffortPolicy(_Part):
    """The table [effort] of a policy.

    >>> effort = EffortPolicy(changes={"savings": {"each": 500, "months": 1}})
    >>> effort.states("months"), effort.states("price")
    (True, False)
    """

    together: Together = "one after the other"
    currency: str = ""
    prefer: Literal["time", "money"] | None = None
    changes: dict[str, Annotated[FeatureEffort, BeforeValidator(_listed)]] = {}

    @model_validator(mode="after")
    def _prefers_what_is_stated(self) -> Self:
        what = {"time": "months", "money": "price"}.get(self.prefer or "")
        if what is not None and not self.states(what):
            raise ValueError(
                f"'prefer' is '{self.prefer}', but no change has '{what}'; state them in "
                "'effort.changes'"
            )
        return self

    def states(self, what: str) -> bool:
        """Return whether any change has this amount: "months" or "price"."""
        return any(
            getattr(part, what) is not None for own in self.changes.values() for part in own.parts()
        )


# ---- against a schema ---------------------------------------------------------------------------


def check_effort(effort: EffortPolicy, schema: Schema, where: str) -> None:
    """Raise a UserError for a name, a level or a way that the schema does not have.

    >>> from genrecourse.table.schema import Feature, Schema
    >>> schema = Schema(features=(Feature(name="income", kind="number"),))
    >>> check_effort(EffortPolicy(changes={"incme": {"months": 1}}), schema, "policy.toml")
    Traceback (most recent call last):
    genrecourse.errors.UserError: policy.toml: 'effort.changes.incme' is no feature of the table ...
    """
    for name, own in effort.changes.items():
        key = f"{where}: 'effort.changes.{name}'"
        if name not in schema.names:
            close = did_you_mean(name, schema.names)
            raise UserError(f"{key} is no feature of the table{close}; it has {schema.names}")
        problem = _problem(own, schema[name])
        if problem:
            raise UserError(f"{key} {problem}")


def _problem(own: FeatureEffort, feature: Feature) -> str:
    """Return what a feature cannot have, or ""."""
    if not feature.is_category:
        if own.levels:
            return "is a list of levels, but the feature is a number; write { each = ..., ... }"
        return ""
    for entry in own.levels:
        for level in (entry.before, entry.to):
            if level is not None and level_of(feature, level) is None:
                levels = list(feature.categories)
                return f"names the level {shown(level)}, which is none of {levels}"
    if not feature.ordered:
        ways = [own, *(way for way in own.ways() if way is not None)]
        if own.up is not None or own.down is not None or any(w.each is not None for w in ways):
            return (
                "counts levels up or down, but the levels have no order; list the changes as "
                "[{ from = ..., to = ..., months = ... }], or set ordered = true"
            )
    return ""


def lint_effort(effort: EffortPolicy, schema: Schema, locked: Sequence[str] = ()) -> list[str]:
    """Return sentences about features that a plan can change while the effort is not stated.

    locked: features that no plan changes, by the rules.

    >>> from genrecourse.table.schema import Feature, Schema
    >>> schema = Schema(features=tuple(Feature(name=name, kind="number") for name in "ab"))
    >>> lint_effort(EffortPolicy(changes={"a": {"months": 1}}), schema)
    ["'effort.changes' does not say how many months changes of ['b'] take: plans that change ...
    """
    remarks = []
    for name in effort.changes:
        role = schema[name].role
        if role != "mutable":
            remarks.append(f"'effort.changes.{name}' does nothing, because '{name}' is {role}")
    amounts: tuple[tuple[Literal["months", "price"], str, str], ...] = (
        ("months", "how many months changes of {} take", "most_months"),
        ("price", "what changes of {} cost", "most_money"),
    )
    for what, words, limit in amounts:
        unknown = [
            feature.name
            for feature in schema
            if feature.role == "mutable"
            and feature.name not in locked
            and not _states_all(effort, feature, what)
        ]
        if effort.states(what) and unknown:
            remarks.append(
                f"'effort.changes' does not say {words.format(unknown)}: plans that change them "
                f"show a lower bound, and a request with {limit} gets none of these plans"
            )
    return remarks


def _states_all(effort: EffortPolicy, feature: Feature, what: Literal["months", "price"]) -> bool:
    """Return whether an amount is known of every change that the schema allows."""
    own = effort.changes.get(feature.name)
    if own is None:
        return False
    if own.levels:
        last = own.levels[-1]
        every = last.before is None and last.to is None
        return every and all(getattr(entry, what) is not None for entry in own.levels)
    ways = zip(own.ways(), ("increase", "decrease"), strict=True)
    return all(
        way is not None and not np.isnan(way.taken(what, np.ones(1)))[0]
        for way, direction in ways
        if feature.direction in ("any", direction)
    )


# ---- computed -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Efforts:
    """Computes the time and the money of changes of rows in the feature view F of an encoder.

    >>> import pandas as pd
    >>> from genrecourse.table.encoding import TableEncoder
    >>> from genrecourse.table.schema import Schema
    >>> X = pd.DataFrame({"savings": [0.0, 1000.0], "debt": [0.0, 10.0]})
    >>> encoder = TableEncoder(Schema.infer(X)).fit(X)
    >>> policy = EffortPolicy(changes={"savings": {"each": 500, "months": 1}})
    >>> efforts, x = Efforts(policy, encoder), np.zeros((2, 2))
    >>> efforts.months(x, np.array([[1.0, 0.0], [1.0, 1.0]])).tolist()  # debt is not stated
    [2.0, inf]
    """

    stated: EffortPolicy
    encoder: TableEncoder

    def months(self, F: Array, F_plus: Array) -> Array:
        """Return (...,) how many months the changes take together; infinite: not stated."""
        return self.total("months", self.of_features("months", F, F_plus))

    def money(self, F: Array, F_plus: Array) -> Array:
        """Return (...,) what the changes cost together; infinite: not stated."""
        return self.total("price", self.of_features("price", F, F_plus))

    def total(self, what: str, parts: Array) -> Array:
        """(..., d) amounts of features -> (...,): money adds up, and time as the policy says.

        An unknown part makes the whole infinite.
        """
        parts = np.where(np.isnan(parts), np.inf, parts)
        if what == "months" and self.stated.together == "side by side":
            return np.asarray(parts.max(axis=-1, initial=0.0))
        return np.asarray(parts.sum(axis=-1))

    def preferred(self, F: Array, F_plus: Array) -> Array:
        """Return (...,) the amount by which the policy orders plans: months or money."""
        return (self.months if self.stated.prefer == "time" else self.money)(F, F_plus)

    def of_features(self, what: Literal["months", "price"], F: Array, F_plus: Array) -> Array:
        """Return (..., d) what the change of each feature takes; NaN: not stated.

        What stays takes nothing, and so does what changes by itself.
        """
        F, F_plus = np.broadcast_arrays(F, F_plus)
        found = np.zeros(F.shape)
        moved = ~unchanged(F, F_plus)
        for j, feature in enumerate(self.encoder.schema):
            if feature.follows or not moved[..., j].any():
                continue
            own = self.stated.changes.get(feature.name)
            if own is None:
                taken = np.full(F.shape[:-1], np.nan)
            elif feature.is_category:
                taken = self._of_levels(j, what, F[..., j], F_plus[..., j])
            else:
                taken = self._of_number(j, own, what, F[..., j], F_plus[..., j])
            found[..., j] = np.where(moved[..., j], taken, 0.0)
        return found

    def _of_number(
        self, j: int, own: FeatureEffort, what: Literal["months", "price"], a: Array, b: Array
    ) -> Array:
        """Return what changes of number j take. A missing number that is given has no size."""
        units = (b - a) * self.encoder.blocks[j].span
        up, down = (
            np.full(a.shape, np.nan) if way is None else way.taken(what, np.abs(units))
            for way in own.ways()
        )
        known = np.where(units > 0, up, down)
        return np.where(np.isnan(units), np.where(up == down, up, np.nan), known)

    def _of_levels(self, j: int, what: Literal["months", "price"], a: Array, b: Array) -> Array:
        table = self._levels[what][j]
        before = np.where(np.isnan(a), len(table) - 1, a).astype(int)  # the last row: missing
        return np.asarray(table[before, np.nan_to_num(b).astype(int)])

    @cached_property
    def _levels(self) -> dict[str, dict[int, Array]]:
        """For each category, (L + 1, L) what a change takes, by the levels before and after."""
        found: dict[str, dict[int, Array]] = {"months": {}, "price": {}}
        for j, feature in enumerate(self.encoder.schema):
            own = self.stated.changes.get(feature.name)
            if own is not None and feature.is_category:
                found["months"][j] = _level_table(own, feature, "months")
                found["price"][j] = _level_table(own, feature, "price")
        return found


def _level_table(own: FeatureEffort, feature: Feature, what: Literal["months", "price"]) -> Array:
    """Return (L + 1, L) what each change of level takes; the last row is for a missing value."""
    size = len(feature.categories)
    if own.levels:
        table = np.full((size + 1, size), np.nan)
        places = [
            [None if each is None else level_of(feature, each) for each in (entry.before, entry.to)]
            for entry in own.levels
        ]
        for (before, to), entry in reversed(list(zip(places, own.levels, strict=True))):
            rows = slice(None) if before is None else before
            columns = slice(None) if to is None else to
            amount = getattr(entry, what)
            table[rows, columns] = np.nan if amount is None else amount
        return table
    steps = (np.arange(size)[None, :] - np.arange(size)[:, None]).astype(float)
    up, down = (
        np.full(steps.shape, np.nan) if way is None else way.taken(what, np.abs(steps))
        for way in own.ways()
    )
    sizeless = [way is not None and way.each is None for way in own.ways()]
    given = np.where(all(sizeless) & (up[:1] == down[:1]), up[:1], np.nan)
    return np.concatenate([np.where(steps > 0, up, down), given])
