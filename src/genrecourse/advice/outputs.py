"""Outputs: whether a file or a folder can be written, found out before any work.

Every command that writes asks here first, so that nothing is refused after minutes of work. This
file imports nothing that takes time. What is asked:

- A missing parent folder is refused: it is more often a slip than a wish.
- An existing file is replaced, but only by a whole new one (`text_files.write_whole`), and only if
  it is an ordinary file, is not write-protected and is not read by the same command.
- A folder is used if it is new or empty, or holds what an earlier run of the command wrote.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

from genrecourse.errors import UserError
from genrecourse.table.text_files import NEEDS_PARQUET, from_json, path_of, read_text

TABLES = (".csv", ".parquet")
MODEL_FORMAT = "genrecourse-model"  # `model.artifact.FORMAT`, whose import takes seconds
# also what a save that was killed has left
MODEL_FILES = re.compile(r"(model|tensors)(-[0-9a-f]{16})?\.(json|safetensors|part)")
BATCH_FILES = re.compile(r"part-\d{6,}\.parquet|_manifest\.json|\.part-.*")
SHOWN = 3  # entries of a folder that a message names


def check_file(
    path: Path, endings: Collection[str] = (), *, reads: Iterable[Path | None] = ()
) -> None:
    """Raise UserError if a file could not be written to `path`.

    endings: those that its name may have; none: any. reads: files and folders that the same command
    reads.

    >>> check_file(Path("plans.csv"), (".csv", ".json"))
    >>> check_file(Path("plans.docx"), (".csv", ".json"))
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: cannot write plans.docx: its name should end in .csv or .json
    """
    path = path_of(path, "the output")
    if endings and path.suffix.lower() not in endings:
        raise UserError(f"cannot write {path}: its name should end in {_listed(list(endings))}")
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder; name a file")
    if path.exists() and not path.is_file():
        raise UserError(f"cannot write {path}: it is no ordinary file; name another one")
    if path.exists() and not os.access(path, os.W_OK):
        raise UserError(f"cannot write {path}: it is write-protected; name another file")
    _check_parent(path)
    _check_not_read(path, reads)
    if path.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise UserError(f"{path}: {NEEDS_PARQUET}")
    _try(path, path.parent)


def check_table(path: Path, *, reads: Iterable[Path | None] = ()) -> None:
    """Raise UserError if a table could not be written to `path`.

    >>> check_table(Path("people.csv"))
    """
    check_file(path, TABLES, reads=reads)


def check_plans(path: Path, *, reads: Iterable[Path | None] = ()) -> None:
    """Raise UserError if plans could not be written to `path`.

    >>> check_plans(Path("plans.json"))
    """
    check_file(path, (".json", ".html", *TABLES), reads=reads)


def check_audit(path: Path, *, reads: Iterable[Path | None] = ()) -> None:
    """Raise UserError if an audit could not be written to `path`.

    >>> check_audit(Path("audit.html"))
    """
    check_file(path, (".html", ".json", *TABLES), reads=reads)


def check_letter(path: Path, *, reads: Iterable[Path | None] = ()) -> None:
    """Raise UserError if a letter could not be written to `path`.

    >>> check_letter(Path("letter.txt"))
    """
    check_file(path, (".html", ".txt"), reads=reads)


def check_reasons(path: Path, *, reads: Iterable[Path | None] = ()) -> None:
    """Raise UserError if reasons could not be written to `path`.

    >>> check_reasons(Path("reasons.json"))
    """
    check_file(path, (".json", ".html", ".txt"), reads=reads)


def check_batch(folder: Path, *, reads: Iterable[Path | None] = ()) -> None:
    """Raise UserError if a batch of plans could not be written to a folder, or continued there.

    >>> check_batch(Path("plans"))
    """
    check_folder(folder, holds=BATCH_FILES, what="the output of a batch", reads=reads)


def check_results(path: Path) -> None:
    """Raise UserError if the results of a comparison, and its tables, could not be written.

    Results are appended to a file of results; `ResultsFile` refuses any other.

    >>> check_results(Path("results.jsonl"))
    """
    if path_of(path, "the results").suffix != ".jsonl":
        raise UserError(
            f"{path} must end with .jsonl: the tables get the same name with other endings"
        )
    for each in (path, *(path.with_suffix(ending) for ending in (".csv", ".md", ".tex"))):
        check_file(each)


def check_model(folder: Path, *, reads: Iterable[Path | None] = ()) -> None:
    """Raise UserError if a model could not be saved in a folder.

    >>> check_model(Path("far/model"))
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: cannot write far/model: there is no folder far; create it first
    """
    check_folder(
        folder, holds=MODEL_FILES, what="a genrecourse model", is_ours=is_model, reads=reads
    )


def is_model(folder: Path) -> bool:
    """Return whether a folder holds a model that `save` wrote.

    >>> is_model(Path("no such folder"))
    False
    """
    try:
        content = from_json(read_text(folder / "model.json"), "model.json")
    except UserError:
        return False
    return isinstance(content, dict) and content.get("format") == MODEL_FORMAT


def check_folder(
    folder: Path,
    *,
    holds: re.Pattern[str],
    what: str,
    is_ours: Callable[[Path], bool] = lambda folder: True,
    reads: Iterable[Path | None] = (),
) -> None:
    """Raise UserError if a folder could not be written.

    holds: matches the names of the files that will be in it. what: it is, for the
    message. is_ours: of an existing folder that holds nothing else, whether it may be replaced.

    >>> report = re.compile("report.html")
    >>> check_folder(Path("pages"), holds=report, what="a report")
    >>> check_folder(Path("far/pages"), holds=report, what="a report")
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: cannot write far/pages: there is no folder far; create it first
    """
    folder = path_of(folder, "the output")
    _check_parent(folder)
    _check_not_read(folder, reads)
    if not os.path.lexists(folder):
        _try(folder, folder.parent)
        return
    if not folder.is_dir():
        raise UserError(f"cannot write {folder}: it is a file; name a folder")
    try:
        held = sorted(os.listdir(folder))
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}") from None
    odd = [name for name in held if not holds.fullmatch(name)]
    if odd or (held and not is_ours(folder)):
        raise UserError(
            f"cannot write {folder}: it is not {what} (it holds {_some(odd or held)}), so nothing "
            "in it is replaced; name another folder, or empty this one"
        )
    _try(folder, folder)


def _check_parent(path: Path) -> None:
    parent = path.absolute().parent
    if parent.is_dir():
        return
    if os.path.lexists(parent):
        raise UserError(f"cannot write {path}: {path.parent} is a file, not a folder")
    raise UserError(f"cannot write {path}: there is no folder {path.parent}; create it first")


def _check_not_read(path: Path, reads: Iterable[Path | None]) -> None:
    """Refuse to write to what is read: to the table itself, or into the folder of the model."""
    for read in reads:
        if read is None or not os.path.exists(read):  # Path.exists raises for some paths
            continue
        for place in (path, path.absolute().parent):
            same = os.path.exists(place) and place.samefile(read)
            if same and (place is path or read.is_dir()):
                whose = "it" if place is path else f"the folder {read}"
                raise UserError(f"cannot write {path}: {whose} is read; name another place")


def _try(path: Path, folder: Path) -> None:
    """Refuse a folder in which no file can be made; whoever is root may only seem to be allowed."""
    try:
        with TemporaryFile(dir=folder):  # Linux gives it no name, so a kill leaves nothing behind
            pass
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UserError(
            f"cannot write {path}: no file can be made in {folder} ({why}); name another place"
        ) from None


def _listed(endings: list[str]) -> str:
    return " or ".join([", ".join(endings[:-1]), endings[-1]] if len(endings) > 1 else endings)


def _some(names: list[str]) -> str:
    rest = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + rest
