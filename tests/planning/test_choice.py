"""Plans are needed, sturdy, small and ordered: checked from the words of the plans alone."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse import Classifier, GenRe, NearestNeighbour, Schema, load
from genrecourse.errors import UserError
from genrecourse.evaluation.checks import Example, example_score, make_example
from genrecourse.evaluation.example_tables import example_checker
from genrecourse.planning.binomial import Share
from genrecourse.planning.choice import Chooser, Shown, Standard
from genrecourse.planning.guarantee import Candidates, PlanChecker
from genrecourse.planning.plans import Plan, Plans
from genrecourse.planning.sturdy import Sturdiness

ROBUST, SPARED = 0.75, 0.875  # shares of votes: of a sturdy plan, and after it was reduced


@pytest.fixture(scope="module")
def example() -> Example:
    return make_example()


def carried_out(people: pd.DataFrame, plan: Plan, without: tuple[str, ...] = ()) -> pd.DataFrame:
    row = people.loc[[plan.person]].copy()
    for change in plan.changes:
        name, dtype = change.feature.name, people[change.feature.name].dtype
        if name not in without:
            row[name] = pd.Series([change.after], index=row.index, dtype=dtype)
    return row


def accepts(row: pd.DataFrame) -> bool:
    return bool(example_score(row)[0] > 0.5)


# ---- needed -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3])
def test_every_change_is_needed_or_labelled(method: Any, example: Example, n: int) -> None:
    shown = [each for plan in method.plans(example.people, n=n) for each in plan.every]
    labelled = 0
    for plan in shown:
        names = [change.feature.name for change in plan.changes]
        for change in plan.changes if len(names) > 1 else ():
            held = accepts(carried_out(example.people, plan, (change.feature.name,)))
            assert held == (change.safety is not None)
            labelled += held
    assert len(shown) > 20
    assert labelled > 0


def test_without_robustness_no_change_and_no_two_are_superfluous(
    method: Any, example: Example
) -> None:
    for plan in method.plans(example.people, min_robust=0.0):
        names = [change.feature.name for change in plan.changes]
        assert all(change.safety is None for change in plan.changes)
        assert plan.minimal is None
        for size in (1, 2):
            for some in combinations(names, size) if len(names) > size else ():
                assert not accepts(carried_out(example.people, plan, some))


def test_a_label_says_what_the_rest_would_lose(method: Any, example: Example) -> None:
    """Without the change, the plan misses a bar that it reaches with it, and the label says so."""
    seen = 0
    for plan in method.plans(example.people):
        for change in plan.changes:
            if change.safety is None:
                continue
            with_it = (plan.retrained, plan.imprecise)
            without = (change.safety.retrained, change.safety.imprecise)
            (votes, fewer), (tries, less) = zip(with_it, without, strict=True)
            bar = min(votes.estimate, SPARED)
            lost = votes.estimate >= ROBUST and fewer.estimate < bar
            assert lost or tries.estimate >= ROBUST > less.estimate
            worst = min(filter(None, without), key=lambda share: share.k / share.n)
            assert f"{worst.n - worst.k} of {worst.n}" in change.to_text()
            seen += 1
    assert seen > 0


@pytest.mark.parametrize(("votes", "kept"), [(5, {"income"}), (6, {"income", "savings"})])
def test_a_fragile_plan_keeps_no_change_for_safety(votes: int, kept: set[str]) -> None:
    """A change that takes votes from 2 to 5 of 8 is useless, for 6 are needed; to 6 it helps."""
    X = table()
    h = lambda rows: np.where(rows["income"] >= 10, 0.9, 0.1)  # noqa: E731
    method = NearestNeighbour(h, Schema.infer(X), gamma=0.5).fit(X)
    people = method.problem_.read(pd.DataFrame({"income": [2], "savings": [0]}))
    checker = PlanChecker(people, method.planning_.observed, method.problem_.rules, list)
    sturdiness = Sturdiness(
        lambda person, F: np.full(len(F), 32),
        lambda person, F: np.where(F[:, 1] > 0, votes, 2),
        n_models=8,
    )
    person, row = np.array([0]), np.array([[0.6, 0.5]])
    offer = Candidates(row[None], lambda person, F: np.ones(len(F)), None, None, tried=1)
    chooser = Chooser(checker, offer, Standard(sturdiness))
    (plan,) = chooser.choose([checker.check(person, row)], 1, person)[0]
    assert {list(X)[j] for j in plan.changes} == kept
    assert {list(X)[j] for j in plan.safety} == kept - {"income"}
    assert plan.is_fragile == (votes < 6)


def test_minimal_is_the_plan_without_safety(method: Any, example: Example) -> None:
    seen = 0
    for plan in method.plans(example.people):
        extra = {change.feature.name for change in plan.changes if change.safety}
        assert (plan.minimal is not None) == bool(extra)
        if plan.minimal is not None:
            less = {change.feature.name for change in plan.minimal.changes}
            assert less < {change.feature.name for change in plan.changes}
            assert accepts(carried_out(example.people, plan.minimal))
            assert plan.minimal.cost is not None
            assert plan.cost is not None
            assert plan.minimal.cost < plan.cost
            seen += 1
    assert seen > 0


# ---- what h does not read -----------------------------------------------------------------------


def scorecard(X: pd.DataFrame) -> np.ndarray:
    """Reads two of the columns."""
    return np.asarray(1 / (1 + np.exp(-(0.1 * (X["income"] - 42) - 0.3 * (X["debt"] - 7)))))


@pytest.mark.parametrize("kind", [GenRe, NearestNeighbour])
def test_a_plan_never_changes_what_h_does_not_read(
    kind: Any, example: Example, tmp_path: Any
) -> None:
    params = GenRe._test_params() if kind is GenRe else {"gamma": "auto"}
    X = example.X.assign(income=example.X["income"].fillna(30), debt=example.X["debt"].fillna(7))
    schema = Schema.infer(X, immutable=["age", "sex"])
    method = kind(scorecard, schema, **params).fit(X, scorecard(X) > 0.5)
    people = X[scorecard(X) <= 0.5].head(30)
    method.save(tmp_path / "model")
    for fitted in (method, load(tmp_path / "model", Classifier(scorecard))):
        plans = fitted.plans(people, n=3)
        names = {c.feature.name for plan in plans.shown for c in plan.changes}
        assert names == {"income", "debt"}


# ---- sturdy -------------------------------------------------------------------------------------


def test_a_first_plan_is_sturdy_or_called_fragile(method: Any, example: Example) -> None:
    plans = [plan for plan in method.plans(example.people, n=3) if plan.status == "ok"]
    for plan in plans:
        share = min(s.k / s.n for s in (plan.retrained, plan.imprecise) if s is not None)
        assert plan.is_fragile == (share < ROBUST)
        assert ("fragile" in plan.to_text()) == plan.is_fragile
        assert not (plan.is_fragile and plan.alternatives)  # the best fragile plan, and no more
        assert not any(other.is_fragile for other in plan.alternatives)
    assert any(not plan.is_fragile for plan in plans)


def test_a_higher_bar_gives_sturdier_plans_and_more_fragile_ones(
    method: Any, example: Example
) -> None:
    low, high = (method.plans(example.people, min_robust=bar) for bar in (0.0, 1.0))
    assert sum(plan.is_fragile for plan in low) == 0
    for plan in high:
        if plan.status == "ok" and not plan.is_fragile:
            assert plan.retrained.k == plan.retrained.n
            assert plan.imprecise.k == plan.imprecise.n
    steady = [sum(plan.imprecise.k for plan in each if plan.status == "ok") for each in (low, high)]
    assert steady[0] < steady[1]
    assert [plan.status for plan in low] == [plan.status for plan in high]  # nobody loses a plan


def test_counts_are_asked_for_once() -> None:
    asked: list[int] = []

    def tries(person: np.ndarray, F: np.ndarray) -> np.ndarray:
        asked.append(len(F))
        return np.full(len(F), 30)

    sturdy, rows = Sturdiness(tries), np.array([[0.1], [0.2], [0.1]])
    assert sturdy.holds(np.zeros(3, dtype=int), rows).all()
    assert sturdy.holds(np.zeros(3, dtype=int), rows[::-1].copy()).all()
    assert sum(asked) <= 3
    assert sturdy.holds(np.array([1]), np.array([[0.1]])).all()
    assert len(asked) == 2  # another person: noise may depend on x, so it is asked again


@pytest.mark.parametrize("bad", [-0.1, 1.5, "much", float("nan"), None])
def test_a_wrong_bar_is_refused(method: Any, example: Example, bad: Any) -> None:
    with pytest.raises(UserError, match="min_robust"):
        method.plans(example.people.head(1), min_robust=bad)


@pytest.mark.parametrize("bad", [0, 2.5, "x"])
def test_a_wrong_cap_is_refused(method: Any, example: Example, bad: Any) -> None:
    with pytest.raises(UserError, match="most_changes"):
        method.plans(example.people.head(1), most_changes=bad)


# ---- small, different, ordered ------------------------------------------------------------------


def test_a_cap_is_kept_or_said(method: Any, example: Example) -> None:
    plans = method.plans(example.people, most_changes=1)
    for plan in plans.shown:
        assert plan.is_beyond == (len(plan.changes) > 1)
        assert ("no plan with fewer changes" in plan.to_text()) == plan.is_beyond
    free = method.plans(example.people, most_changes=None)
    assert any(plan.is_beyond for plan in plans.shown)
    assert not any(plan.is_beyond for plan in free.shown)


def test_a_smaller_plan_comes_before_a_cheaper_one_beyond_the_cap() -> None:
    """Three small changes are cheaper than one large one, and all three are needed."""
    grid = np.array(np.meshgrid(*[np.arange(3.0)] * 3, [0.0, 9.0])).reshape(4, -1).T
    X = pd.DataFrame(np.repeat(grid, 8, axis=0), columns=["a", "b", "c", "far"])
    h = lambda X: np.where((X[["a", "b", "c"]] >= 1).all(axis=1) | (X["far"] >= 9), 0.9, 0.1)  # noqa: E731
    method = NearestNeighbour(h, Schema.infer(X).with_feature("far", cost_weight=2.0), gamma=0.5)
    person = pd.DataFrame({"a": [0.0], "b": [0.0], "c": [0.0], "far": [0.0]})
    fitted = method.fit(X)
    for cap, changed in ((None, {"a", "b", "c"}), (3, {"a", "b", "c"}), (2, {"far"})):
        plan = fitted.plans(person, most_changes=cap, min_robust=0.0)[0]
        assert {change.feature.name for change in plan.changes} == changed
        assert not plan.is_beyond
        # the cheapest of all changes of one or two features, though one of three costs less
        assert (plan.cheapest is not None) == (changed == {"far"})


def test_no_plan_contains_another_and_none_is_better_than_the_first(
    method: Any, example: Example
) -> None:
    several = 0
    for plan in method.plans(example.people, n=4):
        sets = [{change.feature.name for change in each.changes} for each in plan.every]
        assert not any(a <= b for a in sets for b in sets if a is not b)
        for other in plan.alternatives:
            assert any(a > b for a, b in zip(numbers(plan), numbers(other), strict=True)) or (
                numbers(plan) == numbers(other)
            )
        several += len(sets) > 1
    assert several > 5


def test_better_is_as_good_in_every_number_and_better_in_one() -> None:
    checked = example_checker().check(np.zeros(2, dtype=int), np.array([[2 / 3], [1.0]]))
    assert checked.cost[0] < checked.cost[1]

    def shown(row: int, tries: int) -> Shown:
        return Shown(checked, row, shares=(None, Share(tries, 32)))

    assert shown(0, 32).is_better_than(shown(1, 32))
    assert not shown(1, 32).is_better_than(shown(0, 32))
    assert not shown(0, 32).is_better_than(shown(0, 32))
    assert not shown(0, 30).is_better_than(shown(1, 32))  # cheaper, and less sturdy
    assert not shown(1, 32).is_better_than(shown(0, 30))


def test_a_plan_beyond_the_cap_does_not_stand_beside_a_part_of_it() -> None:
    """Two small changes, or a large one of the first feature alone: the method prefers the two."""
    X = table()
    h = lambda X: np.where(  # noqa: E731
        (X["income"] >= 12) | ((X["income"] >= 6) & (X["savings"] >= 4)), 0.9, 0.1
    )
    method = NearestNeighbour(h, Schema.infer(X), gamma=0.5).fit(X)
    people = method.problem_.read(pd.DataFrame({"income": [2], "savings": [0]}))
    checker = PlanChecker(people, method.planning_.observed, method.problem_.rules, list)
    rows = method.problem_.encoder.features(pd.DataFrame({"income": [6, 12], "savings": [4, 0]}))
    offer = Candidates(rows[None], lambda person, F: np.ones(len(F)), None, None, tried=1)
    sturdiness = Sturdiness(lambda person, F: np.full(len(F), 32))
    for cap, shown in ((2, [{0, 1}]), (1, [{0}])):
        chooser = Chooser(checker, offer, Standard(sturdiness, most_changes=cap))
        plans = chooser.choose([checker.check(np.array([0, 0]), rows)], 2, np.array([0]))[0]
        assert [set(plan.changes.tolist()) for plan in plans] == shown


def numbers(plan: Plan) -> list[float]:
    assert plan.cost is not None
    likely = -np.inf if plan.log_likelihood is None else round(plan.log_likelihood, 1)
    shares = [share.k for share in (plan.retrained, plan.imprecise) if share is not None]
    return [-len(plan.changes), -round(plan.cost, 2), likely, *shares]


def test_a_change_too_small_to_matter_comes_last() -> None:
    """A step that h likes very much is not asked for, if the schema calls it too small."""
    X = pd.DataFrame(
        {"debt": np.tile(np.arange(40.0), 10), "years": np.repeat(np.arange(10.0), 40)}
    )
    h = lambda X: np.where((X["debt"] <= 19) | (X["years"] >= 8), 0.9, 0.1)  # noqa: E731
    person = pd.DataFrame({"debt": [20.0], "years": [4.0]})
    for step, changed in ((None, "debt"), (1.0, "debt"), (1.001, "years"), (5.0, "years")):
        schema = Schema.infer(X).with_feature("debt", min_step=step, direction="decrease")
        schema = schema.with_feature("debt", range=(19.0, 39.0))
        plan = NearestNeighbour(h, schema, gamma=0.5).fit(X).plans(person, min_robust=0.0)[0]
        assert [change.feature.name for change in plan.changes] == [changed]


# ---- as data ------------------------------------------------------------------------------------


def test_labels_survive_json(method: Any, example: Example) -> None:
    plans = method.plans(example.people, n=2)
    again = Plans.from_json(plans.to_json())
    for plan, read in zip(plans.shown, again.shown, strict=True):
        assert [c.to_text() for c in read.changes] == [c.to_text() for c in plan.changes]
        assert (read.is_fragile, read.is_beyond) == (plan.is_fragile, plan.is_beyond)
        assert (read.minimal is None) == (plan.minimal is None)
        if read.minimal and plan.minimal:
            assert [c.after for c in read.minimal.changes] == [
                c.after for c in plan.minimal.changes
            ]


# ---- how often h is asked -----------------------------------------------------------------------


class Asked:
    """A score of two columns that remembers the rows it was asked about."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, ...]] = []

    def __call__(self, X: pd.DataFrame) -> np.ndarray:
        self.rows += [tuple(row) for row in X.to_numpy(dtype=float)]
        return np.asarray((X["income"] + 2 * X["savings"]) / 40)


