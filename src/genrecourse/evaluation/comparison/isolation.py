"""A method in a process of its own, which holds what a method may know and nothing else.

The child is a new interpreter, so that nothing of this process is in its memory, and a fence goes
up in it before a line of the method runs. It is given the method, training rows, drawn labels, h
and the schema; when it has fitted, the people. The judge never goes over the pipe. What comes back
is data (JSON), which cannot run anything here.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle  # noqa: TID251 - from this process to its child, never the other way, never a file
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.data import datasets
from genrecourse.errors import UserError, own_warnings, rejections_expected
from genrecourse.evaluation.comparison.fence import Fence
from genrecourse.methods.abilities import HasDensity
from genrecourse.model.artifact import pack, pack_table, unpack, unpack_table

if TYPE_CHECKING:
    from genrecourse.methods.base import Method
    from genrecourse.model.classifier import Classifier
    from genrecourse.table.schema import Schema

Ask = Mapping[str, Any]  # the arguments of one request: recourse(people, **ask)
OF_DENSITY = ("lam",)  # those that `log_prob` takes as well


@dataclass(frozen=True)
class Task:
    """All that a method is given before it has to answer anybody.

    >>> from genrecourse import Classifier, NearestNeighbour
    >>> from genrecourse.evaluation.checks import example_score, make_example
    >>> some = make_example(rows=80, people=10)
    >>> h = Classifier(example_score)
    >>> Task(NearestNeighbour, {}, h, some.schema, some.X, some.y.to_numpy(), seed=0).y.shape
    (80,)
    """

    maker: Callable[..., Method]  # an entry of METHODS
    params: Mapping[str, Any]
    h: Classifier
    schema: Schema
    X: pd.DataFrame
    y: np.ndarray
    seed: int


@dataclass(frozen=True)
class Answer:
    """The answer of a method to one request.

    >>> Answer(pd.DataFrame({"income": [30.0]}), seconds=0.2, log_prob=None).seconds
    0.2
    """

    X_plus: pd.DataFrame
    seconds: float
    log_prob: np.ndarray | None  # of methods that have a density
    processor: float | None = None  # seconds of the processor, which other work changes less


@dataclass(frozen=True)
class Run:
    """What came back from a child.

    >>> answer = Answer(pd.DataFrame({"income": [30.0]}), seconds=0.2, log_prob=None)
    >>> list(Run(1.5, {}, {"": answer}, notes=[]).answers)
    ['']
    """

    fit_seconds: float
    report: dict[str, Any]  # its `fit_report_`
    answers: dict[str, Answer]
    notes: list[str]  # what the library warned of


class MethodError(Exception):
    """The method, or its process, did not come to an end. The message is for people.

    >>> raise MethodError("the process ended (SIGKILL) before it had fitted")
    Traceback (most recent call last):
    genrecourse.evaluation.comparison.isolation.MethodError: the process ended (SIGKILL) ...
    """


# ---- this side ----------------------------------------------------------------------------------


def run_isolated(
    task: Task, people: pd.DataFrame, asks: Mapping[str, Ask], *, closed: tuple[Path, ...] = ()
) -> Run:
    """Fit in a child, then let it answer each request of `asks`.

    closed: files and folders that the child may not read, besides those of the data sets.

    >>> from genrecourse import Classifier, NearestNeighbour
    >>> from genrecourse.evaluation.checks import example_score, make_example
    >>> some, h = make_example(rows=80, people=10), Classifier(example_score)
    >>> task = Task(NearestNeighbour, {}, h, some.schema, some.X, some.y.to_numpy(), seed=0)
    >>> run = run_isolated(task, some.people, {"": {}})  # doctest: +SKIP
    >>> len(run.answers[""].X_plus)  # doctest: +SKIP
    10
    """
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="genrecourse-") as home:
        here, there = context.Pipe()
        fence = Fence.around(home, closed)
        process = context.Process(target=_child, args=(there, fence), daemon=True)
        try:
            _start(process)
            there.close()  # or the end of the child would not end the pipe
            return _talk(here, process, task, people, asks)
        finally:
            here.close()
            there.close()
            if process.pid is not None:  # None: it did not start, so there is nothing to end
                process.kill()
                process.join()
            process.close()


def _start(process: Any) -> None:
    """Start the child, or say why it did not start."""
    try:
        with _bare_start():
            process.start()
    except OSError as error:  # no memory, or too many processes: another run may succeed
        raise MethodError(f"the process did not start: {error.strerror or error}") from error


def _talk(
    pipe: Connection, process: Any, task: Task, people: pd.DataFrame, asks: Mapping[str, Ask]
) -> Run:
    _tell(pipe, process, task, "its task")
    fitted = _hear(pipe, process, "fitted")
    _tell(pipe, process, (people, dict(asks)), "its people")
    answers = {}
    for name in asks:
        reply = _hear(pipe, process, "answered")
        answers[name] = Answer(
            _as_people(reply["X_plus"], people),
            reply["seconds"],
            None if reply["log_prob"] is None else np.array(unpack(reply["log_prob"]), dtype=float),
            reply["processor"],
        )
    notes = _hear(pipe, process, "ended")["notes"]
    return Run(fitted["seconds"], unpack(fitted["report"]), answers, notes)


def _tell(pipe: Connection, process: Any, what: Any, name: str) -> None:
    # pickle's own bytes, not `pipe.send`: torch would let both processes share h's memory
    content = pickle.dumps(what)
    try:
        pipe.send_bytes(content)
    except (BrokenPipeError, ConnectionResetError):
        raise MethodError(_death(process, f"read {name}")) from None


def _hear(pipe: Connection, process: Any, verb: str) -> dict[str, Any]:
    try:
        reply = json.loads(pipe.recv_bytes())
    except (EOFError, ConnectionResetError):
        raise MethodError(_death(process, verb)) from None
    if "failed" in reply:
        raise MethodError(reply["failed"])
    return reply


def _death(process: Any, verb: str) -> str:
    process.join(5)
    code = process.exitcode
    how = f"exit status {code}" if code is None or code >= 0 else signal.Signals(-code).name
    return f"the process ended ({how}) before it had {verb}"


def _as_people(packed: dict[str, Any], people: pd.DataFrame) -> pd.DataFrame:
    X_plus = unpack_table(packed)
    if len(X_plus) != len(people) or list(X_plus.columns) != list(people.columns):
        raise MethodError(
            f"recourse gave {X_plus.shape[0]} rows with the columns {list(X_plus.columns)} for "
            f"{len(people)} people with {list(people.columns)}"
        )
    return X_plus.set_axis(people.index, axis="index")


@contextmanager
def _bare_start() -> Iterator[None]:
    """What a new process inherits: not the name of the data folder, and no Ctrl-C, which is for
    this process: a method that is interrupted would answer with what it has learned so far."""
    folder = os.environ.pop(datasets.DATA_VARIABLE, None)
    main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, handler)
        if folder is not None:
            os.environ[datasets.DATA_VARIABLE] = folder


# ---- the child ----------------------------------------------------------------------------------


def _child(pipe: Connection, fence: Fence) -> None:
    """Fit on what is sent first, then answer the people who are sent second."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    fence.put_up()
    try:
        with own_warnings() as notes:
            _work(pipe)
        _say(pipe, notes=notes)
    except EOFError:
        return  # the other process has closed the pipe
    except Exception as error:
        _say(pipe, failed=_in_words(error))


