"""The audit's numbers are those of a plain loop, its intervals those of known distributions, and it
calls a difference only where there is one."""

from __future__ import annotations

import base64
import json
import re
import warnings
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from scipy.stats import t as student

from genrecourse import Schema, UserError, load
from genrecourse.auditing import Audit, audit
from genrecourse.auditing.discretion import find_hidden
from genrecourse.auditing.groups import Group, find_groups
from genrecourse.auditing.measures import METRICS, Measuring
from genrecourse.auditing.resampling import Bootstrap, difference, interval
from genrecourse.auditing.result import COLUMNS, LEARNED, NO_CAUSE, _differences, written
from genrecourse.evaluation.checks import Example, example_score, make_example
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.planning.plans import Plan
from genrecourse.reports.plots import short
from genrecourse.table.encoding import Array
from genrecourse.table.noise import NOISE_SCALE, KeyedNoise
from genrecourse.trust.imprecise import N_NOISE, NOISE_SEED

SCRIPT = "<script>alert('x')</script>"


# ---- a toy with known answers -----------------------------------------------------------------


class ToSixty(Method):
    """Raises the income to 60, and leaves everything else."""

    def _fit(self, rows: TrainingRows) -> None:
        pass

    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        F = self.problem_.encoder.to_features(Z)
        F[:, 0] = (60.0 - self.problem_.encoder.blocks[0].low) / self.problem_.encoder.blocks[
            0
        ].span
        return self.problem_.encoder.from_features(F)


def accepts(X: pd.DataFrame) -> np.ndarray:
    """Accepted above an income of 50, unless the home is a tent."""
    return np.where((X["income"] > 50) & (X["home"] != "tent"), 0.9, 0.1)


def town(n: int = 240, seed: int = 0) -> pd.DataFrame:
    """Income from 0 to 100: "a" has 20 or 90, "b" has 40 or 90; nobody may leave a tent. The
    column `side` is not a feature; `coin` has nothing to do with anything."""
    rng = np.random.default_rng(seed)
    side = np.where(np.arange(n) % 2 == 0, "a", "b")
    poor = np.arange(n) % 6 < 4  # two thirds of either side
    income = np.where(poor, np.where(side == "a", 20.0, 40.0), 90.0)
    income = income + rng.uniform(-5, 5, n).round(1)
    income[:2] = 0.0, 100.0
    home = np.where(rng.random(n) < 0.15, "tent", "house")
    coin = rng.choice(["heads", "tails"], n)
    table = pd.DataFrame({"income": income, "home": home, "side": side, "coin": coin})
    return table.set_axis([f"p{i}" for i in range(n)])


@pytest.fixture(scope="module")
def toy() -> Method:
    X = town()[["income", "home"]]
    return ToSixty(accepts, Schema.infer(X, immutable=["home"])).fit(X)


@pytest.fixture(scope="module")
def found(toy: Method) -> Audit:
    return audit(toy, town(), ["side", "coin"])


def test_the_toy_has_the_answers_it_must_have(found: Audit) -> None:
    table = town()
    for side in ("a", "b"):
        of = table[table["side"] == side]
        rejected = of[(of["income"] <= 50) | (of["home"] == "tent")]
        helped = rejected[rejected["home"] == "house"]
        expected = {
            "rejected": len(rejected) / len(of),
            "with_plan": len(helped) / len(rejected),
            "cost": ((60 - helped["income"]) / 100).mean(),
            "changes": 1.0,
            "valid": 1.0,
            "change: income": 1.0,
        }
        for metric, value in expected.items():
            number = found.number(f"side = {side}", metric)
            assert number.value == pytest.approx(value), metric
            assert number.low <= number.value <= number.high
    assert found.number("everyone", "cost").n == int(
        ((table["income"] <= 50) & (table["home"] == "house")).sum()
    )
    # nothing to ask: the toy has neither a verifier nor rows
    assert set(found.absent) == {"likely", "robust", "training_row"}
    assert found.reasons == {"rules-block": int((table["home"] == "tent").sum())}


