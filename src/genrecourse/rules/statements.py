"""Statements: the rules of the schema, or of a request, compiled to arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from genrecourse.errors import UserError, did_you_mean
from genrecourse.rules.kinds import FEATURE_KINDS, LIMIT_KINDS, RELATIONS, Rules
from genrecourse.rules.relations import parse_relation

if TYPE_CHECKING:
    from genrecourse.rules.interface import FeatureKind, Kind
    from genrecourse.rules.relations import Relation
    from genrecourse.table.encoding import Array, TableEncoder

# Listed values are chosen from what the other rules leave, so these kinds come last.
_NARROWING = sorted(FEATURE_KINDS, key=lambda kind: kind.lists_values)


@dataclass(frozen=True, eq=False)
class Column:
    """One kind of rule on one feature, in each of g sets of rules.

    >>> column = Column(np.array([[0.2], [np.nan]]), np.array([True, False]))
    >>> column.stated.tolist()
    [True, False]
    """

    values: Array  # (g, w) in F, filled up with NaN
    stated: np.ndarray  # (g,) booleans: the sets that have such a rule


@dataclass(frozen=True, eq=False)
class Statements:
    """g sets of rules, compiled to the scaled feature view F. The schema is one set.

    >>> import pandas as pd
    >>> from genrecourse.table.encoding import TableEncoder
    >>> from genrecourse.table.schema import Schema
    >>> X = pd.DataFrame({"age": [20.0, 40.0], "debt": [5.0, 15.0]})
    >>> encoder = TableEncoder(Schema.infer(X)).fit(X)
    >>> Statements.of_request([Rules(max_changes=1), Rules()], encoder).is_empty.tolist()
    [False, True]
    """

    columns: Mapping[str, Mapping[int, Column]]  # by field of `Rules`, by feature
    limits: Mapping[str, Array]  # by field of `Rules`: (g,), infinite if there is none
    relations: tuple[Relation, ...] = ()
    # (g, relations) booleans: the sets that have each relation; None: the schema's bind everybody
    bound: np.ndarray | None = None
    rules: tuple[Rules, ...] = ()  # as they were stated; of the schema: none

    @classmethod
    def of_schema(cls, encoder: TableEncoder) -> Statements:
        features = list(zip(encoder.schema, encoder.blocks, strict=True))
        columns = {}
        for kind in FEATURE_KINDS:
            found = {j: kind.compiled_schema(*feature) for j, feature in enumerate(features)}
            columns[kind.field] = {j: _column([v]) for j, v in found.items() if v is not None}
        return cls(columns, {}, _of_table(encoder))

    @classmethod
    def of_request(cls, sets: Sequence[Rules], encoder: TableEncoder) -> Statements:
        """Raise a UserError if a rule names an unknown feature or a value it cannot have."""
        texts = list(dict.fromkeys(text for rules in sets for text in rules.relations))
        limits = {
            kind.field: np.array([dict(kind.stated(rules)).get("", np.inf) for rules in sets])
            for kind in LIMIT_KINDS
        }
        return cls(
            {kind.field: _request_columns(kind, sets, encoder) for kind in FEATURE_KINDS},
            {field: limit.astype(float) for field, limit in limits.items()},
            tuple(RELATIONS.compiled(text, encoder) for text in texts),
            np.array(
                [[text in rules.relations for text in texts] for rules in sets], dtype=bool
            ).reshape(len(sets), len(texts)),
            tuple(sets),
        )

    def without(self, kind: Kind, place: int | str, sets: np.ndarray) -> Statements:
        """Return these statements without one rule in some of the sets, (g,) booleans.

        place: the feature, or the text of the relation; not used for a limit on a whole plan.
        """
        if kind.field in self.limits:
            limit = np.where(sets, np.inf, self.limits[kind.field])
            return replace(self, limits={**self.limits, kind.field: limit})
        if kind.field in self.columns:
            columns = dict(self.columns[kind.field])
            if isinstance(place, int) and place in columns:  # else the rule forbids nothing
                column = columns[place]
                columns[place] = replace(column, stated=column.stated & ~sets)
            return replace(self, columns={**self.columns, kind.field: columns})
        assert self.bound is not None
        is_it = np.array([relation.text == place for relation in self.relations], dtype=bool)
        return replace(self, bound=self.bound & ~(sets[:, None] & is_it))

    @cached_property
    def is_empty(self) -> np.ndarray:
        """(g,) booleans: the sets that forbid nothing."""
        assert self.bound is not None
        empty = np.asarray(~self.bound.any(axis=1))
        for limit in self.limits.values():
            empty &= ~np.isfinite(limit)
        for columns in self.columns.values():
            for column in columns.values():
                empty &= ~column.stated
        return empty

    @cached_property
    def by_feature(self) -> dict[int, list[tuple[FeatureKind, Column]]]:
        """The rules on each feature, in the order in which they narrow what a number may be."""
        found: dict[int, list[tuple[FeatureKind, Column]]] = {}
        for kind in _NARROWING:
            for j, column in self.columns[kind.field].items():
                found.setdefault(j, []).append((kind, column))
        return found


def _of_table(encoder: TableEncoder) -> tuple[Relation, ...]:
    """Return the relations that the schema keeps.

    One that names a protected feature is not in force, because it would decide plans by it.
    """
    schema, known = encoder.schema, []
    for text in schema.relations:
        relation = parse_relation(text, encoder)
        if all(schema.features[j].role != "protected" for j in relation.features):
            known.append(relation)
    return tuple(known)


def _column(values: Sequence[Sequence[float] | None]) -> Column:
    stated = np.array([value is not None for value in values])
    width = max(len(value) for value in values if value is not None)
    table = np.full((len(values), width), np.nan)
    for i, value in enumerate(values):
        if value is not None:
            table[i, : len(value)] = value
    return Column(table, stated)


def _request_columns(
    kind: FeatureKind, sets: Sequence[Rules], encoder: TableEncoder
) -> dict[int, Column]:
    values: dict[int, list[Sequence[float] | None]] = {}
    for i, rules in enumerate(sets):
        for name, value in kind.stated(rules):
            j = _place(kind, name, encoder)
            compiled = kind.compiled(encoder.schema.features[j], encoder.blocks[j], value)
            if compiled is not None:
                values.setdefault(j, [None] * len(sets))[i] = compiled
    return {j: _column(of_sets) for j, of_sets in values.items()}


def _place(kind: FeatureKind, name: str, encoder: TableEncoder) -> int:
    names = encoder.schema.names
    if name not in names:
        raise UserError(
            f"rules: '{kind.field}' names '{name}'{did_you_mean(name, names)}, which is no "
            f"feature; the features are {names}"
        )
    j = names.index(name)
    if kind.numbers_only and encoder.blocks[j].n_levels:
        raise UserError(
            f"rules: '{kind.field}' names '{name}', which is a category; list the levels that it "
            "may change to in 'allowed'"
        )
    return j
