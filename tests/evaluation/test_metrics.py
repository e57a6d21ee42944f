"""Metrics: each on people whose numbers are known, and each moved by what it depends on alone."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse.evaluation import metrics
from genrecourse.evaluation.examples import example_outcome, example_witnesses
from genrecourse.evaluation.gold import Witnesses
from genrecourse.evaluation.metrics import METRICS, SET_METRICS, Outcome, PlanSets
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.schema import Feature, Schema
from genrecourse.trust.neighbours import Neighbours

TRAINING = pd.DataFrame(
    {
        "age": [20, 60],
        "income": [0.0, 100.0],
        "job": ["cook", "nurse"],
        "gap": [0.0, np.nan],
    }
)
TRAINING = pd.concat(
    [TRAINING, pd.DataFrame({"age": [30], "income": [5.5], "job": ["pilot"], "gap": [10.0]})]
)
SCHEMA = (
    Schema.infer(TRAINING)
    .with_feature("age", direction="increase", max_step=10, cost_weight=2.0)
    .with_feature("job", role="immutable")
)
ENCODER = TableEncoder(SCHEMA).fit(TRAINING)
AGE, INCOME, COOK, NURSE, PILOT, GAP, NO_GAP = range(7)  # columns of Z


class FakeJudge:
    """Finds people valid who earn more than half, and normal where the job is a cook's."""

    def probability(self, Z: np.ndarray) -> np.ndarray:
        return Z[:, INCOME].clip(0, 1)

    def valid(self, Z: np.ndarray) -> np.ndarray:
        return self.probability(Z) > 0.5

    def inlier(self, Z: np.ndarray) -> np.ndarray:
        return Z[:, COOK] == 1.0


class FakeLof:
    def predict(self, Z: np.ndarray) -> np.ndarray:
        return np.where(Z[:, NURSE] == 1, 1, -1)


def fake_h(Z: np.ndarray) -> np.ndarray:
    """Accepts from 30 years on who earn 60, or have a gap of 5."""
    return (Z[:, AGE] >= 0.25) & ((Z[:, INCOME] >= 0.6) | (Z[:, GAP] >= 0.5))


def fake_witnesses() -> Witnesses:
    rows = Neighbours(ENCODER.encode(TRAINING), Cost(ENCODER))
    out_of_fold: Any = lambda Z: (1 - Z[:, INCOME], None)  # noqa: E731
    lof: Any = FakeLof()
    return Witnesses(
        retrained={
            "seed": lambda Z: Z[:, AGE] >= 0.5,
            "bootstrap": lambda Z: Z[:, GAP] >= 0.5,
            "architecture": lambda Z: Z[:, NO_GAP] == 1,
        },
        out_of_fold=out_of_fold,
        accepted=rows,
        lof=lof,
        training=rows,
        favourable=np.array([False, True, True]),
    )


def features(rows: list[Any]) -> np.ndarray:
    return ENCODER.features(pd.DataFrame(rows, columns=list(TRAINING)).astype({"gap": float}))


def outcome(before: list[Any], after: list[Any], **more: Any) -> Outcome:
    judge: Any = FakeJudge()
    return Outcome(features(before), features(after), fake_h, ENCODER, judge, **more)


