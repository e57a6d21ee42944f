"""TableEncoder: a user's DataFrame <-> the matrix Z that every method works on.

Three views of the same rows, each exact:

    X  (n, d)  DataFrame, original units
    F  (n, d)  one number a feature: a number scaled to [0, 1] on the training rows (values
               beyond are legal), a category's level index; NaN where missing
    Z  (n, D)  floats for a model: a number is one column (and a 0/1 "is missing" column if it
               can be missing), a category of two levels one 0/1 column, of more one-hot
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError
from genrecourse.table.schema import Feature, Schema, check_finite, check_table, plain

Array = np.ndarray[Any, np.dtype[np.float64]]
TOLERANCE = 1e-9  # two scaled values closer than this are the same value


@dataclass(frozen=True)
class Block:
    """Where one feature lives in Z, and how it is scaled."""

    start: int
    stop: int
    n_levels: int  # 0 for a number; counts the level "missing"
    low: float = 0.0
    span: float = 1.0
    has_flag: bool = False  # a number with a second column that says "missing"
    slack: float = TOLERANCE  # how far rounding to the column's dtype may carry a value
    single: bool = False  # a number in single precision

    @property
    def columns(self) -> slice:
        return slice(self.start, self.stop)

    def cells(self, scaled: Array) -> Array:
        """Scaled numbers in their own unit, as the column's dtype can hold them."""
        value = self.low + scaled * self.span
        return value.astype(np.float32).astype(np.float64) if self.single else value

    @property
    def is_onehot(self) -> bool:
        return self.n_levels > 2


