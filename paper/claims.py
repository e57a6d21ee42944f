"""The claims of the paper, and whether our results bear them out.

A claim is decided by 95% intervals over seeds of a difference between two methods with the same h
(`gap`): it holds if every interval lies on the side that the claim names, it does not hold if one
lies on the other side, and otherwise the results cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from genrecourse.evaluation.comparison.intervals import Interval, over_seeds
from paper.records import DATASETS, Line, Results
from paper.runs import LAMBDAS
from paper.tables import TABLE_1, interval
from paper.theory import SETTINGS, slope

Outcome = Literal["holds", "does not hold", "cannot tell", "no results"]
CLOSE = 0.05  # Scores that differ by less count as similar
PLAUSIBLE = 0.85  # the lowest published LOF over lambda is 0.86
POOR = 0.7  # the highest published validity that the paper calls poor is 0.66
MOST_SHOWN = 1  # intervals in the words of a verdict, which has to be short
SOME = 0.01  # a larger share of people than this is called many
FEW_INLIERS = 0.2  # the highest published LOF of ROAR and PROBE is 0.17


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds, and the numbers that decide it."""

    outcome: Outcome
    evidence: str


@dataclass(frozen=True)
class Evidence:
    """The results that decide the claims."""

    main: Results
    settings: Results
    theory: list[Line]
    contours: list[Line]
    pinned: list[Line]


Check = Callable[[Evidence], Verdict]
NOTHING = Verdict("no results", "no results")


# ---- intervals ----------------------------------------------------------------------------------


def by_seed(results: Results, label: str, dataset: str, metric: str) -> dict[int, float]:
    """Return the mean of a metric by seed; `dataset` is the paper's name."""
    lines = results.of(label, DATASETS[dataset])
    found = {line["seed"]: line["metrics"].get(metric, {}).get("mean") for line in lines}
    return {seed: float(mean) for seed, mean in found.items() if mean is not None}


def gap(results: Results, ours: str, theirs: str, dataset: str, metric: str) -> Interval | None:
    """Return the interval of `ours` minus `theirs` over the seeds that both have."""
    a, b = (by_seed(results, label, dataset, metric) for label in (ours, theirs))
    both = [a[seed] - b[seed] for seed in a if seed in b]
    return over_seeds(both, len(both), len(both)) if both else None


def spread(values: Iterable[float]) -> Interval:
    known = list(values)
    return over_seeds(known, len(known), len(known))


def above(gaps: Mapping[str, Interval | None], least: float = 0.0) -> Verdict:
    """Return "holds" if every interval lies above `least`, "does not hold" if one lies below."""
    known = {name: each for name, each in gaps.items() if each is not None}
    if len(known) < len(gaps) or not known:
        return NOTHING
    outcome = _outcome(known.values(), least)
    return Verdict(outcome, _decisive(known, outcome, least))


def _decisive(known: Mapping[str, Interval], outcome: Outcome, least: float) -> str:
    """Return the intervals that decide: those against the claim, or the smallest if it holds."""
    against = {
        "holds": list(known),
        "does not hold": [name for name, each in known.items() if each.high < least],
    }.get(outcome, [name for name, each in known.items() if not each.low > least])
    shown = sorted(against, key=lambda name: known[name].low)
    shown = shown[: 1 if outcome == "holds" else MOST_SHOWN]
    words = "; ".join(f"{name} {known[name].mean:+.3f}{interval(known[name])}" for name in shown)
    if outcome == "holds":
        return words if len(known) == 1 else f"the smallest of {len(known)}: {words}"
    return f"{len(against)} of {len(known)}: {words}" + (
        "; ..." if len(against) > len(shown) else ""
    )


def _outcome(intervals: Iterable[Interval], least: float) -> Outcome:
    each = list(intervals)
    if any(found.high < least for found in each):
        return "does not hold"
    return "holds" if all(found.low > least for found in each) else "cannot tell"


