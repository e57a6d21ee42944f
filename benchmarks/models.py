"""Models of many kinds on German credit, as somebody would bring them (benchmarks/any_model.py).

Every maker takes training rows, outcomes (1: good) and the schema, and returns a `Brought`.
"""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from genrecourse import Schema
from genrecourse.table.encoding import TableEncoder

BATCH = 500  # rows in one request to the endpoint


@dataclass(frozen=True)
class Brought:
    """A model with the arguments of its `Classifier`, and the rows as it reads them."""

    model: Any
    options: dict[str, Any]
    X: pd.DataFrame
    y: Any = None  # None: as given


def _text(X: pd.DataFrame) -> list[str]:
    return [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]


def _as_categories(X: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return the rows with categories as a dtype, in the order of the schema."""
    kinds = {name: pd.CategoricalDtype(list(schema[name].categories)) for name in _text(X)}
    return X.astype(kinds)


def _pipeline(X: pd.DataFrame) -> Pipeline:
    text = _text(X)
    numbers = [name for name in X.columns if name not in text]
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), numbers),
            ("text", OneHotEncoder(handle_unknown="ignore", sparse_output=False), text),
        ]
    )
    return Pipeline([("columns", columns), ("model", LogisticRegression(max_iter=1000))])


# ---- the kinds ----------------------------------------------------------------------------------


def pipeline(X: pd.DataFrame, y: np.ndarray, schema: Schema) -> Brought:
    return Brought(_pipeline(X).fit(X, y), {}, X)


def boosting(X: pd.DataFrame, y: np.ndarray, schema: Schema) -> Brought:
    X = _as_categories(X, schema)
    model = HistGradientBoostingClassifier(
        categorical_features="from_dtype", max_iter=40, random_state=0
    )
    return Brought(model.fit(X, y), {}, X)


def lightgbm(X: pd.DataFrame, y: np.ndarray, schema: Schema) -> Brought:
    from lightgbm import LGBMClassifier

    X = _as_categories(X, schema)
    model = LGBMClassifier(n_estimators=40, random_state=0, verbose=-1, n_jobs=1)
    return Brought(model.fit(X, y), {}, X)


def xgboost(X: pd.DataFrame, y: np.ndarray, schema: Schema) -> Brought:
    from xgboost import XGBClassifier

    X = _as_categories(X, schema)
    model = XGBClassifier(n_estimators=40, enable_categorical=True, random_state=0, n_jobs=1)
    return Brought(model.fit(X, y), {}, X)


def catboost(X: pd.DataFrame, y: np.ndarray, schema: Schema) -> Brought:
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(
        iterations=60,
        cat_features=_text(X),
        random_seed=0,
        verbose=False,
        allow_writing_files=False,
        thread_count=1,
    )
    return Brought(model.fit(X, y), {}, X)


def calibrated(X: pd.DataFrame, y: np.ndarray, schema: Schema) -> Brought:
    model = CalibratedClassifierCV(_pipeline(X), cv=3).fit(X, y)
    return Brought(model, {"cutoff": 0.83}, X)


def three_outcomes(X: pd.DataFrame, y: np.ndarray, schema: Schema) -> Brought:
    small = X["credit_amount"].to_numpy() < X["credit_amount"].median()
    outcome = np.where(y == 0, "refused", np.where(small, "small credit", "large credit"))
    options = {"favourable": {"small credit", "large credit"}}
    return Brought(_pipeline(X).fit(X, outcome), options, X, outcome)


def torch_module(X: pd.DataFrame, y: np.ndarray, schema: Schema) -> Brought:
    encoder = TableEncoder(schema).fit(X)
    Z = torch.tensor(encoder.encode(X), dtype=torch.float32)
    wanted = torch.tensor(y, dtype=torch.float32)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Linear(Z.shape[1], 16),
            torch.nn.ReLU(),
            torch.nn.Linear(16, 1),
            torch.nn.Flatten(0),
            torch.nn.Sigmoid(),
        )
    optimiser = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(80):
        optimiser.zero_grad()
        torch.nn.functional.binary_cross_entropy(net(Z), wanted).backward()
        optimiser.step()
    return Brought(net, {"encoder": encoder}, X)


def onnx_session(X: pd.DataFrame, y: np.ndarray, schema: Schema) -> Brought:
    import onnxruntime
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    text = set(_text(X))
    inputs = [
        (name, (StringTensorType if name in text else FloatTensorType)([None, 1]))
        for name in X.columns
    ]
    model = _pipeline(X).fit(X, y)
    graph = convert_sklearn(model, initial_types=inputs, options={id(model): {"zipmap": False}})
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), settings)

    def score(rows: pd.DataFrame) -> np.ndarray:
        fed = {
            name: rows[[name]].to_numpy(dtype=object if name in text else np.float32)
            for name in rows.columns
        }
        probabilities = session.run(["probabilities"], fed)[0]
        return np.asarray(probabilities[:, 1], dtype=np.float64)

    return Brought(score, {}, X)


def scorecard(X: pd.DataFrame, y: np.ndarray, schema: Schema) -> Brought:
    """Points by hand, on a scale of its own."""

    def points(rows: pd.DataFrame) -> np.ndarray:
        account = rows["checking_account"].map(
            {"no account": 90, "< 0 DM": 0, "0-200 DM": 40, ">= 200 DM": 90}
        )
        savings = rows["savings"].map(
            {"unknown or none": 20, "< 100 DM": 0, "100-500 DM": 20, "500-1000 DM": 60}
        )
        burden = 2.5 * rows["duration"] + 0.006 * rows["credit_amount"]
        total = 640 + account.astype(float) + savings.astype(float).fillna(80) - burden
        return total.clip(300, 850).to_numpy(dtype=float)

    return Brought(points, {"cutoff": 640, "score_range": (300, 850)}, X)


class Endpoint:
    """A model behind HTTP on this machine: a function that posts rows as JSON, some at a time."""

    def __init__(self, port: int):
        self.address = f"http://127.0.0.1:{port}/score"

    def __call__(self, rows: pd.DataFrame) -> np.ndarray:
        parts = [self._post(rows.iloc[i : i + BATCH]) for i in range(0, len(rows), BATCH)]
        return np.concatenate([np.zeros(0), *parts])

    def _post(self, rows: pd.DataFrame) -> np.ndarray:
        body = rows.to_json(orient="split", index=False).encode()
        with urllib.request.urlopen(urllib.request.Request(self.address, data=body)) as answer:
            return np.array(json.load(answer)["scores"], dtype=np.float64)


@contextmanager
def endpoint(model: Any) -> Iterator[tuple[Endpoint, list[int]]]:
    """Serve a model; yield the function that asks it, and the rows of each request so far."""
    seen: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            data = json.loads(self.rfile.read(length))
            rows = pd.DataFrame(data["data"], columns=data["columns"])
            seen.append(len(rows))
            body = json.dumps({"scores": model.predict_proba(rows)[:, 1].tolist()}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing about each request."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield Endpoint(server.server_port), seen
        finally:
            server.shutdown()
            thread.join()


KINDS: dict[str, Callable[[pd.DataFrame, np.ndarray, Schema], Brought]] = {
    "scikit-learn Pipeline: imputer, scaler, one-hot, logistic regression": pipeline,
    "HistGradientBoosting, categories as a dtype": boosting,
    "LightGBM, categories as a dtype": lightgbm,
    "XGBoost, categories as a dtype": xgboost,
    "CatBoost, categories as text": catboost,
    "calibrated, cutoff 0.83": calibrated,
    "three outcomes, two of them favourable": three_outcomes,
    "torch module": torch_module,
    "ONNX session": onnx_session,
    "a function: a scorecard from 300 to 850": scorecard,
}
REMOTE = "a remote endpoint: a function that posts JSON"
