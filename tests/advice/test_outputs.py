"""What cannot be written is refused before any work, with one sentence; what can be is not."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from genrecourse.advice import outputs
from genrecourse.errors import UserError
from genrecourse.model.artifact import FORMAT, JSON_NAME, TENSORS_NAME
from tests.support.bad_cells import nearest

FILES: dict[str, Callable[..., None]] = {
    "plans.html": outputs.check_plans,
    "table.csv": outputs.check_table,
    "audit.json": outputs.check_audit,
    "letter.txt": outputs.check_letter,
    "results.jsonl": outputs.check_results,
    "schema": outputs.check_file,
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(check: Callable[..., None], path: Path, says: str) -> None:
    before = sorted(Path().rglob("*"))
    with pytest.raises(UserError) as caught:
        check(path)
    assert re.search(says, str(caught.value)), str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(Path().rglob("*")) == before, "litter"


@pytest.mark.parametrize("name", FILES)
def test_files_that_cannot_be_written(name: str) -> None:
    check = FILES[name]
    check(Path(name))
    Path(name).write_text("from yesterday")
    check(Path(name))
    assert Path(name).read_text() == "from yesterday"
    assert [str(path) for path in Path().iterdir()] == [name]
    Path("file").write_text("")
    Path("sub").mkdir()
    Path("sub", name).mkdir()
    refused(check, Path("sub", name), "is a folder; name a file")
    refused(check, Path("far", name), "there is no folder far; create it first")
    refused(check, Path("file", name), "file is a file, not a folder")
    refused(check, Path("/proc", name), r"no file can be made in /proc \(")
    refused(check, Path("x" * 300 + name), "too long")
    os.mkfifo(Path("sub", "pipe" + Path(name).suffix))
    refused(check, Path("sub", "pipe" + Path(name).suffix), "no ordinary file")


def test_names_have_the_endings_that_can_be_written() -> None:
    for name, check in FILES.items():
        if name != "schema":
            refused(check, Path("file.docx"), r"should end in|must end with \.jsonl")


def test_what_is_read_is_not_written() -> None:
    Path("people.csv").write_text("a\n1\n")
    Path("same.csv").symlink_to("people.csv")
    Path("model").mkdir()
    for path in ("people.csv", "same.csv", "model/../people.csv"):
        with pytest.raises(UserError, match="is read; name another place"):
            outputs.check_plans(Path(path), reads=[None, Path("people.csv"), Path("model")])
    with pytest.raises(UserError, match="the folder model is read"):
        outputs.check_plans(Path("model/model.json"), reads=[Path("model")])
    outputs.check_plans(Path("plans.csv"), reads=[Path("people.csv"), Path("no such file")])


def test_tables_beside_results_are_looked_at() -> None:
    Path("results.md").mkdir()
    refused(outputs.check_results, Path("results.jsonl"), "results.md: it is a folder")


# ---- folders ----------------------------------------------------------------------------------


def test_folders_for_a_model() -> None:
    check = outputs.check_model
    check(Path("model"))
    assert not Path("model").exists()
    Path("model").mkdir()
    check(Path("model"))
    nearest().save("model")
    check(Path("model"))
    for left in ("tensors-0123456789abcdef.safetensors", "model-0123456789abcdef.json"):
        Path("model", left).write_text("")  # of a save that was killed
    check(Path("model"))
    Path("model", "notes.txt").write_text("mine")
    refused(check, Path("model"), r"not a genrecourse model \(it holds notes.txt\)")
    Path("other").mkdir()
    Path("other", JSON_NAME).write_text('{"format": "another"}')
    refused(check, Path("other"), "not a genrecourse model")
    Path("other", JSON_NAME).write_bytes(b"\xff\x00")
    refused(check, Path("other"), "not a genrecourse model")
    Path("file").write_text("")
    refused(check, Path("file"), "it is a file; name a folder")
    refused(check, Path("file/model"), "is a file, not a folder")
    refused(check, Path("far/model"), "there is no folder far")
    refused(check, Path("/proc/model"), "no file can be made in /proc")
    refused(check, Path("/proc"), "not a genrecourse model")


def test_the_names_are_those_of_model_files() -> None:
    assert outputs.MODEL_FORMAT == FORMAT
    for name in (JSON_NAME, TENSORS_NAME):
        assert outputs.MODEL_FILES.fullmatch(name)


def test_a_kill_while_a_folder_is_tried_leaves_nothing_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    @contextmanager
    def spied(folder: Path) -> Iterator[None]:
        with tempfile.TemporaryFile(dir=folder):
            seen.append(os.listdir(folder))
            yield

    if not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no files without a name")
    monkeypatch.setattr(outputs, "TemporaryFile", lambda dir: spied(dir))
    outputs.check_batch(tmp_path)
    assert seen == [[]]


def test_a_batch_of_more_than_a_million_parts_may_be_continued(tmp_path: Path) -> None:
    for name in ("_manifest.json", "part-000007.parquet", "part-1000000.parquet"):
        (tmp_path / name).touch()
    outputs.check_batch(tmp_path)
