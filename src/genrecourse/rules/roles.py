"""What roles beyond mutable and immutable mean for rows: one place, for all methods.

A derived feature follows the features of its formula, and time moves an advancing one. Nobody
chooses either, so no method proposes them: they are carried over from x as immutables are, and
`DerivedFeatures.settle` brings them to where they will be before h, the verifier or a rule sees a row.

A protected feature decides no plan. Whatever learns or compares sees it blank (`ProtectedMask`); h alone,
which may have been built to read it, is shown each person's own value, and `read_by` tells if it
does.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from genrecourse.model.classifier import Classifier
from genrecourse.rules.relations import Possible
from genrecourse.table.encoding import TOLERANCE, Array, TableEncoder, unchanged
from genrecourse.table.schema import Schema

CLOSE = 1e-6  # share of a derived number that rounding of its parts may move it by
ASKED = 64  # rows by which it is told whether h reads a feature


class DerivedFeatures:
    """What moves by itself once a person acts, in the scaled feature view of an encoder."""

    def __init__(self, encoder: TableEncoder):
        schema, self.blocks = encoder.schema, encoder.blocks
        self.mask = np.array([feature.follows for feature in schema])  # (d,)
        places = {name: j for j, name in enumerate(schema.names)}
        self._horizon = {
            j: feature.horizon / self.blocks[j].span
            for j, feature in enumerate(schema)
            if feature.horizon is not None
        }
        self._formulas = {places[name]: f for name, f in schema.formulas().items()}
        self._parts = {j: [places[n] for n in f.names] for j, f in self._formulas.items()}
        self._names = schema.names
        self._decimals = {j: schema.features[j].decimals for j in self._formulas}

    def __bool__(self) -> bool:
        return bool(self.mask.any())

    @property
    def derived(self) -> list[int]:
        """Each after those that it is computed from."""
        return list(self._formulas)

    def settle(self, F: Array, F_plus: Array) -> Array:
        """F_plus (..., d) with everything that follows from what was changed in F (..., d).

        Who changes nothing does not advance. A derived value is computed anew where one of its
        parts has moved, and is else as x has it: a table's own value may differ from its formula by
        what was rounded.
        """
        if not self:
            return F_plus
        F, F_plus = np.broadcast_arrays(F, F_plus)
        settled = np.where(self.mask, F, F_plus)
        acted = ~self._same(F, settled).all(axis=-1)
        for j, horizon in self._horizon.items():
            settled[..., j] = np.where(acted, F[..., j] + horizon, F[..., j])
        for j in self._formulas:
            moved = self._parts_moved(j, F, settled)
            settled[..., j] = np.where(moved, self._computed(j, settled), F[..., j])
        return settled

    def ahead(self, F_plus: Array) -> Array:
        """Rows in which what follows is still as x has it, for those who do not know x: settled as
        if every part of every formula had moved."""
        ahead = F_plus.copy()
        for j, horizon in self._horizon.items():
            ahead[..., j] += horizon
        for j in self._formulas:
            ahead[..., j] = self._computed(j, ahead)
        return ahead

    def agree(self, F: Array, F_plus: Array) -> np.ndarray:
        """(...) booleans: is everything that follows where it has to be?"""
        answer = np.ones(np.broadcast_shapes(F.shape, F_plus.shape)[:-1], dtype=bool)
        if not self:
            return answer
        expected = self.settle(F, F_plus)
        for j in map(int, np.flatnonzero(self.mask)):
            answer &= self.is_at(j, expected[..., j], F_plus[..., j])
        return answer

    def is_at(self, j: int, expected: Array, value: Array) -> np.ndarray:
        """Is feature j where it has to be, up to what its decimals and dtypes round?"""
        with np.errstate(invalid="ignore"):
            close = np.abs(expected - value) <= self._slack(j, expected)
        return np.asarray(close | (np.isnan(expected) & np.isnan(value)))

    def possible(self, j: int, x: Array) -> Possible:
        """What feature j may be, as long as it is not known what else changes."""
        if j not in self._horizon:
            return Possible(np.full(x.shape, -np.inf), np.full(x.shape, np.inf))
        return Possible(x, x + self._horizon[j])

    def _slack(self, j: int, value: Array) -> Array:
        block, decimals = self.blocks[j], self._decimals.get(j)
        if j in self._horizon:
            return np.full(value.shape, block.slack)
        unit = 0.0 if decimals is None else 10.0**-decimals  # a half may be rounded either way
        size = np.abs(value) + np.abs(block.low / block.span + value)  # of a number far from zero
        return block.slack + unit / block.span + CLOSE * (1.0 + size)

    def _parts_moved(self, j: int, F: Array, F_plus: Array) -> np.ndarray:
        return np.asarray(~self._same(F, F_plus)[..., self._parts[j]].all(axis=-1))

    def _same(self, F: Array, F_plus: Array) -> np.ndarray:
        """`unchanged`, and what single precision cannot tell apart is the same cell too."""
        same = unchanged(F, F_plus)
        for j, block in enumerate(self.blocks):
            if block.single:
                same[..., j] |= block.cells(F[..., j]) == block.cells(F_plus[..., j])
        return same

    def _computed(self, j: int, F: Array) -> Array:
        """The formula of feature j, scaled and with the feature's decimals."""
        values = {
            self._names[k]: self.blocks[k].low + F[..., k] * self.blocks[k].span
            for k in self._parts[j]
        }
        found, decimals = self._formulas[j](values), self._decimals[j]
        if decimals is not None:
            found = np.round(found, decimals)
        return np.asarray((found - self.blocks[j].low) / self.blocks[j].span)


class ProtectedMask:
    """Rows without their protected features: the same value stands there for everybody."""

    def __init__(self, encoder: TableEncoder):
        self.mask = np.array([feature.role == "protected" for feature in encoder.schema])
        self.columns = np.zeros(encoder.width, dtype=bool)  # of Z
        for block, blank in zip(encoder.blocks, self.mask, strict=True):
            self.columns[block.columns] = blank

    def __bool__(self) -> bool:
        return bool(self.mask.any())

    def features(self, F: Array) -> Array:
        return np.where(self.mask, 0.0, F) if self else F

    def rows(self, Z: Array) -> Array:
        return np.where(self.columns, 0.0, Z) if self else Z


def read_by(h: Classifier, schema: Schema, X: pd.DataFrame) -> dict[str, float]:
    """For each protected feature that h reads: the share of rows whose score hangs on it.

    Asked of at most `ASKED` rows, spread over the table, with every other value that the feature
    takes in them. What is not read on these rows may still be read on others.
    """
    if not schema.protected:
        return {}
    some = X.iloc[np.linspace(0, len(X) - 1, min(len(X), ASKED)).astype(int)]
    own = h.score(some)
    return {
        name: share
        for name in schema.protected
        if (share := float(_hangs_on(h, some, name, own).mean())) > 0
    }


def _hangs_on(h: Classifier, X: pd.DataFrame, name: str, own: Array) -> np.ndarray:
    low, high = h.score_range
    hangs = np.zeros(len(X), dtype=bool)
    for value in _some(X[name].drop_duplicates()):
        other = X.assign(**{name: pd.Series([value] * len(X), X.index, dtype=X[name].dtype)})
        hangs |= np.abs(h.score(other) - own) > TOLERANCE * (high - low)
    return hangs


def _some(values: pd.Series, most: int = 8) -> Iterable[object]:
    return values.iloc[np.linspace(0, len(values) - 1, min(len(values), most)).astype(int)]
