"""The audit of recourse on adult by sex and race: the numbers, a picture, and their place in the
docs.

python -m benchmarks.audit_adult                 # every test row: minutes of learning, then plans
python -m benchmarks.audit_adult --rows 2000     # fewer people, drawn by the seed

Writes benchmarks/results/audit_adult.json, docs/images/audit_adult.png and the findings in
docs/audit.md; the page itself goes where --page says.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path

import numpy as np

from genrecourse import METHODS, load_dataset
from genrecourse.auditing import Audit, audit
from genrecourse.auditing.page import write_image

ROOT = Path(__file__).parent.parent
RESULT = ROOT / "benchmarks" / "results" / "audit_adult.json"
IMAGE = ROOT / "docs" / "images" / "audit_adult.png"
DOCS = ROOT / "docs" / "audit.md"
MARKS = re.compile(r"(<!-- adult: .*? -->\n).*?(<!-- /adult -->)", re.S)
GROUPS = ("sex", "race")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", default="adult")
    parser.add_argument("--method", default="genre", choices=sorted(METHODS))
    parser.add_argument("--rows", type=int, help="test rows; all if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, default=Path("audit_adult.html"))
    options = parser.parse_args()

    data = load_dataset(options.dataset)
    people = data.X_test
    if options.rows and options.rows < len(people):
        some = np.random.default_rng(options.seed).permutation(len(people))[: options.rows]
        people = people.iloc[np.sort(some)]
    started = time.perf_counter()
    method = METHODS[options.method](schema=data.schema, random_state=options.seed)
    method.fit(data.X_train, data.y_train)
    fitted = time.perf_counter()
    found = audit(method, people, GROUPS, seed=options.seed)
    done = time.perf_counter()
    about = {
        "command": f"python -m benchmarks.audit_adult --dataset {options.dataset} --method "
        f"{options.method} --seed {options.seed}"
        + (f" --rows {options.rows}" if options.rows else ""),
        "seconds": {"fit": round(fitted - started, 1), "audit": round(done - fitted, 1)},
    }
    RESULT.write_text(json.dumps(about | found.to_dict(), indent=1) + "\n", encoding="utf-8")
    write_image(found, IMAGE)
    options.page.write_text(found.to_html(), encoding="utf-8")
    page = DOCS.read_text(encoding="utf-8")
    DOCS.write_text(MARKS.sub(lambda m: m[1] + section(found, about) + m[2], page), "utf-8")
    print(found.to_text())
    print(f"\n{RESULT}\n{IMAGE}\n{options.page}")


def section(found: Audit, about: dict[str, object]) -> str:
    """What docs/audit.md says of it."""
    people = found.number("everyone", "rejected").n
    lines = [
        f"{people:,} test rows, `{about['command']}`:",
        "",
        *(f"- {sentence}" for sentence in found.findings),
        "",
        found.how_called,
        "",
        "![Shares, cost and changes by sex and race](images/audit_adult.png)",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
