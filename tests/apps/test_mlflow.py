"""The MLflow flavour: saved, logged, loaded, and asked over HTTP as MLflow serves it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from genrecourse import UserError
from genrecourse.advice.batch import BatchPlanner
from genrecourse.advice.request import PlanRequest
from tests.support.batches import wait_until, write_example

mlflow = pytest.importorskip("mlflow")
# MLflow warns about its own affairs
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        yield


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import genrecourse.mlflow

    folder = tmp_path_factory.mktemp("mlflow")
    write_example(folder)
    genrecourse.mlflow.save_model(folder / "model", folder / "saved", key="id", n=2)
    return folder


@pytest.fixture(scope="module")
def people(files: Path) -> pd.DataFrame:
    return pd.read_parquet(files / "people.parquet").head(30)


def answers(files: Path, people: pd.DataFrame, **asked: Any) -> pd.DataFrame:
    return BatchPlanner.of(files / "model", PlanRequest(**asked), key="id")(people)


def assert_same(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    assert list(found.columns) == list(expected.columns)
    for name in expected:
        a, b = ([None if pd.isna(v) else v for v in each[name]] for each in (found, expected))
        assert a == b, name


def test_a_saved_model_answers_as_the_library_does(files: Path, people: pd.DataFrame) -> None:
    model = mlflow.pyfunc.load_model(str(files / "saved"))
    assert_same(model.predict(people), answers(files, people, n=2))
    params = {"n": 1, "rules": '{"max_changes": 1}'}
    found = model.predict(people, params=params)
    assert_same(found, answers(files, people, n=1, rules={"max_changes": 1}))
    assert found["n_changes_1"].dropna().max() == 1
    promised = model.predict(people.head(3), params={"promise": 0.5})
    assert_same(promised, answers(files, people.head(3), n=2, promise=0.5))
    with pytest.raises(Exception, match="effort"):
        model.predict(people.head(3), params={"effort": "no such"})


def test_the_signature_names_people_answers_and_parameters(files: Path) -> None:
    signature = mlflow.models.get_model_info(str(files / "saved")).signature
    planner = BatchPlanner.of(files / "model", PlanRequest(n=2), key="id")
    assert set(planner.columns) == set(signature.inputs.input_names())
    assert signature.outputs.input_names() == planner.schema.names
    assert {each.name: each.default for each in signature.params} == {
        "n": 2,
        "rules": "",
        "effort": "",
        "promise": 0.0,
    }


def test_a_logged_model_is_loaded_with_every_verb(
    files: Path, people: pd.DataFrame, tmp_path: Path
) -> None:
    import genrecourse.mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    try:
        with mlflow.start_run():
            service = BatchPlanner.of(files / "model").service
            info = genrecourse.mlflow.log_model(service, key="id", n=1)
        loaded = genrecourse.mlflow.load_model(info.model_uri)
        found = mlflow.pyfunc.load_model(info.model_uri).predict(people.head(4))
    finally:
        mlflow.set_tracking_uri(before)
    assert loaded.schema == service.schema
    expected = answers(files, people.head(4), n=1)
    assert_same(found.drop(columns="model"), expected.drop(columns="model"))
    mlflow.pyfunc.save_model(
        tmp_path / "other", python_model=lambda model_input: model_input, pip_requirements=[]
    )
    with pytest.raises(UserError, match="is not a model of genrecourse"):
        genrecourse.mlflow.load_model(str(tmp_path / "other"))


def test_the_server_of_mlflow_answers(files: Path, people: pd.DataFrame) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # for uvicorn
    command = [sys.executable, "-m", "mlflow", "models", "serve", "--env-manager", "local"]
    command += ["-m", str(files / "saved"), "-h", "127.0.0.1", "-p", str(port), "--workers", "1"]
    server = subprocess.Popen(
        command,
        env=os.environ | {"PATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    where = f"http://127.0.0.1:{port}"

    def is_up() -> bool:
        assert server.poll() is None, "the server has ended"
        try:
            return bool(urllib.request.urlopen(f"{where}/ping").status == 200)
        except OSError:
            return False

    try:
        wait_until(is_up, "the server answers")
        table = people.head(6)
        rows = json.loads(table.to_json(orient="split", index=False))
        body = {"dataframe_split": rows, "params": {"n": 1, "rules": '{"max_changes": 1}'}}
        request = urllib.request.Request(
            f"{where}/invocations",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            found = pd.DataFrame(json.load(answer)["predictions"])
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()
    assert_same(found, answers(files, table, n=1, rules={"max_changes": 1}))
