"""Audit: means by group with their intervals, and the differences between groups."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd

from genrecourse.auditing.card import as_table, in_a_line
from genrecourse.auditing.discretion import FEW, Hidden, find_hidden
from genrecourse.auditing.groups import EVERYONE, Group, Where, check_groups, find_groups
from genrecourse.auditing.measures import (
    CHANGE,
    METRICS,
    NO_CAUSE,
    Measured,
    Measuring,
    Metric,
    metric_of,
)
from genrecourse.auditing.resampling import Bootstrap, difference, interval
from genrecourse.errors import UserError
from genrecourse.model.settings import ROW_ERRORS, check_values
from genrecourse.planning.plans import fault_in_words
from genrecourse.planning.wording import english
from genrecourse.table.frames import to_pandas
from genrecourse.table.schema import check_table

if TYPE_CHECKING:
    from genrecourse.methods.base import Method
    from genrecourse.planning.options import AskedOfPlans
    from genrecourse.table.encoding import Array
    from genrecourse.table.schema import Schema

LEVEL = 0.95
LEAST = 20  # a number about fewer people is hidden
N_BOOT = 1000
COLUMNS = ("group", "metric", "value", "low", "high", "n")  # columns of Audit.to_frame
LEARNED = (
    "These people look like the training rows of the model, so likely outcomes and retrained "
    "models look better than they are. Audit people whom the model has not seen."
)


@dataclass(frozen=True)
class Number:
    """The mean of one metric in one group, with its interval.

    value, low and high are NaN and n is None if too few people count, or if the number would reveal
    a number about too few people.

    >>> Number("sex = f", "rejected", 0.4, 0.3, 0.5, n=90).n
    90
    """

    group: str
    metric: str
    value: float
    low: float
    high: float
    n: int | None  # people who count in it
    hidden: str = ""  # why it is hidden: FEW people, or BESIDE a group of few people


@dataclass(frozen=True)
class Difference:
    """One group compared with everyone else, in one metric.

    >>> Difference("sex = f", "cost", 0.5, 0.3, 0.2, 0.1, 0.3, n=90, n_others=110).is_called
    True
    """

    group: str
    metric: str
    value: float
    others: float  # the mean of everyone else
    difference: float
    low: float  # the interval of the difference; all intervals of the audit hold at once
    high: float
    n: int
    n_others: int

    @property
    def is_called(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Audit:
    """The result of `audit`.

    >>> from genrecourse.table.schema import Schema
    >>> from genrecourse.methods.nearest import NearestNeighbour
    >>> X = pd.DataFrame({"income": np.arange(80.0), "side": ["a", "b"] * 40})
    >>> schema = Schema.infer(X[["income"]])
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, schema).fit(X[["income"]])
    >>> found = audit(method, X, groups="side", n_boot=100)
    >>> found.groups
    ['everyone', 'side = a', 'side = b']
    >>> found.in_words(found.number("everyone", "changes"))
    '1.00 (1.00 to 1.00)'
    >>> found
    Audit(NearestNeighbour: 3 groups, 7 metrics; 0 of 6 comparisons show a difference)
    """

    numbers: tuple[Number, ...]
    differences: tuple[Difference, ...]  # all comparisons, with or without a difference
    columns: tuple[str, ...]  # the columns of the groups
    grouped: dict[str, Where]  # label of each group -> its columns and values
    schema: Schema
    method: str
    absent: dict[str, str] = field(default_factory=dict)  # metric -> why it was not measured
    reasons: dict[str, int] = field(default_factory=dict)  # reason for "no-plan" -> people
    # group -> its rows that cannot be read and all its rows; empty if every row can be read
    unreadable: dict[str, tuple[int, int]] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)  # why they cannot be read -> rows
    small: int = 0  # combinations that are not listed, since they have too few people
    learned: bool = False  # whether the people look like the training rows
    level: float = LEVEL
    least: int = LEAST
    n_boot: int = N_BOOT
    seed: int = 0

    def __repr__(self) -> str:
        return f"Audit({in_a_line(self)})"

    def _repr_html_(self) -> str:
        return as_table(self)

    # ---- lookup -------------------------------------------------------------------------------

    @property
    def groups(self) -> list[str]:
        """The labels of the groups; the first is everyone."""
        return list(self.grouped)

    @property
    def metrics(self) -> list[str]:
        """The metrics of `METRICS` that were measured."""
        return [name for name in METRICS if name not in self.absent]

    @property
    def called(self) -> list[Difference]:
        """The differences whose intervals exclude zero."""
        return [each for each in self.differences if each.is_called]

    def number(self, group: str, metric: str) -> Number:
        """Return the number of one group and metric."""
        for each in self.numbers:
            if (each.group, each.metric) == (group, metric):
                return each
        raise UserError(
            f"the audit has no number '{metric}' for '{group}'; groups: {self.groups}, metrics: "
            f"{list(dict.fromkeys(each.metric for each in self.numbers))}"
        )

    def asked_most(self, group: str = EVERYONE) -> list[Number]:
        """Return the shares of plans that change each feature, the largest first.

        Features that no plan changes are left out. The list is empty if too few people have a plan.
        """
        found = [
            each
            for each in self.numbers
            if each.group == group and each.metric.startswith(CHANGE) and each.value > 0
        ]
        return sorted(found, key=lambda each: -each.value)

    def metric(self, name: str) -> Metric:
        """Return the words for a metric."""
        return metric_of(name, self.schema)

    # ---- in words -----------------------------------------------------------------------------

    def in_words(self, number: Number) -> str:
        """Return a number with its interval as text."""
        if number.hidden:
            return self.count(number)
        low, value, high = (
            written(v, self.metric(number.metric)) for v in (number.low, number.value, number.high)
        )
        return f"{value} ({low} to {high})"

    def count(self, number: Number) -> str:
        """Return how many people count in a number as text, or that it is hidden."""
        if number.n is not None:
            return f"{number.n:,}"
        return f"fewer than {self.least}" if number.hidden == FEW else "hidden"

    def sentence(self, each: Difference) -> str:
        """Return a difference as a sentence."""
        metric = self.metric(each.metric)
        comparison = metric.more if each.difference > 0 else metric.less
        value, others = written(each.value, metric), written(each.others, metric)
        near, far = sorted((abs(each.low), abs(each.high)))
        size, near_, far_ = (_gap(gap, metric) for gap in (abs(each.difference), near, far))
        unit = " percentage points" if metric.is_share else ""
        return (
            f"People with {each.group} {comparison} than everyone else: {value} (n {each.n:,}) "
            f"compared with {others} (n {each.n_others:,}), a difference of {size}{unit} ({near_} "
            f"to {far_})."
        )

    @property
    def how_called(self) -> str:
        """How differences are found."""
        made = len(self.differences)
        if made == 0:
            return f"No groups were compared: a comparison needs {self.least} people on each side."
        each = 1 - (1 - self.level) / made
        return (
            f"{made} comparisons were made, each of a group with everyone else. A difference is "
            f"reported if its interval excludes zero; all {made} intervals hold at once with "
            f"{self.level:.0%} confidence (Bonferroni: {each:.3%} each)."
        )

    @property
    def how_counted(self) -> str:
        """What the intervals mean, and which numbers are hidden."""
        text = (
            f"The {self.level:.0%} intervals come from {self.n_boot:,} resamples of the people, "
            f"with the same model and plans; each interval holds separately. Numbers about fewer "
            f"than {self.least} people are hidden, and so are numbers from which these could be "
            f"computed. The size of a small group is not secret: it may follow from a share and "
            f"its n in the metric before."
        )
        if len(self.columns) > 1:
            text += (
                f" A combination is listed if at least {self.least} of its people were turned "
                f"down; {self.small} smaller combinations are not listed."
            )
        return text

    @property
    def remarks(self) -> list[str]:
        """Warnings about the audit."""
        lost = [self._how_many_lost] if self.unreadable else []
        return [*lost, *([LEARNED] if self.learned else [])]

    @property
    def _how_many_lost(self) -> str:
        """How many rows of each group cannot be read, and what that does to the shares."""
        everyone = self.unreadable[EVERYONE]
        why = ", ".join(f"{n:,} {code}" for code, n in self.faults.items())
        groups = "; ".join(
            f"{label}: {n:,} of {rows:,}"
            for label, (n, rows) in self.unreadable.items()
            if label != EVERYONE
        )
        return (
            f"{everyone[0]:,} of {everyone[1]:,} rows cannot be read ({why}), and the model was "
            f"not asked about them. They count in no number: every share is a share of rows that "
            f"can be read. By group: {groups}. Where groups lose different shares of their rows, a "
            "difference between them may come from that alone; correct the rows and audit again."
        )

    @property
    def findings(self) -> list[str]:
        """The differences as sentences, or a sentence that there is none."""
        if self.called:
            return [self.sentence(each) for each in self.called]
        if not self.differences:
            return []
        return [
            "No difference between groups was found. This does not prove that there is none: a "
            "small difference shows only in a larger table."
        ]

    # ---- as text and data ---------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """Return one row per group and metric; a hidden number has only missing values."""
        rows = [asdict(number) for number in self.numbers]
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"n": "Int64"})

    def to_text(self) -> str:
        """Return all numbers and findings as text."""
        lines = []
        width = max(map(len, self.groups))
        for name in self.metrics:
            metric = self.metric(name)
            lines.append(f"{metric.title} (of {metric.counted})")
            for group in self.groups:
                number = self.number(group, name)
                lines.append(f"  {group:<{width}}  {self.in_words(number)}")
        for group in self.groups:
            most = self.asked_most(group)[:3]
            asked = "; ".join(f"{self._feature(each)} {self.in_words(each)}" for each in most)
            cost = self.number(group, "cost")  # hidden if the shares are hidden
            none = self.count(cost) if cost.hidden else "nothing"
            lines.append(f"Asked to change most, {group}: {asked or none}")
        lines += [f"Not measured, {self.metric(m).title}: {why}" for m, why in self.absent.items()]
        return "\n".join(
            [
                *(*lines, "", *self.remarks, *self.findings, ""),
                *(self.how_called, self.how_counted, NO_CAUSE),
            ]
        )

    def _feature(self, number: Number) -> str:
        return self.schema[number.metric.removeprefix(CHANGE)].label

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: no NaN and no numpy types."""
        return {
            "method": self.method,
            "columns": list(self.columns),
            "level": self.level,
            "least": self.least,
            "n_boot": self.n_boot,
            "seed": self.seed,
            "small_combinations": self.small,
            "numbers": [_plain(asdict(number)) for number in self.numbers],
            "comparisons": [
                _plain(asdict(each)) | {"called": each.is_called} for each in self.differences
            ],
            "remarks": self.remarks,
            "findings": self.findings,
            "no_plan": dict(self.reasons),
            "unreadable": {
                label: {"rows": rows, "unreadable": n}
                for label, (n, rows) in self.unreadable.items()
            },
            "faults": dict(self.faults),
            "not_measured": dict(self.absent),
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_html(self, title: str = "Who gets a plan, and what does it ask?") -> str:
        """Return one HTML file with pictures; it needs no network."""
        from genrecourse.auditing.page import audit_html  # imports matplotlib, which is slow

        return audit_html(self, title)


def written(value: float, metric: Metric) -> str:
    """Return a mean as people write it; a share close to 0% or 100% is not rounded to it.

    >>> written(0.456, METRICS["rejected"]), written(0.0004, METRICS["rejected"])
    ('46%', '0.04%')
    """
    if not metric.is_share:
        return f"{value:.2f}"
    edge = min(value, 1 - value)
    if not 1e-6 < edge < 0.01:
        return f"{value:.0%}"
    digits = max(
        1, math.ceil(-math.log10(200 * edge))
    )  # the fewest digits with which it is not 0 or 100
    return f"{value:.{digits}%}"


def _gap(size: float, metric: Metric) -> str:
    """Return a difference with enough digits that it is not zero."""
    size, digits = (100 * size, 1) if metric.is_share else (size, 2)
    text = f"{size:.{digits}f}"
    return text if float(text) or not size else f"{size:.1g}"


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}


