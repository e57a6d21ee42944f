"""python -m paper NAME [--quick]: run one table or figure, print it, write its results and picture.

A run that was stopped resumes. `all` runs everything except the preset. `draw` makes the pictures
and pages again from the results that exist, `readme` only the pages.
"""

from __future__ import annotations

import argparse
import time

from genrecourse.reports.plots import save
from paper import figures, readme, runs, tables
from paper.blocks import Report
from paper.parts import RUN, run_all
from paper.runs import Scale
from paper.tables import ROBUSTNESS_LABELS

# The blocks that a command prints; every other command prints the block of its own name.
BLOCKS = {
    "nnr": ["nnr", "nnr_lambda"],
    "robustness": ["targets", "robustness", "paired", "witnesses"],
}


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
    parser.add_argument("name", choices=[*RUN, "all", "draw", "readme"])
    parser.add_argument("--quick", action="store_true", help="a small run, into results/quick")
    parser.add_argument("--check", action="store_true", help="readme: fail if a page would change")
    options = parser.parse_args()
    if options.check and options.name != "readme":
        parser.error("--check belongs to readme: python -m paper readme --check")
    size = runs.scale("quick" if options.quick else "full")
    if options.name == "readme":
        return readme.check(size) if options.check else readme.write(size)
    started = time.perf_counter()
    if options.name == "all":
        run_all(size)
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
