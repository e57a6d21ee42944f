"""Problem: what a fitted method works on, built once in `fit` and never changed.

It joins the schema, the encoder, the rules, the cost, the protected features and the classifier h.
A function takes the problem, or the few parts it needs, and never a method.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError
from genrecourse.rules.book import RuleBook
from genrecourse.rules.requests import request_book
from genrecourse.rules.roles import ProtectedMask
from genrecourse.rules.stated import read_rules
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import Array, TableEncoder, unchanged
from genrecourse.table.frames import PANDAS
from genrecourse.table.reading import faults_in, known_columns, settled

if TYPE_CHECKING:
    from genrecourse.model.classifier import Classifier
    from genrecourse.rules.effort import Efforts
    from genrecourse.table.faults import Fault
    from genrecourse.table.schema import Schema


# What a fit looks at, of a table of any length
MOST_SOURCES = 50_000  # rejected rows that are used at most
MOST_CANDIDATES = 100_000  # accepted rows that D+ is taken from at most
REMEMBERED = 100_000  # scores of one request that are remembered, about

# what h said in this request, by problem and row: a variable of its own in each thread
_SCORES: ContextVar[dict[tuple[int, bytes], float] | None] = ContextVar("scores", default=None)


@contextmanager
def asking_once() -> Iterator[None]:
    """Inside, `Problem.confidence` asks a model that reads tables once about each row.

    It is for one request, because a model may change between two.

    >>> with asking_once():
    ...     pass
    """
    token = _SCORES.set({})
    try:
        yield
    finally:
        _SCORES.reset(token)


@dataclass(frozen=True)
class Larger:
    """The table that training rows were drawn from, if it was too long to be held.

    Rows after the first `even` ones are no even sample of it: they are rejected, or accepted with a
    favourable outcome.

    >>> larger = Larger(rows=1_000_000, rejected=700_000, accepted=250_000, even=200_000)
    >>> larger.even / larger.rows  # the share of the table in the even sample
    0.2
    """

    rows: int
    rejected: int  # by h
    accepted: int  # by h, with a favourable outcome
    even: int  # of the training rows: the first so many are an even sample of the table


@dataclass(frozen=True)
class TrainingRows:
    """The training rows as numbers, with their outcomes.

    >>> favourable, confidence = np.array([True, False]), np.array([0.9, 0.2])
    >>> rows = TrainingRows(np.zeros((2, 3)), np.zeros((2, 2)), favourable, confidence)
    >>> int(rows.favourable.sum())
    1
    """

    Z: Array  # (n, D)
    F: Array  # (n, d)
    favourable: np.ndarray  # (n,) booleans: the outcome, or h's decision if no outcome was given
    confidence: Array  # (n,) h on the common scale, 0.5 at the cutoff
    larger: Larger | None = None

    @property
    def even(self) -> TrainingRows:
        """The rows that are an even sample of the table: all, unless it was too long."""
        return self if self.larger is None else self.take(slice(self.larger.even))

    def some(self, most: int, seed: int) -> TrainingRows:
        """Return at most so many of the even rows, drawn by a seed, in their order."""
        n = len(self.Z) if self.larger is None else self.larger.even
        if n <= most:
            return self.even
        return self.take(np.sort(np.random.default_rng([seed, n]).permutation(n)[:most]))

    def take(self, rows: Any) -> TrainingRows:
        """Return some rows, as NumPy selects them."""
        return TrainingRows(*(part[rows] for part in self._parts))

    def joined(self, others: list[TrainingRows], larger: Larger | None = None) -> TrainingRows:
        """Return these rows and others after them."""
        Z, F, favourable, confidence = map(
            np.concatenate, zip(*(each._parts for each in (self, *others)), strict=True)
        )
        return TrainingRows(Z, F, favourable, confidence, larger)

    @property
    def _parts(self) -> tuple[np.ndarray, ...]:
        return self.Z, self.F, self.favourable, self.confidence


@dataclass(frozen=True, eq=False)
class People:
    """The people of one request: their table, checked once, and what is computed from it.

    >>> from genrecourse.evaluation.example_tables import example_rows
    >>> problem, rows = example_rows()
    >>> people = problem.read(problem.probe)
    >>> people.F.shape, int(people.rejected.sum())
    ((80, 2), 41)
    """

    X: pd.DataFrame  # the schema's columns, in the schema's order
    F: Array  # (n, d)
    Z: Array  # (n, D)
    problem: Problem

    @cached_property
    def score(self) -> Array:
        """(n,) h's scores; h is not asked about nobody."""
        if len(self.X) == 0:
            return np.zeros(0)
        return self.problem.classifier.score_rows(self.X, self.Z, self.problem.encoder)

    def take(self, rows: np.ndarray) -> People:
        """Return some of the people."""
        if len(rows) == len(self.X):
            return self
        return People(self.X.iloc[rows], self.F[rows], self.Z[rows], self.problem)

    @property
    def rejected(self) -> np.ndarray:
        """(n,) booleans: True if h rejects the person."""
        return np.asarray(self.score <= self.problem.classifier.cutoff)


