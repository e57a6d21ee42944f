"""C(x, x_plus): the cost of moving from x to x_plus.

    C(x, x+) = sum_j weight_j * |s_j - s+_j|     a number
             + sum_j weight_j * [level differs]  a category, or a number missing in one of the rows

The schema says for each number what s is (`Feature.cost`):

    range     z, its share of the training range: the paper's cost, and the default
    quantile  the share of the training rows below it: |s - s+| is how many people one overtakes

The cost is a weighted L1 distance, in Z but for quantiles. So one formula serves numpy and torch,
single pairs and blocks, and it stays differentiable when a search relaxes the categories. Derived
and advancing features cost nothing: the person pays for the changes that move them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from genrecourse.table.encoding import TableEncoder
    from genrecourse.table.quantiles import Quantiles


class Cost:
    """Computes the cost between rows of Z, with the weights and scales of the encoder's schema.

    protocol: measure every number by its range, whatever the schema says, as the paper's
        evaluation does; so methods that search by other costs are compared on one scale.

    Examples:
        >>> from genrecourse.table.encoding import TableEncoder
        >>> import pandas as pd
        >>> from genrecourse import Schema
        >>> X = pd.DataFrame({"income": [10, 20, 30], "town": ["a", "b", "c"]})
        >>> encoder = TableEncoder(Schema.infer(X)).fit(X)
        >>> Z = encoder.encode(X)
        >>> cost = Cost(encoder)
        >>> cost(Z[0], Z[1]).item()  # half of the income range, and another town
        1.5
        >>> cost.by_feature(Z[:1], Z[1:2])
        array([[0.5, 1. ]])
        >>> X = pd.DataFrame({"income": [10, 11, 12, 1000]})
        >>> encoder = TableEncoder(Schema.infer(X, cost="quantile")).fit(X)
        >>> Z = encoder.encode(X)
        >>> Cost(encoder)(Z[0], Z).tolist()  # each step overtakes a quarter of the people
        [0.0, 0.25, 0.5, 0.75]
        >>> Cost(encoder, protocol=True)(Z[0], Z).round(3).tolist()
        [0.0, 0.001, 0.002, 1.0]
    """

    def __init__(self, encoder: TableEncoder, *, protocol: bool = False):
        self.n_features = len(encoder.blocks)
        weights = np.zeros(encoder.width)
        self._flagged: list[int] = []  # value columns that a 0/1 "is missing" column follows
        for feature, block in zip(encoder.schema, encoder.blocks, strict=True):
            # a change of level changes two one-hot columns, so each counts one half
            share = 0.5 if block.is_onehot else 1.0
            weights[block.columns] = share * feature.price
            if block.has_flag:
                self._flagged.append(block.start)
        self.weights = weights
        self._starts = [block.start for block in encoder.blocks]
        self._quantiles = {} if protocol else _quantiles(encoder)

    def __call__(self, Z: Any, Z_plus: Any) -> Any:
        """Return the cost of each pair: (..., D), (..., D) -> (...).

        The result is a numpy array for numpy input and a tensor for torch input.
        """
        return self._by_column(Z, Z_plus).sum(-1)

    def by_feature(self, Z: np.ndarray, Z_plus: np.ndarray) -> np.ndarray:
        """Return the cost of each feature's change: (n, D), (n, D) -> (n, d)."""
        return np.add.reduceat(self._by_column(Z, Z_plus), self._starts, axis=-1)

    def _by_column(self, Z: Any, Z_plus: Any) -> Any:
        gap = abs(self._standing(Z) - self._standing(Z_plus))
        if self._flagged:
            # compare values only if both rows have one; otherwise the flag column holds the cost
            present = gap * 0 + 1
            for c in self._flagged:
                present[..., c] = (1 - Z[..., c + 1]) * (1 - Z_plus[..., c + 1])
            gap = gap * present
        is_torch = isinstance(gap, torch.Tensor)
        weights = torch.as_tensor(self.weights, dtype=gap.dtype) if is_torch else self.weights
        return gap * weights

    def _standing(self, Z: Any) -> Any:
        """Return Z (..., D) on the scales on which changes are paid."""
        if not self._quantiles:
            return Z
        moved = Z.clone() if isinstance(Z, torch.Tensor) else Z.copy()
        for c, quantiles in self._quantiles.items():
            moved[..., c] = quantiles(Z[..., c])
        return moved

    def pairwise(self, Z: torch.Tensor, Z_plus: torch.Tensor) -> torch.Tensor:
        """Return the cost of every pair: (n, D), (m, D) -> (n, m).

        The numbers equal those of `__call__`, but no array of shape (n, m, D) is made.
        """
        weights = torch.as_tensor(self.weights, dtype=Z.dtype).clone()
        weights[self._flagged] = 0.0
        Z, Z_plus = self._standing(Z), self._standing(Z_plus)
        total = torch.cdist(Z * weights, Z_plus * weights, p=1.0)
        for c in self._flagged:
            both = (1 - Z[:, c + 1])[:, None] * (1 - Z_plus[:, c + 1])[None, :]
            total += self.weights[c] * both * (Z[:, c][:, None] - Z_plus[:, c][None, :]).abs()
        return total


def _quantiles(encoder: TableEncoder) -> dict[int, Quantiles]:
    """Return the quantiles of each column of Z whose changes are paid by people overtaken."""
    return {b.start: b.quantiles for b in encoder.blocks if b.quantiles is not None}
