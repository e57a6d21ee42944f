"""Rules between features, written as text.

    NumTrades90Ever <= NumTrades60Ever
    if marital-status = Married then relationship = Husband or Wife
    "hours per week" > 20 and not (job = student)
    if rent is missing then landlord is missing

A comparison has a feature on at least one side, and a feature, a number or levels on the other.
Names and levels may be quoted. Without quotes the longest known name that fits is read, so hyphens
and spaces need no quotes. Numbers are compared in original units.

A relation is evaluated on what each feature *may be* (`Possible`), and the answer has three values:
certainly met (1), certainly broken (-1), or open (0). If every feature is known, the answer is not
open, unless a value is missing: then a comparison is neither met nor broken. A sampler evaluates
relations early and drops what no later choice can repair.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from genrecourse.errors import UserError, did_you_mean, shown
from genrecourse.table.limits import BRACKETS, RELATION_LETTERS

if TYPE_CHECKING:
    from genrecourse.table.encoding import Block, TableEncoder
    from genrecourse.table.schema import Feature, Level

Truth = np.ndarray[Any, np.dtype[np.int8]]


@dataclass(frozen=True)
class Possible:
    """What one feature may be, in the scaled feature view F; arrays of shapes that broadcast.

    >>> Possible(low=0.2, high=0.8).high
    0.8
    >>> Possible.known(0.5)
    Possible(low=0.5, high=0.5, levels=None)
    """

    low: Any  # of a number, or of a category's level indices
    high: Any
    levels: np.ndarray | None = None  # (..., L + 1) booleans of a category; the last: missing

    @classmethod
    def known(cls, value: Any) -> Possible:
        """Return a feature that can only be `value`."""
        return cls(value, value)


View = Mapping[int, Possible]
Expression = Callable[[View], Truth]


@dataclass(frozen=True)
class Relation:
    """One rule between features.

    >>> import pandas as pd
    >>> from genrecourse.table.encoding import TableEncoder
    >>> from genrecourse.table.schema import Schema
    >>> X = pd.DataFrame({"income": [10.0, 20.0], "debt": [5.0, 15.0]})
    >>> relation = parse_relation("debt <= income", TableEncoder(Schema.infer(X)).fit(X))
    >>> int(relation({0: Possible(0.0, 1.0), 1: Possible.known(1.0)}))  # the income is open
    0
    """

    text: str
    features: tuple[int, ...]  # that it names, ascending
    evaluate: Expression

    def __call__(self, view: View) -> Truth:
        """Return 1 if it is met whatever the open features become, -1 if it is broken, else 0."""
        with np.errstate(invalid="ignore"):
            return self.evaluate(view)


def parse_relation(text: str, encoder: TableEncoder) -> Relation:
    """Return a relation over the features of a table; raise a UserError if it cannot be read.

    >>> from genrecourse.table.encoding import TableEncoder
    >>> import pandas as pd
    >>> from genrecourse.table.schema import Schema
    >>> X = pd.DataFrame({"income": [10.0, 20.0], "debt": [5.0, 15.0]})
    >>> encoder = TableEncoder(Schema.infer(X)).fit(X)
    >>> relation = parse_relation("debt <= income", encoder)
    >>> F = encoder.features(X)
    >>> relation({0: Possible.known(F[:, 0]), 1: Possible.known(F[:, 1])})
    array([1, 1], dtype=int8)
    """
    parser = _RelationParser(text, encoder)
    evaluate = parser.rule()
    return Relation(text, tuple(sorted(parser.used)), evaluate)


# ---- three values ---------------------------------------------------------------------------


def _truth(met: Any, broken: Any) -> Truth:
    return np.asarray(met, dtype=np.int8) - np.asarray(broken, dtype=np.int8)


def _negation(part: Expression) -> Expression:
    return lambda view: np.asarray(-part(view), dtype=np.int8)


def _all_of(parts: list[Expression]) -> Expression:
    return lambda view: _fold(np.minimum, [part(view) for part in parts])


def _any_of(parts: list[Expression]) -> Expression:
    return lambda view: _fold(np.maximum, [part(view) for part in parts])


def _fold(how: Any, truths: list[Truth]) -> Truth:
    answer = truths[0]
    for truth in truths[1:]:
        answer = how(answer, truth)
    return np.asarray(answer, dtype=np.int8)


# ---- comparisons ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Term:
    """A side of a comparison of numbers: scale * value + shift, in original units."""

    feature: int | None
    shift: float
    scale: float = 0.0

    def bounds(self, view: View) -> tuple[Any, Any]:
        if self.feature is None:
            return self.shift, self.shift
        seen = view[self.feature]
        return self.shift + self.scale * seen.low, self.shift + self.scale * seen.high


def _compare(left: _Term, sign: str, right: _Term, slack: float) -> Expression:
    """Compares two numbers; a difference within `slack`, by rounding, counts as equal."""

    def at_most(a: tuple[Any, Any], b: tuple[Any, Any]) -> Truth:
        return _truth(a[1] <= b[0] + slack, a[0] > b[1] + slack)

    def evaluate(view: View) -> Truth:
        a, b = left.bounds(view), right.bounds(view)
        if sign == "<=":
            return at_most(a, b)
        if sign == ">=":
            return at_most(b, a)
        if sign == "<":
            return np.asarray(-at_most(b, a), dtype=np.int8)
        if sign == ">":
            return np.asarray(-at_most(a, b), dtype=np.int8)
        equal = np.minimum(at_most(a, b), at_most(b, a))
        return np.asarray(equal if sign == "=" else -equal, dtype=np.int8)

    return evaluate


def _is_one_of(feature: int, levels: list[int], n_levels: int) -> Expression:
    """Check that a category's level is in a set."""
    inside = np.isin(np.arange(n_levels + 1), levels)

    def evaluate(view: View) -> Truth:
        seen = view[feature]
        if seen.levels is None:
            value = np.asarray(seen.low, dtype=float)
            met = np.isin(value, levels)
            return _truth(met, ~met & ~np.isnan(value))
        missing = seen.levels[..., -1]
        some = seen.levels[..., inside].any(-1)
        others = seen.levels[..., :-1][..., ~inside[:-1]].any(-1)
        return _truth(some & ~others & ~missing, ~some & ~missing)

    return evaluate


