"""What a peer is given and what it hands back: files in a folder, nothing of ours.

Runs in a peer's own environment, so it knows numpy and pandas alone. In every table a number is in
its own unit and a category is the place of its level, 0, 1, ...

    case.json      the features and their rules, the seed, the processor's seconds for a person
    weights.npz    h, layer by layer
    training.csv   training rows, and the column OUTCOME with their drawn labels
    people.csv     who asks, and the column SCORE with what h says of them
    answers.csv    back: one row for each person, empty where there is none
    run.json       back: seconds of each person, of all by the processor, and of the set-up; why
                   people went without; versions
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

OUTCOME, SCORE = "drawn_label", "score_of_h"
FILES = {"case": "case.json", "weights": "weights.npz", "answers": "answers.csv", "run": "run.json"}


class H:
    """The case's MLP as plain numpy, dressed as a scikit-learn classifier."""

    classes_ = np.array([0, 1])

    def __init__(self, features: list[dict[str, Any]], layers: list[tuple[np.ndarray, np.ndarray]]):
        self.features, self.layers = features, layers
        self.names = [feature["name"] for feature in features]

    def score(self, values: np.ndarray) -> np.ndarray:
        """(n, d) numbers -> (n,) scores of the favourable outcome."""
        columns = []
        for feature, column in zip(self.features, np.asarray(values, dtype=float).T, strict=True):
            if feature["levels"] > 2:
                columns += [column.round() == level for level in range(feature["levels"])]
            else:
                columns.append((column - feature["low"]) / feature["span"])
        Z = np.stack(columns, axis=1).astype(float)
        for i, (weight, bias) in enumerate(self.layers):
            Z = Z @ weight.T + bias
            Z = np.maximum(Z, 0.0) if i < len(self.layers) - 1 else Z
        return 1.0 / (1.0 + np.exp(-Z[:, 0]))

    def predict_proba(self, X: Any) -> np.ndarray:
        values = X[self.names].to_numpy() if isinstance(X, pd.DataFrame) else X
        score = self.score(values)
        return np.stack([1.0 - score, score], axis=1)

    def predict(self, X: Any) -> np.ndarray:
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)


class Given:
    """The case as a peer reads it."""

    def __init__(self, folder: Path):
        case = json.loads((folder / FILES["case"]).read_text(encoding="utf-8"))
        weights = np.load(folder / FILES["weights"])
        self.features, self.seed, self.limit = case["features"], case["seed"], case["limit"]
        layers = [(weights[f"weight{i}"], weights[f"bias{i}"]) for i in range(len(weights) // 2)]
        self.h = H(self.features, layers)
        self.training = pd.read_csv(folder / "training.csv")
        self.people = pd.read_csv(folder / "people.csv")
        told = self.people.pop(SCORE).to_numpy()
        if not np.allclose(self.h.predict_proba(self.people)[:, 1], told, atol=1e-5):
            sys.exit("the numpy h does not say what h says: the exchange is broken")
        self.names = self.h.names
        self.numbers = [f["name"] for f in self.features if f["levels"] == 0]
        self.mutable = [f["name"] for f in self.features if not f["immutable"]]


def run(
    set_up: Callable[[Given, str], Callable[[pd.DataFrame], Any]], packages: tuple[str, ...]
) -> None:
    """A peer's main: `python run_PEER.py FOLDER METHOD`.

    set_up(given, method) gives a function of one person, a table of one row, to a row of numbers in
    the order of the features, or None. An error of the peer's, and a person who takes longer than
    the limit, are people without an answer, and counted.
    """
    folder, method = Path(sys.argv[1]), sys.argv[2]
    given = Given(folder)
    started = time.perf_counter()
    answer = set_up(given, method)
    ready = time.perf_counter() - started
    rows, seconds, failed = [], [], Counter[str]()
    worked = time.process_time()
    for i in range(len(given.people)):
        started = time.perf_counter()
        row = None
        try:
            with at_most(given.limit):
                row = answer(given.people.iloc[[i]].reset_index(drop=True))
            if row is None:
                failed["nothing found"] += 1
        except Exception as error:
            failed[f"{type(error).__name__}: {error}"[:200]] += 1
        seconds.append(time.perf_counter() - started)
        nothing = np.full(len(given.names), np.nan)
        rows.append(nothing if row is None else np.asarray(row, dtype=float).reshape(-1))
    worked = time.process_time() - worked
    pd.DataFrame(rows, columns=given.names).to_csv(folder / FILES["answers"], index=False)
    report = {
        "set_up_seconds": ready,
        "seconds": seconds,
        "cpu_seconds": worked,
        "failed": dict(failed),
        "versions": {name: version(name) for name in packages},
    }
    (folder / FILES["run"]).write_text(json.dumps(report), encoding="utf-8")


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """A search may not end by itself; it ends here, and the results say so. The processor's seconds
    count, so that a busy machine does not decide who gets an answer."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"no answer in {seconds:g} seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
