"""PersonForm: the form of the page. It is made from the schema, and it reads what was sent.

Fields are named by the place of their feature, f0, f1 and so on, and levels by their place, so that
no name or level of a table is ever a name in HTML. A mistake is kept with the field that it is
about; whoever sent the form reads all of them at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.apps.serve.people import EXACT
from genrecourse.errors import UserError
from genrecourse.planning.plans import cell_value, in_words
from genrecourse.planning.wording import english, name_of
from genrecourse.rules.kinds import Rules, how_it_may_change

if TYPE_CHECKING:
    from genrecourse.advice.service import Service
    from genrecourse.table.schema import Feature

Sent = Mapping[str, Sequence[str]]  # the fields of a form, each with all its values

MISSING = "missing"  # what a choice sends for "not given"
LONGEST = 40  # letters of a number
_NUMBER = re.compile(r"[-+]?((\d+|\d{1,3}(,\d{3})+)(\.\d*)?|\.\d+)([eE][-+]?\d{1,2})?", re.ASCII)


@dataclass(frozen=True)
class Mistake:
    """What is wrong with one field, and what to do; an empty key: with the whole form.

    >>> Mistake("f0", "Give a number.", "income").in_full
    'Income: give a number.'
    """

    key: str
    text: str
    label: str = ""  # of the field

    @property
    def in_full(self) -> str:
        """The sentence with the name of the field, for the list of all mistakes."""
        if not self.label:
            return self.text
        return f"{self.label[:1].upper()}{self.label[1:]}: {self.text[:1].lower()}{self.text[1:]}"


@dataclass(frozen=True)
class FormField:
    """One feature as a question.

    key: its name in the form. may_change: whether a plan may change it. how: in which way, in a few
    words. usual: the smallest and the largest value that the model has learned from, in words.
    """

    key: str
    feature: Feature
    may_change: bool
    how: str = ""
    usual: str = ""
    is_signed: bool = False  # values below zero occur, so a keyboard needs a minus

    @property
    def label(self) -> str:
        return name_of(self.feature)

    @property
    def is_choice(self) -> bool:
        return self.feature.is_category

    @property
    def is_computed(self) -> bool:
        return self.feature.role == "derived"

    @property
    def choices(self) -> list[tuple[str, str]]:
        """What each choice sends, and its words."""
        levels = self.feature.categories
        found = [(str(i), in_words(self.feature, level)) for i, level in enumerate(levels)]
        return found + ([(MISSING, english()("value.missing"))] if self.feature.missing else [])

    @property
    def keyboard(self) -> str:
        """Which keyboard a phone shows."""
        if self.is_signed:
            return "text"
        return "numeric" if self.feature.decimals == 0 else "decimal"


@dataclass
class Filled:
    """The form as somebody filled it in: what was sent, what it means, and what is wrong with it.

    >>> Filled({"f0": ["12"]}).text("f0"), Filled({}).text("f0")
    ('12', '')
    """

    sent: Sent
    mistakes: list[Mistake] = field(default_factory=list)
    values: dict[str, Any] = field(
        default_factory=dict
    )  # by the name of the feature; None: missing
    example: int | None = None  # which example it is; None: none

    def text(self, key: str) -> str:
        """Return what was sent in a field, or an empty text."""
        return next(iter(self.sent.get(key, ())), "")

    def has(self, key: str, value: str) -> bool:
        """Whether a box or a choice with this value was taken."""
        return value in self.sent.get(key, ())

    def mistake(self, key: str) -> str:
        """Return what is wrong with a field, or an empty text."""
        return next((each.text for each in self.mistakes if each.key == key), "")

    def number(self, key: str, label: str) -> float | None:
        """Return the number in a field that may be empty, and note a mistake in it."""
        text = self.text(key).strip()
        if not text:
            return None
        try:
            return read_number(text)
        except UserError as error:
            self.mistakes.append(Mistake(key, str(error), label))
            return None


class PersonForm:
    """The questions of one model, in the order of its table.

    >>> from genrecourse import NearestNeighbour, Schema
    >>> from genrecourse.advice.service import Service
    >>> X = pd.DataFrame({"income": range(80), "home": ["own", "rent"] * 40})
    >>> h = lambda X: X["income"].to_numpy() / 80
    >>> form = PersonForm(Service(NearestNeighbour(h, Schema.infer(X)).fit(X)))
    >>> form.read({"f0": ["12"], "f1": ["1"]}).values
    {'income': 12.0, 'home': 'rent'}
    >>> [mistake.in_full for mistake in form.read({"f0": ["many"]}).mistakes]
    ['Income: “many” is no number; write it like 1200 or 0.5.', 'Home: choose an answer.']
    """

    def __init__(self, service: Service):
        method = service.method
        self.schema, self.like = service.schema, method.problem_.like
        rules = Rules() if service.policy is None else service.policy.stated.rules
        unread = method.planning_.unread
        self.fields = []
        for j, feature in enumerate(self.schema):
            may = feature.role == "mutable" and feature.name not in rules.lock
            may = may and not (unread is not None and bool(unread[j]))
            how = _how(feature, rules) if may else ""
            block = method.problem_.encoder.blocks[j]
            self.fields.append(
                FormField(
                    f"f{j}",
                    feature,
                    may,
                    how,
                    _usual(feature, block),
                    is_signed=block.low < 0,
                )
            )

    @property
    def changeable(self) -> list[FormField]:
        return [each for each in self.fields if each.may_change]

    @property
    def fixed(self) -> list[FormField]:
        return [each for each in self.fields if not each.may_change]

    # ---- what was sent --------------------------------------------------------------------------

    def read(self, sent: Sent) -> Filled:
        """Return the person that a form describes, with a mistake for each field that is wrong."""
        filled = Filled(sent)
        example = filled.text("example")
        filled.example = int(example) if re.fullmatch(r"[0-9]{1,3}", example) else None
        for each in self.fields:
            if not each.is_computed:
                try:
                    filled.values[each.feature.name] = _answer(each, filled)
                except UserError as error:
                    filled.mistakes.append(Mistake(each.key, str(error), each.label))
        if not filled.mistakes:
            self._compute(filled)
        return filled

    def _compute(self, filled: Filled) -> None:
        """Set the features that are computed from others."""
        for name, formula in self.schema.formulas().items():
            given = (filled.values[used] for used in formula.names)
            numbers = [np.array([math.nan if v is None else float(v)]) for v in given]
            with np.errstate(all="ignore"):
                value = float(formula(dict(zip(formula.names, numbers, strict=True)))[0])
            feature = self.schema[name]
            if not math.isfinite(value) and not feature.missing:
                text = (
                    f"{name_of(feature)} is computed from other answers, and these give no number."
                )
                filled.mistakes.append(Mistake("", text))
            rounded = value if feature.decimals is None else round(value, feature.decimals)
            filled.values[name] = rounded if math.isfinite(value) else None

    def person(self, filled: Filled) -> dict[str, Any]:
        """Return the person by the columns of the model's table, as the API takes it."""
        found: dict[str, Any] = {}
        for feature in self.schema:
            value = pd.Series([filled.values[feature.name]], dtype=object)
            columns = feature.split(value, self.like)
            found |= {name: _plain(cells.iloc[0]) for name, cells in columns.items()}
        return found

    def words(self, field: FormField, filled: Filled) -> str:
        """Return what a person answered to one question, as a text with its unit."""
        return in_words(field.feature, filled.values.get(field.feature.name))

    def filled_with(self, row: pd.DataFrame) -> Filled:
        """Return the form filled in with the first row of a table."""
        sent: dict[str, list[str]] = {}
        for each in self.fields:
            value = each.feature.values(row).iloc[0]
            if pd.isna(value):
                sent[each.key if each.is_choice else f"{each.key}-missing"] = [MISSING]
            elif each.is_choice:
                texts = [str(level) for level in each.feature.categories]
                sent[each.key] = [str(texts.index(str(value)))]
            else:
                sent[each.key] = [_plainly(value, each.feature.decimals)]
        return Filled(sent)