class TableEncoder:
    """Learns the scale of each number from training rows; knows the levels from the schema."""

    def __init__(self, schema: Schema):
        self.schema = schema

    def fit(self, X: pd.DataFrame) -> TableEncoder:
        self.check(X)
        self.blocks: list[Block] = []
        start = 0
        for feature in self.schema:
            block = _make_block(feature, X[feature.name], start)
            self.blocks.append(block)
            start = block.stop
        self.width = start
        return self

    @classmethod
    def from_blocks(cls, schema: Schema, blocks: list[Block]) -> TableEncoder:
        """An encoder that was fitted elsewhere: its blocks are all that it learned."""
        encoder = cls(schema)
        encoder.blocks, encoder.width = blocks, blocks[-1].stop
        return encoder

    # ---- the door: every table is checked here ----------------------------------------------

    def check(self, X: pd.DataFrame) -> None:
        """Refuse a table that does not fit the schema; each refusal is one sentence."""
        check_table(X)
        self.schema.check_columns(X)
        extra = [name for name in X.columns if name not in self.schema.names]
        if extra:
            raise UserError(f"the table has column(s) {extra} that the schema does not know")
        for feature in self.schema:
            _check_column(feature, X[feature.name])

    # ---- X <-> F <-> Z ----------------------------------------------------------------------

    def encode(self, X: pd.DataFrame) -> Array:
        """X -> Z."""
        return self.from_features(self.features(X))

    def features(self, X: pd.DataFrame) -> Array:
        """X -> F."""
        self.check(X)
        F = np.empty((len(X), len(self.schema)))
        for j, (feature, block) in enumerate(zip(self.schema, self.blocks, strict=True)):
            if feature.is_category:
                F[:, j] = _level_index(feature, X[feature.name])
            else:
                raw = X[feature.name].to_numpy(dtype=np.float64, na_value=np.nan)
                if feature.decimals is not None and X[feature.name].dtype == np.float32:
                    raw = _as_meant(raw, feature.decimals, block.slack * block.span)
                F[:, j] = (raw - block.low) / block.span
        return F

    def from_features(self, F: Array) -> Array:
        """F -> Z."""
        Z = np.zeros((len(F), self.width))
        for j, block in enumerate(self.blocks):
            value = F[:, j]
            gone = np.isnan(value)
            if block.n_levels == 0:
                Z[:, block.start] = np.where(gone, 0.0, value)
                if block.has_flag:
                    Z[:, block.start + 1] = gone
            else:
                # the level "missing" is the last one
                level = np.where(gone, block.n_levels - 1, value).astype(int)
                if block.is_onehot:
                    Z[np.arange(len(Z)), block.start + level] = 1.0
                else:
                    Z[:, block.start] = level
        return Z

    def to_features(self, Z: Array) -> Array:
        """Z -> F; a relaxed category is read as its largest column."""
        F = np.empty((len(Z), len(self.blocks)))
        for j, (feature, block) in enumerate(zip(self.schema, self.blocks, strict=True)):
            part = Z[:, block.columns]
            if block.n_levels == 0:
                F[:, j] = part[:, 0]
                if block.has_flag:
                    F[part[:, 1] > 0.5, j] = np.nan
                continue
            level = part.argmax(axis=1) if block.is_onehot else (part[:, 0] > 0.5)
            level = np.minimum(level, block.n_levels - 1)  # one level only: there is no other
            F[:, j] = level
            if feature.missing:
                F[level == block.n_levels - 1, j] = np.nan
        return F

    @property
    def column_owner(self) -> np.ndarray:
        """(D,) the feature that each column of Z belongs to."""
        return np.repeat(np.arange(len(self.blocks)), [b.stop - b.start for b in self.blocks])

    def number_columns(self, which: np.ndarray) -> np.ndarray:
        """Columns of Z that hold the numbers among some features (d booleans)."""
        blocks = zip(self.blocks, which, strict=True)
        wanted = [block.start for block, chosen in blocks if chosen and block.n_levels == 0]
        return np.array(wanted, dtype=int)

    def project(self, Z: Array) -> Array:
        """The nearest legal Z: numbers in range with their decimals, one level a category."""
        F = self.to_features(Z)
        for j, (feature, block) in enumerate(zip(self.schema, self.blocks, strict=True)):
            if block.n_levels == 0:
                F[:, j] = (_legal(feature, block, F[:, j]) - block.low) / block.span
        return self.from_features(F)

    def decode(self, Z: Array, like: pd.DataFrame) -> pd.DataFrame:
        """Z -> X, in `like`'s index, column order and dtypes.

        A feature whose columns in Z are those of `like` gives back `like`'s own cell, untouched:
        "as x has it" is exact, whatever its dtype.
        """
        F = self.to_features(Z)
        same = unchanged(self.features(like), F)
        columns = {}
        for j, (feature, block) in enumerate(zip(self.schema, self.blocks, strict=True)):
            column = like[feature.name].copy()
            moved = ~same[:, j]
            if moved.any():
                column = _place(feature, column, moved, _values(feature, block, F[moved, j]))
            columns[feature.name] = column
        return pd.DataFrame({name: columns[name] for name in like.columns}, index=like.index)

    def table(self, Z: Array, like: pd.DataFrame) -> pd.DataFrame:
        """Z -> X for rows that belong to no row of `like`, which lends only its dtypes."""
        F = self.to_features(Z)
        lent = like.iloc[np.zeros(len(Z), dtype=int)].reset_index(drop=True)
        everything = np.ones(len(Z), dtype=bool)
        return pd.DataFrame(
            {
                feature.name: _place(
                    feature, lent[feature.name], everything, _values(feature, block, F[:, j])
                )
                for j, (feature, block) in enumerate(zip(self.schema, self.blocks, strict=True))
            }
        )[list(like.columns)]


def as_it_is(Z: Array) -> Array:
    """Rows in which nothing is hidden: what `roles.ProtectedMask.rows` is without protected features."""
    return Z


def unchanged(F: Array, F_plus: Array) -> np.ndarray:
    """(n, d) booleans: is feature j of row i as it was? Missing stays missing counts as so."""
    with np.errstate(invalid="ignore"):
        close = np.abs(F - F_plus) <= TOLERANCE
    return np.asarray(close | (np.isnan(F) & np.isnan(F_plus)))


# ---- one feature ----------------------------------------------------------------------------


