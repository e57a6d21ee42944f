"""Where our numbers differ from the paper's, the likely reason, and which claims hold.

A difference is a published value that lies outside the 95% interval of our row for the same method.
reasons.toml lists the likely reasons by table, data set and method; "*" matches anything.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from paper.records import DATASETS, METRICS, PUBLISHED_ROWS, Line, Measured, Published, Results
from paper.records import published as published_table
from paper.tables import BESIDE, value_of
from paper.theory import SETTINGS, slope

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Difference:
    """One published value that lies outside our interval."""

    table: str
    dataset: str
    method: str  # as published
    label: str  # ours
    metric: str
    published: Published
    ours: Measured

    @property
    def within_their_error(self) -> bool:
        """Return whether the sampling error of the 200 published people explains it."""
        if not self.published.sd:  # not published, or 0 because all 200 outcomes are equal
            return False
        theirs = self.published.sd / math.sqrt(PUBLISHED_ROWS)
        both = math.hypot(theirs, self.ours.half / 1.96)
        return abs(self.published.mean - self.ours.mean) < 1.96 * both + 0.005


def differences(table: str, results: Results) -> list[Difference]:
    """Return the published values of a table that lie outside our intervals."""
    rows, _ = BESIDE[table]
    found = []
    for dataset in DATASETS:
        for row in rows:
            for metric in METRICS:
                theirs = published_table(table).get((dataset, row.published or "", metric))
                if theirs is None or row.reproduces is None:
                    continue
                ours = value_of(results, row.reproduces, dataset, metric)
                if ours is not None and ours.excludes(theirs.mean):
                    assert row.published is not None
                    found.append(
                        Difference(
                            table, dataset, row.published, row.reproduces, metric, theirs, ours
                        )
                    )
    return found


def compared(table: str, results: Results) -> int:
    """Return the number of published values for which we have a value with an interval."""
    rows, _ = BESIDE[table]
    values = [
        value_of(results, row.reproduces, dataset, metric)
        for (dataset, method, metric) in published_table(table)
        for row in rows
        if row.published == method and row.reproduces is not None and metric in METRICS
    ]
    return sum(v is not None and not math.isnan(v.half) for v in values)


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


def counted(table: str, results: Results) -> str:
    """Return one sentence: how many published values of a table lie outside our interval."""
    n = compared(table, results)
    if n == 0:
        return "Nothing to compare yet."
    return f"{len(differences(table, results))} of {n} published values lie outside our interval."


def listed(table: str, results: Results) -> str:
    """Return the differences of a table, one item per data set and method."""
    found = differences(table, results)
    lines = [counted(table, results)]
    if found:
        lines.append("")
    for dataset, method in dict.fromkeys((d.dataset, d.method) for d in found):
        own = [d for d in found if (d.dataset, d.method) == (dataset, method)]
        values = "; ".join(
            f"{d.metric} {d.published.mean:.2f} published, {d.ours.mean:.3f} ours "
            f"[{d.ours.low:.3f}, {d.ours.high:.3f}]"
            + (", within the error of 200 people" if d.within_their_error else "")
            for d in own
        )
        why = reason(table, dataset, method)
        where = f"{dataset}, {method} (`{own[0].label}`)"
        lines.append(f"- {where}: {values}. Most likely reason: {why}.")
    return "\n".join(lines)


# ---- claims -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds; None if the results that decide it do not exist."""

    holds: bool | None
    evidence: str


@dataclass(frozen=True)
class Evidence:
    """The results that decide the claims."""

    main: Results
    settings: Results
    theory: list[Line]
    contours: list[Line]


Check = Callable[[Evidence], Verdict]
NOTHING = Verdict(None, "no results")


def _mean(results: Results, label: str, dataset: str, metric: str) -> float | None:
    found = results.measured(label, DATASETS[dataset], metric)
    return None if found is None else found.mean


def genre_beats_nearest(seen: Evidence) -> Verdict:
    pairs = {
        d: (_mean(seen.main, "genre-paper", d, "score"), _mean(seen.main, "nnr-dplus", d, "score"))
        for d in ("adult", "heloc")
    }
    known = {d: (a, b) for d, (a, b) in pairs.items() if a is not None and b is not None}
    if len(known) < len(pairs):
        return NOTHING
    words = ", ".join(f"{d} {a:.3f} against {b:.3f}" for d, (a, b) in known.items())
    return Verdict(all(a > b for a, b in known.values()), words)


def nearest_in_order(seen: Evidence) -> Verdict:
    labels = ("nnr", "nnr-0.7", "nnr-dplus")
    scores = {d: [_mean(seen.main, label, d, "score") for label in labels] for d in DATASETS}
    if any(v is None for row in scores.values() for v in row):
        return NOTHING
    known = {d: [v for v in row if v is not None] for d, row in scores.items()}
    words = ", ".join(f"{d} {' < '.join(f'{v:.3f}' for v in row)}" for d, row in known.items())
    return Verdict(all(row == sorted(row) for row in known.values()), words)


