"""check_method: the contract that every method passes, for ours and for yours.

    from genrecourse.evaluation.checks import check_method

    check_method(MyMethod)  # or partial(MyMethod, alpha=3), or a function
    check_method(MyMethod, params={"steps": 5})  # cheap settings; or give it a `_test_params()`

Each check is a function of a `Subject` (the method on one small mixed table, fitted once) and says
in one sentence what is wrong. `CHECKS` holds them by name, for a parametrised test. The rules are
checked in original units by `broken_rules`, which shares no code with the library's own.
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

from genrecourse.errors import UserError
from genrecourse.model.classifier import Classifier
from genrecourse.table.schema import Feature, Schema, plain

STATUSES = ("already-accepted", "ok", "rule-broken", "not-accepted", "no-feasible-target")
KINDS = ("immutable", "follows", "direction", "range", "step", "decimals", "category", "missing")


class ContractError(AssertionError):
    """A method does not keep the contract; the message says where."""


def check_method(
    make: Callable[..., Any],
    *,
    params: Mapping[str, Any] | None = None,
    skip: Iterable[str] = (),
) -> None:
    """Run every check on the methods that `make(classifier, schema, **params)` makes.

    params: cheap settings to test with; None: what the class's own `_test_params()` gives.
    skip: names of checks that do not apply; a name that does not exist is an error.
    Raises ContractError with a line for each check that failed.
    """
    skip = set(skip)
    unknown = sorted(skip - set(CHECKS))
    if unknown:
        raise UserError(f"no check is called {unknown}; there are {list(CHECKS)}")
    subject, failed = Subject(make, params), {}
    for name, check in CHECKS.items():
        if name in skip:
            continue
        try:
            check(subject)
        except Exception as error:  # any failure is a finding, and the next check still counts
            failed[name] = error
    if failed:
        lines = "\n".join(f"  {name}: {_told(error)}" for name, error in failed.items())
        raise ContractError(
            f"{len(failed)} of {len(CHECKS) - len(skip)} checks failed:\n{lines}"
        ) from next(iter(failed.values()))


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, ContractError) else f"{type(error).__name__}: {error}"


# ---- the table ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """A small table with one of everything, and people to help, some beyond its range."""

    X: pd.DataFrame
    y: pd.Series
    people: pd.DataFrame
    schema: Schema


def make_example(seed: int = 0, rows: int = 300, people: int = 60) -> Example:
    """Numbers, integers, float32, bool, categories of 2, 3 and 4 levels, and missing values.

    `age` (many values) and `sex` are immutable, `years` and `education` only rise, `debt` has a
    largest step and a range narrower than the data.
    """
    rng = np.random.default_rng(seed)
    X = _rows(rng, rows).set_axis(pd.Index(rng.permutation(rows) + 1000, name="id"), axis="index")
    flipped = rng.random(rows) < 0.05
    y = pd.Series(np.where(flipped, 1, 0) ^ (example_score(X) > 0.5), index=X.index, name="repaid")
    some = _rows(rng, people)
    some.loc[[1, 2], "income"], some.loc[3, "income"] = 150.0, 0.25
    some.loc[[4, 5], "debt"], some.loc[6, "age"] = np.float32(30.0), 99
    some = some.set_axis([f"p{i}" for i in rng.permutation(people)], axis="index")
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
    """h of the example: a plain function of a table, the same for a row whoever stands beside."""
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
    """The example with one of every role: sex is protected, age advances by two years, and
    `burden` is derived, with a range that some plans would leave."""

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
    """For each kind of rule a table of booleans: which cells of X_plus break it.

    Written from the schema's words alone, so that it can find mistakes in the library's own rules:
    a cell that is as it was never breaks one; any other is judged in its own unit, to within the
    precision of its column's dtype. What moves by itself breaks "follows" where it is not at its
    formula, or has not gone its horizon in the row of somebody who changed something.
    """
    broken = {kind: pd.DataFrame(False, index=X.index, columns=schema.names) for kind in KINDS}
    for feature in schema:
        a, b = X[feature.name], X_plus[feature.name]
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
    """(n,) booleans: which cells differ at all. Missing to missing is no change."""
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
    if feature.max_step is not None:  # from missing: the step is not known to be small enough
        verdicts["step"] = ~(np.abs(after - before) <= feature.max_step + slack)
    if feature.decimals is not None:
        verdicts["decimals"] = ~(np.abs(after - np.round(after, feature.decimals)) <= slack)
    return verdicts


def _wrong_way(feature: Feature, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    if feature.direction == "any":
        return np.zeros(len(before), dtype=bool)
    rise = after - before if feature.direction == "increase" else before - after
    return np.asarray(~(rise >= 0))  # from missing: not known to go the right way


def _strays(feature: Feature, schema: Schema, X: pd.DataFrame, X_plus: pd.DataFrame) -> np.ndarray:
    """(n,) booleans: which cells of a feature that moves by itself are not where they belong."""
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
    """A formula as Python reads arithmetic, and the column that each of its names stands for."""
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
    """The value of a formula on one row; NaN where it has none."""
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
                # Python's max(1, nan) is 1; a formula with a part that is missing has no value
                return math.nan if any(map(math.isnan, known)) else float(_FUNCTIONS[name](*known))
            case ast.BinOp(left=left, op=sign, right=right):
                a, b = _worked_out(left, values), _worked_out(right, values)
                signs = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
                return float((signs | {ast.Div: operator.truediv})[type(sign)](a, b))
    except (ValueError, ZeroDivisionError):
        return math.nan
    raise UserError(f"this part of a formula cannot be worked out: {ast.dump(node)}")


# ---- the method under test -------------------------------------------------------------------


class Subject:
    """A method on the example. Fitted once, for all checks; what a fit did is watched once."""

    def __init__(self, make: Callable[..., Any], params: Mapping[str, Any] | None = None):
        self.make = make
        if params is None:
            params = getattr(getattr(make, "func", make), "_test_params", dict)()
        self.params = dict(params)
        self.example = make_example()
        self.h = Classifier(example_score)

    def new(self, **params: Any) -> Any:
        """Not fitted."""
        return self.make(self.h, self.example.schema, **{**self.params, **params})

    def fit(self, method: Any) -> Any:
        return fit_quietly(method, self.example.X, self.example.y)

    @cached_property
    def name(self) -> str:
        return type(self.new()).__name__

    @cached_property
    def fitted(self) -> Any:
        method = self.new()
        self.fit(method)
        return method

    @cached_property
    def people(self) -> pd.DataFrame:
        return self.example.people

    @cached_property
    def x_plus(self) -> pd.DataFrame:
        answer = self.fitted.recourse(self.people.copy())
        self.require(isinstance(answer, pd.DataFrame), f"recourse gave a {type(answer).__name__}")
        return answer

    @cached_property
    def refit(self) -> Refit:
        return Refit(self)

    # ---- how a check speaks -------------------------------------------------------------------

    def require(self, kept: Any, complaint: str) -> None:
        if not kept:
            raise ContractError(f"{self.name}: {complaint}")

    def require_equal(self, a: pd.DataFrame, b: pd.DataFrame, complaint: str) -> None:
        """Bit for bit, dtypes, index and columns included."""
        if not a.equals(b):
            self.require(False, f"{complaint}; {_difference(a, b)}")

    def refuses(self, act: Callable[[], Any], what: str) -> None:
        try:
            act()
        except UserError:
            return
        except Exception as error:
            raise ContractError(
                f"{self.name}: {what} is a {type(error).__name__} ({error}), not a UserError"
            ) from error
        raise ContractError(f"{self.name}: {what} is not refused")

    def require_rules(
        self, X: pd.DataFrame, X_plus: pd.DataFrame, where: str, schema: Schema | None = None
    ) -> None:
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
    """Some rejected rows of the example have nobody to learn from, and a method may say so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return method.fit(X, y)