def _make_block(feature: Feature, column: pd.Series, start: int) -> Block:
    if feature.is_category:
        n_levels = len(feature.categories) + feature.missing
        return Block(start, start + (n_levels if n_levels > 2 else 1), n_levels)
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isnan(values).all():
        raise UserError(f"column '{feature.name}' is empty: every value is missing; drop it")
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    # a constant column has no range; it is scaled by 1 so that a change still has a price
    span = high - low if high > low else 1.0
    largest = max(abs(v) for v in (low, high, *(feature.range or ())) if np.isfinite(v))
    # 0.1 is 0.1000000015 in single precision, and no rule is broken by that
    single = _numpy_dtype(column) == np.float32
    slack = TOLERANCE + (2.0**-23 if single else 2.0**-48) * largest / span
    return Block(start, start + 1 + feature.missing, 0, low, span, feature.missing, slack, single)


def _check_column(feature: Feature, column: pd.Series) -> None:
    if column.isna().any() and not feature.missing:
        row = column.index[int(column.isna().to_numpy().argmax())]
        raise UserError(
            f"column '{feature.name}' has missing values (first: index {row!r}) but had none when "
            "the schema was made; fill them, or set missing=true in the schema and fit again"
        )
    if feature.is_category:
        _level_index(feature, column)
        return
    is_bool = pd.api.types.is_bool_dtype(column.dtype)
    is_complex = pd.api.types.is_complex_dtype(column.dtype)
    if is_bool or is_complex or not pd.api.types.is_numeric_dtype(column.dtype):
        if column.isna().all():
            return  # an all-missing column carries no dtype worth judging
        present = column.dropna()
        odd = present[[not _reads_as_number(value) for value in present]]
        seen, then = f"first value: {plain(present.iloc[0])!r}", "convert it first"
        if len(odd):
            seen = f"first: index {plain(odd.index[0])!r} has {plain(odd.iloc[0])!r}"
            then = "convert such cells first"
        raise UserError(
            f"column '{feature.name}' should hold numbers but has dtype {column.dtype} ({seen}); "
            f"{then}"
        )
    check_finite(column)


def _reads_as_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _as_meant(raw: Array, decimals: int, near: float) -> Array:
    """Numbers of single precision with their decimals: 4.99 and not 4.98999977, which would count
    as another value than the 4.99 that a plan says."""
    whole = np.round(raw, decimals)
    return np.where(np.abs(whole - raw) <= near, whole, raw)


def _level_index(feature: Feature, column: pd.Series) -> Array:
    """Each cell's place in the schema's categories; NaN where missing."""
    try:
        codes, uniques = pd.factorize(column)
    except TypeError as error:  # lists and the like, which cannot be told apart
        raise UserError(
            f"column '{feature.name}' holds values that are none of its categories "
            f"{list(feature.categories)}: {error}"
        ) from None
    known = {(_kind(level), level): float(k) for k, level in enumerate(feature.categories)}
    places = np.empty(len(uniques) + 1)
    places[-1] = np.nan  # factorize gives -1 to a missing cell
    for i, value in enumerate(map(plain, uniques)):
        place = known.get((_kind(value), value))
        if place is None:
            row = column.index[int((codes == i).argmax())]
            raise UserError(
                f"column '{feature.name}' holds {value!r} (first: index {row!r}), which is none of "
                f"its categories {list(feature.categories)}"
            )
        places[i] = place
    return places[codes]


def _kind(value: object) -> str:
    """True, 1 and 1.0 are equal in Python; a level 'true' and a level 1 are not the same."""
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else "text"


def whole_ends(block: Block, low: float, high: float, decimals: int) -> tuple[float, float]:
    """The first and the last number with so many decimals between two ends, which need not have
    them: [0.5, 3.5] holds 1, 2 and 3. None between them: first > last."""
    unit = 10.0**-decimals
    # an end may be off by what its dtype rounds; one that is off by part of a unit stays off
    slack = min(0.01, (block.slack - TOLERANCE) * block.span / unit + TOLERANCE)
    return float(np.ceil(low / unit - slack)) * unit, float(np.floor(high / unit + slack)) * unit


