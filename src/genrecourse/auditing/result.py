"""Audit: means by group with their intervals, and the differences that these support."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.auditing.discretion import FEW, Hidden, find_hidden
from genrecourse.auditing.groups import EVERYONE, Group, Where, check_groups, find_groups
from genrecourse.auditing.measures import (
    CHANGE,
    METRICS,
    NO_CAUSE,
    Measured,
    Metric,
    learned_from,
    measure,
    metric_of,
)
from genrecourse.auditing.resampling import Bootstrap, difference, interval
from genrecourse.errors import UserError
from genrecourse.methods.base import Method
from genrecourse.table.encoding import Array
from genrecourse.table.schema import Schema

LEVEL = 0.95
LEAST = 20  # people behind a number; with fewer it is not given
N_BOOT = 1000
COLUMNS = ("group", "metric", "value", "low", "high", "n")  # of Audit.to_frame
LEARNED = (
    "These look like the rows that the model learned from: what is said of likely outcomes and of "
    "copies of the model flatters the plans. Audit people who were held out."
)


@dataclass(frozen=True)
class Number:
    """The mean of one metric in one group, with its interval.

    NaN, and no n, where too few people count; and where, with the numbers that are told, it would
    give such a one away.
    """

    group: str
    metric: str
    value: float
    low: float
    high: float
    n: int | None  # people who count in it
    hidden: str = ""  # why it is kept back: FEW, or BESIDE those who are few

    @property
    def is_known(self) -> bool:
        return not math.isnan(self.value)


@dataclass(frozen=True)
class Difference:
    """One group against everyone else, in one metric."""

    group: str
    metric: str
    value: float
    others: float  # everyone else's mean
    difference: float
    low: float  # its interval, which holds for all comparisons of the audit at once
    high: float
    n: int
    n_others: int

    @property
    def is_called(self) -> bool:
        """Whether the interval supports saying that there is a difference."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Audit:
    """What was found; made by `audit`."""

    numbers: tuple[Number, ...]
    differences: tuple[Difference, ...]  # every comparison that was made, called or not
    columns: tuple[str, ...]  # people were grouped by
    grouped: dict[str, Where]  # each group's label, and its columns and values
    schema: Schema
    method: str
    absent: dict[str, str] = field(default_factory=dict)  # metrics not measured, and why
    reasons: dict[str, int] = field(default_factory=dict)  # why people have no plan
    small: int = 0  # combinations with too few people to be listed
    learned: bool = False  # whether the people are those whom the model learned from
    level: float = LEVEL
    least: int = LEAST
    n_boot: int = N_BOOT
    seed: int = 0

    # ---- looking things up --------------------------------------------------------------------

    @property
    def groups(self) -> list[str]:
        return list(self.grouped)

    def groups_by(self, *columns: str) -> list[str]:
        """The groups that are about these columns and no other."""
        return [
            group
            for group, where in self.grouped.items()
            if tuple(column for column, _ in where) == columns
        ]

    @property
    def metrics(self) -> list[str]:
        """Of `METRICS`, those that were measured."""
        return [name for name in METRICS if name not in self.absent]

    @property
    def called(self) -> list[Difference]:
        """The differences that their intervals support."""
        return [each for each in self.differences if each.is_called]

    def number(self, group: str, metric: str) -> Number:
        for each in self.numbers:
            if (each.group, each.metric) == (group, metric):
                return each
        raise UserError(
            f"the audit has no '{metric}' of '{group}'; groups: {self.groups}, metrics: "
            f"{list(dict.fromkeys(each.metric for each in self.numbers))}"
        )

    def asked_most(self, group: str = EVERYONE) -> list[Number]:
        """The shares of plans that change each feature, the most frequent first; what no plan
        changes is left out, and so is everything if too few people have a plan."""
        found = [
            each
            for each in self.numbers
            if each.group == group and each.metric.startswith(CHANGE) and each.value > 0
        ]
        return sorted(found, key=lambda each: -each.value)

    def metric(self, name: str) -> Metric:
        return metric_of(name, self.schema)

    # ---- in words -----------------------------------------------------------------------------

    def in_words(self, number: Number) -> str:
        """A number with its interval, never without."""
        if number.hidden:
            return self.count(number)
        low, value, high = (
            written(v, self.metric(number.metric)) for v in (number.low, number.value, number.high)
        )
        return f"{value} ({low} to {high})"

    def count(self, number: Number) -> str:
        """How many people count in a number, as far as that is told."""
        if number.n is not None:
            return f"{number.n:,}"
        return f"fewer than {self.least}" if number.hidden == FEW else "kept back"

    def sentence(self, each: Difference) -> str:
        """A difference that is called, in a sentence."""
        metric = self.metric(each.metric)
        said = metric.more if each.difference > 0 else metric.less
        value, others = written(each.value, metric), written(each.others, metric)
        near, far = sorted((abs(each.low), abs(each.high)))
        size, near_, far_ = (_gap(gap, metric) for gap in (abs(each.difference), near, far))
        unit = " percentage points" if metric.is_share else ""
        return (
            f"People with {each.group} {said} than everyone else: {value} (n {each.n:,}) against "
            f"{others} (n {each.n_others:,}), a difference of {size}{unit} ({near_} to {far_})."
        )

    @property
    def how_called(self) -> str:
        """What a called difference rests on."""
        made = len(self.differences)
        if made == 0:
            return f"No comparison was made: no two sides have {self.least} people to be counted."
        each = 1 - (1 - self.level) / made
        return (
            f"{made} comparisons were made, each of a group with everyone else. A difference is "
            f"called where its interval leaves out zero; the intervals hold for all {made} at once "
            f"with {self.level:.0%} confidence (Bonferroni: {each:.3%} each)."
        )

    @property
    def how_counted(self) -> str:
        """What the intervals are, and who is not shown."""
        said = (
            f"{self.level:.0%} intervals, each by itself, from {self.n_boot:,} resamples of the "
            f"people, with the model and its plans as they are. With fewer than {self.least} "
            f"people to be counted no number is given, and one from which, with the others that "
            f"are told, theirs would follow is kept back. How many they are is not kept secret: "
            f"it may follow from a share and its n in the metric before."
        )
        if len(self.columns) > 1:
            said += (
                f" A combination is listed if at least {self.least} of its people were turned "
                f"down; {self.small} with somebody in them are not."
            )
        return said

    @property
    def remarks(self) -> list[str]:
        """What to know before reading on."""
        return [LEARNED] if self.learned else []

    @property
    def findings(self) -> list[str]:
        """The called differences in sentences; or that there is none."""
        if self.called:
            return [self.sentence(each) for each in self.called]
        if not self.differences:
            return []
        return [
            "No difference between groups is called. That is no proof that there is none: a small "
            "one shows only in a larger table."
        ]

    # ---- as text and data ---------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """One row a group and metric. Too few people: neither n nor anything else."""
        rows = [asdict(number) for number in self.numbers]
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"n": "Int64"})

    def to_text(self) -> str:
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
            said = "; ".join(f"{self._feature(each)} {self.in_words(each)}" for each in most)
            cost = self.number(group, "cost")  # hidden for the reason that what is asked is
            none = self.count(cost) if cost.hidden else "nothing"
            lines.append(f"Asked to change most, {group}: {said or none}")
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
        """Plain values for JSON: no NaN, no numpy."""
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
            "not_measured": dict(self.absent),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_html(self, title: str = "Who gets a plan, and what does it ask?") -> str:
        """One file that opens anywhere, with pictures."""
        from genrecourse.auditing.page import audit_html  # brings matplotlib: slow to import

        return audit_html(self, title)


