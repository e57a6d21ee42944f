"""Reasons: which features mattered most for the score of one person, for any model.

    reasons(method, people)[0].to_text()

Reasons are kept apart from plans: a feature that lowered a score need not be one that can raise it.
The numbers are Shapley values (`planning.shapley`), compared with training rows that the model file
keeps: up to 2,000 of those with outcomes (GenRe and nearest neighbours that were fitted with y),
otherwise 64. For linear models of scikit-learn they are exact, and estimated with 95% intervals
otherwise. What a derived feature did is part of the features that it is computed from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from genrecourse.model.linear import linear_score
from genrecourse.planning.plans import cell_value, in_words, score_words
from genrecourse.planning.shapley import ShapleyValues, of_sum, sampled
from genrecourse.planning.wording import Wording, english, name_of
from genrecourse.rules.policy import book_in_force
from genrecourse.table.frames import to_pandas
from genrecourse.table.noise import KeyedNoise
from genrecourse.table.schema import plain

if TYPE_CHECKING:
    import os

    import pandas as pd

    from genrecourse.methods.base import Method
    from genrecourse.planning.proposer import PlanningData
    from genrecourse.rules.problem import People, Problem
    from genrecourse.table.encoding import Array
    from genrecourse.table.schema import Feature

OTHERS = 2_000  # training rows that a person is compared with, at most
ASKED = 30_000  # rows that h scores for one person, about, unless the intervals are short before
PRECISE = 0.005  # share of the score range: half the length of an interval that is short enough
MOST = 5  # reasons that the text shows


@dataclass(frozen=True)
class Reason:
    """What one feature did to the score of one person.

    >>> from genrecourse.table.schema import Feature
    >>> savings = Feature(name="savings", kind="number", decimals=0)
    >>> print(Reason(savings, 200, -0.081, -0.09, -0.07, changeable=True).to_text())
    Your savings (200) lowered the score by about 0.081 compared with other applicants (95% ...
    """

    feature: Feature
    value: Any  # of this person; None: missing
    contribution: float  # to the score, or to the log-odds (`Reasons.scale`)
    low: float  # the ends of the 95% interval; the contribution itself, if it is exact
    high: float
    changeable: bool  # by the schema, the policy and the rules of the request
    note: str = ""  # why not: "immutable", "protected", "locked" or "advances"
    scale: str = "score"
    language: Wording = field(default_factory=english, repr=False, compare=False)

    @property
    def counts(self) -> bool:
        """Whether it can be called a reason: its interval does not include zero."""
        return self.low > 0 or self.high < 0

    @property
    def value_text(self) -> str:
        return in_words(self.feature, self.value, None, self.language)

    @property
    def flag(self) -> str:
        """A sentence about that nobody can change it; empty if the person may."""
        return self.language(f"why.flag.{self.note}") if self.note else ""

    def to_text(self) -> str:
        """Return the reason as a sentence, without a full stop unless it has a flag."""
        words = self.language
        way = "lowered" if self.contribution < 0 else "raised"
        name = f"why.{way}_log_odds" if self.scale == "log-odds" else f"why.{way}"
        size = _size(abs(self.contribution), words)
        said = words(name, feature=name_of(self.feature), value=self.value_text, size=size)
        if self.low < self.high:
            ends = sorted((abs(self.low), abs(self.high)))
            low, high = (_size(end, words) for end in ends)
            said = words("why.interval", said=said, low=low, high=high)
        return words("why.flagged", said=said, flag=self.flag) if self.note else said

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "feature": self.feature.name,
            "wording": self.feature.label,
            "value": _json_value(self.value),
            "value_text": self.value_text,
            "contribution": self.contribution,
            "low": self.low,
            "high": self.high,
            "is_reason": self.counts,
            "changeable": self.changeable,
            "note": self.note,
            "text": self.to_text() if self.counts else "",
            "flag": self.flag,
        }


@dataclass(frozen=True)
class Reasons:
    """What mattered for the score of one person. The contributions add up to the score less `mean`
    (to the log-odds less their mean, if that is the scale).

    >>> made = Reasons("Ada", 0.3, 0.5, 0.6, 0.6, (), scale="score", others=80, asked=640)
    >>> made.is_accepted, made.reasons
    (False, [])
    """

    person: Any  # the row's index label
    score: float
    cutoff: float
    mean_score: float  # of the rows that the person is compared with
    mean: float  # the same on `scale`
    every: tuple[Reason, ...]  # the largest contribution first
    scale: str  # "score" or "log-odds"
    others: int  # training rows that the person is compared with
    asked: int  # rows that h has scored
    exact: bool = False
    language: Wording = field(default_factory=english, repr=False, compare=False)

    @property
    def is_accepted(self) -> bool:
        return self.score > self.cutoff

    @property
    def lowered(self) -> list[Reason]:
        """What clearly lowered the score, the largest contribution first."""
        return [each for each in self.every if each.high < 0]

    @property
    def raised(self) -> list[Reason]:
        """What clearly raised the score, the largest contribution first."""
        return [each for each in self.every if each.low > 0]

    @property
    def reasons(self) -> list[Reason]:
        """What clearly moved the score towards the decision, the largest contribution first."""
        return self.raised if self.is_accepted else self.lowered

    @property
    def unclear(self) -> list[Reason]:
        """Features whose interval includes zero."""
        return [each for each in self.every if not each.counts and each.low < each.high]

    @property
    def unused(self) -> list[Reason]:
        """Features that changed the score in no mixture at all."""
        return [each for each in self.every if each.low == each.high == 0]

    @property
    def about(self) -> str:
        """The score, and that of other applicants, in a sentence."""
        score, mean, cutoff = score_words(
            self.score, self.mean_score, self.cutoff, language=self.language
        )
        return self.language("why.score", score=score, mean=mean, cutoff=cutoff)

    @property
    def remarks(self) -> list[str]:
        """What the reasons rest on, and what they do not say."""
        words, found = self.language, []
        for name in ("unclear", "unused"):
            features = "; ".join(name_of(each.feature) for each in getattr(self, name))
            found += [words(f"why.{name}", features=features)] if features else []
        how = "exact" if self.exact else "sampled"
        asked = words.number(f"{self.asked:,}")
        others = words.number(f"{self.others:,}")
        return [*found, words(f"why.{how}", asked=asked), words("why.note", n=others)]

    def groups(self, most: int = MOST) -> Iterator[tuple[str, list[str]]]:
        """Yield headings with their sentences: first what led to the decision, and then the rest.

        most: sentences under a heading, at most; one more says how many are left.
        """
        both = [("against", self.lowered), ("for", self.raised)]
        for place, (name, found) in enumerate(both[::-1] if self.is_accepted else both):
            said = [each.to_text() for each in found[:most]]
            if len(found) > most:
                said.append(self.language("why.more", n=len(found) - most))
            if said:
                kind = "reasons" if place == 0 else "other"
                yield self.language(f"why.{kind}_{name}"), said

    def to_text(self, most: int = MOST) -> str:
        """Return the reasons as lines of text."""
        words = self.language
        lines = [words("plan.line", person=self.person, said=words("why.title")), f"  {self.about}"]
        groups = list(self.groups(most))
        for heading, sentences in groups:
            lines += [f"  {heading}", *(f"  - {sentence}" for sentence in sentences)]
        lines += [] if groups else [f"  {words('why.none')}"]
        return "\n".join([*lines, *(f"  {remark}" for remark in self.remarks)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; `reasons` has all features, the largest first."""
        return {
            "person": _json_value(self.person),
            "score": self.score,
            "cutoff": self.cutoff,
            "accepted": self.is_accepted,
            "mean_score": self.mean_score,
            "scale": self.scale,
            "mean": self.mean,
            "exact": self.exact,
            "others": self.others,
            "asked": self.asked,
            "title": self.language("why.title"),
            "about": self.about,
            "reasons": [each.to_dict() for each in self.every],
            "remarks": self.remarks,
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_html(self, most: int = MOST) -> str:
        """Return a card of its own, as an HTML fragment without scripts and styles."""
        words, parts = self.language, []
        groups = list(self.groups(most))
        for heading, sentences in groups:
            items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
            parts.append(f"<h4>{escape(heading)}</h4><ul>{items}</ul>")
        if not groups:
            parts.append(f"<p>{escape(words('why.none'))}</p>")
        remarks = "<br>".join(map(escape, self.remarks))
        title = escape(words("why.title"))
        return (
            f'<section class="card reasons" aria-label="{title}"><h3>{title}</h3>'
            f"<p>{escape(self.about)}</p>{''.join(parts)}<p><small>{remarks}</small></p></section>"
        )

    def _repr_html_(self) -> str:
        return self.to_html()


# ---- from a method and people -------------------------------------------------------------------


def reasons(
    method: Method,
    X: Any,
    *,
    rules: Any = None,
    language: str | os.PathLike[str] | Wording = "en",
) -> list[Reasons]:
    """Return what mattered for the score of each person in X, accepted or not.

    rules: of a request; with the policy's they say what is locked. The same person gets the same
    numbers, whoever else is in the table, also from a saved and loaded method.

    >>> import pandas as pd
    >>> from genrecourse import NearestNeighbour, Schema
    >>> X = pd.DataFrame({"income": range(80), "pets": [0, 1] * 40})
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, Schema.infer(X)).fit(X)
    >>> [each.feature.name for each in reasons(method, X.head(1))[0].reasons]
    ['income']
    """
    method.check_ready("reasons", {})
    words, problem = Wording.of(language), method.problem_
    people = problem.read(to_pandas(X, problem.schema))
    book = book_in_force(method.policy_, rules, people) or problem.rules
    locked = np.broadcast_to(book.locked, people.F.shape)
    others = _others(problem, method.planning_)
    maker = _Maker(problem, others, KeyedNoise(method.random_state), words)
    return [maker.reasons(people, i, locked[i]) for i in range(len(people.X))]


def _others(problem: Problem, planning: PlanningData) -> Array:
    """Return (n, d) the training rows that people are compared with, which a model file keeps."""
    if planning.keeps_rows and planning.outcomes is not None:
        F = problem.encoder.to_features(planning.outcomes.Z)
        some = np.linspace(0, len(F) - 1, min(len(F), OTHERS)).round().astype(int)
        return np.asarray(F[some])
    return problem.encoder.features(problem.probe)


class _Maker:
    """Computes reasons of people of one problem, compared with the rows others (n, d)."""

    def __init__(self, problem: Problem, others: Array, noise: KeyedNoise, words: Wording):
        self.problem, self.others, self.noise, self.words = problem, others, noise, words
        self.players = [j for j, f in enumerate(problem.schema) if f.role != "derived"]
        # with a derived feature, not even a linear model is a sum over the others
        all_play = len(self.players) == len(problem.schema)
        self.linear = linear_score(problem.classifier) if all_play else None

    @cached_property
    def mean_score(self) -> float:
        return float(np.mean(self._score(self.others)))

    def _score(self, F: Array) -> Array:
        problem = self.problem
        Z = problem.encoder.from_features(F)
        return problem.classifier.score_encoded(Z, problem.encoder, problem.like)

    def reasons(self, people: People, i: int, locked: np.ndarray) -> Reasons:
        """Return the reasons of person i."""
        found, scale = self._values(people, i)
        features = self.problem.schema.features
        every = [
            self._reason(features[j], people.X, i, scale, tuple(map(float, each)), bool(locked[j]))
            for j, *each in zip(self.players, found.value, found.low, found.high, strict=True)
        ]
        return Reasons(
            plain(people.X.index[i]),
            float(people.score[i]),
            float(self.problem.classifier.cutoff),
            found.start if scale == "score" else self.mean_score,
            found.start,
            tuple(sorted(every, key=lambda each: -abs(each.contribution))),
            scale,
            len(self.others),
            found.asked,
            found.is_exact,
            self.words,
        )

    def _values(self, people: People, i: int) -> tuple[ShapleyValues, str]:
        low, high = self.problem.classifier.score_range
        x, width = people.F[i], high - low
        if self.linear is not None:
            exact = of_sum(self._linear(self.linear.of), x, self.others, self.players, width)
            if exact is not None:
                return exact, self.linear.scale
        derived, own = self.problem.rules.derived, float(people.score[i])
        person = x.tobytes()

        def score(F: Array) -> Array:
            is_x = np.array([row.tobytes() == person for row in F])  # scored as it was decided
            return np.where(is_x, own, self._score(F))

        # who differs only in a protected feature is compared by the same random numbers
        key = self.problem.protected.hide_encoded(people.Z[i : i + 1])
        found = sampled(
            score,
            lambda rows, b: derived.between(x, b, rows),
            x,
            self.others,
            self.players,
            self.noise,
            key,
            most=ASKED,
            precise=PRECISE * width,
            scale=width,
        )
        return found, "score"

    def _linear(self, output: Callable[[pd.DataFrame], Array]) -> Callable[[Array], Array]:
        problem = self.problem

        def of(F: Array) -> Array:
            Z = problem.encoder.from_features(F)
            return np.asarray(output(problem.encoder.table(Z, problem.like)), dtype=float)

        return of

    def _reason(
        self,
        feature: Feature,
        X: pd.DataFrame,
        i: int,
        scale: str,
        numbers: Sequence[float],
        is_locked: bool,
    ) -> Reason:
        note = feature.role if feature.role != "mutable" else ("locked" if is_locked else "")
        value = cell_value(feature.values(X.iloc[[i]]).iloc[0])
        contribution, low, high = numbers
        return Reason(feature, value, contribution, low, high, not note, note, scale, self.words)


# ---- words --------------------------------------------------------------------------------------


def _size(value: float, words: Wording) -> str:
    """Return a contribution with two digits that count."""
    return words.number(f"{value:#.2g}".rstrip(".") if value < 10 else f"{value:,.0f}")


def _json_value(value: Any) -> Any:
    value = cell_value(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
