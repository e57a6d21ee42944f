"""GenRe(lam="any"), and what may be asked at each request."""

from __future__ import annotations

import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse import load
from genrecourse.errors import UserError
from genrecourse.evaluation.checks import Example, broken_rules, example_score, make_example
from genrecourse.genre.any_lam import LAM_RANGE, USUAL_LAM
from genrecourse.genre.model import NetConfig
from genrecourse.genre.pairs import lost_by_cap
from genrecourse.genre.targets import make_targets
from genrecourse.methods.genre import GenRe, Training
from genrecourse.methods.nearest import NearestNeighbour


@pytest.fixture(scope="module")
def example() -> Example:
    return make_example()


# The model and its draws alone: neither a judge nor a verifier has a say.
PLAIN: dict[str, Any] = {
    "gamma": 0.5,
    "clean": False,
    "temperature": 1.0,
    "margin": 0.5,
    "select": "likelihood",
    "refine": False,
    "retrieve": False,
}


def quick(example: Example, **params: Any) -> GenRe:
    settings = {**GenRe._test_params(), **PLAIN, **params}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GenRe(example_score, example.schema, **settings).fit(example.X, example.y)


@pytest.fixture(scope="module")
def any_lam(example: Example) -> GenRe:
    return quick(example, lam="any")


@pytest.fixture(scope="module")
def one_lam(example: Example) -> GenRe:
    return quick(example, lam=5.0)


# ---- requests -----------------------------------------------------------------------------------


def test_an_option_left_out_is_as_fitted(example: Example, one_lam: GenRe, any_lam: GenRe) -> None:
    for fitted, lam in ((one_lam, 5), (any_lam, USUAL_LAM)):
        told = {
            "lam": lam,
            "temperature": fitted.temperature_,
            "sigma": 0.0,
            "n_draws": np.int64(fitted.n_draws_),
        }
        plain = fitted.recourse(example.people)
        pd.testing.assert_frame_equal(fitted.recourse(example.people, **told), plain)
        nothing = dict.fromkeys(told)
        pd.testing.assert_frame_equal(fitted.recourse(example.people, **nothing), plain)
        pd.testing.assert_frame_equal(
            fitted.sample(example.people, 3, lam=lam), fitted.sample(example.people, 3)
        )


@pytest.mark.parametrize(
    "option",
    [{"lam": 0.5}, {"temperature": 3.0}, {"sigma": 0.2}, {"n_draws": 1}],
    ids=lambda option: next(iter(option)),
)
def test_each_option_matters_and_keeps_the_rules(
    example: Example, any_lam: GenRe, option: dict[str, Any]
) -> None:
    people = example.people
    plain, asked = any_lam.recourse(people), any_lam.recourse(people, **option)
    assert not asked.equals(plain)
    pd.testing.assert_frame_equal(any_lam.recourse(people, **option), asked)  # the same again
    part = any_lam.recourse(people.iloc[7:20], **option)
    pd.testing.assert_frame_equal(part, asked.iloc[7:20])  # same person, same plan
    for kind, cells in broken_rules(example.schema, people, asked).items():
        assert not cells.to_numpy().any(), kind
    pd.testing.assert_frame_equal(any_lam.recourse(people), plain)  # nothing is remembered


