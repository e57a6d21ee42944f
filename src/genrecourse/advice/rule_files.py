"""The rules of a request as a file: .json or .toml, for everybody or by row of the table."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd

from genrecourse.errors import UserError
from genrecourse.rules.stated import PersonalRules, read_rules
from genrecourse.table.table_files import read_text

READERS: dict[str, Any] = {".json": json.loads, ".toml": tomllib.loads}


def read_rules_file(path: str | os.PathLike[str]) -> PersonalRules:
    """Return the rules in a .json or .toml file; docs/requests.md shows both.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "rules.toml").write_text("max_changes = 2")
    ...     read_rules_file(Path(folder, "rules.toml")).default.max_changes
    2
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in READERS:
        raise UserError(f"{path} should end in {' or '.join(READERS)}, which says what it is")
    text = read_text(path)
    try:
        return read_rules(READERS[kind](text))
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except ValueError as error:  # of both readers
        raise UserError(f"{path}: not {kind[1:].upper()}: {error}") from None


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
