"""Step 2: the choices of each feature, and the soft labels that teach them.

Feature j has K_j choices with real values mu_jk seen in D+, and one more, *keep*: x's own value,
exactly. In the paper's kernel density keep is one more kernel, centred on x_j.

    label_k = softmax_k( -(x+_j - mu_jk)^2 / (2 w_jk^2) - log w_jk )          (Eq. 8)

over the choices of the same feature (the denominator printed in the paper sums over features; the
sum that makes it a distribution is over bins). Categories and atoms (values that a tenth of
the rows have, such as capital-gain = 0) get hard labels and receive no mass from their neighbours:
their kernel has width zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from genrecourse.table.encoding import TOLERANCE, Array

BinKind = Literal["quantile", "uniform"]
ATOM_SHARE = 0.1  # a value that so many of the accepted rows have is an atom (decision 0003)
KEEP_REACH = 3.0  # how much wider than its bin's the kernel on x's own value is (decision 0003)


@dataclass(frozen=True)
class Bins:
    """The choices of d features, padded to K columns. Column K (the last) of a label is keep.

    >>> bins = make_bins(np.array([[0.0], [0.5], [1.0]]), np.array([True]), n_bins=3)
    >>> x, x_plus = torch.tensor([[0.2]]), torch.tensor([[0.5]])
    >>> allowed = bins.real().expand(1, 1, bins.n_choices)
    >>> bins.nearest(x, x_plus, allowed)  # the choice with value 0.5
    tensor([[1]])
    """

    value: torch.Tensor  # (d, K) mu, in the scaled feature view; NaN where padded
    width: torch.Tensor  # (d, K) w; 0 where padded or hard
    hard: torch.Tensor  # (d, K) atoms and categories
    is_number: torch.Tensor  # (d,)

    @property
    def n_choices(self) -> int:
        return self.value.shape[1] + 1

    # ---- what may be chosen -----------------------------------------------------------------

    def real(self) -> torch.Tensor:
        """Return (d, K + 1): False where padded. Keep always exists."""
        always = torch.ones(len(self.value), 1, dtype=torch.bool)
        return torch.cat([~self.value.isnan(), always], dim=1)

    # ---- labels -----------------------------------------------------------------------------

    def labels(self, x: torch.Tensor, x_plus: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
        """Return soft labels (n, d, K + 1) of pairs (n, d); forbidden choices get no mass."""
        log_kernel = torch.cat([self._log_kernel(x_plus), self._keep_kernel(x, x_plus)], dim=-1)
        # >>> Eq. (8), the labels, keep included
        label = torch.softmax(log_kernel.masked_fill(~allowed, -torch.inf), dim=-1)
        # <<<
        hard = self._hard_choice(x, x_plus, allowed)
        chosen = torch.nn.functional.one_hot(hard.clamp_min(0), self.n_choices).to(label.dtype)
        return torch.where((hard >= 0)[..., None], chosen, label.nan_to_num(0.0))

    def nearest(self, x: torch.Tensor, x_plus: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
        """Return (n, d) the allowed choice closest to x_plus."""
        gap = (self.value - x_plus[..., None]).abs()
        keep = torch.where(x.isnan() & x_plus.isnan(), 0.0, (x - x_plus).abs())
        gap = torch.cat([gap, keep[..., None]], dim=-1).nan_to_num(torch.inf)
        return gap.masked_fill(~allowed, torch.inf).argmin(-1)

    def _log_kernel(self, x_plus: torch.Tensor) -> torch.Tensor:
        width = torch.where(self.width > 0, self.width, torch.nan)
        log_kernel = -((x_plus[..., None] - self.value) ** 2) / (2 * width**2) - width.log()
        return log_kernel.nan_to_num(-torch.inf)  # padded, hard, or x_plus missing

    def _keep_kernel(self, x: torch.Tensor, x_plus: torch.Tensor) -> torch.Tensor:
        """The kernel centred on x_j: as high as that of x_j's bin, KEEP_REACH times as wide."""
        gap = (self.value - x[..., None]).abs().nan_to_num(torch.inf)
        place = gap.argmin(-1)
        width = self.width.expand(*gap.shape).gather(-1, place[..., None])[..., 0]
        width = torch.where(width > 0, width, torch.nan)  # x sits on an atom: only equality counts
        log_kernel = -((x_plus - x) ** 2) / (2 * (KEEP_REACH * width) ** 2) - width.log()
        return log_kernel.nan_to_num(-torch.inf)[..., None]

    def _hard_choice(
        self, x: torch.Tensor, x_plus: torch.Tensor, allowed: torch.Tensor
    ) -> torch.Tensor:
        """(n, d): the one choice where the label is hard, -1 where it is soft."""
        K = self.value.shape[1]
        same = ((x - x_plus).abs() <= TOLERANCE) | (x.isnan() & x_plus.isnan())
        on_atom = ((self.value - x_plus[..., None]).abs() <= TOLERANCE) & self.hard
        on_atom &= allowed[..., :K]
        choice = torch.where(on_atom.any(-1), on_atom.int().argmax(-1), -1)
        keep_open = allowed[..., K]
        return torch.where(same & keep_open, K, choice)