PEOPLE = outcome(
    before=[
        (20, 0.0, "cook", 0.0),
        (20, 0.0, "cook", 0.0),
        (40, 30.0, "nurse", None),
        (60, 0.0, "cook", None),
        (50, 40.0, "pilot", 5.0),
    ],
    after=[
        (20, 0.0, "cook", 0.0),  # nothing
        (30, 60.0, "cook", 0.0),  # a good plan
        (40, 30.0, "nurse", 10.0),  # a missing value found
        (20, 100.0, "nurse", None),  # younger by 40 years, and another job
        (55, 40.0, "cook", None),  # another job and a value forgotten
    ],
    witnesses=fake_witnesses(),
    log_prob=np.array([-1.0, -2.0, -3.0, -4.0, -5.0]),
)
# to the three training rows: age counts twice, a job 1, and so does a gap that one of them lacks
DISTANCES = np.array(
    [
        [0.0, 2.0 + 1.0 + 1 + 1, 0.5 + 0.055 + 1 + 1],
        [0.5 + 0.6, 1.5 + 0.4 + 1 + 1, 0.545 + 1 + 1],
        [1.0 + 0.3 + 1 + 1, 1.0 + 0.7 + 0 + 1, 0.5 + 0.245 + 1 + 0],
        [0.0 + 1.0 + 1 + 1, 2.0, 0.5 + 0.945 + 1 + 1],
        [1.75 + 0.4 + 0 + 1, 0.25 + 0.6 + 1 + 0, 1.25 + 0.345 + 1 + 1],
    ]
)
EXPECTED: dict[str, Any] = {
    # age counts twice and spans 40 years; income spans 100; job and a missing value count 1
    "cost": [0.0, 2 * 0.25 + 0.6, 1.0, 2 * 1.0 + 1.0 + 1.0, 2 * 0.125 + 1.0 + 1.0],
    "val": [0.0, 1.0, 0.0, 1.0, 0.0],
    "lof": [1.0, 1.0, 0.0, 0.0, 1.0],
    "score": [1.0, 2.0 - 1.1 / 4, -1.0 / 4, 1.0 - 4.0 / 4, 1.0 - 2.25 / 4],
    "h_valid": [0.0, 1.0, 1.0, 0.0, 0.0],
    "changes": [0.0, 2.0, 1.0, 3.0, 3.0],
    "success": [0.0, 1.0, 1.0, 0.0, 0.0],
    # the fourth breaks direction and step of one feature, which is one feature
    "violations": [0.0, 0.0, 0.0, 2.0, 2.0],
    "violations_immutable": [0.0, 0.0, 0.0, 1.0, 1.0],
    "violations_direction": [0.0, 0.0, 0.0, 1.0, 0.0],
    "violations_range": [0.0] * 5,
    "violations_step": [0.0, 0.0, 0.0, 1.0, 0.0],
    "violations_missing": [0.0, 0.0, 0.0, 0.0, 1.0],
    "violations_category": [0.0] * 5,
    "soft_val": [0.0, 0.6, 0.3, 1.0, 0.4],
    "val_oof": [1.0, 0.0, 1.0, 0.0, 1.0],
    "y_nn": [2 / 3] * 5,  # of the only three rows
    "retrained_seed": [0.0, 0.0, 1.0, 0.0, 1.0],
    "retrained_bootstrap": [0.0, 0.0, 1.0, 0.0, 0.0],
    "retrained_architecture": [0.0, 0.0, 0.0, 1.0, 1.0],
    "noise": [0.0, 1.0, 0.0, 1.0, 0.0],  # all of them over four standard deviations from one half
    "lof_20": [0.0, 0.0, 1.0, 1.0, 0.0],
    "knn_distance": DISTANCES.mean(axis=1),
    "log_likelihood": [-1.0, -2.0, -3.0, -4.0, -5.0],
    "copies": [1.0, 0.0, 0.0, 0.0, 0.0],
    "nearest_row": DISTANCES.min(axis=1),
    "distinct": [1.0] * 5,
    "redundancy": [0.0, 0.0, 0.0, 3.0, 3.0],  # the last two are rejected all the same
}


@pytest.mark.parametrize("name", EXPECTED)
def test_known_answers(name: str) -> None:
    found = METRICS[name][0](PEOPLE)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, EXPECTED[name], rtol=0, atol=1e-12)


def test_every_metric_has_a_known_answer() -> None:
    assert set(METRICS) - set(EXPECTED) == {"h_noise"}  # below


LOWER = {"cost", "changes", "knn_distance", "copies", "nearest_row", "redundancy"}


def test_names_and_directions() -> None:
    for name, (function, direction) in (METRICS | SET_METRICS).items():
        is_lower = name in LOWER or name.startswith("violations")
        assert direction == ("lower" if is_lower else "higher")
        assert function is getattr(metrics, name)
        assert function.__doc__


def test_doing_better_is_better() -> None:
    """The direction of each metric, seen on a good plan and a bad one."""
    good = outcome([(20, 0.0, "cook", 0.0)], [(30, 60.0, "cook", 0.0)])
    bad = outcome([(40, 0.0, "cook", 0.0)], [(20, 40.0, "nurse", 5.0)])
    differ = ["cost", "val", "lof", "score", "h_valid", "changes", "success", "violations"]
    for name in [*differ, "violations_immutable", "violations_direction", "soft_val", "redundancy"]:
        function, direction = METRICS[name]
        sign = 1 if direction == "higher" else -1
        assert sign * function(good)[0] > sign * function(bad)[0], name


