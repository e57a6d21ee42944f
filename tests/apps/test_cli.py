"""The command line as a newcomer meets it: the examples in its help, a messy table that the project
has never seen, and the mistakes people make."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner, Result

import genrecourse
from genrecourse import METHODS, GenRe, Schema
from genrecourse.advice.record import Record
from genrecourse.advice.record.answers import made_by, plans_answer
from genrecourse.advice.request import PlanRequest
from genrecourse.advice.service import Service
from genrecourse.apps import cli
from genrecourse.methods.genre import Training
from genrecourse.planning.plans import Change, Plan, Plans, Row
from genrecourse.table import large_tables, witnesses
from genrecourse.table.schema import Feature

REPOSITORY = Path(__file__).parents[2]
TITLES = ["clerk", "nurse", "cook", "driver", "teacher", "welder", "farmer", "baker", "pilot", "it"]
COMMANDS = ["demo", "datasets", "policies", "methods", "schema", "split", "policy", "fit", "info"]
COMMANDS += ["plans", "explain", "reasons", "letter", "recheck", "audit", "batch"]
COMMANDS += ["evaluate", "compare", "serve", "serve-key"]
COMMANDS += [f"record {name}" for name in ("verify", "root", "prove", "replay", "erase")]


def loans(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """A table from elsewhere: an id, dates as text, gaps, ten titles, "good" and "bad"."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "loan id": [f"L-{i:05d}" for i in range(n)],
            "applied": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(n)],
            "income": rng.integers(12, 90, n) * 1000,
            "debt ratio": rng.random(n).round(3),
            "savings": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 50, n) * 100.0),
            "job": rng.choice(TITLES, n),
            "home": np.where(rng.random(n) < 0.1, None, rng.choice(["rent", "own"], n)),
            "sex": rng.choice(["f", "m"], n),
            "member": rng.random(n) < 0.4,
        }
    )
    worth = table["income"] / 30_000 - 2.5 * table["debt ratio"] + table["member"] * 0.5
    good = worth + rng.normal(0, 0.3, n) > worth.median()
    return table.assign(verdict=np.where(good, "good", "bad"))


def run(*words: Any) -> Result:
    return CliRunner().invoke(cli.app, [str(word) for word in words])


def sentence(result: Result) -> str:
    """What a mistake got: exit status 2, one sentence on standard error, no traceback."""
    assert result.exit_code == 2, (result.output, result.exception)
    said = result.stderr.strip()
    assert "Traceback" not in said
    assert said.count("error:") == 1, said
    assert said.splitlines()[-1].startswith("error: "), said
    return said.splitlines()[-1].removeprefix("error: ")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """GenRe with all its parts, for a second; in an empty folder."""
    monkeypatch.setitem(METHODS, "genre", partial(GenRe, **GenRe._test_params()))  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def table() -> Path:
    loans().to_csv("loans.csv", index=False)
    return Path("loans.csv")


FIT = ("--target", "verdict", "--favourable", "good", "--drop", "loan id,applied")