class Refit:
    """A clone fitted anew, from another global random state, with all it might touch watched."""

    def __init__(self, subject: Subject):
        self.method = clone(subject.new())
        X, y = subject.example.X.copy(), subject.example.y.copy()
        self.X, self.y, self.X_before, self.y_before = X, y, X.copy(), y.copy()
        self.params_before = self.method.get_params(deep=False)
        self.attributes_before = set(vars(self.method))
        kept = _random_state()
        np.random.seed(12345)  # noqa: NPY002 - the state that a method must neither use nor touch
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
    """Whose global generator is not where it was."""
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


def check_init_only_stores(subject: Subject) -> None:
    """`__init__` stores its arguments untouched under their names; `fit` is where they are used."""
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


def check_parameters(subject: Subject) -> None:
    """`get_params` and `set_params` see every argument, classifier, schema and seed among them."""
    method = subject.new()
    params = method.get_params(deep=False)
    for name in ("classifier", "schema", "random_state"):
        subject.require(name in params, f"has no parameter '{name}'")
    subject.require(params["classifier"] is subject.h, "get_params gives another classifier")
    for name, value in subject.params.items():
        subject.require(params.get(name) is value, f"get_params gives another '{name}'")
    other = type(method)().set_params(**params)
    subject.require(isinstance(other, type(method)), "set_params does not return the method")
    for name, value in other.get_params(deep=False).items():
        subject.require(value is params[name], f"set_params does not set '{name}'")