def test_sample_draws_and_plans_take_the_options_too(example: Example, any_lam: GenRe) -> None:
    people = example.people
    options: dict[str, Any] = {"lam": 0.5, "temperature": 2.0, "sigma": 0.05}
    sampled, drawn = any_lam.sample(people, 6, **options), any_lam.draws(people, 6, **options)
    assert not sampled.equals(any_lam.sample(people, 6))
    assert len(drawn) == 6 * len(people)
    chosen = drawn.index[drawn["chosen"]]
    answer = any_lam.recourse(people, n_draws=6, **options)
    rows = chosen.get_level_values("row")
    assert len(rows) > 20
    # recourse is the draw that `draws` marks, of those that `sample` shows
    assert sampled.loc[chosen].droplevel("draw").equals(answer.loc[rows])
    # and a plan's likelihood is that of the lam it was asked for
    plans = any_lam.plans(people, lam=0.5)
    x_plus = plans.x_plus()
    by_lam = any_lam.log_prob(x_plus, given=people.loc[x_plus.index], lam=0.5)
    told = [plan.log_likelihood for plan in plans.shown]
    known = [(v, by) for v, by in zip(told, by_lam, strict=True) if v is not None]
    assert len(known) > 5
    for value, by in known:
        assert value == pytest.approx(by, abs=1e-4)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"lam": 0}, r"lam is 0; .* knows lam from 0\.5 to 10"),
        ({"lam": -1.0}, r"lam is -1\.0; .* from 0\.5 to 10"),
        ({"lam": 0.49}, r"lam is 0\.49; .* from 0\.5 to 10"),
        ({"lam": 10.5}, r"lam is 10\.5; .* from 0\.5 to 10"),
        ({"lam": float("nan")}, "lam is nan"),
        ({"lam": "any"}, "lam is 'any'"),
        ({"temperature": 0.0}, r"temperature is 0\.0; it must be a number above 0"),
        ({"sigma": -0.1}, "sigma is -0.1; it must be a number from 0 to"),
        ({"n_draws": 0}, "n_draws is 0; it must be a whole number from 1 to"),
        ({"n_draws": 2.5}, "n_draws is 2.5"),
        ({"n_draws": True}, "n_draws is True"),
        (
            {"tau": 10, "margin": 0.6},
            r"no option \['tau', 'margin'\] .* "
            r"takes \['lam', 'temperature', 'sigma', 'n_draws'",
        ),
    ],
)
def test_what_means_nothing_is_refused(
    example: Example, any_lam: GenRe, option: dict[str, Any], said: str
) -> None:
    for people in (example.people, example.people[example_score(example.people) > 0.5]):
        with pytest.raises(UserError, match=rf"GenRe\.recourse: {said}"):
            any_lam.recourse(people, **option)


def test_other_verbs_refuse_it_by_their_own_name(example: Example, any_lam: GenRe) -> None:
    people = example.people
    with pytest.raises(UserError, match=r"GenRe\.sample: lam is 20"):
        any_lam.sample(people, 2, lam=20)
    with pytest.raises(UserError, match=r"GenRe\.sample: n is 0"):
        any_lam.sample(people, 0)
    with pytest.raises(UserError, match=r"GenRe\.draws: sigma is -1"):
        any_lam.draws(people, sigma=-1)
    with pytest.raises(UserError, match=r"GenRe\.log_prob: lam is 20"):
        any_lam.log_prob(people, given=people, lam=20)


def test_a_model_of_one_lam_knows_no_other(example: Example, one_lam: GenRe) -> None:
    with pytest.raises(UserError, match=r"lam is 2\.5, but .* fitted with lam=5\.0 .* lam='any'"):
        one_lam.recourse(example.people, lam=2.5)
    with pytest.raises(UserError, match=r"GenRe\.log_prob: lam is 2\.5, but"):
        one_lam.log_prob(example.people, given=example.people, lam=2.5)


class WithoutOptions(NearestNeighbour):
    options = ()

    def _recourse(self, Z: Any, noise: Any) -> Any:  # type: ignore[override]
        return Z


@pytest.mark.parametrize(
    ("kind", "takes"),
    [(NearestNeighbour, r"\['safety', 'rules'\]"), (WithoutOptions, "none")],
)
def test_a_method_says_which_options_it_takes(
    example: Example, kind: type[NearestNeighbour], takes: str
) -> None:
    nearest = kind(example_score, example.schema).fit(example.X, example.y)
    with pytest.raises(UserError, match=rf"no option \['lam'\] .* {kind.__name__} takes {takes}"):
        nearest.recourse(example.people, lam=5.0)


@pytest.mark.parametrize("lam", [-1.0, float("inf"), "all", None, True])
def test_fit_refuses_a_lam_that_is_none(example: Example, lam: Any) -> None:
    method = GenRe(example_score, example.schema, lam=lam)
    with pytest.raises(UserError, match=r"GenRe\.fit: lam is .* or 'any'"):
        method.fit(example.X, example.y)


# ---- one model for every lam --------------------------------------------------------------------


