"""DensityMethod: recourse from a trained density R_theta(x+ | x).

Effort "sample": a few draws, of which one is selected; if none is good enough, the person is
searched for. Effort "search": many draws compete with the nearest targets, a verifier selects, and
what was selected is refined. `sample`, `draws` and `log_prob` are the density's own verbs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, get_args

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
from genrecourse.methods.base import long_frame, long_index, long_like
from genrecourse.methods.request import check_lam_asked
from genrecourse.model.settings import (
    DRAWS,
    NOTHING,
    POSITIVE,
    WEIGHT,
    Allowed,
    Choice,
    Or,
    check_size,
    check_values,
)
from genrecourse.planning.diversity import pick_diverse
from genrecourse.planning.proposer import Proposals
from genrecourse.rules.policy import book_in_force
from genrecourse.table.encoding import Array, unchanged
from genrecourse.table.frames import to_pandas
from genrecourse.table.limits import DRAWS_AT_ONCE
from genrecourse.table.noise import KeyedNoise
from genrecourse.trust.score import Judged, Scored, expected_score, judge_candidates

if TYPE_CHECKING:
    from genrecourse.genre.bins import BinKind
    from genrecourse.genre.density import RecourseDensity
    from genrecourse.rules.book import RuleBook

SEARCH_DRAWS = 64  # draws that a search looks at ...
RETRIEVED = 32  # ... with so many nearest targets
OFFERED = 3  # different draws for each plan asked for, if several are
DRAWN_EACH = 4  # draws that these are chosen from, for each plan asked for
# for people whose first draws are not good enough: some more draws, and all of them if need be
SOME_DRAWS, SECOND_DRAWS, SECOND_TEMPERATURE = 4, 8, 0.5
SEARCH_TEMPERATURE = 1.0  # of a search's draws: they should differ
SCORED = 1024  # rows whose likelihood is computed together
DRAWN = ("cost", "log_likelihood", "score", "chosen")  # columns of `draws`


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

    @property
    def n(self) -> int:
        return self.draws.F.shape[1]

    def take(self, rows: np.ndarray, start: int, stop: int) -> Offers:
        """Return the draws from start to stop of some people."""
        which = np.broadcast_to(np.arange(start, stop), (len(rows), stop - start))
        draws, request = self.draws, self.request
        return replace(
            self,
            Z=self.Z[rows],
            F=self.F[rows],
            draws=Draws(
                *(part[rows, start:stop] for part in (draws.F, draws.log_prob, draws.log_weight))
            ),
            scored=self.scored.rows(rows).take(which),
            request=None if request is None else request.take(rows),
        )


class DensityMethod(VerifiedMethod):
    """Answers with the density that a subclass's `_fit` has trained.

    The subclass sets `density_`, `bars_`, `temperature_`, `margin_`, and the codes and edges of the
    targets (`genre.targets.Targets`), which decide whom they can help.
    """

    options: ClassVar[tuple[str, ...]] = (
        *("lam", "temperature", "sigma", "n_draws", "safety", "effort"),
        "rules",
    )
    allowed_options: ClassVar[dict[str, Allowed]] = {
        "temperature": POSITIVE,
        "sigma": WEIGHT,
        "n_draws": DRAWS,
        "effort": Choice(get_args(Effort)),
    }
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
        check_lam_asked(self._where(verb), options.get("lam"), self.density_.net.lam)
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
        found = self._answer(_Request(self, Z, noise, asked, rules))
        return self.problem_.encoder.from_features(found)

    def propose(self, Z: Array, noise: KeyedNoise, n: int, **options: Any) -> Proposals:
        """Return what recourse gives, then the best draws that differ in what they change."""
        effort, request = self._effort(options), options.get("rules")
        tried = self._n_drawn(options.get("n_draws"), None, effort)
        more: dict[str, Any] = {
            "tried": tried + (RETRIEVED if self.retrieve and effort == "search" else 0),
            "log_prob": lambda F_plus, F: self._log_prob(F_plus, F, options.get("lam")),
        }
        if n == 1:
            return replace(super().propose(Z, noise, n, **options), **more)
        asked = _Request(self, Z, noise, options, request)
        if effort == "search" or not self._can_search:
            offers = asked.offers()
            first = self._best(offers)
            others = self._refined(offers, self._diverse(offers, n))
            found = np.concatenate([first[:, None], others], axis=1)
        else:
            more["tried"] = tried + DRAWN_EACH * n
            offers, found = self._answer_with_others(asked, n)
        legal = self._legal_each(offers.F, found, request)
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
        return found

    def _refined(self, offers: Offers, found: Array) -> Array:
        """Return candidates (N, k, d) of the people, refined."""
        if not self.refine:
            return found
        return self._closer_each(offers.F, found, offers.safety, offers.request)

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
        first: int = 0,
        all_found: bool = True,
    ) -> Offers:
        """Draw all that recourse chooses from; what `options` lacks is as fitted.

        A search draws more, at SEARCH_TEMPERATURE, and retrieves the nearest targets. Rules leave
        little of what a density was taught, so draws under a request have this temperature, too.
        first: the number of the first draw.
        """
        F, effort = self.problem_.encoder.to_features(Z), self._effort(options)
        is_wide = effort == "search" or request is not None
        if is_wide and self.is_distilled_ and options.get("temperature") is None:
            options = {**options, "temperature": SEARCH_TEMPERATURE}
        n = self._n_drawn(options.get("n_draws"), request, effort)
        draws = self._draw(F, noise, n, options, request, first=first, all_found=all_found)
        safety = options.get("safety")
        safety = self.safety if safety is None else float(safety)
        offers = Offers(Z, F, draws, scored(self.problem_, Z, draws.F), request, safety, effort)
        return self._with_retrieved(offers) if effort == "search" else offers

    def _with_retrieved(self, offers: Offers) -> Offers:
        """Return the offers of a search: the draws and, after them, the nearest targets."""
        if not self.retrieve:
            return replace(offers, effort="search")
        found, _ = self._nearest(offers.Z, offers.F, RETRIEVED, offers.request)
        nothing = np.full(found.shape[:2], np.nan)  # a verifier needs no likelihoods
        return replace(
            offers,
            draws=Draws(
                np.concatenate([offers.draws.F, found], axis=1),
                np.concatenate([offers.draws.log_prob, nothing], axis=1),
                np.concatenate([offers.draws.log_weight, nothing], axis=1),
            ),
            scored=offers.scored.joined(scored(self.problem_, offers.Z, found)),
            effort="search",
        )

    def _judged(self, offers: Offers) -> Judged:
        """What the verifier says of every draw; meant for few draws."""
        assert self.verifier_ is not None
        bars = self.bars_ if offers.safety == self.safety else None
        return judge_candidates(offers.scored, self.verifier_, safety=offers.safety, bars=bars)

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
        if n is None:
            many = self.is_distilled_ and effort == "search"
            n = max(self.n_draws_, SEARCH_DRAWS) if many else self.n_draws_
        return n if request is None else max(n, PARTICLES)

    # ---- what it chooses ----------------------------------------------------------------------

    def _answer(self, asked: _Request) -> Array:
        """(N, d) what recourse gives."""
        if asked.effort == "search" or not self._can_search:
            return self._best(asked.offers())
        found = self._first_good(asked)
        return self._finished(asked, found)[:, 0]

    def _answer_with_others(self, asked: _Request, n: int) -> tuple[Offers, Array]:
        """Return the offers, and (N, 1 + k, d) what recourse gives, then draws that differ.

        Draws under a request's rules are many already, so the others are among them.
        """
        own = asked.n_first
        if asked.request is None:
            known = asked.drawn(own + DRAWN_EACH * n)
            offers = known.take(asked.everybody, own, known.n)
        else:
            known = offers = asked.offers()
        asked = replace(asked, ahead=known)
        others = self._diverse(offers, n)
        return offers, self._finished(asked, self._first_good(asked), others)

    def _first_good(self, asked: _Request) -> _Found:
        """Choose among a person's first draws and, if none is good enough, among more.

        `lost` are the people whom that does not help either.
        """
        offers = asked.offers()
        judged = self._judged(offers)
        best, every = judged.best, asked.everybody
        last = offers.take(judged.lost, 0, offers.n)
        found = _Found(offers.draws.F[every, best], judged.measures[every, best], judged.lost, last)
        for n in (SOME_DRAWS, SECOND_DRAWS):
            lost = found.lost
            if len(lost) and offers.n < SECOND_DRAWS:
                more = asked.more(lost, n)
                judged = self._judged(more)
                best, rows = judged.best, np.arange(len(lost))
                found.F[lost] = more.draws.F[rows, best]
                found.measures[lost] = judged.measures[rows, best]
                found = replace(found, lost=lost[judged.lost], last=more.take(judged.lost, 0, n))
        return found

    def _finished(self, asked: _Request, found: _Found, others: Array | None = None) -> Array:
        """(N, 1 + k, d) the choice of each person, refined, and then `others` (N, k, d), refined.

        Refining undoes the changes that are not needed. People without a good draw are searched
        for, and a search refines what it finds.
        """
        everything = found.F[:, None]
        if others is not None:
            everything = np.concatenate([everything, others], axis=1)
        N, k, _ = everything.shape
        kept = np.setdiff1d(np.arange(N), found.lost)
        if self.refine:
            todo = np.ones((N, k), dtype=bool)
            todo[found.lost, 0] = False
            known = np.full((N, k, 5), np.nan)
            known[kept, 0] = found.measures[kept]
            person, place = np.nonzero(todo)
            F, mine = asked.features[person], asked.request and asked.request.take(person)
            rows, measures = everything[person, place], known[person, place]
            everything[person, place] = self._closer(F, rows, asked.safety, mine, measures)
        if len(found.lost):
            everything[found.lost, 0] = self._best(self._with_retrieved(found.last))
        return everything

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
                most=self._most_candidates(offers.request),
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
            return self._judged(offers).best
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
            merit = self._judged(offers).score
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
        first: int = 0,
        all_found: bool,
    ) -> Draws:
        """Draw n times for each row of F; what `options` lacks is as fitted.

        request: the rules of each row; for people without rules, draw as if there were none.
        all_found: return all that the particles under a request found (`sample_constrained`).
        """
        check_size(type(self).__name__, len(own), n, "draws", DRAWS_AT_ONCE)
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
            draws = sample(self.density_, F, n, first=first, **how)
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
        if self.problem_.rules.binds_whole_rows:
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
        X: Any,
        n: int = 10,
        *,
        lam: float | None = None,
        temperature: float | None = None,
        sigma: float | None = None,
        rules: Any = None,
    ) -> Any:
        """Return n draws from R_theta(. | x) for each row, as a long frame indexed (row, draw).

        It is of the kind of X; one without an index has the columns `row` and `draw`.

        The options are those of `recourse`. Under rules the draws follow R_theta restricted to the
        rules (`genre/sample_constrained.py`); `draws` shows the effective sample size.
        """
        options: dict[str, Any] = {"lam": lam, "temperature": temperature, "sigma": sigma}
        self.check_ready("sample", options)
        check_values(self._where("sample"), {"n": n}, {"n": DRAWS})
        given, X = X, to_pandas(X, self.schema_)
        people = self.problem_.read(X)
        request = book_in_force(self.policy_, rules, people)
        encoder, like = self.problem_.encoder, people.X[[c for c in X.columns if c in people.X]]
        if len(X) == 0:
            return long_like(long_frame(encoder, like, people.Z, "draw"), given, X)
        noise = KeyedNoise(self.random_state)
        draws = self._draw(people.F, noise, n, options, request, all_found=False)
        Z_plus = encoder.from_features(draws.F.reshape(len(X) * n, -1))
        return long_like(long_frame(encoder, like, Z_plus, "draw"), given, X)

    def draws(
        self,
        X: Any,
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
        self.check_ready("draws", options)
        check_values(self._where("draws"), {"n": n}, {"n": Or(DRAWS, NOTHING)})
        problem, effort, X = self.problem_, self._effort({}), to_pandas(X, self.schema_)
        people = problem.read(X)
        request = book_in_force(self.policy_, rules, people)
        if request is not None and self.is_distilled_ and temperature is None:
            options["temperature"] = SEARCH_TEMPERATURE  # as `recourse` draws under rules
        if len(X) == 0:
            return pd.DataFrame(dict.fromkeys(DRAWN, ()), index=long_index(X, 1, "draw"))
        n, F, Z = self._n_drawn(n, request, effort), people.F, people.Z
        noise = KeyedNoise(self.random_state)
        draws = self._draw(F, noise, n, options, request, all_found=True)
        found = scored(problem, Z, draws.F)
        offers = Offers(Z, F, draws, found, request, self.safety, effort)
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

    def log_prob(self, x_plus: Any, given: Any, lam: float | None = None) -> pd.Series:
        """Return log R_theta(x_plus | given), row by row, at temperature 1 under the masks."""
        self.check_ready("log_prob", {"lam": lam})
        problem = self.problem_
        x_plus, given = (to_pandas(each, self.schema_) for each in (x_plus, given))
        F, F_plus = problem.read(given).F, problem.read(x_plus).F
        if len(F) != len(F_plus):
            raise UserError(
                f"{self._where('log_prob')}: x_plus has {len(F_plus)} rows, given has {len(F)}"
            )
        found = self._log_prob(F_plus, F, lam) if len(F) else np.zeros(0)
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


@dataclass(frozen=True)
class _Found:
    """What was chosen among a person's few draws."""

    F: Array  # (N, d)
    measures: Array  # (N, 5) the verifier's
    lost: np.ndarray  # people of whose draws none is good enough ...
    last: Offers  # ... and the draws that a search for them starts from


