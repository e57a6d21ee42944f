"""Baselines that train for less than the paper says: a note for Table 1, from the configs.

The paper trains for a number of epochs. An entry of configs/baselines.toml states them as
`published`; what we train for is read from its method and parameters. Both are counted in batches
over the training rows of the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from genrecourse.evaluation.comparison import Entry
from genrecourse.methods import METHODS
from paper import runs
from paper.records import DATASETS, published
from paper.runs import Scale


@dataclass(frozen=True)
class Length:
    """Epochs over the rows in batches, and the most batches."""

    epochs: int
    batch_size: int
    most: float = float("inf")

    def batches(self, rows: int) -> int:
        """Return the number of batches.

        >>> Length(100, 32).batches(1_000), Length(100, 32, most=500).batches(1_000)
        (3200, 500)
        """
        return int(min(self.epochs * -(-rows // self.batch_size), self.most))


def ours(entry: Entry) -> Length:
    """Return how long an entry trains its network.

    >>> ours(Entry("tap", "tap", {"max_batches": 80_000}))
    Length(epochs=2000, batch_size=128, most=80000)
    """
    params: Mapping[str, Any] = METHODS[entry.method](**entry.params).get_params(deep=False)
    if params.get("vae") is not None:
        vae = params["vae"]
        return Length(vae.epochs, vae.batch_size, vae.max_steps)
    return Length(params["epochs"], params["batch_size"], params["max_batches"])


def shorter(size: Scale) -> str:
    """Return list items: the baselines of Table 1 that train for less than published."""
    specs = runs.read("baselines")["entries"]
    entries = runs.entries("baselines", size, "table1")
    items: dict[str, list[str]] = {}
    for name, dataset in DATASETS.items():
        for entry in entries.get(dataset, []):
            if "published" not in specs[entry.label]:
                continue
            words = _words(Length(**specs[entry.label]["published"]), ours(entry), name)
            if words:
                items.setdefault(entry.label, []).append(words)
    return "\n".join(f"- `{label}`: {'; '.join(words)}." for label, words in items.items())


def _words(theirs: Length, mine: Length, name: str) -> str:
    """Return how many batches we train for and the paper, if ours are fewer; else nothing."""
    rows = int(published("data")[name, "", "train_rows"].mean)
    batches, wanted = mine.batches(rows), theirs.batches(rows)
    if batches >= wanted:
        return ""
    return (
        f"{name} {batches:,} batches of {mine.batch_size} "
        f"({theirs.epochs:,} epochs, as published, are {wanted:,} of {theirs.batch_size})"
    )
