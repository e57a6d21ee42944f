"""Promise: of the people who get a plan, at least so many are accepted by the real decision.

h accepts every plan that is shown. The real decision about somebody with the values x is favourable
if the favourable outcome is likelier than not, P(y+ | x) > 1/2: that is what the protocol's gold
classifier says, and what nobody inside `fit` may see. Seen are outcomes of training rows, and plans
have none. So (docs/promise.md has the mathematics and what is assumed):

1. A score that has not seen a row's own outcome (`heldout`) orders plans and training rows alike.
   Plans below a threshold are not shown.
2. Training rows above the threshold are weighed so that they look like the plans shown for rejected
   training people (a density ratio from a logistic regression).
3. Their outcomes say, with exact binomial tests, whether the share of favourable decisions among
   such rows is high enough: from single outcomes (`outcomes`: a share p of favourable outcomes
   means a share of at least 2p - 1 of decisions), or from juries of people who are alike
   (`neighbours`, see `juries`).
4. Thresholds are tested from the strictest on, each with the same error, until the first that does
   not pass (fixed-sequence testing: Angelopoulos et al., "Learn then Test", 2021), and once more
   from the first on that would serve enough people. The last that passed is used; if none does
   there is no promise, and no plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from genrecourse.errors import UserError
from genrecourse.planning.binomial import at_least, at_most
from genrecourse.planning.juries import jury_p_value, make_juries
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import Array, as_it_is
from genrecourse.trust.out_of_fold import OutOfFoldScore

DELTA = 0.1
ROWS = 10_000  # training rows that a promise rests on, at most
PEOPLE = 400  # rejected ones among them whose plans are looked at, at most
LEAST = 50  # rows of each outcome, and plans, below which nothing is promised
PLANS_SHOWN = (0.3, 0.5, 0.7, 0.8, 0.9, 1.0)  # shares of the plans: a threshold each
# People whose outcomes are taken together, and what part of delta that has: the more people, the
# more often their outcomes can tell anything.
BASES = {1: 1 / 6, 15: 1 / 6, 45: 4 / 6}
JURIES = tuple(size for size in BASES if size > 1)
CAP = 0.99  # a weight is at most this quantile of all weights
RIDGE = 0.1  # scikit-learn's C of the density ratio: small, so that few rows cannot outweigh all
ENOUGH = 0.8  # of the people: who serves so many need not serve more


# ---- the rows it rests on -------------------------------------------------------------------


class PromiseData:
    """Training rows with their outcomes, and the score that is made from them when first asked.

    blank: rows without what must not be looked at (`roles.ProtectedMask`).
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
        """Of at most `ROWS` training rows. rejected: (n,) booleans, whom h turns down."""
        keep = np.sort(np.random.default_rng([seed, 6]).permutation(len(Z))[:ROWS])
        return cls(Z[keep], favourable[keep], rejected[keep], cost, seed, blank)

    @cached_property
    def _held_out(self) -> OutOfFoldScore:
        return OutOfFoldScore(self.cost, self.seed).fit(self.blank(self.Z), self.favourable)

    def score(self, Z: Array) -> Array:
        """(n,) of any rows."""
        return self._held_out(self.blank(Z))

    @cached_property
    def row_scores(self) -> Array:
        return self._held_out.of_training()

    @property
    def is_enough(self) -> bool:
        """Whether there are enough outcomes of either kind to learn from, whatever is held out."""
        if not LEAST <= int(self.favourable.sum()) <= len(self.favourable) - LEAST:
            return False
        return OutOfFoldScore.can_fit(self.blank(self.Z), self.favourable, self.seed)

    def people(self) -> Array:
        """Rows of Z of rejected people, for whom plans are made."""
        found = np.flatnonzero(self.rejected)
        return self.Z[np.random.default_rng([self.seed, 7]).permutation(found)[:PEOPLE]]

    def levels(self, plans: Array) -> list[ThresholdTest]:
        """What the rows say of plans (n, D) that were made for `people`."""
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
        """The inverse of `arrays`; a score that was not made yet is made when asked, the same."""
        ground = cls(arrays["Z"], arrays["favourable"], arrays["rejected"], cost, seed, blank)
        learned = {k.removeprefix("score_"): a for k, a in arrays.items() if k.startswith("score_")}
        if learned:
            own = OutOfFoldScore.from_arrays(learned, blank(ground.Z), cost, seed)
            vars(ground)["_held_out"] = own
        return ground


# ---- what the rows say ----------------------------------------------------------------------


