"""GenReMethod: GenRe as a method of RecourseBench, by the interface that its documentation states.

If RecourseBench is installed, importing this module registers the class there as "genre":

    import recourse_bench as rb
    import genrecourse.compat.recourse_bench

    rb.methods.genre(target_model=model, seed=7, desired_class=1)

Without RecourseBench the class works with any objects that have the same interface.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError, did_you_mean, rejections_expected, shown
from genrecourse.methods.genre import GenRe
from genrecourse.table.schema import Feature, Schema, plain
from genrecourse.table.validation import validated

NAME = "genre"  # in RecourseBench's registry
ONE_HOT, THERMOMETER = "_cat_", "_therm_"  # what names of encoded columns contain
# direction, and whether a value that stays as it is breaks the rule
ACTIONABILITY = {
    "any": ("any", False),
    "same-or-increase": ("increase", False),
    "same-or-decrease": ("decrease", False),
    "increase": ("increase", True),
    "decrease": ("decrease", True),
}
STAYS = ("same", "none")
# RecourseBench calls values equal that differ by at most this
TOLERANCE = 1e-6


# ---- what the data set says of its columns ----------------------------------------------------


@dataclass(frozen=True, eq=False)
class Columns:
    """What RecourseBench's data set says of its columns.

    >>> about = Columns({"age": "numerical"}, {"age": True}, {"age": "increase"}, {})
    >>> about.rule(["age"], "age")
    ('mutable', 'increase', True)
    """

    kinds: Mapping[str, str]
    mutable: Mapping[str, bool]
    actionable: Mapping[str, str]
    groups: Mapping[str, list[str]]  # encoded columns of each source

    @classmethod
    def of(cls, train_set: Any, names: list[str]) -> Columns:
        """Read the metadata of the encoded columns, or of the raw ones where nothing is encoded."""
        parts: list[dict[str, Any]] = []
        for what in ("type", "mutability", "actionability"):
            found = _attr(train_set, f"encoded_feature_{what}") or {}
            found = {**(_attr(train_set, f"raw_feature_{what}") or {}), **found}
            absent = [name for name in names if name not in found]
            if absent:
                raise UserError(
                    f"the data set says nothing of the {what} of {shown(absent)}; complete "
                    f"encoded_feature_{what} or raw_feature_{what}"
                )
            parts.append(found)
        encoding = _attr(train_set, "encoding") or {}
        groups = {str(source): list(map(str, columns)) for source, columns in encoding.items()}
        for source, columns in groups.items():
            there = [name in names for name in columns]
            if any(there) and not all(there):
                raise UserError(f"the table lacks columns of '{source}': {shown(columns)}")
        kinds, mutable, actionable = parts
        there_too = {source: found for source, found in groups.items() if found[0] in names}
        return cls(kinds, mutable, actionable, there_too)

    def rule(self, columns: list[str], name: str) -> tuple[str, str, bool]:
        """Return role, direction, and whether the feature must change."""
        stated = {(bool(self.mutable[c]), str(self.actionable[c]).lower()) for c in columns}
        if len(stated) > 1:
            raise UserError(f"the columns of '{name}' differ in how they may change: {columns}")
        is_mutable, actionable = stated.pop()
        if actionable not in (*STAYS, *ACTIONABILITY):
            raise UserError(
                f"the actionability of '{name}' is {shown(actionable)}"
                f"{did_you_mean(actionable, ACTIONABILITY)}; it must be one of "
                f"{[*STAYS, *ACTIONABILITY]}"
            )
        if not is_mutable or actionable in STAYS:
            return "immutable", "any", False
        return ("mutable", *ACTIONABILITY[actionable])


def _attr(train_set: Any, name: str) -> Any:
    """Return the attribute of a data set, or None if it has none."""
    try:
        return train_set.attr(name)
    except AttributeError:
        return None


# ---- from their columns to features -----------------------------------------------------------


class Table:
    """A table of RecourseBench as features: the schema, and the way there and back.

    One-hot columns are one category of the schema. Thermometer columns, of which the first ones
    are 1 and the others 0, become one column with the number of the level.

    >>> X = pd.DataFrame({"job_cat_a": [1.0, 0.0], "job_cat_b": [0.0, 1.0], "age": [30.0, 40.0]})
    >>> same = dict.fromkeys(X.columns, "any")
    >>> about = Columns(
    ...     {**same, "age": "numerical"}, same, same, {"job": ["job_cat_a", "job_cat_b"]}
    ... )
    >>> [(f.name, f.kind, f.categories) for f in Table(X, about).schema]
    [('job', 'category', ('a', 'b')), ('age', 'number', ())]
    """

    def __init__(self, X: pd.DataFrame, about: Columns):
        self.columns = list(X.columns)
        self.thermometers = {
            source: columns
            for source, columns in about.groups.items()
            if all(name.startswith(f"{source}{THERMOMETER}") for name in columns)
        }
        read = self.read(X)
        features, self.strict = [], dict[str, int]()
        for name, columns in self._units(about):
            role, direction, must = about.rule(columns, name)
            features.append(_feature(name, columns, read, about, role, direction))
            if must:
                self.strict[name] = 1 if direction == "increase" else -1
        self.schema = Schema(features=tuple(features))

    def _units(self, about: Columns) -> Iterator[tuple[str, list[str]]]:
        """Yield (name, columns) of each feature, in the order of the table."""
        source_of = {c: source for source, columns in about.groups.items() for c in columns}
        done = set()
        for column in self.columns:
            source = source_of.get(column, column)
            if source not in done:
                done.add(source)
                yield source, about.groups.get(source, [column])

    def read(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return their rows with one column for each thermometer."""
        X = X[self.columns]
        for source, columns in self.thermometers.items():
            place = list(X.columns).index(columns[0])
            level = X[columns].to_numpy(dtype=float).round().sum(axis=1).astype(int) - 1
            X = X.drop(columns=columns)
            X.insert(place, source, level)
        return X

    def write(self, T: pd.DataFrame) -> pd.DataFrame:
        """Return rows of ours as theirs."""
        for source, columns in self.thermometers.items():
            reached = T[source].to_numpy()[:, None] >= np.arange(len(columns))
            steps = pd.DataFrame(reached.astype(float), index=T.index, columns=columns)
            T = pd.concat([T.drop(columns=source), steps], axis=1)
        return T[self.columns]


