"""discover_relations: what the rows of a table keep, and could as well not keep.

A relation is looked for in one half of the rows and has to hold in the other half, too. It counts
if all of this is true:

- it holds in at least 99.9% of the rows that it says something about;
- chance would break it in at least 2% of these rows: the values are dealt to the rows at random;
- chance would hardly ever keep it as well as the second half does (`table/chance.py`). The
  probability is multiplied by the number of relations that the first half proposed;
- there are so many rows that at most 2% exceptions can hide, with 95% confidence: 149 rows if
  there is no exception.

`keep_relations` puts suggestions into a schema, where every plan keeps them (docs/relations.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from genrecourse.errors import UserError, counted
from genrecourse.table.chance import most_exceptions
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.finders import (
    ALLOWED,
    find_groups,
    find_implications,
    find_missing,
    find_orders,
    find_ratios,
    find_sums,
)
from genrecourse.table.frames import to_pandas
from genrecourse.table.limits import FORMULA_LETTERS
from genrecourse.table.patterns import (
    AtMost,
    IfThen,
    OneHot,
    Pattern,
    Rows,
    Verdict,
    WeightedSum,
    as_text,
)
from genrecourse.table.schema import Feature, Schema, plain
from genrecourse.table.validation import validated

if TYPE_CHECKING:
    import pandas as pd

    from genrecourse.table.encoding import Array

SHARE = 0.02  # of the rows that chance must break, or the relation says too little
ALPHA = 0.01  # probability that chance keeps any of the proposed relations
HIDDEN = 0.02  # share of exceptions that the rows must rule out
COMMON = 0.05  # share of rows that a number's most common value needs to be named in a rule
_TOTAL = re.compile(r"(^|[^a-z])(total|sum|all|overall|gross)($|[^a-z])", re.I)
NONE = "none"  # the level of a group of columns that are all 0


@dataclass(frozen=True)
class Suggestion:
    """A relation that the rows of a table keep.

    Examples:
        >>> found = Suggestion(AtMost("mean", "worst"), Verdict(569, 0, 0.31, -90.0))
        >>> str(found)
        "'mean' is at most 'worst': holds in 569 of 569 rows; by chance, 31% of them would break it"
    """

    pattern: Pattern
    verdict: Verdict  # of all rows

    @property
    def kind(self) -> str:
        """One of "order", "sum", "one-hot", "missing together" and "if-then"."""
        return self.pattern.kind

    @property
    def n(self) -> int:
        """The number of rows that it says something about."""
        return self.verdict.n

    @property
    def exceptions(self) -> int:
        return self.verdict.exceptions

    def __str__(self) -> str:
        held, rows = self.n - self.exceptions, counted(self.n, "row")
        return (
            f"{self.pattern.words}: holds in {held:,} of {rows}; by chance, "
            f"{self.verdict.share:.0%} of them would break it"
        )


def discover_relations(X: Any, schema: Schema | None = None, *, seed: int = 0) -> list[Suggestion]:
    """Return the relations that the rows of X keep and that are no accidents.

    schema: of X; None: it is inferred. Protected features are left out. seed: of the halves.

    Examples:
        >>> import pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> first, second = rng.integers(0, 90, (2, 400))
        >>> X = pd.DataFrame({"low": np.minimum(first, second), "high": np.maximum(first, second)})
        >>> for found in discover_relations(X):
        ...     print(found)
        'low' is at most 'high': holds in 400 of 400 rows; by chance, 16% of them would break it
    """
    X = to_pandas(X, schema)
    schema = Schema.infer(X) if schema is None else schema
    order = np.random.default_rng(seed).permutation(len(X))
    halves = np.sort(order[: len(X) // 2]), np.sort(order[len(X) // 2 :])
    table = _Table.read(X, schema)
    groups = _confirmed(table.rows, halves, lambda rows: find_groups(rows))
    groups = _usable_groups(groups, schema)
    # what holds for a category is looked for in the category, not in its columns
    table = _Table.read(X, keep_relations(schema, groups))
    exact = [table.refitted(each) for each in _confirmed(table.rows, halves, table.equalities)]
    others = _confirmed(table.rows, halves, lambda rows: table.others(rows, exact))
    return [*groups, *exact, *_without_implied(others, exact, table.rows)]


# ---- the table ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """A table as the finders read it."""

    rows: Rows
    tolerance: dict[str, float]  # how far rounding may move each number
    names: dict[str, tuple[str, ...]]  # of the values in `rows.levels`
    is_number: dict[str, bool]

    @classmethod
    def read(cls, X: pd.DataFrame, schema: Schema) -> _Table:
        F = TableEncoder(schema).fit(X).features(X)
        found = cls(Rows({}), {}, {}, {})
        for feature, scaled in zip(schema, F.T, strict=True):
            if feature.role == "protected":
                continue
            if feature.is_category:
                found._add_category(feature, scaled)
            elif feature.role not in ("derived", "advances"):
                found._add_number(feature, X[feature.name])
            if np.isnan(scaled).any():
                found.rows.missing[feature.name] = np.isnan(scaled)
        return found

    def _add_category(self, feature: Feature, places: Array) -> None:
        codes = np.where(np.isnan(places), -1, places).astype(int)
        self.rows.levels[feature.name] = codes
        self.names[feature.name] = tuple(_level_text(level) for level in feature.categories)
        self.is_number[feature.name] = False
        if feature.categories == (False, True) and (codes >= 0).all():
            self.rows.flags[feature.name] = codes.astype(float)

    def _add_number(self, feature: Feature, column: pd.Series) -> None:
        name, values = feature.name, column.to_numpy(dtype=np.float64, na_value=np.nan)
        seen, counts = np.unique(values[~np.isnan(values)], return_counts=True)
        if len(seen) < 2:
            return
        self.rows.numbers[name] = values
        unit = 0.0 if feature.decimals is None else 10.0**-feature.decimals
        single = 2.0**-22 * float(np.abs(seen).max()) if column.dtype == np.float32 else 0.0
        self.tolerance[name] = unit / 2 + single
        if np.array_equal(seen, [0.0, 1.0]) and not np.isnan(values).any():
            self.rows.flags[name] = values
        top = seen[counts.argmax()]
        if counts.max() >= COMMON * len(values):
            codes = np.where(np.isnan(values), -1, values == top).astype(int)
            self.rows.levels[name] = codes
            self.names[name], self.is_number[name] = ("", as_text(float(top))), True

    def equalities(self, rows: Rows) -> Iterator[WeightedSum]:
        """Yield ratios and sums, exact ones and then those within rounding."""
        seen = set[frozenset[str]]()
        for tolerance in (dict.fromkeys(self.tolerance, 0.0), self.tolerance):
            ratios = list(_spanning(find_ratios(rows, tolerance)))
            follows = {each.name for each in ratios}
            numbers = {name: v for name, v in rows.numbers.items() if name not in follows}
            for each in chain(ratios, find_sums(Rows(numbers), tolerance)):
                key = frozenset(each.features)
                if key not in seen and len(each.formula) <= FORMULA_LETTERS:
                    seen.add(key)
                    yield each

    def refitted(self, each: Suggestion) -> Suggestion:
        """Return a ratio with the factor that fits all rows; half of them leave it less certain."""
        if len(each.pattern.features) > 2:
            return each
        both, numbers = each.pattern.features, self.rows.numbers
        own = Rows({name: numbers[name] for name in numbers if name in both})
        for tolerance in (dict.fromkeys(self.tolerance, 0.0), self.tolerance):
            for again in find_ratios(own, tolerance):
                verdict = again.verdict(self.rows)
                if again.name == each.pattern.features[0] and _says_something(verdict):
                    return Suggestion(again, verdict)
        return each

    def others(self, rows: Rows, exact: Sequence[Suggestion]) -> Iterator[Pattern]:
        """Yield the patterns that are no equalities. exact: the equalities, whose ratios say all
        about a column."""
        ratios = {each.pattern.features[0] for each in exact if len(each.pattern.features) == 2}
        left = {name: values for name, values in rows.numbers.items() if name not in ratios}
        yield from find_orders(Rows(left, rows.flags))
        yield from find_missing(rows)
        levels = {name: codes for name, codes in rows.levels.items() if name not in ratios}
        yield from find_implications(Rows({}, levels=levels), self.names, self.is_number)


def _level_text(level: object) -> str:
    return str(level).lower() if isinstance(level, bool) else str(plain(level))


def _spanning(ratios: Iterable[WeightedSum]) -> Iterator[WeightedSum]:
    """Yield ratios that do not follow from earlier ones: each column is computed at most once."""
    kin: dict[str, str] = {}

    def root(name: str) -> str:
        while name in kin:
            name = kin[name]
        return name

    for each in ratios:
        a, b = map(root, each.features)
        if a != b and a == each.name:
            kin[a] = b
            yield each


# ---- which of them are no accidents -------------------------------------------------------------


def _confirmed(
    rows: Rows,
    halves: tuple[np.ndarray, np.ndarray],
    find: Callable[[Rows], Iterable[Pattern]],
) -> list[Suggestion]:
    """Return what is found in the first half, holds in the second, and is unlikely by chance."""
    first, second = (rows.take(half) for half in halves)
    proposed = [each for each in find(first) if _says_something(each.verdict(first))]
    bar = np.log(ALPHA) - np.log(max(1, len(proposed)))
    found = []
    for pattern in proposed:
        check = pattern.verdict(second)
        if not _says_something(check) or check.log_chance > bar:
            continue
        whole = pattern.verdict(rows)
        if most_exceptions(whole.exceptions, whole.n) <= HIDDEN and _says_something(whole):
            found.append(Suggestion(pattern, whole))
    return found


def _says_something(verdict: Verdict) -> bool:
    few = verdict.exceptions <= ALLOWED * verdict.n
    return verdict.n > 0 and few and verdict.share >= SHARE


def _usable_groups(groups: Iterable[Suggestion], schema: Schema) -> list[Suggestion]:
    """Return the groups without any exception whose columns have one role: they become one
    category."""
    found = []
    for each in groups:
        columns = [schema[name] for name in each.pattern.features]
        plainly = all(feature.role in ("mutable", "immutable") for feature in columns)
        if not each.exceptions and plainly and len({f.role for f in columns}) == 1:
            found.append(each)
    return found


def _without_implied(
    others: list[Suggestion], exact: list[Suggestion], rows: Rows
) -> list[Suggestion]:
    """Return relations that do not follow from others that were found."""
    orders = {
        each.pattern.features for each in others if isinstance(each.pattern, AtMost)
    } - _by_sums(exact, rows)
    kept = [
        each
        for each in others
        if not isinstance(each.pattern, AtMost)
        or (each.pattern.features in orders and not _between(each.pattern, orders))
    ]
    covered: dict[frozenset[str], set[tuple[int, int]]] = {}
    answer = []
    for each in sorted(kept, key=lambda each: _breadth(each, rows)):
        if isinstance(each.pattern, IfThen):
            seen = covered.setdefault(frozenset(each.pattern.features), set())
            cells = _forbidden(each.pattern, rows)
            if cells <= seen or _by_order(each.pattern, orders, rows):
                continue
            seen |= cells
        answer.append(each)
    place = {id(each): k for k, each in enumerate(kept)}
    return sorted(answer, key=lambda each: place[id(each)])


def _breadth(each: Suggestion, rows: Rows) -> tuple[int, int, int]:
    """Return a key that sorts if-then rules: what rules out most, in the fewest words, first."""
    rule = each.pattern
    if not isinstance(rule, IfThen):
        return (0, 0, 0)
    return (-len(_forbidden(rule, rows)), len(rule.condition.values + rule.then.values), -each.n)


def _by_sums(exact: Iterable[Suggestion], rows: Rows) -> set[tuple[str, ...]]:
    """Return the orders (part, total) of sums whose other parts are never negative."""
    found = set[tuple[str, ...]]()
    for each in exact:
        total, *parts = each.pattern.features
        for part in parts:
            others = [rows.numbers[name] for name in parts if name != part]
            if all(np.nanmin(other) >= 0 for other in others):
                found.add((part, total))
    return found


def _between(pattern: AtMost, orders: set[tuple[str, ...]]) -> bool:
    """Return whether a <= c and c <= b say the same as a <= b."""
    a, b = pattern.features
    return any((a, c) in orders and (c, b) in orders for _, c in orders if c not in (a, b))


def _forbidden(rule: IfThen, rows: Rows) -> set[tuple[int, int]]:
    """Return the pairs of values that a rule rules out, in the order of the features' names."""
    then, size = rule.then, int(rows.levels[rule.then.name].max()) + 1
    out = [(x, y) for x in rule.condition.places for y in set(range(size)) - set(then.places)]
    return {(y, x) for x, y in out} if rule.condition.name > then.name else set(out)


