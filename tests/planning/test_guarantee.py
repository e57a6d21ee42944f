"""What leaves the library holds, and what is called proven is: against loops that share no code."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse.errors import UserError
from genrecourse.evaluation.checks import Example, broken_rules, example_score, make_example
from genrecourse.evaluation.example_tables import example_checker
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.model.classifier import Classifier, MLPConfig, fit_mlp
from genrecourse.planning import enumeration
from genrecourse.planning.diversity import pick_diverse
from genrecourse.planning.enumeration import ObservedValues, thin
from genrecourse.planning.guarantee import PlanChecker
from genrecourse.planning.plans import Evidence, Plan
from genrecourse.planning.proposer import Proposals
from genrecourse.planning.wording import english
from genrecourse.rules.kinds import Rules
from genrecourse.rules.problem import Problem
from genrecourse.rules.relaxations import relaxed_rules
from genrecourse.table.encoding import Array, TableEncoder
from genrecourse.table.noise import KeyedNoise
from genrecourse.table.schema import Schema


class Offering(Method):
    """Proposes what it is given, in original units; nothing: as x is."""

    given: pd.DataFrame | None = None

    def _fit(self, rows: TrainingRows) -> None:
        pass

    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        return Z

    def propose(self, Z: Array, noise: KeyedNoise, n: int, **options: Any) -> Proposals:
        encoder = self.problem_.encoder
        F = encoder.to_features(Z) if self.given is None else encoder.features(self.given)
        return Proposals(F[:, None, :], 1, lambda: self._reason(Z))


# ---- a small table, and loops over it ----------------------------------------------------------


def small(seed: int, n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    debt = rng.choice([0.0, 0.5, 1.0, 2.5], n)
    return pd.DataFrame(
        {
            "income": rng.integers(1, 7, n),
            "debt": np.where(rng.random(n) < 0.15, np.nan, debt).astype(np.float32),
            "years": rng.integers(0, 5, n),
            "job": rng.choice(["a", "b", "c"], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )


def small_schema(X: pd.DataFrame) -> Schema:
    schema = Schema.infer(X, immutable=["sex"])
    schema = schema.with_feature("years", direction="increase", cost_weight=0.5)
    return schema.with_feature("income", max_step=2.0)


class Linear:
    """A random score with an interaction; rarely generous."""

    def __init__(self, seed: int):
        rng = np.random.default_rng(seed)
        self.weights, self.jobs = (
            rng.normal(size=4),
            dict(zip("abc", rng.normal(size=3), strict=True)),
        )
        self.shift = rng.uniform(1.5, 4.0)

    def __call__(self, X: pd.DataFrame) -> np.ndarray:
        debt = X["debt"].fillna(1.7).to_numpy(dtype=float)
        income, years = X["income"].to_numpy(dtype=float), X["years"].to_numpy(dtype=float)
        job = X["job"].astype(object).map(self.jobs).to_numpy(dtype=float)
        sex = (X["sex"] == "m").to_numpy(dtype=float)
        logit = self.weights @ [income - 3, debt, years - 2, sex] + job * (income - 2) - self.shift
        return np.asarray(1 / (1 + np.exp(-logit)))


def every_way(X: pd.DataFrame, person: pd.Series) -> list[tuple[dict[str, Any], float]]:
    """All changes of one and of two features that the rules of `small_schema` allow, priced."""
    options: dict[str, list[tuple[Any, float]]] = {}
    for name, weight in (("income", 1.0), ("debt", 1.0), ("years", 0.5)):
        values = X[name].dropna()
        span, own = float(values.max() - values.min()), person[name]
        options[name] = []
        for value in sorted(set(values)):
            if value == own:
                continue
            if name == "income" and abs(value - own) > 2:
                continue
            if name == "years" and value < own:
                continue
            price = 1.0 if pd.isna(own) else abs(float(value) - float(own)) / span
            options[name].append((value, weight * price))
    options["job"] = [(level, 1.0) for level in "abc" if level != person["job"]]
    ways = [({name: v}, c) for name in options for v, c in options[name]]
    for one, two in combinations(options, 2):
        for (v, c), (w, d) in product(options[one], options[two]):
            ways.append(({one: v, two: w}, c + d))
    return ways


def accepted_ways(
    X: pd.DataFrame, h: Any, person: pd.DataFrame
) -> list[tuple[dict[str, Any], float]]:
    ways = every_way(X, person.iloc[0])
    rows = pd.concat([person] * len(ways), ignore_index=True).astype(
        {"income": float, "years": float}
    )
    for i, (way, _) in enumerate(ways):
        for name, value in way.items():
            rows.loc[i, name] = value
    ok = h(rows) > 0.5
    return [way for way, yes in zip(ways, ok, strict=True) if yes]


@pytest.mark.parametrize("seed", range(6))
def test_proven_is_what_a_loop_over_everything_finds(seed: int) -> None:
    X, h = small(seed), Linear(seed)
    people = small(seed + 100, 25)
    method = Offering(h, small_schema(X)).fit(X)
    plans = method.plans(people)
    seen = set()
    for i, plan in enumerate(plans):
        if plan.status == "already-accepted":
            assert h(people.iloc[[i]])[0] > 0.5
            continue
        ways = accepted_ways(X, h, people.iloc[[i]])
        assert (plan.status == "ok") == bool(ways)
        if plan.status == "ok":
            assert plan.cost is not None
            told = {change.feature.name: change.after for change in plan.changes}
            assert any(told == way and np.isclose(plan.cost, c) for way, c in ways)
            cheapest = min(c for _, c in ways)
            assert (plan.cheapest is not None) == np.isclose(plan.cost, cheapest)
        else:
            assert plan.evidence is not None
            assert plan.evidence.proven
            assert plan.evidence.asked == len(every_way(X, people.iloc[i]))
        seen.add(plan.status)
    assert "ok" in seen


def test_a_net_that_reads_the_encoding_is_asked_as_in_the_table() -> None:
    X = small(1, 60)
    schema, y = small_schema(X), (Linear(1)(X) > 0.4).astype(int)
    h = fit_mlp(X, y, schema, config=MLPConfig(epochs=30, lr=0.02), seed=1)
    people = small(7, 30)
    plans = Offering(h, schema).fit(X).plans(people)
    rejected = [i for i, plan in enumerate(plans) if plan.status != "already-accepted"]
    assert rejected
    for i in rejected:
        ways = accepted_ways(X, lambda rows: h.score(rows.astype(X.dtypes)), people.iloc[[i]])
        assert (plans[i].status == "ok") == bool(ways)


# ---- nothing that fails is shown ----------------------------------------------------------------


def edge(X: pd.DataFrame) -> np.ndarray:
    return np.where(X["debt"].to_numpy(dtype=np.float32) > np.float32(0.5), 0.9, 0.1)


def test_what_rounding_breaks_is_not_shown() -> None:
    """In double precision the offer is above the edge; in the column's own dtype it is on it."""
    X = pd.DataFrame({"debt": np.array([0.0, 0.25, 0.5, 0.75, 1.0] * 4, dtype=np.float32)})
    method = Offering(edge, Schema.infer(X).with_feature("debt", decimals=None)).fit(X)
    method.given = pd.DataFrame({"debt": [0.5 + 1e-8]})
    (plan,) = method.plans(X.iloc[[0]])
    assert plan.changes[0].after == 0.75  # found by trying; the offer did not hold
    accepted = Offering(edge, Schema.infer(X)).fit(X)
    accepted.given = pd.DataFrame({"debt": [1.0]})
    assert accepted.plans(X.iloc[[0]])[0].changes[0].after == 1.0


