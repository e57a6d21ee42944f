"""How a feature may change, in a few words, under the schema and the rules of a policy."""

from __future__ import annotations

from typing import Any

import pytest

from genrecourse import Rules
from genrecourse.rules.kinds import how_it_may_change
from genrecourse.table.schema import Feature


@pytest.mark.parametrize(
    ("fields", "rules", "words"),
    [
        ({}, {}, "freely"),
        ({}, {"lock": ["amount"]}, "no (locked)"),
        ({}, {"lock": ["another"]}, "freely"),
        ({"role": "immutable"}, {}, "no"),
        ({"role": "protected"}, {}, "no (protected)"),
        ({"role": "advances", "horizon": 2}, {}, "with time: by 2"),
        ({"role": "derived", "formula": "debt / income"}, {}, "follows: debt / income"),
        ({"direction": "increase"}, {"increase": ["amount"]}, "increase"),
        ({}, {"decrease": ["amount"]}, "decrease"),
        ({"range": (0, 5000)}, {}, "from 0 to 5,000"),
        ({}, {"ranges": {"amount": [None, 9]}}, "from ... to 9"),
        ({"max_step": 500}, {"max_step": {"amount": 200}}, "by at most 500, by at most 200"),
        ({}, {"allowed": {"amount": [1, 2]}}, "to 1 or 2"),
    ],
)
def test_how_a_number_may_change(fields: dict[str, Any], rules: dict[str, Any], words: str) -> None:
    feature = Feature(name="amount", kind="number", **fields)
    assert how_it_may_change(feature, Rules(**rules)) == words
