"""Policy: one file that says what may be asked of people, and by whom they are accepted.

    schema = "schema.json"              # optional: where the features come from; else the table
    unlisted = "immutable"              # optional: the role of features not named here; else as
                                        # the schema has them, mutable if it comes from the table

    [decision]
    target = "credit"                   # the column with the outcome
    favourable = "good"
    cutoff = 0.5                        # accepted above it
    promise = 0.9                       # optional: how often plans must hold up in reality

    [features]                          # roles, wording, units, ranges, directions, costs
    age = { role = "advances", horizon = 1, unit = "years" }
    sex = { role = "protected" }

    [rules]                             # of every request, as `requests.Constraints` has them
    max_changes = 4
    relations = ["NumInqLast6Mexcl7days <= NumInqLast6M"]

It drives Python and the command line alike:

    policy = Policy.read("policy.toml")
    method = GenRe(policy.classifier(model), policy.schema(X)).fit(X, y)
    method.plans(people, n=3, **policy.request)

A mistake in the file is one sentence that names the key and what may stand there. `lint` says what
is not wrong but odd, and with a fitted method also whom each rule leaves without a plan.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import pandas as pd
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from genrecourse.errors import UserError, amount, did_you_mean
from genrecourse.model.classifier import Classifier
from genrecourse.rules.constraints import Rules
from genrecourse.rules.relations import Possible, parse_relation
from genrecourse.rules.requests import (
    Constraints,
    PerPerson,
    compile_constraints,
    read_constraints,
    several,
)
from genrecourse.rules.roles import read_by
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.schema import Feature, Level, Schema

SHARED = 50  # values of an immutable feature by which people are matched as they are
TRIED = 100  # rejected rows for whom plans are made when a fitted method is linted


# ---- what the file says ---------------------------------------------------------------------


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PolicyDecision(_Part):
    """Who is accepted, and what is promised about it."""

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
    """What the policy says of one feature: any field of `Feature` but its name."""

    kind: Literal["number", "category"] | None = None
    categories: tuple[Level, ...] | None = None
    ordered: bool | None = None
    range: tuple[float, float] | None = None
    decimals: int | None = Field(None, ge=0)
    missing: bool | None = None
    unit: str | None = None
    wording: str | None = None
    role: Literal["mutable", "immutable", "protected", "derived", "advances"] | None = None
    formula: str | None = None
    horizon: float | None = Field(None, gt=0, allow_inf_nan=False)
    direction: Literal["any", "increase", "decrease"] | None = None
    max_step: float | None = Field(None, gt=0)
    cost_weight: float | None = Field(None, gt=0, allow_inf_nan=False)

    def stated(self) -> dict[str, Any]:
        return self.model_dump(exclude_unset=True)


class PolicyTables(_Part):
    """The whole file."""

    schema_file: str | None = Field(None, alias="schema")
    unlisted: Literal["mutable", "immutable"] | None = None
    decision: PolicyDecision = PolicyDecision()
    features: dict[str, FeaturePolicy] = {}
    rules: Constraints = Constraints()


def read_tables(data: Any, where: str) -> PolicyTables:
    """From the tables of a TOML file; the first mistake is one sentence that names its key."""
    try:
        return PolicyTables.model_validate(data)
    except ValidationError as error:
        raise UserError(f"{where}: {_sentence(error)}") from None


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    place, said = [str(part) for part in first["loc"]], first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        part, above = _part_at(place[:-1]), ".".join(place[:-1])
        known = [field.alias or name for name, field in part.model_fields.items()]
        inside = f"'{above}' has" if above else "it has"
        close = did_you_mean(place[-1], known)
        return f"{inside} no key '{place[-1]}'{close}; allowed are {', '.join(known)}"
    seen = "" if first["type"] == "value_error" else f" is {first['input']!r}"
    said = said[:1].lower() + said[1:]
    return f"'{'.'.join(place)}'{seen}: {said}"


def _part_at(place: list[str]) -> type[BaseModel]:
    """The part of the file that a key belongs to."""
    if not place:
        return PolicyTables
    parts: dict[str, type[BaseModel]] = {
        "decision": PolicyDecision,
        "features": FeaturePolicy,
        "rules": Constraints,
    }
    return parts[place[0]]


# ---- what it means --------------------------------------------------------------------------


@dataclass(frozen=True)
class Policy:
    """A policy as it was read. name: for messages; folder: where the files it names are."""

    stated: PolicyTables
    name: str = "the policy"
    folder: Path = Path()

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Policy:
        path = Path(path)
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(f"cannot read the policy {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise UserError(f"cannot read the policy {path}: not UTF-8; save it as UTF-8") from None
        except tomllib.TOMLDecodeError as error:
            raise UserError(f"the policy {path} is not TOML: {error}") from None
        return cls(read_tables(data, path.name), path.name, path.parent)

    @classmethod
    def of(cls, **data: Any) -> Policy:
        """The same from Python: keys as in the file."""
        return cls(read_tables(data, "the policy"))

    # ---- in a model file ----------------------------------------------------------------------

    def pack(self) -> dict[str, Any]:
        """For a model file, as JSON has it."""
        stated = self.stated.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return {"name": self.name, "stated": stated}

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Policy:
        """The inverse of `pack`."""
        return cls(read_tables(data["stated"], str(data["name"])), str(data["name"]))

    # ---- it drives a method -------------------------------------------------------------------

    def schema(self, X: pd.DataFrame, base: Schema | None = None) -> Schema:
        """Of the features in X (the target left out) as the policy has them.

        base: where what the policy does not say comes from; None: the schema file that the policy
        names, or else what can be read off the table.
        """
        X = self.split(X)[0]
        schema = base or self._base(X)
        self._check_names(schema)
        for feature in schema:
            schema = self._applied(schema, feature)
        return schema

    def _check_names(self, schema: Schema) -> None:
        """Refuse names that are no features, by the key where they stand."""
        named = [(name, f"'features.{name}'") for name in self.stated.features]
        for field in ("lock", "increase", "decrease", "ranges", "allowed", "max_step"):
            rules = getattr(self.stated.rules, field)
            named += [(name, f"'rules.{field}' names '{name}', which") for name in rules]
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
        said = self.stated.features.get(feature.name)
        if said is None:
            role = self.stated.unlisted
            return schema if role is None else schema.with_feature(feature.name, role=role)
        changes = said.stated()
        if changes.get("kind") == "category":  # what was read off its numbers is about numbers
            changes = {"range": None, "decimals": None, **changes}
        try:
            return schema.with_feature(feature.name, **changes)
        except UserError as error:
            said_of = str(error).removeprefix("schema: ")
            raise UserError(f"{self.name}: 'features.{feature.name}': {said_of}") from None

    def classifier(self, model: Any = None) -> Classifier:
        """The model with the policy's favourable outcome and cutoff; None: to be trained."""
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
        """One label, a tuple of several, or None: 1 of {0, 1}."""
        named = self.stated.decision.favourable
        return named[0] if len(named) == 1 else named or None

    @property
    def target(self) -> str | None:
        return self.stated.decision.target

    @property
    def constraints(self) -> Constraints | None:
        """The rules of every request; None: there are none."""
        return None if self.stated.rules == Constraints() else self.stated.rules

    @property
    def promise(self) -> float | None:
        return self.stated.decision.promise

    @property
    def request(self) -> dict[str, Any]:
        """What `plans` is to be told: `method.plans(X, n=3, **policy.request)`."""
        return self.request_with(None)

    def request_with(self, constraints: Any) -> dict[str, Any]:
        """The same, with rules of these people on top: none of the policy's is lost by them."""
        rules: Constraints | PerPerson | None = self.constraints
        if constraints is not None:
            rules = PerPerson(default=self.stated.rules).also(read_constraints(constraints))
        told = {"constraints": rules, "promise": self.promise}
        return {name: value for name, value in told.items() if value is not None}

    def split(self, table: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series | None]:
        """The features, and the outcomes where the table has their column."""
        if self.target is None or self.target not in table.columns:
            return table, None
        return table.drop(columns=self.target), table[self.target]

    def check_fitted(self, method: Any) -> None:
        """Refuse a method that was fitted under another policy: its features are not these.

        Rules of requests and the promise may differ: nothing was learned from them.
        """
        differ = self._differences(method.schema_) + self._unsaid(method.policy_)
        if differ:
            raise UserError(
                f"{self.name}: the model was fitted under other rules: {differ[0]}; fit it again "
                "with this policy"
            )
        self._check_decision(method.classifier_)

    def _differences(self, fitted: Schema) -> list[str]:
        found = []
        for feature in fitted:
            for field, value in self._said_of(feature.name).items():
                has = getattr(feature, field)
                if has != value:
                    found.append(f"'{feature.name}' had the {field} {has!r}, not {value!r}")
        unknown = [name for name in self.stated.features if name not in fitted.names]
        return found + [f"'{name}' was no feature" for name in unknown]

    def _said_of(self, name: str) -> dict[str, Any]:
        """The fields of a feature that the policy states."""
        said, unlisted = self.stated.features.get(name), self.stated.unlisted
        if said is not None:
            return said.stated()
        return {} if unlisted is None else {"role": unlisted}

    def _unsaid(self, before: Policy | None) -> list[str]:
        """What the policy that a model was fitted under says of features, and this one does not."""
        if before is None:
            return []
        named = [*before.stated.features, *self.stated.features]
        lost = {name: before._said_of(name).keys() - self._said_of(name) for name in named}
        found = [
            f"{before.name} gave '{name}' its {sorted(fields)[0]}, which is not said any more"
            for name, fields in lost.items()
            if fields
        ]
        if before.stated.unlisted != self.stated.unlisted:
            ways = (before.stated.unlisted, self.stated.unlisted)
            told = [f"'{way}'" if way else "as the table has it" for way in ways]
            found.append(f"what is not listed was {told[0]}, not {told[1]}")
        return found

    def _check_decision(self, h: Classifier) -> None:
        """Refuse a classifier that accepts others than the policy says, where it says so."""
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

    # ---- it is looked at ----------------------------------------------------------------------

    def lint(self, X: pd.DataFrame, method: Any = None) -> list[str]:
        """Sentences about what looks wrong; X: training rows, or others like them.

        method: fitted under this policy; then plans are made for some of the rows in X that it
        rejects, to see whom the rules leave without one.
        """
        if method is not None:
            self.check_fitted(method)
        refused = self.refused(X, method)
        X = self.split(X)[0]
        schema = self.schema(X)
        remarks = schema.lint(X)
        for name, said in self.stated.features.items():
            remarks += _lint_feature(schema[name], said, X[name])
        remarks += [*_lint_immutables(schema, X), *self._lint_rules(schema, X)]
        if all(feature.role != "mutable" for feature in schema):
            remarks.append("no feature is mutable: nobody can be told to change anything")
        if method is not None:
            remarks += _lint_reading(method.classifier_, schema, X)
            remarks += [] if refused else self._lint_plans(method, X)
        return remarks + refused

    def refused(self, X: pd.DataFrame, method: Any = None) -> list[str]:
        """What of the policy would be refused for such a table: by `fit`, or by each request.

        method: then rules need be met only by those rows that it rejects.
        """
        X, y = self.split(X)
        found, encoder = [], TableEncoder(self.schema(X)).fit(X)
        try:
            if y is not None:
                self.classifier().is_favourable(y)
        except UserError as error:
            found.append(f"'decision.favourable' will be refused for such a table: {error}")
        unless, asking = ", unless the model accepts such rows already", np.ones(len(X), dtype=bool)
        if method is not None:
            unless, asking = "", ~method.classifier_.accepts(X[method.schema_.names])
        for then, whom in (("", np.zeros(len(X), dtype=bool)), (unless, asking)):
            try:
                compile_constraints(self.stated.rules, encoder, Rules(encoder), X, whom)
            except UserError as error:
                return [*found, f"'rules' will be refused for such a table{then}: {error}"]
        return found

    def _lint_rules(self, schema: Schema, X: pd.DataFrame) -> list[str]:
        rules, remarks = self.stated.rules, []
        named = {"lock": rules.lock, "increase": rules.increase, "decrease": rules.decrease}
        named |= {f: tuple(getattr(rules, f)) for f in ("ranges", "allowed", "max_step")}
        for field, names in named.items():
            for name in names:
                feature = schema[name]
                if feature.role not in ("mutable", "derived"):
                    then = "it does nothing" if feature.role == "immutable" else "it is refused"
                    remarks.append(f"'rules.{field}' names '{name}', {feature.role}: {then}")
        for name, (low, high) in rules.ranges.items():
            if schema[name].is_category:
                continue  # which the rules are refused for
            ends = (-np.inf if low is None else low, np.inf if high is None else high)
            remarks += _lint_range(f"'rules.ranges.{name}'", ends, X[name])
        for names, way in ((rules.increase, "decrease"), (rules.decrease, "increase")):
            remarks += [
                f"'{name}' may only {way} by its feature and only the other way by the rules: it "
                "goes nowhere"
                for name in names
                if schema[name].direction == way
            ]
        remarks += [
            f"'rules.{field}' is 0: nothing may change, and nobody would have a plan"
            for field in ("max_changes", "max_cost")
            if getattr(rules, field) == 0
        ]
        remarks += _lint_relations(rules.relations, schema, X)
        return remarks

    def _lint_plans(self, method: Any, X: pd.DataFrame) -> list[str]:
        rejected = np.flatnonzero(~method.classifier_.accepts(X[method.schema_.names]))
        if len(rejected) == 0:
            return ["the model rejects none of these rows, so no plan was tried"]
        some = rejected[np.linspace(0, len(rejected) - 1, min(len(rejected), TRIED)).astype(int)]
        plans = method.plans(X.iloc[some], **self.request)
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


