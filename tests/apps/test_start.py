"""The help and `import genrecourse` load no package that takes seconds to import."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"matplotlib", "pandas", "scipy", "sklearn", "torch"}

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


def test_the_package_loads_nothing_heavy() -> None:
    printed, loaded = run("import genrecourse\nprint(genrecourse.__version__, dir(genrecourse))")
    assert "GenRe" in printed
    assert "genrecourse" in loaded
    assert HEAVY & loaded == set()
