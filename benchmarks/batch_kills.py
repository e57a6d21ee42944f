"""`genrecourse batch`, killed with kill -9 at random moments until it ends by itself.

    python -m benchmarks.batch_kills                   # 30 kills, on German credit

Every second kill hits the whole run, the others one of its processes. At the end, every byte of the
output is compared with that of a run that nobody disturbed, and every plan is checked again. The
figures go to benchmarks/results/batch_kills.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
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
    parser.add_argument("--copies", type=int, default=4, help="of the 1,000 applicants")
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
    people = table.sample(len(table) * options.copies, replace=True, random_state=options.seed)
    people.to_csv(folder / "people.csv", index=False)

    def words(name: str) -> list[Any]:
        asked = [folder / "model", folder / "people.csv", folder / name, "-n", N]
        return [*asked, "--rows-per-part", 20, "--processes", 2]

    started = time.monotonic()
    said, _ = begin(*words("undisturbed")).communicate()
    seconds = time.monotonic() - started
    print(said, f"undisturbed: {seconds:.1f} s", flush=True)
    kills = {"run": 0, "process": 0}
    parts = []
    process = begin(*words("killed"))
    while sum(kills.values()) < options.kills:
        time.sleep(rng.uniform(0, seconds / 3))
        if process.poll() is not None:
            break  # it ended before it could be killed often enough
        workers = children_of(process)
        if workers and sum(kills.values()) % 2:
            kill(int(rng.choice(workers)))
            kills["process"] += 1
        else:
            kill(process.pid)
            process.communicate()
            wait_until(lambda found=workers: not any(map(is_alive, found)), "its processes end")
            kills["run"] += 1
            process = begin(*words("killed"))
        parts.append(len(list((folder / "killed").glob("part-*.parquet"))))
    said, _ = process.communicate()
    assert process.returncode == 0, said
    a, b = contents(folder / "undisturbed"), contents(folder / "killed")
    planner = BatchPlanner.of(folder / "model", PlanRequest(n=N))
    found = verify(planner, folder / "people.csv", folder / "killed")
    return {
        "kills": kills,
        "parts": len(a) - 1,
        "parts_at_each_kill": parts,
        "equal_bytes": a == b,
        "files_that_differ": [name for name in a | b if a.get(name) != b.get(name)],
        "rows": found.rows,
        "plans_checked": found.plans,
        "wrong": found.wrong,
        "seed": options.seed,
    }


if __name__ == "__main__":
    main()