@dataclass(frozen=True)
class ThresholdTest:
    """A threshold on the score, and what training rows that look like the plans above it say."""

    threshold: float
    served: float  # share of the rejected people looked at who have a plan above it
    plans: int  # and how many plans these are
    rows: int  # training rows above it ...
    ess: float  # ... and how many they are worth, weighed: (sum w)^2 / sum w^2
    clipped: float  # share of the weight that the cap took away
    drawn: int  # rows drawn by their weights ...
    favourable: int  # ... and those of them whose outcome was favourable
    juries: dict[int, tuple[np.ndarray, Array]]  # by size: favourable outcomes, shares of weight

    def passes(self, jury: int, share: float, delta: float) -> bool:
        """Is the share of favourable decisions this high? Wrong with a probability <= delta."""
        if jury == 1:
            return 2 * at_least(self.favourable, self.drawn, delta) - 1 >= share
        favourable, weight = self.juries[jury]
        return jury_p_value(favourable, weight, jury, 1 - share) <= delta

    def could_pass(self, jury: int, share: float, delta: float) -> bool:
        """Would it pass had every outcome been favourable? Looks at no outcome.

        Nor is more promised than so many plans could tell: people for whom there is none like them
        may be as many as an event that was never seen in so many tries.
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
    """The strictest first. score: of training rows Z, by models that did not see their outcome;
    Z_plans: plans of rejected training people, of whom there are n_people."""
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
    """For a model file."""
    parts = {}
    for i, level in enumerate(levels):
        numbers = [getattr(level, name) for name in _NUMBERS]
        parts[f"{i}_numbers"] = np.array(numbers, dtype=np.float64)
        for g, (favourable, share) in level.juries.items():
            parts[f"{i}_favourable_{g}"], parts[f"{i}_share_{g}"] = favourable, share
    return parts


def tests_from_arrays(arrays: dict[str, np.ndarray]) -> list[ThresholdTest]:
    """The inverse of `test_arrays`."""
    levels = []
    for i in range(sum(name.endswith("numbers") for name in arrays)):
        numbers = dict(zip(_NUMBERS, arrays[f"{i}_numbers"].tolist(), strict=True))
        counts = {name: int(numbers[name]) for name in ("plans", "rows", "drawn", "favourable")}
        juries = {g: (arrays[f"{i}_favourable_{g}"], arrays[f"{i}_share_{g}"]) for g in JURIES}
        levels.append(ThresholdTest(**{**numbers, **counts}, juries=juries))
    return levels


_NUMBERS = ("threshold", "served", "plans", "rows", "ess", "clipped", "drawn", "favourable")


def plan_weights(rows: Array, plans: Array) -> tuple[Array, float]:
    """(n,) how much denser plans are than rows at each row, capped; and the share that was capped.

    A logistic regression tells plans from rows, both classes weighing the same; its odds are the
    ratio of the two densities. It is smooth on purpose: a plan lies where outcomes happened to be
    favourable, and weights that could follow it there would carry that luck over to the rows.
    """
    both = StandardScaler().fit_transform(np.concatenate([rows, plans]))
    is_plan = np.arange(len(both)) >= len(rows)
    model = LogisticRegression(C=RIDGE, class_weight="balanced", max_iter=1000).fit(both, is_plan)
    odds = np.exp(np.clip(model.decision_function(both[: len(rows)]), -30, 30))
    weight = np.minimum(odds, np.quantile(odds, CAP))
    return weight, float(1 - weight.sum() / odds.sum())


def effective_size(weight: Array) -> float:
    """How many rows of equal weight would tell as much (Kish)."""
    return float(weight.sum() ** 2 / (weight**2).sum())


def _asked(
    Z: Array, favourable: np.ndarray, weight: Array, g: int, rng: np.random.Generator
) -> tuple[np.ndarray, Array]:
    juries = make_juries(Z, weight, g, rng)
    share = weight[juries].sum(axis=1)
    return favourable[juries].sum(axis=1), share / max(share.sum(), 1e-300)


# ---- the promise ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Promise:
    """What is promised of the plans shown, on average over the people who get one."""

    share: float  # of them that the real decision accepts, at least
    delta: float  # how likely the threshold was chosen too low
    threshold: float | None = None  # on the held-out score; None: cannot be promised
    served: float = 0.0  # share of rejected training people whose plan reaches it
    jury: int = 0  # people whose outcomes were taken together: 1, single outcomes
    rows: int = 0  # training rows above the threshold ...
    ess: float = 0.0  # ... and how many they are worth once they are weighed to look like plans
    clipped: float = 0.0  # share of their weight that a cap took away

    @property
    def holds(self) -> bool:
        return self.threshold is not None

    @property
    def basis(self) -> str:
        """`outcomes`, `neighbours`, or nothing where nothing can be promised."""
        return {0: "", 1: "outcomes"}.get(self.jury, "neighbours")

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "basis": self.basis}


def choose(levels: Sequence[ThresholdTest], share: float, delta: float) -> Promise:
    """The promise that can be kept, of single outcomes or else of juries; or none.

    Each basis has its part of delta. The finest that serves `ENOUGH` of the people is taken, else
    the one that serves most.
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
    """Of two sequences that share delta: from the strictest level on, and from the first that
    serves `ENOUGH`. The stricter, the fewer rows a level rests on, and the one more that may fail
    by bad luck where all after it would pass."""
    enough = (i for i, level in enumerate(levels) if level.served >= ENOUGH)
    starts = dict.fromkeys([0, next(enough, 0)])
    passed = [_sequence(levels[i:], jury, share, delta / len(starts)) for i in starts]
    return min(filter(None, passed), key=lambda level: level.threshold, default=None)


def _sequence(
    levels: Sequence[ThresholdTest], jury: int, share: float, delta: float
) -> ThresholdTest | None:
    """The last level before the first that fails; those that no outcome could make pass are not
    tested at all."""
    last = None
    for level in levels:
        if not level.could_pass(jury, share, delta):
            continue
        if not level.passes(jury, share, delta):
            break
        last = level
    return last


def check_promise(where: str, share: Any, delta: Any) -> None:
    for name, value in (("promise", share), ("delta", delta)):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (number and 0 < value < 1):
            raise UserError(f"{where}: {name} is {value!r}; it must be a number between 0 and 1")
