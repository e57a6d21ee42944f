"""Classifiers that misbehave, each with what must come of it.

`same`: the answers are those of the sound classifier. `works`: there are plans, and the classifier
accepts them. `accepted`: it accepts everybody. `noticed`: it is warned about. `refused`: one
UserError. Nothing else may happen.
"""

from __future__ import annotations

import asyncio
import decimal
import random
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars
import scipy.sparse
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from torch import nn

from genrecourse import Classifier

JOBS = ["cook", "nurse", "pilot"]
TABLE = pd.DataFrame(
    {
        "income": np.arange(80) % 41,
        "debt": np.arange(80.0, 0, -1) / 2,
        "job": JOBS * 26 + JOBS[:2],
        "owner": [True, False, False, True] * 20,
    },
    index=[f"p{i % 70}" for i in range(80)],  # some labels twice
).astype({"job": object})


def sound(X: pd.DataFrame) -> np.ndarray:
    """The classifier that the others spoil; every score is a multiple of 1/64."""
    raw = 14 + X["income"].to_numpy(dtype=float) - X["debt"].to_numpy(dtype=float) // 4
    return (raw + 8 * (X["job"].astype(object) == "pilot").to_numpy()) / 64


OUTCOMES = sound(TABLE) > 0.5
NUMBERS = ["income", "debt"]


@dataclass(frozen=True)
class Bad:
    """A classifier, or what makes one, and what must come of it."""

    label: str
    make: Callable[[], Any]
    ends: str
    says: str = ""


def cases() -> list[Bad]:
    """Return all of them."""
    parts = (changes_its_table(), is_particular(), answers_oddly(), answers_wrongly(), proba())
    more = (raises(), is_no_model(), close_scores(), changes_its_mind(), modules(), settings())
    return [case for part in parts + more for case in part]


def function(label: str, ends: str, says: str = "") -> Callable[[Any], Bad]:
    return lambda act: Bad(label, lambda: act, ends, says)


# ---- what it does to its table, or wants of it ------------------------------------------------


def changes_its_table() -> Iterator[Bad]:
    def after(act: Callable[[pd.DataFrame], Any]) -> Callable[[], Any]:
        def h(X: pd.DataFrame) -> np.ndarray:
            scores = sound(X)
            act(X)
            return scores

        return lambda: h

    def doubled(X: pd.DataFrame) -> None:
        X["income"] *= 2

    def cell(X: pd.DataFrame) -> None:
        X.loc[0, "job"] = "thief"

    acts: dict[str, Callable[[pd.DataFrame], Any]] = {
        "doubles a column in place": doubled,
        "writes into a cell": cell,
        "sorts in place": lambda X: X.sort_values("debt", inplace=True),
        "drops a column in place": lambda X: X.drop(columns="job", inplace=True),
        "adds a column": lambda X: X.insert(0, "new", 1.0),
        "renames columns": lambda X: setattr(X, "columns", list("abcd")),
        "drops rows in place": lambda X: X.drop(index=X.index[:1], inplace=True),
        "sets the index": lambda X: X.set_index("debt", inplace=True),
        "sets global seeds": lambda X: (torch.manual_seed(0), random.seed(0)),
        "warns": lambda X: warnings.warn("a model's own warning", RuntimeWarning, stacklevel=2),
    }
    for label, act in acts.items():
        yield Bad(label, after(act), "same")


