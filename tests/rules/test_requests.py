"""Rules at request time: each kind by hand, against a second reading in original units, and errors
that name the rule and the row."""

from __future__ import annotations

import json
import operator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from genrecourse.errors import UserError
from genrecourse.rules.book import RuleBook, split_by_rules
from genrecourse.rules.kinds import KINDS, Rules
from genrecourse.rules.relations import Possible, parse_relation
from genrecourse.rules.requests import request_book
from genrecourse.rules.stated import PersonalRules, read_rules
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.schema import Feature, Schema

SCHEMA = Schema(
    features=(
        Feature(name="income", kind="number", range=(0, 100), decimals=0, cost_weight=2.0),
        Feature(name="late-60", kind="number", range=(0, 4), decimals=0),
        Feature(name="late-90", kind="number", range=(0, 8), decimals=0),
        Feature(name="marital status", kind="category", categories=("Single", "Married")),
        Feature(
            name="relation", kind="category", categories=("Husband", "Wife", "None", "Own-kid")
        ),
        Feature(name="grade", kind="category", categories=("low", "mid", "high"), ordered=True),
        Feature(name="sex", kind="category", categories=("f", "m"), role="immutable"),
        Feature(name="score", kind="number", missing=True),
    )
)
TABLE = pd.DataFrame(
    {
        "income": [0, 100],
        "late-60": [0, 4],
        "late-90": [0, 8],
        "marital status": ["Single", "Married"],
        "relation": ["Husband", "Own-kid"],
        "grade": ["low", "high"],
        "sex": ["f", "m"],
        "score": [0.0, 10.0],
    }
)
ENCODER = TableEncoder(SCHEMA).fit(TABLE)
RULES = RuleBook.of_schema(ENCODER)
START = (50, 2, 1, "Single", "None", "mid", "f", 5.0)


def people(*rows: tuple[Any, ...], index: Any = None) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=SCHEMA.names, index=index)


def compiled(
    rules: Any, X: pd.DataFrame | None = None, asking: np.ndarray | None = None
) -> RuleBook:
    X = people(START) if X is None else X
    return request_book(rules, RULES, X, asking)


def may(rules: Any, start: tuple[Any, ...] = START, **changes: Any) -> bool:
    """May this person make these changes?"""
    X = people(start)
    X_plus = X.copy()
    for name, value in changes.items():
        column = {"late60": "late-60", "late90": "late-90", "marital": "marital status"}
        X_plus[column.get(name, name)] = value
    F, F_plus = ENCODER.features(X), ENCODER.features(X_plus)
    return bool(compiled(rules, X).feasible(F, F_plus)[0])


# ---- each kind of rule, by hand ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "changes", "answer"),
    [
        ({}, {"income": 60, "grade": "low"}, True),
        ({}, {"sex": "m"}, False),  # the schema's rules are there too
        ({}, {"income": 101}, False),
        ({"lock": ["income"]}, {"income": 51}, False),
        ({"lock": "income"}, {"income": 51}, False),
        ({"lock": ["income"]}, {"grade": "low"}, True),
        ({"ranges": {"income": [40, 60]}}, {"income": 60}, True),
        ({"ranges": {"income": [40, 60]}}, {"income": 61}, False),
        ({"ranges": {"income": [None, 60]}}, {"income": 0}, True),
        ({"ranges": {"income": [60, 70]}}, {"grade": "low"}, True),  # outside, but left alone
        ({"ranges": {"income": [60, 200]}}, {"income": 150}, False),  # the schema's range holds
        ({"allowed": {"grade": ["high"]}}, {"grade": "high"}, True),
        ({"allowed": {"grade": ["high"]}}, {"grade": "low"}, False),
        ({"allowed": {"income": [55, 60]}}, {"income": 60}, True),
        ({"allowed": {"income": 60}}, {"income": 59}, False),
        ({"increase": ["income"]}, {"income": 51}, True),
        ({"increase": ["income"]}, {"income": 49}, False),
        ({"increase": ["grade"]}, {"grade": "low"}, False),
        ({"decrease": ["grade"]}, {"grade": "low"}, True),
        ({"decrease": ["income"]}, {"income": 51}, False),
        ({"max_step": {"income": 10}}, {"income": 60}, True),
        ({"max_step": {"income": 10}}, {"income": 61}, False),
        ({"max_changes": 1}, {"income": 60}, True),
        ({"max_changes": 1}, {"income": 60, "grade": "low"}, False),
        ({"max_changes": 0}, {}, True),
        ({"max_cost": 0.2}, {"income": 60}, True),  # 2 * 0.1
        ({"max_cost": 0.2}, {"income": 61}, False),
        ({"max_cost": 1.2}, {"income": 60, "grade": "low"}, True),
        ({"max_cost": 1.19}, {"income": 60, "grade": "low"}, False),
        ({"relations": "late-90 <= late-60"}, {"late90": 2}, True),
        ({"relations": "late-90 <= late-60"}, {"late90": 3}, False),
        ({"relations": "late-90 <= late-60"}, {"late90": 3, "late60": 3}, True),
    ],
)
def test_each_kind(rule: dict[str, Any], changes: dict[str, Any], answer: bool) -> None:
    assert may(rule, **changes) is answer


