"""TargetRange: a regressor as h, with a range of its predictions as the favourable outcome.

    h = TargetRange(model, X, at_least=2, at_most=4)   # "between 2 and 4"
    h = TargetRange(model, X, at_least=640)            # "at least 640"
    GenRe(h, schema).fit(X)

The score is 0.5 at the ends of the range, more inside and less outside. A prediction exactly at an
end is accepted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError, shown

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array


class TargetRange:
    """A function of a DataFrame: how far each prediction is inside the range, from 0 to 1.

    Args:
        model: a fitted regressor with `predict`, or a function of a DataFrame.
        X: some rows, such as the training rows. The standard deviation of their predictions is the
            distance that counts as far, unless the range itself is narrower.
        at_least, at_most: the ends of the range; one of them may be left out.

    Examples:
        >>> X = pd.DataFrame({"income": [10.0, 40.0, 80.0]})
        >>> h = TargetRange(lambda X: X["income"], X, at_least=40, at_most=60)
        >>> h(X).round(2).tolist()
        [0.12, 0.5, 0.17]
        >>> (h(X) > 0.5).tolist()
        [False, True, False]
    """

    def __init__(
        self,
        model: Any,
        X: pd.DataFrame,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ):
        ends = {"at_least": at_least, "at_most": at_most}
        for name, end in ends.items():
            if end is not None and not (isinstance(end, int | float) and math.isfinite(end)):
                raise UserError(f"TargetRange: {name} is {shown(end)}; give a finite number")
        if at_least is None and at_most is None:
            raise UserError("TargetRange: give at_least, at_most, or both")
        self.model = model
        self.low = -math.inf if at_least is None else float(at_least)
        self.high = math.inf if at_most is None else float(at_most)
        if not self.low < self.high:
            raise UserError(
                f"TargetRange: at_least is {at_least} and at_most is {at_most}; at_least must be "
                "the smaller one"
            )
        spread = float(np.std(self.predict(X))) or 1.0
        self.far = min(spread, (self.high - self.low) / 2)

    def __repr__(self) -> str:
        ends = [
            f"at_least={self.low:g}" if math.isfinite(self.low) else "",
            f"at_most={self.high:g}" if math.isfinite(self.high) else "",
        ]
        return f"TargetRange({type(self.model).__name__}, {', '.join(filter(None, ends))})"

    def predict(self, X: pd.DataFrame) -> Array:
        """Return (n,) predictions of the model."""
        ask = getattr(self.model, "predict", self.model)
        if not callable(ask):
            raise UserError(
                f"TargetRange: a {type(self.model).__name__} cannot predict; give a regressor with "
                "predict, or a function of a DataFrame"
            )
        found = np.asarray(ask(X), dtype=np.float64)
        found = found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found
        if found.shape != (len(X),):
            raise UserError(
                f"TargetRange: the model returned shape {found.shape} for {len(X)} rows; it should "
                "return one number for each row"
            )
        return found

    def __call__(self, X: pd.DataFrame) -> Array:
        """Return (n,) scores between 0 and 1; above 0.5 if the prediction is in the range."""
        predicted = self.predict(X)
        inside = np.minimum(predicted - self.low, self.high - predicted) / self.far
        score = 0.5 + 0.5 * inside / (1 + np.abs(inside))
        # an end belongs to the range, and h accepts only what is above its cutoff
        return np.where(inside >= 0, np.maximum(score, np.nextafter(0.5, 1)), score)
