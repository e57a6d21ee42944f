"""How often guided diffusion changes immutable features before they are pinned."""

from __future__ import annotations

from genrecourse import METHODS
from genrecourse.evaluation.evaluate import make_case
from genrecourse.methods.tabsyn_svdd import TabSynSVDD
from paper.records import DATASETS, Line

LAMBDAS = (5.0, 10.0)
ROWS = 200


def run(seed: int) -> list[Line]:
    """Return the share of people whose immutable features `tabsyn_svdd` changed, per data set."""
    lines: list[Line] = []
    for name in DATASETS.values():
        case = make_case(name, seed, rows=ROWS)
        method = METHODS["tabsyn_svdd"](case.h, case.schema, random_state=seed).fit(case.X, case.y)
        assert isinstance(method, TabSynSVDD)
        for lam in LAMBDAS:
            broken = float(method.immutables_broken(case.people, lam=lam).mean())
            head = {"dataset": name, "seed": seed, "lam": lam, "n": len(case.people)}
            lines.append({**head, "broken": broken})
    return lines


def in_words(lines: list[Line]) -> str:
    """Return the shares as one sentence."""
    if not lines:
        return "How often `tabsyn_svdd` changes immutable features before they are pinned: not run."
    shares = [
        f"{line['dataset']} {line['broken']:.3f} at lambda {line['lam']:g}, {line['n']} people"
        for line in lines
    ]
    return (
        "Share of rows whose immutable features `tabsyn_svdd` changed before they were pinned "
        f"(seed {lines[0]['seed']}, `python -m paper pinned`): {'; '.join(shares)}."
    )
