"""Score against processor time a row, for every method and effort, on three data sets.

    python -m benchmarks.tradeoff              # runs what is missing, then draws the picture
    python -m benchmarks.tradeoff --draw       # only draws it

One seed, the same 200 fresh people for every method, one thread. A line goes to
benchmarks/results/tradeoff.jsonl, and what is there is not run again; the picture goes to
docs/images/tradeoff.png. Times are those of the processor, which other work on the machine changes
little; compare them within a data set only. The first call of a fitted method is timed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from genrecourse.evaluation.comparison import Entry, compare
from genrecourse.methods import METHODS

RESULTS = Path(__file__).parent / "results" / "tradeoff.jsonl"
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "tradeoff.png"
SETS = {"adult": "adult-carla", "compas": "compas", "heloc": "heloc"}
SEED, ROWS = 81, 200
BOTH = {"": {}, "search": {"effort": "search"}}
OURS = ("genre", "genre/search")


def entries(names: list[str]) -> list[Entry]:
    return [Entry(name, name, asks=BOTH if name == "genre" else {"": {}}) for name in names]


def found(dataset: str) -> dict[str, tuple[float, float]]:
    """Milliseconds a row and Score of each label."""
    lines = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    return {
        line["label"]: (
            line["seconds"]["recourse_processor"] / line["n"] * 1e3,
            line["metrics"]["score"]["mean"],
        )
        for line in lines
        if line["dataset"] == dataset and "recourse_processor" in line.get("seconds", {})
    }


def best_so_far(points: dict[str, tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no quicker method beats, from the quickest on."""
    line: list[tuple[float, float]] = []
    for ms, score in sorted(points.values()):
        if not line or score > line[-1][1]:
            line.append((ms, score))
    return line


def draw() -> None:
    figure, axes = plt.subplots(1, len(SETS), figsize=(17, 5.4), sharey=True)
    for ax, (title, dataset) in zip(axes, SETS.items(), strict=True):
        points = found(dataset)
        ax.plot(*zip(*best_so_far(points), strict=True), color="0.75", lw=1, zorder=0)
        for label, (ms, score) in points.items():
            ours = label in OURS
            ax.scatter(ms, score, color="tab:red" if ours else "tab:blue", s=36 if ours else 18)
            _name(ax, label, ms, score, ours)
        ax.set_xscale("log")
        ax.margins(x=0.15)
        ax.set_title(f"{title}, {ROWS} people, seed {SEED}")
        ax.set_xlabel("milliseconds of one processor a row")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("Score (at most 2)")
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)


def _name(ax: Any, label: str, ms: float, score: float, ours: bool) -> None:
    ax.annotate(
        label,
        (ms, score),
        xytext=(4, 3),
        textcoords="offset points",
        fontsize=7.5 if ours else 6.5,
        color="tab:red" if ours else "0.25",
        weight="bold" if ours else "normal",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", default=",".join(SETS.values()))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--draw", action="store_true")
    options = parser.parse_args()
    if not options.draw:
        compare(
            entries(options.methods.split(",")),
            options.datasets.split(","),
            [SEED],
            rows=ROWS,
            output=RESULTS,
            fresh=True,
            witnesses=False,
        )
    draw()


if __name__ == "__main__":
    main()