def test_a_real_difference_is_called_and_no_other(found: Audit) -> None:
    """Sides differ in cost, so their combinations with the coin may as well; nothing else does."""
    called = found.called[0]
    assert (called.group, called.metric) == ("side = a", "cost")
    assert {each.metric for each in found.called} == {"cost"}
    assert all("side = " in each.group for each in found.called)
    assert called.difference == pytest.approx(0.2, abs=0.02)
    said = found.sentence(called)
    assert said.startswith("People with side = a have plans that cost more than everyone else")
    assert "because" not in found.to_text()
    assert NO_CAUSE in found.to_text()


def test_how_many_a_few_are_may_follow_and_nothing_says_otherwise(toy: Method) -> None:
    """Six of the 60 on the islet are turned down, which the share and n above say; what is asked of
    them is kept back, and no text promises more."""
    table = town().assign(home="house", income=20.0)
    table["place"] = np.where(np.arange(240) < 60, "islet", "shore")
    table.loc[table.index[6:60], "income"] = 90.0
    done = audit(toy, table, "place")
    down = done.number("place = islet", "rejected")
    assert (down.value * (down.n or 0), down.n) == (pytest.approx(6), 60)
    assert {done.number(f"place = {p}", "cost").n for p in ("islet", "shore")} == {None}
    for said in (done.to_text(), done.to_html()):
        assert "nor how many they are" not in said
        assert "The size of a small group is not secret" in said


def test_where_nothing_is_called_it_is_said_what_that_means(toy: Method) -> None:
    (said,) = audit(toy, town().assign(income=20.0, home="house"), "coin").findings
    assert said.endswith("a small difference shows only in a larger table.")


def test_each_pair_is_compared_once_and_all_are_counted(found: Audit) -> None:
    """side and coin have two values each; of four combinations each is held against the rest.

    Five metrics are compared here (noise among them): rejected, with_plan, cost, changes, noise."""
    assert len(found.groups) == 1 + 2 + 2 + 4
    compared = [(each.group, each.metric) for each in found.differences]
    assert len(compared) == len(set(compared)) == (1 + 1 + 4) * 5
    assert "side = b" not in {group for group, _ in compared}
    assert f"{len(compared)} comparisons" in found.how_called
    assert f"{1 - 0.05 / len(compared):.3%}" in found.how_called


def test_people_whom_the_model_learned_from_are_recognised(toy: Method) -> None:
    done, held_out = (audit(toy, town(seed=seed), "side") for seed in (0, 1))
    for said in (done.to_text(), done.to_html(), *json.loads(done.to_json())["remarks"]):
        assert LEARNED in said
    assert LEARNED not in held_out.to_text() + held_out.to_html() + held_out.to_json()


def test_a_stored_model_still_knows_whom_it_learned_from(
    nearest: NearestNeighbour, people: pd.DataFrame, tmp_path: Path
) -> None:
    nearest.save(tmp_path / "model")
    again = load(tmp_path / "model", example_score)
    X = people[again.schema_.names]
    measuring = Measuring("nnr", again.problem_, again.plans, again.assess)
    assert measuring.learned_from(X)
    assert not measuring.learned_from(X.iloc[::2])  # half of them: too few to be sure


def test_the_same_people_give_the_same_audit(toy: Method, found: Audit) -> None:
    again = audit(toy, town(), ["side", "coin"])
    assert again.to_json() == found.to_json()
    alone = audit(toy, town(), "side")  # a group's interval does not depend on other groups
    assert alone.number("side = a", "cost") == found.number("side = a", "cost")
    other = audit(toy, town(), "side", seed=1).number("side = a", "cost")
    assert other.value == alone.number("side = a", "cost").value
    assert other.low != alone.number("side = a", "cost").low


# ---- against a loop ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def example() -> Example:
    return make_example()


@pytest.fixture(scope="module")
def people(example: Example) -> pd.DataFrame:
    """The training rows again, with a column that the model does not read, partly missing."""
    color = np.where(np.arange(len(example.X)) % 7 == 0, None, np.array(["red", "blue"] * 150))
    return example.X.assign(color=color)


@pytest.fixture(scope="module")
def nearest(example: Example) -> NearestNeighbour:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = NearestNeighbour(example_score, example.schema, gamma="auto")
        return made.fit(example.X, example.y)


