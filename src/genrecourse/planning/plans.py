"""Plan and Plans: what would change the model's decision on a person, in units and in words.

A `Plan` contains changes only if h accepts the result and no rule is broken. Otherwise it contains
a status and a reason, and the failed attempt cannot be read from it. The wording never promises an
approval, since the model alone does not decide on one.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pandas as pd

from genrecourse.errors import NoSuchPlanError, UserError, shown
from genrecourse.planning.asked import asked_to_change
from genrecourse.planning.binomial import Share
from genrecourse.planning.cards import plan_html, plan_line, plans_html, plans_line
from genrecourse.planning.dice_format import dice_answers, dice_json, summary_importance
from genrecourse.planning.effort import Effort, check_sort, order_of
from genrecourse.planning.letter import LetterDetails, letter_about
from genrecourse.planning.placeholders import NO_BREAK
from genrecourse.planning.promised import Promise
from genrecourse.planning.round_numbers import RoundNumbers
from genrecourse.planning.units import with_unit
from genrecourse.planning.wording import Wording, english, unbroken
from genrecourse.table.faults import Fault
from genrecourse.table.schema import Feature, plain
from genrecourse.table.text_files import from_json

if TYPE_CHECKING:
    from genrecourse.planning.letter_form import Letter

STATUSES = ("ok", "already-accepted", "no-plan", "unreadable")
REASONED = ("no-plan", "unreadable")  # the statuses that have a reason code
OVER = {"over-months": "months", "over-money": "money"}  # reason codes of a request's own limits

# the columns of Plans.to_frame
NUMBERS = ("score_before", "score_after", "cutoff", "cost", "log_likelihood")
PLAN_COLUMNS = ("person", "status", "reason_code", "reason", "number", *NUMBERS)
CHANGE_COLUMNS = ("feature", "wording", "unit", "before", "after", "before_text", "after_text")


# ---- the parts of a plan --------------------------------------------------------------------


@dataclass(frozen=True)
class Safety:
    """A change that h does not need: how sturdy the plan would be without it.

    >>> Safety(Share(3, 8), Share(30, 32)).to_dict()["retrained"]["k"]
    3
    """

    retrained: Share | None  # retrained models that would accept the rest
    imprecise: Share  # tries with noise in which h would accept the rest
    own_copies: bool = False  # as in `Plan`

    def to_text(self, language: Wording) -> str:
        """Return why the change is there, in words: by the experiment that needs it more."""
        retrained = "safety_retrained_own" if self.own_copies else "safety_retrained"
        both = {retrained: self.retrained, "safety_imprecise": self.imprecise}
        known = {name: share for name, share in both.items() if share is not None}
        name = min(known, key=lambda name: known[name].k / known[name].n)
        share = known[name]
        return language(f"value.{name}", k=share.n - share.k, n=share.n)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        retrained = self.retrained and self.retrained.to_dict()
        return {
            "retrained": retrained,
            "imprecise": self.imprecise.to_dict(),
            "own_copies": self.own_copies,
        }


@dataclass(frozen=True)
class Change:
    """The change of one feature from its value in x to its value in x_plus; None: missing.

    >>> income = Feature(name="income", kind="number", unit="€", decimals=0)
    >>> Change(income, 1800, 2100).to_text()
    'income: €1,800 → €2,100'
    """

    feature: Feature
    before: Any
    after: Any
    language: Wording = field(default_factory=english, repr=False, compare=False)
    digits: int | None = field(default=None, repr=False, compare=False)  # shown digits, at least
    safety: Safety | None = None  # set if h does not need this change

    @cached_property
    def _written(self) -> tuple[tuple[str, str], int | None]:
        """Both values in words, with enough digits to differ; and the number of digits."""
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
        """Both values in words."""
        return self._written[0]

    @property
    def said(self) -> Any:
        """The value that a reader of the words sees: `after`, possibly rounded."""
        value = cell_value(self.after)
        if value is None or isinstance(value, bool | str) or self.feature.is_category:
            return value
        return float(
            _number(float(value), self.feature.decimals, self._written[1]).replace(",", "")
        )

    def to_text(self) -> str:
        """Return the change as one line of text."""
        before, after = self.words
        parts = {"feature": self.feature.label, "before": before, "after": after}
        text = self.language("value.change", **parts)
        if self.safety is None:
            return text
        return self.language("value.for_safety", change=text, why=self.safety_text)

    @property
    def safety_text(self) -> str:
        """Why the change is there although h does not need it; empty if h needs it."""
        return "" if self.safety is None else self.safety.to_text(self.language)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "feature": self.feature.name,
            "kind": self.feature.kind,
            "wording": self.feature.label,
            "unit": self.feature.unit,
            "horizon": self.feature.horizon,
            "before": _json_value(self.before),
            "after": _json_value(self.after),
            "before_text": self.words[0],
            "after_text": self.words[1],
            "safety": self.safety and self.safety.to_dict(),
        }


@dataclass(frozen=True)
class Evidence:
    """How much was tried before a statement such as "no plan" (`enumeration`).

    "Proven" is said without more only if every value that the rules allow was tried: categories,
    listed values, and whole numbers that all occur in the training rows. Otherwise it is proven
    over the values that occur there, and `observed` says how many these are.

    >>> Evidence(proven=True, asked=1200, most=30, draws=64).to_dict()
    {'said': 'proven', 'asked': 1200, 'values': 30, 'draws': 64, 'observed': 0}
    >>> print(Evidence(proven=True, asked=1200, most=30, draws=64, observed=41).to_text())
    Proven over the 41 values that occur in the data, for up to two changes: ...
    """

    proven: bool  # all changes of one and of two features to the values in question were tried
    asked: int  # number of changes that h scored
    most: int  # values per feature in changes of two features, at most; 0: no pairs were tried
    draws: int = 0  # number of candidates that the method itself tried
    # values of the training rows that were tried of numbers to which the rules allow other values,
    # too; 0: every value that the rules allow was tried
    observed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        said = "proven" if self.proven else "searched"
        return {
            "said": said,
            "asked": self.asked,
            "values": self.most,
            "draws": self.draws,
            "observed": self.observed,
        }

    def to_text(self, language: Wording | None = None) -> str:
        """Return what was tried, as sentences."""
        words = language or english()
        name = "searched" if self.most == 0 else "grid"
        if self.proven:
            name = "proven_observed" if self.observed else "proven"
        return words(
            f"evidence.{name}",
            asked=words.number(f"{self.asked:,}"),
            most=self.most,
            draws=words.number(f"{self.draws:,}"),
            occurring=self._occurring(words),
        )

    def cheapest_text(self, language: Wording | None = None) -> str:
        """Return that no change of one or two features costs less, and on what this rests."""
        words = language or english()
        name = "cheapest_on_grid"
        if self.proven:
            name = "cheapest_observed" if self.observed else "cheapest"
        return words(f"plan.{name}", most=self.most, occurring=self._occurring(words))

    def _occurring(self, words: Wording) -> str:
        number = words.number(f"{self.observed:,}")
        return words("evidence.value" if self.observed == 1 else "evidence.values", n=number)


@dataclass(frozen=True)
class BlockingRule:
    """A rule that alone prevents a plan, and the changes that would work without it.

    It informs whoever wrote the rule; it is not advice to the person.

    >>> income = Feature(name="income", kind="number", decimals=0)
    >>> BlockingRule("lock", income, (Change(income, 10, 30),), 0.7, 0.4).rule
    'income must not change'
    """

    kind: str  # as in `relaxations.RelaxedRule`
    feature: Feature | None  # the feature that the rule limits, with the rule as one of its fields
    changes: tuple[Change, ...]
    score_after: float
    cost: float
    value: Any = None  # the limit of a rule that is not a field of a feature
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
        elif name in ("max_months", "max_money"):
            parts["n"] = words.number(f"{value:,.10g}")
            name = "one_month" if name == "max_months" and value == 1 else name
        return words(f"rules.{name}" if f"rules.{name}" in words else "rules.other", **parts)

    def to_text(self) -> str:
        """Return a sentence about the rule and the changes."""
        changes = "; ".join(change.to_text() for change in self.changes)
        return self.language("evidence.rule", rule=self.rule, changes=changes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
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
    """A complete x_plus: one row of a table that many plans share.

    >>> Row(pd.DataFrame({"income": [30, 40], "job": ["cook", "nurse"]}), 1).to_dict()
    {'income': 40, 'job': 'nurse'}
    """

    table: pd.DataFrame
    place: int

    def to_dict(self) -> dict[str, Any]:
        """Return the values by column name; a date becomes text."""
        table = self.table
        return {str(n): _json_value(table.iat[self.place, j]) for j, n in enumerate(table.columns)}


# ---- one person -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """What would change h's decision on one person, or the reason why there is no plan.

    >>> income = Feature(name="income", kind="number", decimals=0)
    >>> plan = Plan("Ada", "ok", 0.31, 0.5, (Change(income, 20, 30),), score_after=0.72, cost=0.4)
    >>> print(plan.to_text())
    Ada: what would change the model's decision
      income: 20 → 30
      model's score 0.31 → 0.72 (favourable above 0.50), cost 0.40
    >>> plan
    Plan('Ada', ok: income 20 → 30; score 0.31 → 0.72)
    """

    person: Any  # the row's index label
    status: str  # one of STATUSES
    score_before: float | None  # None: the row cannot be read
    cutoff: float
    changes: tuple[Change, ...] = ()
    score_after: float | None = None
    cost: float | None = None
    log_likelihood: float | None = None
    effort: Effort | None = None  # time and money, if the policy says what changes take
    reason_code: str = ""  # why the status is "no-plan" or "unreadable"
    nearest: Effort | None = None  # of "over-months" and "over-money": the least that was found
    fault: Fault | None = None  # the cell that cannot be read, with "unreadable"
    evidence: Evidence | None = None  # how much was tried before "no-plan"
    blocking_rules: tuple[BlockingRule, ...] = ()  # for the authors of rules
    cheapest: Evidence | None = None  # set if no tried change of one or two features costs less
    alternatives: tuple[Plan, ...] = ()  # further plans, which change other features
    consequences: tuple[Change, ...] = ()  # what then changes by itself: derived values and time
    retrained: Share | None = None  # retrained models that accept it (`robustness`)
    imprecise: Share | None = None  # noisy copies of x_plus that h accepts (`robustness`)
    own_copies: bool = False  # the retrained models are copies of h, and not stand-ins for it
    is_fragile: bool = False  # too few retrained models or noisy tries accept it
    is_beyond: bool = False  # it has more changes than a plan should have
    minimal: Plan | None = None  # the plan without the changes for safety; None: it has none
    promise: Promise | None = None  # the promise that was requested; with "ok", it holds
    round_numbers: RoundNumbers | None = None  # for letters
    row: Row | None = field(default=None, repr=False, compare=False)  # the complete x_plus
    language: Wording = field(default_factory=english, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"the status is '{self.status}'; it must be one of {STATUSES}")
        if (self.status in REASONED) != bool(self.reason_code):
            raise ValueError(
                f"the status is '{self.status}' and the reason code '{self.reason_code}'; exactly "
                f"the statuses {REASONED} need a reason code"
            )
        is_unreadable = self.status == "unreadable"
        if is_unreadable != (self.fault is not None) or is_unreadable != (
            self.score_before is None
        ):
            raise ValueError(
                f"the status is '{self.status}'; exactly the status 'unreadable' has a fault and "
                "no score"
            )
        has_details = any(
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
        if self.status != "ok" and (self.changes or has_details or self.alternatives):
            raise ValueError(
                f"the status is '{self.status}'; only a plan with the status 'ok' may have "
                "changes, scores or alternatives"
            )

    @property
    def every(self) -> tuple[Plan, ...]:
        """This plan and its alternatives; empty if there is no plan."""
        return (self, *self.alternatives) if self.status == "ok" else ()

    @property
    def purpose(self) -> str:
        """The headline of the plan."""
        return self.language("plan.fragile" if self.is_fragile else "plan.purpose")

    @property
    def reason(self) -> str:
        """Why there is no plan and how much was tried; empty if there is a plan."""
        if self.status == "ok":
            return ""
        code, words = self.reason_code or self.status, self.language
        if self.fault is not None:
            return fault_in_words(self.fault, words)
        name = f"reasons.{code}" if f"reasons.{code}" in words else "reasons.other"
        sentence = self._over_limit() if code in OVER else words(name, code=code)
        if code == "nothing-may-change":  # then there was nothing to try
            return sentence
        return f"{sentence} {self.evidence.to_text(words)}" if self.evidence else sentence

    def _over_limit(self) -> str:
        """Return that no plan is within the limit, and the least time or money that was found."""
        words, code, least = self.language, self.reason_code, self.nearest
        known = least is not None and getattr(least, OVER[code]) is not None
        if least is None or not known:
            return words(f"reasons.{code}-unknown")
        text = least.time_text(words) if code == "over-months" else least.money_text(words)
        return words(f"reasons.{code}", least=text)

    @property
    def blocking_rules_shown(self) -> tuple[BlockingRule, ...]:
        """The blocking rules that a person may see: all but rules on immutable features.

        A person should not read, for example, that the other sex would be accepted.
        """
        return tuple(rule for rule in self.blocking_rules if rule.kind != "immutable")

    @property
    def about_rules(self) -> str:
        """A sentence about the rule that alone prevents a plan; empty if there is no such rule."""
        if self.blocking_rules_shown:
            return self.blocking_rules_shown[0].to_text()
        return self.language("evidence.fixed") if self.blocking_rules else ""

    @property
    def facts(self) -> str:
        """The scores, the cost and the likelihood, in one line; empty if h was not asked."""
        words = self.language
        if self.score_before is None:
            return ""
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
            parts.append(self.cheapest.cheapest_text(words))
        return ", ".join(parts)

    @property
    def follows(self) -> str:
        """What then changes by itself, in one line; empty if nothing does."""
        changes = "; ".join(_with_time(change) for change in self.consequences)
        return self.language("plan.follows", changes=changes) if changes else ""

    @property
    def remarks(self) -> list[str]:
        """All lines below the changes."""
        first = [each for each in (self.follows, self.takes) if each]
        return [*first, self.facts, *self.prospects]

    @property
    def takes(self) -> str:
        """How much time and money the plan takes, in one line; empty if it is not known."""
        if self.effort is None:
            return ""
        line = self.language("plan.effort", effort=self.effort.to_text(self.language))
        if self.effort.months_at_least or self.effort.money_at_least:
            return self.language("plan.effort_known", line=line)
        return line

    def sorted_by(self, by: str) -> Plan:
        """Return this plan with its alternatives, the quickest, cheapest or smallest first.

        by: "time", "money", "changes" (their number) or "cost". What is not known comes last. Only
        the first plan of a promise was tested, so under a promise it stays the first.

        >>> income = Feature(name="income", kind="number", decimals=0)
        >>> slow, quick = (
        ...     Plan("Ada", "ok", 0.3, 0.5, (Change(income, 20, 30),), 0.7, effort=effort)
        ...     for effort in (Effort(9.0, None, 1), Effort(2.0, None, 1))
        ... )
        >>> replace(slow, alternatives=(quick,)).sorted_by("time").effort.months
        2.0
        """
        check_sort("Plan.sorted_by", by)
        if len(self.every) < 2:
            return self
        if self.promise is not None:
            return replace(self, alternatives=tuple(_in_order(self.alternatives, by)))
        alone = (replace(self, alternatives=()), *self.alternatives)
        first, *rest = _in_order(alone, by)
        return replace(first, alternatives=tuple(rest))

    @property
    def prospects(self) -> list[str]:
        """Sentences about the promise and the robustness of the plan."""
        words, sentences = self.language, []
        if self.is_beyond:
            sentences.append(words("plan.beyond"))
        if self.promise is not None and self.status == "ok":
            sentences.append(
                words(
                    "plan.promise",
                    share=self._percent(self.promise.share),
                    confidence=self._percent(1 - self.promise.delta),
                )
            )
        retrained = "retrained_own" if self.own_copies else "retrained"
        for name, share in ((retrained, self.retrained), ("imprecise", self.imprecise)):
            if share is not None:
                low, high = (f"{100 * end:.0f}" for end in (share.low, share.high))
                sentences.append(words(f"plan.{name}", k=share.k, n=share.n, low=low, high=high))
        return sentences

    def _percent(self, share: float) -> str:
        return self.language.number(f"{100 * share:.3g}")

    def to_text(self) -> str:
        """Return the plan and its alternatives as lines of text."""
        words = self.language
        if self.status != "ok":
            lines = [words("plan.line", person=self.person, said=self.reason)]
            lines += [f"  {self.about_rules}"] if self.about_rules else []
            lines += [f"  {self.facts}"] if self.facts else []
            return "\n".join(lines)
        lines = [words("plan.line", person=self.person, said=self.purpose)]
        for plan in self.every:
            if plan is not self:
                lines.append(f"  {words('plan.another')}")
            lines += [f"  {change.to_text()}" for change in plan.changes]
            lines += [f"  {remark}" for remark in plan.remarks]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: no NaN and no numpy types."""
        return {
            "person": _json_value(self.person),
            "status": self.status,
            "reason_code": self.reason_code,
            "reason": self.reason,
            "fault": self.fault.to_dict() if self.fault else None,
            "nearest": self.nearest and self.nearest.to_dict(),
            "evidence": self.evidence.to_dict() if self.evidence else None,
            "blocking_rules": [rule.to_dict() for rule in self.blocking_rules_shown],
            "cutoff": self.cutoff,
            "promise": self.promise.to_dict() if self.promise else None,
            **self._own_values(),
            "alternatives": [plan._own_values() for plan in self.alternatives],
        }

    def _own_values(self) -> dict[str, Any]:
        """Return the values that differ between the plans of one person."""
        return {
            "score_before": self.score_before,
            "score_after": self.score_after,
            "cost": self.cost,
            "log_likelihood": self.log_likelihood,
            "effort": self._effort_values(),
            "cheapest": self.cheapest.to_dict() if self.cheapest else None,
            "retrained": self.retrained.to_dict() if self.retrained else None,
            "imprecise": self.imprecise.to_dict() if self.imprecise else None,
            "own_copies": self.own_copies,
            "is_fragile": self.is_fragile,
            "is_beyond": self.is_beyond,
            "minimal": self.minimal._own_values() if self.minimal else None,
            "changes": [change.to_dict() for change in self.changes],
            "consequences": [change.to_dict() for change in self.consequences],
            "x_plus": self.row.to_dict() if self.row else None,
            "round_numbers": self.round_numbers.to_dict() if self.round_numbers else None,
        }

    def _effort_values(self) -> dict[str, Any] | None:
        if self.effort is None:
            return None
        return self.effort.to_dict() | {"text": self.effort.to_text(self.language)}

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return _json(self.to_dict())

    def to_frame(self) -> pd.DataFrame:
        """Return one row per change, as `Plans.to_frame`."""
        return Plans((self,)).to_frame()

    def to_html(self) -> str:
        """Return an HTML fragment, for example for a notebook."""
        person, headline = escape(str(self.person)), escape(self.reason or self.purpose)
        parts = [f"<p><strong>{person}</strong>: {headline}</p>"]
        parts += [f"<p>{escape(self.about_rules)}</p>"] if self.about_rules else []
        for plan in self.every or (self,):
            if plan is not self:
                parts.append(f"<p>{escape(self.language('plan.another'))}</p>")
            remarks = "<br>".join(escape(remark) for remark in plan.remarks)
            parts.append(f"{plan.changes_html()}<p><small>{remarks}</small></p>")
        return f"<div>{''.join(parts)}</div>"

    def to_letter(self, template: str | os.PathLike[str] = "", **details: Any) -> Letter:
        """Return a letter to the person about this plan, or about that there is none.

        It has no scores, likelihoods or column names, and only numbers of at most four digits, for
        which h has been asked again. A person whom h accepts already gets no letter: a UserError.

        template: a language that is shipped, or a file (docs/letter.md); default: the language of
        the plan. details: the fields of `LetterDetails`, such as date="2026-11-18".

        >>> income = Feature(name="monthly_income", kind="number", decimals=0, unit="€")
        >>> plan = Plan("Ada", "ok", 0.31, 0.5, (Change(income, 1800, 2100),), score_after=0.7)
        >>> print(plan.to_letter(date="2026-11-18").to_text())  # doctest: +ELLIPSIS
        18 November 2026
        ...
        - Monthly income: raise it from €1,800 to €2,100
        ...
        """
        return letter_about(self, template or self.language("code"), LetterDetails.of(details))

    def changes_html(self) -> str:
        """Return only the changes, as an HTML table; empty if there is no plan."""
        if self.status != "ok":
            return ""
        rows = "".join(
            f"<tr><th>{escape(change.feature.label)}</th>"
            f"<td>{escape(before)}</td><td>→{NO_BREAK}{escape(after)}"
            f"{_safety_html(change)}</td></tr>"
            for change in self.changes
            for before, after in [map(unbroken, change.words)]
        )
        return f'<table class="changes"><tbody>{rows}</tbody></table>'

    def __repr__(self) -> str:
        return f"Plan({plan_line(self)})"

    def _repr_html_(self) -> str:
        return plan_html(self)