def test_log_prob_depends_on_lam(example: Example, any_lam: GenRe) -> None:
    people = example.people[example_score(example.people) <= 0.5]
    answer = any_lam.recourse(people)
    low, usual = (any_lam.log_prob(answer, given=people, lam=lam) for lam in (0.5, None))
    assert np.isfinite(low).all()
    assert ((low - usual).abs() > 1e-3).all()
    pd.testing.assert_series_equal(any_lam.log_prob(answer, given=people, lam=USUAL_LAM), usual)


def test_a_saved_model_answers_at_every_lam(
    example: Example, any_lam: GenRe, tmp_path: Path
) -> None:
    any_lam.save(tmp_path / "model")
    again = load(tmp_path / "model", classifier=example_score)
    assert again.get_params()["lam"] == "any"
    assert isinstance(again, GenRe)
    for lam in (None, 0.5, 10.0):
        answer = any_lam.recourse(example.people, lam=lam)
        pd.testing.assert_frame_equal(again.recourse(example.people, lam=lam), answer)
        pd.testing.assert_series_equal(
            again.log_prob(answer, given=example.people, lam=lam),
            any_lam.log_prob(answer, given=example.people, lam=lam),
        )
    with pytest.raises(UserError, match=r"from 0\.5 to 10"):
        again.recourse(example.people, lam=11)


def test_the_report_says_what_a_cap_on_the_targets_loses(example: Example) -> None:
    settings: dict[str, Any] = {"lam": "any", "top_k": 1, "training": Training(steps=2)}
    whole, capped = quick(example, **settings), quick(example, **settings, max_targets=40)
    assert whole.fit_report_["targets"]["mass_lost"] == 0.0
    assert whole.fit_report_["pairs"]["mass_lost_by_top_k"] == 0.0  # all of D+, whatever top_k
    report = capped.fit_report_["targets"]
    assert report["used"] == 40 < report["found"]

    # the same by hand: the permutation after that of the sources tells who was kept
    F = capped.problem_.encoder.features(example.X)
    h, y = example_score(example.X), example.y.to_numpy() == 1
    rng = np.random.default_rng(0)
    sources = rng.permutation(np.flatnonzero((h <= 0.5) & ~y))
    fitted = sources[max(5, round(0.1 * len(sources))) :]
    found = np.flatnonzero((h > 0.5) & y)
    kept = np.zeros(len(found), dtype=bool)
    kept[rng.permutation(len(found))[:40]] = True
    Z, rules = capped.problem_.encoder.from_features(F), capped.problem_.rules
    targets = make_targets(Z[found], F[found], rules, capped.n_bins)
    lost = [
        lost_by_cap(
            Z[fitted][:256], F[fitted][:256], targets, kept, rules, capped.problem_.cost, lam
        )
        for lam in LAM_RANGE
    ]
    assert report["mass_lost"] == pytest.approx(max(lost))
    assert report["mass_lost"] > 0.3


def test_cost_falls_as_lam_rises() -> None:
    """Accepted people stand near (5 in 10) and far; near is dear to lam only."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(0, 10, 900).round(2), "b": rng.uniform(0, 10, 900).round(2)})

    def h(X: pd.DataFrame) -> np.ndarray:
        return np.clip(X["a"].to_numpy() / 10, 0, 1)

    method = GenRe(
        h,
        lam="any",
        n_bins=20,
        net=NetConfig(width=32, heads=2, feedforward=32, encoder_layers=1, decoder_layers=1),
        training=Training(steps=200, batch_size=128, lr=5e-3),
        **PLAIN,
    ).fit(X)
    people = X[X["a"] < 5][:100]
    F = method.problem_.encoder.features(X)
    accepted, span = F[h(X) > 0.5], method.problem_.encoder.features(people)
    costs = np.abs(span[:, None] - accepted[None]).sum(-1)
    seen = []
    for lam in (0.5, 1.0, 2.5, 5.0, 10.0):
        weight = np.exp(-lam * costs)
        expected = (weight * costs).sum(1) / weight.sum(1)  # E_Q[C], by Eq. (6)
        drawn = method.draws(people, 40, lam=lam)["cost"]
        assert drawn.mean() == pytest.approx(expected.mean(), abs=0.06)
        seen.append(drawn.mean())
    assert all(a > b + 0.01 for a, b in pairwise(seen)), seen
