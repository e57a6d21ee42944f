"""Rank the methods of a comparison: means, 95% intervals and paired differences.

Each method is compared, person by person, with the best other method (the one with the highest mean
Score on the data set). The bounds are not methods and are not compared.
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
    """The results of one method on one data set, over all seeds.

    >>> score = Interval(1.4, 0.1, n=200, clusters=80, seeds=2)
    >>> row = Standing("german", "nnr", 200, 200, 80, 2, 0, {"score": score})
    >>> row.metrics["score"].mean
    1.4
    """

    dataset: str
    label: str
    n: int  # people of all seeds, also of seeds on which the method failed
    answered: int  # people of the seeds on which it did not fail
    distinct: int  # distinct x_plus
    seeds: int
    failed: int  # seeds on which it failed
    metrics: dict[str, Interval]
    other: str | None = None  # the method that it is compared with
    difference: Interval | None = None  # its Score minus the Score of the other method
    fit_seconds: float | None = None  # per seed
    row_ms: float | None = None


def standings(lines: Sequence[Line], reference: str | None = None) -> list[Standing]:
    """Return one standing per data set and method, in the order of the lines.

    reference: the method with which all others are compared; None: the best other method.

    >>> summary = {"mean": 1.4, "half": 0.1, "sd": 0.5, "n": 50}
    >>> line = {"dataset": "german", "label": "nnr", "method": "nnr", "seed": 0, "n": 50}
    >>> (row,) = standings([line | {"metrics": {"score": summary}}])
    >>> row.label, row.metrics["score"].mean
    ('nnr', 1.4)
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
            raise UserError(
                f"the reference '{reference}' is not a method on {dataset}; choose from "
                f"{sorted({*others, label})}"
            )
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
    """Return the mean of a metric over the lines of one method, one line per seed.

    None if no line has the metric.

    >>> summary = {"mean": 0.7, "half": None, "sd": 0.4, "n": 50}
    >>> lines = [{"n": 50, "metrics": {"val": summary}}, {"n": 50, "metrics": {"val": summary}}]
    >>> found = estimate(lines, "val")
    >>> found.mean, found.n, found.seeds
    (0.7, 100, 2)
    """
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
    """Return ours minus theirs, person by person, on the seeds of both; None if there are none.

    If one method ran for fewer people (`rows`), only these people count: a case with fewer rows has
    the first of the same people.

    >>> from genrecourse.evaluation.comparison.results import pack_numbers
    >>> def line(scores):
    ...     people = {"score": np.array(scores), "x_plus": np.arange(3)}
    ...     return {"seed": 0, "people": {name: pack_numbers(v) for name, v in people.items()}}
    >>> difference([line([1.0, 2.0, 1.0])], [line([1.0, 1.0, 0.5])]).mean
    0.5
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
    """Return the difference over the people for whom both methods have a number."""
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
