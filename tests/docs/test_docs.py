"""The pages under docs/ say what is true of the code."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pytest
from typer.testing import CliRunner

import genrecourse
from genrecourse import METHODS, Classifier, GenRe, NearestNeighbour, UserError
from genrecourse.apps import cli
from genrecourse.data import datasets
from genrecourse.evaluation.checks import example_score, make_example
from genrecourse.evaluation.metrics import METRICS
from scripts.api_docstrings import to_markdown
from tests.support.links import dead_links, local_links

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
EQUATIONS = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
NOTATION = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")

EQUATION_MARK = re.compile(r"# >>> Eq\. \((\d+)\)")
# a comment "# Alg. 2, line 4" or a docstring that opens with "Algorithm 1, lines 4-9"
LINE_MARK = re.compile(r'(?:# |""")Alg(?:\.|orithm) (\d), lines? (\d+)(?:-(\d+))?')


def table_rows(text: str) -> list[list[str]]:
    """The cells of every table row, heads and rulers left out."""
    lines = text.splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line, after in zip(lines, [*lines[1:], ""], strict=True)
        if line.startswith("|") and not line.startswith("|--") and not after.startswith("|--")
    ]
    assert rows
    return rows


def names_in(text: str) -> list[str]:
    return re.findall(r"`(genrecourse\.[\w.]+)`", text)


def resolve(name: str) -> Any:
    """The object that a dotted name stands for."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def marks(pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], str]]:
    """Every mark in the package, with the dotted name of the function or class around it."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        tree = ast.parse(text)
        for number, line in enumerate(text.splitlines(), start=1):
            for found in pattern.finditer(line):
                yield found, ".".join([module, *enclosing(tree, number)])


def enclosing(node: ast.AST, line: int) -> list[str]:
    """Names of the classes and functions that hold a line, outermost first."""
    for child in ast.iter_child_nodes(node):
        if getattr(child, "lineno", line + 1) <= line <= (getattr(child, "end_lineno", 0) or 0):
            named = isinstance(child, ast.ClassDef | ast.FunctionDef)
            return ([child.name] if named else []) + enclosing(child, line)
    return []


def test_every_function_named_in_equations_exists() -> None:
    names = names_in(EQUATIONS)
    assert len(names) > 20
    for name in names:
        resolve(name)


def test_equation_marks_and_the_page_agree() -> None:
    listed = Counter(
        (int(number), name)
        for row in table_rows(EQUATIONS)
        if row[0].startswith("Eq.")
        for number in re.findall(r"\((\d+)\)", row[0])
        for name in names_in(row[2])
    )
    marked = Counter((int(mark[1]), name) for mark, name in marks(EQUATION_MARK))
    assert {number for number, _ in marked} >= {6, 8}
    assert marked == listed


def test_algorithm_marks_and_the_page_agree() -> None:
    def lines(mark: re.Match[str]) -> tuple[int, int, int]:
        return int(mark[1]), int(mark[2]), int(mark[3] or mark[2])

    listed = {
        (*lines(mark), name)
        for row in table_rows(EQUATIONS)
        if (mark := LINE_MARK.match("# " + row[0]))
        for name in names_in(row[2])
    }
    marked = {(*lines(mark), name) for mark, name in marks(LINE_MARK)}
    assert marked == listed
    # between them they hold every line but the ends of loops
    covered = {(alg, n) for alg, first, last, _ in marked for n in range(first, last + 1)}
    assert covered >= {(1, n) for n in range(1, 8)} | {(2, n) for n in (1, 2, 3, 4, 5, 6, 8)}


