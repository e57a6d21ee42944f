"""The results file: one line of JSON per finished run, so that a comparison can continue.

Each line reaches the disk before the next run begins. If the process is killed, only the last line
can be incomplete; it is removed when the file is opened again, and its run is repeated.
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
BEGIN = b'{"dataset"'  # of every line, also of one that was cut off
TABLES = (".csv", ".md", ".tex")  # endings of the tables next to a results file


class ResultsFile:
    """The lines of a file, to which new lines are appended; without a path, only in memory.

    >>> with ResultsFile(None) as file:
    ...     file.append([{"dataset": "german", "seed": 0}])
    >>> len(file.lines)
    1
    """

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
        """Write lines to the disk at once."""
        self.lines += lines
        text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)
        self._write(text.encode())

    def _mend(self, content: bytes, whole: int) -> None:
        """Remove an incomplete last line, and end the last line with a newline."""
        assert self._file is not None
        if whole < len(content):
            warnings.warn(
                f"the last line of {self.path} is incomplete, because an earlier comparison was "
                "killed; its run is repeated",
                stacklevel=4,
            )
            self._file.truncate(whole)
        if whole and content[whole - 1 : whole] != b"\n":
            self._write(b"\n")

    def _write(self, content: bytes) -> None:
        if self._file is None:
            return
        try:
            while content:  # a full disk may not take everything at once
                content = content[self._file.write(content) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise UserError(f"cannot write {self.path}: {error.strerror or error}") from None


def read_results(path: Path) -> list[Line]:
    """Return the lines of a results file, without an incomplete last line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "results.jsonl")
    ...     _ = path.write_text('{"dataset": "german"}\\n{"datas')
    ...     read_results(path)
    [{'dataset': 'german'}]
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    return _parse(content, path)[0]


def _parse(content: bytes, path: Path) -> tuple[list[Line], int]:
    """Return the complete lines, and their length in bytes."""
    lines: list[Line] = []
    place = 0
    for number, raw in enumerate(content.splitlines(keepends=True), start=1):
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict) or "dataset" not in line:
            if not raw.endswith(b"\n") and raw.startswith(BEGIN[: len(raw)]):
                return lines, place
            raise UserError(
                f"line {number} of {path} is not a result of a comparison; use another file, or "
                "remove the line"
            )
        lines.append(line)
        place += len(raw)
    return lines, place


def _check(path: Path) -> None:
    if path.suffix != ".jsonl":
        raise UserError(
            f"{path} must end with .jsonl: the tables get the same name with other endings"
        )
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder")
    if not path.absolute().parent.is_dir():
        raise UserError(f"cannot write {path}: there is no folder {path.absolute().parent}")


def _lock(file: IO[bytes], path: Path) -> None:
    """Lock the file, since two comparisons would do every run twice; the lock ends with us."""
    try:
        import fcntl
    except ImportError:  # this system has no fcntl
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UserError(f"another comparison is writing to {path}; wait for it to end") from None


# ---- one number per person, in few bytes ---------------------------------------------------------


def pack_numbers(values: np.ndarray) -> str:
    """Return numbers as text, as float32 or uint32.

    Bytes of equal weight are next to each other, since this compresses better.

    >>> unpack_numbers(pack_numbers(np.array([0.5, 1.5]))).tolist()
    [0.5, 1.5]
    """
    kind = np.uint32 if values.dtype.kind in "ui" else np.float32
    parts = values.astype(kind).reshape(-1, 1).view(np.uint8).T
    return base64.b85encode(zlib.compress(parts.tobytes(), 9)).decode()


def unpack_numbers(text: str, *, ids: bool = False) -> np.ndarray:
    """Return the numbers that `pack_numbers` wrote. ids: they are integers.

    >>> unpack_numbers(pack_numbers(np.array([3, 4])), ids=True).tolist()
    [3, 4]
    """
    parts = np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype=np.uint8)
    numbers = np.ascontiguousarray(parts.reshape(4, -1).T)
    if ids:
        return numbers.view(np.uint32).reshape(-1)
    return numbers.view(np.float32).reshape(-1).astype(np.float64)


def unpack_people(line: Line) -> dict[str, np.ndarray]:
    """Return the values of each person in a line: score, val, lof, cost, and the id of x_plus.

    Two people of a case have the same id if they got the same x_plus, from any method.

    >>> line = {
    ...     "people": {"cost": pack_numbers(np.array([0.5])), "x_plus": pack_numbers(np.array([7]))}
    ... }
    >>> unpack_people(line)
    {'cost': array([0.5]), 'x_plus': array([7], dtype=uint32)}
    """
    packed = line["people"]
    return {name: unpack_numbers(text, ids=name == "x_plus") for name, text in packed.items()}


def row_ids(X: pd.DataFrame) -> np.ndarray:
    """Return (n,) ids of 32 bits; equal rows have equal ids, also in different tables.

    >>> ids = row_ids(pd.DataFrame({"income": [1.0, 2.0, 1.0]}))
    >>> bool(ids[0] == ids[2]), bool(ids[0] == ids[1])
    (True, False)
    """
    table = {
        name: _numbers(column) if pd.api.types.is_numeric_dtype(column.dtype) else column
        for name, column in X.reset_index(drop=True).items()
    }
    return _HALF & pd.util.hash_pandas_object(pd.DataFrame(table), index=False).to_numpy()


_HALF = np.uint64(2**32 - 1)


def _numbers(column: pd.Series) -> np.ndarray:
    """Return a number column as float64, rounded to 9 decimals."""
    return np.round(column.to_numpy(dtype=np.float64, na_value=np.nan), 9)
