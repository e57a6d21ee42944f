"""Breaks the library on purpose, one line at a time, to see which tests notice: `make mutants`.

`mutants.toml` lists the mutations. Each is made in a copy of `src/` in a temporary folder, and the
few test files that should notice it run against the copy; the working tree is never changed.

python -m scripts.mutants               # all, into benchmarks/results/mutants.txt
python -m scripts.mutants --only NAME   # this one, in the same file; may be given several times
python -m scripts.mutants --jobs 4      # so many at once

A mutation is *killed* if a test fails, and has *survived* if none does. A survivor is a line that
no test holds, or *equivalent*: it changes nothing that a caller can see, and the list says why. A
run that ends in any other way says so, and counts as nothing: `timeout`, `collection error` (a test
file could not even be imported) and `no result`.
"""

from __future__ import annotations

import argparse
import ast
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "scripts" / "mutants.toml"
RESULT = ROOT / "benchmarks" / "results" / "mutants.txt"
PACKAGE = Path("src") / "genrecourse"
LIMIT = 900.0  # seconds for the tests of one mutation: few are needed, but a machine may be busy
OPTIONS = ("-x", "-q", "-rfE", "--tb=no", "--color=no", "-p", "no:cacheprovider", "-m", "not slow")
# What takes seconds to import, and is not ours, is imported once: each run is a fork of that.
SERVER = multiprocessing.get_context("forkserver")
HEAVY = ("pytest", "pandas", "sklearn.ensemble", "scipy.stats", "torch", "matplotlib")
KILLED, SURVIVED, EQUIVALENT = "killed", "survived", "equivalent"
TIMEOUT, COLLECTION, NO_RESULT = "timeout", "collection error", "no result"
STATUSES = (KILLED, EQUIVALENT, SURVIVED, TIMEOUT, COLLECTION, NO_RESULT)
GOOD = (KILLED, EQUIVALENT)
SEPARATOR = "  |  "  # a mutation may contain one with single spaces
COMMAND = "python -m scripts.mutants"
HEADER = ("mutant", "file", "what changes", "tests", "result")


@dataclass(frozen=True)
class Mutation:
    """One line of the library, written wrongly.

    >>> Mutation("sign", "table/cost.py", "a - b", "b - a", ("tests/table/test_cost.py",)).change
    '`a - b` → `b - a`'
    """

    name: str
    file: str  # below src/genrecourse
    old: str  # text that occurs once in the file
    new: str
    tests: tuple[str, ...]  # the test files, or tests, that should notice
    equivalent: str = ""  # why no test can notice

    @property
    def change(self) -> str:
        return f"`{self.old}` → `{self.new}`"

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of its row in the table that the list alone decides."""
        return self.name, self.file, self.change, " ".join(self.tests)

    def problem(self, root: Path = ROOT) -> str:
        """Return why the mutation cannot be made, as a sentence; empty if it can."""
        path = root / PACKAGE / self.file
        if not path.is_file():
            return f"{self.name}: there is no file {self.file}"
        text = path.read_text(encoding="utf-8")
        times = text.count(self.old)
        if times != 1:
            return f"{self.name}: `{self.old}` occurs {times} times in {self.file}, and not once"
        if self.old == self.new or "\n" in self.old + self.new:
            return f"{self.name}: it has to change something, on one line"
        try:
            ast.parse(text.replace(self.old, self.new))
        except SyntaxError as error:
            return f"{self.name}: with `{self.new}`, {self.file} is no Python: {error.msg}"
        absent = [test for test in self.tests if not _is_there(test, root)]
        if absent or not self.tests:
            return f"{self.name}: it names no tests, or tests that are not there: {absent}"
        return ""

    def apply(self, root: Path) -> None:
        """Make the mutation in a copy of the repository's `src/` below `root`."""
        path = root / PACKAGE / self.file
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()  # it may be as old and as long as the mutated file
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


def _is_there(test: str, root: Path) -> bool:
    """Return whether there is such a file of tests, or such a test in it."""
    file, _, name = test.partition("::")
    path = root / file
    if not path.is_file():
        return False
    return not name or f"def {name}(" in path.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Found:
    """What the tests said of one mutation, or of the library as it is."""

    status: str
    detail: str = ""  # the test that failed, or what else happened

    def __str__(self) -> str:
        joint = " by " if self.status == KILLED else ": "
        return f"{self.status}{joint}{self.detail}" if self.detail else self.status


