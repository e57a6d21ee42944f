"""compare(): its lines, what it does again and what not, and the tables made of them.

Methods run in this process here, which is quick; test_isolation.py is about the children and
tests/apps/test_compare_command.py runs all of it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse import METHODS, UserError
from genrecourse.evaluation.comparison import (
    Entry,
    bench,
    compare,
    difference,
    entries,
    estimate,
    read_results,
    rendering,
    standings,
    unpack_people,
)
from genrecourse.evaluation.comparison.intervals import Interval, clustered, paired
from genrecourse.evaluation.comparison.results import (
    ResultsFile,
    pack_numbers,
    row_ids,
    unpack_numbers,
)
from genrecourse.evaluation.evaluate import make_case, measure
from genrecourse.model.classifier import MLPConfig
from genrecourse.trust import verifier
from tests.support import spy, toys
from tests.support.toys import Chooser, Runs, the_case

pytestmark = pytest.mark.filterwarnings("ignore:.*sklearn.utils.parallel.delayed")


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    monkeypatch.chdir(tmp_path)
    return toys.in_this_process(monkeypatch)


OUTPUT = Path("results.jsonl")


def run(*methods: Entry | str, seeds: Any = (0,), **options: Any) -> list[dict[str, Any]]:
    wanted = list(methods) or ["nnr", "still"]
    options = {"output": OUTPUT, "rows": 25, "progress": False, "witnesses": False} | options
    return compare(wanted, ["loans"], list(seeds), **options)


def untimed(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines]


# ---- lines ---------------------------------------------------------------------------------------


def test_a_line_says_what_was_run_and_how_it_went() -> None:
    ours, still, ceiling, *_ = lines = run("chooser", "still")
    case = the_case()
    assert [line["label"] for line in (ours, still, ceiling)] == ["chooser", "still", "ceiling"]
    X_plus = Chooser(case.h, case.schema, random_state=0).fit(case.X, case.y).recourse(case.people)
    values = measure(case, X_plus)
    for name, expected in values.items():
        interval = clustered(expected, row_ids(X_plus))
        assert ours["metrics"][name] == pytest.approx(
            {"mean": expected.mean(), "sd": expected.std(), "half": interval.half, "n": 25}
        )
    assert (ours["n"], ours["distinct"]) == (25, len(X_plus.drop_duplicates()))
    assert ours["chosen"] == {"gamma": 0.5}
    assert ours["seconds"]["fit"] == 0.25
    assert ours["seconds"]["recourse"] == 0.5
    assert ours["seconds"]["stages"] == {"all": 1.0}
    assert ours["notes"] == ["a note"]
    assert ours["settings"]["lam"] == 5.0
    assert still["metrics"]["cost"]["mean"] == 0.0
    assert ceiling["metrics"]["val"]["mean"] == 1.0
    assert read_results(OUTPUT) == lines


def test_people_can_be_followed_from_method_to_method() -> None:
    lines = run("nnr", "nnr-dplus", "still")
    case = the_case()
    told = {}
    for name in ("nnr", "nnr-dplus"):
        method = METHODS[name](case.h, case.schema, random_state=0).fit(case.X, case.y)
        told[name] = method.recourse(case.people)
    ours, theirs, still = map(unpack_people, lines[:3])
    same = (told["nnr"] == told["nnr-dplus"]).all(axis=1).to_numpy()
    assert 0 < same.sum() < 25
    assert np.array_equal(ours["x_plus"] == theirs["x_plus"], same)
    assert len(np.unique(still["x_plus"])) == len(case.people.drop_duplicates())
    for name in ("score", "val", "lof", "cost"):
        expected = measure(case, told["nnr"])[name]
        np.testing.assert_allclose(ours[name], expected, rtol=1e-6)


def test_one_fit_answers_several_requests(runs: Runs) -> None:
    asks = {"": {}, "stay": {"stay": True}}
    moved, stayed, *_ = run(Entry("ours", "chooser", {"gamma": 0.6}, asks))
    assert len(runs.tasks) == 1
    assert (moved["label"], stayed["label"]) == ("ours", "ours/stay")
    assert moved["metrics"]["cost"]["mean"] > 0 == stayed["metrics"]["cost"]["mean"]
    assert (moved["params"], moved["ask"], stayed["ask"]) == ({"gamma": 0.6}, {}, {"stay": True})
    assert moved["config"] != stayed["config"]


def test_a_share_of_the_rows_is_part_of_a_larger_share(runs: Runs) -> None:
    run(*(Entry(f"{share}", "nnr", data_fraction=share) for share in (0.25, 0.5, 1.0)))
    quarter, half, whole = (set(task.X.index) for task in runs.tasks)
    assert (len(quarter), len(half), len(whole)) == (50, 100, 200)
    assert quarter < half < whole
    case = the_case()
    for task in runs.tasks:
        assert np.array_equal(task.y, case.y[task.X.index])
        assert task.h is case.h


def test_a_task_holds_what_a_method_may_know(runs: Runs) -> None:
    run("nnr")
    assert set(vars(runs.tasks[0])) == {"maker", "params", "h", "schema", "X", "y", "seed"}
    assert set(runs.closed) == {OUTPUT.with_suffix(e) for e in (".jsonl", ".csv", ".md", ".tex")}


# ---- what is done again --------------------------------------------------------------------------


def test_what_is_there_is_not_run_again(runs: Runs) -> None:
    first = run(seeds=(0, 1))
    content = OUTPUT.read_bytes()
    assert len(runs.tasks) == 4
    assert run(seeds=(0, 1)) == first
    assert len(runs.tasks) == 4
    assert OUTPUT.read_bytes() == content
    more = run("nnr", "still", "nnr-dplus", seeds=(0, 1))
    assert len(runs.tasks) == 6  # the new method alone, on both seeds
    assert [line for line in more if line["label"] != "nnr-dplus"] == first


@pytest.mark.parametrize("lost", [1, 7, 300, "a line and a half", "all but a half"])
def test_a_torn_line_is_dropped_and_its_run_done_again(lost: Any, runs: Runs) -> None:
    whole = run(seeds=(0, 1))
    content = OUTPUT.read_bytes()
    lines = content.splitlines(keepends=True)
    if lost == "a line and a half":
        lost = len(lines[-1]) + len(lines[-2]) // 2
    elif lost == "all but a half":
        lost = len(content) - len(lines[0]) // 2
    OUTPUT.write_bytes(content[:-lost])
    if lost == 1:  # the line is whole, only its end is not
        again = run(seeds=(0, 1))
        assert len(runs.tasks) == 4
    else:
        with pytest.warns(UserWarning, match=r"last line of results\.jsonl is incomplete"):
            again = run(seeds=(0, 1))
    assert untimed(again) == untimed(whole)
    assert untimed(read_results(OUTPUT)) == untimed(whole)
    assert OUTPUT.read_bytes().endswith(b"\n")


def test_a_kill_between_two_requests_of_one_fit() -> None:
    entry = Entry("ours", "chooser", asks={"": {}, "stay": {"stay": True}})
    whole = run(entry)
    lines = OUTPUT.read_bytes().splitlines(keepends=True)
    OUTPUT.write_bytes(b"".join([lines[0], *lines[2:]]))
    assert untimed(run(entry)) == untimed(whole)
    assert len(read_results(OUTPUT)) == len(lines)


def test_a_failure_is_a_line_and_is_tried_again(runs: Runs) -> None:
    runs.broken = {spy.Still}
    nnr, still, *rest = run()
    assert still["failed"] == "it broke"
    assert still["n"] == 25
    assert "metrics" not in still
    assert not any("failed" in line for line in (nnr, *rest))
    runs.broken = set()
    assert len(runs.tasks) == 2
    again = run()
    assert len(runs.tasks) == 3
    assert "failed" not in again[1]
    assert [again[0], *again[2:]] == [nnr, *rest]
    assert run() == again
    assert len(read_results(OUTPUT)) == len(again) + 1  # the failure stays on record


def test_an_answer_that_cannot_be_read_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any) -> None:
        raise UserError("'astronaut' is no job")

    monkeypatch.setattr(bench, "measure", refuse)
    still, *_ = run("still")
    assert still["failed"] == "its answer cannot be measured: 'astronaut' is no job"


def test_another_setting_is_another_run(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    run("nnr")
    monkeypatch.setitem(METHODS, "nnr", spy.Still)  # the same name for something else
    with pytest.warns(UserWarning, match=r"1 of the \d lines of results\.jsonl belong to other"):
        still, *_ = run("nnr")
    assert len(runs.tasks) == 2
    assert still["metrics"]["cost"]["mean"] == 0.0
    assert [line["label"] for line in read_results(OUTPUT)].count("nnr") == 2
    with pytest.warns(UserWarning, match="belong to other runs"):
        run("nnr", rows=20)
    assert len(runs.tasks) == 3


def config(**params: Any) -> str:
    return str(entries.heads(Entry("x", "nnr-auto", params))[0]["config"])


def test_the_config_hash_is_of_all_that_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = config()
    assert config(gamma="auto") == usual  # said or not said, it is the same
    assert config(lam=4.0) != usual
    constants = entries._constants()
    for name in (
        *(
            "genrecourse.genre.choose_gamma.GAMMA_GRID",
            "genrecourse.genre.choose_sampling.TEMPERATURE_GRID",
        ),
        *("genrecourse.trust.judge.TRUST_AT", "genrecourse.trust.verifier.INLIER_AT"),
        *("genrecourse.trust.score.SHORTLIST", "genrecourse.genre.bins.KEEP_REACH"),
        "genrecourse.methods.nearest.CANDIDATES",
    ):
        assert name in constants
    assert not any(name.startswith("genrecourse.apps.cli") for name in constants)
    monkeypatch.setattr(verifier, "INLIER_AT", -0.9)
    entries._constants.cache_clear()
    assert config() != usual
    monkeypatch.undo()
    entries._constants.cache_clear()
    assert config() == usual


def test_other_code_with_the_same_settings_is_used_and_said(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run("nnr")
    monkeypatch.setattr(entries, "_contents", lambda: [b"something else"])
    with pytest.warns(UserWarning, match=r"\d lines of .* by another version of the code"):
        assert run("nnr") == first
    assert len(runs.tasks) == 1


def test_the_source_hash_is_of_what_decides_a_result() -> None:
    decisive = {str(path) for path in entries._decisive()}
    assert {
        "methods/genre.py",
        "genre/select.py",
        "trust/judge.py",
        "evaluation/metrics.py",
        "evaluation/evaluate.py",
    } <= decisive
    shows = {"apps/cli/learn.py", "evaluation/comparison/run.py", "reports/plots.py"}
    assert all((entries.PACKAGE / name).exists() for name in shows)
    assert not shows & decisive
    own = entries.heads(Entry("x", "still"))[0]["source"]
    assert own != entries.heads(Entry("x", "nnr"))[0]["source"]  # a method from elsewhere: its file


def test_nothing_is_written_where_nothing_is_named(runs: Runs) -> None:
    assert run("nnr", output=None)[0]["label"] == "nnr"
    assert list(Path().iterdir()) == []
    assert runs.closed == []


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda: run("magic"), "no method 'magic'; the methods are genre"),
        (lambda: compare(["nnr"], ["iris"], [0]), r"no data set \['iris'\]"),
        (lambda: run(Entry("nnr", "nnr-dplus"), "nnr"), r"the labels \['nnr'\] are used twice"),
        (lambda: run(Entry("ceiling", "nnr")), "own label"),
        (lambda: run(Entry("x", "nnr", {"gama": 1})), r"no parameter \['gama'\]"),
        (lambda: Entry("x", "nnr", data_fraction=1.5), "data_fraction is 1.5"),
        (lambda: Entry("x", "nnr", {"random_state": 5}), r"the comparison sets \['random_state'\]"),
        (lambda: Entry("x", "nnr", asks={}), "asks is empty"),
        (lambda: compare([], ["loans"], [0]), "no method to compare"),
        (lambda: run(seeds=()), "no data set or no seed"),
        (lambda: run(rows=0), "rows is 0"),
        (lambda: run(output=Path("results.csv")), "must end with .jsonl"),
        (lambda: run(output=Path("far/results.jsonl")), "there is no folder"),
        (lambda: run(output=_written("notes.jsonl", '{"a": 1}\n')), "line 1 of notes.jsonl"),
        (lambda: run(output=_written("notes.jsonl", "dear diary\n")), "line 1 of notes.jsonl"),
        (lambda: standings(run(), "nnr-auto"), "the reference 'nnr-auto' is not a method on"),
        (lambda: read_results(Path("none.jsonl")), "cannot read none.jsonl"),
    ],
)
def test_a_mistake_is_said_before_anything_runs(act: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        act()


def _written(name: str, text: str) -> Path:
    Path(name).write_text(text)
    return Path(name)


def test_missing_data_are_said_before_anything_runs(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GENRECOURSE_DATA", str(tmp_path))
    with pytest.raises(UserError, match=r"no file 'compas_train\.csv'"):
        compare(["nnr"], ["loans", "compas"], [0], output=OUTPUT, progress=False)
    assert runs.tasks == []


def test_two_comparisons_do_not_share_a_file() -> None:
    pytest.importorskip("fcntl")
    with (
        ResultsFile(OUTPUT),
        pytest.raises(UserError, match=r"another comparison is writing to results\.jsonl"),
    ):
        run()


# ---- numbers in few bytes ------------------------------------------------------------------------


def test_packed_numbers_come_back() -> None:
    rng = np.random.default_rng(0)
    for values in (rng.normal(size=101), np.array([0.0, 1.0, np.nan]), np.zeros(0)):
        np.testing.assert_allclose(unpack_numbers(pack_numbers(values)), values, rtol=1e-6)
    ids = rng.integers(0, 2**32, 101, dtype=np.uint32)
    assert np.array_equal(unpack_numbers(pack_numbers(ids), ids=True), ids)
    json.dumps(pack_numbers(ids))


def test_five_seeds_of_adult_fit_into_six_megabytes() -> None:
    """Nine thousand people, eight methods, everybody told something of their own."""
    rng = np.random.default_rng(0)
    n = 9000
    cost, val, lof = rng.gamma(2.0, 0.3, n), rng.random(n) < 0.97, rng.random(n) < 0.95
    score = val + lof - cost / 13
    ids = rng.integers(0, 2**32, n, dtype=np.uint32)
    columns = (cost, val.astype(float), lof.astype(float), score, ids)
    size = sum(len(pack_numbers(column)) for column in columns)
    assert 8 * 5 * (size + 3000) < 5e6


def test_ids_tell_rows_apart_and_no_more() -> None:
    rows = [[0.1 + 0.2, 0.0], [0.3, -0.0], [0.3, 1e-6], [np.nan, 0.0], [-np.nan, 0.0]]
    table = pd.DataFrame(rows, columns=["p", "q"]).assign(job=["cook"] * 4 + ["nurse"])
    a, b, c, d, e = row_ids(table)
    assert a == b
    assert len({a, c, d, e}) == 4
    whole = pd.DataFrame({"p": [1, 2], "job": ["cook", "cook"]})
    odd = pd.DataFrame({"p": [2.0, np.nan], "job": pd.Categorical(["cook", "nurse"])}, index=[7, 8])
    assert row_ids(whole)[1] == row_ids(odd)[0]  # a number is a number, and the index is no matter
    assert row_ids(table).max() < 2**32


# ---- who stands where ----------------------------------------------------------------------------


def made_line(label: str, seed: int, score: Any, told: Any, **more: Any) -> dict[str, Any]:
    values = np.asarray(score, dtype=float)
    found = clustered(values, np.asarray(told))
    summary = {"mean": found.mean, "half": found.half, "sd": float(values.std()), "n": found.n}
    people = {"x_plus": np.asarray(told, dtype=np.uint32), "score": values}
    return {
        "dataset": "toy",
        "seed": seed,
        "label": label,
        "method": label,
        "params": {},
        "ask": {},
        "n": found.n,
        "distinct": found.clusters,
        "seconds": {"fit": 2.0, "recourse": 0.1},
        "metrics": {"score": summary},
        "people": {name: pack_numbers(v) for name, v in people.items()},
    } | more


A = [1.5, 1.75, 1.25, 2.0]
B = [1.0, 1.75, 1.5, 1.25]


def test_each_is_compared_with_the_best_other() -> None:
    lines = [
        made_line("a", 0, A, [1, 1, 2, 3]),
        made_line("b", 0, B, [1, 2, 2, 3]),
        made_line("c", 0, [0.5] * 4, [1, 2, 3, 4]),
        made_line("ceiling", 0, [2.0] * 4, [1, 2, 3, 4]),
    ]
    a, b, c, ceiling = standings(lines)
    assert (a.other, b.other, c.other, ceiling.other) == ("b", "a", "a", None)
    expected = paired(np.array(A), np.array(B), np.array([1, 1, 2, 3]), np.array([1, 2, 2, 3]))
    assert a.difference == expected
    assert b.difference is not None
    assert (b.difference.mean, b.difference.half) == (-expected.mean, expected.half)
    assert ceiling.difference is None
    assert (a.n, a.distinct, a.fit_seconds, a.row_ms) == (4, 3, 2.0, 25.0)
    to_c = standings(lines, reference="c")
    assert [row.other for row in to_c] == ["c", "c", None, None]


def test_fewer_people_are_the_first_of_the_same() -> None:
    many, few = made_line("a", 0, A, [1, 1, 2, 3]), made_line("b", 0, B[:3], [1, 2, 2], rows=3)
    first = paired(np.array(A[:3]), np.array(B[:3]), np.array([1, 1, 2]), np.array([1, 2, 2]))
    assert difference([many], [few]) == first
    more, less = (
        make_case("moons", 3, rows=rows, h_config=MLPConfig(epochs=2)) for rows in (40, 15)
    )
    assert more.people.iloc[:15].equals(less.people)


def test_over_seeds_the_seeds_are_the_observations() -> None:
    lines = [made_line("a", s, np.array(A) + s / 10, [1, 2, 3, 4]) for s in range(3)]
    lines += [made_line("b", s, B, [1, 2, 3, 4]) for s in (0, 2)]
    lines += [{k: v for k, v in lines[-1].items() if k != "metrics"} | {"seed": 1, "failed": "no"}]
    a, b = standings(lines)
    assert a.metrics["score"].mean == pytest.approx(np.mean(A) + 0.1)
    assert a.metrics["score"].half == pytest.approx(4.302653 * 0.1 / np.sqrt(3))
    assert (a.seeds, a.failed, a.n, a.metrics["score"].n) == (3, 0, 12, 12)
    assert (b.seeds, b.failed, b.n, b.answered) == (3, 1, 12, 8)
    # the seeds that both have: 0 and 2
    assert a.difference is not None
    differences = np.mean(A) - np.mean(B) + np.array([0.0, 0.2])
    assert a.difference.mean == pytest.approx(differences.mean())
    assert a.difference.seeds == 2
    assert estimate(lines[:3], "unheard of") is None
    assert difference(lines[:1], lines[4:5]) is None  # no seed in common


def test_a_method_that_always_fails_has_no_difference() -> None:
    bad = {"dataset": "toy", "label": "bad", "method": "bad", "seed": 0, "n": 4, "failed": "no"}
    lines = [made_line("a", 0, A, [1, 2, 3, 4]), bad]
    a, failed = standings(lines)
    assert (a.other, a.difference) == (None, None)
    assert (failed.failed, failed.difference) == (1, None)
    assert rendering.cells(failed, [a, failed]) == ["bad", "failed on 1 of 1 seeds"]


# ---- tables --------------------------------------------------------------------------------------


def test_tidy_rows() -> None:
    lines = run(Entry("ours", "chooser", {"gamma": 0.6}, {"stay": {"stay": True}}), seeds=(0, 1))
    table = rendering.tidy(lines)
    assert list(table.columns) == ["dataset", "method", "params", "seed", "metric", "value", "n"]
    assert len(table) == sum(len(line["metrics"]) for line in lines)
    row = table[(table["method"] == "ours/stay") & (table["metric"] == "cost")].iloc[1]
    assert (row["seed"], row["value"], row["n"]) == (1, 0.0, 25)
    assert json.loads(row["params"]) == {"gamma": 0.6, "stay": True}


def test_markdown_and_latex_say_the_same() -> None:
    lines = [
        made_line("a_1", 0, A, [1, 1, 2, 3]),
        made_line("50%|b", 0, B, [1, 2, 2, 3]),
    ]
    rows = standings(lines)
    half = rows[0].metrics["score"].half
    markdown, latex = rendering.to_markdown(rows), rendering.to_latex(rows)
    assert f"| a_1 | 1.625 ± {half:.3f} | 4 | 3 | +0.250 ± " in markdown
    assert r"| 50%\|b | 1.375 ± " in markdown
    assert rf"a\_1 & 1.625 $\pm$ {half:.3f} & 4 & 3 & +0.250 $\pm$ " in latex
    assert r"50\%|b & 1.375" in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\bottomrule") == 1
    widths = {line.count("&") for line in latex.splitlines() if line.endswith(r"\\")}
    assert len(widths) == 1
    assert not re.search(r"(?<!\\)[%_#]", latex)
    assert "score $\\uparrow$" in latex


def test_a_metric_that_is_not_about_everybody_says_of_how_many() -> None:
    line = made_line("a", 0, A, [1, 2, 3, 4])
    line["metrics"]["cost"] = line["metrics"]["score"] | {"n": 3}
    rows = standings([line])
    assert rendering.cells(rows[0], rows)[2].endswith(" of 3")
    assert rendering.in_words(Interval(1.0, float("nan"), 5, 1)) == "1.000"


def test_what_is_asked_of_one_case_in_a_row_makes_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(bench, "make_case", lambda *which, **how: made.append(which) or which)
    monkeypatch.setattr(bench, "witnesses_of", lambda case: made.append("witnesses") or object())
    last = bench._Last()
    assert last.case("a", 0, "files") is last.case("a", 0, "files")
    assert last.witnesses("a", 0, "files") is last.witnesses("a", 0, "files")
    assert made == [("a", 0), "witnesses"]
    last.case("a", 0, "nested")  # another case: the witnesses of the first are no longer right
    last.witnesses("a", 0, "nested")
    assert made == [("a", 0), "witnesses", ("a", 0), "witnesses"]
