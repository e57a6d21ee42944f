"""Promise: the real decision accepts at least a given share of the people who get a plan.

h accepts every plan that is shown. The real decision on a person with the values x is favourable if
the favourable outcome is likelier than not: P(y+ | x) > 1/2. The gold judge of the protocol
measures this, but `fit` may not use the gold judge. `fit` sees only the outcomes of training rows,
and a plan has no outcome yet. Therefore (docs/promise.md has the mathematics and the assumptions):

1. A score orders plans and training rows. The score of a row does not use the row's own outcome
   (`trust.out_of_fold`). Plans below a threshold are not shown.
2. Training rows above the threshold get weights, so that they look like the plans of rejected
   training people (a density ratio from a logistic regression).
3. Exact binomial tests on the outcomes of these rows decide whether the share of favourable
   decisions is high enough. They use single outcomes (basis `outcomes`: a share p of favourable
   outcomes implies a share of at least 2p - 1 of favourable decisions), or groups of similar people
   (basis `neighbours`, see `juries`).
4. Thresholds are tested in order, the strictest first, each with the same error, until one fails
   (fixed-sequence testing: Angelopoulos et al., "Learn then Test", 2021). A second sequence starts
   at the first threshold that serves enough people. The last threshold that passes is used. If none
   passes, there is no promise and no plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from genrecourse.model.settings import Number, check_values
from genrecourse.planning.binomial import at_least, at_most
from genrecourse.planning.juries import jury_p_value, make_juries
from genrecourse.planning.promised import Promise
from genrecourse.table.encoding import Array, as_it_is
from genrecourse.trust.out_of_fold import OutOfFoldScore

if TYPE_CHECKING:
    from genrecourse.table.cost import Cost

DELTA = 0.1
PROMISED = Number(0, 1, above=True, below=True, says="a number between 0 and 1")
ROWS = 10_000  # training rows that a promise uses, at most
PEOPLE = 400  # rejected people among them for whom plans are made, at most
LEAST = 50  # a promise needs this many rows of each outcome, and this many plans
PLANS_SHOWN = (0.3, 0.5, 0.7, 0.8, 0.9, 1.0)  # shares of plans above a threshold: one test each
# Size of a jury -> its part of delta. Large juries get most of it, because they pass most often.
BASES = {1: 1 / 6, 15: 1 / 6, 45: 4 / 6}
JURIES = tuple(size for size in BASES if size > 1)
CAP = 0.99  # a weight is at most this quantile of all weights
RIDGE = 0.1  # scikit-learn's C of the density ratio: small, so that few rows cannot get all weight
ENOUGH = 0.8  # share of people: a threshold that serves this many is good enough


# ---- the training rows ----------------------------------------------------------------------


class PromiseData:
    """Training rows with their outcomes, and a score that is fitted on them on first use.

    Z: (n, D) rows. favourable: (n,) booleans, the outcomes. rejected: (n,) booleans, h rejects.
    blank: hides protected columns (`roles.ProtectedMask`).

    >>> from genrecourse.table.cost import Cost
    >>> from genrecourse.table.encoding import TableEncoder
    >>> from genrecourse.table.schema import Schema
    >>> import pandas as pd
    >>> X = pd.DataFrame({"income": np.linspace(10, 40, 200)})
    >>> encoder = TableEncoder(Schema.infer(X)).fit(X)
    >>> Z, high = encoder.encode(X), X["income"].to_numpy() > 25
    >>> data = PromiseData.some(Z, high, ~high, Cost(encoder), seed=0)
    >>> data.people().shape, data.is_enough
    ((100, 1), True)
    """

    def __init__(
        self,
        Z: Array,
        favourable: np.ndarray,
        rejected: np.ndarray,
        cost: Cost,
        seed: int,
        blank: Callable[[Array], Array] = as_it_is,
    ):
        self.Z, self.favourable, self.rejected = Z, favourable, rejected
        self.cost, self.seed, self.blank = cost, seed, blank

    @classmethod
    def some(
        cls,
        Z: Array,
        favourable: np.ndarray,
        rejected: np.ndarray,
        cost: Cost,
        seed: int,
        blank: Callable[[Array], Array] = as_it_is,
    ) -> PromiseData:
        """Return the data of at most `ROWS` randomly chosen rows."""
        keep = kept_rows(len(Z), seed)
        return cls(Z[keep], favourable[keep], rejected[keep], cost, seed, blank)

    @cached_property
    def _held_out(self) -> OutOfFoldScore:
        return OutOfFoldScore(self.cost, self.seed).fit(self.blank(self.Z), self.favourable)

    def score(self, Z: Array) -> Array:
        """Return (n,) the scores of any rows of Z; higher: a favourable outcome is likelier."""
        return self._held_out(self.blank(Z))

    @cached_property
    def row_scores(self) -> Array:
        """(n,) the scores of the training rows, each without its own outcome."""
        return self._held_out.of_training()

    @property
    def is_enough(self) -> bool:
        """Whether there are enough outcomes of both kinds to fit the score in every fold."""
        if not LEAST <= int(self.favourable.sum()) <= len(self.favourable) - LEAST:
            return False
        return OutOfFoldScore.can_fit(self.blank(self.Z), self.favourable, self.seed)

    def people(self) -> Array:
        """Return rows of Z of at most `PEOPLE` rejected people, for whom plans are made."""
        found = np.flatnonzero(self.rejected)
        return self.Z[np.random.default_rng([self.seed, 7]).permutation(found)[:PEOPLE]]

    def levels(self, plans: Array) -> list[ThresholdTest]:
        """Return the tests for plans (n, D) that were made for `people`."""
        return make_levels(
            self.blank(self.Z),
            self.favourable,
            self.row_scores,
            self.blank(plans),
            self.score(plans),
            len(self.people()),
            self.seed,
        )

    # ---- as arrays ----------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the data as arrays for a model file."""
        parts = {"Z": self.Z, "favourable": self.favourable, "rejected": self.rejected}
        if "_held_out" in vars(self):
            parts |= {f"score_{name}": part for name, part in self._held_out.arrays().items()}
        return parts

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, np.ndarray],
        cost: Cost,
        seed: int,
        blank: Callable[[Array], Array] = as_it_is,
    ) -> PromiseData:
        """Return the data from `arrays`; a score that was not fitted yet is fitted on first use."""
        data = cls(arrays["Z"], arrays["favourable"], arrays["rejected"], cost, seed, blank)
        learned = {k.removeprefix("score_"): a for k, a in arrays.items() if k.startswith("score_")}
        if learned:
            own = OutOfFoldScore.from_arrays(learned, blank(data.Z), cost, seed)
            vars(data)["_held_out"] = own
        return data


