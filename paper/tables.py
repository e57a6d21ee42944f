"""One function per table: results -> Markdown, with the published value next to ours.

"absent": the library does not have the method. "not run": it has the method, but no result exists.
Our cells show the mean ± the standard deviation between people, as in the paper's appendix, and the
95% interval of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from genrecourse.evaluation.comparison import difference
from genrecourse.evaluation.comparison.intervals import Interval
from paper import theory
from paper.records import (
    DATASETS,
    METRICS,
    PUBLISHED_ROWS,
    Line,
    Measured,
    Published,
    Results,
    published,
)
from paper.runs import FRACTIONS, LAMBDAS, SIGMAS, TAUS, is_absent, read

NOT_RUN, ABSENT = "not run", "absent"


@dataclass(frozen=True)
class Row:
    """One published row and our rows for it.

    `reproduces` is the label that does what the paper did; only this label is compared with the
    published value. `ours` are further labels that the table shows next to it.
    """

    published: str | None
    reproduces: str | None = None
    ours: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        return (*((self.reproduces,) if self.reproduces else ()), *self.ours)


# ---- which rows ---------------------------------------------------------------------------------

NNR_ROWS = (
    Row("NNR", "nnr"),
    Row("NNR (gamma=0.7)", "nnr-0.7"),
    Row("NNR (D+)", "nnr-dplus"),
)
NNR_OURS = ("nnr-auto", "nnr-refined", "nnr-search")
TABLE_1 = (
    Row("Wachter", "wachter"),
    Row("GS", "growing_spheres"),
    Row("DICE", "dice"),
    Row("ROAR", "roar"),
    Row("PROBE", "probe"),
    Row("TAP", "tap"),
    Row("CCHVAE", "cchvae"),
    Row("CRUDS", "cruds"),
    Row("GenRe", "genre-paper", ("genre",)),
    Row(None, None, ("revise", "nnr", "nnr-0.7", "nnr-dplus", *NNR_OURS, "ceiling")),
)
NNR = (*NNR_ROWS, Row("GenRe", "genre-paper", ("genre", *NNR_OURS, "ceiling")))
NNR_LAMBDA = (
    *NNR_ROWS,
    *(
        Row(
            f"GenRe(lambda={lam})",
            "genre-paper" if lam == "5.0" else f"genre-paper lambda={lam}",
            (f"genre-paper any/{lam}", f"genre-any/{lam}"),
        )
        for lam in LAMBDAS
    ),
)
TABSYN = (
    Row("TabSyn+Q", "tabsyn_q"),
    Row("TabSyn+SVDD(lambda=5.0)", "tabsyn_svdd"),
    Row("TabSyn+SVDD(lambda=10.0)", "tabsyn_svdd/lambda=10"),
    Row("GenRe", "genre-paper", ("genre",)),
)
TEMPERATURE = tuple(
    Row(f"{tau}, {sigma}", f"genre-paper/{tau}, {sigma}", (f"genre/{tau}, {sigma}",))
    for sigma in SIGMAS
    for tau in TAUS
)
FRACTION = tuple(
    Row(
        f"GenRe fraction={share}",
        "genre-paper" if share == "1.0" else f"genre-paper fraction={share}",
        ("genre" if share == "1.0" else f"genre fraction={share}",),
    )
    for share in FRACTIONS
)
# published table -> its rows, and the configs whose results fill them
BESIDE: dict[str, tuple[tuple[Row, ...], tuple[str, ...]]] = {
    "main_std": (TABLE_1, ("baselines", "main")),
    "nnr": (NNR, ("main",)),
    "nnr_lambda_std": (NNR_LAMBDA, ("main", "settings")),
    "tabsyn_std": (TABSYN, ("baselines", "main")),
    "temperature_sigma_std": (TEMPERATURE, ("settings",)),
    "data_fraction_std": (FRACTION, ("settings",)),
}


# ---- cells --------------------------------------------------------------------------------------


def published_cell(value: Published | None) -> str:
    if value is None:
        return ""
    return f"{value.mean:.2f}" + ("" if value.sd is None else f" ± {value.sd:.2f}")


def our_cell(value: Measured | None, sd: bool = True, digits: int = 3) -> str:
    if value is None:
        return ""
    spread = f" ± {value.sd:.2f}" if sd else ""
    return f"{value.mean:.{digits}f}{spread}{interval(value, digits)}"


def interval(value: Measured | Interval, digits: int = 3) -> str:
    if math.isnan(value.half):
        return ""
    return f" [{value.low:.{digits}f}, {value.high:.{digits}f}]"


def people(value: Measured | Interval | None) -> str:
    if value is None:
        return ""
    return f"{value.n:,}" + (f" in {value.seeds} seeds" if value.seeds > 1 else "")


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a Markdown table; the first `left` columns are text, the others numbers."""
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    lines = [head, rule, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


# ---- beside the published -----------------------------------------------------------------------


def beside_published(table: str, results: Results, show_sd: bool = True) -> str:
    """Return one table per data set for a table of published.csv."""
    rows, _ = BESIDE[table]
    names = [name for name in DATASETS if any(d == name for d, _, _ in published(table))]
    return "\n\n".join(
        f"**{name}**\n\n{_one(table, name, rows, results, show_sd)}" for name in names
    )


def _one(table: str, name: str, rows: Sequence[Row], results: Results, show_sd: bool) -> str:
    metrics = (*METRICS, "time_s") if table == "data_fraction_std" else METRICS
    lines = []
    for row in rows:
        if row.published is not None:
            cells = [
                published_cell(published(table).get((name, row.published, m))) for m in metrics
            ]
            lines.append([row.published, "published", *cells, str(PUBLISHED_ROWS)])
        lines += [
            ["", f"`{label}`", *_cells(label, name, metrics, results, show_sd)]
            for label in row.labels
        ]
    head = ["", "", *(metric.replace("time_s", "fit s") for metric in metrics), "people"]
    return markdown(head, lines, left=2)


def _cells(
    label: str, name: str, metrics: Sequence[str], results: Results, show_sd: bool
) -> list[str]:
    if not results.of(label, DATASETS[name]):
        return [status(label), *[""] * len(metrics)]
    values = [value_of(results, label, name, metric) for metric in metrics]
    shown = [
        our_cell(v, sd=False, digits=1)
        if m == "time_s"
        else our_cell(v, sd=show_sd and m != "score")
        for m, v in zip(metrics, values, strict=True)
    ]
    return [*shown, people(values[0])]


def value_of(results: Results, label: str, name: str, metric: str) -> Measured | None:
    """Return our value; `name` is the paper's name of a data set."""
    if metric == "time_s":
        return results.seconds(label, DATASETS[name])
    return results.measured(label, DATASETS[name], metric)


def status(label: str) -> str:
    return ABSENT if label != "ceiling" and is_absent(label) else NOT_RUN


# ---- the summary --------------------------------------------------------------------------------


def headline(results: Results, with_reproduction: bool = False) -> str:
    """Return the Score of five rows: GenRe as published, ours, the best baseline of the paper,
    refined neighbours and the ceiling; `with_reproduction` adds `genre-paper`."""
    scores = [published("main")[name, "GenRe", "score"].mean for name in DATASETS]
    rows = [["GenRe as published (200 people)", *(f"{score:.2f}" for score in scores)]]
    reproduction = {"GenRe with the paper's settings, `genre-paper`": "genre-paper"}
    labels = {
        **(reproduction if with_reproduction else {}),
        "GenRe, ours, `genre`": "genre",
        "best baseline of the paper": None,
        "refined neighbours, `nnr-refined`": "nnr-refined",
        "ceiling": "ceiling",
    }
    for words, label in labels.items():
        rows.append([words, *(_headline_cell(results, label, d) for d in DATASETS.values())])
        if words in reproduction:
            rows.append(["its difference to the published Score", *_differences(results, label)])
    counted = [people(results.measured("genre", data, "score")) for data in DATASETS.values()]
    return markdown(["Score", *DATASETS], [*rows, ["people", *counted]])


def _differences(results: Results, label: str | None) -> list[str]:
    """Return the Score of a label minus the published Score, per data set, with our interval."""
    cells = []
    for name, dataset in DATASETS.items():
        found = results.measured(label, dataset, "score") if label else None
        if found is None:
            cells.append("")
            continue
        less = published("main")[name, "GenRe", "score"].mean
        ends = (
            ""
            if math.isnan(found.half)
            else f" [{found.low - less:+.3f}, {found.high - less:+.3f}]"
        )
        cells.append(f"{found.mean - less:+.3f}{ends}")
    return cells


def _headline_cell(results: Results, label: str | None, dataset: str) -> str:
    """Return the Score of a label; without a label that of the best baseline, with its name."""
    if label is not None:
        return our_cell(results.measured(label, dataset, "score"), sd=False) or NOT_RUN
    best = best_of(results, dataset, paper_baselines())
    if best is None:
        return NOT_RUN
    return f"{our_cell(results.measured(best, dataset, 'score'), sd=False)} `{best}`"


def paper_baselines() -> list[str]:
    """Return our labels of the methods that the paper compares GenRe with."""
    rows = (*TABLE_1, *NNR_ROWS, *TABSYN)
    return [row.reproduces for row in rows if row.reproduces and row.published != "GenRe"]


def best_of(results: Results, dataset: str, labels: Sequence[str]) -> str | None:
    """Return the label with the highest mean Score, or None if none has a result."""
    scores = {label: results.measured(label, dataset, "score") for label in labels}
    known = {label: value.mean for label, value in scores.items() if value is not None}
    return max(known, key=lambda label: known[label]) if known else None


# ---- data, gold classifier, h -------------------------------------------------------------------

# the metric in published.csv, and how to write it
DATA_COLUMNS = {
    "features": "features",
    "categorical": "categorical",
    "immutable": "immutable",
    "positive": "positive",
    "negative": "negative",
    "train_rows": "train rows",
    "test_rows": "test rows",
    "h_accuracy_pct": "h accuracy %",
}
CLASSIFIER_COLUMNS = {
    "accuracy_pct": "accuracy %",
    "roc_auc": "ROC AUC",
    "precision_macro": "precision",
    "recall_macro": "recall",
    "f1_macro": "F1",
    "brier": "Brier",
}


def data(cases: list[Line]) -> str:
    """Return the counts of the data; positive and negative are outcomes of training rows."""
    return _case_table("data", "", DATA_COLUMNS, cases)


def gold(cases: list[Line]) -> str:
    return _case_table("gold_classifier", "random forest", CLASSIFIER_COLUMNS, cases)


def classifier_h(cases: list[Line]) -> str:
    columns = {name: words for name, words in CLASSIFIER_COLUMNS.items() if name != "brier"}
    return _case_table("classifier_h", "MLP 10-10-10", columns, cases)


def _case_table(table: str, method: str, columns: dict[str, str], cases: list[Line]) -> str:
    lines = []
    for name, ours in DATASETS.items():
        cells = [_number(m, published(table)[name, method, m].mean) for m in columns]
        lines.append([name, "published", *cells])
        own = [line[table] for line in cases if line["dataset"] == ours]
        cells = [_mean_and_range(m, [o[m] for o in own]) for m in columns] if own else [NOT_RUN]
        lines.append(["", f"ours, {len(own)} seeds", *cells, *[""] * (len(columns) - len(cells))])
    return markdown(["", "", *columns.values()], lines, left=2)


def _number(metric: str, value: float) -> str:
    if metric in ("roc_auc",):
        return f"{value:.4f}"
    if metric.endswith("_pct") or metric in CLASSIFIER_COLUMNS:
        return f"{value:.2f}"
    return f"{value:,.0f}"


def _mean_and_range(metric: str, values: list[float]) -> str:
    mean = _number(metric, sum(values) / len(values))
    low, high = _number(metric, min(values)), _number(metric, max(values))
    return mean if low == high else f"{mean} [{low} to {high}]"


# ---- tables of our own --------------------------------------------------------------------------

ROBUSTNESS = {
    "score": "Score",
    "changes": "changes",
    "success": "h accepts, no rule broken",
    "retrained_seed": "h retrained: seed",
    "retrained_bootstrap": "bootstrap",
    "retrained_architecture": "architecture",
    "noise": "under noise",
    "copies": "copies of a row",
    "violations": "violations",
}
# The gold judge has memorised its rows, and duplicate rows mislead its LOF. These metrics do not
# have these weaknesses.
WITNESSES = {
    "val_oof": "val, out of fold",
    "lof_20": "LOF, k = 20, distinct rows",
    "knn_distance": "distance to accepted rows",
    "y_nn": "neighbours accepted",
    "nearest_row": "distance to a training row",
    "redundancy": "changes not needed",
}
ROBUSTNESS_LABELS = (
    "genre",
    "genre-search",
    "genre-paper",
    "nnr",
    "nnr-0.7",
    "nnr-dplus",
    *NNR_OURS,
    "accepted",
    "ceiling",
)
NO_METHODS = ("ceiling", "accepted")


def robustness(results: Results, datasets: Mapping[str, str] = DATASETS) -> str:
    """Return Score, the metrics that it ignores, and the difference to the best other method."""
    columns = {"score": "Score", "cost": "cost", "val": "val", "lof": "LOF"} | ROBUSTNESS
    parts = []
    for name, ours in datasets.items():
        main = _by_label(results, ours, columns)
        parts.append(f"**{name}**\n\n{main}\n\n{_paired(results, ours)}")
    return "\n\n".join(parts)


def witnesses(results: Results) -> str:
    """Return the metrics of other judges than the gold judge, for methods and accepted rows."""
    return "\n\n".join(
        f"**{name}**\n\n{_by_label(results, ours, WITNESSES)}" for name, ours in DATASETS.items()
    )


def _by_label(results: Results, dataset: str, columns: Mapping[str, str]) -> str:
    rows = []
    for label in ROBUSTNESS_LABELS:
        lines = results.of(label, dataset)
        if not lines and (label in NO_METHODS or is_absent(label)):
            continue
        values = [results.measured(label, dataset, metric) for metric in columns]
        cells = [
            our_cell(v, sd=False, digits=2 if m == "changes" else 3)
            for m, v in zip(columns, values, strict=True)
        ]
        if not lines:
            cells[0] = NOT_RUN
        rows.append([f"`{label}`", *cells, _distinct(lines)])
    return markdown(["", *columns.values(), "distinct x_plus"], rows)


def _distinct(lines: list[Line]) -> str:
    known = [line for line in lines if "distinct" in line]
    if not known:
        return ""
    return f"{sum(x['distinct'] for x in known):,} of {sum(x['n'] for x in known):,}"


def others(results: Results) -> list[str]:
    """Return every method except GenRe itself; variants (a label with "," or "/") are left out."""
    return [
        label
        for label in results.labels()
        if label not in ("genre", "genre-search", *NO_METHODS) and not set(label) & {",", "/"}
    ]


def best_other(results: Results, dataset: str) -> str | None:
    """Return the method with the highest Score; `genre` and variants are left out."""
    return best_of(results, dataset, others(results))


def paired(results: Results) -> str:
    """Return genre's Score minus that of each other method, on people that both answered."""
    rows = []
    for label in others(results):
        found = {
            ours: difference(results.of("genre", ours), results.of(label, ours))
            for ours in DATASETS.values()
        }
        cells = [
            NOT_RUN if d is None else f"{d.mean:+.4f}{interval(d, 4)}; {people(d)}"
            for d in found.values()
        ]
        if any(found.values()):
            rows.append([f"`genre` minus `{label}`", *cells])
    return markdown(["Score", *DATASETS], rows) if rows else f"Paired differences: {NOT_RUN}."


def _paired(results: Results, dataset: str) -> str:
    """Return genre's Score minus that of the best other method, on the same people."""
    best = best_other(results, dataset)
    if best is None or not results.of("genre", dataset):
        return f"Paired difference: {NOT_RUN}."
    found = difference(results.of("genre", dataset), results.of(best, dataset))
    if found is None:
        return f"Paired difference to `{best}`: the two methods have no seed in common."
    return (
        f"Paired difference in Score, `genre` minus `{best}` (the best other method): "
        f"{found.mean:+.4f}{interval(found, 4)}; people: {people(found)}."
    )


ABLATION = {
    "score": "Score",
    "cost": "cost",
    "val": "val",
    "lof": "lof",
    "changes": "changes",
    "retrained_bootstrap": "retrained",
    "noise": "noise",
}


def ablated() -> dict[str, str]:
    """Return each entry of the ablation, and the row that it is compared with."""
    entries = read("main")["entries"]
    return {label: spec["ablates"] for label, spec in entries.items() if "ablates" in spec}


def ablation_labels() -> list[str]:
    """Return `genre` and its variants, `genre-paper` and its variants, nearest neighbours."""
    labels = ["genre", *ablated()]
    first = next(label for label, other in ablated().items() if other == "genre-paper")
    labels.insert(labels.index(first), "genre-paper")
    return [*labels, "nnr-auto", "nnr-refined"]


def ablation(results: Results) -> str:
    """Return the metrics of GenRe with one part changed at a time, and of all parts together."""
    parts = []
    compared = dict.fromkeys(ablation_labels()[1:], "genre") | ablated()
    for name, ours in DATASETS.items():
        rows = []
        for label in ablation_labels():
            other = compared.get(label)
            cells = [f"`{label}`", f"`{other}`" if other else ""]
            if not results.of(label, ours):
                rows.append([*cells, status(label), *[""] * (len(ABLATION) + 1)])
                continue
            values = {m: results.measured(label, ours, m) for m in ABLATION}
            less = difference(results.of(label, ours), results.of(other, ours)) if other else None
            shown = "" if less is None else f"{less.mean:+.3f}{interval(less)}"
            metrics = (our_cell(v, sd=False) for v in values.values())
            rows.append([*cells, shown, *metrics, people(values["score"])])
        head = ["", "compared with", "Score minus its Score", *ABLATION.values(), "people"]
        parts.append(f"**{name}**\n\n{markdown(head, rows, left=2)}")
    return "\n\n".join(parts)


def preset(results: Results) -> str:
    """Return the metrics of the paper's own net size and training, next to the published ones."""
    if not results:
        return f"The preset: {NOT_RUN}."
    rows = [
        [f"GenRe on {name}", "published", *cells, ""]
        for name in DATASETS
        if any(line["dataset"] == DATASETS[name] for line in results)
        for cells in [[published_cell(published("main_std")[name, "GenRe", m]) for m in METRICS]]
    ]
    for line in results:
        cells = [
            our_cell(results.measured(line["label"], line["dataset"], m), sd=m != "score")
            for m in METRICS
        ]
        seconds = line["seconds"]["fit"]
        where = f"`{line['label']}`, seed {line['seed']}, {line['n']:,} people"
        rows.append(["", where, *cells, f"{seconds:,.0f} ({seconds / 3600:.1f} h)"])
    return markdown(["", "", *METRICS, "fit s"], rows, left=2)


# Methods that take no `safety`, and `genre`, which draws only with the safety that it was taught.
SAFETY_ALONE = ("genre", "genre-paper", "nnr-dplus", "nnr-auto", "nnr-refined")


def safety(results: Results, curves: dict[str, list[str]]) -> str:
    """Return the numbers of the picture "cheaper against safer"."""
    points = [label for labels in curves.values() for label in labels]
    columns = {"score": "Score", "changes": "changes", "cost": "cost"} | {
        "retrained_bootstrap": "retrained",
        "noise": "noise",
    }
    parts = []
    for name, ours in DATASETS.items():
        rows = []
        for label in (*points, *SAFETY_ALONE):
            values = [results.measured(label, ours, m) for m in columns]
            cells = [*(our_cell(v, sd=False) for v in values), people(values[0])]
            found = bool(results.of(label, ours))
            rows.append([f"`{label}`", *(cells if found else [status(label), *cells[1:]])])
        parts.append(f"**{name}**\n\n" + markdown(["", *columns.values(), "people"], rows))
    return "\n\n".join(parts)


def lambdas(results: Results) -> str:
    """Return the numbers of the lambda figure: cost, soft validity and LOF for each lambda."""
    rows = []
    for name, ours in DATASETS.items():
        for label, points in LAMBDA_LINES.items():
            if all(is_absent(point) for point in points.values()):
                rows.append([name, label, ABSENT, "", "", "", ""])
                continue
            for lam, point in points.items():
                values = [results.measured(point, ours, m) for m in ("cost", "soft_val", "lof")]
                cells = [our_cell(v, sd=False) for v in values]
                if not results.of(point, ours):
                    cells = [status(point), "", ""]
                rows.append([name, label, lam, *cells, people(values[0])])
    return markdown(["", "", "lambda", "cost", "soft validity", "LOF", "people"], rows, left=3)


LAMBDA_LINES = {
    "genre-paper, one model a lambda": {
        lam: "genre-paper" if lam == "5.0" else f"genre-paper lambda={lam}" for lam in LAMBDAS
    },
    "genre-paper, one model for all": {lam: f"genre-paper any/{lam}" for lam in LAMBDAS},
    "genre-any, one model for all": {lam: f"genre-any/{lam}" for lam in LAMBDAS},
    "CRUDS": {lam: f"cruds/{lam}" for lam in LAMBDAS},
}


def theorems(lines: list[Line]) -> str:
    """Return E_Q against E_R for each N+, with the prediction of importance sampling theory."""
    if not lines:
        return f"The theorems: {NOT_RUN}."
    kept = [line for line in lines if line["setting"] == theory.SETTINGS[0].label]
    rows = [
        [
            line["f"],
            f"{line['n_plus']:,}",
            f"{line['truth']:.4f}",
            f"{line['mean']:.4f}",
            f"{line['bias']:+.1e} ± {line['bias_se']:.0e} ({line['predicted_bias']:+.1e})",
            f"{line['variance']:.2e} ({line['predicted_variance']:.2e})",
            f"{line['rmse']:.4f}",
            f"{line['ess']:,.0f} ({line['predicted_ess']:,.0f})",
        ]
        for line in sorted(kept, key=lambda line: line["f"])
    ]
    head = ["f", "N+", "E_R[f]", "mean of E_Q[f]", "bias (predicted)", "variance (predicted)"]
    return (
        markdown([*head, "root mean squared error", "effective N+ (predicted)"], rows)
        + "\n\n"
        + "\n".join(_slopes(lines))
    )


def _slopes(lines: list[Line]) -> list[str]:
    items = []
    for setting in dict.fromkeys(line["setting"] for line in lines):
        for f in dict.fromkeys(line["f"] for line in lines):
            own = [x for x in lines if x["setting"] == setting and x["f"] == f]
            falls = ", ".join(
                f"{what} {theory.slope(own, key):+.2f}"
                for key, what in (("variance", "variance"), ("rmse", "error"))
            )
            last = own[-1]
            items.append(
                f"- {setting}, {f}: slope of the logarithm against log N+: {falls}; at "
                f"N+ = {last['n_plus']:,} the bias is {last['bias']:+.4f} "
                f"({last['repeats']:,} repeats)."
            )
    return items
