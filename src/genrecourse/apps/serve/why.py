"""Why: the card with reasons, which stands apart from plans.

A reason says what moved the score; it is no advice. What nobody can change says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from genrecourse.planning.wording import english

if TYPE_CHECKING:
    from genrecourse.advice.reasons import Reason, Reasons


MOST = 5  # reasons under a heading


@dataclass(frozen=True)
class ReasonLine:
    """One reason in words, and its size as a share of the largest one, in percent.

    flag: that it cannot be changed, and why; empty: the person may change it. way: "raised" or
    "lowered". A line that only says that there are more reasons has neither size nor way.
    """

    text: str
    flag: str = ""
    percent: float = 0.0
    way: str = ""

    @classmethod
    def of(cls, sentence: str, reason: Reason, largest: float) -> ReasonLine:
        """Return the line of one reason. sentence: as `Reasons.groups` words it."""
        text = sentence.removesuffix(f" {reason.flag}.") if reason.flag else sentence
        way = "lowered" if reason.contribution < 0 else "raised"
        size = 100 * abs(reason.contribution) / largest
        return cls(text.rstrip(".") + ".", reason.flag, round(size, 1), way)


@dataclass(frozen=True)
class WhyCard:
    """The reasons for one decision."""

    title: str
    about: str
    groups: Sequence[tuple[str, Sequence[ReasonLine]]]  # headings with their reasons
    none: str  # said where nothing is clear enough to be called a reason
    remarks: Sequence[str]

    @classmethod
    def of(cls, made: Reasons) -> WhyCard:
        """Return the card: first what led to the decision, and then the rest."""
        words = english()
        both = [made.lowered, made.raised]
        lists = [found for found in (both[::-1] if made.is_accepted else both) if found]
        largest = max((abs(each.contribution) for found in lists for each in found), default=1.0)
        groups = [
            (heading.rstrip(":"), _lines(sentences, found, largest))
            for (heading, sentences), found in zip(made.groups(MOST), lists, strict=True)
        ]
        none = "" if groups else words("why.none")
        return cls(words("why.title"), made.about, groups, none, made.remarks)


def _lines(sentences: Sequence[str], found: Sequence[Reason], largest: float) -> list[ReasonLine]:
    """Return a line for each sentence; the last may only count what is left out."""
    lines = [ReasonLine.of(said, each, largest) for said, each in zip(sentences, found[:MOST])]  # noqa: B905
    return lines + [ReasonLine(said) for said in sentences[len(lines) :]]
