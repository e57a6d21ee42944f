"""Linear models: recognise a scikit-learn model whose output is a sum over features.

A logistic regression is one on the scale of its log-odds, and a linear regression on that of its
score, also at the end of a Pipeline whose other steps look at one column at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from genrecourse.model.classifier import Classifier
    from genrecourse.table.encoding import Array

# transformers of scikit-learn that compute each of their columns from one column
BY_COLUMN = (
    "Binarizer",
    "KBinsDiscretizer",
    "MaxAbsScaler",
    "MinMaxScaler",
    "MissingIndicator",
    "OneHotEncoder",
    "OrdinalEncoder",
    "PowerTransformer",
    "QuantileTransformer",
    "RobustScaler",
    "SimpleImputer",
    "SplineTransformer",
    "StandardScaler",
    "TargetEncoder",
)
LOGISTIC = ("LogisticRegression", "LogisticRegressionCV")
LINEAR = ("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV")


@dataclass(frozen=True)
class LinearScore:
    """An output of a model that is a sum over features, and the scale that it is on.

    >>> LinearScore("score", lambda X: X["income"].to_numpy()).scale
    'score'
    """

    scale: Literal["score", "log-odds"]
    of: Callable[[pd.DataFrame], Array]


def linear_score(h: Classifier) -> LinearScore | None:
    """Return the output of h that is a sum over features; None: h is not known to have one.

    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from genrecourse.model.classifier import Classifier
    >>> X = pd.DataFrame({"income": [1.0, 2.0, 3.0, 4.0]})
    >>> linear_score(Classifier(LogisticRegression().fit(X, [0, 0, 1, 1]))).scale
    'log-odds'
    >>> linear_score(Classifier(lambda X: X["income"] / 4)) is None
    True
    """
    model = h.model
    owner = getattr(model, "__self__", None)  # of a bound method, such as LinearRegression.predict
    if owner is not None and getattr(model, "__name__", "") == "predict":
        return LinearScore("score", model) if _ends_in(owner, LINEAR) else None
    if not _ends_in(model, LOGISTIC) or len(model.classes_) != 2:
        return None
    favourable = h.is_favourable(model.classes_)
    if favourable.all() or not favourable.any():
        return None
    sign = 1.0 if favourable[1] else -1.0
    return LinearScore("log-odds", lambda X: sign * np.asarray(model.decision_function(X), float))


def _ends_in(model: Any, kinds: tuple[str, ...]) -> bool:
    """Return whether a model of these kinds comes last, and every step before is by column."""
    if _name(model) == "Pipeline":
        *before, (_, last) = model.steps
        return _ends_in(last, kinds) and all(_is_by_column(step) for _, step in before)
    return _name(model) in kinds


def _is_by_column(step: Any) -> bool:
    if step is None or step in ("passthrough", "drop"):
        return True
    if _name(step) == "FunctionTransformer":  # what a fitted "passthrough" is; else any function
        return step.func is None
    if _name(step) == "Pipeline":
        return all(_is_by_column(each) for _, each in step.steps)
    if _name(step) == "FeatureUnion":
        return all(_is_by_column(each) for _, each in step.transformer_list)
    if _name(step) == "ColumnTransformer":
        return all(_is_by_column(each) for _, each, _ in step.transformers_)
    return _name(step) in BY_COLUMN


def _name(model: Any) -> str:
    """Return the class of an object of scikit-learn; a class derived from it is another one."""
    kind = type(model)
    return kind.__name__ if kind.__module__.startswith("sklearn.") else ""
