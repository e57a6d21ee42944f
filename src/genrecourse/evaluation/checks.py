"""check_method: the contract that every method must pass, ours and yours.

    from genrecourse.evaluation.checks import check_method

    check_method(MyMethod)  # or partial(MyMethod, alpha=3), or a function
    check_method(MyMethod, params={"steps": 5})  # cheap settings; or define `_test_params()`

Each check is a function of a `Subject` (the method on a small mixed table, fitted once). It raises
a `ContractError` that says in one sentence what is wrong. `CHECKS` maps names to checks, for a
parametrised test. `broken_rules` checks the rules in original units; it shares no code with the
rules of the library.
"""

from __future__ import annotations

import ast
import inspect
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from genrecourse.errors import UserError, shown
from genrecourse.model.classifier import Classifier
from genrecourse.model.settings import allowed_in
from genrecourse.table.schema import Feature, Schema, plain

STATUSES = ("already-accepted", "ok", "rule-broken", "not-accepted", "no-feasible-target")
# no setting may be all of these; the largest ones are too large for a float, and to be written out
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 2, 0.5, -0.5, math.nan, math.inf, -math.inf, 10**400, 10**5000, 1j),
    *("", "no such value", b"1", [], {}, (0,), {"no such": 1}, object()),
)
KINDS = ("immutable", "follows", "direction", "range", "step", "decimals", "category", "missing")


class ContractError(AssertionError):
    """A method breaks the contract; the message says where.

    >>> raise ContractError("MyMethod: fit does not return self")
    Traceback (most recent call last):
    ...
    genrecourse.evaluation.checks.ContractError: MyMethod: fit does not return self
    """


def check_method(
    make: Callable[..., Any],
    *,
    params: Mapping[str, Any] | None = None,
    skip: Iterable[str] = (),
) -> None:
    """Run every check on the methods that `make(classifier, schema, **params)` returns.

    params: cheap settings for the test; None: what `_test_params()` of the class returns.
    skip: names of checks that do not apply. An unknown name raises a UserError.

    Raises a ContractError with one line per failed check.

    >>> from genrecourse.methods import METHODS
    >>> slow = [name for name in CHECKS if name not in ("rules", "fit_returns_self")]
    >>> check_method(METHODS["nnr"], skip=slow)
    """
    skip = set(skip)
    unknown = sorted(skip - set(CHECKS))
    if unknown:
        raise UserError(f"there is no check {unknown}; the checks are {list(CHECKS)}")
    subject, failed = Subject(make, params), {}
    for name, check in CHECKS.items():
        if name in skip:
            continue
        try:
            check(subject)
        except Exception as error:  # report every failure, and continue with the next check
            failed[name] = error
    if failed:
        lines = "\n".join(f"  {name}: {_as_text(error)}" for name, error in failed.items())
        raise ContractError(
            f"{len(failed)} of {len(CHECKS) - len(skip)} checks failed:\n{lines}"
        ) from next(iter(failed.values()))


def _as_text(error: Exception) -> str:
    return str(error) if isinstance(error, ContractError) else f"{type(error).__name__}: {error}"