# ---- the audit ------------------------------------------------------------------------------


def audit(
    method: Method,
    X: Any,
    groups: Sequence[str],
    *,
    level: float = LEVEL,
    least: int = LEAST,
    n_boot: int = N_BOOT,
    seed: int = 0,
    errors: str = "status",
    **request: Unpack[AskedOfPlans],
) -> Audit:
    """Audit recourse by group and overall: shares, costs and robustness, with intervals.

    X: people, accepted and rejected. It may have further columns that the model does not use.
    groups: columns of X. Each value is a group, and so is each combination of values with at least
        `least` rejected people.
    level: the confidence level of the intervals.
    least: numbers about fewer people are hidden.
    n_boot, seed: the number of resamples and the seed of the bootstrap.
    errors: "status": rows that cannot be read are left out, and counted for each group; "raise":
        such a row is a UserError.
    request: options of `Method.plans`.

    >>> from genrecourse.table.schema import Schema
    >>> from genrecourse.methods.nearest import NearestNeighbour
    >>> X = pd.DataFrame({"income": np.arange(80.0), "side": ["a", "b"] * 40})
    >>> schema = Schema.infer(X[["income"]])
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, schema).fit(X[["income"]])
    >>> found = audit(method, X, groups="side", n_boot=100)
    >>> [found.in_words(found.number(group, "with_plan"))[:4] for group in found.groups]
    ['100%', '100%', '100%']
    """
    groups = [groups] if isinstance(groups, str) else list(dict.fromkeys(groups))
    _check_settings(level, least, n_boot)
    check_values("audit", {"errors": errors}, {"errors": ROW_ERRORS})
    X = to_pandas(X, method.schema_)
    if len(X) == 0:
        raise UserError("audit: the table has no rows; it needs people to audit")
    check_table(X)
    name, schema = type(method).__name__, method.schema_
    absent = [column for column in schema.columns if column not in X.columns]
    if absent:
        raise UserError(f"audit: the table lacks the columns {absent}; it has {list(X.columns)}")
    whole, read = X, method.problem_.read_each(X[schema.columns], errors)
    if len(read.rows) == 0:
        reason = fault_in_words(read.faults[0], english())
        raise UserError(f"audit: none of {len(X):,} rows can be read (first: {reason})")
    request["rules"] = read.rules(request.get("rules"), X.index)
    X = (
        X.iloc[read.rows].assign(**{str(name): read.X[name] for name in read.X})
        if read.faults
        else X
    )
    check_groups(X, groups)
    measuring = Measuring(
        method=name,
        problem=method.problem_,
        plans=method.plans,
        assess=method.assess,
        verifier=method.verifier_,
        kept=method.kept_rows(),
    )
    found = measuring.measure(X[schema.columns], request)
    rejected = found.values["rejected"] == 1
    if not rejected.any():
        raise UserError(
            f"audit: the model accepts all {len(X):,} people, so nobody needs a plan; audit a "
            "table with rejected people"
        )
    people, small = find_groups(X, groups, rejected, least)
    names = list(found.values)
    values = np.stack(list(found.values.values()), axis=1)
    metrics = [metric_of(metric, schema) for metric in names]
    draws = Bootstrap(values, np.array([metric.is_share for metric in metrics]), n_boot, seed)
    hidden = find_hidden(people, values, least)
    odd = whole.iloc[list(read.faults)].astype(object)  # so that a row mixes no dtypes
    lost = [odd.iloc[i] for i in range(len(odd))]
    return Audit(
        numbers=_numbers(people, names, draws, level, hidden),
        differences=_differences(people, names, metrics, draws, level, least, hidden),
        columns=tuple(groups),
        grouped={group.label: group.where for group in people},
        schema=schema,
        method=name,
        absent=_absent(found),
        reasons=found.reasons,
        unreadable=_unreadable(people, lost) if lost else {},
        faults=dict(Counter(fault.code for fault in read.faults.values()).most_common()),
        small=small,
        learned=measuring.learned_from(X[schema.columns]),
        level=level,
        least=least,
        n_boot=n_boot,
        seed=seed,
    )


