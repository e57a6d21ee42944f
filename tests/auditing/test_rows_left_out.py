"""An audit leaves out rows that cannot be read, says so for each group, and counts the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from genrecourse import NearestNeighbour, audit
from genrecourse.errors import UserError
from tests.support.bad_cells import LOANS, nearest, spoilt

SIDES = pd.Series(["a", "b"], name="side").loc[np.arange(len(LOANS)) % 2].to_numpy()
PEOPLE = LOANS.assign(side=SIDES, year=2000 + np.arange(len(LOANS)) % 2)
BAD = (4, 6, 9)


@pytest.fixture(scope="module")
def method() -> NearestNeighbour:
    return nearest()


@pytest.fixture(scope="module")
def bad() -> pd.DataFrame:
    table = spoilt(PEOPLE, 4, "income", "much")
    return spoilt(spoilt(table, 6, "job", "pilots"), 9, "debt", np.inf)


def test_an_audit_is_of_the_rows_that_can_be_read(
    method: NearestNeighbour, bad: pd.DataFrame
) -> None:
    found = audit(method, bad, ["side"], n_boot=100, least=5)
    without = audit(method, PEOPLE.drop(index=list(BAD)), ["side"], n_boot=100, least=5)
    assert found.numbers == without.numbers
    assert found.differences == without.differences
    assert found.unreadable == {"everyone": (3, 160), "side = a": (2, 80), "side = b": (1, 80)}
    assert found.faults == {"wrong-type": 1, "unseen-category": 1, "not-finite": 1}
    remark = found.remarks[0]
    for part in ("3 of 160 rows cannot be read", "side = a: 2 of 80; side = b: 1 of 80"):
        assert part in remark
        assert part in found.to_text()
        assert part in found.to_html()
    assert "every share is a share of rows that can be read" in remark
    assert found.to_dict()["unreadable"]["side = a"] == {"rows": 80, "unreadable": 2}
    assert without.unreadable == {}
    assert "read" not in " ".join(without.remarks)


def test_groups_of_numbers_and_of_a_bad_column(method: NearestNeighbour, bad: pd.DataFrame) -> None:
    found = audit(method, bad, ["year", "job"], n_boot=100, least=5)
    assert found.unreadable["year = 2000"] == (2, 80)
    assert found.unreadable["everyone"] == (3, 160)
    jobs = [n for label, (n, _) in found.unreadable.items() if label.startswith("job = ")]
    assert sum(jobs) == 2  # nobody is in the group of a job that does not exist


def test_a_strict_audit_and_one_of_nobody(method: NearestNeighbour, bad: pd.DataFrame) -> None:
    with pytest.raises(UserError, match="column 'income'"):
        audit(method, bad, ["side"], errors="raise")
    with pytest.raises(UserError, match=r"none of 160 rows can be read \(first: This row"):
        audit(method, PEOPLE.assign(income="much"), ["side"])
    with pytest.raises(UserError, match="the table has no rows"):
        audit(method, PEOPLE.head(0), ["side"])
    with pytest.raises(UserError, match="errors is 'skip'"):
        audit(method, PEOPLE, ["side"], errors="skip")
