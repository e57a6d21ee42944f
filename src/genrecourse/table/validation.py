"""Turns the first mistake that pydantic finds in outside data into one sentence for the user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from genrecourse.errors import UserError, did_you_mean, shown, text_problem
from genrecourse.table.limits import NESTED

M = TypeVar("M", bound=BaseModel)


def validated(model: type[M], data: Any, where: str, *, unknown_key_hint: str = "") -> M:
    """Return `data` as a `model`. Raises UserError with the first mistake if `data` is invalid.

    Args:
        model: the pydantic model.
        data: values from outside, for example from a JSON file.
        where: the start of the message, for example the name of the file.
        unknown_key_hint: added to the message if a key does not exist.

    Examples:
        >>> class Loan(BaseModel, extra="forbid"):
        ...     sum: float
        >>> validated(Loan, {"sum": "a lot"}, "loan.json")
        Traceback (most recent call last):
        ...
        genrecourse.errors.UserError: loan.json: 'sum' is 'a lot': input should be a valid ...
    """
    odd = _odd_text(data)
    if odd:
        raise UserError(f"{where}: {odd}; write it differently")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        sentence = _sentence(error, model, unknown_key_hint)
        raise UserError(f"{where}: {sentence}") from None


def _odd_text(data: Any) -> str:
    """Return what is wrong with the first text that could be neither shown nor stored, or ""."""
    level = [data]
    for _ in range(NESTED):  # data from files are not deeper
        texts = [each for each in level if isinstance(each, str)]
        for text in texts:
            if text_problem(text):
                return f"{shown(text)} {text_problem(text)}"
        tables = [each for each in level if isinstance(each, dict)]
        lists = [each for each in level if isinstance(each, list | tuple)]
        level = [item for each in tables for pair in each.items() for item in pair]
        level += [item for each in lists for item in each]
    return ""


def _sentence(error: ValidationError, model: type[BaseModel], unknown_key_hint: str) -> str:
    first = error.errors()[0]
    place = [str(part) for part in first["loc"]]
    message = first["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if first["type"] == "extra_forbidden":
        part = _model_at(model, first["loc"][:-1])
        known = [field.alias or name for name, field in part.model_fields.items()]
        owner = f"'{'.'.join(place[:-1])}' has no key" if place[:-1] else "no key"
        close = did_you_mean(place[-1], known)
        return f"{owner} '{place[-1]}'{close}; the keys are {', '.join(known)}{unknown_key_hint}"
    if not place:
        return message
    if first["type"] == "missing":
        return f"'{'.'.join(place)}' is missing"
    seen = "" if first["type"] == "value_error" else f" is {shown(first['input'])}"
    return f"'{'.'.join(place)}'{seen}: {message}"


def _model_at(model: type[BaseModel], place: Sequence[int | str]) -> type[BaseModel]:
    """Return the model that the value at `place` belongs to.

    Keys of mappings, positions in lists and members of unions name no field, so they are skipped.
    """
    for part in place:
        by_name = {field.alias or name: field for name, field in model.model_fields.items()}
        if part in by_name:
            model = next(_models_in(by_name[str(part)].annotation), model)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the pydantic models that an annotation names, such as M in dict[str, M]."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
