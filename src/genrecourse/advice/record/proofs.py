"""Roots and proofs of a record, as they are published and given to an auditor."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date
from typing import Any

from genrecourse.advice.record.check import State, check
from genrecourse.advice.record.merkle import consistency, extends, includes, inclusion, root
from genrecourse.errors import UserError, counted


def root_of_day(state: State, day: str) -> tuple[int, str]:
    """Return the size and the root of a record at the end of a day (UTC, YYYY-MM-DD).

    On a day without answers it is that of the day before. The root of today is that of now.

    >>> days = {"2026-11-18": (5, "ab" * 32)}
    >>> root_of_day(State(days=days, time="2026-11-20T08:00:00Z"), "2026-11-19")[0]
    5
    """
    try:
        date.fromisoformat(day)
    except ValueError:
        raise UserError(f"{day!r} is no day; write it as 2026-11-19") from None
    if day >= state.time[:10]:
        return state.size, state.root()
    ended = [each for each in state.days if each <= day]
    if not ended:
        first = min(state.days, default=state.time[:10])
        raise UserError(f"the record begins on {first}, so it has no root of {day}")
    return state.days[max(ended)]


def inclusion_proof(folder: str | os.PathLike[str], record: int) -> dict[str, Any]:
    """Return a proof that a line is in the tree of the record's root now, as plain data.

    `is_included` checks it without the record.

    >>> from genrecourse.advice.record import Answer, Record
    >>> with Record("record", {}) as record:
    ...     receipts = [record.append(Answer(name, "plans", [])) for name in ("a1", "a2", "a3")]
    >>> proof = inclusion_proof("record", 1)
    >>> proof["hash"] == receipts[1].hash, is_included(proof)
    (True, True)
    """
    leaves: list[bytes] = []
    check(folder, leaves=leaves)
    if record >= len(leaves):
        raise UserError(f"{folder} has {counted(len(leaves), 'line')}; there is no {record:,}")
    return {
        "record": record,
        "hash": leaves[record].hex(),
        "size": len(leaves),
        "root": root(leaves).hex(),
        "proof": [node.hex() for node in inclusion(leaves, record)],
    }


def consistency_proof(folder: str | os.PathLike[str], earlier: int) -> dict[str, Any]:
    """Return a proof that the record begins with its first `earlier` lines, as plain data.

    `is_extension` checks it without the record.

    >>> from genrecourse.advice.record import Answer, Record
    >>> with Record("longer", {}) as record:
    ...     receipts = [record.append(Answer(name, "plans", [])) for name in ("a1", "a2", "a3")]
    >>> is_extension(consistency_proof("longer", 2))
    True
    """
    leaves: list[bytes] = []
    check(folder, leaves=leaves)
    if earlier > len(leaves):
        raise UserError(f"{folder} has {counted(len(leaves), 'line')}, fewer than {earlier:,}")
    return {
        "earlier": earlier,
        "earlier_root": root(leaves[:earlier]).hex(),
        "size": len(leaves),
        "root": root(leaves).hex(),
        "proof": [node.hex() for node in consistency(leaves, earlier)],
    }


def is_included(proof: Mapping[str, Any]) -> bool:
    """Return whether a proof shows that the line with this hash is in the tree of this root.

    >>> leaf = "ab" * 32  # the tree of one line is its hash
    >>> is_included({"record": 0, "hash": leaf, "size": 1, "root": leaf, "proof": []})
    True
    """
    leaf, top, *nodes = map(bytes.fromhex, (proof["hash"], proof["root"], *proof["proof"]))
    return includes(top, proof["size"], proof["record"], leaf, nodes)


def is_extension(proof: Mapping[str, Any]) -> bool:
    """Return whether a proof shows that the tree of the root begins with the earlier one.

    >>> top, other = "ab" * 32, "cd" * 32
    >>> same = {"earlier": 1, "earlier_root": top, "size": 1, "root": top, "proof": []}
    >>> is_extension(same), is_extension(same | {"earlier_root": other})
    (True, False)
    """
    early, top, *nodes = map(bytes.fromhex, (proof["earlier_root"], proof["root"], *proof["proof"]))
    return extends(early, proof["earlier"], top, proof["size"], nodes)