def by_hand(method: NearestNeighbour, table: pd.DataFrame) -> list[dict[str, Any]]:
    """Each person's numbers, one person at a time, from what the plans say."""
    X = table[method.schema_.names]
    training = {
        tuple(row) for row in method.problem_.encoder.encode(make_example().X).round(9) + 0.0
    }
    lines = []
    for i, plan in enumerate(method.plans(X)):
        line: dict[str, Any] = {"rejected": float(example_score(X.iloc[[i]])[0] <= 0.5)}
        if line["rejected"]:
            line["with_plan"] = float(plan.status == "ok")
        if plan.status == "ok":
            after = told(X.iloc[[i]], plan)
            z_plus = method.problem_.encoder.encode(after)
            line |= asked(method, method.problem_.encoder.encode(X.iloc[[i]]), z_plus)
            names = {change.feature.name for change in plan.changes}
            line |= {
                "cost": plan.cost,
                "changes": float(len(names)),
                "valid": float(example_score(after)[0] > 0.5),
                "training_row": float(tuple(z_plus[0].round(9) + 0.0) in training),
            }
            line |= {
                f"change: {f.name}": float(f.name in names)
                for f in method.schema_
                if f.role == "mutable"
            }
        lines.append(line)
    return lines


def told(X: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """Somebody as they would be, read off what the plan says and what follows."""
    after = X.loc[[plan.person]].astype(object)
    for change in (*plan.changes, *plan.consequences):
        after[change.feature.name] = [change.after]
    return after.astype(X.dtypes.to_dict())


def asked_noise(method: NearestNeighbour, z: Array, z_plus: Array) -> float:
    keyed, accepted = KeyedNoise(NOISE_SEED), 0
    seen = z.copy()  # what is protected decides no noise
    for block, feature in zip(
        method.problem_.encoder.blocks, method.problem_.encoder.schema, strict=True
    ):
        if feature.role == "protected":
            seen[:, block.start : block.stop] = 0.0
    shift = keyed.normal(keyed.keys(seen), (N_NOISE, z.shape[1]))[0]
    for k in range(N_NOISE):
        row = z_plus.copy()
        for block in method.problem_.encoder.blocks:
            gone = block.has_flag and row[0, block.stop - 1] > 0.5
            if block.n_levels == 0 and not gone:
                row[0, block.start] += NOISE_SCALE * shift[k, block.start]
        accepted += int(method.problem_.confidence(row)[0] > 0.5)
    return accepted / N_NOISE


def asked(method: NearestNeighbour, z: Array, z_plus: Array) -> dict[str, float]:
    verifier = method.verifier_
    assert verifier is not None
    copies = verifier.retrained_(z_plus)[:, 0]
    return {
        "noise": asked_noise(method, z, z_plus),
        "robust": sum(float(copy) > 0.5 for copy in copies) / len(copies),
        "likely": float(verifier.valid(z_plus, method.problem_.confidence(z_plus))[0]),
    }


def test_every_number_is_that_of_a_loop(nearest: NearestNeighbour, people: pd.DataFrame) -> None:
    """Which also says that a plan does not depend on who stands beside."""
    done = audit(nearest, people, ["sex", "color"], least=10)
    assert done.absent == {}
    lines = by_hand(nearest, people)
    color = people["color"].fillna("not given")
    where = {"everyone": [True] * len(people)}
    for s in ("f", "m"):
        where[f"sex = {s}"] = list(people["sex"] == s)
    for c in ("blue", "red", "not given"):
        where[f"color = {c}"] = list(color == c)
    for s, c in product(("f", "m"), ("blue", "red", "not given")):
        where[f"sex = {s} and color = {c}"] = list((people["sex"] == s) & (color == c))
    frame = done.to_frame()
    assert list(frame.columns) == list(COLUMNS)
    assert set(frame["group"]) <= set(where)
    assert set(frame["metric"]) >= set(METRICS)
    for row in frame.itertuples():
        counted = [
            line[row.metric]
            for line, member in zip(lines, where[row.group], strict=True)
            if member and row.metric in line
        ]
        if len(counted) < 10 or done.number(row.group, row.metric).hidden:
            assert pd.isna([row.value, row.low, row.high, row.n]).all(), row
        else:
            assert row.n == len(counted), row
            assert row.value == pytest.approx(sum(counted) / len(counted)), row
            assert row.low <= row.value <= row.high
    shown = set(frame["group"])
    rejected = np.array([line["rejected"] for line in lines])
    for group, members in where.items():
        assert (group in shown) == (group.count("=") < 2 or rejected[members].sum() >= 10)
    assert done.small == len(where) - len(shown)


def test_the_copies_are_of_training_rows(nearest: NearestNeighbour, people: pd.DataFrame) -> None:
    """Nearest neighbours copy rows wherever the immutables agree, and the rows they hold do."""
    kept = nearest.kept_rows()
    assert kept is not None
    rows = {tuple(row) for row in nearest.problem_.encoder.encode(make_example().X).round(9)}
    assert {tuple(row) for row in kept.round(9)} <= rows
    assert ToSixty(accepts).kept_rows() is None


def everybody(n: int = 120) -> pd.DataFrame:
    """Every role at once: the burden follows from debt and income, and the age advances."""
    rng = np.random.default_rng(3)
    income = rng.integers(20, 60, n).astype(float)
    debt = rng.integers(10, 60, n).astype(float)
    return pd.DataFrame(
        {
            "income": income,
            "debt": debt,
            "burden": debt / income,
            "age": rng.integers(20, 60, n).astype(float),
            "sex": np.where(np.arange(n) % 2 == 0, "f", "m"),
            "home": rng.choice(["house", "flat"], n),
        }
    )


def by_burden(X: pd.DataFrame) -> np.ndarray:
    """Read what follows, and nothing else that a plan says itself."""
    burden = X["burden"].astype(float).to_numpy()
    return np.clip(0.9 - 0.5 * burden + 0.002 * (X["age"].astype(float).to_numpy() - 40), 0, 1)


def test_what_follows_from_a_plan_is_measured_too() -> None:
    X = everybody()
    schema = Schema.infer(X, immutable=["home"])
    schema = schema.with_feature("burden", role="derived", formula="debt / income")
    schema = schema.with_feature("age", role="advances", horizon=1)
    schema = schema.with_feature("sex", role="protected")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = NearestNeighbour(by_burden, schema, gamma=0.5).fit(X, by_burden(X) > 0.5)
    done = audit(method, X, ["sex"], least=5)
    plans = [plan for plan in method.plans(X) if plan.status == "ok"]
    assert {c.feature.name for plan in plans for c in plan.consequences} == {"burden", "age"}
    assert done.number("everyone", "valid").value == 1.0
    noise = []
    for plan in plans:
        z = method.problem_.encoder.encode(X.iloc[[plan.person]])
        noise.append(asked_noise(method, z, method.problem_.encoder.encode(told(X, plan))))
    assert done.number("everyone", "noise").value == pytest.approx(np.mean(noise))


# ---- intervals --------------------------------------------------------------------------------


def means(values: Any, *, share: bool, n_boot: int = 4000) -> Array:
    column = np.array(values, dtype=float)[:, None]
    draws = Bootstrap(column, np.array([share]), n_boot, seed=0)
    return draws.means(np.ones(len(column), dtype=bool))[:, 0]


def test_a_share_has_the_interval_of_a_binomial_with_two_more() -> None:
    values = np.arange(100) < 30
    low, high = interval(means(values, share=True), 100, 0.95)
    expected = binom.ppf([0.025, 0.975], 102, 31 / 102) / 102
    np.testing.assert_allclose([low, high], expected, atol=0.011)


def test_the_interval_of_a_share_reaches_to_both_sides_of_it() -> None:
    """However near the end, of yes and no as of estimates that are nearly alike; by little, so that
    rounding may hide it."""
    rng = np.random.default_rng(0)
    for values in (np.arange(300) > 0, np.arange(20) > 0, rng.uniform(0.991, 0.995, 350)):
        low, high = interval(means(values, share=True), len(values), 0.95)
        assert low < values.mean() < high


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_all_of_twenty_is_no_certainty(value: float) -> None:
    low, high = interval(means(np.full(20, value), share=True), 20, 0.95)
    assert max(value - low, high - value) == pytest.approx(0.2, abs=0.07)  # exact: 0.17
    wider = interval(means(np.full(5, value), share=True), 5, 0.95)
    assert wider[1] - wider[0] > 0.4


def test_a_mean_has_student_s_interval() -> None:
    values = np.random.default_rng(0).normal(size=25)
    low, high = interval(means(values, share=False), 25, 0.95)
    half = student.ppf(0.975, 24) * values.std(ddof=1) / 5
    np.testing.assert_allclose([low, high], values.mean() + np.array([-half, half]), atol=0.05)


def test_amounts_that_are_alike_are_no_certainty_either() -> None:
    values = np.array([3.0] * 25 + [1.0, 9.0])
    draws = Bootstrap(values[:, None], np.array([False]), 1000, seed=0)
    some = draws.means(np.arange(27) < 25)[:, 0]
    low, high = interval(some, 25, 0.95)
    assert 1.0 < low < 3.0 < high < 9.0


def test_who_does_not_count_changes_nothing() -> None:
    values = np.concatenate([np.random.default_rng(0).normal(5, 1, 40), np.full(400, np.nan)])
    found = interval(means(values, share=False), 40, 0.95)
    alone = interval(means(values[:40], share=False), 40, 0.95)
    np.testing.assert_allclose(found, alone, atol=0.08)


def test_a_difference_has_welch_s_interval_and_grows_with_comparisons() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, 50), rng.normal(0, 3, 80)
    ways = [means(side, share=False) for side in (a, b)]
    error = np.sqrt(a.var() / 50 + b.var() / 80)
    one, ten = (difference(*ways, 50, 0.95, k) for k in (1, 10))
    assert one == pytest.approx(student.ppf(0.975, 49) * error, rel=0.05)
    assert ten == pytest.approx(student.ppf(1 - 0.05 / 20, 49) * error, rel=0.05)


