"""Recording: what is written to the record before an answer is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from genrecourse.advice.record import RecordError
from genrecourse.advice.record.answers import Answer
from genrecourse.apps.serve.errors import Refusal
from genrecourse.planning.plans import cell_value

if TYPE_CHECKING:
    import pandas as pd

    from genrecourse.advice.record import Record
    from genrecourse.advice.request import PlanRequest
    from genrecourse.planning.plans import Plan

WRITERS = 64  # answers that wait for one sync together


class Recording:
    """The record of a service. What cannot be recorded is not answered: status 503."""

    def __init__(self, record: Record):
        self.record = record
        self._writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="genrecourse record")

    async def plans(
        self, request_id: str, X: pd.DataFrame, asked: PlanRequest, made: Sequence[Plan]
    ) -> None:
        """Record plans, as `genrecourse record replay` reads them."""
        from genrecourse.advice.record.answers import plans_answer
        from genrecourse.planning.plans import Plans

        await self._append(plans_answer(request_id, X, asked, Plans(tuple(made))))

    async def other(
        self, request_id: str, verb: str, X: pd.DataFrame, output: Sequence[Any]
    ) -> None:
        """Record the answer of another verb: one output for each person of X."""
        people = [
            {**{f"input.{name}": cell_value(cell) for name, cell in row.items()}, "output": said}
            for row, said in zip(X.to_dict("records"), output, strict=True)
        ]
        await self._append(Answer(request=request_id, verb=verb, people=people))

    async def _append(self, answer: Answer) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._writers, self.record.append, answer)
        except RecordError:
            raise Refusal(
                503,
                "the answer cannot be recorded, so it is not given",
                headers={"Retry-After": "30"},
            ) from None

    def close(self) -> None:
        self._writers.shutdown()
        self.record.close()
