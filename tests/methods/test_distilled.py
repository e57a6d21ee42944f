"""The search teaches the density: `genre/search.py`, `genre/distill.py` and the two efforts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import genrecourse
from genrecourse.errors import UserError
from genrecourse.evaluation.example_tables import example_rows, example_targets
from genrecourse.genre import distill
from genrecourse.genre.distill import Lesson, reachable, teach
from genrecourse.genre.fit import fit_verifier
from genrecourse.genre.sample import Draws
from genrecourse.genre.search import Finalists, scored, search
from genrecourse.methods import _density_method as density_method
from genrecourse.methods._density_method import (
    RETRIEVED,
    SECOND_DRAWS,
    SECOND_TEMPERATURE,
    DensityMethod,
)
from genrecourse.methods.genre import GenRe
from genrecourse.table.noise import KeyedNoise
from genrecourse.trust.score import expected_score
from genrecourse.trust.verifier import Thresholds
from tests.support.equations import assert_frequencies, credit, credit_score

# ---- lessons ------------------------------------------------------------------------------------


def test_a_finalist_is_drawn_as_often_as_its_merit_says() -> None:
    merit = 1.9 + distill.WARMTH * np.array([[0.0, 1.0, -2.0]])
    found = Finalists(np.array([[[0.1], [0.2], [0.3]]]), merit)
    lesson = Lesson.of(np.array([[0.0]]), found, own=None)
    _, x_plus = lesson(np.zeros(20_000, dtype=int), np.random.default_rng(0))
    counts = np.array([int((x_plus == value).sum()) for value in (0.1, 0.2, 0.3)])
    weight = np.exp([0.0, 1.0, -2.0])
    assert_frequencies(counts, weight / weight.sum())


class _Own:
    """Pairs of Q that can be recognised: x is -1, x_plus is -2."""

    def __len__(self) -> int:
        return 5

    def __call__(self, which: np.ndarray, rng: np.random.Generator) -> tuple[torch.Tensor, ...]:
        assert which.max() < 5
        one = torch.ones(len(which), 1, dtype=torch.float64)
        return -one, -2 * one


def test_a_share_of_each_batch_comes_from_q() -> None:
    found = Finalists(np.full((4, 1, 1), 0.7), np.ones((4, 1)))
    lesson = Lesson.of(np.full((4, 1), 0.2), found, own=_Own())
    x, x_plus = lesson(np.zeros(50, dtype=int), np.random.default_rng(0))
    assert len(x) == len(x_plus) == 50
    assert int((x == -1).sum()) == int((x_plus == -2).sum()) == round(distill.Q_SHARE * 50)


def test_sources_without_an_accepted_finalist_are_left_out() -> None:
    problem, rows = example_rows()
    verifier = fit_verifier(problem, rows, random_state=0)
    good, bad = example_targets(), example_targets()
    bad.F[:], bad.Z[:] = rows.F[:40], rows.F[:40]  # h rejects all of them
    how: dict[str, Any] = {"safety": 0.5, "own": None}
    assert len(teach(problem, verifier, good, rows.F[:6], **how)) == 6
    assert len(teach(problem, verifier, bad, rows.F[:6], **how)) == 0


# ---- the search ---------------------------------------------------------------------------------


def test_the_search_returns_what_is_best_after_refining() -> None:
    problem, rows = example_rows()
    verifier = fit_verifier(problem, rows, random_state=0)
    Z, offers = rows.Z[:5], np.repeat(rows.F[None, 41:], 5, axis=0)
    found = search(problem, verifier, Z, scored(problem, Z, offers), safety=0.5, finalists=6)
    again = scored(problem, Z, found.best[:, None])
    merit = expected_score(again, verifier, safety=0.5)[:, 0]
    np.testing.assert_allclose(merit, found.merit.max(axis=1))
    plain = expected_score(scored(problem, Z, offers), verifier, safety=0.5).max(axis=1)
    assert (merit >= plain - 0.02).all()  # refining gives away GIVE = 0.01 for a change less
    # 'pets' does not matter to h nor to the outcome: refining puts back each person's own
    np.testing.assert_array_equal(found.best[:, 1], rows.F[:5, 1])


def test_the_best_retrieved_target_is_a_finalist() -> None:
    problem, rows = example_rows()
    verifier = fit_verifier(problem, rows, random_state=0)
    Z = rows.Z[:1]
    offers = scored(problem, Z, rows.F[None, [60, 61, 62, 20, 21]])  # h rejects the last two
    score = expected_score(offers, verifier, safety=0.5)
    found = search(problem, verifier, Z, offers, safety=0.5, finalists=3, retrieved=2)
    assert found.F.shape[1] == 3
    kept = np.isclose(found.F[0, -1, 0], rows.F[[20, 21], 0])
    assert kept.any()
    assert kept.argmax() == score[0, 3:].argmax()


# ---- the two efforts ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def taught() -> GenRe:
    """Taught as if the table were large."""
    X, y = credit()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distill, "FEW_SOURCES", 1)
        return GenRe(credit_score, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def people(taught: GenRe) -> pd.DataFrame:
    X, _ = credit()
    return X[~taught.classifier_.accepts(X)].head(12)


def _equal_rows(X: pd.DataFrame, others: pd.DataFrame) -> np.ndarray:
    """(n, m) whether row i of X equals row j of the others."""
    return (X.to_numpy()[:, None] == others.to_numpy()[None]).all(axis=2)


def test_a_sample_is_a_draw_less_what_is_not_needed(taught: GenRe, people: pd.DataFrame) -> None:
    answer, drawn = taught.recourse(people), taught.sample(people, 1).droplevel("draw")
    assert set(taught.assess(people, answer)["status"]) == {"ok"}
    kept = (answer == people) | (answer == drawn)
    own = kept.all(axis=1)
    assert own.mean() > 0.5  # the others were drawn again
    assert (answer[own] != people[own]).any(axis=1).all()


def test_only_people_whose_draw_is_not_good_enough_are_drawn_for_again(
    taught: GenRe, people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    draw = DensityMethod._draw

    def counted(self: GenRe, own: np.ndarray, noise: Any, n: int, *a: Any, **k: Any) -> Draws:
        asked.append((len(own), n))
        return draw(self, own, noise, n, *a, **k)

    monkeypatch.setattr(DensityMethod, "_draw", counted)
    taught.recourse(people)
    assert asked[0] == (len(people), 1)
    assert all(people_left < len(people) for people_left, _ in asked[1:])
    for bars, rounds in ((np.full(5, -np.inf), [1]), (np.full(5, np.inf), [1, 4, 8])):
        asked.clear()
        monkeypatch.setattr(taught, "bars_", bars)
        taught.recourse(people)
        assert asked == [(len(people), n) for n in rounds]  # a search starts from these draws


def test_in_a_small_table_the_nearest_targets_compete_with_every_draw(
    people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = credit()
    method = GenRe(credit_score, random_state=0).fit(X, y)
    assert (method.n_draws_, method.temperature_) == (SECOND_DRAWS, SECOND_TEMPERATURE)
    searched: list[tuple[int, int]] = []
    real = density_method.search

    def spy(problem: Any, verifier: Any, Z: np.ndarray, found: Any, **how: Any) -> Any:
        searched.append(found.F.shape[:2])
        return real(problem, verifier, Z, found, **how)

    monkeypatch.setattr(density_method, "search", spy)
    answer = method.recourse(people)
    assert searched == [(len(people), SECOND_DRAWS + RETRIEVED)]
    assert set(method.assess(people, answer)["status"]) == {"ok"}


def test_a_bar_is_no_higher_than_what_the_search_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distill, "FEW_SOURCES", 1)
    problem, rows = example_rows()
    verifier = fit_verifier(problem, rows, random_state=0)
    lesson = teach(problem, verifier, example_targets(), rows.F[:30], safety=1.0, own=None)
    Z = problem.encoder.from_features(lesson.best)
    measures = verifier.measures(Z, problem.confidence(Z))
    bars = reachable(problem, verifier, lesson, safety=1.0)
    assert ((measures < bars).mean(axis=0) <= distill.UNREACHED).all()
    assert (bars <= Thresholds.at(1.0).array()).all()
    missed = (measures < Thresholds.at(1.0).array()).mean(axis=0) > distill.UNREACHED
    assert missed.any()  # so that the test can fail


def test_another_safety_needs_the_search(taught: GenRe, people: pd.DataFrame) -> None:
    safe = taught.recourse(people, safety=0.9)
    pd.testing.assert_frame_equal(safe, taught.recourse(people, safety=0.9, effort="search"))
    same = taught.recourse(people, safety=taught.safety)
    pd.testing.assert_frame_equal(same, taught.recourse(people))


def test_people_without_an_accepted_draw_are_searched_for(
    taught: GenRe, people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw_nothing(self: GenRe, own: np.ndarray, noise: Any, n: int, *_: Any, **__: Any) -> Draws:
        nothing = np.zeros((len(own), n))
        return Draws(np.repeat(own[:, None], n, axis=1), nothing, nothing)

    monkeypatch.setattr(DensityMethod, "_draw", draw_nothing)
    answer = taught.recourse(people)  # the retrieved targets are left
    assert set(taught.assess(people, answer)["status"]) == {"ok"}


def test_a_file_keeps_that_the_density_was_taught(
    taught: GenRe, people: pd.DataFrame, tmp_path: Path
) -> None:
    taught.save(tmp_path / "model")
    loaded = genrecourse.load(tmp_path / "model", credit_score)
    pd.testing.assert_frame_equal(loaded.recourse(people), taught.recourse(people))


@pytest.mark.parametrize("rules", [None, {"max_changes": 2}], ids=["free", "ruled"])
def test_the_first_of_several_proposals_is_what_recourse_gives(
    taught: GenRe, people: pd.DataFrame, rules: Any
) -> None:
    """Its draw is the same, drawn alone or ahead with those of the other plans."""
    read, noise = taught.problem_.read(people), KeyedNoise(taught.random_state)
    book = taught.problem_.compile(rules, read)
    asked = {} if book is None else {"rules": book}
    one, several = (taught.propose(read.Z, noise, n, **asked).F_plus for n in (1, 3))
    assert several.shape[1] > 1
    np.testing.assert_array_equal(several[:, 0], one[:, 0])


def test_plans_make_the_effort_that_is_asked_for(taught: GenRe, people: pd.DataFrame) -> None:
    few = people.head(3)
    for effort in ("sample", "search"):
        for plan in taught.plans(few, n=2, effort=effort):
            assert plan.status == "ok"
    with pytest.raises(UserError, match="effort is 'quick'; it must be 'sample' or 'search'"):
        taught.plans(few, effort="quick")


def test_efforts_and_settings_that_cannot_be() -> None:
    X, y = credit(120)
    plain = {"select": "paper", "refine": False, "gamma": 0.6, "temperature": 1.0, "clean": False}
    quick = {"training": genrecourse.methods.genre.Training(steps=2, batch_size=16)}
    method = GenRe(credit_score, **plain, **quick).fit(X, y)
    with pytest.raises(UserError, match="no verifier to search with"):
        method.recourse(X.head(2), effort="search")
    with pytest.raises(UserError, match="distill=True needs select='verified', refine=True and a"):
        GenRe(credit_score, distill=True, select="paper").fit(X, y)
