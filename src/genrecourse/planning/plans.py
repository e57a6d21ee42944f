"""Plan, Plans: what would change the model's decision on a person, in units and words.

A plan is told only if it holds: a person whose recourse h still rejects, or that breaks a rule, has
a status and a reason instead, and no way to get at the attempt. The wording never promises an
approval, which is not the model's to give.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any, overload

import numpy as np
import pandas as pd

from genrecourse.errors import UserError
from genrecourse.planning.binomial import Share
from genrecourse.planning.promise import Promise
from genrecourse.planning.wording import Wording, english
from genrecourse.table.schema import Feature, plain

STATUSES = ("ok", "already-accepted", "no-plan")

NO_BREAK = "\u00a0"  # a space at which no line ends
SHORT = 16  # letters of a value that stays on one line

# the columns of Plans.to_frame
NUMBERS = ("score_before", "score_after", "cutoff", "cost", "log_likelihood")
PLAN_COLUMNS = ("person", "status", "reason_code", "reason", "number", *NUMBERS)
CHANGE_COLUMNS = ("feature", "wording", "unit", "before", "after", "before_text", "after_text")


# ---- what a plan is made of -----------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """One feature, from x's value to x_plus's; None is missing."""

    feature: Feature
    before: Any
    after: Any
    language: Wording = field(default_factory=english, repr=False, compare=False)
    digits: int | None = field(default=None, repr=False, compare=False)  # of a number, at least

    @cached_property
    def _written(self) -> tuple[tuple[str, str], int | None]:
        """Both values in words, with as many digits as it takes to tell them apart; these."""
        for digits in (self.digits, *range((self.digits or 2) + 1, 18)):
            words = (
                in_words(self.feature, self.before, digits, self.language),
                in_words(self.feature, self.after, digits, self.language),
            )
            if words[0] != words[1]:
                break
        return words, digits

    @cached_property
    def words(self) -> tuple[str, str]:
        return self._written[0]

    @property
    def said(self) -> Any:
        """`after` as whoever reads the words understands it: a number may be rounded there."""
        value = cell_value(self.after)
        if value is None or isinstance(value, bool | str) or self.feature.is_category:
            return value
        return float(
            _number(float(value), self.feature.decimals, self._written[1]).replace(",", "")
        )

    def to_text(self) -> str:
        before, after = self.words
        return self.language("value.change", feature=self.feature.label, before=before, after=after)

    def to_dict(self) -> dict[str, Any]:
        return {
            "feature": self.feature.name,
            "wording": self.feature.label,
            "unit": self.feature.unit,
            "horizon": self.feature.horizon,
            "before": _json_value(self.before),
            "after": _json_value(self.after),
            "before_text": self.words[0],
            "after_text": self.words[1],
        }


@dataclass(frozen=True)
class Evidence:
    """What was tried before something was said (`enumeration`)."""

    proven: bool  # all changes of one and of two features over the values that occur were tried
    asked: int  # changes that h was asked about
    most: int  # values of a feature that changes of two were made of, at most; 0: none were tried
    draws: int = 0  # what the method tried by itself

    def to_dict(self) -> dict[str, Any]:
        said = "proven" if self.proven else "searched"
        return {"said": said, "asked": self.asked, "values": self.most, "draws": self.draws}


@dataclass(frozen=True)
class BlockingRule:
    """One rule, and what it alone keeps from being a plan: about the rule, not for the person."""

    kind: str  # as `relaxations.RelaxedRule` calls it
    feature: Feature | None  # that the rule is about, with the rule as one of its fields
    changes: tuple[Change, ...]
    score_after: float
    cost: float
    value: Any = None  # of a rule that no field of a feature can hold
    language: Wording = field(default_factory=english, repr=False, compare=False)

    @property
    def rule(self) -> str:
        """The rule in words."""
        feature, words, value = self.feature, self.language, self.value
        parts: dict[str, object] = {"kind": self.kind, "n": value, "relation": value}
        name = self.kind
        if feature is not None:
            parts["feature"] = feature.label
            name = feature.direction if self.kind == "direction" else self.kind
            low, high = feature.range or (-math.inf, math.inf)
            for part, end in (("low", low), ("high", high), ("step", feature.max_step)):
                parts[part] = in_words(feature, end, None, words)
            if isinstance(value, int | float):
                parts["value"] = in_words(feature, value, None, words)
            if name == "allowed":
                parts["values"] = ", ".join(in_words(feature, v, None, words) for v in value)
        elif name == "max_changes" and value == 1:
            name = "one_change"
        elif name == "max_cost":
            parts["cost"] = words.number(f"{value:g}")
        return words(f"rules.{name}" if f"rules.{name}" in words else "rules.other", **parts)

    def to_text(self) -> str:
        changes = "; ".join(change.to_text() for change in self.changes)
        return self.language("evidence.rule", rule=self.rule, changes=changes)

    def to_dict(self) -> dict[str, Any]:
        return {
            "rule": self.kind,
            "feature": None if self.feature is None else self.feature.name,
            "rule_text": self.rule,
            "score_after": self.score_after,
            "cost": self.cost,
            "changes": [change.to_dict() for change in self.changes],
        }


@dataclass(frozen=True)
class Row:
    """A whole x_plus, as the row of a table that many plans share."""

    table: pd.DataFrame
    place: int

    def to_dict(self) -> dict[str, Any]:
        """By the names of the columns; a date becomes text."""
        table = self.table
        return {str(n): _json_value(table.iat[self.place, j]) for j, n in enumerate(table.columns)}


# ---- one person -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """What would change h's decision on one person, or why there is nothing to say."""

    person: Any  # the row's index label
    status: str  # one of STATUSES
    score_before: float
    cutoff: float
    changes: tuple[Change, ...] = ()
    score_after: float | None = None
    cost: float | None = None
    log_likelihood: float | None = None
    reason_code: str = ""  # why the status is "no-plan"
    evidence: Evidence | None = None  # what "no-plan" rests on
    blocking_rules: tuple[
        BlockingRule, ...
    ] = ()  # rules that block, for who wrote them: see blocking_rules_shown
    cheapest: Evidence | None = None  # no change of one or two features that was tried costs less
    alternatives: tuple[Plan, ...] = ()  # further plans, which change other features
    consequences: tuple[Change, ...] = ()  # what then moves by itself: derived values, and time
    retrained: Share | None = None  # copies of h, trained again, that accept it (`endurance`)
    imprecise: Share | None = None  # noisy copies of x_plus that h accepts
    promise: Promise | None = None  # that was asked for; with "ok", it is made
    row: Row | None = field(default=None, repr=False, compare=False)  # the whole x_plus
    language: Wording = field(default_factory=english, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"the status '{self.status}' is none of {STATUSES}")
        if (self.status == "no-plan") != bool(self.reason_code):
            raise ValueError(f"the status '{self.status}' with the reason '{self.reason_code}'")
        told = any(
            value is not None
            for value in (
                self.score_after,
                self.cost,
                self.log_likelihood,
                self.retrained,
                self.imprecise,
                self.row,
            )
        )
        if self.status != "ok" and (self.changes or told or self.alternatives):
            raise ValueError(f"a plan with the status '{self.status}' must not be told")

    @property
    def every(self) -> tuple[Plan, ...]:
        """This plan and its alternatives; nothing where there is none."""
        return (self, *self.alternatives) if self.status == "ok" else ()

    @property
    def purpose(self) -> str:
        return self.language("plan.purpose")

    @property
    def reason(self) -> str:
        """Why there is no plan, and what that rests on; empty where there is one."""
        if self.status == "ok":
            return ""
        code, words = self.reason_code or self.status, self.language
        name = f"reasons.{code}" if f"reasons.{code}" in words else "reasons.other"
        said = words(name, code=code)
        if code == "nothing-may-change":  # then there was nothing to try
            return said
        return f"{said} {self._evidence}" if self.evidence else said

    @property
    def _evidence(self) -> str:
        assert self.evidence is not None
        name = "evidence.searched" if self.evidence.most == 0 else "evidence.grid"
        name = "evidence.proven" if self.evidence.proven else name
        return self.language(
            name,
            asked=self._count(self.evidence.asked),
            most=self.evidence.most,
            draws=self._count(self.evidence.draws),
        )

    @property
    def blocking_rules_shown(self) -> tuple[BlockingRule, ...]:
        """The blocking_rules that a person can be told of. What nobody can change about themselves (who
        is of one sex is not told of the other) is for whoever looks at the rules."""
        return tuple(opening for opening in self.blocking_rules if opening.kind != "immutable")

    @property
    def about_rules(self) -> str:
        """A sentence on the rule that alone stands in the way; empty where none does."""
        if self.blocking_rules_shown:
            return self.blocking_rules_shown[0].to_text()
        return self.language("evidence.fixed") if self.blocking_rules else ""

    def _count(self, n: int) -> str:
        return self.language.number(f"{n:,}")

    @property
    def facts(self) -> str:
        """The score and the price, in a line."""
        words = self.language
        if self.score_after is None:
            score, cutoff = score_words(self.score_before, self.cutoff, language=words)
            parts = [words("plan.score", before=score, cutoff=cutoff)]
        else:
            score, after, cutoff = score_words(
                self.score_before, self.score_after, self.cutoff, language=words
            )
            parts = [words("plan.scores", before=score, after=after, cutoff=cutoff)]
        if self.cost is not None:
            parts.append(words("plan.cost", cost=words.number(f"{self.cost:.2f}")))
        if self.log_likelihood is not None:
            likelihood = words.number(f"{self.log_likelihood:.1f}")
            parts.append(words("plan.likelihood", likelihood=likelihood))
        if self.cheapest is not None:
            name = "plan.cheapest" if self.cheapest.proven else "plan.cheapest_on_grid"
            parts.append(words(name, most=self.cheapest.most))
        return ", ".join(parts)

    @property
    def follows(self) -> str:
        """What moves by itself, in a line: nobody has to do it. Empty where nothing does."""
        said = "; ".join(_with_time(change) for change in self.consequences)
        return self.language("plan.follows", changes=said) if said else ""

    @property
    def remarks(self) -> list[str]:
        """All there is to say below the changes, a line each."""
        return [*([self.follows] if self.follows else []), self.facts, *self.prospects]

    @property
    def prospects(self) -> list[str]:
        """A sentence each: what is promised, and what it bears."""
        words, said = self.language, []
        if self.promise is not None and self.status == "ok":
            said.append(
                words(
                    "plan.promise",
                    share=self._percent(self.promise.share),
                    confidence=self._percent(1 - self.promise.delta),
                )
            )
        for name, share in (("retrained", self.retrained), ("imprecise", self.imprecise)):
            if share is not None:
                low, high = (f"{100 * end:.0f}" for end in (share.low, share.high))
                said.append(words(f"plan.{name}", k=share.k, n=share.n, low=low, high=high))
        return said

    def _percent(self, share: float) -> str:
        return self.language.number(f"{100 * share:.3g}")

    def to_text(self) -> str:
        words = self.language
        if self.status != "ok":
            lines = [words("plan.line", person=self.person, said=self.reason)]
            lines += [f"  {self.about_rules}"] if self.about_rules else []
            return "\n".join([*lines, f"  {self.facts}"])
        lines = [words("plan.line", person=self.person, said=self.purpose)]
        for plan in self.every:
            if plan is not self:
                lines.append(f"  {words('plan.another')}")
            lines += [f"  {change.to_text()}" for change in plan.changes]
            lines += [f"  {remark}" for remark in plan.remarks]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: no NaN, no numpy."""
        return {
            "person": _json_value(self.person),
            "status": self.status,
            "reason_code": self.reason_code,
            "reason": self.reason,
            "evidence": self.evidence.to_dict() if self.evidence else None,
            "blocking_rules": [opening.to_dict() for opening in self.blocking_rules_shown],
            "cutoff": self.cutoff,
            "promise": self.promise.to_dict() if self.promise else None,
            **self._told(),
            "alternatives": [plan._told() for plan in self.alternatives],
        }

    def _told(self) -> dict[str, Any]:
        """What differs between the plans of one person."""
        return {
            "score_before": self.score_before,
            "score_after": self.score_after,
            "cost": self.cost,
            "log_likelihood": self.log_likelihood,
            "cheapest": self.cheapest.to_dict() if self.cheapest else None,
            "retrained": self.retrained.to_dict() if self.retrained else None,
            "imprecise": self.imprecise.to_dict() if self.imprecise else None,
            "changes": [change.to_dict() for change in self.changes],
            "consequences": [change.to_dict() for change in self.consequences],
            "x_plus": self.row.to_dict() if self.row else None,
        }

    def to_json(self) -> str:
        return _json(self.to_dict())

    def to_frame(self) -> pd.DataFrame:
        return Plans((self,)).to_frame()

    def to_html(self) -> str:
        """A fragment that stands by itself, as in a notebook."""
        person, said = escape(str(self.person)), escape(self.reason or self.purpose)
        parts = [f"<p><strong>{person}</strong>: {said}</p>"]
        parts += [f"<p>{escape(self.about_rules)}</p>"] if self.about_rules else []
        for plan in self.every or (self,):
            if plan is not self:
                parts.append(f"<p>{escape(self.language('plan.another'))}</p>")
            remarks = "<br>".join(escape(remark) for remark in plan.remarks)
            parts.append(f"{plan.changes_html()}<p><small>{remarks}</small></p>")
        return f"<div>{''.join(parts)}</div>"

    def changes_html(self) -> str:
        """The changes alone, as a table; empty where there is no plan."""
        if self.status != "ok":
            return ""
        rows = "".join(
            f"<tr><th>{escape(change.feature.label)}</th>"
            f"<td>{escape(before)}</td><td>→{NO_BREAK}{escape(after)}</td></tr>"
            for change in self.changes
            for before, after in [map(unbroken, change.words)]
        )
        return f'<table class="changes"><tbody>{rows}</tbody></table>'

    def _repr_html_(self) -> str:
        return self.to_html()


# ---- several people -------------------------------------------------------------------------


@dataclass(frozen=True)
class Plans(Sequence[Plan]):
    """The answer for each person, in the order of the table; further plans are `alternatives`."""

    plans: tuple[Plan, ...]

    def __len__(self) -> int:
        return len(self.plans)

    def __iter__(self) -> Iterator[Plan]:
        return iter(self.plans)

    @overload
    def __getitem__(self, place: int) -> Plan: ...
    @overload
    def __getitem__(self, place: slice) -> Plans: ...
    def __getitem__(self, place: int | slice) -> Plan | Plans:
        return Plans(self.plans[place]) if isinstance(place, slice) else self.plans[place]

    def of(self, label: Any) -> Plan:
        """The plan of the person with this index label."""
        found = [plan for plan in self.plans if plan.person == label]
        if len(found) == 1:
            return found[0]
        if found:
            raise UserError(f"{len(found)} people have the label {label!r}; take one by position")
        some = ", ".join(repr(plan.person) for plan in self.plans[:3])
        raise UserError(f"no plan for {label!r}; the {len(self)} people begin with {some}")

    # ---- every plan shown, the first of each person and the alternatives ----------------------

    @property
    def shown(self) -> list[Plan]:
        return [each for plan in self.plans for each in plan.every]

    def x_plus(self) -> pd.DataFrame:
        """The whole row of every plan shown, in original units; the index names the person."""
        shown, parts, order = self.shown, [], []
        rows = [each.row for each in shown]
        if any(row is None for row in rows):
            raise UserError("these plans do not hold whole rows: ask the method for them again")
        tables = {id(row.table): row.table for row in rows if row is not None}
        for key, table in tables.items():
            mine = [i for i, row in enumerate(rows) if row is not None and id(row.table) == key]
            parts.append(table.iloc[[rows[i].place for i in mine]])  # type: ignore[union-attr]
            order += mine
        found = pd.concat(parts) if parts else pd.DataFrame()
        return found.iloc[np.argsort(order)].set_axis([each.person for each in shown])

    def with_shown(self, values: Sequence[dict[str, Any]]) -> Plans:
        """The same plans, with these fields set in every plan shown, in the order of `shown`."""
        left = iter(values)

        def told(plan: Plan) -> Plan:
            if plan.status != "ok":
                return plan
            first, *rest = (replace(each, **next(left)) for each in plan.every)
            return replace(first, alternatives=tuple(rest))

        return Plans(tuple(told(plan) for plan in self.plans))

    # ---- in words and as data -----------------------------------------------------------------

    def to_text(self) -> str:
        return "\n\n".join([*(plan.to_text() for plan in self.plans), *self._note])

    @property
    def _note(self) -> list[str]:
        """What recourse is not, said once."""
        told = [plan for plan in self.plans if plan.status == "ok"]
        return [told[0].language("plan.note")] if told else []

    def to_json(self) -> str:
        return _json([plan.to_dict() for plan in self.plans])

    @classmethod
    def from_json(
        cls,
        text: str,
        *,
        like: pd.DataFrame | None = None,
        language: str | os.PathLike[str] | Wording = "en",
        where: str = "the plans",
    ) -> Plans:
        """Plans that `to_json` wrote, with their whole rows: enough to show and to `recheck` them.

        Openings, which are about rules and not for people, are not read again. like: a table whose
        dtypes the rows are given, for a model that asks for categories, say; JSON has none.
        language: of the words around what was said then. where: for messages.
        """
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise UserError(f"{where} are not JSON: {error}") from None
        if not isinstance(data, list) or not all(isinstance(each, dict) for each in data):
            raise UserError(f"{where} should be a list of plans, as Plans.to_json writes it")
        told = [one for each in data for one in (each, *each.get("alternatives", ()))]
        rows = [one.get("x_plus") for one in told]
        table = pd.DataFrame([row for row in rows if row is not None])
        table = table if like is None or table.empty else _as_in(table, like, where)
        places = iter(range(len(table)))
        whole = [None if row is None else Row(table, next(places)) for row in rows]
        left = iter(whole)
        try:
            words = Wording.of(language)
            return cls(tuple(_read_person(each, left, words) for each in data))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{where} were not written by Plans.to_json of this version: "
                f"{type(error).__name__}: {error}; ask for them again"
            ) from None

    def to_frame(self) -> pd.DataFrame:
        """One row a change; `number` counts a person's plans. A person with none has one row, with
        the reason and no feature."""
        nothing = dict.fromkeys(CHANGE_COLUMNS)
        rows: list[dict[str, Any]] = []
        for plan in self.plans:
            about = plan.to_dict() | {"person": plan.person, "number": None}
            if plan.status != "ok":
                rows.append(about | nothing)
            for number, each in enumerate(plan.every, start=1):
                told = about | each._told() | {"number": number}
                rows += [told | change for change in told["changes"]]
        return pd.DataFrame(
            {
                # objects, so that a whole number stays one beside text and None
                name: pd.Series(
                    [row[name] for row in rows], dtype="float64" if name in NUMBERS else object
                )
                for name in (*PLAN_COLUMNS, *CHANGE_COLUMNS)
            }
        )

    def to_html(self) -> str:
        note = [f"<p><small>{escape(note)}</small></p>" for note in self._note]
        return "".join([*(plan.to_html() for plan in self.plans), *note])

    def _repr_html_(self) -> str:
        return self.to_html()


# ---- from JSON ------------------------------------------------------------------------------


def _as_in(table: pd.DataFrame, like: pd.DataFrame, where: str) -> pd.DataFrame:
    """With the dtypes of another table; its categories may be fewer than the plans'."""
    for name in table.columns.intersection(like.columns):
        dtype = like[name].dtype
        if isinstance(dtype, pd.CategoricalDtype):
            more = [v for v in table[name].dropna().unique() if v not in dtype.categories]
            dtype = pd.CategoricalDtype([*dtype.categories, *more], dtype.ordered)
        try:
            table[name] = table[name].astype(dtype)
        except (TypeError, ValueError) as error:
            raise UserError(
                f"{where} have values of '{name}' that do not fit its dtype {dtype}: {error}"
            ) from None
    return table