def every(parts: Sequence[Verdict]) -> Verdict:
    """Return the verdict of a claim with several parts."""
    outcomes = [part.outcome for part in parts]
    words = "; ".join(part.evidence for part in parts if part is not NOTHING)
    for outcome in ("does not hold", "no results", "cannot tell"):
        if outcome in outcomes:
            return Verdict(outcome, words or NOTHING.evidence)
    return Verdict("holds", words)


def _flipped(found: Interval | None) -> Interval | None:
    if found is None:
        return None
    return Interval(-found.mean, found.half, found.n, found.clusters, found.seeds)


def _gaps(
    seen: Evidence, ours: str, others: Sequence[str], metric: str, sets: Iterable[str] = DATASETS
) -> dict[str, Interval | None]:
    return {
        f"{dataset} {ours} - {other}": gap(seen.main, ours, other, dataset, metric)
        for other in others
        for dataset in sets
    }


def _levels(
    results: Results, labels: Sequence[str], metric: str, sign: float = 1.0
) -> dict[str, Interval | None]:
    """Return the interval of the mean of each label on each data set, times the sign."""
    found: dict[str, Interval | None] = {}
    for label in labels:
        for dataset in DATASETS:
            values = by_seed(results, label, dataset, metric)
            level = spread(values.values()) if values else None
            found[f"{dataset} {label}"] = level if sign > 0 else _flipped(level)
    return found


# ---- Table 1 (section 5.2) ----------------------------------------------------------------------

THEIRS = [row.reproduces for row in TABLE_1 if row.reproduces and row.published != "GenRe"]


def best_on_average(seen: Evidence) -> Verdict:
    """GenRe's mean Score over the three data sets minus that of each other method."""
    return above(_mean_gaps(seen, "genre-paper", THEIRS))


def _mean_gaps(seen: Evidence, ours: str, others: Sequence[str]) -> dict[str, Interval | None]:
    """Return the interval of the difference in Score, averaged over the data sets."""
    gaps: dict[str, Interval | None] = {}
    for other in others:
        parts = [_score_gaps(seen, ours, other, dataset) for dataset in DATASETS]
        seeds = set.intersection(*(set(part) for part in parts))
        mean = [float(np.mean([part[seed] for part in parts])) for seed in sorted(seeds)]
        gaps[f"{ours} - {other}"] = spread(mean) if mean else None
    return gaps


def _score_gaps(seen: Evidence, ours: str, other: str, dataset: str) -> dict[int, float]:
    a, b = (by_seed(seen.main, label, dataset, "score") for label in (ours, other))
    return {seed: a[seed] - b[seed] for seed in a if seed in b}


def best_everywhere(seen: Evidence) -> Verdict:
    return above(_gaps(seen, "genre-paper", THEIRS, "score"))


def cheap_methods_are_invalid(seen: Evidence) -> Verdict:
    cheap = ("wachter", "growing_spheres", "dice")
    costs = {
        f"{dataset} cost of {label}": _flipped(
            gap(seen.main, label, "genre-paper", dataset, "cost")
        )
        for label in cheap
        for dataset in DATASETS
    }
    validity = above(_levels(seen.main, cheap, "val", sign=-1.0), -POOR)
    return every([above(costs), _worded(validity, f"minus their validity (needs > -{POOR})")])


def robust_methods_are_far(seen: Evidence) -> Verdict:
    far = ("roar", "probe")
    costs = above({k: v for label in far for k, v in _cost_over(seen, label).items()})
    lof = above(_levels(seen.main, far, "lof", sign=-1.0), -FEW_INLIERS)
    return every([costs, _worded(lof, f"minus their LOF (needs > -{FEW_INLIERS})")])


def _cost_over(seen: Evidence, label: str) -> dict[str, Interval | None]:
    return {
        f"{d} cost of {label}": gap(seen.main, label, "genre-paper", d, "cost") for d in DATASETS
    }


def _worded(verdict: Verdict, words: str) -> Verdict:
    return (
        verdict if verdict is NOTHING else Verdict(verdict.outcome, f"{words}: {verdict.evidence}")
    )


