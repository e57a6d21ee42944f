"""The service with a record is killed with -9 under load, again and again, in one folder.

    python -m benchmarks.serve_kills
    python -m benchmarks.serve_kills --kills 5

Eight clients ask for plans. At a random moment the service is killed. Every answer that a client
received with status 200 must be in the record with its plan, the record must verify, and the next
start must need no repair. The counts go to benchmarks/results/serve_kills.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.serving import command, german_model
from genrecourse.advice.record.check import CHAIN, check
from genrecourse.data.datasets import read_whole
from genrecourse.methods import load

RESULTS = Path(__file__).parent / "results" / "serve_kills.json"
CLIENTS = 8
LONGEST = 2.0  # seconds of load before a kill, at most


def people(model: Path, n: int = 40) -> list[dict[str, Any]]:
    """Return rejected people as JSON holds them."""
    method = load(model)
    X = read_whole("german").iloc[:300][method.schema_.columns]
    rejected = X[~method.classifier_.accepts(X)].head(n)
    return json.loads(rejected.to_json(orient="records"))


def killed(model: Path, record: Path, asked: list[dict[str, Any]], seconds: float) -> list[str]:
    """Return the ids of the answers that clients received before the service was killed."""
    received: list[str] = []

    def ask(client: int, url: str) -> None:
        turn = client
        with httpx.Client(base_url=url, timeout=60) as session:
            while True:
                body = {"people": [asked[turn % len(asked)]], "n": 1 + turn % 3}
                turn += CLIENTS
                try:
                    answer = session.post("/api/v1/plans", json=body)
                    if answer.status_code == 200:
                        answer.json()  # it is whole
                        received.append(answer.headers["x-request-id"])
                except httpx.HTTPError:
                    return

    with command(model, "--record", record) as running:
        threads = [threading.Thread(target=ask, args=(k, running.url)) for k in range(CLIENTS)]
        for each in threads:
            each.start()
        time.sleep(seconds)
        running.process.kill()
        for each in threads:
            each.join()
    return received


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    received: list[str] = []
    unfinished = 0
    with german_model() as model, tempfile.TemporaryDirectory() as folder:
        record, asked = Path(folder) / "record", people(model)
        for _ in range(options.kills):
            received += killed(model, record, asked, float(rng.uniform(0.05, LONGEST)))
            unfinished += check(record).unfinished > 0  # raises if anything is damaged
        known = {json.loads(line).get("request") for line in _lines(record / CHAIN)}
        found = check(record)
    counts = {
        "kills": options.kills,
        "answers received": len(received),
        "answers recorded": found.answers,
        "received and not recorded": len(set(received) - known),
        "kills that left an unfinished line": unfinished,
        "starts after a kill": options.kills - 1,  # one that fails ends this program
    }
    RESULTS.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(counts, indent=1))


def _lines(path: Path) -> list[bytes]:
    """Return the whole lines of a file."""
    return path.read_bytes().split(b"\n")[:-1]


if __name__ == "__main__":
    main()
