"""Cells of CSV files: what the library writes, it reads back to the same value.

CSV has only text, so that some values need care: a text that looks like a number or like a missing
value, an empty text, a line break within a text, a number with 17 digits.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from genrecourse.table.schema import Schema

AFTER = "new "  # begins the names of columns that hold features after a plan
# what is read as a missing value: the list of pandas
MISSING = (
    *("", "NaN", "NA", "N/A", "n/a", "nan", "null", "NULL", "None", "<NA>", "#N/A", "#N/A N/A"),
    *("#NA", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
_MISSING = frozenset(MISSING)
# a text that a spreadsheet may run, or one that was made safe; "-1" is no danger
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
# before 3.1, pandas reads the last digit of some numbers wrongly if it is not told otherwise
_is_exact = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
_DIGITS: dict[str, Any] = {} if _is_exact else {"float_precision": "round_trip"}
EXACT = 2**53  # from here on, not every whole number is a float


# ---- writing ----------------------------------------------------------------------------------


def write_csv(table: pd.DataFrame, path: Path, *, safe_cells: bool = False) -> None:
    """Write a table as CSV.

    safe_cells: put an apostrophe before each text that a spreadsheet could run as a formula.

    >>> write_csv(pd.DataFrame({"note": ["=1+1", "-1"]}), Path("notes.csv"), safe_cells=True)
    >>> Path("notes.csv").read_text().split()
    ['note', "'=1+1", '-1']
    """
    cells = {i: _to_write(table.iloc[:, i], safe_cells) for i in range(table.shape[1])}
    written = pd.DataFrame(cells, index=table.index)
    written.columns = pd.Index([_safe(name) if safe_cells else name for name in table.columns])
    # Python's csv writes a lone carriage return without quotes, which ends the line when read
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if _has_returns(written) else csv.QUOTE_MINIMAL
    written.to_csv(path, index=False, quoting=quoting)


def _to_write(column: pd.Series, safe_cells: bool) -> pd.Series:
    """Return a column whose texts, written by pandas, can be read back."""
    if column.dtype == np.float32:
        return column.astype(float)  # 0.1 in 32 bits is 0.10000000149011612
    texts = _texts(column)
    if not texts:
        return column
    cells = column.astype(object)
    if "" in texts and cells.isna().any():
        cells = cells.where(cells.notna(), next(mark for mark in MISSING if mark not in texts))
    return cells.map(_safe) if safe_cells else cells


def _texts(column: pd.Series) -> set[str]:
    """Return the texts in a column; none if its type has no texts."""
    dtype = column.dtype
    if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_datetime64_any_dtype(dtype):
        return set()
    return {cell for cell in column.tolist() if isinstance(cell, str)}


def _safe(cell: Any) -> Any:
    """Return a text with an apostrophe before it, if it could be a formula; else the same cell."""
    if not isinstance(cell, str) or not _FORMULA.match(cell) or _NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"


def _has_returns(table: pd.DataFrame) -> bool:
    texts = {str(name) for name in table.columns}.union(*(_texts(c) for _, c in table.items()))
    return any("\r" in text for text in texts)


# ---- reading ----------------------------------------------------------------------------------


def read_options(header: list[str], schema: Schema | None) -> dict[str, Any]:
    """Return options of `pandas.read_csv` by which the cells of a schema's features keep their
    values: "07" stays text, a level "NA" stays a level, and a number has its last digit.

    The columns "new ..." of a table of plans are read as the features that they hold.

    >>> from genrecourse import Schema
    >>> pets = Schema.infer(pd.DataFrame({"pet": ["NA", "cat"]}))
    >>> options = read_options(["pet", "age"], pets)
    >>> options["dtype"], "NA" in options["na_values"]["pet"], "NA" in options["na_values"]["age"]
    ({'pet': <class 'str'>}, False, True)
    """
    levels = {name: texts for name, texts in text_levels(schema).items() if name in header}
    options = _DIGITS | {"dtype": dict.fromkeys(levels, str)}
    if any(set(texts) & set(MISSING) for texts in levels.values()):
        missing = {
            name: [mark for mark in MISSING if mark not in levels.get(name, ())] for name in header
        }
        options |= {"keep_default_na": False, "na_values": missing}
    return options


def restored(table: pd.DataFrame, path: Path, schema: Schema | None) -> pd.DataFrame:
    """Return a table that was read with `read_options`, with the cells that need a second look.

    These are texts that `write_csv` made safe, and large whole numbers beside missing ones.

    >>> restored(pd.DataFrame({"age": [30]}), Path("ages.csv"), None)["age"].tolist()
    [30]
    """
    changed: dict[str, Any] = {}
    for name, levels in text_levels(schema).items():
        if name in table and not set(table[name].dropna()) <= set(levels):
            changed[name] = table[name].map(lambda cell, known=levels: _unsafe(cell, known))
    large = [str(name) for name in table if _may_have_lost_digits(table[name])]
    if large:
        texts = pd.read_csv(path, encoding="utf-8-sig", dtype=str, usecols=large)
        changed |= {name: _whole(table[name], texts[name]) for name in large}
    return table.assign(**changed) if changed else table


def read_cell(text: str, levels: Iterable[str] = ()) -> str | None:
    """Return the text of a cell, without what made it safe; None if the cell is missing.

    levels: of a column whose cells are texts.

    >>> read_cell("NA"), read_cell("NA", ["NA", "cat"]), read_cell("'=x", ["=x"])
    (None, 'NA', '=x')
    """
    return None if text in _MISSING and text not in levels else _unsafe(text, levels)


def text_levels(schema: Schema | None) -> dict[str, tuple[str, ...]]:
    """Return the levels of each column of a file whose cells are texts.

    >>> from genrecourse import Schema
    >>> text_levels(Schema.infer(pd.DataFrame({"pet": ["dog", "cat"]})))["pet"]
    ('cat', 'dog')
    """
    texts = {
        feature.name: tuple(map(str, feature.categories))
        for feature in schema or ()
        if feature.categories and all(isinstance(level, str) for level in feature.categories)
    }
    return {f"{AFTER}{name}": levels for name, levels in texts.items()} | texts


def _unsafe(cell: Any, levels: Iterable[str]) -> Any:
    """Return a cell without the apostrophe that made it safe, if it then is a level."""
    is_safe = isinstance(cell, str) and cell not in levels and cell[:1] == "'"
    return cell[1:] if is_safe and cell[1:] in levels else cell


def _may_have_lost_digits(column: pd.Series) -> bool:
    """Return whether a missing cell made whole numbers floats that are too large for it."""
    if column.dtype != np.float64 or not column.isna().any():
        return False
    values = column.dropna().to_numpy()
    return len(values) > 0 and bool((np.abs(values) >= EXACT).any())


def _whole(column: pd.Series, texts: pd.Series) -> pd.Series:
    """Return the whole numbers in texts, or the column if they are none, or too large."""
    whole = texts.dropna()
    if not whole.str.fullmatch(r"[+-]?\d{1,18}").all():
        return column
    cells = [None if pd.isna(text) else int(text) for text in texts]
    return pd.Series(pd.array(cells, dtype="Int64"), index=texts.index)