def test_a_number_leaves_the_usual_only_for_what_its_owner_has_placed() -> None:
    step = SCHEMA.with_feature("score", max_step=2.0, decimals=0)
    encoder = TableEncoder(step).fit(TABLE)
    rows = [(*START[:-1], score) for score in (-3.0, -3.0, -3.0, 5.0)]  # 0 to 10 is usual
    given = {
        1: Rules(increase=("score",)),
        2: Rules(ranges={"score": (-4, None)}),
        3: Rules(ranges={"score": (4, None)}),
    }
    X = people(*rows)
    rules = request_book({"people": given}, RuleBook.of_schema(encoder), X)
    low, high = rules.reach(7, encoder.features(X)[:, 7])
    usual = RuleBook.of_schema(encoder).reach(7, encoder.features(X)[:, 7])
    assert (low[0], high[0]) == (usual[0][0], usual[1][0])
    assert low[1] > high[1]  # a rise alone leads to nothing that is usual
    assert 10 * low[2:] == pytest.approx([-4, 4])
    assert 10 * high[2:] == pytest.approx([-1, 7])


def test_a_relation_that_x_breaks_binds_only_plans_that_touch_it() -> None:
    """What a plan leaves alone is not the plan's doing; what it touches must be right after it."""
    start = (50, 1, 3, "Single", "None", "mid", "f", 5.0)  # 3 payments 90 days late, 1 of 60
    rule = {"relations": ["late-90 <= late-60"]}
    assert may(rule, start)
    assert may(rule, start, income=60)
    assert not may(rule, start, late90=2)  # better, but still broken
    assert may(rule, start, late90=1)
    assert may(rule, start, late60=4)


def test_nothing_known_of_a_missing_value_is_no_broken_rule() -> None:
    start = (*START[:-1], np.nan)
    assert may({"relations": ["income >= score"]}, start, income=1)
    assert not may({"relations": ["income >= score"]}, start, income=1, score=2.0)
    assert may({"increase": ["income"]}, start, score=2.0)
    assert not may({"increase": ["score"]}, start, score=2.0)  # not known to be a rise


# ---- relations --------------------------------------------------------------------------------

