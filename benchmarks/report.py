"""Write the results in README.md and docs/results.md from benchmarks/results/.

python benchmarks/report.py           # rewrites both
python benchmarks/report.py --check   # fails if they do not agree with the results
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
METHODS = ("nnr", "nnr-0.7", "nnr-dplus", "nnr-auto", "genre-paper", "genre", "ceiling")
DATASETS = ("adult-carla", "compas", "heloc")
COLUMNS = ("cost", "val", "lof", "score", "h_valid", "changes", "violations")
Lines = list[dict[str, Any]]


def read() -> Lines:
    text = (RESULTS / "quality.jsonl").read_text(encoding="utf-8")
    return [line for line in map(json.loads, text.splitlines()) if not line["nested"]]


def summary(lines: Lines) -> str:
    """Mean Score of each method on each data set, over the seeds; each seed of GenRe."""
    scores = defaultdict(list)
    for line in lines:
        scores[line["method"], line["dataset"]].append(line["score"])
    rows = ["| Score | " + " | ".join(DATASETS) + " |", "|---|" + "---:|" * len(DATASETS)]
    for method in METHODS:
        cells = [f"{mean(scores[method, data]):.3f}" for data in DATASETS]
        if method == "genre":
            cells = [f"**{cell}**" for cell in cells]
        rows.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def facts(lines: Lines) -> str:
    """What the mean hides: each seed, its denominator, and how often GenRe was the best."""
    said = []
    for data in DATASETS:
        own = [line for line in lines if line["dataset"] == data]
        genre = [line for line in own if line["method"] == "genre"]
        others = [m for m in METHODS if m not in ("genre", "ceiling")]
        best = sum(
            line["score"]
            > max(o["score"] for o in own if o["seed"] == line["seed"] and o["method"] in others)
            for line in genre
        )
        seeds = ", ".join(f"{g['score']:.3f} (seed {g['seed']}, {g['n']} rows)" for g in genre)
        violations = sum(round(g["violations"] * g["n"]) for g in genre)
        accepted = min(g["h_valid"] for g in genre)
        changes = mean(g["changes"] for g in genre)
        said.append(
            f"- {data}: GenRe {seeds}; best of the methods on {best} of {len(genre)} seeds; "
            f"{changes:.1f} changes a plan, {violations} violations, at least {accepted:.1%} "
            "accepted by h."
        )
    return "\n".join(said)


def details(lines: Lines) -> str:
    """One line for each data set, seed and method, in the order they were run."""
    rows = ["| data, seed, rows | method | " + " | ".join(COLUMNS) + " | fit s |"]
    rows.append("|---|---|" + "---:|" * (len(COLUMNS) + 1))
    for item in lines:
        score = f"**{item['score']:.3f}**" if item["method"] == "genre" else f"{item['score']:.3f}"
        values = [score if c == "score" else f"{item[c]:.3f}" for c in COLUMNS]
        values[COLUMNS.index("changes")] = f"{item['changes']:.1f}"
        values[COLUMNS.index("violations")] = f"{item['violations'] * item['n']:.0f}"
        fit = f"{item['fit_seconds']:.0f}" if "fit_seconds" in item else ""
        place = f"{item['dataset']}, {item['seed']}, {item['n']}"
        rows.append(f"| {place} | {item['method']} | " + " | ".join(values) + f" | {fit} |")
    return "\n".join(rows)


def configs(lines: Lines) -> str:
    return ", ".join(sorted({line["config"] for line in lines if line["method"] == "genre"}))


def results(lines: Lines) -> str:
    return f"""
{summary(lines)}

{facts(lines)}

Config {configs(lines)}. [Every line](docs/results.md)."""


def demo() -> str:
    found = json.loads((RESULTS / "demo.json").read_text(encoding="utf-8"))
    return (
        f"It takes {found['seconds']} seconds on {found['cores']} cores once installed, at most "
        f"{found['peak_mb']:,} MB of memory, and writes a report of {found['report_kb']:,} kB "
        "(`python benchmarks/bench_demo.py`)."
    )


def filled(text: str, name: str, content: str) -> str:
    """The page with what stands between the marks of `name` replaced."""
    start, end = f"<!-- {name}: written by `python benchmarks/report.py` -->", f"<!-- /{name} -->"
    pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.S)
    if len(pattern.findall(text)) != 1:
        sys.exit(f"the page needs one pair of marks {start} ... {end}")
    return pattern.sub(lambda _: f"{start}\n{content}\n{end}", text)


def pages() -> dict[Path, str]:
    lines = read()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = filled(filled(readme, "results", results(lines)), "demo", demo())
    page = ROOT / "docs" / "results.md"
    return {
        ROOT / "README.md": readme,
        page: filled(page.read_text(encoding="utf-8"), "details", "\n" + details(lines) + "\n"),
    }


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