def _feature(
    name: str, columns: list[str], T: pd.DataFrame, about: Columns, role: str, direction: str
) -> Feature:
    stated: dict[str, Any] = {"name": name, "role": role, "direction": direction}
    first = columns[0]
    if name not in T.columns:  # several columns of 0 and 1
        if not all(column.startswith(f"{name}{ONE_HOT}") for column in columns):
            raise UserError(
                f"'{name}' is encoded in {shown(columns)}, which is neither one-hot "
                f"('{name}{ONE_HOT}...') nor a thermometer ('{name}{THERMOMETER}...')"
            )
        levels = [column.removeprefix(f"{name}{ONE_HOT}") for column in columns]
        more: dict[str, Any] = {"kind": "category", "categories": levels, "one_hot": columns}
    elif first != name:  # a thermometer
        more = {"kind": "category", "categories": range(len(columns)), "ordered": True}
    elif _is_number(about.kinds[name], T[name]):
        more = Schema.infer(T[[name]])[name].model_dump(exclude={"name", "role", "direction"})
    else:
        levels = sorted(map(plain, T[name].dropna().unique()))
        # codes and 0 and 1 can be compared, as RecourseBench does; text cannot
        ordered = not any(isinstance(level, str) for level in levels)
        more = {"kind": "category", "categories": levels, "ordered": ordered}
    return validated(Feature, {**stated, **more}, "schema")


def _is_number(kind: str, column: pd.Series) -> bool:
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return False
    if kind.lower() == "binary":
        return not set(column.dropna().unique()) <= {0, 1}  # a scaled column is a number
    return kind.lower() != "categorical"


# ---- h ------------------------------------------------------------------------------------------