def table(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"income": rng.integers(0, 21, n), "savings": rng.integers(0, 8, n)})


def test_a_checker_asks_h_once_about_a_row() -> None:
    h, X = Asked(), table()
    method = NearestNeighbour(h, Schema.infer(X), gamma=0.5).fit(X)
    problem = method.problem_
    people = problem.read(X[h(X) <= 0.5].head(2))
    checker = PlanChecker(people, method.planning_.observed, problem.rules, list)
    rows, person = np.array([[0.9, 0.9], [0.1, 0.9], [0.9, 0.9]]), np.array([0, 0, 1])
    h.rows.clear()
    first, second = checker.check(person, rows), checker.check(person, rows)
    assert len(h.rows) == 3  # the same row of another person may have other cells: it is asked
    np.testing.assert_array_equal(first.score, second.score)
    assert checker.confidence(person, first.F).tolist() == first.score.tolist()
    assert len(h.rows) == 3


def test_the_quick_enumeration_finds_the_cheapest_single_change() -> None:
    """Every value of a feature with at most 8 values is tried, and less than a proof tries."""
    X = table().clip(upper=7)
    h = lambda rows: np.where(rows["income"] + rows["savings"] >= 9, 0.9, 0.1)  # noqa: E731
    method = NearestNeighbour(h, Schema.infer(X), gamma=0.5).fit(X)
    rejected = X[h(X) < 0.5].head(20)
    people = method.problem_.read(rejected)
    checker = PlanChecker(people, method.planning_.observed, method.problem_.rules, list)
    quick = checker.trial.quick(checker.rules, np.arange(20))
    whole = checker.trial.search(checker.rules, np.arange(20))
    helped = 0
    for (_, x), few, every in zip(rejected.iterrows(), quick, whole, strict=True):
        gaps = {
            name: [abs(v - x[name]) / 7 for v in range(8) if v + x.sum() - x[name] >= 9]
            for name in X
        }
        single = [min(gap) for gap in gaps.values() if gap]
        assert few.asked < every.asked
        assert not few.is_all
        if single:
            assert few.cost[0] <= min(single) + 1e-9
            helped += 1
        accepted = checker.trial.score(np.zeros(len(few.F_plus), dtype=int), few.F_plus)
        assert (accepted > 0.5).all()
    assert helped > 5
