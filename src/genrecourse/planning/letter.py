"""What a letter says to a person about their plan, or about that there is none.

The words come from a template, one TOML file for each language (`letters/`). A letter shows no
score, no likelihood and no column name. Its numbers are those of `round_numbers`.
"""

from __future__ import annotations

import datetime
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genrecourse.errors import UserError, did_you_mean, shown
from genrecourse.planning.letter_form import Items, Letter, filled
from genrecourse.planning.round_numbers import DIGITS, is_in_round, is_round, rounded
from genrecourse.planning.wording import Wording, checked, name_of, read_sentences, unbroken
from genrecourse.table.text_files import path_of

if TYPE_CHECKING:
    from genrecourse.planning.plans import BlockingRule, Change, Plan
    from genrecourse.table.schema import Feature

FOLDER = Path(__file__).parent / "letters"
VALID = 90  # days, unless the plan counts on more time
# tables of a template whose names differ between languages, or that older templates lack
FREE = ("singular", "days", "effort")
COMPARISONS = {"<": "less", "<=": "at_most", ">": "more", ">=": "at_least"}
COMPARED = re.compile(r"(<=?|>=?)\s*(\d.*)")  # a level such as "< 100 DM"
PLAN_FIELDS = (
    "changes",
    "together",
    "effort",
    "follows",
    "second_way",
    "third_way",
    "alone",
    "untouched",
)
NO_PLAN_FIELDS = ("reason", "tried")
DETAIL_FIELDS = ("sender", "date", "reference", "greeting", "valid", "contact")


@dataclass(frozen=True)
class LetterDetails:
    """What a letter says besides the plan; whatever is empty is left out or worded generally.

    date: of the letter, also as text such as "2026-11-18". valid_days: None for 90, or for as many
    days as the plan counts on time to pass. sender, contact: may have several lines.

    >>> LetterDetails.of({"date": "2026-11-18", "sender": "Bank"}).date
    datetime.date(2026, 11, 18)
    """

    date: datetime.date | None = None
    valid_days: int | None = None
    sender: str = ""
    recipient: str = ""
    reference: str = ""
    contact: str = ""

    @classmethod
    def of(cls, details: Mapping[str, Any]) -> LetterDetails:
        """Return the details with these names; an unknown name or a wrong value is a UserError."""
        known = [each.name for each in fields(cls)]
        for name in details:
            if name not in known:
                close = did_you_mean(name, known)
                raise UserError(f"a letter has no '{name}'{close}; it has {', '.join(known)}")
        date, days = details.get("date"), details.get("valid_days")
        if days is not None and not (isinstance(days, int) and days >= 1):
            raise UserError(
                f"valid_days is {shown(days)}; it must be a whole number of days from 1"
            )
        return cls(**{**details, "date": None if date is None else _date(date)})


def _date(value: Any) -> datetime.date:
    try:
        return value if isinstance(value, datetime.date) else datetime.date.fromisoformat(value)
    except (TypeError, ValueError):
        raise UserError(
            f"the date of a letter is {shown(value)}; write it as year, month and day: 2026-11-18"
        ) from None


# ---- templates ------------------------------------------------------------------------------


@cache
def _english() -> Wording:
    return Wording(read_sentences(FOLDER / "en.toml"))


def letter_template(template: str | os.PathLike[str]) -> Wording:
    """Return the words of letters: of a language that is shipped, or of a file.

    >>> letter_template("de")("value.missing")
    'nicht angegeben'
    """
    shipped = sorted(path.stem for path in FOLDER.glob("*.toml"))
    path = path_of(template, "the letter")
    if str(template) in shipped:
        path = FOLDER / f"{template}.toml"
    if not path.is_file():
        raise UserError(
            f"no letter '{template}': it is neither a language of the library ({shipped}) nor a "
            f"file; to write your own, edit a copy of {FOLDER / 'en.toml'}"
        )
    more = {
        "letter.plan": (*DETAIL_FIELDS, *PLAN_FIELDS),
        "letter.no_plan": (*DETAIL_FIELDS, *NO_PLAN_FIELDS),
    }
    where = path.name if template in shipped else str(path)
    return checked(read_sentences(path), where, _english(), free=FREE, more=more)


# ---- the letter -----------------------------------------------------------------------------