class Target:
    """RecourseBench's model: its probabilities, on our rows, and the numbers of its classes.

    >>> class Model:
    ...     def get_prediction(self, X, proba=True):
    ...         return np.stack([1 - X["income"] / 100, X["income"] / 100], axis=1)
    >>> X = pd.DataFrame({"income": [20.0, 80.0]})
    >>> kinds = Columns({"income": "numerical"}, {"income": True}, {"income": "any"}, {})
    >>> target = Target(Model(), Table(X, kinds), pd.Series([0, 1]))
    >>> target.predicted(X).tolist(), target.score(X, 1).tolist()
    ([0, 1], [0.2, 0.8])
    """

    def __init__(self, model: Any, table: Table, labels: pd.Series):
        self.model, self.table = model, table
        if hasattr(model, "get_class_to_index"):
            self.places = dict(model.get_class_to_index())
        else:  # as its models number them
            self.places = {plain(label): i for i, label in enumerate(sorted(labels.unique()))}

    def place(self, label: Any) -> int:
        """Return the number of a class."""
        if label not in self.places:
            raise UserError(
                f"desired_class is {shown(label)}; the classes of the model are "
                f"{shown(list(self.places))}"
            )
        return int(self.places[label])

    def probabilities(self, T: pd.DataFrame) -> np.ndarray:
        """Return (n, classes) probabilities."""
        found = self.model.get_prediction(self.table.write(T), proba=True)
        if hasattr(found, "detach"):  # a tensor, on whatever device
            found = found.detach().cpu().numpy()
        return np.asarray(found, dtype=np.float64)

    def predicted(self, T: pd.DataFrame) -> np.ndarray:
        """Return (n,) numbers of the most probable classes."""
        return np.asarray(self.probabilities(T).argmax(axis=1))

    def score(self, T: pd.DataFrame, place: int) -> np.ndarray:
        """Return (n,) scores of a class, above 0.5 where it is the most probable one.

        With two classes this is the probability itself.
        """
        found = self.probabilities(T)
        own, best_other = found[:, place], np.delete(found, place, axis=1).max(axis=1)
        total = own + best_other
        return np.divide(own, total, out=np.zeros(len(own)), where=total > 0)


# ---- the method ---------------------------------------------------------------------------------


