"""Step 1 of GenRe: from labelled rows to training pairs (x, x_plus). Algorithm 1, lines 1-3.

    Q(x+ | x) = exp(-lam * C(x, x+)) / sum over D+ of the same    on feasible x+ in D+     (Eq. 6)

Q is truncated to its `top_k` largest entries. Costs are computed by blocks of sources, within
groups of equal immutables, so no dense (N-, N+) matrix is ever in memory.

The estimate of R by Q is consistent only as both `top_k` and the number of targets grow:
`Pairs.lost_by_top_k` is the share of Q's mass outside the top K, and `lost_by_cap` the share on
targets that a cap leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from genrecourse.genre.targets import Targets, match_codes

if TYPE_CHECKING:
    from genrecourse.rules.book import RuleBook
    from genrecourse.table.cost import Cost
    from genrecourse.table.encoding import Array

BLOCK_ENTRIES = 1_000_000  # entries of one block of costs: 8 MB, a handful of them at a time


def q_weights(costs: torch.Tensor, lam: float | torch.Tensor) -> torch.Tensor:
    """Q(x+|x) from costs (..., N+), with one lam, or one a row (..., 1). An infeasible target has
    infinite cost and weight 0; a row with no feasible target at all is NaN."""
    # >>> Eq. (6)
    return torch.softmax(torch.where(costs.isinf(), -torch.inf, -lam * costs), dim=-1)
    # <<<


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


def masked_costs(
    Z: Array, F: Array, targets: Targets, members: np.ndarray, rules: RuleBook, cost: Cost
) -> torch.Tensor:
    """Costs (n, members) from sources to some targets of equal codes; infeasible ones infinite."""
    layout = rules.encoder.blocks
    Z, Z_plus = Z.copy(), targets.Z[members].copy()
    for j in map(int, np.flatnonzero(rules.immutable)):
        # x's own immutables are carried over, so they cost nothing
        Z[:, layout[j].columns] = Z_plus[:, layout[j].columns] = 0.0
    costs = cost.pairwise(torch.as_tensor(Z), torch.as_tensor(Z_plus))
    for j in map(int, np.flatnonzero(~rules.immutable)):
        if not rules.is_free(j):
            ok = rules.allowed(j, F[:, j][:, None], targets.F[members, j][None, :])
            costs.masked_fill_(~torch.as_tensor(ok), torch.inf)
    return costs


def cost_blocks(
    Z: Array, F: Array, targets: Targets, rules: RuleBook, cost: Cost
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
            yield rows, members, masked_costs(Z[rows], F[rows], targets, members, rules, cost)


def make_pairs(
    Z: Array,
    F: Array,
    targets: Targets,
    rules: RuleBook,
    cost: Cost,
    *,
    lam: float,
    top_k: int,
) -> Pairs:
    """Algorithm 1, line 3: the top K of Q for every source that has a feasible target."""
    k = min(top_k, len(targets.Z))
    index = np.zeros((len(Z), k), dtype=np.int32)
    cumulative = np.zeros((len(Z), k), dtype=np.float32)
    kept_mass = np.full(len(Z), np.nan)
    for rows, members, costs in cost_blocks(Z, F, targets, rules, cost):
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
    rules: RuleBook,
    cost: Cost,
    lam: float,
) -> float:
    """Mean share of Q's mass on targets that a cap leaves out (`kept`: booleans over targets)."""
    lost = [
        q_weights(costs, lam) @ torch.as_tensor(~kept[members]).double()
        for _, members, costs in cost_blocks(Z, F, targets, rules, cost)
    ]
    return float(torch.cat(lost).nanmean()) if lost else 0.0
