"""What a fit writes to the log: counts, choices and seconds, never a value of a row.

The logger is `genrecourse`. INFO says what happened, DEBUG why (docs/logging.md).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from genrecourse.errors import counted
from genrecourse.methods.params import pack_params

if TYPE_CHECKING:
    from genrecourse.rules.problem import TrainingRows

log = logging.getLogger(__name__)


def log_rows(name: str, rows: TrainingRows, params: Mapping[str, Any]) -> None:
    """Log how many rows the method of this name learns from, and its settings.

    >>> from genrecourse.evaluation.example_tables import example_rows
    >>> log_rows("NearestNeighbour", example_rows()[1], {"gamma": 0.7})  # nothing is printed
    """
    log.info(
        "%s.fit: %s; the model accepts %s, and %s a favourable outcome",
        name,
        counted(len(rows.Z), "row"),
        f"{int((rows.confidence > 0.5).sum()):,}",
        f"{int(rows.favourable.sum()):,} have",
    )
    log.debug("%s.fit: settings: %s", name, pack_params(params))


def log_choices(
    name: str, chosen: Mapping[str, Any], report: Mapping[str, Any], since: float
) -> None:
    """Log what a fit has chosen, how it went, and the seconds since `since`.

    >>> log_choices("GenRe", {"gamma": 0.7}, {}, time.perf_counter())  # nothing is printed
    """
    for each, value in chosen.items():
        log.info("%s.fit: %s is %s", name, each, value)
    for part, value in report.items():
        log.debug("%s.fit: report on %s: %s", name, part, value)
    log.info("%s.fit: done in %.1f seconds", name, time.perf_counter() - since)