def _in_order(plans: Sequence[Plan], by: str) -> list[Plan]:
    def key(plan: Plan) -> tuple[bool, bool, float]:
        if by in ("time", "money"):
            return order_of(plan.effort, by)
        value = len(plan.changes) if by == "changes" else plan.cost
        return value is None, False, math.inf if value is None else float(value)

    return sorted(plans, key=key)


def _safety_html(change: Change) -> str:
    return f"<br><small>{escape(change.safety_text)}</small>" if change.safety else ""


# ---- several people -------------------------------------------------------------------------


@dataclass(frozen=True)
class Plans(Sequence[Plan]):
    """One `Plan` per person, in the order of the table; further plans are its `alternatives`.

    `plans[0]` is the first person's, by position as in a list; `plans.of(label)` is the one of the
    person with this index label.

    >>> plans = Plans((Plan("Ada", "already-accepted", 0.7, 0.5),))
    >>> len(plans), plans[0].person, plans.of("Ada").status
    (1, 'Ada', 'already-accepted')
    >>> Plans.from_json(plans.to_json()) == plans
    True
    >>> plans
    Plans(1 person: 1 already-accepted)
    """

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
        if isinstance(place, slice):
            return Plans(self.plans[place])
        try:
            return self.plans[place]
        except (IndexError, TypeError):
            raise NoSuchPlanError(self._no_plan_at(place)) from None

    def _no_plan_at(self, place: Any) -> str:
        start = f"plans[{shown(place)}] asks for a position, and there are plans of "
        text = start + ("1 person" if len(self) == 1 else f"{len(self):,} people")
        if pd.api.types.is_scalar(place) and any(plan.person == place for plan in self.plans):
            return f"{text}; to get the person with this label, write plans.of({shown(place)})"
        return f"{text}; count from 0, or write plans.of(label) with an index label of the table"

    def of(self, label: Any) -> Plan:
        """Return the plan of the person with this index label."""
        found = [plan for plan in self.plans if plan.person == label]
        if len(found) == 1:
            return found[0]
        if found:
            raise UserError(f"{len(found)} people have the label {label!r}; select one by position")
        some = ", ".join(repr(plan.person) for plan in self.plans[:3])
        some += ", ..." if len(self) > 3 else ""
        raise UserError(
            f"there is no plan for {label!r}; the labels of the {len(self)} people are {some}"
        )

    # ---- all plans that are shown -------------------------------------------------------------

    @property
    def unreadable(self) -> list[Plan]:
        """The people whose rows cannot be read."""
        return [plan for plan in self.plans if plan.status == "unreadable"]

    @property
    def shown(self) -> list[Plan]:
        """All plans: the first plan of each person, followed by its alternatives."""
        return [each for plan in self.plans for each in plan.every]

    def x_plus(self) -> pd.DataFrame:
        """Return the complete row of each plan in `shown`, in original units.

        The index contains the label of the person.
        """
        shown, parts, order = self.shown, [], []
        rows = [each.row for each in shown]
        if any(row is None for row in rows):
            raise UserError(
                "these plans do not contain complete rows; call `plans` of the method again"
            )
        tables = {id(row.table): row.table for row in rows if row is not None}
        for key, table in tables.items():
            mine = [i for i, row in enumerate(rows) if row is not None and id(row.table) == key]
            parts.append(table.iloc[[rows[i].place for i in mine]])  # type: ignore[union-attr]
            order += mine
        found = pd.concat(parts) if parts else pd.DataFrame()
        return found.iloc[np.argsort(order)].set_axis([each.person for each in shown])

    def with_shown(self, values: Sequence[dict[str, Any]]) -> Plans:
        """Return the plans with these fields set, one dict per plan in the order of `shown`."""
        left = iter(values)

        def updated(plan: Plan) -> Plan:
            if plan.status != "ok":
                return plan
            first, *rest = (replace(each, **next(left)) for each in plan.every)
            return replace(first, alternatives=tuple(rest))

        return Plans(tuple(updated(plan) for plan in self.plans))

    def sorted_by(self, by: str) -> Plans:
        """Return the same people, each with the plans in the order of `Plan.sorted_by`."""
        check_sort("Plans.sorted_by", by)
        return Plans(tuple(plan.sorted_by(by) for plan in self.plans))

    def asked_to_change(self) -> pd.DataFrame:
        """Return what people are asked to change: one row per feature, the most frequent first.

        `share_of_people` is the share of the people with a plan whose first plan changes the
        feature; `share_of_plans` counts all plans. Both come with their counts. What changes by
        itself is not counted.
        """
        return asked_to_change(self.plans)

    # ---- in words and as data -----------------------------------------------------------------

    def to_text(self) -> str:
        """Return all plans as text, with a note on what recourse does not say."""
        return "\n\n".join([*(plan.to_text() for plan in self.plans), *self._note])

    @property
    def _note(self) -> list[str]:
        """The note on what recourse does not say; empty if there is no plan."""
        ok = [plan for plan in self.plans if plan.status == "ok"]
        return [ok[0].language("plan.note")] if ok else []

    def to_json(self) -> str:
        """Return all plans as JSON text, which `from_json` reads."""
        return _json([plan.to_dict() for plan in self.plans])

    def to_dice_json(self, X: Any = None, *, outcome_name: str = "outcome") -> str:
        """Return all plans as DiCE (dice-ml) writes its counterfactuals, in its version 2.0.

        X: the table that the plans were made for; None: each person has a plan, which contains the
        row. outcome_name: the name of the outcome, which is 1 if favourable and 0 otherwise.

        The importance of a column is DiCE's: the share of plans in which its value differs. That
        includes what changes by itself, which `asked_to_change` leaves out.
        """
        answers = dice_answers(self, X, outcome_name)
        local = [answer.importance for answer in answers]
        return dice_json(answers, outcome_name, local, summary_importance(answers))

    @classmethod
    def from_json(
        cls,
        text: str,
        *,
        like: pd.DataFrame | None = None,
        language: str | os.PathLike[str] | Wording = "en",
        where: str = "the plans",
    ) -> Plans:
        """Return the plans that `to_json` wrote; they have complete rows, so `recheck` works.

        Blocking rules are not read: they are for the authors of rules, not for people.

        like: a table whose dtypes the rows get, for a model that needs categories, for example;
            JSON has no dtypes.
        language: for the sentences around the stored words.
        where: how error messages call the source of the text.
        """
        data = from_json(text, where)
        if not isinstance(data, list) or not all(isinstance(each, dict) for each in data):
            raise UserError(f"{where} must be a list of plans, as Plans.to_json writes it")
        every = [one for each in data for one in (each, *each.get("alternatives", ()))]
        rows = [one.get("x_plus") for one in every]
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
                f"{type(error).__name__}: {error}; make the plans again"
            ) from None

    def to_frame(self) -> pd.DataFrame:
        """Return one row per change; `number` counts the plans of a person.

        A person without a plan has one row with the reason and no feature.
        """
        nothing = dict.fromkeys(CHANGE_COLUMNS)
        rows: list[dict[str, Any]] = []
        for plan in self.plans:
            about = plan.to_dict() | {"person": plan.person, "number": None}
            if plan.status != "ok":
                rows.append(about | nothing)
            for number, each in enumerate(plan.every, start=1):
                values = about | each._own_values() | {"number": number}
                rows += [values | change for change in values["changes"]]
        return pd.DataFrame(
            {
                # dtype object, so that an integer stays an integer next to text and None
                name: pd.Series(
                    [row[name] for row in rows], dtype="float64" if name in NUMBERS else object
                )
                for name in (*PLAN_COLUMNS, *CHANGE_COLUMNS)
            }
        )

    def to_html(self) -> str:
        """Return all plans as an HTML fragment."""
        note = [f"<p><small>{escape(note)}</small></p>" for note in self._note]
        return "".join([*(plan.to_html() for plan in self.plans), *note])

    def __repr__(self) -> str:
        return f"Plans({plans_line(self)})"

    def _repr_html_(self) -> str:
        return plans_html(self, self._note)


