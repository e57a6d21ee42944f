"""Searched: a base with known candidates, what each base offers, rules, and model files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from genrecourse import METHODS, Schema, UserError, load
from genrecourse.evaluation.checks import (
    broken_rules,
    changed,
    example_score,
    fit_quietly,
    make_example,
)
from genrecourse.methods import searched
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.methods.searched import PROBED, Searched
from genrecourse.rules.kinds import Rules
from genrecourse.table.noise import KeyedNoise
from tests.support.verifiers import StatedVerifier

# ---- a base with known candidates -------------------------------------------------------------

# both columns span [0, 10], and h = a / 10
TABLE = pd.DataFrame(
    [(0, 0), (1, 4), (2, 2), (3, 8), (6, 1), (8, 5), (10, 10)], columns=["a", "b"], dtype=float
)
PERSON = pd.DataFrame({"a": [2.0], "b": [2.0]})


def tenth(X: pd.DataFrame) -> np.ndarray:
    return np.clip(X["a"].to_numpy(dtype=float) / 10, 0, 1)


class Toy(Method):
    """Gives everybody the point that belongs to the noise's seed, and remembers its calls."""

    points: ClassVar[list[tuple[float, float]]] = []
    asked: ClassVar[list[tuple[int, int]]] = []  # (seed, people)
    seen: ClassVar[list[np.ndarray]] = []

    def _fit(self, rows: TrainingRows) -> None:
        self.seen.append(rows.Z)

    def _recourse(self, Z: np.ndarray, noise: KeyedNoise) -> np.ndarray:
        self.asked.append((noise.seed, len(Z)))
        self.seen.append(Z)
        Z_plus = Z.copy()
        Z_plus[:, :2] = np.array(self.points[noise.seed % len(self.points)]) / 10
        return Z_plus


class Dull(StatedVerifier):
    """Calls nothing valid or plausible below a = 7; every other measure is 1."""

    def __init__(self) -> None:
        super().__init__(
            probability=lambda Z: (Z[:, 0] > 0.65).astype(float),
            inlier=lambda Z: np.where(Z[:, 0] > 0.65, 1.0, -3.0),
        )


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> type[Toy]:
    monkeypatch.setitem(METHODS, "toy", Toy)
    monkeypatch.setattr(searched, "fit_verifier", lambda *_: Dull())
    for name in ("points", "asked", "seen"):
        monkeypatch.setattr(Toy, name, [])
    return Toy


def answer(method: Method, people: pd.DataFrame = PERSON) -> list[Any]:
    return list(method.recourse(people).itertuples(index=False, name=None))


def make(n: int, **params: Any) -> Searched:
    return Searched(tenth, Schema.infer(TABLE), base="toy", n_candidates=n, **params).fit(TABLE)


def test_the_verifier_chooses_among_the_base_s_candidates(toy: type[Toy]) -> None:
    # h accepts all but the third; the verifier calls the second implausible; the last is cheapest
    toy.points += [(9, 2), (6, 2), (1, 2), (8, 2)]
    assert answer(make(4)) == [(8.0, 2.0)]
    assert answer(make(3)) == [(9.0, 2.0)]


def test_the_best_candidates_are_refined_before_the_last_choice(toy: type[Toy]) -> None:
    # (9, 9) is worse than (9.8, 2.5) until its change of b is undone
    toy.points += [(9, 9), (9.8, 2.5)]
    assert answer(make(2)) == [(9.0, 2.0)]


