"""PersonalRules: what a request states, for everybody and for single people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict

from genrecourse.errors import UserError
from genrecourse.rules.kinds import Rules
from genrecourse.table.schema import plain
from genrecourse.table.validation import validated

PEOPLE_HINT = '. Rules of single people are {"people": {index label: rules}}'


class PersonalRules(BaseModel):
    """Rules that bind everybody (`default`), and more rules that bind some people, by index label.

    >>> rules = PersonalRules(default=Rules(lock=["job"]), people={7: Rules(max_changes=1)})
    >>> rules.only(pd.Index([1, 2])).people
    {}
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    people: dict[Any, Rules] = {}
    default: Rules = Rules()

    def also(self, other: PersonalRules) -> PersonalRules:
        """Return the rules that keep both, for everybody and for each person."""
        nothing, labels = Rules(), dict.fromkeys((*self.people, *other.people))
        people = {
            label: self.people.get(label, nothing).also(other.people.get(label, nothing))
            for label in labels
        }
        return PersonalRules(people=people, default=self.default.also(other.default))

    def only(self, index: pd.Index) -> PersonalRules:
        """Return the rules of the people in `index`."""
        there = {str(plain(label)) for label in index}
        people = {label: own for label, own in self.people.items() if str(plain(label)) in there}
        return PersonalRules(people=people, default=self.default)

    def by_row(self, index: pd.Index) -> tuple[list[Rules], np.ndarray]:
        """Return the distinct rules in force, and for each row (n,) the place of its rules.

        A person's own rules come on top of the default: stating a rule never removes another.
        """
        own = self._by_label(index)
        places: dict[str, int] = {}
        distinct: list[Rules] = []
        group = np.empty(len(index), dtype=int)
        for i, label in enumerate(map(plain, index)):
            rules = self.default
            if label in own:
                try:
                    rules = rules.also(own[label])
                except UserError as error:
                    raise UserError(f"row {label!r}: {error}") from None
            key = rules.key()
            if key not in places:
                places[key] = len(distinct)
                distinct.append(rules)
            group[i] = places[key]
        return distinct, group

    def _by_label(self, index: pd.Index) -> dict[Any, Rules]:
        """Return `people` by the labels of a table; a label that came through JSON is text."""
        labels = {plain(label) for label in index}
        texts = {str(label): label for label in labels}
        found: dict[Any, Rules] = {}
        for label, own in self.people.items():
            known = plain(label) if plain(label) in labels else texts.get(str(label))
            if known is None:
                some = ", ".join(repr(plain(one)) for one in index[:3])
                raise UserError(
                    f"rules are given for {label!r}, but no row of the table has this index "
                    f"label; its labels begin with {some}"
                )
            found[known] = found[known].also(own) if known in found else own
        return found


def read_rules(given: Any) -> PersonalRules:
    """Return rules from what a user may give: for everybody, by index label, or as plain data.

    A mapping is read as the fields of `Rules`, as {"default": ..., "people": {label: ...}}, or, if
    its values are `Rules` or its keys are no text, as index label to rules.

    >>> read_rules({"lock": "job"}).default.lock
    ('job',)
    >>> read_rules({7: {"lock": "job"}}).people[7].lock
    ('job',)
    """
    if isinstance(given, PersonalRules):
        return given
    if isinstance(given, Rules):
        return PersonalRules(default=given)
    if not isinstance(given, Mapping):
        raise UserError(
            f"rules are {type(given).__name__}; give Rules(...), a mapping with the same names, or "
            "one from index labels to Rules"
        )
    if given and all(isinstance(value, Rules) for value in given.values()):
        return PersonalRules(people=dict(given))
    if not all(isinstance(key, str) for key in given):
        return validated(PersonalRules, {"people": dict(given)}, "rules")
    if given and set(given) <= {"people", "default"}:
        return validated(PersonalRules, dict(given), "rules")
    return PersonalRules(
        default=validated(Rules, dict(given), "rules", unknown_key_hint=PEOPLE_HINT)
    )