def letter_about(plan: Plan, template: str | os.PathLike[str], details: LetterDetails) -> Letter:
    """Return the letter about a plan and its alternatives, or about that there is no plan.

    >>> from genrecourse.planning.plans import Plan
    >>> nothing = Plan("Ada", "no-plan", 0.3, 0.5, reason_code="nothing-may-change")
    >>> letter = letter_about(nothing, "en", LetterDetails())
    >>> letter.blocks[0].text
    'No change that we can suggest'
    """
    words = letter_template(template)
    if plan.status == "already-accepted":
        raise UserError(
            f"the model already accepts person {plan.person!r}: there is nothing to change and no "
            "letter to write; choose a person whom it rejects"
        )
    if plan.fault is not None:
        raise UserError(
            f"there is no letter to person {plan.person!r}, since the model was not asked. "
            f"{plan.reason}"
        )
    said = [_Said(each, words) for each in plan.every if _round_values(each) is not None]
    name, values = "letter.no_plan", dict[str, str | Items]()
    if said:
        name, values = "letter.plan", _about_plans(said, words)
    else:
        values = {"reason": _reason(plan, words), "tried": _tried(plan, words)}
    values |= _details(details, said[0].days if said else 0, words)
    blocks = filled(words.raw(name), values, f"the letter {template}, '{name}'")
    return Letter(blocks, words("code"), words.raw("change.item"))


def _details(details: LetterDetails, days: int, words: Wording) -> dict[str, str | Items]:
    """Return the fields that are the same for every plan. days: that the plan counts on."""
    valid = details.valid_days or max(VALID, days)
    until = words("parts.valid_for", days=words.number(f"{rounded(valid):,.0f}"))
    if details.date is not None:
        last = details.date + datetime.timedelta(days=valid)
        until = words("parts.valid_until", date=_in_words(last, words))
    reference = words("parts.reference", reference=details.reference)
    greeting = words("parts.greeting", recipient=details.recipient)
    return {
        "sender": details.sender,
        "date": "" if details.date is None else _in_words(details.date, words),
        "reference": reference if details.reference else "",
        "greeting": greeting if details.recipient else words("parts.greeting_general"),
        "valid": until,
        "contact": details.contact or words("parts.contact"),
    }


def _in_words(date: datetime.date, words: Wording) -> str:
    return words("parts.date", day=date.day, month=words(f"months.{date.month}"), year=date.year)


# ---- a plan ---------------------------------------------------------------------------------


def _round_values(plan: Plan) -> Mapping[str, Any] | None:
    """Return the numbers of the plan that were rounded, by feature; None: there is none."""
    found = plan.round_numbers
    if found is not None and found.fits(change.feature.name for change in plan.changes):
        return found.values
    return {} if all(map(is_in_round, plan.changes)) else None


class _Said:
    """What a letter says about one plan."""

    def __init__(self, plan: Plan, words: Wording):
        values = _round_values(plan)
        assert values is not None
        self.plan, self.words = plan, words
        self.changes = [_worded(each, values, words) for each in plan.changes]
        follows = [_worded(each, values, words) for each in plan.consequences]
        self.follows = [each for each in follows if each.before != each.after]

    @property
    def actions(self) -> Items:
        """What the person changes."""
        weights = [each.feature.cost_weight for each in self.changes]
        return tuple(
            (_title(each), _action(each, self.words, is_hard=weight > 1))
            for each, weight in zip(self.changes, weights, strict=True)
        )

    @property
    def by_itself(self) -> Items:
        """What then changes by itself."""
        return tuple((_title(each), _consequence(each, self.words)) for each in self.follows)

    @property
    def days(self) -> int:
        """The most days that the plan counts on time to pass."""
        counted = [
            math.ceil(feature.horizon * float(self.words(f"days.{feature.unit}")))
            for feature in (each.feature for each in self.follows)
            if feature.horizon is not None and f"days.{feature.unit}" in self.words
        ]
        return max(counted, default=0)


def _about_plans(said: list[_Said], words: Wording) -> dict[str, str | Items]:
    first, (second, third) = said[0], ([each.actions for each in said[1:3]] + [(), ()])[:2]
    about = first.plan.round_numbers
    several = len(first.changes) > 1
    return {
        "changes": first.actions,
        "together": " ".join(
            words(f"parts.{name}")
            for name, applies in (("together", several), ("fragile", first.plan.is_fragile))
            if applies
        ),
        "effort": _effort(first.plan, words),
        "follows": first.by_itself,
        "second_way": second,
        "third_way": third,
        "alone": _alone(first, about.not_enough if about else (), words),
        "untouched": _named("parts.untouched", about.untouched if about else (), words),
    }


def _effort(plan: Plan, words: Wording) -> str:
    """Return how much time and money the plan takes; empty if that, or its words, are unknown."""
    effort = plan.effort
    if effort is None or "effort.section" not in words:
        return ""
    said = words("effort.section", effort=effort.to_text(words))
    if effort.months_at_least or effort.money_at_least:
        return words("effort.section_known", said=said)
    return said


