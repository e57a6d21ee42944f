"""`genrecourse evaluate` and `genrecourse compare`: what they print, write and survive."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from genrecourse import METHODS
from genrecourse.apps import cli
from genrecourse.evaluation.comparison import read_results
from genrecourse.evaluation.comparison.run import bounds
from tests.support import toys
from tests.support.toys import Runs

pytestmark = pytest.mark.filterwarnings("ignore:.*sklearn.utils.parallel.delayed")
COMPARE = ("compare", "--datasets", "loans", "--rows", "25", "-o", "results.jsonl")
RESULTS = Path("results.jsonl")
ROOT = Path(__file__).parents[2]


def run(*words: Any) -> Result:
    return CliRunner().invoke(cli.app, [str(word) for word in words])


def sentence(result: Result) -> str:
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stderr.startswith("error: "), result.stderr
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    monkeypatch.chdir(tmp_path)
    return toys.in_this_process(monkeypatch)


def test_compare_prints_a_table_and_writes_three() -> None:
    done = run(*COMPARE, "--methods", "nnr,still", "--seeds", 2)
    assert done.exit_code == 0, (done.output, done.exception)
    lines = read_results(RESULTS)
    labels = ["nnr", "still", *(bound.label for bound in bounds())]
    asked = [(label, seed) for seed in (0, 1) for label in labels]
    assert [(line["label"], line["seed"]) for line in lines] == asked
    means = [line["metrics"]["score"]["mean"] for line in lines if line["label"] == "nnr"]
    mean = f"{sum(means) / 2:.3f}"
    for text in (done.output, Path("results.md").read_text(), Path("results.tex").read_text()):
        assert mean in text
        assert "ceiling" in text
    assert "mean of 2 seeds" in done.output
    assert " 50 " in done.output  # people of both seeds
    assert f" {sum(line['distinct'] for line in lines if line['label'] == 'nnr')} " in done.output
    table = pd.read_csv("results.csv")
    assert len(table) == sum(len(line["metrics"]) for line in lines)
    # each finished run was said, since nobody watches a bar here
    assert "loans, seed 1, still: score" in done.stderr


def test_seeds_rows_and_reference() -> None:
    words = ("--methods", "nnr,still", "--seeds", 1, "--first-seed", 7, "--reference", "nnr")
    done = run(*COMPARE, *words, "--rows", "all")
    assert done.exit_code == 0, (done.output, done.exception)
    lines = read_results(RESULTS)
    assert {(line["seed"], line["rows"]) for line in lines} == {(7, None)}
    assert lines[0]["n"] > 25
    last = done.output.split("Score minus")[1]
    assert [line.split()[0] for line in last.splitlines() if " nnr " in line] == ["nnr", "still"]


def test_a_method_that_fails_does_not_stop_the_others(runs: Runs) -> None:
    runs.broken = {METHODS["nnr"]}
    done = run(*COMPARE, "--methods", "nnr,still", "--seeds", 1)
    assert done.exit_code == 1
    assert "failed: nnr on loans, seed 0: it broke" in done.stderr
    assert "failed on 1 of 1 seeds" in Path("results.md").read_text()
    assert "still" in Path("results.md").read_text()
    assert run("evaluate", "--method", "nnr", "--dataset", "loans").exit_code == 1


def test_a_note_says_what_of_the_file_is_not_used() -> None:
    run(*COMPARE, "--methods", "nnr,still", "--seeds", 1)
    done = run(*COMPARE, "--methods", "nnr", "--seeds", 1)
    assert done.exit_code == 0
    assert "lines of results.jsonl belong to other runs" in done.stderr


def test_ctrl_c_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("genrecourse.evaluation.comparison.run.compare", interrupted)
    done = run(*COMPARE, "--methods", "nnr")
    assert done.exit_code == 130
    assert done.stderr.strip() == (
        "interrupted: finished runs are in results.jsonl; the same command continues there"
    )


def test_evaluate_shows_every_metric_its_direction_and_people() -> None:
    done = run(
        *("evaluate", "--method", "chooser", "--dataset", "loans", "--rows", 25),
        *("--param", "gamma=0.6", "--seed", 1),
    )
    assert done.exit_code == 0, (done.output, done.exception)
    for name, better in (("score", "higher"), ("cost", "lower"), ("h_valid", "higher")):
        (line,) = [line for line in done.output.splitlines() if line.split()[:1] == [name]]
        assert line.split()[1] == better
        assert line.split()[-1] == "25"
        assert line.count("±") == 2, line  # the method and the ceiling
    assert "distinct x_plus" in done.output
    assert "note: a note" in done.stderr
    assert list(Path().iterdir()) == []


MISTAKES = {
    "method": ((*COMPARE, "--methods", "magic"), "no method 'magic'"),
    "data set": ((*COMPARE[:1], "--datasets", "iris", "--methods", "nnr", "-o", "a.jsonl"), "iris"),
    "rows": ((*COMPARE, "--methods", "nnr", "--rows", "some"), "a number of people, or 'all'"),
    "no rows": ((*COMPARE, "--methods", "nnr", "--rows", "0"), "a number of people, or 'all'"),
    "ending": ((*COMPARE, "--methods", "nnr", "-o", "results.csv"), "must end with .jsonl"),
    "reference": ((*COMPARE, "--methods", "nnr", "--reference", "genre"), "the reference 'genre'"),
    "parameter": (
        ("evaluate", "--method", "nnr", "--dataset", "loans", "--param", "gama=1"),
        "no parameter ['gama']",
    ),
    "not name=value": (
        ("evaluate", "--method", "nnr", "--dataset", "loans", "--param", "gamma"),
        "should be NAME=VALUE",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_sentence(mistake: str, runs: Runs) -> None:
    words, expected = MISTAKES[mistake]
    assert expected in sentence(run(*words))
    assert runs.tasks == []
    assert not list(Path().iterdir())


# ---- real processes ------------------------------------------------------------------------------

CODE = """
import signal, sys
from functools import partial
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores it
from tests.support import spy, toys
from genrecourse import METHODS, GenRe
from genrecourse.apps import cli
from genrecourse.data.datasets import DATASETS
DATASETS["loans"] = toys.LOANS
METHODS["sleeper"] = spy.Sleeper
METHODS["genre"] = partial(GenRe, **GenRe._test_params())
cli.main()
"""


@contextmanager
def command(*words: str) -> Iterator[subprocess.Popen[str]]:
    """The command line in a session of its own; whatever is left of it at the end is killed."""
    call = [sys.executable, "-W", "ignore", "-c", CODE, *words]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen(
        call,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as job:
        try:
            yield job
        finally:
            for pid in session_of(job):
                os.kill(pid, signal.SIGKILL)


def session_of(job: subprocess.Popen[str]) -> list[int]:
    """Processes of the job's session that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue  # it has gone meanwhile
        if int(session) == job.pid and state not in "ZX":
            found.append(int(stat.parent.name))
    return found