def check_unknown_parameter(subject: Subject) -> None:
    """A parameter that the method does not have is refused, not ignored."""
    unknown = {"no_such_parameter": 1}
    try:
        subject.new(**unknown)
    except (TypeError, UserError):
        pass
    else:
        subject.require(False, "__init__ takes a parameter it does not have")
    try:
        subject.new().set_params(**unknown)
    except ValueError:
        return
    subject.require(False, "set_params takes a parameter it does not have")


def check_clone(subject: Subject) -> None:
    """scikit-learn's clone: same parameters, nothing learned, a fitted classifier still fitted."""
    numbers = subject.example.X[["age", "years"]]
    model = LogisticRegression().fit(numbers, subject.example.y)
    for classifier in (model, Classifier(model), subject.h):
        method = subject.new().set_params(classifier=classifier)
        copy = clone(method)
        subject.require(type(copy) is type(method) and copy is not method, "clone is no new method")
        for name, value in method.get_params(deep=False).items():
            subject.require(getattr(copy, name) is value, f"clone does not share '{name}'")
    subject.require(hasattr(model, "coef_"), "clone makes the classifier forget what it learned")
    learned = [n for n in vars(clone(subject.fitted)) if n.endswith("_") or n.startswith("_")]
    subject.require(not learned, f"a clone of a fitted method keeps {learned}")


# ---- fit --------------------------------------------------------------------------------------


def check_fit_returns_self(subject: Subject) -> None:
    subject.require(subject.refit.returned is subject.refit.method, "fit does not return self")


def check_fit_leaves_arguments(subject: Subject) -> None:
    """`fit` changes neither X and y nor any parameter."""
    refit = subject.refit
    subject.require_equal(refit.X, refit.X_before, "fit changes X")
    subject.require(refit.y.equals(refit.y_before), "fit changes y")
    for name, value in refit.method.get_params(deep=False).items():
        subject.require(value is refit.params_before[name], f"fit changes the parameter '{name}'")


def check_learned_state(subject: Subject) -> None:
    """What `fit` learns and shows ends in an underscore."""
    added = set(vars(subject.refit.method)) - subject.refit.attributes_before
    shown = sorted(n for n in added if not n.startswith("_") and not n.endswith("_"))
    subject.require(not shown, f"fit adds attributes that do not end in an underscore: {shown}")
    subject.require(added, "fit learns nothing")


def check_not_fitted(subject: Subject) -> None:
    """Every verb before `fit` is a UserError."""
    method, people = subject.new(), subject.people
    subject.refuses(lambda: method.recourse(people), "recourse before fit")
    subject.refuses(lambda: method.assess(people, people), "assess before fit")
    if hasattr(method, "sample"):
        subject.refuses(lambda: method.sample(people, 2), "sample before fit")
    if hasattr(method, "log_prob"):
        subject.refuses(lambda: method.log_prob(people, given=people), "log_prob before fit")


