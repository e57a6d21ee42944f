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
    """Return Q(x+ | x) from costs (..., N+); lam is one number or one for each row (..., 1).

    An infeasible target has infinite cost and weight 0. A row without a feasible target is NaN.

    >>> q_weights(torch.tensor([0.0, 0.2, torch.inf]), lam=5.0)
    tensor([0.7311, 0.2689, 0.0000])
    """
    # >>> Eq. (6)
    return torch.softmax(torch.where(costs.isinf(), -torch.inf, -lam * costs), dim=-1)
    # <<<


@dataclass(frozen=True)
class Pairs:
    """The truncated Q: for source i, the targets `index[i]` and their cumulative weights.

    >>> pairs = Pairs(np.array([0]), np.array([[4, 7]]), np.array([[0.5, 1.0]]), lost_by_top_k=0.0)
    >>> pairs.draw(np.zeros(5, dtype=int), np.random.default_rng(0))  # five targets of source 0
    array([7, 7, 7, 4, 4])
    """

    source: np.ndarray  # (n,) rows of the source table that have a feasible target
    index: np.ndarray  # (n, K) rows of D+, most likely first
    cumulative: np.ndarray  # (n, K) float32, ends at 1
    lost_by_top_k: float  # mean share of Q's mass outside the top K

    def __len__(self) -> int:
        return len(self.source)

    def draw(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return one target x' ~ Q_trunc(. | x) of each of these sources (Algorithm 1, line 6)."""
        # Alg. 1, line 6
        u = rng.random((len(rows), 1), dtype=np.float32)
        place = (self.cumulative[rows] < u).sum(axis=1)
        return np.asarray(self.index[rows, np.minimum(place, self.index.shape[1] - 1)])


def masked_costs(
    Z: Array, F: Array, targets: Targets, members: np.ndarray, rules: RuleBook, cost: Cost
) -> torch.Tensor:
    """Return costs (n, members) from sources to some targets of equal codes; infeasible: infinite.

    >>> from genrecourse.evaluation.example_tables import four_incomes
    >>> Z, F, targets, rules, cost = four_incomes()  # incomes of 0 and 5, targets 8 and 10
    >>> masked_costs(Z, F, targets, np.array([0, 1]), rules, cost)
    tensor([[0.8000, 1.0000],
            [0.3000, 0.5000]], dtype=torch.float64)
    """
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
    """Yield (sources, targets, costs), block by block, of all pairs that agree on the immutables.

    >>> from genrecourse.evaluation.example_tables import four_incomes
    >>> Z, F, targets, rules, cost = four_incomes()  # incomes of 0 and 5, targets 8 and 10
    >>> for sources, members, costs in cost_blocks(Z, F, targets, rules, cost):
    ...     sources, members, costs.shape
    (array([0, 1]), array([0, 1]), torch.Size([2, 2]))
    """
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
    """Return the top K of Q for every source that has a feasible target (Algorithm 1, line 3).

    >>> from genrecourse.evaluation.example_tables import four_incomes
    >>> Z, F, targets, rules, cost = four_incomes()  # incomes of 0 and 5, targets 8 and 10
    >>> pairs = make_pairs(Z, F, targets, rules, cost, lam=5.0, top_k=2)
    >>> pairs.index, pairs.cumulative.round(2)
    (array([[0, 1],
           [0, 1]], dtype=int32), array([[0.73, 1.  ],
           [0.73, 1.  ]], dtype=float32))
    """
    # Alg. 1, line 3
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
    """Return the mean share of Q's mass on targets that a cap drops. kept: booleans over targets.

    >>> from genrecourse.evaluation.example_tables import four_incomes
    >>> Z, F, targets, rules, cost = four_incomes()  # incomes of 0 and 5, targets 8 and 10
    >>> kept = np.array([True, False])
    >>> round(lost_by_cap(Z, F, targets, kept, rules, cost, lam=5.0), 2)
    0.27
    """
    lost = [
        q_weights(costs, lam) @ torch.as_tensor(~kept[members]).double()
        for _, members, costs in cost_blocks(Z, F, targets, rules, cost)
    ]
    return float(torch.cat(lost).nanmean()) if lost else 0.0
