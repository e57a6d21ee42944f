"""The metrics: one function each, and METRICS: name -> (function, direction).

A metric takes an `Outcome` (what one method did for N rejected people, and the judge) and returns N
numbers, one per person. If the x_plus of a person is absent or cannot be read, the person counts as
failed: 0 in a share, and NaN in an amount such as the cost. If a metric needs something that the
outcome does not have (witnesses or a log-likelihood), it returns only NaN. docs/metrics.md
describes the weakness of each metric.

SET_METRICS are metrics of several plans per person (`PlanSets`).

To add a metric, write a function and add one line to METRICS. The people of the examples are
described in `evaluation/examples.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from genrecourse.rules.book import RuleBook
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import Array, TableEncoder, unchanged
from genrecourse.trust.imprecise import DECIMALS, N_NOISE, with_noise

if TYPE_CHECKING:
    from genrecourse.evaluation.gold import Decides, Witnesses
    from genrecourse.trust.judge import Judge

N_NEIGHBOURS = 5  # for y_nn and knn_distance


@dataclass(frozen=True)
class Outcome:
    """Rejected people, the x_plus that a method gave them, and the judge.

    A row of F_plus with only NaN is no answer. A row with an unknown level, or with NaN in a
    feature that cannot be missing, breaks a rule and cannot be read by h and the judge.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> example_outcome().answered
    array([ True,  True, False])
    """

    F: Array  # (N, d)
    F_plus: Array  # (N, d)
    accepts: Decides  # h's decision on rows of Z
    encoder: TableEncoder
    judge: Judge
    witnesses: Witnesses | None = None
    log_prob: Array | None = None  # (N,) log R_theta(x_plus | x), if the method has a density

    @cached_property
    def answered(self) -> np.ndarray:
        """(N,) booleans: the person got an x_plus."""
        return np.asarray(~np.isnan(self.F_plus).all(axis=1))

    @cached_property
    def readable(self) -> np.ndarray:
        """(N,) booleans: x_plus is a possible row of the table, even if it breaks a rule."""
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
        """(N, D) x as rows of Z."""
        return self.encoder.from_features(self.F)

    @cached_property
    def after(self) -> Array:
        """(N, D) x_plus as rows of Z; x itself if x_plus cannot be read."""
        return self.encoder.from_features(np.where(self.readable[:, None], self.F_plus, self.F))

    @cached_property
    def noisy(self) -> Array:
        """(N * N_NOISE, D) x_plus with noise, the same noise for every method."""
        return with_noise(self.encoder, self.before, self.after)

    @cached_property
    def valid(self) -> np.ndarray:
        """(N,) booleans: the judge calls x_plus valid."""
        return _once(self.judge.valid, self.after)

    @cached_property
    def inlier(self) -> np.ndarray:
        """(N,) booleans: the judge calls x_plus an inlier."""
        return _once(self.judge.inlier, self.after)

    @cached_property
    def accepted(self) -> np.ndarray:
        """(N,) booleans: h accepts x_plus."""
        return self.readable & self.accepts(self.after)

    @cached_property
    def changed(self) -> np.ndarray:
        """(N, d) booleans: the plan asks for a change of the feature."""
        return np.asarray(~unchanged(self.F, self.F_plus) & ~_follows(self.encoder))

    @cached_property
    def broken(self) -> dict[str, np.ndarray]:
        """(N, d) booleans for each kind of rule: the feature breaks it."""
        return RuleBook.of_schema(self.encoder).violations(self.F, self.F_plus)


def _follows(encoder: TableEncoder) -> np.ndarray:
    """Return (d,) booleans: the feature changes by itself, so a plan does not ask for it."""
    return np.array([feature.follows for feature in encoder.schema])


def _once(ask: Decides, Z: Array) -> np.ndarray:
    """Return ask(Z), computed once per distinct row: many people get the same x_plus."""
    distinct, place = np.unique(Z, axis=0, return_inverse=True)
    return np.asarray(ask(distinct)[place.reshape(-1)])


def _share(outcome: Outcome, values: np.ndarray) -> Array:
    """Return the values of a share: 0 if x_plus cannot be read."""
    return np.where(outcome.readable, values, 0.0)


def _amount(outcome: Outcome, values: np.ndarray) -> Array:
    """Return the values of an amount: NaN if x_plus cannot be read."""
    return np.where(outcome.readable, values, np.nan)


def _asks_witnesses(
    metric: Callable[[Outcome, Witnesses], Array],
) -> Callable[[Outcome], Array]:
    """Return a metric that is NaN for everybody if the outcome has no witnesses."""

    @wraps(metric)
    def asked(outcome: Outcome) -> Array:
        if outcome.witnesses is None:
            return np.full(len(outcome.F), np.nan)
        return metric(outcome, outcome.witnesses)

    return asked


# ---- the protocol ---------------------------------------------------------------------------


def cost(outcome: Outcome) -> Array:
    """Return the L1 distance on the [0, 1] scale; a changed category counts 1.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> cost(example_outcome()).round(2).tolist()
    [0.5, 1.05, nan]
    """
    return _amount(outcome, Cost(outcome.encoder, protocol=True)(outcome.before, outcome.after))


def val(outcome: Outcome) -> Array:
    """Return 1 if the judge gives the favourable outcome a probability above one half.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> val(example_outcome()).round(2).tolist()
    [1.0, 1.0, 0.0]
    """
    return _share(outcome, outcome.valid)


def lof(outcome: Outcome) -> Array:
    """Return 1 if the judge's local outlier factor calls x_plus an inlier of accepted rows.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> lof(example_outcome()).round(2).tolist()
    [1.0, 0.0, 0.0]
    """
    return _share(outcome, outcome.inlier)


def score(outcome: Outcome) -> Array:
    """Return Val + LOF - Cost / d, at most 2; 0 without an x_plus.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> score(example_outcome()).round(2).tolist()
    [1.83, 0.65, 0.0]
    """
    paid = np.nan_to_num(cost(outcome)) / outcome.F.shape[1]
    return val(outcome) + lof(outcome) - paid


def h_valid(outcome: Outcome) -> Array:
    """Return 1 if h accepts x_plus.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> h_valid(example_outcome()).round(2).tolist()
    [1.0, 0.0, 0.0]
    """
    return outcome.accepted.astype(float)


def changes(outcome: Outcome) -> Array:
    """Return how many features differ.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> changes(example_outcome()).round(2).tolist()
    [1.0, 2.0, nan]
    """
    return np.where(outcome.answered, outcome.changed.sum(axis=1), np.nan)


def success(outcome: Outcome) -> Array:
    """Return 1 if h accepts x_plus and it breaks no rule of the schema.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> success(example_outcome()).round(2).tolist()
    [1.0, 0.0, 0.0]
    """
    broken = np.any(list(outcome.broken.values()), axis=(0, 2))
    return (outcome.accepted & ~broken).astype(float)


# ---- rules ----------------------------------------------------------------------------------


def violations(outcome: Outcome) -> Array:
    """Return how many features break a rule of the schema.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> violations(example_outcome()).round(2).tolist()
    [0.0, 0.0, nan]
    """
    broken = np.any(list(outcome.broken.values()), axis=0)
    return np.where(outcome.answered, broken.sum(axis=1), np.nan)


def _violations_of(kind: str, outcome: Outcome) -> Array:
    return np.where(outcome.answered, outcome.broken[kind].sum(axis=1), np.nan)


def violations_immutable(outcome: Outcome) -> Array:
    """Return how many immutable features changed.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> violations_immutable(example_outcome()).round(2).tolist()
    [0.0, 0.0, nan]
    """
    return _violations_of("immutable", outcome)


def violations_direction(outcome: Outcome) -> Array:
    """Return how many features moved in the forbidden direction.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> violations_direction(example_outcome()).round(2).tolist()
    [0.0, 0.0, nan]
    """
    return _violations_of("direction", outcome)


def violations_range(outcome: Outcome) -> Array:
    """Return how many numbers left their range.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> violations_range(example_outcome()).round(2).tolist()
    [0.0, 0.0, nan]
    """
    return _violations_of("range", outcome)


def violations_step(outcome: Outcome) -> Array:
    """Return how many numbers moved farther than their largest step.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> violations_step(example_outcome()).round(2).tolist()
    [0.0, 0.0, nan]
    """
    return _violations_of("step", outcome)


def violations_missing(outcome: Outcome) -> Array:
    """Return how many features lost their value.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> violations_missing(example_outcome()).round(2).tolist()
    [0.0, 0.0, nan]
    """
    return _violations_of("missing", outcome)


def violations_category(outcome: Outcome) -> Array:
    """Return how many features have a level that does not exist.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> violations_category(example_outcome()).round(2).tolist()
    [0.0, 0.0, nan]
    """
    return _violations_of("category", outcome)


# ---- validity by other models ---------------------------------------------------------------


def soft_val(outcome: Outcome) -> Array:
    """Return the judge's probability of the favourable outcome.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> soft_val(example_outcome()).round(2).tolist()
    [0.7, 0.55, 0.0]
    """
    return _share(outcome, _once(outcome.judge.probability, outcome.after))


@_asks_witnesses
def val_oof(outcome: Outcome, witnesses: Witnesses) -> Array:
    """Return 1 if forests that did not see the row nearest to x_plus call it valid.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> val_oof(example_outcome()).round(2).tolist()
    [1.0, 1.0, 0.0]
    """
    return _share(outcome, _once(lambda Z: witnesses.out_of_fold(Z)[0], outcome.after) > 0.5)


@_asks_witnesses
def y_nn(outcome: Outcome, witnesses: Witnesses) -> Array:
    """Return the share of favourable outcomes among the five training rows nearest to x_plus.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> y_nn(example_outcome()).round(2).tolist()
    [0.6, 0.6, 0.0]
    """

    def share(Z: Array) -> Array:
        return witnesses.training.share(Z, witnesses.favourable, N_NEIGHBOURS)

    return _share(outcome, _once(share, outcome.after))


@_asks_witnesses
def retrained_seed(outcome: Outcome, witnesses: Witnesses) -> Array:
    """Return 1 if h, trained again from another seed, accepts x_plus.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> retrained_seed(example_outcome()).round(2).tolist()
    [1.0, 0.0, 0.0]
    """
    return _share(outcome, witnesses.retrained["seed"](outcome.after))


@_asks_witnesses
def retrained_bootstrap(outcome: Outcome, witnesses: Witnesses) -> Array:
    """Return 1 if h, trained again on a bootstrap of the training rows, accepts x_plus.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> retrained_bootstrap(example_outcome()).round(2).tolist()
    [1.0, 1.0, 0.0]
    """
    return _share(outcome, witnesses.retrained["bootstrap"](outcome.after))


@_asks_witnesses
def retrained_architecture(outcome: Outcome, witnesses: Witnesses) -> Array:
    """Return 1 if h, trained again with other layers, accepts x_plus.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> retrained_architecture(example_outcome()).round(2).tolist()
    [0.0, 0.0, 0.0]
    """
    return _share(outcome, witnesses.retrained["architecture"](outcome.after))


def noise(outcome: Outcome) -> Array:
    """Return the share of noisy copies of x_plus that the judge calls valid.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> noise(example_outcome()).round(2).tolist()
    [1.0, 1.0, 0.0]
    """
    return _share(outcome, outcome.judge.valid(outcome.noisy).reshape(-1, N_NOISE).mean(axis=1))


def h_noise(outcome: Outcome) -> Array:
    """Return the share of noisy copies of x_plus that h accepts.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> h_noise(example_outcome()).round(2).tolist()
    [1.0, 0.0, 0.0]
    """
    return _share(outcome, outcome.accepts(outcome.noisy).reshape(-1, N_NOISE).mean(axis=1))


# ---- plausibility ----------------------------------------------------------------------------


@_asks_witnesses
def lof_20(outcome: Outcome, witnesses: Witnesses) -> Array:
    """Return 1 for an inlier by 20 neighbours among the distinct accepted rows.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> lof_20(example_outcome()).round(2).tolist()
    [1.0, 0.0, 0.0]
    """
    return _share(outcome, _once(witnesses.lof.predict, outcome.after) == 1)


@_asks_witnesses
def knn_distance(outcome: Outcome, witnesses: Witnesses) -> Array:
    """Return the mean cost from x_plus to the five nearest distinct accepted rows.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> knn_distance(example_outcome()).round(2).tolist()
    [1.15, 1.63, nan]
    """

    def distance(Z: Array) -> Array:
        return witnesses.accepted.mean_distance(Z, N_NEIGHBOURS)

    return _amount(outcome, _once(distance, outcome.after))


def log_likelihood(outcome: Outcome) -> Array:
    """Return log R_theta(x_plus | x), if the method has a density.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> log_likelihood(example_outcome()).round(2).tolist()
    [-1.5, -4.0, nan]
    """
    if outcome.log_prob is None:
        return np.full(len(outcome.F), np.nan)
    return _amount(outcome, outcome.log_prob)


@_asks_witnesses
def copies(outcome: Outcome, witnesses: Witnesses) -> Array:
    """Return 1 if x_plus is equal to a training row, immutable features included.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> copies(example_outcome()).round(2).tolist()
    [1.0, 0.0, 0.0]
    """
    return _share(outcome, _once(witnesses.training.holds, outcome.after))


@_asks_witnesses
def nearest_row(outcome: Outcome, witnesses: Witnesses) -> Array:
    """Return the cost from x_plus to the nearest training row.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> nearest_row(example_outcome()).round(2).tolist()
    [0.0, 0.55, nan]
    """
    return _amount(outcome, _once(lambda Z: witnesses.training.nearest(Z)[0], outcome.after))


def distinct(outcome: Outcome) -> Array:
    """Return 1 / (number of people with the same x_plus).

    The sum over people, which is mean * N, is the number of distinct x_plus.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> distinct(example_outcome()).round(2).tolist()
    [1.0, 1.0, 0.0]
    """
    rows = outcome.after[outcome.readable].round(DECIMALS) + 0.0  # turns -0.0 into 0.0
    _, place, count = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    share = np.zeros(len(outcome.F))
    share[outcome.readable] = 1 / count[place.reshape(-1)]
    return share


# ---- needless changes ------------------------------------------------------------------------


def redundancy(outcome: Outcome) -> Array:
    """Return how many changes could be undone, one at a time, so that h still accepts.

    If h rejects x_plus, every change is redundant.

    >>> from genrecourse.evaluation.examples import example_outcome
    >>> redundancy(example_outcome()).round(2).tolist()
    [0.0, 2.0, nan]
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


