"""GenRe: recourse as one forward sample of a trained density R_theta(x+ | x)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
import torch

from genrecourse.genre.bins import BinKind, Bins
from genrecourse.genre.choose_sampling import (
    MARGIN_GRID,
    TAUGHT_TEMPERATURE,
    TEMPERATURE_GRID,
    choose_sampling,
)
from genrecourse.genre.density import RecourseDensity
from genrecourse.genre.fit import FitSettings, FittedDensity, Lam, Setting, Training, fit_density
from genrecourse.genre.model import COMPACT, PAPER, PLAIN, SMALL, NetConfig, RecourseNet
from genrecourse.genre.select import SelectRule
from genrecourse.genre.targets import Targets, match_codes
from genrecourse.methods._density_method import (
    SECOND_DRAWS,
    SECOND_TEMPERATURE,
    DensityMethod,
)
from genrecourse.model.artifact import fill, under, weights, within
from genrecourse.model.progress import PROGRESS
from genrecourse.model.settings import (
    AUTO,
    COUNT,
    DRAWS,
    FLAG,
    NOTHING,
    POSITIVE,
    SAFETY,
    SHARE,
    WEIGHT,
    Allowed,
    Choice,
    Or,
    Record,
)

if TYPE_CHECKING:
    from genrecourse.methods.base import TrainingRows
    from genrecourse.table.schema import Schema

__all__ = ["LIKE_PAPER", "PAPER_PRESET", "GenRe", "Training"]


PAPER_SETTINGS: dict[str, Any] = {  # but for the size of the net and its training
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
    "distill": False,
}
# `genre-paper`: a net that a laptop can train; as in the paper, it learns all of R
LIKE_PAPER: dict[str, Any] = {**PAPER_SETTINGS, "net": PLAIN}

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

# If a search has taught the density, few draws, a small net and a short training are enough.
UNTAUGHT_DRAWS = 64
NETS = {True: SMALL, False: COMPACT}  # by whether the density is distilled
TRAININGS = {
    True: Training(epochs=80, bounds=(80, 1200), batch_size=128, lr=4e-3),
    False: Training(),
}


class GenRe(DensityMethod):
    """Finds what rejected people can change to be accepted, by learning from accepted people.

    `fit(X, y)` learns from a table of people and their outcomes. Then `plans(X)` says in words what
    each rejected person can change, or why nothing helps; `recourse(X)` returns the changed rows;
    `save(folder)` writes a model file. The defaults suit most tables: give a classifier and a
    schema, and leave the rest out.

    Parameters
    ----------
    classifier: the model whose decision is to change: a fitted scikit-learn estimator, a torch
        module, a function from a table to scores, or a `Classifier`, which names the favourable
        outcome and the cutoff. `Classifier()` or None: `fit` trains a small network on X and y.
    schema: what each column is and how it may change (`Schema.infer(X, immutable=["age"])`). None:
        inferred from X, and then every feature may change.
    random_state: decides everything random: equal values, rows and versions give equal plans.
    progress: show a bar while networks train. None: if somebody watches, in a terminal or a
        notebook. The log says more (`logging.getLogger("genrecourse")`).
    lam: how much a unit of cost weighs against plausibility. "any": one model for every lam from
        0.5 to 10; each request can set it: `recourse(X, lam=2.5)`. The default is 5, and
        automatic choices are then made at 5.
    gamma: how sure h must be of a training target, on the scale where 0.5 is h's cutoff; "auto":
        chosen on training rows without training a model.
    temperature, margin: of sampling and selection; "auto": 0.3 (small tables: 0.5) and 0.5 if the
        density is distilled, otherwise chosen with the one model trained, on held-out rejected
        training rows, by a judge that was not fitted on the rows it scores.
    n_draws: how many samples the selection chooses from. None: 1 if the density is distilled (8 if
        fewer than 2,000 people taught it), and 64 if it is not. A search draws 64 or more.
    select: among the draws that h accepts with margin: "verified", the best expected Score by a
        verifier fitted on the training rows; "likelihood", the likeliest and cheapest. "paper":
        the draw with the highest score of h.
    distill: let a search for rejected training rows teach the density; needs select="verified",
        refine and a number for lam. "auto": if these are so. `recourse` then makes the effort
        "sample": one draw, whose needless changes are undone. People whose draw misses what the
        search reaches get 8 more draws, and if these miss it too, the nearest targets compete with
        these draws. In a small table they do so for everybody. False: the density
        learns the pairs of Algorithm 1, and `recourse` searches. Each request can choose:
        `recourse(X, effort="search")`.
    cost_weight: extra weight of cost in select="likelihood"; log R already contains -lam * C.
    refine: move the drawn pairs towards x before training, as far as the verifier allows, and the
        selected x_plus in the same way. False: the pairs of the paper.
    retrieve: add the nearest targets to the draws if a verifier selects.
    safety: from as cheap as possible (0) to as safe as possible (1): the weight of validity under
        noise and of the verifier's thresholds in refining and selection.
    clean: leave out of D+ the rows that a judge not fitted on them calls unlikely or outlying.
    sigma: noise added to sampled numbers, on the [0, 1] scale (Algorithm 2, line 6).
    bins, n_bins, keep: the choices of a number; keep is the choice "as x has it".
    top_k, max_targets: cuts that bound time and memory; the estimate is consistent only as both
        grow, and `fit_report_` shows the mass that they lose. lam="any" draws from all targets
        and ignores top_k.
    sources: "labelled", rejected rows whose outcome was unfavourable too (the paper); "rejected",
        all rejected rows.
    net, training: sizes and speed; `PAPER_PRESET` holds the paper's. None: small and short if the
        density is distilled.

    What it learns is a density R_theta(x+ | x), from which it draws samples and selects one:

        R(x+ | x)  ∝  exp(-lam * C(x, x+)) * P(x+ | favourable) * [x+ is valid]           (Eq. 5)

    Garg, Nagalapatti & Sarawagi, "From Search to Sampling: Generative Models for Robust Algorithmic
    Recourse", ICLR 2025. docs/notation.md explains the symbols.

    >>> import pandas as pd
    >>> X = pd.DataFrame({"income": range(80), "debt": range(80, 0, -1)})
    >>> quick = {"training": Training(steps=20, batch_size=16), "gamma": 0.6, "clean": False}
    >>> plain = {"refine": False, "select": "paper", "temperature": 1.0, "margin": 0.5}
    >>> method = GenRe(lambda X: X["income"] / 80, **quick, **plain).fit(X, X["income"] >= 40)
    >>> method.assess(X.head(2), method.recourse(X.head(2)))["status"].tolist()
    ['ok', 'ok']
    """

    _records: ClassVar[dict[str, type[Any]]] = {"net": NetConfig, "training": Training}

    allowed: ClassVar[dict[str, Allowed]] = {
        "lam": Or(WEIGHT, Choice(("any",))),
        "gamma": Or(SHARE, AUTO),
        "temperature": Or(POSITIVE, AUTO),
        "margin": Or(SHARE, AUTO),
        "n_draws": Or(DRAWS, NOTHING),
        "select": Choice(get_args(SelectRule)),
        "cost_weight": WEIGHT,
        "distill": Or(FLAG, AUTO),
        "refine": FLAG,
        "retrieve": FLAG,
        "safety": SAFETY,
        "clean": FLAG,
        "sigma": WEIGHT,
        "bins": Choice(get_args(BinKind)),
        "n_bins": COUNT,
        "keep": FLAG,
        "top_k": COUNT,
        "max_targets": COUNT,
        "sources": Choice(("labelled", "rejected")),
        "net": Or(Record(NetConfig), NOTHING),
        "training": Or(Record(Training), NOTHING),
        "progress": PROGRESS,
    }

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        lam: Lam = 5.0,
        gamma: Setting = "auto",
        temperature: Setting = "auto",
        margin: Setting = "auto",
        n_draws: int | None = None,
        select: SelectRule = "verified",
        cost_weight: float = 3.0,
        distill: bool | Literal["auto"] = "auto",
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
        sources: Literal["labelled", "rejected"] = "labelled",
        net: NetConfig | None = None,
        training: Training | None = None,
        random_state: int = 0,
        progress: bool | None = None,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.lam = lam
        self.gamma = gamma
        self.temperature = temperature
        self.margin = margin
        self.n_draws = n_draws
        self.select = select
        self.cost_weight = cost_weight
        self.distill = distill
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

    @property
    def _can_distill(self) -> bool:
        return bool(self.select == "verified" and self.refine and self.lam != "any")

    def conflict(self) -> str:
        """Return which settings do not fit each other; "" if all do."""
        if self.distill == "auto" or not self.distill or self._can_distill:
            return ""
        return (
            "distill=True needs select='verified', refine=True and a number for lam; here they are "
            f"{self.select!r}, {self.refine!r} and {self.lam!r}. Change them, or leave distill out"
        )

    def _fit(self, rows: TrainingRows) -> None:
        distills = self._can_distill if self.distill == "auto" else bool(self.distill)
        self.net_ = self.net or NETS[distills]
        self.training_ = self.training or TRAININGS[distills]
        found = fit_density(self.problem_, rows, self._fit_settings(distills))  # Algorithm 1
        self.fit_report_: dict[str, Any] = found.report
        self.gamma_, self.targets_, self.density_ = found.gamma, found.targets, found.density
        self.verifier_, self.bars_ = found.verifier, found.bars
        self.n_draws_ = self._usual_draws() if self.n_draws is None else int(self.n_draws)
        self.targets_codes_ = np.unique(found.targets.codes, axis=0)
        self.targets_edges_ = found.targets.edges
        self._choose_sampling(rows, found)

    def _usual_draws(self) -> int:
        """Return how many draws are enough, by what taught the density."""
        if self.bars_ is None:
            return UNTAUGHT_DRAWS
        return 1 if np.isfinite(self.bars_).all() else SECOND_DRAWS

    def _fit_settings(self, distills: bool) -> FitSettings:
        has_auto = "auto" in (self.gamma, self.temperature, self.margin)
        return FitSettings(
            lam=self.lam,
            gamma=self.gamma,
            clean=self.clean,
            refine=self.refine,
            distill=distills,
            has_verifier=self.select == "verified" or self.refine,
            has_judge=self.clean or has_auto,
            safety=self.safety,
            sources=self.sources,
            n_bins=self.n_bins,
            bins=self.bins,
            keep=self.keep,
            top_k=self.top_k,
            max_targets=self.max_targets,
            net=self.net_,
            training=self.training_,
            random_state=self.random_state,
            progress=self.progress,
        )

    def _choose_sampling(self, rows: TrainingRows, found: FittedDensity) -> None:
        """Set `temperature_` and `margin_`; "auto" chooses them on held-out rejected rows."""
        grid: tuple[float, ...] = TEMPERATURE_GRID
        if self.is_distilled_:
            grid = (TAUGHT_TEMPERATURE if self._usual_draws() == 1 else SECOND_TEMPERATURE,)
        temperatures = _grid(self.temperature, grid)
        margins = _grid(self.margin, (0.5,))
        if self.margin == "auto" and self.select == "likelihood":  # a verifier asks for more
            margins = tuple(0.5 + share * (self.gamma_ - 0.5) for share in MARGIN_GRID)
        self.temperature_, self.margin_ = temperatures[0], margins[0]
        if found.judge is None or len(temperatures) * len(margins) == 1:
            return
        Z = rows.Z[found.looked_at]
        self.temperature_, self.margin_, self.fit_report_["sampling"] = choose_sampling(
            lambda temperature: self._sampled(Z, temperature), found.judge, temperatures, margins
        )

    # ---- model files --------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        state, arrays = super()._state()
        density = self.density_
        state |= {
            "temperature": self.temperature_,
            "margin": self.margin_,
            "lam": density.net.lam,
            "keep": density.keep,
            "sizes": asdict(self.net_),
            "n_draws": self.n_draws_,
            "report": self.fit_report_,
        }
        edges = {str(i): e for i, e in enumerate(self.targets_edges_) if e is not None}
        if self.bars_ is not None:
            arrays["bars"] = self.bars_
        arrays |= {
            **under("net", weights(density.net)),
            **under("bins", {name: part.numpy() for name, part in vars(density.bins).items()}),
            **under("edges", edges),
            "weights": density.weights.numpy(),
            "codes": self.targets_codes_,
        }
        return state, arrays

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._restore(state, arrays)
        self.temperature_, self.margin_ = state["temperature"], state["margin"]
        self.fit_report_ = state["report"]
        # older files have neither entry: their parameters say what they were fitted with
        self.net_ = NetConfig(**state["sizes"]) if "sizes" in state else self.net or COMPACT
        self.n_draws_ = state.get("n_draws") or self.n_draws or UNTAUGHT_DRAWS
        self.bars_ = arrays.get("bars")
        edges, n_matched = within("edges", arrays), int(self.problem_.rules.matched.sum())
        self.targets_edges_ = tuple(edges.get(str(i)) for i in range(n_matched))
        self.targets_codes_ = arrays["codes"]
        if "targets" in arrays:
            F = arrays["targets"]
            codes = match_codes(F, self.problem_.rules, self.targets_edges_)
            self.targets_ = Targets(
                self.problem_.encoder.from_features(F), F, codes, self.targets_edges_
            )
        learned = within("net", arrays)
        knots, decoded = (torch.tensor(learned[name]) for name in ("embed_x.knots", "decoded"))
        bins = Bins(**{name: torch.tensor(a) for name, a in within("bins", arrays).items()})
        with torch.device("meta"):
            net = RecourseNet(self.net_, knots, decoded, bins.n_choices, lam=state["lam"])
        fill(net, learned)
        cost_weights = torch.tensor(arrays["weights"])
        self.density_ = RecourseDensity(
            net, bins, self.problem_.rules, cost_weights, keep=state["keep"]
        ).ready()


def _grid(setting: Setting, grid: tuple[float, ...]) -> tuple[float, ...]:
    return grid if setting == "auto" else (float(setting),)
