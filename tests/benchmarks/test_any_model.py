"""Models of every kind get plans that they accept; an endpoint is asked in few, full requests."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchmarks import any_model
from benchmarks.any_model import Counting, measured, table
from benchmarks.models import BATCH, KINDS, REMOTE, Brought, Endpoint, endpoint, pipeline
from genrecourse import load_dataset
from genrecourse.data.datasets import Dataset

METHOD = "nnr"  # fits at once: the tests are about the models
NEEDS = {"LightGBM": "lightgbm", "XGBoost": "xgboost", "CatBoost": "catboost", "ONNX": "skl2onnx"}


@pytest.fixture(scope="module")
def german() -> Dataset:
    return load_dataset("german")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(any_model, "PEOPLE", 4)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_gets_plans_that_it_accepts(kind: str, german: Dataset) -> None:
    package = next((needed for name, needed in NEEDS.items() if kind.startswith(name)), "sklearn")
    pytest.importorskip(package)
    y = german.y_train.to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages: what they plan to remove
        made = KINDS[kind](german.X_train, y, german.schema)
        brought = Brought(made.model, made.options, made.X, y if made.y is None else made.y)
        found = measured(brought, german.schema, german.X_test, METHOD)
    assert found["people"] == 4
    assert found["accepted"] == found["with_plan"] > 0
    assert found["asked"]["fit"]["rows"] >= len(made.X)
    assert found["asked"]["plans"]["calls"] <= found["asked"]["plans"]["rows"]


@pytest.fixture(scope="module")
def remote(german: Dataset) -> Iterator[tuple[Endpoint, list[int], Any]]:
    model = pipeline(german.X_train, german.y_train.to_numpy(), german.schema).model
    with endpoint(model) as (ask, seen):
        yield ask, seen, model


def test_an_endpoint_gets_what_the_counts_say(
    remote: tuple[Endpoint, list[int], Any], german: Dataset
) -> None:
    ask, seen, model = remote
    X = german.X_test
    np.testing.assert_allclose(ask(X), model.predict_proba(X)[:, 1])
    seen.clear()
    h = Counting(ask)
    h.score(german.X_train)
    assert seen == [BATCH, len(german.X_train) - BATCH]
    assert h.taken() == {"calls": 1, "rows": len(german.X_train)}
    seen.clear()
    brought = Brought(ask, {}, german.X_train, german.y_train.to_numpy())
    found = measured(brought, german.schema, X, METHOD)
    before = len(X)  # to find the people
    checked = found["with_plan"]  # the last check
    asked = sum(each["rows"] for each in found["asked"].values())
    assert sum(seen) == before + asked + checked
    assert max(seen) == BATCH


def test_the_table_has_a_line_for_each_model() -> None:
    one = {
        "people": 4,
        "with_plan": 3,
        "fragile": 1,
        "accepted": 3,
        "seconds": {"fit": 1.0, "plans": 0.5},
        "asked": {"fit": {"calls": 2, "rows": 750}, "plans": {"calls": 9, "rows": 1234}},
    }
    sent = one | {"requests": {"number": 40, "most_rows": 500}}
    lines = table({"models": {"a": one, REMOTE: sent}}).splitlines()
    assert lines[2] == (
        "| a | 1.0 | 0.5 | 3 of 4 | 1 | 3 of 3 | 750 rows in 2 calls | 1,234 rows in 9 calls |"
    )
    assert "40 requests in all, with at most 500 rows each" in lines[-1]
