"""ROAR: recourse that stays valid if the model shifts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from scipy.special import logit
from torch import Tensor

from genrecourse.methods._gradient_method import check_somebody_is_accepted, ell
from genrecourse.methods._gradient_search import SURELY, Limits, attempt, gradient_search
from genrecourse.methods._surrogate import HLogits, itself
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.model.settings import COUNT, RATE, STEPS, WEIGHT, Allowed

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array
    from genrecourse.table.noise import KeyedNoise
    from genrecourse.table.schema import Schema

AT_ONCE = 65_536  # neighbours that h scores at once: bounds memory
SCORES = 1e-3  # scores are clipped to this distance from the ends of the scale
RIDGE = 1e-6  # relative to the weight of the neighbours: a constant column gets no slope
LOCAL = 0.75  # width of the kernel, times the root of the number of features, as in LIME


class ROAR(Method):
    """Gradient search for a row that the model still accepts if its weights shift a little.

        min over z max over ||shift||_2 <= delta of  ell(h_{w + shift}(z)) + lam * C(x, z)

    h is replaced by a local linear model (w, b) of its logit, fitted around each x with the weights
    of LIME. For this model the inner maximum has a closed form:

        worst logit(z) = w.z + b - delta * ||(z, 1)||_2

    Upadhyay, Joshi & Lakkaraju, "Towards Robust and Reliable Algorithmic Recourse", NeurIPS 2021.
    The result is the point of the search path with the lowest objective among those that h itself
    accepts.

    Weakness: (w, b) is fitted around x. If h is not linear between x and the boundary, the result
    may be far from x, or h may accept no point of the path.

    Differences from the original: a neighbour of x keeps the level of a category with probability
    one half and otherwise draws it uniformly; the linear model is fitted to the logit, so that it
    is exact for a linear h; candidates keep the rules.

    delta: the largest shift of (w, b), in L2.
    lam: the weight of the cost.
    n_neighbours: the number of rows around x for the linear model.
    lr, steps: Adam's learning rate and steps.

    >>> import pandas as pd
    >>> X = pd.DataFrame({"income": range(80), "debt": range(80, 0, -1)})
    >>> h = lambda X: X["income"].to_numpy() / 80
    >>> method = ROAR(h, steps=40, lr=0.05, n_neighbours=60).fit(X, X["income"] >= 40)
    >>> method.assess(X.head(2), method.recourse(X.head(2)))["status"].tolist()
    ['ok', 'ok']
    """

    allowed: ClassVar[dict[str, Allowed]] = {
        "delta": WEIGHT,
        "lam": WEIGHT,
        "n_neighbours": COUNT,
        "lr": RATE,
        "steps": STEPS,
    }

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        delta: float = 0.01,
        lam: float = 0.1,
        n_neighbours: int = 500,
        lr: float = 0.01,
        steps: int = 1000,
        random_state: int = 0,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.delta = delta
        self.lam = lam
        self.n_neighbours = n_neighbours
        self.lr = lr
        self.steps = steps

    @staticmethod
    def _test_params() -> dict[str, Any]:
        return {"steps": 40, "lr": 0.05, "n_neighbours": 60}

    def _fit(self, rows: TrainingRows) -> None:
        check_somebody_is_accepted(self._where("fit"), rows)
        spread = np.nan_to_num(np.nanstd(rows.F, axis=0))
        self.spread_ = np.where(spread > 0, spread, 1.0)  # per feature; not used for categories

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {}, {"spread": self.spread_}

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.spread_ = arrays["spread"]

    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        w, b = self._local_linear(Z, noise)
        found = gradient_search(
            Z,
            self._loss,
            self._rank,
            limits=Limits(self.problem_.encoder, self.problem_.rules),
            legal=self.problem_.legal,
            confidence=self.problem_.confidence_derived,
            per_row=[w, b],
            steps=self.steps,
            lr=self.lr,
        )
        return found.Z_plus

    # ---- the objective ------------------------------------------------------------------------

    def _loss(self, Z_plus: Tensor, Z: Tensor, w: Tensor, b: Tensor) -> Tensor:
        length = (Z_plus.square().sum(-1) + 1).sqrt()
        worst = (w * Z_plus).sum(-1) + b - self.delta * length
        return ell(worst) + self.lam * self.problem_.cost(Z, Z_plus)

    def _rank(self, Z_plus: Array, Z: Array, confidence: Array, w: Array, b: Array) -> Array:
        objective = self._loss(*map(torch.tensor, (Z_plus, Z, w, b))).numpy().round(4)
        return np.where(confidence > SURELY, objective, attempt(confidence))

    # ---- the local model ----------------------------------------------------------------------

    def _local_linear(self, Z: Array, noise: KeyedNoise) -> tuple[Array, Array]:
        """Return (n, D) slopes and (n,) intercepts of h's logit around each row."""
        exact = itself(self.classifier_, self.problem_.encoder)
        keys, size = noise.keys(Z), max(1, AT_ONCE // self.n_neighbours)
        parts = []
        for some in np.split(np.arange(len(Z)), range(size, len(Z), size)):
            near, weight = self._neighbours(Z[some], noise, keys[some])
            parts.append(_weighted_fit(near, self._logits(near, exact), weight))
        w, b = (np.concatenate(part) for part in zip(*parts, strict=True))
        return w.round(9), b.round(9)  # rounding errors must not depend on the other rows

    def _neighbours(self, Z: Array, noise: KeyedNoise, keys: Any) -> tuple[Array, Array]:
        """Return (n, m, D) legal rows around each row, and their weights (n, m)."""
        F, m = self.problem_.encoder.to_features(Z), self.n_neighbours
        n, d = F.shape
        near = F[:, None, :] + self.spread_ * noise.normal(keys, (m, d))
        chance = noise.uniform(keys, (m, d), offset=m * d)
        for j, feature in enumerate(self.problem_.encoder.schema):
            if feature.is_category:  # a chance of 0.5 or more keeps the level
                drawn = np.floor(2 * chance[:, :, j] * len(feature.categories))
                near[:, :, j] = np.where(chance[:, :, j] < 0.5, drawn, F[:, None, j])
        people = np.broadcast_to(Z[:, None, :], (n, m, Z.shape[1])).reshape(n * m, -1)
        legal = self.problem_.legal(
            people, self.problem_.encoder.from_features(near.reshape(n * m, d))
        )
        moved = self.problem_.encoder.to_features(legal).reshape(n, m, d) - F[:, None, :]
        categories = np.array([feature.is_category for feature in self.problem_.encoder.schema])
        unit = np.where(categories, moved != 0, moved / self.spread_)
        far = np.nansum(np.square(unit), axis=2)  # a missing value has no distance
        return legal.reshape(n, m, -1), np.exp(-far / (LOCAL**2 * d))

    def _logits(self, near: Array, exact: HLogits | None) -> Array:
        if exact is not None:
            return exact(torch.tensor(near)).numpy()
        confidence = self.problem_.confidence_derived(near.reshape(-1, near.shape[-1]))
        return np.asarray(logit(np.clip(confidence, SCORES, 1 - SCORES)).reshape(near.shape[:2]))


def _weighted_fit(Z: Array, y: Array, weight: Array) -> tuple[Array, Array]:
    """Return a weighted ridge regression per group: (n, m, D), (n, m), (n, m) -> (n, D), (n,)."""
    total = weight.sum(axis=1)
    middle = (weight[:, :, None] * Z).sum(axis=1) / total[:, None]
    mean = (weight * y).sum(axis=1) / total
    apart = Z - middle[:, None, :]
    weighted = weight[:, :, None] * apart
    gram = weighted.transpose(0, 2, 1) @ apart
    gram += RIDGE * total[:, None, None] * np.eye(Z.shape[2])
    moment = (weighted * (y - mean[:, None])[:, :, None]).sum(axis=1)
    w = np.linalg.solve(gram, moment[:, :, None])[:, :, 0]
    return w, mean - (w * middle).sum(axis=1)
