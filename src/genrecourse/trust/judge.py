"""Judge: decides whether an x_plus is valid and plausible.

A calibrated random forest decides whether the favourable outcome has a probability above one half.
A local outlier factor, fitted on the rows that the forest accepts, decides whether x_plus looks
like accepted people. Inside `fit` a method uses `CrossFittedJudge`, which scores no row with a
judge that was fitted on it. The gold judge of an evaluation, which no method may see, is in
`evaluation/gold.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import LocalOutlierFactor
from sklearn.utils.class_weight import compute_sample_weight

from genrecourse.errors import UserError
from genrecourse.model.locks import without_warnings
from genrecourse.model.threads import n_jobs
from genrecourse.table.encoding import Array, as_it_is

N_NEIGHBORS = 5
TRUST_AT, TRUST_SCALE = 0.45, 0.08  # turn a probability into how often another judge accepts
RARE = 0.1  # an outcome rarer than this hardly ever has a probability above 1/2: balance classes
N_CALIBRATION_FOLDS = 5


class Judge:
    """A random forest and a local outlier factor on rows of Z.

    The defaults are those of the gold judge of the evaluation protocol. For noisy labels, a
    `min_leaf` above 1 without calibration gives a more stable and faster forest.

    Args:
        random_state: the seed of the forest.
        balanced: whether to give both outcomes the same total weight.
        min_leaf: the smallest number of rows in a leaf.
        calibrated: whether to calibrate the forest's probabilities.
        n_trees: the number of trees.

    Examples:
        >>> Z = np.random.default_rng(0).uniform(size=(60, 2))
        >>> judge = Judge(min_leaf=5, calibrated=False).fit(Z, Z[:, 0] > 0.5)
        >>> judge.valid(np.array([[0.1, 0.5], [0.9, 0.5]]))
        array([False,  True])
        >>> judge.inlier(np.array([[0.8, 0.5], [9.0, 9.0]]))
        array([ True, False])
    """

    def __init__(
        self,
        random_state: int = 0,
        *,
        balanced: bool = True,
        min_leaf: int = 1,
        calibrated: bool = True,
        n_trees: int = 100,
    ):
        self.random_state = random_state
        self.balanced = balanced
        self.min_leaf = min_leaf
        self.calibrated = calibrated
        self.n_trees = n_trees

    def fit(self, Z: Array, y: np.ndarray) -> Judge:
        """Fit on rows Z (n, D) and outcomes y (n,), True if favourable."""
        favourable, least = int(np.sum(y)), N_CALIBRATION_FOLDS if self.calibrated else 1
        if not least <= favourable <= len(y) - least:
            raise UserError(
                f"{favourable} of the {len(y)} rows for a judge are favourable; it needs at least "
                f"{least} of each outcome, so give more rows"
            )
        self.forest_ = RandomForestClassifier(
            n_estimators=self.n_trees,
            min_samples_leaf=self.min_leaf,
            random_state=self.random_state,
            n_jobs=n_jobs(len(Z)),
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
                f"a judge fitted on {len(Z)} rows accepts {int(accepted.sum())} of them; give more "
                "rows with a favourable outcome, so that it can learn what accepted people look "
                "like"
            )
        self.lof_ = fit_lof(Z[accepted])
        return self

    def probability(self, Z: Array) -> Array:
        """Return (n,) probabilities of the favourable outcome."""
        # the threads of the forest add its votes in any order: round their errors away
        return np.round(self.forest_.predict_proba(Z)[:, 1], 12)

    def valid(self, Z: Array) -> np.ndarray:
        """Return (n,) booleans: True if the favourable outcome has a probability above 1/2."""
        return self.probability(Z) > 0.5

    def inlier(self, Z: Array) -> np.ndarray:
        """Return (n,) booleans: True if the row looks like the rows that the forest accepts."""
        return np.asarray(self.lof_.predict(Z) == 1)


def fit_lof(Z: Array, n_neighbors: int = N_NEIGHBORS) -> LocalOutlierFactor:
    """Return a local outlier factor fitted on rows of Z. The evaluation protocol uses 5 neighbours.

    Examples:
        >>> lof = fit_lof(np.random.default_rng(0).uniform(size=(30, 2)))
        >>> lof.predict(np.array([[0.5, 0.5], [9.0, 9.0]]))  # 1: inlier, -1: outlier
        array([ 1, -1])
    """
    # with a tree, the result of a row does not depend on the other rows of the query
    lof = LocalOutlierFactor(
        n_neighbors=min(n_neighbors, len(Z) - 1),
        novelty=True,
        algorithm="kd_tree",
        n_jobs=n_jobs(len(Z)),
    )
    # duplicate rows mislead a LOF with few neighbours, but the protocol prescribes five
    with without_warnings("Duplicate values"):
        return lof.fit(Z)


class CrossFittedJudge:
    """One judge for each fold of the training rows; it is fitted on the other folds.

    A training row is scored by the judge that was not fitted on it. Any other row is scored by the
    judge that was not fitted on the nearest training row, since generated rows are often near
    copies of training rows.

    The defaults suit noisy outcomes: leaves of five rows, no calibration, and no class weights
    unless one outcome is rare.

    Args:
        random_state: the seed of the folds and forests.
        n_folds: the number of folds.
        balanced: as in `Judge`. None: balanced only if one outcome is rare.
        min_leaf: as in `Judge`.
        calibrated: as in `Judge`.
        n_trees: as in `Judge`.
        copies_together: whether equal rows are in the same fold, so that no judge is fitted on a
            copy of the nearest training row.
        blank: hides columns that must not be used (`roles.ProtectedMask`).

    Examples:
        >>> Z = np.random.default_rng(0).uniform(size=(100, 2))
        >>> judge = CrossFittedJudge(n_folds=2).fit(Z, Z[:, 0] > 0.5)
        >>> probability, inlier = judge(np.array([[0.1, 0.5], [0.9, 0.5]]))
        >>> probability > 0.5
        array([False,  True])
    """

    def __init__(
        self,
        random_state: int = 0,
        *,
        n_folds: int = 5,
        balanced: bool | None = None,
        min_leaf: int = 5,
        calibrated: bool = False,
        n_trees: int = 100,
        copies_together: bool = False,
        blank: Callable[[Array], Array] = as_it_is,
    ):
        self.random_state = random_state
        self.n_folds = n_folds
        self.balanced = balanced
        self.min_leaf = min_leaf
        self.calibrated = calibrated
        self.n_trees = n_trees
        self.copies_together = copies_together
        self.blank = blank

    def fit(self, Z: Array, y: np.ndarray) -> CrossFittedJudge:
        """Fit on rows Z (n, D) and outcomes y (n,), True if favourable."""
        Z = self.blank(Z)
        self._Z, self._fold = Z, self._folds(Z, y)
        if self.balanced is not None:
            self._judges = self._fit_judges(Z, y, balanced=self.balanced)
            return self
        rare = bool(min(np.mean(y), 1 - np.mean(y)) < RARE)
        try:
            self._judges = self._fit_judges(Z, y, balanced=rare)
        except UserError:  # a judge accepted no row, though the outcome is not that rare
            self._judges = self._fit_judges(Z, y, balanced=True)
        return self

    def _folds(self, Z: Array, y: np.ndarray) -> np.ndarray:
        """Return (n,) the fold of each row. Both outcomes are spread evenly over the folds."""
        place = np.arange(len(Z))
        if self.copies_together:
            place = np.unique(Z, axis=0, return_inverse=True)[1].reshape(-1)
        # equal rows count as one row, with the outcome of the majority
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
                n_trees=self.n_trees,
            ).fit(Z[self._fold != f], y[self._fold != f])
            for f in range(self.n_folds)
        ]

    def __call__(self, Z: Array) -> tuple[Array, np.ndarray]:
        """Return (n,) probabilities of the favourable outcome, and (n,) booleans: inlier."""
        Z = self.blank(Z)
        return self._scored(Z, self._fold[_nearest(Z, self._Z)])

    def of_table(self, Z: Array) -> tuple[Array, np.ndarray]:
        """Return the same for rows of the table that the judges were fitted on some rows of.

        No judge was fitted on a row that was left out, so any of them may score it. This spares a
        search for the nearest row, which takes time that grows with the square of the rows.
        """
        Z = self.blank(Z)
        place = _equal(Z, self._Z)
        fold = np.where(place < 0, np.arange(len(Z)) % self.n_folds, self._fold[place])
        return self._scored(Z, fold)

    def _scored(self, Z: Array, fold: np.ndarray) -> tuple[Array, np.ndarray]:
        """Return what the judge of each row's fold says of it."""
        probability, inlier = np.zeros(len(Z)), np.zeros(len(Z), dtype=bool)
        for f, judge in enumerate(self._judges):
            rows = np.flatnonzero(fold == f)
            if len(rows):
                probability[rows] = judge.probability(Z[rows])
                inlier[rows] = judge.inlier(Z[rows])
        return probability, inlier


def trust(probability: Array) -> Array:
    """Return how likely another judge finds a row valid, given this judge's probability.

    A forest's probability is an estimate with an error, so 0.55 does not ensure "valid".

    Examples:
        >>> trust(np.array([0.3, 0.55, 0.9])).round(2)
        array([0.13, 0.78, 1.  ])
    """
    return np.asarray(expit((probability - TRUST_AT) / TRUST_SCALE))


def _nearest(Z: Array, others: Array, block: int = 512) -> np.ndarray:
    """Return (n,) the place of the nearest of the other rows, the first one if several are."""
    found = _equal(Z, others)
    rest = np.flatnonzero(found < 0)  # not equal to any row: the distances decide
    table = torch.as_tensor(others)
    for i in range(0, len(rest), block):
        some = rest[i : i + block]
        found[some] = torch.cdist(torch.as_tensor(Z[some]), table, p=1.0).argmin(1).numpy()
    return found


def _equal(Z: Array, others: Array) -> np.ndarray:
    """Return (n,) the place of the first of the other rows that is equal, or -1."""
    first = {row.tobytes(): place for place, row in reversed(list(enumerate(others)))}
    return np.array([first.get(row.tobytes(), -1) for row in Z], dtype=np.int64)
