"""Outliers: how far a row lies from the rows it should be like, by local outlier factors.

For k neighbours, with d_k(o) the distance of a row o to its own k-th neighbour,

    reach(z, o) = max(d_k(o), |z - o|)      density_k(z) = 1 / mean of reach over z's k neighbours
    score_k(z)  = 1.5 - mean of density_k(o) / density_k(z)      negative for outliers

which is scikit-learn's `decision_function` (a test holds the two together). Here one search
answers every k at once, and the search is what verifying costs.
"""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from genrecourse.model.threads import n_jobs
from genrecourse.table.encoding import Array

INLIER = 1.5  # scikit-learn's offset: a row 1.5 times as lonely as its neighbours is an outlier


class Outliers:
    """Local outlier factors of several numbers of neighbours among `rows`, (n, D)."""

    def __init__(self, rows: Array, neighbours: tuple[int, ...]):
        self.rows = rows
        # a row is not its own neighbour
        self.neighbours = tuple(min(k, len(rows) - 1) for k in neighbours)
        # a tree answers each row by itself: the answer does not depend on the rows beside it
        self._index = NearestNeighbors(
            n_neighbors=max(self.neighbours), algorithm="kd_tree", n_jobs=n_jobs(len(rows))
        ).fit(rows)
        distance, place = self._index.kneighbors()
        self._reach = {k: distance[:, k - 1] for k in self.neighbours}
        self._density = {k: self._densities(k, distance, place) for k in self.neighbours}

    def __call__(self, Z: Array) -> Array:
        """(n, len(neighbours)) scores; below 0 an outlier."""
        if len(Z) == 0:
            return np.zeros((0, len(self.neighbours)))
        distance, place = self._index.kneighbors(Z)
        scores = [
            INLIER
            - self._density[k][place[:, :k]].mean(axis=1) / self._densities(k, distance, place)
            for k in self.neighbours
        ]
        return np.stack(scores, axis=1)

    def _densities(self, k: int, distance: Array, place: np.ndarray) -> Array:
        reach = np.maximum(self._reach[k][place[:, :k]], distance[:, :k])
        return np.asarray(1.0 / (reach.mean(axis=1) + 1e-10))  # duplicates have no reach at all
