"""Allowed: what a setting may be, declared beside the setting and checked before any work.

A class with settings (a method, `NetConfig`, ...) has a dict `allowed`, from the name of each
setting to what it may be. If settings must fit each other, its method `conflict` says which do not.
`check_settings` looks at all of them, also inside records, and `check_values` at the options of one
request. An error names the setting, the value seen and the values it may have.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from genrecourse.errors import UserError, amount, did_you_mean, shown
from genrecourse.table import limits

# ---- what a setting may be -------------------------------------------------------------------


class Allowed(ABC):
    """What a setting may be. `words` completes the sentence "it must be ...".

    >>> Number(0, 1).fault("margin", 2)
    'margin is 2; it must be a number from 0 to 1'
    >>> Number(0, 1).fault("margin", 0.5)
    ''
    """

    @property
    @abstractmethod
    def words(self) -> str: ...

    @abstractmethod
    def has(self, value: Any) -> bool:
        """Return whether the setting may have this value."""

    def fault(self, name: str, value: Any) -> str:
        """Return what is wrong with a value of the setting called `name`; "" if it is right."""
        if self.has(value):
            return ""
        return f"{name} is {shown(value)}{self._hint(value)}; it must be {self.words}"

    def _hint(self, value: Any) -> str:
        return ""


@dataclass(frozen=True)
class Number(Allowed):
    """A finite number from low to high; True and False are none.

    whole: only whole numbers. above: low itself is not allowed. below: high itself is not.
    says: other words for an error.

    >>> Number(0, above=True).words, Number(1, 100, whole=True).words
    ('a number above 0', 'a whole number from 1 to 100')
    """

    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    above: bool = False
    below: bool = False
    says: str = ""

    @property
    def words(self) -> str:
        if self.says:
            return self.says
        kind = "a whole number" if self.whole else "a number"
        low = f"{kind} {'above' if self.above else 'from'} {amount(self.low)}"
        if math.isinf(self.high):
            return low if self.above else f"{low} on"
        if not (self.above or self.below):
            return f"{low} to {amount(self.high)}"
        return f"{low} and {'below' if self.below else 'at most'} {amount(self.high)}"

    def has(self, value: Any) -> bool:
        if not (is_whole(value) if self.whole else is_number(value)):
            return False
        over = value > self.low if self.above else value >= self.low
        return bool(over and (value < self.high if self.below else value <= self.high))


@dataclass(frozen=True)
class Choice(Allowed):
    """One of some texts.

    >>> Choice(("quantile", "uniform")).fault("bins", "quantiles")
    "bins is 'quantiles' (did you mean 'quantile'?); it must be 'quantile' or 'uniform'"
    """

    values: Collection[str]

    @property
    def words(self) -> str:
        return _listed([repr(value) for value in self.values])

    def has(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.values

    def _hint(self, value: Any) -> str:
        return did_you_mean(value, self.values) if isinstance(value, str) else ""


@dataclass(frozen=True)
class Kind(Allowed):
    """Anything of a type, such as a bool, a dict or None.

    >>> Kind(bool, "True or False").has(1)
    False
    """

    kind: type | tuple[type, ...]
    says: str

    @property
    def words(self) -> str:
        return self.says

    def has(self, value: Any) -> bool:
        return isinstance(value, self.kind)


@dataclass(frozen=True)
class Several(Allowed):
    """A tuple or list of values of one sort, in a number of allowed lengths; None: any length.

    >>> Several(Number(1, whole=True), 2).fault("bounds", (1, 0))
    'bounds is (1, 0); it must be 2 of these: a whole number from 1 on'
    """

    part: Allowed
    length: int | None = None

    @property
    def words(self) -> str:
        many = "a tuple" if self.length is None else str(self.length)
        return f"{many} of these: {self.part.words}"

    def has(self, value: Any) -> bool:
        if not isinstance(value, tuple | list) or len(value) > limits.LAYERS:
            return False
        fits = self.length is None or len(value) == self.length
        return fits and all(self.part.has(each) for each in value)


@dataclass(frozen=True)
class Record(Allowed):
    """A record of settings, which says itself what each of them may be.

    >>> from genrecourse.model.classifier import MLPConfig
    >>> Record(MLPConfig).fault("config", MLPConfig(epochs=0))
    'config.epochs is 0; it must be a whole number from 1 to 10,000,000'
    """

    kind: type[Any]

    @property
    def words(self) -> str:
        return f"{self.kind.__name__}(...)"

    def has(self, value: Any) -> bool:
        return isinstance(value, self.kind) and not fault_in(value)

    def fault(self, name: str, value: Any) -> str:
        return (
            fault_in(value, f"{name}.")
            if isinstance(value, self.kind)
            else super().fault(name, value)
        )


class Or(Allowed):
    """One of several sorts of values.

    >>> Or(Choice(("auto",)), Number(0, 1)).fault("gamma", None)
    "gamma is None; it must be 'auto' or a number from 0 to 1"
    """

    def __init__(self, *parts: Allowed):
        self.parts = parts

    @property
    def words(self) -> str:
        return _listed([part.words for part in self.parts])

    def has(self, value: Any) -> bool:
        return any(part.has(value) for part in self.parts)

    def fault(self, name: str, value: Any) -> str:
        for part in self.parts:  # a wrong record says which of its settings is wrong
            if isinstance(part, Record) and isinstance(value, part.kind):
                return part.fault(name, value)
        return super().fault(name, value)

    def _hint(self, value: Any) -> str:
        texts = [text for part in self.parts if isinstance(part, Choice) for text in part.values]
        return did_you_mean(value, texts) if isinstance(value, str) else ""


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


# ---- what most settings are ------------------------------------------------------------------

NOTHING = Kind(type(None), "None")
FLAG = Kind((bool, np.bool_), "True or False")
AUTO = Choice(("auto",))
ROW_ERRORS = Choice(("status", "raise"))  # what becomes of a row that cannot be read
ANYTHING = Kind(object, "anything")  # what another part of the library looks at
COUNT = Number(1, limits.COUNT, whole=True)
STEPS = Number(1, limits.STEPS, whole=True)
PLANS_EACH = Number(1, limits.PLANS, whole=True)
DRAWS = Number(1, limits.DRAWS, whole=True)
LAYERS = Number(1, limits.LAYERS, whole=True)
WIDTH = Number(1, limits.WIDTH, whole=True)
SEED = Number(0, limits.SEED, whole=True)
RATE = Number(0, limits.RATE, above=True)
DECAY = Number(0, 100)  # of weights, in training
WEIGHT = Number(0, limits.WEIGHT)
POSITIVE = Number(0, limits.WEIGHT, above=True)
SHARE = Number(0, 1)
SAFETY = Number(0, 1, says="a number from 0, as cheap as possible, to 1, as safe as possible")


# ---- checks ----------------------------------------------------------------------------------


def check_settings(where: str, owner: Any) -> None:
    """Raise UserError if a setting of a method or record is wrong. `where` starts the message.

    >>> from genrecourse.model.classifier import MLPConfig
    >>> check_settings("fit_mlp", MLPConfig(lr=0))
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: fit_mlp: lr is 0; it must be a number above 0 and at most 10
    """
    fault = fault_in(owner)
    if fault:
        raise UserError(f"{where}: {fault}")


def check_values(where: str, values: Mapping[str, Any], allowed: Mapping[str, Allowed]) -> None:
    """Raise UserError if one of these values is not allowed, such as an option of a request.

    >>> check_values("GenRe.plans", {"n": 0}, {"n": Number(1, 100, whole=True)})
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: GenRe.plans: n is 0; it must be a whole number from 1 to 100
    """
    for name, value in values.items():
        fault = allowed[name].fault(name, value) if name in allowed else ""
        if fault:
            raise UserError(f"{where}: {fault}")


def check_size(where: str, rows: int, each: int, what: str, most: int) -> None:
    """Raise UserError if so many rows with so many of something each are too many at once.

    >>> check_size("GenRe.plans", 10**6, 100, "plans", 10**7)
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: GenRe.plans: 1,000,000 rows with 100 plans each are ...
    """
    if rows * each > most:
        raise UserError(
            f"{where}: {rows:,} rows with {each:,} {what} each are {rows * each:,} {what}, and one "
            f"request may ask for {most:,}; give fewer rows at once, or ask for fewer {what}"
        )


def allowed_in(kind: type[Any], table: str = "allowed") -> dict[str, Allowed]:
    """Return what each setting of a class may be, with what its base classes declare.

    table: the name of the dicts; a method has `allowed_options`, too.

    >>> from genrecourse.genre.model import NetConfig
    >>> allowed_in(NetConfig)["cost_in_logits"].words
    'True or False'
    """
    found: dict[str, Allowed] = {}
    for each in reversed(kind.__mro__):
        found |= vars(each).get(table, {})
    return found


def fault_in(owner: Any, before: str = "") -> str:
    """Return what is wrong with the settings of a method or record; "" if nothing is.

    before: stands before the names of the settings, such as "net.".

    >>> from genrecourse.genre.model import NetConfig
    >>> fault_in(NetConfig(width=15, heads=2), "net.")
    'net.width is 15; it must be a multiple of heads, here 2'
    """
    for name, allowed in allowed_in(type(owner)).items():
        fault = allowed.fault(before + name, getattr(owner, name))
        if fault:
            return fault
    conflict = owner.conflict() if hasattr(owner, "conflict") else ""
    return before + conflict if conflict else ""


def heads_conflict(width: int, heads: int) -> str:
    """Return why attention of this width cannot have so many heads; "" if it can.

    >>> heads_conflict(16, 2)
    ''
    """
    fits = width % heads == 0
    return "" if fits else f"width is {width}; it must be a multiple of heads, here {heads}"


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number; True and False are none.

    Examples:
        >>> is_number(0.5), is_number(float("nan")), is_number(True), is_number("1")
        (True, False, False, False)
        >>> is_number(10**400)  # too large for a float
        False
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def is_whole(value: Any) -> bool:
    """Return whether a value is an integer; True and False are none.

    Examples:
        >>> is_whole(3), is_whole(3.0), is_whole(True)
        (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)
