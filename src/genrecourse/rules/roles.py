"""What the roles beyond mutable and immutable mean for rows: one place, for all methods.

A derived feature is computed by its formula from others, and time moves an advancing one. No person
chooses either, so no method proposes them: methods carry them over from x as they do immutables,
and `DerivedFeatures.apply` sets them before h, the verifier or a rule sees a row.

A protected feature decides no plan. Whatever learns or compares sees rows without it
(`ProtectedMask`). Only h, which may have been built to use it, sees each person's own value, and
`protected_used_by` finds out whether it does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from genrecourse.rules.relations import Possible
from genrecourse.table.encoding import TOLERANCE, Array, TableEncoder, unchanged

if TYPE_CHECKING:
    from genrecourse.model.classifier import Classifier
    from genrecourse.table.schema import Feature, Schema

CLOSE = 1e-6  # share of a derived number that rounding of its parts may move it by
SAMPLED = 64  # rows on which `protected_used_by` changes a feature


class DerivedFeatures:
    """The features that move by themselves once a person acts, in the scaled feature view F.

    >>> from genrecourse.table.schema import Schema
    >>> from genrecourse.table.schema import Feature
    >>> number = {"kind": "number"}
    >>> schema = Schema(
    ...     features=(
    ...         Feature(name="debt", **number),
    ...         Feature(name="income", **number),
    ...         Feature(name="share", **number, role="derived", formula="debt / income"),
    ...     )
    ... )
    >>> X = pd.DataFrame({"debt": [0.0, 10.0], "income": [0.0, 10.0], "share": [0.0, 1.0]})
    >>> derived = DerivedFeatures(TableEncoder(schema).fit(X))
    >>> derived.apply(np.array([[0.5, 1.0, 0.5]]), np.array([[0.2, 1.0, 0.5]]))
    array([[0.2, 1. , 0.2]])
    """

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
    def computed(self) -> list[int]:
        """The features with a formula, each after those that it is computed from."""
        return list(self._formulas)

    def apply(self, F: Array, F_plus: Array) -> Array:
        """Return F_plus (..., d) with the derived and advancing features that the changes of the
        others from F (..., d) imply.

        A person who changes nothing does not advance. A derived value is computed again only if one
        of its parts has changed; otherwise it stays as x has it, since a table's own value may
        differ from its formula by rounding.
        """
        if not self:
            return F_plus
        F, F_plus = np.broadcast_arrays(F, F_plus)
        found = np.where(self.mask, F, F_plus)
        acted = ~self._same(F, found).all(axis=-1)
        for j, horizon in self._horizon.items():
            found[..., j] = np.where(acted, F[..., j] + horizon, F[..., j])
        for j in self._formulas:
            moved = self._parts_moved(j, F, found)
            found[..., j] = np.where(moved, self._computed(j, found), F[..., j])
        return found

    def ahead(self, F_plus: Array) -> Array:
        """Return F_plus with derived and advancing features set as if every part of every formula
        had changed, for callers that do not know x."""
        ahead = F_plus.copy()
        for j, horizon in self._horizon.items():
            ahead[..., j] += horizon
        for j in self._formulas:
            ahead[..., j] = self._computed(j, ahead)
        return ahead

    def between(self, x: Array, other: Array, mixed: Array) -> Array:
        """Return rows (..., d) that mix x (d,) and other rows with their derived features.

        A derived value is x's, or the other row's, if all its parts are, and computed from its
        parts otherwise; where its formula has no value, it is x's. Time does not pass.
        """
        if not self._formulas:
            return mixed
        found, x = mixed.copy(), np.broadcast_to(x, mixed.shape)
        for j in self._formulas:
            value = np.where(
                self._parts_moved(j, other, found), self._computed(j, found), other[..., j]
            )
            value = np.where(self._parts_moved(j, x, found), value, x[..., j])
            found[..., j] = np.where(np.isnan(value) & ~np.isnan(x[..., j]), x[..., j], value)
        return found

    def agree(self, F: Array, F_plus: Array) -> np.ndarray:
        """Return (...) booleans: has each derived and advancing feature the value that it must
        have?"""
        answer = np.ones(np.broadcast_shapes(F.shape, F_plus.shape)[:-1], dtype=bool)
        if not self:
            return answer
        expected = self.apply(F, F_plus)
        for j in map(int, np.flatnonzero(self.mask)):
            answer &= self.is_at(j, expected[..., j], F_plus[..., j])
        return answer

    def is_at(self, j: int, expected: Array, value: Array) -> np.ndarray:
        """Return booleans: is `value` the expected one, up to the rounding of feature j's decimals
        and dtype?"""
        with np.errstate(invalid="ignore"):
            close = np.abs(expected - value) <= self._slack(j, expected)
        return np.asarray(close | (np.isnan(expected) & np.isnan(value)))

    def possible(self, j: int, x: Array) -> Possible:
        """Return what feature j may be while it is not known which other features change."""
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
        """Return `unchanged`, but values that are equal in single precision are the same too."""
        same = unchanged(F, F_plus)
        for j, block in enumerate(self.blocks):
            if block.single:
                same[..., j] |= block.cells(F[..., j]) == block.cells(F_plus[..., j])
        return same

    def _computed(self, j: int, F: Array) -> Array:
        """Return the value of feature j's formula, scaled and with the feature's decimals."""
        values = {
            self._names[k]: self.blocks[k].low + F[..., k] * self.blocks[k].span
            for k in self._parts[j]
        }
        found, decimals = self._formulas[j](values), self._decimals[j]
        if decimals is not None:
            found = np.round(found, decimals)
        return np.asarray((found - self.blocks[j].low) / self.blocks[j].span)


class ProtectedMask:
    """Hides the protected features of rows: everybody has the same value there.

    >>> from genrecourse.table.schema import Schema
    >>> from genrecourse.table.schema import Feature
    >>> sex = Feature(name="sex", kind="category", categories=("f", "m"), role="protected")
    >>> schema = Schema(features=(sex, Feature(name="income", kind="number")))
    >>> X = pd.DataFrame({"sex": ["f", "m"], "income": [10.0, 20.0]})
    >>> encoder = TableEncoder(schema).fit(X)
    >>> ProtectedMask(encoder).hide(encoder.features(X))
    array([[0., 0.],
           [0., 1.]])
    """

    def __init__(self, encoder: TableEncoder):
        self.mask = np.array([feature.role == "protected" for feature in encoder.schema])
        self.columns = np.zeros(encoder.width, dtype=bool)  # of Z
        for block, hidden in zip(encoder.blocks, self.mask, strict=True):
            self.columns[block.columns] = hidden

    def __bool__(self) -> bool:
        return bool(self.mask.any())

    def hide(self, F: Array) -> Array:
        """Return rows of F (..., d) with 0 for every protected feature."""
        return np.where(self.mask, 0.0, F) if self else F

    def hide_encoded(self, Z: Array) -> Array:
        """Return rows of Z (..., D) with 0 in every column of a protected feature."""
        return np.where(self.columns, 0.0, Z) if self else Z


@dataclass(frozen=True)
class ProtectedUse:
    """A protected feature that a model uses.

    >>> ProtectedUse("sex", share=0.25, n_rows=200).sentence
    "the model uses 'sex': changing it alone changed the score of 25% of 200 sampled rows"
    """

    feature: str
    share: float  # of the sampled rows: those whose score changed with this feature alone
    n_rows: int  # sampled

    @property
    def sentence(self) -> str:
        return (
            f"the model uses '{self.feature}': changing it alone changed the score of "
            f"{self.share:.0%} of {self.n_rows} sampled rows"
        )


def protected_used_by(h: Classifier, schema: Schema, X: pd.DataFrame) -> list[ProtectedUse]:
    """Return the protected features that h uses.

    At most `SAMPLED` rows, spread over the table, are scored again with up to 8 other values of the
    feature that occur in them. h may use a feature on other rows only, which this cannot see.

    >>> from genrecourse.model.classifier import Classifier
    >>> from genrecourse.table.schema import Schema
    >>> X = pd.DataFrame({"debt": [5.0, 15.0], "sex": ["f", "m"]})
    >>> schema = Schema.infer(X).with_feature("sex", role="protected")
    >>> h = Classifier(lambda X: (X["sex"] == "f").to_numpy(dtype=float))
    >>> [use.feature for use in protected_used_by(h, schema, X)]
    ['sex']
    """
    if not schema.protected:
        return []
    some = X.iloc[np.linspace(0, len(X) - 1, min(len(X), SAMPLED)).astype(int)]
    own = h.score(some)
    shares = {name: _changes_score(h, some, schema[name], own).mean() for name in schema.protected}
    return [
        ProtectedUse(name, float(share), len(some)) for name, share in shares.items() if share > 0
    ]


def _changes_score(h: Classifier, X: pd.DataFrame, feature: Feature, own: Array) -> np.ndarray:
    """Return (n,) booleans: does another value of one feature change the score `own`?"""
    low, high = h.score_range
    changes = np.zeros(len(X), dtype=bool)
    column = feature.values(X)
    for value in _some(column.drop_duplicates()):
        everywhere = pd.Series([value] * len(X), X.index, dtype=column.dtype)
        other = X.assign(**feature.split(everywhere, X))
        changes |= np.abs(h.score(other) - own) > TOLERANCE * (high - low)
    return changes


def _some(values: pd.Series, most: int = 8) -> Iterable[object]:
    return values.iloc[np.linspace(0, len(values) - 1, min(len(values), most)).astype(int)]
