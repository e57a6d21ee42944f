"""A number with its unit, as people write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from genrecourse.planning.wording import Wording

CURRENCIES = "$€£¥₹"  # a unit that ends with one of these comes before the number
CLOSE = ("%", "°")  # a unit that begins with one of these follows without a space


def with_unit(number: str, unit: str, words: Wording) -> str:
    """Return a written number with its unit.

    >>> from genrecourse.planning.wording import english
    >>> with_unit("1", "months", english()), with_unit("-5", "€", english())
    ('1 month', '-€5')
    """
    if not unit:
        return number
    if unit[-1] in CURRENCIES:
        sign, size = ("-", number[1:]) if number.startswith("-") else ("", number)
        return f"{sign}{unit}{size}"
    if number == "1" and f"singular.{unit}" in words:
        unit = words(f"singular.{unit}")
    return f"{number}{unit}" if unit.startswith(CLOSE) else f"{number} {unit}"
