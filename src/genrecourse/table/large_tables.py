"""Tables of any length for `fit`: read in batches, of which a bounded number of rows is held.

One pass over the batches holds the rows whose keys are smallest. A key is a hash of the seed and
the number of the row, so which rows are held depends neither on the size of the batches nor on the
machine, and each row has the same chance. The rows that show the range and the levels of each
column are held, too (`witnesses`).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError, counted, shown
from genrecourse.table.frames import to_pandas
from genrecourse.table.noise import KeyedNoise
from genrecourse.table.schema import check_table
from genrecourse.table.table_files import parquet_batches, parquet_files, parquet_rows
from genrecourse.table.text_files import path_of
from genrecourse.table.witnesses import joined, witnesses

MOST_HELD = 200_000  # rows of a table that are held; a table of fewer rows is held whole
CHUNK = 65_536  # rows that are looked at together

Batches = Callable[[], Iterator[pd.DataFrame]]


@dataclass(frozen=True)
class HeldRows:
    """The rows of a long table that are held, and the batches to read all rows again.

    >>> held = hold([pd.DataFrame({"age": range(9)})] * 5, seed=0, most=10)
    >>> held.seen, held.is_whole, held.table["age"].is_monotonic_increasing
    (45, False, False)
    """

    table: pd.DataFrame  # in the order of the whole table
    rows: np.ndarray  # (n,) their numbers in the whole table
    seen: int  # rows of the whole table
    seed: int
    chunks: Batches

    @property
    def is_whole(self) -> bool:
        """Whether every row is held."""
        return len(self.rows) == self.seen

    def others(self) -> Iterator[tuple[pd.DataFrame, np.ndarray, np.ndarray]]:
        """Read the table again; yield its rows in parts, their keys, and which are not held.

        A part has the columns of the held rows, and the numbers of its rows as index.
        """
        seen = 0
        for chunk in self.chunks():
            numbers = np.arange(seen, seen + len(chunk))
            seen += len(chunk)
            part = chunk.set_axis(numbers)[list(self.table.columns)]
            yield part, row_keys(numbers, self.seed), ~np.isin(numbers, self.rows)
        if seen != self.seen:
            raise UserError(
                f"the table had {counted(self.seen, 'row')} when it was read first and {seen:,} "
                "when it was read again; it must give the same rows each time"
            )


def hold(
    source: Any, seed: int, *, columns: Sequence[str] | None = None, most: int | None = None
) -> HeldRows:
    """Return rows of a table, which is read once; at most so many and the witnesses.

    source: a Parquet file, a folder of them, a list of batches, or a function that returns an
        iterator of batches each time it is called. A batch is a DataFrame or an Arrow table.
    columns: those to read; None: all. most: None: MOST_HELD.

    >>> held = hold(lambda: (pd.DataFrame({"age": [age]}) for age in (30, 41)), seed=0)
    >>> held.table["age"].tolist(), held.is_whole
    ([30, 41], True)
    """
    most = MOST_HELD if most is None else most
    batches = _batches_of(source, columns)

    def chunks() -> Iterator[pd.DataFrame]:
        return _chunks(batches(), columns)

    sample: _Rows | None = None
    shows: _Rows | None = None
    seen = 0
    for chunk in chunks():
        new = _Rows(chunk, np.arange(seen, seen + len(chunk)))
        seen += len(chunk)
        sample = new.after(sample).smallest(most, seed)
        shows = new.after(shows).witnesses()
    if sample is None or shows is None:
        raise UserError("the table has no rows; give a table with at least one row")
    both = shows.after(sample)
    rows, first = np.unique(both.rows, return_index=True)
    table = both.table.iloc[first].reset_index(drop=True)
    check_table(table)
    return HeldRows(table, rows, seen, seed, chunks)


def is_in_batches(source: Any) -> bool:
    """Return whether a table is given as a path or as batches, and not as one DataFrame.

    >>> is_in_batches("people/"), is_in_batches(pd.DataFrame({"age": [30]}))
    (True, False)
    """
    if isinstance(source, type):
        return False
    if isinstance(source, str | os.PathLike | HeldRows) or callable(source):
        return True
    if isinstance(source, list | tuple):
        return bool(source) and all(map(_is_batch, source))
    is_array = hasattr(source, "shape") or hasattr(source, "__array__")
    return isinstance(source, Iterable) and not is_array and not isinstance(source, Mapping | set)


def is_long(path: Path) -> bool:
    """Return whether a path leads to a folder, or to a Parquet file of more than MOST_HELD rows.

    >>> is_long(Path("people.csv"))
    False
    """
    if path.suffix.lower() == ".parquet" and path.is_file():
        return parquet_rows(path) > MOST_HELD
    return path.is_dir()


def row_keys(numbers: np.ndarray, seed: int) -> np.ndarray:
    """Return a random key for each row number (n,), the same in every process.

    >>> row_keys(np.array([7, 8]), seed=0)[1] == row_keys(np.array([8]), seed=0)[0]
    np.True_
    """
    return KeyedNoise(seed).keys(numbers[:, None].astype(np.float64))


# ---- what is held --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """Some rows of a table, and their numbers in it."""

    table: pd.DataFrame
    rows: np.ndarray

    def after(self, others: _Rows | None) -> _Rows:
        if others is None:
            return self
        table = joined([others.table, self.table])
        return _Rows(table, np.concatenate([others.rows, self.rows]))

    def smallest(self, most: int, seed: int) -> _Rows:
        """Return the rows of the smallest keys."""
        if len(self.rows) <= most:
            return self
        return self._take(np.sort(np.argpartition(row_keys(self.rows, seed), most)[:most]))

    def witnesses(self) -> _Rows:
        return self._take(witnesses(self.table))

    def _take(self, places: np.ndarray) -> _Rows:
        return _Rows(self.table.iloc[places].reset_index(drop=True), self.rows[places])


# ---- how it is read ------------------------------------------------------------------------------


def _batches_of(source: Any, columns: Sequence[str] | None) -> Callable[[], Iterator[Any]]:
    """Return what gives the batches of a source, each time from the beginning."""
    if isinstance(source, str | os.PathLike):
        files = parquet_files(path_of(source, "the table"))
        return lambda: (batch for file in files for batch in parquet_batches(file, CHUNK, columns))
    if isinstance(source, Iterator):
        raise UserError(
            "the table is an iterator, which can be read only once, and fit reads a long table "
            "twice; give a function that returns a new one, or a list of batches"
        )
    if callable(source):
        _check_takes_nothing(source)
        return lambda: iter(source())
    return lambda: iter(source)


def _check_takes_nothing(function: Callable[..., Any]) -> None:
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise UserError(
            f"the function that gives the batches of the table must need no argument: {error}"
        ) from None
    except ValueError:  # some built-in functions do not say what they take
        pass


def _chunks(batches: Iterator[Any], columns: Sequence[str] | None) -> Iterator[pd.DataFrame]:
    """Yield the rows of batches of any size in tables of CHUNK rows, and a last one."""
    waiting: list[pd.DataFrame] = []
    first: list[str] | None = None if columns is None else list(columns)
    for number, batch in enumerate(batches):
        table = _as_table(batch, number)
        if len(table) == 0:
            continue
        first = list(table.columns) if first is None else first
        _check_same(table, first, number, are_chosen=columns is not None)
        waiting.append(table[first])
        if sum(map(len, waiting)) >= CHUNK:
            whole = joined(waiting)
            ends = len(whole) // CHUNK * CHUNK
            for start in range(0, ends, CHUNK):
                yield whole.iloc[start : start + CHUNK].reset_index(drop=True)
            waiting = [whole.iloc[ends:]] if ends < len(whole) else []
    if waiting:
        yield joined(waiting)


def _is_batch(batch: Any) -> bool:
    package = type(batch).__module__.partition(".")[0]
    return isinstance(batch, pd.DataFrame) or package in ("polars", "pyarrow")


def _as_table(batch: Any, number: int) -> pd.DataFrame:
    if not _is_batch(batch):
        raise UserError(
            f"batch {number} of the table is {shown(batch)}; give batches that are DataFrames, or "
            "Arrow tables"
        )
    is_arrow = type(batch).__module__.startswith("pyarrow")  # also a RecordBatch
    table = batch.to_pandas() if is_arrow else to_pandas(batch)
    check_table(table, may_be_empty=True)
    return table


def _check_same(table: pd.DataFrame, first: list[str], number: int, *, are_chosen: bool) -> None:
    absent = [name for name in first if name not in table.columns]
    more = [] if are_chosen else [name for name in table.columns if name not in first]
    if absent or more:
        what = f"lacks the column(s) {absent}" if absent else f"has the further column(s) {more}"
        raise UserError(f"batch {number} of the table {what}; all batches need the same columns")
