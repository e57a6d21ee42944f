"""Checks of settings: each names the setting, the value seen and the values it may have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

from genrecourse.errors import UserError


def check_safety(where: str, safety: Any) -> None:
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
    """Refuse settings of a method, by name, that are not the numbers they have to be."""
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
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
