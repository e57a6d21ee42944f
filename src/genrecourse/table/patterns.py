"""What may hold between the columns of a table: one class a kind of relation.

A pattern tells for some rows in how many of them it holds, and how often it would by chance
(`Verdict`). It knows its wording, and how a schema states it: as a rule between features, as the
formula of a derived feature, or as one category that is stored in several columns of 0 and 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from genrecourse.errors import amount
from genrecourse.table.chance import (
    log_chance_disjoint,
    log_chance_equal,
    log_chance_inside,
    log_chance_ordered,
    share_not_one,
    share_ordered,
    share_unequal,
)

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array

EXACT = 1e-9  # share of its size by which a number may be off without being rounded


@dataclass(frozen=True)
class Rows:
    """Some rows of a table as numbers, NaN where a value is missing.

    numbers: the columns of numbers. flags: the columns of only 0 and 1. levels: the place of each
    row's value among the values that an if-then rule can name, -1 where it is missing. missing:
    where columns have no value. Each array is (n,), by column.

    Examples:
        >>> Rows({"a": np.array([1.0, 2.0, 3.0])}).take(np.array([0, 2])).numbers["a"]
        array([1., 3.])
    """

    numbers: dict[str, Array]
    flags: dict[str, Array] = field(default_factory=dict)
    levels: dict[str, np.ndarray] = field(default_factory=dict)
    missing: dict[str, np.ndarray] = field(default_factory=dict)

    def take(self, rows: np.ndarray) -> Rows:
        """Return some of the rows."""
        parts = (self.numbers, self.flags, self.levels, self.missing)
        return Rows(*({name: column[rows] for name, column in part.items()} for part in parts))


@dataclass(frozen=True)
class Verdict:
    """What rows say about a pattern.

    Examples:
        >>> Verdict(n=200, exceptions=1, share=0.4, log_chance=-60.0).n
        200
    """

    n: int  # rows that it says something about
    exceptions: int  # in how many of them it does not hold
    share: float  # of these rows would be exceptions by chance
    log_chance: float  # of the probability of so few exceptions by chance

    @classmethod
    def nothing(cls) -> Verdict:
        """Return the verdict of no rows."""
        return cls(0, 0, 0.0, 0.0)


@dataclass(frozen=True)
class Pattern(ABC):
    """One relation between columns.

    Examples:
        >>> relation: Pattern = AtMost("mean", "worst")
        >>> relation.rules
        ('"mean" <= "worst"',)
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def features(self) -> tuple[str, ...]:
        """The columns that it is about."""

    @abstractmethod
    def verdict(self, rows: Rows) -> Verdict:
        """Return in how many rows it holds, and what chance would do."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The relation as a sentence without a full stop."""

    @property
    def rules(self) -> tuple[str, ...]:
        """The relation as rules of `rules.relations`; empty: the schema states it in another
        way."""
        return ()


def quoted(name: str) -> str:
    """Return a name in quotes that it does not hold, as rules and formulas read it.

    Examples:
        >>> quoted("capital gain"), quoted('a "big" one')
        ('"capital gain"', '\\'a "big" one\\'')
    """
    quote = next((mark for mark in "\"'`" if mark not in name), '"')
    return f"{quote}{name}{quote}"


# ---- order --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AtMost(Pattern):
    """One number is never larger than another one.

    Examples:
        >>> AtMost("mean", "worst").words
        "'mean' is at most 'worst'"
    """

    kind: ClassVar[str] = "order"
    small: str
    large: str

    @property
    def features(self) -> tuple[str, ...]:
        return self.small, self.large

    @property
    def words(self) -> str:
        return f"'{self.small}' is at most '{self.large}'"

    @property
    def rules(self) -> tuple[str, ...]:
        return (f"{quoted(self.small)} <= {quoted(self.large)}",)

    def verdict(self, rows: Rows) -> Verdict:
        a, b = rows.numbers[self.small], rows.numbers[self.large]
        known = ~np.isnan(a) & ~np.isnan(b)
        a, b = a[known], b[known]
        if len(a) == 0:
            return Verdict.nothing()
        broken = int((a > b).sum())
        return Verdict(len(a), broken, share_ordered(a, b), log_chance_ordered(a, b, broken))


