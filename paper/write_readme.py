"""Writes paper/README.md and paper/pages/ from paper/results/; `--check` only compares them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs from any folder

from paper.readme import main

main()
