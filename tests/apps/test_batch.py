"""`genrecourse batch` on one machine: files in, parts out, killed and started again."""

from __future__ import annotations

import csv
import errno
import fcntl
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from genrecourse import NearestNeighbour, Schema, UserError
from genrecourse.advice.batch import BatchPlanner
from genrecourse.advice.request import PlanRequest
from genrecourse.apps import cli
from genrecourse.apps.batch import inputs, local, output, run
from genrecourse.apps.batch.verify import verify
from genrecourse.table.csv_cells import MISSING
from genrecourse.table.table_files import write_table
from tests.support.batches import (
    PEOPLE,
    answers_in,
    begin,
    children_of,
    contents,
    is_alive,
    kill,
    one_by_one,
    wait_until,
    write_example,
)

ROWS = 8  # of a part
ENGINE = local.engine


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("batch")
    write_example(folder)
    return folder


@pytest.fixture(scope="module")
def planner(files: Path) -> BatchPlanner:
    return BatchPlanner.of(files / "model", PlanRequest(n=2), key="id")


@pytest.fixture(autouse=True)
def here(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the folder of the files; the engine "local" makes the parts in this process."""
    monkeypatch.chdir(files)
    monkeypatch.setattr(local, "engine", one_by_one)


@pytest.fixture(scope="module")
def undisturbed(files: Path, planner: BatchPlanner) -> Path:
    folder = files / "undisturbed"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "engine", one_by_one)
        run.run_batch(planner, files / "people.csv", folder, rows_per_part=ROWS)
    return folder


def asked(*words: object) -> Result:
    return CliRunner().invoke(cli.app, ["batch", *map(str, words)])


# ---- what comes out -----------------------------------------------------------------------------


def test_every_form_of_the_input_gives_the_same_answers(
    planner: BatchPlanner, undisturbed: Path, tmp_path: Path
) -> None:
    expected = answers_in(undisturbed)
    assert expected["row"].tolist() == list(range(PEOPLE))
    assert expected["key"].tolist() == [f"{i:04d}" for i in range(PEOPLE)]
    for k, source in enumerate(["people.csv", "people.parquet", "people"]):
        out = tmp_path / str(k)
        run.run_batch(planner, source, out, rows_per_part=(7, 100, 13)[k])
        pd.testing.assert_frame_equal(answers_in(out), expected, check_exact=True)


def test_the_manifest_says_what_was_asked_and_what_came_out(
    planner: BatchPlanner, undisturbed: Path
) -> None:
    manifest = json.loads((undisturbed / "_manifest.json").read_text())
    answers = answers_in(undisturbed)
    assert manifest["complete"] is True
    assert manifest["counts"] == answers["status"].value_counts().to_dict()
    assert manifest["plans"] == answers["n_plans"].sum()
    assert manifest["model"] == planner.model_hash
    assert manifest["request"]["n"] == 2
    assert manifest["input"]["rows"] == PEOPLE
    assert pd.read_parquet(undisturbed).shape == answers.shape  # the manifest is in nobody's way


def test_the_command_prints_the_counts_and_checks_every_plan(tmp_path: Path) -> None:
    words = ("model", "people", tmp_path / "out", "-n", 2, "--key", "id", "--verify")
    done = asked(*words)
    assert done.exit_code == 0, (done.output, done.exception)
    assert f"{PEOPLE} people: " in done.stdout
    assert f"plans of {PEOPLE} people checked again: 0 wrong" in done.stdout
    again = asked(*words)
    assert again.exit_code == 0
    assert again.stdout == done.stdout


def test_a_wrong_part_is_found(planner: BatchPlanner, undisturbed: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    assert verify(planner, Path("people.csv"), undisturbed).wrong == 0
    out = tmp_path / "out"
    shutil.copytree(undisturbed, out)
    path = output.part_path(out, 1)
    table = pq.read_table(path)
    place = table["status"].to_pylist().index("ok")
    original = pd.read_csv("people.csv").iloc[ROWS + place]
    for name in planner.service.schema.columns:  # the plan changes nothing any more
        column = table[f"plan_1_{name}"].to_pylist()
        column[place] = None if pd.isna(original[name]) else original[name]
        j = table.schema.get_field_index(f"plan_1_{name}")
        table = table.set_column(j, table.field(j), pa.array(column, table.field(j).type))
    pq.write_table(table, path)
    found = verify(planner, Path("people.csv"), out)
    assert found.wrong == 1
    assert found.findings == [f"row {ROWS + place}: the model does not accept plan 1"]


# ---- rows of files ------------------------------------------------------------------------------

CELLS = st.text(st.sampled_from('ab,"\n\r é7.-'), max_size=6)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=12),
    per_part=st.integers(1, 5),
    ending=st.sampled_from(["\n", "\r\n"]),
    mark=st.booleans(),
)
def test_parts_of_a_csv_are_its_rows(
    rows: list[tuple[str, ...]], per_part: int, ending: str, mark: bool, tmp_path: Path
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=ending, quoting=csv.QUOTE_ALL)
    writer.writerows([("x", "y", "z"), *rows])
    path = tmp_path / "t.csv"
    path.write_bytes(text.getvalue().encode("utf-8-sig" if mark else "utf-8"))
    people = inputs.open_input(path, per_part)
    assert people.rows == len(rows)
    found = [people.read(part, ["z", "x"]) for part in people.parts]
    assert all(wrong == {} for _, wrong in found)
    table = pd.concat([X for X, _ in found])
    assert table.index.tolist() == list(range(len(rows)))
    expected = pd.read_csv(path, dtype=str, encoding="utf-8-sig", skip_blank_lines=False)
    for name in ("z", "x"):
        cells = [None if pd.isna(cell) else cell for cell in table[name]]
        assert cells == [None if row in MISSING else row for row in dict_of(rows)[name]]
        same = [None if pd.isna(cell) else cell for cell in expected[name]]
        assert cells == same or "\r" in text.getvalue().replace("\r\n", "")


def dict_of(rows: list[tuple[str, ...]]) -> dict[str, list[str]]:
    return {name: [row[j] for row in rows] for j, name in enumerate("xyz")}


def test_what_a_csv_writes_for_missing_is_what_pandas_takes_for_it(tmp_path: Path) -> None:
    words = ["NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "<NA>", "NULL", "null", "None", "NaN"]
    words += ["nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", "none", "-", "NAN"]
    words += ["Null", "Nil", "0", "N.A.", "missing", " NA"]
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{word},1\n" for word in words))
    ours, _ = inputs.open_input(path, 100).read(inputs.open_input(path, 100).parts[0], ["x"])
    assert ours["x"].isna().tolist() == pd.read_csv(path, dtype=str)["x"].isna().tolist()


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    n=st.integers(1, 60),
    group=st.integers(1, 30),
    per_part=st.integers(1, 40),
    order=st.randoms(use_true_random=False),
)
def test_parts_of_a_parquet_file_are_its_rows_in_any_order(
    n: int, group: int, per_part: int, order: object, tmp_path: Path
) -> None:
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": range(n), "b": [f"b{i}" for i in range(n)]}).to_parquet(
        path, row_group_size=group
    )
    people = inputs.open_input(path, per_part)
    parts = list(people.parts)
    order.shuffle(parts)  # type: ignore[attr-defined]
    for part in parts:
        X, _ = people.read(part, ["a"])
        assert X["a"].tolist() == X.index.tolist()
        assert X["a"].tolist() == list(range(part.first, part.first + part.rows))
    assert sum(part.rows for part in parts) == n


def test_a_level_named_like_a_missing_value_is_read_from_every_kind_of_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    levels = ["NA", "None", "DE", "=x"]
    X = pd.DataFrame({"income": range(80), "country": levels * 20})
    NearestNeighbour(None, Schema.infer(X)).fit(X, X["income"] >= 40).save("model")
    people = X.head(8).assign(id=range(8))
    people.to_parquet("people.parquet")
    write_table(people, Path("people.csv"))
    write_table(people, Path("safe.csv"), safe_cells=True)
    assert "'=x" in Path("safe.csv").read_text()
    planner = BatchPlanner.of("model", PlanRequest(n=2), key="id")
    run.run_batch(planner, "people.parquet", "0", rows_per_part=3)
    expected = answers_in(Path("0"))
    assert set(expected["status"]) == {"ok", "already-accepted"}
    for name in ("people.csv", "safe.csv"):
        run.run_batch(planner, name, name[:-4], rows_per_part=3)
        pd.testing.assert_frame_equal(answers_in(Path(name[:-4])), expected, check_exact=True)
        assert verify(planner, Path(name), Path(name[:-4])).wrong == 0


def test_a_parquet_file_with_two_columns_of_one_name_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(UserError, match="more than one column named \\['a'\\]"):
        inputs.open_input(tmp_path / "twice.parquet", 10)


def test_an_input_that_changes_while_it_is_read_is_noticed(
    planner: BatchPlanner, tmp_path: Path
) -> None:
    for name in ("people.csv", "people.parquet"):
        source, out = tmp_path / name, tmp_path / f"out-{name}"
        shutil.copy(name, source)
        half = people_of(name).iloc[: PEOPLE // 2]

        def swap(source: Path = source, half: pd.DataFrame = half) -> None:
            half.to_csv(source) if source.suffix == ".csv" else half.to_parquet(source)

        def once(made: int, rows: int, swap: Callable[[], None] = swap) -> None:
            if made == ROWS:
                swap()

        with pytest.raises(UserError, match=f"{name} has changed since it was read first"):
            run.run_batch(planner, source, out, rows_per_part=ROWS, progress=once)
        assert json.loads((out / "_manifest.json").read_text())["complete"] is False
    # as many bytes and rows as before: only the time tells
    source = tmp_path / "people.csv"
    shutil.copy("people.csv", source)
    text = source.read_text()

    def late(made: int, rows: int) -> None:
        if made == rows:
            source.write_text(text.replace("0007", "0008"))

    with pytest.raises(UserError, match="has changed since"):
        run.run_batch(planner, source, tmp_path / "late", rows_per_part=ROWS, progress=late)


def people_of(name: str) -> pd.DataFrame:
    return pd.read_csv(name) if name.endswith(".csv") else pd.read_parquet(name)


def test_a_line_that_is_no_row_is_named_and_the_rest_goes_on(
    planner: BatchPlanner, undisturbed: Path, tmp_path: Path
) -> None:
    lines = Path("people.csv").read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].rstrip(b"\r\n") + b",one too many\n"  # row 2
    lines[11] = lines[11].split(b",")[0] + b"\n"  # row 10: only its first cell
    lines[20] = lines[20].replace(b"0019", b"\xff\xfe")  # row 19: bytes that are no text
    (tmp_path / "odd.csv").write_bytes(b"".join(lines))
    run.run_batch(planner, tmp_path / "odd.csv", tmp_path / "out", rows_per_part=ROWS)
    found, expected = answers_in(tmp_path / "out"), answers_in(undisturbed)
    assert found["status"].iloc[[2, 10, 19]].tolist() == ["unreadable"] * 3
    assert found["key"].iloc[2] == "0002"
    for row, words in ((2, "cells"), (10, "1 cell, and the header has"), (19, "not UTF-8")):
        assert words in found["reason"].iloc[row]
    rest = found.index.difference([2, 10, 19])
    pd.testing.assert_frame_equal(found.loc[rest], expected.loc[rest], check_exact=True)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.csv", b"", "is empty"),
        ("header.csv", b"a,b\n", "has no rows"),
        ("twice.csv", b"a,a\n1,2\n", "more than one column named \\['a'\\]"),
        ("open.csv", b'a,b\n1,"' + b"x" * 200_000, "is a quote not closed"),
        ("people.txt", b"a\n1\n", "should end in .csv or .parquet"),
        ("no.parquet", b"no", "is not a parquet table"),
    ],
)
def test_a_file_that_is_no_table_is_refused(
    name: str, content: bytes, says: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=says):
        inputs.open_input(tmp_path / name, 10)


# ---- another run --------------------------------------------------------------------------------


def test_a_folder_of_another_run_is_refused(
    planner: BatchPlanner, undisturbed: Path, files: Path, tmp_path: Path
) -> None:
    before = contents(undisturbed)
    other = tmp_path / "other.csv"
    text = Path("people.csv").read_text()
    other.write_text(text.replace("0007", "0008"))
    say = {
        "rows_per_part: 8 then, 9 now": (planner, "people.csv", 9),
        "request.n: 2 then, 1 now": (BatchPlanner.of("model", key="id"), "people.csv", ROWS),
        "key: 'id' then, None now": (
            BatchPlanner.of("model", PlanRequest(n=2)),
            "people.csv",
            ROWS,
        ),
        "input.files": (planner, other, ROWS),
        "input.kind: 'csv' then": (planner, "people.parquet", ROWS),
    }
    for words, (asks, source, rows) in say.items():
        with pytest.raises(UserError) as refused:
            run.run_batch(asks, source, undisturbed, rows_per_part=rows)
        assert words in str(refused.value)
    assert contents(undisturbed) == before
    with pytest.raises(UserError, match="was not written by 'genrecourse batch'"):
        run.run_batch(planner, "people.csv", files / "model", rows_per_part=ROWS)


def test_two_runs_do_not_write_to_one_folder(planner: BatchPlanner, tmp_path: Path) -> None:
    with (
        output.alone_in(tmp_path / "out"),
        pytest.raises(UserError, match="another run is writing"),
    ):
        run.run_batch(planner, "people.csv", tmp_path / "out", rows_per_part=ROWS)


def test_a_file_system_without_locks_is_no_obstacle(
    planner: BatchPlanner, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handle: int, how: int) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    run.run_batch(planner, "people.csv", tmp_path / "out", rows_per_part=ROWS)
    assert contents(tmp_path / "out") == contents(undisturbed)


def test_an_output_is_checked_only_if_it_is_whole_and_was_asked_for(
    planner: BatchPlanner, undisturbed: Path, tmp_path: Path
) -> None:
    source, other = Path("people.csv"), BatchPlanner.of("model", PlanRequest(n=1), key="id")
    with pytest.raises(UserError, match="the answers to another request"):
        verify(other, source, undisturbed)
    out = tmp_path / "out"
    shutil.copytree(undisturbed, out)
    output.part_path(out, 1).unlink()
    with pytest.raises(UserError, match=r"1 of .* parts are missing .*part-000001"):
        verify(planner, source, out)


def test_plans_within_a_limit_on_time_are_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    X = pd.DataFrame({"income": range(80), "age": [20, 30, 40, 50] * 20})
    NearestNeighbour(None, Schema.infer(X)).fit(X, X["income"] >= 40).save("model")
    X.head(50).to_csv("people.csv", index=False)
    effort = "[effort.changes]\nincome = { up = { each = 1, months = 1 } }\n"
    Path("policy.toml").write_text(f'[rules]\nmax_months = 20\nlock = ["age"]\n{effort}')
    planner = BatchPlanner.of("model", policy="policy.toml")
    run.run_batch(planner, "people.csv", "out", rows_per_part=ROWS)
    assert answers_in(Path("out"))["status"].nunique() > 1
    found = verify(planner, Path("people.csv"), Path("out"))
    assert found.plans > 0
    assert found.wrong == 0


def test_a_part_under_the_name_of_another_is_made_again(
    planner: BatchPlanner, undisturbed: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(undisturbed, out)
    shutil.copy(output.part_path(out, 0), output.part_path(out, 1))
    run.run_batch(planner, "people.csv", out, rows_per_part=ROWS)
    assert contents(out) == contents(undisturbed)


def test_a_broken_or_a_missing_part_is_made_again(
    planner: BatchPlanner, undisturbed: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(undisturbed, out)
    output.part_path(out, 2).write_bytes(output.part_path(out, 2).read_bytes()[:-9])
    output.part_path(out, 5).unlink()
    (out / ".part-000005.abc").write_bytes(b"half of it")
    run.run_batch(planner, "people.csv", out, rows_per_part=ROWS)
    assert contents(out) == contents(undisturbed)


def test_rules_for_somebody_who_is_not_there_are_refused(tmp_path: Path) -> None:
    rules = {"people": {"0003": {"max_changes": 1}, "nobody": {"max_changes": 1}}}
    planner = BatchPlanner.of("model", PlanRequest(rules=rules), key="id")
    with pytest.raises(UserError, match="the 'id' 'nobody', which is not in the input"):
        run.run_batch(planner, "people.csv", tmp_path / "out", rows_per_part=ROWS)
    by_row = BatchPlanner.of("model", PlanRequest(rules={3: {"max_changes": 1}}))
    run.run_batch(by_row, "people.csv", tmp_path / "out", rows_per_part=ROWS)
    everybody = BatchPlanner.of("model")
    run.run_batch(everybody, "people.csv", tmp_path / "all", rows_per_part=ROWS)
    mine, usual = answers_in(tmp_path / "out"), answers_in(tmp_path / "all")
    assert mine["n_changes_1"].fillna(0)[3] <= 1
    pd.testing.assert_frame_equal(mine.drop(3), usual.drop(3), check_exact=True)


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    for words, says in (
        (("model", "nowhere.csv", tmp_path / "o"), "there is no file or folder nowhere.csv"),
        (("model", "people.csv", tmp_path / "o", "--engine", "rey"), "did you mean 'ray'?"),
        (("model", "people.csv", tmp_path / "o", "--key", "ID"), "did you mean 'id'?"),
        (("model", "people.csv", tmp_path / "o", "--address", "auto"), "has no address"),
    ):
        done = asked(*words)
        assert done.exit_code == 2, done.exception
        assert says in done.stderr
        assert "Traceback" not in done.stderr


# ---- killed -------------------------------------------------------------------------------------


def test_killed_and_started_again_it_loses_nothing_and_doubles_nothing(
    undisturbed: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("model", "people.csv", out, "-n", 2, "--key", "id", "--rows-per-part", ROWS)

    def parts() -> int:
        return len(list(out.glob("part-*.parquet")))

    # the whole run is killed
    process = begin(*words, "--processes", 1)
    wait_until(lambda: parts() >= 2, "some parts are there")
    workers = children_of(process)
    assert workers
    kill(process.pid)
    process.communicate()
    wait_until(lambda: not any(map(is_alive, workers)), "the workers have ended, too")
    made = parts()
    assert 2 <= made < PEOPLE // ROWS
    half = contents(out)

    # one of its workers is killed
    process = begin(*words, "--processes", 2)
    wait_until(lambda: parts() > made and len(children_of(process)) == 2, "it has gone on")
    kill(children_of(process)[0])
    said, _ = process.communicate()
    assert process.returncode == 0, said
    assert f"{PEOPLE} people: " in said
    assert contents(out) == contents(undisturbed)
    kept = {name: data for name, data in half.items() if name.startswith("part-")}
    assert kept.items() <= contents(out).items()


class Deadly:
    """Work that kills its process, as a full memory does."""

    def __call__(self, part: inputs.Part) -> None:
        os._exit(137)


def test_a_process_that_always_dies_ends_the_run_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local, "MOST_DEATHS", 1)
    parts = [inputs.Part(k, 8 * k, 8, 0, 0, 1) for k in range(3)]
    with pytest.raises(UserError, match=r"killed 2 times in a row .* rows from 0 on"):
        list(ENGINE(Deadly(), parts, 1))  # type: ignore[arg-type]
