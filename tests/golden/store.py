"""Store the golden results of a case: `python -m tests.golden.store [NAME ...]`."""

from __future__ import annotations

import json
import sys
import time

from tests.golden.cases import CASES, FOLDER, run


def main() -> None:
    for name in sys.argv[1:] or CASES:
        start = time.perf_counter()
        found = run(name)
        text = json.dumps(found, indent=1, allow_nan=False)
        (FOLDER / f"{name}.json").write_text(text + "\n")
        print(f"{name}: {time.perf_counter() - start:.0f} s, {len(text):,} characters")


if __name__ == "__main__":
    main()
