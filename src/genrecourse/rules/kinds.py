"""Every kind of rule: what a user can state (`Rules`), and what each kind means (`KINDS`).

This is the one file of logic about rules. The schema's rules and a request's go through the same
classes, so a range means the same in both. docs/add_a_rule.md adds a kind step by step.

A rule is about *changes*: a value that stays as x has it breaks no rule, even if it lies outside a
range, and a relation binds only plans that change one of its features.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from genrecourse.errors import UserError, amount, counted, shown
from genrecourse.model.settings import is_number
from genrecourse.rules.interface import FeatureKind, Kind, LimitKind, RowChange
from genrecourse.rules.relations import Possible, Relation, level_of, parse_relation
from genrecourse.table.encoding import Array, Block, TableEncoder, whole_ends
from genrecourse.table.limits import COUNT
from genrecourse.table.schema import Feature, Level, Schema


def several(value: Any) -> Any:
    """Return one name, rule or value as a tuple of one, and anything else unchanged.

    >>> several("age"), several(["age", "sex"])
    (('age',), ['age', 'sex'])
    """
    return (value,) if isinstance(value, str | bool | int | float) else value


Names = Annotated[tuple[str, ...], BeforeValidator(several)]
Values = Annotated[tuple[Level, ...], BeforeValidator(several), Field(min_length=1)]
End = float | None  # of a range; None: open
Positive = Annotated[float, Field(gt=0)]


class Rules(BaseModel):
    """The rules of a request, for one person or for everybody, on top of the schema's.

    lock: features that stay as they are.
    ranges: the interval that a changed number must lie in, ends included; None: open.
    allowed: the values that a feature may change to.
    increase, decrease: features that may only go up, or only down (a category by its order).
    max_step: the largest change of a number.
    max_changes, max_cost: limits on a whole plan; cost as in `Cost`.
    max_months, max_money: the same for the time and the money that a policy says changes take.
    relations: rules between features, as text (`relations.py`).

    >>> policy = Rules(lock=["job"], max_changes=3)
    >>> own = Rules(ranges={"duration": [6, None]}, max_changes=2)
    >>> both = policy.also(own)
    >>> both.lock, both.ranges, both.max_changes
    (('job',), {'duration': (6.0, None)}, 2)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    lock: Names = ()
    ranges: dict[str, tuple[End, End]] = {}
    allowed: dict[str, Values] = {}
    increase: Names = ()
    decrease: Names = ()
    max_step: dict[str, Positive] = {}
    max_changes: int | None = Field(None, ge=0, le=COUNT)
    max_cost: float | None = Field(None, ge=0)
    max_months: float | None = Field(None, ge=0, allow_inf_nan=False)
    max_money: float | None = Field(None, ge=0, allow_inf_nan=False)
    relations: Names = ()

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        for kind in KINDS:
            problem = kind.problem(self)
            if problem:
                raise ValueError(problem)
        return self

    def also(self, other: Rules) -> Rules:
        """Return the rules that allow exactly what both of the two allow."""
        return Rules(**{kind.field: kind.also(self, other) for kind in KINDS})

    def key(self) -> str:
        """Return a text that is equal for equal rules."""
        return self.model_dump_json()


# ---- rules on one feature -----------------------------------------------------------------------


class Direction(FeatureKind):
    """The feature may only go up (field "increase"), or only down (field "decrease").

    >>> new = np.array([0.1, 0.3])
    >>> Direction("increase").permits(np.ones(1), np.array([0.2]), new, slack=0.0).tolist()
    [False, True]
    """

    name, schema_field, compares_with_x = "direction", "direction", True

    def __init__(self, field: str):
        self.field, self.is_up = field, field == "increase"

    def in_schema(self, feature: Feature) -> Any:
        return True if feature.direction == self.field else None

    def also(self, a: BaseModel, b: BaseModel) -> tuple[str, ...]:
        return tuple(sorted(self.names(a, b) - _stuck_by_direction(a, b)))

    def problem(self, rules: BaseModel) -> str:
        both = sorted(_stuck_by_direction(rules))
        return f"{both} may only increase and only decrease; use lock instead" if both else ""

    def compiled(self, feature: Feature, block: Block, value: Any) -> Sequence[float]:
        if feature.is_category and not feature.ordered:
            raise UserError(
                f"rules: '{self.field}' names '{feature.name}', whose levels have no order; list "
                "the levels that it may change to in 'allowed'"
            )
        return (1.0,)

    def permits(self, values: Array, x: Array, new: Array, slack: float) -> np.ndarray:
        return np.asarray(new >= x if self.is_up else new <= x)

    def narrow(
        self, values: Array, x: Array, low: Array, high: Array, slack: float
    ) -> tuple[Array, Array]:
        return (np.fmax(low, x), high) if self.is_up else (low, np.fmin(high, x))

    def relaxed(self, key: str, value: Any, schema: Schema) -> tuple[Feature | None, Any]:
        return schema[key].model_copy(update={"direction": self.field}), None

    def short(self, value: Any) -> str:
        return self.field


