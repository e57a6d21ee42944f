"""One function a metric, and METRICS: name -> (function, direction).

Every metric maps an `Outcome` (what one method did for N rejected people, and who judges it) to
N numbers, one a person, so that a mean always has a denominator. A person without an x_plus that
can be read counts as failed: 0 in every share, and NaN, which is no number at all, in an amount
such as the cost. A metric that needs more than the outcome holds (witnesses, a log-likelihood) is
NaN throughout. docs/metrics.md says what is weak about each.

SET_METRICS are the same for several plans a person (`PlanSets`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from itertools import combinations

import numpy as np

from genrecourse.evaluation.gold import Decides, Witnesses
from genrecourse.rules.book import RuleBook
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import Array, TableEncoder, unchanged
from genrecourse.table.noise import NOISE_SCALE, KeyedNoise
from genrecourse.trust.judge import Judge

N_NEIGHBOURS = 5  # of y_nn and knn_distance
N_NOISE = 5  # noise vectors a person
NOISE_SEED = 0  # fixed: each method meets the same noise
DECIMALS = 9  # two rows that agree on so many decimals are one row


@dataclass(frozen=True)
class Outcome:
    """Rejected people, what they were told, and who judges it.

    A row of F_plus that is NaN throughout is no answer. One with a level that does not exist, or
    NaN where nothing can be missing, breaks a rule and cannot be read by anybody else.
    """

    F: Array  # (N, d)
    F_plus: Array  # (N, d)
    accepts: Decides  # h's decision on rows of Z
    encoder: TableEncoder
    judge: Judge
    witnesses: Witnesses | None = None
    log_prob: Array | None = None  # (N,) log R_theta(x_plus | x), of a method that has a density

    @cached_property
    def answered(self) -> np.ndarray:
        """(N,) booleans: the person was told something."""
        return np.asarray(~np.isnan(self.F_plus).all(axis=1))

    @cached_property
    def readable(self) -> np.ndarray:
        """(N,) booleans: x_plus is a row of the table, whatever rules it breaks."""
        answer = self.answered.copy()
        for feature, value in zip(self.encoder.schema, self.F_plus.T, strict=True):
            gone = np.isnan(value)
            ok = feature.missing & gone
            if feature.is_category:
                ok |= np.isin(value, np.arange(len(feature.categories)))
            else:
                ok |= ~gone
            answer &= ok
        return answer

    @cached_property
    def before(self) -> Array:
        """x as rows of Z."""
        return self.encoder.from_features(self.F)

    @cached_property
    def after(self) -> Array:
        """x_plus as rows of Z; x itself where x_plus cannot be read."""
        return self.encoder.from_features(np.where(self.readable[:, None], self.F_plus, self.F))

    @cached_property
    def noisy(self) -> Array:
        """(N * N_NOISE, D): x_plus with noise, the same for every method."""
        return with_noise(self.encoder, self.before, self.after)

    @cached_property
    def valid(self) -> np.ndarray:
        return _once(self.judge.valid, self.after)

    @cached_property
    def inlier(self) -> np.ndarray:
        return _once(self.judge.inlier, self.after)

    @cached_property
    def accepted(self) -> np.ndarray:
        """(N,) booleans: h accepts x_plus."""
        return self.readable & self.accepts(self.after)

    @cached_property
    def changed(self) -> np.ndarray:
        """(N, d) booleans."""
        return np.asarray(~unchanged(self.F, self.F_plus) & ~_follows(self.encoder))

    @cached_property
    def broken(self) -> dict[str, np.ndarray]:
        """(N, d) booleans for each kind of rule."""
        return RuleBook.of_schema(self.encoder).violations(self.F, self.F_plus)


def with_noise(encoder: TableEncoder, before: Array, after: Array) -> Array:
    """(n * N_NOISE, D): rows of Z with noise on each number; levels and what is missing stay.

    The noise is keyed by `before`, x itself, so that x meets the same noise whatever it was told.
    """
    is_number = np.zeros(encoder.width, dtype=bool)
    gone = np.zeros(after.shape, dtype=bool)
    for block in encoder.blocks:
        if block.n_levels == 0:
            is_number[block.start] = True
            gone[:, block.start] = block.has_flag & (after[:, block.stop - 1] > 0.5)
    keyed = KeyedNoise(NOISE_SEED)
    shift = keyed.normal(keyed.keys(before), (N_NOISE, encoder.width))
    moves = (is_number & ~gone)[:, None, :]
    noisy = after[:, None, :] + NOISE_SCALE * shift * moves
    return np.asarray(noisy.reshape(-1, encoder.width))


def _follows(encoder: TableEncoder) -> np.ndarray:
    """(d,) booleans: what moves by itself is no change that a plan asks for."""
    return np.array([feature.follows for feature in encoder.schema])


def _once(ask: Decides, Z: Array) -> np.ndarray:
    """ask(Z), each distinct row asked once: many people are told the same x_plus."""
    distinct, place = np.unique(Z, axis=0, return_inverse=True)
    return np.asarray(ask(distinct)[place.reshape(-1)])


def _share(outcome: Outcome, values: np.ndarray) -> Array:
    """A share counts a person whose x_plus cannot be read as failed."""
    return np.where(outcome.readable, values, 0.0)


def _amount(outcome: Outcome, values: np.ndarray) -> Array:
    """An amount is of an x_plus that can be read, and of no other."""
    return np.where(outcome.readable, values, np.nan)


def _asks_witnesses(
    metric: Callable[[Outcome, Witnesses], Array],
) -> Callable[[Outcome], Array]:
    """The metric; NaN throughout where nobody called the witnesses."""

    @wraps(metric)
    def asked(outcome: Outcome) -> Array:
        if outcome.witnesses is None:
            return np.full(len(outcome.F), np.nan)
        return metric(outcome, outcome.witnesses)

    return asked


# ---- the protocol's -------------------------------------------------------------------------


def cost(outcome: Outcome) -> Array:
    """L1 on the [0, 1] scale; a changed category counts 1."""
    return _amount(outcome, Cost(outcome.encoder)(outcome.before, outcome.after))


def val(outcome: Outcome) -> Array:
    """The judge gives the favourable outcome more than one half."""
    return _share(outcome, outcome.valid)


def lof(outcome: Outcome) -> Array:
    """The judge's local outlier factor calls x_plus an inlier among accepted rows."""
    return _share(outcome, outcome.inlier)


