"""The nearest targets of each person, plainly or under the rules of a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from genrecourse.genre.pairs import cost_blocks, masked_costs
from genrecourse.genre.targets import Targets, match_codes

if TYPE_CHECKING:
    from genrecourse.rules.book import RuleBook
    from genrecourse.table.cost import Cost
    from genrecourse.table.encoding import Array

CHECKED = 4  # times as many rows as are wanted are shown to h, cheapest first, under a request ...
MOST_CHECKED = 4096  # ... and then more, up to so many ...
ASKED_AT_ONCE = 64  # ... of so many people together: each call of h has a fixed cost


def nearest(
    Z: Array,
    F: Array,
    targets: Targets,
    rules: RuleBook,
    cost: Cost,
    k: int,
    *,
    unmatched: bool = False,
) -> tuple[Array, Array]:
    """Return the k cheapest targets (N, k, d), cheapest first, and their costs (N, k).

    The targets take over x's immutables, and derived features are recomputed. If a person has fewer
    than k targets, the remaining places hold x at an infinite cost.

    unmatched: if no target shares a person's immutables, use all targets; h may then reject what it
    accepted with other immutables, so the caller asks h again.

    >>> from genrecourse.evaluation.example_tables import four_incomes
    >>> Z, F, targets, rules, cost = four_incomes()  # incomes of 0 and 5, targets 8 and 10
    >>> F_plus, price = nearest(Z, F, targets, rules, cost, k=1)
    >>> F_plus[:, 0, 0], price[:, 0]
    (array([0.8, 0.8]), array([0.8, 0.3]))
    """
    F_plus, price = np.repeat(F[:, None], k, axis=1), np.full((len(F), k), np.inf)

    def keep_cheapest(rows: np.ndarray, members: np.ndarray, costs: torch.Tensor) -> None:
        found, place = costs.topk(min(k, len(members)), dim=1, largest=False)
        i, j = np.nonzero(np.isfinite(found.numpy()))
        F_plus[rows[i], j] = targets.F[members[place.numpy()[i, j]]]
        price[rows[i], j] = found.numpy()[i, j]

    for block in cost_blocks(Z, F, targets, rules, cost):
        keep_cheapest(*block)
    if unmatched:
        lost, every = np.flatnonzero(np.isinf(price[:, 0])), np.arange(len(targets.Z))
        for i in range(0, len(lost), ASKED_AT_ONCE):
            rows = lost[i : i + ASKED_AT_ONCE]
            costs = masked_costs(Z[rows], F[rows], targets, every, rules, cost)
            keep_cheapest(rows, every, costs)
    F_plus[:, :, rules.immutable] = F[:, None, rules.immutable]
    return rules.with_derived(F[:, None], F_plus), price


def nearest_constrained(
    F: Array,
    targets: Targets,
    request: RuleBook,
    k: int,
    confidence: Callable[[Array], Array],
    *,
    unmatched: bool = False,
) -> tuple[Array, Array]:
    """Return the k cheapest targets under a request, as `nearest` does, (N, k, d) and (N, k).

    A value that a rule on one feature forbids is replaced by x's. Rows that break another rule are
    left out, and so are rows that h no longer accepts.

    confidence: h on rows of Z, on the scale where 0.5 is the cutoff.

    >>> from genrecourse.evaluation.example_tables import four_incomes
    >>> Z, F, targets, rules, cost = four_incomes()  # incomes of 0 and 5, targets 8 and 10
    >>> h = lambda Z: Z[:, 0] - 0.35  # accepts an income of 9 and more
    >>> nearest_constrained(F[:1], targets, rules, 1, h)
    (array([[[1.]]]), array([[1.]]))
    """
    F_plus, cost = np.repeat(F[:, None], k, axis=1), np.full((len(F), k), np.inf)
    codes = match_codes(F, request, targets.edges)
    for start in range(0, len(F), ASKED_AT_ONCE):
        people = range(start, min(start + ASKED_AT_ONCE, len(F)))
        known = [
            _cheapest_constrained(F[i], codes[i], targets, request.take([i]), unmatched)
            for i in people
        ]
        accepted = _first_accepted([rows for rows, _ in known], request, k, confidence)
        for i, (rows, price), found in zip(people, known, accepted, strict=True):
            F_plus[i, : len(found)] = rows[found]
            cost[i, : len(found)] = price[found]
    return F_plus, cost


def _cheapest_constrained(
    x: Array, codes: np.ndarray, targets: Targets, mine: RuleBook, unmatched: bool
) -> tuple[Array, Array]:
    """One person's targets as their rules leave them, cheapest first, and their costs."""
    matching = (targets.codes == codes).all(axis=1)
    if unmatched and not matching.any():
        matching[:] = True  # x's immutables are carried over below; the caller asks h again
    offers = targets.F[matching][None]
    x = x[None, None]
    for j in range(x.shape[-1]):
        ok = mine.allowed(j, x[..., j], offers[..., j])
        offers[..., j] = np.where(ok, offers[..., j], x[..., j])
    offers = _distinct(mine.with_derived(x, offers)[0])[None]
    price = np.where(mine.feasible(x, offers), mine.cost(x, offers), np.inf)[0]
    order = np.argsort(price, kind="stable")[: int(np.isfinite(price).sum())][:MOST_CHECKED]
    return offers[0, order], price[order]


def _first_accepted(
    offers: list[Array], request: RuleBook, k: int, confidence: Callable[[Array], Array]
) -> list[np.ndarray]:
    """Each person's first k rows that h accepts; it is shown more and more of them, but not all,
    and those of all people at once."""
    good: list[list[int]] = [[] for _ in offers]
    start, size = 0, CHECKED * k
    while True:
        asked = [i for i, rows in enumerate(offers) if len(rows) > start and len(good[i]) < k]
        if not asked:
            return [np.array(each[:k], dtype=int) for each in good]
        parts = [offers[i][start : start + size] for i in asked]
        accepted = confidence(request.encoder.from_features(np.concatenate(parts))) > 0.5
        ends = np.cumsum([len(part) for part in parts])[:-1]
        for i, fine in zip(asked, np.split(accepted, ends), strict=True):
            good[i] += (start + np.flatnonzero(fine)).tolist()
        start, size = start + size, CHECKED * size


def _distinct(rows: Array) -> Array:
    """Rows without their copies: what is carried over makes many targets the same."""
    mixed = np.random.default_rng(0).random(rows.shape[1])
    _, first = np.unique(np.nan_to_num(rows, nan=-7.0) @ mixed, return_index=True)
    return rows[first]