def test_before_and_after_are_rows_of_z() -> None:
    np.testing.assert_array_equal(PEOPLE.before, PEOPLE.encoder.from_features(PEOPLE.F))
    np.testing.assert_array_equal(PEOPLE.after, PEOPLE.encoder.from_features(PEOPLE.F_plus))


# ---- who is left out -----------------------------------------------------------------------------

AMOUNTS = {"cost", "changes", "knn_distance", "log_likelihood", "nearest_row", "redundancy"}


@pytest.mark.parametrize("name", METRICS)
def test_a_person_without_an_answer_counts_as_failed(name: str) -> None:
    """0 in a share, which keeps its denominator; no number in an amount; the others' as before."""
    F_plus = PEOPLE.F_plus.copy()
    F_plus[1] = np.nan  # the good plan
    found, before = (METRICS[name][0](o) for o in (replace(PEOPLE, F_plus=F_plus), PEOPLE))
    amount = name in AMOUNTS or name.startswith("violations")
    assert np.isnan(found[1]) if amount else found[1] == 0.0
    others = [0, 2, 3, 4]
    np.testing.assert_array_equal(found[others], before[others])
    assert not np.isnan(before).any()


def test_nobody_is_accepted_for_an_x_plus_that_is_not_there() -> None:
    """Even if h accepts x itself, which stands where x_plus cannot be read."""
    F_plus = PEOPLE.F_plus.copy()
    F_plus[1] = np.nan
    found = replace(PEOPLE, F_plus=F_plus, accepts=lambda Z: np.ones(len(Z), dtype=bool))
    for name in ("h_valid", "success"):
        assert METRICS[name][0](found)[:3].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("feature", "value", "kind"), [("job", 7.0, "category"), ("age", np.nan, "missing")]
)
def test_an_x_plus_that_cannot_be_read_counts_as_failed(
    feature: str, value: float, kind: str
) -> None:
    """A level that does not exist, or nothing where there is always something: a broken rule."""
    F_plus = PEOPLE.F_plus.copy()
    F_plus[1, SCHEMA.names.index(feature)] = value
    spoilt = replace(PEOPLE, F_plus=F_plus)
    assert METRICS[f"violations_{kind}"][0](spoilt)[1] == 1
    assert METRICS["changes"][0](spoilt)[1] == {"job": 3, "age": 2}[feature]
    assert all(METRICS[n][0](spoilt)[1] == 0 for n in ("val", "lof", "h_valid", "success", "score"))
    assert np.isnan(METRICS["cost"][0](spoilt)[1])


def test_what_was_not_asked_is_nan_throughout() -> None:
    bare = replace(PEOPLE, witnesses=None, log_prob=None)
    absent = {name for name, (metric, _) in METRICS.items() if np.isnan(metric(bare)).all()}
    assert absent == {
        "val_oof",
        "y_nn",
        "retrained_seed",
        "retrained_bootstrap",
        "retrained_architecture",
        "lof_20",
        "knn_distance",
        "log_likelihood",
        "copies",
        "nearest_row",
    }


# ---- one at a time -------------------------------------------------------------------------------


def test_redundancy_undoes_one_change_at_a_time() -> None:
    start = (30, 0.0, "cook", 0.0)
    found = outcome(
        [start] * 4,
        [
            (40, 60.0, "cook", 0.0),  # the years were not needed
            (40, 60.0, "cook", 10.0),  # nor income or gap, as long as the other stays
            (30, 60.0, "cook", 0.0),
            (30, 50.0, "cook", 0.0),  # not accepted: nothing gained, nothing to lose
        ],
    )
    assert METRICS["redundancy"][0](found).tolist() == [1, 3, 0, 1]


def test_success_needs_h_and_the_rules() -> None:
    found = outcome(
        [(30, 0.0, "cook", 0.0)] * 3,
        [
            (30, 60.0, "cook", 0.0),
            (30, 60.0, "nurse", 0.0),  # accepted with another job, which is closed to them
            (30, 50.0, "cook", 0.0),
        ],
    )
    assert METRICS["success"][0](found).tolist() == [1, 0, 0]


def test_a_number_out_of_its_range_breaks_a_rule() -> None:
    found = outcome([(30, 50.0, "cook", 0.0)] * 3, [(30, 101, "cook", 0)] * 3)
    F = found.F.copy()
    F[1] = found.F_plus[1]  # x has it already, which is nobody's fault
    F_plus = found.F_plus.copy()
    F_plus[2, [1, 3]] = -0.01
    found = replace(found, F=F, F_plus=F_plus)
    assert METRICS["violations_range"][0](found).tolist() == [1, 0, 2]


