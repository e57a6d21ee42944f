"""Decides how many threads a scikit-learn model may use."""

from __future__ import annotations

WORTHWHILE = 2_000  # rows; with fewer, starting threads takes longer than the work itself


def n_jobs(rows: int) -> int | None:
    """Return scikit-learn's `n_jobs` for a model fitted on so many rows: all cores, or one thread.

    Examples:
        >>> n_jobs(100), n_jobs(5_000)
        (None, -1)
    """
    return -1 if rows >= WORTHWHILE else None
