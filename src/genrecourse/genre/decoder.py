"""Decoding with plain arrays: the logits of R_theta, one position at a time, quickly.

`RecourseNet` computes all positions at once, as training needs it. Sampling takes one position
after the other, often for a single person, and there a call of torch costs more than its
arithmetic. So this file has the decoder of the net again, with the same weights:

- in double precision, because the rounding of a product depends on its shape; whoever reads the
  logits rounds them to single precision, which hides this. So a person's draws do not depend on
  other people.
- with the affine part of each layer norm folded into the product that follows it, and with the mean
  taken out of everything that is added to the stream, so that a layer norm only has to scale.

A test compares its logits with those of the net.

Letters: B rows, S sequences (rows x draws), d encoder tokens, m decoder tokens, W width, K choices.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from genrecourse.model.threads import n_weights, torch_threads

if TYPE_CHECKING:
    from torch import Tensor, nn

    from genrecourse.genre.model import Attention, RecourseNet, ValueEmbedding
    from genrecourse.table.encoding import Array

# keys (B, heads, W / heads, tokens) and values (B, heads, tokens, W / heads); B may be S
Memory = tuple[np.ndarray, np.ndarray]


@dataclass
class DecodingState:
    """What decoding keeps between positions.

    >>> from genrecourse.evaluation.example_tables import example_density
    >>> state = Decoder(example_density().net).start(np.array([[0.2, 1.0]]), n=3)
    >>> state.token.shape, state.cache[0][0].shape  # one row, three sequences
    ((2, 1, 8), (3, 4, 2, 2))
    """

    x: Array  # (B, m) x's own values of the decoded features
    token: Array  # (m, B, W) position and x's own value, embedded
    memory: list[Memory]  # of each layer: the encoded x, B rows of d tokens
    cache: list[Memory]  # of each layer: what was decoded so far, S rows of up to m tokens
    n: int  # sequences a row
    weight: Array | float  # lam of each row (B, 1), or of all

    def follow(self, ancestors: np.ndarray, end: int) -> None:
        """Let each sequence go on from another one, `ancestors` (S,), up to position `end`."""
        for key, value in self.cache:
            key[..., :end] = key[ancestors, ..., :end]
            value[:, :, :end] = value[ancestors, :, :end]


class Decoder:
    """The decoder of a trained net.

    >>> from genrecourse.evaluation.example_tables import example_density
    >>> net, x = example_density().net, np.array([[0.2, 1.0]])
    >>> decoder = Decoder(net)
    >>> state = decoder.start(x, n=2)
    >>> decoder.step(state, 0, None, np.zeros((1, 6))).shape  # one row, two sequences
    (2, 6)
    """

    def __init__(self, net: RecourseNet):
        self.net = copy.deepcopy(net).double().eval()  # encodes x
        self.layers = [_Layer(layer) for layer in self.net.decoder]
        self.embed = _Embedding(self.net.embed_plus)
        self.position, self.kept = map(_centred, (self.net.position_plus, self.net.kept))
        self.decoded = self.net.decoded.numpy()
        out = self.net.norm_out
        self.head, self.bias = _folded(out, self.net.head, self.net.bias)
        self.eps, self.cost_scale = out.eps, _array(self.net.cost_scale)

    def start(self, x: Array, n: int, lam: float | None = None) -> DecodingState:
        """Return the state for decoding n sequences per row, after encoding x (B, d)."""
        lams = None if lam is None else torch.full((len(x),), lam, dtype=torch.float64)
        with torch.inference_mode(), torch_threads(x.size * n_weights(self.net.encoder)):
            encoded, embedded = (part.numpy() for part in self.net.encode(torch.as_tensor(x), lams))
        token = _without_mean(embedded[:, self.decoded].swapaxes(0, 1)) + self.position[:, None]
        room = (len(x) * n, len(self.decoded))
        return DecodingState(
            x[:, self.decoded],
            token,
            [_packed(layer.cross.remember(encoded)) for layer in self.layers],
            [layer.attend.room(*room) for layer in self.layers],
            n,
            self.net.lam if self.net.lam != "any" else float(lam or 0.0),
        )

    def step(
        self,
        state: DecodingState,
        t: int,
        before: Array | None,
        cost: Array,
        number: np.ndarray | slice = slice(None),
    ) -> Array:
        """Return logits (S, K) of position t, given the values (S,) at t - 1 and costs (B, K).

        number: which choices to return, if not all; `cost` has the same.
        """
        token = each_draw(state.token[t], state.n)
        if before is not None:
            x_before = each_draw(state.x[:, t - 1], state.n)
            same = (x_before == before) | (np.isnan(x_before) & np.isnan(before))
            token = token + self.embed(before, t - 1) + same[:, None] * self.kept[t - 1]
        for layer, cache, memory in zip(self.layers, state.cache, state.memory, strict=True):
            token = layer.step(token, t, cache, memory)
        out = _scaled(token, self.eps) @ self.head[t][:, number] + self.bias[t, number]
        return np.asarray(out - each_draw(state.weight * self.cost_scale[t] * cost, state.n))


class _Embedding:
    """`ValueEmbedding` of one feature at a time, without its mean."""

    def __init__(self, embed: ValueEmbedding):
        knots = _array(embed.knots)
        self.knots = [row[np.isfinite(row)] for row in knots]
        self.points = _centred(embed.points).reshape(len(knots), knots.shape[1] + 1, -1)

    def __call__(self, values: Array, j: int) -> Array:
        """(S,) -> (S, W); NaN (missing) has a vector of its own."""
        knots, points = self.knots[j], self.points[j]
        gone = np.isnan(values)
        v = np.where(gone, 0.0, values)
        right = knots.searchsorted(v, side="right")
        left = np.clip(right - 1, 0, len(knots) - 1)
        right = np.minimum(right, len(knots) - 1)
        low = knots[left]
        share = np.clip((v - low) / np.maximum(knots[right] - low, 1e-12), 0.0, 1.0)
        if gone.any():
            left, right = (np.where(gone, len(points) - 1, place) for place in (left, right))
        a = points[left]
        return np.asarray(a + share[:, None] * (points[right] - a))


class _Layer:
    """`DecoderLayer`, one position of all sequences at a time."""

    def __init__(self, layer: Any):
        self.attend = _Attention(layer.attend, layer.norm_self, layer.norm_self)
        self.cross = _Attention(layer.cross, layer.norm_cross, None)
        first, _, second = layer.feed
        self.eps = layer.norm_feed.eps
        self.first = _folded(layer.norm_feed, first.weight.T, first.bias)
        self.second = _written(second)

    def step(self, x: Array, t: int, cache: Memory, memory: Memory) -> Array:
        """Return position t (S, W) of S = B * n sequences; the memory has B rows."""
        y = _scaled(x, self.attend.eps)
        key, value = cache
        new_key, new_value = self.attend.remember(y[:, None])
        key[..., t], value[:, :, t] = new_key[..., 0], new_value[:, :, 0]
        x = x + self.attend(y, (key[..., : t + 1], value[:, :, : t + 1]))
        x = x + self.cross(_scaled(x, self.cross.eps), memory)
        (weight, bias), (weight_2, bias_2) = self.first, self.second
        hidden = _scaled(x, self.eps) @ weight + bias
        return np.asarray(x + (np.maximum(hidden, 0.0, out=hidden) @ weight_2 + bias_2))


class _Attention:
    """`Attention` of one query per sequence, after a layer norm that only scales."""

    def __init__(self, attention: Attention, norm: nn.LayerNorm, of_memory: nn.LayerNorm | None):
        self.heads, width = attention.heads, attention.query.weight.shape[0]
        self.eps, self.scale = norm.eps, (width // self.heads) ** -0.5
        self.query = _folded(norm, attention.query.weight.T, attention.query.bias)
        known = attention.key_value.weight.T, attention.key_value.bias
        self.key_value = _folded(of_memory, *known)
        self.out = _written(attention.out)

    def room(self, rows: int, tokens: int) -> Memory:
        """Return an empty memory."""
        width = len(self.query[1]) // self.heads
        shape = rows, self.heads, width
        return np.empty((*shape, tokens)), np.empty((rows, self.heads, tokens, width))

    def remember(self, x: Array) -> Memory:
        """Return keys and values of tokens (B, T, W)."""
        weight, bias = self.key_value
        both = (x @ weight + bias).reshape(*x.shape[:2], 2, self.heads, -1)
        return both[:, :, 0].transpose(0, 2, 3, 1), both[:, :, 1].transpose(0, 2, 1, 3)

    def __call__(self, x: Array, memory: Memory) -> Array:
        """(S, W) for queries x (S, W) to a memory of B rows, where S is a multiple of B."""
        weight, bias = self.query
        key, value = memory
        rows, heads, width, _ = key.shape
        query = ((x @ weight + bias) * self.scale).reshape(rows, -1, heads, width)
        score = query.swapaxes(1, 2) @ key  # (B, heads, n, T)
        score -= score.max(axis=-1, keepdims=True)
        np.exp(score, out=score)
        score /= score.sum(axis=-1, keepdims=True)
        mixed = (score @ value).swapaxes(1, 2).reshape(len(x), -1)
        weight, bias = self.out
        return np.asarray(mixed @ weight + bias)


def _packed(memory: Memory) -> Memory:
    """Return a memory that every position reads, in the order in which it is read."""
    key, value = memory
    return np.ascontiguousarray(key), np.ascontiguousarray(value)


def each_draw(per_row: np.ndarray, n: int) -> np.ndarray:
    """Return every row n times over: (B, ...) -> (B * n, ...).

    >>> each_draw(np.array([1, 2]), 2)
    array([1, 1, 2, 2])
    """
    return per_row if n == 1 else np.repeat(per_row, n, axis=0)


# ---- weights ------------------------------------------------------------------------------------


def _array(tensor: Tensor) -> Array:
    return np.asarray(tensor.detach().numpy())


def _without_mean(a: Array) -> Array:
    return np.asarray(a - a.mean(axis=-1, keepdims=True))


def _centred(tensor: Tensor) -> Array:
    return _without_mean(_array(tensor))


def _written(linear: nn.Linear) -> tuple[Array, Array]:
    """Return weight and bias of what is added to the stream, without its mean."""
    return _without_mean(_array(linear.weight.T)), _without_mean(_array(linear.bias))


def _folded(norm: nn.LayerNorm | None, weight: Tensor, bias: Tensor) -> tuple[Array, Array]:
    """Return weight (..., W, k) and bias (..., k) that include the affine part of a layer norm."""
    if norm is None:
        return np.ascontiguousarray(_array(weight)), _array(bias)
    scale, shift = _array(norm.weight), _array(norm.bias)
    more = _array(bias) + shift @ _array(weight)
    return np.ascontiguousarray(scale[:, None] * _array(weight)), np.asarray(more)


def _scaled(x: Array, eps: float) -> Array:
    """Return the layer norm of rows (S, W) without a mean, before its affine part."""
    variance = np.einsum("sw,sw->s", x, x) / x.shape[1]
    return np.asarray(x / np.sqrt(variance + eps)[:, None])
