"""RoundNumbers: a plan in numbers of at most four digits, asked of h and the rules again.

A letter to a person should not ask for an income of 24,137.19. But a rounded number is another
number: h may turn it down. So the rounded row is checked as every plan is, and what a letter says
holds as it is written. If no rounding holds, there are no round numbers for the plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from genrecourse.planning.plans import Change

DIGITS = 4  # a letter shows no number with more significant digits


@dataclass(frozen=True)
class RoundNumbers:
    """What a letter says about a plan: its values in round numbers, and what they rest on.

    >>> RoundNumbers(("income",), {"income": 2100.0}).fits(["income"])
    True
    """

    changes: tuple[str, ...]  # the features of the plan that this is about
    values: Mapping[str, Any] | None  # of changed numbers, by feature; None: no rounding holds
    not_enough: tuple[str, ...] = ()  # features whose change alone h does not accept
    untouched: tuple[str, ...] = ()  # in words: what no plan may change for this person

    def fits(self, names: Iterable[str]) -> bool:
        """Return whether this is about a plan that changes these features."""
        return self.changes == tuple(names)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values = None if self.values is None else dict(self.values)
        names = {key: list(getattr(self, key)) for key in ("changes", "not_enough", "untouched")}
        return names | {"values": values}

    @classmethod
    def of_dict(cls, data: Mapping[str, Any]) -> RoundNumbers:
        """Return what `to_dict` was called on.

        >>> made = RoundNumbers(("income",), {"income": 2100.0})
        >>> RoundNumbers.of_dict(made.to_dict()) == made
        True
        """
        names = {key: tuple(data[key]) for key in ("changes", "not_enough", "untouched")}
        return cls(**names, values=data["values"])


# ---- numbers --------------------------------------------------------------------------------


def rounded(value: float, digits: int = DIGITS, way: int = 0) -> float:
    """Return the number with so many significant digits: the nearest, or the next up or down.

    way: 0 for the nearest, 1 for up, -1 for down.

    >>> rounded(24137.19), rounded(24137.19, 3, way=1), rounded(-0.02864, 2, way=1)
    (24140.0, 24200.0, -0.028)
    """
    if value == 0 or not math.isfinite(value):
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    near = value / step
    whole = round(near)
    if way and not math.isclose(whole, near, rel_tol=1e-9):
        whole = math.ceil(near) if way > 0 else math.floor(near)
    return float(f"{whole * step:.{digits}g}")


def is_round(value: Any) -> bool:
    """Return whether a value needs at most four digits; what is no number does not need any.

    >>> is_round(24100), is_round(24137), is_round("24137 Kiel")
    (True, False, True)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    return value == 0 or math.isclose(rounded(float(value)), value, rel_tol=1e-12)


def is_in_round(change: Change) -> bool:
    """Return whether a change can be written in round numbers as it is.

    >>> from genrecourse.planning.plans import Change
    >>> from genrecourse.table.schema import Feature
    >>> income = Feature(name="income", kind="number")
    >>> is_in_round(Change(income, 17971, 18000)), is_in_round(Change(income, 17971, 17970))
    (True, False)
    """
    if change.feature.is_category or isinstance(change.after, str):
        return True
    return is_round(change.after) and differs(change, change.after)


def differs(change: Change, after: float) -> bool:
    """Return whether x and this value look different in round numbers, on the plan's side of x.

    >>> from genrecourse.planning.plans import Change
    >>> from genrecourse.table.schema import Feature
    >>> change = Change(Feature(name="income", kind="number"), 17971, 17974)
    >>> differs(change, 17970), differs(change, 17980)
    (False, True)
    """
    if change.before is None:
        return True
    return (after - rounded(float(change.before))) * (change.after - change.before) > 0