# ---- the table ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """A small table with every kind of feature, and people, some of them outside its range.

    >>> example = make_example(rows=100, people=5)
    >>> example.X.shape, len(example.people)
    ((100, 8), 5)
    """

    X: pd.DataFrame
    y: pd.Series
    people: pd.DataFrame
    schema: Schema


def make_example(seed: int = 0, rows: int = 300, people: int = 60) -> Example:
    """Return a table with floats, integers, booleans, categories and missing values.

    `age` (many values) and `sex` are immutable, `years` and `education` may only increase, and
    `debt` has a largest step and a range that is narrower than the data.

    >>> [f.name for f in make_example().schema if f.role == "immutable"]
    ['age', 'sex']
    """
    rng = np.random.default_rng(seed)
    X = _rows(rng, rows).set_axis(pd.Index(rng.permutation(rows) + 1000, name="id"), axis="index")
    flipped = rng.random(rows) < 0.05
    y = pd.Series(np.where(flipped, 1, 0) ^ (example_score(X) > 0.5), index=X.index, name="repaid")
    some = _rows(rng, max(people, 7))  # the first seven get values outside the range
    some.loc[[1, 2], "income"], some.loc[3, "income"] = 150.0, 0.25
    some.loc[[4, 5], "debt"], some.loc[6, "age"] = np.float32(30.0), 99
    some = some.head(people).set_axis([f"p{i}" for i in rng.permutation(people)], axis="index")
    schema = Schema.infer(X, immutable=("age", "sex"))
    schema = schema.with_feature("years", direction="increase")
    schema = schema.with_feature("education", direction="increase")
    schema = schema.with_feature("debt", max_step=4.0, range=(1.0, 12.0), cost_weight=2.0)
    return Example(X, y, some, schema)


def _rows(rng: np.random.Generator, n: int) -> pd.DataFrame:
    income = rng.gamma(6.0, 7.0, n).round(2)
    region = rng.choice(["east", "north", "south", "west"], n).astype(object)
    region[rng.random(n) < 0.1] = None
    return pd.DataFrame(
        {
            "income": np.where(rng.random(n) < 0.1, np.nan, income),
            "age": rng.integers(19, 80, n),
            "debt": rng.uniform(0, 16, n).astype(np.float32),
            "years": rng.integers(0, 20, n).astype(np.int32),
            "member": rng.random(n) < 0.5,
            "sex": rng.choice(["f", "m"], n),
            "region": pd.Series(region),
            "education": pd.Categorical(
                rng.choice(["school", "college", "degree"], n),
                categories=["school", "college", "degree"],
                ordered=True,
            ),
        }
    )


def example_score(X: pd.DataFrame) -> np.ndarray:
    """Return (n,) h's scores of the example; the score of a row does not depend on other rows.

    >>> example_score(make_example().people.head(2)).round(2).tolist()
    [0.02, 1.0]
    """
    region = X["region"].astype(object).map({"east": -0.5, "north": 0.5, "south": 1.0})
    school = X["education"].astype(object).map({"school": -1.0, "college": 0.0, "degree": 1.0})
    logit = (
        0.06 * (X["income"].fillna(30.0).to_numpy(dtype=float) - 42.0)
        + 0.12 * (X["years"].to_numpy(dtype=float) - 9.0)
        - 0.25 * (X["debt"].to_numpy(dtype=float) - 7.0)
        + 0.6 * X["member"].to_numpy(dtype=float)
        + region.fillna(0.0).to_numpy(dtype=float)
        + school.to_numpy(dtype=float)
    )
    return np.asarray(1.0 / (1.0 + np.exp(-logit)))


def with_roles(example: Example) -> Example:
    """Return the example with every role: `sex` is protected, `age` advances by two years, and
    `burden` is derived and has a range that some plans would leave.

    >>> sorted({feature.role for feature in with_roles(make_example()).schema})
    ['advances', 'derived', 'mutable', 'protected']
    """

    def widened(X: pd.DataFrame) -> pd.DataFrame:
        return X.assign(burden=(X["debt"].astype(float) / (X["years"] + 1)).round(3))

    X = widened(example.X)
    features = (*example.schema, Schema.infer(X[["burden"]])["burden"])
    schema = Schema(features=features).with_feature("sex", role="protected")
    schema = schema.with_feature("age", role="advances", horizon=2)
    schema = schema.with_feature(
        "burden", role="derived", formula="debt / (years + 1)", range=(0.0, 4.0)
    )
    return Example(X, example.y, widened(example.people), schema)


# ---- the rules, in original units ------------------------------------------------------------


def broken_rules(schema: Schema, X: pd.DataFrame, X_plus: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return a table of booleans for each kind of rule: the cells of X_plus that break it.

    This code uses only the definitions of the schema, so that it can find mistakes in the rules of
    the library. An unchanged cell breaks no rule. A changed cell is checked in its own unit, to the
    precision of its dtype. A feature that changes by itself breaks "follows" if it differs from its
    formula, or if it has not advanced by its horizon in a row with another change.

    >>> example = make_example()
    >>> older = example.people.assign(age=example.people["age"] + 1)
    >>> broken = broken_rules(example.schema, example.people, older)
    >>> [kind for kind, cells in broken.items() if cells.to_numpy().any()]
    ['immutable', 'range']
    """
    broken = {kind: pd.DataFrame(False, index=X.index, columns=schema.names) for kind in KINDS}
    for feature in schema:
        a, b = feature.values(X), feature.values(X_plus)
        gone, moved = b.isna().to_numpy(), changed(a, b)
        broken["follows"][feature.name] = _strays(feature, schema, X, X_plus)
        if feature.role == "advances":
            continue
        fixed = feature.role in ("immutable", "protected")
        verdicts = {"immutable": np.full(len(a), fixed), "missing": gone}
        if feature.is_category:
            verdicts |= _category_verdicts(feature, a, b)
        else:
            verdicts |= _number_verdicts(feature, a, b)
        for kind, verdict in verdicts.items():
            present = moved & verdict & (~gone | (kind in ("immutable", "missing")))
            broken[kind][feature.name] = present
    return broken


def changed(a: pd.Series, b: pd.Series) -> np.ndarray:
    """Return (n,) booleans: the cells differ; two missing values do not differ.

    >>> changed(pd.Series([1.0, None, 3.0]), pd.Series([1.0, None, 4.0]))
    array([False, False,  True])
    """
    both = (a.isna() & b.isna()).to_numpy()
    present = ~(a.isna() | b.isna()).to_numpy()
    equal = [bool(p and x == y) for p, x, y in zip(present, a, b, strict=True)]
    return np.asarray(~(both | np.array(equal, dtype=bool)))


def _category_verdicts(feature: Feature, a: pd.Series, b: pd.Series) -> dict[str, np.ndarray]:
    place = {level: k for k, level in enumerate(feature.categories)}
    before = np.array([place.get(plain(v), np.nan) for v in a], dtype=float)
    after = np.array([place.get(plain(v), np.nan) for v in b], dtype=float)
    return {"category": np.isnan(after), "direction": _wrong_way(feature, before, after)}


def _number_verdicts(feature: Feature, a: pd.Series, b: pd.Series) -> dict[str, np.ndarray]:
    before = a.to_numpy(dtype=float, na_value=np.nan)
    after = b.to_numpy(dtype=float, na_value=np.nan)
    low, high = feature.range or (-np.inf, np.inf)
    known = np.abs([*before, *after, low, high])
    single = np.float32 in (a.dtype, b.dtype)
    slack = (2.0**-23 if single else 2.0**-40) * known[np.isfinite(known)].max(initial=0.0)
    verdicts = {"direction": _wrong_way(feature, before, after)}
    verdicts["range"] = ~((after >= low - slack) & (after <= high + slack))
    if feature.max_step is not None:  # a step from a missing value counts as too large
        verdicts["step"] = ~(np.abs(after - before) <= feature.max_step + slack)
    if feature.decimals is not None:
        verdicts["decimals"] = ~(np.abs(after - np.round(after, feature.decimals)) <= slack)
    return verdicts