class GenReMethod:
    """GenRe with the methods and attributes that RecourseBench expects.

    target_model: a trained model of RecourseBench. seed: the random state. device: where the model
    computes; GenRe itself uses the processor. desired_class: the label to reach; None: with two
    classes the other one, for which GenRe is fitted twice. params: settings of `GenRe`.

    >>> class Model:
    ...     def get_prediction(self, X, proba=True):
    ...         return np.stack([1 - X["income"] / 100, X["income"] / 100], axis=1)
    >>> GenReMethod(Model(), desired_class=1, n_draws=4).get_counterfactuals(pd.DataFrame())
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: GenReMethod.get_counterfactuals: call fit(train_set) first
    """

    def __init__(
        self,
        target_model: Any,
        seed: int | None = None,
        device: str = "cpu",
        desired_class: int | str | None = None,
        **params: Any,
    ):
        where = getattr(target_model, "_device", device)
        if str(where) != str(device):
            raise UserError(
                f"the model computes on {where} and the method on {device}; give both one"
            )
        self._target_model = target_model
        self._seed = seed
        self._device = device
        self._need_grad = False
        self._is_trained = False
        self._desired_class = desired_class
        self._params = {"random_state": 0 if seed is None else int(seed), **params}
        GenRe(**self._params)  # an unknown setting is refused here

    def fit(self, train_set: Any) -> None:
        """Fit GenRe on the training rows and their labels."""
        self._is_trained = False
        if train_set is None:
            raise UserError("GenReMethod.fit: train_set is None; GenRe learns from training rows")
        X, labels = train_set.get(target=False), _labels(train_set.get(target=True))
        self._table = Table(X, Columns.of(train_set, list(X.columns)))
        self._target = Target(self._target_model, self._table, labels)
        T = self._table.read(X).reset_index(drop=True)
        self._seen = {name: np.unique(T[name].dropna().to_numpy()) for name in self._table.strict}
        numbers = labels.map(self._target.places).to_numpy()
        self._fitted = {
            place: self._fit_towards(place, T, numbers == place) for place in self._wanted()
        }
        self._is_trained = True

    def _wanted(self) -> list[int]:
        """Return the numbers of the classes that people may want to reach."""
        if self._desired_class is not None:
            return [self._target.place(self._desired_class)]
        if len(self._target.places) == 2:
            return [0, 1]
        raise UserError(
            f"the model has the classes {shown(list(self._target.places))}; give desired_class, "
            "since only with two classes there is one other class"
        )

    def _fit_towards(self, place: int, T: pd.DataFrame, y: np.ndarray) -> GenRe:
        target = self._target
        method = GenRe(lambda rows: target.score(rows, place), self._table.schema, **self._params)
        return method.fit(T, y)

    def get_counterfactuals(self, factuals: pd.DataFrame) -> pd.DataFrame:
        """Return a row for each row, with the same index and columns.

        The answer is that of `GenRe.recourse`, as other methods are compared. It is NaN if the
        model does not put it into the desired class, or if it breaks a rule. A row that is in the
        desired class already is returned as it is.
        """
        if not self._is_trained:
            raise UserError("GenReMethod.get_counterfactuals: call fit(train_set) first")
        if len(factuals) == 0:
            return factuals.copy()
        T = self._table.read(factuals).reset_index(drop=True)
        now = self._target.predicted(T)
        parts, holds = [], np.ones(len(T), dtype=bool)
        asked = np.zeros(len(T), dtype=bool)
        for place in self._fitted:
            mine = (now != place) & ~asked
            asked |= mine
            if mine.any():
                rows, holds[mine] = self._towards(place, T[mine])
                parts.append(rows)
        parts += [] if asked.all() else [T[~asked]]
        out = self._table.write(pd.concat(parts).sort_index())
        out = out.where(np.broadcast_to(holds[:, None], out.shape))
        return out.set_axis(factuals.index)[list(factuals.columns)]

    def _towards(self, place: int, T: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
        """Return rows in the class `place`, and which of them hold."""
        method = self._fitted[place]
        with rejections_expected():
            found = method.recourse(T)
        holds = (
            method.assess(T, found)["status"].isin(["ok", "already-accepted"]).to_numpy(copy=True)
        )
        for name, sign in self._table.strict.items():
            found, moved = self._moved(place, name, sign, T, found)
            holds &= moved
        return found, holds

    def _moved(
        self, place: int, name: str, sign: int, T: pd.DataFrame, found: pd.DataFrame
    ) -> tuple[pd.DataFrame, np.ndarray]:
        """Return rows in which a feature that must go up, or down, does; and which rows do.

        A row in which it stayed gets a value of the training rows: the nearest, or the 2nd, 4th,
        8th nearest, the first with which the model stays with the class.
        """
        seen, before = self._seen[name][::sign], T[name].to_numpy()
        after = found[name].to_numpy(copy=True)
        moved = sign * (after - before) > TOLERANCE
        # of those before whom a value lies, the place of the nearest one
        first = np.array([(sign * (seen - own) > TOLERANCE).argmax() for own in before])
        able = sign * (seen[-1] - before) > TOLERANCE
        step = 1
        while step <= len(seen):
            rows = np.flatnonzero(~moved & able & (first + step - 1 < len(seen)))
            if len(rows) == 0:
                break
            tried = seen[first[rows] + step - 1]
            fine = self._target.score(found.iloc[rows].assign(**{name: tried}), place) > 0.5
            after[rows[fine]] = tried[fine]
            moved[rows[fine]] = True
            step *= 2
        return found.assign(**{name: after}), moved


def _labels(target: pd.DataFrame) -> pd.Series:
    """Return one label for each row; several columns of 0 and 1 are the classes by number."""
    if target.shape[1] == 1:
        return target.iloc[:, 0]
    return pd.Series(target.to_numpy().argmax(axis=1), index=target.index)


# ---- the registry -------------------------------------------------------------------------------


def registered(package: Any) -> type[GenReMethod]:
    """Return GenReMethod as a class of RecourseBench, entered in its registry as "genre".

    package: `recourse_bench`, with its `MethodObject` and `register`.

    >>> from types import SimpleNamespace
    >>> names = {}
    >>> register = lambda name: lambda kind: names.setdefault(name, kind)
    >>> package = SimpleNamespace(MethodObject=type("MethodObject", (), {}), register=register)
    >>> registered(package) is names["genre"], names["genre"].__mro__[2].__name__
    (True, 'MethodObject')
    """
    text = {"__doc__": GenReMethod.__doc__, "__module__": __name__}
    made = type("GenReMethod", (GenReMethod, package.MethodObject), text)
    found: type[GenReMethod] = package.register(NAME)(made)
    return found


if find_spec("recourse_bench") is not None:
    GenReMethod = registered(import_module("recourse_bench"))  # type: ignore[misc]