@dataclass(frozen=True)
class ReadRows:
    """The rows of a table that can be read, and why the others cannot.

    >>> from genrecourse.evaluation.example_tables import example_rows
    >>> problem, rows = example_rows()
    >>> X = problem.probe.head(3).astype(object)
    >>> X.iloc[1, 0] = "much"
    >>> found = problem.read_each(X)
    >>> found.rows, found.faults[1].value
    (array([0, 2]), "'much'")
    """

    people: People
    X: pd.DataFrame  # their rows, with the columns in the order of the table
    rows: np.ndarray  # (n,) their places in the table
    faults: Mapping[int, Fault]  # by the place of the other rows

    def rules(self, rules: Any, index: pd.Index) -> Any:
        """Return the rules of a request without those of people who cannot be read.

        index: of the whole table. Rules for a person who is not in it raise a UserError.
        """
        if rules is None or not self.faults:
            return rules
        stated = read_rules(rules)
        stated.by_row(index)
        return stated.only(self.X.index)


@dataclass(frozen=True)
class Problem:
    """A table, the rules on it, what a change costs, and the classifier h that decides.

    >>> from genrecourse.model.classifier import Classifier
    >>> from genrecourse.evaluation.checks import example_score, make_example
    >>> example = make_example(rows=80, people=10)
    >>> encoder = TableEncoder(example.schema).fit(example.X)
    >>> problem = Problem.of(encoder, Classifier(example_score), example.X)
    >>> problem.confidence(encoder.encode(example.X)).shape
    (80,)
    """

    encoder: TableEncoder
    classifier: Classifier  # it reads the encoder's Z directly where its own encoder is equal
    rules: RuleBook  # the schema's
    cost: Cost
    protected: ProtectedMask
    probe: pd.DataFrame  # up to 64 training rows; the first one lends its columns and dtypes
    usual: Array  # (d,) the most common value of each feature among the probe rows
    kind: str = PANDAS  # of the fitted table, which the classifier's model is shown

    @classmethod
    def of(
        cls,
        encoder: TableEncoder,
        classifier: Classifier,
        probe: pd.DataFrame,
        kind: str = PANDAS,
    ) -> Problem:
        """Build the problem for an encoder, a fitted classifier and some training rows.

        kind: of the table that the model is shown, as `frames.kind_of` names it.
        """
        return cls(
            encoder,
            reading(classifier, encoder).in_form(probe, kind),
            RuleBook.of_schema(encoder),
            Cost(encoder),
            ProtectedMask(encoder),
            probe,
            most_common(encoder.features(probe)),
            kind,
        )

    @property
    def schema(self) -> Schema:
        return self.encoder.schema

    @property
    def like(self) -> pd.DataFrame:
        """One row of the fitted table: its columns, in their order and dtypes."""
        return self.probe.iloc[:1]

    # ---- tables ---------------------------------------------------------------------------------

    def read(self, X: pd.DataFrame) -> People:
        """Return the people of X. Raises UserError if a row does not fit the schema.

        Columns that the schema does not know are ignored with a warning. X may have no rows.
        """
        return self._people(known_columns(self.schema, X))

    def read_each(self, X: pd.DataFrame, errors: str = "status") -> ReadRows:
        """Return the people of X who can be read, and why the others cannot.

        errors: "raise": a row that cannot be read raises a UserError, as in `read`.
        """
        known = known_columns(self.schema, X)
        everybody = np.arange(len(X))
        try:
            return ReadRows(self._people(known), known, everybody, {})
        except UserError:
            if errors == "raise":
                raise
        faults = faults_in(self.schema, known)
        rows = np.delete(everybody, list(faults))
        fine = settled(self.schema, known.iloc[rows], self.like)
        return ReadRows(self._people(fine), fine, rows, faults)

    def _people(self, X: pd.DataFrame) -> People:
        X = X[self.schema.columns]
        F = self.encoder.features(X, is_checked=True)
        return People(X, F, self.encoder.from_features(F), self)

    def compile(
        self, rules: Any, people: People, efforts: Efforts | None = None
    ) -> RuleBook | None:
        """Return the rules of a request for each person, or None if there are none.

        Only rejected people have to be able to meet them. Relations that the schema keeps bind
        everybody, as if each request stated them. efforts: of the policy in force; rules on time or
        money need them.
        """
        if rules is None and not self.rules.schema.relations:
            return None
        book = request_book(
            {} if rules is None else rules, self.rules, people.X, people.rejected, people.F
        )
        _check_efforts(book, efforts)
        return replace(book, efforts=efforts)

    # ---- h ---------------------------------------------------------------------------------------

    def confidence(self, Z: Array) -> Array:
        """(n,) h on rows of Z, on the common scale where 0.5 is the cutoff."""
        h = self.classifier
        if h.reads(self.encoder):
            return h.confidence(h.score_encoded(Z, self.encoder, self.like))
        # another model may be slow: it is asked once about equal rows
        known = _SCORES.get()
        known = {} if known is None or len(known) > REMEMBERED else known
        keys = [(id(self), row.tobytes()) for row in Z]
        new = {key: k for k, key in enumerate(keys) if key not in known}
        if new:
            scores = h.score_encoded(Z[list(new.values())], self.encoder, self.like)
            known |= dict(zip(new, h.confidence(scores).tolist(), strict=True))
        return np.array([known[key] for key in keys], dtype=float)

    def confidence_derived(self, Z: Array) -> Array:
        """(n,) h on rows of Z after recomputing every derived and advancing feature.

        For searches that move features without knowing x: they leave derived features at x's value.
        """
        if self.rules.derived:
            F = self.rules.derived.ahead(self.encoder.to_features(Z))
            Z = self.encoder.from_features(F)
        return self.confidence(Z)

    # ---- rows within the rules -------------------------------------------------------------------

    def legal(self, Z: Array, Z_plus: Array, request: RuleBook | None = None) -> Array:
        """Return Z_plus on legal values and within the rules; an unmoved feature stays exact.

        If a row breaks a rule of the request that no single feature can repair, return x.
        """
        F, raw = self.encoder.to_features(Z), self.encoder.to_features(Z_plus)
        return self.encoder.from_features(self.legal_features(F, raw, request))

    def legal_features(self, F: Array, raw: Array, request: RuleBook | None = None) -> Array:
        """`legal` in the feature view: (n, d), (n, d) -> (n, d)."""
        same = unchanged(F, raw)
        clipped = self.encoder.from_features(self.rules.clip(F, raw))
        projected = self.encoder.to_features(self.encoder.project(clipped))
        legal = self.rules.revert(F, np.where(same, F, projected))
        if request is not None:
            legal = request.revert(F, legal)
        return self.with_derived(F, legal, request)

    def with_derived(self, F: Array, F_plus: Array, request: RuleBook | None = None) -> Array:
        """Return F_plus (..., d) with derived features recomputed.

        A row that then breaks a rule on whole rows becomes x.
        """
        rules = self.whole_row_rules(request)
        if rules is None:
            return F_plus
        F_plus = rules.with_derived(F, F_plus)
        return np.where(rules.feasible(F, F_plus)[..., None], F_plus, F)

    def whole_row_rules(self, request: RuleBook | None) -> RuleBook | None:
        """Return the rules in force if any of them involves several features, else None."""
        return request or (self.rules if self.rules.binds_whole_rows else None)

    def without_protected(self, F: Array) -> Array:
        """Return F with the usual value in place of each protected feature."""
        return np.where(self.protected.mask, self.usual, F) if self.protected else F

    def check_changeable(self, where: str) -> None:
        """Raise an error if the schema lets nothing change."""
        if self.rules.immutable.all():
            raise UserError(f"{where}: every feature is immutable: nothing can change")


