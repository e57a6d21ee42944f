"""The search: a verifier chooses among candidates, the best are refined, and it chooses again.

GenRe searches among draws and retrieved targets, nearest neighbours among retrieved targets. All of
them use this function, so that a comparison of two methods compares their candidates and nothing
else. `distill.py` lets the search teach the density.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from genrecourse.trust.refine import refine
from genrecourse.trust.score import Scored, expected_score

if TYPE_CHECKING:
    from genrecourse.rules.book import RuleBook
    from genrecourse.rules.problem import Problem
    from genrecourse.table.encoding import Array
    from genrecourse.trust.verifier import Verifier

FINALISTS = 4  # best candidates of a person that are refined


@dataclass(frozen=True)
class Finalists:
    """The refined candidates of N people and their expected Scores.

    >>> found = Finalists(np.array([[[0.7], [0.9]]]), merit=np.array([[1.9, 1.8]]))
    >>> found.best
    array([[0.7]])
    """

    F: Array  # (N, k, d)
    merit: Array  # (N, k)

    @property
    def best(self) -> Array:
        """Return (N, d) the finalist of each person with the highest expected Score."""
        return np.asarray(self.F[np.arange(len(self.F)), self.merit.argmax(axis=1)])


def scored(problem: Problem, Z: Array, F_plus: Array, cost: Array | None = None) -> Scored:
    """Return candidates F_plus (N, n, d) of rows Z (N, D) with h's confidence and the cost.

    >>> from genrecourse.evaluation.example_tables import example_rows
    >>> problem, rows = example_rows()
    >>> scored(problem, rows.Z[:1], rows.F[None, [10, 70]]).confidence
    array([[0.125, 0.875]])
    """
    N, n, d = F_plus.shape
    flat = problem.encoder.from_features(F_plus.reshape(-1, d))
    Z_plus, confidence = flat.reshape(N, n, -1), problem.confidence(flat)
    if cost is None:
        cost = problem.cost(Z[:, None, :], Z_plus)
    return Scored(F_plus, Z_plus, confidence.reshape(N, n), cost)


def search(
    problem: Problem,
    verifier: Verifier,
    Z: Array,
    found: Scored,
    *,
    safety: float,
    margin: float = 0.5,
    finalists: int = FINALISTS,
    retrieved: int = 0,
    most: int | None = None,
    request: RuleBook | None = None,
) -> Finalists:
    """Refine the best candidates of each row of Z (N, D) and score them again.

    found: the candidates. retrieved: how many of them, the last ones, are retrieved targets; the
    best of these is a finalist too. most: how many candidates are compared, the first ones and
    those that were retrieved; None: all. request: the rules of the N people, beyond the schema's.

    >>> from genrecourse.evaluation.example_tables import example_rows
    >>> from genrecourse.genre.fit import fit_verifier
    >>> problem, rows = example_rows()
    >>> verifier = fit_verifier(problem, rows, random_state=0)
    >>> found = scored(problem, rows.Z[:1], rows.F[None, 45:])
    >>> bool(search(problem, verifier, rows.Z[:1], found, safety=0.5).best[0, 0] > 0.5)
    True
    """
    N, n, d = found.F.shape
    if most is not None and n > most:
        first, last = np.arange(most - retrieved), np.arange(n - retrieved, n)
        found = found.take(np.tile(np.concatenate([first, last]), (N, 1)))
        n = most
    score = expected_score(found, verifier, safety=safety, margin=margin)
    best = np.argsort(-score, axis=1, kind="stable")[:, : finalists - (retrieved > 0)]
    if retrieved:
        own = n - retrieved + score[:, n - retrieved :].argmax(axis=1)
        best = np.concatenate([best, own[:, None]], axis=1)
    k, F = best.shape[1], problem.encoder.to_features(Z)
    again = np.repeat(np.arange(N), k)
    refined = refine(
        F[again],
        found.take(best).F.reshape(-1, d),
        verifier,
        problem.confidence,
        problem.encoder,
        problem.cost,
        safety,
        problem.whole_row_rules(None if request is None else request.take(again)),
    )
    # each by itself: a finalist that misses the margin must not open it for the others
    alone = scored(problem, Z[again], refined[:, None])
    merit = expected_score(alone, verifier, safety=safety)
    return Finalists(refined.reshape(N, k, d), merit.reshape(N, k))
