"""Plans for many applicants like those of adult: rows a second, memory, and every plan checked.

    python -m benchmarks.batch_million                       # 1,000 and 10,000 people
    python -m benchmarks.batch_million --rows 1000,10000,100000,1000000

The people are rejected rows of adult, drawn with replacement; age, hours and fnlwgt of each are
moved by a little noise, so that hardly two are equal. `genrecourse batch -n 3` makes their plans on
two processes. Every 50 ms, the memory of all its processes is added up (PSS, which counts a shared
page once). Then every plan is read back and checked by the code in this file, which uses nothing of
the library but the schema and h's score: accepted, immutable features untouched, directions kept,
values that exist. Rows per CPU second are counted, too, because the cores may have other work. The
figures go to benchmarks/results/batch_million.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from genrecourse import Classifier, GenRe, load, load_dataset
from genrecourse.data.datasets import is_local
from tests.support.batches import begin, children_of

RESULTS = Path(__file__).parent / "results" / "batch_million.json"
N = 3
NOISE = {"age": 2, "hours-per-week": 3, "hours_per_week": 3, "fnlwgt": 5_000}


def write_people(path: Path, X: pd.DataFrame, n: int, seed: int) -> None:
    """Write n people like the rows of X, a row group at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(seed), None
    low, high = X.min(numeric_only=True), X.max(numeric_only=True)
    for start in range(0, n, 50_000):
        some = X.iloc[rng.integers(0, len(X), min(50_000, n - start))].reset_index(drop=True)
        for name, width in NOISE.items():
            if name in some:
                moved = some[name] + rng.integers(-width, width + 1, len(some))
                some[name] = moved.clip(low[name], high[name]).astype(X[name].dtype)
        some.insert(0, "id", [f"p{i:08d}" for i in range(start, start + len(some))])
        table = pa.Table.from_pandas(some, preserve_index=False)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def memory(pids: list[int]) -> float:
    """MB of these processes together; a page that they share counts once."""
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += int(text.split("Pss:")[1].split()[0])
    return total / 1024


def run(model: Path, people: Path, out: Path, processes: int) -> dict[str, Any]:
    """Run the command; return its seconds and its largest memory, and the rows a second."""
    peak, started, first = 0.0, time.monotonic(), None
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = begin(model, people, out, "-n", N, "--key", "id", "--processes", processes)
    reader = threading.Thread(target=process.communicate)
    reader.start()
    while reader.is_alive():
        peak = max(peak, memory([process.pid, *children_of(process)]))
        if first is None and any(out.glob("part-*.parquet")):
            first = time.monotonic() - started
        reader.join(0.05)
    assert process.returncode == 0
    seconds = time.monotonic() - started
    now = resource.getrusage(resource.RUSAGE_CHILDREN)  # the processes are children of the child
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "until_first_part": None if first is None else round(first, 1),
        "peak_mb": round(peak),
    }


def check(model: Path, people: Path, out: Path) -> dict[str, Any]:
    """Read everything back, and count what is wrong with it."""
    import pyarrow.parquet as pq

    method = load(model)
    schema, h = method.schema_, method.classifier_
    asked = pq.ParquetFile(people).iter_batches(1_000)
    counts: dict[str, int] = {}
    wrong: dict[str, int] = {}
    plans = 0
    for part, path in zip(asked, sorted(out.glob("part-*.parquet")), strict=True):
        X, answers = part.to_pandas(), pd.read_parquet(path)
        note(wrong, "another person", answers["key"].to_numpy() != X["id"].to_numpy())
        for status, number in answers["status"].value_counts().items():
            counts[str(status)] = counts.get(str(status), 0) + int(number)
        note(wrong, "no plan although ok", (answers["status"] == "ok") & (answers["n_plans"] == 0))
        for i in range(1, N + 1):
            has = (answers["n_plans"] >= i).to_numpy()
            names = [f"plan_{i}_{name}" for name in schema.columns]
            before = X.loc[has, schema.columns]
            after = answers.loc[has, names].set_axis(schema.columns, axis=1).astype(before.dtypes)
            plans += len(after)
            if len(after):
                check_plans(schema, h, before, after, wrong)
    return {"counts": counts, "plans": plans, "wrong": wrong}


