"""Batched gradient search that minimises a loss of the candidate, in Z or in a latent space.

All rows move at the same time, but independently: the loss is a sum of one number per row,
optimisers work element by element, and rows are processed in double precision in padded chunks of
one fixed shape. So neither the order nor the number of rows changes the result of a row.

During the search, rows are relaxed: the columns of a category are shares between 0 and 1 that add
up to one. The *result* is legal: every step is projected onto the rules (`legal`), the real h
scores it (`confidence`), and each row keeps the step with the best rank. So a surrogate of h can
guide the search but does not decide, and a row without a valid step still has its best attempt.

    found = gradient_search(
        Z,  # (n, D) the people
        loss,  # loss(Z_plus, Z, *per_row) -> (B,), torch: what to minimise
        cheapest_valid(self.problem_.cost),  # rank(Z_plus, Z, confidence, *per_row): lowest wins
        limits=Limits(self.problem_.encoder, self.problem_.rules),
        legal=self.problem_.legal,
        confidence=self.problem_.confidence_derived,
        steps=1000,
        lr=0.01,
    )
    found.Z_plus                          # (n, D), legal

In a latent space, `start` (n, U) contains the first codes, and `decode(codes, *per_row)` returns
Z_plus, which is clipped to the limits (immutable features stay fixed) before the loss. `per_row`
are further arrays (n, ...) for loss, rank and decode. `start` may have a middle axis, (n, k, U), if
the loss looks at k candidates of a row together; then all arrays have it. loss and decode get
double precision tensors, rank gets arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from genrecourse.table.encoding import Array, TableEncoder

if TYPE_CHECKING:
    from genrecourse.rules.book import RuleBook
    from genrecourse.table.cost import Cost

CHUNK = 256  # candidates at once: fixes the shape and bounds memory
LOOK = 32  # steps that are projected and scored at once
REJECTED = 1e6  # invalid candidates have ranks from here on, above any cost
SURELY = 0.5 + 1e-6  # rounding errors of h must not decide what is valid

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
    """The best step of each row: Z_plus (n, [k,] D), legal; the confidence of h; and its rank."""

    Z_plus: Array
    confidence: Array  # (n, [k])
    rank: Array  # (n,)


class Limits:
    """The limits of a search around each row: a box in Z, and a simplex for each free category."""

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
        """Return (n, D), (n, D): the lowest and the highest value of each column of Z.

        The values of x are always inside, even if the rules forbid to move there.
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
        movable = lowest <= highest  # False if a missing number must stay missing
        column = block.start
        low[movable, column] = lowest[movable]
        high[movable, column] = highest[movable]
        if block.has_flag:  # a missing value may become known, but not the other way
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
        """Return the nearest point of the box whose free categories add up to one."""
        Z_plus = torch.clamp(Z_plus, low, high)
        if len(self._columns) == 0:
            return Z_plus
        closed = self._padding | (high.expand_as(Z_plus)[..., self._columns] <= 0)
        shares = onto_simplex(Z_plus[..., self._columns], closed)
        Z_plus = Z_plus.clone()
        Z_plus[..., self._columns[~self._padding]] = shares[..., ~self._padding]
        return Z_plus


def onto_simplex(values: Tensor, closed: Tensor) -> Tensor:
    """Return the nearest point along the last axis with a sum of 1, parts >= 0, `closed` parts 0.

    Held, Wolfe & Crowder (1974): subtract the same amount from every part and clip at 0.
    """
    values = values.masked_fill(closed, -torch.inf)
    ordered = values.sort(dim=-1, descending=True).values
    count = torch.arange(1, values.shape[-1] + 1, dtype=values.dtype)
    excess = (ordered.nan_to_num(neginf=0.0).cumsum(-1) - 1) / count
    used = (ordered > excess).sum(-1, keepdim=True).clamp(min=1)
    return (values - excess.gather(-1, used - 1)).clamp(min=0)


def attempt(confidence: Array) -> Array:
    """Return the rank of rejected candidates: a higher confidence is better; all >= `REJECTED`.

    The confidence is rounded, so that rounding errors do not decide which step is kept.
    """
    return np.asarray(REJECTED * (2 - confidence.round(4)))


def cheapest_valid(cost: Cost, least: float = SURELY) -> Rank:
    """Return a rank: by cost if the confidence is above `least`; after these, by confidence."""

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
    """Return the best step of each row's search; the module docstring explains the arguments.

    The start counts as a step. rank gets Z_plus (steps, B, [k,] D), Z (B, [1,] D) and confidence
    (steps, B, [k]) and returns (steps, B); if ranks are equal, the earlier step is kept.
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
    """Yield row numbers in chunks of one size, the last one padded, and the number of real rows."""
    for i in range(0, n, size):
        yield np.minimum(np.arange(i, i + size), n - 1), min(size, n - i)


class _Chunk:
    """Rows that move at the same time, as tensors of one fixed shape."""

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
        """Return the points of Z for codes."""
        if self.decode is None:
            return codes
        return torch.clamp(self.decode(codes, *self.tensors), self.low, self.high)

    def walk(self, loss: Loss, steps: int, lr: float, optimizer: Optimizer) -> Iterator[Array]:
        """Yield the points of Z at the start and after each step."""
        codes = torch.tensor(self.start, dtype=torch.float64, requires_grad=True)
        moves = OPTIMIZERS[optimizer]([codes], lr=lr)
        for _ in range(steps):
            place = self.place(codes)
            yield place.detach().numpy().copy()
            total = loss(place, self.x, *self.tensors).sum()
            (gradient,) = torch.autograd.grad(total, codes)
            codes.grad = gradient.nan_to_num(
                0.0, 0.0, 0.0
            )  # if the loss overflows, the row does not move
            moves.step()
            if self.decode is None:
                with torch.no_grad():  # the codes themselves must stay inside the limits
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
    """Return the best step of each row: Z_plus, confidence and rank."""
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
