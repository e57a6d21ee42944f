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
        ("", "expected a number or a feature, found its end"),
        ("a +", "expected a number or a feature, found its end"),
        ("a b", "starts at 'b'"),
        ("a ** b", "found '*'"),
        ("(a", "expected ')', found its end"),
        ("1 + 1", "names no feature"),
        ("a.b", "cannot read '.b'"),
        ("min(a)", "takes 2 arguments, not 1"),
        ("log(a, b)", "takes 1 argument, not 2"),
        ("__import__('os')", "no function '__import__'"),
        ("a if b else a", "starts at 'if'"),
        ("(" * 40 + "a" + ")" * 40, "are nested"),
        ("a + " * 200 + "a", "a formula has 801 characters; at most 300 are allowed"),
    ],
)
def test_what_it_cannot_read_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(UserError) as told:
        parse_formula(text)
    assert said in str(told.value)
