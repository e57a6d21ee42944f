"""The command line with bad rows in a table, and with outputs that cannot be written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import genrecourse
from genrecourse.apps import cli
from tests.support.bad_cells import LOANS, loan_schema, score

REPOSITORY = Path(__file__).parents[2]


def run(*words: Any) -> Result:
    return CliRunner().invoke(cli.app, [str(word) for word in words])


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the loans, with a net of its own."""
    folder = tmp_path_factory.mktemp("model") / "model"
    method = genrecourse.NearestNeighbour(
        genrecourse.Classifier(favourable="good"), loan_schema(), gamma=0.6
    )
    method.fit(LOANS, pd.Series(score(LOANS) > 0.55).map({True: "good", False: "bad"}))
    method.save(folder)
    return folder


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: Path) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(kept, "model")
    people = LOANS.head(40).assign(id=range(40), side=["a", "b"] * 20)
    people.to_csv("people.csv", index=False)
    odd = people.astype(object)
    odd.loc[3, "income"] = "unknown"
    odd.loc[7, "job"] = "astronaut"
    odd.to_csv("odd.csv", index=False)
    people.head(0).to_csv("nobody.csv", index=False)


# ---- bad rows ---------------------------------------------------------------------------------


def test_plans_for_a_table_with_bad_rows() -> None:
    pd.read_csv("people.csv").drop(index=[3, 7]).to_csv("clean.csv", index=False)
    clean = run("plans", "model", "clean.csv", "-n", 2, "-o", "clean.json")
    done = run("plans", "model", "odd.csv", "-n", 2, "-o", "odd.json")
    assert (clean.exit_code, done.exit_code) == (0, 0), (done.output, done.exception)
    assert "2 unreadable" in done.stdout
    (line,) = [line for line in done.stderr.splitlines() if "cannot be read" in line]
    assert "2 of 40 rows cannot be read; first, person 3: This row" in line
    assert "income should hold a number but holds 'unknown'" in line
    ignored = "has 2 columns that the model does not read, which are ignored: 'id', 'side'"
    assert done.stderr.count(ignored) == clean.stderr.count(ignored) == 1
    one, other = (json.loads(Path(name).read_text()) for name in ("clean.json", "odd.json"))
    rest = [plan for plan in other if plan["person"] not in (3, 7)]
    assert [plan | {"person": ""} for plan in rest] == [plan | {"person": ""} for plan in one]
    assert [other[row]["reason_code"] for row in (3, 7)] == ["wrong-type", "unseen-category"]
    for name in ("odd_plans.csv", "odd.parquet", "odd.html"):
        assert run("plans", "model", "odd.csv", "-o", name).exit_code == 0
    table = pd.read_csv("odd_plans.csv")
    assert table[table["status"] == "unreadable"]["row"].tolist() == [3, 7]
    rechecked = run("recheck", "odd.json", "--model", "model")
    assert rechecked.exit_code == 0, rechecked.output


def test_strict_plans_end_with_an_error() -> None:
    for words in (
        ("plans", "model", "odd.csv", "-o", "plans.csv"),
        ("explain", "model", "odd.csv", "--row", 3),
        ("audit", "model", "odd.csv", "--group", "side", "-o", "audit.json"),
    ):
        done = run(*words, "--strict")
        assert done.exit_code == 2
        assert "error: column 'income' should hold numbers" in done.stderr
    assert not Path("plans.csv").exists()


def test_one_person_among_bad_rows() -> None:
    done = run("explain", "model", "odd.csv", "--row", 3)
    assert done.exit_code == 0, (done.output, done.exception)
    assert "This row cannot be read" in done.stdout
    fine = run("explain", "model", "odd.csv", "--row", 5)
    assert fine.stdout == run("explain", "model", "people.csv", "--row", 5).stdout
    letter = run("letter", "model", "odd.csv", "--row", 7)
    assert letter.exit_code == 2
    assert "no letter to person 7" in letter.stderr
    assert "'astronaut'" in letter.stderr


