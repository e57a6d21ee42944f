"""A progress bar for a training, in a terminal or in a notebook.

Without a wish of the caller it is shown where somebody watches: in the main process, if standard
error is a terminal or the code runs in a notebook.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from genrecourse.model.settings import FLAG, NOTHING, Or

PROGRESS = Or(FLAG, NOTHING)  # what a parameter `progress` may be; None: where somebody watches
EVERY = 0.5  # seconds between two updates in a notebook

Tick = Callable[[int, float], None]  # is called with the steps done and the loss


@contextmanager
def steps_bar(label: str, total: int, shown: bool | None = None) -> Iterator[Tick]:
    """Show a bar inside the block, which calls what it is given with the steps and the loss.

    >>> with steps_bar("training the model", total=2, shown=False) as tick:
    ...     tick(1, 0.7)
    """
    console = Console(stderr=True)
    if not (is_watched(console) if shown is None else shown):
        yield lambda step, loss: None
    elif console.is_jupyter:
        with _in_notebook(label, total) as tick:
            yield tick
    else:
        with _in_terminal(console, label, total) as tick:
            yield tick


def is_watched(console: Console) -> bool:
    """Return whether somebody watches this process: not one of several workers, for example.

    >>> is_watched(Console(force_terminal=True)), is_watched(Console(force_terminal=False))
    (True, False)
    """
    if multiprocessing.parent_process() is not None:
        return False
    return console.is_jupyter or console.is_terminal


@contextmanager
def _in_terminal(console: Console, label: str, total: int) -> Iterator[Tick]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} loss {task.fields[loss]:.3f}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(label, total=total, loss=float("nan"))
        yield lambda step, loss: bar.update(task, completed=step, loss=loss)


@contextmanager
def _in_notebook(label: str, total: int) -> Iterator[Tick]:
    """One line that changes and then goes away; rich's bar would need the package ipywidgets."""
    from IPython import display

    show: Callable[..., Any] = display.display
    handle = show(_line(f"{label}: 0 of {total:,} steps"), raw=True, display_id=True)
    last = time.monotonic()

    def tick(step: int, loss: float) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            handle.update(_line(f"{label}: {step:,} of {total:,} steps, loss {loss:.3f}"), raw=True)

    try:
        yield tick
    finally:
        handle.update(_line(""), raw=True)


def _line(text: str) -> dict[str, Any]:
    return {"text/plain": text}
