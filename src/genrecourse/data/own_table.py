"""A user's own table as a data set, so that the evaluation takes it like the others.

The rows are split anew by each seed. The name of the data set holds a fingerprint of the rows and
of what was said about them, so that results of another table are not taken for these.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from genrecourse.data.datasets import DATASETS, DatasetEntry, TrainAndTest
from genrecourse.errors import UserError

if TYPE_CHECKING:
    from genrecourse.table.schema import Schema

TEST_SHARE = 0.25
OUTCOME = "favourable outcome"  # the column that holds 1 for it


@dataclass(frozen=True, eq=False)
class OwnTable:
    """Splits a table by a seed. path: the file that it came from, which a method must not read.

    >>> X = pd.DataFrame({"income": range(80)})
    >>> train, test = OwnTable(X, Path("people.csv"))(seed=0)
    >>> len(train), len(test)
    (60, 20)
    """

    table: pd.DataFrame
    path: Path

    def __call__(self, seed: int) -> TrainAndTest:
        """Return the training and the test rows."""
        n = len(self.table)
        order = np.random.default_rng([seed, 5]).permutation(n)
        test = np.zeros(n, dtype=bool)
        test[order[: round(TEST_SHARE * n)]] = True
        return self.table[~test], self.table[test]


def add_own_table(X: pd.DataFrame, good: np.ndarray, schema: Schema, path: Path) -> str:
    """Add a table to `DATASETS` and return the name that it has there.

    good: (n,) booleans, who has the favourable outcome. path: the file that it came from.

    >>> from genrecourse.table.schema import Schema
    >>> X = pd.DataFrame({"income": range(80)})
    >>> name = add_own_table(X, X["income"] > 40, Schema.infer(X), Path("people.csv"))
    >>> name.startswith("people.csv:"), DATASETS.pop(name).label
    (True, 1)
    """
    if OUTCOME in X.columns:
        raise UserError(f"the table has a column named '{OUTCOME}'; rename it")
    whole = X.assign(**{OUTCOME: np.asarray(good).astype("int64")}).reset_index(drop=True)
    name = f"{path.name}:{_fingerprint(whole, schema)}"
    DATASETS[name] = DatasetEntry(
        read=OwnTable(whole, path),
        target=OUTCOME,
        favourable="the favourable outcome",
        label=1,
        source=str(path),
        licence="yours",
        schema=schema,
    )
    return name


def own_files() -> list[Path]:
    """Return the files of the tables that were added.

    >>> own_files()
    []
    """
    return [entry.read.path for entry in DATASETS.values() if isinstance(entry.read, OwnTable)]


def _fingerprint(table: pd.DataFrame, schema: Schema) -> str:
    cells = hashlib.sha256(schema.to_json().encode())
    cells.update(table.to_csv(index=False).encode())
    return cells.hexdigest()[:8]
