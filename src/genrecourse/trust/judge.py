"""Judge: who says whether an x_plus is valid and plausible.

A random forest, calibrated, says whether the favourable outcome is likelier than not; a local
outlier factor fitted on the rows it accepts says whether x_plus looks like accepted people. Inside
`fit` a method uses `CrossFittedJudge`, which never scores a row that it has memorised. The gold
judge of an evaluation, which no method may see, is in `evaluation/gold.py`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import LocalOutlierFactor
from sklearn.utils.class_weight import compute_sample_weight

from genrecourse.errors import UserError
from genrecourse.model.threads import n_jobs
from genrecourse.table.encoding import Array, as_it_is

N_NEIGHBORS = 5
TRUST_AT, TRUST_SCALE = 0.45, 0.08  # from a probability to how often a judge then says "valid"
RARE = 0.1  # an outcome rarer than this is never likelier than not: then classes are balanced
N_CALIBRATION_FOLDS = 5


class Judge:
    """A forest and a local outlier factor on rows of Z.

    The defaults are those of the protocol's gold judge. `min_leaf` above 1 and no calibration
    make a steadier and quicker forest for noisy labels.
    """

    def __init__(
        self,
        random_state: int = 0,
        *,
        balanced: bool = True,
        min_leaf: int = 1,
        calibrated: bool = True,
    ):
        self.random_state = random_state
        self.balanced = balanced
        self.min_leaf = min_leaf
        self.calibrated = calibrated

    def fit(self, Z: Array, y: np.ndarray) -> Judge:
        favourable, least = int(np.sum(y)), N_CALIBRATION_FOLDS if self.calibrated else 1
        if not least <= favourable <= len(y) - least:
            raise UserError(
                f"{favourable} of the {len(y)} rows for a judge are favourable; it needs {least} "
                "or more of each outcome"
            )
        self.forest_ = RandomForestClassifier(
            min_samples_leaf=self.min_leaf, random_state=self.random_state, n_jobs=n_jobs(len(Z))
        )
        if self.calibrated:
            self.forest_ = CalibratedClassifierCV(
                self.forest_, method="isotonic", cv=N_CALIBRATION_FOLDS
            )
        weight = compute_sample_weight("balanced", y) if self.balanced else None
        self.forest_.fit(Z, y, sample_weight=weight)
        accepted = self.probability(Z) > 0.5
        if accepted.sum() < 2:
            raise UserError(
                f"a judge fitted on {len(Z)} rows accepts {int(accepted.sum())} of them; it needs "
                "more favourable outcomes to know what accepted people look like"
            )
        self.lof_ = fit_lof(Z[accepted])
        return self

    def probability(self, Z: Array) -> Array:
        """(n,) probability of the favourable outcome."""
        # the forest's threads add up its votes in any order: leave their rounding errors out
        return np.round(self.forest_.predict_proba(Z)[:, 1], 12)

    def valid(self, Z: Array) -> np.ndarray:
        return self.probability(Z) > 0.5

    def inlier(self, Z: Array) -> np.ndarray:
        return np.asarray(self.lof_.predict(Z) == 1)


def fit_lof(Z: Array, n_neighbors: int = N_NEIGHBORS) -> LocalOutlierFactor:
    """The protocol's local outlier factor: five neighbours among rows of Z, if not told others."""
    # a tree answers each row by itself: the answer does not depend on the rows beside it
    lof = LocalOutlierFactor(
        n_neighbors=min(n_neighbors, len(Z) - 1),
        novelty=True,
        algorithm="kd_tree",
        n_jobs=n_jobs(len(Z)),
    )
    with warnings.catch_warnings():
        # duplicate rows fool a LOF with few neighbours; the protocol fixes five (docs say so)
        warnings.filterwarnings("ignore", message="Duplicate values")
        return lof.fit(Z)


