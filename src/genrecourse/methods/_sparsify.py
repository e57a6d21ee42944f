"""Fewer changes: undo changes that h does not need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from genrecourse.methods._gradient_search import SURELY

if TYPE_CHECKING:
    from genrecourse.table.cost import Cost
    from genrecourse.table.encoding import Array, TableEncoder


def undo_needless(
    Z: Array,
    Z_plus: Array,
    encoder: TableEncoder,
    cost: Cost,
    confidence: Callable[[Array], Array],
) -> Array:
    """Return (n, D): Z_plus without the changes that h does not need.

    The changes of each row are tried one after the other, the cheapest first. The values of x break
    no rule. A row that h rejects is not changed.
    """
    if len(Z) == 0:
        return Z_plus
    F, F_plus = encoder.to_features(Z), encoder.to_features(Z_plus)
    price = cost.by_feature(Z, Z_plus)
    order = np.argsort(price, axis=1, kind="stable")
    valid = confidence(Z_plus) > SURELY
    for feature in order.T:
        rows = np.flatnonzero(valid & (price[np.arange(len(Z)), feature] > 0))
        if len(rows) == 0:
            continue
        trial = F_plus[rows]
        trial[np.arange(len(rows)), feature[rows]] = F[rows, feature[rows]]
        ok = confidence(encoder.from_features(trial)) > SURELY
        F_plus[rows[ok]] = trial[ok]
    return encoder.from_features(F_plus)
