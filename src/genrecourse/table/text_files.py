"""Paths and text files that users name: checked paths, text, JSON and TOML.

Whatever is wrong with them is one sentence in a UserError: a path that is no path, a file that
cannot be read, a text that is not JSON. A file is written completely or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from genrecourse.errors import UserError, shown, text_problem
from genrecourse.table.limits import NESTED

NEEDS_PARQUET = "Parquet needs pyarrow; run pip install 'genrecourse[parquet]'"

# ---- paths -----------------------------------------------------------------------------------


def path_of(given: Any, what: str) -> Path:
    """Return a path that somebody gave. Raises UserError if no system could use it.

    what: what the path leads to, for the message.

    >>> path_of("schema.json", "the schema").name
    'schema.json'
    >>> path_of(7, "the schema")
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: the path of the schema is 7; it must be text or a Path
    """
    where = f"the path of {what} is {shown(given)}"
    try:
        text = os.fspath(given)
    except TypeError:
        text = None
    if not isinstance(text, str):
        raise UserError(f"{where}; it must be text or a Path")
    problem = "is empty" if text == "" else text_problem(text)
    if problem:
        raise UserError(f"{where}; it {problem}, so name another file or folder")
    try:
        os.lstat(text)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UserError(f"{where}; it is too long for this system, so shorten it") from None
    return Path(text)


# ---- reading ---------------------------------------------------------------------------------


def read_text(path: Path, what: str = "") -> str:
    """Return the text of a UTF-8 file. Raises UserError if it cannot be read.

    what: what the file holds, such as "the schema ", for the message.

    Examples:
        >>> write_text("debt <= limit", Path("rules.txt"))
        >>> read_text(Path("rules.txt"))
        'debt <= limit'
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {what}{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"cannot read {what}{path}: not UTF-8; save it as UTF-8") from None


def from_json(text: str, what: str) -> Any:
    """Return the data in a JSON text. Raises UserError with one sentence if there are none.

    >>> from_json("[1", "plans.json")
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: plans.json is not JSON: Expecting ',' delimiter: ...
    """
    return _parsed(json.loads, text, what, "JSON")


def from_toml(text: str, what: str) -> dict[str, Any]:
    """Return the data in a TOML text. Raises UserError with one sentence if there are none.

    >>> from_toml("max_changes = 2", "rules.toml")
    {'max_changes': 2}
    """
    return dict(_parsed(tomllib.loads, text, what, "TOML"))


def _parsed(parse: Callable[[str], Any], text: str, what: str, kind: str) -> Any:
    try:
        data = parse(text)
    except RecursionError:
        raise UserError(_too_deep(what)) from None
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{what} is not {kind}: {error}") from None
    except ValueError:  # the only other one: Python reads no longer integers
        raise UserError(f"{what} is not readable {kind}: a number has too many digits") from None
    if _is_deep(data):
        raise UserError(_too_deep(what))
    return data


def _too_deep(what: str) -> str:
    return f"{what}: lists and tables are nested more than {NESTED} deep; write it flatter"


def _is_deep(data: Any) -> bool:
    """Return whether data are nested too deeply; not recursive, so that it cannot fail."""
    level = [data]
    for _ in range(NESTED + 1):
        inner = [list(each.values()) if isinstance(each, dict) else each for each in level]
        level = [item for each in inner if isinstance(each, list) for item in each]
        if not level:
            return False
    return True


# ---- writing ---------------------------------------------------------------------------------


def make_folder(path: Path) -> None:
    """Make a folder and those above it, if they do not exist. Raises UserError if it cannot.

    >>> make_folder(Path("reports/today"))
    >>> Path("reports/today").is_dir()
    True
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {path}: {error.strerror or error}") from None


def write_text(text: str, path: Path) -> None:
    """Write a text to a UTF-8 file, completely or not at all.

    Examples:
        >>> write_text("<p>Hello</p>", Path("report.html"))
        >>> Path("report.html").read_text()
        '<p>Hello</p>'
    """
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Call `write` with a temporary file, then rename it to `path`. If `write` fails, `path` keeps
    its old content and the temporary file is removed.

    Examples:
        >>> write_whole(Path("n.txt"), lambda temporary: temporary.write_text("1"))
        >>> [path.name for path in Path().glob("*n.txt*")]
        ['n.txt']
    """
    path = path_of(path, "the file")
    temporary = path.parent / f".{uuid4().hex[:12]}{path.suffix[:20]}"
    try:
        if path.is_dir():
            raise UserError(f"cannot write {path}: it is a folder; name a file")
        if not path.parent.is_dir():
            raise UserError(
                f"cannot write {path}: there is no folder {path.parent}; create it first"
            )
        write(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
    except UnicodeEncodeError as error:
        odd = error.object[error.start : error.start + 1]
        raise UserError(f"cannot write {path}: UTF-8 has no character {odd!r}") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
