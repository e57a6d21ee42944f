"""Bad input ends in a UserError of one sentence: never in another exception, a hang or silence."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genrecourse import GenRe, load
from genrecourse.errors import UserError, amount
from genrecourse.genre.model import NetConfig
from genrecourse.methods import METHODS
from genrecourse.methods.genre import Training
from genrecourse.model.settings import Number, Record, allowed_in, fault_in
from genrecourse.table import limits
from tests.hold import case
from tests.hold.case import Case, complaint, outcome
from tests.hold.cases import COUNTS, OUTCOMES, TABLE, World, counted, every_case, score
from tests.hold.soak import SOAK

KINDS = json.loads(COUNTS.read_text())
# slower ones, of which every n-th is tried; `make soak` tries them all
EVERY = {"words": 12, "cells": 5}


def fail(text: str) -> None:
    raise UserError(text)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    return every_case(tmp_path_factory.mktemp("hold"))


@pytest.mark.parametrize("kind", KINDS)
def test_bad_input_is_one_sentence(kind: str, cases: list[Case]) -> None:
    tried = [each for each in cases if each.kind == kind][:: EVERY.get(kind, 1)]
    wrong = {each.label: complaint(each) for each in tried}
    found = [f"{label}: {said}" for label, said in wrong.items() if said]
    assert not found, f"{len(found)} of {len(wrong)}\n" + "\n".join(found[:40])


def test_the_counts_are_those_that_are_committed(cases: list[Case]) -> None:
    assert counted(cases) == KINDS, "run python -m tests.hold.cases"
    assert sum(n // EVERY.get(kind, 1) for kind, n in KINDS.items()) > 2000


@pytest.mark.parametrize(
    ("act", "found"),
    [
        (lambda: 1, ("wrong", "accepted in silence")),
        (lambda: {}["a"], ("wrong", "KeyError: 'a'")),
        (lambda: sys.exit(1), ("wrong", "SystemExit: 1")),
        (partial(fail, "one\ntwo"), ("wrong", "not a line that can be printed: 'one\\ntwo'")),
        (partial(fail, "no such thing"), ("refused", "")),
        (partial(time.sleep, 9), ("wrong", "TooLongError: no answer within 1 seconds")),
    ],
)
def test_what_is_wrong_is_seen(
    act: Any, found: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(case, "SECONDS", 1)
    assert outcome(Case("test", "a case", act)) == found
    wrong = found if found[1] != "accepted in silence" else ("answered", "")
    assert outcome(Case("test", "a case", act, may_answer=True)) == wrong


def test_the_last_soak_found_nothing_wrong() -> None:
    text = SOAK.read_text()
    assert "20,000 cases" in text
    assert "0 wrong" in text
    assert all(f"\n{kind} " in text for kind in KINDS)


def test_the_page_states_every_limit() -> None:
    page = (Path(__file__).parents[2] / "docs" / "limits.md").read_text()
    stated = {name: value for name, value in vars(limits).items() if name.isupper()}
    lacking = [name for name, value in stated.items() if f"{amount(value)} (`{name}`)" not in page]
    assert not lacking


# ---- what is right stays right ----------------------------------------------------------------


def numpy_values(value: Any) -> list[Any]:
    """The same number as numpy has it."""
    if isinstance(value, bool):
        return [np.bool_(value)]
    if isinstance(value, int):
        return [np.int64(value), np.int32(value)]
    return [np.float64(value), np.float32(value)] if isinstance(value, float) else []


@pytest.mark.parametrize("name", list(METHODS))
def test_numpy_numbers_are_numbers(name: str) -> None:
    method = METHODS[name]()
    assert fault_in(method) == ""
    for param, value in method.get_params(deep=False).items():
        for same in numpy_values(value):
            assert fault_in(METHODS[name]().set_params(**{param: same})) == ""
    for kind in method._records.values():
        for field in allowed_in(kind):
            for same in numpy_values(getattr(kind(), field)):
                assert fault_in(replace(kind(), **{field: same})) == ""


def test_a_method_with_numpy_settings_gives_the_same_answers() -> None:
    numbers = {"gamma": np.float32(0.75), "n_bins": np.int64(20), "random_state": np.int64(3)}
    same = {"gamma": 0.75, "n_bins": 20, "random_state": 3}
    one = METHODS["nnr"](score, **numbers, refine=np.bool_(False)).fit(TABLE, OUTCOMES)
    two = METHODS["nnr"](score, **same).fit(TABLE, OUTCOMES)
    assert one.recourse(TABLE).equals(two.recourse(TABLE))
    assert one.plans(TABLE.head(3), n=np.int64(2), min_robust=np.float64(0.5)) == two.plans(
        TABLE.head(3), n=2, min_robust=0.5
    )


def test_a_density_with_numpy_settings_can_be_saved_and_loaded(tmp_path: Path) -> None:
    net = NetConfig(*map(np.int64, (8, 2, 8, 1, 1)), dropout=np.float64(0.0))
    training = Training(steps=np.int64(2), batch_size=np.int64(16), lr=np.float32(1e-3))
    numbers = {"gamma": np.float64(0.6), "margin": np.float32(0.5), "n_draws": np.int64(3)}
    more = {"random_state": np.int64(1), "lam": np.float32(5), "n_bins": np.int32(10)}
    plain: dict[str, Any] = {"select": "paper", "refine": np.bool_(False), "clean": False}
    made = GenRe(score, net=net, training=training, temperature=1.0, **numbers, **more, **plain)
    made.fit(TABLE, OUTCOMES).save(tmp_path / "model")
    again = load(tmp_path / "model", score)
    people = TABLE.head(3)
    assert again.recourse(people).equals(made.recourse(people))
    assert len(made.sample(people, np.int64(2), temperature=np.float32(0.5))) == 6


def test_an_end_of_a_range_belongs_to_it_or_not() -> None:
    assert Number(0, 1).has(0)
    assert Number(0, 1).has(1)
    assert not Number(0, 1, above=True).has(0)
    assert not Number(0, 1, below=True).has(1)
    assert not Number(1, whole=True).has(1.0)
    assert not Record(World).has(World)
