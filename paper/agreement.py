"""Does our value agree with the published one? Three answers: equal, different, too noisy to tell.

The published value is one run: 200 people, one seed. Ours is a mean over k seeds. The difference of
the two has the error

    sqrt(ours^2 + k * ours^2 + people^2),

ours: the half width of our 95% interval. sqrt(k) * ours: that of one more seed, which is what was
published, if the authors' seeds vary as ours do. people: 1.96 * sd / sqrt(200), of the published
sd between people; that of a Score comes from the sds of its three parts. Half of the last digit is
added for rounding.

- different: the difference is larger than its error.
- equal: it is not, and the error is small enough to tell (`TELLING`).
- too noisy: it is not, but the error is so large that a difference that matters could hide in it.

reasons.toml lists the likely reasons of differences by table, data set and method.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from paper.records import DATASETS, METRICS, PUBLISHED_ROWS, Measured, Published, Results
from paper.records import published as published_table
from paper.tables import BESIDE, value_of

HERE = Path(__file__).parent
ROUNDING = 0.005  # published values have two decimals
TELLING = 0.1  # the largest error that still tells: of val, LOF and Score, and ...
TELLING_COST = 0.2  # ... of cost, as a share of the published cost

Agreement = Literal["equal", "different", "too noisy to tell"]


@dataclass(frozen=True)
class Comparison:
    """A published value beside ours."""

    table: str
    dataset: str
    method: str  # as published
    label: str  # ours
    metric: str
    published: Published
    ours: Measured

    @property
    def error(self) -> float:
        """Half the width of the 95% interval of the difference; NaN if ours has no interval."""
        people = 1.96 * (self.published.sd or 0.0) / math.sqrt(PUBLISHED_ROWS)
        seeds = self.ours.seeds if self.ours.seeds > 1 else 0  # one seed says nothing about others
        return math.sqrt((1 + seeds) * self.ours.half**2 + people**2) + ROUNDING

    @property
    def verdict(self) -> Agreement:
        error = self.error
        if abs(self.published.mean - self.ours.mean) > error:
            return "different"
        tells = TELLING
        if self.metric == "cost":
            tells = max(TELLING, TELLING_COST * abs(self.published.mean))
        # false for NaN: without an interval nothing can be told
        return "equal" if error <= tells else "too noisy to tell"

    @property
    def words(self) -> str:
        return (
            f"{self.metric} {self.published.mean:.2f} published, {self.ours.mean:.3f} ours "
            f"(difference {self.ours.mean - self.published.mean:+.3f} ± {self.error:.3f})"
        )


def comparisons(table: str, results: Results) -> list[Comparison]:
    """Return every published value of a table for which we have a value."""
    rows, _ = BESIDE[table]
    every = (
        (d, row.published, row.reproduces, m) for d in DATASETS for row in rows for m in METRICS
    )
    found = []
    for dataset, method, label, metric in every:
        if method is None or label is None:
            continue
        theirs = published_table(table).get((dataset, method, metric))
        ours = value_of(results, label, dataset, metric)
        if theirs is not None and ours is not None:
            theirs = Published(theirs.mean, published_sd(table, dataset, method, metric))
            found.append(Comparison(table, dataset, method, label, metric, theirs, ours))
    return found


def published_sd(table: str, dataset: str, method: str, metric: str) -> float | None:
    """Return the published sd between people; that of a Score as if its parts were independent."""
    known = published_table(table)
    if metric != "score":
        return known[dataset, method, metric].sd
    parts = [known[dataset, method, part].sd for part in ("cost", "val", "lof")]
    if any(sd is None for sd in parts):
        return None
    cost, val, lof = (sd or 0.0 for sd in parts)
    return math.hypot(cost / published_table("data")[dataset, "", "features"].mean, val, lof)


@cache
def _reasons() -> list[dict[str, str]]:
    text = (HERE / "reasons.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["reason"]


def reason(table: str, dataset: str, method: str) -> str:
    """Return the first reason that matches; the file lists specific reasons first."""
    for entry in _reasons():
        asked = {"table": table, "dataset": dataset, "method": method}
        if all(entry.get(key, "*") in ("*", value) for key, value in asked.items()):
            return entry["text"]
    return "not known"


def counted(found: Sequence[Comparison]) -> str:
    """Return one sentence: how many published values equal ours, differ, or cannot be compared."""
    if not found:
        return "Nothing to compare yet."
    n = Counter(each.verdict for each in found)
    return (
        f"Of {len(found)} published values, ours is equal to {n['equal']} within both errors and "
        f"different from {n['different']}; {n['too noisy to tell']} are too noisy to tell."
    )


def listed(found: Sequence[Comparison]) -> str:
    """Return the verdicts of a table: an item per data set and method that is not just equal."""
    lines = [counted(found)]
    places = dict.fromkeys((each.dataset, each.method) for each in found)
    items = [item for place in places for item in _items(place, found)]
    return "\n".join([*lines, "", *items] if items else lines)


def _items(place: tuple[str, str], found: Sequence[Comparison]) -> list[str]:
    own = [each for each in found if (each.dataset, each.method) == place]
    where = f"{place[0]}, {place[1]} (`{own[0].label}`)"
    items = []
    different = [each.words for each in own if each.verdict == "different"]
    if different:
        why = reason(own[0].table, *place)
        items.append(f"- {where}: different: {'; '.join(different)}. Most likely reason: {why}.")
    noisy = [each.words for each in own if each.verdict == "too noisy to tell"]
    if noisy:
        items.append(f"- {where}: too noisy to tell: {'; '.join(noisy)}.")
    return items
