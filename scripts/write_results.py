"""Writes the results into README.md and docs/ from paper/results/ and benchmarks/results/.

python -m scripts.write_results           # rewrites the blocks
python -m scripts.write_results --check   # fails if a page disagrees with the results

A block stands between `<!-- NAME: written by COMMAND -->` and `<!-- /NAME -->`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from benchmarks import fit_million, fit_together, growth, serve_tables
from benchmarks import relation_tables as relations
from benchmarks import sampling_tables as sampling
from benchmarks.batch_million import many
from benchmarks.plan_tables import advice, plans, policies, promises, rules
from paper import status
from paper.blocks import Report
from paper.records import DATASETS, Results, published
from paper.runs import scale
from paper.tables import TABLE_1, markdown, our_cell, people
from paper.targets import table as targets

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PLAN = RESULTS / "readme_plan.json"
COLUMNS = {
    "score": "Score",
    "cost": "cost",
    "val": "val",
    "lof": "LOF",
    "success": "h accepts, no rule broken",
    "changes": "changes",
    "noise": "noise",
    "retrained_bootstrap": "retrained",
}


def labels(results: Results) -> list[str]:
    """Return `genre`, then the others in the order of the paper's table, if they have a result."""
    every = ["genre", *(label for row in TABLE_1 for label in row.labels if label != "genre")]
    return [label for label in every if any(results.of(label, data) for data in DATASETS.values())]


def paper() -> str:
    """Return the limit that says how far the paper's tables have been run."""
    return (
        "- The paper's tables are being run again, Table 1 first, and are not complete: "
        f"{status.summary(scale('full'))} [What is missing](paper/pages/status.md). The paper's "
        "methods that take long were asked about 500 people a seed."
    )


def summary(results: Results) -> str:
    """Return the Score of every method on each data set, with GenRe as published on top."""
    scores = {name: published("main")[name, "GenRe", "score"].mean for name in DATASETS}
    rows = [["GenRe as published, 200 people", *(f"{score:.2f}" for score in scores.values())]]
    for label in labels(results):
        cells = [
            our_cell(results.measured(label, data, "score"), sd=False) for data in DATASETS.values()
        ]
        rows.append([f"`{label}`", *cells])
    counted = [people(results.measured("genre", data, "score")) for data in DATASETS.values()]
    return markdown(["Score", *DATASETS], [*rows, ["people", *counted]])


def details(results: Results) -> str:
    """Return every metric of every method of Table 1, one table per data set."""
    parts = []
    for name, data in DATASETS.items():
        rows = []
        for label in labels(results):
            values = [results.measured(label, data, metric) for metric in COLUMNS]
            cells = [our_cell(value, sd=False) for value in values]
            rows.append([f"`{label}`", *cells, people(values[0])])
        parts.append(f"**{name}**\n\n{markdown(['', *COLUMNS.values(), 'people'], rows)}")
    return "\n\n".join(parts)


def plan() -> str:
    """Return the plan that `scripts.write_readme_plan` made, and how it was chosen."""
    found = json.loads(PLAN.read_text(encoding="utf-8"))
    return (
        f"\n```text\n{found['text']}\n```\n\n"
        f"This is a real plan for test applicant {found['person']} of the German credit data, "
        f"under [this policy]({found['policy']}). Of {found['rejected']} rejected test applicants, "
        f"{found['with_a_plan']} get a plan, {found['fragile']} of these a fragile one; this is "
        "the plan that the most stand-ins for the model accept, the first of equals "
        f"(`{found['command']}`).\n"
    )


def demo() -> str:
    """Return the time and memory of the demo, in words."""
    found = json.loads((RESULTS / "demo.json").read_text(encoding="utf-8"))
    return (
        f"After installation the demo takes {found['seconds']} seconds on {found['cores']} cores "
        f"and at most {found['peak_mb']:,} MB of memory, and writes a report of "
        f"{found['report_kb']:,} kB (`python -m benchmarks.bench_demo`)."
    )


def first() -> str:
    """Return what the first example costs, and that nearest neighbours cost less."""
    found = json.loads((RESULTS / "first_plan.json").read_text(encoding="utf-8"))
    genre, near = found["genre"], found["nnr-search"]
    return (
        f"This takes about {sum(genre[part] for part in ('load', 'fit', 'plans')):.0f} seconds of "
        f"one core: {genre['load']} to load the library, {genre['fit']} to fit and "
        f"{genre['plans']} for the plans. The quick start is to write "
        '`METHODS["nnr-search"]` (from `genrecourse`) instead of `GenRe`: nearest neighbours with '
        "GenRe's verifier, which train no network of their own and fit "
        f"in {near['fit']} (`python -m benchmarks.first_plan`; "
        "[how they compare](docs/sampling.md))."
    )


