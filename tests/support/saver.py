"""A process that saves models until it is killed: `python -m tests.support.saver FOLDER`.

It starts once and forks for each order that it reads, because starting Python takes seconds.
"a b 0" saves the models a and b in turn without end; "a 20" saves the model a 20 times.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import pandas as pd

from genrecourse import NearestNeighbour

TABLE = pd.DataFrame({"income": np.arange(80.0), "debt": np.arange(80.0, 0, -1)})
PEOPLE = TABLE.head(3)


def score(X: pd.DataFrame) -> np.ndarray:
    return X["income"].to_numpy(dtype=float) / 80


def models() -> dict[str, NearestNeighbour]:
    """Two models with other answers and files of other sizes."""
    fitted = {"a": TABLE, "b": pd.concat([TABLE, TABLE + 0.25])}
    gammas = {"a": 0.6, "b": 0.8}
    return {name: NearestNeighbour(score, gamma=gammas[name]).fit(X) for name, X in fitted.items()}


class Saver:
    """The process, seen from the test."""

    def __init__(self, process: subprocess.Popen[str]):
        self.process = process

    def start(self, order: str) -> int:
        """Start a process that saves; return its id."""
        return int(self._ask(order))

    def wait(self, pid: int) -> int:
        """Return the exit status of a process when it has ended; below 0 if a signal ended it."""
        return int(self._ask(f"wait {pid}"))

    def _ask(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()


@contextmanager
def saver(folder: Path) -> Iterator[Saver]:
    command = [sys.executable, "-m", "tests.support.saver", str(folder)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Saver(process)
        finally:
            process.kill()


def _serve(folder: str) -> None:
    os.fsync = lambda handle: None  # a kill loses nothing that the system holds; and it is quick
    made = models()
    for line in sys.stdin:
        first, *rest = line.split()
        if first == "wait":
            _, status = os.waitpid(int(rest[0]), 0)
            _answer(os.waitstatus_to_exitcode(status))
            continue
        pid = os.fork()
        if pid == 0:
            _save(folder, [made[name] for name in (first, *rest[:-1])], int(rest[-1]))
            os._exit(0)
        _answer(pid)


def _answer(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _save(folder: str, made: list[NearestNeighbour], times: int) -> None:
    for method in islice(cycle(made), times or None):
        method.save(folder)


if __name__ == "__main__":
    _serve(sys.argv[1])
