"""Step 5: forward sampling. Algorithm 2, for all draws of all rows at once.

The noise depends on the row's own content, and the decoder's logits, rounded to single precision,
do not depend on how many rows are decoded together. So a row's draws do not depend on other rows,
on its place, or on the table's size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from genrecourse.genre.decoder import each_draw
from genrecourse.model.threads import one_blas_thread

if TYPE_CHECKING:
    from genrecourse.genre.density import Options, RecourseDensity
    from genrecourse.table.encoding import Array
    from genrecourse.table.noise import KeyedNoise

CHUNK_SEQUENCES = 256  # sequences decoded together: few enough to stay in the processor's cache


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


def sample(
    density: RecourseDensity,
    F: Array,
    n: int,
    *,
    temperature: float | Array,
    noise: KeyedNoise,
    sigma: float = 0.0,
    also_allowed: np.ndarray | None = None,
    cached: bool = True,
    lam: float | None = None,
    first: int = 0,
) -> Draws:
    """Return n draws from R_theta(. | x) at a temperature, for each row of F (N, d).

    temperature: of all draws, or one of each (n,).
    first: the number of the first draw; draw i of a row is the same in every call.
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
    rows = max(1, CHUNK_SEQUENCES // n)
    keys, m = noise.keys(F), len(density.decoded)
    decode = _decode if cached else _decode_by_net

    def draw(i: int) -> tuple[Array, Array, Array]:
        some = slice(i, i + rows)
        extra = None if also_allowed is None else also_allowed[some]
        u, eps = noise.uniform(keys[some], (n, m), offset=first * m), None
        if sigma > 0:
            eps = sigma * noise.normal(keys[some], (n, m), offset=2**40 + first * m)
        return decode(density, F[some], n, temperature, u, eps, extra, lam)

    with one_blas_thread():
        parts = [draw(i) for i in range(0, len(F), rows)]
    chosen, log_prob, log_weight = (np.concatenate(p) for p in zip(*parts, strict=True))
    F_plus = np.repeat(F[:, None, :], n, axis=1)
    F_plus[:, :, density.decoded.numpy()] = chosen
    return Draws(F_plus, log_prob, log_weight)


def _decode(
    density: RecourseDensity,
    x: Array,
    n: int,
    temperature: float | Array,
    u: Array,
    eps: Array | None,
    extra: np.ndarray | None,
    lam: float | None,
) -> tuple[Array, Array, Array]:
    """One chunk: x (B, d), u (B, n, m) -> values (B, n, m), log_prob (B, n), log_weight (B, n)."""
    decoder = density.decoder
    state = decoder.start(x, n, lam)  # Alg. 2, line 1
    chooser = _Chooser(density, x, n, temperature, u, eps, extra)
    before = None
    for t in range(len(density.decoded)):  # Alg. 2, line 3
        here = density.options(x, t)
        before = chooser.choose(t, decoder.step(state, t, before, here.cost, here.number), here)
    return chooser.result()


def _decode_by_net(
    density: RecourseDensity,
    x: Array,
    n: int,
    temperature: float | Array,
    u: Array,
    eps: Array | None,
    extra: np.ndarray | None,
    lam: float | None,
) -> tuple[Array, Array, Array]:
    """The same by the net itself: the whole prefix every time, which is slow. For tests."""
    chooser = _Chooser(density, x, n, temperature, u, eps, extra)
    m, net = len(density.decoded), density.decoder.net
    repeated = torch.as_tensor(each_draw(x, n))
    cost, fed = density.choice_cost(repeated), torch.zeros(len(repeated), m, dtype=torch.float64)
    lams = None if lam is None else torch.full((len(repeated),), lam, dtype=torch.float64)
    for t in range(m):
        with torch.inference_mode():
            logits = net(repeated, fed, cost, lams)[:, t].numpy()
        here = density.options(x, t)
        fed[:, t] = torch.as_tensor(chooser.choose(t, logits[:, here.number], here))
    return chooser.result()


class _Chooser:
    """Algorithm 2, lines 4-6: from logits to values, and the bookkeeping of their probability."""

    def __init__(
        self,
        density: RecourseDensity,
        x: Array,
        n: int,
        temperature: float | Array,
        u: Array,
        eps: Array | None,
        extra: np.ndarray | None,
    ):
        self.density, self.x, self.n = density, x, n
        self.temperature = np.tile(np.broadcast_to(temperature, n), len(x))[:, None]  # (S, 1)
        self.u = u.reshape(len(x) * n, -1)  # (S, m)
        self.eps = None if eps is None else eps.reshape(self.u.shape)
        self.extra = extra
        self.chosen = np.empty(self.u.shape)  # Alg. 2, line 2
        self.log_prob, self.log_weight = np.zeros(len(self.u)), np.zeros(len(self.u))

    def choose(self, t: int, logits: Array, here: Options) -> Array:
        """Values (S,) of position t, for logits (S, k) of its options."""
        # in single precision the logits of a row do not depend on the other rows
        logits = logits.astype(np.float32).astype(np.float64)
        logits[~each_draw(here.allowed, self.n)] = -np.inf
        whole = _log_sum_exp(logits)
        if self.extra is not None:
            logits[~each_draw(self.extra[:, t, here.number], self.n)] = -np.inf
            left = _log_sum_exp(logits)
            self.log_weight += left - whole
            whole = left
        # Alg. 2, line 4
        cdf = np.exp((logits - logits.max(axis=1, keepdims=True)) / self.temperature)
        cdf = cdf.cumsum(axis=1)
        # Alg. 2, line 5: k ~ p_j, by inversion; the last choice with any mass ends the line
        place = (cdf < self.u[:, t, None] * cdf[:, -1:]).sum(axis=1)
        every = np.arange(len(place))
        self.log_prob += logits[every, place] - whole
        value = np.asarray(here.values[every // self.n, place])
        if self.eps is not None:
            value = self._jitter(t, value, place < len(here.number) - 1)
        self.chosen[:, t] = value
        return value

    def _jitter(self, t: int, value: Array, moves: np.ndarray) -> Array:
        """Alg. 2, line 6: mu + sigma * eps, for numbers that move, where the rules allow it."""
        assert self.eps is not None
        if not bool(self.density.bins.is_number[t]):
            return value
        j = int(self.density.decoded[t])
        moved = value + self.eps[:, t]
        ok = self.density.rules.allowed(j, each_draw(self.x[:, j], self.n), moved)
        return np.where(ok & moves, moved, value)

    def result(self) -> tuple[Array, Array, Array]:
        shape = (len(self.x), self.n)
        log_prob, log_weight = self.log_prob.reshape(shape), self.log_weight.reshape(shape)
        return self.chosen.reshape(*shape, -1), log_prob, log_weight


def _log_sum_exp(logits: Array) -> Array:
    """(S,) for logits (S, k), of which some may be -inf, but not all of a row."""
    top = logits.max(axis=1)
    return np.asarray(top + np.log(np.exp(logits - top[:, None]).sum(axis=1)))