def _wrong_way(feature: Feature, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    if feature.direction == "any":
        return np.zeros(len(before), dtype=bool)
    rise = after - before if feature.direction == "increase" else before - after
    return np.asarray(~(rise >= 0))  # a step from a missing value counts as wrong


def _strays(feature: Feature, schema: Schema, X: pd.DataFrame, X_plus: pd.DataFrame) -> np.ndarray:
    """Return (n,) booleans: a feature that changes by itself does not have its expected value."""
    if feature.formula is not None:
        tree, parts = _formula_tree(feature.formula)
        moved = np.any([changed(X[name], X_plus[name]) for name in parts.values()], axis=0)
        rows = X_plus[list(parts.values())].astype(float).to_numpy()
        known = [dict(zip(parts, row, strict=True)) for row in rows]
        target = np.array([_worked_out(tree, values) for values in known])
    elif feature.horizon is not None:
        own = [f.name for f in schema if f.role not in ("derived", "advances")]
        moved = np.any([changed(X[name], X_plus[name]) for name in own], axis=0)
        target = X[feature.name].to_numpy(dtype=float, na_value=np.nan) + feature.horizon
    else:
        return np.zeros(len(X), dtype=bool)
    before = X[feature.name].to_numpy(dtype=float, na_value=np.nan)
    after = X_plus[feature.name].to_numpy(dtype=float, na_value=np.nan)
    expected = np.where(moved, target, before)
    unit = 0.0 if feature.decimals is None else 10.0**-feature.decimals
    near = np.abs(after - expected) <= 0.51 * unit * moved + 1e-5 * (1.0 + np.abs(expected))
    return np.asarray(~(near | (np.isnan(after) & np.isnan(expected))))


def _formula_tree(text: str) -> tuple[ast.expr, dict[str, str]]:
    """Return a formula as a Python expression, and the column of each name in it."""
    names: dict[str, str] = {}

    def stand_in(match: re.Match[str]) -> str:
        names[f"q{len(names)}_"] = match[0][1:-1]
        return list(names)[-1]

    tree = ast.parse(re.sub(r"\"[^\"]*\"|'[^']*'|`[^`]*`", stand_in, text), mode="eval").body
    functions = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call)}  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in functions:
            names.setdefault(node.id, node.id)
    return tree, names


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "log": math.log,
    "sqrt": math.sqrt,
}


def _worked_out(node: ast.expr, values: Mapping[str, float]) -> float:
    """Return the value of a formula on one row; NaN if it has none."""
    try:
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.Name(id=name):
                return values[name]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -_worked_out(inner, values)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                known = [_worked_out(each, values) for each in arguments]
                # Python's max(1, nan) is 1, but a formula with a missing part has no value
                return math.nan if any(map(math.isnan, known)) else float(_FUNCTIONS[name](*known))
            case ast.BinOp(left=left, op=sign, right=right):
                a, b = _worked_out(left, values), _worked_out(right, values)
                signs = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
                return float((signs | {ast.Div: operator.truediv})[type(sign)](a, b))
    except (ValueError, ZeroDivisionError):
        return math.nan
    raise UserError(f"this part of a formula cannot be computed: {ast.dump(node)}")


# ---- the method under test -------------------------------------------------------------------


class Subject:
    """A method on the example, fitted once for all checks.

    >>> from genrecourse.methods import METHODS
    >>> subject = Subject(METHODS["nnr"])
    >>> subject.name, subject.x_plus.shape
    ('NearestNeighbour', (60, 8))
    """

    def __init__(self, make: Callable[..., Any], params: Mapping[str, Any] | None = None):
        self.make = make
        if params is None:
            params = getattr(getattr(make, "func", make), "_test_params", dict)()
        self.params = dict(params)
        self.example = make_example()
        self.h = Classifier(example_score)

    def new(self, **params: Any) -> Any:
        """Return a new method that is not fitted."""
        return self.make(self.h, self.example.schema, **{**self.params, **params})

    def fit(self, method: Any) -> Any:
        """Fit a method on the example."""
        return fit_quietly(method, self.example.X, self.example.y)

    @cached_property
    def name(self) -> str:
        """The class of the method."""
        return type(self.new()).__name__

    @cached_property
    def fitted(self) -> Any:
        """The method, fitted on the example."""
        method = self.new()
        self.fit(method)
        return method

    @cached_property
    def people(self) -> pd.DataFrame:
        """The people of the example."""
        return self.example.people

    @cached_property
    def x_plus(self) -> pd.DataFrame:
        """The recourse of the people."""
        answer = self.fitted.recourse(self.people.copy())
        self.require(
            isinstance(answer, pd.DataFrame), f"recourse returns a {type(answer).__name__}"
        )
        return answer

    @cached_property
    def refit(self) -> Refit:
        """A second fit, with a record of what it touched."""
        return Refit(self)

    # ---- assertions ---------------------------------------------------------------------------

    def require(self, kept: Any, complaint: str) -> None:
        """Raise a ContractError unless `kept` is true."""
        if not kept:
            raise ContractError(f"{self.name}: {complaint}")

    def require_equal(self, a: pd.DataFrame, b: pd.DataFrame, complaint: str) -> None:
        """Raise a ContractError unless values, dtypes, index and columns are equal, bit for bit."""
        if not a.equals(b):
            self.require(False, f"{complaint}; {_difference(a, b)}")

    def refuses(self, act: Callable[[], Any], what: str) -> str:
        """Return the message of the UserError of `act`. Raise a ContractError if there is none."""
        try:
            act()
        except UserError as error:
            return str(error)
        except Exception as error:
            raise ContractError(
                f"{self.name}: {what} raises a {type(error).__name__} ({error}), not a UserError"
            ) from error
        raise ContractError(f"{self.name}: {what} does not raise a UserError")

    def require_rules(
        self, X: pd.DataFrame, X_plus: pd.DataFrame, where: str, schema: Schema | None = None
    ) -> None:
        """Raise a ContractError if a cell of X_plus breaks a rule."""
        for kind, cells in broken_rules(schema or self.example.schema, X, X_plus).items():
            if cells.to_numpy().any():
                i, j = np.argwhere(cells.to_numpy())[0]
                column = cells.columns[j]
                self.require(
                    False,
                    f"{where} breaks the {kind} rule of '{column}' in {int(cells.to_numpy().sum())}"
                    f" cells; first: {X[column].iloc[i]!r} became {X_plus[column].iloc[i]!r}",
                )


