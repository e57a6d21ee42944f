"""What platforms already speak: KServe's V1 protocol, the Open Inference Protocol, health."""

from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from genrecourse.apps.serve.answers import Answers, dumped, not_there, plans_as
from genrecourse.apps.serve.errors import ERRORS, Refusal
from genrecourse.apps.serve.messages import (
    ExplanationsOut,
    InferBody,
    InferOut,
    PredictBody,
    PredictionsOut,
    Tensor,
)

NUMBERS = {"FP32", "FP64", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"}
TYPES = NUMBERS | {"BOOL", "BYTES"}


class Live(BaseModel):
    live: bool


class Ready(BaseModel):
    ready: bool


class ModelReady(BaseModel):
    name: str
    ready: bool


class Models(BaseModel):
    models: list[str]


class Server(BaseModel):
    name: str
    version: str
    extensions: list[str]


class Metadata(BaseModel):
    name: str
    versions: list[str]
    platform: str
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]


def platform_routes(answers: Answers) -> APIRouter:
    """Return the routes of health, of KServe's V1 protocol and of the Open Inference Protocol."""
    routes = APIRouter(responses=ERRORS)
    _health(routes, answers)
    _kserve(routes, answers)
    _open_inference(routes, answers)
    return routes


def _health(routes: APIRouter, answers: Answers) -> None:
    @routes.get("/healthz", response_model=Live, tags=["Health"])
    @routes.get("/v2/health/live", response_model=Live, tags=["Health"])
    async def live() -> Live:
        """The process runs."""
        return Live(live=True)

    @routes.get("/v2/health/ready", response_model=Ready, tags=["Health"])
    async def ready() -> Ready:
        """The model answers; 503 if it does not."""
        if not answers.desk.is_working:
            raise Refusal(503, "the model is not ready", headers={"Retry-After": "5"})
        return Ready(ready=True)


def _kserve(routes: APIRouter, answers: Answers) -> None:
    service, settings = answers.service, answers.settings
    ExplainBody: Any = answers.asking.explain_body

    @routes.get("/v1/models", response_model=Models, tags=["KServe V1"])
    async def models() -> Models:
        """The names of the models: one."""
        return Models(models=[settings.name])

    @routes.get("/v1/models/{name}", response_model=ModelReady, tags=["KServe V1"])
    async def model(name: str) -> ModelReady:
        """Whether the model answers."""
        _check_name(answers, name)
        return ModelReady(name=name, ready=answers.desk.is_working)

    @routes.post("/v1/models/{name}:predict", response_model=PredictionsOut, tags=["KServe V1"])
    async def predict(request: Request, name: str, body: PredictBody) -> Response:
        """The model's score of each person; above the cutoff is favourable."""
        _check_name(answers, name)
        X = answers.read(request, _people(answers, body.instances), "instances")
        scores = await answers.scores(request, X, "predict")
        cutoff = float(service.method.classifier_.cutoff)
        data = {"predictions": [float(score) for score in scores], "cutoff": cutoff}
        return Response(dumped(data), media_type="application/json")

    @routes.post("/v1/models/{name}:explain", response_model=ExplanationsOut, tags=["KServe V1"])
    async def explain(request: Request, name: str, body: ExplainBody) -> Response:
        """What each person could change; takes the options of /api/v1/plans, too."""
        _check_name(answers, name)
        given = body.instances
        asked = answers.asking.request(body, len(given))
        X = answers.read(request, _people(answers, given), "instances")
        return await plans_as("explanations", await answers.plans(request, X, asked))


