"""The pairs that GenRe learns from: D-, D+, and x_plus drawn for x (Algorithm 1, lines 1-3 and 6).

`genre/pairs.py` has the mathematics. Here are the choices around it, what is said where they leave
nothing to learn from, and what `fit_report_` tells of them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from genrecourse.errors import UserError
from genrecourse.genre.any_lam import LAM_RANGE, AnyLamPairs, make_any_lam_pairs
from genrecourse.genre.pairs import Pairs, Targets, lost_by_cap, make_pairs, make_targets
from genrecourse.methods._verified_method import VerifiedMethod
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.methods.request import Lam
from genrecourse.table.encoding import Array

FEWEST_SOURCES = 10  # rejected rows below which there is nothing to learn
FEWEST_HELD = 5  # of them that are held out, at least
MANY = 0.5  # of the rejected rows without a target: then something else is wrong
MEASURED = 256  # sources by which the mass that a cap loses is measured
REFINED = 20_000  # pairs that are refined, each source having its share ...
REFINED_EACH = 10  # ... of at most so many

Split = tuple[np.ndarray, np.ndarray]  # sources: row numbers of those trained on, and of the others


# ---- sources and targets ------------------------------------------------------------------------


def split_sources(
    method: Method,
    rows: TrainingRows,
    rng: np.random.Generator,
    *,
    labelled: bool,
    most: int,
    held_out: float,
) -> Split:
    """Algorithm 1, line 1: D-, and a share of it held out."""
    rejected = rows.confidence <= 0.5
    if labelled:
        rejected &= ~rows.favourable
    found = rng.permutation(np.flatnonzero(rejected))[:most]
    if len(found) < FEWEST_SOURCES:
        raise UserError(
            f"{method._where('fit')}: only {len(found)} of {len(rows.Z)} rows are rejected by the "
            f"classifier and have an unfavourable outcome; GenRe needs {FEWEST_SOURCES} to learn "
            "from. Is the favourable outcome the right one, and the cutoff?"
        )
    n_held = max(FEWEST_HELD, round(held_out * len(found)))
    return found[n_held:], found[:n_held]


def find_targets(
    method: VerifiedMethod,
    rows: TrainingRows,
    accepted: np.ndarray,
    sources: np.ndarray,
    rng: np.random.Generator,
    *,
    lam: Lam,
    most: int,
) -> tuple[Targets, dict[str, Any]]:
    """Algorithm 1, line 1: D+ among the accepted rows, capped; and what the cap loses.

    sources: rows for whom that is measured.
    """
    found = accepted[rows.confidence[accepted] > method.gamma_]
    if len(found) == 0:
        raise UserError(
            f"{method._where('fit')}: no row has a favourable outcome and a score above gamma "
            f"{method.gamma_:g} (0.5 is the cutoff), so there is nobody to learn from. "
            "Lower gamma, or look at the classifier's cutoff"
        )
    whole = make_targets(rows.Z[found], rows.F[found], method.rules_, method.n_bins)
    report = {"found": len(found), "used": len(found), "mass_lost": 0.0}
    if len(found) <= most:
        return whole, report
    kept = np.zeros(len(found), dtype=bool)
    kept[rng.permutation(len(found))[:most]] = True
    some = sources[:MEASURED]
    known = (rows.Z[some], rows.F[some], whole, kept, method.encoder_, method.rules_)
    lams = LAM_RANGE if lam == "any" else (lam,)
    report |= {"used": int(kept.sum()), "mass_lost": max(lost_by_cap(*known, x) for x in lams)}
    return Targets(whole.Z[kept], whole.F[kept], whole.codes[kept], whole.edges), report


# ---- pairs --------------------------------------------------------------------------------------


def pair_up(
    method: VerifiedMethod,
    rows: TrainingRows,
    sources: np.ndarray,
    *,
    lam: Lam,
    top_k: int,
    seen: int,
) -> Drawn:
    """The sources that have a target, with theirs. seen: how many pairs training will look at, all
    of which are drawn ahead for lam="any"."""
    Z, F = rows.Z[sources], rows.F[sources]
    known = (Z, F, method.targets_, method.encoder_, method.rules_)
    pairs: Pairs | AnyLamPairs
    if lam == "any":
        rng = np.random.default_rng([method.random_state, 3, len(sources)])
        pairs = make_any_lam_pairs(*known, n_draws=-(-seen // max(1, len(sources))), rng=rng)
    else:
        pairs = make_pairs(*known, lam=lam, top_k=top_k)
    return Drawn(method, F[pairs.source], pairs)


def report_pairs(method: Method, drawn: Drawn, watched: Drawn, split: Split) -> dict[str, Any]:
    """How many sources have a target; those that have none are counted in one warning.

    `_fit` calls it itself, so that the warning names the line that called `fit`.
    """
    fitted, held = map(len, split)
    unpaired = fitted + held - len(drawn) - len(watched)
    lacks = (
        f"{method._where('fit')}: {unpaired} of {fitted + held} rejected rows have no accepted row "
        f"that the rules let them reach (immutable: {matched_names(method)})"
    )
    if len(drawn) == 0:
        raise UserError(
            f"{lacks}, which leaves nothing to learn from. Make a feature mutable in the schema, "
            "or loosen a direction or step"
        )
    if unpaired:
        then = "they are left out of training"
        if unpaired > MANY * (fitted + held):
            then += (
                "; so few are left to learn from that it is better to lock at each request what is "
                "immutable or bound here (docs/policy.md, 'Immutable or locked?')"
            )
        warnings.warn(f"{lacks}; {then}", stacklevel=4)
    return {  # of the sources trained on
        "sources": len(drawn),
        "unpaired": fitted - len(drawn),
        "mass_lost_by_top_k": drawn.pairs.lost_by_top_k,
    }


def matched_names(method: Method) -> list[str]:
    """What a target must share with x."""
    return [method.schema_.names[j] for j in np.flatnonzero(method.rules_.matched)]


# ---- pairs as tensors ---------------------------------------------------------------------------


class Drawn:
    """Pairs drawn anew each time (Algorithm 1, line 6), as tensors: x's own immutables carried over
    into x_plus and what follows settled, h checked again where that changed the target (an
    immutable number that was matched by bin, and what is not matched at all)."""

    def __init__(self, method: VerifiedMethod, F: Array, pairs: Pairs | AnyLamPairs):
        self.method, self.F, self.pairs = method, F, pairs
        by_bin = any(edge is not None for edge in method.targets_.edges)
        unmatched = method.rules_.immutable & ~method.rules_.matched
        self.is_other = by_bin or bool(method.rules_.derived) or bool(unmatched.any())
        self.n_sources = len(pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __call__(self, which: np.ndarray, rng: np.random.Generator) -> tuple[torch.Tensor, ...]:
        """(x, x_plus), and the lam of each pair where it was drawn with one of its own."""
        drawn = self.pairs.draw(which, rng)
        target, *lam = drawn if isinstance(drawn, tuple) else (drawn,)
        method, immutable = self.method, self.method.rules_.immutable
        source, F_plus = self.F[which], method.targets_.F[target]
        F_plus[:, immutable] = source[:, immutable]
        if self.is_other:
            F_plus = method._settled(source, F_plus)
            ok = method._confidence(method.encoder_.from_features(F_plus)) > method.gamma_
            source, F_plus, *lam = (part[ok] for part in (source, F_plus, *lam))
        return tuple(torch.as_tensor(part) for part in (source, F_plus, *lam))


@dataclass(frozen=True)
class Refined:
    """Pairs that were drawn and refined once, as tensors."""

    parts: tuple[torch.Tensor, ...]  # as `Drawn` gives them
    n_sources: int

    def __len__(self) -> int:
        return len(self.parts[0])

    def __call__(self, which: np.ndarray, rng: np.random.Generator) -> tuple[torch.Tensor, ...]:
        return tuple(part[which] for part in self.parts)


TensorPairs = Drawn | Refined


def refined(method: VerifiedMethod, drawn: TensorPairs) -> Refined:
    """Some draws of every pair's Q, refined once for all epochs."""
    each = min(max(REFINED // len(drawn), 1), REFINED_EACH)
    order = np.repeat(np.arange(len(drawn))[:REFINED], each)
    x, x_plus, *lam = drawn(order, np.random.default_rng([method.random_state, 4]))
    better = method._closer(x.numpy(), x_plus.numpy(), method.safety)
    return Refined((x, torch.as_tensor(better), *lam), drawn.n_sources)