def _lint_feature(feature: Feature, said: FeaturePolicy, column: pd.Series) -> Iterable[str]:
    where = f"'features.{feature.name}'"
    if said.cost_weight is not None and feature.role != "mutable":
        yield f"{where} has a cost_weight, but is {feature.role}: nobody pays for it"
    if feature.is_category:
        return  # what follows is about numbers
    if feature.range is not None and said.range is not None:
        yield from _lint_range(f"{where}.range", feature.range, column)
    if feature.horizon is not None and feature.horizon > column.max() - column.min():
        yield f"{where} advances by {feature.horizon:g}, more than people in the table differ by"
    if feature.max_step is not None and (column.max() - column.min()) <= feature.max_step:
        yield f"{where}.max_step is as large as the whole table's range: it stops nobody"


def _lint_immutables(schema: Schema, X: pd.DataFrame) -> Iterable[str]:
    """Whoever shares what is immutable with nobody has nobody to learn from."""
    fixed = [feature.name for feature in schema if feature.role == "immutable"]
    compared = [name for name in fixed if X[name].nunique() <= SHARED]
    alone = ~X.duplicated(compared, keep=False) if compared else pd.Series(False, X.index)
    if alone.mean() > 0.5:
        share = _share(int(alone.sum()), len(X))
        yield (
            f"{share} of the rows share with no other what is immutable, {fixed}: there is nobody "
            "to learn from; lock some of it instead, by 'rules.lock'"
        )


