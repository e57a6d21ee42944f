"""A verifier whose measures the test states, and a table of three numbers and a category."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from genrecourse.table.encoding import TableEncoder
from genrecourse.table.schema import Feature, Schema
from genrecourse.trust.verifier import Verifier

N = 3  # numbers, then a category
NUMBERS = [Feature(name=f"x{j}", kind="number") for j in range(N)]
LEVELS = Feature(name="c", kind="category", categories=("a", "b"))
SCHEMA = Schema(features=(*NUMBERS, LEVELS))
TABLE = pd.DataFrame({f"x{j}": [0.0, 1.0] for j in range(N)} | {"c": ["a", "b"]})
ENCODER = TableEncoder(SCHEMA).fit(TABLE)


class StatedVerifier(Verifier):
    """Every measure is 1, except those that are given as functions of Z."""

    def __init__(self, **measures: Any):
        super().__init__()
        self.known = measures

    def _measure(self, name: str, Z: np.ndarray) -> np.ndarray:
        return np.asarray(self.known.get(name, lambda Z: np.ones(len(Z)))(Z), dtype=float)

    def probability(self, Z: np.ndarray, confidence: np.ndarray) -> np.ndarray:
        return self._measure("probability", Z)

    def robust(self, Z: np.ndarray) -> np.ndarray:
        return self._measure("robust", Z)

    def steady(self, Z: np.ndarray) -> np.ndarray:
        return self._measure("steady", Z)

    def probability_and_steady(
        self, Z: np.ndarray, confidence: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.probability(Z, confidence), self.steady(Z)

    def inlier(self, Z: np.ndarray) -> np.ndarray:
        return self._measure("inlier", Z)
