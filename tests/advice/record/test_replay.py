"""Recorded answers computed again, by the model that gave them and by another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from genrecourse import GenRe, NearestNeighbour, Policy, Schema, UserError
from genrecourse.advice.record import Answer, Record
from genrecourse.advice.record.answers import (
    answer_about,
    made_by,
    plans_answer,
    request_of,
    table_of,
)
from genrecourse.advice.record.check import check
from genrecourse.advice.record.replay import entry, replay, scores
from genrecourse.advice.request import PlanRequest
from genrecourse.advice.service import Service
from genrecourse.apps import cli
from tests.support.records import small_record

RULES = {
    "default": {"lock": ["home"], "relations": ["debt <= income"]},
    "people": {"17": {"ranges": {"debt": [None, 20.5]}}, "3": {"max_changes": 1}},
}
REQUEST = PlanRequest(n=2, rules=RULES, fewest_changes=True, most_changes=None)


def loans(n: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "income": rng.integers(10, 100, n) * 1.0,
            "debt": np.where(rng.random(n) < 0.1, np.nan, rng.integers(1, 60, n) / 3),
            "age": rng.integers(20, 65, n),
            "home": rng.choice(["rent", "own", "free"], n),
        }
    )


def fitted(method: type, **params: Any) -> Service:
    X = loans()
    good = np.where(X["income"] / 3 - X["debt"].fillna(10) > 5, 1, 0)
    return Service(method(None, Schema.infer(X), **params).fit(X, good))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model: GenRe; other: another method; record: plans, a decision, and what has no replay."""
    folder = tmp_path_factory.mktemp("replay")
    fitted(GenRe, **GenRe._test_params()).save(folder / "model")
    fitted(NearestNeighbour).save(folder / "other")
    service = Service.open(folder / "model")
    X = people(service)
    facts = made_by(service, folder / "model")
    with Record(folder / "record", facts) as record:
        record.append(plans_answer("a0", X, REQUEST, service.plans(X, REQUEST)))
        plain = PlanRequest()
        record.append(answer_about("a1", "decision", X, plain, scores(service, X)))
        record.append(plans_answer("a2", X, plain, service.plans(X, plain)))
        record.append(answer_about("a3", "recheck", X, plain, [True] * len(X)))
        record.append(Answer("a4", "plans", []))
        record.erase("a2", 1)
        record.erase("a3")
    return folder


def people(service: Service) -> pd.DataFrame:
    X = loans()
    X = X[~service.method.classifier_.accepts(X)].head(4)
    X.index = pd.Index([17, 4, 3, 8])
    return X


def run(*words: object) -> Any:
    return CliRunner().invoke(cli.app, ["record", *map(str, words)])


def test_the_input_comes_back_as_it_was(folders: Path) -> None:
    """Rows with their dtypes and labels, and rules that bind the same people."""
    line, held = entry(folders / "record", 0)
    values = [person["values"] for person in held]
    X = people(Service.open(folders / "model"))
    pd.testing.assert_frame_equal(table_of(values)[X.columns], X)
    again = request_of(line["asked"], values)
    assert again.keywords().keys() == REQUEST.keywords().keys()
    distinct, group = again.rules.by_row(X.index)
    expected, places = REQUEST.rules.by_row(X.index)
    assert [distinct[k].key() for k in group] == [expected[k].key() for k in places]
    assert (again.n, again.fewest_changes, again.most_changes) == (2, True, None)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", "b", "a"], dtype="category"),
        pd.Series([1, None, 3], dtype="Int16"),
        pd.Series(["a", None, "c"], dtype="string"),
        pd.Series([0.1, np.nan, np.inf]),
        pd.Series([np.float32(0.1), 0.2, 0.3], dtype="float32"),
        pd.Series([True, False, True]),
    ],
    ids=lambda column: str(column.dtype),
)
def test_every_dtype_comes_back(column: pd.Series, tmp_path: Path) -> None:
    X = pd.DataFrame({"b": column, "a": range(3)}, index=["x", "y", "z"])
    with Record(tmp_path, {}) as record:
        record.append(answer_about("a", "decision", X, PlanRequest(), [1, 2, 3]))
    values = [person["values"] for person in entry(tmp_path, 0)[1]]
    pd.testing.assert_frame_equal(table_of(values)[["b", "a"]], X)


def test_the_same_answers_byte_for_byte(folders: Path) -> None:
    service = Service.open(folders / "model")
    for n in (0, 1):
        found = replay(folders / "record", n, service, folders / "model")
        assert (found.is_same, found.people, found.erased, found.made_by) == (True, 4, 0, [])
        assert str(found).startswith(f"record {n}: the same answer, byte for byte, for 4 people")
    plans = [person["values"]["output"] for person in entry(folders / "record", 0)[1]]
    assert "ok" in {plan["status"] for plan in plans}  # so that there is something to compare
    done = run("replay", folders / "record", "--row", 0, "--model", folders / "model")
    assert (done.exit_code, "byte for byte" in done.output) == (0, True)


