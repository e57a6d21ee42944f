"""Policy: one file on what plans may ask of people, and when the model accepts them.

    schema = "schema.json"              # optional: where the features come from; else the table
    unlisted = "immutable"              # optional: the role of features not named here; else as
                                        # the schema has them, mutable if it comes from the table
    cost = "quantile"                   # optional: how changes of numbers are paid; else "range"

    [decision]
    target = "credit"                   # the column with the outcome
    favourable = "good"
    cutoff = 0.5                        # accepted above it
    promise = 0.9                       # optional: the share of plans that must hold in reality

    [features]                          # roles, wording, units, ranges, directions, costs
    age = { role = "advances", horizon = 1, unit = "years" }
    sex = { role = "protected" }

    [rules]                             # of every request: the fields of `kinds.Rules`
    max_changes = 4
    relations = ["NumInqLast6Mexcl7days <= NumInqLast6M"]

    [effort]                            # optional: the time and money of changes (`effort`)
    changes = { savings = { each = 500, months = 1 } }

    [letter]                            # optional: what every letter to a person says
    sender = "Example Bank"
    contact = "Credit office, telephone 01 234 567"
    valid_days = 90

Python and the command line both follow it:

    policy = Policy.read("policy.toml")
    method = GenRe(policy.classifier(model), policy.schema(X)).fit(X, y)
    method.plans(people, n=3, **policy.request)

A mistake in the file raises an error of one sentence that names the key. `lint` returns warnings,
and with a fitted method also whom each rule leaves without a plan.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, Self, TypeVar

import numpy as np
import pandas as pd
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from genrecourse.errors import UserError, amount, counted, did_you_mean
from genrecourse.model.classifier import Classifier
from genrecourse.rules.book import RuleBook
from genrecourse.rules.effort import EffortPolicy, Efforts, check_effort, lint_effort
from genrecourse.rules.kinds import FEATURE_KINDS, Rules, several
from genrecourse.rules.relations import Possible, parse_relation
from genrecourse.rules.requests import request_book
from genrecourse.rules.roles import protected_used_by
from genrecourse.rules.stated import PersonalRules, read_rules
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.frames import split_off, to_pandas
from genrecourse.table.limits import DECIMALS
from genrecourse.table.patterns import quoted
from genrecourse.table.schema import CostScale, Feature, Level, Schema
from genrecourse.table.text_files import from_toml, path_of, read_text
from genrecourse.table.validation import validated

if TYPE_CHECKING:
    from genrecourse.rules.problem import People

SHARED = 50  # an immutable feature with more values is matched by bin
TRIED = 100  # rejected rows that `lint` makes plans for


# ---- what a policy asks of a method ---------------------------------------------------------


class _BlockingRule(Protocol):
    @property
    def rule(self) -> str: ...


class _Plan(Protocol):
    @property
    def status(self) -> str: ...
    @property
    def blocking_rules(self) -> Sequence[_BlockingRule]: ...


class FittedMethod(Protocol):
    """A fitted method, as a policy sees it.

    >>> from genrecourse import NearestNeighbour
    >>> from genrecourse.evaluation.checks import example_score, make_example
    >>> example = make_example(rows=80, people=10)
    >>> method: FittedMethod = NearestNeighbour(example_score, example.schema).fit(example.X)
    >>> method.classifier_.cutoff
    0.5
    """

    @property
    def schema_(self) -> Schema:
        """The schema that it was fitted with."""

    @property
    def classifier_(self) -> Classifier:
        """The classifier h, fitted."""

    policy_: Policy | None  # the policy in force, if any

    def plans(self, X: pd.DataFrame) -> Sequence[_Plan]:
        """Return one plan for each row of X under the policy in force."""


M = TypeVar("M", bound=FittedMethod)


# ---- the tables of the file------------------------------------------------------------------


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PolicyDecision(_Part):
    """When the model accepts a person, and the promise about plans.

    >>> decision = PolicyDecision(target="credit", favourable="good")
    >>> decision.favourable, decision.cutoff
    (('good',), 0.5)
    """

    target: str | None = None
    favourable: Annotated[tuple[Level, ...], BeforeValidator(several)] = ()
    cutoff: float = Field(0.5, allow_inf_nan=False)
    score_range: tuple[float, float] = (0.0, 1.0)
    promise: float | None = Field(None, gt=0, lt=1)

    @model_validator(mode="after")
    def _cutoff_is_a_score(self) -> Self:
        low, high = self.score_range
        if not low < self.cutoff < high:
            raise ValueError(
                f"the cutoff {self.cutoff:g} lies outside the score range [{low:g}, {high:g}]; "
                "give score_range = [lowest, highest] of the model's scores"
            )
        return self


class FeaturePolicy(_Part):
    """What the policy states about one feature: any field of `Feature` but its name.

    >>> FeaturePolicy(role="immutable", unit="years").stated()
    {'unit': 'years', 'role': 'immutable'}
    """

    kind: Literal["number", "category"] | None = None
    categories: tuple[Level, ...] | None = None
    ordered: bool | None = None
    range: tuple[float, float] | None = None
    decimals: int | None = Field(None, ge=0, le=DECIMALS)
    missing: bool | None = None
    unit: str | None = None
    wording: str | None = None
    role: Literal["mutable", "immutable", "protected", "derived", "advances"] | None = None
    formula: str | None = None
    horizon: float | None = Field(None, gt=0, allow_inf_nan=False)
    direction: Literal["any", "increase", "decrease"] | None = None
    max_step: float | None = Field(None, gt=0)
    cost_weight: float | None = Field(None, gt=0, allow_inf_nan=False)
    cost: CostScale | None = None

    def stated(self) -> dict[str, Any]:
        return self.model_dump(exclude_unset=True)


class LetterPolicy(_Part):
    """What every letter says besides a plan; None: what the letter says by default.

    >>> LetterPolicy(sender="Example Bank").model_dump(exclude_none=True)
    {'sender': 'Example Bank'}
    """

    sender: str | None = None
    contact: str | None = None
    valid_days: int | None = Field(None, ge=1)


class PolicyTables(_Part):
    """The whole file.

    >>> PolicyTables(features={"sex": {"role": "protected"}}).features["sex"].role
    'protected'
    """

    schema_file: str | None = Field(None, alias="schema")
    unlisted: Literal["mutable", "immutable"] | None = None
    cost: CostScale | None = None  # of every number whose own table states no other
    decision: PolicyDecision = PolicyDecision()
    features: dict[str, FeaturePolicy] = {}
    rules: Rules = Rules()
    effort: EffortPolicy = EffortPolicy()
    letter: LetterPolicy = LetterPolicy()

    @model_validator(mode="after")
    def _limits_what_is_stated(self) -> Self:
        for field, what in (("max_months", "months"), ("max_money", "price")):
            limit = getattr(self.rules, field)
            if limit is not None and not self.effort.states(what):
                raise ValueError(
                    f"'rules.{field}' is {limit:g}, but no change has '{what}'; state them in "
                    "'effort.changes'"
                )
        return self


def read_tables(data: Any, where: str) -> PolicyTables:
    """Return the tables of a TOML file; raise a UserError that names the first wrong key.

    >>> read_tables({"rules": {"max_changes": 4}}, "policy.toml").rules.max_changes
    4
    """
    return validated(PolicyTables, data, where)


# ---- the policy ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Policy:
    """A policy. name: for messages; folder: of the files that it names.

    >>> policy = Policy.of(
    ...     decision={"target": "repaid", "favourable": "yes"},
    ...     features={"age": {"role": "immutable"}},
    ...     rules={"max_changes": 2},
    ... )
    >>> policy.target, policy.favourable
    ('repaid', 'yes')
    >>> policy.request["rules"].max_changes
    2
    >>> policy
    Policy('the policy': accepted above 0.5; 1 feature stated; rules: max_changes)
    """

    stated: PolicyTables
    name: str = "the policy"
    folder: Path = Path()

    def __repr__(self) -> str:
        stated, promise = self.stated, self.promise
        parts = [f"accepted above {stated.decision.cutoff:g}"]
        parts += [f"promise {promise:g}"] if promise is not None else []
        parts += [f"{counted(len(stated.features), 'feature')} stated"]
        rules = ", ".join(stated.rules.model_dump(exclude_defaults=True))
        parts += [f"rules: {rules}"] if rules else []
        parts += ["effort"] if stated.effort.changes else []
        return f"Policy({self.name!r}: {'; '.join(parts)})"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Policy:
        """Return the policy in a TOML file."""
        path = path_of(path, "the policy")
        data = from_toml(read_text(path, "the policy "), f"the policy {path}")
        return cls(read_tables(data, path.name), path.name, path.parent)

    @classmethod
    def of(cls, **data: Any) -> Policy:
        """Return a policy from keys as in the file."""
        return cls(read_tables(data, "the policy"))

    # ---- in a model file ----------------------------------------------------------------------

    def pack(self) -> dict[str, Any]:
        """Return the policy as JSON values, for a model file."""
        stated = self.stated.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return {"name": self.name, "stated": stated}

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Policy:
        """Return the policy that `pack` was called on."""
        return cls(read_tables(data["stated"], str(data["name"])), str(data["name"]))

    # ---- for a method --------------------------------------------------------------------------

    def schema(self, X: Any, base: Schema | None = None) -> Schema:
        """Return the schema of X, without the target, with the policy's roles, ranges and costs.

        base: the schema that the policy changes; None: the schema file that the policy names, or
        else the schema inferred from the table.
        """
        X = self.split(to_pandas(X, base))[0]
        schema = base or self._base(X)
        self._check_names(schema)
        for feature in schema:
            schema = self._applied(schema, feature)
        check_effort(self.stated.effort, schema, self.name)
        return schema

    def _check_names(self, schema: Schema) -> None:
        """Raise a UserError for a name that is no feature, with its key."""
        named = [(name, f"'features.{name}'") for name in self.stated.features]
        for kind in FEATURE_KINDS:
            names = [name for name, _ in kind.stated(self.stated.rules)]
            named += [(name, f"'rules.{kind.field}' names '{name}', which") for name in names]
        for name, where in named:
            if name not in schema.names:
                close = did_you_mean(name, schema.names)
                raise UserError(
                    f"{self.name}: {where} is no feature of the table{close}; it has {schema.names}"
                )

    def _base(self, X: pd.DataFrame) -> Schema:
        file = self.stated.schema_file
        return Schema.infer(X) if file is None else Schema.load(self.folder / file)

    def _applied(self, schema: Schema, feature: Feature) -> Schema:
        is_stated = feature.name in self.stated.features
        if feature.follows and not is_stated:  # what its parts or time make of it
            return schema
        kind = self._kind_of(feature)
        changes = self._stated_of(feature.name, kind)
        if not changes:
            return schema
        if kind == "category" and not feature.is_category:  # `Schema.infer` found a number
            changes = {"range": None, "decimals": None, "cost": "range", **changes}
        try:
            return schema.with_feature(feature.name, **changes)
        except UserError as error:
            mistake = str(error).removeprefix("schema: ")
            raise UserError(f"{self.name}: 'features.{feature.name}': {mistake}") from None

    def _kind_of(self, feature: Feature) -> str:
        """Return the kind of a feature under this policy."""
        own = self.stated.features.get(feature.name)
        return feature.kind if own is None or own.kind is None else own.kind

    def classifier(self, model: Any = None) -> Classifier:
        """Return the model with the policy's outcome and cutoff; None: a model to be trained."""
        decision = self.stated.decision
        if isinstance(model, Classifier):
            self._check_decision(model)
            return model
        return Classifier(
            model,
            favourable=self.favourable,
            cutoff=decision.cutoff,
            score_range=decision.score_range,
        )

    @property
    def favourable(self) -> Any:
        """The favourable label, or a tuple of several; None: 1, of the labels 0 and 1."""
        named = self.stated.decision.favourable
        return named[0] if len(named) == 1 else named or None

    @property
    def target(self) -> str | None:
        return self.stated.decision.target

    @property
    def rules(self) -> Rules | None:
        """The rules of every request; None: there are none."""
        return None if self.stated.rules == Rules() else self.stated.rules

    @property
    def promise(self) -> float | None:
        return self.stated.decision.promise

    def efforts(self, encoder: TableEncoder) -> Efforts | None:
        """Return what computes the time and money of changes; None: the policy states nothing."""
        stated = self.stated.effort
        return Efforts(stated, encoder) if stated.changes else None

    @property
    def letter(self) -> dict[str, Any]:
        """What every letter says: `plan.to_letter(**policy.letter)`."""
        return self.stated.letter.model_dump(exclude_none=True)

    @property
    def request(self) -> dict[str, Any]:
        """The options of `plans` that the policy sets: `method.plans(X, n=3, **policy.request)`."""
        return self.request_with(None)

    def request_with(self, rules: Any) -> dict[str, Any]:
        """Return `request` with more rules on top; the policy's own stay in force.

        rules: anything that `read_rules` reads.
        """
        both: Rules | PersonalRules | None = self.rules
        if rules is not None:
            both = PersonalRules(default=self.stated.rules).also(read_rules(rules))
        options = {"rules": both, "promise": self.promise}
        return {name: value for name, value in options.items() if value is not None}

    def split(self, table: Any) -> tuple[Any, Any]:
        """Return the features, and the outcomes if the table has their column, else None.

        Both are of the kind of the table.
        """
        if not isinstance(table, pd.DataFrame):
            return split_off(table, self.target)
        if self.target is None or self.target not in table.columns:
            return table, None
        return table.drop(columns=self.target), table[self.target]

    def applied_to(self, method: M) -> M:
        """Return a copy of a fitted method on which this policy is in force, instead of its own.

        The method itself stays as it is, and both share what was learned. Rules of requests and the
        promise may differ from those of the policy that the method was fitted under. A policy that
        states other features is refused, because it needs another fit.

        >>> from genrecourse import NearestNeighbour
        >>> X = pd.DataFrame({"income": range(80), "debt": range(80)})
        >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80).fit(X)
        >>> locked = Policy.of(rules={"lock": ["debt"]}).applied_to(method)
        >>> [each.changes[0].feature.name for each in locked.plans(X.head(1))]
        ['income']
        >>> method.policy_ is None
        True
        """
        self.check_fitted(method)
        ruled = copy.copy(method)
        ruled.policy_ = self
        return ruled

    def without_rules(self) -> Policy:
        """Return a policy that says the same about features and decision, and asks nothing more.

        It has neither rules nor a promise, and no preference for quick or cheap plans; what changes
        take stays stated. `policy.without_rules().applied_to(method)` is a method
        as it was fitted.

        >>> Policy.of(rules={"max_changes": 2}, decision={"promise": 0.9}).without_rules().request
        {}
        """
        decision = self.stated.decision.model_copy(update={"promise": None})
        effort = self.stated.effort.model_copy(update={"prefer": None})
        nothing = {"rules": Rules(), "decision": decision, "effort": effort}
        stated = self.stated.model_copy(update=nothing)
        return replace(self, stated=stated, name=f"{self.name} without its rules")

    def check_fitted(self, method: FittedMethod) -> None:
        """Raise a UserError if a method was fitted under a policy with other features.

        Rules of requests and the promise may differ, since the method did not learn from them.
        """
        differ = self._differences(method.schema_) + self._no_longer_stated(method.policy_)
        if differ:
            raise UserError(
                f"{self.name}: the model was fitted under other rules: {differ[0]}; fit it again "
                "with this policy"
            )
        check_effort(self.stated.effort, method.schema_, self.name)
        self._check_decision(method.classifier_)

    def _differences(self, fitted: Schema) -> list[str]:
        found = []
        for feature in fitted:
            if feature.follows and feature.name not in self.stated.features:
                continue
            for field, value in self._stated_of(feature.name, feature.kind).items():
                has = getattr(feature, field)
                if has != value:
                    found.append(f"'{feature.name}' had the {field} {has!r}, not {value!r}")
        unknown = [name for name in self.stated.features if name not in fitted.names]
        return found + [f"'{name}' was no feature" for name in unknown]

    def _stated_of(self, name: str, kind: str | None = None) -> dict[str, Any]:
        """Return the fields of a feature that the policy states; kind: number or category."""
        own, unlisted = self.stated.features.get(name), self.stated.unlisted
        for_all = {"cost": self.stated.cost} if kind == "number" and self.stated.cost else {}
        if own is not None:
            return for_all | own.stated()
        return for_all | ({} if unlisted is None else {"role": unlisted})

    def _no_longer_stated(self, before: Policy | None) -> list[str]:
        """Return what the policy of the fit states about features and this one does not."""
        if before is None:
            return []
        named = [*before.stated.features, *self.stated.features]
        lost = {name: before._stated_of(name).keys() - self._stated_of(name) for name in named}
        found = [
            f"{before.name} gave '{name}' its {sorted(fields)[0]}, which this policy does not state"
            for name, fields in lost.items()
            if fields
        ]
        if before.stated.unlisted != self.stated.unlisted:
            roles = (before.stated.unlisted, self.stated.unlisted)
            was, now = (f"'{role}'" if role else "as the table has it" for role in roles)
            found.append(f"unlisted features were {was}, not {now}")
        if before.stated.cost is not None and self.stated.cost is None:
            found.append(f"{before.name} stated the cost '{before.stated.cost}', this policy none")
        return found

    def _check_decision(self, h: Classifier) -> None:
        """Raise a UserError if a classifier's outcome or cutoff is not the policy's."""
        wanted, stated = self.stated.decision.cutoff, self.stated.decision.model_fields_set
        named = set(self.stated.decision.favourable)
        # 1 of {0, 1} is favourable where a classifier names none; other labels it does not know
        has = {1} if h.favourable is None and named <= {0, 1} else _as_set(h.favourable)
        if named and has and named != has:
            raise UserError(
                f"{self.name}: 'decision.favourable' is {_names(named)}, but for the classifier "
                f"the favourable outcome is {_names(has)}; make them agree"
            )
        ends = self.stated.decision.score_range
        if "score_range" in stated and tuple(h.score_range) != ends:
            raise UserError(
                f"{self.name}: 'decision.score_range' is {list(ends)}, but the classifier's is "
                f"{list(h.score_range)}; make them agree"
            )
        if "cutoff" in stated and h.cutoff != wanted:
            raise UserError(
                f"{self.name}: 'decision.cutoff' is {wanted:g}, but the classifier accepts above "
                f"{h.cutoff:g}; make them agree"
            )

    # ---- warnings -------------------------------------------------------------------------------

    def lint(self, X: Any, method: FittedMethod | None = None) -> list[str]:
        """Return sentences about what looks wrong. X: training rows, or others like them.

        method: fitted under this policy. If it is given, plans are made for some of the rows in X
        that it rejects, to find whom the rules leave without one.
        """
        if method is not None:
            self.check_fitted(method)
        X = to_pandas(X)
        refused = self.refused(X, method)
        X = self.split(X)[0]
        schema = self.schema(X)
        remarks = schema.lint(X, locked=self.stated.rules.lock or ())
        for name, own in self.stated.features.items():
            remarks += _lint_feature(schema[name], own, schema[name].values(X))
        remarks += [*_lint_immutables(schema, X), *self._lint_rules(schema, X)]
        if self.stated.effort.changes:
            locked = self.stated.rules.lock
            remarks += lint_effort(self.stated.effort, schema, locked)
        if all(feature.role != "mutable" for feature in schema):
            remarks.append("no feature is mutable, so there can be no plan")
        if method is not None:
            remarks += _lint_use(method.classifier_, schema, X)
            remarks += [] if refused else self._lint_plans(self.applied_to(method), X)
        return remarks + refused

    def refused(self, X: Any, method: FittedMethod | None = None) -> list[str]:
        """Return sentences about what `fit` or each request would refuse for such a table.

        method: if it is given, only the rows that it rejects must be able to meet the rules.
        """
        X, y = self.split(to_pandas(X))
        found, book = [], RuleBook.of_schema(TableEncoder(self.schema(X)).fit(X))
        try:
            if y is not None:
                self.classifier().is_favourable(y)
        except UserError as error:
            found.append(f"'decision.favourable' will be refused for such a table: {error}")
        unless, asking = ", unless the model accepts such rows already", np.ones(len(X), dtype=bool)
        if method is not None:
            unless, asking = "", ~method.classifier_.accepts(X[method.schema_.columns])
        for then, whom in (("", np.zeros(len(X), dtype=bool)), (unless, asking)):
            try:
                request_book(self.stated.rules, book, X, whom)
            except UserError as error:
                return [*found, f"'rules' will be refused for such a table{then}: {error}"]
        return found

    def _lint_rules(self, schema: Schema, X: pd.DataFrame) -> list[str]:
        rules, remarks = self.stated.rules, []
        for kind in FEATURE_KINDS:
            for name, _ in kind.stated(rules):
                role = schema[name].role
                if role not in ("mutable", "derived"):
                    then = "it does nothing" if role == "immutable" else "it is refused"
                    remarks.append(f"'rules.{kind.field}' names '{name}', {role}: {then}")
        for name, (low, high) in rules.ranges.items():
            if schema[name].is_category:
                continue  # `refused` reports it
            ends = (-np.inf if low is None else low, np.inf if high is None else high)
            remarks += _lint_range(f"'rules.ranges.{name}'", ends, X[name])
        for names, way in ((rules.increase, "decrease"), (rules.decrease, "increase")):
            remarks += [
                f"'{name}' may only {way} by its feature and only the other way by the rules, so "
                "it cannot change"
                for name in names
                if schema[name].direction == way
            ]
        remarks += [
            f"'rules.{field}' is 0, so nothing may change and nobody has a plan"
            for field in ("max_changes", "max_cost")  # 0 months or no money may be a wish
            if getattr(rules, field) == 0
        ]
        remarks += _lint_relations(rules.relations, schema, X)
        remarks += _lint_kept(schema)
        return remarks

    def _lint_plans(self, method: FittedMethod, X: pd.DataFrame) -> list[str]:
        rejected = np.flatnonzero(~method.classifier_.accepts(X[method.schema_.columns]))
        if len(rejected) == 0:
            return ["the model rejects none of these rows, so no plan was tried"]
        some = rejected[np.linspace(0, len(rejected) - 1, min(len(rejected), TRIED)).astype(int)]
        plans = method.plans(X.iloc[some])
        lost = [plan for plan in plans if plan.status != "ok"]
        if not lost:
            return []
        of = f"of {len(plans)} rejected rows"
        remarks = [f"{_share(len(lost), len(plans))} {of} have no plan under this policy"]
        alone: dict[str, int] = {}
        for plan in lost:
            for rule in dict.fromkeys(opening.rule for opening in plan.blocking_rules):
                alone[rule] = alone.get(rule, 0) + 1
        remarks += [
            f"the rule “{rule}” alone leaves {_share(n, len(plans))} {of} with no plan"
            for rule, n in sorted(alone.items(), key=lambda item: -item[1])
        ]
        return remarks


