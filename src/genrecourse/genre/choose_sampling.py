"""The choice of temperature and margin, with the one model that was trained.

Held-out rejected training rows get recourse at each setting of a small fixed grid, and a judge that
was not fitted on a result scores it. The first setting is kept unless another is clearly better.
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
TAUGHT_TEMPERATURE = 0.3  # of a density that a search has taught: no choice is needed
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
    """Return (temperature, margin), and a report of the settings that were tried.

    sampled: returns, for a temperature, the candidates of each row, and a function that returns,
    for a margin, the candidate (N,) that is selected.

    >>> Z = np.random.default_rng(0).uniform(size=(60, 2))
    >>> judge = CrossFittedJudge(n_folds=2).fit(Z, Z[:, 0] > 0.5)
    >>> draws = np.array([[[0.1, 0.5], [0.9, 0.5]]])  # two candidates for one row
    >>> found = Scored(draws, draws, confidence=draws[..., 0], cost=np.array([[0.0, 0.8]]))
    >>> def sampled(temperature):  # a low margin selects the first candidate, a high one the second
    ...     return found, lambda margin: np.array([0 if margin < 0.5 else 1])
    >>> choose_sampling(sampled, judge, temperatures=(1.0,), margins=(0.0, 0.6))[:2]
    (1.0, 0.6)
    """
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
