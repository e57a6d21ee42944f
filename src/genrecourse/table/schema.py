"""Feature and Schema: what each column of a user's table is, and how it may change.

A schema is data: it is inferred from a table (`Schema.infer`), read and edited as JSON, and
checked by `Schema.lint`, which speaks up about what a person would find odd. It holds no
learned state; scaling belongs to the encoder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, model_validator

from genrecourse.errors import UserError, amount, counted, did_you_mean
from genrecourse.table.formulas import Formula, parse_formula
from genrecourse.table.validation import validated

Level = bool | int | float | str
MAX_DECIMALS = 6  # a number with more decimals than this counts as continuous


class Feature(BaseModel):
    """One column: what it holds, how it is worded, and how it may change.

    Rules speak of *changes*: a value that stays as x has it never breaks one.

    role: who or what moves it.
        mutable: the person may change it.
        immutable: nobody can; people are compared with those who have the same.
        protected: nobody can, and nothing here looks at it: neither pairs nor the method's model
            read it, so that it decides no plan. It is there for audits, and for an h that reads it.
        derived: its formula over other features; it follows them, and costs nothing by itself.
        advances: time moves it, by its horizon, for everyone who acts; like an immutable otherwise.
    """

    # the open end of a range is written as the text "Infinity": JSON has no number for it
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    name: str
    kind: Literal["number", "category"]
    categories: tuple[Level, ...] = ()
    ordered: bool = False  # categories go from lowest to highest, so a direction makes sense
    range: tuple[float, float] | None = None  # where a changed number may lie
    decimals: int | None = Field(None, ge=0)  # 0: whole numbers; None: continuous
    missing: bool = False  # missing values occur and are values of their own
    unit: str = ""
    wording: str = ""  # what to call it in a sentence; the name if empty
    role: Literal["mutable", "immutable", "protected", "derived", "advances"] = "mutable"
    formula: str | None = None  # of a derived feature, over the names of others (`formulas`)
    horizon: float | None = Field(None, gt=0, allow_inf_nan=False)  # how far an advancing one goes
    direction: Literal["any", "increase", "decrease"] = "any"
    max_step: float | None = Field(None, gt=0)  # largest change, in the feature's own unit
    cost_weight: float = Field(1.0, gt=0, allow_inf_nan=False)

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
            return f"'{self.name}' is a category and needs its categories listed"
        if len(set(map(str, self.categories))) != len(self.categories):
            return f"'{self.name}' lists a category twice: {list(self.categories)}"
        if self.range is not None or self.max_step is not None or self.decimals is not None:
            return f"'{self.name}' is a category: range, decimals and max_step are for numbers"
        if self.direction != "any" and not self.ordered:
            return (
                f"'{self.name}' is a category without an order, so it cannot "
                f"{self.direction}; list its categories from low to high and set ordered=true"
            )
        return ""

    def _number_problem(self) -> str:
        if self.categories or self.ordered:
            return f"'{self.name}' is a number: categories and ordered are for categories"
        if self.range is not None and not self.range[0] <= self.range[1]:
            return f"'{self.name}' has the range {self.range}: the first number must be the smaller"
        return ""

    def _role_problem(self) -> str:
        for role, name in (("derived", "formula"), ("advances", "horizon")):
            given = getattr(self, name) is not None
            if given != (self.role == role):
                has = "has no" if not given else f"is {self.role} and has a"
                return f"'{self.name}' {has} {name}: the role '{role}' takes one, and no other does"
            if given and self.kind != "number":
                return f"'{self.name}' is a category: the role '{role}' is for numbers"
        if self.horizon is not None and self.decimals is not None:
            whole = self.horizon * 10**self.decimals
            if abs(whole - round(whole)) > 1e-9 * max(1.0, whole):
                return (
                    f"'{self.name}' has {counted(self.decimals, 'decimal')}, so it cannot advance "
                    f"by {self.horizon:g}; choose another horizon, or set decimals"
                )
        return ""

    @property
    def follows(self) -> bool:
        """It moves by itself once a person acts: not a change that anybody makes or pays for."""
        return self.role in ("derived", "advances")

    @property
    def price(self) -> float:
        """The weight of its changes in the cost of a plan."""
        return self.cost_weight if self.role in ("mutable", "immutable") else 0.0

    @property
    def is_category(self) -> bool:
        return self.kind == "category"

    @property
    def label(self) -> str:
        """What a sentence calls this feature."""
        return self.wording or self.name


class Schema(BaseModel):
    """The features of a table, in column order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    features: tuple[Feature, ...]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        twice = sorted({n for n in self.names if self.names.count(n) > 1})
        if twice:
            raise ValueError(f"the schema names {twice} more than once")
        if not self.features:
            raise ValueError("the schema has no features")
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
            said = f"its formula '{formula.text}' names '{used}'"
            if feature is None:
                close = did_you_mean(used, self.names)
                return f"{said}{close}, which is no feature; there are {self.names}"
            if feature.is_category:
                return f"{said}, which is a category; a formula is over numbers"
            if feature.role == "protected":
                return f"{said}, which is protected: nothing may be computed from it"
        return ""

    def formulas(self) -> dict[str, Formula]:
        """Of the derived features, by name, each after those that it is computed from."""
        found = {f.name: parse_formula(f.formula) for f in self.features if f.formula is not None}
        return _in_order_of_use(found)

    @property
    def protected(self) -> list[str]:
        return [feature.name for feature in self.features if feature.role == "protected"]

    @property
    def names(self) -> list[str]:
        return [feature.name for feature in self.features]

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

    def with_feature(self, name: str, **changes: Any) -> Schema:
        """A copy in which feature `name` has these fields changed; checked like a new one."""
        changed = validated(Feature, {**self[name].model_dump(), **changes}, "schema")
        features = tuple(changed if f.name == name else f for f in self.features)
        return validated(Schema, {"features": features}, "schema")

    def as_in(self, X: pd.DataFrame) -> Schema:
        """The same features in the order of a table's columns, which a model may read by place."""
        check_table(X)
        place = {name: k for k, name in enumerate(X.columns)}
        order = sorted(self.features, key=lambda feature: place.get(feature.name, len(place)))
        return self if order == list(self.features) else Schema(features=tuple(order))

    def check_columns(self, X: pd.DataFrame, where: str = "the table") -> None:
        """Refuse a table that lacks a feature's column. where: for messages."""
        absent = [name for name in self.names if name not in X.columns]
        if absent:
            has = list(X.columns)
            close = did_you_mean(absent[0], [name for name in has if name not in self.names])
            raise UserError(f"{where} lacks the column(s) {absent}{close}; it has {has}")

    # ---- from a table -----------------------------------------------------------------------

    @classmethod
    def infer(cls, X: pd.DataFrame, *, immutable: Iterable[str] = ()) -> Schema:
        """Read kinds, categories, ranges and decimals off a table; `immutable` names the rest."""
        check_table(X)
        if isinstance(immutable, str):
            immutable = (immutable,)
        schema = cls(features=tuple(_infer_feature(X[name]) for name in X.columns))
        for name in immutable:
            schema = schema.with_feature(name, role="immutable")
        return schema

    # ---- JSON -------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Readable JSON: fields that are at their default are left out."""
        return self.model_dump_json(indent=2, exclude_defaults=True)

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """The inverse of `to_json`; a mistake in the text is named in one sentence."""
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise UserError(f"the schema is not JSON: {error}") from None
        return validated(cls, data, "schema")

    def save(self, path: str | Path) -> None:
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot read the schema {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise UserError(f"cannot read the schema {path}: not UTF-8; save it as UTF-8") from None
        return cls.from_json(text)

    # ---- lint -------------------------------------------------------------------------------

    def lint(self, X: pd.DataFrame | None = None) -> list[str]:
        """Sentences about what looks wrong, most of it visible in the schema alone.

        With the table also: columns that differ in every row, never vary, or hold dates as text.
        """
        remarks = [remark for feature in self.features for remark in _lint_feature(feature)]
        if X is not None:
            self.check_columns(X)
            for feature in self.features:
                remarks += _lint_column(feature, X[feature.name])
            remarks += self.lint_formulas(X)
        return remarks

    def lint_formulas(self, X: pd.DataFrame) -> list[str]:
        """Of derived features that are not their formula in the table."""
        return [
            remark
            for name, formula in self.formulas().items()
            for remark in _lint_formula(self[name], formula, X)
        ]


def _in_order_of_use(formulas: dict[str, Formula]) -> dict[str, Formula]:
    """Each formula after those whose value it needs."""
    left, found = dict(formulas), dict[str, Formula]()
    while left:
        ready = [name for name, formula in left.items() if not set(formula.names) & set(left)]
        if not ready:
            raise ValueError(f"the formulas of {sorted(left)} need each other's values")
        found |= {name: left.pop(name) for name in ready}
    return found


# ---- reading a column -----------------------------------------------------------------------


def check_table(X: pd.DataFrame) -> None:
    """Refuse what no part of the library can work on; nothing is guessed."""
    if not isinstance(X, pd.DataFrame):
        raise UserError(f"expected a pandas DataFrame, got {type(X).__name__}")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise UserError(f"the table is empty: {X.shape[0]} rows, {X.shape[1]} columns")
    odd = [c for c in X.columns if not isinstance(c, str)]
    if odd:
        raise UserError(f"column names must be text; got {odd[:3]}. Rename the columns first")
    twice = X.columns[X.columns.duplicated()].unique().tolist()
    if twice:
        raise UserError(f"the table has more than one column named {twice}; rename or drop one")


def _infer_feature(column: pd.Series) -> Feature:
    missing = bool(column.isna().any())
    name = str(column.name)
    if _is_number(column):
        values = column.dropna().to_numpy(dtype=np.float64)
        single = getattr(column.dtype, "numpy_dtype", column.dtype) == np.float32
        if values.size == 0:
            raise UserError(f"column '{name}' is empty: every value is missing; drop it")
        check_finite(column)
        return Feature(
            name=name,
            kind="number",
            range=(float(values.min()), float(values.max())),
            decimals=_decimals(values, single=single),
            missing=missing,
        )
    if not _is_category(column):
        raise UserError(
            f"column '{name}' has dtype {column.dtype}, which is neither a number nor a category; "
            "convert it (a date, for example, to a number of days) or drop it"
        )
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


def _is_number(column: pd.Series) -> bool:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(dtype):
        return False
    return bool(pd.api.types.is_integer_dtype(dtype) or pd.api.types.is_float_dtype(dtype))


def _is_category(column: pd.Series) -> bool:
    dtype = column.dtype
    return bool(
        isinstance(dtype, pd.CategoricalDtype)
        or pd.api.types.is_bool_dtype(dtype)
        or pd.api.types.is_string_dtype(dtype)
        or pd.api.types.is_object_dtype(dtype)
    )


def _levels(column: pd.Series) -> tuple[tuple[Level, ...], bool]:
    """The levels that occur, as plain Python values, in a stable order, and whether that order
    means something."""
    cells = column.dropna()
    try:
        seen = [plain(v) for v in cells.unique()]
    except TypeError:  # lists and the like, which cannot be told apart
        seen = list(cells)
    odd = [v for v in seen if not isinstance(v, bool | int | float | str)]
    if odd:
        raise UserError(
            f"column '{column.name}' holds {type(odd[0]).__name__} values (first: {odd[0]!r}); "
            "a category is text, a number or true/false"
        )
    present = set(seen)
    if isinstance(column.dtype, pd.CategoricalDtype):
        ordered = bool(column.dtype.ordered)
        return tuple(v for v in map(plain, column.dtype.categories) if v in present), ordered
    return tuple(sorted(present, key=lambda v: (str(type(v)), v))), False


def plain(value: Any) -> Any:
    """A numpy scalar as the Python value it stands for."""
    return value.item() if isinstance(value, np.generic) else value


def check_finite(column: pd.Series) -> None:
    """Infinity is neither a value nor a missing value, so it is refused with its place."""
    bad = np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if bad.any():
        row = column.index[int(bad.argmax())]
        raise UserError(
            f"column '{column.name}' holds {counted(int(bad.sum()), 'infinite value')} (first: "
            f"index {row!r}); replace them with a number, or with NaN for missing"
        )


def _decimals(values: np.ndarray, single: bool) -> int | None:
    """How many decimals are enough to write every value; None if MAX_DECIMALS are not."""
    tolerance = 1e-6 if single else 1e-12
    for decimals in range(MAX_DECIMALS + 1):
        off = np.abs(np.round(values, decimals) - values)
        if np.all(off <= tolerance * np.maximum(np.abs(values), 10.0**-decimals)):
            return decimals
    return None


# ---- lint -----------------------------------------------------------------------------------

# Words in a column's name that make a person ask a question.
_GROWS = re.compile(r"(^|[_\W])(education(al)?|experience)($|[_\W])", re.I)
_PASSES = re.compile(r"(^|[_\W])(age|years?_?old|tenure)($|[_\W])", re.I)
_PROTECTED = re.compile(
    r"(^|[_\W])(race|ethnicity|ethnic|sex|gender|religion|disability|foreign|native|nationality"
    r"|country|birth|pregnan\w*)($|[_\W])",
    re.I,
)
# One value written in two ways.
_SHORT = {"y": "yes", "n": "no", "f": "female", "m": "male"}
# A number with what people put around it: 34,140.30 and 1 200,50 and € 300 and -12 % and 300 EUR.
_SIGN = r"(?:[$€£¥₹%]|[A-Z]{3})?"
_NUMBER = re.compile(
    rf"{_SIGN}\s?[-+]?\s?{_SIGN}\s?"
    rf"(?:\d{{1,3}}(?:[.,'’\s]\d{{2,3}})*[.,'’\s]\d{{3}}|\d+)(?:[.,]\d+)?\s?{_SIGN}"
)


def _lint_feature(feature: Feature) -> list[str]:
    remarks = _lint_levels(feature)
    if feature.role == "mutable":
        if _PROTECTED.search(feature.name):
            remarks.append(f"'{feature.name}' is actionable: people would be told to change it")
        remarks += _lint_time(feature)
    elif feature.role != "derived" and (feature.direction != "any" or feature.max_step is not None):
        remarks.append(
            f"'{feature.name}' is {feature.role}, so its direction and max_step do nothing"
        )
    return remarks


def _lint_time(feature: Feature) -> Iterator[str]:
    """Of what no plan can turn back."""
    is_free = feature.direction != "increase" and not feature.is_category
    if _PASSES.search(feature.name):
        roles = "'immutable'" if feature.is_category else "'immutable', or 'advances' in a policy"
        yield f"'{feature.name}' is actionable, but only time moves it: give it the role {roles}"
    elif is_free and _GROWS.search(feature.name):
        yield f"'{feature.name}' can go down: set direction to 'increase'"


def _lint_levels(feature: Feature) -> list[str]:
    """Of levels that a person would take for one: 'West ' and 'West', 'Y' and 'yes'."""
    alike: dict[str, list[str]] = {}
    for level in feature.categories:
        if isinstance(level, str):
            plainly = " ".join(level.split()).casefold()
            alike.setdefault(_SHORT.get(plainly, plainly), []).append(level)
    return [
        f"'{feature.name}' has levels that look like one: {' and '.join(map(repr, levels))}. Write "
        "them alike in the table, or plans may tell people to go from one to the other"
        for levels in alike.values()
        if len(levels) > 1
    ]


def _lint_column(feature: Feature, column: pd.Series) -> list[str]:
    name, remarks = feature.name, []
    present = column.dropna()
    distinct = present.nunique()
    whole = feature.is_category or feature.decimals == 0
    if distinct == 1:
        remarks.append(f"'{name}' has one value only ({plain(present.iloc[0])!r}): it says nothing")
    if feature.is_category and _looks_like_dates(present):
        remarks.append(
            f"'{name}' looks like dates kept as text ({present.iloc[0]!r}): drop it, or convert it "
            "to a number of days, which may change as well unless it is immutable"
            + _asked_of(feature)
        )
    elif feature.is_category and (text := _number_kept_as_text(present)):
        remarks.append(
            f"'{name}' holds numbers as text ({text!r}): remove thousands separators, signs and "
            "units, and put a point before decimals, so that it is read as a number"
        )
    elif len(present) >= 10 and distinct == len(present) and whole:
        remarks.append(f"'{name}' differs in every row: an id? Drop it{_asked_of(feature)}")
    elif feature.is_category and distinct > 50:
        remarks.append(f"'{name}' has {distinct} categories: group the rare ones")
    return remarks


def _asked_of(feature: Feature) -> str:
    """To stand behind what nobody should be told to change."""
    return "; as it is, plans may tell people to change it" if feature.role == "mutable" else ""


def _number_kept_as_text(present: pd.Series) -> str:
    """One of the values, if all are numbers to a person and not all to a computer; else ""."""
    values = list(present.unique())
    if not all(isinstance(value, str) and _NUMBER.fullmatch(value.strip()) for value in values):
        return ""
    # digits alone were kept as text by somebody who knew why: "07" is a code
    return next((str(value) for value in values if not value.strip().isdigit()), "")


OFF = 0.01  # of its range that a derived feature may differ from its formula before it is odd


def _lint_formula(feature: Feature, formula: Formula, X: pd.DataFrame) -> list[str]:
    """Where the table disagrees, plans would mix two definitions of one feature."""
    values = {n: X[n].to_numpy(dtype=np.float64, na_value=np.nan) for n in formula.names}
    own = X[feature.name].to_numpy(dtype=np.float64, na_value=np.nan)
    computed = formula(values)
    near = OFF * (np.nanmax(own) - np.nanmin(own))
    if feature.decimals is not None:  # the table may have rounded it, as a plan does
        near = max(near, 0.5001 * 10.0**-feature.decimals)
    off = ~(np.abs(own - computed) <= near)
    off &= ~(np.isnan(own) & np.isnan(computed))
    if not off.any():
        return []
    i = int(off.argmax())
    return [
        f"'{feature.name}' is not its formula '{formula.text}' in {off.mean():.0%} of rows (first: "
        f"index {plain(X.index[i])!r} has {amount(own[i])}, the formula "
        f"{amount(computed[i])})"
    ]


def _looks_like_dates(present: pd.Series) -> bool:
    text = present.astype(str).head(100)
    return len(text) > 0 and bool(text.str.match(r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}").all())
