"""Every example in a docstring runs, and finished packages have one for each public name."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import genrecourse

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = [
    "genrecourse",
    *(
        found.name
        for found in pkgutil.walk_packages(genrecourse.__path__, "genrecourse.")
        if not found.name.endswith("__main__")  # importing it runs the command line
    ),
]
# In these packages every public class and function has an example. Add a package when it is
# finished; none may leave.
DONE = {
    "errors",
    "table",
    "model",
    "data",
    "trust",
    "genre",
    "methods",
    "auditing",
    "rules",
    "advice",
    "compat",
    "planning",
    "reports",
    "evaluation",
}


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # an example may write a file
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert not failed, capsys.readouterr().out


def public(module: ModuleType) -> Iterator[tuple[str, str]]:
    """The name and docstring of each public class and function that a module defines."""
    for name, value in vars(module).items():
        is_ours = getattr(value, "__module__", None) == module.__name__
        is_code = inspect.isclass(value) or inspect.isroutine(inspect.unwrap(value))
        if is_ours and is_code and not name.startswith("_"):
            yield name, value.__doc__ or ""


def without_example(modules: list[str]) -> list[str]:
    return [
        f"{name}.{what}"
        for name in modules
        if not any(part.startswith("_") for part in name.split("."))  # private
        for what, text in public(importlib.import_module(name))
        if ">>> " not in text
    ]


def test_finished_packages_have_an_example_for_every_public_name() -> None:
    finished = [name for name in MODULES if name.split(".")[1:2] and name.split(".")[1] in DONE]
    assert {name.split(".")[1] for name in finished} == DONE
    assert without_example(finished) == []


def test_a_name_without_an_example_is_found() -> None:
    assert "genrecourse.errors.UserError" not in without_example(["genrecourse.errors"])
    module = ModuleType("made")
    exec("def shown():\n    '''>>> 1\n    1'''\ndef bare():\n    '''No.'''", vars(module))
    for value in (module.shown, module.bare):
        value.__module__ = "made"
    assert [name for name, text in public(module) if ">>> " not in text] == ["bare"]
