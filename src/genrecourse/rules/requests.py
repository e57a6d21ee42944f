"""request_book: the rules of a request, checked against the schema and the people who ask.

A rule that a person who is to get a plan does not meet, and cannot meet whatever changes, is a
mistake in the rule or in the row: an error names both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError, counted
from genrecourse.rules.kinds import FEATURE_KINDS, Rules
from genrecourse.rules.stated import read_rules
from genrecourse.rules.statements import Statements
from genrecourse.table.schema import Schema, plain

if TYPE_CHECKING:
    from genrecourse.rules.book import RuleBook
    from genrecourse.table.encoding import Array


def request_book(
    rules: Any,
    book: RuleBook,
    X: pd.DataFrame,
    asking: np.ndarray | None = None,
    F: Array | None = None,
) -> RuleBook:
    """Return the rules of each row of X: the schema's and the request's.

    rules: anything that `read_rules` reads. book: the schema's rules. asking: (n,) booleans, who is
    to get a plan: only they must be able to meet the rules; None: everybody. F: the features of X,
    if they are known. Raises a UserError for an unknown feature or value, and for a rule that
    somebody does not meet and cannot meet.

    >>> from genrecourse.rules.book import RuleBook
    >>> from genrecourse.table.encoding import TableEncoder
    >>> X = pd.DataFrame({"age": [20.0, 40.0], "debt": [5.0, 15.0]})
    >>> book = RuleBook.of_schema(TableEncoder(Schema.infer(X)).fit(X))
    >>> request_book({"lock": ["age"]}, book, X).locked.tolist()
    [[True, False], [True, False]]
    """
    stated = read_rules(rules)
    for each in (stated.default, *stated.people.values()):
        _check_roles(each, book.encoder.schema)
    sets, group = stated.by_row(X.index)
    found = book.with_statements(Statements.of_request(sets, book.encoder), group)
    who = np.arange(len(X)) if asking is None else np.flatnonzero(asking)
    F = book.encoder.features(X) if F is None else F
    _check_possible(found.take(who), F[who], X.index[who])
    return found


def _check_roles(rules: Rules, schema: Schema) -> None:
    """Raise a UserError for a rule that no plan could keep, or that must decide no plan."""
    why = {
        "advances": "which time moves, whatever a plan does: no plan can keep a rule on it",
        "protected": "which is protected: it must decide no plan",
    }
    for kind in FEATURE_KINDS:
        for name, _ in kind.stated(rules):
            role = schema[name].role if name in schema.names else ""
            if role in why:
                raise UserError(
                    f"rules: '{kind.field}' names '{name}', {why[role]}. Leave it out, or make the "
                    "feature immutable"
                )


def _check_possible(book: RuleBook, F: Array, index: pd.Index) -> None:
    """Raise a UserError for a rule that somebody does not meet and cannot, whatever changes."""
    assert book.request is not None
    names = book.encoder.schema.names
    for i, rules in enumerate(book.request.rules):
        rows = np.flatnonzero(book.group == i)
        if len(rows) == 0:
            continue
        mine, x = book.take(rows), F[rows]
        for kind in FEATURE_KINDS:
            for name, value in kind.stated(rules) if kind.limits_values else ():
                if name in rules.lock:
                    continue  # it is to stay, and what stays breaks no rule
                j = names.index(name)
                stuck = mine.cannot_meet(kind, j, x[:, j])
                _refuse(stuck, index[rows], kind.in_words(name, value))
        asked = mine.asked_relations  # who breaks the schema's own relations may still ask
        view = mine.possible(x, {j for relation in asked for j in relation.features})
        for relation in asked:
            broken = np.broadcast_to(relation(view) < 0, len(rows))
            _refuse(broken, index[rows], f"'{relation.text}'")


def _refuse(stuck: np.ndarray, index: pd.Index, rule: str) -> None:
    if stuck.any():
        row = plain(index[int(stuck.argmax())])
        raise UserError(
            f"row {row!r} does not meet the rule {rule}, and no value that the other rules leave "
            f"open meets it ({counted(int(stuck.sum()), 'such row')} in all); change the rule, or "
            "leave such rows out"
        )
