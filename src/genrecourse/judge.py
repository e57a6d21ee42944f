"""Judge: who says whether an x_plus is valid and plausible.

A random forest, calibrated, says whether the favourable outcome is likelier than not; a local
outlier factor fitted on the rows it accepts says whether x_plus looks like accepted people. Fitted
on everything it is the protocol's gold judge, which no method may see. Inside `fit` a method uses
its own stand-in, `CrossFittedJudge`, which never scores a row it has memorised.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import LocalOutlierFactor
from sklearn.utils.class_weight import compute_sample_weight

from genrecourse.encoding import Array
from genrecourse.errors import UserError

N_NEIGHBORS = 5


class Judge:
    """A forest and a local outlier factor on rows of Z.

    As it stands by default it is the protocol's gold judge. `min_leaf` above 1 and no calibration
    make a steadier and quicker forest for labels that are noisy.
    """

    def __init__(self, seed: int = 0, *, min_leaf: int = 1, calibrated: bool = True):
        self.seed = seed
        self.min_leaf = min_leaf
        self.calibrated = calibrated

    def fit(self, Z: Array, y: np.ndarray) -> Judge:
        self.forest_ = RandomForestClassifier(
            min_samples_leaf=self.min_leaf, random_state=self.seed, n_jobs=-1
        )
        if self.calibrated:
            self.forest_ = CalibratedClassifierCV(self.forest_, method="isotonic")
        self.forest_.fit(Z, y, sample_weight=compute_sample_weight("balanced", y))
        accepted = self.probability(Z) > 0.5
        if accepted.sum() < 2:
            raise UserError(
                f"a judge fitted on {len(Z)} rows accepts {int(accepted.sum())} of them; it needs "
                "more favourable outcomes to know what accepted people look like"
            )
        n_neighbors = min(N_NEIGHBORS, int(accepted.sum()) - 1)
        self.lof_ = LocalOutlierFactor(n_neighbors=n_neighbors, novelty=True, n_jobs=-1)
        with warnings.catch_warnings():
            # duplicate rows fool a LOF with few neighbours; the protocol fixes five (docs say so)
            warnings.filterwarnings("ignore", message="Duplicate values")
            self.lof_.fit(Z[accepted])
        return self

    def probability(self, Z: Array) -> Array:
        """(n,) probability of the favourable outcome."""
        return np.asarray(self.forest_.predict_proba(Z)[:, 1])

    def valid(self, Z: Array) -> np.ndarray:
        return self.probability(Z) > 0.5

    def inlier(self, Z: Array) -> np.ndarray:
        return np.asarray(self.lof_.predict(Z) == 1)


class CrossFittedJudge:
    """Two judges, each fitted on one half of the training rows; each scores the other's half.

    Its labels are noisy outcomes, so its forests have leaves of five rows.

    A row that is no training row is scored by the judge that did not see the training row nearest
    to it, since generated rows are often near copies.
    """

    def __init__(self, seed: int = 0):
        self.seed = seed

    def fit(self, Z: Array, y: np.ndarray) -> CrossFittedJudge:
        rng = np.random.default_rng(self.seed)
        fold = np.zeros(len(Z), dtype=int)
        for label in (0, 1):  # both halves hold both outcomes
            rows = rng.permutation(np.flatnonzero(y == label))
            fold[rows[: len(rows) // 2]] = 1
        self._Z, self._fold = Z, fold
        self._judges = [
            Judge(self.seed + f, min_leaf=5, calibrated=False).fit(Z[fold == f], y[fold == f])
            for f in (0, 1)
        ]
        return self

    def __call__(self, Z: Array) -> tuple[np.ndarray, np.ndarray]:
        """(valid, inlier), each (n,) booleans."""
        fold = self._fold[_nearest(Z, self._Z)]
        valid, inlier = np.zeros(len(Z), dtype=bool), np.zeros(len(Z), dtype=bool)
        for f, judge in enumerate(self._judges):
            rows = np.flatnonzero(fold != f)
            if len(rows):
                valid[rows], inlier[rows] = judge.valid(Z[rows]), judge.inlier(Z[rows])
        return valid, inlier


def _nearest(Z: Array, others: Array, block: int = 512) -> np.ndarray:
    table = torch.as_tensor(others)
    parts = [
        torch.cdist(torch.as_tensor(Z[i : i + block]), table, p=1.0).argmin(1)
        for i in range(0, len(Z), block)
    ]
    return torch.cat(parts).numpy()