def test_a_score_exactly_at_the_cutoff_is_not_enough() -> None:
    """Neither for an offer, nor for what is tried instead: 5 costs less than 6, and is refused."""
    X = pd.DataFrame({"income": np.arange(11.0)})
    method = Offering(lambda X: X["income"].to_numpy() / 10, Schema.infer(X)).fit(X)
    for offer, after in ((5.0, 6.0), (7.0, 7.0)):
        method.given = pd.DataFrame({"income": [offer]})
        (plan,) = method.plans(X.iloc[[2]], min_robust=0.0)
        assert [change.after for change in plan.changes] == [after]
        assert (plan.cheapest is not None) == (after == 6.0)
    at_the_cutoff = X.iloc[[5]]
    assert method.plans(at_the_cutoff, min_robust=0.0)[0].status == "ok"  # h rejects the person


def test_a_row_that_stays_is_no_plan() -> None:
    """Even if h accepts it, which happens to a person whom h accepts already."""
    checker = example_checker()  # h is income / 50, and the last person has 40
    checked = checker.check(np.array([3, 3]), np.array([[1.0], [2 / 3]]))
    assert (checked.score > 0.5).all()
    assert checked.holds.tolist() == [False, True]


def test_a_rule_on_whole_rows_does_not_hide_a_dearer_change() -> None:
    """The cheapest change of income that h accepts breaks the rule; a larger one keeps it."""
    X = pd.DataFrame({"income": np.arange(11.0), "debt": np.full(11, 4.0)})
    h = lambda X: np.where((X["income"] == 4) | (X["income"] >= 8), 0.9, 0.1)  # noqa: E731
    schema = Schema.infer(X, immutable=["debt"]).model_copy(
        update={"relations": ("income >= 5 or income <= 3",)}
    )
    (plan,) = Offering(h, schema).fit(X).plans(X.iloc[[0]], min_robust=0.0)
    assert [change.after for change in plan.changes] == [8.0]