INCREASE, DECREASE = Direction("increase"), Direction("decrease")


def _stuck_by_direction(*several: BaseModel) -> set[str]:
    """Return the features that may go neither up nor down if all of these rules hold."""
    return INCREASE.names(*several) & DECREASE.names(*several)


class Lock(FeatureKind):
    """The feature stays as it is; in the schema: it is immutable or protected.

    >>> Lock().stated(Rules(lock=["age"]))
    [('age', True)]
    """

    field, name, schema_field = "lock", "lock", "role"

    def in_schema(self, feature: Feature) -> Any:
        return True if feature.role in ("immutable", "protected") else None

    def also(self, a: BaseModel, b: BaseModel) -> tuple[str, ...]:
        # a feature that may go neither up nor down stays
        return tuple(dict.fromkeys((*super().also(a, b), *sorted(_stuck_by_direction(a, b)))))

    def compiled(self, feature: Feature, block: Block, value: Any) -> Sequence[float]:
        return (1.0,)

    def permits(self, values: Array, x: Array, new: Array, slack: float) -> np.ndarray:
        return np.zeros(np.broadcast_shapes(values.shape[:-1], x.shape, new.shape), dtype=bool)

    def narrow(
        self, values: Array, x: Array, low: Array, high: Array, slack: float
    ) -> tuple[Array, Array]:
        return np.full_like(low, np.inf), np.full_like(high, -np.inf)

    def short(self, value: Any) -> str:
        return "no (locked)"


class Range(FeatureKind):
    """A changed number lies between two ends.

    >>> new = np.array([0.1, 0.2, 0.7])
    >>> Range().permits(np.array([0.2, 0.6]), np.zeros(1), new, slack=0.0).tolist()
    [False, True, False]
    """

    field, name, schema_field = "ranges", "range", "range"
    limits_values = numbers_only = True

    def problem(self, rules: BaseModel) -> str:
        for name, ends in self.stated(rules):
            low, high = _ends_of(ends)
            if math.isnan(low) or math.isnan(high) or low > high:
                return (
                    f"the range of '{name}' is [{ends[0]}, {ends[1]}]: the first number must be "
                    "the smaller"
                )
        return ""

    def both(self, key: str, a: Any, b: Any) -> tuple[float, float]:
        (low, high), (other_low, other_high) = _ends_of(a), _ends_of(b)
        if max(low, other_low) > min(high, other_high):
            raise UserError(_contradiction(self, key, a, b))
        return max(low, other_low), min(high, other_high)

    def compiled_schema(self, feature: Feature, block: Block) -> Sequence[float] | None:
        if feature.range is None:
            return None
        low, high = feature.range
        if feature.decimals is not None:
            first, last = whole_ends(block, low, high, feature.decimals)
            if first <= last:  # an end between two values may be off by more than a check's slack
                low, high = max(low, first), min(high, last)
        return self.compiled(feature, block, (low, high))

    def compiled(self, feature: Feature, block: Block, value: Any) -> Sequence[float] | None:
        low, high = ((end - block.low) / block.span for end in _ends_of(value))
        return (low, high) if math.isfinite(low) or math.isfinite(high) else None

    def permits(self, values: Array, x: Array, new: Array, slack: float) -> np.ndarray:
        return np.asarray((new >= values[..., 0] - slack) & (new <= values[..., 1] + slack))

    def narrow(
        self, values: Array, x: Array, low: Array, high: Array, slack: float
    ) -> tuple[Array, Array]:
        return np.maximum(low, values[..., 0]), np.minimum(high, values[..., 1])

    def is_idle(self, values: Array) -> bool:
        return bool(values[0] <= 0.0 and values[1] >= 1.0)

    def in_words(self, key: str, value: Any) -> str:
        low, high = _ends_of(value)
        return f"'{key}' between {amount(low)} and {amount(high)}"

    def relaxed(self, key: str, value: Any, schema: Schema) -> tuple[Feature | None, Any]:
        return schema[key].model_copy(update={"range": _ends_of(value)}), None

    def short(self, value: Any) -> str:
        low, high = ("..." if end is None else f"{end:,.9g}" for end in value)
        return f"from {low} to {high}"