def tap_scores_less(seen: Evidence) -> Verdict:
    return above(_gaps(seen, "genre-paper", ("tap",), "score"))


def tap_beats_the_other_robust_methods(seen: Evidence) -> Verdict:
    return above(_gaps(seen, "tap", ("roar",), "score") | _gaps(seen, "tap", ("probe",), "score"))


def cruds_is_second(seen: Evidence) -> Verdict:
    """CRUDS' mean Score over the three data sets minus that of each other baseline of Table 1."""
    return above(_mean_gaps(seen, "cruds", [label for label in THEIRS if label != "cruds"]))


def cruds_costs_more(seen: Evidence) -> Verdict:
    return above(_cost_over(seen, "cruds"))


# ---- lambda (section 5.3) -----------------------------------------------------------------------


def at_lambda(method: str, lam: str) -> str:
    if method == "cruds":
        return f"cruds/{lam}"
    return "genre-paper" if lam == "5.0" else f"genre-paper lambda={lam}"


def lof_stays_high(seen: Evidence) -> Verdict:
    labels = [at_lambda("genre-paper", lam) for lam in LAMBDAS]
    found = _levels(seen.settings, labels, "lof")
    if any(each is None for each in found.values()):
        return NOTHING
    lowest: dict[str, Interval | None] = {}
    for dataset in DATASETS:
        own = {name: each for name, each in found.items() if name.startswith(f"{dataset} ")}
        name = min(own, key=lambda name: own[name].mean)  # type: ignore[union-attr]
        lowest[f"lowest LOF on {name}"] = own[name]
    return above(lowest, PLAUSIBLE)


def swings_more(metric: str, sets: Sequence[str]) -> Check:
    """Return the check: over lambda, CRUDS' largest minus smallest mean is larger than GenRe's."""

    def check(seen: Evidence) -> Verdict:
        gaps: dict[str, Interval | None] = {}
        for dataset in sets:
            a, b = (_swings(seen, method, dataset, metric) for method in ("cruds", "genre-paper"))
            both = [a[seed] - b[seed] for seed in a if seed in b]
            gaps[f"{dataset} swing of CRUDS - GenRe"] = spread(both) if both else None
        return above(gaps)

    return check


def _swings(seen: Evidence, method: str, dataset: str, metric: str) -> dict[int, float]:
    parts = [by_seed(seen.settings, at_lambda(method, lam), dataset, metric) for lam in LAMBDAS]
    seeds = set.intersection(*(set(part) for part in parts))
    return {s: max(part[s] for part in parts) - min(part[s] for part in parts) for s in seeds}


# ---- the conditional density, neighbours, diffusion (sections 5.4 to 5.6) ------------------------


def conditional_is_more_plausible(seen: Evidence) -> Verdict:
    mass: dict[tuple[str, int, str], float] = {
        (line["dataset"], line["seed"], line["density"][0]): line["lof"] for line in seen.contours
    }
    gaps: dict[str, Interval | None] = {}
    for dataset in dict.fromkeys(dataset for dataset, _, _ in mass):
        seeds = [s for d, s, kind in mass if d == dataset and kind == "R"]
        gaps[dataset] = spread(mass[dataset, s, "R"] - mass[dataset, s, "P"] for s in seeds)
    return _worded(above(gaps), "mass on inliers, conditional minus unconditional")


def nearest_in_order(seen: Evidence) -> Verdict:
    return above(
        _gaps(seen, "nnr-0.7", ("nnr",), "score") | _gaps(seen, "nnr-dplus", ("nnr-0.7",), "score")
    )


def genre_beats_nearest(seen: Evidence) -> Verdict:
    return above(_gaps(seen, "genre-paper", NEAREST, "score", ("adult", "heloc")))