class _Edge(Classifier):
    """Reads Z: it accepts above 0.1, told by the ninth decimal."""

    def __init__(self) -> None:
        super().__init__(lambda X: np.zeros(len(X)), cutoff=0.1 + 1e-9)

    def reads(self, encoder: Any) -> bool:
        return True

    def score_encoded(self, Z: Array, *_: Any) -> Array:
        return Z[:, 0]


def test_close_scores_are_asked_again_as_the_row_would_be_written() -> None:
    """0.1 is 0.1000000015 in a column of single precision, and so above this cutoff."""
    X = pd.DataFrame({"debt": np.array([0.0, 0.5, 1.0], dtype=np.float32)})
    encoder = TableEncoder(Schema.infer(X).with_feature("debt", decimals=None)).fit(X)
    problem = Problem.of(encoder, _Edge(), X)
    observed = ObservedValues((np.array([0.0, 0.1]),))
    checker = PlanChecker(problem.read(X.iloc[:1]), observed, problem.rules, list)
    (found,) = checker.trial.search(checker.rules, np.array([0]))
    assert found.F_plus.tolist() == [[0.1]]


def test_the_gate_lets_through_only_what_h_accepts_within_the_rules() -> None:
    X, schema = small(0), small_schema(small(0))
    people = X[X["sex"] == "f"].iloc[:3]

    def h(X: pd.DataFrame) -> np.ndarray:
        return np.where((X["sex"] == "m") | (X["job"] == "c"), 0.9, 0.1)

    method = Offering(h, schema).fit(X)
    people = people.assign(job="a")
    problem = method.problem_
    gate = PlanChecker(
        problem.read(people),
        method.planning_.observed,
        problem.rules,
        lambda: relaxed_rules(problem.rules),
    )
    offers = [people.assign(sex="m"), people.assign(job="b"), people.assign(job="c"), people]
    rows = np.concatenate([method.problem_.encoder.features(offer) for offer in offers])
    checked = gate.check(np.tile(np.arange(3), 4), rows)
    assert checked.keeps_rules.reshape(4, 3).all(axis=1).tolist() == [False, True, True, True]
    assert (checked.score > 0.5).reshape(4, 3).all(axis=1).tolist() == [True, False, True, False]
    assert checked.holds.reshape(4, 3).tolist() == [
        [False] * 3,
        [False] * 3,
        [True] * 3,
        [False] * 3,
    ]
    assert method.plans(people.assign(job="c"))[0].status == "already-accepted"  # nobody rejected


