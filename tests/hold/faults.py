"""Faults that come from outside: bad cells, bad tables, models that misbehave, broken files, wrong
words at the command line.

Each ends in a UserError of one sentence, or in a right answer, which the case itself checks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from genrecourse import NearestNeighbour, Policy, Schema, UserError, audit, load
from genrecourse.advice.recheck import read_plans
from genrecourse.advice.rule_files import read_rules_file
from genrecourse.apps import cli
from genrecourse.errors import shown
from genrecourse.model.folder import JSON_NAME, TENSORS_NAME
from genrecourse.planning.wording import Wording
from genrecourse.table.table_files import read_table, write_table
from tests.hold.case import Case

N = 60
PEOPLE = pd.DataFrame(
    {
        "income": np.arange(N, dtype=float) * 100,
        "loans": np.arange(N) % 5,
        "job": np.array(["cook", "nurse", "pilot"])[np.arange(N) % 3],
        "member": np.arange(N) % 2 == 0,
    }
)
OUTCOMES = PEOPLE["income"] > 3000
SCHEMA = Schema.infer(PEOPLE)
UNREADABLE = "unreadable"  # the status of a row that could not be read
POLICY = """\
[policy]
name = "A bank"
[features.loans]
range = [0, 9]
[rules]
max_changes = 2
"""


def h(X: pd.DataFrame) -> np.ndarray:
    """A score of the table above."""
    return X["income"].to_numpy(dtype=float) / 6000 + 0.01 * X["member"].to_numpy(dtype=float)


class Bank:
    """A fitted method, and a folder with one good file of each kind."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.method = NearestNeighbour(h, SCHEMA).fit(PEOPLE, OUTCOMES)
        self.asked = PEOPLE.head(4)
        self.model = folder / "bank"
        self.method.save(self.model)
        (folder / "own.py").write_text("from tests.hold.faults import h\n")
        self.files: dict[str, Path] = {}
        plans = self.method.plans(self.asked)
        texts = {
            "schema.json": SCHEMA.to_json(),
            "plans.json": plans.to_json(),
            "rules.json": json.dumps({"lock": ["job"], "ranges": {"income": [0, 5000]}}),
            "rules.toml": 'lock = ["job"]\nmax_changes = 2\n',
            "policy.toml": POLICY,
            "words.toml": Path(cli.__file__)
            .parents[2]
            .joinpath("planning", "wording", "en.toml")
            .read_text(encoding="utf-8"),
        }
        for name, text in texts.items():
            self.files[name] = folder / name
            self.files[name].write_text(text, encoding="utf-8")
        for name in ("people.csv", "people.parquet"):
            self.files[name] = folder / name
            write_table(self.asked, self.files[name])


def faults(folder: Path, n_broken: int = 400, seed: int = 0) -> list[Case]:
    """Return all cases. n_broken: how many files are broken at random."""
    bank = Bank(folder)
    parts = (cells(bank), shapes(bank), models(), broken(bank, n_broken, seed), words(bank))
    return [case for part in parts for case in part]


# ---- cells -----------------------------------------------------------------------------------

NO_NUMBER: tuple[Any, ...] = (
    *("abc", "", "1,5", "12 euros", b"1", [1], (1,), {}, {1: 2}, object(), 1j, print),
    *(float("inf"), float("-inf"), np.inf, 10**400, -(10**400), pd.Timestamp(0), pd.Timedelta(1)),
    *(None, np.nan, pd.NA, pd.NaT, "NaN", "inf", "\0", "\ud800", "x" * 10_000),
)
NO_LEVEL: tuple[Any, ...] = (
    *("baker", "", "COOK", " cook", "cook ", b"cook", ["cook"], ("cook",), {}, object(), print),
    *(1, 1.5, True, 10**400, float("inf"), pd.Timestamp(0), None, np.nan, pd.NA, pd.NaT),
    *("\0", "\ud800", "=cmd()", "x" * 10_000, np.array(["cook"]), pd.Series(["cook"])),
)
NO_FLAG: tuple[Any, ...] = ("yes", "", 7, -1, 0.5, None, np.nan, b"", [True], {}, object(), 10**400)
BAD = {"income": NO_NUMBER, "loans": NO_NUMBER, "job": NO_LEVEL, "member": NO_FLAG}