def is_particular() -> Iterator[Bad]:
    """It accepts no table but one like that of `fit`, to the dtype."""

    def wants(right: Callable[[pd.DataFrame], bool]) -> Callable[[], Any]:
        def h(X: pd.DataFrame) -> np.ndarray:
            if not right(X):
                raise TypeError(f"not what I know: {dict(X.dtypes)} {X.index}")
            return sound(X)

        return lambda: h

    kinds: dict[str, Callable[[pd.DataFrame], bool]] = {
        "integers": lambda X: X["income"].dtype == np.int64 or (X["income"] % 1 > 0).any(),
        "floats": lambda X: X["debt"].dtype == np.float64,
        "objects": lambda X: X["job"].dtype == object,
        "booleans": lambda X: X["owner"].dtype == bool,
        "the order of columns": lambda X: list(X.columns) == list(TABLE.columns),
        "a unique index": lambda X: X.index.is_unique,
        "rows numbered from 0": lambda X: X.index.equals(pd.RangeIndex(len(X))),
        "no row more than once": lambda X: not X.index.has_duplicates,
    }
    for label, right in kinds.items():
        yield Bad(f"wants {label}", wants(right), "same")

    def merged(X: pd.DataFrame) -> Any:
        known = pd.DataFrame({"job": JOBS, "more": [0, 0, 8]})
        return sound(X) if len(X.merge(known, on="job")) == len(X) else None

    def by_index(X: pd.DataFrame) -> Any:
        return pd.Series(sound(X), index=X.index).reindex(X.index)

    def reordered(X: pd.DataFrame) -> Any:
        return pd.Series(sound(X), index=X.index).sort_values()

    def grouped(X: pd.DataFrame) -> Any:
        return pd.concat([pd.Series(sound(part), part.index) for _, part in X.groupby("job")])

    def in_parts(X: pd.DataFrame) -> Any:
        parts = [X.iloc[i : i + 7] for i in range(0, len(X), 7)]
        return pd.concat([pd.Series(sound(part)) for part in parts])

    for label, h in {
        "merges": merged,
        "reads its index": by_index,
        "sorts its answer": reordered,
        "answers by group": grouped,
        "answers in parts": in_parts,
    }.items():
        yield Bad(label, lambda h=h: h, "same")


# ---- the form of its answer -------------------------------------------------------------------


def answers_oddly() -> Iterator[Bad]:
    forms: dict[str, Callable[[np.ndarray], Any]] = {
        "a list": list,
        "a tuple": tuple,
        "one column": lambda s: s[:, None],
        "a table of one column": lambda s: pd.DataFrame({"score": s}),
        "a Series of floats": pd.Series,
        "a nullable Series": lambda s: pd.Series(s, dtype="Float64"),
        "a polars Series": polars.Series,
        "objects": lambda s: s.astype(object),
        "decimals": lambda s: [decimal.Decimal(float(x)) for x in s],
        "single precision": lambda s: s.astype(np.float32),
        "a tensor": torch.tensor,
        "a tensor with gradients": lambda s: torch.tensor(s, requires_grad=True),
        "a number for one row": np.squeeze,
        "a masked array": np.ma.array,
        "a read-only array": lambda s: np.broadcast_to(s, s.shape),
    }
    for label, form in forms.items():
        yield Bad(f"answers {label}", lambda form=form: lambda X: form(sound(X)), "same")


