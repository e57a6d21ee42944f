"""DensityMethod: recourse from a trained density R_theta(x+ | x).

It draws, lets the nearest targets compete with the draws where a verifier selects, selects, and
refines what was selected. `sample`, `draws` and `log_prob` are the density's own verbs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from genrecourse.errors import UserError
from genrecourse.genre.any_lam import USUAL_LAM
from genrecourse.genre.bins import BinKind
from genrecourse.genre.density import RecourseDensity
from genrecourse.genre.pairs import is_matched
from genrecourse.genre.sample import Draws, sample
from genrecourse.genre.sample_constrained import PARTICLES, sample_constrained
from genrecourse.genre.select import SelectRule, select
from genrecourse.methods._verified_method import VerifiedMethod
from genrecourse.methods.base import long_index
from genrecourse.methods.request import check_request
from genrecourse.planning.diversity import pick_diverse
from genrecourse.rules.book import RuleBook
from genrecourse.table.encoding import Array, unchanged
from genrecourse.table.noise import KeyedNoise

RETRIEVED = 32  # nearest targets that join the draws a verifier chooses from
FINALISTS = 3  # best offers, besides the best retrieved one, that are refined before the last word
OFFERED = 3  # draws for each plan asked for, where several are
SCORED = 1024  # rows whose likelihood is computed together


class DensityMethod(VerifiedMethod):
    """Answers with the density that a subclass's `_fit` has trained.

    That sets `density_`, `temperature_`, `margin_`, and what of the targets says whom they can
    help: `targets_codes_` and `targets_edges_` (`pairs.Targets`).
    """

    n_draws: int
    select: SelectRule
    cost_weight: float
    refine: bool
    sigma: float
    bins: BinKind
    density_: RecourseDensity
    temperature_: float
    margin_: float
    targets_codes_: np.ndarray
    targets_edges_: tuple[np.ndarray | None, ...]

    # ---- recourse -----------------------------------------------------------------------------

    def _check_request(self, verb: str, request: dict[str, Any]) -> None:
        super()._check_request(verb, request)
        check_request(self._where(verb), request, self.density_.net.lam)

    def _recourse(
        self,
        Z: Array,
        noise: KeyedNoise,
        *,
        lam: float | None = None,
        temperature: float | None = None,
        sigma: float | None = None,
        n_draws: int | None = None,
        safety: float | None = None,
        rules: RuleBook | None = None,
    ) -> Array:
        safety = self.safety if safety is None else safety
        how = {"lam": lam, "temperature": temperature, "sigma": sigma, "n_draws": n_draws}
        draws, known = self._candidates(Z, noise, how, rules)
        F_plus = self._best(Z, draws, known, safety, rules)
        return self.encoder_.from_features(F_plus)

    def _several(self, Z: Array, noise: KeyedNoise, n: int, **request: Any) -> Array:
        """What recourse gives, then the best draws that differ in what they change, refined."""
        if n == 1:
            return super()._several(Z, noise, n, **request)
        safety, rules = self._safety_asked(request), request.get("rules")
        draws, known = self._candidates(Z, noise, request, rules)
        F, first = self.encoder_.to_features(Z), self._best(Z, draws, known, safety, rules)
        merit = self._merit(draws, known, safety)
        moved = ~unchanged(F[:, None, :], draws.F) & ~self.rules_.derived.mask
        k = OFFERED * n
        found = np.repeat(F[:, None, :], k, axis=1)  # a place that stays empty changes nothing
        for i in range(len(F)):
            picks = pick_diverse(moved[i], merit[i], k, worse=np.inf)
            found[i, : len(picks)] = draws.F[i, picks]
        if self.refine:
            found = self._closer_each(Z, found, safety, rules)
        return self._legal_each(Z, np.concatenate([first[:, None, :], found], axis=1), rules)

    def _n_tried(self, request: dict[str, Any]) -> int:
        n = request.get("n_draws") or self.n_draws
        return n + (RETRIEVED if self._retrieves else 0)

    def _reason(self, Z: Array) -> np.ndarray:
        """`no-feasible-target`: no accepted training row shares this person's immutables."""
        F, known = self.encoder_.to_features(Z), (self.targets_codes_, self.targets_edges_)
        found = is_matched(F, *known, self.rules_)
        return np.where(found, "not-accepted", "no-feasible-target").astype(object)

    # ---- what it chooses from -----------------------------------------------------------------

    @property
    def _retrieves(self) -> bool:
        """Whether targets compete: only a verifier can weigh them against draws."""
        return self.retrieve and self.select == "verified"

    def _candidates(
        self, Z: Array, noise: KeyedNoise, how: dict[str, Any], request: RuleBook | None
    ) -> tuple[Draws, tuple[Array, Array]]:
        """All that recourse chooses from, drawn and retrieved, with h's confidence and the cost."""
        draws = self._draw(
            Z,
            noise,
            how.get("temperature"),
            self._n_drawn(how.get("n_draws"), request),
            lam=how.get("lam"),
            sigma=how.get("sigma"),
            request=request,
            all_found=True,
        )
        draws = self._offers(Z, draws, request)
        return draws, self._known(Z, draws)

    def _n_drawn(self, n: int | None, request: RuleBook | None) -> int:
        """How many draws a person; those under a request are particles, which must not be few."""
        n = n or self.n_draws
        return n if request is None else max(n, PARTICLES)

    def _offers(self, Z: Array, draws: Draws, request: RuleBook | None = None) -> Draws:
        """The draws and, where they compete, the nearest targets."""
        if not self._retrieves:
            return draws
        found, _ = self._nearest(Z, RETRIEVED, request)
        nothing = np.full(found.shape[:2], np.nan)  # the verifier does not ask for likelihoods
        return Draws(
            np.concatenate([draws.F, found], axis=1),
            np.concatenate([draws.log_prob, nothing], axis=1),
            np.concatenate([draws.log_weight, nothing], axis=1),
        )

    def _known(self, Z: Array, draws: Draws) -> tuple[Array, Array]:
        """h's confidence in each draw and its cost, both (N, n)."""
        N, n, d = draws.F.shape
        Z_plus = self.encoder_.from_features(draws.F.reshape(-1, d))
        confidence = self._confidence(Z_plus).reshape(N, n)
        return confidence, self.cost_(Z[:, None, :], Z_plus.reshape(N, n, -1))

    # ---- what it chooses ----------------------------------------------------------------------

    def _best(
        self,
        Z: Array,
        draws: Draws,
        known: tuple[Array, Array],
        safety: float,
        request: RuleBook | None,
    ) -> Array:
        """(N, d) what recourse gives, of all that was drawn and retrieved."""
        if self.refine and self.select == "verified":
            return self._best_refined(Z, draws.F, known, safety, request)
        pick = self._select(draws, known, self.margin_, safety)
        F_plus = draws.F[np.arange(len(Z)), pick]
        if self.refine:
            F_plus = self._closer(self.encoder_.to_features(Z), F_plus, safety, request)
        return F_plus

    def _best_refined(
        self,
        Z: Array,
        offers: Array,
        known: tuple[Array, Array],
        safety: float,
        request: RuleBook | None,
    ) -> Array:
        """Of each row's best offers and its best retrieved one, refined, the best."""
        rows, n = np.arange(len(Z))[:, None], offers.shape[1]
        score = self._expected(offers, known, self.margin_, safety)
        best = np.argsort(-score, axis=1, kind="stable")[:, :FINALISTS]
        if self.retrieve:
            own = n - RETRIEVED + score[:, n - RETRIEVED :].argmax(axis=1)
            best = np.concatenate([best, own[:, None]], axis=1)
        refined = self._closer_each(Z, offers[rows, best], safety, request)
        k, d = refined.shape[1:]
        merit = self._worth(np.repeat(Z, k, axis=0), refined.reshape(-1, d), safety)
        return np.asarray(refined[rows[:, 0], merit.reshape(-1, k).argmax(axis=1)])

    def _select(
        self, draws: Draws, known: tuple[Array, Array], margin: float, safety: float
    ) -> np.ndarray:
        """(N,) the draw of each row that is given back."""
        if self.select == "verified":
            return np.asarray(self._expected(draws.F, known, margin, safety).argmax(axis=1))
        confidence, cost = known
        return select(
            confidence,
            draws.log_prob + draws.log_weight,
            cost,
            rule=self.select,
            margin=margin,
            cost_weight=self.cost_weight,
        )

    def _merit(self, draws: Draws, known: tuple[Array, Array], safety: float) -> Array:
        """(N, n) what each draw is worth to selection; what h rejects is worth nothing."""
        if self.select == "verified":
            merit = self._expected(draws.F, known, self.margin_, safety)
        else:
            merit = draws.log_prob + draws.log_weight - self.cost_weight * known[1]
        return np.where(known[0] > 0.5, merit, -np.inf)

    # ---- draws --------------------------------------------------------------------------------

    def _draw(
        self,
        Z: Array,
        noise: KeyedNoise,
        temperature: float | None = None,
        n: int | None = None,
        *,
        lam: float | None = None,
        sigma: float | None = None,
        request: RuleBook | None = None,
        all_found: bool = False,
    ) -> Draws:
        """Draws for each row; what is None is as it was fitted.

        request: the rules of each row; whom none binds is drawn for as if nobody had any.
        all_found: of the particles under a request, all that they found (`sample_constrained`).
        """
        own, sigma = self.encoder_.to_features(Z), self.sigma if sigma is None else sigma
        how: dict[str, Any] = {
            "temperature": self.temperature_ if temperature is None else temperature,
            "noise": noise,
            "sigma": sigma,
            "lam": self._lam_asked(lam),
        }
        F, n = self.blank_.hide(own), n or self.n_draws
        if request is None:
            draws = sample(self.density_, F, n, **how)
        else:
            bound, free = np.flatnonzero(~request.is_unbound), np.flatnonzero(request.is_unbound)
            plain = sample(self.density_, F[free], n, **how)
            mine = request.take(bound)
            ruled = sample_constrained(self.density_, F[bound], n, mine, all_found=all_found, **how)
            draws = plain.joined(ruled, np.argsort(np.concatenate([free, bound])))
        draws = self._completed(own, draws, request)
        if self.bins == "uniform" or sigma > 0:
            # Alg. 2, line 8: values that no row has are made legal; a category is by its choice
            draws = replace(draws, F=self._legal_each(Z, draws.F, request))
        return draws

    def _completed(self, F: Array, draws: Draws, request: RuleBook | None) -> Draws:
        """Draws with what the density knows nothing of: x's own protected features, and what
        follows from what was drawn."""
        if self.blank_:
            draws = replace(draws, F=np.where(self.blank_.mask, F[:, None], draws.F))
        if self.rules_.derived:
            draws = replace(draws, F=self._settled(F[:, None], draws.F, request))
        return draws

    def _lam_asked(self, lam: float | None) -> float | None:
        """What the net is told: nothing, if it was trained for one lam only."""
        if self.density_.net.lam != "any":
            return None
        return USUAL_LAM if lam is None else float(lam)

    # ---- the density's own verbs --------------------------------------------------------------

    def sample(
        self,
        X: pd.DataFrame,
        n: int = 10,
        *,
        lam: float | None = None,
        temperature: float | None = None,
        sigma: float | None = None,
        rules: Any = None,
    ) -> pd.DataFrame:
        """n draws from R_theta(. | x) for each row, as a long frame indexed (row, draw).

        The options are those of `recourse`. Under rules they follow R_theta restricted to the
        rules (`genre/within.py`); `draws` tells the effective sample size.
        """
        self._check_fitted("sample")
        request: dict[str, Any] = {"lam": lam, "temperature": temperature, "sigma": sigma}
        self._check_request("sample", {**request, "n_draws": n})
        Z, rules = self.encoder_.encode(X), self._compiled(rules, X)
        draws = self._draw(Z, KeyedNoise(self.random_state), n=n, request=rules, **request)
        Z_plus = self.encoder_.from_features(draws.F.reshape(len(X) * n, -1))
        return self._long(X, Z_plus, "draw")

    def draws(
        self,
        X: pd.DataFrame,
        n: int | None = None,
        *,
        lam: float | None = None,
        temperature: float | None = None,
        sigma: float | None = None,
        rules: Any = None,
    ) -> pd.DataFrame:
        """The draws that `recourse` chooses from: cost, log_likelihood, score and `chosen` of each.

        Indexed (row, draw), the draws being those of `sample`. n: as if `n_draws` were n. People
        whom h accepts already have no chosen draw: recourse leaves them as they are. Where rows are
        retrieved or refined, `recourse` may still do better than the chosen draw. The other options
        are those of `recourse`.

        Under rules these are the particles, 64 or more a row, and `effective_sample_size` is
        the least that they were worth on the way, before a resampling: few of many means that the
        rules left little of what R_theta would have drawn.
        """
        self._check_fitted("draws")
        request: dict[str, Any] = {"lam": lam, "temperature": temperature, "sigma": sigma}
        self._check_request("draws", {**request, "n_draws": n})
        Z, rules = self.encoder_.encode(X), self._compiled(rules, X)
        n = self._n_drawn(n, rules)
        draws = self._draw(
            Z, KeyedNoise(self.random_state), n=n, request=rules, all_found=True, **request
        )
        known = self._known(Z, draws)
        Z_plus = self.encoder_.from_features(draws.F.reshape(len(X) * n, -1))
        columns = {
            "cost": known[1].reshape(-1),
            "log_likelihood": draws.log_prob.reshape(-1),
            "score": self.classifier_.score_encoded(Z_plus, self.encoder_, self._like),
            "chosen": self._chosen(X, draws, known).reshape(-1),
        }
        if draws.ess is not None:
            # as `log_prob` has it: of R_theta under the schema's masks alone
            columns["log_likelihood"] = (draws.log_prob + draws.log_weight).reshape(-1)
            columns["effective_sample_size"] = draws.ess.repeat(n)
        return pd.DataFrame(columns, index=long_index(X, n, "draw"))

    def _chosen(self, X: pd.DataFrame, draws: Draws, known: tuple[Array, Array]) -> np.ndarray:
        """(N, n) booleans: the draw that selection takes for each person whom h rejects."""
        pick = self._select(draws, known, self.margin_, self.safety)
        chosen = np.arange(draws.F.shape[1]) == pick[:, None]
        return np.asarray(chosen & ~self.classifier_.accepts(self._ordered(X))[:, None])

    def log_prob(
        self, x_plus: pd.DataFrame, given: pd.DataFrame, lam: float | None = None
    ) -> pd.Series:
        """log R_theta(x_plus | given), row by row, at temperature 1 under the schema's masks."""
        self._check_fitted("log_prob")
        self._check_request("log_prob", {"lam": lam})
        X, X_plus = self._ordered(given), self._ordered(x_plus)
        if len(X) != len(X_plus):
            raise UserError(
                f"{self._where('log_prob')}: x_plus has {len(X_plus)} rows, given has {len(X)}"
            )
        F, F_plus = self.encoder_.features(X), self.encoder_.features(X_plus)
        kept = unchanged(F, F_plus)[:, self.blank_.mask].all(axis=1)
        F, F_plus = self.blank_.hide(F), self.blank_.hide(F_plus)
        parts = [
            self.density_.log_prob(
                torch.as_tensor(F_plus[i : i + SCORED]),
                torch.as_tensor(F[i : i + SCORED]),
                self._lam_asked(lam),
            )
            for i in range(0, len(F), SCORED)
        ]
        found = np.where(kept, torch.cat(parts).numpy(), -np.inf)
        return pd.Series(found, index=X.index, name="log_prob")
