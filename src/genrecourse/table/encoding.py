"""TableEncoder: turns a user's DataFrame into the matrix Z that every method works on, and back.

There are three views of the same rows, and no view loses information:

    X  (n, d)  DataFrame in original units.
    F  (n, d)  One number for each feature; NaN if missing. A number is scaled so that the training
               rows lie in [0, 1] (other rows may lie outside). A category is its level's index.
    Z  (n, D)  Floats for a model. A number is one column, plus a 0/1 "is missing" column if it may
               be missing. A category of two levels is one 0/1 column, of more levels one-hot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError, shown
from genrecourse.table.quantiles import Quantiles
from genrecourse.table.schema import Feature, Schema, check_finite, check_table, plain

Array = np.ndarray[Any, np.dtype[np.float64]]
FEW_CELLS = 256  # a column of no more cells is read cell by cell
TOLERANCE = 1e-9  # two scaled values that differ by no more than this are equal


@dataclass(frozen=True)
class Block:
    """Which columns of Z hold one feature, and how it is scaled.

    Examples:
        >>> income = Block(start=2, stop=3, n_levels=0, low=100.0, span=50.0)
        >>> income.columns
        slice(2, 3, None)
        >>> income.cells(np.array([0.0, 0.5, 1.0]))
        array([100., 125., 150.])
    """

    start: int
    stop: int
    n_levels: int  # 0 for a number; otherwise the number of levels, "missing" included
    low: float = 0.0
    span: float = 1.0
    has_flag: bool = False  # True: a number with a second column, 1 if the number is missing
    slack: float = TOLERANCE  # how far rounding to the column's dtype may move a scaled value
    single: bool = False  # True: a number in single precision
    quantiles: Quantiles | None = None  # a number whose changes are paid by people overtaken

    @property
    def columns(self) -> slice:
        """The columns of Z that hold the feature."""
        return slice(self.start, self.stop)

    def cells(self, scaled: Array) -> Array:
        """Return scaled numbers in original units, rounded to what the column's dtype can hold."""
        value = self.low + scaled * self.span
        return value.astype(np.float32).astype(np.float64) if self.single else value

    def standing(self, scaled: Any) -> Any:
        """Return scaled numbers on the scale on which their changes are paid.

        >>> Block(start=0, stop=1, n_levels=0).standing(np.array([0.2]))  # min-max, as scaled
        array([0.2])
        """
        return scaled if self.quantiles is None else self.quantiles(scaled)

    @property
    def is_onehot(self) -> bool:
        """Whether the feature has one column for each level."""
        return self.n_levels > 2


@dataclass(frozen=True)
class _Layout:
    """Where the features stand in Z, by kind."""

    starts: np.ndarray  # (d,) the first column of each feature
    if_missing: Array  # (d,) what stands for a missing value: the last level, or 0
    plain: np.ndarray  # features of one column: numbers, and categories of two levels
    onehot: np.ndarray  # features with a column for each level
    flagged: np.ndarray  # numbers with one more column, for "missing"

    @classmethod
    def of(cls, blocks: list[Block]) -> _Layout:
        onehot = np.array([block.is_onehot for block in blocks], dtype=bool)
        flagged = np.array([block.n_levels == 0 and block.has_flag for block in blocks], dtype=bool)
        return cls(
            np.array([block.start for block in blocks]),
            np.array([float(max(block.n_levels - 1, 0)) for block in blocks]),
            np.flatnonzero(~onehot),
            np.flatnonzero(onehot),
            np.flatnonzero(flagged),
        )