# ---- equality -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class WeightedSum(Pattern):
    """One number is a sum of others, each times a constant. One term: a constant ratio.

    tolerance: how far the rounding of the column and of its parts may move the number.

    Examples:
        >>> total = WeightedSum("total", (("rent", 1.0), ("food", 1.0)), tolerance=0.01)
        >>> total.words, total.formula
        ("'total' is 'rent' + 'food'", '"rent" + "food"')
        >>> WeightedSum("yearly", (("monthly", 12.0),), 0.01).formula
        '12 * "monthly"'
    """

    kind: ClassVar[str] = "sum"
    name: str
    terms: tuple[tuple[str, float], ...]
    tolerance: float

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name, *(name for name, _ in self.terms))

    @property
    def formula(self) -> str:
        """The number as a formula of the others."""
        return self._written([quoted(name) for name, _ in self.terms])

    @property
    def words(self) -> str:
        return f"'{self.name}' is {self._written([repr(name) for name, _ in self.terms])}"

    def _written(self, names: list[str]) -> str:
        text = ""
        for name, (_, factor) in zip(names, self.terms, strict=True):
            times = "" if abs(factor) == 1 else f"{abs(factor):.12g} * "
            sign = "-" if factor < 0 else "+"
            text += f" {sign} {times}{name}" if text else f"{sign.strip('+')}{times}{name}"
        return text

    def verdict(self, rows: Rows) -> Verdict:
        own = rows.numbers[self.name]
        values = [factor * rows.numbers[name] for name, factor in self.terms]
        known = ~np.isnan(own)
        for value in values:
            known &= ~np.isnan(value)
        own, values = own[known], [value[known] for value in values]
        if len(own) == 0:
            return Verdict.nothing()
        near = self.tolerance + EXACT * np.abs(own)
        broken = int((np.abs(own - np.sum(values, axis=0)) > near).sum())
        # each term must matter: the one that chance could replace most easily decides
        width = max(2 * float(near.max()), np.finfo(float).tiny)
        cells = [np.round(value / width) for value in (own, *values)]
        share = min(share_unequal(cell) for cell in cells)
        return Verdict(len(own), broken, share, max(log_chance_equal(c, broken) for c in cells))

    def solved_for(self, name: str) -> WeightedSum:
        """Return the same relation with one of the terms on the left side.

        Examples:
            >>> WeightedSum("a", (("b", 1.0), ("c", 1.0)), 0.0).solved_for("b").formula
            '"a" - "c"'
        """
        factors = dict(self.terms)
        own = factors.pop(name)
        terms = ((self.name, 1 / own), *((other, -f / own) for other, f in factors.items()))
        return WeightedSum(name, terms, self.tolerance / abs(own))


# ---- groups of 0 and 1 --------------------------------------------------------------------------


@dataclass(frozen=True)
class OneHot(Pattern):
    """Columns of 0 and 1 of which exactly one is 1 in each row, or also none of them.

    Examples:
        >>> colour = OneHot("colour", ("colour_red", "colour_blue"), ("red", "blue"), False)
        >>> colour.words
        "exactly one of 'colour_red', 'colour_blue' is 1"
    """

    kind: ClassVar[str] = "one-hot"
    name: str  # of the category
    columns: tuple[str, ...]
    labels: tuple[str, ...]  # the level of each column
    or_none: bool

    @property
    def features(self) -> tuple[str, ...]:
        return self.columns

    @property
    def words(self) -> str:
        how = "at most one" if self.or_none else "exactly one"
        return f"{how} of {', '.join(map(repr, self.columns))} is 1"

    def verdict(self, rows: Rows) -> Verdict:
        cells = np.array([rows.flags[name] for name in self.columns])
        n, ones = cells.shape[1], cells.sum(axis=0)
        broken = int((ones > 1).sum() if self.or_none else (ones != 1).sum())
        counts = cells.sum(axis=1)
        chance = log_chance_disjoint(counts, n) if not broken else 0.0
        return Verdict(n, broken, share_not_one(counts / n, or_none=self.or_none), chance)


