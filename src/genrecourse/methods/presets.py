"""Settings of methods that differ from their defaults and have a name of their own."""

from __future__ import annotations

from typing import Any

# The settings of the paper; `genre-paper` has all but the size of the net.
PAPER_SETTINGS: dict[str, Any] = {
    "gamma": 0.7,
    "bins": "uniform",
    "keep": False,
    "temperature": 0.1,  # tau = 10
    "margin": 0.5,
    "select": "paper",
    "clean": False,
    "refine": False,
    "retrieve": False,
    "n_draws": 10,
    "distill": False,
}