def mutations(path: Path = LIST) -> list[Mutation]:
    """Return the mutations of the list, in its order."""
    listed = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    return [Mutation(**{**each, "tests": tuple(each["tests"])}) for each in listed]


def problems(listed: Sequence[Mutation], root: Path = ROOT) -> list[str]:
    """Return why the list is stale, one sentence each; none if every mutation can be made."""
    twice = [name for name, n in Counter(each.name for each in listed).items() if n > 1]
    found = [f"{name}: two mutations have this name" for name in twice]
    return found + [problem for each in listed if (problem := each.problem(root))]


# ---- one run of the tests -----------------------------------------------------------------------


def run_tests(copy: Path, tests: Sequence[str], limit: float = LIMIT, root: Path = ROOT) -> Found:
    """Return what the tests of `root` say of the library in `copy`: killed if one of them fails."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8", errors="replace") as output:
        ran = SERVER.Process(target=_run_tests, args=(copy, tuple(tests), root, output.name))
        ran.start()
        ran.join(limit)
        if ran.exitcode is None:
            _end(ran)
            return Found(TIMEOUT, f"no answer in {limit:g} s")
        return verdict(ran.exitcode, output.read())


def _end(ran: BaseProcess) -> None:
    """Kill a process and what it has started."""
    assert ran.pid is not None
    with suppress(ProcessLookupError):  # it may have started nothing yet
        os.killpg(ran.pid, signal.SIGKILL)
    ran.kill()
    ran.join()


def _run_tests(copy: Path, tests: Sequence[str], root: Path, output: str) -> None:
    """Run pytest in this process, a fork of one that has imported what the library builds on."""
    os.setsid()  # so that what a test starts can be ended with it
    os.chdir(root)
    with open(output, "w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    found = [name for name in sys.modules if name.split(".")[0] == "genrecourse"]
    if found:
        print(f"{found[0]} was imported before the copy was in place")
        sys.exit(len(found))
    sys.path[:0] = [str(copy / "src"), str(root)]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])  # of what a test starts
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(copy / ".hypothesis")
    sys.exit(pytest.main([*OPTIONS, *tests]))


def verdict(code: int, output: str) -> Found:
    """Return what a run of pytest says, from its exit code and its summary.

    >>> verdict(1, "FAILED tests/test_a.py::test_b - assert 1 == 2").detail
    'tests/test_a.py::test_b'
    >>> str(verdict(2, "ERROR tests/test_a.py - ImportError: no"))
    'collection error: tests/test_a.py - ImportError: no'
    """
    lines = re.findall(r"^(?:FAILED|ERROR) (.*)$", output, flags=re.MULTILINE)
    broken = [line for line in lines if "::" not in line.split(" - ")[0]]
    if broken:
        return Found(COLLECTION, broken[0])
    if code == 0:
        return Found(SURVIVED)
    if code == 1 and lines:
        return Found(KILLED, lines[0].split(" - ")[0])
    last = output.strip().splitlines()[-1:] or ["no output"]
    return Found(NO_RESULT, f"pytest ended with {code}: {last[0]}")


def pristine(folder: Path, root: Path = ROOT) -> Path:
    """Return a copy of the library, compiled, and check that it is what the tests would import."""
    copy = folder / "pristine"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(root / "src", copy / "src", ignore=ignored)
    environment = os.environ | {"PYTHONPATH": str(copy / "src")}
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(copy)], check=True)
    code = "import genrecourse; print(genrecourse.__file__)"
    command = [sys.executable, "-c", code]
    imported = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    if not Path(imported.stdout.strip()).is_relative_to(copy.resolve()):
        raise SystemExit(f"the tests would import {imported.stdout.strip()}, and not the copy")
    return copy


def tried(mutation: Mutation, copy: Path, root: Path = ROOT) -> Found:
    """Return what the tests say of one mutation of the library in `copy`."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        folder = Path(name)
        shutil.copytree(copy / "src", folder / "src")
        mutation.apply(folder)
        return judged(mutation, run_tests(folder, mutation.tests, root=root))