def _lint_range(where: str, ends: tuple[float, float], column: pd.Series) -> Iterable[str]:
    low, high = float(column.min()), float(column.max())
    told = f"the table goes from {amount(low)} to {amount(high)}"
    if ends[1] < low or ends[0] > high:
        yield f"{where} [{ends[0]:.10g}, {ends[1]:.10g}] lies outside the data: {told}"
    elif (np.isfinite(ends[0]) and ends[0] < low) or (np.isfinite(ends[1]) and ends[1] > high):
        yield (
            f"{where} [{ends[0]:.10g}, {ends[1]:.10g}] goes beyond the data ({told}): the model "
            "has seen nobody there"
        )


def _lint_relations(texts: Iterable[str], schema: Schema, X: pd.DataFrame) -> Iterable[str]:
    encoder = TableEncoder(schema).fit(X)
    F, immutable = encoder.features(X), Rules(encoder).immutable
    view = {j: Possible.known(F[:, j]) for j in range(F.shape[1])}
    for text in texts:
        try:
            relation = parse_relation(text, encoder)
        except UserError:
            continue  # which the rules are refused for
        features = list(relation.features)
        protected = [schema.names[j] for j in features if schema.features[j].role == "protected"]
        if protected:
            yield f"the rule '{text}' names {protected}, which is protected: it will be refused"
        if immutable[features].all():
            yield f"the rule '{text}' is about nothing that a person can change"
        broken = np.broadcast_to(relation(view) < 0, len(X))
        if broken.any():
            share = _share(int(broken.sum()), len(X))
            yield f"{share} of the rows do not keep the rule '{text}' as they are"


def _lint_reading(h: Classifier, schema: Schema, X: pd.DataFrame) -> Iterable[str]:
    for name, share in read_by(h, schema, X[schema.names]).items():
        yield (
            f"the model itself reads '{name}', which is protected: its score hangs on it in "
            f"{share:.0%} of the rows that were tried"
        )


def rules_in_force(policy: Policy | None, rules: Any) -> Any:
    """Return the rules of a request on top of the policy's, if there is a policy."""
    return rules if policy is None else policy.request_with(rules).get("constraints")
