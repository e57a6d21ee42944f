"""Tables as files: CSV and Parquet, in and out. What is written is written whole or not at all."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd

from genrecourse.errors import UserError
from genrecourse.table.schema import Schema, check_table

KINDS = (".csv", ".parquet")
NEEDS = "Parquet needs pyarrow; run pip install 'genrecourse[parquet]'"


def read_table(path: Path, schema: Schema | None = None) -> pd.DataFrame:
    """The table in a file. With a schema, categories that are text are read as text ("07")."""
    kind = _kind(path)
    if not path.exists():
        raise UserError(f"there is no file {path}")
    if not path.is_file():
        raise UserError(f"{path} is a folder; name a file that ends in {' or '.join(KINDS)}")
    try:
        table = _read_csv(path, schema) if kind == ".csv" else _parquet(pd.read_parquet, path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except pd.errors.EmptyDataError:
        raise UserError(f"{path} is empty") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise UserError(
            f"{path} is no csv table in UTF-8 (byte 0x{byte:02x}: {error.reason}); save it as UTF-8"
        ) from None
    except (pd.errors.ParserError, csv.Error, ValueError) as error:
        raise UserError(f"{path} is no {kind[1:]} table: {error}") from None
    if len(table) == 0:
        raise UserError(f"{path} has a header and no rows")
    check_table(table)
    return table


def check_output(path: Path, also: tuple[str, ...] = ()) -> None:
    """Refuse before any work what could not be written after it. also: endings besides `KINDS`."""
    endings = (*also, *KINDS)
    if path.suffix.lower() not in endings:
        said = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise UserError(f"{path} should end in {said}, which says what is written")
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder; name a file")
    if not path.absolute().parent.is_dir():
        raise UserError(f"cannot write {path}: there is no folder {path.parent}")
    if path.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise UserError(f"{path}: {NEEDS}")


def write_table(table: pd.DataFrame, path: Path) -> None:
    """A table to a file, by its ending."""
    if _kind(path) == ".csv":
        write_whole(path, lambda temporary: table.to_csv(temporary, index=False))
    else:
        write_whole(path, lambda temporary: _parquet(table.to_parquet, temporary, index=False))


def read_text(path: Path) -> str:
    """Returns the text of a file, which must be UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"cannot read {path}: not UTF-8; save it as UTF-8") from None


def write_text(text: str, path: Path) -> None:
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` fill a file beside `path`, and give it that name only when it is complete."""
    temporary = path.parent / f".{path.name}.{uuid4().hex[:8]}{path.suffix}"
    try:
        if path.is_dir():
            raise UserError(f"cannot write {path}: it is a folder")
        if not path.parent.is_dir():
            raise UserError(f"cannot write {path}: there is no folder {path.parent}")
        write(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _kind(path: Path) -> str:
    if path.suffix.lower() not in KINDS:
        raise UserError(f"{path} should end in {' or '.join(KINDS)}, which says what it is")
    return path.suffix.lower()


def _read_csv(path: Path, schema: Schema | None) -> pd.DataFrame:
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file), [])
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:  # pandas would rename the second one in silence
        raise UserError(f"{path} has more than one column named {twice}; rename or drop one")
    _check_separated(path, header)
    as_text = {f.name: str for f in schema or () if f.categories and _all_text(f.categories)}
    dtype: Any = {name: kind for name, kind in as_text.items() if name in header}
    return pd.read_csv(path, encoding="utf-8-sig", dtype=dtype)


def _check_separated(path: Path, header: list[str]) -> None:
    """Refuse what would be read as one column with everything in it."""
    for mark, said in ((";", "';'"), ("\t", "tabs")):
        if len(header) == 1 and mark in header[0]:
            raise UserError(
                f"{path} looks separated by {said}: its header is {header[0][:60]!r}. Save it with "
                "commas between the columns, and points in the numbers"
            )


def _all_text(levels: tuple[Any, ...]) -> bool:
    return all(isinstance(level, str) for level in levels)


def _parquet(act: Callable[..., Any], path: Path, **options: Any) -> Any:
    try:
        return act(path, **options)
    except ImportError:
        raise UserError(f"{path}: {NEEDS}") from None
