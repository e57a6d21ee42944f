"""DiCE: several flips that differ from each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from genrecourse.methods._gradient_method import GradientMethod, ell
from genrecourse.methods._gradient_search import SURELY, Limits, attempt, cheapest_valid
from genrecourse.methods._sparsify import undo_needless
from genrecourse.methods.base import TrainingRows, long_frame
from genrecourse.model.settings import check_settings
from genrecourse.table.encoding import Array
from genrecourse.table.noise import KeyedNoise
from genrecourse.table.schema import Schema

SPREAD = 0.1  # how far from x the second and further points begin
JITTER = 1e-4  # added to K's diagonal: two equal points still have a gradient
LOWEST = 1e-6  # confidence below this counts as this in a rank


class DiCE(GradientMethod):
    """Several flips, near x and far from each other, and the cheapest of them as recourse:

        min over c_1..c_k of  mean_i ell(h(c_i)) + lam1 * mean_i C(x, c_i) - lam2 * det K,
        K_ij = 1 / (1 + C(c_i, c_j))

    Mothilal, Sharma & Tan, "Explaining Machine Learning Classifiers through Diverse Counterfactual
    Explanations", FAT* 2020. Each row keeps the k places, reached together, of which h accepts the
    most and whose objective is the lowest; then changes that h does not need are undone, the
    smallest first. `recourse` gives the cheapest of the k, `several` gives all.

    It fails where diversity is bought with oddity: nothing keeps a point plausible. With k = 1 the
    determinant is a constant and lam2 does nothing.

    Departs from the original: C is a sum, not a mean, over features, and is not weighed by median
    deviations; cross-entropy for the hinge; the first point begins at x and the others near it, all
    by noise keyed by the row; undoing puts back whole changes, categories too, and h is asked about
    each.

    k: how many points.
    lam1, lam2: what proximity and diversity weigh.
    lr, steps: Adam's.
    sparse: undo changes that h does not need.
    """

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        k: int = 1,
        lam1: float = 0.5,
        lam2: float = 1.0,
        lr: float = 0.05,
        steps: int = 1000,
        sparse: bool = True,
        random_state: int = 0,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.k = k
        self.lam1 = lam1
        self.lam2 = lam2
        self.lr = lr
        self.steps = steps
        self.sparse = sparse

    @staticmethod
    def _test_params() -> dict[str, Any]:
        return {"steps": 40}

    def _fit(self, rows: TrainingRows) -> None:
        check_settings(
            self._where("fit"),
            above_zero={"lr": self.lr},
            from_zero={"lam1": self.lam1, "lam2": self.lam2},
            counts={"steps": self.steps, "k": self.k},
        )
        super()._fit(rows)

    def several(self, X: pd.DataFrame, k: int | None = None) -> pd.DataFrame:
        """All k rows for each row, as a long frame indexed (row, choice), the cheapest first.

        Whom h accepts already gets k copies of x. k: as if the method had been made with it.
        """
        self.check_ready("several", {})
        k = self.k if k is None else k
        check_settings(self._where("several"), counts={"k": k})
        Z = self.problem_.encoder.encode(X)
        rejected = ~self.classifier_.accepts(self.problem_.ordered(X))
        points = np.repeat(Z[:, None, :], k, axis=1)
        if rejected.any():
            points[rejected] = self._points(Z[rejected], KeyedNoise(self.random_state), k)
        return long_frame(self.problem_.encoder, X, points.reshape(len(X) * k, -1), "choice")

    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        return self._points(Z, noise, self.k)[:, 0]

    def _points(self, Z: Array, noise: KeyedNoise, k: int) -> Array:
        """(n, k, D), legal, the best first."""
        found = self._search(
            Z, self._loss, self._rank, start=self._start(Z, noise, k), steps=self.steps, lr=self.lr
        )
        n, _, width = found.Z_plus.shape
        people = np.repeat(Z[:, None, :], k, axis=1).reshape(-1, width)
        points = found.Z_plus.reshape(-1, width)
        if self.sparse:
            points = undo_needless(
                people,
                points,
                self.problem_.encoder,
                self.problem_.cost,
                self.problem_.confidence_derived,
            )
        rank = cheapest_valid(self.problem_.cost)(
            points, people, self.problem_.confidence_derived(points)
        )
        order = np.argsort(rank.reshape(n, k), axis=1, kind="stable")
        return points.reshape(n, k, width)[np.arange(n)[:, None], order]

    def _start(self, Z: Array, noise: KeyedNoise, k: int) -> Array:
        limits = Limits(self.problem_.encoder, self.problem_.rules)
        low, high = (torch.tensor(end)[:, None, :] for end in limits.box(Z))
        start = np.repeat(Z[:, None, :], k, axis=1)
        start += SPREAD * noise.normal(noise.keys(Z), (k, Z.shape[1]))
        start[:, 0] = Z
        return limits.pull(torch.tensor(start), low, high).numpy()

    def _loss(self, Z_plus: Tensor, Z: Tensor) -> Tensor:
        each = ell(self.h_logits_(Z_plus)) + self.lam1 * self.problem_.cost(Z, Z_plus)
        return each.mean(-1) - self.lam2 * torch.linalg.det(self._kernel(Z_plus))

    def _kernel(self, points: Any) -> Any:
        """(..., k, D) -> (..., k, k)."""
        K = 1 / (1 + self.problem_.cost(points[..., :, None, :], points[..., None, :, :]))
        eye = JITTER * np.eye(points.shape[-2])
        return K + (torch.tensor(eye) if isinstance(K, Tensor) else eye)

    def _rank(self, Z_plus: Array, Z: Array, confidence: Array) -> Array:
        """The points that h rejects first; where it accepts all, the objective by h itself."""
        each = -np.log(np.maximum(confidence, LOWEST)) + self.lam1 * self.problem_.cost(Z, Z_plus)
        objective = each.mean(-1) - self.lam2 * np.linalg.det(self._kernel(Z_plus))
        failed = np.where(confidence > SURELY, 0.0, attempt(confidence)).sum(-1)
        return np.asarray(failed + objective.round(4))
