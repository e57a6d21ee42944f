"""scripts/mutants.py: its list still fits the source, its results name every mutation, and it
says how each run of the tests ended."""

from __future__ import annotations

import doctest
from dataclasses import replace
from pathlib import Path

import pytest

from scripts import mutants
from scripts.mutants import Found, Mutation

# ---- the list and the committed results ---------------------------------------------------------


def test_every_mutation_still_fits_the_source() -> None:
    """If this fails, correct scripts/mutants.toml and run the mutant: --only NAME."""
    assert mutants.problems(mutants.mutations()) == []


def test_the_results_name_every_mutation_and_none_survives_unexplained() -> None:
    """If this fails, run `make mutants`."""
    text = mutants.RESULT.read_text(encoding="utf-8")
    rows, listed = mutants.rows_of(text), mutants.mutations()
    assert list(rows) == [each.name for each in listed]
    for each in listed:
        *cells, result = rows[each.name]
        assert tuple(cells) == each.cells  # they are the results of this list
        status = mutants.EQUIVALENT if each.equivalent else mutants.KILLED
        assert result.startswith(status), f"{each.name}: {result}"
        assert each.equivalent in result
    assert text.splitlines()[-1].startswith(f"{len(listed)} mutants: ")


def test_the_examples_run() -> None:
    assert doctest.testmod(mutants).failed == 0


# ---- a small library, and tests of it -----------------------------------------------------------

TESTS = {
    "test_sharp.py": "from genrecourse.sign import sign\ndef test_it(): assert sign(2) == 1\n",
    "test_blunt.py": "from genrecourse.sign import sign\ndef test_it(): assert sign(0)\n",
    "test_broken.py": "import no_such_package\n",
}
MUTATION = Mutation("wrong-way", "sign.py", "x > 0", "x < 0", ("tests/test_sharp.py",))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    package = tmp_path / mutants.PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "sign.py").write_text("def sign(x):\n    return 1 if x > 0 else -1\n")
    (tmp_path / "tests").mkdir()
    for name, text in TESTS.items():
        (tmp_path / "tests" / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, ""),
        ({"old": "x > 1"}, "wrong-way: `x > 1` occurs 0 times in sign.py"),
        ({"old": "x"}, "wrong-way: `x` occurs 2 times in sign.py"),
        ({"new": "x > 0"}, "wrong-way: it has to change something"),
        ({"new": "x >"}, "wrong-way: with `x >`, sign.py is no Python"),
        ({"file": "signs.py"}, "wrong-way: there is no file signs.py"),
        ({"tests": ("tests/test_sharp.py::test_it",)}, ""),
        ({"tests": ("tests/test_gone.py",)}, "wrong-way: it names no tests"),
        ({"tests": ("tests/test_sharp.py::test_gone",)}, "wrong-way: it names no tests"),
        ({"tests": ()}, "wrong-way: it names no tests"),
    ],
)
def test_a_stale_mutation_is_noticed(root: Path, change: dict[str, object], says: str) -> None:
    problem = replace(MUTATION, **change).problem(root)  # type: ignore[arg-type]
    assert problem.startswith(says)
    assert bool(problem) == bool(says)


def test_a_name_given_twice_is_noticed(root: Path) -> None:
    (problem,) = mutants.problems([MUTATION, MUTATION], root)
    assert problem == "wrong-way: two mutations have this name"


@pytest.mark.parametrize(
    ("tests", "status"),
    [
        ("tests/test_sharp.py", "killed by tests/test_sharp.py::test_it"),
        ("tests/test_blunt.py", "survived"),
        ("tests/test_broken.py", "collection error: tests/test_broken.py"),
    ],
)
def test_what_the_tests_say_of_a_mutation(root: Path, tests: str, status: str) -> None:
    source = (root / mutants.PACKAGE / "sign.py").read_text()
    found = mutants.tried(replace(MUTATION, tests=(tests,)), root, root)
    assert str(found).startswith(status)
    assert (root / mutants.PACKAGE / "sign.py").read_text() == source  # only the copy is changed


def test_what_the_list_calls_equivalent_has_to_survive() -> None:
    mutation, killed = replace(MUTATION, equivalent="nobody asks"), Found("killed", "a.py::b")
    assert str(mutants.judged(mutation, Found("survived"))) == "equivalent: nobody asks"
    found = mutants.judged(mutation, killed)
    assert str(found) == "no result: the list calls it equivalent, but it is killed by a.py::b"
    assert mutants.judged(mutation, Found("timeout")).status == "timeout"
    assert mutants.judged(MUTATION, killed) == killed


def test_a_run_without_an_end_is_no_kill(root: Path) -> None:
    (root / "tests" / "test_endless.py").write_text("while True: pass\n")
    found = mutants.run_tests(root, ["tests/test_endless.py"], limit=0.5, root=root)
    assert found == Found("timeout", "no answer in 0.5 s")


@pytest.mark.parametrize(
    ("code", "output", "status"),
    [
        (0, "3 passed", "survived"),
        (1, "FAILED tests/a.py::b - assert 0", "killed"),
        (1, "ERROR tests/a.py::b - KeyError", "killed"),  # in a fixture: the tests do notice
        (2, "ERROR tests/a.py - ImportError", "collection error"),
        (1, "", "no result"),
        (4, "ERROR: file or directory not found: tests/a.py", "no result"),
        (5, "no tests ran", "no result"),
        (-9, "", "no result"),
    ],
)
def test_every_end_of_a_run_has_its_name(code: int, output: str, status: str) -> None:
    assert mutants.verdict(code, output).status == status


def test_a_table_can_be_read_again(tmp_path: Path) -> None:
    other, third = replace(MUTATION, name="other", new="x > 1 | 2"), replace(MUTATION, name="third")
    results = {"wrong-way": "killed by tests/test_sharp.py::test_it", "other": "survived"}
    text = "\n".join(mutants.table([MUTATION, other, third], results))
    assert text.splitlines()[-1] == "2 mutants: 1 killed, 0 equivalent, 1 survived"
    rows = mutants.rows_of(text)
    assert rows["other"] == (*other.cells, "survived")
    (tmp_path / "results.txt").write_text(text)
    # a result stays until its mutation changes
    assert mutants.recorded([MUTATION, other], tmp_path / "results.txt") == results
    changed = replace(other, new="x > 2")
    assert list(mutants.recorded([MUTATION, changed], tmp_path / "results.txt")) == ["wrong-way"]
    assert mutants.recorded([MUTATION], tmp_path / "none.txt") == {}
