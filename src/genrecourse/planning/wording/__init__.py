"""Wording: the sentences that people read, from one TOML file per language.

    Wording.of("en")  # a language of the library
    Wording.of("de.toml")  # your own file: a translated copy of en.toml

A file must contain every sentence, because a partial translation would mix two languages. A
placeholder is a bare name that is replaced by text, so a wording file is data and never code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from genrecourse.errors import UserError, shown
from genrecourse.planning.placeholders import NO_BREAK, fields
from genrecourse.table.text_files import from_toml, path_of, read_text

if TYPE_CHECKING:
    from genrecourse.table.schema import Feature

FOLDER = Path(__file__).parent
SHOWN = 3  # how many names an error lists
SHORT = 16  # values of at most this many letters stay on one line


class Wording:
    """The sentences of one language, by name.

    >>> words = Wording.of("en")
    >>> words("plan.cost", cost="0.41")
    'cost 0.41'
    """

    def __init__(self, sentences: Mapping[str, str]):
        self._sentences = dict(sentences)

    def __call__(self, name: str, **parts: object) -> str:
        return self._sentences[name].format(**parts)

    def __contains__(self, name: str) -> bool:
        return name in self._sentences

    def raw(self, name: str) -> str:
        """Return a sentence with its placeholders."""
        return self._sentences[name]

    def under(self, prefix: str) -> dict[str, str]:
        """Return the sentences of one table of the file, in the order of the English file."""
        start = prefix + "."
        names = [name for name in english()._sentences if name.startswith(start)]
        return {name.removeprefix(start): self._sentences[name] for name in names}

    def number(self, text: str) -> str:
        """Return a number that Python wrote ("1,234.5") with the marks of this language."""
        marks = {",": self._sentences["numbers.thousands"], ".": self._sentences["numbers.decimal"]}
        return "".join(marks.get(letter, letter) for letter in text)

    @classmethod
    def of(cls, language: str | os.PathLike[str] | Wording) -> Wording:
        """Return the wording of a language of the library, or of a TOML file."""
        if isinstance(language, Wording):
            return language
        shipped = sorted(path.stem for path in FOLDER.glob("*.toml"))
        if isinstance(language, str) and language in shipped:
            return _shipped(language)
        path = path_of(language, "the wording")
        if not path.is_file():
            raise UserError(
                f"no wording '{language}': it is neither a language of the library ({shipped}) nor "
                f"a file; to add a language, translate a copy of {FOLDER / 'en.toml'}"
            )
        return checked(read_sentences(path), str(path), english())


@cache
def english() -> Wording:
    """Return the English wording.

    >>> english()("value.missing")
    'not given'
    """
    return Wording(read_sentences(FOLDER / "en.toml"))


@cache
def _shipped(name: str) -> Wording:
    return checked(read_sentences(FOLDER / f"{name}.toml"), f"{name}.toml", english())


def unbroken(text: str) -> str:
    """Return a short text with spaces that do not break a line, so that "200 DM" stays together.

    >>> unbroken("200 DM")
    '200\xa0DM'
    """
    return text.replace(" ", NO_BREAK) if len(text) <= SHORT else text


def readable(name: str) -> str:
    """Return the name of a column as words: without underscores, dots and joined words.

    >>> readable("personal_status_sex"), readable("NumInqLast6M"), readable("debt-to-income.ratio")
    ('personal status sex', 'num inq last 6M', 'debt to income ratio')
    """
    spaced = re.sub(r"[_\s]+|(?<=\w)[-./:]+(?=[^\W\d])", " ", name)
    joined = re.compile(r"(?<=[a-z])(?=[A-Z0-9])")
    words = joined.sub(" ", spaced).split()
    if joined.search(spaced):  # lastPaymentDate: capitals mark words, and no names
        words = [word.lower() if word[1:].islower() else word for word in words]
    return " ".join(words) or name


def name_of(feature: Feature) -> str:
    """Return what a person reads for a feature: its wording, or its name as words.

    >>> from genrecourse.table.schema import Feature
    >>> name_of(Feature(name="credit_amount", kind="number"))
    'credit amount'
    """
    return feature.wording or readable(feature.name)


def read_sentences(path: Path) -> dict[str, str]:
    """Return the sentences of a TOML file, by name; `[plan]` and `cost` are named `plan.cost`.

    >>> read_sentences(FOLDER / "en.toml")["plan.cost"]
    'cost {cost}'
    """
    content = from_toml(read_text(path, "the wording "), f"the wording {path}")
    sentences = dict(_flat(content))
    for name, sentence in sentences.items():
        if not isinstance(sentence, str):
            raise UserError(f"the wording {path}: '{name}' is {shown(sentence)}; it must be text")
    return sentences


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value


def checked(
    sentences: dict[str, str],
    where: str,
    like: Wording,
    *,
    free: Collection[str] = (),
    more: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Wording:
    """Return the wording; raise if a sentence is missing or unknown, or has a new placeholder.

    like: the English wording. free: tables whose names may differ from the English ones.
    more: placeholders that a sentence may use although the English one does not.

    >>> like = Wording({"cost": "cost {cost}"})
    >>> checked({"cost": "Kosten {price}"}, "de.toml", like)
    Traceback (most recent call last):
    genrecourse.errors.UserError: the wording de.toml: 'cost' has the placeholders ['price']; ...
    """
    known = like._sentences
    for what, names in (
        ("lacks the sentences", [name for name in known if name not in sentences]),
        ("has unknown sentences:", [name for name in sentences if name not in known]),
    ):
        names = [name for name in names if name.split(".")[0] not in free]
        if names:
            rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            raise UserError(f"the wording {where} {what} {', '.join(names[:SHOWN])}{rest}")
    for name, sentence in sentences.items():
        may = {*fields(known.get(name, "")), *more.get(name, ())}
        try:
            odd = fields(sentence) - may
        except ValueError as error:
            raise UserError(f"the wording {where}: '{name}' has stray braces: {error}") from None
        if odd:
            raise UserError(
                f"the wording {where}: '{name}' has the placeholders {sorted(odd)}; it may use "
                f"{sorted(may) or 'nothing'}"
            )
    return Wording(sentences)
