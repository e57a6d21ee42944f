"""search: which candidates it compares."""

from __future__ import annotations

import numpy as np
import pytest

from genrecourse.evaluation.example_tables import example_rows
from genrecourse.genre.fit import fit_verifier
from genrecourse.genre.search import scored, search
from genrecourse.trust.verifier import LEAST_CANDIDATES, ROWS_A_CANDIDATE, Verifier

PROBLEM, ROWS = example_rows()
VERIFIER = fit_verifier(PROBLEM, ROWS, random_state=0)
X = ROWS.Z[:2]


def best_of(places: list[int], **how: int) -> np.ndarray:
    """The finalists of two people among the training rows at these places."""
    found = scored(PROBLEM, X, np.stack([ROWS.F[places]] * 2))
    return search(PROBLEM, VERIFIER, X, found, safety=0.5, **how).F


@pytest.mark.parametrize("retrieved", [0, 2])
def test_only_the_first_and_the_retrieved_are_compared(retrieved: int) -> None:
    """What stands between them would change the answer if it was compared."""
    first, between, last = [70, 75], [46, 48, 50, 52], [60, 65]
    kept = first + (last if retrieved else [])
    whole = first + between + (last if retrieved else [])
    wanted = best_of(kept, retrieved=retrieved, finalists=2)
    bounded = best_of(whole, retrieved=retrieved, finalists=2, most=len(kept))
    np.testing.assert_array_equal(bounded, wanted)
    assert not np.array_equal(best_of(whole, retrieved=retrieved, finalists=2), wanted)


def test_a_larger_table_supports_more_candidates() -> None:
    verifier = Verifier()
    assert verifier.most_candidates is None  # a file of an older version
    for rows, most in ((100, LEAST_CANDIDATES), (5_000, 5_000 // ROWS_A_CANDIDATE)):
        verifier.n_rows_ = rows
        assert verifier.most_candidates == most


def test_a_stored_verifier_supports_as_many() -> None:
    again = Verifier.from_arrays(VERIFIER.arrays(), PROBLEM.encoder.width)
    assert again.most_candidates == VERIFIER.most_candidates == LEAST_CANDIDATES
