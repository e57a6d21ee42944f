"""dice-ml as it comes: one counterfactual a person, immutables not to vary, ranges and directions
as permitted ranges. METHOD: random, genetic or kdtree.

    python run_dice_ml.py FOLDER METHOD     # in .venv-peers/dice-ml
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import dice_ml
import numpy as np
import pandas as pd
from exchange import OUTCOME, Given, run


def set_up(given: Given, method: str) -> Callable[[pd.DataFrame], Any]:
    np.random.seed(given.seed)  # noqa: NPY002 - the generators that it draws from
    random.seed(given.seed)
    data = dice_ml.Data(
        dataframe=given.training, continuous_features=given.numbers, outcome_name=OUTCOME
    )
    model = dice_ml.Model(model=given.h, backend="sklearn", model_type="classifier")
    explainer = dice_ml.Dice(data, model, method=method)
    categories = [name for name in given.names if name not in given.numbers]

    def answer(person: pd.DataFrame) -> Any:
        asked = person.copy()
        asked[categories] = asked[categories].astype(int).astype(str)
        found = explainer.generate_counterfactuals(
            asked,
            total_CFs=1,
            desired_class=1,
            features_to_vary=given.mutable,
            permitted_range=permitted(given, person),
        ).cf_examples_list[0]
        sparse = found.final_cfs_df_sparse  # after its own post-hoc step, which is what it shows
        table = found.final_cfs_df if sparse is None else sparse
        return None if table is None or len(table) == 0 else table[given.names].iloc[0]

    return answer


def permitted(given: Given, person: pd.DataFrame) -> dict[str, list[Any]]:
    """Where each feature may go: its range, cut at x's own value where it has a direction."""
    ranges: dict[str, list[Any]] = {}
    for feature in given.features:
        name, x = feature["name"], float(person[feature["name"]].iloc[0])
        up, down = feature["direction"] != "decrease", feature["direction"] != "increase"
        if feature["levels"]:
            places = [k for k in range(feature["levels"]) if (up or k <= x) and (down or k >= x)]
            seen = set(given.training[name].unique())  # it refuses a level that it has not seen
            ranges[name] = [str(k) for k in places if k in seen]
        else:
            low, high = feature["range"]
            step = feature["max_step"] or np.inf
            ranges[name] = [
                max(low, x - step) if down else min(x, high),
                min(high, x + step) if up else max(x, low),
            ]
    return ranges


if __name__ == "__main__":
    run(set_up, ("dice-ml", "numpy", "pandas", "scikit-learn"))
