"""Answers: what every address of the API does with the desk, the record and the meters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import Request, Response

from genrecourse.apps.serve.errors import ClientGone, Refusal, refusal_of
from genrecourse.apps.serve.people import PeopleReader, check_people
from genrecourse.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from genrecourse.advice.request import PlanRequest
    from genrecourse.apps.serve.asked import Asking
    from genrecourse.apps.serve.desk import Desk
    from genrecourse.apps.serve.metrics import Meters
    from genrecourse.apps.serve.recording import Recording
    from genrecourse.planning.plans import Plan

T = TypeVar("T")
FEW = 16  # people; writing the JSON of more would keep other requests waiting


class Answers:
    """The verbs of the API: they read people, ask the desk, and record the answer.

    An answer is recorded before it is sent. A client that goes away is not computed for.
    """

    def __init__(self, desk: Desk, asking: Asking, meters: Meters, recording: Recording | None):
        self.desk, self.settings, self.service = desk, desk.settings, desk.service
        self.asking, self.meters, self.recording = asking, meters, recording
        self.people = PeopleReader(desk.service)

    def read(
        self, request: Request, people: Sequence[Any], where: str = "people", most: int = 0
    ) -> pd.DataFrame:
        """Return the people of a request as a table."""
        check_people(len(people), most or self.settings.people, where)
        request.state.counts = {"people": len(people)}
        return self.people.table(people, where)

    async def plans(self, request: Request, X: pd.DataFrame, asked: PlanRequest) -> list[Plan]:
        """Return the plan of each person, recorded."""
        made: list[Plan] = await self.asked_by(request, self.desk.plans(X, asked))
        self.meters.planned([plan.status for plan in made])
        if self.recording is not None:
            data = [plan.to_dict() for plan in made]
            await self.recording.add(request.state.request_id, "plans", X, asked, data)
        return made

    async def scores(self, request: Request, X: pd.DataFrame, verb: str = "decision") -> np.ndarray:
        """Return the model's score of each person, recorded."""
        found: np.ndarray = await self.asked_by(request, self.desk.decisions(X))
        await self.record(request, verb, X, found.tolist())
        return found

    async def record(self, request: Request, verb: str, X: pd.DataFrame, said: list[Any]) -> None:
        """Record an answer with one output for each person, if there is a record."""
        if self.recording is not None:
            asked = self.asking.nothing
            await self.recording.add(request.state.request_id, verb, X, asked, said)

    async def asked_by(self, request: Request, work: Coroutine[Any, Any, T]) -> T:
        """Return what the work returns, unless the client leaves before."""
        answer = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(_until_gone(request))
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise ClientGone
            return answer.result()
        except UserError as error:
            raise refusal_of(error, (*self.asking.names, *self.people.columns)) from None
        finally:
            answer.cancel()
            gone.cancel()


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def plan_data(plan: Plan) -> dict[str, Any]:
    """Return a plan as the API shows it.

    >>> from genrecourse.planning.plans import Plan
    >>> plan_data(Plan(0, "already-accepted", 0.7, 0.5))["status"]
    'already-accepted'
    """
    return plan.to_dict() | {"text": plan.to_text()}


async def plans_as(name: str, made: Sequence[Plan]) -> Response:
    """Return the response {name: plans}."""

    def write() -> bytes:
        return dumped({name: [plan_data(plan) for plan in made]})

    body = write() if len(made) <= FEW else await asyncio.to_thread(write)
    return Response(body, media_type="application/json")


def dumped(data: Any) -> bytes:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def not_there(what: str) -> Refusal:
    return Refusal(404, f"there is no {what}")
