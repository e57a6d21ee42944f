"""What the first example of the README costs, with GenRe and with nearest neighbours.

python -m benchmarks.first_plan   # prints, and writes benchmarks/results/first_plan.json

Processor seconds of one process for each method: they depend little on what else the machine does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "first_plan.json"
LABELS = ("genre", "nnr-search")
EXAMPLE = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from genrecourse import METHODS, Classifier, load_dataset
data = load_dataset("german")
make = METHODS[sys.argv[1]]
loaded = time.process_time()
method = make(Classifier(), data.schema).fit(data.X_train, data.y_train)
fitted = time.process_time()
rejected = data.X_test[~method.classifier_.accepts(data.X_test)]
method.plans(rejected.head(3)).to_text()
first = time.process_time()
plans = method.plans(rejected)
found = {
    "load": loaded, "fit": fitted - loaded, "plans": first - fitted, "people": len(rejected),
    "with_a_plan": sum(plan.status == "ok" for plan in plans),
}
print(json.dumps({name: round(value, 1) for name, value in found.items()}))
"""


def main() -> None:
    found = {}
    for label in LABELS:
        command = [sys.executable, "-c", EXAMPLE, label]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[label] = json.loads(done.stdout)
    print(json.dumps(found, indent=2))
    RESULTS.write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