def _unreadable(groups: list[Group], lost: list[pd.Series]) -> dict[str, tuple[int, int]]:
    """Return how many rows of each group cannot be read, and how many rows it has."""
    counts = {group.label: sum(group.has(row) for row in lost) for group in groups}
    return {g.label: (counts[g.label], int(g.members.sum()) + counts[g.label]) for g in groups}


def _check_settings(level: float, least: int, n_boot: int) -> None:
    if not 0.5 <= level < 1:
        raise UserError(f"audit: level is {level}; it must be from 0.5 to below 1, such as 0.95")
    if least < 2:
        raise UserError(f"audit: least is {least}; it must be 2 or more, for an interval")
    if n_boot < 100:
        raise UserError(f"audit: n_boot is {n_boot}; it must be 100 or more")


def _absent(found: Measured) -> dict[str, str]:
    """Return why metrics are absent, in the order of `METRICS`."""
    return {
        name: found.absent.get(name, "nobody has a plan")
        for name in METRICS
        if name not in found.values
    }


def _numbers(
    groups: list[Group], names: list[str], draws: Bootstrap, level: float, hidden: Hidden
) -> tuple[Number, ...]:
    numbers = []
    for group in groups:
        counted = _counted(draws.values, group.members)
        shown = [j for j in range(len(names)) if (group.label, j) not in hidden]
        means = draws.means(group.members) if shown else None
        for j, name in enumerate(names):
            if j not in shown or means is None:
                why = hidden[group.label, j]
                numbers.append(Number(group.label, name, math.nan, math.nan, math.nan, None, why))
                continue
            n = int(counted[j])
            low, high = interval(means[:, j], n, level)
            value = _mean(draws.values, group.members, j)
            # resampled means of a share are biased towards one half: include the value itself
            numbers.append(Number(group.label, name, value, min(low, value), max(high, value), n))
    return tuple(numbers)