def cells(bank: Bank) -> Iterator[Case]:
    """One cell that the schema does not know, in a table of which the other rows are good."""
    for name, values in BAD.items():
        for value in values:
            for row in (0, 2):
                for verb in ("plans", "recourse"):
                    act = partial(_answered, bank.method, verb, name, value, row)
                    label = f"{verb}({name}[{row}]={shown(value)})"
                    yield Case("cells", label, act, may_answer=True)


def spoilt(name: str, value: Any, row: int) -> pd.DataFrame:
    """The table with a bad cell."""
    X = PEOPLE.head(4).copy()
    column = X[name].astype(object).tolist()
    column[row] = value
    X[name] = pd.Series([None] * len(X), index=X.index, dtype=object)
    for i, cell in enumerate(column):
        X[name].array[i] = cell
    return X


def _answered(method: NearestNeighbour, verb: str, name: str, value: Any, row: int) -> None:
    """If there is an answer, the bad row is called unreadable, and the others are as without it."""
    X = spoilt(name, value, row)
    good = X.index != X.index[row]
    clean = PEOPLE.head(4)[good]
    if verb == "plans":
        plans = method.plans(X)
        assert plans[row].status == UNREADABLE, f"the bad row is {plans[row].status}"
        assert not plans[row].changes
        rest = [plan for i, plan in enumerate(plans) if i != row]
        assert rest == list(method.plans(clean)), "other rows have other plans"
    else:
        found = method.recourse(X)[good].astype(clean.dtypes.to_dict())
        assert found.equals(method.recourse(clean)), "other rows have other answers"


# ---- shapes ----------------------------------------------------------------------------------


def shapes(bank: Bank) -> Iterator[Case]:
    """What is no table, lacks columns or has them twice; and tables that only look odd."""
    X, method = bank.asked, bank.method
    double = pd.concat([X, X[["job"]]], axis=1)
    levels = X.set_axis(pd.MultiIndex.from_product([["a"], X.columns]), axis=1)
    no_table: dict[str, Any] = {
        "None": None,
        "7": 7,
        "text": "people.csv",
        "list": [1, 2],
        "dict": {"income": [1]},
        "narrow array": X.to_numpy()[:, 1:],
        "deep array": X.to_numpy()[None],
        "column": X["income"],
        "generator": iter([]),
        "class": Bank,
        "no columns": X[[]],
        "lacks income": X.drop(columns="income"),
        "double": double,
        "only job": X[["job"]],
        "levels": levels,
        "other names": X.add_prefix("x"),
        "numbered": X.set_axis(range(4), axis=1),
        "turned": X.T,
        "path": Path("people.csv"),
    }
    verbs: dict[str, Callable[[Any], Any]] = {
        "plans": method.plans,
        "recourse": method.recourse,
        "assess": lambda table: method.assess(table, table),
        "audit": lambda table: audit(method, table, groups=["job"]),
    }
    for label, table in no_table.items():
        for verb, act in verbs.items():
            yield Case("shapes", f"{verb}({label})", partial(act, table))
        yield Case("shapes", f"fit({label})", partial(NearestNeighbour(h, SCHEMA).fit, table))
    for label, outcomes in {
        "short": OUTCOMES[:3],
        "text": "yes",
        "one": 1,
        "nested": [[1]] * N,
    }.items():
        act = partial(NearestNeighbour(schema=SCHEMA).fit, PEOPLE, outcomes)
        yield Case("shapes", f"fit(y={label})", act)
    for label, changed in {
        "turned columns": X[list(reversed(X.columns))],
        "same label": X.set_axis([7] * 4),
        "odd labels": X.set_axis(["a", 1, None, 2.5]),
        "texts": X.astype({"job": object}),
        "floats": X.astype({"loans": float}),
        "nullable": X.convert_dtypes(),
        "categories": X.astype({"job": "category"}),
        "more columns": X.assign(id=range(4)),
        "no rows": X.head(0),
        "every second": pd.concat([X, X]).iloc[::2].sort_index(),
    }.items():
        for verb in ("plans", "recourse"):
            act = partial(_same_answers, method, verb, changed)
            yield Case("shapes", f"{verb}({label})", act, may_answer=True)