def _work(pipe: Connection) -> None:
    task: Task = pickle.loads(pipe.recv_bytes())
    started = time.perf_counter()
    method = task.maker(task.h, task.schema, random_state=task.seed, **task.params)
    method.fit(task.X, task.y)
    seconds = time.perf_counter() - started
    _say(pipe, seconds=seconds, report=_packed(method.fit_report_))
    people, asks = pickle.loads(pipe.recv_bytes())
    for ask in asks.values():
        started, worked = time.perf_counter(), time.process_time()
        with rejections_expected():
            X_plus = method.recourse(people.copy(), **ask)
        seconds, processor = time.perf_counter() - started, time.process_time() - worked
        log_prob = None
        if isinstance(method, HasDensity):
            same = {name: ask[name] for name in OF_DENSITY if name in ask}
            mass = method.log_prob(X_plus, given=people, **same)
            log_prob = pack(np.asarray(mass, dtype=float))
        found = {"X_plus": pack_table(X_plus), "log_prob": log_prob}
        _say(pipe, **found, seconds=seconds, processor=processor)


def _say(pipe: Connection, **what: Any) -> None:
    pipe.send_bytes(json.dumps(what).encode())


def _packed(report: Mapping[str, Any]) -> Any:
    try:
        return pack(report)
    except UserError:  # a method of somebody's own may report what is no data
        return {}


def _in_words(error: Exception) -> str:
    if isinstance(error, UserError):
        return str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()  # returns when it has ended, however that came
        os._exit(1)