def score(outcome: Outcome) -> Array:
    """Val + LOF - Cost / d; at most 2. Who has no x_plus has 0 of each."""
    paid = np.nan_to_num(cost(outcome)) / outcome.F.shape[1]
    return val(outcome) + lof(outcome) - paid


def h_valid(outcome: Outcome) -> Array:
    """h accepts x_plus."""
    return outcome.accepted.astype(float)


def changes(outcome: Outcome) -> Array:
    """How many features differ."""
    return np.where(outcome.answered, outcome.changed.sum(axis=1), np.nan)


def success(outcome: Outcome) -> Array:
    """h accepts x_plus and no rule of the schema is broken."""
    broken = np.any(list(outcome.broken.values()), axis=(0, 2))
    return (outcome.accepted & ~broken).astype(float)


# ---- rules ----------------------------------------------------------------------------------


def violations(outcome: Outcome) -> Array:
    """How many features break a rule of the schema."""
    broken = np.any(list(outcome.broken.values()), axis=0)
    return np.where(outcome.answered, broken.sum(axis=1), np.nan)


def _violations_of(kind: str, outcome: Outcome) -> Array:
    return np.where(outcome.answered, outcome.broken[kind].sum(axis=1), np.nan)


def violations_immutable(outcome: Outcome) -> Array:
    """How many immutable features changed."""
    return _violations_of("immutable", outcome)


def violations_direction(outcome: Outcome) -> Array:
    """How many features moved the way that is closed to them."""
    return _violations_of("direction", outcome)


def violations_range(outcome: Outcome) -> Array:
    """How many numbers moved out of their range."""
    return _violations_of("range", outcome)


def violations_step(outcome: Outcome) -> Array:
    """How many numbers moved farther than their largest step."""
    return _violations_of("step", outcome)


def violations_missing(outcome: Outcome) -> Array:
    """How many features lost their value."""
    return _violations_of("missing", outcome)


def violations_category(outcome: Outcome) -> Array:
    """How many features have a level that does not exist."""
    return _violations_of("category", outcome)


# ---- valid, for whom else? ------------------------------------------------------------------


def soft_val(outcome: Outcome) -> Array:
    """The judge's probability of the favourable outcome."""
    return _share(outcome, _once(outcome.judge.probability, outcome.after))