def _is_missing(feature: int) -> Expression:
    """Check that a value is missing."""

    def evaluate(view: View) -> Truth:
        seen = view[feature]
        low, high = np.asarray(seen.low, dtype=float), np.asarray(seen.high, dtype=float)
        if seen.levels is not None:
            may, must = seen.levels[..., -1], ~seen.levels[..., :-1].any(-1)
        else:  # without bounds: it may be missing, or be anything
            must = np.isnan(low) & np.isnan(high)
            may = must | np.isinf(low) | np.isinf(high)
        return _truth(may & must, ~may)

    return evaluate


# ---- reading --------------------------------------------------------------------------------

_SIGNS = {"<=": "<=", ">=": ">=", "==": "=", "!=": "!=", "<": "<", ">": ">", "=": "="}
_TURNED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<", "=": "=", "!=": "!="}
_WORDS = ("if", "then", "and", "or", "not")
_SIGN = re.compile(r"<=|>=|==|!=|≤|≥|≠|<|>|=")
_UNICODE = {"≤": "<=", "≥": ">=", "≠": "!="}
_BARE = re.compile(r"[^\s<>=!≤≥≠(),\"'`]+")
_END = re.compile(r"$|[\s<>=!≤≥≠(),]")


@dataclass(frozen=True)
class _Token:
    kind: str  # sign, word, name (of anything), bracket, end
    text: str


