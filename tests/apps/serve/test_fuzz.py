"""A few hundred requests that schemathesis makes from the description; `make fuzz` sends 20,000."""

from __future__ import annotations

# now, and not when it is first used: Python 3.11 cannot compile in two threads at once
import schemathesis.specs.openapi.schemas  # noqa: F401

from benchmarks.fuzz_api import fuzz
from tests.apps.serve.serving import Served


def test_every_answer_fits_its_description(served: Served) -> None:
    counts, wrong = fuzz(served.url, wanted=400, seed=3)
    assert wrong == []
    assert sum(counts.values()) >= 300
    reached = {name.rsplit(" ", 1)[0] for name in counts if name.endswith(" 200")}
    posts = {"/api/v1/decision", "/api/v1/plans", "/v1/models/{name}:predict"}
    assert {f"POST {path}" for path in posts} <= reached
    assert any(name.endswith(" 422") for name in counts)