def _by_order(rule: IfThen, orders: set[tuple[str, ...]], rows: Rows) -> bool:
    """Return whether a <= b says it already: "if b is 0 then a is 0", where a is never below 0."""
    ends = {term.name: term.values for term in (rule.condition, rule.then) if term.is_number}
    return any(
        set(ends) == set(pair)
        and all(ends[name] == (as_text(float(np.nanmin(rows.numbers[name]))),) for name in pair)
        for pair in orders
    )


# ---- into a schema ------------------------------------------------------------------------------


def keep_relations(schema: Schema, suggestions: Iterable[Suggestion]) -> Schema:
    """Return the schema with these relations in force in every plan.

    A sum or ratio makes a number derived, a group of columns of 0 and 1 becomes one category that
    is stored in these columns, and any other relation is added to `relations`.

    Examples:
        >>> import pandas as pd
        >>> X = pd.DataFrame({"rent": [1, 2], "food": [3, 5], "total": [4, 7]})
        >>> total = WeightedSum("total", (("rent", 1.0), ("food", 1.0)), 0.0)
        >>> found = Suggestion(total, Verdict(2, 0, 0.5, -0.7))
        >>> keep_relations(Schema.infer(X), [found])["total"].formula
        '"rent" + "food"'
    """
    rules = list(schema.relations)
    for each in suggestions:
        if isinstance(each.pattern, OneHot):
            schema = _with_group(schema, each.pattern)
        elif isinstance(each.pattern, WeightedSum):
            schema = _with_sum(schema, each.pattern)
        else:
            rules += [rule for rule in each.pattern.rules if rule not in rules]
    return schema.with_relations(rules)