class _RelationParser:
    """Recursive descent: rule > any > all > one > comparison."""

    def __init__(self, text: str, encoder: TableEncoder):
        self.text, self.encoder, self.depth = text, encoder, 0
        if len(text) > RELATION_LETTERS:
            raise UserError(
                f"the rule {shown(text, 40)} has {len(text):,} characters; at most "
                f"{RELATION_LETTERS:,} are allowed, so split it into several rules"
            )
        self.features = list(encoder.schema)
        self.places = {f.name: j for j, f in enumerate(self.features)}
        self.used: set[int] = set()
        self.tokens = self._tokens()
        self.at = 0

    # ---- tokens -------------------------------------------------------------------------------

    def _tokens(self) -> list[_Token]:
        known = {f.name for f in self.features}
        known |= {str(level) for f in self.features for level in f.categories}
        longest_first = sorted(known, key=len, reverse=True)
        tokens, i = [], 0
        while i < len(self.text):
            if self.text[i].isspace() or self.text[i] == ",":
                i += 1
                continue
            token, i = self._token(i, longest_first)
            tokens.append(token)
        return [*tokens, _Token("end", "")]

    def _token(self, i: int, known: list[str]) -> tuple[_Token, int]:
        text = self.text
        if text[i] in "()":
            return _Token("bracket", text[i]), i + 1
        if text[i] in "\"'`":
            stop = text.find(text[i], i + 1)
            if stop < 0:
                raise self._error(f"the quote that opens at {shown(text[i:])} is not closed")
            return _Token("name", text[i + 1 : stop]), stop + 1
        sign = _SIGN.match(text, i)
        if sign:
            plain = _UNICODE.get(sign[0], sign[0])
            return _Token("sign", _SIGNS[plain]), sign.end()
        for name in known:  # a name may hold spaces, signs and even words such as "or"
            if name and text.startswith(name, i) and _END.match(text, i + len(name)):
                if name.lower() in _WORDS:
                    break
                return _Token("name", name), i + len(name)
        bare = _BARE.match(text, i)
        if bare is None:
            raise self._error(f"cannot read {shown(text[i:])}")
        kind = "word" if bare[0].lower() in _WORDS else "name"
        return _Token(kind, bare[0].lower() if kind == "word" else bare[0]), bare.end()

    def _peek(self, ahead: int = 0) -> _Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def _next(self) -> _Token:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else self.tokens[-1]

    def _accept(self, kind: str, text: str) -> bool:
        if self._peek() == _Token(kind, text):
            self.at += 1
            return True
        return False

    def _error(self, problem: str) -> UserError:
        problem = problem if len(problem) <= 800 else f"{problem[:800]}..."
        return UserError(
            f"the rule {shown(self.text, 300)}: {problem}. Write for example 'a <= b' or "
            "'if a = level then b = level or level', with names as in the schema"
        )

    # ---- the grammar --------------------------------------------------------------------------

    def rule(self) -> Expression:
        if self._accept("word", "if"):
            condition = self._any()
            if not self._accept("word", "then"):
                raise self._error(f"expected 'then', found '{self._peek().text}'")
            answer = _any_of([_negation(condition), self._any()])
        else:
            answer = self._any()
        if self._peek().kind != "end":
            raise self._error(f"cannot read it from '{self._peek().text}' on")
        return answer

    def _any(self) -> Expression:
        parts = [self._all()]
        while self._accept("word", "or"):
            parts.append(self._all())
        return _any_of(parts)

    def _all(self) -> Expression:
        parts = [self._one()]
        while self._accept("word", "and"):
            parts.append(self._one())
        return _all_of(parts)

    def _one(self) -> Expression:
        if self._accept("word", "not"):
            return _negation(self._deeper(self._one))
        if self._accept("bracket", "("):
            inner = self._deeper(self._any)
            if not self._accept("bracket", ")"):
                raise self._error("a bracket is not closed")
            return inner
        return self._comparison()

    def _deeper(self, part: Callable[[], Expression]) -> Expression:
        self.depth += 1
        if self.depth > BRACKETS:
            raise self._error(f"more than {BRACKETS} brackets or 'not' are nested")
        inner = part()
        self.depth -= 1
        return inner

    def _comparison(self) -> Expression:
        left = self._name()
        if left in self.places and self._accept("name", "is"):
            return self._missing(left)
        if self._peek().kind != "sign":
            raise self._error(f"expected a sign such as <= or = after '{left}'")
        sign, right = self._next().text, self._name()
        if left not in self.places and right in self.places:
            left, sign, right = right, _TURNED[sign], left
        if left not in self.places:
            close = did_you_mean(left, self.places)
            raise self._error(f"'{left}'{close} is no feature; the schema has {list(self.places)}")
        j = self.places[left]
        self.used.add(j)
        is_level = self.features[j].is_category and self._level(j, right) is not None
        if right in self.places and not is_level:
            return self._between(j, sign, self.places[right])
        values = [right]
        # "= Husband or Wife": a value follows, and not another comparison
        while (
            self._peek() == _Token("word", "or")
            and self._peek(1).kind == "name"
            and self._peek(2).kind != "sign"
        ):
            self.at += 1
            values.append(self._name())
        return self._against(j, sign, values)

    def _missing(self, name: str) -> Expression:
        """What follows "name is": missing, or not missing."""
        negated = self._accept("word", "not")
        if not self._accept("name", "missing"):
            raise self._error(f"expected 'missing' after '{name} is', found '{self._peek().text}'")
        self.used.add(self.places[name])
        found = _is_missing(self.places[name])
        return _negation(found) if negated else found

    def _name(self) -> str:
        token = self._next()
        if token.kind != "name":
            raise self._error(f"expected a feature or a value, found '{token.text}'")
        return token.text

    # ---- one comparison -----------------------------------------------------------------------

    def _between(self, j: int, sign: str, k: int) -> Expression:
        """Two features."""
        self.used.add(k)
        a, b = self.features[j], self.features[k]
        if a.is_category != b.is_category or a.categories != b.categories:
            raise self._error(f"'{a.name}' and '{b.name}' do not hold the same kind of values")
        if a.is_category and sign not in ("=", "!=") and not (a.ordered and b.ordered):
            raise self._error(f"the levels of '{a.name}' have no order, so '{sign}' has no meaning")
        left, right = self.encoder.blocks[j], self.encoder.blocks[k]
        slack = max(left.slack * left.span, right.slack * right.span)
        return _compare(_term(j, left), sign, _term(k, right), slack)

    def _against(self, j: int, sign: str, values: list[str]) -> Expression:
        """A feature and one value or several."""
        feature, block = self.features[j], self.encoder.blocks[j]
        if len(values) > 1 and sign not in ("=", "!="):
            raise self._error(f"'{sign}' takes one value, not {values}")
        if not feature.is_category:
            slack = block.slack * block.span
            numbers = [_Term(None, self._number(feature, value)) for value in values]
            equal = [_compare(_term(j, block), sign, number, slack) for number in numbers]
            return _all_of(equal) if sign == "!=" else _any_of(equal)
        levels = [self._known_level(j, value) for value in values]
        n = len(feature.categories)
        if sign in ("=", "!="):
            found = _is_one_of(j, levels, n)
            return found if sign == "=" else _negation(found)
        if not feature.ordered:
            raise self._error(
                f"the levels of '{feature.name}' have no order, so '{sign}' has no meaning"
            )
        compare = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}[sign]
        return _is_one_of(j, [k for k in range(n) if compare(k, levels[0])], n)

    def _number(self, feature: Feature, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = np.nan
        if not np.isfinite(value):
            raise self._error(f"'{text}' is neither a number nor a feature to compare with")
        return value

    def _known_level(self, j: int, text: str) -> int:
        level = self._level(j, text)
        if level is None:
            feature = self.features[j]
            raise self._error(
                f"'{text}' is none of the levels of '{feature.name}': {list(feature.categories)}"
            )
        return level

    def _level(self, j: int, text: str) -> int | None:
        return level_of(self.features[j], text)


def _term(j: int, block: Block) -> _Term:
    return _Term(j, block.low, block.span)


def level_of(feature: Feature, value: Level) -> int | None:
    """Return the place of a level, given as its value or its text; None if there is none.

    >>> from genrecourse.table.schema import Feature
    >>> level_of(Feature(name="job", kind="category", categories=("clerk", "cook")), "cook")
    1
    """
    for k, level in enumerate(feature.categories):
        if type(level) is type(value) and level == value:
            return k
    texts = [
        str(level).lower() if isinstance(level, bool) else str(level)
        for level in feature.categories
    ]
    text = str(value).lower() if isinstance(value, bool) else str(value)
    for candidate in (text, text.lower() if text in ("True", "False") else text):
        if candidate in texts:
            return texts.index(candidate)
    return None
