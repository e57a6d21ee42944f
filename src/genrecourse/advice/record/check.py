"""Reads a record from its beginning, compares everything that can be, and names the first damage.

Line n of the chain (from 0) is leaf n of the Merkle tree. A line that another follows is linked
twice: `previous` of the next line is its leaf hash, and every line of kind "day" states the root of
all lines before it. Each answer of the chain has one line in the second file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from genrecourse.advice.record.commitments import opens
from genrecourse.advice.record.lines import Line, read_lines
from genrecourse.advice.record.merkle import Tree, leaf_hash
from genrecourse.errors import UserError, counted
from genrecourse.table.text_files import path_of

CHAIN, PERSONAL = "chain.jsonl", "personal.jsonl"
FIRST = "0" * 64  # `previous` of the first line
TRIES = 5  # an erasure replaces the second file; whoever reads it meanwhile begins again
Person = tuple[int, int]  # number of the record, place among its people


class DamageError(UserError):
    """A record was changed. `record` is the first that is wrong; None: it is not known which.

    >>> str(DamageError("it is too short", Path("record/chain.jsonl"), 7))
    'record 7 is damaged (record/chain.jsonl): it is too short; restore it from a copy'
    """

    def __init__(self, what: str, path: Path, record: int | None, line: Line | None = None):
        place = f"{path}, line {line.number:,}, byte {line.byte:,}" if line else str(path)
        named = "the record" if record is None else f"record {record:,}"
        super().__init__(f"{named} is damaged ({place}): {what}; restore it from a copy")
        self.path, self.record = path, record
        self.line = None if line is None else line.number
        self.byte = None if line is None else line.byte


@dataclass
class State:
    """What a whole record holds, up to its last line.

    >>> State().size, State().root()[:8]
    (0, 'e3b0c442')
    """

    tree: Tree = field(default_factory=Tree)
    previous: str = FIRST  # leaf hash of the last line
    time: str = ""  # of the last line
    answers: int = 0
    people: int = 0
    erased: dict[Person, int] = field(default_factory=dict)  # by the record of the erasure
    pending: dict[Person, int] = field(default_factory=dict)  # the values are still there
    days: dict[str, tuple[int, str]] = field(default_factory=dict)  # size and root at a day's end
    chain_bytes: int = 0  # of whole lines
    personal_bytes: int = 0
    chain_ends: bool = True  # False: only the end of the last line is missing
    personal_ends: bool = True
    unfinished: int = 0  # bytes of answers that nobody was told are kept

    @property
    def size(self) -> int:
        return self.tree.size

    def root(self) -> str:
        return self.tree.root().hex()


def check(
    folder: str | os.PathLike[str],
    *,
    deep: bool = True,
    known: Mapping[int, str] | None = None,
    leaves: list[bytes] | None = None,
) -> State:
    """Return what a record holds. Raises `DamageError`, a UserError, if a byte of it was changed.

    deep: compare each personal value with its commitment as well.
    known: roots that were published, by how many lines they cover.
    leaves: a list that the leaf hashes are added to.

    >>> from genrecourse.advice.record import Answer, Record
    >>> with Record("record", {}) as record:
    ...     _ = record.append(Answer("a1", "plans", [{"input.age": 41}]))
    >>> check("record").answers
    1
    >>> chain = Path("record/chain.jsonl")
    >>> _ = chain.write_text(chain.read_text().replace("plans", "plan2"))
    >>> check("record")
    Traceback (most recent call last):
    genrecourse.advice.record.check.DamageError: record 0 is damaged (record/chain.jsonl, ...
    """
    folder = path_of(folder, "the record")
    if not (folder / CHAIN).is_file():
        raise UserError(f"{folder} holds no record (there is no {folder / CHAIN}); name another")
    for _ in range(TRIES):
        found: list[bytes] = []
        try:
            with open(folder / CHAIN, "rb") as chain, open(folder / PERSONAL, "rb") as personal:
                whole = os.fstat(personal.fileno())
                reading = _Reading(folder, deep, known or {}, found)
                try:
                    reading.all_of(chain, personal)
                except DamageError:
                    if os.path.samestat(whole, os.stat(folder / PERSONAL)):
                        raise
                    continue
                if os.path.samestat(whole, os.stat(folder / PERSONAL)):
                    if leaves is not None:
                        leaves += found
                    return reading.state
        except OSError as error:
            raise UserError(f"cannot read {error.filename}: {error.strerror}") from None
    raise UserError(f"values are being erased from {folder} all the time; try again later")


class _Reading:
    """One pass over both files, side by side."""

    def __init__(self, folder: Path, deep: bool, known: Mapping[int, str], leaves: list[bytes]):
        self.chain_path, self.personal_path = folder / CHAIN, folder / PERSONAL
        self.deep, self.known, self.leaves = deep, known, leaves
        self.state = State()
        self.day_lines: set[str] = set()
        self.last: Line | None = None
        self.gone: dict[Person, tuple[int, Line]] = {}  # what the second file says was erased

    def all_of(self, chain: IO[bytes], personal: IO[bytes]) -> None:
        people = read_lines(personal)
        self._compare_known()
        for line in read_lines(chain):
            if line.is_unfinished:
                break
            content = self._sound(line)
            try:
                self._follow(line, content, people)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                if isinstance(error, DamageError):
                    raise
                raise self._damaged("it is no line of this kind of record", line) from None
            self._add(line, content)
        self._settle_erasures()
        missing = [size for size in self.known if size > self.state.size]
        if missing:
            raise DamageError(
                f"it has {counted(self.state.size, 'line')}, but a root of {min(missing):,} is "
                "known, so lines at the end are missing",
                self.chain_path,
                None,
            )
        ends = (os.fstat(chain.fileno()).st_size, os.fstat(personal.fileno()).st_size)
        state = self.state
        state.unfinished = max(ends[0] - state.chain_bytes, 0)
        state.unfinished += max(ends[1] - state.personal_bytes, 0)

    # ---- one line of the chain ----------------------------------------------------------------

    def _sound(self, line: Line) -> dict[str, Any]:
        """Return the content of a line whose own checksum and place are right."""
        if line.content is None:
            what = "its bytes do not fit its checksum" if line.is_ended else "its end was changed"
            raise self._damaged(what, line)
        n = self.state.size
        if line.content.get("n") != n:
            seen = line.content.get("n")
            raise self._damaged(f"this place holds number {seen!r}; lines are missing", line)
        if line.content.get("previous") != self.state.previous:
            if self.last is None:
                raise self._damaged("it is not the first line of a record", line)
            # its own checksum is right, so somebody wrote a new one: here or one line before
            raise DamageError(
                f"record {n:,} was not chained to it, so one of the two was replaced",
                self.chain_path,
                n - 1,
                self.last,
            )
        return line.content

    def _follow(self, line: Line, content: dict[str, Any], people: Iterator[Line]) -> None:
        """Check what a line says about those before it and about the second file."""
        state, kind, time = self.state, content["kind"], content["time"]
        if time < state.time:
            raise self._damaged(f"its time {time} is before that of the record above", line)
        if kind == "day":
            if (content["size"], content["root"]) != (state.size, state.root()):
                raise self._damaged(f"the root of {content['day']} is another one", line)
        elif kind == "erasure":
            for n, i in content["erased"]:
                state.erased.setdefault((n, i), content["n"])
        elif kind == "answer":
            self._compare_people(line, content, people)
        else:
            raise self._damaged(f"its kind is {kind!r}", line)

    def _add(self, line: Line, content: dict[str, Any]) -> None:
        state = self.state
        leaf = leaf_hash(line.raw)
        state.tree.add(leaf)
        self.leaves.append(leaf)
        state.previous, state.time, self.last = leaf.hex(), content["time"], line
        state.chain_bytes, state.chain_ends = line.stop - (not line.is_ended), line.is_ended
        if content["kind"] == "day":
            state.days[content["day"]] = (content["size"], content["root"])
        self._compare_known()

    def _compare_known(self) -> None:
        size = self.state.size
        if size in self.known and self.known[size] != self.state.root():
            raise DamageError(
                f"the root of its first {counted(size, 'line')} is {self.state.root()}, but "
                f"{self.known[size]} was known, so a line up to there was replaced",
                self.chain_path,
                None,
            )

    # ---- the second file ----------------------------------------------------------------------

    def _compare_people(self, line: Line, content: dict[str, Any], people: Iterator[Line]) -> None:
        state, n, promised = self.state, content["n"], content["people"]
        own = next(people, None)
        if own is None:
            raise DamageError("its personal values are missing", self.personal_path, n, line=None)
        held = own.content
        if held is None or held.keys() != {"n", "people"} or held["n"] != n:
            raise self._damaged("its personal values do not fit their checksum", own, personal=True)
        if len(held["people"]) != len(promised):
            raise self._damaged("people were added or left out", own, personal=True)
        for i, (person, values) in enumerate(zip(held["people"], promised, strict=True)):
            if person.keys() == {"erased"}:
                self.gone[n, i] = (person["erased"], own)
            elif self.deep and not opens(person, values):
                raise self._damaged(
                    f"the values of person {i} are not those that it committed to",
                    own,
                    personal=True,
                )
        state.answers += 1
        state.people += len(promised)
        state.personal_bytes, state.personal_ends = own.stop - (not own.is_ended), own.is_ended

    def _settle_erasures(self) -> None:
        state = self.state
        for (n, i), (by, line) in self.gone.items():
            if state.erased.get((n, i)) != by:
                raise DamageError(
                    f"the values of person {i} are gone, but no record says that they were erased",
                    self.personal_path,
                    n,
                    line,
                )
        state.pending = {who: by for who, by in state.erased.items() if who not in self.gone}

    def _damaged(self, what: str, line: Line, *, personal: bool = False) -> DamageError:
        path = self.personal_path if personal else self.chain_path
        return DamageError(what, path, self.state.size, line)
