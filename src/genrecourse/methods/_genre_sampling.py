"""GenRe's automatic choice of temperature and margin, with the one model that was trained.

Held-out rejected training rows get recourse at each setting of a small fixed grid, and a judge that
never saw what it scores says how good it is. The first setting stands unless another is clearly
better.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from genrecourse.methods._density_method import DensityMethod
from genrecourse.table.encoding import Array
from genrecourse.table.noise import KeyedNoise
from genrecourse.trust.judge import CrossFittedJudge, trust

# The grid that "auto" searches: fixed, the same for every data set.
TEMPERATURE_GRID = (1.0, 0.5)  # the first stands unless another is clearly better
MARGIN_GRID = (1.0, 0.0)  # the one that the targets had (gamma), or none (0.5); likewise
CLEARLY = 0.02  # what a few hundred rows with few distinct x_plus can tell apart

Setting = float | Literal["auto"]


def choose_sampling(
    method: DensityMethod,
    Z: Array,
    judge: CrossFittedJudge | None,
    temperature: Setting,
    margin: Setting,
) -> tuple[float, float, dict[str, Any] | None]:
    """(temperature, margin), and what was tried; None where there was nothing to choose.

    Z: rejected rows, held-out ones first.
    """
    temperatures = TEMPERATURE_GRID if temperature == "auto" else (float(temperature),)
    margins: tuple[float, ...] = (0.5 if margin == "auto" else float(margin),)
    if margin == "auto" and method.select == "likelihood":  # a verifier asks for more
        margins = tuple(0.5 + share * (method.gamma_ - 0.5) for share in MARGIN_GRID)
    if judge is None or len(temperatures) * len(margins) == 1:
        return temperatures[0], margins[0], None
    lines = _tried(method, Z, judge, temperatures, margins)
    best = max(lines, key=lambda line: line["score"])
    if best["score"] <= lines[0]["score"] + CLEARLY:
        best = lines[0]
    report = {"chosen": best, "tried": lines, "rows": len(Z)}
    return best["temperature"], best["margin"], report


def _tried(
    method: DensityMethod,
    Z: Array,
    judge: CrossFittedJudge,
    temperatures: tuple[float, ...],
    margins: tuple[float, ...],
) -> list[dict[str, float]]:
    """A line for each setting: what recourse costs, and what h and the judge make of it."""
    every = np.arange(len(Z))
    lines, chosen = [], []
    for temperature in temperatures:
        draws = method._offers(Z, method._draw(Z, KeyedNoise(method.random_state), temperature))
        known = method._known(Z, draws)
        for margin in margins:
            pick = method._select(draws, known, margin, method.safety)
            chosen.append(method.encoder_.from_features(draws.F[every, pick]))
            lines.append(
                {
                    "temperature": temperature,
                    "margin": margin,
                    "cost": float(known[1][every, pick].mean()),
                    "h_valid": float((known[0][every, pick] > 0.5).mean()),
                }
            )
    for line, verdict in zip(lines, _judge_once(judge, chosen), strict=True):
        line["val"], line["lof"] = verdict
        line["score"] = sum(verdict) - line["cost"] / len(method.schema_)
    return lines


def _judge_once(judge: CrossFittedJudge, tables: list[Array]) -> list[tuple[float, float]]:
    """(val, lof) of each table; the same row often stands in many, so each is judged once."""
    distinct, place = np.unique(np.concatenate(tables), axis=0, return_inverse=True)
    probability, inlier = judge(distinct)
    valid = trust(probability)
    parts = np.split(place.reshape(-1), np.cumsum([len(t) for t in tables])[:-1])
    return [(float(valid[p].mean()), float(inlier[p].mean())) for p in parts]
