"""GenRe: recourse as one forward sample of a trained density R_theta(x+ | x)."""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import torch

from genrecourse.artifact import fill, under, weights, within
from genrecourse.encoding import Array, unchanged
from genrecourse.errors import UserError
from genrecourse.genre.any_lam import LAM_RANGE, USUAL_LAM, AnyLamPairs, make_any_lam_pairs
from genrecourse.genre.bins import BinKind, Bins, make_bins
from genrecourse.genre.density import RecourseDensity
from genrecourse.genre.model import COMPACT, PAPER, NetConfig, RecourseNet, make_knots
from genrecourse.genre.pairs import (
    Pairs,
    Targets,
    lost_by_cap,
    make_pairs,
    make_targets,
    match_codes,
    nearest,
    nearest_within,
)
from genrecourse.genre.refine import refine
from genrecourse.genre.sample import Draws, sample
from genrecourse.genre.select import SelectRule, expected_score, select
from genrecourse.genre.within import PARTICLES, sample_within
from genrecourse.judge import CrossFittedJudge, trust
from genrecourse.methods.auto import choose_gamma, clean
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.methods.request import Lam, check_lam, check_request, check_safety
from genrecourse.noise import KeyedNoise
from genrecourse.requests import RequestRules
from genrecourse.schema import Schema
from genrecourse.spread import spread
from genrecourse.training import TrainingPlan, TrainingReport, train
from genrecourse.verifier import Verifier

# The grid that "auto" searches: fixed, the same for every data set.
TEMPERATURE_GRID = (1.0, 0.5)  # the first stands unless another is clearly better
MARGIN_GRID = (1.0, 0.0)  # the one that the targets had (gamma), or none (0.5); likewise
CLEARLY = 0.02  # what a few hundred rows with few distinct x_plus can tell apart
BARREN = 20  # batches in a row without a single pair to learn from before giving up
REFINED = 20_000  # pairs that are refined, each source having its share ...
REFINED_EACH = 10  # ... of at most so many
RETRIEVED = 32  # nearest targets that join the draws a verifier chooses from
FINALISTS = 3  # best offers, besides the best retrieved one, that are refined before the last word
OFFERED = 3  # draws for each plan asked for, where several are
LOOKED_AT = 300  # sources that the automatic choices look at, held-out ones first