def check_plans(schema: Any, h: Any, x: pd.DataFrame, x_plus: pd.DataFrame, wrong: Any) -> None:
    note(wrong, "h accepts the person", h.score(x) > h.cutoff)
    note(wrong, "h does not accept the plan", h.score(x_plus) <= h.cutoff)
    note(wrong, "nothing changes", (x == x_plus).all(axis=1))
    for feature in schema:
        a, b = x[feature.name], x_plus[feature.name]
        if feature.role != "mutable":
            note(wrong, f"{feature.name} is not the person's to change", a != b)
        if feature.is_category:
            note(wrong, f"{feature.name} has no such level", ~b.isin(feature.categories))
            continue
        sign = {"any": 0, "increase": 1, "decrease": -1}[feature.direction]
        note(wrong, f"{feature.name} goes the wrong way", sign * (b - a) < 0)
        if feature.range is not None:
            outside = (a != b) & ((b < feature.range[0]) | (b > feature.range[1]))
            note(wrong, f"{feature.name} is out of range", outside)


def note(wrong: dict[str, int], what: str, where: Any) -> None:
    if number := int(np.asarray(where).sum()):
        wrong[what] = wrong.get(what, 0) + number


def many(people: int = 100_000_000, cores: int = 64) -> str:
    """Return a table: what so many people cost, by the largest run so far."""
    if not RESULTS.is_file():
        return "No results yet."
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    run, processes = found["results"][-1], found["machine"]["processes"]
    rate, memory = run["rows_per_cpu_second"], run["peak_mb"] / processes
    hours = people / rate / 3600
    rows = [
        ("measured", f"{run['rows']:,} people, {found['n']} plans each", f"{rate} a core second"),
        ("core hours", f"{people:,} / {rate} / 3,600", f"{hours:,.0f}"),
        (f"hours on {cores} cores", f"{hours:,.0f} / {cores}", f"{hours / cores:.1f}"),
        ("memory", f"{cores} processes of {memory:,.0f} MB", f"{cores * memory / 1000:,.0f} GB"),
        (
            "plans",
            f"{run['plans']:,} / {run['rows']:,} a person",
            f"{run['plans'] / run['rows'] * people:,.0f}",
        ),
    ]
    return "\n".join(
        ["| | from | |", "| --- | --- | ---: |", *("| " + " | ".join(row) + " |" for row in rows)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", default="adult-carla" if is_local("adult-carla") else "adult")
    parser.add_argument("--rows", default="1000,10000")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--model", type=Path, help="a saved model of this data set; else GenRe is fitted"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    data = load_dataset(options.dataset)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        model = options.model or folder / "model"
        if options.model is None:
            GenRe(Classifier(), data.schema).fit(data.X_train, data.y_train).save(model)
        X = data.X_test[~load(model).classifier_.accepts(data.X_test)]
        results = []
        for rows in map(int, options.rows.split(",")):
            people, out = folder / f"{rows}.parquet", folder / f"out-{rows}"
            write_people(people, X, rows, options.seed)
            found = run(model, people, out, options.processes)
            rates = {
                "rows_per_second": round(rows / found["seconds"], 1),
                "rows_per_cpu_second": round(rows / found["cpu_seconds"], 1),
            }
            found = {"rows": rows, **rates, **found}
            if rows > 1_000:  # without loading libraries and the model
                later = found["seconds"] - found["until_first_part"]
                found["rows_per_second_later"] = round(rows / later, 1)
            results.append(found | check(model, people, out))
            print(json.dumps(results[-1]), flush=True)
            write(options, results)


def write(options: argparse.Namespace, results: list[dict[str, Any]]) -> None:
    """Write what there is so far: the largest run takes most of an hour."""
    machine = {"cores": os.cpu_count(), "processes": options.processes}
    facts = {"dataset": options.dataset, "n": N, "machine": machine, "seed": options.seed}
    RESULTS.write_text(json.dumps(facts | {"results": results}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
