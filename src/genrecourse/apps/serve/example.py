"""example_person: somebody whom the model turns down, to try the page with.

A model file holds training rows, and these are about real people. The example is none of them: each
of its values is taken from another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from genrecourse.rules.problem import Problem

TRIED = 256


def example_person(problem: Problem, number: int = 0) -> pd.DataFrame:
    """Return one row that h rejects, mixed from the rows that a model keeps.

    The first candidate has the median of each number and the most common level of each category
    among the kept rows that h rejects; every other one takes each value from one of these rows.
    number: 0, 1 and so on give other people. If h rejects none of them, the last one is returned.

    >>> from genrecourse.evaluation.example_tables import example_rows
    >>> problem, _ = example_rows()
    >>> bool(problem.read(example_person(problem)).rejected[0])
    True
    """
    people = problem.read(problem.probe)
    F = people.F[people.rejected] if people.rejected.any() else people.F
    rng = np.random.default_rng(0)
    places = rng.integers(len(F), size=(TRIED, F.shape[1]))
    mixed = np.concatenate([_middle(problem, F)[None], F[places, np.arange(F.shape[1])]])
    mixed = problem.rules.with_derived(mixed, mixed)
    found = problem.encoder.table(problem.encoder.from_features(mixed), problem.like)
    turned_down = np.flatnonzero(problem.read(found).rejected)
    place = int(turned_down[number % len(turned_down)]) if len(turned_down) else TRIED
    return found.iloc[[place]]


def _middle(problem: Problem, F: np.ndarray) -> np.ndarray:
    """(d,) the median of each number, as a value that occurs, and the most common level."""
    found = np.empty(F.shape[1])
    for j, feature in enumerate(problem.schema):
        column = F[:, j]
        known = np.sort(column[~np.isnan(column)])
        if feature.is_category:
            values, counts = np.unique(column, return_counts=True)
            found[j] = values[counts.argmax()]
        else:
            found[j] = known[len(known) // 2] if len(known) else np.nan
    return found
