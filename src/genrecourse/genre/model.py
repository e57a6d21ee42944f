"""Step 3: R_theta(x+ | x), an encoder-decoder transformer over features.

    R(x+ | x) = prod_j R(x+_j | x, x+_1 .. x+_{j-1}),   each factor a softmax over choices

Tokens are features, not columns. Both sides embed *values*: a piecewise linear curve through
learned points at fixed knots, so a value between two knots lies between their embeddings, and a
category or "missing" is a knot of its own. Immutables are read by the encoder and not decoded:
they are pinned by construction. Written to be read top to bottom. Sampling has the decoder again,
one position at a time (`decoder.py`).

Letters: B rows, d encoder tokens, m decoder tokens, W width, K choices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from genrecourse.genre.any_lam import LAM_RANGE
from genrecourse.model.settings import FLAG, LAYERS, WIDTH, Allowed, Number, heads_conflict


@dataclass(frozen=True)
class NetConfig:
    """The sizes of the transformer.

    cost_in_logits: whether the logits already contain -lam * C_j; the paper's do not.

    >>> NetConfig().width, PAPER.encoder_layers
    (64, 16)
    """

    width: int = 64
    heads: int = 4
    feedforward: int = 128
    encoder_layers: int = 2
    decoder_layers: int = 2
    dropout: float = 0.0
    cost_in_logits: bool = True

    allowed: ClassVar[dict[str, Allowed]] = {
        "width": WIDTH,
        "heads": WIDTH,
        "feedforward": WIDTH,
        "encoder_layers": LAYERS,
        "decoder_layers": LAYERS,
        "dropout": Number(0, 1, below=True),
        "cost_in_logits": FLAG,
    }

    def conflict(self) -> str:
        """Return which sizes do not fit each other; "" if all do."""
        return heads_conflict(self.width, self.heads)


COMPACT = NetConfig()
SMALL = NetConfig(width=32, heads=2, feedforward=64, encoder_layers=1, decoder_layers=1)
PLAIN = NetConfig(cost_in_logits=False)
PAPER = NetConfig(
    width=32,
    heads=8,
    feedforward=32,
    encoder_layers=16,
    decoder_layers=16,
    dropout=0.1,
    cost_in_logits=False,
)


class ValueEmbedding(nn.Module):
    """Embeds scaled values (n, t) as vectors (n, t, W). NaN (missing) has a vector of its own.

    >>> embed = ValueEmbedding(torch.tensor([[0.0, 0.5, 1.0]]), width=4)
    >>> low, middle, high = embed(torch.tensor([[0.0], [0.25], [0.5]]))
    >>> torch.allclose(middle, (low + high) / 2, atol=1e-6)  # linear between two knots
    True
    """

    knots: Tensor

    def __init__(self, knots: Tensor, width: int):
        super().__init__()
        self.register_buffer("knots", knots)  # (t, T) increasing, padded with +inf
        n_features, self.n_knots = knots.shape
        self.points = nn.Parameter(0.5 * torch.randn(n_features * (self.n_knots + 1), width))

    def forward(self, values: Tensor) -> Tensor:
        knots = self.knots
        last = (knots.isfinite().sum(1) - 1).clamp_min(0)  # (t,)
        gone = values.isnan()
        v = values.nan_to_num(0.0)
        right = torch.searchsorted(knots, v.T.contiguous(), right=True).T  # (n, t)
        left = (right - 1).clamp_min(0).minimum(last)
        right = right.minimum(last)
        features = torch.arange(values.shape[1])
        low, high = knots[features, left], knots[features, right]
        share = ((v - low) / (high - low).clamp_min(1e-12)).clamp(0, 1).to(self.points.dtype)
        base = features * (self.n_knots + 1)
        left = torch.where(gone, self.n_knots, left) + base
        right = torch.where(gone, self.n_knots, right) + base
        a, b = functional.embedding(left, self.points), functional.embedding(right, self.points)
        return torch.lerp(a, b, share[..., None])


class Attention(nn.Module):
    """Multi-head attention of queries to a memory of keys and values.

    >>> attend, x = Attention(NetConfig(width=8, heads=2)), torch.zeros(3, 5, 8)
    >>> attend(x, attend.remember(x)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, config: NetConfig):
        super().__init__()
        self.heads = config.heads
        self.query = nn.Linear(config.width, config.width)
        self.key_value = nn.Linear(config.width, 2 * config.width)
        self.out = nn.Linear(config.width, config.width)

    def split(self, x: Tensor) -> Tensor:
        """Return (n, heads, t, W / heads) for x (n, t, W)."""
        n, t, width = x.shape
        return x.view(n, t, self.heads, width // self.heads).transpose(1, 2)

    def remember(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values of a memory, to be computed once."""
        key, value = self.key_value(x).chunk(2, dim=-1)
        return self.split(key), self.split(value)

    def forward(self, x: Tensor, memory: tuple[Tensor, Tensor], causal: bool = False) -> Tensor:
        mixed = functional.scaled_dot_product_attention(
            self.split(self.query(x)), *memory, is_causal=causal
        )
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class FeedForward(nn.Sequential):
    """Two linear layers with a ReLU between them.

    >>> FeedForward(NetConfig(width=8, feedforward=16))(torch.zeros(3, 8)).shape
    torch.Size([3, 8])
    """

    def __init__(self, config: NetConfig):
        super().__init__(
            nn.Linear(config.width, config.feedforward),
            nn.ReLU(),
            nn.Linear(config.feedforward, config.width),
        )


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each with a residual connection.

    >>> EncoderLayer(NetConfig(width=8, heads=2))(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, config: NetConfig):
        super().__init__()
        self.norm_self, self.norm_feed = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.attend = Attention(config)
        self.feed = FeedForward(config)
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm_self(x)
        x = x + self.drop(self.attend(y, self.attend.remember(y)))
        return x + self.drop(self.feed(self.norm_feed(x)))


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention to the encoded x, and feed-forward.

    >>> layer = DecoderLayer(NetConfig(width=8, heads=2))
    >>> encoded = torch.zeros(3, 5, 8)
    >>> layer(torch.zeros(3, 2, 8), layer.cross.remember(encoded)).shape
    torch.Size([3, 2, 8])
    """

    def __init__(self, config: NetConfig):
        super().__init__()
        self.norm_self, self.norm_cross = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.norm_feed = nn.LayerNorm(config.width)
        self.attend, self.cross = Attention(config), Attention(config)
        self.feed = FeedForward(config)
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, memory: tuple[Tensor, Tensor]) -> Tensor:
        y = self.norm_self(x)
        x = x + self.drop(self.attend(y, self.attend.remember(y), causal=True))
        x = x + self.drop(self.cross(self.norm_cross(x), memory))
        return x + self.drop(self.feed(self.norm_feed(x)))


class RecourseNet(nn.Module):
    """Returns logits over the choices of each mutable feature, given x and the features before it.

    knots (d, T): the embedding's knots of every feature.
    decoded (m,): the features that are decoded, in decoding order.
    lam: a number, or "any": the encoder then reads log lam as one more token, and every row comes
    with its lam (B,).

    R contains the factor exp(-lam * C_j). With `cost_in_logits`, `choice_cost` enters the logits
    directly and the net learns only the rest; without, it learns all of R, as in the paper.

    >>> config = NetConfig(width=8, heads=2)
    >>> knots = torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # two features; the second is decoded
    >>> net = RecourseNet(config, knots, decoded=torch.tensor([1]), n_choices=4, lam=5.0)
    >>> net(torch.zeros(3, 2), torch.zeros(3, 1), choice_cost=torch.zeros(3, 1, 4)).shape
    torch.Size([3, 1, 4])
    """

    decoded: Tensor
    cost_scale: Tensor

    def __init__(
        self,
        config: NetConfig,
        knots: Tensor,
        decoded: Tensor,
        n_choices: int,
        lam: float | Literal["any"],
    ):
        super().__init__()
        d, m, width = len(knots), len(decoded), config.width
        self.lam = lam
        self.register_buffer("decoded", decoded)
        self.embed_x = ValueEmbedding(knots, width)
        self.embed_plus = ValueEmbedding(knots[decoded], width)
        self.position_x = nn.Parameter(0.5 * torch.randn(d, width))
        self.position_plus = nn.Parameter(0.5 * torch.randn(m, width))
        self.kept = nn.Parameter(torch.zeros(m, width))  # "the feature before stayed as it was"
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm_x, self.norm_out = nn.LayerNorm(width), nn.LayerNorm(width)
        self.head = nn.Parameter(torch.randn(m, width, n_choices) * 0.5 / width**0.5)
        self.bias = nn.Parameter(torch.zeros(m, n_choices))
        if config.cost_in_logits:
            self.cost_scale = nn.Parameter(torch.ones(m))
        else:
            self.register_buffer("cost_scale", torch.zeros(m))
        # last, so that a net of one lam starts from the same random numbers as without it
        self.embed_lam = ValueEmbedding(_lam_knots(), width) if lam == "any" else None

    def _decoder_layers(self) -> list[DecoderLayer]:
        return cast(list[DecoderLayer], list(self.decoder))

    # ---- the encoder, once a row --------------------------------------------------------------

    def encode(self, x: Tensor, lam: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the encoded tokens (B, d, W) and the embedded x (B, d, W), for x (B, d).

        With a lam (B,) there are d + 1 encoded tokens.
        """
        embedded = self.embed_x(x) + self.position_x
        tokens = embedded
        if self.embed_lam is not None:
            assert lam is not None, "a net for any lam needs the lam of each row"
            tokens = torch.cat([tokens, self.embed_lam(lam.double().log()[:, None])], dim=1)
        for layer in self.encoder:
            tokens = layer(tokens)
        return self.norm_x(tokens), embedded

    # ---- all positions at once -----------------------------------------------------------------

    def forward(
        self, x: Tensor, x_plus: Tensor, choice_cost: Tensor, lam: Tensor | None = None
    ) -> Tensor:
        """Return logits (B, m, K) for x (B, d), x_plus (B, m), choice_cost (B, m, K), lam (B,)."""
        encoded, embedded = self.encode(x, lam)
        own = embedded[:, self.decoded]
        tokens = self.position_plus + own
        before = self.embed_plus(x_plus) + self._kept(x[:, self.decoded], x_plus)
        tokens = torch.cat([tokens[:, :1], tokens[:, 1:] + before[:, :-1]], dim=1)  # shift by one
        for layer in self._decoder_layers():
            tokens = layer(tokens, layer.cross.remember(encoded))
        out = torch.einsum("bmw,mwk->bmk", self.norm_out(tokens), self.head) + self.bias
        return out - self._weight(lam) * self.cost_scale[:, None] * choice_cost

    def _weight(self, lam: Tensor | None) -> float | Tensor:
        """Return lam as a factor of the costs (B, m, K)."""
        if self.lam != "any":
            return self.lam
        assert lam is not None
        return lam.to(self.bias.dtype)[:, None, None]

    def _kept(self, x: Tensor, x_plus: Tensor) -> Tensor:
        same = (x == x_plus) | (x.isnan() & x_plus.isnan())
        return same[..., None] * self.kept


def _lam_knots(n_knots: int = 8) -> Tensor:
    """(1, n_knots): log lam is one more value to embed."""
    low, high = LAM_RANGE
    return torch.linspace(math.log(low), math.log(high), n_knots, dtype=torch.float64)[None]


def make_knots(F: Tensor, is_number: Tensor, n_levels: list[int], n_knots: int = 32) -> Tensor:
    """Return knots (d, T): quantiles of the training rows for a number, the levels for a category.

    >>> F = torch.tensor([[0.0, 1.0], [0.5, 0.0], [1.0, 1.0]])  # a number, a category with 2 levels
    >>> make_knots(F, is_number=torch.tensor([True, False]), n_levels=[0, 2], n_knots=3)
    tensor([[0.0000, 0.5000, 1.0000],
            [0.0000, 1.0000,    inf]])
    """
    rows = []
    for j in range(F.shape[1]):
        present = F[~F[:, j].isnan(), j]
        if is_number[j]:
            grid = torch.linspace(0, 1, n_knots, dtype=F.dtype)
            rows.append(torch.quantile(present[:100_000], grid, interpolation="nearest").unique())
        else:
            rows.append(torch.arange(n_levels[j], dtype=F.dtype))
    knots = torch.full((len(rows), max(map(len, rows))), torch.inf, dtype=F.dtype)
    for j, row in enumerate(rows):
        knots[j, : len(row)] = row
    return knots