class CrossFittedJudge:
    """Judges that each leave out one fold of the training rows, and judge only that fold.

    Its labels are noisy outcomes, so its forests have leaves of five rows; and "likelier than not"
    means just that, so the classes are not weighted equal unless one of them is so rare that no row
    would ever be. `balanced`, `min_leaf` and `calibrated` ask for other judges: those of the
    protocol, for outcomes as they are.

    A row that is no training row is scored by the judge that did not see the training row nearest
    to it, since generated rows are often near copies. copies_together: rows that are the same stand
    in one fold, so that the judge did not see the nearest row's copies either. blank: rows without
    what must not be looked at (`roles.ProtectedMask`).
    """

    def __init__(
        self,
        random_state: int = 0,
        *,
        n_folds: int = 5,
        balanced: bool | None = None,  # None: where an outcome is rare
        min_leaf: int = 5,
        calibrated: bool = False,
        copies_together: bool = False,
        blank: Callable[[Array], Array] = as_it_is,
    ):
        self.random_state = random_state
        self.n_folds = n_folds
        self.balanced = balanced
        self.min_leaf = min_leaf
        self.calibrated = calibrated
        self.copies_together = copies_together
        self.blank = blank

    def fit(self, Z: Array, y: np.ndarray) -> CrossFittedJudge:
        Z = self.blank(Z)
        self._Z, self._fold = Z, self._folds(Z, y)
        if self.balanced is not None:
            self._judges = self._fit_judges(Z, y, balanced=self.balanced)
            return self
        rare = bool(min(np.mean(y), 1 - np.mean(y)) < RARE)
        try:
            self._judges = self._fit_judges(Z, y, balanced=rare)
        except UserError:  # nobody is likelier than not, though the outcome is not that rare
            self._judges = self._fit_judges(Z, y, balanced=True)
        return self

    def _folds(self, Z: Array, y: np.ndarray) -> np.ndarray:
        """(n,) the fold of each row; every fold holds both outcomes."""
        place = np.arange(len(Z))
        if self.copies_together:
            place = np.unique(Z, axis=0, return_inverse=True)[1].reshape(-1)
        # of rows that are the same, the outcome that most of them had
        label = np.bincount(place, weights=y) > 0.5 * np.bincount(place)
        rng = np.random.default_rng(self.random_state)
        fold = np.zeros(len(label), dtype=int)
        for outcome in (False, True):
            rows = rng.permutation(np.flatnonzero(label == outcome))
            fold[rows] = np.arange(len(rows)) % self.n_folds
        return fold[place]

    def _fit_judges(self, Z: Array, y: np.ndarray, *, balanced: bool) -> list[Judge]:
        return [
            Judge(
                self.random_state + f,
                balanced=balanced,
                min_leaf=self.min_leaf,
                calibrated=self.calibrated,
            ).fit(Z[self._fold != f], y[self._fold != f])
            for f in range(self.n_folds)
        ]

    def __call__(self, Z: Array) -> tuple[Array, np.ndarray]:
        """(n,) probability of the favourable outcome, and (n,) booleans: inlier."""
        Z = self.blank(Z)
        fold = self._fold[_nearest(Z, self._Z)]
        probability, inlier = np.zeros(len(Z)), np.zeros(len(Z), dtype=bool)
        for f, judge in enumerate(self._judges):
            rows = np.flatnonzero(fold == f)
            if len(rows):
                probability[rows] = judge.probability(Z[rows])
                inlier[rows] = judge.inlier(Z[rows])
        return probability, inlier


def trust(probability: Array) -> Array:
    """How likely it is that a row is valid, if a judge gives the outcome this probability.

    A forest's probability is an estimate with an error of its own: 0.55 does not mean "valid".
    """
    return np.asarray(expit((probability - TRUST_AT) / TRUST_SCALE))


def _nearest(Z: Array, others: Array, block: int = 512) -> np.ndarray:
    if len(Z) == 0:
        return np.zeros(0, dtype=np.int64)
    table = torch.as_tensor(others)
    parts = [
        torch.cdist(torch.as_tensor(Z[i : i + block]), table, p=1.0).argmin(1)
        for i in range(0, len(Z), block)
    ]
    return torch.cat(parts).numpy()
