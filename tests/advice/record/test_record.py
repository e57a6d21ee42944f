"""The record as an auditor, a person who wants to be forgotten, and a power cut meet it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from genrecourse import UserError
from genrecourse.advice.record import Answer, Record, RecordError, writer
from genrecourse.advice.record import check as reading
from genrecourse.advice.record.check import CHAIN, PERSONAL, DamageError, check
from genrecourse.advice.record.commitments import commitment, salt_of
from genrecourse.advice.record.lines import Line, sealed
from genrecourse.advice.record.proofs import (
    consistency_proof,
    inclusion_proof,
    is_extension,
    is_included,
    root_of_day,
)
from genrecourse.advice.record.replay import entry
from tests.support.records import answer, flips, killed, lost, small_record

FACTS = {"code": "1"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_record(tmp_path_factory.mktemp("made") / "record")


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A record of 12 answers about 18 people, of whom 2 are erased; a copy to break."""
    return Path(shutil.copytree(made, tmp_path / "record"))


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def reseal(path: Path, number: int, **new: Any) -> None:
    """Rewrite a line as somebody would who knows how the record is made."""
    all_lines = lines(path)
    content = json.loads(all_lines[number])
    del content["sha256"]
    all_lines[number] = sealed(content | new) + b"\n"
    path.write_bytes(b"".join(all_lines))


# ---- what is recorded ----------------------------------------------------------------------------


def test_a_whole_record(made: Path) -> None:
    state = check(made)
    assert (state.size, state.answers, state.people) == (14, 12, 18)
    assert state.erased == {(3, 1): 5, (8, 1): 10}
    assert not state.pending
    assert not state.unfinished


def test_a_receipt_leads_to_the_answer(folder: Path) -> None:
    with Record(folder, {"code": "2"}) as record:
        receipt = record.append(answer("new", people=2))
    line, people = entry(folder, receipt.record)
    assert (line["request"], line["time"], line["n"]) == ("new", receipt.time, 14)
    assert (line["made_by"], line["asked"], line["status"]) == ({"code": "2"}, {"n": 1}, 200)
    assert [person["values"] for person in people] == answer("new", people=2).people
    proof = inclusion_proof(folder, receipt.record)
    assert proof["hash"] == receipt.hash
    assert is_included(proof)
    assert not is_included(proof | {"record": 13})


def test_no_personal_value_is_in_the_chain(tmp_path: Path) -> None:
    secret = "Zanzibar"
    person = {"input.city": secret, "label": secret, "rules": {"own": secret}, "output": [secret]}
    with Record(tmp_path, FACTS) as record:
        record.append(Answer("a", "plans", [person]))
        assert secret in (tmp_path / PERSONAL).read_text()
        assert secret not in (tmp_path / CHAIN).read_text()
        record.erase("a")
    for path in tmp_path.iterdir():
        assert secret not in path.read_text(), path


def test_what_is_no_json_fails_alone(tmp_path: Path) -> None:
    with Record(tmp_path, FACTS) as record:
        for value in (float("nan"), object()):
            with pytest.raises((TypeError, ValueError)):
                record.append(Answer("a", "plans", [{"input.age": value}]))
        assert record.append(answer("b")).record == 0
    assert check(tmp_path).answers == 1


def test_one_value_is_shown_without_the_others(made: Path) -> None:
    """An auditor gets one salt and one value, and finds the commitment in the chain."""
    line, people = entry(made, 0)
    name = "input.column 2"
    salt = salt_of(people[0]["secret"], name)
    shown = people[0]["values"][name]
    assert commitment(salt, name, shown) == line["people"][0][name]
    other = "input.column 1"
    assert commitment(salt, other, people[0]["values"][other]) != line["people"][0][other]


