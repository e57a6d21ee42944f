"""Answer: what is recorded about one request, and how it is made from a table and its plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answer:
    """One answer of a service, as `Record.append` takes it. All values must be strict JSON.

    request: the id of the request. It stays in the record for ever, so it names no person.
    verb: what was asked, such as "plans" or "decision".
    people: the personal values of each person by name: "input.age", "rules", "output", ... Each
        value becomes a commitment of its own, and can be erased with its person.
    asked: options that are about nobody, such as how many plans each person gets.
    status: of the HTTP response.
    """

    request: str
    verb: str
    people: Sequence[Mapping[str, Any]]
    asked: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
