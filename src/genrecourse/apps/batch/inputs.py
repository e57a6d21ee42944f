"""The rows of a CSV file or of Parquet files, divided into parts that any process can read alone.

A part is a range of rows of one file, so what a part holds depends on the input and on the number
of rows a part, and never on an engine or on how far a run has come.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from genrecourse.errors import UserError, counted
from genrecourse.table.csv_cells import read_cell
from genrecourse.table.table_files import parquet_files

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BLOCK = 1 << 20  # bytes that are read at once
READ_ROWS = 1_000  # rows of a Parquet file that are read at once


@dataclass(frozen=True)
class Part:
    """A range of rows of one file.

    >>> Part(number=3, first=3000, rows=1000, file=0, start=3000, end=4000).rows
    1000
    """

    number: int  # from 0, in the order of the input
    first: int  # the number of its first row in the whole input, from 0
    rows: int
    file: int  # which file of the input
    start: int  # the first byte in a CSV, or the first row in a Parquet file
    end: int  # the end of it, not included


@dataclass(frozen=True)
class File:
    """One file of an input.

    >>> File("people.csv", "people.csv", 120, "ab12", 3).rows
    3
    """

    path: str
    name: str  # without the folder of the input
    size: int
    sha256: str
    rows: int
    changed: int = 0  # when, in nanoseconds; of this machine, so no fact of the input


@dataclass(frozen=True)
class Input:
    """Where people come from, divided into parts. It can be sent to another process."""

    kind: str  # "csv" or "parquet"
    files: tuple[File, ...]
    columns: tuple[str, ...]
    parts: tuple[Part, ...] = field(repr=False)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(file.rows for file in self.files)

    def facts(self) -> dict[str, Any]:
        """Return what tells this input from another one, as plain data."""
        names = ("name", "size", "sha256", "rows")
        files = [{name: getattr(file, name) for name in names} for file in self.files]
        return {"kind": self.kind, "rows": self.rows, "files": files}

    def read(
        self, part: Part, columns: list[str], levels: Mapping[str, tuple[str, ...]] | None = None
    ) -> tuple[pd.DataFrame, dict[int, str]]:
        """Return columns of the rows of a part, numbered as in the whole input, and what is wrong.

        The dict has a sentence for each place whose line cannot be read; its cells are missing.
        levels: of columns of texts; in a CSV, a level "NA" is then not missing.
        """
        path = Path(self.files[part.file].path)
        index = pd.RangeIndex(part.first, part.first + part.rows)
        try:
            if self.kind == "parquet":
                return _parquet_rows(path, part, columns).set_axis(index), {}
            cells, wrong = _csv_rows(path, part, list(self.columns), columns, levels or {})
            return pd.DataFrame(cells, index=index, dtype=object), wrong
        except (OSError, ValueError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(f"cannot read {path}: {' '.join(str(error).split())}") from None

    def check_unchanged(self) -> None:
        """Raise UserError if a file was changed after it was opened."""
        for file in self.files:
            path = Path(file.path)
            if not path.exists() or path.stat().st_mtime_ns != file.changed:
                raise _changed(path)


def _changed(path: Path) -> UserError:
    return UserError(f"{path} has changed since it was read first; start again, in a new folder")


def open_input(source: Path, rows_per_part: int) -> Input:
    """Return the people in a .csv, a .parquet or a folder of .parquet files, divided into parts.

    Every byte is read once: for the checksum, and to find where the rows of a CSV begin.
    """
    paths = _files(source)
    kind = paths[0].suffix.lower().removeprefix(".")
    root = source if source.is_dir() else source.parent
    files: list[File] = []
    parts: list[Part] = []
    columns: list[str] = []
    first = 0
    for path in paths:
        about = path.stat()  # before it is read
        layout = _csv_layout if kind == "csv" else _parquet_layout
        names, ends, rows = layout(path, rows_per_part)
        _check_header(path, names)
        if files and set(names) != set(columns):
            odd = sorted(set(names) ^ set(columns))
            raise UserError(f"{path} has other columns than {paths[0]}: {odd[:5]} are in one only")
        columns = columns or names
        for start, end, n in ends:
            parts.append(Part(len(parts), first, n, len(files), start, end))
            first += n
        name = path.relative_to(root).as_posix()
        where, sha256 = str(path.absolute()), _sha256(path)
        files.append(File(where, name, about.st_size, sha256, rows, about.st_mtime_ns))
    if first == 0:
        raise UserError(f"{source} has no rows; give a table with at least one row")
    return Input(kind, tuple(files), tuple(columns), tuple(parts))


def _files(source: Path) -> list[Path]:
    if not source.exists():
        raise UserError(f"there is no file or folder {source}")
    if source.is_file():
        if source.suffix.lower() not in (".csv", ".parquet"):
            raise UserError(f"the name of the table {source} should end in .csv or .parquet")
        return [source]
    return parquet_files(source)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---- CSV ----------------------------------------------------------------------------------------


class _Lines:
    """The lines of a file as text, counting the bytes that were handed out."""

    def __init__(self, lines: Iterator[bytes]):
        self.lines, self.bytes, self.is_odd = lines, 0, False

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = next(self.lines)
        text = line.removeprefix(b"\xef\xbb\xbf") if self.bytes == 0 else line
        self.bytes += len(line)
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError:
            self.is_odd = True
            return text.decode("utf-8", "replace")


def _csv_layout(
    path: Path, rows_per_part: int
) -> tuple[list[str], list[tuple[int, int, int]], int]:
    """Return the columns of a CSV, the bytes and the number of rows of each part, and all rows."""
    ends: list[tuple[int, int, int]] = []
    rows = n = 0
    with path.open("rb", buffering=BLOCK) as file:
        lines = _Lines(iter(file))
        reader = csv.reader(lines)
        try:
            names = next(reader, [])
            start = lines.bytes
            for row in reader:
                if row:  # csv gives an empty list for an empty line
                    n += 1
                if n == rows_per_part:
                    ends.append((start, lines.bytes, n))
                    start, rows, n = lines.bytes, rows + n, 0
        except csv.Error as error:
            where = f"after row {rows + n:,}"
            raise UserError(
                f"{path} is not a csv table ({where}: {error}); is a quote not closed?"
            ) from None
    if n:
        ends.append((start, lines.bytes, n))
    return names, ends, rows + n


def _check_header(path: Path, names: list[str]) -> None:
    if not names:
        raise UserError(f"{path} is empty")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(f"{path} has more than one column named {twice}; rename or drop one")


def _csv_rows(
    path: Path,
    part: Part,
    names: list[str],
    columns: list[str],
    levels: Mapping[str, tuple[str, ...]],
) -> tuple[dict[str, list[str | None]], dict[int, str]]:
    with path.open("rb") as file:
        file.seek(part.start)
        data = file.read(part.end - part.start)
    lines = _Lines(iter(io.BytesIO(data)))
    lines.bytes = part.start
    wrong: dict[int, str] = {}
    rows: list[list[str]] = []
    for row in csv.reader(lines):
        if row and (len(row) != len(names) or lines.is_odd):
            many = f"{counted(len(row), 'cell')}, and the header has {len(names)}"
            odd = "the line has bytes that are not UTF-8"
            wrong[len(rows)] = odd if lines.is_odd else f"the line has {many}"
        lines.is_odd = False
        if row:
            rows.append((row + [""] * len(names))[: len(names)])
    if len(rows) != part.rows:
        raise _changed(path)
    places = [names.index(name) for name in columns]
    cells = {
        name: [read_cell(row[j], levels.get(name, ())) for row in rows]
        for name, j in zip(columns, places, strict=True)
    }
    return cells, wrong


# ---- Parquet ------------------------------------------------------------------------------------


def _parquet_layout(
    path: Path, rows_per_part: int
) -> tuple[list[str], list[tuple[int, int, int]], int]:
    """Return the columns of a Parquet file, the rows of each part, and their number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            rows, names = file.metadata.num_rows, list(file.schema_arrow.names)
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path} is not a parquet table: {error}") from None
    ends = [
        (start, min(start + rows_per_part, rows), min(rows_per_part, rows - start))
        for start in range(0, rows, rows_per_part)
    ]
    return names, ends, rows


