"""METHODS: every way to recourse by name. A new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from genrecourse.methods.base import Method
from genrecourse.methods.genre import PAPER_SETTINGS, GenRe
from genrecourse.methods.nearest import NearestNeighbour

METHODS: dict[str, Callable[..., Method]] = {
    "genre": GenRe,
    "genre-paper": partial(GenRe, **PAPER_SETTINGS),
    "nnr": NearestNeighbour,
    "nnr-0.7": partial(NearestNeighbour, gamma=0.7),
    "nnr-dplus": partial(NearestNeighbour, gamma=0.7, labelled=True),
    "nnr-auto": partial(NearestNeighbour, gamma="auto", labelled=True),
}