def _legal(feature: Feature, block: Block, scaled: Array) -> Array:
    """Scaled values -> original units, rounded to the feature's decimals, inside its range."""
    value = block.low + scaled * block.span
    low, high = feature.range or (block.low, block.low + block.span)
    if feature.decimals is not None:
        first, last = whole_ends(block, low, high, feature.decimals)
        if first > last:  # the range holds no such number: nothing to move to, as the rules say
            return np.asarray(value.round(feature.decimals))
        value = value.clip(first, last).round(feature.decimals)
    return np.clip(value, low, high)


def _values(feature: Feature, block: Block, part: Array) -> Array | list[Any]:
    """One feature of F in original units: floats, or levels; NaN and None are missing."""
    if feature.is_category:
        return [None if np.isnan(k) else feature.categories[int(k)] for k in part]
    value = block.low + part * block.span
    if feature.decimals is None:
        return value
    # undo the rounding error of the scale, but leave a value that has more decimals alone
    clean = np.round(value, feature.decimals)
    return np.where(np.abs(clean - value) <= TOLERANCE * max(block.span, 1.0), clean, value)


def _place(
    feature: Feature, column: pd.Series, moved: np.ndarray, new: Array | list[Any]
) -> pd.Series:
    """`column` with the moved cells replaced, in its own dtype where that can hold the values."""
    place = np.flatnonzero(moved)
    if isinstance(new, np.ndarray):
        return _place_numbers(column, place, new)
    return _place_levels(feature, column, place, new)


def _place_levels(
    feature: Feature, column: pd.Series, place: np.ndarray, new: list[Any]
) -> pd.Series:
    levels = list({(_kind(v), v): v for v in new}.values())
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.set_categories(_with_levels(feature, column, levels))
    else:
        column = column.copy() if _can_hold(column.dtype, levels) else column.astype(object)
    column.iloc[place] = pd.Series(new, dtype=column.dtype).array  # type: ignore[call-overload]
    return column


def _with_levels(feature: Feature, column: pd.Series, levels: list[Any]) -> list[Any]:
    """The categories of a column and some levels that it lacks, where the schema has them: in an
    ordered column "mid" belongs between "low" and "high"."""
    known = list(column.cat.categories)
    lacking = [level for level in feature.categories if level in levels and level not in known]
    both = [level for level in feature.categories if level in known or level in lacking]
    in_order = [level for level in both if level in known] == known
    return both if in_order else known + lacking


def _can_hold(dtype: Any, levels: list[Any]) -> bool:
    """Do these levels come back from a column of this dtype as they went in?"""
    try:
        cells = [plain(c) for c in pd.Series(levels, dtype=dtype)]
    except (TypeError, ValueError, OverflowError):
        return False
    return all(
        pd.isna(cell) if level is None else (_kind(cell), cell) == (_kind(level), level)
        for cell, level in zip(cells, levels, strict=True)
    )


def _place_numbers(column: pd.Series, place: np.ndarray, new: Array) -> pd.Series:
    here = ~np.isnan(new)
    values: np.ndarray = new[here]
    nullable = pd.api.types.is_extension_array_dtype(column.dtype)
    if not pd.api.types.is_numeric_dtype(column.dtype):  # a column of nothing but missing cells
        column, nullable = column.astype(np.float64), False
    elif pd.api.types.is_integer_dtype(column.dtype):
        if np.array_equal(values, np.round(values)) and (nullable or here.all()):
            values = values.astype(np.int64)
            if not np.array_equal(values, values.astype(_numpy_dtype(column))):
                column = column.astype("Int64" if nullable else np.int64)
        else:
            # the applicants' column happened to hold whole numbers; the plan needs more
            column = column.astype("Float64" if nullable else np.float64)
    column = column.copy()
    column.iloc[place[here]] = values.astype(_numpy_dtype(column))
    if not here.all():
        column.iloc[place[~here]] = pd.NA if nullable else np.nan
    return column


def _numpy_dtype(column: pd.Series) -> Any:
    """The numpy dtype of a column of numbers, also of a nullable one."""
    return getattr(column.dtype, "numpy_dtype", column.dtype)
