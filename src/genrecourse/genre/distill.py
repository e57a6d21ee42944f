"""Distilling: the search teaches the density. This is not in the paper.

A search for every person is slow, and one draw from R_theta trained on Q's pairs is worse than what
the search finds. So `fit` runs the search once for some rejected *training* rows, and R_theta
learns from what it found:

    x_plus_i, merit_i = the finalists of the search for x, and their expected Scores
    pair x with x_plus_i with probability ∝ exp(merit_i / WARMTH)

Afterwards one draw carries the search. A share of each batch are Q's own pairs, so that R_theta
stays a density: it knows several plans, and what to do under the rules of a request.
(docs/decisions/0017)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from genrecourse.genre.retrieve import nearest
from genrecourse.genre.search import Finalists, scored, search
from genrecourse.trust.verifier import Thresholds

if TYPE_CHECKING:
    from genrecourse.genre.targets import Targets
    from genrecourse.rules.problem import Problem
    from genrecourse.table.encoding import Array
    from genrecourse.trust.verifier import Verifier

SOURCES = 4000  # rejected training rows that are searched for, at most
HELD_SOURCES = 200  # held-out ones, whose loss is watched
SEARCHED = 64  # nearest targets that the search for one of them looks at
WARMTH = 0.01  # a finalist that is this much worse is chosen exp(-1) times as often
Q_SHARE = 0.1  # share of each batch that comes from Q
AT_ONCE = 500  # people searched for together; bounds memory
UNREACHED = 0.05  # share of the sources whose best plan may miss a bar
FEW_SOURCES = 2000  # fewer teach a density that one draw cannot be relied on

Pair = tuple[torch.Tensor, ...]


class PairSource(Protocol):
    """Pairs (x, x_plus) of numbered sources, drawn anew at each call.

    >>> from genrecourse.evaluation.example_tables import example_rows, example_settings
    >>> from genrecourse.evaluation.example_tables import example_targets
    >>> from genrecourse.genre.fit import Pairing
    >>> problem, rows = example_rows()
    >>> pairing = Pairing(problem, example_targets(), 0.5, example_settings())
    >>> drawn: PairSource = pairing.pair_up(rows, np.arange(3))
    >>> len(drawn)
    3
    """

    def __len__(self) -> int: ...

    def __call__(self, which: np.ndarray, rng: np.random.Generator) -> Pair:
        """Return the pairs of these sources."""


@dataclass(frozen=True)
class Lesson:
    """Pairs (x, x_plus) that the search found, mixed with Q's own.

    >>> taught = Finalists(np.array([[[0.7], [0.9]]]), merit=np.array([[1.9, 1.8]]))
    >>> lesson = Lesson.of(np.array([[0.2]]), taught, own=None)
    >>> x, x_plus = lesson(np.zeros(3, dtype=int), np.random.default_rng(0))
    >>> x_plus.T  # the better finalist is exp(10) times as likely
    tensor([[0.7000, 0.7000, 0.7000]], dtype=torch.float64)
    """

    F: Array  # (n, d) the sources
    F_plus: Array  # (n, k, d) what the search found for each
    cumulative: Array  # (n, k) probabilities, summed up
    own: PairSource | None  # Q's pairs; None: the search's pairs alone
    best: Array  # (n, d) the best finalist of each source

    @classmethod
    def of(cls, F: Array, found: Finalists, own: PairSource | None) -> Lesson:
        """Return the lesson for sources F (n, d), with the finalists of each."""
        weight = np.exp((found.merit - found.merit.max(axis=1, keepdims=True)) / WARMTH)
        share = weight.cumsum(axis=1) / weight.sum(axis=1, keepdims=True)
        return cls(F, found.F, share, own, found.best)

    def __len__(self) -> int:
        return len(self.F)

    @property
    def n_sources(self) -> int:
        return len(self.F)

    def __call__(self, which: np.ndarray, rng: np.random.Generator) -> Pair:
        """Return (x, x_plus): of these sources, and in the last places some of Q's."""
        n_own = 0 if self.own is None else round(Q_SHARE * len(which))
        which = which[: len(which) - n_own]
        place = (self.cumulative[which] < rng.random((len(which), 1))).sum(axis=1)
        x, x_plus = torch.as_tensor(self.F[which]), torch.as_tensor(self.F_plus[which, place])
        if self.own is None or n_own == 0:
            return x, x_plus
        more_x, more_x_plus = self.own(rng.integers(len(self.own), size=n_own), rng)
        return torch.cat([x, more_x]), torch.cat([x_plus, more_x_plus])


def teach(
    problem: Problem,
    verifier: Verifier,
    targets: Targets,
    F: Array,
    *,
    safety: float,
    own: PairSource | None,
) -> Lesson:
    """Search for each source of F (n, d) among its nearest targets; return what was found.

    Sources for which h accepts nothing that was found are left out.

    >>> from genrecourse.evaluation.example_tables import example_rows, example_targets
    >>> from genrecourse.genre.fit import fit_verifier
    >>> problem, rows = example_rows()
    >>> verifier = fit_verifier(problem, rows, random_state=0)
    >>> lesson = teach(problem, verifier, example_targets(), rows.F[:3], safety=0.5, own=None)
    >>> len(lesson), bool((lesson.F_plus[..., 0] > 0.5).all())
    (3, True)
    """
    parts = [
        _search_some(problem, verifier, targets, F[i : i + AT_ONCE], safety)
        for i in range(0, max(len(F), 1), AT_ONCE)
    ]
    found = Finalists(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    good = found.merit.max(axis=1) > 0  # below 0: h rejects all of them
    return Lesson.of(F[good], Finalists(found.F[good], found.merit[good]), own)


def reachable(problem: Problem, verifier: Verifier, lesson: Lesson, safety: float) -> Array:
    """Return (5,) bars for draws: the thresholds at this safety, or less if a search misses them.

    A threshold that the search itself misses for many sources would send as many people to a
    search that cannot help them. So a bar is at most what the best plans reach for all but
    `UNREACHED` of the sources. With fewer than `FEW_SOURCES` the bars are infinite: no draw is good
    enough by itself, and a person's draws always compete with the nearest targets.

    >>> from genrecourse.evaluation.example_tables import example_rows, example_targets
    >>> from genrecourse.genre.fit import fit_verifier
    >>> problem, rows = example_rows()
    >>> verifier = fit_verifier(problem, rows, random_state=0)
    >>> lesson = teach(problem, verifier, example_targets(), rows.F[:9], safety=0.5, own=None)
    >>> reachable(problem, verifier, lesson, 0.5)
    array([inf, inf, inf, inf, inf])
    """
    bars = Thresholds.at(safety).array()
    if len(lesson) < FEW_SOURCES:
        return np.full(len(bars), np.inf)
    Z = problem.encoder.from_features(lesson.best)
    found = verifier.measures(Z, problem.confidence(Z))
    return np.asarray(np.minimum(bars, np.quantile(found, UNREACHED, axis=0)))


def _search_some(
    problem: Problem, verifier: Verifier, targets: Targets, F: Array, safety: float
) -> tuple[Array, Array]:
    """Return the finalists (n, k, d) of rows F and their merits (n, k)."""
    Z = problem.encoder.from_features(F)
    near, _ = nearest(Z, F, targets, problem.rules, problem.cost, SEARCHED)
    offers = scored(problem, Z, problem.with_derived(F[:, None], near))
    found = search(problem, verifier, Z, offers, safety=safety)
    return found.F, found.merit