@pytest.fixture(scope="module")
def example() -> Example:
    return make_example()


def applied(people: pd.DataFrame, i: int, plan: Plan) -> pd.DataFrame:
    row = people.iloc[[i]].copy()
    for change in plan.changes:
        name, dtype = change.feature.name, people[change.feature.name].dtype
        row[name] = pd.Series([change.after], index=row.index, dtype=dtype)
    return row


@pytest.mark.parametrize("asked", [{}, {"n": 4}, {"n": 2, "fewest_changes": True}])
def test_every_plan_holds_when_carried_out(
    method: Any, example: Example, asked: dict[str, Any]
) -> None:
    """From the words of the plan alone: the cells it names, put into the person's own row."""
    told = 0
    for i, plan in enumerate(method.plans(example.people, **asked)):
        kinds = [frozenset(c.feature.name for c in each.changes) for each in plan.every]
        assert len(set(kinds)) == len(kinds)
        assert len(kinds) <= asked.get("n", 1)
        for each in plan.every:
            row = applied(example.people, i, each)
            assert example_score(row)[0] > 0.5
            assert example_score(row)[0] == pytest.approx(each.score_after, abs=1e-6)
            broken = broken_rules(example.schema, example.people.iloc[[i]], row)
            assert not any(cells.to_numpy().any() for cells in broken.values())
            told += 1
    assert told > 20


def test_one_plan_is_what_recourse_gives_without_what_is_not_needed(
    method: Any, example: Example
) -> None:
    X_plus = method.recourse(example.people)
    found = method.assess(example.people, X_plus)
    plans = method.plans(example.people)
    several = method.plans(example.people, n=3)
    ok = np.flatnonzero(found["status"] == "ok")
    assert len(ok) > 10
    same = 0
    for i in ok:
        assert several[i].status == plans[i].status == "ok"
        asked = {c.feature.name for c in plans[i].changes}
        row, given = applied(example.people, i, plans[i]), X_plus.iloc[[i]]
        if asked <= set(given.columns[(given != example.people.iloc[[i]]).to_numpy()[0]]):
            same += all(np.all(row[name] == given[name]) for name in asked)
    assert same > 0.8 * len(ok)  # the others' recourse is fragile, and something sturdier is shown
    assert sum(len(plan.alternatives) for plan in several) > 10


def test_a_person_gets_the_same_plans_alone_as_among_others(method: Any, example: Example) -> None:
    whole = method.plans(example.people, n=3)
    some = example.people.iloc[[11, 3, 40]]
    alone = method.plans(some, n=3)
    for plan in alone:
        among = whole.of(plan.person)
        assert [each.changes for each in plan.every] == [each.changes for each in among.every]
        assert (plan.status, plan.reason) == (among.status, among.reason)


# ---- reasons ------------------------------------------------------------------------------------


def needs(name: str, least: float) -> Any:
    return lambda X: np.where(X[name].to_numpy(dtype=float) >= least, 0.9, 0.1)


ONE = pd.DataFrame({"age": [20], "income": [3], "years": [2]})


def three(**rules: Any) -> tuple[pd.DataFrame, Schema]:
    X = pd.DataFrame(list(product(range(18, 40, 2), range(1, 8), range(5))), columns=ONE.columns)
    schema = Schema.infer(X, immutable=["age"])
    for name, fields in rules.items():
        schema = schema.with_feature(name, **fields)
    return X, schema


