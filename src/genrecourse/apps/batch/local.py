"""The engine of one machine: processes, each with one thread and a model of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for
from typing import TYPE_CHECKING

from genrecourse.errors import UserError

if TYPE_CHECKING:
    from genrecourse.apps.batch.inputs import Part
    from genrecourse.apps.batch.run import Work

AHEAD = 2  # parts a process that are handed out at once
MOST_DEATHS = 3  # of processes, one after the other, without a part that is done


def engine(
    work: Work, parts: Sequence[Part], processes: int, address: str | None = None
) -> Iterator[Part]:
    """Yield the parts, each when its answers are written; processes: 0 means one for each core.

    If a process is killed, the parts that were under way are made again.
    """
    processes = processes or _cores()
    left, deaths = deque(parts), 0
    while left:
        under_way: dict[Future[None], Part] = {}
        try:
            for part in _made(work, left, under_way, min(processes, len(left))):
                deaths = 0
                yield part
        except BrokenProcessPool:
            deaths += 1
            left.extendleft(sorted(under_way.values(), key=lambda part: -part.number))
            if deaths > MOST_DEATHS:
                raise UserError(
                    f"a process was killed {deaths} times in a row before a part was done, the "
                    f"last time while it worked on the rows from {left[0].first:,} on; if the "
                    "memory is full, use fewer --processes or smaller --rows-per-part"
                ) from None


def _made(
    work: Work, left: deque[Part], under_way: dict[Future[None], Part], processes: int
) -> Iterator[Part]:
    """Yield parts that are done until none is left; `under_way` holds those that are not."""
    context = multiprocessing.get_context("spawn")  # threads and forks do not go together
    pool = ProcessPoolExecutor(processes, context, initializer=_begin)
    try:
        while left or under_way:
            while left and len(under_way) < AHEAD * processes:
                part = left.popleft()
                under_way[_submitted(pool, work, part, left)] = part
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
                yield under_way.pop(future)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _submitted(
    pool: ProcessPoolExecutor, work: Work, part: Part, left: deque[Part]
) -> Future[None]:
    try:
        return pool.submit(work, part)
    except BrokenProcessPool:
        left.appendleft(part)
        raise


def _begin() -> None:
    """Prepare a process: one thread, no Ctrl-C of its own, and it ends when its parent does."""
    os.environ["OMP_NUM_THREADS"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    import torch  # after the environment was set

    torch.set_num_threads(1)


def _end_with(sentinel: int) -> None:
    """End this process at once when its parent has ended, however that came about."""
    wait_for([sentinel])
    os._exit(1)
