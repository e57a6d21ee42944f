"""C-CHVAE: random search in growing shells in the latent space of a conditional VAE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from genrecourse.methods._gradient_method import check_somebody_is_accepted
from genrecourse.methods._gradient_search import REJECTED, cheapest_valid, chunks
from genrecourse.methods._vae import VAE, VAEConfig, as_inputs, fit_vae, in_chunks, restore_vae
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.model.artifact import weights
from genrecourse.model.settings import COUNT, DRAWS, POSITIVE, Allowed, Record

if TYPE_CHECKING:
    from genrecourse.rules.book import RuleBook
    from genrecourse.table.encoding import Array
    from genrecourse.table.noise import KeyedNoise
    from genrecourse.table.schema import Schema

MORE_SHELLS = 9  # after the first with an accepted draw, if several candidates are wanted
CHUNK_DRAWS = 8192  # rows decoded and scored at once: bounds memory and fixes the shape


class CCHVAE(Method):
    """Random draws around a person in the latent space of a VAE, until one is accepted.

        u = E(x) + r * e,  e uniform on the sphere,  r uniform in [t * step, (t + 1) * step]
        x+ = argmin C(x, D(u, x_given))  over the draws of shell t with h > 0.5;  t = 0, 1, 2, ...

    Pawelczyk, Broelemann & Kasneci, "Learning Model-Agnostic Counterfactual Explanations for
    Tabular Data", WWW 2020.

    Weakness: every feature of x+ is decoded, so all features move by the reconstruction error of
    the VAE, and results are pulled towards dense regions of the data, farther than necessary. A
    few draws cover little of a shell in eight dimensions, so there are often much cheaper rows.

    Differences from the original: a draw is projected onto the rules before h scores it, so h has
    accepted exactly the result; latent distance decides between shells, and cost within a shell;
    the VAE is one network for numbers and categories. h may be any model, since no gradients are
    used.

    n_draws: draws per shell.
    step: the thickness of a shell, in standard deviations of the latent prior.
    max_iterations: the largest number of shells; then the draw with the highest score of h is used.
    vae: sizes and training of the VAE.

    >>> import pandas as pd
    >>> X = pd.DataFrame({"income": range(80), "debt": range(80, 0, -1)})
    >>> h = lambda X: X["income"].to_numpy() / 80
    >>> method = CCHVAE(
    ...     h, n_draws=20, step=0.3, vae=VAEConfig(hidden=(16,), n_latent=3, max_steps=100)
    ... ).fit(X, X["income"] >= 40)
    >>> method.assess(X.head(2), method.recourse(X.head(2)))["status"].tolist()
    ['ok', 'ok']
    """

    _records: ClassVar[dict[str, type[Any]]] = {"vae": VAEConfig}

    allowed: ClassVar[dict[str, Allowed]] = {
        "n_draws": DRAWS,
        "step": POSITIVE,
        "max_iterations": COUNT,
        "vae": Record(VAEConfig),
    }

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        n_draws: int = 100,
        step: float = 0.1,
        max_iterations: int = 1000,
        vae: VAEConfig = VAEConfig(),  # noqa: B008 - frozen
        random_state: int = 0,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.n_draws = n_draws
        self.step = step
        self.max_iterations = max_iterations
        self.vae = vae

    @staticmethod
    def _test_params() -> dict[str, Any]:
        """Return quick settings for the checks of the contract."""
        return {
            "n_draws": 20,
            "step": 0.3,
            "max_iterations": 20,
            "vae": VAEConfig(hidden=(16,), n_latent=3, max_steps=100),
        }

    def _fit(self, rows: TrainingRows) -> None:
        check_somebody_is_accepted(self._where("fit"), rows)
        self.problem_.check_changeable(self._where("fit"))
        self.vae_, self.fit_report_ = fit_vae(
            self.problem_, VAE, self.vae, self.random_state, as_inputs(rows.Z)
        )

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"report": self.fit_report_}, weights(self.vae_)

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.fit_report_ = state["report"]
        self.vae_ = restore_vae(self.problem_, VAE, self.vae, arrays)

    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        return self._first_accepted(Z, noise, None)[0]

    def candidates(
        self, Z: Array, noise: KeyedNoise, n: int, rules: RuleBook | None = None
    ) -> Array:
        """Return (N, n, D) draws that h accepts, `recourse`'s first.

        They come from the first shell in which h accepts a draw and from up to MORE_SHELLS after
        it, shell by shell, the cheapest of a shell first. If there are fewer than n, recourse's
        answer fills the remaining places. rules: of a request; a draw is projected onto them too.
        """
        first, shell = self._first_accepted(Z, noise, rules)
        centre = in_chunks(self.vae_.encode, Z)
        found, count = np.repeat(first[:, None], n, axis=1), np.zeros(len(Z), dtype=int)
        for more in range(1 + MORE_SHELLS):
            ahead = shell + more
            left = np.flatnonzero((shell >= 0) & (ahead < self.max_iterations) & (count < n))
            for rows, n_real in chunks(len(left), self._at_once()):
                some = left[rows]
                mine = None if rules is None else rules.take(some)
                offers, rank = self._ranked(Z[some], centre[some], ahead[some], noise, mine)
                for i, person in enumerate(some[:n_real]):
                    order = rank[i].argsort(kind="stable")[: int((rank[i] < REJECTED).sum())]
                    start = count[person]
                    count[person] = end = min(n, start + len(order))
                    found[person, start:end] = offers[i, order[: end - start]]
        return found

    def _first_accepted(
        self, Z: Array, noise: KeyedNoise, rules: RuleBook | None
    ) -> tuple[Array, np.ndarray]:
        """Return the answer (N, D), and the shell (N,) it was found in; -1: h accepts no draw."""
        centre = in_chunks(self.vae_.encode, Z)
        Z_plus, best = Z.copy(), np.full(len(Z), np.inf)
        first = np.full(len(Z), -1)
        left, shell = np.arange(len(Z)), 0
        while len(left) and shell < self.max_iterations:
            # if few people are left, search several shells of each at once
            several = max(1, self._at_once() // len(left))
            ahead = np.arange(shell, min(shell + several, self.max_iterations))
            person = np.repeat(left, len(ahead))
            mine = None if rules is None else rules.take(person)
            offer, rank = self._search(
                Z[person], centre[person], np.tile(ahead, len(left)), noise, mine
            )
            rank = rank.reshape(len(left), len(ahead))
            flipped = rank < REJECTED
            pick = np.where(flipped.any(1), flipped.argmax(1), rank.argmin(1))
            found = np.arange(len(left)), pick
            better = rank[found] < best[left]
            Z_plus[left[better]] = offer.reshape(*rank.shape, -1)[found][better]
            best[left[better]] = rank[found][better]
            done = flipped.any(1)
            first[left[done]] = ahead[pick[done]]
            left, shell = left[~done], shell + len(ahead)
        return Z_plus, first

    def _at_once(self) -> int:
        """Return how many people, or shells of one person, are searched at once."""
        return max(1, CHUNK_DRAWS // self.n_draws)

    def _search(
        self,
        Z: Array,
        centre: Array,
        shell: np.ndarray,
        noise: KeyedNoise,
        rules: RuleBook | None,
    ) -> tuple[Array, Array]:
        """Return the best draw (n, D) of each person and shell, and its rank (n,)."""
        parts = []
        for rows, n_real in chunks(len(Z), self._at_once()):
            mine = None if rules is None else rules.take(rows)
            offers, rank = self._ranked(Z[rows], centre[rows], shell[rows], noise, mine)
            found = np.arange(len(rows)), rank.argmin(axis=1)
            parts.append((offers[found][:n_real], rank[found][:n_real]))
        best, rank = (np.concatenate(part) for part in zip(*parts, strict=True))
        return best, rank

    def _ranked(
        self,
        Z: Array,
        centre: Array,
        shell: np.ndarray,
        noise: KeyedNoise,
        rules: RuleBook | None,
    ) -> tuple[Array, Array]:
        """Return legal rows (n, draws, D) decoded from each shell, and their ranks (n, draws)."""
        u = self._draws(centre, shell, noise.keys(np.column_stack([Z, shell])), noise)
        n, draws, k = u.shape
        repeated = np.repeat(Z, draws, axis=0)
        decoded = in_chunks(self.vae_.decode, u.reshape(-1, k), repeated, size=len(repeated))
        mine = None if rules is None else rules.take(np.repeat(np.arange(n), draws))
        legal = self.problem_.legal(repeated, decoded, mine)
        confidence = self.problem_.confidence_derived(legal).reshape(n, draws)
        offers = legal.reshape(n, draws, -1)
        return offers, cheapest_valid(self.problem_.cost)(offers, Z[:, None, :], confidence)

    def _draws(
        self, centre: Array, shell: np.ndarray, keys: np.ndarray, noise: KeyedNoise
    ) -> Array:
        """Return (n, draws, k) latent points, each in its shell around its centre."""
        k = centre.shape[1]
        direction = noise.normal(keys, (self.n_draws, k))
        direction /= np.linalg.norm(direction, axis=2, keepdims=True)
        fraction = noise.uniform(keys, (self.n_draws, 1), offset=self.n_draws * k)
        radius = self.step * (shell[:, None, None] + fraction)
        return np.asarray(centre[:, None, :] + radius * direction)
