"""Step 1 of GenRe: from labelled rows to training pairs (x, x_plus). Algorithm 1, lines 1-3.

    Q(x+ | x) = exp(-lam * C(x, x+)) / sum over D+ of the same    on feasible x+ in D+     (Eq. 6)

Q is truncated to its `top_k` largest entries. Costs are computed by blocks of sources, within
groups of equal immutables, so no dense (N-, N+) matrix ever stands in memory.

The estimate of R by Q is consistent only as both `top_k` and the number of targets grow: the share
of Q's mass that each cut loses is measured and kept in `Pairs.lost_by_top_k` and, for a cap on
the targets, given by `lost_by_cap`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from genrecourse.rules.book import RuleBook
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import Array, TableEncoder

CHECKED = 4  # times as many rows as are wanted are shown to h, cheapest first, under a request ...
MOST_CHECKED = 4096  # ... and then more, up to so many ...
ASKED_AT_ONCE = 64  # ... and of so many people together: asking h has a price of its own
BLOCK_ENTRIES = 1_000_000  # entries of one block of costs: 8 MB, a handful of them at a time


def q_weights(costs: torch.Tensor, lam: float | torch.Tensor) -> torch.Tensor:
    """Q(x+|x) from costs (..., N+), with one lam, or one a row (..., 1). An infeasible target has
    infinite cost and weight 0; a row with no feasible target at all is NaN."""
    # >>> Eq. (6)
    return torch.softmax(torch.where(costs.isinf(), -torch.inf, -lam * costs), dim=-1)
    # <<<


@dataclass(frozen=True)
class Targets:
    """D+, ready to be compared with sources."""

    Z: Array  # (N+, D)
    F: Array  # (N+, d)
    codes: np.ndarray  # (N+, immutables): what must be equal
    edges: tuple[np.ndarray | None, ...]  # an immutable number with many values: its bin edges


@dataclass(frozen=True)
class Pairs:
    """Q truncated: for source i the targets `index[i]` and their cumulative weight."""

    source: np.ndarray  # (n,) rows of the source table that have a feasible target
    index: np.ndarray  # (n, K) rows of D+, most likely first
    cumulative: np.ndarray  # (n, K) float32, ends at 1
    lost_by_top_k: float  # mean share of Q's mass outside the top K

    def __len__(self) -> int:
        return len(self.source)

    def draw(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Algorithm 1, line 6: one target x' ~ Q_trunc(. | x) for each of these sources."""
        u = rng.random((len(rows), 1), dtype=np.float32)
        place = (self.cumulative[rows] < u).sum(axis=1)
        return np.asarray(self.index[rows, np.minimum(place, self.index.shape[1] - 1)])


def make_targets(Z: Array, F: Array, rules: RuleBook, n_bins: int) -> Targets:
    """Prepare D+: immutables become codes; a number with over `n_bins` values is coded by bin."""
    edges: list[np.ndarray | None] = []
    for j in np.flatnonzero(rules.matched):
        values = np.unique(F[~np.isnan(F[:, j]), j])
        if rules.features[j].is_category or len(values) <= n_bins:
            edges.append(None)
        else:
            inner = np.linspace(0, 1, n_bins + 1)[1:-1]
            edges.append(np.unique(np.nanquantile(F[:, j], inner)))
    return Targets(Z, F, match_codes(F, rules, tuple(edges)), tuple(edges))


def match_codes(F: Array, rules: RuleBook, edges: tuple[np.ndarray | None, ...]) -> np.ndarray:
    """(n, immutables) numbers that are equal where two rows agree on every immutable."""
    columns = []
    for j, edge in zip(np.flatnonzero(rules.matched), edges, strict=True):
        code = np.round(F[:, j], 9) if edge is None else np.searchsorted(edge, F[:, j])
        columns.append(np.where(np.isnan(F[:, j]), -1e9, code))  # missing matches missing only
    return np.stack(columns, axis=1) if columns else np.zeros((len(F), 0))


def is_matched(
    F: Array, codes: np.ndarray, edges: tuple[np.ndarray | None, ...], rules: RuleBook
) -> np.ndarray:
    """(n,) booleans: does a target, by its codes and edges, agree with row i on every immutable?"""
    known = {tuple(row) for row in codes}
    return np.array([tuple(row) in known for row in match_codes(F, rules, edges)], dtype=bool)


def masked_costs(
    Z: Array,
    F: Array,
    targets: Targets,
    members: np.ndarray,
    encoder: TableEncoder,
    rules: RuleBook,
) -> torch.Tensor:
    """Costs (n, members) from sources to some targets of equal codes; infeasible ones infinite."""
    cost = Cost(encoder)
    Z, Z_plus = Z.copy(), targets.Z[members].copy()
    for j in map(int, np.flatnonzero(rules.immutable)):
        # x's own immutables are carried over, so they cost nothing
        Z[:, encoder.blocks[j].columns] = Z_plus[:, encoder.blocks[j].columns] = 0.0
    costs = cost.pairwise(torch.as_tensor(Z), torch.as_tensor(Z_plus))
    for j in map(int, np.flatnonzero(~rules.immutable)):
        if not rules.is_free(j):
            ok = rules.allowed(j, F[:, j][:, None], targets.F[members, j][None, :])
            costs.masked_fill_(~torch.as_tensor(ok), torch.inf)
    return costs


