"""What requests and answers of the API look like. /docs and the checks of a body come from here.

The fields of a request for plans are those of `PlanRequest`, so that a new one is there, too.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from itertools import islice
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
    model_validator,
)

# a value of a person, checked in people.py, where the model's columns are known
Person = Annotated[
    dict[str, Any],
    WithJsonSchema({"$ref": "#/components/schemas/Person"}),
]

# JSON types of the fields of PlanRequest, by their annotation
KINDS: dict[str, Any] = {
    "int": int,
    "int | None": int | None,
    "float": float,
    "float | None": float | None,
    "bool": bool,
    "str": str,
    "str | None": str | None,
    "Any": dict[str, Any] | None,
    "Mapping[str, Any]": dict[str, Any],
}
SAYS = {
    "n": "plans for each person, which differ in what they change",
    "fewest_changes": "undo changes that are not needed",
    "rules": "rules of this request: the fields of Rules for everybody, or "
    '{"default": rules, "people": {"0": rules}} with places in the list of people',
    "promise": "show only plans that past outcomes back for this share of people",
    "delta": "how likely the promise may be wrong; needs a promise",
    "language": "of the sentences",
    "safety": "from 0, as cheap as possible, to 1, as safe as possible",
    "min_robust": "share of retrained models and of noisy tries that must accept a plan",
    "most_changes": "plans with more changes are shown only if no sturdy plan has fewer",
    "errors": '"status": a row that cannot be read gets the status unreadable and a reason; '
    '"raise": such a row refuses the request',
    "sort": "order of each person's plans: time, money, changes or cost; null: the best first",
    "options": "further options of the method, such as n_draws",
    "most_months": "no plan takes longer, by the policy's months",
    "most_money": "no plan takes more money, by the policy's prices",
}


MOST_FIELDS = 100  # of a body; more than any has


class Strict(BaseModel):
    """A body whose fields are all known and of the right type.

    Only the first mistake is reported, and a list is read no further (`fail_fast`): one error for
    each of a million values would keep everybody else waiting.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _reads_no_million_fields(cls, data: Any) -> Any:
        too_many = isinstance(data, dict) and len(data) > MOST_FIELDS  # some are unknown, then
        return dict(islice(data.items(), MOST_FIELDS + 1)) if too_many else data


class Loose(BaseModel):
    """A part of an answer, which may have more fields than are described."""

    model_config = ConfigDict(extra="allow")


# ---- requests -----------------------------------------------------------------------------------


class PeopleBody(Strict):
    people: list[Person] = Field(min_length=1, fail_fast=True, description="the people, in order")


class ReasonsBody(PeopleBody):
    """People whose decisions are to be explained."""


def asked_fields(request: type) -> dict[str, Any]:
    """Return the fields of a body with the fields of a dataclass, as `create_model` takes them."""
    found: dict[str, Any] = {}
    for each in fields(request):
        # a field of a kind that JSON has no type for, such as the language, is text
        kind = KINDS.get(str(each.type), str)
        default = {} if each.default is MISSING else each.default
        about = Field(default, description=SAYS.get(each.name, ""))
        found[each.name] = (kind, about)
    return found


def plans_body(asked: dict[str, Any]) -> type[BaseModel]:
    """Return the body of a request for plans."""
    says = "A request for plans."
    return create_model("PlansBody", __base__=PeopleBody, __doc__=says, **asked)


def explain_body(asked: dict[str, Any]) -> type[BaseModel]:
    """Return the body of a request for plans as KServe sends it."""
    says = "A request for plans as KServe sends it."
    return create_model("ExplainBody", __base__=PredictBody, __doc__=says, **asked)


class PredictBody(Strict):
    """A request for scores as KServe sends it."""

    instances: list[Any] = Field(min_length=1, description="people, or lists of their values")


class RecheckBody(Strict):
    """Plans that were given earlier."""

    plans: list[dict[str, Any]] = Field(
        min_length=1, fail_fast=True, description="as /api/v1/plans gave them"
    )


class Tensor(BaseModel):
    """One column of the Open Inference Protocol."""

    model_config = ConfigDict(extra="ignore", strict=True)

    name: str
    shape: list[int] = Field(fail_fast=True)
    datatype: str
    data: list[Any]


class InferBody(BaseModel):
    """A request of the Open Inference Protocol: one tensor for each column."""

    model_config = ConfigDict(extra="ignore", strict=True)

    id: str | None = None
    inputs: list[Tensor] = Field(min_length=1, fail_fast=True)


# ---- answers ------------------------------------------------------------------------------------


class ChangeOut(Loose):
    feature: str
    wording: str
    before: Any
    after: Any
    before_text: str
    after_text: str


class PlanOut(Loose):
    """A plan of one person, or why there is none; docs/plans.md explains the fields."""

    person: int = Field(description="place in the list of people")
    status: str = Field(description="ok, already-accepted, no-plan, or unreadable")
    reason: str = Field(description="why there is no plan; empty if there is one")
    reason_code: str
    cutoff: float | None
    score_before: float | None
    score_after: float | None
    cost: float | None
    changes: list[ChangeOut]
    alternatives: list[Loose]
    text: str = Field(description="all of it in words")


class PlansOut(BaseModel):
    plans: list[PlanOut] = Field(description="one for each person, in order")


class DecisionOut(BaseModel):
    person: int
    favourable: bool
    score: float


class DecisionsOut(BaseModel):
    cutoff: float = Field(description="a score above it is favourable")
    decisions: list[DecisionOut]


class ReasonsOut(BaseModel):
    reasons: list[dict[str, Any]] = Field(description="one for each person, in order")


class RecheckedOut(BaseModel):
    person: Any
    plan: int = Field(description="number of the plan of this person, from 1")
    holds: bool
    score: float
    cutoff: float


class RecheckOut(BaseModel):
    holding: int = Field(description="how many plans hold")
    plans: list[RecheckedOut]


class FeatureOut(Loose):
    name: str
    kind: str
    may_change: str = Field(description="in words, under the policy")


class SchemaOut(BaseModel):
    model: str
    facts: dict[str, str]
    cutoff: float
    features: list[FeatureOut]
    rules: list[str] = Field(description="rules on a plan as a whole")
    options: list[str] = Field(description="of the method, for `options` of a request")
    languages: list[str]
    person: dict[str, Any] = Field(description="JSON Schema of a person")
    example: dict[str, Any] = Field(description="a person who does not exist")
    limits: dict[str, float]


class PredictionsOut(BaseModel):
    predictions: list[float] = Field(description="score of the favourable outcome")
    cutoff: float


class ExplanationsOut(BaseModel):
    explanations: list[PlanOut]


class InferOut(BaseModel):
    model_name: str
    id: str | None = None
    outputs: list[dict[str, Any]]