@dataclass(frozen=True)
class Training:
    """How long and how fast R_theta learns."""

    epochs: int = 70  # passes over the sources ...
    bounds: tuple[int, int] | None = (500, 1600)  # ... but at least and at most so many batches
    steps: int | None = None  # exactly so many batches, whatever the sources
    batch_size: int = 256
    lr: float = 2e-3
    weight_decay: float = 0.01
    schedule: Literal["constant", "one-cycle"] = "one-cycle"
    held_out: float = 0.1  # share of the sources kept for the held-out loss and "auto"
    patience: int | None = 6

    def n_steps(self, n_sources: int) -> int:
        """How many batches that is."""
        per_epoch = max(1, n_sources // self.batch_size)
        low, high = self.bounds or (1, 10**9)
        return self.steps or min(max(self.epochs * per_epoch, low), high)


# The settings of the paper; `genre-paper` has all but the size of the net.
PAPER_SETTINGS: dict[str, Any] = {
    "gamma": 0.7,
    "bins": "uniform",
    "keep": False,
    "temperature": 0.1,  # tau = 10
    "margin": 0.5,
    "select": "paper",
    "clean": False,
    "refine": False,
    "retrieve": False,
    "n_draws": 10,
}
PAPER_PRESET: dict[str, Any] = {
    **PAPER_SETTINGS,
    "net": PAPER,
    "training": Training(
        epochs=2000,
        bounds=None,
        batch_size=2048,
        lr=1e-4,
        weight_decay=0.0,
        schedule="constant",
        patience=None,
    ),
}


class GenRe(Method):
    """Trains R_theta(x+ | x), then samples it and selects.

        R(x+ | x)  ∝  exp(-lam * C(x, x+)) * P(x+ | favourable) * [x+ is valid]           (Eq. 5)

    Garg, Nagalapatti & Sarawagi, "From Search to Sampling: Generative Models for Robust Algorithmic
    Recourse", ICLR 2025.

    Parameters
    ----------
    lam: how much a unit of cost weighs against plausibility. "any": one model for every lam from
        0.5 to 10, told which at each request: `recourse(X, lam=2.5)`; 5 if not told. What is chosen
        automatically is then chosen at 5.
    gamma: how sure h must be of a training target, on the scale where 0.5 is h's cutoff; "auto":
        chosen on training rows without training a model.
    temperature, margin: of sampling and selection; "auto": chosen with the one model trained, on
        held-out rejected training rows, by a judge that never saw what it scores.
    n_draws: how many samples the selection chooses from.
    select: among the draws that h accepts with margin: "verified", the best expected Score by a
        verifier fitted on the training rows; "likelihood", the likeliest and cheapest. "paper":
        the draw that h likes best.
    cost_weight: extra price of cost in select="likelihood"; log R already holds -lam * C.
    refine: move the drawn pairs towards x while the verifier lets them, before training; and the
        x_plus selected likewise. False: the pairs of the paper.
    retrieve: let the nearest targets compete with the draws where a verifier selects.
    safety: from as cheap as possible (0) to as safe as possible (1): how much validity under noise
        and the verifier's bars count in refining and selection.
    clean: leave out of D+ what a judge that never saw it calls unlikely or outlying.
    sigma: noise added to sampled numbers, on the [0, 1] scale (Algorithm 2, line 6).
    bins, n_bins, keep: the choices of a number; keep is the choice "as x has it".
    top_k, max_targets, max_sources: cuts that bound time and memory; the estimate is consistent
        only as the first two grow, and `fit_report_` says what mass they lose. lam="any" needs no
        top_k: it draws from all targets.
    sources: "labelled", rejected rows whose outcome was unfavourable too (the paper); "rejected",
        all rejected rows.
    net, training: sizes and speed; `PAPER_PRESET` holds the paper's.
    """

    _records: ClassVar[dict[str, type[Any]]] = {"net": NetConfig, "training": Training}
    _keeps_ground = True
    _knows_roles = True

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        lam: Lam = 5.0,
        gamma: float | Literal["auto"] = "auto",
        temperature: float | Literal["auto"] = "auto",
        margin: float | Literal["auto"] = "auto",
        n_draws: int = 64,
        select: SelectRule = "verified",
        cost_weight: float = 3.0,
        refine: bool = True,
        retrieve: bool = True,
        safety: float = 0.5,
        clean: bool = True,
        sigma: float = 0.0,
        bins: BinKind = "quantile",
        n_bins: int = 50,
        keep: bool = True,
        top_k: int = 1000,
        max_targets: int = 50_000,
        max_sources: int = 50_000,
        sources: Literal["labelled", "rejected"] = "labelled",
        net: NetConfig = COMPACT,
        training: Training = Training(),  # noqa: B008 - frozen
        seed: int = 0,
        progress: bool = False,
    ):
        super().__init__(classifier, schema, seed=seed)
        self.lam = lam
        self.gamma = gamma
        self.temperature = temperature
        self.margin = margin
        self.n_draws = n_draws
        self.select = select
        self.cost_weight = cost_weight
        self.refine = refine
        self.retrieve = retrieve
        self.safety = safety
        self.clean = clean
        self.sigma = sigma
        self.bins = bins
        self.n_bins = n_bins
        self.keep = keep
        self.top_k = top_k
        self.max_targets = max_targets
        self.max_sources = max_sources
        self.sources = sources
        self.net = net
        self.training = training
        self.progress = progress

    @staticmethod
    def _test_params() -> dict[str, Any]:
        """Settings for the contract's checks: all parts run, none for long."""
        return {
            "net": NetConfig(width=16, heads=2, feedforward=16, encoder_layers=1, decoder_layers=1),
            "training": Training(steps=20, batch_size=64),
            "n_draws": 4,
            "n_bins": 12,
        }

    # ---- fit ----------------------------------------------------------------------------------

    def _fit(self, rows: TrainingRows) -> None:
        clock = _Clock()
        self.fit_report_: dict[str, Any] = {"seconds": clock.seconds}
        check_lam(self._where("fit"), self.lam)
        check_safety(self._where("fit"), self.safety)
        if self.rules_.immutable.all():
            raise UserError(f"{self._where('fit')}: every feature is immutable: nothing can change")
        rng = np.random.default_rng(self.seed)
        fitted, held = self._split_sources(rows, rng)
        judge = None
        if self.clean or "auto" in (self.gamma, self.temperature, self.margin):
            judge = CrossFittedJudge(self.seed, blank=self.blank_.rows)
            judge.fit(rows.Z, rows.favourable)
            clock.lap("judge")
        looked_at = np.concatenate([held, fitted])[:LOOKED_AT]
        accepted = np.flatnonzero(rows.favourable & (rows.confidence > 0.5))
        self._choose_gamma(rows, looked_at, accepted, judge)
        if self.clean and judge is not None:
            accepted = clean(rows, accepted, judge, self.rules_)
        clock.lap("gamma")
        targets = self._targets(rows, fitted, accepted, rng)
        pairs = self._pairs(rows, fitted, targets)
        pairs_held = self._pairs(rows, held, targets)
        self._report_pairs(fitted, held, pairs, pairs_held)
        clock.lap("pairs")
        self.verifier_: Verifier | None = None
        if self.select == "verified" or self.refine:
            self.verifier_ = self._fit_verifier(rows)
            clock.lap("verifier")
        self.targets_ = targets
        drawn: Drawn | Refined = Drawn(self, rows.F[fitted[pairs.source]], pairs, targets)
        watched = drawn  # a few held-out rows, none of which has a target: watch the others' loss
        if len(pairs_held):
            watched = Drawn(self, rows.F[held[pairs_held.source]], pairs_held, targets)
        if self.refine:
            drawn, watched = self._refined(drawn), self._refined(watched)
            clock.lap("refine")
        self.density_ = self._density(rows, targets)
        self._train(drawn, watched)
        clock.lap("training")
        self._choose_sampling(rows.Z[looked_at], judge)
        clock.lap("sampling")

    def _split_sources(
        self, rows: TrainingRows, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Algorithm 1, line 1: D-, and a share of it held out."""
        rejected = rows.confidence <= 0.5
        if self.sources == "labelled":
            rejected &= ~rows.favourable
        found = rng.permutation(np.flatnonzero(rejected))[: self.max_sources]
        if len(found) < 10:
            raise UserError(
                f"{self._where('fit')}: only {len(found)} of {len(rows.Z)} rows are rejected by "
                "the classifier and have an unfavourable outcome; GenRe needs 10 to learn from. "
                "Is the favourable outcome the right one, and the cutoff?"
            )
        n_held = max(5, round(self.training.held_out * len(found)))
        return found[n_held:], found[:n_held]

    def _choose_gamma(
        self,
        rows: TrainingRows,
        sources: np.ndarray,
        accepted: np.ndarray,
        judge: CrossFittedJudge | None,
    ) -> None:
        if self.gamma != "auto":
            self.gamma_ = float(self.gamma)
            return
        assert judge is not None
        self.gamma_, tried = choose_gamma(
            rows,
            sources,
            accepted,
            judge,
            self.encoder_,
            self.rules_,
            lam=USUAL_LAM if self.lam == "any" else self.lam,
            n_bins=self.n_bins,
            seed=self.seed,
        )
        self.fit_report_["gamma"] = {"chosen": self.gamma_, "tried": tried}

    def _targets(
        self,
        rows: TrainingRows,
        fitted: np.ndarray,
        accepted: np.ndarray,
        rng: np.random.Generator,
    ) -> Targets:
        """Algorithm 1, line 1: D+ among the accepted rows, capped."""
        found = accepted[rows.confidence[accepted] > self.gamma_]
        if len(found) == 0:
            raise UserError(
                f"{self._where('fit')}: no row has a favourable outcome and a score above gamma "
                f"{self.gamma_:g} (0.5 is the cutoff), so there is nobody to learn from. "
                "Lower gamma, or look at the classifier's cutoff"
            )
        whole = make_targets(rows.Z[found], rows.F[found], self.rules_, self.n_bins)
        self.fit_report_["targets"] = {"found": len(found), "used": len(found), "mass_lost": 0.0}
        if len(found) <= self.max_targets:
            return whole
        kept = np.zeros(len(found), dtype=bool)
        kept[rng.permutation(len(found))[: self.max_targets]] = True
        some = fitted[:256]
        lost = max(
            lost_by_cap(rows.Z[some], rows.F[some], whole, kept, self.encoder_, self.rules_, lam)
            for lam in (LAM_RANGE if self.lam == "any" else (self.lam,))
        )
        self.fit_report_["targets"] |= {"used": int(kept.sum()), "mass_lost": lost}
        return Targets(whole.Z[kept], whole.F[kept], whole.codes[kept], whole.edges)

    def _pairs(
        self, rows: TrainingRows, sources: np.ndarray, targets: Targets
    ) -> Pairs | AnyLamPairs:
        known = (rows.Z[sources], rows.F[sources], targets, self.encoder_, self.rules_)
        if self.lam != "any":
            return make_pairs(*known, lam=self.lam, top_k=self.top_k)
        seen = self.training.n_steps(len(sources)) * self.training.batch_size
        rng = np.random.default_rng([self.seed, 3, len(sources)])
        return make_any_lam_pairs(*known, n_draws=-(-seen // max(1, len(sources))), rng=rng)

    def _report_pairs(
        self,
        fitted: np.ndarray,
        held: np.ndarray,
        pairs: Pairs | AnyLamPairs,
        pairs_held: Pairs | AnyLamPairs,
    ) -> None:
        """How many sources have a target; those that have none are counted in one warning."""
        total = len(fitted) + len(held)
        unpaired = total - len(pairs) - len(pairs_held)
        if len(pairs) == 0:
            raise UserError(
                f"{self._where('fit')}: {unpaired} of {total} rejected rows have no accepted row "
                f"that the rules let them reach (immutable: {self._immutable_names()}), which "
                "leaves nothing to learn from. Make a feature mutable in the schema, or loosen a "
                "direction or step"
            )
        if unpaired:
            warnings.warn(
                f"{self._where('fit')}: {unpaired} of {total} rejected rows have no "
                f"accepted row that the rules let them reach (immutable: "
                f"{self._immutable_names()}); they are left out of training",
                stacklevel=4,
            )
        self.fit_report_["pairs"] = {  # of the sources trained on
            "sources": len(pairs),
            "unpaired": len(fitted) - len(pairs),
            "mass_lost_by_top_k": pairs.lost_by_top_k,
        }

    def _density(self, rows: TrainingRows, targets: Targets) -> RecourseDensity:
        """Algorithm 1, line 2: R_theta, untrained. Immutables are not decoded, the rest in column
        order."""
        decoded = np.flatnonzero(~self.rules_.immutable)
        is_number = np.array([not f.is_category for f in self.schema_])
        bins = make_bins(targets.F[:, decoded], is_number[decoded], self.n_bins, self.bins)
        n_levels = [len(f.categories) for f in self.schema_]
        seen = torch.as_tensor(self.blank_.features(rows.F))
        knots = make_knots(seen, torch.as_tensor(is_number), n_levels)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            net = RecourseNet(
                self.net, knots, torch.as_tensor(decoded), bins.n_choices, lam=self.lam
            )
        weights = torch.tensor([f.cost_weight for f in self.schema_])[decoded]
        self.targets_codes_ = np.unique(targets.codes, axis=0)
        self.targets_edges_ = targets.edges
        return RecourseDensity(net, bins, self.rules_, weights, keep=self.keep)

    def _refined(self, drawn: Drawn | Refined) -> Refined:
        """Some draws of every pair's Q, refined once for all epochs."""
        each = min(max(REFINED // len(drawn), 1), REFINED_EACH)
        order = np.repeat(np.arange(len(drawn))[:REFINED], each)
        x, x_plus, *lam = drawn(order, np.random.default_rng([self.seed, 4]))
        better = self._closer(x.numpy(), x_plus.numpy(), self.safety)
        return Refined((x, torch.as_tensor(better), *lam), drawn.n_sources)

    def _train(self, drawn: Drawn | Refined, watched: Drawn | Refined) -> None:
        """Algorithm 1, lines 4-9."""
        config = self.training
        rng = np.random.default_rng([self.seed, 1])
        generator = torch.Generator().manual_seed(self.seed)

        def batches() -> Any:
            barren = 0
            while barren < BARREN:
                order = rng.permutation(len(drawn))
                if len(order) < config.batch_size:  # a small table: several draws a source
                    order = np.tile(order, -(-config.batch_size // max(1, len(order))))
                for i in range(0, len(order) - config.batch_size + 1, config.batch_size):
                    pair = self._shown(drawn(order[i : i + config.batch_size], rng))
                    barren = 0 if len(pair[0]) else barren + 1
                    if len(pair[0]):
                        yield pair
                if len(order) == 0:
                    break
            raise UserError(
                f"{self._where('fit')}: with their own {self._immutable_names()} carried over, the "
                f"classifier accepts none of the targets of {BARREN} batches of people above gamma "
                f"{self.gamma_:g}, which leaves nothing to learn from. Lower gamma, or make n_bins "
                "larger, so that people are paired with more like themselves"
            )

        fixed = np.random.default_rng([self.seed, 2])
        held_pair = self._shown(watched(np.arange(len(watched))[:1024], fixed))

        def held_out() -> float:  # only asked where somebody is held out
            same = torch.Generator().manual_seed(self.seed)
            return float(self.density_.loss(held_pair[0], held_pair[1], same, *held_pair[2:]))

        steps = config.n_steps(drawn.n_sources)
        plan = TrainingPlan(
            steps=steps,
            lr=config.lr,
            weight_decay=config.weight_decay,
            schedule=config.schedule,
            clip=1.0,
            eval_every=max(1, min(100, steps // 10)),
            patience=config.patience,
        )
        report: TrainingReport = train(
            self.density_.net,
            lambda pair: self.density_.loss(pair[0], pair[1], generator, *pair[2:]),
            batches(),
            plan,
            held_out=held_out if len(held_pair[0]) else None,
            label="R(x+|x)",
            progress=self.progress,
        )
        self.fit_report_["training"] = asdict(report)
        self.fit_report_["training"]["pairs_per_second"] = (
            report.steps * config.batch_size / max(report.seconds, 1e-9)
        )

    def _shown(self, pair: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """A pair as the net may see it: of x_plus it reads what is decoded, of x everything."""
        x, *rest = pair
        return (torch.as_tensor(self.blank_.features(x.numpy())), *rest)

    def _choose_sampling(self, Z: Array, judge: CrossFittedJudge | None) -> None:
        """Temperature and margin with the model that was trained, on held-out rejected rows."""
        self.temperature_ = 1.0 if self.temperature == "auto" else float(self.temperature)
        self.margin_ = 0.5 if self.margin == "auto" else float(self.margin)
        temperatures: tuple[float, ...] = (self.temperature_,)
        margins: tuple[float, ...] = (self.margin_,)
        if self.temperature == "auto":
            temperatures = TEMPERATURE_GRID
        if self.margin == "auto" and self.select == "likelihood":  # a verifier asks for more
            margins = tuple(0.5 + share * (self.gamma_ - 0.5) for share in MARGIN_GRID)
        if judge is None or len(temperatures) * len(margins) == 1:
            return
        every = np.arange(len(Z))
        lines, chosen = [], []
        for temperature in temperatures:
            draws = self._offers(Z, self._draw(Z, KeyedNoise(self.seed), temperature))
            known = self._known(Z, draws)
            for margin in margins:
                pick = self._select(draws, known, margin, self.safety)
                chosen.append(self.encoder_.from_features(draws.F[every, pick]))
                lines.append(
                    {
                        "temperature": temperature,
                        "margin": margin,
                        "cost": float(known[1][every, pick].mean()),
                        "h_valid": float((known[0][every, pick] > 0.5).mean()),
                    }
                )
        for line, verdict in zip(lines, _judge_once(judge, chosen), strict=True):
            line["val"], line["lof"] = verdict
            line["score"] = sum(verdict) - line["cost"] / len(self.schema_)
        best = max(lines, key=lambda line: line["score"])
        if best["score"] <= lines[0]["score"] + CLEARLY:
            best = lines[0]
        self.temperature_, self.margin_ = best["temperature"], best["margin"]
        self.fit_report_["sampling"] = {"chosen": best, "tried": lines, "rows": len(Z)}

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
        constraints: RequestRules | None = None,
    ) -> Array:
        safety = self.safety if safety is None else safety
        how = {"lam": lam, "temperature": temperature, "sigma": sigma, "n_draws": n_draws}
        draws, known = self._candidates(Z, noise, how, constraints)
        F_plus = self._best(Z, draws, known, safety, constraints)
        return self.encoder_.from_features(F_plus)

    def _candidates(
        self, Z: Array, noise: KeyedNoise, how: dict[str, Any], request: RequestRules | None
    ) -> tuple[Draws, tuple[Array, Array]]:
        """All that recourse chooses from, drawn and retrieved, with h's confidence and the cost."""
        n = how.get("n_draws")
        if request is not None:
            n = max(n or self.n_draws, PARTICLES)
        draws = self._draw(
            Z,
            noise,
            how.get("temperature"),
            n,
            lam=how.get("lam"),
            sigma=how.get("sigma"),
            request=request,
            spread=True,
        )
        draws = self._offers(Z, draws, request)
        return draws, self._known(Z, draws)

    def _best(
        self,
        Z: Array,
        draws: Draws,
        known: tuple[Array, Array],
        safety: float,
        request: RequestRules | None,
    ) -> Array:
        """(N, d) what recourse gives, of all that was drawn and retrieved."""
        if self.refine and self.select == "verified":
            return self._best_refined(Z, draws.F, known, safety, request)
        pick = self._select(draws, known, self.margin_, safety)
        F_plus = draws.F[np.arange(len(Z)), pick]
        if self.refine:
            F_plus = self._closer(self.encoder_.to_features(Z), F_plus, safety, request)
        return F_plus

    def _several(self, Z: Array, noise: KeyedNoise, n: int, **request: Any) -> Array:
        """What recourse gives, then the best draws that differ in what they change, refined."""
        if n == 1:
            return super()._several(Z, noise, n, **request)
        safety, rules = self._safety_asked(request), request.get("constraints")
        draws, known = self._candidates(Z, noise, request, rules)
        F, first = self.encoder_.to_features(Z), self._best(Z, draws, known, safety, rules)
        merit = self._merit(draws, known, safety)
        moved = ~unchanged(F[:, None, :], draws.F) & ~self.rules_.follows.mask
        k, d = OFFERED * n, F.shape[1]
        found = np.repeat(F[:, None, :], k, axis=1)  # a place that stays empty changes nothing
        for i in range(len(F)):
            picks = spread(moved[i], merit[i], k, worse=np.inf)
            found[i, : len(picks)] = draws.F[i, picks]
        if self.refine:
            again = np.repeat(np.arange(len(F)), k)
            mine = None if rules is None else rules.take(again)
            found = self._closer(F[again], found.reshape(-1, d), safety, mine).reshape(-1, k, d)
        every = np.concatenate([first[:, None, :], found], axis=1).reshape(-1, d)
        again = np.repeat(np.arange(len(F)), k + 1)
        mine = None if rules is None else rules.take(again)
        legal = self._legal(Z[again], self.encoder_.from_features(every), mine)
        return self.encoder_.to_features(legal).reshape(-1, k + 1, d)

    def _merit(self, draws: Draws, known: tuple[Array, Array], safety: float) -> Array:
        """(N, n) what each draw is worth to selection; what h rejects is worth nothing."""
        if self.select == "verified":
            merit = self._expected(draws.F, known, self.margin_, safety)
        else:
            merit = draws.log_prob + draws.log_weight - self.cost_weight * known[1]
        return np.where(known[0] > 0.5, merit, -np.inf)

    def _n_tried(self, request: dict[str, Any]) -> int:
        n = request.get("n_draws") or self.n_draws
        return n + (RETRIEVED if self.retrieve and self.select == "verified" else 0)

    def _best_refined(
        self,
        Z: Array,
        offers: Array,
        known: tuple[Array, Array],
        safety: float,
        request: RequestRules | None = None,
    ) -> Array:
        """Of each row's best offers and its best retrieved one, refined, the best."""
        rows, n = np.arange(len(Z))[:, None], offers.shape[1]
        score = self._expected(offers, known, self.margin_, safety)
        best = np.argsort(-score, axis=1, kind="stable")[:, :FINALISTS]
        if self.retrieve:
            own = n - RETRIEVED + score[:, n - RETRIEVED :].argmax(axis=1)
            best = np.concatenate([best, own[:, None]], axis=1)
        k, d = best.shape[1], offers.shape[2]
        F = np.repeat(self.encoder_.to_features(Z), k, axis=0)
        if request is not None:
            request = request.take(np.repeat(np.arange(len(Z)), k))
        F_plus = self._closer(F, offers[rows, best].reshape(-1, d), safety, request)
        merit = self._worth(np.repeat(Z, k, axis=0), F_plus, safety).reshape(-1, k)
        return np.asarray(F_plus.reshape(-1, k, d)[rows[:, 0], merit.argmax(axis=1)])

    def _closer(
        self, F: Array, F_plus: Array, safety: float, request: RequestRules | None = None
    ) -> Array:
        assert self.verifier_ is not None
        rules = self._whole(request)
        return refine(F, F_plus, self.verifier_, self._confidence, self.encoder_, safety, rules)

    def _offers(self, Z: Array, draws: Draws, request: RequestRules | None = None) -> Draws:
        """The draws and, where they compete, the nearest targets."""
        if not self.retrieve or self.select != "verified":
            return draws
        F = self.encoder_.to_features(Z)
        if request is None:
            found, _ = nearest(Z, F, self.targets_, self.encoder_, self.rules_, RETRIEVED)
            found = self._settled(F[:, None], found)
        else:
            found, _ = nearest_within(F, self.targets_, request, RETRIEVED, self._confidence)
        nothing = np.full(found.shape[:2], np.nan)  # the verifier does not ask for likelihoods
        return Draws(
            np.concatenate([draws.F, found], axis=1),
            np.concatenate([draws.log_prob, nothing], axis=1),
            np.concatenate([draws.log_weight, nothing], axis=1),
        )

    def _select(
        self, draws: Draws, known: tuple[Array, Array], margin: float, safety: float
    ) -> np.ndarray:
        confidence, cost = known
        if self.select != "verified":
            return select(
                confidence,
                draws.log_prob + draws.log_weight,
                cost,
                rule=self.select,
                margin=margin,
                cost_weight=self.cost_weight,
            )
        return np.asarray(self._expected(draws.F, known, margin, safety).argmax(axis=1))

    def _expected(
        self, offers: Array, known: tuple[Array, Array], margin: float, safety: float
    ) -> Array:
        assert self.verifier_ is not None
        N, n, d = offers.shape
        return expected_score(
            self.encoder_.from_features(offers.reshape(-1, d)).reshape(N, n, -1),
            *known,
            self.verifier_,
            n_features=d,
            margin=margin,
            safety=safety,
        )

    def _draw(
        self,
        Z: Array,
        noise: KeyedNoise,
        temperature: float | None = None,
        n: int | None = None,
        *,
        lam: float | None = None,
        sigma: float | None = None,
        request: RequestRules | None = None,
        spread: bool = False,
    ) -> Draws:
        """Draws for each row; what is None is as it was fitted.

        request: the rules of each row; whom none binds is drawn for as if nobody had any.
        spread: of the particles under a request, all that they found (`sample_within`).
        """
        own, n = self.encoder_.to_features(Z), n or self.n_draws
        F = self.blank_.features(own)
        sigma = self.sigma if sigma is None else sigma
        how: dict[str, Any] = {
            "temperature": temperature or self.temperature_,
            "noise": noise,
            "sigma": sigma,
            "lam": self._lam_asked(lam),
        }
        if request is None:
            draws = sample(self.density_, F, n, **how)
        else:
            bound, free = np.flatnonzero(~request.is_free), np.flatnonzero(request.is_free)
            plain = sample(self.density_, F[free], n, **how)
            mine = request.take(bound)
            ruled = sample_within(self.density_, F[bound], n, mine, spread=spread, **how)
            draws = plain.joined(ruled, np.argsort(np.concatenate([free, bound])))
        draws = self._completed(own, draws, request)
        if self.bins == "uniform" or sigma > 0:
            # Alg. 2, line 8: values that no row has are made legal; a category is by its choice
            draws = self._legal_draws(own, draws, request)
        return draws

    def _completed(self, F: Array, draws: Draws, request: RequestRules | None) -> Draws:
        """Draws with what the density knows nothing of: x's own protected features, and what
        follows from what was drawn."""
        if self.blank_:
            draws = replace(draws, F=np.where(self.blank_.mask, F[:, None], draws.F))
        if self.rules_.follows:
            draws = replace(draws, F=self._settled(F[:, None], draws.F, request))
        return draws

    def _legal_draws(self, F: Array, draws: Draws, request: RequestRules | None) -> Draws:
        N, n, d = draws.F.shape
        rows = np.repeat(np.arange(N), n)
        Z_plus = self._legal(
            self.encoder_.from_features(F[rows]),
            self.encoder_.from_features(draws.F.reshape(-1, d)),
            None if request is None else request.take(rows),
        )
        return replace(draws, F=self.encoder_.to_features(Z_plus).reshape(N, n, d))

    def _lam_asked(self, lam: float | None) -> float | None:
        """What the net is told: nothing, if it was trained for one lam only."""
        if self.density_.net.lam != "any":
            return None
        return USUAL_LAM if lam is None else float(lam)

    def _known(self, Z: Array, draws: Draws) -> tuple[Array, Array]:
        """h's confidence in each draw and its cost, both (N, n)."""
        N, n, d = draws.F.shape
        Z_plus = self.encoder_.from_features(draws.F.reshape(-1, d))
        confidence = self._confidence(Z_plus).reshape(N, n)
        return confidence, self.cost_(Z[:, None, :], Z_plus.reshape(N, n, -1))

    def _reason(self, Z: Array) -> np.ndarray:
        """`no-feasible-target`: no accepted training row shares this person's immutables."""
        codes = match_codes(self.encoder_.to_features(Z), self.rules_, self.targets_edges_)
        known = {tuple(row) for row in self.targets_codes_}
        found = [tuple(row) in known for row in codes]
        return np.where(found, "not-accepted", "no-feasible-target").astype(object)

    # ---- model files --------------------------------------------------------------------------

    def kept_rows(self) -> Array | None:
        more = super().kept_rows()
        if not self.retrieve:  # the file does not hold the targets
            return more
        return self.targets_.Z if more is None else np.concatenate([self.targets_.Z, more])

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        density = self.density_
        state = {
            "gamma": self.gamma_,
            "temperature": self.temperature_,
            "margin": self.margin_,
            "lam": density.net.lam,
            "keep": density.keep,
            "report": self.fit_report_,
        }
        edges = {str(i): e for i, e in enumerate(self.targets_edges_) if e is not None}
        arrays = {
            **under("net", weights(density.net)),
            **under("bins", {name: part.numpy() for name, part in vars(density.bins).items()}),
            **under("edges", edges),
            "weights": density.weights.numpy(),
            "codes": self.targets_codes_,
        }
        if self.retrieve:
            arrays["targets"] = self.targets_.F
        if self.verifier_ is not None:
            arrays |= under("verifier", self.verifier_.arrays())
        return state, arrays

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.gamma_, self.temperature_ = state["gamma"], state["temperature"]
        self.margin_, self.fit_report_ = state["margin"], state["report"]
        edges, n_matched = within("edges", arrays), int(self.rules_.matched.sum())
        self.targets_edges_ = tuple(edges.get(str(i)) for i in range(n_matched))
        self.targets_codes_ = arrays["codes"]
        if "targets" in arrays:
            F = arrays["targets"]
            codes = match_codes(F, self.rules_, self.targets_edges_)
            self.targets_ = Targets(self.encoder_.from_features(F), F, codes, self.targets_edges_)
        learned = within("net", arrays)
        knots, decoded = (torch.tensor(learned[name]) for name in ("embed_x.knots", "decoded"))
        bins = Bins(**{name: torch.tensor(a) for name, a in within("bins", arrays).items()})
        with torch.device("meta"):
            net = RecourseNet(self.net, knots, decoded, bins.n_choices, lam=state["lam"])
        fill(net, learned)
        cost_weights = torch.tensor(arrays["weights"])
        self.density_ = RecourseDensity(net, bins, self.rules_, cost_weights, keep=state["keep"])
        learned = within("verifier", arrays)
        self.verifier_ = self._restored_verifier(learned)

    # ---- the density's own verbs --------------------------------------------------------------

    def sample(
        self,
        X: pd.DataFrame,
        n: int = 10,
        *,
        lam: float | None = None,
        temperature: float | None = None,
        sigma: float | None = None,
        constraints: Any = None,
    ) -> pd.DataFrame:
        """n draws from R_theta(. | x) for each row, as a long frame indexed (row, draw).

        The options are those of `recourse`. Under constraints they follow R_theta restricted to the
        rules (`genre/within.py`); `draws` tells the effective sample size.
        """
        self._check_fitted("sample")
        request: dict[str, Any] = {"lam": lam, "temperature": temperature, "sigma": sigma}
        self._check_request("sample", {**request, "n_draws": n})
        Z, rules = self.encoder_.encode(X), self._compiled(constraints, X)
        draws = self._draw(Z, KeyedNoise(self.seed), n=n, request=rules, **request)
        like = X.iloc[np.repeat(np.arange(len(X)), n)]
        Z_plus = self.encoder_.from_features(draws.F.reshape(len(like), -1))
        table = self.encoder_.decode(Z_plus, like=like)
        table.index = pd.MultiIndex.from_arrays(
            [like.index, np.tile(np.arange(n), len(X))], names=["row", "draw"]
        )
        return table

    def draws(
        self,
        X: pd.DataFrame,
        n: int | None = None,
        *,
        lam: float | None = None,
        temperature: float | None = None,
        sigma: float | None = None,
        constraints: Any = None,
    ) -> pd.DataFrame:
        """The draws that `recourse` chooses from: cost, log_likelihood, score and `chosen` of each.

        Indexed (row, draw), the draws being those of `sample`. n: as if `n_draws` were n. People
        whom h accepts already have no chosen draw: recourse leaves them as they are. Where rows are
        retrieved or refined, `recourse` may still do better than the chosen draw. The other options
        are those of `recourse`.

        Under constraints these are the particles, 64 or more a row, and `effective_sample_size` is
        the least that they were worth on the way, before a resampling: few of many means that the
        rules left little of what R_theta would have drawn.
        """
        self._check_fitted("draws")
        request: dict[str, Any] = {"lam": lam, "temperature": temperature, "sigma": sigma}
        self._check_request("draws", {**request, "n_draws": n})
        Z, n, rules = self.encoder_.encode(X), n or self.n_draws, self._compiled(constraints, X)
        n = n if rules is None else max(n, PARTICLES)
        draws = self._draw(Z, KeyedNoise(self.seed), n=n, request=rules, spread=True, **request)
        known = self._known(Z, draws)
        chosen = np.zeros(draws.log_prob.shape, dtype=bool)
        pick = self._select(draws, known, self.margin_, self.safety)
        chosen[np.arange(len(X)), pick] = True
        chosen &= ~self.classifier_.accepts(self._ordered(X))[:, None]
        Z_plus = self.encoder_.from_features(draws.F.reshape(len(X) * n, -1))
        columns = {
            "cost": known[1].reshape(-1),
            "log_likelihood": draws.log_prob.reshape(-1),
            "score": self.classifier_.score_encoded(Z_plus, self.encoder_, self._like),
            "chosen": chosen.reshape(-1),
        }
        if draws.ess is not None:
            # as `log_prob` has it: of R_theta under the schema's masks alone
            columns["log_likelihood"] = (draws.log_prob + draws.log_weight).reshape(-1)
            columns["effective_sample_size"] = draws.ess.repeat(n)
        return pd.DataFrame(
            columns,
            index=pd.MultiIndex.from_arrays(
                [X.index.repeat(n), np.tile(np.arange(n), len(X))], names=["row", "draw"]
            ),
        )

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
        F, F_plus = self.blank_.features(F), self.blank_.features(F_plus)
        parts = [
            self.density_.log_prob(
                torch.as_tensor(F_plus[i : i + 1024]),
                torch.as_tensor(F[i : i + 1024]),
                self._lam_asked(lam),
            )
            for i in range(0, len(F), 1024)
        ]
        found = np.where(kept, torch.cat(parts).numpy(), -np.inf)
        return pd.Series(found, index=X.index, name="log_prob")

    def _immutable_names(self) -> list[str]:
        return [self.schema_.names[j] for j in np.flatnonzero(self.rules_.matched)]


class Drawn:
    """Pairs drawn anew each time (Algorithm 1, line 6), as tensors: x's own immutables carried over
    into x_plus and what follows settled, h checked again where that changed the target (an
    immutable number that was matched by bin, and what is not matched at all)."""

    def __init__(self, method: GenRe, F: Array, pairs: Pairs | AnyLamPairs, targets: Targets):
        self.method, self.F, self.pairs, self.targets = method, F, pairs, targets
        by_bin = any(edge is not None for edge in targets.edges)
        unmatched = method.rules_.immutable & ~method.rules_.matched
        self.is_other = by_bin or bool(method.rules_.follows) or bool(unmatched.any())
        self.n_sources = len(pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __call__(self, which: np.ndarray, rng: np.random.Generator) -> tuple[torch.Tensor, ...]:
        """(x, x_plus), and the lam of each pair where it was drawn with one of its own."""
        drawn = self.pairs.draw(which, rng)
        target, *lam = drawn if isinstance(drawn, tuple) else (drawn,)
        rules = self.method.rules_
        source, F_plus = self.F[which], self.targets.F[target]
        F_plus[:, rules.immutable] = source[:, rules.immutable]
        if self.is_other:
            F_plus = self.method._settled(source, F_plus)
            Z_plus = self.method.encoder_.from_features(F_plus)
            ok = self.method._confidence(Z_plus) > self.method.gamma_
            source, F_plus, *lam = (part[ok] for part in (source, F_plus, *lam))
        return tuple(torch.as_tensor(part) for part in (source, F_plus, *lam))


@dataclass(frozen=True)
class Refined:
    """Pairs that were drawn and refined once, as tensors."""

    parts: tuple[torch.Tensor, ...]  # as `Drawn` gives them
    n_sources: int

    def __len__(self) -> int:
        return len(self.parts[0])

    def __call__(self, which: np.ndarray, rng: np.random.Generator) -> tuple[torch.Tensor, ...]:
        return tuple(part[which] for part in self.parts)


def _judge_once(judge: CrossFittedJudge, tables: list[Array]) -> list[tuple[float, float]]:
    """(val, lof) of each table; the same row often stands in many, so each is judged once."""
    distinct, place = np.unique(np.concatenate(tables), axis=0, return_inverse=True)
    probability, inlier = judge(distinct)
    valid = trust(probability)
    parts = np.split(place.reshape(-1), np.cumsum([len(t) for t in tables])[:-1])
    return [(float(valid[p].mean()), float(inlier[p].mean())) for p in parts]


class _Clock:
    """Seconds of each stage, in order."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = round(now - self._last, 3)
        self._last = now