def written(value: float, metric: Metric) -> str:
    """A mean as people write it; what is nearly nobody or nearly everybody is not rounded away."""
    if not metric.is_share:
        return f"{value:.2f}"
    edge = min(value, 1 - value)
    if not 1e-6 < edge < 0.01:
        return f"{value:.0%}"
    digits = max(1, math.ceil(-math.log10(200 * edge)))  # the least with which it is not 0 or 100
    return f"{value:.{digits}%}"


def _gap(size: float, metric: Metric) -> str:
    """A difference, with as many digits as it takes not to be zero."""
    size, digits = (100 * size, 1) if metric.is_share else (size, 2)
    text = f"{size:.{digits}f}"
    return text if float(text) or not size else f"{size:.1g}"


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}


# ---- how it is made -------------------------------------------------------------------------


def audit(
    method: Method,
    X: pd.DataFrame,
    groups: Sequence[str],
    *,
    level: float = LEVEL,
    least: int = LEAST,
    n_boot: int = N_BOOT,
    seed: int = 0,
    **request: Any,
) -> Audit:
    """Recourse by group and overall: shares, costs, robustness, with intervals.

    X: people, of all outcomes: accepted ones count in the share that is turned down. Beside the
        features it may have columns that the model never sees.
    groups: columns of X, features or not; each value is a group, and so is each combination of
        which at least `least` people were turned down.
    level: of the intervals. least: people behind a number. n_boot, seed: of the bootstrap.
    request: as in `Method.plans`.
    """
    groups = [groups] if isinstance(groups, str) else list(dict.fromkeys(groups))
    _check_settings(level, least, n_boot)
    if len(X) == 0:
        raise UserError("audit: the table has no rows")
    check_groups(X, groups)
    absent = [name for name in method.schema_.names if name not in X.columns]
    if absent:
        raise UserError(f"audit: the table lacks the column(s) {absent}; it has {list(X.columns)}")
    found = measure(method, X[method.schema_.names], request)
    rejected = found.values["rejected"] == 1
    if not rejected.any():
        raise UserError(
            f"audit: the model turns down nobody of {len(X):,} people, so that nobody needs a plan"
        )
    people, small = find_groups(X, groups, rejected, least)
    names = list(found.values)
    values = np.stack(list(found.values.values()), axis=1)
    metrics = [metric_of(name, method.schema_) for name in names]
    draws = Bootstrap(values, np.array([metric.is_share for metric in metrics]), n_boot, seed)
    hidden = find_hidden(people, values, least)
    return Audit(
        numbers=_numbers(people, names, draws, level, hidden),
        differences=_differences(people, names, metrics, draws, level, least, hidden),
        columns=tuple(groups),
        grouped={group.label: group.where for group in people},
        schema=method.schema_,
        method=type(method).__name__,
        absent=_absent(found),
        reasons=found.reasons,
        small=small,
        learned=learned_from(method, X[method.schema_.names]),
        level=level,
        least=least,
        n_boot=n_boot,
        seed=seed,
    )


