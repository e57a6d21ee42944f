"""Decides how many threads work at once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

WORTHWHILE = 2_000  # rows; with fewer, starting threads takes longer than the work itself


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


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all libraries that are loaded, once
