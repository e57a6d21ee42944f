"""Reads and writes tables as CSV and Parquet files. A file is written completely or not at all."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError
from genrecourse.table.csv_cells import read_options, restored, write_csv
from genrecourse.table.schema import Feature, Schema, check_table
from genrecourse.table.text_files import NEEDS_PARQUET, path_of, write_whole

KINDS = (".csv", ".parquet")
WHOLE = r"\s*[-+]?\d+\s*"
HUGE = 2.0**63  # no column of whole numbers holds one that is larger
FLAGS = ("True", "TRUE", "true", "False", "FALSE", "false")  # as pandas reads them


def read_table(
    path: Path, schema: Schema | None = None, *, may_be_empty: bool = False
) -> pd.DataFrame:
    """Return the table in a file. Raises UserError if there is none.

    If a schema is given, columns whose categories are text are read as text, so "07" stays "07" and
    a category "NA" stays one. A cell that is no number leaves the other cells of its column as
    they are.

    may_be_empty: a header alone is a table, too.

    Examples:
        >>> write_table(pd.DataFrame({"age": [30, 41]}), Path("people.csv"))
        >>> read_table(Path("people.csv"))["age"].tolist()
        [30, 41]
    """
    path = path_of(path, "the table")
    kind = _kind(path)
    if not path.exists():
        raise UserError(f"there is no file {path}")
    if not path.is_file():
        raise UserError(f"{path} is a folder; name a file that ends in {' or '.join(KINDS)}")
    try:
        table = _read_csv(path, schema) if kind == ".csv" else _parquet(pd.read_parquet, path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or _one_line(error)}") from None
    except pd.errors.EmptyDataError:
        raise UserError(f"{path} is empty") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise UserError(
            f"{path} is not a csv table in UTF-8 (byte 0x{byte:02x}: {error.reason}); save it as "
            "UTF-8"
        ) from None
    except UserError:
        raise
    except Exception as error:  # pyarrow raises anything if what a file says of itself is damaged
        raise UserError(f"{path} is not a {kind[1:]} table: {_one_line(error)}") from None
    if len(table) == 0 and not may_be_empty:
        raise UserError(f"{path} has a header but no rows; give a table with at least one row")
    check_table(table, may_be_empty=may_be_empty)
    return table


def write_table(table: pd.DataFrame, path: Path, *, safe_cells: bool = False) -> None:
    """Write a table to a CSV or Parquet file; the ending of `path` decides which.

    safe_cells: in a CSV file, put an apostrophe before each text that a spreadsheet could run as a
        formula. `read_table` with the schema takes it away again.

    Examples:
        >>> write_table(pd.DataFrame({"age": [30, 41]}), Path("people.csv"))
        >>> Path("people.csv").read_text().split()
        ['age', '30', '41']
    """
    if _kind(path) == ".csv":
        write_whole(path, lambda temporary: write_csv(table, temporary, safe_cells=safe_cells))
    else:
        write_whole(path, lambda temporary: _parquet(table.to_parquet, temporary, index=False))


def parquet_files(source: Path) -> list[Path]:
    """Return a Parquet file as a list, or those in a folder and its folders, in order.

    As other readers do, it leaves out what begins with a dot or an underscore.

    Examples:
        >>> write_table(pd.DataFrame({"age": [30]}), Path("ages.parquet"))
        >>> parquet_files(Path("ages.parquet"))[0].name
        'ages.parquet'
    """
    if not source.exists():
        raise UserError(f"there is no file or folder {source}")
    if source.is_file():
        if source.suffix.lower() != ".parquet":
            raise UserError(f"{source} is no .parquet file; read it with pandas first")
        return [source]
    inner = [path.relative_to(source) for path in source.rglob("*.parquet") if path.is_file()]
    kept = [path for path in inner if not any(part[0] in "._" for part in path.parts)]
    if not kept:
        raise UserError(
            f"the folder {source} holds no .parquet files; name a .csv or such a folder"
        )
    return [source / path for path in sorted(kept)]


def parquet_rows(path: Path) -> int:
    """Return how many rows a Parquet file says that it has; 0 if it is damaged.

    Examples:
        >>> write_table(pd.DataFrame({"age": [30, 41]}), Path("ages.parquet"))
        >>> parquet_rows(Path("ages.parquet"))
        2
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UserError(f"{path}: {NEEDS_PARQUET}") from None
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError):
        return 0


