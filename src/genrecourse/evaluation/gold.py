"""The gold judge of an evaluation and further witnesses. No method may see any of them.

`GoldJudge` is the judge of the protocol: a calibrated forest decides whether the favourable outcome
is likelier than not, and a local outlier factor on the rows that the forest accepts decides whether
x_plus looks like accepted people. If the mechanism behind a table is known, `TrueJudge` replaces
the forest. `Witnesses` measure what the gold judge measures badly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sklearn.neighbors import LocalOutlierFactor

from genrecourse.errors import UserError
from genrecourse.table.encoding import Array, TableEncoder
from genrecourse.trust.judge import CrossFittedJudge, Judge, fit_lof

if TYPE_CHECKING:
    from genrecourse.trust.neighbours import Neighbours

Decides = Callable[[Array], np.ndarray]  # rows of Z -> one value per row


class GoldJudge(Judge):
    """The judge of the protocol, fitted on all rows of a data set.

    >>> Z = np.linspace(0, 1, 60)[:, None]
    >>> judge = GoldJudge(random_state=0).fit(Z, (Z[:, 0] > 0.4).astype(int))
    >>> judge.valid(np.array([[0.1], [0.9]]))
    array([False,  True])
    """


class TrueJudge(Judge):
    """The judge of a table whose mechanism is known: it uses the true probabilities.

    Only the local outlier factor is fitted, on the rows whose true probability is above one half.

    truth: takes a table in original units and returns the probability of the favourable outcome.
    encoder, like: turn rows of Z into such a table; `like` (one row is enough) has its dtypes.

    >>> from genrecourse.table.schema import Schema
    >>> X = pd.DataFrame({"income": [10.0, 20.0, 30.0, 40.0]})
    >>> encoder = TableEncoder(Schema.infer(X)).fit(X)
    >>> judge = TrueJudge(lambda X: X["income"].to_numpy() / 50, encoder, X)
    >>> judge.fit(encoder.encode(X)).valid(encoder.encode(X))
    array([False, False,  True,  True])
    """

    def __init__(
        self,
        truth: Callable[[pd.DataFrame], np.ndarray],
        encoder: TableEncoder,
        like: pd.DataFrame,
    ):
        self.truth = truth
        self.encoder = encoder
        self.like = like.iloc[:1]

    def fit(self, Z: Array, y: np.ndarray | None = None) -> TrueJudge:
        """Fit the local outlier factor; y is not used, since the true probabilities are known."""
        accepted = self.valid(Z)
        if accepted.sum() < 2:
            raise UserError(
                f"{int(accepted.sum())} of the {len(Z)} rows for a judge have a true probability "
                "above one half; it needs two to learn what accepted people look like"
            )
        self.lof_ = fit_lof(Z[accepted])
        return self

    def probability(self, Z: Array) -> Array:
        """Return (n,) the true probability of the favourable outcome."""
        return np.asarray(self.truth(self.encoder.table(Z, self.like)), dtype=float)


@dataclass(frozen=True)
class Witnesses:
    """Models that measure what the gold judge measures badly. No method may see them.

    The gold forest has memorised its rows, its outlier factor fails on duplicate rows, and h is
    only one of many models that training could have given.

    >>> from genrecourse.evaluation.examples import example_witnesses
    >>> example_witnesses().favourable.tolist()
    [False, True, False, True, True, True]
    """

    retrained: Mapping[str, Decides]  # h trained again: by "seed", "bootstrap", "architecture"
    out_of_fold: CrossFittedJudge  # with the settings of the gold judge
    accepted: Neighbours  # the distinct rows that the gold judge accepts
    lof: LocalOutlierFactor  # fitted on `accepted` with 20 neighbours
    training: Neighbours  # the training rows
    favourable: np.ndarray  # (n,) booleans: the drawn outcome of the training row is favourable
