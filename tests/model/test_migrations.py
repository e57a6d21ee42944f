"""Model files of an older format are brought to the current one, and forged ones break nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from genrecourse.model import artifact, migrations
from genrecourse.model.migrations import migrate


def test_every_older_format_has_a_step() -> None:
    assert len(migrations.STEPS) == artifact.FORMAT_VERSION - 1


def test_format_1_gets_the_names_of_format_2() -> None:
    params = {"lam": 5.0, "seed": 3, "max_sources": 50_000, "n_draws": 4}
    meta = {"method": "GenRe", "params": params, "state": {"seed": "not a parameter"}}
    arrays = {
        "state.verifier.copies_bias.0": np.zeros(1),
        "state.verifier.noise": np.ones(1),
        "state.copies_": np.ones(2),
        "menu.0": np.ones(3),
    }
    found, moved = migrate(meta, arrays, 1)
    assert found["params"] == {"lam": 5.0, "random_state": 3, "n_draws": 4}
    assert found["state"] == meta["state"]
    assert set(moved) == {
        "state.verifier.retrained_bias.0",
        "state.verifier.noise",
        "state.copies_",
        "menu.0",
    }
    assert "seed" in params  # the content that was read is not changed in place


def test_the_current_format_is_left_alone() -> None:
    meta, arrays = {"params": {"seed": 3}}, {"state.verifier.copies_cutoff": np.zeros(1)}
    assert migrate(meta, arrays, artifact.FORMAT_VERSION) == (meta, arrays)


@pytest.mark.parametrize("meta", [None, [], "x", {}, {"params": None}, {"params": ["seed"]}])
def test_content_of_another_shape_is_left_to_the_loader(meta: Any) -> None:
    assert migrate(meta, {}, 1) == (meta, {})
