"""People of a request as a table, and what JSON may hold about a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from genrecourse.apps.serve.errors import Refusal, as_seen
from genrecourse.errors import did_you_mean, shown

if TYPE_CHECKING:
    from genrecourse.advice.service import Service
    from genrecourse.table.schema import Feature

EXACT = 2**53  # whole numbers up to it are floats, too
LARGEST = 1e15  # of a number: with more digits, a plan could not be told from the person


def check_people(people: int, most: int, field: str = "people") -> None:
    """Raise Refusal if a request is about too many people."""
    if people > most:
        raise Refusal(422, f"{field} has {people:,} entries; at most {most:,} are answered",
                      field=field, seen=people, do="divide the request")  # fmt: skip


class PeopleReader:
    """Reads the people of requests as tables of the model's columns.

    Each request gets a table of its own. Its dtypes depend on the model and on this request alone,
    so that nobody's answer depends on who else asks.
    """

    def __init__(self, service: Service):
        self.columns = service.schema.columns
        self._problem = service.method.problem_
        self._dtypes = dict(self._problem.like.dtypes)
        self._features = {name: each for each in service.schema for name in each.stored_in}

    def table(self, people: Sequence[Mapping[str, Any]], where: str = "people") -> pd.DataFrame:
        """Return the people as a table with the index 0, 1, 2, ..."""
        for i, person in enumerate(people):
            self._check(person, f"{where}[{i}]")
        return pd.DataFrame(
            {name: self._column(name, [each[name] for each in people]) for name in self.columns}
        )

    def _check(self, person: Mapping[str, Any], where: str) -> None:
        for name in person:
            if name not in self._features:
                raise Refusal(
                    422, f"{where} has the field {shown(name)}{did_you_mean(name, self.columns)}, "
                    "which the model does not know",
                    field=where, seen=as_seen(name), do=f"give the fields {self.columns}",
                )  # fmt: skip
        for name in self.columns:
            if name not in person:
                raise Refusal(
                    422, f"{where}.{name} is missing", field=f"{where}.{name}",
                    do="give every field of /api/v1/schema; null for a value that is not known",
                )  # fmt: skip
            self._check_cell(self._features[name], person[name], f"{where}.{name}")

    def _check_cell(self, feature: Feature, value: Any, where: str) -> None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and not abs(value) <= LARGEST:
            wrong = f"{where} is {shown(value)}: no number of a table is so large"
        elif value is None or is_number or (isinstance(value, str | bool) and feature.is_category):
            return
        else:
            wanted = "a text, a number, true, false" if feature.is_category else "a number"
            wrong = f"{where} is {shown(value)}: it must be {wanted} or null"
        raise Refusal(422, wrong, field=where, seen=as_seen(value),
                      do="give a value as /api/v1/schema describes it")  # fmt: skip

    def _column(self, name: str, values: list[Any]) -> pd.Series:
        dtype = self._dtypes[name]
        if isinstance(dtype, pd.CategoricalDtype):
            more = [v for v in dict.fromkeys(values) if v is not None and v not in dtype.categories]
            wider = pd.CategoricalDtype([*dtype.categories, *more], dtype.ordered)
            return pd.Series(values, dtype=wider)
        if self._features[name].is_category:
            return pd.Series(values, dtype=_dtype_of(values, dtype))
        is_whole = all(isinstance(v, int) and abs(v) < EXACT for v in values)
        if is_whole and pd.api.types.is_integer_dtype(dtype):
            return pd.Series(values, dtype="int64")
        return pd.Series([None if v is None else float(v) for v in values], dtype="float64")

    # ---- as JSON --------------------------------------------------------------------------------

    @cached_property
    def example(self) -> dict[str, Any]:
        """A person who does not exist: the most common value of each feature."""
        problem = self._problem
        Z = problem.encoder.from_features(problem.usual[None])
        row = problem.encoder.decode(Z, like=problem.like)
        return {name: _plain(row[name].iloc[0]) for name in self.columns}

    @cached_property
    def description(self) -> dict[str, Any]:
        """The JSON Schema of a person."""
        return {
            "type": "object",
            "title": "Person",
            "description": "One person: every column of the model's table. null: not known.",
            "properties": {name: _described(f, name) for name, f in self._features.items()},
            "required": list(self.columns),
            "additionalProperties": False,
            "example": self.example,
        }


def _dtype_of(values: list[Any], like: Any) -> Any:
    """Return the dtype of the model's table, if it holds these levels; else that of any object."""
    try:
        column = pd.Series(values, dtype=like)
    except (TypeError, ValueError, OverflowError):
        return object
    kept = [None if pd.isna(cell) else _plain(cell) for cell in column]
    same = all(a == b and type(a) is type(b) for a, b in zip(kept, values, strict=True))
    return like if same else object


def _plain(cell: Any) -> Any:
    if pd.isna(cell):
        return None
    return cell.item() if hasattr(cell, "item") else cell


def _described(feature: Feature, column: str) -> dict[str, Any]:
    if feature.one_hot:
        return {"enum": [0, 1], "description": f"1 if {feature.label} is this, else 0"}
    if feature.is_category:
        levels = [_plain(each) for each in feature.categories]
        found: dict[str, Any] = {"enum": [*levels, *([None] if feature.missing else [])]}
    else:
        kind = "integer" if feature.decimals == 0 else "number"
        found = {"type": [kind, "null"] if feature.missing else kind}
        found |= {"minimum": -LARGEST, "maximum": LARGEST}
    label = feature.label + (f" ({feature.unit})" if feature.unit else "")
    return found | {"description": label}
