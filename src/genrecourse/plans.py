"""Plan, Plans: what would change the model's decision on a person, in units and words.

A plan is told only if it holds: a person whose recourse h still rejects, or that breaks a rule, has
a status and a reason instead, and no way to get at the attempt. The wording never promises an
approval, which is not the model's to give.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, overload

import numpy as np
import pandas as pd

from genrecourse.encoding import TableEncoder, unchanged
from genrecourse.errors import UserError
from genrecourse.schema import Feature, plain

PURPOSE = "what would change the model's decision"
NOT_GIVEN = "not given"
REASONS = {
    "already-accepted": "The model's decision is favourable already: nothing needs to change.",
    "not-accepted": (
        "No plan: the model would turn down the best attempt that was found as well, "
        "so it is not shown."
    ),
    "no-feasible-target": (
        "No plan: nobody whom the model accepted in the training data shares what this person "
        "cannot change, so there is nobody to learn from."
    ),
    "rule-broken": (
        "No plan: the best attempt that was found breaks a rule on what may change, "
        "so it is not shown."
    ),
}


# the columns of Plans.to_frame
NUMBERS = ("score_before", "score_after", "cutoff", "cost", "log_likelihood")
PLAN_COLUMNS = ("person", "status", "reason", *NUMBERS)
CHANGE_COLUMNS = ("feature", "wording", "unit", "before", "after", "before_text", "after_text")


# ---- one person -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """One feature, from x's value to x_plus's; None is missing."""

    feature: Feature
    before: Any
    after: Any

    @cached_property
    def words(self) -> tuple[str, str]:
        """Both values in words, with as many digits as it takes to tell them apart."""
        for digits in (None, *range(3, 18)):
            words = (
                in_words(self.feature, self.before, digits),
                in_words(self.feature, self.after, digits),
            )
            if words[0] != words[1]:
                break
        return words

    def to_text(self) -> str:
        return f"{self.feature.label}: {self.words[0]} → {self.words[1]}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "feature": self.feature.name,
            "wording": self.feature.label,
            "unit": self.feature.unit,
            "before": _json_value(self.before),
            "after": _json_value(self.after),
            "before_text": self.words[0],
            "after_text": self.words[1],
        }


@dataclass(frozen=True)
class Plan:
    """What would change h's decision on one person, or why there is nothing to say."""

    person: Any  # the row's index label
    status: str  # as Method.assess gives it
    score_before: float
    cutoff: float
    changes: tuple[Change, ...] = ()
    score_after: float | None = None
    cost: float | None = None
    log_likelihood: float | None = None

    def __post_init__(self) -> None:
        told = (self.score_after, self.cost, self.log_likelihood) != (None, None, None)
        if self.status != "ok" and (self.changes or told):
            raise ValueError(f"a plan with the status '{self.status}' must not be told")

    @property
    def reason(self) -> str:
        """Why there is no plan, in a sentence; empty where there is one."""
        if self.status == "ok":
            return ""
        return REASONS.get(self.status, f"No plan that holds was found ({self.status}).")

    @property
    def facts(self) -> str:
        """The score and the price, in a line."""
        if self.status != "ok":
            (score, cutoff), after = score_words(self.score_before, self.cutoff), ""
        else:
            assert self.score_after is not None
            score, after, cutoff = score_words(self.score_before, self.score_after, self.cutoff)
            after = f" → {after}"
        parts = [f"model's score {score}{after} (favourable above {cutoff})"]
        if self.cost is not None:
            parts.append(f"cost {self.cost:.2f}")
        if self.log_likelihood is not None:
            parts.append(f"log-likelihood {self.log_likelihood:.1f}")
        return ", ".join(parts)

    def to_text(self) -> str:
        if self.status != "ok":
            return f"{self.person}: {self.reason}\n  {self.facts}"
        lines = [f"  {change.to_text()}" for change in self.changes]
        return "\n".join([f"{self.person}: {PURPOSE}", *lines, f"  {self.facts}"])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: no NaN, no numpy."""
        return {
            "person": _json_value(self.person),
            "status": self.status,
            "reason": self.reason,
            "score_before": self.score_before,
            "score_after": self.score_after,
            "cutoff": self.cutoff,
            "cost": self.cost,
            "log_likelihood": self.log_likelihood,
            "changes": [change.to_dict() for change in self.changes],
        }

    def to_json(self) -> str:
        return _json(self.to_dict())

    def to_frame(self) -> pd.DataFrame:
        return Plans((self,)).to_frame()

    def to_html(self) -> str:
        """A fragment that stands by itself, as in a notebook."""
        person, said = escape(str(self.person)), escape(self.reason or PURPOSE)
        return (
            f"<div><p><strong>{person}</strong>: {said}</p>{self.changes_html()}"
            f"<p><small>{escape(self.facts)}</small></p></div>"
        )

    def changes_html(self) -> str:
        """The changes alone, as a table; empty where there is no plan."""
        if self.status != "ok":
            return ""
        rows = "".join(
            f"<tr><th>{escape(change.feature.label)}</th>"
            f"<td>{escape(change.words[0])}</td><td>→ {escape(change.words[1])}</td></tr>"
            for change in self.changes
        )
        return f'<table class="changes"><tbody>{rows}</tbody></table>'

    def _repr_html_(self) -> str:
        return self.to_html()


# ---- several people -------------------------------------------------------------------------


@dataclass(frozen=True)
class Plans(Sequence[Plan]):
    """One plan a person, in the order of the table."""

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

    def to_text(self) -> str:
        return "\n\n".join(plan.to_text() for plan in self.plans)

    def to_json(self) -> str:
        return _json([plan.to_dict() for plan in self.plans])

    def to_frame(self) -> pd.DataFrame:
        """One row a change. A person with none has one row, with the reason and no feature."""
        nothing = dict.fromkeys(CHANGE_COLUMNS)
        rows: list[dict[str, Any]] = []
        for plan in self.plans:
            about = plan.to_dict() | {"person": plan.person}
            rows += [about | change for change in about["changes"] or [nothing]]
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
        return "".join(plan.to_html() for plan in self.plans)

    def _repr_html_(self) -> str:
        return self.to_html()


def make_plans(
    encoder: TableEncoder,
    X: pd.DataFrame,
    X_plus: pd.DataFrame,
    assessment: pd.DataFrame,
    cutoff: float,
    log_likelihood: np.ndarray | None = None,
) -> Plans:
    """From what `Method.recourse` gave and `Method.assess` found, row by row."""
    moved = ~unchanged(encoder.features(X), encoder.features(X_plus))
    cells = [(f, X[f.name].to_list(), X_plus[f.name].to_list()) for f in encoder.schema]
    statuses, scores = assessment["status"].to_list(), assessment["score"].to_list()
    scores_plus, costs = assessment["score_plus"].to_list(), assessment["cost"].to_list()
    plans = []
    for i, person in enumerate(X.index):
        about = (plain(person), statuses[i], scores[i], float(cutoff))
        if statuses[i] != "ok":
            plans.append(Plan(*about))
            continue
        changes = tuple(
            Change(feature, _value(before[i]), _value(after[i]))
            for (feature, before, after), changed in zip(cells, moved[i], strict=True)
            if changed
        )
        likelihood = None if log_likelihood is None else _json_value(log_likelihood[i])
        plans.append(Plan(*about, changes, scores_plus[i], costs[i], likelihood))
    return Plans(tuple(plans))


# ---- words ----------------------------------------------------------------------------------

_CURRENCIES = "$€£¥₹"  # a unit that ends in one of these stands before the number
_CLOSE = ("%", "°")  # and one that begins so stands right behind it
_TIMES = ("years", "months", "weeks", "days", "hours", "minutes")  # with a singular that we know


def in_words(feature: Feature, value: Any, digits: int | None = None) -> str:
    """A value as people write it, with its unit.

    digits: significant digits of a number; None: the feature's own decimals, or 3 digits.
    """
    value = _value(value)
    if value is None:
        return NOT_GIVEN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return _with_unit(_number(float(value), feature.decimals, digits), feature.unit)


def score_words(*scores: float) -> list[str]:
    """Scores with equal decimals, as many as it takes to tell those apart that differ."""
    start = 2 if max(map(abs, scores)) < 10 else 0
    for decimals in range(start, 15):
        words = [f"{score:,.{decimals}f}" for score in scores]
        if len(set(words)) == len(set(scores)):
            break
    return words


def _number(value: float, decimals: int | None, digits: int | None) -> str:
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


def _with_unit(number: str, unit: str) -> str:
    if not unit:
        return number
    if unit[-1] in _CURRENCIES:
        sign, size = ("-", number[1:]) if number.startswith("-") else ("", number)
        return f"{sign}{unit}{size}"
    if number == "1" and unit in _TIMES:
        unit = unit[:-1]
    return f"{number}{unit}" if unit.startswith(_CLOSE) else f"{number} {unit}"


def _value(cell: Any) -> Any:
    """A cell as a plain Python value; None where it is missing, however pandas says so."""
    return None if pd.api.types.is_scalar(cell) and pd.isna(cell) else plain(cell)


def _json_value(value: Any) -> Any:
    value = _value(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)  # a date or a tuple as an index label


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
