"""MLflow flavour: a model folder as an MLflow model, for its server, its registry and Spark.

    import genrecourse.mlflow

    genrecourse.mlflow.log_model("model", name="advice")  # a folder, a method or a Service
    mlflow.pyfunc.load_model(uri).predict(people, params={"n": 3})

The MLflow model holds the folder as it is, so it is data, too: loading it unpickles nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from genrecourse.advice.batch import BatchPlanner
from genrecourse.advice.request import PlanRequest
from genrecourse.errors import UserError
from genrecourse.rules.stated import read_rules
from genrecourse.table.text_files import from_json

if TYPE_CHECKING:
    import pandas as pd

    from genrecourse.advice.service import Service

FLAVOR = "genrecourse"  # the name of the flavour in the file MLmodel
FOLDER, FACTS = "model", "advice.json"  # inside the data of an MLflow model
# what a request may ask for besides the people; MLflow knows no missing value of a parameter, so
# an empty text and 0.0 say that nothing is asked
PARAMS: dict[str, Any] = {"n": 1, "rules": "", "effort": "", "promise": 0.0}


class Saves(Protocol):
    """A fitted method or a Service: what can be written to a model folder."""

    def save(self, folder: str | os.PathLike[str], /) -> None:
        """Write a model folder."""


def save_model(
    model: str | os.PathLike[str] | Saves,
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    classifier: str | None = None,
    n: int = 1,
    code_paths: list[str] | None = None,
    mlflow_model: Any = None,
    **more: Any,
) -> None:
    """Write an MLflow model to a folder that does not exist yet.

    model: a model folder, a fitted method, or a Service.
    key: the column that names a person; None: the index does.
    classifier: the user's own model as MODULE:NAME; name its files in `code_paths`.
    n: how many plans a person gets, unless a request says otherwise.
    more: what `mlflow.pyfunc.save_model` takes besides, such as `pip_requirements` or `metadata`.
    """
    mlflow = _mlflow()
    made = mlflow.models.Model() if mlflow_model is None else mlflow_model
    made.add_flavor(FLAVOR, data=FOLDER, library_version=_version())
    with TemporaryDirectory() as folder:
        facts = {"key": key, "classifier": classifier, "n": n}
        data = _write(model, Path(folder, "data"), facts)
        planner = _planner(data, facts)
        mlflow.pyfunc.save_model(
            path=os.fspath(path),
            data_path=os.fspath(data),
            loader_module=__name__,
            code_paths=code_paths,
            mlflow_model=made,
            **{"signature": signature(planner), "pip_requirements": _requirements(), **more},
        )


def log_model(model: str | os.PathLike[str] | Saves, name: str = "advice", **more: Any) -> Any:
    """Log an MLflow model in the active run, and return what `mlflow.models.Model.log` returns.

    more: what `save_model` takes, and what `Model.log` takes, such as `registered_model_name`.
    """
    this = sys.modules[__name__]  # MLflow calls its `save_model`
    return _mlflow().models.Model.log(None, this, name=name, model=model, **more)


def load_model(uri: str) -> Service:
    """Return the Service that was logged or saved, with every verb that a front end needs.

    `mlflow.pyfunc.load_model` returns it as a function of a table instead.
    """
    mlflow = _mlflow()
    path = Path(mlflow.artifacts.download_artifacts(uri))
    found = mlflow.models.Model.load(os.fspath(path))
    if FLAVOR not in found.flavors:
        raise UserError(f"{uri} is not a model of genrecourse: it has {sorted(found.flavors)}")
    data = path / found.flavors["python_function"]["data"]
    return _planner(data, _facts(data)).service


def signature(planner: BatchPlanner) -> Any:
    """Return MLflow's description of the table that is asked about, the answer and `PARAMS`."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import AnyType

    kinds = {"n": DataType.long, "promise": DataType.double}
    stated = PARAMS | {"n": planner.request.n}
    params = [ParamSpec(each, kinds.get(each, DataType.string), stated[each]) for each in PARAMS]
    # any type: MLflow refuses a whole request for one gap in a column of integers, and the planner
    # reads every dtype and says which row it cannot read
    any_type: Any = AnyType
    people: list[Any] = [ColSpec(any_type(), name) for name in planner.columns]
    named = {"string": "string", "double": "double", "bool": "boolean"}  # Arrow's and MLflow's
    answer: list[Any] = [
        ColSpec(DataType[named.get(str(column.type), "long")], column.name, required=False)
        for column in planner.schema
    ]
    return ModelSignature(Schema(people), Schema(answer), ParamSchema(params))


# ---- what MLflow calls ---------------------------------------------------------------------------


def _load_pyfunc(data_path: str) -> _Advice:
    """Return the model as MLflow's pyfunc; MLflow calls this function by its name."""
    data = Path(data_path)
    return _Advice(_planner(data, _facts(data)))


class _Advice:
    """Plans as a function of a table."""

    def __init__(self, planner: BatchPlanner):
        self.planner = planner

    def predict(
        self, model_input: pd.DataFrame, params: Mapping[str, Any] | None = None
    ) -> pd.DataFrame:
        request = _asked(self.planner.request, params or {})
        same = request == self.planner.request
        planner = self.planner if same else self.planner.asking(request)
        return _plain(planner(model_input))


def _asked(request: PlanRequest, params: Mapping[str, Any]) -> PlanRequest:
    """Return the request with what the parameters ask for.

    >>> _asked(PlanRequest(), {"n": 2, "rules": '{"max_changes": 1}', "promise": 0.0}).n
    2
    """
    asked = PARAMS | {"n": request.n} | dict(params)
    return replace(
        request,
        n=int(asked["n"]),
        rules=read_rules(from_json(asked["rules"], "rules")) if asked["rules"] else request.rules,
        promise=float(asked["promise"]) or request.promise,
        options={"effort": asked["effort"]} if asked["effort"] else request.options,
    )


def _plain(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the answers with None for what is missing, which JSON and Arrow can write."""
    texts = answers.astype(object)
    return texts.where(answers.notna(), None)


# ---- the data of an MLflow model -----------------------------------------------------------------


def _write(model: str | os.PathLike[str] | Saves, data: Path, facts: dict[str, Any]) -> Path:
    data.mkdir()
    if isinstance(model, str | os.PathLike):
        shutil.copytree(model, data / FOLDER)
    else:
        model.save(data / FOLDER)
    (data / FACTS).write_text(json.dumps(facts), encoding="utf-8")
    return data


def _facts(data: Path) -> dict[str, Any]:
    return dict(from_json((data / FACTS).read_text(encoding="utf-8"), FACTS))


def _planner(data: Path, facts: Mapping[str, Any]) -> BatchPlanner:
    request = PlanRequest(n=int(facts["n"]))
    return BatchPlanner.of(data / FOLDER, request, key=facts["key"], classifier=facts["classifier"])


def _requirements() -> list[str]:
    """Return what a server has to install: this version, which needs Arrow besides."""
    return [f"genrecourse[parquet]=={_version()}"]


def _version() -> str:
    return version("genrecourse")


def _mlflow() -> Any:
    try:
        import mlflow
    except ImportError:
        raise UserError("this needs MLflow; run pip install 'genrecourse[mlflow]'") from None
    return mlflow