def fit_quietly(method: Any, X: pd.DataFrame, y: Any = None) -> Any:
    """Return method.fit(X, y) without its warnings, for example about rows without a target.

    >>> from genrecourse.methods import METHODS
    >>> example = make_example()
    >>> method = METHODS["nnr"](Classifier(example_score), example.schema)
    >>> fit_quietly(method, example.X, example.y) is method
    True
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return method.fit(X, y)


class Refit:
    """A clone that is fitted again, with a record of what the fit touched.

    The global random state differs from that of the first fit.

    >>> from genrecourse.methods import METHODS
    >>> Refit(Subject(METHODS["nnr"])).touched
    []
    """

    def __init__(self, subject: Subject):
        self.method = clone(subject.new())
        X, y = subject.example.X.copy(), subject.example.y.copy()
        self.X, self.y, self.X_before, self.y_before = X, y, X.copy(), y.copy()
        self.params_before = self.method.get_params(deep=False)
        self.attributes_before = set(vars(self.method))
        kept = _random_state()
        np.random.seed(12345)  # noqa: NPY002 - a method must neither use nor change this state
        torch.manual_seed(12345)
        try:
            before = _random_state()
            self.returned = fit_quietly(self.method, X, y)
            self.x_plus = self.method.recourse(subject.people)
            self.touched = _touched(before, _random_state())
        finally:
            np.random.set_state(kept[0])  # noqa: NPY002
            torch.set_rng_state(kept[1])


def _random_state() -> tuple[Any, torch.Tensor]:
    return np.random.get_state(), torch.get_rng_state()  # noqa: NPY002


def _touched(before: tuple[Any, torch.Tensor], after: tuple[Any, torch.Tensor]) -> list[str]:
    """Return the libraries whose global random state changed."""
    numpy_same = str(before[0][2:]) == str(after[0][2:]) and np.array_equal(
        before[0][1], after[0][1]
    )
    torch_same = torch.equal(before[1], after[1])
    return [name for name, same in (("numpy", numpy_same), ("torch", torch_same)) if not same]


def _difference(a: pd.DataFrame, b: pd.DataFrame) -> str:
    if a.shape != b.shape:
        return f"shapes {a.shape} and {b.shape}"
    if list(a.columns) != list(b.columns):
        return f"columns {list(a.columns)} and {list(b.columns)}"
    for column in a.columns:
        if a[column].dtype != b[column].dtype:
            return f"dtypes of '{column}': {a[column].dtype} and {b[column].dtype}"
        for i, (u, v) in enumerate(zip(a[column], b[column], strict=True)):
            if not (u == v or (pd.isna(u) and pd.isna(v))):
                return f"first: '{column}' of {a.index[i]!r} is {u!r} and {v!r}"
    return f"indices {list(a.index[:3])} and {list(b.index[:3])}"


# ---- parameters -------------------------------------------------------------------------------


def _check_init_only_stores(subject: Subject) -> None:
    """`__init__` only stores its arguments, unchanged and under their names."""
    method_type = type(subject.new())
    names = [n for n in inspect.signature(method_type.__init__).parameters if n != "self"]
    given = {name: object() for name in names}
    try:
        method = method_type(**given)
    except Exception as error:
        raise ContractError(f"{subject.name}: __init__ does more than store: {error}") from error
    for name, value in given.items():
        subject.require(
            getattr(method, name, None) is value, f"__init__ does not store '{name}' as given"
        )
    more = sorted(set(vars(method)) - set(names))
    subject.require(not more, f"__init__ stores more than its arguments: {more}")


def _check_parameters(subject: Subject) -> None:
    """`get_params` and `set_params` know every argument, with classifier, schema, random_state."""
    method = subject.new()
    params = method.get_params(deep=False)
    for name in ("classifier", "schema", "random_state"):
        subject.require(name in params, f"has no parameter '{name}'")
    subject.require(params["classifier"] is subject.h, "get_params returns another classifier")
    for name, value in subject.params.items():
        subject.require(params.get(name) is value, f"get_params returns another '{name}'")
    other = type(method)().set_params(**params)
    subject.require(isinstance(other, type(method)), "set_params does not return the method")
    for name, value in other.get_params(deep=False).items():
        subject.require(value is params[name], f"set_params does not set '{name}'")


def _check_unknown_parameter(subject: Subject) -> None:
    """An unknown parameter raises an error."""
    unknown = {"no_such_parameter": 1}
    try:
        subject.new(**unknown)
    except (TypeError, UserError):
        pass
    else:
        subject.require(False, "__init__ accepts an unknown parameter")
    try:
        subject.new().set_params(**unknown)
    except ValueError:
        return
    subject.require(False, "set_params accepts an unknown parameter")


def _check_settings(subject: Subject) -> None:
    """`allowed` says of every parameter what it may be, and `fit` refuses anything else, with the
    name and the value, before it asks h."""
    kind = type(subject.new())
    allowed = allowed_in(kind)
    for name in subject.new().get_params(deep=False):
        subject.require(name in allowed, f"`allowed` does not say what '{name}' may be")
        wrong = [value for value in ODD_VALUES if not allowed[name].has(value)]
        if name == "classifier":  # `Classifier` looks at it
            wrong = [5]
        subject.require(wrong, f"`allowed` refuses no value of '{name}'")
        for value in wrong:
            method = subject.new().set_params(**{"classifier": _not_yet, name: value})
            told = subject.refuses(partial(subject.fit, method), f"fit with {name}={shown(value)}")
            named = name == "classifier" or (name in told and shown(value) in told)
            subject.require(named, f"fit with {name}={shown(value)} says only: {told}")


def _not_yet(X: pd.DataFrame) -> np.ndarray:
    raise ContractError("fit asks h before it has looked at the settings")


def _check_clone(subject: Subject) -> None:
    """scikit-learn's clone copies the parameters but nothing learned; h stays fitted."""
    numbers = subject.example.X[["age", "years"]]
    model = LogisticRegression().fit(numbers, subject.example.y)
    for classifier in (model, Classifier(model), subject.h):
        method = subject.new().set_params(classifier=classifier)
        copy = clone(method)
        subject.require(
            type(copy) is type(method) and copy is not method, "clone does not return a new method"
        )
        for name, value in method.get_params(deep=False).items():
            subject.require(getattr(copy, name) is value, f"clone does not share '{name}'")
    subject.require(hasattr(model, "coef_"), "clone resets the fitted classifier")
    learned = [n for n in vars(clone(subject.fitted)) if n.endswith("_") or n.startswith("_")]
    subject.require(not learned, f"a clone of a fitted method keeps {learned}")