def _ends_of(value: tuple[End, End]) -> tuple[float, float]:
    """Return the ends of a range, an open one as infinity."""
    low, high = value
    return -math.inf if low is None else low, math.inf if high is None else high


def _contradiction(kind: Kind, key: str, a: Any, b: Any) -> str:
    return (
        f"the rules {kind.in_words(key, a)} and {kind.in_words(key, b)} leave no value that keeps "
        "both; loosen one of them, or lock the feature"
    )


class Allowed(FeatureKind):
    """The feature may change to these values only.

    >>> levels = np.array([0.0, 1.0, 2.0])
    >>> Allowed().permits(np.array([0.0, 2.0]), np.zeros(1), levels, slack=0.0).tolist()
    [True, False, True]
    """

    field, name = "allowed", "allowed"
    limits_values = lists_values = True

    def both(self, key: str, a: Any, b: Any) -> tuple[Level, ...]:
        values = tuple(value for value in a if value in b)
        if not values:
            raise UserError(_contradiction(self, key, a, b))
        return values

    def compiled(self, feature: Feature, block: Block, value: Any) -> Sequence[float]:
        return [self._compiled_one(feature, block, each) for each in value]

    def _compiled_one(self, feature: Feature, block: Block, value: Level) -> float:
        given = f"rules: 'allowed' gives '{feature.name}' the value {shown(value)}"
        if feature.is_category:
            level = level_of(feature, value)
            if level is None:
                levels = list(feature.categories)
                raise UserError(f"{given}, which is none of its levels {levels}")
            return float(level)
        if isinstance(value, str | bool) or not is_number(value):
            raise UserError(f"{given}; the feature is a number, so give numbers")
        decimals = feature.decimals
        if decimals is not None and abs(round(value, decimals) - value) > block.slack * block.span:
            raise UserError(f"{given}, but it has {counted(decimals, 'decimal')}; round the value")
        return float((value - block.low) / block.span)

    def permits(self, values: Array, x: Array, new: Array, slack: float) -> np.ndarray:
        return np.asarray((np.abs(new[..., None] - values) <= slack).any(-1))

    def narrow(
        self, values: Array, x: Array, low: Array, high: Array, slack: float
    ) -> tuple[Array, Array]:
        inside = (values >= low[..., None] - slack) & (values <= high[..., None] + slack)
        return ends_of_rows(np.where(inside, values, np.nan))

    def in_words(self, key: str, value: Any) -> str:
        return f"'{key}' one of {list(value)}"

    def short(self, value: Any) -> str:
        return "to " + " or ".join(str(level) for level in value)


def ends_of_rows(values: Array) -> tuple[Array, Array]:
    """Return the least and the greatest of each row; (inf, -inf) if all of it is NaN.

    >>> ends_of_rows(np.array([[3.0, np.nan, 1.0]]))
    (array([1.]), array([3.]))
    """
    low = np.where(np.isnan(values), np.inf, values).min(axis=-1, initial=np.inf)
    high = np.where(np.isnan(values), -np.inf, values).max(axis=-1, initial=-np.inf)
    return low, high


class MaxStep(FeatureKind):
    """A number changes by at most so much.

    >>> MaxStep().clip(np.array([0.25]), np.array([0.5]), np.array([0.9]))
    array([0.75])
    """

    field, name, schema_field = "max_step", "step", "max_step"
    compares_with_x = numbers_only = True

    def compiled(self, feature: Feature, block: Block, value: Any) -> Sequence[float] | None:
        return (value / block.span,) if math.isfinite(value) else None

    def permits(self, values: Array, x: Array, new: Array, slack: float) -> np.ndarray:
        return np.asarray(np.abs(new - x) <= values[..., 0] + slack)

    def narrow(
        self, values: Array, x: Array, low: Array, high: Array, slack: float
    ) -> tuple[Array, Array]:
        step = values[..., 0]
        return np.fmax(low, x - step), np.fmin(high, x + step)

    def clip(self, values: Array, x: Array, new: Array) -> Array:
        step = values[..., 0]
        return np.where(np.isnan(x), new, np.clip(new, x - step, x + step))

    def relaxed(self, key: str, value: Any, schema: Schema) -> tuple[Feature | None, Any]:
        return schema[key].model_copy(update={"max_step": value}), None

    def short(self, value: Any) -> str:
        return f"by at most {value:,.9g}"


# ---- rules on a whole plan ----------------------------------------------------------------------


