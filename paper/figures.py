"""One function per picture. Only the contours need more than a results file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from genrecourse.evaluation.evaluate import Case
from genrecourse.reports.plots import INK, Dots, Point, arrows, curves, density, dots
from paper import tables
from paper.contours import Mass
from paper.records import DATASETS, Line, Measured, Results, published
from paper.tables import BESIDE, CLASSIFIER_COLUMNS, LAMBDA_LINES, Row

Place = tuple[float, float] | None


def _place(value: Measured | None) -> Place:
    return None if value is None else (value.mean, value.half)


def _legend(figure: Figure, axes: Any, columns: int = 4) -> None:
    """Draw one legend for all panels, above them."""
    found: dict[str, Any] = {}
    for ax in np.ravel(axes):
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        list(found.values()),
        list(found),
        loc="outside upper center",
        ncols=min(columns, max(1, len(found))),
        frameon=False,
    )


def _panels(rows: int, columns: int, width: float, height: float, **options: Any) -> Any:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def _n(results: Results, dataset: str) -> str:
    """Return "n = 200, seed 31"; n is a range if labels have different numbers of people."""
    lines = [line for line in results if line["dataset"] == dataset]
    seeds = sorted({line["seed"] for line in lines})
    counts = {
        label: sum(x["n"] for x in lines if x["label"] == label)
        for label in results.labels()
        if label != "accepted"  # these are not rejected people
    }
    found = sorted({n for n in counts.values() if n} or {0})
    n = " to ".join(f"{each:,}" for each in dict.fromkeys([found[0], found[-1]]))
    return f"n = {n}, seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


# ---- published against ours ---------------------------------------------------------------------


def against_published(table: str, results: Results, metric: str = "score") -> Figure:
    """Draw each row of a table: the published value hollow, ours with its interval."""
    names = [name for name in DATASETS if any(d == name for d, _, _ in published(table))]
    shown = {name: _series(table, name, BESIDE[table][0], results, metric) for name in names}
    labels, series = shown[names[0]]
    height = 1.2 + (0.16 + 0.1 * len(series)) * len(labels)
    figure, axes = _panels(1, len(names), 3.6 * len(names) + 1.6, height)
    for ax, (name, (labels, series)) in zip(axes[0], shown.items(), strict=True):
        dots(ax, labels, series, names=ax is axes[0][0])
        _cut_off(ax, series)
        ax.set_title(f"{name} ({_n(results, DATASETS[name])})", size=9)
        ax.set_xlabel(metric.capitalize())
    _legend(figure, axes)
    return figure


LEAST = -0.1  # a Score further left would squeeze all others


def _cut_off(ax: Axes, series: Sequence[Dots]) -> None:
    """Cuts the axis at LEAST and writes values that are smaller at its left end."""
    for one in series:
        for y, value in enumerate(one.values):
            if value is not None and value[0] < LEAST:
                ax.set_xlim(left=LEAST)
                ax.annotate(f"◂ {value[0]:.2f}", (LEAST, y), size=8, va="center", color=INK)


def _series(
    table: str, name: str, rows: Sequence[Row], results: Results, metric: str
) -> tuple[list[str], list[Dots]]:
    """Return a row per published row, and a row per label without a published row."""

    def place(label: str | None) -> Place:
        return _place(results.measured(label or "", DATASETS[name], metric))

    with_row = [row for row in rows if row.published]
    alone = [
        label
        for row in rows
        if not row.published
        for label in row.ours
        if any(results.of(label, d) for d in DATASETS.values())
    ]
    values = [published(table).get((name, row.published or "", metric)) for row in with_row]
    theirs: list[Place] = [None if v is None else (v.mean, float("nan")) for v in values]
    none: list[Place] = [None] * len(alone)
    further = max((row.ours for row in with_row), key=len)
    series = [
        Dots("published", theirs + none, hollow=True),
        Dots("ours, done as published", [place(row.reproduces) for row in with_row] + none),
        *(
            Dots(
                label.split("/")[0],
                [place(row.ours[i]) if i < len(row.ours) else None for row in with_row] + none,
            )
            for i, label in enumerate(further)
        ),
    ]
    if alone:
        missing: list[Place] = [None] * len(with_row)
        series.append(Dots("not in the paper's table", missing + [place(x) for x in alone]))
    return [*(row.published or "" for row in with_row), *alone], series


def fraction(results: Results) -> Figure:
    """Draw Score and the time to fit against the share of adult's training rows."""
    figure, axes = _panels(1, 2, 9.0, 3.6)
    shares = [float(row.published.split("=")[1]) for row in tables.FRACTION if row.published]
    lines: dict[str, dict[str, list[Point]]] = {"score": {}, "time_s": {}}
    for metric, found in lines.items():
        found["published"] = [
            Point(x, published("data_fraction_std")["adult", row.published or "", metric].mean)
            for x, row in zip(shares, tables.FRACTION, strict=True)
        ]
        for place, name in enumerate(("genre-paper", "genre")):
            points = []
            for x, row in zip(shares, tables.FRACTION, strict=True):
                value = tables.value_of(results, row.labels[place], "adult", metric)
                if value is not None:
                    points.append(Point(x, value.mean, value.half))
            found[name] = points
    for ax, (metric, words) in zip(
        axes[0], {"score": "Score", "time_s": "seconds to fit"}.items(), strict=True
    ):
        curves(ax, lines[metric])
        ax.set_xlabel("share of the training rows of adult")
        ax.set_ylabel(words)
        if metric == "time_s":
            ax.set_yscale("log")
    axes[0][0].set_title(f"adult ({_n(results, 'adult-carla')})", size=9)
    axes[0][1].set_title("published: the authors' machine; ours: two cores", size=9)
    _legend(figure, axes)
    return figure