def has_child(job: subprocess.Popen[str]) -> bool:
    """Whether a method is in its process; the resource tracker is no such process."""
    for pid in session_of(job):
        try:
            said = Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            continue
        if "spawn_main" in said:
            return True
    return False


def wait_until(true: Callable[[], bool], job: subprocess.Popen[str] | None = None) -> None:
    for _ in range(6000):
        if true():
            return
        assert job is None or job.poll() is None, job.communicate()
        time.sleep(0.1)
    raise AssertionError("it did not come to pass")


def n_lines() -> int:
    return RESULTS.read_bytes().count(b"\n") if RESULTS.exists() else 0


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


@pytest.mark.slow
@needs_proc
def test_a_killed_comparison_ends_with_the_same_table() -> None:
    """SIGKILL to all of it: in the first run, between two runs, in the second run; then a torn
    line, as a kill while writing leaves it."""
    words = (*COMPARE, "--no-witnesses", "--methods", "nnr,nnr-dplus", "--seeds", "1")

    def finish() -> tuple[list[dict[str, Any]], str]:
        with command(*words) as job:
            _, complained = job.communicate(timeout=600)
            assert job.returncode == 0, complained
        lines = read_results(RESULTS)
        for line in lines:
            line.pop("seconds")
        return lines, Path("results.csv").read_text()

    whole, table = finish()
    assert [line["label"] for line in whole][:3] == ["nnr", "nnr-dplus", "ceiling"]
    RESULTS.unlink()

    moments: list[Callable[[subprocess.Popen[str]], bool]] = [
        has_child,
        lambda job: n_lines() == 1,
        lambda job: has_child(job) and n_lines() == 1,
    ]
    for moment in moments:
        with command(*words) as job:
            wait_until(lambda job=job, moment=moment: moment(job), job)  # type: ignore[misc]
            os.killpg(job.pid, signal.SIGKILL)
            job.communicate()
            assert job.returncode == -signal.SIGKILL
            wait_until(lambda job=job: not session_of(job))  # type: ignore[misc]
    assert n_lines() == 1
    with RESULTS.open("a") as file:
        file.write(json.dumps(whole[1])[:1000])

    assert finish() == (whole, table)


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("how", ["kill", "ctrl-c"])
def test_no_process_outlives_the_command(how: str) -> None:
    """A child that is busy with its fit ends with its parent, and Ctrl-C is not for the child."""
    words = ("--no-witnesses", "--methods", "nnr,sleeper", "--seeds", "1")
    with command(*COMPARE, *words) as job:
        assert job.stderr is not None
        for line in job.stderr:
            if "sleeping" in line:
                break
        if how == "kill":
            os.kill(job.pid, signal.SIGKILL)
        else:
            os.killpg(job.pid, signal.SIGINT)
        _, complained = job.communicate(timeout=600)
        wait_until(lambda: not session_of(job))
    assert [line["label"] for line in read_results(RESULTS)] == ["nnr"]
    if how == "kill":
        assert job.returncode == -signal.SIGKILL
    else:
        assert job.returncode == 130
        assert complained.splitlines()[-1].startswith(
            "interrupted: finished runs are in results.jsonl"
        )
        assert "Traceback" not in complained
