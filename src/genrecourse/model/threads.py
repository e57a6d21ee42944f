"""How many threads a scikit-learn model is given."""

from __future__ import annotations

WORTHWHILE = 2_000  # rows; with fewer, waiting for threads takes longer than the work itself


def n_jobs(rows: int) -> int | None:
    """For a model that is fitted on so many rows: every core, or none but this thread's."""
    return -1 if rows >= WORTHWHILE else None
