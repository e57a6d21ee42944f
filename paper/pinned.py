"""How often guided diffusion changes immutable features before they are pinned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genrecourse import METHODS
from genrecourse.evaluation.evaluate import make_case
from genrecourse.methods.tabsyn_svdd import TabSynSVDD
from paper.records import Line

SETS = ("adult-carla", "compas")  # heloc has no immutable features
SEEDS = 3  # the first ones: each of them trains another TabSyn
LAMBDAS = (5.0, 10.0)
ROWS = 200


def run(name: str, seed: int, params: Mapping[str, Any]) -> list[Line]:
    """Return the share of people whose immutable features `tabsyn_svdd` changed, per lambda."""
    case = make_case(name, seed, rows=ROWS, fresh=True)
    method = METHODS["tabsyn_svdd"](case.h, case.schema, random_state=seed, **params)
    method.fit(case.X, case.y)
    assert isinstance(method, TabSynSVDD)
    head = {"dataset": name, "seed": seed, "n": len(case.people)}
    return [
        {**head, "lam": lam, "broken": float(method.immutables_broken(case.people, lam=lam).mean())}
        for lam in LAMBDAS
    ]


def in_words(lines: list[Line]) -> str:
    """Return the shares as one sentence."""
    if not lines:
        return "How often `tabsyn_svdd` changes immutable features before they are pinned: not run."
    shares = []
    for name, lam in dict.fromkeys((line["dataset"], line["lam"]) for line in lines):
        own = [x["broken"] for x in lines if (x["dataset"], x["lam"]) == (name, lam)]
        shares.append(f"{name} {sum(own) / len(own):.3f} at lambda {lam:g}")
    seeds = sorted({line["seed"] for line in lines})
    return (
        "Share of people whose immutable features `tabsyn_svdd` changed before they were pinned "
        f"({ROWS} people a seed, seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}, "
        f"`python -m paper pinned`): {'; '.join(shares)}."
    )