def _open_inference(routes: APIRouter, answers: Answers) -> None:
    settings = answers.settings

    @routes.get("/v2", response_model=Server, tags=["Open Inference Protocol"])
    async def server() -> Server:
        """What this server is."""
        return Server(name="genrecourse", version=version("genrecourse"), extensions=[])

    @routes.get("/v2/models/{name}", response_model=Metadata, tags=["Open Inference Protocol"])
    async def metadata(name: str) -> Metadata:
        """The columns that the model reads and what it gives."""
        _check_name(answers, name)
        inputs = [
            {"name": column, "datatype": _datatype(described), "shape": [-1]}
            for column, described in answers.people.description["properties"].items()
        ]
        outputs = [
            {"name": "score", "datatype": "FP64", "shape": [-1]},
            {"name": "favourable", "datatype": "BOOL", "shape": [-1]},
        ]
        return Metadata(
            name=name, versions=["1"], platform="genrecourse", inputs=inputs, outputs=outputs
        )

    @routes.get(
        "/v2/models/{name}/ready", response_model=ModelReady, tags=["Open Inference Protocol"]
    )
    async def model_ready(name: str) -> ModelReady:
        """Whether the model answers."""
        _check_name(answers, name)
        return ModelReady(name=name, ready=answers.desk.is_working)

    @routes.post(
        "/v2/models/{name}/infer", response_model=InferOut, tags=["Open Inference Protocol"]
    )
    async def infer(request: Request, name: str, body: InferBody) -> Response:
        """Scores and decisions; each column is a tensor of shape [people] or [people, 1]."""
        _check_name(answers, name)
        X = answers.read(request, _rows(body.inputs), "inputs")
        scores = await answers.scores(request, X, "infer")
        cutoff = float(answers.service.method.classifier_.cutoff)
        outputs = [
            _output("score", "FP64", [float(score) for score in scores]),
            _output("favourable", "BOOL", [bool(score > cutoff) for score in scores]),
        ]
        data = {"model_name": settings.name, "id": body.id, "outputs": outputs}
        return Response(dumped(data), media_type="application/json")


def _check_name(answers: Answers, name: str) -> None:
    if name != answers.settings.name:
        raise not_there(f"model of this name; this service has {answers.settings.name!r}")


def _people(answers: Answers, instances: list[Any]) -> list[dict[str, Any]]:
    """Return people from KServe's instances: objects, or lists of values in the table's order."""
    columns, found = answers.people.columns, []
    for i, each in enumerate(instances):
        if isinstance(each, list) and len(each) == len(columns):
            each = dict(zip(columns, each, strict=True))
        if not isinstance(each, dict):
            raise Refusal(
                422, f"instances[{i}] is no person", field=f"instances[{i}]",
                do=f"give an object with the fields, or a list with the {len(columns)} values of "
                f"{columns}",
            )  # fmt: skip
        found.append(each)
    return found


def _rows(inputs: list[Tensor]) -> list[dict[str, Any]]:
    """Return people from one tensor for each column."""
    n = len(inputs[0].data)
    columns: dict[str, list[Any]] = {}
    for i, each in enumerate(inputs):
        where = f"inputs[{i}]"
        if each.datatype not in TYPES:
            raise Refusal(422, f"{where}.datatype is unknown", field=f"{where}.datatype",
                          seen=each.datatype[:80], do=f"give one of {sorted(TYPES)}")  # fmt: skip
        if each.name in columns:
            raise Refusal(422, f"{where} names a column a second time", field=f"{where}.name",
                          seen=each.name[:80])  # fmt: skip
        if each.shape not in ([n], [n, 1]) or len(each.data) != n or n == 0:
            raise Refusal(
                422, f"{where} has the shape {str(each.shape)[:80]} and {len(each.data)} values",
                field=f"{where}.shape", do="give every column the shape [people]",
            )  # fmt: skip
        columns[each.name] = each.data
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _datatype(described: dict[str, Any]) -> str:
    if "enum" in described:
        return "BYTES" if any(isinstance(each, str) for each in described["enum"]) else "INT64"
    kind = described["type"]
    return "INT64" if "integer" in (kind if isinstance(kind, list) else [kind]) else "FP64"


def _output(name: str, datatype: str, data: list[Any]) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": [len(data)], "data": data}
