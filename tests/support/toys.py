"""A small table for comparisons, quick to judge, and a stand-in for the child processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from genrecourse import METHODS, NearestNeighbour
from genrecourse.data.datasets import DATASETS, DatasetEntry
from genrecourse.evaluation.comparison import bench
from genrecourse.evaluation.comparison.isolation import Answer, MethodError, Run, Task
from genrecourse.evaluation.evaluate import Case, make_case, witnesses
from genrecourse.evaluation.gold import Witnesses
from genrecourse.model.classifier import MLPConfig
from genrecourse.trust import judge
from tests.support import spy


def read_loans(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    n = 260
    income, debt = rng.normal(50, 10, n).round(1), rng.random(n).round(3)
    good = income / 50 - debt + rng.normal(0, 0.1, n) > 0.5
    table = pd.DataFrame(
        {
            "income": income,
            "debt": debt,
            "job": rng.choice(["cook", "nurse", "clerk"], n),
            "repaid": np.where(good, "yes", "no"),
        }
    )
    return table[:200], table[200:]


LOANS = DatasetEntry(
    read=read_loans,
    target="repaid",
    favourable="repaid",
    label="yes",
    source="made from a seed",
    licence="none needed",
    h_config=MLPConfig(epochs=15, lr=0.02),
)


class Chooser(NearestNeighbour):
    """Nearest neighbours that can be asked to stay where they are."""

    def recourse(self, X: pd.DataFrame, stay: bool = False) -> pd.DataFrame:
        self.fit_report_ = {"gamma": {"chosen": self.gamma_, "tried": []}, "seconds": {"all": 1.0}}
        return X if stay else super().recourse(X)


class Runs:
    """Stands in for the child processes, and remembers what they were given."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.closed: list[Path] = []
        self.broken: set[Any] = set()

    def __call__(
        self, task: Task, people: pd.DataFrame, asks: Any, *, closed: tuple[Path, ...]
    ) -> Run:
        self.tasks.append(task)
        self.closed = list(closed)
        if task.maker in self.broken:
            raise MethodError("it broke")
        method = task.maker(task.h, task.schema, random_state=task.seed, **task.params).fit(
            task.X, task.y
        )
        answers = {k: Answer(method.recourse(people, **ask), 0.5, None) for k, ask in asks.items()}
        return Run(0.25, getattr(method, "fit_report_", {}), answers, ["a note"])


@contextmanager
def small_forests() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "RandomForestClassifier", small_forest(n_trees=5))
        yield


def small_forest(n_trees: int) -> Callable[..., RandomForestClassifier]:
    """A maker of forests with so few trees, however many are asked for."""

    def make(**settings: Any) -> RandomForestClassifier:
        return RandomForestClassifier(**{**settings, "n_estimators": n_trees})

    return make


@cache
def _case(name: str, seed: int, nested: bool) -> Case:
    with small_forests():
        return make_case(name, seed, rows=None, nested=nested)


@cache
def _witnesses(name: str, seed: int, nested: bool) -> Witnesses:
    with small_forests():
        return witnesses(_case(name, seed, nested))


def the_case(
    name: str = "loans", seed: int = 0, rows: int | None = 25, nested: bool = False
) -> Case:
    """Made once, with small forests for judges."""
    case = _case(name, seed, nested)
    return replace(case, people=case.people.iloc[:rows])


def in_this_process(monkeypatch: Any) -> Runs:
    """The data set and a few methods, for comparisons that start no process."""
    monkeypatch.setitem(DATASETS, "loans", LOANS)
    monkeypatch.setitem(METHODS, "chooser", Chooser)
    monkeypatch.setitem(METHODS, "still", spy.Still)
    made: list[tuple[str, int, bool]] = []

    def case(name: str, seed: int, *, rows: int | None, nested: bool, fresh: bool) -> Case:
        assert rows is None  # it is cut to size afterwards
        assert not fresh  # the toy case has one split only
        made.append((name, seed, nested))
        return _case(*made[-1])

    monkeypatch.setattr(bench, "last", bench._Last())
    monkeypatch.setattr(bench, "make_case", case)
    monkeypatch.setattr(bench, "witnesses_of", lambda _: _witnesses(*made[-1]))
    stand_in = Runs()
    monkeypatch.setattr(bench, "run_isolated", stand_in)
    return stand_in
