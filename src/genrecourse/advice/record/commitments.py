"""Personal values as salted commitments: the chain holds these, another file salts and values.

A commitment is HMAC-SHA256(salt, name and value). Without the salt, which is 32 random bytes,
nobody can find the value, not even by trying all: an age has a hundred possible values, but each
would have to be tried with 2**256 salts. A hash without a salt, or with one salt that everybody
shares and somebody keeps, would fall to a hundred tries.

A person has one random secret, and each value has a salt of its own that is computed from it.
Erasing the secret erases all salts of the person. Showing one salt to an auditor opens one value
and helps with no other.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import Any

from genrecourse.advice.record.lines import canonical

SECRET_BYTES = 32


def new_secret() -> str:
    """Return 32 random bytes in hexadecimal: what the salts of one person are computed from.

    >>> len(new_secret()), new_secret() == new_secret()
    (64, False)
    """
    return secrets.token_hex(SECRET_BYTES)


def salt_of(secret: str, name: str) -> str:
    """Return the salt of one value of a person, in hexadecimal.

    >>> salt_of("00" * 32, "input.age") == salt_of("00" * 32, "input.job")
    False
    """
    return hmac.digest(bytes.fromhex(secret), name.encode(), "sha256").hex()


def commitment(salt: str, name: str, value: Any) -> str:
    """Return the commitment to a value, which says nothing about it without the salt.

    >>> commitment("00" * 32, "input.age", 41) == commitment("00" * 32, "input.age", 42)
    False
    """
    return hmac.digest(bytes.fromhex(salt), canonical([name, value]), "sha256").hex()


def commitments(secret: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Return the commitments to all values of a person, by name.

    >>> list(commitments(new_secret(), {"input.age": 41, "rules": {}}))
    ['input.age', 'rules']
    """
    return {name: commitment(salt_of(secret, name), name, v) for name, v in values.items()}


def opens(person: Any, promised: Mapping[str, str]) -> bool:
    """Return whether an entry of the second file holds the values that were committed to.

    >>> entry = {"secret": new_secret(), "values": {"input.age": 41}}
    >>> promised = commitments(entry["secret"], entry["values"])
    >>> opens(entry, promised), opens(entry | {"values": {"input.age": 42}}, promised)
    (True, False)
    """
    if not (isinstance(person, dict) and person.keys() == {"secret", "values"}):
        return False
    try:
        return commitments(person["secret"], person["values"]) == promised
    except (AttributeError, TypeError, ValueError):  # not what this library writes
        return False