SIGNS = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
    "!=": operator.ne,
}
MEANT: list[tuple[str, Any]] = [
    *[
        (f"late-90 {s} late-60", lambda r, o=o: o(r["late-90"], r["late-60"]))
        for s, o in SIGNS.items()
    ],
    *[(f"3 {s} late-60", lambda r, o=o: o(3, r["late-60"])) for s, o in SIGNS.items()],
    ("late-90 ≤ 2", lambda r: r["late-90"] <= 2),
    (
        "if marital status = Married then relation = Husband or Wife",
        lambda r: r["marital status"] != "Married" or r["relation"] in ("Husband", "Wife"),
    ),
    (
        "IF 'marital status' == \"Married\" THEN relation = Husband or relation = Wife",
        lambda r: r["marital status"] != "Married" or r["relation"] in ("Husband", "Wife"),
    ),
    ("relation != Own-kid or None", lambda r: r["relation"] not in ("Own-kid", "None")),
    ("late-60 = 1 or 3", lambda r: r["late-60"] in (1, 3)),
    ("late-60 != 1 or 3", lambda r: r["late-60"] not in (1, 3)),
    ("grade >= mid", lambda r: r["grade"] != "low"),
    ("grade < mid", lambda r: r["grade"] == "low"),
    (
        "not (late-60 > 1 and grade = low) or late-90 = 0",
        lambda r: not (r["late-60"] > 1 and r["grade"] == "low") or r["late-90"] == 0,
    ),
    (
        "late-60 > 1 or late-90 > 1 and grade = high",
        lambda r: r["late-60"] > 1 or (r["late-90"] > 1 and r["grade"] == "high"),
    ),
]


def every_row() -> pd.DataFrame:
    return people(
        *[
            (50, a, b, m, r, g, "f", 5.0)
            for a, b, m, r, g in product(
                range(5),
                range(4),
                SCHEMA["marital status"].categories,
                SCHEMA["relation"].categories,
                SCHEMA["grade"].categories,
            )
        ]
    )


@pytest.mark.parametrize(("text", "meant"), MEANT, ids=[text for text, _ in MEANT])
def test_relations_mean_what_they_say(text: str, meant: Any) -> None:
    X = every_row()
    F = ENCODER.features(X)
    relation = parse_relation(text, ENCODER)
    truth = relation({j: Possible.known(F[:, j]) for j in range(F.shape[1])})
    expected = [meant(row) for row in X.to_dict("records")]
    assert (np.asarray(truth) == np.where(expected, 1, -1)).all()


@pytest.mark.parametrize("text", [text for text, _ in MEANT])
def test_what_is_called_certain_is_so_for_every_completion(text: str) -> None:
    """With some features open, 1 and -1 are promises over all that they may become."""
    X = every_row()
    F = ENCODER.features(X)
    relation = parse_relation(text, ENCODER)
    start = people(START)
    request = compiled({"ranges": {"late-90": [0, 3]}}, start)
    whole = request.possible(ENCODER.features(start))
    for known in product([True, False], repeat=len(relation.features)):
        fixed = [j for j, is_known in zip(relation.features, known, strict=True) if is_known]
        view = {j: Possible.known(F[:, j]) if j in fixed else whole[j] for j in range(F.shape[1])}
        said = np.broadcast_to(relation(view), len(F))
        exact = relation({j: Possible.known(F[:, j]) for j in range(F.shape[1])})
        _, group = np.unique(F[:, fixed], axis=0, return_inverse=True)
        for g in range(group.max() + 1):
            rows = np.flatnonzero(group.reshape(-1) == g)
            found, truth = set(said[rows]), set(exact[rows])
            assert len(found) == 1
            one = found.pop()
            assert one == 0 or truth == {one}, (fixed, one, truth)
            if len(relation.features) == 1 or not fixed:
                assert one != 0 or len(truth) == 2  # and with one comparison it is no less


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("late-90 <= latency", "'latency' is neither a number nor a feature"),
        ("latency <= 3", "'latency' is no feature"),
        ("relation = Uncle", "'Uncle' is none of the levels of 'relation'"),
        ("relation <= Wife", "have no order"),
        ("late-90", "expected a sign such as"),
        ("late-90 <= ", "expected a feature or a value"),
        ("if late-90 <= 3", "'then'"),
        ("(late-90 <= 3", "bracket"),
        ("'late-90 <= 3", "not closed"),
        ("late-90 <= 3 late-60", "from 'late-60' on"),
        ("late-90 <= 1 or 2", "takes one value"),
        ("late-90 = relation", "same kind"),
        ("late-90 ! 3", "cannot read"),
    ],
)
def test_relations_that_cannot_be_read(text: str, said: str) -> None:
    with pytest.raises(UserError, match="the rule") as caught:
        parse_relation(text, ENCODER)
    assert text in str(caught.value)
    assert said in str(caught.value)


