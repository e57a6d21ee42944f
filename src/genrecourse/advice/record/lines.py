"""One line of a file of the record: canonical JSON that ends with the checksum of the rest.

    {"n":3,"kind":"answer",...,"sha256":"<of the line without this entry>"}

The checksum covers every byte, so that a changed line names itself, before any chain is followed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

_MARK = b',"sha256":"'
_TAIL = len(_MARK) + 64 + len(b'"}')


def canonical(value: Any) -> bytes:
    """Return a value as JSON, always in the same bytes: sorted keys, no spaces, ASCII.

    >>> canonical({"b": 1.50, "a": ["é"]})
    b'{"a":["\\\\u00e9"],"b":1.5}'
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def sealed(content: Mapping[str, Any]) -> bytes:
    """Return content as a line with its checksum, without the end of the line.

    >>> unsealed(sealed({"n": 3}))
    {'n': 3}
    """
    body = canonical(content)
    return body[:-1] + _MARK + hashlib.sha256(body).hexdigest().encode() + b'"}'


def unsealed(line: bytes) -> dict[str, Any] | None:
    """Return the content of a line; None if any byte of it was changed.

    >>> unsealed(sealed({"n": 3}).replace(b"3", b"4", 1)) is None
    True
    """
    body = line[:-_TAIL] + b"}"
    seal = _MARK + hashlib.sha256(body).hexdigest().encode() + b'"}'
    if line[-_TAIL:] != seal:
        return None
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):  # somebody sealed a line that is no JSON
        return None
    return content if isinstance(content, dict) else None


@dataclass(frozen=True)
class Line:
    """A line as it was read. content: None if it is damaged. is_ended: its last byte is there.

    >>> Line(1, 0, b'{"n":3,"sha', None, is_ended=False).is_unfinished
    True
    """

    number: int  # from 1, as editors count
    byte: int  # where it begins
    raw: bytes  # without the end of the line
    content: dict[str, Any] | None
    is_ended: bool = True

    @property
    def is_unfinished(self) -> bool:
        """Whether the writing of this line was cut short, so that nobody was told that it is kept.

        A line whose end was changed to another byte is damaged, not unfinished.
        """
        return not self.is_ended and self.content is None and unsealed(self.raw[:-1]) is None

    @property
    def stop(self) -> int:
        """Where the next line begins, or should."""
        return self.byte + len(self.raw) + 1


def read_lines(file: IO[bytes]) -> Iterator[Line]:
    """Yield the lines of a file from where it stands, one at a time.

    >>> from io import BytesIO
    >>> two = BytesIO(sealed({"n": 3}) + b"\\n" + b"{}\\n")
    >>> [line.content for line in read_lines(two)]
    [{'n': 3}, None]
    """
    byte = file.tell()
    for number, raw in enumerate(iter(file.readline, b""), start=1):
        text = raw.removesuffix(b"\n")
        yield Line(number, byte, text, unsealed(text), is_ended=len(text) < len(raw))
        byte += len(raw)