def test_where_nothing_differs_hardly_anything_is_called() -> None:
    """200 tables of 3 metrics and 2 columns in which group and metric are independent: a difference
    is called in 5% of them, or fewer."""
    rng, tables = np.random.default_rng(0), 200
    kinds = [metric for metric in METRICS.values() if metric.compared][:3]
    wrong = 0
    for i in range(tables):
        values = np.stack([rng.random(90) < 0.9, rng.random(90) < 0.4, rng.exponential(size=90)])
        draws = Bootstrap(values.T.astype(float), np.array([True, True, False]), 200, seed=i)
        sides = {"a": rng.random(90) < 0.4, "b": rng.random(90) < 0.3}
        groups = [Group(((name, "x"),), who) for name, who in sides.items()]
        made = _differences(groups, ["r", "w", "c"], kinds, draws, 0.95, 10)
        assert len(made) == 6
        wrong += any(each.is_called for each in made)
    assert wrong <= 0.05 * tables + 2 * np.sqrt(0.05 * 0.95 * tables)


# ---- groups and mistakes ----------------------------------------------------------------------


def test_groups_are_values_in_order_and_combinations_large_enough() -> None:
    X = pd.DataFrame(
        {
            "n": [10.0, 2.0, 10.0, 2.0, 2.0, np.nan],
            "c": pd.Categorical(list("yxyxyx"), categories=["y", "x", "z"]),
            "b": [True, False, True, False, False, False],
        }
    )
    groups, small = find_groups(X, ["n", "c", "b"], np.array([1, 1, 1, 1, 1, 0]) > 0, least=2)
    assert [group.label for group in groups] == [
        "everyone",
        *("n = 2", "n = 10", "n = not given", "c = y", "c = x", "b = no", "b = yes"),
        # "n = 10, c = y" are the people of "n = 10", and so on: listed once
        "n = 2 and c = x",
    ]
    assert small == 1  # n = 2 and c = y: one person


