"""Verifier: how far to trust an x_plus, from training rows alone.

h accepts it; but will the real outcome be favourable, does it look like accepted people, will h
still accept it once it is trained again, and does it bear being carried out imprecisely? h, a
forest and boosted trees fitted on the outcomes seen answer the first together, local outlier
factors the second, copies of h the third, and the fourth is the first asked again with noise on
every number. Score alone can be bought by walking up to the edge; `Thresholds` say how far from it to
stay.

Unlike `CrossFittedJudge`, which chooses settings and must not score what it has memorised, the
verifier compares rows for one person with each other, and what the training rows next to them
turned out to be is just what it should know.
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

# From an outlier score to how often draws at that height were inliers to a judge that nobody had
# seen: read off nested cases (decision 0007).
INLIER_AT, INLIER_SCALE = -1.0, 0.75
# A judge with more rows sees nearer neighbours, and with duplicates none at all: so all of these.
NEIGHBOURS = (3, 4, 5)
SEEN = 0.05  # what it adds to the probability that somebody like this was accepted indeed
FARTHEST = -3.0  # an outlier score below this is as bad as it gets
N_NOISE = 2  # fixed draws of noise; each is used with both signs


@dataclass(frozen=True)
class Thresholds:
    """What a row has to reach in each measure of `Verifier.measures`, in their order."""

    confidence: float  # h on the common scale, where 0.5 is the cutoff
    robust: float  # the least sure copy of h, on the same scale
    probability: float  # of the favourable outcome
    steady: float  # how likely valid once noise has moved every number
    inlier: float  # the worst outlier score; below 0 an outlier

    @classmethod
    def at(cls, safety: float) -> Thresholds:
        """From as cheap as h allows (0) to as safe as the training rows can tell (1)."""
        low, high = np.array(CHEAPEST), np.array(SAFEST)
        return cls(*(low + safety * (high - low)).tolist())

    def array(self) -> Array:
        return np.array(astuple(self))


CHEAPEST, SAFEST = (0.5, 0.5, 0.55, 0.72, 0.0), (0.5, 0.7, 0.85, 0.98, 0.4)


class Verifier:
    """Fitted on the training rows of a method; asked about rows of Z.

    blank: rows of Z without what must not be looked at (`roles.ProtectedMask`); h's own confidence in a row
    is given with it and may rest on all of it.
    """

    def __init__(self, random_state: int = 0, blank: Callable[[Array], Array] = as_it_is):
        self.random_state = random_state
        self.blank = blank

    def fit(
        self, Z: Array, favourable: np.ndarray, confidence: Array, numbers: np.ndarray
    ) -> Verifier:
        """confidence: h on the common scale; numbers: the columns of Z that noise can move."""
        Z = self.blank(Z)
        rare = min(np.mean(favourable), 1 - np.mean(favourable)) < RARE
        weight = compute_sample_weight("balanced", favourable) if rare else None
        forest = RandomForestClassifier(
            min_samples_leaf=3, random_state=self.random_state, n_jobs=n_jobs(len(Z))
        )
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
        likely = self.forest_(Z) > 0.5
        seen = favourable & (confidence > 0.5)
        # two readings of "accepted people": those who were, and those who most likely would be
        self.like_ = [Z[seen], Z[likely]]
        self.retrained_ = fit_retrained(Z, favourable, confidence > 0.5, self.random_state)
        draws = np.random.default_rng(self.random_state).normal(
            scale=NOISE_SCALE, size=(N_NOISE, Z.shape[1])
        )
        draws = np.concatenate([draws, -draws])  # so that no direction is favoured
        self.noise_ = np.where(np.isin(np.arange(Z.shape[1]), numbers), draws, 0.0)
        return self._ready()

    def _ready(self) -> Verifier:
        self._outliers = [Outliers(rows, NEIGHBOURS) for rows in self.like_ if len(rows) > 1]
        self._seen = {row.tobytes() for row in np.round(self.like_[0], 9)}
        return self

    # ---- the measures, (n,) each --------------------------------------------------------------

    def probability(self, Z: Array, confidence: Array) -> Array:
        """Of the favourable outcome: the mean of the two kinds of trees and h, and a little more
        where it has been seen."""
        Z = self.blank(Z)
        boosted = expit(self.prior_ + self.step_ * self.boosted_(Z))
        return np.asarray((self.forest_(Z) + boosted + confidence) / 3 + SEEN * self._was_seen(Z))

    def _was_seen(self, Z: Array) -> np.ndarray:
        """Whether somebody with these very values was accepted, with a favourable outcome."""
        return np.array([row.tobytes() in self._seen for row in np.round(Z, 9)], dtype=bool)

    def robust(self, Z: Array) -> Array:
        """The confidence of the copy of h that is the least sure."""
        return np.asarray(self.retrained_(self.blank(Z)).min(axis=0))

    def votes(self, Z: Array) -> np.ndarray:
        """(copies, n) booleans: which copies of h accept each row. They were trained without what
        is blank, so that they must be asked without it."""
        return np.asarray(self.retrained_(self.blank(Z)) > 0.5)

    def steady(self, Z: Array) -> Array:
        """How likely it is valid once noise has moved every number; there the copies stand in for
        h."""
        noisy = (self.blank(Z) + self.noise_[:, None, :]).reshape(-1, Z.shape[1])
        found = self.valid(noisy, self.retrained_(noisy).mean(axis=0))
        return np.asarray(found.reshape(len(self.noise_), len(Z)).mean(axis=0))

    def inlier(self, Z: Array) -> Array:
        """The worst outlier score."""
        if not self._outliers:
            return np.full(len(Z), np.inf)  # nobody to be like: then nothing is odd
        Z = self.blank(Z)
        worst = np.concatenate([ask(Z) for ask in self._outliers], axis=1).min(axis=1)
        return np.asarray(np.clip(worst, FARTHEST, None))

    def measures(self, Z: Array, confidence: Array) -> Array:
        """(n, 5): confidence, robust, probability, steady, inlier."""
        return self.reach(Z, confidence, np.full((len(Z), 5), -np.inf))

    def reach(self, Z: Array, confidence: Array, floors: Array) -> Array:
        """The measures of each row up to the first that is below its floor; NaN from there on.

        The quick ones come first, so that hopeless rows cost little.
        """
        asked: tuple[Callable[[Array, Array], Array], ...] = (
            lambda Z, confidence: confidence,
            lambda Z, confidence: self.robust(Z),
            self.probability,
            lambda Z, confidence: self.steady(Z),
            lambda Z, confidence: self.inlier(Z),
        )
        found = np.full((len(Z), len(asked)), np.nan)
        left = np.arange(len(Z))
        for i, measure in enumerate(asked):
            value = measure(Z[left], confidence[left])
            ok = value >= floors[left, i]
            left = left[ok]
            found[left, i] = value[ok]
        return found

    # ---- as probabilities ---------------------------------------------------------------------

    def worth(self, measures: Array, safety: float) -> Array:
        """(n,) what rows with these measures are worth, in units of Score:

        P(valid) + P(plausible) + safety * P(valid under noise)
        """
        probability, steady, inlier = measures[:, 2], measures[:, 3], measures[:, 4]
        return np.asarray(trust(probability) + _usual(inlier) + safety * steady)

    def valid(self, Z: Array, confidence: Array) -> Array:
        """(n,) how likely a judge of its own would find the favourable outcome likelier."""
        return trust(self.probability(Z, confidence))

    def plausible(self, Z: Array) -> Array:
        """(n,) how likely a judge of its own would call the row an inlier."""
        return _usual(self.inlier(Z))

    # ---- as arrays ----------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """All that was learned; the outlier factors are fitted again, which gives the same."""
        return {
            **{f"forest_{name}": part for name, part in self.forest_.arrays().items()},
            **{f"boosted_{name}": part for name, part in self.boosted_.arrays().items()},
            **{f"like_{i}": rows for i, rows in enumerate(self.like_)},
            **{f"retrained_{name}": part for name, part in weights(self.retrained_).items()},
            "boosting": np.array([self.prior_, self.step_]),
            "noise": self.noise_,
        }

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, np.ndarray],
        n_columns: int,
        blank: Callable[[Array], Array] = as_it_is,
    ) -> Verifier:
        """The inverse of `arrays`."""

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
        verifier.noise_ = arrays["noise"]
        return verifier._ready()


def _usual(score: Array) -> Array:
    """From an outlier score to how likely a judge of its own would call the row an inlier."""
    return np.asarray(expit((score - INLIER_AT) / INLIER_SCALE))