def classifiers(cases: list[Line]) -> Figure:
    """Draw the published quality of the gold classifier and of h, and ours."""
    tables_ = {"gold_classifier": "random forest", "classifier_h": "MLP 10-10-10"}
    figure, axes = _panels(2, 3, 10.5, 5.4, sharex="row")
    for row, (table, method) in zip(axes, tables_.items(), strict=True):
        columns = [m for m in CLASSIFIER_COLUMNS if ("adult", method, m) in published(table)]
        for ax, (name, ours) in zip(row, DATASETS.items(), strict=True):
            own = [line[table] for line in cases if line["dataset"] == ours]
            scale = [0.01 if m == "accuracy_pct" else 1.0 for m in columns]
            theirs = [
                (published(table)[name, method, m].mean * s, float("nan"))
                for m, s in zip(columns, scale, strict=True)
            ]
            mine = [
                (
                    float(np.mean([o[m] for o in own])) * s,
                    float(np.ptp([o[m] for o in own])) / 2 * s,
                )
                if own
                else None
                for m, s in zip(columns, scale, strict=True)
            ]
            dots(
                ax,
                [CLASSIFIER_COLUMNS[m].replace(" %", "") for m in columns],
                [
                    Dots("published", theirs, hollow=True),
                    Dots("ours, half the range of seeds", mine),
                ],
                names=ax is row[0],
            )
            words = "gold classifier" if table == "gold_classifier" else "h"
            ax.set_title(f"{words}, {name} ({len(own)} seeds)", size=9)
    _legend(figure, axes)
    return figure


# ---- lambda, safety, ablation, robustness -------------------------------------------------------


def lambdas(results: Results) -> Figure:
    """Draw soft validity and LOF against -cost / d, with a point per lambda."""
    n_features = {name: published("data")[name, "", "features"].mean for name in DATASETS}
    figure, axes = _panels(2, 3, 11.0, 6.2)
    for column, (name, ours) in enumerate(DATASETS.items()):
        for row, (metric, words) in enumerate({"soft_val": "soft validity", "lof": "LOF"}.items()):
            ax = axes[row][column]
            curves(
                ax,
                {
                    k: _lambda_points(results, ours, p, metric, n_features[name])
                    for k, p in LAMBDA_LINES.items()
                },
            )
            ax.set_xlabel("- cost / d")
            ax.set_ylabel(words if column == 0 else "")
        axes[0][column].set_title(f"{name} ({_n(results, ours)})", size=9)
    _legend(figure, axes, columns=2)
    return figure


