"""The results file: one line of JSON a finished run, so that a killed comparison can go on.

A line is written at once and reaches the disk before the next run begins. A kill can tear the last
line only; that one is dropped when the file is opened again, and its run is done anew.
"""

from __future__ import annotations

import base64
import json
import os
import warnings
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError

Line = dict[str, Any]
TABLES = (".csv", ".md", ".tex")  # endings of the tables that stand beside the results


class ResultsFile:
    """Lines as they stand in a file, and more of them appended. No path: kept in memory only."""

    def __init__(self, path: Path | None):
        self.path = path
        self.lines: list[Line] = []
        self._file: IO[bytes] | None = None

    def __enter__(self) -> ResultsFile:
        if self.path is None:
            return self
        _check(self.path)
        try:
            self._file = open(self.path, "a+b", buffering=0)
        except OSError as error:
            raise UserError(f"cannot write {self.path}: {error.strerror or error}") from None
        try:
            _lock(self._file, self.path)
            self._file.seek(0)
            content = self._file.read()
            self.lines, whole = _parse(content, self.path)
            self._mend(content, whole)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def append(self, lines: list[Line]) -> None:
        self.lines += lines
        text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)
        self._write(text.encode())

    def _mend(self, content: bytes, whole: int) -> None:
        """Leave nothing behind the last whole line, and that one with its end."""
        assert self._file is not None
        if whole < len(content):
            warnings.warn(
                f"the last line of {self.path} was torn when the run before was killed; that run "
                "is done again",
                stacklevel=4,
            )
            self._file.truncate(whole)
        if whole and content[whole - 1 : whole] != b"\n":
            self._write(b"\n")

    def _write(self, content: bytes) -> None:
        if self._file is None:
            return
        try:
            while content:  # a file takes it all at once; a full disk may not
                content = content[self._file.write(content) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise UserError(f"cannot write {self.path}: {error.strerror or error}") from None


def read_results(path: Path) -> list[Line]:
    """The lines of a results file; a torn last one is left out."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    return _parse(content, path)[0]


def _parse(content: bytes, path: Path) -> tuple[list[Line], int]:
    """The lines, and how many bytes of the content they are."""
    lines: list[Line] = []
    place = 0
    for number, raw in enumerate(content.splitlines(keepends=True), start=1):
        try:
            line = json.loads(raw)
        except ValueError:
            line = None
        if not isinstance(line, dict) or "dataset" not in line:
            if not raw.endswith(b"\n"):
                return lines, place
            raise UserError(
                f"line {number} of {path} is no result of a comparison; name another file, or take "
                "that line out"
            )
        lines.append(line)
        place += len(raw)
    return lines, place


def _check(path: Path) -> None:
    if path.suffix != ".jsonl":
        raise UserError(f"{path} should end in .jsonl: the tables go beside it under its name")
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder")
    if not path.absolute().parent.is_dir():
        raise UserError(f"cannot write {path}: there is no folder {path.absolute().parent}")


def _lock(file: IO[bytes], path: Path) -> None:
    """Two comparisons into one file would do everything twice. A lock ends with its process."""
    try:
        import fcntl
    except ImportError:  # not on this system
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UserError(f"another comparison is writing to {path}; wait for it to end") from None


# ---- one number a person, in few bytes -----------------------------------------------------------


def pack_numbers(values: np.ndarray) -> str:
    """float32 or uint32 as text; bytes of equal weight side by side, which compress better."""
    kind = np.uint32 if values.dtype.kind in "ui" else np.float32
    parts = values.astype(kind).reshape(-1, 1).view(np.uint8).T
    return base64.b85encode(zlib.compress(parts.tobytes(), 9)).decode()


def unpack_numbers(text: str, *, ids: bool = False) -> np.ndarray:
    """The inverse of `pack_numbers`. ids: they are whole numbers."""
    parts = np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype=np.uint8)
    numbers = np.ascontiguousarray(parts.reshape(4, -1).T)
    if ids:
        return numbers.view(np.uint32).reshape(-1)
    return numbers.view(np.float32).reshape(-1).astype(np.float64)


def unpack_people(line: Line) -> dict[str, np.ndarray]:
    """What a line keeps of each person: score, val, lof, cost, and `x_plus`, the id of what they
    were told. Two people of one case with one id were told the same, by whichever method."""
    packed = line["people"]
    return {name: unpack_numbers(text, ids=name == "x_plus") for name, text in packed.items()}


def row_ids(X: pd.DataFrame) -> np.ndarray:
    """(n,) of 32 bits for the rows of a table; equal rows have equal ids, in whatever table."""
    table = {
        name: _numbers(column) if pd.api.types.is_numeric_dtype(column.dtype) else column
        for name, column in X.reset_index(drop=True).items()
    }
    return _HALF & pd.util.hash_pandas_object(pd.DataFrame(table), index=False).to_numpy()


_HALF = np.uint64(2**32 - 1)


def _numbers(column: pd.Series) -> np.ndarray:
    """Of one kind and precision."""
    return np.round(column.to_numpy(dtype=np.float64, na_value=np.nan), 9)
