"""Locks for what several threads share, which a forked process gets free.

A process that is forked has one thread: the one that forked. A lock that another thread held at
that moment would stay closed in the new process for ever.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet


class Lock:
    """A lock that its owner may take again, and that is free in a forked process.

    >>> lock = Lock()
    >>> with lock, lock:
    ...     pass
    """

    def __init__(self) -> None:
        self._lock, self._owner, self._depth = threading.RLock(), 0, 0
        _ALL.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()
        self._owner, self._depth = threading.get_ident(), self._depth + 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        self._lock.release()

    def renew(self) -> None:
        """Free the lock, unless this thread holds it.

        A lock whose depth is 0 may be closed: another thread may have been just behind `acquire`.
        """
        if not (self._depth and self._owner == threading.get_ident()):
            self._lock, self._depth = threading.RLock(), 0


_ALL: WeakSet[Lock] = WeakSet()


def _renew_all() -> None:
    for lock in list(_ALL):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)

# `catch_warnings` keeps and puts back the filters of the whole process: if two threads are inside,
# the one that leaves last puts back those of the other.
WARNINGS = Lock()


@contextmanager
def without_warnings(message: str = "") -> Iterator[None]:
    """Silence warnings that start with this regular expression; one thread at a time.

    >>> with without_warnings("few"):
    ...     warnings.warn("few rows")
    """
    with WARNINGS, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message)
        yield
