"""temperature and margin, chosen with the one model that was trained.

Held-out rejected training rows get recourse at each setting of a small fixed grid, and a judge that
never saw what it scores rates it. The first setting stands unless another is clearly better.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from genrecourse.trust.judge import CrossFittedJudge, trust
from genrecourse.trust.score import Scored

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array

# The grid that "auto" searches: fixed, the same for every data set.
TEMPERATURE_GRID = (1.0, 0.5)  # the first stands unless another is clearly better
MARGIN_GRID = (1.0, 0.0)  # the margin that the targets had (gamma), or none (0.5); likewise
CLEARLY = 0.02  # the difference that a few hundred rows with few distinct x_plus can show

# (temperature) -> the candidates of each row, and (margin) -> (N,) the one that is selected
Sampled = Callable[[float], tuple[Scored, Callable[[float], np.ndarray]]]


def choose_sampling(
    sampled: Sampled,
    judge: CrossFittedJudge,
    temperatures: tuple[float, ...],
    margins: tuple[float, ...],
) -> tuple[float, float, dict[str, Any]]:
    """Return (temperature, margin), and a report of what was tried."""
    lines, chosen = [], []
    for temperature in temperatures:
        found, select = sampled(temperature)
        every = np.arange(len(found.F))
        for margin in margins:
            pick = select(margin)
            chosen.append(found.Z[every, pick])
            lines.append(
                {
                    "temperature": temperature,
                    "margin": margin,
                    "cost": float(found.cost[every, pick].mean()),
                    "h_valid": float((found.confidence[every, pick] > 0.5).mean()),
                }
            )
    n_features = found.F.shape[-1]
    for line, verdict in zip(lines, _judge_once(judge, chosen), strict=True):
        line["val"], line["lof"] = verdict
        line["score"] = sum(verdict) - line["cost"] / n_features
    best = max(lines, key=lambda line: line["score"])
    if best["score"] <= lines[0]["score"] + CLEARLY:
        best = lines[0]
    report = {"chosen": best, "tried": lines, "rows": len(found.F)}
    return best["temperature"], best["margin"], report


def _judge_once(judge: CrossFittedJudge, tables: list[Array]) -> list[tuple[float, float]]:
    """Return (val, lof) of each table; a row that stands in several is judged once."""
    distinct, place = np.unique(np.concatenate(tables), axis=0, return_inverse=True)
    probability, inlier = judge(distinct)
    valid = trust(probability)
    parts = np.split(place.reshape(-1), np.cumsum([len(t) for t in tables])[:-1])
    return [(float(valid[p].mean()), float(inlier[p].mean())) for p in parts]
