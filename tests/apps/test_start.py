"""The help and `import genrecourse` load no package that takes seconds to import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"matplotlib", "narwhals", "pandas", "scipy", "sklearn", "torch"}

# prints the modules even though the help ends the process
PREPARE = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(list(sys.modules)), file=sys.stderr))
"""
COMMAND_LINE = """
from genrecourse.apps.cli import main
sys.argv[0] = "genrecourse"
main()
"""
HELP_OF_EVERY_COMMAND = """
import typer
from genrecourse.apps.cli import app
group = typer.main.get_command(app)
for name, command in group.commands.items():
    for inner in getattr(command, "commands", [""]):
        words = [*filter(None, (name, inner)), "--help"]
        group(words, prog_name="genrecourse", standalone_mode=False)
"""


def run(code: str, *words: str) -> tuple[str, set[str]]:
    """Run code in a process of its own; return what it prints, and the modules that it loads."""
    command = [sys.executable, "-c", PREPARE + code, *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("words", [["--help"], ["plans", "--help"]])
def test_the_help_loads_nothing_heavy(words: list[str]) -> None:
    printed, loaded = run(COMMAND_LINE, *words)
    assert f"Usage: {' '.join(['genrecourse', *words[:-1]])} [OPTIONS]" in printed
    assert "typer" in loaded
    assert HEAVY & loaded == set()


def test_the_help_of_no_command_loads_anything_heavy() -> None:
    printed, loaded = run(HELP_OF_EVERY_COMMAND)
    for name in ("demo", "fit", "plans", "compare", "record erase"):
        assert f"Usage: genrecourse {name} [OPTIONS]" in printed
    assert HEAVY & loaded == set()


@pytest.mark.parametrize(
    ("words", "rows"),
    [(["methods"], "nnr-search"), (["policies"], "german"), (["policies", "adult"], None)],
)
def test_lists_load_nothing_heavy(words: list[str], rows: str | None, tmp_path: Path) -> None:
    more = [] if rows else ["-o", str(tmp_path / "policy.toml")]
    printed, loaded = run(COMMAND_LINE, *words, *more)
    assert (rows or "policy.toml") in printed
    assert {"torch", "sklearn", "scipy", "matplotlib"} & loaded == set()


def test_a_split_loads_no_torch(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,b\n" + "".join(f"{k},{k % 2}\n" for k in range(40)))
    ends = ["--rest", str(tmp_path / "rest.csv"), "--held", str(tmp_path / "held.csv")]
    printed, loaded = run(COMMAND_LINE, "split", str(table), *ends)
    assert "30 rows in" in " ".join(printed.split())
    assert {"torch", "sklearn", "matplotlib"} & loaded == set()


def test_the_package_loads_nothing_heavy() -> None:
    printed, loaded = run("import genrecourse\nprint(genrecourse.__version__, dir(genrecourse))")
    assert "GenRe" in printed
    assert "genrecourse" in loaded
    assert HEAVY & loaded == set()
