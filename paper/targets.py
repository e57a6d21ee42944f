"""The targets that `genre` has to reach, and whether the results reach them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from genrecourse.evaluation.comparison import difference
from paper.records import DATASETS, Measured, Results, published
from paper.tables import best_other, interval, markdown

RETRAINED, NOISE_SLACK, AIM = 0.95, 0.05, 1.95
MOST_CHANGES = {"adult": 4.0, "heloc": 8.0}


@dataclass(frozen=True)
class Outcome:
    """Whether a target is met; None if there is no result, or no target for this data set."""

    met: bool | None
    words: str


Target = Callable[[Results, str], Outcome]  # takes the results and the paper's data set name
NOTHING = Outcome(None, "")


def _ours(results: Results, name: str, metric: str) -> Measured | None:
    return results.measured("genre", DATASETS[name], metric)


def _at_least(found: Measured | None, least: float) -> Outcome:
    if found is None:
        return NOTHING
    return Outcome(found.mean >= least, f"{found.mean:.3f}{interval(found)}, needs {least:.3f}")


def score_as_published(results: Results, name: str) -> Outcome:
    return _at_least(_ours(results, name, "score"), published("main")[name, "GenRe", "score"].mean)


def score_aimed_at(results: Results, name: str) -> Outcome:
    return _at_least(_ours(results, name, "score"), AIM)


def no_violations(results: Results, name: str) -> Outcome:
    found = _ours(results, name, "violations")
    return NOTHING if found is None else Outcome(found.mean == 0, f"{found.mean * found.n:.0f}")


def few_changes(results: Results, name: str) -> Outcome:
    found, most = _ours(results, name, "changes"), MOST_CHANGES.get(name)
    if found is None or most is None:
        return Outcome(None, "" if found is None else f"{found.mean:.2f}, no limit")
    return Outcome(found.mean <= most, f"{found.mean:.2f}{interval(found, 2)}, limit {most:g}")


def retrained(how: str) -> Target:
    return lambda results, name: _at_least(_ours(results, name, f"retrained_{how}"), RETRAINED)


def noise(results: Results, name: str) -> Outcome:
    theirs = results.measured("genre-paper", DATASETS[name], "noise")
    if theirs is None:
        return NOTHING
    return _at_least(_ours(results, name, "noise"), theirs.mean - NOISE_SLACK)


def better_than_the_best_other(results: Results, name: str) -> Outcome:
    """Return whether `genre` has a higher Score than the best other method.

    name: the paper's name of a data set, or ours if the paper does not use it.
    """
    dataset = DATASETS.get(name, name)
    best = best_other(results, dataset)
    if best is None:
        return NOTHING
    found = difference(results.of("genre", dataset), results.of(best, dataset))
    if found is None:
        return NOTHING
    words = f"{found.mean:+.4f}{interval(found, 4)} against `{best}`"
    return Outcome(found.low > 0, words)


TARGETS: dict[str, Target] = {
    "Score at least the published one": score_as_published,
    "no violations": no_violations,
    "few changed features": few_changes,
    "accepted by h retrained with another seed": retrained("seed"),
    "accepted by h retrained on a bootstrap": retrained("bootstrap"),
    "valid under noise, at least `genre-paper` minus 0.05": noise,
    "Score above the best other method, same people": better_than_the_best_other,
    "Score of at least 1.95 (aim)": score_aimed_at,
}
WORDS = {True: "met: ", False: "**missed**: ", None: ""}


def table(results: Results) -> str:
    """Return a row per target and a column per data set."""
    if not results.labels():
        return "Targets: not run."
    rows = []
    for words, target in TARGETS.items():
        outcomes = [target(results, name) for name in DATASETS]
        rows.append([words, *(WORDS[o.met] + o.words for o in outcomes)])
    return markdown(["target for `genre`", *DATASETS], rows)


def listed(results: Results, met: bool) -> list[str]:
    """Return list items: all targets that are met in one item, or one item per missed target."""
    found = {
        words: {name: o for name in DATASETS if (o := target(results, name)).met is met}
        for words, target in TARGETS.items()
    }
    known = {words: own for words, own in found.items() if own}
    if met and known:
        each = "; ".join(f"{words} ({', '.join(own)})" for words, own in known.items())
        return [f"- `genre` meets these [targets](pages/targets.md): {each}."]
    return [
        f"- `genre` misses a [target](pages/targets.md), {words}: "
        + "; ".join(f"{name} {o.words}" for name, o in own.items())
        + "."
        for words, own in known.items()
    ]