# ---- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"lock": ["salary"]}, "'salary', which is no feature"),
        ({"lock": ["incom"]}, r"'incom' \(did you mean 'income'\?\), which is no feature"),
        ({"relations": ["incom > 3"]}, r"'incom' \(did you mean 'income'\?\) is no feature"),
        ({"ranges": {"grade": [0, 1]}}, "'grade', which is a category"),
        ({"max_step": {"grade": 1}}, "'grade', which is a category"),
        ({"allowed": {"grade": ["top"]}}, "'top', which is none of its levels"),
        ({"allowed": {"income": [40, 40.5]}}, "40.5, but it has 0 decimals"),
        ({"allowed": {"income": ["much"]}}, "give numbers"),
        ({"allowed": {"income": [60, 60.5]}}, "60.5, but it has 0 decimals"),
        ({"increase": ["relation"]}, "no order"),
        ({"increase": ["income"], "decrease": ["income"]}, "only increase and only decrease"),
        ({"ranges": {"income": [5, 3]}}, "must be the smaller"),
        ({"max_changes": -1}, "max_changes"),
        (
            {"locks": ["income"]},
            r"no key 'locks' \(did you mean 'lock'\?\); the keys are lock, ranges.* single",
        ),
        (7, "give Rules"),
    ],
)
def test_mistakes_are_named(rule: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        compiled(rule)


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        # bob has income 50 and late-90 > late-60
        ({"ranges": {"income": [60, 70]}, "decrease": ["income"]}, "'income' between 60 and 70"),
        ({"ranges": {"income": [60, 70]}, "max_step": {"income": 5}}, "'income' between 60 and 70"),
        ({"ranges": {"income": [50.2, 50.8]}}, "'income' between 50.2 and 50.8"),
        ({"ranges": {"income": [200, 300]}}, "'income' between 200 and 300"),
        ({"allowed": {"income": [200]}}, r"'income' one of \[200\]"),
        ({"allowed": {"grade": ["low"]}, "increase": ["grade"]}, r"'grade' one of \['low'\]"),
        (
            {"lock": ["late-60", "late-90"], "relations": "late-90 <= late-60"},
            "'late-90 <= late-60'",
        ),
        ({"relations": "late-90 > 20"}, "'late-90 > 20'"),
        ({"relations": "if sex = f then relation = Wife", "lock": "relation"}, "if sex = f"),
    ],
)
def test_a_rule_that_nobody_can_meet_names_itself_and_the_row(
    rule: dict[str, Any], named: str
) -> None:
    ann = (65, 8, 21, "Single", "Wife", "low", "f", 5.0)
    if "income" in str(rule.get("allowed")) or "200" in named:
        ann = (200, *ann[1:])
    if "50.2" in named:
        ann = (50.5, *ann[1:])
    if "<=" in named:
        ann = (*ann[:2], 8, *ann[3:])
    bob = (50, 1, 3, "Single", "None", "mid", "f", 5.0)
    X = people(ann, bob, index=["ann", "bob"])
    compiled(rule, X.loc[["ann"]])  # who meets it already may keep it
    with pytest.raises(UserError, match=named) as caught:
        compiled(rule, X)
    assert "'bob'" in str(caught.value)
    assert "(1 such row in all); change the rule, or leave such rows out" in str(caught.value)
    compiled(rule, X, np.array([True, False]))  # bob asks for nothing