def lof_stays_high(seen: Evidence) -> Verdict:
    lowest: dict[str, float] = {}
    for d in DATASETS:
        for lam in ("0.5", "1.0", "2.5", "5.0", "10.0"):
            found = _mean(seen.settings, f"genre-paper lambda={lam}", d, "lof")
            if lam == "5.0":
                found = _mean(seen.settings, "genre-paper", d, "lof")
            if found is None:
                found = _mean(seen.settings, f"genre-paper any/{lam}", d, "lof")
            if found is None:
                return NOTHING
            lowest[d] = min(found, lowest.get(d, 1.0))
    words = "lowest LOF over lambda: " + ", ".join(f"{d} {v:.3f}" for d, v in lowest.items())
    return Verdict(all(v >= 0.85 for v in lowest.values()), words)


def sigma_matters_little(seen: Evidence) -> Verdict:
    spread = {}
    for d in DATASETS:
        scores = [
            _mean(seen.settings, f"genre-paper/{tau}, {sigma}", d, "score")
            for tau in ("10.0", "15.0")
            for sigma in ("2e-07", "2e-06", "2e-05", "2e-4", "2e-3")
        ]
        known = [v for v in scores if v is not None]
        if len(known) < len(scores):
            return NOTHING
        spread[d] = max(known) - min(known)
    words = "largest minus smallest Score: " + ", ".join(f"{d} {v:.3f}" for d, v in spread.items())
    return Verdict(all(v <= 0.05 for v in spread.values()), words)


def more_data_helps(seen: Evidence) -> Verdict:
    some = _mean(seen.settings, "genre-paper fraction=0.1", "adult", "score")
    every = _mean(seen.settings, "genre-paper", "adult", "score")
    if some is None or every is None:
        return NOTHING
    return Verdict(every > some, f"adult: {some:.3f} with a tenth, {every:.3f} with all")


def error_falls_as_one_over_n(seen: Evidence) -> Verdict:
    own = [line for line in seen.theory if line["setting"] == SETTINGS[0].label]
    if not own:
        return NOTHING
    slopes = [
        slope([line for line in own if line["f"] == f], "rmse")
        for f in dict.fromkeys(line["f"] for line in own)
    ]
    words = "slope of the error: " + ", ".join(f"{s:.2f}" for s in slopes)
    return Verdict(all(s < -0.9 for s in slopes), words + "; its square falls as 1 / N+")


def variance_falls_as_one_over_n(seen: Evidence) -> Verdict:
    own = [line for line in seen.theory if line["setting"] == SETTINGS[0].label]
    if not own:
        return NOTHING
    slopes = [
        slope([line for line in own if line["f"] == f], "variance")
        for f in dict.fromkeys(line["f"] for line in own)
    ]
    words = "slope of the variance: " + ", ".join(f"{s:.2f}" for s in slopes)
    return Verdict(all(-1.1 < s < -0.9 for s in slopes), words)


def conditional_is_more_plausible(seen: Evidence) -> Verdict:
    mass = {(line["dataset"], line["density"][0]): line["lof"] for line in seen.contours}
    sets = list(dict.fromkeys(dataset for dataset, _ in mass))
    if not sets:
        return NOTHING
    words = ", ".join(f"{d} {mass[d, 'R']:.3f} against {mass[d, 'P']:.3f}" for d in sets)
    return Verdict(all(mass[d, "R"] > mass[d, "P"] for d in sets), f"mass on inliers: {words}")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, the check that decides it, and the page with the evidence."""

    words: str
    check: Check
    page: str


CLAIMS = (
    Claim(
        "GenRe scores above nearest neighbours in D+ on adult and heloc (table tab:nnr_comparison)",
        genre_beats_nearest,
        "nnr",
    ),
    Claim(
        "Each further condition on the neighbour raises its Score: NNR, then gamma 0.7, then D+ "
        "(section 5.5)",
        nearest_in_order,
        "nnr",
    ),
    Claim(
        "LOF stays high for every lambda; we require at least 0.85, as the lowest published value "
        "is 0.86 (section 5.3)",
        lof_stays_high,
        "lambda",
    ),
    Claim(
        "The conditional density keeps more of its mass on the data than the unconditional one "
        "(section 5.4)",
        conditional_is_more_plausible,
        "contours",
    ),
    Claim(
        "Temperature and sigma matter little; we require Scores within 0.05 for tau 10 and 15 and "
        "sigma up to 2e-3 (appendix)",
        sigma_matters_little,
        "temperature",
    ),
    Claim(
        "With all of adult the Score is higher than with a tenth of it (appendix)",
        more_data_helps,
        "fraction",
    ),
    Claim(
        "Theorem 4.1 and the proof of 4.2: E_Q is consistent, its variance falls as 1 / N+",
        variance_falls_as_one_over_n,
        "theory",
    ),
    Claim(
        "Theorem 4.2 as worded: the norm of the error falls as 1 / N+",
        error_falls_as_one_over_n,
        "theory",
    ),
)


def claims(seen: Evidence, holds: bool | None) -> list[str]:
    """Return one list item for each claim with this verdict (None: not known yet)."""
    verdicts = {claim: claim.check(seen) for claim in CLAIMS}
    return [
        f"- {claim.words}. Ours: {verdict.evidence} ([page](pages/{claim.page}.md))."
        for claim, verdict in verdicts.items()
        if verdict.holds is holds
    ]