def kept_rows(n: int, seed: int) -> np.ndarray:
    """Return the places of the training rows that are kept, of n.

    >>> kept_rows(5, seed=0)
    array([0, 1, 2, 3, 4])
    """
    return np.sort(np.random.default_rng([seed, 6]).permutation(n)[:ROWS])


# ---- the tests ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ThresholdTest:
    """A threshold on the score, with the outcomes of training rows that look like plans above it.

    >>> test = ThresholdTest(0.6, 0.9, 300, 2000, 900.0, 0.0, drawn=800, favourable=780, juries={})
    >>> test.passes(jury=1, share=0.9, delta=0.1), test.passes(jury=1, share=0.99, delta=0.1)
    (True, False)
    """

    threshold: float
    served: float  # share of the rejected people in the test who have a plan above the threshold
    plans: int  # number of these plans
    rows: int  # training rows above the threshold
    ess: float  # effective number of these rows, weighted: (sum w)^2 / sum w^2
    clipped: float  # share of the weight that the cap removed
    drawn: int  # rows drawn by their weights
    favourable: int  # favourable outcomes among the drawn rows
    juries: dict[int, tuple[np.ndarray, Array]]  # by size: favourable outcomes, shares of weight

    def passes(self, jury: int, share: float, delta: float) -> bool:
        """Return whether the share of favourable decisions is this high, with an error <= delta."""
        if jury == 1:
            return 2 * at_least(self.favourable, self.drawn, delta) - 1 >= share
        favourable, weight = self.juries[jury]
        return jury_p_value(favourable, weight, jury, 1 - share) <= delta

    def could_pass(self, jury: int, share: float, delta: float) -> bool:
        """Return whether the test would pass if every outcome were favourable; uses no outcome.

        The number of plans limits the share as well: people unlike all of these plans may be as
        frequent as an event that was not seen in this many tries.
        """
        if 1 - share < at_most(0, self.plans, delta):
            return False
        if jury == 1:
            return 2 * at_least(self.drawn, self.drawn, delta) - 1 >= share
        favourable, weight = self.juries[jury]
        return jury_p_value(np.full(len(favourable), jury), weight, jury, 1 - share) <= delta


