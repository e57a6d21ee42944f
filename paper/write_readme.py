"""Write paper/README.md from paper/results/; `--check` only sees whether it agrees."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs from anywhere

from paper.readme import main

main()
