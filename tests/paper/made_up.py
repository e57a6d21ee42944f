"""Result lines that no run made, with the numbers that a test needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from genrecourse.evaluation.comparison.results import pack_numbers


def line(label: str, dataset: str, seed: int = 31, n: int = 200, **means: float) -> dict[str, Any]:
    """A result line with these metrics; people told 50 different x_plus."""
    rng = np.random.default_rng(seed)
    score = rng.normal(means.get("score", 1.5), 0.1, n)
    return {
        "label": label,
        "dataset": dataset,
        "seed": seed,
        "method": label.split("/")[0],
        "n": n,
        "distinct": 50,
        "metrics": {
            name: {"mean": mean, "sd": 0.3, "half": 0.02, "n": n} for name, mean in means.items()
        },
        "seconds": {"case": 1.0, "fit": 12.0, "recourse": 0.5},
        "people": {
            "score": pack_numbers(score),
            "x_plus": pack_numbers(np.arange(n, dtype=np.uint32) % 50),
        },
    }