def check_without_outcomes(subject: Subject) -> None:
    """y=None: h's own decisions stand in for the outcomes."""
    method = subject.new()
    fit_quietly(method, subject.example.X)
    answer = method.recourse(subject.people)
    subject.require_rules(subject.people, answer, "recourse after fit(X)")
    decided = subject.new()
    own = example_score(subject.example.X) > 0.5
    fit_quietly(decided, subject.example.X, own.astype(int))
    subject.require_equal(
        answer, decided.recourse(subject.people), "fit(X) is not fit(X, h's decisions)"
    )


def check_with_nothing_given(subject: Subject) -> None:
    """No classifier and no schema: h is learned from X and y, the schema inferred."""
    method = subject.make(**subject.params)
    subject.refuses(
        lambda: method.fit(subject.example.X), "fit(X) with neither classifier nor outcomes"
    )
    subject.fit(method)
    inside = subject.people[(subject.people["age"] < 80) & (subject.people["debt"] < 16)]
    answer = method.recourse(inside)
    subject.require(len(answer) == len(inside), "recourse loses rows")
    subject.require(method.classifier is None, "fit writes the classifier it learned over None")
    part = inside.iloc[::3]
    subject.require_equal(
        method.recourse(part),
        answer.loc[part.index],
        "with a classifier of its own, a subset of the rows gets other rows",
    )


# ---- the answer --------------------------------------------------------------------------------


def check_form_of_the_answer(subject: Subject) -> None:
    """One row back for each row in: same index, columns and dtypes; the input is not touched."""
    given = subject.people.copy()
    answer = subject.fitted.recourse(given)
    subject.require_equal(given, subject.people, "recourse changes the table it is given")
    subject.require(len(answer) == len(given), f"{len(answer)} rows for {len(given)}")
    subject.require(answer.index.equals(given.index), "recourse gives another index")
    subject.require(
        list(answer.columns) == list(given.columns), f"recourse gives columns {list(answer)}"
    )
    for column in given.columns:
        subject.require(
            answer[column].dtype == given[column].dtype,
            f"'{column}' went in as {given[column].dtype} and came back as {answer[column].dtype}",
        )


def check_missing_values(subject: Subject) -> None:
    """A value is missing only where it was missing before."""
    new = subject.x_plus.isna() & ~subject.people.isna()
    subject.require(not new.to_numpy().any(), f"{int(new.to_numpy().sum())} values went missing")


def check_accepted_rows(subject: Subject) -> None:
    """Whom h accepts already comes back unchanged."""
    accepted = subject.h.accepts(subject.people)
    subject.require(accepted.any() and not accepted.all(), "the example is broken")
    subject.require_equal(
        subject.x_plus[accepted], subject.people[accepted], "rows already accepted are changed"
    )
    only = subject.people[accepted]
    subject.require_equal(
        subject.fitted.recourse(only), only, "a table of accepted rows does not come back unchanged"
    )


def check_rules(subject: Subject) -> None:
    """No immutable, direction, range, step, decimals, category or missing rule is broken."""
    subject.require_rules(subject.people, subject.x_plus, "recourse")


def check_roles(subject: Subject) -> None:
    """What moves by itself is where it belongs, and a protected feature decides nothing: who is of
    the other sex and the same otherwise is told the same."""
    example = with_roles(subject.example)
    method = subject.make(subject.h, example.schema, **subject.params)
    fit_quietly(method, example.X, example.y)
    people = example.people
    answer = method.recourse(people)
    subject.require_rules(people, answer, "recourse with every role", example.schema)
    moved = [changed(people[c], answer[c]) for c in people.columns if c not in ("age", "burden")]
    subject.require(np.any(moved), "with every role, recourse changes nothing for anybody")
    flipped = people.assign(sex=people["sex"].map({"f": "m", "m": "f"}))
    subject.require_equal(
        method.recourse(flipped).assign(sex=people["sex"]),
        answer,
        "a protected feature decides what people are told",
    )


