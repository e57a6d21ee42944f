"""Desk: one queue and one worker, at which requests that arrive together are answered together.

Answers do not depend on who else asks: the noise of a method depends on the person's own row. So
requests with the same options are one call of the method, and a person's answer is the same, byte
for byte, as if nobody else had asked.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.apps.serve.errors import Refusal
from genrecourse.model.classifier import scores_by_row

if TYPE_CHECKING:
    from genrecourse.advice.request import PlanRequest
    from genrecourse.advice.service import Service
    from genrecourse.apps.serve.settings import Settings
    from genrecourse.planning.plans import Plan

WARM = 8  # training rows that are asked about before the service is ready
GATHER = 0.1  # seconds that a batch waits for more questions at most
QUIET = 0.01  # seconds without a new question after which it waits no longer
Answer = Callable[[Sequence[Any]], Sequence[Any]]
"""Answers several questions with the same key by one call."""


@dataclass(eq=False)
class Waiting:
    """One question in the queue."""

    key: Hashable  # questions with equal keys may be answered by one call; None: alone
    question: Any
    answer: Answer
    people: int
    done: Future[Any] = field(default_factory=Future)

    @property
    def is_given_up(self) -> bool:
        return self.done.cancelled()


class Desk:
    """The verbs of a `Service` for many callers at once: `await desk.plans(X, request)`.

    The methods of the library run in one thread, since they are not meant for several; everything
    else waits in a queue of at most `settings.waiting` questions. A question whose asker has gone
    is not computed.
    """

    def __init__(self, service: Service, settings: Settings):
        self.service, self.settings = service, settings
        self.batches: Callable[[int, int], None] = lambda questions, people: None  # for metrics
        self._queue: deque[Waiting] = deque()
        self._changed = threading.Condition()
        self._is_open = self._is_warm = False
        self._last = 1  # questions that were answered together the last time
        self._worker: threading.Thread | None = None

    # ---- the verbs ------------------------------------------------------------------------------

    async def plans(self, X: pd.DataFrame, request: PlanRequest) -> list[Plan]:
        """Return the plan of each row of X; X has the index 0, 1, 2, ..."""
        key = None if _has_personal_rules(request) else ("plans", _text(request), _layout(X))
        return await self._ask(key, (X, request), self._answer_plans, len(X))

    async def decisions(self, X: pd.DataFrame) -> np.ndarray:
        """Return the model's score of each row of X."""
        return await self._ask(("decisions", _layout(X)), X, self._answer_decisions, len(X))

    async def other(self, work: Callable[[], Any], people: int = 1) -> Any:
        """Return what some other work with the service returns, done when it is its turn."""
        return await self._ask(None, None, lambda questions: [work()], people)

    # ---- the queue ------------------------------------------------------------------------------

    def open(self) -> None:
        self._is_open = True
        self._worker = threading.Thread(target=self._work, name="genrecourse desk", daemon=True)
        self._worker.start()

    def close(self) -> None:
        """Answer what waits, and end the worker."""
        with self._changed:
            self._is_open = False
            self._changed.notify_all()
        if self._worker is not None:
            self._worker.join(
                self.settings.answer_seconds
            )  # a longer answer is asked for by nobody

    @property
    def is_working(self) -> bool:
        is_alive = self._worker is not None and self._worker.is_alive()
        return self._is_open and self._is_warm and is_alive

    @property
    def n_waiting(self) -> int:
        return len(self._queue)

    def check_room(self) -> None:
        """Raise Refusal if the queue is full."""
        with self._changed:
            if len(self._queue) >= self.settings.waiting:  # those who left take nobody's place
                self._queue = deque(each for each in self._queue if not each.is_given_up)
            if len(self._queue) >= self.settings.waiting:
                raise Refusal(
                    503,
                    f"{len(self._queue)} requests are waiting already",
                    headers={"Retry-After": "1"},
                )

    async def _ask(self, key: Hashable, question: Any, answer: Answer, people: int) -> Any:
        waiting = Waiting(key, question, answer, people)
        with self._changed:
            if not self._is_open:
                raise Refusal(503, "the service is stopping", headers={"Retry-After": "5"})
            self.check_room()
            self._queue.append(waiting)
            self._changed.notify()
        limit = self.settings.answer_seconds
        try:
            return await asyncio.wait_for(asyncio.wrap_future(waiting.done), limit)
        except TimeoutError:
            raise Refusal(504, f"no answer in time: {limit:g} seconds have passed") from None

    # ---- the worker -----------------------------------------------------------------------------

    def _work(self) -> None:
        with scores_by_row():
            self._warm_up()
            self._is_warm = True
            while True:
                batch = self._next()
                if batch is None:
                    return
                asked = [each for each in batch if each.done.set_running_or_notify_cancel()]
                if asked:
                    self.batches(len(asked), sum(each.people for each in asked))
                    _answer(asked)

    def _warm_up(self) -> None:
        """Answer once before anybody asks: the first answer of a process takes much longer."""
        with suppress(Exception):  # a model of the user's own may fail; then each question says so
            self.service.plans(self.service.method.problem_.probe.head(WARM))

    def _next(self) -> list[Waiting] | None:
        """Return the first question and those that may be answered with it; None: it is over."""
        with self._changed:
            if not self._has_questions():
                return None
            batch = [self._queue.popleft()]
            first, people, later = batch[0], batch[0].people, deque[Waiting]()
            while self._queue and first.key is not None:
                each = self._queue.popleft()
                if each.key == first.key and people + each.people <= self.settings.batch_people:
                    batch.append(each)
                    people += each.people
                else:
                    later.append(each)
            self._queue.extendleft(reversed(later))
            self._last = len(batch)
            return batch

    def _has_questions(self) -> bool:
        """Wait for questions; return False if it is over."""
        while True:
            while not self._queue:
                if not self._is_open:
                    return False
                self._changed.wait()
            self._gather()
            if self._queue:  # those who waited may all have left meanwhile
                return True

    def _gather(self) -> None:
        """Wait a moment for as many questions as the last time, while more of them come.

        Those who were answered together often ask again together, and the first to arrive would be
        answered alone. Somebody who asks alone waits for nobody.
        """
        ends = time.monotonic() + GATHER
        while self._is_open and len(self._queue) < self._last and time.monotonic() < ends:
            before = len(self._queue)
            self._changed.wait(QUIET)
            if len(self._queue) == before:
                return

    def _answer_plans(self, questions: Sequence[Any]) -> list[list[Plan]]:
        """Return the plans of several questions with the same request, by one call."""
        tables = [X for X, _ in questions]
        together = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
        made = iter(self.service.plans(together, questions[0][1]))
        return [
            [_as_person(next(made), label) for label in X.index] for X in tables
        ]  # fmt: skip

    def _answer_decisions(self, questions: Sequence[Any]) -> list[np.ndarray]:
        together = pd.concat(questions, ignore_index=True) if len(questions) > 1 else questions[0]
        people = self.service.method.problem_.read(together)
        ends = np.cumsum([len(X) for X in questions])[:-1]
        return np.split(people.score, ends)


def _answer(batch: list[Waiting]) -> None:
    """Answer a batch by one call; if it fails, answer each question alone."""
    try:
        answers = batch[0].answer([each.question for each in batch])
    except Exception as error:
        if len(batch) > 1:  # one mistake, or a row that nothing can read, is nobody else's
            for each in batch:
                _answer([each])
            return
        for each in batch:
            each.done.set_exception(error)
        return
    for each, answer in zip(batch, answers, strict=True):
        each.done.set_result(answer)


def _has_personal_rules(request: PlanRequest) -> bool:
    return request.rules is not None and bool(request.rules.people)


def _text(request: PlanRequest) -> str:
    return repr(request)


def _layout(X: pd.DataFrame) -> tuple[str, ...]:
    """Return the dtypes of a table: tables of other dtypes would change when they are joined."""
    return tuple(map(repr, X.dtypes))


def _as_person(plan: Plan, label: int) -> Plan:
    """Return the plan, and its alternatives, of the person with this label."""
    if plan.person == label:
        return plan
    others = tuple(_as_person(each, label) for each in plan.alternatives)
    minimal = None if plan.minimal is None else _as_person(plan.minimal, label)
    return replace(plan, person=label, alternatives=others, minimal=minimal)
