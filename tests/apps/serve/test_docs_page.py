"""docs/serve.md: its curl examples run, and its commands are ours."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer

from genrecourse.apps.cli import app
from tests.apps.serve.serving import Served

PAGE = (Path(__file__).parents[3] / "docs" / "serve.md").read_text(encoding="utf-8")
LINES = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.strip().splitlines()
]
OURS = ("http://127.0.0.1:8000", "PERSON")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("curl")])
def test_the_examples_run(line: str, served: Served, people: list[dict[str, Any]]) -> None:
    words = shlex.split(line)
    words = [word.replace(OURS[0], served.url) for word in words]
    words = [word.replace(OURS[1], json.dumps(people[0])) for word in words]
    done = subprocess.run([*words, "--silent", "--fail"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "error" not in json.loads(done.stdout)


def test_the_commands_are_ours() -> None:
    group: Any = typer.main.get_command(app)
    others = [line for line in LINES if not line.startswith("curl")]
    for line in others:
        words = shlex.split(line)
        if words[0] == "genrecourse":
            known = {name for each in group.commands[words[1]].params for name in each.opts}
            assert {word for word in words if word.startswith("--")} <= known, line
        else:
            assert words[0] in ("docker", "pip"), line
    assert "pip install 'genrecourse[serve]'" in others


def test_every_address_is_on_the_page(served: Served) -> None:
    for path in served.app.openapi()["paths"]:
        shown = path.replace("{name}", "NAME")
        assert f"`{shown}`" in PAGE or f" {shown}`" in PAGE or path == "/v2", path
