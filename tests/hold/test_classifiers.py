"""A classifier that misbehaves gets a right answer or one sentence, and nothing else."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import pytest
from torch import nn

from genrecourse import Classifier, NearestNeighbour
from genrecourse.errors import UserError
from genrecourse.model.answers import has
from tests.hold.classifiers import NUMBERS, OUTCOMES, TABLE, Bad, cases, sound

CASES = cases()
PEOPLE = TABLE[~OUTCOMES].head(4)
# the same people as another program might hand them over
OTHER_FORM = PEOPLE.astype({"income": float, "job": "category", "owner": object})[
    ["owner", "job", "debt", "income"]
]


def answers(make: Any) -> tuple[pd.DataFrame, list[str], list[str], set[str]]:
    """Recourse and plans, the warnings of `fit`, and what became of the people."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make()
        inner = model.model if isinstance(model, Classifier) else model
        columns = NUMBERS if isinstance(inner, nn.Module) else list(TABLE.columns)
        if has(inner, "feature_names_in_") and isinstance(model, Classifier):
            columns = NUMBERS
        method = NearestNeighbour(model).fit(TABLE[columns], OUTCOMES.astype(int))
        said = [str(each.message) for each in caught]
        found = method.recourse(PEOPLE[columns])
        people = OTHER_FORM[[name for name in OTHER_FORM.columns if name in columns]]
        plans = method.plans(people, n=2)
        if plans.shown and not any("differently" in text for text in said):
            assert method.classifier_.accepts(plans.x_plus()[columns]).all()
    return found, [plan.to_text() for plan in plans], said, {plan.status for plan in plans}


@pytest.fixture(scope="module")
def right() -> Any:
    return answers(lambda: sound)


def test_the_sound_one_helps_everybody(right: Any) -> None:
    found, texts, said, _ = right
    assert len(texts) == 4
    assert (sound(found) > 0.5).all()
    assert not any("differently" in text for text in said)


@pytest.mark.parametrize("case", CASES, ids=[case.label for case in CASES])
def test_what_comes_of_it(case: Bad, right: Any) -> None:
    if case.ends == "refused":
        with pytest.raises(UserError) as told:
            answers(case.make)
        text = str(told.value)
        assert case.says in text
        assert "\n" not in text
        assert len(text) < 700
        return
    found, texts, said, status = answers(case.make)
    assert any("answers differently" in text for text in said) == (case.ends == "noticed")
    assert len(found) == len(texts) == 4
    if case.ends != "noticed":
        assert status == ({"already-accepted"} if case.ends == "accepted" else {"ok"})
    if case.ends == "same":
        pd.testing.assert_frame_equal(found, right[0])
        assert texts == right[1]


def test_there_are_many() -> None:
    assert len({case.label for case in CASES}) == len(CASES) > 60
