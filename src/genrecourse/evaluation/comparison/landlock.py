"""Files that the kernel itself refuses to a process, by Linux' Landlock where there is one.

An audit hook sees what Python opens. This also holds for native code and for whatever the process
starts, and it closes the memory of processes outside. Landlock knows only what is allowed: so all
that stands beside the way from the root to a closed folder is allowed, and the folder is not.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# From the kernel's headers; the numbers of these calls are the same on every kind of machine.
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
    """Never again read these files and folders, named by their real paths. False: not possible.

    Modules that lie inside a closed folder can still be imported.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    asked = _Ruleset(READ_FILE)
    rules = libc.syscall(CREATE_RULESET, ctypes.byref(asked), ctypes.sizeof(asked), 0)
    if rules < 0:
        return False  # an older kernel, or one without it
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
        return  # it has gone, or is not ours to see
    try:
        rule = _Beneath(READ_FILE, folder)
        libc.syscall(ADD_RULE, rules, PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(folder)


def _open_beside(folder: str, closed: tuple[str, ...]) -> Iterator[str]:
    """What `folder` holds except for the closed paths and the way to them."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.is_symlink() or entry.path in closed:
            continue  # what a link leads to is allowed, or not, where it is
        if any(path.startswith(entry.path + os.sep) for path in closed):
            yield from _open_beside(entry.path, closed)
        else:
            yield entry.path


def _imported(closed: tuple[str, ...]) -> list[str]:
    """Folders of modules inside the closed ones."""
    folders = [os.path.realpath(folder) for folder in (*sys.path, sys.prefix, sys.base_prefix)]
    return [f for f in folders if any(Path(f).is_relative_to(path) for path in closed)]
