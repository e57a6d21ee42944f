"""DiCE: several accepted rows that differ from each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from genrecourse.methods._gradient_method import GradientMethod, ell
from genrecourse.methods._gradient_search import SURELY, Limits, attempt, cheapest_valid
from genrecourse.methods._sparsify import undo_needless
from genrecourse.methods.base import long_frame, long_like
from genrecourse.model.settings import FLAG, PLANS_EACH, RATE, STEPS, WEIGHT, Allowed, check_values
from genrecourse.table.frames import to_pandas
from genrecourse.table.noise import KeyedNoise

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array
    from genrecourse.table.schema import Schema

SPREAD = 0.1  # distance from x at which all points but the first start
JITTER = 1e-4  # added to the diagonal of K, so that two equal points still have a gradient
LOWEST = 1e-6  # the lowest confidence in a rank


class DiCE(GradientMethod):
    """Gradient search for several accepted rows, near the person and far from each other.

        min over c_1..c_k of  mean_i ell(h(c_i)) + lam1 * mean_i C(x, c_i) - lam2 * det K,
        K_ij = 1 / (1 + C(c_i, c_j))

    Mothilal, Sharma & Tan, "Explaining Machine Learning Classifiers through Diverse Counterfactual
    Explanations", FAT* 2020. The result is the step of the search at which h accepts the most of
    the k points, and among these the step with the lowest objective. Then changes that h does not
    need are undone, the smallest first. `recourse` returns the cheapest of the k points, `several`
    returns all of them.

    Weakness: nothing keeps a point plausible, and diversity can lead to unusual points. With k = 1
    the determinant is constant, so lam2 has no effect.

    Differences from the original: C is a sum over features, not a mean, and is not scaled by median
    deviations; cross-entropy instead of the hinge loss; the first point starts at x and the others
    near it, with noise that depends on the row only; undoing reverts whole changes, also of
    categories, and h scores each of them.

    k: the number of points.
    lam1, lam2: the weights of proximity and diversity.
    lr, steps: Adam's learning rate and steps.
    sparse: undo changes that h does not need.

    >>> from genrecourse.table.schema import Schema
    >>> import pandas as pd
    >>> from genrecourse.model.classifier import MLPConfig, fit_mlp
    >>> X = pd.DataFrame({"income": range(80), "debt": range(80, 0, -1)})
    >>> y, schema = X["income"] >= 40, Schema.infer(X)
    >>> h = fit_mlp(X, y, schema, config=MLPConfig(lr=0.05, epochs=10))
    >>> method = DiCE(h, schema, k=2, steps=40).fit(X, y)
    >>> method.assess(X.head(2), method.recourse(X.head(2)))["status"].tolist()
    ['ok', 'ok']
    """

    allowed: ClassVar[dict[str, Allowed]] = {
        "k": PLANS_EACH,
        "lam1": WEIGHT,
        "lam2": WEIGHT,
        "lr": RATE,
        "steps": STEPS,
        "sparse": FLAG,
    }

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

    def several(self, X: Any, k: int | None = None) -> Any:
        """Return k rows for each row, with the index (row, choice), the cheapest first.

        An accepted person gets k copies of x. k: the number of points; None: as in the method.
        """
        self.check_ready("several", {})
        k = self.k if k is None else k
        check_values(self._where("several"), {"k": k}, self.allowed)
        given, X = X, to_pandas(X, self.schema_)
        people = self.problem_.read(X)
        Z, rejected = people.Z, people.rejected
        points = np.repeat(Z[:, None, :], k, axis=1)
        if rejected.any():
            points[rejected] = self._points(Z[rejected], KeyedNoise(self.random_state), k)
        own = X[[name for name in X.columns if name in people.X]]
        rows = points.reshape(len(X) * k, Z.shape[1])
        return long_like(long_frame(self.problem_.encoder, own, rows, "choice"), given, X)

    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        return self._points(Z, noise, self.k)[:, 0]

    def _points(self, Z: Array, noise: KeyedNoise, k: int) -> Array:
        """Return (n, k, D) legal points, the best first."""
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
        """Return the rank: first by the points that h rejects, then by the objective."""
        each = -np.log(np.maximum(confidence, LOWEST)) + self.lam1 * self.problem_.cost(Z, Z_plus)
        objective = each.mean(-1) - self.lam2 * np.linalg.det(self._kernel(Z_plus))
        failed = np.where(confidence > SURELY, 0.0, attempt(confidence)).sum(-1)
        return np.asarray(failed + objective.round(4))