def test_another_model_is_named(folders: Path) -> None:
    """Whether it can compute the answer or not."""
    for row, code, said in ((2, 1, "another answer for"), (0, 2, "needs a verifier")):
        done = run("replay", folders / "record", "--row", row, "--model", folders / "other")
        assert done.exit_code == code, done.output
        text = " ".join(done.output.split())
        assert said in text
        assert "method was GenRe, and is NearestNeighbour" in text
        assert "model was" in text


def test_another_policy_is_named(folders: Path, tmp_path: Path) -> None:
    service = Service.open(folders / "model").under(Policy.of(rules={"max_changes": 1}))
    found = replay(folders / "record", 0, service, folders / "model")
    assert [name for name, _, _ in found.made_by] == ["policy"]


def test_after_an_erasure(folders: Path) -> None:
    service = Service.open(folders / "model")
    found = replay(folders / "record", 2, service, folders / "model")
    assert (found.people, found.erased) == (3, 1)
    assert not found.different
    assert "the values of 1 more were erased" in str(found)
    with pytest.raises(UserError, match=r"values of record 3 were erased \(by record 6\)"):
        replay(folders / "record", 3, service, folders / "model")


def test_rounding_is_told_apart_from_another_answer(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service.open(folders / "model")
    off = 6e-8

    def shifted(service: Service, X: pd.DataFrame, _: PlanRequest) -> list[float]:
        found = scores(service, X)
        found[2] += off
        return found

    monkeypatch.setitem(replay.__globals__["VERBS"], "decision", shifted)
    found = replay(folders / "record", 1, service, folders / "model")
    assert (found.is_same, found.rounded, found.different) == (False, [2], [])
    assert "rounding of numbers, which differ by at most 6e-08" in str(found)
    off = 1e-3
    found = replay(folders / "record", 1, service, folders / "model")
    assert (found.is_same, found.rounded, found.different) == (False, [], [2])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (3, "were erased"),
        (4, "is about nobody"),
        (5, "its kind is 'erasure'"),
        (7, "has no record 7"),
    ],
)
def test_what_cannot_be_computed_again(folders: Path, row: int, said: str) -> None:
    done = run("replay", folders / "record", "--row", row, "--model", folders / "model")
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())


def test_a_verb_without_a_replay(tmp_path: Path, folders: Path) -> None:
    with Record(tmp_path, {}) as record:
        record.append(Answer("a", "dance", [{"output": 1}]))
    with pytest.raises(
        UserError, match=r"answers 'dance'; only plans, decision, predict, infer can"
    ):
        replay(tmp_path, 0, Service.open(folders / "model"), folders / "model")


# ---- the other commands --------------------------------------------------------------------------


def test_verify_root_prove_and_erase(tmp_path: Path) -> None:
    folder = small_record(tmp_path / "record")
    root = run("root", folder).output.strip()
    assert root == f"14:{check(folder).root()}"
    assert run("root", folder, "--day", "2100-01-01").output.strip() == root
    done = run("verify", folder, "--root", root)
    assert done.exit_code == 0, done.output
    text = " ".join(done.output.split())
    assert "whole: 14 lines, 12 answers about 18 people" in text
    assert "the values of 2 of them" in text
    assert "it has the known root" in text
    assert '"record": 3' in run("prove", folder, "--row", 3).output
    assert "erased the values of 2 people" in run("erase", folder, "--request", "a1").output
    assert "erased before" in run("erase", folder, "--request", "a1").output
    assert run("verify", folder, "--root", root).exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("verify", "nowhere"), "holds no record"),
        (("verify", "record", "--root", "14:ab"), "should be SIZE:ROOT"),
        (("verify", "record", "--root", f"20:{'ab' * 32}"), "lines at the end are missing"),
        (("root", "record", "--day", "2000-01-01"), "the record begins on"),
        (("prove", "record", "--row", "14"), "there is no 14"),
        (("erase", "record", "--request", "nobody's"), "no answer to a request"),
        (("erase", "nowhere", "--request", "a1"), "holds no record"),
        (("verifi", "record"), "did you mean 'verify'?"),
    ],
)
def test_mistakes(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    small_record(tmp_path / "record")
    done = run(*words)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.stderr.split())
    assert not Path("nowhere").exists()


def test_damage_is_one_sentence(tmp_path: Path) -> None:
    folder = small_record(tmp_path / "record")
    path = folder / "chain.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"a2"', b'"a3"'))
    done = run("verify", folder)
    assert done.exit_code == 2
    text = " ".join(done.stderr.split())
    assert "record 2 is damaged" in text
    assert "line 3, byte" in text
