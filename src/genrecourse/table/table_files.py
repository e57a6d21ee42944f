"""Reads and writes tables as CSV and Parquet files. A file is written completely or not at all."""

from __future__ import annotations

import csv
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from genrecourse.errors import UserError
from genrecourse.table.csv_cells import read_options, restored, write_csv
from genrecourse.table.schema import Schema, check_table
from genrecourse.table.text_files import path_of, write_whole

KINDS = (".csv", ".parquet")
NEEDS = "Parquet needs pyarrow; run pip install 'genrecourse[parquet]'"


def read_table(path: Path, schema: Schema | None = None) -> pd.DataFrame:
    """Return the table in a file. Raises UserError if there is none.

    If a schema is given, columns whose categories are text are read as text, so "07" stays "07" and
    a category "NA" stays one.

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
    if len(table) == 0:
        raise UserError(f"{path} has a header but no rows; give a table with at least one row")
    check_table(table)
    return table


def check_output(path: Path, also: tuple[str, ...] = ()) -> None:
    """Raise UserError if a file could not be written to `path`. Call it before any long work.

    Args:
        path: the file to be written.
        also: endings that are allowed besides `KINDS`.

    Examples:
        >>> check_output(Path("plans.csv"))
        >>> check_output(Path("plans.xls"), also=(".html",))
        Traceback (most recent call last):
        ...
        genrecourse.errors.UserError: cannot write plans.xls: its name should end in .html, ...
    """
    path, endings = path_of(path, "the output"), (*also, *KINDS)
    if path.suffix.lower() not in endings:
        known = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise UserError(f"cannot write {path}: its name should end in {known}")
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder; name a file")
    if not path.absolute().parent.is_dir():
        raise UserError(f"cannot write {path}: there is no folder {path.parent}; create it first")
    if path.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise UserError(f"{path}: {NEEDS}")


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
    table = pd.read_csv(
        path, encoding="utf-8-sig", low_memory=False, **read_options(header, schema)
    )
    return restored(table, path, schema)


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
        raise UserError(f"{path}: {NEEDS}") from None
