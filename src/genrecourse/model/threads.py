"""Decides how many threads work at once, and keeps apart what threads of the user share.

Several threads may ask one model, and a process may fork after it has asked one.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import torch
from threadpoolctl import ThreadpoolController

from genrecourse.model.locks import Lock

WORTHWHILE = 2_000  # rows; with fewer, starting threads takes longer than the work itself
SMALL = 10_000_000  # multiplications; for fewer, torch's threads wait longer than they work

# counting takes longer than many a small question
_WEIGHTS: WeakKeyDictionary[torch.nn.Module, int] = WeakKeyDictionary()


def n_jobs(rows: int) -> int | None:
    """Return scikit-learn's `n_jobs` for a model fitted on so many rows: all cores, or one thread.

    Examples:
        >>> n_jobs(100), n_jobs(5_000)
        (None, -1)
    """
    return -1 if rows >= WORTHWHILE else None


def n_threads() -> int:
    """Return how many threads a question may use: as many as torch does.

    A process that shares a machine with others, such as a worker of a batch, has set one.

    Examples:
        >>> n_threads() >= 1
        True
    """
    return torch.get_num_threads()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy's products of matrices use one thread inside.

    For small products, the threads wait for each other longer than the product takes. The limit is
    the whole process's: the first thread that enters sets it, and the last that leaves lifts it.

    Examples:
        >>> with one_blas_thread():
        ...     pass
    """
    _BLAS.enter()
    try:
        yield
    finally:
        _BLAS.leave()


class _Limit:
    """One thread for the BLAS libraries, as long as somebody is inside."""

    def __init__(self) -> None:
        self._lock, self._inside, self._limit = Lock(), 0, None

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = _libraries().limit(limits=1, user_api="blas")
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._lift()

    def forget(self) -> None:
        """Lift the limit in a forked process, which lacks the threads that were inside."""
        if self._inside:
            self._inside = 0
            self._lift()

    def _lift(self) -> None:
        limit: Any = self._limit
        limit.restore_original_limits()


_BLAS = _Limit()


@contextmanager
def torch_threads(multiplications: int) -> Iterator[None]:
    """Use one torch thread inside, if so few multiplications are not worth starting more.

    On an idle machine several threads are as quick. If another process has a core, each small
    product waits until its second thread gets one.

    Examples:
        >>> with torch_threads(1_000):
        ...     torch.get_num_threads()
        1
    """
    before = torch.get_num_threads()
    if multiplications >= SMALL or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def n_weights(module: torch.nn.Module) -> int:
    """Return how many numbers a module has learned: its multiplications for one row, about.

    Examples:
        >>> n_weights(torch.nn.Linear(3, 2))
        8
    """
    if module not in _WEIGHTS:
        _WEIGHTS[module] = sum(each.numel() for each in module.parameters())
    return _WEIGHTS[module]


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let torch's global random numbers start from this seed inside; then they go on as before.

    Modules draw their first weights from them, and threads share them, so one thread at a time.

    Examples:
        >>> with seeded(3):
        ...     first = torch.rand(2)
        >>> with seeded(3):
        ...     bool((torch.rand(2) == first).all())
        True
    """
    with _SEEDING, torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seed))
        yield


_SEEDING = Lock()


# ---- modules out of train mode ---------------------------------------------------------------

_MODES = Lock()
_HELD: dict[torch.nn.Module, int] = {}  # parts out of train mode, by how many calls need it


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Keep every part of a module out of train mode inside, and give each its own mode back.

    A part goes back to train mode when the last thread that needs it has left. Only parts in train
    mode are set, because setting takes longer than many a small question.

    Examples:
        >>> module = torch.nn.Dropout()
        >>> with evaluating(module):
        ...     module.training
        False
        >>> module.training
        True
    """
    with _MODES:
        held = [part for part in module.modules() if part.training or part in _HELD]
        for part in held:
            _HELD[part] = _HELD.get(part, 0) + 1
            part.training = False
    try:
        yield
    finally:
        with _MODES:
            for part in held:
                _let_go(part)


def _let_go(part: torch.nn.Module) -> None:
    left = _HELD.get(part, 0) - 1
    if left > 0:
        _HELD[part] = left
    else:
        _HELD.pop(part, None)
        part.training = True


# ---- fork ------------------------------------------------------------------------------------


def _stop_openmp_threads() -> None:
    """Let GNU's OpenMP end the threads that this thread has started.

    A forked process does not have them, but its OpenMP would wait for them for ever. They are
    started again when they are needed. torch, scikit-learn, LightGBM and xgboost bring one each.
    """
    for library in ThreadpoolController().info():
        if library["user_api"] == "openmp":
            pause = getattr(ctypes.CDLL(library["filepath"]), "omp_pause_resource_all", None)
            if pause is not None:  # before OpenMP 5.0 there was none
                pause(PAUSE_SOFT)


def _forget_other_threads() -> None:
    """Give back what threads held that a forked process does not have."""
    _BLAS.forget()
    for part in list(_HELD):
        _HELD.pop(part)
        part.training = True


PAUSE_SOFT = 1  # omp_pause_soft: the settings stay

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_stop_openmp_threads, after_in_child=_forget_other_threads)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all libraries that are loaded, once
