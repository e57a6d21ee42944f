"""claims: a claim of the paper is decided by intervals, on every data set for which it is made."""

from __future__ import annotations

import pytest

from genrecourse.evaluation.comparison.intervals import Interval
from paper import claims
from paper.records import DATASETS, Line, Results
from tests.paper.made_up import line

SEEDS = (1, 2, 3, 4, 5)


def seen(*lines: Line, settings: tuple[Line, ...] = (), **other: list[Line]) -> claims.Evidence:
    parts = {"theory": [], "contours": [], "pinned": []} | other
    return claims.Evidence(Results(lines), Results(settings), **parts)


def runs(label: str, metric: str = "score", noise: float = 0.0, **means: float) -> tuple[Line, ...]:
    """Five seeds of a label on the named data sets; seed i lies (i - 3) * noise from the mean."""
    return tuple(
        line(label, DATASETS[name], seed, **{metric: mean + (seed - 3) * noise})
        for name, mean in means.items()
        for seed in SEEDS
    )


def between(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, (high - low) / 2, 5, 5, 5)


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [
        ([(0.1, 0.2), (0.3, 0.4)], "holds"),
        ([(0.1, 0.2), (-0.1, 0.4)], "cannot tell"),
        ([(0.1, 0.2), (-0.2, -0.1)], "does not hold"),
        ([(-0.1, 0.2), (-0.2, -0.1)], "does not hold"),
    ],
)
def test_every_interval_must_lie_on_the_side_that_the_claim_names(
    ends: list[tuple[float, float]], outcome: str
) -> None:
    gaps = {str(i): between(*each) for i, each in enumerate(ends)}
    assert claims.above(gaps).outcome == outcome
    assert claims.above({**gaps, "missing": None}).outcome == "no results"


def test_a_claim_about_three_data_sets_needs_all_three() -> None:
    theirs = {"adult": 1.5, "compas": 1.5, "heloc": 1.5}
    tap = runs("tap", noise=0.01, **theirs)
    better = {name: value + 0.2 for name, value in theirs.items()}
    assert claims.tap_scores_less(seen(*tap, *runs("genre-paper", **better))).outcome == "holds"
    worse = better | {"heloc": 1.3}
    found = claims.tap_scores_less(seen(*tap, *runs("genre-paper", **worse)))
    assert found.outcome == "does not hold"
    assert "heloc" in found.evidence
    del better["heloc"]
    assert (
        claims.tap_scores_less(seen(*tap, *runs("genre-paper", **better))).outcome == "no results"
    )


def test_a_difference_inside_the_noise_of_seeds_is_not_told() -> None:
    sets = {"adult": 1.5, "compas": 1.5, "heloc": 1.5}
    close = {name: value + 0.01 for name, value in sets.items()}
    lines = (*runs("tap", noise=0.1, **sets), *runs("genre-paper", **close))
    assert claims.tap_scores_less(seen(*lines)).outcome == "cannot tell"


def test_alike_needs_an_interval_within_the_margin() -> None:
    def outcome(gap: float, noise: float = 0.0) -> str:
        lines = (
            *runs("nnr-dplus", noise=noise, compas=1.8),
            *runs("genre-paper", compas=1.8 + gap),
        )
        return claims.genre_is_like_nearest_on_compas(seen(*lines)).outcome

    assert outcome(0.04) == "holds"
    assert outcome(-0.06) == "does not hold"
    assert outcome(0.04, noise=0.1) == "cannot tell"


def test_the_densities_are_compared_seed_by_seed() -> None:
    def masses(gain: float, noise: float) -> list[Line]:
        return [
            {"dataset": name, "seed": seed, "density": kind, "lof": value}
            for name in ("moons", "circles")
            for seed in SEEDS
            for kind, value in (
                ("R(x+ | x)", 0.9 + gain + (seed - 3) * noise),
                ("P(x | favourable)", 0.9),
            )
        ]

    check = claims.conditional_is_more_plausible
    assert check(seen(contours=masses(0.05, 0.001))).outcome == "holds"
    assert check(seen(contours=masses(0.05, 0.1))).outcome == "cannot tell"
    assert check(seen(contours=masses(-0.05, 0.001))).outcome == "does not hold"


def test_swings_over_lambda_are_those_of_each_seed() -> None:
    def lines(method: str, swing: float) -> list[Line]:
        values = dict(zip(claims.LAMBDAS, (0.5, 0.5, 0.5 + swing, 0.5, 0.5), strict=True))
        return [
            each
            for lam, value in values.items()
            for each in runs(claims.at_lambda(method, lam), "lof", adult=value, compas=value)
        ]

    check = claims.swings_more("lof", ("adult", "compas"))
    wild, calm = lines("cruds", 0.4), lines("genre-paper", 0.1)
    assert check(seen(settings=(*wild, *calm))).outcome == "holds"
    wild, calm = lines("cruds", 0.1), lines("genre-paper", 0.4)
    assert check(seen(settings=(*wild, *calm))).outcome == "does not hold"


def test_a_share_of_broken_immutables_is_found() -> None:
    def pinned(share: float) -> list[Line]:
        sets = ("adult-carla", "compas", "heloc")
        return [
            {"dataset": d, "seed": s, "lam": 5.0, "broken": share, "n": 200}
            for d in sets
            for s in SEEDS
        ]

    assert claims.diffusion_breaks_immutables(seen(pinned=pinned(0.2))).outcome == "holds"
    assert claims.diffusion_breaks_immutables(seen(pinned=pinned(0.0))).outcome == "does not hold"
    assert claims.diffusion_breaks_immutables(seen()).outcome == "no results"


def test_without_results_no_claim_has_a_verdict() -> None:
    for claim in claims.CLAIMS:
        assert claim.check(seen()).outcome == "no results", claim.words
    assert len(claims.listed(seen(), "no results")) == len(claims.CLAIMS)


def test_every_claim_is_listed_under_exactly_one_outcome() -> None:
    sets = {"adult": 1.5, "compas": 1.5, "heloc": 1.5}
    some = seen(*runs("genre-paper", **sets), *runs("tap", **{k: v - 0.1 for k, v in sets.items()}))
    each = [claims.listed(some, o) for o in ("holds", "does not hold", "cannot tell", "no results")]
    assert sum(map(len, each)) == len(claims.CLAIMS)
    assert any("TAP" in item for item in each[0])
