"""Algorithm 1 from top to bottom: from labelled rows to a trained density R_theta(x+ | x).

    1  D- and D+                          split_sources, find_targets
    2  R_theta, untrained                 make_density
    3  the top K of Q for each source     pair_up
    4-9  minibatches of pairs, drawn anew train_density

`fit_density` calls them in this order. Two steps are not in the paper and can be switched off:
`clean` leaves odd rows out of D+, and `refine` moves the drawn x_plus towards x.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch

from genrecourse.errors import UserError, stacklevel_of_caller
from genrecourse.genre.any_lam import LAM_RANGE, USUAL_LAM, AnyLamPairs, make_any_lam_pairs
from genrecourse.genre.bins import BinKind, make_bins
from genrecourse.genre.choose_gamma import LOOKED_AT, choose_gamma
from genrecourse.genre.density import RecourseDensity
from genrecourse.genre.distill import HELD_SOURCES, SOURCES, Lesson, reachable, teach
from genrecourse.genre.model import NetConfig, RecourseNet, make_knots
from genrecourse.genre.pairs import Pairs, lost_by_cap, make_pairs
from genrecourse.genre.targets import Targets, clean, make_targets
from genrecourse.model.settings import (
    COUNT,
    DECAY,
    NOTHING,
    RATE,
    STEPS,
    Allowed,
    Choice,
    Number,
    Or,
    Several,
)
from genrecourse.model.threads import n_weights, seeded, torch_threads
from genrecourse.model.training import TrainingPlan, train
from genrecourse.rules.problem import MOST_CANDIDATES, MOST_SOURCES
from genrecourse.trust.judge import CrossFittedJudge
from genrecourse.trust.refine import refine
from genrecourse.trust.verifier import Verifier

if TYPE_CHECKING:
    from genrecourse.rules.problem import Problem, TrainingRows
    from genrecourse.table.encoding import Array

log = logging.getLogger(__name__)

JUDGE_TREES = 40  # of each fold: it only compares settings and leaves out odd rows
FEWEST_SOURCES = 10  # rejected rows below which there is nothing to learn
FEWEST_HELD = 5  # of them that are held out, at least
MANY = 0.5  # share of rejected rows without a target above which the warning says more
MEASURED = 256  # sources by which the mass that a cap loses is measured
# What bounds the time of a fit on a large table. Tables with fewer rows are used whole.
MOST_JUDGED = 50_000  # rows that the judge, and the verifier, are fitted on at most
PAIRED = (
    250_000_000  # costs between sources and targets; more targets are paired with fewer sources
)
FEWEST_PAIRED = 5_000  # ... but no fewer than these
REFINED = 20_000  # pairs that are refined, each source having its share ...
REFINED_EACH = 10  # ... of at most so many
BARREN = 20  # batches in a row without a single pair to learn from before giving up
WATCHED = 1024  # held-out pairs whose loss is watched

Lam = float | Literal["any"]
Setting = float | Literal["auto"]
Split = tuple[np.ndarray, np.ndarray]  # row numbers of the sources trained on, and held out
Pair = tuple[torch.Tensor, ...]  # x, x_plus and, if each pair has one of its own, lam


# ---- settings -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Training:
    """How long and how fast R_theta learns.

    >>> Training(epochs=10, bounds=None, batch_size=100).n_steps(n_sources=500)
    50
    """

    epochs: int = 70  # passes over the sources ...
    bounds: tuple[int, int] | None = (500, 1600)  # ... but at least and at most so many batches
    steps: int | None = None  # exactly so many batches, whatever the sources
    batch_size: int = 256
    lr: float = 2e-3
    weight_decay: float = 0.01
    schedule: Literal["constant", "one-cycle"] = "one-cycle"
    held_out: float = 0.1  # share of the sources kept for the held-out loss and "auto"
    patience: int | None = 6

    allowed: ClassVar[dict[str, Allowed]] = {
        "epochs": STEPS,
        "bounds": Or(Several(STEPS, 2), NOTHING),
        "steps": Or(STEPS, NOTHING),
        "batch_size": COUNT,
        "lr": RATE,
        "weight_decay": DECAY,
        "schedule": Choice(("constant", "one-cycle")),
        "held_out": Number(0, 0.9),
        "patience": Or(COUNT, NOTHING),
    }

    def conflict(self) -> str:
        """Return which settings do not fit each other; "" if all do."""
        low, high = self.bounds or (0, 0)
        return "" if low <= high else f"bounds is {self.bounds}; give the smaller number first"

    def n_steps(self, n_sources: int) -> int:
        """Return the number of batches for this many sources."""
        per_epoch = max(1, n_sources // self.batch_size)
        low, high = self.bounds or (1, 10**9)
        return self.steps or min(max(self.epochs * per_epoch, low), high)

    def plan(self, n_sources: int) -> TrainingPlan:
        steps = self.n_steps(n_sources)
        return TrainingPlan(
            steps=steps,
            lr=self.lr,
            weight_decay=self.weight_decay,
            schedule=self.schedule,
            clip=1.0,
            eval_every=max(1, min(100, steps // 10)),
            patience=self.patience,
        )


@dataclass(frozen=True)
class FitSettings:
    """The settings of Algorithm 1; `GenRe` documents each.

    >>> from genrecourse.evaluation.example_tables import example_settings
    >>> example_settings(gamma=0.7).gamma
    0.7
    """

    lam: Lam
    gamma: Setting
    clean: bool
    refine: bool
    distill: bool
    has_verifier: bool
    has_judge: bool
    safety: float
    sources: Literal["labelled", "rejected"]
    n_bins: int
    bins: BinKind
    keep: bool
    top_k: int
    max_targets: int
    net: NetConfig
    training: Training
    random_state: int
    progress: bool | None


@dataclass
class FittedDensity:
    """The result of Algorithm 1.

    >>> from dataclasses import fields
    >>> [field.name for field in fields(FittedDensity)][:3]
    ['gamma', 'targets', 'density']
    """

    gamma: float
    targets: Targets
    density: RecourseDensity
    bars: Array | None  # what a draw must reach, if a search has taught the density
    verifier: Verifier | None
    judge: CrossFittedJudge | None
    looked_at: np.ndarray  # sources that automatic choices look at, held-out ones first
    report: dict[str, Any]


@dataclass
class Clock:
    """Measures the seconds of each stage, in order, and logs them.

    >>> clock = Clock()
    >>> clock.lap("pairs")
    >>> list(clock.seconds)
    ['pairs']
    """

    seconds: dict[str, float] = field(default_factory=dict)
    last: float = field(default_factory=time.perf_counter)

    def lap(self, name: str) -> None:
        """Store the seconds since the last lap under this name."""
        now = time.perf_counter()
        self.seconds[name] = round(now - self.last, 3)
        self.last = now
        log.info("GenRe.fit: the stage '%s' took %.1f seconds", name, self.seconds[name])


# ---- Algorithm 1 --------------------------------------------------------------------------------


def fit_density(problem: Problem, rows: TrainingRows, settings: FitSettings) -> FittedDensity:
    """Run Algorithm 1 on the training rows.

    >>> from genrecourse.evaluation.example_tables import example_rows, example_settings
    >>> problem, rows = example_rows()
    >>> fit_density(problem, rows, example_settings(gamma=0.7)).report["pairs"]["sources"]
    35
    """
    clock, seed = Clock(), settings.random_state
    report: dict[str, Any] = {"seconds": clock.seconds}
    problem.check_changeable("GenRe.fit")
    rng = np.random.default_rng(seed)

    fitted, held = split_sources(rows, rng, settings)  # Alg. 1, line 1: D-
    looked_at = np.concatenate([held, fitted])[:LOOKED_AT]
    judge = fit_judge(problem, rows, seed) if settings.has_judge else None
    clock.lap("judge")
    gamma, accepted = _accepted(problem, rows, looked_at, judge, settings, report)
    clock.lap("gamma")
    # Alg. 1, line 1: D+
    targets, report["targets"] = find_targets(problem, rows, accepted, gamma, fitted, rng, settings)
    fitted = fitted[: max(FEWEST_PAIRED, PAIRED // len(targets.Z))]

    pairing = Pairing(problem, targets, gamma, settings)
    drawn, watched = pairing.pair_up(rows, fitted), pairing.pair_up(rows, held)  # Alg. 1, line 3
    report["pairs"] = report_pairs(problem, drawn, watched, (fitted, held))
    clock.lap("pairs")
    verifier = fit_verifier(problem, rows, seed) if settings.has_verifier else None
    clock.lap("verifier")
    # if none of the few held-out rows has a target, watch the loss of the others
    both = drawn, watched if len(watched) else drawn
    lesson: list[TensorPairs] = list(both)
    bars = None
    if settings.distill:
        assert verifier is not None
        learned, looked = (
            taught(problem, each, verifier, settings, most)
            for each, most in zip(both, (SOURCES, HELD_SOURCES), strict=True)
        )
        lesson, bars = [learned, looked], reachable(problem, verifier, learned, settings.safety)
        clock.lap("search")
    elif settings.refine:
        assert verifier is not None
        lesson = [refined(problem, each, verifier, settings) for each in both]
        clock.lap("refine")

    density = make_density(problem, rows, targets, settings)  # Alg. 1, line 2
    drawn_pairs, watched_pairs = lesson
    report["training"] = train_density(  # Alg. 1, lines 4-9
        problem, density, drawn_pairs, watched_pairs, gamma, settings
    )
    clock.lap("training")
    return FittedDensity(gamma, targets, density.ready(), bars, verifier, judge, looked_at, report)


def fit_judge(problem: Problem, rows: TrainingRows, random_state: int) -> CrossFittedJudge:
    """Return the judge that chooses settings; it never scores a row that it was fitted on.

    >>> from genrecourse.evaluation.example_tables import example_rows
    >>> problem, rows = example_rows()
    >>> probability, inlier = fit_judge(problem, rows, random_state=0)(rows.Z[[0, -1]])
    >>> probability > 0.5
    array([False,  True])
    """
    hide = problem.protected.hide_encoded
    judge = CrossFittedJudge(random_state, n_trees=JUDGE_TREES, blank=hide)
    some = rows.some(MOST_JUDGED, random_state)
    return judge.fit(some.Z, some.favourable)


def fit_verifier(problem: Problem, rows: TrainingRows, random_state: int) -> Verifier:
    """Return the verifier that compares the candidates x_plus of one person.

    >>> from genrecourse.evaluation.example_tables import example_rows
    >>> problem, rows = example_rows()
    >>> verifier = fit_verifier(problem, rows, random_state=0)
    >>> verifier.valid(rows.Z[[0, -1]], rows.confidence[[0, -1]]) > 0.5
    array([False,  True])
    """
    numbers = problem.encoder.number_columns(~problem.protected.mask)
    verifier = Verifier(random_state, problem.protected.hide_encoded)
    some = rows.some(MOST_JUDGED, random_state)
    return verifier.fit(some.Z, some.favourable, some.confidence, numbers)


# ---- line 1: sources and targets ----------------------------------------------------------------


def split_sources(rows: TrainingRows, rng: np.random.Generator, settings: FitSettings) -> Split:
    """Return D-, as row numbers to train on and row numbers held out.

    >>> from genrecourse.evaluation.example_tables import example_rows, example_settings
    >>> settings = example_settings(training=Training(held_out=0.3))
    >>> fitted, held = split_sources(example_rows()[1], np.random.default_rng(0), settings)
    >>> len(fitted), len(held)
    (28, 12)
    """
    rejected = rows.confidence <= 0.5
    if settings.sources == "labelled":
        rejected &= ~rows.favourable
    found = rng.permutation(np.flatnonzero(rejected))[:MOST_SOURCES]
    if len(found) < FEWEST_SOURCES:
        raise UserError(
            f"GenRe.fit: only {len(found)} of {len(rows.Z)} rows are rejected by the "
            f"classifier and have an unfavourable outcome; GenRe needs {FEWEST_SOURCES} to learn "
            "from. Is the favourable outcome the right one, and the cutoff?"
        )
    n_held = max(FEWEST_HELD, round(settings.training.held_out * len(found)))
    return found[n_held:], found[:n_held]


def _accepted(
    problem: Problem,
    rows: TrainingRows,
    sources: np.ndarray,
    judge: CrossFittedJudge | None,
    settings: FitSettings,
    report: dict[str, Any],
) -> tuple[float, np.ndarray]:
    """Return gamma, chosen if it is "auto", and the row numbers that D+ is taken from."""
    accepted = np.flatnonzero(rows.favourable & (rows.confidence > 0.5))
    found = len(accepted) if rows.larger is None else rows.larger.accepted
    if len(accepted) > MOST_CANDIDATES:
        drawn = np.random.default_rng([settings.random_state, 5]).permutation(len(accepted))
        accepted = accepted[np.sort(drawn[:MOST_CANDIDATES])]
    report["accepted"] = {"found": found, "used": len(accepted)}
    if found > len(accepted):  # each had the same chance, so this is the expected share of Q's mass
        report["accepted"]["mass_lost"] = 1 - len(accepted) / found
    if settings.gamma == "auto":
        assert judge is not None
        gamma, tried = choose_gamma(
            rows,
            sources,
            accepted,
            judge,
            problem.rules,
            problem.cost,
            lam=USUAL_LAM if settings.lam == "any" else settings.lam,
            n_bins=settings.n_bins,
            seed=settings.random_state,
        )
        report["gamma"] = {"chosen": gamma, "tried": tried}
    else:
        gamma = float(settings.gamma)
    if settings.clean and judge is not None:
        accepted = clean(rows, accepted, judge, problem.rules)
    return gamma, accepted


def find_targets(
    problem: Problem,
    rows: TrainingRows,
    accepted: np.ndarray,
    gamma: float,
    sources: np.ndarray,
    rng: np.random.Generator,
    settings: FitSettings,
) -> tuple[Targets, dict[str, Any]]:
    """Return D+ among the accepted rows, capped, and the share of Q's mass that the cap loses.

    sources: the rows for which the loss is measured.

    >>> from genrecourse.evaluation.example_tables import example_rows, example_settings
    >>> problem, rows = example_rows()
    >>> some = {"accepted": np.arange(41, 80), "sources": np.arange(40), "gamma": 0.7}
    >>> how = {"rng": np.random.default_rng(0), "settings": example_settings(max_targets=10)}
    >>> find_targets(problem, rows, **some, **how)[1]["used"]
    10
    """
    found = accepted[rows.confidence[accepted] > gamma]
    if len(found) == 0:
        raise UserError(
            "GenRe.fit: no row has a favourable outcome and a score above gamma "
            f"{gamma:g} (0.5 is the cutoff), so there is nobody to learn from. "
            "Lower gamma, or look at the classifier's cutoff"
        )
    whole = make_targets(rows.Z[found], rows.F[found], problem.rules, settings.n_bins)
    report = {"found": len(found), "used": len(found), "mass_lost": 0.0}
    if len(found) <= settings.max_targets:
        return whole, report
    kept = np.zeros(len(found), dtype=bool)
    kept[rng.permutation(len(found))[: settings.max_targets]] = True
    some = sources[:MEASURED]
    known = (rows.Z[some], rows.F[some], whole, kept, problem.rules, problem.cost)
    lams = LAM_RANGE if settings.lam == "any" else (settings.lam,)
    report |= {"used": int(kept.sum()), "mass_lost": max(lost_by_cap(*known, x) for x in lams)}
    return Targets(whole.Z[kept], whole.F[kept], whole.codes[kept], whole.edges), report


# ---- lines 3 and 6: pairs -----------------------------------------------------------------------


@dataclass(frozen=True)
class Pairing:
    """Pairs sources with targets, and draws pairs in which x_plus has x's immutables.

    >>> from genrecourse.evaluation.example_tables import (
    ...     example_rows,
    ...     example_settings,
    ...     example_targets,
    ... )
    >>> problem, rows = example_rows()
    >>> pairing = Pairing(problem, example_targets(), 0.5, example_settings())
    >>> len(pairing.pair_up(rows, np.arange(40)))  # all 40 sources have a target
    40
    """

    problem: Problem
    targets: Targets
    gamma: float
    settings: FitSettings

    def pair_up(self, rows: TrainingRows, sources: np.ndarray) -> Drawn:
        """Return the sources that have a target, with their targets."""
        settings, problem = self.settings, self.problem
        F = rows.F[sources]
        known = (rows.Z[sources], F, self.targets, problem.rules, problem.cost)
        pairs: Pairs | AnyLamPairs
        if settings.lam == "any":
            # as many pairs as training will look at are drawn ahead
            training = settings.training
            seen = training.n_steps(len(sources)) * training.batch_size
            rng = np.random.default_rng([settings.random_state, 3, len(sources)])
            pairs = make_any_lam_pairs(*known, n_draws=-(-seen // max(1, len(sources))), rng=rng)
        else:
            pairs = make_pairs(*known, lam=settings.lam, top_k=settings.top_k)
        return Drawn(self, F[pairs.source], pairs)

    @property
    def changes_target(self) -> bool:
        """Whether carrying over x's immutables can change a target, so that h is asked again."""
        rules = self.problem.rules
        by_bin = any(edge is not None for edge in self.targets.edges)
        unmatched = rules.immutable & ~rules.matched
        return by_bin or rules.binds_whole_rows or bool(unmatched.any())

    def draw(self, F: Array, target: np.ndarray, lam: list[np.ndarray]) -> Pair:
        """Return (x, x_plus), and lam if each pair has one; pairs that h rejects are dropped."""
        immutable = self.problem.rules.immutable
        F_plus = self.targets.F[target]
        F_plus[:, immutable] = F[:, immutable]
        if self.changes_target:
            F_plus = self.problem.with_derived(F, F_plus)
            Z_plus = self.problem.encoder.from_features(F_plus)
            ok = self.problem.confidence(Z_plus) > self.gamma
            F, F_plus, *lam = (part[ok] for part in (F, F_plus, *lam))
        return tuple(torch.as_tensor(part) for part in (F, F_plus, *lam))