def _lambda_points(
    results: Results, dataset: str, points: Mapping[str, str], metric: str, d: float
) -> list[Point]:
    found = []
    for lam, label in points.items():
        cost = results.measured(label, dataset, "cost")
        value = results.measured(label, dataset, metric)
        if cost is not None and value is not None:
            found.append(Point(-cost.mean / d, value.mean, value.half, f"{float(lam):g}"))
    return found


SAFETY_METRICS = {
    "score": "Score",
    "changes": "changed features",
    "retrained_bootstrap": "accepted by retrained h",
    "noise": "valid under noise",
}


def safety(results: Results, lines: Mapping[str, Sequence[str]], alone: Sequence[str]) -> Figure:
    """Draw Score, changes and robustness against cost, along each curve.

    lines: the labels of a curve, in order; alone: methods with one setting only.
    """
    figure, axes = _panels(len(SAFETY_METRICS), 3, 10.5, 10.0, sharex="col")
    named = {**lines, **{label: [label] for label in alone if label not in lines}}
    for column, (name, ours) in enumerate(DATASETS.items()):
        for row, (metric, words) in enumerate(SAFETY_METRICS.items()):
            ax = axes[row][column]
            curves(ax, {k: _against_cost(results, ours, v, metric) for k, v in named.items()})
            ax.set_ylabel(words if column == 0 else "")
        axes[0][column].set_title(f"{name} ({_n(results, ours)})", size=9)
        axes[-1][column].set_xlabel("cost")
    _legend(figure, axes, columns=3)
    return figure


def _against_cost(
    results: Results, dataset: str, labels: Sequence[str], metric: str
) -> list[Point]:
    found = []
    # if a curve was not run, show the method without the option safety
    run = [label for label in labels if results.of(label, dataset)] or [labels[0].split("/")[0]]
    for label in run:
        cost, value = (results.measured(label, dataset, m) for m in ("cost", metric))
        if cost is not None and value is not None:
            note = label.split("safety ")[-1] if "safety " in label else ""
            found.append(Point(cost.mean, value.mean, value.half, note))
    return found


def side_by_side(
    results: Results, labels: Sequence[str], metrics: Mapping[str, str], title: str = ""
) -> Figure:
    """Draw each metric of each method, with a column of panels per data set."""
    shown = [x for x in labels if any(results.of(x, d) for d in DATASETS.values())]
    height = 0.9 + len(metrics) * (0.55 + 0.24 * len(shown))
    figure, axes = _panels(len(metrics), 3, 11.0, height, sharex="row")
    for row, (metric, words) in zip(axes, metrics.items(), strict=True):
        for ax, ours in zip(row, DATASETS.values(), strict=True):
            values = [_place(results.measured(label, ours, metric)) for label in shown]
            dots(ax, shown, [Dots("ours", values)], names=ax is row[0])
            ax.set_xlabel(words)
    for ax, (name, ours) in zip(axes[0], DATASETS.items(), strict=True):
        ax.set_title(f"{name} ({_n(results, ours)})", size=9)
    if title:
        figure.suptitle(title, size=10)
    return figure


# ---- two dimensions -----------------------------------------------------------------------------


def plane(lines: list[Line], cases: Mapping[str, Case]) -> Figure:
    """Draw an arrow from x to x_plus for each person; a row of panels per method."""
    methods = list(dict.fromkeys(line["method"] for line in lines))
    sets = list(cases)
    figure, axes = _panels(len(methods), len(sets), 3.5 * len(sets), 3.1 * len(methods) + 0.4)
    for line in lines:
        ax = axes[methods.index(line["method"])][sets.index(line["dataset"])]
        case = cases[line["dataset"]]
        people, X_plus = (
            pd.DataFrame(line[key], columns=case.X.columns) for key in ("x", "x_plus")
        )
        arrows(ax, case.X, case.y, people, X_plus, case.h)
        m = line["metrics"]
        ax.set_title(
            f"{line['method']}, {line['dataset']} (n = {line['n']}, seed {line['seed']})\n"
            f"cost {m['cost']:.2f}, val {m['val']:.2f}, LOF {m['lof']:.2f}",
            size=9,
        )
        ax.set_xlabel("")
        ax.set_ylabel("")
        ax.tick_params(labelsize=7)
    _legend(figure, axes[0][0])
    return figure


