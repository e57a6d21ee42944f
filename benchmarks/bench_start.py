"""How long `import genrecourse` and `genrecourse --help` take, each start in a new process.

python -m benchmarks.bench_start                  # prints, and writes benchmarks/results/start.json
python -m benchmarks.bench_start --before PATH    # also of an earlier checkout, and the ratio

The two checkouts take turns, so that both meet the same load. The first start of each is not
counted: it compiles the modules.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "start.json"
STARTS = 7
COMMANDS = {
    "import genrecourse": ["-c", "import genrecourse"],
    "genrecourse --help": ["-m", "genrecourse", "--help"],
}


def seconds_of_start(checkout: Path, words: list[str]) -> float:
    """Return the wall time of one new process that runs the package of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, *words],
        check=True,
        cwd=checkout,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - started


def measure(words: list[str], checkouts: dict[str, Path]) -> dict[str, Any]:
    """Return the median, lowest and highest seconds of each checkout, and the ratio of medians."""
    seconds: dict[str, list[float]] = {name: [] for name in checkouts}
    for turn in range(1 + STARTS):
        for name, checkout in checkouts.items():
            taken = seconds_of_start(checkout, words)
            if turn:
                seconds[name].append(taken)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    found: dict[str, Any] = {
        name: {
            "median_seconds": round(medians[name], 3),
            "lowest": round(min(each), 3),
            "highest": round(max(each), 3),
        }
        for name, each in seconds.items()
    }
    if "before" in medians:
        found["ratio"] = round(medians["before"] / medians["now"], 1)
    return found


def commit_of(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--before", type=Path, help="a checkout of an earlier version")
    options = parser.parse_args()
    checkouts = {"now": ROOT}
    if options.before is not None:
        checkouts["before"] = options.before.resolve()
        if not (checkouts["before"] / "src" / "genrecourse").is_dir():
            parser.error(f"{options.before} holds no src/genrecourse; name the root of a checkout")
    found: dict[str, Any] = {
        "starts": STARTS,
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "commits": {name: commit_of(checkout) for name, checkout in checkouts.items()},
    }
    for name, words in COMMANDS.items():
        found[name] = measure(words, checkouts)
        print(name, found[name], flush=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
