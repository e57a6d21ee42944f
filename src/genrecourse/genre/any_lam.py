"""Step 1 for one model of every lam: each pair (x, x_plus) is drawn with a lam of its own.

    lam ~ log-uniform on LAM_RANGE,    x+ ~ Q(. | x) at that lam, on all feasible x+ in D+   (Eq. 6)

The top K of one lam do not serve every lam: at lam = 0.5 they miss about a third of Q's mass. A
matrix of all costs (N-, N+) would not fit in memory. Training uses a known, small number of pairs,
so all of them are drawn in advance, exactly, by inversion, while the costs of one block of sources
are in memory. Each draw stores one target and one lam. (docs/decisions/0008)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from genrecourse.genre.pairs import cost_blocks, q_weights

if TYPE_CHECKING:
    from genrecourse.genre.targets import Targets
    from genrecourse.rules.book import RuleBook
    from genrecourse.table.cost import Cost
    from genrecourse.table.encoding import Array

LAM_RANGE = (0.5, 10.0)  # where lam is drawn in training, and may lie at a request
USUAL_LAM = 5.0  # the paper's; used if a request names no other
MOST_PAIRS = 2_000_000  # drawn ahead: 24 MB; a training that needs more meets some of them again


@dataclass(frozen=True)
class AnyLamPairs:
    """For source i, the targets `index[i]`, each drawn from Q at the lam in `lam[i]`.

    >>> pairs = AnyLamPairs(np.array([0]), index=np.array([[4, 7]]), lam=np.array([[0.5, 9.0]]))
    >>> pairs.draw(np.zeros(5, dtype=int), np.random.default_rng(0))  # source 0, five times
    (array([7, 7, 7, 4, 4]), array([9. , 9. , 9. , 0.5, 0.5]))
    """

    source: np.ndarray  # (n,) rows of the source table that have a feasible target
    index: np.ndarray  # (n, R) rows of D+
    lam: np.ndarray  # (n, R)
    lost_by_top_k: ClassVar[float] = 0.0  # there is no such cut

    def __len__(self) -> int:
        return len(self.source)

    def draw(self, rows: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return one target of each of these sources, and the target's lam (Algorithm 1, line 6).

        All stored draws of a source are equally likely.
        """
        which = rng.integers(0, self.index.shape[1], len(rows))  # Alg. 1, line 6
        return self.index[rows, which], self.lam[rows, which]


def make_any_lam_pairs(
    Z: Array,
    F: Array,
    targets: Targets,
    rules: RuleBook,
    cost: Cost,
    *,
    n_draws: int,
    rng: np.random.Generator,
) -> AnyLamPairs:
    """Return `n_draws` pairs for every source that has a feasible target.

    There are at most MOST_PAIRS pairs in total.

    >>> from genrecourse.evaluation.example_tables import four_incomes
    >>> rng = np.random.default_rng(0)
    >>> make_any_lam_pairs(*four_incomes(), n_draws=3, rng=rng).index.shape
    (2, 3)
    """
    shape = (len(Z), max(1, min(n_draws, MOST_PAIRS // max(1, len(Z)))))
    lam, u = draw_lams(shape, rng), 1.0 - rng.random(shape)  # u in (0, 1]: see draw_from_q
    index = np.full(shape, -1, dtype=np.int32)
    for rows, members, costs in cost_blocks(Z, F, targets, rules, cost):
        reached = costs.isfinite().any(1)
        rows, costs = rows[reached.numpy()], costs[reached]
        for r in range(shape[1]):
            place = draw_from_q(costs, torch.as_tensor(lam[rows, r]), torch.as_tensor(u[rows, r]))
            index[rows, r] = members[place.numpy()]
    source = np.flatnonzero(index[:, 0] >= 0)
    return AnyLamPairs(source, index[source], lam[source])


def draw_lams(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return lams, log-uniform on LAM_RANGE: as many between 0.5 and 1 as between 5 and 10.

    >>> lam = draw_lams((1000,), np.random.default_rng(0))
    >>> bool(lam.min() >= 0.5), bool(lam.max() <= 10)
    (True, True)
    """
    low, high = np.log(LAM_RANGE)
    return np.asarray(np.exp(rng.uniform(low, high, shape)))


def draw_from_q(costs: torch.Tensor, lam: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Return the positions of targets x+ ~ Q(. | x), by inversion, in the shape of u.

    costs (n, M); lam (n,); u (n,) or, for k draws each, (n, k), uniform on (0, 1].

    >>> costs = torch.tensor([[0.1, 0.9], [torch.inf, 0.9]])  # the second row cannot reach target 0
    >>> draw_from_q(costs, lam=torch.tensor([5.0, 5.0]), u=torch.tensor([0.5, 0.5]))
    tensor([0, 1])
    """
    cdf = q_weights(costs, lam[:, None]).cumsum(1)
    # the first place whose sum reaches u times the total: with u above 0 never one without mass
    each = u if u.ndim == 2 else u[:, None]  # n may be 0
    return torch.searchsorted(cdf, each * cdf[:, -1:]).reshape(u.shape)