def test_distinct_adds_up_to_the_number_of_distinct_x_plus() -> None:
    same = (30, 60.0, "cook", 0.0)
    found = outcome([(20, 0.0, "cook", 0.0)] * 5, [same, same, (30, 61.0, "cook", 0.0), same, same])
    shifted = found.F_plus.copy()
    shifted[3, 1] += 1e-12  # the rounding of one method or another makes no new row
    shifted[4] = np.nan  # told nothing
    found = replace(found, F_plus=shifted)
    np.testing.assert_allclose(METRICS["distinct"][0](found), [1 / 3, 1 / 3, 1, 1 / 3, 0])
    assert METRICS["distinct"][0](found).sum() == pytest.approx(2)


def test_each_distinct_row_is_judged_once() -> None:
    asked = []

    class Counting(FakeJudge):
        def probability(self, Z: np.ndarray) -> np.ndarray:
            asked.append(len(Z))
            return super().probability(Z)

    judge: Any = Counting()
    many = np.tile(np.arange(5), 40)
    crowd = replace(PEOPLE, F=PEOPLE.F[many], F_plus=PEOPLE.F_plus[many], judge=judge)
    np.testing.assert_array_equal(METRICS["val"][0](crowd), np.tile(EXPECTED["val"], 40))
    np.testing.assert_array_equal(METRICS["score"][0](crowd), np.tile(EXPECTED["score"], 40))
    assert asked == [5]


# ---- noise ---------------------------------------------------------------------------------------


def test_noise_moves_numbers_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    F = np.stack(
        [rng.random(500), rng.random(500), rng.integers(0, 3, 500), rng.random(500)], axis=1
    )
    F_plus = F.copy()
    F_plus[:250, 3] = np.nan
    found = replace(PEOPLE, F=F, F_plus=F_plus)
    moved = (found.noisy - np.repeat(found.after, 5, axis=0)).reshape(500, 5, 7)
    assert not moved[:, :, [COOK, NURSE, PILOT, NO_GAP]].any()
    assert not moved[:250, :, GAP].any()  # there is no gap to be noisy
    for shift in (moved[:, :, AGE], moved[:, :, INCOME], moved[250:, :, GAP]):
        assert shift.mean() == pytest.approx(0, abs=0.002)
        assert shift.std() == pytest.approx(0.02, rel=0.05)
    parts = moved[250:, :, [AGE, INCOME, GAP]].reshape(250, 15)  # no two of them alike
    assert np.abs(np.corrcoef(parts.T) - np.eye(15)).max() < 0.3
    # another x_plus of the same person meets the same noise
    other = replace(found, F_plus=np.clip(F_plus + 1.0, None, 1.0))
    again = (other.noisy - np.repeat(other.after, 5, axis=0)).reshape(500, 5, 7)
    np.testing.assert_allclose(again[:, :, :2], moved[:, :, :2], atol=1e-12)


def test_noise_is_the_share_of_noisy_copies() -> None:
    """People at the edge of judge and of h: each answer counted by hand."""
    n = 40
    edge = outcome([(40 + i / 4, 0.0, "cook", 0.0) for i in range(n)], [(40, 50, "cook", 5)] * n)
    copies = edge.noisy.reshape(n, 5, 7)
    by_hand = {
        "noise": [sum(row[INCOME] > 0.5 for row in person) / 5 for person in copies],
        "h_noise": [sum(row[GAP] >= 0.5 for row in person) / 5 for person in copies],
    }
    for name, expected in by_hand.items():
        found = METRICS[name][0](edge)
        np.testing.assert_allclose(found, expected)
        assert 0.3 < found.mean() < 0.7
        assert found.std() > 0.1


# ---- neighbours ----------------------------------------------------------------------------------


def on_a_line(*places: float) -> tuple[np.ndarray, Cost]:
    schema = Schema(features=(Feature(name="x", kind="number", range=(0, 1)),))
    encoder = TableEncoder(schema).fit(pd.DataFrame({"x": [0.0, 1.0]}))
    return np.array(places)[:, None], Cost(encoder)