def check_assess(subject: Subject) -> None:
    """A status for each row, and scores, cost and changes that are what they are called."""
    told = subject.fitted.assess(subject.people, subject.x_plus)
    subject.require(told.index.equals(subject.people.index), "assess gives another index")
    odd = sorted(set(told["status"]) - set(STATUSES))
    subject.require(not odd, f"assess gives the status {odd}")
    score, score_plus = example_score(subject.people), example_score(subject.x_plus)
    subject.require(np.allclose(told["score"], score), "assess gives other scores than h")
    subject.require(np.allclose(told["score_plus"], score_plus), "and of x_plus, too")
    status = told["status"].to_numpy()
    subject.require(
        ((score > 0.5) == (status == "already-accepted")).all(), "'already-accepted' is misplaced"
    )
    helped = (score <= 0.5) & (score_plus > 0.5)
    subject.require((helped == (status == "ok")).all(), "'ok' is misplaced")
    a, b = subject.people, subject.x_plus
    changes = np.sum([changed(a[c], b[c]) for c in a.columns], axis=0)
    subject.require((told["changes"] == changes).all(), "'changes' is not the number of changes")
    subject.require(((told["cost"] > 0) == (told["changes"] > 0)).all(), "'cost' is misplaced")
    worse = b.copy()
    worse["age"] += 1
    broken = subject.fitted.assess(a, worse)["status"].to_numpy()[score <= 0.5]
    subject.require((broken == "rule-broken").all(), "assess does not see a broken rule")


def check_plans(subject: Subject) -> None:
    """Carried out in original units, every plan is accepted by h and breaks no rule; the plans of
    one person differ in what they change, and who has none is told why."""
    plans = subject.fitted.plans(subject.people, 3)
    subject.require(len(plans) == len(subject.people), "plans leaves people out")
    accepted = subject.h.accepts(subject.people)
    for i, plan in enumerate(plans):
        who = f"{plan.person!r}"
        subject.require(
            (plan.status == "already-accepted") == accepted[i], f"the status of {who} is wrong"
        )
        subject.require(plan.reason or plan.every, f"{who} has neither a plan nor a reason")
        kinds = [tuple(change.feature.name for change in each.changes) for each in plan.every]
        subject.require(len(set(kinds)) == len(kinds), f"two plans of {who} change the same")
        for each in plan.every:
            row = subject.people.iloc[[i]].copy()
            for change in each.changes:
                name = change.feature.name
                row[name] = pd.Series([change.after], row.index, dtype=row[name].dtype)
            subject.require(subject.h.accepts(row).all(), f"h turns down a plan of {who}")
            subject.require_rules(subject.people.iloc[[i]], row, f"a plan of {who}")


# ---- same person, same plan --------------------------------------------------------------------


def check_row_order(subject: Subject) -> None:
    order = np.random.default_rng(1).permutation(len(subject.people))
    mixed = subject.fitted.recourse(subject.people.iloc[order])
    subject.require_equal(mixed, subject.x_plus.iloc[order], "the order of rows matters")


def check_column_order(subject: Subject) -> None:
    """Columns in another order give the same values, in that other order."""
    columns = list(subject.people.columns[::-1])
    turned = subject.fitted.recourse(subject.people[columns])
    subject.require_equal(turned, subject.x_plus[columns], "the order of columns matters")


def check_subset(subject: Subject) -> None:
    """A subset of the rows gets the very rows it gets within the whole table."""
    for part in (subject.people.iloc[::2], subject.people.iloc[-7:]):
        subject.require_equal(
            subject.fitted.recourse(part),
            subject.x_plus.loc[part.index],
            f"{len(part)} of {len(subject.people)} rows get other rows than in the whole table",
        )


