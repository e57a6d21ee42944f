"""Cards: what the page shows of a plan, as texts and as places on small bars.

Places are shares of a bar's width in percent. A template draws them as attributes of SVG, since the
page's content security policy allows no style in a tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from genrecourse.planning.plans import score_words
from genrecourse.planning.wording import name_of

if TYPE_CHECKING:
    from genrecourse.planning.plans import BlockingRule, Change, Plan
    from genrecourse.table.encoding import TableEncoder

EDGE = 3.0  # percent of a bar that stay free at each end, so that no mark is cut off


@dataclass(frozen=True)
class ChangeLine:
    """One change: from what to what, and where both lie on the scale of the feature, if it has one.

    low, high: the ends of that scale, in words.
    """

    label: str
    before: str
    after: str
    why_safe: str = ""
    bar: tuple[float, float] | None = None

    @classmethod
    def of(cls, change: Change, encoder: TableEncoder) -> ChangeLine:
        """Return the line about one change."""
        before, after = change.words
        bar = _places(change, encoder)
        return cls(name_of(change.feature), before, after, change.safety_text, bar)


@dataclass(frozen=True)
class Sure:
    """One experiment on how well a plan lasts: k of n tries accept it.

    dots: for few tries, whether each accepts it; percent: the share of them.
    """

    title: str
    k: int
    n: int
    sentence: str

    @property
    def dots(self) -> list[bool]:
        return [i < self.k for i in range(self.n)] if self.n <= 12 else []

    @property
    def percent(self) -> float:
        return round(100 * self.k / self.n, 1)


@dataclass(frozen=True)
class ScoreBar:
    """The model's score against its cutoff, and with a plan. Words, and places in percent."""

    now: str
    cutoff: str
    low: str
    high: str
    now_at: float
    cutoff_at: float
    then: str = ""
    then_at: float | None = None

    @classmethod
    def of(cls, plan: Plan, ends: tuple[float, float]) -> ScoreBar:
        """Return the bar of a plan, or of a decision without one. ends: of the scores."""
        assert plan.score_before is not None  # the row could be read
        scores = [plan.score_before, plan.cutoff]
        scores += [] if plan.score_after is None else [plan.score_after]
        words = score_words(*scores, language=plan.language)
        places = [_on_scale(score, *ends) for score in scores]
        then = (words[2], places[2]) if len(words) > 2 else ("", None)
        low, high = (f"{end:g}" for end in ends)
        return cls(words[0], words[1], low, high, places[0], places[1], *then)


@dataclass(frozen=True)
class Card:
    """One plan of a person. number: from 1, in the order in which the page shows the plans."""

    number: int
    plan: Plan
    changes: Sequence[ChangeLine]
    score: ScoreBar
    sure: Sequence[Sure]
    cost: str

    @classmethod
    def of(cls, number: int, plan: Plan, encoder: TableEncoder, ends: tuple[float, float]) -> Card:
        """Return the card of a plan."""
        cost = "" if plan.cost is None else plan.language.number(f"{plan.cost:.2f}")
        return cls(
            number,
            plan,
            [ChangeLine.of(change, encoder) for change in plan.changes],
            ScoreBar.of(plan, ends),
            _sure(plan),
            cost,
        )

    @property
    def title(self) -> str:
        n = len(self.changes)
        return f"{n} change" if n == 1 else f"{n} changes"

    @property
    def notes(self) -> list[str]:
        """What else is to say: the promise, and that there are many changes."""
        return self.plan.prospects[: len(self.plan.prospects) - len(self.sure)]

    @property
    def effort(self) -> dict[str, str]:
        """What the plan takes in people's units, by what it is called."""
        if self.plan.effort is None:
            return {}
        words = self.plan.language
        both = {
            "Time": self.plan.effort.time_text(words),
            "Money": self.plan.effort.money_text(words),
        }
        return {name: text for name, text in both.items() if text}

    def change_of(self, label: str) -> str:
        """Return what a feature becomes; empty if it stays."""
        return next((line.after for line in self.changes if line.label == label), "")


@dataclass(frozen=True)
class Blocked:
    """A rule that alone prevents a plan, and what would be possible without it: no offer.

    key: takes the rule back, if the person set it; empty: it is not theirs.
    """

    rule: str
    changes: Sequence[ChangeLine]
    score: str
    key: str = ""

    @classmethod
    def of(cls, rule: BlockingRule, plan: Plan, encoder: TableEncoder, key: str) -> Blocked:
        """Return what the page shows of a blocking rule."""
        score = score_words(rule.score_after, plan.cutoff, language=plan.language)[0]
        lines = [ChangeLine.of(change, encoder) for change in rule.changes]
        return cls(rule.rule, lines, score, key)


def compared(cards: Sequence[Card], numbers: Sequence[int]) -> list[Card]:
    """Return the cards with these numbers if they are at least two, else none."""
    found = [card for card in cards if card.number in numbers]
    return found if len(found) > 1 else []


def labels_in(cards: Sequence[Card]) -> dict[str, str]:
    """Return the features that any of the plans changes, with their values today."""
    return {line.label: line.before for card in cards for line in card.changes}


def effort_names(cards: Sequence[Card]) -> list[str]:
    """Return which efforts are known of any of the plans."""
    return list(dict.fromkeys(name for card in cards for name in card.effort))


def _sure(plan: Plan) -> list[Sure]:
    """Return the experiments on a plan; their sentences are the last of its prospects."""
    titles = ("Models trained again", "Numbers a little off")
    both = [
        (title, share)
        for title, share in zip(titles, (plan.retrained, plan.imprecise), strict=True)
        if share is not None
    ]
    sentences = plan.prospects[len(plan.prospects) - len(both) :]
    return [
        Sure(title, share.k, share.n, sentence)
        for (title, share), sentence in zip(both, sentences, strict=True)
    ]


def _places(change: Change, encoder: TableEncoder) -> tuple[float, float] | None:
    """Return where both values lie between the smallest and the largest that the model knows."""
    feature, values = change.feature, (change.before, change.after)
    if any(value is None or value != value for value in values):
        return None
    if feature.is_category:
        if not feature.ordered or len(feature.categories) < 2:
            return None
        levels = [feature.categories.index(value) for value in values]
        return _on_scale(levels[0], 0, len(feature.categories) - 1), _on_scale(
            levels[1], 0, len(feature.categories) - 1
        )
    block = encoder.blocks[encoder.schema.names.index(feature.name)]
    numbers = [float(value) for value in values]
    low, high = min(block.low, *numbers), max(block.low + block.span, *numbers)
    return _on_scale(numbers[0], low, high), _on_scale(numbers[1], low, high)


def _on_scale(value: float, low: float, high: float) -> float:
    """Return a place in percent, a little away from both ends.

    >>> _on_scale(0.5, 0, 1), _on_scale(0, 0, 1)
    (50.0, 3.0)
    """
    share = (value - low) / (high - low) if high > low else 0.5
    return round(EDGE + (100 - 2 * EDGE) * min(max(share, 0.0), 1.0), 2)