@dataclass(frozen=True)
class Drawn:
    """Pairs as tensors, drawn again at each call (Algorithm 1, line 6).

    >>> from genrecourse.evaluation.example_tables import (
    ...     example_rows,
    ...     example_settings,
    ...     example_targets,
    ... )
    >>> problem, rows = example_rows()
    >>> pairing = Pairing(problem, example_targets(), 0.5, example_settings())
    >>> drawn = pairing.pair_up(rows, np.arange(40))
    >>> x, x_plus = drawn(np.array([0, 1, 2]), np.random.default_rng(0))
    >>> x_plus.shape
    torch.Size([3, 2])
    """

    pairing: Pairing
    F: Array  # (n, d) the sources
    pairs: Pairs | AnyLamPairs

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def n_sources(self) -> int:
        return len(self.pairs)

    def __call__(self, which: np.ndarray, rng: np.random.Generator) -> Pair:
        """Return (x, x_plus) of these sources, and the lam of each pair if it has one."""
        drawn = self.pairs.draw(which, rng)
        target, *lam = drawn if isinstance(drawn, tuple) else (drawn,)
        return self.pairing.draw(self.F[which], target, lam)


@dataclass(frozen=True)
class Refined:
    """Pairs as tensors, drawn and refined once.

    >>> pairs = Refined((torch.zeros(4, 2), torch.ones(4, 2)), n_sources=4)
    >>> x, x_plus = pairs(np.array([0, 3]), np.random.default_rng(0))
    >>> len(pairs), x_plus.shape
    (4, torch.Size([2, 2]))
    """

    parts: Pair  # as `Drawn` returns them
    n_sources: int

    def __len__(self) -> int:
        return len(self.parts[0])

    def __call__(self, which: np.ndarray, rng: np.random.Generator) -> Pair:
        """Return the pairs with these numbers."""
        return tuple(part[which] for part in self.parts)