def test_safety_reaches_the_search(toy: type[Toy], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    real = searched.search

    def spy(*known: Any, **options: Any) -> Any:
        seen.append(options["safety"])
        return real(*known, **options)

    monkeypatch.setattr(searched, "search", spy)
    toy.points += [(9, 2), (8, 2)]
    method = make(2, safety=0.3)
    method.recourse(PERSON)
    method.recourse(PERSON, safety=0.9)
    assert seen == [0.3, 0.9]


def test_a_base_that_uses_noise_is_asked_with_so_many_noises(toy: type[Toy]) -> None:
    toy.points += [(9, 2), (8, 2), (7, 2)]
    method = make(5, random_state=3)
    del toy.asked[:]
    method.recourse(PERSON)
    assert toy.asked == [(seed, 1) for seed in range(3, 8)]
    assert method.propose(np.array([[0.2, 0.2]]), KeyedNoise(3), 1).tried == 5


def test_a_base_without_noise_is_asked_once_more_in_fit_and_then_once(toy: type[Toy]) -> None:
    toy.points += [(9, 2)]
    method = make(96)
    rejected = int((tenth(TABLE) <= 0.5).sum())
    assert toy.asked == [(0, rejected), (1, rejected)]
    assert rejected <= PROBED
    assert answer(method, pd.concat([PERSON, PERSON + 1])) == [(9.0, 2.0), (9.0, 3.0)]
    assert toy.asked[2:] == [(0, 2)]


def test_several_plans_come_from_several_finalists(toy: type[Toy]) -> None:
    toy.points += [(9, 2), (8, 2), (7, 9)]
    F_plus = make(3).propose(np.array([[0.2, 0.2]]), KeyedNoise(0), 2).F_plus[0]
    assert F_plus[0] == pytest.approx([0.7, 0.2])  # (7, 9), refined, is what recourse gives
    assert {tuple(row.round(6)) for row in F_plus} == {(0.9, 0.2), (0.8, 0.2), (0.7, 0.2)}


def test_a_base_does_not_see_protected_features(toy: type[Toy]) -> None:
    toy.points += [(9, 2), (8, 2)]
    X = TABLE.assign(sex=["f", "m", "f", "m", "f", "m", "f"])
    schema = Schema.infer(X).with_feature("sex", role="protected")
    method = Searched(tenth, schema, base="toy", n_candidates=2).fit(X)
    people = pd.concat([PERSON.assign(sex="f"), PERSON.assign(sex="m")])
    assert method.recourse(people)["sex"].tolist() == ["f", "m"]
    shown = np.concatenate(toy.seen)
    assert len(shown) > len(X)
    assert len(np.unique(shown[:, 2:], axis=0)) == 1


def test_the_rules_of_a_request_bind_the_candidates(toy: type[Toy]) -> None:
    toy.points += [(9, 2), (8, 2)]
    method = make(2)
    assert answer(method) == [(8.0, 2.0)]
    assert method.recourse(PERSON, rules=Rules(ranges={"a": (8.5, 10.0)}))["a"].item() == 9.0
    assert method.recourse(PERSON, rules=Rules(lock=("a",)))["a"].item() == 2.0


def test_mistakes_say_what_to_do(toy: type[Toy]) -> None:
    def fit(**params: Any) -> None:
        Searched(tenth, Schema.infer(TABLE), **params).fit(TABLE)

    with pytest.raises(UserError, match=r"base is 'revize' \(did you mean 'revise'\?\)"):
        fit(base="revize")
    with pytest.raises(UserError, match="Toy has no parameter"):
        fit(base="toy", base_params={"stepz": 3})
    with pytest.raises(UserError, match="base_params is 'slow'; it must be a dict"):
        fit(base="toy", base_params="slow")
    with pytest.raises(UserError, match="n_candidates is 0"):
        fit(base="toy", n_candidates=0)


# ---- the three presets ------------------------------------------------------------------------

EXAMPLE = make_example()
NAMES = ("revise-search", "cchvae-search", "tabsyn_q-search")


@pytest.fixture(scope="module", params=NAMES)
def method(request: pytest.FixtureRequest) -> Any:
    made = METHODS[request.param](
        example_score, EXAMPLE.schema, base_params="quick", n_candidates=24
    )
    return fit_quietly(made, EXAMPLE.X, EXAMPLE.y)


def rejected() -> pd.DataFrame:
    return EXAMPLE.people[example_score(EXAMPLE.people) <= 0.5]


def test_the_base_s_own_answer_is_a_candidate(method: Any) -> None:
    base = METHODS[method.base](example_score, EXAMPLE.schema, **type(method.base_)._test_params())
    own = fit_quietly(base, EXAMPLE.X, EXAMPLE.y).recourse(rejected())
    Z = method.problem_.encoder.encode(rejected())
    found = method._candidates(Z, KeyedNoise(0), None)
    assert found.F[:, 0] == pytest.approx(method.problem_.encoder.features(own), nan_ok=True)
    assert found.F.shape[1] == (1 if method.base == "revise" else 24)


def test_the_search_expects_no_less_than_the_base_s_answer_gives(method: Any) -> None:
    """By the verifier's own measure, the choice is no worse than the first candidate, refined."""
    Z = method.problem_.encoder.encode(rejected())
    found = method._candidates(Z, KeyedNoise(0), None)
    all_of_them = method._search(Z, found, None, None).merit.max(axis=1)
    first = method._search(Z, found.take(np.zeros((len(Z), 1), dtype=int)), None, None)
    sure = found.confidence.max(axis=1) > 0.5
    gain = (all_of_them - first.merit[:, 0])[sure]
    assert gain.mean() >= 0
    assert (gain > 0.01).any() == (found.F.shape[1] > 1)


def test_every_rule_of_a_request_is_kept(method: Any) -> None:
    people = rejected()
    rules = Rules(lock=("debt", "region"), max_changes=2)
    X_plus = method.recourse(people, rules=rules)
    assert not any(
        b.to_numpy().any() for b in broken_rules(EXAMPLE.schema, people, X_plus).values()
    )
    moved = np.array([changed(people[c], X_plus[c]) for c in people.columns])
    assert moved.sum(axis=0).max() <= 2
    assert not changed(people["debt"], X_plus["debt"]).any()
    if method.base != "revise":  # it has one candidate, found without the rules
        assert (example_score(X_plus) > 0.5).mean() > 0.3


def test_a_loaded_model_gives_the_same_recourse(method: Any, tmp_path: Path) -> None:
    method.save(tmp_path / "model")
    loaded = load(tmp_path / "model", example_score)
    assert (loaded.base, loaded.n_candidates) == (method.base, 24)
    assert loaded.is_random_ == method.is_random_ == (method.base != "revise")
    people = rejected()
    pd.testing.assert_frame_equal(loaded.recourse(people), method.recourse(people))


# ---- what tabsyn_q and cchvae offer -----------------------------------------------------------


def fitted(name: str) -> Any:
    params = METHODS[name]._test_params()
    return fit_quietly(METHODS[name](example_score, EXAMPLE.schema, **params), EXAMPLE.X, EXAMPLE.y)


def test_a_third_of_the_candidates_of_tabsyn_q_are_the_nearest() -> None:
    base = fitted("tabsyn_q")
    problem = base.problem_
    Z = problem.encoder.encode(rejected())
    found = base.candidates(Z, KeyedNoise(0), 9)
    cost = problem.cost(Z[:, None], found)
    assert found.shape == (len(Z), 9, Z.shape[1])
    assert (np.diff(cost[:, 6:], axis=1) >= -1e-9).all()  # the last three, cheapest first
    many = base.candidates(Z, KeyedNoise(0), 90)
    assert many[:, 60:63] == pytest.approx(found[:, 6:])
    assert base.candidates(Z, KeyedNoise(0), 1) == pytest.approx(found[:, :1])
    different = [len(np.unique(rows, axis=0)) for rows in many[:, :60]]
    assert max(different) > 1  # few synthetic rows share age and sex


def test_the_candidates_of_cchvae_are_draws_that_h_accepts() -> None:
    base = fitted("cchvae")
    Z = base.problem_.encoder.encode(rejected())
    found = base.candidates(Z, KeyedNoise(0), 30)
    accepted = base.problem_.confidence(found.reshape(-1, Z.shape[1])).reshape(len(Z), 30) > 0.5
    helped = accepted[:, 0]
    assert helped.any()
    assert accepted[helped].all()
    different = np.array([len(np.unique(rows, axis=0)) for rows in found[helped]])
    assert different.min() > 20  # two draws may decode to the same row
    problem = base.problem_
    locked = problem.compile(Rules(lock=("debt", "income")), problem.read(rejected()))
    found_locked = base.candidates(Z, KeyedNoise(0), 5, locked)
    F, F_plus = problem.encoder.to_features(Z), problem.encoder.to_features(found_locked[:, -1])
    place = [problem.schema.names.index(name) for name in ("debt", "income")]
    assert np.array_equal(F_plus[:, place], F[:, place], equal_nan=True)
    assert (problem.confidence(found_locked[:, -1]) > 0.5).mean() > 0.3
    alone = base.candidates(Z[5:6], KeyedNoise(0), 30)
    assert np.array_equal(alone, found[5:6], equal_nan=True)
