"""Growing spheres: random search in growing shells around x."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from genrecourse.methods._gradient_method import check_somebody_is_accepted
from genrecourse.methods._gradient_search import SURELY, Limits, attempt
from genrecourse.methods._sparsify import undo_needless
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.model.settings import DRAWS, FLAG, POSITIVE, Allowed

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array
    from genrecourse.table.noise import KeyedNoise, Words
    from genrecourse.table.schema import Schema

AT_ONCE = 65_536  # draws that h scores at once: bounds memory


class GrowingSpheres(Method):
    """Random draws around a person, ever farther, until the model accepts one.

    A shell is r <= ||z - x||_2 < r + step, and r grows by step. The result is the nearest draw that
    h accepts. Then changes that h does not need are undone, the smallest first.

    Laugel, Lesot, Marsala, Renard & Detyniecki, "Comparison-Based Inverse Classification for
    Interpretability in Machine Learning", IPMU 2018. It only uses the decisions of h.

    Weakness: with many features, few draws of a shell go in a good direction, so results are far
    from x. Nothing keeps them plausible.

    Differences from the original: the shells grow from zero, without a first phase that shrinks a
    ball; draws are made in Z and projected onto the rules, and a category changes if its columns
    move far enough; the search ends when the shell is beyond everything that the rules allow, and
    then the draw with the highest score of h is the result.

    n_draws: draws per shell.
    step: the thickness of a shell.
    sparse: undo changes that h does not need.

    >>> import pandas as pd
    >>> X = pd.DataFrame({"income": range(80), "debt": range(80, 0, -1)})
    >>> h = lambda X: X["income"].to_numpy() / 80
    >>> method = GrowingSpheres(h, n_draws=40, step=0.4).fit(X, X["income"] >= 40)
    >>> method.assess(X.head(2), method.recourse(X.head(2)))["status"].tolist()
    ['ok', 'ok']
    """

    allowed: ClassVar[dict[str, Allowed]] = {
        "n_draws": DRAWS,
        "step": POSITIVE,
        "sparse": FLAG,
    }

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        n_draws: int = 1000,
        step: float = 0.2,
        sparse: bool = True,
        random_state: int = 0,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.n_draws = n_draws
        self.step = step
        self.sparse = sparse

    @staticmethod
    def _test_params() -> dict[str, Any]:
        return {"n_draws": 40, "step": 0.4}

    def _fit(self, rows: TrainingRows) -> None:
        """Nothing is learned."""
        check_somebody_is_accepted(self._where("fit"), rows)

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {}, {}

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        pass

    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        low, high = Limits(self.problem_.encoder, self.problem_.rules).box(Z)
        farthest = np.linalg.norm(np.maximum(high - Z, Z - low), axis=1)
        n_shells = np.maximum(1, np.ceil(farthest / self.step))
        keys = noise.keys(Z)
        Z_plus, rank, left = (
            Z.copy(),
            attempt(self.problem_.confidence_derived(Z)),
            np.arange(len(Z)),
        )
        size, shell = max(1, AT_ONCE // self.n_draws), 0
        while len(left):
            for some in np.split(left, range(size, len(left), size)):
                drawn = self._draw(Z[some], low[some], high[some], shell, keys[some], noise)
                found, value = self._nearest(Z[some], drawn)
                better = value < rank[some]
                Z_plus[some[better]], rank[some[better]] = found[better], value[better]
            shell += 1
            left = left[
                (self.problem_.confidence_derived(Z_plus[left]) <= SURELY)
                & (n_shells[left] > shell)
            ]
        if self.sparse:
            Z_plus = undo_needless(
                Z,
                Z_plus,
                self.problem_.encoder,
                self.problem_.cost,
                self.problem_.confidence_derived,
            )
        return Z_plus

    def _draw(
        self, Z: Array, low: Array, high: Array, shell: int, keys: Words, noise: KeyedNoise
    ) -> Array:
        """Return (n, n_draws, D) uniform draws from a shell in the free columns, clipped."""
        width, n = Z.shape[1], self.n_draws
        count = n * (width + 1)
        towards = noise.normal(keys, (n, width), offset=shell * count)
        towards *= (high > low)[:, None, :]
        length = np.linalg.norm(towards, axis=2, keepdims=True)
        towards /= np.maximum(length, 1e-12)
        # uniform in volume, which grows with the radius to the power of the dimension
        power = np.maximum((high > low).sum(axis=1), 1.0)[:, None]
        share = noise.uniform(keys, (n,), offset=shell * count + n * width)
        inner = (shell / (shell + 1)) ** power
        radius = self.step * (shell + 1) * (inner + share * (1 - inner)) ** (1 / power)
        drawn = Z[:, None, :] + radius[:, :, None] * towards
        return np.clip(drawn, low[:, None, :], high[:, None, :])

    def _nearest(self, Z: Array, drawn: Array) -> tuple[Array, Array]:
        """Return the nearest accepted draw, or the one with the highest score; and its rank."""
        people = np.broadcast_to(Z[:, None, :], drawn.shape)
        flat = self.problem_.legal(people.reshape(-1, Z.shape[1]), drawn.reshape(-1, Z.shape[1]))
        legal = flat.reshape(drawn.shape)
        confidence = self.problem_.confidence_derived(flat).reshape(drawn.shape[:2])
        distance = np.linalg.norm(legal - people, axis=2)
        rank = np.where(confidence > SURELY, distance, attempt(confidence))
        first = rank.argmin(axis=1)
        rows = np.arange(len(Z))
        return legal[rows, first], rank[rows, first]
