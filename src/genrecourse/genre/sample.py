"""Step 5: forward sampling. Algorithm 2, for all draws of all rows at once.

Rows pass through the net in padded chunks of one fixed shape, and the noise depends on the row's
own content. So a row's draws do not depend on other rows, on its place, or on the table's size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from genrecourse.genre.density import RecourseDensity
    from genrecourse.table.encoding import Array
    from genrecourse.table.noise import KeyedNoise

CHUNK_SEQUENCES = 512  # sequences decoded together; bounds memory and fixes the shape
# Many draws are often asked for one person, who should not wait for a large shape.
MANY_DRAWS, PEOPLE_TOGETHER = 9, 8


@dataclass(frozen=True)
class Draws:
    """n draws for each of N rows.

    >>> draws = Draws(F=np.zeros((2, 3, 1)), log_prob=np.zeros((2, 3)), log_weight=np.zeros((2, 3)))
    >>> draws.joined(draws, order=np.array([0, 2, 1, 3])).F.shape
    (4, 3, 1)
    """

    F: Array  # (N, n, d) x_plus in the scaled feature view
    log_prob: Array  # (N, n) log R_theta(x_plus | x) at temperature 1, under the masks
    log_weight: Array  # (N, n) log of the mass that masks beyond the schema's left standing
    ess: Array | None = None  # (N,) the least effective sample size on the way, under a request

    def joined(self, more: Draws, order: np.ndarray) -> Draws:
        """Return these rows and then `more`, drawn under a request, in the given order."""
        n = self.F.shape[1]
        mine = np.full(len(self.F), float(n)) if self.ess is None else self.ess
        theirs = np.full(len(more.F), float(n)) if more.ess is None else more.ess
        return Draws(
            np.concatenate([self.F, more.F])[order],
            np.concatenate([self.log_prob, more.log_prob])[order],
            np.concatenate([self.log_weight, more.log_weight])[order],
            np.concatenate([mine, theirs])[order],
        )


def rows_together(n: int) -> int:
    """Return how many rows are decoded together if each is drawn for n times.

    >>> rows_together(1), rows_together(24), rows_together(64), rows_together(1000)
    (512, 8, 8, 1)
    """
    rows = max(1, CHUNK_SEQUENCES // n)
    return rows if n < MANY_DRAWS else min(rows, PEOPLE_TOGETHER)


@torch.inference_mode()
def sample(
    density: RecourseDensity,
    F: Array,
    n: int,
    *,
    temperature: float,
    noise: KeyedNoise,
    sigma: float = 0.0,
    also_allowed: np.ndarray | None = None,
    cached: bool = True,
    lam: float | None = None,
) -> Draws:
    """Return n draws from R_theta(. | x) at a temperature, for each row of F (N, d).

    also_allowed (N, m, K + 1): masks further choices.
    cached: False decodes every prefix again; the tests compare the cache with this slow reference.
    lam: needed if the density was trained for any lam.

    >>> from genrecourse.evaluation.example_tables import example_density
    >>> from genrecourse.table.noise import KeyedNoise
    >>> density, F = example_density(), np.array([[0.2, 1.0]])
    >>> sample(density, F, 3, temperature=1.0, noise=KeyedNoise(0)).F.shape
    (1, 3, 2)
    """
    if len(F) == 0:
        return Draws(np.zeros((0, n, F.shape[1])), np.zeros((0, n)), np.zeros((0, n)))
    rows = rows_together(n)
    keys = noise.keys(F)
    parts = []
    for i in range(0, len(F), rows):
        pad = np.minimum(np.arange(i, i + rows), len(F) - 1)
        extra = None if also_allowed is None else torch.as_tensor(also_allowed[pad])
        m = len(density.decoded)
        u = noise.uniform(keys[pad], (n, m))
        eps = None
        if sigma > 0:
            eps = sigma * noise.normal(keys[pad], (n, m), offset=2**40)
        decode = _decode if cached else _decode_uncached
        part = decode(density, torch.as_tensor(F[pad]), n, temperature, u, eps, extra, lam)
        parts.append([p[: min(rows, len(F) - i)] for p in part])
    chosen, log_prob, log_weight = (np.concatenate(p) for p in zip(*parts, strict=True))
    F_plus = np.repeat(F[:, None, :], n, axis=1)
    F_plus[:, :, density.decoded.numpy()] = chosen
    return Draws(F_plus, log_prob, log_weight)


def _decode(
    density: RecourseDensity,
    x: Tensor,
    n: int,
    temperature: float,
    u: np.ndarray,
    eps: np.ndarray | None,
    extra: Tensor | None,
    lam: float | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One chunk: x (B, d), u (B, n, m) -> values (B, n, m), log_prob (B, n), log_weight (B, n)."""
    cost, allowed, values = density.choice_cost(x), density.allowed(x), density.choices(x)
    state = density.net.start(x, n, density.lam_of(x, lam))  # Alg. 2, line 1
    chooser = _Chooser(density, x, n, temperature, u, eps, allowed, values, extra)
    before = None
    for t in range(len(density.decoded)):  # Alg. 2, line 3
        before = chooser.choose(t, density.net.step(state, t, before, cost[:, t]))
    return chooser.result()