def test_y_nn_on_a_line() -> None:
    Z, cost = on_a_line(0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0)
    rows = Neighbours(Z, cost)
    favourable = np.array([0, 1, 1, 0, 1, 1, 1, 1], dtype=bool)
    # the five around 0.22 are 0 to 0.4, those around 0.9 are 1 and 0.3 to 0.6
    np.testing.assert_allclose(rows.share(np.array([[0.22], [0.9]]), favourable, 5), [3 / 5, 4 / 5])
    np.testing.assert_allclose(rows.share(np.array([[0.22]]), favourable, 100), [6 / 8])


def test_the_five_nearest_rows_are_asked() -> None:
    outcome, known = example_outcome(), example_witnesses()
    outcome = replace(outcome, witnesses=replace(known, accepted=known.training))
    rows, cost = known.training.Z, Cost(outcome.encoder)
    far = np.sort(cost(outcome.after[:2, None], rows[None]), axis=1)
    assert far.shape == (2, 6)
    found = METRICS["knn_distance"][0](outcome)[:2]
    np.testing.assert_allclose(found, far[:, :5].mean(axis=1))
    assert METRICS["y_nn"][0](outcome)[:2].tolist() == [3 / 5, 3 / 5]


def test_rows_equally_far_share_the_places_that_are_left() -> None:
    Z, cost = on_a_line(0.3, 0.3, 0.3, 0.5, 0.5, 0.1, 0.1, 0.9)
    favourable = np.array([1, 1, 0, 1, 0, 0, 0, 1], dtype=bool)
    for order in (np.arange(8), np.arange(8)[::-1]):
        found = Neighbours(Z[order], cost).share(np.array([[0.3]]), favourable[order], 5)
        # three at 0.3, two of them favourable; the other two places are a quarter each of four
        np.testing.assert_allclose(found, [(2 + 2 * 1 / 4) / 5])


def test_distances_on_a_line() -> None:
    Z, cost = on_a_line(0, 0.1, 0.2, 0.3, 0.4, 0.8)
    rows = Neighbours(Z, cost)
    people = np.array([[0.4], [1.0], [0.4 + 1e-12], [0.4 + 1e-6]])
    np.testing.assert_allclose(rows.nearest(people)[0], [0, 0.2, 0, 0], atol=2e-6)
    assert rows.nearest(people)[1].tolist() == [4, 5, 4, 4]
    assert rows.holds(people).tolist() == [True, False, True, False]
    by_hand = [(0 + 0.1 + 0.2 + 0.3 + 0.4) / 5, (0.2 + 0.6 + 0.7 + 0.8 + 0.9) / 5]
    np.testing.assert_allclose(rows.mean_distance(people[:2], 5), by_hand)
    assert rows.nearest(people[:0])[0].shape == (0,)


def test_neighbours_equal_plain_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """By blocks of a few rows, with levels and missing values: as the cost itself says."""
    monkeypatch.setattr("genrecourse.trust.neighbours.BLOCK_ENTRIES", 200)
    rng = np.random.default_rng(1)

    def rows(n: int) -> np.ndarray:
        F = np.stack([rng.random(n), rng.random(n), rng.integers(0, 3, n), rng.random(n)], axis=1)
        F[rng.random(n) < 0.3, 3] = np.nan
        return ENCODER.from_features(F)

    table, people, flags = rows(60), rows(17), rng.random(60) < 0.5
    found = Neighbours(table, Cost(ENCODER))
    distance = np.array([[Cost(ENCODER)(p, t) for t in table] for p in people])
    order = np.argsort(distance, axis=1)[:, :5]
    np.testing.assert_allclose(found.nearest(people)[0], distance.min(axis=1))
    np.testing.assert_array_equal(found.nearest(people)[1], distance.argmin(axis=1))
    nearest = np.take_along_axis(distance, order, axis=1)
    np.testing.assert_allclose(found.mean_distance(people, 5), nearest.mean(axis=1))
    np.testing.assert_allclose(found.share(people, flags, 5), flags[order].mean(axis=1))


# ---- each argument matters, and no other ---------------------------------------------------------

