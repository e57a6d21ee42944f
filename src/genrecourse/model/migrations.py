"""Brings the content of an older model file to the current format, one version at a time.

To add a format: raise `artifact.FORMAT_VERSION`, append one step here, and keep files of the old
format in tests/model_files, so that a test still loads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
Content = tuple[Any, Arrays]


def migrate(meta: Any, arrays: Arrays, version: int) -> Content:
    """Return `meta` and `arrays` of a file of format `version` as the current format has them.

    The content may come from a damaged or forged file: a part that does not have the expected
    shape is returned unchanged, and the loader then refuses it.

    Examples:
        >>> old = {"method": "GenRe", "params": {"seed": 7, "lam": 5.0}}
        >>> meta, arrays = migrate(old, {"state.verifier.copies_cutoff": np.zeros(8)}, version=1)
        >>> meta["params"]
        {'lam': 5.0, 'random_state': 7}
        >>> list(arrays)
        ['state.verifier.retrained_cutoff']
    """
    for step in STEPS[version - 1 :]:
        meta, arrays = step(meta, arrays)
    return meta, arrays


def _from_1_to_2(meta: Any, arrays: Arrays) -> Content:
    """Rename `seed` to `random_state` and a verifier's `copies_` to `retrained_`, and drop the
    parameter `max_sources`, which no longer exists."""
    if isinstance(meta, dict) and isinstance(meta.get("params"), dict):
        params = {name: v for name, v in meta["params"].items() if name != "max_sources"}
        if "seed" in params:
            params["random_state"] = params.pop("seed")
        meta = {**meta, "params": params}
    renamed = {
        name.replace(".verifier.copies_", ".verifier.retrained_"): array
        for name, array in arrays.items()
    }
    return meta, renamed


# STEPS[N - 1] turns the content of a file of format N into that of format N + 1.
STEPS: tuple[Callable[[Any, Arrays], Content], ...] = (_from_1_to_2,)
