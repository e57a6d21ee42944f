"""Long tables: which rows are held, that they show what the whole table shows, and bad sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genrecourse.errors import UserError
from genrecourse.table import large_tables
from genrecourse.table import witnesses as shown
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.large_tables import hold, is_in_batches, is_long, row_keys
from genrecourse.table.schema import Schema
from genrecourse.table.witnesses import joined, witnesses
from tests.support.random_tables import reproducible


def cut(X: pd.DataFrame, sizes: list[int]) -> list[pd.DataFrame]:
    """Return the rows in batches of these sizes, over and over."""
    found, start, i = [], 0, 0
    while start < len(X):
        found.append(X.iloc[start : start + sizes[i % len(sizes)]])
        start, i = start + len(found[-1]), i + 1
    return found


@st.composite
def tables(draw: Callable[..., Any]) -> pd.DataFrame:
    """Return a table with numbers of any decimals, gaps, levels and an ordered category."""
    n = draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    gap = rng.random(n) < draw(st.sampled_from([0.0, 0.2]))
    few = np.where(rng.random(n) < 0.2, rng.normal(0, 9, n).round(draw(st.integers(0, 8))), 1.0)
    fine = np.where(rng.random(n) < 0.3, rng.integers(-100, 100, n), few)  # the ends are whole
    text = pd.Series(rng.choice(["b", "a", "zz", "c"], n))
    sizes = pd.CategoricalDtype(["S", "M", "L"], ordered=True)
    return pd.DataFrame(
        {
            "fine": np.where(gap & (np.arange(n) > 0), np.nan, fine),
            "single": rng.normal(0, 9, n).round(draw(st.integers(0, 3))).astype(np.float32),
            "whole": rng.integers(-5, 5, n),
            "flag": rng.random(n) < 0.5,
            "text": text.where(~gap | (np.arange(n) == 0), None),
            "size": pd.Categorical(rng.choice(["L", "S", "M"], n), dtype=sizes),
        }
    )


def facts(X: pd.DataFrame) -> tuple[Schema, list[Any]]:
    schema = Schema.infer(X)
    return schema, TableEncoder(schema).fit(X).blocks


# ---- witnesses ---------------------------------------------------------------------------------


@given(X=tables(), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4))
@reproducible(60)
def test_witnesses_show_what_the_whole_table_shows(X: pd.DataFrame, sizes: list[int]) -> None:
    some = X.iloc[witnesses(X)]
    assert facts(some) == facts(X)
    by_batch = joined([batch.iloc[witnesses(batch)] for batch in cut(X, sizes)])
    assert facts(by_batch.iloc[witnesses(by_batch)]) == facts(X)


def test_a_column_of_ids_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "MOST_LEVELS", 3)
    batches = [pd.DataFrame({"who": [f"p{i}"]}) for i in range(4)]
    with pytest.raises(UserError, match=r"'who' has more than 3 different values .*such as 'p0'"):
        hold(batches, seed=0)


def test_another_order_of_categories_is_refused() -> None:
    low, high = (pd.CategoricalDtype(c, ordered=True) for c in (["S", "L"], ["L", "S"]))
    batches = [pd.DataFrame({"size": pd.Series(["S"], dtype=kind)}) for kind in (low, high)]
    with pytest.raises(UserError, match="an order of categories, but not the same"):
        hold(batches, seed=0)


# ---- which rows are held -----------------------------------------------------------------------


@given(X=tables(), sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4))
@reproducible(40)
def test_the_held_rows_do_not_depend_on_the_batches(X: pd.DataFrame, sizes: list[int]) -> None:
    one, many = hold([X], 3, most=5), hold(cut(X, sizes), 3, most=5)
    pd.testing.assert_frame_equal(one.table, many.table)
    np.testing.assert_array_equal(one.rows, many.rows)
    keys = row_keys(np.arange(len(X)), 3)
    assert set(np.argsort(keys)[:5]) <= set(one.rows.tolist())
    assert set(one.rows.tolist()) == {*np.argsort(keys)[:5].tolist(), *witnesses(X).tolist()}
    assert facts(one.table) == facts(X)


def test_the_held_rows_do_not_depend_on_how_many_are_looked_at_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = pd.DataFrame({"age": np.arange(500) % 61})
    found = []
    for chunk in (7, 100, 1000):
        monkeypatch.setattr(large_tables, "CHUNK", chunk)
        found.append(hold(cut(X, [13, 90]), 0, most=50).rows)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_every_row_has_the_same_chance() -> None:
    taken = np.zeros(40)
    for seed in range(600):
        taken[np.argsort(row_keys(np.arange(40), seed))[:10]] += 1
    expected = 600 / 4
    assert np.sum((taken - expected) ** 2 / (expected * 0.75)) < 80  # chi-square, 39 degrees


def test_the_other_rows_are_those_that_are_not_held() -> None:
    X = pd.DataFrame({"age": range(100), "job": ["cook", "nurse"] * 50})
    held = hold(cut(X, [9]), 0, most=10)
    parts = list(held.others())
    whole = pd.concat([part for part, _, _ in parts])
    pd.testing.assert_frame_equal(whole, X, check_index_type=False)
    is_new = np.concatenate([new for _, _, new in parts])
    assert sorted([*np.flatnonzero(is_new), *held.rows]) == list(range(100))
    keys = np.concatenate([keys for _, keys, _ in parts])
    np.testing.assert_array_equal(keys, row_keys(np.arange(100), 0))


# ---- sources -----------------------------------------------------------------------------------


def test_parquet_gives_the_table_that_was_written(tmp_path: Path) -> None:
    X = pd.DataFrame(
        {
            "debt": pd.array([1, None, 3, 4], dtype="Int64"),
            "income": [1.5, np.nan, 2.0, 3.0],
            "job": pd.Categorical(["cook", "nurse", "cook", "cook"]),
            "town": ["Bonn", None, "Ulm", "Ulm"],
            "owner": [True, False, True, True],
        }
    )
    (tmp_path / "more").mkdir()
    X.iloc[:3].to_parquet(tmp_path / "a.parquet")
    X.iloc[3:].to_parquet(tmp_path / "more" / "b.parquet")
    (tmp_path / "_left.parquet").write_text("out")
    pd.testing.assert_frame_equal(hold(tmp_path, 0).table, X)
    X.to_parquet(tmp_path / "whole.parquet")
    read = hold(tmp_path / "whole.parquet", 0).table
    pd.testing.assert_frame_equal(read, pd.read_parquet(tmp_path / "whole.parquet"))
    assert hold(tmp_path, 0, columns=["job"]).table.columns.tolist() == ["job"]


def test_arrow_batches_are_tables_too() -> None:
    import pyarrow as pa

    X = pd.DataFrame({"age": [30, 41, 50]})
    pd.testing.assert_frame_equal(hold(pa.Table.from_pandas(X).to_batches(2), 0).table, X)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (iter([pd.DataFrame({"age": [1]})]), "can be read only once"),
        ([pd.DataFrame({"age": [1]}), pd.DataFrame({"agee": [1]})], r"batch 1 .* lacks .*'age'"),
        ([pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1], "b": [1]})], r"batch 1 .*further.*'b'"),
        (lambda: iter([{"age": 1}]), "batch 0 of the table is {'age': 1}"),
        (lambda: iter([]), "no rows"),
        (lambda seed: iter([]), "must need no argument: missing a required argument: 'seed'"),
        ("nowhere.parquet", "there is no file or folder nowhere.parquet"),
    ],
)
def test_a_bad_source_is_explained(source: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        hold(source, 0)


def test_a_table_that_changes_between_two_readings_is_refused() -> None:
    sizes = iter([30, 20])

    def batches() -> Iterator[pd.DataFrame]:
        return iter([pd.DataFrame({"age": range(next(sizes))})])

    held = hold(batches, 0, most=5)
    with pytest.raises(UserError, match="had 30 rows when it was read first and 20"):
        list(held.others())


def test_what_is_in_batches() -> None:
    X = pd.DataFrame({"age": [1]})
    for whole in (X, X["age"], np.zeros((2, 2)), {"age": [1]}, [[1, 2]], [1], None, 7, list):
        assert not is_in_batches(whole)
    for parts in ("people", Path("people"), [X, X], lambda: iter([X]), iter([X])):
        assert is_in_batches(parts)


def test_what_is_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pd.DataFrame({"age": range(5)}).to_parquet(tmp_path / "a.parquet")
    assert is_long(tmp_path)
    assert not is_long(tmp_path / "a.parquet")
    monkeypatch.setattr(large_tables, "MOST_HELD", 4)
    assert is_long(tmp_path / "a.parquet")
