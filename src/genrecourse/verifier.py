"""Verifier: how far to trust an x_plus, from training rows alone.

h accepts it; but will the real outcome be favourable, and does it look like accepted people? h, a
forest and boosted trees fitted on the outcomes seen answer the first together, local outlier
factors the second, both as probabilities. Unlike `CrossFittedJudge`, which chooses settings and
must not score what it has memorised, the verifier compares the draws of one person with each other,
and what the training rows next to a draw turned out to be is just what it should know.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.utils.class_weight import compute_sample_weight

from genrecourse.encoding import Array
from genrecourse.judge import RARE, fit_lof, trust
from genrecourse.trees import Trees

# From an outlier score to how often draws at that height were inliers to a judge that nobody had
# seen: read off nested cases (decision 0007).
INLIER_AT, INLIER_SCALE = -1.0, 0.75
# A judge with more rows sees nearer neighbours, and with duplicates none at all: so all of these.
NEIGHBOURS = (3, 4, 5)
FARTHEST = -3.0  # an outlier score below this is as bad as it gets


class Verifier:
    """Fitted on the training rows of a method; asked about rows of Z."""

    def __init__(self, seed: int = 0):
        self.seed = seed

    def fit(self, Z: Array, favourable: np.ndarray, confidence: Array) -> Verifier:
        """confidence: h on the common scale, where 0.5 is the cutoff."""
        rare = min(np.mean(favourable), 1 - np.mean(favourable)) < RARE
        weight = compute_sample_weight("balanced", favourable) if rare else None
        forest = RandomForestClassifier(min_samples_leaf=3, random_state=self.seed, n_jobs=-1)
        forest.fit(Z, favourable, sample_weight=weight)
        boosted = GradientBoostingClassifier(
            n_estimators=60,
            max_depth=4,
            subsample=0.5,
            max_features=0.5,
            min_samples_leaf=10,
            random_state=self.seed,
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
        self.like_ = [Z[rows] for rows in (seen, likely) if rows.sum() > 1]
        return self._ready()

    def _ready(self) -> Verifier:
        self._lofs = [fit_lof(rows, k) for rows in self.like_ for k in NEIGHBOURS]
        return self

    def probability(self, Z: Array, confidence: Array) -> Array:
        """(n,) of the favourable outcome: the mean of the two kinds of trees and h."""
        boosted = expit(self.prior_ + self.step_ * self.boosted_(Z))
        return np.asarray((self.forest_(Z) + boosted + confidence) / 3)

    def valid(self, Z: Array, confidence: Array) -> Array:
        """(n,) how likely a judge of its own would find the favourable outcome likelier."""
        return trust(self.probability(Z, confidence))

    def plausible(self, Z: Array) -> Array:
        """(n,) how likely a judge of its own would call the row an inlier."""
        if not self._lofs or len(Z) == 0:
            return np.ones(len(Z))
        score = np.min([lof.decision_function(Z) for lof in self._lofs], axis=0)
        return np.asarray(expit((np.clip(score, FARTHEST, None) - INLIER_AT) / INLIER_SCALE))

    # ---- as arrays ----------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """All that was learned; the outlier factors are fitted again, which gives the same."""
        return {
            **{f"forest_{name}": part for name, part in self.forest_.arrays().items()},
            **{f"boosted_{name}": part for name, part in self.boosted_.arrays().items()},
            **{f"like_{i}": rows for i, rows in enumerate(self.like_)},
            "boosting": np.array([self.prior_, self.step_]),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_columns: int) -> Verifier:
        """The inverse of `arrays`."""

        def part(prefix: str) -> dict[str, np.ndarray]:
            return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}

        verifier = cls()
        verifier.forest_ = Trees.from_arrays(part("forest_"), n_columns)
        verifier.boosted_ = Trees.from_arrays(part("boosted_"), n_columns)
        verifier.prior_, verifier.step_ = map(float, arrays["boosting"])
        verifier.like_ = [rows for _, rows in sorted(part("like_").items())]
        return verifier._ready()