TensorPairs = Drawn | Refined | Lesson


def refined(
    problem: Problem, drawn: TensorPairs, verifier: Verifier, settings: FitSettings
) -> Refined:
    """Draw some pairs of every source and refine them, once for all epochs.

    >>> from genrecourse.evaluation.example_tables import (
    ...     example_rows,
    ...     example_settings,
    ...     example_targets,
    ... )
    >>> problem, rows = example_rows()
    >>> settings, verifier = example_settings(), fit_verifier(problem, rows, random_state=0)
    >>> drawn = Pairing(problem, example_targets(), 0.5, settings).pair_up(rows, np.arange(2))
    >>> len(refined(problem, drawn, verifier, settings))  # 10 of each source
    20
    """
    each = min(max(REFINED // len(drawn), 1), REFINED_EACH)
    order = np.repeat(np.arange(len(drawn))[:REFINED], each)
    x, x_plus, *lam = drawn(order, np.random.default_rng([settings.random_state, 4]))
    better = refine(
        x.numpy(),
        x_plus.numpy(),
        verifier,
        problem.confidence,
        problem.encoder,
        problem.cost,
        settings.safety,
        problem.whole_row_rules(None),
    )
    return Refined((x, torch.as_tensor(better), *lam), drawn.n_sources)


def taught(
    problem: Problem, drawn: Drawn, verifier: Verifier, settings: FitSettings, most: int
) -> Lesson:
    """Search for the first `most` sources; return the pairs that were found, beside Q's own.

    >>> from genrecourse.evaluation.example_tables import example_rows, example_settings
    >>> from genrecourse.evaluation.example_tables import example_targets
    >>> problem, rows = example_rows()
    >>> settings = example_settings()
    >>> drawn = Pairing(problem, example_targets(), 0.5, settings).pair_up(rows, np.arange(2))
    >>> len(taught(problem, drawn, fit_verifier(problem, rows, 0), settings, most=1))
    1
    """
    return teach(
        problem,
        verifier,
        drawn.pairing.targets,
        drawn.F[:most],
        safety=settings.safety,
        own=drawn,
    )


def report_pairs(problem: Problem, drawn: Drawn, watched: Drawn, split: Split) -> dict[str, Any]:
    """Return how many sources have a target; if some have none, warn once with their number.

    >>> from genrecourse.evaluation.example_tables import (
    ...     example_rows,
    ...     example_settings,
    ...     example_targets,
    ... )
    >>> problem, rows = example_rows()
    >>> pairing = Pairing(problem, example_targets(), 0.5, example_settings())
    >>> split = np.arange(30), np.arange(30, 40)
    >>> report_pairs(problem, *(pairing.pair_up(rows, part) for part in split), split)["unpaired"]
    0
    """
    fitted, held = map(len, split)
    unpaired = fitted + held - len(drawn) - len(watched)
    lacks = (
        f"GenRe.fit: {unpaired} of {fitted + held} rejected rows have no accepted row "
        f"that the rules let them reach (immutable: {matched_names(problem)})"
    )
    if len(drawn) == 0:
        raise UserError(
            f"{lacks}, which leaves nothing to learn from. Make a feature mutable in the schema, "
            "or loosen a direction or step"
        )
    if unpaired:
        then = "they are left out of training"
        if unpaired > MANY * (fitted + held):
            then += (
                "; so few are left to learn from that it is better to lock at each request what is "
                "immutable or bound here: plans(X, rules={'lock': [...]})"
            )
        warnings.warn(f"{lacks}; {then}", stacklevel=stacklevel_of_caller())
    return {  # of the sources trained on
        "sources": len(drawn),
        "unpaired": fitted - len(drawn),
        "mass_lost_by_top_k": drawn.pairs.lost_by_top_k,
    }


def matched_names(problem: Problem) -> list[str]:
    """Return the names of the features that a target must share with x.

    >>> from genrecourse.evaluation.checks import example_score, make_example
    >>> from genrecourse.methods.nearest import NearestNeighbour
    >>> example = make_example(rows=80, people=10)
    >>> matched_names(NearestNeighbour(example_score, example.schema).fit(example.X).problem_)
    ['age', 'sex']
    """
    return [problem.schema.names[j] for j in np.flatnonzero(problem.rules.matched)]


# ---- line 2: R_theta ---------------------------------------------------------------------------


def make_density(
    problem: Problem, rows: TrainingRows, targets: Targets, settings: FitSettings
) -> RecourseDensity:
    """Return R_theta, untrained. It decodes the features that can change, in column order.

    >>> from genrecourse.evaluation.example_tables import (
    ...     example_rows,
    ...     example_settings,
    ...     example_targets,
    ... )
    >>> make_density(*example_rows(), example_targets(), example_settings()).decoded
    tensor([0, 1])
    """
    schema, decoded = problem.schema, np.flatnonzero(~problem.rules.immutable)
    is_number = np.array([not f.is_category for f in schema])
    bins = make_bins(targets.F[:, decoded], is_number[decoded], settings.n_bins, settings.bins)
    n_levels = [len(f.categories) for f in schema]
    seen = torch.as_tensor(problem.protected.hide(rows.even.F))
    knots = make_knots(seen, torch.as_tensor(is_number), n_levels)
    with seeded(settings.random_state):
        net = RecourseNet(
            settings.net, knots, torch.as_tensor(decoded), bins.n_choices, lam=settings.lam
        )
    weights = torch.tensor([f.cost_weight for f in schema])[decoded]
    return RecourseDensity(net, bins, problem.rules, weights, keep=settings.keep)


# ---- lines 4-9: training -----------------------------------------------------------------------


def train_density(
    problem: Problem,
    density: RecourseDensity,
    drawn: TensorPairs,
    watched: TensorPairs,
    gamma: float,
    settings: FitSettings,
) -> dict[str, Any]:
    """Train R_theta on pairs; return a report.

    >>> from genrecourse.evaluation.example_tables import (
    ...     example_rows,
    ...     example_settings,
    ...     example_targets,
    ... )
    >>> (problem, rows), targets, settings = example_rows(), example_targets(), example_settings()
    >>> density = make_density(problem, rows, targets, settings)
    >>> drawn = Pairing(problem, targets, 0.5, settings).pair_up(rows, np.arange(40))
    >>> train_density(problem, density, drawn, drawn, 0.5, settings)["steps"]
    2
    """
    seed, training = settings.random_state, settings.training
    generator = torch.Generator().manual_seed(int(seed))
    fixed = np.random.default_rng([seed, 2])
    held_pair = _shown(problem, watched(np.arange(len(watched))[:WATCHED], fixed))

    def loss(pair: Pair, generator: torch.Generator) -> torch.Tensor:
        return density.loss(pair[0], pair[1], generator, *pair[2:])

    def held_out() -> float:  # only called if somebody is held out
        return float(loss(held_pair, torch.Generator().manual_seed(int(seed))))

    with torch_threads(training.batch_size * n_weights(density.net.encoder)):
        report = train(
            density.net,
            lambda pair: loss(pair, generator),
            _batches(problem, drawn, gamma, settings),
            training.plan(drawn.n_sources),
            held_out=held_out if len(held_pair[0]) else None,
            label="training GenRe",
            progress=settings.progress,
            shared=True,
        )
    rate = report.steps * training.batch_size / max(report.seconds, 1e-9)
    return {**asdict(report), "pairs_per_second": rate}


def _batches(
    problem: Problem, drawn: TensorPairs, gamma: float, settings: FitSettings
) -> Iterator[Pair]:
    """Yield minibatches without end, every source once an epoch; raise if no pair is left."""
    rng, size = np.random.default_rng([settings.random_state, 1]), settings.training.batch_size
    barren = 0
    while barren < BARREN:
        order = rng.permutation(len(drawn))
        if len(order) < size:  # a small table: several draws a source
            order = np.tile(order, -(-size // max(1, len(order))))
        for i in range(0, len(order) - size + 1, size):
            pair = _shown(problem, drawn(order[i : i + size], rng))
            barren = 0 if len(pair[0]) else barren + 1
            if len(pair[0]):
                yield pair
        if len(order) == 0:
            break
    raise UserError(
        f"GenRe.fit: with their own {matched_names(problem)} carried over, the "
        f"classifier accepts none of the targets of {BARREN} batches of people above gamma "
        f"{gamma:g}, which leaves nothing to learn from. Lower gamma, or make n_bins "
        "larger, so that people are paired with more like themselves"
    )


def _shown(problem: Problem, pair: Pair) -> Pair:
    """Return a pair as the net may see it, with x's protected features hidden.

    Of x_plus the net reads only decoded features, and protected ones are not decoded.
    """
    x, *rest = pair
    return (torch.as_tensor(problem.protected.hide(x.numpy())), *rest)
