"""Algorithms 1 and 2 as GenRe composes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from genrecourse.genre import fit as fit_module
from genrecourse.genre.density import RecourseDensity
from genrecourse.genre.fit import Training
from genrecourse.genre.model import RecourseNet
from genrecourse.genre.pairs import Pairs, make_pairs
from genrecourse.genre.sample import sample
from genrecourse.genre.targets import Targets
from genrecourse.table.noise import KeyedNoise
from genrecourse.table.schema import Schema
from tests.support.equations import PEOPLE, credit, credit_genre, credit_score, toy


def test_sources_and_targets_are_those_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """D-: y = 0 and h <= 0.5. D+: y = 1 and h > gamma."""
    X, y = credit()
    h = credit_score(X)
    seen: list[tuple[np.ndarray, Targets]] = []

    def spy(Z: np.ndarray, F: np.ndarray, targets: Targets, *rest: Any, **named: Any) -> Pairs:
        seen.append((F, targets))
        return make_pairs(Z, F, targets, *rest, **named)

    def rows(*tables: np.ndarray) -> list[tuple[float, ...]]:
        return sorted(map(tuple, np.concatenate(tables).round(9).tolist()))

    monkeypatch.setattr(fit_module, "make_pairs", spy)
    for sources in ("labelled", "rejected"):
        seen.clear()
        method = credit_genre(sources=sources).fit(X, y)
        F = method.problem_.encoder.features(X)
        rejected = (h <= 0.5) & ((y == 0) | (sources == "rejected"))
        assert ((h <= 0.5) & (y == 1)).any()
        assert rows(*[source for source, _ in seen]) == rows(F[rejected])
        assert method.fit_report_["pairs"]["sources"] == len(seen[0][0]) > len(seen[1][0])
        for _, targets in seen:
            assert rows(targets.F) == rows(F[(y == 1) & (h > 0.7)])


def test_each_epoch_visits_every_source_once_with_a_new_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = credit()
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    real = RecourseDensity.loss

    def spy(
        self: RecourseDensity, x: torch.Tensor, x_plus: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        if self.net.training:
            pairs.append((x.numpy().copy(), x_plus.numpy().copy()))
        return real(self, x, x_plus, generator)

    monkeypatch.setattr(RecourseDensity, "loss", spy)
    batch = 20
    n_sources = round(0.9 * ((credit_score(X) <= 0.5) & (y == 0)).sum())
    per_epoch = n_sources // batch
    training = Training(epochs=2, bounds=None, batch_size=batch, patience=None)
    method = credit_genre(refine=False, lam=0.5, training=training).fit(X, y)
    assert len(pairs) == 2 * per_epoch
    first, second = pairs[:per_epoch], pairs[per_epoch:]
    for epoch in (first, second):
        x = np.concatenate([x for x, _ in epoch])
        assert x.shape == (per_epoch * batch, 4)
        assert len(np.unique(x, axis=0)) == len(x)  # no source twice
    # pairs are feasible, and drawn anew
    targets = [
        {tuple(a): tuple(b) for x, p in e for a, b in zip(x, p, strict=True)}
        for e in (first, second)
    ]
    both = targets[0].keys() & targets[1].keys()
    assert len(both) > 0.6 * len(targets[0])
    assert sum(targets[0][x] != targets[1][x] for x in both) > 0.5 * len(both)
    for x, x_plus in pairs:
        assert method.problem_.rules.feasible(x, x_plus).all()


def test_an_immutable_matched_by_bin_is_carried_over_and_h_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = credit()
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    real = RecourseDensity.loss

    def spy(
        self: RecourseDensity, x: torch.Tensor, x_plus: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        pairs.append((x.numpy().copy(), x_plus.numpy().copy()))
        return real(self, x, x_plus, generator)

    monkeypatch.setattr(RecourseDensity, "loss", spy)
    schema = Schema.infer(X, immutable=["rate"])  # a number of hundreds of values
    training = Training(steps=20, batch_size=64, patience=None)
    method = credit_genre(schema=schema, n_bins=3, lam=0.5, refine=False, training=training)
    method.fit(X, y)
    x, x_plus = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    np.testing.assert_array_equal(x_plus[:, 1], x[:, 1])
    encoder = method.problem_.encoder
    people = encoder.table(encoder.from_features(x_plus), X.iloc[:1])
    assert (credit_score(people) > 0.7).all()
    # with another's rate the same target was accepted: some pairs have been dropped
    assert len(x) < sum(64 for _ in pairs)


def test_training_starts_with_an_untrained_encoder_and_decoder_and_moves_both() -> None:
    X, y = credit()
    still = Training(steps=1, lr=1e-30, weight_decay=0.0)  # so small that no weight moves

    def weights(state: int, **params: Any) -> dict[str, torch.Tensor]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(state)  # what happened before must not matter
            return credit_genre(**params).fit(X, y).density_.net.state_dict()

    start, again = weights(1, training=still), weights(2, training=still)
    other, after = weights(1, training=still, random_state=1), weights(1)
    names = ["encoder.0.attend.query.weight", "decoder.1.cross.out.weight", "head", "position_x"]
    for name in names:
        assert torch.equal(start[name], again[name])  # same seed, same weights
        assert not torch.equal(start[name], other[name])
        assert not torch.equal(start[name], after[name])


def test_each_row_is_encoded_once_for_all_its_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    it = toy()
    encoded: list[int] = []
    real = RecourseNet.encode

    def spy(self: RecourseNet, x: torch.Tensor, *lam: Any) -> Any:
        encoded.append(len(x))
        return real(self, x, *lam)

    monkeypatch.setattr(RecourseNet, "encode", spy)
    F = np.concatenate([it.x(*person).numpy() for person in PEOPLE])
    sample(it.density, F, 128, temperature=1.0, noise=KeyedNoise(0))
    assert encoded == [2] * (len(F) // 2)  # two rows together


@pytest.mark.parametrize("params", [{"bins": "uniform"}, {"sigma": 0.1}], ids=["grid", "sigma"])
def test_samples_are_projected_onto_legal_values(params: dict[str, Any]) -> None:
    """Algorithm 2, line 8: whatever the density adds, what leaves is a row of the table."""
    X, y = credit()
    method = credit_genre(**params).fit(X, y)
    people = X[credit_score(X) <= 0.5].head(40)
    drawn = method.sample(people, 20)
    assert drawn.dtypes.equals(X.dtypes)  # income is whole
    np.testing.assert_allclose(drawn["rate"], drawn["rate"].round(3), atol=1e-9)
    assert drawn["rate"].between(X["rate"].min(), X["rate"].max()).all()
    assert set(drawn["home"]) <= set(X["home"])
    own = people.loc[drawn.index.get_level_values(0)]
    assert (drawn["sex"].to_numpy() == own["sex"].to_numpy()).all()
    assert (drawn["income"].to_numpy() != own["income"].to_numpy()).mean() > 0.2