@_asks_witnesses
def val_oof(outcome: Outcome, witnesses: Witnesses) -> Array:
    """Forests that never saw the row nearest to x_plus give the favourable outcome over a half."""
    return _share(outcome, _once(lambda Z: witnesses.out_of_fold(Z)[0], outcome.after) > 0.5)


@_asks_witnesses
def y_nn(outcome: Outcome, witnesses: Witnesses) -> Array:
    """The share of the five training rows nearest to x_plus whose outcome was favourable."""

    def share(Z: Array) -> Array:
        return witnesses.training.share(Z, witnesses.favourable, N_NEIGHBOURS)

    return _share(outcome, _once(share, outcome.after))


@_asks_witnesses
def retrained_seed(outcome: Outcome, witnesses: Witnesses) -> Array:
    """h trained again from another seed accepts x_plus."""
    return _share(outcome, witnesses.retrained["seed"](outcome.after))


@_asks_witnesses
def retrained_bootstrap(outcome: Outcome, witnesses: Witnesses) -> Array:
    """h trained again on a bootstrap of the training rows accepts x_plus."""
    return _share(outcome, witnesses.retrained["bootstrap"](outcome.after))


@_asks_witnesses
def retrained_architecture(outcome: Outcome, witnesses: Witnesses) -> Array:
    """h trained again with other layers accepts x_plus."""
    return _share(outcome, witnesses.retrained["architecture"](outcome.after))


def noise(outcome: Outcome) -> Array:
    """The share of noisy copies of x_plus that the judge finds valid."""
    return _share(outcome, outcome.judge.valid(outcome.noisy).reshape(-1, N_NOISE).mean(axis=1))


def h_noise(outcome: Outcome) -> Array:
    """The share of noisy copies of x_plus that h accepts."""
    return _share(outcome, outcome.accepts(outcome.noisy).reshape(-1, N_NOISE).mean(axis=1))


# ---- plausible, and like whom? ---------------------------------------------------------------


@_asks_witnesses
def lof_20(outcome: Outcome, witnesses: Witnesses) -> Array:
    """An inlier by 20 neighbours among accepted rows, each of them counted once."""
    return _share(outcome, _once(witnesses.lof.predict, outcome.after) == 1)


@_asks_witnesses
def knn_distance(outcome: Outcome, witnesses: Witnesses) -> Array:
    """The mean cost of going on to the five nearest accepted rows, each of them counted once."""

    def distance(Z: Array) -> Array:
        return witnesses.accepted.mean_distance(Z, N_NEIGHBOURS)

    return _amount(outcome, _once(distance, outcome.after))


def log_likelihood(outcome: Outcome) -> Array:
    """log R_theta(x_plus | x), of a method that has a density."""
    if outcome.log_prob is None:
        return np.full(len(outcome.F), np.nan)
    return _amount(outcome, outcome.log_prob)


@_asks_witnesses
def copies(outcome: Outcome, witnesses: Witnesses) -> Array:
    """x_plus, with x's own immutables, is a training row."""
    return _share(outcome, _once(witnesses.training.holds, outcome.after))


@_asks_witnesses
def nearest_row(outcome: Outcome, witnesses: Witnesses) -> Array:
    """The cost of going on to the nearest training row."""
    return _amount(outcome, _once(lambda Z: witnesses.training.nearest(Z)[0], outcome.after))


def distinct(outcome: Outcome) -> Array:
    """1 / (people who were told this same x_plus): the sum over people, which is mean * N, is the
    number of distinct x_plus."""
    rows = outcome.after[outcome.readable].round(DECIMALS) + 0.0  # -0.0 and 0.0 are one value
    _, place, count = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    share = np.zeros(len(outcome.F))
    share[outcome.readable] = 1 / count[place.reshape(-1)]
    return share


# ---- more than was needed --------------------------------------------------------------------


def redundancy(outcome: Outcome) -> Array:
    """How many changes could be undone, one at a time, without losing h's decision.

    Where h rejects x_plus there is no decision to lose: every change is redundant.
    """
    person, feature = np.nonzero(outcome.changed & outcome.accepted[:, None])
    kept = np.zeros(0)
    if len(person):
        undone = outcome.F_plus[person].copy()
        undone[np.arange(len(person)), feature] = outcome.F[person, feature]
        kept = outcome.accepts(outcome.encoder.from_features(undone)).astype(float)
    needless = np.bincount(person, weights=kept, minlength=len(outcome.F))
    return _amount(outcome, np.where(outcome.accepted, needless, outcome.changed.sum(axis=1)))


