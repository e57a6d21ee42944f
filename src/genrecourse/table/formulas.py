"""Formulas of derived features, as people write them.

    debt / income
    max(0, "capital-gain" - "capital-loss")

Numbers, names of features, + - * / and brackets, and the functions in `FUNCTIONS`. A name that is
more than letters, digits and underscores stands in quotes or backticks. A formula is read by
this module's own parser and is never run as code. What cannot be computed (a division by zero, a
missing value among the features) is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from genrecourse.errors import UserError

Values = Mapping[str, Any]  # by the name of the feature, in original units; broadcast
Expression = Callable[[Values], Any]

LONGEST, DEEPEST = 300, 20  # characters, and brackets within brackets: reading them is recursive
FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {  # number of arguments, and what it does
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
    """What was read, and the features that it speaks of."""

    text: str
    names: tuple[str, ...]
    expression: Expression

    def __call__(self, values: Values) -> np.ndarray:
        """The value of each row; NaN where it cannot be computed."""
        with np.errstate(all="ignore"):
            found = np.asarray(self.expression(values), dtype=float)
            return np.where(np.isfinite(found), found, np.nan)


def parse_formula(text: str) -> Formula:
    """Read a formula; one that cannot be read is a UserError."""
    parser = _FormulaParser(text)
    expression = parser.whole()
    if not parser.names:
        raise parser.error("it names no feature")
    return Formula(text, tuple(sorted(parser.names)), expression)


class _FormulaParser:
    """Recursive descent: sum > product > signed > atom."""

    def __init__(self, text: str):
        self.text, self.names, self.at, self.depth = text, set[str](), 0, 0
        if len(text) > LONGEST:
            raise UserError(f"a formula has {len(text)} characters; at most {LONGEST} are read")
        self.tokens = self._tokens()

    def error(self, said: str) -> UserError:
        return UserError(
            f"the formula '{self.text}': {said}. Write for example 'debt / income', with names as "
            'in the schema; others than plain words in quotes: "capital-gain"'
        )

    def _tokens(self) -> list[tuple[str, str]]:
        tokens, i, text = [], 0, self.text.rstrip()
        while i < len(text):
            found = _TOKEN.match(text, i)
            if found is None:
                raise self.error(f"cannot read {text[i:].strip()!r}")
            assert found.lastgroup is not None
            tokens.append((found.lastgroup, found[found.lastgroup]))
            i = found.end()
        return [*tokens, ("end", "its end")]

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
            raise self.error(f"'{sign}' should stand where {self.tokens[self.at][1]!r} stands")

    # ---- the grammar --------------------------------------------------------------------------

    def whole(self) -> Expression:
        answer = self._sum()
        if self.tokens[self.at][0] != "end":
            raise self.error(f"cannot read it from {self.tokens[self.at][1]!r} on")
        return answer

    def _sum(self) -> Expression:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"more than {DEEPEST} brackets stand within each other")
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
        raise self.error(f"a number or a feature should stand where {text!r} stands")

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
            raise self.error(f"{name} takes {n} of them, not {len(arguments)}")
        return _call(act, arguments)


def _call(act: Callable[..., Any], parts: list[Expression]) -> Expression:
    return lambda values: act(*(part(values) for part in parts))
