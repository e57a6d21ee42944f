"""Every notebook of docs/notebooks runs and shows pictures, and so does what is committed."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from genrecourse.data.datasets import DATA_VARIABLE
from scripts.notebooks import notebooks, pictures, run

ROOT = Path(__file__).parents[2]
MOST = 300_000  # bytes of a file


def test_there_are_five_notebooks_and_the_site_lists_them() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert len(notebooks()) == 5
    for path in notebooks():
        assert f"notebooks/{path.name}" in nav


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_what_is_committed_shows_pictures_and_no_place_of_a_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    committed = nbformat.reads(text, as_version=4)
    cells = [cell for cell in committed.cells if cell.cell_type == "code"]
    # every cell ran, from the first to the last in one go
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert pictures(committed) >= 1
    assert len(text.encode()) < MOST
    for place in ("ipykernel", "site-packages", "/home/", "/tmp/", str(Path.home())):
        assert place not in text


@pytest.mark.slow
@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_a_notebook_runs_offline_and_shows_pictures(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)  # only the data that the library contains
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody answers: a download fails
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert pictures(run(path)) == pictures(nbformat.read(path, as_version=4)) > 0
