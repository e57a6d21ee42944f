"""Is a method trained long enough? Score against the length of its training, doubled repeatedly.

    python -m benchmarks.lengths --methods genre-paper,tap --seeds 0,1
    python -m benchmarks.lengths --show

On the nested cases (training rows alone), so that a length can be chosen by what is shown here. A
length is enough if twice of it changes the Score by less than the interval of that difference over
people and seeds. Lines go to benchmarks/results/lengths.jsonl; what is there is not run again.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from genrecourse.evaluation.comparison import Entry, compare
from genrecourse.evaluation.comparison.results import ResultsFile, unpack_numbers
from genrecourse.genre.fit import Training
from genrecourse.genre.model import PLAIN, NetConfig
from genrecourse.methods._vae import VAEConfig

RESULTS = Path(__file__).parent / "results" / "lengths.jsonl"
SETS = ("compas", "heloc", "adult-carla")
DEEP = NetConfig(encoder_layers=4, decoder_layers=4, cost_in_logits=False)


def genre(net: NetConfig) -> Callable[[int], dict[str, Any]]:
    return lambda steps: {"net": net, "training": Training(steps=steps, patience=None)}


def vae(steps: int) -> dict[str, Any]:
    return {"vae": VAEConfig(epochs=10_000, max_steps=steps)}


# label: method, lengths (batches), parameters of a length
LADDERS: dict[str, tuple[str, tuple[int, ...], Callable[[int], dict[str, Any]]]] = {
    "genre-paper": ("genre-paper", (800, 1600, 3200, 6400, 12800), genre(PLAIN)),
    "genre-paper deep": ("genre-paper", (1600, 3200, 6400), genre(DEEP)),
    "tap": ("tap", (20_000, 40_000, 80_000, 160_000), lambda steps: {"max_batches": steps}),
    "revise": ("revise", (8000, 16_000, 32_000, 64_000), vae),
    "cchvae": ("cchvae", (8000, 16_000, 32_000, 64_000), vae),
    "cruds": ("cruds", (8000, 16_000, 32_000, 64_000), vae),
}


def entries(labels: list[str], most: int) -> list[Entry]:
    return [
        Entry(f"{label} {steps}", LADDERS[label][0], LADDERS[label][2](steps))
        for label in labels
        for steps in LADDERS[label][1]
        if steps <= most
    ]


def show(path: Path) -> None:
    """Print the Score of each length, and its difference from half of that length."""
    with ResultsFile(path) as file:
        lines = [line for line in file.lines if "people" in line]
    found: dict[tuple[str, str], dict[int, dict]] = defaultdict(dict)
    for line in lines:
        found[line["dataset"], line["label"]][line["seed"]] = line
    table = Table(title="Score by the length of the training, on training rows alone")
    for column in ("", "method, batches", "Score", "less half of it", "val", "fit s", "people"):
        table.add_column(column, justify="left" if "," in column or not column else "right")
    for dataset, label in found:
        table.add_row(dataset, label, *_cells(found, dataset, label))
    Console(width=110).print(table)


def _cells(found: dict[tuple[str, str], dict[int, dict]], dataset: str, label: str) -> list[str]:
    by_seed = found[dataset, label]
    score = np.concatenate([_scores(line) for line in by_seed.values()])
    val = np.mean([line["metrics"]["val"]["mean"] for line in by_seed.values()])
    fit = np.mean([line["seconds"].get("fit", np.nan) for line in by_seed.values()])
    less = _less_half(found, dataset, label)
    return [f"{np.nanmean(score):.4f}", less, f"{val:.3f}", f"{fit:.0f}", str(len(score))]


def _less_half(found: dict[tuple[str, str], dict[int, dict]], dataset: str, label: str) -> str:
    """Return the paired difference from half of the length, with its 95% interval over people."""
    name, _, steps = label.rpartition(" ")
    half = found.get((dataset, f"{name} {int(steps) // 2}" if steps.isdigit() else ""), {})
    both = [seed for seed in found[dataset, label] if seed in half]
    if not both:
        return ""
    gap = np.concatenate([_scores(found[dataset, label][s]) - _scores(half[s]) for s in both])
    gap = gap[~np.isnan(gap)]
    return f"{gap.mean():+.4f} ± {1.96 * gap.std(ddof=1) / len(gap) ** 0.5:.4f}"


def _scores(line: dict[str, Any]) -> np.ndarray:
    return unpack_numbers(line["people"]["score"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--methods", default=",".join(LADDERS))
    parser.add_argument("--datasets", default=",".join(SETS))
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--most", type=int, default=10**9, help="leave out longer trainings")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not options.show:
        compare(
            entries(options.methods.split(","), options.most),
            options.datasets.split(","),
            [int(seed) for seed in options.seeds.split(",")],
            rows=options.rows,
            output=options.output,
            nested=True,
            witnesses=False,
        )
    show(options.output)


if __name__ == "__main__":
    main()