# ---- from JSON ------------------------------------------------------------------------------


def _as_in(table: pd.DataFrame, like: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return the table with the dtypes of `like`; unknown categories are added."""
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
            fault=Fault(**data["fault"]) if data.get("fault") else None,
            language=words,
        )
        for each in (data, *data["alternatives"])
    ]
    return replace(
        every[0],
        evidence=_read_evidence(data["evidence"]),
        nearest=_read_effort(data.get("nearest")),
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
        effort=_read_effort(data.get("effort")),  # older plans have none
        cheapest=_read_evidence(data["cheapest"]),
        retrained=_read_share(data["retrained"]),
        imprecise=_read_share(data["imprecise"]),
        own_copies=data.get("own_copies", False),
        is_fragile=data.get("is_fragile", False),
        is_beyond=data.get("is_beyond", False),
        minimal=_read_minimal(data.get("minimal"), about),
        round_numbers=_read_round_numbers(data.get("round_numbers")),
        row=row,
    )


def _read_minimal(data: dict[str, Any] | None, about: dict[str, Any]) -> Plan | None:
    return None if data is None else _read_plan(data, None, **about)


def _read_share(data: dict[str, Any] | None) -> Share | None:
    return None if data is None else Share(data["k"], data["n"])


def _read_effort(data: dict[str, Any] | None) -> Effort | None:
    return None if data is None else Effort.of_dict(data)


def _read_round_numbers(data: dict[str, Any] | None) -> RoundNumbers | None:
    return None if data is None else RoundNumbers.of_dict(data)


def _read_change(data: dict[str, Any], words: Wording) -> Change:
    """Return the change with its stored words, even if the schema has changed since."""
    values = [value for value in (data["before"], data["after"]) if value is not None]
    is_number = not any(isinstance(value, str | bool) for value in values)
    is_number &= data.get("kind") != "category"  # a year or a postcode may be a category
    named = {"name": data["feature"], "unit": data["unit"], "wording": data["wording"]}
    kind: dict[str, Any] = (
        {"kind": "number"}
        if is_number
        else {"kind": "category", "categories": tuple(dict.fromkeys(values))}
    )
    missing = len(values) < 2
    if data.get("horizon") is not None:  # it changes with time
        kind |= {"role": "advances", "horizon": data["horizon"]}
    feature = Feature(**named, **kind, missing=missing)
    change = Change(feature, data["before"], data["after"], words)
    if data.get("safety"):
        why = data["safety"]
        both = _read_share(why["retrained"]), _read_share(why["imprecise"])
        own = why.get("own_copies", False)
        change = replace(change, safety=Safety(both[0], both[1] or Share(0, 1), own))
    vars(change)["words"] = (data["before_text"], data["after_text"])
    return change


def _read_evidence(data: dict[str, Any] | None) -> Evidence | None:
    if data is None:
        return None
    # earlier plans do not say over which values something was proven: claim no proof for these
    proven = data["said"] == "proven" and "observed" in data
    asked, most, draws = data["asked"], data["values"], data["draws"]
    return Evidence(proven, asked, most, draws, data.get("observed", 0))


# ---- words ----------------------------------------------------------------------------------


def in_words(
    feature: Feature, value: Any, digits: int | None = None, language: Wording | None = None
) -> str:
    """Return a value as people write it, with its unit.

    digits: significant digits of a number; None: the decimals of the feature, or 3 digits.

    >>> rate = Feature(name="rate", kind="number", unit="%", decimals=1)
    >>> in_words(rate, 4.25), in_words(rate, 4.2), in_words(rate, None)
    ('4.25%', '4.2%', 'not given')
    """
    words, value = language or english(), cell_value(value)
    if value is None:
        return words("value.missing")
    if isinstance(value, bool):
        return words("value.yes" if value else "value.no")
    if isinstance(value, str):
        return value
    if feature.is_category:  # a year or a postcode is a name, not a quantity to round
        return with_unit(str(value), feature.unit, words)
    number = words.number(_number(float(value), feature.decimals, digits))
    return with_unit(number, feature.unit, words)


def fault_in_words(fault: Fault, language: Wording) -> str:
    """Return why a row cannot be read: the column, the value seen, and what to do.

    >>> fault_in_words(Fault("not-finite", "income", "inf"), english())
    'This row cannot be read: income holds inf, which is not finite. Give a finite number.'
    """
    name = f"unreadable.{fault.code}"
    known = name if name in language else "unreadable.other"
    return language(known, **fault.to_dict())


def cell_in_words(feature: Feature, row: pd.Series, plan: Plan) -> str:
    """Return the value of a person as people write it; as Python writes it if it is none.

    >>> income, language = Feature(name="income", kind="number"), english()
    >>> fault = Fault("wrong-type", "income", "['much']")
    >>> plan = Plan("Ada", "unreadable", None, 0.5, reason_code=fault.code, fault=fault)
    >>> cell_in_words(income, pd.Series({"income": ["much"]}), plan)
    "['much']"
    """
    if plan.fault is None:
        return in_words(feature, feature.value(row), None, plan.language)
    if plan.fault.column == feature.name:
        return plan.fault.value
    try:
        return in_words(feature, feature.value(row), None, plan.language)
    except (TypeError, ValueError, OverflowError):  # a second cell that cannot be read
        return "; ".join(shown(row[name]) for name in feature.stored_in)


def _with_time(change: Change) -> str:
    """Return a change that happens by itself as text, with its duration if the unit is a time."""
    feature, words = change.feature, change.language
    if feature.horizon is None or f"singular.{feature.unit}" not in words:
        return change.to_text()
    time = in_words(feature, feature.horizon, None, words)
    return words("plan.with_time", change=change.to_text(), time=time)


def score_words(*scores: float, language: Wording | None = None) -> list[str]:
    """Return scores with equally many decimals, enough that different scores look different.

    >>> score_words(0.4996, 0.5)
    ['0.4996', '0.5000']
    """
    write = (language or english()).number
    start = 2 if max(map(abs, scores)) < 10 else 0
    for decimals in range(start, 15):
        words = [f"{score:,.{decimals}f}" for score in scores]
        if len(set(words)) == len(set(scores)):
            break
    return [write(word) for word in words]


def _number(value: float, decimals: int | None, digits: int | None) -> str:
    if math.isinf(value):  # an open end of a range
        return "∞" if value > 0 else "-∞"
    if decimals is not None and digits is None:
        near = round(value, decimals) + 0.0  # + 0.0 turns -0.0 into 0.0
        # a value with more decimals than the training rows is not rounded
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


def cell_value(cell: Any) -> Any:
    """Return a cell as a plain Python value, and every kind of missing value as None.

    >>> cell_value(pd.NA) is None, cell_value(np.int64(3))
    (True, 3)
    """
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
