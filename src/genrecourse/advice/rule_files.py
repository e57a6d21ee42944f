"""The rules of a request as a file: .json or .toml, for everybody or by row of the table."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pandas as pd

from genrecourse.errors import UserError
from genrecourse.rules.stated import PersonalRules, read_rules
from genrecourse.table.text_files import from_json, from_toml, path_of, read_text

READERS: dict[str, Callable[[str, str], Any]] = {".json": from_json, ".toml": from_toml}


def read_rules_file(path: str | os.PathLike[str]) -> PersonalRules:
    """Return the rules in a .json or .toml file; docs/requests.md shows both.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "rules.toml").write_text("max_changes = 2")
    ...     read_rules_file(Path(folder, "rules.toml")).default.max_changes
    2
    """
    path = path_of(path, "the rules")
    kind = path.suffix.lower()
    if kind not in READERS:
        raise UserError(f"{path} should end in {' or '.join(READERS)}, which says what it is")
    data = READERS[kind](read_text(path), str(path))
    try:
        return read_rules(data)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def check_people(rules: PersonalRules, index: pd.Index) -> None:
    """Refuse rules for a person who is not in the table, named by the index of the table.

    >>> check_people(PersonalRules(people={7: {"lock": ["age"]}}), pd.RangeIndex(3))
    Traceback (most recent call last):
    genrecourse.errors.UserError: the request has rules for the row ..., but ... the rows 0 to 2
    """
    known = {str(label) for label in index}
    unknown = [label for label in rules.people if str(label) not in known]
    if unknown:
        ends = f"the rows {index[0]} to {index[-1]}" if len(index) else "no rows"
        raise UserError(
            f"the request has rules for the row {unknown[0]!r}, but the table has {ends}"
        )
