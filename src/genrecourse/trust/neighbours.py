"""Neighbours: distances from rows to a fixed set of rows of Z, measured by the cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch

from genrecourse.table.encoding import TOLERANCE, Array

if TYPE_CHECKING:
    from genrecourse.table.cost import Cost

BLOCK_ENTRIES = 2_000_000  # distances computed at once: 16 MB for each array


class Neighbours:
    """Rows of Z to which other rows are compared; the distance is the cost.

    Examples:
        >>> from genrecourse.table.cost import Cost
        >>> import pandas as pd
        >>> from genrecourse import Schema
        >>> from genrecourse.table.encoding import TableEncoder
        >>> X = pd.DataFrame({"income": [0, 40, 100]})
        >>> encoder = TableEncoder(Schema.infer(X)).fit(X)
        >>> near = Neighbours(encoder.encode(X), Cost(encoder))
        >>> distance, row = near.nearest(np.array([[0.5]]))
        >>> distance.round(2), row
        (array([0.1]), array([1]))
    """

    def __init__(self, Z: Array, cost: Cost):
        self.Z = Z
        self._rows = torch.as_tensor(Z)
        self._cost = cost

    def nearest(self, Z: Array) -> tuple[Array, np.ndarray]:
        """Return (n,) distances to the nearest row, and (n,) the number of that row."""
        found = [distance.min(dim=1) for distance in self._distances(Z)]
        return _joined([d for d, _ in found]), _joined([place for _, place in found])

    def holds(self, Z: Array) -> np.ndarray:
        """Return (n,) booleans: True if the row is equal to one of the rows."""
        same = np.abs(Z - self.Z[self.nearest(Z)[1]]) <= TOLERANCE
        return np.asarray(same.all(axis=1))

    def mean_distance(self, Z: Array, k: int) -> Array:
        """Return (n,) mean distances to the k nearest rows, or to all rows if there are fewer."""
        return _joined([self._smallest(d, k).mean(dim=1) for d in self._distances(Z)])

    def share(self, Z: Array, of: np.ndarray, k: int) -> Array:
        """Return (n,) the share of the k nearest rows for which `of` (booleans over rows) is True.

        Rows at the same distance as the k-th count with equal fractions, so that the result does
        not depend on the order of the rows.
        """
        k = min(k, len(self.Z))
        one = torch.as_tensor(of, dtype=torch.float64)
        shares = []
        for distance in self._distances(Z):
            last = self._smallest(distance, k)[:, -1:]
            nearer = (distance < last - TOLERANCE).double()
            tied = (distance <= last + TOLERANCE).double() - nearer
            left = (k - nearer.sum(dim=1)) / tied.sum(dim=1)
            shares.append((nearer @ one + left * (tied @ one)) / k)
        return _joined(shares)

    def _smallest(self, distance: torch.Tensor, k: int) -> torch.Tensor:
        return distance.topk(min(k, len(self.Z)), dim=1, largest=False).values

    def _distances(self, Z: Array) -> Iterator[torch.Tensor]:
        """Yield distances in blocks (b, rows), since all at once would not fit into memory."""
        size = max(1, BLOCK_ENTRIES // len(self.Z))
        for i in range(0, len(Z), size):
            yield self._cost.pairwise(torch.as_tensor(Z[i : i + size]), self._rows)


def _joined(parts: list[torch.Tensor]) -> np.ndarray:
    return torch.cat(parts).numpy() if parts else np.zeros(0)
