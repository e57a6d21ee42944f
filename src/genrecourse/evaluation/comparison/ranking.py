"""From the lines of a comparison to who stands where: means, 95% intervals, paired differences.

Each method is compared with the best other one (the highest mean Score on that data set, itself
left out), person by person. The bounds are no methods and take no part in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genrecourse.errors import UserError
from genrecourse.evaluation.comparison.entries import BOUNDS
from genrecourse.evaluation.comparison.intervals import Interval, over_seeds, paired
from genrecourse.evaluation.comparison.results import Line, unpack_people

RANKED_BY = "score"


@dataclass(frozen=True)
class Standing:
    """How one method did on one data set, over the seeds."""

    dataset: str
    label: str
    n: int  # people of all seeds, those included whom it failed
    answered: int  # people of the seeds on which it did not fail
    distinct: int  # x_plus they were told
    seeds: int
    failed: int  # seeds on which it failed
    metrics: dict[str, Interval]
    other: str | None = None  # the method it is compared with
    difference: Interval | None = None  # its Score less the other's
    fit_seconds: float | None = None  # a seed
    row_ms: float | None = None


def standings(lines: Sequence[Line], reference: str | None = None) -> list[Standing]:
    """One for each data set and method, in the order of the lines.

    reference: the method to which all others are compared; None: for each the best other one.
    """
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line["dataset"], line["label"]), []).append(line)
    found = []
    for (dataset, label), own in groups.items():
        others = {
            name: theirs
            for (place, name), theirs in groups.items()
            if place == dataset and name != label and theirs[0]["method"] not in BOUNDS
        }
        if reference is not None and reference not in {*others, label}:
            raise UserError(f"the reference '{reference}' is none of {sorted({*others, label})}")
        if own[0]["method"] in BOUNDS or reference == label:
            others = {}
        found.append(_standing(own, others, reference))
    return found


def _standing(own: list[Line], others: dict[str, list[Line]], reference: str | None) -> Standing:
    ok = [line for line in own if "failed" not in line]
    other = reference if reference in others else _best(others)
    return Standing(
        own[0]["dataset"],
        own[0]["label"],
        n=sum(line["n"] for line in own),
        answered=sum(line["n"] for line in ok),
        distinct=sum(line.get("distinct", 0) for line in ok),
        seeds=len(own),
        failed=len(own) - len(ok),
        metrics=_metrics(ok),
        other=other,
        difference=difference(ok, others[other]) if other is not None else None,
        fit_seconds=_mean(line["seconds"].get("fit") for line in ok if "seconds" in line),
        row_ms=_mean(
            1000 * line["seconds"]["recourse"] / line["n"]
            for line in ok
            if "recourse" in line.get("seconds", {})
        ),
    )


def _best(others: dict[str, list[Line]]) -> str | None:
    scores = {name: _mean(_means(lines, RANKED_BY)) for name, lines in others.items()}
    known = {name: score for name, score in scores.items() if score is not None}
    return max(known, key=lambda name: known[name]) if known else None


def _metrics(lines: list[Line]) -> dict[str, Interval]:
    names = list(dict.fromkeys(name for line in lines for name in line["metrics"]))
    return {name: found for name in names if (found := estimate(lines, name)) is not None}


def estimate(lines: Sequence[Line], metric: str) -> Interval | None:
    """The mean of a metric over the lines of one method, one line a seed; None: nobody has it."""
    lines = [line for line in lines if len(_means([line], metric))]
    if not lines:
        return None
    n = sum(line["metrics"][metric]["n"] for line in lines)
    distinct = sum(line.get("distinct") or line["n"] for line in lines)
    if len(lines) > 1:
        return over_seeds(_means(lines, metric), n, distinct)
    (summary,) = (line["metrics"][metric] for line in lines)
    half = float("nan") if summary["half"] is None else summary["half"]
    return Interval(summary["mean"], half, n, distinct)


def difference(
    ours: Sequence[Line], theirs: Sequence[Line], metric: str = RANKED_BY
) -> Interval | None:
    """Ours less theirs, person by person, on the seeds that both have; None: there are none.

    Where one of them was asked for fewer people (`rows`), the difference is that of these: a case
    with fewer rows has the first of the same people.
    """
    theirs_by_seed = {line["seed"]: line for line in theirs if "failed" not in line}
    pairs = [
        (unpack_people(line), unpack_people(theirs_by_seed[line["seed"]]))
        for line in ours
        if "failed" not in line and line["seed"] in theirs_by_seed
    ]
    found = [_paired(a, b, metric) for a, b in pairs if metric in a and metric in b]
    if len(found) < 2:
        return found[0] if found else None
    n, clusters = sum(each.n for each in found), sum(each.clusters for each in found)
    return over_seeds([each.mean for each in found], n, clusters)


def _paired(a: dict[str, np.ndarray], b: dict[str, np.ndarray], metric: str) -> Interval:
    """Of the people of whom both have a number."""
    n = min(len(a[metric]), len(b[metric]))
    columns = [part[:n] for part in (a[metric], b[metric], a["x_plus"], b["x_plus"])]
    known = ~np.isnan(columns[0] - columns[1])
    return paired(*(column[known] for column in columns))


def _means(lines: Iterable[Line], metric: str) -> list[float]:
    summaries = [line.get("metrics", {}).get(metric) for line in lines]
    return [s["mean"] for s in summaries if s is not None and s["mean"] is not None]


def _mean(values: Iterable[Any]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