@pytest.mark.parametrize(
    ("name", "beside"),
    [
        ("income", {"ranges": {"income": [60, 90]}}),
        ("marital status", {"allowed": {"marital status": ["Married"]}}),
    ],
)
def test_a_locked_feature_may_have_a_value_that_no_plan_could_give(
    name: str, beside: dict[str, Any]
) -> None:
    """What stays breaks no rule on its own values; the lock is kept all the same."""
    book = request_book({"lock": [name], **beside}, RULES, people(START))
    j = SCHEMA.names.index(name)
    assert book.locked[0, j]
    F = ENCODER.features(people(START))
    assert book.feasible(F, F).all()
    moved = F.copy()
    moved[0, j] = 0.75 if name == "income" else 1.0  # within the other rule
    assert not book.feasible(F, moved).any()
    assert request_book(beside, RULES, people(START)).feasible(F, moved).all()


def test_numbers_in_a_rule_are_written_as_people_do() -> None:
    rich = pd.concat([people(START)] * 2, ignore_index=True)
    with pytest.raises(UserError, match=r"between 200,000,000 and 300,000,000\.5,") as caught:
        compiled({"ranges": {"income": [2e8, 300_000_000.5]}}, rich)
    assert "(2 such rows in all)" in str(caught.value)


# ---- people -----------------------------------------------------------------------------------


def test_rules_of_each_person() -> None:
    X = people(START, START, START, index=[10, 11, 12])
    given = PersonalRules(
        people={11: Rules(lock=("income",)), "12": Rules(max_changes=1)},
        default=Rules(max_step={"income": 5}),
    )
    request = compiled(given, X)
    F = ENCODER.features(X)
    far, two = F.copy(), F.copy()
    far[:, 0] += 0.1
    two[:, 0] += 0.04
    two[:, 5] = 0
    assert request.feasible(F, far).tolist() == [False] * 3  # their own come on top
    F_near = F.copy()
    F_near[:, 0] += 0.04
    assert request.feasible(F, F_near).tolist() == [True, False, True]
    assert request.feasible(F, two).tolist() == [True, False, False]
    assert request.take([1, 0]).feasible(F[:2], two[:2]).tolist() == [False, True]
    assert request.take(np.array([True, False, True])).feasible(F[:2], two[:2]).tolist() == [
        *(True, False),
    ]
    # several x_plus a person, and a whole grid of values of one feature
    both = np.stack([far, two], axis=1)
    assert request.feasible(F[:, None], both).tolist() == [
        *([False, True], [False, False], [False, False]),
    ]
    grid = np.array([0.45, 0.5, 0.6])
    assert request.allowed(0, F[:, 0][:, None], grid[None]).tolist() == [
        *([True, True, False], [False, True, False], [True, True, False]),
    ]
    assert request.is_unbound.tolist() == [False] * 3
    assert compiled({"default": {}, "people": {11: {"lock": "income"}}}, X).is_unbound.tolist() == [
        *(True, False, True),
    ]


ORGANISATION = Rules(
    lock=("grade",),
    ranges={"income": (20, None), "score": (1, 5)},
    allowed={"relation": ("Wife", "None")},
    increase=("late-60",),
    max_step={"income": 30},
    max_changes=3,
    relations=("late-90 <= late-60",),
)


def test_both_rules_hold_where_two_speak() -> None:
    own = Rules(
        lock=("late-90", "grade"),
        ranges={"income": (None, 60)},
        allowed={"relation": ("None", "Husband"), "marital status": ("Single",)},
        decrease=("late-60", "score"),
        max_step={"income": 40, "score": 2},
        max_cost=1.5,
    )
    both = ORGANISATION.also(own)
    assert both == Rules(
        lock=("grade", "late-90", "late-60"),  # what may go neither way stays
        ranges={"income": (20, 60), "score": (1, 5)},
        allowed={"relation": ("None",), "marital status": ("Single",)},
        decrease=("score",),
        max_step={"income": 30, "score": 2},
        max_changes=3,
        max_cost=1.5,
        relations=("late-90 <= late-60",),
    )
    assert ORGANISATION.also(Rules()) == ORGANISATION == Rules().also(ORGANISATION)
    # the rules of one who is bound by both refuse what either refuses, and nothing else
    X = people(START, START, START, index=["default", "own", "both"])
    free = {"default": {}, "people": {"default": ORGANISATION, "own": own, "both": both}}
    request, rng = compiled(free, X), np.random.default_rng(0)
    F = ENCODER.features(X)
    for _ in range(300):
        row = F[0].copy()
        for j in rng.choice(len(row), rng.integers(1, 4), replace=False):
            levels = ENCODER.blocks[j].n_levels
            row[j] = rng.integers(levels) if levels else rng.integers(0, 11) / 10
        one, two, all_ = request.feasible(F, np.repeat(row[None], 3, axis=0))
        assert (one and two) == all_