class _Cursor:
    """Reads ranges of rows of one Parquet file that come in order, in constant memory."""

    def __init__(self, path: Path, columns: list[str]):
        import pyarrow.parquet as pq

        self.path, self.what = path, (str(path), path.stat().st_mtime_ns, tuple(columns))
        # without pre_buffer, a row group of any size is read a page at a time
        self.file: pq.ParquetFile = pq.ParquetFile(path, pre_buffer=False, buffer_size=BLOCK)
        self.columns, self.place = columns, 0
        self.batches: Iterator[Any] | None = None
        self.rest: Any = None

    def rows(self, start: int, end: int) -> Any:
        """Return rows start to end, which must not lie before those that were read last."""
        import pyarrow as pa

        if self.batches is None:
            self._go_to(start)
        found = []
        while self.place < end:
            batch = self.rest
            if batch is None or len(batch) == 0:
                batch = next(self.batches, None)  # type: ignore[arg-type]
            if batch is None:
                raise _changed(self.path)
            skipped = min(max(0, start - self.place), len(batch))
            taken = batch[skipped : skipped + end - max(start, self.place)]
            if len(taken):
                found.append(taken)
            self.place += skipped + len(taken)
            self.rest = batch[skipped + len(taken) :]
        return pa.Table.from_batches(found)

    def _go_to(self, start: int) -> None:
        """Begin at the row group that holds the row."""
        groups = [self.file.metadata.row_group(i).num_rows for i in range(self.file.num_row_groups)]
        first = 0
        while first < len(groups) and self.place + groups[first] <= start:
            self.place += groups[first]
            first += 1
        self.batches = self.file.iter_batches(
            READ_ROWS, list(range(first, len(groups))), self.columns
        )


_CURSOR: list[_Cursor] = []  # of this process: the parts that it reads mostly follow each other


def _parquet_rows(path: Path, part: Part, columns: list[str]) -> pd.DataFrame:
    what = (str(path), path.stat().st_mtime_ns, tuple(columns))
    if not _CURSOR or _CURSOR[0].what != what or _CURSOR[0].place > part.start:
        _CURSOR[:] = [_Cursor(path, columns)]
    try:
        found = _CURSOR[0].rows(part.start, part.end)
    except BaseException:
        _CURSOR.clear()
        raise
    # floats would not hold every whole number of a column with a gap, such as a long key
    return found.to_pandas(ignore_metadata=True, integer_object_nulls=True)
