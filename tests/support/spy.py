"""Methods that misbehave in their child process; the tests look at what they got hold of.

A child imports this module by its name, so that it holds no test and imports no test tool.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neighbors import LocalOutlierFactor

from genrecourse.data.datasets import DATASETS, load_dataset
from genrecourse.evaluation.evaluate import Case, make_case
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.table.encoding import Array
from genrecourse.table.noise import KeyedNoise
from genrecourse.table.schema import Schema
from genrecourse.trust.judge import Judge


class Still(Method):
    """Leaves everybody as they are."""

    def _fit(self, rows: TrainingRows) -> None:
        pass

    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        return Z


class Spy(Still):
    """Tries to reach what a method must not know, and reports how that went.

    secret: a file that it would love to read; desk: a folder that it would love to write to.
    """

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        secret: str = "",
        desk: str = "",
        random_state: int = 0,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.secret = secret
        self.desk = desk

    def _fit(self, rows: TrainingRows) -> None:
        self.fit_report_ = {
            "crimes": {name: outcome(act) for name, act in self._crimes().items()},
            "rights": {name: outcome(act) for name, act in rights(rows).items()},
            "seen": seen(),
        }

    def _crimes(self) -> dict[str, Callable[[], Any]]:
        secret, parent = Path(self.secret), os.getppid()
        link = Path(tempfile.gettempdir()) / "link"
        return {
            **{f"load {name}": lambda name=name: load_dataset(name) for name in DATASETS},
            "the whole case": lambda: make_case("moons", self.random_state),
            "open": lambda: open(secret).read(),
            "open, roundabout": lambda: (
                (secret.parent / "." / ".." / secret.parent.name).joinpath(secret.name).read_bytes()
            ),
            "os.open": lambda: os.read(os.open(secret, os.O_RDONLY), 9),
            "pandas": lambda: pd.read_csv(secret),
            "numpy": lambda: np.fromfile(secret, dtype=np.uint8),
            "embedded data": lambda: (
                files("genrecourse").joinpath("data/embedded/german.csv.gz").read_bytes()
            ),
            "hard link": lambda: (os.link(secret, link), link.read_bytes()),
            "symbolic link": lambda: (os.symlink(secret, link), link.read_bytes()),
            "rename": lambda: os.rename(secret, link),
            "memory of the parent": lambda: open(f"/proc/{parent}/mem", "rb").read(1),
            "surroundings of the parent": lambda: open(f"/proc/{parent}/environ").read(),
            "own surroundings": lambda: open("/proc/self/environ").read(),
            "libc": lambda: ctypes.CDLL(None),
            "another program": lambda: subprocess.run(["true"]),
            "a shell": lambda: os.system("true"),
            "fork": fork,
            "a new interpreter": new_interpreter,
            "a signal": lambda: os.kill(parent, signal.SIGCONT),
            "the network": lambda: urllib.request.urlopen("http://127.0.0.1:9/", timeout=1),
            "a socket": lambda: socket.create_connection(("127.0.0.1", 9), timeout=1),
            "a note for the next run": lambda: Path(self.desk, "note.txt").write_text("hello"),
            "vandalism": lambda: os.remove(secret),
        }


def fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def new_interpreter() -> None:
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    try:
        process = multiprocessing.get_context("spawn").Process(target=print)
        process.start()
        process.join()
    finally:
        multiprocessing.current_process()._config["daemon"] = True  # type: ignore[attr-defined]


def rights(rows: TrainingRows) -> dict[str, Callable[[], Any]]:
    """What fits of honest methods do. n_jobs=-1 is threads, or no more than this one process."""

    def own_file() -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "own_train.csv").write_text("a,b\n")
            assert Path(folder, "own_train.csv").read_text() == "a,b\n"
        Path("scratch.txt").write_text("a file with no folder is the method's own")

    def all_cores() -> None:
        done = joblib.Parallel(n_jobs=-1)(joblib.delayed(abs)(-i) for i in range(4))
        assert done == [0, 1, 2, 3]

    Z, y = rows.Z, rows.favourable
    return {
        "joblib": all_cores,
        "a forest": lambda: RandomForestClassifier(10, n_jobs=-1).fit(Z, y).predict_proba(Z),
        "boosted trees": lambda: HistGradientBoostingClassifier(max_iter=3).fit(Z, y),
        "outliers": lambda: LocalOutlierFactor(novelty=True, n_jobs=-1).fit(Z).predict(Z),
        "clusters": lambda: KMeans(2, n_init=1).fit(Z),
        "a file of its own": own_file,
        "how much memory there is": lambda: open("/proc/meminfo").read(),
    }


def seen() -> dict[str, Any]:
    """What there is in this process before anybody is to be answered."""
    objects = gc.get_objects()
    tables = [thing for thing in objects if isinstance(thing, pd.DataFrame)]
    frame, stack = sys._getframe(), []
    while frame is not None:
        stack += [type(value).__name__ for value in frame.f_locals.values()]
        frame = frame.f_back  # type: ignore[assignment]
    return {
        "judges": sum(isinstance(thing, Judge | Case) for thing in objects),
        "forests": sum(isinstance(thing, RandomForestClassifier) for thing in objects),
        "last row": int(max(table.index.max() for table in tables if len(table))),
        "stack": sorted(set(stack)),
        "variables": sorted(os.environ),
        "folder": os.listdir(),
    }


def outcome(act: Callable[[], Any]) -> str:
    try:
        return f"got {type(act()).__name__}"
    except PermissionError as error:
        return f"refused: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class NativeReader(Still):
    """Reads a file with code that Python's audit hooks do not see."""

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        secret: str = "",
        random_state: int = 0,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.secret = secret

    def _fit(self, rows: TrainingRows) -> None:
        import pyarrow.csv

        self.fit_report_ = {"secret": outcome(lambda: pyarrow.csv.read_csv(self.secret))}


class Meddler(Still):
    """Bends h, which is not its own."""

    def _fit(self, rows: TrainingRows) -> None:
        for weight in self.classifier_.model.parameters():
            weight.data.fill_(0.0)


class Crasher(Still):
    def _fit(self, rows: TrainingRows) -> None:
        raise ZeroDivisionError("one over nothing")


class Dier(Still):
    def _fit(self, rows: TrainingRows) -> None:
        os._exit(7)


class Sleeper(Still):
    """Takes hours, and says when it begins."""

    def _fit(self, rows: TrainingRows) -> None:
        sys.stderr.write("sleeping\n")
        sys.stderr.flush()
        time.sleep(10_000)
