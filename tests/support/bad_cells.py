"""Bad cells of every kind, for a table of loans, and a method that answers at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from genrecourse import NearestNeighbour, Schema

NUMBERS = np.random.default_rng(0)
N = 160
LOANS = pd.DataFrame(
    {
        "income": NUMBERS.integers(10, 90, N),
        "debt": NUMBERS.random(N).round(3),
        "savings": np.where(NUMBERS.random(N) < 0.2, np.nan, NUMBERS.integers(0, 50, N)),
        "job": NUMBERS.choice(["cook", "nurse", "pilot"], N),
        "owner": NUMBERS.random(N) < 0.5,
        "rooms": NUMBERS.integers(1, 4, N),
        "cat": 0,
        "dog": 0,
    },
)
LOANS["cat"] = NUMBERS.integers(0, 2, N)
LOANS["dog"] = 1 - LOANS["cat"]


class Unprintable:
    """An object that cannot show itself, and cannot be compared."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    def __hash__(self) -> int:
        raise RuntimeError("no hash")


ANY: list[tuple[Any, str]] = [
    (b"cook", "wrong"),
    ([1, 2], "wrong"),
    ({"a": 1}, "wrong"),
    (np.zeros(3), "wrong"),
    (1j, "wrong"),
    (pd.Timestamp("2020-01-01"), "wrong"),
    ("<script>", "wrong"),
    ("in\0come", "wrong"),
    ("in\ud800come", "wrong"),
    ("x" * 5000, "wrong"),
    (Unprintable(), "wrong"),
]
MISSING: list[tuple[Any, str]] = [(None, "missing"), (np.nan, "missing"), (pd.NA, "missing")]
NUMBER: list[tuple[Any, str]] = [
    ("12", "wrong"),
    (True, "wrong"),
    (float("inf"), "not-finite"),
    (-float("inf"), "not-finite"),
    (10**400, "too-large"),
    (10**5000, "too-large"),
    (2**63, "too-large"),
]
LEVEL: list[tuple[Any, str]] = [
    ("astronaut", "wrong"),
    (10**5000, "wrong"),
    (float("inf"), "wrong"),
]
CELLS: dict[str, list[tuple[Any, str]]] = {
    "income": [*ANY, *MISSING, *NUMBER],
    "debt": [*ANY, *MISSING, *NUMBER],
    "savings": [*ANY, *NUMBER],
    "job": [*ANY, *MISSING, *LEVEL, (3, "wrong"), (True, "wrong")],
    "owner": [*ANY, *MISSING, *LEVEL, (1, "wrong"), (0.0, "wrong"), ("True", "wrong")],
    "rooms": [*ANY, *MISSING, *LEVEL, (7, "wrong"), (True, "wrong"), ("2", "wrong")],
    "cat": [*ANY, *MISSING, (2, "not-one-hot"), ("yes", "not-one-hot")],
}
KINDS = {"income": "wrong-type", "debt": "wrong-type", "savings": "wrong-type"}
EVERY_CELL = [(name, value, kind) for name, cells in CELLS.items() for value, kind in cells]


def code_of(name: str, kind: str) -> str:
    """The reason code of a bad cell in a column."""
    if name == "cat":
        return "not-one-hot"
    return KINDS.get(name, "unseen-category") if kind == "wrong" else kind


def feature_of(name: str) -> str:
    """The feature that a column holds."""
    return "pet" if name == "cat" else name


def spoilt(X: pd.DataFrame, row: int, name: str, value: Any) -> pd.DataFrame:
    """The table with another cell in one row."""
    cells = np.empty(len(X), dtype=object)
    cells[:] = X[name].tolist()
    cells[row] = value
    return X.assign(**{name: pd.Series(cells, X.index, dtype=object)})


def score(X: pd.DataFrame) -> np.ndarray:
    """h of the loans. It is never asked about nobody, and it sees numbers as numbers."""
    assert len(X) > 0
    worth = X["income"].to_numpy() / 100 - 0.3 * X["debt"].to_numpy() + 0.1 * X["owner"].to_numpy()
    more = X["job"].map({"cook": 0.0, "nurse": 0.05, "pilot": 0.1}).to_numpy(dtype=float)
    return np.clip(worth + more + 0.02 * X["rooms"].astype(float).to_numpy(), 0, 1)


def loan_schema() -> Schema:
    """Of the loans: rooms are a category of numbers, and the pet is stored in two columns."""
    features = [f for f in Schema.infer(LOANS) if f.name not in ("cat", "dog", "rooms")]
    kept = [f.model_dump() for f in features]
    rooms = {"name": "rooms", "kind": "category", "categories": (1, 2, 3)}
    pet = {
        "name": "pet",
        "kind": "category",
        "categories": ("cat", "dog"),
        "one_hot": ("cat", "dog"),
    }
    return Schema.model_validate({"features": [*kept, rooms, pet]})


def nearest() -> NearestNeighbour:
    """A fitted method."""
    return NearestNeighbour(score, loan_schema()).fit(LOANS)