def _as_set(favourable: Any) -> set[Any]:
    if favourable is None:
        return set()
    several = isinstance(favourable, set | frozenset | list | tuple)
    return set(favourable) if several else {favourable}


def _names(labels: set[Any]) -> str:
    return ", ".join(sorted(map(repr, labels)))


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if part / whole >= 0.01 else f"{part / whole:.1%}"


# ---- remarks --------------------------------------------------------------------------------


def _lint_feature(feature: Feature, own: FeaturePolicy, column: pd.Series) -> Iterable[str]:
    where = f"'features.{feature.name}'"
    if own.cost_weight is not None and feature.role != "mutable":
        yield f"{where} has a cost_weight, but is {feature.role}, so it costs nothing"
    if feature.is_category:
        return  # the rest is about numbers
    if feature.range is not None and own.range is not None:
        yield from _lint_range(f"{where}.range", feature.range, column)
    if feature.horizon is not None and feature.horizon > column.max() - column.min():
        yield f"{where} advances by {feature.horizon:g}, more than people in the table differ"
    if feature.max_step is not None and (column.max() - column.min()) <= feature.max_step:
        yield f"{where}.max_step is as large as the whole table's range, so it forbids nothing"


def _lint_immutables(schema: Schema, X: pd.DataFrame) -> Iterable[str]:
    """Yield a sentence if most rows share their immutable values with no other row."""
    immutable = {f.name: f.values(X) for f in schema if f.role == "immutable"}
    fixed, values = list(immutable), pd.DataFrame(immutable, index=X.index)
    compared = [name for name in fixed if values[name].nunique() <= SHARED]
    alone = ~values.duplicated(compared, keep=False) if compared else pd.Series(False, X.index)
    if alone.mean() > 0.5:
        share = _share(int(alone.sum()), len(X))
        yield (
            f"{share} of the rows share their immutable features {fixed} with no other row, so "
            "there is nobody to learn from; lock some of them instead, by 'rules.lock'"
        )