# ---- fit --------------------------------------------------------------------------------------


def _check_fit_returns_self(subject: Subject) -> None:
    """`fit` returns the method."""
    subject.require(subject.refit.returned is subject.refit.method, "fit does not return self")


def _check_fit_leaves_arguments(subject: Subject) -> None:
    """`fit` changes neither X and y nor any parameter."""
    refit = subject.refit
    subject.require_equal(refit.X, refit.X_before, "fit changes X")
    subject.require(refit.y.equals(refit.y_before), "fit changes y")
    for name, value in refit.method.get_params(deep=False).items():
        subject.require(value is refit.params_before[name], f"fit changes the parameter '{name}'")


def _check_learned_state(subject: Subject) -> None:
    """The names of public attributes that `fit` adds end with an underscore."""
    added = set(vars(subject.refit.method)) - subject.refit.attributes_before
    shown = sorted(n for n in added if not n.startswith("_") and not n.endswith("_"))
    subject.require(not shown, f"fit adds attributes that do not end with an underscore: {shown}")
    subject.require(added, "fit learns nothing")


def _check_not_fitted(subject: Subject) -> None:
    """Every public method raises a UserError before `fit`."""
    method, people = subject.new(), subject.people
    subject.refuses(lambda: method.recourse(people), "recourse before fit")
    subject.refuses(lambda: method.assess(people, people), "assess before fit")
    if hasattr(method, "sample"):
        subject.refuses(lambda: method.sample(people, 2), "sample before fit")
    if hasattr(method, "log_prob"):
        subject.refuses(lambda: method.log_prob(people, given=people), "log_prob before fit")


def _check_without_outcomes(subject: Subject) -> None:
    """With y=None, the decisions of h are used as outcomes."""
    method = subject.new()
    fit_quietly(method, subject.example.X)
    answer = method.recourse(subject.people)
    subject.require_rules(subject.people, answer, "recourse after fit(X)")
    decided = subject.new()
    own = example_score(subject.example.X) > 0.5
    fit_quietly(decided, subject.example.X, own.astype(int))
    subject.require_equal(
        answer, decided.recourse(subject.people), "fit(X) differs from fit(X, h's decisions)"
    )


def _check_with_nothing_given(subject: Subject) -> None:
    """Without classifier and schema, `fit` trains h from X and y and infers the schema."""
    method = subject.make(**subject.params)
    subject.refuses(
        lambda: method.fit(subject.example.X), "fit(X) with neither classifier nor outcomes"
    )
    subject.fit(method)
    inside = subject.people[(subject.people["age"] < 80) & (subject.people["debt"] < 16)]
    answer = method.recourse(inside)
    subject.require(len(answer) == len(inside), "recourse loses rows")
    subject.require(method.classifier is None, "fit overwrites the parameter classifier=None")
    part = inside.iloc[::3]
    subject.require_equal(
        method.recourse(part),
        answer.loc[part.index],
        "with a classifier that fit trained, a subset of the rows gets other recourse",
    )


# ---- recourse ----------------------------------------------------------------------------------


