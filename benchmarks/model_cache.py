"""A fitted method, kept in a folder so that several benchmarks need not fit it anew."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from genrecourse import METHODS, load
from genrecourse.evaluation.evaluate import Case
from genrecourse.methods.base import Method


def place(folder: Path, case: Case) -> Path:
    """Where what belongs to a case is kept. A nested case has the same name: of another h, `load`
    refuses the model."""
    return folder / f"{case.name}-{case.seed}"


def fitted(case: Case, folder: Path | None, method: str = "genre", **params: Any) -> Method:
    """The method on this case as it is by default; with other parameters it is not kept."""
    kept = place(folder, case) / method if folder and not params else None
    if kept and kept.exists():
        return load(kept, classifier=case.h)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*left out of training")
        found = METHODS[method](case.h, case.schema, random_state=case.seed, **params).fit(
            case.X, case.y
        )
    if kept:
        found.save(kept)
    return found