def _lint_range(where: str, ends: tuple[float, float], column: pd.Series) -> Iterable[str]:
    low, high = float(column.min()), float(column.max())
    table = f"the table goes from {amount(low)} to {amount(high)}"
    if ends[1] < low or ends[0] > high:
        yield f"{where} [{ends[0]:.10g}, {ends[1]:.10g}] lies outside the data: {table}"
    elif (np.isfinite(ends[0]) and ends[0] < low) or (np.isfinite(ends[1]) and ends[1] > high):
        yield (
            f"{where} [{ends[0]:.10g}, {ends[1]:.10g}] goes beyond the data ({table}): the model "
            "has seen nobody there"
        )


def _lint_relations(texts: Iterable[str], schema: Schema, X: pd.DataFrame) -> Iterable[str]:
    encoder = TableEncoder(schema).fit(X)
    F, immutable = encoder.features(X), RuleBook.of_schema(encoder).immutable
    view = {j: Possible.known(F[:, j]) for j in range(F.shape[1])}
    for text in texts:
        try:
            relation = parse_relation(text, encoder)
        except UserError:
            continue  # `refused` reports it
        features = list(relation.features)
        protected = [schema.names[j] for j in features if schema.features[j].role == "protected"]
        if protected:
            yield f"the rule '{text}' names {protected}, which is protected: it will be refused"
        if immutable[features].all():
            yield f"the rule '{text}' names no feature that a person can change"
        broken = np.broadcast_to(relation(view) < 0, len(X))
        if broken.any():
            share = _share(int(broken.sum()), len(X))
            yield f"{share} of the rows already break the rule '{text}'"


