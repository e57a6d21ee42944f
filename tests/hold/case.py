"""One case of bad input, and what is wrong with the answer to it."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from genrecourse.errors import UserError

LONGEST = 1500  # letters of a message: lists of methods and parameters are long
SECONDS = 120  # a case takes milliseconds; one that hangs is ended after so long


@dataclass(frozen=True)
class Case:
    """A call, and texts that its error must hold: the setting and the value, or the name.

    may_answer: the call may also return; it then has checked its answer itself.
    """

    kind: str
    label: str
    act: Callable[[], Any]
    says: tuple[str, ...] = ()
    may_answer: bool = False


class TooLongError(BaseException):
    """The case did not end in time. No code under test catches it."""


def complaint(case: Case) -> str:
    """Return what is wrong with the answer to a case; "" if nothing is."""
    return outcome(case)[1]


def outcome(case: Case) -> tuple[str, str]:
    """Return "refused", "answered" or "wrong", and what is wrong."""
    try:
        with warnings.catch_warnings(), _limited():
            warnings.simplefilter("ignore")
            case.act()
    except UserError as error:
        said = _wrong_words(case, str(error))
        return ("wrong" if said else "refused"), said
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return "wrong", f"{type(error).__name__}: {str(error)[:200]}"
    return ("answered", "") if case.may_answer else ("wrong", "accepted in silence")


@contextmanager
def _limited() -> Iterator[None]:
    def end(number: int, frame: Any) -> None:
        raise TooLongError(f"no answer within {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _wrong_words(case: Case, text: str) -> str:
    if "\n" in text or "\0" in text or (not text.isascii() and _cannot_be_printed(text)):
        return f"not a line that can be printed: {text[:200]!r}"
    if len(text) > LONGEST:
        return f"{len(text)} letters: {text[:200]}"
    lacks = [word for word in case.says if word not in text]
    return f"does not say {lacks}: {text[:300]}" if lacks else ""


def _cannot_be_printed(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
