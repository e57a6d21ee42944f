"""The desk: who is answered together."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from genrecourse.apps.serve import desk as module
from genrecourse.apps.serve.desk import Desk, Waiting
from genrecourse.apps.serve.errors import Refusal
from genrecourse.apps.serve.settings import Settings


def question() -> Waiting:
    return Waiting("plans", None, lambda asked: asked, 1)


def next_batch(desk: Desk, later: list[Waiting]) -> list[Waiting]:
    """Return the next batch of a desk; the later questions come while it is being put together."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(desk._next()))
    thread.start()
    for each in later:
        with desk._changed:
            desk._queue.append(each)
            desk._changed.notify()
    thread.join()
    batch: list[Waiting] = found[0]
    return batch


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk without a worker, which waits longer than any machine is busy."""
    monkeypatch.setattr(module, "QUIET", 60.0)
    monkeypatch.setattr(module, "GATHER", 60.0)
    made = Desk(None, Settings())  # type: ignore[arg-type]
    made._is_open = True
    return made


def test_those_who_were_answered_together_are_waited_for(desk: Desk) -> None:
    first, later = question(), [question(), question()]
    desk._queue.append(first)
    desk._last = 3
    assert next_batch(desk, later) == [first, *later]
    assert desk._last == 3


def test_who_asks_alone_waits_for_nobody(desk: Desk) -> None:
    desk._queue.append(question())
    assert len(next_batch(desk, [])) == 1
    assert desk._last == 1


def test_nobody_is_waited_for_in_vain(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUIET", 0.0)
    desk._queue.append(question())
    desk._last = 3
    assert len(next_batch(desk, [])) == 1
    assert desk._last == 1


def test_a_worker_goes_on_when_all_who_wait_have_left(desk: Desk) -> None:
    left = [question() for _ in range(desk.settings.waiting)]
    desk._queue.extend(left)
    desk._last = len(left) + 1  # so that the worker waits for one more
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(desk._next()))
    thread.start()
    for each in left:
        each.done.cancel()
    desk.check_room()  # forgets those who left
    desk._is_open = False
    with desk._changed:
        desk._changed.notify()
    thread.join()
    assert found == [None]


def test_a_full_queue_has_no_room(desk: Desk) -> None:
    desk._queue.extend(question() for _ in range(desk.settings.waiting - 1))
    desk.check_room()
    desk._queue.append(question())
    with pytest.raises(Refusal, match="64 requests are waiting already"):
        desk.check_room()
