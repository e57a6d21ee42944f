"""A few hundred requests that schemathesis makes from the description; `make fuzz` sends 20,000."""

from __future__ import annotations

# now, and not when it is first used: Python 3.11 cannot compile in two threads at once
import schemathesis.specs.openapi.schemas  # noqa: F401

from benchmarks.fuzz_api import fuzz, left_out
from tests.apps.serve.serving import Served


def test_every_answer_fits_its_description(served: Served) -> None:
    counts, wrong = fuzz(served.url, wanted=400, seed=3)
    assert wrong == []
    assert sum(counts.values()) >= 400
    assert left_out(served.url, counts) == []
    reached = {name.rsplit(" ", 1)[0] for name in counts if name.endswith(" 200")}
    asked = {name.rsplit(" ", 1)[0] for name in counts}
    assert reached == asked  # every address gave a right answer, too
    assert any(name.endswith(" 422") for name in counts)
