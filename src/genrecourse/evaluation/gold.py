"""The gold judge of an evaluation, and further witnesses. No method may see any of them.

`GoldJudge` is the protocol's: a calibrated forest says whether the favourable outcome is likelier
than not, a local outlier factor on the rows it accepts says whether x_plus looks like accepted
people. `TrueJudge` takes its place where the mechanism behind the table is known. `Witnesses`
answer what the gold judge is weak in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.neighbors import LocalOutlierFactor

from genrecourse.errors import UserError
from genrecourse.table.encoding import Array, TableEncoder
from genrecourse.trust.judge import CrossFittedJudge, Judge, fit_lof
from genrecourse.trust.neighbours import Neighbours

Decides = Callable[[Array], np.ndarray]  # an answer for each row of Z


class GoldJudge(Judge):
    """The protocol's judge, fitted on all rows of a data set."""


class TrueJudge(Judge):
    """The judge of a table whose mechanism is known: probabilities are the true ones.

    Only what accepted people look like is learned still, from the rows that are truly likelier
    favourable than not.

    truth: from a table in original units to the probability of the favourable outcome.
    encoder, like: what makes such a table of Z; `like` (a row will do) lends its dtypes.
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
        """y is not looked at: outcomes are luck, the truth is known."""
        accepted = self.valid(Z)
        if accepted.sum() < 2:
            raise UserError(
                f"{int(accepted.sum())} of the {len(Z)} rows for a judge are truly likelier "
                "favourable than not; it needs two to know what accepted people look like"
            )
        self.lof_ = fit_lof(Z[accepted])
        return self

    def probability(self, Z: Array) -> Array:
        """(n,) true probability of the favourable outcome."""
        return np.asarray(self.truth(self.encoder.table(Z, self.like)), dtype=float)


@dataclass(frozen=True)
class Witnesses:
    """Who is asked besides the gold judge, where it is weak. No method may see them.

    The forest has memorised its rows, its outlier factor is fooled by rows that occur twice, and h
    is one draw of many.
    """

    retrained: Mapping[str, Decides]  # h trained again: by "seed", "bootstrap", "architecture"
    out_of_fold: CrossFittedJudge  # with the gold judge's settings
    accepted: Neighbours  # rows that the gold judge accepts, each once
    lof: LocalOutlierFactor  # of 20 neighbours among those
    training: Neighbours  # the training rows ...
    favourable: np.ndarray  # (n,) ... and whether their drawn outcome was favourable