def make_levels(
    Z: Array,
    favourable: np.ndarray,
    score: Array,
    Z_plans: Array,
    score_plans: Array,
    n_people: int,
    seed: int,
) -> list[ThresholdTest]:
    """Return one test per threshold, the strictest first.

    score: (n,) the scores of the training rows Z, each without its own outcome.
    Z_plans, score_plans: the plans of rejected training people and their scores.
    n_people: the number of rejected training people, with or without a plan.

    >>> rng = np.random.default_rng(0)
    >>> Z, plans = rng.random((400, 1)), rng.uniform(0.7, 1.0, (60, 1))
    >>> tests = make_levels(Z, Z[:, 0] > 0.5, Z[:, 0], plans, plans[:, 0], n_people=80, seed=0)
    >>> [round(test.served, 2) for test in tests]
    [0.39, 0.54, 0.61, 0.69, 0.75]
    """
    if len(Z_plans) < LEAST:
        return []
    shown = np.quantile(score_plans, 1 - np.array(PLANS_SHOWN), method="lower")
    levels = []
    for i, threshold in enumerate(np.unique(shown)[::-1]):
        above, plans = score >= threshold, score_plans >= threshold
        if above.sum() < LEAST:
            continue
        weight, clipped = plan_weights(
            np.column_stack([Z[above], score[above]]),
            np.column_stack([Z_plans[plans], score_plans[plans]]),
        )
        rng = np.random.default_rng([seed, 8, i])
        outcome = favourable[above]
        drawn = rng.random(len(weight)) < weight / weight.max()
        levels.append(
            ThresholdTest(
                threshold=float(threshold),
                served=float(plans.sum() / n_people),
                plans=int(plans.sum()),
                rows=int(above.sum()),
                ess=effective_size(weight),
                clipped=clipped,
                drawn=int(drawn.sum()),
                favourable=int(outcome[drawn].sum()),
                juries={g: _asked(Z[above], outcome, weight, g, rng) for g in JURIES},
            )
        )
    return levels


def test_arrays(levels: Sequence[ThresholdTest]) -> dict[str, np.ndarray]:
    """Return the tests as arrays for a model file.

    >>> test = ThresholdTest(0.6, 0.9, 300, 2000, 900.0, 0.0, drawn=800, favourable=780, juries={})
    >>> list(test_arrays([test]))
    ['0_numbers']
    """
    parts = {}
    for i, level in enumerate(levels):
        numbers = [getattr(level, name) for name in _NUMBERS]
        parts[f"{i}_numbers"] = np.array(numbers, dtype=np.float64)
        for g, (favourable, share) in level.juries.items():
            parts[f"{i}_favourable_{g}"], parts[f"{i}_share_{g}"] = favourable, share
    return parts


def tests_from_arrays(arrays: dict[str, np.ndarray]) -> list[ThresholdTest]:
    """Return the tests from `test_arrays`.

    >>> juries = {size: (np.zeros(2), np.full(2, 0.5)) for size in JURIES}
    >>> test = ThresholdTest(0.6, 0.9, 300, 2000, 900.0, 0.0, 800, 780, juries)
    >>> tests_from_arrays(test_arrays([test]))[0].favourable
    780
    """
    levels = []
    for i in range(sum(name.endswith("numbers") for name in arrays)):
        numbers = dict(zip(_NUMBERS, arrays[f"{i}_numbers"].tolist(), strict=True))
        counts = {name: int(numbers[name]) for name in ("plans", "rows", "drawn", "favourable")}
        juries = {g: (arrays[f"{i}_favourable_{g}"], arrays[f"{i}_share_{g}"]) for g in JURIES}
        levels.append(ThresholdTest(**{**numbers, **counts}, juries=juries))
    return levels


_NUMBERS = ("threshold", "served", "plans", "rows", "ess", "clipped", "drawn", "favourable")


