"""Relations that a schema keeps: in every plan, of every method, also from a file, and with a
user's own model that reads its own columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import genrecourse
from genrecourse import METHODS, Classifier, GenRe, NearestNeighbour, Policy, Schema, UserError
from genrecourse.rules.book import RuleBook
from genrecourse.rules.relations import Possible, parse_relation
from genrecourse.table.discovery import discover_relations, keep_relations
from genrecourse.table.encoding import TableEncoder

RNG = np.random.default_rng(0)
N = 300


def people() -> pd.DataFrame:
    """mean <= worst, one colour each, and total = a + b; everything is needed by `score`."""
    mean, worst = np.sort(RNG.random((2, N)), axis=0)
    colour = RNG.integers(0, 3, N)
    a, b = RNG.integers(0, 50, (2, N))
    flags = {f"colour_{name}": (colour == k) * 1 for k, name in enumerate(("red", "green", "blue"))}
    return pd.DataFrame({"mean": mean, "worst": worst, **flags, "a": a, "b": b, "total": a + b})


def score(X: pd.DataFrame) -> np.ndarray:
    assert list(X) == list(TABLE)  # the user's own columns, in their order
    merit = 2 * X["mean"] - X["worst"] + X["colour_blue"] - X["colour_red"] + X["total"] / 100
    return (1 / (1 + np.exp(-3 * (merit - 1.2)))).to_numpy(dtype=float)


TABLE = people()
FOUND = discover_relations(TABLE)
KEPT = keep_relations(Schema.infer(TABLE), FOUND)
ASKING = TABLE[score(TABLE) <= 0.5].head(20)


def broken(X: pd.DataFrame, X_plus: pd.DataFrame) -> int:
    """Counted on the user's cells."""
    ones = X_plus.filter(like="colour_").sum(axis=1)
    off = X_plus["total"] != X_plus["a"] + X_plus["b"]
    return int(((X_plus["mean"] > X_plus["worst"]) | (ones != 1) | off).sum())


def made(name: str, schema: Schema) -> Any:
    method = METHODS[name]
    quick = GenRe._test_params() if name == "genre" else {}
    return method(Classifier(score), schema, **quick).fit(TABLE, score(TABLE) > 0.5)


def test_it_is_found() -> None:
    assert {each.kind for each in FOUND} >= {"order", "sum", "one-hot"}


@pytest.mark.parametrize("name", ["genre", "nnr", "growing_spheres"])
def test_every_method_keeps_them(name: str) -> None:
    method = made(name, KEPT)
    X_plus = method.recourse(ASKING)
    assert broken(ASKING, X_plus) == 0
    plans = method.plans(ASKING, n=3)
    shown = plans.x_plus()
    assert len(shown) > 0
    assert broken(ASKING, shown) == 0
    assert (score(shown) > 0.5).all()


def test_without_them_plans_break_them() -> None:
    shown = made("growing_spheres", Schema.infer(TABLE)).plans(ASKING).x_plus()
    assert broken(ASKING, shown) > 0


def test_a_group_is_one_change_and_a_total_follows() -> None:
    plans = made("nnr", KEPT).plans(ASKING, n=3)
    every = [plan for person in plans for plan in person.every]
    changes = [change for plan in every for change in plan.changes]
    assert {change.feature.name for change in changes} <= {"mean", "worst", "colour", "a", "b"}
    colours = [change.to_text() for change in changes if change.feature.name == "colour"]
    assert any(text.startswith("colour: red → blue") for text in colours), colours
    assert any(plan.consequences for plan in every)


def test_a_saved_model_keeps_them(tmp_path: Path) -> None:
    method = made("nnr", KEPT)
    method.save(tmp_path / "model")
    loaded = genrecourse.load(tmp_path / "model", classifier=score)
    assert loaded.schema_ == KEPT
    pd.testing.assert_frame_equal(loaded.recourse(ASKING), method.recourse(ASKING))
    rules = {"lock": ["colour"]}
    shown = loaded.plans(ASKING, rules=rules).x_plus()
    assert broken(ASKING, shown) == 0