def _same_answers(method: NearestNeighbour, verb: str, X: pd.DataFrame) -> None:
    """The answer is that to the same people in a plain table."""
    plain = X[SCHEMA.columns].astype(PEOPLE.dtypes.to_dict()).reset_index(drop=True)
    found = getattr(method, verb)(X)
    assert len(found) == len(X), "not one answer for each row"
    if len(X) == 0:
        return
    if verb == "plans":
        others = method.plans(plain)
        for plan, other in zip(found, others, strict=True):
            assert [c.to_dict() for c in plan.changes] == [c.to_dict() for c in other.changes]
    else:
        same = found[SCHEMA.columns].astype(PEOPLE.dtypes.to_dict()).reset_index(drop=True)
        assert same.equals(method.recourse(plain)), "the same people get other answers"


# ---- models ----------------------------------------------------------------------------------


def models() -> Iterator[Case]:
    """Models that answer with something that is no score; `classifiers.py` has a longer list."""
    rows = len(PEOPLE)

    def fails(X: pd.DataFrame) -> np.ndarray:
        raise RuntimeError("the model is away\nfor today")

    answers: dict[str, Any] = {
        "None": None,
        "text": "yes",
        "texts": ["yes"] * rows,
        "nan": np.full(rows, np.nan),
        "inf": np.full(rows, np.inf),
        "one": 0.5,
        "short": np.zeros(rows - 1),
        "empty": [],
        "2": np.full(rows, 2.0),
        "-1": np.full(rows, -1.0),
        "cube": np.zeros((rows, 2, 2)),
        "class": dict,
        "complex": np.full(rows, 1j),
        "objects": [object()] * rows,
        "nested": [[1, 2], [3]],
        "bytes": b"1",
        "dict": {"score": 1},
        "generator": iter([1]),
        "huge": [10**400] * rows,
        "all": np.ones(rows),
        "none": np.zeros(rows),
    }
    for label, answer in answers.items():
        act = partial(NearestNeighbour(lambda X, a=answer: a, SCHEMA).fit, PEOPLE, OUTCOMES)
        yield Case("models", f"fit(h={label})", act)
    yield Case("models", "fit(h fails)", partial(NearestNeighbour(fails, SCHEMA).fit, PEOPLE))
    for label, model in {"7": 7, "text": "h", "list": [h], "class": Bank, "dict": {}}.items():
        act = partial(NearestNeighbour(model, SCHEMA).fit, PEOPLE, OUTCOMES)
        yield Case("models", f"fit(classifier={label})", act)


# ---- broken files ----------------------------------------------------------------------------


def broken(bank: Bank, n: int, seed: int) -> Iterator[Case]:
    """Files of every kind, with bytes changed, cut off, put in, left out or doubled at random."""
    readers: dict[str, Callable[[Path], Any]] = {
        "schema.json": Schema.load,
        "plans.json": read_plans,
        "rules.json": read_rules_file,
        "rules.toml": read_rules_file,
        "policy.toml": Policy.read,
        "words.toml": Wording.of,
        "people.csv": partial(read_table, schema=SCHEMA),
        "people.parquet": partial(read_table, schema=SCHEMA),
    }
    rng = np.random.default_rng(seed)
    names = [*readers, JSON_NAME, TENSORS_NAME]
    for i in range(n):
        name = names[i % len(names)]
        of_model = name in (JSON_NAME, TENSORS_NAME)
        whole = (bank.model / name if of_model else bank.files[name]).read_bytes()
        how, data = damaged(whole, rng)
        if data == whole:
            continue
        label = f"{name} {i}: {how}"
        if of_model:
            act = partial(_load_broken, bank, name, data)
        else:
            act = partial(_read_broken, bank, readers[name], name, data)
        yield Case("broken", label, act, may_answer=not of_model)