def test_nobody_is_rid_of_a_rule_by_stating_another() -> None:
    X = people(START, START, index=["ann", "bob"])
    given = {"default": ORGANISATION, "people": {"ann": Rules(max_changes=5)}}
    F = ENCODER.features(X)
    graded = F.copy()
    graded[:, 5] = 2
    assert compiled(given, X).feasible(F, graded).tolist() == [False, False]
    again = read_rules(ORGANISATION).also(read_rules({"ann": Rules(lock="score")}))
    assert compiled(again, X).locked[:, [5, 7]].tolist() == [[True, True], [True, False]]


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (Rules(ranges={"score": (6, 8)}), "row 'ann': the rules 'score' between 1 and 5 and"),
        (Rules(allowed={"relation": ("Own-kid",)}), "leave no value that keeps both"),
    ],
)
def test_rules_at_odds_are_named_with_the_row(own: Rules, said: str) -> None:
    with pytest.raises(UserError, match=said):
        compiled({"default": ORGANISATION, "people": {"ann": own}}, people(START, index=["ann"]))


def test_listed_values_of_one_person_bind_nobody_else() -> None:
    X = people(START, START, index=["a", "b"])
    request = compiled({"a": Rules(allowed={"income": (60.0, 70.0)})}, X)
    F = ENCODER.features(X)
    values = np.array([0.6, 0.65, 0.7])
    assert request.allowed(0, F[:, 0][:, None], values[None]).tolist() == [
        *([True, False, True], [True, True, True]),
    ]


def test_a_relation_of_one_person_binds_nobody_else() -> None:
    X = people(START, START, START, index=["a", "b", "c"])
    at_most, at_least = "late-90 <= late-60", "late-90 >= late-60 or late-90 <= 1"
    own = {"a": Rules(relations=(at_most,)), "b": Rules(relations=(at_least,))}
    more = X.assign(**{"late-90": 3})  # more than late-60, which is 2
    request, F, F_plus = compiled(own, X), ENCODER.features(X), ENCODER.features(more)
    assert request.feasible(F, F_plus).tolist() == [False, True, True]
    same = ENCODER.features(X.assign(**{"late-60": 4, "late-90": 2}))
    assert request.feasible(F, same).tolist() == [True, False, True]
    assert request.take([2, 0]).feasible(F[:2], F_plus[:2]).tolist() == [True, False]


def test_a_label_that_no_row_has_is_refused() -> None:
    with pytest.raises(UserError, match="'carol'"):
        compiled({"carol": Rules()}, people(START, index=["ann"]))


def test_rules_are_data() -> None:
    given = Rules(
        lock=("sex",), ranges={"income": (None, 5.0)}, allowed={"grade": ("low",)}, max_cost=2.0
    )
    assert read_rules(json.loads(given.key())).default == given
    assert read_rules(given.model_dump()).default == given
    assert read_rules({"people": {"7": {"lock": "age"}}}).people["7"].lock == ("age",)
    assert read_rules({7: {"lock": "age"}}).people == {7: Rules(lock=("age",))}
    with pytest.raises(UserError, match=r"rules: 'people\.7' has no key 'locks' \(did you mean"):
        read_rules({7: {"locks": "age"}})
    with pytest.raises(ValidationError, match="smaller"):
        Rules(ranges={"income": (5.0, 3.0)})


