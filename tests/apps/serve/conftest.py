"""A small model of German credit under its policy, and services around it, for all tests here."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from genrecourse.advice.service import Service
from genrecourse.apps.serve.settings import Settings
from genrecourse.data.datasets import EMBEDDED, read_whole
from genrecourse.methods import METHODS
from genrecourse.rules.policy import Policy
from tests.apps.serve.serving import Served, as_person

TEST_ROWS = 300


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of GenRe on German credit, under the policy that the package ships."""
    policy, table = Policy.read(EMBEDDED / "german.toml"), read_whole("german")
    X, y = policy.split(table.iloc[TEST_ROWS:])
    method = METHODS["genre"](policy.classifier(), policy.schema(X), random_state=0)
    folder = tmp_path_factory.mktemp("served") / "german"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method.fit(X, y).save(folder, policy)
    return folder


@pytest.fixture(scope="session")
def service(model_folder: Path) -> Service:
    return Service.open(model_folder)


@pytest.fixture(scope="session")
def rejected(service: Service) -> pd.DataFrame:
    """People whom the model rejects, with the index 0, 1, 2, ..."""
    X = read_whole("german").iloc[:TEST_ROWS][service.schema.columns]
    return X[~service.method.classifier_.accepts(X)].reset_index(drop=True)


@pytest.fixture(scope="session")
def people(rejected: pd.DataFrame) -> list[dict[str, Any]]:
    """The same people as JSON."""
    return [as_person(rejected, i) for i in range(len(rejected))]


@pytest.fixture(scope="session")
def served(service: Service) -> Iterator[Served]:
    """The service on a real socket, in a thread of this process."""
    with Served(service, Settings(port=0, name="german")) as running:
        yield running


@pytest.fixture(scope="session")
def client(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, timeout=60) as made:
        yield made
