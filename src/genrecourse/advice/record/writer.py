"""Record: appends answers to a folder that one process owns, and syncs them before it returns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from genrecourse.advice.record.answers import Answer


class RecordError(OSError):
    """Nothing was recorded, so the answer must not be sent. The service answers 503."""


@dataclass(frozen=True)
class Receipt:
    """What a recorded answer can be found by: its place in the record and the hash of its line."""

    record: int
    request: str
    time: str
    hash: str


class Record:
    """The record in a folder. One process owns it; all its threads may append."""

    def __init__(self, folder: str | os.PathLike[str], made_by: Mapping[str, Any]):
        raise NotImplementedError

    def append(self, answer: Answer) -> Receipt:
        """Record an answer and return its receipt, once both files are on disk."""
        raise NotImplementedError

    def erase(self, request: str, person: int | None = None) -> int:
        """Erase the values of the people of a request; return how many people were erased."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the folder. Closing twice does no harm."""
