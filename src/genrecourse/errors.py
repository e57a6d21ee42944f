"""The one exception for a user's mistake: what is wrong, the value seen, what to do; and what such
sentences are made of."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path


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


@contextmanager
def own_warnings() -> Iterator[list[str]]:
    """Collects the warnings that this package raises inside the block, each text once.

    The list is filled when the block ends. Warnings of other packages are dropped: a front end has
    nothing to say about them.
    """
    package, notes = Path(__file__).parent, list[str]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield notes
    own = [each for each in caught if Path(each.filename).is_relative_to(package)]
    notes += dict.fromkeys(str(each.message) for each in own)
