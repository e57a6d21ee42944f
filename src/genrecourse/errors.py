"""UserError, the one exception for a mistake in the input, and helpers for its messages.

A message says what is wrong, which value was seen, and what to do.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

# front ends that call `fit` for a user: a warning may name a line of theirs
CALLERS = ("apps", "advice", "auditing", "reports", "evaluation")
_UNPRINTABLE = re.compile("[\0\ud800-\udfff]")  # NUL, and halves of characters
_LONG = re.compile(r"\S{500,}")  # a value that nobody reads to its end
SHOWN = 80  # characters of a value in a message
LONG_BITS = 256  # of a whole number that is not written out in a message


class UserError(ValueError):
    """The input is wrong, not the library. Apps show the message, never a traceback.

    Examples:
        >>> from genrecourse import load_dataset
        >>> load_dataset("germn")
        Traceback (most recent call last):
        ...
        genrecourse.errors.UserError: no data set 'germn' (did you mean 'german'?); ...
        >>> str(UserError("no column 'in\\x00come'")).isprintable()
        True
        >>> len(str(UserError("no column " + "x" * 10_000)))
        213
    """

    def __init__(self, text: str = ""):
        # what nobody can print, or write to a file, is shown as Python writes it
        text = _LONG.sub(lambda found: found[0][:200] + "...", text)
        super().__init__(_UNPRINTABLE.sub(lambda found: repr(found[0])[1:-1], text))


class NoSuchPlanError(UserError, IndexError):
    """`plans[i]` asks for a position that does not exist; an IndexError, as of any sequence.

    >>> issubclass(NoSuchPlanError, IndexError)
    True
    """


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a hint to put behind an unknown name, or "" if no known name is close.

    Examples:
        >>> did_you_mean("AGE", ["age", "income"])
        " (did you mean 'age'?)"
        >>> did_you_mean("zip", ["age", "income"])
        ''
    """
    by_case = {str(each).casefold(): each for each in known}  # 'AGE' is close to 'age'
    close = get_close_matches(str(name).casefold(), by_case, n=1)
    return f" (did you mean '{by_case[close[0]]}'?)" if close else ""


def shown(value: object, most: int = SHOWN) -> str:
    """Return a value that was given as people type it: on one line, of at most `most` characters.

    Examples:
        >>> shown("any"), shown(10**5000), len(shown("x" * 1000))
        ("'any'", 'a whole number of 5,001 digits', 80)
    """
    if isinstance(value, int) and value.bit_length() > LONG_BITS:
        return f"a whole number of {digits_in(value):,} digits"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # nested too deeply, or an object that cannot show itself
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= most else text[: most - 3] + "..."


def text_problem(text: str) -> str:
    """Return why a text can be neither a name nor a path; "" if it can.

    >>> text_problem("age"), text_problem("a" + chr(0))
    ('', 'holds the character NUL')
    """
    found = _UNPRINTABLE.search(text)
    if found is None:
        return ""
    is_nul = found[0] == "\0"
    return f"holds {'the character NUL' if is_nul else 'half of a character (a surrogate)'}"


def digits_in(value: int) -> int:
    """Return how many digits a whole number has; Python writes out at most 4,300.

    >>> digits_in(10**5000 - 1), digits_in(-7)
    (5000, 1)
    """
    size = abs(value)
    digits = int(size.bit_length() * 0.30102999566398120)  # log10(2): the number itself or one less
    return digits + (size >= 10**digits)


class StillRejected(UserWarning):
    """The warning of `recourse` about rows that h still rejects.

    >>> issubclass(StillRejected, UserWarning)
    True
    """


class RowsUnreadable(UserWarning):
    """The warning of `recourse` about rows that cannot be read and are returned unchanged.

    >>> issubclass(RowsUnreadable, UserWarning)
    True
    """


@contextmanager
def rejections_expected() -> Iterator[None]:
    """Silence `StillRejected`, where code measures itself how many rows h accepts.

    >>> with rejections_expected():
    ...     warnings.warn("no line is printed", StillRejected)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StillRejected)
        yield


def counted(n: int, what: str) -> str:
    """Return a count with its noun in the singular or plural.

    Examples:
        >>> counted(1, "row"), counted(1204, "row")
        ('1 row', '1,204 rows')
    """
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def amount(value: float) -> str:
    """Return a number as people write it, without an exponent.

    Examples:
        >>> amount(2e8), amount(0.25)
        ('200,000,000', '0.25')
    """
    return f"{value:,.10g}"


def stacklevel_of_caller() -> int:
    """Return the `stacklevel` at which a warning names the line that called the library.

    The library's own front ends count as callers.

    Examples:
        >>> def library_function():
        ...     warnings.warn("few rows", stacklevel=stacklevel_of_caller())
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     library_function()
        >>> str(caught[0].message)
        'few rows'
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back and _is_inside(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    return level


def _is_inside(module: str) -> bool:
    return module.startswith("genrecourse.") and module.split(".")[1] not in CALLERS


@contextmanager
def own_warnings() -> Iterator[list[str]]:
    """Collect the warnings that this package raises inside the block, each text once.

    The list is filled when the block ends. Warnings of other packages are dropped, since a user of
    a front end cannot act on them.

    Examples:
        >>> with own_warnings() as notes:
        ...     warnings.warn_explicit("few rows", UserWarning, __file__, lineno=1)
        ...     warnings.warn_explicit("slow", UserWarning, "elsewhere.py", lineno=1)
        >>> notes
        ['few rows']
    """
    package, notes = Path(__file__).parent, list[str]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield notes
    own = [each for each in caught if Path(each.filename).is_relative_to(package)]
    notes += dict.fromkeys(str(each.message) for each in own)
