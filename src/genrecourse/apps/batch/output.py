"""The folder that a run writes: one Parquet file for each part, and a manifest.

    OUT/_manifest.json        what the run was started with; at the end, what came out
    OUT/part-000000.parquet   the answers to the first part of the input

A part is written to a file of another name, flushed to the disk and then renamed, so that a part
that is there is complete. Nothing in the folder depends on the time, the machine, the engine or on
how often the run was interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from genrecourse.errors import UserError, shown
from genrecourse.table.text_files import from_json, make_folder, read_text

if TYPE_CHECKING:
    import pyarrow as pa

    from genrecourse.apps.batch.inputs import Part

MANIFEST = "_manifest.json"
FORMAT = 1
RESULTS = ("complete", "counts", "plans")  # of a manifest: what a run adds at its end


def part_path(folder: Path, number: int) -> Path:
    """Return where the answers to a part are.

    >>> part_path(Path("out"), 12).name
    'part-000012.parquet'
    """
    return folder / f"part-{number:06d}.parquet"


def write_part(folder: Path, number: int, table: pa.Table) -> None:
    """Write the answers to a part: after a crash at any moment, the file is complete or not there.

    Two processes may write the same part: they write the same bytes.
    """
    import pyarrow.parquet as pq

    path = part_path(folder, number)
    temporary = folder / f".{path.stem}.{uuid4().hex[:12]}"
    try:
        with temporary.open("xb") as file:
            pq.write_table(table, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync(folder)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def start(folder: Path, facts: dict[str, Any]) -> None:
    """Begin a run in a folder, or continue the one that was begun there with the same facts."""
    make_folder(folder)
    path = folder / MANIFEST
    if not path.exists():
        held = sorted(each.name for each in folder.iterdir() if not each.name.startswith("."))
        if held:
            raise UserError(
                f"{folder} holds {shown(held[0])} and was not written by 'genrecourse "
                "batch'; name a new or empty folder"
            )
        _write_manifest(folder, facts | {"complete": False})
        return
    begun = read_manifest(folder)
    for name in facts:
        if begun.get(name) != facts[name]:
            raise UserError(
                f"{folder} belongs to a run with {_difference(name, begun.get(name), facts[name])}"
                "; name another folder for this run, or start it as before to continue it"
            )


def _difference(name: str, before: Any, now: Any) -> str:
    """Return in words what a run was started with and what it is now, as deep as they differ.

    >>> _difference("request", {"n": 1, "rules": None}, {"n": 2, "rules": None})
    'another request.n: 1 then, 2 now'
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in now | before:
            if before.get(key) != now.get(key):
                return _difference(f"{name}.{key}", before.get(key), now.get(key))
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, (old, new) in enumerate(zip(before, now, strict=True)):
            if old != new:
                return _difference(f"{name}.{i}", old, new)
    return f"another {name}: {shown(before)} then, {shown(now)} now"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder."""
    path = folder / MANIFEST
    if not path.is_file():
        raise UserError(f"{folder} has no {MANIFEST}; name a folder that 'genrecourse batch' wrote")
    found = from_json(read_text(path), str(path))
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise UserError(f"{path} is not a manifest of this version; write to another folder")
    return found


def is_done(folder: Path, part: Part) -> bool:
    """Return whether the answers to a part are there: one row for each of its rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_metadata(part_path(folder, part.number))
    except (OSError, pa.ArrowInvalid):
        return False
    if found.num_rows != part.rows:
        return False
    numbers = found.row_group(0).column(0).statistics  # of the column `row`
    return numbers is not None and bool(numbers.has_min_max) and numbers.min == part.first


def check_parts(folder: Path, parts: tuple[Part, ...]) -> None:
    """Raise UserError if the answers to a part are missing."""
    lacking = [part.number for part in parts if not is_done(folder, part)]
    if lacking:
        raise UserError(
            f"{len(lacking)} of {len(parts)} parts are missing in {folder} (first: "
            f"{part_path(folder, lacking[0]).name}); start the same command again"
        )


def finish(folder: Path, facts: dict[str, Any], parts: tuple[Part, ...]) -> dict[str, Any]:
    """Write the manifest of a complete run, and remove what interrupted ones left; return it."""
    import pyarrow.parquet as pq

    check_parts(folder, parts)
    counts: Counter[str] = Counter()
    plans = 0
    for part in parts:
        table = pq.read_table(part_path(folder, part.number), columns=["status", "n_plans"])
        counts.update(table["status"].to_pylist())
        plans += sum(table["n_plans"].to_pylist())
    manifest = facts | {"complete": True, "counts": dict(sorted(counts.items())), "plans": plans}
    for left in folder.glob(".part-*"):
        left.unlink(missing_ok=True)
    _write_manifest(folder, manifest)
    return manifest


def _write_manifest(folder: Path, content: dict[str, Any]) -> None:
    temporary = folder / f".part-manifest.{uuid4().hex[:12]}"
    text = json.dumps(content | {"format": FORMAT}, indent=1, sort_keys=True, ensure_ascii=False)
    with temporary.open("x", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, folder / MANIFEST)
    _sync(folder)


def _sync(folder: Path) -> None:
    """Flush the names in a folder to the disk, if the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Let one run at a time write to a folder. The lock ends with the process, however it ends.

    Where there are no such locks (Windows, some network drives), start one run at a time.
    """
    make_folder(folder)
    try:
        import fcntl
    except ImportError:  # this system has no fcntl
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            os.close(handle)
            raise UserError(f"another run is writing to {folder}; wait for it to end") from None
        # this file system has no locks
    try:
        yield
    finally:
        _release(handle)


def _release(handle: int) -> None:
    """Free a lock, also if a process that was forked meanwhile still has the handle."""
    import fcntl

    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)