# ---- several plans per person ----------------------------------------------------------------


@dataclass(frozen=True)
class PlanSets:
    """Up to k plans for each of N people; only valid plans count, and equal plans count once.

    >>> from genrecourse.evaluation.examples import example_sets
    >>> example_sets().counts.tolist()
    [[True, True], [True, False]]
    """

    F: Array  # (N, d)
    F_plus: Array  # (N, k, d)
    valid: np.ndarray  # (N, k) booleans: the plan holds; False if a person has fewer than k plans
    encoder: TableEncoder

    @cached_property
    def counts(self) -> np.ndarray:
        """(N, k) booleans: the plan is valid and differs from all earlier plans of the person."""
        return _first(self.valid, self._same_plan)

    @cached_property
    def changed(self) -> np.ndarray:
        """(N, k, d) booleans: the plan asks for a change of the feature."""
        moved = ~unchanged(self.F[:, None, :], self.F_plus)
        return np.asarray(moved & ~_follows(self.encoder))

    def _same_plan(self, i: int, j: int) -> np.ndarray:
        same = unchanged(self.F_plus[:, i], self.F_plus[:, j])
        return np.asarray(same.all(axis=1))

    def same_changes(self, i: int, j: int) -> np.ndarray:
        """Return (N,) booleans: plans i and j change the same features."""
        return np.asarray((self.changed[:, i] == self.changed[:, j]).all(axis=1))


