"""Effort: how much time and money a plan takes, in figures and in words for people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from genrecourse.errors import UserError, did_you_mean
from genrecourse.planning.round_numbers import rounded
from genrecourse.planning.units import with_unit

if TYPE_CHECKING:
    from genrecourse.planning.wording import Wording
    from genrecourse.rules.effort import Efforts
    from genrecourse.table.encoding import Array

WEEKS = 52 / 12  # in a month
IN_WEEKS = 0.85  # months: below, a time is said in weeks
IN_YEARS = 23.5  # months: from here on, a time is said in years, and halves of years up to ten
DECIMALS = 9  # of months and money: fewer than arithmetic leaves
SORTED_BY = ("time", "money", "changes", "cost")


@dataclass(frozen=True)
class Effort:
    """What the changes of one plan take, by the policy.

    months, money: None if nothing is known. If some change is not stated, `some_unknown` says so,
    and both are lower bounds.

    >>> Effort(months=8.2, money=2040.0, changes=2, currency="DM").to_dict()["months"]
    8.2
    """

    months: float | None
    money: float | None
    changes: int  # how many features the person changes
    currency: str = ""
    months_at_least: bool = False  # the policy does not say how long every change takes
    money_at_least: bool = False  # the policy does not say what every change costs

    @classmethod
    def of(cls, efforts: Efforts | None, F: Array, F_plus: Array, changes: int) -> Effort | None:
        """Return the effort of a change from F (d,) to F_plus (d,); None: nothing is known."""
        if efforts is None:
            return None
        months, more_months = _known(efforts, "months", F, F_plus)
        money, more_money = _known(efforts, "price", F, F_plus)
        if months is None and money is None:
            return None
        return cls(months, money, changes, efforts.stated.currency, more_months, more_money)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "months": self.months,
            "money": self.money,
            "changes": self.changes,
            "currency": self.currency,
            "months_at_least": self.months_at_least,
            "money_at_least": self.money_at_least,
        }

    @classmethod
    def of_dict(cls, data: dict[str, Any]) -> Effort:
        """Return what `to_dict` was called on; more keys are left out.

        >>> made = Effort(8.0, None, 2, months_at_least=True)
        >>> Effort.of_dict(made.to_dict() | {"text": "at least 8 months"}) == made
        True
        """
        return cls(
            data["months"],
            data["money"],
            data["changes"],
            data["currency"],
            data["months_at_least"],
            data["money_at_least"],
        )

    def time_text(self, words: Wording) -> str:
        """Return the time in words, such as "about 8 months"; empty if it is not known."""
        if self.months is None:
            return ""
        if self.months == 0:
            return words("effort.no_time")
        return _about(time_in_words(self.months, words), words, at_least=self.months_at_least)

    def money_text(self, words: Wording) -> str:
        """Return the money in words, such as "about 2,000 DM"; empty if it is not known."""
        if self.money is None:
            return ""
        if self.money == 0:
            return words("effort.no_money")
        money = with_unit(_money(self.money, words), self.currency, words)
        return _about(money, words, at_least=self.money_at_least)

    def to_text(self, words: Wording) -> str:
        """Return time and money as one phrase.

        >>> from genrecourse.planning.wording import english
        >>> Effort(8.2, 2040.0, 2, "DM").to_text(english())
        'about 8 months and about 2,000 DM'
        """
        parts = [text for text in (self.time_text(words), self.money_text(words)) if text]
        return words("effort.both", time=parts[0], money=parts[1]) if len(parts) > 1 else parts[0]


def _known(efforts: Efforts, what: Any, F: Array, F_plus: Array) -> tuple[float | None, bool]:
    """Return what is known of the months or the price of a plan, and whether a part is missing."""
    if not efforts.stated.states(what):
        return None, False
    parts = efforts.of_features(what, F, F_plus)
    unknown = np.isnan(parts)
    known = float(efforts.total(what, np.where(unknown, 0.0, parts)))
    if unknown.any() and known == 0:  # "at least nothing" says nothing
        return None, True
    return round(known, DECIMALS), bool(unknown.any())


def _about(amount: str, words: Wording, *, at_least: bool) -> str:
    return words("effort.at_least" if at_least else "effort.about", amount=amount)


def time_in_words(months: float, words: Wording) -> str:
    """Return a time as people say it: in weeks, months, or years.

    >>> from genrecourse.planning.wording import english
    >>> [time_in_words(each, english()) for each in (0.1, 0.5, 1, 8.4, 30, 150)]
    ['a few days', '2 weeks', '1 month', '8 months', '2.5 years', '13 years']
    """
    if months < IN_WEEKS:
        weeks = round(months * WEEKS)
        return _counted(words, "week", weeks) if weeks else words("effort.days")
    if months < IN_YEARS:
        return _counted(words, "month", round(months))
    years = months / 12
    return _counted(words, "year", round(2 * years) / 2 if years < 10 else math.floor(years + 0.5))


def _counted(words: Wording, unit: str, n: float) -> str:
    name = f"effort.{unit}" if n == 1 else f"effort.{unit}s"
    return words(name, n=words.number(f"{n:,g}"))


def _money(amount: float, words: Wording) -> str:
    """Return a sum of money in round numbers: two digits, and no part of a unit from ten on."""
    return words.number(f"{rounded(amount, 2):,.10g}")


# ---- in which order -----------------------------------------------------------------------------


def check_sort(where: str, by: str) -> None:
    """Raise a UserError if plans cannot be sorted by this.

    >>> check_sort("plans", "time")
    >>> check_sort("plans", "tme")
    Traceback (most recent call last):
    genrecourse.errors.UserError: plans: sort is 'tme' (did you mean 'time'?); it must be one of ...
    """
    if by not in SORTED_BY:
        close = did_you_mean(str(by), SORTED_BY)
        raise UserError(f"{where}: sort is {by!r}{close}; it must be one of {list(SORTED_BY)}")


def check_stated(where: str, by: str, efforts: Efforts | None) -> None:
    """Raise a UserError if plans are to be sorted by something of which no policy says anything.

    >>> check_stated("plans", "cost", None)
    >>> check_stated("plans", "time", None)
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: plans: sort is 'time', but no policy in force ...
    """
    what = {"time": "months", "money": "price"}.get(by)
    if what is not None and (efforts is None or not efforts.stated.states(what)):
        raise UserError(
            f"{where}: sort is '{by}', but no policy in force says what changes take; state "
            f"'{what}' in [effort.changes] of the policy, or sort by 'changes' or 'cost'"
        )


def order_of(effort: Effort | None, by: str) -> tuple[bool, bool, float]:
    """Return what plans are sorted by: what is known comes before lower bounds and the unknown.

    >>> order_of(None, "time") > order_of(Effort(90.0, None, 1), "time")
    True
    """
    value = None if effort is None else (effort.months if by == "time" else effort.money)
    if effort is None or value is None:
        return True, True, math.inf
    return False, effort.months_at_least if by == "time" else effort.money_at_least, value