def judged(mutation: Mutation, found: Found) -> Found:
    """Return the result of a mutation: what the tests say, and what the list says."""
    if mutation.equivalent and found.status == SURVIVED:
        return Found(EQUIVALENT, mutation.equivalent)
    if mutation.equivalent and found.status == KILLED:
        return Found(NO_RESULT, f"the list calls it equivalent, but it is {found}")
    return found


# ---- all of them --------------------------------------------------------------------------------


def check_unbroken(listed: Sequence[Mutation], copy: Path) -> None:
    """Stop unless the tests of all these mutations pass without them."""
    tests = list(dict.fromkeys(test for each in listed for test in each.tests))
    found = run_tests(copy, tests, limit=LIMIT * len(tests))
    if found.status != SURVIVED:
        raise SystemExit(f"without any mutation, the tests do not pass: {found}")


def table(listed: Sequence[Mutation], results: Mapping[str, str]) -> Iterator[str]:
    """Yield the rows of the mutations that have a result, and the count."""
    known = [each for each in listed if each.name in results]
    rows = [HEADER, *((*each.cells, results[each.name]) for each in known)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(HEADER))]
    for row in rows:
        yield SEPARATOR.join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip()
    counts = Counter(status_of(results[each.name]) for each in known)
    said = [f"{counts[s]} {s}" for s in STATUSES if counts[s] or s in (*GOOD, SURVIVED)]
    yield f"{len(known)} mutants: {', '.join(said)}"


def status_of(result: str) -> str:
    """Return the status of a result as the table has it.

    >>> status_of("killed by tests/test_a.py::test_b")
    'killed'
    """
    return next(status for status in STATUSES if result.startswith(status))


def rows_of(text: str) -> dict[str, tuple[str, ...]]:
    """Return the cells of every row of a table, by the name of the mutant."""
    rows = [line.split(SEPARATOR) for line in text.splitlines() if SEPARATOR in line]
    cells = [tuple(cell.strip() for cell in row) for row in rows]
    return {row[0]: row for row in cells if row != HEADER}


def recorded(listed: Sequence[Mutation], path: Path = RESULT) -> dict[str, str]:
    """Return the results in the file, of the mutations that have not changed since."""
    rows = rows_of(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {each.name: rows[each.name][-1] for each in listed if _is_row(rows, each)}


def _is_row(rows: Mapping[str, tuple[str, ...]], mutation: Mutation) -> bool:
    return rows.get(mutation.name, ())[:-1] == mutation.cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", action="append", metavar="NAME", help="try this mutant alone")
    parser.add_argument("--jobs", type=int, default=1, help="how many mutants to try at once")
    asked = parser.parse_args()
    listed = mutations()
    stale = problems(listed)
    unknown = sorted(set(asked.only or ()) - {each.name for each in listed})
    if stale or unknown:
        raise SystemExit("\n".join([*stale, *(f"{name}: no such mutant" for name in unknown)]))
    some = [each for each in listed if not asked.only or each.name in asked.only]
    results = recorded(listed) if asked.only else {}
    started = time.monotonic()
    os.environ["OMP_NUM_THREADS"] = "1"
    SERVER.set_forkserver_preload(list(HEAVY))
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        copy = pristine(Path(name))
        check_unbroken(some, copy)
        print(f"the tests pass without a mutation; {len(some)} mutants")
        with ThreadPoolExecutor(asked.jobs) as pool:
            for mutation, found in zip(some, pool.map(lambda m: tried(m, copy), some), strict=True):
                results[mutation.name] = str(found)
                print(f"{mutation.name}: {found}", flush=True)
                text = "\n".join([f"# {COMMAND}", *table(listed, results)])
                RESULT.write_text(text + "\n", encoding="utf-8")
    print(f"{text.splitlines()[-1]}; {(time.monotonic() - started) / 60:.0f} minutes")
    bad = [each.name for each in some if status_of(results[each.name]) not in GOOD]
    if bad:
        raise SystemExit(f"neither killed nor explained: {', '.join(bad)}")


if __name__ == "__main__":
    main()
