"""What a method can reach from its process, what it cannot, and how its end is noticed."""

from __future__ import annotations

import errno
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse import Classifier, Schema
from genrecourse.data.datasets import DATA_VARIABLE, DATASETS
from genrecourse.evaluation.comparison import landlock
from genrecourse.evaluation.comparison.isolation import (
    MethodError,
    Run,
    Task,
    _as_people,
    _tell,
    run_isolated,
)
from genrecourse.model.artifact import pack_table
from genrecourse.model.classifier import MLPConfig, fit_mlp
from tests.support import spy

N = 80


@pytest.fixture(scope="module")
def given() -> tuple[Classifier, Schema, pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.normal(50, 10, N).round(1), "debt": rng.random(N).round(3)})
    y = (X["income"] / 50 - X["debt"] > 0.5).to_numpy().astype(int)
    schema = Schema.infer(X)
    return fit_mlp(X, y, schema, config=MLPConfig(epochs=20, lr=0.02)), schema, X, y


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """They are numbered on from the training rows."""
    rng = np.random.default_rng(1)
    rows = {"income": rng.normal(40, 5, 7).round(1), "debt": rng.random(7).round(3)}
    return pd.DataFrame(rows, index=pd.RangeIndex(N, N + 7))


def run(given: Any, people: pd.DataFrame, kind: Callable[..., Any], **params: Any) -> Run:
    h, schema, X, y = given
    return run_isolated(Task(kind, params, h, schema, X, y, 0), people, {"": {}})


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of data sets, and a file in it that looks like none of them."""
    folder = tmp_path_factory.mktemp("vault")
    (folder / "gold.csv").write_text("income,debt\n1,2\n")
    return folder


@pytest.fixture(scope="module")
def report(given: Any, people: pd.DataFrame, vault: Path) -> dict[str, Any]:
    """One spy, one child: what it found out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATA_VARIABLE, str(vault))
        secret, desk = vault / "gold.csv", vault.parent
        return run(given, people, spy.Spy, secret=str(secret), desk=str(desk)).report


def test_what_a_method_must_not_reach_is_refused(report: dict[str, Any], vault: Path) -> None:
    crimes = report["crimes"]
    assert len(crimes) == len(spy.Spy()._crimes())
    got_away = {name: said for name, said in crimes.items() if not said.startswith("refused: ")}
    # urllib wraps what it meets in an error of its own
    wrapped = got_away.pop("the network")
    assert wrapped.startswith("URLError")
    assert "may not use the network" in wrapped
    assert got_away == {}
    for name in DATASETS:
        assert "may not load a data set" in crimes[f"load {name}"]
    assert f"may not read {vault / 'gold.csv'}" in crimes["open"]
    assert "use threads" in crimes["a new interpreter"]
    assert (vault / "gold.csv").exists()
    assert not (vault.parent / "note.txt").exists()


def test_honest_fits_work_inside_the_fence(report: dict[str, Any]) -> None:
    assert {said.split(" ")[0] for said in report["rights"].values()} == {"got"}, report["rights"]


def test_a_child_knows_no_judge_and_no_test_row(report: dict[str, Any]) -> None:
    seen = report["seen"]
    assert (seen["judges"], seen["forests"]) == (0, 0)
    assert seen["last row"] == N - 1
    assert not {"Judge", "Case", "Bench"} & set(seen["stack"])
    assert "Task" in seen["stack"]  # it did look
    assert DATA_VARIABLE not in seen["variables"]
    assert seen["folder"] == ["scratch.txt"]  # of its own making; nothing of another run


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="Landlock is Linux'")
def test_the_kernel_refuses_native_code_as_well(
    given: Any, people: pd.DataFrame, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not _landlock_is_there():
        pytest.skip("this kernel has no Landlock")
    monkeypatch.setenv(DATA_VARIABLE, str(vault))
    said = run(given, people, spy.NativeReader, secret=str(vault / "gold.csv")).report["secret"]
    assert said.startswith("refused: ")
    assert "may not read" not in said  # the kernel's words, not the fence's
    # and what is not closed is read, by the same code
    monkeypatch.delenv(DATA_VARIABLE)
    said = run(given, people, spy.NativeReader, secret=str(vault / "gold.csv")).report["secret"]
    assert said == "got Table"


def _landlock_is_there() -> bool:
    import ctypes

    asked = landlock.CREATE_RULESET
    return bool(ctypes.CDLL(None).syscall(asked, None, 0, 1) > 0)


def test_h_in_the_child_is_a_copy_and_the_answer_is_exact(given: Any, people: pd.DataFrame) -> None:
    """torch would share a module's memory between processes, if it were asked to."""
    odd = people.assign(income=[1.1, 2.2, 3.3, 1e-17, 5.5, 1 / 3, 7e17])
    before = given[0].score(odd)
    X_plus = run(given, odd, spy.Meddler).answers[""].X_plus
    pd.testing.assert_frame_equal(X_plus, odd, check_exact=True)
    assert np.array_equal(given[0].score(odd), before)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (spy.Crasher, r"ZeroDivisionError: one over nothing \(spy.py, line \d+\)"),
        (spy.Dier, r"the process ended \(exit status 7\) before it had fitted"),
    ],
)
def test_a_method_that_fails_says_how(
    given: Any, people: pd.DataFrame, kind: Any, said: str
) -> None:
    with pytest.raises(MethodError, match=said):
        run(given, people, kind)


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)), MethodError, "did not start: Resource"),
        (RuntimeError("no __main__ guard"), RuntimeError, "no __main__ guard"),
    ],
)
def test_a_process_that_does_not_start_says_why(
    given: Any,
    people: pd.DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    raised: type[Exception],
    message: str,
) -> None:
    def fails(_: Any) -> None:
        raise error

    monkeypatch.setattr(multiprocessing.get_context("spawn").Process, "start", fails)
    with pytest.raises(raised, match=message) as caught:
        run(given, people, spy.Meddler)
    assert caught.value.__context__ in (None, error)  # nothing else went wrong on the way


@pytest.mark.parametrize("name", ["its task", "its people"])
def test_a_process_that_ends_before_it_reads_says_so(name: str) -> None:
    here, there = multiprocessing.Pipe()
    there.close()
    process = SimpleNamespace(join=lambda seconds: None, exitcode=7)
    with here, pytest.raises(MethodError) as caught:
        _tell(here, process, "rows", name)
    assert str(caught.value) == f"the process ended (exit status 7) before it had read {name}"


def test_an_answer_is_for_everybody(people: pd.DataFrame) -> None:
    assert _as_people(pack_table(people), people).equals(people)
    with pytest.raises(MethodError, match=r"6 rows .* for 7 people"):
        _as_people(pack_table(people.iloc[:-1]), people)
    with pytest.raises(MethodError, match="debt"):
        _as_people(pack_table(people[["debt", "income"]]), people)
