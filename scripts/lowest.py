"""The lowest versions that pyproject.toml allows, as constraints for pip.

python scripts/lowest.py > constraints.txt

It needs nothing but Python, so that it runs in an environment that is still empty.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

EXTRAS = ("parquet",)


def lowest(requirements: list[str]) -> list[str]:
    """Return the lowest version that each requirement allows.

    >>> lowest(["numpy>=1.26", "torch>=2.4,<2.14", "pandas"])
    ['numpy==1.26', 'torch==2.4']
    """
    found = (re.match(r"([\w.-]+)(?:\[[\w,]+\])?>=([\d.]+)", each) for each in requirements)
    return [f"{match[1]}=={match[2]}" for match in found if match]


def main() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    wanted = list(project["dependencies"])
    for extra in EXTRAS:
        wanted += project["optional-dependencies"][extra]
    print("\n".join(lowest(wanted)))


if __name__ == "__main__":
    main()
