"""The record: appends a second with 1 and 32 threads, and what happens to it when all goes wrong.

    python -m benchmarks.bench_record
    python -m benchmarks.bench_record --seconds 2 --flips 100 --kills 5

- Appends: each answer is about one person with 20 features and has a plan of 2 kB; `append` returns
  when both files are synced. Beside them, in the same run: what the disk itself does, two files of
  the same sizes written and synced without any record.
- Start and check: how long a record of these answers takes to open, and to verify.
- Flips: one byte of either file is changed; is it found, with the file, the line and the record?
- Kills: a process that appends from 8 threads is killed with -9 at a random moment, again and again
  in one folder; is every acknowledged answer there, and does the next start work without repair?
- Full disk: a real file system of 1 MB (needs Linux and the right to mount one, else it says so).

The numbers go to benchmarks/results/record.json. Rates depend on the disk: only ratios of one run
mean anything.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from genrecourse.advice.record import Answer, Record
from genrecourse.advice.record.check import CHAIN, PERSONAL, check
from tests.support.records import flips, killed, lost, small_record

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "record.json"
THREADS = (1, 32)
FEATURES = 20

FULL_DISK = """
import json, sys
from pathlib import Path
from genrecourse.advice.record import Record, RecordError
from genrecourse.advice.record.check import check
from benchmarks.bench_record import answer

folder = Path(sys.argv[1])
kept = 0
with Record(folder / "record", {}) as record:
    for again in range(3):
        try:
            while True:
                record.append(answer(str(kept)))
                kept += 1
        except RecordError as error:
            why = str(error)
        whole = check(folder / "record")
        assert (whole.answers, whole.unfinished) == (kept, 0), (whole, kept)
print(json.dumps({"answers": kept, "error": why.rpartition(": ")[2]}))
"""


def answer(request: str) -> Answer:
    """An answer about one person, of the size that a plan for German credit has."""
    row = {f"input.feature {j}": {"dtype": "float64", "cells": [j / 7]} for j in range(FEATURES)}
    change = {"feature": "duration", "before": 24, "after": 12, "text": "pay back within 12 months"}
    plan = {"status": "ok", "score_after": 0.71, "changes": [change] * 4, "x_plus": row}
    return Answer(request, "plans", [row | {"label": 0, "rules": {}, "output": plan}], {"n": 1})


def rate(act: Callable[[int], Any], threads: int, seconds: float) -> tuple[float, list[float]]:
    """Return calls a second of `threads` threads together, and the seconds of each call."""
    took: list[list[float]] = [[] for _ in range(threads)]
    until = time.perf_counter() + seconds

    def work(thread: int) -> None:
        while (started := time.perf_counter()) < until:
            act(thread)
            took[thread].append(time.perf_counter() - started)

    started = time.perf_counter()
    workers = [threading.Thread(target=work, args=(k,)) for k in range(threads)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    every = [one for each in took for one in each]
    return len(every) / (time.perf_counter() - started), every


def disk_alone(folder: Path, seconds: float) -> float:
    """Two files, each written and synced, as often as the disk can: what one thread could reach."""
    with Record(folder / "one", {}) as record:
        record.append(answer("a"))
    sizes = [(folder / "one" / name).stat().st_size for name in (PERSONAL, CHAIN)]
    files = [os.open(folder / f"plain {i}", os.O_WRONLY | os.O_CREAT | os.O_APPEND) for i in (0, 1)]

    def write(_: int) -> None:
        for file, size in zip(files, sizes, strict=True):
            os.write(file, b"x" * size)
            os.fsync(file)

    found, _ = rate(write, 1, seconds)
    for file in files:
        os.close(file)
    return found


def appends(folder: Path, seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {"disk_alone": round(disk_alone(folder, seconds))}
    for threads in THREADS:
        with Record(folder / str(threads), {"code": "1", "model": "ab" * 32}) as record:
            a_second, took = rate(
                lambda thread, record=record: record.append(answer(f"a{thread}")), threads, seconds
            )
        cut = statistics.quantiles(took, n=100)
        found[f"threads_{threads}"] = {
            "a_second": round(a_second),
            "p50_ms": round(cut[49] * 1e3, 2),
            "p99_ms": round(cut[98] * 1e3, 2),
        }
    return found | reading(folder / str(THREADS[-1]))


def reading(folder: Path) -> dict[str, Any]:
    started = time.perf_counter()
    state = check(folder)
    verified = time.perf_counter() - started
    started = time.perf_counter()
    Record(folder, {}).close()
    opened = time.perf_counter() - started
    return {
        "answers": state.answers,
        "bytes_an_answer": round((state.chain_bytes + state.personal_bytes) / state.answers),
        "verified_a_second": round(state.answers / verified),
        "opened_a_second": round(state.answers / opened),
    }


def kills(folder: Path, n: int, rng: np.random.Generator) -> dict[str, Any]:
    told: dict[str, int] = {}
    missing, unfinished = [], 0
    for run in range(n):  # each start after the first is a start after a kill
        told |= killed(folder, run, float(rng.uniform(0, 0.4)))
        unfinished += check(folder).unfinished > 0
        missing += lost(folder, told)
    state = check(folder)
    return {
        "kills": n,
        "acknowledged": len(told),
        "lost": len(missing),
        "recorded": state.answers,
        "kills_that_left_an_unfinished_answer": unfinished,
    }


def full_disk(folder: Path) -> dict[str, Any]:
    mount = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", mount, str(folder), sys.executable, "-c", FULL_DISK]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": paths}
    try:
        done = subprocess.run(
            [*command, str(folder)], capture_output=True, text=True, env=environment
        )
    except FileNotFoundError:
        return {"skipped": "there is no command unshare"}
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        return {"skipped": done.stderr.strip()}
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--folder", help="on the disk to measure; default: the temporary folder")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        found: dict[str, Any] = {"seconds": args.seconds, "cores": os.cpu_count()}
        found["python"] = platform.python_version()
        found["appends"] = appends(folder, args.seconds)
        print(json.dumps(found["appends"]), flush=True)
        wrong = list(flips(small_record(folder / "flipped"), args.flips, rng))
        found["flips"] = {"tried": args.flips, "found": args.flips - len(wrong), "wrong": wrong}
        print(json.dumps(found["flips"]), flush=True)
        found["kill_9"] = kills(folder / "killed", args.kills, rng)
        print(json.dumps(found["kill_9"]), flush=True)
        (folder / "full").mkdir()
        found["full_disk"] = full_disk(folder / "full")
        print(json.dumps(found["full_disk"]), flush=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
