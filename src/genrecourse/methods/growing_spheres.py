"""Growing spheres: random search in shells around x."""

from __future__ import annotations

from typing import Any

import numpy as np

from genrecourse.methods._gradient_method import check_somebody_is_accepted
from genrecourse.methods._gradient_search import SURELY, Limits, attempt
from genrecourse.methods._sparsify import undo_needless
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.model.settings import check_settings
from genrecourse.table.encoding import Array
from genrecourse.table.noise import KeyedNoise, Words
from genrecourse.table.schema import Schema

AT_ONCE = 65_536  # draws shown to h together: bounds memory


class GrowingSpheres(Method):
    """Random draws in shells around x that grow until h accepts one of them.

    A shell is r <= ||z - x||_2 < r + step, and r grows by step. Of the draws that h accepts the
    nearest is taken; then changes that h does not need are undone, the smallest first.

    Laugel, Lesot, Marsala, Renard & Detyniecki, "Comparison-Based Inverse Classification for
    Interpretability in Machine Learning", IPMU 2018. It asks h for decisions and nothing else.

    It fails where features are many: a shell is then all but empty of good directions, so answers
    are far and plausibility is nobody's concern.

    Departs from the original: it grows from nothing, and does not first shrink a ball; draws are in
    Z, within the rules, a category changing where its columns are carried far enough; growing ends
    where the shell has left all that the rules let a row reach, and the draw that h likes best is
    then the answer.

    n_draws: draws in each shell.
    step: its thickness.
    sparse: undo changes that h does not need.
    """

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
        check_settings(
            self._where("fit"), above_zero={"step": self.step}, counts={"n_draws": self.n_draws}
        )
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
        """(n, n_draws, D) evenly from a shell in the columns that may move, cut to the limits."""
        width, n = Z.shape[1], self.n_draws
        count = n * (width + 1)
        towards = noise.normal(keys, (n, width), offset=shell * count)
        towards *= (high > low)[:, None, :]
        length = np.linalg.norm(towards, axis=2, keepdims=True)
        towards /= np.maximum(length, 1e-12)
        # the volume within a radius grows with its power of the dimension
        power = np.maximum((high > low).sum(axis=1), 1.0)[:, None]
        share = noise.uniform(keys, (n,), offset=shell * count + n * width)
        inner = (shell / (shell + 1)) ** power
        radius = self.step * (shell + 1) * (inner + share * (1 - inner)) ** (1 / power)
        drawn = Z[:, None, :] + radius[:, :, None] * towards
        return np.clip(drawn, low[:, None, :], high[:, None, :])

    def _nearest(self, Z: Array, drawn: Array) -> tuple[Array, Array]:
        """The accepted draw next to x, or the one that h likes best; and its rank."""
        people = np.broadcast_to(Z[:, None, :], drawn.shape)
        flat = self.problem_.legal(people.reshape(-1, Z.shape[1]), drawn.reshape(-1, Z.shape[1]))
        legal = flat.reshape(drawn.shape)
        confidence = self.problem_.confidence_derived(flat).reshape(drawn.shape[:2])
        distance = np.linalg.norm(legal - people, axis=2)
        rank = np.where(confidence > SURELY, distance, attempt(confidence))
        first = rank.argmin(axis=1)
        rows = np.arange(len(Z))
        return legal[rows, first], rank[rows, first]