def check_larger_table(subject: Subject) -> None:
    """And so does a table that holds many others: more than one chunk of any size."""
    others = make_example(seed=1, rows=20, people=1200).people
    whole = pd.concat([others.set_axis(range(len(others)), axis="index"), subject.people])
    for column in subject.people.columns:
        whole[column] = whole[column].astype(subject.people[column].dtype)
    subject.require_equal(
        subject.fitted.recourse(whole).iloc[len(others) :].set_axis(subject.people.index),
        subject.x_plus,
        "rows get other rows in a larger table",
    )


def check_single_row(subject: Subject) -> None:
    rejected = np.flatnonzero(~subject.h.accepts(subject.people))
    for i in rejected[:5]:
        subject.require_equal(
            subject.fitted.recourse(subject.people.iloc[[i]]),
            subject.x_plus.iloc[[i]],
            "a row by itself gets another row than in the whole table",
        )


def check_duplicates(subject: Subject) -> None:
    """The same person twice gets the same plan twice."""
    twice = pd.concat([subject.people, subject.people.iloc[::-1]])
    answer = subject.fitted.recourse(twice)
    n = len(subject.people)
    subject.require_equal(answer.iloc[:n], subject.x_plus, "duplicates change what others get")
    subject.require_equal(answer.iloc[n:].iloc[::-1], subject.x_plus, "duplicates get other rows")


def check_same_seed(subject: Subject) -> None:
    """Two fits with one seed give the same recourse, whatever the global random state."""
    subject.require_equal(
        subject.refit.x_plus, subject.x_plus, "the same seed, fitted again, gives other rows"
    )
    subject.require_equal(
        subject.fitted.recourse(subject.people), subject.x_plus, "a second call gives other rows"
    )


def check_other_seed(subject: Subject) -> None:
    """Another seed may give other rows; they keep the rules as well."""
    other = subject.new(random_state=7)
    subject.fit(other)
    subject.require_rules(subject.people, other.recourse(subject.people), "recourse with seed 7")


def check_global_random_state(subject: Subject) -> None:
    subject.require(
        not subject.refit.touched, f"fit or recourse draws from the global {subject.refit.touched}"
    )


# ---- what is refused ---------------------------------------------------------------------------


def check_bad_tables(subject: Subject) -> None:
    """A table that does not fit the schema is a UserError in `recourse` and in `fit`."""
    method, new, y = subject.fitted, subject.new(), subject.example.y
    for what, spoil in BAD_TABLES.items():
        people, X = spoil(subject.people), spoil(subject.example.X)
        subject.refuses(partial(method.recourse, people), f"recourse of {what}")
        subject.refuses(partial(new.fit, X, y.iloc[: len(X)]), f"fit of {what}")


def _unseen(X: pd.DataFrame) -> pd.DataFrame:
    return X.assign(region=["atlantis", *X["region"].iloc[1:]])


def _infinite(X: pd.DataFrame) -> pd.DataFrame:
    return X.assign(income=[np.inf, *X["income"].iloc[1:]])


BAD_TABLES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "a table without a column": lambda X: X.drop(columns="debt"),
    "a table with a column too many": lambda X: X.assign(extra=1),
    "an empty table": lambda X: X.iloc[:0],
    "an unseen category": _unseen,
    "an infinite value": _infinite,
    "a missing value where there is none": lambda X: X.assign(years=np.nan),
    "text in a number": lambda X: X.assign(debt="much"),
    "a numpy array": lambda X: X.to_numpy(),
}


def check_bad_outcomes(subject: Subject) -> None:
    """Outcomes of another length, missing ones, and ones of which none is named favourable."""
    X, y, new = subject.example.X, subject.example.y, subject.new()
    subject.refuses(lambda: new.fit(X, y.iloc[:-1]), "fit with y too short")
    subject.refuses(lambda: new.fit(X, y.astype(float).replace(1.0, np.nan)), "fit with y missing")
    subject.refuses(lambda: new.fit(X, y.map({0: "bad", 1: "good"})), "fit with y in words")


def check_request(subject: Subject) -> None:
    """An option that the method does not have is a UserError, also where nobody needs recourse."""
    accepted = subject.people[subject.h.accepts(subject.people)]
    for people in (subject.people, accepted):
        subject.refuses(
            partial(subject.fitted.recourse, people, no_such_option=1),
            "recourse with an option it does not have",
        )


