"""METHODS: every recourse method by name. A new one is one file and one line here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from genrecourse.errors import UserError
from genrecourse.methods.registry import Listed, Registry

if TYPE_CHECKING:
    from genrecourse.methods.base import Method
    from genrecourse.rules.policy import Policy

# refining and retrieval look for the cheapest x_plus whatever lam is: without them lam decides
ANY_LAM = {"lam": "any", "select": "likelihood", "refine": False, "retrieve": False}
AUTO = {"gamma": "auto", "labelled": True}

METHODS = Registry(
    {
        "genre": Listed("genre", "GenRe"),
        "genre-q": Listed("genre", "GenRe", {"distill": False}, "No search teaches it."),
        "genre-any": Listed("genre", "GenRe", ANY_LAM, "One model for every weight of the cost."),
        "genre-paper": Listed("genre", "GenRe", "LIKE_PAPER", "With the paper's settings."),
        "nnr": Listed("nearest", "NearestNeighbour"),
        "nnr-0.7": Listed("nearest", "NearestNeighbour", {"gamma": 0.7}, "Its score is above 0.7."),
        "nnr-dplus": Listed(
            "nearest",
            "NearestNeighbour",
            {"gamma": 0.7, "labelled": True},
            "Its score is above 0.7, its outcome favourable.",
        ),
        "nnr-auto": Listed("nearest", "NearestNeighbour", AUTO, "A verifier chooses."),
        "nnr-refined": Listed(
            "nearest",
            "NearestNeighbour",
            {**AUTO, "refine": True},
            "A verifier chooses and undoes needless changes.",
        ),
        "nnr-search": Listed(
            "nearest",
            "NearestNeighbour",
            {**AUTO, "refine": True, "search": True},
            "A verifier chooses among many and undoes needless changes.",
        ),
        "wachter": Listed("wachter", "Wachter"),
        "growing_spheres": Listed("growing_spheres", "GrowingSpheres"),
        "dice": Listed("dice", "DiCE"),
        "roar": Listed("roar", "ROAR"),
        "probe": Listed("probe", "Probe"),
        "tap": Listed("tap", "TAP"),
        "cchvae": Listed("cchvae", "CCHVAE"),
        "revise": Listed("revise", "Revise"),
        "cruds": Listed("cruds", "CRUDS"),
        "tabsyn_q": Listed("tabsyn_q", "TabSynQ"),
        "tabsyn_svdd": Listed("tabsyn_svdd", "TabSynSVDD"),
        "revise-search": Listed(
            "searched", "Searched", {"base": "revise"}, "The other method: revise."
        ),
        "cchvae-search": Listed(
            "searched", "Searched", {"base": "cchvae"}, "The other method: cchvae."
        ),
        "tabsyn_q-search": Listed(
            "searched", "Searched", {"base": "tabsyn_q"}, "The other method: tabsyn_q."
        ),
    }
)


def load(
    folder: str | os.PathLike[str],
    classifier: Any = None,
    policy: Policy | str | os.PathLike[str] | None = None,
) -> Method:
    """Return the method that was saved to a folder. Nothing in the folder is run.

    The policy that it was saved with is in force: its rules and its promise hold in every verb.

    classifier: the model that the method was fitted around; needed unless it is the library's own.
    policy: another policy, or its file, to be in force instead; it must state the same features.

    >>> import tempfile
    >>> from genrecourse.evaluation.checks import example_score, make_example
    >>> example = make_example(rows=80, people=10)
    >>> method = METHODS["nnr"](example_score, example.schema).fit(example.X, example.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     method.save(f"{folder}/model")
    ...     type(load(f"{folder}/model", example_score)).__name__
    'NearestNeighbour'
    """
    from genrecourse.model import artifact  # brings torch, which the names of methods do not need

    meta, arrays = artifact.read(folder)
    known = METHODS.class_names()
    name = str(meta.get("method")) if isinstance(meta, dict) else "?"
    if name not in known:
        raise UserError(
            f"{folder} holds the method '{artifact.short(name)}', which is none of "
            f"{sorted(known)}; a method of your own must be in METHODS before it is loaded"
        )
    try:
        maker = METHODS[known[name]]
        return getattr(maker, "func", maker).restored(meta, arrays, classifier, policy)
    except UserError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as e:
        # the checksums are right, so another version, or a person, wrote something else
        raise UserError(
            f"{folder} does not hold what a {name} of this version needs "
            f"({type(e).__name__}: {artifact.short(e)}); load it with the genrecourse that saved "
            "it, or fit and save again"
        ) from e
