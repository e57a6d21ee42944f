"""The bootstrap: what a mean would have been, had other people stood in the table.

People are resampled; the model, the method and their plans are held fixed, so an interval speaks of
other people of the same kind and not of another model. Two things make it honest for small groups:

- A share is resampled with one more person who has it and one who has not, so that 20 of 20 is not
  taken for certainty (Agresti & Caffo 2000). A mean of amounts that are all alike gets the smallest
  and the largest of the table in their place. The value itself is as counted.
- The percentiles are farther apart than the level says, as Student's are than the normal ones
  (Hesterberg 2015, "expanded percentiles").
"""

from __future__ import annotations

from zlib import crc32

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from genrecourse.table.encoding import Array

CELLS = 4_000_000  # drawn at once: bounds memory


class Bootstrap:
    """Means of resampled people, for the columns of one table of numbers."""

    def __init__(self, values: Array, is_share: np.ndarray, n_boot: int, seed: int):
        """values: (n, m), NaN where a person does not count. is_share: (m,) booleans."""
        self.values, self.n_boot, self.seed = values, n_boot, seed
        self.is_share = is_share
        ends = np.array([_ends(column) for column in values.T]).reshape(-1, 2).T
        self._ends = np.where(is_share, [[0.0], [1.0]], ends)  # (2, m)
        self._done: dict[bytes, Array] = {}

    def means(self, members: np.ndarray) -> Array:
        """(n_boot, m); NaN where nobody counted. Depends on who the members are alone."""
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
    """The expanded percentile interval of one column of `Bootstrap.means`; n: people counted."""
    wide = np.sqrt(n / (n - 1)) * student.ppf(0.5 + level / 2, n - 1)
    tail = float(norm.cdf(-wide))
    low, high = np.nanquantile(means, [tail, 1 - tail])
    return float(low), float(high)


def difference(a: Array, b: Array, n: int, level: float, comparisons: int) -> float:
    """Half the width of the interval of a difference between means of other people, so that all of
    `comparisons` such intervals hold at once with this level (Bonferroni).

    a, b: columns of `Bootstrap.means`. n: people counted in the smaller group.
    """
    error = np.sqrt(np.nanvar(a, ddof=1) + np.nanvar(b, ddof=1))
    return float(student.ppf(1 - (1 - level) / (2 * comparisons), n - 1) * error)


def _counted(column: Array) -> Array:
    kept = column[~np.isnan(column)]
    return kept if len(kept) else np.zeros(1)


def _ends(column: Array) -> tuple[float, float]:
    kept = _counted(column)
    return float(kept.min()), float(kept.max())
