"""A bad cell in a file leaves the other cells of its column what they are without it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from genrecourse import Schema
from genrecourse.errors import UserError
from genrecourse.rules.problem import Problem
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.reading import faults_in, settled
from genrecourse.table.table_files import read_table
from tests.support.bad_cells import LOANS, loan_schema, nearest

HEADER = ",".join(LOANS.columns)
GOOD = ["12,0.1234567890123,5,cook,True,1,0,1", "90,1e-7,,nurse,False,2,1,0", "7,.5,3,,True,3,0,1"]


@pytest.fixture(scope="module")
def problem() -> Problem:
    return nearest().problem_


def from_file(folder: Path, lines: list[str]) -> pd.DataFrame:
    path = folder / "people.csv"
    path.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    return read_table(path, loan_schema(), may_be_empty=True)


@pytest.mark.parametrize(
    ("line", "column", "code"),
    [
        ("unknown,0.5,5,cook,True,1,0,1", "income", "wrong-type"),
        (",0.5,5,cook,True,1,0,1", "income", "missing"),
        ("99999999999999999999999,0.5,5,cook,True,1,0,1", "income", "too-large"),
        ("1e999,0.5,5,cook,True,1,0,1", "income", "not-finite"),
        ("inf,0.5,5,cook,True,1,0,1", "income", "not-finite"),
        ('"1,200",0.5,5,cook,True,1,0,1', "income", "wrong-type"),
        ("12,half,5,cook,True,1,0,1", "debt", "wrong-type"),
        ("12,0.5,many,cook,True,1,0,1", "savings", "wrong-type"),
        ("12,0.5,5,pilots,True,1,0,1", "job", "unseen-category"),
        ("12,0.5,5,cook,maybe,1,0,1", "owner", "unseen-category"),
        ("12,0.5,5,cook,,1,0,1", "owner", "missing"),
        ("12,0.5,5,cook,True,attic,0,1", "rooms", "unseen-category"),
        ("12,0.5,5,cook,True,9,0,1", "rooms", "unseen-category"),
        ("12,0.5,5,cook,True,,0,1", "rooms", "missing"),
        ("12,0.5,5,cook,True,1,1,1", "pet", "not-one-hot"),
        ("12,0.5,5,cook,True,1,one,0", "pet", "not-one-hot"),
    ],
)
def test_a_bad_line_of_a_file(
    problem: Problem, tmp_path: Path, line: str, column: str, code: str
) -> None:
    without = from_file(tmp_path, GOOD[:2])
    with_it = from_file(tmp_path, [GOOD[0], line, GOOD[1]])
    found = problem.read_each(with_it)
    assert {row: (f.column, f.code) for row, f in found.faults.items()} == {1: (column, code)}
    expected = problem.read_each(without)
    assert not expected.faults
    np.testing.assert_array_equal(found.people.F, expected.people.F)
    numbers = ["income", "debt", "savings", "owner", "rooms"]
    pd.testing.assert_frame_equal(
        found.X[numbers].reset_index(drop=True), expected.X[numbers].reset_index(drop=True)
    )
    with pytest.raises(UserError):
        problem.read_each(with_it, "raise")
    with pytest.raises(UserError):
        problem.read(with_it)


def test_every_line_of_a_file_is_bad(problem: Problem, tmp_path: Path) -> None:
    table = from_file(tmp_path, ["x,x,x,x,x,x,x,x"] * 3)
    assert len(problem.read_each(table).faults) == 3


def test_an_infinite_number_is_named_as_one(problem: Problem, tmp_path: Path) -> None:
    line = "inf,0.5,5,cook,True,1,0,1"
    for lines in ([line], [*GOOD[:2], line]):
        table = from_file(tmp_path, lines)
        with pytest.raises(UserError, match="column 'income' holds 1 infinite value"):
            problem.read(table)
        assert [f.code for f in problem.read_each(table).faults.values()] == ["not-finite"]


def test_a_file_with_nothing_but_its_header(problem: Problem, tmp_path: Path) -> None:
    table = from_file(tmp_path, [])
    found = problem.read_each(table)
    assert (len(table), len(found.rows), found.faults) == (0, 0, {})
    with pytest.raises(UserError, match="has a header but no rows"):
        read_table(tmp_path / "people.csv")


def test_a_clean_table_is_read_once(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = TableEncoder.features

    def counted(self: TableEncoder, *given: object, **options: bool) -> object:
        calls.append(1)
        return real(self, *given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(TableEncoder, "features", counted)
    problem.read_each(LOANS)
    assert len(calls) == 1


def test_a_row_has_its_first_fault_in_the_order_of_the_schema() -> None:
    bad = LOANS.head(3).assign(debt=np.inf, job="pilots", income=[1, 2, np.nan])
    assert [f.column for f in faults_in(loan_schema(), bad).values()] == ["debt", "debt", "income"]


def test_true_and_one_are_different_levels_wherever_they_stand() -> None:
    schema = Schema.infer(pd.DataFrame({"owner": [True, False]}))
    for cells in ([True, 1, False], [1, True, False]):
        found = faults_in(schema, pd.DataFrame({"owner": pd.Series(cells, dtype=object)}))
        assert [cells[row] is not True and cells[row] == 1 for row in found] == [True]


def test_columns_of_objects_without_a_number_stay_as_they_are() -> None:
    schema = Schema.infer(pd.DataFrame({"job": ["cook", "nurse"]}))
    X = pd.DataFrame({"job": pd.Series(["cook", "nurse"], dtype=object)})
    assert settled(schema, X, X)["job"].dtype == object
