"""OutOfFoldScore: the probability of the favourable outcome, from models not fitted on the row.

For each fold, boosted trees are fitted on all other folds. A training row is scored by the trees
that were not fitted on its fold. Any other row is scored by the trees that were not fitted on the
fold of the nearest training row, since a plan is often a near copy of one. Equal rows are in the
same fold. h is not used: it may have memorised the outcomes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.utils.class_weight import compute_sample_weight

from genrecourse.trust.judge import RARE
from genrecourse.trust.neighbours import Neighbours
from genrecourse.trust.trees import Trees

if TYPE_CHECKING:
    from genrecourse.table.cost import Cost
    from genrecourse.table.encoding import Array

N_FOLDS = 5


class OutOfFoldScore:
    """Boosted trees for each fold; rows (n, D) -> (n,) probabilities.

    Examples:
        >>> from genrecourse.table.cost import Cost
        >>> import pandas as pd
        >>> from genrecourse import Schema
        >>> from genrecourse.table.encoding import TableEncoder
        >>> X = pd.DataFrame({"income": range(200)})
        >>> encoder = TableEncoder(Schema.infer(X)).fit(X)
        >>> Z = encoder.encode(X)
        >>> score = OutOfFoldScore(Cost(encoder)).fit(Z, Z[:, 0] > 0.5)
        >>> score(np.array([[0.1], [0.9]])) > 0.5
        array([False,  True])
    """

    def __init__(self, cost: Cost, random_state: int = 0):
        self.cost, self.random_state = cost, random_state

    @staticmethod
    def folds(Z: Array, seed: int) -> np.ndarray:
        """Return (n,) the fold of each row. Equal rows are in the same fold."""
        place = np.unique(Z, axis=0, return_inverse=True)[1].reshape(-1)
        rng = np.random.default_rng([seed, 5])
        return np.asarray((rng.permutation(place.max() + 1) % N_FOLDS)[place])

    @classmethod
    def can_fit(cls, Z: Array, favourable: np.ndarray, seed: int) -> bool:
        """Return whether both outcomes remain whichever fold is left out.

        If there are few distinct rows, one fold may hold all rows of an outcome.
        """
        fold = cls.folds(Z, seed)
        left = [favourable[fold != f] for f in range(N_FOLDS)]
        return all(0 < int(each.sum()) < len(each) for each in left)

    def fit(self, Z: Array, favourable: np.ndarray) -> OutOfFoldScore:
        """Fit on rows Z (n, D) and outcomes (n,), True if favourable."""
        self.fold_ = self.folds(Z, self.random_state)
        self.trees_: list[Trees] = []
        self.prior_, self.step_ = np.zeros(N_FOLDS), np.zeros(N_FOLDS)
        for f in range(N_FOLDS):
            others = self.fold_ != f
            self._fit_fold(f, Z[others], favourable[others])
        return self._ready(Z)

    def _fit_fold(self, f: int, Z: Array, favourable: np.ndarray) -> None:
        """Fit boosted trees like the verifier's, but with larger leaves, so that one row's outcome
        has little effect."""
        rare = min(np.mean(favourable), 1 - np.mean(favourable)) < RARE
        weight = compute_sample_weight("balanced", favourable) if rare else None
        model = GradientBoostingClassifier(
            n_estimators=60,
            max_depth=4,
            subsample=0.5,
            max_features=0.5,
            min_samples_leaf=20,
            random_state=self.random_state + f,
        ).fit(Z, favourable, sample_weight=weight)
        share = np.average(favourable, weights=weight)
        self.trees_.append(Trees.of(list(model.estimators_[:, 0]), column=0))
        self.prior_[f] = np.log(share / (1 - share))
        self.step_[f] = model.learning_rate * len(model.estimators_)

    def _ready(self, Z: Array) -> OutOfFoldScore:
        self._near = Neighbours(Z, self.cost)
        return self

    def of_training(self) -> Array:
        """Return (n,) scores of the training rows."""
        return self._by_fold(self._near.Z, self.fold_)

    def __call__(self, Z: Array) -> Array:
        """Return (n,) scores of other rows than the training rows."""
        return self._by_fold(Z, self.fold_[self._near.nearest(Z)[1].astype(int)])

    def _by_fold(self, Z: Array, fold: np.ndarray) -> Array:
        score = np.zeros(len(Z))
        for f, trees in enumerate(self.trees_):
            rows = np.flatnonzero(fold == f)
            if len(rows):
                score[rows] = expit(self.prior_[f] + self.step_[f] * trees(Z[rows]))
        return score

    # ---- as arrays ----------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Return everything that was learned, except the training rows, for a model file."""
        parts = {"fold": self.fold_, "prior": self.prior_, "step": self.step_}
        for f, trees in enumerate(self.trees_):
            parts |= {f"trees_{f}_{name}": part for name, part in trees.arrays().items()}
        return parts

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], Z: Array, cost: Cost, seed: int
    ) -> OutOfFoldScore:
        """Return the score that gave these `arrays`; Z are its training rows."""
        score = cls(cost, seed)
        score.fold_, score.prior_, score.step_ = (arrays[k] for k in ("fold", "prior", "step"))
        score.trees_ = []
        for f in range(N_FOLDS):
            start = f"trees_{f}_"
            own = {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}
            score.trees_.append(Trees.from_arrays(own, Z.shape[1]))
        return score._ready(Z)
