"""What a fit writes to the log: counts, choices and seconds, never a value of a row.

The logger is `genrecourse`. INFO says what happened, DEBUG why (docs/logging.md).
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from genrecourse.errors import counted
from genrecourse.methods.params import pack_params

if TYPE_CHECKING:
    from genrecourse.methods.base import Method, TrainingRows

log = logging.getLogger(__name__)


def log_rows(method: Method, rows: TrainingRows) -> None:
    """Log how many rows a fit learns from, and the method's settings.

    >>> from genrecourse.evaluation.example_tables import example_rows
    >>> from genrecourse.methods.nearest import NearestNeighbour
    >>> log_rows(NearestNeighbour(), example_rows()[1])  # nothing is printed
    """
    name = type(method).__name__
    log.info(
        "%s.fit: %s; the model accepts %s, and %s a favourable outcome",
        name,
        counted(len(rows.Z), "row"),
        f"{int((rows.confidence > 0.5).sum()):,}",
        f"{int(rows.favourable.sum()):,} have",
    )
    log.debug("%s.fit: settings: %s", name, pack_params(method.get_params(deep=False)))


def log_choices(method: Method, since: float) -> None:
    """Log what a fit has chosen, how it went, and the seconds since `since`.

    >>> from genrecourse.methods.nearest import NearestNeighbour
    >>> log_choices(NearestNeighbour(), time.perf_counter())  # nothing is printed
    """
    name = type(method).__name__
    found = {each: getattr(method, f"{each}_", None) for each in method.chosen}
    for each, value in found.items():
        log.info("%s.fit: %s is %s", name, each, value)
    for part, value in method.fit_report_.items():
        log.debug("%s.fit: report on %s: %s", name, part, value)
    log.info("%s.fit: done in %.1f seconds", name, time.perf_counter() - since)
