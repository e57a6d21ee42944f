"""What a sentence holds besides words: placeholders, and spaces that do not break a line."""

from __future__ import annotations

from string import Formatter

NO_BREAK = "\u00a0"  # a space that does not break a line


def fields(sentence: str) -> set[str]:
    """Return the placeholders with their conversions and formats, so that only bare names pass.

    >>> sorted(fields("from {before} to {after:.2f}"))
    ['after:.2f', 'before']
    """
    found = set()
    for _, name, how, conversion in Formatter().parse(sentence):
        if name is not None:
            found.add(name + (f"!{conversion}" if conversion else "") + (f":{how}" if how else ""))
    return found
