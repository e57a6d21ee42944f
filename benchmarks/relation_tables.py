"""Tables for docs/relations.md from benchmarks/results/relations.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paper.tables import markdown

RESULTS = Path(__file__).parent / "results" / "relations.json"


def made() -> str:
    """Return precision and recall on made tables, by rows, and what was missed."""
    head = ["rows", "tables", "relations found", "precision", "recall", "not always found"]
    rows = []
    for line in _part("made"):
        tables = line["tables"]
        missed = [
            f"{name} ({n} of {tables})" for name, n in line["found_in_tables"].items() if n < tables
        ]
        shares = [f"{line['precision']:.3f}", f"{line['recall']:.3f}"]
        counts = [f"{line['rows']:,}", str(tables), str(line["found"])]
        rows.append([*counts, *shares, ", ".join(missed) or "-"])
    return markdown(head, rows, left=0)


def found() -> str:
    """Return how many relations of each kind real tables keep."""
    kinds = ("order", "sum", "one-hot", "missing together", "if-then")
    rows = [
        [
            line["table"],
            f"{line['rows']:,}",
            str(line["columns"]),
            *(str(line["found"].get(kind, 0)) for kind in kinds),
        ]
        for line in _part("found")
    ]
    return markdown(["", "rows", "columns", *kinds], rows, left=1)


def plans() -> str:
    """Return the plans that break a relation, before and after it is accepted."""
    head = ["", "relations", "", "people with a plan", "plans", "that break a relation"]
    head += ["rows of `recourse` that do", "changes", "cost", "ms a person"]
    rows = []
    for line in _part("plans"):
        numbers = [f"{line['with_a_plan']} of {line['people']}", str(line["plans"])]
        numbers += [str(line["plans_that_break_one"]), str(line["recourse_that_breaks_one"])]
        numbers += [f"{line['median_changes']:g}", f"{line['median_cost']:.2f}"]
        who = [line["table"], str(line["relations"]), line["when"]]
        rows.append([*who, *numbers, str(line["milliseconds_a_person"])])
    return markdown(head, rows, left=3)


def _part(name: str) -> list[dict[str, Any]]:
    known: dict[str, list[dict[str, Any]]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return known[name]