def plan_weights(rows: Array, plans: Array) -> tuple[Array, float]:
    """Return (n,) the density of plans over the density of rows, capped; and the capped share.

    A logistic regression separates plans from rows, with equal class weights; its odds are the
    ratio of the two densities. It is smooth on purpose: plans lie where outcomes happened to be
    favourable, and very local weights would select the rows by that luck.

    >>> rows, plans = np.linspace(0, 1, 50)[:, None], np.linspace(0.6, 1, 50)[:, None]
    >>> weight, clipped = plan_weights(rows, plans)
    >>> bool(weight[-1] > weight[0]), round(clipped, 3)
    (True, 0.002)
    """
    both = StandardScaler().fit_transform(np.concatenate([rows, plans]))
    is_plan = np.arange(len(both)) >= len(rows)
    model = LogisticRegression(C=RIDGE, class_weight="balanced", max_iter=1000).fit(both, is_plan)
    odds = np.exp(np.clip(model.decision_function(both[: len(rows)]), -30, 30))
    weight = np.minimum(odds, np.quantile(odds, CAP))
    return weight, float(1 - weight.sum() / odds.sum())


def effective_size(weight: Array) -> float:
    """Return how many rows of equal weight give the same precision (Kish).

    >>> effective_size(np.array([1.0, 1.0, 1.0, 0.0]))
    3.0
    """
    return float(weight.sum() ** 2 / (weight**2).sum())


def _asked(
    Z: Array, favourable: np.ndarray, weight: Array, g: int, rng: np.random.Generator
) -> tuple[np.ndarray, Array]:
    juries = make_juries(Z, weight, g, rng)
    share = weight[juries].sum(axis=1)
    return favourable[juries].sum(axis=1), share / max(share.sum(), 1e-300)


# ---- the promise ----------------------------------------------------------------------------


def choose(levels: Sequence[ThresholdTest], share: float, delta: float) -> Promise:
    """Return the promise that the tests support; its threshold is None if they support none.

    Single outcomes and juries of each size have their own part of delta. The smallest size that
    serves `ENOUGH` of the people is used, or else the size that serves most.

    >>> test = ThresholdTest(
    ...     0.6, 0.9, 300, 2000, 900.0, 0.0, 800, 780, {15: ([], []), 45: ([], [])}
    ... )
    >>> choose([test], share=0.9, delta=0.1).basis
    'outcomes'
    """
    found = []
    for jury, part in BASES.items():
        level = _last_passing(levels, jury, share, part * delta)
        if level is not None:
            found.append((jury, level))
    if not found:
        return Promise(share, delta)
    most = min(ENOUGH, max(level.served for _, level in found))
    jury, best = next((j, level) for j, level in found if level.served >= most)
    return Promise(
        share, delta, best.threshold, best.served, jury, best.rows, best.ess, best.clipped
    )


def _last_passing(
    levels: Sequence[ThresholdTest], jury: int, share: float, delta: float
) -> ThresholdTest | None:
    """Return the lowest threshold that passes in one of two sequences, which share delta.

    One sequence starts at the strictest threshold, the other at the first that serves `ENOUGH`. A
    strict threshold has few rows, so it can fail by bad luck and end the first sequence, although
    later thresholds would pass.
    """
    enough = (i for i, level in enumerate(levels) if level.served >= ENOUGH)
    starts = dict.fromkeys([0, next(enough, 0)])
    passed = [_sequence(levels[i:], jury, share, delta / len(starts)) for i in starts]
    return min(filter(None, passed), key=lambda level: level.threshold, default=None)


def _sequence(
    levels: Sequence[ThresholdTest], jury: int, share: float, delta: float
) -> ThresholdTest | None:
    """Return the last threshold before the first one that fails.

    Thresholds that could not pass with any outcomes are skipped.
    """
    last = None
    for level in levels:
        if not level.could_pass(jury, share, delta):
            continue
        if not level.passes(jury, share, delta):
            break
        last = level
    return last


def check_promise(where: str, share: Any, delta: Any) -> None:
    """Raise a UserError if the share or delta of a promise is not between 0 and 1.

    >>> check_promise("GenRe.plans", 90, 0.1)
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: GenRe.plans: promise is 90; it must be a number between 0 and 1
    """
    allowed = {"promise": PROMISED, "delta": PROMISED}
    check_values(where, {"promise": share, "delta": delta}, allowed)
