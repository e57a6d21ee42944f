"""The 2-D sets: the recourse of each method for each person, and the densities of GenRe."""

from __future__ import annotations

import warnings
from functools import cache
from itertools import count, islice
from typing import Any

import numpy as np

from genrecourse.errors import rejections_expected
from genrecourse.evaluation.evaluate import Case, make_case, measure
from genrecourse.methods import METHODS
from genrecourse.methods._vae import VAEConfig
from genrecourse.methods.genre import GenRe, Training
from paper import contours
from paper.contours import Mass

SETS = ("moons", "circles", "corr")
CONTOUR_SETS = ("moons", "circles")
DENSITIES = ("R(x+ | x)", "P(x | favourable)")
# Shown if the library has them.
SHOWN = (
    "wachter",
    "growing_spheres",
    "dice",
    "roar",
    "probe",
    "tap",
    "revise",
    "cchvae",
    "cruds",
    "nnr",
    "nnr-auto",
    "genre-paper",
    "genre",
)
# The protocol's h for these sets is so small that on some seeds it learns nothing (circles: 0). A
# seed counts if h decides at least this share of the drawn test labels of every set correctly.
LEAST_ACCURACY = 0.75
SHOWN_PEOPLE = 2  # of a contour picture


def _params(method: str, steps: int) -> dict[str, Any]:
    """Return short trainings: two features need few steps. Smaller networks get more `steps`."""
    if method in ("genre", "genre-paper"):
        return {"training": Training(steps=steps)}
    if method in ("revise", "cchvae", "cruds"):
        return {"vae": VAEConfig(max_steps=5 * steps)}
    return {"max_batches": 7 * steps} if method == "tap" else {}


@cache
def cases(seed: int, people: int) -> dict[str, Case]:
    return {name: make_case(name, seed, rows=people, fresh=True) for name in SETS}


@cache
def seeds(n: int) -> list[int]:
    """Return the first n seeds from 1 on whose h has learned something, on every set."""
    return list(islice((seed for seed in count(1) if _has_learned(seed)), n))


def _has_learned(seed: int) -> bool:
    return all(case.h_accuracy >= LEAST_ACCURACY for case in cases(seed, 1).values())


def methods() -> list[str]:
    return [name for name in SHOWN if name in METHODS]


def arrows(made: dict[str, Case], steps: int) -> list[dict[str, Any]]:
    """Return a line per set and method: its metrics, and every x with its x_plus."""
    lines = []
    for method in methods():
        for name, case in made.items():
            fitted = _fitted(method, case, steps)
            with rejections_expected():
                X_plus = fitted.recourse(case.people)
            values = measure(case, X_plus)
            lines.append(
                {
                    "dataset": name,
                    "seed": case.seed,
                    "method": method,
                    "n": len(case.people),
                    "metrics": {m: float(np.nanmean(v)) for m, v in values.items()},
                    "x": case.people.round(4).to_numpy().tolist(),
                    "x_plus": X_plus.round(4).to_numpy().tolist(),
                }
            )
    return lines


def _fitted(method: str, case: Case, steps: int) -> Any:
    params = _params(method, steps)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*rejected rows have no accepted row")
        made = METHODS[method](case.h, case.schema, random_state=case.seed, **params)
        return made.fit(case.X, case.y)


Shown = tuple[Case, np.ndarray, list[Mass], Mass]


def densities(made: dict[str, Case], steps: int) -> tuple[list[dict[str, Any]], list[Shown]]:
    """Return the averages over people for both densities on each set, and what to draw."""
    lines, shown = [], []
    for name in CONTOUR_SETS:
        case = made[name]
        method = _fitted("genre-paper", case, steps)
        assert isinstance(method, GenRe)
        accepted = case.encoder.features(case.X)[case.y == 1]
        overall = contours.unconditional_mass(
            contours.fit_unconditional(method, accepted, case.seed)
        )
        people = case.encoder.features(case.people)
        masses = [contours.conditional_mass(method, f) for f in people]
        for label, own in zip(DENSITIES, (masses, [overall] * len(people)), strict=True):
            each = [contours.describe(m, case, f) for m, f in zip(own, people, strict=True)]
            lines.append(
                {
                    "dataset": name,
                    "seed": case.seed,
                    "density": label,
                    "n": len(people),
                    **{key: float(np.mean([e[key] for e in each])) for key in each[0]},
                }
            )
        # two people who are far from each other
        far = int(np.argmax(np.abs(people - people[0]).sum(axis=1)))
        pair = [0, far][:SHOWN_PEOPLE]
        shown.append((case, people[pair], [masses[i] for i in pair], overall))
    return lines, shown