def test_equation_marks_are_closed() -> None:
    for path in SOURCE.rglob("*.py"):
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
        order = [line[:5] for line in lines if line.startswith(("# >>>", "# <<<"))]
        assert order == ["# >>>", "# <<<"] * (len(order) // 2), path


# Tests of equations and algorithm lines: all of tests/genre/ but those of requests and searches.
OTHERS = {
    *("test_any_lam.py", "test_sample_constrained.py"),
    *("test_search.py", "test_search_compared.py", "test_large_tables.py"),
}
EQUATION_TESTS = [
    *(p for p in (ROOT / "tests/genre").glob("test_*.py") if p.name not in OTHERS),
    ROOT / "tests/methods/test_diffusion.py",
]


def test_the_page_lists_the_tests_that_there_are() -> None:
    bodies = [ast.parse(path.read_text(encoding="utf-8")).body for path in EQUATION_TESTS]
    written = [
        node.name
        for body in bodies
        for node in body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert len(written) == len(set(written)) > 60
    listed = {
        name for row in table_rows(EQUATIONS) for name in re.findall(r"`(test_\w+)`", row[-1])
    }
    assert set(written) == listed


def test_each_code_row_has_a_test() -> None:
    for row in table_rows(EQUATIONS):
        if names_in(row[-2]):
            assert "`test_" in row[-1], row


# The words of the design; each is defined once, in notation.md, before a page or a name uses it.
WORDS = ["x", "x_plus", "h", "gamma", "lam", "temperature", "sigma", "n_bins", "top_k"]
VIEWS = ["X", "F", "Z"]


@pytest.mark.parametrize("word", [*WORDS, *VIEWS])
def test_each_word_is_defined_once(word: str) -> None:
    defined = [row for row in table_rows(NOTATION) if f"`{word}`" in row[0]]
    assert len(defined) == 1
    assert len(defined[0][-1]) > 10


def test_tau_is_explained_beside_temperature() -> None:
    (row,) = [row for row in table_rows(NOTATION) if row[0] == "`temperature`"]
    assert "divides" in row[-1]
    assert r"\tau" in row[-1]
    assert "misprint" in EQUATIONS
    assert "N+^(-1/2)" in EQUATIONS


# ---- code blocks ---------------------------------------------------------------------------------

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
# add_a_rule: test_add_a_rule.py applies it to a copy of the package; serve: test_docs_page.py asks
RUN_ELSEWHERE = ["add_a_rule.md", "serve.md"]
FILE_NAME = re.compile(r"# (\w+\.py)\n")  # the first line of a block that is a file
# what a browser loads by itself from another server; a link that a reader clicks is none of these
FETCHED = re.compile(r"<(?:script|img|iframe|source|link)[^>]*(?:src|href)=[\"']?(?:https?:)?//")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


APPLICANTS = 400  # rows that the commands of a page work on: plans for fewer people show as much
WHOLE_TABLE = ("audit.md",)  # it cuts the table in two


def fewer_applicants(line: str) -> None:
    """Shorten the table that a line `genrecourse datasets NAME -o FILE` has written."""
    words = shlex.split(line, comments=True)
    if words[:2] == ["genrecourse", "datasets"] and "-o" in words:
        pd.read_csv(words[-1]).head(APPLICANTS).to_csv(words[-1], index=False)


def run_shell(line: str) -> None:
    """A line of a shell block: `genrecourse` runs; what takes long is shown to exist."""
    words = shlex.split(line, comments=True)
    if words[0] == "genrecourse":
        if words[1] in ("demo", "evaluate", "compare", "serve"):  # other tests run them
            words = [*words[:2], "--help"]
        elif words[1] == "record":  # there is one only where the service has run
            words = [*words[:3], "--help"]
        done = CliRunner().invoke(cli.app, words[1:])
        assert done.exit_code == 0, (line, done.output, done.exception)
        if words[1] == "explain":  # a row that there is something to say about
            assert "what would change" in done.output, (line, done.output)
    elif words[0] == "make":
        subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, capture_output=True)
    elif words[:2] == ["python", "-m"]:
        module = ROOT.joinpath(*words[2].split("."))
        assert (module / "__main__.py").is_file() or module.with_suffix(".py").is_file(), line
    elif words[0] == "python" and Path(words[1]).is_file():  # a file that the page itself wrote
        paths = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, words[1]],
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    elif words[0] == "python":
        assert (ROOT / words[1]).is_file(), line
    elif words[:2] == ["pip", "install"]:
        (what,) = words[2:]  # tests/test_wheel.py installs the wheel
        assert what in (".", "genrecourse", "genrecourse[parquet]") or what.endswith(".whl"), line
    else:
        raise AssertionError(f"nobody runs this line of a page: {line}")