def _first(valid: np.ndarray, same: Callable[[int, int], np.ndarray]) -> np.ndarray:
    """Return (N, k) booleans: the plan is valid and no earlier valid plan is the `same`."""
    first = valid.copy()
    for i, j in combinations(range(valid.shape[1]), 2):
        first[:, j] &= ~(valid[:, i] & same(i, j))
    return first


def set_size(sets: PlanSets) -> Array:
    """Return how many different valid plans a person has.

    >>> from genrecourse.evaluation.examples import example_sets
    >>> set_size(example_sets()).round(2).tolist()
    [2.0, 1.0]
    """
    return sets.counts.sum(axis=1).astype(float)


def pairwise_cost(sets: PlanSets) -> Array:
    """Return the mean cost between two plans of the same person; 0 for a single plan.

    >>> from genrecourse.evaluation.examples import example_sets
    >>> pairwise_cost(example_sets()).round(2).tolist()
    [1.1, 0.0]
    """
    price = Cost(sets.encoder, protocol=True)
    # F_plus is arbitrary where there is no plan: use x instead
    plans = np.where(sets.counts[..., None], sets.F_plus, sets.F[:, None, :])
    Z = [sets.encoder.from_features(plans[:, i]) for i in range(plans.shape[1])]
    total, pairs = np.zeros(len(sets.F)), np.zeros(len(sets.F))
    for i, j in combinations(range(len(Z)), 2):
        both = sets.counts[:, i] & sets.counts[:, j]
        total += both * price(Z[i], Z[j])
        pairs += both
    return np.asarray(total / np.maximum(pairs, 1))


def distinct_changes(sets: PlanSets) -> Array:
    """Return how many different sets of features the valid plans of a person change.

    >>> from genrecourse.evaluation.examples import example_sets
    >>> distinct_changes(example_sets()).round(2).tolist()
    [2.0, 1.0]
    """
    return _first(sets.valid, sets.same_changes).sum(axis=1).astype(float)


SET_METRICS: dict[str, tuple[Callable[[PlanSets], Array], str]] = {
    "set_size": (set_size, "higher"),
    "pairwise_cost": (pairwise_cost, "higher"),
    "distinct_changes": (distinct_changes, "higher"),
}
