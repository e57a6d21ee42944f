"""C(x, x_plus): the price of moving from x to x_plus, and nothing else.

    C(x, x+) = sum_j weight_j * |z_j - z+_j|     a number, on the [0, 1] scale
             + sum_j weight_j * [level differs]  a category, and a number that was missing

It is a weighted L1 distance in Z, so one formula serves numpy and torch, single pairs and blocks,
and stays differentiable where a search relaxes the categories. What moves by itself (a ratio, time)
is paid for where it is made to move, and so costs nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from genrecourse.table.encoding import TableEncoder


class Cost:
    """Prices rows of Z as an encoder lays them out, with the schema's cost weights."""

    def __init__(self, encoder: TableEncoder):
        self.n_features = len(encoder.blocks)
        weights = np.zeros(encoder.width)
        self._flagged: list[int] = []  # value columns whose next column says "missing"
        for feature, block in zip(encoder.schema, encoder.blocks, strict=True):
            # two one-hot columns differ when a level changes: each counts one half
            share = 0.5 if block.is_onehot else 1.0
            weights[block.columns] = share * feature.price
            if block.has_flag:
                self._flagged.append(block.start)
        self.weights = weights
        self._starts = [block.start for block in encoder.blocks]

    def __call__(self, Z: Any, Z_plus: Any) -> Any:
        """(..., D), (..., D) -> (...): numpy in, numpy out; torch in, torch out."""
        return self._by_column(Z, Z_plus).sum(-1)

    def by_feature(self, Z: np.ndarray, Z_plus: np.ndarray) -> np.ndarray:
        """(n, D), (n, D) -> (n, d): what each feature's change costs."""
        return np.add.reduceat(self._by_column(Z, Z_plus), self._starts, axis=-1)

    def _by_column(self, Z: Any, Z_plus: Any) -> Any:
        gap = abs(Z - Z_plus)
        if self._flagged:
            # a value counts only where both rows have one; otherwise the flag's 0/1 says it all
            present = gap * 0 + 1
            for c in self._flagged:
                present[..., c] = (1 - Z[..., c + 1]) * (1 - Z_plus[..., c + 1])
            gap = gap * present
        is_torch = isinstance(gap, torch.Tensor)
        weights = torch.as_tensor(self.weights, dtype=gap.dtype) if is_torch else self.weights
        return gap * weights

    def pairwise(self, Z: torch.Tensor, Z_plus: torch.Tensor) -> torch.Tensor:
        """(n, D), (m, D) -> (n, m). The same numbers as __call__, without an (n, m, D) array."""
        weights = torch.as_tensor(self.weights, dtype=Z.dtype).clone()
        weights[self._flagged] = 0.0
        total = torch.cdist(Z * weights, Z_plus * weights, p=1.0)
        for c in self._flagged:
            both = (1 - Z[:, c + 1])[:, None] * (1 - Z_plus[:, c + 1])[None, :]
            total += self.weights[c] * both * (Z[:, c][:, None] - Z_plus[:, c][None, :]).abs()
        return total
