"""`recourse` warns of rows that h still rejects, and names them on request."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse import NearestNeighbour, Schema, UserError
from genrecourse.errors import StillRejected, rejections_expected
from genrecourse.evaluation.checks import example_score, fit_quietly, make_example
from genrecourse.methods.base import Method

EXAMPLE = make_example(rows=120, people=30)


class HalfWay(Method):
    """Raises the income of every other person to 60, which h accepts; the others stay."""

    def _fit(self, rows: Any) -> None:
        pass

    def _recourse(self, Z: np.ndarray, noise: Any) -> np.ndarray:
        Z_plus = Z.copy()
        Z_plus[::2, 0] = 60 / 79
        return Z_plus


ROWS = pd.DataFrame({"income": range(80)})


class Asked:
    """h, and a count of the rows that it was asked about, call by call."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def __call__(self, X: pd.DataFrame) -> np.ndarray:
        self.rows.append(len(X))
        return X["income"].to_numpy() / 80


def half_way() -> tuple[HalfWay, Asked]:
    asked = Asked()
    method = HalfWay(asked, Schema.infer(ROWS)).fit(ROWS)
    asked.rows.clear()
    return method, asked


@pytest.mark.filterwarnings("default")
def test_it_says_how_many_of_how_many_and_what_to_do() -> None:
    method, asked = half_way()
    with pytest.warns(StillRejected) as caught:
        X_plus = method.recourse(ROWS.iloc[30:])  # 11 of 50 are rejected, 5 of them stay so
    (warning,) = caught
    assert str(warning.message) == (
        "HalfWay.recourse: h still rejects 5 of the 11 rows that it rejected before; `plans` shows "
        "only changes that h accepts, or why there are none, and recourse(X, status=True) says "
        "which rows these are"
    )
    assert warning.filename == __file__
    assert list(X_plus.columns) == ["income"]
    assert asked.rows == [50, 1]  # once about everybody, and about the one row that is new


@pytest.mark.filterwarnings("error")
def test_no_warning_without_a_reason() -> None:
    method, asked = half_way()
    method.recourse(ROWS.iloc[30:31])  # one person, who is accepted then
    method.recourse(ROWS.iloc[50:])  # people who are accepted already
    assert asked.rows == [1, 1, 30]
    with rejections_expected():
        method.recourse(ROWS)
    method.recourse(ROWS, status=True)


def test_status_is_the_one_of_assess() -> None:
    method, asked = half_way()
    X = ROWS.iloc[30:]
    found = method.recourse(X, status=True)
    assert asked.rows == [50, 50]
    assert list(found.columns) == ["income", "status"]
    assert found["status"].value_counts().to_dict() == {
        "already-accepted": 39, "ok": 6, "not-accepted": 5,
    }  # fmt: skip
    plain = found.drop(columns="status")
    assert plain.equals(method.recourse(X))
    assert found["status"].equals(method.assess(X, plain)["status"])


def test_status_with_rules_and_any_index() -> None:
    method = fit_quietly(NearestNeighbour(example_score, EXAMPLE.schema), EXAMPLE.X, EXAMPLE.y)
    twice = pd.concat([EXAMPLE.people, EXAMPLE.people.head(3)])  # an index with repeated labels
    for rules in (None, {"lock": ["income", "debt"]}):
        found = method.recourse(twice, status=True, rules=rules)
        plain = found.drop(columns="status")
        assert plain.equals(method.recourse(twice, rules=rules))
        assert found["status"].tolist() == method.assess(twice, plain, rules)["status"].tolist()
    assert "not-accepted" in set(
        method.recourse(twice, status=True, rules={"max_changes": 0})["status"]
    )


def test_a_table_with_a_column_status_has_no_room() -> None:
    X = ROWS.rename(columns={"income": "status"})
    method = NearestNeighbour(lambda X: X["status"].to_numpy() / 80, Schema.infer(X)).fit(X)
    assert list(method.recourse(X).columns) == ["status"]
    with pytest.raises(UserError, match="has a column 'status' of its own"):
        method.recourse(X, status=True)


@pytest.mark.filterwarnings("error")
def test_silence_covers_this_warning_only() -> None:
    with rejections_expected():
        warnings.warn("rows", StillRejected, stacklevel=1)
        with pytest.raises(UserWarning, match="another"):
            warnings.warn("another", UserWarning, stacklevel=1)
