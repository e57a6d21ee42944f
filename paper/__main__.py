"""python -m paper NAME [--quick]: run one table or figure, print it, write its results and picture.

A run that was stopped resumes. `all` runs everything except the preset: Table 1 first, for every
seed, then the rest. `draw` makes the pictures and pages again from the results that exist, `readme`
only the pages. `status` lists what exists and what is missing. A run that is not quick needs the
frozen source of the library; `frozen` prints how to get it.
"""

from __future__ import annotations

import argparse
import sys
import time

from genrecourse.errors import UserError
from genrecourse.reports.plots import save
from paper import figures, frozen, readme, runs, status, tables
from paper.blocks import Report
from paper.parts import LONGEST_FIRST, RUN, run_all
from paper.runs import Scale
from paper.tables import ROBUSTNESS_LABELS

# The blocks that a command prints; every other command prints the block of its own name.
BLOCKS = {
    "nnr": ["nnr", "nnr_lambda"],
    "robustness": ["targets", "robustness", "paired", "witnesses"],
}
OPTIONS = {
    "check": ("readme", "fail if a page would change"),
    "json": ("status", "print JSON, with every missing run"),
    "new": ("frozen", "freeze the commit of the imported genrecourse"),
}
OF_ALL = {"datasets": "all", "seeds": "all", "jobs": "all"}


# ---- draw: from the results alone ---------------------------------------------------------------


def draw(size: Scale) -> None:
    """Draw every picture whose results exist, except arrows and contours.

    `run_arrows` and `run_contours` draw those, because they need the fitted models.
    """
    report = Report(size)
    main, settings = report.main, report.settings
    both = report.results("main", "settings")
    if report.cases:
        save(figures.classifiers(report.cases), size.images / "classifiers.png")
    if report.theory:
        save(figures.theorems(report.theory), size.images / "theory.png")
    if main:
        save(figures.against_published("main_std", main), size.images / "table1.png")
        save(figures.against_published("nnr_lambda_std", both), size.images / "nnr.png")
        curves = runs.read("main")["safety"]["curves"]
        save(figures.safety(main, curves, tables.SAFETY_ALONE), size.images / "safety.png")
        picture = figures.side_by_side(main, ROBUSTNESS_LABELS, figures.SAFETY_METRICS)
        save(picture, size.images / "robustness.png")
        labels = tables.ablation_labels()
        picture = figures.side_by_side(main, labels, {"score": "Score", "changes": "changes"})
        save(picture, size.images / "ablation.png")
    if settings:
        name = "temperature_sigma_std"
        save(figures.against_published(name, settings), size.images / "temperature.png")
        save(figures.fraction(settings), size.images / "fraction.png")
        save(figures.lambdas(settings), size.images / "lambda.png")


# ---- the command line ---------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m paper", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("name", choices=[*RUN, "all", "draw", "readme", "status", "frozen"])
    parser.add_argument("--quick", action="store_true", help="a small run, into results/quick")
    for option, (name, words) in OPTIONS.items():
        parser.add_argument(f"--{option}", action="store_true", help=f"{name}: {words}")
    parser.add_argument("--datasets", type=_names, default=[], help="all: only these, as in a,b")
    parser.add_argument("--seeds", type=_seeds, default=[], help="all: only these, as in 101,102")
    parser.add_argument("--jobs", type=int, help="all: parts at a time; without it one per core")
    options = parser.parse_args()
    for option, owner in {**{k: v[0] for k, v in OPTIONS.items()}, **OF_ALL}.items():
        if getattr(options, option) and options.name != owner:
            parser.error(f"--{option} belongs to {owner}: python -m paper {owner} --{option}")
    if options.name == "preset" and options.quick:
        parser.error("the preset has no quick run")
    size = runs.scale("quick" if options.quick else "full")
    try:
        sys.exit(answer(options, size))
    except UserError as error:
        sys.exit(f"error: {error}")


def _names(text: str) -> list[str]:
    """Return the data sets of a comma-separated list."""
    names = text.split(",")
    unknown = set(names) - set(LONGEST_FIRST)
    if unknown:
        raise argparse.ArgumentTypeError(
            f"no data set {', '.join(sorted(unknown))}; they are {', '.join(LONGEST_FIRST)}"
        )
    return names


def _seeds(text: str) -> list[int]:
    """Return the seeds of a comma-separated list; a seed that is not frozen is an error."""
    known = runs.scale("full").seeds
    if not set(text.split(",")) <= set(map(str, known)):
        raise argparse.ArgumentTypeError(f"{text}: the seeds are {', '.join(map(str, known))}")
    return [int(seed) for seed in text.split(",")]


def answer(options: argparse.Namespace, size: Scale) -> int:
    """Do what the options say, and return the exit status."""
    if options.name == "frozen":
        if options.new:
            frozen.record(size.results)
        print("\n".join(frozen.commands()))
    elif options.name == "status":
        return status.show(size, options.json)
    elif options.name == "readme":
        (readme.check if options.check else readme.write)(size)
    else:
        run(options, size)
    return 0


def run(options: argparse.Namespace, size: Scale) -> None:
    """Run what is named, draw it, write the pages and print its blocks."""
    started = time.perf_counter()
    if options.name != "draw" and not size.is_quick:
        frozen.require()  # now, and not after the first hour
    if options.name == "all":
        run_all(size, options.datasets, options.seeds, options.jobs)
    for step in RUN.get(options.name, []):
        step(size)
    draw(size)
    readme.write(size)
    blocks = Report(size).blocks()
    wanted = BLOCKS.get(options.name, [options.name])
    for name in [*blocks] if options.name in ("all", "draw") else ["scale", *wanted]:
        print(f"\n## {name}\n\n{blocks[name]()}")
    print(f"\n{time.perf_counter() - started:.0f} seconds; pictures in {size.images}")


if __name__ == "__main__":
    main()
