"""Plans that were written to a file are read back as the rows that h accepts."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from genrecourse import NearestNeighbour, Schema
from genrecourse.advice.plan_table import plan_table
from genrecourse.planning.plans import Plans
from genrecourse.table.csv_cells import AFTER
from genrecourse.table.table_files import read_table, write_table

PEOPLE = 10_000 if os.environ.get("GENRECOURSE_SOAK_ROWS") else 1_500  # `make soak` sets it
TEXTS = ["07", "7", "NA", "None", "=1+1", "-x", 'a"b', "c,d", "e\r\nf", "g\rh"]
CODES = {text: 0.05 * i for i, text in enumerate(TEXTS)}  # what each is worth


def table(n: int, seed: int) -> pd.DataFrame:
    """Numbers of every size and texts that look like something else."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": rng.lognormal(10, 1, n),
            "ratio": rng.uniform(0, 1, n).astype("float32"),
            "change": rng.normal(0, 1e-3, n),
            "loans": rng.integers(0, 9, n),
            "owner": rng.random(n) < 0.5,
            "code": rng.choice(list(CODES), n),
        }
    )


def h(X: pd.DataFrame) -> np.ndarray:
    """A score whose bits depend on the bits of each number, and on each text."""
    numbers = [X[name].to_numpy(dtype=float) for name in ("income", "ratio", "change", "loans")]
    total = (
        np.log(np.maximum(numbers[0], 1)) - 10 + numbers[1] + 500 * numbers[2] + 0.1 * numbers[3]
    )
    total = total + 0.5 * X["owner"].to_numpy(dtype=bool)
    total = total + X["code"].map(CODES).to_numpy(dtype=float)
    return np.asarray(1 / (1 + np.exp(-total + 1.5)))


@pytest.fixture(scope="module")
def schema() -> Schema:
    return Schema.infer(table(500, 0))


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    X = table(2 * PEOPLE + 4000, 1)
    return X[h(X) <= 0.5].head(PEOPLE).reset_index(drop=True)


@pytest.fixture(scope="module")
def plans(schema: Schema, people: pd.DataFrame) -> Plans:
    return NearestNeighbour(h, schema).fit(table(500, 0)).plans(people)


@pytest.mark.parametrize(
    ("name", "safe_cells"), [("plans.csv", False), ("plans.csv", True), ("plans.parquet", False)]
)
def test_every_plan_is_still_accepted(
    plans: Plans, people: pd.DataFrame, schema: Schema, tmp_path: Path, name: str, safe_cells: bool
) -> None:
    assert len(plans.shown) == PEOPLE
    write_table(plan_table(plans, people, schema), tmp_path / name, safe_cells=safe_cells)
    back = read_table(tmp_path / name, schema)
    rows = back[[f"{AFTER}{column}" for column in schema.columns]].set_axis(schema.columns, axis=1)
    promised = plans.x_plus()
    assert (h(rows) > 0.5).all()
    assert h(rows).tobytes() == h(promised).tobytes()
    assert back["score_after"].tolist() == [plan.score_after for plan in plans]
    for column in schema.columns:
        assert rows[column].tolist() == promised[column].tolist(), column
