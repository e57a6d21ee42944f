"""Block files in the kernel, with Landlock, if Linux supports it.

An audit hook sees only what Python opens. Landlock also applies to native code and to child
processes, and it blocks the memory of other processes. Landlock has only rules that allow paths.
Therefore everything next to the path from the root to a closed folder is allowed, and the folder
itself is not.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# From the kernel headers; the numbers of these calls are the same on all architectures.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
READ_FILE = 1 << 2
PATH_BENEATH = 1
NO_NEW_PRIVILEGES = 38
MOST_RULES = 50_000


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled", ctypes.c_uint64),)


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def lock(closed: tuple[str, ...]) -> bool:
    """Block reading of these real paths for this process; return False if that is not possible.

    This cannot be undone. Modules inside a closed folder can still be imported.

    >>> lock(("/home/somebody/data",))  # doctest: +SKIP
    True
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    asked = _Ruleset(READ_FILE)
    rules = libc.syscall(CREATE_RULESET, ctypes.byref(asked), ctypes.sizeof(asked), 0)
    if rules < 0:
        return False  # the kernel does not support it
    try:
        paths = list(_open_beside("/", closed)) + _imported(closed)
        if len(paths) > MOST_RULES:
            return False
        for path in paths:
            _allow(libc, rules, path)
        if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            return False
        return bool(libc.syscall(RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: str) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it does not exist any more, or we may not see it
    try:
        rule = _Beneath(READ_FILE, folder)
        libc.syscall(ADD_RULE, rules, PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(folder)


def _open_beside(folder: str, closed: tuple[str, ...]) -> Iterator[str]:
    """Yield the contents of `folder` without the closed paths and the folders that lead to them."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.is_symlink() or entry.path in closed:
            continue  # the target of a link has its own rule
        if any(path.startswith(entry.path + os.sep) for path in closed):
            yield from _open_beside(entry.path, closed)
        else:
            yield entry.path


def _imported(closed: tuple[str, ...]) -> list[str]:
    """Return the folders of modules inside the closed folders."""
    folders = [os.path.realpath(folder) for folder in (*sys.path, sys.prefix, sys.base_prefix)]
    return [f for f in folders if any(Path(f).is_relative_to(path) for path in closed)]