def parquet_columns(source: Path) -> list[str]:
    """Return the columns of a Parquet file, or of the first one in a folder.

    Examples:
        >>> write_table(pd.DataFrame({"age": [30], "debt": [9]}), Path("ages.parquet"))
        >>> parquet_columns(Path("ages.parquet"))
        ['age', 'debt']
    """
    first = parquet_files(source)[0]
    return [str(name) for name in next(parquet_batches(first, 1), pd.DataFrame()).columns]


def parquet_batches(
    path: Path, rows: int, columns: Sequence[str] | None = None
) -> Iterator[pd.DataFrame]:
    """Yield the rows of a Parquet file, so many at a time. columns: those to read; None: all.

    Examples:
        >>> write_table(pd.DataFrame({"age": [30, 41, 50]}), Path("ages.parquet"))
        >>> [batch["age"].tolist() for batch in parquet_batches(Path("ages.parquet"), 2)]
        [[30, 41], [50]]
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UserError(f"{path}: {NEEDS_PARQUET}") from None
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            absent = [name for name in columns or () if name not in file.schema_arrow.names]
            if absent:
                raise UserError(
                    f"{path} lacks the column(s) {absent}; it has {file.schema_arrow.names}"
                )
            wanted = None if columns is None else list(columns)
            for batch in file.iter_batches(rows, columns=wanted):
                yield pa.Table.from_batches([batch]).to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"cannot read {path} as a parquet table: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _kind(path: Path) -> str:
    if path.suffix.lower() not in KINDS:
        raise UserError(f"the name of the table {path} should end in {' or '.join(KINDS)}")
    return path.suffix.lower()


def _read_csv(path: Path, schema: Schema | None) -> pd.DataFrame:
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file), [])
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:  # pandas would rename the second one without a warning
        raise UserError(f"{path} has more than one column named {twice}; rename or drop one")
    _check_separated(path, header)
    # in one go, so that a column has one type from top to bottom
    table = pd.read_csv(
        path, encoding="utf-8-sig", low_memory=False, **read_options(header, schema)
    )
    odd = [f.name for f in schema or () if f.name in table and _has_odd_cells(f, table[f.name])]
    if odd:
        cells = pd.read_csv(path, encoding="utf-8-sig", dtype=str, usecols=odd)
        table = table.assign(**{name: _numbers_apart(cells[name]) for name in odd})
    return restored(table, path, schema)


def _has_odd_cells(feature: Feature, column: pd.Series) -> bool:
    """Return whether a cell of a column of numbers or truth values is none of these."""
    if len(column) == 0 or feature.one_hot or any(isinstance(v, str) for v in feature.categories):
        return False
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return any(isinstance(cell, str) for cell in column.tolist())
    # a gap where there should be none, or a huge number, has made whole numbers fractions
    huge = (column.abs() >= HUGE).any()
    return bool(huge or (not feature.missing and column.isna().any()))


def _numbers_apart(cells: pd.Series) -> pd.Series:
    """Return a column of texts whose numbers are read as in a column of numbers alone."""
    numbers = pd.to_numeric(cells, errors="coerce").astype(np.float64)
    is_whole = cells.str.fullmatch(WHOLE, na=False).astype(bool)
    is_number = numbers.notna() & ~np.isinf(numbers) & ~(is_whole & (numbers.abs() >= HUGE))
    is_flag = cells.isin(FLAGS)
    right = is_number if is_number.any() else is_flag
    if not right.any():
        return numbers if numbers.notna().equals(cells.notna()) else cells
    text = StringIO("\n".join(["cell", *cells[right]]))
    alone = pd.read_csv(text, low_memory=False, **read_options([], None))["cell"]
    found = cells.astype(object)
    found[right] = alone.to_numpy(dtype=object)
    infinite = np.isinf(numbers) & ~is_whole
    found[infinite] = numbers[infinite]
    return found


def _check_separated(path: Path, header: list[str]) -> None:
    """Raise UserError if the table has another separator than commas and would be one column."""
    for mark, name in ((";", "';'"), ("\t", "tabs")):
        if len(header) == 1 and mark in header[0]:
            raise UserError(
                f"{path} seems to be separated by {name}: its header is {header[0][:60]!r}. Save "
                "it with commas between the columns and points in the numbers"
            )


def _parquet(act: Callable[..., Any], path: Path, **options: Any) -> Any:
    try:
        return act(path, **options)
    except ImportError:
        raise UserError(f"{path}: {NEEDS_PARQUET}") from None
