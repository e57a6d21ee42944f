"""A classifier that misbehaves gets a right answer or one sentence, and nothing else."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from torch import nn

from genrecourse import Classifier, GenRe, NearestNeighbour
from genrecourse.errors import UserError
from genrecourse.genre.choose_gamma import GAMMA_GRID, gammas_for
from genrecourse.genre.model import NetConfig
from genrecourse.genre.targets import MIN_TARGETS
from genrecourse.methods.genre import Training
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


QUICK: dict[str, Any] = {
    "training": Training(steps=20, batch_size=16),
    "net": NetConfig(8, 2, 8, 1, 1),
    "n_bins": 10,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("low", [0.49, 0.0])
def test_genre_learns_from_votes(low: float) -> None:
    """With the fixed grid, nobody is above the lowest gamma if all scores are 0.49 or 0.51."""

    def h(X: pd.DataFrame) -> np.ndarray:
        return np.where(sound(X) > 0.5, 1 - low, low)

    columns = list(TABLE.columns)
    method = GenRe(h, **QUICK).fit(TABLE[columns], OUTCOMES.astype(int))
    assert 0.5 < method.gamma_ < 1 - low
    plans = method.plans(PEOPLE)
    assert {plan.status for plan in plans} == {"ok"}
    assert (h(plans.x_plus()) > 0.5).all()


@pytest.mark.parametrize("room", [1e-6, 0.01, 0.04])
def test_gammas_of_scores_close_to_the_cutoff_leave_targets(room: float) -> None:
    confidence = 0.5 + room * np.linspace(0.01, 1, 200)
    grid = gammas_for(confidence)
    assert list(grid) == sorted(set(grid))
    left = [int(np.sum(confidence > gamma)) for gamma in grid]
    assert min(left) >= MIN_TARGETS
    assert len(set(left)) == len(grid)  # each gamma is a choice of its own
    few_high = np.append(confidence, [0.99] * 5)
    assert gammas_for(few_high)[0] < 0.5 + room


def test_gammas_of_an_ordinary_model_are_the_fixed_ones() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 19, 20, 500):
        assert gammas_for(rng.uniform(0.56, 1.0, n)) == GAMMA_GRID
    assert gammas_for(np.append(np.full(30, 0.51), np.full(20, 0.6))) == GAMMA_GRID
