"""One sentence from pydantic's first complaint, whatever model and place."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from genrecourse.errors import UserError
from genrecourse.table.validation import validated


class Wheel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    size: float = Field(gt=0)

    @field_validator("size")
    @classmethod
    def _is_not_13(cls, size: float) -> float:
        if size == 13:
            raise ValueError("Wheels of size 13 are not sold; take 14")
        return size


class Car(BaseModel):
    model_config = ConfigDict(extra="forbid")

    wheels: tuple[Wheel, ...] = ()
    spare: Wheel | None = None
    named: dict[str, Wheel] = {}
    the_class: str = Field("", alias="class")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"wheel": 1}, "no key 'wheel' (did you mean 'wheels'?); the keys are wheels, spare, "),
        ({"claas": "b"}, "(did you mean 'class'?); the keys are wheels, spare, named, class!"),
        ({"wheels": [{"sise": 1, "size": 2}]}, "'wheels.0' has no key 'sise' (did you mean 'size'"),
        ({"spare": {"size": 1, "rim": 2}}, "'spare' has no key 'rim'; the keys are size!"),
        ({"named": {"left": {"size": 1, "rim": 2}}}, "'named.left' has no key 'rim'; the keys are"),
        ({"wheels": [{"size": 0}]}, "'wheels.0.size' is 0: input should be greater than 0"),
        ({"wheels": [{}]}, "'wheels.0.size' is missing"),
        ({"spare": {"size": 13}}, "'spare.size': wheels of size 13 are not sold; take 14"),
        ([], "car.toml: input should be a valid dictionary"),
    ],
)
def test_the_first_mistake_is_one_sentence(data: Any, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        validated(Car, data, "car.toml", unknown_key_hint="!")
    assert str(caught.value).startswith("car.toml: ")
    assert sentence in str(caught.value)