def answers_wrongly() -> Iterator[Bad]:
    async def later() -> None: ...

    def coroutine(X: pd.DataFrame) -> Any:
        made = later()
        asyncio.run(made)
        return made

    forms: dict[str, tuple[Callable[[pd.DataFrame], Any], str]] = {
        "None": (lambda X: None, "no numbers"),
        "texts": (lambda X: ["yes"] * len(X), "'yes'"),
        "numbers as texts": (lambda X: [str(s) for s in sound(X)], "no numbers"),
        "numbers as objects of text": (lambda X: sound(X).astype(str).astype(object), "no numbers"),
        "the table": (lambda X: X, "no numbers"),
        "two columns": (lambda X: np.stack([1 - sound(X), sound(X)], 1), "shape (80, 2)"),
        "one row": (lambda X: sound(X)[None], "shape (1, 80)"),
        "one number": (lambda X: 0.3, "shape ()"),
        "too few rows": (lambda X: sound(X)[1:], "shape (79,)"),
        "rows without gaps": (lambda X: sound(X[X["income"] > 3]), "shape ("),
        "too many rows": (lambda X: np.append(sound(X), 0.3), "shape (81,)"),
        "nothing": (lambda X: [], "shape (0,)"),
        "NaN": (lambda X: np.where(sound(X) > 0.6, np.nan, sound(X)), "NaN"),
        "None among numbers": (lambda X: [None, *sound(X)[1:]], "NaN"),
        "missing values": (lambda X: pd.Series([pd.NA, *sound(X)[1:]], dtype="Float64"), "NaN"),
        "masked values": (lambda X: np.ma.array(sound(X), mask=sound(X) > 0.6), "NaN"),
        "infinity": (lambda X: sound(X) / 0.0, "inf"),
        "logits": (lambda X: 9 * sound(X) - 4, "sigmoid"),
        "complex numbers": (lambda X: sound(X) + 1j, "no numbers"),
        "dates": (lambda X: pd.to_datetime(sound(X)), "no numbers"),
        "ragged lists": (lambda X: [[0.1], [0.1, 0.2]] * (len(X) // 2), "no numbers"),
        "a generator": (lambda X: (s for s in sound(X)), "no numbers"),
        "a dict": (lambda X: dict(enumerate(sound(X))), "no numbers"),
        "a set": (lambda X: set(sound(X)), "no numbers"),
        "a sparse matrix": (lambda X: scipy.sparse.csr_array(sound(X)[:, None]), "no numbers"),
        "itself": (lambda X: sound, "no numbers"),
        "a coroutine": (coroutine, "no numbers"),
        "three dimensions": (lambda X: sound(X)[:, None, None], "shape (80, 1, 1)"),
    }
    for label, (h, says) in forms.items():
        yield Bad(f"answers {label}", lambda h=h: h, "refused", says)


class Proba:
    """A model with predict_proba; `classes` may be wrong."""

    def __init__(self, answer: Callable[[np.ndarray], Any], classes: Any = (0, 1)):
        self.answer, self.classes_ = answer, classes

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self.answer(sound(X))


def both(s: np.ndarray) -> np.ndarray:
    return np.stack([1 - s, s], axis=1)


def proba() -> Iterator[Bad]:
    good: dict[str, Proba] = {
        "an array of classes": Proba(both, np.array([0, 1])),
        "no classes": Proba(both, None),
        "a table": Proba(lambda s: pd.DataFrame(both(s), columns=["no", "yes"])),
        "booleans as classes": Proba(both, [False, True]),
        "the classes in another order": Proba(lambda s: both(s)[:, ::-1], [1, 0]),
        "a third class": Proba(lambda s: np.c_[both(s), 0 * s], [0, 1, 0.0]),
    }
    for label, model in good.items():
        ends = "same" if label != "a third class" else "works"
        yield Bad(f"predict_proba with {label}", lambda model=model: model, ends)
    bad: dict[str, tuple[Proba, str]] = {
        "one column": (Proba(lambda s: s[:, None]), "one column for each class"),
        "no columns": (Proba(lambda s: s), "one column for each class"),
        "a number": (Proba(lambda s: 0.3), "one column for each class"),
        "None": (Proba(lambda s: None), "no numbers"),
        "texts": (Proba(lambda s: [["a", "b"]] * len(s)), "no numbers"),
        "a list for each output": (Proba(lambda s: [both(s), both(s)]), "one column for each"),
        "other classes": (Proba(both, ["bad", "good"]), "name the favourable one"),
        "one class": (Proba(lambda s: s[:, None], [0]), "works"),
        "classes that are lists": (Proba(both, [[0], [1]]), "classes_"),
        "a number of classes": (Proba(both, 2), "classes_"),
        "too few rows": (Proba(lambda s: both(s)[1:]), "one column for each class"),
        "too high probabilities": (Proba(lambda s: both(s) * 2), "outside"),
    }
    for label, (model, says) in bad.items():
        if label != "one class":
            yield Bad(f"predict_proba with {label}", lambda model=model: model, "refused", says)


# ---- what it raises, and what is none ----------------------------------------------------------


class SilentError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def raises() -> Iterator[Bad]:
    errors: list[Exception] = [
        KeyError("debt"),
        ValueError("two\nlines"),
        ZeroDivisionError(),
        StopIteration(),
        RecursionError("too deep"),
        MemoryError(),
        OSError(2, "no model server"),
        AttributeError("predict"),
        TimeoutError("30 s"),
        UnicodeDecodeError("utf8", b"\xff", 0, 1, "a byte"),
        AssertionError(),
        SilentError(),
        RuntimeError("x" * 10_000),
    ]
    for error in errors:

        def h(X: pd.DataFrame, error: Exception = error) -> Any:
            raise error

        yield Bad(f"raises {type(error).__name__}", lambda h=h: h, "refused", type(error).__name__)

    def on_few(X: pd.DataFrame) -> np.ndarray:
        if len(X) < 5:
            raise ValueError("give at least 5 rows")
        return sound(X)

    def no_arguments() -> None: ...

    def endless(X: pd.DataFrame) -> Any:
        return endless(X)

    yield Bad("raises for few rows", lambda: on_few, "refused", "raised ValueError")
    yield Bad("takes no argument", lambda: no_arguments, "refused", "raised TypeError")
    yield Bad("calls itself", lambda: endless, "refused", "raised RecursionError")


class Rude:
    """Every attribute raises, and not the AttributeError that Python expects."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


def is_no_model() -> Iterator[Bad]:
    X, y = TABLE[NUMBERS], OUTCOMES
    models: dict[str, tuple[Callable[[], Any], str]] = {
        "a class": (lambda: LogisticRegression, "is a class"),
        "an unfitted model": (LogisticRegression, "not fitted"),
        "an unfitted pipeline": (lambda: make_pipeline(StandardScaler(), Ridge()), "cannot score"),
        "without probabilities": (lambda: Perceptron().fit(X, y), "cannot score"),
        "a regression": (lambda: Ridge().fit(X, y), "cannot score"),
        "a text": (lambda: "model.pkl", "cannot score"),
        "a number": (lambda: 0.7, "cannot score"),
        "a table": (lambda: TABLE, "cannot score"),
        "rude": (Rude, "cannot score"),
        "fitted on other columns": (lambda: LogisticRegression().fit(X, y), "raised ValueError"),
    }
    for label, (make, says) in models.items():
        yield Bad(f"is {label}", make, "refused", says)

    def forest() -> Any:
        columns = make_column_transformer((OrdinalEncoder(), ["job"]), remainder="passthrough")
        some = RandomForestClassifier(10, random_state=0)
        return make_pipeline(columns, some).fit(TABLE, y.astype(int))

    def surprised() -> Any:  # noise on the numbers of a plan makes some that it does not know
        some = RandomForestClassifier(10, random_state=0)
        return make_pipeline(OrdinalEncoder(), some).fit(TABLE, y.astype(int))

    yield Bad("is a forest that reads texts", forest, "works")
    yield Bad("takes numbers for texts", surprised, "refused", "raised ValueError")


# ---- scores that differ little, or for no reason ------------------------------------------------


def close_scores() -> Iterator[Bad]:
    def beyond(X: pd.DataFrame) -> np.ndarray:
        return sound(X) > 0.5

    scores: dict[str, Callable[[pd.DataFrame], Any]] = {
        "0.49 and 0.51": lambda X: np.where(beyond(X), 0.51, 0.49),
        "from 0.49 to 0.51": lambda X: 0.49 + 0.02 * sound(X),
        "from 0.4999999 to 0.5000001": lambda X: 0.5 + 2e-7 * (sound(X) - 0.5),
        "0 and 1": lambda X: beyond(X).astype(int),
        "True and False": beyond,
        "0.5 and a little more": lambda X: 0.5 + 1e-9 * beyond(X),
        "0 and a little above the cutoff": lambda X: 0.501 * beyond(X),
        "0.49 and 1": lambda X: np.where(beyond(X), 1.0, 0.49),
    }
    for label, h in scores.items():
        yield Bad(f"scores {label}", lambda h=h: h, "works")
    yield Bad("accepts nobody", lambda: lambda X: 0 * sound(X), "refused", "none of")
    yield Bad("accepts everybody", lambda: lambda X: 0 * sound(X) + 1, "accepted")


def changes_its_mind() -> Iterator[Bad]:
    rng = np.random.default_rng(0)
    asked = iter(range(10**9))

    def noisy(X: pd.DataFrame) -> np.ndarray:
        return (sound(X) + 0.05 * rng.normal(size=len(X))).clip(0, 1)

    def ranks(X: pd.DataFrame) -> Any:
        return pd.Series(sound(X)).rank(pct=True)

    def scaled(X: pd.DataFrame) -> np.ndarray:
        s = sound(X)
        return (s - s.min()) / (s.max() - s.min() + 1e-9)

    def drifting(X: pd.DataFrame) -> np.ndarray:
        return (sound(X) + 0.001 * next(asked) % 0.1).clip(0, 1)

    def by_the_clock(X: pd.DataFrame) -> np.ndarray:
        return (sound(X) + time.perf_counter() % 0.05).clip(0, 1)

    for label, h in {
        "adds noise": noisy,
        "ranks the rows": ranks,
        "scales by the rows": scaled,
        "drifts": drifting,
        "reads the clock": by_the_clock,
    }.items():
        yield Bad(label, lambda h=h: h, "noticed")


# ---- torch ------------------------------------------------------------------------------------


class Module(nn.Module):
    """Reads income and debt, as `sound` without the job; a subclass spoils it."""

    def __init__(self, layer: nn.Module | None = None):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1 / 64, -1 / 256]))
        self.layer = layer or nn.Identity()

    def forward(self, X: torch.Tensor) -> Any:
        return (14 / 64 + self.layer(X) @ self.weight).clamp(0, 1)


class Spoilt(Module):
    def __init__(self, spoil: Callable[[torch.Tensor], Any]):
        super().__init__()
        self.spoil = spoil

    def forward(self, X: torch.Tensor) -> Any:
        return self.spoil(super().forward(X))


class InPlace(Module):
    def forward(self, X: torch.Tensor) -> Any:
        found = super().forward(X)
        X.zero_()
        return found


class WholeFirst(Module):
    """Its first parameter holds whole numbers."""

    def __init__(self) -> None:
        super().__init__()
        own = self.weight
        del self.weight
        self.count = nn.Parameter(torch.tensor([3]), requires_grad=False)
        self.weight = own


class Fails(Module):
    def forward(self, X: torch.Tensor) -> Any:
        raise RuntimeError("no kernel")


def modules() -> Iterator[Bad]:
    good: dict[str, Callable[[], nn.Module]] = {
        "in train mode with dropout": lambda: Module(nn.Dropout(0.5)).train(),
        "that changes its input": InPlace,
        "with whole numbers first": WholeFirst,
        "with one column": lambda: Spoilt(lambda s: s[:, None]),
        "that squeezes": lambda: Spoilt(torch.squeeze),
        "in double precision": lambda: Module().double(),
    }
    for label, make in good.items():
        yield Bad(f"a module {label}", make, "works")
    norm = nn.BatchNorm1d(2, affine=False)
    yield Bad("a module in train mode with batch norm", lambda: Module(norm).train(), "works")
    bad: dict[str, tuple[Callable[[], nn.Module], str]] = {
        "a tuple": (lambda: Spoilt(lambda s: (s, s)), "shape (2, 80)"),
        "a dict": (lambda: Spoilt(lambda s: {"score": s}), "no numbers"),
        "None": (lambda: Spoilt(lambda s: None), "no numbers"),
        "two columns": (lambda: Spoilt(lambda s: torch.stack([s, s], 1)), "shape (80, 2)"),
        "logits": (lambda: Spoilt(lambda s: 9 * s - 4), "sigmoid"),
        "NaN": (lambda: Spoilt(lambda s: s / 0 * 0), "NaN"),
        "complex numbers": (lambda: Spoilt(lambda s: s + 1j), "no numbers"),
        "an error": (Fails, "raised RuntimeError"),
        "other columns": (lambda: nn.Sequential(nn.Linear(7, 1), nn.Sigmoid()), "raised Runtime"),
    }
    for label, (made, says) in bad.items():
        yield Bad(f"a module that gives {label}", made, "refused", says)


# ---- settings of the wrapper ------------------------------------------------------------------


def settings() -> Iterator[Bad]:
    given: dict[str, tuple[dict[str, Any], str]] = {
        "cutoff=nan": ({"cutoff": float("nan")}, "the cutoff nan"),
        "cutoff=None": ({"cutoff": None}, "the cutoff None"),
        "cutoff='a'": ({"cutoff": "a"}, "the cutoff 'a'"),
        "cutoff=2": ({"cutoff": 2}, "the cutoff 2"),
        "score_range=5": ({"score_range": 5}, "score_range is 5"),
        "score_range=(0,)": ({"score_range": (0,)}, "score_range is (0,)"),
        "score_range='01'": ({"score_range": "01"}, "score_range is '01'"),
        "score_range to infinity": ({"score_range": (0, float("inf"))}, "score_range is (0, inf)"),
        "score_range reversed": ({"score_range": (1, 0)}, "not inside"),
    }
    for label, (setting, says) in given.items():
        yield Bad(label, lambda setting=setting: Classifier(sound, **setting), "refused", says)
    model = LogisticRegression().fit(TABLE[NUMBERS], np.where(OUTCOMES, "yes", "no"))
    for favourable in ("maybe", 7, [[1]], {"a": 1}, [], float("nan")):
        made = {"model": model, "favourable": favourable}
        yield Bad(
            f"favourable={favourable!r}",
            lambda made=made: Classifier(**made),
            "refused",
            "favourable",
        )