def genre_is_like_nearest_on_compas(seen: Evidence) -> Verdict:
    found = gap(seen.main, "genre-paper", "nnr-dplus", "compas", "score")
    if found is None:
        return NOTHING
    words = f"{found.mean:+.3f}{interval(found)}"
    if found.low > -CLOSE and found.high < CLOSE:
        return Verdict("holds", words)
    apart = found.low > CLOSE or found.high < -CLOSE
    return Verdict("does not hold" if apart else "cannot tell", words)


def genre_is_more_plausible_than_nearest(seen: Evidence) -> Verdict:
    return above(_gaps(seen, "genre-paper", NEAREST, "lof"))


def like_diffusion_on_heloc(seen: Evidence) -> Verdict:
    """Better than TabSyn+Q on adult and compas; the Scores on heloc are similar."""
    better = above(_gaps(seen, "genre-paper", ("tabsyn_q",), "score", ("adult", "compas")))
    found = gap(seen.main, "genre-paper", "tabsyn_q", "heloc", "score")
    if found is None:
        return NOTHING
    words = f"heloc {found.mean:+.3f}{interval(found)}"
    close: Outcome = "holds" if found.low > -CLOSE and found.high < CLOSE else "cannot tell"
    if found.high < -CLOSE or found.low > CLOSE:
        close = "does not hold"
    return every([better, Verdict(close, words)])


def beats_guided_diffusion(seen: Evidence) -> Verdict:
    return above(_gaps(seen, "genre-paper", ("tabsyn_svdd", "tabsyn_svdd/lambda=10"), "score"))


def diffusion_breaks_immutables(seen: Evidence) -> Verdict:
    """TabSyn+SVDD changes immutables of more people than SOME, where there are any."""
    shares: dict[str, Interval | None] = {}
    for name in ("adult", "compas"):
        own = [line for line in seen.pinned if line["dataset"] == DATASETS[name]]
        for lam in dict.fromkeys(line["lam"] for line in own):
            shares[f"{name}, lambda {lam:g}"] = spread(x["broken"] for x in own if x["lam"] == lam)
    return above(shares, SOME)


NEAREST = ("nnr", "nnr-0.7", "nnr-dplus")


# ---- the appendix, and the theorems -------------------------------------------------------------


def sigma_matters_little(seen: Evidence) -> Verdict:
    """Over tau 10 and 15 and sigma up to 2e-3, the Scores of a seed lie within 0.05."""
    labels = [
        f"genre-paper/{tau}, {sigma}"
        for tau in ("10.0", "15.0")
        for sigma in ("2e-07", "2e-06", "2e-05", "2e-4", "2e-3")
    ]
    gaps: dict[str, Interval | None] = {}
    for d in DATASETS:
        parts = [by_seed(seen.settings, label, d, "score") for label in labels]
        seeds = set.intersection(*(set(part) for part in parts))
        wide = [min(p[s] for p in parts) - max(p[s] for p in parts) for s in seeds]
        gaps[f"{d} smallest minus largest Score"] = spread(wide) if wide else None
    return above(gaps, -CLOSE)


def more_data_helps(seen: Evidence) -> Verdict:
    found = gap(seen.settings, "genre-paper", "genre-paper fraction=0.1", "adult", "score")
    return above({"adult, all minus a tenth": found})


def error_falls_as_one_over_n(seen: Evidence) -> Verdict:
    return _slopes(
        seen, "rmse", lambda s: s < -0.9, "slope of the error", "its square falls as 1/N+"
    )


def variance_falls_as_one_over_n(seen: Evidence) -> Verdict:
    return _slopes(seen, "variance", lambda s: -1.1 < s < -0.9, "slope of the variance")


def _slopes(
    seen: Evidence, key: str, is_right: Callable[[float], bool], words: str, more: str = ""
) -> Verdict:
    own = [line for line in seen.theory if line["setting"] == SETTINGS[0].label]
    if not own:
        return NOTHING
    names = dict.fromkeys(line["f"] for line in own)
    slopes = [slope([line for line in own if line["f"] == f], key) for f in names]
    evidence = f"{words}: " + ", ".join(f"{s:.2f}" for s in slopes) + (f"; {more}" if more else "")
    return Verdict("holds" if all(map(is_right, slopes)) else "does not hold", evidence)


