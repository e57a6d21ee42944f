"""Whatever the schema, the table and the classifier: no rule is ever broken.

Schemas, tables and classifiers are drawn by hypothesis, always the same ones. The rules must hold
for an untrained net as well, so R_theta is trained for one to three steps only and sampled hot.
`make soak` sets GENRECOURSE_SOAK_ROWS for a longer run.
"""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given

from genrecourse.errors import UserError
from genrecourse.evaluation.checks import KINDS, broken_rules, changed
from genrecourse.methods.genre import GenRe
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.rules.book import RuleBook
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import TableEncoder, unchanged
from genrecourse.table.schema import Schema
from tests.support.random_tables import ROWS, TINY, Case, cases, reproducible

PEOPLE = 200  # rejected people of one example, at most


# ---- the rules hold ----------------------------------------------------------------------------


class Tally:
    """What was looked at, so that "no violation" says something."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.settings: Counter[str] = Counter()
        self.exposed: Counter[str] = Counter()  # cells that moved although a rule of this kind ...
        self.broken: Counter[str] = Counter()

    def look(self, who: str, schema: Schema, X: pd.DataFrame, X_plus: pd.DataFrame) -> None:
        self.rows[who] += len(X)
        for f in schema:
            moved = int(changed(X[f.name], X_plus[f.name]).sum())
            held = {
                "immutable": len(X) if f.role in ("immutable", "protected") else 0,
                "follows": len(X) if f.follows else 0,
                "direction": moved if f.direction != "any" else 0,
                "range": moved if f.range is not None else 0,
                "step": moved if f.max_step is not None else 0,
                "decimals": moved if f.decimals is not None else 0,
                "category": moved if f.is_category else 0,
                "missing": int(X[f.name].isna().sum()),
            }
            self.exposed.update(held)
        broken = broken_rules(schema, X, X_plus)
        found = {kind: int(cells.to_numpy().sum()) for kind, cells in broken.items()}
        self.broken.update(found)
        for kind, cells in broken.items():
            for i, j in np.argwhere(cells.to_numpy())[:1]:
                f = schema.features[j]
                pytest.fail(
                    f"{who} breaks the {kind} rule of {f!r}: {X[f.name].iloc[i]!r} became "
                    f"{X_plus[f.name].iloc[i]!r}"
                )

    def __str__(self) -> str:
        lines = [
            f"rows checked: {self.rows['GenRe']:,} by GenRe, {self.rows['NearestNeighbour']:,} by "
            f"NearestNeighbour, {self.rows['GenRe.sample']:,} single draws",
            f"random schemas, tables and classifiers: {self.rows['schemas']:,} (and "
            f"{self.rows['nothing to learn']:,} from which nothing could be learned)",
            "settings: " + ", ".join(f"{k} {v}" for k, v in sorted(self.settings.items())),
            f"{'rule':<12}{'cells under it':>16}{'violations':>12}",
        ]
        lines += [f"{k:<12}{self.exposed[k]:>16,}{self.broken[k]:>12,}" for k in KINDS]
        return "\n".join(lines)


def test_no_rule_is_ever_broken(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()

    @reproducible(max_examples=ROWS // 96)
    @given(case=cases(roles=True))
    def look(case: Case) -> None:
        _recourse_keeps_the_rules(case, tally)

    try:
        look()
    finally:
        with capsys.disabled():
            print(f"\n{tally}")  # noqa: T201
    assert tally.rows["GenRe"] >= ROWS
    assert tally.rows["NearestNeighbour"] >= ROWS
    assert min(tally.exposed[kind] for kind in KINDS) > ROWS // 50  # each rule had its chance
    assert sum(tally.broken.values()) == 0


def _recourse_keeps_the_rules(case: Case, tally: Tally) -> None:
    X, many = case.table(case.n_rows, 1), case.table(4 * PEOPLE, 2, beyond=0.15)
    h, schema = case.classifier(X), case.schema
    accepted = h(many) > 0.5
    people = pd.concat([many[~accepted][:PEOPLE], many[accepted][:10]])
    rejected = ~(h(people) > 0.5)
    how = {"net": TINY, "gamma": 0.5, "margin": 0.5, "random_state": case.seed, **case.method}
    # a verifier takes longer to fit than all the rest: only for those who select by it
    genre = GenRe(h, schema, refine=how["select"] == "verified", **how)
    nearest = NearestNeighbour(h, schema, n_bins=case.method["n_bins"])
    for method in (genre, nearest):
        who = type(method).__name__
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*left out of training")
                warnings.filterwarnings("ignore", message=".*It is protected")
                method.fit(X)
        except UserError:
            tally.rows["nothing to learn"] += 1
            continue
        X_plus = method.recourse(people)
        assert X_plus.index.equals(people.index)
        assert list(X_plus.columns) == list(people.columns)
        assert X_plus.dtypes.equals(people.dtypes)
        assert X_plus[~rejected].equals(people[~rejected])
        tally.look(who, schema, people[rejected], X_plus[rejected])
        assert "rule-broken" not in set(method.assess(people, X_plus)["status"])
        if isinstance(method, GenRe):
            tally.rows["schemas"] += 1
            tally.settings.update(f"{k}={case.method[k]}" for k in ("bins", "keep", "sigma"))
            draws = method.sample(people[:20], 3)
            again = people.iloc[np.repeat(np.arange(len(people[:20])), 3)].set_axis(draws.index)
            tally.look("GenRe.sample", schema, again, draws)


# ---- encoder, rules and cost -------------------------------------------------------------------


@reproducible(max_examples=150)
@given(case=cases())
def test_encoding_comes_back(case: Case) -> None:
    """X -> F -> Z -> F -> X gives the very table back, people beyond the training range too."""
    X, people = case.table(case.n_rows, 1), case.table(50, 2, beyond=0.3)
    encoder = TableEncoder(case.schema).fit(X)
    F, Z = encoder.features(people), encoder.encode(people)
    assert Z.shape == (50, encoder.width)
    assert np.isfinite(Z).all()
    assert np.array_equal(encoder.to_features(Z), F, equal_nan=True)
    assert np.array_equal(encoder.from_features(F), Z)
    pd.testing.assert_frame_equal(encoder.decode(Z, like=people), people, check_exact=True)
    # and without a row to lean on: the same values from Z alone
    alone = encoder.table(Z, like=X).set_axis(people.index)
    assert unchanged(encoder.features(alone), F).all()
    # legal rows stay as they are
    training = encoder.encode(X)
    legal = encoder.project(training)
    assert np.allclose(encoder.project(legal), legal, rtol=0, atol=1e-12)


@reproducible(max_examples=150)
@given(case=cases())
def test_rules_in_scaled_and_in_original_units_agree(case: Case) -> None:
    """`Rules` on F says of every cell what `broken_rules` says in the user's own units."""
    X, people = case.table(case.n_rows, 1), case.table(50, 2, beyond=0.3)
    X_plus = _mixed(case, people)
    encoder = TableEncoder(case.schema).fit(X)
    rules = RuleBook.of_schema(encoder)
    F, F_plus = encoder.features(people), encoder.features(X_plus)
    expected = broken_rules(case.schema, people, X_plus)
    found = rules.violations(F, F_plus)
    # matters of `project` and of what follows from a change, not of what may change into what
    del expected["decimals"], expected["follows"]
    for kind, cells in expected.items():
        present = ~np.isnan(F_plus) | np.isin(kind, ["immutable", "missing"])
        assert np.array_equal(found[kind] & present, cells.to_numpy()), kind
    any_broken = np.any([c.to_numpy().any(axis=1) for c in expected.values()], axis=0)
    assert np.array_equal(rules.feasible(F, F_plus), ~any_broken)
    assert rules.feasible(F, F).all()
    assert rules.feasible(F, rules.revert(F, F_plus)).all()


