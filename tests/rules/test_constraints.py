"""Rules: every kind of rule by hand, and against a second reading in original units."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse.rules.book import RuleBook
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.schema import Feature, Schema

NAN = np.nan
LEVELS = ("low", "mid", "high")


def rules_of(*features: Feature) -> tuple[RuleBook, TableEncoder]:
    """Rules for numbers that run from 10 to 20 in the training rows (f = (x - 10) / 10)."""
    columns = {
        f.name: [f.categories[0], f.categories[-1]] if f.is_category else [10.0, 20.0]
        for f in features
    }
    encoder = TableEncoder(Schema(features=features)).fit(pd.DataFrame(columns))
    return RuleBook.of_schema(encoder), encoder


def number(**fields: Any) -> Feature:
    return Feature(name="n", kind="number", **fields)


def grade(**fields: Any) -> Feature:
    return Feature(name="c", kind="category", categories=LEVELS, **fields)


def scaled(x: float) -> float:
    return (x - 10) / 10


def allowed(feature: Feature, a: float, b: float) -> bool:
    """In original units for a number, in level indices for a category."""
    rules, _ = rules_of(feature)
    if not feature.is_category:
        a, b = scaled(a), scaled(b)
    return bool(rules.allowed(0, a, b))


# ---- allowed, by hand -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "a", "b", "answer"),
    [
        # no rule: anything but a move to missing
        ({}, 12, 99, True),
        ({}, 12, -99, True),
        ({"missing": True}, 12, NAN, False),
        ({"missing": True}, NAN, 12, True),
        ({"missing": True}, NAN, NAN, True),
        # immutable
        ({"role": "immutable"}, 12, 12, True),
        ({"role": "immutable"}, 12, 12.001, False),
        ({"role": "immutable", "missing": True}, NAN, NAN, True),
        ({"role": "immutable", "missing": True}, NAN, 12, False),
        ({"role": "immutable", "missing": True}, 12, NAN, False),
        # direction
        ({"direction": "increase"}, 12, 12, True),
        ({"direction": "increase"}, 12, 12.001, True),
        ({"direction": "increase"}, 12, 11.999, False),
        ({"direction": "increase", "missing": True}, NAN, 12, False),
        ({"direction": "increase", "missing": True}, NAN, NAN, True),
        ({"direction": "increase", "missing": True}, 12, NAN, False),
        ({"direction": "decrease"}, 12, 12, True),
        ({"direction": "decrease"}, 12, 11.999, True),
        ({"direction": "decrease"}, 12, 12.001, False),
        ({"direction": "decrease", "missing": True}, NAN, 12, False),
        # range: where a changed number may lie
        ({"range": (11, 19)}, 15, 11, True),
        ({"range": (11, 19)}, 15, 19, True),
        ({"range": (11, 19)}, 15, 10.999, False),
        ({"range": (11, 19)}, 15, 19.001, False),
        ({"range": (11, 19)}, 5, 5, True),  # unchanged is always allowed
        ({"range": (11, 19)}, 5, 6, False),
        ({"range": (11, 19)}, 5, 12, True),
        ({"range": (11, 19), "missing": True}, NAN, 12, True),
        ({"range": (11, 19), "missing": True}, NAN, 25, False),
        # step: the boundary itself is allowed
        ({"max_step": 2.5}, 12, 14.5, True),
        ({"max_step": 2.5}, 12, 9.5, True),
        ({"max_step": 2.5}, 12, 14.501, False),
        ({"max_step": 2.5}, 12, 9.499, False),
        ({"max_step": 0.1}, 10.7, 10.8, True),  # a little more than 0.1 in floating point
        ({"max_step": 0.3}, 11.1, 11.4, True),
        ({"max_step": 2.5, "missing": True}, NAN, 12, False),
        ({"max_step": 2.5, "missing": True}, NAN, NAN, True),
        # several at once: each must hold
        ({"direction": "increase", "max_step": 2, "range": (10, 13)}, 12, 13, True),
        ({"direction": "increase", "max_step": 2, "range": (10, 13)}, 12, 13.5, False),
        ({"direction": "increase", "max_step": 2, "range": (10, 20)}, 12, 14.5, False),
        ({"direction": "increase", "max_step": 2, "range": (10, 20)}, 12, 11, False),
    ],
)
def test_numbers(fields: dict[str, Any], a: float, b: float, answer: bool) -> None:
    assert allowed(number(**fields), a, b) is answer


@pytest.mark.parametrize(
    ("fields", "a", "b", "answer"),
    [
        ({}, 0, 2, True),
        ({}, 2, 0, True),
        ({"missing": True}, 0, NAN, False),
        ({"missing": True}, NAN, 0, True),
        ({"missing": True}, NAN, NAN, True),
        ({"role": "immutable"}, 1, 1, True),
        ({"role": "immutable"}, 1, 2, False),
        ({"ordered": True}, 2, 0, True),  # an order alone is no rule
        ({"ordered": True, "direction": "increase"}, 0, 2, True),
        ({"ordered": True, "direction": "increase"}, 1, 1, True),
        ({"ordered": True, "direction": "increase"}, 1, 0, False),
        ({"ordered": True, "direction": "decrease"}, 2, 1, True),
        ({"ordered": True, "direction": "decrease"}, 1, 2, False),
        ({"ordered": True, "direction": "increase", "missing": True}, NAN, 2, False),
        ({"ordered": True, "direction": "decrease", "missing": True}, NAN, NAN, True),
    ],
)
def test_categories(fields: dict[str, Any], a: float, b: float, answer: bool) -> None:
    assert allowed(grade(**fields), a, b) is answer


def test_allowed_broadcasts() -> None:
    rules, _ = rules_of(number(direction="increase", missing=True))
    a, b = np.array([[0.0], [0.5], [NAN]]), np.array([[0.0, 0.5, 1.0, NAN]])
    assert rules.allowed(0, a, b).tolist() == [
        [True, True, True, False],
        [False, True, True, False],
        [False, False, False, True],
    ]


@pytest.mark.parametrize("dtype", ["float32", "Float32", "float64"])
def test_a_rule_is_not_broken_by_the_rounding_of_single_precision(dtype: str) -> None:
    # as float32 these are 0.69999999, 0.89999998 and 1.10000002: just outside, just too far
    X = pd.DataFrame({"n": pd.Series([0.7, 0.9, 1.1, 1.5], dtype=dtype)})
    feature = number(range=(0.7, 1.1), max_step=0.2)
    encoder = TableEncoder(Schema(features=(feature,))).fit(X)
    low, middle, high, beyond = encoder.features(X)[:, 0]
    rules = RuleBook.of_schema(encoder)
    assert rules.allowed(0, middle, [low, high]).all()
    assert rules.allowed(0, [low, high], middle).all()
    assert not rules.allowed(0, high, beyond)
    assert not rules.allowed(0, low, high)
    assert not rules.allowed(0, middle, [low - 1e-5, high + 1e-5]).any()
    moves = np.array([[middle], [middle]]), np.array([[low], [high]])
    assert not np.any(list(rules.violations(*moves).values()))


# ---- whole rows -------------------------------------------------------------------------------

PERSON = (
    Feature(name="income", kind="number", range=(10, 30), max_step=5, missing=True),
    Feature(name="age", kind="number", direction="increase"),
    Feature(name="debt", kind="number", direction="decrease"),
    Feature(name="race", kind="category", categories=("a", "b", "c"), role="immutable"),
    Feature(name="school", kind="category", categories=LEVELS, ordered=True, direction="increase"),
    Feature(name="job", kind="category", categories=("x", "y", "z"), missing=True),
)
KINDS = ("immutable", "direction", "range", "step", "missing", "category")


def rows(*values: tuple[float, ...], numbers: int = 3) -> np.ndarray:
    """Rows of F from original units and level indices; the first `numbers` features are numbers."""
    F = np.array(values, dtype=float)
    F[:, :numbers] = (F[:, :numbers] - 10) / 10
    return F


X0 = (12, 15, 15, 1, 1, 0)
CASES: dict[str, tuple[tuple[float, ...], tuple[float, ...], dict[str, list[str]]]] = {
    "unchanged": (X0, X0, {}),
    "all that may change": (X0, (17, 16, 14, 1, 2, 2), {}),
    "too far": (X0, (17.5, 15, 15, 1, 1, 0), {"step": ["income"]}),
    "out of range": ((11, 15, 15, 1, 1, 0), (9, 15, 15, 1, 1, 0), {"range": ["income"]}),
    "younger": (X0, (12, 14, 15, 1, 1, 0), {"direction": ["age"]}),
    "more debt": (X0, (12, 15, 16, 1, 1, 0), {"direction": ["debt"]}),
    "another race": (X0, (12, 15, 15, 2, 1, 0), {"immutable": ["race"]}),
    "less school": (X0, (12, 15, 15, 1, 0, 0), {"direction": ["school"]}),
    "job forgotten": (X0, (12, 15, 15, 1, 1, NAN), {"missing": ["job"]}),
    "income forgotten": (
        X0,
        (NAN, 15, 15, 1, 1, 0),
        {"missing": ["income"], "step": ["income"]},
    ),
    "income from nothing": (
        (NAN, 15, 15, 1, 1, 0),
        (12, 15, 15, 1, 1, 0),
        {"step": ["income"]},  # no step from nothing is known to be small
    ),
    "job from nothing": ((12, 15, 15, 1, 1, NAN), (12, 15, 15, 1, 1, 2), {}),
    "both missing": ((NAN, 15, 15, 1, 1, NAN), (NAN, 15, 15, 1, 1, NAN), {}),
    "beyond its own rules": ((99, 15, 15, 1, 1, 0), (99, 16, 15, 1, 1, 0), {}),
    "several": (
        X0,
        (40, 14, 16, 0, 0, NAN),
        {
            "range": ["income"],
            "step": ["income"],
            "direction": ["age", "debt", "school"],
            "immutable": ["race"],
            "missing": ["job"],
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_violations_and_feasible_by_hand(case: str) -> None:
    before, after, expected = CASES[case]
    rules, encoder = rules_of(*PERSON)
    F, F_plus = rows(before), rows(after)
    broken = rules.violations(F, F_plus)
    assert tuple(broken) == KINDS
    names = np.array(encoder.schema.names)
    found = {kind: names[cells[0]].tolist() for kind, cells in broken.items() if cells.any()}
    assert found == expected
    assert rules.feasible(F, F_plus).tolist() == [not expected]


@pytest.mark.parametrize("case", CASES)
def test_revert_puts_back_what_breaks_a_rule_and_nothing_else(case: str) -> None:
    before, after, expected = CASES[case]
    rules, encoder = rules_of(*PERSON)
    F, F_plus = rows(before), rows(after)
    given = F_plus.copy()
    kept = rules.revert(F, F_plus)
    bad = {name for names in expected.values() for name in names}
    for j, name in enumerate(encoder.schema.names):
        np.testing.assert_array_equal(kept[0, j], F[0, j] if name in bad else F_plus[0, j])
    assert rules.feasible(F, kept).all()
    np.testing.assert_array_equal(F_plus, given)  # the argument is left alone


def test_a_level_that_does_not_exist_is_a_violation() -> None:
    rules, _ = rules_of(*PERSON)
    F, F_plus = rows(X0), rows((12, 15, 15, 1, 1, 3))
    assert rules.violations(F, F_plus)["category"].tolist() == [[False] * 5 + [True]]


def test_feasible_of_many_rows_and_of_blocks() -> None:
    rules, _ = rules_of(*PERSON)
    F = rows(*(case[0] for case in CASES.values()))
    F_plus = rows(*(case[1] for case in CASES.values()))
    expected = [not case[2] for case in CASES.values()]
    assert rules.feasible(F, F_plus).tolist() == expected
    block = rules.feasible(F[:, None, :], F_plus[None, :, :])
    assert block.shape == (len(CASES), len(CASES))
    assert np.diag(block).tolist() == expected


# ---- clip -------------------------------------------------------------------------------------


def test_clip_by_hand() -> None:
    rules, _ = rules_of(
        number(max_step=2.5, missing=True),
        Feature(name="free", kind="number"),
        Feature(name="c", kind="category", categories=LEVELS),
    )
    F = rows((12, 12, 0), (12, 12, 0), (12, 12, 0), (NAN, 12, 0), (12, 12, 0), numbers=2)
    F_plus = rows((19, 99, 2), (2, -99, 1), (13, 12, 0), (19, 12, 0), (NAN, 12, 0), numbers=2)
    expected = rows((14.5, 99, 2), (9.5, -99, 1), (13, 12, 0), (19, 12, 0), (NAN, 12, 0), numbers=2)
    given = F_plus.copy()
    np.testing.assert_allclose(rules.clip(F, F_plus), expected, atol=1e-12)
    np.testing.assert_array_equal(F_plus, given)
    assert rules.allowed(0, F[:3, 0], rules.clip(F, F_plus)[:3, 0]).all()


# ---- a second reading, in original units --------------------------------------------------------


def every_rule() -> Iterator[Feature]:
    for role, direction, ends, step, missing in product(
        ("mutable", "immutable"),
        ("any", "increase", "decrease"),
        (None, (11.0, 19.0), (8.0, 25.0)),
        (None, 2.0),
        (False, True),
    ):
        yield number(role=role, direction=direction, range=ends, max_step=step, missing=missing)
    for role, direction, missing in product(
        ("mutable", "immutable"), ("any", "increase", "decrease"), (False, True)
    ):
        yield grade(role=role, direction=direction, missing=missing, ordered=True)


def may_go(feature: Feature, a: float, b: float) -> bool:
    if a == b or (np.isnan(a) and np.isnan(b)):
        return True
    if feature.role == "immutable" or np.isnan(b):
        return False
    if feature.range is not None and not feature.range[0] <= b <= feature.range[1]:
        return False
    needs_start = feature.direction != "any" or feature.max_step is not None
    if np.isnan(a):
        return not needs_start
    if feature.max_step is not None and abs(b - a) > feature.max_step:
        return False
    return {"any": True, "increase": b > a, "decrease": b < a}[feature.direction]


@pytest.mark.parametrize("feature", list(every_rule()), ids=lambda f: f.kind)
def test_every_combination_of_rules(feature: Feature) -> None:
    rules, _ = rules_of(feature)
    values = [0.0, 1.0, 2.0] if feature.is_category else [5.0, 8.0, 10.0, 11.0, 13.0, 19.0, 30.0]
    values += [NAN] if feature.missing else []
    pairs = np.array(list(product(values, values)))
    F, F_plus = pairs[:, :1].copy(), pairs[:, 1:].copy()
    if not feature.is_category:
        F, F_plus = (F - 10) / 10, (F_plus - 10) / 10
    expected = [may_go(feature, a, b) for a, b in pairs]
    assert rules.allowed(0, F[:, 0], F_plus[:, 0]).tolist() == expected
    assert rules.feasible(F, F_plus).tolist() == expected
    broken = np.any(list(rules.violations(F, F_plus).values()), axis=0)[:, 0]
    assert (~broken).tolist() == expected  # a violation is what is not feasible
    if rules.is_free(0):
        training = np.isin(pairs, [0.0, 1.0, 2.0] if feature.is_category else [10, 11, 13, 19])
        assert np.array(expected)[training.all(axis=1)].all()


@pytest.mark.parametrize(
    ("feature", "free"),
    [
        (number(), True),
        (number(range=(10, 20)), True),
        (number(range=(9, 21)), True),
        (number(range=(10.5, 20)), False),
        (number(range=(10, 19.5)), False),
        (number(missing=True), False),
        (number(role="immutable"), False),
        (number(direction="increase"), False),
        (number(max_step=100), False),
        (grade(), True),
        (grade(missing=True), False),
        (grade(role="immutable"), False),
        (grade(ordered=True, direction="decrease"), False),
    ],
)
def test_is_free(feature: Feature, free: bool) -> None:
    assert rules_of(feature)[0].is_free(0) == free


def test_immutable_is_listed() -> None:
    assert rules_of(*PERSON)[0].immutable.tolist() == [False, False, False, True, False, False]


def test_a_range_that_ends_just_beside_a_whole_number_does_not_hold_it() -> None:
    """By less than the slack of a check, on a scale of a thousand."""
    X = pd.DataFrame({"a": np.arange(-900, 400, 100, dtype=np.int16)})
    schema = Schema.infer(X).with_feature("a", range=(-4.999999, 395.0), decimals=0)
    encoder = TableEncoder(schema).fit(X)
    scaled = (np.array([-5.0, -4.0]) - encoder.blocks[0].low) / encoder.blocks[0].span
    assert RuleBook.of_schema(encoder).allowed(0, encoder.features(X)[:1, 0], scaled).tolist() == [
        False,
        True,
    ]
    low = encoder.decode(encoder.project(np.zeros((1, 1))), like=X.iloc[[5]])["a"]
    assert low.tolist() == [-4]
    assert low.dtype == np.int16