@pytest.mark.filterwarnings("ignore:.*rejected rows have no accepted row")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in RUN_ELSEWHERE], ids=lambda page: page.name
)
def test_every_code_block_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the page and in one folder, with a GenRe that is quick to learn."""
    quick = partial(GenRe, **GenRe._test_params())
    monkeypatch.setitem(METHODS, "genre", quick)  # type: ignore[arg-type]
    monkeypatch.setattr(genrecourse, "GenRe", quick)
    monkeypatch.setattr(datasets, "DATASETS", dict(datasets.DATASETS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    shutil.copytree(ROOT / "policies", "policies")
    with patch.dict(METHODS), patch.dict(METRICS):  # a page may add one
        run_page(page, tmp_path)


def run_page(page: Path, folder: Path) -> None:
    names: dict[str, Any] = {}
    for language, code in blocks(page):
        if language == "python":
            named = FILE_NAME.match(code)
            names["__name__"] = Path(named[1]).stem if named else "__main__"
            exec(compile(code, page.name, "exec"), names)
            if named:  # a later block imports or runs it, and so may a process
                (folder / named[1]).write_text(code, encoding="utf-8")
        elif language == "sh":
            for line in code.strip().splitlines():
                run_shell(line)
                if page.name not in WHOLE_TABLE:
                    fewer_applicants(line)
        elif language == "toml":
            assert tomllib.loads(code)
        else:
            assert language == "text", f"{page.name} has a block of '{language}'"


def test_the_site_builds(tmp_path: Path) -> None:
    """No dead link, no page left out, every object of the API reference found, nothing fetched."""
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # the theme advertises its successor
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, env=quiet)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tutorial" / "index.html").is_file()
    reference = (tmp_path / "api" / "index.html").read_text(encoding="utf-8")
    assert not [name for name in genrecourse.__all__ if f'id="genrecourse.{name}"' not in reference]
    packages = {path.parent.name for path in SOURCE.glob("genrecourse/*/__init__.py")}
    assert len(packages) > 10
    assert not [name for name in packages if not (tmp_path / "api" / name / "index.html").is_file()]
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not FETCHED.search(text), page
        assert 'class="mermaid"' not in text, page  # the theme would fetch a script to draw it


def test_a_docstring_becomes_markdown() -> None:
    text = "Adds.\n\nNotes\n-----\na, b: the numbers,\n    both.\nx: no parameter.\n\n"
    text += "    >>> add(1, 2)\n    3"
    assert to_markdown(text, {"a", "b"}).splitlines() == [
        "Adds.",
        "",
        "**Notes**",
        "",
        "- `a, b`: the numbers,",
        "    both.",
        "x: no parameter.",
        "",
        "```pycon",
        ">>> add(1, 2)",
        "3",
        "```",
    ]


def test_no_link_of_the_readme_is_dead() -> None:
    """mkdocs checks the links of docs/."""
    assert dead_links(ROOT / "README.md") == []
    assert len(local_links(ROOT / "README.md")) > 20


def test_the_figures_are_those_of_the_results() -> None:
    check = [sys.executable, "-m", "scripts.write_results", "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_page_names_a_path_of_one_machine() -> None:
    for page in [*PAGES, *ROOT.glob("docs/decisions/*.md")]:
        assert not re.search(r"/(work|root|home|tmp)/", page.read_text(encoding="utf-8")), page


# ---- CONTRIBUTING --------------------------------------------------------------------------------

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_table_of_rooms_is_that_of_the_import_linter() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    table = CONTRIBUTING.split("| Room |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == layers


def test_the_example_of_an_error_is_what_the_library_says() -> None:
    example = make_example(rows=80, people=10)
    method = NearestNeighbour(Classifier(example_score), example.schema, gamma=1.0)
    with pytest.raises(UserError) as caught:
        method.fit(example.X, example.y)
    assert f'*"{caught.value}"*' in " ".join(CONTRIBUTING.split())