METRICS: dict[str, tuple[Callable[[Outcome], Array], str]] = {
    "cost": (cost, "lower"),
    "val": (val, "higher"),
    "lof": (lof, "higher"),
    "score": (score, "higher"),
    "h_valid": (h_valid, "higher"),
    "changes": (changes, "lower"),
    "success": (success, "higher"),
    "violations": (violations, "lower"),
    "violations_immutable": (violations_immutable, "lower"),
    "violations_direction": (violations_direction, "lower"),
    "violations_range": (violations_range, "lower"),
    "violations_step": (violations_step, "lower"),
    "violations_missing": (violations_missing, "lower"),
    "violations_category": (violations_category, "lower"),
    "soft_val": (soft_val, "higher"),
    "val_oof": (val_oof, "higher"),
    "y_nn": (y_nn, "higher"),
    "retrained_seed": (retrained_seed, "higher"),
    "retrained_bootstrap": (retrained_bootstrap, "higher"),
    "retrained_architecture": (retrained_architecture, "higher"),
    "noise": (noise, "higher"),
    "h_noise": (h_noise, "higher"),
    "lof_20": (lof_20, "higher"),
    "knn_distance": (knn_distance, "lower"),
    "log_likelihood": (log_likelihood, "higher"),
    "copies": (copies, "lower"),
    "nearest_row": (nearest_row, "lower"),
    "distinct": (distinct, "higher"),
    "redundancy": (redundancy, "lower"),
}


# ---- several plans a person ------------------------------------------------------------------


@dataclass(frozen=True)
class PlanSets:
    """Up to k plans for each of N people. Only valid ones count, and each distinct one once."""

    F: Array  # (N, d)
    F_plus: Array  # (N, k, d)
    valid: np.ndarray  # (N, k) booleans: a plan that holds; False also where there are fewer than k
    encoder: TableEncoder

    @cached_property
    def counts(self) -> np.ndarray:
        """(N, k) booleans: valid, and no earlier plan of the person is the same."""
        return _first(self.valid, self._same_plan)

    @cached_property
    def changed(self) -> np.ndarray:
        """(N, k, d) booleans."""
        moved = ~unchanged(self.F[:, None, :], self.F_plus)
        return np.asarray(moved & ~_follows(self.encoder))

    def _same_plan(self, i: int, j: int) -> np.ndarray:
        same = unchanged(self.F_plus[:, i], self.F_plus[:, j])
        return np.asarray(same.all(axis=1))

    def same_changes(self, i: int, j: int) -> np.ndarray:
        """(N,) booleans: plans i and j change the same features."""
        return np.asarray((self.changed[:, i] == self.changed[:, j]).all(axis=1))


def _first(valid: np.ndarray, same: Callable[[int, int], np.ndarray]) -> np.ndarray:
    """Valid plans that are the first of their kind; same(i, j): are plans i and j of one kind?"""
    first = valid.copy()
    for i, j in combinations(range(valid.shape[1]), 2):
        first[:, j] &= ~(valid[:, i] & same(i, j))
    return first


def set_size(sets: PlanSets) -> Array:
    """How many different valid plans a person can choose from."""
    return sets.counts.sum(axis=1).astype(float)


def pairwise_cost(sets: PlanSets) -> Array:
    """The mean cost of going from one plan to another of the same person; 0 for a single plan."""
    price = Cost(sets.encoder)
    # a place that holds no plan may hold anything: x stands there instead
    plans = np.where(sets.counts[..., None], sets.F_plus, sets.F[:, None, :])
    Z = [sets.encoder.from_features(plans[:, i]) for i in range(plans.shape[1])]
    total, pairs = np.zeros(len(sets.F)), np.zeros(len(sets.F))
    for i, j in combinations(range(len(Z)), 2):
        both = sets.counts[:, i] & sets.counts[:, j]
        total += both * price(Z[i], Z[j])
        pairs += both
    return np.asarray(total / np.maximum(pairs, 1))


def distinct_changes(sets: PlanSets) -> Array:
    """How many different sets of features the valid plans of a person change."""
    return _first(sets.valid, sets.same_changes).sum(axis=1).astype(float)


SET_METRICS: dict[str, tuple[Callable[[PlanSets], Array], str]] = {
    "set_size": (set_size, "higher"),
    "pairwise_cost": (pairwise_cost, "higher"),
    "distinct_changes": (distinct_changes, "higher"),
}