def _lint_kept(schema: Schema) -> Iterable[str]:
    """Yield a sentence for each relation of the schema that a role puts out of force."""
    for text in schema.relations:
        hidden = [name for name in schema.protected if quoted(name) in text]
        if hidden:
            yield f"the schema's relation '{text}' names {hidden}, protected: it is not in force"


def _lint_use(h: Classifier, schema: Schema, X: pd.DataFrame) -> Iterable[str]:
    for use in protected_used_by(h, schema, X[schema.columns]):
        yield f"{use.sentence}, and it is protected"


def read_policy(policy: Policy | str | os.PathLike[str]) -> Policy:
    """Return a policy as it is, or the one in a file.

    >>> policy = Policy.of(rules={"max_changes": 2})
    >>> read_policy(policy) is policy
    True
    """
    return policy if isinstance(policy, Policy) else Policy.read(policy)


def rules_in_force(policy: Policy | None, rules: Any) -> Any:
    """Return the rules of a request on top of the policy's, if there is a policy.

    >>> policy = Policy.of(rules={"max_changes": 3})
    >>> rules_in_force(policy, {"lock": ["age"]}).default.max_changes
    3
    """
    return rules if policy is None else policy.request_with(rules).get("rules")


def promise_in_force(policy: Policy | None, promise: float | None) -> float | None:
    """Return the larger of the promise of a request and the policy's; None: there is neither.

    A request can ask for more than the policy, and never for less.

    >>> policy = Policy.of(decision={"promise": 0.9})
    >>> promise_in_force(policy, 0.8), promise_in_force(policy, 0.95), promise_in_force(None, None)
    (0.9, 0.95, None)
    """
    stated = [promise, None if policy is None else policy.promise]
    return max((share for share in stated if share is not None), default=None)


def efforts_in_force(policy: Policy | None, encoder: TableEncoder) -> Efforts | None:
    """Return what computes the time and money of changes; None: nothing is stated about them.

    >>> encoder = TableEncoder(Schema.infer(pd.DataFrame({"income": [1.0, 2.0]})))
    >>> efforts_in_force(None, encoder) is None
    True
    """
    return None if policy is None else policy.efforts(encoder)


def book_in_force(policy: Policy | None, rules: Any, people: People) -> RuleBook | None:
    """Return the rules of a request for each person, on top of the policy's; None: there are none.

    >>> from genrecourse import NearestNeighbour
    >>> X = pd.DataFrame({"income": range(80)})
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80).fit(X)
    >>> book_in_force(None, None, method.problem_.read(X)) is None
    True
    """
    problem = people.problem
    efforts = efforts_in_force(policy, problem.encoder)
    return problem.compile(rules_in_force(policy, rules), people, efforts)