def _with_group(schema: Schema, group: OneHot) -> Schema:
    first = schema[group.columns[0]]
    taken = {name for name in schema.names if name not in group.columns}
    name = next(
        name
        for name in (group.name, f"{group.name}_group", " or ".join(group.columns))
        if name not in taken
    )
    none = NONE if NONE not in group.labels else f"{NONE} of these"
    levels = (*group.labels, none) if group.or_none else group.labels
    category = {"name": name, "kind": "category", "categories": levels, "role": first.role}
    merged = validated(Feature, {**category, "one_hot": group.columns}, "schema")
    features = [
        merged if feature.name == first.name else feature
        for feature in schema
        if feature.name not in group.columns[1:]
    ]
    return schema.with_features(features)


def _with_sum(schema: Schema, total: WeightedSum) -> Schema:
    """Return the schema in which one of the numbers is computed from the others.

    It is the one whose name says that it is a total, or else the last column: people append what
    they compute.
    """
    places = {name: k for k, name in enumerate(schema.names)}
    order = sorted(total.features, key=lambda name: -places[name])
    for name in sorted(order, key=lambda name: _TOTAL.search(name) is None):
        if schema[name].role == "mutable":
            formula = (total if name == total.name else total.solved_for(name)).formula
            try:
                return schema.with_feature(name, role="derived", formula=formula)
            except UserError:  # the formulas would need each other's values
                continue
    return schema