@pytest.mark.parametrize(
    ("change", "groups", "expected"),
    [
        (lambda X: X, ["gender"], "no column 'gender' to group by; the table has ['income'"),
        (lambda X: X, [], "give a column to group people by"),
        (lambda X: X.assign(side="a"), ["side"], "'side' is 'a' for all 240 people"),
        (lambda X: X, ["income"], "'income' has"),
        (lambda X: X.iloc[:0], ["side"], "the table has no rows"),
        (lambda X: X[X["income"] > 80], ["side"], "the model accepts all"),
        (lambda X: X.drop(columns="home"), ["side"], "lacks the columns ['home']"),
    ],
    ids=["unknown", "none named", "one group", "numbers", "empty", "nobody rejected", "lacks"],
)
def test_a_mistake_gets_a_sentence(
    toy: Method, change: Any, groups: list[str], expected: str
) -> None:
    table = town().assign(home="house")
    with pytest.raises(UserError, match=re.escape(expected)):
        audit(toy, change(table), groups)


@pytest.mark.parametrize("option", [{"level": 1.0}, {"least": 1}, {"n_boot": 3}])
def test_settings_are_checked(toy: Method, option: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(option))):
        audit(toy, town(), ["side"], **option)


def test_nobody_with_a_plan_is_an_answer(toy: Method) -> None:
    done = audit(toy, town().assign(home="tent"), ["side"])
    assert done.number("everyone", "with_plan").value == 0
    assert done.number("everyone", "with_plan").high > 0
    assert done.absent["noise"] == "nobody has a plan"
    assert done.number("everyone", "cost").n is None
    assert "fewer than 20" in done.to_text()
    assert "fewer than 20 of 240" in done.to_html()


