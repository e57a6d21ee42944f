"""Whatever the schema, the table, the classifier and the rules of a request: every plan holds.

Schemas, tables and classifiers are drawn by hypothesis, rules from seeds, always the same ones; and
the real data sets, where they are on this machine. What is shown is judged by h itself and by rules
kept by hand (`plan_tally`). `make soak` sets GENRECOURSE_SOAK_ROWS for a longer run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from genrecourse.data.datasets import load_dataset
from genrecourse.errors import UserError
from genrecourse.evaluation import checks
from genrecourse.genre import sample_constrained
from genrecourse.methods.base import Method
from genrecourse.methods.genre import GenRe, Training
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.planning import enumeration
from genrecourse.planning.plans import Plans
from genrecourse.table.schema import Schema
from genrecourse.trust import retrained as copies
from tests.support.plan_tally import Tally
from tests.support.random_rules import REFUSED, Asked, answered, asked_at_random
from tests.support.random_tables import ROWS, TINY, Case, cases, reproducible
from tests.support.rules_by_hand import KINDS, ByHand

N = 5  # plans asked for
REJECTED, ACCEPTED = 120, 4  # people of one random table
AGAIN = 6  # of them who have no plan, and are asked again with rules

# what a plan is chosen by need not be good here, only quick; whatever is shown has to hold
QUICK = [
    (enumeration, "BUDGET", 2500),  # pairs of changes tried: a wide table is only searched
    (copies, "LEAST", 20),
    (copies, "MOST", 20),
    (sample_constrained, "MANY", 128),
]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in QUICK:
        monkeypatch.setattr(module, name, value)


# ---- one table, asked in every way ---------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A fitted method and the people who ask it."""

    method: Method
    h: Callable[[pd.DataFrame], Any]  # the user's own: a table in, scores out
    schema: Schema
    X: pd.DataFrame
    people: pd.DataFrame
    seed: int

    def check(self, tally: Tally) -> None:
        """Without rules, with the same for everybody, and with everybody's own."""
        tally.counts["tables"] += 1
        free = self.method.plans(self.people, n=N)
        self._look(tally, free, {})
        # rules take plans away: of those who have none without any, some are enough
        none = [plan.person for plan in free if plan.status == "no-plan"][AGAIN:]
        asking = replace(self, people=self.people.drop(index=none))
        asking._look(tally, *asking._same_for_all())
        plans, own = asking._each_their_own(tally)
        asking._look(tally, plans, own)
        for after in plans:
            if not own[after.person].stated():
                tally.unbound(free.of(after.person), after)

    def _look(self, tally: Tally, plans: Plans, asked: dict[Any, Asked]) -> None:
        tally.look(plans, self.people, self.h, ByHand.of(self.schema, self.X), asked, N)
        tally.counts["ruled people"] += sum(bool(own.stated()) for own in asked.values())

    def _draws(self, stream: int) -> Iterator[Asked]:
        rng = np.random.default_rng([self.seed, stream])
        while True:
            yield asked_at_random(rng, self.schema, self.X)

    def _same_for_all(self) -> tuple[Plans, dict[Any, Asked]]:
        """The first of some rules that everybody can meet."""
        for asked in self._draws(1):
            try:
                plans = self.method.plans(self.people, n=N, rules=asked.stated())
            except UserError as error:
                assert REFUSED.match(str(error))  # noqa: PT017
            else:
                break
        return plans, dict.fromkeys(self.people.index, asked)

    def _each_their_own(self, tally: Tally) -> tuple[Plans, dict[Any, Asked]]:
        draws, hand = self._draws(2), ByHand.of(self.schema, self.X)
        own = {label: next(draws) for label in self.people.index}

        def seen(label: Any, asked: Asked, rule: str) -> None:
            tally.refusal(hand, self.X, self.people.loc[[label]], asked, rule)

        def ask(rules: Any) -> Plans:
            return self.method.plans(self.people, n=N, rules=rules)

        return answered(ask, own, lambda _: next(draws), seen), own


def assert_nothing_is_wrong(tally: Tally, capsys: pytest.CaptureFixture[str], name: str) -> None:
    with capsys.disabled():
        print(f"\n{name}\n{tally}")  # noqa: T201
    assert not tally.wrong, "\n".join([str(dict(tally.wrong)), *tally.examples])


# ---- random ones ---------------------------------------------------------------------------------


def test_every_plan_holds(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()

    @reproducible(max_examples=ROWS // 20)
    @given(case=cases(roles=True))
    def look(case: Case) -> None:
        if tally.counts["plans"] < ROWS:  # some tables leave nobody a plan
            for table in tables(case):
                table.check(tally)

    look()
    assert_nothing_is_wrong(tally, capsys, "random schemas")
    assert tally.counts["plans"] >= ROWS
    kinds = [f"schema's {k}" for k in checks.KINDS] + [f"request's {k}" for k in KINDS]
    assert min(tally.bound[kind] for kind in kinds) > ROWS // 200  # each rule had its chance
    for what in ("proven", "searched", "already-accepted", "refused", "blocking_rules"):
        assert tally.counts[what] > 0, what


def tables(case: Case) -> Iterator[Table]:
    """GenRe and nearest neighbours, if there is anything to learn."""
    X, many = case.table(case.n_rows, 1), case.table(6 * REJECTED, 2, beyond=0.15)
    h, schema = case.classifier(X), case.schema
    accepted = h(many) > 0.5
    people = pd.concat([many[~accepted][:REJECTED], many[accepted][:ACCEPTED]])
    how = {"net": TINY, "gamma": 0.5, "margin": 0.5, "random_state": case.seed, **case.method}
    # a verifier takes longer to fit than all the rest: only for those who select by it
    genre = GenRe(h, schema, refine=how["select"] == "verified", **how)
    for method in (genre, NearestNeighbour(h, schema, n_bins=case.method["n_bins"])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                method.fit(X)
            except UserError:  # nothing to learn from
                continue
        yield Table(method, h, schema, X, people, case.seed)


# ---- real ones -----------------------------------------------------------------------------------

REAL = ("adult-carla", "compas", "german", "heloc")
TRAINED_ON = 600  # rows


@pytest.mark.filterwarnings("ignore:.*left out of training")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.needs_downloads(n)) for n in REAL]
)
def test_every_plan_on_real_data_holds(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    data, tally = load_dataset(name, seed=0), Tally()
    X, y = data.X_train.iloc[:TRAINED_ON], data.y_train.iloc[:TRAINED_ON]
    model = pipeline().fit(X, y)

    def h(table: pd.DataFrame) -> Any:
        return model.predict_proba(table)[:, 1]

    short = {"net": TINY, "gamma": 0.6, "temperature": 1.0, "training": Training(steps=20)}
    methods = [
        GenRe(model, data.schema, **short, n_draws=8, clean=False).fit(X, y),
        NearestNeighbour(model, data.schema).fit(X, y),
    ]
    rejected = data.X_test[h(data.X_test) <= 0.5]
    start, step = 0, 20
    while tally.counts["plans"] < ROWS // 20:
        people = rejected.iloc[np.arange(start, start + step) % len(rejected)]
        for method in methods:
            Table(method, h, data.schema, X, people, start).check(tally)
        start += step
    assert_nothing_is_wrong(tally, capsys, name)


def pipeline() -> Any:
    """A model that knows nothing of this library: tables in, probabilities out."""
    is_text = make_column_selector(dtype_exclude="number")
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), is_text), remainder=StandardScaler()
    )
    return make_pipeline(columns, LogisticRegression())
