"""Fault: why a row of a table cannot be read."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Fault:
    """Why a row cannot be read: its first cell that the schema does not allow.

    code: `unseen-category`, `missing`, `wrong-type`, `not-finite`, `too-large`, or `not-one-hot` if
        a category is stored in columns of 0 and 1 and not exactly one of them is 1.
    value: the value as Python writes it, shortened. known: the categories that the column may hold.

    >>> Fault("not-finite", "income", "inf").to_dict()
    {'code': 'not-finite', 'column': 'income', 'value': 'inf', 'known': ''}
    """

    code: str
    column: str
    value: str
    known: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return plain values for JSON."""
        return asdict(self)
