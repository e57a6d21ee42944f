"""Checks of settings. An error names the setting, the value seen and the values it may have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

from genrecourse.errors import UserError


def check_safety(where: str, safety: Any) -> None:
    """Raise UserError unless `safety` is a number from 0 to 1. `where` starts the message.

    Examples:
        >>> check_safety("GenRe.fit", 0.5)
        >>> check_safety("GenRe.fit", 2)
        Traceback (most recent call last):
        ...
        genrecourse.errors.UserError: GenRe.fit: safety is 2; give a number from 0, ...
    """
    if not (is_number(safety) and 0 <= safety <= 1):
        raise UserError(
            f"{where}: safety is {safety!r}; give a number from 0, as cheap as possible, to 1, as "
            "safe as possible"
        )


def check_settings(
    where: str,
    *,
    above_zero: Mapping[str, Any] | None = None,
    from_zero: Mapping[str, Any] | None = None,
    counts: Mapping[str, Any] | None = None,
) -> None:
    """Raise UserError if a setting is not the kind of number that it must be.

    Args:
        where: the start of the message, for example "GenRe.fit".
        above_zero: settings by name that must be above 0.
        from_zero: settings by name that must be 0 or more.
        counts: settings by name that must be whole numbers of 1 or more.

    Examples:
        >>> check_settings("Wachter.fit", above_zero={"lr": 0.1}, counts={"steps": 0})
        Traceback (most recent call last):
        ...
        genrecourse.errors.UserError: Wachter.fit: steps is 0; it must be a whole number ...
    """
    checks: list[tuple[Mapping[str, Any] | None, str, Callable[[Any], bool]]] = [
        (above_zero, "a number above 0", lambda value: is_number(value) and value > 0),
        (from_zero, "a number from 0 on", lambda value: is_number(value) and value >= 0),
        (counts, "a whole number from 1 on", lambda value: is_whole(value) and value >= 1),
    ]
    for settings, needed, is_good in checks:
        for name, value in (settings or {}).items():
            if not is_good(value):
                raise UserError(f"{where}: {name} is {value!r}; it must be {needed}")


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number; True and False are none.

    Examples:
        >>> is_number(0.5), is_number(float("nan")), is_number(True), is_number("1")
        (True, False, False, False)
    """
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def is_whole(value: Any) -> bool:
    """Return whether a value is an integer; True and False are none.

    Examples:
        >>> is_whole(3), is_whole(3.0), is_whole(True)
        (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)
