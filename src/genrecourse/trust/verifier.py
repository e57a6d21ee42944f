"""Verifier: measures how far an x_plus that h accepts can be trusted, from training rows alone.

It answers four questions:

1. Will the real outcome be favourable? h, a forest and boosted trees give a mean probability.
2. Does x_plus look like accepted people? Local outlier factors decide.
3. Will h still accept x_plus after it is trained again? Retrained models vote.
4. Is x_plus still valid if it is carried out imprecisely? The first question again, with noise on
   every number.

A search for the best score alone would end at the edge of the decision. `Thresholds` say how far
from the edge x_plus must stay.

`CrossFittedJudge` chooses settings, so it must not score rows that it was fitted on. The verifier
compares rows for one person with each other, so it should know the outcomes of nearby training
rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass

import numpy as np
import torch
from scipy.special import expit
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.utils.class_weight import compute_sample_weight

from genrecourse.model.artifact import fill, weights
from genrecourse.model.threads import n_jobs
from genrecourse.table.encoding import Array, as_it_is
from genrecourse.table.noise import NOISE_SCALE
from genrecourse.trust.judge import RARE, trust
from genrecourse.trust.outliers import Outliers
from genrecourse.trust.retrained import RetrainedModels, fit_retrained
from genrecourse.trust.trees import Trees

# Turn an outlier score into how often an unseen judge called such draws inliers; measured on nested
# cases (docs/decisions/0007).
INLIER_AT, INLIER_SCALE = -1.0, 0.75
# Another judge has other rows and so other neighbours, so the worst of several numbers is used.
NEIGHBOURS = (3, 4, 5)
SEEN = 0.05  # added to the probability if an equal training row was accepted with a good outcome
FARTHEST = -3.0  # lower outlier scores count as this one
MANY_ROWS = 5_000  # above, a smaller forest gives probabilities: it answers faster
FEW = 64  # rows up to which asking the trees takes about as long as asking them for one row
N_NOISE = 2  # fixed draws of noise; each is used with both signs


@dataclass(frozen=True)
class Thresholds:
    """The least value that a row must reach in each of `Verifier.measures`, in the same order.

    Examples:
        >>> Thresholds.at(safety=0.0).probability, Thresholds.at(safety=1.0).probability
        (0.55, 0.85)
    """

    confidence: float  # h's confidence; 0.5 is the cutoff
    robust: float  # the lowest confidence among the retrained models
    probability: float  # the probability of the favourable outcome
    steady: float  # how likely the row is valid after noise has moved every number
    inlier: float  # the lowest outlier score; an outlier has a score below 0

    @classmethod
    def at(cls, safety: float) -> Thresholds:
        """Return the thresholds for a safety from 0 (as cheap as h allows) to 1 (as safe as the
        training rows can show)."""
        low, high = np.array(CHEAPEST), np.array(SAFEST)
        return cls(*(low + safety * (high - low)).tolist())

    def array(self) -> Array:
        """Return the thresholds as an array of shape (5,)."""
        return np.array(astuple(self))


CHEAPEST, SAFEST = (0.5, 0.5, 0.55, 0.72, 0.0), (0.5, 0.7, 0.85, 0.98, 0.4)


# One candidate more for so many training rows, and always as many as GenRe draws and retrieves: the
# best of more candidates is more often one that the verifier overrates (decision 17).
ROWS_A_CANDIDATE, LEAST_CANDIDATES = 20, 48


class Verifier:
    """Measures rows of Z, after it was fitted on the training rows of a method.

    Args:
        random_state: the seed of the trees, the retrained models and the noise.
        blank: hides the columns of Z that must not be used (`roles.ProtectedMask`). h's confidence
            in a row is an argument of its own, and may depend on all columns.

    Examples:
        >>> Z = np.random.default_rng(0).uniform(size=(100, 2))
        >>> verifier = Verifier().fit(Z, Z[:, 0] > 0.5, confidence=Z[:, 0], numbers=np.arange(2))
        >>> rows = np.array([[0.2, 0.5], [0.9, 0.5]])
        >>> found = verifier.measures(rows, confidence=rows[:, 0])
        >>> found.shape
        (2, 5)
        >>> (found >= Thresholds.at(safety=0.5).array()).all(axis=1)
        array([False,  True])
    """

    def __init__(self, random_state: int = 0, blank: Callable[[Array], Array] = as_it_is):
        self.random_state = random_state
        self.blank = blank
        self.n_rows_: int | None = None  # training rows

    def fit(
        self, Z: Array, favourable: np.ndarray, confidence: Array, numbers: np.ndarray
    ) -> Verifier:
        """Fit on training rows.

        Args:
            Z: (n, D) the rows.
            favourable: (n,) booleans, the outcomes.
            confidence: (n,) h's confidence in each row.
            numbers: the columns of Z that hold numbers, which noise may move.
        """
        Z, self.n_rows_ = self.blank(Z), len(Z)
        rare = min(np.mean(favourable), 1 - np.mean(favourable)) < RARE
        weight = compute_sample_weight("balanced", favourable) if rare else None
        forest = whole = self._forest(len(Z)).fit(Z, favourable, sample_weight=weight)
        if len(Z) > MANY_ROWS:
            forest = self._forest(len(Z), n_estimators=60, max_leaf_nodes=512)
            forest.fit(Z, favourable, sample_weight=weight)
        boosted = GradientBoostingClassifier(
            n_estimators=60,
            max_depth=4,
            subsample=0.5,
            max_features=0.5,
            min_samples_leaf=10,
            random_state=self.random_state,
        )
        boosted.fit(Z, favourable, sample_weight=weight)
        self.forest_ = Trees.of(forest.estimators_, column=1)
        self.boosted_ = Trees.of(list(boosted.estimators_[:, 0]), column=0)
        share = np.average(favourable, weights=weight)
        self.prior_ = float(np.log(share / (1 - share)))
        self.step_ = boosted.learning_rate * len(boosted.estimators_)
        # a large forest: it knows these rows, and a small one would add people who were refused
        likely = Trees.of(whole.estimators_, column=1)(Z) > 0.5
        seen = favourable & (confidence > 0.5)
        # two meanings of "accepted people": who was accepted, and who probably would be
        self.like_ = [Z[seen], Z[likely]]
        self.retrained_ = fit_retrained(Z, favourable, confidence > 0.5, self.random_state)
        draws = np.random.default_rng(self.random_state).normal(
            scale=NOISE_SCALE, size=(N_NOISE, Z.shape[1])
        )
        draws = np.concatenate([draws, -draws])  # both signs, so that no direction is preferred
        self.noise_ = np.where(np.isin(np.arange(Z.shape[1]), numbers), draws, 0.0)
        return self._ready()

    def _forest(self, n_rows: int, **sizes: int) -> RandomForestClassifier:
        return RandomForestClassifier(
            min_samples_leaf=3, random_state=self.random_state, n_jobs=n_jobs(n_rows), **sizes
        )

    def _ready(self) -> Verifier:
        self._outliers = [Outliers(rows, NEIGHBOURS) for rows in self.like_ if len(rows) > 1]
        self._seen = {row.tobytes() for row in np.round(self.like_[0], 9)}
        return self

    # ---- the measures, (n,) each --------------------------------------------------------------

    def probability(self, Z: Array, confidence: Array) -> Array:
        """Return probabilities of the favourable outcome: the mean of forest, boosted trees and h,
        plus `SEEN` if an equal training row was accepted with a favourable outcome."""
        Z = self.blank(Z)
        return np.asarray((self._trees(Z) + confidence) / 3 + SEEN * self._was_seen(Z))

    def _trees(self, Z: Array) -> Array:
        """Return the sum of the probabilities by the forest and by the boosted trees."""
        return np.asarray(self.forest_(Z) + expit(self.prior_ + self.step_ * self.boosted_(Z)))

    def _was_seen(self, Z: Array) -> np.ndarray:
        """Return whether an equal training row was accepted and had a favourable outcome."""
        return np.array([row.tobytes() in self._seen for row in np.round(Z, 9)], dtype=bool)

    def robust(self, Z: Array) -> Array:
        """Return the lowest confidence among the retrained models."""
        return np.asarray(self.retrained_(self.blank(Z)).min(axis=0))

    def votes(self, Z: Array) -> np.ndarray:
        """Return (models, n) booleans: True if a retrained model accepts the row."""
        return np.asarray(self.retrained_(self.blank(Z)) > 0.5)

    def steady(self, Z: Array) -> Array:
        """Return how likely a row is valid after noise has moved every number.

        The mean of the retrained models replaces h's confidence in the noisy rows.
        """
        noisy = self._noisy(Z)
        found = self.valid(noisy, self.retrained_(noisy).mean(axis=0))
        return np.asarray(found.reshape(len(self.noise_), len(Z)).mean(axis=0))

    def _noisy(self, Z: Array) -> Array:
        return np.asarray((self.blank(Z) + self.noise_[:, None, :]).reshape(-1, Z.shape[1]))

    def probability_and_steady(self, Z: Array, confidence: Array) -> tuple[Array, Array]:
        """Return both measures; the trees are asked once, which for few rows is as quick as for
        one of them."""
        noisy, n = self._noisy(Z), len(Z)
        trees = self._trees(np.concatenate([self.blank(Z), noisy]))
        seen, seen_noisy = self._was_seen(self.blank(Z)), self._was_seen(self.blank(noisy))
        probability = (trees[:n] + confidence) / 3 + SEEN * seen
        shaken = (trees[n:] + self.retrained_(noisy).mean(axis=0)) / 3 + SEEN * seen_noisy
        steady = trust(shaken).reshape(len(self.noise_), n).mean(axis=0)
        return np.asarray(probability), np.asarray(steady)

    def inlier(self, Z: Array) -> Array:
        """Return the lowest outlier score."""
        if not self._outliers:
            return np.full(len(Z), np.inf)  # there are no accepted rows to compare with
        Z = self.blank(Z)
        worst = np.concatenate([ask(Z) for ask in self._outliers], axis=1).min(axis=1)
        return np.asarray(np.clip(worst, FARTHEST, None))

    def measures(self, Z: Array, confidence: Array) -> Array:
        """Return (n, 5): confidence, robust, probability, steady and inlier of each row."""
        return self.reach(Z, confidence, np.full((len(Z), 5), -np.inf))

    def reach(self, Z: Array, confidence: Array | Callable[[Array], Array], floors: Array) -> Array:
        """Return (n, 5) measures; NaN from the first one that is below its floor (n, 5).

        The quick measures come first, so that rows that fail take little time. If `confidence` is
        a function, h is asked only about rows that the retrained models let pass.
        """
        found = np.full((len(Z), 5), np.nan)
        left = np.arange(len(Z))

        def keep(i: int, value: Array) -> None:
            nonlocal left
            ok = value >= floors[left, i]
            left = left[ok]
            found[left, i] = value[ok]

        if callable(confidence):
            keep(1, self.robust(Z))
            asked = np.full(len(Z), np.nan)
            if len(left):
                asked[left] = confidence(Z[left])
            confidence = asked
            keep(0, confidence[left])
        else:
            keep(0, confidence)
            keep(1, self.robust(Z[left]))
        if 0 < len(left) <= FEW:
            some = left
            probability, steady = self.probability_and_steady(Z[some], confidence[some])
            keep(2, probability)
            keep(3, steady[np.isin(some, left)])
        else:
            keep(2, self.probability(Z[left], confidence[left]))
            keep(3, self.steady(Z[left]))
        keep(4, self.inlier(Z[left]))
        return found

    @property
    def most_candidates(self) -> int | None:
        """Return from how many candidates of a person it may choose; None: not known."""
        if self.n_rows_ is None:
            return None
        return max(LEAST_CANDIDATES, self.n_rows_ // ROWS_A_CANDIDATE)

    # ---- as probabilities ---------------------------------------------------------------------

    def worth(self, measures: Array, safety: float) -> Array:
        """Return (n,) the expected Score of rows with these measures:

        P(valid) + P(plausible) + safety * P(valid under noise)
        """
        probability, steady, inlier = measures[:, 2], measures[:, 3], measures[:, 4]
        return np.asarray(trust(probability) + _usual(inlier) + safety * steady)

    def valid(self, Z: Array, confidence: Array) -> Array:
        """Return (n,) probabilities that an independent judge would find the row valid."""
        return trust(self.probability(Z, confidence))

    def plausible(self, Z: Array) -> Array:
        """Return (n,) probabilities that an independent judge would call the row an inlier."""
        return _usual(self.inlier(Z))

    # ---- as arrays ----------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Return everything that was learned, for a model file.

        The outlier factors are left out: fitting them again gives the same result.
        """
        return {
            **{f"forest_{name}": part for name, part in self.forest_.arrays().items()},
            **{f"boosted_{name}": part for name, part in self.boosted_.arrays().items()},
            **{f"like_{i}": rows for i, rows in enumerate(self.like_)},
            **{f"retrained_{name}": part for name, part in weights(self.retrained_).items()},
            "boosting": np.array([self.prior_, self.step_]),
            "noise": self.noise_,
        } | ({} if self.n_rows_ is None else {"n_rows": np.array([self.n_rows_])})

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, np.ndarray],
        n_columns: int,
        blank: Callable[[Array], Array] = as_it_is,
    ) -> Verifier:
        """Return the verifier that gave these `arrays`."""

        def part(prefix: str) -> dict[str, np.ndarray]:
            return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}

        verifier = cls(blank=blank)
        verifier.forest_ = Trees.from_arrays(part("forest_"), n_columns)
        verifier.boosted_ = Trees.from_arrays(part("boosted_"), n_columns)
        verifier.prior_, verifier.step_ = map(float, arrays["boosting"])
        verifier.like_ = [rows for _, rows in sorted(part("like_").items())]
        with torch.device("meta"):
            verifier.retrained_ = RetrainedModels(n_columns)
        fill(verifier.retrained_, part("retrained_"))
        verifier.retrained_.double()  # as after training
        verifier.noise_ = arrays["noise"]
        if "n_rows" in arrays:  # older files have none
            verifier.n_rows_ = int(arrays["n_rows"][0])
        return verifier._ready()


def _usual(score: Array) -> Array:
    """Return probabilities that an independent judge calls rows with these scores inliers."""
    return np.asarray(expit((score - INLIER_AT) / INLIER_SCALE))