@reproducible(max_examples=150)
@given(case=cases())
def test_cost_is_symmetric_and_zero_only_where_nothing_changed(case: Case) -> None:
    X, people = case.table(case.n_rows, 1), case.table(50, 2, beyond=0.3)
    encoder = TableEncoder(case.schema).fit(X)
    cost = Cost(encoder)
    Z, Z_plus = encoder.encode(people), encoder.encode(_mixed(case, people))
    there, back = cost(Z, Z_plus), cost(Z_plus, Z)
    assert np.allclose(there, back, rtol=1e-12, atol=0)
    same = unchanged(encoder.to_features(Z), encoder.to_features(Z_plus)).all(axis=1)
    assert np.array_equal(there > 1e-9 * len(case.columns) * 7, ~same)
    assert (cost(Z, Z) == 0).all()
    as_torch = cost(torch.as_tensor(Z), torch.as_tensor(Z_plus)).numpy()
    assert np.allclose(there, as_torch, rtol=1e-12, atol=1e-12)
    block = cost.pairwise(torch.as_tensor(Z), torch.as_tensor(Z_plus)).numpy()
    assert np.allclose(np.diag(block), there, rtol=1e-9, atol=1e-9)
    # by hand: a changed category counts its weight, a number its weight times the scaled distance
    F, F_plus = encoder.to_features(Z), encoder.to_features(Z_plus)
    by_hand = np.zeros(len(F))
    for j, feature in enumerate(case.schema):
        gap = np.abs(F[:, j] - F_plus[:, j])
        if feature.is_category:
            gap = np.where(np.isnan(gap), np.nan, gap > 0)
        gone = np.isnan(F[:, j]).astype(int) + np.isnan(F_plus[:, j])
        by_hand += feature.cost_weight * np.where(gone == 0, np.nan_to_num(gap), gone == 1)
    assert np.allclose(there, by_hand, rtol=1e-9, atol=1e-9)


def _mixed(case: Case, people: pd.DataFrame) -> pd.DataFrame:
    """The same people with about half of their cells another person's."""
    others = case.table(len(people), 3, beyond=0.3).set_axis(people.index)
    take = np.random.default_rng([case.seed, 4]).random(people.shape) < 0.5
    return pd.DataFrame(
        {name: people[name].where(~take[:, j], others[name]) for j, name in enumerate(people)}
    ).astype(people.dtypes)
