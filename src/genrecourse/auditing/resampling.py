"""The bootstrap: how a mean would vary if the table had other people.

People are resampled; the model, the method and the plans stay the same. So an interval describes
other people of the same kind, not another model. Two corrections are made for small groups:

- For a share, one person with the value 1 and one with the value 0 are added before resampling, so
  that 20 of 20 does not look certain (Agresti & Caffo 2000). If all amounts of a group are equal,
  the smallest and the largest amount of the table are added instead. The reported mean does not
  include the added people.
- The percentiles are wider than the nominal level, as Student's quantiles are wider than normal
  quantiles (Hesterberg 2015, "expanded percentiles").
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array

CELLS = 4_000_000  # draws at once: bounds memory


class Bootstrap:
    """Means over resampled people, for the columns of one table of numbers.

    >>> values = np.array([[1.0], [0.0], [1.0], [1.0]])
    >>> draws = Bootstrap(values, np.array([True]), n_boot=200, seed=0)
    >>> draws.means(np.ones(4, dtype=bool)).shape
    (200, 1)
    """

    def __init__(self, values: Array, is_share: np.ndarray, n_boot: int, seed: int):
        """values: (n, m), NaN if a person does not count. is_share: (m,) booleans."""
        self.values, self.n_boot, self.seed = values, n_boot, seed
        self.is_share = is_share
        ends = np.array([_ends(column) for column in values.T]).reshape(-1, 2).T
        self._ends = np.where(is_share, [[0.0], [1.0]], ends)  # (2, m)
        self._done: dict[bytes, Array] = {}

    def means(self, members: np.ndarray) -> Array:
        """Return (n_boot, m) means; NaN if nobody counts. The draws depend only on the members."""
        key = members.tobytes()
        if key not in self._done:
            rng = np.random.default_rng([self.seed, crc32(key)])
            self._done[key] = self._means(self.values[members], rng)
        return self._done[key]

    def _means(self, values: Array, rng: np.random.Generator) -> Array:
        alike = np.array([np.ptp(_counted(column)) == 0 for column in values.T])
        more = np.where(self.is_share | alike, self._ends, np.nan)
        rows = np.concatenate([values, more])
        counts, parts = ~np.isnan(rows), []
        n, size = len(rows), max(1, CELLS // len(rows))
        for start in range(0, self.n_boot, size):
            k = min(size, self.n_boot - start)
            drawn = rng.integers(n, size=(k, n)) + n * np.arange(k)[:, None]
            times = np.bincount(drawn.reshape(-1), minlength=k * n).reshape(k, n).astype(float)
            with np.errstate(invalid="ignore"):
                parts.append((times @ np.nan_to_num(rows)) / (times @ counts.astype(float)))
        return np.concatenate(parts)


def interval(means: Array, n: int, level: float) -> tuple[float, float]:
    """Return the expanded percentile interval of one column of `Bootstrap.means`.

    n: the number of people who count.

    >>> low, high = interval(np.linspace(0, 1, 1001), n=50, level=0.95)
    >>> round(low, 2), round(high, 2)
    (0.02, 0.98)
    """
    wide = np.sqrt(n / (n - 1)) * student.ppf(0.5 + level / 2, n - 1)
    tail = float(norm.cdf(-wide))
    low, high = np.nanquantile(means, [tail, 1 - tail])
    return float(low), float(high)


def difference(a: Array, b: Array, n: int, level: float, comparisons: int) -> float:
    """Return half the width of the interval of a difference between two means.

    All `comparisons` intervals hold at once with this level (Bonferroni).

    a, b: columns of `Bootstrap.means`, of different people.
    n: the number of people who count in the smaller group.

    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 0.1, 500), rng.normal(0, 0.1, 500)
    >>> difference(a, b, 50, 0.95, comparisons=1) < difference(a, b, 50, 0.95, comparisons=10)
    True
    """
    error = np.sqrt(np.nanvar(a, ddof=1) + np.nanvar(b, ddof=1))
    return float(student.ppf(1 - (1 - level) / (2 * comparisons), n - 1) * error)


def _counted(column: Array) -> Array:
    kept = column[~np.isnan(column)]
    return kept if len(kept) else np.zeros(1)


def _ends(column: Array) -> tuple[float, float]:
    kept = _counted(column)
    return float(kept.min()), float(kept.max())