def damaged(data: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    """Return what was done, and the bytes after it."""
    how = str(rng.choice(["flip", "cut", "insert", "remove", "double", "noise"]))
    a, b = sorted(int(place) for place in rng.integers(0, len(data) + 1, 2))
    b = min(b, a + 40)
    noise = rng.integers(0, 256, max(1, b - a), dtype=np.uint8).tobytes()
    changed = {
        "flip": data[:a]
        + bytes([byte ^ (1 << int(rng.integers(8))) for byte in data[a : a + 1]])
        + data[a + 1 :],
        "cut": data[:a],
        "insert": data[:a] + noise + data[a:],
        "remove": data[:a] + data[b:],
        "double": data[:b] + data[a:],
        "noise": data[:a] + noise + data[b:],
    }
    return f"{how} at {a}", changed[how]


def _read_broken(bank: Bank, read: Callable[[Path], Any], name: str, data: bytes) -> None:
    """A text that is still one of its kind may be read; that is all that anybody can say."""
    path = bank.folder / f"broken-{name}"
    path.write_bytes(data)
    assert read(path) is not None


def _load_broken(bank: Bank, name: str, data: bytes) -> None:
    whole = (bank.model / name).read_bytes()
    try:
        (bank.model / name).write_bytes(data)
        load(bank.model, h)
    finally:
        (bank.model / name).write_bytes(whole)


# ---- the command line ------------------------------------------------------------------------

BAD_FILES: dict[str, bytes] = {
    "empty": b"",
    "space": b" \n \n",
    "header": b"income,loans,job,member\n",
    "binary": bytes(range(256)),
    "zeros": b"\0" * 100,
    "utf16": "income,loans\n1,2\n".encode("utf-16"),
    "latin": "income,löans\n1,2\n".encode("latin-1"),
    "semicolons": b"income;loans;job;member\n1;2;cook;True\n",
    "ragged": b"income,loans,job,member\n1,2,cook,True\n1,2,cook,True,5,6\n",
    "quote": b'income,loans,job,member\n1,2,"cook,True\n',
    "text": b"income,loans,job,member\nabc,2,cook,True\n",
    "unseen": b"income,loans,job,member\n1,2,baker,True\n",
    "gap": b"income,loans,job,member\n,,,\n",
    "large": b"income,loans,job,member\n1" + b"0" * 400 + b",2,cook,True\n",
    "lacks": b"income,loans,job\n1,2,cook\n",
    "twice": b"income,income,loans,job,member\n1,1,2,cook,True\n",
    "open": b"[" * 100_000,
    "nested": b"[" * 60 + b"]" * 60,
    "json": b'{"a": 1}',
    "toml": b"a = [1, 2",
    "list": b"[1, 2, 3]",
    "null": b"null",
}
BAD_WORDS = ("", "-1", "0", "abc", "nan", "inf", "1e400", "9" * 5000, "\0", "\ud800", "[[", "=")


def words(bank: Bank) -> Iterator[Case]:
    """Every command with bad files, folders and options, in this process."""
    files = {label: bank.folder / f"bad-{label}" for label in BAD_FILES}
    for label, path in files.items():
        for ending in (".csv", ".parquet", ".json", ".toml"):
            path.with_suffix(ending).write_bytes(BAD_FILES[label])
    for name, command in _commands(bank).items():
        yield from _wrong_places(bank, name, command, list(files.values()))
        yield from _wrong_options(name, command, list(files.values()))
    for bad in (*BAD_WORDS, "plan", "PLANS", "--plans", "recourse"):
        yield _said(f"no command {shown(bad)}", [bad])
    for name in ("evaluate", "compare"):
        plural = "s" if name == "compare" else ""
        rest = ["-o", str(bank.folder / "r.jsonl")] if plural else []
        for bad in BAD_WORDS:
            wanted = [f"--method{plural}", bad, f"--dataset{plural}", "german", *rest]
            yield _said(f"{name} of {shown(bad)}", [name, *wanted])
            wanted = [f"--method{plural}", "nnr", f"--dataset{plural}", bad, *rest]
            yield _said(f"{name} on {shown(bad)}", [name, *wanted])


def _commands(bank: Bank) -> dict[str, list[str]]:
    """One call of each command that would do."""
    people, model = str(bank.files["people.csv"]), str(bank.model)
    own = ["--classifier", f"{bank.folder / 'own.py'}:h"]
    out = str(bank.folder / "out.csv")
    return {
        "plans": ["plans", model, people, "-o", out, *own],
        "explain": ["explain", model, people, "--row", "1", *own],
        "letter": ["letter", model, people, "--row", "1", *own],
        "audit": ["audit", model, people, "--group", "job", "-o", out, *own],
        "recheck": ["recheck", str(bank.files["plans.json"]), "--model", model, *own],
        "info": ["info", model, *own],
        "schema": ["schema", people, "-o", str(bank.folder / "out.json")],
        "policy": ["policy", str(bank.files["policy.toml"]), people],
        "fit": ["fit", people, "--target", "member", "-o", str(bank.folder / "new")],
    }


def _wrong_places(bank: Bank, name: str, command: list[str], files: list[Path]) -> Iterator[Case]:
    """A bad word in the place of each good one, or a bad file in the place of a good one."""
    people = str(bank.files["people.csv"])
    nowhere = [str(bank.folder / "none.csv"), str(bank.folder), people + "/below", "\0", ""]
    for place, word in enumerate(command[1:], start=1):
        if word.startswith("-") or command[place - 1] == "-o":
            continue
        kind = Path(word).suffix if Path(word).suffix in (".csv", ".json", ".toml") else ""
        wrong = [str(path.with_suffix(kind)) for path in files] if kind else []
        for bad in [*wrong, *nowhere, *BAD_WORDS]:
            changed = [*command[:place], bad, *command[place + 1 :]]
            yield _said(f"{name}: {shown(bad[-30:])} for {Path(word).name}", changed)


def _wrong_options(name: str, command: list[str], files: list[Path]) -> Iterator[Case]:
    yield _said(f"{name}: no such option", [*command, "--no-such-option"])
    yield _said(f"{name}: too many words", [*command, "more", "words"])
    for option in ("-n", "--row", "--promise", "--delta", "--seed", "--least", "--cutoff"):
        for bad in BAD_WORDS:
            yield _said(f"{name} {option} {shown(bad)}", [*command, option, bad])
    for option in ("--policy", "--rules", "--language", "--schema", "--template"):
        ending = ".json" if option in ("--rules", "--schema") else ".toml"
        for path in files:
            bad = str(path.with_suffix(ending))
            yield _said(f"{name} {option} {Path(bad).name}", [*command, option, bad])


def _said(label: str, command: list[str]) -> Case:
    return Case("words", label, partial(_run, command), may_answer=True)


def _run(command: list[str]) -> None:
    """Exit status 0, 1 (of recheck) or 2, never a traceback; 2 comes with one error."""
    result = CliRunner().invoke(cli.app, command)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 1, 2), f"exit status {result.exit_code}"
    said = result.stderr
    assert "Traceback" not in said
    if result.exit_code == 2:
        errors = [line for line in said.splitlines() if line.lower().startswith("error: ")]
        assert len(errors) == 1, f"{len(errors)} errors: {said[-300:]!r}"
        raise UserError(errors[0])
    assert result.exit_code == 0 or command[0] == "recheck", said[-300:]