# ---- the list -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, the check that decides it, and the page with the evidence."""

    words: str
    check: Check
    page: str


CLAIMS = (
    Claim(
        "GenRe has the highest mean Score over the three data sets (5.2)", best_on_average, "table1"
    ),
    Claim("GenRe has the highest Score on each data set (Table 1)", best_everywhere, "table1"),
    Claim(
        "Wachter, GS and DiCE cost less than GenRe, with poor validity; we take poor as below "
        f"{POOR} (5.2)",
        cheap_methods_are_invalid,
        "table1",
    ),
    Claim(
        "ROAR and PROBE cost more than GenRe and give outliers; we take this as LOF below "
        f"{FEW_INLIERS} (5.2)",
        robust_methods_are_far,
        "table1",
    ),
    Claim("GenRe scores above TAP on each data set (5.2)", tap_scores_less, "table1"),
    Claim(
        "TAP scores above ROAR and PROBE on each data set (5.2)",
        tap_beats_the_other_robust_methods,
        "table1",
    ),
    Claim(
        "CRUDS has the second highest mean Score in Table 1, after GenRe (5.3)",
        cruds_is_second,
        "table1",
    ),
    Claim("CRUDS costs more than GenRe on each data set (5.2)", cruds_costs_more, "table1"),
    Claim(
        f"LOF stays high for every lambda; we require at least {PLAUSIBLE}, as the lowest "
        "published value is 0.86 (5.3)",
        lof_stays_high,
        "lambda",
    ),
    Claim(
        "Over lambda, the LOF of CRUDS swings more than that of GenRe on adult and compas (5.3)",
        swings_more("lof", ("adult", "compas")),
        "lambda",
    ),
    Claim(
        "Over lambda, the validity of CRUDS swings more than that of GenRe on compas and heloc "
        "(5.3)",
        swings_more("soft_val", ("compas", "heloc")),
        "lambda",
    ),
    Claim(
        "The conditional density keeps more of its mass on the data than the unconditional one "
        "(5.4)",
        conditional_is_more_plausible,
        "contours",
    ),
    Claim(
        "Each further condition on the neighbour raises its Score: NNR, then gamma 0.7, then D+ "
        "(5.5)",
        nearest_in_order,
        "nnr",
    ),
    Claim(
        "GenRe scores above all nearest neighbours on adult and heloc (5.5)",
        genre_beats_nearest,
        "nnr",
    ),
    Claim(
        f"GenRe and neighbours in D+ score alike on compas; we take alike as within {CLOSE} (5.5)",
        genre_is_like_nearest_on_compas,
        "nnr",
    ),
    Claim(
        "GenRe's LOF is above that of all nearest neighbours on each data set (5.5)",
        genre_is_more_plausible_than_nearest,
        "nnr",
    ),
    Claim(
        "GenRe scores above TabSyn+Q on adult and compas, and like it on heloc (5.6)",
        like_diffusion_on_heloc,
        "tabsyn",
    ),
    Claim(
        "GenRe scores above TabSyn+SVDD on each data set (5.6)", beats_guided_diffusion, "tabsyn"
    ),
    Claim(
        "TabSyn+SVDD often changes immutable features; we take often as more than "
        f"{SOME:.0%} of people (5.6)",
        diffusion_breaks_immutables,
        "tabsyn",
    ),
    Claim(
        f"Temperature and sigma matter little; we require Scores within {CLOSE} for tau 10 and 15 "
        "and sigma up to 2e-3 (appendix)",
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


def listed(seen: Evidence, outcome: Outcome) -> list[str]:
    """Return one list item for each claim with this outcome."""
    verdicts = {claim: claim.check(seen) for claim in CLAIMS}
    return [
        f"- {claim.words}. Ours: {verdict.evidence} ([page](pages/{claim.page}.md))."
        for claim, verdict in verdicts.items()
        if verdict.outcome == outcome
    ]
