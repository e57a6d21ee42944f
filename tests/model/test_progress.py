"""Progress bars: where they are shown, and in which words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from genrecourse.model import progress
from genrecourse.model.progress import is_watched, steps_bar


def run(shown: bool | None) -> None:
    with steps_bar("training the model", total=4, shown=shown) as tick:
        for step in range(1, 5):
            tick(step, 0.5)


@pytest.mark.parametrize("shown", [False, True, None])
def test_a_bar_is_on_standard_error_if_it_is_wanted(
    shown: bool | None, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shown)  # the test's standard error is no terminal
    printed = capsys.readouterr()
    assert ("training the model" in printed.err and "4/4" in printed.err) is (shown is True)
    assert bool(printed.err) is (shown is True)
    assert printed.out == ""


def test_a_terminal_shows_it_without_a_wish(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Console(stderr=True, force_terminal=True)
    monkeypatch.setattr(progress, "Console", lambda stderr: terminal)
    run(None)
    assert "training the model" in capsys.readouterr().err


def test_a_worker_process_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(force_terminal=True)
    assert is_watched(terminal)
    monkeypatch.setattr(progress.multiprocessing, "parent_process", SimpleNamespace)
    assert not is_watched(terminal)


def test_a_notebook_shows_one_line_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    display = pytest.importorskip("IPython.display", reason="IPython is not installed")
    lines: list[str] = []

    def shown(data: dict[str, str], **options: Any) -> Any:
        assert options["raw"]
        lines.append(data["text/plain"])
        return SimpleNamespace(update=shown)

    monkeypatch.setattr(display, "display", shown)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    notebook = Console(force_jupyter=True)
    monkeypatch.setattr(progress, "Console", lambda stderr: notebook)
    run(None)
    assert lines[0] == "training the model: 0 of 4 steps"
    assert "training the model: 3 of 4 steps, loss 0.500" in lines
    assert lines[-1] == ""