def test_a_small_group_is_not_told_by_the_others(toy: Method) -> None:
    """One of three regions has 7 people: neither they nor what adds up to them may be read off
    any output, and two that are small only together hide a third."""
    table = town().assign(home="house")
    place = np.where(np.arange(240) < 7, "islet", np.where(np.arange(240) < 90, "hill", "shore"))
    done = audit(toy, table.assign(place=place, side=table["side"]), ["place", "side"])
    for metric in ("rejected", "with_plan", "cost"):
        islet, hill = (done.number(f"place = {name}", metric) for name in ("islet", "hill"))
        assert (islet.hidden, islet.n) == ("few", None)
        assert np.isnan([islet.value, islet.low, islet.high]).all()
        assert (hill.hidden, hill.n) == ("beside", None)
        assert np.isnan([hill.value, hill.low, hill.high]).all()
        assert done.number("place = shore", metric).n is not None
    assert all(each.group != "place = hill" for each in done.differences)
    frame = done.to_frame().set_index(["group", "metric"])
    assert frame.loc[("place = islet", "rejected")].isna().all()
    assert frame.loc[("place = hill", "rejected")].isna().all()
    # within each side, too: the islet's own are not listed there, and the hill's stand beside
    assert done.number("place = hill and side = a", "rejected").hidden == "beside"
    assert done.in_words(done.number("place = islet", "rejected")) == "fewer than 20"
    data = [n for n in json.loads(done.to_json())["numbers"] if n["group"] == "place = islet"]
    assert {(n["n"], n["value"], n["hidden"]) for n in data} == {(None, None, "few")}


def test_a_small_part_of_a_nested_column_is_not_told_by_the_rest(toy: Method) -> None:
    """Regions lie within countries: Germany less Bavaria would be the five of Bremen."""
    people = {("DE", "Bayern"): 100, ("DE", "Bremen"): 5, ("FR", "Paris"): 110, ("FR", "Lyon"): 85}
    rows = [where for where, n in people.items() for _ in range(n)]
    table = pd.DataFrame(rows, columns=["country", "region"])
    table = table.assign(income=np.arange(len(rows)) % 40.0, home="house")
    done = audit(toy, table, ["country", "region"])
    for metric in ("rejected", "with_plan", "cost", "change: income"):
        kept = {n.group: n.hidden for n in done.numbers if n.metric == metric and n.hidden}
        assert kept == {"region = Bremen": "few", "region = Bayern": "beside"}, metric
    assert not any("Bayern" in each.group for each in done.differences)
    for said in ("Bremen: fewer than 20", "Bayern: hidden"):  # not "too few" of a hundred
        assert f"Asked to change most, region = {said}" in done.to_text()


def test_what_is_kept_back_in_one_column_is_not_told_by_another(toy: Method) -> None:
    """Two columns may name the very same people."""
    place = np.where(np.arange(240) < 7, "islet", np.where(np.arange(240) < 90, "hill", "shore"))
    table = town().assign(home="house", place=place)
    table["landscape"] = table["place"].replace({"shore": "flat", "hill": "steep"})
    done = audit(toy, table, ["place", "landscape"])
    for group in ("place = hill", "landscape = steep"):
        assert done.number(group, "rejected").hidden == "beside"
    assert not done.number("landscape = flat", "rejected").hidden


