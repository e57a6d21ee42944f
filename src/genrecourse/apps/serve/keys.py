"""API keys: a file with one line for each key, its name and the hash of the key.

    branch-office 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae

A key has 256 random bits. Nobody can find it by trying, so one round of SHA-256 is enough: slow
hashes protect words that people choose, and would let anybody keep this machine busy.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from genrecourse.errors import UserError, shown
from genrecourse.table.text_files import read_text

NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
HASH = re.compile(r"[0-9a-f]{64}")


class Keys:
    """The keys that may use the service, by the name of who holds each.

    >>> keys = Keys({"office": hashed("a key")})
    >>> keys.holder_of("a key"), keys.holder_of("another")
    ('office', None)
    """

    def __init__(self, hashes: Mapping[str, str]):
        self._hashes = dict(hashes)

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Return the keys of a file. Raises UserError if it holds none, or a line is wrong."""
        found: dict[str, str] = {}
        for number, line in enumerate(read_text(path).splitlines(), start=1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if len(words) != 2 or not NAME.fullmatch(words[0]) or not HASH.fullmatch(words[1]):
                raise UserError(
                    f"{path}: line {number} is no name and hash of a key; write such lines with "
                    f"'genrecourse serve-key NAME --file {path}'"
                )
            if words[0] in found:
                raise UserError(f"{path}: line {number} names {shown(words[0])} a second time; "
                                "remove one of the two lines")  # fmt: skip
            found[words[0]] = words[1]
        if not found:
            raise UserError(f"{path} holds no keys; add one with 'genrecourse serve-key NAME "
                            f"--file {path}'")  # fmt: skip
        return cls(found)

    def holder_of(self, key: str) -> str | None:
        """Return who holds a key, in a time that depends on neither the key nor the holder."""
        given, found = hashed(key), None
        for name, known in self._hashes.items():
            if hmac.compare_digest(given, known):
                found = name
        return found


def hashed(key: str) -> str:
    """Return the hash that the file holds.

    >>> len(hashed("a key"))
    64
    """
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def new_key(name: str, path: Path) -> str:
    """Return a new key for a name, and add its hash to the file; the key itself is not stored."""
    if not NAME.fullmatch(name):
        raise UserError(
            f"the name of a key is {shown(name)}; use up to 64 letters, digits, '.', '_' and '-'"
        )
    if path.exists() and path.stat().st_size and name in Keys.read(path)._hashes:
        raise UserError(f"{path} has a key named {shown(name)} already; remove its line first")
    key = secrets.token_urlsafe(32)
    try:
        text = path.read_bytes() if path.exists() else b""
        start = "" if text.endswith(b"\n") or not text else "\n"  # somebody cut off the last end
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with open(file, "a", encoding="utf-8") as lines:
            lines.write(f"{start}{name} {hashed(key)}\n")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; give another --file") from None
    return key