# ---- one answer -----------------------------------------------------------------------------


def _answer(each: FormField, filled: Filled) -> Any:
    """Return the value of one feature; raise a UserError that says what to give."""
    text, feature = filled.text(each.key).strip(), each.feature
    if each.is_choice:
        if text == MISSING and feature.missing:
            return None
        if text not in [sent for sent, _ in each.choices]:
            raise UserError("Choose an answer.")
        return feature.categories[int(text)]
    if feature.missing and filled.has(f"{each.key}-missing", MISSING):
        if text:
            raise UserError("Give a number or tick “not given”, not both.")
        return None
    if not text:
        raise UserError("Give a number" + (", or tick “not given”." if feature.missing else "."))
    value = read_number(text)
    if feature.decimals is not None and round(value, feature.decimals) != value:
        most = "none" if feature.decimals == 0 else f"at most {feature.decimals}"
        raise UserError(f"“{text}” has too many decimals; this number has {most}.")
    return value


def read_number(text: str) -> float:
    """Return the number that a person typed; raise a UserError if it is none.

    >>> read_number("1,200"), read_number(" -0.5 ")
    (1200.0, -0.5)
    >>> read_number("1,5")
    Traceback (most recent call last):
    genrecourse.errors.UserError: “1,5” is no number; write it like 1200 or 0.5.
    """
    text = text.strip()
    short = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    if len(text) > LONGEST or not _NUMBER.fullmatch(text):
        raise UserError(f"“{short}” is no number; write it like 1200 or 0.5.")
    return float(text.replace(",", ""))


def _plainly(value: Any, decimals: int | None) -> str:
    """Return a cell as a person would type it, with all its digits."""
    number = float(value)
    if decimals is not None and abs(round(number, decimals) - number) < 1e-9:
        return f"{number:.{decimals}f}"
    exact = value if isinstance(value, np.floating) else number
    text = str(np.format_float_positional(exact, trim="-"))
    return text if len(text) <= LONGEST else f"{number:.12g}"


def _how(feature: Feature, rules: Rules) -> str:
    """Return how a plan may change a feature, in a few words; empty: freely.

    >>> from genrecourse.table.schema import Feature
    >>> _how(Feature(name="debt", kind="number", direction="decrease", max_step=5), Rules())
    'only down, by at most 5'
    """
    how = how_it_may_change(feature, rules)
    for word, said in (("freely", ""), ("increase", "only up"), ("decrease", "only down")):
        if how.startswith(word):
            return said + how.removeprefix(word)
    return how


def _usual(feature: Feature, block: Any) -> str:
    """Return the ends of the values that the model has learned from; empty for a category."""
    if feature.is_category or feature.follows:
        return ""
    low, high = block.low, block.low + block.span
    return f"{in_words(feature, low)} to {in_words(feature, high)}"


def _plain(cell: Any) -> Any:
    """Return a cell as JSON has it: a number without decimals is a whole number."""
    value = cell_value(cell)
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return int(value)
    return value