# ---- missing together ---------------------------------------------------------------------------


@dataclass(frozen=True)
class MissingTogether(Pattern):
    """Columns that are missing in the same rows.

    Examples:
        >>> MissingTogether(("rent", "landlord")).words
        "'rent' and 'landlord' are missing together"
    """

    kind: ClassVar[str] = "missing together"
    names: tuple[str, ...]

    @property
    def features(self) -> tuple[str, ...]:
        return self.names

    @property
    def words(self) -> str:
        *first, last = map(repr, self.names)
        return f"{', '.join(first)} and {last} are missing together"

    @property
    def rules(self) -> tuple[str, ...]:
        after = (*self.names[1:], self.names[0])  # around in a circle: all of them or none
        return tuple(
            f"if {quoted(a)} is missing then {quoted(b)} is missing"
            for a, b in zip(self.names, after, strict=True)
        )

    def verdict(self, rows: Rows) -> Verdict:
        gone = np.array([rows.missing[name] for name in self.names])
        broken = int((gone.any(axis=0) & ~gone.all(axis=0)).sum())
        share = min(share_unequal(row) for row in gone)
        return Verdict(
            gone.shape[1], broken, share, max(log_chance_equal(row, broken) for row in gone)
        )


# ---- if-then ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """A set of values of one feature: some levels of a category, or (not) a number's common value.

    Examples:
        >>> married = Term("status", (0, 2), ("married", "widowed"))
        >>> married.words, married.rule
        ("'status' is married or widowed", '"status" = "married" or "widowed"')
    """

    name: str
    places: tuple[int, ...]  # in `Rows.levels`
    values: tuple[str, ...]
    is_not: bool = False  # the number has any value but this one
    is_number: bool = False

    @property
    def words(self) -> str:
        return f"'{self.name}' is {'not ' if self.is_not else ''}{' or '.join(self.values)}"

    @property
    def rule(self) -> str:
        values = " or ".join(v if self.is_number else quoted(v) for v in self.values)
        return f"{quoted(self.name)} {'!=' if self.is_not else '='} {values}"


@dataclass(frozen=True)
class IfThen(Pattern):
    """Where one feature has a value, another one has one of some values.

    Examples:
        >>> rule = IfThen(Term("role", (1,), ("husband",)), Term("sex", (0,), ("male",)))
        >>> rule.words, rule.rules
        ("if 'role' is husband then 'sex' is male", ('if "role" = "husband" then "sex" = "male"',))
    """

    kind: ClassVar[str] = "if-then"
    condition: Term
    then: Term

    @property
    def features(self) -> tuple[str, ...]:
        return self.condition.name, self.then.name

    @property
    def words(self) -> str:
        return f"if {self.condition.words} then {self.then.words}"

    @property
    def rules(self) -> tuple[str, ...]:
        return (f"if {self.condition.rule} then {self.then.rule}",)

    def verdict(self, rows: Rows) -> Verdict:
        a, b = rows.levels[self.condition.name], rows.levels[self.then.name]
        known = (a >= 0) & (b >= 0)
        applies = known & np.isin(a, self.condition.places)
        inside = known & np.isin(b, self.then.places)
        n, drawn, n_inside = int(known.sum()), int(applies.sum()), int(inside.sum())
        if drawn == 0:
            return Verdict.nothing()
        broken = int((applies & ~inside).sum())
        chance = log_chance_inside(n, n_inside, drawn, broken)
        return Verdict(drawn, broken, 1.0 - n_inside / n, chance)


def as_text(value: float) -> str:
    """Return a number as a rule reads it.

    Examples:
        >>> as_text(1000.0), as_text(0.5)
        ('1000', '0.5')
    """
    return amount(value).replace(",", "")
