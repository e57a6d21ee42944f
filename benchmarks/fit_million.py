"""A fit from a folder of a million adult-like rows: time, memory, and the Score beside a small fit.

    python -m benchmarks.fit_million                        # 200,000 rows
    python -m benchmarks.fit_million --rows 1000000 --seeds 0,1,2

Each seed is a case of the paper's protocol on adult (`make_case`). The rows are training rows drawn
with replacement, the numbers moved a little so that hardly two are equal, and their outcomes drawn
by the gold judge's probability, as those of the case are. They are written to a folder of Parquet
files of 50,000 rows. A process of its own with one thread fits GenRe from that folder, with the
library's own model, and prints its seconds and the most memory it has held; another one fits GenRe
on the training rows of the case. Then both answer the same test rows, which both models reject, and
the same gold judge scores them. The figures go to benchmarks/results/fit_million.json; a seed that
is there is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.batch_million import NOISE
from genrecourse import GenRe, Schema, load

RESULTS = Path(__file__).parent / "results" / "fit_million.json"
PART = 50_000  # rows of a file
PEOPLE = 500
OUTCOME = "accepted"
RUNS = {"million": "a folder", "small": "the training rows of adult"}


def write_folder(folder: Path, case: Any, n: int, seed: int) -> None:
    """Write n rows like those of the case, with outcomes drawn by its judge, a file at a time."""
    rng, X = np.random.default_rng([seed, n]), case.X
    low, high = X.min(numeric_only=True), X.max(numeric_only=True)
    folder.mkdir()
    for start in range(0, n, PART):
        some = X.iloc[rng.integers(0, len(X), min(PART, n - start))].reset_index(drop=True)
        for name, width in NOISE.items():
            if name in some:
                moved = some[name] + rng.integers(-width, width + 1, len(some))
                some[name] = moved.clip(low[name], high[name]).astype(X[name].dtype)
        chance = case.judge.probability(case.encoder.encode(some))
        some[OUTCOME] = (rng.random(len(some)) < chance).astype(int)
        some.to_parquet(folder / f"part-{start // PART:04d}.parquet", index=False)


def fitted(source: Path, schema: Path, model: Path, seed: int) -> dict[str, Any]:
    """Fit GenRe from Parquet and save it; return the seconds, the memory and what it looked at."""
    method, started, used = GenRe(schema=Schema.load(schema), random_state=seed), *_clocks()
    method.fit(source, y=OUTCOME)
    now, cpu = _clocks()
    method.save(model)
    report = method.fit_report_
    return {
        "seconds": round(now - started, 1),
        "cpu_seconds": round(cpu - used, 1),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "report": {name: report[name] for name in report if name in LOOKED_AT},
    }


LOOKED_AT = ("rows", "accepted", "targets", "pairs", "seconds")


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def in_child(*arguments: object) -> dict[str, Any]:
    """Return what `fitted` returns in a process of its own with one thread."""
    command = [sys.executable, "-m", "benchmarks.fit_million", "--child", *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TTY_COMPATIBLE": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def compared(rows: int, seed: int) -> dict[str, Any]:
    """Return both fits of a seed, and their scores for the same people."""
    from genrecourse.evaluation.evaluate import make_case, measure

    case = make_case("adult-carla", seed, rows=None)
    found: dict[str, Any] = {"seed": seed, "rows": rows, "training_rows": len(case.X)}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_folder(folder / "million", case, rows, seed)
        (folder / "small").mkdir()
        case.X.assign(**{OUTCOME: case.y}).to_parquet(folder / "small" / "a.parquet", index=False)
        case.schema.save(folder / "schema.json")
        for name in RUNS:
            paths = folder / name, folder / "schema.json", folder / f"model-{name}"
            found[name] = in_child(*paths, seed)
            print(json.dumps({"seed": seed, name: found[name]}), flush=True)
        methods = {name: load(folder / f"model-{name}") for name in RUNS}
    rejected = [~method.classifier_.accepts(case.people) for method in methods.values()]
    people = case.people[np.logical_and.reduce(rejected)].head(PEOPLE)
    case, found["people"] = replace(case, people=people), len(people)
    for name, method in methods.items():
        measured = measure(case, method.recourse(people))
        found[name] |= {key: float(np.nanmean(measured[key])) for key in ("score", "val", "cost")}
        found[name]["scores"] = [round(float(score), 4) for score in measured["score"]]
    gap = np.subtract(*(found[name].pop("scores") for name in RUNS))
    found["difference"] = float(gap.mean())
    found["half_width"] = float(1.96 * gap.std(ddof=1) / np.sqrt(len(gap)))
    return found


def read() -> list[dict[str, Any]]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else []


def table() -> str:
    """Return the table of docs/scale.md."""
    lines = read()
    if not lines:
        return "No results yet."
    head = ["seed", "fitted on", "rows held", "fit, CPU s", "fit, GB", "Score", "difference"]
    rows = []
    for line in lines:
        for name in RUNS:
            own, is_long = line[name], name == "million"
            held = own["report"].get("rows", {}).get("held", line["training_rows"])
            gap = f"{line['difference']:+.3f} ± {line['half_width']:.3f}" if is_long else ""
            rows.append(
                [
                    f"{line['seed']}",
                    f"{line['rows' if is_long else 'training_rows']:,} rows",
                    f"{held:,}",
                    f"{own['cpu_seconds']:,.0f}",
                    f"{own['peak_gb']:.2f}",
                    f"{own['score']:.3f}",
                    gap,
                ]
            )
    text = ["| " + " | ".join(head) + " |", "|" + " ---: |" * len(head)]
    text += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*text, "", *(_left_out(line) for line in lines)])


def _left_out(line: dict[str, Any]) -> str:
    """Return what the caps left out of the long table, in a sentence."""
    report = line["million"]["report"]
    accepted, targets = report["accepted"], report["targets"]
    return (
        f"Seed {line['seed']}: of {accepted['found']:,} accepted rows with a favourable outcome "
        f"{accepted['used']:,} were used, and of {targets['found']:,} above gamma "
        f"{targets['used']:,}. On the rows that these caps left out lie "
        f"{accepted.get('mass_lost', 0.0):.0%} and {targets['mass_lost']:.0%} of Q's mass."
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.child:
        source, schema, model = map(Path, options.child[:3])
        print(json.dumps(fitted(source, schema, model, int(options.child[3]))))
        return
    for seed in map(int, options.seeds.split(",")):
        done = [line for line in read() if (line["rows"], line["seed"]) == (options.rows, seed)]
        if not done:
            lines = [*read(), compared(options.rows, seed)]
            RESULTS.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    print(table())


if __name__ == "__main__":
    main()
