"""Outside packages beside ours: the same h, the same people, the same metrics.

    make bench-peers                                   # makes their environments, then runs this
    python -m benchmarks.bench_peers --datasets compas --rows 60 --peer-people 5

Each peer runs in a process and an environment of its own (benchmarks/peers/). It is given training
rows, their drawn labels, the schema and h as plain numbers; what it hands back is measured here.

- Scores are of the same people for all: the first `--peer-people` of the case, for peers are slow.
  Whom a peer gives nothing has failed: 0 in Score and in h-validity. Changes and violations are of
  those it answered; the table says how many.
- Our methods answer all `--rows` people in one call, and their seconds a row are of that call. A
  peer answers one person at a time, as it is made to; set-up is not in its seconds, as fitting is
  not in ours. Both stand beside.
- A number that a peer leaves alone and hands back in single precision counts as left alone.

A line for each method goes to benchmarks/results/peers.jsonl, in place of an earlier run's of the
same data set, and the table to benchmarks/results/peers.md. Compare seconds within a run only; the
lines also have the processor's seconds, which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from benchmarks.peers.environments import PEERS, is_installed, python_of
from benchmarks.peers.exchange import FILES, OUTCOME, SCORE
from genrecourse.errors import rejections_expected
from genrecourse.evaluation.evaluate import Case, ceiling, make_case, measure
from genrecourse.methods import METHODS
from genrecourse.table.schema import Feature

HERE = Path(__file__).parent
RESULTS, TABLE = HERE / "results" / "peers.jsonl", HERE / "results" / "peers.md"
OURS = ("genre", "genre-paper", "nnr-auto", "dice")
SLOWEST = "dice-ml genetic"  # what speed is a multiple of
METRICS = ("score", "val", "lof", "cost", "h_valid", "success", "violations", "changes")
SINGLE = 1e-6  # of a number's scale: what single precision may do to it

Line = dict[str, Any]


# ---- ours ---------------------------------------------------------------------------------------


def run_ours(name: str, case: Case, few: Case) -> Line:
    started = time.perf_counter()
    method = METHODS[name](case.h, case.schema, random_state=case.seed).fit(case.X, case.y)
    fitted, worked = time.perf_counter(), time.process_time()
    with rejections_expected():
        X_plus = method.recourse(case.people)
    seconds, worked = time.perf_counter() - fitted, time.process_time() - worked
    return {
        "label": name,
        "set_up_seconds": fitted - started,
        "seconds_a_row": seconds / len(X_plus),
        "cpu_seconds_a_row": worked / len(X_plus),
        "rows_timed": len(X_plus),
        **measured(few, X_plus.iloc[: len(few.people)]),
        "all_people": measured(case, X_plus),
    }


def measured(case: Case, X_plus: pd.DataFrame) -> Line:
    values = measure(case, X_plus)
    known = {name: values[name] for name in METRICS if name in values}
    return {
        "people": len(X_plus),
        "answered": int((~X_plus.isna().all(axis=1)).sum()),
        "metrics": {name: float(np.nanmean(v)) for name, v in known.items()},
    }


# ---- peers --------------------------------------------------------------------------------------


def run_peer(peer: str, method: str, few: Case, limit: float) -> Line:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hand_over(few, folder, limit)
        script = HERE / "peers" / PEERS[peer].script
        done = subprocess.run(
            [python_of(peer), "-W", "ignore", script, folder, method],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            return {"failed": (done.stderr.strip() or "no message").splitlines()[-1][:200]}
        run = json.loads((folder / FILES["run"]).read_text(encoding="utf-8"))
        X_plus = handed_back(few, pd.read_csv(folder / FILES["answers"]))
    return {
        "set_up_seconds": run["set_up_seconds"],
        "seconds_a_row": float(np.mean(run["seconds"])),
        "cpu_seconds_a_row": run["cpu_seconds"] / len(X_plus),
        "median_seconds": float(np.median(run["seconds"])),
        "rows_timed": len(X_plus),
        **measured(few, X_plus),
        "unanswered": run["failed"],
        "versions": run["versions"],
    }


def hand_over(case: Case, folder: Path, limit: float) -> None:
    """Write the case as `peers/exchange.py` reads it."""
    features = [
        _described(feature, block)
        for feature, block in zip(case.schema, case.encoder.blocks, strict=True)
    ]
    known = {"features": features, "seed": case.seed, "limit": limit}
    (folder / FILES["case"]).write_text(json.dumps(known), encoding="utf-8")
    layers = [layer for layer in case.h.model.layers if isinstance(layer, nn.Linear)]
    weights = {f"weight{i}": layer.weight.detach().numpy() for i, layer in enumerate(layers)}
    biases = {f"bias{i}": layer.bias.detach().numpy() for i, layer in enumerate(layers)}
    np.savez(folder / FILES["weights"], **weights, **biases)
    training = as_numbers(case, case.X).assign(**{OUTCOME: case.y})
    training.to_csv(folder / "training.csv", index=False)
    people = as_numbers(case, case.people).assign(**{SCORE: case.h.score(case.people)})
    people.to_csv(folder / "people.csv", index=False)


def _described(feature: Feature, block: Any) -> dict[str, Any]:
    if feature.missing:
        sys.exit(f"'{feature.name}' has missing values, which the peers cannot read")
    return {
        "name": feature.name,
        "levels": len(feature.categories),
        "low": block.low,
        "span": block.span,
        "range": feature.range or (block.low, block.low + block.span),
        "immutable": feature.role == "immutable",
        "direction": feature.direction,
        "max_step": feature.max_step,
    }


def as_numbers(case: Case, X: pd.DataFrame) -> pd.DataFrame:
    """X with the place of its level for each category."""
    F = case.encoder.features(X)
    return pd.DataFrame(
        {
            feature.name: F[:, j].astype(int) if feature.is_category else X[feature.name].to_numpy()
            for j, feature in enumerate(case.schema)
        }
    )


def handed_back(case: Case, answers: pd.DataFrame) -> pd.DataFrame:
    """A peer's answers as x_plus: levels for places, and x's own number where it was left alone."""
    columns: dict[str, Any] = {}
    for feature, block in zip(case.schema, case.encoder.blocks, strict=True):
        value = answers[feature.name].to_numpy(dtype=float)
        if feature.is_category:
            columns[feature.name] = [_level(feature, v) for v in value]
            continue
        own = case.people[feature.name].to_numpy(dtype=float)
        slack = SINGLE * np.maximum(np.abs(own), block.span)
        columns[feature.name] = np.where(np.abs(value - own) <= slack, own, value)
    return pd.DataFrame(columns, index=case.people.index)


def _level(feature: Feature, value: float) -> Any:
    """None: no answer. A place that is none of the levels stays, and counts as a broken rule."""
    if np.isnan(value):
        return None
    known = value.is_integer() and 0 <= value < len(feature.categories)
    return feature.categories[int(value)] if known else f"no such level: {value}"


# ---- all of them --------------------------------------------------------------------------------


def run(name: str, options: argparse.Namespace) -> Iterator[Line]:
    case = make_case(name, options.seed, rows=options.rows)
    few = replace(case, people=case.people.iloc[: options.peer_people])
    head = {
        "dataset": name,
        "seed": options.seed,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }
    for label in OURS:
        if _wanted(label, options):
            yield head | run_ours(label, case, few)
    for peer in PEERS:
        for method in PEERS[peer].methods:
            label = f"{peer} {method}"
            if _wanted(label, options):
                yield head | {"label": label} | run_peer(peer, method, few, options.limit)
    yield head | {"label": "ceiling"} | measured(few, ceiling(few))


def _wanted(label: str, options: argparse.Namespace) -> bool:
    return options.only is None or label in options.only.split(",")


def table(lines: list[Line]) -> str:
    """Markdown, a table for each data set, the best Score first."""
    parts = []
    for name in dict.fromkeys(line["dataset"] for line in lines):
        own = [line for line in lines if line["dataset"] == name]
        own.sort(key=lambda line: -line.get("metrics", {"score": -1.0})["score"])
        slowest = next((ln.get("seconds_a_row") for ln in own if ln["label"] == SLOWEST), None)
        people = max(line.get("people", 0) for line in own)
        parts.append(
            f"**{name}**, seed {own[0]['seed']}, the same {people} people for all; "
            f"{own[0]['cores']} cores, {own[0]['threads']} threads.\n\n"
            f"| | Score | h accepts | violations | changes | answered | seconds a row | times the "
            f"rows a second of {SLOWEST} | fit or set-up, s | Score of all people |\n"
            "|---|" + "---:|" * 9 + "\n" + "\n".join(_row(line, slowest) for line in own)
        )
    return "\n\n".join(parts) + "\n"


def _row(line: Line, slowest: float | None) -> str:
    if "failed" in line:
        return f"| {line['label']} | failed: {line['failed']} |" + " |" * 8
    metrics, seconds, every = line["metrics"], line.get("seconds_a_row"), line.get("all_people")
    violations, changes = (metrics.get(m, np.nan) for m in ("violations", "changes"))
    cells = [
        line["label"],
        f"{metrics['score']:.3f}",
        f"{metrics['h_valid']:.2f}",
        f"{violations:.2f}",
        f"{changes:.1f}",
        f"{line['answered']} of {line['people']}",
        "" if seconds is None else f"{seconds:.4f} ({line['rows_timed']} rows)",
        "" if seconds is None or slowest is None else f"{slowest / seconds:.1f}",
        "" if seconds is None else f"{line['set_up_seconds']:.1f}",
        "" if every is None else f"{every['metrics']['score']:.3f} ({every['people']})",
    ]
    return "| " + " | ".join(cells) + " |"


def kept_lines(dataset: str) -> list[Line]:
    """What earlier runs found on other data sets."""
    if not RESULTS.is_file():
        return []
    lines = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["dataset"] != dataset]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", default="adult-carla", help="with a comma between them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=500, help="people whom our methods answer")
    parser.add_argument("--peer-people", type=int, default=30, help="of them, whom peers answer")
    parser.add_argument("--limit", type=float, default=120.0, help="CPU seconds for a person")
    parser.add_argument("--only", help="labels, with a comma between them; nothing is written")
    options = parser.parse_args()
    absent = [peer for peer in PEERS if not is_installed(peer)]
    if absent:
        sys.exit(f"no environment for {absent}: run `make bench-peers`")
    for name in options.datasets.split(","):
        lines = kept_lines(name)
        for line in run(name, options):
            print(json.dumps(line), flush=True)
            lines.append(line)
        print("\n" + table([line for line in lines if line["dataset"] == name]))
        if options.only is None:
            RESULTS.parent.mkdir(exist_ok=True)
            text = "".join(json.dumps(line) + "\n" for line in lines)
            RESULTS.write_text(text, encoding="utf-8")
            TABLE.write_text(table(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