@pytest.mark.parametrize(
    ("rules", "h", "kind", "feature", "after"),
    [
        ({}, needs("age", 30), "immutable", "age", 30),
        ({"income": {"direction": "decrease"}}, needs("income", 5), "direction", "income", 5),
        ({"income": {"max_step": 1.0}}, needs("income", 5), "step", "income", 5),
        ({"income": {"range": (1.0, 4.0)}}, needs("income", 5), "range", "income", 5),
    ],
)
def test_the_rule_that_stands_in_the_way_is_named_with_what_it_keeps(
    rules: dict[str, Any], h: Any, kind: str, feature: str, after: int
) -> None:
    X, schema = three(**rules)
    (plan,) = Offering(h, schema).fit(X).plans(ONE)
    assert (plan.status, plan.reason_code) == ("no-plan", "rules-block")
    (opening,) = plan.blocking_rules
    assert (opening.kind, opening.feature) == (kind, schema[feature])
    assert [(c.feature.name, c.after) for c in opening.changes] == [(feature, after)]
    assert opening.rule in opening.to_text()
    fixed = kind == "immutable"  # nobody is told to be somebody else
    assert (opening.to_text() in plan.to_text()) == (not fixed)
    assert (english()("evidence.fixed") in plan.to_text()) == fixed
    assert not plan.changes  # it is about the rule, and no plan
    assert plan.to_dict()["changes"] == []
    assert plan.to_frame()["feature"].isna().all()


@pytest.mark.parametrize(
    ("stated", "h", "text"),
    [
        (Rules(lock=("income",)), needs("income", 5), "income"),
        (Rules(max_changes=1), None, "at most one change"),
        (Rules(max_cost=0.1), needs("income", 5), "a cost of at most 0.1"),
        (Rules(ranges={"income": (None, 4)}), needs("income", 5), "between -∞ and 4"),
        (Rules(decrease=("income",)), needs("income", 5), "income may only fall"),
        (Rules(max_step={"income": 1}), needs("income", 5), "at most 1"),
        (Rules(allowed={"income": (4,)}), needs("income", 5), "one of: 4"),
        (Rules(relations=("income <= years",)), needs("income", 7), "income <= years"),
    ],
)
def test_so_is_a_rule_of_the_request(stated: Rules, h: Any, text: str) -> None:
    X, schema = three()

    def both(X: pd.DataFrame) -> np.ndarray:
        return np.where((X["income"] >= 5) & (X["years"] >= 3), 0.9, 0.1)

    method = Offering(h or both, schema).fit(X)
    assert method.plans(ONE)[0].status == "ok"
    person = ONE.assign(years=4) if stated.relations else ONE
    (plan,) = method.plans(person, rules=stated)
    assert (plan.status, plan.reason_code) == ("no-plan", "rules-block")
    assert len(plan.blocking_rules) == 1
    assert text in plan.blocking_rules[0].rule


def test_h_is_not_asked_about_people_whom_a_rule_does_not_bind() -> None:
    """Each with a limit of their own: what is tried for one must not grow with their number."""
    X, schema = three()
    asked: list[int] = []

    def h(X: pd.DataFrame) -> np.ndarray:
        asked.append(len(X))
        return np.asarray(np.full(len(X), 0.1))

    method = Offering(h, schema).fit(X)

    def rows_each(n: int) -> float:
        people = pd.concat([ONE] * n, ignore_index=True)
        own = {i: Rules(max_cost=0.1 + 0.01 * i) for i in range(n)}
        asked.clear()
        assert {p.reason_code for p in method.plans(people, rules=own)} == {"not-accepted"}
        return sum(asked) / n

    assert rows_each(6) == rows_each(2)


def test_values_that_a_request_names_are_tried_too() -> None:
    X, schema = three()
    method = Offering(needs("income", 5.4), schema).fit(X[X["income"] <= 5])
    assert method.plans(ONE)[0].status == "no-plan"
    (plan,) = method.plans(ONE, rules=Rules(allowed={"income": (2, 6)}))
    assert [c.after for c in plan.changes] == [6]