def _check_settings(level: float, least: int, n_boot: int) -> None:
    if not 0.5 <= level < 1:
        raise UserError(f"audit: the level {level} should be from 0.5 to below 1, such as 0.95")
    if least < 2:
        raise UserError(f"audit: least is {least}; a mean of one person has no interval")
    if n_boot < 100:
        raise UserError(f"audit: n_boot is {n_boot}; intervals need 100 resamples at least")


def _absent(found: Measured) -> dict[str, str]:
    """In the order of `METRICS`; where nobody has a plan, nothing of a plan is measured."""
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
        told = [j for j in range(len(names)) if (group.label, j) not in hidden]
        means = draws.means(group.members) if told else None
        for j, name in enumerate(names):
            if j not in told or means is None:
                why = hidden[group.label, j]
                numbers.append(Number(group.label, name, math.nan, math.nan, math.nan, None, why))
                continue
            n = int(counted[j])
            low, high = interval(means[:, j], n, level)
            value = _mean(draws.values, group.members, j)
            # the resampled means of a share lean a little to the middle
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
    """Each group against everyone else; the other half of a pair is the same comparison. What is
    kept back is not compared: the comparison would tell it."""
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
    """(m,) how many of the members count in each metric."""
    return np.asarray((~np.isnan(values[members])).sum(axis=0))


def _mean(values: Array, members: np.ndarray, j: int) -> float:
    return float(np.nanmean(values[members, j]))
