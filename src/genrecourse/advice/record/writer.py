"""Record: appends answers to a folder that one process owns, and syncs them before it returns.

An answer is written to the second file (secrets and values), synced, then to the chain
(commitments), and synced. A crash in between leaves values without a line in the chain; nobody was
told that they are kept, and the next start cuts them off.

One thread of the record writes for all: answers that arrive while it syncs are written together
next, with one sync of each file for all of them.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from genrecourse.advice.record.check import CHAIN, PERSONAL, check
from genrecourse.advice.record.commitments import commitments, new_secret
from genrecourse.advice.record.erasing import people_of, without
from genrecourse.advice.record.lines import canonical, sealed
from genrecourse.advice.record.merkle import Tree, leaf_hash
from genrecourse.errors import UserError
from genrecourse.table.text_files import make_folder, path_of

if TYPE_CHECKING:
    from genrecourse.advice.record.answers import Answer

LOCK, NEW = "lock", "personal.jsonl.new"  # NEW: the second file while an erasure rewrites it


class RecordError(OSError):
    """Nothing was recorded, so the answer must not be sent. The service answers 503.

    >>> issubclass(RecordError, UserError)  # nobody who asked made a mistake
    False
    """


@dataclass(frozen=True)
class Receipt:
    """What a recorded answer can be found by: its place in the record and the hash of its line.

    Whoever keeps the receipt can show later that the record still holds this answer. It holds no
    personal value.

    >>> Receipt(0, "a1", "2026-11-19T18:00:00.000000Z", "00" * 32).record
    0
    """

    record: int
    request: str
    time: str
    hash: str  # the leaf hash of RFC 6962, in hexadecimal


@dataclass
class _Waiting:
    """A line that waits to be written, and those who wait for it."""

    content: dict[str, Any]  # without n, time and previous
    people: list[dict[str, Any]] | None  # for the second file; None: nothing of this line
    receipt: Future[Receipt] = field(default_factory=Future)


class Record:
    """The record in a folder. One process owns it; all its threads may append.

    made_by: what every answer is made by, see `answers.made_by`. It is written with each answer.

    Opening reads the whole chain once. An answer whose writing was cut short is removed. A changed
    byte is a UserError that names the first damaged record.

    >>> from genrecourse.advice.record.answers import Answer
    >>> with Record("record", {"code": "1"}) as record:
    ...     receipt = record.append(Answer("a1", "plans", [{"input.age": 41}]))
    >>> receipt.record, check("record").people
    (0, 1)
    """

    def __init__(self, folder: str | os.PathLike[str], made_by: Mapping[str, Any]):
        self.folder = path_of(folder, "the record")
        self.made_by = dict(made_by)
        make_folder(self.folder)
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()  # None: it was closed
        self._arriving = threading.Lock()  # so that nothing joins the queue behind the None
        self._is_open = True
        self._process = os.getpid()
        self._writing = threading.Lock()  # held while the files change
        self._erasing = threading.Lock()  # held by the thread that erases
        self._refusal = ""  # why nothing can be written any more
        self._chain = self._personal = -1
        self._lock = _own(self.folder / LOCK)
        try:
            self._open()
        except BaseException:
            self._let_go()
            raise
        # a daemon: a program that forgets to close ends as if it were killed, which does no harm
        self._writer = threading.Thread(target=self._write_batches, name="record", daemon=True)
        self._writer.start()

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- what a service calls -----------------------------------------------------------------

    def append(self, answer: Answer) -> Receipt:
        """Record an answer and return its receipt, once both files are on disk.

        Raises RecordError if that fails: the answer must not be sent.
        """
        secrets = [new_secret() for _ in answer.people]
        own = [
            {"secret": s, "values": dict(v)} for s, v in zip(secrets, answer.people, strict=True)
        ]
        promised = [commitments(s, v) for s, v in zip(secrets, answer.people, strict=True)]
        content = {
            "kind": "answer",
            "request": answer.request,
            "verb": answer.verb,
            "status": answer.status,
            "asked": dict(answer.asked),
            "made_by": self.made_by,
            "people": promised,
        }
        canonical(content)  # a value that is no JSON fails here, not among the answers of others
        return self._write(_Waiting(content, own))

    def erase(self, request: str, person: int | None = None) -> int:
        """Erase the values of the people of a request; return how many people were erased.

        person: only this one, counted from 0. The chain says from now on that they were erased, and
        by which record; what it committed to can no longer be opened. 0: all were erased before.
        Raises UserError if the record has no such request or person.
        """
        with self._erasing, _failing():
            if not self._is_open:
                raise OSError("the record is closed")
            who, before = people_of(self.folder / CHAIN, request, person)
            fresh = [each for each in who if each not in before]
            late = [each for each in who if each in self._state.pending]
            if fresh:
                content = {"kind": "erasure", "request": request, "erased": [[*p] for p in fresh]}
                by = self._write(_Waiting(content, None)).record
                self._state.pending.update(dict.fromkeys(fresh, by))
            if fresh or late:
                with self._writing:
                    self._remove_values()
            return len(fresh) + len(late)

    def close(self) -> None:
        """Let go of the folder, once what waits is written. Closing twice does no harm."""
        with self._arriving:
            was_open, self._is_open = self._is_open, False
        if was_open and os.getpid() == self._process:
            self._queue.put(None)
            self._writer.join()
            with self._erasing:  # an erasure that has begun is finished
                self._let_go()

    def _let_go(self) -> None:
        for handle in (self._chain, self._personal, self._lock):
            if handle >= 0:
                os.close(handle)

    @property
    def size(self) -> int:
        """How many lines the chain has."""
        return self._state.size

    # ---- opening ------------------------------------------------------------------------------

    def _open(self) -> None:
        try:
            (self.folder / NEW).unlink(missing_ok=True)  # of an erasure that was cut short
            if not (self.folder / CHAIN).exists() and (self.folder / PERSONAL).exists():
                self._check_empty()
            # the chain comes last: where there is a chain, there is a second file
            self._personal = _opened(self.folder / PERSONAL)
            self._chain = _opened(self.folder / CHAIN)
            _sync_folder(self.folder)
            self._state = check(self.folder, deep=False)
            self._end_lines()
            if self._state.pending:  # an erasure was cut short
                self._remove_values()
        except OSError as error:
            raise UserError(
                f"cannot write the record {self.folder}: {error.strerror or error}"
            ) from None

    def _check_empty(self) -> None:
        if (self.folder / PERSONAL).stat().st_size:
            raise UserError(
                f"{self.folder / PERSONAL} has values, but {self.folder / CHAIN} is gone; restore "
                "it from a copy, or name another folder"
            )

    def _end_lines(self) -> None:
        """Cut off what was never acknowledged, and end the last lines."""
        state = self._state
        for handle, size, ends in (
            (self._personal, state.personal_bytes, state.personal_ends),
            (self._chain, state.chain_bytes, state.chain_ends),
        ):
            os.ftruncate(handle, size)
            if not ends:
                _write_all(handle, b"\n")
            os.fsync(handle)
        state.personal_bytes += not state.personal_ends
        state.chain_bytes += not state.chain_ends
        state.personal_ends = state.chain_ends = True

    # ---- writing ------------------------------------------------------------------------------

    def _write(self, mine: _Waiting) -> Receipt:
        """Return once the line is on disk."""
        with self._arriving:
            if not self._is_open:
                raise RecordError(f"nothing is recorded in {self.folder}: it is closed")
            if os.getpid() != self._process:
                raise RecordError(f"nothing is recorded in {self.folder}: another process owns it")
            self._queue.put(mine)
        try:
            return mine.receipt.result()
        except OSError as error:  # raised in the other thread, and perhaps for many at once
            raise RecordError(str(error)) from error

    def _write_batches(self) -> None:
        """Write what waits, all of it at once, until the record is closed."""
        is_last = False
        while not is_last:
            batch, is_last = self._arrived()
            try:
                with self._writing:
                    if self._refusal:
                        why = f"nothing is recorded in {self.folder}: {self._refusal}"
                        raise RecordError(why)
                    receipts = self._store(batch)
            except BaseException as error:  # whatever it is, those who wait must hear of it
                for each in batch:
                    each.receipt.set_exception(error)
            else:
                for each, receipt in zip(batch, receipts, strict=True):
                    each.receipt.set_result(receipt)

    def _arrived(self) -> tuple[list[_Waiting], bool]:
        """Wait for the next line; return it with all others that wait, and whether it is over."""
        batch: list[_Waiting] = []
        while not batch or not self._queue.empty():
            each = self._queue.get()
            if each is None:
                return batch, True
            batch.append(each)
        return batch, False

    def _store(self, batch: Sequence[_Waiting]) -> list[Receipt]:
        """Write lines to both files and sync them, or leave both files as they were."""
        state = self._state
        ends = _Ends(state.tree.copy(), state.previous, state.time)
        chain, personal, receipts = ends.lines(batch)
        try:
            if personal:
                _write_all(self._personal, personal)
                self._sync(self._personal)
            _write_all(self._chain, chain)
            self._sync(self._chain)
        except OSError as error:
            self._undo()
            why = f"nothing is recorded in {self.folder}: {error.strerror or error}"
            raise RecordError(why) from error
        state.tree, state.previous, state.time = ends.tree, ends.previous, ends.time
        state.personal_bytes += len(personal)
        state.chain_bytes += len(chain)
        return receipts

    def _sync(self, handle: int) -> None:
        try:
            os.fsync(handle)
        except OSError as error:
            # the system may forget what it could not write, so a second try would prove nothing
            self._refusal = f"a sync failed ({error.strerror}); start again to read what is there"
            raise

    def _undo(self) -> None:
        """Remove what a failed write left behind. A full disk allows that."""
        try:
            for handle, size in (
                (self._chain, self._state.chain_bytes),
                (self._personal, self._state.personal_bytes),
            ):
                os.ftruncate(handle, size)
                self._sync(handle)
        except OSError as error:
            self._refusal = (
                self._refusal or f"a failed write cannot be undone ({error.strerror}); start again"
            )

    # ---- erasing ------------------------------------------------------------------------------

    def _remove_values(self) -> None:
        """Replace the second file by one without the values whose erasure the chain holds."""
        if self._refusal:
            raise OSError(self._refusal)
        path, new = self.folder / PERSONAL, self.folder / NEW
        with contextlib.ExitStack() as opened:
            opened.callback(_remove, new)  # after the replacement there is none
            places = without(path, new, self._state.pending, self._state.personal_bytes)
            old = _held(opened, path, os.O_WRONLY | os.O_CLOEXEC)
            handle = _opened(new)
            try:
                os.replace(new, path)
            except OSError:
                os.close(handle)
                raise
            self._swap(handle)
            _wipe(old, places)
        _sync_folder(self.folder)  # if this fails, the erasure is repeated
        self._state.pending = {}

    def _swap(self, handle: int) -> None:
        """Append to the new second file from now on."""
        os.close(self._personal)
        self._personal = handle
        self._state.personal_bytes = os.fstat(handle).st_size


@contextlib.contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RecordError(
            f"values may not be erased yet: {error.strerror or error}; erase them again"
        ) from error


@dataclass
class _Ends:
    """Where the chain ends while lines are added to it that are not on disk yet."""

    tree: Tree
    previous: str
    time: str

    def lines(self, batch: Sequence[_Waiting]) -> tuple[bytes, bytes, list[Receipt]]:
        """Return the bytes to add to the chain and to the second file, and the receipts."""
        chain: list[bytes] = []
        personal: list[bytes] = []
        receipts: list[Receipt] = []
        for each in batch:
            now = max(_now(), self.time)  # a clock that is set back does not reorder the record
            day = self.time[:10]
            if day and now[:10] > day:
                root = {"day": day, "size": self.tree.size, "root": self.tree.root().hex()}
                chain.append(self._next({"kind": "day", **root}, now))
            n = self.tree.size
            chain.append(self._next(each.content, now))
            if each.people is not None:
                personal.append(sealed({"n": n, "people": each.people}))
            receipts.append(Receipt(n, each.content["request"], now, self.previous))
        return _ended(chain), _ended(personal), receipts

    def _next(self, content: dict[str, Any], now: str) -> bytes:
        raw = sealed({**content, "n": self.tree.size, "time": now, "previous": self.previous})
        leaf = leaf_hash(raw)
        self.tree.add(leaf)
        self.previous, self.time = leaf.hex(), now
        return raw


def _ended(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


# ---- files --------------------------------------------------------------------------------------


def _own(path: Path) -> int:
    """Return the handle of a lock that this process holds until it ends, however it ends."""
    try:
        import fcntl
    except ImportError:
        raise UserError("a record needs the file locks of Linux or macOS") from None
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UserError(f"cannot write the record {path.parent}: {error.strerror}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.read(handle, 20).decode("ascii", "replace").strip()
        os.close(handle)
        raise UserError(
            f"the record {path.parent} is in use by another writer (process {owner or 'unknown'}); "
            "stop it first, or name another folder"
        ) from None
    os.ftruncate(handle, 0)
    os.write(handle, str(os.getpid()).encode())
    return handle


def _opened(path: Path) -> int:
    """Return a handle that appends; only the owner of a new file may read it."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _held(opened: contextlib.ExitStack, path: Path, flags: int) -> int:
    """Return a handle that is closed with the block."""
    handle = os.open(path, flags)
    opened.callback(os.close, handle)
    return handle


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _sync_folder(folder: Path) -> None:
    """Flush a folder, so that new names in it survive a crash."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _wipe(handle: int, places: Sequence[tuple[int, int]]) -> None:
    """Overwrite the erased lines of the old file, which nobody can open any more by its name."""
    with contextlib.suppress(OSError):  # the new file is without them in any case
        for byte, length in places:
            os.pwrite(handle, b"0" * length, byte)
        os.fsync(handle)
