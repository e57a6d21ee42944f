"""agreement: a published value and ours are equal, different, or too far from certain to tell."""

from __future__ import annotations

import math

import pytest

from paper import agreement
from paper.records import Measured, Published, Results
from tests.paper.made_up import line

STUDENT_4 = 2.776  # the 97.5% point of Student's t with four degrees of freedom


def compared(
    theirs: float, ours: float, sd: float = 0.01, seeds: int = 5, metric: str = "score"
) -> agreement.Comparison:
    """Our mean over seeds that vary by sd, beside a published value without an sd of people."""
    half = STUDENT_4 * sd / math.sqrt(seeds) if seeds > 1 else math.nan
    mine = Measured(ours, half, 0.3, 1000, seeds)
    return agreement.Comparison("t", "compas", "M", "m", metric, Published(theirs, None), mine)


def test_the_error_is_that_of_our_mean_and_of_one_more_seed() -> None:
    # a mean of 5 seeds and one seed more, each seed with the sd 0.01: sd * sqrt(1/5 + 1)
    wanted = STUDENT_4 * 0.01 * math.sqrt(1 / 5 + 1) + agreement.ROUNDING
    assert compared(1.9, 1.9).error == pytest.approx(wanted)


def test_the_error_of_200_published_people_is_added() -> None:
    mine = Measured(0.5, 0.0, 0.3, 1000, 5)
    found = agreement.Comparison("t", "compas", "M", "m", "cost", Published(0.5, 0.2), mine)
    assert found.error == pytest.approx(1.96 * 0.2 / math.sqrt(200) + agreement.ROUNDING)


@pytest.mark.parametrize(
    ("theirs", "sd", "seeds", "verdict"),
    [
        (1.90, 0.01, 5, "equal"),
        (1.93, 0.01, 5, "equal"),  # within 0.035
        (1.94, 0.01, 5, "different"),
        (1.94, 0.10, 5, "too noisy to tell"),  # the error is 0.31
        (1.50, 0.10, 5, "different"),  # noisy, but further away than that
        (1.90, 0.01, 1, "too noisy to tell"),  # one seed has no interval
    ],
)
def test_a_value_is_equal_or_different_only_if_the_errors_allow_it(
    theirs: float, sd: float, seeds: int, verdict: str
) -> None:
    assert compared(theirs, 1.90, sd, seeds).verdict == verdict


def test_a_large_cost_may_have_a_large_error() -> None:
    # the error is 0.31: more than 0.1, but less than a fifth of the published 5.0
    assert compared(5.0, 5.1, 0.1, metric="cost").verdict == "equal"
    assert compared(0.5, 0.6, 0.1, metric="cost").verdict == "too noisy to tell"


def test_the_error_of_a_published_score_comes_from_its_parts() -> None:
    # GenRe on compas: cost 0.51 ± 0.18 over 7 features, val ± 0.10, LOF ± 0.17
    assert agreement.published_sd("main_std", "compas", "GenRe", "score") == pytest.approx(
        math.hypot(0.18 / 7, 0.10, 0.17)
    )
    assert agreement.published_sd("main_std", "compas", "GenRe", "cost") == 0.18
    assert agreement.published_sd("nnr", "compas", "GenRe", "score") is None


def test_only_the_row_that_reproduces_the_paper_is_compared() -> None:
    ours = [line("genre", "compas", seed, cost=5.0, score=0.1) for seed in (1, 2)]
    assert agreement.comparisons("main_std", Results(ours)) == []
    theirs = [line("genre-paper", "compas", seed, cost=5.0, score=1.89) for seed in (1, 2)]
    found = agreement.comparisons("main_std", Results(theirs))
    assert [(each.method, each.metric, each.verdict) for each in found] == [
        ("GenRe", "cost", "different"),
        ("GenRe", "score", "equal"),
    ]


def test_the_words_count_each_answer_and_give_the_reason() -> None:
    lines = [line("genre-paper", "compas", seed, cost=5.0, score=1.89) for seed in (1, 2)]
    said = agreement.listed(agreement.comparisons("main_std", Results(lines)))
    assert said.startswith("Of 2 published values, ours is equal to 1 within both errors and")
    assert "different from 1; 0 are too noisy to tell." in said
    assert "cost 0.51 published, 5.000 ours (difference +4.490 ± 0.030)" in said
    assert agreement.reason("main_std", "compas", "GenRe") in said
    assert agreement.listed([]) == "Nothing to compare yet."


def test_reasons_go_from_the_particular_to_the_general(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [{"dataset": "compas", "method": "NNR", "text": "a"}, {"method": "NNR", "text": "b"}]
    monkeypatch.setattr(agreement, "_reasons", lambda: entries)
    assert agreement.reason("nnr", "compas", "NNR") == "a"
    assert agreement.reason("nnr", "adult", "NNR") == "b"
    assert agreement.reason("nnr", "adult", "GenRe") == "not known"