def check_one_outcome(subject: Subject) -> None:
    """A classifier that accepts nobody is a UserError: there is nobody to learn from."""
    method = subject.new().set_params(classifier=lambda X: np.full(len(X), 0.1))
    subject.refuses(lambda: subject.fit(method), "fit with a classifier that accepts nobody")
    subject.refuses(lambda: fit_quietly(method, subject.example.X), "and with no outcomes either")


# ---- generative methods -----------------------------------------------------------------------


def check_sample(subject: Subject) -> None:
    """`sample`, where there is one: n draws a row, indexed (row, draw), all within the rules."""
    if not hasattr(subject.fitted, "sample"):
        return
    people = subject.people.iloc[:20]
    draws = subject.fitted.sample(people, 3)
    expected = pd.MultiIndex.from_product([people.index, range(3)], names=["row", "draw"])
    subject.require(draws.index.equals(expected), "sample is not indexed (row, draw)")
    subject.require(list(draws.index.names) == ["row", "draw"], "the levels are not row and draw")
    repeated = people.iloc[np.repeat(np.arange(len(people)), 3)].set_axis(expected)
    for column in people.columns:
        subject.require(
            column in draws and draws[column].dtype == people[column].dtype,
            f"sample loses the column or dtype of '{column}'",
        )
    subject.require_rules(repeated, draws, "sample")
    turned = subject.fitted.sample(people[list(people.columns[::-1])], 3)
    subject.require_equal(
        turned, draws[list(people.columns[::-1])], "the order of columns matters in sample"
    )
    part = subject.fitted.sample(people.iloc[5:9], 3)
    subject.require_equal(part, draws.loc[expected[15:27]], "a subset of the rows gets other draws")


def check_log_prob(subject: Subject) -> None:
    """`log_prob`, where there is one: a log mass a row, minus infinity where a rule forbids."""
    if not hasattr(subject.fitted, "log_prob"):
        return
    x, x_plus = subject.people, subject.x_plus
    mass = subject.fitted.log_prob(x_plus, given=x)
    subject.require(isinstance(mass, pd.Series), f"log_prob gave a {type(mass).__name__}")
    subject.require(mass.index.equals(x.index), "log_prob gives another index")
    subject.require((mass <= 1e-6).all(), f"a probability of {np.exp(mass.max())} is above one")
    rejected = ~subject.h.accepts(x)
    subject.require(np.isfinite(mass[rejected]).all(), "recourse gave a row that has no mass")
    older = x_plus.assign(age=x_plus["age"] + 1)
    forbidden = subject.fitted.log_prob(older, given=x)
    subject.require((forbidden == -np.inf).all(), "a broken rule has mass")
    part = subject.fitted.log_prob(x_plus.iloc[:5], given=x.iloc[:5])
    subject.require(
        np.allclose(part, mass.iloc[:5], atol=1e-4), "log_prob depends on the rows beside"
    )
    subject.refuses(
        lambda: subject.fitted.log_prob(x_plus.iloc[:3], given=x), "log_prob of unequal lengths"
    )


CHECKS: dict[str, Callable[[Subject], None]] = {
    check.__name__.removeprefix("check_"): check
    for check in (
        check_init_only_stores,
        check_parameters,
        check_unknown_parameter,
        check_clone,
        check_fit_returns_self,
        check_fit_leaves_arguments,
        check_learned_state,
        check_not_fitted,
        check_without_outcomes,
        check_with_nothing_given,
        check_form_of_the_answer,
        check_missing_values,
        check_accepted_rows,
        check_rules,
        check_roles,
        check_assess,
        check_plans,
        check_row_order,
        check_column_order,
        check_subset,
        check_larger_table,
        check_single_row,
        check_duplicates,
        check_same_seed,
        check_other_seed,
        check_global_random_state,
        check_bad_tables,
        check_bad_outcomes,
        check_request,
        check_one_outcome,
        check_sample,
        check_log_prob,
    )
}
