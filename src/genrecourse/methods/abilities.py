"""What only some methods can do, as protocols that `isinstance` knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pandas as pd

if TYPE_CHECKING:
    from genrecourse.rules.book import RuleBook
    from genrecourse.table.encoding import Array
    from genrecourse.table.noise import KeyedNoise


@runtime_checkable
class HasDensity(Protocol):
    """A method with a density. If `lam` is one of its options, `log_prob` takes it as well.

    >>> from genrecourse import GenRe, NearestNeighbour
    >>> isinstance(GenRe(), HasDensity), isinstance(NearestNeighbour(), HasDensity)
    (True, False)
    """

    def log_prob(self, x_plus: Any, given: Any, **options: Any) -> pd.Series:
        """Return log R(x_plus | given), row by row."""


@runtime_checkable
class HasDraws(Protocol):
    """A method that can show the draws that it chooses from.

    >>> from genrecourse import GenRe, NearestNeighbour
    >>> isinstance(GenRe(), HasDraws), isinstance(NearestNeighbour(), HasDraws)
    (True, False)
    """

    def draws(self, X: Any, *, rules: Any = None) -> pd.DataFrame:
        """Return the cost, log-likelihood and score of each draw, equally many for each row."""


@runtime_checkable
class HasCandidates(Protocol):
    """A method that finds many x_plus of a person at once, more cheaply than by repeating itself.

    >>> from genrecourse import METHODS
    >>> [isinstance(METHODS[name](), HasCandidates) for name in ("tabsyn_q", "cchvae", "revise")]
    [True, True, False]
    """

    def candidates(
        self, Z: Array, noise: KeyedNoise, n: int, rules: RuleBook | None = None
    ) -> Array:
        """Return (N, n, D) candidates of rejected people; they need not obey the rules."""
