"""Tables for docs/sampling.md, from the results in benchmarks/results/."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.distilled import BEFORE, with_half_width
from genrecourse.evaluation.comparison.results import unpack_numbers
from paper.records import DATASETS, Results, published
from paper.tables import NOT_RUN, markdown, our_cell, people

RESULTS = Path(__file__).parent / "results"
ORDER = ("adult-carla", "compas", "heloc", "german", "loan")
BOUNDS = ("ceiling", "accepted")
METRICS = {
    "val": "val",
    "val_oof": "out-of-fold val",
    "lof": "LOF",
    "lof_20": "LOF, k = 20",
    "cost": "cost",
    "changes": "changes",
    "noise": "noise",
    "retrained_bootstrap": "retrained",
    "violations": "rules broken",
}
CURVE = ("score", "val", "val_oof", "lof_20", "cost", "changes")


def _lines(name: str) -> list[dict[str, Any]]:
    text = (RESULTS / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _bare(name: str) -> str:
    return name.removesuffix("-carla")


# ---- fresh people -------------------------------------------------------------------------------


def fresh() -> str:
    """Return every method on the people of the fresh seeds, one table per data set."""
    found: dict[str, dict[str, dict[int, Any]]] = defaultdict(lambda: defaultdict(dict))
    for line in _lines("distilled.jsonl"):
        if "people" in line and "failed" not in line and line["label"] not in BOUNDS:
            found[line["dataset"]][line["label"]][line["seed"]] = line
    head = ["", "Score", "Score less `before`", *METRICS.values(), "people", "seeds"]
    parts = []
    for name in ORDER:
        rows = [_fresh_row(label, own, found[name][BEFORE]) for label, own in found[name].items()]
        parts.append(f"**{_bare(name)}**\n\n{markdown(head, rows)}")
    return "\n\n".join(parts)


def _fresh_row(label: str, own: dict[int, Any], before: dict[int, Any]) -> list[str]:
    lines = list(own.values())
    less = "" if label == BEFORE else _less(own, before, "score")
    means = [np.mean([e["metrics"][m]["mean"] for e in lines]) for m in METRICS]
    score = np.mean([e["metrics"]["score"]["mean"] for e in lines])
    people = f"{sum(e['n'] for e in lines):,}"
    return [f"`{label}`", f"{score:.4f}", less, *(f"{m:.3f}" for m in means), people, str(len(own))]


def _less(own: dict[int, Any], other: dict[int, Any], metric: str) -> str:
    return with_half_width(
        [
            np.nanmean(
                unpack_numbers(own[seed]["people"][metric])
                - unpack_numbers(other[seed]["people"][metric])
            )
            for seed in own
            if seed in other
        ]
    )


READ_FIRST = {  # the rows of README's table
    "GenRe, `genre`": "genre",
    "GenRe that searches, `genre/search`": "genre/search",
    "nearest neighbours with the same verifier and refining, `nnr-search`": "nnr-search",
    "ceiling": "ceiling",
}


def headline() -> str:
    """Return the Score of a few methods on fresh people, below that of GenRe as published."""
    results = Results.read(RESULTS / "distilled.jsonl")
    theirs = {ours: name for name, ours in DATASETS.items()}
    scores = [
        f"{published('main')[theirs[name], 'GenRe', 'score'].mean:.2f}" if name in theirs else ""
        for name in ORDER
    ]
    rows = [["GenRe as published (200 people)", *scores]]
    for words, label in READ_FIRST.items():
        values = [results.measured(label, name, "score") for name in ORDER]
        rows.append([words, *(our_cell(value, sd=False) or NOT_RUN for value in values)])
    rows.append(["people", *(people(results.measured("genre", name, "score")) for name in ORDER)])
    return markdown(["Score", *map(_bare, ORDER)], rows)


# ---- time ---------------------------------------------------------------------------------------


def times() -> str:
    """Return seconds before and now, and how many times faster it is."""
    found = json.loads((RESULTS / "effort.json").read_text(encoding="utf-8"))
    rows = []
    for each in found["datasets"]:
        before, now, faster = each["before"], each["now"], each["times_faster"]
        one = [e["one_person_ms"]["p50"] for e in (before, now)]
        cells = [
            _pair("fit_seconds", before, now, faster, "s"),
            _pair("recourse_ms_a_row", before, now, faster, "ms"),
            f"{one[0]:.0f} → {one[1]:.0f} ms, {faster['one_person_p50']} times",
        ]
        several = [_pair(k, before, now, faster, "s") for k in faster if k.startswith("plans_")]
        sizes = [k.split("_")[1] for k in faster if k.startswith("plans_")]
        both = "; ".join(f"{n}: {t}" for n, t in zip(sizes, several, strict=True))
        rows.append([_bare(each["dataset"]), *cells, both])
    head = ["", "fit", "`recourse`, a row", "`plans(n=3)`, one person", "`plans(n=3)`, many people"]
    machine = found["machine"]
    return (
        f"Seed {found['seed']}, {machine['cores']} cores, {machine['threads']} threads.\n\n"
        f"{markdown(head, rows)}"
    )


def _pair(name: str, before: Any, now: Any, faster: Any, unit: str) -> str:
    return f"{before[name]:.3g} → {now[name]:.3g} {unit}, {faster[name]} times"


# ---- settings -----------------------------------------------------------------------------------


def settings() -> str:
    """Return GenRe beside equal opponents in each setting, and the difference over people."""
    found: dict[str, dict[str, dict[int, Any]]] = defaultdict(lambda: defaultdict(dict))
    for line in _lines("settings.jsonl"):
        found[line["setting"]][line["label"]][line["seed"]] = np.array(line["score"])
    rows = []
    for setting, by_label in found.items():
        ours = by_label["genre"]
        for label, own in by_label.items():
            every = np.concatenate(list(own.values()))
            cells = [f"{len(every):,}", f"{every.mean():.4f}", _over_people(ours, own, label)]
            rows.append([setting, f"`{label}`", *cells])
    head = ["setting", "method", "people", "Score", "`genre` less it"]
    return markdown(head, rows, left=2)


def _over_people(ours: dict[int, Any], theirs: dict[int, Any], label: str) -> str:
    if label == "genre":
        return ""
    gap = np.concatenate([ours[seed] - theirs[seed] for seed in theirs if seed in ours])
    return f"{gap.mean():+.4f} ± {1.96 * gap.std(ddof=1) / len(gap) ** 0.5:.4f}"


# ---- curves -------------------------------------------------------------------------------------


def curves() -> str:
    """Return the metrics of a search against the number of draws and of finalists."""
    found: dict[tuple[str, bool], dict[tuple[int, int], list[Any]]] = {}
    for line in _lines("curves.jsonl"):
        own = found.setdefault((line["dataset"], line["bonus"]), defaultdict(list))
        own[line["draws"], line["finalists"]].append(line)
    parts = []
    for (name, bonus), efforts in sorted(found.items(), key=lambda e: (e[0][0], not e[0][1])):
        rows = []
        for (draws, finalists), lines in efforts.items():
            means = [np.mean([e["metrics"].get(m, np.nan) for e in lines]) for m in CURVE]
            rows.append([str(draws), str(finalists), *(f"{mean:.4f}" for mean in means)])
        people = sum(line["n"] for line in next(iter(efforts.values())))
        how = "" if bonus else ", without the bonus for rows that exist"
        shown = [METRICS.get(metric, "Score") for metric in CURVE]
        table = markdown(["draws", "finalists", *shown], rows, left=0)
        parts.append(f"**{name}**, {people} people{how}\n\n{table}")
    return "\n\n".join(parts)
