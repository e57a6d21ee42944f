"""Decides how many threads work at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import torch
from threadpoolctl import ThreadpoolController

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


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which NumPy's products of matrices use one thread.

    For small products, the threads wait for each other longer than the product takes.

    Examples:
        >>> with one_blas_thread():
        ...     pass
    """
    return _libraries().limit(limits=1, user_api="blas")


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


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all libraries that are loaded, once