RULES = {"F", "F_plus", "encoder"}
DEPENDS: dict[str, set[str]] = {
    "cost": RULES,
    "val": {"F_plus", "judge"},
    "lof": {"F_plus", "judge"},
    "score": RULES | {"judge"},
    "h_valid": {"F_plus", "accepts"},
    "changes": {"F", "F_plus"},
    "success": RULES | {"accepts"},
    "violations": RULES,
    "violations_immutable": RULES,
    "violations_direction": RULES,
    "violations_range": RULES,
    "violations_step": RULES,
    "violations_missing": {"F", "F_plus"},
    "violations_category": {"F_plus"},
    "soft_val": {"F_plus", "judge"},
    "val_oof": {"F_plus", "witnesses.out_of_fold"},
    "y_nn": {"F_plus", "witnesses.training", "witnesses.favourable"},
    "retrained_seed": {"F_plus", "witnesses.retrained.seed"},
    "retrained_bootstrap": {"F_plus", "witnesses.retrained.bootstrap"},
    "retrained_architecture": {"F_plus", "witnesses.retrained.architecture"},
    "noise": {"F", "F_plus", "judge"},
    "h_noise": {"F", "F_plus", "accepts"},
    "lof_20": {"F_plus", "witnesses.lof"},
    "knn_distance": {"F_plus", "witnesses.accepted"},
    "log_likelihood": {"F_plus", "log_prob"},
    "copies": {"F_plus", "witnesses.training"},
    "nearest_row": {"F_plus", "witnesses.training"},
    "distinct": {"F_plus"},
    "redundancy": {"F", "F_plus", "accepts"},
}


def crowd() -> tuple[Outcome, np.ndarray]:
    """Many random people and plans, a few of them unreadable; and other values for both."""
    rng = np.random.default_rng(2)

    def rows(n: int) -> np.ndarray:
        F = np.stack([rng.random(n), rng.random(n), rng.integers(0, 3, n), rng.random(n)], axis=1)
        F[rng.random(n) < 0.2, 3] = np.nan
        return F

    schema = SCHEMA.with_feature("income", range=(10, 90))
    F, other = rows(300), rows(300)
    F_plus = np.where(rng.random(F.shape) < 0.4, F, rows(300))
    F_plus[250:] = F_plus[0]
    F_plus[10:15, 2] = -1
    rows_of_z = ENCODER.from_features(F_plus[100:250])
    witnesses = replace(
        fake_witnesses(),
        training=Neighbours(rows_of_z, Cost(ENCODER)),
        favourable=rng.random(150) < 0.5,
    )
    judge: Any = FakeJudge()
    encoder = TableEncoder(schema).fit(TRAINING)
    found = Outcome(F, F_plus, fake_h, encoder, judge, witnesses, log_prob=rng.random(300))
    return found, other


def changed(found: Outcome, other: np.ndarray, field: str) -> Outcome:
    """The outcome with one thing different."""

    class OtherJudge(FakeJudge):
        def probability(self, Z: np.ndarray) -> np.ndarray:
            return 1 - super().probability(Z)

        def inlier(self, Z: np.ndarray) -> np.ndarray:
            return Z[:, PILOT] == 1.0

    if field.startswith("witnesses."):
        return replace(found, witnesses=changed_witnesses(found, field.split(".")[1:]))
    schema = (
        found.encoder.schema.with_feature("age", direction="decrease", max_step=5, cost_weight=1.0)
        .with_feature("income", range=(20, 80), role="immutable")
        .with_feature("job", role="mutable")
    )
    F = np.where(np.arange(300)[:, None] % 2, other, found.F)
    F_plus = np.where(np.arange(300)[:, None] % 2, other, found.F_plus)
    F_plus[20:25, 2] = -1
    values: dict[str, Any] = {
        "F": F,
        "F_plus": F_plus,
        "accepts": lambda Z: ~fake_h(Z),
        "encoder": TableEncoder(schema).fit(TRAINING),
        "judge": OtherJudge(),
        "log_prob": found.F_plus[:, 0],
    }
    return replace(found, **{field: values[field]})


def changed_witnesses(found: Outcome, path: list[str]) -> Witnesses:
    witnesses = found.witnesses
    assert witnesses is not None
    if path[0] == "retrained":
        old = witnesses.retrained[path[1]]
        return replace(
            witnesses, retrained={**witnesses.retrained, path[1]: lambda Z: 1 - 1.0 * old(Z)}
        )
    lof: Any = FakeLof()
    lof.predict = lambda Z: np.where(Z[:, PILOT] == 1, 1, -1)
    values: dict[str, Any] = {
        "out_of_fold": lambda Z: (Z[:, INCOME], None),
        "accepted": Neighbours(witnesses.accepted.Z[:2], Cost(ENCODER)),
        "lof": lof,
        "training": Neighbours(witnesses.training.Z[::-1].copy()[:140] + 0.001, Cost(ENCODER)),
        "favourable": ~witnesses.favourable,
    }
    if path[0] == "training":
        witnesses = replace(witnesses, favourable=witnesses.favourable[:140])
    return replace(witnesses, **{path[0]: values[path[0]]})


