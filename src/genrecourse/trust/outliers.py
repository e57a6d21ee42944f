"""Outliers: local outlier factors, which compare a row's density with that of its neighbours.

For k neighbours, where d_k(o) is the distance of a row o to its own k-th neighbour:

    reach(z, o) = max(d_k(o), |z - o|)      density_k(z) = 1 / mean of reach over z's k neighbours
    score_k(z)  = 1.5 - mean of density_k(o) / density_k(z)      negative for outliers

This is scikit-learn's `decision_function`; a test compares the two. Here one neighbour search
serves all values of k, because the search takes most of the time of verifying.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import KDTree

from genrecourse.model.threads import WORTHWHILE, n_threads

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array

THREADS_FROM = 500  # rows of a query above which several threads search
INLIER = 1.5  # scikit-learn's offset: a row is an outlier if its neighbours are 1.5 times as dense


class Outliers:
    """Local outlier factors on `rows` (n, D), for several numbers of neighbours at once.

    Examples:
        >>> rows = np.arange(10.0)[:, None]
        >>> scores = Outliers(rows, neighbours=(2, 3))(np.array([[4.4], [30.0]]))
        >>> scores > 0  # one column for each number of neighbours
        array([[ True,  True],
               [False, False]])
    """

    def __init__(self, rows: Array, neighbours: tuple[int, ...]):
        self.rows = rows
        # a row is not its own neighbour, so there are at most len(rows) - 1
        self.neighbours = tuple(min(k, len(rows) - 1) for k in neighbours)
        # with a tree, the result of a row does not depend on the other rows of the query
        self._tree = KDTree(rows)
        distance, place = self._others(rows)
        self._reach = {k: distance[:, k - 1] for k in self.neighbours}
        self._density = {k: self._densities(k, distance, place) for k in self.neighbours}

    def __call__(self, Z: Array) -> Array:
        """Return (n, len(neighbours)) scores; an outlier has a score below 0."""
        if len(Z) == 0:
            return np.zeros((0, len(self.neighbours)))
        distance, place = self._nearest(Z, max(self.neighbours))
        scores = [
            INLIER
            - self._density[k][place[:, :k]].mean(axis=1) / self._densities(k, distance, place)
            for k in self.neighbours
        ]
        return np.stack(scores, axis=1)

    def _nearest(self, Z: Array, k: int) -> tuple[Array, np.ndarray]:
        """Return (n, k) the distances of the nearest rows, and their places."""
        is_large = len(self.rows) >= WORTHWHILE and len(Z) >= THREADS_FROM
        workers = n_threads() if is_large else 1
        distance, place = self._tree.query(Z, k=np.arange(1, k + 1), workers=workers)
        return np.asarray(distance), np.asarray(place)

    def _others(self, rows: Array) -> tuple[Array, np.ndarray]:
        """Return the nearest other rows of each row: itself is left out, wherever it stands."""
        k = max(self.neighbours)
        distance, place = self._nearest(rows, k + 1)
        itself = place == np.arange(len(rows))[:, None]
        itself[~itself.any(axis=1), -1] = True  # more copies than neighbours: leave one of them out
        return distance[~itself].reshape(-1, k), place[~itself].reshape(-1, k)

    def _densities(self, k: int, distance: Array, place: np.ndarray) -> Array:
        reach = np.maximum(self._reach[k][place[:, :k]], distance[:, :k])
        return np.asarray(1.0 / (reach.mean(axis=1) + 1e-10))  # the reach of duplicates is 0