class TableEncoder:
    """Converts between X, F and Z. It learns the scales from training rows and takes the levels
    of categories from the schema.

    Examples:
        >>> X = pd.DataFrame({"income": [10, 20, 30], "owner": ["no", "yes", "yes"]})
        >>> encoder = TableEncoder(Schema.infer(X)).fit(X)
        >>> Z = encoder.encode(X)
        >>> Z
        array([[0. , 0. ],
               [0.5, 1. ],
               [1. , 1. ]])
        >>> encoder.decode(Z, like=X).equals(X)
        True
    """

    def __init__(self, schema: Schema):
        self.schema = schema

    def fit(self, X: pd.DataFrame) -> TableEncoder:
        """Learn the scale of each number. Raises UserError if X does not fit the schema."""
        self.check(X)
        self.blocks: list[Block] = []
        start = 0
        for feature in self.schema:
            block = _make_block(feature, feature.values(X), start)
            self.blocks.append(block)
            start = block.stop
        self.width, self._layout = start, _Layout.of(self.blocks)
        return self

    @classmethod
    def from_blocks(cls, schema: Schema, blocks: list[Block]) -> TableEncoder:
        """Return the encoder whose `fit` gave these blocks, for example from a model file."""
        encoder = cls(schema)
        encoder.blocks, encoder.width = blocks, blocks[-1].stop
        encoder._layout = _Layout.of(blocks)
        return encoder

    # ---- every table is checked here ----------------------------------------------------------

    def check(self, X: pd.DataFrame) -> None:
        """Raise UserError with one sentence if the table does not fit the schema, or is empty."""
        self._check_layout(X)
        for feature in self.schema:
            read_column(feature, feature.values(X))

    def _check_layout(self, X: pd.DataFrame) -> None:
        """Raise UserError if X is no table, or has other columns than the schema."""
        check_table(X)
        self.schema.check_columns(X)
        extra = [name for name in X.columns if name not in self.schema.columns]
        if extra:
            raise UserError(
                f"the table has column(s) {extra}, which are not in the schema; drop them"
            )

    # ---- X <-> F <-> Z ----------------------------------------------------------------------

    def encode(self, X: pd.DataFrame) -> Array:
        """Convert X to Z: (n, d) -> (n, D)."""
        return self.from_features(self.features(X))

    def features(self, X: pd.DataFrame, *, is_checked: bool = False) -> Array:
        """Convert X to F: (n, d) -> (n, d). Raises UserError if X does not fit the schema.

        is_checked: the caller has called `check`, so it is not done again.
        """
        if not is_checked:
            self._check_layout(X)
        F = np.empty((len(X), len(self.schema)))
        for j, (feature, block) in enumerate(zip(self.schema, self.blocks, strict=True)):
            column = feature.values(X)
            F[:, j] = read_column(feature, column)
            if not feature.is_category:
                F[:, j] = (
                    _as_meant(feature, block, column.dtype, F[:, j]) - block.low
                ) / block.span
        return F

    def from_features(self, F: Array) -> Array:
        """Convert F to Z: (n, d) -> (n, D)."""
        layout, gone = self._layout, np.isnan(F)
        filled = np.where(gone, layout.if_missing, F)
        Z = np.zeros((len(F), self.width))
        Z[:, layout.starts[layout.plain]] = filled[:, layout.plain]
        Z[:, layout.starts[layout.flagged] + 1] = gone[:, layout.flagged]
        hot = layout.starts[layout.onehot] + filled[:, layout.onehot].astype(int)
        Z[np.arange(len(F))[:, None], hot] = 1.0
        return Z

    def to_features(self, Z: Array) -> Array:
        """Convert Z to F: (n, D) -> (n, d). The largest one-hot column gives the level."""
        F = np.empty((len(Z), len(self.blocks)))
        for j, (feature, block) in enumerate(zip(self.schema, self.blocks, strict=True)):
            part = Z[:, block.columns]
            if block.n_levels == 0:
                F[:, j] = part[:, 0]
                if block.has_flag:
                    F[part[:, 1] > 0.5, j] = np.nan
                continue
            level = part.argmax(axis=1) if block.is_onehot else (part[:, 0] > 0.5)
            level = np.minimum(level, block.n_levels - 1)  # a category may have only one level
            F[:, j] = level
            if feature.missing:
                F[level == block.n_levels - 1, j] = np.nan
        return F

    @property
    def column_owner(self) -> np.ndarray:
        """(D,) the number of the feature that each column of Z belongs to."""
        return np.repeat(np.arange(len(self.blocks)), [b.stop - b.start for b in self.blocks])

    def number_columns(self, which: np.ndarray) -> np.ndarray:
        """Return the columns of Z that hold the numbers among the chosen features.

        `which` is (d,) booleans.
        """
        blocks = zip(self.blocks, which, strict=True)
        wanted = [block.start for block, chosen in blocks if chosen and block.n_levels == 0]
        return np.array(wanted, dtype=int)

    def project(self, Z: Array) -> Array:
        """Return the nearest valid rows of Z: numbers lie in their range and have the feature's
        decimals, and each category has one level."""
        F = self.to_features(Z)
        for j, (feature, block) in enumerate(zip(self.schema, self.blocks, strict=True)):
            if block.n_levels == 0:
                F[:, j] = (_legal(feature, block, F[:, j]) - block.low) / block.span
        return self.from_features(F)

    def decode(self, Z: Array, like: pd.DataFrame, F_like: Array | None = None) -> pd.DataFrame:
        """Convert Z to X, with the index, column order and dtypes of `like`: (n, D) -> (n, d).

        Row i of Z belongs to row i of `like`. A feature that did not change keeps the cell of
        `like`, so it is exact for every dtype. F_like: the features of `like`, if they are known.
        """
        F = self.to_features(Z)
        same = unchanged(self.features(like) if F_like is None else F_like, F)
        columns: dict[str, pd.Series] = {}
        for j, (feature, block) in enumerate(zip(self.schema, self.blocks, strict=True)):
            moved = ~same[:, j]
            if not moved.any():
                columns |= {name: like[name].copy() for name in feature.stored_in}
                continue
            values = _values(feature, block, F[moved, j])
            columns |= feature.split(_place(feature, feature.values(like), moved, values), like)
        return pd.DataFrame({name: columns[name] for name in like.columns}, index=like.index)

    def written(self, F: Array, F_like: Array, like: pd.DataFrame) -> Array:
        """Return the features (n, d) of the rows that `decode` would write, without writing them.

        F_like (n, d): the features of the people whose rows they are. like: their table, of which
        only the dtypes matter: a column may hold numbers less precisely than F.
        """
        F = self.to_features(self.from_features(F))
        same = unchanged(F_like, F)
        for j, (feature, block) in enumerate(zip(self.schema, self.blocks, strict=True)):
            moved = ~same[:, j]
            if feature.is_category or not moved.any():
                continue
            values = np.asarray(_values(feature, block, F[moved, j]))
            column = like[feature.name]
            if _numpy_dtype(column).kind == "f":
                values = values.astype(_numpy_dtype(column)).astype(np.float64)
            values = _as_meant(feature, block, column.dtype, values)
            F[moved, j] = (values - block.low) / block.span
        return np.where(same, F_like, F)

    def table(self, Z: Array, like: pd.DataFrame) -> pd.DataFrame:
        """Convert Z to X with the column order and dtypes of `like`: (n, D) -> (n, d).

        The rows of Z need not belong to the rows of `like`; the index is 0 to n - 1.
        """
        F = self.to_features(Z)
        lent = like.iloc[np.zeros(len(Z), dtype=int)].reset_index(drop=True)
        everything = np.ones(len(Z), dtype=bool)
        columns: dict[str, pd.Series] = {}
        for j, (feature, block) in enumerate(zip(self.schema, self.blocks, strict=True)):
            values = _values(feature, block, F[:, j])
            columns |= feature.split(
                _place(feature, feature.values(lent), everything, values), lent
            )
        return pd.DataFrame(columns)[list(like.columns)]