def test_who_breaks_one_already_still_gets_a_plan() -> None:
    odd = ASKING.assign(mean=ASKING["worst"] + 0.01)
    odd = odd[score(odd) <= 0.5]
    assert len(odd) > 0
    method = made("nnr", KEPT)
    plans = method.plans(odd)
    assert all(plan.status == "ok" for plan in plans)
    shown = plans.x_plus()
    touched = (shown["mean"] != odd["mean"]) | (shown["worst"] != odd["worst"])
    assert not (touched & (shown["mean"] > shown["worst"])).any()
    # also if they cannot change what breaks it
    shown = method.plans(odd, rules={"lock": ["mean", "worst"]}).x_plus()
    assert len(shown) > 0
    assert (shown["mean"] > shown["worst"]).all()


def test_a_relation_on_a_protected_feature_is_not_in_force() -> None:
    policy = Policy.of(features={"mean": {"role": "protected"}})
    schema = policy.schema(TABLE, KEPT)
    assert schema.relations == KEPT.relations
    assert RuleBook.of_schema(TableEncoder(schema).fit(TABLE)).relations == ()


def test_unlisted_features_may_still_be_computed() -> None:
    policy = Policy.of(unlisted="immutable", features={"a": {"role": "mutable"}})
    schema = policy.schema(TABLE, KEPT)
    assert (schema["total"].role, schema["b"].role) == ("derived", "immutable")


def test_a_relation_that_cannot_be_read_is_one_sentence() -> None:
    schema = KEPT.with_relations(["mean <= wurst"])
    with pytest.raises(UserError, match=r"the rule 'mean <= wurst'.*'wurst' is neither a number"):
        made("nnr", schema)


# ---- missing together ----------------------------------------------------------------------------

GAPS = pd.DataFrame({"rent": [1.0, np.nan, 3.0], "city": ["x", None, "y"]})


@pytest.mark.parametrize(
    ("rent", "city", "expected"),
    [
        (np.nan, np.nan, 1),
        (np.nan, 0.0, -1),
        (0.5, np.nan, 1),
        (0.5, 0.0, 1),
    ],
)
def test_is_missing(rent: float, city: float, expected: int) -> None:
    encoder = TableEncoder(Schema.infer(GAPS)).fit(GAPS)
    relation = parse_relation("if rent is missing then city is missing", encoder)
    assert relation({0: Possible.known(rent), 1: Possible.known(city)}) == expected
    turned = parse_relation("rent is not missing or city is missing", encoder)
    assert turned({0: Possible.known(rent), 1: Possible.known(city)}) == expected


def test_is_missing_of_what_is_open() -> None:
    encoder = TableEncoder(Schema.infer(GAPS)).fit(GAPS)
    number, category = (parse_relation(f"{name} is missing", encoder) for name in GAPS)
    assert number({0: Possible(-np.inf, np.inf)}) == 0
    assert number({0: Possible(0.1, 0.9)}) == -1
    for levels, expected in (([1, 0, 1], 0), ([1, 1, 0], -1), ([0, 0, 1], 1)):
        open_ = Possible(0.0, 1.0, np.array(levels, dtype=bool))
        assert category({1: open_}) == expected
    with pytest.raises(UserError, match="expected 'missing' after 'rent is'"):
        parse_relation("rent is gone", encoder)


def test_a_plan_gives_both_or_neither() -> None:
    n = 200
    gone = RNG.random(n) < 0.4
    X = pd.DataFrame(
        {
            "rent": np.where(gone, np.nan, RNG.integers(1, 9, n)),
            "lease": np.where(gone, np.nan, RNG.integers(1, 9, n)),
            "age": RNG.integers(20, 60, n),
        }
    )
    schema = keep_relations(Schema.infer(X, immutable=["age"]), discover_relations(X))
    assert len(schema.relations) == 2

    def h(table: pd.DataFrame) -> np.ndarray:
        return (table["rent"].fillna(0) >= 5).to_numpy(dtype=float)

    asking = X[X["rent"].isna()].head(10)
    shown = NearestNeighbour(h, schema).fit(X).plans(asking).x_plus()
    assert len(shown) == len(asking)
    assert (shown["rent"].isna() == shown["lease"].isna()).all()
