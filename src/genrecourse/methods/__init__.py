"""METHODS: every way to recourse by name. A new one is one file and one line here."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from genrecourse.errors import UserError
from genrecourse.methods.base import Method
from genrecourse.methods.cchvae import CCHVAE
from genrecourse.methods.cruds import CRUDS
from genrecourse.methods.dice import DiCE
from genrecourse.methods.genre import PAPER_SETTINGS, GenRe
from genrecourse.methods.growing_spheres import GrowingSpheres
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.methods.probe import Probe
from genrecourse.methods.revise import Revise
from genrecourse.methods.roar import ROAR
from genrecourse.methods.tabsyn_q import TabSynQ
from genrecourse.methods.tabsyn_svdd import TabSynSVDD
from genrecourse.methods.tap import TAP
from genrecourse.methods.wachter import Wachter
from genrecourse.model import artifact

METHODS: dict[str, Callable[..., Method]] = {
    "genre": GenRe,
    # refining and retrieval look for the cheapest whatever lam is asked: here lam is to be heard
    "genre-any": partial(GenRe, lam="any", select="likelihood", refine=False, retrieve=False),
    "genre-paper": partial(GenRe, **PAPER_SETTINGS),
    "nnr": NearestNeighbour,
    "nnr-0.7": partial(NearestNeighbour, gamma=0.7),
    "nnr-dplus": partial(NearestNeighbour, gamma=0.7, labelled=True),
    "nnr-auto": partial(NearestNeighbour, gamma="auto", labelled=True),
    "nnr-refined": partial(NearestNeighbour, gamma="auto", labelled=True, refine=True),
    "wachter": Wachter,
    "growing_spheres": GrowingSpheres,
    "dice": DiCE,
    "roar": ROAR,
    "probe": Probe,
    "tap": TAP,
    "cchvae": CCHVAE,
    "revise": Revise,
    "cruds": CRUDS,
    "tabsyn_q": TabSynQ,
    "tabsyn_svdd": TabSynSVDD,
}


def load(folder: str | os.PathLike[str], classifier: Any = None) -> Method:
    """The method that was saved to a folder, ready for use. Nothing in the folder is run.

    classifier: the model that the method was fitted around, needed unless it was the library's own.
    """
    meta, arrays = artifact.read(folder)
    known = {kind.__name__: kind for kind in map(_class_of, METHODS.values())}
    name = str(meta.get("method")) if isinstance(meta, dict) else "?"
    if name not in known:
        raise UserError(
            f"{folder} holds the method '{artifact.short(name)}', which is none of "
            f"{sorted(known)}; a method of your own must be in METHODS before it is loaded"
        )
    try:
        return known[name].restored(meta, arrays, classifier)
    except UserError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as e:
        # the checksums are right, so another version, or a person, wrote something else
        raise UserError(
            f"{folder} does not hold what a {name} of this version needs "
            f"({type(e).__name__}: {artifact.short(e)}); load it with the genrecourse that saved "
            "it, or fit and save again"
        ) from e


def _class_of(maker: Any) -> type[Method]:
    return _class_of(maker.func) if isinstance(maker, partial) else maker
