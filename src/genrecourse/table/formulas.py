"""Formulas of derived features, as people write them.

    debt / income
    max(0, "capital-gain" - "capital-loss")

A formula consists of numbers, names of features, + - * /, brackets and the functions in
`FUNCTIONS`. A name with other characters than letters, digits and underscores is written in quotes
or backticks. This module's own parser reads a formula; it is never run as code. If a value cannot
be computed (a division by zero, a missing feature), it is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from genrecourse.errors import UserError, counted, shown
from genrecourse.table.limits import BRACKETS, FORMULA_LETTERS

Values = Mapping[str, Any]  # feature name -> values in original units; arrays broadcast
Expression = Callable[[Values], Any]

FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {  # number of arguments, implementation
    "min": (2, np.minimum),
    "max": (2, np.maximum),
    "abs": (1, np.abs),
    "log": (1, np.log),
    "sqrt": (1, np.sqrt),
}
_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)
      | (?P<name>[^\W\d]\w*)
      | (?P<quoted>"[^"]*"|'[^']*'|`[^`]*`)
      | (?P<sign>[-+*/(),])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Formula:
    """A parsed formula: its text, the names of the features in it, and how to compute it.

    Examples:
        >>> ratio = parse_formula("debt / income")
        >>> ratio.names
        ('debt', 'income')
        >>> ratio({"debt": np.array([10.0, 5.0]), "income": np.array([40.0, 0.0])})
        array([0.25,  nan])
    """

    text: str
    names: tuple[str, ...]
    expression: Expression

    def __call__(self, values: Values) -> np.ndarray:
        """Return the value of each row; NaN if it cannot be computed."""
        with np.errstate(all="ignore"):
            found = np.asarray(self.expression(values), dtype=float)
            return np.where(np.isfinite(found), found, np.nan)


def parse_formula(text: str) -> Formula:
    """Parse a formula. Raises UserError if it cannot be read or names no feature.

    Examples:
        >>> parse_formula('max(0, "capital-gain" - 100)').names
        ('capital-gain',)
    """
    parser = _FormulaParser(text)
    expression = parser.whole()
    if not parser.names:
        raise parser.error("it names no feature")
    return Formula(text, tuple(sorted(parser.names)), expression)


class _FormulaParser:
    """Recursive descent: sum > product > signed > atom."""

    def __init__(self, text: str):
        self.text, self.names, self.at, self.depth = text, set[str](), 0, 0
        if len(text) > FORMULA_LETTERS:
            raise UserError(
                f"a formula has {len(text):,} characters; at most {FORMULA_LETTERS} are allowed, "
                f"so shorten it: {shown(text, 40)}"
            )
        self.tokens = self._tokens()

    def error(self, problem: str) -> UserError:
        return UserError(
            f"the formula '{self.text}': {problem}. Write for example 'debt / income', with names "
            'as in the schema, in quotes if they are not plain words: "capital-gain"'
        )

    def _tokens(self) -> list[tuple[str, str]]:
        tokens, i, text = [], 0, self.text.rstrip()
        while i < len(text):
            found = _TOKEN.match(text, i)
            if found is None:
                raise self.error(f"cannot read {shown(text[i:].strip())}")
            assert found.lastgroup is not None
            tokens.append((found.lastgroup, found[found.lastgroup]))
            i = found.end()
        return [*tokens, ("end", "")]

    def _next(self) -> tuple[str, str]:
        self.at += 1
        return self.tokens[self.at - 1]

    def _accept(self, signs: str) -> str:
        kind, text = self.tokens[self.at]
        if kind != "sign" or text not in signs:
            return ""
        self.at += 1
        return text

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise self.error(f"expected '{sign}', found {_shown(self.tokens[self.at])}")

    # ---- the grammar --------------------------------------------------------------------------

    def whole(self) -> Expression:
        answer = self._sum()
        if self.tokens[self.at][0] != "end":
            raise self.error(f"cannot read the part that starts at {self.tokens[self.at][1]!r}")
        return answer

    def _sum(self) -> Expression:
        self.depth += 1
        if self.depth > BRACKETS:
            raise self.error(f"more than {BRACKETS} brackets are nested")
        answer = self._joined("+-", self._product)
        self.depth -= 1
        return answer

    def _product(self) -> Expression:
        return self._joined("*/", self._signed)

    def _joined(self, signs: str, part: Callable[[], Expression]) -> Expression:
        answer = part()
        while sign := self._accept(signs):
            answer = _call(_OPERATORS[sign], [answer, part()])
        return answer

    def _signed(self) -> Expression:
        if self._accept("-"):
            return _call(np.negative, [self._atom()])
        return self._atom()

    def _atom(self) -> Expression:
        kind, text = self._next()
        if kind == "number":
            value = float(text)
            return lambda values: value
        if kind == "quoted":
            return self._feature(text[1:-1])
        if kind == "name":
            return self._function(text) if self._accept("(") else self._feature(text)
        if (kind, text) == ("sign", "("):
            inner = self._sum()
            self._expect(")")
            return inner
        raise self.error(f"expected a number or a feature, found {_shown((kind, text))}")

    def _feature(self, name: str) -> Expression:
        self.names.add(name)
        return lambda values: values[name]

    def _function(self, name: str) -> Expression:
        if name not in FUNCTIONS:
            raise self.error(f"there is no function '{name}', only {list(FUNCTIONS)}")
        n, act = FUNCTIONS[name]
        arguments = [self._sum()]
        while self._accept(","):
            arguments.append(self._sum())
        self._expect(")")
        if len(arguments) != n:
            raise self.error(f"{name} takes {counted(n, 'argument')}, not {len(arguments)}")
        return _call(act, arguments)


def _shown(token: tuple[str, str]) -> str:
    kind, text = token
    return "its end" if kind == "end" else repr(text)


def _call(act: Callable[..., Any], parts: list[Expression]) -> Expression:
    return lambda values: act(*(part(values) for part in parts))