def _alone(said: _Said, not_enough: Iterable[str], words: Wording) -> str:
    """Return a sentence about the changes that h does not accept alone."""
    names = set(not_enough)
    found = [name_of(each.feature) for each in said.changes if each.feature.name in names]
    if found and len(found) == len(said.changes):
        return words("parts.alone")
    return _named("parts.alone_some", found, words)


def _named(sentence: str, features: Iterable[str], words: Wording) -> str:
    named = "; ".join(_line(feature) for feature in features)
    return words(sentence, features=named) if named else ""


def _worded(change: Change, values: Mapping[str, Any], words: Wording) -> Change:
    """Return the change in the words of the letter: its round numbers, and no column name."""
    feature, before, after = change.feature, change.before, change.after
    if feature.is_category:
        spaced = [_spaced(before, words), _spaced(after, words)]
        before, after = spaced if spaced[0] != spaced[1] else (before, after)
    else:
        after = _in_round(values.get(feature.name, after))
        before = _in_round(before)
    named = _feature(feature)
    return replace(change, feature=named, before=before, after=after, language=words, digits=DIGITS)


def _feature(feature: Feature) -> Feature:
    return feature.model_copy(update={"wording": _line(name_of(feature))})


def _in_round(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return rounded(float(value)) if is_number else value


def _spaced(level: Any, words: Wording) -> Any:
    """Return a level as words: "rented_flat" is "rented flat", and "< 100" is "less than 100"."""
    if not isinstance(level, str):
        return level
    text = _line(level.replace("_", " "))
    compared = COMPARED.fullmatch(text)
    if compared is None:
        return text
    return words(f"value.{COMPARISONS[compared[1]]}", value=compared[2])


def _line(text: str) -> str:
    """Return a text of the table without line breaks."""
    return " ".join(text.split())


def _title(change: Change) -> str:
    label = change.feature.label
    return label[:1].upper() + label[1:]


def _action(change: Change, words: Wording, *, is_hard: bool) -> str:
    before, after = map(unbroken, change.words)
    if change.before is None:
        name = "change.give"
    elif change.feature.is_category or isinstance(change.after, str | bool):
        name = "change.change"
    else:
        name = "change.raise" if change.after > change.before else "change.lower"
    said = words(name, before=before, after=after)
    if change.safety is not None:
        said = words("change.safety", said=said)
    return words("change.effort", said=said) if is_hard else said


def _consequence(change: Change, words: Wording) -> str:
    before, after = map(unbroken, change.words)
    feature = change.feature
    if feature.horizon is None or f"singular.{feature.unit}" not in words:
        return words("change.follows", before=before, after=after)
    time = unbroken(replace(change, before=feature.horizon).words[0])
    return words("change.with_time", before=before, after=after, time=time)


# ---- no plan --------------------------------------------------------------------------------


def _reason(plan: Plan, words: Wording) -> str:
    """Return why nothing is suggested: a rule that stands in the way, if one is known."""
    if plan.every:
        return words("reason.not-round")
    if plan.reason_code == "rules-block":
        shown = plan.blocking_rules_shown
        if not shown:
            return words("reason.fixed")
        return words("reason.rules-block", rule=_rule(shown[0], words))
    nearest, over = plan.nearest, plan.reason_code.replace("-", "_")
    if nearest is not None and f"effort.{over}" in words:
        text = nearest.time_text(words) if over == "over_months" else nearest.money_text(words)
        if text:
            return words(f"effort.{over}", least=text)
    code = "no-promise" if plan.reason_code == "cannot-promise" else plan.reason_code
    return words(f"reason.{code}" if f"reason.{code}" in words else "reason.other")


def _rule(rule: BlockingRule, words: Wording) -> str:
    """Return the rule in words; its limits only if they are round numbers."""
    if rule.feature is None:
        return replace(rule, language=words).rule
    feature = rule.feature
    values = rule.value if isinstance(rule.value, list | tuple) else (rule.value,)
    limits = [*(feature.range or ()), *([feature.max_step] if feature.max_step else []), *values]
    if not all(is_round(each) and each not in (math.inf, -math.inf) for each in limits):
        return words("rules.limit", feature=_line(name_of(feature)))
    return replace(rule, feature=_feature(feature), language=words).rule


def _tried(plan: Plan, words: Wording) -> str:
    """Return how much was tried, in a round number; empty if nothing was."""
    asked = plan.evidence.asked if plan.evidence and not plan.every else 0
    return words("parts.tried", n=words.number(f"{rounded(asked, 2):,.0f}")) if asked else ""
