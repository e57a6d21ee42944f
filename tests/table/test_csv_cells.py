"""CSV and Parquet files are read back to the values that were written, however odd these are."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pandas._libs.parsers import STR_NA_VALUES

from genrecourse import Schema
from genrecourse.table.csv_cells import MISSING
from genrecourse.table.table_files import read_table, write_table

ODD_TEXTS = [
    *("07", "7", "7.0", "1e3", "-1", "+1", "True", "NA", "None", "", "nan", "null", "N/A", "inf"),
    *("a\nb", "a\rb", "a\r\nb", "\r", "\n", 'say "x"', "a,b", "a;b", " a ", "\ttab", "ü€", "😀"),
    *("=cmd()", "=1+1", "@a", "-x", "+x", "'a", "'", "'=x", "''=x", "2020-01-01", "0x1F", "#N/A"),
]
numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([-0.0, 0.1 + 0.2, 5e-324, 1.7976931348623157e308, 2.0**53 + 2, 1 / 3]),
)
texts = st.one_of(
    st.sampled_from(ODD_TEXTS),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
)


def same(a: Any, b: Any) -> bool:
    """Whether two cells are the same value, also their sign of zero and their missing."""
    if pd.isna(a) or pd.isna(b):
        return bool(pd.isna(a) and pd.isna(b))
    if isinstance(a, str) or isinstance(b, str):
        return type(a) is type(b) and a == b
    return a == b and np.signbit(a) == np.signbit(b)


def different(before: pd.DataFrame, after: pd.DataFrame) -> list[tuple[Any, ...]]:
    assert list(before.columns) == list(after.columns)
    assert len(before) == len(after)
    return [
        (name, a, b)
        for name in before
        for a, b in zip(before[name].tolist(), after[name].tolist(), strict=True)
        if not same(a, b)
    ]


def table_of(columns: dict[str, list[Any]]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(cells) for name, cells in columns.items()})


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_table_is_read_back_as_it_was(tmp_path: Path, ending: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(3, 8))
    some, many = st.lists(texts, min_size=n, max_size=n), st.lists(numbers, min_size=n, max_size=n)
    gaps = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    cells, values = data.draw(some), data.draw(many)
    whole = data.draw(st.lists(st.integers(-(2**62), 2**62), min_size=n, max_size=n))
    X = table_of({"text": data.draw(some), "number": values, "whole": whole})
    X["gap"] = [None if gap else cell for gap, cell in zip(gaps, cells, strict=True)]
    X["few"] = [np.nan if gap else value for gap, value in zip(gaps, values, strict=True)]
    X["flag"], X["two"] = gaps, ["p", "q"] * (n // 2) + ["p"] * (n % 2)
    levels = {
        name: tuple(sorted({cell for cell in X[name] if isinstance(cell, str)}))
        for name in ("text", "gap", "two")
    }
    schema = Schema(
        features=[
            {"name": name, "kind": "category", "categories": known}
            for name, known in levels.items()
            if len(known) > 1
        ]
    )
    X = X[[name for name in X if len(levels.get(name, "two")) > 1]]
    path = tmp_path / f"table{ending}"
    write_table(X, path)
    assert not different(X, read_table(path, schema))


def test_a_column_with_every_odd_text_and_gaps() -> None:
    """Nothing is left to chance: all of them, beside a missing cell each."""
    for text in ODD_TEXTS:
        X = pd.DataFrame({"a": [text, None, "x", "other"], "b": [1, 2, 3, 4]})
        schema = Schema.infer(X)
        path = Path("odd.csv")
        write_table(X, path)
        found = different(X, read_table(path, schema))
        path.unlink()
        assert not found, text


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_numbers_keep_their_last_digit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "double": rng.lognormal(0, 20, 5000),
            "single": rng.normal(size=5000).astype("float32"),
            "large": rng.integers(2**53, 2**60, 5000),
            "large with gaps": pd.array([2**53 + 1, None, -(2**55) - 3, 4, 5] * 1000, "Int64"),
            "objects": pd.Series([0.1 + 0.2, 3, -0.0, 1 / 3, 7.0] * 1000, dtype=object),
        }
    )
    write_table(X, tmp_path / "t.csv")
    back = read_table(tmp_path / "t.csv")
    assert not different(X, back)
    assert str(back["large"].dtype) == "int64"


def test_a_level_is_not_a_missing_value_and_the_other_way_round(tmp_path: Path) -> None:
    X = pd.DataFrame({"code": ["NA", None, "07", ""], "other": ["NA", "x", "y", None]})
    schema = Schema(
        features=[
            {"name": "code", "kind": "category", "categories": ("", "07", "NA")},
            {"name": "other", "kind": "category", "categories": ("x", "y"), "missing": True},
        ]
    )
    write_table(X, tmp_path / "t.csv")
    back = read_table(tmp_path / "t.csv", schema)
    assert back["code"].tolist()[::2] == ["NA", "07"]
    assert back["code"].isna().tolist() == [False, True, False, False]
    assert back["code"].tolist()[3] == ""
    assert back["other"].isna().tolist() == [True, False, False, True]  # no level is called NA


def test_the_list_of_missing_values_is_that_of_pandas() -> None:
    assert set(MISSING) == set(STR_NA_VALUES)


# ---- formulas -----------------------------------------------------------------------------------

DANGEROUS = ["=cmd()", "+x", "-x", "@a", "\tz", "\ry", "\nz", "=1", "'=x", "-1-1", "+1+cmd()"]


def raw(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_no_cell_begins_a_formula_if_cells_are_to_be_safe(tmp_path: Path) -> None:
    X = pd.DataFrame({"=a": DANGEROUS, "n": np.arange(len(DANGEROUS)) - 5.5})
    X["sign"] = ["-1", "+2.5", "-1e3", "x", *["y"] * (len(X) - 4)]
    X["level"] = pd.Categorical(X["=a"])
    write_table(X, tmp_path / "t.csv", safe_cells=True)
    header, *lines = raw(tmp_path / "t.csv")
    assert header == ["'=a", "n", "sign", "level"]
    for line, text, number, sign in zip(lines, X["=a"], X["n"], X["sign"], strict=True):
        assert line[0] == line[3] == f"'{text}"
        assert float(line[1]) == number  # negative numbers stay numbers
        assert line[2] == sign
    write_table(X, tmp_path / "t.csv")
    assert raw(tmp_path / "t.csv")[1][0] == "=cmd()"  # only on request


def test_safe_cells_are_read_back(tmp_path: Path) -> None:
    X = pd.DataFrame({"a": [text for text in DANGEROUS if text != "'=x"]})
    schema = Schema.infer(X)
    write_table(X, tmp_path / "t.csv", safe_cells=True)
    assert not different(X, read_table(tmp_path / "t.csv", schema))
