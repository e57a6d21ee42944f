"""Formulas of derived features: what they compute, and what they refuse to read."""

from __future__ import annotations

import numpy as np
import pytest

from genrecourse.errors import UserError
from genrecourse.table.formulas import parse_formula

VALUES = {"a": np.array([6.0, -2.0, np.nan]), "b": np.array([2.0, 0.0, 1.0]), "c-d": 3.0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a / b", [3.0, np.nan, np.nan]),
        ("a - b - 1", [3.0, -3.0, np.nan]),  # from the left
        ("a - (b - 1)", [5.0, -1.0, np.nan]),
        ("2 + a * b", [14.0, 2.0, np.nan]),
        ("-a * 1.5e1", [-90.0, 30.0, np.nan]),
        ('a * "c-d"', [18.0, -6.0, np.nan]),
        ("max(a, b) + min(a, `c-d`)", [9.0, -2.0, np.nan]),
        ("abs(a)", [6.0, 2.0, np.nan]),
        ("sqrt(a + 3)", [3.0, 1.0, np.nan]),
        ("log(b)", [np.log(2.0), np.nan, 0.0]),
    ],
)
def test_it_computes_and_what_it_cannot_compute_is_missing(
    text: str, expected: list[float]
) -> None:
    np.testing.assert_allclose(parse_formula(text)(VALUES), expected)


def test_it_knows_whose_values_it_needs() -> None:
    assert parse_formula('max(b, "c-d") / (b + a)').names == ("a", "b", "c-d")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "its end"),
        ("a +", "its end"),
        ("a b", "from 'b' on"),
        ("a ** b", "where '*' stands"),
        ("(a", "')' should stand"),
        ("1 + 1", "names no feature"),
        ("a.b", "cannot read '.b'"),
        ("min(a)", "takes 2"),
        ("__import__('os')", "no function '__import__'"),
        ("a if b else a", "from 'if' on"),
        ("(" * 40 + "a" + ")" * 40, "within each other"),
        ("a + " * 200 + "a", "characters"),
    ],
)
def test_what_it_cannot_read_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(UserError) as told:
        parse_formula(text)
    assert said in str(told.value)
