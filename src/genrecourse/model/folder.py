"""Replaces the two files of a model folder in one step: killed or crowded, it holds a whole model.

    model.json                        holds the checksum of the tensors that belong to it
    tensors.safetensors               the tensors
    tensors-CHECKSUM.safetensors      while a model is being saved: the new tensors, complete
    tensors-CHECKSUM.part, model-CHECKSUM.part      files that are being written

The new files are written beside the old ones. Renaming the new model.json over the old one is the
moment at which the new model counts; the system does this completely or not at all. Then the new
tensors get their usual name. A save that is killed before that moment leaves the old model, and
one that is killed after it leaves the new one: `tensors_path` finds the tensors under either name.
One save at a time: a lock on the folder, which ends with the process that holds it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from genrecourse.errors import UserError

JSON_NAME, TENSORS_NAME = "model.json", "tensors.safetensors"  # never read from a model file
STAGED = re.compile(r"tensors-[0-9a-f]{16}\.(safetensors|part)|model-[0-9a-f]{16}\.part")
PATIENCE = 60.0  # seconds that a save waits for another one into the same folder
PAUSE = 0.01  # seconds between two looks at the lock
READS = 1000  # how often a reader begins again because a new model came; each time, one was saved

T = TypeVar("T")


# ---- writing ----------------------------------------------------------------------------------


def replace_files(folder: Path, files: dict[str, bytes], check: Callable[[], None]) -> None:
    """Write both files to a folder, which is made if there is none. If it fails, nothing changes.

    check: raises if the folder is not to be written to; it is called when no other save is under
    way.

    >>> replace_files(Path("model"), {JSON_NAME: b"{}", TENSORS_NAME: b"..."}, lambda: None)
    >>> Path("model/model.json").read_bytes()
    b'{}'
    """
    staged = folder / _staged(TENSORS_NAME, hashlib.sha256(files[TENSORS_NAME]).hexdigest())
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _alone(folder):
            check()
            finish(folder)
            try:
                part = _write(folder, JSON_NAME, files[JSON_NAME])
                # complete before it gets its name: the old model may have the same tensors
                os.replace(_write(folder, TENSORS_NAME, files[TENSORS_NAME]), staged)
                _sync(folder)
                os.replace(part, folder / JSON_NAME)
                _sync(folder)  # before the old tensors go
            finally:
                with contextlib.suppress(OSError):  # a whole model, whatever is left over
                    finish(folder)
            _sync(folder)
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def finish(folder: Path) -> None:
    """Finish a save: name the tensors that model.json counts on, and remove what else is left.

    Call it only while no other save is under way.

    >>> Path("model").mkdir()
    >>> finish(Path("model"))  # nothing is left of a save
    """
    counted_on = tensors_path(folder, _claimed(folder / JSON_NAME)).name
    for name in os.listdir(folder):
        if name == counted_on != TENSORS_NAME:
            os.replace(folder / name, folder / TENSORS_NAME)
        elif STAGED.fullmatch(name):
            os.unlink(folder / name)


def _claimed(path: Path) -> Any:
    """Return the checksum of the tensors in a model.json; None if it has none."""
    try:
        return json.loads(path.read_bytes())["tensors"]["sha256"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _staged(name: str, checksum: str) -> str:
    stem, dot, ending = name.partition(".")
    return f"{stem}-{checksum[:16]}{dot}{ending}"


def _write(folder: Path, name: str, data: bytes) -> Path:
    """Write a file to the disk under the name of a part; return its path."""
    path = (folder / _staged(name, hashlib.sha256(data).hexdigest())).with_suffix(".part")
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return path


def _sync(folder: Path) -> None:
    """Flush a folder to the disk, so that new names in it survive a crash, if the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder's lock. Raises UserError if another process holds it for too long.

    Where there are no such locks (Windows, some network drives), two saves at once are not safe.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle, until = os.open(folder, os.O_RDONLY), time.monotonic() + PATIENCE
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    break  # this file system has no locks
                if time.monotonic() > until:
                    raise UserError(
                        f"another process has been saving to {folder} for {PATIENCE:g} seconds; "
                        "wait for it or end it, then save again"
                    ) from None
                time.sleep(PAUSE)
            else:
                break
        yield
    finally:
        with contextlib.suppress(
            OSError
        ):  # a process that was forked meanwhile has the handle, too
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


# ---- reading ----------------------------------------------------------------------------------


def tensors_path(folder: Path, checksum: Any) -> Path:
    """Return where the tensors with this checksum are: under their usual name, unless the save
    that wrote them was killed, or is not finished.

    >>> tensors_path(Path("model"), "0" * 64).name
    'tensors.safetensors'
    """
    name = _staged(TENSORS_NAME, checksum) if isinstance(checksum, str) else ""
    is_there = STAGED.fullmatch(name) is not None and os.path.lexists(folder / name)
    return folder / (name if is_there else TENSORS_NAME)


def read_whole(folder: Path, read: Callable[[], T]) -> T:
    """Return what `read` returns. If it fails while a new model came, it is called again.

    >>> read_whole(Path("model"), lambda: "the model")
    'the model'
    """
    for _ in range(READS):
        before = _version(folder)
        try:
            return read()
        except UserError:
            if _version(folder) == before:
                raise
    raise UserError(f"models are saved to {folder} all the time, so none could be read; try later")


def _version(folder: Path) -> list[tuple[int, ...]]:
    """Return numbers that change whenever one of the two names gets a new file."""
    found: list[tuple[int, ...]] = []
    for name in (JSON_NAME, TENSORS_NAME):
        with contextlib.suppress(OSError):
            about = os.lstat(folder / name)
            found.append((about.st_ino, about.st_mtime_ns, about.st_ctime_ns, about.st_size))
    return found