def test_an_audit_says_which_rows_it_leaves_out() -> None:
    words = ("--group", "side", "-o", "audit.json", "--least", 5)
    done = run("audit", "model", "odd.csv", *words)
    assert done.exit_code == 0, (done.output, done.exception)
    assert "38 people in 3 groups" in done.stdout
    assert "side = b: 2 of 20" in done.stdout
    assert "2 of 40 rows cannot be read and are left out" in done.stderr
    assert json.loads(Path("audit.json").read_text())["unreadable"]["everyone"]["rows"] == 40


def test_a_table_with_nothing_but_its_header() -> None:
    for name in ("plans.csv", "plans.json", "plans.parquet"):
        done = run("plans", "model", "nobody.csv", "-o", name)
        assert done.exit_code == 0, (done.output, done.exception)
        assert f"0 people; in {name}" in done.stdout
    assert len(pd.read_csv("plans.csv")) == 0
    assert json.loads(Path("plans.json").read_text()) == []
    for words, says in (
        (("plans", "model", "nobody.csv", "-o", "plans.html"), "the table has no people"),
        (("explain", "model", "nobody.csv", "--row", 0), "nobody to explain"),
        (("audit", "model", "nobody.csv", "--group", "side", "-o", "a.json"), "has no rows"),
    ):
        done = run(*words)
        assert done.exit_code == 2
        assert says in done.stderr


# ---- outputs ----------------------------------------------------------------------------------

WRITERS: dict[str, tuple[Any, ...]] = {
    "datasets": ("datasets", "german", "-o"),
    "schema": ("schema", "people.csv", "-o"),
    "fit": ("fit", "people.csv", "--target", "side", "--favourable", "a", "-o"),
    "plans": ("plans", "model", "people.csv", "-o"),
    "policies": ("policies", "german", "-o"),
    "reasons": ("reasons", "model", "people.csv", "--row", 0, "-o"),
    "letter": ("letter", "model", "people.csv", "--row", 0, "-o"),
    "recheck": ("recheck", "plans.json", "--model", "model", "-o"),
    "audit": ("audit", "model", "people.csv", "--group", "side", "-o"),
    "compare": ("compare", "--methods", "nnr", "--datasets", "german", "-o"),
    "batch": ("batch", "model", "people.csv"),
    "demo": ("demo", "--folder"),
}
ENDINGS = {"datasets": ".csv", "schema": ".json", "plans": ".csv", "letter": ".txt"}
ENDINGS |= {"recheck": ".csv", "audit": ".html", "compare": ".jsonl", "fit": "", "demo": ""}
ENDINGS |= {"reasons": ".json", "policies": ".toml", "batch": ""}
READERS = ("schema", "plans", "reasons", "recheck", "audit")  # of people.csv, into another file
HEAVY = ("torch", "sklearn", "pandas")


def test_every_command_that_writes_is_here() -> None:
    import typer

    commands = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]
    writing = {
        name
        for name, command in commands.items()
        for option in command.params
        if option.name in ("output", "folder")
    }
    assert writing == set(WRITERS)