def _check_efforts(book: RuleBook, efforts: Efforts | None) -> None:
    """Raise a UserError for a limit on time or money of which the policy states nothing."""
    for field, what, words in (
        ("max_months", "months", "how many months changes take"),
        ("max_money", "price", "what changes cost"),
    ):
        limit = book.limit(field)
        if np.isfinite(limit).any() and (efforts is None or not efforts.stated.states(what)):
            raise UserError(
                f"rules: '{field}' is {np.min(limit):g}, but no policy in force says {words}; "
                f"state '{what}' in [effort.changes] of the policy, or leave the limit out"
            )


def most_common(F: Array) -> Array:
    """(d,) the most common value of each feature, the smallest of several; 0 if all are missing.

    >>> most_common(np.array([[1.0, 5.0], [1.0, np.nan], [0.0, 3.0]]))
    array([1., 3.])
    """
    answer = np.zeros(F.shape[1])
    for j, column in enumerate(F.T):
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        if len(values):
            answer[j] = values[counts.argmax()]
    return answer


def reading(h: Classifier, encoder: TableEncoder) -> Classifier:
    """Return h so that it reads this encoder's Z directly, if its own encoder lays out Z equally.

    The method's encoder stays: its schema holds the rules, and h's schema may have others.

    >>> from genrecourse.evaluation.checks import example_score, make_example
    >>> from genrecourse.model.classifier import Classifier
    >>> example = make_example(rows=80, people=10)
    >>> h = Classifier(example_score)  # has no encoder, because it reads tables
    >>> reading(h, TableEncoder(example.schema).fit(example.X)) is h
    True
    """
    if h.encoder is None or not same_layout(h.encoder, encoder):
        return h
    h = copy.copy(h)
    h.encoder = encoder
    return h


def same_layout(a: TableEncoder, b: TableEncoder) -> bool:
    """Return whether a row of Z means the same to both encoders.

    >>> from genrecourse.table.schema import Schema
    >>> X = pd.DataFrame({"age": [20.0, 40.0], "debt": [5.0, 15.0]})
    >>> schemas = Schema.infer(X), Schema.infer(X, immutable=("age",))
    >>> same_layout(*(TableEncoder(schema).fit(X) for schema in schemas))
    True
    """
    levels_a, levels_b = ([(f.name, f.categories) for f in e.schema] for e in (a, b))
    # slack is about rules, and quantiles are about costs
    blocks_a, blocks_b = (
        [replace(block, slack=0.0, quantiles=None) for block in e.blocks] for e in (a, b)
    )
    return levels_a == levels_b and blocks_a == blocks_b
