"""DensityMethod: recourse from a trained density R_theta(x+ | x).

Effort "sample": a few draws, of which one is selected; if none is good enough, the person is
searched for. Effort "search": many draws compete with the nearest targets, a verifier selects, and
what was selected is refined. `sample`, `draws` and `log_prob` are the density's own verbs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import torch

from genrecourse.errors import UserError
from genrecourse.genre.any_lam import USUAL_LAM
from genrecourse.genre.sample import Draws, sample
from genrecourse.genre.sample_constrained import PARTICLES, sample_constrained
from genrecourse.genre.search import scored, search
from genrecourse.genre.select import Effort, SelectRule, select
from genrecourse.genre.targets import is_matched
from genrecourse.methods._verified_method import VerifiedMethod
from genrecourse.methods.base import long_frame, long_index
from genrecourse.methods.request import check_request
from genrecourse.planning.diversity import pick_diverse
from genrecourse.planning.proposer import Proposals
from genrecourse.rules.policy import rules_in_force
from genrecourse.table.encoding import Array, unchanged
from genrecourse.table.noise import KeyedNoise
from genrecourse.trust.score import Judged, Scored, expected_score, judge_candidates

if TYPE_CHECKING:
    from genrecourse.genre.bins import BinKind
    from genrecourse.genre.density import RecourseDensity
    from genrecourse.rules.book import RuleBook
    from genrecourse.trust.verifier import Verifier

SEARCH_DRAWS = 64  # draws that a search looks at ...
RETRIEVED = 32  # ... with so many nearest targets
OFFERED = 3  # different draws for each plan asked for, if several are
DRAWN_EACH = 8  # draws that these are chosen from, for each plan asked for
SECOND_DRAWS, SECOND_TEMPERATURE = 8, 0.5  # for people whose first draws are not good enough
LAST_DRAWS = 16  # of the search for people whose second draws are not good enough either
SEARCH_TEMPERATURE = 1.0  # of a search's draws: they should differ
SCORED = 1024  # rows whose likelihood is computed together


@dataclass(frozen=True)
class Offers:
    """What recourse chooses from for rows Z (N, D): draws and, if they compete, nearest targets."""

    Z: Array  # (N, D) the people
    F: Array  # (N, d)
    draws: Draws  # retrieved targets come last, without likelihoods
    scored: Scored
    request: RuleBook | None
    safety: float
    effort: Effort
    verifier: Verifier | None
    bars: Array | None  # (5,) what makes a draw good enough; None: the verifier's thresholds

    @cached_property
    def judged(self) -> Judged:
        """What the verifier says of every draw; meant for few draws."""
        assert self.verifier is not None
        known = (self.scored, self.verifier)
        return judge_candidates(*known, safety=self.safety, bars=self.bars)

    @property
    def best(self) -> Array:
        """(N, d) the best draw of each person, those that are good enough first."""
        place = self.judged.merit.argmax(axis=1)
        return np.asarray(self.draws.F[np.arange(len(self.Z)), place])

    @property
    def lost(self) -> np.ndarray:
        """The people of whose draws none is good enough."""
        return np.flatnonzero(~self.judged.reaches.any(axis=1))


class DensityMethod(VerifiedMethod):
    """Answers with the density that a subclass's `_fit` has trained.

    The subclass sets `density_`, `bars_`, `temperature_`, `margin_`, and the codes and edges of the
    targets (`genre.targets.Targets`), which decide whom they can help.
    """

    options: ClassVar[tuple[str, ...]] = (
        *("lam", "temperature", "sigma", "n_draws", "safety", "effort"),
        "rules",
    )
    chosen: ClassVar[tuple[str, ...]] = ("gamma", "temperature", "margin")

    n_draws_: int
    select: SelectRule
    cost_weight: float
    refine: bool
    sigma: float
    bins: BinKind
    density_: RecourseDensity
    bars_: Array | None  # what makes a draw good enough, if a search has taught the density
    temperature_: float
    margin_: float
    targets_codes_: np.ndarray
    targets_edges_: tuple[np.ndarray | None, ...]

    @property
    def is_distilled_(self) -> bool:
        """Whether a search has taught the density."""
        return self.bars_ is not None

    # ---- recourse -----------------------------------------------------------------------------

    def check_ready(self, verb: str, options: Mapping[str, Any]) -> None:
        super().check_ready(verb, options)
        check_request(self._where(verb), options, self.density_.net.lam)
        if options.get("effort") == "search" and not self._can_search:
            raise UserError(
                f"{self._where(verb)}: effort is 'search', but this model has no verifier to "
                f"search with (select={self.select!r}); fit one with select='verified'"
            )

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
        effort: Effort | None = None,
        rules: RuleBook | None = None,
    ) -> Array:
        how = {"lam": lam, "temperature": temperature, "sigma": sigma, "n_draws": n_draws}
        asked = {**how, "safety": safety, "effort": effort}
        found = self._answer(self._offers(Z, noise, asked, rules), noise, asked)
        return self.problem_.encoder.from_features(found)

    def propose(self, Z: Array, noise: KeyedNoise, n: int, **options: Any) -> Proposals:
        """Return what recourse gives, then the best draws that differ in what they change."""
        effort, asked = self._effort(options), dict(options)
        few = n > 1 and effort == "sample" and self._can_search
        if few:  # the draws of recourse are too few and too alike
            asked["n_draws"] = options.get("n_draws") or max(self.n_draws_, DRAWN_EACH * n)
            asked["temperature"] = options.get("temperature") or SECOND_TEMPERATURE
        tried = self._n_drawn(asked.get("n_draws"), None, effort)
        more: dict[str, Any] = {
            "tried": tried + (RETRIEVED if self.retrieve and effort == "search" else 0),
            "log_prob": lambda F_plus, F: self._log_prob(F_plus, F, options.get("lam")),
        }
        if n == 1:
            return replace(super().propose(Z, noise, n, **options), **more)
        request = options.get("rules")
        offers = self._offers(Z, noise, asked, request)
        own = self._offers(Z, noise, options, request) if few else offers
        first = self._answer(own, noise, options)
        found = np.concatenate([first[:, None], self._diverse(offers, n)], axis=1)
        legal = self._legal_each(offers.F, found, offers.request)
        return Proposals(legal, reason=lambda: self._reason(Z), **more)

    def _diverse(self, offers: Offers, n: int) -> Array:
        """(N, OFFERED * n, d) the best draws that differ in what they change."""
        F, draws = offers.F, offers.draws
        merit = self._merit(offers)
        moved = ~unchanged(F[:, None, :], draws.F) & ~self.problem_.rules.derived.mask
        k = OFFERED * n
        found = np.repeat(F[:, None, :], k, axis=1)  # an empty place changes nothing
        for i in range(len(F)):
            picks = pick_diverse(moved[i], merit[i], k, worse=np.inf)
            found[i, : len(picks)] = draws.F[i, picks]
        if self.refine:
            found = self._closer_each(F, found, offers.safety, offers.request)
        return found

    def _reason(self, Z: Array) -> np.ndarray:
        """`no-feasible-target`: no accepted training row shares this person's immutables."""
        F, known = self.problem_.encoder.to_features(Z), (self.targets_codes_, self.targets_edges_)
        found = is_matched(F, *known, self.problem_.rules)
        return np.where(found, "not-accepted", "no-feasible-target").astype(object)

    # ---- what it chooses from -----------------------------------------------------------------

    def _offers(
        self,
        Z: Array,
        noise: KeyedNoise,
        options: Mapping[str, Any],
        request: RuleBook | None = None,
        *,
        all_found: bool = True,
    ) -> Offers:
        """Draw all that recourse chooses from; what `options` lacks is as fitted.

        A search draws more, at SEARCH_TEMPERATURE, and retrieves the nearest targets.
        """
        F, effort = self.problem_.encoder.to_features(Z), self._effort(options)
        if effort == "search" and self.is_distilled_ and options.get("temperature") is None:
            options = {**options, "temperature": SEARCH_TEMPERATURE}
        n = self._n_drawn(options.get("n_draws"), request, effort)
        draws = self._draw(F, noise, n, options, request, all_found=all_found)
        if self.retrieve and effort == "search":
            found, _ = self._nearest(Z, F, RETRIEVED, request)
            nothing = np.full(found.shape[:2], np.nan)  # a verifier needs no likelihoods
            draws = Draws(
                np.concatenate([draws.F, found], axis=1),
                np.concatenate([draws.log_prob, nothing], axis=1),
                np.concatenate([draws.log_weight, nothing], axis=1),
            )
        safety = options.get("safety")
        safety = self.safety if safety is None else float(safety)
        found_scored = scored(self.problem_, Z, draws.F)
        bars = self.bars_ if safety == self.safety else None
        return Offers(Z, F, draws, found_scored, request, safety, effort, self.verifier_, bars)

    def _effort(self, options: Mapping[str, Any]) -> Effort:
        """Return the effort that was asked for, or the least one that serves the request.

        Draws of a distilled density follow the safety that it was taught with; another safety
        needs the verifier, and so does a density that was not distilled. Without a verifier there
        is nothing but draws.
        """
        asked, safety = options.get("effort"), options.get("safety")
        if not self._can_search:
            return "sample"
        if asked is not None:
            return "search" if asked == "search" else "sample"
        as_taught = safety is None or float(safety) == self.safety
        return "sample" if self.is_distilled_ and as_taught else "search"

    @property
    def _can_search(self) -> bool:
        return self.select == "verified" and self.verifier_ is not None

    def _n_drawn(self, n: int | None, request: RuleBook | None, effort: Effort) -> int:
        """Return how many draws a person gets; under a request they are particles, at least 64."""
        if not n:
            many = self.is_distilled_ and effort == "search"
            n = max(self.n_draws_, SEARCH_DRAWS) if many else self.n_draws_
        return n if request is None else max(n, PARTICLES)

    # ---- what it chooses ----------------------------------------------------------------------

    def _answer(self, offers: Offers, noise: KeyedNoise, options: Mapping[str, Any]) -> Array:
        """(N, d) what recourse gives: the best of the offers.

        If none of a person's few draws is good enough, draw again, and search for those whom that
        does not help. What is left of a draw's changes is needed: refining undoes the others.
        """
        if offers.effort == "search" or not self._can_search:
            return self._best(offers)
        found, lost, request = offers.best, offers.lost, offers.request

        def again(**other: Any) -> Offers:
            mine = None if request is None else request.take(lost)
            return self._offers(offers.Z[lost], noise, {**options, **other}, mine)

        if len(lost) and offers.draws.F.shape[1] < SECOND_DRAWS:
            second = again(n_draws=SECOND_DRAWS, temperature=SECOND_TEMPERATURE)
            found[lost] = second.best
            lost = lost[second.lost]
        kept = np.setdiff1d(np.arange(len(found)), lost)
        if self.refine and len(kept):
            mine = None if request is None else request.take(kept)
            found[kept] = self._closer(offers.F[kept], found[kept], offers.safety, mine)
        if len(lost):  # a search refines what it finds
            found[lost] = self._best(again(effort="search", n_draws=LAST_DRAWS))
        return found

    def _best(self, offers: Offers) -> Array:
        """(N, d) what recourse gives, of all that was drawn and retrieved."""
        if offers.effort == "search" and self.refine:
            assert self.verifier_ is not None
            return search(
                self.problem_,
                self.verifier_,
                offers.Z,
                offers.scored,
                safety=offers.safety,
                margin=self.margin_,
                retrieved=RETRIEVED if self.retrieve else 0,
                request=offers.request,
            ).best
        pick = self._select(offers, self.margin_)
        F_plus = np.asarray(offers.draws.F[np.arange(len(offers.Z)), pick])
        if self.refine and self.select != "verified":
            F_plus = self._closer(offers.F, F_plus, offers.safety, offers.request)
        return F_plus

    def _expected(self, offers: Offers, margin: float) -> Array:
        return expected_score(offers.scored, self.verifier_, safety=offers.safety, margin=margin)

    def _select(self, offers: Offers, margin: float) -> np.ndarray:
        """(N,) the draw of each row that is given back."""
        if offers.effort == "sample" and self._can_search:
            return np.asarray(offers.judged.merit.argmax(axis=1))
        if self.select == "verified":
            return np.asarray(self._expected(offers, margin).argmax(axis=1))
        return select(
            offers.scored.confidence,
            offers.draws.log_prob + offers.draws.log_weight,
            offers.scored.cost,
            rule=self.select,
            margin=margin,
            cost_weight=self.cost_weight,
        )

    def _merit(self, offers: Offers) -> Array:
        """(N, n) what each draw is worth to selection; -inf if h rejects it."""
        if offers.effort == "sample" and self._can_search:
            merit = offers.judged.merit
        elif self.select == "verified":
            merit = self._expected(offers, self.margin_)
        else:
            merit = offers.draws.log_prob + offers.draws.log_weight
            merit = merit - self.cost_weight * offers.scored.cost
        return np.where(offers.scored.confidence > 0.5, merit, -np.inf)

    def _sampled(
        self, Z: Array, temperature: float
    ) -> tuple[Scored, Callable[[float], np.ndarray]]:
        """Return the candidates of rows Z at a temperature, and what is selected at a margin."""
        noise = KeyedNoise(self.random_state)
        offers = self._offers(Z, noise, {"temperature": temperature}, all_found=False)
        return offers.scored, lambda margin: self._select(offers, margin)

    # ---- draws --------------------------------------------------------------------------------

    def _draw(
        self,
        own: Array,
        noise: KeyedNoise,
        n: int,
        options: Mapping[str, Any],
        request: RuleBook | None,
        *,
        all_found: bool,
    ) -> Draws:
        """Draw n times for each row of F; what `options` lacks is as fitted.

        request: the rules of each row; for people without rules, draw as if there were none.
        all_found: return all that the particles under a request found (`sample_constrained`).
        """
        asked = {name: value for name, value in options.items() if value is not None}
        sigma = asked.get("sigma", self.sigma)
        how: dict[str, Any] = {
            "temperature": asked.get("temperature", self.temperature_),
            "noise": noise,
            "sigma": sigma,
            "lam": self._lam_asked(asked.get("lam")),
        }
        F = self.problem_.protected.hide(own)
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
            # Alg. 2, line 8: make values legal that no row has; a chosen category always is
            draws = replace(draws, F=self._legal_each(own, draws.F, request))
        return draws

    def _completed(self, F: Array, draws: Draws, request: RuleBook | None) -> Draws:
        """Add what the density does not decode: x's own protected features, and derived ones."""
        protected = self.problem_.protected
        if protected:
            draws = replace(draws, F=np.where(protected.mask, F[:, None], draws.F))
        if self.problem_.rules.derived:
            draws = replace(draws, F=self.problem_.with_derived(F[:, None], draws.F, request))
        return draws

    def _lam_asked(self, lam: float | None) -> float | None:
        """Return the lam that the net reads: None if it was trained for one lam only."""
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
        """Return n draws from R_theta(. | x) for each row, as a long frame indexed (row, draw).

        The options are those of `recourse`. Under rules the draws follow R_theta restricted to the
        rules (`genre/sample_constrained.py`); `draws` shows the effective sample size.
        """
        options: dict[str, Any] = {"lam": lam, "temperature": temperature, "sigma": sigma}
        self.check_ready("sample", {**options, "n_draws": n})
        people = self.problem_.read(X)
        request = self.problem_.compile(rules_in_force(self.policy_, rules), people)
        noise = KeyedNoise(self.random_state)
        draws = self._draw(people.F, noise, n, options, request, all_found=False)
        Z_plus = self.problem_.encoder.from_features(draws.F.reshape(len(X) * n, -1))
        return long_frame(self.problem_.encoder, X, Z_plus, "draw")

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
        """Return the draws that `recourse` chooses from: cost, log_likelihood, score and `chosen`.

        Indexed (row, draw), the draws being those of `sample`. n: as if `n_draws` were n. People
        whom h accepts have no chosen draw: recourse leaves them unchanged. If rows are retrieved or
        refined, `recourse` may do better than the chosen draw. The other options are those of
        `recourse`.

        Under rules these are the particles, 64 or more a row, and `effective_sample_size` is the
        smallest on the way, before a resampling: if it is small, the rules left little of what
        R_theta would have drawn.
        """
        options: dict[str, Any] = {"lam": lam, "temperature": temperature, "sigma": sigma}
        self.check_ready("draws", {**options, "n_draws": n})
        problem, effort = self.problem_, self._effort({})
        people = problem.read(X)
        request = problem.compile(rules_in_force(self.policy_, rules), people)
        n, F, Z = self._n_drawn(n, request, effort), people.F, people.Z
        noise = KeyedNoise(self.random_state)
        draws = self._draw(F, noise, n, options, request, all_found=True)
        found = scored(problem, Z, draws.F)
        known = (request, self.safety, effort, self.verifier_, self.bars_)
        offers = Offers(Z, F, draws, found, *known)
        chosen = np.arange(n) == self._select(offers, self.margin_)[:, None]
        chosen &= people.rejected[:, None]
        score = self.classifier_.score_encoded(
            found.Z.reshape(len(X) * n, -1), problem.encoder, problem.like
        )
        columns = {
            "cost": found.cost.reshape(-1),
            "log_likelihood": draws.log_prob.reshape(-1),
            "score": score,
            "chosen": chosen.reshape(-1),
        }
        if draws.ess is not None:
            # as `log_prob` has it: of R_theta under the schema's masks alone
            columns["log_likelihood"] = (draws.log_prob + draws.log_weight).reshape(-1)
            columns["effective_sample_size"] = draws.ess.repeat(n)
        return pd.DataFrame(columns, index=long_index(X, n, "draw"))

    def log_prob(
        self, x_plus: pd.DataFrame, given: pd.DataFrame, lam: float | None = None
    ) -> pd.Series:
        """Return log R_theta(x_plus | given), row by row, at temperature 1 under the masks."""
        self.check_ready("log_prob", {"lam": lam})
        problem = self.problem_
        F, F_plus = problem.encoder.features(given), problem.encoder.features(x_plus)
        if len(F) != len(F_plus):
            raise UserError(
                f"{self._where('log_prob')}: x_plus has {len(F_plus)} rows, given has {len(F)}"
            )
        found = self._log_prob(F_plus, F, lam)
        return pd.Series(found, index=given.index, name="log_prob")

    def _log_prob(self, F_plus: Array, F: Array, lam: float | None) -> Array:
        """(n,) log R_theta of rows F_plus (n, d) given rows F (n, d)."""
        problem = self.problem_
        kept = unchanged(F, F_plus)[:, problem.protected.mask].all(axis=1)
        F, F_plus = problem.protected.hide(F), problem.protected.hide(F_plus)
        parts = [
            self.density_.log_prob(
                torch.as_tensor(F_plus[i : i + SCORED]),
                torch.as_tensor(F[i : i + SCORED]),
                self._lam_asked(lam),
            )
            for i in range(0, len(F), SCORED)
        ]
        return np.where(kept, torch.cat(parts).numpy(), -np.inf)
