"""Every promise on docs/promises.md names a test, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_test_that_the_page_names_exists() -> None:
    assert len(NAMED) > 30
    lacking = [
        f"{path}::{name}"
        for path, name in NAMED
        if not (ROOT / path).is_file() or name not in functions_of(ROOT / path)
    ]
    assert not lacking


def test_every_promise_names_its_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    promises = [row for row in rows if not re.match(r"\|( Promise|-)", row)]
    assert len(promises) == len([row for row in promises if re.search(r"`tests/.*::\w+` \|$", row)])
    assert len(promises) > 30