class MaxChanges(LimitKind):
    """A plan changes at most so many features.

    >>> MaxChanges().also(Rules(max_changes=3), Rules(max_changes=2))
    2
    """

    field, name = "max_changes", "max_changes"

    def measure(self, change: RowChange) -> Array:
        return change.n_changes


class MaxCost(LimitKind):
    """A plan costs at most so much.

    >>> MaxCost().also(Rules(max_cost=1.5), Rules())
    1.5
    """

    field, name = "max_cost", "max_cost"

    def measure(self, change: RowChange) -> Array:
        return change.cost


class MaxMonths(LimitKind):
    """A plan takes at most so many months, by what the policy says about changes.

    >>> MaxMonths().also(Rules(max_months=12), Rules(max_months=6))
    6.0
    """

    field, name = "max_months", "max_months"

    def measure(self, change: RowChange) -> Array:
        assert change.efforts is not None  # `Problem.compile` refuses the rule without it
        return change.efforts.months(change.before, change.after)


class MaxMoney(LimitKind):
    """A plan costs at most so much money, by what the policy says about changes.

    >>> MaxMoney().also(Rules(max_money=2000), Rules())
    2000.0
    """

    field, name = "max_money", "max_money"

    def measure(self, change: RowChange) -> Array:
        assert change.efforts is not None  # `Problem.compile` refuses the rule without it
        return change.efforts.money(change.before, change.after)


class Relations(Kind):
    """A rule between features holds after a plan that changes one of them.

    >>> import pandas as pd
    >>> X = pd.DataFrame({"income": [10.0, 20.0], "debt": [5.0, 15.0]})
    >>> encoder = TableEncoder(Schema.infer(X)).fit(X)
    >>> relation = Relations().compiled("debt <= income", encoder)
    >>> change = RowChange(encoder, np.array([[0.0, 0.0]]), np.array([[0.0, 1.0]]))
    >>> Relations().broken(relation, change).tolist()
    [True]
    """

    field, name = "relations", "relation"

    def compiled(self, text: str, encoder: TableEncoder) -> Relation:
        """Return the relation; raise a UserError if it names a protected feature."""
        relation = parse_relation(text, encoder)
        features = [encoder.schema.features[j] for j in relation.features]
        protected = [feature.name for feature in features if feature.role == "protected"]
        if protected:
            raise UserError(
                f"the rule '{text}' names {protected}, which is protected: it must decide no "
                "plan. State the rule without it, or make the feature immutable"
            )
        return relation

    def broken(self, relation: Relation, change: RowChange) -> np.ndarray:
        """Return (n, ...) booleans: does a plan that changes one of the features break it?"""
        roles = {j: change.encoder.schema.features[j].role for j in relation.features}
        # time passes whatever a plan does, so a plan does not answer for what time moved
        own = [j for j, role in roles.items() if role not in ("immutable", "advances")]
        view = {j: Possible.known(change.after[..., j]) for j in relation.features}
        return np.asarray(change.moved[..., own].any(-1) & (relation(view) < 0))

    def relaxed(self, key: str, value: Any, schema: Schema) -> tuple[Feature | None, Any]:
        return None, key


# ---- all of them --------------------------------------------------------------------------------

RELATIONS = Relations()
# One for each field of `Rules`. If two rules block a person at the same cost, the one of the
# earlier kind is shown first.
KINDS: tuple[Kind, ...] = (
    Lock(),
    INCREASE,
    DECREASE,
    RELATIONS,
    Range(),
    Allowed(),
    MaxStep(),
    MaxChanges(),
    MaxCost(),
    MaxMonths(),
    MaxMoney(),
)
FEATURE_KINDS = tuple(kind for kind in KINDS if isinstance(kind, FeatureKind))
LIMIT_KINDS = tuple(kind for kind in KINDS if isinstance(kind, LimitKind))


def how_it_may_change(feature: Feature, rules: Rules) -> str:
    """Return how a feature may change by the schema and by `rules`, in a few words.

    >>> age = Feature(name="age", kind="number", direction="increase")
    >>> how_it_may_change(age, Rules(max_step={"age": 2}))
    'increase, by at most 2'
    """
    if feature.role == "derived":
        return f"follows: {feature.formula}"
    if feature.role == "advances":
        return f"with time: by {feature.horizon:g}"
    if feature.role != "mutable":
        return "no" if feature.role == "immutable" else f"no ({feature.role})"
    if feature.name in rules.lock:
        return "no (locked)"
    found = []
    for kind in FEATURE_KINDS:
        values = (kind.in_schema(feature), dict(kind.stated(rules)).get(feature.name))
        found += [kind.short(value) for value in values if value is not None]
    return ", ".join(dict.fromkeys(found)) or "freely"