def _check_form_of_the_answer(subject: Subject) -> None:
    """`recourse` returns one row per row, with the same index, columns and dtypes."""
    given = subject.people.copy()
    answer = subject.fitted.recourse(given)
    subject.require_equal(given, subject.people, "recourse changes its argument")
    subject.require(len(answer) == len(given), f"{len(answer)} rows for {len(given)}")
    subject.require(answer.index.equals(given.index), "recourse returns another index")
    subject.require(
        list(answer.columns) == list(given.columns), f"recourse returns the columns {list(answer)}"
    )
    for column in given.columns:
        subject.require(
            answer[column].dtype == given[column].dtype,
            f"'{column}' is {given[column].dtype}, but recourse returns {answer[column].dtype}",
        )


def _check_missing_values(subject: Subject) -> None:
    """`recourse` makes no value missing."""
    new = subject.x_plus.isna() & ~subject.people.isna()
    subject.require(not new.to_numpy().any(), f"{int(new.to_numpy().sum())} values became missing")


def _check_accepted_rows(subject: Subject) -> None:
    """`recourse` returns accepted rows unchanged."""
    accepted = subject.h.accepts(subject.people)
    subject.require(accepted.any() and not accepted.all(), "the example is broken")
    subject.require_equal(
        subject.x_plus[accepted], subject.people[accepted], "recourse changes accepted rows"
    )
    only = subject.people[accepted]
    subject.require_equal(
        subject.fitted.recourse(only), only, "recourse changes a table of accepted rows"
    )


def _check_rules(subject: Subject) -> None:
    """`recourse` breaks no rule of the schema."""
    subject.require_rules(subject.people, subject.x_plus, "recourse")


def _check_roles(subject: Subject) -> None:
    """Derived and advancing features have their expected values, and a protected feature has no
    effect: the recourse stays the same if only the sex differs."""
    example = with_roles(subject.example)
    method = subject.make(subject.h, example.schema, **subject.params)
    fit_quietly(method, example.X, example.y)
    people = example.people
    answer = method.recourse(people)
    subject.require_rules(people, answer, "recourse with every role", example.schema)
    moved = [changed(people[c], answer[c]) for c in people.columns if c not in ("age", "burden")]
    subject.require(np.any(moved), "with every role, recourse changes no row")
    flipped = people.assign(sex=people["sex"].map({"f": "m", "m": "f"}))
    subject.require_equal(
        method.recourse(flipped).assign(sex=people["sex"]),
        answer,
        "recourse depends on a protected feature",
    )


def _check_assess(subject: Subject) -> None:
    """`assess` returns the right status, scores, cost and number of changes of each row."""
    found = subject.fitted.assess(subject.people, subject.x_plus)
    subject.require(found.index.equals(subject.people.index), "assess returns another index")
    odd = sorted(set(found["status"]) - set(STATUSES))
    subject.require(not odd, f"assess returns the unknown status {odd}")
    score, score_plus = example_score(subject.people), example_score(subject.x_plus)
    subject.require(np.allclose(found["score"], score), "assess returns wrong scores of x")
    subject.require(
        np.allclose(found["score_plus"], score_plus), "assess returns wrong scores of x_plus"
    )
    status = found["status"].to_numpy()
    subject.require(
        ((score > 0.5) == (status == "already-accepted")).all(),
        "assess returns 'already-accepted' for the wrong rows",
    )
    helped = (score <= 0.5) & (score_plus > 0.5)
    subject.require((helped == (status == "ok")).all(), "assess returns 'ok' for the wrong rows")
    a, b = subject.people, subject.x_plus
    changes = np.sum([changed(a[c], b[c]) for c in a.columns], axis=0)
    subject.require((found["changes"] == changes).all(), "'changes' is not the number of changes")
    subject.require(
        ((found["cost"] > 0) == (found["changes"] > 0)).all(), "'cost' and 'changes' disagree"
    )
    worse = b.copy()
    worse["age"] += 1
    broken = subject.fitted.assess(a, worse)["status"].to_numpy()[score <= 0.5]
    subject.require((broken == "rule-broken").all(), "assess does not report a broken rule")


def _check_plans(subject: Subject) -> None:
    """h accepts every plan in original units, and no plan breaks a rule. The plans of a person
    change different features, and a person without a plan gets a reason."""
    plans = subject.fitted.plans(subject.people, 3)
    subject.require(len(plans) == len(subject.people), "plans does not return one plan per person")
    accepted = subject.h.accepts(subject.people)
    for i, plan in enumerate(plans):
        who = f"{plan.person!r}"
        subject.require(
            (plan.status == "already-accepted") == accepted[i],
            f"plans returns the wrong status for {who}",
        )
        subject.require(plan.reason or plan.every, f"{who} has neither a plan nor a reason")
        kinds = [tuple(change.feature.name for change in each.changes) for each in plan.every]
        subject.require(
            len(set(kinds)) == len(kinds), f"two plans of {who} change the same features"
        )
        for each in plan.every:
            row = subject.people.iloc[[i]].copy()
            for change in each.changes:
                name = change.feature.name
                row[name] = pd.Series([change.after], row.index, dtype=row[name].dtype)
            subject.require(subject.h.accepts(row).all(), f"h rejects a plan of {who}")
            subject.require_rules(subject.people.iloc[[i]], row, f"a plan of {who}")


# ---- same person, same recourse ----------------------------------------------------------------


def _check_row_order(subject: Subject) -> None:
    """The order of the rows has no effect."""
    order = np.random.default_rng(1).permutation(len(subject.people))
    mixed = subject.fitted.recourse(subject.people.iloc[order])
    subject.require_equal(
        mixed, subject.x_plus.iloc[order], "recourse depends on the order of rows"
    )


