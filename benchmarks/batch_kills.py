"""`genrecourse batch`, killed with kill -9 at random moments until it ends by itself.

    python -m benchmarks.batch_kills                   # 30 kills, on German credit

Every second kill hits the whole run, the others one of its processes, from the start of Python to
the last part. If a run ends before all kills, the next one begins in a new folder. Of each, every
byte of the output is compared with that of a run that nobody disturbed, and every plan is checked
again. The figures go to benchmarks/results/batch_kills.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from genrecourse.advice.batch import BatchPlanner
from genrecourse.advice.learning import prepare
from genrecourse.advice.request import PlanRequest
from genrecourse.apps.batch.verify import verify
from genrecourse.data.datasets import read_whole
from tests.support.batches import begin, children_of, contents, is_alive, kill, wait_until

RESULTS = Path(__file__).parent / "results" / "batch_kills.json"
N = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = killed(Path(folder), options)
    print(json.dumps(result, indent=1))
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def killed(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    rng = np.random.default_rng(options.seed)
    table = read_whole("german")
    task = prepare(table, target="credit", favourable="good", method="nnr-auto")
    task.learn().service.save(folder / "model")
    table.to_csv(folder / "people.csv", index=False)

    def start(name: str) -> Any:
        asked = [folder / "model", folder / "people.csv", folder / name, "-n", N]
        return begin(*asked, "--rows-per-part", 10, "--processes", 2)

    def parts(name: str) -> int:
        return len(list((folder / name).glob("part-*.parquet")))

    started = time.monotonic()
    process = start("undisturbed")
    wait_until(lambda: parts("undisturbed") > 0, "the first part is there")
    usual = time.monotonic() - started  # until the first part: a start takes most of the time
    process.communicate()
    expected = contents(folder / "undisturbed")
    planner = BatchPlanner.of(folder / "model", PlanRequest(n=N))
    kills: list[dict[str, Any]] = []
    runs = []
    while len(kills) < options.kills:
        name = f"killed-{len(runs)}"
        process = start(name)
        while len(kills) < options.kills:
            time.sleep(rng.uniform(0, 2 * usual))
            if process.poll() is not None:
                break  # it ended by itself; the next kills hit another run
            hit = "process" if len(kills) % 2 and children_of(process) else "run"
            kills.append({"hit": hit, "parts": parts(name)})
            process = _killed(process, hit, rng, lambda name=name: start(name))
            print(kills[-1], flush=True)
        said, _ = process.communicate()
        assert process.returncode == 0, said
        found = verify(planner, folder / "people.csv", folder / name)
        equal = contents(folder / name) == expected
        runs.append({"equal_bytes": equal, "plans": found.plans, "wrong": found.wrong})
    return {"seed": options.seed, "parts": len(expected) - 1, "runs": runs, "kills": kills}


def _killed(process: Any, hit: str, rng: np.random.Generator, again: Callable[[], Any]) -> Any:
    """Kill a run, and start it again; or one of its processes, and leave it to itself."""
    workers = children_of(process)
    if hit == "process":
        kill(int(rng.choice(workers)))
        return process
    kill(process.pid)
    process.communicate()
    wait_until(lambda: not any(map(is_alive, workers)), "its processes have ended, too")
    return again()


if __name__ == "__main__":
    main()