def _read_person(data: dict[str, Any], rows: Iterator[Row | None], words: Wording) -> Plan:
    made = data["promise"]
    every = [
        _read_plan(
            each,
            next(rows),
            person=data["person"],
            status=data["status"],
            cutoff=data["cutoff"],
            reason_code=data["reason_code"],
            language=words,
        )
        for each in (data, *data["alternatives"])
    ]
    return replace(
        every[0],
        evidence=_read_evidence(data["evidence"]),
        promise=made and Promise(**{k: v for k, v in made.items() if k != "basis"}),
        alternatives=tuple(every[1:]),
    )


def _read_plan(data: dict[str, Any], row: Row | None, **about: Any) -> Plan:
    return Plan(
        **about,
        score_before=data["score_before"],
        changes=tuple(_read_change(each, about["language"]) for each in data["changes"]),
        consequences=tuple(_read_change(each, about["language"]) for each in data["consequences"]),
        score_after=data["score_after"],
        cost=data["cost"],
        log_likelihood=data["log_likelihood"],
        cheapest=_read_evidence(data["cheapest"]),
        retrained=_read_share(data["retrained"]),
        imprecise=_read_share(data["imprecise"]),
        row=row,
    )


def _read_share(data: dict[str, Any] | None) -> Share | None:
    return None if data is None else Share(data["k"], data["n"])