@pytest.fixture
def model(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the table; it is fitted once, and each test has a copy of its own."""
    kept = tmp_path_factory.getbasetemp() / "fitted once"
    if not kept.exists():
        done = run("fit", table, *FIT, "--immutable", "sex", "-o", "model")
        assert done.exit_code == 0, (done.output, done.exception)
        shutil.copytree("model", kept)
        return Path("model")
    shutil.copytree(kept, "model")
    return Path("model")


# ---- a folder of Parquet --------------------------------------------------------------------


def test_fit_takes_a_folder_of_parquet(model: Path) -> None:
    Path("people").mkdir()
    for i in range(4):
        loans().iloc[100 * i : 100 * i + 100].to_parquet(f"people/{i}.parquet")
    done = run("fit", "people", *FIT, "--immutable", "sex", "-o", "other")
    assert done.exit_code == 0, (done.output, done.exception)
    weights = "tensors.safetensors"
    assert Path("other", weights).read_bytes() == Path(model, weights).read_bytes()


def test_fit_says_how_many_rows_of_a_long_table_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    loans(500).to_parquet("people.parquet")
    monkeypatch.setattr(large_tables, "MOST_HELD", 300)
    monkeypatch.setattr(witnesses, "MOST_LEVELS", 100)  # of which the ids have more
    done = run("fit", "people.parquet", *FIT, "-o", "long")
    assert done.exit_code == 0, (done.output, done.exception)
    assert re.search(r"GenRe fitted on 500 rows, 3\d\d of them held, of which", done.output)
    assert genrecourse.load("long").fit_report_["rows"]["found"] == 500
    said = sentence(run("fit", "people.parquet", "--target", "verdict", "-o", "long"))
    assert "'loan id' has more than 100 different values" in said
    (*_, drop) = FIT
    said = sentence(run("fit", "people.parquet", *FIT[:-1], f"{drop}x", "-o", "long"))
    assert "no column ['appliedx'] (did you mean 'applied'?)" in said


# ---- a letter -------------------------------------------------------------------------------


def test_a_letter_is_printed_or_written(model: Path) -> None:
    people = loans(60, seed=1).drop(columns="verdict")
    people.to_csv("people.csv", index=False)
    plans = genrecourse.load(model).plans(people.drop(columns=["loan id", "applied"]))
    row = next(i for i, plan in enumerate(plans) if plan.status == "ok")
    asked = ("letter", model, "people.csv", "--row", row, "-n", 1, "--date", "2026-11-18")
    done = run(*asked, "--recipient", "Ms Li", "--contact", "Room 4")
    assert done.exit_code == 0, (done.output, done.exception)
    for part in ("18 November 2026", "Dear Ms Li,", "until 16 February 2027", "Room 4"):
        assert part in done.output
    assert "likelihood" not in done.output
    assert run(*asked, "--template", "de", "-o", "letter.html").exit_code == 0
    assert '<html lang="de">' in Path("letter.html").read_text(encoding="utf-8")
    assert "18. November 2026" in Path("letter.html").read_text(encoding="utf-8")
    assert run(*asked, "-o", "letter.txt").exit_code == 0
    assert "<" not in Path("letter.txt").read_text(encoding="utf-8")
    today = run(*asked[:-2])
    assert "2026-11-18" not in today.output
    assert re.search(r"\d+ \w+ 20\d\d", today.output)

    accepted = next(i for i, plan in enumerate(plans) if plan.status == "already-accepted")
    said = sentence(run("letter", model, "people.csv", "--row", accepted))
    assert "no letter to write" in said
    assert "should end in .html or .txt" in sentence(run(*asked, "-o", "letter.pdf"))
    assert "2026-11-18" in sentence(run(*asked[:-1], "yesterday"))


# ---- a table this project has never seen ---------------------------------------------------------


def test_schema_speaks_up_about_the_id_and_the_dates(table: Path) -> None:
    done = run("schema", table, "--target", "verdict", "-o", "schema.json")
    assert done.exit_code == 0, done.output
    assert "'loan id' differs in every row" in done.stderr
    assert "'applied' seems to hold dates as text" in done.stderr
    assert "'sex' is mutable" in done.stderr
    found = Schema.load("schema.json")
    assert "verdict" not in found.names
    assert len(found["job"].categories) == 10
    assert found["savings"].missing
    assert found["home"].missing


def test_from_raw_table_to_plans(model: Path) -> None:
    people = loans(60, seed=1).drop(columns="verdict")
    people.to_csv("people.csv", index=False)
    done = run("plans", model, "people.csv", "-o", "plans.csv")
    assert done.exit_code == 0, (done.output, done.exception)
    plans = pd.read_csv("plans.csv")
    assert plans["row"].tolist() == list(range(60))
    assert set(plans["status"]) <= {"ok", "already-accepted", "no-plan"}
    assert ((plans["status"] == "no-plan") == plans["reason_code"].notna()).all()
    assert (plans["number"].dropna() == 1).all()
    ok = plans["status"] == "ok"
    assert ok.sum() >= 10
    assert (plans.loc[ok, "score_after"] > 0.5).all()
    assert (plans.loc[ok, "score_before"] <= 0.5).all()
    assert plans.loc[ok, "plan"].str.contains(" → ").all()
    assert (plans["new sex"] == people["sex"]).all()
    # the words are those of the features: what is not in the plan is as it was
    told = plans.loc[ok, "plan"].str.contains("income: ")
    assert ((plans["new income"] != people["income"])[ok] == told).all()
    assert str(plans["new income"].dtype) == "int64"


def test_plans_as_json_and_parquet_say_the_same(model: Path) -> None:
    loans(30, seed=1).to_parquet("people.parquet", index=False)
    for name in ("plans.json", "plans.parquet"):
        assert run("plans", model, "people.parquet", "-o", name).exit_code == 0
    listed = json.loads(Path("plans.json").read_text())
    table = pd.read_parquet("plans.parquet")
    assert [plan["status"] for plan in listed] == table["status"].tolist()
    assert [len(p["changes"]) for p in listed] == table["plan"].str.count(" → ").tolist()


def test_plans_as_a_page_are_of_those_who_were_turned_down(model: Path) -> None:
    loans(30, seed=1).to_csv("people.csv", index=False)
    for name in ("plans.json", "plans.html"):
        done = run("plans", model, "people.csv", "-n", "2", "-o", name)
        assert done.exit_code == 0, (done.output, done.exception)
    listed = json.loads(Path("plans.json").read_text())
    down = [plan for plan in listed if plan["status"] != "already-accepted"]
    assert f"30 people: {_counted(listed)}; in plans.html" in " ".join(done.output.split())
    page = Path("plans.html").read_text(encoding="utf-8")
    assert 0 < len(down) < 30
    assert f"of {len(down)} in the table" in page


def _counted(listed: list[dict[str, Any]]) -> str:
    counts = pd.Series([plan["status"] for plan in listed]).value_counts()
    return ", ".join(f"{n} {status}" for status, n in counts.items())


def test_several_plans_a_person_are_lines_of_their_own(model: Path, tmp_path: Path) -> None:
    loans(30, seed=1).to_csv("people.csv", index=False)
    for name in ("plans.json", "plans.csv"):
        done = run("plans", model, "people.csv", "-n", "3", "-o", name)
        assert done.exit_code == 0, (done.output, done.exception)
    listed = json.loads(Path("plans.json").read_text())
    table = pd.read_csv("plans.csv")
    assert len(listed) == 30
    assert table["row"].nunique() == 30
    counts = [max(1, (p["status"] == "ok") + len(p["alternatives"])) for p in listed]
    assert table.groupby("row").size().tolist() == counts
    assert max(counts) > 1
    ok = table[table["status"] == "ok"]
    assert ok.groupby("row")["number"].apply(list).map(lambda n: n == [*range(1, len(n) + 1)]).all()
    assert ok["plan"].str.contains(" → ").all()
    row = int(ok.loc[ok["number"] == 2, "row"].iloc[0])
    fewer = ("--fewest-changes", "-n", "2")
    assert "another way" in run("explain", model, "people.csv", "--row", row, "-n", "2").output
    assert run("explain", model, "people.csv", "--row", row, *fewer).exit_code == 0
    assert "no wording 'xx'" in sentence(
        run("plans", model, "people.csv", "--language", "xx", "-o", "plans.csv")
    )


def test_explain_shows_the_person_and_the_plan(model: Path) -> None:
    people = loans(60, seed=1)
    people.to_csv("people.csv", index=False)
    run("plans", model, "people.csv", "-o", "plans.csv")
    row = int((pd.read_csv("plans.csv")["status"] == "ok").to_numpy().argmax())
    done = run("explain", model, "people.csv", "--row", row)
    assert done.exit_code == 0, (done.output, done.exception)
    assert f"{people['income'][row]:,}" in done.output
    assert "what would change" in done.output
    assert people["job"][row] in done.output


def test_audit_by_a_column_that_the_model_does_not_read(model: Path) -> None:
    people = loans(120, seed=1).assign(town=["Aix", "Bath"] * 60)
    people.to_csv("people.csv", index=False)
    for name in ("audit.html", "audit.json", "audit.csv"):
        done = run("audit", model, "people.csv", "--group", "town,sex", "--least", 5, "-o", name)
        assert done.exit_code == 0, (done.output, done.exception)
        assert f"120 people in 9 groups; in {name}" in done.output
    assert "comparisons were made" in done.output
    table, data = pd.read_csv("audit.csv"), json.loads(Path("audit.json").read_text())
    assert {"everyone", "town = Aix", "sex = f", "town = Bath and sex = m"} <= set(table["group"])
    assert len(table) == len(data["numbers"])
    h = genrecourse.load(model).classifier_
    expected = (~h.accepts(people[genrecourse.load(model).schema_.names]))[people["sex"] == "f"]
    (row,) = table[(table["group"] == "sex = f") & (table["metric"] == "rejected")].itertuples()
    assert row.value == pytest.approx(expected.mean())
    assert "town = Aix" in Path("audit.html").read_text()
    for words, said in (
        (("--group", "gender", "-o", "a.html"), "no column 'gender'"),
        (("--group", "town", "-o", "a.pdf"), "should end in .html"),
    ):
        assert said in sentence(run("audit", model, "people.csv", *words))
        assert not Path(words[-1]).exists()


def test_rules_and_promises_from_the_command_line(model: Path) -> None:
    people = loans(40, seed=1)
    people.to_csv("people.csv", index=False)
    _text("rules.toml", '[default]\nlock = ["income"]\n[people.3]\nmax_changes = 1\n')
    done = run("plans", model, "people.csv", "--rules", "rules.toml", "-o", "plans.csv")
    assert done.exit_code == 0, (done.output, done.exception)
    plans = pd.read_csv("plans.csv")
    others = plans["row"] != 3
    assert (plans["status"] == "ok").any()
    assert (plans["new income"] == people["income"])[others].all()
    row = int((plans["status"] == "ok").to_numpy().argmax())
    done = run("explain", model, "people.csv", "--row", row, "--rules", "rules.toml")
    assert done.exit_code == 0, (done.output, done.exception)  # row 3 is not asked about
    promised = ("--promise", "0.9999", "--delta", "0.05")
    done = run("plans", model, "people.csv", *promised, "-o", "promised.csv")
    assert done.exit_code == 0, (done.output, done.exception)
    assert "cannot-promise" in set(pd.read_csv("promised.csv")["reason_code"])
    for text, said in (
        ('{"lock": ["wage"]}', "'wage'"),
        ("{", "rules.json is not JSON"),
        ('{"people": {"99": {"lock": ["income"]}}}', "has rules for the row '99', but the table"),
        ('{"locks": ["income"]}', "rules.json: "),
    ):
        _text("rules.json", text)
        asked = ("plans", model, "people.csv", "--rules", "rules.json", "-o", "plans.csv")
        assert said in sentence(run(*asked))
    assert "delta is 0.1, but no promise" in sentence(
        run("explain", model, "people.csv", "--row", "0", "--delta", "0.1")
    )


def test_a_model_with_a_scale_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    loans(200).to_csv("loans.csv", index=False)
    _text("points.py", "def card(X):\n    return (300 + 6 * X['income'] / 1000).clip(300, 850)\n")
    monkeypatch.syspath_prepend(str(Path().absolute()))
    how = ("--target", "verdict", "--favourable", "good", "--classifier", "points:card")
    fit = ("fit", "loans.csv", *how, "--method", "nnr", "-o", "card")
    assert "--score-range 300,850" in sentence(run(*fit, "--cutoff", "640"))
    assert "the two ends of the scale" in sentence(run(*fit, "--score-range", "640"))
    done = run(*fit, "--cutoff", "640", "--score-range", "300,850")
    assert done.exit_code == 0, (done.output, done.exception)
    done = run("plans", "card", "loans.csv", "--classifier", "points:card", "-o", "plans.csv")
    assert done.exit_code == 0, (done.output, done.exception)
    plans = pd.read_csv("plans.csv")
    assert (plans.loc[plans["status"] == "ok", "score_after"] > 640).all()


def test_recheck_says_which_plans_another_model_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the file alone: the method that made the plans is not needed."""
    income = Feature(name="income", kind="number", decimals=0)
    rows = pd.DataFrame({"income": [50, 70], "job": ["cook", None]})
    plans = [
        Plan(i, "ok", 0.2, 0.5, (Change(income, 20, after),), 0.8, 0.3, row=Row(rows, i))
        for i, after in enumerate(rows["income"])
    ]
    _text("plans.json", Plans(tuple(plans)).to_json())
    _text("bank_two.py", "def strict(X):\n    return X['income'] / 100\n")
    monkeypatch.syspath_prepend(str(Path().absolute()))
    done = run("recheck", "plans.json", "--classifier", "bank_two:strict", "-o", "again.csv")
    assert done.exit_code == 1, (done.output, done.exception)
    assert "person 0, plan 1: no longer holds, score 0.5 at a cutoff of 0.5" in done.output
    assert "1 of 2 plans hold" in done.output
    assert pd.read_csv("again.csv")["holds"].tolist() == [False, True]
    assert "no model is named" in sentence(run("recheck", "plans.json"))
    assert "cannot read none.json" in sentence(
        run("recheck", "none.json", "--classifier", "bank_two:strict")
    )
    _text("odd.json", '{"a": 1}')
    assert "a list of plans" in sentence(
        run("recheck", "odd.json", "--classifier", "bank_two:strict")
    )


def test_recheck_of_plans_for_another_table(model: Path) -> None:
    """The model that made them has no column 'wage', and the plans have no 'income'."""
    rows = pd.DataFrame({"wage": [50], **{name: [1] for name in loans() if name != "income"}})
    wage = Feature(name="wage", kind="number", decimals=0)
    plan = Plan(0, "ok", 0.2, 0.5, (Change(wage, 20, 50),), 0.8, 0.3, row=Row(rows, 0))
    _text("plans.json", Plans((plan,)).to_json())
    said = sentence(run("recheck", "plans.json", "--model", model))
    assert (
        "these plans belong to another model's table: they have the columns ['wage', 'loan id'"
        in said
    )
    assert "and lack ['income']" in said


def test_info_says_what_is_inside(model: Path) -> None:
    said = run("info", model).output
    for word in ("GenRe", "MLP", "income", "10 categories", "gamma", "steps"):
        assert word in said


def test_schema_suggests_relations_and_keeps_them_if_asked(table: Path) -> None:
    rows = pd.read_csv(table).sort_index(axis=1)
    rows["worst"] = rows["income"] + np.random.default_rng(0).integers(0, 50_000, len(rows))
    rows.to_csv("wide.csv", index=False)
    suggested = run("schema", "wide.csv", *FIT[:2], *FIT[4:], "-o", "schema.json")
    assert suggested.exit_code == 0, suggested.output
    assert "'income' is at most 'worst': holds in" in suggested.stdout
    assert "--keep-relations makes every plan keep them" in suggested.stdout
    assert Schema.load("schema.json").relations == ()
    kept = run("schema", "wide.csv", *FIT[:2], *FIT[4:], "--keep-relations", "-o", "schema.json")
    assert "every plan keeps them" in kept.stdout
    assert '"income" <= "worst"' in Schema.load("schema.json").relations
    done = run("fit", "wide.csv", *FIT, "--schema", "schema.json", "-o", "model")
    assert done.exit_code == 0, done.output
    assert 'rule: "income" <= "worst"' in run("info", "model").stdout


def test_a_schema_file_decides(table: Path) -> None:
    run("schema", table, *FIT[:2], *FIT[4:], "--immutable", "sex,job", "-o", "schema.json")
    edited = Schema.load("schema.json").with_feature("income", direction="increase")
    edited.save("schema.json")
    done = run("fit", table, *FIT, "--schema", "schema.json", "-o", "model")
    assert done.exit_code == 0, (done.output, done.exception)
    kept = genrecourse.load("model").schema_
    assert kept == edited
    assert "warning:" not in done.stderr  # they have seen it, and edited it


def test_ones_own_classifier(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("bank.py").write_text(
        "def score(X):\n    return ((X['income'] / 100_000 + 1 - X['debt ratio']) / 2).clip(0, 1)\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    own = ("--classifier", "bank:score")
    done = run("fit", table, *FIT, *own, "--cutoff", "0.55", "-o", "model")
    assert done.exit_code == 0, (done.output, done.exception)
    assert "give it again with --classifier MODULE:NAME" in sentence(run("info", "model"))
    assert "classifier" in sentence(run("plans", "model", table, "-o", "plans.csv"))
    done = run("plans", "model", table, *own, "-o", "plans.csv")
    assert done.exit_code == 0, (done.output, done.exception)
    plans = pd.read_csv("plans.csv")
    ok = plans["status"] == "ok"
    after = (plans["new income"] / 100_000 + 1 - plans["new debt ratio"]) / 2
    assert ok.any()
    assert (after[ok] > 0.55).all()
    sys.modules.pop("bank")


def test_text_that_looks_like_numbers_stays_text() -> None:
    table = loans().assign(code=np.where(np.arange(400) % 3 == 0, "07", "x1"))
    table.to_csv("loans.csv", index=False)
    assert run("fit", "loans.csv", *FIT, "-o", "model").exit_code == 0
    table[table["code"] == "07"].head(20).to_csv("people.csv", index=False)  # all of them digits
    done = run("plans", "model", "people.csv", "-o", "plans.csv")
    assert done.exit_code == 0, (done.output, done.exception)


def test_datasets_and_methods_are_listed() -> None:
    listed = run("datasets").output
    for name in genrecourse.data.datasets.DATASETS:
        assert name in listed
    for name in METHODS:
        assert name in run("methods").output
    assert genrecourse.__version__ in run("--version").output


# ---- mistakes ------------------------------------------------------------------------------------


def _write(table: pd.DataFrame, name: str = "loans.csv") -> str:
    table.to_csv(name, index=False)
    return name


def _fit(table: pd.DataFrame | None = None, *words: str, **changed: str) -> Result:
    named = {"--target": "verdict", "--favourable": "good", "--drop": "loan id,applied"}
    named |= {f"--{name}": value for name, value in changed.items()}
    options = [part for pair in named.items() for part in pair]
    return run("fit", _write(loans() if table is None else table), *options, "-o", "model", *words)


MISTAKES: dict[str, tuple[Any, str]] = {
    "wrong target": (lambda: _fit(target="approved"), "no target column 'approved'"),
    "wrong favourable": (
        lambda: _fit(favourable="yes"),
        "'yes' does not occur in 'verdict', which has ['bad', 'good']",
    ),
    "no favourable named": (
        lambda: run("fit", _write(loans()), "--target", "verdict", "-o", "model"),
        "name the favourable one, for example --favourable good on the command line",
    ),
    "one class only": (lambda: _fit(loans().assign(verdict="good")), "'good' in all 400 rows"),
    "target with gaps": (
        lambda: _fit(loans().assign(verdict=lambda t: t["verdict"].where(t.index != 7))),
        "missing in 1 of 400 rows (first: row 7)",
    ),
    "unknown immutable": (lambda: _fit(immutable="gender"), "no feature 'gender'"),
    "unknown drop": (lambda: _fit(drop="id"), "no column ['id']"),
    "all immutable": (
        lambda: _fit(immutable="income,debt ratio,savings,job,home,sex,member"),
        "every feature is immutable",
    ),
    "two rows": (lambda: _fit(loans(2).assign(verdict=["good", "bad"])), "2 rows"),
    "a cutoff out of range": (lambda: _fit(cutoff="1.5"), "the cutoff 1.5"),
    "unknown method": (lambda: _fit(method="magic"), "no method 'magic'; there are"),
    "a method misspelt": (lambda: _fit(method="genr"), "no method 'genr' (did you mean 'genre'?)"),
    "a target misspelt": (lambda: _fit(target="Verdit"), "'Verdit' (did you mean 'verdict'?); the"),
    "a column misspelt": (lambda: _fit(drop="loan-id"), "(did you mean 'loan id'?) in the table"),
    "an outcome misspelt": (
        lambda: _fit(favourable="Good"),
        "(did you mean 'good'?) does not occur",
    ),
    "infinite": (
        lambda: _fit(loans().assign(savings=lambda t: t["savings"].fillna(np.inf))),
        "infinite",
    ),
    "an empty column": (lambda: _fit(loans().assign(notes=np.nan)), "'notes' is empty"),
    "no file": (lambda: run("schema", "none.csv", "-o", "s.json"), "there is no file none.csv"),
    "a folder": (lambda: run("schema", _folder("x.csv"), "-o", "s.json"), "is a folder"),
    "not a table": (lambda: run("schema", _text("t.xlsx", "?"), "-o", "s"), "should end in .csv"),
    "empty file": (lambda: run("schema", _text("t.csv", ""), "-o", "s.json"), "is empty"),
    "header alone": (lambda: run("schema", _text("t.csv", "a,b\n"), "-o", "s"), "but no rows"),
    "binary file": (lambda: run("schema", _binary("t.csv"), "-o", "s.json"), "is not a csv table"),
    "not UTF-8": (
        lambda: run("schema", _text("t.csv", "town\nMünchen\n", "latin-1"), "-o", "s.json"),
        "save it as UTF-8",
    ),
    "semicolons": (
        lambda: run("schema", _text("t.csv", "a;b\n1;2,5\n"), "-o", "s.json"),
        "t.csv seems to be separated by ';': its header is 'a;b'. Save it with commas",
    ),
    "tabs": (
        lambda: run("schema", _text("t.csv", "a\tb\n1\t2\n"), "-o", "s.json"),
        "t.csv seems to be separated by tabs",
    ),
    "binary parquet": (
        lambda: run("schema", _binary("t.parquet"), "-o", "s.json"),
        "is not a parquet table",
    ),
    "a column twice": (
        lambda: run("schema", _text("t.csv", "a,a\n1,2\n"), "-o", "s.json"),
        "more than one column named ['a']",
    ),
    "only the target": (
        lambda: run("schema", _text("t.csv", "a\n1\n"), "--target", "a", "-o", "s.json"),
        "no column is left",
    ),
    "no folder for output": (
        lambda: run("schema", _write(loans()), "-o", "far/away.json"),
        "there is no folder far",
    ),
    "no folder for a model": (
        lambda: run("fit", _write(loans()), *FIT, "-o", "far/away"),
        "there is no folder",
    ),
    "broken schema": (
        lambda: _fit(None, "--schema", _text("s.json", "{")),
        "the schema s.json is not JSON",
    ),
    "schema of another table": (
        lambda: _fit(
            None, "--schema", _text("s.json", '{"features": [{"name": "a", "kind": "number"}]}')
        ),
        "'a'",
    ),
    "no such module": (lambda: _fit(None, "--classifier", "nomodule:h"), "No module named"),
    "not module:name": (lambda: _fit(None, "--classifier", "bank"), "should be MODULE:NAME"),
    "a module with a mistake": (
        lambda: _fit(None, "--classifier", _text("odd_one.py", "1 / 0") + ":h"),
        "classifier odd_one.py:h: odd_one fails with ZeroDivisionError: division by zero",
    ),
    "a module that is no Python": (
        lambda: _fit(None, "--classifier", _text("odd_two.py", "def h(X) return 1") + ":h"),
        "odd_two fails with SyntaxError: expected ':' (odd_two.py, line 1)",
    ),
    "a module that needs another": (
        lambda: _fit(None, "--classifier", _text("odd_three.py", "import nomodule") + ":h"),
        "odd_three fails with ModuleNotFoundError: No module named 'nomodule'",
    ),
    "a command of an earlier version": (
        lambda: run("recourse", "model", "people.csv", "-o", "plans.csv"),
        "no command 'recourse' (did you mean 'plans'?); there are demo, ",
    ),
    "a command misspelt": (
        lambda: run("explian"),
        "no command 'explian' (did you mean 'explain'?)",
    ),
    "a file as model": (lambda: run("info", _text("m", "x")), "m"),
    "no model": (
        lambda: run("info", "nothing"),
        "the model folder nothing does not exist; give the folder that 'genrecourse fit'",
    ),
    "plans as a table to recheck": (
        lambda: run("recheck", "plans.csv", "--model", "model"),
        "give the .json that 'genrecourse plans -o plans.json' wrote",
    ),
    # before a model is even looked for: nothing is refused after all the work
    "plans of an unknown kind": (
        lambda: run("plans", "nothing", "none.csv", "-o", "plans.xlsx"),
        "plans.xlsx: its name should end in .json, .html, .csv or .parquet",
    ),
    "plans into no folder": (
        lambda: run("plans", "nothing", "none.csv", "-o", "far/plans.csv"),
        "there is no folder far",
    ),
    "an audit into no folder": (
        lambda: run("audit", "nothing", "none.csv", "--group", "sex", "-o", "far/a.html"),
        "there is no folder far",
    ),
    "data set unknown": (lambda: run("datasets", "iris", "-o", "i.csv"), "no data set 'iris'"),
    "data set misspelt": (
        lambda: run("datasets", "germany", "-o", "g.csv"),
        "no data set 'germany' (did you mean 'german'?)",
    ),
    "data set without output": (lambda: run("datasets", "german"), "name a file for 'german'"),
}


def _text(name: str, text: str, encoding: str = "utf-8") -> str:
    Path(name).write_text(text, encoding=encoding)
    return name


def _binary(name: str) -> str:
    Path(name).write_bytes(bytes(range(256)) * 8)
    return name


def _folder(name: str) -> str:
    Path(name).mkdir()
    return name


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_sentence(mistake: str) -> None:
    act, expected = MISTAKES[mistake]
    assert expected in sentence(act())
    assert not list(Path().glob("model/*"))
    assert not list(Path().glob(".*")), "litter"


def test_everybody_accepted_or_nobody_rejected(table: Path, monkeypatch: Any) -> None:
    Path("kind.py").write_text("import numpy as np\ndef score(X):\n    return np.ones(len(X))\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    said = sentence(run("fit", table, *FIT, "--classifier", "kind:score", "-o", "model"))
    assert "only 0 of 400 rows are rejected" in said
    assert "has no 'other'" in sentence(
        run("fit", table, *FIT, "--classifier", "kind:other", "-o", "model")
    )
    sys.modules.pop("kind")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda t: t.rename(columns={"income": "Incomes"}),
            "lacks the column(s) ['income'] (did you mean 'Incomes'?); it has ['loan id', ",
        ),
        (lambda t: t.assign(job="astronaut"), "'astronaut'"),
        (lambda t: t.assign(income="much"), "should hold numbers"),
        (lambda t: t.assign(income=np.inf), "infinite"),
    ],
    ids=["missing column", "unseen category", "text for a number", "infinite"],
)
def test_a_mistake_in_the_applicants(model: Path, change: Any, expected: str) -> None:
    people = _write(change(loans(10, seed=1)), "people.csv")
    for command in (("plans", "-o", "plans.csv"), ("explain", "--row", 1)):
        said = run(command[0], model, people, *command[1:], "--strict")
        assert said.exit_code == 2
        assert expected in said.stderr.splitlines()[-1]
    assert not Path("plans.csv").exists()


def test_a_row_that_is_not_there(model: Path, table: Path) -> None:
    assert "the rows 0 to 399; there is no row 400" in sentence(
        run("explain", model, table, "--row", 400)
    )


def test_nobody_rejected_is_no_mistake(model: Path, table: Path) -> None:
    h = genrecourse.load(model).classifier_
    everyone = loans()
    accepted = everyone[h.accepts(everyone[genrecourse.load(model).schema_.names])]
    done = run("plans", model, _write(accepted, "people.csv"), "-o", "plans.csv")
    assert done.exit_code == 0
    assert set(pd.read_csv("plans.csv")["status"]) == {"already-accepted"}


def test_a_constant_column_is_pointed_out() -> None:
    done = _fit(loans().assign(country="DE"))
    assert done.exit_code == 0, (done.output, done.exception)
    assert "'country' has only one value" in done.stderr


def test_output_is_written_whole_or_not_at_all(
    model: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("plans.csv").write_text("from yesterday")

    def fails(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fails)
    assert "No space left" in sentence(run("plans", model, table, "-o", "plans.csv"))
    assert Path("plans.csv").read_text() == "from yesterday"
    assert not list(Path().glob(".*"))


# ---- help, examples, docs ------------------------------------------------------------------------


def _commands() -> dict[str, Any]:
    """Every command by its name; those of a group have two words."""
    top = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]
    return {
        f"{name} {inner}".strip(): each
        for name, command in top.items()
        for inner, each in getattr(command, "commands", {"": command}).items()
    }


def _record(model: str, folder: str) -> None:
    """The record of a service that answered one request with a plan."""
    service = Service.open(model)
    X, request = service.read_people("german.csv").head(1), PlanRequest()
    with Record(folder, made_by(service, model)) as record:
        record.append(plans_answer("4f1c2a", X, request, service.plans(X, request)))


def _example(command: Any) -> list[str]:
    match = re.search(r"Example: genrecourse (.*)", " ".join((command.epilog or "").split()))
    assert match, f"{command.name} has no example"
    return shlex.split(match[1])


def test_every_command_is_known() -> None:
    assert list(_commands()) == COMMANDS


def test_the_examples_in_the_help_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order in which a reader would try them."""
    shutil.copytree(REPOSITORY / "policies", "policies")
    for name in COMMANDS:
        if name in ("serve", "serve-key"):  # a service does not end by itself: tests/apps/serve
            continue
        words = _example(_commands()[name])
        if name == "record verify":  # `genrecourse serve` would write it
            _record("model", "record")
        done = run(*words)
        assert done.exit_code == 0, (words, done.output, done.exception)
        if name == "datasets":  # plans for fewer people show as much
            pd.read_csv(words[-1]).head(400).to_csv(words[-1], index=False)
        assert " ".join(_commands()[name].epilog.split()) in " ".join(
            run(*name.split(), "--help").output.split()
        )
    assert Path("plans.json").exists()
    assert Path("demo/report.html").exists()


def test_the_page_is_what_the_command_line_says() -> None:
    page = subprocess.run(
        [sys.executable, REPOSITORY / "scripts" / "cli_page.py"], capture_output=True, text=True
    )
    assert page.stdout == (REPOSITORY / "docs" / "cli.md").read_text(), (
        "run: python scripts/cli_page.py > docs/cli.md"
    )


# ---- a real process ------------------------------------------------------------------------------


@pytest.mark.slow
def test_ctrl_c_while_it_learns_keeps_the_best_so_far(table: Path) -> None:
    """A real SIGINT in a real process: it saves what it has and says so."""
    code = (
        "import signal\n"  # a test run in the background ignores it, and so would this process
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from functools import partial\n"
        "from genrecourse import METHODS, GenRe\n"
        "from genrecourse.apps import cli\n"
        "from genrecourse.methods.genre import Training\n"
        "params = GenRe._test_params() | {'training': Training(steps=10**6, patience=None)}\n"
        "METHODS['genre'] = partial(GenRe, **params)\n"
        "import genrecourse.genre.fit as g, sys\n"
        "real = g.train\n"
        "def train(*a, **k):\n"
        "    print('learning', file=sys.stderr, flush=True)\n"
        "    return real(*a, **k)\n"
        "g.train = train\n"
        "cli.app()\n"
    )
    words = [sys.executable, "-c", code, "fit", str(table), *FIT, "-o", "model"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        try:
            assert job.stderr is not None
            while "learning" not in (line := job.stderr.readline()):
                assert line, "it ended before it learned"
            time.sleep(5)
            job.send_signal(signal.SIGINT)
            said, complained = job.communicate(timeout=120)
        finally:
            job.kill()  # it would learn for hours
    assert job.returncode == 0, complained
    assert "interrupted: the best weights so far" in said
    fitted = genrecourse.load("model")
    assert fitted.fit_report_["training"]["ended"] == "interrupted"
    assert isinstance(fitted.training, Training)


@pytest.mark.slow
def test_an_installed_command() -> None:
    """The entry point itself, with a mistake: exit status 2 and the sentence, no traceback."""
    command = Path(sys.executable).parent / "genrecourse"
    done = subprocess.run([command, "info", "nothing"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