def _check_column_order(subject: Subject) -> None:
    """The order of the columns has no effect on the values."""
    columns = list(subject.people.columns[::-1])
    turned = subject.fitted.recourse(subject.people[columns])
    subject.require_equal(
        turned, subject.x_plus[columns], "recourse depends on the order of columns"
    )


def _check_subset(subject: Subject) -> None:
    """A subset of the rows gets the same recourse as in the whole table."""
    for part in (subject.people.iloc[::2], subject.people.iloc[-7:]):
        subject.require_equal(
            subject.fitted.recourse(part),
            subject.x_plus.loc[part.index],
            f"{len(part)} of {len(subject.people)} rows get other recourse than in the whole table",
        )


def _check_larger_table(subject: Subject) -> None:
    """Rows get the same recourse in a much larger table, which needs several chunks."""
    others = make_example(seed=1, rows=20, people=1200).people
    whole = pd.concat([others.set_axis(range(len(others)), axis="index"), subject.people])
    for column in subject.people.columns:
        whole[column] = whole[column].astype(subject.people[column].dtype)
    subject.require_equal(
        subject.fitted.recourse(whole).iloc[len(others) :].set_axis(subject.people.index),
        subject.x_plus,
        "rows get other recourse in a larger table",
    )


def _check_single_row(subject: Subject) -> None:
    """A single row gets the same recourse as in the whole table."""
    rejected = np.flatnonzero(~subject.h.accepts(subject.people))
    for i in rejected[:5]:
        subject.require_equal(
            subject.fitted.recourse(subject.people.iloc[[i]]),
            subject.x_plus.iloc[[i]],
            "a single row gets other recourse than in the whole table",
        )


def _check_duplicates(subject: Subject) -> None:
    """Two copies of a person get the same recourse."""
    twice = pd.concat([subject.people, subject.people.iloc[::-1]])
    answer = subject.fitted.recourse(twice)
    n = len(subject.people)
    subject.require_equal(
        answer.iloc[:n], subject.x_plus, "duplicates change the recourse of others"
    )
    subject.require_equal(
        answer.iloc[n:].iloc[::-1], subject.x_plus, "duplicates get different recourse"
    )


def _check_same_seed(subject: Subject) -> None:
    """Two fits with the same random_state give the same recourse, for any global state."""
    subject.require_equal(
        subject.refit.x_plus,
        subject.x_plus,
        "a second fit with the same random_state gives other recourse",
    )
    subject.require_equal(
        subject.fitted.recourse(subject.people),
        subject.x_plus,
        "a second call gives other recourse",
    )


def _check_other_seed(subject: Subject) -> None:
    """With another random_state, the recourse may differ but breaks no rule."""
    other = subject.new(random_state=7)
    subject.fit(other)
    subject.require_rules(
        subject.people, other.recourse(subject.people), "recourse with random_state 7"
    )


def _check_global_random_state(subject: Subject) -> None:
    """`fit` and `recourse` do not use the global random states of numpy and torch."""
    subject.require(
        not subject.refit.touched, f"fit or recourse draws from the global {subject.refit.touched}"
    )


# ---- wrong arguments ---------------------------------------------------------------------------


def _check_bad_tables(subject: Subject) -> None:
    """`fit` raises a UserError for a table that does not fit the schema. `recourse` does if the
    whole table is wrong, or if bad rows are refused."""
    method, new, y = subject.fitted, subject.new(), subject.example.y
    for what, spoil in {**BAD_TABLES, **BAD_ROWS, **TOLERATED}.items():
        people, X = spoil(subject.people), spoil(subject.example.X)
        if what not in TOLERATED:
            asked = partial(method.recourse, people, errors="raise")
            subject.refuses(asked, f"recourse of {what}")
        if what in BAD_TABLES:
            subject.refuses(partial(method.recourse, people), f"recourse of {what}")
        subject.refuses(partial(new.fit, X, y.iloc[: len(X)]), f"fit of {what}")


def _check_bad_rows(subject: Subject) -> None:
    """`recourse` returns rows that it cannot read unchanged and the others as without them. It
    ignores further columns, and an empty table has an empty answer."""
    people, x_plus = subject.people, subject.x_plus
    bad = people.assign(id=range(len(people)))
    for spoil in (_unseen, lambda X: _infinite(X.iloc[::-1]).iloc[::-1]):
        bad = spoil(bad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        answer = subject.fitted.recourse(bad)
        nothing = subject.fitted.recourse(people.iloc[:0])
    fine = slice(1, len(people) - 1)
    subject.require_equal(
        answer[list(people.columns)].iloc[fine], x_plus.iloc[fine], "a bad row changes other rows"
    )
    ends = [0, len(people) - 1]
    subject.require_equal(answer.iloc[ends], bad.iloc[ends], "recourse changes an unreadable row")
    subject.require_equal(answer[["id"]], bad[["id"]], "recourse changes a column it does not know")
    subject.require_equal(nothing, people.iloc[:0], "recourse of an empty table is not empty")


def _unseen(X: pd.DataFrame) -> pd.DataFrame:
    return X.assign(region=["atlantis", *X["region"].iloc[1:]])


def _infinite(X: pd.DataFrame) -> pd.DataFrame:
    return X.assign(income=[np.inf, *X["income"].iloc[1:]])


BAD_TABLES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "a table without a column": lambda X: X.drop(columns="debt"),
    "an array of other columns": lambda X: X.to_numpy()[:, 1:],
}
# what `fit` refuses, and `recourse` does not
TOLERATED: dict[str, Callable[[pd.DataFrame], Any]] = {
    "a table with an extra column": lambda X: X.assign(extra=1),
    "an empty table": lambda X: X.iloc[:0],
}
BAD_ROWS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "an unseen category": _unseen,
    "an infinite value": _infinite,
    "a missing value in a column without missing values": lambda X: X.assign(years=np.nan),
    "text in a number column": lambda X: X.assign(debt="much"),
}