@dataclass(frozen=True)
class _Request:
    """People who ask a method, and the draws for them.

    Draws are numbered: the first ones, at the fitted temperature, and then more at
    SECOND_TEMPERATURE. Each is the same, whether it is drawn when needed or ahead with others.
    """

    method: DensityMethod
    Z: Array  # (N, D)
    noise: KeyedNoise
    options: Mapping[str, Any]
    request: RuleBook | None
    ahead: Offers | None = None  # draws that are known already

    @property
    def features(self) -> Array:
        """(N, d)"""
        return self.method.problem_.encoder.to_features(self.Z)

    @property
    def everybody(self) -> np.ndarray:
        return np.arange(len(self.Z))

    @property
    def effort(self) -> Effort:
        return self.method._effort(self.options)

    @property
    def safety(self) -> float:
        asked = self.options.get("safety")
        return self.method.safety if asked is None else float(asked)

    @property
    def n_first(self) -> int:
        return self.method._n_drawn(self.options.get("n_draws"), self.request, "sample")

    def offers(self) -> Offers:
        """Return the first draws of everybody."""
        if self.ahead is not None:
            return self.ahead.take(self.everybody, 0, self.n_first)
        return self._draw(self.everybody, self.options)

    def more(self, rows: np.ndarray, n: int) -> Offers:
        """Return n more draws of some people; asked for again, they are the same."""
        if self.ahead is not None:
            return self.ahead.take(rows, self.n_first, self.n_first + n)
        other = {"n_draws": n, "temperature": SECOND_TEMPERATURE}
        return self._draw(rows, {**self.options, **other}, first=self.n_first)

    def drawn(self, n: int) -> Offers:
        """Return n draws of everybody, drawn in one go."""
        own = self.options.get("temperature") or self.method.temperature_
        warmth = np.where(np.arange(n) < self.n_first, own, SECOND_TEMPERATURE)
        return self._draw(self.everybody, {**self.options, "n_draws": n, "temperature": warmth})

    def _draw(self, rows: np.ndarray, options: Mapping[str, Any], first: int = 0) -> Offers:
        mine = None if self.request is None else self.request.take(rows)
        return self.method._offers(self.Z[rows], self.noise, options, mine, first=first)
