"""Feature and Schema: what each column of a user's table is, and how it may change.

A schema is data: it is inferred from a table (`Schema.infer`) and can be read and edited as JSON.
`Schema.lint` warns about features that look wrong. A schema holds no learned state; the encoder
holds the scales.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any, Literal, Self, TypedDict, Unpack, cast, get_args

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, model_validator

from genrecourse.errors import UserError, amount, counted, did_you_mean, shown
from genrecourse.table.formulas import Formula, parse_formula
from genrecourse.table.frames import to_pandas
from genrecourse.table.limits import DECIMALS
from genrecourse.table.schema_view import as_table, in_a_line
from genrecourse.table.text_files import (
    from_json,
    path_of,
    read_text,
    write_text,
)
from genrecourse.table.validation import validated

Level = bool | int | float | str
CostScale = Literal["range", "quantile"]
MAX_DECIMALS = 6  # a column that needs more decimals than this counts as continuous


Kind = Literal["number", "category"]
Role = Literal["mutable", "immutable", "protected", "derived", "advances"]
Direction = Literal["any", "increase", "decrease"]


class Feature(BaseModel):
    """One column of a table: what it holds, how it is worded, and how it may change.

    Rules restrict *changes*: a value that stays as it is in x never breaks a rule.

    The role says who or what changes the feature:

    - mutable: the person may change it.
    - immutable: nobody can change it. People are compared with people who have the same value.
    - protected: nobody can change it, and it influences no plan: neither the pairs nor the method's
      model read it. It is kept for audits, and for an h that reads it.
    - derived: its formula computes it from other features. It costs nothing by itself.
    - advances: time changes it, by its horizon, for everyone who acts; otherwise it is immutable.

    Examples:
        >>> age = Feature(name="age", kind="number", decimals=0, role="immutable", unit="years")
        >>> age.label, age.price
        ('age', 1.0)
        >>> Feature(name="grade", kind="category", categories=("low", "high")).is_category
        True
        >>> age
        Feature(name='age', kind='number', decimals=0, unit='years', role='immutable')
    """

    # JSON has no infinity, so the open end of a range is written as the text "Infinity"
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    name: str
    kind: Kind
    categories: tuple[Level, ...] = ()
    ordered: bool = False  # True: the categories are listed from lowest to highest
    range: tuple[float, float] | None = None  # a changed number must lie in it
    decimals: int | None = Field(None, ge=0, le=DECIMALS)  # 0: whole numbers; None: continuous
    missing: bool = False  # True: values may be missing, and "missing" is a value of its own
    unit: str = ""
    wording: str = ""  # the feature's name in a sentence; `name` if empty
    # columns of 0 and 1, one for each category, that hold it in the table; () if it has one column
    # of its own name. The last category may have no column: then all columns are 0
    one_hot: tuple[str, ...] = ()
    role: Role = "mutable"
    formula: str | None = None  # only if derived: computed from other features (see `formulas`)
    horizon: float | None = Field(None, gt=0, allow_inf_nan=False)  # only if it advances: how far
    direction: Direction = "any"
    max_step: float | None = Field(None, gt=0)  # largest change, in the feature's unit
    # smallest change worth asking for; None: a small share of the usual range
    min_step: float | None = Field(None, gt=0, allow_inf_nan=False)
    cost_weight: float = Field(1.0, gt=0, allow_inf_nan=False)
    cost: CostScale = "range"  # of a number: the scale on which a change is paid (see `Cost`)

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if self.kind == "category":
            problem = self._category_problem()
        else:
            problem = self._number_problem()
        problem = problem or self._role_problem()
        if problem:
            raise ValueError(problem)
        return self

    def _category_problem(self) -> str:
        if not self.categories:
            return f"'{self.name}' is a category without categories; list them in 'categories'"
        if len(set(map(str, self.categories))) != len(self.categories):
            return f"'{self.name}' lists a category twice: {list(self.categories)}"
        if self.range is not None or self.max_step is not None or self.decimals is not None:
            return (
                f"'{self.name}' is a category: remove range, decimals and max_step, which only "
                "numbers have"
            )
        if self.cost != "range":
            return (
                f"'{self.name}' is a category: remove cost='{self.cost}', which only numbers have; "
                "every change of level costs the same"
            )
        if self.one_hot and len(self.categories) - len(self.one_hot) not in (0, 1):
            return (
                f"'{self.name}' has {len(self.categories)} categories in "
                f"{counted(len(self.one_hot), 'column')}: list one column for each category, or "
                "for each but the last"
            )
        if self.one_hot and self.missing:
            return f"'{self.name}' is stored in columns of 0 and 1, so it cannot be missing"
        if self.direction != "any" and not self.ordered:
            return (
                f"'{self.name}' is a category without an order, so it cannot "
                f"{self.direction}; list its categories from low to high and set ordered=true"
            )
        return ""

    def _number_problem(self) -> str:
        if self.categories or self.ordered or self.one_hot:
            return (
                f"'{self.name}' is a number: remove categories, ordered and one_hot, which only "
                "categories have"
            )
        if self.range is not None and not self.range[0] <= self.range[1]:
            return f"'{self.name}' has the range {self.range}: write the smaller number first"
        return ""

    def _role_problem(self) -> str:
        for role, name in (("derived", "formula"), ("advances", "horizon")):
            given = getattr(self, name) is not None
            if given and self.role != role:
                return (
                    f"'{self.name}' has a {name} but the role '{self.role}': set the role to "
                    f"'{role}', or remove the {name}"
                )
            if not given and self.role == role:
                return f"'{self.name}' has no {name}: the role '{role}' needs one"
            if given and self.kind != "number":
                return f"'{self.name}' is a category: only a number can have the role '{role}'"
        if self.horizon is not None and self.decimals is not None:
            whole = self.horizon * 10**self.decimals
            if abs(whole - round(whole)) > 1e-9 * max(1.0, whole):
                return (
                    f"'{self.name}' has {counted(self.decimals, 'decimal')}, so it cannot advance "
                    f"by {self.horizon:g}; choose another horizon, or set decimals"
                )
        return ""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        # only what is not the default
        fields = type(self).model_fields
        return [(n, v) for n, v in super().__repr_args__() if n and v != fields[n].default]

    @property
    def follows(self) -> bool:
        """Whether the feature changes by itself once a person acts, at no cost to the person."""
        return self.role in ("derived", "advances")

    @property
    def price(self) -> float:
        """The weight of the feature's changes in the cost of a plan."""
        return self.cost_weight if self.role in ("mutable", "immutable") else 0.0

    @property
    def is_category(self) -> bool:
        return self.kind == "category"

    @property
    def label(self) -> str:
        """The name of the feature in a sentence."""
        return self.wording or self.name

    @property
    def stored_in(self) -> tuple[str, ...]:
        """The columns of the table that hold the feature."""
        return self.one_hot or (self.name,)

    def values(self, X: pd.DataFrame) -> pd.Series:
        """Return the feature's values in a table, also if several columns of 0 and 1 hold them.

        Examples:
            >>> pets = Feature(
            ...     name="pet", kind="category", categories=("cat", "dog"), one_hot=("cat", "dog")
            ... )
            >>> pets.values(pd.DataFrame({"cat": [1, 0], "dog": [0, 1]})).tolist()
            ['cat', 'dog']
        """
        return self._joined(X) if self.one_hot else X[self.name]

    def _joined(self, X: pd.DataFrame) -> pd.Series:
        """Return the category of each row. Raises UserError if its columns do not hold one."""
        ones, bad = self._ones(X)
        if bad.any():
            row = int(bad.argmax())
            cells = shown({column: plain(X[column].iloc[row]) for column in self.one_hot}, 300)
            raise UserError(
                f"'{self.name}' is stored in columns of which one is 1 and the others are 0; "
                f"index {plain(X.index[row])!r} has {cells} ({counted(int(bad.sum()), 'such row')} "
                "in all). Correct the table, or make a schema without this group"
            )
        places = np.where(ones.sum(axis=0) == 0, len(self.one_hot), ones.argmax(axis=0))
        levels = np.array(self.categories, dtype=object)
        return pd.Series(levels[places], X.index, dtype=object, name=self.name)

    def not_one_hot(self, X: pd.DataFrame) -> np.ndarray:
        """Return (n,) booleans: the row's columns of 0 and 1 do not hold one category.

        Examples:
            >>> pets = Feature(
            ...     name="pet", kind="category", categories=("cat", "dog"), one_hot=("cat", "dog")
            ... )
            >>> pets.not_one_hot(pd.DataFrame({"cat": [1, 1], "dog": [0, 1]}))
            array([False,  True])
        """
        return self._ones(X)[1]

    def _ones(self, X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of 0 and 1 (k, n), and which rows do not hold one category (n,)."""
        ones = np.array([_flags(X[column]) for column in self.one_hot])
        total = ones.sum(axis=0)
        bad = (total > 1) | np.isnan(total)
        bad |= (total < 1) & (len(self.categories) == len(self.one_hot))
        return ones, bad

    def value(self, row: pd.Series) -> Any:
        """Return the feature's value in one row of a table.

        Examples:
            >>> Feature(name="job", kind="category", categories=("cook",)).value(
            ...     pd.Series({"job": "cook"})
            ... )
            'cook'
        """
        return self.values(row.to_frame().T).iloc[0] if self.one_hot else row[self.name]

    def split(self, values: pd.Series, like: pd.DataFrame) -> dict[str, pd.Series]:
        """Return the columns that hold these values, with the dtypes of `like`.

        Examples:
            >>> pets = Feature(
            ...     name="pet", kind="category", categories=("cat", "dog"), one_hot=("cat", "dog")
            ... )
            >>> like = pd.DataFrame({"cat": [1], "dog": [0]})
            >>> {name: c.tolist() for name, c in pets.split(pd.Series(["dog"]), like).items()}
            {'cat': [0], 'dog': [1]}
        """
        if not self.one_hot:
            return {self.name: values}
        return {
            column: (values == level).astype(like[column].dtype)
            for column, level in zip(self.one_hot, self.categories, strict=False)
        }


class FeatureChanges(TypedDict, total=False):
    """The fields of `Feature` that `Schema.with_feature` can set: all but the name.

    Examples:
        >>> sorted(set(Feature.model_fields) - set(FeatureChanges.__annotations__))
        ['name']
    """

    kind: Kind
    categories: Iterable[Level]
    ordered: bool
    range: tuple[float, float] | None
    decimals: int | None
    missing: bool
    unit: str
    wording: str
    one_hot: Iterable[str]
    role: Role
    formula: str | None
    horizon: float | None
    direction: Direction
    max_step: float | None
    min_step: float | None
    cost_weight: float
    cost: CostScale


class Schema(BaseModel):
    """The features of a table, in column order.

    Examples:
        >>> X = pd.DataFrame({"age": [30, 41], "income": [1200.5, 900], "owner": [True, False]})
        >>> schema = Schema.infer(X, immutable=["age"])
        >>> schema.names
        ['age', 'income', 'owner']
        >>> schema = schema.with_feature("income", direction="increase", unit="EUR")
        >>> schema["income"].range, schema["income"].decimals
        ((900.0, 1200.5), 1)
        >>> Schema.from_json(schema.to_json()) == schema
        True
        >>> schema
        Schema(3 features: 2 numbers, 1 category; 2 mutable, 1 immutable)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    features: tuple[Feature, ...]
    # rules between features that the table keeps, as in `rules.relations`: every plan keeps them
    relations: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        for names in (self.names, self.columns):
            twice = sorted({n for n in names if names.count(n) > 1})
            if twice:
                raise ValueError(
                    f"the schema names {twice} more than once; each name must be unique"
                )
        if not self.features:
            raise ValueError("the schema has no features; list at least one")
        return self

    @model_validator(mode="after")
    def _formulas_can_be_computed(self) -> Self:
        try:
            formulas = self.formulas()
        except UserError as error:
            raise ValueError(str(error)) from None
        problems = (self._formula_problem(formula) for formula in formulas.values())
        for name, problem in zip(formulas, problems, strict=True):
            if problem:
                raise ValueError(f"'{name}': {problem}")
        return self

    def _formula_problem(self, formula: Formula) -> str:
        known = {feature.name: feature for feature in self.features}
        for used in formula.names:
            feature = known.get(used)
            start = f"its formula '{formula.text}' names '{used}'"
            if feature is None:
                close = did_you_mean(used, self.names)
                return f"{start}{close}, which is no feature; the features are {self.names}"
            if feature.is_category:
                return f"{start}, which is a category; use only numbers"
            if feature.role == "protected":
                return f"{start}, which is protected: no feature may be computed from it"
        return ""

    def formulas(self) -> dict[str, Formula]:
        """Return the formulas of the derived features by name, each after those that it needs."""
        found = {f.name: parse_formula(f.formula) for f in self.features if f.formula is not None}
        return _in_order_of_use(found)

    @property
    def protected(self) -> list[str]:
        return [feature.name for feature in self.features if feature.role == "protected"]

    @property
    def names(self) -> list[str]:
        return [feature.name for feature in self.features]

    @property
    def columns(self) -> list[str]:
        """The columns of the table: one for each feature, or several of 0 and 1."""
        return [column for feature in self.features for column in feature.stored_in]

    def __repr__(self) -> str:
        return f"Schema({in_a_line(self)})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return as_table(self)

    def __len__(self) -> int:
        return len(self.features)

    def __iter__(self) -> Iterator[Feature]:  # type: ignore[override]
        return iter(self.features)

    def __getitem__(self, name: str) -> Feature:
        for feature in self.features:
            if feature.name == name:
                return feature
        close = did_you_mean(name, self.names)
        raise UserError(f"no feature '{name}'{close} in the schema; it has {self.names}")

    def with_feature(self, name: str, **changes: Unpack[FeatureChanges]) -> Schema:
        """Return a copy in which feature `name` has these fields. The copy is validated."""
        fields, hint = {**self[name].model_dump(), **changes}, ""
        if "immutable" in changes:
            hint = "; to make a feature immutable, set role='immutable'"
        changed = validated(Feature, fields, "schema", unknown_key_hint=hint)
        return self.with_features(changed if f.name == name else f for f in self.features)

    def with_features(self, features: Iterable[Feature]) -> Schema:
        """Return a copy with these features. The copy is validated."""
        data = {"features": tuple(features), "relations": self.relations}
        return validated(Schema, data, "schema")

    def with_relations(self, relations: Iterable[str]) -> Schema:
        """Return a copy in which every plan keeps these relations, and no others."""
        data = {"features": self.features, "relations": tuple(relations)}
        return validated(Schema, data, "schema")

    def with_cost(self, cost: str) -> Schema:
        """Return a copy in which a change of any number is paid on this scale.

        "range": its share of the training range, as in the paper. "quantile": the share of the
        training rows that one has to overtake, which few very large values do not make cheap.

        >>> schema = Schema.infer(pd.DataFrame({"income": [900, 1200], "owner": ["no", "yes"]}))
        >>> [feature.cost for feature in schema.with_cost("quantile")]
        ['quantile', 'range']
        """
        if cost not in get_args(CostScale):
            raise UserError(f"the cost is {shown(cost)}; it must be 'range' or 'quantile'")
        schema = self
        for feature in self.features:
            if not feature.is_category:
                schema = schema.with_feature(feature.name, cost=cast("CostScale", cost))
        return schema

    def as_in(self, X: pd.DataFrame) -> Schema:
        """Return the same features in the order of a table's columns.

        A model may read columns by position, so the order must be that of its training table.
        """
        check_table(X)
        place = {name: k for k, name in enumerate(X.columns)}
        order = sorted(self.features, key=lambda f: place.get(f.stored_in[0], len(place)))
        return self if order == list(self.features) else self.with_features(order)

    def check_columns(self, X: pd.DataFrame, where: str = "the table") -> None:
        """Raise UserError if the table lacks a feature's column. `where` names it in the error."""
        absent = [name for name in self.columns if name not in X.columns]
        if absent:
            has = list(X.columns)
            close = did_you_mean(absent[0], [name for name in has if name not in self.columns])
            raise UserError(f"{where} lacks the column(s) {absent}{close}; it has {has}")

    # ---- from a table -----------------------------------------------------------------------

    @classmethod
    def infer(cls, X: Any, *, immutable: Iterable[str] = (), cost: str = "range") -> Schema:
        """Return a schema with the kinds, categories, ranges and decimals seen in a table.

        Features named in `immutable` are immutable; all others are mutable. cost: of all numbers,
        as in `with_cost`. `discover_relations` finds what holds between the columns.
        """
        X = to_pandas(X)
        check_table(X)
        _check_dtypes(X)
        if isinstance(immutable, str):
            immutable = (immutable,)
        schema = cls(features=tuple(_infer_feature(X[name]) for name in X.columns))
        for name in immutable:
            schema = schema.with_feature(name, role="immutable")
        return schema.with_cost(cost)

    # ---- JSON -------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return indented JSON without the fields that have their default value."""
        return self.model_dump_json(indent=2, exclude_defaults=True)

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """Return the schema in a JSON text. Raises UserError with one sentence if it is wrong."""
        return cls._from_json(text, "the schema")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the schema to a JSON file."""
        write_text(self.to_json() + "\n", path_of(path, "the schema"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Return the schema in a JSON file."""
        file = path_of(path, "the schema")
        return cls._from_json(read_text(file, "the schema "), f"the schema {file}")

    @classmethod
    def _from_json(cls, text: str, where: str) -> Schema:
        return validated(cls, from_json(text, where), where)

    # ---- lint -------------------------------------------------------------------------------

    def lint(self, X: Any = None, *, locked: Iterable[str] = ()) -> list[str]:
        """Return one sentence for each thing that looks wrong.

        If the table is given, the sentences also cover its columns: those that differ in every row,
        never vary, hold dates or numbers as text, have heavy tails, or do not match their formula.
        locked: features that other rules, such as a policy's, forbid to change.
        """
        kept = set(locked)
        remarks = [
            remark
            for feature in self.features
            for remark in _lint_feature(feature, is_locked=feature.name in kept)
        ]
        if X is not None:
            X = to_pandas(X, self)
            self.check_columns(X)
            for feature in self.features:
                remarks += _lint_column(feature, feature.values(X))
            remarks += self.lint_formulas(X)
        return remarks

    def lint_formulas(self, X: pd.DataFrame) -> list[str]:
        """Return one sentence for each derived feature that differs from its formula in X."""
        return [
            remark
            for name, formula in self.formulas().items()
            for remark in _lint_formula(self[name], formula, X)
        ]


def _in_order_of_use(formulas: dict[str, Formula]) -> dict[str, Formula]:
    """Return the formulas in an order in which each comes after those that it needs."""
    left, found = dict(formulas), dict[str, Formula]()
    while left:
        ready = [name for name, formula in left.items() if not set(formula.names) & set(left)]
        if not ready:
            raise ValueError(
                f"the formulas of {sorted(left)} need each other's values; remove the circle"
            )
        found |= {name: left.pop(name) for name in ready}
    return found


# ---- reading a column -----------------------------------------------------------------------


def check_table(X: pd.DataFrame, *, may_be_empty: bool = False) -> None:
    """Raise UserError unless X is a table with rows and with columns named by unique texts.

    may_be_empty: a table without rows is right, too.

    Examples:
        >>> check_table(pd.DataFrame({"age": [30]}))
        >>> check_table(pd.DataFrame({0: [30]}))
        Traceback (most recent call last):
        ...
        genrecourse.errors.UserError: column names must be text; got [0]. Rename the columns first
    """
    if not isinstance(X, pd.DataFrame):
        to_pandas(X)  # says what is wrong with it
        raise UserError(f"expected a pandas DataFrame, got {type(X).__name__}")
    if X.shape[1] == 0 or (X.shape[0] == 0 and not may_be_empty):
        raise UserError(f"the table is empty: {X.shape[0]} rows, {X.shape[1]} columns")
    odd = [c for c in X.columns if not isinstance(c, str)]
    if odd:
        raise UserError(f"column names must be text; got {odd[:3]}. Rename the columns first")
    twice = X.columns[X.columns.duplicated()].unique().tolist()
    if twice:
        raise UserError(f"the table has more than one column named {twice}; rename or drop one")
    sparse = [name for name, dtype in X.dtypes.items() if isinstance(dtype, pd.SparseDtype)]
    if sparse:
        raise UserError(
            f"the columns {sparse} are sparse, which is not read; convert each with "
            f"X[{sparse[0]!r}].sparse.to_dense()"
        )


def _check_dtypes(X: pd.DataFrame) -> None:
    """Raise UserError if columns are neither numbers nor categories; all of them, in one go."""
    odd = [name for name in X.columns if not (holds_numbers(X[name]) or holds_levels(X[name]))]
    if len(odd) == 1:
        raise UserError(
            f"column '{odd[0]}' has dtype {X[odd[0]].dtype}, which is neither a number nor a "
            "category; convert it (a date, for example, to a number of days) or drop it"
        )
    if odd:
        named = ", ".join(f"'{name}' ({X[name].dtype})" for name in odd)
        raise UserError(
            f"the columns {named} are neither numbers nor categories; convert them (dates, for "
            "example, to numbers of days) or drop them"
        )


def _infer_feature(column: pd.Series) -> Feature:
    missing = bool(column.isna().any())
    name = str(column.name)
    if holds_numbers(column):
        values = column.dropna().to_numpy(dtype=np.float64)
        if values.size == 0:
            raise UserError(f"column '{name}' is empty: every value is missing; drop it")
        check_finite(column)
        found = {
            "name": name,
            "kind": "number",
            "range": (float(values.min()), float(values.max())),
            "decimals": _decimals(values, single=in_single(column)),
            "missing": missing,
        }
        return validated(Feature, found, "schema")
    levels, ordered = _levels(column)
    if not levels:
        raise UserError(f"column '{name}' is empty: every value is missing; drop it")
    return validated(
        Feature,
        {
            "name": name,
            "kind": "category",
            "categories": levels,
            "ordered": ordered,
            "missing": missing,
        },
        "schema",
    )


def in_single(column: pd.Series) -> bool:
    """Return whether a column of numbers is in single precision.

    Examples:
        >>> in_single(pd.Series([1.5], dtype="float32"))
        True
    """
    return bool(getattr(column.dtype, "numpy_dtype", column.dtype) == np.float32)


def holds_numbers(column: pd.Series) -> bool:
    """Return whether the dtype of a column is one of numbers; truth values are none.

    Examples:
        >>> holds_numbers(pd.Series([1.5])), holds_numbers(pd.Series([True]))
        (True, False)
    """
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(dtype):
        return False
    return bool(pd.api.types.is_integer_dtype(dtype) or pd.api.types.is_float_dtype(dtype))


def holds_levels(column: pd.Series) -> bool:
    """Return whether the dtype of a column is one that categories may have.

    Examples:
        >>> holds_levels(pd.Series(["low"])), holds_levels(pd.Series([1.5]))
        (True, False)
    """
    dtype = column.dtype
    return bool(
        isinstance(dtype, pd.CategoricalDtype)
        or pd.api.types.is_bool_dtype(dtype)
        or pd.api.types.is_string_dtype(dtype)
        or pd.api.types.is_object_dtype(dtype)
    )


def _levels(column: pd.Series) -> tuple[tuple[Level, ...], bool]:
    """Return the levels that occur, as plain Python values in a stable order, and whether they are
    ordered."""
    cells = column.dropna()
    try:
        seen = [plain(v) for v in cells.unique()]
    except TypeError:  # lists and other values that cannot be hashed
        seen = list(cells)
    odd = [v for v in seen if not isinstance(v, bool | int | float | str)]
    if odd:
        then = "numbers of days" if isinstance(odd[0], date) else "text, numbers or true/false"
        raise UserError(
            f"column '{column.name}' holds {type(odd[0]).__name__} values (first: {odd[0]!r}); "
            f"convert them to {then}, or drop the column"
        )
    present = set(seen)
    if isinstance(column.dtype, pd.CategoricalDtype):
        ordered = bool(column.dtype.ordered)
        return tuple(v for v in map(plain, column.dtype.categories) if v in present), ordered
    return tuple(sorted(present, key=lambda v: (str(type(v)), v))), False


def _flags(column: pd.Series) -> np.ndarray:
    """Return a column of 0 and 1, or of true and false, as numbers; NaN for anything else."""
    try:
        numbers = pd.to_numeric(column, errors="coerce")
        if numbers.dtype.kind == "c":
            raise TypeError
        values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    except Exception:  # lists, and objects that cannot even be compared
        values = np.array([_flag(value) for value in column.tolist()])
    return np.where(np.isin(values, (0.0, 1.0)), values, np.nan)


def _flag(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and value in (0, 1) else math.nan


def plain(value: Any) -> Any:
    """Return a numpy scalar as a Python value, and any other value unchanged.

    Examples:
        >>> plain(np.float64(0.5)), plain("a")
        (0.5, 'a')
    """
    return value.item() if isinstance(value, np.generic) else value


def check_finite(column: pd.Series) -> None:
    """Raise UserError if a column of numbers holds infinity, which no feature can have.

    Examples:
        >>> check_finite(pd.Series([1.0, np.nan], name="debt"))
        >>> check_finite(pd.Series([1.0, np.inf], name="debt"))
        Traceback (most recent call last):
        ...
        genrecourse.errors.UserError: column 'debt' holds 1 infinite value (first: index 1); ...
    """
    bad = np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if bad.any():
        row = column.index[int(bad.argmax())]
        raise UserError(
            f"column '{column.name}' holds {counted(int(bad.sum()), 'infinite value')} (first: "
            f"index {row!r}); replace them with a number, or with NaN for missing"
        )


def _decimals(values: np.ndarray, single: bool) -> int | None:
    """Return how many decimals every value needs; None if that is more than MAX_DECIMALS."""
    for decimals in range(MAX_DECIMALS + 1):
        if not lacks_decimals(values, decimals, single=single).any():
            return decimals
    return None


def lacks_decimals(values: np.ndarray, decimals: int, *, single: bool) -> np.ndarray:
    """Return (n,) booleans: the value cannot be written with so many decimals.

    single: the values come from a column in single precision.

    Examples:
        >>> lacks_decimals(np.array([1.0, 1.25]), 1, single=False)
        array([False,  True])
    """
    tolerance = 1e-6 if single else 1e-12
    off = np.abs(np.round(values, decimals) - values)
    return ~(off <= tolerance * np.maximum(np.abs(values), 10.0**-decimals))


# ---- lint -----------------------------------------------------------------------------------

# Words in a column's name that call for a check of its role or direction.
_GROWS = re.compile(r"(^|[_\W])(education(al)?|experience)($|[_\W])", re.I)
_PASSES = re.compile(r"(^|[_\W])(age|years?_?old|tenure)($|[_\W])", re.I)
_PROTECTED = re.compile(
    r"(^|[_\W])(race|ethnicity|ethnic|sex|gender|religion|disability|foreign|native|nationality"
    r"|country|birth|pregnan\w*)($|[_\W])",
    re.I,
)
# What a lender may not ask people to change, even if no law names it.
_PRIVATE = re.compile(
    r"(^|[_\W])(marital|marriage|married|divorced|widowed|spouse|husband|wife|relationship"
    r"|(civil|family|personal)[_\W]?status)($|[_\W])",
    re.I,
)
_PAST = re.compile(
    r"(^|[_\W])(history|previous|prior|priors|past|delinquen\w*|bankrupt\w*|arrears"
    r"|convict\w*|arrests?|late[_\W]payments?)($|[_\W])",
    re.I,
)
_ID = re.compile(
    r"(^|[_\W])(id|uid|uuid|guid|ssn|iban|(customer|client|account|case|reference)[_\W]?"
    r"(id|no|nr|number|key))($|[_\W])",
    re.I,
)
# Two ways to write one value.
_SHORT = {"y": "yes", "n": "no", "f": "female", "m": "male"}
# Numbers as people write them: 34,140.30 and 1 200,50 and € 300 and -12 % and 300 EUR.
_SIGN = r"(?:[$€£¥₹%]|[A-Z]{3})?"
_NUMBER = re.compile(
    rf"{_SIGN}\s?[-+]?\s?{_SIGN}\s?"
    rf"(?:\d{{1,3}}(?:[.,'’\s]\d{{2,3}})*[.,'’\s]\d{{3}}|\d+)(?:[.,]\d+)?\s?{_SIGN}"
)


def _lint_feature(feature: Feature, *, is_locked: bool) -> list[str]:
    remarks = _lint_levels(feature)
    if feature.role == "mutable" and is_locked:
        return remarks  # no plan asks for a change
    if feature.role == "mutable":
        if _PROTECTED.search(feature.name):
            remarks.append(
                f"'{feature.name}' is mutable, so plans may ask people to change it: give it the "
                "role 'protected' or 'immutable'"
            )
        elif _PRIVATE.search(feature.name):
            remarks.append(
                f"'{feature.name}' is mutable, but nobody should be asked to change their private "
                "life for a decision: give it the role 'protected' or 'immutable', or lock it"
            )
        elif _PAST.search(feature.name):
            remarks.append(
                f"'{feature.name}' is mutable, but it seems to be about the past, which nobody can "
                "change: give it the role 'immutable', or lock it"
            )
        remarks += _lint_time(feature)
    elif feature.role != "derived" and (feature.direction != "any" or feature.max_step is not None):
        remarks.append(
            f"'{feature.name}' is {feature.role}, so its direction and max_step have no effect"
        )
    return remarks


def _lint_time(feature: Feature) -> Iterator[str]:
    """Yield a remark if a plan might turn back time, or something that only grows with it."""
    # a column of 0 and 1 is one category of several, and says nothing about less or more
    is_flag = feature.decimals == 0 and feature.range == (0.0, 1.0)
    is_free = feature.direction != "increase" and not feature.is_category and not is_flag
    if _PASSES.search(feature.name):
        roles = "'immutable'" if feature.is_category else "'immutable', or 'advances' in a policy"
        yield f"'{feature.name}' is mutable, but only time changes it: give it the role {roles}"
    elif is_free and _GROWS.search(feature.name):
        yield f"'{feature.name}' can go down: set direction to 'increase'"


def _lint_levels(feature: Feature) -> list[str]:
    """Return remarks on levels that seem to mean the same: 'West ' and 'West', 'Y' and 'yes'."""
    alike: dict[str, list[str]] = {}
    for level in feature.categories:
        if isinstance(level, str):
            plainly = " ".join(level.split()).casefold()
            alike.setdefault(_SHORT.get(plainly, plainly), []).append(level)
    return [
        f"'{feature.name}' has levels that seem to be the same: "
        f"{' and '.join(map(repr, levels))}. Write them alike in the table, or plans may ask "
        "people to change one into the other"
        for levels in alike.values()
        if len(levels) > 1
    ]


def _lint_column(feature: Feature, column: pd.Series) -> list[str]:
    name, remarks = feature.name, []
    present = column.dropna()
    distinct = present.nunique()
    whole = feature.is_category or feature.decimals == 0
    if distinct == 1:
        remarks.append(
            f"'{name}' has only one value ({plain(present.iloc[0])!r}), so a model learns nothing "
            "from it: drop it"
        )
    if feature.is_category and _looks_like_dates(present):
        remarks.append(
            f"'{name}' seems to hold dates as text ({present.iloc[0]!r}): drop it, or convert it "
            "to a number of days and make it immutable" + _asked_of(feature)
        )
    elif feature.is_category and (text := _number_kept_as_text(present)):
        remarks.append(
            f"'{name}' holds numbers as text ({text!r}): remove thousands separators, currency "
            "signs and units, and write a point before the decimals"
        )
    elif len(present) >= 10 and distinct == len(present) and whole:
        remarks.append(
            f"'{name}' differs in every row; if it is an id, drop it{_asked_of(feature)}"
        )
    elif _seems_an_id(feature, distinct, len(present)):
        remarks.append(
            f"'{name}' seems to be an id: it has {distinct:,} different values in "
            f"{counted(len(present), 'row')}; if so, drop it{_asked_of(feature)}"
        )
    elif feature.is_category and distinct > 50:
        remarks.append(f"'{name}' has {distinct} categories: group the rare ones")
    return remarks + _lint_tails(feature, present)


HEAVY = 0.05  # share of its range by which two people usually differ, if its tails are heavy


def _lint_tails(feature: Feature, present: pd.Series) -> list[str]:
    """Return a remark if a few extreme values make almost every change of a number cheap."""
    if feature.is_category or feature.role != "mutable" or feature.cost != "range":
        return []
    values = present.to_numpy(dtype=np.float64)
    width, usual = np.ptp(values) if len(values) else 0.0, usual_gap(values)
    if usual >= HEAVY * width:
        return []
    return [
        f"'{feature.name}' has a heavy tail: half of the people who differ in it differ by at most "
        f"{amount(usual)}, {usual / width:.1%} of its range, so most changes cost almost nothing. "
        "To count the people whom a change overtakes instead, set cost='quantile'"
    ]


def usual_gap(values: np.ndarray) -> float:
    """Return the median difference between two people who differ; 0 if nobody differs.

    Pairs of equal people are left out, so that a column with few values has no heavy tail only
    because most people share one of them.

    >>> usual_gap(np.array([0.0, 0.0, 0.0, 1.0, 100.0]))
    99.0
    """
    # as many values as a plot could show, evenly by rank, with the ends: all pairs of them are few
    some = np.sort(values)[np.linspace(0, len(values) - 1, min(len(values), 500)).astype(int)]
    gaps = (some[:, None] - some)[np.tril_indices(len(some), -1)]
    gaps = gaps[gaps > 0]
    return float(np.median(gaps)) if len(gaps) else 0.0


def _asked_of(feature: Feature) -> str:
    """Return the consequence of a remark on a feature that nobody should be asked to change."""
    return "; otherwise plans may ask people to change it" if feature.role == "mutable" else ""


def _number_kept_as_text(present: pd.Series) -> str:
    """Return a value like '1,200 EUR' if a person would read all values as numbers; else ""."""
    values = list(present.unique())
    if not all(isinstance(value, str) and _NUMBER.fullmatch(value.strip()) for value in values):
        return ""
    # text of digits alone is meant to be text: "07" is a code
    return next((str(value) for value in values if not value.strip().isdigit()), "")


OFF = 0.01  # share of its range by which a derived feature may differ from its formula


def _lint_formula(feature: Feature, formula: Formula, X: pd.DataFrame) -> list[str]:
    """Return a remark if the table differs from the formula: plans would mix two definitions."""
    values = {n: X[n].to_numpy(dtype=np.float64, na_value=np.nan) for n in formula.names}
    own = X[feature.name].to_numpy(dtype=np.float64, na_value=np.nan)
    computed = formula(values)
    near = OFF * (np.nanmax(own) - np.nanmin(own))
    if feature.decimals is not None:  # the table may hold rounded values, as plans do
        near = max(near, 0.5001 * 10.0**-feature.decimals)
    off = ~(np.abs(own - computed) <= near)
    off &= ~(np.isnan(own) & np.isnan(computed))
    if not off.any():
        return []
    i = int(off.argmax())
    return [
        f"'{feature.name}' differs from its formula '{formula.text}' in {off.mean():.0%} of rows "
        f"(first: index {plain(X.index[i])!r} has {amount(own[i])}, the formula gives "
        f"{amount(computed[i])}): correct the formula or the table"
    ]


def _seems_an_id(feature: Feature, distinct: int, rows: int) -> bool:
    """Return whether a column holds ids of people or cases, some of which come more than once."""
    if _ID.search(feature.name) and (feature.is_category or feature.decimals == 0):
        return distinct >= max(10, rows / 10)
    return feature.is_category and distinct > max(50, rows / 2)


def _looks_like_dates(present: pd.Series) -> bool:
    text = present.astype(str).head(100)
    return len(text) > 0 and bool(text.str.match(r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}").all())