FIELDS = sorted(set.union(*DEPENDS.values()))


@pytest.mark.parametrize("field", FIELDS)
def test_a_metric_moves_with_what_it_depends_on_and_nothing_else(field: str) -> None:
    found, other = crowd()
    perturbed = changed(found, other, field)
    for name, (metric, _) in METRICS.items():
        before, after = metric(found), metric(perturbed)
        moved = not np.array_equal(before, after, equal_nan=True)
        assert moved == (field in DEPENDS[name]), name


def test_every_field_is_perturbed() -> None:
    heads = {field.split(".")[0] for field in FIELDS}
    assert heads == {field.name for field in fields(Outcome)}
    asked = {field.split(".")[1] for field in FIELDS if field.startswith("witnesses.")}
    assert asked == {field.name for field in fields(Witnesses)}


# ---- sets of plans -------------------------------------------------------------------------------


def plan_sets() -> PlanSets:
    start = (20, 0.0, "cook", 0.0)
    earn, older, both = (20, 60.0, "cook", 0.0), (30, 0.0, "cook", 0.0), (30, 60.0, "cook", 0.0)
    more = (20, 80.0, "cook", 0.0)
    plans = [
        [earn, older, both],  # three ways
        [earn, more, earn],  # two, of one kind; the first is said twice
        [earn, both, older],  # of which one holds
        [earn, older, both],  # of which none holds
        [earn, earn, older],  # of which the first does not hold, whoever says it again
    ]
    F_plus = np.stack([features(list(rows)) for rows in plans])
    F_plus[2, 1] = np.nan  # fewer plans than places
    valid = np.array([[1, 1, 1], [1, 1, 1], [1, 0, 0], [0, 0, 0], [0, 1, 1]], dtype=bool)
    return PlanSets(features([start] * 5), F_plus, valid, ENCODER)


SETS_EXPECTED = {
    "set_size": [3.0, 2.0, 1.0, 0.0, 2.0],
    # earn to older: 0.6 + 2 * 0.25; earn to both: 2 * 0.25; older to both: 0.6
    "pairwise_cost": [(1.1 + 0.5 + 0.6) / 3, 0.2, 0.0, 0.0, 1.1],
    "distinct_changes": [3.0, 1.0, 1.0, 0.0, 2.0],
}


@pytest.mark.parametrize("name", SET_METRICS)
def test_known_answers_of_sets(name: str) -> None:
    found = SET_METRICS[name][0](plan_sets())
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, SETS_EXPECTED[name], atol=1e-12)


@pytest.mark.parametrize(
    ("field", "moves"),
    [
        ("F", {"distinct_changes"}),
        ("F_plus", {"set_size", "pairwise_cost", "distinct_changes"}),
        ("valid", {"set_size", "pairwise_cost", "distinct_changes"}),
        ("encoder", {"pairwise_cost"}),
    ],
)
def test_a_set_metric_moves_with_what_it_depends_on(field: str, moves: set[str]) -> None:
    sets = plan_sets()
    values: dict[str, Any] = {
        "F": features([(20, 60.0, "cook", 0.0)] * 5),
        "F_plus": sets.F_plus[:, [0, 0, 2]],
        "valid": sets.valid & np.array([True, False, True]),
        "encoder": TableEncoder(SCHEMA.with_feature("age", cost_weight=3.0)).fit(TRAINING),
    }
    other = replace(sets, **{field: values[field]})
    moved = {n for n, (f, _) in SET_METRICS.items() if not np.array_equal(f(sets), f(other))}
    assert moved == moves


# ---- the page ------------------------------------------------------------------------------------


def test_the_page_lists_every_metric_with_its_direction() -> None:
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    listed: dict[str, str] = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            listed |= dict.fromkeys(re.findall(r"`(\w+)`", cells[0]), cells[1])
    arrows = {"lower": "↓", "higher": "↑"}
    assert listed == {name: arrows[d] for name, (_, d) in (METRICS | SET_METRICS).items()}
