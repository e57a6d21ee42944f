"""Write the results in README.md and docs/ from paper/results/ and benchmarks/results/.

python benchmarks/report.py           # rewrites the pages
python benchmarks/report.py --check   # fails if they do not agree with the results
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from paper.readme import Report  # noqa: E402
from paper.records import DATASETS, Results, published  # noqa: E402
from paper.runs import scale  # noqa: E402
from paper.tables import TABLE_1, markdown, our_cell, people  # noqa: E402
from paper.targets import table as targets  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
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
    """Ours, then the others in the order of the paper's table: those that there is a result of."""
    every = ["genre", *(label for row in TABLE_1 for label in row.labels if label != "genre")]
    return [label for label in every if any(results.of(label, data) for data in DATASETS.values())]


def summary(results: Results) -> str:
    """Mean Score of each method on each data set with its interval, GenRe as published on top."""
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
    """Every method of Table 1 on every data set."""
    parts = []
    for name, data in DATASETS.items():
        rows = []
        for label in labels(results):
            values = [results.measured(label, data, metric) for metric in COLUMNS]
            cells = [our_cell(value, sd=False) for value in values]
            rows.append([f"`{label}`", *cells, people(values[0])])
        parts.append(f"**{name}**\n\n{markdown(['', *COLUMNS.values(), 'people'], rows)}")
    return "\n\n".join(parts)


def demo() -> str:
    found = json.loads((RESULTS / "demo.json").read_text(encoding="utf-8"))
    return (
        f"It takes {found['seconds']} seconds on {found['cores']} cores once installed, at most "
        f"{found['peak_mb']:,} MB of memory, and writes a report of {found['report_kb']:,} kB "
        "(`python benchmarks/bench_demo.py`)."
    )


def plans() -> str:
    """Who gets plans and what they are like; then why the others get none."""
    lines = _lines("plans.jsonl")
    head = ["", "rules", "people", "with a plan", "plans", "accepted by h", "rules broken"]
    head += ["plans a person, of 5", "changes a plan", "ms a person"]
    rows, none = [], []
    for line in lines:
        who = [line["dataset"], line["rules"]]
        people, ok = line["people"], line["with_a_plan"]
        of = "" if people == line["rejected"] else f" of {line['rejected']:,}"
        accepted = line["accepted_by_h"] / max(1, line["plans"])
        numbers = [f"{people:,}{of}", _percent(ok / people), f"{line['plans']:,}"]
        numbers += [_percent(accepted), f"{line['rules_broken']:,}"]
        numbers += [f"{line['median_distinct']:g}", f"{line['changes_a_plan']:.2f}"]
        rows.append([*who, *numbers, f"{1000 * line['seconds_a_person']:.0f}"])
        why = ", ".join(f"`{code}` {n:,}" for code, n in line["no_plan"].items())
        counts = [f"{people - ok:,}", f"{line['proven']:,}", f"{line['searched']:,}"]
        none.append([*who, why or "-", *counts])
    reasons = ["", "rules", "reason", "without a plan", "proven", "searched"]
    return f"{markdown(head, rows, left=2)}\n\n{markdown(reasons, none, left=3)}"


def _percent(share: float) -> str:
    """100% only where it is all of them."""
    return "100%" if share == 1 else f"{min(100 * share, 99.99):.2f}%"


def _lines(name: str) -> list[dict[str, Any]]:
    text = (RESULTS / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def filled(text: str, name: str, content: str) -> str:
    """The page with what stands between the marks of `name` replaced."""
    start, end = f"<!-- {name}: written by `python benchmarks/report.py` -->", f"<!-- /{name} -->"
    pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.S)
    if len(pattern.findall(text)) != 1:
        sys.exit(f"the page needs one pair of marks {start} ... {end}")
    return pattern.sub(lambda _: f"{start}\n{content}\n{end}", text)


def pages() -> dict[Path, str]:
    results = Report(scale("full")).main
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = filled(readme, "results", f"\n{summary(results)}\n\n{targets(results)}\n")
    tables = {"results.md": ("details", details(results)), "plans.md": ("plans", plans())}
    found = {ROOT / "README.md": filled(readme, "demo", demo())}
    for name, (mark, content) in tables.items():
        page = ROOT / "docs" / name
        found[page] = filled(page.read_text(encoding="utf-8"), mark, f"\n{content}\n")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for path, text in pages().items():
        if not options.check:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.name} does not agree with the results: run benchmarks/report.py")


if __name__ == "__main__":
    main()