def as_it_is(Z: Array) -> Array:
    """Return the rows unchanged: hides nothing, for a schema without protected features.

    `roles.ProtectedMask.hide_encoded` is the counterpart that hides protected features.

    Examples:
        >>> as_it_is(np.eye(2))
        array([[1., 0.],
               [0., 1.]])
    """
    return Z


def unchanged(F: Array, F_plus: Array) -> np.ndarray:
    """Return (n, d) booleans: True if feature j of row i is equal in both, or missing in both.

    Examples:
        >>> unchanged(np.array([[0.2, 1.0, np.nan]]), np.array([[0.2, 2.0, np.nan]]))
        array([[ True, False,  True]])
    """
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
    # a constant column has no range; it is scaled by 1, so that a change still has a cost
    span = high - low if high > low else 1.0
    largest = max(abs(v) for v in (low, high, *(feature.range or ())) if np.isfinite(v))
    # 0.1 is 0.1000000015 in single precision, and this difference must break no rule
    single = _numpy_dtype(column) == np.float32
    slack = TOLERANCE + (2.0**-23 if single else 2.0**-48) * largest / span
    quantiles = None
    if feature.cost == "quantile":
        quantiles = Quantiles.of((values[~np.isnan(values)] - low) / span)
    return Block(
        start, start + 1 + feature.missing, 0, low, span, feature.missing, slack, single, quantiles
    )


def read_column(feature: Feature, column: pd.Series) -> Array:
    """Return the cells of a column: numbers, or the indices of levels; NaN if missing.

    Raises UserError if the column does not fit the feature. pandas takes about a millisecond for
    each of its checks, so columns that are plainly right are read without them.

    >>> job = Feature(name="job", kind="category", categories=("cook", "nurse"))
    >>> read_column(job, pd.Series(["nurse", "cook"]))
    array([1., 0.])
    """
    found = _few_levels(feature, column) if feature.is_category else _plain_numbers(column)
    if found is not None and (feature.missing or not np.isnan(found).any()):
        return found
    _check_column(feature, column)
    if feature.is_category:
        return _level_index(feature, column)
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _few_levels(feature: Feature, column: pd.Series) -> Array | None:
    """Return the indices of the levels of a short column, or None if a cell is anything else."""
    if len(column) > FEW_CELLS:
        return None
    known = {(kind_of_level(level), level): float(k) for k, level in enumerate(feature.categories)}
    try:
        return np.array([known[kind_of_level(v), v] for v in column.tolist()])
    except Exception:  # missing, unknown, or an object that cannot be hashed or compared
        return None