def _read_change(data: dict[str, Any], words: Wording) -> Change:
    """With the words that were said then, whatever the schema says by now."""
    values = [value for value in (data["before"], data["after"]) if value is not None]
    is_number = not any(isinstance(value, str | bool) for value in values)
    named = {"name": data["feature"], "unit": data["unit"], "wording": data["wording"]}
    kind: dict[str, Any] = (
        {"kind": "number"}
        if is_number
        else {"kind": "category", "categories": tuple(dict.fromkeys(values))}
    )
    missing = len(values) < 2
    if data.get("horizon") is not None:  # it moves with time
        kind |= {"role": "advances", "horizon": data["horizon"]}
    feature = Feature(**named, **kind, missing=missing)
    change = Change(feature, data["before"], data["after"], words)
    vars(change)["words"] = (data["before_text"], data["after_text"])
    return change


def _read_evidence(data: dict[str, Any] | None) -> Evidence | None:
    if data is None:
        return None
    return Evidence(data["said"] == "proven", data["asked"], data["values"], data["draws"])


# ---- words ----------------------------------------------------------------------------------

_CURRENCIES = "$€£¥₹"  # a unit that ends in one of these stands before the number
_CLOSE = ("%", "°")  # and one that begins so stands right behind it


def in_words(
    feature: Feature, value: Any, digits: int | None = None, language: Wording | None = None
) -> str:
    """A value as people write it, with its unit.

    digits: significant digits of a number; None: the feature's own decimals, or 3 digits.
    """
    words, value = language or english(), cell_value(value)
    if value is None:
        return words("value.missing")
    if isinstance(value, bool):
        return words("value.yes" if value else "value.no")
    if isinstance(value, str):
        return value
    if feature.is_category:  # a year, a postcode: a level's name, and no quantity to be rounded
        return _with_unit(str(value), feature.unit, words)
    number = words.number(_number(float(value), feature.decimals, digits))
    return _with_unit(number, feature.unit, words)


