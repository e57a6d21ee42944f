"""Who a request was about, and the second file without some people's values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from genrecourse.advice.record.lines import canonical, read_lines, sealed
from genrecourse.errors import UserError

if TYPE_CHECKING:
    from genrecourse.advice.record.check import Person


def people_of(
    chain: Path, request: str, person: int | None = None
) -> tuple[list[Person], dict[Person, int]]:
    """Return the people of a request, and those of the record whose erasure it holds already.

    >>> from genrecourse.advice.record import Answer, Record
    >>> with Record("record", {}) as record:
    ...     _ = record.append(Answer("a1", "plans", [{"input.age": 41}, {"input.age": 50}]))
    ...     _ = record.erase("a1", 1)
    >>> people_of(Path("record/chain.jsonl"), "a1")
    ([(0, 0), (0, 1)], {(0, 1): 1})
    """
    who: list[Person] = []
    before: dict[Person, int] = {}
    marks = canonical(request), b'"erasure"'
    with open(chain, "rb") as file:
        for line in read_lines(file):
            content = line.content
            if content is None or not any(mark in line.raw for mark in marks):
                continue
            if content["kind"] == "erasure":
                before.update(dict.fromkeys(map(tuple, content["erased"]), content["n"]))
            elif content["kind"] == "answer" and content["request"] == request:
                who += [(content["n"], i) for i in range(len(content["people"]))]
    if not who:
        raise UserError(f"the record has no answer to a request {request!r}; check the id")
    chosen = [(n, i) for n, i in who if person in (None, i)]
    if not chosen:
        most = max(i for _, i in who)
        raise UserError(
            f"the request {request!r} is about the people 0 to {most}; there is no {person}"
        )
    return chosen, before


def without(
    path: Path, new: Path, erased: Mapping[Person, int], size: int
) -> list[tuple[int, int]]:
    """Write a copy of the second file without some values; return where they were: byte, length.

    erased: who, and the record that says so. size: bytes of the file that count.

    >>> held = {"n": 0, "people": [{"secret": "00", "values": {"input.age": 41}}]}
    >>> raw = sealed(held) + b"\\n"
    >>> _ = Path("old").write_bytes(raw)
    >>> places = without(Path("old"), Path("new"), {(0, 0): 7}, len(raw))
    >>> places == [(0, len(raw) - 1)], Path("new").read_bytes()[:35]
    (True, b'{"n":0,"people":[{"erased":7}],"sha')
    """
    lines = {n for n, _ in erased}
    places: list[tuple[int, int]] = []
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as copy, open(path, "rb") as file:
        for line in read_lines(file):
            if line.byte >= size:
                break
            raw, content = line.raw, line.content
            if content is not None and content["n"] in lines:
                n = content["n"]
                people = [
                    {"erased": erased[n, i]} if (n, i) in erased else kept
                    for i, kept in enumerate(content["people"])
                ]
                places.append((line.byte, len(raw)))
                raw = sealed({"n": n, "people": people})
            copy.write(raw + b"\n")
        copy.flush()
        os.fsync(copy.fileno())
    return places
