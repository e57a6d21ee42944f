"""What a kind of rule defines: `Kind`, and its two families `FeatureKind` and `LimitKind`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel

from genrecourse.table.encoding import Array, Block, TableEncoder, unchanged

if TYPE_CHECKING:
    from genrecourse.rules.effort import Efforts
    from genrecourse.table.schema import Feature, Schema


class Kind(ABC):
    """One kind of rule.

    >>> from genrecourse.rules.kinds import MaxStep, Rules
    >>> MaxStep().stated(Rules(max_step={"debt": 2}))
    [('debt', 2.0)]
    """

    field: str  # of `Rules`, where a user states it
    name: str  # in a BlockingRule, in `violations`, and under [rules] in a wording file

    def stated(self, rules: BaseModel) -> list[tuple[str, Any]]:
        """Return (feature name or relation, value) of each rule of this kind.

        The value is True if the rule has none (a lock); the name is "" if the rule is about the
        whole plan.
        """
        given = getattr(rules, self.field)
        if isinstance(given, tuple):
            return [(key, True) for key in given]
        if isinstance(given, dict):
            return list(given.items())
        return [] if given is None else [("", given)]

    def names(self, *several: BaseModel) -> set[str]:
        """Return the features that any of the rules names in this field."""
        return {key for rules in several for key, _ in self.stated(rules)}

    def also(self, a: BaseModel, b: BaseModel) -> Any:
        """Return the value of the field that keeps the rules of both."""
        mine, other = dict(self.stated(a)), dict(self.stated(b))
        merged = {
            key: self.both(key, mine[key], other[key])
            if key in mine and key in other
            else {**mine, **other}[key]
            for key in (*mine, *(key for key in other if key not in mine))
        }
        given = getattr(a, self.field)
        if isinstance(given, tuple):
            return tuple(merged)
        return merged if isinstance(given, dict) else merged.get("")

    def both(self, key: str, a: Any, b: Any) -> Any:
        """Return the value that keeps two rules on the same thing: the smaller of two limits."""
        return min(a, b)

    def problem(self, rules: BaseModel) -> str:
        """Return what makes no sense in the rules of this kind, or ""."""
        return ""

    def in_words(self, key: str, value: Any) -> str:
        """Return the rule as an error names it."""
        return f"{self.field} of '{key}': {value}"

    @abstractmethod
    def relaxed(self, key: str, value: Any, schema: Schema) -> tuple[Feature | None, Any]:
        """Return the feature that a rule is about, and its value, as a BlockingRule holds them.

        If a field of `Feature` can state the rule, the feature has it there and the value is None.
        """


class FeatureKind(Kind):
    """A rule on one feature. Its values are in the scaled feature view F, in an array (..., w).

    The first axis of all arrays is people. x is the person's own value, NaN if it is missing.

    >>> from genrecourse.rules.kinds import FEATURE_KINDS
    >>> [kind.field for kind in FEATURE_KINDS if kind.numbers_only]
    ['ranges', 'max_step']
    """

    schema_field = ""  # of `Feature`, if the schema can state such a rule
    compares_with_x = False  # if so, a missing value cannot change: nothing is known of the change
    limits_values = False  # it says where values lie, and so may lead beyond the training rows
    lists_values = False  # it names single values, which need not occur in training rows
    numbers_only = False

    def in_schema(self, feature: Feature) -> Any:
        """Return the value of the schema's rule of this kind on a feature; None: there is none."""
        return getattr(feature, self.schema_field) if self.schema_field else None

    def compiled_schema(self, feature: Feature, block: Block) -> Sequence[float] | None:
        """Return the schema's rule on a feature as numbers (w,) in F; None: there is none."""
        value = self.in_schema(feature)
        return None if value is None else self.compiled(feature, block, value)

    @abstractmethod
    def compiled(self, feature: Feature, block: Block, value: Any) -> Sequence[float] | None:
        """Return a rule as numbers (w,) in F; None: it forbids nothing. Raises a UserError if the
        feature cannot have it."""

    @abstractmethod
    def permits(self, values: Array, x: Array, new: Array, slack: float) -> np.ndarray:
        """Return booleans: may a value change from x to new? Neither is the other, and a
        comparison with NaN is False."""

    def narrow(
        self, values: Array, x: Array, low: Array, high: Array, slack: float
    ) -> tuple[Array, Array]:
        """Return the part of [low, high] that the rule leaves a number; low > high: nothing."""
        return low, high

    def clip(self, values: Array, x: Array, new: Array) -> Array:
        """Return `new` moved to the nearest value that the rule permits, if that is simple."""
        return new

    def is_idle(self, values: Array) -> bool:
        """Whether the rule permits every value in [0, 1], where the training rows lie."""
        return False

    def relaxed(self, key: str, value: Any, schema: Schema) -> tuple[Feature | None, Any]:
        return schema[key], None if value is True else value

    def short(self, value: Any) -> str:
        """Return the rule in a few words, for a table of features."""
        return f"{self.field} {value}"


@dataclass(frozen=True, eq=False)
class RowChange:
    """Whole rows before and after a plan, (n, ..., d) in F, as a rule on a plan sees them.

    >>> import pandas as pd
    >>> from genrecourse.table.schema import Schema
    >>> X = pd.DataFrame({"income": [10.0, 20.0], "debt": [5.0, 15.0]})
    >>> encoder = TableEncoder(Schema.infer(X)).fit(X)
    >>> RowChange(encoder, np.array([[0.0, 0.0]]), np.array([[0.0, 1.0]])).n_changes
    array([1])
    """

    encoder: TableEncoder
    before: Array
    after: Array
    efforts: Efforts | None = None  # the policy's; a limit on time or money needs it

    @cached_property
    def moved(self) -> np.ndarray:
        """(n, ..., d) booleans: which features differ, by the person's doing or by themselves."""
        return ~unchanged(self.before, self.after)

    @cached_property
    def n_changes(self) -> np.ndarray:
        """(n, ...) how many features the person changes."""
        by_person = np.array([not feature.follows for feature in self.encoder.schema])
        return np.asarray(self.moved[..., by_person].sum(-1))

    @cached_property
    def cost(self) -> Array:
        """(n, ...) C(x, x_plus), the same numbers as `Cost` returns."""
        price = np.array([feature.price for feature in self.encoder.schema])
        is_number = np.array([block.n_levels == 0 for block in self.encoder.blocks])
        gap = np.abs(self._standing(self.before) - self._standing(self.after))
        size = np.where(is_number & ~np.isnan(gap), gap, self.moved.astype(float))
        return np.asarray((price * size).sum(-1))

    def _standing(self, F: Array) -> Array:
        """Return F with its numbers on the scale on which their changes are paid."""
        blocks = self.encoder.blocks
        if all(block.quantiles is None for block in blocks):
            return F
        return np.stack([block.standing(F[..., j]) for j, block in enumerate(blocks)], axis=-1)


class LimitKind(Kind):
    """A limit on a whole plan: what `measure` returns must be at most the value.

    >>> from genrecourse.rules.kinds import LIMIT_KINDS
    >>> [kind.field for kind in LIMIT_KINDS]
    ['max_changes', 'max_cost', 'max_months', 'max_money']
    """

    @abstractmethod
    def measure(self, change: RowChange) -> Array:
        """Return (n, ...) numbers."""

    def relaxed(self, key: str, value: Any, schema: Schema) -> tuple[Feature | None, Any]:
        return None, value
