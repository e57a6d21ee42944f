"""The one exception for a user's mistake: what is wrong, the value seen, what to do; and what such
sentences are made of."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """The input, not the library, is at fault. Apps show the sentence, never a traceback."""


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """What stands behind a name that is unknown: " (did you mean 'age'?)", or nothing."""
    by_case = {str(each).casefold(): each for each in known}  # 'AGE' is close to 'age'
    close = get_close_matches(str(name).casefold(), by_case, n=1)
    return f" (did you mean '{by_case[close[0]]}'?)" if close else ""


def counted(n: int, what: str) -> str:
    """So many of something: 1 row, 1,204 rows."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def amount(value: float) -> str:
    """A number as people write it: 200,000,000 rather than 2e+08."""
    return f"{value:,.10g}"


def stacklevel_of_caller() -> int:
    """Return the `stacklevel` at which a warning names the first line outside the library."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("genrecourse."):
        level, frame = level + 1, frame.f_back
    return level