def _plain_numbers(column: pd.Series) -> Array | None:
    """Return the numbers of a column of integers or floats, or None if it is anything else."""
    if not isinstance(column.dtype, np.dtype) or column.dtype.kind not in "iuf":
        return None
    found = column.to_numpy().astype(np.float64)
    return None if np.isinf(found).any() else found


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
            return  # the dtype of a column without values says nothing
        present = column.dropna()
        odd = present[[not _reads_as_number(value) for value in present]]
        if column.dtype == object and len(odd) == 0:
            check_finite(column.astype(np.float64))
        seen, then = f"first value: {shown(plain(present.iloc[0]))}", "convert it to numbers"
        if len(odd):
            seen = f"first: index {plain(odd.index[0])!r} has {shown(plain(odd.iloc[0]))}"
            then = "convert such cells to numbers"
        raise UserError(
            f"column '{feature.name}' should hold numbers but has dtype {column.dtype} ({seen}); "
            f"{then}"
        )
    check_finite(column)


def _reads_as_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _as_meant(feature: Feature, block: Block, dtype: Any, raw: Array) -> Array:
    """Return the cells of a column of numbers, of single precision rounded to their decimals.

    4.99 is 4.98999977 in single precision, which would differ from the 4.99 in a plan.
    """
    if feature.decimals is None or dtype != np.float32:
        return raw
    whole = np.round(raw, feature.decimals)
    return np.where(np.abs(whole - raw) <= block.slack * block.span, whole, raw)


def _level_index(feature: Feature, column: pd.Series) -> Array:
    """Return the index of each cell's level in the schema's categories; NaN if missing."""
    try:
        codes, uniques = _factorized(feature, column)
    except Exception as error:  # lists and other objects that cannot be hashed or compared
        raise UserError(
            f"column '{feature.name}' holds values that are not among its categories "
            f"{list(feature.categories)}: {error}"
        ) from None
    known = {(kind_of_level(level), level): float(k) for k, level in enumerate(feature.categories)}
    places = np.empty(len(uniques) + 1)
    places[-1] = np.nan  # factorize gives -1 to a missing cell
    for i, value in enumerate(map(plain, uniques)):
        place = known.get((kind_of_level(value), value))
        if place is None:
            row = column.index[int((codes == i).argmax())]
            raise UserError(
                f"column '{feature.name}' holds {shown(value)} (first: index {row!r}), which is "
                f"not among its categories {list(feature.categories)}"
            )
        places[i] = place
    return places[codes]


def _factorized(feature: Feature, column: pd.Series) -> tuple[np.ndarray, Any]:
    """Return the number of each cell's value (missing: -1) and the values.

    1 is not True, except among levels of several kinds, where `infer` takes them for one.
    """
    if mixes_kinds(feature):
        return pd.factorize(column)
    gone, cells = column.isna().to_numpy(), column.tolist() if column.dtype == object else []
    is_bool = np.array([isinstance(cell, bool | np.bool_) for cell in cells], dtype=bool)
    if not is_bool.any() or (is_bool | gone).all():
        return pd.factorize(column)
    places: dict[tuple[str, Any], int] = {}
    keys = [(kind_of_level(plain(cell)), plain(cell)) for cell in cells]
    codes = [
        -1 if lost else places.setdefault(key, len(places))
        for key, lost in zip(keys, gone, strict=True)
    ]
    return np.array(codes), [value for _, value in places]


def mixes_kinds(feature: Feature) -> bool:
    """Return whether the categories of a feature are of several kinds, such as text and numbers.

    >>> mixes_kinds(Feature(name="floor", kind="category", categories=(1, 2, "roof")))
    True
    """
    return len({kind_of_level(level) for level in feature.categories}) > 1


def kind_of_level(value: object) -> str:
    """Return "bool", "number" or "text". True == 1 in Python, but they are different levels.

    >>> kind_of_level(True), kind_of_level(1), kind_of_level("1")
    ('bool', 'number', 'text')
    """
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else "text"


