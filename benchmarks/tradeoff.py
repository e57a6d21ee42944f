"""Score against processor time a row, for every method and effort, on each data set with results.

    python -m benchmarks.tradeoff

Draws docs/images/tradeoff.png from the results of the paper's tables (`python -m paper table1` and
`ablation` make them): means over their seeds. Times are those of the processor, which other work on
the machine changes little; compare them within a data set only. The first call of a fitted method
is timed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from paper.records import DATASETS, Results
from paper.runs import scale

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "tradeoff.png"
OURS = ("genre", "genre-search")
DPI, SIZE, STEP = 110, 6.5, 4  # of the picture; of its labels, in points; between two tries
VARIANT = (",", "/")  # in labels of the ablation and of other requests: not methods of their own


def found(results: Results, dataset: str) -> dict[str, tuple[float, float]]:
    """Return milliseconds a row and Score of each method."""
    points = {}
    for label in results.labels():
        lines = results.of(label, dataset)
        times = [
            line["seconds"]["recourse_processor"] / line["n"] * 1e3
            for line in lines
            if "recourse_processor" in line.get("seconds", {})
        ]
        score = results.measured(label, dataset, "score")
        if times and score is not None and not any(mark in label for mark in VARIANT):
            points[label] = float(np.mean(times)), score.mean
    return points


def best_so_far(points: dict[str, tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that no quicker method beats, from the quickest on."""
    line: list[tuple[float, float]] = []
    for ms, score in sorted(points.values()):
        if not line or score > line[-1][1]:
            line.append((ms, score))
    return line


def draw() -> None:
    size = scale("full")
    paths = [path for name in ("main", "baselines") for path in size.all_compared(name)]
    results = Results.read(*paths)
    every = {title: found(results, dataset) for title, dataset in DATASETS.items()}
    every = {title: points for title, points in every.items() if points}  # what has been run
    figure, axes = plt.subplots(
        1, len(every), figsize=(5.7 * len(every), 5.4), sharey=True, dpi=DPI
    )
    for ax, (title, points) in zip(axes, every.items(), strict=True):
        ax.plot(*zip(*best_so_far(points), strict=True), color="0.75", lw=1, zorder=0)
        for label, (ms, score) in points.items():
            ours = label in OURS
            ax.scatter(ms, score, color="tab:red" if ours else "tab:blue", s=36 if ours else 18)
        ax.set_xscale("log")
        ax.margins(x=0.15)
        ax.set_title(title)
        ax.set_xlabel("milliseconds of one processor a row")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("Score (at most 2)")
    axes[0].set_ylim(top=2.1)
    figure.tight_layout()
    figure.canvas.draw()  # now the places of the dots are known
    for ax, points in zip(axes, every.values(), strict=True):
        _names(ax, points)
    figure.savefig(PICTURE, dpi=DPI)


def _names(ax: Any, points: dict[str, tuple[float, float]]) -> None:
    """Write each label beside its dot, higher or lower if another label is there already."""
    taken: list[tuple[float, float, float]] = []  # left, right and height, in pixels
    for label, place in sorted(points.items(), key=lambda item: -item[1][1]):
        ours = label in OURS
        x, y = ax.transData.transform(place)
        width = 1.9 * len(label) * SIZE
        steps = sorted(range(-30, 31), key=abs)
        free = next(up for up in steps if not _meets(taken, x, x + width, y + up * STEP))
        taken.append((x, x + width, y + free * STEP))
        ax.annotate(
            label,
            place,
            xytext=(5, free * STEP * 72 / DPI - 2),
            textcoords="offset points",
            fontsize=SIZE,
            color="tab:red" if ours else "0.25",
            weight="bold" if ours else "normal",
            arrowprops={"arrowstyle": "-", "color": "0.8", "lw": 0.5} if free else None,
        )


def _meets(
    taken: list[tuple[float, float, float]], left: float, right: float, height: float
) -> bool:
    return any(
        left < other_right and other_left < right and abs(height - other_height) < 11
        for other_left, other_right, other_height in taken
    )


if __name__ == "__main__":
    draw()