def test_values_that_one_person_names_are_nobody_elses() -> None:
    X = pd.DataFrame({"amount": np.repeat([1000.0, 3000.0, 5000.0], 5)})
    method = Offering(lambda X: np.where(X["amount"] <= 3500, 0.9, 0.1), Schema.infer(X)).fit(X)
    both = pd.DataFrame({"amount": [5000.0, 5000.0]}, index=["A", "B"])
    plans = method.plans(both, rules={"A": Rules(allowed={"amount": (3456,)})})
    assert [plan.changes[0].after for plan in plans] == [3456, 3000]
    assert plans.of("B").to_json() == method.plans(both.loc[["B"]]).of("B").to_json()


def two_people() -> pd.DataFrame:
    return pd.concat([ONE, ONE]).set_axis(["a", "b"])


def test_a_rule_stands_in_the_way_of_those_who_have_it() -> None:
    X, schema = three()
    method = Offering(needs("income", 5), schema).fit(X)
    given = {
        "a": Rules(lock=("income",), max_changes=2),
        "b": Rules(max_step={"income": 1}, relations=("income <= 4 or years >= 0",)),
    }
    plans = method.plans(two_people(), rules=given)
    assert [[o.kind for o in plan.blocking_rules] for plan in plans] == [["lock"], ["step"]]


def test_when_nothing_may_change_it_is_said() -> None:
    X, schema = three()
    method = Offering(needs("income", 5), schema).fit(X)
    (plan,) = method.plans(ONE, rules=Rules(lock=("income", "years")))
    assert plan.reason_code == "nothing-may-change"
    assert [o.rule for o in plan.blocking_rules] == ["income must not change"]


def test_a_net_is_not_asked_about_no_rows() -> None:
    """One person for whom nothing is left to try, and the library's own model."""
    X, schema = three()
    h = fit_mlp(X, X["income"] > 4, schema, config=MLPConfig(epochs=1), favourable=True)
    h.cutoff = float(np.median(h.score(X)))
    assert h.score(X.iloc[:0]).shape == (0,)
    method = Offering(h, schema).fit(X)
    one = X[~h.accepts(X)].head(1)
    (plan,) = method.plans(one, rules=Rules(lock=("income", "years")))
    assert (plan.status, plan.reason_code) == ("no-plan", "nothing-may-change")


def test_a_person_beyond_help_has_a_reason_and_no_rule_is_blamed() -> None:
    X, schema = three()
    (plan,) = Offering(lambda X: np.full(len(X), 0.2), schema).fit(X).plans(ONE)
    assert (plan.status, plan.reason_code, plan.blocking_rules) == ("no-plan", "not-accepted", ())
    assert plan.evidence is not None
    assert plan.evidence.proven
    assert plan.evidence.asked == 6 + 4 + 6 * 4  # age is fixed; every other pair of values
    assert "Proven for up to two changes" in plan.reason
    assert "number of changes: 34)" in plan.reason


def test_what_is_too_much_to_try_is_searched_and_not_proven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, schema = three()
    nobody = Offering(lambda X: np.full(len(X), 0.2), schema).fit(X)
    easy = Offering(needs("income", 4), schema).fit(X)
    assert easy.plans(ONE)[0].cheapest is not None
    monkeypatch.setattr(enumeration, "BUDGET", 24)  # what may not change makes no pairs
    (plan,) = nobody.plans(ONE)
    assert plan.evidence is not None
    assert (plan.evidence.proven, plan.evidence.asked) == (True, 6 + 4 + 6 * 4)
    monkeypatch.setattr(enumeration, "BUDGET", 1)
    monkeypatch.setattr(enumeration, "FEW", 1)
    (plan,) = nobody.plans(ONE)
    assert plan.evidence is not None
    assert not plan.evidence.proven
    assert plan.evidence.asked == 6 + 4
    assert "Searched, not proven" in plan.reason
    (plan,) = easy.plans(ONE)
    assert plan.status == "ok"  # one change is still tried
    assert plan.cheapest is not None  # and nothing at all costs less
    (plan,) = Offering(needs("income", 7), schema).fit(X).plans(ONE)
    assert plan.status == "ok"
    assert plan.cheapest is None  # pairs that cost less were not tried