def make_bins(F: Array, is_number: np.ndarray, n_bins: int, kind: BinKind = "quantile") -> Bins:
    """Return the choices of each feature, from the accepted rows F (N+, d).

    >>> F = np.array([[0.0, 2.0], [0.4, 0.0], [1.0, 2.0]])  # a number and a category
    >>> make_bins(F, is_number=np.array([True, False]), n_bins=3).value
    tensor([[0.0000, 0.4000, 1.0000],
            [0.0000, 2.0000,    nan]], dtype=torch.float64)
    """
    made = [
        _choices(F[~np.isnan(F[:, j]), j], bool(is_number[j]), n_bins, kind)
        for j in range(F.shape[1])
    ]
    K = max(max((len(value) for value, _, _ in made), default=1), 1)
    value = torch.full((len(made), K), torch.nan, dtype=torch.float64)
    width = torch.zeros(len(made), K, dtype=torch.float64)
    hard = torch.zeros(len(made), K, dtype=torch.bool)
    for j, (v, w, h) in enumerate(made):
        value[j, : len(v)] = torch.as_tensor(v)
        width[j, : len(v)] = torch.as_tensor(w)
        hard[j, : len(v)] = torch.as_tensor(h)
    return Bins(value, width, hard, torch.as_tensor(is_number))


def _choices(
    values: Array, is_number: bool, n_bins: int, kind: BinKind
) -> tuple[Array, Array, np.ndarray]:
    """(mu, w, hard) of one feature."""
    distinct, counts = np.unique(values, return_counts=True)
    if not is_number:
        return distinct, np.zeros(len(distinct)), np.ones(len(distinct), dtype=bool)
    if kind == "uniform" and len(distinct) > 1:
        edges = np.linspace(distinct[0], distinct[-1], n_bins + 1)
        step = edges[1] - edges[0]
        return edges[:-1] + step / 2, np.full(n_bins, step), np.zeros(n_bins, dtype=bool)
    mu = distinct
    if len(distinct) > n_bins:
        own = counts >= len(values) / n_bins  # values that fill a bin by themselves
        rest = np.sort(values[~np.isin(values, distinct[own])])
        parts = np.array_split(rest, max(1, n_bins - int(own.sum())))
        # the middle element, so that every choice is a value that an accepted row has
        middles = [part[len(part) // 2] for part in parts if len(part)]
        mu = np.unique(np.concatenate([distinct[own], middles]))
    hard = np.isin(mu, distinct[counts >= ATOM_SHARE * len(values)])
    return mu, np.where(hard, 0.0, _half_gaps(mu)), hard


def _half_gaps(mu: Array) -> Array:
    """Half the mean gap to the neighbours on both sides."""
    if len(mu) < 2:
        return np.zeros(len(mu))
    gap = np.diff(mu)
    left, right = np.r_[gap[0], gap], np.r_[gap, gap[-1]]
    return np.asarray((left + right) / 4)
