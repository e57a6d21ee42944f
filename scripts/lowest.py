"""The lowest versions that pyproject.toml allows, as constraints for pip.

python scripts/lowest.py > constraints.txt

It needs nothing but Python, so that it runs in an environment that is still empty.

torch is left out unless LOWEST_TORCH=1 is set: its old builds bring gigabytes for graphics cards.
Otherwise it has the version in constraints.txt.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

EXTRAS = ("parquet",)
TOOLS = ("hypothesis", "lightgbm", "pytest>", "xgboost-cpu")  # the tests need them


def lowest(requirements: list[str]) -> list[str]:
    """Return the lowest version that each requirement allows.

    >>> lowest(["numpy>=1.26", "torch>=2.4,<2.14", "pandas"])
    ['numpy==1.26', 'torch==2.4']
    """
    found = (re.match(r"([\w.-]+)(?:\[[\w,]+\])?>=([\d.]+)", each) for each in requirements)
    return [f"{match[1]}=={match[2]}" for match in found if match]


def main() -> None:
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in EXTRAS:
        wanted += project["optional-dependencies"][extra]
    wanted += [each for each in project["optional-dependencies"]["dev"] if each.startswith(TOOLS)]
    found = lowest(wanted)
    if os.environ.get("LOWEST_TORCH") != "1":
        pinned = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
        found = [each for each in found if not each.startswith("torch==")]
        found += [line for line in pinned if line.startswith("torch==")]
    print("\n".join(found))


if __name__ == "__main__":
    main()