# ---- the parts ----------------------------------------------------------------------------------


def test_a_menu_keeps_values_that_occur_within_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    X = pd.DataFrame({"a": np.linspace(0, 1, 5000), "b": ["x", "y"] * 2500})
    method = Offering(lambda X: np.full(len(X), 0.2), Schema.infer(X)).fit(X)
    values = method.planning_.observed.values
    assert len(values[0]) == enumeration.KEPT
    assert {0.0, 1.0} <= set(values[0]) <= set(method.problem_.encoder.features(X)[:, 0])
    assert values[1].tolist() == [0.0, 1.0]
    assert method.planning_.observed.cut.tolist() == [True, False]
    for budget, most in ((100_000, 50), (20, 20), (7, 0)):  # pairs, as b has one other level
        monkeypatch.setattr(enumeration, "BUDGET", budget)
        (plan,) = method.plans(X.iloc[:1])
        assert plan.evidence == Evidence(False, 999 + 1 + most, most, 1)
    assert thin(np.arange(10.0), 4).tolist() == [0.0, 3.0, 6.0, 9.0]
    # few of the kept values are left, and all are tried: but others that occur were not kept
    monkeypatch.undo()
    (plan,) = method.plans(X.iloc[:1], rules=Rules(ranges={"a": (0.5, 0.504)}, lock=("b",)))
    assert plan.evidence is not None
    assert plan.evidence.asked == plan.evidence.most < 10
    assert not plan.evidence.proven


def test_proven_is_only_said_where_no_value_that_occurs_was_left_out() -> None:
    X = pd.DataFrame({"a": np.arange(900), "b": np.arange(900) % 3})
    one = pd.DataFrame({"a": [10], "b": [1]})

    def alone(X: pd.DataFrame) -> np.ndarray:
        return np.where(X["a"] == 503, 0.9, 0.1)

    (plan,) = Offering(alone, Schema.infer(X)).fit(X).plans(one)
    assert [change.after for change in plan.changes] == [503]
    assert plan.cheapest is not None
    assert not plan.cheapest.proven  # pairs were made of some values only
    assert "on a grid of at most 50 values" in plan.to_text()
    both = Offering(lambda X: alone(X) * (X["b"] == 2).to_numpy(), Schema.infer(X)).fit(X)
    (plan,) = both.plans(one)
    assert plan.evidence == Evidence(False, 899 + 2 + 50 * 2, 50, 1)
    assert "Searched on a grid, not proven" in plan.reason
    near = Rules(ranges={"a": (480, 520)})  # 41 values: all pairs are tried
    (plan,) = both.plans(one, rules=near)
    assert [change.after for change in plan.changes] == [503, 2]
    assert plan.cheapest is not None
    assert plan.cheapest.proven


def test_where_rules_leave_no_value_that_occurs_nothing_is_proven() -> None:
    X = pd.DataFrame({"a": np.arange(60), "b": np.arange(60) % 3})
    one, schema = pd.DataFrame({"a": [10], "b": [1]}), Schema.infer(X)
    wide = schema.with_feature("a", range=(0, 1000), decimals=2)
    beyond = Rules(ranges={"a": (61, 100)}, lock=("b",))

    def at(value: float) -> Any:
        return Offering(lambda X: np.where(X["a"] == value, 0.9, 0.1), wide).fit(X)

    (plan,) = at(70.33).plans(one, rules=beyond)
    assert plan.evidence == Evidence(False, enumeration.BETWEEN, enumeration.BETWEEN, 1)
    (plan,) = at(100).plans(one, rules=beyond)
    assert [change.after for change in plan.changes] == [100]
    assert plan.cheapest is not None
    assert not plan.cheapest.proven


