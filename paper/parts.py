"""The steps that each table and figure needs, and a run of everything, one part per core."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Collection
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from itertools import product
from pathlib import Path

from genrecourse.reports.plots import save
from paper import cases, figures, pinned, plane, runs, theory
from paper.records import DATASETS, Line, read_lines, stamped, write_lines
from paper.runs import Scale

Step = Callable[[Scale], None]


def add_lines(size: Scale, path: Path, seed: int, make: Callable[[], list[Line]]) -> None:
    """Append the lines of a seed with their source and date, unless the file has them."""
    runs.check_source(path, size)
    lines = read_lines(path)
    if seed not in {line["seed"] for line in lines}:
        write_lines(path, [*lines, *map(stamped, make())])


def run_cases(size: Scale) -> None:
    """Describes data, gold classifier and h for each data set and seed without a result."""
    for name, seed in product(DATASETS.values(), size.seeds):
        run_case(size, name, seed)


def run_case(size: Scale, name: str, seed: int) -> None:
    add_lines(size, size.compared("cases", name), seed, lambda: [cases.describe(name, seed)])


def run_pinned(size: Scale) -> None:
    for name, seed in product(pinned.SETS, size.seeds):
        run_pinned_at(size, name, seed)


def run_pinned_at(size: Scale, name: str, seed: int) -> None:
    listed = runs.entries("baselines", size).get(name, [])
    (params,) = (entry.params for entry in listed if entry.label == "tabsyn_svdd")
    if seed in size.seeds[: pinned.SEEDS]:
        path = size.compared("pinned", name)
        add_lines(size, path, seed, lambda: pinned.run(name, seed, params))


def run_table_1(name: str, size: Scale, seeds: Collection[int] = ()) -> None:
    """Run Table 1 on a data set, and describe its cases, seed by seed; empty: every seed."""
    for seed in seeds or size.seeds:
        run_case(size, name, seed)
        for config in runs.COMPARED:
            runs.run_at(config, size, name, seed, "table1")


def run_compared(name: str, size: Scale, seeds: Collection[int] = ()) -> None:
    """Run the other comparisons on a data set, seed by seed: one case at a time fits in memory."""
    for seed in seeds or size.seeds:
        for config in runs.COMPARED:
            runs.run_at(config, size, name, seed)
        if name in pinned.SETS:
            run_pinned_at(size, name, seed)


def run_whole(name: str, size: Scale) -> None:
    """Run everything on a data set; with one seed, each case is made once."""
    if name in DATASETS.values():
        run_table_1(name, size)
    run_compared(name, size)


def run_theory(size: Scale) -> None:
    path = size.file("theory")
    add_lines(size, path, 0, lambda: theory.run(size.theory_repeats))


def run_arrows(size: Scale) -> None:
    """Run the arrows of each seed without a result, and draw those of the first seed."""
    path, picture = size.file("arrows"), size.images / "arrows.png"
    for seed in plane.seeds(size.seeds_2d):
        made = plane.cases(seed, size.people_2d)
        add_lines(size, path, seed, partial(plane.arrows, made, size.steps_2d))
    lines = read_lines(path)
    first = [line for line in lines if line["seed"] == lines[0]["seed"]]
    save(figures.plane(first, plane.cases(lines[0]["seed"], size.people_2d)), picture, dpi=110)


def run_contours(size: Scale) -> None:
    """Run the densities of each seed without a result, and draw those of the first seed."""
    path, picture = size.file("contours"), size.images / "contours.png"
    for place, seed in enumerate(plane.seeds(size.seeds_2d)):
        runs.check_source(path, size)
        is_known = seed in {line["seed"] for line in read_lines(path)}
        if not is_known or (place == 0 and not picture.is_file()):
            made = plane.cases(seed, size.people_2d)
            lines, shown = plane.densities(made, size.steps_2d)
            add_lines(size, path, seed, lambda lines=lines: lines)  # type: ignore[misc]
            if place == 0:
                save(figures.contours(shown), picture)


def compared(config: str, name: str) -> Step:
    return lambda size: runs.run(config, size, name)


RUN: dict[str, list[Step]] = {
    "data": [run_cases],
    "gold": [run_cases],
    "h": [run_cases],
    "table1": [compared("main", "table1"), compared("baselines", "table1")],
    "nnr": [compared("main", "nnr"), compared("settings", "nnr")],
    "tabsyn": [compared("baselines", "tabsyn"), compared("main", "table1")],
    "temperature": [compared("settings", "temperature")],
    "fraction": [compared("settings", "fraction")],
    "lambda": [compared("settings", "lambda")],
    "robustness": [compared("main", "robustness")],
    "ablation": [compared("main", "ablation")],
    "safety": [compared("main", "safety")],
    "others": [compared("others", "others")],
    "theory": [run_theory],
    "arrows": [run_arrows],
    "contours": [run_contours],
    "pinned": [run_pinned],
    "preset": [compared("preset", "preset")],
}
LONGEST_FIRST = ("adult-carla", "heloc", "compas", "german", "loan")
PLANE: dict[str, Step] = {"theory": run_theory, "arrows": run_arrows, "contours": run_contours}


def rounds(
    size: Scale, datasets: Collection[str] = (), seeds: Collection[int] = ()
) -> list[dict[str, Step]]:
    """Return what `all` runs, each round when the one before it is done.

    So a run that is stopped has Table 1 first. A quick run has one round, in which each case is
    made once. The parts of a round write no common file; the longest come first.

    datasets, seeds: only the parts on these; empty: everything.

    >>> [list(each) for each in rounds(runs.scale("full"), ["compas"])]
    [['Table 1 on compas'], ['the rest on compas']]
    """
    names = [name for name in LONGEST_FIRST if not datasets or name in datasets]
    first: dict[str, Step] = {
        f"Table 1 on {name}": partial(run_table_1, name, seeds=seeds)
        for name in names
        if name in DATASETS.values()
    }
    rest: dict[str, Step] = {
        f"the rest on {name}": partial(run_compared, name, seeds=seeds) for name in names
    }
    plane = {} if datasets or seeds else PLANE
    if size.is_quick:
        return [{name: partial(run_whole, name) for name in names} | plane]
    return [first | plane, rest]


def run_all(
    size: Scale,
    datasets: Collection[str] = (),
    seeds: Collection[int] = (),
    jobs: int | None = None,
) -> None:
    """Run every part, one per core and with one thread each: faster than one part with many.

    datasets, seeds: run only the parts on these. jobs: parts at a time; None: one per core.
    """
    os.environ |= {"OMP_NUM_THREADS": "1", "TTY_COMPATIBLE": "0"}  # progress bars would overlap
    started = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs or os.cpu_count(), context, max_tasks_per_child=1) as pool:
        for each in rounds(size, datasets, seeds):
            parts = {pool.submit(step, size): name for name, step in each.items()}
            for done in as_completed(parts):
                done.result()
                seconds = time.perf_counter() - started
                print(f"{parts[done]}: done after {seconds:.0f} seconds", file=sys.stderr)
