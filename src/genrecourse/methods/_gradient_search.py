"""Batched search by gradients on a loss of the candidate, in Z or in a latent space.

All rows move at once, each as if it were alone: the loss is a sum of one number a row, optimisers
work number by number, and rows go through in padded chunks of one fixed shape, in double precision,
so that neither the order nor the number of rows changes what a row gets.

What moves is relaxed: a category's columns are shares between 0 and 1 that add up to one. What is
*kept* is legal: the place of every step is projected onto the rules (`legal`), the real h is asked
about it (`confidence`), and each row keeps the one that ranks best. So a stand-in for h may point
the way, but never has the last word, and a row for which nothing valid is found still has its best
attempt.

    found = gradient_search(
        Z,                                # (n, D) the people
        loss,                             # loss(Z_plus, Z, *per_row) -> (B,), torch, what to lower
        cheapest_valid(self.problem_.cost),       # rank(Z_plus, Z, confidence, *per_row), lowest wins
        limits=Limits(self.problem_.encoder, self.problem_.rules),
        legal=self.problem_.legal,
        confidence=self.problem_.confidence_derived,
        steps=1000,
        lr=0.01,
    )
    found.Z_plus                          # (n, D), legal

In a latent space: `start` (n, U) is where the codes begin and `decode(codes, *per_row)` gives
Z_plus, which is held within the limits (immutables pinned) before the loss sees it. `per_row`:
further arrays (n, ...) that loss, rank and decode are given for the rows at hand. `start` may have
a middle axis, (n, k, U), for k candidates a row that a loss looks at together; everything then has
it. loss and decode are given double precision tensors, rank is given arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from genrecourse.rules.book import RuleBook
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import Array, TableEncoder

CHUNK = 256  # candidates that move together; fixes the shape, bounds memory
LOOK = 32  # steps whose places are made legal and shown to h together
REJECTED = (
    1e6  # a candidate that did not reach what was asked for ranks from here on: above any cost
)
SURELY = 0.5 + 1e-6  # h's own rounding must not decide who is valid

Optimizer = Literal["adam", "rmsprop", "sgd"]
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}
Loss = Callable[..., Tensor]
Rank = Callable[..., Array]


@dataclass
class SearchResult:
    """The best of each row: Z_plus (n, [k,] D), legal; what h says of it; and its rank."""

    Z_plus: Array
    confidence: Array  # (n, [k])
    rank: Array  # (n,)


class Limits:
    """How far a search may go from each row: a box in Z, and a simplex for each open category."""

    def __init__(self, encoder: TableEncoder, rules: RuleBook):
        self.encoder, self.rules = encoder, rules
        onehot = [
            block
            for block, pinned in zip(encoder.blocks, rules.immutable, strict=True)
            if block.is_onehot and not pinned
        ]
        most = max((block.n_levels for block in onehot), default=0)
        self._columns = torch.zeros(len(onehot), most, dtype=torch.long)
        self._padding = torch.ones(self._columns.shape, dtype=torch.bool)
        for i, block in enumerate(onehot):
            self._columns[i, : block.n_levels] = torch.arange(block.start, block.stop)
            self._padding[i, : block.n_levels] = False

    def box(self, Z: Array) -> tuple[Array, Array]:
        """(n, D), (n, D): the lowest and the highest that each column of Z may become.

        x's own values are always inside, also those that the schema would not let it move to.
        """
        F = self.encoder.to_features(Z)
        low, high = Z.copy(), Z.copy()
        for j, block in enumerate(self.encoder.blocks):
            if self.rules.immutable[j]:
                continue
            if block.n_levels:
                self._open_levels(j, F[:, j], low, high)
            else:
                self._open_number(j, F[:, j], low, high)
        return np.minimum(low, Z), np.maximum(high, Z)

    def _open_number(self, j: int, values: Array, low: Array, high: Array) -> None:
        block = self.encoder.blocks[j]
        lowest, highest = self.rules.reach(j, values)
        movable = lowest <= highest  # a missing number that no rule lets become known is not
        column = block.start
        low[movable, column] = lowest[movable]
        high[movable, column] = highest[movable]
        if block.has_flag:  # what is known stays known; what is missing may become known
            low[movable, column + 1] = 0.0

    def _open_levels(self, j: int, values: Array, low: Array, high: Array) -> None:
        block = self.encoder.blocks[j]
        levels = np.arange(block.n_levels, dtype=float)
        if self.rules.features[j].missing:
            levels[-1] = np.nan
        ok = self.rules.allowed(j, values[:, None], levels[None, :])
        if block.is_onehot:
            low[:, block.columns] = 0.0
            high[:, block.columns] = ok
        else:
            low[:, block.start] = ~ok[:, 0]
            high[:, block.start] = ok[:, -1] if block.n_levels == 2 else 0.0

    def pull(self, Z_plus: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """The nearest point of the box whose open categories add up to one."""
        Z_plus = torch.clamp(Z_plus, low, high)
        if len(self._columns) == 0:
            return Z_plus
        closed = self._padding | (high.expand_as(Z_plus)[..., self._columns] <= 0)
        shares = onto_simplex(Z_plus[..., self._columns], closed)
        Z_plus = Z_plus.clone()
        Z_plus[..., self._columns[~self._padding]] = shares[..., ~self._padding]
        return Z_plus


def onto_simplex(values: Tensor, closed: Tensor) -> Tensor:
    """The nearest point along the last axis with a sum of 1, no part below 0, `closed` parts at 0.

    Held, Wolfe & Crowder (1974): take the same amount off every part and cut at 0.
    """
    values = values.masked_fill(closed, -torch.inf)
    ordered = values.sort(dim=-1, descending=True).values
    count = torch.arange(1, values.shape[-1] + 1, dtype=values.dtype)
    excess = (ordered.nan_to_num(neginf=0.0).cumsum(-1) - 1) / count
    used = (ordered > excess).sum(-1, keepdim=True).clamp(min=1)
    return (values - excess.gather(-1, used - 1)).clamp(min=0)


def attempt(confidence: Array) -> Array:
    """The rank of what h rejects: the surer h is, the better, and all above `REJECTED`.

    What only rounding tells apart is equal, so that it does not decide which step is kept.
    """
    return np.asarray(REJECTED * (2 - confidence.round(4)))


def cheapest_valid(cost: Cost, least: float = SURELY) -> Rank:
    """Rank by cost where h is surer than `least`; behind all of those, by what h says."""

    def rank(Z_plus: Array, Z: Array, confidence: Array, *per_row: Any) -> Array:
        return np.where(confidence > least, cost(Z, Z_plus).round(9), attempt(confidence))

    return rank


def gradient_search(
    Z: Array,
    loss: Loss,
    rank: Rank,
    *,
    limits: Limits,
    legal: Callable[[Array, Array], Array],
    confidence: Callable[[Array], Array],
    steps: int,
    lr: float,
    optimizer: Optimizer = "adam",
    start: Array | None = None,
    decode: Callable[..., Tensor] | None = None,
    per_row: Sequence[Array] = (),
) -> SearchResult:
    """The best place on each row's way down `loss`; the module's docstring says what is what.

    The start counts as a place. rank is given Z_plus (steps, B, [k,] D), Z (B, [1,] D) and
    confidence (steps, B, [k]) and gives (steps, B); of equal ranks the earlier step stands.
    """
    start = Z if start is None else start
    n_points = int(np.prod(start.shape[1:-1]))
    low, high = limits.box(Z)
    parts = []
    for rows, n_real in chunks(len(Z), max(1, CHUNK // n_points)):
        chunk = _Chunk(
            Z[rows], low[rows], high[rows], start[rows], [a[rows] for a in per_row], limits, decode
        )
        walk = chunk.walk(loss, steps, lr, optimizer)
        parts.append(_best(walk, chunk, n_real, rank, legal, confidence))
    if not parts:
        return SearchResult(np.zeros((0, *start.shape[1:-1], Z.shape[1])), np.zeros(0), np.zeros(0))
    return SearchResult(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def chunks(n: int, size: int) -> Iterator[tuple[np.ndarray, int]]:
    """Row numbers in chunks of one size, the last padded with its last row; how many are real."""
    for i in range(0, n, size):
        yield np.minimum(np.arange(i, i + size), n - 1), min(size, n - i)


class _Chunk:
    """Rows that move together, as tensors of one fixed shape."""

    def __init__(
        self,
        Z: Array,
        low: Array,
        high: Array,
        start: Array,
        per_row: list[Array],
        limits: Limits,
        decode: Callable[..., Tensor] | None,
    ):
        middle = (1,) * (start.ndim - 2)  # k candidates of one person share the person
        shape = (len(Z), *middle, Z.shape[1])
        self.Z = Z.reshape(shape)
        self.x, self.low, self.high = (torch.tensor(a).reshape(shape) for a in (Z, low, high))
        self.start, self.limits, self.decode = start, limits, decode
        self.per_row = per_row
        self.tensors = [torch.tensor(a) for a in per_row]

    def place(self, codes: Tensor) -> Tensor:
        """Where codes are in Z."""
        if self.decode is None:
            return codes
        return torch.clamp(self.decode(codes, *self.tensors), self.low, self.high)

    def walk(self, loss: Loss, steps: int, lr: float, optimizer: Optimizer) -> Iterator[Array]:
        """The place at the start and after each step."""
        codes = torch.tensor(self.start, dtype=torch.float64, requires_grad=True)
        moves = OPTIMIZERS[optimizer]([codes], lr=lr)
        for _ in range(steps):
            place = self.place(codes)
            yield place.detach().numpy().copy()
            total = loss(place, self.x, *self.tensors).sum()
            (gradient,) = torch.autograd.grad(total, codes)
            codes.grad = gradient.nan_to_num(0.0, 0.0, 0.0)  # a loss that overflows moves nobody
            moves.step()
            if self.decode is None:
                with torch.no_grad():  # the candidate itself, not a copy of it, stays within bounds
                    codes.copy_(self.limits.pull(codes, self.low, self.high))
        with torch.no_grad():
            yield self.place(codes).numpy().copy()


def _best(
    walk: Iterator[Array],
    chunk: _Chunk,
    n_real: int,
    rank: Rank,
    legal: Callable[[Array, Array], Array],
    confidence: Callable[[Array], Array],
) -> tuple[Array, Array, Array]:
    """What each row keeps of its walk."""
    Z, per_row = chunk.Z[:n_real], [a[:n_real] for a in chunk.per_row]
    rows = np.arange(n_real)
    best: tuple[Array, Array, Array] | None = None
    for places in _batched(walk, LOOK):
        Z_plus = places[:, :n_real]
        people = np.broadcast_to(Z, Z_plus.shape).reshape(-1, Z.shape[-1])
        flat = legal(people, Z_plus.reshape(people.shape))
        sure = confidence(flat).reshape(Z_plus.shape[:-1])
        Z_plus = flat.reshape(Z_plus.shape)
        value = rank(Z_plus, Z, sure, *per_row)
        first = value.argmin(axis=0)
        now = (Z_plus[first, rows], sure[first, rows], value[first, rows])
        if best is None:
            best = now
            continue
        better = now[2] < best[2]
        for kept, new in zip(best, now, strict=True):
            kept[better] = new[better]
    assert best is not None
    return best


def _batched(walk: Iterator[Array], size: int) -> Iterator[Array]:
    block: list[Array] = []
    for place in walk:
        block.append(place)
        if len(block) == size:
            yield np.stack(block)
            block = []
    if block:
        yield np.stack(block)