def _decode_uncached(
    density: RecourseDensity,
    x: Tensor,
    n: int,
    temperature: float,
    u: np.ndarray,
    eps: np.ndarray | None,
    extra: Tensor | None,
    lam: float | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same without memory between positions: the whole prefix through the net every time."""
    cost, allowed, values = density.choice_cost(x), density.allowed(x), density.choices(x)
    chooser = _Chooser(density, x, n, temperature, u, eps, allowed, values, extra)
    m = len(density.decoded)
    repeated, cost = x.repeat_interleave(n, 0), cost.repeat_interleave(n, 0)
    fed, lams = torch.zeros(len(repeated), m, dtype=x.dtype), density.lam_of(repeated, lam)
    for t in range(m):
        fed[:, t] = chooser.choose(t, density.net(repeated, fed, cost, lams)[:, t])
    return chooser.result()


class _Chooser:
    """Algorithm 2, lines 4-6: from logits to values, and the bookkeeping of their probability."""

    def __init__(
        self,
        density: RecourseDensity,
        x: Tensor,
        n: int,
        temperature: float,
        u: np.ndarray,
        eps: np.ndarray | None,
        allowed: Tensor,
        values: Tensor,
        extra: Tensor | None,
    ):
        self.density, self.x, self.n, self.temperature = density, x, n, temperature
        self.u = torch.as_tensor(u).flatten(0, 1)  # (S, m)
        self.eps = None if eps is None else torch.as_tensor(eps).flatten(0, 1)
        self.allowed, self.values, self.extra = allowed, values, extra
        m = len(density.decoded)
        self.chosen = torch.empty(len(self.u), m, dtype=torch.float64)  # Alg. 2, line 2
        self.log_prob = torch.zeros(len(self.u), dtype=torch.float64)
        self.log_weight = torch.zeros(len(self.u), dtype=torch.float64)

    def choose(self, t: int, logits: Tensor) -> Tensor:
        """Values (S,) of position t."""
        open_ = self._spread(self.allowed[:, t])
        logits = logits.double().masked_fill(~open_, -torch.inf)
        log_p = logits.log_softmax(-1)
        if self.extra is not None:
            ok = self._spread(self.extra[:, t])
            log_p = log_p.masked_fill(~ok, -torch.inf)
            left = log_p.logsumexp(-1)
            self.log_weight += left
            logits, log_p = logits.masked_fill(~ok, -torch.inf), log_p - left[:, None]
        p = torch.softmax(logits / self.temperature, dim=-1)  # Alg. 2, line 4
        cdf = p.cumsum(-1)
        # Alg. 2, line 5: k ~ p_j, by inversion; the last choice with any mass ends the line
        place = (cdf < self.u[:, t : t + 1] * cdf[:, -1:]).sum(-1, keepdim=True)
        self.log_prob += log_p.gather(-1, place)[:, 0]
        value = self._spread(self.values[:, t]).gather(-1, place)[:, 0]
        if self.eps is not None:
            value = self._jitter(t, value, place[:, 0])
        self.chosen[:, t] = value
        return value

    def _jitter(self, t: int, value: Tensor, place: Tensor) -> Tensor:
        """Alg. 2, line 6: mu + sigma * eps, for numbers that move, where the rules allow it."""
        assert self.eps is not None
        if not bool(self.density.bins.is_number[t]):
            return value
        j = int(self.density.decoded[t])
        moved = value + self.eps[:, t]
        start = self.x[:, j].repeat_interleave(self.n)
        ok = torch.as_tensor(self.density.rules.allowed(j, start.numpy(), moved.numpy()))
        return torch.where(ok & (place < self.values.shape[-1] - 1), moved, value)

    def _spread(self, per_row: Tensor) -> Tensor:
        """(B, K) -> (S, K)."""
        return per_row.repeat_interleave(self.n, dim=0)

    def result(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shape = (len(self.x), self.n)
        return (
            self.chosen.view(*shape, -1).numpy(),
            self.log_prob.view(shape).numpy(),
            self.log_weight.view(shape).numpy(),
        )
