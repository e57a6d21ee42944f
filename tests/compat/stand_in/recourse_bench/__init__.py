"""A stand-in for RecourseBench, written from the description of its interface.

It has what a method meets there: a frozen data set with `get` and `attr`, a trained model with
`get_prediction`, the base class of methods with `predict`, the registry, and the check of
constraints. It shares no code with RecourseBench.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression

REGISTRY: dict[str, type] = {}


def register(name: str) -> Callable[[type], type]:
    def decorate(kind: type) -> type:
        if not issubclass(kind, MethodObject):
            raise TypeError(f"{kind.__name__} is no MethodObject")
        if name in REGISTRY:
            raise KeyError(f"{name} is registered already")
        REGISTRY[name] = kind
        return kind

    return decorate


# ---- data ---------------------------------------------------------------------------------------


class Dataset:
    """Frozen: rows with the target, and metadata behind `attr`."""

    def __init__(self, rows: pd.DataFrame, target_column: str, **metadata: Any):
        self._rows, self.target_column = rows, target_column
        vars(self).update(metadata)

    def get(self, target: bool = False) -> pd.DataFrame:
        if target:
            return self._rows[[self.target_column]].copy()
        return self._rows.drop(columns=self.target_column)

    def attr(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self, name):
            raise AttributeError(f"no attribute {name}")
        return deepcopy(getattr(self, name))

    def with_rows(self, rows: pd.DataFrame) -> Dataset:
        metadata = {k: v for k, v in vars(self).items() if k not in ("_rows", "target_column")}
        return Dataset(rows, self.target_column, **metadata)


def encoded(raw: Dataset, how: str = "onehot") -> Dataset:
    """Categories as columns of 0 and 1 (one-hot or thermometer) or as codes; numbers in [0, 1]."""
    parts: list[pd.DataFrame] = []
    encoding: dict[str, list[str]] = {}
    mapping: dict[str, dict[int, Any]] = {}
    source = dict[str, str]()
    for name, column in raw._rows.items():
        kind = raw.raw_feature_type[name]  # type: ignore[attr-defined]
        if kind == "categorical":
            levels = sorted(column.unique())
            codes = column.map({level: k for k, level in enumerate(levels)}).to_numpy()
            if how == "mapping":
                part = pd.DataFrame({name: codes.astype(float)}, index=column.index)
                mapping[str(name)] = dict(enumerate(levels))
            else:
                infix = "cat" if how == "onehot" else "therm"
                places = np.arange(len(levels))
                ones = codes[:, None] == places if how == "onehot" else codes[:, None] >= places
                names = [f"{name}_{infix}_{level}" for level in levels]
                part = pd.DataFrame(ones.astype(float), index=column.index, columns=names)
            encoding[str(name)] = list(part.columns)
        elif kind == "numerical":
            low, high = column.min(), column.max()
            part = ((column - low) / (high - low)).astype(float).to_frame()
        else:
            part = column.to_frame()
        source |= dict.fromkeys(part.columns, str(name))
        parts.append(part)
    metadata: dict[str, Any] = {"encoding": encoding, "encoded_value_mapping": mapping}
    for what in ("type", "mutability", "actionability"):
        stated = raw.attr(f"raw_feature_{what}")
        metadata[f"raw_feature_{what}"] = stated
        metadata[f"encoded_feature_{what}"] = {c: stated[name] for c, name in source.items()}
    if how != "mapping":
        for columns in encoding.values():
            metadata["encoded_feature_type"] |= dict.fromkeys(columns, "binary")
    return Dataset(pd.concat(parts, axis=1), raw.target_column, **metadata)


# ---- model and method ---------------------------------------------------------------------------


class Model:
    """Logistic regression that reads columns by position and returns tensors."""

    _device = "cpu"

    def fit(self, train_set: Dataset) -> None:
        labels = train_set.get(target=True).iloc[:, 0]
        self._model = LogisticRegression(max_iter=2000)
        self._model.fit(train_set.get().to_numpy(dtype=float), labels)

    def get_class_to_index(self) -> dict[Any, int]:
        return {label.item(): k for k, label in enumerate(self._model.classes_)}

    def get_prediction(self, X: pd.DataFrame, proba: bool = True) -> torch.Tensor:
        assert proba
        assert not X.isna().any(axis=None)
        found = self._model.predict_proba(X.to_numpy(dtype=float))
        return torch.tensor(found, dtype=torch.float32, requires_grad=True)


class MethodObject(ABC):
    _is_trained = False

    @abstractmethod
    def __init__(self, target_model: Any, seed: Any = None, device: Any = "cpu", **kwargs: Any): ...

    @abstractmethod
    def fit(self, train_set: Any) -> None: ...

    @abstractmethod
    def get_counterfactuals(self, factuals: pd.DataFrame) -> pd.DataFrame: ...

    def predict(self, test_set: Dataset, batch_size: int = 20) -> pd.DataFrame:
        """The counterfactuals of all rows, asked for in batches; the last column is the target."""
        if not self._is_trained:
            raise RuntimeError("not trained")
        X, parts = test_set.get(), []
        for start in range(0, len(X), batch_size):
            batch = X.iloc[start : start + batch_size]
            found = self.get_counterfactuals(batch)
            assert found.index.equals(batch.index)
            assert list(found.columns) == list(batch.columns)
            parts.append(found)
        return pd.concat(parts).assign(**{test_set.target_column: -1.0})


# ---- the check ----------------------------------------------------------------------------------


def violations(data: Dataset, before: pd.DataFrame, after: pd.DataFrame) -> list[str]:
    """What is wrong with counterfactuals that were found: the feature and the rule, by row."""
    wrong = []
    mutable, action = data.attr("raw_feature_mutability"), data.attr("raw_feature_actionability")
    encoding = data.attr("encoding")
    mapping = data.attr("encoded_value_mapping")
    grouped = {c: source for source, columns in encoding.items() for c in columns}
    for name in dict.fromkeys(grouped.get(column, column) for column in before.columns):
        columns = encoding.get(name, [name])
        a, b = before[columns].to_numpy(dtype=float), after[columns].to_numpy(dtype=float)
        if "_cat_" in columns[0]:
            broken = ~np.isin(b, (0.0, 1.0)).all(axis=1) | (b.sum(axis=1) != 1)
        elif "_therm_" in columns[0]:
            broken = ~np.isin(b, (0.0, 1.0)).all(axis=1) | (np.diff(b, axis=1) > 0).any(axis=1)
            broken |= b[:, 0] != 1
        elif name in mapping:
            broken = ~np.isin(b[:, 0], list(mapping[name]))
        else:
            broken = ~np.isfinite(b[:, 0])
        wrong += [f"{name}: type"] * int(broken.sum())
        same = (np.abs(a - b) <= 1e-6).all(axis=1)
        if not mutable[name] or action[name] in ("same", "none"):
            wrong += [f"{name}: must stay"] * int((~same).sum())
        elif action[name] != "any":
            up = 1 if action[name].endswith("increase") else -1
            gain = up * (b.sum(axis=1) - a.sum(axis=1))
            short = gain < -1e-6 if action[name].startswith("same-or") else gain <= 1e-6
            wrong += [f"{name}: {action[name]}"] * int(short.sum())
    return wrong