def _check_bad_outcomes(subject: Subject) -> None:
    """`fit` raises for y of another length, with missing values, or without a favourable one."""
    X, y, new = subject.example.X, subject.example.y, subject.new()
    subject.refuses(lambda: new.fit(X, y.iloc[:-1]), "fit with a short y")
    subject.refuses(
        lambda: new.fit(X, y.astype(float).replace(1.0, np.nan)), "fit with missing values in y"
    )
    subject.refuses(
        lambda: new.fit(X, y.map({0: "bad", 1: "good"})),
        "fit with text as y and no favourable outcome",
    )


def _check_request(subject: Subject) -> None:
    """`recourse` raises a UserError for an unknown option, even if nobody needs recourse."""
    accepted = subject.people[subject.h.accepts(subject.people)]
    for people in (subject.people, accepted):
        subject.refuses(
            partial(subject.fitted.recourse, people, no_such_option=1),
            "recourse with an unknown option",
        )


def _check_one_outcome(subject: Subject) -> None:
    """`fit` raises a UserError if the classifier accepts nobody."""
    method = subject.new().set_params(classifier=lambda X: np.full(len(X), 0.1))
    subject.refuses(lambda: subject.fit(method), "fit with a classifier that accepts nobody")
    subject.refuses(
        lambda: fit_quietly(method, subject.example.X),
        "fit without outcomes and with such a classifier",
    )


# ---- generative methods -----------------------------------------------------------------------


def _check_sample(subject: Subject) -> None:
    """`sample`, if it exists, returns n draws per row with the index (row, draw); all keep the
    rules."""
    if not hasattr(subject.fitted, "sample"):
        return
    people = subject.people.iloc[:20]
    draws = subject.fitted.sample(people, 3)
    expected = pd.MultiIndex.from_product([people.index, range(3)], names=["row", "draw"])
    subject.require(draws.index.equals(expected), "sample does not return the index (row, draw)")
    subject.require(
        list(draws.index.names) == ["row", "draw"],
        "the index levels of sample are not named row and draw",
    )
    repeated = people.iloc[np.repeat(np.arange(len(people)), 3)].set_axis(expected)
    for column in people.columns:
        subject.require(
            column in draws and draws[column].dtype == people[column].dtype,
            f"sample changes the dtype of '{column}' or drops it",
        )
    subject.require_rules(repeated, draws, "sample")
    turned = subject.fitted.sample(people[list(people.columns[::-1])], 3)
    subject.require_equal(
        turned, draws[list(people.columns[::-1])], "sample depends on the order of columns"
    )
    part = subject.fitted.sample(people.iloc[5:9], 3)
    subject.require_equal(part, draws.loc[expected[15:27]], "a subset of the rows gets other draws")


def _check_log_prob(subject: Subject) -> None:
    """`log_prob`, if it exists, returns one log-probability per row, and -inf for a broken rule."""
    if not hasattr(subject.fitted, "log_prob"):
        return
    x, x_plus = subject.people, subject.x_plus
    mass = subject.fitted.log_prob(x_plus, given=x)
    subject.require(isinstance(mass, pd.Series), f"log_prob returns a {type(mass).__name__}")
    subject.require(mass.index.equals(x.index), "log_prob returns another index")
    subject.require(
        (mass <= 1e-6).all(), f"log_prob returns a probability of {np.exp(mass.max())}, above 1"
    )
    rejected = ~subject.h.accepts(x)
    subject.require(np.isfinite(mass[rejected]).all(), "recourse returns a row with probability 0")
    older = x_plus.assign(age=x_plus["age"] + 1)
    forbidden = subject.fitted.log_prob(older, given=x)
    subject.require(
        (forbidden == -np.inf).all(),
        "log_prob gives a row that breaks a rule a probability above 0",
    )
    part = subject.fitted.log_prob(x_plus.iloc[:5], given=x.iloc[:5])
    subject.require(
        np.allclose(part, mass.iloc[:5], atol=1e-4), "log_prob of a row depends on other rows"
    )
    subject.refuses(
        lambda: subject.fitted.log_prob(x_plus.iloc[:3], given=x),
        "log_prob of tables with different lengths",
    )


CHECKS: dict[str, Callable[[Subject], None]] = {
    check.__name__.removeprefix("_check_"): check
    for check in (
        _check_init_only_stores,
        _check_parameters,
        _check_unknown_parameter,
        _check_settings,
        _check_clone,
        _check_fit_returns_self,
        _check_fit_leaves_arguments,
        _check_learned_state,
        _check_not_fitted,
        _check_without_outcomes,
        _check_with_nothing_given,
        _check_form_of_the_answer,
        _check_missing_values,
        _check_accepted_rows,
        _check_rules,
        _check_roles,
        _check_assess,
        _check_plans,
        _check_row_order,
        _check_column_order,
        _check_subset,
        _check_larger_table,
        _check_single_row,
        _check_duplicates,
        _check_same_seed,
        _check_other_seed,
        _check_global_random_state,
        _check_bad_tables,
        _check_bad_rows,
        _check_bad_outcomes,
        _check_request,
        _check_one_outcome,
        _check_sample,
        _check_log_prob,
    )
}