def test_many_threads(tmp_path: Path) -> None:
    """Each receipt is right, and every answer is there once."""
    receipts = {}
    with Record(tmp_path, FACTS) as record:

        def append(thread: int) -> None:
            for i in range(10):
                receipts[f"{thread}-{i}"] = record.append(answer(f"{thread}-{i}")).record

        threads = [threading.Thread(target=append, args=(k,)) for k in range(16)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert record.size == 160
    assert sorted(receipts.values()) == list(range(160))
    assert lost(tmp_path, receipts) == []
    assert check(tmp_path).answers == 160


def test_waiting_threads_share_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one sync is held up, all others arrive; one more pair of syncs is enough for them."""
    syncs, go, real = [], threading.Event(), os.fsync
    with Record(tmp_path, FACTS) as record:

        def slow(handle: int) -> None:
            syncs.append(handle)
            assert go.wait(20)
            real(handle)

        monkeypatch.setattr(writer.os, "fsync", slow)
        threads = [threading.Thread(target=record.append, args=(answer(str(i)),)) for i in range(9)]
        threads[0].start()
        while not syncs:
            pass
        for each in threads[1:]:
            each.start()
        while record._queue.qsize() < 8:
            pass
        go.set()
        for each in threads:
            each.join()
        assert len(syncs) == 4
        assert record.size == 9


# ---- damage --------------------------------------------------------------------------------------


def test_every_flipped_byte_is_found_at_its_place(folder: Path) -> None:
    assert list(flips(folder, 400, np.random.default_rng(0))) == []
    check(folder)


def test_the_end_of_the_last_line_is_no_exception(folder: Path) -> None:
    """Changed, it is damage. Lost alone, nothing of the answer is lost."""
    for name in (CHAIN, PERSONAL):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[:-1] + b"\x00")
        with pytest.raises(DamageError, match="record 13 is damaged"):
            check(folder)
        (folder / name).write_bytes(whole[:-1])
        Record(folder, FACTS).close()
        assert (folder / name).read_bytes() == whole


def test_a_line_that_was_sealed_again_does_not_fit_the_next(folder: Path) -> None:
    reseal(folder / CHAIN, 4, status=500)
    with pytest.raises(DamageError, match=r"record 4 is damaged .*line 5, .*record 5 was not"):
        check(folder)


def test_values_that_were_sealed_again_do_not_fit_their_commitments(folder: Path) -> None:
    held = json.loads(lines(folder / PERSONAL)[2])["people"]
    held[0]["values"]["input.column 1"]["cells"] = [7]
    reseal(folder / PERSONAL, 2, people=held)
    with pytest.raises(DamageError, match=r"record 2 is damaged .*person 0 are not those"):
        check(folder)
    with pytest.raises(DamageError, match="person 0 are not those"):
        entry(folder, 2)


def test_values_do_not_vanish_without_a_record(folder: Path) -> None:
    reseal(folder / PERSONAL, 2, people=[{"erased": 5}])
    with pytest.raises(DamageError, match=r"record 2 is damaged .*no record says"):
        check(folder)


@pytest.mark.parametrize("name", [CHAIN, PERSONAL])
def test_a_line_in_the_middle_is_missed(folder: Path, name: str) -> None:
    whole = lines(folder / name)
    (folder / name).write_bytes(b"".join(whole[:3] + whole[4:]))
    with pytest.raises(DamageError, match=r"record 3 is damaged .*line 4"):
        check(folder)


def test_missing_lines_at_the_end_show_only_by_a_known_root(folder: Path) -> None:
    """What a chain alone cannot show, and what helps."""
    state = check(folder)
    known = {state.size: state.root()}
    assert check(folder, known=known).size == 14
    for name in (CHAIN, PERSONAL):
        (folder / name).write_bytes(b"".join(lines(folder / name)[:-1]))
    assert check(folder).size == 13  # not noticed
    with pytest.raises(DamageError, match="lines at the end are missing"):
        check(folder, known=known)


def test_a_record_that_was_written_anew_has_another_root(folder: Path, tmp_path: Path) -> None:
    state = check(folder)
    small_record(tmp_path / "other")
    assert check(tmp_path / "other").size == state.size
    with pytest.raises(DamageError, match="a line up to there was replaced"):
        check(tmp_path / "other", known={state.size: state.root()})


def test_a_damaged_record_is_not_opened(folder: Path) -> None:
    data = (folder / CHAIN).read_bytes()
    (folder / CHAIN).write_bytes(data.replace(b'"a2"', b'"a3"'))
    with pytest.raises(UserError, match=r"record 2 is damaged .*chain.jsonl, line 3, byte"):
        Record(folder, FACTS)
    (folder / CHAIN).write_bytes(data)
    Record(folder, FACTS).close()  # the lock was let go


def test_a_chain_that_is_gone(folder: Path) -> None:
    (folder / CHAIN).unlink()
    with pytest.raises(UserError, match=r"chain\.jsonl is gone"):
        Record(folder, FACTS)
    with pytest.raises(UserError, match="holds no record"):
        check(folder)


# ---- days ----------------------------------------------------------------------------------------


def test_a_root_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days = ["2026-01-01", "2026-01-01", "2026-01-03", "2026-01-02", "2026-01-05"]
    roots, sizes = [], []
    for i, day in enumerate(days):
        monkeypatch.setattr(writer, "_now", lambda day=day: f"{day}T12:00:00.000000Z")
        with Record(tmp_path, FACTS) as record:
            record.append(answer(str(i)))
        state = check(tmp_path)
        roots.append(state.root())
        sizes.append(state.size)
    # a clock that went back by a day does not reorder the record
    assert set(state.days) == {"2026-01-01", "2026-01-03"}
    assert sizes == [1, 2, 4, 5, 7]
    assert root_of_day(state, "2026-01-01") == root_of_day(state, "2026-01-02") == (2, roots[1])
    assert root_of_day(state, "2026-01-03") == root_of_day(state, "2026-01-04") == (5, roots[3])
    assert root_of_day(state, "2026-01-05") == root_of_day(state, "2026-02-01") == (7, roots[4])
    with pytest.raises(UserError, match="begins on 2026-01-01"):
        root_of_day(state, "2025-12-31")
    with pytest.raises(UserError, match="'yesterday' is no day"):
        root_of_day(state, "yesterday")
    proof = consistency_proof(tmp_path, 5)
    assert (proof["earlier_root"], proof["root"]) == (roots[3], roots[4])
    assert is_extension(proof)
    assert not is_extension(proof | {"earlier_root": roots[2]})


def test_a_root_that_the_record_states_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Record(tmp_path, FACTS) as record:
        for day in ("2026-01-01", "2026-01-02"):
            monkeypatch.setattr(writer, "_now", lambda day=day: f"{day}T12:00:00.000000Z")
            record.append(answer(day))
    whole = lines(tmp_path / CHAIN)
    (tmp_path / CHAIN).write_bytes(b"".join(whole[:2]))  # so that no later line gives it away
    (tmp_path / PERSONAL).write_bytes(lines(tmp_path / PERSONAL)[0])
    check(tmp_path)
    reseal(tmp_path / CHAIN, 1, root="00" * 32)
    with pytest.raises(DamageError, match=r"record 1 .*the root of 2026-01-01 is another one"):
        check(tmp_path)


# ---- erasure -------------------------------------------------------------------------------------


def test_an_erasure_leaves_the_chain_whole(folder: Path) -> None:
    before = (folder / CHAIN).read_bytes()
    root = check(folder)
    kept = [entry(folder, n)[1] for n in (0, 2)]
    with Record(folder, FACTS) as record:
        assert record.erase("a1") == 2
        assert record.erase("a1") == 0
        assert record.append(answer("after")).record == 15
    after = (folder / CHAIN).read_bytes()
    assert after.startswith(before)
    state = check(folder, known={root.size: root.root()})
    assert (len(state.erased), len(state.pending), state.answers) == (4, 0, 13)
    assert entry(folder, 1)[1] == [{"erased": 14}, {"erased": 14}]
    assert [entry(folder, n)[1] for n in (0, 2)] == kept


def test_values_of_a_small_domain_cannot_be_tried_out(tmp_path: Path) -> None:
    """What is left after an erasure fits no age better than another, whatever salt is left."""
    people = [{"input.age": 41}, {"input.age": 41}]
    with Record(tmp_path, FACTS) as record:
        record.append(Answer("a", "plans", people))
        line, held = entry(tmp_path, 0)
        record.erase("a", 0)
    promised = [person["input.age"] for person in line["people"]]
    assert promised[0] != promised[1]  # the same age looks different
    left = [held[1]["secret"], salt_of(held[1]["secret"], "input.age"), "00" * 32]
    tries = {commitment(salt, "input.age", age) for salt in left for age in range(150)}
    assert promised[0] not in tries
    assert promised[1] in tries  # this person is still there, and so the test can fail
    assert held[0]["secret"] not in (tmp_path / PERSONAL).read_text()


def test_whom_to_erase(folder: Path) -> None:
    with Record(folder, FACTS) as record:
        with pytest.raises(UserError, match="no answer to a request 'a99'"):
            record.erase("a99")
        with pytest.raises(UserError, match="the people 0 to 1; there is no 2"):
            record.erase("a1", 2)
        assert record.erase("a1", 0) == 1
        assert record.erase("a1") == 1  # the other one
    assert not check(folder).pending


def test_erasing_while_others_append(folder: Path) -> None:
    """Several threads erase the same people while others append, and an auditor reads."""
    receipts: dict[str, int] = {}
    with Record(folder, FACTS) as record:

        def append(thread: int) -> None:
            for i in range(15):
                receipts[f"{thread}-{i}"] = record.append(answer(f"{thread}-{i}")).record

        erased: list[int] = []
        jobs = [lambda k=k: append(k) for k in range(4)]
        jobs += [lambda i=i: erased.append(record.erase(f"a{i}")) for i in (0, 1, 2, 5, 0, 1, 2, 5)]
        threads = [threading.Thread(target=job) for job in jobs]
        for each in threads:
            each.start()
        while any(each.is_alive() for each in threads):
            check(folder)
        assert sorted(erased) == [0, 0, 0, 0, 1, 1, 2, 2]
    assert lost(folder, receipts) == []
    state = check(folder)
    assert (len(state.erased), len(state.pending), state.answers) == (8, 0, 72)


def test_an_auditor_who_reads_during_an_erasure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The values vanish from the file that is being read; that is no damage."""
    small_record(tmp_path, answers=60)
    real, erased = reading.read_lines, []

    def interrupted(file: IO[bytes]) -> Iterator[Line]:
        for line in real(file):
            if str(file.name).endswith(PERSONAL) and not erased:
                erased.append(record.erase("a55"))
            yield line

    with Record(tmp_path, FACTS) as record:
        monkeypatch.setattr(reading, "read_lines", interrupted)
        state = check(tmp_path)
    assert erased == [2]
    assert (state.size, len(state.erased), state.pending) == (63, 4, {})


@pytest.mark.parametrize("cut", ["before the second file", "after a part of it"])
def test_an_erasure_that_was_cut_short_is_completed(folder: Path, cut: str) -> None:
    """The chain says that it happened; the next start does it."""
    before = (folder / PERSONAL).read_bytes()
    with Record(folder, FACTS) as record:
        record.erase("a1")
    done = (folder / PERSONAL).read_bytes()
    (folder / PERSONAL).write_bytes(before)
    if cut != "before the second file":
        (folder / "personal.jsonl.new").write_bytes(before[:100])
    assert len(check(folder).pending) == 2
    Record(folder, FACTS).close()
    assert (folder / PERSONAL).read_bytes() == done
    assert not (folder / "personal.jsonl.new").exists()


# ---- crashes, full disks, other writers ----------------------------------------------------------


def test_an_answer_cut_short_needs_no_repair(folder: Path, tmp_path: Path) -> None:
    """After each byte at which a write may end: the record is whole, and says what was cut."""
    before = {name: (folder / name).read_bytes() for name in (CHAIN, PERSONAL)}
    with Record(folder, FACTS) as record:
        record.append(answer("last"))
    after = {name: (folder / name).read_bytes() for name in (CHAIN, PERSONAL)}
    torn = tmp_path / "torn"
    torn.mkdir()
    own, chain = (len(after[name]) - len(before[name]) for name in (PERSONAL, CHAIN))
    edges = {1, own - 1, own, own + 1, own + chain - 1}
    for written in sorted({*range(0, own + chain, 29), *edges}):
        left = {
            PERSONAL: after[PERSONAL][: len(before[PERSONAL]) + min(written, own)],
            CHAIN: after[CHAIN][: len(before[CHAIN]) + max(written - own, 0)],
        }
        for name, data in left.items():
            (torn / name).write_bytes(data)
        state = check(torn)
        assert state.unfinished == written or (state.size == 15 and written == own + chain - 1)
        with Record(torn, FACTS) as record:
            assert record.append(answer("next")).record == state.size
        again = check(torn)
        assert (again.size, again.unfinished) == (state.size + 1, 0)


def test_kill_9_under_load(tmp_path: Path) -> None:
    """Ten times: each acknowledged answer is there, it verifies, the next start needs no repair."""
    rng = np.random.default_rng(0)
    told: dict[str, int] = {}
    for run in range(10):
        said = killed(tmp_path, run, float(rng.uniform(0, 0.25)))
        told |= said
        check(tmp_path)
        assert lost(tmp_path, told) == []
    assert len(told) > 100
    assert check(tmp_path).answers >= len(told)


LIMITED = """
import json, resource, sys
from genrecourse.advice.record import Record, RecordError
from genrecourse.advice.record.check import CHAIN, PERSONAL, check
from tests.support.records import answer
from pathlib import Path

folder = Path(sys.argv[1])
with Record(folder, {}) as record:
    kept = [record.append(answer("first")).record]
    size = (folder / PERSONAL).stat().st_size
    for room in range(1, 4000, 130):  # bytes until the disk is full, in either file
        most = max((folder / name).stat().st_size for name in (CHAIN, PERSONAL)) + room
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        try:
            for i in range(20):
                kept.append(record.append(answer(f"{room}-{i}")).record)
            raise SystemExit("the disk was never full")
        except RecordError as error:
            assert "nothing is recorded" in str(error), error
        assert check(folder).size == len(kept)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    kept.append(record.append(answer("last")).record)  # there is room again
assert kept == list(range(len(kept))), kept
state = check(folder)
print(state.size, state.unfinished, len(kept))
"""


def test_a_full_disk_loses_nothing_and_promises_nothing(tmp_path: Path) -> None:
    """A real limit of the system: writes end in the middle, and nothing of them stays."""
    root = Path(__file__).parents[3]
    paths = os.pathsep.join([str(root / "src"), str(root)])
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    size, unfinished, kept = map(int, done.stdout.split())
    assert (unfinished, size) == (0, kept)


def test_after_a_failed_sync_nothing_is_promised(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may forget what it could not write, so the record waits for a new start."""
    real = os.fsync

    def fails(_: int) -> None:
        raise OSError(5, "Input/output error")

    with Record(folder, FACTS) as record:
        monkeypatch.setattr(writer.os, "fsync", fails)
        with pytest.raises(RecordError, match="Input/output error"):
            record.append(answer("a"))
        monkeypatch.setattr(writer.os, "fsync", real)
        with pytest.raises(RecordError, match=r"a sync failed .*start again"):
            record.append(answer("b"))
        with pytest.raises(RecordError, match="a sync failed"):
            record.erase("a1")
    with Record(folder, FACTS) as record:
        assert record.append(answer("c")).record == 14
    check(folder)


def test_a_process_that_was_forked_does_not_write(folder: Path) -> None:
    with Record(folder, FACTS) as record:
        child = os.fork()
        if child == 0:
            try:
                record.append(answer("a"))
                os._exit(1)
            except RecordError:
                record.close()
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert record.append(answer("b")).record == 14


def test_closing_writes_what_waits(folder: Path) -> None:
    record, receipts, refused = Record(folder, FACTS), {}, []

    def append(name: str) -> None:
        try:
            receipts[name] = record.append(answer(name)).record
        except RecordError:
            refused.append(name)

    threads = [threading.Thread(target=append, args=(f"t{i}",)) for i in range(24)]
    for each in threads:
        each.start()
    record.close()
    for each in threads:
        each.join()
    assert len(receipts) + len(refused) == 24
    assert lost(folder, receipts) == []
    assert check(folder).answers == 12 + len(receipts)


def test_one_writer(folder: Path) -> None:
    with Record(folder, FACTS), pytest.raises(UserError, match=rf"in use .*process {os.getpid()}"):
        Record(folder, FACTS)
    code = "import sys; from genrecourse.advice.record import Record; Record(sys.argv[1], {})"
    with Record(folder, FACTS) as record:
        done = subprocess.run(
            [sys.executable, "-c", code, folder], capture_output=True, text=True, check=False
        )
        assert f"in use by another writer (process {os.getpid()})" in done.stderr
        assert record.append(answer("a")).record == 14  # it was not disturbed


def test_a_closed_record(folder: Path) -> None:
    record = Record(folder, FACTS)
    record.close()
    record.close()
    with pytest.raises(RecordError, match="it is closed"):
        record.append(answer("a"))
    Record(folder, FACTS).close()


def test_others_cannot_read_the_files(made: Path) -> None:
    assert {path.stat().st_mode & 0o077 for path in made.iterdir()} == {0}


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot make the folder"):
        Record(tmp_path / "file" / "record", FACTS)
