"""Method: the public verbs, written once. An author writes `_fit` and `_recourse` on matrices."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from genrecourse.classifier import Classifier, fit_mlp
from genrecourse.constraints import Rules
from genrecourse.cost import Cost
from genrecourse.encoding import Array, TableEncoder, unchanged
from genrecourse.errors import UserError
from genrecourse.noise import KeyedNoise
from genrecourse.schema import Schema


@dataclass(frozen=True)
class TrainingRows:
    """What `_fit` is given: the training rows, as numbers, and what was seen of them."""

    Z: Array  # (n, D)
    F: Array  # (n, d)
    favourable: np.ndarray  # (n,) booleans: the outcome seen, or h's decision where none was given
    confidence: Array  # (n,) h on the common scale, 0.5 at the cutoff


class Method(BaseEstimator):
    """A way to recourse around a classifier. Subclasses: `_fit(rows)`, `_recourse(Z, noise)`.

    classifier: a `Classifier`, or any model that one can wrap; None: the paper's MLP, trained in
        `fit` from X and y.
    schema: a `Schema`; None: inferred from X.
    seed: decides everything random; the same seed, row and version give the same recourse.
    """

    def __init__(self, classifier: Any = None, schema: Schema | None = None, *, seed: int = 0):
        self.classifier = classifier
        self.schema = schema
        self.seed = seed

    def __sklearn_clone__(self) -> Method:
        # scikit-learn's clone would forget what a fitted classifier has learned
        return type(self)(**self.get_params(deep=False))

    # ---- what an author writes ----------------------------------------------------------------

    @abstractmethod
    def _fit(self, rows: TrainingRows) -> None:
        """Learn from the training rows; state ends in an underscore."""

    @abstractmethod
    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        """Z (n, D) of rejected people -> Z_plus (n, D), the best attempt for each."""

    # ---- the verbs ----------------------------------------------------------------------------

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        """Learn from a table. y: outcomes seen in the data; None: h's own decisions stand in."""
        self.schema_ = self.schema if self.schema is not None else Schema.infer(X)
        self.encoder_ = TableEncoder(self.schema_).fit(X)
        X = X[self.schema_.names]
        if y is not None and len(y) != len(X):
            raise UserError(f"{self._where('fit')}: X has {len(X)} rows but y has {len(y)}")
        self.classifier_ = self._ready_classifier(X, y)
        self._like = X.iloc[:1]
        if self.classifier_.encoder is not None and same_layout(
            self.classifier_.encoder, self.encoder_
        ):
            self.encoder_ = self.classifier_.encoder  # h then reads Z itself, with no detour
        self.rules_, self.cost_ = Rules(self.encoder_), Cost(self.encoder_)
        F = self.encoder_.features(X)
        scores = self.classifier_.score(X)
        favourable = (
            scores > self.classifier_.cutoff if y is None else self.classifier_.is_favourable(y)
        )
        self._fit(
            TrainingRows(
                self.encoder_.from_features(F), F, favourable, self.classifier_.confidence(scores)
            )
        )
        return self

    def recourse(self, X: pd.DataFrame) -> pd.DataFrame:
        """One row back for each row in: same index, columns and dtypes.

        People whom h accepts already come back unchanged. Whether the others' x_plus is valid is
        measured (`assess`), not encoded as NaN.
        """
        self._check_fitted("recourse")
        Z = self.encoder_.encode(X)
        rejected = ~self.classifier_.accepts(self._ordered(X))
        Z_plus = Z.copy()
        if rejected.any():
            found = self._recourse(Z[rejected], KeyedNoise(self.seed))
            Z_plus[rejected] = self._legal(Z[rejected], found)
        return self.encoder_.decode(Z_plus, like=X)

    def assess(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        """What recourse did for each person: status, scores before and after, cost, changes.

        status: `already-accepted`; `ok`, h accepts x_plus and no rule is broken; otherwise the
        reason: `rule-broken`, `not-accepted`, or what the method itself knows (`_reason`).
        """
        self._check_fitted("assess")
        X, X_plus = self._ordered(X), self._ordered(X_plus)
        F, F_plus = self.encoder_.features(X), self.encoder_.features(X_plus)
        Z, Z_plus = self.encoder_.from_features(F), self.encoder_.from_features(F_plus)
        score, score_plus = self.classifier_.score(X), self.classifier_.score(X_plus)
        cutoff = self.classifier_.cutoff
        reason = np.where(score_plus > cutoff, "ok", self._reason(Z))
        reason = np.where(self.rules_.feasible(F, F_plus), reason, "rule-broken")
        return pd.DataFrame(
            {
                "status": np.where(score > cutoff, "already-accepted", reason),
                "score": score,
                "score_plus": score_plus,
                "cost": self.cost_(Z, Z_plus),
                "changes": (~unchanged(F, F_plus)).sum(axis=1),
            },
            index=X.index,
        )

    # ---- for authors --------------------------------------------------------------------------

    def _confidence(self, Z: Array) -> Array:
        """h on rows of Z, on the common scale."""
        scores = self.classifier_.score_encoded(Z, self.encoder_, self._like)
        return self.classifier_.confidence(scores)

    def _reason(self, Z: Array) -> np.ndarray:
        """Why a row of Z whose recourse h rejects could not be helped."""
        return np.full(len(Z), "not-accepted", dtype=object)

    def _legal(self, Z: Array, Z_plus: Array) -> Array:
        """Z_plus on legal values and within the rules; a feature left alone stays exactly so."""
        F, raw = self.encoder_.to_features(Z), self.encoder_.to_features(Z_plus)
        same = unchanged(F, raw)
        clipped = self.encoder_.from_features(self.rules_.clip(F, raw))
        projected = self.encoder_.to_features(self.encoder_.project(clipped))
        legal = self.rules_.revert(F, np.where(same, F, projected))
        return self.encoder_.from_features(legal)

    def _ready_classifier(self, X: pd.DataFrame, y: Any) -> Classifier:
        wrapped = Classifier.wrap(self.classifier)
        if wrapped.is_fitted:
            return wrapped
        if y is None:
            raise UserError(
                f"{self._where('fit')}: with no classifier, the outcomes y are needed to learn one"
            )
        return fit_mlp(
            X,
            y,
            self.schema_,
            favourable=wrapped.favourable,
            cutoff=wrapped.cutoff,
            seed=self.seed,
            progress=getattr(self, "progress", False),
        )

    def _ordered(self, X: pd.DataFrame) -> pd.DataFrame:
        self.encoder_.check(X)
        return X[self.schema_.names]

    def _check_fitted(self, verb: str) -> None:
        if not hasattr(self, "encoder_"):
            raise UserError(f"{self._where(verb)}: call fit(X, y) first")

    def _where(self, verb: str) -> str:
        return f"{type(self).__name__}.{verb}"


def same_layout(a: TableEncoder, b: TableEncoder) -> bool:
    return a.schema.names == b.schema.names and a.blocks == b.blocks


def check_params(method: type[Method], params: dict[str, Any]) -> None:
    """Refuse a parameter that the method does not have, and say which it has."""
    known = list(inspect.signature(method.__init__).parameters)[1:]
    unknown = [name for name in params if name not in known]
    if unknown:
        raise UserError(f"{method.__name__} has no parameter {unknown}; it has {known}")
