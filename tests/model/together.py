"""Run by torchrun in each process: fits h alone, and GenRe, and saves what each process learned."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from genrecourse.methods.genre import GenRe
from genrecourse.model.classifier import MLPConfig, fit_mlp
from genrecourse.model.processes import joined_by_torchrun, together
from genrecourse.table.schema import Schema


def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.integers(0, 100, 301), "debt": rng.normal(30, 9, 301).round(1)})
    return X, (X["income"] - X["debt"] > 20).to_numpy(copy=True).astype(int)


def trained_h() -> dict[str, np.ndarray]:
    """Train h for a few epochs; 301 rows in batches of 50 leave a last batch of one row."""
    X, y = table()
    h = fit_mlp(X, y, Schema.infer(X), config=MLPConfig(epochs=10, batch_size=50, lr=0.01))
    return {name: value.numpy() for name, value in h.model.state_dict().items()}


def main() -> None:
    warnings.simplefilter("ignore")
    with joined_by_torchrun():
        folder = Path(sys.argv[1]) / f"process-{together()[0]}"
        folder.mkdir()
        np.savez(folder / "h.npz", **trained_h())
        X, y = table()
        GenRe(**GenRe._test_params()).fit(X, y).save(folder / "model")


if __name__ == "__main__":
    main()