def contours(shown: list[tuple[Case, np.ndarray, list[Mass], Mass]]) -> Figure:
    """Draw R_theta(x+|x) for some people and P(x|favourable), over each set's training rows."""
    width = max(len(masses) for _, _, masses, _ in shown) + 1
    figure, axes = _panels(len(shown), width, 3.6 * width, 3.3 * len(shown))
    for row, (case, people, masses, overall) in zip(axes, shown, strict=True):
        F, y = case.encoder.features(case.X), case.y.astype(bool)
        for i, mass in enumerate([*masses, overall]):
            ax = row[i]
            density(ax, *mass.values, mass.p)
            ax.scatter(*F[~y].T, s=3, c="#d65f5f", alpha=0.25, linewidths=0)
            ax.scatter(*F[y].T, s=3, c="#1f2933", alpha=0.25, linewidths=0)
            if i < len(masses):
                ax.plot(*people[i], "o", color="#d62728", mec="white", ms=10)
            words = "R(x+ | x), x the red dot" if i < len(masses) else "P(x | favourable)"
            ax.set_title(f"{case.name}: {words}\n(seed {case.seed})", size=9)
            ax.set_xlim(-0.05, 1.05)
            ax.set_ylim(-0.05, 1.05)
            ax.tick_params(labelsize=7)
    figure.suptitle(
        "Smallest areas that hold 50, 80 and 95% of the mass; grey: accepted rows, pink: rejected",
        size=9,
    )
    return figure


# ---- the theorems -------------------------------------------------------------------------------


def theorems(lines: list[Line], f: str = "cost") -> Figure:
    """Draw variance, bias and effective targets with their predictions, and the error."""
    figure, axes = _panels(1, 3, 13.0, 3.9)
    own = [line for line in lines if line["f"] == f]
    agree = [line for line in own if line["setting"] == own[0]["setting"]]
    n = np.array([line["n_plus"] for line in agree])
    spread, ess, error = axes[0]
    for key, colour, mark, words in (
        ("variance", "#0072b2", "o", "variance of E_Q"),
        ("bias", "#d55e00", "s", "|bias| of E_Q"),
    ):
        spread.plot(n, [abs(x[key]) for x in agree], mark, color=colour, label=words)
        spread.plot(
            n, [abs(x[f"predicted_{key}"]) for x in agree], "-", color=colour, label="predicted"
        )
    # a bias below this line cannot be distinguished from the noise of the repeats
    floor = [x["bias_se"] for x in agree]
    spread.plot(n, floor, ":", color="#6b7785", label="standard error of the bias")
    ess.plot(n, [x["ess"] for x in agree], "o", color="#009e73", label="effective N+")
    ess.plot(n, [x["predicted_ess"] for x in agree], "-", color="#009e73", label="predicted")
    for i, setting in enumerate(dict.fromkeys(line["setting"] for line in own)):
        some = [line for line in own if line["setting"] == setting]
        colour, mark = (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "D"))[i]
        error.plot(n, [x["rmse"] for x in some], mark + "-", color=colour, label=setting)
    guide = agree[0]["rmse"] * (n / n[0]) ** -0.5
    error.plot(n, guide, "--", color="#6b7785", label="1 / square root of N+")
    titles = (
        f"f = {f}: E_Q[f] around E_R[f] = {agree[0]['truth']:.3f}",
        "effective number of targets",
        "root mean squared error",
    )
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("N+")
        ax.set_title(title, size=9)
        ax.grid(alpha=0.3)
        ax.legend(frameon=False, fontsize=7.5)
    repeats, seed = agree[0]["repeats"], agree[0]["seed"]
    figure.suptitle(f"{repeats:,} repeats for each N+, seed {seed}", size=9)
    return figure
