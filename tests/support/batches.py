"""A small model with people for it, as files, and a run of `genrecourse batch` to kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from genrecourse import NearestNeighbour
from genrecourse.apps.batch import run
from genrecourse.evaluation.checks import make_example

PEOPLE = 120
PATIENCE = 240.0  # seconds until a process that does nothing is given up


def write_example(folder: Path) -> None:
    """Write a model, and the same people as a .csv, a .parquet and a folder of .parquet files."""
    example = make_example(rows=300, people=PEOPLE)
    method = NearestNeighbour(None, example.schema, gamma="auto", labelled=True)
    method.fit(example.X, example.y).save(folder / "model")
    table = example.people.assign(id=[f"{i:04d}" for i in range(PEOPLE)]).reset_index(drop=True)
    table.to_csv(folder / "people.csv", index=False)
    table.to_parquet(folder / "people.parquet", row_group_size=37)
    (folder / "people" / "more").mkdir(parents=True)
    table[:50].to_parquet(folder / "people" / "a.parquet")
    table[50:].to_parquet(folder / "people" / "more" / "b.parquet", row_group_size=11)


def one_by_one(work: run.Work, parts: Any, processes: int, address: str | None) -> Any:
    """An engine that makes the parts in this process: what others must be equal to."""
    for part in parts:
        work(part)
        yield part


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, byte for byte."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def answers_in(folder: Path) -> pd.DataFrame:
    """All answers, in the order of the input."""
    parts = [pd.read_parquet(path) for path in sorted(folder.glob("part-*.parquet"))]
    return pd.concat(parts, ignore_index=True)


def begin(*words: Any) -> subprocess.Popen[str]:
    """Start `genrecourse batch` with these words in a process of its own."""
    command = [sys.executable, "-m", "genrecourse", "batch", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def children_of(process: subprocess.Popen[str]) -> list[int]:
    """The processes that work for it, which make plans."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            about = (entry / "stat").read_text().rpartition(")")[2].split()
            words = (entry / "cmdline").read_text()
        except (OSError, NotADirectoryError):
            continue
        if int(about[1]) == process.pid and "spawn_main" in words:
            found.append(int(entry.name))
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.005)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