def test_a_narrow_rule_is_tried_with_the_values_it_leaves() -> None:
    """Thinning comes after the rules: a small step among many values still has values to go to."""
    X = pd.DataFrame({"amount": np.arange(0, 1000)})
    schema = Schema.infer(X).with_feature("amount", max_step=3.0)
    method = Offering(needs("amount", 502), schema).fit(X)
    (plan,) = method.plans(pd.DataFrame({"amount": [500]}))
    assert [c.after for c in plan.changes] == [502]


@pytest.mark.parametrize(
    "stated", [Rules(ranges={"amount": (3100, 3400)}), Rules(max_step={"amount": 900})]
)
def test_where_no_value_that_occurs_is_left_others_are_tried(stated: Rules) -> None:
    """Between the values of the training rows a rule may leave all there is to go to."""
    X = pd.DataFrame({"amount": np.repeat([1000, 2000, 3000, 4000], 5)})
    one = pd.DataFrame({"amount": [4000]})
    some = Offering(lambda X: np.where(X["amount"] < 3500, 0.9, 0.1), Schema.infer(X)).fit(X)
    (plan,) = some.plans(one, rules=stated)
    (change,) = plan.changes
    assert 3100 <= change.after < 3500
    never = Offering(lambda X: np.full(len(X), 0.1), Schema.infer(X)).fit(X)
    assert never.plans(one, rules=stated)[0].reason_code == "not-accepted"
    low = Offering(lambda X: np.where(X["amount"] < 2500, 0.9, 0.1), Schema.infer(X)).fit(X)
    (plan,) = low.plans(one, rules=stated)
    assert plan.reason_code == "rules-block"
    assert [change.after for change in plan.blocking_rules[0].changes] == [2000]


def test_the_schemas_own_step_may_leave_no_value_that_occurs() -> None:
    X = pd.DataFrame({"amount": np.repeat([1000.0, 2000.0], 5)})
    schema = Schema.infer(X).with_feature("amount", max_step=300.0)
    method = Offering(lambda X: np.where(X["amount"] <= 1701, 0.9, 0.1), schema).fit(X)
    (plan,) = method.plans(pd.DataFrame({"amount": [2000.0]}))
    assert [change.after for change in plan.changes] == [1700.0]


def test_spread_takes_the_best_and_then_what_differs() -> None:
    moved = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=bool)
    worth = np.array([2.0, 1.9, 1.8, 1.7])
    assert pick_diverse(moved, worth, 1) == [0]
    assert pick_diverse(moved, worth, 4) == [0, 3, 2]  # the second changes what the first does
    assert pick_diverse(moved, worth, 4, first=2) == [2, 3]  # the others change all that it does
    assert pick_diverse(moved, np.array([2.0, 1.9, 0.5, 1.7]), 4) == [
        0,
        3,
    ]  # the third is not worth it
    assert pick_diverse(moved, np.array([2.0, 1.9, 0.5, 1.7]), 4, worse=np.inf) == [0, 3, 2]
    assert pick_diverse(moved, np.array([2.0, 1.9, -np.inf, 1.7]), 4, worse=np.inf) == [0, 3]
    assert pick_diverse(moved[:0], worth[:0], 3) == []


def test_methods_without_a_verifier_refuse_to_undo(example: Example) -> None:
    nearest = NearestNeighbour(Classifier(example_score), example.schema).fit(example.X, example.y)
    with pytest.raises(UserError, match="fewest_changes needs a verifier"):
        nearest.plans(example.people, fewest_changes=True)
    with pytest.raises(UserError, match="n is 0; it must be a whole number from 1 to 100"):
        nearest.plans(example.people, n=0)
    assert any(plan.alternatives for plan in nearest.plans(example.people, n=3))
