"""The counts of scripts/house.py find what they are about, and none is above its limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import house


def test_no_limit_is_broken() -> None:
    assert house.broken(house.measured()) == []


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small package to count in."""
    monkeypatch.setattr(house, "PACKAGE", tmp_path)
    house.trees.cache_clear()
    (tmp_path / "base.py").write_text("class Method:\n    def _mine(self): pass\n")
    yield tmp_path
    house.trees.cache_clear()


@pytest.mark.parametrize(
    ("code", "foreign", "private"),
    [
        ("def f(method: Method): return method.plans()", 1, 0),
        ("def f(method: Any): return method.plans()", 1, 0),
        ("def f(x: Method | None = None): return x", 1, 0),
        ("def f(name: str): return name", 0, 0),
        ("def f(x): return x._mine()", 0, 1),
        ("class A:\n    def _own(self): pass\ndef f(a): return a._own()", 0, 0),
        ("class Near(Method): pass\ndef f(x: Near): return x", 0, 0),
    ],
)
def test_what_is_counted(package: Path, code: str, foreign: int, private: int) -> None:
    (package / "other.py").write_text(code + "\n")
    assert len(house.foreign_methods()) == foreign
    assert len(house.private_accesses()) == private


def test_a_broken_limit_is_a_sentence() -> None:
    found = {name: [] for name in house.LIMITS}
    assert house.broken(found) == []
    (sentence,) = house.broken({**found, "private accesses across files": ["a.py:1 x._y"]})
    assert sentence == "private accesses across files: 1, at most 0: a.py:1 x._y"


def test_a_trace_counts_modules_and_crossings() -> None:
    from genrecourse.errors import counted

    found = house.trace(lambda: counted(2, "row"))
    assert (found["modules"], found["crossings"]) == (1, 0)