def blocks(
    Z: Array, F: Array, targets: Targets, encoder: TableEncoder, rules: RuleBook
) -> Iterator[tuple[np.ndarray, np.ndarray, torch.Tensor]]:
    """(sources, targets, costs) block by block: all pairs that agree on the immutables."""
    codes = match_codes(F, rules, targets.edges)
    keys, group = np.unique(np.concatenate([targets.codes, codes]), axis=0, return_inverse=True)
    group = group.reshape(-1)
    target_group, source_group = group[: len(targets.Z)], group[len(targets.Z) :]
    for g in range(len(keys)):
        members = np.flatnonzero(target_group == g)
        sources = np.flatnonzero(source_group == g)
        if len(members) == 0 or len(sources) == 0:
            continue
        size = max(1, BLOCK_ENTRIES // len(members))
        for i in range(0, len(sources), size):
            rows = sources[i : i + size]
            yield rows, members, masked_costs(Z[rows], F[rows], targets, members, encoder, rules)


def nearest(
    Z: Array, F: Array, targets: Targets, encoder: TableEncoder, rules: RuleBook, k: int
) -> tuple[Array, Array]:
    """The k cheapest targets (N, k, d), cheapest first, x's immutables carried over, and their
    costs (N, k): x itself at an infinite cost where there are fewer. What follows is settled."""
    F_plus, cost = np.repeat(F[:, None], k, axis=1), np.full((len(F), k), np.inf)
    for rows, members, costs in blocks(Z, F, targets, encoder, rules):
        found, place = costs.topk(min(k, len(members)), dim=1, largest=False)
        i, j = np.nonzero(np.isfinite(found.numpy()))
        F_plus[rows[i], j] = targets.F[members[place.numpy()[i, j]]]
        cost[rows[i], j] = found.numpy()[i, j]
    F_plus[:, :, rules.immutable] = F[:, None, rules.immutable]
    return rules.with_derived(F[:, None], F_plus), cost


def nearest_within(
    F: Array,
    targets: Targets,
    request: RuleBook,
    k: int,
    confidence: Callable[[Array], Array],
) -> tuple[Array, Array]:
    """`nearest` under a request: what a rule on one feature forbids is carried over from x, as
    immutables are, rows that break another rule are left out, and h is asked again (confidence:
    of rows of Z, 0.5 at the cutoff)."""
    F_plus, cost = np.repeat(F[:, None], k, axis=1), np.full((len(F), k), np.inf)
    codes = match_codes(F, request, targets.edges)
    for start in range(0, len(F), ASKED_AT_ONCE):
        people = range(start, min(start + ASKED_AT_ONCE, len(F)))
        known = [_cheapest_within(F[i], codes[i], targets, request.take([i])) for i in people]
        accepted = _first_accepted([rows for rows, _ in known], request, k, confidence)
        for i, (rows, price), found in zip(people, known, accepted, strict=True):
            F_plus[i, : len(found)] = rows[found]
            cost[i, : len(found)] = price[found]
    return F_plus, cost


def _cheapest_within(
    x: Array, codes: np.ndarray, targets: Targets, mine: RuleBook
) -> tuple[Array, Array]:
    """One person's targets as their rules leave them, cheapest first, and their costs."""
    offers = targets.F[(targets.codes == codes).all(axis=1)][None]
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


def make_pairs(
    Z: Array,
    F: Array,
    targets: Targets,
    encoder: TableEncoder,
    rules: RuleBook,
    *,
    lam: float,
    top_k: int,
) -> Pairs:
    """Algorithm 1, line 3: the top K of Q for every source that has a feasible target."""
    k = min(top_k, len(targets.Z))
    index = np.zeros((len(Z), k), dtype=np.int32)
    cumulative = np.zeros((len(Z), k), dtype=np.float32)
    kept_mass = np.full(len(Z), np.nan)
    for rows, members, costs in blocks(Z, F, targets, encoder, rules):
        q, place = q_weights(costs, lam).topk(min(k, len(members)), dim=1)
        mass = q.sum(1)
        width = q.shape[1]
        index[rows, :width] = members[place.numpy()]
        cumulative[rows, :width] = (q.cumsum(1) / mass[:, None]).numpy()
        cumulative[rows, width:] = 1.0
        kept_mass[rows] = mass.numpy()  # NaN: no feasible target
    source = np.flatnonzero(~np.isnan(kept_mass))
    lost = float(1 - kept_mass[source].mean()) if len(source) else 0.0
    if len(source) < len(Z):
        index, cumulative = index[source], cumulative[source]
    return Pairs(source, index, cumulative, max(0.0, lost))


def lost_by_cap(
    Z: Array,
    F: Array,
    targets: Targets,
    kept: np.ndarray,
    encoder: TableEncoder,
    rules: RuleBook,
    lam: float,
) -> float:
    """Mean share of Q's mass on targets that a cap leaves out (`kept`: booleans over targets)."""
    lost = [
        q_weights(costs, lam) @ torch.as_tensor(~kept[members]).double()
        for _, members, costs in blocks(Z, F, targets, encoder, rules)
    ]
    return float(torch.cat(lost).nanmean()) if lost else 0.0
