"""NICE as it comes. METHOD: what it optimises, none, sparsity or proximity.

    python run_nice.py FOLDER METHOD     # in .venv-peers/nice

It cannot be told of rules: what it breaks is counted. `plausibility` needs an autoencoder that the
user brings, and would be a measure of ours as much as of NICE: it is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from exchange import OUTCOME, Given, run
from nice import NICE


def set_up(given: Given, method: str) -> Callable[[pd.DataFrame], Any]:
    np.random.seed(given.seed)  # noqa: NPY002 - the generator that it would draw from
    is_number = np.array([feature["levels"] == 0 for feature in given.features])
    explainer = NICE(
        X_train=given.training[given.names].to_numpy(dtype=float),
        y_train=given.training[OUTCOME].to_numpy(),
        predict_fn=given.h.predict_proba,
        cat_feat=np.flatnonzero(~is_number).tolist(),
        num_feat=np.flatnonzero(is_number).tolist(),
        optimization=method,
    )

    def answer(person: pd.DataFrame) -> Any:
        return explainer.explain(person[given.names].to_numpy(dtype=float))[0]

    return answer


if __name__ == "__main__":
    run(set_up, ("NICEx", "numpy", "pandas", "scipy"))