def unbroken(text: str) -> str:
    """A short text that stays on one line of a page: "200 DM" is one value."""
    return text.replace(" ", NO_BREAK) if len(text) <= SHORT else text


def _with_time(change: Change) -> str:
    """A change that comes by itself, and how long that takes where its unit is one of time."""
    feature, words = change.feature, change.language
    if feature.horizon is None or f"singular.{feature.unit}" not in words:
        return change.to_text()
    time = in_words(feature, feature.horizon, None, words)
    return words("plan.with_time", change=change.to_text(), time=time)


def score_words(*scores: float, language: Wording | None = None) -> list[str]:
    """Scores with equal decimals, as many as it takes to tell those apart that differ."""
    write = (language or english()).number
    start = 2 if max(map(abs, scores)) < 10 else 0
    for decimals in range(start, 15):
        words = [f"{score:,.{decimals}f}" for score in scores]
        if len(set(words)) == len(set(scores)):
            break
    return [write(word) for word in words]


def _number(value: float, decimals: int | None, digits: int | None) -> str:
    if math.isinf(value):  # the open end of a range
        return "∞" if value > 0 else "-∞"
    if decimals is not None and digits is None:
        near = round(value, decimals) + 0.0  # and no "-0"
        # a value with more decimals than the training rows had is not cut short
        if math.isclose(near, value, rel_tol=1e-6, abs_tol=1e-9):
            return f"{near:,.{decimals}f}"
    if value == 0:
        return "0"
    digits = digits or 3
    size = math.floor(math.log10(abs(value)))
    if not -4 <= size < 15:
        return f"{value:.{digits - 1}e}"
    text = f"{value:,.{max(0, digits - 1 - size)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _with_unit(number: str, unit: str, words: Wording) -> str:
    if not unit:
        return number
    if unit[-1] in _CURRENCIES:
        sign, size = ("-", number[1:]) if number.startswith("-") else ("", number)
        return f"{sign}{unit}{size}"
    if number == "1" and f"singular.{unit}" in words:
        unit = words(f"singular.{unit}")
    return f"{number}{unit}" if unit.startswith(_CLOSE) else f"{number} {unit}"


def cell_value(cell: Any) -> Any:
    """A cell as a plain Python value; None where it is missing, however pandas says so."""
    return None if pd.api.types.is_scalar(cell) and pd.isna(cell) else plain(cell)


def _json_value(value: Any) -> Any:
    value = cell_value(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)  # a date or a tuple as an index label


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
