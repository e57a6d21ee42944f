"""docs/add_a_rule.md: the page's three files add a kind of rule to a copy of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(?:python|toml)\n(.*?)^```$", re.M | re.S)
EDIT = re.compile(r'# in (\S+), (below|above) the line that starts with "(.+)"\n')
NEW_FILE = re.compile(r"# in a new file (\S+)\n")


def applied(folder: Path) -> set[str]:
    """Applies the code blocks of the page to the files in `folder`; returns the files' names."""
    touched = set()
    for block in BLOCK.findall((ROOT / "docs" / "add_a_rule.md").read_text(encoding="utf-8")):
        if new := NEW_FILE.match(block):
            file, text = new[1], block[new.end() :]
        else:
            edit = EDIT.match(block)
            assert edit, f"this block does not say where it belongs: {block[:80]}"
            file = edit[1]
            old = (folder / file).read_text(encoding="utf-8")
            text = inserted(old, block[edit.end() :], edit[3], above=edit[2] == "above")
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
        touched.add(file)
    return touched


def inserted(text: str, block: str, anchor: str, *, above: bool) -> str:
    """Return the text with a block beside the one line that starts with `anchor`, indented
    alike."""
    lines = text.splitlines(keepends=True)
    (place,) = [i for i, line in enumerate(lines) if line.lstrip().startswith(anchor)]
    indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
    new = [indent + line if line.strip() else line for line in block.splitlines(keepends=True)]
    at = place if above else place + 1
    return "".join([*lines[:at], *new, *lines[at:]])


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_the_page_adds_a_kind_of_rule_in_three_files(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    state = ["-c", "from genrecourse import Rules; Rules(min_step={'income': 20})"]
    assert run(tmp_path, *state).returncode != 0  # there is no such kind of rule yet
    assert len(applied(tmp_path)) == 3
    done = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_min_step.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
    kinds, settings = "src/genrecourse/rules/kinds.py", str(ROOT / "pyproject.toml")
    style = run(tmp_path, "-m", "ruff", "check", "--config", settings, kinds)
    assert style.returncode == 0, style.stdout