def _differences(
    groups: list[Group],
    names: list[str],
    metrics: list[Metric],
    draws: Bootstrap,
    level: float,
    least: int,
    hidden: Mapping[tuple[str, int], str] = MappingProxyType({}),
) -> tuple[Difference, ...]:
    """Compare each group with everyone else.

    The two groups of a column with two values are one comparison. Hidden numbers are not compared,
    since the comparison would reveal them.
    """
    made: list[tuple[Group, int]] = []
    seen: set[bytes] = set()
    for group in groups:
        others = ~group.members
        if others.tobytes() in seen or not others.any():
            continue
        seen.add(group.members.tobytes())
        fewest = np.minimum(_counted(draws.values, group.members), _counted(draws.values, others))
        made += [
            (group, j)
            for j, metric in enumerate(metrics)
            if metric.compared and fewest[j] >= least and (group.label, j) not in hidden
        ]
    return tuple(_compared(group, names[j], j, draws, level, len(made)) for group, j in made)


def _compared(
    group: Group, name: str, j: int, draws: Bootstrap, level: float, comparisons: int
) -> Difference:
    sides = (group.members, ~group.members)
    n, n_others = (int(_counted(draws.values, side)[j]) for side in sides)
    value, others = (_mean(draws.values, side, j) for side in sides)
    a, b = (draws.means(side)[:, j] for side in sides)
    half = difference(a, b, min(n, n_others), level, comparisons)
    gap = value - others
    return Difference(group.label, name, value, others, gap, gap - half, gap + half, n, n_others)


def _counted(values: Array, members: np.ndarray) -> np.ndarray:
    """Return (m,) how many of the members count in each metric."""
    return np.asarray((~np.isnan(values[members])).sum(axis=0))


def _mean(values: Array, members: np.ndarray, j: int) -> float:
    return float(np.nanmean(values[members, j]))
