"""The blocks of docs/serve.md: the limits, the service under load, and the requests of fuzzing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from genrecourse.apps.serve.settings import Settings, limits_of

RESULTS = Path(__file__).parent / "results"


def limits() -> str:
    """Return every limit of the service as a table."""
    lines = ["| Limit | | |", "|---|---:|---|"]
    lines += [
        f"| `{name}` | {value:,.10g} | {says} |" for name, value, says in limits_of(Settings())
    ]
    return "\n".join(lines)


def serve() -> str:
    """Return how the service did under load."""
    if not (RESULTS / "serve.json").is_file():
        return "This has not been measured yet; `python -m benchmarks.bench_serve` does it."
    found = _read("serve.json")
    throughput, overload, memory = (found[name] for name in ("throughput", "overload", "memory"))
    lines = [
        f"{found['clients']} clients in a second process asked for a plan of one person each, on "
        f"{found['cores']} cores with a load of {found['load of the machine before']:g} from other "
        f"work before the run (`{found['command']}`).",
        "",
        "| Requests answered | answers a second, by round | p50 | p95 | p99 |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in ("together", "alone"):
        own = throughput[name]
        rates = ", ".join(f"{rate:g}" for rate in own["answers a second"])
        lines.append(f"| {name} | {rates} | {_times(own)} |")
    ratios = ", ".join(f"{ratio:g}" for ratio in throughput["ratios"])
    statuses = ", ".join(f"{n:,} with {status}" for status, n in overload["statuses"].items())
    return "\n".join(
        [
            *lines,
            "",
            f"Together, it answers {throughput['ratio']:g} times as many (rounds: {ratios}; aim: "
            "5).",
            "",
            f"Asked {overload['asked a second']:g} times a second, twice what it carried just "
            f"before ({overload['carried before']:g}), it answered "
            f"{overload['answered a second']:g} a second ({statuses}); an answer with 200 took "
            f"{_times(overload).replace(' | ', ', ')} (p50, p95, p99).",
            "",
            f"Its memory over {memory['seconds']:g} seconds of load and {memory['answers']:,} "
            f"answers was {memory['first fifth MB']:g} MB on average in the first fifth and "
            f"{memory['last fifth MB']:g} MB in the last; at most {memory['most MB']:g} MB.",
        ]
    )


def kills() -> str:
    """Return what was in the record after the service was killed under load."""
    if not (RESULTS / "serve_kills.json").is_file():
        return "This has not been measured yet; `python -m benchmarks.serve_kills` does it."
    found = _read("serve_kills.json")
    return (
        f"The service with a record was killed with -9 under load {found['kills']} times in one "
        f"folder (`python -m benchmarks.serve_kills`). Of {found['answers received']:,} answers "
        f"that clients had received, {found['received and not recorded']} were missing in the "
        f"record; it verified after every kill, and each next start worked without a repair."
    )


def fuzz() -> str:
    """Return how many requests of fuzzing were sent, and what was wrong."""
    found = _read("fuzz_api.json")
    statuses = ", ".join(f"{n:,} with {status}" for status, n in found["by status"].items())
    return (
        f"schemathesis {found['schemathesis']} made {found['requests']:,} requests from the "
        f"description, right ones and wrong ones (`{found['command']}`): {statuses}. Mistakes of "
        f"the service (5xx): {found['mistakes of the service (5xx)']}. Answers that do not fit "
        f"their description: {found['answers that do not fit the description']}."
    )


def _read(name: str) -> dict[str, Any]:
    return dict(json.loads((RESULTS / name).read_text(encoding="utf-8")))


def _times(own: dict[str, float]) -> str:
    return " | ".join(f"{own[f'p{q} ms']:,g} ms" for q in (50, 95, 99))
