"""The search refines several candidates, since the best one need not be the best afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse.genre.search import FINALISTS, scored, search
from genrecourse.model.classifier import Classifier
from genrecourse.rules.problem import Problem
from tests.support.verifiers import ENCODER, StatedVerifier

TABLE = pd.DataFrame({f"x{j}": [0.0, 1.0] for j in range(3)} | {"c": ["a", "b"]})
PROBLEM = Problem.of(ENCODER, Classifier(lambda X: np.full(len(X), 0.9)), TABLE)
X = np.zeros((1, 4))


class Held(StatedVerifier):
    """The category must not be undone, and every other change may."""

    def __init__(self) -> None:
        super().__init__(robust=lambda Z: np.where((Z[:, 3] > 0.5) | (Z[:, 0] > 0.05), 1.0, 0.0))


# the cheapest of them cannot lose its change, and each of the others can lose all but a small one
CANDIDATES = [[0.0, 0.0, 0.0, 1.0], [0.1, 1.0, 0.0, 0.0], [0.3, 1.0, 0.0, 0.0]]


def found(**settings: Any) -> Any:
    offers = scored(PROBLEM, X, np.array([CANDIDATES]))
    return search(PROBLEM, Held(), X, offers, safety=0.0, **settings)


def test_a_candidate_that_refines_well_overtakes_the_best() -> None:
    assert found(finalists=1).best.tolist() == [CANDIDATES[0]]
    assert found(finalists=2).best.tolist() == [[0.1, 0.0, 0.0, 0.0]]
    assert found().best.tolist() == [[0.1, 0.0, 0.0, 0.0]]  # so it is by default


@pytest.mark.parametrize("finalists", [1, 2, 3])
def test_so_many_are_refined_the_best_first(finalists: int) -> None:
    assert FINALISTS == 4
    refined = [CANDIDATES[0], [0.1, 0.0, 0.0, 0.0], [0.3, 0.0, 0.0, 0.0]]
    assert found(finalists=finalists).F[0].tolist() == refined[:finalists]
