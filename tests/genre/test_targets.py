"""D+ is cleaned by a judge: who stays, and which groups are left alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from genrecourse.evaluation.example_tables import rules_and_rows
from genrecourse.genre.targets import MIN_TARGETS, clean
from genrecourse.rules.problem import TrainingRows

FOUND = np.arange(0, 60, 2)  # every second of 60 rows is a target


def kept(probability: Any, inlier: Any = True, women: int = 0) -> list[int]:
    """The targets that stay, if the judge says this of each; so many of them are women."""
    sex = np.where(np.isin(np.arange(60), FOUND[:women]), "f", "m")
    rules, F = rules_and_rows({"sex": ["f", *sex], "income": list(range(61))}, "sex")
    F = F[1:]  # both sexes are levels, even if all targets are men
    rows = TrainingRows(F, F, np.ones(60, dtype=bool), np.ones(60))

    def judge(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        np.testing.assert_array_equal(Z, F[FOUND])
        n = len(FOUND)
        return np.broadcast_to(probability, n), np.broadcast_to(inlier, n)

    found = clean(rows, FOUND, cast(Any, SimpleNamespace(of_table=judge)), rules)
    return np.searchsorted(FOUND, found).tolist()


@pytest.mark.parametrize(("unlikely", "stays"), [(0.0, False), (0.6, False), (0.6001, True)])
def test_a_target_has_to_be_likely(unlikely: float, stays: bool) -> None:
    probability = np.where(np.arange(30) == 4, unlikely, 0.9)
    assert kept(probability) == [i for i in range(30) if i != 4 or stays]


def test_a_target_has_to_be_usual() -> None:
    assert kept(0.9, inlier=np.arange(30) != 7) == [i for i in range(30) if i != 7]


@pytest.mark.parametrize("good", [MIN_TARGETS - 1, MIN_TARGETS])
def test_a_group_of_which_too_few_would_remain_stays_whole(good: int) -> None:
    """Of 24 women, the last are unlikely; of 6 men all are likely, and too few anyway."""
    probability = np.where((np.arange(30) < good) | (np.arange(30) >= 24), 0.9, 0.1)
    women = list(range(24 if good < MIN_TARGETS else good))
    assert kept(probability, women=24) == [*women, *range(24, 30)]
    assert kept(0.1, women=24) == list(range(30))
