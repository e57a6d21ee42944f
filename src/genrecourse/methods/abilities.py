"""What only some methods can do, as protocols that `isinstance` knows."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import pandas as pd


@runtime_checkable
class HasDensity(Protocol):
    """A method with a density. If `lam` is one of its options, `log_prob` takes it as well."""

    def log_prob(self, x_plus: pd.DataFrame, given: pd.DataFrame, **options: Any) -> pd.Series:
        """Return log R(x_plus | given), row by row."""


@runtime_checkable
class HasDraws(Protocol):
    """A method that can show the draws that it chooses from."""

    def draws(self, X: pd.DataFrame, *, rules: Any = None) -> pd.DataFrame:
        """Return the cost, log-likelihood and score of each draw, equally many for each row."""