def test_how_many_have_a_plan_is_not_told_by_the_n_of_the_cost() -> None:
    """Five of Bremen were turned down and none has a plan. Who has a plan in Bavaria is kept back,
    and the n of its cost would tell it."""
    region = np.repeat(["Bayern", "Bremen", "Paris"], [100, 5, 100])
    country = np.repeat(["DE", "DE", "FR"], [100, 5, 100])
    table = pd.DataFrame({"country": country, "region": region})
    has = np.where(region == "Bremen", np.nan, 1.0)
    values = np.stack([np.ones(205), ~np.isnan(has), has], axis=1)
    groups, _ = find_groups(table, ["country", "region"], values[:, 0] > 0, least=20)
    hidden = find_hidden(groups, values, least=20)
    assert {key for key, why in hidden.items() if why == "beside"} == {
        ("region = Bayern", j) for j in range(3)
    }


def random_table(rng: np.random.Generator) -> tuple[pd.DataFrame, Array]:
    """Two or three columns, some within others, and who counts in metrics one after the other."""
    n = int(rng.integers(60, 300))
    columns: list[np.ndarray] = [rng.choice(4, n, p=rng.dirichlet(np.full(4, 0.7)))]
    while len(columns) < 2 or (len(columns) < 3 and rng.random() < 0.5):
        given = columns[int(rng.integers(len(columns)))]
        finer = 2 * given + (rng.random(n) < rng.choice([0.05, 0.2, 0.5]))
        other = rng.choice(3, n, p=rng.dirichlet(np.full(3, 0.7)))
        columns.append([finer, given // 2, other][int(rng.integers(3))])
    turned_down = np.where(rng.random(n) < 0.7, 1.0, 0.0)
    with_plan = np.where(turned_down == 1, rng.random(n) < 0.9, np.nan)
    cost = np.where(with_plan == 1, rng.random(n), np.nan)
    table = pd.DataFrame({f"c{i}": column for i, column in enumerate(columns)})
    return table, np.stack([turned_down, with_plan, cost], axis=1)


def follows(wanted: Array, told: Array) -> np.ndarray:
    """Which of the wanted sums are sums of those told. (k, c), (g, c)"""
    if not len(told) or not len(wanted):
        return np.zeros(len(wanted), dtype=bool)
    found = np.linalg.lstsq(told.T, wanted.T, rcond=None)[0]
    return np.asarray(np.abs(told.T @ found - wanted.T).max(axis=0) < 1e-6)


def unions(sizes: np.ndarray, least: int, most: int = 3000) -> Array:
    """(k, c) the sets of cells with fewer than `least` people together; the first `most`."""
    found: list[tuple[int, ...]] = []
    ways = [((i,), int(n)) for i, n in enumerate(sizes) if n < least]
    while ways and len(found) < most:
        some, n = ways.pop()
        found.append(some)
        more = range(some[-1] + 1, len(sizes))
        ways += [((*some, i), n + int(sizes[i])) for i in more if n + sizes[i] < least]
    sets = [[float(i in some) for i in range(len(sizes))] for some in found]
    return np.array(sets).reshape(-1, len(sizes))


def crossings(table: pd.DataFrame, counted: np.ndarray) -> np.ndarray:
    """(k, n) who has the same values in some of the columns."""
    ways = [names for k in range(1, table.shape[1] + 1) for names in combinations(table, k)]
    codes = [table.groupby(list(names)).ngroup()[counted].to_numpy() for names in ways]
    return np.concatenate([np.unique(code)[:, None] == code for code in codes])


@pytest.mark.parametrize("seed", range(60))
def test_nothing_of_few_people_follows_from_what_is_told(seed: int) -> None:
    """Solved as a linear system: everyone, the groups told, everyone else of a comparison, and the
    groups told in the next metric, whose n is a sum of this one."""
    rng = np.random.default_rng(seed)
    table, values = random_table(rng)
    least = int(rng.choice([5, 10, 20]))
    groups, _ = find_groups(table, list(table), values[:, 0] == 1, least)
    hidden = find_hidden(groups, values, least)
    for j in range(3):
        counted = ~np.isnan(values[:, j])
        cells = table[counted].groupby(list(table)).ngroup().to_numpy()
        sizes = np.bincount(cells)
        known = [
            group.members[counted]
            for group in groups
            if any((group.label, k) not in hidden for k in range(j, min(j + 2, 3)))
        ]
        told, parts = (
            np.array([np.bincount(cells, who) > 0 for who in some], float).reshape(-1, len(sizes))
            for some in (known, crossings(table, counted))
        )
        wanted = np.concatenate([parts[parts @ sizes < least], unions(sizes, least)])
        assert not follows(wanted, np.concatenate([told, 1 - told])).any()


def test_where_no_cell_is_small_nothing_is_kept_back() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 3, 900), "b": rng.integers(0, 4, 900)})
    table["c"] = table["a"] // 2
    groups, small = find_groups(table, list(table), np.ones(900, dtype=bool), least=20)
    assert (
        len(groups) == 1 + 3 + 4 + 2 + 12 + 4
    )  # "a and c" are "a"; "b and c" where c is not one a
    assert small == 0
    assert find_hidden(groups, rng.random((900, 2)), least=20) == {}


