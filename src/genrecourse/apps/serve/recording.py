"""Recording: what is written to the record before an answer is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from genrecourse.apps.serve.errors import Refusal

if TYPE_CHECKING:
    import pandas as pd

    from genrecourse.advice.record import Answer, Record
    from genrecourse.advice.request import PlanRequest

AnswerAbout = Callable[[str, str, "pd.DataFrame", "PlanRequest", Iterable[Any]], "Answer"]
WRITERS = 64  # answers that wait for one sync together


class Recording:
    """The record of a service. What cannot be recorded is not answered: status 503.

    answer_about: `record.answers.answer_about`.
    """

    def __init__(self, record: Record, answer_about: AnswerAbout):
        self._record, self._about = record, answer_about
        self._writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="genrecourse record")

    async def add(
        self,
        request_id: str,
        verb: str,
        X: pd.DataFrame,
        asked: PlanRequest,
        outputs: Iterable[Any],
    ) -> None:
        """Record an answer with one output for each row of X, and return once it is on disk."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(
                self._writers, self._append, request_id, verb, X, asked, outputs
            )
        except OSError:
            raise Refusal(
                503,
                "the answer cannot be recorded, so it is not given",
                headers={"Retry-After": "30"},
            ) from None

    def _append(self, *about: Any) -> None:
        self._record.append(self._about(*about))

    def close(self) -> None:
        self._writers.shutdown()
        self._record.close()
