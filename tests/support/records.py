"""Records to break, and a process that appends until it is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from genrecourse.advice.record import Answer, Record
from genrecourse.advice.record.check import CHAIN, PERSONAL, DamageError, check

THREADS = 8

# Prints the id of each answer once it is recorded. One write of less than a pipe's buffer is whole.
APPENDING = """
import os, sys, threading
from genrecourse.advice.record import Record
from tests.support.records import answer

record = Record(sys.argv[1], {"code": "1"})

def append(thread):
    for i in range(10**9):
        name = f"{sys.argv[2]}-{thread}-{i}"
        receipt = record.append(answer(name, people=1 + i % 3))
        os.write(1, f"{name} {receipt.record}\\n".encode())

os.write(1, b"ready -1\\n")
for thread in range(int(sys.argv[3])):
    threading.Thread(target=append, args=(thread,)).start()
"""


def answer(request: str, people: int = 1) -> Answer:
    row = {f"input.column {j}": {"dtype": "int64", "cells": [j]} for j in range(4)}
    person = row | {"label": 0, "rules": {}, "output": {"status": "ok", "x_plus": {"age": 41}}}
    return Answer(request, "plans", [person] * people, asked={"n": 1})


def small_record(folder: Path, answers: int = 12) -> Path:
    """A record with answers about one or more people, and two erasures."""
    with Record(folder, {"code": "1", "model": "ab" * 32}) as record:
        for i in range(answers):
            record.append(answer(f"a{i}", people=1 + i % 2))
            if i in (4, 8):
                record.erase(f"a{i - 1}", 1)
    return folder


def flips(folder: Path, n: int, rng: np.random.Generator) -> Iterator[str]:
    """Change one byte of either file n times, one at a time; yield what was not found at its place.

    The files are afterwards as they were.
    """
    whole = {name: (folder / name).read_bytes() for name in (CHAIN, PERSONAL)}
    records = {name: _records(folder, name) for name in whole}
    for _ in range(n):
        name = str(rng.choice([CHAIN, PERSONAL]))
        data = bytearray(whole[name])
        byte = int(rng.integers(len(data)))
        data[byte] ^= int(rng.integers(1, 256))
        line = whole[name].count(b"\n", 0, byte)
        start = whole[name].rfind(b"\n", 0, byte) + 1
        (folder / name).write_bytes(data)
        expected = (folder / name, records[name][line], line + 1, start)
        try:
            check(folder)
            seen: object = "nothing"
        except DamageError as error:
            seen = (error.path, error.record, error.line, error.byte)
        if seen != expected:
            yield f"byte {byte} of {name} is {data[byte]}: {seen}, not {expected}"
        (folder / name).write_bytes(whole[name])


def _records(folder: Path, name: str) -> list[int]:
    """Return the number of the record in each line of a file."""
    import json

    return [json.loads(line)["n"] for line in (folder / name).read_text().splitlines()]


def killed(folder: Path, run: int, seconds: float) -> dict[str, int]:
    """Kill a process that appends from many threads some time after its start; return the ids and
    places of the answers that it said are recorded."""
    command = [sys.executable, "-c", APPENDING, str(folder), str(run), str(THREADS)]
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root / "src"), str(root)])
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": paths}
    )
    assert process.stdout is not None
    with process, process.stdout as said:
        first = said.readline()
        assert first == "ready -1\n", first
        time.sleep(seconds)
        process.kill()
        lines = said.read().splitlines()
    return {name: int(place) for name, place in map(str.split, lines)}


def lost(folder: Path, told: dict[str, int]) -> list[str]:
    """Return the acknowledged answers that the record does not have at the place of the receipt."""
    import json

    lines = [json.loads(line) for line in (folder / CHAIN).read_bytes().split(b"\n")[:-1]]
    return [
        name
        for name, place in told.items()
        if place >= len(lines) or lines[place].get("request") != name
    ]
