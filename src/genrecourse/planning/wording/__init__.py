"""Wording: the sentences that people read, from a file for each language.

    Wording.of("en")  # shipped
    Wording.of("de.toml")  # a user's own: a translated copy of en.toml

A file says everything or is refused: half a translation would leave people with two languages. What
a sentence fills in is plain text by name, so that a file is data and never code.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from genrecourse.errors import UserError

FOLDER = Path(__file__).parent
SHOWN = 3  # keys that an error names


class Wording:
    """Sentences by name: `words("plan.cost", cost="0.41")`."""

    def __init__(self, sentences: Mapping[str, str]):
        self._sentences = dict(sentences)

    def __call__(self, name: str, **parts: object) -> str:
        return self._sentences[name].format(**parts)

    def __contains__(self, name: str) -> bool:
        return name in self._sentences

    def under(self, prefix: str) -> dict[str, str]:
        """The sentences of one table of the file, in the order of the English one."""
        start = prefix + "."
        names = [name for name in english()._sentences if name.startswith(start)]
        return {name.removeprefix(start): self._sentences[name] for name in names}

    def number(self, text: str) -> str:
        """A number written as Python writes it ("1,234.5"), as this language does."""
        marks = {",": self._sentences["numbers.thousands"], ".": self._sentences["numbers.decimal"]}
        return "".join(marks.get(letter, letter) for letter in text)

    @classmethod
    def of(cls, language: str | os.PathLike[str] | Wording) -> Wording:
        """The wording of a language that is shipped, or of a file."""
        if isinstance(language, Wording):
            return language
        shipped = sorted(path.stem for path in FOLDER.glob("*.toml"))
        if isinstance(language, str) and language in shipped:
            return _shipped(language)
        path = Path(language)
        if not path.is_file():
            raise UserError(
                f"no wording '{language}': neither a language that is shipped ({shipped}) nor a "
                "file; copy the English one, genrecourse/wording/en.toml, and translate it"
            )
        return _checked(_read(path), str(path))


@cache
def english() -> Wording:
    return Wording(_read(FOLDER / "en.toml"))


@cache
def _shipped(name: str) -> Wording:
    return _checked(_read(FOLDER / f"{name}.toml"), f"{name}.toml")


def _read(path: Path) -> dict[str, str]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read the wording {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"the wording {path} is not TOML: {error}") from None
    sentences = dict(_flat(content))
    for name, sentence in sentences.items():
        if not isinstance(sentence, str):
            raise UserError(f"the wording {path}: '{name}' is {sentence!r}; it must be text")
    return sentences


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value


def _checked(sentences: dict[str, str], where: str) -> Wording:
    """Refuse a file that lacks a sentence, has one that nobody says, or fills in too much."""
    known = english()._sentences
    for what, names in (
        ("lacks", [name for name in known if name not in sentences]),
        ("has what English has not:", [name for name in sentences if name not in known]),
    ):
        if names:
            rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            raise UserError(f"the wording {where} {what} {', '.join(names[:SHOWN])}{rest}")
    for name, sentence in sentences.items():
        try:
            odd = _fields(sentence) - _fields(known[name])
        except ValueError as error:
            raise UserError(f"the wording {where}: '{name}' has stray braces: {error}") from None
        if odd:
            raise UserError(
                f"the wording {where}: '{name}' fills in {sorted(odd)}; it may use "
                f"{sorted(_fields(known[name])) or 'nothing'}"
            )
    return Wording(sentences)


def _fields(sentence: str) -> set[str]:
    """The names in braces, with whatever else stands there, so that only bare names pass."""
    found = set()
    for _, name, how, conversion in Formatter().parse(sentence):
        if name is not None:
            found.add(name + (f"!{conversion}" if conversion else "") + (f":{how}" if how else ""))
    return found