def speed() -> str:
    """Return how much faster GenRe is than dice-ml's genetic search, beside its aims."""
    text = (RESULTS / "peers.jsonl").read_text(encoding="utf-8")
    took: dict[str, dict[str, float]] = {}
    for line in map(json.loads, text.splitlines()):
        if "seconds_a_row" in line:
            took.setdefault(line["dataset"], {})[line["label"]] = line["seconds_a_row"]
    parts = []
    for data, aim in {"adult-carla": 1000, "heloc": 100}.items():
        times = took[data]["dice-ml genetic"] / took[data]["genre"]
        parts.append(f"{times:,.0f} times on {data.removesuffix('-carla')} (aim: {aim:,})")
    return (
        f"- GenRe answers so many times as many rows per second as dice-ml's genetic search: "
        f"{' and '.join(parts)} ([other packages](docs/results.md#other-packages))."
    )


def record() -> str:
    """Return how fast answers are recorded, and what damage, kills and a full disk do."""
    found = json.loads((RESULTS / "record.json").read_text(encoding="utf-8"))
    appends, killed, full = found["appends"], found["kill_9"], found["full_disk"]
    one, many = appends["threads_1"], appends["threads_32"]
    rows = [
        ["two files written and synced, without a record", f"{appends['disk_alone']:,} a second"],
        ["answers recorded, 1 thread", f"{one['a_second']:,} a second"],
        ["answers recorded, 32 threads", f"{many['a_second']:,} a second"],
        ["time of one `append`, 32 threads: p50, p99", f"{many['p50_ms']} ms, {many['p99_ms']} ms"],
        ["size of an answer about one person, both files", f"{appends['bytes_an_answer']:,} bytes"],
        ["answers verified", f"{appends['verified_a_second']:,} a second"],
        ["answers read when a record is opened", f"{appends['opened_a_second']:,} a second"],
        ["changed bytes found at their place", "{found:,} of {tried:,}".format(**found["flips"])],
        [
            f"acknowledged answers lost by {killed['kills']} times kill -9",
            f"{killed['lost']:,} of {killed['acknowledged']:,}",
        ],
    ]
    if "answers" in full:
        said = f'{full["answers"]:,} recorded and whole, then "{full["error"]}"'
        rows.append(["answers on a disk of 1 MB", said])
    head = ["", f"on {found['cores']} cores"]
    return f"\n{markdown(head, rows)}\n"


def filled(text: str, name: str, content: str) -> str:
    """Return the page with the block of this name replaced."""
    pattern = re.compile(rf"(<!-- {name}: written by `[^`]+` -->\n).*?(<!-- /{name} -->)", re.S)
    if len(pattern.findall(text)) != 1:
        sys.exit(
            f"a page needs exactly one block <!-- {name}: written by `COMMAND` --> ... "
            f"<!-- /{name} -->"
        )
    return pattern.sub(lambda match: f"{match[1]}{content}\n{match[2]}", text)


def pages() -> dict[Path, str]:
    """Return the text of each page, with its blocks written from the results."""
    results = Report(scale("full")).main
    peers = (RESULTS / "peers.md").read_text(encoding="utf-8").strip()
    blocks = {
        "README.md": {
            "plan": plan(),
            "demo": demo(),
            "first": first(),
            "results": f"\n{sampling.headline()}\n",
            "paper": paper(),
            "speed": speed(),
        },
        "docs/record.md": {"record": record()},
        "docs/results.md": {
            "summary": f"\n{summary(results)}\n",
            "targets": f"\n{targets(results)}\n",
            "details": f"\n{details(results)}\n",
            "peers": f"\n{peers}\n",
        },
        "docs/sampling.md": {
            "fresh": f"\n{sampling.fresh()}\n",
            "times": f"\n{sampling.times()}\n",
            "settings": f"\n{sampling.settings()}\n",
            "curves": f"\n{sampling.curves()}\n",
        },
        "docs/plans.md": {"plans": f"\n{plans()}\n", "advice": f"\n{advice()}\n"},
        "docs/promise.md": {"promises": f"\n{promises()}\n"},
        "docs/policy.md": {"policies": f"\n{policies()}\n"},
        "docs/requests.md": {"rules": f"\n{rules()}\n"},
        "docs/relations.md": {
            "made": f"\n{relations.made()}\n",
            "found": f"\n{relations.found()}\n",
            "plans": f"\n{relations.plans()}\n",
        },
        "docs/scale.md": {axis: f"\n{growth.table(axis)}\n" for axis in growth.AXES}
        | {
            "many": f"\n{many()}\n",
            "million": f"\n{fit_million.table()}\n",
            "together": f"\n{fit_together.table()}\n",
        },
        "docs/serve.md": {
            "limits": f"\n{serve_tables.limits()}\n",
            "serve": f"\n{serve_tables.serve()}\n",
            "fuzz": f"\n{serve_tables.fuzz()}\n",
            "kills": f"\n{serve_tables.kills()}\n",
        },
    }
    found = {}
    for name, own in blocks.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for mark, content in own.items():
            text = filled(text, mark, content)
        found[ROOT / name] = text
    return found


def write() -> None:
    """Write the pages."""
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


def check() -> None:
    """Exits with the names of the pages that disagree with the results, if there are any."""
    stale = [p.name for p, text in pages().items() if p.read_text(encoding="utf-8") != text]
    if stale:
        sys.exit(
            f"pages that disagree with the results: {', '.join(stale)}; "
            "run python -m scripts.write_results"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    if parser.parse_args().check:
        check()
    else:
        write()


if __name__ == "__main__":
    main()