def test_cost_is_the_librarys() -> None:
    """Random pairs, missing values and all, against `Cost` on Z."""
    rng = np.random.default_rng(0)
    X = people(*[START] * 200)
    request = compiled({"max_cost": 1.0}, X)
    F = ENCODER.features(X)
    F_plus = F.copy()
    for j, feature in enumerate(SCHEMA):
        new = (
            rng.integers(len(feature.categories), size=200)
            if feature.is_category
            else rng.random(200)
        )
        F_plus[:, j] = np.where(rng.random(200) < 0.5, new, F[:, j])
    F[::3, 7] = np.nan
    expected = Cost(ENCODER)(ENCODER.from_features(F), ENCODER.from_features(F_plus))
    assert np.allclose(request.cost(F, F_plus), expected)


# ---- one rule book ----------------------------------------------------------------------------


def test_each_field_of_the_rules_has_one_kind() -> None:
    assert sorted(kind.field for kind in KINDS) == sorted(Rules.model_fields)


IN_BOTH = [
    ("income", {"range": (20.0, 60.0)}, Rules(ranges={"income": (20, 60)})),
    ("income", {"range": (20.0, np.inf)}, Rules(ranges={"income": (20, None)})),
    ("income", {"direction": "increase"}, Rules(increase="income")),
    ("grade", {"direction": "decrease"}, Rules(decrease="grade")),
    ("income", {"max_step": 10.0}, Rules(max_step={"income": 10})),
    ("score", {"max_step": 2.0}, Rules(max_step={"score": 2})),
    ("score", {"direction": "decrease"}, Rules(decrease="score")),
    ("grade", {"role": "immutable"}, Rules(lock="grade")),
]


@pytest.mark.parametrize(("name", "fields", "rules"), IN_BOTH)
def test_a_rule_means_the_same_in_the_schema_and_in_a_request(
    name: str, fields: dict[str, Any], rules: Rules
) -> None:
    free = Schema(features=tuple(f.model_copy(update={"range": None}) for f in SCHEMA))
    ruled = RuleBook.of_schema(TableEncoder(free.with_feature(name, **fields)).fit(TABLE))
    j, encoder = free.names.index(name), TableEncoder(free).fit(TABLE)
    values = np.array(
        [0, 1, 2, np.nan] if free[name].is_category else [*np.arange(11) / 10, np.nan]
    )
    X = people(*[START] * len(values))
    asked = request_book(rules, RuleBook.of_schema(encoder), X, np.zeros(len(X), dtype=bool))
    moves = values[:, None], values[None, :]
    assert not ruled.allowed(j, *moves).all()
    np.testing.assert_array_equal(asked.allowed(j, *moves), ruled.allowed(j, *moves))
    np.testing.assert_array_equal(
        asked.clip(*(np.tile(v[:, None], len(free)) for v in (values, values[::-1])))[:, j],
        ruled.clip(*(np.tile(v[:, None], len(free)) for v in (values, values[::-1])))[:, j],
    )
    if not free[name].is_category:
        low, high = asked.reach(j, values)
        expected = ruled.reach(j, values)
        can = expected[0] <= expected[1]
        np.testing.assert_array_equal(low <= high, can)
        np.testing.assert_allclose(low[can], expected[0][can])
        np.testing.assert_allclose(high[can], expected[1][can])


@pytest.mark.parametrize("group", [[0, 1, 1, 0], [1, 1, 1, 1]])
def test_take_gives_each_row_its_own_rules(group: list[int]) -> None:
    X = people(START, START, index=["a", "b"])
    sets = {"a": Rules(lock="income", relations="late-90 <= 3"), "b": Rules(max_cost=0.5)}
    book = compiled(sets, X).take(group)
    assert book.locked[:, 0].tolist() == [i == 0 for i in group]
    assert book.max_cost.tolist() == [np.inf if i == 0 else 0.5 for i in group]
    assert [relation.text for relation in book.relations] == (
        ["late-90 <= 3"] if 0 in group else []
    )
    assert book.applies.shape == (4, len(book.relations))
    assert split_by_rules(book, np.array([2, 3]))[0][0].tolist() == [0, 1]
    assert split_by_rules(RULES, np.array([2, 3]))[0][1] is None