def whole_ends(block: Block, low: float, high: float, decimals: int) -> tuple[float, float]:
    """Return the first and last number with so many decimals in [low, high].

    The ends themselves may have more decimals. If there is no such number, first > last.

    Examples:
        >>> whole_ends(Block(0, 1, n_levels=0, span=10.0), 0.5, 3.5, decimals=0)
        (1.0, 3.0)
    """
    unit = 10.0**-decimals
    # an end may differ by the rounding of its dtype, but never by a relevant part of a unit
    slack = min(0.01, (block.slack - TOLERANCE) * block.span / unit + TOLERANCE)
    return float(np.ceil(low / unit - slack)) * unit, float(np.floor(high / unit + slack)) * unit


def _legal(feature: Feature, block: Block, scaled: Array) -> Array:
    """Return scaled values in original units, rounded to the feature's decimals, in its range."""
    value = block.low + scaled * block.span
    low, high = feature.range or (block.low, block.low + block.span)
    if feature.decimals is not None:
        first, last = whole_ends(block, low, high, feature.decimals)
        if first > last:  # the range holds no valid number; the rules then forbid every change
            return np.asarray(value.round(feature.decimals))
        value = value.clip(first, last).round(feature.decimals)
    return np.clip(value, low, high)


def _values(feature: Feature, block: Block, part: Array) -> Array | list[Any]:
    """Return one feature of F in original units: floats (NaN: missing) or levels (None)."""
    if feature.is_category:
        return [None if np.isnan(k) else feature.categories[int(k)] for k in part]
    value = block.low + part * block.span
    if feature.decimals is None:
        return value
    # remove the rounding error of the scale, but keep a value that has more decimals
    clean = np.round(value, feature.decimals)
    return np.where(np.abs(clean - value) <= TOLERANCE * max(block.span, 1.0), clean, value)


def _place(
    feature: Feature, column: pd.Series, moved: np.ndarray, new: Array | list[Any]
) -> pd.Series:
    """Return `column` with the moved cells replaced, in its own dtype if it can hold them."""
    place = np.flatnonzero(moved)
    if isinstance(new, np.ndarray):
        return _place_numbers(column, place, new)
    return _place_levels(feature, column, place, new)


def _place_levels(
    feature: Feature, column: pd.Series, place: np.ndarray, new: list[Any]
) -> pd.Series:
    levels = list({(kind_of_level(v), v): v for v in new}.values())
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.set_categories(_with_levels(feature, column, levels))
    else:
        column = column.copy() if _can_hold(column.dtype, levels) else column.astype(object)
    column.iloc[place] = pd.Series(new, dtype=column.dtype).array  # type: ignore[call-overload]
    return column


def _with_levels(feature: Feature, column: pd.Series, levels: list[Any]) -> list[Any]:
    """Return the categories of a column and the levels that it lacks, in the schema's order.

    In an ordered column "mid" belongs between "low" and "high". If the column has an order of its
    own, the levels that it lacks come last.
    """
    known = list(column.cat.categories)
    lacking = [level for level in feature.categories if level in levels and level not in known]
    both = [level for level in feature.categories if level in known or level in lacking]
    in_order = [level for level in both if level in known] == known
    return both if in_order else known + lacking


def _can_hold(dtype: Any, levels: list[Any]) -> bool:
    """Return whether a column of this dtype gives these levels back unchanged."""
    try:
        cells = [plain(c) for c in pd.Series(levels, dtype=dtype)]
    except (TypeError, ValueError, OverflowError):
        return False
    return all(
        pd.isna(cell)
        if level is None
        else (kind_of_level(cell), cell) == (kind_of_level(level), level)
        for cell, level in zip(cells, levels, strict=True)
    )


def _place_numbers(column: pd.Series, place: np.ndarray, new: Array) -> pd.Series:
    here = ~np.isnan(new)
    values: np.ndarray = new[here]
    nullable = pd.api.types.is_extension_array_dtype(column.dtype)
    if not pd.api.types.is_numeric_dtype(column.dtype):  # every cell of the column is missing
        column, nullable = column.astype(np.float64), False
    elif pd.api.types.is_integer_dtype(column.dtype):
        if np.array_equal(values, np.round(values)) and (nullable or here.all()):
            values = values.astype(np.int64)
            if not np.array_equal(values, values.astype(_numpy_dtype(column))):
                column = column.astype("Int64" if nullable else np.int64)
        else:
            # the column of `like` happens to hold whole numbers, but the new values are not whole
            column = column.astype("Float64" if nullable else np.float64)
    column = column.copy()
    column.iloc[place[here]] = values.astype(_numpy_dtype(column))
    if not here.all():
        column.iloc[place[~here]] = pd.NA if nullable else np.nan
    return column


def _numpy_dtype(column: pd.Series) -> Any:
    """Return the numpy dtype of a column of numbers; the column may be nullable."""
    return getattr(column.dtype, "numpy_dtype", column.dtype)
