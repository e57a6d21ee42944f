"""The steps that each table and figure needs, and a run of everything, one part per core."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial

from genrecourse.reports.plots import save
from paper import cases, figures, pinned, plane, runs, theory
from paper.records import DATASETS, read_lines, write_lines
from paper.runs import Scale

Step = Callable[[Scale], None]


def run_cases(size: Scale) -> None:
    """Describes data, gold classifier and h for each data set and seed without a result."""
    for name in DATASETS.values():
        for seed in size.seeds:
            run_case(size, name, seed)


def run_case(size: Scale, name: str, seed: int) -> None:
    path = size.compared("cases", name)
    lines = read_lines(path)
    if seed not in {line["seed"] for line in lines}:
        write_lines(path, [*lines, cases.describe(name, seed)])


def run_compared(name: str, size: Scale) -> None:
    """Run every comparison on a data set, seed by seed, so that each case is made only once."""
    for seed in size.seeds:
        if name in DATASETS.values():
            run_case(size, name, seed)
        for config in runs.COMPARED:
            runs.run_at(config, size, name, seed)


def run_theory(size: Scale) -> None:
    lines = read_lines(size.file("theory"))
    if not lines or lines[0]["repeats"] != size.theory_repeats:
        write_lines(size.file("theory"), theory.run(size.theory_repeats))


def run_arrows(size: Scale) -> None:
    made = plane.cases(size.people_2d)
    lines = plane.arrows(made, size.steps_2d)
    write_lines(size.file("arrows"), lines)
    save(figures.plane(lines, made), size.images / "arrows.png", dpi=110)


def run_missing_arrows(size: Scale) -> None:
    """Run the arrows unless the picture exists and shows every method of the library."""
    found = {line["method"] for line in read_lines(size.file("arrows"))}
    if not (size.images / "arrows.png").is_file() or found != set(plane.methods()):
        run_arrows(size)


def run_contours(size: Scale) -> None:
    lines, shown = plane.densities(plane.cases(size.people_2d), size.steps_2d)
    write_lines(size.file("contours"), lines)
    save(figures.contours(shown), size.images / "contours.png")


def run_missing_contours(size: Scale) -> None:
    if not (size.images / "contours.png").is_file() or not read_lines(size.file("contours")):
        run_contours(size)


def run_pinned(size: Scale) -> None:
    write_lines(size.file("pinned"), pinned.run(size.seeds[0]))


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
# Parts that write no common file, the longest first.
ALL: dict[str, Step] = {
    **{name: partial(run_compared, name) for name in ("adult-carla", "heloc", "compas")},
    "arrows": run_missing_arrows,
    "contours": run_missing_contours,
    **{name: partial(run_compared, name) for name in ("german", "loan")},
    "theory": run_theory,
}


def run_all(size: Scale) -> None:
    """Run every part, one per core and with one thread each: faster than one part with many."""
    os.environ |= {"OMP_NUM_THREADS": "1", "TTY_COMPATIBLE": "0"}  # progress bars would overlap
    started = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), context, max_tasks_per_child=1) as pool:
        parts = {pool.submit(step, size): name for name, step in ALL.items()}
        for done in as_completed(parts):
            done.result()
            seconds = time.perf_counter() - started
            print(f"{parts[done]} is done after {seconds:.0f} seconds", file=sys.stderr)
