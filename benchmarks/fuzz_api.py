"""Sends requests that schemathesis makes from the OpenAPI description: right ones and wrong ones.

    python -m benchmarks.fuzz_api [--requests 20000] [--seed 0] [--folder MODEL]

The service runs in a process of its own, on a model of German credit. Every answer has to fit the
description, in its status, its type and its JSON, and none may be a mistake of the service (5xx).
The examples of the description come first. Writes how many requests were sent, by address and
status, to benchmarks/results/fuzz_api.json. Fails if fewer than `--requests` were sent, or if an
address of the description was left out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from benchmarks.serving import command, german_model

RESULTS = Path(__file__).parent / "results" / "fuzz_api.json"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
NAME = "german"


def fuzz(url: str, wanted: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Send about `wanted` requests; return counts by address and status, and what was wrong."""
    described = _with_short_lists(requests.get(f"{url}/openapi.json", timeout=60).json())
    api = schemathesis.openapi.from_dict(described)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    operations = [each.ok() for each in api.get_all_operations()]
    shares = _shares(operations, wanted)
    with requests.Session() as session:
        for operation in operations:
            _send_examples(url, session, operation, counts, wrong)
        for operation, mode, share in shares:
            _fuzz_one(url, session, operation, mode, share, seed, counts, wrong)
    return counts, wrong


def _with_short_lists(described: dict[str, Any]) -> dict[str, Any]:
    """Return the description with at most two people a request, so that more requests are sent."""
    bodies = {k: v for k, v in described["components"]["schemas"].items() if k.endswith("Body")}
    for schema in bodies.values():
        for name in ("people", "instances", "plans", "inputs"):
            if schema.get("properties", {}).get(name, {}).get("type") == "array":
                schema["properties"][name]["maxItems"] = 2
    return described


def _shares(operations: list[Any], wanted: int) -> Iterator[tuple[Any, GenerationMode, int]]:
    """Divide the requests: most go to addresses with a body, and half of these are wrong."""
    with_body = [each for each in operations if each.body]
    without = [each for each in operations if not each.body]
    few = max(3, wanted // 100)
    for operation in without:
        for mode in MODES:
            yield operation, mode, few
    # an address without a body has one request or few, whatever its share: they come on top
    for operation in with_body:
        for mode in MODES:
            yield operation, mode, -(-wanted // (2 * len(with_body)))


def left_out(url: str, counts: Counter[str]) -> list[str]:
    """Return the addresses of the description that no counted request went to."""
    paths = requests.get(f"{url}/openapi.json", timeout=60).json()["paths"]
    described = {f"{verb.upper()} {path}" for path, verbs in paths.items() for verb in verbs}
    return sorted(described - {name.rsplit(" ", 1)[0] for name in counts})


def _send_examples(
    url: str, session: requests.Session, operation: Any, counts: Counter[str], wrong: list[str]
) -> None:
    """Send each example of an address: its answer is a success, and fits the description."""
    content = operation.definition.raw.get("requestBody", {}).get("content", {})
    for says, example in content.get("application/json", {}).get("examples", {}).items():
        case = operation.Case(
            path_parameters={"name": NAME} if "{name}" in operation.path else {},
            body=example["value"],
            media_type="application/json",
        )
        response = _sent(url, session, operation, case, counts, wrong, f"example {says!r}")
        if response.status_code != 200:
            wrong.append(f"{operation.path} answers its example {says!r}: {response.text}"[:2_000])


def _sent(
    url: str,
    session: requests.Session,
    operation: Any,
    case: Any,
    counts: Counter[str],
    wrong: list[str],
    kind: str,
) -> Any:
    """Send one request, count it, note what is wrong with its answer, and return the answer."""
    response = case.call(base_url=url, session=session, timeout=120)
    counts[f"{operation.method.upper()} {operation.path} {response.status_code}"] += 1
    try:
        case.validate_response(response, checks=CHECKS)
    except (Exception, BaseExceptionGroup) as error:  # all of them are reported
        if len(wrong) < 50:
            wrong.append(f"{operation.method} {operation.path} ({kind}): {error}"[:2_000])
    return response


def _fuzz_one(
    url: str,
    session: requests.Session,
    operation: Any,
    mode: GenerationMode,
    share: int,
    seed: int,
    counts: Counter[str],
    wrong: list[str],
) -> None:
    """Send `share` requests to one address; it draws again until so many were sent."""
    sent = 0
    places = {"name": NAME} if "{name}" in operation.path else {}

    def send(case: Any) -> None:
        nonlocal sent
        # a name that is made up gets 404 and no further: most requests have the right one
        if places and sent % 10:
            case.path_parameters = dict(places)
        _sent(url, session, operation, case, counts, wrong, mode.value)
        sent += 1

    try:
        strategy = operation.as_strategy(generation_mode=mode)
        strategy.validate()
    except Exception:  # nothing can be wrong about a request without any part
        return
    for again in range(20):
        if sent >= share:
            return
        before = sent
        test = hypothesis.settings(
            max_examples=share - sent,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )(hypothesis.seed(seed + again)(hypothesis.given(strategy)(send)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                test()
            except hypothesis.errors.Unsatisfiable:
                return
        print(f"{operation.path} {mode.value}: {sent}", file=sys.stderr, flush=True)
        if sent - before < 2:  # there is only one such request
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1, help="that send, each with own seeds")
    parser.add_argument("--folder", type=Path, help="a model folder, instead of a new one")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    with german_model(asked.folder) as folder, command(folder, "--name", NAME) as served:
        each = -(-asked.requests // asked.processes)
        shares = [(served.url, each, asked.seed + 1_000 * k) for k in range(asked.processes)]
        with multiprocessing.get_context("spawn").Pool(asked.processes) as pool:
            found = pool.starmap(fuzz, shares)
        counts = sum((part for part, _ in found), Counter[str]())
        wrong = [each for _, part in found for each in part] + served.mistakes()
        wrong += [f"{each}: no request" for each in left_out(served.url, counts)]
    by_status: Counter[str] = Counter()
    for name, count in counts.items():
        by_status[name.rsplit(" ", 1)[1]] += count
    written = {
        "command": f"python -m benchmarks.fuzz_api --requests {asked.requests} --seed {asked.seed} "
        f"--processes {asked.processes}",
        "schemathesis": schemathesis.__version__,
        "requests": sum(counts.values()),
        "mistakes of the service (5xx)": sum(n for s, n in by_status.items() if s >= "500"),
        "answers that do not fit the description": len(wrong),
        "by status": dict(sorted(by_status.items())),
        "by address": dict(sorted(counts.items())),
    }
    asked.output.write_text(json.dumps(written, indent=2) + "\n")
    print(json.dumps({k: v for k, v in written.items() if k != "by address"}, indent=2))
    for each in wrong:
        print(each, file=sys.stderr)
    if wrong:
        raise SystemExit(1)
    if written["requests"] < asked.requests:
        raise SystemExit(f"{written['requests']} requests were sent, fewer than {asked.requests}")


if __name__ == "__main__":
    main()
