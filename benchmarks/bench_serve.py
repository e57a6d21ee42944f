"""The service under load: 32 clients in a second process ask for plans of one person each.

    python -m benchmarks.bench_serve [--seconds 20] [--rounds 3] [--memory-seconds 300]

In one run: throughput and times of answers with requests answered together and without, in turns;
then twice as many requests a second as the service can carry; then its memory under load. Writes
benchmarks/results/serve.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.serving import Running, command, german_model
from genrecourse.advice.service import Service
from genrecourse.data.datasets import read_whole

RESULTS = Path(__file__).parent / "results" / "serve.json"
CLIENTS = 32
PATIENCE = 600  # seconds: also of the service, where one answer at a time keeps clients waiting
WARM = 2.0  # seconds of load before anything is counted
OVERLOAD = 2.0


def people_of(folder: Path) -> list[dict[str, Any]]:
    """Return people whom the model rejects and has not learned from, as JSON."""
    service = Service.open(folder)
    X = read_whole("german").iloc[:300][service.schema.columns]
    X = X[~service.method.classifier_.accepts(X)]
    return list(json.loads(X.to_json(orient="records")))


async def closed_loop(
    url: str, people: list[dict[str, Any]], seconds: float, watch: Any = None
) -> list[float]:
    """Ask with all clients, each as soon as it has its answer; return the times of answers.

    Answers that come when the time is over do not count.
    """
    times: list[float] = []
    ends = time.perf_counter() + seconds

    async def ask(client: httpx.AsyncClient, k: int) -> None:
        while time.perf_counter() < ends:
            body = {"people": [people[k % len(people)]]}
            k += CLIENTS
            started = time.perf_counter()
            answer = await client.post("/api/v1/plans", json=body)
            answer.raise_for_status()
            if time.perf_counter() < ends:
                times.append(time.perf_counter() - started)

    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        asking = [ask(client, k) for k in range(CLIENTS)]
        await asyncio.gather(*asking, *([] if watch is None else [watch(ends)]))
    return times


async def open_loop(
    url: str, people: list[dict[str, Any]], seconds: float, rate: float
) -> tuple[Counter[int], list[float], int]:
    """Ask `rate` times a second, whether answers come or not.

    Return the statuses, the times of answers with 200, and how many of these came in the time.
    """
    statuses: Counter[int] = Counter()
    times: list[float] = []
    in_time = [0]
    begun = time.perf_counter()
    ends = begun + seconds
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=200)

    async def ask(client: httpx.AsyncClient, k: int) -> None:
        started = time.perf_counter()
        body = {"people": [people[k % len(people)]]}
        answer = await client.post("/api/v1/plans", json=body)
        statuses[answer.status_code] += 1
        if answer.status_code == 200:
            if time.perf_counter() < ends:
                in_time[0] += 1
            times.append(time.perf_counter() - started)
        elif answer.status_code == 503:
            assert answer.headers["retry-after"]

    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE, limits=limits) as client:
        tasks = []
        for k in range(int(seconds * rate)):
            await asyncio.sleep(max(0.0, begun + k / rate - time.perf_counter()))
            tasks.append(asyncio.create_task(ask(client, k)))
        await asyncio.gather(*tasks)
    return statuses, times, in_time[0]


def percentiles(times: list[float]) -> dict[str, float]:
    return {f"p{q} ms": round(1000 * float(np.percentile(times, q)), 1) for q in (50, 95, 99)}


def measure_throughput(folder: Path, seconds: float, rounds: int) -> dict[str, Any]:
    """Return answers a second with and without requests answered together, in turns."""
    people = people_of(folder)
    found: dict[str, list[Any]] = {"together": [], "alone": []}
    with (
        command(folder, answer_seconds=PATIENCE) as together,
        command(folder, answer_seconds=PATIENCE, batch_people=1) as alone,
    ):
        for _ in range(rounds):
            for name, served in (("together", together), ("alone", alone)):
                asyncio.run(closed_loop(served.url, people, WARM))
                times = asyncio.run(closed_loop(served.url, people, seconds))
                found[name].append(times)
                print(f"{name}: {len(times) / seconds:.1f} answers a second", flush=True)
    rates = {
        name: [len(times) / seconds for times in parts] for name, parts in found.items()
    }  # fmt: skip
    ratios = [a / b for a, b in zip(rates["together"], rates["alone"], strict=True)]
    return {
        "together": {
            "answers a second": [round(each, 1) for each in rates["together"]],
            **percentiles([each for times in found["together"] for each in times]),
        },
        "alone": {
            "answers a second": [round(each, 1) for each in rates["alone"]],
            **percentiles([each for times in found["alone"] for each in times]),
        },
        "ratio": round(statistics.median(ratios), 2),
        "ratios": [round(each, 2) for each in ratios],
    }


def measure_overload(folder: Path, seconds: float) -> dict[str, Any]:
    """Return what happens at twice the rate that the service can carry.

    The rate that it can carry is measured just before with as many requests waiting as there may
    be, since more clients make larger batches.
    """
    people = people_of(folder)
    with command(folder) as served:
        asyncio.run(closed_loop(served.url, people, WARM))
        best = len(asyncio.run(closed_loop(served.url, people, seconds))) / seconds
        statuses, times, in_time = asyncio.run(
            open_loop(served.url, people, seconds, OVERLOAD * best)
        )
    return {
        "carried before": round(best, 1),
        "asked a second": round(OVERLOAD * best, 1),
        "answered a second": round(in_time / seconds, 1),
        "statuses": {str(status): n for status, n in sorted(statuses.items())},
        **percentiles(times),
    }


def measure_memory(folder: Path, seconds: float) -> dict[str, Any]:
    """Return the memory of the process under load: its mean in the first and the last fifth."""
    people, samples = people_of(folder), list[float]()

    async def watch(served: Running, ends: float) -> None:
        while time.perf_counter() < ends:
            samples.append(served.memory())
            await asyncio.sleep(0.5)

    with command(folder, answer_seconds=PATIENCE) as served:
        asyncio.run(closed_loop(served.url, people, 5 * WARM))
        times = asyncio.run(
            closed_loop(served.url, people, seconds, lambda ends: watch(served, ends))
        )
    fifth = max(1, len(samples) // 5)
    return {
        "seconds": seconds,
        "answers": len(times),
        "first fifth MB": round(statistics.mean(samples[:fifth]), 1),
        "last fifth MB": round(statistics.mean(samples[-fifth:]), 1),
        "most MB": round(max(samples), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory-seconds", type=float, default=300.0)
    parser.add_argument("--folder", type=Path, help="a model folder, instead of a new one")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    with german_model(asked.folder) as folder:
        load = os.getloadavg()[0]
        found = {
            "command": f"python -m benchmarks.bench_serve --seconds {asked.seconds:g} "
            f"--rounds {asked.rounds} --memory-seconds {asked.memory_seconds:g}",
            "clients": CLIENTS,
            "cores": os.cpu_count(),
            "load of the machine before": round(load, 1),
            "python": platform.python_version(),
            "throughput": measure_throughput(folder, asked.seconds, asked.rounds),
            "overload": measure_overload(folder, asked.seconds),
            "memory": measure_memory(folder, asked.memory_seconds),
        }
    asked.output.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