# ---- as text, JSON and a page -----------------------------------------------------------------


def test_no_number_stands_without_its_interval(found: Audit, toy: Method) -> None:
    few = audit(toy, town().head(48), ["side"], least=20)
    for done in (found, few):
        for number in done.numbers:
            said = done.in_words(number)
            assert re.fullmatch(r"hidden|fewer than 20|\S+ \(\S+ to \S+\)", said), said
    assert any(number.hidden for number in few.numbers)
    assert not few.number("everyone", "rejected").hidden


def test_shares_near_the_ends_are_not_rounded_away() -> None:
    share, amount = METRICS["rejected"], METRICS["cost"]
    assert [written(v, share) for v in (0.0, 0.004, 0.5, 0.996, 0.9996, 1 - 1e-15, 1.0)] == [
        *("0%", "0.4%", "50%", "99.6%", "99.96%", "100%", "100%"),
    ]
    assert written(0.456, amount) == "0.46"


def test_a_label_is_cut_where_it_is_long() -> None:
    assert short(["f", "Black"]) == "f · Black"
    long = "female, divorced, separated or married"
    said = short([long, "none"], 30)
    assert said == "female, divorced, sepa… · none"
    assert len(said) == 30
    assert len(short([long, long])) <= 28


def test_a_difference_that_is_called_is_not_rounded_to_zero(found: Audit) -> None:
    called = replace(found.called[0], low=0.0012, high=0.4)
    assert "(0.001 to 0.40)" in found.sentence(called)
    called = replace(called, metric="with_plan", difference=-0.2, low=-0.4, high=-0.0002)
    assert "20.0 percentage points (0.02 to 40.0)" in found.sentence(called)


def test_json_has_every_number_and_comparison(found: Audit) -> None:
    data = json.loads(found.to_json())
    assert len(data["numbers"]) == len(found.to_frame())
    assert sum(each["called"] for each in data["comparisons"]) == len(found.called) > 0
    assert data["findings"] == found.findings
    assert data["not_measured"]["robust"] == "this ToSixty has no verifier"


@pytest.fixture(scope="module")
def page() -> str:
    table = town().assign(side=lambda t: t["side"].replace({"a": SCRIPT}))
    schema = Schema.infer(table[["income", "home"]], immutable=["home"])
    schema = schema.with_feature("income", wording=SCRIPT)
    method = ToSixty(accepts, schema).fit(table[["income", "home"]])
    return audit(method, table, ["side", "coin"]).to_html(f"Town {SCRIPT}")


def test_the_page_opens_anywhere_and_nothing_in_it_runs(page: str) -> None:
    assert "http" not in page
    assert re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?(?!data:)[^"\')\s]+', page) == []
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 4
    drawn = [base64.b64decode(d).decode() for d in re.findall(r"svg\+xml;base64,([^\"]+)", page)]
    # the metrics of a method that keeps nothing, and what is asked most of nine groups
    assert len(drawn) == 6 + 9
    assert not any("<script" in picture for picture in drawn)


def test_the_page_says_what_the_audit_found(found: Audit) -> None:
    page = found.to_html()
    text = re.sub(r"<[^>]+>", " ", page)
    for said in (*found.findings, found.how_called, found.how_counted, NO_CAUSE):
        assert said in text
    for name in found.metrics:
        for group in found.groups:
            number = found.number(group, name)
            assert found.in_words(number) in text or number.hidden
    assert "not measured: this ToSixty has no verifier" in text
    assert "fair" in text