@pytest.mark.parametrize("command", WRITERS)
def test_an_output_that_cannot_be_written_is_refused_before_any_work(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"out{ENDINGS[command]}"
    Path("file").write_text("")
    Path("folder").mkdir()
    Path("folder", "mine.txt").write_text("mine")
    shutil.copytree("folder", f"inside/{name}")
    places = [f"far/{name}", f"file/{name}", f"/proc/{name}", f"inside/{name}"]
    if command in ("fit", "batch", "demo"):
        places += ["file", "folder"]
    else:
        places += ["people.csv"] if command in READERS else []
    before = _state()
    monkeypatch.setattr("genrecourse.advice.service.Service.open", _never)
    monkeypatch.setattr("genrecourse.table.table_files.read_table", _never)
    monkeypatch.setattr("genrecourse.data.datasets.read_whole", _never)
    for place in places:
        if (command, place) == ("recheck", "people.csv"):
            place = "plans.json"
        done = run(*WRITERS[command], place)
        assert done.exit_code == 2, (place, done.output, done.exception)
        assert done.stderr.count("error: ") == 1
        assert "Traceback" not in done.output
        if place != "plans.json":
            assert "cannot write" in done.stderr, done.stderr
    assert _state() == before


def _never(*_: Any, **__: Any) -> None:
    raise AssertionError("it worked before it looked at the output")


def _state() -> dict[str, bytes | None]:
    return {str(p): p.read_bytes() if p.is_file() else None for p in Path().rglob("*")}


def test_it_is_refused_before_heavy_packages_are_loaded() -> None:
    code = (
        "import sys\n"
        "from genrecourse.apps.cli import app\n"
        "for words in WORDS:\n"
        "    try:\n"
        "        app([*words, 'far/away/' + words[0]])\n"
        "    except SystemExit as end:\n"
        "        assert end.code == 2, (words, end.code)\n"
        f"loaded = [name for name in {HEAVY} if name in sys.modules]\n"
        "assert not loaded, loaded\n"
    )
    words = [[str(w) for w in each] for each in WRITERS.values()]
    done = subprocess.run(
        [sys.executable, "-c", f"WORDS = {words!r}\n{code}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_folder_of_the_demo_is_used_again_unless_its_policy_was_edited() -> None:
    from genrecourse.apps.cli.start import POLICY
    from genrecourse.apps.demo import POLICY as WRITTEN

    assert POLICY == WRITTEN
    Path("demo").mkdir()
    Path("demo", "report.html").write_text("")
    Path("demo", "policy.toml").write_text("mine")
    done = run("demo")
    assert done.exit_code == 2
    assert "not a folder of the demo with its policy unchanged" in done.stderr
    assert Path("demo", "policy.toml").read_text() == "mine"


def test_results_are_appended_to_results_only() -> None:
    for content in (b"\x00\x01\xff" * 50, b"my notes", b"[" * 100_000 + b"\n", b"{}\n"):
        Path("results.jsonl").write_bytes(content)
        done = run(*WRITERS["compare"], "results.jsonl", "--rows", 5, "--no-witnesses")
        assert done.exit_code == 2, done.output
        assert "is not a result of a comparison" in done.stderr
        assert Path("results.jsonl").read_bytes() == content


@pytest.mark.parametrize(
    ("param", "says"),
    [
        ("gamma=[[", "is not JSON"),
        ("gamma={", "is not JSON"),
        ('gamma="', "is not JSON"),
        ("gamma=" + "[" * 60 + "]" * 60, "nested more than 50 deep"),
        ("gamma=" + "[" * 100_000, "nested more than 50 deep"),
        ("gamma=[" + "9" * 5000 + "]", "too many digits"),
        ("gamma=[1, 2]", "gamma is [1, 2]; it must be"),
        ("gamma=NaN", "gamma is nan"),
        ("gamma=" + "9" * 5000, "gamma is '999"),
        ("gamma", "should be NAME=VALUE"),
        ("=1", "should be NAME=VALUE"),
        ("gama=1", "no parameter ['gama'] (did you mean 'gamma'?)"),
        ("refine=nope", "refine is 'nope'; it must be True or False"),
        ("gamma=\0", "gamma is '\\x00'"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_parameter_that_cannot_be_read(param: str, says: str) -> None:
    done = run("evaluate", "--method", "nnr", "--dataset", "german", "--param", param)
    assert done.exit_code == 2, (done.output, done.exception)
    (line,) = done.stderr.splitlines()
    assert says in line
    assert len(line) < 600


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_write_protected_file_is_left_alone() -> None:
    Path("plans.csv").write_text("mine")
    Path("plans.csv").chmod(0o444)
    assert "write-protected" in run("plans", "model", "people.csv", "-o", "plans.csv").stderr
