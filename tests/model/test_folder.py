"""A model folder holds a whole model, whatever happens to those who save: killed, or many."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from genrecourse import UserError, load
from genrecourse.model import folder as files
from tests.support.saver import PEOPLE, Saver, models, saver, score

BOTH = [files.JSON_NAME, files.TENSORS_NAME]
KILLS = 50


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("killed") / "model"


@pytest.fixture(scope="module")
def process(folder: Path) -> Iterator[Saver]:
    with saver(folder) as started:
        yield started


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    """What each model answers, and which model it is."""
    return {method.recourse(PEOPLE).to_json(): name for name, method in models().items()}


def loaded(folder: Path, answers: dict[str, str]) -> str:
    """Which of the models is in the folder. Another model, or none, is an error."""
    return answers[load(folder, score).recourse(PEOPLE).to_json()]


def test_a_kill_leaves_the_old_or_the_new_model_whole(
    folder: Path, process: Saver, answers: dict[str, str]
) -> None:
    models()["a"].save(folder)
    began = time.monotonic()
    process.wait(process.start("a 4"))
    one_save = min(0.05, (time.monotonic() - began) / 4)
    rng, found, halfway = np.random.default_rng(0), Counter[str](), 0
    for turn in range(KILLS):
        pid = process.start(("b a 0", "a b 0")[turn % 2])
        time.sleep(rng.uniform(0, 4 * one_save))
        os.kill(pid, signal.SIGKILL)
        assert process.wait(pid) == -signal.SIGKILL  # it had not failed before
        halfway += sorted(os.listdir(folder)) != BOTH
        found[loaded(folder, answers)] += 1
    assert sum(found.values()) == KILLS
    assert set(found) == {"a", "b"}
    assert halfway, "no kill came during a save"
    models()["b"].save(folder)  # what the killed left is cleared away
    assert sorted(os.listdir(folder)) == BOTH
    assert loaded(folder, answers) == "b"


def test_two_processes_save_and_a_reader_sees_whole_models(
    folder: Path, process: Saver, answers: dict[str, str]
) -> None:
    models()["a"].save(folder)
    pids, seen = [process.start("a 20"), process.start("b 20")], Counter[str]()
    with ThreadPoolExecutor(1) as waiting:
        ends = waiting.submit(lambda: [process.wait(pid) for pid in pids])
        while not ends.done():
            seen[loaded(folder, answers)] += 1
    assert ends.result() == [0, 0]
    assert set(seen) == {"a", "b"}
    assert loaded(folder, answers) in ("a", "b")
    assert sorted(os.listdir(folder)) == BOTH


def test_a_first_save_that_was_killed_is_no_obstacle(
    tmp_path: Path, answers: dict[str, str]
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / f"tensors-{'0' * 16}.safetensors").write_bytes(b"half")
    with pytest.raises(UserError, match=r"model\.json is missing"):
        load(folder, score)
    models()["a"].save(folder)
    assert sorted(os.listdir(folder)) == BOTH
    assert loaded(folder, answers) == "a"


def test_a_save_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models()["a"].save(tmp_path / "model")
    monkeypatch.setattr(files, "PATIENCE", 0.05)
    with (
        files._alone(tmp_path / "model"),
        pytest.raises(UserError, match="another process has been saving"),
    ):
        models()["a"].save(tmp_path / "model")
    models()["a"].save(tmp_path / "model")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_process_that_was_forked_during_a_save_does_not_keep_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PATIENCE", 0.05)
    with files._alone(tmp_path):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        with files._alone(tmp_path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_reader_begins_again_when_a_new_model_came(tmp_path: Path) -> None:
    path, tries = tmp_path / files.JSON_NAME, []

    def read() -> int:
        tries.append(1)
        if len(tries) < 3:
            (tmp_path / "new").write_text("x" * len(tries))
            os.replace(tmp_path / "new", path)
            raise UserError("half of it was new")
        return len(tries)

    path.write_text("")
    assert files.read_whole(tmp_path, read) == 3

    def fail() -> None:
        tries.append(1)
        raise UserError("damaged")

    tries.clear()
    with pytest.raises(UserError, match="damaged"):
        files.read_whole(tmp_path, fail)
    assert len(tries) == 1
